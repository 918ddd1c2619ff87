"""After the walk: searching back for a shortest trace, and the steps once more as edges with what holds of them."""

from __future__ import annotations

import numpy as np

from turnproof.checkers.network.kernel.jit import compiled, pointer
from turnproof.checkers.network.kernel.places import B_ENABLED, B_TRIGGERS, B_WORDS, KEY, OK, SPREAD, Ints, Number, Small, Truths
from turnproof.checkers.network.kernel.step import clauses_after, enabled, evaluate, perform, shard_of, undo, unpack


@compiled
def predecessor(a: Small, b: Ints, w: Ints, keys: Ints, first: Number, last: Number, target: Ints) -> tuple[Number, Number]:
    """The first row among ``first`` to ``last`` - 1, and the first trigger, that leads to ``target``; -1, -1 if none does."""
    pa, pb, pw = pointer(a), pointer(b), pointer(w)
    for i in range(first, last):
        unpack(pb, pw, pointer(keys), i)
        for e in range(enabled(pa, pb, pw)):
            t = w[b[B_ENABLED] + e]
            found = perform(pa, pb, pw, t) == OK
            for n in range(b[B_WORDS]):
                found = found and w[KEY + n] == target[n]
            undo(pb, pw)
            if found:
                return i, t
    return -1, -1


@compiled
def edges_of(
    a: Small,
    b: Ints,
    w: Ints,
    keys: Ints,
    first: Number,
    last: Number,
    questions: Small,
    target: Ints,
    label: Small,
    holds: Ints,
    known: Truths,
) -> tuple[Number, Number]:
    """Every step from rows ``first`` to ``last`` - 1: its target, its row, trigger and target's shard, which questions hold of it.

    ``known`` becomes false for a row with a step that is not followed. Stops before the arrays are full: gives the row not dealt
    with yet, and how many steps were written.
    """
    pa, pb, pw, made = pointer(a), pointer(b), pointer(w), 0
    for i in range(first, last):
        if made + b[B_TRIGGERS] > len(target):
            return i, made
        unpack(pb, pw, pointer(keys), i)
        for e in range(enabled(pa, pb, pw)):
            t = w[b[B_ENABLED] + e]
            if perform(pa, pb, pw, t) == OK:
                clauses_after(pb, pw)
                for n in range(b[B_WORDS]):
                    target[made, n] = w[KEY + n]
                label[made, 0], label[made, 1], label[made, 2] = i, t, shard_of(w[SPREAD])
                holds[made] = which(pa, pb, pw, pointer(questions), len(questions))
                made += 1
            else:
                known[i] = False
            undo(pb, pw)
    return last, made


@compiled
def which(a: Small, b: Ints, w: Ints, questions: Small, count: Number) -> Number:
    """Which questions hold, as bits."""
    bits = np.int64(0)
    for q in range(count):
        if evaluate(a, b, w, np.int64(questions[2 * q + 1])):
            bits |= np.int64(1) << q
    return int(bits)


@compiled
def states_where(a: Small, b: Ints, w: Ints, keys: Ints, first: Number, last: Number, questions: Small, holds: Ints) -> None:
    """Which questions about states hold in each row, as bits."""
    pa, pb, pw = pointer(a), pointer(b), pointer(w)
    for i in range(first, last):
        unpack(pb, pw, pointer(keys), i)
        holds[i] = which(pa, pb, pw, pointer(questions), len(questions))
