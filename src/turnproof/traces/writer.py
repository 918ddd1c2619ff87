"""Writes trace lines. A :class:`TraceWriter` is the ``trace=`` hook of one runner, or of all the runners of a process.

It is buffered, and it remembers the text of events and keys that recur, so that a step costs microseconds. What a process that
is killed had not flushed is lost, and the last line may be torn: the reader passes over a torn last line and says so.
"""

from __future__ import annotations

import contextlib
import gzip
import json
import math
import time
from collections.abc import Callable
from operator import attrgetter
from pathlib import Path
from types import TracebackType
from typing import Any, BinaryIO, Protocol, Self, cast

from turnproof.machines.kernel import Field, Ignored, Kind, Machine, Taken, fields_of
from turnproof.traces.coding import Coder, to_json
from turnproof.traces.line import VERSION

REMEMBERED = 10_000
"""Distinct events, and distinct keys, whose text is kept."""


class LoggedStep(Protocol):
    """What is logged of one step. ``turnproof.shell.TraceStep`` is one."""

    @property
    def seq(self) -> int:
        """1, 2, 3, ... for each instance."""

    @property
    def ts(self) -> float:
        """Seconds."""

    @property
    def machine(self) -> str:
        """Its name."""

    @property
    def key(self) -> str:
        """Names the instance."""

    @property
    def event(self) -> Any:
        """What happened."""

    @property
    def answer(self) -> Any:
        """The machine's answer."""

    @property
    def before(self) -> Any:
        """The state before."""

    @property
    def post(self) -> Any:
        """The state after."""


class TraceWriter:
    """Appends trace lines to ``path``, gzip if its name ends so. For one thread: the one its runners live on.

    ``machines``: the machines whose steps it writes.
    ``buffer_bytes``: what it holds back at most; 0 flushes every line.
    ``flush_s``: seconds after which the next line flushes all the same.

    Raises ``OSError`` if the file cannot be opened; a step of another machine, or at a time that is no number, is a ``ValueError``.
    """

    def __init__(self, path: Path | str, *machines: Machine[Any, Any, Any], buffer_bytes: int = 1 << 16, flush_s: float = 1.0) -> None:
        if not machines:
            raise ValueError("TraceWriter(path, MACHINE, ...): name the machines whose steps it writes")
        if buffer_bytes < 0 or flush_s < 0:
            raise ValueError(f"buffer_bytes={buffer_bytes}, flush_s={flush_s}: neither may be negative")
        self.path = Path(path)
        self.lines = 0
        """How many lines were written."""
        self._coders = {machine.name: Coder(machine) for machine in machines}
        self._file = _append(self.path)
        self._buffer_bytes, self._flush_s = buffer_bytes, flush_s
        self._buffer: list[bytes] = []
        self._held = 0
        self._flushed = time.monotonic()
        self._events: dict[object, bytes] = {}
        self._changes = {machine.name: _Changes(machine) for machine in machines}
        self._keys: dict[str, bytes] = {}

    def __call__(self, step: LoggedStep) -> None:
        """Write one step."""
        coder = self._coders.get(step.machine)
        if coder is None:
            raise ValueError(f"this writer writes {', '.join(self._coders)}, not {step.machine}")
        if not math.isfinite(step.ts):
            raise ValueError(f"ts={step.ts} is no time")
        said = "taken" if isinstance(step.answer, Taken) else "ignored" if isinstance(step.answer, Ignored) else "refused"
        changes = b"" if step.post is step.before else self._changes[step.machine].text(step.before, step.post)
        self._put(
            b'{"seq":%d,"ts":%.6f,"key":%b,%b%b,"answer":"%b","machine":"%b","version":%d}\n'
            % (
                step.seq,
                step.ts,
                self._key(step.key),
                self._event(coder, step.event),
                changes,
                said.encode(),
                step.machine.encode(),
                VERSION,
            )
        )

    def flush(self) -> None:
        """Hand everything to the operating system."""
        if self._buffer:
            self._file.write(b"".join(self._buffer))
            self._buffer.clear()
            self._held = 0
        self._file.flush()
        self._flushed = time.monotonic()

    def close(self) -> None:
        """Flush and close the file. May be called again."""
        if not self._file.closed:
            self.flush()
            self._file.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    def _put(self, line: bytes) -> None:
        self._buffer.append(line)
        self._held += len(line)
        self.lines += 1
        if self._held > self._buffer_bytes or time.monotonic() - self._flushed >= self._flush_s:
            self.flush()

    def _key(self, key: str) -> bytes:
        known = self._keys.get(key)
        return _remember(self._keys, key, _text(key)) if known is None else known

    def _event(self, coder: Coder, event: object) -> bytes:
        known = _remembered(self._events, event)
        if known is None:
            text = b'"event":"%b","args":%b' % (type(event).__name__.encode(), _text(coder.write_event(event)))
            known = _remember(self._events, event, text)
        return known


class _Changes:
    """Writes the ``post`` of a step: the fields it changed. What the machine only carries is left out, for it is never compared."""

    def __init__(self, machine: Machine[Any, Any, Any]) -> None:
        fields = {name: field for name, field in fields_of(machine.state).items() if field.kind is not Kind.OPAQUE}
        self._values = attrgetter(machine.phase, *fields)
        self._fields = [(b"", _text)] + [(_text(name) + b":", _encoder(field)) for name, field in fields.items()]

    def text(self, before: object, after: object) -> bytes:
        """``,"post":{...}``, or nothing."""
        pairs = zip(self._fields, self._values(before), self._values(after), strict=True)
        found = [name + encode(new) for (name, encode), old, new in pairs if old is not new and old != new and name]
        return b',"post":{%b}' % b",".join(found) if found else b""


def _encoder(field: Field) -> Callable[[Any], bytes]:
    if field.kind is Kind.ENUM:
        texts = {id(member): _text(to_json(member, field)) for member in field.values(tokens=0, counter=0)}
        return lambda member: texts[id(member)]
    if field.kind is Kind.BOOL:
        return lambda value: b"true" if value else b"false"
    return _text


def _append(path: Path) -> BinaryIO:
    return cast(BinaryIO, gzip.open(path, "ab")) if path.suffix == ".gz" else path.open("ab")


def _text(value: object) -> bytes:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace")


def _remembered(known: dict[Any, bytes], thing: object) -> bytes | None:
    try:
        return known.get(thing)
    except TypeError:  # it carries something that cannot be hashed
        return None


def _remember(known: dict[Any, bytes], thing: object, text: bytes) -> bytes:
    if len(known) >= REMEMBERED:
        known.clear()
    with contextlib.suppress(TypeError):
        known[thing] = text
    return text


__all__ = ["LoggedStep", "TraceWriter"]
