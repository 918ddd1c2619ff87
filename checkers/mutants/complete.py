"""The whole graph of a mutant: the original's steps where they are unchanged, its own elsewhere."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import attrs
import numpy as np

from turnproof.checkers.columns import Array
from turnproof.checkers.graph import Graph
from turnproof.checkers.mutants.world import Table, World
from turnproof.machines.kernel import HOLE

if TYPE_CHECKING:
    from turnproof.checkers.mutants.trial import Trial

SELDOM = 512
"""New nodes stepped before their steps are judged: a mutant that goes far astray is killed on the way."""


def completed(world: World, trial: Trial) -> Graph | str:
    """The graph of the mutant; or, if a step on the way breaks something, what it breaks."""
    return _Search(world, trial).run()


@attrs.frozen(eq=False, kw_only=True, slots=False)
class Completed(Graph):
    """A graph whose columns are taken over from the original."""

    columns: Mapping[tuple[type, str], Array]


class _Search:
    """Breadth first over both kinds of node at once."""

    def __init__(self, world: World, trial: Trial) -> None:
        self.world, self.trial, self.graph = world, trial, world.original.graph
        self.explored, self.first_extra = self.graph.explored, world.first_extra
        self.row, self.successor, self.effects = self.graph.row.copy(), self.graph.successor.copy(), self.graph.effects.copy()
        self.seen = np.zeros(self.first_extra, dtype=np.bool_)
        self.columns: dict[int, int] = {}
        """Extra node -> its column in the tables below."""
        self.tables: list[Table] = []
        self.order: list[Array] = []
        self.reached: list[tuple[Array, Array]] = []
        self.levels: list[int] = []

    def run(self) -> Graph | str:
        front = np.array([0], dtype=np.int64)
        self._visit(front, np.array([-1]), np.array([-1]))
        while len(front):
            own = front[front < self.explored]
            extra = [n for n in front[front >= self.first_extra].tolist() if self.world.expanded(n)]
            by = self._patch(own) or self._step(extra)
            if by:
                return by
            front = self._next(own, np.array(extra, dtype=np.int64))
        return self._graph()

    def _patch(self, nodes: Array) -> str:
        """Step the pairs of these nodes that may differ and were not needed before."""
        by = self.trial.step(nodes) if len(nodes) and self.trial.open[:, nodes].any() else ""
        here = slice(self.world.block.start, self.world.block.stop)
        self.row[here, nodes] = self.trial.row[:, nodes]
        self.successor[here, nodes] = self.trial.successor[:, nodes]
        self.effects[here, nodes] = self.trial.effects[:, nodes]
        return by

    def _step(self, nodes: list[int]) -> str:
        from turnproof.checkers.mutants.trial import breach

        for at in range(0, len(nodes), SELDOM):
            portion = nodes[at : at + SELDOM]
            table = self._stepped(portion)
            self.columns.update({node: len(self.columns) + n for n, node in enumerate(portion)})
            self.tables.append(table)
            by = breach(self.world, np.array(portion, dtype=np.int64), table, self.graph.events, self.graph.blocks)
            if by:
                return by
        return ""

    def _stepped(self, nodes: list[int]) -> Table:
        shape = (len(self.graph.events), len(nodes))
        table = Table(np.full(shape, -1, dtype=np.int32), np.full(shape, -1, dtype=np.int64), np.zeros(shape, dtype=np.int32))
        for n, node in enumerate(nodes):
            for event in range(len(self.graph.events)):
                if self.world.allows(node, event):
                    table.row[event, n], table.successor[event, n], table.effects[event, n] = self.world.step(node, event)
        return table

    def _column(self, nodes: Array) -> Array:
        return np.array([self.columns[n] for n in nodes.tolist()], dtype=np.int64)

    def _next(self, own: Array, extra: Array) -> Array:
        successor = self.successor[:, own].astype(np.int64)
        if len(extra):
            every = np.concatenate([table.successor for table in self.tables], axis=1)
            successor = np.concatenate([successor, every[:, self._column(extra)]], axis=1)
        sources = np.concatenate([own, extra])
        known = np.concatenate([self.seen, np.zeros(len(self.world.extra) + self.first_extra - len(self.seen), dtype=np.bool_)])
        self.seen = known
        fresh = (successor >= 0) & ~known[np.maximum(successor, 0)]
        node, event = np.nonzero(fresh.T)
        found, first = np.unique(successor.T[node, event], return_index=True)
        self._visit(found, sources[node[first]], event[first])
        return found

    def _visit(self, nodes: Array, parents: Array, events: Array) -> None:
        self.seen[nodes] = True
        self.order.append(nodes)
        self.reached.append((parents, events))
        self.levels.append(len(nodes))

    # ── as a graph ──

    def _graph(self) -> Graph:
        world, graph = self.world, self.graph
        order = np.concatenate(self.order)
        parents, events = (np.concatenate(part) for part in zip(*self.reached, strict=True))
        depth = np.repeat(np.arange(len(self.levels)), self.levels)
        inside = np.array([world.expanded(n) for n in order.tolist()], dtype=np.bool_)
        by_bounds = np.argsort(~inside, kind="stable")
        order, parents, events, depth = order[by_bounds], parents[by_bounds], events[by_bounds], depth[by_bounds]
        number = np.full(len(self.seen) + 1, -1, dtype=np.int64)
        number[order] = np.arange(len(order))
        explored = int(inside.sum())
        table = self._table(order[:explored])
        successor = number[table.successor]
        cut = int(((successor >= explored) & (table.row >= 0) & (successor != np.arange(explored))).sum())
        at = [world.at(n) for n in order.tolist()]
        machine = world.mutant.built(world.original.machine)
        names = {row.name: n for n, row in enumerate((*machine.rows, HOLE))}
        of_row = np.array([*(names.get(row.name, -1) for row in world.rows), -1], dtype=np.int32)
        return Completed(
            spec=graph.spec,
            machine=machine,
            events=graph.events,
            states=tuple(state for state, _ in at),
            pasts=tuple(pasts for _, pasts in at),
            explored=explored,
            row=of_row[table.row],
            successor=np.ascontiguousarray(successor.astype(np.int32)),
            effects=table.effects,
            effect_lists=tuple(world.effect_lists),
            parent=number[parents].astype(np.int32),
            parent_event=events.astype(np.int32),
            depth=depth.astype(np.int32),
            cut=cut,
            to_depth=graph.to_depth,
            seconds=0.0,
            columns=dict(world.columns(order)),
        )

    def _table(self, nodes: Array) -> Table:
        extra = nodes >= self.first_extra
        column = np.where(extra, 0, nodes)
        column[extra] = self.explored + self._column(nodes[extra])
        own = Table(self.row, self.successor, self.effects)
        every = [own, *self.tables]
        return Table(*(np.concatenate([getattr(t, part) for t in every], axis=1)[:, column] for part in ("row", "successor", "effects")))


__all__ = ["completed"]
