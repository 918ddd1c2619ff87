"""``turnproof verify``."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

import attrs
import click

from turnproof import __version__
from turnproof.checkers.engines import ENGINES, QUICK, STEPS, STEPS_A_ROW, Plan
from turnproof.checkers.report import (
    MachineReport,
    Paint,
    RunReport,
    itf_traces,
    json_report,
    junit_report,
    machine_text,
    sarif_report,
    summary_text,
)
from turnproof.checkers.report.locate import project_root
from turnproof.checkers.report.model import AnySpec, name_of
from turnproof.checkers.verify import Interrupted, reports
from turnproof.cli import names
from turnproof.cli.app import PROGRAM, SETTINGS, example
from turnproof.cli.files import Output, check_directory, check_outputs
from turnproof.cli.misuse import Misuse
from turnproof.cli.output import paint, say
from turnproof.cli.progress import Shown
from turnproof.cli.walks import Walking, walking

FILE = click.Path(path_type=Path)


@attrs.frozen(kw_only=True)
class Outputs:
    """Where the report goes besides standard output; None: nowhere."""

    json: Path | None
    junit: Path | None
    sarif: Path | None
    pytest: Path | None
    itf: Path | None

    def files(self) -> dict[str, Output]:
        """Option -> the file it names."""
        named = {"--json": self.json, "--junit": self.junit, "--sarif": self.sarif, "--pytest": self.pytest}
        return {option: Output(path, option) for option, path in named.items() if path is not None}

    def check(self, certificate: Path | None) -> None:
        """Raise :class:`Misuse` if one of them cannot be written, or is the file of the certificate."""
        beside = [] if certificate is None or certificate.is_dir() else [Output(certificate, "--certificate")]
        check_outputs([*self.files().values(), *beside])
        if self.itf is not None:
            check_directory(self.itf, "--itf")

    @property
    def take_stdout(self) -> bool:
        """Whether a machine-readable report goes to standard output, so that the text must go elsewhere."""
        return any(output.to_stdout for output in self.files().values())

    def write(self, run: RunReport) -> None:
        """Write every form that was asked for, from the one report. One that cannot be written keeps no other from it."""
        forms = {"--json": json_report, "--junit": junit_report, "--sarif": sarif_report, "--pytest": pytest_text}
        wrong: list[str] = []
        for option, output in self.files().items():
            try:
                output.write(forms[option](run))
            except Misuse as problem:
                wrong.append(str(problem))
        for machine in run.machines if self.itf is not None else ():
            self.write_traces(machine, wrong)
        if wrong:
            raise Misuse("; ".join(wrong))

    def write_traces(self, machine: MachineReport, wrong: list[str]) -> None:
        """Write the counterexamples of one machine as traces."""
        assert self.itf is not None
        try:
            # Traces of an earlier run under the same names would pass for those of this one.
            for old in self.itf.glob(f"{machine.name}.*.itf.json"):
                old.unlink()
            for name, text in itf_traces(machine).items():
                Output(self.itf / name, "--itf").write(text)
        except (Misuse, OSError) as problem:
            wrong.append(str(problem))


def pytest_text(run: RunReport) -> str:
    """Every counterexample as a test that can be pasted; tests of one name are numbered, or the last would hide the others."""
    from turnproof.checkers.story import render_pytest

    texts, seen = [], Counter[str]()
    for story in (story for machine in run.machines for story in machine.counterexamples()):
        text = render_pytest(story).strip()
        name = text.partition("def ")[2].partition("(")[0]
        seen[name] += 1
        texts.append(text if seen[name] == 1 else text.replace(f"def {name}(", f"def {name}_{seen[name]}(", 1))
    return "\n\n\n".join(texts) + "\n" if texts else '"""No counterexample was found."""\n'


ABOUT = "\b\nEngines:\n" + "\n".join(f"  {name:<10}{entry.about}" for name, entry in ENGINES.items())


@example(
    "turnproof verify                              every machine, every engine",
    "turnproof verify reply_operation --quick      exploration and golden numbers only",
    "turnproof verify --json report.json --sarif report.sarif",
    "turnproof verify reply_operation --engine explicit,symbolic --certificate proof.json",
    "turnproof verify reply_operation --pytest test_regression.py --itf traces/",
    "turnproof verify --json - | jq .counts",
    "turnproof verify recovery_system --without 'a person aborts' --max-memory 2G",
    before=ABOUT,
)
@click.command(context_settings=SETTINGS)
@click.argument("machines", nargs=-1, metavar="[MACHINE]...")
@click.option("--engine", "engines", multiple=True, metavar="NAME", help="Run only this engine; may be repeated, commas allowed.")
@click.option("--quick", is_flag=True, help=f"Run only {' and '.join(QUICK)}: seconds, no proof.")
@click.option("--json", "json_", type=FILE, metavar="FILE", help="Write the report as JSON; - for standard output.")
@click.option("--junit", type=FILE, metavar="FILE", help="Write the report as JUnit XML.")
@click.option("--sarif", type=FILE, metavar="FILE", help="Write the report as SARIF 2.1.0, for annotations in code review.")
@click.option("--pytest", "pytest_", type=FILE, metavar="FILE", help="Write every counterexample as a pytest that replays it.")
@click.option("--itf", type=FILE, metavar="DIR", help="Write every counterexample as an ITF trace into this directory.")
@click.option(
    "--certificate", type=FILE, metavar="FILE", help="Where the certificate of the proofs goes; a directory for several machines."
)
@click.option("--steps", type=click.IntRange(min=1), help=f"Steps of the sampled runs; without it {STEPS_A_ROW} a row, at most {STEPS:,}.")
@click.option("--seed", type=int, help="Seed of the sampled runs.")
@walking
@click.option("-v", "--verbose", is_flag=True, help="List every check, tell every counterexample.")
def verify(
    machines: Sequence[str],
    engines: Sequence[str],
    quick: bool,
    json_: Path | None,
    junit: Path | None,
    sarif: Path | None,
    pytest_: Path | None,
    itf: Path | None,
    certificate: Path | None,
    steps: int | None,
    seed: int | None,
    verbose: bool,
    walk: Walking,
) -> int:
    """Check every requirement of the machines: explore, prove, sample, compare.

    Prints requirement, property and verdict, then every failure as a story. What is UNDETERMINED is never green: exit status 3.
    """
    outputs = Outputs(json=json_, junit=junit, sarif=sarif, pytest=pytest_, itf=itf)
    chosen = names.engines(engines)
    if quick and chosen:
        raise Misuse("--quick and --engine both choose engines; keep one")
    specs = names.with_companions(names.some(machines))
    outputs.check(certificate)
    left_out = {name: "--quick" for name in ENGINES if quick and name not in QUICK}
    plans = [Plan(engines=chosen, certificate=c, steps=steps, seed=seed, left_out=left_out) for c in certificates(specs, certificate)]
    run, remarks = _run(specs, walk.plans(specs, plans), verbose=verbose, to_stderr=outputs.take_stdout)
    try:
        outputs.write(run)
    finally:
        say(summary_text(run, paint(error_stream=outputs.take_stdout)), error_stream=outputs.take_stdout)
        for remark in remarks:
            say(f"{PROGRAM}: {remark}", error_stream=True)
    return run.status


def _run(specs: Sequence[AnySpec], plans: Sequence[Plan], *, verbose: bool, to_stderr: bool) -> tuple[RunReport, list[str]]:
    """The report, and what must be said of how the run went; each part of the text is out as soon as it can be."""
    started, clock = datetime.now(UTC), time.perf_counter()
    made: list[MachineReport] = []
    remarks: list[str] = []
    with Shown() as progress:
        try:
            for one in reports(list(zip(specs, plans, strict=True)), progress=progress, catalog=names.catalog()):
                made.append(one)
                progress.clear()
                say(_text(one, paint(error_stream=to_stderr), verbose) + "\n", error_stream=to_stderr)
        except KeyboardInterrupt as stop:
            how = str(stop) if isinstance(stop, Interrupted) else f"{len(made)} of {len(specs)} reported"
            remarks.append(f"interrupted; {how}; what was not covered is undetermined")
    remarks += [
        f"lost: {one.name}: engine {engine}: {why}; every other result stands" for one in made for engine, why in one.lost.items()
    ]  # fmt: skip
    run = RunReport(
        machines=tuple(made),
        version=__version__,
        started=started.strftime("%Y-%m-%dT%H:%M:%SZ"),
        seconds=time.perf_counter() - clock,
    )
    return run, remarks


def _text(report: MachineReport, colors: Paint, verbose: bool) -> str:
    if report.untouched:
        return f"{colors(report.name, '1')}\n  interrupted before any engine had an answer"
    return machine_text(report, colors, verbose=verbose)


def certificates(specs: Sequence[AnySpec], wanted: Path | None) -> Sequence[Path | None]:
    """One path for each specification; None, outside a checkout, where none is asked for. Raises :class:`Misuse`."""
    if wanted is None:
        root = project_root()
        if root is None:
            return [None] * len(specs)
        directory = root / "build" / "certificates"
        check_directory(directory, "the directory for certificates,")
        return [directory / f"{name_of(spec)}.json" for spec in specs]
    if wanted.is_dir():
        check_directory(wanted, "--certificate")
        return [wanted / f"{name_of(spec)}.json" for spec in specs]
    if len(specs) > 1:
        raise Misuse(f"--certificate {wanted}: expected a directory that exists, for {len(specs)} machines are verified")
    Output(wanted, "--certificate").check()
    return [wanted]


__all__ = ["certificates", "pytest_text", "verify"]
