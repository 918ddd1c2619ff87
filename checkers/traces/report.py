"""What a replay found, as values; and the same as text and as JSON. Both forms are functions of :class:`ReplayReport` alone."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import attrs

from turnproof.checkers.verdict import Engine, Outcome, Verdict

SHOWN = 12
"""Names of a long list that the text shows; JSON has them all."""


@attrs.frozen(kw_only=True)
class Fit:
    """How well one design explains a recording."""

    design: str
    sequences: int
    """Sequences it agrees with at every call."""
    calls: int
    """Calls it agrees with, up to its first difference in each sequence."""


@attrs.frozen(kw_only=True)
class Told:
    """One call or line of an example."""

    number: int
    text: str
    changes: str = ""


@attrs.frozen(kw_only=True)
class Difference:
    """What a program does and the target forbids: one entry for each set of requirements."""

    requirements: tuple[str, ...]
    sentences: tuple[str, ...]
    """The properties that broke."""
    harm: str
    sequences: int
    calls: int
    program: str
    """What the program did, in the example."""
    target: str
    """What it should have done."""
    where: str
    story: tuple[Told, ...]
    """The example, up to the call that differs; calls without effect left out."""


@attrs.frozen(kw_only=True)
class Divergence:
    """A line, or a call, that the machine cannot explain."""

    place: str
    said: str
    """The line, or the call and what was seen."""
    objections: tuple[str, ...] = ()
    """Why no possible state agrees."""
    states: tuple[str, ...] = ()
    """The last states that agreed with everything before."""
    possible: tuple[str, ...] = ()
    """What would have agreed."""
    repair: str = ""
    """The smallest change of the log that makes it agree."""
    story: tuple[Told, ...] = ()
    """The shortest part of the log that still diverges here."""
    log: tuple[str, ...] = ()
    """The same part as trace lines, counted anew, to be saved and replayed."""
    promises: tuple[str, ...] = ()
    """Sentences that would not hold if it had happened as the line says, whatever its effects were, with their requirements."""
    requirements: tuple[str, ...] = ()
    """The requirements of those."""


@attrs.frozen(kw_only=True)
class Broken:
    """A promise that was broken while the log followed the machine."""

    sentence: str
    requirements: tuple[str, ...]
    harm: str
    times: int
    place: str
    key: str
    said: str
    """The first line that broke it."""


@attrs.frozen(kw_only=True)
class ReplayReport:
    """The result of one replay."""

    machine: str
    design: str
    """The machine or variant that was followed."""
    source: str
    """``trace lines``, or the name of a source."""
    files: tuple[str, ...]
    counts: Mapping[str, int]
    """What was read, judged and passed over."""
    verdicts: tuple[Verdict, ...]
    fits: tuple[Fit, ...] = ()
    differences: tuple[Difference, ...] = ()
    divergences: tuple[Divergence, ...] = ()
    broken: tuple[Broken, ...] = ()
    unknown: Mapping[str, int] = attrs.field(factory=dict)
    """Events or calls that nobody knows -> how often."""
    notes: tuple[str, ...] = ()
    rows: int = 0
    """Rows of the design."""
    unused_rows: tuple[str, ...] = ()
    unused_calls: tuple[str, ...] = ()
    units: tuple[str, str] = ("sequence", "call")
    """What a recording consists of, and what a sequence of it does."""
    seconds: float = 0.0

    def text(self) -> str:
        """For a person."""
        return render_text(self)

    def json(self) -> dict[str, Any]:
        """For a program."""
        return to_json(self)


def to_json(report: ReplayReport) -> dict[str, Any]:
    """Everything, ready for ``json.dumps``."""

    def plain(_: object, __: object, value: object) -> object:
        return value.value if isinstance(value, Outcome) or hasattr(value, "value") else value

    made = attrs.asdict(report, value_serializer=plain)
    made["version"] = 1
    return made


def render_text(report: ReplayReport) -> str:
    """A report to read: what was read, what was found, what the verdict is."""
    return "\n".join(_lines(report)) + "\n"


def requirements_verdict(machine: str, design: str, differences: Sequence[Difference], of: str) -> Iterator[Verdict]:
    """That the program breaks requirements, although it behaves like a known design. Nothing if it breaks none.

    Whoever names the design (``--variant``) asks whether the program is that one, and is not told this; whoever names none asks whether it
    is right.
    """
    wrong = [difference for difference in differences if difference.requirements]
    if not wrong:
        return
    ids = tuple(dict.fromkeys(rid for difference in wrong for rid in difference.requirements))
    first = wrong[0]
    told = f"{first.story[-1].text}: {first.program}; required: {first.target}" if first.story else first.program
    yield Verdict(
        machine=machine,
        check=f"the program does what {machine} requires",
        engine=Engine.TRACES,
        outcome=Outcome.VIOLATED,
        how=f"{sum(difference.calls for difference in wrong):,} of {of} must not be",
        detail=f"for example {first.where}, {told}. To ask only whether it is the known design: --variant {design}",
        requirements=ids,
    )


def _lines(report: ReplayReport) -> Iterator[str]:
    yield f"{report.machine}: {', '.join(report.files)} ({report.source})"
    yield "  " + ", ".join(_count(count, name) for name, count in report.counts.items())
    if report.fits:
        yield "fits:"
        width = max(len(fit.design) for fit in report.fits)
        for fit in report.fits:
            yield f"  {fit.design:<{width}}  {fit.sequences:>7,} {report.units[0]}s, {fit.calls:>9,} {report.units[1]}s{_mark(report, fit)}"
    if report.differences:
        yield ""
        yield f"what the program does and {report.machine} forbids:"
        for difference in report.differences:
            yield from _difference(difference, report.units)
    for divergence in report.divergences:
        yield ""
        yield from _divergence(divergence)
    for broken in report.broken:
        yield from _broken(broken)
    if report.unknown:
        yield "not known: " + _few([f"{name} ({count:,})" for name, count in report.unknown.items()])
    if report.unused_calls:
        yield f"calls never made: {_few(report.unused_calls)}"
    if report.rows:
        used = report.rows - len(report.unused_rows)
        yield f"rows used: {used} of {report.rows}" + (f"; never: {_few(report.unused_rows)}" if report.unused_rows else "")
    yield from (f"note: {note}" for note in report.notes)
    yield ""
    yield from (_verdict(verdict) for verdict in report.verdicts)


def _count(count: int, name: str) -> str:
    first, _, rest = name.partition(" ")
    return f"{count:,} {first.removesuffix('s') if count == 1 else first}{' ' * bool(rest)}{rest}"


def _mark(report: ReplayReport, fit: Fit) -> str:
    """What the arrow behind a design says: the program is that one, or it was asked to be, or is nearest to it."""
    if fit.design == report.design:
        if report.verdicts[0].outcome is Outcome.HOLDS:
            return "  <- behaves like this"
        return "  <- asked for, and does not fit" if report.verdicts[0].outcome is Outcome.VIOLATED else "  <- as far as can be judged"
    best = max(report.fits, key=lambda other: (other.sequences, other.calls))
    return "  <- fits best" if fit is best and report.verdicts[0].outcome is Outcome.VIOLATED else ""


def _difference(difference: Difference, units: tuple[str, str]) -> Iterator[str]:
    yield ""
    yield f"  {', '.join(difference.requirements) or 'no requirement names it'}: {'; '.join(difference.sentences)}"
    if difference.harm:
        yield f"    harm: {difference.harm}"
    yield f"    {counted(difference.calls, units[1])} in {counted(difference.sequences, units[0])}; for example {difference.where}:"
    yield from _story(difference.story)
    yield f"      the program: {difference.program}"
    yield f"      required:    {difference.target}"


def _divergence(divergence: Divergence) -> Iterator[str]:
    yield f"{divergence.place}: {divergence.said}"
    yield from (f"  {objection}" for objection in divergence.objections)
    yield from (f"  as the line has it, it breaks {promise}" for promise in divergence.promises[:SHOWN])
    yield from (f"  last consistent state: {state}" for state in divergence.states)
    if divergence.possible:
        yield f"  possible there: {_few(divergence.possible)}"
    if divergence.repair:
        yield f"  nearest repair: {divergence.repair}"
    if divergence.story:
        yield "  shortest part of the log that diverges so:"
        yield from _story(divergence.story)


def _story(story: tuple[Told, ...]) -> Iterator[str]:
    width = max((len(told.text) for told in story), default=0)
    for told in story:
        yield f"      {told.number:>4}. {told.text:<{width}}  {told.changes}".rstrip()


def _broken(broken: Broken) -> Iterator[str]:
    ids = f" ({', '.join(broken.requirements)})" if broken.requirements else ""
    times = "" if broken.times == 1 else f", {broken.times:,} times in all"
    yield f'{broken.place}: {broken.said} broke "{broken.sentence}"{ids}{times}' + (f": {broken.harm}" if broken.harm else "")


def _verdict(verdict: Verdict) -> str:
    ids = f" ({', '.join(verdict.requirements)})" if verdict.requirements else ""
    return f"{verdict.outcome.name} {verdict.check}{ids}: {verdict.how}" + (f"; {verdict.detail}" if verdict.detail else "")


def _few(names: tuple[str, ...] | list[str]) -> str:
    more = len(names) - SHOWN
    return ", ".join(names[:SHOWN]) + (f" and {more:,} more" if more > 0 else "")


def counted(count: int, what: str) -> str:
    """``1 line``, ``2,000 lines``."""
    return f"{count:,} {what}" if count == 1 else f"{count:,} {what}s"


__all__ = ["Broken", "Difference", "Divergence", "Fit", "ReplayReport", "Told", "counted", "render_text", "requirements_verdict", "to_json"]
