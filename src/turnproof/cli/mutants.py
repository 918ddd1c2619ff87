"""``turnproof mutants``: what small changes of a table do the properties notice?"""

from __future__ import annotations

from pathlib import Path

import click

from turnproof.checkers.written import nearest
from turnproof.cli import names
from turnproof.cli.app import SETTINGS, example
from turnproof.cli.files import Output
from turnproof.cli.misuse import Misuse, excerpt
from turnproof.cli.output import say
from turnproof.cli.progress import Shown


@example(
    "turnproof mutants reply_slot",
    "turnproof mutants reply_operation --json mutants.json",
    "turnproof mutants reply_operation --row 'RecoveryRequested/accepted' --verbose",
)
@click.command(context_settings=SETTINGS)
@click.argument("machine")
@click.option("--json", "json_", type=click.Path(path_type=Path), metavar="FILE", help="Write every mutant as JSON; - for standard output.")
@click.option("--row", metavar="NAME", help="Change this row alone.")
@click.option("--workers", type=click.IntRange(1, 64), default=2, show_default=True, help="Processes at a time.")
@click.option("-v", "--verbose", is_flag=True, help="List the equivalent ones too, and all that golden numbers alone noticed.")
def mutants(machine: str, json_: Path | None, row: str | None, workers: int, verbose: bool) -> int:
    """Change each row of a machine in every small way, and tell which changes no property notices.

    A change is killed by a property, by the golden numbers alone, is equivalent (the same answers, successors and effects on the
    whole graph), or survives: then a requirement is missing. Status 1 if one survives, or if properties alone kill less than 95 %.
    """
    spec = names.one(machine)
    known = [r.name for r in spec.machine.rows]
    if row is not None and row not in known:
        raise Misuse(f"{spec.machine.name} has no row {excerpt(row)}{nearest(row, known) or '; `turnproof explain` lists them'}")
    output = None if json_ is None else Output(json_, "--json")
    if output is not None:
        output.check()
    from turnproof.checkers.mutants import run

    with Shown() as progress:
        report = run(spec, row=row, workers=workers, progress=progress)
    if output is None or not output.to_stdout:
        say(report.text(verbose=verbose))
    if output is not None:
        output.write(report.json())
    return report.status


__all__ = ["mutants"]
