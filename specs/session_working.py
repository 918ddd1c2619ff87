"""What the user sees at work in an OpenCode session, and what is at work: S9, of a design that has no ``busy`` flag.

Under the rule of the mark a flag says whether a start was handled and no end since. The target needs none, for what it shows says it: a
turn that is installed, or a wake that runs. Two promises take the place of S9. What works is shown: from the moment a start is handled to
the moment its end is, a turn or a wake stands for it, but for a turn whose terminal the user has had meanwhile (a Stop without an answer, a
request that failed unclearly, a history that told more than the stream had), and not across a drop, which hides starts and ends. And what
is shown works: where everything on its way is handled, an execution runs for it, or a timer runs that is going to look.
"""

from __future__ import annotations

from enum import Enum
from typing import Any

import attrs

from turnproof.machines import session_start as start_words
from turnproof.machines import session_stop as stop_words
from turnproof.machines import session_stream as stream_words
from turnproof.machines import session_words as words
from turnproof.machines.kernel import NOBODY, Machine, Row, named, not_, one_of, symbol
from turnproof.machines.session import MACHINE as SESSION
from turnproof.machines.session import now as session_now
from turnproof.machines.session_stream import UP, What
from turnproof.machines.session_words import Cause, Turn
from turnproof.specs.language import Always, Property, Sometimes, Step
from turnproof.specs.session_environment import ServerPhase
from turnproof.specs.session_history import V4, design
from turnproof.specs.session_parts import (
    ASKS,
    MORE,
    N2,
    N4,
    N6,
    N7,
    N11,
    N12,
    N13,
    POWERS,
    REQUESTS,
    STOPS,
    World,
    server,
    start,
    stream,
)
from turnproof.specs.session_requests import RequestPhase
from turnproof.specs.session_requirements import requirements
from turnproof.specs.session_target import TARGET
from turnproof.specs.system import Copy, Part, Switch, System, SystemSpec, SystemVariant
from turnproof.specs.system_words import pending

# ── who knows what works ──


class Work(Enum):
    """What a user who watches the stream would say."""

    NOTHING = "nothing"
    """No start was handled since the last end, or since the stream dropped."""
    WORKS = "works"
    TOLD = "told"
    """As works, and a turn had its terminal meanwhile."""


@attrs.frozen
class Watched:
    """What was handled last."""

    phase: Work = Work.NOTHING


@attrs.frozen
class WorkBegan:
    """A start is handled."""


@attrs.frozen
class WorkEnded:
    """An end is handled, or the stream dropped."""


@attrs.frozen
class TurnEnded:
    """A turn has a terminal that no end on the stream brought."""


NOTHING, WORKS, TOLD = Work
WATCHER: Machine[Watched, Any, Any] = Machine(
    name="session_watcher",
    initial=Watched(),
    now=symbol(Watched),
    events=(WorkBegan, WorkEnded, TurnEnded),
    effects=(),
    rows=(
        Row(WorkBegan, to=WORKS),
        Row(WorkEnded, to=NOTHING),
        Row(TurnEnded, at=WORKS, to=TOLD),
        Row(TurnEnded, ignore="nothing works that was handled, or it was told before"),
    ),
)
watcher = Part("watcher", WATCHER)


def watched(world: World, name: str) -> System:
    """The system of this world under this name, with the watcher in the place of the other monitors."""
    session, arrived, report = world.session, symbol(stream_words.Arrived), symbol(words.ReportTurn)
    ends = one_of(arrived.what, What.SUCCEEDED, What.INTERRUPTED, What.FAILED)
    unheard = one_of(report.cause, Cause.STOP, Cause.HISTORY) | ((report.cause == Cause.REQUEST) & (report.prompt != NOBODY))
    copies = (
        Copy(stream, arrived, watcher, WorkBegan(), where=arrived.what == What.STARTED),
        Copy(stream, arrived, watcher, WorkEnded(), where=ends),
        Copy(stream, stream_words.LoseBuffer, watcher, WorkEnded()),
        Copy(session, report, watcher, TurnEnded(), where=unheard),
    )
    return attrs.evolve(world.system(name), monitors=(watcher,), copies=copies)


# ── what must hold ──

SHOWN = "S9: what works is shown, from its start to its end as they are handled, but for a turn that was told over"
WORKING = "S9: what is shown works: once all is handled an execution runs for it, or a timer looks for it"
CALM = "S9: when everything is quiet nothing is shown at work"
IDLE_HARM = "the user believes that nothing works, and the session works"
BUSY_HARM = "the user sees a session at work in which nothing works"


