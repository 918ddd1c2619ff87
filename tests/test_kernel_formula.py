"""Formulas are data: they never pass for a truth value, and every reading has every operator."""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum
from typing import Annotated

import pytest
from attrs import frozen

from turnproof.machines.kernel import (
    NOBODY,
    OPERATORS,
    Counter,
    Formula,
    Opaque,
    Range,
    TableError,
    Token,
    all_of,
    any_of,
    choose,
    conjuncts,
    fields_of,
    formula,
    implies,
    latest,
    named,
    not_,
    one_of,
    only_if,
    show,
    symbol,
    variables,
)
from turnproof.machines.kernel.evaluate import PYTHON, environment, value
from turnproof.machines.kernel.source import SOURCE


class Colour(Enum):
    RED = "red"
    GREEN = "green"
    BLUE = "blue"


@frozen
class Light:
    colour: Colour = Colour.RED
    on: bool = False
    level: Annotated[int, Range(0, 3)] = 0
    count: Annotated[int, Counter] = 0
    owner: Annotated[str, Token] = NOBODY
    due_ms: Annotated[int, Opaque] = 0


now = symbol(Light)


@pytest.mark.parametrize(
    "misuse",
    [
        lambda: now.on and now.colour == Colour.RED,
        lambda: now.on or now.colour == Colour.RED,
        lambda: not now.on,
        lambda: now.colour in (Colour.RED, Colour.GREEN),
        lambda: 1 if now.on else 0,
        lambda: 0 < now.level < 3,
        lambda: bool(now.colour == Colour.RED),
        lambda: Colour.RED in now.colour,  # type: ignore[operator]
        lambda: ~now.on,
        lambda: formula(now.colour is Colour.RED, "the guard"),
        lambda: (now.level == 1) & (now.on is not True),
        lambda: (now.level == 1) | (now.on is True),
        lambda: (now.on is not True) & (now.level == 1),
        lambda: not_(True),
        lambda: implies(False, now.on),
        lambda: named("constant", True),
        lambda: only_if(True, Light()),
        lambda: choose(True, 1, 2),
        lambda: one_of(now.colour),
        lambda: all_of(),
        lambda: formula(3, "the guard"),
        lambda: symbol(int),
    ],
)
def test_python_logic_on_formulas_fails_where_it_is_written(misuse: Callable[[], object]) -> None:
    with pytest.raises(TypeError):
        misuse()


def test_the_message_says_what_to_write() -> None:
    with pytest.raises(TypeError, match=r"`on` is a formula, not a value.*Write &, \|, not_\(\), one_of\(\)"):
        _ = now.on and now.on
    with pytest.raises(TypeError, match=r"the guard is the constant False.*never with `is`"):
        formula(now.colour is Colour.RED, "the guard")


@pytest.mark.parametrize("reading", [PYTHON, SOURCE], ids=["python", "source"])
def test_every_reading_has_every_operator(reading: dict[str, object]) -> None:
    assert set(reading) == set(OPERATORS)


OPERATIONS: list[tuple[str, bool | int | Colour, Callable[[Light], object]]] = [
    ("eq", now.colour == Colour.RED, lambda s: s.colour is Colour.RED),
    ("ne", now.colour != Colour.RED, lambda s: s.colour is not Colour.RED),
    ("lt", now.level < 2, lambda s: s.level < 2),
    ("le", now.level <= 2, lambda s: s.level <= 2),
    ("gt", now.level > 2, lambda s: s.level > 2),
    ("ge", now.level >= 2, lambda s: s.level >= 2),
    ("and", now.on & (now.level == 1), lambda s: s.on and s.level == 1),
    ("or", now.on | (now.level == 1), lambda s: s.on or s.level == 1),
    ("not", not_(now.on), lambda s: not s.on),
    ("implies", implies(now.on, now.level == 1), lambda s: not s.on or s.level == 1),
    ("add", now.level + 1, lambda s: s.level + 1),
    ("sub", now.level - 1, lambda s: s.level - 1),
    ("choose", choose(now.on, now.level, 7), lambda s: s.level if s.on else 7),
    ("latest", latest(now.level, 2), lambda s: max(s.level, 2)),
    ("one_of", one_of(now.colour, Colour.RED, Colour.BLUE), lambda s: s.colour in (Colour.RED, Colour.BLUE)),
    ("any_of", any_of(now.on, now.level == 3, now.level == 0), lambda s: s.on or s.level in (0, 3)),
    ("named", named("lit", now.on), lambda s: s.on),
]


@pytest.mark.parametrize(("name", "node", "meaning"), OPERATIONS, ids=[name for name, _, _ in OPERATIONS])
def test_every_operator_means_what_python_means(name: str, node: object, meaning: Callable[[Light], object]) -> None:
    """Interpreted and as generated source, over every value: a wrong entry in either table shows here, used by a machine or not."""
    from turnproof.machines.kernel.formula import read

    text = read(node, lambda v: f"s.{v.name}", SOURCE, lambda c: f"Colour.{c.name}" if isinstance(c, Enum) else repr(c))
    generated = eval(f"lambda s: {text}", {"Colour": Colour})
    seen = set()
    for colour in Colour:
        for on in (False, True):
            for level in range(4):
                state = Light(colour, on, level)
                assert value(node, environment(state)) == meaning(state) == generated(state)
                seen.add(meaning(state))
    assert len(seen) > 1, "an operator that is constant on every value was not tested"


def test_formulas_show_as_a_person_reads_them() -> None:
    node = formula(not_(now.on) & ((now.colour == Colour.RED) | (now.level < 2)) & named("mine", now.owner == NOBODY), "x")
    assert show(node) == "not on and (colour = red or level < 2) and mine"
    assert [show(part) for part in conjuncts(node)] == ["not on", "colour = red or level < 2", "mine"]
    assert {str(v) for v in variables(node)} == {"on", "colour", "level", "owner"}
    assert show(choose(now.on, 1, 2)) == "(1 if on else 2)"
    assert str(symbol(Light, scope="next").on) == "next.on"


def test_domains_come_from_annotations() -> None:
    fields = fields_of(Light)
    assert [f.kind.value for f in fields.values()] == ["enum", "bool", "range", "counter", "token", "opaque"]
    assert [len(f.values(tokens=2, counter=4)) for f in fields.values()] == [3, 2, 4, 5, 3, 1]
    assert fields["level"].holds(3)
    assert not fields["level"].holds(4)
    assert not fields["level"].holds(True)
    assert not fields["count"].holds(-1)
    assert fields["level"].expected() == "an integer from 0 to 3"
    assert fields["colour"].expected() == "one of red, green, blue"


@frozen
class Unbounded:
    number: int = 0


@frozen
class Mismarked:
    number: Annotated[str, Counter] = ""


class Bare:
    pass


def test_an_annotation_without_a_domain_is_an_error_that_lists_the_domains() -> None:
    with pytest.raises(TableError, match=r"Unbounded.number: int is not a domain. Write an Enum, bool, Annotated\[int, Range"):
        fields_of(Unbounded)
    with pytest.raises(TableError, match=r"Mismarked\.number: Counter marks int"):
        fields_of(Mismarked)
    with pytest.raises(TableError, match=r"Bare is not an attrs class: decorate it with attrs.frozen"):
        fields_of(Bare)
    with pytest.raises(TableError, match=r"lower bound is above"):
        Range(3, 1)


def test_a_formula_is_hashable_by_identity_only() -> None:
    left, right = now.level == 1, now.level == 1
    assert len({id(left), id(right)}) == 2
    equation: object = left == right
    assert isinstance(equation, Formula)
