"""Compiled loops over the graph of promises: its steps once more, and where fair runs can stay for ever.

A graph is rows of steps: ``first[n]`` to ``first[n + 1]`` are those of node ``n``, and ``target`` says where they lead. What holds is
bits: bit k of ``does[n]`` says that assumption k is enabled in a node, bit k of ``takes[e]`` that a step takes it.

The definition is that of :mod:`turnproof.checkers.liveness`: a component is fair if every weak assumption is somewhere not enabled or
taken inside, and every strong one taken inside or nowhere enabled.
"""

from __future__ import annotations

import numpy as np

from turnproof.checkers.network.kernel.jit import compiled, pointer
from turnproof.checkers.network.kernel.places import B_ENABLED, B_TRIGGERS, B_WORDS, KEY, OK, SPREAD, Bytes, Ints, Number, Small, Truths
from turnproof.checkers.network.kernel.step import changed, clauses_after, enabled, evaluate, perform, shard_of, undo, unpack

FAIR, AGAIN, LATER = 1, 2, 4
"""What is known of a node: a fair run can visit it again and again; it is to be looked at again; it is not the first of its component."""


# ── the steps ──


@compiled
def steps_of(
    a: Small,
    b: Ints,
    w: Ints,
    keys: Ints,
    first: Number,
    last: Number,
    programs: Small,
    bits: Ints,
    does: Ints,
    target: Ints,
    label: Small,
    takes: Ints,
    known: Truths,
) -> tuple[Number, Number]:
    """The steps from rows ``first`` to ``last`` - 1: target; row, trigger, target's shard (-1: the row itself); what holds, as bits.

    ``programs`` are those of the questions about steps, and last the one that says whether a step has an effect. ``bits``: the questions
    that matter only where an assumption is enabled, all others, and those that a step without change or effect does not answer.
    A step that changes nothing, and of which nothing holds, is left out. ``known`` becomes false for a row with a step that is not
    followed. Stops before the arrays are full: gives the row not dealt with yet, and how many steps were written.
    """
    pa, pb, pw, asked, made = pointer(a), pointer(b), pointer(w), pointer(programs), 0
    acted = np.int64(programs[len(programs) - 1])
    for i in range(first, last):
        if made + b[B_TRIGGERS] > len(target):
            return i, made
        unpack(pb, pw, pointer(keys), i)
        wanted = does[i] & bits[0] | bits[1]
        for e in range(enabled(pa, pb, pw)):
            t = w[b[B_ENABLED] + e]
            if perform(pa, pb, pw, t) != OK:
                known[i] = False
                undo(pb, pw)
                continue
            holds, moved = np.int64(0), changed(pb, pw)
            if wanted != 0:
                clauses_after(pb, pw)
                holds = np.int64(which(pa, pb, pw, asked, wanted))
            if not moved and holds & bits[2] != 0 and evaluate(pa, pb, pw, acted) == 0:
                holds &= ~bits[2]
            if moved or holds != 0:
                for n in range(b[B_WORDS]):
                    target[made, n] = w[KEY + n]
                label[made, 0], label[made, 1], label[made, 2] = i, t, shard_of(w[SPREAD]) if moved else -1
                takes[made] = holds
                made += 1
            undo(pb, pw)
    return last, made


@compiled
def which(a: Small, b: Ints, w: Ints, programs: Small, wanted: Number) -> Number:
    """Which of the wanted questions hold of the step at hand, as bits."""
    holds, q = np.int64(0), np.int64(0)
    while wanted != 0:
        if wanted & 1 and evaluate(a, b, w, np.int64(programs[q])) != 0:
            holds |= np.int64(1) << q
        wanted >>= 1
        q += 1
    return int(holds)


# ── ways ──


@compiled
def reach(first: Ints, target: Small, takes: Ints, blocked: Number, region: Bytes, seen: Bytes, stack: Small, count: Number) -> None:
    """Mark in ``seen`` what is reached in ``region`` from the ``count`` nodes on the stack, which are marked, without a blocked step."""
    top = np.int64(count)
    while top > 0:
        top -= 1
        node = np.int64(stack[top])
        for e in range(first[node], first[node + 1]):
            other = np.int64(target[e])
            if seen[other] == 0 and region[other] != 0 and takes[e] & blocked == 0:
                seen[other] = 1
                stack[top] = other
                top += 1


@compiled
def begun(target: Small, takes: Ints, begins: Number, blocked: Number, region: Bytes, starts: Bytes) -> Number:
    """Mark the nodes of ``region`` to which a step leads that begins something and is not blocked; how many begin it at all."""
    found = np.int64(0)
    for e in range(len(target)):
        if takes[e] & begins != 0:
            found += 1
            if takes[e] & blocked == 0 and region[target[e]] != 0:
                starts[target[e]] = 1
    return int(found)


