"""The compiled walk: one kernel for every network, which reads tables and knows no machine. Compiled once, then cached on disk.

Theory of operation
===================

A state of a network is one local state for each component (a part with the ledger of its timers, a channel, a budget), packed
into words of 62 bits. A step begins at one component; each entry of a component's table says the next local state and what is sent
to which component; parts take what they are sent from one queue, channels at once. Packing is by addition: a component that moves
from local state u to v adds (v - u) << shift, so that a successor costs what changed in it.

Which triggers are enabled, and most of what questions ask, comes from ONE pass over the components: every local state carries a
row of bits, and the bitwise or of the rows says which clauses hold (a clause is a disjunction of conditions on single components;
a conjunction is the negation of one). What compares two components is a little stack program over these bits and over numbers
looked up by local state.

An entry that is not known yet stops nothing: the state is set aside, the entry is asked for, and the state is expanded again once
Python has filled it in through ``machine.step``.

Rule 1: no function here allocates memory that grows. Rule 2: everything is a signed 64-bit integer; 62 bits of each are used.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar, cast

import numba
import numpy as np
import numpy.typing as npt

F = TypeVar("F", bound=Callable[..., Any])
Ints = npt.NDArray[np.int64]
Small = npt.NDArray[np.int32]
Truths = npt.NDArray[np.bool_]

SHARDS = 4
"""Parts into which the known states are divided; a power of two."""

BITS = 62
"""Bits used of a word: a key stays positive, and 0 is left to say "empty"."""


def compiled(function: F) -> F:
    """``function`` compiled by numba, without the interpreter's lock; cached beside the source, in the user's cache, or not at all."""
    # Through Any: numba's annotations know no function that numba compiles.
    njit: Any = numba.njit
    options = {"nogil": True, "error_model": "numpy"}
    try:
        return cast(F, njit(cache=True, **options)(function))
    except RuntimeError:
        # numba finds neither a writable __pycache__ nor a writable cache folder of the user.
        warnings.warn("no folder to cache compiled code in; it is compiled anew in every process", stacklevel=2)
        return cast(F, njit(**options)(function))


class Net(NamedTuple):
    """A network as arrays. C components, T triggers, SW words of clauses; offsets are into flat arrays."""

    word: Small
    """Component -> the word of the key it lies in."""
    shift: Ints
    mask: Ints
    queued: Small
    """Component -> whether it takes its inputs from the queue (a part), or at once."""
    table: Small
    """(component, local state, input) -> entry; -1: not known, -2: not known and asked for."""
    offset: Ints
    stride: Ints
    entry: Small
    """Entry -> next local state, first and last output, first and last count."""
    out: Small
    """Output -> component and input; component -1: the step is not allowed, the input says why."""
    inc: Small
    """Count -> which one, how much."""
    bits: Ints
    """(component, local state) -> its row of clause bits."""
    bits_offset: Ints
    watched: Small
    """Components that have any bits."""
    values: Ints
    """(component, local state) -> the numbers that programs look up."""
    values_offset: Ints
    values_count: Ints
    every: Ints
    """The bits of all triggers, which are the first of the clause bits."""
    trigger: Small
    """Trigger -> budget (-1: none), component, input, program of the rest of its guard (-1: none)."""
    code: Ints
    """Instructions: operation, argument."""
    programs: Small
    """Program -> first and last instruction."""
    spread: Ints
    """Component -> an odd number, for choosing shards."""
    bound: Ints
    """Most deliveries in a step; words of clauses; words of a key."""


class Asked(NamedTuple):
    """The questions. Each has a place in ``hits``."""

    state: Small
    """Questions about states: place, program."""
    step: Small
    """Questions about steps: place, program."""
    need: Ints
    """For each question about steps: 62 bits, one of which a counted thing must have set for it to hold; 0: none needed."""
    stuck: Small
    """Questions about states where nothing moves: place, program."""


class Work(NamedTuple):
    """What one thread writes on while it expands."""

    cur: Small
    before: Small
    key: Ints
    sat: Ints
    after: Ints
    queue: Small
    log: Small
    counts: Ints
    touched: Small
    stack: Ints
    enabled: Small
    note: Ints
    """0: entries in the log, 1: why a step is not allowed, 2: counts touched, 3: bits of counts touched, 4: shard hash."""


OK, MISSING, BROKEN = 0, 1, 2
ENDLESS = 1
"""Why a step is not allowed: 0 beyond the bounds, 1 endless; more are numbered by the tables."""

(CONST, BIT, BIT_AFTER, VALUE, VALUE_AFTER, COUNT, EQ, NE, LT, LE, GT, GE, AND, OR, NOT, ADD, SUB, MAX, CHOOSE) = range(19)
"""Operations of a program."""
# The argument of BIT is word << 6 | bit; of VALUE, component << 20 | number.

_K1, _K2 = -7046029254386353131, -4658895280553007687

_DE_BRUIJN = 0x03F79D71B4CB0A89
_LOWEST = np.zeros(64, dtype=np.int64)
for _n in range(64):
    _LOWEST[((_DE_BRUIJN << _n) & 0xFFFFFFFFFFFFFFFF) >> 58] = _n


@compiled
def evaluate(net: Net, program: int, work: Work, stack: Ints) -> int:
    """The value of a program: over the state before (``before``, ``sat``) and after (``cur``, ``after``) and the counts of a step."""
    top = 0
    for at in range(net.programs[program, 0], net.programs[program, 1]):
        op, arg = net.code[at, 0], net.code[at, 1]
        if op == CONST:
            stack[top] = arg
            top += 1
        elif op == BIT:
            stack[top] = (work.sat[arg >> 6] >> (arg & 63)) & 1
            top += 1
        elif op == BIT_AFTER:
            stack[top] = (work.after[arg >> 6] >> (arg & 63)) & 1
            top += 1
        elif op in (VALUE, VALUE_AFTER):
            comp, number = arg >> 20, arg & 0xFFFFF
            local = work.before[comp] if op == VALUE else work.cur[comp]
            stack[top] = net.values[net.values_offset[comp] + local * net.values_count[comp] + number]
            top += 1
        elif op == COUNT:
            stack[top] = work.counts[arg]
            top += 1
        elif op == NOT:
            stack[top - 1] = 1 - stack[top - 1]
        elif op == CHOOSE:
            top -= 2
            stack[top - 1] = stack[top] if stack[top - 1] else stack[top + 1]
        else:
            top -= 1
            left, right = stack[top - 1], stack[top]
            if op == EQ:
                left = 1 if left == right else 0
            elif op == NE:
                left = 1 if left != right else 0
            elif op == LT:
                left = 1 if left < right else 0
            elif op == LE:
                left = 1 if left <= right else 0
            elif op == GT:
                left = 1 if left > right else 0
            elif op == GE:
                left = 1 if left >= right else 0
            elif op == AND:
                left &= right
            elif op == OR:
                left |= right
            elif op == ADD:
                left += right
            elif op == SUB:
                left -= right
            else:
                left = max(left, right)
            stack[top - 1] = left
    return int(stack[0])


@compiled
def clauses(net: Net, cur: Small, sat: Ints) -> None:
    """Which clauses hold, as bits."""
    words = net.bound[1]
    for w in range(words):
        sat[w] = 0
    for n in range(len(net.watched)):
        comp = net.watched[n]
        base = net.bits_offset[comp] + cur[comp] * words
        for w in range(words):
            sat[w] |= net.bits[base + w]


@compiled
def unpack(net: Net, keys: Ints, i: int, work: Work) -> None:
    """Set the work's state to the one of row ``i``."""
    spread = np.int64(0)
    for comp in range(len(net.word)):
        local = (keys[i, net.word[comp]] >> net.shift[comp]) & net.mask[comp]
        work.cur[comp] = local
        work.before[comp] = local
        spread += local * net.spread[comp]
    work.note[4] = spread
    for w in range(keys.shape[1]):
        work.key[w] = keys[i, w]


