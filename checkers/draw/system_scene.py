"""The picture of a system: its parts, what they say to each other, what lies under way, what comes from outside."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from turnproof.checkers.draw.scene import Box, Kind, Line, Link, Scene, Span, Tone, line, wrap
from turnproof.machines.kernel import show_constant
from turnproof.specs.system import AnyPart, Channel, Empties, System

WIDEST = 260
"""Pixels of a line in a box."""
MOST = 6
"""Lines of one label; the page has them all."""
LEGEND = (
    (Kind.PHASE, "part, with what comes to it from outside and its timers"),
    (Kind.TERMINAL, "monitor: hears, and never answers"),
    (Kind.HUB, "channel: delivers later, first in first out unless it says otherwise"),
)


def system_scene(system: System) -> Scene:
    """One box a part, monitor and channel; one label for all that goes from one to another."""
    boxes = [_part(system, part) for part in system.everyone] + [_channel(channel) for channel in system.channels]
    links: list[Link] = []
    for n, ((source, target), said) in enumerate(_talk(system).items()):
        label = Box(f"talk {n}", Kind.LABEL, (tuple(_label(said)),))
        boxes.append(label)
        links += [Link(source, label.id, arrow=False), Link(label.id, target)]
    links += [Link(_place(c), c.to.name) for c in system.channels]
    note = f"{len(system.parts)} parts, {len(system.monitors)} monitors, {len(system.channels)} channels, {len(system.wires)} wires"
    return Scene(system.name, system.name, note, tuple(boxes), tuple(links), downwards=None,
                 labels="effect of the one: event of the other", legend=LEGEND)  # fmt: skip


def _place(channel: Channel) -> str:
    return f"channel {channel.name}"


def _talk(system: System) -> dict[tuple[str, str], list[tuple[str, str]]]:
    """From and to -> (what the one emits, what the other gets), each once, in the order of the wires."""
    found: dict[tuple[str, str], list[tuple[str, str]]] = {}
    for wire in system.wires:
        if isinstance(wire, Empties):
            ends, said = (wire.source.name, _place(wire.channel)), (wire.effect_class.__name__, "empties it")
        else:
            target = _place(wire.to) if isinstance(wire.to, Channel) else wire.to.name
            ends, said = (wire.source.name, target), (wire.effect_class.__name__, wire.event_class.__name__)
        found.setdefault(ends, []).append(said)
    for copy in system.copies:
        found.setdefault((copy.of.name, copy.to.name), []).append((copy.what_class.__name__, copy.event_class.__name__))
    return {ends: list(dict.fromkeys(said)) for ends, said in found.items()}


def _label(said: Sequence[tuple[str, str]]) -> Iterator[Line]:
    shown = said if len(said) <= MOST else said[: MOST - 1]
    for effect, event in shown:
        text = [Span(effect, Tone.STRONG)] if effect == event else [Span(f"{effect}: "), Span(event, Tone.STRONG)]
        yield from wrap(text, WIDEST)
    if len(said) > len(shown):
        yield line(f"and {len(said) - len(shown)} more", Tone.QUIET)


def _part(system: System, part: AnyPart) -> Box:
    head = [line(part.name, Tone.TITLE)]
    if part.machine.name != part.name:
        head.append(line(part.machine.name, Tone.QUIET))
    sections = [tuple(head)]
    comes = dict.fromkeys(s.event_class.__name__ for s in system.spontaneous if s.to.name == part.name)
    if comes:
        sections.append((line("from outside", Tone.QUIET), *_names(list(comes))))
    unsent = {cls for u in system.unsent if u.part.name == part.name for cls in u.classes}
    timers = [show_constant(rule.timer) for rule in part.machine.timers if rule.expires not in unsent]
    if timers and part not in system.monitors:
        sections.append((line("timers", Tone.QUIET), *_names(timers)))
    return Box(part.name, Kind.TERMINAL if part in system.monitors else Kind.PHASE, tuple(sections))


def _names(names: Sequence[str]) -> Iterator[Line]:
    shown = list(names) if len(names) <= 2 * MOST else [*names[: 2 * MOST - 1], f"and {len(names) - 2 * MOST + 1} more"]
    yield from wrap([Span(", ".join(shown))], WIDEST, hang=0)


def _channel(channel: Channel) -> Box:
    words = [f"holds {channel.capacity}"]
    words += ["in any order"] if channel.reordered else []
    words += ["may lose one"] if channel.lossy is not None else []
    words += ["may lose all"] if channel.droppable is not None else []
    return Box(_place(channel), Kind.HUB, ((line(channel.name, Tone.TITLE), *wrap([Span(", ".join(words))], WIDEST, hang=0)),))


__all__ = ["system_scene"]
