"""A runtime of one machine: handlers, durations, traces, a monitor, and a test on both clocks. Only mypy reads this file."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping

from turnproof.checkers.traces import Monitor, Report, replay
from turnproof.machines.kernel import Ignored, Refused, Taken
from turnproof.machines.reply_operation import MACHINE
from turnproof.machines.reply_operation_words import (
    AbortReason,
    AbortRequested,
    AbortSignal,
    CancelBackend,
    DeliverSteer,
    DetachUpstream,
    Effect,
    Event,
    Failed,
    FailureCode,
    MoveToKey,
    Release,
    ReplyOperation,
    RotateSession,
    SettleOwner,
    StampActivity,
    Timer,
)
from turnproof.shell import Clock, Failure, RealClock, Runner, RunnerClosed, TraceStep, VirtualClock, run_virtual
from turnproof.shell.reply_operation import ReplyRunner, reply_runner
from turnproof.specs.reply_operation import SPEC
from turnproof.traces.exporters import LogTrace, OpenTelemetryTrace, all_of
from turnproof.traces.writer import TraceWriter


class Handlers:
    """Complete: plain functions and coroutine functions may be mixed."""

    def detach_upstream(self, effect: DetachUpstream) -> None: ...
    def abort_signal(self, effect: AbortSignal) -> None: ...
    async def cancel_backend(self, effect: CancelBackend) -> None:
        await asyncio.sleep(len(effect.backend) + len(effect.reason.value))

    def release(self, effect: Release) -> None: ...
    def stamp_activity(self, effect: StampActivity) -> None: ...
    def deliver_steer(self, effect: DeliverSteer) -> None: ...
    def rotate_session(self, effect: RotateSession) -> None: ...
    def move_to_key(self, effect: MoveToKey) -> None: ...
    def settle_owner(self, effect: SettleOwner) -> None: ...


class Lacking:
    """Has one handler of nine."""

    def release(self, effect: Release) -> None: ...


class Mistaken(Handlers):
    """One handler takes another effect."""

    def release(self, effect: CancelBackend) -> None: ...  # type: ignore[override]


DURATIONS: dict[Timer, int] = {Timer.SETTLE: 30_000}


def as_event(failure: Failure) -> Event | None:
    """A cancel that raises ends the reply."""
    return Failed(FailureCode.RUN_FAILED) if isinstance(failure.effect, CancelBackend) else None


def told(report: Report) -> None:
    """Somebody is paged."""
    print(report.sentence, report.requirements, report.harm, str(report))


async def serve(reply: ReplyRunner) -> str:
    """What an answer says, every case of it."""
    try:
        answer = await reply.send(AbortRequested(AbortReason.USER))
    except RunnerClosed:
        return "closed"
    match answer:
        case Taken(state, effects):
            return f"{state.phase.value} {len(effects)} {state.result.value}"
        case Ignored(why) | Refused(why):
            return why


async def main() -> None:
    """A reply with everything."""
    monitor = Monitor(SPEC, on_report=told, situations=1_000)
    with TraceWriter("log.jsonl", MACHINE) as writer:
        hook = all_of(writer, monitor, LogTrace(MACHINE, level=logging.INFO), OpenTelemetryTrace(MACHINE))
        async with reply_runner(Handlers(), key="k", durations_ms=DURATIONS, as_event=as_event, trace=hook) as reply:
            print(await serve(reply), reply.state.phase, reply.due_ms().get(Timer.SETTLE))
            await reply.idle()
    plain: Runner[ReplyOperation, Event, Effect] = Runner(MACHINE, Handlers(), trace=lambda step: print(step.row))
    await plain.send("abort")  # type: ignore[arg-type]
    reply_runner(Lacking())  # type: ignore[arg-type]
    reply_runner(Mistaken())  # type: ignore[arg-type]
    reply_runner(Handlers(), durations_ms={Timer.SETTLE: "soon"})  # type: ignore[dict-item]


def trace(step: TraceStep[ReplyOperation, Event, Effect]) -> Mapping[str, object]:
    """A hook of one's own."""
    return {"event": step.event, "said": step.said, "phase": step.post.phase}


def test_on_a_clock(virtual_clock: VirtualClock, any_clock: Clock) -> None:
    """Both clocks do for the same code."""
    virtual_clock.run(main())
    any_clock.run(any_clock.advance(60_000))
    clocks: list[Clock] = [virtual_clock, RealClock()]
    print([clock.now_ms for clock in clocks], run_virtual(asyncio.sleep(1, "done")).upper())
    print(replay(SPEC, [], allow=["lost"]).text())
