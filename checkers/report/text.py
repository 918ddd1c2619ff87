"""The report as a person reads it: what was explored, requirement -> property -> verdict, other checks, and failures as stories."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

import attrs

from turnproof.checkers.report.model import MachineReport, RunReport, counted, harm_of, worst
from turnproof.checkers.verdict import Engine, Outcome, Story, Verdict
from turnproof.checkers.written import WrittenError, read_event, show_event
from turnproof.specs.language import Spec

COLORS = {Outcome.HOLDS: "32", Outcome.VIOLATED: "1;31", Outcome.UNDETERMINED: "1;33"}
WORDS = {Outcome.HOLDS: "holds", Outcome.VIOLATED: "VIOLATED", Outcome.UNDETERMINED: "UNDETERMINED"}
WIDEST = 90
"""Columns a sentence may take before the next column moves."""
MANY = 30
"""Most checks of one engine that are listed one by one when all hold."""
FULL = 4
"""Meanings of one word that are told."""
STORIES = 5
"""Failures told in full; the shortest first. ``verbose`` tells all."""


@attrs.frozen
class Paint:
    """Colours where the reader's terminal has them."""

    on: bool = False

    def __call__(self, text: str, code: str) -> str:
        """``text`` in the colour of an ANSI code."""
        return f"\x1b[{code}m{text}\x1b[0m" if self.on and text else text

    def outcome(self, outcome: Outcome, width: int = 0) -> str:
        """The word for an outcome, padded before it is coloured."""
        return self(WORDS[outcome].ljust(width), COLORS[outcome])


PLAIN = Paint()


def machine_text(report: MachineReport, paint: Paint = PLAIN, *, verbose: bool = False) -> str:
    """Everything about one machine, without a final newline."""
    parts = [
        _header(report, paint),
        _requirements(report, paint),
        _others(report, paint, verbose),
        _variants(report, paint),
        _failures(report, paint, verbose),
    ]
    return "\n\n".join("\n".join(lines) for lines in map(list, parts) if lines)


def summary_text(run: RunReport, paint: Paint = PLAIN) -> str:
    """The last line: how much was checked, what came out, what was left out."""
    count = counted(run.verdicts)
    machines = f"{len(run.machines)} machine{'s' * (len(run.machines) != 1)}"
    left = sorted({engine for m in run.machines for engine in m.not_run})
    said = ", ".join(
        paint(f"{count[o]} {o.value}", COLORS[o] if count[o] else "2") for o in (Outcome.HOLDS, Outcome.VIOLATED, Outcome.UNDETERMINED)
    )
    nothing = "" if run.verdicts else "; NOTHING WAS CHECKED"
    return f"{paint.outcome(run.outcome)}: {machines}, {len(run.verdicts)} checks: {said}, in {run.seconds:.1f} s{nothing}" + (
        f"; not run: {', '.join(left)}" if left else ""
    )


# ── header ──


def _header(report: MachineReport, paint: Paint) -> Iterator[str]:
    explored = "not explored"
    if report.size is not None:
        explored = f"{report.size.states:,} states, {report.size.steps:,} steps, depth {report.size.depth}"
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
    for why in dict.fromkeys(report.not_run.values()):
        yield "  " + paint(f"not run ({why}): {', '.join(engine for engine in report.not_run if report.not_run[engine] == why)}", "33")


# ── requirements ──


@attrs.frozen
class _Line:
    requirement: str
    sentence: str
    outcome: Outcome | None
    said: str


def _requirements(report: MachineReport, paint: Paint) -> Iterator[str]:
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
    yield from _legend(v for p in report.spec.properties for v in report.of_property(p))


def _lines_of(report: MachineReport, rid: str) -> Iterator[_Line]:
    spec, shown = report.spec, rid
    for prop in report.properties_of(rid):
        yield _Line(shown, prop.name, *_judged(report.of_property(prop)))
        shown = ""
    for check in dict.fromkeys(v.check for v in report.other_checks() if rid in v.requirements):
        yield _Line(shown, check, *_judged([v for v in report.other_checks() if v.check == check]))
        shown = ""
    for kind, place in (("test", spec.tests.get(rid)), ("system", spec.elsewhere.get(rid))):
        if place is not None:
            by = "its verdict is pytest's" if kind == "test" else "its verdict is that of the system"
            yield _Line(shown, f"{kind} {place}", None, by)
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


def _legend(verdicts: Iterable[Verdict]) -> Iterator[str]:
    """What the words of the table stand for, in full, the usual meaning first."""
    meanings: dict[str, Counter[str]] = {}
    for verdict in verdicts:
        if verdict.how != _word(verdict):
            meanings.setdefault(_word(verdict), Counter())[verdict.how] += 1
    for found in meanings.values():
        for how, times in found.most_common(FULL):
            yield f"    {how}" + (f"  [{times} of {found.total()}]" if len(found) > 1 else "")
        if len(found) > FULL:
            yield f"    and {len(found) - FULL} more like it"


