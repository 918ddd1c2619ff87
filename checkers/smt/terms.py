"""The z3 reading of a formula: one table from operator to z3 term, with the sort of every term checked.

| kind of field | sort | domain |
|---|---|---|
| Enum | bit-vector, members numbered in order of definition | at most the last member (``bvule``) |
| bool | Bool | |
| Range | Int | lo..hi |
| Counter | Int | at least 0 |
| Token | Int, only compared for equality; nobody is 0 | |
| Opaque | none: left out | |

z3 would compare a phase with a result without complaint, if both take four bits. Hence :class:`Sort`: what z3 cannot tell
apart is told apart here, and a wrong operand is a :class:`TableError` with both sorts.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum
from typing import NoReturn, cast

import attrs

from turnproof.checkers.smt import z3api
from turnproof.checkers.smt.z3api import Context, Expr
from turnproof.machines.kernel import NOBODY, Field, Kind, TableError, Variable, read
from turnproof.machines.kernel.formula import Operators


@attrs.frozen
class Sort:
    """What a term stands for. ``members`` is the Enum class of an Enum."""

    kind: Kind
    members: type[Enum] | None = None

    def __str__(self) -> str:
        return (
            self.members.__name__ if self.members is not None else {Kind.COUNTER: "a number", Kind.BOOL: "a bool"}.get(self.kind, "a token")
        )

    @property
    def smt(self) -> str:
        """The sort in SMT-LIB."""
        if self.members is not None:
            return z3api.bits(max(1, (len(self.members) - 1).bit_length()))
        return z3api.BOOL if self.kind is Kind.BOOL else z3api.INT

    @property
    def python(self) -> type:
        """The Python type of its values; a bool counts as a number."""
        return self.members if self.members is not None else str if self.kind is Kind.TOKEN else int


TRUTH, NUMBER, TOKEN = Sort(Kind.BOOL), Sort(Kind.COUNTER), Sort(Kind.TOKEN)


@attrs.frozen
class Term:
    """A z3 expression and what it stands for."""

    expr: Expr
    sort: Sort


def sort_of(field: Field) -> Sort:
    """The sort of a field. Raises :class:`TableError` for an Opaque one, which no formula may read."""
    if field.kind is Kind.ENUM:
        return Sort(Kind.ENUM, cast("type[Enum]", field.base))
    if field.kind is Kind.OPAQUE:
        raise TableError(f"{field} is Opaque: a property or a proof cannot read it. Make it a Token, an Enum or a bool to decide on it.")
    return {Kind.BOOL: TRUTH, Kind.TOKEN: TOKEN}.get(field.kind, NUMBER)


def domain(term: Expr, field: Field, context: Context) -> Expr | None:
    """That ``term`` lies in the domain of ``field``; None where its sort already says so."""
    if field.kind is Kind.ENUM:
        sort = sort_of(field)
        count = len(cast("type[Enum]", field.base))
        if count == 1 << z3api.width_of(term):
            return None
        return z3api.unsigned_at_most(term, context.literal(count - 1, sort.smt))
    if field.kind is Kind.RANGE:
        low, high = context.integer(field.lo), context.integer(field.hi)
        return z3api.conjunction((z3api.at_most(low, term), z3api.at_most(term, high)))
    return z3api.at_most(context.integer(0), term) if field.kind is Kind.COUNTER else None


# ── operators ──


def _refuse(operator: str, operands: tuple[Term, ...], wanted: str) -> NoReturn:
    raise TableError(f"`{operator}` of {' and '.join(str(t.sort) for t in operands)}; it takes {wanted}")


def _same(operator: str, left: Term, right: Term) -> None:
    if left.sort != right.sort:
        _refuse(operator, (left, right), "two of one sort")


def _equal(left: Term, right: Term) -> Term:
    _same("=", left, right)
    return Term(z3api.equal(left.expr, right.expr), TRUTH)


def _differ(left: Term, right: Term) -> Term:
    _same("/=", left, right)
    return Term(z3api.negation(z3api.equal(left.expr, right.expr)), TRUTH)


def _numeric(operator: str, function: Callable[[Expr, Expr], Expr], result: Sort) -> Callable[[Term, Term], Term]:
    def apply(left: Term, right: Term) -> Term:
        if (left.sort, right.sort) != (NUMBER, NUMBER):
            _refuse(operator, (left, right), "numbers")
        return Term(function(left.expr, right.expr), result)

    return apply


def _logical(operator: str, function: Callable[..., Expr]) -> Callable[..., Term]:
    def apply(*operands: Term) -> Term:
        if any(t.sort != TRUTH for t in operands):
            _refuse(operator, operands, "bools")
        return Term(function(*(t.expr for t in operands)), TRUTH)

    return apply


def _choose(condition: Term, then: Term, otherwise: Term) -> Term:
    if condition.sort != TRUTH:
        _refuse("if", (condition,), "a bool")
    _same("if", then, otherwise)
    return Term(z3api.conditional(condition.expr, then.expr, otherwise.expr), then.sort)


Z3: Operators[Term] = {
    "eq": _equal,
    "ne": _differ,
    "lt": _numeric("<", z3api.less, TRUTH),
    "le": _numeric("<=", z3api.at_most, TRUTH),
    "gt": _numeric(">", lambda left, right: z3api.less(right, left), TRUTH),
    "ge": _numeric(">=", lambda left, right: z3api.at_most(right, left), TRUTH),
    "and": _logical("and", lambda left, right: z3api.conjunction((left, right))),
    "or": _logical("or", lambda left, right: z3api.disjunction((left, right))),
    "not": _logical("not", z3api.negation),
    "implies": _logical("implies", z3api.implication),
    "add": _numeric("+", z3api.add, NUMBER),
    "sub": _numeric("-", z3api.subtract, NUMBER),
    "choose": _choose,
    "latest": _numeric("latest", lambda left, right: z3api.conditional(z3api.at_most(right, left), left, right), NUMBER),
}
"""Operator -> how terms of its operands become its term; one entry for each of ``formula.OPERATORS``."""


# ── constants ──


class Values:
    """Constants as numbers, the same ones in z3, in NumPy columns and in certificates: members by position, nobody 0, tokens from 1."""

    def __init__(self) -> None:
        self.tokens: dict[str, int] = {NOBODY: 0}

    def number(self, value: object) -> int:
        """The number of a bool, an integer, an Enum member or a token. Raises :class:`TableError` for anything else."""
        if isinstance(value, Enum):
            return list(type(value)).index(value)
        if isinstance(value, (bool, int)):
            return int(value)
        if isinstance(value, str):
            return self.tokens.setdefault(value, len(self.tokens))
        raise TableError(f"the constant {value!r} is of no domain: expected an Enum member, a bool, an integer or a token")

    def value(self, number: int, sort: Sort) -> object:
        """The value behind a number; tokens that have no name yet are called by their number."""
        if sort.members is not None:
            members = list(sort.members)
            return members[number] if number < len(members) else f"no member (number {number})"
        if sort.kind is Kind.TOKEN:
            return next((name for name, n in self.tokens.items() if n == number), f"token {number}")
        return bool(number) if sort.kind is Kind.BOOL else number


def sort_of_constant(value: object) -> Sort:
    """The sort of a Python constant."""
    if isinstance(value, Enum):
        return Sort(Kind.ENUM, type(value))
    if isinstance(value, bool):
        return TRUTH
    return TOKEN if isinstance(value, str) else NUMBER


class Reader:
    """Folds formulas into terms of one context; ``variable`` says what a variable is, and raises for one it does not know."""

    def __init__(self, context: Context, values: Values, variable: Callable[[Variable], Term]) -> None:
        self.context, self.values, self.variable = context, values, variable

    def constant(self, value: object) -> Term:
        """A Python constant as a term."""
        sort = sort_of_constant(value)
        return Term(self.context.literal(self.values.number(value), sort.smt), sort)

    def term(self, node: object) -> Term:
        """A formula or a constant as a term."""
        return read(node, self.variable, Z3, self.constant)

    def truth(self, node: object, place: str) -> Expr:
        """A formula that must be a bool; ``place`` names it in the message."""
        try:
            term = self.term(node)
        except TableError as error:
            raise TableError(f"{place}: {error}") from None
        if term.sort != TRUTH:
            raise TableError(f"{place} is {term.sort}, not a bool")
        return term.expr
