"""What one step of a system is, in plain Python through ``machine.step``: short, slow, and the reference for every faster reading.

:class:`Runner` performs one trigger to completion and says everything that happened. Every counterexample is replayed here before
it is shown.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from enum import Enum
from typing import Any, NamedTuple, cast

import attrs

from turnproof.checkers.network.triggers import Kind, Trigger, show_event
from turnproof.machines.kernel import (
    HOLE,
    TIMER_EFFECTS,
    Ignored,
    PauseTimer,
    Refused,
    ResumeTimer,
    StartTimer,
    Taken,
    Variable,
    fields_of,
    read,
)
from turnproof.machines.kernel.domain import Kind as FieldKind
from turnproof.machines.kernel.evaluate import PYTHON, value
from turnproof.specs.language import Said
from turnproof.specs.system import Channel, Copy, Empties, Happening, Ledger, System, Wire
from turnproof.specs.system_words import NEXT, Acted, ChannelDid, Pending, Received, SentBy, TimerIs


class World(NamedTuple):
    """The state of a whole system. Parts first, then monitors; a timer of each part; what is under way; what is left of each budget."""

    parts: tuple[object, ...]
    timers: tuple[tuple[Ledger, ...], ...]
    channels: tuple[tuple[object, ...], ...]
    budgets: tuple[int, ...]


class Fault(Enum):
    """What is wrong with a system itself, found only by running it."""

    HOLE = "every part answers every event"
    UNRECEIVED = "every effect is received"
    OVERFLOW = "no channel overflows"
    ENDLESS = "every step ends"
    DOMAIN = "every event lies in its domain"


class Unfollowed(Exception):
    """A step that is not followed to its end. ``handled`` are the events that were handled until then, the last one included."""

    handled: tuple[Delivery, ...] = ()


class Broken(Unfollowed):
    """A step that the system does not allow. ``fault`` names the kind; the text is one sentence."""

    def __init__(self, fault: Fault, sentence: str) -> None:
        super().__init__(sentence)
        self.fault = fault


class Cut(Unfollowed):
    """A step that leaves the explored bounds."""


@attrs.frozen(eq=False)
class Delivery:
    """One event handled by one part within a step."""

    part: int
    event: object
    said: Said
    why: str
    row: str
    before: object
    after: object
    effects: tuple[object, ...]
    cause: tuple[int, int] = (-1, -1)
    """Which delivery of this step, and which of its effects, brought it about; -1 for the trigger, or for the event itself (a copy)."""


@attrs.frozen(eq=False)
class Occurrence:
    """A whole step: what began it, every event that was handled, in order, what became of channels, and the state after it."""

    trigger: Trigger
    before: World
    deliveries: tuple[Delivery, ...]
    channels: tuple[tuple[str, Happening, object], ...]
    after: World


class Runner:
    """Performs steps of one system. ``counter`` bounds counters: a step that goes beyond it raises :class:`Cut`."""

    def __init__(self, system: System, *, counter: int) -> None:
        self.system, self.counter = system, counter
        self.index = {p.name: i for i, p in enumerate(system.everyone)}
        self.channel = {c.name: i for i, c in enumerate(system.channels)}
        self.timers = [tuple(rule.timer for rule in p.machine.timers) for p in system.everyone]
        self.wires = [[w for w in system.wires if w.source.name == p.name] for p in system.everyone]
        self.copies = [[c for c in system.copies if c.of.name == p.name] for p in system.everyone]
        self.absorbed = [{cls for a in system.absorbed if a.part.name == p.name for cls in a.classes} for p in system.everyone]
        self.counters = [[n for n, f in fields_of(p.machine.state).items() if f.kind is FieldKind.COUNTER] for p in system.everyone]

    def initial(self) -> World:
        """The state in which every run begins."""
        return World(
            parts=tuple(p.start for p in self.system.everyone),
            timers=tuple((Ledger.OFF,) * len(timers) for timers in self.timers),
            channels=tuple(() for _ in self.system.channels),
            budgets=tuple(b.limit for b in self.system.budgets),
        )

    def enabled(self, world: World, trigger: Trigger) -> bool:
        """Whether a step may begin so."""
        if trigger.budget >= 0 and world.budgets[trigger.budget] == 0:
            return False
        if trigger.kind is Kind.EXPIRE:
            part = self.index[trigger.where]
            if world.timers[part][self.timers[part].index(cast(Enum, trigger.timer))] is not Ledger.RUNNING:
                return False
        elif trigger.kind is not Kind.SEND:
            content = world.channels[self.channel[trigger.where]]
            place = trigger.position
            # Of equal events in a reordered channel (kept sorted) only the first is a choice of its own.
            if place >= len(content) or (place > 0 and content[place - 1] == content[place]):
                return False
        return trigger.guard is None or bool(self.holds(trigger.guard, world))

    def located(self, world: World, trigger: Trigger, event: object) -> Trigger:
        """The trigger with the place where its event lies in the channel now. Raises ``ValueError`` if it is not there."""
        if trigger.kind not in (Kind.DELIVER, Kind.LOSE):
            return trigger
        content = world.channels[self.channel[trigger.where]]
        if event not in content:
            raise ValueError(f"the channel {trigger.where} does not hold {event}")
        return attrs.evolve(trigger, position=content.index(event))

    def holds(self, node: object, world: World) -> Any:
        """The value of a formula over the states of parts."""
        return read(node, self.reader(world), PYTHON, _itself)

    def reader(self, world: World) -> Callable[[Variable], object]:
        """Variable of a part, timer or channel -> its value in ``world``."""

        def variable(v: Variable) -> object:
            if isinstance(v, Pending):
                return len(world.channels[self.channel[v.scope]])
            part = self.index[v.scope]
            if isinstance(v, TimerIs):
                return world.timers[part][self.timers[part].index(cast(Enum, v.timer))] is v.ledger
            return getattr(world.parts[part], v.name)

        return variable

    def holds_of(self, node: object, step: Occurrence) -> Any:
        """The value of a formula over a step."""
        before, after = self.reader(step.before), self.reader(step.after)

        def variable(v: Variable) -> object:
            if isinstance(v, ChannelDid):
                return sum(1 for name, what, _ in step.channels if (name, what) == (v.scope, v.what))
            if isinstance(v, Acted):
                return sum(1 for d in step.deliveries if d.said is Said.TAKEN and d.effects)
            if isinstance(v, Received):
                mine = (d for d in step.deliveries if d.part == self.index[v.scope] and (v.said is None or d.said is v.said))
                return sum(1 for d in mine if self._fits(v.owner, v.fields, d.event, d))
            if isinstance(v, SentBy):
                mine = (d for d in step.deliveries if d.part == self.index[v.scope])
                return sum(1 for d in mine for effect in d.effects if self._fits(v.owner, v.fields, effect, d))
            if v.scope.endswith(NEXT):
                return after(Variable(v.owner, v.name, v.scope.removesuffix(NEXT)))
            return before(v)

        return read(node, variable, PYTHON, _itself)

    def _fits(self, cls: type, pattern: tuple[tuple[str, object], ...], thing: object, delivery: Delivery) -> bool:
        if type(thing) is not cls:
            return False
        scope = self.system.everyone[delivery.part].name
        env = {Variable(type(delivery.before), n, scope): getattr(delivery.before, n) for n in fields_of(type(delivery.before))}
        return all(getattr(thing, name) == value(node, env) for name, node in pattern)

    def perform(self, world: World, trigger: Trigger) -> Occurrence:
        """The step that ``trigger`` begins, run to completion. Raises :class:`Broken` or :class:`Cut`."""
        step = _Step(self, world, trigger)
        try:
            return step.run()
        except Unfollowed as end:
            end.handled = tuple(step.deliveries)
            raise


def _itself(constant: object) -> object:
    return constant


class _Step:
    """The work of one step: a copy of the world that is written to, and the queue of events still to be handled."""

    def __init__(self, runner: Runner, world: World, trigger: Trigger) -> None:
        self.runner, self.before, self.trigger = runner, world, trigger
        self.parts, self.timers = list(world.parts), [list(t) for t in world.timers]
        self.channels, self.budgets = [list(c) for c in world.channels], list(world.budgets)
        self.queue: deque[tuple[int, object, tuple[int, int]]] = deque()
        self.deliveries: list[Delivery] = []
        self.done: list[tuple[str, Happening, object]] = []

    def run(self) -> Occurrence:
        self.begin()
        while self.queue:
            if len(self.deliveries) >= self.runner.system.cascade:
                part, event, _ = self.queue[0]
                name = self.runner.system.everyone[part].name
                raise Broken(
                    Fault.ENDLESS, f"a step delivers more than {self.runner.system.cascade} events, the next {show_event(event)} to {name}"
                )
            self.handle(*self.queue.popleft())
        after = World(tuple(self.parts), tuple(map(tuple, self.timers)), tuple(map(tuple, self.channels)), tuple(self.budgets))
        return Occurrence(self.trigger, self.before, tuple(self.deliveries), tuple(self.done), after)

    def begin(self) -> None:
        trigger = self.trigger
        if trigger.budget >= 0:
            self.budgets[trigger.budget] -= 1
        if trigger.kind in (Kind.SEND, Kind.EXPIRE):
            part = self.runner.index[trigger.where]
            if trigger.kind is Kind.EXPIRE:
                self.timers[part][self.runner.timers[part].index(cast(Enum, trigger.timer))] = Ledger.OFF
            self.queue.append((part, trigger.event, (-1, -1)))
            return
        index = self.runner.channel[trigger.where]
        channel = self.runner.system.channels[index]
        if trigger.kind is Kind.DROP:
            self.empty(channel)
            return
        event = self.channels[index].pop(trigger.position)
        if trigger.kind is Kind.DELIVER:
            self.done.append((channel.name, Happening.DELIVERED, event))
            self.queue.append((self.runner.index[channel.to.name], event, (-1, -1)))
        else:
            self.done.append((channel.name, Happening.LOST, event))

    def handle(self, part: int, event: object, cause: tuple[int, int]) -> None:
        machine = self.runner.system.everyone[part].machine
        before = self.parts[part]
        answer = machine.step(before, event)
        if answer.row is HOLE:
            raise Broken(Fault.HOLE, f"{self.runner.system.everyone[part].name} has no row for {show_event(event)} in {before}")
        taken = isinstance(answer, Taken)
        said = Said.TAKEN if taken else Said.IGNORED if isinstance(answer, Ignored) else Said.REFUSED
        why = answer.why if isinstance(answer, Ignored | Refused) else ""
        after, effects = (answer.state, answer.effects) if isinstance(answer, Taken) else (before, ())
        here = len(self.deliveries)
        self.deliveries.append(Delivery(part, event, said, why, answer.row.name, before, after, effects, cause))
        self.bound(part, after)
        self.parts[part] = after
        self.copy(part, event, said, (here, -1))
        for number, effect in enumerate(effects):
            if isinstance(effect, TIMER_EFFECTS):
                self.clock(part, effect)
            else:
                self.send(part, effect, said, (here, number))

    def bound(self, part: int, state: object) -> None:
        for name in self.runner.counters[part]:
            if getattr(state, name) > self.runner.counter:
                raise Cut
        for name, field in fields_of(type(state)).items():
            if not field.holds(getattr(state, name)):
                who = self.runner.system.everyone[part].name
                raise Broken(Fault.DOMAIN, f"{who}.{name} becomes {getattr(state, name)!r}, expected {field.expected()}")

    def clock(self, part: int, effect: Any) -> None:
        index = self.runner.timers[part].index(effect.timer)
        ledger = self.timers[part][index]
        if isinstance(effect, StartTimer):
            self.timers[part][index] = Ledger.RUNNING
        elif isinstance(effect, PauseTimer):
            self.timers[part][index] = Ledger.PAUSED if ledger is Ledger.RUNNING else ledger
        elif isinstance(effect, ResumeTimer):
            self.timers[part][index] = Ledger.RUNNING if ledger is Ledger.PAUSED else ledger
        else:
            self.timers[part][index] = Ledger.OFF

    def copy(self, part: int, thing: object, said: Said, cause: tuple[int, int]) -> None:
        for copy in self.runner.copies[part]:
            if copy.sees(thing, said):
                self.queue.append((self.runner.index[copy.to.name], self.checked(copy, copy.arrives(thing)), cause))

    def send(self, part: int, effect: object, said: Said, cause: tuple[int, int]) -> None:
        self.copy(part, effect, said, cause)
        received = type(effect) in self.runner.absorbed[part]
        for wire in self.runner.wires[part]:
            if not wire.carries(effect):
                continue
            received = True
            if isinstance(wire, Empties):
                self.empty(wire.channel)
                continue
            event = self.checked(wire, wire.arrives(effect))
            if isinstance(wire.to, Channel):
                self.push(wire.to, event)
            else:
                self.queue.append((self.runner.index[wire.to.name], event, cause))
        if not received:
            raise Broken(Fault.UNRECEIVED, f"nobody receives {show_event(effect)} of {self.runner.system.everyone[part].name}")

    def checked(self, along: Wire | Copy, event: object) -> object:
        for name, field in fields_of(type(event)).items():
            if not field.holds(getattr(event, name)):
                raise Broken(Fault.DOMAIN, f"{along} gives {field} the value {getattr(event, name)!r}, expected {field.expected()}")
        return event

    def push(self, channel: Channel, event: object) -> None:
        content = self.channels[self.runner.channel[channel.name]]
        if len(content) >= channel.capacity:
            raise Broken(
                Fault.OVERFLOW,
                f"the channel {channel.name} overflows: it holds {channel.capacity}, and {show_event(event)} is sent into it",
            )
        content.append(event)
        if channel.reordered:
            content.sort(key=repr)

    def empty(self, channel: Channel) -> None:
        content = self.channels[self.runner.channel[channel.name]]
        content.clear()
        self.done.append((channel.name, Happening.DROPPED, None))


def changes(runner: Runner, before: World, after: World) -> Iterator[tuple[str, object, object]]:
    """Every place where two states differ: its name, and both values."""
    for part, old, new in zip(runner.system.everyone, before.parts, after.parts, strict=True):
        for name in fields_of(type(old)):
            if getattr(old, name) != getattr(new, name):
                yield f"{part.name}.{name}", getattr(old, name), getattr(new, name)
    for i, part in enumerate(runner.system.everyone):
        for timer, was, now in zip(runner.timers[i], before.timers[i], after.timers[i], strict=True):
            if was is not now:
                yield f"{part.name}.{timer.name.lower()} timer", was, now
    for channel, queue, then in zip(runner.system.channels, before.channels, after.channels, strict=True):
        if queue != then:
            yield channel.name, queue, then
    for budget, left, rest in zip(runner.system.budgets, before.budgets, after.budgets, strict=True):
        if left != rest:
            yield f"budget {budget.name}", left, rest
