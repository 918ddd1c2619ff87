"""What the pictures must show, that nothing in them overlaps or overflows, and that they are the same bytes on every run."""

import hashlib
import itertools
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from xml.etree import ElementTree

import attrs
import draw_toys
import pytest

from turnproof.checkers import draw
from turnproof.checkers.draw import layout as layouts
from turnproof.checkers.draw.bundle import Bundle, bundles
from turnproof.checkers.draw.layout import Layout, Layouts
from turnproof.checkers.draw.pictures import scenes
from turnproof.checkers.draw.reach import Armed, Place, Reach, reach
from turnproof.checkers.draw.scene import PAD_X, Box, Frame, Kind, Scene, Span, Tone, wrap
from turnproof.checkers.draw.svg import svg
from turnproof.checkers.draw.titles import title_place
from turnproof.checkers.graph import Graph, explore
from turnproof.specs.catalog import specifications

LARGE = ("turn_loop", "embedded_attempt", "failover", "stuck_recovery", "stuck_watchdog", "session", "session_mark")
"""Their pictures are compared with the committed ones by every verification; drawing them here as well takes long."""
SPECS = {spec.machine.name: spec for spec in (draw_toys.SPEC, *specifications().values()) if spec.machine.name not in LARGE}
Phase = draw_toys.Phase


@pytest.fixture(scope="module")
def graphs() -> dict[str, Graph]:
    return {name: explore(spec) for name, spec in SPECS.items()}


@pytest.fixture(scope="module")
def reached(graphs: dict[str, Graph]) -> dict[str, Reach]:
    return {name: reach(graph) for name, graph in graphs.items()}


@pytest.fixture(scope="module")
def drawn(reached: dict[str, Reach], tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[tuple[Scene, Layout]]]:
    fresh = Layouts(tmp_path_factory.mktemp("none") / "none.json")
    return {name: [fresh.of(scene) for scene in scenes(found)] for name, found in reached.items()}


each_machine = pytest.mark.parametrize("name", SPECS)


# ── what is shown ──


@each_machine
def test_every_reached_row_that_is_taken_or_refused_is_in_a_picture_of_its_place(reached: dict[str, Reach], name: str) -> None:
    found = reached[name]
    pictures = scenes(found)
    by_place: dict[str, set[int]] = {}
    for scene in pictures:
        boxes = {box.id: box for box in scene.boxes}
        for box in scene.boxes:
            near = {box.id} | {link.head for link in scene.links if link.tail == box.id}
            rows = {line.row for n in near for section in boxes[n].sections for line in section if line.row}
            for place in found.places:
                if box.id == place.id or (box.id.startswith("hub.") and (box.id == "hub.live" or place.id in box.id[4:].split("+"))):
                    by_place.setdefault(place.id, set()).update(rows)
    shown = 0
    for move in found.moves:
        if found.row(move).answer != "ignored":
            assert move.row in by_place[move.source.id], (move, found.row(move).name)
            shown += 1
    assert shown > 5


@each_machine
def test_refusals_are_dashed_and_nothing_else_is(
    reached: dict[str, Reach], drawn: dict[str, list[tuple[Scene, Layout]]], name: str
) -> None:
    found = reached[name]
    refused = {move.row for move in found.moves if found.row(move).answer == "refused"}
    seen: set[int] = set()
    for scene, layout in drawn[name]:
        boxes = {box.id: box for box in scene.boxes}
        for link in scene.links:
            assert link.dashed == (boxes[link.head].kind is Kind.REFUSED)
        for box in scene.boxes:
            rows = {line.row for section in box.sections for line in section if line.row}
            seen |= rows & refused
            assert rows <= refused if box.kind is Kind.REFUSED else not rows & refused
        dashed = sum(1 for box in scene.boxes if box.kind is Kind.REFUSED)
        # Each refusal box: its outline, its edge, and one swatch in the legend.
        assert svg(scene, layout).count("stroke-dasharray") == 2 * dashed + (dashed > 0)
    assert seen == refused


def test_some_machine_refuses_something(reached: dict[str, Reach]) -> None:
    """Otherwise the test above would have nothing to look at."""
    assert any(found.row(move).answer == "refused" for found in reached.values() for move in found.moves)


def test_what_no_run_reaches_is_not_drawn(reached: dict[str, Reach]) -> None:
    found = reached["download"]
    dead = draw_toys.MACHINE.rows.index(draw_toys.MACHINE.row("Cancelled/dead")) + 1
    (scene, _) = scenes(found)
    assert dead not in scene.rows()
    assert Phase.LOST not in {place.phase for place in found.places}
    assert "lost" not in {box.id for box in scene.boxes}


