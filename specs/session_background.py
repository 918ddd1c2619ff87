"""The user stops the background work of an OpenCode session: a child that ends for it reports all the same, and its reply is not wanted.

A user's Stop interrupts every background child, drops the wakes that are held, and remembers the children. The report of a stopped child
still starts an execution by itself; where it reports of stopped children alone no wake is held for it, and the session is interrupted.
Under the rule of the mark that execution is marked besides, as one whose end is to end no turn. The target marks nothing: no end is eaten.

A world of its own: one child, which ends at any time, before or after the Stop. What was reported is known from the stream, and forgotten
with it: after a drop the reply of a stopped child may be shown, as any other. A start takes every report that is known, as upstream does,
though it may be another's; where starts are handled late the report's own start then finds none, and the reply is shown (a soak test has
the run). The Stop of the turn itself is ``session_stop``, and the 10 s that the interrupt of a child is waited for are not told here.

Source: pingdotgg/t3code ``OpenCode2AdapterV2.ts`` @3e33a21.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from enum import Enum
from typing import Any

import attrs

from turnproof.machines import session_mark as mark
from turnproof.machines import session_words as words
from turnproof.machines.kernel import NOBODY, Machine, Row, choose, implies, not_, only_if, symbol
from turnproof.machines.session import MACHINE as SESSION
from turnproof.machines.session import now as session_now
from turnproof.machines.session import wakes as session_wakes
from turnproof.machines.session_stop import SendInterrupt
from turnproof.machines.session_stream import LOST, LoseBuffer
from turnproof.machines.session_words import AbsorbWake, DropWakes, HoldWake, Mark, TakeWake, Turn
from turnproof.specs import session_environment as env
from turnproof.specs import session_requests as req
from turnproof.specs.language import Property, Sometimes, Step
from turnproof.specs.session_environment import C, Place
from turnproof.specs.session_history import design
from turnproof.specs.session_parts import (
    ASKS,
    DEATH,
    MORE,
    N2,
    N4,
    N6,
    N7,
    N8,
    N10,
    N11,
    N13,
    POWERS,
    STOPS,
    Design,
    World,
    late,
    server,
    stream,
    truth,
)
from turnproof.specs.session_properties import FAILED_ASKED, SKIPPED_USER, USER_RESTS, WAKES_KEPT, rest, safety
from turnproof.specs.session_requirements import requirements
from turnproof.specs.session_target import TARGET
from turnproof.specs.system import Empties, Part, Spontaneous, Switch, SystemSpec, SystemVariant, Wire

ENDS_IT = Switch("background", "the user stops the background work, once")

# ── what the session is told ──


@attrs.frozen
class WakeSilenced:
    """The wake that was just held reports of stopped children alone: it is nobody's."""


@attrs.frozen
class WakesStopped:
    """The user stopped the background work: every held wake is dropped."""


settled: Any = choose(mark.now.busy, Mark.STARTED, Mark.UNSTARTED)
MARKED = attrs.evolve(
    mark.MACHINE,
    name="session_mark_background",
    events=(*mark.MACHINE.events, WakeSilenced, WakesStopped),
    rows=(
        *mark.MACHINE.rows,
        Row(WakeSilenced, when=mark.now.running, data=attrs.evolve(mark.now, running=False, asked=False, mark=settled),
            emit=(AbsorbWake(),)),
        Row(WakeSilenced, ignore="no wake runs"),
        Row(WakesStopped, emit=(only_if(mark.wakes, DropWakes()),),
            data=attrs.evolve(mark.now, ended=0, running=False, asked=False, mark=choose(mark.now.running, settled, mark.now.mark))),
    ),
)  # fmt: skip
UNMARKED = attrs.evolve(
    SESSION,
    name="session_background_target",
    events=(*SESSION.events, WakeSilenced, WakesStopped),
    rows=(
        *SESSION.rows,
        Row(WakeSilenced, when=session_now.running, data=attrs.evolve(session_now, running=False, item=NOBODY), emit=(AbsorbWake(),)),
        Row(WakeSilenced, ignore="no wake runs"),
        Row(WakesStopped, emit=(only_if(session_wakes, DropWakes()),),
            data=attrs.evolve(session_now, ended=0, running=False, item=choose(session_now.running, NOBODY, session_now.item))),
    ),
)  # fmt: skip

