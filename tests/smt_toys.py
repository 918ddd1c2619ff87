"""Small machines for the proofs: what each is good for stands above it."""

from __future__ import annotations

import functools
from enum import Enum
from typing import Annotated, Any, get_args

from attrs import evolve, frozen
from toys import LOCK_SPEC

from turnproof.checkers.graph import Graph, explore
from turnproof.checkers.smt import certificate, prove
from turnproof.checkers.smt.grid import Grid
from turnproof.checkers.smt.pieces import Certificate, Claim, Conjunct, Table
from turnproof.checkers.smt.search import answers
from turnproof.checkers.smt.translate import Symbolic
from turnproof.machines.kernel import Counter, Machine, Opaque, Range, Row, StartTimer, latest, symbol
from turnproof.specs.language import Spec

AnyMachine = Machine[Any, Any, Any]


class Phase(Enum):
    ON = "on"
    OFF = "off"
    GONE = "gone"
    """Reached by nothing."""


class Clock(Enum):
    ALARM = "alarm"


# ── a note: two Opaque fields that must not be mixed up ──


@frozen
class Note:
    phase: Phase = Phase.ON
    written_ms: Annotated[int, Opaque] = 0
    read_ms: Annotated[int, Opaque] = 0
    loud: bool = False


@frozen
class Written:
    at_ms: Annotated[int, Opaque]


@frozen
class Read:
    at_ms: Annotated[int, Opaque]


@frozen
class Told:
    at_ms: Annotated[int, Opaque]


note, written, read = symbol(Note), symbol(Written), symbol(Read)
N = Row[Note, Told | StartTimer]

NOTE: Machine[Note, Written | Read, Told | StartTimer] = Machine(
    name="note",
    initial=Note(),
    now=note,
    events=get_args(Written | Read),
    effects=get_args(Told | StartTimer),
    rows=(
        N(written, at=Phase.ON, data=evolve(note, written_ms=latest(note.written_ms, written.at_ms)), name="written"),
        N(Written, ignore="off", name="written/off"),
        N(
            read,
            when=note.phase == Phase.ON,
            to=Phase.OFF,
            data=evolve(note, read_ms=read.at_ms),
            emit=(Told(note.written_ms),),
            name="read",
        ),
        N(Read, refuse="off", name="read/off"),
    ),
)


# ── two tallies: what one counts is what the other one counts, plus what is under way ──


@frozen
class Tally:
    phase: Phase = Phase.ON
    begun: Annotated[int, Counter] = 0
    ended: Annotated[int, Counter] = 0
    open: Annotated[int, Counter] = 0


@frozen
class Begun: ...


@frozen
class Ended: ...


tally = symbol(Tally)
T = Row[Tally, StartTimer]

TALLY: Machine[Tally, Begun | Ended, StartTimer] = Machine(
    name="tally",
    initial=Tally(),
    now=tally,
    events=get_args(Begun | Ended),
    effects=(StartTimer,),
    rows=(
        T(Begun, data=evolve(tally, begun=tally.begun + 1, open=tally.open + 1), name="begun"),
        T(Ended, when=tally.open == 0, refuse="nothing is open", name="ended/nothing"),
        T(Ended, data=evolve(tally, ended=tally.ended + 1, open=tally.open - 1), name="ended"),
    ),
)


# ── a dial: no run sets it above 2, but from 5 it would go to 6; nothing leads to 5 ──


@frozen
class Dial:
    phase: Phase = Phase.ON
    number: Annotated[int, Range(0, 60)] = 0


@frozen
class Turned: ...


dial = symbol(Dial)
D = Row[Dial, StartTimer]

DIAL: Machine[Dial, Turned, StartTimer] = Machine(
    name="dial",
    initial=Dial(),
    now=dial,
    events=(Turned,),
    effects=(StartTimer,),
    rows=(
        D(Turned, when=dial.number == 5, data=evolve(dial, number=6), name="turned/five"),
        D(Turned, when=dial.number < 2, data=evolve(dial, number=dial.number + 1), name="turned"),
        D(Turned, data=evolve(dial, number=0), name="turned/back"),
    ),
)


# ── in one process, without a certificate: quick enough for many tests ──


def setting(spec: Spec, *, machine: AnyMachine | None = None) -> tuple[Graph, Symbolic, Grid, Table]:
    """The explored graph of a specification and its terms; ``machine`` replaces the one whose terms are made."""
    graph = explore(spec)
    symbolic = Symbolic(machine or graph.machine, spec.histories)
    prove.statements(symbolic, spec)
    return graph, symbolic, Grid(symbolic, graph), prove.table(symbolic, spec)


def found(spec: Spec) -> dict[str, Any]:
    """What the search says, run in this process."""
    graph = explore(spec)
    symbolic = Symbolic(graph.machine, spec.histories)
    wanted, _ = prove.statements(symbolic, spec)
    task = prove.task(prove.table(symbolic, spec), wanted, Grid(symbolic, graph), seed=0)
    *_, last = answers(prove.plain(task))
    assert isinstance(last, dict)
    result: dict[str, Any] = last["result"]
    return result


def made(spec: Spec) -> Certificate:
    """The certificate of everything the search shows."""
    _, symbolic, _, table = setting(spec)
    result = found(spec)
    wanted, _ = prove.statements(symbolic, spec)
    claims = [
        Claim(w.name, "step" if w.origin == "step" else "always", (), tuple(w.reads), w.smt, k=result["k"].get(w.name, 1))
        for w in wanted
        if w.origin in ("step", "property")
    ]
    return certificate.make(table, [conjunct(c) for c in result["invariant"]], claims, {}, {"z3": "test"})


def conjunct(piece: dict[str, Any]) -> Conjunct:
    """A conjunct as the search gives it."""
    return Conjunct(piece["name"], piece["origin"], tuple(piece["reads"]), piece["smt"])


LOCKED = functools.cache(lambda: made(LOCK_SPEC))
