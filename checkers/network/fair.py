"""Where fair runs can stay for ever, for graphs too large for the search of :mod:`turnproof.checkers.liveness` alone.

The definition is that module's: a component is fair if every weak assumption is somewhere not enabled or taken inside, and every
strong one taken inside or nowhere enabled; where a strong one is enabled and never taken, the nodes where it is enabled are
removed and the rest is taken apart again. Here all components are treated at once, with arrays.
"""

from __future__ import annotations

from collections.abc import Sequence
from weakref import WeakKeyDictionary

import numpy as np

from turnproof.checkers.columns import Array
from turnproof.checkers.liveness import Assumption, Edges
from turnproof.checkers.network.kernel.graph import components, in_order, reach


class Rows:
    """The edges of a graph, sorted by where they come from (or, ``backwards``, by where they go)."""

    def __init__(self, edges: Edges, *, backwards: bool = False) -> None:
        self.nodes = edges.nodes
        source, target = (edges.target, edges.source) if backwards else (edges.source, edges.target)
        self.first: Array = np.concatenate([[0], np.cumsum(np.bincount(source, minlength=edges.nodes))]).astype(np.int64)
        self.order: Array | None = None
        if len(source) and (source[1:] < source[:-1]).any():
            self.order = np.empty(len(source), np.int64)
            in_order(source.astype(np.int32), self.first.copy(), self.order)
            target = target[self.order]
        self.target: Array = target.astype(np.int32)

    def sorted(self, mask: Array) -> Array:
        """A mask over edges, in the order of the rows, as bytes: the kernel's pointers know no truth values."""
        made: Array = np.ascontiguousarray(mask if self.order is None else mask[self.order]).view(np.uint8)
        return made

    def reachable(self, allowed: Array, starts: Array) -> Array:
        """Node -> whether it can be reached from ``starts`` along ``allowed`` edges."""
        seen = starts.copy()
        stack = np.zeros(self.nodes + 1, np.int32)
        begin = np.flatnonzero(starts)
        stack[: len(begin)] = begin
        reach(self.first, self.target, self.sorted(allowed), seen.view(np.uint8), stack, len(begin))
        return seen

    def components(self, allowed: Array, wanted: Array) -> tuple[Array, int]:
        """Node -> the number of its strongly connected component, -1 outside ``wanted``; and how many there are."""
        component, index = (np.full(self.nodes, -1, np.int32) for _ in range(2))
        low, stack, path = (np.zeros(self.nodes + 1, np.int32) for _ in range(3))
        at = np.zeros(self.nodes, np.int64)
        made = components(self.first, self.target, self.sorted(allowed), wanted.view(np.uint8), component, index, low, at, stack, path)
        return component, int(made)


_FORWARDS: WeakKeyDictionary[Edges, Rows] = WeakKeyDictionary()
_BACKWARDS: WeakKeyDictionary[Edges, Rows] = WeakKeyDictionary()


def rows_of(edges: Edges, *, backwards: bool = False) -> Rows:
    """The rows of a graph, made once: every promise about it asks for the same."""
    known = _BACKWARDS if backwards else _FORWARDS
    if edges not in known:
        known[edges] = Rows(edges, backwards=backwards)
    return known[edges]


def fair_nodes(edges: Edges, rows: Rows, allowed: Array, wanted: Array, fairness: Sequence[Assumption]) -> Array:
    """Node -> whether some fair run, inside ``wanted`` and along ``allowed``, can visit it again and again."""
    fair: Array = np.zeros(edges.nodes, np.bool_)
    todo = wanted.copy()
    while todo.any():
        component, made = rows.components(allowed, todo)
        inside = np.flatnonzero(allowed & (component[edges.source] >= 0) & (component[edges.source] == component[edges.target]))
        mine = component[todo]
        size = np.bincount(mine, minlength=made)
        unfair, unmet = np.zeros(made, np.bool_), np.zeros(edges.nodes, np.bool_)
        again = np.zeros(made, np.bool_)
        for assumption in fairness:
            enabled = np.bincount(mine[assumption.enabled[todo]], minlength=made)
            taken = np.bincount(component[edges.source[inside[assumption.taken[inside]]]], minlength=made) > 0
            if not assumption.strong:
                unfair |= (enabled == size) & ~taken
                continue
            lacking = (enabled > 0) & ~taken
            again |= lacking
            unmet |= assumption.enabled & (component >= 0) & lacking[component]
        settled = ~unfair & ~again
        fair |= (component >= 0) & settled[component]
        # What lacks a strong assumption is taken apart again without the places where that is enabled; the rest is decided.
        todo = (component >= 0) & (again & ~unfair)[component] & ~unmet
    return fair
