"""The tables of a system as the arrays the kernel reads, kept up to date as local states and entries are added."""

from __future__ import annotations

import random
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import attrs
import numpy as np

from turnproof.checkers.network.compile import Code
from turnproof.checkers.network.kernel import places as at
from turnproof.checkers.network.kernel.places import BITS, Ints, Small
from turnproof.checkers.network.kernel.step import lowest_bits
from turnproof.checkers.network.tables import Filled, Tables
from turnproof.machines.kernel import Formula, TableError

MISSING_ROOM = 4096
"""Entries asked for at a time."""
KEY_BITS = BITS
"""Bits of a word that a key fills."""


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
        place = next((n for n, bits in enumerate(used) if bits + width <= KEY_BITS), len(used))
        if place == len(used):
            used.append(0)
        word.append(place)
        shift.append(used[place])
        used[place] += width
    return Layout(tuple(widths), np.array(word, np.int32), np.array(shift, np.int64), max(1, len(used)))


def height(code: Code) -> int:
    """The most values that a program has on its stack."""
    now = most = 0
    for op, _ in code:
        now += 1 if op <= at.COUNT else 0 if op == at.NOT else -2 if op == at.CHOOSE else -1
        most = max(most, now)
    return most


class Arrays:
    """The arrays ``a`` and ``b`` of one system. :meth:`sync` after every ``tables.fill``, :meth:`rebuild` after formulas were compiled."""

    def __init__(self, tables: Tables, asked_once: int = 0) -> None:
        self.tables, self.components, self.asked_once = tables, tables.components, asked_once
        self.count = len(self.components)
        chance = random.Random(20240229)
        self.spread = [chance.getrandbits(61) | 1 for _ in range(self.count)]
        self.layout = layout([tables.width(comp) for comp in range(self.count)])
        self.widest = 4
        self.laid = 0
        """How often everything was laid out: what was made for one layout is of no use with another."""
        self.relevant = [[n for n in range(len(tables.triggers)) if tables.concerns(n, comp)] for comp in range(self.count)]
        self.rebuild()

    # ── everything anew ──

    def rebuild(self) -> None:
        """Lay out everything again: after new formulas were compiled, or when a component outgrew its room."""
        compiler, triggers = self.tables.compiler, len(self.tables.triggers)
        self.words = max(1, -(-(triggers + len(compiler.clauses)) // BITS))
        self.row = self.words + -(-triggers // BITS)
        self._sizes()
        # Much room for states, which keep coming; inputs are mostly known from the start.
        self.room = [(max(64, 4 * len(c.locals)), len(c.inputs) + 4) for c in self.components]
        self.atoms: list[list[tuple[int, Formula]]] = [[] for _ in self.components]
        for n, clause in enumerate(compiler.clauses):
            for comp, node in clause.atoms:
                self.atoms[comp].append((triggers + n, node))
        self.numbers = [[node for c, node in compiler.numbers if c == comp] for comp in range(self.count)]
        self.described, self.entered = [0] * self.count, 0
        self._lay_b()
        self._lay_a()
        self.relay(self.layout)
        self.sync()

    def _sizes(self) -> None:
        tables = self.tables
        deepest = max((height(code) for code in tables.compiler.programs), default=0)
        for what, found, most in (
            ("parts, channels and budgets", self.count, at.MOST_COMPONENTS),
            ("words of triggers and conditions", self.row, at.MOST_CLAUSE_WORDS),
            ("values at once in one formula", deepest, at.MOST_STACK),
        ):
            if found > most:
                raise TableError(f"system {tables.system.name} has {found:,} {what}; the compiled engine takes {most:,}")

    def _lay_b(self) -> None:
        """Header, records, bits of all triggers, instructions, then clause bits and numbers of every local state."""
        triggers = len(self.tables.triggers)
        code = [number for program in self.tables.compiler.programs for step in program for number in step]
        every = [sum(1 << n for n in range(min(BITS, triggers - first))) for first in range(0, triggers, BITS)]
        ruled = [0] * len(every)
        for n, row in enumerate(self.tables.rows):
            ruled[n // BITS] |= (row[at.T_PROGRAM] >= 0) << (n % BITS)
        head = at.RECORDS + at.RECORD * self.count
        sizes = [locals_ * (self.row + len(numbers)) for (locals_, _), numbers in zip(self.room, self.numbers, strict=True)]
        # Three more than are used: the kernel reads four words of a row at once, however few it has.
        b: Ints = np.zeros(head + 2 * len(every) + len(code) + sum(sizes) + 3, np.int64)
        b[at.B_COMPONENTS], b[at.B_TRIGGERS], b[at.B_CLAUSE_WORDS], b[at.B_ROW] = self.count, triggers, self.words, self.row
        b[at.B_CASCADE], b[at.B_TRIGGER_WORDS] = self.tables.system.cascade, len(every)
        b[at.LOWEST : at.LOWEST + 64] = lowest_bits()
        b[at.B_EVERY], b[at.B_RULED], b[at.B_CODE] = head, head + len(every), head + 2 * len(every)
        free = head + 2 * len(every) + len(code)
        b[head:free] = [*every, *ruled, *code]
        for comp, component in enumerate(self.components):
            record = at.RECORDS + at.RECORD * comp
            locals_, inputs = self.room[comp]
            b[record + at.R_QUEUED], b[record + at.R_STRIDE], b[record + at.R_SPREAD] = component.queued, inputs, self.spread[comp]
            b[record + at.R_BITS], b[record + at.R_VALUES] = free, free + locals_ * self.row
            b[record + at.R_VALUES_COUNT], b[record + at.R_ROOM] = len(self.numbers[comp]), locals_
            free += locals_ * (self.row + len(self.numbers[comp]))
        self.b = b
        self._lay_work()

    def _lay_work(self) -> None:
        """Where things lie in w, which has room for entries of up to ``widest`` outputs."""
        deliveries = self.tables.system.cascade + 2
        counts = len(self.tables.compiler.counts)
        free = at.FREE
        for place, size in (
            (at.B_QUEUE, 2 * deliveries * (self.widest + 1)),
            (at.B_LOG, 2 * deliveries * (self.widest + 2)),
            (at.B_READ, deliveries * (self.widest + 2)),
            (at.B_COUNTS, counts),
            (at.B_TOUCHED, counts),
            (at.B_ENABLED, len(self.tables.triggers)),
            (at.B_ASKED_ONCE, self.asked_once),
            (at.B_QUIET_SEEN, self.row - self.words),
            (at.B_MISSING, 3 * MISSING_ROOM),
        ):
            self.b[place], free = free, free + size
        self.b[at.B_MISSING_ROOM] = MISSING_ROOM
        self.work_size = free

    def _lay_a(self) -> None:
        """Triggers, programs, tables; then entries as they come."""
        programs = np.cumsum([0, *(len(code) for code in self.tables.compiler.programs)]).tolist()
        parts: tuple[tuple[int, list[int]], ...] = (
            (at.B_TRIGGER, [number for row in self.tables.rows for number in row]),
            (at.B_PROGRAM, [end for pair in pairwise(programs) for end in pair]),
        )
        head = [number for _, numbers in parts for number in numbers]
        free = 0
        for place, numbers in parts:
            self.b[place], free = free, free + len(numbers)
        for comp, (locals_, inputs) in enumerate(self.room):
            self.b[at.RECORDS + at.RECORD * comp + at.R_TABLE], free = free, free + locals_ * inputs
        self.a: Small = np.full(2 * free + 1024, -1, np.int32)
        self.a[: len(head)] = head
        self.free = free

    def relay(self, new: Layout) -> None:
        """Lay keys out so from now on."""
        if new.words > at.MOST_WORDS:
            raise TableError(
                f"system {self.tables.system.name}: a state takes {new.words} words; the compiled engine takes {at.MOST_WORDS}"
            )
        self.layout, self.laid = new, self.laid + 1
        self.b[at.B_WORDS] = new.words
        for comp, width in enumerate(new.widths):
            record = at.RECORDS + at.RECORD * comp
            self.b[record + at.R_WORD], self.b[record + at.R_SHIFT] = new.word[comp], new.shift[comp]
            self.b[record + at.R_MASK] = (1 << width) - 1

    # ── what was added ──

    def sync(self) -> bool:
        """Bring the arrays up to date. Whether the layout of keys is too narrow now (``widened`` gives a new one)."""
        if any(len(c.locals) > room[0] or len(c.inputs) > room[1] for c, room in zip(self.components, self.room, strict=True)):
            self.rebuild()
        for comp, component in enumerate(self.components):
            for local in range(self.described[comp], len(component.locals)):
                self._describe(comp, local, component.locals[local])
            self.described[comp] = len(component.locals)
        self._enter(self.tables.entries[self.entered :])
        self.entered = len(self.tables.entries)
        return any(len(c.locals) > 1 << w for c, w in zip(self.components, self.layout.widths, strict=True))

    def widened(self) -> Layout:
        """A layout with room for every local state known; for twice as many where a component outgrew its own, if that costs no word more.

        A new layout means that every key is written anew, so it should not be needed again when there are many; but each step copies
        and compares every word of a key, so a word is worth more.
        """
        wanted = [max(1, (len(c.locals) - 1).bit_length()) for c in self.components]
        roomy = layout([w if n <= w else n + 1 for n, w in zip(wanted, self.layout.widths, strict=True)])
        exact = layout(wanted)
        return exact if exact.words < roomy.words else roomy

    def _describe(self, comp: int, local: int, state: Any) -> None:
        row, decided = [0] * self.words, dict[int, bool]()
        for number in self.relevant[comp]:
            if self.tables.forbids(number, comp, state, decided):
                row[number // BITS] |= 1 << (number % BITS)
        for bit, node in self.atoms[comp]:
            if not row[bit // BITS] >> (bit % BITS) & 1 and self.tables.decide(node, comp, state):
                row[bit // BITS] |= 1 << (bit % BITS)
        record = at.RECORDS + at.RECORD * comp
        first = int(self.b[record + at.R_BITS]) + local * self.row
        self.b[first : first + self.words] = row
        first = int(self.b[record + at.R_VALUES]) + local * len(self.numbers[comp])
        for n, node in enumerate(self.numbers[comp]):
            self.b[first + n] = self.tables.compiler.number_of(self.tables.decide(node, comp, state))

    def _enter(self, entries: Sequence[Filled]) -> None:
        """Put entries behind those there are, and their places into the tables; all at once, because one by one takes as long as a step."""
        made: list[int] = []
        where: list[int] = []
        places: list[int] = []
        tables = [int(self.b[at.RECORDS + at.RECORD * comp + at.R_TABLE]) for comp in range(self.count)]
        strides = [inputs for _, inputs in self.room]
        quiet = {(comp, given): n for n, (budget, comp, given, _) in enumerate(self.tables.rows) if budget < 0}
        counts = bool(self.tables.compiler.counts)
        for filled in entries:
            place = self.free + len(made)
            counted = [number for pair in self.tables.counted(filled) for number in pair] if counts else []
            outs = [number for out in filled.outs for number in out]
            first, middle = place + at.ENTRY, place + at.ENTRY + len(outs)
            made += (filled.after, first, middle, middle, middle + len(counted), *outs, *counted)
            where.append(tables[filled.component] + filled.local * strides[filled.component] + filled.given)
            if filled.after == filled.local and not outs and not counted and (filled.component, filled.given) in quiet:
                self._hush(filled.component, filled.local, quiet[filled.component, filled.given])
            places.append(place)
        if self.free + len(made) > len(self.a):
            self.a = np.concatenate([self.a, np.full(len(self.a) + len(made), -1, np.int32)])
        self.a[self.free : self.free + len(made)] = made
        self.a[where] = places
        self.free += len(made)
        widest = max((len(filled.outs) for filled in entries), default=0)
        if widest > self.widest:
            self.widest = 2 * widest
            self._lay_work()

    def _hush(self, comp: int, local: int, trigger: int) -> None:
        """Note that the trigger leaves this local state of its component, and all else, as it is."""
        row = int(self.b[at.RECORDS + at.RECORD * comp + at.R_BITS]) + local * self.row + self.words
        self.b[row + trigger // BITS] |= 1 << (trigger % BITS)

    # ── for the kernel ──

    def work(self) -> Ints:
        """Room for one thread."""
        return np.zeros(self.work_size, np.int64)

    @property
    def memory(self) -> int:
        """Bytes of the arrays."""
        return int(self.a.nbytes + self.b.nbytes)
