"""Pictures and tables of a machine, generated, and the check that the committed ones are those of the table.

``draw`` writes, for each machine, into one folder:

* ``NAME.svg``: the machine, or an overview of one that is too big for one picture;
* ``NAME-PHASE.svg``: of a big one, everything that can happen in that phase; ``NAME-timers.svg``: its timers;
* ``NAME.md``: rows, vocabulary and timers as GitHub renders them; ``NAME.html``: the same with the pictures, in one file;
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
from turnproof.checkers.draw.view import Disagreement, View, disagreements
from turnproof.checkers.graph import Graph
from turnproof.checkers.verdict import Engine, Outcome, Verdict
from turnproof.specs.language import Spec

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


def draw(spec: Spec, graph: Graph, out: Path) -> list[Path]:
    """Write every picture and table of a machine into ``out``, remove those it no longer has, and name what was written."""
    out.mkdir(parents=True, exist_ok=True)
    files = outputs(graph, out)
    for name in extra(spec, files, out):
        (out / name).unlink()
    for name, text in files.items():
        (out / name).write_bytes(text.encode())
    return [out / name for name in files]


def extra(spec: Spec, files: Mapping[str, str], out: Path) -> list[str]:
    """Files in ``out`` that are named as if they were of this machine and should not be there."""
    name = spec.machine.name
    found = [path.name for path in out.iterdir() if path.is_file()] if out.is_dir() else []
    return sorted(f for f in found if f.startswith((f"{name}.", f"{name}-")) and f not in files)


def stale(spec: Spec, graph: Graph, out: Path) -> list[Verdict]:
    """Compare ``out`` byte for byte with what ``draw`` would write: one verdict a file that differs, or one that all is well."""
    files = outputs(graph, out)
    wrong = [verdict for name, text in files.items() for verdict in _compare(spec, out / name, text.encode())]
    wrong += [_wrong(spec, out / name, "is not made from the table any more") for name in extra(spec, files, out)]
    if wrong:
        return wrong
    how = f"{len(files)} files compared byte for byte"
    return [Verdict(machine=spec.machine.name, check=CHECK, engine=Engine.DIAGRAM, outcome=Outcome.HOLDS, how=how)]


def _compare(spec: Spec, path: Path, wanted: bytes) -> list[Verdict]:
    try:
        found = path.read_bytes()
    except FileNotFoundError:
        return [_wrong(spec, path, "is missing")]
    return [] if found == wanted else [_wrong(spec, path, f"is stale: {_difference(found, wanted)}")]


def _difference(found: bytes, wanted: bytes) -> str:
    """The first line that differs."""
    have, want = found.splitlines(), wanted.splitlines()
    for number, (left, right) in enumerate(zip(have, want, strict=False), 1):
        if left != right:
            return f"line {number} differs"
    return f"{len(have)} lines instead of {len(want)}" if len(have) != len(want) else "its line ends differ"


def _wrong(spec: Spec, path: Path, what: str) -> Verdict:
    return Verdict(
        machine=spec.machine.name,
        check=f"{path.name}: {CHECK}",
        engine=Engine.DIAGRAM,
        outcome=Outcome.VIOLATED,
        how="compared byte for byte",
        detail=f"{path} {what}; run `turnproof draw {spec.machine.name}` and review the difference",
    )


__all__ = ["Disagreement", "View", "disagreements", "draw", "explain", "markdown", "outputs", "stale"]
