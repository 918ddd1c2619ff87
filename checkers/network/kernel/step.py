"""One step: which triggers are enabled, what a step does, what formulas say of it."""

from __future__ import annotations

import numpy as np

from turnproof.checkers.network.kernel.jit import compiled
from turnproof.checkers.network.kernel.places import (
    ADD,
    AFTER,
    AND,
    B_CASCADE,
    B_CLAUSE_WORDS,
    B_CODE,
    B_COMPONENTS,
    B_COUNTS,
    B_ENABLED,
    B_EVERY,
    B_LOG,
    B_MISSING,
    B_MISSING_ROOM,
    B_PROGRAM,
    B_QUEUE,
    B_QUIET_SEEN,
    B_READ,
    B_ROW,
    B_RULED,
    B_TOUCHED,
    B_TRIGGER,
    B_TRIGGER_WORDS,
    B_WORDS,
    BEFORE,
    BIT,
    BIT_AFTER,
    BITS,
    BROKEN,
    CHOOSE,
    CONST,
    COUNT,
    CUR,
    E_COUNT,
    E_COUNT_END,
    E_OUT,
    E_OUT_END,
    ENDLESS,
    EQ,
    FIRST,
    GE,
    GT,
    HOME,
    HOME_SPREAD,
    KEY,
    LE,
    LOGGED,
    LOWEST,
    LT,
    MISSED,
    MISSING,
    NE,
    NONE,
    NOT,
    OK,
    OR,
    QUIET,
    R_BITS,
    R_MASK,
    R_QUEUED,
    R_SHIFT,
    R_SPREAD,
    R_STRIDE,
    R_TABLE,
    R_VALUES,
    R_VALUES_COUNT,
    R_WORD,
    READ,
    RECORD,
    RECORDS,
    SAT,
    SHARDS,
    SPREAD,
    STACK,
    SUB,
    T_BUDGET,
    T_COMPONENT,
    T_INPUT,
    T_PROGRAM,
    TOUCHED,
    TOUCHED_BITS,
    VALUE,
    WHY,
    Ints,
    Number,
    Small,
)

MIX_1, MIX_2 = -7046029254386353131, -4658895280553007687
"""Odd numbers that spread bits (Steele, Lea and Flood, "Fast splittable pseudorandom number generators", 2014)."""

DE_BRUIJN = 0x03F79D71B4CB0A89
"""A number of which every six bits in a row are different."""


def lowest_bits() -> Ints:
    """Place of the lowest bit that is set, by the top six bits of that bit times the de Bruijn number."""
    table: Ints = np.zeros(64, dtype=np.int64)
    for n in range(64):
        table[((DE_BRUIJN << n) & 0xFFFFFFFFFFFFFFFF) >> 58] = n
    return table


# ── programs ──


@compiled
def load(b: Ints, w: Ints, op: Number, arg: Number) -> Number:
    """What an operation without operands puts on the stack."""
    if op == CONST:
        return arg
    if op == BIT:
        return int((w[SAT + (arg >> 6)] >> (arg & 63)) & 1)
    if op == BIT_AFTER:
        return int((w[AFTER + (arg >> 6)] >> (arg & 63)) & 1)
    if op == COUNT:
        return int(w[b[B_COUNTS] + arg])
    record, number = RECORDS + (arg >> 20) * RECORD, arg & 0xFFFFF
    local = w[(BEFORE if op == VALUE else CUR) + (arg >> 20)]
    return int(b[b[record + R_VALUES] + local * b[record + R_VALUES_COUNT] + number])


@compiled
def combine(op: Number, left: Number, right: Number) -> Number:
    """The value of an operation with two operands."""
    if op == AND:
        return left & right
    if op == OR:
        return left | right
    if op == EQ:
        return 1 if left == right else 0
    if op == NE:
        return 1 if left != right else 0
    if op == LT:
        return 1 if left < right else 0
    if op == LE:
        return 1 if left <= right else 0
    if op == GT:
        return 1 if left > right else 0
    if op == GE:
        return 1 if left >= right else 0
    if op == ADD:
        return left + right
    if op == SUB:
        return left - right
    return max(left, right)


