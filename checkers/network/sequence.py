"""A run of a system as a Mermaid sequence diagram: one column a part, events between them, channels as dotted arrows."""

from __future__ import annotations

from collections.abc import Iterator

from turnproof.checkers.network.run import Delivery, Occurrence, Runner, changes
from turnproof.checkers.network.story import actor, show
from turnproof.checkers.network.triggers import Kind, show_event
from turnproof.machines.kernel import TIMER_EFFECTS
from turnproof.specs.language import Said
from turnproof.specs.system import Channel, Wire

OUTSIDE = "outside"


def sequence(runner: Runner, steps: list[Occurrence], broken: str, *, loop_from: int = 0) -> str:
    """The diagram of a run. ``broken`` is its last note; from step ``loop_from`` on it goes round for ever (0: it does not)."""
    names = [part.name for part in runner.system.everyone]
    lines = ["sequenceDiagram", f"    participant {OUTSIDE}", *(f"    participant {name}" for name in names)]
    inner = "    "
    for number, step in enumerate(steps, 1):
        if number == loop_from:
            lines.append("    loop for ever")
            inner = "        "
        lines += [inner + line for line in _step(runner, number, step)]
    if inner != "    ":
        lines.append("    end")
    elif loop_from:
        lines.append(f"    Note over {names[0]}: nothing happens any more, for ever")
    lines.append(f"    Note over {OUTSIDE},{names[-1]}: broken: {_safe(broken)}")
    return "\n".join(lines) + "\n"


def _step(runner: Runner, number: int, step: Occurrence) -> Iterator[str]:
    trigger = step.trigger
    if not step.deliveries:
        what = "everything under way" if trigger.kind is Kind.DROP else show_event(step.channels[0][2])
        to = runner.system.channels[runner.channel[trigger.where]].to.name
        yield f"{OUTSIDE}-x{to}: {number}. {_safe(f'{what} is lost in {trigger.where}')}"
    for here, delivery in enumerate(step.deliveries):
        yield from _delivered(runner, number, step, here, delivery)
    changed = ", ".join(f"{name}: {show(old)} → {show(new)}" for name, old, new in changes(runner, step.before, step.after))
    if changed:
        yield f"Note over {_last(runner, step)}: {_safe(changed)}"


def _delivered(runner: Runner, number: int, step: Occurrence, here: int, delivery: Delivery) -> Iterator[str]:
    part = runner.system.everyone[delivery.part].name
    arrow = "->>" if delivery.said is Said.TAKEN else "-x"
    answer = "" if delivery.said is Said.TAKEN else f" ({delivery.said.value}: {delivery.why})"
    if here == 0:
        through = "" if step.trigger.kind in (Kind.SEND,) else f" [{actor(step.trigger)}]"
        dotted = "-" + arrow if step.trigger.kind is Kind.DELIVER else arrow
        yield f"{OUTSIDE}{dotted}{part}: {number}. {_safe(show_event(delivery.event) + through + answer)}"
    else:
        sender = runner.system.everyone[step.deliveries[delivery.cause[0]].part].name
        yield f"{sender}{arrow}{part}: {_safe(show_event(delivery.event) + answer)}"
    for effect in delivery.effects:
        wires = [w for w in runner.wires[delivery.part] if isinstance(w, Wire) and w.carries(effect)]
        for wire in wires:
            if isinstance(wire.to, Channel):
                yield f"{part}--){wire.target.name}: {_safe(f'{show_event(wire.arrives(effect))} into {wire.to.name}')}"
        if not wires and not isinstance(effect, TIMER_EFFECTS):
            yield f"{part}->>{OUTSIDE}: {_safe(show_event(effect))}"


def _last(runner: Runner, step: Occurrence) -> str:
    if step.deliveries:
        return runner.system.everyone[step.deliveries[0].part].name
    return runner.system.channels[runner.channel[step.trigger.where]].to.name


def _safe(text: str) -> str:
    """Text inside a Mermaid line: a semicolon or a line break would end it, a number sign would begin an entity."""
    return text.translate({ord("#"): "#35;", ord(";"): "#59;", ord("\n"): " "})
