"""Walking one state for all that differ by an exchange of what the specification calls interchangeable.

Theory of operation
===================

``Symmetry`` is the group of exchanges of one system, checked piece by piece (:mod:`turnproof.specs.symmetry`). A walk keeps one
**representative** of each orbit. Exchanging keeps distances from the start, which no exchange moves; so levels are those of the
whole graph, orbit by orbit, and a shortest way to a representative is as short as one to any state of its orbit.

A question need not be symmetric: it is asked together with its exchanged copies, and where one of these holds, the run is exchanged
until the question itself holds at its end. Every run that is shown is a real one: it is performed step by step from the initial state
through ``machine.step``, following the representatives.

What no walk over representatives keeps is which state follows which for ever, so promises about the future stay open.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Hashable, Iterator, Sequence
from typing import Any, cast

import attrs

from turnproof.checkers.network.run import Fault, Occurrence, Runner, Unfollowed, World
from turnproof.checkers.network.triggers import Kind, Trigger
from turnproof.checkers.network.walk import Choice, Handled, Key, Over, Question, Trace, Walk, replay
from turnproof.machines.kernel import Formula, TableError
from turnproof.specs.symmetry import UNCHANGED, Exchange, Interchangeable, normal, told, why_not
from turnproof.specs.system import System

MOST_ELEMENTS = 720
"""Exchanges of tokens that are tried one by one for every state."""
MOST_COPIES = 2_000
"""Exchanged copies of one question."""

Canonical = Callable[[World], Hashable]


class Symmetry:
    """The exchanges of one system. Raises :class:`TableError` where they are none, or too many."""

    def __init__(self, system: System, interchangeable: Sequence[Interchangeable], tokens: int) -> None:
        self.system, self.interchangeable = system, tuple(interchangeable)
        wrong = [m for one in self.interchangeable for m in why_not(system, one, tokens)]
        if wrong:
            raise TableError(f"system {system.name} cannot be reduced: {wrong[0]}")
        self.generators = [one.exchange(n, n + 1) for one in self.interchangeable for n in range(len(one.columns) - 1)]
        self.columns = [[[str(p.name) for p in column] for column in one.columns] for one in self.interchangeable if not one.tokens]
        self.elements = list(self._elements())

    def _elements(self) -> Iterator[Exchange]:
        """Every exchange of what has tokens, but the one that changes nothing."""
        groups = [one for one in self.interchangeable if one.tokens]
        order = math.prod(math.factorial(len(one.columns)) for one in groups)
        if order > MOST_ELEMENTS:
            raise TableError(
                f"system {self.system.name} cannot be reduced: {order:,} exchanges of tokens, at most {MOST_ELEMENTS} can be tried"
            )
        for several in itertools.product(*([*_permutations(one)] for one in groups)):
            made = UNCHANGED
            for one in several:
                made = made.then(one)
            if any(k != v for k, v in (*made.names.items(), *made.tokens.items())):
                yield made

    def __str__(self) -> str:
        return "; ".join(str(one) for one in self.interchangeable)

    # ── the states of components ──

    def component(self, comp: int, state: Any, by: Exchange) -> Any:
        """What a component's local state is after an exchange, at the component that takes its place."""
        parts, channels = len(self.system.everyone), len(self.system.channels)
        if comp < parts:
            return (by.value(state[0]), state[1])
        if comp < parts + channels:
            content = tuple(by.value(event) for event in state)
            return tuple(sorted(content, key=repr)) if self.system.channels[comp - parts].reordered else content
        return state

    @property
    def names(self) -> list[str]:
        """The components: parts, monitors, channels, budgets."""
        return [p.name for p in self.system.everyone] + [c.name for c in self.system.channels] + [b.name for b in self.system.budgets]

    def world(self, world: World, by: Exchange) -> World:
        """A state of the system, exchanged."""
        index = {name: n for n, name in enumerate(self.names)}
        given = locals_of(world)
        made: list[Any] = [None] * len(given)
        for name, comp in index.items():
            made[index[by.name(name)]] = self.component(comp, given[comp], by)
        parts, channels = len(world.parts), len(world.channels)
        first = made[:parts]
        return World(
            tuple(p[0] for p in first), tuple(p[1] for p in first), tuple(made[parts : parts + channels]), tuple(made[parts + channels :])
        )

    def canonical(self) -> Canonical:
        """A function that gives two states the same value exactly if one is the other, exchanged."""
        index = {name: n for n, name in enumerate(self.names)}
        columns = [[[index[name] for name in column] for column in group] for group in self.columns]
        known: dict[Any, int] = {}

        def least(world: World) -> tuple[int, ...]:
            numbers = [known.setdefault(local, len(known)) for local in locals_of(world)]
            for group in columns:
                inside = sorted([numbers[comp] for comp in column] for column in group)
                for column, values in zip(group, inside, strict=True):
                    for comp, number in zip(column, values, strict=True):
                        numbers[comp] = number
            return tuple(numbers)

        return lambda world: min([least(world), *(least(self.world(world, by)) for by in self.elements)])

    # ── questions ──

    def closed(self, question: Question) -> Question:
        """The question together with its exchanged copies."""
        first, *rest = (node for node, _ in self.copies(question.holds))
        for other in rest:
            first = Formula("or", (first, other))
        return attrs.evolve(question, holds=first)

    def copies(self, node: Formula) -> list[tuple[Formula, Exchange]]:
        """Every exchanged copy of a formula, with the exchange that makes it; the formula itself first."""
        found: dict[Hashable, tuple[Formula, Exchange]] = {normal(node): (node, UNCHANGED)}
        todo = [UNCHANGED]
        while todo:
            by = todo.pop()
            for generator in self.generators:
                further = by.then(generator)
                key = normal(node, further)
                if key not in found:
                    found[key] = (cast(Formula, further.formula(node)), further)
                    todo.append(further)
            if len(found) > MOST_COPIES:
                raise TableError(f"system {self.system.name} cannot be reduced: a property has more than {MOST_COPIES:,} exchanged copies")
        return list(found.values())

    # ── runs ──

    def settle(self, walk: Walk, runner: Runner, triggers: Sequence[Trigger], questions: Sequence[Question]) -> None:
        """Make of what a walk over representatives found what the whole walk would have found."""
        original = {q.key: q for q in questions}
        for key, trace in list(walk.hits.items()):
            walk.hits[key] = self._turned(runner, triggers, original[key], trace)
        self._cover(walk, triggers)

    def _turned(self, runner: Runner, triggers: Sequence[Trigger], question: Question, trace: Callable[[], Trace]) -> Callable[[], Trace]:
        def turned() -> Trace:
            found = trace()
            performed = replay(runner, found)
            world = performed[-1].after if performed else runner.initial()
            for node, by in self.copies(question.holds):
                if runner.holds_of(node, performed[-1]) if question.over is Over.STEP else runner.holds(node, world):
                    return self.turn(runner, triggers, performed, by.inverse)
            raise RuntimeError(f"internal error: no exchanged copy of {question.key} holds at the end of its run")

        return turned

    def turn(self, runner: Runner, triggers: Sequence[Trigger], performed: Sequence[Occurrence], by: Exchange) -> Trace:
        """The exchanged run, performed."""
        made: list[Choice] = []
        world = runner.initial()
        for step in performed:
            wanted = self.world(step.after, by)
            made.append(self._like(runner, triggers, world, step, wanted, by))
            world = wanted
        return tuple(made)

    def _like(self, runner: Runner, triggers: Sequence[Trigger], world: World, step: Occurrence, wanted: World, by: Exchange) -> Choice:
        old = step.trigger
        for trigger in triggers:
            if (trigger.kind, trigger.where, trigger.timer) != (old.kind, by.name(old.where), old.timer):
                continue
            if old.kind is Kind.SEND and trigger.event != by.value(old.event):
                continue
            if runner.enabled(world, trigger) and runner.perform(world, trigger).after == wanted:
                return chosen(runner, world, trigger)
        raise RuntimeError(f"internal error: the exchange of {old} is not enabled")

    def follow(self, runner: Runner, triggers: Sequence[Trigger], canonical: Canonical, chain: Sequence[Hashable]) -> Trace:
        """A real run past these representatives."""
        made: list[Choice] = []
        world = runner.initial()
        for wanted in chain:
            for trigger, step in performable(runner, triggers, world):
                if canonical(step.after) == wanted:
                    made.append(chosen(runner, world, trigger))
                    world = step.after
                    break
            else:
                raise RuntimeError("internal error: no real step leads to a representative")
        return tuple(made)

    def _cover(self, walk: Walk, triggers: Sequence[Trigger]) -> None:
        """What was used is used, exchanged, as well."""
        numbers: dict[Hashable, int] = {}
        for n, trigger in enumerate(triggers):
            numbers.setdefault(self._key(trigger, UNCHANGED), n)
        before = -1
        while before != (before := len(walk.taken) + sum(walk.taken.values()) + len(walk.handled) + len(walk.wires) + len(walk.copies)):
            for by in self.generators:
                for n, changed in list(walk.taken.items()):
                    other = numbers.get(self._key(triggers[n], by))
                    if other is not None:
                        walk.taken[other] = walk.taken.get(other, False) or changed
                walk.handled = list(_handled(walk.handled, by))
                for used, things in ((walk.wires, self.system.wires), (walk.copies, self.system.copies)):
                    there = {told(things[k], by) for k in used}
                    used |= {n for n, thing in enumerate(things) if told(thing, UNCHANGED) in there}

    @staticmethod
    def _key(trigger: Trigger, by: Exchange) -> Hashable:
        event = None if trigger.event is None else by.value(trigger.event)
        return trigger.kind, by.name(trigger.where), event, trigger.timer, trigger.position, normal(trigger.guard, by), trigger.switch


