"""Where Graphviz puts the boxes of a scene.

Graphviz is given boxes of fixed size and no text at all, so a layout depends on no font. Positions are rounded to whole pixels and
kept in a file beside the pictures, under the digest of the DOT text they were made from: a picture whose text and boxes did not
change keeps its layout on every machine, whatever version of Graphviz that has.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import attrs
import graphviz
import pygraphviz

from turnproof.checkers.draw.scene import Kind, Scene

Point = tuple[int, int]

SIDEWARDS = {"rankdir": "LR", "nodesep": "0.22", "ranksep": "0.45"}
DOWNWARDS = {"rankdir": "TB", "nodesep": "0.4", "ranksep": "0.35"}
"""Gaps in inches."""


@attrs.frozen
class Layout:
    """Positions in pixels, y downwards from the upper left corner."""

    size: Point
    boxes: Mapping[str, Point]
    """Box -> its centre."""
    links: tuple[tuple[Point, ...], ...]
    """For each link of the scene the control points of its Bézier curve, and last the tip it points to."""
    frames: tuple[tuple[int, int, int, int], ...]
    """For each frame left, top, right, bottom."""


def dot(scene: Scene) -> str:
    """The scene as DOT text, its boxes empty."""
    gaps = (
        {"rankdir": "TB", "nodesep": "0.4", "ranksep": "0.35"}
        if scene.downwards
        else {"rankdir": "LR", "nodesep": "0.22", "ranksep": "0.45"}
    )
    graph = graphviz.Digraph(scene.name, graph_attr=gaps)
    graph.attr("node", shape="box", fixedsize="true", label="", margin="0")
    framed = {name for frame in scene.frames for name in frame.boxes}
    sizes = {box.id: {"width": _inches(box.width), "height": _inches(box.height)} for box in scene.boxes}
    for n, frame in enumerate(scene.frames):
        with graph.subgraph(name=f"cluster_{n}", graph_attr={"margin": "18", "label": ""}) as inner:
            for name in frame.boxes:
                inner.node(name, **sizes[name])
    for box in scene.boxes:
        if box.id not in framed:
            graph.node(box.id, **sizes[box.id], **({"shape": "circle"} if box.kind is Kind.START else {}))
    for n, column in enumerate(scene.columns):
        with graph.subgraph(name=f"column_{n}", graph_attr={"rank": "same"}) as inner:
            for name in column:
                inner.node(name)
    for n, link in enumerate(scene.links):
        tail, head, end = (link.head, link.tail, "back") if link.back else (link.tail, link.head, "forward")
        graph.edge(tail, head, id=str(n), dir=end if link.arrow else "none")
    return str(graph.source)


def _inches(pixels: int) -> str:
    return f"{pixels / 72:.4f}"


def lay_out(text: str, scene: Scene) -> Layout:
    """Ask Graphviz. Raises ``ValueError`` if it gives no position for a box or a link."""
    graph: Any = pygraphviz.AGraph(string=text)
    try:
        graph.layout(prog="dot")
        left, bottom, right, top = (float(v) for v in graph.graph_attr["bb"].split(","))

        def point(pair: str) -> Point:
            x, y = pair.split(",")
            return round(float(x) - left), round(top - float(y))

        boxes = {box.id: point(graph.get_node(box.id).attr["pos"]) for box in scene.boxes}
        curves = {edge.attr["id"]: edge.attr["pos"] for edge in graph.edges()}
        links = tuple(_curve(curves[str(n)], point, link.back) for n, link in enumerate(scene.links))
        frames = []
        for n in range(len(scene.frames)):
            x0, y0, x1, y1 = graph.get_subgraph(f"cluster_{n}").graph_attr["bb"].split(",")
            (a, d), (c, b) = point(f"{x0},{y0}"), point(f"{x1},{y1}")
            frames.append((a, b, c, d))
        return Layout((round(right - left), round(top - bottom)), boxes, links, tuple(frames))
    finally:
        graph.close()


def _curve(text: str, point: Any, back: bool) -> tuple[Point, ...]:
    """The points in the link's own direction, the tip last (the last point twice without one).

    Graphviz writes ``e,x,y`` for a tip at the end, and ``s,x,y`` for one at the start of an edge that points back.
    """
    parts = text.split(" ")
    tip = parts.pop(0) if parts[0][:2] in ("e,", "s,") else ""
    controls = [point(part) for part in parts]
    if back:
        controls.reverse()
    return (*controls, point(tip[2:]) if tip else controls[-1])


class Layouts:
    """The layouts kept in a file, and those made since. Only the ones that were asked for are written back."""

    def __init__(self, path: Path) -> None:
        self.kept: Mapping[str, Any] = {}
        self.used: dict[str, Any] = {}
        try:
            found = json.loads(path.read_text(encoding="utf-8"))
            self.kept = found if isinstance(found, dict) else {}
        except (OSError, ValueError):
            pass

    def of(self, scene: Scene) -> tuple[Scene, Layout]:
        """The kept layout of exactly this scene, or a new one; and the scene with its direction decided."""
        ways = [attrs.evolve(scene, downwards=way) for way in (True, False)] if scene.downwards is None else [scene]
        found = self._kept(ways) or min(((way, lay_out(dot(way), way)) for way in ways), key=lambda pair: _extent(pair[1]))
        self.used[scene.name] = {"source": _digest(found[0]), **_plain(found[1])}
        return found

    def _kept(self, ways: list[Scene]) -> tuple[Scene, Layout] | None:
        for way in ways:
            layout = _read(self.kept.get(way.name), _digest(way), way)
            if layout is not None:
                return way, layout
        return None

    def text(self) -> str:
        """The file as it should be: one line a part, so that a change can be reviewed."""
        return json.dumps(self.used, indent=1, sort_keys=True) + "\n"


def _digest(scene: Scene) -> str:
    return hashlib.sha256(dot(scene).encode()).hexdigest()


def _extent(layout: Layout) -> float:
    """How small a picture must be shown to fit a page; width counts more than height, for pages scroll."""
    return max(layout.size[0], 0.7 * layout.size[1])


def _plain(layout: Layout) -> dict[str, Any]:
    """As JSON; a curve is one text of numbers, so that it stays on one line."""
    return {
        "size": _numbers([layout.size]),
        "boxes": {name: _numbers([point]) for name, point in layout.boxes.items()},
        "links": [_numbers(curve) for curve in layout.links],
        "frames": [_numbers([frame]) for frame in layout.frames],
    }


def _numbers(groups: Any) -> str:
    return " ".join(",".join(str(n) for n in group) for group in groups)


def _read(entry: Any, digest: str, scene: Scene) -> Layout | None:
    """A kept layout; None if it is of another scene or not whole."""
    if not isinstance(entry, dict) or entry.get("source") != digest:
        return None
    try:
        (size,) = _points(entry["size"])
        boxes = {name: _points(text)[0] for name, text in entry["boxes"].items()}
        links = tuple(_points(text) for text in entry["links"])
        frames = tuple(tuple(int(n) for n in text.split(",")) for text in entry["frames"])
    except (KeyError, ValueError, TypeError, AttributeError):
        return None
    whole = boxes.keys() == {box.id for box in scene.boxes} and len(links) == len(scene.links) and len(frames) == len(scene.frames)
    return Layout(size, boxes, links, frames) if whole and all(len(f) == 4 for f in frames) else None  # type: ignore[arg-type]


def _points(text: str) -> tuple[Point, ...]:
    pairs = [tuple(int(n) for n in pair.split(",")) for pair in text.split(" ")]
    if any(len(pair) != 2 for pair in pairs):
        raise ValueError(text)
    return tuple((pair[0], pair[1]) for pair in pairs)