@compiled
def apply(net: Net, comp: int, given: int, work: Work, missing: Small, stats: Ints) -> int:
    """Give a component an input: its entry, or -1 if that is not known yet (then it is asked for)."""
    local = work.cur[comp]
    at = net.offset[comp] + local * net.stride[comp] + given
    entry = net.table[at]
    if entry < 0:
        if entry == -1 and stats[3] < len(missing):
            net.table[at] = -2
            missing[stats[3], 0], missing[stats[3], 1], missing[stats[3], 2] = comp, local, given
            stats[3] += 1
        return -1
    after = net.entry[entry, 0]
    if after != local:
        n = work.note[0]
        work.log[n, 0], work.log[n, 1] = comp, local
        work.note[0] = n + 1
        work.cur[comp] = after
        moved = np.int64(after) - np.int64(local)
        work.key[net.word[comp]] += moved << net.shift[comp]
        work.note[4] += moved * net.spread[comp]
    for k in range(net.entry[entry, 3], net.entry[entry, 4]):
        what = net.inc[k, 0]
        if work.counts[what] == 0:
            work.touched[work.note[2]] = what
            work.note[2] += 1
            work.note[3] |= np.int64(1) << (what % BITS)
        work.counts[what] += net.inc[k, 1]
    return int(entry)


