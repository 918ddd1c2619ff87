"""One mutant beside the unmutated machine: its rows, the states that only it reaches, and any part of its graph as a graph."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import attrs
import numpy as np

from turnproof.checkers.columns import Array, encode
from turnproof.checkers.graph import Block, Graph
from turnproof.checkers.mutants.operators import outcome
from turnproof.checkers.mutants.original import Original
from turnproof.checkers.mutants.words import AnyRow, Mutant
from turnproof.checkers.predicates import Pasts
from turnproof.machines.kernel import HOLE, Answer, Field, Ignored, Kind, Row, Taken, fields_of
from turnproof.machines.kernel.check import row_mistakes
from turnproof.machines.kernel.source import Writer
from turnproof.specs.language import Said

LIMIT = 100_000
"""Most states that one mutant may add before it is given up as undetermined."""


class NotBuilt(Exception):
    """The kernel refuses the table of a mutant."""


class LeavesDomain(Exception):
    """A step takes a field out of its domain, which exploring reports as a mistake of the table."""


class TooLarge(Exception):
    """A mutant reaches more states than :data:`LIMIT` beside those of the original."""


class World:
    """The machine with one class of event answered by other rows.

    Nodes of the original keep their numbers; those that only the mutant reaches follow. Rows likewise: the machine's, the hole, the
    changed ones.
    """

    def __init__(self, original: Original, mutant: Mutant) -> None:
        machine = original.machine
        self.original, self.mutant = original, mutant
        self.event = machine.row(next(iter(mutant.changes))).event
        own = original.chain(self.event)
        self.chain: tuple[AnyRow, ...] = tuple(new for row in own for new in mutant.changes.get(row.name, (row,)))
        self.changed = tuple(row for row in self.chain if not any(row is known for known in own))
        self._refuse_mistakes()
        self.rows: tuple[AnyRow, ...] = (*original.rows, *self.changed)
        self.row_number = {id(row): n for n, row in enumerate(self.rows)}
        self.said = np.array([list(Said).index(Said(row.answer)) for row in self.rows], dtype=np.int8)
        same: dict[str, int] = {}
        self.outcome = np.array([same.setdefault(text, len(same)) for text in (*original.outcomes, *map(outcome, self.changed))])
        """Row -> number of what it does; rows of one number give the same answer."""
        self.block = original.blocks[self.event]
        self.first_extra = len(original.graph.states)
        self.extra: list[tuple[Any, Pasts]] = []
        self.inside: list[bool] = []
        self._extra_number: dict[object, int] = {}
        self.effect_lists: list[tuple[Any, ...]] = list(original.graph.effect_lists)
        self._effect_number: dict[tuple[Any, ...], int] = {}
        self._function: Callable[[Any, Any], Answer[Any, Any]] | None = None

    def _refuse_mistakes(self) -> None:
        mistakes = [mistake for row in self.changed for mistake in row_mistakes(self.original.machine, row)]
        if not self.chain:
            mistakes.append(f"no row answers the event {self.event.__name__}")
        if mistakes:
            raise NotBuilt("; ".join(mistakes))

    # ── rows and answers ──

    def chosen(self) -> Array:
        """(event of the class, explored node) -> the row that answers."""
        made = np.full((self.block.stop - self.block.start, self.original.graph.explored), self.row_number[id(HOLE)], dtype=np.int32)
        for row in reversed(self.chain):
            made[self.original.mask(row)] = self.row_number[id(row)]
        excluded = self.original.graph.row[self.block.start : self.block.stop] < 0
        made[excluded] = -1
        return made

    def answer(self, state: Any, event: Any) -> Answer[Any, Any]:
        """The mutant's step."""
        if type(event) is not self.event:
            return self.original.machine.generated[type(event)](state, event)
        if self._function is None:
            machine = self.original.machine
            writer = Writer(f"{machine.name}, mutated", machine.state, machine.phase, self.chain)
            self._function = writer.functions([self.event])[self.event]
        return self._function(state, event)

    def step(self, node: int, event: int) -> tuple[int, int, int]:
        """(row, node after, list of effects) of one step. Raises :class:`LeavesDomain`."""
        state, pasts = self.at(node)
        happened = self.original.graph.events[event]
        answer = self.answer(state, happened)
        row = self.row_number[id(answer.row)]
        if isinstance(answer, Taken):
            listed, after = answer.effects, answer.state
            pasts_after = self._past(state, pasts, happened, Said.TAKEN, listed, after)
            if after is state and pasts_after is pasts:
                return row, node, self._effects(listed)
            return row, self.node(after, pasts_after, answer.row), self._effects(listed)
        said = Said.IGNORED if isinstance(answer, Ignored) else Said.REFUSED
        pasts_after = self._past(state, pasts, happened, said, (), state)
        return row, node if pasts_after is pasts else self.node(state, pasts_after, answer.row), 0

    def allows(self, node: int, event: int) -> bool:
        """Whether the environment's assumption lets the event come."""
        allowed = self.original.allowed
        if allowed is None:
            return True
        state, pasts = self.at(node)
        return allowed(state, pasts, self.original.graph.events[event], Said.TAKEN, (), state, pasts)

    def _past(self, before: Any, pasts: Pasts, event: Any, said: Said, effects: tuple[Any, ...], after: Any) -> Pasts:
        if not pasts:
            return pasts
        original = self.original
        key = (type(event), said, effects, id(pasts))
        known = original.remembered.get(key) if original.memory.blind else None
        if known is None:
            made = original.memory.after(before, pasts, event, said, effects, after)
            known = original.remembered[key] = original.pasts.setdefault(made, made)
        return known

    def _effects(self, listed: tuple[Any, ...]) -> int:
        known = self.original.effect_numbers.get(listed)
        if known is None:
            known = self._effect_number.setdefault(listed, len(self.effect_lists))
            if known == len(self.effect_lists):
                self.effect_lists.append(listed)
        return known

    # ── nodes ──

    def at(self, node: int) -> tuple[Any, Pasts]:
        """State and history of a node."""
        graph = self.original.graph
        return (
            self.extra[node - self.first_extra]
            if node >= self.first_extra
            else (graph.states[node], self.original.pasts[graph.pasts[node]])
        )

    def node(self, state: Any, pasts: Pasts, row: Row[Any, Any]) -> int:
        """The number of a node, a new one if nobody has been there."""
        key = (state, id(pasts))
        known = self.original.number.get(key)
        if known is None:
            known = self._extra_number.get(key)
        if known is None:
            inside = self._within(state, pasts, row)
            known = self._extra_number[key] = self.first_extra + len(self.extra)
            if len(self.extra) >= LIMIT:
                raise TooLarge(f"more than {LIMIT:,} states that the original does not reach")
            self.extra.append((state, pasts))
            self.inside.append(inside)
        return known

    def _within(self, state: Any, pasts: Pasts, row: Row[Any, Any]) -> bool:
        inside = True
        for instance in (state, *pasts):
            for name, field in fields_of(type(instance)).items():
                value = getattr(instance, name)
                if not field.holds(value):
                    raise LeavesDomain(f"row {row.name}: {field} becomes {value!r}, expected {field.expected()}")
                inside = inside and not (field.kind is Kind.COUNTER and value > self.original.spec.counter)
        return inside

    def expanded(self, node: int) -> bool:
        """Whether the node lies within the bounds, so that its steps count."""
        return node < self.original.graph.explored or (node >= self.first_extra and self.inside[node - self.first_extra])

    # ── parts of its graph ──

    def columns(self, nodes: Array) -> Mapping[tuple[type, str], Array]:
        """The columns of these nodes (numbers of this world)."""
        return _Columns(self, nodes)

    def fragment(self, nodes: Array, sources: int, events: Sequence[Any], blocks: tuple[Block, ...], table: Table) -> Fragment:
        """A part of the graph as a graph: the steps of ``table`` from the first ``sources`` of ``nodes`` (numbers of this world)."""
        graph = self.original.graph
        return Fragment(
            spec=self.original.spec,
            machine=self.original.machine,
            events=tuple(events),
            states=tuple(nodes.tolist()),
            pasts=(),
            explored=sources,
            row=table.row,
            successor=table.successor,
            effects=table.effects,
            effect_lists=tuple(self.effect_lists),
            parent=graph.parent,
            parent_event=graph.parent_event,
            depth=graph.depth,
            cut=0,
            seconds=0.0,
            rows=self.rows,
            blocks=blocks,
            columns=self.columns(nodes),
        )


