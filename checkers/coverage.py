"""What the exploration of a machine passed through: which event in which phase is answered how, which rows and guards did what."""

from __future__ import annotations

import json
from collections.abc import Mapping

import attrs
import numpy as np

from turnproof.checkers.graph import Graph
from turnproof.checkers.table import RowCount, count_rows
from turnproof.specs.language import Said


@attrs.frozen
class Cell:
    """One event class in one phase: how many pairs of state and event are answered how."""

    taken: int = 0
    ignored: int = 0
    refused: int = 0
    missing: int = 0
    """Pairs that no row answers."""

    @property
    def total(self) -> int:
        """Pairs tried; 0 means never."""
        return self.taken + self.ignored + self.refused + self.missing

    @property
    def words(self) -> str:
        """``taken``, ``taken, refused``, ..., or ``never``."""
        return ", ".join(name for name, count in attrs.asdict(self).items() if count) or "never"


@attrs.frozen
class Coverage:
    """The coverage of one exploration. Counts are pairs of state (with history) and event."""

    machine: str
    phases: tuple[str, ...]
    cells: Mapping[str, Mapping[str, Cell]]
    """Event class -> phase -> what happened there."""
    rows: tuple[RowCount, ...]
    """Row by row: pairs that reach it, and pairs it answers; the rest found its guard false."""
    depths: tuple[int, ...]
    """Number of states that a shortest run of 0, 1, 2, ... events reaches."""

    def text(self) -> str:
        """Plain text: the matrix of events and phases, then every row with the pairs it answers and those it lets pass."""
        events = max(len(event) for event in self.cells)
        widths = {phase: max(len(phase), *(len(row[phase].words) for row in self.cells.values())) for phase in self.phases}
        lines = [f"{self.machine}: {sum(self.depths):,} states, at most {len(self.depths) - 1} events from the start", ""]
        lines.append(" " * events + "  " + "  ".join(f"{phase:<{widths[phase]}}" for phase in self.phases).rstrip())
        for event, row in self.cells.items():
            lines.append(f"{event:<{events}}  " + "  ".join(f"{row[phase].words:<{widths[phase]}}" for phase in self.phases).rstrip())
        width = max(len(row.row) for row in self.rows)
        lines += ["", f"{'row':<{width}}  {'answers':>12}  {'guard false':>12}"]
        lines += [f"{row.row:<{width}}  {row.fired:>12,}  {row.passed:>12,}  {row.answer}" for row in self.rows]
        return "\n".join(lines) + "\n"

    def json(self) -> str:
        """The same as JSON text."""
        return json.dumps(self.to_json(), indent=1, ensure_ascii=False) + "\n"

    def to_json(self) -> dict[str, object]:
        """Plain dictionaries and lists, for ``json.dumps``."""
        return {
            "machine": self.machine,
            "phases": list(self.phases),
            "matrix": {
                event: {phase: {"answers": cell.words, **attrs.asdict(cell)} for phase, cell in row.items()}
                for event, row in self.cells.items()
            },
            "rows": [{**attrs.asdict(row), "guard_true": row.fired, "guard_false": row.passed} for row in self.rows],
            "depths": list(self.depths),
        }


def coverage(graph: Graph) -> Coverage:
    """The coverage of an exploration."""
    phases = graph.machine.phases
    phase = graph.columns[graph.machine.state, graph.machine.phase][: graph.explored]
    # Per row, 0 to 2: the answer; 3: the hole.
    kinds = graph.said.copy()
    kinds[graph.hole] = len(Said)
    cells: dict[str, dict[str, Cell]] = {}
    for block in graph.blocks:
        chosen = graph.row[block.start : block.stop]
        kind = np.where(chosen >= 0, kinds[chosen], -1)
        counts = {
            member.name.lower(): np.bincount(kind[:, phase == n].ravel() + 1, minlength=len(Said) + 2) for n, member in enumerate(phases)
        }
        cells[block.event.__name__] = {name: Cell(*map(int, count[1:])) for name, count in counts.items()}
    depths = np.bincount(graph.depth[: graph.explored])
    return Coverage(graph.machine.name, tuple(p.name.lower() for p in phases), cells, count_rows(graph), tuple(map(int, depths)))


__all__ = ["Cell", "Coverage", "coverage"]