@compiled
def perform(net: Net, t: int, work: Work, missing: Small, stats: Ints) -> int:
    """Run trigger ``t`` to completion in the work's state. ``undo`` must follow."""
    head = tail = 0
    first = net.trigger[t, 1]
    if net.trigger[t, 0] >= 0 and apply(net, net.trigger[t, 0], 0, work, missing, stats) < 0:
        return MISSING
    entry = -1
    if net.queued[first]:
        work.queue[0, 0], work.queue[0, 1] = first, net.trigger[t, 2]
        tail = 1
    else:
        entry = apply(net, first, net.trigger[t, 2], work, missing, stats)
        if entry < 0:
            return MISSING
    while True:
        if entry >= 0:
            for k in range(net.entry[entry, 1], net.entry[entry, 2]):
                comp, given = net.out[k, 0], net.out[k, 1]
                if comp < 0:
                    work.note[1] = given
                    return BROKEN
                if net.queued[comp]:
                    work.queue[tail, 0], work.queue[tail, 1] = comp, given
                    tail += 1
                else:
                    other = apply(net, comp, given, work, missing, stats)
                    if other < 0:
                        return MISSING
                    if net.entry[other, 1] < net.entry[other, 2]:
                        work.note[1] = net.out[net.entry[other, 1], 1]
                        return BROKEN
        if head == tail:
            return OK
        if head >= net.bound[0]:
            work.note[1] = ENDLESS
            return BROKEN
        entry = apply(net, work.queue[head, 0], work.queue[head, 1], work, missing, stats)
        if entry < 0:
            return MISSING
        head += 1


@compiled
def undo(net: Net, keys: Ints, i: int, spread: int, work: Work) -> None:
    """Back to the state of row ``i``, whose shard hash is ``spread``."""
    for n in range(work.note[0] - 1, -1, -1):
        work.cur[work.log[n, 0]] = work.log[n, 1]
    for n in range(work.note[2]):
        work.counts[work.touched[n]] = 0
    work.note[0] = work.note[2] = work.note[3] = 0
    work.note[4] = spread
    for w in range(keys.shape[1]):
        work.key[w] = keys[i, w]


@compiled
def shard_of(spread: int) -> int:
    """The shard of a state, from its shard hash; the same whatever the layout of keys."""
    return ((spread * _K1) >> 40) & (SHARDS - 1)


@compiled
def same(keys: Ints, i: int, key: Ints) -> bool:
    """Whether row ``i`` is ``key``."""
    equal = True
    for w in range(keys.shape[1]):
        equal = equal and keys[i, w] == key[w]
    return equal


@compiled
def enabled(net: Net, work: Work) -> int:
    """Put the enabled triggers into ``work.enabled``; how many. A trigger's bit is set where any single component forbids it."""
    count = 0
    for w in range(len(net.every)):
        free = net.every[w] & ~work.sat[w]
        while free != 0:
            low = free & -free
            free ^= low
            t = w * BITS + _LOWEST[((low * _DE_BRUIJN) >> 58) & 63]
            if net.trigger[t, 3] < 0 or evaluate(net, net.trigger[t, 3], work, work.stack) != 0:
                work.enabled[count] = t
                count += 1
    return count


@compiled
def expand(
    net: Net,
    asked: Asked,
    keys: Ints,
    start: int,
    again: Small,
    n_again: int,
    n_new: int,
    work: Work,
    cache: Ints,
    buffer: Ints,
    filled: Ints,
    missing: Small,
    redo: Small,
    hits: Ints,
    taken: Small,
    faults: Ints,
    stats: Ints,
) -> int:
    """Expand rows ``again``, then rows from ``start`` on; the number of rows dealt with (less than asked for when a buffer is full).

    ``buffer[d]`` collects successors for shard d. ``stats``: 0 steps, 1 cut steps, 2 rows set aside in ``redo``, 3 entries asked for.
    """
    shards, room, width = buffer.shape[0], buffer.shape[1], keys.shape[1]
    triggers = len(net.trigger)
    for n in range(n_again + n_new):
        for d in range(shards):
            if filled[d] + triggers > room:
                return n
        i = again[n] if n < n_again else start + n - n_again
        unpack(net, keys, i, work)
        spread = work.note[4]
        clauses(net, work.cur, work.sat)
        steps = cuts = np.int64(0)
        moves, complete = False, True
        for e in range(enabled(net, work)):
            t = work.enabled[e]
            status = perform(net, t, work, missing, stats)
            if status == OK:
                steps += 1
                changed = not same(keys, i, work.key)
                taken[t] |= 3 if changed else 1
                if len(asked.step):
                    ask_step(net, asked, work, i, t, hits)
                if changed:
                    moves = True
                    offer(work, cache, buffer, filled, width)
            elif status == MISSING:
                complete = False
            else:
                moves = True
                if work.note[1] == 0:
                    cuts += 1
                elif faults[work.note[1], 0] < 0:
                    faults[work.note[1], 0], faults[work.note[1], 1] = i, t
            undo(net, keys, i, spread, work)
        if not complete:
            redo[stats[2]] = i
            stats[2] += 1
            continue
        stats[0] += steps
        stats[1] += cuts
        ask_state(net, asked.state, work, i, hits)
        if not moves:
            ask_state(net, asked.stuck, work, i, hits)
    return n_again + n_new


