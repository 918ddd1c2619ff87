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

Rule 1: no function here allocates memory that grows.
Rule 2: a network is two arrays, ``a`` of 32-bit and ``b`` of 64-bit integers, and the work of one thread a third, ``w``; ``places``
says what lies where. (A tuple of twenty arrays costs more to pass than a step costs to take: measured, 2.3 us against 0.04.)
Rule 3: everything is a signed 64-bit integer; 62 bits of each are used.

| module | holds |
|---|---|
| ``places`` | where everything lies in the arrays |
| ``jit`` | how functions are compiled, and where that is cached |
| ``step`` | programs, clauses, one step |
| ``walk`` | expanding states, putting questions |
| ``states`` | the set of known states |
| ``back`` | searching back, edges, labels |
| ``fold`` | one state for all that differ by an exchange |
"""
