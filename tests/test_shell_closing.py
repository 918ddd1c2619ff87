"""Closing a runner gives everything back, whatever its handlers do about it; and where a runner lives."""

from __future__ import annotations

import asyncio

import pytest
from shell_toys import (
    MACHINE,
    Collected,
    Fetch,
    Finished,
    JobRunner,
    Notify,
    Phase,
    Recorder,
    Renewed,
    Started,
    leftovers,
    on_virtual_time,
    until_cancelled,
)

from turnproof.shell import Failure, Runner, RunnerClosed, VirtualClock, virtual_time

# ── closing ──


@on_virtual_time
async def test_closing_releases_every_timer_and_task(clock: VirtualClock) -> None:
    async with Runner(MACHINE, Recorder(lambda e: until_cancelled())) as runner:
        await runner.send(Started("w"))
        assert len(leftovers()) == 2
        assert clock.scheduled_ms() == [5_000]
    assert leftovers() == set()
    assert clock.scheduled_ms() == []
    assert runner.closed
    with pytest.raises(RunnerClosed, match=r"job '' is closed: Collected came too late"):
        await runner.send(Collected())
    await runner.aclose()


@on_virtual_time
async def test_closing_still_starts_the_effects_of_steps_already_answered(clock: VirtualClock) -> None:
    recorder = Recorder(lambda e: until_cancelled())
    runner = Runner(MACHINE, recorder)
    runner.post(Started("w"))
    runner.post(Renewed(0))
    await runner.aclose()
    assert recorder.seen == [Fetch("w"), Notify(0), Notify(1)]
    assert leftovers() == set()


@on_virtual_time
async def test_a_handler_may_close_its_own_runner(clock: VirtualClock) -> None:
    ended: list[str] = []

    async def close() -> None:
        await runner.aclose()
        ended.append("closed")

    failures: list[Failure] = []
    recorder = Recorder(lambda e: close() if isinstance(e, Fetch) else until_cancelled())
    runner: JobRunner = Runner(MACHINE, recorder, on_error=failures.append)
    await runner.send(Started("w"))
    await clock.settle()
    assert ended == ["closed"]
    assert leftovers() == set()
    assert failures == []


@on_virtual_time
async def test_what_a_handler_says_while_the_runner_closes_is_no_failure(clock: VirtualClock) -> None:
    async def report_the_end() -> None:
        try:
            await until_cancelled()
        finally:
            runner.post(Finished("w"))

    failures: list[Failure] = []
    runner: JobRunner = Runner(MACHINE, Recorder(lambda e: report_the_end()), on_error=failures.append)
    await runner.send(Started("w"))
    await runner.aclose()
    assert failures == []
    assert runner.state.phase is Phase.BUSY


@on_virtual_time
async def test_a_failure_while_the_runner_closes_is_reported_and_becomes_no_event(clock: VirtualClock) -> None:
    async def fail_at_the_end() -> None:
        try:
            await until_cancelled()
        finally:
            raise ValueError("at the end")

    failures: list[Failure] = []
    runner: JobRunner = Runner(
        MACHINE,
        Recorder(lambda e: fail_at_the_end() if isinstance(e, Fetch) else None),
        on_error=failures.append,
        as_event=lambda f: Finished("w"),
    )
    await runner.send(Started("w"))
    await runner.aclose()
    assert [str(f.error) for f in failures] == ["at the end"]
    assert runner.steps == 1


@on_virtual_time
async def test_a_handler_that_ignores_its_cancellation_is_reported_and_not_waited_for(clock: VirtualClock) -> None:
    async def stubborn() -> None:
        try:
            await until_cancelled()
        except asyncio.CancelledError:
            await asyncio.sleep(60)

    failures: list[Failure] = []
    runner = Runner(MACHINE, Recorder(lambda e: stubborn() if isinstance(e, Fetch) else None), key="k", on_error=failures.append)
    await runner.send(Started("w"))
    await asyncio.gather(runner.aclose(grace_ms=100), runner.aclose(grace_ms=100))
    await runner.aclose()
    assert clock.now_ms == 100
    assert [str(f.error) for f in failures] == ["job k: handler of Fetch(worker='w') ignored its cancellation for 100 ms"]
    await clock.advance(60_000)


@on_virtual_time
async def test_cancelling_whoever_closes_does_not_stop_the_closing(clock: VirtualClock) -> None:
    runner = Runner(MACHINE, Recorder(lambda e: until_cancelled()))
    await runner.send(Started("w"))
    closer = asyncio.create_task(runner.aclose())
    await asyncio.sleep(0)
    closer.cancel()
    await clock.settle()
    assert closer.cancelled()
    assert leftovers() == set()


# ── where it lives ──


def test_a_runner_is_built_inside_a_running_loop() -> None:
    with pytest.raises(RuntimeError, match="job: build the runner inside a coroutine"):
        Runner(MACHINE, Recorder())


def test_an_event_from_another_thread_is_refused_with_what_to_write() -> None:
    async def build() -> JobRunner:
        return Runner(MACHINE, Recorder(), key="k")

    with virtual_time() as clock:
        runner = clock.run(build())
        with pytest.raises(RuntimeError, match=r"write loop.call_soon_threadsafe\(runner.post, Started\(\.\.\.\)\)"):
            runner.post(Started("w"))
        assert runner.steps == 0
