"""A laid-out scene as SVG: text in the tones of the scene, no comment, no version, no date; the same bytes every time."""

from __future__ import annotations

import math
from collections.abc import Iterator
from html import escape

from turnproof.checkers.draw.layout import Layout, Point
from turnproof.checkers.draw.scene import LINE, PAD_X, PAD_Y, SIZE, Box, Frame, Kind, Line, Link, Scene, Span, Tone
from turnproof.checkers.draw.titles import title_place

MARGIN = 20
HEADER = 52
"""Height of title and note."""
FONT = "Helvetica, Arial, 'Liberation Sans', 'Nimbus Sans', sans-serif"
INK = {Tone.PLAIN: "#24292f", Tone.STRONG: "#0b1f33", Tone.TITLE: "#0b1f33", Tone.QUIET: "#6a737d"}
LOOK = {
    Kind.PHASE: 'fill="#ffffff" stroke="#0b1f33" stroke-width="1.4" rx="8"',
    Kind.TERMINAL: 'fill="#e9ecef" stroke="#0b1f33" stroke-width="1.4" rx="8"',
    Kind.HUB: 'fill="#dbe9f6" stroke="#4a6785" stroke-width="1" rx="14"',
    Kind.LABEL: 'fill="#fbf8ee" stroke="#d5ccae" stroke-width="1" rx="3"',
    Kind.REFUSED: 'fill="#ffffff" stroke="#8a1c1c" stroke-width="1.4" rx="3" stroke-dasharray="6 4"',
    Kind.TIMER: 'fill="#ffffff" stroke="#0b1f33" stroke-width="1.4" rx="8"',
    Kind.START: 'fill="#0b1f33" stroke="none"',
}
LEGEND = {
    Kind.PHASE: "phase",
    Kind.TERMINAL: "phase that is never left",
    Kind.HUB: "several phases at once",
    Kind.LABEL: "",
    Kind.REFUSED: "refused: nothing changes, the caller is told why",
}
INSIDE = "phase, with what it answers without being left"
SOMETIMES = "x?: in some states only"
EDGE = "#44546a"
REFUSAL = "#8a1c1c"


def svg(scene: Scene, layout: Layout, *, link: str = "") -> str:
    """The picture. ``link`` makes the text of row 7 point to ``link + "7"``; empty: no links."""
    legend = [*_legend_rows([*_legend_entries(scene)])]
    wide = max(
        layout.size[0], *(_legend_width(row) for row in legend), int(Span(scene.title, Tone.TITLE).width * 1.3), int(Span(scene.note).width)
    )
    width, height = wide + 2 * MARGIN, HEADER + layout.size[1] + MARGIN + 24 * len(legend) + MARGIN
    shift = (MARGIN + (wide - layout.size[0]) // 2, HEADER)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}" role="img"'
        f' font-family="{FONT}" font-size="{SIZE}">',
        f"<title>{escape(scene.title)}</title>",
        f'<rect width="{width}" height="{height}" fill="#ffffff"/>',
        f'<text x="{MARGIN}" y="26" font-size="18" font-weight="bold" fill="#0b1f33">{escape(scene.title)}</text>',
        _span(Span(scene.note, Tone.QUIET), MARGIN, 43),
        f'<g transform="translate({shift[0]} {shift[1]})">',
        *(_frame(scene, layout, frame, corners) for frame, corners in zip(scene.frames, layout.frames, strict=True)),
        *(part for edge, curve in zip(scene.links, layout.links, strict=True) for part in _link(edge, curve)),
        *(part for box in scene.boxes for part in _box(box, layout.boxes[box.id], link)),
        "</g>",
        *_legend(legend, HEADER + layout.size[1] + MARGIN),
        "</svg>",
    ]
    return "\n".join(parts) + "\n"


def _frame(scene: Scene, layout: Layout, frame: Frame, corners: tuple[int, int, int, int]) -> str:
    left, top, right, bottom = corners
    return (
        f'<rect x="{left}" y="{top}" width="{right - left}" height="{bottom - top}" rx="10" fill="#f6f8fa" stroke="#c3cad2"/>'
        f"{_span(Span(frame.title, Tone.QUIET), *title_place(scene, layout, frame, corners))}"
    )


