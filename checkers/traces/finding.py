"""What can be found at a line that is well written, and what a log may be forgiven."""

from __future__ import annotations

from enum import Enum
from pathlib import Path

import attrs

from turnproof.traces.line import TraceLine
from turnproof.traces.split import Text


class Tolerance(Enum):
    """What a log may have suffered, if one says so."""

    LOST = "lost"
    """Lines are missing: a gap in the count may be any events, so many of them."""
    DOUBLED = "doubled"
    """Lines occur twice."""
    REORDERED = "reordered"
    """Lines come later than their count says."""
    UNKNOWN = "unknown"
    """Events that the machine does not know are another's business."""


class Kind(Enum):
    """What may be wrong with a line that is well written."""

    DIVERGED = "diverged"
    """The machine cannot have done what the line says."""
    MISSING = "missing"
    DOUBLED = "doubled"
    UNDETERMINED = "too much is unlogged to say"


@attrs.frozen
class Place:
    """A line of a file."""

    path: Path
    number: int

    def __str__(self) -> str:
        return f"{self.path}:{self.number}"


@attrs.frozen
class Finding:
    """Something found at a line."""

    kind: Kind
    place: Place
    key: str
    seq: int
    said: str


@attrs.define
class Breach:
    """A promise that lines broke: where first, and how often."""

    place: Place
    key: str
    said: str
    times: int = 0


def said(line: TraceLine) -> str:
    """A line as a person reads it: ``chat-7: PhaseEntered(phase=running) taken -> phase=running``."""
    text = came(line) + (f" {line.answer}" if line.answer else "")
    return text + (" -> " + ", ".join(f"{name}={_plain(value)}" for name, value in line.post.items()) if line.post else "")


def came(line: TraceLine) -> str:
    """The event of a line alone."""
    args = ", ".join(f"{name}={_plain(value)}" for name, value in line.args.items())
    return f"{line.key}: {line.event}({args})" if args else f"{line.key}: {line.event}"


def _plain(value: object) -> str:
    return value or "none" if isinstance(value, str) else str(value).lower() if isinstance(value, bool) else str(value)


@attrs.frozen
class Seen:
    """A line on its way: where it stood, and its pieces."""

    place: Place
    line: TraceLine
    text: Text | None
    written: bytes | None = None
    """How its key stands in it, if it is written as the style of the log has it."""


__all__ = ["Breach", "Finding", "Kind", "Place", "Seen", "Tolerance", "came", "said"]
