"""The labelled graph of a compiled walk: every step once more, or those that a bound needs, as arrays of 11 bytes and up an edge."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from threading import Event
from typing import Any

import numpy as np

from turnproof.checkers.columns import Array
from turnproof.checkers.liveness import Edges
from turnproof.checkers.network.compile import structure
from turnproof.checkers.network.compiled import CompiledWalk
from turnproof.checkers.network.kernel.back import edges_of, states_where
from turnproof.checkers.network.kernel.places import Ints, Small
from turnproof.checkers.network.kernel.states import index_rows, resolve
from turnproof.checkers.network.labelled import read_by
from turnproof.checkers.network.promised import by_shard
from turnproof.checkers.network.triggers import Kind
from turnproof.checkers.network.walk import Choice, Trace
from turnproof.checkers.network.within import at_once
from turnproof.machines.kernel import Formula, formula
from turnproof.specs.system import Within
from turnproof.specs.system_words import reads_step

MOST = 62
"""Formulas decided in one pass."""
BATCH = 1 << 18
"""Steps written at a time."""


class CompiledLabels:
    """:class:`turnproof.checkers.network.labelled.Labels` of a compiled walk, for the formulas it was told of.

    ``kept``: trigger -> whether its steps are edges at all; ``also``: formulas of which one makes any step an edge. Without them all are.
    """

    def __init__(
        self,
        walked: CompiledWalk,
        nodes: Sequence[Formula],
        edges: Sequence[Formula],
        *,
        kept: Array | None = None,
        also: Sequence[Formula] = (),
    ) -> None:
        self.walked = walked
        first = walked.home
        self.order = [first, *(s for s in range(len(walked.shards)) if s != first)]
        counts = [walked.shards[s].count for s in self.order]
        self.offset = dict(zip(self.order, np.cumsum([0, *counts[:-1]]).tolist(), strict=True))
        self.nodes = sum(counts)
        self._kept: Array = np.ones(len(walked.triggers), np.bool_) if kept is None else kept
        self._also = {structure(node) for node in also}
        self._node_masks: dict[object, Array] = {}
        self._edge_bits: dict[object, int] = {}
        self.edges, self.label = self._learn(_distinct(nodes), _distinct(edges))

    @classmethod
    def for_bounds(cls, walked: CompiledWalk, bounds: Sequence[Within]) -> CompiledLabels:
        """With those edges only that a bound looks at: where a promise begins, a timer fires, or the runtime does something at once."""
        nodes, edges = read_by(bounds, walked.runner.system)
        kept: Array = np.array([trigger.kind is Kind.EXPIRE for trigger in walked.triggers], np.bool_)
        for prop in bounds:
            kept = kept | at_once(walked.triggers, prop)
        begins = [formula(prop.first, prop.name) for prop in bounds]
        return cls(walked, nodes, edges, kept=kept, also=[first for first in begins if reads_step(first)])

    @property
    def known(self) -> Array:
        """Node -> whether all its steps are edges."""
        return self._known

    def nodes_where(self, node: Formula) -> Array:
        """Node -> whether a formula over states holds."""
        return self._node_masks[structure(node)]

    def edges_where(self, node: Formula) -> Array:
        """Edge -> whether a formula over steps holds."""
        kind = self._holds.dtype.type
        holds: Array = (self._holds & kind(1 << self._edge_bits[structure(node)])).astype(np.bool_)
        return holds

    def choice(self, edge: int) -> Choice:
        """What began the step of an edge."""
        node = int(self.edges.source[edge])
        s = next(s for s in reversed(self.order) if self.offset[s] <= node)
        return self.walked.choice(s, node - self.offset[s], int(self.label[edge]))

    def way_to(self, node: int) -> Trace:
        """A shortest way from the initial node, whatever edges there are."""
        s = next(s for s in reversed(self.order) if self.offset[s] <= node)
        return self.walked.trace(s, node - self.offset[s])

    # ── one pass over everything ──

    def _learn(self, nodes: Sequence[Formula], edges: Sequence[Formula]) -> tuple[Edges, Array]:
        if max(len(nodes), len(edges)) > MOST:
            raise ValueError(
                f"{max(len(nodes), len(edges))} different formulas in promises about the future; at most {MOST} can be judged together"
            )
        on_state, on_step = self._programs(nodes), self._programs(edges)
        self._edge_bits = {structure(node): n for n, node in enumerate(edges)}
        self._begins = sum(1 << n for n, node in enumerate(edges) if structure(node) in self._also)
        self.walked.recompiled()
        self._prepare()
        self._known: Array = np.ones(self.nodes, np.bool_)
        states = np.zeros(self.nodes, np.int64)
        made = by_shard(self.walked.threads, self.order, lambda s, ended: self._shard(s, on_state, on_step, states, ended))
        columns = [[part[n] for parts in made for part in parts] for n in range(4)]
        made.clear()
        source, target, label, self._holds = (np.concatenate(columns.pop(0)) for _ in range(4))
        for n, node in enumerate(nodes):
            self._node_masks[structure(node)] = (states >> n & 1).astype(np.bool_)
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

    def _shard(self, s: int, on_state: Small, on_step: Small, states: Ints, ended: Event) -> list[tuple[Array, Array, Array, Array]]:
        walked, shard, first = self.walked, self.walked.shards[s], self.offset[s]
        a, b, work = walked.arrays.a, walked.arrays.b, walked.places[s].work
        states_where(a, b, work, shard.keys, 0, shard.count, on_state, states[first : first + shard.count])
        room = BATCH + len(walked.triggers)
        keys: Ints = np.zeros((room, shard.layout.words), np.int64)
        label: Small = np.zeros((room, 3), np.int32)
        holds: Ints = np.zeros(room, np.int64)
        row, found = 0, list[tuple[Array, Array, Array, Array]]()
        while row < shard.count and not ended.is_set():
            upto, count = edges_of(a, b, work, shard.keys, row, shard.count, on_step, keys, label, holds, self._known[first:])
            row, made = int(upto), int(count)
            wanted = np.flatnonzero(self._kept[label[:made, 1]] | (holds[:made] & self._begins != 0))
            given, chosen = label[wanted], keys[wanted]
            target: Small = np.zeros(len(wanted), np.int32)
            for d, other in enumerate(walked.shards):
                resolve(chosen, given, len(wanted), d, other.slots, self._numbers[d], target)
            source = (given[:, 0] + first).astype(np.int32)
            found.append((source, target, given[:, 1].astype(np.int16), holds[wanted].astype(_kind(len(on_step)))))
        return found


def _kind(bits: int) -> Any:
    """The smallest kind of number with so many bits."""
    return next(kind for kind in (np.uint8, np.uint16, np.uint32, np.uint64) if bits <= np.iinfo(kind).bits)


def _distinct(formulas: Iterable[Formula]) -> list[Formula]:
    return list({structure(node): node for node in formulas}.values())