@compiled
def evaluate(a: Small, b: Ints, w: Ints, program: Number) -> Number:
    """The value of a program: over the state before and after and the counts of a step."""
    top = np.int64(STACK)
    first = b[B_PROGRAM] + 2 * program
    for at in range(b[B_CODE] + 2 * a[first], b[B_CODE] + 2 * a[first + 1], 2):
        op, arg = b[at], b[at + 1]
        if op <= COUNT:
            w[top] = load(b, w, op, arg)
            top += 1
        elif op == NOT:
            w[top - 1] = 1 - w[top - 1]
        elif op == CHOOSE:
            top -= 2
            w[top - 1] = w[top] if w[top - 1] else w[top + 1]
        else:
            top -= 1
            w[top - 1] = combine(op, w[top - 1], w[top])
    return int(w[STACK])


# ── what holds of a state ──


@compiled
def clauses_after(b: Ints, w: Ints) -> None:
    """Note which clauses hold of the state after the step."""
    words = b[B_CLAUSE_WORDS]
    for n in range(words):
        w[AFTER + n] = 0
    for comp in range(b[B_COMPONENTS]):
        row = b[RECORDS + comp * RECORD + R_BITS] + w[CUR + comp] * b[B_ROW]
        for n in range(words):
            w[AFTER + n] |= b[row + n]


@compiled
def may_begin(a: Small, b: Ints, w: Ints, t: Number) -> bool:
    """Whether the rest of the guard of trigger ``t`` holds, which no single component decides."""
    program = np.int64(a[b[B_TRIGGER] + 4 * t + T_PROGRAM])
    return bool(program < 0 or evaluate(a, b, w, program) != 0)


@compiled
def list_of(a: Small, b: Ints, w: Ints, n: Number, bits: Number, count: Number) -> Number:
    """List those triggers of word ``n`` whose bit is set and that may begin; how many are listed now, ``count`` having been before."""
    while bits != 0:
        low = bits & -bits
        bits ^= low
        t = n * BITS + b[LOWEST + (((low * DE_BRUIJN) >> 58) & 63)]
        if may_begin(a, b, w, t):
            w[b[B_ENABLED] + count] = t
            count += 1
    return count


@compiled
def enabled(a: Small, b: Ints, w: Ints) -> Number:
    """List the enabled triggers; how many. A trigger's bit is set where any single component forbids it."""
    count = np.int64(0)
    for n in range(b[B_TRIGGER_WORDS]):
        count = np.int64(list_of(a, b, w, n, b[b[B_EVERY] + n] & ~w[SAT + n], count))
    return int(count)


@compiled
def restless(a: Small, b: Ints, w: Ints, quiet: Number) -> Number:
    """As :func:`enabled`, without those that are known to leave everything as it is, which are most: they are counted in ``w[QUIET]``.

    ``quiet``: whether NONE of them is listed or the FIRST is; what is asked of a step then has the same answer for all.
    """
    count, passed, still = np.int64(0), np.int64(0), SAT + b[B_CLAUSE_WORDS]
    for n in range(b[B_TRIGGER_WORDS]):
        free = b[b[B_EVERY] + n] & ~w[SAT + n]
        rest = free & w[still + n]
        free ^= rest
        ruled = rest & b[b[B_RULED] + n]
        while ruled != 0:
            low = ruled & -ruled
            ruled ^= low
            if not may_begin(a, b, w, n * BITS + b[LOWEST + (((low * DE_BRUIJN) >> 58) & 63)]):
                rest ^= low
        if quiet == FIRST and passed == 0 and rest != 0:
            free |= rest & -rest
            rest &= rest - 1
            quiet = NONE
        w[b[B_QUIET_SEEN] + n] |= rest
        passed += np.int64(ones(rest))
        count = np.int64(list_of(a, b, w, n, free, count))
    w[QUIET] = passed
    return int(count)


