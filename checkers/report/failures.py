"""What does not hold, told so that a person can act on it: the sentence, who says so and why, and the shortest run that shows it."""

from __future__ import annotations

import shlex
from collections.abc import Iterator

from turnproof.checkers.report.model import MachineReport, harm_of
from turnproof.checkers.report.paint import Paint
from turnproof.checkers.report.requirement import sentence_of
from turnproof.checkers.verdict import Engine, Outcome, Story, Verdict
from turnproof.checkers.written import WrittenError, read_event, show_event
from turnproof.specs.language import Spec

STORIES = 5
"""Runs told in full; the shortest first. ``verbose`` tells all."""
CONSEQUENCES = (Engine.GOLDEN, Engine.DIAGRAM)
"""Engines that compare with committed files: they differ whenever the table does, so they come last."""


def failures(report: MachineReport, paint: Paint, *, verbose: bool) -> Iterator[str]:
    """The lines about everything that does not hold; none if all holds."""
    yield from _Teller(report, paint, verbose).lines()


def topic(verdict: Verdict) -> str:
    """What a verdict is about. Verdicts about a generated file put its name before the sentence they share."""
    name, colon, sentence = verdict.check.partition(": ")
    return sentence if colon and verdict.engine in CONSEQUENCES and name else verdict.check


def render(story: Story) -> str:
    """A counterexample as numbered steps."""
    from turnproof.checkers.story import render_text

    return render_text(story)


def story_text(verdict: Verdict) -> str:
    """The counterexample of a verdict that does not hold; empty if it has none."""
    return "" if verdict.story is None or verdict.outcome is Outcome.HOLDS else render(verdict.story)


def _order(verdict: Verdict) -> tuple[bool, bool, bool, int]:
    """Violated before undetermined, causes before consequences, with a story before without, the shortest story first."""
    length = verdict.story.length if verdict.story is not None else 0
    return verdict.outcome is not Outcome.VIOLATED, verdict.engine in CONSEQUENCES, verdict.story is None, length


class _Teller:
    """Tells the failures of one report, each run once."""

    def __init__(self, report: MachineReport, paint: Paint, verbose: bool) -> None:
        self.report, self.paint, self.verbose = report, paint, verbose
        self.told: dict[tuple[str, ...], str] = {}

    def lines(self) -> Iterator[str]:
        """Every failure under the sentence that broke."""
        groups: dict[tuple[Outcome, str, str], list[Verdict]] = {}
        for verdict in sorted((v for v in self.report.verdicts if v.outcome is not Outcome.HOLDS), key=_order):
            groups.setdefault((verdict.outcome, verdict.machine, topic(verdict)), []).append(verdict)
        for number, ((outcome, machine, sentence), verdicts) in enumerate(groups.items()):
            if number:
                yield ""
            heading = sentence if machine == self.report.name else f"{machine}: {sentence}"
            ids = tuple(dict.fromkeys(rid for v in verdicts for rid in v.requirements))
            yield f"{self.paint.outcome(outcome)} {self.paint(heading, '1')}" + (f"  [{', '.join(ids)}]" if ids else "")
            yield from (sentence_of(self.report.spec, rid, "  ") for rid in ids if rid in self.report.spec.requirements)
            harm = harm_of(self.report.spec, verdicts[0].check)
            if harm:
                yield f"  harm: {harm}"
            for verdict in verdicts:
                yield from self.verdict(verdict, heading)
        if self.report.counterexamples():
            yield ""
            yield f"as tests: turnproof verify {self.report.name} --pytest FILE"

    def verdict(self, verdict: Verdict, heading: str) -> Iterator[str]:
        """Who says so, why, and how it comes about."""
        first, *more = verdict.detail.splitlines() or [""]
        yield f"  {verdict.engine.value}, {verdict.how}" + (f": {first}" if first else "")
        yield from ("    " + line for line in more)
        if verdict.story is None:
            return
        for story in (verdict.story, *(verdict.others if self.verbose else ())):
            yield from self.story(story, heading)
        if verdict.others and not self.verbose:
            yield f"  and by {len(verdict.others)} other route{'s' * (len(verdict.others) != 1)}; --verbose tells them"

    def story(self, story: Story, heading: str) -> Iterator[str]:
        """The run, or where it was told already: one run often breaks several sentences."""
        route = (story.machine, str(story.loop_from), *(step.event for step in story.steps))
        if route in self.told:
            if self.told[route] != heading:
                yield f"  by the run under: {self.told[route]}"
        elif self.verbose or len(self.told) < STORIES:
            self.told[route] = heading
            yield from ("  " + line if line else "" for line in render(story).splitlines())
            yield from self.play_again(story)
        else:
            yield f"  by a run of {story.length} step{'s' * (story.length != 1)}; --verbose tells it"

    def play_again(self, story: Story) -> Iterator[str]:
        """The command that plays the run on the machine itself."""
        spec = self.report.spec
        if not isinstance(spec, Spec) or story.machine != self.report.name or not story.steps:
            return
        try:
            events = [show_event(read_event(spec.machine, step.code)) for step in story.steps]
        except WrittenError:
            return
        yield f"  play it: turnproof step {story.machine} {' '.join(shlex.quote(event) for event in events)}"


__all__ = ["failures", "render", "story_text", "topic"]
