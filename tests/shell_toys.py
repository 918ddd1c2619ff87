"""A small machine with everything a shell must cope with: a token, an opaque value, several effects a step, a timer that is paused."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from enum import Enum
from typing import Annotated, Any, get_args

from attrs import evolve, frozen

from turnproof.machines.kernel import (
    NOBODY,
    Counter,
    Duration,
    Machine,
    Opaque,
    PauseTimer,
    ResumeTimer,
    Row,
    StartTimer,
    StopTimer,
    TimerRule,
    Token,
    implies,
    not_,
    only_if,
    symbol,
)
from turnproof.shell import Performed, Runner, VirtualClock, virtual_time
from turnproof.specs.language import Always, Sometimes, Spec, Step, at_most, count, emits, on, taken


class Phase(Enum):
    IDLE = "idle"
    BUSY = "busy"
    DONE = "done"


class Timer(Enum):
    DEADLINE = "deadline"
    """The job is busy, and not finished."""
    LINGER = "linger"
    """The job is done, and not collected."""


@frozen
class Job:
    phase: Phase = Phase.IDLE
    worker: Annotated[str, Token] = NOBODY
    paused: bool = False
    lingers: bool = False
    collected: bool = False
    renewals: Annotated[int, Counter] = 0
    until_ms: Annotated[int, Opaque] = 0


@frozen
class Started:
    worker: Annotated[str, Token]


@frozen
class Renewed:
    until_ms: Annotated[int, Opaque]


@frozen
class Paused: ...


@frozen
class Resumed: ...


@frozen
class Finished:
    worker: Annotated[str, Token]


@frozen
class Collected: ...


@frozen
class DeadlineExpired: ...


@frozen
class LingerExpired: ...


Event = Started | Renewed | Paused | Resumed | Finished | Collected | DeadlineExpired | LingerExpired


@frozen
class Fetch:
    worker: Annotated[str, Token]


@frozen
class Cancel:
    worker: Annotated[str, Token]


@frozen
class Notify:
    renewals: Annotated[int, Counter]


@frozen
class Clean: ...


Effect = Fetch | Cancel | Notify | Clean | StartTimer | StopTimer | PauseTimer | ResumeTimer

IDLE, BUSY, DONE = Phase
DEADLINE_MS = Duration(5_000, "made up")
LINGER_MS = Duration(2_000, "made up")

now = symbol(Job)
started, renewed, finished = symbol(Started), symbol(Renewed), symbol(Finished)
running = (now.phase == BUSY) & not_(now.paused)
stop_deadline = StopTimer(Timer.DEADLINE)
done = evolve(now, worker=NOBODY, paused=False, lingers=True)

ROWS: tuple[Row[Job, Effect], ...] = (
    Row(started, at=IDLE, when=started.worker != NOBODY, to=BUSY, data=evolve(now, worker=started.worker),
        emit=(Fetch(started.worker), StartTimer(Timer.DEADLINE), Notify(0))),
    Row(Started, refuse="a job is started once, by somebody", name="Started/refused"),
    Row(renewed, when=running, data=evolve(now, renewals=now.renewals + 1, until_ms=renewed.until_ms),
        emit=(stop_deadline, StartTimer(Timer.DEADLINE, renewed.until_ms), Notify(now.renewals + 1))),
    Row(Renewed, ignore="nothing runs"),
    Row(Paused, when=running, data=evolve(now, paused=True), emit=(PauseTimer(Timer.DEADLINE), Notify(now.renewals))),
    Row(Paused, ignore="nothing runs"),
    Row(Resumed, when=now.paused, data=evolve(now, paused=False), emit=(ResumeTimer(Timer.DEADLINE),)),
    Row(Resumed, ignore="nothing is paused"),
    Row(finished, at=BUSY, when=finished.worker == now.worker, to=DONE, data=done,
        emit=(Notify(now.renewals), stop_deadline, Clean(), StartTimer(Timer.LINGER)), name="Finished/own"),
    Row(Finished, ignore="somebody else's"),
    Row(DeadlineExpired, when=running, to=DONE, data=done, emit=(Cancel(now.worker), StartTimer(Timer.LINGER), Clean())),
    Row(DeadlineExpired, ignore="it was finished in time"),
    Row(Collected, at=DONE, data=evolve(now, lingers=False, collected=True), when=not_(now.collected),
        emit=(only_if(now.lingers, StopTimer(Timer.LINGER)), Notify(now.renewals))),
    Row(Collected, refuse="there is nothing to collect"),
    Row(LingerExpired, when=now.lingers, data=evolve(now, lingers=False, collected=True), emit=(Clean(),)),
    Row(LingerExpired, ignore="it was collected"),
)  # fmt: skip

MACHINE: Machine[Job, Event, Effect] = Machine(
    name="job",
    initial=Job(),
    now=now,
    events=get_args(Event),
    effects=get_args(Effect),
    rows=ROWS,
    timers=(
        TimerRule(Timer.DEADLINE, running, DeadlineExpired, DEADLINE_MS, paused=(now.phase == BUSY) & now.paused),
        TimerRule(Timer.LINGER, now.lingers, LingerExpired, LINGER_MS),
    ),
    released=now.collected,
)

ONCE, ONCE_HISTORY = at_most(1, count(Fetch), "a job is fetched at most once", variable="fetched", requirements="J-1")

SPEC = Spec(
    machine=MACHINE,
    requirements={"J-1": "A job is fetched once.", "J-2": "A worker is busy.", "J-3": "A cancel names the worker."},
    properties=(
        ONCE,
        Always("whoever works is busy", implies(now.worker != NOBODY, now.phase == BUSY), requirements="J-2"),
        Step("only the deadline cancels", implies(emits(Cancel), on(DeadlineExpired) & taken()), requirements="J-3"),
        Sometimes("a job is collected", now.collected, requirements="J-1"),
    ),
    histories=(ONCE_HISTORY,),
)

FORGETFUL = MACHINE.variant("job_forgetful", replace={"Finished/own": Row(Finished, at=BUSY, to=DONE, emit=(stop_deadline,), name="bad")})
"""Breaks "whoever works is busy": a finished job keeps its worker."""

UNTIMED = MACHINE.variant(
    "job_untimed",
    replace={"Finished/own": Row(Finished, at=BUSY, to=DONE, data=done, emit=(stop_deadline,), name="bad")},
)
"""Breaks the discipline of its timers: the state says that it lingers, but no timer was started."""


class Recorder:
    """Notes every effect it is asked to perform. ``during`` may act in the middle, or return something to await."""

    def __init__(self, during: Callable[[Any], Performed] | None = None) -> None:
        self.seen: list[object] = []
        self.during = during

    def _perform(self, effect: object) -> Performed:
        self.seen.append(effect)
        return None if self.during is None else self.during(effect)

    fetch = cancel = notify = clean = _perform


JobRunner = Runner[Job, Event, Effect]
Main = Callable[[VirtualClock], Coroutine[object, object, None]]


def on_virtual_time(test: Main) -> Callable[[], None]:
    """Run a coroutine function as a test, on a clock that starts at 0."""

    def run() -> None:
        escaped: list[dict[str, object]] = []
        with virtual_time() as clock:
            clock.loop.set_exception_handler(lambda loop, context: escaped.append(context))
            clock.run(test(clock))
        assert escaped == []

    run.__name__, run.__doc__ = test.__name__, test.__doc__
    return run


def leftovers() -> set[asyncio.Task[object]]:
    """Every task but the test's own."""
    return {task for task in asyncio.all_tasks() if task is not asyncio.current_task()}


async def until_cancelled() -> None:
    await asyncio.get_running_loop().create_future()
