"""Events as a person writes them: ``AbortRequested(reason=user)``, ``AbortRequested(user)``, ``abort_requested reason=user``.

Names are compared by their letters and digits alone, so case, snake and camel do not matter; an Enum is written by its value or
its member's name, a Python expression such as ``AbortRequested(reason=AbortReason.USER)`` is read too. :func:`show_event`
writes what :func:`read_event` reads.
"""

from __future__ import annotations

import ast
import difflib
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from enum import Enum
from typing import Any, cast

import attrs

from turnproof.machines.kernel import NOBODY, Field, Kind, Machine, fields_of

AnyMachine = Machine[Any, Any, Any]

LONGEST = 60
"""Characters of a wrong text that a message repeats."""
FEW = 8
"""Most names that a message lists when none is near."""

YES, NO = frozenset({"true", "yes", "1", "on"}), frozenset({"false", "no", "0", "off"})
NOBODIES = frozenset({"", "none", "nobody"})

_PIECE = re.compile(r"""\s*(?:(?P<quoted>"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*')|(?P<sign>[(),=])|(?P<word>[^\s(),='"]+))""")
_ARGUMENT = re.compile(r"\s*[A-Za-z_]\w*\s*=")


class WrittenError(ValueError):
    """What a person wrote names no event, field or value. The message is one line: what, where, what was expected, the nearest name."""


def plain(name: str) -> str:
    """The letters and digits of a name, in lower case: what is left of ``AbortRequested``, ``abort-requested``, ``abort_requested``."""
    return "".join(letter for letter in name.casefold() if letter.isalnum())


def nearest(name: str, known: Iterable[str]) -> str:
    """``; did you mean X?`` if a known name is near, else nothing."""
    wanted = plain(name)
    likeness, best = max(((_likeness(wanted, plain(k)), k) for k in known), default=(0.0, ""))
    return f"; did you mean {best}?" if likeness >= 0.6 else ""


def _likeness(wanted: str, known: str) -> float:
    """How near two names are, from 0 to 1; the beginning of a name (``abort`` of ``abortrequested``) counts nearly as much as all of it."""
    start = known[: len(wanted) + 1]
    return max(
        difflib.SequenceMatcher(None, wanted, known).ratio(),
        0.9 * difflib.SequenceMatcher(None, wanted, start).ratio() if len(wanted) > 2 else 0.0,
    )


def excerpt(text: str) -> str:
    """A text inside a message: in quotes, on one line, not longer than :data:`LONGEST`."""
    return repr(text if len(text) <= LONGEST else text[:LONGEST] + "...")


def event_class(machine: AnyMachine, name: str) -> type:
    """The event class of that name. Raises :class:`WrittenError`."""
    for cls in machine.events:
        if plain(cls.__name__) == plain(name):
            return cls
    hint = nearest(name, (cls.__name__ for cls in machine.events))
    few = len(machine.events) <= FEW
    known = hint or (
        f"; its events: {', '.join(c.__name__ for c in machine.events)}"
        if few
        else f"; `turnproof explain {machine.name}` names all {len(machine.events)}"
    )
    raise WrittenError(f"{machine.name} has no event {excerpt(name)}{known}")


def read_events(machine: AnyMachine, texts: Sequence[str]) -> tuple[object, ...]:
    """The events written in ``texts``. ``field=value``, or a value, belongs to the event before it. Raises :class:`WrittenError`."""
    joined: list[str] = []
    for text in texts:
        if joined and (_ARGUMENT.match(text) or _is_value(machine, joined[-1], text)):
            joined[-1] += " " + text
        elif text.strip():
            joined.append(text)
    if not joined:
        raise WrittenError(f"no event is given; for example {example(machine)}")
    made = []
    for number, text in enumerate(joined, 1):
        try:
            made.append(read_event(machine, text))
        except WrittenError as error:
            raise WrittenError(f"event {number}, {excerpt(text)}: {error}") from None
    return tuple(made)


def _is_value(machine: AnyMachine, before: str, text: str) -> bool:
    """Whether a bare word continues the event before it: it names no event itself, and that one still lacks a field."""
    if not re.fullmatch(r"\s*[^\s(),='\"]+\s*", text) or any(plain(cls.__name__) == plain(text) for cls in machine.events):
        return False
    name, *values = before.split()
    lacking = next((len(fields_of(cls)) for cls in machine.events if plain(cls.__name__) == plain(name)), 0)
    return "(" not in before and len(values) < lacking


def read_event(machine: AnyMachine, text: str) -> object:
    """One event. Raises :class:`WrittenError`."""
    pieces = list(_pieces(text))
    if not pieces or pieces[0][0] != "word":
        raise WrittenError(f"expected the name of an event first, for example {example(machine)}")
    cls = event_class(machine, pieces[0][1])
    return _build(cls, _arguments(pieces[1:]))


def example(machine: AnyMachine) -> str:
    """An event of the machine as one may write it; the first that has a field, if one has."""
    cls = next((c for c in machine.events if fields_of(c)), machine.events[0])
    values = (f"{name}={_written(field.values(tokens=1, counter=0)[-1], field)}" for name, field in fields_of(cls).items())
    return f"{cls.__name__}({', '.join(values)})" if fields_of(cls) else cls.__name__


def show_event(event: object) -> str:
    """The event as :func:`read_event` reads it back; also serves effects."""
    fields = fields_of(type(event))
    if not fields:
        return type(event).__name__
    inside = ", ".join(f"{name}={_written(getattr(event, name), field)}" for name, field in fields.items())
    return f"{type(event).__name__}({inside})"