@compiled
def offer(work: Work, cache: Ints, buffer: Ints, filled: Ints, width: int) -> None:
    """Put the work's state into the buffer of its shard, unless it was put there a moment ago."""
    mixed = work.note[4] * _K1
    place = (mixed >> 34) & (len(cache) - 1)
    known = True
    for w in range(width):
        if cache[place, w] != work.key[w]:
            known = False
            cache[place, w] = work.key[w]
    if known:
        return
    d = (mixed >> 40) & (SHARDS - 1)
    at = filled[d]
    for w in range(width):
        buffer[d, at, w] = work.key[w]
    filled[d] = at + 1


@compiled
def ask_state(net: Net, questions: Small, work: Work, i: int, hits: Ints) -> None:
    """Note row ``i`` for each question that holds there and has no hit yet."""
    for q in range(len(questions)):
        if hits[questions[q, 0], 0] < 0 and evaluate(net, questions[q, 1], work, work.stack):
            hits[questions[q, 0], 0] = i


@compiled
def ask_rows(net: Net, asked: Asked, keys: Ints, first: int, last: int, work: Work, hits: Ints) -> None:
    """Put the questions about states to rows that a search cut short did not expand."""
    for i in range(first, last):
        unpack(net, keys, i, work)
        clauses(net, work.cur, work.sat)
        ask_state(net, asked.state, work, i, hits)


@compiled
def ask_step(net: Net, asked: Asked, work: Work, i: int, t: int, hits: Ints) -> None:
    """Note row ``i`` and trigger ``t`` for each question that holds of this step and has no hit yet."""
    ready = False
    for q in range(len(asked.step)):
        place = asked.step[q, 0]
        if hits[place, 0] >= 0 or (asked.need[q] != 0 and asked.need[q] & work.note[3] == 0):
            continue
        if not ready:
            clauses(net, work.cur, work.after)
            ready = True
        if evaluate(net, asked.step[q, 1], work, work.stack):
            hits[place, 0], hits[place, 1] = i, t


# ── the set of states ──


@compiled
def mix(keys: Ints, i: int) -> int:
    """A hash of row ``i``."""
    h = np.int64(0)
    for w in range(keys.shape[1]):
        h = (h ^ keys[i, w]) * _K2
        h ^= (h >> 29) & 0x7FFFFFFFF
        h *= _K1
    return int(h ^ ((h >> 32) & 0xFFFFFFFF))


@compiled
def insert(rows: Ints, start: int, count: int, slots: Ints, room: int, order: Ints, known: int, append: bool) -> tuple[int, int]:
    """Insert rows into a hash set with open addressing; new ones are appended to ``order``.

    Returns how many rows were dealt with (less than ``count`` when ``room`` states are held), and how many states are known now.
    """
    ahead, width, last = 16, rows.shape[1], len(slots) - 1
    places = np.empty(16, np.int64)
    firsts = np.empty(16, np.int64)
    done = start
    while done < start + count:
        group = min(ahead, start + count - done)
        # Addresses first, then all first looks: these wait for memory together instead of one after the other.
        for k in range(group):
            places[k] = mix(rows, done + k) & last
        for k in range(group):
            firsts[k] = slots[places[k], 0]
        for k in range(group):
            row, place = done + k, places[k]
            if firsts[k] == rows[row, 0] + 1 and width == 1:
                continue
            if known >= room:
                return row - start, known
            while True:
                seen = slots[place, 0]
                if seen == 0:
                    slots[place, 0] = rows[row, 0] + 1
                    for w in range(1, width):
                        slots[place, w] = rows[row, w]
                    if append:
                        for w in range(width):
                            order[known, w] = rows[row, w]
                    known += 1
                    break
                if seen == rows[row, 0] + 1:
                    equal = True
                    for w in range(1, width):
                        if slots[place, w] != rows[row, w]:
                            equal = False
                    if equal:
                        break
                place = (place + 1) & last
        done += group
    return count, known


