"""The set of known states: a hash set with open addressing, or one bit for each possible key."""

from __future__ import annotations

import numpy as np

from turnproof.checkers.network.kernel.jit import compiled, pointer
from turnproof.checkers.network.kernel.places import B_COMPONENTS, R_MASK, R_SHIFT, R_WORD, RECORD, RECORDS, Ints, Number, Small
from turnproof.checkers.network.kernel.step import MIX_1, MIX_2

AHEAD = 32
"""Rows whose places are fetched from memory together."""


@compiled
def mix(rows: Ints, at: Number, words: Number) -> Number:
    """A hash of the row that begins at ``at``."""
    h = rows[at] * MIX_2
    h = (h ^ ((h >> 29) & 0x7FFFFFFFF)) * MIX_1
    if words > 1:
        for n in range(1, words):
            h = (h ^ rows[at + n]) * MIX_2
            h = (h ^ ((h >> 29) & 0x7FFFFFFFF)) * MIX_1
    return int(h ^ ((h >> 32) & 0xFFFFFFFF))


@compiled
def search(rows: Ints, at: Number, words: Number, slots: Ints, place: Number, last: Number) -> Number:
    """The slot of a row, or the empty one where it belongs, from ``place`` on. Of the first word, one more is kept: 0 is empty."""
    while True:
        seen = slots[place * words]
        if seen == 0:
            return place
        if seen == rows[at] + 1:
            differs = np.int64(0)
            if words > 1:
                for n in range(1, words):
                    differs |= slots[place * words + n] ^ rows[at + n]
            if differs == 0:
                return place
        place = (place + 1) & last


@compiled
def insert(
    rows: Ints, start: Number, count: Number, slots: Ints, room: Number, order: Ints, known: Number, append: bool
) -> tuple[Number, Number]:
    """Insert rows into a hash set; new ones are appended to ``order``.

    Returns how many rows were dealt with (less than ``count`` when ``room`` states are held), and how many states are known now.
    """
    last, words = len(slots) - 1, rows.shape[1]
    given, table, kept = pointer(rows), pointer(slots), pointer(order)
    places, firsts = np.empty(AHEAD, np.int64), np.empty(AHEAD, np.int64)
    ahead, looked = pointer(places), pointer(firsts)
    done = start
    while done < start + count:
        group = min(AHEAD, start + count - done)
        # Addresses first, then all first looks: these wait for memory together instead of one after the other.
        for k in range(group):
            ahead[k] = mix(given, (done + k) * words, words) & last
        for k in range(group):
            looked[k] = table[ahead[k] * words]
        for k in range(group):
            at = (done + k) * words
            if words == 1 and looked[k] == given[at] + 1:
                continue
            if known >= room:
                return done + k - start, known
            place = search(given, at, words, table, ahead[k], last)
            if table[place * words] == 0:
                table[place * words] = given[at] + 1
                if append:
                    kept[known * words] = given[at]
                if words > 1:
                    for n in range(1, words):
                        table[place * words + n] = given[at + n]
                        if append:
                            kept[known * words + n] = given[at + n]
                known += 1
        done += group
    return count, known


@compiled
def mark(
    rows: Ints, start: Number, count: Number, table: Ints, room: Number, order: Ints, known: Number, append: bool
) -> tuple[Number, Number]:
    """As :func:`insert`, for keys so narrow that one bit for each possible key is less than a hash set."""
    for row in range(start, start + count):
        key = rows[row, 0]
        bit = np.int64(1) << (key & 63)
        if table[key >> 6] & bit:
            continue
        if known >= room:
            return row - start, known
        table[key >> 6] |= bit
        if append:
            order[known, 0] = key
        known += 1
    return count, known


@compiled
def repack(b: Ints, old: Ints, count: Number, word: Small, shift: Ints, new: Ints) -> None:
    """Rows in the network's layout as rows of another."""
    for i in range(count):
        for n in range(new.shape[1]):
            new[i, n] = 0
        for comp in range(b[B_COMPONENTS]):
            record = RECORDS + comp * RECORD
            local = (old[i, b[record + R_WORD]] >> b[record + R_SHIFT]) & b[record + R_MASK]
            new[i, word[comp]] += local << shift[comp]


@compiled
def index_rows(keys: Ints, count: Number, slots: Ints, numbers: Small, offset: Number) -> None:
    """Give each slot of a hash set the number of its row."""
    last, words = len(slots) - 1, keys.shape[1]
    for i in range(count):
        place = mix(pointer(keys), i * words, words) & last
        numbers[search(pointer(keys), i * words, words, pointer(slots), place, last)] = offset + i


@compiled
def resolve(rows: Ints, label: Small, count: Number, shard: Number, slots: Ints, numbers: Small, target: Small) -> None:
    """The numbers of those rows that lie in ``shard``."""
    last, words = len(slots) - 1, rows.shape[1]
    for i in range(count):
        if label[i, 2] == shard:
            place = mix(pointer(rows), i * words, words) & last
            target[i] = numbers[search(pointer(rows), i * words, words, pointer(slots), place, last)]
