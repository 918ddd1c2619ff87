"""The variables of a system: every field of every part, the ledger of every timer, what is under way, and what is left of budgets.

| what | variables | sort |
|---|---|---|
| a field of a part | ``now.a.phase`` | as in :mod:`turnproof.checkers.smt.terms`; Opaque fields are left out |
| a timer of a part | ``now.a.timer.settle`` | off, running or paused, as bits |
| a channel | ``now.replies.length`` | Int, 0 to its capacity |
| its slots, first to arrive first | ``now.replies.0.kind`` (if there are several), ``now.replies.0.Answer.number`` | Int; as the field |
| a budget | ``now.budget.losses`` | Int, what is left of it |

Channels keep their capacity in a proof: a message more is the fault that exploration reports too, and is shown to be impossible.
A slot that holds nothing is all zeros. A reordered channel is kept in the order of sending here (exploration sorts it); which
of its slots is next to arrive is open, so the order says nothing.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from enum import Enum

import attrs

from turnproof.checkers.network.run import World
from turnproof.checkers.smt import z3api
from turnproof.checkers.smt.terms import NUMBER, Sort, Term, Values, domain, sort_of
from turnproof.checkers.smt.translate import plain
from turnproof.checkers.smt.z3api import Context, Expr
from turnproof.machines.kernel import Field, Kind, TableError, fields_of
from turnproof.specs.system import Channel, Ledger, System, Wire


@attrs.frozen(eq=False)
class Place:
    """One variable. ``lo`` and ``hi`` bound the numbers of a Range."""

    name: str
    kind: Kind
    now: Term
    next: Term
    start: int
    domain: Expr | None
    lo: int = 0
    hi: int = 0


@attrs.frozen(eq=False)
class Slots:
    """A channel: how many events are under way, and each slot's class (an index into ``events``; None if there is but one) and fields."""

    channel: Channel
    events: tuple[type, ...]
    length: Place
    kinds: tuple[Place | None, ...]
    fields: tuple[Mapping[tuple[type, str], Place], ...]

    def slot(self, number: int) -> tuple[Place, ...]:
        """Every variable of one slot."""
        kind = self.kinds[number]
        return (*(() if kind is None else (kind,)), *self.fields[number].values())


