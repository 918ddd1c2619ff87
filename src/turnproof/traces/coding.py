"""Events and states of one machine as JSON, and back. Domains come from the kernel; nothing here knows a particular machine."""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from typing import Any, cast

import attrs

from turnproof.machines.kernel import NOBODY, Field, Kind, Machine, fields_of
from turnproof.traces.line import LineProblem, close_to, shown

AnyMachine = Machine[Any, Any, Any]


def to_json(value: object, field: Field) -> object:
    """A value of a field as JSON."""
    if isinstance(value, Enum):
        return _word(value)
    if field.kind is Kind.OPAQUE and not isinstance(value, (str, int, float, bool, type(None))):
        return repr(value)
    return value


def _word(member: Enum) -> object:
    return member.value if isinstance(member.value, (str, int)) else member.name


def from_json(value: object, field: Field, where: str) -> object:
    """The value of a field. ``where`` (``args.phase``) stands in the message. Raises :class:`LineProblem`."""
    if field.kind is Kind.OPAQUE:
        return value
    found = _read(value, field)
    if found is None or not field.holds(found):
        names = [str(_word(m)) for m in cast("type[Enum]", field.base)] if field.kind is Kind.ENUM else []
        raise LineProblem(f"{where} is {shown(value)}, expected {field.expected()}{close_to(str(value), names)}", field=where)
    return found


def _read(value: object, field: Field) -> object:
    if field.kind is Kind.TOKEN:
        return NOBODY if value is None else value
    if field.kind is not Kind.ENUM:
        return value
    known = _MEMBERS.get(field.base)
    if known is None:
        members = list(cast("type[Enum]", field.base))
        known = _MEMBERS[field.base] = {m.name: m for m in members} | {_word(m): m for m in members}
    return known.get(value) if isinstance(value, (str, int)) else None


_MEMBERS: dict[type, Mapping[object, Enum]] = {}


class Coder:
    """Reads and writes the events and states of one machine."""

    def __init__(self, machine: AnyMachine) -> None:
        self.machine = machine
        self.events: Mapping[str, type] = {cls.__name__: cls for cls in machine.events}
        self._state = fields_of(machine.state)

    def event(self, name: str, args: Mapping[str, object]) -> object | None:
        """The event of a line; None if the machine has none of that name. Raises :class:`LineProblem` for wrong fields."""
        cls = self.events.get(name)
        if cls is None:
            return None
        fields = fields_of(cls)
        for given in args:
            if given not in fields:
                known = close_to(given, fields) or (f"; it has {', '.join(fields)}" if fields else "; it has none")
                raise LineProblem(f"{name} has no field {given!r}{known}", field=f"args.{given}")
        values = {f: from_json(args[f], field, f"args.{f}") for f, field in fields.items() if f in args}
        for attribute in attrs.fields(cast(Any, cls)):
            if attribute.name not in values and attribute.default is attrs.NOTHING:
                raise LineProblem(f"{name} needs args.{attribute.name}: {fields[attribute.name].expected()}", field="args")
        return cast(object, cls(**values))

    def post(self, fields: Mapping[str, object]) -> tuple[tuple[str, object], ...]:
        """What a line says of the state after the event, in the order of the fields. Raises :class:`LineProblem`."""
        for given in fields:
            if given not in self._state:
                raise LineProblem(f"the state has no field {given!r}{close_to(given, self._state)}", field=f"post.{given}")
        return tuple((f, from_json(fields[f], field, f"post.{f}")) for f, field in self._state.items() if f in fields)

    def write_event(self, event: object) -> dict[str, object]:
        """The ``args`` of an event."""
        return {f: to_json(getattr(event, f), field) for f, field in fields_of(type(event)).items()}


__all__ = ["Coder", "from_json", "to_json"]
