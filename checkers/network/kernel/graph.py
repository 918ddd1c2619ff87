"""Reachability and strongly connected components of graphs with millions of edges; the edges of each node lie side by side."""

from __future__ import annotations

import numpy as np

from turnproof.checkers.network.kernel.jit import compiled, pointer
from turnproof.checkers.network.kernel.places import Bytes, Ints, Number, Small


@compiled
def reach(first: Ints, target: Small, allowed: Bytes, seen: Bytes, stack: Small, count: Number) -> None:
    """Mark in ``seen`` every node that is reached along allowed edges from the ``count`` nodes on the stack, which are marked already."""
    ends, ok, known, todo = pointer(target), pointer(allowed), pointer(seen), pointer(stack)
    top = np.int64(count)
    while top > 0:
        top -= 1
        node = np.int64(todo[top])
        for e in range(first[node], first[node + 1]):
            other = np.int64(ends[e])
            if ok[e] != 0 and known[other] == 0:
                known[other] = 1
                todo[top] = other
                top += 1


@compiled
def in_order(source: Small, place: Ints, order: Ints) -> None:
    """Write into ``order`` the edges sorted by ``source``, equal ones as they were; ``place``: where each source begins, moved along."""
    begins, sorted_ones = pointer(source), pointer(order)
    for e in range(len(source)):
        node = np.int64(begins[e])
        sorted_ones[place[node]] = e
        place[node] += 1


@compiled
def components(
    first: Ints,
    target: Small,
    allowed: Bytes,
    wanted: Bytes,
    component: Small,
    index: Small,
    low: Small,
    at: Ints,
    stack: Small,
    path: Small,
) -> Number:
    """Number the strongly connected components (R. Tarjan, 1972) of the wanted nodes and allowed edges; how many there are.

    ``component`` is -1 where a node is not wanted, else gets its number. The other arrays are for the work: one place a node.
    """
    made, clock, top = np.int64(0), np.int64(0), np.int64(0)
    for root in range(len(wanted)):
        if wanted[root] == 0 or index[root] >= 0:
            continue
        depth = np.int64(0)
        path[0] = root
        index[root] = low[root] = clock
        at[root] = first[root]
        stack[top] = root
        clock += 1
        top += 1
        while depth >= 0:
            node = np.int64(path[depth])
            other = step(first, target, allowed, wanted, component, index, low, at, node)
            if other >= 0:
                depth += 1
                path[depth] = other
                index[other] = low[other] = clock
                at[other] = first[other]
                stack[top] = other
                clock += 1
                top += 1
                continue
            depth -= 1
            if depth >= 0:
                low[path[depth]] = min(low[path[depth]], low[node])
            if low[node] == index[node]:
                while True:
                    top -= 1
                    component[stack[top]] = made
                    if stack[top] == node:
                        break
                made += 1
    return made


@compiled
def step(
    first: Ints, target: Small, allowed: Bytes, wanted: Bytes, component: Small, index: Small, low: Small, at: Ints, node: Number
) -> Number:
    """The next node to go down to from ``node``, or -1 when its edges are done."""
    while at[node] < first[node + 1]:
        e = at[node]
        at[node] += 1
        other = np.int64(target[e])
        if allowed[e] == 0 or wanted[other] == 0:
            continue
        if index[other] < 0:
            return other
        if component[other] < 0:
            low[node] = min(low[node], index[other])
    return -1