# ── the background work ──


class Child(Enum):
    """Whether the user stopped the background work."""

    WANTED = "wanted"
    STOPPED = "stopped"


@attrs.frozen
class Background:
    """The child, and the report of it that the adapter knows of."""

    phase: Child = Child.WANTED
    reported: bool = False
    """Its report is queued, and no start was handled since."""
    blind: bool = False
    """The stream dropped once: what was reported before is not known."""


@attrs.frozen
class ChildEnded:
    """The child ends, by itself or because it was stopped: its report is put into the inbox. ``heard``: somebody is subscribed."""

    heard: bool


@attrs.frozen
class BackgroundStopped:
    """The user stops the background work. ``running``: a wake is held that runs."""

    running: bool


@attrs.frozen
class ReportsForgotten:
    """The stream dropped, and with it what it said of reports."""


@attrs.frozen
class WakeBegan:
    """A wake is held."""


@attrs.frozen
class ReportDelivered:
    """The report was delivered."""


@attrs.frozen
class Report:
    """Put the report into the inbox."""


now, child, stopping = symbol(Background), symbol(ChildEnded), symbol(BackgroundStopped)
WANTED, STOPPED = Child
BACKGROUND: Machine[Background, Any, Any] = Machine(
    name="session_background_work",
    initial=Background(),
    now=now,
    events=(ChildEnded, BackgroundStopped, ReportsForgotten, WakeBegan, ReportDelivered),
    effects=(Report, WakeSilenced, WakesStopped, SendInterrupt),
    rows=(
        Row(child, data=attrs.evolve(now, reported=child.heard), emit=(Report(),)),
        Row(ReportsForgotten, data=attrs.evolve(now, reported=False, blind=True)),
        Row(stopping, to=STOPPED, emit=(WakesStopped(), only_if(stopping.running, SendInterrupt()))),
        Row(WakeBegan, at=STOPPED, when=now.reported, data=attrs.evolve(now, reported=False), emit=(WakeSilenced(), SendInterrupt())),
        Row(WakeBegan, data=attrs.evolve(now, reported=False)),
        Row(ReportDelivered, data=attrs.evolve(now, reported=False)),
    ),
)
background = Part("background", BACKGROUND)


class Stopped(World):
    """A world whose child may be stopped by the user."""

    more = (ENDS_IT,)

    def __init__(self, around: Design, without: Collection[Switch] = ()) -> None:
        super().__init__(around, without, stops=1, drops=1)
        self.parts = (*self.parts, background)

    def wires(self) -> Iterator[Wire | Empties]:
        """And those of the background work."""
        yield from super().wires()
        delivered = symbol(words.ItemDelivered)
        yield Wire(background, Report, server, env.Admitted(C))
        yield Wire(stream, LoseBuffer, background, ReportsForgotten())
        yield Wire(self.session, HoldWake, background, WakeBegan())
        yield Wire(stream, delivered, background, ReportDelivered(), where=delivered.item == C)
        for said in (WakeSilenced, WakesStopped):
            yield Wire(background, said, self.session)
        yield Wire(background, SendInterrupt, late, req.InterruptSent())

    def _server(self) -> Iterator[Spontaneous]:
        yield from (event for event in super()._server() if event.switch is not N7)
        heard: Any = stream.now.phase != LOST
        yield Spontaneous(background, ChildEnded(heard), when=server.now.c == Place.ABSENT, switch=N7)
        running: Any = self.session.now.running
        yield Spontaneous(background, BackgroundStopped(running), when=background.now.phase == WANTED, switch=ENDS_IT)


SILENT = "the reply of a child that the user stopped is not shown as a continuation, unless the stream dropped"
KEPT = "L3: a wake is forgotten only when the user stops the background work"


