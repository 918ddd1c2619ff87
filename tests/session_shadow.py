"""Follows runs of the bounded session system in the unbounded one, for one of its items: the link between the two environments.

A step of the bounded system is followed by up to :data:`MOST` steps of the unbounded one, in which the session handles the same events
with the same effects, but for those that nobody could notice. All states of the unbounded system that a run may be in are kept.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from random import Random
from typing import Any, NamedTuple

import attrs

from turnproof.checkers.network.run import Cut, Occurrence, Runner, World
from turnproof.checkers.network.triggers import triggers
from turnproof.machines.session_stop import StopPhase, StopRequested
from turnproof.machines.session_stream import Arrived, AttemptsSpent, Dropped, What
from turnproof.machines.session_words import Turn
from turnproof.specs.language import Said
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


class Told(NamedTuple):
    """One event that the session handled."""

    event: object
    said: Said
    effects: tuple[object, ...]
    row: str
    counts: bool
    """Anybody could notice it."""


class Move(NamedTuple):
    """One step of the unbounded system."""

    where: str
    event: type
    told: tuple[Told, ...]
    after: World


class At(NamedTuple):
    """Where one item is followed to: the states in which the unbounded system may be, and the execution that serves or served the item."""

    worlds: frozenset[World]
    served: str = ""


def renamed(thing: Any, names: Mapping[str, str]) -> Any:
    """The same state or event, with other identities."""
    values = ((f.name, getattr(thing, f.name)) for f in attrs.fields(type(thing)))
    changed = {name: names[v] for name, v in values if isinstance(v, str) and v in names}
    return attrs.evolve(thing, **changed) if changed else thing


def told_by(step: Occurrence, session: int, names: Mapping[str, str]) -> tuple[Told, ...]:
    """What the session handled, in order."""
    return tuple(
        Told(renamed(d.event, names), d.said, tuple(renamed(e, names) for e in d.effects), d.row, bool(d.effects) or d.before != d.after)
        for d in step.deliveries
        if d.part == session
    )


class Unbounded:
    """The unbounded system, and every step of it that was ever asked for. ``without``: a class of events that it lacks."""

    def __init__(self, without: type | None = None) -> None:
        made = system()
        self.runner = Runner(made, counter=9)
        self.triggers = [t for t in triggers(made, tokens=2, counter=0) if without is None or type(t.event) is not without]
        self.known: dict[World, tuple[Move, ...]] = {}

    def part(self, world: World, name: str) -> Any:
        """The state of a part."""
        return world.parts[self.runner.index[name]]

    def moves(self, world: World) -> tuple[Move, ...]:
        """Every step from there."""
        if world not in self.known:
            steps = (self.runner.perform(world, t) for t in self.triggers if self.runner.enabled(world, t))
            session = self.runner.index["session"]
            self.known[world] = tuple(Move(s.trigger.where, type(s.trigger.event), told_by(s, session, {}), s.after) for s in steps)
        return self.known[world]


class Shadow:
    """Follows one item of the bounded system."""

    def __init__(self, unbounded: Unbounded, bounded: Runner, item: str) -> None:
        others = [name for name in ITEMS if name != item]
        self.names = {item: P, others[0]: "a", others[1]: "b"}
        self.item, self.bounded, self.unbounded = item, bounded, unbounded
        self.start = At(frozenset((unbounded.runner.initial(),)))
        self.longest = 0

    def step(self, at: At, step: Occurrence) -> At:
        """Where the step leads. Raises :class:`Lost`."""
        told = told_by(step, self.bounded.index["session"], self.names)
        served = self._served(at.served, step)
        # The end of an execution that served the item has to be followed as such, and no other end.
        barred = EndComes if self._ends_own(at, served, step) else OwnEndComes
        allowed, wanted = self._allowed(step, told), self._known(step.after)
        found: set[World] = set()
        front: set[tuple[World, int]] = {(w, 0) for w in at.worlds}
        seen = set(front)
        for length in range(MOST + 1):
            there = {w for w, n in front if not any(t.counts for t in told[n:]) and self._matches(w, wanted)}
            self.longest = max(self.longest, length if there - found else 0)
            found |= there
            front = {nearer for w, n in front for nearer in self._nearer(w, n, told, allowed, barred)} - seen
            seen |= front
        if not found:
            raise Lost(f"for item {self.item}: {step.trigger}, told {[t.event for t in told]}, from {at.worlds}, to {step.after}")
        return At(frozenset(found), served)

    def _allowed(self, step: Occurrence, told: Sequence[Told]) -> set[str]:
        """Parts of the unbounded system in which something may begin."""
        touched = {self.bounded.system.everyone[d.part].name for d in step.deliveries}
        allowed = {"session", "line"} if told else set()
        for part, theirs in (("start", {"start"}), ("stop", {"stop_1", "stop_2"}), ("stream", {"stream"}), ("item", {"server"}),
                             ("request", {f"request_{self.item}"}), ("line", {"stream"})):  # fmt: skip
            allowed |= {part} if theirs & touched else set()
        return allowed

    def _nearer(self, world: World, n: int, told: Sequence[Told], allowed: set[str], barred: type) -> Iterator[tuple[World, int]]:
        for move in self.unbounded.moves(world):
            if move.where in allowed and move.event is not barred:
                now = n
                for mine in move.told:
                    while now < len(told) and told[now][:3] != mine[:3] and not told[now].counts:
                        now += 1
                    if now == len(told) or told[now][:3] != mine[:3]:
                        break
                    now += 1
                else:
                    yield move.after, now

    def _served(self, before: str, step: Occurrence) -> str:
        for d in step.deliveries:
            for effect in d.effects:
                if isinstance(effect, Publish) and effect.what is What.DELIVERED and effect.item == self.item:
                    return effect.execution
        return before

    def _ends_own(self, at: At, served: str, step: Occurrence) -> bool:
        """Whether the step handles the end of the execution that served the item. Also compares what is known of the wake that ends."""
        ended = [d.event.execution for d in step.deliveries if isinstance(d.event, Arrived) and d.event.what in ENDS]
        own = bool(served) and ended == [served]
        before: dict[str, Any] = {name: step.before.parts[n] for name, n in self.bounded.index.items()}
        if ended and before["session"].phase is Turn.CONTINUATION:
            if before["session"].item == self.item:
                assert own == (before["truth"].taken == ended[0])
            elif not any(self.unbounded.part(w, "truth").severed for w in at.worlds):
                assert before["truth"].taken == ended[0]
        return own

    def _known(self, bounded: World) -> dict[str, Any]:
        """What has to be so in the unbounded system, too."""
        there = {name: renamed(bounded.parts[n], self.names) for name, n in self.bounded.index.items()}
        waiting = [there[s].own for s in ("stop_1", "stop_2") if s in there and there[s].phase is StopPhase.WAITING]
        place: Bounded = getattr(bounded.parts[self.bounded.index["server"]], self.item)
        return {
            **{name: there[name] for name in ("session", "start", "stream")},
            **{f"timers of {name}": bounded.timers[self.bounded.index[name]] for name in ("session", "start")},
            "request": there.get(f"request_{self.item}", Request()),
            "waiting": waiting,
            "places": OVER if place is Bounded.OVER else (Place(place.value),),
        }

    def _matches(self, world: World, wanted: Mapping[str, Any]) -> bool:
        part, index = self.unbounded.part, self.unbounded.runner.index
        stop = part(world, "stop")
        return (
            [stop.own] * (stop.phase is StopPhase.WAITING) == wanted["waiting"]
            and part(world, "item").phase in wanted["places"]
            and all(part(world, name) == wanted[name] for name in ("session", "start", "stream", "request"))
            and all(world.timers[index[name]] == wanted[f"timers of {name}"] for name in ("session", "start"))
        )


@attrs.define
class Followed:
    """What could be followed, for each of the items."""

    steps: int = 0
    longest: int = 0
    """The most steps of the unbounded system that stood for one of the bounded."""
    rows: set[str] = attrs.field(factory=set)
    """Rows of the session's machine that answered."""

    def count(self, step: Occurrence, session: int, shadows: Sequence[Shadow]) -> None:
        """One more step was followed."""
        self.steps += 1
        self.rows |= {d.row for d in step.deliveries if d.part == session}
        self.longest = max(self.longest, *(s.longest for s in shadows))


