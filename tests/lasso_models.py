"""Tiny labelled graphs for the tests of liveness."""

from __future__ import annotations

from collections.abc import Sequence

import attrs
import numpy as np

from turnproof.checkers.liveness import Assumption, Edges, Lasso, Region, find_lasso


@attrs.frozen(eq=False)
class Model:
    """Edges as (from, to, label). A fairness assumption is about a label, and enabled where an edge of it leaves."""

    edges: Sequence[tuple[int, int, str]]
    nodes: int

    def graph(self) -> Edges:
        return Edges(self.nodes, np.array([e[0] for e in self.edges]), np.array([e[1] for e in self.edges]))

    def fair(self, label: str, *, strong: bool = False) -> Assumption:
        """Fairness of the edges with this label that change something."""
        taken = np.array([e[2] == label and e[0] != e[1] for e in self.edges])
        enabled = np.zeros(self.nodes, dtype=bool)
        enabled[[e[0] for e, takes in zip(self.edges, taken, strict=True) if takes]] = True
        return Assumption(label, enabled, taken, strong)

    def region(self, *, starts: set[int], stays: set[int], visit: set[int] | None = None) -> Region:
        none = np.zeros(len(self.edges), dtype=bool)
        return Region(
            nodes=self.mask(stays),
            edges=~none,
            starts=self.mask(starts),
            start_edges=none,
            visit=None if visit is None else self.mask(visit),
        )

    def mask(self, nodes: set[int]) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
        return np.array([n in nodes for n in range(self.nodes)])

    def leads_to(self, first: set[int], then: set[int], *fairness: Assumption) -> Lasso | None:
        return find_lasso(self.graph(), self.region(starts=first, stays=set(range(self.nodes)) - then), fairness)

    def eventually_always(self, holds: set[int], *fairness: Assumption) -> Lasso | None:
        everywhere = set(range(self.nodes))
        return find_lasso(self.graph(), self.region(starts={0}, stays=everywhere, visit=everywhere - holds), fairness)

    def told(self, lasso: Lasso | None) -> tuple[list[int], list[int]]:
        """The nodes of the prefix and of the cycle, after checking that each edge begins where the one before it ends."""
        assert lasso is not None
        at, nodes = 0, [0]
        for edge in (*lasso.prefix, *lasso.cycle):
            assert self.edges[edge][0] == at, "two edges that do not meet"
            at = self.edges[edge][1]
            nodes.append(at)
        turn = len(lasso.prefix)
        assert nodes[turn] == at, "the cycle does not close"
        return nodes[: turn + 1], nodes[turn + 1 :]
