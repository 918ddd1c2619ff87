"""One state for all that differ by an exchange of what is interchangeable: the least, by the numbers of local states.

What is exchanged without a change of its own (columns of components) is sorted; what also changes its local state (tokens) is
tried, element by element of the group. The order is that of the numbers of local states, component by component, so that it does
not depend on the layout of keys.
"""

from __future__ import annotations

from turnproof.checkers.network.kernel.jit import compiled, pointer
from turnproof.checkers.network.kernel.places import (
    B_COMPONENTS,
    B_ENABLED,
    B_WORDS,
    CUR,
    OK,
    R_MASK,
    R_SHIFT,
    R_SPREAD,
    R_WORD,
    RECORD,
    RECORDS,
    Ints,
    Number,
    Small,
)
from turnproof.checkers.network.kernel.step import enabled, perform, shard_of, undo, unpack

F_GROUPS, F_ELEMENTS, F_FIRST = 0, 1, 2
"""In ``f``: how many groups of columns there are, how many elements; then the groups (columns, members, components of each column),
then the elements (for each component: where it goes, and where its table of local states begins in ``images``)."""


@compiled
def sort_columns(f: Ints, v: Ints, base: Number) -> Number:
    """Sort the columns of each group of the state that begins at ``base``; where the elements begin in ``f``."""
    at = F_FIRST
    for _ in range(f[F_GROUPS]):
        columns, members = f[at], f[at + 1]
        at += 2
        for n in range(1, columns):
            k = n
            while k > 0 and column_less(f, v, base, at + k * members, at + (k - 1) * members, members):
                for m in range(members):
                    here, there = base + f[at + k * members + m], base + f[at + (k - 1) * members + m]
                    v[here], v[there] = v[there], v[here]
                k -= 1
        at += columns * members
    return at


@compiled
def column_less(f: Ints, v: Ints, base: Number, one: Number, other: Number, members: Number) -> bool:
    """Whether one column comes before the other."""
    for m in range(members):
        left, right = v[base + f[one + m]], v[base + f[other + m]]
        if left != right:
            return bool(left < right)
    return False


@compiled
def least(f: Ints, images: Small, v: Ints, n: Number) -> None:
    """Make ``v[:n]`` the least of its orbit. ``v`` has room for three states."""
    at = sort_columns(f, v, 0)
    elements = f[F_ELEMENTS]
    if elements == 0:
        return
    for c in range(n):
        v[2 * n + c] = v[c]
    for _ in range(elements):
        for c in range(n):
            v[n + f[at + 2 * c]] = images[f[at + 2 * c + 1] + v[2 * n + c]]
        at += 2 * n
        sort_columns(f, v, n)
        for c in range(n):
            if v[n + c] != v[c]:
                if v[n + c] < v[c]:
                    for k in range(n):
                        v[k] = v[n + k]
                break


@compiled
def representative(f: Ints, images: Small, v: Ints, n: Number) -> None:
    """As :func:`least`, for arrays."""
    least(pointer(f), pointer(images), pointer(v), n)


@compiled
def fold(b: Ints, f: Ints, images: Small, rows: Ints, count: Number, v: Ints, out: Ints, filled: Ints) -> None:
    """Put the representative of each row into ``out[d]``, d being its shard."""
    pb, pf, pi, pv, given = pointer(b), pointer(f), pointer(images), pointer(v), pointer(rows)
    n, words = b[B_COMPONENTS], b[B_WORDS]
    for i in range(count):
        for c in range(n):
            record = RECORDS + c * RECORD
            pv[c] = (given[i * words + pb[record + R_WORD]] >> pb[record + R_SHIFT]) & pb[record + R_MASK]
        least(pf, pi, pv, n)
        spread = 0
        for c in range(n):
            spread += v[c] * pb[RECORDS + c * RECORD + R_SPREAD]
        d = shard_of(spread)
        at = filled[d]
        for k in range(words):
            out[d, at, k] = 0
        for c in range(n):
            record = RECORDS + c * RECORD
            out[d, at, pb[record + R_WORD]] += v[c] << pb[record + R_SHIFT]
        filled[d] += 1


@compiled
def folded_predecessor(
    a: Small, b: Ints, w: Ints, keys: Ints, first: Number, last: Number, f: Ints, images: Small, v: Ints, target: Ints
) -> Number:
    """The first row among ``first`` to ``last`` - 1 with a step to a state whose representative has these local states; -1 if none has."""
    pa, pb, pw, pf, pi, pv, n = pointer(a), pointer(b), pointer(w), pointer(f), pointer(images), pointer(v), b[B_COMPONENTS]
    for i in range(first, last):
        unpack(pb, pw, pointer(keys), i)
        for e in range(enabled(pa, pb, pw)):
            found = perform(pa, pb, pw, w[b[B_ENABLED] + e]) == OK
            if found:
                for c in range(n):
                    v[c] = w[CUR + c]
                least(pf, pi, pv, n)
                for c in range(n):
                    found = found and v[c] == target[c]
            undo(pb, pw)
            if found:
                return int(i)
    return -1