@compiled
def leading(first: Ints, target: Small, goal: Bytes) -> None:
    """Mark what leads to a goal, in as many passes as it takes. Most nodes lead to later ones, so each pass goes from back to front."""
    more = True
    while more:
        more = False
        for node in range(len(goal) - 1, -1, -1):
            if goal[node] == 0:
                for e in range(first[node], first[node + 1]):
                    if goal[target[e]] != 0:
                        goal[node] = 1
                        more = True
                        break


# ── components ──


@compiled
def fair_parts(
    first: Ints,
    target: Small,
    takes: Ints,
    does: Ints,
    weak: Number,
    strong: Number,
    blocked: Number,
    index: Small,
    at: Ints,
    stack: Small,
    path: Small,
    found: Bytes,
) -> Number:
    """Judge each strongly connected component of the nodes whose ``index`` is 0; how many nodes are FAIR or to be looked at AGAIN.

    The other nodes have an index that is one more than there are nodes. Components are found with one number a node (D. J. Pearce, "A
    space-efficient algorithm for finding strongly connected components", 2016): its index while it is on the way, and then the number
    of its component, which is larger than every index from then on. ``path`` is how the search went down; ``stack`` what waits for the
    first of its component; ``at`` the next step of each node.
    """
    nodes = len(index)
    clock, component, waiting, marked = np.int64(1), np.int64(nodes), np.int64(0), np.int64(0)
    for root in range(nodes):
        if index[root] != 0:
            continue
        depth = np.int64(0)
        path[0], at[root], index[root] = root, first[root], clock
        clock += 1
        while depth >= 0:
            node = np.int64(path[depth])
            below = descend(first, target, takes, blocked, index, at, found, node)
            if below >= 0:
                depth += 1
                path[depth], at[below], index[below] = below, first[below], clock
                clock += 1
                continue
            depth -= 1
            lowest = np.int64(index[node])
            if depth >= 0 and lowest < index[path[depth]]:
                index[path[depth]] = lowest
                found[path[depth]] |= LATER
            stack[waiting] = node
            waiting += 1
            if found[node] & LATER:
                continue
            begins = waiting - 1
            while begins > 0 and index[stack[begins - 1]] >= lowest:
                begins -= 1
            clock -= waiting - begins
            for n in range(begins, waiting):
                index[stack[n]] = component
            marked += verdict(first, target, takes, does, weak, strong, blocked, index, stack, begins, waiting, found)
            component -= 1
            waiting = begins
    return int(marked)


@compiled
def descend(first: Ints, target: Small, takes: Ints, blocked: Number, index: Small, at: Ints, found: Bytes, node: Number) -> Number:
    """The next node to go down to from ``node``, or -1 when its steps are done."""
    lowest = np.int64(index[node])
    for e in range(at[node], first[node + 1]):
        if takes[e] & blocked != 0:
            continue
        other = np.int64(target[e])
        if index[other] == 0:
            at[node] = e + 1
            return other
        if index[other] < lowest:
            lowest = np.int64(index[other])
            index[node] = lowest
            found[node] |= LATER
    at[node] = first[node + 1]
    return -1


@compiled
def verdict(
    first: Ints,
    target: Small,
    takes: Ints,
    does: Ints,
    weak: Number,
    strong: Number,
    blocked: Number,
    index: Small,
    stack: Small,
    begins: Number,
    ends: Number,
    found: Bytes,
) -> Number:
    """Mark the nodes of one component, ``stack[begins:ends]``, in ``found``; how many are marked.

    Where it lacks nothing but a strong assumption, what does not enable that is to be looked at again.
    """
    always, some = np.int64(-1), np.int64(0)
    for n in range(begins, ends):
        always &= does[stack[n]]
        some |= does[stack[n]]
    lacks = always & weak | some & strong
    for n in range(begins, ends):
        node = np.int64(stack[n])
        found[node] = 0
        if lacks != 0:
            for e in range(first[node], first[node + 1]):
                if takes[e] & lacks != 0 and takes[e] & blocked == 0 and index[target[e]] == index[node]:
                    lacks &= ~np.int64(takes[e])
    if lacks & weak != 0:
        return 0
    marked = np.int64(0)
    for n in range(begins, ends):
        if does[stack[n]] & lacks == 0:
            found[stack[n]] = FAIR if lacks == 0 else AGAIN
            marked += 1
    return int(marked)