class Variables:
    """The variables of one system, in a context of their own. Raises :class:`TableError` where two of them have one name."""

    def __init__(self, system: System) -> None:
        self.system, self.context, self.values = system, Context(), Values()
        self.places: list[Place] = []
        everyone = system.everyone
        self.fields = [
            {
                name: self._of_field(f"{part.name}.{name}", field, getattr(part.start, name))
                for name, field in fields_of(part.machine.state).items()
                if field.kind is not Kind.OPAQUE
            }
            for part in everyone
        ]
        self.timers: list[dict[Enum, Place]] = [
            {rule.timer: self._ledger(part.name, rule.timer) for rule in part.machine.timers} for part in everyone
        ]
        self.channels = tuple(self._channel(channel) for channel in system.channels)
        self.budgets = tuple(self._range(f"budget.{_word(b.name)}", 0, b.limit, b.limit) for b in system.budgets)
        self.part = {p.name: n for n, p in enumerate(everyone)}
        self.channel = {c.name: n for n, c in enumerate(system.channels)}
        self.by_name = {place.name: place for place in self.places}
        if len(self.by_name) < len(self.places):
            twice = next(p.name for n, p in enumerate(self.places) if p.name in {q.name for q in self.places[:n]})
            raise TableError(f"system {system.name}: two things are called {twice}, and a solver could not tell them apart")

    def _place(self, name: str, kind: Kind, sort: Sort, start: int, constraint: Expr | None, lo: int = 0, hi: int = 0) -> Place:
        full = plain(name)
        now, after = (Term(self.context.symbol(f"{when}.{full}", sort.smt), sort) for when in ("now", "next"))
        made = Place(full, kind, now, after, start, constraint, lo, hi)
        self.places.append(made)
        return made

    def _of_field(self, name: str, field: Field, start: object) -> Place:
        sort = sort_of(field)
        symbol = self.context.symbol(f"now.{plain(name)}", sort.smt)
        return self._place(name, field.kind, sort, self.values.number(start), domain(symbol, field, self.context), field.lo, field.hi)

    def _range(self, name: str, lo: int, hi: int, start: int) -> Place:
        symbol = self.context.symbol(f"now.{plain(name)}", z3api.INT)
        return self._place(name, Kind.RANGE, NUMBER, start, self.within(symbol, lo, hi), lo, hi)

    def within(self, term: Expr, lo: int, hi: int) -> Expr:
        """That a number lies between two others."""
        return z3api.conjunction((z3api.at_most(self.context.integer(lo), term), z3api.at_most(term, self.context.integer(hi))))

    def _ledger(self, part: str, timer: Enum) -> Place:
        name, sort = f"{part}.timer.{timer.name.lower()}", LEDGER
        symbol = self.context.symbol(f"now.{plain(name)}", sort.smt)
        most = self.context.literal(len(Ledger) - 1, sort.smt)
        return self._place(name, Kind.ENUM, sort, self.values.number(Ledger.OFF), z3api.unsigned_at_most(symbol, most))

    def _channel(self, channel: Channel) -> Slots:
        wires = (w for w in self.system.wires if isinstance(w, Wire) and w.to is channel)
        events = tuple(dict.fromkeys(w.event_class for w in wires))
        length = self._range(f"{channel.name}.length", 0, channel.capacity, 0)
        kinds, fields = [], []
        for number in range(channel.capacity):
            name = f"{channel.name}.{number}"
            kinds.append(self._range(f"{name}.kind", 0, len(events) - 1, 0) if len(events) > 1 else None)
            fields.append({(e, f): self._slot(f"{name}.{e.__name__}.{f}", field) for e in events for f, field in _readable(e)})
        return Slots(channel, events, length, tuple(kinds), tuple(fields))

    def _slot(self, name: str, field: Field) -> Place:
        """A field of a slot: zero while the slot is empty, so the domain is widened to hold zero."""
        sort = sort_of(field)
        if field.kind is Kind.RANGE:
            return self._range(name, min(0, field.lo), max(0, field.hi), 0)
        symbol = self.context.symbol(f"now.{plain(name)}", sort.smt)
        return self._place(name, field.kind, sort, 0, domain(symbol, field, self.context), field.lo, field.hi)

    # ── states as numbers ──

    def part_numbers(self, part: int, state: object, ledgers: tuple[Ledger, ...]) -> Iterator[int]:
        """The numbers of a part's fields and timers, in the order of :meth:`part_places`."""
        yield from (self.values.number(getattr(state, name)) for name in self.fields[part])
        yield from (self.values.number(ledger) for ledger in ledgers)

    def part_places(self, part: int) -> tuple[Place, ...]:
        """The variables of a part."""
        return (*self.fields[part].values(), *self.timers[part].values())

    def channel_numbers(self, channel: int, content: tuple[object, ...]) -> Iterator[int]:
        """The numbers of a channel's variables, in the order of :meth:`channel_places`."""
        slots = self.channels[channel]
        yield len(content)
        for number in range(slots.channel.capacity):
            event = content[number] if number < len(content) else None
            if slots.kinds[number] is not None:
                yield 0 if event is None else slots.events.index(type(event))
            for cls, name in slots.fields[number]:
                yield self.values.number(getattr(event, name)) if type(event) is cls else 0

    def channel_places(self, channel: int) -> tuple[Place, ...]:
        """The variables of a channel."""
        slots = self.channels[channel]
        return (slots.length, *(place for number in range(slots.channel.capacity) for place in slots.slot(number)))

    def numbers(self, world: World) -> dict[str, int]:
        """A state of the system as name of a variable -> its number."""
        made: dict[str, int] = {}
        for n, (state, ledgers) in enumerate(zip(world.parts, world.timers, strict=True)):
            made |= zip((p.name for p in self.part_places(n)), self.part_numbers(n, state, ledgers), strict=True)
        for n, content in enumerate(world.channels):
            made |= zip((p.name for p in self.channel_places(n)), self.channel_numbers(n, content), strict=True)
        return made | {place.name: left for place, left in zip(self.budgets, world.budgets, strict=True)}

    def literal(self, place: Place, number: int) -> Expr:
        """The literal of a variable's sort with that number."""
        return self.context.literal(number, place.now.sort.smt)


LEDGER = Sort(Kind.ENUM, Ledger)


def _readable(cls: type) -> list[tuple[str, Field]]:
    return [(name, field) for name, field in fields_of(cls).items() if field.kind is not Kind.OPAQUE]


def readable(cls: type) -> Mapping[str, Field]:
    """The fields of a class that a solver knows: all but the Opaque ones."""
    return dict(_readable(cls))


def _word(name: str) -> str:
    """A name as one word."""
    return re.sub(r"[^A-Za-z0-9_]+", "_", name).strip("_") or "unnamed"
