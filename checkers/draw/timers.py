"""The picture of a machine's timers: for each what starts it, renews it, holds it, stops it, and what its expiry is."""

from __future__ import annotations

from collections.abc import Iterable

import attrs

from turnproof.checkers.draw import comments
from turnproof.checkers.draw.reach import Armed, Reach
from turnproof.checkers.draw.scene import Box, Frame, Kind, Link, Scene, Span, Tone, line, wrap
from turnproof.machines.kernel import Duration, TimerRule, show_constant

NAMES_WIDTH, ABOUT_WIDTH = 250, 300


def length(duration: Duration) -> str:
    """``60 s``, ``1.5 s`` or ``200 ms``."""
    return f"{duration.milliseconds / 1000:g} s" if duration.milliseconds >= 1000 else f"{duration.milliseconds} ms"


def scene(reach: Reach) -> Scene:
    """One frame a timer, side by side."""
    boxes: list[Box] = []
    links: list[Link] = []
    frames = []
    for rule in reach.machine.timers:
        mine, joined = Timer(reach, rule).draw()
        boxes += mine
        links += joined
        frames.append(Frame(f"{show_constant(rule.timer)}, {length(rule.duration)}", tuple(box.id for box in mine)))
    name = reach.machine.name
    note = "What starts, holds and ends each timer; reachable steps only. Where each runs: the boxes of the phases."
    return Scene(
        f"{name}-timers", f"{name}: timers", note, tuple(boxes), tuple(links), tuple(frames), labels="events of the rows that do it"
    )


@attrs.frozen
class Timer:
    """Makes the boxes of one timer."""

    reach: Reach
    rule: TimerRule

    @property
    def word(self) -> str:
        """How the timer is called."""
        return show_constant(self.rule.timer)

    def events(self, before: Armed, after: Armed) -> tuple[str, ...]:
        """The events whose rows lead from one to the other; the expiry is told apart by the caller."""
        moves = [m for m in self.reach.timer_moves if (m.timer, m.before, m.after) == (self.rule.timer, before, after)]
        return tuple(dict.fromkeys(self.reach.row(m).event.__name__ for m in moves))

    def label(self, part: str, title: str, events: Iterable[str]) -> list[Box]:
        """A label with the events; none if there are none."""
        names = ", ".join(events)
        lines = (line(title, Tone.QUIET), *wrap([Span(names, Tone.STRONG)], NAMES_WIDTH, hang=0)) if names else ()
        return [Box(f"{self.word}.{part}", Kind.LABEL, (lines,))] if lines else []

    def runs(self) -> Box:
        """The timer while it runs."""
        about = comments.fields(type(self.rule.timer)).get(self.rule.timer.name, "").replace("\n", " ").replace("``", "")
        sections = [(line("runs", Tone.TITLE), *(wrap([Span(about, Tone.QUIET)], ABOUT_WIDTH, hang=0) if about else ()))]
        renewed = self.events(Armed.RUNS, Armed.RUNS)
        if renewed:
            sections.append((line("renewed by", Tone.QUIET), *wrap([Span(", ".join(renewed), Tone.STRONG)], ABOUT_WIDTH, hang=0)))
        return Box(f"{self.word}.runs", Kind.TIMER, tuple(sections))

    def draw(self) -> tuple[list[Box], list[Link]]:
        """All of it."""
        runs, expiry = self.runs(), self.rule.expires.__name__
        ends = self.events(Armed.RUNS, Armed.OFF)
        starts = self.label("start", "started by", self.events(Armed.OFF, Armed.RUNS))
        stops = self.label("expiry", "expires", [e for e in ends if e == expiry])
        stops += self.label("stop", "stopped by", [e for e in ends if e != expiry])
        boxes = [runs, *starts, *stops]
        links = [*(Link(box.id, runs.id) for box in starts), *(Link(runs.id, box.id) for box in stops)]
        if self.rule.paused is not None:
            paused = Box(f"{self.word}.paused", Kind.TIMER, ((line("paused", Tone.TITLE),),))
            held = self.label("held", "paused by", self.events(Armed.RUNS, Armed.PAUSED))
            again = self.label("again", "resumed by", self.events(Armed.PAUSED, Armed.RUNS))
            given_up = self.label("given_up", "stopped by", self.events(Armed.PAUSED, Armed.OFF))
            boxes += [paused, *held, *again, *given_up]
            for box in held:
                links += [Link(runs.id, box.id, arrow=False), Link(box.id, paused.id)]
            for box in again:
                links += [Link(paused.id, box.id, arrow=False, back=True), Link(box.id, runs.id, back=True)]
            links += [Link(paused.id, box.id) for box in given_up]
        return boxes, links
