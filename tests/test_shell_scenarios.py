"""The same scenarios on the virtual clock and on the real one: what happens, in which order, and not before its time."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

from turnproof.machines.kernel import Ignored, Refused, Taken
from turnproof.machines.reply_operation import MACHINE
from turnproof.machines.reply_operation_words import (
    AbortReason,
    AbortRequested,
    BackendAttached,
    BackendDetached,
    Completed,
    Event,
    LaneWaitBegan,
    LaneWaitEnded,
    OutcomeCommitted,
    Phase,
    PhaseEntered,
    RecoveryRequested,
    Result,
)
from turnproof.shell import Clock, Failure, Performed, RunnerClosed
from turnproof.shell.reply_operation import ReplyRunner, reply_runner

pytest_plugins = ["turnproof.shell.fixtures"]

USER = AbortRequested(AbortReason.USER)
MINUTE_MS = 60_000
EARLY_MS = 1_500
"""How much sooner a real timer of a minute may seem to fire: one millisecond of real time, rounded."""

During = Callable[["Gateway", object], Performed]


class Gateway:
    """A reply, and what its handlers saw: the class of each effect."""

    def __init__(self, clock: Clock, during: During | None = None) -> None:
        self.clock, self.during, self.sent_ms = clock, during, clock.now_ms
        self.seen: list[str] = []
        self.failures: list[Failure] = []
        self.released = asyncio.Event()
        durations_ms = clock.durations_ms(MACHINE)
        self.reply: ReplyRunner = reply_runner(self, key="k", durations_ms=durations_ms, on_error=self.failures.append)

    def perform(self, effect: object) -> Performed:
        name = type(effect).__name__
        self.seen.append(name)
        if name == "Release":
            self.released.set()
        return None if self.during is None else self.during(self, effect)

    detach_upstream = abort_signal = cancel_backend = release = stamp_activity = perform
    deliver_steer = rotate_session = move_to_key = settle_owner = perform

    async def send(self, *events: Event) -> list[type]:
        """Send events; the kinds of their answers."""
        self.sent_ms = self.clock.now_ms
        return [type(await self.reply.send(event)) for event in events]

    async def release_after(self, ms: int) -> None:
        """Wait for the release; it must not come before ``ms`` from when events were last sent. However slow the machine is, it cannot."""
        await asyncio.wait_for(self.released.wait(), 60 * MINUTE_MS)
        assert self.clock.now_ms - self.sent_ms >= ms - EARLY_MS


@asynccontextmanager
async def gateway(clock: Clock, during: During | None = None) -> AsyncIterator[Gateway]:
    """A gateway that leaves no task and no failure behind."""
    made = Gateway(clock, during)
    async with made.reply:
        yield made
    await clock.settle()
    assert asyncio.all_tasks() == {asyncio.current_task()}
    assert made.reply.due_ms() == {}


RUNNING: tuple[Event, ...] = (PhaseEntered(Phase.RUNNING), BackendAttached("b"))


def test_an_abort_whose_owner_never_comes_back_is_released_after_a_minute(any_clock: Clock) -> None:
    async def main() -> None:
        async with gateway(any_clock) as g:
            assert await g.send(*RUNNING, USER, USER) == [Taken, Taken, Taken, Refused]
            assert not g.reply.state.released
            await g.release_after(MINUTE_MS)
            assert g.reply.state.result is Result.ABORTED_BY_USER
            assert g.seen.count("CancelBackend") == g.seen.count("Release") == 1

    any_clock.run(main())


def test_a_delivery_that_was_never_heard_of_again_fails_at_the_end_of_its_lease(any_clock: Clock) -> None:
    async def main() -> None:
        async with gateway(any_clock) as g:
            assert await g.send(*RUNNING, OutcomeCommitted(), USER) == [Taken, Taken, Taken, Refused]
            await g.release_after(MINUTE_MS)
            assert g.reply.state.result is Result.RUN_STALLED

    any_clock.run(main())


def test_a_recovery_window_stands_still_in_a_healthy_wait(any_clock: Clock) -> None:
    async def main() -> None:
        async with gateway(any_clock) as g:
            await g.send(*RUNNING, RecoveryRequested(), LaneWaitBegan())
            await any_clock.advance(5 * MINUTE_MS)
            assert not g.released.is_set()
            assert g.reply.state.phase is Phase.WAITING_FOR_LANE
            assert await g.send(LaneWaitEnded(), BackendAttached("c"), Completed(False)) == [Taken] * 3
            assert g.reply.state.result is Result.COMPLETED
            assert g.released.is_set()

    any_clock.run(main())


def test_a_backend_that_aborts_from_inside_its_cancel_is_refused(any_clock: Clock) -> None:
    answers: list[type] = []

    def during(g: Gateway, effect: object) -> None:
        if type(effect).__name__ == "CancelBackend":
            answers.append(type(g.reply.post(USER)))
            answers.append(type(g.reply.post(BackendDetached("b"))))

    async def main() -> None:
        async with gateway(any_clock, during) as g:
            await g.send(*RUNNING, USER)
            assert answers == [Refused, Ignored]
            assert g.seen == ["StampActivity", "StampActivity", "DetachUpstream", "AbortSignal", "CancelBackend"]

    any_clock.run(main())


def test_handlers_that_raise_and_hang_hold_nothing_up(any_clock: Clock) -> None:
    def during(g: Gateway, effect: object) -> Performed:
        if type(effect).__name__ == "AbortSignal":
            raise ValueError("a listener that raises")
        return asyncio.sleep(60 * MINUTE_MS) if type(effect).__name__ == "CancelBackend" else None

    async def main() -> None:
        async with gateway(any_clock, during) as g:
            await g.send(*RUNNING, USER)
            await g.release_after(MINUTE_MS)
            assert [str(failure.error) for failure in g.failures] == ["a listener that raises"]

    any_clock.run(main())


def test_a_caller_that_leaves_loses_neither_effect_nor_timer(any_clock: Clock) -> None:
    async def main() -> None:
        async with gateway(any_clock, lambda g, effect: asyncio.sleep(0)) as g:
            await g.send(*RUNNING)
            caller = asyncio.create_task(g.send(USER))
            await asyncio.sleep(0)
            caller.cancel()
            await asyncio.gather(caller, return_exceptions=True)
            await any_clock.settle()
            assert caller.cancelled()
            assert g.seen[-3:] == ["DetachUpstream", "AbortSignal", "CancelBackend"]
            await g.release_after(MINUTE_MS)

    any_clock.run(main())


def test_closing_in_the_middle_leaves_nothing_and_accepts_nothing(any_clock: Clock) -> None:
    async def main() -> None:
        async with gateway(any_clock, lambda g, effect: asyncio.sleep(60 * MINUTE_MS)) as g:
            callers = [asyncio.create_task(g.send(event)) for event in (*RUNNING, USER)]
            await asyncio.sleep(0)
            await g.reply.aclose()
            done: list[Any] = await asyncio.gather(*callers, return_exceptions=True)
            assert all(isinstance(outcome, (list, RunnerClosed)) for outcome in done)
            effects, steps = len(g.seen), g.reply.steps
            await any_clock.advance(2 * MINUTE_MS)
            assert (len(g.seen), g.reply.steps, g.released.is_set()) == (effects, steps, False)

    any_clock.run(main())
