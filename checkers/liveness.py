"""Liveness over any labelled graph: a shortest real lasso, under weak and strong fairness.

Theory of operation
===================

A run is a path that never ends, or one that stops for ever somewhere: every state has an implicit stutter, a step that changes
nothing and that no fairness assumption counts as taken. A property fails if some run, fair to every assumption, stays for ever
where it must not. Such a run exists exactly if the region it may stay in has a strongly connected component (a single state with
its stutter is one) in which every assumption can be met:

* weak: some state where it is not enabled, or some edge inside the component that takes it;
* strong: an edge inside the component that takes it, or no state where it is enabled. If it is enabled somewhere and never
  taken, those states are removed and what is left is taken apart again (Streett; E. A. Emerson and C.-L. Lei, 1987).

The component only decides whether there is a counterexample. The one that is shown is found by a second search, breadth first
over (state, assumptions met so far), so that it is a closed walk along real edges and fair by itself: a fair component may
contain unfair cycles, and its states in any other order are no run. Stem and cycle together are as short as possible.

Each trap below is known from another checker, and has a test of its own: an unfair cycle reported, fairness judged on the whole
component while another cycle is shown, a stutter taken for a step, a component printed as a cycle (fabracht/tla-rs#59, #62 to
#66), a component's states taken for its edges (tlaplus/tlaplus#201), success because a bound removed every fair run
(tlaplus/tlaplus#839), success after an evaluation that failed (tlaplus/tlaplus#1440).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence

import attrs
import numpy as np

from turnproof.checkers.columns import Array

BUDGET = 1_000_000
"""Most (state, assumptions met) pairs the search for a short cycle visits before it is content with the shortest so far."""


@attrs.frozen(eq=False)
class Assumption:
    """A fairness assumption over a graph: ``enabled`` says in which nodes, ``taken`` by which edges."""

    name: str
    enabled: Array
    taken: Array
    strong: bool = False


@attrs.frozen(eq=False)
class Edges:
    """A graph: node 0 is initial, edge n goes from ``source[n]`` to ``target[n]``. Stutters are not listed."""

    nodes: int
    source: Array
    target: Array


@attrs.frozen(eq=False)
class Region:
    """Where a bad run would stay for ever: from a start on, only nodes of ``nodes`` and edges of ``edges``.

    A run starts in a node of ``starts``, or with an edge of ``start_edges`` (at its target). With ``visit`` it must also come to
    one of those nodes again and again.
    """

    nodes: Array
    edges: Array
    starts: Array
    start_edges: Array
    visit: Array | None = None


@attrs.frozen
class Lasso:
    """A bad run: the edges of ``prefix``, then those of ``cycle`` for ever; an empty cycle: nothing happens any more."""

    prefix: tuple[int, ...]
    cycle: tuple[int, ...]
    shortest: bool
    """Whether no shorter lasso exists; False if :data:`BUDGET` ended the search."""

    @property
    def length(self) -> int:
        """How many events it takes."""
        return len(self.prefix) + len(self.cycle)


def find_lasso(edges: Edges, region: Region, fairness: Sequence[Assumption], *, among: Array | None = None) -> Lasso | None:
    """A shortest fair run that stays in ``region`` for ever; None if there is none.

    ``among`` are the nodes of its fair components, where the caller has found them already (in a large graph, with faster means).
    """
    kept, walk, members = _fair(edges, region, fairness, among)
    if walk is None or not members:
        return None
    return _shortest(edges, region, kept, walk, members)


def has_lasso(edges: Edges, region: Region, fairness: Sequence[Assumption]) -> bool:
    """Whether a fair run stays in ``region`` for ever; quicker than :func:`find_lasso`, which tells one."""
    _, _, members = _fair(edges, region, fairness, None)
    return bool(members)


def _fair(edges: Edges, region: Region, fairness: Sequence[Assumption], among: Array | None) -> tuple[Array, _Walk | None, set[int]]:
    """The edges inside the region, and the nodes of its fair components that a run can enter."""
    kept = _inside(edges, region)
    initial = np.arange(edges.nodes) == 0
    reached = reachable(edges, np.ones(len(edges.source), dtype=np.bool_), initial)
    region = attrs.evolve(region, starts=region.starts & reached, start_edges=region.start_edges & reached[edges.source])
    pending = reachable(edges, kept, _entries(edges, region))
    if not pending.any():
        return kept, None, set()
    assumptions = [*fairness, *_visiting(edges, region)]
    inside = kept & pending[edges.source] & pending[edges.target]
    if among is not None:
        pending = pending & among
        inside = inside & among[edges.source] & among[edges.target]
    # Passing a start is one more thing a walk can do, as if a step from everywhere else to it were owed.
    start = Assumption("", ~region.starts, region.start_edges)
    walk = _Walk(edges, inside, assumptions, start)
    members = {node for component in walk.fair_components(np.flatnonzero(pending).tolist()) for node in component}
    return kept, walk, members


def reachable(edges: Edges, kept: Array, starts: Array) -> Array:
    """Node -> whether it can be reached from ``starts`` along edges of ``kept``."""
    seen = starts.copy()
    kept = kept & (edges.source != edges.target)
    source, target = edges.source[kept], edges.target[kept]
    front = seen
    while front.any():
        new = np.zeros_like(seen)
        new[target[front[source]]] = True
        front = new & ~seen
        seen |= front
    return seen


def without_fair_run(edges: Edges, fairness: Sequence[Assumption], *, unknown: Array) -> Array:
    """Node -> whether no fair run at all goes on from there, so that whatever is claimed of fair runs is true of it for want of one.

    Nodes of ``unknown`` were not expanded; they are taken to have a fair run.
    """
    backwards = Edges(edges.nodes, edges.target, edges.source)
    everywhere = np.ones(len(edges.source), dtype=np.bool_)
    # A state where nothing is enabled is fair by its stutter alone. Most graphs need no more than this.
    quiet = np.ones(edges.nodes, dtype=np.bool_)
    for assumption in fairness:
        quiet &= ~assumption.enabled
    quiet |= unknown
    fair = reachable(backwards, everywhere, quiet)
    if not fair.all():
        walk = _Walk(edges, everywhere, fairness, Assumption("", np.ones_like(quiet), np.zeros_like(everywhere)))
        for component in walk.fair_components(range(edges.nodes)):
            quiet[list(component)] = True
        fair = reachable(backwards, everywhere, quiet)
    return ~fair


def _inside(edges: Edges, region: Region) -> Array:
    kept: Array = region.edges & region.nodes[edges.source] & region.nodes[edges.target]
    return kept


def _entries(edges: Edges, region: Region) -> Array:
    """The nodes in which a bad run may begin its stay."""
    starts = region.starts & region.nodes
    starts[edges.target[region.start_edges & region.edges]] = True
    starts &= region.nodes
    return starts


def _visiting(edges: Edges, region: Region) -> Iterable[Assumption]:
    """Again and again in ``visit`` is weak fairness of something enabled everywhere else and never taken."""
    if region.visit is not None:
        yield Assumption("", ~region.visit, np.zeros(len(edges.source), dtype=np.bool_))


class _Walk:
    """The part of a graph a bad run may stay in, with what each edge and node does for the assumptions, as bits."""

    def __init__(self, edges: Edges, inside: Array, fairness: Sequence[Assumption], start: Assumption) -> None:
        self.weak = sum(1 << n for n, a in enumerate(fairness) if not a.strong)
        self.strong = sum(1 << n for n, a in enumerate(fairness) if a.strong)
        self.start = 1 << len(fairness)
        every = [*fairness, start]
        self.enabled: list[int] = _bits(edges.nodes, [a.enabled for a in every]).tolist()
        taken = _bits(len(edges.source), [a.taken for a in every])
        chosen = np.flatnonzero(inside)
        # One edge for each (source, target, what it takes) is enough, and a loop that takes nothing is a stutter.
        chosen = chosen[(edges.source[chosen] != edges.target[chosen]) | (taken[chosen] != 0)]
        pairs = edges.source[chosen].astype(np.int64) * edges.nodes + edges.target[chosen]
        _, first = np.unique((pairs << len(every)) | taken[chosen], return_index=True)
        chosen = np.sort(chosen[first])
        self.out: dict[int, list[tuple[int, int, int]]] = {}
        columns = (edges.source[chosen], edges.target[chosen], taken[chosen], chosen)
        for source, target, takes, edge in zip(*(column.tolist() for column in columns), strict=True):
            self.out.setdefault(source, []).append((target, takes, edge))

    def fair_components(self, nodes: Iterable[int]) -> Iterable[list[int]]:
        """Sets of nodes that one fair run can visit again and again."""
        todo = [set(nodes)]
        while todo:
            allowed = todo.pop()
            for component in _components(allowed, self.out):
                enabled_all, enabled_some, taken = self._does(component)
                if self.weak & enabled_all & ~taken:
                    continue
                unmet = self.strong & enabled_some & ~taken
                if not unmet:
                    yield component
                elif rest := {node for node in component if not self.enabled[node] & unmet}:
                    todo.append(rest)

    def _does(self, component: list[int]) -> tuple[int, int, int]:
        enabled_all, enabled_some, taken = -1, 0, 0
        inside = set(component)
        for node in component:
            enabled = self.enabled[node]
            enabled_all &= enabled
            enabled_some |= enabled
            for target, takes, _ in self.out.get(node, ()):
                if takes and target in inside:
                    taken |= takes
        return enabled_all, enabled_some, taken

    def is_fair(self, idle: int, seen: int, taken: int) -> bool:
        """Whether a cycle is fair: ``idle`` was not enabled somewhere, ``seen`` was enabled somewhere, ``taken`` was taken."""
        return not ((self.weak | self.start) & ~(idle | taken)) and not (self.strong & seen & ~taken)

    def cycle(self, anchor: int, *, late: bool, longest: int | None, budget: int | None) -> tuple[tuple[int, ...] | None, int]:
        """The edges of a shortest fair closed walk through ``anchor``, at most ``longest`` of them, and what is left of the budget.

        With ``late`` it must also pass a start.
        """
        left = -1 if budget is None else budget
        every = self.weak | self.strong | self.start
        enabled = self.enabled[anchor]
        start = (anchor, every & ~enabled | (0 if late else self.start), every & enabled, 0)
        if self.is_fair(*start[1:]):
            return (), left
        came: dict[_Met, tuple[_Met, int] | None] = {start: None}
        front = deque([(start, 0)])
        while front:
            here, length = front.popleft()
            if length == longest or left == 0:
                return None, left
            node, idle, seen, taken = here
            for target, takes, edge in self.out.get(node, ()):
                enabled = self.enabled[target]
                after = (target, idle | every & ~enabled, seen | enabled, taken | takes)
                if target == anchor and self.is_fair(*after[1:]):
                    return (*_back(came, here), edge), left
                if after not in came:
                    left -= left > 0
                    came[after] = (here, edge)
                    front.append((after, length + 1))
        return None, left


_Met = tuple[int, int, int, int]
"""A node, and as bits what a walk to it did: assumptions not enabled somewhere, enabled somewhere, taken."""


def _back(came: dict[_Met, tuple[_Met, int] | None], at: _Met) -> tuple[int, ...]:
    edges = []
    while (step := came[at]) is not None:
        at, edge = step
        edges.append(edge)
    return tuple(reversed(edges))


def _bits(length: int, masks: Sequence[Array]) -> Array:
    bits = np.zeros(length, dtype=np.int64)
    for n, mask in enumerate(masks):
        bits |= mask.astype(np.int64) << n
    return bits


def _components(allowed: set[int], out: dict[int, list[tuple[int, int, int]]]) -> Iterable[list[int]]:
    """Strongly connected components of the graph below ``allowed`` (R. Tarjan, 1972), without recursion."""
    index: dict[int, int] = {}
    low: dict[int, int] = {}
    stack: list[int] = []
    on_stack: set[int] = set()
    for root in sorted(allowed):
        if root in index:
            continue
        work = [(root, iter(out.get(root, ())))]
        index[root] = low[root] = len(index)
        stack.append(root)
        on_stack.add(root)
        while work:
            node, edges = work[-1]
            for target, _, _ in edges:
                if target not in allowed:
                    continue
                if target not in index:
                    index[target] = low[target] = len(index)
                    stack.append(target)
                    on_stack.add(target)
                    work.append((target, iter(out.get(target, ()))))
                    break
                if target in on_stack:
                    low[node] = min(low[node], index[target])
            else:
                work.pop()
                if work:
                    low[work[-1][0]] = min(low[work[-1][0]], low[node])
                if low[node] == index[node]:
                    yield _popped(node, stack, on_stack)


def _popped(root: int, stack: list[int], on_stack: set[int]) -> list[int]:
    component = []
    while True:
        node = stack.pop()
        on_stack.discard(node)
        component.append(node)
        if node == root:
            return component


def _shortest(edges: Edges, region: Region, kept: Array, walk: _Walk, members: set[int]) -> Lasso:
    """A shortest lasso through ``members``. Its start lies in the stem, or else in the cycle itself (``late``)."""
    stems = _Stems(edges, region, kept)
    stem, anchor = min((int(stems.length[node]), node) for node in members)
    # The first search must find something, whatever it costs; only improving on it is limited.
    cycle, _ = walk.cycle(anchor, late=False, longest=None, budget=None)
    if cycle is None:
        raise AssertionError("internal error of the liveness engine: a fair component has no fair cycle")
    best, length, budget = (stems.path(anchor), cycle), stem + len(cycle), BUDGET
    anchors = [(int(stems.length[node]), False, node) for node in members]
    anchors += [(int(stems.outside[node]), True, node) for node in members if stems.outside[node] < stems.length[node]]
    for stem, late, anchor in sorted(anchors):
        if stem >= length:
            break
        cycle, budget = walk.cycle(anchor, late=late, longest=length - stem - 1, budget=budget)
        if cycle is not None:
            best, length = (stems.path(anchor, late=late), cycle), stem + len(cycle)
    return Lasso(*best, shortest=budget > 0)


class _Stems:
    """Shortest paths from the initial node to each node of a region, by way of an entry into it."""

    def __init__(self, edges: Edges, region: Region, kept: Array) -> None:
        self.edges = edges
        initial = np.full(edges.nodes, -1, dtype=np.int64)
        initial[0] = 0
        self.outside, self.to = levels(edges, np.ones(len(edges.source), dtype=np.bool_), initial)
        entries = np.where(region.starts & region.nodes, self.outside, -1)
        self.crossing = np.full(edges.nodes, -1, dtype=np.int64)
        for edge in np.flatnonzero(region.start_edges & region.edges & region.nodes[edges.target]).tolist():
            source, target = int(edges.source[edge]), int(edges.target[edge])
            length = int(self.outside[source]) + 1
            if self.outside[source] >= 0 and not 0 <= entries[target] <= length:
                entries[target], self.crossing[target] = length, edge
        self.length, self.inside = levels(edges, kept, entries)

    def path(self, node: int, *, late: bool = False) -> tuple[int, ...]:
        """The edges of the stem to ``node``; of any path to it, if ``late``."""
        path: list[int] = []
        while not late and self.inside[node] >= 0:
            path.append(int(self.inside[node]))
            node = int(self.edges.source[path[-1]])
        if not late and self.crossing[node] >= 0:
            path.append(int(self.crossing[node]))
            node = int(self.edges.source[path[-1]])
        while self.to[node] >= 0:
            path.append(int(self.to[node]))
            node = int(self.edges.source[path[-1]])
        return tuple(reversed(path))


def levels(edges: Edges, kept: Array, entries: Array) -> tuple[Array, Array]:
    """Breadth first along ``kept``: node -> distance (-1: not reached), and the edge by which it is reached (-1: by none).

    ``entries`` gives the distances to begin with, -1 where there is none.
    """
    length = np.full(edges.nodes, -1, dtype=np.int64)
    by = np.full(edges.nodes, -1, dtype=np.int64)
    # A step that stays where it is leads nowhere new, and most steps of most graphs are such.
    numbers = np.flatnonzero(kept & (edges.source != edges.target))
    source, target = edges.source[numbers], edges.target[numbers]
    front = np.zeros(edges.nodes, dtype=np.bool_)
    level, last = 0, int(entries.max(initial=-1))
    while level <= last or front.any():
        arrived = (entries == level) & (length < 0)
        length[arrived] = level
        front = front | arrived
        steps = np.flatnonzero(front[source] & (length[target] < 0))
        found, first = np.unique(target[steps], return_index=True)
        # A node that is itself an entry at the next level needs no edge, but an edge is as short.
        length[found], by[found] = level + 1, numbers[steps[first]]
        front = np.zeros(edges.nodes, dtype=np.bool_)
        front[found] = True
        level += 1
    return length, by


__all__ = ["BUDGET", "Assumption", "Edges", "Lasso", "Region", "find_lasso", "has_lasso", "levels", "reachable", "without_fair_run"]
