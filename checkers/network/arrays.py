"""The tables of a system as the arrays the kernel reads, kept up to date as local states and entries are added."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

import attrs
import numpy as np

from turnproof.checkers.network.kernel import BITS, Ints, Net, Small, Work
from turnproof.checkers.network.tables import Filled, Tables
from turnproof.checkers.network.triggers import Trigger
from turnproof.machines.kernel import Formula


@attrs.frozen(eq=False)
class Layout:
    """Where each component lies in a key, and how wide."""

    widths: tuple[int, ...]
    word: Small
    shift: Ints
    words: int

    @property
    def total(self) -> int:
        """Bits of a whole key."""
        return sum(self.widths)


def layout(widths: Sequence[int]) -> Layout:
    """Each component into the first word that still has room."""
    used: list[int] = []
    word, shift = [], []
    for width in widths:
        place = next((n for n, bits in enumerate(used) if bits + width <= BITS), len(used))
        if place == len(used):
            used.append(0)
        word.append(place)
        shift.append(used[place])
        used[place] += width
    return Layout(tuple(widths), np.array(word, np.int32), np.array(shift, np.int64), max(1, len(used)))


def grown(array: Any, length: int) -> Any:
    """The array with room for ``length`` rows, at least doubled when it must grow; what is new is zero."""
    if length <= len(array):
        return array
    bigger = np.zeros((max(length, 2 * len(array)), *array.shape[1:]), array.dtype)
    bigger[: len(array)] = array
    return bigger


class Arrays:
    """The arrays of one system. :meth:`sync` after every ``tables.fill``, and after formulas were compiled."""

    def __init__(self, tables: Tables) -> None:
        self.tables, self.components = tables, tables.components
        self.count = len(self.components)
        chance = random.Random(20240229)
        self.spread: Ints = np.array([chance.getrandbits(61) | 1 for _ in range(self.count)], np.int64)
        self.layout = layout([max(2, (len(c.locals) - 1).bit_length()) for c in self.components])
        self.trigger: Small = np.array([list(row) for row in tables.rows], np.int32).reshape(-1, 4)
        self.entry: Small = np.zeros((64, 5), np.int32)
        self.out: Small = np.zeros((64, 2), np.int32)
        self.inc: Small = np.zeros((64, 2), np.int32)
        self.entries = self.outs = self.incs = 0
        self.widest = 1
        self.relevant = [[(n, t) for n, t in enumerate(tables.triggers) if self._concerns(t, comp)] for comp in range(self.count)]
        self.rebuild()

    def _concerns(self, trigger: Trigger, comp: int) -> bool:
        tables = self.tables
        if comp == tables.index[trigger.where] or (trigger.budget >= 0 and comp == tables.first_budget + trigger.budget):
            return True
        return tables.forbids_by_guard(trigger, comp)

    # ── everything anew, and what was added ──

    def rebuild(self) -> None:
        """Lay out everything again: after new formulas were compiled, or when a component outgrew its room."""
        compiler = self.tables.compiler
        self.words = max(1, -(-(len(self.tables.triggers) + len(compiler.clauses)) // BITS))
        self.room = [(max(16, 2 * len(c.locals)), max(4, 2 * len(c.inputs))) for c in self.components]
        sizes = [locals_ * inputs for locals_, inputs in self.room]
        self.offset: Ints = np.cumsum([0, *sizes[:-1]]).astype(np.int64)
        self.stride: Ints = np.array([inputs for _, inputs in self.room], np.int64)
        self.table: Small = np.full(sum(sizes), -1, np.int32)
        self.atoms: list[list[tuple[int, Formula]]] = [[] for _ in self.components]
        for n, clause in enumerate(compiler.clauses):
            for comp, node in clause.atoms:
                self.atoms[comp].append((len(self.tables.triggers) + n, node))
        self.numbers = [[node for c, node in compiler.numbers if c == comp] for comp in range(self.count)]
        lengths = [locals_ for locals_, _ in self.room]
        self.bits_offset: Ints = np.cumsum([0, *[n * self.words for n in lengths[:-1]]]).astype(np.int64)
        self.bits: Ints = np.zeros(sum(lengths) * self.words, np.int64)
        self.values_count: Ints = np.array([len(n) for n in self.numbers], np.int64)
        self.values_offset: Ints = np.cumsum([0, *[n * len(k) for n, k in zip(lengths, self.numbers, strict=True)][:-1]]).astype(np.int64)
        self.values: Ints = np.zeros(max(1, sum(n * len(k) for n, k in zip(lengths, self.numbers, strict=True))), np.int64)
        self.described = [0] * self.count
        self.entries = self.outs = self.incs = 0
        self._programs()
        self.sync()

    def sync(self) -> bool:
        """Bring the arrays up to date. Whether the layout of keys is too narrow now (``widen`` makes a new one)."""
        for comp, component in enumerate(self.components):
            if len(component.locals) > self.room[comp][0] or len(component.inputs) > self.room[comp][1]:
                self.rebuild()
                break
        for comp, component in enumerate(self.components):
            for local in range(self.described[comp], len(component.locals)):
                self._describe(comp, local, component.locals[local])
            self.described[comp] = len(component.locals)
        for filled in self.tables.entries[self.entries :]:
            self._enter(filled)
        return any(len(c.locals) > 1 << w for c, w in zip(self.components, self.layout.widths, strict=True))

    def widen(self) -> Layout:
        """A layout with room for every local state known, and some more where one component outgrew its own."""
        old = self.layout.widths
        wanted = [(len(c.locals) - 1).bit_length() for c in self.components]
        return layout([w if n <= w else n + (n < 12) for n, w in zip(wanted, old, strict=True)])

    def _describe(self, comp: int, local: int, state: Any) -> None:
        row = [0] * self.words
        for number, trigger in self.relevant[comp]:
            if self.tables.forbids(trigger, comp, state):
                row[number // BITS] |= 1 << (number % BITS)
        for bit, node in self.atoms[comp]:
            if not row[bit // BITS] >> (bit % BITS) & 1 and self.tables.decide(node, comp, state):
                row[bit // BITS] |= 1 << (bit % BITS)
        at = int(self.bits_offset[comp]) + local * self.words
        self.bits[at : at + self.words] = row
        at = int(self.values_offset[comp]) + local * len(self.numbers[comp])
        for n, node in enumerate(self.numbers[comp]):
            self.values[at + n] = self.tables.compiler.number_of(self.tables.decide(node, comp, state))

    def _enter(self, filled: Filled) -> None:
        counted = list(self.tables.counted(filled))
        self.entry = grown(self.entry, self.entries + 1)
        self.out, self.inc = grown(self.out, self.outs + len(filled.outs)), grown(self.inc, self.incs + len(counted))
        for n, out in enumerate(filled.outs):
            self.out[self.outs + n] = out
        for n, count in enumerate(counted):
            self.inc[self.incs + n] = count
        self.entry[self.entries] = (filled.after, self.outs, self.outs + len(filled.outs), self.incs, self.incs + len(counted))
        self.table[self.offset[filled.component] + filled.local * self.stride[filled.component] + filled.given] = self.entries
        self.entries, self.outs, self.incs = self.entries + 1, self.outs + len(filled.outs), self.incs + len(counted)
        self.widest = max(self.widest, len(filled.outs))

    def _programs(self) -> None:
        codes = self.tables.compiler.programs
        self.code: Ints = np.array([step for code in codes for step in code], np.int64).reshape(-1, 2)
        ends = np.cumsum([0, *(len(code) for code in codes)])
        self.programs: Small = np.stack([ends[:-1], ends[1:]], axis=1).astype(np.int32)
        count = len(self.tables.triggers)
        self.every: Ints = np.array([sum(1 << b for b in range(min(BITS, count - w))) for w in range(0, max(1, count), BITS)], np.int64)

    # ── for the kernel ──

    def net(self) -> Net:
        """The arrays as they are now."""
        widths = np.array(self.layout.widths, np.int64)
        watched = [n for n in range(self.count) if self.relevant[n] or self.atoms[n]]
        return Net(
            word=self.layout.word,
            shift=self.layout.shift,
            mask=(np.int64(1) << widths) - 1,
            queued=np.array([c.queued for c in self.components], np.int32),
            table=self.table,
            offset=self.offset,
            stride=self.stride,
            entry=self.entry,
            out=self.out,
            inc=self.inc,
            bits=self.bits,
            bits_offset=self.bits_offset,
            watched=np.array(watched, np.int32),
            values=self.values,
            values_offset=self.values_offset,
            values_count=self.values_count,
            every=self.every,
            trigger=self.trigger,
            code=self.code,
            programs=self.programs,
            spread=self.spread,
            bound=np.array([self.tables.system.cascade, self.words, self.layout.words], np.int64),
        )

    def work(self) -> Work:
        """Room for one thread, enough for every entry known now."""
        deliveries = self.tables.system.cascade + 2
        deepest = max((len(code) for code in self.tables.compiler.programs), default=0) + 2
        return Work(
            cur=np.zeros(self.count, np.int32),
            before=np.zeros(self.count, np.int32),
            key=np.zeros(self.layout.words, np.int64),
            sat=np.zeros(self.words, np.int64),
            after=np.zeros(self.words, np.int64),
            queue=np.zeros((deliveries * (self.widest + 1), 2), np.int32),
            log=np.zeros((deliveries * (self.widest + 2), 2), np.int32),
            counts=np.zeros(max(1, len(self.tables.compiler.counts)), np.int64),
            touched=np.zeros(max(1, len(self.tables.compiler.counts)), np.int32),
            stack=np.zeros(deepest, np.int64),
            enabled=np.zeros(max(1, len(self.tables.triggers)), np.int32),
            note=np.zeros(8, np.int64),
        )

    @property
    def memory(self) -> int:
        """Bytes of the arrays."""
        return sum(a.nbytes for a in (self.table, self.entry, self.out, self.inc, self.bits, self.values))
