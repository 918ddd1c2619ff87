"""The report as a person reads it: what was explored, requirement -> property -> verdict, other checks, and failures as stories."""

from __future__ import annotations

import textwrap
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

import attrs

from turnproof.checkers.report.failures import failures, topic
from turnproof.checkers.report.forgotten import forgotten
from turnproof.checkers.report.model import MachineReport, RunReport, counted, worst
from turnproof.checkers.report.paint import COLORS, PLAIN, WORDS, Paint
from turnproof.checkers.report.unnamed import unnamed_text
from turnproof.checkers.verdict import Engine, Outcome, Verdict
from turnproof.specs.language import Spec

WIDEST = 90
"""Columns a sentence may take before the next column moves."""
MANY = 30
"""Most checks of one engine that are listed one by one when all hold."""
WIDTH = 140
"""Columns of a line that is not a row of a table, where it can be broken."""
REMARKS = 4
"""Most conditions that decide nothing that are told, unless all are asked for."""
MANY_PARTS = 12
"""Parts of the meaning of a word that are told, unless all are asked for."""
FULL = 4
"""Meanings of one word that are told."""


def machine_text(report: MachineReport, paint: Paint = PLAIN, *, verbose: bool = False) -> str:
    """Everything about one machine, without a final newline."""
    parts = [
        _header(report, paint, verbose),
        _requirements(report, paint, verbose),
        _others(report, paint, verbose),
        _variants(report, paint),
        _coverage(report, paint, verbose),
        failures(report, paint, verbose=verbose),
    ]
    return "\n\n".join("\n".join(lines) for lines in map(list, parts) if lines)


def summary_text(run: RunReport, paint: Paint = PLAIN) -> str:
    """The last line: how much was checked, what came out, what was left out."""
    count = counted(run.verdicts)
    machines = f"{len(run.machines)} machine{'s' * (len(run.machines) != 1)}"
    left = sorted({engine for m in run.machines for engine in m.left_open})
    said = ", ".join(
        paint(f"{count[o]} {o.value}", COLORS[o] if count[o] else "2") for o in (Outcome.HOLDS, Outcome.VIOLATED, Outcome.UNDETERMINED)
    )
    nothing = "" if run.verdicts else "; NOTHING WAS CHECKED"
    return f"{paint.outcome(run.outcome)}: {machines}, {len(run.verdicts)} checks: {said}, in {run.seconds:.1f} s{nothing}" + (
        f"; not run: {', '.join(left)}" if left else ""
    )


# ── header ──


def _header(report: MachineReport, paint: Paint, verbose: bool) -> Iterator[str]:
    explored = "not explored"
    if report.size is not None:
        what = "representatives" if report.size.representatives else "states"
        explored = f"{report.size.states:,} {what}, {report.size.steps:,} steps, depth {report.size.depth}"
        if report.size.taken is not None:
            explored = explored.replace(" steps", f" steps ({report.size.taken:,} taken)")
    spec = report.spec
    parts = "" if isinstance(spec, Spec) else f"a system of {len(spec.system.parts)} parts: "
    yield paint(report.name, "1")
    yield f"  {parts}{report.rows} rows, {report.events} events; {explored}; {report.bounds}"
    if report.timings:
        yield "  " + ", ".join(f"{engine} {seconds:.1f} s" for engine, seconds in report.timings.items())
    if report.certificate:
        yield f"  certificate: {report.certificate}"
    yield from (paint(line, "2") for line in wrapped(unnamed_text(spec), "  "))
    if report.remarks:
        told = [*report.remarks[: len(report.remarks) if verbose else REMARKS]]
        more = [f"and {len(report.remarks) - len(told)} more, which --verbose tells"] if len(told) < len(report.remarks) else []
        about = "conditions that decide nothing in what was explored (no failure: drop them, or keep them for the reader)"
        yield from (paint(line, "2") for line in wrapped(f"{about}: {'; '.join(told + more)}", "  "))
    yield from (paint(line, "33") for sentence in forgotten(spec) for line in wrapped(f"forgotten? {sentence}", "  "))
    for why in dict.fromkeys(report.not_run.values()):
        yield "  " + paint(f"not run ({why}): {', '.join(engine for engine in report.not_run if report.not_run[engine] == why)}", "33")


# ── requirements ──


@attrs.frozen
class _Line:
    requirement: str
    sentence: str
    outcome: Outcome | None
    said: str


def _requirements(report: MachineReport, paint: Paint, verbose: bool) -> Iterator[str]:
    lines = [line for rid in report.spec.requirements for line in _lines_of(report, rid)]
    lines += [_Line("", p.name, *_judged(report.of_property(p))) for p in report.spec.properties if not p.requirements]
    if not lines:
        return
    first = max(len("requirement"), *(len(line.requirement) for line in lines))
    second = min(WIDEST, max(len(line.sentence) for line in lines))
    yield paint(f"  {'requirement':<{first}}  {'property':<{second}}  verdict", "2")
    for line in lines:
        verdict = paint.outcome(line.outcome, 6) + " " + line.said if line.outcome is not None else paint(line.said, "2")
        yield f"  {line.requirement:<{first}}  {line.sentence:<{second}}  {verdict}"
    yield from _legend((v for p in report.spec.properties for v in report.of_property(p)), verbose)


def _lines_of(report: MachineReport, rid: str) -> Iterator[_Line]:
    spec, shown = report.spec, rid
    for prop in report.properties_of(rid):
        yield _Line(shown, prop.name, *_judged(report.of_property(prop)))
        shown = ""
    for check in dict.fromkeys(v.check for v in report.other_checks() if rid in v.requirements):
        yield _Line(shown, check, *_judged([v for v in report.other_checks() if v.check == check]))
        shown = ""
    for what, place, by in (
        ("test", spec.tests.get(rid), "its verdict is pytest's"),
        ("see", spec.elsewhere.get(rid), "its verdict stands there"),
    ):
        if place is not None:
            yield _Line(shown, f"{what} {place}", None, by)
            shown = ""
    if shown:
        yield _Line(shown, "nothing checks it", Outcome.VIOLATED, "")


