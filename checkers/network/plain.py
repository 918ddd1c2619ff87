"""The breadth-first walk in plain Python: no tables, no packing, nothing clever. Every other engine must agree with it."""

from __future__ import annotations

import sys
import time
from collections.abc import Hashable, Sequence
from functools import partial
from typing import TYPE_CHECKING

from turnproof.checkers.network.run import Broken, Cut, Delivery, Occurrence, Runner, World
from turnproof.checkers.network.symmetry import Canonical, Symmetry
from turnproof.checkers.network.triggers import Trigger
from turnproof.checkers.network.walk import INTERRUPT, Choice, Flaw, Handled, Limits, Over, Question, Trace, Walk, say_how_far
from turnproof.checkers.progress import SILENT, Progress
from turnproof.specs.system import AnyPart

if TYPE_CHECKING:
    from turnproof.checkers.network.labelled import Labels

SAY_EVERY = 5_000
"""States between two reports of progress."""


class PlainWalk:
    """A walk, with every state kept as the value it is."""

    def __init__(
        self, runner: Runner, triggers: tuple[Trigger, ...], questions: tuple[Question, ...], *, symmetry: Symmetry | None = None
    ) -> None:
        self.runner, self.triggers = runner, triggers
        self.key: Canonical = _itself if symmetry is None else symmetry.canonical()
        self.questions = {over: [q for q in questions if q.over is over] for over in Over}
        start = runner.initial()
        self.worlds: list[World] = [start]
        self.index: dict[Hashable, int] = {self.key(start): 0}
        self.parents: list[tuple[int, Choice] | None] = [None]
        self.walk = Walk("plain Python")
        self._handled: dict[tuple[int, object, object], Handled] = {}

    def run(self, limits: Limits, progress: Progress = SILENT) -> Walk:
        """Walk until every reachable state is expanded, or a limit or Ctrl-C ends it."""
        began, walk, memory = time.monotonic(), self.walk, peak()
        walk.levels, expanded = [1], 0
        self.ask_state(0)
        try:
            while expanded < len(self.worlds) and walk.complete:
                end = len(self.worlds)
                for i in range(expanded, end):
                    self.expand(i)
                    if i % SAY_EVERY == 0:
                        say_how_far(
                            progress, len(self.worlds), len(walk.levels), len(self.worlds) - i, time.monotonic() - began, walk.memory
                        )
                    walk.memory = peak() - memory
                    walk.why = limits.reached(len(self.worlds), time.monotonic() - began) or limits.held(walk.memory)
                    if walk.why:
                        walk.complete = False
                        break
                expanded = end
                if len(self.worlds) > end:
                    walk.levels.append(len(self.worlds) - end)
                if walk.complete and limits.enough(walk.hits):
                    walk.complete, walk.why = False, limits.enough(walk.hits)
        except KeyboardInterrupt:
            walk.complete, walk.why = False, INTERRUPT
        walk.states, walk.seconds = len(self.worlds), time.monotonic() - began
        walk.handled = list(self._handled.values())
        return walk

    def expand(self, i: int) -> None:
        """Perform every step from state ``i``."""
        world, moved = self.worlds[i], False
        for number, trigger in enumerate(self.triggers):
            if not self.runner.enabled(world, trigger):
                continue
            choice = self.choice(world, trigger)
            try:
                step = self.runner.perform(world, trigger)
            except Cut as end:
                self.walk.cut, moved = self.walk.cut + 1, True
                self.note(end.handled[:-1], end.handled[-1:])
                continue
            except Broken as broken:
                moved = True
                self.note(broken.handled[:-1], broken.handled[-1:])
                if broken.fault not in self.walk.flaws:
                    self.walk.flaws[broken.fault] = Flaw(broken.fault, str(broken), (*self.trace(i), choice))
                continue
            self.walk.transitions += 1
            changed = step.after != world
            moved |= changed
            self.walk.taken[number] = self.walk.taken.get(number, False) or changed
            self.note(step.deliveries)
            self.ask_step(i, choice, step)
            if changed and (key := self.key(step.after)) not in self.index:
                self.index[key] = len(self.worlds)
                self.add(step.after, i, choice)
        for question in () if moved else self.questions[Over.STUCK]:
            if question.key not in self.walk.hits and self.runner.holds(question.holds, world):
                self.walk.hits[question.key] = partial(self.trace, i)

    def choice(self, world: World, trigger: Trigger) -> Choice:
        """What a trace remembers of beginning a step so."""
        if trigger.where not in self.runner.channel:
            return Choice(trigger, trigger.event)
        content = world.channels[self.runner.channel[trigger.where]]
        return Choice(trigger, content[trigger.position])

    def add(self, world: World, parent: int, choice: Choice) -> None:
        """A state seen for the first time."""
        self.worlds.append(world)
        self.parents.append((parent, choice))
        self.ask_state(len(self.worlds) - 1)

    def ask_state(self, i: int) -> None:
        """Put the questions about states that have no hit yet."""
        for question in self.questions[Over.STATE]:
            if question.key not in self.walk.hits and self.runner.holds(question.holds, self.worlds[i]):
                self.walk.hits[question.key] = partial(self.trace, i)

    def ask_step(self, i: int, choice: Choice, step: Occurrence) -> None:
        """Put the questions about steps that have no hit yet."""
        for question in self.questions[Over.STEP]:
            if question.key not in self.walk.hits and self.runner.holds_of(question.holds, step):
                self.walk.hits[question.key] = partial(self.trace, i, choice)

    def trace(self, i: int, *last: Choice) -> Trace:
        """The way from the initial state to state ``i``, then ``last``; shortest, because the walk goes breadth first."""
        back: list[Choice] = []
        link = self.parents[i]
        while link is not None:
            back.append(link[1])
            link = self.parents[link[0]]
        return (*reversed(back), *last)

    def labels(self) -> Labels:
        """The graph with its edges, for liveness."""
        from turnproof.checkers.network.plain_labels import PlainLabels

        return PlainLabels(self)

    def note(self, deliveries: Sequence[Delivery], ended: Sequence[Delivery] = ()) -> None:
        """Coverage: what was handled, and along which wires and copies something went. ``ended``: handled, but its step not followed."""
        for delivery in (*deliveries, *ended):
            key = (delivery.part, delivery.event, delivery.before)
            part = self.runner.system.everyone[delivery.part]
            if key not in self._handled:
                self._handled[key] = Handled(part.name, delivery.event, delivery.before, delivery.said, delivery.row)
            if delivery not in ended:
                self._wires(part, delivery)

    def _wires(self, part: AnyPart, delivery: Delivery) -> None:
        system = self.runner.system
        for n, wire in enumerate(system.wires):
            if n not in self.walk.wires and wire.source.name == part.name and any(wire.carries(e) for e in delivery.effects):
                self.walk.wires.add(n)
        for n, copy in enumerate(system.copies):
            seen = (delivery.event, *delivery.effects)
            if n not in self.walk.copies and copy.of.name == part.name and any(copy.sees(t, delivery.said) for t in seen):
                self.walk.copies.add(n)


def peak() -> int:
    """The most bytes that this process has held so far; 0 where nobody counts them."""
    try:
        import resource
    except ModuleNotFoundError:
        return 0
    used = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return used if sys.platform == "darwin" else used * 1024


def _itself(world: World) -> Hashable:
    return world
