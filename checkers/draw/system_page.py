"""The Markdown page of a system, as GitHub renders it: parts, wires, channels, and what the environment may do."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from typing import Any, cast

import attrs

from turnproof.checkers.draw.markdown_page import escape, grid
from turnproof.checkers.draw.scene import Scene
from turnproof.machines.kernel import Formula, fields_of, show, show_constant
from turnproof.specs.system import AnyPart, Channel, Empties, SystemSpec
from turnproof.specs.system_parts import Budget, May, Switch

NOTE = "Written by `turnproof draw` from the wiring of the system; do not edit."
STEP = (
    "A step is one event from outside, one expiry, or one delivery, run to completion: each effect becomes the event of another part, "
    "first in first out, until nothing is left. What lies in a channel is delivered by a later step."
)

Cells = tuple[str, ...]
Section = tuple[str, Cells, list[Cells]]


def system_markdown(spec: SystemSpec, picture: Scene) -> str:
    """Everything that a system declares."""
    parts = [f"# {spec.system.name}", "", NOTE, "", *_about(spec), f"![{picture.title}]({picture.name}.svg)", "", STEP, ""]
    for title, header, rows in _sections(spec):
        if rows:
            parts += [f"## {title}", "", *grid(header, rows), ""]
    return "\n".join(parts).rstrip("\n") + "\n"


def _about(spec: SystemSpec) -> Iterator[str]:
    module = next((m for m in list(sys.modules.values()) if getattr(m, "SPEC", None) is spec), None)
    text = ((module.__doc__ if module else "") or "").strip()
    if text:
        yield from (line.rstrip() for line in text.replace("``", "`").splitlines())
        yield ""


def _sections(spec: SystemSpec) -> Iterator[Section]:
    system = spec.system
    yield "Parts", ("part", "machine", "starts as", "timers"), [_part(p) for p in system.parts]
    wires: list[Cells] = [_wire(n, wire) for n, wire in enumerate(system.wires, 1)]
    yield "Wires", ("#", "from", "effect", "only if", "to", "event", "through"), wires
    channels: list[Cells] = [
        (
            f"`{c.name}`",
            f"`{c.to.name}`",
            str(c.capacity),
            "any" if c.reordered else "first in first out",
            _show(c.when),
            _may(c.lossy),
            _may(c.droppable),
        )
        for c in system.channels
    ]
    yield "Channels", ("channel", "to", "holds", "order", "delivers only if", "may lose one", "may lose all"), channels
    comes: list[Cells] = [
        (f"`{s.to.name}`", escape(_template(s.event)), _show(s.when), _switch(s.switch), _budget(s.budget)) for s in system.spontaneous
    ]
    yield "From outside", ("part", "event", "only if", "switch", "budget"), comes
    yield "Switches", ("switch", "meaning"), [(f"`{s.name}`", escape(s.about)) for s in system.switches]
    yield "Monitors", ("monitor", "machine"), [(f"`{m.name}`", f"`{m.machine.name}`") for m in system.monitors]
    copies: list[Cells] = [
        (
            f"`{c.of.name}`",
            escape(_template(c.what)),
            c.said.value if c.said else "",
            _show(c.where),
            f"`{c.to.name}`",
            escape(_template(c.event or c.what)),
        )
        for c in system.copies
    ]
    yield "Copies", ("of", "event or effect", "answered", "only if", "to monitor", "event"), copies
    named = [("leaves the system", a) for a in system.absorbed] + [("never comes here", u) for u in system.unsent]
    rows: list[Cells] = [
        (f"`{n.part.name}`", what, ", ".join(f"`{cls.__name__}`" for cls in n.classes), escape(n.because)) for what, n in named if n.classes
    ]
    yield "What the rest of the world does", ("part", "", "effects or events", "why"), rows
    alike: list[Cells] = [
        (", ".join(f"`{p if isinstance(p, str) else p.name}`" for p in column),) for one in spec.interchangeable for column in one.columns
    ]
    yield "Interchangeable", ("any of these for another",), alike


def _part(part: AnyPart) -> tuple[str, ...]:
    usual, start = part.machine.initial, part.start
    differs = [n for n in fields_of(type(start)) if getattr(start, n) != getattr(usual, n) or n == part.machine.phase]
    shown = ", ".join(f"{n}={show_constant(getattr(start, n))}" for n in differs)
    return f"`{part.name}`", f"`{part.machine.name}`", escape(shown), escape(", ".join(show_constant(r.timer) for r in part.machine.timers))


def _wire(number: int, wire: object) -> tuple[str, ...]:
    if isinstance(wire, Empties):
        return (
            str(number),
            f"`{wire.source.name}`",
            escape(_template(wire.effect)),
            _show(wire.where),
            "",
            "everything under way is lost",
            f"`{wire.channel.name}`",
        )
    source, effect, to, event, where = (getattr(wire, name) for name in ("source", "effect", "to", "event", "where"))
    through = f"`{to.name}`" if isinstance(to, Channel) else ""
    target = to.to if isinstance(to, Channel) else to
    return (
        str(number),
        f"`{source.name}`",
        f"`{_class(effect)}`",
        _show(where),
        f"`{target.name}`",
        escape(_template(event or effect)),
        through,
    )


def _class(thing: object) -> str:
    return (thing if isinstance(thing, type) else type(thing)).__name__


def _template(thing: object) -> str:
    """``BeginRequested(a, visible)``; a class for any event of it; a field left open shows nothing."""
    if isinstance(thing, type):
        return thing.__name__
    cls = type(thing)
    given = ((f.name, getattr(thing, f.name)) for f in attrs.fields(cast(Any, cls)))
    shown = [f"{name}={show(v)}" for name, v in given if not (isinstance(v, Formula) and v.op == "var" and str(v.args[0]) == name)]
    return f"{cls.__name__}({', '.join(shown)})" if shown else cls.__name__


def _show(node: object) -> str:
    return "" if node is None else escape(show(node))


def _switch(switch: Switch | None) -> str:
    return "" if switch is None else f"`{switch.name}`"


def _budget(budget: Budget | None) -> str:
    return "" if budget is None else f"{budget.limit} in all for `{budget.name}`"


def _may(may: May | None) -> str:
    if may is None:
        return ""
    words: Sequence[str] = [w for w in (_show(may.when), _switch(may.switch), _budget(may.budget)) if w]
    return ", ".join(words) or "at any time"


__all__ = ["system_markdown"]
