"""Handlers: a forgotten one is named, by the runner and by the type checker; timers are the runner's own."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import Awaitable, Callable
from enum import Enum
from pathlib import Path
from typing import Any

import pytest
from shell_toys import (
    MACHINE,
    Cancel,
    Clean,
    Collected,
    DeadlineExpired,
    Effect,
    Event,
    Fetch,
    Finished,
    Job,
    Notify,
    Paused,
    Phase,
    Recorder,
    Renewed,
    Resumed,
    Started,
    Timer,
)

from turnproof.machines.kernel import Ignored, PauseTimer, ResumeTimer, StartTimer, StopTimer, Taken
from turnproof.machines.reply_operation import MACHINE as REPLY
from turnproof.machines.reply_operation_words import AbortReason, AbortRequested, BackendAttached, PhaseEntered, Result
from turnproof.machines.reply_operation_words import Phase as ReplyPhase
from turnproof.machines.reply_operation_words import Timer as ReplyTimer
from turnproof.shell import HandlersError, Runner, TraceStep, VirtualClock, virtual_time
from turnproof.shell.handlers import check_handlers, method_name, method_names
from turnproof.shell.reply_operation import ReplyHandlers, reply_runner
from turnproof.shell.timers import Timers

pytest_plugins = ["turnproof.shell.fixtures"]

ROOT = Path(__file__).resolve().parents[1]
MAPPING: dict[type, Callable[[object], None]] = dict.fromkeys((Fetch, Cancel, Notify, Clean), lambda effect: None)


class Lacking:
    """Has a near miss, a value that is no function, and lacks the rest."""

    clean = 3

    def fetched(self, effect: Fetch) -> None: ...

    def cancel(self, effect: Cancel) -> None: ...


def test_a_complete_object_and_a_complete_mapping_pass() -> None:
    check_handlers(MACHINE, Recorder())
    check_handlers(MACHINE, MAPPING)


def test_an_object_that_lacks_methods_is_told_each_of_them() -> None:
    with pytest.raises(HandlersError) as error:
        check_handlers(MACHINE, Lacking())
    assert str(error.value) == (
        "job: no handler for Fetch: Lacking needs the method fetch(self, effect: Fetch) (it has fetched); "
        "no handler for Notify: Lacking needs the method notify(self, effect: Notify); "
        "the handler for Clean, Lacking.clean, is 3 and cannot be called"
    )


@pytest.mark.parametrize(
    ("mapping", "message"),
    [
        ({k: v for k, v in MAPPING.items() if k is not Cancel}, "job: no handler for Cancel: add it to the mapping"),
        ({**MAPPING, Cancel: None}, "job: the handler for Cancel is None and cannot be called"),
        ({**MAPPING, StartTimer: print}, "job: StartTimer is performed by the runner itself: take it out of the mapping"),
        ({**MAPPING, Collected: print}, "job: Collected is no effect of it"),
        ({Fetch: print, Cancel: print, Notify: print, Clean: print, "Cance": print}, "job: Cance is no effect of it; did you mean Cancel?"),
    ],
)
def test_a_wrong_mapping_is_told_what(mapping: dict[object, object], message: str) -> None:
    with pytest.raises(HandlersError) as error:
        check_handlers(MACHINE, mapping)
    assert str(error.value) == message


def test_building_a_runner_checks_its_handlers(virtual_clock: VirtualClock) -> None:
    async def build() -> None:
        Runner(MACHINE, {})

    with pytest.raises(HandlersError, match="job: no handler for Fetch"):
        virtual_clock.run(build())


@pytest.mark.parametrize(("cls", "name"), [("CancelBackend", "cancel_backend"), ("Release", "release"), ("HTTP2Reset", "http2_reset")])
def test_methods_are_named_after_effects(cls: str, name: str) -> None:
    assert method_name(type(cls, (), {})) == name


def test_the_protocol_of_the_reply_operation_has_exactly_its_effects() -> None:
    named = {name for name in vars(ReplyHandlers) if not name.startswith("_")}
    assert named == set(method_names(REPLY).values())
    effects = {name: effect.__name__ for effect, name in method_names(REPLY).items()}
    assert {name: getattr(ReplyHandlers, name).__annotations__["effect"] for name in named} == effects


CONSUMER = """
from turnproof.machines.reply_operation_words import {names}
from turnproof.shell.reply_operation import reply_runner


class Mine:
{methods}


async def main() -> None:
    reply_runner(Mine())
