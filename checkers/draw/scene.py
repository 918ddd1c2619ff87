"""A picture before it is laid out: boxes of text, links between them, frames around them. Sizes in pixels; no position yet."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from enum import Enum

import attrs

from turnproof.checkers.draw import metrics

SIZE = 12
"""Font size of everything but titles."""
LINE = 16
"""From one line of text to the next."""
PAD_X, PAD_Y = 10, 7
HANG = 16
"""Continuation lines of one label are indented by this much."""


class Tone(Enum):
    """What a text is to its reader; each has its own ink."""

    PLAIN = "plain"
    STRONG = "strong"
    TITLE = "title"
    """The name of a phase."""
    QUIET = "quiet"


@attrs.frozen
class Span:
    """A run of text in one tone."""

    text: str
    tone: Tone = Tone.PLAIN

    @property
    def bold(self) -> bool:
        """Whether the text is set in bold."""
        return self.tone in (Tone.STRONG, Tone.TITLE)

    @property
    def size(self) -> int:
        """Font size in pixels."""
        return SIZE + 2 if self.tone is Tone.TITLE else SIZE

    @property
    def width(self) -> float:
        """Width in pixels."""
        return metrics.width(self.text, self.size, bold=self.bold)


@attrs.frozen
class Line:
    """Spans on one line. ``row`` is the number of the table's row it speaks of, 0 if none."""

    spans: tuple[Span, ...]
    indent: int = 0
    row: int = 0

    @property
    def width(self) -> float:
        """Width in pixels, indent included."""
        return self.indent + sum(span.width for span in self.spans)


class Kind(Enum):
    """What a box stands for; each has its own look."""

    PHASE = "phase"
    TERMINAL = "terminal"
    HUB = "hub"
    """Several phases at once, as the source of what they have in common."""
    LABEL = "label"
    """The text of one edge, or of several parallel ones."""
    REFUSED = "refused"
    TIMER = "timer"
    START = "start"
    """The dot that points to the initial phase."""


@attrs.frozen
class Box:
    """Sections of lines, parted by a rule."""

    id: str
    kind: Kind
    sections: tuple[tuple[Line, ...], ...] = ()
    focus: bool = False
    """The picture is about this one."""

    @property
    def width(self) -> int:
        """Outer width."""
        if self.kind is Kind.START:
            return 12
        return int(max(line.width for section in self.sections for line in section) + 2 * PAD_X) + 1

    @property
    def height(self) -> int:
        """Outer height."""
        if self.kind is Kind.START:
            return 12
        return sum(len(section) * LINE + 2 * PAD_Y for section in self.sections)


@attrs.frozen
class Link:
    """An edge. Only the last piece of an edge, behind its label, has an ``arrow``."""

    tail: str
    head: str
    arrow: bool = True
    dashed: bool = False
    back: bool = False
    """Leads against the reading direction: the head is placed before the tail."""


@attrs.frozen
class Frame:
    """A rectangle around boxes, with a title on its upper edge."""

    title: str
    boxes: tuple[str, ...]


@attrs.frozen
class Scene:
    """One picture. ``name`` is the stem of its file."""

    name: str
    title: str
    note: str
    boxes: tuple[Box, ...]
    links: tuple[Link, ...]
    frames: tuple[Frame, ...] = ()
    columns: tuple[tuple[str, ...], ...] = ()
    """Boxes that stand in one row across the reading direction."""
    downwards: bool | None = False
    """Read from top to bottom; False: from left to right; None: whichever makes the smaller picture."""
    labels: str = "row number, event [guard] / effects; the first row that matches wins"
    """What its labels say, for the legend."""
    legend: tuple[tuple[Kind, str], ...] = ()
    """What its boxes are, where they are not those of a machine."""

    def rows(self) -> frozenset[int]:
        """Numbers of the rows that occur in it."""
        return frozenset(line.row for box in self.boxes for section in box.sections for line in section if line.row)


def line(text: str, tone: Tone = Tone.PLAIN, *, row: int = 0) -> Line:
    """A line of one span."""
    return Line((Span(text, tone),), row=row)


def wrap(spans: Sequence[Span], limit: int, *, row: int = 0, hang: int = HANG) -> tuple[Line, ...]:
    """Spans broken at spaces into lines of at most ``limit`` pixels (a single longer word stays whole)."""
    lines: list[Line] = []
    current: list[Span] = []
    used = 0.0
    for word in _words(spans):
        width = sum(span.width for span in word)
        if current and used + width > limit:
            lines.append(Line(tuple(_joined(current)), hang if lines else 0, row))
            current, used = [], float(hang)
        current += [*word, Span(" ", word[-1].tone)]
        used += width + current[-1].width
    lines.append(Line(tuple(_joined(current)), hang if lines else 0, row))
    return tuple(lines)


def _words(spans: Iterable[Span]) -> Iterator[list[Span]]:
    """What no line is broken in; a word may change its tone, as ``event:`` does."""
    word: list[Span] = []
    for span in spans:
        for n, text in enumerate(span.text.split(" ")):
            if n and word:
                yield word
                word = []
            if text:
                word.append(Span(text, span.tone))
    if word:
        yield word


def _joined(words: Sequence[Span]) -> Iterator[Span]:
    """Neighbours of one tone as one span again, without the space at the end of the line."""
    text, tone = "", words[0].tone
    for word in words[:-1]:
        if word.tone is not tone:
            yield Span(text, tone)
            text, tone = "", word.tone
        text += word.text
    yield Span(text, tone)
