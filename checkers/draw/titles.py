"""Where the title of a frame stands: in a corner of it, or just outside, wherever no arrow and no box is in its way."""

from __future__ import annotations

from collections.abc import Iterator

from turnproof.checkers.draw.layout import Layout, Point
from turnproof.checkers.draw.scene import Frame, Scene, Span, Tone

Rect = tuple[float, float, float, float]
"""Left, top, right, bottom."""

RISE, FALL = 11, 3
"""How far letters reach above and below their line."""
AIR = 2
"""Least distance of a title from an arrow."""
INSET = 10
"""Distance of a title from the corner of its frame."""
BESIDE = 20
"""How far a title may stand outside of what was laid out: the margin of the picture."""
PIECES = 40
"""Points at which a curve is looked at."""


def title_place(scene: Scene, layout: Layout, frame: Frame, corners: tuple[int, int, int, int]) -> Point:
    """Left end and base line of the title; the upper left corner where every place is taken."""
    width = int(Span(frame.title, Tone.QUIET).width) + 1
    boxes = [_box(scene, layout, n) for n in range(len(scene.boxes))]
    others: list[Rect] = [rect for rect in layout.frames if rect != corners]
    paths = [point for curve in layout.links for point in _points(curve)]
    for (x, y), inside in _places(corners, width):
        text = (x, y - RISE, x + width, y + FALL)
        rect = (x - AIR, y - RISE - AIR, x + width + AIR, y + FALL + AIR)
        seen = inside or (rect[1] >= 0 and rect[2] <= layout.size[0] + BESIDE and rect[3] <= layout.size[1] + BESIDE / 2)
        clear = not any(_meet(text, other) for other in (boxes if inside else boxes + others))
        if seen and clear and not any(rect[0] <= px <= rect[2] and rect[1] <= py <= rect[3] for px, py in paths):
            return x, y
    return corners[0] + INSET, corners[1] + 14


def _places(corners: tuple[int, int, int, int], width: int) -> Iterator[tuple[Point, bool]]:
    """The places in the order of preference, and whether they are inside the frame; inside only where the title fits."""
    left, top, right, bottom = corners
    if width + 2 * INSET <= right - left:
        for y in (top + 14, bottom - 6):
            yield (left + INSET, y), True
            yield (right - INSET - width, y), True
    yield (left, top - 5), False
    yield (left, bottom + 14), False


def _box(scene: Scene, layout: Layout, number: int) -> Rect:
    box = scene.boxes[number]
    x, y = layout.boxes[box.id]
    return x - box.width / 2, y - box.height / 2, x + box.width / 2, y + box.height / 2


def _meet(one: Rect, other: Rect) -> bool:
    return one[0] < other[2] and other[0] < one[2] and one[1] < other[3] and other[1] < one[3]


def _points(curve: tuple[Point, ...]) -> Iterator[tuple[float, float]]:
    """Points of a Bézier curve, and of the line from its end to the tip."""
    *controls, tip = curve
    for n in range(0, len(controls) - 3, 3):
        (x0, y0), (x1, y1), (x2, y2), (x3, y3) = controls[n : n + 4]
        for t in (piece / PIECES for piece in range(PIECES + 1)):
            a, b, c, d = (1 - t) ** 3, 3 * (1 - t) ** 2 * t, 3 * (1 - t) * t**2, t**3
            yield a * x0 + b * x1 + c * x2 + d * x3, a * y0 + b * y1 + c * y2 + d * y3
    (x, y) = controls[-1]
    yield from ((x + (tip[0] - x) * n / 10, y + (tip[1] - y) * n / 10) for n in range(11))


__all__ = ["title_place"]
