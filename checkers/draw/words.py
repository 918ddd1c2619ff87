"""Rows in words: what drawings, tables and explanations print for a guard, a change, an effect. One wording for all three."""

from __future__ import annotations

from collections.abc import Iterator
from enum import Enum
from typing import Any, cast

import attrs

from turnproof.machines.kernel import Formula, Kind, Machine, OnlyIf, Row, Variable, fields_of, show, show_constant

AnyMachine = Machine[Any, Any, Any]
AnyRow = Row[Any, Any]
LONGEST = 28
"""Longest value, in characters, that a drawing shows."""


def phases(machine: AnyMachine, row: AnyRow) -> str:
    """Where a row applies: ``queued or running``, ``any phase but failed``, or ``any phase``."""
    if not row.phases or set(row.phases) == set(machine.phases):
        return "any phase"
    left = [p for p in machine.phases if p not in row.phases]
    if len(left) < len(row.phases) and len(left) <= 2:
        return "any phase but " + listed([show_constant(p) for p in left], "and")
    return listed([show_constant(p) for p in row.phases], "or")


def listed(words: list[str], last: str) -> str:
    """``a, b or c``."""
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} {last} {words[-1]}"


def told(row: AnyRow, node: object) -> str:
    """A formula of a row; the event's fields are called ``event.reason``, for the state may have one of the same name."""
    return show(node, names=lambda variable: f"event.{variable}" if variable.owner is row.event else str(variable))


def guard(row: AnyRow) -> str:
    """The guard; empty if the row has none."""
    return "" if row.guard is None else told(row, row.guard)


def changes(machine: AnyMachine, row: AnyRow, *, short: bool = False) -> Iterator[tuple[str, str]]:
    """Each field that a row sets, with its new value; the phase first where ``to`` sets it. ``short`` as in :func:`shortened`."""
    if row.to is not None:
        yield machine.phase, show_constant(row.to)
    if row.data is not None:
        for name in fields_of(machine.state):
            node = getattr(row.data, name)
            if not _keeps(node, Variable(machine.state, name)):
                yield name, shortened(row, node) if short else told(row, node)


def _keeps(node: object, variable: Variable) -> bool:
    return isinstance(node, Formula) and node.op == "var" and cast(Variable, node.args[0]) == variable


def effects(row: AnyRow, *, short: bool = False) -> Iterator[tuple[str, str]]:
    """Each effect with its condition (empty: always). ``short`` puts dots for a value that is a formula of its own."""
    for item in row.emit:
        if isinstance(item, OnlyIf):
            yield effect(row, item.effect, short=short), told(row, item.condition)
        else:
            yield effect(row, item, short=short), ""


def effect(row: AnyRow, made: object, *, short: bool = False) -> str:
    """``CancelBackend(backend, user_abort)``; fields at their default are left out."""
    values = []
    for field in attrs.fields(cast(Any, type(made))):
        value = getattr(made, field.name)
        if isinstance(value, Formula) or value != field.default:
            values.append(shortened(row, value) if short else told(row, value))
    return type(made).__name__ + (f"({', '.join(values)})" if values else "")


def shortened(row: AnyRow, value: object) -> str:
    """A value in words, but dots for a long one."""
    text = told(row, value)
    return text if len(text) <= LONGEST else "…"


def answer(machine: AnyMachine, row: AnyRow) -> str:
    """``-> aborted``, ``stays``, ``ignored: why`` or ``refused: why``."""
    if row.answer != "taken":
        return f"{row.answer}: {row.ignore or row.refuse}"
    target = row.to if row.to is not None else None if row.data is None else getattr(row.data, machine.phase)
    if target is None or _keeps(target, Variable(machine.state, machine.phase)):
        return "stays"
    return f"-> {told(row, target)}"


def domain(cls: type, name: str) -> str:
    """What values a field may take, in words: the members of an Enum, ``yes or no``, ``0 to 3``, ..."""
    field = fields_of(cls)[name]
    if field.kind is Kind.ENUM:
        return ", ".join(show_constant(m) for m in cast(type[Enum], field.base))
    if field.kind is Kind.RANGE:
        return f"{field.lo} to {field.hi}"
    if field.kind is Kind.OPAQUE:
        return f"{field.base.__name__}, never read by a guard"
    return {Kind.BOOL: "yes or no", Kind.COUNTER: "0, 1, 2, ...", Kind.TOKEN: "a token: compared for equality only"}[field.kind]
