"""The set of known states: a hash set with open addressing, or one bit for each possible key."""

from __future__ import annotations

import numpy as np

from turnproof.checkers.network.kernel.jit import compiled, pointer, prefetch
from turnproof.checkers.network.kernel.places import B_COMPONENTS, R_MASK, R_SHIFT, R_WORD, RECORD, RECORDS, Ints, Number, Small
from turnproof.checkers.network.kernel.step import MIX_1, MIX_2

AHEAD = 32
"""How many rows before it is looked at the place of a row is asked of memory; a power of two."""


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
    wanted = rows[at] + 1
    if words > 1:
        return search_wide(rows, at, words, slots, place, last)
    while slots[place] != 0 and slots[place] != wanted:
        place = (place + 1) & last
    return place


@compiled
def search_wide(rows: Ints, at: Number, words: Number, slots: Ints, place: Number, last: Number) -> Number:
    """As :func:`search`, for keys of several words."""
    while slots[place * words] != 0:
        differs = slots[place * words] ^ (rows[at] + 1)
        for n in range(1, words):
            differs |= slots[place * words + n] ^ rows[at + n]
        if differs == 0:
            break
        place = (place + 1) & last
    return place


@compiled
def rehash(old: Ints, new: Ints) -> None:
    """Put everything of one hash set into an empty one. Both are passed through from front to back, so memory keeps up."""
    last, words = len(new) - 1, old.shape[1]
    given, table = pointer(old), pointer(new)
    row = np.empty(words, np.int64)
    held = pointer(row)
    for slot in range(len(old)):
        if given[slot * words] != 0:
            for n in range(words):
                held[n] = given[slot * words + n]
            held[0] -= 1
            place = search(held, np.int64(0), words, table, mix(held, np.int64(0), words) & last, last)
            for n in range(words):
                table[place * words + n] = given[slot * words + n]


@compiled
def insert(
    rows: Ints, start: Number, count: Number, slots: Ints, room: Number, order: Ints, known: Number, append: bool
) -> tuple[Number, Number]:
    """Insert rows into a hash set; new ones are appended to ``order``.

    Returns how many rows were dealt with (less than ``count`` when ``room`` states are held), and how many states are known now.
    """
    last, words, end = len(slots) - 1, rows.shape[1], start + count
    given, table, kept = pointer(rows), pointer(slots), pointer(order)
    places = np.empty(AHEAD, np.int64)
    ahead = pointer(places)
    for row in range(start, min(start + AHEAD, end)):
        ahead[row & (AHEAD - 1)] = mix(given, row * words, words) & last
        prefetch(table, ahead[row & (AHEAD - 1)] * words)
    for row in range(start, end):
        place, at = ahead[row & (AHEAD - 1)], row * words
        if row + AHEAD < end:
            # The place of a later row, so that memory has time to bring it: the rows of a buffer lie anywhere in the set.
            ahead[row & (AHEAD - 1)] = mix(given, (row + AHEAD) * words, words) & last
            prefetch(table, ahead[row & (AHEAD - 1)] * words)
        if words == 1 and table[place] == given[at] + 1:
            continue
        place = search(given, at, words, table, place, last)
        if table[place * words] == 0:
            if known >= room:
                return row - start, known
            table[place * words] = given[at] + 1
            if append:
                kept[known * words] = given[at]
            if words > 1:
                for n in range(1, words):
                    table[place * words + n] = given[at + n]
                    if append:
                        kept[known * words + n] = given[at + n]
            known += 1
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
    given, table, named, words, last = pointer(rows), pointer(slots), pointer(numbers), rows.shape[1], len(slots) - 1
    mine, places = np.empty(count, np.int32), np.empty(count, np.int64)
    made = np.int64(0)
    for i in range(count):
        if label[i, 2] == shard:
            mine[made] = i
            places[made] = mix(given, i * words, words) & last
            made += 1
    for n in range(made):
        if n + AHEAD < made:
            prefetch(table, places[n + AHEAD] * words)
            prefetch(named, places[n + AHEAD])
        target[mine[n]] = named[search(given, mine[n] * words, words, table, places[n], last)]