"""


def test_the_type_checker_names_the_handler_that_was_forgotten(tmp_path: Path) -> None:
    wanted = dict(method_names(REPLY).items())
    for name, left_out in (("complete", None), ("lacking", "cancel_backend")):
        kept = {effect: method for effect, method in wanted.items() if method != left_out}
        methods = "\n".join(
            f"    {'async ' if n % 2 else ''}def {m}(self, effect: {e.__name__}) -> None: ..." for n, (e, m) in enumerate(kept.items())
        )
        (tmp_path / f"{name}.py").write_text(CONSUMER.format(names=", ".join(e.__name__ for e in kept), methods=methods))
    files = [str(tmp_path / "complete.py"), str(tmp_path / "lacking.py")]
    done = subprocess.run(
        [sys.executable, "-m", "mypy", "--strict", "--cache-dir", str(tmp_path / "cache"), *files],
        cwd=ROOT, capture_output=True, text=True, check=False,
    )  # fmt: skip
    lines = [line.removeprefix(f"{tmp_path}/") for line in done.stdout.splitlines()]
    assert any(line.startswith("lacking.py") and 'incompatible type "Mine"; expected "ReplyHandlers"' in line for line in lines), (
        done.stdout
    )
    assert any("cancel_backend" in line for line in lines), done.stdout
    assert not any(line.startswith("complete.py") for line in lines), done.stdout


# ── timers ──

JobRunner = Runner[Job, Event, Effect]
Script = Callable[[JobRunner, VirtualClock], Awaitable[None]]


def phase(runner: JobRunner) -> Phase:
    """Asked anew each time: to a type checker an attribute keeps the value it was compared with."""
    return runner.state.phase


def run(script: Script, **options: Any) -> Recorder:
    """Run ``script`` with a runner of a job, on a clock that starts at 0."""
    recorder = Recorder()

    async def main(clock: VirtualClock) -> None:
        async with Runner(MACHINE, recorder, **options) as runner:
            await script(runner, clock)
        assert clock.scheduled_ms() == []

    with virtual_time() as clock:
        clock.run(main(clock))
    return recorder


def test_a_timer_fires_after_its_duration_and_not_before() -> None:
    async def script(runner: JobRunner, clock: VirtualClock) -> None:
        await runner.send(Started("w"))
        await clock.advance(4_999)
        assert phase(runner) is Phase.BUSY
        await clock.advance(1)
        assert phase(runner) is Phase.DONE
        assert runner.due_ms() == {Timer.LINGER: 7_000}

    assert run(script).seen == [Fetch("w"), Notify(0), Cancel("w"), Clean()]


@pytest.mark.parametrize(("until_ms", "due_ms"), [(0, 6_000), (5_999, 6_000), (6_001, 6_001), (60_000, 60_000), (-5, 6_000)])
def test_a_timer_fires_not_before_the_deadline_it_was_given(until_ms: int, due_ms: int) -> None:
    async def script(runner: JobRunner, clock: VirtualClock) -> None:
        await runner.send(Started("w"))
        await clock.advance(1_000)
        await runner.send(Renewed(until_ms))
        assert runner.due_ms() == {Timer.DEADLINE: due_ms}
        assert clock.scheduled_ms() == [due_ms]
        await clock.advance(due_ms - 1_000 - 1)
        assert phase(runner) is Phase.BUSY
        await clock.advance(1)
        assert phase(runner) is Phase.DONE

    run(script)


def test_a_paused_timer_keeps_what_it_has_left() -> None:
    async def script(runner: JobRunner, clock: VirtualClock) -> None:
        await runner.send(Started("w"))
        await clock.advance(4_000)
        await runner.send(Paused())
        assert (runner.due_ms(), runner.held_ms()) == ({}, {Timer.DEADLINE: 1_000})
        await clock.advance(3_600_000)
        await runner.send(Resumed())
        assert (runner.due_ms(), runner.held_ms()) == ({Timer.DEADLINE: 3_605_000}, {})
        await clock.advance(999)
        assert phase(runner) is Phase.BUSY
        await clock.advance(1)
        assert phase(runner) is Phase.DONE

    run(script)


def test_a_timer_stopped_while_paused_is_forgotten() -> None:
    async def script(runner: JobRunner, clock: VirtualClock) -> None:
        await runner.send(Started("w"))
        await runner.send(Paused())
        await runner.send(Finished("w"))
        assert (runner.due_ms(), runner.held_ms()) == ({Timer.LINGER: 2_000}, {})

    run(script)


def test_durations_can_be_overridden_one_by_one() -> None:
    async def script(runner: JobRunner, clock: VirtualClock) -> None:
        await runner.send(Started("w"))
        await clock.advance(10)
        assert runner.due_ms() == {Timer.LINGER: 2_010}

    run(script, durations_ms={Timer.DEADLINE: 10})


class OtherTimer(Enum):
    DEADLINE = "deadline"


@pytest.mark.parametrize(
    ("durations_ms", "message"),
    [
        ({OtherTimer.DEADLINE: 5}, "durations_ms: OtherTimer.DEADLINE is no timer of job; it has DEADLINE, LINGER"),
        ({Timer.LINGER: 0}, "durations_ms: LINGER is 0 ms, expected more than 0"),
    ],
)
def test_a_wrong_duration_is_refused(durations_ms: dict[Enum, int], message: str) -> None:
    async def script(runner: JobRunner, clock: VirtualClock) -> None: ...

    with pytest.raises(ValueError, match=message):
        run(script, durations_ms=durations_ms)


@pytest.mark.parametrize("again", [False, True])
def test_a_cancelled_timer_that_fires_anyway_is_ignored_by_the_machine(again: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    trace: list[TraceStep[Job, Event, Effect]] = []

    async def main(clock: VirtualClock) -> None:
        runner = Runner(MACHINE, Recorder(), trace=lambda step: trace.append(step))
        # The race of a cancellation that comes too late, which asyncio on one thread never has.
        monkeypatch.setattr(asyncio.TimerHandle, "cancel", lambda handle: None)
        await runner.send(Started("w"))
        await clock.advance(4_000)
        await runner.send(Renewed(0) if again else Finished("w"))
        await clock.advance(1_000)
        if again:
            # The old expiry must not pass for that of the timer that was started again.
            assert phase(runner) is Phase.BUSY
            assert runner.due_ms() == {Timer.DEADLINE: 9_000}
            await clock.advance(4_000)
            assert isinstance(trace[-1].answer, Taken)
        else:
            assert isinstance(trace[-1].answer, Ignored)
        assert trace[-1].event == DeadlineExpired()
        assert phase(runner) is Phase.DONE

    with virtual_time() as clock:
        clock.run(main(clock))


def test_a_cancelled_timer_that_fires_after_closing_reaches_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    escaped: list[dict[str, object]] = []

    async def main(clock: VirtualClock) -> None:
        runner = Runner(MACHINE, Recorder())
        monkeypatch.setattr(asyncio.TimerHandle, "cancel", lambda handle: None)
        clock.loop.set_exception_handler(lambda loop, context: escaped.append(context))
        await runner.send(Started("w"))
        await runner.aclose()
        await clock.advance(5_000)
        assert runner.steps == 1

    with virtual_time() as clock:
        clock.run(main(clock))
    assert escaped == []


def test_timers_that_do_not_run_are_neither_paused_nor_resumed(virtual_clock: VirtualClock) -> None:
    timers = Timers(virtual_clock.loop, {Timer.DEADLINE: 5_000}, lambda timer: None)
    timers.perform(PauseTimer(Timer.DEADLINE))
    timers.perform(ResumeTimer(Timer.DEADLINE))
    timers.perform(StopTimer(Timer.DEADLINE))
    assert (timers.due_ms(), timers.held_ms()) == ({}, {})
    timers.perform(StartTimer(Timer.DEADLINE))
    virtual_clock.run(virtual_clock.advance(1_000))
    timers.perform(PauseTimer(Timer.DEADLINE))
    timers.perform(PauseTimer(Timer.DEADLINE))
    assert (timers.due_ms(), timers.held_ms()) == ({}, {Timer.DEADLINE: 4_000})
    timers.perform(ResumeTimer(Timer.DEADLINE))
    timers.perform(ResumeTimer(Timer.DEADLINE))
    assert (timers.due_ms(), timers.held_ms()) == ({Timer.DEADLINE: 5_000}, {})
    timers.perform(PauseTimer(Timer.DEADLINE))
    timers.perform(StartTimer(Timer.DEADLINE))
    assert (timers.due_ms(), timers.held_ms()) == ({Timer.DEADLINE: 6_000}, {})
    timers.clear()


def test_on_the_real_clock_a_reply_is_held_and_then_released() -> None:
    """The same code on asyncio's own loop, a minute scaled to 40 ms."""

    async def main() -> None:
        released = asyncio.Event()

        class Handlers(Silent):
            def release(self, effect: object) -> None:
                released.set()

        async with reply_runner(Handlers(), durations_ms={ReplyTimer.SETTLE: 40}) as reply:
            for event in (PhaseEntered(ReplyPhase.RUNNING), BackendAttached("b"), AbortRequested(AbortReason.USER)):
                await reply.send(event)
            started = asyncio.get_running_loop().time()
            assert not released.is_set()
            await asyncio.wait_for(released.wait(), 5)
            assert asyncio.get_running_loop().time() - started >= 0.039
            assert reply.state.result is Result.ABORTED_BY_USER

    asyncio.run(main())


class Silent:
    """Performs every effect of a reply by doing nothing."""

    def nothing(self, effect: object) -> None: ...

    detach_upstream = abort_signal = cancel_backend = release = stamp_activity = nothing
    deliver_steer = rotate_session = move_to_key = settle_owner = nothing
