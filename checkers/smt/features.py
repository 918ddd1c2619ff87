"""The questions that candidates of one specification are made of, and what its explored states answer."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from enum import Enum
from typing import Any

import numpy as np
from numpy.typing import NDArray

from turnproof.checkers.smt import z3api
from turnproof.checkers.smt.grid import Grid
from turnproof.checkers.smt.mine import SMALL, Feature
from turnproof.checkers.smt.terms import sort_of
from turnproof.checkers.smt.translate import Slot, Symbolic
from turnproof.machines.kernel import Kind, show_constant


def features_of(symbolic: Symbolic) -> tuple[Feature, ...]:
    """Every feature of a machine and its histories."""
    return tuple(_features(symbolic))


def table_of(features: tuple[Feature, ...], grid: Grid) -> NDArray[Any]:
    """(explored state, feature) -> class."""
    columns = {name: column[: grid.graph.explored] for name, column in grid.now.items()}
    return np.stack([feature.answers(columns) for feature in features], axis=1)


def _features(symbolic: Symbolic) -> Iterator[Feature]:
    for slot in symbolic.slots:
        yield from _of_one(symbolic, slot)
    tokens = [s for s in symbolic.slots if s.field.kind is Kind.TOKEN]
    for left, right in itertools.combinations(tokens, 2):
        same = z3api.text(z3api.equal(left.now.expr, right.now.expr))
        classes = ((f"{left.name} = {right.name}", same), (f"{left.name} /= {right.name}", f"(not {same})"))
        yield Feature("equal", (left.name, right.name), classes)
    counters = [s for s in symbolic.slots if s.field.kind is Kind.COUNTER]
    for left, right in itertools.combinations(counters, 2):
        tests = [f"({op} {z3api.text(left.now.expr)} {z3api.text(right.now.expr)})" for op in ("<", "=", ">")]
        names = [f"{left.name} {op} {right.name}" for op in ("<", "=", ">")]
        yield Feature("order", (left.name, right.name), tuple(zip(names, tests, strict=True)))


def _of_one(symbolic: Symbolic, slot: Slot) -> Iterator[Feature]:
    field, name = slot.field, z3api.text(slot.now.expr)
    if field.kind is Kind.BOOL:
        yield Feature("value", (slot.name,), ((f"not {slot.name}", f"(not {name})"), (slot.name, name)))
    elif field.kind is Kind.ENUM:
        members: list[Enum] = list(sort_of(field).members or ())
        literals = [z3api.text(symbolic.before.constant(m).expr) for m in members]
        yield Feature(
            "value",
            (slot.name,),
            tuple((f"{slot.name} = {show_constant(m)}", f"(= {name} {t})") for m, t in zip(members, literals, strict=True)),
        )
    elif field.kind is Kind.RANGE and field.hi - field.lo < SMALL:
        numbers = [(n, z3api.text(symbolic.context.integer(n))) for n in range(field.lo, field.hi + 1)]
        yield Feature("value", (slot.name,), tuple((f"{slot.name} = {n}", f"(= {name} {t})") for n, t in numbers), field.lo)
    elif field.kind is Kind.TOKEN:
        yield Feature("nobody", (slot.name,), ((f"{slot.name} = none", f"(= {name} 0)"), (f"{slot.name} /= none", f"(not (= {name} 0))")))
    elif field.kind is Kind.COUNTER:
        classes = ((f"{slot.name} = 0", f"(= {name} 0)"), (f"{slot.name} = 1", f"(= {name} 1)"), (f"{slot.name} > 1", f"(> {name} 1)"))
        yield Feature("amount", (slot.name,), classes)
