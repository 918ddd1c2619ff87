"""What only a whole graph can answer: rows that never fire, guards that decide nothing, witnesses, promises about the future, vacuity.

The questions are those of the explicit engine, and so are the answers; here they are compiled once and asked of many graphs that
differ little, without the stories. What is true of single steps and states was settled before.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import cast

import attrs
import numpy as np

from turnproof.checkers.columns import Array, condition, is_array
from turnproof.checkers.evaluation import Run
from turnproof.checkers.graph import Graph
from turnproof.checkers.judge import Judge
from turnproof.checkers.liveness import has_lasso
from turnproof.checkers.vacuity import antecedents, why_vacuous
from turnproof.checkers.words import is_about_steps
from turnproof.machines.kernel import OnlyIf
from turnproof.specs.language import Always, EventuallyAlways, LeadsTo, Order, Said, Sometimes, Spec, Step

Numbers = dict[str, int]


@attrs.frozen(eq=False)
class Asked:
    """One question about a graph: some step, or some state, satisfies ``run``."""

    about: str
    run: Run
    step: bool


class Questions:
    """What is asked of every whole graph of one specification."""

    def __init__(self, spec: Spec) -> None:
        self.spec = spec
        self._home: dict[Asked, int] = {}

    @cached_property
    def witnesses(self) -> Sequence[Asked]:
        """The properties that something is reached."""
        return [self._asked(p.name, p.holds, is_about_steps(p.holds)) for p in self.spec.properties if isinstance(p, Sometimes)]

    @cached_property
    def antecedents(self) -> Sequence[Asked]:
        """The antecedents, each of which must be reached somewhere."""
        return [
            self._asked(f"{p.name}: not vacuous", node, isinstance(p, Step))
            for p in self.spec.properties
            if isinstance(p, (Always, Step))
            for node in antecedents(p)
        ]

    @staticmethod
    def _asked(about: str, node: object, step: bool) -> Asked:
        return Asked(about, condition(node, f"property {about!r}"), step)

    def fault(self, judge: Judge) -> str:
        """The first thing that the graph owes and does not give; empty if there is none."""
        return _table_fault(judge) or self._unreached(judge) or self._future(judge)

    def _unreached(self, judge: Judge) -> str:
        for asked in (*self.witnesses, *self.antecedents):
            if self.depth(judge, asked) is None:
                return asked.about
        for prop in self.spec.properties:
            if isinstance(prop, Order) and judge.never_beside_another(prop):
                return f"{prop.name}: not vacuous"
        return ""

    def depth(self, judge: Judge, asked: Asked, *, shortest: bool = False) -> int | None:
        """How far the question's answer lies at the shortest, or, unless ``shortest``, some number; None if it is not reached."""
        if not asked.step:
            return _nearest(asked.run(judge.evaluation.states), judge.graph.depth)
        blocks = judge.evaluation.steps
        home = self._home.get(asked, 0)
        found = []
        for at in (home, *range(home), *range(home + 1, len(blocks))):
            columns = blocks[at]
            data = asked.run(columns)
            if is_array(data) or data:
                here = _nearest((columns.allowed & data).any(axis=0), judge.graph.depth[: judge.graph.explored])
                if here is not None:
                    self._home[asked] = at
                    found.append(here + 1)
                    if not shortest:
                        break
        return min(found, default=None)

    def _future(self, judge: Judge) -> str:
        for prop in self.spec.properties:
            if isinstance(prop, (LeadsTo, EventuallyAlways)):
                region = judge.leads_to(prop) if isinstance(prop, LeadsTo) else judge.eventually_always(prop)
                assumptions = [judge.assumption(fair) for fair in prop.fairness]
                if has_lasso(judge.edges, region, assumptions):
                    return prop.name
                if why_vacuous(judge, prop):
                    return f"{prop.name}: not vacuous"
        return ""

    def unsure(self, judge: Judge) -> str:
        """A promise that a run takes out of the bounds; empty if there is none."""
        for prop in self.spec.properties:
            if isinstance(prop, (LeadsTo, EventuallyAlways)):
                region = judge.leads_to(prop) if isinstance(prop, LeadsTo) else judge.eventually_always(prop)
                if judge.leaves_bounds(region):
                    return prop.name
        return ""

    def numbers(self, judge: Judge, states: int) -> Numbers:
        """The golden numbers, as ``golden.measure`` takes them; ``states`` are the distinct ones."""
        graph = judge.graph
        made = {
            "states": states,
            "nodes": graph.explored,
            **{said.value: graph.answers(said) for said in Said},
            "beyond_counter": graph.cut,
            "depth": int(graph.depth[: graph.explored].max()),
        }
        for asked in self.witnesses:
            depth = self.depth(judge, asked, shortest=True)
            if depth is not None:
                made[f"reached: {asked.about}"] = depth
        return made


def _nearest(data: object, depth: Array) -> int | None:
    found = np.flatnonzero(np.broadcast_to(cast(Array, data), depth.shape))
    return int(depth[found].min()) if len(found) else None


# ── the table ──


def _table_fault(judge: Judge) -> str:
    graph = judge.graph
    if not graph.answers(Said.TAKEN):
        return "the machine takes a step"
    if judge.spec.assume is not None and ((graph.row >= 0).all() or not (graph.row[:, 0] >= 0).any()):
        return "the environment assumption can be met and excludes something"
    if not graph.fires[:-1].all():
        return "every row fires"
    return _idle_guard(graph) or _idle_condition(judge)


def _idle_guard(graph: Graph) -> str:
    phase = graph.columns[graph.machine.state, graph.machine.phase][: graph.explored]
    order = {member: n for n, member in enumerate(graph.machine.phases)}
    # A pair passes a row by if a later one answers it, so the last row of each node tells of all before it.
    last = {block.event: graph.row[block.start : block.stop].max(axis=0) for block in graph.blocks if block.stop > block.start}
    for number, row in enumerate(graph.machine.rows):
        if row.guard is None:
            continue
        passed = last[row.event] > number
        if row.phases:
            passed = passed & np.isin(phase, [order[p] for p in row.phases])
        if not passed.any():
            return "every guard is true somewhere and false somewhere"
    return ""


def _idle_condition(judge: Judge) -> str:
    columns = {c.block.event: c for c in judge.evaluation.steps}
    for number, row in enumerate(judge.machine.rows):
        for node in _only_ifs(row.emit):
            here = columns[row.event]
            data, fired = condition(node, f"row {row.name}: only_if()")(here), here.row == number
            held = int((data & fired).sum()) if is_array(data) else int(data) * int(fired.sum())
            if held in (0, int(fired.sum())):
                return "every only_if() is true somewhere and false somewhere"
    return ""


def _only_ifs(emit: Sequence[object]) -> Iterator[object]:
    return (item.condition for item in emit if isinstance(item, OnlyIf))


__all__ = ["Asked", "Questions"]