# ── everything else ──


def _others(report: MachineReport, paint: Paint, verbose: bool) -> Iterator[str]:
    others = report.other_checks()
    engines = [e for e in Engine if any(v.engine is e for v in others)]
    if engines:
        yield paint("  also checked", "2")
    width = min(WIDEST, max((len(v.check) for v in others), default=0))
    for engine in engines:
        mine = [v for v in others if v.engine is engine]
        held = [v for v in mine if v.outcome is Outcome.HOLDS]
        if len(held) > MANY and not verbose:
            how = ", ".join(dict.fromkeys(_word(v) for v in held))
            yield f"  {engine.value:<9} {f'{len(held)} checks':<{width}}  {paint.outcome(Outcome.HOLDS, 6)} {how}; --verbose lists them"
            mine = [v for v in mine if v.outcome is not Outcome.HOLDS]
        for verdict in mine:
            yield f"  {engine.value:<9} {verdict.check:<{width}}  {paint.outcome(verdict.outcome, 6)} {verdict.how}"


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


# ── failures ──


def _failures(report: MachineReport, paint: Paint, verbose: bool) -> Iterator[str]:
    # The same sentence broken by another route stands under the same heading.
    groups: dict[tuple[Outcome, str, str], list[Verdict]] = {}
    for verdict in sorted((v for v in report.verdicts if v.outcome is not Outcome.HOLDS), key=_order):
        groups.setdefault((verdict.outcome, verdict.machine, verdict.check), []).append(verdict)
    for number, ((outcome, machine, check), verdicts) in enumerate(groups.items()):
        if number:
            yield ""
        ids = tuple(dict.fromkeys(rid for v in verdicts for rid in v.requirements))
        about = "" if machine == report.name else f"{machine}: "
        yield f"{paint.outcome(outcome)} {paint(about + check, '1')}" + (f"  [{', '.join(ids)}]" if ids else "")
        yield from _told(report, verdicts, full=verbose or number < STORIES, verbose=verbose)
    if report.counterexamples():
        yield ""
        yield f"as tests: turnproof verify {report.name} --pytest FILE"


def _order(verdict: Verdict) -> tuple[bool, bool, int]:
    """Violated before undetermined, with a story before without, the shortest story first."""
    return verdict.outcome is not Outcome.VIOLATED, verdict.story is None, verdict.story.length if verdict.story is not None else 0


def _told(report: MachineReport, verdicts: Sequence[Verdict], *, full: bool, verbose: bool) -> Iterator[str]:
    harm = harm_of(report.spec, verdicts[0].check)
    if harm and not (full and any(v.story for v in verdicts)):
        yield f"  harm: {harm}"
    told: set[tuple[str, ...]] = set()
    for verdict in verdicts:
        first, *more = verdict.detail.splitlines() or [""]
        yield f"  {verdict.engine.value}, {verdict.how}" + (f": {first}" if first else "")
        yield from ("    " + line for line in more)
        if verdict.story is None:
            continue
        if not full:
            yield f"  {_steps(verdict.story)}; --verbose tells them"
            continue
        for story in (verdict.story, *(verdict.others if verbose else ())):
            if _route(story) not in told:
                yield from ("  " + line if line else "" for line in render(story).splitlines())
                yield from _play_again(report, story)
            told.add(_route(story))
        if verdict.others and not verbose:
            yield f"  and by {len(verdict.others)} other route{'s' * (len(verdict.others) != 1)}; --verbose tells them"


def _route(story: Story) -> tuple[str, ...]:
    return tuple(step.event for step in story.steps)


def _steps(story: Story) -> str:
    return f"{story.length} step{'s' * (story.length != 1)}"


def _play_again(report: MachineReport, story: Story) -> Iterator[str]:
    if not isinstance(report.spec, Spec) or story.machine != report.name:
        return
    try:
        events = [show_event(read_event(report.spec.machine, step.code)) for step in story.steps]
    except WrittenError:
        return
    yield f"  play it: turnproof step {report.name} {' '.join(shlex.quote(e) for e in events)}"


def render(story: Story) -> str:
    """A counterexample as numbered steps."""
    from turnproof.checkers.story import render_text

    return render_text(story)


def story_text(verdict: Verdict) -> str:
    """The counterexample of a verdict that does not hold; empty if it has none."""
    return "" if verdict.story is None or verdict.outcome is Outcome.HOLDS else render(verdict.story)


__all__ = ["PLAIN", "Paint", "machine_text", "render", "story_text", "summary_text"]
