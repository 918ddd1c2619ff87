"""``turnproof draw`` and ``golden``: generated files that are committed, and whether they are stale."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import click

from turnproof.checkers.engines import diagrams_path, manifest_path
from turnproof.checkers.report.locate import shown_path
from turnproof.checkers.report.model import AnySpec
from turnproof.checkers.verdict import Verdict, exit_status
from turnproof.cli import names
from turnproof.cli.app import SETTINGS, example
from turnproof.cli.files import check_directory
from turnproof.cli.misuse import Misuse
from turnproof.cli.output import paint, say
from turnproof.cli.progress import Shown
from turnproof.cli.records import verdicts_text
from turnproof.machines.kernel import TableError
from turnproof.specs.system import SystemSpec


@example("turnproof draw", "turnproof draw reply_operation --out pictures", "turnproof draw --check")
@click.command(context_settings=SETTINGS)
@click.argument("machines", nargs=-1, metavar="[MACHINE]...")
@click.option("--out", type=click.Path(path_type=Path), metavar="DIR", help="Where the files go; diagrams/ of the checkout if left out.")
@click.option("--check", is_flag=True, help="Write nothing; fail if a file is stale or missing.")
def draw(machines: Sequence[str], out: Path | None, check: bool) -> int:
    """Draw each machine, and each system of machines, as SVG and write its table as Markdown."""
    specs = names.some(machines)
    folder = out or diagrams_path() or Path("diagrams")
    if not check:
        check_directory(folder, "--out")
    elif not folder.is_dir():
        raise Misuse(f"--out {folder}: expected a directory with diagrams to check")
    verdicts: list[Verdict] = []
    for spec in specs:
        paths, found = _drawn(spec, folder, check)
        verdicts += found
        for path in paths:
            say(f"wrote {shown_path(path)}")
    if check:
        say(verdicts_text(verdicts, paint()))
        return exit_status(verdicts) if verdicts else 3
    return 0


def _drawn(spec: AnySpec, folder: Path, check: bool) -> tuple[list[Path], list[Verdict]]:
    """What was written, or, to ``check``, what differs."""
    from turnproof.checkers import draw as engine
    from turnproof.checkers.graph import explore

    if isinstance(spec, SystemSpec):
        return ([], engine.stale_system(spec, folder)) if check else (engine.draw_system(spec, folder), [])
    with Shown() as progress:
        graph = explore(spec, progress=progress)
        return ([], engine.stale(spec, graph, folder)) if check else (engine.draw(spec, graph, folder), [])


@example("turnproof golden", "turnproof golden --update", "turnproof golden reply_operation --update")
@click.command(context_settings=SETTINGS)
@click.argument("machines", nargs=-1, metavar="[MACHINE]...")
@click.option("--update", is_flag=True, help="Write the numbers again, for review as a diff.")
def golden(machines: Sequence[str], update: bool) -> int:
    """Compare states, transitions and depth of each exploration with the manifest, or write them there."""
    specs = names.some(machines)
    manifest = manifest_path()
    if update:
        check_directory(manifest.parent, "the directory of the manifest,")
    verdicts = [verdict for spec in specs for verdict in _counted(spec, manifest, update)]
    if update:
        say(f"wrote {shown_path(manifest)}")
        return 0
    say(verdicts_text(verdicts, paint()))
    return exit_status(verdicts) if verdicts else 3


def _counted(spec: AnySpec, manifest: Path, update: bool) -> list[Verdict]:
    """The verdicts on the numbers of one specification; none where they were written instead."""
    from turnproof.checkers import golden as engine

    if isinstance(spec, SystemSpec):
        from turnproof.checkers.network.explicit import explore as walk

        with Shown() as progress:
            walked = walk(spec, properties=engine.numbered(spec), progress=progress)
        if not update:
            return engine.check_system_golden(spec, walked, manifest)
        try:
            engine.update_system_golden(spec, walked, manifest)
        except TableError as problem:
            raise Misuse(str(problem)) from None
        return []
    from turnproof.checkers.graph import explore

    with Shown() as progress:
        graph = explore(spec, progress=progress)
    if not update:
        return engine.check_golden(spec, graph, manifest)
    engine.update_golden(spec, graph, manifest)
    return []


__all__ = ["draw", "golden"]
