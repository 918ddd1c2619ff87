"""The runner: decides, stores, then acts, whatever its handlers and callers do."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable

import pytest
from shell_toys import (
    MACHINE,
    Cancel,
    Clean,
    Collected,
    Effect,
    Event,
    Fetch,
    Finished,
    Job,
    JobRunner,
    Notify,
    Phase,
    Recorder,
    Renewed,
    Resumed,
    Started,
    leftovers,
    on_virtual_time,
    until_cancelled,
)

from turnproof.machines.kernel import Ignored, Refused, Taken
from turnproof.shell import Failure, Performed, Runner, TraceStep, VirtualClock, virtual_time

# ── answers ──


@on_virtual_time
async def test_send_returns_the_answer_of_the_step(clock: VirtualClock) -> None:
    runner = Runner(MACHINE, Recorder(), key="k")
    taken = await runner.send(Started("w"))
    assert isinstance(taken, Taken)
    assert taken.state is runner.state
    assert runner.state.phase is Phase.BUSY
    assert isinstance(await runner.send(Finished("somebody else")), Ignored)
    refused = await runner.send(Started("w"))
    assert isinstance(refused, Refused)
    assert refused.why == "a job is started once, by somebody"
    assert runner.steps == 3


@on_virtual_time
async def test_an_unknown_event_is_the_callers_mistake_and_changes_nothing(clock: VirtualClock) -> None:
    runner = Runner(MACHINE, Recorder())
    with pytest.raises(TypeError, match="job knows no event str"):
        await runner.send("start")  # type: ignore[arg-type]
    assert (runner.state, runner.steps) == (MACHINE.initial, 0)


# ── effects ──


@on_virtual_time
async def test_effects_are_performed_in_order_once(clock: VirtualClock) -> None:
    recorder = Recorder()
    runner = Runner(MACHINE, recorder)
    for event in (Started("w"), Renewed(0), Finished("w"), Collected(), Collected()):
        await runner.send(event)
    assert recorder.seen == [Fetch("w"), Notify(0), Notify(1), Notify(1), Clean(), Notify(1)]


@on_virtual_time
async def test_an_effect_starts_when_the_awaiting_handler_before_it_has_started(clock: VirtualClock) -> None:
    seen: list[str] = []

    async def fetch(effect: object) -> None:
        seen.append("fetch starts")
        await asyncio.sleep(1)
        seen.append("fetch ends")

    runner = Runner(MACHINE, {**handlers(seen), Fetch: fetch})
    await runner.send(Started("w"))
    assert seen == ["fetch starts", "Notify"]
    await runner.idle()
    assert seen == ["fetch starts", "Notify", "fetch ends"]
    assert clock.now_ms == 1_000


@on_virtual_time
async def test_a_handler_that_hangs_delays_neither_release_nor_timer(clock: VirtualClock) -> None:
    recorder = Recorder(lambda effect: until_cancelled() if isinstance(effect, (Fetch, Cancel)) else None)
    async with Runner(MACHINE, recorder) as runner:
        await runner.send(Started("w"))
        await clock.advance(5_000 + 2_000)
        assert recorder.seen == [Fetch("w"), Notify(0), Cancel("w"), Clean(), Clean()]
        assert runner.state.collected


@on_virtual_time
async def test_a_handler_may_wait_until_the_others_are_over(clock: VirtualClock) -> None:
    async def wait() -> None:
        await runner.idle()
        recorder.seen.append(clock.now_ms)

    recorder = Recorder(lambda effect: wait() if isinstance(effect, Fetch) else asyncio.sleep(3))
    runner: JobRunner = Runner(MACHINE, recorder)
    await runner.send(Started("w"))
    await clock.advance(4_000)
    assert recorder.seen == [Fetch("w"), Notify(0), 3_000]


@on_virtual_time
async def test_any_awaitable_will_do(clock: VirtualClock) -> None:
    future: asyncio.Future[None] = clock.loop.create_future()
    runner = Runner(MACHINE, Recorder(lambda effect: future))
    await runner.send(Started("w"))
    idle = asyncio.create_task(runner.idle())
    await clock.advance(1)
    assert not idle.done()
    future.set_result(None)
    await idle


# ── events from inside ──


@on_virtual_time
async def test_an_event_from_inside_a_handler_is_answered_at_once_and_its_effects_wait(clock: VirtualClock) -> None:
    answers: list[object] = []

    def during(effect: object) -> None:
        if isinstance(effect, Fetch):
            answers.append(type(runner.post(Started("other"))))
            answers.append(type(runner.post(Finished("w"))))
            assert recorder.seen == [Fetch("w")]

    recorder = Recorder(during)
    runner: JobRunner = Runner(MACHINE, recorder)
    await runner.send(Started("w"))
    assert answers == [Refused, Taken]
    assert recorder.seen == [Fetch("w"), Notify(0), Notify(0), Clean()]


@on_virtual_time
async def test_a_coroutine_handler_may_await_an_event_of_its_own(clock: VirtualClock) -> None:
    def during(effect: object) -> Performed:
        return finish() if isinstance(effect, Fetch) else None

    async def finish() -> None:
        assert isinstance(await runner.send(Finished("w")), Taken)
        recorder.seen.append("sent")

    recorder = Recorder(during)
    runner: JobRunner = Runner(MACHINE, recorder)
    await runner.send(Started("w"))
    await runner.idle()
    assert recorder.seen == [Fetch("w"), Notify(0), Notify(0), Clean(), "sent"]


@on_virtual_time
async def test_a_handler_that_feeds_itself_for_ever_starves_nobody(clock: VirtualClock) -> None:
    def during(effect: object) -> None:
        if isinstance(effect, Notify):
            runner.post(Renewed(0))

    runner: JobRunner = Runner(MACHINE, Recorder(during))
    runner.post(Started("w"))
    others_ran = False

    async def other() -> None:
        nonlocal others_ran
        await asyncio.sleep(0)
        others_ran = True
        await runner.aclose()

    await other()
    assert others_ran
    assert runner.steps > 1_000


# ── handlers that fail ──


def failing(effect: object) -> None:
    if isinstance(effect, (Fetch, Notify)):
        raise ValueError(f"no {type(effect).__name__}")


@on_virtual_time
async def test_a_handler_that_raises_is_reported_once_and_stops_nothing(clock: VirtualClock) -> None:
    failures: list[Failure] = []
    recorder = Recorder(failing)
    runner = Runner(MACHINE, recorder, key="k", on_error=failures.append)
    assert isinstance(await runner.send(Started("w")), Taken)
    assert runner.state.phase is Phase.BUSY
    assert recorder.seen == [Fetch("w"), Notify(0)]
    assert runner.due_ms() == {MACHINE.timers[0].timer: 5_000}
    assert [(f.machine, f.key, f.effect, str(f.error)) for f in failures] == [
        ("job", "k", Fetch("w"), "no Fetch"),
        ("job", "k", Notify(0), "no Notify"),
    ]


@on_virtual_time
async def test_a_handler_that_raises_late_is_reported_too(clock: VirtualClock) -> None:
    async def late() -> None:
        await asyncio.sleep(1)
        raise ValueError("late")

    failures: list[Failure] = []
    runner = Runner(MACHINE, Recorder(lambda e: late() if isinstance(e, Fetch) else None), on_error=failures.append)
    await runner.send(Started("w"))
    assert failures == []
    await runner.idle()
    assert [str(f.error) for f in failures] == ["late"]


@on_virtual_time
async def test_a_plain_handler_that_raises_a_cancellation_cancels_nobody(clock: VirtualClock) -> None:
    def during(effect: object) -> None:
        if isinstance(effect, Fetch):
            raise asyncio.CancelledError

    failures: list[Failure] = []
    recorder = Recorder(during)
    assert isinstance(await Runner(MACHINE, recorder, on_error=failures.append).send(Started("w")), Taken)
    assert recorder.seen == [Fetch("w"), Notify(0)]
    assert [(f.effect, type(f.error)) for f in failures] == [(Fetch("w"), asyncio.CancelledError)]


@on_virtual_time
async def test_a_handler_cancelled_by_somebody_else_is_reported(clock: VirtualClock) -> None:
    failures: list[Failure] = []
    runner = Runner(MACHINE, Recorder(lambda e: until_cancelled() if isinstance(e, Fetch) else None), on_error=failures.append)
    await runner.send(Started("w"))
    (task,) = leftovers()
    assert task.get_name() == "job : handler of Fetch(worker='w')"
    task.cancel()
    await clock.settle()
    assert [(f.effect, type(f.error)) for f in failures] == [(Fetch("w"), asyncio.CancelledError)]


def test_a_failure_is_logged_with_its_traceback_by_default(caplog: pytest.LogCaptureFixture) -> None:
    async def main() -> None:
        await Runner(MACHINE, Recorder(failing), key="k").send(Started("w"))

    with virtual_time() as clock, caplog.at_level(logging.ERROR, "turnproof.shell"):
        clock.run(main())
    assert caplog.messages == ["job k: the handler of Fetch(worker='w') failed", "job k: the handler of Notify(renewals=0) failed"]
    assert [r.exc_info is not None and str(r.exc_info[1]) for r in caplog.records] == ["no Fetch", "no Notify"]


@on_virtual_time
async def test_a_failure_becomes_an_event_where_the_machine_has_one(clock: VirtualClock) -> None:
    failures: list[Failure] = []

    def as_event(failure: Failure) -> Event | None:
        return Finished("w") if isinstance(failure.effect, Fetch) else None

    recorder = Recorder(failing)
    runner = Runner(MACHINE, recorder, on_error=failures.append, as_event=as_event)
    await runner.send(Started("w"))
    assert runner.state.phase is Phase.DONE
    assert recorder.seen == [Fetch("w"), Notify(0), Notify(0), Clean()]
    assert len(failures) == 3


@on_virtual_time
async def test_an_on_error_that_fails_is_told_to_the_loop(clock: VirtualClock) -> None:
    def on_error(failure: Failure) -> None:
        raise KeyError("on_error itself")

    told: list[dict[str, object]] = []
    clock.loop.set_exception_handler(lambda loop, context: told.append(context))
    recorder = Recorder(failing)
    await Runner(MACHINE, recorder, on_error=on_error).send(Started("w"))
    assert recorder.seen == [Fetch("w"), Notify(0)]
    assert [type(context["exception"]) for context in told] == [KeyError, KeyError]


def test_an_exit_out_of_a_handler_ends_the_run_and_the_rest_is_still_performed() -> None:
    def during(effect: object) -> None:
        if isinstance(effect, Fetch):
            raise SystemExit(3)

    recorder = Recorder(during)
    with virtual_time() as clock:

        async def main() -> None:
            await Runner(MACHINE, recorder).send(Started("w"))

        with pytest.raises(SystemExit):
            clock.run(main())
        clock.run(clock.settle())
    assert recorder.seen == [Fetch("w"), Notify(0)]


# ── cancellation of a caller ──


@pytest.mark.parametrize("turns", [0, 1, 2, 3, 4])
def test_cancelling_the_caller_loses_no_effect_and_no_timer(turns: int) -> None:
    async def main(clock: VirtualClock) -> None:
        async def slow() -> None:
            await asyncio.sleep(1)

        recorder = Recorder(lambda e: slow())
        clock.loop.set_exception_handler(lambda loop, context: escaped.append(context))
        runner = Runner(MACHINE, recorder)
        caller = asyncio.create_task(runner.send(Started("w")))
        for _ in range(turns):
            await asyncio.sleep(0)
        caller.cancel()
        await clock.settle()
        began = turns > 0
        assert caller.cancelled() == (turns < 4)
        assert recorder.seen == ([Fetch("w"), Notify(0)] if began else [])
        assert list(runner.due_ms().values()) == ([5_000] if began else [])
        await runner.idle()
        assert clock.now_ms == (1_000 if began else 0)
        assert escaped == []

    escaped: list[dict[str, object]] = []
    with virtual_time() as clock:
        clock.run(main(clock))


# ── traces ──


@on_virtual_time
async def test_the_trace_has_all_a_replay_needs(clock: VirtualClock) -> None:
    trace: list[TraceStep[Job, Event, Effect]] = []
    recorder = Recorder()
    runner = Runner(MACHINE, recorder, key="k", trace=lambda step: trace.append(step), timestamp=clock.loop.time)
    await runner.send(Started("w"))
    await clock.advance(5_000)
    await runner.send(Resumed())
    await runner.send(Started("w"))
    assert [(t.seq, t.ts, t.machine, t.key, t.said, t.row) for t in trace] == [
        (1, 0.0, "job", "k", "taken", "Started/idle"),
        (2, 5.0, "job", "k", "taken", "DeadlineExpired"),
        (3, 5.0, "job", "k", "ignored", "Resumed/otherwise"),
        (4, 5.0, "job", "k", "refused", "Started/refused"),
    ]
    state = MACHINE.initial
    for step in trace:
        answer = MACHINE.step(state, step.event)
        state = answer.state if isinstance(answer, Taken) else state
        assert (step.post, step.effects) == (state, answer.effects if isinstance(answer, Taken) else ())


@on_virtual_time
async def test_a_trace_hook_that_raises_is_reported_and_stops_nothing(clock: VirtualClock) -> None:
    def hook(step: object) -> None:
        raise OSError("disk full")

    failures: list[Failure] = []
    recorder = Recorder()
    await Runner(MACHINE, recorder, trace=hook, on_error=failures.append).send(Started("w"))
    assert recorder.seen == [Fetch("w"), Notify(0)]
    assert [(f.effect, str(f.error)) for f in failures] == [(None, "disk full")]


def handlers(seen: list[str]) -> dict[type, Callable[[object], Awaitable[None] | None]]:
    """A mapping that notes the class of each effect."""
    return dict.fromkeys((Fetch, Cancel, Notify, Clean), lambda effect: seen.append(type(effect).__name__))
