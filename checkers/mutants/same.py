"""Pairs that a mutant treats alike, so that one of them stands for all.

What two rows make of a pair differs or does not by what they write and by what they read to write it, for which guard held is
settled. Pairs with the same event, the same two rows and the same values in those fields need one step to find out.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from turnproof.checkers.columns import Array
from turnproof.checkers.graph import Graph
from turnproof.checkers.mutants.words import AnyRow
from turnproof.machines.kernel import Formula, Kind, Variable, fields_of, variables
from turnproof.specs.language import AnyMachine


def fields_that_matter(machine: AnyMachine, row: AnyRow) -> frozenset[str]:
    """The fields of the state that a row writes, or reads for what it writes and emits; opaque ones left out."""
    known = fields_of(machine.state)
    nodes: list[object] = [*row.emit]
    found = set() if row.to is None else {machine.phase}
    if row.data is not None:
        written = {name: getattr(row.data, name) for name in known if not _stays(machine, name, getattr(row.data, name))}
        nodes += written.values()
        found |= set(written)
    found |= {word.name for node in nodes for word in variables(node) if word.owner is machine.state}
    return frozenset(name for name in found if known[name].kind is not Kind.OPAQUE)


def _stays(machine: AnyMachine, name: str, node: object) -> bool:
    return isinstance(node, Formula) and node.op == "var" and node.args[0] == Variable(machine.state, name)


class Alike:
    """The rows of one mutant, and the fields that matter to each."""

    def __init__(self, graph: Graph, rows: tuple[AnyRow, ...]) -> None:
        self.graph, self.rows = graph, rows
        self._known: dict[int, frozenset[str]] = {}

    def _fields(self, row: int) -> frozenset[str]:
        if row not in self._known:
            self._known[row] = fields_that_matter(self.graph.machine, self.rows[row])
        return self._known[row]

    def groups(self, before: Array, after: Array, among: Array) -> Iterator[tuple[int, Array]]:
        """(event, its nodes) for each group of the marked pairs. ``before`` and ``after`` hold the rows that answer, (event, node)."""
        for event in np.flatnonzero(among.any(axis=1)).tolist():
            nodes = np.flatnonzero(among[event])
            rows = before[event, nodes].astype(np.int64) * len(self.rows) + after[event, nodes]
            for pair in np.unique(rows).tolist():
                yield from ((event, group) for group in self._split(nodes[rows == pair], *divmod(pair, len(self.rows))))

    def _split(self, nodes: Array, before: int, after: int) -> Iterator[Array]:
        key = np.zeros(len(nodes), dtype=np.int64)
        for name in sorted(self._fields(before) | self._fields(after)):
            column = self.graph.columns[self.graph.machine.state, name][nodes].astype(np.int64)
            low = int(column.min())
            # Numbered anew each time, so that the key never outgrows its 64 bits.
            _, key = np.unique(key * (int(column.max()) - low + 1) + column - low, return_inverse=True)
            key = key.ravel().astype(np.int64)
        order = np.argsort(key, kind="stable")
        yield from np.split(nodes[order], np.flatnonzero(np.diff(key[order])) + 1)


__all__ = ["Alike", "fields_that_matter"]
