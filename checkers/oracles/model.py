"""A system as a programme of handlers: the form from which every oracle's text is written.

One handler for each pair of a part and a class of event that can reach it; its branches are the rows of the table, in order, with
the wires already followed: an effect becomes the events put into the queue of this step, or pushed into a channel. Every formula of
a branch reads the part's state before the branch, and the event's fields.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping
from enum import Enum
from typing import Any

import attrs

from turnproof.checkers.network.run import Fault
from turnproof.checkers.network.triggers import Trigger, substitute, triggers
from turnproof.checkers.oracles.folding import conjunction, fold, negation, span
from turnproof.machines.kernel import TIMER_EFFECTS, Field, Formula, OnlyIf, Row, Variable, fields_of
from turnproof.machines.kernel.domain import Kind as FieldKind
from turnproof.specs.language import Always, Property, Said, Sometimes
from turnproof.specs.system import AnyPart, Channel, Copy, Empties, System, SystemSpec, Wire
from turnproof.specs.system_words import reads_step

Key = tuple[str, type]
"""Name of a part, class of an event."""


@attrs.frozen(eq=False, kw_only=True)
class Action:
    """Something that a branch does where ``condition`` holds."""

    condition: object = True


@attrs.frozen(eq=False)
class Put(Action):
    """The event is put at the end of the queue of this step. ``args`` in the order of the event's fields."""

    key: Key
    args: tuple[object, ...]


@attrs.frozen(eq=False)
class Push(Action):
    """The event is put into a channel."""

    channel: Channel
    key: Key
    args: tuple[object, ...]


@attrs.frozen(eq=False)
class Clear(Action):
    """Everything under way in the channel is lost."""

    channel: Channel


@attrs.frozen(eq=False)
class Clock(Action):
    """A timer of the part is started, stopped, paused or resumed: ``kind`` is the class of effect."""

    part: str
    timer: Enum
    kind: type


@attrs.frozen(eq=False)
class Wrong(Action):
    """The step is not allowed (a fault), or leaves the bounds (None)."""

    fault: Fault | None
    what: str


@attrs.frozen(eq=False)
class Branch:
    """One row. ``checks`` come before ``actions``, which come before ``updates``."""

    row: str
    said: Said
    condition: object
    checks: tuple[Wrong, ...]
    actions: tuple[Action, ...]
    updates: tuple[tuple[str, object], ...]

    @property
    def idle(self) -> bool:
        """Whether it does nothing."""
        return not (self.checks or self.actions or self.updates)


@attrs.frozen(eq=False)
class Handler:
    """What a part does with a class of event: the first branch whose condition holds."""

    part: AnyPart
    event: type
    params: tuple[Field, ...]
    branches: tuple[Branch, ...]

    @property
    def total(self) -> bool:
        """Whether some branch always applies."""
        return bool(self.branches) and self.branches[-1].condition is True

    def calls(self) -> frozenset[Key]:
        """Whom it may put an event into the queue for."""
        return frozenset(a.key for b in self.branches for a in b.actions if isinstance(a, Put))


@attrs.frozen(eq=False)
class Claim:
    """A property of states, as an oracle is asked: ``bad`` must hold nowhere, or ``bad`` must hold somewhere (``reach``)."""

    prop: Property
    number: int
    formula: object
    reach: bool


@attrs.define(eq=False)
class Model:
    """The whole programme."""

    spec: SystemSpec
    system: System
    triggers: tuple[Trigger, ...]
    handlers: dict[Key, Handler]
    claims: tuple[Claim, ...]

    @property
    def counter(self) -> int:
        """Bound of counters."""
        return self.spec.counter

    def reached(self, start: Iterable[Key]) -> tuple[Key, ...]:
        """Everything that may lie in the queue of a step in which ``start`` were handled first, in a stable order."""
        found: dict[Key, None] = {}
        waiting = [k for key in start for k in self.ordered(self.handlers[key].calls())]
        while waiting:
            key = waiting.pop()
            if key not in found:
                found[key] = None
                waiting += self.ordered(self.handlers[key].calls())
        return self.ordered(found)

    def ordered(self, keys: Iterable[Key]) -> tuple[Key, ...]:
        """Keys in the order of the handlers."""
        wanted = set(keys)
        return tuple(key for key in self.handlers if key in wanted)

    def longest(self) -> int:
        """Most events of one step that wait in the queue: not the first, and never more than the system allows."""
        return min(self.system.cascade, max((_size(self, key, ()) for key in self.handlers), default=1)) - 1

    def messages(self, channel: Channel) -> tuple[Key, ...]:
        """What may lie in a channel."""
        pushes = (a for h in self.handlers.values() for b in h.branches for a in b.actions if isinstance(a, Push) and a.channel is channel)
        return self.ordered(a.key for a in pushes)

    def may_go_wrong(self) -> bool:
        """Whether a step might not be allowed, or leave the bounds, as far as the text of the tables shows."""
        return self.risky(self.handlers)

    def risky(self, first: Iterable[Key]) -> bool:
        """The same of a step in which ``first`` are handled first."""
        start = tuple(first)
        return self.endless(start) or any(
            not h.total or any(b.checks or any(isinstance(a, Wrong | Push) for a in b.actions) for b in h.branches)
            for h in (self.handlers[key] for key in (*start, *self.reached(start)))
        )

    def endless(self, first: Iterable[Key]) -> bool:
        """Whether a step in which ``first`` are handled first might deliver more than the system allows."""
        return any(_size(self, key, ()) > self.system.cascade for key in first)


