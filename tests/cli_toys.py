"""A door with every kind of field, its specification, and verdicts about it that no engine had to find."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from enum import Enum
from pathlib import Path
from typing import Annotated, Any, get_args

import attrs
from attrs import evolve, frozen

from turnproof.checkers.engines import EngineEntry, Plan
from turnproof.checkers.progress import Progress
from turnproof.checkers.report.model import MachineReport, RunReport, Size
from turnproof.checkers.verdict import Change, Engine, Outcome, Story, StoryStep, Verdict
from turnproof.machines.kernel import NOBODY, Counter, Machine, Opaque, Range, Row, Token, implies, symbol
from turnproof.specs.language import Always, Sometimes, Spec, Step, on, refused


class Phase(Enum):
    CLOSED = "closed"
    OPEN = "wide open"
    LOCKED = "locked:twice"


class Hand(Enum):
    LEFT = "left"
    RIGHT = "right"


@frozen
class Door:
    phase: Phase = Phase.CLOSED
    owner: Annotated[str, Token] = NOBODY
    turns: Annotated[int, Counter] = 0


@frozen
class Opened:
    by: Annotated[str, Token]
    hand: Hand


@frozen
class Locked:
    force: Annotated[int, Range(1, 3)]
    quietly: bool


@frozen
class NoteLeft:
    """Its text is carried and never read."""

    text: Annotated[str, Opaque]
    at_ms: Annotated[int, Opaque] = 0


@frozen
class Slammed: ...


@frozen
class Rang:
    owner: Annotated[str, Token]


Event = Opened | Locked | NoteLeft | Slammed

now, opened = symbol(Door), symbol(Opened)

ROWS: tuple[Row[Door, Rang], ...] = (
    Row(
        opened,
        at=Phase.CLOSED,
        to=Phase.OPEN,
        data=evolve(now, owner=opened.by),
        emit=(Rang(opened.by),),
        because="A door that opens rings.",
    ),
    Row(Opened, at=Phase.LOCKED, refuse="it is locked"),
    Row(Opened, ignore="it is open"),
    Row(Locked, at=Phase.CLOSED, to=Phase.LOCKED),
    Row(Locked, refuse="only a closed door locks"),
    Row(NoteLeft, stay=True),
    Row(Slammed, at=Phase.OPEN, to=Phase.CLOSED, data=evolve(now, owner=NOBODY)),
    Row(Slammed, ignore="it is not open"),
)

MACHINE: Machine[Door, Event, Rang] = Machine(
    name="front_door", initial=Door(), now=now, events=get_args(Event), effects=(Rang,), rows=ROWS
)

LOCKED_REFUSES = Step(
    "a locked door refuses to open", implies(on(Opened) & (now.phase == Phase.LOCKED), refused()), requirements="R-DOOR-1", harm="burglars"
)
OWNED = Always("an open door has an owner", implies(now.phase == Phase.OPEN, now.owner != NOBODY), requirements=("R-DOOR-1", "R-DOOR-2"))
OPENS = Sometimes("a door opens", now.phase == Phase.OPEN, requirements="R-DOOR-2")

SPEC = Spec(
    machine=MACHINE,
    requirements={"R-DOOR-1": "A locked door stays shut.", "R-DOOR-2": "Somebody opens it.", "R-DOOR-3": "It is pretty."},
    properties=(LOCKED_REFUSES, OWNED, OPENS),
    tests={"R-DOOR-3": "tests/cli_toys.py::verdict"},
)

HOW = "exhaustive (7 states; 2 tokens)"


def verdict(check: str, outcome: Outcome = Outcome.HOLDS, engine: Engine = Engine.EXPLICIT, how: str = HOW, **more: Any) -> Verdict:
    """A verdict about the door; the requirements are those of the property so called."""
    ids = next((p.requirements for p in SPEC.properties if p.name == check), ())
    return Verdict(machine="front_door", check=check, engine=engine, outcome=outcome, how=how, **{"requirements": ids, **more})


HOLDING = tuple(verdict(p.name) for p in SPEC.properties)

STORY = Story(
    machine="front_door",
    initial="phase=closed",
    start=(("phase", "closed"), ("owner", "none"), ("turns", 0)),
    steps=(
        StoryStep(
            number=1,
            actor="environment",
            event="Opened(by=none, hand=left)",
            answer="taken",
            row="Opened/closed",
            changes=(Change("phase", "closed", "wide open"),),
            effects=("Rang(owner=none)",),
            code="Opened(by='', hand=Hand.LEFT)",
            state=(("phase", "wide open"), ("owner", "none"), ("turns", 0)),
        ),
    ),
    broken="an open door has an owner",
    module="cli_toys",
    setup=("from cli_toys import SPEC, Hand, Opened", "from turnproof.checkers.replay import Run", "run = Run(SPEC)"),
    claim="assert run.holds('an open door has an owner')",
)
LASSO = attrs.evolve(STORY, steps=(*STORY.steps, attrs.evolve(STORY.steps[0], number=2, event="Slammed", code="Slammed()")), loop_from=1)

VIOLATED = verdict("an open door has an owner", Outcome.VIOLATED, story=STORY, others=(LASSO,), detail="nobody opened it")
UNDETERMINED = verdict("a door opens", Outcome.UNDETERMINED, detail="the search was cut short \x00\x1b[31m at </x> 1000 & more states")


def machine_report(*verdicts: Verdict, **more: Any) -> MachineReport:
    """A report of the door."""
    facts: dict[str, Any] = {"size": Size(7, 70, 3, 20), "timings": {"explicit": 1.25}, "seconds": 2.0}
    return MachineReport(spec=SPEC, verdicts=verdicts, **{**facts, **more})


def run_report(*machines: MachineReport) -> RunReport:
    """A run over some reports."""
    return RunReport(machines=machines, version="1.2.3", started="2026-01-02T03:04:05Z", seconds=4.5)


PROVED = verdict(SPEC.properties[0].name, engine=Engine.SYMBOLIC, how="proved (any length; re-checked by z3 and cvc5)")
RUNS = {
    "holds": run_report(machine_report(*HOLDING, PROVED)),
    "violated": run_report(machine_report(*HOLDING[:1], VIOLATED, UNDETERMINED, not_run={"symbolic": "--quick"})),
    "undetermined": run_report(machine_report(*HOLDING[:2], UNDETERMINED)),
    "two machines": run_report(machine_report(*HOLDING), machine_report(VIOLATED, size=None)),
    "nothing": run_report(machine_report()),
    "no machine": run_report(),
}

Run = Callable[[Progress], list[Verdict]]


def engine(run: Run, speaks: Engine = Engine.EXPLICIT) -> EngineEntry:
    """An engine that does what the test says."""

    def entry(spec: Spec, graph: object, plan: Plan, progress: Progress) -> list[Verdict]:
        return run(progress)

    return EngineEntry(entry, speaks, "a stand-in")


def says(verdicts: Sequence[Verdict]) -> EngineEntry:
    """An engine that finds these verdicts."""
    return engine(lambda progress: list(verdicts))


def forever(progress: Progress) -> list[Verdict]:
    """An engine that says how far it is and never ends."""
    for n in range(10_000):
        progress.say("rows", n, 94)
        time.sleep(0.02)
    return []


def children(parent: int) -> list[int]:
    """The living children of a process."""
    found = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            state, ppid = stat.read_text().rpartition(")")[2].split()[:2]
        except OSError:
            continue
        if int(ppid) == parent and state != "Z":
            found.append(int(stat.parent.name))
    return found
