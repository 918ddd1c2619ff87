"""Recordings of other programs: what a source must tell so that a replay can drive a machine through what was recorded.

A recording is a file of sequences, one JSON object a line. A sequence is calls that were made on a fresh object, with a clock under
control, and what was seen after each. A source reads a sequence, says which event of the machine a call is, and what one would have seen
had the machine been the program.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import Any, Protocol, cast

import attrs

from turnproof.traces.line import TraceError, close_to


@attrs.frozen
class Send:
    """The call is this event."""

    event: Any


@attrs.frozen
class Advance:
    """The call lets time pass, in milliseconds."""

    ms: int


@attrs.frozen
class Nothing:
    """The call reaches nobody: the machine does not move."""


@attrs.frozen
class Unknown:
    """Nobody knows what the call does."""

    why: str


Move = Send | Advance | Nothing | Unknown


@attrs.frozen
class Call:
    """One recorded call."""

    name: str
    text: str
    """As a person reads it: ``expire(no_activity)``."""
    move: Move
    seen: Mapping[str, object]
    """What was seen of the program after the call, or during it; only what the source compares."""
    note: str = ""
    """How the call was read, where that is not plain."""


@attrs.frozen
class Recorded:
    """One recorded sequence."""

    name: str
    calls: tuple[Call, ...]
    extra: tuple[str, ...] = ()
    """Fields that the source does not know, of the sequence or of its calls."""
    missing: tuple[str, ...] = ()
    """Of what is compared, what some call does not tell."""


class Source(Protocol):
    """A kind of recording. Stateless: one object serves every file."""

    name: str
    """As ``--from`` calls it."""
    machine: str
    """Name of the machine whose events its calls are."""
    program: str
    """What was recorded, for reports."""
    variant: str
    """Name of the variant that is the program as it shipped."""
    compared: tuple[str, ...]
    """What is compared after each call."""
    calls: tuple[str, ...]
    """Every call it knows."""

    def recognises(self, record: object) -> bool:
        """Whether a line (decoded) looks like one of its sequences."""

    def read(self, record: object) -> Recorded:
        """The sequence of a line. Raises ``LineProblem`` for what is none."""

    def words(self, name: str, value: object) -> str:
        """Something that was seen, as a person says it: ``the slot is free``."""

    def predict(self, call: Call, before: Any, steps: Sequence[Any], after: Any) -> Mapping[str, object]:
        """What would have been seen. ``steps`` are the machine's, each with ``answer`` and ``effects``, between the states."""


_SOURCES = {"openclaw": "turnproof.traces.openclaw", "opencode": "turnproof.traces.opencode"}
"""Name -> module that holds its ``SOURCE``."""


def source(name: str) -> Source:
    """The source of that name. Raises :class:`TraceError` with the names there are."""
    if name not in _SOURCES:
        raise TraceError(f"there is no source {name!r}{close_to(name, _SOURCES) or '; there is ' + ', '.join(_SOURCES)}")
    return cast(Source, import_module(_SOURCES[name]).SOURCE)


def recognise(record: object) -> Source | None:
    """The source that knows a line; None if none does."""
    return next((found for found in map(source, _SOURCES) if found.recognises(record)), None)


__all__ = ["Advance", "Call", "Move", "Nothing", "Recorded", "Send", "Source", "Unknown", "recognise", "source"]
