"""Formulas made smaller by what is known of constants, so that the text an oracle reads has no tests that cannot fail."""

from __future__ import annotations

from collections.abc import Iterable
from typing import cast

from turnproof.machines.kernel import Formula, Variable, fields_of
from turnproof.machines.kernel.domain import Kind
from turnproof.machines.kernel.evaluate import PYTHON
from turnproof.specs.system_words import Pending, TimerIs

WIDEST = 255
"""Beyond every number that a message carries."""


def fold(node: object) -> object:
    """The formula with every part evaluated that holds constants alone; ``True`` and ``False`` where that decides it."""
    if not isinstance(node, Formula) or node.op == "var":
        return node
    if node.op == "named":
        return fold(node.args[1])
    args = tuple(fold(arg) for arg in node.args)
    if not any(isinstance(arg, Formula) for arg in args):
        return cast(object, PYTHON[node.op](*args))
    if node.op in ("and", "or"):
        return _joined(node.op, args)
    if node.op == "implies":
        return _joined("or", (fold(Formula("not", (args[0],))), args[1]))
    if node.op == "choose":
        return _chosen(args)
    if node.op == "not":
        return _denied(args[0])
    if node.op in ("eq", "ne") and any(isinstance(arg, bool) for arg in args):
        return _compared(node.op, args)
    return Formula(node.op, args)


def _joined(op: str, args: tuple[object, ...]) -> object:
    decides = op == "or"
    left, right = args
    if left is decides or right is decides:
        return decides
    if isinstance(left, bool):
        return right
    return left if isinstance(right, bool) else Formula(op, args)


def _chosen(args: tuple[object, ...]) -> object:
    condition, then, otherwise = args
    if isinstance(condition, bool):
        return then if condition else otherwise
    return Formula("choose", args)


def _denied(operand: object) -> object:
    if isinstance(operand, Formula) and operand.op == "not":
        return operand.args[0]
    if isinstance(operand, Formula) and operand.op in ("eq", "ne"):
        return Formula("ne" if operand.op == "eq" else "eq", operand.args)
    return Formula("not", (operand,))


def _compared(op: str, args: tuple[object, ...]) -> object:
    known, other = args if isinstance(args[0], bool) else args[::-1]
    return other if known is (op == "eq") else _denied(other)


def conjunction(terms: Iterable[object]) -> object:
    """All of them."""
    found: object = True
    for term in terms:
        found = term if found is True else found if term is True else Formula("and", (found, term))
    return found


def negation(node: object) -> object:
    """Its opposite."""
    return not node if isinstance(node, bool) else Formula("not", (node,))


def span(node: object, counter: int, state: type) -> tuple[int, int]:
    """Bounds of a number's value. A counter of ``state`` keeps to ``counter``; one that an event carries has no upper bound of its own."""
    if not isinstance(node, Formula):
        return (int(node), int(node)) if isinstance(node, int) else (0, 0)
    if node.op == "var":
        return _span_of(cast(Variable, node.args[0]), counter, state)
    inner = [span(arg, counter, state) for arg in node.args]
    if node.op == "add":
        return inner[0][0] + inner[1][0], inner[0][1] + inner[1][1]
    if node.op == "sub":
        return inner[0][0] - inner[1][1], inner[0][1] - inner[1][0]
    if node.op == "latest":
        return max(inner[0][0], inner[1][0]), max(inner[0][1], inner[1][1])
    if node.op == "choose":
        return min(inner[1][0], inner[2][0]), max(inner[1][1], inner[2][1])
    return 0, 1


def _span_of(variable: Variable, counter: int, state: type) -> tuple[int, int]:
    if isinstance(variable, TimerIs):
        return 0, 1
    if isinstance(variable, Pending):
        return 0, WIDEST
    field = fields_of(variable.owner)[variable.name]
    if field.kind is Kind.RANGE:
        return field.lo, field.hi
    return (0, counter if variable.owner is state else WIDEST) if field.kind is Kind.COUNTER else (0, 1)


__all__ = ["WIDEST", "conjunction", "fold", "negation", "span"]