def _size(model: Model, key: Key, above: tuple[Key, ...]) -> int:
    """Most deliveries that handling ``key`` brings about, itself included."""
    if key in above or len(above) > model.system.cascade:
        return model.system.cascade + 1
    handler, most = model.handlers[key], 0
    for branch in handler.branches:
        most = max(most, sum(_size(model, a.key, (*above, key)) for a in branch.actions if isinstance(a, Put)))
    return min(1 + most, model.system.cascade + 1)


# ── building ──


def build(spec: SystemSpec, system: System | None = None) -> Model:
    """The programme of ``spec.system``, or of ``system`` instead (a variant)."""
    chosen = spec.system if system is None else system
    every = tuple(t for t in triggers(chosen, tokens=spec.tokens, counter=spec.counter) if t.guard is None or fold(t.guard) is not False)
    model = Model(spec, chosen, every, {}, tuple(_claims(spec.properties)))
    builder = _Builder(model)
    waiting: list[Key] = [(t.where, type(t.event)) for t in every if t.event is not None]
    seen = set(waiting)
    found: dict[Key, Handler] = {}
    while waiting:
        key = waiting.pop()
        handler = found[key] = builder.handler(key)
        for action in (a for b in handler.branches for a in b.actions):
            if isinstance(action, Put | Push) and action.key not in seen:
                seen.add(action.key)
                waiting.append(action.key)
    for part in chosen.everyone:
        for event in part.machine.events:
            if (part.name, event) in found:
                model.handlers[part.name, event] = found[part.name, event]
    return model


def _claims(properties: Iterable[Property]) -> Iterator[Claim]:
    number = 0
    for prop in properties:
        if isinstance(prop, Always) or (isinstance(prop, Sometimes) and not reads_step(prop.holds)):
            number += 1
            reach = isinstance(prop, Sometimes)
            yield Claim(prop, number, fold(prop.holds if reach else negation(prop.holds)), reach)


def params(event: type) -> tuple[Field, ...]:
    """The fields of an event that a table can read."""
    return tuple(f for f in fields_of(event).values() if f.kind is not FieldKind.OPAQUE)


