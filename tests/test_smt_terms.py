"""The z3 reading of a formula: every operator, on all small values, against the Python reading, and evaluated by two means."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping
from enum import Enum
from typing import Any

import numpy as np
import pytest

from turnproof.checkers.smt import z3api
from turnproof.checkers.smt.evaluate import COLUMNS, Evaluator, UnknownNode
from turnproof.checkers.smt.terms import NUMBER, TOKEN, TRUTH, Z3, Reader, Sort, Term, Values, domain
from turnproof.checkers.smt.z3api import Context
from turnproof.machines.kernel import OPERATORS, Field, Kind, TableError
from turnproof.machines.kernel.evaluate import PYTHON


class Color(Enum):
    RED = "red"
    GREEN = "green"
    BLUE = "blue"
    GREY = "grey"
    BLACK = "black"


class Shape(Enum):
    ROUND = "round"
    FLAT = "flat"


SMALL: Mapping[str, tuple[object, ...]] = {
    "bool": (False, True),
    "number": (-2, -1, 0, 1, 2, 3),
    "token": ("", "a", "b"),
    "color": tuple(Color),
}
OPERANDS: Mapping[str, tuple[tuple[str, ...], ...]] = {
    "eq": tuple((s, s) for s in SMALL),
    "ne": tuple((s, s) for s in SMALL),
    **dict.fromkeys(("lt", "le", "gt", "ge", "add", "sub", "latest"), (("number", "number"),)),
    **dict.fromkeys(("and", "or", "implies"), (("bool", "bool"),)),
    "not": (("bool",),),
    "choose": tuple(("bool", s, s) for s in SMALL),
}


def differences(table: Mapping[str, Callable[..., Term]], op: str) -> Iterator[str]:
    """Where an operator's term is not what Python computes: as z3 simplifies it, and as its nodes are read over columns."""
    context, values = Context(), Values()
    reader = Reader(context, values, lambda variable: pytest.fail(f"no variable expected: {variable}"))
    for sorts in OPERANDS[op]:
        for operands in itertools.product(*(SMALL[s] for s in sorts)):
            term = table[op](*(reader.constant(o) for o in operands)).expr
            expected = values.number(PYTHON[op](*operands))
            seen = {"z3": z3api.literal_value(z3api.simplified(term)), "columns": int(Evaluator({}).column(term)[0])}
            yield from (f"{op}{operands}: {who} {got}, expected {expected}" for who, got in seen.items() if got != expected)


def test_every_operator_has_a_term_and_a_test() -> None:
    assert set(Z3) == set(OPERATORS) == set(OPERANDS)


@pytest.mark.parametrize("op", OPERATORS)
def test_an_operator_is_what_python_computes(op: str) -> None:
    assert not list(differences(Z3, op))


SLIPS = {"ge": "gt", "lt": "le", "eq": "ne", "and": "or", "implies": "and", "sub": "add", "latest": "sub"}


@pytest.mark.parametrize(("op", "other"), SLIPS.items())
def test_a_slip_in_the_table_is_seen(op: str, other: str) -> None:
    assert list(differences({**Z3, op: Z3[other]}, op))


def test_operands_in_the_wrong_order_are_seen() -> None:
    assert list(differences({**Z3, "sub": lambda left, right: Z3["sub"](right, left)}, "sub"))
    assert list(differences({**Z3, "choose": lambda c, then, otherwise: Z3["choose"](c, otherwise, then)}, "choose"))


# ── sorts ──


def term(value: object) -> Term:
    return Reader(Context(), Values(), lambda variable: pytest.fail(str(variable))).constant(value)


@pytest.mark.parametrize(
    ("op", "operands", "said"),
    [
        ("eq", (Color.RED, Shape.ROUND), "`=` of Color and Shape"),
        ("eq", (1, True), "`=` of a number and a bool"),
        ("eq", ("a", 1), "`=` of a token and a number"),
        ("lt", ("a", "b"), "`<` of a token and a token; it takes numbers"),
        ("lt", (Color.RED, Color.BLUE), "`<` of Color and Color; it takes numbers"),
        ("and", (1, True), "`and` of a number and a bool; it takes bools"),
        ("not", ("a",), "`not` of a token; it takes bools"),
        ("choose", (1, 2, 3), "`if` of a number; it takes a bool"),
        ("choose", (True, 2, False), "`if` of a number and a bool; it takes two of one sort"),
    ],
)
def test_operands_of_the_wrong_sort_are_refused(op: str, operands: tuple[object, ...], said: str) -> None:
    with pytest.raises(TableError, match=r"^" + said.replace("(", r"\(")):
        Z3[op](*(term(o) for o in operands))


