"""Whether a property is true whatever the machine does: of every combination of values that the types allow.

A step has a shape besides its types: one that is ignored or refused changes nothing and emits nothing. Combinations are listed
if there are at most :data:`LISTED`, else :data:`SAMPLED` of them are drawn (seeded, so a run repeats). One that violates the
property is enough to show that the types do not imply it; a sample without one shows nothing, and the solver decides.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import numpy as np

from turnproof.checkers.columns import Array, Data, code, condition
from turnproof.checkers.graph import Graph
from turnproof.checkers.words import words_of
from turnproof.machines.kernel import Formula, Kind, Variable, fields_of
from turnproof.specs.language import Answered, Emitted, OnEvent, Said

LISTED = 200_000
"""Most combinations that are listed one by one."""
SAMPLED = 50_000


def implied_by_types(graph: Graph, node: object, where: str, *, step: bool) -> int:
    """How many combinations of values satisfy ``node``, if all of them do and all were listed; 0 if one does not, or if it is not known."""
    run = condition(node, where)
    total = 0
    for event in _events(graph, node) if step else (None,):
        axes = _Axes(graph, node, event, step=step)
        data = run(axes)
        if not np.all(data) or not axes.listed:
            return 0
        total += axes.size
    return total


def _events(graph: Graph, node: object) -> Iterator[type]:
    """The event classes that the formula tells apart: those it names, and one of the others."""
    named = {word.owner for word in words_of(node) if isinstance(word, OnEvent)}
    yield from (cls for cls in graph.machine.events if cls in named)
    yield from [cls for cls in graph.machine.events if cls not in named][:1]


class _Axes:
    """One column for each independent word of a formula, together every combination of their values, or a sample of them."""

    def __init__(self, graph: Graph, node: object, event: type | None, *, step: bool) -> None:
        self.graph, self.event, self.step = graph, event, step
        self.domains: dict[object, Array] = {}
        words = words_of(node)
        # Unbounded in production: enough counter values to exceed every number in the formula, enough tokens to differ all from each other.
        self.counter = max(graph.spec.counter, _largest(node)) + 1
        self.tokens = max(graph.spec.tokens, sum(_is_token(word) for word in words))
        for word in words:
            self._add(word, node)
        if step:
            self.domains["said"] = np.arange(len(Said))
        sizes = [len(domain) for domain in self.domains.values()]
        combinations = math.prod(sizes)
        self.listed = combinations <= LISTED
        self.size = combinations if self.listed else SAMPLED
        self.columns = dict(zip(self.domains, self._grid(sizes), strict=True))

    def _add(self, word: Variable, node: object) -> None:
        if isinstance(word, (OnEvent, Answered)):
            return
        if isinstance(word, Emitted):
            self.domains[str(word)] = np.arange(_largest(node) + 2)
            return
        if word.owner in self.graph.machine.events and word.owner is not self.event:
            return
        field = fields_of(word.owner)[word.name]
        values = sorted({code(value, field) for value in field.values(tokens=self.tokens, counter=self.counter)})
        column = np.array(values, dtype=np.bool_ if field.kind is Kind.BOOL else np.int32)
        # What a step that is not taken leaves as it was needs the state before it, too.
        for scope in {word.scope, ""} if self.step else {""}:
            self.domains[word.owner, word.name, scope] = column

    def _grid(self, sizes: Sequence[int]) -> Iterator[Array]:
        domains = list(self.domains.values())
        if self.listed:
            yield from (a.ravel() for a in np.meshgrid(*domains, indexing="ij"))
            return
        chance = np.random.default_rng(0)
        yield from (domain[chance.integers(0, size, SAMPLED)] for domain, size in zip(domains, sizes, strict=True))

    def field(self, variable: Variable) -> Data:
        before = self.columns[variable.owner, variable.name, ""]
        if not variable.scope:
            return before
        return np.where(self._is(Said.TAKEN), self.columns[variable.owner, variable.name, variable.scope], before)

    def on(self, event: type) -> Data:
        return event is self.event

    def answered(self, said: Said) -> Data:
        return self._is(said)

    def _is(self, said: Said) -> Array:
        chosen: Array = self.columns["said"] == list(Said).index(said)
        return chosen

    def emitted(self, pattern: Emitted, fields: Sequence[tuple[str, Data]]) -> Data:
        return np.where(self._is(Said.TAKEN), self.columns[str(pattern)], 0)


def _is_token(word: Variable) -> bool:
    return not isinstance(word, (OnEvent, Answered, Emitted)) and fields_of(word.owner)[word.name].kind is Kind.TOKEN


def _largest(node: object) -> int:
    """The largest number in a formula: a count is compared with nothing above it."""
    if isinstance(node, Formula):
        return max(map(_largest, node.args), default=0)
    return node if isinstance(node, int) and not isinstance(node, bool) else 0


__all__ = ["LISTED", "SAMPLED", "implied_by_types"]
