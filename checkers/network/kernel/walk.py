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
    B_READ,
    B_TRIGGER_WORDS,
    B_TRIGGERS,
    B_WORDS,
    BEFORE,
    BEYOND,
    BITS,
    CUR,
    CUTS,
    HOME,
    HOME_SPREAD,
    KEY,
    LOGGED,
    M_EDGES,
    M_EDGES_AT,
    M_FIRST,
    M_FREE,
    M_HASHED,
    M_ID,
    M_KEY,
    M_LOCAL,
    M_MOST,
    M_NODES,
    M_OUTCOME,
    M_ROW,
    M_USED,
    MISSING,
    OK,
    Q_MASKS,
    Q_NEED,
    Q_PLACE,
    Q_PROGRAM,
    QUIET,
    R_MASK,
    READ,
    RECORD,
    RECORDS,
    REDO,
    SAT,
    SHARDS,
    SPREAD,
    STEPS,
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
    memo: Ints,
    cache: Ints,
    buffer: Ints,
    filled: Ints,
    asked: Ints,
    found: Ints,
) -> Number:
    """Expand rows ``again``, then rows from ``start`` on; the number of rows dealt with (less than asked for when a buffer is full).

    ``buffer[d]`` collects successors for shard d. Rows with an entry that is not known are set aside in ``redo``; ``memo`` keeps the
    outcomes of steps.
    """
    pa, pb, pw, rows, seen, last = pointer(a), pointer(b), pointer(w), pointer(keys), pointer(cache), len(cache) - 1
    known = pointer(memo)
    room, size = buffer.shape[1] - b[B_TRIGGERS], buffer.shape[1] * buffer.shape[2]
    for n in range(n_again + n_new):
        for d in range(SHARDS):
            if filled[d] > room:
                note_quiet(pb, pw, pointer(found), asked[A_TAKEN])
                return n
        i = np.int64(again[n]) if n < n_again else np.int64(start + n - n_again)
        unpack(pb, pw, rows, i)
        if not expand_row(pa, pb, pw, i, pointer(asked), pointer(found), known, seen, last, pointer(buffer), size, pointer(filled)):
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
    a: Small,
    b: Ints,
    w: Ints,
    i: Number,
    asked: Ints,
    found: Ints,
    memo: Ints,
    cache: Ints,
    last: Number,
    buffer: Ints,
    size: Number,
    filled: Ints,
) -> bool:
    """Expand the state at hand, which is row ``i``. Whether every entry it needs is known."""
    taken, free = asked[A_TAKEN], asked[A_FREE]
    for q in range(free):
        w[b[B_ASKED_ONCE] + q] = 0
    w[QUIET], cuts, moves, complete = 0, 0, False, True
    count = enabled(a, b, w) if asked[A_QUIET] == ALL else restless(a, b, w, asked[A_QUIET])
    steps = w[QUIET]
    for e in range(count):
        t = w[b[B_ENABLED] + e]
        if free == 0:
            known = recall(w, memo, t)
            if known != 0:
                moved = memo[known]
                steps += 1
                found[taken + t] |= 1 + 2 * moved
                moves = moves or moved != 0
                repeat(b, w, memo, known, cache, last, buffer, size, filled)
                continue
        status = perform(a, b, w, t)
        if status == OK:
            steps += 1
            differs = changed(b, w)
            found[taken + t] |= 3 if differs else 1
            ask_step(a, b, w, i, t, asked, found)
            if free == 0 and w[TOUCHED_BITS] == 0:
                remember(b, w, memo, t)
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


# ── steps taken before ──


@compiled
def recall(w: Ints, memo: Ints, t: Number) -> Number:
    """Where the outcome of trigger ``t`` lies in ``memo``; 0 if the components it reads were never in these local states together.

    A step depends on nothing but the local states it reads. So they are followed, in the order of reading: each leads to the next
    component to look at, or to the outcome.
    """
    word = memo[M_FIRST + t]
    while word != 0 and word & M_OUTCOME == 0:
        local, node = w[CUR + ((word >> M_ID) & 255)], word & M_MOST
        word = memo[edge_of(memo, node, local)] if word & M_HASHED else memo[node + local]
    return int(word & M_MOST)


@compiled
def edge_of(memo: Ints, node: Number, local: Number) -> Number:
    """The place of the hashed edge for ``local`` at ``node``, or the empty one where that belongs."""
    wanted = (node << M_LOCAL | local) + 1
    first, place = memo[M_EDGES_AT], ((wanted * MIX_1) >> 40) & (M_EDGES - 1)
    while memo[first + place] != 0 and memo[first + place] >> M_KEY != wanted:
        place = (place + 1) & (M_EDGES - 1)
    return int(first + place)


@compiled
def repeat(b: Ints, w: Ints, memo: Ints, known: Number, cache: Ints, last: Number, buffer: Ints, size: Number, filled: Ints) -> None:
    """Offer the successor of a step that was taken before, unless it is the same state."""
    mixed = (w[HOME_SPREAD] + memo[known + 1]) * MIX_1
    place, d = (mixed >> 44) & last, (mixed >> 40) & (SHARDS - 1)
    if b[B_WORDS] > 1:
        if memo[known] != 0:
            for n in range(b[B_WORDS]):
                w[KEY + n] = w[HOME + n] + memo[known + 2 + n]
            offer_wide(b[B_WORDS], w, cache, place * b[B_WORDS], buffer, d * size, filled, d)
            for n in range(b[B_WORDS]):
                w[KEY + n] = w[HOME + n]
        return
    # No branch depends on what the state is: half of those would be guessed wrongly.
    key = w[HOME] + memo[known + 2]
    buffer[d * size + filled[d]] = key
    filled[d] += np.int64(cache[place] != key) & memo[known]
    cache[place] = key


@compiled
def remember(b: Ints, w: Ints, memo: Ints, t: Number) -> None:
    """Note the outcome of the step just taken, as long as there is room."""
    words, first = b[B_WORDS], b[B_READ]
    if memo[M_USED] + w[READ] > M_EDGES // 4 * 3 or memo[M_FREE] + w[READ] * memo[M_ROW] + words + 2 > M_MOST:
        return
    place, key = np.int64(M_FIRST + t), np.int64(0)
    for n in range(w[READ]):
        comp, again = w[first + n], False
        for earlier in range(n):
            again = again or w[first + earlier] == comp
        if again:
            continue
        local, size = w[BEFORE + comp], b[RECORDS + RECORD * comp + R_MASK] + 1
        if local >> M_LOCAL != 0:
            return
        if memo[place] == 0:
            memo[place] = key | comp << M_ID | new_node(memo, size)
        node = memo[place] & M_MOST
        if size > memo[M_ROW]:
            place, key = np.int64(edge_of(memo, node, local)), ((node << M_LOCAL | local) + 1) << M_KEY
            memo[M_USED] += memo[place] == 0
        else:
            place, key = node + local, np.int64(0)
    known = memo[M_FREE]
    memo[M_FREE] += words + 2
    memo[place] = key | M_OUTCOME | known
    memo[known], memo[known + 1] = np.int64(changed(b, w)), w[SPREAD] - w[HOME_SPREAD]
    for n in range(words):
        memo[known + 2 + n] = w[KEY + n] - w[HOME + n]


@compiled
def new_node(memo: Ints, size: Number) -> Number:
    """A node for a component with room for so many local states, and the bit that says whether its edges are hashed."""
    if size > memo[M_ROW]:
        memo[M_NODES] += 1
        return int(M_HASHED | memo[M_NODES])
    memo[M_FREE] += size
    return int(memo[M_FREE] - size)


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
