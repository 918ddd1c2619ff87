"""Rare faults around a step: whoever raises what where, the step stands and its effects and timers are due."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from shell_toys import (
    MACHINE,
    Fetch,
    JobRunner,
    Notify,
    Phase,
    Recorder,
    Renewed,
    Started,
    Timer,
    on_virtual_time,
    until_cancelled,
)

from turnproof.shell import Failure, Runner, VirtualClock, virtual_time

# ── deadlines that are no time ──


@pytest.mark.parametrize("until_ms", ["soon", None, 10**400, object()])
def test_a_deadline_that_is_no_time_is_reported_and_the_timer_runs_without_it(until_ms: Any) -> None:
    async def main(clock: VirtualClock) -> None:
        failures: list[Failure] = []
        recorder = Recorder()
        runner = Runner(MACHINE, recorder, on_error=failures.append)
        await runner.send(Started("w"))
        await clock.advance(1_000)
        await runner.send(Renewed(until_ms))
        await clock.settle()
        assert [type(failure.effect).__name__ for failure in failures] == ([] if until_ms is None else ["StartTimer"])
        assert (runner.state.phase, runner.due_ms()) == (Phase.BUSY, {Timer.DEADLINE: 6_000})
        assert recorder.seen == [Fetch("w"), Notify(0), Notify(1)]
        await runner.aclose()

    with virtual_time() as clock:
        clock.run(main(clock))


# ── whoever leaves the program ──


def test_an_exit_out_of_the_trace_hook_ends_the_run_and_the_effects_are_still_performed() -> None:
    def hook(step: object) -> None:
        raise SystemExit(3)

    recorder = Recorder()
    with virtual_time() as clock:

        async def main() -> None:
            await Runner(MACHINE, recorder, trace=hook).send(Started("w"))

        with pytest.raises(SystemExit):
            clock.run(main())
        clock.run(clock.settle())
    assert recorder.seen == [Fetch("w"), Notify(0)]


@on_virtual_time
async def test_a_trace_hook_or_an_on_error_that_raises_a_cancellation_cancels_nobody(clock: VirtualClock) -> None:
    def cancelled(anything: object) -> None:
        raise asyncio.CancelledError

    told: list[dict[str, object]] = []
    clock.loop.set_exception_handler(lambda loop, context: told.append(context))
    recorder = Recorder()
    runner = Runner(MACHINE, recorder, trace=cancelled, on_error=cancelled)
    await runner.send(Started("w"))
    assert recorder.seen == [Fetch("w"), Notify(0)]
    assert [type(context["exception"]) for context in told] == [asyncio.CancelledError]


# ── closing ──


@on_virtual_time
async def test_a_plain_handler_that_speaks_while_the_runner_closes_did_nothing_wrong(clock: VirtualClock) -> None:
    failures: list[Failure] = []

    def during(effect: object) -> Any:
        if isinstance(effect, Fetch):
            return until_cancelled()
        if isinstance(effect, Notify) and runner.closed:
            recorder.seen.append("too late")
            runner.post(Renewed(0))
        return None

    recorder = Recorder(during)
    runner: JobRunner = Runner(MACHINE, recorder, on_error=failures.append)
    runner.post(Started("w"))
    # The handler of Fetch has a task now, so Notify is still due when the closing begins.
    await runner.aclose()
    assert recorder.seen == [Fetch("w"), Notify(0), "too late"]
    assert failures == []
    assert runner.steps == 1


# ── instances share nothing ──


@on_virtual_time
async def test_instances_between_steps_share_what_is_empty_and_nothing_else(clock: VirtualClock) -> None:
    slow: list[JobRunner] = []
    for _ in range(2):
        runner = Runner(MACHINE, Recorder(lambda effect: until_cancelled()))
        await runner.send(Started("w"))
        slow.append(runner)
    fresh = Runner(MACHINE, Recorder())
    await asyncio.wait_for(fresh.idle(), 1)
    await slow[0].aclose()
    idle = asyncio.create_task(slow[1].idle())
    await clock.settle()
    assert not idle.done()
    await slow[1].aclose()
    await idle


@on_virtual_time
async def test_a_handler_that_drives_another_instance_mixes_no_effects(clock: VirtualClock) -> None:
    def during(effect: object) -> None:
        if isinstance(effect, Fetch):
            other.post(Started("other"))
            assert inner.seen == [Fetch("other"), Notify(0)]

    outer, inner = Recorder(during), Recorder()
    other = Runner(MACHINE, inner)
    await Runner(MACHINE, outer).send(Started("w"))
    assert outer.seen == [Fetch("w"), Notify(0)]
    assert inner.seen == [Fetch("other"), Notify(0)]


# ── whoever waits may leave ──


@on_virtual_time
async def test_whoever_waits_for_idle_may_leave(clock: VirtualClock) -> None:
    gate = clock.loop.create_future()
    recorder = Recorder(lambda effect: gate if isinstance(effect, Fetch) else None)
    runner = Runner(MACHINE, recorder)
    await runner.send(Started("w"))
    waiting = [asyncio.create_task(runner.idle()) for _ in range(2)]
    await clock.settle()
    waiting[0].cancel()
    await clock.settle()
    assert [task.done() for task in waiting] == [True, False]
    assert not gate.cancelled()
    gate.set_result(None)
    await waiting[1]
    assert runner.due_ms() == {Timer.DEADLINE: 5_000}
    await runner.aclose()
