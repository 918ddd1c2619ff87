"""Pictures and tables of a machine, generated, and the check that the committed ones are those of the table.

``draw`` writes, for each machine, into one folder:

* ``NAME.svg``: the machine, or an overview of one that is too big for one picture;
* ``NAME-PHASE.svg``: of a big one, everything that can happen in that phase; ``NAME-timers.svg``: its timers;
* ``NAME.md``: rows, vocabulary and timers as GitHub renders them; ``NAME.html``: the same with the pictures, in one file;
* of a system ``NAME.svg``, its parts and what they say to each other, and ``NAME.md``, its wiring as tables;
* ``NAME.layout.json``: where the boxes stand, so that a picture does not depend on the Graphviz of the machine that draws it.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from turnproof.checkers.draw.html_page import page
from turnproof.checkers.draw.in_words import explain
from turnproof.checkers.draw.layout import Layouts
from turnproof.checkers.draw.markdown_page import markdown
from turnproof.checkers.draw.pictures import scenes
from turnproof.checkers.draw.reach import reach
from turnproof.checkers.draw.svg import svg
from turnproof.checkers.draw.system_page import system_markdown
from turnproof.checkers.draw.system_scene import system_scene
from turnproof.checkers.draw.view import Disagreement, View, disagreements
from turnproof.checkers.graph import Graph
from turnproof.checkers.verdict import Engine, Outcome, Verdict
from turnproof.specs.language import Spec
from turnproof.specs.system import SystemSpec

CHECK = "the committed pictures and tables are those of the table"


def outputs(graph: Graph, out: Path) -> Mapping[str, str]:
    """File name -> what should stand in it. A layout that ``out`` holds is used again where the picture did not change."""
    machine = graph.machine
    layouts = Layouts(out / f"{machine.name}.layout.json")
    drawn = [layouts.of(scene) for scene in scenes(reach(graph))]
    files = {f"{scene.name}.svg": svg(scene, layout) for scene, layout in drawn}
    files[f"{machine.name}.md"] = markdown(machine, [scene for scene, _ in drawn])
    files[f"{machine.name}.html"] = page(machine, [(scene, svg(scene, layout, link="#row-")) for scene, layout in drawn])
    files[f"{machine.name}.layout.json"] = layouts.text()
    return files


def system_outputs(spec: SystemSpec, out: Path) -> Mapping[str, str]:
    """As :func:`outputs`, for a system: its picture and its page."""
    name = spec.system.name
    layouts = Layouts(out / f"{name}.layout.json")
    scene, layout = layouts.of(system_scene(spec.system))
    return {f"{name}.svg": svg(scene, layout), f"{name}.md": system_markdown(spec, scene), f"{name}.layout.json": layouts.text()}


def draw(spec: Spec, graph: Graph, out: Path) -> list[Path]:
    """Write every picture and table of a machine into ``out``, remove those it no longer has, and name what was written."""
    return _write(spec.machine.name, outputs(graph, out), out)


def draw_system(spec: SystemSpec, out: Path) -> list[Path]:
    """As :func:`draw`, for a system."""
    return _write(spec.system.name, system_outputs(spec, out), out)


def _write(name: str, files: Mapping[str, str], out: Path) -> list[Path]:
    out.mkdir(parents=True, exist_ok=True)
    for old in extra(name, files, out):
        (out / old).unlink()
    for file, text in files.items():
        (out / file).write_bytes(text.encode())
    return [out / file for file in files]


def extra(name: str, files: Mapping[str, str], out: Path) -> list[str]:
    """Files in ``out`` that are named as if they were of this machine and should not be there."""
    found = [path.name for path in out.iterdir() if path.is_file()] if out.is_dir() else []
    return sorted(f for f in found if f.startswith((f"{name}.", f"{name}-")) and f not in files)


def stale(spec: Spec, graph: Graph, out: Path) -> list[Verdict]:
    """Compare ``out`` byte for byte with what ``draw`` would write: one verdict a file that differs, or one that all is well."""
    return _stale(spec.machine.name, outputs(graph, out), out)


def stale_system(spec: SystemSpec, out: Path) -> list[Verdict]:
    """As :func:`stale`, for a system."""
    return _stale(spec.system.name, system_outputs(spec, out), out)


def _stale(name: str, files: Mapping[str, str], out: Path) -> list[Verdict]:
    wrong = [verdict for file, text in files.items() for verdict in _compare(name, out / file, text.encode())]
    wrong += [_wrong(name, out / file, "is not made from the table any more") for file in extra(name, files, out)]
    if wrong:
        return wrong
    how = f"{len(files)} files compared byte for byte"
    return [Verdict(machine=name, check=CHECK, engine=Engine.DIAGRAM, outcome=Outcome.HOLDS, how=how)]


def _compare(name: str, path: Path, wanted: bytes) -> list[Verdict]:
    try:
        found = path.read_bytes()
    except FileNotFoundError:
        return [_wrong(name, path, "is missing")]
    return [] if found == wanted else [_wrong(name, path, f"is stale: {_difference(found, wanted)}")]


def _difference(found: bytes, wanted: bytes) -> str:
    """The first line that differs."""
    have, want = found.splitlines(), wanted.splitlines()
    for number, (left, right) in enumerate(zip(have, want, strict=False), 1):
        if left != right:
            return f"line {number} differs"
    return f"{len(have)} lines instead of {len(want)}" if len(have) != len(want) else "its line ends differ"


def _wrong(name: str, path: Path, what: str) -> Verdict:
    return Verdict(
        machine=name,
        check=f"{path.name}: {CHECK}",
        engine=Engine.DIAGRAM,
        outcome=Outcome.VIOLATED,
        how="compared byte for byte",
        detail=f"{path} {what}; run `turnproof draw {name}` and review the difference",
    )


__all__ = ["Disagreement", "View", "disagreements", "draw", "draw_system", "explain", "markdown", "outputs", "stale", "stale_system"]
