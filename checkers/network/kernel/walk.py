"""Expanding states: every enabled step of each, successors into buffers, questions put on the way."""

from __future__ import annotations

import numpy as np

from turnproof.checkers.network.kernel.jit import compiled, pointer
from turnproof.checkers.network.kernel.places import (
    A_FAULTS,
    A_FREE,
    A_NEEDS,
    A_QUIET,
    A_TAKEN,
    ALL,
    ASK_STATE,
    ASK_STEP,
    ASK_STUCK,
    B_ASKED_ONCE,
    B_CLAUSE_WORDS,
    B_ENABLED,
    B_LOG,
    B_QUIET_SEEN,
    B_TRIGGER,
    B_TRIGGER_WORDS,
    B_TRIGGERS,
    B_WORDS,
    BEYOND,
    BITS,
    CUR,
    CUTS,
    E_COUNT_END,
    E_OUT,
    HOME,
    HOME_SPREAD,
    KEY,
    LOGGED,
    MISSING,
    OK,
    Q_MASKS,
    Q_NEED,
    Q_PLACE,
    Q_PROGRAM,
    QUIET,
    R_SHIFT,
    R_SPREAD,
    R_STRIDE,
    R_TABLE,
    R_WORD,
    RECORD,
    RECORDS,
    REDO,
    SAT,
    SHARDS,
    SPREAD,
    STEPS,
    T_BUDGET,
    T_COMPONENT,
    T_INPUT,
    TOUCHED_BITS,
    WHY,
    Ints,
    Number,
    Small,
)
from turnproof.checkers.network.kernel.step import MIX_1, changed, clauses_after, enabled, evaluate, perform, restless, undo, unpack


@compiled
def expand(
    a: Small,
    b: Ints,
    w: Ints,
    keys: Ints,
    start: Number,
    again: Small,
    n_again: Number,
    n_new: Number,
    redo: Small,
    cache: Ints,
    buffer: Ints,
    filled: Ints,
    asked: Ints,
    found: Ints,
) -> Number:
    """Expand rows ``again``, then rows from ``start`` on; the number of rows dealt with (less than asked for when a buffer is full).

    ``buffer[d]`` collects successors for shard d. Rows with an entry that is not known are set aside in ``redo``.
    """
    pa, pb, pw, rows, seen, last = pointer(a), pointer(b), pointer(w), pointer(keys), pointer(cache), len(cache) - 1
    room, size = buffer.shape[1] - b[B_TRIGGERS], buffer.shape[1] * buffer.shape[2]
    for n in range(n_again + n_new):
        for d in range(SHARDS):
            if filled[d] > room:
                note_quiet(pb, pw, pointer(found), asked[A_TAKEN])
                return n
        i = np.int64(again[n]) if n < n_again else np.int64(start + n - n_again)
        unpack(pb, pw, rows, i)
        if not expand_row(pa, pb, pw, i, pointer(asked), pointer(found), seen, last, pointer(buffer), size, pointer(filled)):
            redo[w[REDO]] = i
            w[REDO] += 1
    note_quiet(pb, pw, pointer(found), asked[A_TAKEN])
    return n_again + n_new


