"""Formulas over a whole graph: which states, and which steps, satisfy them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any, cast

import numpy as np

from turnproof.checkers.columns import Array, Columns, Data, code, condition, encode, negate
from turnproof.checkers.graph import Block, Graph
from turnproof.checkers.words import check_words
from turnproof.machines.kernel import TableError, Variable, fields_of
from turnproof.specs.language import Emitted, Said

Run = Callable[[Columns], Data]


class StateColumns:
    """Every node of a graph, those beyond the counter bound included."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph

    def field(self, variable: Variable) -> Data:
        """One value a node."""
        if variable.scope:
            raise TableError(f"`{variable}` is a word of a step")
        return self.graph.columns[variable.owner, variable.name]

    def on(self, event: type) -> Data:
        """No event belongs to a state."""
        raise TableError(f"`on {event.__name__}` is a word of a step")

    def answered(self, said: Said) -> Data:
        """Nor does an answer."""
        raise TableError(f"`{said.value}` is a word of a step")

    def emitted(self, pattern: Emitted, fields: Sequence[tuple[str, Data]]) -> Data:
        """Nor do effects."""
        raise TableError(f"`{pattern}` is a word of a step")


class StepColumns:
    """The steps of one event class: shape (events of the class, explored nodes). Steps the assumption excludes carry no meaning."""

    def __init__(self, graph: Graph, block: Block, effects: EffectTable) -> None:
        self.graph, self.block, self.table = graph, block, effects
        here = slice(block.start, block.stop)
        self.row, self.successor, self.effects = graph.row[here], graph.successor[here], graph.effects[here]
        self.allowed: Array = self.row >= 0
        self._cache: dict[object, Array] = {}

    def field(self, variable: Variable) -> Data:
        """(1 or events, nodes); the field of another event is a :class:`TableError`."""
        key = (variable.owner, variable.name)
        if key in self.graph.columns:
            column = self.graph.columns[key]
            if not variable.scope:
                return column[: self.graph.explored]
            return self._kept(("next", *key), lambda: column[self.successor])
        if variable.owner is not self.block.event:
            raise TableError(f"{variable.owner.__name__}.{variable.name} is read where the event is {self.block.event.__name__}")
        events = self.graph.events[self.block.start : self.block.stop]
        field = fields_of(variable.owner)[variable.name]
        return self._kept(key, lambda: encode(field, [getattr(event, variable.name) for event in events])[:, None])

    def _kept(self, key: object, make: Callable[[], Array]) -> Array:
        known = self._cache.get(key)
        if known is None:
            known = self._cache[key] = make()
        return known

    def on(self, event: type) -> Data:
        """A plain bool: all steps here have one event class."""
        return event is self.block.event

    def answered(self, said: Said) -> Data:
        """Whether the row that answered answers so."""
        number = list(Said).index(said)
        return self._kept(said, lambda: cast(Array, self.graph.said[self.row] == number))

    def emitted(self, pattern: Emitted, fields: Sequence[tuple[str, Data]]) -> Data:
        """Effects are counted once for each distinct list of effects, unless a field is compared with the state or the event."""
        return self.table.count(pattern.owner, fields, self.effects)


class EffectTable:
    """Counts effects in the lists of effects that a graph's steps emit. ``slot`` n holds the n-th effect of a class in each list."""

    def __init__(self, effect_lists: Sequence[tuple[Any, ...]]) -> None:
        self.lists = effect_lists
        self._present: dict[type, Array] = {}
        self._codes: dict[tuple[type, str], Array] = {}

    def present(self, effect: type) -> Array:
        """(slot, list) -> whether there is one."""
        known = self._present.get(effect)
        if known is None:
            counts = [sum(type(f) is effect for f in listed) for listed in self.lists]
            slots = range(max(counts))
            known = self._present[effect] = np.array([[n < count for count in counts] for n in slots], dtype=np.bool_).reshape(
                -1, len(counts)
            )
        return known

    def codes(self, effect: type, name: str) -> Array:
        """(slot, list) -> code of a field, -1 where there is no such effect."""
        known = self._codes.get((effect, name))
        if known is None:
            field = fields_of(effect)[name]
            known = np.full(self.present(effect).shape, -1, dtype=np.int32)
            for number, listed in enumerate(self.lists):
                for slot, item in enumerate(f for f in listed if type(f) is effect):
                    known[slot, number] = code(getattr(item, name), field)
            self._codes[effect, name] = known
        return known

    def count(self, effect: type, fields: Sequence[tuple[str, Data]], chosen: Array) -> Data:
        """How many match in the lists ``chosen``."""
        matching = self.present(effect)
        open_fields = []
        for name, data in fields:
            if isinstance(data, np.ndarray):
                open_fields.append((name, data))
            else:
                matching = matching & (self.codes(effect, name) == data)
        if not open_fields:
            totals = matching.sum(axis=0, dtype=np.int16)
            return cast(Array, totals[chosen]) if totals.any() else 0
        total: Data = 0
        for slot in range(len(matching)):
            here = matching[slot][chosen]
            for name, data in open_fields:
                here = here & (self.codes(effect, name)[slot][chosen] == data)
            total = total + here.astype(np.int16)
        return total


class Evaluation:
    """Evaluates formulas over one graph, and keeps the columns that several of them read."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.states = StateColumns(graph)
        self.classes = [graph.machine.state, *(type(history.initial) for history in graph.spec.histories)]

    @cached_property
    def steps(self) -> tuple[StepColumns, ...]:
        """The steps, one block an event class."""
        table = EffectTable(self.graph.effect_lists)
        return tuple(StepColumns(self.graph, block, table) for block in self.graph.blocks)

    def compiled(self, node: object, where: str, *, step: bool) -> Run:
        """``node`` ready to run. Raises :class:`TableError`, beginning with ``where``, if it reads what it cannot see."""
        check_words(node, where, states=self.classes, events=self.graph.machine.events, step=step)
        return condition(node, where)

    def states_where(self, node: object, where: str) -> Array:
        """Node -> whether it satisfies ``node``."""
        return np.broadcast_to(self.compiled(node, where, step=False)(self.states), (len(self.graph.states),))

    def steps_where(self, node: object, where: str) -> Array:
        """(event, node) -> whether the step satisfies ``node``; false where the assumption excludes it."""
        return self._steps(self.compiled(node, where, step=True), holds=True)

    def steps_against(self, node: object, where: str) -> Array:
        """(event, node) -> whether the step violates ``node``; false where the assumption excludes it."""
        return self._steps(self.compiled(node, where, step=True), holds=False)

    def _steps(self, run: Run, *, holds: bool) -> Array:
        found = np.zeros(self.graph.row.shape, dtype=np.bool_)
        for columns in self.steps:
            data = run(columns)
            if isinstance(data, np.ndarray) or data is holds:
                block = columns.block
                np.logical_and(data if holds else negate(data), columns.allowed, out=found[block.start : block.stop])
        return found


__all__ = ["EffectTable", "Evaluation", "Run", "StateColumns", "StepColumns"]