def test_a_phase_reached_with_and_without_release_is_two_places(reached: dict[str, Reach]) -> None:
    names = [str(place) for place in reached["download"].places]
    assert names == ["idle", "waiting", "fetching", "checking", "done, not released", "done, released"]
    assert reached["download"].terminal == {Phase.DONE}


def test_timers_are_shown_where_they_run_and_what_moves_them(reached: dict[str, Reach]) -> None:
    found = reached["download"]
    whole, clocks = scenes(found)
    text = {box.id: " ".join(span.text for section in box.sections for line in section for span in line.spans) for box in whole.boxes}
    assert "timers: patience?" in text["waiting"]
    assert "patience" not in text["idle"]
    said = {box.id: " ".join(s.text for section in box.sections for line in section for s in line.spans) for box in clocks.boxes}
    assert said["patience.start"] == "started by Asked"
    assert said["patience.expiry"] == "expires PatienceEnded"
    assert "renewed by Arrived" in said["patience.runs"]
    assert said["patience.held"] == "paused by Held"
    assert said["patience.again"] == "resumed by Held"
    assert {m.after for m in found.timer_moves if found.row(m).name == "Held/busy"} == {Armed.PAUSED}


def test_a_big_machine_is_an_overview_and_a_picture_a_phase(reached: dict[str, Reach]) -> None:
    first, *others = scenes(reached["reply_operation"])
    assert (first.name, first.title) == ("reply_operation", "reply_operation: overview")
    assert not first.rows()
    phases = {place.phase.name.lower() for place in reached["reply_operation"].places}
    assert {scene.name for scene in others} == {f"reply_operation-{phase}" for phase in phases} | {"reply_operation-timers"}
    assert [scene.name for scene in scenes(reached["reply_slot"])] == ["reply_slot"]


# ── parallel edges ──


@each_machine
def test_no_two_labels_lead_from_the_same_to_the_same(reached: dict[str, Reach], name: str) -> None:
    for scene in scenes(reached[name]):
        if scene.name.endswith("-timers"):
            continue
        labels = {box.id for box in scene.boxes if box.kind is Kind.LABEL and not box.id.endswith(".entered")}
        ends = [
            (link.tail, onward.head) for link in scene.links if link.head in labels for onward in scene.links if onward.tail == link.head
        ]
        assert len(ends) == len(set(ends))


A, B, C, D = (Place(phase) for phase in (Phase.IDLE, Phase.WAITING, Phase.FETCHING, Phase.CHECKING))
END = Place(Phase.DONE)
LIVE = (A, B, C, D)


def test_many_sources_become_one_hub() -> None:
    assert bundles([(A, 1, END), (B, 1, END), (C, 1, END)], LIVE) == (Bundle((A, B, C), (1,), (END,)),)
    assert bundles([(A, 1, END), (B, 1, END)], LIVE) == (Bundle((A,), (1,), (END,)), Bundle((B,), (1,), (END,)))


def test_from_each_to_every_other_is_one_hub_and_one_label() -> None:
    edges = [(s, 1, d) for s, d in itertools.permutations((B, C, D), 2)]
    assert bundles(edges, LIVE) == (Bundle((B, C, D), (1,), (B, C, D)),)


def test_a_terminal_place_never_hides_in_a_hub() -> None:
    edges = [(place, 1, Place(Phase.LOST)) for place in (A, B, C, END)]
    assert bundles(edges, LIVE) == (Bundle((A, B, C), (1,), (Place(Phase.LOST),)), Bundle((END,), (1,), (Place(Phase.LOST),)))


def test_items_with_the_same_ends_share_a_label() -> None:
    assert bundles([(A, 2, B), (A, 1, B), (A, 1, C), (A, 2, C)], LIVE) == (Bundle((A,), (1, 2), (B, C)),)


# ── legible ──


def corners(box: Box, layout: Layout, margin: int = 0) -> tuple[float, float, float, float]:
    x, y = layout.boxes[box.id]
    return x - box.width / 2 - margin, y - box.height / 2 - margin, x + box.width / 2 + margin, y + box.height / 2 + margin


def overlap(one: tuple[float, ...], other: tuple[float, ...]) -> bool:
    return one[0] < other[2] and other[0] < one[2] and one[1] < other[3] and other[1] < one[3]


def along(points: tuple[tuple[int, int], ...], parts: int = 24) -> Iterator[tuple[float, float]]:
    """Points on a piecewise cubic Bézier curve; the last one is the tip."""
    *controls, tip = points
    for start in range(0, len(controls) - 1, 3):
        (ax, ay), (bx, by), (cx, cy), (dx, dy) = controls[start : start + 4]
        for n in range(parts + 1):
            t = n / parts
            u = 1 - t
            yield (
                u**3 * ax + 3 * u * u * t * bx + 3 * u * t * t * cx + t**3 * dx,
                u**3 * ay + 3 * u * u * t * by + 3 * u * t * t * cy + t**3 * dy,
            )
    yield tip


