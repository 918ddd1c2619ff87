"""Where everything lies: in ``a`` (tables, 32 bits), in ``b`` (numbers, 64 bits), and in ``w`` (the work of one thread)."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

Ints = npt.NDArray[np.int64]
Small = npt.NDArray[np.int32]
Truths = npt.NDArray[np.bool_]
Bytes = npt.NDArray[np.uint8]
Number = int | np.signedinteger[Any]
"""What the kernel calls an integer: 64 bits, whatever it was in Python."""

BITS = 62
"""Bits used of a word: a key stays positive, and 0 is left to say "empty"."""
SHARDS = 4
"""Parts into which the known states are divided; a power of two."""
MOST_COMPONENTS, MOST_WORDS, MOST_CLAUSE_WORDS, MOST_STACK = 256, 16, 64, 128

# ── b: the header, then one record a component ──
B_COMPONENTS, B_TRIGGERS, B_CLAUSE_WORDS, B_WORDS, B_CASCADE, B_TRIGGER_WORDS = range(6)
B_TRIGGER, B_PROGRAM, B_CODE, B_EVERY = range(6, 10)
"""Where triggers (in a), programs (in a), instructions (in b) and the bits of all triggers (in b) begin."""
B_ROW, B_QUIET_SEEN, B_RULED, B_READ = 10, 11, 20, 21
"""Words in the row of a local state: clauses, then a bit for each trigger that begins there and, as is known, leaves everything as it
is and counts nothing. Where in w it is noted which of those were enabled. Where in b the bits of triggers that have a program begin.
Where in w the components that a step read begin, in order."""
B_QUEUE, B_LOG, B_COUNTS, B_TOUCHED, B_ENABLED, B_ASKED_ONCE, B_MISSING, B_MISSING_ROOM = range(12, 20)
"""Where the queue, the log, the counts, the counts touched, the enabled triggers, the notes of what was asked
once of the state at hand, and the missing entries begin in w."""
LOWEST = 64
"""Where the table for finding the lowest bit of a word begins in b."""
RECORDS, RECORD = 128, 16
R_WORD, R_SHIFT, R_MASK, R_QUEUED, R_TABLE, R_STRIDE, R_BITS, R_VALUES, R_VALUES_COUNT, R_SPREAD, R_ROOM = range(11)
"""A component's record: its word, shift and mask in a key; whether it takes its inputs from the queue; where its table begins in a and
how many inputs a row has; where its clause bits and numbers begin in b and how many numbers there are; its part in the shard hash; how
many local states there is room for."""

# ── a: an entry, a trigger ──
E_NEXT, E_OUT, E_OUT_END, E_COUNT, E_COUNT_END = range(5)
"""An entry: next local state; its outputs (pairs of component and input; component -1: not allowed, the input says why); its counts
(pairs of which and how much). The table holds the place of the entry: -1 not known, -2 not known and asked for."""
ENTRY = 5
T_BUDGET, T_COMPONENT, T_INPUT, T_PROGRAM = range(4)
"""A trigger: its budget (-1: none), where it begins with which input, the program of the rest of its guard (-1: none)."""

# ── w: notes, then the state at hand ──
LOGGED, WHY, TOUCHED, TOUCHED_BITS, SPREAD, HOME_SPREAD, STEPS, CUTS, REDO, MISSED, QUIET, READ = range(12)
CUR = 16
"""Local states now."""
BEFORE = CUR + MOST_COMPONENTS
"""Local states before the step."""
KEY = BEFORE + MOST_COMPONENTS
HOME = KEY + MOST_WORDS
"""The key now, and before the step."""
SAT = HOME + MOST_WORDS
AFTER = SAT + MOST_CLAUSE_WORDS + 2
"""Clauses that hold before, and after the step. Two words more are read than there are."""
STACK = AFTER + MOST_CLAUSE_WORDS
FREE = STACK + MOST_STACK
"""Where the rest of w begins, of which b says what lies where."""

# ── asked: the questions; found: their hits ──
ASK_STATE, ASK_STEP, ASK_STUCK = 0, 2, 4
"""Where the rows of the questions about states, steps and deadlocks begin in ``asked``, and then how many there are."""
A_TAKEN, A_FAULTS, A_FREE, A_NEEDS, A_QUIET, A_ROWS = 6, 7, 8, 9, 10, 16
"""Where in ``found`` it is noted which triggers were taken (1: at all, 2: with a change), and which faults were found where (row,
trigger); how many questions about steps need nothing counted, which come first; what all others together need; how many of the steps
that leave everything as it is are asked about; where rows begin."""
NONE, FIRST, ALL = range(3)
Q_PLACE, Q_PROGRAM, Q_NEED, Q_MASKS = range(4)
"""A row: the place of its hit in ``found`` (row and trigger; -1: none yet); the program of what the masks do not say (-1: nothing);
its need; clause bits that must be set, one word after the other, and that must not. The need is counts of which one must not be zero
(bits), or, of a question that needs nothing counted, components of which one must move: where none does, it is the same for every step
from a state, and is asked once (-1: it counts all the same, and is asked every time)."""

# ── memo: outcomes of steps that were taken before ──
M_FREE, M_NODES, M_USED, M_EDGES_AT, M_ROW, M_FIRST = 0, 1, 2, 3, 4, 8
"""Where the free room begins, how many hashed nodes and how many of their edges there are, where the hashed edges begin, the most local
states of a component whose nodes have rows, and where the words of the triggers begin. The word of a trigger, and an edge, say how to go
on: the next node, the component that it looks at, and whether its edges are hashed; or the place of the outcome. An outcome: whether
anything changed, what is added to the shard hash and to each word of the key. A node is the place of its row, which has an edge for each
local state; of a component with very many local states, of which few come together with what was read before, it is a number, and the
edges are found by that and the local state, plus one."""
M_EDGES = 1 << 15
"""Room for hashed edges; three quarters of it are used at most."""
M_ID, M_LOCAL = 18, 17
M_MOST, M_OUTCOME, M_HASHED, M_KEY = (1 << M_ID) - 1, 1 << (M_ID + 8), 1 << (M_ID + 9), M_ID + 10
"""Bits of an edge: 18 for a place or a node, 8 for a component, 1 and 1, then of a hashed one 18 for a node and 17 for a local state."""

OK, MISSING, BROKEN = 0, 1, 2
"""How a step ended."""
BEYOND, ENDLESS = 0, 1
"""Why a step is not followed: it leaves the bounds, it does not end; more are numbered by the tables."""

(CONST, BIT, BIT_AFTER, VALUE, VALUE_AFTER, COUNT, EQ, NE, LT, LE, GT, GE, AND, OR, NOT, ADD, SUB, MAX, CHOOSE) = range(19)
"""Operations of a program. The argument of BIT is word << 6 | bit; of VALUE, component << 20 | number."""
