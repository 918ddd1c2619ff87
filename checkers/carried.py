"""What becomes of opaque values: whether each is carried where a property says, whatever it is.

Theory of operation
===================

No guard reads an opaque value, so one of each is explored, and a graph cannot tell ``now.deadline`` from ``asked.deadline``. Here
steps are taken with values that are all different instead: once ascending and once descending, so that ``latest`` of two shows
which it took, and further apart than any constant a row adds. A row is tried once for each combination of what it and the property
read, at the reachable pair nearest to the start; and there with the counters that they read at every value up to one above the
constants they are compared with, since explored counters stop early. Every value tried is one that the types allow where the row
answers; whether a run leads to it is not asked, and the symbolic engine proves the same of all of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import product
from typing import Any, cast

import attrs
import numpy as np

from turnproof.checkers.columns import Array
from turnproof.checkers.graph import Graph
from turnproof.checkers.predicates import Pasts, Predicates
from turnproof.checkers.words import check_words
from turnproof.machines.kernel import (
    Answer,
    Formula,
    Kind,
    OnlyIf,
    Row,
    TableError,
    Taken,
    Variable,
    fields_of,
    nodes,
    show_constant,
    variables,
)
from turnproof.machines.kernel.evaluate import environment, value
from turnproof.specs.language import AnyMachine, Carries, History, Said

APART = 1_000_003
"""Opaque integers are multiples of this: larger than any constant that a row adds to one."""
COMPARES = frozenset({"eq", "ne", "lt", "le", "gt", "ge"})

Marks = Mapping[type, Mapping[str, object]]
StepFunction = Callable[[Any, Any], Answer[Any, Any]]


def markings(machine: AnyMachine) -> tuple[Marks, ...]:
    """Two markings: class -> opaque field -> a value unlike all others; ascending, then descending. None if nothing is opaque."""
    classes = (machine.state, *machine.events)
    named = [(cls, name, f.base) for cls in classes for name, f in fields_of(cls).items() if f.kind is Kind.OPAQUE]
    return tuple(_marking(named, order) for order in (range(1, len(named) + 1), range(len(named), 0, -1))) if named else ()


def _marking(named: Sequence[tuple[type, str, type]], order: Sequence[int]) -> Marks:
    made: dict[type, dict[str, object]] = {}
    for number, (cls, name, base) in zip(order, named, strict=True):
        marks: Mapping[type, object] = {int: APART * number, float: float(APART * number), str: f"{cls.__name__}.{name} {number}"}
        made.setdefault(cls, {})[name] = marks.get(base, ("opaque", number))
    return made


def marked(instance: Any, marks: Marks) -> Any:
    """``instance`` with its opaque fields marked."""
    values = marks.get(type(instance))
    return attrs.evolve(instance, **values) if values else instance


class Carrying:
    """One property, ready to be asked of single steps. Raises :class:`TableError` if it reads what it cannot see."""

    def __init__(self, machine: AnyMachine, prop: Carries, histories: Sequence[History]) -> None:
        self.machine, self.prop = machine, prop
        self.place = f"property {prop.name!r}"
        self.marks = markings(machine)
        states = [machine.state, *(type(history.initial) for history in histories)]
        if prop.when is not None:
            check_words(prop.when, self.place, states=states, events=machine.events, step=True)
        for word in variables(prop.expected):
            if type(word) is not Variable or word.scope or word.owner not in (machine.state, *machine.events):
                raise TableError(f"{self.place}: what is expected reads `{word}`; it may read the state before the step, and the event")
        self._when = None if prop.when is None else Predicates(machine, histories).test(prop.when)
        self._asks = variables(prop.expected) | (variables(prop.when) if prop.when is not None else frozenset())

    def speaks_of(self, effects: Sequence[object]) -> bool:
        """Whether a step with these effects carries what the property is about; of a state, every taken step does."""
        return self.prop.carrier is self.machine.state or any(self._is_meant(effect) for effect in effects)

    def _is_meant(self, effect: object) -> bool:
        matching = self.prop.matching.items()
        return type(effect) is self.prop.carrier and all(getattr(effect, name) == wanted for name, wanted in matching)

    def expected(self, state: object, event: object) -> object:
        """What must be carried in a step of ``event`` from ``state``."""
        try:
            return value(self.prop.expected, environment(state, event))
        except KeyError as missing:
            word = cast(Variable, missing.args[0])
            raise TableError(
                f"{self.place} expects {word.owner.__name__}.{word.name} also where the event is {type(event).__name__}, which has no "
                f"such field: write when=on({word.owner.__name__})"
            ) from None

    # ── one step ──

    def fault(self, step: StepFunction, state: object, pasts: Pasts, event: object) -> str:
        """How the row that answers carries a wrong value, for some opaque values and counts; empty if it does not."""
        answer = step(state, event)
        if not isinstance(answer, Taken):
            return ""
        for varied, happened in self._variations(answer.row, state, event):
            for marks in self.marks:
                before, now = marked(varied, marks), marked(happened, marks)
                given = step(before, now)
                if given.row is answer.row and isinstance(given, Taken):
                    wrong = self._wrong(given, before, pasts, now)
                    if wrong:
                        return wrong
        return ""

    def _wrong(self, answer: Taken[Any, Any], before: Any, pasts: Pasts, event: Any) -> str:
        if self._when is not None and not self._when(before, pasts, event, Said.TAKEN, answer.effects, answer.state, pasts):
            return ""
        whole = self.prop.carrier is self.machine.state
        carriers = (answer.state,) if whole else tuple(effect for effect in answer.effects if self._is_meant(effect))
        for carrier in carriers:
            given, wanted = getattr(carrier, self.prop.field), self.expected(before, event)
            if given != wanted:
                what = f"{self.prop.carrier.__name__}.{self.prop.field}"
                return f"{what} is {given!r}, expected {wanted!r}, where {self._told(answer.row, before, event)}"
        return ""

    def _told(self, row: Row[Any, Any], state: Any, event: Any) -> str:
        values = environment(state, event)
        words = [w for w in sorted(self._reads(row), key=str) if w in values and _kind(w) in (Kind.OPAQUE, Kind.COUNTER)]
        return ", ".join(f"{w.owner.__name__}.{w.name} = {show_constant(values[w])}" for w in words) or "nothing is opaque"

    # ── what is tried ──

    def _templates(self, row: Row[Any, Any]) -> tuple[object, ...]:
        """What of a row may carry the value: an update, or effects with their conditions."""
        if self.prop.carrier is self.machine.state:
            return () if row.data is None else (getattr(row.data, self.prop.field),)
        return tuple(item for item in row.emit if type(item.effect if isinstance(item, OnlyIf) else item) is self.prop.carrier)

    def _reads(self, row: Row[Any, Any]) -> frozenset[Variable]:
        return frozenset().union(self._asks, *(variables(node) for node in self._templates(row)))

    def _variations(self, row: Row[Any, Any], state: object, event: object) -> Iterator[tuple[object, object]]:
        read = [w for w in self._reads(row) if _kind(w) is Kind.COUNTER and w.owner in (type(state), type(event))]
        most = 2 + max((n for node in (*self._templates(row), self.prop.expected) for n in _compared(node)), default=0)
        beside = [] if row.guard is None else [w for w in variables(row.guard) if _kind(w) is Kind.COUNTER and w not in read]
        yield state, event
        if read:
            ranges = [range(most) for _ in read] + [(getattr(state if w.owner is type(state) else event, w.name), most) for w in beside]
            for values in product(*ranges):
                chosen = dict(zip((*read, *beside), values, strict=True))
                yield _with(state, chosen), _with(event, chosen)

    def projection(self, row: Row[Any, Any]) -> tuple[str, ...]:
        """Fields of the state on which the value depends, opaque ones and counters left out: those are tried here."""
        return tuple(sorted(w.name for w in self._reads(row) if w.owner is self.machine.state and _kind(w) is not Kind.OPAQUE))


def _kind(word: Variable) -> Kind | None:
    field = fields_of(word.owner).get(word.name) if type(word) is Variable else None
    return None if field is None else field.kind


def _compared(node: object) -> Iterator[int]:
    for each in nodes(node):
        if each.op in COMPARES and any(isinstance(arg, Formula) for arg in each.args):
            yield from (arg for arg in each.args if isinstance(arg, int) and not isinstance(arg, bool))


def _with(instance: Any, chosen: Mapping[Variable, object]) -> Any:
    own = {word.name: n for word, n in chosen.items() if word.owner is type(instance)}
    return attrs.evolve(instance, **own) if own else instance


# ── a whole graph ──


def steps_spoken_of(graph: Graph, carrying: Carrying, when: Array | None) -> Array:
    """(event, node) -> whether the property says something of the step."""
    about = np.array([carrying.speaks_of(made) for made in graph.effect_lists], dtype=np.bool_)
    taken = graph.said[graph.row] == list(Said).index(Said.TAKEN)
    spoken: Array = about[graph.effects] & taken & (graph.row >= 0)
    return spoken if when is None else spoken & when


def alike(graph: Graph, carrying: Carrying, rows: Sequence[Row[Any, Any]], row: Array, among: Array) -> Iterator[tuple[int, int, Array]]:
    """(event, nearest node, all such nodes) for each group of the marked pairs whose outcome cannot differ."""
    if not among.any():
        return
    for event, number in np.unique(np.stack([np.nonzero(among)[0], row[among]]), axis=1).T.tolist():
        here = np.flatnonzero(among[event] & (row[event] == number))
        names = carrying.projection(rows[number])
        if not names:
            yield event, int(here[np.argmin(graph.depth[here])]), here
            continue
        keys = np.stack([graph.columns[graph.machine.state, name][here].astype(np.int64) for name in names])
        _, group = np.unique(keys, axis=1, return_inverse=True)
        group = group.ravel()
        for n in range(int(group.max()) + 1):
            same = here[group == n]
            yield event, int(same[np.argmin(graph.depth[same])]), same


def steps_wrong(graph: Graph, carrying: Carrying, spoken: Array) -> Array:
    """(event, node) -> whether the step carries a wrong value."""
    bad = np.zeros_like(spoken)
    generated = graph.machine.generated
    for event, node, same in alike(graph, carrying, graph.rows, graph.row, spoken):
        happened = graph.events[event]
        if carrying.fault(generated[type(happened)], graph.states[node], graph.pasts[node], happened):
            bad[event, same] = True
    return bad


__all__ = ["APART", "Carrying", "alike", "marked", "markings", "steps_spoken_of", "steps_wrong"]