def properties(world: World) -> tuple[Property, ...]:
    """S1 to S7, L1 to L3, and what stopping the background work is for."""
    session = world.session
    others = (*safety(world), *rest(world))
    return (
        *(p for p in others if p.name not in (FAILED_ASKED, WAKES_KEPT)),
        Step(SILENT, not_(session.emits(TakeWake) & (truth.now.first == C) & (background.now.phase == STOPPED)
                          & not_(background.now.blind)), requirements="R-SES-12",
             harm="the user reads the reply of what they stopped"),
        Step(KEPT, implies(session.emits(DropWakes), session.on(WakesStopped)), requirements="R-SES-12",
             harm="a background reply is never shown"),
    )  # fmt: skip


def reached(world: World) -> tuple[Property, ...]:
    """What some run must show, or nothing was tried."""
    session = world.session
    return (
        Sometimes("a wake of a stopped child is silenced", session.took(WakeSilenced), requirements="R-SES-12"),
        Sometimes("a wake that runs is dropped with the background work", session.emits(DropWakes), requirements="R-SES-12"),
        Sometimes("a user turn is served by an execution that was begun for a stopped child", requirements="R-SES-6", holds=
            (session.now.phase == Turn.USER) & (truth.now.a == C) & (background.now.phase == STOPPED)),
    )  # fmt: skip


EVERY = (*POWERS, *MORE, ENDS_IT)


def _without(*powers: Switch) -> list[Switch]:
    return [s for s in EVERY if s not in powers]


AROUND = attrs.evolve(TARGET, session=UNMARKED, keeps_wakes=False)
WORLD = Stopped(AROUND, _without(N4, N6, N7, N8, N10, STOPS, ENDS_IT))
WIDE = Stopped(AROUND, (N2, N11, N13, ASKS, DEATH))
"""With every power but late admission, a restart and an early interrupt: a soak test explores it."""


# ── designs that fail ──

HEARS_NOTHING = UNMARKED.variant("session_background_shown", first=(Row(WakeSilenced, stay=True, name="shows it"),))
DROPS_NOTHING = UNMARKED.variant("session_background_held", first=(Row(WakesStopped, stay=True, name="holds it"),))
JOINED = (N7, N8, ENDS_IT)
BY_MARK = Stopped(attrs.evolve(design(mark.MACHINE), session=MARKED), _without(*JOINED))


def _planted(machine: Any) -> Stopped:
    return Stopped(attrs.evolve(AROUND, session=machine), _without(N7, ENDS_IT))


def variants() -> tuple[SystemVariant, ...]:
    """The rule of the mark, and two mistakes."""
    shown, held = _planted(HEARS_NOTHING), _planted(DROPS_NOTHING)
    return (
        SystemVariant(
            system=BY_MARK.system("session_background_v4"),
            properties=tuple(p for p in properties(BY_MARK) if p.name in (SKIPPED_USER, USER_RESTS)),
            violates={SKIPPED_USER: 13, USER_RESTS: 14},
            about="V4: the user stops the background work while their next turn is being prepared. The report's execution is marked; the "
            "prompt, which was checked before, joins it, and the mark eats the end: the turn is stuck.",
        ),
        SystemVariant(
            system=shown.system("session_background_shown"),
            properties=tuple(p for p in properties(shown) if p.name == SILENT),
            violates={SILENT: 6},
            about="The target that holds a wake for the report of a child that was stopped.",
        ),
        SystemVariant(
            system=held.system("session_background_held"),
            properties=tuple(p for p in properties(held) if p.name == SILENT),
            violates={SILENT: 6},
            about="The target that keeps its wakes when the user stops the background work.",
        ),
    )


SPEC = SystemSpec(
    system=WORLD.system("session_background"),
    requirements=requirements(1, 2, 3, 4, 5, 6, 7, 10, 11, 12, 14, 21, 26),
    properties=(*properties(WORLD), *reached(WORLD)),
    variants=variants(),
    tokens=3,
    counter=3,
)
