"""A counterexample of a system as a person reads it: one numbered step for each step of the system, with everything it set off."""

from __future__ import annotations

from collections.abc import Iterator
from enum import Enum
from typing import cast

import attrs

from turnproof.checkers.network.run import Delivery, Occurrence, Runner, World, changes
from turnproof.checkers.network.triggers import Kind, Trigger, show_event
from turnproof.checkers.network.walk import Choice
from turnproof.checkers.story import expression, locate
from turnproof.checkers.verdict import Change, Story, StoryStep
from turnproof.machines.kernel import TIMER_EFFECTS, fields_of, show_constant
from turnproof.specs.language import Said
from turnproof.specs.system import Channel, System, SystemSpec, Wire

Value = str | int | bool


def tell(
    runner: Runner, spec: SystemSpec, steps: list[Occurrence], broken: str, claim: str, *, loop_from: int = 0, last: Choice | None = None
) -> Story:
    """The story of a run that was performed by :class:`Runner`. ``claim`` is the line of Python over ``run`` that fails because of it.

    ``last`` is the step that is not allowed, where the claim performs it.
    """
    start = runner.initial() if not steps else steps[0].before
    module, setup = _setup(runner.system, spec, steps, last)
    fields = _fields(runner, start)
    return Story(
        machine=runner.system.name,
        initial=", ".join(f"{name}={show(value)}" for name, value in fields),
        steps=tuple(_step(runner, number, step) for number, step in enumerate(steps, 1)),
        broken=broken,
        loop_from=loop_from,
        module=module,
        start=fields,
        setup=setup,
        claim=claim,
    )


def _step(runner: Runner, number: int, step: Occurrence) -> StoryStep:
    first = step.deliveries[0] if step.deliveries else None
    return StoryStep(
        number=number,
        actor=actor(step.trigger),
        event=happened(runner, step),
        answer="taken" if first is None else answered(first),
        row="" if first is None else f"{runner.system.everyone[first.part].name}: {first.row}",
        changes=tuple(Change(name, show(before), show(after)) for name, before, after in changes(runner, step.before, step.after)),
        effects=tuple(_effects(runner, step)),
        code=code(step.trigger, step.channels[0][2] if step.channels else None),
        state=_fields(runner, step.after),
    )


def answered(delivery: Delivery) -> str:
    """``taken``, or the answer with its reason."""
    return "taken" if delivery.said is Said.TAKEN else f"{delivery.said.value}: {delivery.why}"


def actor(trigger: Trigger) -> str:
    """Who began a step."""
    if trigger.kind is Kind.SEND:
        return "environment" if trigger.switch is None else f"environment ({trigger.switch.name})"
    return f"timer {cast(Enum, trigger.timer).name.lower()}" if trigger.kind is Kind.EXPIRE else f"channel {trigger.where}"


def happened(runner: Runner, step: Occurrence) -> str:
    """What began a step, in a few words."""
    trigger = step.trigger
    if trigger.kind is Kind.DROP:
        return "everything under way is lost"
    if trigger.kind is Kind.LOSE:
        return f"{show_event(step.channels[0][2])} is lost"
    first = step.deliveries[0]
    return f"{runner.system.everyone[first.part].name} <- {show_event(first.event)}"


def _effects(runner: Runner, step: Occurrence) -> Iterator[str]:
    for here, delivery in enumerate(step.deliveries):
        part = runner.system.everyone[delivery.part]
        for number, effect in enumerate(delivery.effects):
            if isinstance(effect, TIMER_EFFECTS):
                yield f"{part.name}.{show_event(effect)}"
                continue
            reached = [
                f"{w.to.name}"
                for w in runner.wires[delivery.part]
                if isinstance(w, Wire) and isinstance(w.to, Channel) and w.carries(effect)
            ]
            for other in step.deliveries:
                if other.cause == (here, number) and other.part < len(runner.system.parts):
                    reached.append(f"{runner.system.everyone[other.part].name} <- {show_event(other.event)}, {answered(other)}")
            yield f"{part.name}.{show_event(effect)}" + "".join(f" -> {where}" for where in reached)


def code(trigger: Trigger, event: object) -> str:
    """The arguments of ``Play.send`` for a step that ``trigger`` begins; ``event`` is what it takes out of a channel."""
    if trigger.kind is Kind.SEND:
        return f'"{trigger.where}", {expression(trigger.event)}'
    if trigger.kind is Kind.EXPIRE:
        return f'"{trigger.where}", {expression(trigger.timer)}'
    if trigger.kind is Kind.DROP:
        return f'"{trigger.where}", "drop"'
    return f'"{trigger.where}", {expression(event)}' + (', "lose"' if trigger.kind is Kind.LOSE else "")


def show(value: object) -> str:
    """A value of a state, a queue, or a timer, as text."""
    if isinstance(value, tuple):
        return "[" + ", ".join(show(v) for v in value) + "]"
    return show_event(value) if attrs.has(type(value)) else show_constant(value)


def _fields(runner: Runner, world: World) -> tuple[tuple[str, Value], ...]:
    made: list[tuple[str, Value]] = []
    for part, now in zip(runner.system.everyone, world.parts, strict=True):
        for name in fields_of(type(now)):
            value = getattr(now, name)
            made.append((f"{part.name}.{name}", value if isinstance(value, bool | int) and not isinstance(value, Enum) else show(value)))
    made += [(channel.name, show(queue)) for channel, queue in zip(runner.system.channels, world.channels, strict=True)]
    return tuple(made)


def _setup(system: System, spec: SystemSpec, steps: list[Occurrence], last: Choice | None) -> tuple[str, tuple[str, ...]]:
    """Import path of the specification, and the lines that bind ``run``."""
    place = locate(spec)
    module, name = place if place is not None else ("", "SPEC")
    imports: dict[str, set[str]] = {"turnproof.checkers.network.play": {"Play"}}
    if module:
        imports.setdefault(module, set()).add(name)
    values = [v for s in steps for v in (s.trigger.timer, s.trigger.event, *(c[2] for c in s.channels))]
    values += [] if last is None else [last.trigger.timer, last.event]
    for value in (v for v in values if v is not None):
        for cls in _classes(value):
            imports.setdefault(cls.__module__, set()).add(cls.__name__)
    lines = [f"from {path} import {', '.join(sorted(names))}" for path, names in sorted(imports.items())]
    if not module:
        lines.append("SPEC = ...  # the specification stands in no module: bind it here")
    number = next((n for n, variant in enumerate(spec.variants) if variant.system is system), None)
    other = f", {name}.variants[{number}].system" if number is not None else ""
    return module, (*lines, f"run = Play({name}{other})")


def _classes(value: object) -> Iterator[type]:
    if isinstance(value, Enum):
        yield type(value)
    elif attrs.has(type(value)):
        yield type(value)
        for field in fields_of(type(value)):
            yield from _classes(getattr(value, field))
