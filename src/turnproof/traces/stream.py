"""Streams of other programs: what they publish while they work, where much that happens is not said.

A stream interleaves sessions. A source takes it apart into *moments* of each session, in order: something came from outside (an event
of the machine), or the program showed something (the word for an effect of the machine). Whatever happens in between unseen is searched
for by the follower (``turnproof.checkers.traces.stream``); the source says which unseen events there may be.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Protocol

import attrs


@attrs.frozen
class Came:
    """Something came from outside. ``event`` makes the event from the state of the machine; ``late`` ones may be ignored by it."""

    place: str
    text: str
    """As a person reads it."""
    at_ms: int | None
    """The program's clock, where the stream tells it."""
    event: Callable[[Any], Any]
    late: bool = False
    context: Any = None
    """For the source alone: what unseen events may need to know."""


@attrs.frozen
class Shown:
    """The program showed something: ``word``, as :meth:`StreamSource.shows` calls the effect."""

    place: str
    text: str
    at_ms: int | None
    word: str
    context: Any = None


Moment = Came | Shown


@attrs.define
class Session:
    """One session of a stream."""

    name: str
    moments: list[Moment] = attrs.field(factory=list)


@attrs.define
class StreamRead:
    """What was read of a stream."""

    sessions: list[Session] = attrs.field(factory=list)
    lines: int = 0
    passed: Counter[str] = attrs.field(factory=Counter)
    """Known kinds of line that say nothing about the machine."""
    unknown: Counter[str] = attrs.field(factory=Counter)
    """Kinds of line that the source does not know."""
    extra: Counter[str] = attrs.field(factory=Counter)
    """Fields that the source does not know."""
    notes: Counter[str] = attrs.field(factory=Counter)


class StreamSource(Protocol):
    """A kind of stream. Stateless: one object serves every file."""

    name: str
    """As ``--from`` calls it."""
    machine: str
    """Name of the machine whose events it tells."""
    program: str
    """What was recorded, for reports."""
    variant: str
    """Name of the variant that is the program as it shipped."""

    def recognises(self, record: object) -> bool:
        """Whether a line (decoded) looks like one of its own."""

    def sessions(self, records: Iterable[tuple[str, object]]) -> StreamRead:
        """The sessions of the lines, each given with its place. Raises ``LineProblem`` for what is none."""

    def initial(self, state: Any) -> Any:
        """The initial state of the machine as the program has it: its own limits."""

    def unseen(self, state: Any, moment: Moment) -> Iterator[Any]:
        """Events that may have happened unseen in ``state``, before ``moment``; expiries of timers are known to the follower."""

    def is_over(self, state: Any) -> bool:
        """Whether nothing is under way in ``state``, so that a stream may end there."""

    def shows(self, effect: Any) -> str | None:
        """The word for an effect that shows; None for one that does not."""


def is_stream(source: object) -> bool:
    """Whether a source tells streams, not sequences of calls."""
    return hasattr(source, "unseen")


__all__ = ["Came", "Moment", "Session", "Shown", "StreamRead", "StreamSource", "is_stream"]
