"""What building a machine checks. Every message names the row and says what to write instead."""

from __future__ import annotations

import difflib
from collections import Counter as Tally
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, cast

from turnproof.machines.kernel.domain import Field, Kind, TableError, fields_of
from turnproof.machines.kernel.formula import Formula, OnlyIf, Variable, nodes, show, variables
from turnproof.machines.kernel.row import TIMER_EFFECTS, Row

if TYPE_CHECKING:
    from turnproof.machines.kernel.machine import Machine

INTEGERS = frozenset({Kind.RANGE, Kind.COUNTER})


def check_machine(machine: Machine[Any, Any, Any]) -> None:
    """Raise :class:`TableError` with every mistake found, one a line."""
    mistakes = list(_machine_mistakes(machine))
    for row in machine.rows:
        mistakes += [f"row {row.name}: {m}" for m in _row_mistakes(machine, row)]
    if mistakes:
        raise TableError(f"machine {machine.name}:\n" + "\n".join(f"  {m}" for m in mistakes))


def row_mistakes(machine: Machine[Any, Any, Any], row: Row[Any, Any]) -> tuple[str, ...]:
    """What is wrong with ``row`` as a row of ``machine``, which need not have it: for whoever changes one row many times."""
    return tuple(_row_mistakes(machine, row))


def _machine_mistakes(machine: Machine[Any, Any, Any]) -> Iterator[str]:
    fields = fields_of(machine.state)
    if machine.phase not in fields or fields[machine.phase].kind is not Kind.ENUM:
        yield f"{machine.state.__name__} needs an Enum field {machine.phase!r} (or phase='...' that names one)"
    if type(machine.now) is not machine.state:
        yield f"now= is a {type(machine.now).__name__}: write symbol({machine.state.__name__})"
    for name, field in fields.items():
        if not field.holds(getattr(machine.initial, name)):
            yield f"initial.{name} is {getattr(machine.initial, name)!r}, expected {field.expected()}"
    for cls in (*machine.events, *machine.effects):
        if cls not in TIMER_EFFECTS:
            fields_of(cls)
    for name, count in Tally(row.name for row in machine.rows).items():
        if count > 1:
            yield f"{count} rows are called {name!r}: give each its own name="
    answered = {row.event for row in machine.rows}
    for event in machine.events:
        if event not in answered:
            yield f"no row answers the event {event.__name__}: add rows for it, or take it out of the union of events"
    yield from _timer_mistakes(machine)


def _timer_mistakes(machine: Machine[Any, Any, Any]) -> Iterator[str]:
    ruled = {rule.timer for rule in machine.timers}
    for rule in machine.timers:
        if rule.expires not in machine.events:
            yield f"timer {rule.timer.name}: its expiry {rule.expires.__name__} is not an event of the machine"
        kind = type(rule.timer)
        for member in kind:
            if member not in ruled:
                yield f"timer {member.name} of {kind.__name__} has no TimerRule: say where it is armed and what its expiry is"
    for row in machine.rows:
        for item in row.emit:
            effect = item.effect if isinstance(item, OnlyIf) else item
            if isinstance(effect, TIMER_EFFECTS) and effect.timer not in ruled:
                yield f"row {row.name}: {type(effect).__name__}({effect.timer.name}) has no TimerRule in timers="


def _row_mistakes(machine: Machine[Any, Any, Any], row: Row[Any, Any]) -> Iterator[str]:
    if row.event not in machine.events:
        yield f"{row.event.__name__} is not in the machine's union of events{_nearest(row.event.__name__, machine.events)}"
    phase = fields_of(machine.state).get(machine.phase)
    for place, members in (("at", row.phases), ("to", () if row.to is None else (row.to,))):
        for member in members:
            if phase is not None and not isinstance(member, phase.base):
                yield f"{place}={member} is not a {phase.base.__name__}"
    if row.guard is not None:
        yield from _guard_mistakes(machine, row, row.guard, "the guard")
    yield from _update_mistakes(machine, row)
    for item in row.emit:
        if isinstance(item, OnlyIf):
            yield from _guard_mistakes(machine, row, item.condition, "the condition of only_if()")
        yield from _effect_mistakes(machine, row, item.effect if isinstance(item, OnlyIf) else item)


def _guard_mistakes(machine: Machine[Any, Any, Any], row: Row[Any, Any], guard: Formula, place: str) -> Iterator[str]:
    yield from _scope_mistakes(machine, row, guard, place)
    for variable in sorted(variables(guard), key=str):
        field = fields_of(variable.owner).get(variable.name)
        if field is not None and field.kind is Kind.OPAQUE:
            yield (
                f"{place} reads {field}, which is Opaque: only effects and updates may carry it. "
                "Make it a Token, an Enum or a bool to decide on it."
            )
    yield from _type_mistakes(guard, place)


