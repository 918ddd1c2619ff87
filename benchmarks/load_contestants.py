"""The contestants of ``benchmarks.load``: the shell's runner, and a reply written by hand with booleans and ``asyncio.timeout``."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from benchmarks.load import Book, Contest
from turnproof.machines.reply_operation_words import (
    AbortReason,
    AbortRequested,
    BackendAttached,
    CancelBackend,
    Completed,
    Phase,
    PhaseEntered,
    RecoveryRequested,
    Result,
    Timer,
)
from turnproof.shell.reply_operation import ReplyRunner, reply_runner


class Runners:
    """Replies as runners."""

    def __init__(self, book: Book) -> None:
        self.book = book
        self.durations_ms = {Timer.WINDOW: round(book.window_s * 1000)}
        self.replies: dict[int, Reply] = {}

    def begin(self, number: int) -> None:
        reply = self.replies[number] = Reply(self, number)
        reply.runner.post(PhaseEntered(Phase.RUNNING))
        reply.runner.post(BackendAttached(f"run-{number}"))
        reply.runner.post(RecoveryRequested())

    def abort(self, number: int) -> None:
        self.replies[number].runner.post(AbortRequested(AbortReason.USER))

    def complete(self, number: int) -> None:
        self.replies[number].runner.post(Completed(False))

    def open(self) -> int:
        return len(self.replies)


class Reply:
    """One reply: its runner, and the handlers of its effects."""

    __slots__ = ("number", "replies", "runner")

    def __init__(self, replies: Runners, number: int) -> None:
        self.replies, self.number = replies, number
        self.runner: ReplyRunner = reply_runner(self, key=f"session-{number}", durations_ms=replies.durations_ms)

    def cancel_backend(self, effect: CancelBackend) -> Awaitable[None] | None:
        return self.replies.book.cancel_backend()

    def abort_signal(self, effect: object) -> None:
        if self.runner.state.result is Result.RUN_STALLED:
            self.replies.book.fired(self.number)
            self.runner.post(Completed(False))

    def release(self, effect: object) -> None:
        self.replies.book.released += 1
        del self.replies.replies[self.number]

    def nothing(self, effect: object) -> None: ...

    detach_upstream = stamp_activity = deliver_steer = rotate_session = move_to_key = settle_owner = nothing


class ByHand:
    """Replies as one writes them."""

    def __init__(self, book: Book) -> None:
        self.book = book
        self.replies: dict[int, Hand] = {}

    def begin(self, number: int) -> None:
        reply = self.replies[number] = Hand(self, number)
        reply.enter("running")
        reply.attach(f"run-{number}")
        reply.recover()

    def abort(self, number: int) -> None:
        self.replies[number].abort("user")

    def complete(self, number: int) -> None:
        self.replies[number].complete()

    def open(self) -> int:
        return len(self.replies)


class Hand:
    """A reply with booleans, and a task with ``asyncio.timeout`` where something must not last for ever."""

    SETTLE_S = 60.0
    __slots__ = (
        "backend", "cleanup", "consents", "frozen", "next_attempt", "number", "owner_done", "phase", "recovered", "released", "replies",
        "result", "signal_aborted", "timer",
    )  # fmt: skip

    def __init__(self, replies: ByHand, number: int) -> None:
        self.replies, self.number = replies, number
        self.phase, self.result = "queued", ""
        self.backend: str | None = None
        self.recovered: str | None = None
        self.consents, self.frozen, self.released, self.signal_aborted = True, False, False, False
        self.timer: asyncio.Task[None] | None = None
        self.next_attempt: asyncio.Future[None] | None = None
        self.owner_done: asyncio.Future[None] | None = None
        self.cleanup: set[asyncio.Task[None]] | None = None

    def enter(self, phase: str) -> None:
        if not self.result:
            self.phase = phase
            self.stamp()

    def attach(self, backend: str) -> None:
        if self.result:
            self.cancel(backend)
            return
        self.backend = backend
        if self.next_attempt is not None and not self.next_attempt.done():
            self.next_attempt.set_result(None)
        self.stamp()

    def recover(self) -> bool:
        if self.phase != "running" or self.backend is None or self.recovered == self.backend or not self.consents or self.frozen:
            return False
        self.recovered = self.backend
        self.next_attempt = asyncio.get_running_loop().create_future()
        self.timer = asyncio.create_task(self._wait_for_the_next_attempt())
        self.cancel(self.backend)
        return True

    async def _wait_for_the_next_attempt(self) -> None:
        assert self.next_attempt is not None
        try:
            async with asyncio.timeout(self.replies.book.window_s):
                await self.next_attempt
        except TimeoutError:
            if not self.result:
                self.end("stalled")

    def abort(self, why: str) -> bool:
        if self.result or self.frozen or (self.backend is not None and not self.consents):
            return False
        self.end(f"aborted by {why}")
        return True

    def end(self, result: str) -> None:
        self.phase, self.result, backend, self.backend = "ended", result, self.backend, None
        if self.timer is not None and self.timer is not asyncio.current_task():
            self.timer.cancel()
        self.owner_done = asyncio.get_running_loop().create_future()
        self.timer = asyncio.create_task(self._wait_for_the_owner())
        if backend is not None:
            self.cancel(backend)
        self.signal_aborted = True
        if result == "stalled":
            self.replies.book.fired(self.number)
            self.complete()

    async def _wait_for_the_owner(self) -> None:
        assert self.owner_done is not None
        try:
            async with asyncio.timeout(self.SETTLE_S):
                await self.owner_done
        except TimeoutError:
            self.release()

    def complete(self) -> None:
        if self.owner_done is not None and not self.owner_done.done():
            self.owner_done.set_result(None)
        self.release()

    def release(self) -> None:
        if not self.released:
            self.released = True
            self.replies.book.released += 1
            del self.replies.replies[self.number]

    def cancel(self, backend: str) -> None:
        waits = self.replies.book.cancel_backend()
        if waits is not None:
            task = asyncio.create_task(_awaited(waits))
            if self.cleanup is None:
                self.cleanup = set()
            self.cleanup.add(task)
            task.add_done_callback(self.cleanup.discard)

    def stamp(self) -> None: ...


async def _awaited(waits: Awaitable[None]) -> None:
    await waits


CONTESTANTS: dict[str, Callable[[Book], Contest]] = {"runner": Runners, "by hand": ByHand}