def test_a_constant_of_no_domain() -> None:
    with pytest.raises(TableError, match="of no domain"):
        Values().number(1.5)


def test_tokens_are_numbered_and_nobody_is_zero() -> None:
    values = Values()
    assert [values.number(t) for t in ("", "x", "y", "x")] == [0, 1, 2, 1]
    assert values.value(2, TOKEN) == "y"
    assert values.value(7, TOKEN) == "token 7"


# ── domains ──


def members(count: int) -> type[Enum]:
    return Enum(f"Of{count}", {f"M{n}": n for n in range(count)})  # type: ignore[return-value]


@pytest.mark.parametrize("count", range(1, 10))
def test_the_domain_of_an_enum_is_its_members_whatever_the_top_bit(count: int) -> None:
    """A signed comparison would take the upper half of the numbers for negative, and let them all in."""
    context, base = Context(), members(count)
    field, sort = Field(object, "it", Kind.ENUM, base), Sort(Kind.ENUM, base)
    inside = []
    for number in range(1 << z3api.width_of(context.symbol("x", sort.smt))):
        within = domain(context.literal(number, sort.smt), field, context)
        inside.append(within is None or z3api.literal_value(z3api.simplified(within)) == 1)
    assert inside == [number < count for number in range(len(inside))]


@pytest.mark.parametrize(
    ("kind", "sort", "expected"),
    [(Kind.RANGE, NUMBER, {1, 2, 3}), (Kind.COUNTER, NUMBER, {0, 1, 2, 3, 4}), (Kind.TOKEN, TOKEN, {-1, 0, 1, 2, 3, 4})],
)
def test_the_domain_of_a_number(kind: Kind, sort: Sort, expected: set[int]) -> None:
    context = Context()
    field = Field(object, "it", kind, int, 1, 3)
    within = [(n, domain(context.literal(n, sort.smt), field, context)) for n in range(-1, 5)]
    assert {n for n, term in within if term is None or z3api.literal_value(z3api.simplified(term)) == 1} == expected
    assert domain(context.symbol("b", TRUTH.smt), Field(object, "it", Kind.BOOL, bool), context) is None


# ── evaluating over columns ──


def test_signed_and_unsigned_comparisons_differ() -> None:
    import z3

    context = z3.Context()
    x, seven = z3.BitVec("x", 3, context), z3.BitVecVal(2, 3, context)
    columns = {"x": np.arange(8)}

    def column(term: Any) -> list[bool]:
        return [bool(b) for b in Evaluator(columns).column(term)]

    assert column(z3.ULE(x, seven)) == [n <= 2 for n in range(8)]
    assert column(x <= seven) == [(n if n < 4 else n - 8) <= 2 for n in range(8)]
    assert column(x > seven) == [(n if n < 4 else n - 8) > 2 for n in range(8)]


def test_what_is_not_known_is_not_guessed() -> None:
    import z3

    context = z3.Context()
    x, n = z3.BitVec("x", 3, context), z3.Int("n", context)
    function = z3.Function("f", z3.IntSort(context), z3.IntSort(context))
    for strange in (x + 1, n * n, n / 2, function(n), z3.ForAll([n], n > 0)):
        with pytest.raises(UnknownNode):
            Evaluator({"x": np.arange(8), "n": np.arange(8), "f": np.arange(8)}).column(strange)
    with pytest.raises(UnknownNode, match="no column for the symbol n"):
        Evaluator({}).column(z3api.Expr(n))


def test_integers_that_leave_the_columns_are_an_error() -> None:
    import z3

    n = z3.Int("n", z3.Context())
    with pytest.raises(OverflowError):
        Evaluator({"n": np.array([1 << 61])}).column(z3api.Expr(n + n + n))


def test_every_kind_of_node_is_read() -> None:
    leaves = {"true", "false", "integer", "bits", "symbol"}
    assert set(COLUMNS) | leaves == set(z3api.KINDS)