@compiled
def mark(rows: Ints, start: int, count: int, table: Ints, room: int, order: Ints, known: int, append: bool) -> tuple[int, int]:
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
def repack(net: Net, old: Ints, count: int, word: Small, shift: Ints, new: Ints) -> None:
    """Rows of one layout (the net's) as rows of another."""
    for i in range(count):
        for w in range(new.shape[1]):
            new[i, w] = 0
        for comp in range(len(net.word)):
            local = (old[i, net.word[comp]] >> net.shift[comp]) & net.mask[comp]
            new[i, word[comp]] += local << shift[comp]


# ── looking back ──


@compiled
def predecessor(net: Net, keys: Ints, first: int, last: int, target: Ints, work: Work, missing: Small, stats: Ints) -> tuple[int, int]:
    """The first row among ``first`` to ``last`` - 1, and the first trigger, that leads to ``target``; -1, -1 if none does."""
    for i in range(first, last):
        unpack(net, keys, i, work)
        spread = work.note[4]
        clauses(net, work.cur, work.sat)
        for e in range(enabled(net, work)):
            t = work.enabled[e]
            found = perform(net, t, work, missing, stats) == OK and same(target, 0, work.key)
            undo(net, keys, i, spread, work)
            if found:
                return i, t
    return -1, -1


@compiled
def edges_of(
    net: Net,
    asked: Asked,
    keys: Ints,
    first: int,
    last: int,
    work: Work,
    target: Ints,
    label: Small,
    holds: Ints,
    known: Truths,
    missing: Small,
    stats: Ints,
) -> tuple[int, int]:
    """Every step from rows ``first`` to ``last`` - 1: its target, its row, trigger and target's shard, which questions hold of it.

    ``known`` becomes false for a row with a step that is not allowed. Stops before the arrays are full: gives the row not dealt
    with yet, and how many steps were written.
    """
    made = 0
    for i in range(first, last):
        if made + len(net.trigger) > len(target):
            return i, made
        unpack(net, keys, i, work)
        spread = work.note[4]
        clauses(net, work.cur, work.sat)
        for e in range(enabled(net, work)):
            t = work.enabled[e]
            if perform(net, t, work, missing, stats) == OK:
                clauses(net, work.cur, work.after)
                for w in range(keys.shape[1]):
                    target[made, w] = work.key[w]
                label[made, 0], label[made, 1], label[made, 2] = i, t, shard_of(work.note[4])
                bits = np.int64(0)
                for q in range(len(asked.step)):
                    if evaluate(net, asked.step[q, 1], work, work.stack):
                        bits |= np.int64(1) << q
                holds[made] = bits
                made += 1
            else:
                known[i] = False
            undo(net, keys, i, spread, work)
    return last, made


@compiled
def resolve(rows: Ints, label: Small, count: int, shard: int, slots: Ints, numbers: Small, target: Small) -> None:
    """The numbers of those rows that lie in ``shard``."""
    for i in range(count):
        if label[i, 2] == shard:
            target[i] = numbers[find(rows, i, slots, len(slots) - 1)]


@compiled
def states_where(net: Net, asked: Asked, keys: Ints, first: int, last: int, work: Work, holds: Ints) -> None:
    """Which questions about states hold in each row, as bits."""
    for i in range(first, last):
        unpack(net, keys, i, work)
        clauses(net, work.cur, work.sat)
        bits = np.int64(0)
        for q in range(len(asked.state)):
            if evaluate(net, asked.state[q, 1], work, work.stack):
                bits |= np.int64(1) << q
        holds[i] = bits


@compiled
def index_rows(keys: Ints, count: int, slots: Ints, numbers: Small, offset: int) -> None:
    """Give each slot of a full hash set the number of its row."""
    last = len(slots) - 1
    for i in range(count):
        numbers[find(keys, i, slots, last)] = offset + i


@compiled
def find(rows: Ints, i: int, slots: Ints, last: int) -> int:
    """The slot of row ``i``, which must be in the set."""
    place = mix(rows, i) & last
    while True:
        if slots[place, 0] == rows[i, 0] + 1:
            equal = True
            for w in range(1, rows.shape[1]):
                if slots[place, w] != rows[i, w]:
                    equal = False
            if equal:
                return place
        place = (place + 1) & last
