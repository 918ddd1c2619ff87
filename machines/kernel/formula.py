"""Guards and updates as data: one small tree, read by Python, by z3, by the drawings and by the mutants.

Theory of operation
===================

``now = symbol(Reply)`` is a real ``Reply`` whose every field holds a variable. To a type checker ``now.phase`` is a
``Phase``; at run time ``now.phase == RUNNING`` is a :class:`Formula`. A formula is never evaluated by accident:
``bool(formula)`` raises, so ``and``, ``or``, ``not``, ``in``, ``if`` and chained comparison fail where they are written.
Write ``&``, ``|``, :func:`not_`, :func:`one_of`, :func:`choose`.

Two rules of this file:

Rule 1: the tree knows nothing of its readers. A reader is a table from operator to callable, folded by :func:`read`.
Rule 2: every operator has one entry in :data:`OPERATORS`, and every reader must have one for each of them.

The reason for the tree: z3 values passed through ordinary Python predicates give wrong formulas without an error
(measured on z3 5.4.1: six of eight ordinary guard shapes).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from enum import Enum
from typing import Any, NoReturn, TypeVar, cast

import attrs

T = TypeVar("T")
V = TypeVar("V")

OPERATORS: Mapping[str, str] = {
    "eq": "=",
    "ne": "/=",
    "lt": "<",
    "le": "<=",
    "gt": ">",
    "ge": ">=",
    "and": "and",
    "or": "or",
    "not": "not",
    "implies": "implies",
    "add": "+",
    "sub": "-",
    "choose": "if",
    "latest": "latest",
}
"""Operator -> how a person reads it. ``var`` and ``named`` are the two leaves and wrappers every reader knows besides these."""


@attrs.frozen
class Variable:
    """One field of one class. ``scope`` is "" for the present state and for events, "next" for the state after a step."""

    owner: type
    name: str
    scope: str = ""

    def __str__(self) -> str:
        return f"{self.scope}.{self.name}" if self.scope else self.name

    def inner(self) -> tuple[object, ...]:
        """Formulas this variable itself refers to; none for a plain field. Specifications subclass this for patterns of effects."""
        return ()


@attrs.frozen(eq=False, repr=False)
class Formula:
    """A node of the tree. ``args`` holds formulas and constants; for ``var`` one :class:`Variable`; for ``named`` (name, body)."""

    op: str
    args: tuple[object, ...]

    __hash__ = object.__hash__

    def __eq__(self, other: object) -> Formula:  # type: ignore[override]
        return Formula("eq", (self, other))

    def __ne__(self, other: object) -> Formula:  # type: ignore[override]
        return Formula("ne", (self, other))

    def __lt__(self, other: object) -> Formula:
        return Formula("lt", (self, other))

    def __le__(self, other: object) -> Formula:
        return Formula("le", (self, other))

    def __gt__(self, other: object) -> Formula:
        return Formula("gt", (self, other))

    def __ge__(self, other: object) -> Formula:
        return Formula("ge", (self, other))

    def __and__(self, other: object) -> Formula:
        return Formula("and", (self, formula(other, f"an operand of `&` beside `{self}`")))

    __rand__ = __and__

    def __or__(self, other: object) -> Formula:
        return Formula("or", (self, formula(other, f"an operand of `|` beside `{self}`")))

    __ror__ = __or__

    def __add__(self, other: object) -> Formula:
        return Formula("add", (self, other))

    def __sub__(self, other: object) -> Formula:
        return Formula("sub", (self, other))

    def __invert__(self) -> NoReturn:
        # On a plain bool ~ is integer complement (~True == -2), so the habit is stopped before it spreads to values.
        raise TypeError(f"`~({self})`: write not_({self})")

    def __bool__(self) -> NoReturn:
        raise TypeError(
            f"`{self}` is a formula, not a value: `and`, `or`, `not`, `in`, `if` and chained comparison cannot read it. "
            "Write &, |, not_(), one_of(), choose()."
        )

    def __contains__(self, item: object) -> NoReturn:
        raise TypeError(f"`in` cannot read the formula `{self}`: write one_of(field, value, ...)")

    def __str__(self) -> str:
        return show(self)

    def __repr__(self) -> str:
        return f"Formula({show(self)})"


@attrs.frozen(eq=False)
class OnlyIf:
    """An effect that is emitted only where ``condition`` holds in the state before the step."""

    condition: Formula
    effect: object


def symbol(cls: type[T], *, scope: str = "") -> T:
    """An instance of ``cls`` whose every field is a variable; type checkers see an ordinary instance.

    ``scope="next"`` names the state after a step, for properties of a step. Raises ``TypeError`` if ``cls`` is no attrs class.
    """
    if not attrs.has(cls):
        raise TypeError(f"symbol({cls!r}): decorate the class with attrs.frozen")
    variables = {f.alias or f.name: Formula("var", (Variable(cls, f.name, scope),)) for f in attrs.fields(cast(Any, cls))}
    return cast(Any, cls)(**variables)  # type: ignore[no-any-return]


def is_formula(value: object) -> bool:
    """Whether ``value`` is a tree and not a constant."""
    return isinstance(value, Formula)


def formula(value: object, what: str) -> Formula:
    """``value`` as a formula, or ``TypeError`` that says what went wrong. ``what`` names the place in the message."""
    if isinstance(value, Formula):
        return value
    if isinstance(value, bool):
        raise TypeError(
            f"{what} is the constant {value}: it was evaluated in Python. Compare with ==, never with `is`; write one_of() for `in`."
        )
    raise TypeError(f"{what} is {value!r}, not a formula over symbol(...)")


def not_(operand: bool) -> bool:
    """Negation. ``not`` would ask the formula for a truth value, which it does not have."""
    return cast(bool, Formula("not", (formula(operand, "the operand of not_()"),)))


def implies(antecedent: bool, consequent: bool) -> bool:
    """``antecedent`` implies ``consequent``."""
    return cast(
        bool, Formula("implies", (formula(antecedent, "the antecedent of implies()"), formula(consequent, "the consequent of implies()")))
    )


def one_of(field: T, *values: T) -> bool:
    """``field`` equals one of ``values`` (at least one)."""
    if not values:
        raise TypeError("one_of() needs at least one value")
    return any_of(*(field == value for value in values))


def all_of(*operands: bool) -> bool:
    """Conjunction of one or more formulas."""
    return _join("and", operands)


def any_of(*operands: bool) -> bool:
    """Disjunction of one or more formulas."""
    return _join("or", operands)


def _join(op: str, operands: tuple[bool, ...]) -> bool:
    if not operands:
        raise TypeError(f"a chain of `{op}` needs at least one operand")
    first, *rest = (formula(o, f"an operand of `{op}`") for o in operands)
    for other in rest:
        first = Formula(op, (first, other))
    return cast(bool, first)


def choose(condition: bool, then: T, otherwise: T) -> T:
    """``then`` where ``condition`` holds, else ``otherwise``: a conditional value inside an update or an effect."""
    return cast(T, Formula("choose", (formula(condition, "the condition of choose()"), then, otherwise)))


def latest(left: int, right: int) -> int:
    """The larger of two times in milliseconds. For updates only; a guard never reads a time."""
    return cast(int, Formula("latest", (left, right)))


def named(name: str, body: bool) -> bool:
    """``body`` under a name that drawings, explanations and reports show in its place."""
    return cast(bool, Formula("named", (name, formula(body, f"named({name!r}, ...)"))))


def only_if(condition: bool, effect: T) -> T:
    """``effect`` is emitted only where ``condition`` holds before the step; its place in the order of effects is kept."""
    return cast(T, OnlyIf(formula(condition, "the condition of only_if()"), effect))


Operators = Mapping[str, Callable[..., V]]


def read(node: object, variable: Callable[[Variable], V], operators: Operators[V], constant: Callable[[object], V]) -> V:
    """Fold the tree: variables through ``variable``, operators through ``operators``, everything else through ``constant``.

    Raises ``KeyError`` with the operator's name if a reader does not know it.
    """
    if not isinstance(node, Formula):
        return constant(node)
    if node.op == "var":
        return variable(cast(Variable, node.args[0]))
    if node.op == "named":
        return read(node.args[1], variable, operators, constant)
    return operators[node.op](*(read(arg, variable, operators, constant) for arg in node.args))


def nodes(node: object) -> Iterator[Formula]:
    """Every formula inside ``node``, itself first."""
    if isinstance(node, OnlyIf):
        yield from nodes(node.condition)
        yield from nodes(node.effect)
    elif isinstance(node, Formula):
        yield node
        for arg in node.args:
            for inner in arg.inner() if isinstance(arg, Variable) else (arg,):
                yield from nodes(inner)
    elif attrs.has(type(node)) and not isinstance(node, (type, Variable)):
        for field in attrs.fields(cast(Any, type(node))):
            yield from nodes(getattr(node, field.name))


def variables(node: object) -> frozenset[Variable]:
    """The variables that occur in ``node``."""
    return frozenset(cast(Variable, n.args[0]) for n in nodes(node) if n.op == "var")


def conjuncts(node: Formula) -> tuple[Formula, ...]:
    """``a & (b & c)`` as (a, b, c); a named formula is opened only if it is itself a conjunction at the top."""
    if node.op == "and":
        return tuple(c for arg in node.args for c in conjuncts(cast(Formula, arg)))
    return (node,)


def show_constant(value: object) -> str:
    """A constant as reports print it: an Enum by its lower-case name, an empty string as ``none``."""
    if isinstance(value, Enum):
        return value.name.lower()
    if isinstance(value, bool):
        return "yes" if value else "no"
    if value == "":
        return "none"
    return str(value)


def show(node: object, *, outer: bool = True, names: Callable[[Variable], str] = str) -> str:
    """The tree as a person reads it: ``phase = running and not frozen``. ``names`` says how a variable is called."""
    if not isinstance(node, Formula):
        return show_constant(node)
    if node.op == "var":
        return names(cast(Variable, node.args[0]))
    if node.op == "named":
        return str(node.args[0])

    def inner(arg: object, *, outer: bool = True) -> str:
        return show(arg, outer=outer, names=names)

    if node.op == "not":
        return f"not {inner(node.args[0], outer=False)}"
    if node.op == "choose":
        condition, then, otherwise = node.args
        return f"({inner(then)} if {inner(condition)} else {inner(otherwise)})"
    if node.op == "latest":
        return f"latest({inner(node.args[0])}, {inner(node.args[1])})"
    if node.op == "eq" and node.args[1] is True:
        return inner(node.args[0], outer=outer)
    members = _members(node)
    if members:
        return f"{inner(members[0].args[0])} in ({', '.join(inner(m.args[1]) for m in members)})"
    known = OPERATORS.get(node.op, node.op)
    if len(node.args) < 2:
        return f"{known}({', '.join(inner(arg) for arg in node.args)})"
    text = f" {known} ".join(inner(arg, outer=_same(node, arg)) for arg in node.args)
    return text if outer or node.op in ("eq", "ne", "lt", "le", "gt", "ge") else f"({text})"


def _members(node: Formula) -> tuple[Formula, ...]:
    """``x = a or x = b`` as its comparisons, which read better as ``x in (a, b)``; empty for any other tree."""
    parts = [node]
    while parts[0].op == "or":
        parts = [cast(Formula, arg) for arg in parts[0].args] + parts[1:]
    if len(parts) < 2 or not all(p.op == "eq" and not isinstance(p.args[1], Formula) and p.args[1] is not True for p in parts):
        return ()
    compared = [p.args[0] for p in parts]
    same = {v.args[0] if isinstance(v, Formula) and v.op == "var" else None for v in compared}
    return tuple(parts) if len(same) == 1 and None not in same else ()


def _same(parent: Formula, child: object) -> bool:
    """Brackets are left out inside a chain of one associative operator."""
    return isinstance(child, Formula) and child.op == parent.op and parent.op in ("and", "or")
