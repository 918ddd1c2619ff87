"""The unmutated machine, explored once: everything that a mutant of one row leaves as it is.

A mutant of a row changes answers to one class of event only. Which row answers is found by columns: the guards of the other rows
were evaluated once over all pairs, the changed guard is evaluated once more, and only pairs whose answer can differ are stepped.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property

import attrs
import numpy as np

from turnproof.checkers.carried import Carrying, Marks, markings
from turnproof.checkers.columns import Array, condition, is_array
from turnproof.checkers.evaluation import EffectTable, Run, StepColumns
from turnproof.checkers.graph import Block, Graph
from turnproof.checkers.judge import Judge
from turnproof.checkers.liveness import Assumption
from turnproof.checkers.mutants.operators import outcome
from turnproof.checkers.mutants.whole import Questions
from turnproof.checkers.mutants.words import AnyRow
from turnproof.checkers.predicates import Memory, Pasts, Predicates
from turnproof.checkers.words import check_words
from turnproof.machines.kernel import HOLE
from turnproof.specs.language import Always, Carries, Fair, Order, Property, Step


@attrs.frozen(eq=False)
class Judged:
    """A property, compiled once."""

    prop: Property
    run: Run | None
    """None for an order of effects without a condition."""


class Original:
    """One explored machine with its specification."""

    def __init__(self, graph: Graph) -> None:
        self.graph, self.spec, self.machine = graph, graph.spec, graph.machine
        self.rows: tuple[AnyRow, ...] = (*self.machine.rows, HOLE)
        self.outcomes = [*map(outcome, self.machine.rows), "no row"]
        self.memory = Memory(self.machine, self.spec)
        self.pasts: dict[Pasts, Pasts] = {}
        for pasts in graph.pasts:
            self.pasts.setdefault(pasts, pasts)
        self.remembered: dict[object, Pasts] = {}
        """History after a step, by kinds alone; only for histories that read nothing else."""
        self.number: dict[object, int] = {
            (state, id(self.pasts[pasts])): n for n, (state, pasts) in enumerate(zip(graph.states, graph.pasts, strict=True))
        }
        self.blocks = {block.event: block for block in graph.blocks}
        self.effect_numbers = {listed: n for n, listed in enumerate(graph.effect_lists)}
        self.allowed = None if self.spec.assume is None else Predicates(self.machine, self.spec.histories).test(self.spec.assume)
        self._steps: dict[type, StepColumns] = {}
        self._masks: dict[str, Array] = {}
        self._order: dict[type, list[Judged]] = {}
        self._table = EffectTable(graph.effect_lists)
        self._assumptions: dict[int, tuple[Fair, Assumption]] = {}

    # ── which row answers ──

    def chain(self, event: type) -> tuple[AnyRow, ...]:
        """The rows about one class of event, in their order."""
        return tuple(row for row in self.machine.rows if row.event is event)

    def mask(self, row: AnyRow) -> Array:
        """(event of its class, node) -> whether the row matches; kept for the rows of the machine."""
        known = self._masks.get(row.name)
        if known is not None and any(row is own for own in self.machine.rows):
            return known
        made = self._mask(row)
        if any(row is own for own in self.machine.rows):
            self._masks[row.name] = made
        return made

    def _mask(self, row: AnyRow) -> Array:
        block = self.blocks[row.event]
        made: Array = np.ones((block.stop - block.start, self.graph.explored), dtype=np.bool_)
        if row.phases:
            order = {member: n for n, member in enumerate(self.machine.phases)}
            phase = self.graph.columns[self.machine.state, self.machine.phase][: self.graph.explored]
            made &= np.isin(phase, [order[p] for p in row.phases])
        if row.guard is not None:
            data = condition(row.guard, f"row {row.name}")(self.steps(row.event))
            made = made & data if is_array(data) or not data else made
        return made

    def steps(self, event: type) -> StepColumns:
        """The columns of one class of event."""
        known = self._steps.get(event)
        if known is None:
            known = self._steps[event] = StepColumns(self.graph, self.blocks[event], self._table)
        return known

    # ── how nodes are reached ──

    @cached_property
    def levels(self) -> tuple[slice, ...]:
        """The explored nodes by distance; breadth first, so each distance is one slice."""
        depth = self.graph.depth[: self.graph.explored]
        edges = np.flatnonzero(np.diff(depth)) + 1
        return tuple(slice(int(a), int(b)) for a, b in zip((0, *edges), (*edges, len(depth)), strict=True))

    def untouched(self, block: Block, changed: Array) -> Array:
        """Node -> whether a shortest run leads there without any pair of ``changed`` (event of the block, node)."""
        graph = self.graph
        fine = np.ones(graph.explored, dtype=np.bool_)
        for level in self.levels[1:]:
            before, event = graph.parent[level], graph.parent_event[level]
            inside = (event >= block.start) & (event < block.stop)
            hit = inside & changed[np.where(inside, event - block.start, 0), before]
            fine[level] = fine[before] & ~hit
        return fine

    # ── what is judged step by step ──

    @cached_property
    def promises(self) -> Sequence[Judged]:
        """The properties of every step, and the orders of effects."""
        return [
            Judged(
                p, None if isinstance(p, Order) and p.when is None else self._compiled(p.holds if isinstance(p, Step) else p.when, p, True)
            )
            for p in self.spec.properties
            if isinstance(p, (Step, Order))
        ]

    def promises_for(self, event: type) -> list[Judged]:
        """The promises in an order of their own for each class of event: what killed a mutant last is asked first."""
        return self._order.setdefault(event, list(self.promises))

    @cached_property
    def invariants(self) -> Sequence[Judged]:
        """The properties of every state."""
        return [Judged(p, self._compiled(p.holds, p, False)) for p in self.spec.properties if isinstance(p, Always)]

    def _compiled(self, node: object, prop: Property, step: bool) -> Run:
        where = f"property {prop.name!r}"
        classes = [self.machine.state, *(type(history.initial) for history in self.spec.histories)]
        check_words(node, where, states=classes, events=self.machine.events, step=step)
        return condition(node, where)

    # ── what is asked of whole graphs ──

    @cached_property
    def judge(self) -> Judge:
        """The judge of the unmutated graph."""
        return Judge(self.graph)

    def assumption(self, fair: Fair) -> Assumption:
        """A fairness assumption over the unmutated graph; each is asked for again and again by mutants of promises."""
        known = self._assumptions.get(id(fair))
        if known is None:
            # The assumption is kept beside its reading, so that no other can come to have its id.
            known = self._assumptions[id(fair)] = (fair, self.judge.assumption(fair))
        return known[1]

    @cached_property
    def questions(self) -> Questions:
        """What every mutant's whole graph must answer."""
        return Questions(self.spec)

    @cached_property
    def numbers(self) -> Mapping[str, int]:
        """The golden numbers of the unmutated machine."""
        return self.questions.numbers(self.judge, self.states_of(self.graph))

    @cached_property
    def _state_number(self) -> Mapping[object, int]:
        known: dict[object, int] = {}
        return {id(state): known.setdefault(state, len(known)) for state in self.graph.states}

    @cached_property
    def _distinct(self) -> frozenset[object]:
        return frozenset(self.graph.states)

    def states_of(self, graph: Graph) -> int:
        """How many distinct states a graph has; those of the original are told apart by number, since hashing them all takes long."""
        number = self._state_number
        states = graph.states[: graph.explored]
        return len({number.get(id(state), -1) for state in states} - {-1}) + len(
            {state for state in states if id(state) not in number} - self._distinct
        )

    # ── opaque values ──

    @cached_property
    def opaque(self) -> tuple[Marks, ...]:
        """Two markings: class -> opaque field -> a value unlike all others; ascending, then descending, so that ``latest`` shows."""
        return markings(self.machine)

    @cached_property
    def carryings(self) -> Sequence[tuple[Carrying, Run | None]]:
        """The properties of opaque values, and the condition of each."""
        made = [p for p in self.spec.properties if isinstance(p, Carries)]
        return [(Carrying(self.machine, p, self.spec.histories), None if p.when is None else self._compiled(p.when, p, True)) for p in made]


def iterate(mask: Array) -> Iterator[tuple[int, int]]:
    """The marked (event, node) pairs, node by node."""
    node, event = np.nonzero(mask.T)
    return zip(event.tolist(), node.tolist(), strict=True)


__all__ = ["Judged", "Original", "iterate"]
