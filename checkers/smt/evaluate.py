"""Evaluates z3 terms over NumPy columns: the very term the solver gets, read by its nodes, for all pairs of a graph at once.

An independent reading of a term, strict about every kind of node: a bit-vector comparison is signed or unsigned exactly as its
node says, so that a `<` where a `bvult` was meant shows as a disagreement here as it would in a proof. A node of a kind that is
not known raises :class:`UnknownNode`; nothing is guessed.

Values are int64: truth values 0 and 1 as bool columns, bit-vectors without a sign. Integers are unbounded in z3; a column
whose values could leave 62 bits raises ``OverflowError``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import attrs
import numpy as np
from numpy.typing import NDArray

from turnproof.checkers.smt import z3api
from turnproof.checkers.smt.z3api import KINDS, Expr

Column = NDArray[Any]
"""int64, or bool_ for truth values."""

LIMIT = 1 << 62


class UnknownNode(ValueError):
    """A term holds a node that this reading does not know."""


def _signed(column: Column, width: int) -> Column:
    half = np.int64(1 << (width - 1))
    return (column ^ half) - half


def _bounded(column: Column) -> Column:
    if column.size and (int(column.max()) >= LIMIT or int(column.min()) <= -LIMIT):
        raise OverflowError("a column of integers leaves 62 bits")
    return column


def _sum(*operands: Column) -> Column:
    result: Column = operands[0].astype(np.int64)
    for operand in operands[1:]:
        result = _bounded(result + operand)
    return result


def _difference(*operands: Column) -> Column:
    result: Column = operands[0].astype(np.int64)
    for operand in operands[1:]:
        result = _bounded(result - operand)
    return result


def _all_differ(*operands: Column) -> Column:
    result: Column = np.ones(1, dtype=np.bool_)
    for n, left in enumerate(operands):
        for right in operands[n + 1 :]:
            result = result & (left != right)
    return result


def _every(*operands: Column) -> Column:
    result: Column = np.ones(1, dtype=np.bool_)
    for operand in operands:
        result = result & operand.astype(np.bool_)
    return result


def _some(*operands: Column) -> Column:
    result: Column = np.zeros(1, dtype=np.bool_)
    for operand in operands:
        result = result | operand.astype(np.bool_)
    return result


def _either(condition: Column, then: Column, otherwise: Column) -> Column:
    chosen: Column = np.where(condition, then, otherwise)
    return chosen


COLUMNS: Mapping[str, Callable[..., Column]] = {
    "=": lambda left, right: left == right,
    "distinct": _all_differ,
    "ite": _either,
    "and": _every,
    "or": _some,
    "not": lambda operand: ~operand.astype(np.bool_),
    "=>": lambda left, right: ~left.astype(np.bool_) | right.astype(np.bool_),
    "xor": lambda left, right: left != right,
    "<=": lambda left, right: left <= right,
    ">=": lambda left, right: left >= right,
    "<": lambda left, right: left < right,
    ">": lambda left, right: left > right,
    "+": _sum,
    "-": _difference,
    "unary -": lambda operand: -operand.astype(np.int64),
    "bvule": lambda left, right: left <= right,
    "bvuge": lambda left, right: left >= right,
    "bvult": lambda left, right: left < right,
    "bvugt": lambda left, right: left > right,
    "bvsle": lambda left, right: left <= right,
    "bvsge": lambda left, right: left >= right,
    "bvslt": lambda left, right: left < right,
    "bvsgt": lambda left, right: left > right,
}
"""Kind of node -> how columns of its operands become its column. Operands of ``bvs...`` come with their sign."""

_NAMES = {number: name for name, number in KINDS.items()}
_LITERALS = frozenset({"true", "false", "integer", "bits"})
_DECIDES = {"and": False, "or": True, "=>": False}
"""The operand that decides at once; of ``=>`` the first one, while a second that is true decides too."""
_SIGNED = frozenset({"bvsle", "bvsge", "bvslt", "bvsgt"})


@attrs.frozen(eq=False)
class Node:
    """The top of a term, taken out of z3 once."""

    term: Expr
    """Kept, because z3 gives the number of a freed term to another one."""
    kind: str
    operands: tuple[tuple[int, Expr], ...]
    name: str = ""
    constant: Column | None = None
    widths: tuple[int, ...] = ()


class Nodes:
    """The nodes of one context's terms, shared by evaluators of different columns."""

    def __init__(self) -> None:
        self.known: dict[int, Node] = {}

    def of(self, key: int, term: Expr) -> Node:
        """The node of a term whose identity is ``key``. Raises :class:`UnknownNode`."""
        found = self.known.get(key)
        if found is None:
            found = self.known[key] = _node(term)
        return found


def _node(term: Expr) -> Node:
    kind = _NAMES.get(z3api.kind(term))
    if kind is None:
        raise UnknownNode(f"{z3api.kind_name(z3api.kind(term))} in {z3api.text(term)[:80]}")
    if kind in _LITERALS:
        value = z3api.literal_value(term)
        if value is None:
            raise UnknownNode(f"a literal without a value: {z3api.text(term)[:80]}")
        return Node(term, kind, (), constant=np.array([value], dtype=np.bool_ if z3api.sort_of(term) == z3api.BOOL else np.int64))
    operands = tuple((z3api.identity(arg), arg) for arg in z3api.arguments(term))
    if kind == "symbol":
        if operands:
            raise UnknownNode(f"a function: {z3api.text(term)[:80]}")
        return Node(term, kind, (), name=z3api.name_of(term))
    return Node(term, kind, operands, widths=tuple(z3api.width_of(arg) for _, arg in operands) if kind in _SIGNED else ())


class Evaluator:
    """Reads terms of one context in one environment of columns; shared nodes are computed once.

    ``lazy``: an operand that decides ``and``, ``or`` or ``=>`` everywhere spares the others, which then may hold anything.
    """

    def __init__(self, symbols: Mapping[str, Column], *, nodes: Nodes | None = None, lazy: bool = False) -> None:
        self.symbols, self.lazy = symbols, lazy
        self.nodes = Nodes() if nodes is None else nodes
        self._done: dict[int, Column] = {}

    def column(self, term: Expr) -> Column:
        """The values of ``term``, of length 1 where it is the same everywhere."""
        return self._column(z3api.identity(term), term)

    def _column(self, key: int, term: Expr) -> Column:
        found = self._done.get(key)
        if found is None:
            found = self._done[key] = self._read(self.nodes.of(key, term))
        return found

    def _read(self, node: Node) -> Column:
        if node.constant is not None:
            return node.constant
        if node.kind == "symbol":
            if node.name not in self.symbols:
                raise UnknownNode(f"no column for the symbol {node.name}")
            return self.symbols[node.name]
        if self.lazy and node.kind in _DECIDES:
            for place, operand in enumerate(node.operands):
                column, decides = self._column(*operand), _DECIDES[node.kind] if node.kind != "=>" or place == 0 else True
                if column.size == 1 and bool(column[0]) is decides:
                    return _NO if node.kind == "and" else _YES
        operands = [self._column(*operand) for operand in node.operands]
        if node.kind in _SIGNED:
            operands = [_signed(column, width) for column, width in zip(operands, node.widths, strict=True)]
        return COLUMNS[node.kind](*operands)


_YES: Column = np.ones(1, dtype=np.bool_)
_NO: Column = np.zeros(1, dtype=np.bool_)