class _Builder:
    def __init__(self, model: Model) -> None:
        self.model, self.system = model, model.system

    def handler(self, key: Key) -> Handler:
        part, event = self.system.part(key[0]), key[1]
        branches: list[Branch] = []
        for row in (r for r in part.machine.rows if r.event is event):
            branch = self.branch(part, event, row)
            if branch.condition is False:
                continue
            branches.append(branch)
            if branch.condition is True:
                break
        return Handler(part, event, params(event), tuple(branches))

    def branch(self, part: AnyPart, event: type, row: Row[Any, Any]) -> Branch:
        said = Said(row.answer)
        state, phase = part.machine.state, part.machine.phase
        at: object = True
        if row.phases and set(row.phases) != set(part.machine.phases):
            at = _any(Formula("eq", (Formula("var", (Variable(state, phase),)), p)) for p in row.phases)
        condition = fold(conjunction([at, True if row.guard is None else row.guard]))
        updates = tuple(self.updates(part, row)) if said is Said.TAKEN else ()
        checks = tuple(self.bounds(part, updates))
        return Branch(row.name, said, condition, checks, tuple(self.actions(part, event, row, said)), updates)

    def updates(self, part: AnyPart, row: Row[Any, Any]) -> Iterator[tuple[str, object]]:
        state = part.machine.state
        for name, field in fields_of(state).items():
            if field.kind is FieldKind.OPAQUE:
                continue
            own = Formula("var", (Variable(state, name),))
            node: object = own if row.data is None else getattr(row.data, name)
            if name == part.machine.phase and row.to is not None:
                node = row.to
            if not (isinstance(node, Formula) and node.op == "var" and node.args[0] == Variable(state, name)):
                yield name, fold(node)

    def bounds(self, part: AnyPart, updates: Iterable[tuple[str, object]]) -> Iterator[Wrong]:
        fields = fields_of(part.machine.state)
        late: list[Wrong] = []
        for name, node in updates:
            field = fields[name]
            if field.kind is FieldKind.COUNTER and span(node, self.model.counter, part.machine.state)[1] > self.model.counter:
                yield Wrong(None, f"{part.name}.{name} leaves its bound", condition=fold(Formula("gt", (node, self.model.counter))))
            late += self.domain(part, field, node, f"{part.name}.{name}", True)
        yield from late

    def domain(self, part: AnyPart, field: Field, node: object, place: str, condition: object) -> Iterator[Wrong]:
        if field.kind not in (FieldKind.RANGE, FieldKind.COUNTER):
            return
        low, high = span(node, self.model.counter, part.machine.state)
        tests = [Formula("lt", (node, field.lo))] if low < field.lo else []
        if field.kind is FieldKind.RANGE and high > field.hi:
            tests.append(Formula("gt", (node, field.hi)))
        if tests:
            yield Wrong(Fault.DOMAIN, f"{place} leaves its domain", condition=fold(conjunction([condition, _any(tests)])))

    def actions(self, part: AnyPart, event: type, row: Row[Any, Any], said: Said) -> Iterator[Action]:
        mine = {name: Formula("var", (Variable(event, name),)) for name in fields_of(event)}
        yield from self.copied(part, event, mine, True, said)
        for item in row.emit if said is Said.TAKEN else ():
            condition = fold(item.condition) if isinstance(item, OnlyIf) else True
            effect: Any = item.effect if isinstance(item, OnlyIf) else item
            if condition is False:
                continue
            if isinstance(effect, TIMER_EFFECTS):
                yield Clock(part.name, effect.timer, type(effect), condition=condition)
                continue
            values = {name: getattr(effect, name) for name in fields_of(type(effect))}
            yield from self.copied(part, type(effect), values, condition, said)
            yield from self.sent(part, type(effect), values, condition)

    def copied(self, part: AnyPart, what: type, values: Mapping[str, object], condition: object, said: Said) -> Iterator[Action]:
        for copy in self.system.copies:
            if copy.of.name == part.name and copy.what_class is what and copy.said in (None, said):
                yield from self.delivered(part, copy, copy.to, what, values, condition)

    def sent(self, part: AnyPart, effect: type, values: Mapping[str, object], condition: object) -> Iterator[Action]:
        missed: object = not any(a.part.name == part.name and effect in a.classes for a in self.system.absorbed)
        for wire in (w for w in self.system.wires if w.source.name == part.name and w.effect_class is effect):
            where = True if wire.where is None else fold(replaced(wire.where, effect, values))
            missed = fold(conjunction([missed, negation(where)]))
            if isinstance(wire, Empties):
                if fold(conjunction([condition, where])) is not False:
                    yield Clear(wire.channel, condition=fold(conjunction([condition, where])))
            else:
                yield from self.delivered(part, wire, wire.to, effect, values, condition)
        if missed is not False:
            yield Wrong(
                Fault.UNRECEIVED, f"nobody receives {part.name}.{effect.__name__}", condition=fold(conjunction([condition, missed]))
            )

    def delivered(
        self, part: AnyPart, along: Wire | Copy, to: AnyPart | Channel, what: type, values: Mapping[str, object], condition: object
    ) -> Iterator[Action]:
        template, where = along.event, along.where
        when = fold(conjunction([condition, True if where is None else replaced(where, what, values)]))
        if when is False:
            return
        event = what if template is None else template if isinstance(template, type) else type(template)
        made: Any = template() if isinstance(template, type) else template
        args = []
        for field in params(event):
            node = values[field.name] if template is None else getattr(made, field.name)
            args.append(fold(replaced(node, what, values)) if template is not None else fold(node))
            yield from self.domain(part, field, args[-1], str(along), when)
        if isinstance(to, Channel):
            yield Push(to, (to.to.name, event), tuple(args), condition=when)
        else:
            yield Put((to.name, event), tuple(args), condition=when)


def replaced(node: object, cls: type, values: Mapping[str, object]) -> object:
    """``node`` with the fields of ``cls`` replaced by ``values``."""
    return substitute(node, cls, dict(values)) if isinstance(node, Formula) else node


def _any(tests: Iterable[Formula]) -> Formula:
    first, *rest = tests
    for other in rest:
        first = first | other
    return first


def content(model: Model, channel: Channel) -> Iterator[tuple[Key, tuple[object, ...]]]:
    """Every event that may lie in a channel, with its values."""
    for key in model.messages(channel):
        domains = [f.values(tokens=model.spec.tokens, counter=model.counter) for f in params(key[1])]
        for values in itertools.product(*domains):
            yield key, values


def constant_args(event: object) -> tuple[object, ...]:
    """The values of an event's fields."""
    return tuple(getattr(event, f.name) for f in params(type(event)))


__all__ = [
    "Action", "Branch", "Claim", "Clear", "Clock", "Handler", "Key", "Model", "Push", "Put", "Wrong", "build", "constant_args",
    "content", "params",
]  # fmt: skip
