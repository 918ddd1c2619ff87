"""Judging a promise about the future on the graph of a compiled walk: by its components; and, if one is fair, a shortest lasso."""

from __future__ import annotations

from collections.abc import Iterator

import attrs
import numpy as np

from turnproof.checkers.columns import Array
from turnproof.checkers.liveness import Assumption, Edges, Lasso, Region, find_lasso
from turnproof.checkers.network.kernel.fair import AGAIN, FAIR, begun, fair_parts, leading, reach
from turnproof.checkers.network.kernel.places import Bytes, Ints, Small
from turnproof.checkers.network.labelled import Judgement, idle, vacuous
from turnproof.checkers.network.promised import Promised, sides
from turnproof.checkers.network.walk import Choice
from turnproof.specs.language import EventuallyAlways, LeadsTo

VISIT = 1 << 61
"""The bit of "not where it must come again and again": enabled everywhere else, and never taken."""
SHALLOW = 100_000
"""Nodes of a graph in which a lasso is looked for at once; in a larger one it is looked for near the initial state first."""


@attrs.frozen(eq=False)
class Wanted:
    """Where a bad run would be, see :class:`turnproof.checkers.liveness.Region`, as bits of nodes and of steps."""

    weak: int
    strong: int
    first: int = 0
    begins: int = 0
    """``first``, of steps."""
    then: int = 0
    blocked: int = 0
    """``then``, of steps."""
    always: int = 0
    """What holds from some moment on; 0 if this is not the question."""

    @classmethod
    def of(cls, graph: Promised, prop: LeadsTo | EventuallyAlways) -> Wanted:
        """Of a promise that the graph was told of."""
        bits = [graph.asked.assumption(fair) for fair in prop.fairness]
        assumed = sum(set(bits))
        weak, strong = assumed & graph.asked.weak, assumed & graph.asked.strong
        first, *then = (graph.asked.place(side) for side in sides(prop))
        return cls(weak, strong, *first, *then[0]) if then else cls(weak, strong, always=first[0])


def judge(graph: Promised, prop: LeadsTo | EventuallyAlways) -> Judgement:
    """Decide a promise about the future. A lasso is shortest, and fair by itself."""
    question = Question(graph, prop)
    stays = question.stays()
    fair = question.fair(stays & graph.known)
    if fair.any():
        lasso, choices = question.lasso(stays, fair)
        return Judgement(lasso, choices=choices)
    unused = idle(prop, (bool(graph.where(graph.asked.assumption(assumed)).any()) for assumed in prop.fairness))
    if unused:
        return Judgement(vacuous=unused)
    if isinstance(prop, LeadsTo):
        empty = vacuous(prop, question.reached, int(question.entries.sum()), question.stuck)
        if empty:
            return Judgement(vacuous=empty)
    return Judgement(unknown=bool((stays & ~graph.known).any()))


class Question:
    """One promise, asked of one graph."""

    def __init__(self, graph: Promised, prop: LeadsTo | EventuallyAlways) -> None:
        self.graph, self.prop, self.wanted = graph, prop, Wanted.of(graph, prop)
        self.visit: Array | None = ~graph.where(self.wanted.always).view(np.bool_) if self.wanted.always else None
        self.region: Array = ~graph.where(self.wanted.then).view(np.bool_)
        self.reached, self.entries = self._begins()

    def _begins(self) -> tuple[bool, Array]:
        """Whether the promise begins anywhere; and the nodes in which a bad run may begin its stay."""
        graph, wanted = self.graph, self.wanted
        if wanted.always:
            return True, np.arange(graph.nodes) == 0
        if wanted.begins:
            entries: Array = np.zeros(graph.nodes, np.bool_)
            found = begun(graph.target, graph.takes, wanted.begins, wanted.blocked, self.region.view(np.uint8), entries.view(np.uint8))
            return int(found) > 0, entries
        starts = graph.where(wanted.first).view(np.bool_)
        return bool(starts.any()), starts & self.region

    def stays(self) -> Array:
        """Node -> whether a bad run can be there."""
        if not (self.region & ~self.entries).any():
            return self.region
        graph, seen = self.graph, self.entries.copy()
        stack: Small = np.zeros(graph.nodes + 1, np.int32)
        begins = np.flatnonzero(seen)
        stack[: len(begins)] = begins
        region = self.region.view(np.uint8)
        reach(graph.first, graph.target, graph.takes, self.wanted.blocked, region, seen.view(np.uint8), stack, len(begins))
        return seen

    def fair(self, among: Array) -> Array:
        """Node -> whether a fair bad run can visit it again and again, and stay ``among`` these nodes."""
        return fair_nodes(self.graph, among, self.wanted.weak, self.wanted.strong, self.wanted.blocked, self.visit)

    def stuck(self) -> int:
        """How many of the entries have no fair run at all that goes on from there."""
        graph, wanted = self.graph, self.wanted
        # A state where nothing is enabled is fair by its stutter alone. Most graphs need no more than this.
        goal = (graph.does & (wanted.weak | wanted.strong) == 0) | ~graph.known
        leading(graph.first, graph.target, goal.view(np.uint8))
        if (self.entries & ~goal).any():
            goal |= fair_nodes(graph, np.ones(graph.nodes, np.bool_), wanted.weak, wanted.strong)
            leading(graph.first, graph.target, goal.view(np.uint8))
        return int((self.entries & ~goal).sum())

    # ── the lasso ──

    def lasso(self, stays: Array, fair: Array) -> tuple[Lasso, tuple[Choice, ...]]:
        """A shortest lasso, and what begins each of its steps.

        A lasso of n steps has no node farther than n from the initial state. So it is looked for among the nodes not farther than some
        depth, and once more among those not farther than its own length if that is larger.
        """
        graph = self.graph
        deepest = int(graph.depth.max())
        depth = deepest if graph.nodes <= SHALLOW else int(graph.depth[fair].min())
        while True:
            near = graph.depth <= depth
            members = fair if depth == deepest else self.fair(stays & graph.known & near)
            part = Part(self, near) if members.any() else None
            lasso = None if part is None else part.lasso(members)
            if part is not None and lasso is not None and (depth == deepest or lasso.length <= depth):
                return lasso, part.choices(lasso)
            if depth == deepest:
                raise RuntimeError(f"internal error: {self.prop.name!r} has a fair component without a fair run")
            depth = min(deepest, depth + 1 if lasso is None else lasso.length)


