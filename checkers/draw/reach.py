"""What a drawing takes from an explored graph: which row leads from where to where, and where each timer runs.

A *place* is a phase; a phase that is reached both with and without ``released`` is two places, because what may still happen there
is not the same.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Mapping
from enum import Enum
from typing import Any

import attrs
import numpy as np

from turnproof.checkers.draw.view import closure
from turnproof.checkers.graph import Graph
from turnproof.machines.kernel import Machine, OnlyIf, Row, StartTimer, formula, show_constant

AnyMachine = Machine[Any, Any, Any]


class Armed(Enum):
    """What a timer does in a state."""

    OFF = "off"
    RUNS = "runs"
    PAUSED = "paused"


@attrs.frozen
class Place:
    """A node of the drawings."""

    phase: Enum
    released: bool = False
    split: bool = False
    """The same phase is also reached with the other value of ``released``."""

    @property
    def id(self) -> str:
        """Unique among the places of a machine."""
        return f"{self.phase.name.lower()}{'.released' if self.released and self.split else ''}"

    def __str__(self) -> str:
        extra = (", released" if self.released else ", not released") if self.split else ""
        return show_constant(self.phase) + extra


@attrs.frozen
class Move:
    """Row number ``row`` (from 1) leads from ``source`` to ``dest``; a row that is not taken stays where it is."""

    row: int
    source: Place
    dest: Place


@attrs.frozen
class TimerMove:
    """Row number ``row`` changes what ``timer`` does, or renews it."""

    timer: Enum
    row: int
    before: Armed
    after: Armed


@attrs.frozen(kw_only=True)
class Reach:
    """The part of an explored graph that drawings show; all of it sorted by the order of phases and rows."""

    machine: AnyMachine
    initial: Place
    places: Mapping[Place, int]
    """Place -> number of states there."""
    moves: Mapping[Move, int]
    """Move -> number of (state, event) pairs that make it."""
    timers: Mapping[tuple[Place, Enum], frozenset[Armed]]
    timer_moves: tuple[TimerMove, ...]

    def row(self, move: Move | TimerMove) -> Row[Any, Any]:
        """The row of a move."""
        row: Row[Any, Any] = self.machine.rows[move.row - 1]
        return row

    def of(self, place: Place, answer: str) -> tuple[Move, ...]:
        """The moves from a place that are ``taken``, ``ignored`` or ``refused``."""
        return tuple(m for m in self.moves if m.source == place and self.row(m).answer == answer)

    @property
    def terminal(self) -> frozenset[Enum]:
        """Phases that no move leaves for another phase."""
        left = {m.source.phase for m in self.moves if m.source.phase is not m.dest.phase}
        return frozenset(p.phase for p in self.places if p.phase not in left)


Profile = tuple[Enum, bool, tuple[Armed, ...]]
"""The phase, the release and the timers of a state: all that a drawing tells apart."""


def profile(machine: AnyMachine) -> Callable[[object], Profile]:
    """What a drawing sees of a state."""
    released = _reading(machine, machine.released)
    timers = [(_reading(machine, rule.armed), _reading(machine, rule.paused)) for rule in machine.timers]

    def seen(state: object) -> Profile:
        armed = tuple(Armed.RUNS if runs(state) else Armed.PAUSED if paused(state) else Armed.OFF for runs, paused in timers)
        return getattr(state, machine.phase), released(state), armed

    return seen


def _reading(machine: AnyMachine, value: bool | None) -> Callable[[object], bool]:
    if value is None:
        return lambda state: False
    read = closure(formula(value, "a promise of the machine"), machine.state)
    return lambda state: bool(read(state, None))


Counts = Mapping[tuple[Profile, int, Profile], int]
"""(before, row number, after) -> how many explored pairs of state and event do that."""


def count(graph: Graph) -> tuple[Counter[Profile], Counts]:
    """How many nodes of the graph have which profile, and how many of its steps lead from which to which."""
    machine = graph.machine
    seen = profile(machine)
    known: dict[int, Profile] = {id(state): seen(state) for state in {id(state): state for state in graph.states}.values()}
    profiles = [known[id(state)] for state in graph.states]
    names = [*dict.fromkeys(profiles)]
    numbers = {p: n for n, p in enumerate(names)}
    dense = np.array([numbers[p] for p in profiles], dtype=np.int64)
    tried = (graph.row >= 0) & (graph.row < graph.hole)
    before = np.broadcast_to(dense[: graph.explored], graph.row.shape)[tried]
    codes = (before * graph.hole + graph.row[tried]) * len(names) + dense[graph.successor[tried]]
    found, times = np.unique(codes, return_counts=True)
    counts = {}
    for code, n in zip(found.tolist(), times.tolist(), strict=True):
        rest, after = divmod(code, len(names))
        b, row = divmod(rest, graph.hole)
        counts[names[b], row + 1, names[after]] = n
    return Counter(profiles), counts


def reach(graph: Graph) -> Reach:
    """What the drawings show of an explored graph. A step that no row answers is not shown; verification fails on it."""
    machine = graph.machine
    tally, counts = count(graph)
    both = {p for p, released, _ in tally if released} & {p for p, released, _ in tally if not released}
    order = {phase: n for n, phase in enumerate(machine.phases)}

    def place(p: Profile) -> Place:
        return Place(p[0], p[1], p[0] in both)

    def rank(p: Place) -> tuple[int, bool]:
        return order[p.phase], p.released

    places: Counter[Place] = Counter()
    timers: defaultdict[tuple[Place, Enum], set[Armed]] = defaultdict(set)
    for p, n in tally.items():
        places[place(p)] += n
        for rule, armed in zip(machine.timers, p[2], strict=True):
            timers[place(p), rule.timer].add(armed)
    moves: Counter[Move] = Counter()
    for (before, row, after), n in counts.items():
        moves[Move(row, place(before), place(after))] += n
    return Reach(
        machine=machine,
        initial=place(profile(machine)(machine.initial)),
        places={p: places[p] for p in sorted(places, key=rank)},
        moves={m: moves[m] for m in sorted(moves, key=lambda m: (rank(m.source), m.row, rank(m.dest)))},
        timers={k: frozenset(v) for k, v in timers.items()},
        timer_moves=_timer_moves(machine, counts),
    )


def _timer_moves(machine: AnyMachine, counts: Counts) -> tuple[TimerMove, ...]:
    """Where a taken row changes what a timer does, and where it starts one that ran before."""
    found = set()
    for (before, number, after), _ in counts.items():
        row = machine.rows[number - 1]
        started = {e.timer for e in (i.effect if isinstance(i, OnlyIf) else i for i in row.emit) if isinstance(e, StartTimer)}
        for rule, was, now in zip(machine.timers, before[2], after[2], strict=True):
            if was is not now or rule.timer in started:
                found.add(TimerMove(rule.timer, number, was, now))
    return tuple(sorted(found, key=lambda t: (t.timer.name, t.row, t.before.value, t.after.value)))
