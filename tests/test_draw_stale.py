"""The check of the committed pictures notices every way in which they can differ from the table."""

from collections.abc import Callable
from pathlib import Path

import attrs
import draw_toys
import pytest

from turnproof.checkers import draw
from turnproof.checkers.graph import Graph, explore
from turnproof.checkers.verdict import Engine, Outcome
from turnproof.machines.kernel import Row

SPEC = draw_toys.SPEC


@pytest.fixture(scope="module")
def graph() -> Graph:
    return explore(SPEC)


@pytest.fixture
def out(graph: Graph, tmp_path: Path) -> Path:
    draw.draw(SPEC, graph, tmp_path)
    return tmp_path


def test_what_was_just_drawn_is_fresh(graph: Graph, out: Path) -> None:
    (verdict,) = draw.stale(SPEC, graph, out)
    assert (verdict.outcome, verdict.engine, verdict.machine) == (Outcome.HOLDS, Engine.DIAGRAM, "download")
    assert verdict.how == "5 files compared byte for byte"


def edit(path: Path) -> None:
    path.write_text(path.read_text().replace("Fetch", "Catch", 1))


def windows_line_ends(path: Path) -> None:
    path.write_bytes(path.read_bytes().replace(b"\n", b"\r\n"))


def cut(path: Path) -> None:
    path.write_text("".join(path.read_text().splitlines(keepends=True)[:-1]))


@pytest.mark.parametrize("name", ["download.svg", "download.md", "download.html"])
@pytest.mark.parametrize(
    ("change", "said"),
    [
        (edit, "is stale: line "),
        (windows_line_ends, "is stale: its line ends differ"),
        (cut, " lines instead of "),
        (Path.unlink, "is missing"),
    ],
)
def test_a_changed_file_is_named_with_the_command_that_mends_it(
    graph: Graph, out: Path, name: str, change: Callable[[Path], None], said: str
) -> None:
    change(out / name)
    (verdict,) = draw.stale(SPEC, graph, out)
    assert verdict.outcome is Outcome.VIOLATED
    assert verdict.detail.startswith(f"{out / name} ")
    assert said in verdict.detail
    assert verdict.detail.endswith("; run `turnproof draw download` and review the difference")
    draw.draw(SPEC, graph, out)
    assert [v.outcome for v in draw.stale(SPEC, graph, out)] == [Outcome.HOLDS]


def test_a_moved_box_is_found(graph: Graph, out: Path) -> None:
    path = out / "download.layout.json"
    lines = path.read_text().splitlines(keepends=True)
    (place,) = [n for n, line in enumerate(lines) if '"idle":' in line]
    lines[place] = '   "idle": "1,1",\n'
    path.write_text("".join(lines))
    assert {Path(v.detail.split(" ")[0]).name for v in draw.stale(SPEC, graph, out)} == {"download.svg", "download.html"}


def test_a_picture_of_a_phase_that_is_gone_is_found_and_removed(graph: Graph, out: Path) -> None:
    (out / "download-gone.svg").write_text("<svg/>")
    (out / "downloads.svg").write_text("of another machine")
    (verdict,) = draw.stale(SPEC, graph, out)
    assert "download-gone.svg is not made from the table any more" in verdict.detail
    draw.draw(SPEC, graph, out)
    assert not (out / "download-gone.svg").exists()
    assert (out / "downloads.svg").exists()


def test_no_folder_at_all_is_stale(graph: Graph, tmp_path: Path) -> None:
    assert {v.outcome for v in draw.stale(SPEC, graph, tmp_path / "none")} == {Outcome.VIOLATED}


@pytest.mark.parametrize(
    "row",
    [
        Row(draw_toys.Asked, refuse="asked twice", name="Asked/otherwise"),
        Row(draw_toys.Asked, ignore="asked before | already", name="Asked/otherwise"),
        Row(draw_toys.Asked, refuse="asked before | already", because="New.", name="Asked/otherwise"),
    ],
)
def test_a_changed_row_makes_them_stale(out: Path, row: Row[draw_toys.Download, draw_toys.Effect]) -> None:
    changed = attrs.evolve(SPEC, machine=draw_toys.MACHINE.variant("download", replace={"Asked/otherwise": row}))
    found = draw.stale(changed, explore(changed), out)
    assert {v.outcome for v in found} == {Outcome.VIOLATED}
    assert any("download.md" in v.detail for v in found)