class Part:
    """The nodes ``near`` the initial state with the steps between them, as :mod:`turnproof.checkers.liveness` wants them."""

    def __init__(self, question: Question, near: Array) -> None:
        graph = question.graph
        self.question, self.near, self.nodes = question, near, np.flatnonzero(near)
        numbers = np.cumsum(near, dtype=np.int32) - np.int32(1)
        source = np.repeat(np.arange(graph.nodes, dtype=np.int32), np.diff(graph.first))
        inside = near[source] & near[graph.target]
        self.edges = Edges(len(self.nodes), numbers[source[inside]], numbers[graph.target[inside]])
        self.takes: Ints = graph.takes[inside].astype(np.int64)
        self.does: Ints = graph.does[self.nodes]

    def lasso(self, members: Array) -> Lasso | None:
        """A shortest one that ends among ``members``."""
        return find_lasso(self.edges, self._region(), list(self._assumptions()), among=members[self.near])

    def _assumptions(self) -> Iterator[Assumption]:
        asked = self.question.graph.asked
        for fair in self.question.prop.fairness:
            bit = asked.assumption(fair)
            yield Assumption(fair.name, self.does & bit != 0, self.takes & bit != 0, fair.strong)

    def _region(self) -> Region:
        question, wanted = self.question, self.question.wanted
        starts = self.nodes == 0 if wanted.always else self.does & wanted.first != 0
        visit = None if question.visit is None else question.visit[self.near]
        nodes = (question.region & question.graph.known)[self.near]
        return Region(nodes, self.takes & wanted.blocked == 0, starts, self.takes & wanted.begins != 0, visit)

    def choices(self, lasso: Lasso) -> tuple[Choice, ...]:
        """What begins each step."""
        graph, edges = self.question.graph, self.edges
        return tuple(
            graph.choice(int(self.nodes[edges.source[e]]), int(self.nodes[edges.target[e]]), int(self.takes[e]))
            for e in (*lasso.prefix, *lasso.cycle)
        )


def fair_nodes(graph: Promised, among: Array, weak: int, strong: int, blocked: int = 0, visit: Array | None = None) -> Array:
    """Node -> whether a fair run that stays ``among`` these nodes and takes no blocked step can visit it again and again."""
    does, nodes = graph.does, graph.nodes
    if visit is not None:
        does, weak = np.where(visit, does, does | VISIT), weak | VISIT
    fair, todo = np.zeros(nodes, np.bool_), among
    stack, path, at = np.zeros(nodes + 1, np.int32), np.zeros(nodes + 1, np.int32), np.zeros(nodes, np.int64)
    while todo.any():
        index: Small = np.where(todo, np.int32(0), np.int32(nodes + 1))
        found: Bytes = np.zeros(nodes, np.uint8)
        fair_parts(graph.first, graph.target, graph.takes, does, weak, strong, blocked, index, at, stack, path, found)
        fair |= found == FAIR
        # What lacks a strong assumption is taken apart again without the nodes where that is enabled.
        todo = found == AGAIN
    return fair