def collisions(scene: Scene, layout: Layout) -> Iterator[str]:
    """Boxes that overlap, or that stick out of the picture."""
    for one, other in itertools.combinations(scene.boxes, 2):
        if overlap(corners(one, layout), corners(other, layout)):
            yield f"{scene.name}: {one.id} overlaps {other.id}"
    for box in scene.boxes:
        left, top, right, bottom = corners(box, layout, margin=-1)
        if left < 0 or top < 0 or right > layout.size[0] or bottom > layout.size[1]:
            yield f"{scene.name}: {box.id} sticks out"


def crossings(scene: Scene, layout: Layout) -> Iterator[str]:
    """Edges that run through a box at which they neither begin nor end."""
    for link, curve in zip(scene.links, layout.links, strict=True):
        for box in scene.boxes:
            left, top, right, bottom = corners(box, layout, margin=-2)
            if box.id not in (link.tail, link.head) and any(left < x < right and top < y < bottom for x, y in along(curve)):
                yield f"{scene.name}: {link.tail} -> {link.head} runs through {box.id}"


@each_machine
def test_no_box_overlaps_another_and_no_edge_runs_through_one(drawn: dict[str, list[tuple[Scene, Layout]]], name: str) -> None:
    for scene, layout in drawn[name]:
        assert [*collisions(scene, layout), *crossings(scene, layout)] == []


def test_a_moved_box_overlaps_and_is_run_through(drawn: dict[str, list[tuple[Scene, Layout]]]) -> None:
    scene, layout = drawn["download"][0]
    link, curve = next((link, curve) for link, curve in zip(scene.links, layout.links, strict=True) if link.tail == "waiting")
    moved = attrs.evolve(layout, boxes={**layout.boxes, "checking": layout.boxes["waiting"], "idle": curve[0], "fetching": (0, 0)})
    found = [*collisions(scene, moved), *crossings(scene, moved)]
    assert "download: waiting overlaps checking" in found
    assert "download: fetching sticks out" in found
    assert f"download: waiting -> {link.head} runs through idle" in found


@each_machine
def test_an_edge_points_at_what_it_leads_to(drawn: dict[str, list[tuple[Scene, Layout]]], name: str) -> None:
    for scene, layout in drawn[name]:
        boxes = {box.id: box for box in scene.boxes}
        for link, curve in zip(scene.links, layout.links, strict=True):
            for end, box in ((curve[0], boxes[link.tail]), (curve[-1], boxes[link.head])):
                left, top, right, bottom = corners(box, layout, margin=6)
                assert left <= end[0] <= right, (scene.name, link)
                assert top <= end[1] <= bottom, (scene.name, link)


@each_machine
def test_text_stays_inside_its_box(drawn: dict[str, list[tuple[Scene, Layout]]], name: str) -> None:
    lines = 0
    for scene, _ in drawn[name]:
        for box in scene.boxes:
            for line in itertools.chain.from_iterable(box.sections):
                assert line.width <= box.width - 2 * PAD_X
                lines += 1
    assert lines > 5


def test_lines_break_at_spaces_only_and_hang() -> None:
    lines = wrap([Span("7 ", Tone.QUIET), Span("Event", Tone.STRONG), Span(": " + "word " * 30)], 120, row=7)
    assert len(lines) > 3
    assert all(line.width <= 120 and line.row == 7 for line in lines)
    assert [line.indent for line in lines[:2]] == [0, 16]
    assert "".join(span.text for span in lines[0].spans).startswith("7 Event: word")
    assert " ".join("".join(span.text for span in line.spans) for line in lines).split() == ["7", "Event:", *["word"] * 30]


# ── the file ──


@each_machine
def test_the_svg_is_well_formed_and_says_nothing_of_its_maker(drawn: dict[str, list[tuple[Scene, Layout]]], name: str) -> None:
    for scene, layout in drawn[name]:
        text = svg(scene, layout)
        root = ElementTree.fromstring(text)
        assert root.tag == "{http://www.w3.org/2000/svg}svg"
        assert "<!--" not in text
        assert "raphviz" not in text
        titles = [e.text for e in root.iter("{http://www.w3.org/2000/svg}title")]
        assert titles == [scene.title]
        assert all(e.get("textLength") for e in root.iter("{http://www.w3.org/2000/svg}text") if e.get("font-size") != "18")