@compiled
def ones(bits: Number) -> Number:
    """How many bits are set of the lower 62."""
    bits = bits - ((bits >> 1) & 0x5555555555555555)
    bits = (bits & 0x3333333333333333) + ((bits >> 2) & 0x3333333333333333)
    return int((((bits + (bits >> 4)) & 0x0F0F0F0F0F0F0F0F) * 0x0101010101010101) >> 56)


@compiled
def unpack(b: Ints, w: Ints, keys: Ints, i: Number) -> None:
    """Set the state at hand to the one of row ``i``, and note which clauses hold of it and which triggers are quiet."""
    words, rows = b[B_WORDS], b[B_ROW]
    w[KEY] = w[HOME] = keys[i * words]
    if words > 1:
        for n in range(1, words):
            w[KEY + n] = w[HOME + n] = keys[i * words + n]
    spread, bits, more, third, fourth = np.int64(0), np.int64(0), np.int64(0), np.int64(0), np.int64(0)
    record = np.int64(RECORDS)
    for comp in range(b[B_COMPONENTS]):
        local = (w[KEY + b[record + R_WORD]] >> b[record + R_SHIFT]) & b[record + R_MASK]
        w[CUR + comp] = w[BEFORE + comp] = local
        spread += local * b[record + R_SPREAD]
        row = b[record + R_BITS] + local * rows
        bits |= b[row]
        more |= b[row + 1]
        third |= b[row + 2]
        fourth |= b[row + 3]
        record += RECORD
    w[SAT], w[SAT + 1], w[SAT + 2], w[SAT + 3] = bits, more, third, fourth
    w[SPREAD] = w[HOME_SPREAD] = spread
    for n in range(4, rows, 2):
        unpack_more(b, w, rows, n)


@compiled
def unpack_more(b: Ints, w: Ints, rows: Number, n: Number) -> None:
    """Words ``n`` and ``n`` + 1 of a row; where there is no such word, what is read belongs to another row and nobody looks at it."""
    bits, more, record = np.int64(0), np.int64(0), np.int64(RECORDS)
    for comp in range(b[B_COMPONENTS]):
        row = b[record + R_BITS] + w[CUR + comp] * rows + n
        bits |= b[row]
        more |= b[row + 1]
        record += RECORD
    w[SAT + n], w[SAT + n + 1] = bits, more


# ── a step ──


@compiled
def ask_for(a: Small, b: Ints, w: Ints, at: Number, comp: Number, local: Number, given: Number) -> None:
    """Note that an entry is missing, once."""
    n = w[MISSED]
    if a[at] == -1 and n < b[B_MISSING_ROOM]:
        a[at] = -2
        row = b[B_MISSING] + 3 * n
        w[row], w[row + 1], w[row + 2] = comp, local, given
        w[MISSED] = n + 1


@compiled
def tally(a: Small, b: Ints, w: Ints, entry: Number) -> None:
    """Add what the entry counts."""
    for k in range(a[entry + E_COUNT], a[entry + E_COUNT_END], 2):
        what = np.int64(a[k])
        if w[b[B_COUNTS] + what] == 0:
            w[b[B_TOUCHED] + w[TOUCHED]] = what
            w[TOUCHED] += 1
            w[TOUCHED_BITS] |= np.int64(1) << (what % BITS)
        w[b[B_COUNTS] + what] += np.int64(a[k + 1])