def _scope_mistakes(machine: Machine[Any, Any, Any], row: Row[Any, Any], node: object, place: str) -> Iterator[str]:
    for variable in sorted(variables(node), key=str):
        if variable.owner not in (machine.state, row.event):
            yield (
                f"{place} reads {variable.owner.__name__}.{variable.name}, but the row is about {row.event.__name__} "
                f"and the state is {machine.state.__name__}"
            )
        elif variable.scope:
            yield f"{place} reads {variable}: a row sees only the state before the step"


def _type_mistakes(node: object, place: str) -> Iterator[str]:
    for part in nodes(node):
        if part.op in ("eq", "ne"):
            left, right = (_sort(arg) for arg in part.args)
            if left is not None and right is not None and left != right:
                yield f"{place}: `{show(part)}` compares {_called(left)} with {_called(right)}, which are never equal"
        elif part.op in ("lt", "le", "gt", "ge", "add", "sub"):
            for arg in part.args:
                if _sort(arg) not in (None, int):
                    yield f"{place}: `{show(part)}` does arithmetic on {_called(_sort(arg))}; only Range and Counter fields are numbers"


def _called(sort: object) -> str:
    return sort.__name__ if isinstance(sort, type) else str(sort)


def _sort(node: object) -> object:
    """The type a node has: bool, int, Token or an Enum class; None if it cannot be told."""
    if not isinstance(node, Formula):
        if isinstance(node, bool):
            return bool
        if isinstance(node, int):
            return int
        return "a Token" if isinstance(node, str) else type(node)
    if node.op == "var":
        variable = cast(Variable, node.args[0])
        field = fields_of(variable.owner)[variable.name]
        if field.kind in INTEGERS:
            return int
        return {Kind.BOOL: bool, Kind.TOKEN: "a Token", Kind.OPAQUE: None}.get(field.kind, field.base)
    if node.op == "named":
        return bool
    if node.op == "choose":
        return _sort(node.args[1])
    return int if node.op in ("add", "sub", "latest") else bool


def _update_mistakes(machine: Machine[Any, Any, Any], row: Row[Any, Any]) -> Iterator[str]:
    if row.data is None:
        return
    if type(row.data) is not machine.state:
        yield f"data= is a {type(row.data).__name__}: write evolve(now, field=...)"
        return
    for name, field in fields_of(machine.state).items():
        node = getattr(row.data, name)
        if name == machine.phase and row.to is not None and not _is_same(node, machine.state, name):
            yield f"both to= and data= set {name}: keep one"
        yield from _scope_mistakes(machine, row, node, f"data.{name}")
        yield from _value_mistakes(node, field, f"data.{name}")


def _is_same(node: object, owner: type, name: str) -> bool:
    return isinstance(node, Formula) and node.op == "var" and cast(Variable, node.args[0]) == Variable(owner, name)


def _value_mistakes(node: object, field: Field, place: str) -> Iterator[str]:
    if not isinstance(node, Formula):
        if not field.holds(node):
            yield f"{place} is {node!r}, expected {field.expected()}"
        return
    yield from _type_mistakes(node, place)
    sort, wanted = _sort(node), _sort(Formula("var", (Variable(field.owner, field.name),)))
    if sort is not None and wanted is not None and sort != wanted:
        yield f"{place} is given `{show(node)}`, which is {_called(sort)}, not {_called(wanted)}"


def _effect_mistakes(machine: Machine[Any, Any, Any], row: Row[Any, Any], effect: object) -> Iterator[str]:
    cls = type(effect)
    if cls not in machine.effects:
        yield f"emits {cls.__name__}, which is not in the machine's union of effects{_nearest(cls.__name__, machine.effects)}"
        return
    yield from _scope_mistakes(machine, row, effect, cls.__name__)
    if cls in TIMER_EFFECTS:
        return
    for name, field in fields_of(cls).items():
        yield from _value_mistakes(getattr(effect, name), field, f"{cls.__name__}.{name}")


def _nearest(name: str, known: tuple[type, ...]) -> str:
    close = difflib.get_close_matches(name, [cls.__name__ for cls in known], n=1)
    return f"; did you mean {close[0]}?" if close else f"; it has {', '.join(cls.__name__ for cls in known)}"


__all__ = ["check_machine", "row_mistakes"]