def _permutations(one: Interchangeable) -> Iterator[Exchange]:
    for order in itertools.permutations(range(len(one.columns))):
        names: dict[str, str] = {}
        tokens: dict[str, str] = {}
        for place, other in enumerate(order):
            for left, right in zip(one.columns[place], one.columns[other], strict=True):
                if isinstance(left, str):
                    tokens[left] = right
                else:
                    names[left.name] = right.name
        yield Exchange(names, tokens)


def locals_of(world: World) -> list[Any]:
    """The local state of each component."""
    return [*zip(world.parts, world.timers, strict=True), *world.channels, *world.budgets]


def chosen(runner: Runner, world: World, trigger: Trigger) -> Choice:
    """The choice that begins such a step in this state."""
    if trigger.kind not in (Kind.DELIVER, Kind.LOSE):
        return Choice(trigger, trigger.event)
    return Choice(trigger, world.channels[runner.channel[trigger.where]][trigger.position])


def performable(runner: Runner, triggers: Sequence[Trigger], world: World) -> Iterator[tuple[Trigger, Occurrence]]:
    """Every step from a state that is followed to its end."""
    for trigger in triggers:
        if runner.enabled(world, trigger):
            try:
                yield trigger, runner.perform(world, trigger)
            except Unfollowed:
                continue


def faulty(runner: Runner, triggers: Sequence[Trigger], world: World, fault: Fault) -> Choice:
    """The step from this state that the system does not allow."""
    for trigger in triggers:
        if runner.enabled(world, trigger):
            try:
                runner.perform(world, trigger)
            except Unfollowed as end:
                if getattr(end, "fault", None) is fault:
                    return chosen(runner, world, trigger)
    raise RuntimeError(f"internal error: `{fault.value}` is not broken where a walk over representatives says so")


def _handled(known: Sequence[Handled], by: Exchange) -> Iterator[Handled]:
    seen = set[Hashable]()
    for one in (*known, *(Handled(by.name(h.part), by.value(h.event), by.value(h.state), h.said, h.row) for h in known)):
        key = (one.part, one.event, one.state)
        if key not in seen:
            seen.add(key)
            yield one


__all__ = ["Canonical", "Key", "Symmetry", "chosen", "faulty", "locals_of", "performable"]
