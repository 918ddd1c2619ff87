"""One part of the set of known states: its members in the order in which they were found, and an index that says what is known."""

from __future__ import annotations

import numpy as np

from turnproof.checkers.network.arrays import Layout
from turnproof.checkers.network.kernel.places import Ints
from turnproof.checkers.network.kernel.states import insert, mark, rehash, repack

LOAD = 0.75
"""Most of a hash set that is filled before it is doubled."""
SMALLEST = 1 << 10
NARROW = 1 << 17
"""Bytes that a table of bits may take in any case; more only if a hash set would take more."""


class Full(Exception):
    """More memory is needed than the walk may use. ``needed`` is how much more, in bytes."""

    def __init__(self, needed: int) -> None:
        super().__init__(f"{needed} bytes more")
        self.needed = needed


class Shard:
    """``keys[:count]`` are the states, oldest first; ``levels[k]`` is where those k steps from the start begin."""

    def __init__(self, layout: Layout) -> None:
        self.layout = layout
        self.keys: Ints = np.zeros((SMALLEST, layout.words), np.int64)
        self.count = 0
        self.levels: list[int] = []
        self.allowed = 1 << 62
        """Bytes that this shard may take."""
        self.narrow = False
        self.slots: Ints = np.zeros((0, 1), np.int64)
        self.bits: Ints = np.zeros(0, np.int64)
        self._index(SMALLEST)

    @property
    def memory(self) -> int:
        """Bytes in use or set aside."""
        return self.keys.nbytes + self.slots.nbytes + self.bits.nbytes

    @property
    def room(self) -> int:
        """States that fit before something must grow."""
        return len(self.keys) if self.narrow else min(len(self.keys), int(len(self.slots) * LOAD))

    def add(self, rows: Ints, count: int) -> None:
        """Add the rows that are new. Raises :class:`Full`."""
        start = 0
        while start < count:
            if self.narrow:
                done, known = mark(rows, start, count - start, self.bits, self.room, self.keys, self.count, True)
            else:
                done, known = insert(rows, start, count - start, self.slots, self.room, self.keys, self.count, True)
            start, self.count = start + int(done), int(known)
            if start < count:
                self._grow()

    def _grow(self) -> None:
        if self.count >= len(self.keys):
            more = max(SMALLEST, len(self.keys) // 2)
            self._may(more * self.keys.itemsize * self.layout.words)
            # In place: the block is moved by the system where it can be, and nothing else refers to it between two calls.
            self.keys.resize((len(self.keys) + more, self.layout.words), refcheck=False)
        if not self.narrow and self.count >= int(len(self.slots) * LOAD):
            self._may(2 * self.slots.nbytes)
            bigger: Ints = np.zeros((2 * len(self.slots), self.layout.words), np.int64)
            rehash(self.slots, bigger)
            self.slots = bigger

    def _may(self, more: int) -> None:
        if self.memory + more > self.allowed:
            raise Full(self.memory + more - self.allowed)

    def _index(self, slots: int) -> None:
        """An index with that many slots, or of bits if that is smaller; of the layout as it is now."""
        words = self.layout.words
        as_bits = (1 << self.layout.total) // 8 if words == 1 and self.layout.total < 40 else 1 << 62
        self.narrow = as_bits <= max(NARROW, slots * 8)
        self.bits = np.zeros(max(1, as_bits // 8) if self.narrow else 0, np.int64)
        self.slots = np.zeros((0, words), np.int64)
        if self.narrow:
            mark(self.keys, 0, self.count, self.bits, 1 << 62, self.keys, 0, False)
        else:
            self.index_by_slots(slots)

    def index_by_slots(self, slots: int = 0) -> None:
        """Index by a hash set, whatever is smaller."""
        while int(slots * LOAD) <= self.count:
            slots = max(SMALLEST, 2 * slots)
        self.narrow, self.bits = False, np.zeros(0, np.int64)
        self.slots = np.zeros((slots, self.layout.words), np.int64)
        insert(self.keys, 0, self.count, self.slots, 1 << 62, self.keys, 0, False)

    def relay(self, b: Ints, layout: Layout) -> None:
        """Turn the keys from the layout that ``b`` describes into ``layout``."""
        keys: Ints = np.zeros((len(self.keys), layout.words), np.int64)
        repack(b, self.keys, self.count, layout.word, layout.shift, keys)
        self.keys, self.layout = keys, layout
        self._index(max(SMALLEST, len(self.slots)))
