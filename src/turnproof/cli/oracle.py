"""``turnproof oracle``: second opinions of model checkers that are not ours."""

from __future__ import annotations

import time
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

import click

from turnproof import __version__
from turnproof.checkers.report import MachineReport, RunReport, json_report
from turnproof.checkers.report.locate import shown_path
from turnproof.checkers.report.model import AnySpec, name_of
from turnproof.checkers.written import excerpt, nearest, plain
from turnproof.cli import names
from turnproof.cli.app import SETTINGS, example
from turnproof.cli.files import Output, check_directory
from turnproof.cli.misuse import Misuse
from turnproof.cli.output import paint, say
from turnproof.cli.progress import Shown
from turnproof.cli.records import verdicts_text

FILE = click.Path(path_type=Path)


@example(
    "turnproof oracle                                 every system and machine, every oracle that is installed",
    "turnproof oracle reply_registry --oracle spin,rumur",
    "turnproof oracle peterson --write models/        peterson.pml, peterson.m, peterson.tla",
)
@click.command(context_settings=SETTINGS)
@click.argument("systems", nargs=-1, metavar="[SYSTEM]...")
@click.option("--oracle", "oracles", multiple=True, metavar="NAME", help="spin, rumur or tlc; may be repeated, commas allowed.")
@click.option("--write", "write_", type=FILE, metavar="DIR", help="Only write what the oracles would read, into this directory.")
@click.option("--json", "json_", type=FILE, metavar="FILE", help="Write the verdicts as JSON; - for standard output.")
def oracle(systems: Sequence[str], oracles: Sequence[str], write_: Path | None, json_: Path | None) -> int:
    """Write a system for SPIN, Murphi (Rumur) and TLA+ (TLC), run them, and compare states and verdicts with ours.

    A single machine is compared as a system of one part. An oracle that is not installed is named; asked for by name, it leaves the
    comparison UNDETERMINED.
    """
    chosen, specs = _oracles(oracles), _subjects(systems)
    if write_ is not None:
        if json_ is not None:
            raise Misuse("--write runs no oracle, so there is nothing for --json; keep one")
        return _write(specs, chosen, write_)
    output = None if json_ is None else Output(json_, "--json")
    if output is not None:
        output.check()
    run = _compare(specs, chosen, to_stderr=output is not None and output.to_stdout)
    if output is not None:
        output.write(json_report(run))
    return run.status


def _oracles(given: Sequence[str]) -> tuple[str, ...]:
    from turnproof.checkers.oracles import SUFFIX

    single = [part.strip() for name in given for part in name.split(",") if part.strip()]
    for name in single:
        if name not in SUFFIX:
            raise Misuse(f"no oracle {excerpt(name)}{nearest(name, SUFFIX) or '; there are: ' + ', '.join(SUFFIX)}")
    if given and not single:
        raise Misuse(f"--oracle needs a name: {', '.join(SUFFIX)}")
    return tuple(dict.fromkeys(single))


def _subjects(given: Sequence[str]) -> list[AnySpec]:
    from turnproof.checkers.oracles.subjects import classics

    known = {**classics(), **names.catalog()}
    found: dict[str, AnySpec] = {}
    for name in given or known:
        match = next((k for k in known if plain(k) == plain(name)), None)
        if match is None:
            raise Misuse(f"no system {excerpt(name)}{nearest(name, known) or '; there are: ' + ', '.join(known)}")
        found[match] = known[match]
    return list(found.values())


def _write(specs: Sequence[AnySpec], oracles: Sequence[str], directory: Path) -> int:
    from turnproof.checkers.oracles import SUFFIX, write

    check_directory(directory, "--write")
    for spec in specs:
        for name in oracles or SUFFIX:
            path = directory / f"{name_of(spec)}.{SUFFIX[name]}"
            Output(path, "--write").write(write(spec, name))
            say(f"wrote {shown_path(path)}")
    return 0


def _compare(specs: Sequence[AnySpec], oracles: Sequence[str], *, to_stderr: bool) -> RunReport:
    from turnproof.checkers.oracles import absent, compare

    if not oracles:
        for sentence in absent():
            say(f"WARNING: {sentence}", error_stream=True)
    started, clock = datetime.now(UTC), time.perf_counter()
    made: list[MachineReport] = []
    with Shown() as progress:
        for spec in specs:
            began = time.perf_counter()
            verdicts = compare(spec, oracles=oracles or None, progress=progress)
            made.append(MachineReport(spec=spec, verdicts=tuple(verdicts), seconds=time.perf_counter() - began))
            progress.clear()
            say(f"{name_of(spec)}\n{verdicts_text(verdicts, paint(error_stream=to_stderr))}\n", error_stream=to_stderr)
    return RunReport(
        machines=tuple(made), version=__version__, started=started.strftime("%Y-%m-%dT%H:%M:%SZ"), seconds=time.perf_counter() - clock
    )


__all__ = ["oracle"]