def _judged(verdicts: Sequence[Verdict]) -> tuple[Outcome | None, str]:
    all_one = len({v.outcome for v in verdicts}) == 1
    said = (f"{v.engine.value} {_word(v)}" + ("" if all_one else f" {WORDS[v.outcome]}") for v in verdicts)
    return worst(verdicts), ", ".join(dict.fromkeys(said)) or "not checked in this run"


def _word(verdict: Verdict) -> str:
    """``exhaustive`` of ``exhaustive (7,456 states; ...)``."""
    return verdict.how.partition(" (")[0]


def _legend(verdicts: Iterable[Verdict], verbose: bool) -> Iterator[str]:
    """What the words of the table stand for, in full, the usual meaning first."""
    meanings: dict[str, Counter[str]] = {}
    for verdict in verdicts:
        if verdict.how != _word(verdict):
            meanings.setdefault(_word(verdict), Counter())[verdict.how] += 1
    for found in meanings.values():
        for how, times in found.most_common(FULL):
            text = (how if verbose else brief(how)) + (f"  [{times} of {found.total()}]" if len(found) > 1 else "")
            yield from wrapped(text, "    ")
        if len(found) > FULL:
            yield f"    and {len(found) - FULL} more like it"


def brief(how: str) -> str:
    """``how`` with what its parts share said once, and at most :data:`MANY_PARTS` of them told."""
    parts = how.split("; ")
    made: list[str] = []
    for part in parts:
        name, colon, rest = part.partition(": ")
        before = made[-1] if made else ""
        made[-1:] = [f"{before}, {rest}"] if colon and before.startswith(f"{name}: ") and name.endswith("fairness") else [before, part]
    told = [part for part in made if part]
    if len(told) <= MANY_PARTS + 1:
        return "; ".join(told)
    return "; ".join(told[:MANY_PARTS]) + f"; and {len(told) - MANY_PARTS} more, which --verbose and --json tell)"


def wrapped(text: str, indent: str) -> list[str]:
    """``text`` broken at :data:`WIDTH`; what follows the first line is indented further. No line of no text."""
    return textwrap.wrap(
        text, WIDTH, initial_indent=indent, subsequent_indent=indent + "  ", break_long_words=False, break_on_hyphens=False
    )


# ── everything else ──


def _others(report: MachineReport, paint: Paint, verbose: bool) -> Iterator[str]:
    others = report.other_checks()
    engines = [e for e in Engine if any(v.engine is e for v in others)]
    if engines:
        yield paint("  also checked", "2")
    width = min(WIDEST, max((len(v.check) for v in others), default=0))
    shared = {} if verbose else _shared(others)
    for engine in engines:
        mine = [v for v in others if v.engine is engine]
        held = [v for v in mine if v.outcome is Outcome.HOLDS]
        if len(held) > MANY and not verbose:
            how = ", ".join(dict.fromkeys(_word(v) for v in held))
            yield f"  {engine.value:<9} {f'{len(held)} checks':<{width}}  {paint.outcome(Outcome.HOLDS, 6)} {how}; --verbose lists them"
            mine = [v for v in mine if v.outcome is not Outcome.HOLDS]
        for verdict in mine if verbose else _one_a_topic(mine):
            how = _word(verdict) if shared.get(_word(verdict)) == verdict.how else verdict.how
            yield f"  {engine.value:<9} {verdict.check:<{width}}  {paint.outcome(verdict.outcome, 6)} {how}"
    yield from (line for how in shared.values() for line in wrapped(brief(how), "    "))


def _shared(verdicts: Sequence[Verdict]) -> dict[str, str]:
    """Word -> what it stands for, where several checks say the same at length: told once, below them."""
    times = Counter(v.how for v in verdicts if v.outcome is Outcome.HOLDS and v.how != _word(v))
    return {how.partition(" (")[0]: how for how, count in reversed(times.most_common()) if count > 1}


def _one_a_topic(verdicts: Sequence[Verdict]) -> Iterator[Verdict]:
    """One line for checks that differ only in the file they are about."""
    groups: dict[tuple[str, Outcome], list[Verdict]] = {}
    for verdict in verdicts:
        groups.setdefault((topic(verdict), verdict.outcome), []).append(verdict)
    for (name, _), same in groups.items():
        yield same[0] if len(same) == 1 else attrs.evolve(same[0], check=f"{len(same)} files: {name}")


def _variants(report: MachineReport, paint: Paint) -> Iterator[str]:
    verdicts = report.of_variants()
    if not verdicts:
        return
    first, second = max(len(v.machine) for v in verdicts), min(WIDEST, max(len(v.check) for v in verdicts))
    yield paint("  variants, which must fail", "2")
    shown = ""
    for verdict in verdicts:
        name = "" if verdict.machine == shown else verdict.machine
        yield f"  {name:<{first}}  {verdict.check:<{second}}  {paint.outcome(verdict.outcome, 6)} {verdict.how}"
        shown = verdict.machine


def _coverage(report: MachineReport, paint: Paint, verbose: bool) -> Iterator[str]:
    if report.coverage is not None:
        yield paint("  covered", "2")
        lines = report.coverage.text().splitlines()[1:] if verbose else [report.coverage.summary()]
        yield from (f"  {line}".rstrip() for line in lines)


__all__ = ["machine_text", "summary_text"]
