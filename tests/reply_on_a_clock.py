"""One reply operation on a virtual clock, its slot, signal and backends played: for tests against time."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Awaitable, Callable

from turnproof.machines.reply_operation_words import (
    AbortSignal,
    CancelBackend,
    CancelReason,
    DeliverSteer,
    DetachUpstream,
    Effect,
    Event,
    MoveToKey,
    Release,
    ReplyOperation,
    Result,
    RotateSession,
    SettleOwner,
    StampActivity,
    Timer,
)
from turnproof.shell import Failure, Performed, Runner, VirtualClock, virtual_time
from turnproof.shell.reply_operation import ReplyHandlers, reply_runner


class Reply(ReplyHandlers):
    """One reply, begun at 0, with its slot, its signal and its backends."""

    def __init__(self, clock: VirtualClock, on_cancel: Callable[[Reply], Performed] | None = None) -> None:
        self.clock, self.on_cancel = clock, on_cancel
        self.cancels: list[tuple[str, CancelReason]] = []
        self.releases: list[int] = []
        """When the slot was given up, in milliseconds."""
        self.signals = 0
        self.failures: list[Failure] = []
        self.inner: list[object] = []
        """Answers to events that were sent from inside ``cancel_backend``."""
        self.runner: Runner[ReplyOperation, Event, Effect] = reply_runner(self, on_error=self.failures.append)

    def cancel_backend(self, effect: CancelBackend) -> Performed:
        self.cancels.append((effect.backend, effect.reason))
        return None if self.on_cancel is None else self.on_cancel(self)

    def release(self, effect: Release) -> None:
        self.releases.append(self.clock.now_ms)

    def abort_signal(self, effect: AbortSignal) -> None:
        self.signals += 1

    def detach_upstream(self, effect: DetachUpstream) -> None: ...
    def stamp_activity(self, effect: StampActivity) -> None: ...
    def deliver_steer(self, effect: DeliverSteer) -> None: ...
    def rotate_session(self, effect: RotateSession) -> None: ...
    def move_to_key(self, effect: MoveToKey) -> None: ...
    def settle_owner(self, effect: SettleOwner) -> None: ...

    async def sends(self, *events: Event) -> object:
        """Send all of them; the answer to the last."""
        answers = [await self.runner.send(event) for event in events]
        return answers[-1]

    async def at(self, ms: int) -> ReplyOperation:
        """The state at ``ms`` milliseconds, everything due by then done."""
        await self.clock.advance(ms - self.clock.now_ms)
        return self.runner.state

    @property
    def result(self) -> Result:
        return self.runner.state.result

    @property
    def timers(self) -> dict[Timer, int]:
        """Armed timers -> when they are due, in milliseconds."""
        return {Timer(timer.value): due for timer, due in self.runner.due_ms().items()}


def reply_test(test: Callable[..., Awaitable[None]]) -> Callable[..., None]:
    """Run a coroutine function of a reply, and of its parameters, on virtual time; nothing may leak from it."""

    def run(**parameters: object) -> None:
        async def main() -> None:
            reply = Reply(clock)
            await test(reply, **parameters)
            await reply.runner.aclose()
            assert clock.scheduled_ms() == []
            assert asyncio.all_tasks() == {asyncio.current_task()}

        with virtual_time() as clock:
            clock.run(main())

    run.__name__, run.__doc__ = test.__name__, test.__doc__
    first, *parameters = inspect.signature(test).parameters.values()
    assert first.name == "reply"
    run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    return run
