"""Follows a run of the bounded session system in the unbounded one, for one of its items: the link between the two environments."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from random import Random
from typing import Any

import attrs

from turnproof.checkers.network.run import Cut, Delivery, Occurrence, Runner, World
from turnproof.checkers.network.triggers import Trigger, triggers
from turnproof.machines.session_stop import StopPhase, StopRequested
from turnproof.machines.session_stream import Arrived, AttemptsSpent, Dropped, What
from turnproof.machines.session_words import Turn
from turnproof.specs.session_environment import ITEMS, Publish, Restarted
from turnproof.specs.session_environment import Place as Bounded
from turnproof.specs.session_parts import World as BoundedWorld
from turnproof.specs.session_requests import Prompted, Request
from turnproof.specs.session_unbounded_parts import EndComes, OwnEndComes, P, Place
from turnproof.specs.session_unbounded_system import system

RARE = {AttemptsSpent: 0.03, Dropped: 0.2, Restarted: 0.2, StopRequested: 0.3, Prompted: 3.0}
"""How much oftener than others some events come: a run that ends early shows little."""
MOST = 5
"""Steps of the unbounded system that stand for one of the bounded."""
ENDS = (What.SUCCEEDED, What.INTERRUPTED, What.FAILED)
OVER = (Place.SUCCEEDED, Place.INTERRUPTED, Place.BURIED, Place.CANCELLED)


class Lost(AssertionError):
    """A step that the unbounded system cannot follow."""


def renamed(thing: Any, names: Mapping[str, str]) -> Any:
    """The same state or event, with other identities."""
    fields = {f.name: getattr(thing, f.name) for f in attrs.fields(type(thing))}
    return attrs.evolve(thing, **{n: names[v] for n, v in fields.items() if isinstance(v, str) and v in names})


class Shadow:
    """Every state of the unbounded system in which it may be, going by what the session and its start, its Stop and its stream did.

    ``without`` takes a class of events from the unbounded system, to see that it is missed.
    """

    def __init__(self, bounded: Runner, followed: str, without: type | None = None) -> None:
        others = [name for name in ITEMS if name != followed]
        self.names = {followed: P, others[0]: "a", others[1]: "b"}
        self.followed, self.bounded = followed, bounded
        unbounded = system()
        self.runner = Runner(unbounded, counter=9)
        self.triggers = [t for t in triggers(unbounded, tokens=2, counter=0) if without is None or type(t.event) is not without]
        self.worlds = {self.runner.initial()}
        self.longest = 0
        self.served = ""
        """The execution that the item was delivered to, by its name in the bounded system."""

    def part(self, world: World, name: str) -> Any:
        """The state of a part of the unbounded system."""
        return world.parts[self.runner.index[name]]

    def step(self, step: Occurrence) -> None:
        """Follow one step. Raises :class:`Lost`."""
        told = self._told(step, self.bounded, "session", self.names)
        touched = {self.bounded.system.everyone[d.part].name for d in step.deliveries}
        allowed = {"session", "line"} if told else set()
        for part, theirs in (("start", {"start"}), ("stop", {"stop_1", "stop_2"}), ("stream", {"stream"}), ("item", {"server"}),
                             ("request", {f"request_{self.followed}"}), ("line", {"stream"})):  # fmt: skip
            allowed |= {part} if theirs & touched else set()
        # The end of an execution that served the item has to be followed as such, and no other end.
        own = self._ends_own(step)
        mine = [t for t in self.triggers if t.where in allowed and type(t.event) is not (EndComes if own else OwnEndComes)]
        found: set[World] = set()
        front: set[tuple[World, int]] = {(w, 0) for w in self.worlds}
        seen = set(front)
        for length in range(MOST + 1):
            there = {w for w, at in front if self._matches(w, step.after) and not any(_counts(d) for d in told[at:])}
            self.longest = max(self.longest, length if there - found else 0)
            found |= there
            front = {after for world, at in front for after in self._successors(world, at, told, mine)} - seen
            seen |= front
        if not found:
            raise Lost(f"for item {self.followed}: {step.trigger}, told {[d.event for d in told]}, from {self.worlds}, to {step.after}")
        self.worlds = found

    def _ends_own(self, step: Occurrence) -> bool:
        """Whether the step handles the end of the execution that served the item. Also compares what is known of the wake that ends."""
        for d in step.deliveries:
            for effect in d.effects:
                if isinstance(effect, Publish) and effect.what is What.DELIVERED and effect.item == self.followed:
                    self.served = effect.execution
        ended = [d.event.execution for d in step.deliveries if isinstance(d.event, Arrived) and d.event.what in ENDS]
        own = bool(self.served) and ended == [self.served]
        before: dict[str, Any] = {name: step.before.parts[n] for name, n in self.bounded.index.items()}
        if ended and before["session"].phase is Turn.CONTINUATION:
            if before["session"].item == self.followed:
                assert own == (before["truth"].taken == ended[0])
            elif not any(self.part(w, "truth").severed for w in self.worlds):
                assert before["truth"].taken == ended[0]
        return own

    def _successors(self, world: World, at: int, told: Sequence[Delivery], mine: Sequence[Trigger]) -> Iterator[tuple[World, int]]:
        for trigger in mine:
            if self.runner.enabled(world, trigger):
                step = self.runner.perform(world, trigger)
                now = at
                for mine_told in self._told(step, self.runner, "session", {}):
                    while now < len(told) and not _same(told[now], mine_told) and not _counts(told[now]):
                        now += 1
                    if now == len(told) or not _same(told[now], mine_told):
                        break
                    now += 1
                else:
                    yield step.after, now

    @staticmethod
    def _told(step: Occurrence, runner: Runner, part: str, names: Mapping[str, str]) -> list[Delivery]:
        """What the part handled, in order."""
        mine = [d for d in step.deliveries if d.part == runner.index[part]]
        return [attrs.evolve(d, event=renamed(d.event, names), effects=tuple(renamed(e, names) for e in d.effects)) for d in mine]

    def _matches(self, world: World, bounded: World) -> bool:
        """Whether what is known of the bounded state is so here, too."""
        there = {name: renamed(bounded.parts[n], self.names) for name, n in self.bounded.index.items()}
        timers = {p: world.timers[self.runner.index[p]] == bounded.timers[self.bounded.index[p]] for p in ("session", "start")}
        waiting = [there[s].own for s in ("stop_1", "stop_2") if s in there and there[s].phase is StopPhase.WAITING]
        stop = self.part(world, "stop")
        stops = stop.phase is StopPhase.WAITING and stop.own is waiting[0] if waiting else stop.phase is not StopPhase.WAITING
        place: Bounded = getattr(there["server"], self.followed)
        here = self.part(world, "item").phase
        request = there.get(f"request_{self.followed}", Request())
        return (
            stops
            and all(timers.values())
            and all(self.part(world, name) == there[name] for name in ("session", "start", "stream"))
            and self.part(world, "request") == request
            and (here in OVER if place is Bounded.OVER else here.value == place.value)
        )


def _same(one: Delivery, other: Delivery) -> bool:
    return (one.event, one.said, one.effects) == (other.event, other.said, other.effects)


def _counts(told: Delivery) -> bool:
    """Whether anybody could notice it."""
    return bool(told.effects) or told.before != told.after


@attrs.define
class Followed:
    """What a run was, that could be followed for each of its items."""

    steps: int = 0
    longest: int = 0
    """The most steps of the unbounded system that stood for one of the bounded."""
    rows: set[str] = attrs.field(factory=set)
    """Rows of the session's machine that answered."""


def follow(world: BoundedWorld, random: Random, steps: int, without: type | None = None) -> Followed:
    """One random run, followed for each item. Raises :class:`Lost`."""
    bounded = world.system("session_followed")
    runner = Runner(bounded, counter=3)
    every = triggers(bounded, tokens=3, counter=3)
    shadows = [Shadow(runner, name, without) for name in ITEMS]
    now, found = runner.initial(), Followed()
    for _ in range(steps):
        possible = [t for t in every if runner.enabled(now, t)]
        if not possible:
            break
        try:
            step = runner.perform(now, random.choices(possible, [RARE.get(type(t.event), 1.0) for t in possible])[0])
        except Cut:
            continue
        for shadow in shadows:
            shadow.step(step)
            found.longest = max(found.longest, shadow.longest)
        found.rows |= {d.row for d in step.deliveries if d.part == runner.index["session"]}
        found.steps += 1
        now = step.after
    return found
