"""What a system declares and no run ever uses: a spontaneous event that never comes, a wire that never carries, a switch without effect."""

from __future__ import annotations

from collections.abc import Iterator

from turnproof.checkers.network.triggers import Kind, Trigger
from turnproof.checkers.network.walk import Walk
from turnproof.specs.language import Said
from turnproof.specs.system import System

Unused = tuple[str, tuple[str, ...]]
"""What must be used, and one sentence for each thing that is not."""


def unused(system: System, triggers: tuple[Trigger, ...], walk: Walk) -> Iterator[Unused]:
    """Each kind of thing with what no run uses."""
    yield "every spontaneous event is taken at last", tuple(_spontaneous(system, triggers, walk))
    yield "every timer expires at last", tuple(_timers(system, triggers, walk))
    yield "every channel delivers, and fails as it may", tuple(_channels(triggers, walk))
    yield (
        "every wire and copy is used",
        (
            *(f"wire {w}: never used" for n, w in enumerate(system.wires) if n not in walk.wires),
            *(f"copy {c}: never used" for n, c in enumerate(system.copies) if n not in walk.copies),
        ),
    )
    yield "every switch has an effect", tuple(_switches(system, triggers, walk))


def _spontaneous(system: System, triggers: tuple[Trigger, ...], walk: Walk) -> Iterator[str]:
    taken = {(h.part, type(h.event)) for h in walk.handled if h.said is Said.TAKEN}
    for source in system.spontaneous:
        mine = [n for n, t in enumerate(triggers) if t.source is source]
        if not any(n in walk.taken for n in mine):
            yield f"{source} never comes: its guard never holds"
        elif (source.to.name, source.event_class) not in taken:
            yield f"{source} comes, but is never taken: it is always ignored or refused"


def _timers(system: System, triggers: tuple[Trigger, ...], walk: Walk) -> Iterator[str]:
    unsent = {(u.part.name, cls) for u in system.unsent for cls in u.classes}
    for n, t in enumerate(triggers):
        if t.kind is not Kind.EXPIRE:
            continue
        declared = (t.where, type(t.event)) in unsent
        if n not in walk.taken and not declared:
            yield f"{t}, never: if it is never started here on purpose, write Unsent({t.where}, {type(t.event).__name__})"
        elif n in walk.taken and declared:
            yield f"{t}, although Unsent({t.where}, {type(t.event).__name__}) says that it never does"


def _channels(triggers: tuple[Trigger, ...], walk: Walk) -> Iterator[str]:
    seen = {(t.kind, t.where) for n, t in enumerate(triggers) if n in walk.taken}
    for kind, where in dict.fromkeys((t.kind, t.where) for t in triggers if t.kind not in (Kind.SEND, Kind.EXPIRE)):
        if (kind, where) not in seen:
            yield f"{where} never {kind.value}s"


def _switches(system: System, triggers: tuple[Trigger, ...], walk: Walk) -> Iterator[str]:
    for switch in system.switches:
        mine = [n for n, t in enumerate(triggers) if t.switch == switch]
        if not any(walk.taken.get(n, False) for n in mine):
            yield f"the switch {switch.name!r} has no effect: nothing it allows ever changes a state"
