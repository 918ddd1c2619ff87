"""An explored graph as columns in the numbering of the proofs: one number a node for each slot, one a field of an event."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

import numpy as np

from turnproof.checkers.graph import Graph
from turnproof.checkers.smt.evaluate import Column, Evaluator, Nodes
from turnproof.checkers.smt.terms import Term, Values
from turnproof.checkers.smt.translate import Slot, Symbolic, on_name
from turnproof.machines.kernel import Kind, fields_of


class Grid:
    """The nodes of a graph, slot by slot. Nodes beyond the counter bound come after the explored ones, as in the graph."""

    def __init__(self, symbolic: Symbolic, graph: Graph) -> None:
        self.symbolic, self.graph = symbolic, graph
        self.nodes = Nodes()
        self.now = {slot.name: self._column(slot) for slot in symbolic.slots}
        self.rows = {id(row): number for number, row in enumerate(graph.rows)}
        self.effects = [normal(effects, symbolic.values) for effects in graph.effect_lists]
        self._matching: dict[tuple[str, int], tuple[Column, Mapping[str, Column]]] = {}

    def _column(self, slot: Slot) -> Column:
        state = self.graph.machine.state
        place = next((n for n, h in enumerate(self.graph.spec.histories) if type(h.initial) is slot.owner), None)
        owners: Iterable[object] = (
            self.graph.states if slot.owner is state or place is None else (pasts[place] for pasts in self.graph.pasts)
        )
        return self.encode((getattr(owner, slot.field.name) for owner in owners), truth=slot.field.kind is Kind.BOOL)

    def encode(self, values: Iterable[object], *, truth: bool) -> Column:
        """The numbers of many values."""
        if truth:
            column: Column = np.array(list(values), dtype=np.bool_)
            return column
        number = numbering(self.symbolic.values)
        return np.array([number(v) for v in values], dtype=np.int64)

    def inputs(self, event: object) -> Mapping[str, Column]:
        """The fields of one event, each a column of length 1."""
        mine = [i for i in self.symbolic.inputs if i.event is type(event)]
        return {i.name: self.encode([getattr(event, i.field.name)], truth=i.field.kind is Kind.BOOL) for i in mine}

    def other_inputs(self) -> Mapping[str, Column]:
        """The fields of all events at 0: where the event is another, no formula may depend on them."""
        return {i.name: np.zeros(1, dtype=np.bool_ if i.field.kind is Kind.BOOL else np.int64) for i in self.symbolic.inputs}

    def before(self) -> Mapping[str, Column]:
        """``now.<slot>`` of the explored nodes."""
        return {f"now.{name}": column[: self.graph.explored] for name, column in self.now.items()}

    def words(self, number: int, wanted: Iterable[str]) -> Mapping[str, Column]:
        """The words of the steps of event ``number``, by what the graph recorded: states after, event, answer."""
        after = self.graph.successor[number]
        made: dict[str, Column] = {f"next.{name}": column[after] for name, column in self.now.items() if f"next.{name}" in wanted}
        event = type(self.graph.events[number])
        made |= {on_name(cls): np.array([cls is event]) for cls in self.symbolic.on}
        said = self.graph.said[self.graph.row[number]]
        return made | {f"answer.{answer.value}": said == place for place, answer in enumerate(self.symbolic.answered)}

    def counts(self, number: int, evaluator: Evaluator) -> Mapping[str, Column]:
        """How many effects each word counts in the steps of event ``number``, by the effects that the graph recorded."""
        listed = self.graph.effects[number]
        made: dict[str, Column] = {}
        for word in self.symbolic.counts.values():
            total: Column = np.zeros(listed.shape, dtype=np.int64)
            for nth in range(max(sum(cls is word.effect for cls, _ in effects) for effects in self.effects)):
                key = (word.name, nth)
                if key not in self._matching:
                    self._matching[key] = self._nth(word.effect, nth, word.wanted)
                present, fields = self._matching[key]
                matching: Column = present[listed]
                for name, wanted in word.wanted.items():
                    matching = matching & (fields[name][listed] == evaluator.column(wanted.expr))
                total = total + matching
            made[word.name] = total
        return made

    def _nth(self, effect: type, nth: int, wanted: Mapping[str, Term]) -> tuple[Column, Mapping[str, Column]]:
        """Of each list of effects, whether it has an n-th effect of the class, and the numbers of its fields (-1: of another sort)."""
        present: Column = np.zeros(len(self.effects), dtype=np.bool_)
        fields: dict[str, Column] = {name: np.full(len(self.effects), -1, dtype=np.int64) for name in wanted}
        for place, effects in enumerate(self.effects):
            mine = [{name: (kind, number) for name, kind, number in values} for cls, values in effects if cls is effect]
            if nth < len(mine):
                present[place] = True
                for name, term in wanted.items():
                    kind, number = mine[nth][name]
                    fields[name][place] = number if kind is term.sort.python else -1
        return present, fields


def numbering(values: Values) -> Callable[[object], int]:
    """:meth:`Values.number` with its answers kept."""
    known: dict[object, int] = {}

    def number(value: object) -> int:
        # True equals 1, and both have the number 1, so one key serves for both.
        found = known.get(value)
        if found is None:
            found = known[value] = values.number(value)
        return found

    return number


Normal = tuple[tuple[type, tuple[tuple[str, object, int], ...]], ...]
"""Effects as (class, fields in order as (name, type, number)), without the Opaque ones."""


def normal(effects: Iterable[object], values: Values) -> Normal:
    """Effects in the form in which readings are compared."""
    made = []
    for effect in effects:
        readable = [name for name, field in fields_of(type(effect)).items() if field.kind is not Kind.OPAQUE]
        made.append((type(effect), tuple((name, _type(getattr(effect, name)), values.number(getattr(effect, name))) for name in readable)))
    return tuple(made)


def _type(value: object) -> type:
    return int if type(value) is bool else type(value)