def _link(link: Link, curve: tuple[Point, ...]) -> Iterator[str]:
    (x, y), *controls, tip = curve
    path = f"M{x},{y}C" + " ".join(f"{cx},{cy}" for cx, cy in controls)
    ink = REFUSAL if link.dashed else EDGE
    dashes = ' stroke-dasharray="6 4"' if link.dashed else ""
    yield f'<path d="{path}" fill="none" stroke="{ink}" stroke-width="1.2"{dashes}/>'
    if link.arrow:
        yield f'<path d="{_arrowhead(controls[-1], tip)}" fill="{ink}"/>'


def _arrowhead(start: Point, tip: Point) -> str:
    """A triangle from the end of the curve to the tip."""
    dx, dy = tip[0] - start[0], tip[1] - start[1]
    length = math.hypot(dx, dy) or 1.0
    ux, uy = dx / length, dy / length
    base = (tip[0] - 10 * ux, tip[1] - 10 * uy)
    return f"M{tip[0]},{tip[1]}L{_n(base[0] - 4 * uy)},{_n(base[1] + 4 * ux)} {_n(base[0] + 4 * uy)},{_n(base[1] - 4 * ux)}Z"


def _box(box: Box, centre: Point, link: str) -> Iterator[str]:
    if box.kind is Kind.START:
        yield f'<circle cx="{centre[0]}" cy="{centre[1]}" r="6" {LOOK[box.kind]}/>'
        return
    look = LOOK[box.kind].replace('stroke-width="1.4"', 'stroke-width="2.6"') if box.focus else LOOK[box.kind]
    left, top = centre[0] - box.width // 2, centre[1] - box.height // 2
    yield f'<rect x="{left}" y="{top}" width="{box.width}" height="{box.height}" {look}/>'
    y = top
    for n, section in enumerate(box.sections):
        if n:
            yield f'<path d="M{left},{y}h{box.width}" stroke="#c3cad2" fill="none"/>'
        y += PAD_Y
        for text in section:
            yield _text(text, left + PAD_X, y + SIZE, link)
            y += LINE
        y += PAD_Y


def _text(text: Line, x: float, y: int, link: str) -> str:
    x += text.indent
    parts = []
    for span in text.spans:
        parts.append(_span(span, x, y))
        x += span.width
    made = "".join(parts)
    return f'<a href="{link}{text.row}">{made}</a>' if link and text.row else made


def _span(span: Span, x: float, y: int) -> str:
    """One text with its width, so that it fits where the font is another one. SVG drops spaces at the ends, so they are left out."""
    stripped = span.text.strip(" ")
    if not stripped:
        return ""
    lead = Span(span.text[: len(span.text) - len(span.text.lstrip(" "))], span.tone).width
    shown = Span(stripped, span.tone)
    weight = ' font-weight="bold"' if span.bold else ""
    size = f' font-size="{span.size}"' if span.size != SIZE else ""
    return (
        f'<text x="{_n(x + lead)}" y="{y}" textLength="{_n(shown.width)}" lengthAdjust="spacingAndGlyphs"'
        f' fill="{INK[span.tone]}"{weight}{size}>{escape(stripped, quote=False)}</text>'
    )


def _n(value: float) -> str:
    """One decimal, and none where it would be 0."""
    return f"{value:.1f}".removesuffix(".0")


Entry = tuple[Kind | None, str]


def _legend_entries(scene: Scene) -> Iterator[Entry]:
    """What the picture uses; the question mark has no swatch."""
    for kind, text in {**LEGEND, **dict(scene.legend)}.items():
        if any(box.kind is kind for box in scene.boxes):
            full = not scene.legend and kind is Kind.PHASE and any(len(box.sections) > 1 for box in scene.boxes)
            yield kind, INSIDE if full else text or scene.labels
    if any("?" in span.text for box in scene.boxes for section in box.sections for text in section for span in text.spans):
        yield None, SOMETIMES


def _legend_rows(entries: list[Entry]) -> Iterator[list[Entry]]:
    """Entries in rows of at most 900 pixels."""
    row: list[Entry] = []
    for entry in entries:
        if row and _legend_width([*row, entry]) > 900:
            yield row
            row = []
        row.append(entry)
    yield row


def _legend_width(row: list[Entry]) -> int:
    return int(sum((36 if kind else 0) + Span(text).width + 24 for kind, text in row))


def _legend(rows: list[list[Entry]], top: int) -> Iterator[str]:
    for n, row in enumerate(rows):
        x, y = float(MARGIN), top + 24 * n
        for kind, text in row:
            if kind:
                yield f'<rect x="{_n(x)}" y="{y}" width="28" height="15" {LOOK[kind]}/>'
                x += 36
            yield _span(Span(text, Tone.QUIET), x, y + SIZE)
            x += Span(text).width + 24
