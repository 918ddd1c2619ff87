"""How long it takes at most until something holds, if nobody helps: computed from the timers alone, over a whole labelled graph.

The question. From some steps on, the environment is silent: no answer, no abort, no message. What still happens is that running
timers fire, and that the runtime does at once what it does at once (it reads a state, it delivers). How much time can pass, at most,
until the goal is reached, and along which way?

How it is answered. Two nodes with the same silent future are one: the graph is first taken together by what runs, fires and is done
at once (the coarsest bisimulation, by refinement of signatures), which leaves a few hundred kinds of node of a million. Over those, all
timed runs are followed together: the present moment and each running timer's deadline are intervals counted from the beginning. A
timer that had been running before has any deadline up to its duration; one that starts at a known moment has that moment plus its
duration. Timer ``t`` may be the next to fire if its deadline can come before every other's::

    moment of firing in [max(now.lo, t.lo), min over all running timers of their hi]

Every real run is among those that are followed, so the greatest moment at which the goal is reached is a true bound; it is attained
up to what intervals forget of how two moments depend on each other.

No bound at all is a finding: a kind of node where nothing runs and nothing is done at once, or a run that goes on beyond ``cap_ms``.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import attrs
import numpy as np

from turnproof.checkers.columns import Array

UNBOUNDED = np.iinfo(np.int64).max // 4
"""Milliseconds that stand for "no bound"."""
CAP_MS = 24 * 3_600_000
"""A silent run of a day is taken for one without end."""
MOST = 500_000
"""Timed kinds of node that are followed before the search gives up."""
JOIN = 50
"""Timed states of one kind of node that are kept apart."""
AT_ONCE = -1


class TooMany(RuntimeError):
    """More timed runs than can be followed; the answer is not known."""


@attrs.frozen(eq=False, kw_only=True)
class Clock:
    """One timer over a graph. ``runs``: in which nodes; ``fires``: which edges are its expiry; ``starts``: which edges start it."""

    name: str
    milliseconds: int
    runs: Array
    fires: Array
    starts: Array


@attrs.frozen(eq=False, kw_only=True)
class Silent:
    """A graph with nobody to help, and where the silence begins."""

    nodes: int
    source: Array
    target: Array
    at_once: Array
    """Edge -> whether the runtime takes it at once; where one leaves a node, no time passes there."""
    clocks: tuple[Clock, ...]
    goal: Array
    begins: Array
    """Node -> whether the silence may begin there, every running timer having run for any time."""
    begin_edges: Array
    """Edge -> whether the silence may begin with it: the timers it starts have just been started. It may be any edge of the graph."""
    cap_ms: int = CAP_MS
    """A run that goes on for longer is not followed to its end: there is no bound below that."""


@attrs.frozen
class Move:
    """One step of the longest way: its edge, and the latest moment at which it happens, in milliseconds from the beginning."""

    edge: int
    by_ms: int


@attrs.frozen
class Longest:
    """The greatest bound, the node at the beginning of its way, and the way."""

    milliseconds: int
    start: int
    way: tuple[Move, ...]
    beginnings: int
    kinds: int
    """Kinds of node after those with the same silent future are taken together."""

    @property
    def bounded(self) -> bool:
        """Whether there is a bound at all."""
        return self.milliseconds < UNBOUNDED


def longest(graph: Silent) -> Longest:
    """The bound over all beginnings; 0 where there is none. Raises :class:`TooMany`."""
    kinds = _Kinds(graph)
    beginnings = kinds.beginnings()
    if not beginnings:
        return Longest(0, 0, (), 0, 0)
    search = _Search(graph, kinds)
    worst = search.run(list(beginnings))
    first = beginnings[worst.beginning]
    way = kinds.way(first, worst.moves)
    return Longest(worst.by_ms, first, way, kinds.count_beginnings(), kinds.count)


# ── nodes with the same silent future ──

Label = tuple[int, int, int]
"""Clock that fires (AT_ONCE: none), the clocks it starts as bits, kind of the target."""


class _Kinds:
    """The coarsest bisimulation of the silent graph, on the nodes that a beginning leads to."""

    def __init__(self, graph: Silent) -> None:
        self.graph = graph
        fires = np.full(len(graph.source), AT_ONCE - 1, np.int64)
        self.started: Array = np.zeros(len(graph.source), np.int64)
        for n, clock in enumerate(graph.clocks):
            fires[clock.fires] = n
            self.started |= clock.starts.astype(np.int64) << n
        fires[graph.at_once] = AT_ONCE
        # A read that changes nothing is no reason for time to stand still.
        urgent = np.zeros(graph.nodes, np.bool_)
        urgent[graph.source[graph.at_once & (graph.source != graph.target)]] = True
        used = ~graph.goal[graph.source] & np.where(urgent[graph.source], fires == AT_ONCE, fires >= 0)
        used &= ~((fires == AT_ONCE) & (graph.source == graph.target))
        starts = graph.begins.copy()
        starts[graph.target[graph.begin_edges]] = True
        inside = _reached(graph, used, starts & ~graph.goal)
        self.edge = np.flatnonzero(used & inside[graph.source])
        self.source, self.target = graph.source[self.edge], graph.target[self.edge]
        self.fires, self.starts = fires[self.edge], self.started[self.edge]
        self.runs: Array = np.zeros(graph.nodes, np.int64)
        for n, clock in enumerate(graph.clocks):
            self.runs |= clock.runs.astype(np.int64) << n
        self.inside, self.urgent = inside, urgent
        self.kind = self._refined()
        self.count = int(self.kind.max()) + 1

    def _refined(self) -> Array:
        """Node -> its kind; kind 0 is the goal, and whatever no beginning leads to is left there."""
        # Only these nodes are looked at; all of the goal is one.
        nodes = np.flatnonzero(self.inside & ~self.graph.goal)
        place: Array = np.zeros(self.graph.nodes, np.int64)
        place[nodes] = 1 + np.arange(len(nodes))
        source, target = place[self.source], place[self.target]
        label = _mix(self.fires * 1_000_003 + self.starts * 8_191)
        _, kind = np.unique(np.concatenate([[-1], self.runs[nodes] * 2 + self.urgent[nodes]]), return_inverse=True)
        kinds = int(kind.max()) + 1
        while True:
            mixed = _mix(label + kind[target].astype(np.int64))
            _, first = np.unique(_mix(mixed + source), return_index=True)
            signature = np.zeros(len(nodes) + 1, np.int64)
            np.add.at(signature, source[first], mixed[first])
            _, kind = np.unique(_mix(signature + kind), return_inverse=True)
            found = int(kind.max()) + 1
            if found == kinds:
                made: Array = kind[place]
                return made
            kinds = found

    def beginnings(self) -> dict[tuple[int, int], int]:
        """(kind, clocks just started) -> one node where the silence begins so."""
        graph = self.graph
        made: dict[tuple[int, int], int] = {}
        edges = np.flatnonzero(graph.begin_edges & ~graph.goal[graph.target])
        for node, started in ((graph.target[edges], self.started[edges]), (np.flatnonzero(graph.begins & ~graph.goal), None)):
            bits = np.zeros(len(node), np.int64) if started is None else started
            pairs = np.stack([self.kind[node].astype(np.int64), bits])
            for (kind, mask), place in zip(*_distinct(pairs), strict=True):
                made.setdefault((int(kind), int(mask)), int(node[place]))
        return made

    def count_beginnings(self) -> int:
        """Nodes in which the silence may begin."""
        starts = self.graph.begins.copy()
        starts[self.graph.target[self.graph.begin_edges]] = True
        return int((starts & ~self.graph.goal).sum())

    def quotient(self) -> dict[int, list[Label]]:
        """Kind -> its moves."""
        table = np.unique(np.stack([self.kind[self.source].astype(np.int64), self.fires, self.starts, self.kind[self.target]]), axis=1)
        made: dict[int, list[Label]] = {}
        for kind, fires, starts, target in table.T.tolist():
            made.setdefault(kind, []).append((fires, starts, target))
        return made

    def running(self) -> dict[int, tuple[int, ...]]:
        """Kind -> the clocks that run there."""
        kinds, places = np.unique(self.kind, return_index=True)
        every = range(len(self.graph.clocks))
        return {int(k): tuple(n for n in every if self.runs[place] >> n & 1) for k, place in zip(kinds, places, strict=True)}

    def goal_kinds(self) -> set[int]:
        """Kinds that are at the goal."""
        return {int(k) for k in np.unique(self.kind[self.graph.goal])}

    def way(self, node: int, moves: Sequence[tuple[Label, int]]) -> tuple[Move, ...]:
        """Real edges from ``node`` for the moves of a way over kinds: bisimilar nodes have them all."""
        made: list[Move] = []
        for (fires, starts, target), by in moves:
            mine = np.flatnonzero(
                (self.source == node) & (self.fires == fires) & (self.starts == starts) & (self.kind[self.target] == target)
            )
            made.append(Move(int(self.edge[mine[0]]), by))
            node = int(self.target[mine[0]])
        return tuple(made)


def _mix(values: Array) -> Array:
    """Spread 64-bit numbers, so that sums of them tell sets apart."""
    mixed = values.astype(np.uint64)
    mixed = (mixed ^ (mixed >> np.uint64(31))) * np.uint64(0x9E3779B97F4A7C15)
    mixed = (mixed ^ (mixed >> np.uint64(29))) * np.uint64(0xBF58476D1CE4E5B9)
    made: Array = (mixed ^ (mixed >> np.uint64(32))).astype(np.int64)
    return made


def _distinct(pairs: Array) -> tuple[list[list[int]], list[int]]:
    if not pairs.shape[1]:
        return [], []
    found, places = np.unique(pairs, axis=1, return_index=True)
    return found.T.tolist(), places.tolist()


def _reached(graph: Silent, used: Array, starts: Array) -> Array:
    """Node -> whether silent steps lead there from a start."""
    edges = np.flatnonzero(used)
    order = edges[np.argsort(graph.source[edges], kind="stable")]
    first = np.searchsorted(graph.source[order], np.arange(graph.nodes + 1))
    ahead = graph.target[order]
    seen: Array = starts.copy()
    front = np.flatnonzero(starts)
    while len(front):
        counts = first[front + 1] - first[front]
        places = np.repeat(first[front] - np.concatenate([[0], np.cumsum(counts)[:-1]]), counts) + np.arange(int(counts.sum()))
        front = np.unique(ahead[places])
        front = front[~seen[front]]
        seen[front] = True
    return seen


# ── all timed runs together ──

Timed = tuple[int, int, int, tuple[tuple[int, int], ...]]
"""Kind of node, earliest and latest present moment, earliest and latest deadline of each clock that runs there."""


@attrs.frozen
class _Worst:
    by_ms: int
    beginning: tuple[int, int]
    moves: tuple[tuple[Label, int], ...]


def _joined(one: Timed, other: Timed) -> Timed:
    """The least timed state that covers both."""
    deadlines = tuple((min(a, c), max(b, d)) for (a, b), (c, d) in zip(one[3], other[3], strict=True))
    return one[0], min(one[1], other[1]), max(one[2], other[2]), deadlines


def _covers(wide: Timed, narrow: Timed) -> bool:
    """Whether every run from ``narrow`` is one from ``wide``, and none of them later: it need not be followed."""
    _, low, high, deadlines = wide
    if low > narrow[1] or high < narrow[2]:
        return False
    return all(lo <= a and hi >= b for (lo, hi), (a, b) in zip(deadlines, narrow[3], strict=True))


class _Search:
    """Breadth first over timed kinds of node."""

    def __init__(self, graph: Silent, kinds: _Kinds) -> None:
        self.cap_ms = graph.cap_ms
        self.durations = [clock.milliseconds for clock in graph.clocks]
        self.moves, self.running, self.goals = kinds.quotient(), kinds.running(), kinds.goal_kinds()
        self.came: dict[Timed, tuple[Timed | None, Label | None, tuple[int, int]]] = {}
        self.widest: dict[int, dict[Timed, None]] = {}
        """Kind -> the timed states that no other covers."""

    def run(self, beginnings: list[tuple[int, int]]) -> _Worst:
        """The latest moment at which a run reaches the goal, or one that need not."""
        queue: list[Timed] = []
        for kind, started in beginnings:
            deadlines = tuple((self.durations[c] if started >> c & 1 else 0, self.durations[c]) for c in self.running[kind])
            self._add((kind, 0, 0, deadlines), None, None, (kind, started), queue)
        worst = queue[0]
        for state in queue:
            if len(self.came) > MOST:
                raise TooMany(f"more than {MOST:,} timed runs differ")
            if state not in self.widest[state[0]]:
                continue
            if state[0] in self.goals:
                worst = max(worst, state, key=lambda s: s[2] if s[0] in self.goals else -1)
                continue
            after = list(self._after(state))
            if not after or state[2] > self.cap_ms:
                return self._told(state, UNBOUNDED)
            for label, then in after:
                self._add(then, state, label, self.came[state][2], queue)
        return self._told(worst, worst[2])

    def _add(self, state: Timed, before: Timed | None, label: Label | None, beginning: tuple[int, int], queue: list[Timed]) -> None:
        if state in self.came:
            return
        widest = self.widest.setdefault(state[0], {})
        if any(_covers(other, state) for other in widest):
            return
        if len(widest) >= JOIN:
            # Too many differ only in when: one that covers this and another is followed instead. Nothing is lost but sharpness.
            state = _joined(next(reversed(widest)), state)
            if state in self.came:
                return
        for other in [other for other in widest if _covers(state, other)]:
            del widest[other]
        widest[state] = None
        self.came[state] = (before, label, beginning)
        queue.append(state)

    def _after(self, state: Timed) -> Iterator[tuple[Label, Timed]]:
        kind, low, high, deadlines = state
        clocks = dict(zip(self.running[kind], deadlines, strict=True))
        latest = min((hi for _, hi in deadlines), default=UNBOUNDED)
        for label in self.moves.get(kind, ()):
            fires, started, target = label
            begin, end = (low, high) if fires == AT_ONCE else (max(low, clocks[fires][0]), latest)
            if begin > end:
                continue
            made = tuple(self._deadline(c, started, clocks if c != fires else {}, begin, end) for c in self.running[target])
            yield label, (target, begin, end, () if target in self.goals else made)

    def _deadline(self, clock: int, started: int, before: dict[int, tuple[int, int]], begin: int, end: int) -> tuple[int, int]:
        if started >> clock & 1:
            return begin + self.durations[clock], end + self.durations[clock]
        # One that runs and was neither running nor started was held, with anything left.
        low, high = before.get(clock, (begin, end + self.durations[clock]))
        return max(low, begin), high

    def _told(self, state: Timed, by_ms: int) -> _Worst:
        moves: list[tuple[Label, int]] = []
        at: Timed | None = state
        beginning = self.came[state][2]
        while at is not None:
            before, label, _ = self.came[at]
            if label is not None:
                moves.append((label, at[2]))
            at = before
        return _Worst(by_ms, beginning, tuple(reversed(moves)))


__all__ = ["CAP_MS", "UNBOUNDED", "Clock", "Longest", "Move", "Silent", "TooMany", "longest"]