def properties(world: World) -> tuple[Property, ...]:
    """S9 of this world, and what some run must show."""
    now = world.session.now
    shows = named("a turn or a wake is shown at work", (now.phase != Turn.NONE) | now.running)
    settled = (pending("buffer") == 0) & (stream.now.phase == UP) & (start.now.phase == start_words.IDLE)
    for _, request in REQUESTS:
        settled = settled & one_of(request.now.phase, RequestPhase.UNSENT, RequestPhase.LATE, RequestPhase.DONE)
    looks = one_of(server.now.phase, ServerPhase.QUEUED, ServerPhase.RUNNING, ServerPhase.STOPPING)
    for rule in world.session.machine.timers:
        looks = looks | world.session.running(rule.timer)
    for stop in world.stopping:
        looks = looks | stop.running(stop_words.Timer.REPLY)
    dead = stream.next.phase == stream_words.DEAD
    return (
        Always(SHOWN, (watcher.now.phase != WORKS) | shows, requirements="R-SES-9", harm=IDLE_HARM),
        Always(WORKING, not_(settled & shows) | looks, requirements="R-SES-9", harm=BUSY_HARM),
        Always(CALM, not_(world.quiet() & shows), requirements=("R-SES-9", "R-SES-10", "R-SES-11"), harm=BUSY_HARM),
        Step("S9: nothing is shown at work once the stream is dead", requirements="R-SES-9", harm=BUSY_HARM, holds=
             not_(dead & (stream.now.phase != stream_words.DEAD))
             | ((world.session.next.phase == Turn.NONE) & not_(world.session.next.running))),
    )  # fmt: skip


def reached(world: World) -> tuple[Property, ...]:
    """What some run must show, or nothing was tried."""
    now = world.session.now
    return (
        Sometimes("a wake is shown at work", now.running & (watcher.now.phase == WORKS), requirements="R-SES-9"),
        Sometimes("what was told over still works", (now.phase == Turn.NONE) & (watcher.now.phase == TOLD), requirements="R-SES-9"),
        Sometimes("a turn waits while another's execution works", requirements="R-SES-9", holds=
            (now.phase == Turn.USER) & (watcher.now.phase == NOTHING) & (server.now.phase == ServerPhase.RUNNING)),
    )  # fmt: skip


# ── the worlds ──

BOUNDS = (ASKS, N4, N13, N11, N2, STOPS)
WORLD = World(TARGET, BOUNDS, stops=0, drops=1)
STOPPED = World(TARGET, [s for s in BOUNDS if s not in (STOPS, N11)], stops=1, drops=1)
"""With a Stop and a restart: a soak test explores it."""


def _without(machine: Any, *powers: Switch) -> World:
    return World(attrs.evolve(TARGET, session=machine), [s for s in (*POWERS, *MORE) if s not in powers], stops=0, drops=1)


UNHELD = SESSION.variant("session_working_unheld", first=(Row(words.ExecutionStarted, at=Turn.NONE, stay=True, name="holds nothing"),))
STALE = SESSION.variant(
    "session_working_stale",
    first=(Row(words.HistoryRead, at=Turn.NONE, when=session_now.running, stay=True, name="believes its wake"),),
)
MARKED = World(design(V4), [s for s in (*POWERS, *MORE) if s not in (N6, N12)], stops=0, drops=1)


def variants() -> tuple[SystemVariant, ...]:
    """The rule of the mark, and two mistakes."""
    unheld, stale = _without(UNHELD, N7), _without(STALE, N6, N7)
    return (
        SystemVariant(
            system=watched(MARKED, "session_working_v4"),
            properties=properties(MARKED),
            violates={WORKING: 10, CALM: 11},
            about="V4: a reconnect finds a session active that only settles, and the turn is shown at work for ever.",
        ),
        SystemVariant(
            system=watched(unheld, "session_working_unheld"),
            properties=properties(unheld),
            violates={SHOWN: 3},
            about="The target that holds no wake: a background reply runs, and nothing says so.",
        ),
        SystemVariant(
            system=watched(stale, "session_working_stale"),
            properties=properties(stale),
            violates={WORKING: 9, CALM: 10},
            about="The target that asks no history about a wake: its end was lost with the stream, and it is shown at work for ever.",
        ),
    )


SPEC = SystemSpec(
    system=watched(WORLD, "session_working"),
    requirements=requirements(9, 10, 11),
    properties=(*properties(WORLD), *reached(WORLD)),
    variants=variants(),
    tokens=3,
    counter=3,
)
