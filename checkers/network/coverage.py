"""What the walk over a system passed through: per part which event in which phase is answered how, which rows and guards did what.

Counts are pairs of a part's state and an event that some reachable step has the part handle. ``pairs`` says which step may follow
which; it needs the edges, so it is made only when asked for.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping

import attrs

from turnproof.checkers.coverage import Cell
from turnproof.checkers.network.explicit import NetworkGraph
from turnproof.checkers.network.walk import Handled
from turnproof.machines.kernel.evaluate import environment, matches
from turnproof.specs.language import Said
from turnproof.specs.system import AnyPart


@attrs.frozen
class RowUse:
    """How often a row answered, and how often its guard was false where its event and phase fitted."""

    row: str
    fired: int
    passed: int
    guarded: bool

    @property
    def words(self) -> str:
        """``true and false``, ``never tried``, ..."""
        if not self.guarded:
            return "no guard" if self.fired else "never reached"
        return {(True, True): "true and false", (True, False): "always true", (False, True): "always false"}.get(
            (self.fired > 0, self.passed > 0), "never tried"
        )


@attrs.frozen
class PartCoverage:
    """One part."""

    part: str
    machine: str
    phases: tuple[str, ...]
    cells: Mapping[str, Mapping[str, Cell]]
    """Event class -> phase -> what happened there."""
    rows: tuple[RowUse, ...]


@attrs.frozen
class SystemCoverage:
    """The coverage of one walk."""

    system: str
    states: int
    transitions: int
    parts: tuple[PartCoverage, ...]
    triggers: Mapping[str, str]
    """What may begin a step -> ``changes the state``, ``changes nothing``, or ``never``."""
    depths: tuple[int, ...]
    """Number of states first reached in 0, 1, 2, ... steps."""
    cut_short: str = ""
    """What ended the walk before it was done; empty if nothing did."""
    pairs: tuple[tuple[str, str], ...] | None = None
    """Which step may directly follow which, by what begins them; None where it was not asked."""

    def to_json(self) -> dict[str, object]:
        """Plain dictionaries and lists, for ``json.dumps``."""
        return {
            "system": self.system,
            "states": self.states,
            "transitions": self.transitions,
            "parts": [
                {
                    "part": part.part,
                    "machine": part.machine,
                    "matrix": {
                        event: {phase: {"answers": cell.words, **attrs.asdict(cell)} for phase, cell in row.items()}
                        for event, row in part.cells.items()
                    },
                    "rows": [{**attrs.asdict(row), "guard": row.words} for row in part.rows],
                }
                for part in self.parts
            ],
            "triggers": dict(self.triggers),
            "depths": list(self.depths),
            "cut_short": self.cut_short,
            **({} if self.pairs is None else {"pairs": [list(pair) for pair in self.pairs]}),
        }

    def summary(self) -> str:
        """One line: how many rows answer, how many guards were seen both ways, what never happened."""
        rows = [row for part in self.parts for row in part.rows]
        guards = [row for row in rows if row.guarded]
        cells = [cell for part in self.parts for row in part.cells.values() for cell in row.values()]
        counts = (
            (sum(1 for row in rows if row.fired), len(rows), "rows answer"),
            (sum(1 for row in guards if row.fired and row.passed), len(guards), "guards seen true and false"),
            (sum(1 for cell in cells if cell.total), len(cells), "pairs of event and phase met"),
            (sum(1 for word in self.triggers.values() if word != "never"), len(self.triggers), "beginnings of a step taken"),
        )
        said = ", ".join(f"{met:,} of {there:,} {what}" for met, there, what in counts)
        return f"{said}; --verbose lists them"

    def json(self) -> str:
        """The same as JSON text."""
        return json.dumps(self.to_json(), indent=1, ensure_ascii=False) + "\n"

    def text(self) -> str:
        """Plain text: for each part the matrix of events and phases, then its rows; then what began steps, and the depths."""
        lines = [f"{self.system}: {self.states:,} states, {self.transitions:,} steps, at most {len(self.depths) - 1} steps from the start"]
        lines += [f"not all of it: {self.cut_short} ended the walk"] if self.cut_short else []
        for part in self.parts:
            lines += ["", f"{part.part} ({part.machine})", *_matrix(part)]
            lines += [f"  {row.row}: answers {row.fired:,}, passed {row.passed:,}, {row.words}" for row in part.rows]
        lines += ["", *(f"{name}: {what}" for name, what in self.triggers.items())]
        lines += ["", "states by depth: " + " ".join(f"{n:,}" for n in self.depths)]
        if self.pairs is not None:
            beginnings = sorted({name for pair in self.pairs for name in pair})
            lines += ["", f"one step after another: {len(self.pairs):,} of {len(beginnings) ** 2:,} pairs"]
            for first in beginnings:
                lines.append(f"  {first}: {', '.join(second for one, second in self.pairs if one == first) or 'nothing'}")
        return "\n".join(lines) + "\n"


def _matrix(part: PartCoverage) -> Iterable[str]:
    if not part.cells:
        return
    first = max(len(event) for event in part.cells)
    widths = {phase: max(len(phase), *(len(row[phase].words) for row in part.cells.values())) for phase in part.phases}
    yield "  " + " " * first + "  " + "  ".join(f"{phase:<{widths[phase]}}" for phase in part.phases).rstrip()
    for event, row in part.cells.items():
        yield f"  {event:<{first}}  " + "  ".join(f"{row[phase].words:<{widths[phase]}}" for phase in part.phases).rstrip()


def coverage(graph: NetworkGraph, *, with_pairs: bool = False) -> SystemCoverage:
    """The coverage of a walk; with ``pairs``, which takes the edges, if they are asked for."""
    walk = graph.walk
    handled: dict[str, list[Handled]] = {}
    for one in walk.handled:
        handled.setdefault(one.part, []).append(one)
    words = {None: "never", False: "changes nothing", True: "changes the state"}
    return SystemCoverage(
        system=graph.system.name,
        states=walk.states,
        transitions=walk.transitions,
        parts=tuple(_part(part, handled.get(part.name, [])) for part in graph.system.everyone),
        triggers={str(t): words[walk.taken.get(n)] for n, t in enumerate(graph.triggers)},
        depths=tuple(walk.levels),
        cut_short=walk.why,
        pairs=tuple(sorted(pairs(graph))) if with_pairs else None,
    )


def _part(part: AnyPart, handled: list[Handled]) -> PartCoverage:
    machine = part.machine
    phases = tuple(p.name.lower() for p in machine.phases)
    counts = Counter((type(h.event).__name__, getattr(h.state, machine.phase).name.lower(), h.said) for h in handled)
    cells = {
        event.__name__: {
            phase: Cell(*(counts[event.__name__, phase, said] for said in (Said.TAKEN, Said.IGNORED, Said.REFUSED))) for phase in phases
        }
        for event in machine.events
    }
    return PartCoverage(part.name, machine.name, phases, cells, tuple(_rows(part, handled)))


def _rows(part: AnyPart, handled: list[Handled]) -> Iterable[RowUse]:
    machine = part.machine
    fired, passed = Counter(h.row for h in handled), Counter[str]()
    for one in handled:
        env = environment(one.state, one.event)
        for row in machine.rows:
            if row.name == one.row:
                break
            phase = getattr(one.state, machine.phase)
            if row.event is type(one.event) and (not row.phases or phase in row.phases):
                passed[row.name] += not matches(row, one.state, one.event, machine.phase, env)
    for row in machine.rows:
        yield RowUse(row.name, fired[row.name], passed[row.name], row.when is not None)


def pairs(graph: NetworkGraph) -> frozenset[tuple[str, str]]:
    """Which step may directly follow which, by what begins them (the class of a spontaneous event, not its fields)."""
    import numpy as np

    labels = graph.every_step()
    names = [_name(graph, n) for n in range(len(graph.triggers))]
    distinct = sorted(set(names))
    kind = np.array([distinct.index(name) for name in names])[labels.label]
    found: set[tuple[str, str]] = set()
    for b, second in enumerate(distinct):
        begins = np.zeros(labels.edges.nodes, np.bool_)
        begins[labels.edges.source[kind == b]] = True
        before = np.unique(kind[begins[labels.edges.target]])
        found |= {(distinct[a], second) for a in before.tolist()}
    return frozenset(found)


def _name(graph: NetworkGraph, number: int) -> str:
    trigger = graph.triggers[number]
    return str(trigger) if trigger.source is None else f"{trigger.where} <- {type(trigger.event).__name__}"


__all__ = ["PartCoverage", "RowUse", "SystemCoverage", "coverage", "pairs"]
