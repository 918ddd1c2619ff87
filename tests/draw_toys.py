"""A small machine with everything a drawing can show.

A phase set by a formula, a timer that is paused and renewed, a release, a dead row, a phase that is never reached.
"""

from __future__ import annotations

from enum import Enum
from typing import Annotated, get_args

from attrs import evolve, frozen

from turnproof.machines.kernel import (
    Duration,
    Machine,
    PauseTimer,
    Range,
    ResumeTimer,
    Row,
    StartTimer,
    StopTimer,
    TimerRule,
    named,
    not_,
    one_of,
    only_if,
    symbol,
)
from turnproof.specs.language import Sometimes, Spec


class Phase(Enum):
    IDLE = "idle"
    """Nothing asked for."""
    WAITING = "waiting"
    FETCHING = "fetching"
    CHECKING = "checking"
    DONE = "done"
    LOST = "lost"
    """Reached by no row."""


class Timer(Enum):
    PATIENCE = "patience"
    """Nothing arrived."""


@frozen
class Download:
    """One file."""

    phase: Phase = Phase.IDLE
    chunks: Annotated[int, Range(0, 2)] = 0
    """Chunks that arrived."""
    held: bool = False
    released: bool = False


@frozen
class Asked: ...


@frozen
class Moved:
    """It moved | on to another phase."""

    phase: Phase


@frozen
class Arrived:
    chunk: bool


@frozen
class Held: ...


@frozen
class Cancelled: ...


@frozen
class Closed: ...


@frozen
class PatienceEnded: ...


Event = Asked | Moved | Arrived | Held | Cancelled | Closed | PatienceEnded


@frozen
class Fetch: ...


@frozen
class Report:
    chunks: Annotated[int, Range(0, 2)]


Effect = Fetch | Report | StartTimer | StopTimer | PauseTimer | ResumeTimer

IDLE, WAITING, FETCHING, CHECKING, DONE, LOST = Phase
BUSY = (WAITING, FETCHING, CHECKING)
now, moved, arrived = symbol(Download), symbol(Moved), symbol(Arrived)
busy = named("busy", one_of(now.phase, *BUSY))
full = named("full", now.chunks >= 2)
runs = busy & not_(now.held)

ROWS: tuple[Row[Download, Effect], ...] = (
    # ── asking ──
    # The first one wins.
    Row(Asked, at=IDLE, to=WAITING, emit=(Fetch(), StartTimer(Timer.PATIENCE)), because="Asked | once."),
    Row(Asked, refuse="asked before | already"),
    # ── moving ──
    Row(moved, when=not_(one_of(moved.phase, *BUSY)), refuse="only work is moved to"),
    Row(moved, at=BUSY, data=evolve(now, phase=moved.phase)),
    Row(Moved, ignore="nothing moves"),
    Row(arrived, when=not_(busy), ignore="too late", name="Arrived/late"),
    Row(arrived, when=full & arrived.chunk, to=DONE, data=evolve(now, held=False),
        emit=(only_if(runs, StopTimer(Timer.PATIENCE)), Report(now.chunks))),
    Row(arrived, when=arrived.chunk & not_(now.held), data=evolve(now, chunks=now.chunks + 1),
        emit=(StopTimer(Timer.PATIENCE), StartTimer(Timer.PATIENCE)), name="Arrived/chunk"),
    Row(arrived, stay=True),
    Row(Held, when=busy & now.held, data=evolve(now, held=False), emit=(ResumeTimer(Timer.PATIENCE),), name="Held/again"),
    Row(Held, when=busy, data=evolve(now, held=True), emit=(PauseTimer(Timer.PATIENCE),)),
    Row(Held, refuse="nothing to hold"),
    Row(Cancelled, at=BUSY, to=DONE, data=evolve(now, held=False, released=True), emit=(StopTimer(Timer.PATIENCE),)),
    Row(Cancelled, at=LOST, to=IDLE, name="Cancelled/dead"),
    Row(Cancelled, refuse="nothing to cancel"),
    Row(Closed, at=DONE, when=not_(now.released), data=evolve(now, released=True)),
    Row(Closed, ignore="closed"),
    Row(PatienceEnded, when=runs, to=DONE, data=evolve(now, released=True), name="PatienceEnded/runs"),
    Row(PatienceEnded, ignore="ended in time"),
)  # fmt: skip

MACHINE: Machine[Download, Event, Effect] = Machine(
    name="download",
    initial=Download(),
    now=now,
    events=get_args(Event),
    effects=get_args(Effect),
    rows=ROWS,
    timers=(TimerRule(Timer.PATIENCE, runs, PatienceEnded, Duration(1_500, "guessed"), paused=busy & now.held),),
    released=now.released,
)
SPEC = Spec(
    machine=MACHINE, requirements={"R-1": "a download ends"}, properties=(Sometimes("it ends", now.phase == DONE, requirements="R-1"),)
)
