"""The format of a trace line, and the error that says what is wrong with one. ``FORMAT.md`` beside this file explains it to people."""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Callable, Iterable, Mapping
from importlib import import_module, resources
from typing import Any, cast

import attrs

VERSION = 1
"""Of the format. A field may be added without a new one; a change of meaning makes a new one."""
ANSWERS = ("taken", "ignored", "refused")
FIELDS = ("seq", "ts", "key", "event", "args", "post", "answer", "machine", "version")
"""In the order in which the writer puts them; a reader takes them in any order, quickest in this one."""
REQUIRED = ("seq", "key", "event")
SCHEMA = "trace-line.schema.json"
SHOWN = 60
"""Characters of a wrong text that a message repeats."""


class TraceError(ValueError):
    """A file is no log, or one of its lines is wrong. The message is one line: file, line, column or field, and what was expected."""


class LineProblem(ValueError):
    """What is wrong with one line, before file and number are known. ``at`` is the column, from 1; 0 where ``field`` names the place."""

    def __init__(self, message: str, *, at: int = 0, field: str = "") -> None:
        super().__init__(message)
        self.at, self.field = at, field


@attrs.frozen(kw_only=True)
class TraceLine:
    """One event of one instance."""

    seq: int
    """Counts the lines of an instance, from 1 (or 0); or the lines of the file, if every instance shares one count."""
    key: str
    """Names the instance."""
    event: str
    """The event's class."""
    args: Mapping[str, object] = attrs.field(factory=dict)
    post: Mapping[str, object] | None = None
    """Fields of the state after the event, as many as are known."""
    answer: str | None = None
    """``taken``, ``ignored`` or ``refused``; None where the log does not say. An event is refused only if the log says so."""
    machine: str | None = None
    ts: float | None = None
    """Seconds on the writer's clock."""
    extra: tuple[str, ...] = ()
    """Names of fields that the format does not know."""


def schema() -> dict[str, Any]:
    """The JSON Schema of a line, as published with the package."""
    text = resources.files("turnproof.traces").joinpath(SCHEMA).read_text(encoding="utf-8")
    return cast("dict[str, Any]", json.loads(text))


def _decoder() -> Callable[[bytes], object]:
    """Through ``msgspec`` where it is installed (extra ``verify``), which is several times quicker; else the standard library."""
    try:
        return cast("Callable[[bytes], object]", import_module("msgspec.json").decode)
    except ImportError:
        return lambda data: json.loads(data, parse_constant=_no_constant)


def _no_constant(name: str) -> float:
    raise ValueError(f"{name} is no JSON number")


_decode = _decoder()


def decode(data: bytes) -> object:
    """Any JSON value. Raises :class:`LineProblem` with the column at which it stops being JSON."""
    try:
        return _decode(data)
    except (ValueError, RecursionError) as error:
        raise _malformed(data, error) from None


def _malformed(data: bytes, error: Exception) -> LineProblem:
    """The standard library tells the column best, so it is asked what is wrong whoever found it."""
    try:
        json.loads(data.rstrip())
    except json.JSONDecodeError as found:
        ends = found.pos >= len(found.doc)
        what = "the line ends early" if ends else found.msg[:1].lower() + found.msg[1:]
        return LineProblem(f"is no JSON object: {what}", at=found.pos + 1)
    except UnicodeDecodeError as found:
        return LineProblem(f"is not UTF-8 (byte {data[found.start]:#04x})", at=found.start + 1)
    except (ValueError, RecursionError):
        pass
    place = re.search(r" \(byte (\d+)\)", str(error))
    said = str(error).removeprefix("JSON is malformed: ").replace(place[0] if place else "\n", "")
    return LineProblem(f"is no JSON object: {' '.join(said.split())}", at=int(place[1]) + 1 if place else 1)


def read_line(data: bytes) -> TraceLine:
    """One whole line. Raises :class:`LineProblem`."""
    return check(decode(data))


def check(found: object) -> TraceLine:
    """A decoded line, its fields checked but for ``args`` and ``post``, which belong to the machine. Raises :class:`LineProblem`."""
    if not isinstance(found, dict):
        raise LineProblem(f"is {shown(found)}, expected a JSON object with {', '.join(REQUIRED)}", at=1)
    for name in REQUIRED:
        if name not in found:
            raise LineProblem(f"has no {name!r}{_perhaps(name, found)}, expected a JSON object with {', '.join(REQUIRED)}", at=1)
    for name, value in found.items():
        test, expected = _EXPECTED.get(name, (None, ""))
        if test is not None and not test(value):
            raise LineProblem(f"{name} is {shown(value)}, expected {expected}", field=name)
    extra = tuple(name for name in found if name not in _EXPECTED)
    known = {name: value for name, value in found.items() if name in _EXPECTED and name != "version" and value is not None}
    return TraceLine(**known, extra=extra)


def _is_count(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def _is_number(value: object) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _is_text(value: object) -> bool:
    return isinstance(value, str)


def _is_object(value: object) -> bool:
    return isinstance(value, dict)


def _or_null(test: Callable[[object], bool]) -> Callable[[object], bool]:
    return lambda value: value is None or test(value)


_EXPECTED: Mapping[str, tuple[Callable[[object], bool], str]] = {
    "seq": (_is_count, "an integer of 0 or more"),
    "ts": (_or_null(_is_number), "seconds as a number"),
    "key": (_is_text, "a text that names the instance"),
    "event": (_is_text, "the name of an event"),
    "args": (_or_null(_is_object), "an object with the event's fields"),
    "post": (_or_null(_is_object), "an object with fields of the state"),
    "answer": (_or_null(lambda value: value in ANSWERS), "one of " + ", ".join(ANSWERS)),
    "machine": (_or_null(_is_text), "the name of a machine"),
    "version": (
        _or_null(lambda value: value == VERSION and not isinstance(value, bool)),
        f"{VERSION}, the one version of the format there is",
    ),
}


def _perhaps(name: str, found: Iterable[object]) -> str:
    close = difflib.get_close_matches(name, [str(f) for f in found if f not in FIELDS], n=1)
    return f" (it has {close[0]!r})" if close else ""


def shown(value: object) -> str:
    """A JSON value inside a message, cut to :data:`SHOWN` characters."""
    text = json.dumps(value, ensure_ascii=False, default=repr)
    return text if len(text) <= SHOWN else text[:SHOWN] + "..."


def close_to(name: str, known: Iterable[str]) -> str:
    """``; did you mean X?`` if a known name is near, else nothing."""
    close = difflib.get_close_matches(name, list(known), n=1)
    return f"; did you mean {close[0]}?" if close else ""


def column_of(line: bytes, field: str) -> int:
    """The column (from 1) at which the innermost name of ``field`` (``args.phase``) stands in the line; 1 if it does not."""
    start = 0
    for name in field.split("."):
        found = line.find(b'"' + name.encode() + b'"', start)
        start = found if found >= 0 else start
    return start + 1


__all__ = [
    "ANSWERS", "FIELDS", "REQUIRED", "VERSION", "LineProblem", "TraceError", "TraceLine", "check", "close_to", "column_of", "decode",
    "read_line", "schema", "shown",
]  # fmt: skip