def digest(texts: dict[str, str]) -> str:
    return hashlib.sha256("".join(f"{name}\0{texts[name]}\0" for name in sorted(texts)).encode()).hexdigest()


PROGRAM = """
import test_draw_pictures as here
for name in here.TWICE:
    print(here.digest(here.everything(here.explore(here.SPECS[name]))))
"""
TWICE = ("download", "reply_slot")


def everything(graph: Graph) -> dict[str, str]:
    return dict(draw.outputs(graph, Path("nowhere")))


@pytest.mark.soak
def test_the_same_bytes_in_every_process(graphs: dict[str, Graph]) -> None:
    mine = [digest(everything(graphs[name])) for name in TWICE]
    assert mine == [digest(everything(graphs[name])) for name in TWICE]
    environment = {**os.environ, "PYTHONHASHSEED": "4711", "PYTHONPATH": str(Path(__file__).parent)}
    done = subprocess.run([sys.executable, "-c", PROGRAM], env=environment, capture_output=True, text=True, check=True)
    assert done.stdout.split() == mine


def test_a_kept_layout_is_used_again_without_graphviz(graphs: dict[str, Graph], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    spec, graph = SPECS["download"], graphs["download"]
    draw.draw(spec, graph, tmp_path)
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}

    def fails(text: str, scene: Scene) -> Layout:
        raise AssertionError(f"{scene.name} was laid out again")

    monkeypatch.setattr(layouts, "lay_out", fails)
    draw.draw(spec, graph, tmp_path)
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before


@pytest.mark.parametrize("text", ["", "{", "[]", '{"download": {}}', '{"download": {"source": "0"}}'])
def test_a_broken_layout_file_is_made_anew(graphs: dict[str, Graph], tmp_path: Path, text: str) -> None:
    wanted = everything(graphs["download"])
    (tmp_path / "download.layout.json").write_text(text)
    assert draw.outputs(graphs["download"], tmp_path) == wanted


def test_a_layout_that_lacks_a_box_is_made_anew(graphs: dict[str, Graph], tmp_path: Path) -> None:
    spec, graph = SPECS["download"], graphs["download"]
    draw.draw(spec, graph, tmp_path)
    path = tmp_path / "download.layout.json"
    whole = path.read_text()
    path.write_text("\n".join(line for line in whole.split("\n") if '"idle"' not in line))
    assert draw.outputs(graph, tmp_path)["download.layout.json"] == whole


# ── titles of frames ──

FRAME = (100, 100, 300, 200)


def placed(title: str, *curves: tuple[tuple[int, int], ...], frame: tuple[int, int, int, int] = FRAME) -> tuple[int, int]:
    """Where the title of a frame stands beside these curves."""
    box = Box("done", Kind.START)
    made = Scene("s", "s", "", (box,), (), (Frame(title, ("done",)),))
    return title_place(made, Layout((400, 300), {"done": (200, 150)}, curves, (frame,)), made.frames[0], frame)


def across(y: int, left: int, right: int) -> tuple[tuple[int, int], ...]:
    return ((left, y), (left + 5, y), (right - 5, y), (right, y), (right, y))


def test_no_arrow_runs_through_the_title_of_a_frame() -> None:
    assert placed("ends") == (110, 114)
    x, y = placed("ends", across(110, 90, 200))
    assert (x > 200, y) == (True, 114)
    assert placed("ends", across(110, 90, 310)) == (110, 194)
    assert placed("ends", across(110, 90, 310), across(190, 90, 310)) == (100, 95)
    assert placed("ends", across(110, 90, 310), across(190, 90, 310), across(92, 90, 310)) == (100, 214)
    every = [across(y, 90, 310) for y in (110, 190, 92, 210)]
    assert placed("ends", *every) == (110, 114), "where nothing is free, in the corner"


def test_a_title_wider_than_its_frame_stands_outside() -> None:
    assert placed("terminal phases", frame=(150, 100, 240, 200)) == (150, 95)
    assert placed("terminal phases", frame=(350, 100, 440, 200)) == (360, 114), "and inside where outside is beyond the picture"


@each_machine
def test_no_edge_of_a_picture_runs_through_a_title(drawn: dict[str, list[tuple[Scene, Layout]]], name: str) -> None:
    for scene, layout in drawn[name]:
        for frame, corners_ in zip(scene.frames, layout.frames, strict=True):
            x, y = title_place(scene, layout, frame, corners_)
            width = Span(frame.title, Tone.QUIET).width
            hit = [(px, py) for curve in layout.links for px, py in along(curve) if x <= px <= x + width and y - 9 <= py <= y]
            assert not hit, (scene.name, frame.title)