@attrs.frozen(eq=False)
class Table:
    """Three arrays (event, node): row, successor, list of effects."""

    row: Array
    successor: Array
    effects: Array


@attrs.frozen(eq=False, kw_only=True, slots=False)
class Fragment(Graph):
    """Some steps of a graph. What is asked of single steps and states can be asked of it; what is asked of whole runs cannot.

    ``states`` holds numbers of nodes: only columns are read here.
    """

    rows: tuple[AnyRow, ...]
    blocks: tuple[Block, ...]
    columns: Mapping[tuple[type, str], Array]


class _Columns(Mapping[tuple[type, str], Array]):
    """The columns of some nodes, each made when it is first read."""

    def __init__(self, world: World, nodes: Array) -> None:
        self.world, self.nodes = world, nodes
        self.made: dict[tuple[type, str], Array] = {}

    def __getitem__(self, key: tuple[type, str]) -> Array:
        known = self.made.get(key)
        if known is None:
            known = self.made[key] = self._make(key)
        return known

    def _make(self, key: tuple[type, str]) -> Array:
        world = self.world
        column = world.original.graph.columns[key]
        made = column[np.minimum(self.nodes, len(column) - 1)]
        extra = np.flatnonzero(self.nodes >= world.first_extra)
        if len(extra):
            owner, name = key
            field: Field = fields_of(owner)[name]
            instances = (world.extra[number - world.first_extra] for number in self.nodes[extra].tolist())
            made[extra] = encode(field, [getattr(self._of(owner, state, pasts), name) for state, pasts in instances])
        return made

    @staticmethod
    def _of(owner: type, state: object, pasts: Pasts) -> object:
        return state if type(state) is owner else next(past for past in pasts if type(past) is owner)

    def __iter__(self) -> Iterator[tuple[type, str]]:
        return iter(self.world.original.graph.columns)

    def __len__(self) -> int:
        return len(self.world.original.graph.columns)

    def __contains__(self, key: object) -> bool:
        return key in self.world.original.graph.columns


__all__ = ["LIMIT", "Fragment", "LeavesDomain", "NotBuilt", "Table", "TooLarge", "World"]