@compiled
def apply(a: Small, b: Ints, w: Ints, comp: Number, given: Number) -> Number:
    """Give a component an input: where its entry lies, or -1 if that is not known yet (then it is asked for)."""
    record = RECORDS + comp * RECORD
    local = w[CUR + comp]
    w[b[B_READ] + w[READ]] = comp
    w[READ] += 1
    at = b[record + R_TABLE] + local * b[record + R_STRIDE] + given
    entry = np.int64(a[at])
    if entry < 0:
        ask_for(a, b, w, at, comp, local, given)
        return -1
    moved = np.int64(a[entry]) - local
    if moved != 0:
        log = b[B_LOG] + 2 * w[LOGGED]
        w[log], w[log + 1] = comp, local
        w[LOGGED] += 1
        w[CUR + comp] = local + moved
        w[KEY + b[record + R_WORD]] += moved << b[record + R_SHIFT]
        w[SPREAD] += moved * b[record + R_SPREAD]
    if a[entry + E_COUNT] != a[entry + E_COUNT_END]:
        tally(a, b, w, entry)
    return int(entry)


@compiled
def perform(a: Small, b: Ints, w: Ints, t: Number) -> Number:
    """Run trigger ``t`` to completion in the state at hand. :func:`undo` must follow."""
    trigger = b[B_TRIGGER] + 4 * t
    budget, first, begins = np.int64(a[trigger + T_BUDGET]), np.int64(a[trigger + T_COMPONENT]), np.int64(a[trigger + T_INPUT])
    if budget >= 0 and apply(a, b, w, budget, np.int64(0)) < 0:
        return MISSING
    head = tail = b[B_QUEUE]
    last = head + 2 * b[B_CASCADE]
    entry = apply(a, b, w, first, begins)
    if b[RECORDS + first * RECORD + R_QUEUED]:
        # The first event counts as a delivery, though it need not wait in the queue.
        last -= 2
    while True:
        if entry < 0:
            return MISSING
        for k in range(a[entry + E_OUT], a[entry + E_OUT_END], 2):
            comp, given = np.int64(a[k]), np.int64(a[k + 1])
            if comp < 0:
                w[WHY] = given
                return BROKEN
            if b[RECORDS + comp * RECORD + R_QUEUED]:
                w[tail], w[tail + 1] = comp, given
                tail += 2
            else:
                other = apply(a, b, w, comp, given)
                if other < 0:
                    return MISSING
                if a[other + E_OUT] != a[other + E_OUT_END]:
                    w[WHY] = np.int64(a[a[other + E_OUT] + 1])
                    return BROKEN
        if head == tail:
            return OK
        if head >= last:
            w[WHY] = ENDLESS
            return BROKEN
        entry = apply(a, b, w, w[head], w[head + 1])
        head += 2


@compiled
def restore(b: Ints, w: Ints) -> None:
    """The key from before the step."""
    w[SPREAD] = w[HOME_SPREAD]
    w[KEY] = w[HOME]
    if b[B_WORDS] > 1:
        for n in range(1, b[B_WORDS]):
            w[KEY + n] = w[HOME + n]


@compiled
def undo(b: Ints, w: Ints) -> None:
    """Back to the state before the step."""
    for at in range(b[B_LOG] + 2 * (w[LOGGED] - 1), b[B_LOG] - 1, -2):
        w[CUR + w[at]] = w[at + 1]
    for n in range(w[TOUCHED]):
        w[b[B_COUNTS] + w[b[B_TOUCHED] + n]] = 0
    w[LOGGED] = w[READ] = w[TOUCHED] = w[TOUCHED_BITS] = 0
    restore(b, w)


@compiled
def changed(b: Ints, w: Ints) -> bool:
    """Whether the state now is another than before the step."""
    differs = w[KEY] ^ w[HOME]
    if b[B_WORDS] > 1:
        for n in range(1, b[B_WORDS]):
            differs |= w[KEY + n] ^ w[HOME + n]
    return bool(differs != 0)


@compiled
def shard_of(spread: Number) -> Number:
    """The shard of a state, from its shard hash; the same whatever the layout of keys."""
    return ((spread * MIX_1) >> 40) & (SHARDS - 1)
