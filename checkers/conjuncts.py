"""Conditions of a guard that decide nothing: wherever one of them is false, another one of the same guard is false as well.

A remark, and no check: a condition that follows from the others in every state that is reached may be there for the reader, or for
the day when it no longer follows. Looked at are the reachable pairs that come as far as the row.
"""

from __future__ import annotations

from collections.abc import Iterator

import attrs
import numpy as np

from turnproof.checkers.columns import Array, condition
from turnproof.checkers.evaluation import StepColumns
from turnproof.checkers.graph import Graph
from turnproof.checkers.judge import Judge
from turnproof.machines.kernel import Formula, show
from turnproof.machines.kernel.formula import conjuncts
from turnproof.specs.language import AnyMachine


@attrs.frozen
class Idle:
    """One such condition."""

    row: str
    condition: str
    pairs: int
    """Pairs that come as far as the row and find the condition false; of each some other condition is false, too."""

    def __str__(self) -> str:
        why = f"never the only one that is false, of {self.pairs:,} pairs" if self.pairs else "true of all pairs"
        return f"row {self.row}: `{self.condition}` is {why} that reach it"


def idle_conjuncts(graph: Graph) -> tuple[Idle, ...]:
    """Every condition of a guard that is never the only false one, in the order of the rows. A guard of one condition has none."""
    judge = Judge(graph)
    columns = {steps.block.event: steps for steps in judge.evaluation.steps}
    return tuple(idle for number in range(len(judge.machine.rows)) for idle in _idle(judge.machine, number, columns, judge))


def _idle(machine: AnyMachine, number: int, columns: dict[type, StepColumns], judge: Judge) -> Iterator[Idle]:
    row = machine.rows[number]
    parts = () if row.guard is None else conjuncts(row.guard)
    if len(parts) < 2:
        return
    steps = columns[row.event]
    reached = steps.row >= number
    if row.phases:
        phase = judge.graph.columns[machine.state, machine.phase][: judge.graph.explored]
        order = {member: n for n, member in enumerate(machine.phases)}
        reached = reached & np.isin(phase, [order[p] for p in row.phases])
    false = [_false(part, f"row {row.name}: the guard", steps, reached) for part in parts]
    together = np.sum(false, axis=0, dtype=np.int16)
    for part, where in zip(parts, false, strict=True):
        if not (where & (together == 1)).any():
            yield Idle(row.name, show(part), int(where.sum()))


def _false(part: Formula, place: str, steps: StepColumns, reached: Array) -> Array:
    found: Array = reached & ~np.broadcast_to(np.asarray(condition(part, place)(steps), dtype=bool), reached.shape)
    return found


__all__ = ["Idle", "idle_conjuncts"]