def show_value(value: object) -> str:
    """A value of a field as a person writes it; nobody is ``none``."""
    if isinstance(value, Enum):
        return str(value.value)
    if isinstance(value, bool):
        return "yes" if value else "no"
    return "none" if value == NOBODY else str(value)


def _written(value: object, field: Field) -> str:
    if isinstance(value, str) and not isinstance(value, Enum):
        if value == NOBODY and field.kind is Kind.TOKEN:
            return "none"
        bare = re.fullmatch(r"[^\s(),='\"\\]+", value) and value.isprintable() and value.casefold() not in NOBODIES
        return value if bare else '"' + value.encode("unicode_escape").decode("ascii").replace('"', '\\"') + '"'
    if isinstance(value, Enum) and not re.fullmatch(r"[^\s(),='\"]+", str(value.value)):
        return value.name
    return show_value(value)


def _pieces(text: str) -> Iterator[tuple[str, str]]:
    at, end = 0, len(text.rstrip())
    while at < end:
        found = _PIECE.match(text, at)
        if found is None:
            raise WrittenError(f"cannot be read from {excerpt(text[at:].strip())} on: a quote is not closed")
        at = found.end()
        yield cast(str, found.lastgroup), found[cast(str, found.lastgroup)]


def _arguments(pieces: list[tuple[str, str]]) -> list[tuple[str | None, str, bool]]:
    """(field or None, value, quoted) of everything behind the name of the event. Brackets and commas only separate."""
    depth = 0
    made: list[tuple[str | None, str, bool]] = []
    at = 0
    while at < len(pieces):
        kind, text = pieces[at]
        depth += (text == "(") - (text == ")") if kind == "sign" else 0
        if depth not in (0, 1):
            raise WrittenError("a bracket too many")
        if kind == "sign" and text == "=":
            raise WrittenError("expected field=value, found '=' without a field before it")
        if kind != "sign":
            field = None
            if kind == "word" and pieces[at + 1 : at + 2] == [("sign", "=")]:
                field, at = text, at + 2
                if at >= len(pieces) or pieces[at][0] == "sign":
                    raise WrittenError(f"{field}= has no value; write none for nobody")
                kind, text = pieces[at]
            made.append((field, _unquoted(text) if kind == "quoted" else text, kind == "quoted"))
        at += 1
    if depth:
        raise WrittenError("a bracket is not closed")
    return made


def _unquoted(text: str) -> str:
    try:
        return str(ast.literal_eval(text))
    except (SyntaxError, ValueError):
        return text[1:-1]


def _build(cls: type, arguments: list[tuple[str | None, str, bool]]) -> object:
    fields = fields_of(cls)
    order = list(fields)
    given: dict[str, object] = {}
    for position, (name, text, quoted) in enumerate(arguments):
        if name is None:
            if position >= len(order):
                takes = f"only {', '.join(order)}" if order else "no field"
                raise WrittenError(f"{cls.__name__} takes {takes}; {excerpt(text)} is one value too many")
            field = fields[order[position]]
        else:
            field = _field(cls, fields, name)
        if field.name in given:
            raise WrittenError(f"{cls.__name__}.{field.name} is given twice")
        given[field.name] = read_value(field, text, quoted=quoted)
    for attribute in attrs.fields(cast(Any, cls)):
        if attribute.name not in given and attribute.default is attrs.NOTHING:
            field = fields[attribute.name]
            raise WrittenError(f"{cls.__name__} needs {field.name}: {expected(field)}")
    return cls(**given)


def _field(cls: type, fields: Mapping[str, Field], name: str) -> Field:
    for field in fields.values():
        if plain(field.name) == plain(name):
            return field
    known = nearest(name, fields) or (f"; it has {', '.join(fields)}" if fields else "; it has none")
    raise WrittenError(f"{cls.__name__} has no field {excerpt(name)}{known}")


def read_value(field: Field, text: str, *, quoted: bool = False) -> object:
    """The value of a field as a person wrote it. Raises :class:`WrittenError` that names the domain."""
    value = _value(field, text, quoted)
    if value is None or not field.holds(value):
        names = [str(m.value) for m in cast("type[Enum]", field.base)] if field.kind is Kind.ENUM else []
        raise WrittenError(f"{field.name} is {excerpt(text)}, expected {expected(field)}{nearest(text, names)}")
    return value


def expected(field: Field) -> str:
    """The domain of a field in words."""
    opaque = (
        {int: "an integer", float: "a number", str: "a text", bool: "true or false"}.get(field.base) if field.kind is Kind.OPAQUE else None
    )
    return opaque or field.expected()


def _value(field: Field, text: str, quoted: bool) -> object:
    if field.kind is Kind.ENUM:
        return _member(cast("type[Enum]", field.base), text)
    if field.kind is Kind.TOKEN:
        return text if quoted or text.casefold() not in NOBODIES else NOBODY
    if field.kind is Kind.BOOL or field.base is bool:
        return True if text.casefold() in YES else False if text.casefold() in NO else None
    if field.base in (int, float):
        try:
            return field.base(text)
        except ValueError:
            return None
    return text


def _member(kind: type[Enum], text: str) -> Enum | None:
    prefix, _, last = text.partition(".")
    wanted = [text, last] if last and plain(prefix) == plain(kind.__name__) else [text]
    for read in (str, plain):
        for name in wanted:
            for member in kind:
                if read(name) in (read(str(member.value)), read(member.name)):
                    return member
    return None


__all__ = [
    "WrittenError",
    "event_class",
    "example",
    "excerpt",
    "expected",
    "nearest",
    "plain",
    "read_event",
    "read_events",
    "read_value",
    "show_event",
    "show_value",
]