@compiled
def note_quiet(b: Ints, w: Ints, found: Ints, taken: Number) -> None:
    """Note the triggers that were enabled and passed over because they change nothing."""
    for t in range(b[B_TRIGGERS]):
        found[taken + t] |= (w[b[B_QUIET_SEEN] + t // BITS] >> (t % BITS)) & 1
    for n in range(b[B_TRIGGER_WORDS]):
        w[b[B_QUIET_SEEN] + n] = 0


@compiled
def expand_row(
    a: Small, b: Ints, w: Ints, i: Number, asked: Ints, found: Ints, cache: Ints, last: Number, buffer: Ints, size: Number, filled: Ints
) -> bool:
    """Expand the state at hand, which is row ``i``. Whether every entry it needs is known."""
    taken, free = asked[A_TAKEN], asked[A_FREE]
    for q in range(free):
        w[b[B_ASKED_ONCE] + q] = 0
    cuts, moves, complete = 0, False, True
    w[QUIET] = 0
    count = enabled(a, b, w) if asked[A_QUIET] == ALL else restless(a, b, w, asked[A_QUIET])
    steps = w[QUIET]
    for e in range(count):
        t = w[b[B_ENABLED] + e]
        if free == 0:
            moved = hop(a, b, w, t, cache, last, buffer, size, filled)
            if moved >= 0:
                steps += 1
                found[taken + t] |= 1 + 2 * moved
                moves = moves or moved != 0
                continue
        status = perform(a, b, w, t)
        if status == OK:
            steps += 1
            differs = changed(b, w)
            found[taken + t] |= 3 if differs else 1
            ask_step(a, b, w, i, t, asked, found)
            if differs:
                moves = True
                offer(b, w, cache, last, buffer, size, filled)
        elif status == MISSING:
            complete = False
        else:
            moves = True
            if w[WHY] == BEYOND:
                cuts += 1
            elif found[asked[A_FAULTS] + 2 * w[WHY]] < 0:
                found[asked[A_FAULTS] + 2 * w[WHY]] = i
                found[asked[A_FAULTS] + 2 * w[WHY] + 1] = t
        undo(b, w)
    if complete:
        w[STEPS] += steps
        w[CUTS] += cuts
        ask_state(a, b, w, i, asked, ASK_STATE, found)
        if not moves:
            ask_state(a, b, w, i, asked, ASK_STUCK, found)
    return complete


@compiled
def hop(a: Small, b: Ints, w: Ints, t: Number, cache: Ints, last: Number, buffer: Ints, size: Number, filled: Ints) -> Number:
    """The short way for a trigger that moves one component, sends nothing and counts nothing.

    Offers the successor; 1 if it is another state, 0 if it is the same, -1 if the trigger is not of this kind or its entry not known.
    Has no branch that depends on what the state is: half of those would be guessed wrongly.
    """
    trigger = b[B_TRIGGER] + 4 * t
    comp = np.int64(a[trigger + T_COMPONENT])
    record = RECORDS + comp * RECORD
    local = w[CUR + comp]
    entry = np.int64(a[b[record + R_TABLE] + local * b[record + R_STRIDE] + np.int64(a[trigger + T_INPUT])])
    if a[trigger + T_BUDGET] >= 0 or entry < 0 or a[entry + E_OUT] != a[entry + E_COUNT_END]:
        return -1
    moved = np.int64(a[entry]) - local
    if b[B_WORDS] > 1:
        return hop_wide(b, w, record, moved, cache, last, buffer, size, filled)
    key = w[HOME] + (moved << b[record + R_SHIFT])
    mixed = (w[HOME_SPREAD] + moved * b[record + R_SPREAD]) * MIX_1
    place, d = (mixed >> 44) & last, (mixed >> 40) & (SHARDS - 1)
    other = np.int64(moved != 0)
    buffer[d * size + filled[d]] = key
    filled[d] += np.int64(cache[place] != key) & other
    cache[place] = key
    return other


@compiled
def hop_wide(
    b: Ints, w: Ints, record: Number, moved: Number, cache: Ints, last: Number, buffer: Ints, size: Number, filled: Ints
) -> Number:
    """The rest of :func:`hop` for keys of several words."""
    if moved == 0:
        return 0
    w[KEY + b[record + R_WORD]] += moved << b[record + R_SHIFT]
    w[SPREAD] += moved * b[record + R_SPREAD]
    offer(b, w, cache, last, buffer, size, filled)
    w[KEY + b[record + R_WORD]] = w[HOME + b[record + R_WORD]]
    w[SPREAD] = w[HOME_SPREAD]
    return 1


@compiled
def offer(b: Ints, w: Ints, cache: Ints, last: Number, buffer: Ints, size: Number, filled: Ints) -> None:
    """Put the state at hand into the buffer of its shard, unless it was put there a moment ago."""
    mixed = w[SPREAD] * MIX_1
    place, d = (mixed >> 44) & last, (mixed >> 40) & (SHARDS - 1)
    if b[B_WORDS] > 1:
        offer_wide(b[B_WORDS], w, cache, place * b[B_WORDS], buffer, d * size, filled, d)
        return
    key = w[KEY]
    buffer[d * size + filled[d]] = key
    filled[d] += np.int64(cache[place] != key)
    cache[place] = key


@compiled
def offer_wide(words: Number, w: Ints, cache: Ints, place: Number, buffer: Ints, at: Number, filled: Ints, d: Number) -> None:
    """As :func:`offer`, for keys of several words."""
    differs = np.int64(0)
    for n in range(words):
        differs |= cache[place + n] ^ w[KEY + n]
        cache[place + n] = w[KEY + n]
    if differs != 0:
        at += filled[d] * words
        for n in range(words):
            buffer[at + n] = w[KEY + n]
        filled[d] += 1


# ── questions ──


@compiled
def may_hold(w: Ints, masks: Ints, at: Number, words: Number) -> bool:
    """Whether the bits that a question wants of the state before the step are so: those that must be set, then those that must not."""
    wrong = (~w[SAT] & masks[at]) | (w[SAT] & masks[at + words])
    if words > 1:
        for n in range(1, words):
            wrong |= (~w[SAT + n] & masks[at + n]) | (w[SAT + n] & masks[at + words + n])
    return bool(wrong == 0)


@compiled
def ask_state(a: Small, b: Ints, w: Ints, i: Number, asked: Ints, kind: Number, found: Ints) -> None:
    """Note row ``i`` for each question that holds there and has no hit yet."""
    words, at = b[B_CLAUSE_WORDS], asked[kind]
    for _ in range(asked[kind + 1]):
        if found[asked[at + Q_PLACE]] < 0 and may_hold(w, asked, at + Q_MASKS, words):
            program = asked[at + Q_PROGRAM]
            if program < 0 or evaluate(a, b, w, program):
                found[asked[at + Q_PLACE]] = i
        at += Q_MASKS + 2 * words


@compiled
def ask_step(a: Small, b: Ints, w: Ints, i: Number, t: Number, asked: Ints, found: Ints) -> None:
    """Note row ``i`` and trigger ``t`` for each question that holds of this step and has no hit yet."""
    free, words = asked[A_FREE], b[B_CLAUSE_WORDS]
    size, first = Q_MASKS + 2 * words, asked[ASK_STEP]
    ready = False
    if free:
        moved = np.int64(0)
        for n in range(w[LOGGED]):
            moved |= np.int64(1) << (w[b[B_LOG] + 2 * n] % BITS)
        for q in range(free):
            once, need = b[B_ASKED_ONCE] + q, asked[first + q * size + Q_NEED]
            if need >= 0 and need & moved == 0:
                if w[once]:
                    continue
                w[once] = 1
            ready = ask(a, b, w, i, t, asked, first + q * size, words, found, ready)
    if asked[A_NEEDS] & w[TOUCHED_BITS]:
        for q in range(free, asked[ASK_STEP + 1]):
            if asked[first + q * size + Q_NEED] & w[TOUCHED_BITS]:
                ready = ask(a, b, w, i, t, asked, first + q * size, words, found, ready)


@compiled
def ask(a: Small, b: Ints, w: Ints, i: Number, t: Number, asked: Ints, at: Number, words: Number, found: Ints, ready: bool) -> bool:
    """Put one question about a step; whether the clauses that hold after it are known by now."""
    place = asked[at + Q_PLACE]
    if found[place] >= 0 or not may_hold(w, asked, at + Q_MASKS, words):
        return ready
    if not ready:
        clauses_after(b, w)
    if asked[at + Q_PROGRAM] < 0 or evaluate(a, b, w, asked[at + Q_PROGRAM]):
        found[place] = i
        found[place + 1] = t
    return True


@compiled
def ask_rows(a: Small, b: Ints, w: Ints, keys: Ints, first: Number, last: Number, asked: Ints, found: Ints) -> None:
    """Put the questions about states to rows that a search cut short did not expand."""
    pa, pb, pw = pointer(a), pointer(b), pointer(w)
    for i in range(first, last):
        unpack(pb, pw, pointer(keys), i)
        ask_state(pa, pb, pw, i, pointer(asked), ASK_STATE, pointer(found))