def follow(world: BoundedWorld, random: Random, steps: int, unbounded: Unbounded) -> Followed:
    """One random run. Raises :class:`Lost`."""
    bounded = world.system("session_followed")
    runner = Runner(bounded, counter=3)
    every = triggers(bounded, tokens=3, counter=3)
    shadows = [Shadow(unbounded, runner, name) for name in ITEMS]
    at, now, found = [s.start for s in shadows], runner.initial(), Followed()
    for _ in range(steps):
        possible = [t for t in every if runner.enabled(now, t)]
        if not possible:
            break
        try:
            step = runner.perform(now, random.choices(possible, [RARE.get(type(t.event), 1.0) for t in possible])[0])
        except Cut:
            continue
        at = [shadow.step(a, step) for shadow, a in zip(shadows, at, strict=True)]
        found.count(step, runner.index["session"], shadows)
        now = step.after
    return found


def follow_all(world: BoundedWorld, unbounded: Unbounded, most: int | None = None) -> Followed:
    """Every run. Raises :class:`Lost`. ``most``: no more steps than that, shortest runs first."""
    bounded = world.system("session_followed")
    runner = Runner(bounded, counter=3)
    every = triggers(bounded, tokens=3, counter=3)
    shadows = [Shadow(unbounded, runner, name) for name in ITEMS]
    found = Followed()
    first = (runner.initial(), tuple(s.start for s in shadows))
    seen, todo = {first}, deque([first])
    while todo and (most is None or found.steps < most):
        now, at = todo.popleft()
        for trigger in every:
            if runner.enabled(now, trigger):
                step = runner.perform(now, trigger)
                then = (step.after, tuple(shadow.step(a, step) for shadow, a in zip(shadows, at, strict=True)))
                found.count(step, runner.index["session"], shadows)
                if then not in seen:
                    seen.add(then)
                    todo.append(then)
    return found
