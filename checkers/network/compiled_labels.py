"""The labelled graph of a compiled walk: every step once more, as arrays of 13 bytes and up an edge."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from turnproof.checkers.columns import Array
from turnproof.checkers.liveness import Edges
from turnproof.checkers.network.compile import structure
from turnproof.checkers.network.compiled import CompiledWalk
from turnproof.checkers.network.kernel.back import edges_of, states_where
from turnproof.checkers.network.kernel.places import Ints, Small
from turnproof.checkers.network.kernel.states import index_rows, resolve
from turnproof.checkers.network.walk import Choice
from turnproof.machines.kernel import Formula

MOST = 62
"""Formulas decided in one pass."""
BATCH = 1 << 18
"""Steps written at a time."""


class CompiledLabels:
    """:class:`turnproof.checkers.network.labelled.Labels` of a compiled walk, for the formulas it was told of."""

    def __init__(self, walked: CompiledWalk, nodes: Sequence[Formula], edges: Sequence[Formula]) -> None:
        self.walked = walked
        first = walked.home
        self.order = [first, *(s for s in range(len(walked.shards)) if s != first)]
        counts = [walked.shards[s].count for s in self.order]
        self.offset = dict(zip(self.order, np.cumsum([0, *counts[:-1]]).tolist(), strict=True))
        self.nodes = sum(counts)
        self._node_masks: dict[object, Array] = {}
        self._edge_masks: dict[object, Array] = {}
        self.edges, self.label = self._learn(_distinct(nodes), _distinct(edges))

    @property
    def known(self) -> Array:
        """Node -> whether all its steps are edges."""
        return self._known

    def nodes_where(self, node: Formula) -> Array:
        """Node -> whether a formula over states holds."""
        return self._node_masks[structure(node)]

    def edges_where(self, node: Formula) -> Array:
        """Edge -> whether a formula over steps holds."""
        return self._edge_masks[structure(node)]

    def choice(self, edge: int) -> Choice:
        """What began the step of an edge."""
        node = int(self.edges.source[edge])
        s = next(s for s in reversed(self.order) if self.offset[s] <= node)
        return self.walked.choice(s, node - self.offset[s], int(self.label[edge]))

    # ── one pass over everything ──

    def _learn(self, nodes: Sequence[Formula], edges: Sequence[Formula]) -> tuple[Edges, Array]:
        if max(len(nodes), len(edges)) > MOST:
            raise ValueError(
                f"{max(len(nodes), len(edges))} different formulas in promises about the future; at most {MOST} can be judged together"
            )
        on_state, on_step = self._programs(nodes), self._programs(edges)
        self.walked.recompiled()
        self._prepare()
        self._known: Array = np.ones(self.nodes, np.bool_)
        states = np.zeros(self.nodes, np.int64)
        parts = [part for s in self.order for part in self._shard(s, on_state, on_step, states)]
        source, target, label, holds = (np.concatenate([part[n] for part in parts]) for n in range(4))
        for n, node in enumerate(nodes):
            self._node_masks[structure(node)] = (states >> n & 1).astype(np.bool_)
        for n, node in enumerate(edges):
            self._edge_masks[structure(node)] = (holds >> holds.dtype.type(n) & holds.dtype.type(1)).astype(np.bool_)
        return Edges(self.nodes, source, target), label

    def _programs(self, formulas: Sequence[Formula]) -> Small:
        compiler = self.walked.tables.compiler
        return np.array([(n, compiler.program(node)) for n, node in enumerate(formulas)], np.int32).reshape(-1, 2)

    def _prepare(self) -> None:
        self._numbers: dict[int, Small] = {}
        for s, shard in enumerate(self.walked.shards):
            shard.index_by_slots(len(shard.slots))
            self._numbers[s] = np.zeros(len(shard.slots), np.int32)
            index_rows(shard.keys, shard.count, shard.slots, self._numbers[s], self.offset[s])

    def _shard(self, s: int, on_state: Small, on_step: Small, states: Ints) -> Iterator[tuple[Array, Array, Array, Array]]:
        walked, shard, first = self.walked, self.walked.shards[s], self.offset[s]
        a, b, work = walked.arrays.a, walked.arrays.b, walked.places[0].work
        states_where(a, b, work, shard.keys, 0, shard.count, on_state, states[first : first + shard.count])
        room = BATCH + len(walked.triggers)
        keys: Ints = np.zeros((room, shard.layout.words), np.int64)
        label: Small = np.zeros((room, 3), np.int32)
        holds: Ints = np.zeros(room, np.int64)
        row = 0
        while row < shard.count:
            upto, count = edges_of(a, b, work, shard.keys, row, shard.count, on_step, keys, label, holds, self._known[first:])
            row, made = int(upto), int(count)
            target: Small = np.zeros(made, np.int32)
            for d, other in enumerate(walked.shards):
                resolve(keys, label, made, d, other.slots, self._numbers[d], target)
            source = (label[:made, 0] + first).astype(np.int32)
            yield source, target, label[:made, 1].astype(np.int16), holds[:made].astype(_kind(len(on_step)))


def _kind(bits: int) -> Any:
    """The smallest kind of number with so many bits."""
    return next(kind for kind in (np.uint8, np.uint16, np.uint32, np.uint64) if bits <= np.iinfo(kind).bits)


def _distinct(formulas: Sequence[Formula]) -> list[Formula]:
    return list({structure(node): node for node in formulas}.values())
