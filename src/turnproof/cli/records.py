"""``turnproof replay`` and ``recheck``: files that somebody else may have written."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import click

from turnproof.checkers.report import Paint
from turnproof.checkers.report.failures import story_text
from turnproof.checkers.report.paint import COLORS
from turnproof.checkers.verdict import Outcome, Verdict, exit_status
from turnproof.cli import names
from turnproof.cli.app import SETTINGS, example
from turnproof.cli.files import Output, readable, spooled
from turnproof.cli.misuse import Misuse
from turnproof.cli.output import paint, say
from turnproof.cli.progress import Shown

FILE = click.Path(path_type=Path)
LOG = "a log (JSON lines)"


@example(
    "turnproof replay reply_operation run.jsonl",
    "turnproof replay reply_operation run.jsonl.1 run.jsonl --allow lost --json result.json",
    "journalctl -u gateway -o cat | turnproof replay reply_operation -",
    "turnproof replay reply_operation recording.jsonl.gz --from openclaw --variant target",
)
@click.command(context_settings=SETTINGS)
@click.argument("machine")
@click.argument("files", nargs=-1, required=True, type=FILE, metavar="FILE...")
@click.option("--from", "source", metavar="SOURCE", help="What wrote the file; found out by looking if left out.")
@click.option(
    "--variant", metavar="NAME", help="The design to follow; if left out, the machine for a log, the best-fitting one for a recording."
)
@click.option("--allow", multiple=True, metavar="WHAT", help="What the log may have suffered: lost, doubled, reordered or unknown lines.")
@click.option("--unobserved", multiple=True, metavar="EVENT", help="An event that happens without a line; may be repeated.")
@click.option("--json", "json_", type=FILE, metavar="FILE", help="Write the result as JSON; - for standard output.")
def replay(
    machine: str,
    files: Sequence[Path],
    source: str | None,
    variant: str | None,
    allow: Sequence[str],
    unobserved: Sequence[str],
    json_: Path | None,
) -> int:
    """Judge a recorded log, plain or gzip: does the machine do what the log says, and where do they part first?

    Several files are one rotated log; - is standard input, plain or gzip.
    Of a recording that no --variant is named for, two things are said: which
    design it behaves like, and whether it does what the machine requires.

    Exit status: 0 it follows and keeps every promise, 1 it does not, or nothing
    matched, 2 it is no log, 3 as far as it could be judged.
    """
    spec = names.one(machine)
    events = [names.event_name(spec, name) for name in unobserved]
    output = None if json_ is None else Output(json_, "--json")
    if output is not None:
        output.check()
    with spooled(files, LOG) as inputs:
        try:
            for file in inputs.paths:
                readable(file, LOG, packed=True)
            from turnproof.checkers import traces

            with Shown() as progress:
                report = traces.replay(
                    spec, inputs.paths, source=source, variant=variant, allow=allow, unobserved=events, progress=progress
                )
        except Misuse as problem:
            raise Misuse(inputs.shown(str(problem))) from problem
        except (ValueError, KeyError, OSError, EOFError) as problem:
            raise Misuse(inputs.shown(_one_line(inputs.paths[0], problem))) from problem
        if output is None or not output.to_stdout:
            say(inputs.shown(report.text().rstrip("\n")))
        if output is not None:
            output.write(inputs.shown(json.dumps(report.json(), indent=1, ensure_ascii=False)) + "\n")
        return exit_status(report.verdicts) if report.verdicts else 3


@example("turnproof recheck build/certificates/reply_operation.json")
@click.command(context_settings=SETTINGS)
@click.argument("file", type=FILE)
def recheck(file: Path) -> int:
    """Check a certificate again, with a fresh z3 and with cvc5; it trusts nothing but the file."""
    readable(file, "a certificate (JSON)", packed=False)
    from turnproof.checkers import smt

    try:
        with Shown() as progress:
            verdicts = smt.recheck(file, progress=progress)
    except (ValueError, KeyError, OSError, EOFError) as problem:
        raise Misuse(_one_line(file, problem)) from problem
    say(verdicts_text(verdicts, paint()))
    return exit_status(verdicts) if verdicts else 3


def verdicts_text(verdicts: Sequence[Verdict], paint: Paint) -> str:
    """Verdicts one a line, those that hold last counted."""
    lines = []
    several = len({verdict.machine for verdict in verdicts}) > 1
    for verdict in verdicts:
        about = f"{verdict.machine}: " if several else ""
        detail = f": {verdict.detail}" if verdict.detail else ""
        lines.append(f"{paint.outcome(verdict.outcome, 6)} {about}{verdict.check}  {verdict.how}{detail}")
        lines += ["  " + line for line in story_text(verdict).splitlines()]
    held = sum(v.outcome is Outcome.HOLDS for v in verdicts)
    color = COLORS[Outcome.HOLDS if verdicts and held == len(verdicts) else Outcome.VIOLATED]
    return "\n".join((*lines, paint(f"{held} of {len(verdicts)} checks hold", color)))


def _one_line(file: Path, problem: Exception) -> str:
    """The message of an engine. Its own kinds of ``ValueError`` name their place; whatever else got out is about the file."""
    text = str(problem.args[0]) if isinstance(problem, KeyError) and problem.args else str(problem)
    text = " ".join(text.split()) or type(problem).__name__
    own = isinstance(problem, ValueError) and type(problem) is not ValueError
    return text if own or str(file) in text else f"{file}: {text}"


__all__ = ["recheck", "replay", "verdicts_text"]
