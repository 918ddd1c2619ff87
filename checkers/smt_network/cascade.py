"""One step of a system as terms, run to completion: the symbolic twin of ``checkers.network.run``.

Theory of operation
===================

A cascade is not enumerated row by row: three session ids of eleven rows each, a slot and two callers make thousands of
combinations, most of which cannot happen, and every one would be a query for each conjunct. Instead a step is composed ONCE
for each row of the part that is reached first (that row is what a person calls "the row" of the step, and its guard folds most
of what follows). Everything after it is guarded:

* the queue holds *arrivals*, each with the condition under which there is one. Skipping those whose condition is false leaves
  exactly the queue of the concrete step, in its order, so first in first out is kept;
* an arrival is handled by all rows of its event at once: each row's condition is that the arrival is there, its own guard holds and
  no earlier row's does; a field after it is the value of the row whose condition holds, or what it was;
* rows exclude each other, so what they send along the same wire at the same place is one arrival, under either condition.

What a step must not do (no row answers, nobody receives, a channel is full, a value leaves its domain, the step does not end) is
a condition too. It is not assumed away: the step splits into one that is followed and one that is a fault, and a proof has to
show that no fault can begin (:mod:`.relation`).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from enum import Enum
from typing import Any

import attrs

from turnproof.checkers.network.run import Fault
from turnproof.checkers.smt.terms import Term
from turnproof.checkers.smt.z3api import Expr, identity
from turnproof.checkers.smt_network.fold import Folder, FoldingReader
from turnproof.checkers.smt_network.rules import AnyRow, Rules, fields_as, terms_of
from turnproof.checkers.smt_network.variables import LEDGER, Place, readable
from turnproof.machines.kernel import (
    HOLE,
    TIMER_EFFECTS,
    OnlyIf,
    PauseTimer,
    ResumeTimer,
    StartTimer,
    TableError,
    Variable,
)
from turnproof.specs.language import Said
from turnproof.specs.system import Channel, Copy, Empties, Happening, Ledger, Wire
from turnproof.specs.system_words import Acted, ChannelDid, Received, SentBy

MOST_ARRIVALS = 60
"""Arrivals handled in one step, whether or not they can all come about in one run; what is left over has to be shown impossible."""

Wrong = Fault | None
"""What is wrong with a step; None: the terms do not follow it to its end."""


@attrs.frozen(eq=False)
class Arrival:
    """An event that comes to a part, if ``when`` holds. Its fields are those a solver knows."""

    when: Expr
    part: int
    event: type
    fields: Mapping[str, Term]


@attrs.frozen(eq=False)
class Handled:
    """What became of an arrival: each row (or the hole), and the condition under which it is the one that answers."""

    arrival: Arrival
    rows: tuple[tuple[AnyRow, Expr], ...]


class Cascade:
    """One step: the state as it becomes, what is still to arrive, and what happened. ``known`` are variables the guard fixes."""

    def __init__(self, rules: Rules, known: Mapping[str, Expr]) -> None:
        self.rules, self.fold, self.variables = rules, rules.fold, rules.variables
        self.state = {p.name: known.get(p.name, p.now.expr) for p in self.variables.places}
        self.written: set[str] = set()
        self.queue: deque[Arrival] = deque()
        self.handled: list[Handled] = []
        self.faults: dict[Wrong, list[Expr]] = {}
        self.counted: dict[str, list[Expr]] = {}

    # ── the state ──

    def write(self, place: Place, value: Expr, when: Expr) -> None:
        """The variable becomes ``value`` if ``when`` holds."""
        if self.fold.is_false(when):
            return
        self.state[place.name] = self.fold.conditional(when, value, self.state[place.name])
        self.written.add(place.name)

    def of_part(self, part: int) -> dict[str, Term]:
        """The state of a part at this point of the step."""
        return {name: Term(self.state[p.name], p.now.sort) for name, p in self.variables.fields[part].items()}

    def fault(self, kind: Wrong, when: Expr) -> None:
        """The step is not allowed if ``when`` holds."""
        if not self.fold.is_false(when):
            self.faults.setdefault(kind, []).append(when)

    def count(self, name: str, when: Expr) -> None:
        """The word counts one more if ``when`` holds."""
        if not self.fold.is_false(when):
            self.counted.setdefault(name, []).append(when)

    # ── to completion ──

    def arrive(self, arrival: Arrival) -> None:
        """Put at the end of the queue."""
        if not self.fold.is_false(arrival.when):
            self.queue.append(arrival)

    def run(self, only: AnyRow | None = None) -> None:
        """Work the queue off. ``only`` answers the first arrival, which is there: its guard is then the step's own."""
        while self.queue and len(self.handled) < MOST_ARRIVALS:
            self.handle(self.queue.popleft(), only)
            only = None
        for arrival in self.queue:
            self.fault(None, arrival.when)
        self.queue.clear()
        if len(self.handled) > self.rules.system.cascade:
            one, none, limit = (self.rules.context.integer(n) for n in (1, 0, self.rules.system.cascade))
            total = none
            for handled in self.handled:
                total = self.fold.plus(total, self.fold.conditional(handled.arrival.when, one, none))
            self.fault(Fault.ENDLESS, self.fold.less(limit, total))

    def guard(self, part: int, row: AnyRow, before: Mapping[str, Term], fields: Mapping[str, Term]) -> Expr:
        """Where a row applies, earlier rows aside."""
        who = self.rules.system.everyone[part]
        tests = []
        if row.phases:
            phase = before[who.machine.phase]
            reader = FoldingReader(self.fold, self.variables.values, _nothing)
            tests.append(self.fold.disjunction([self.fold.equal(phase.expr, reader.constant(p).expr) for p in row.phases]))
        if row.guard is not None:
            known = terms_of(who, before) | fields_as(row.event, fields)
            tests.append(self.rules.truth(row.guard, known, f"{who.name}, row {row.name}"))
        return self.fold.conjunction(tests)

    def choices(self, arrival: Arrival) -> tuple[list[tuple[AnyRow, Expr]], Expr]:
        """Each row that may answer with its condition, and the condition that none does."""
        before, left = self.of_part(arrival.part), arrival.when
        made: list[tuple[AnyRow, Expr]] = []
        for row in self.rules.rows[arrival.part][arrival.event]:
            guard = self.guard(arrival.part, row, before, arrival.fields)
            here = self.fold.conjunction((left, guard))
            if not self.fold.is_false(here):
                made.append((row, here))
            left = self.fold.conjunction((left, self.fold.negation(guard)))
            if self.fold.is_false(left):
                break
        return made, left

    def handle(self, arrival: Arrival, only: AnyRow | None) -> None:
        """All rows answer at once, each under its condition."""
        if only is None:
            rows, hole = self.choices(arrival)
        else:
            rows, hole = [(only, arrival.when)], self.fold.false
        self.fault(Fault.HOLE, hole)
        self.handled.append(Handled(arrival, (*rows, *(() if self.fold.is_false(hole) else ((HOLE, hole),)))))
        before = self.of_part(arrival.part)
        self._count_received(arrival, rows, before)
        lists = [list(self._answer(arrival, row, when, before)) for row, when in rows]
        for merged in _merged(self.fold, lists):
            self.arrive(merged)

    def _answer(self, arrival: Arrival, row: AnyRow, when: Expr, before: Mapping[str, Term]) -> Iterator[tuple[object, Arrival]]:
        """What one row does under its condition. Yields what it sends on, each with the wire or copy it goes along."""
        part, said = arrival.part, Said(row.answer)
        known = terms_of(self.rules.system.everyone[part], before) | fields_as(arrival.event, arrival.fields)
        if said is Said.TAKEN:
            self._update(part, row, when, known)
        yield from self._copied(part, arrival.event, arrival.fields, said, when)
        acted = []
        for item in row.emit if said is Said.TAKEN else ():
            place = f"{self.rules.system.everyone[part].name}, row {row.name}"
            condition = self.rules.truth(item.condition, known, f"{place}: only_if()") if isinstance(item, OnlyIf) else self.fold.true
            effect = item.effect if isinstance(item, OnlyIf) else item
            here = self.fold.conjunction((when, condition))
            acted.append(here)
            if isinstance(effect, TIMER_EFFECTS):
                self._count_clock(part, effect, here)
                self._clock(part, effect, here)
            else:
                cls: type = type(effect)
                fields = {name: self.rules.term(getattr(effect, name), known, f"{place}: {cls.__name__}.{name}") for name in readable(cls)}
                yield from self._send(part, cls, fields, said, here, before)
        for word in self.rules.counts:
            if isinstance(word.word, Acted):
                self.count(word.name, self.fold.disjunction(acted))

    def _update(self, part: int, row: AnyRow, when: Expr, known: Mapping[tuple[type, str, str], Term]) -> None:
        who = self.rules.system.everyone[part]
        for name, place in self.variables.fields[part].items():
            if name == who.machine.phase and row.to is not None:
                value = FoldingReader(self.fold, self.variables.values, _nothing).constant(row.to)
            elif row.data is not None:
                value = self.rules.term(getattr(row.data, name), known, f"{who.name}, row {row.name}: {name}")
            else:
                continue
            if value.sort != place.now.sort:
                raise TableError(f"{who.name}, row {row.name}: {name} is given {value.sort}, not {place.now.sort}")
            if identity(value.expr) != identity(known[who.machine.state, name, ""].expr):
                self.fault(Fault.DOMAIN, self.fold.conjunction((when, self.rules.outside(who.machine.state, name, value))))
                self.write(place, value.expr, when)

    def _clock(self, part: int, effect: Any, when: Expr) -> None:
        place = self.variables.timers[part][effect.timer]
        running, paused, off = (self._ledger(x) for x in (Ledger.RUNNING, Ledger.PAUSED, Ledger.OFF))
        now = self.state[place.name]
        if isinstance(effect, StartTimer):
            self.write(place, running, when)
        elif isinstance(effect, PauseTimer):
            self.write(place, paused, self.fold.conjunction((when, self.fold.equal(now, running))))
        elif isinstance(effect, ResumeTimer):
            self.write(place, running, self.fold.conjunction((when, self.fold.equal(now, paused))))
        else:
            self.write(place, off, when)

    def _ledger(self, ledger: Ledger) -> Expr:
        return self.rules.context.literal(self.variables.values.number(ledger), LEDGER.smt)

    # ── along wires and copies ──

    def _copied(self, part: int, cls: type, fields: Mapping[str, Term], said: Said, when: Expr) -> Iterator[tuple[object, Arrival]]:
        for copy in self.rules.copies[part]:
            if copy.what_class is cls and (copy.said is None or copy.said is said):
                here = self._where(copy, copy.where, cls, fields, when)
                if not self.fold.is_false(here):
                    event = self._translated(copy, copy.event, copy.event_class, cls, fields, here)
                    yield copy, Arrival(here, self.variables.part[copy.to.name], copy.event_class, event)

    def _where(self, along: object, where: object, cls: type, fields: Mapping[str, Term], when: Expr) -> Expr:
        if where is None:
            return when
        return self.fold.conjunction((when, self.rules.truth(where, fields_as(cls, fields), f"{along}: where=")))

    def _translated(
        self, along: Wire | Copy, template: object, event: type, cls: type, fields: Mapping[str, Term], when: Expr
    ) -> dict[str, Term]:
        """The event's fields; that one leaves its domain is a fault."""
        made = {}
        # A class stands for the event made of its defaults.
        template = template() if isinstance(template, type) else template
        for name in readable(event):
            made[name] = (
                fields[name]
                if template is None
                else self.rules.term(getattr(template, name), fields_as(cls, fields), f"{along}: {event.__name__}.{name}")
            )
            self.fault(Fault.DOMAIN, self.fold.conjunction((when, self.rules.outside(event, name, made[name]))))
        return made

    def _send(
        self, part: int, cls: type, fields: Mapping[str, Term], said: Said, when: Expr, before: Mapping[str, Term]
    ) -> Iterator[tuple[object, Arrival]]:
        self._count_sent(part, cls, fields, when, before)
        yield from self._copied(part, cls, fields, said, when)
        received = [self.fold.true] if cls in self.rules.absorbed[part] else []
        for wire in self.rules.wires[part]:
            if wire.effect_class is not cls:
                continue
            here = self._where(wire, wire.where, cls, fields, when)
            received.append(here)
            if self.fold.is_false(here):
                continue
            if isinstance(wire, Empties):
                self.empty(self.variables.channel[wire.channel.name], here)
                continue
            event = self._translated(wire, wire.event, wire.event_class, cls, fields, here)
            if isinstance(wire.to, Channel):
                self._push(self.variables.channel[wire.to.name], wire.event_class, event, here)
            else:
                yield wire, Arrival(here, self.variables.part[wire.to.name], wire.event_class, event)
        self.fault(Fault.UNRECEIVED, self.fold.conjunction((when, self.fold.negation(self.fold.disjunction(received)))))

    # ── channels ──

    def _push(self, channel: int, event: type, fields: Mapping[str, Term], when: Expr) -> None:
        slots, number = self.variables.channels[channel], self.rules.context.integer
        length = self.state[slots.length.name]
        full = self.fold.at_most(number(slots.channel.capacity), length)
        self.fault(Fault.OVERFLOW, self.fold.conjunction((when, full)))
        for place in range(slots.channel.capacity):
            here = self.fold.conjunction((when, self.fold.equal(length, number(place))))
            kind = slots.kinds[place]
            if kind is not None:
                self.write(kind, number(slots.events.index(event)), here)
            for (cls, name), field in slots.fields[place].items():
                value = fields[name].expr if cls is event else self.variables.literal(field, 0)
                self.write(field, value, here)
        self.write(slots.length, self.fold.plus(length, number(1)), self.fold.conjunction((when, self.fold.negation(full))))

    def empty(self, channel: int, when: Expr) -> None:
        """Everything under way is lost."""
        slots = self.variables.channels[channel]
        for place in self.variables.channel_places(channel):
            self.write(place, self.variables.literal(place, 0), when)
        self.did(slots.channel.name, Happening.DROPPED, when)

    def take(self, channel: int, position: int) -> None:
        """The event in that slot leaves the channel; those behind it move up."""
        slots = self.variables.channels[channel]
        for number in range(position, slots.channel.capacity):
            behind = slots.slot(number + 1) if number + 1 < slots.channel.capacity else None
            for n, place in enumerate(slots.slot(number)):
                value = self.variables.literal(place, 0) if behind is None else self.state[behind[n].name]
                self.write(place, value, self.fold.true)
        self.write(slots.length, self.fold.minus(self.state[slots.length.name], self.rules.context.integer(1)), self.fold.true)

    # ── counting ──

    def did(self, channel: str, what: Happening, when: Expr) -> None:
        """The step did that to the channel."""
        for word in self.rules.counts:
            if isinstance(word.word, ChannelDid) and (word.word.scope, word.word.what) == (channel, what):
                self.count(word.name, when)

    def _count_received(self, arrival: Arrival, rows: Sequence[tuple[AnyRow, Expr]], before: Mapping[str, Term]) -> None:
        name = self.rules.system.everyone[arrival.part].name
        for word in self.rules.counts:
            wanted = word.word
            if isinstance(wanted, Received) and wanted.scope == name and wanted.owner is arrival.event:
                answered = [when for row, when in rows if wanted.said is None or Said(row.answer) is wanted.said]
                fits = self._fits(wanted.fields, arrival.part, arrival.fields, before)
                self.count(word.name, self.fold.conjunction((self.fold.disjunction(answered), fits)))

    def _count_sent(self, part: int, cls: type, fields: Mapping[str, Term], when: Expr, before: Mapping[str, Term]) -> None:
        name = self.rules.system.everyone[part].name
        for word in self.rules.counts:
            if isinstance(word.word, SentBy) and word.word.scope == name and word.word.owner is cls:
                self.count(word.name, self.fold.conjunction((when, self._fits(word.word.fields, part, fields, before))))

    def _count_clock(self, part: int, effect: Any, when: Expr) -> None:
        name, timer = self.rules.system.everyone[part].name, effect.timer
        for word in self.rules.counts:
            wanted = word.word
            if isinstance(wanted, SentBy) and wanted.scope == name and wanted.owner is type(effect):
                if any(field != "timer" or not isinstance(node, Enum) for field, node in wanted.fields):
                    raise TableError(f"a count of {name}'s {type(effect).__name__} reads more than which timer: no proof can follow it")
                if all(node is timer for _, node in wanted.fields):
                    self.count(word.name, when)

    def _fits(self, pattern: tuple[tuple[str, object], ...], part: int, fields: Mapping[str, Term], before: Mapping[str, Term]) -> Expr:
        who = self.rules.system.everyone[part]
        known, tests = terms_of(who, before, who.name), []
        for name, node in pattern:
            if name not in fields:
                raise TableError(f"a count reads the field {name!r}, which is Opaque: no proof can follow it")
            wanted = self.rules.term(node, known, f"a count of {who.name}")
            tests.append(self.fold.equal(fields[name].expr, wanted.expr) if fields[name].sort == wanted.sort else self.fold.false)
        return self.fold.conjunction(tests)


def _nothing(variable: Variable) -> Term:
    raise TableError(f"{variable} is not known here")


def _merged(fold: Folder, lists: Sequence[Sequence[tuple[object, Arrival]]]) -> list[Arrival]:
    """Arrivals of rows that exclude each other as one sequence, each row's in their order; the same place along a wire is shared."""
    made: list[tuple[object, Arrival]] = []
    for arrivals in lists:
        at = 0
        for along, arrival in arrivals:
            found = next((n for n in range(at, len(made)) if made[n][0] is along), None)
            if found is None:
                made.insert(at, (along, arrival))
                at += 1
                continue
            known = made[found][1]
            fields = {
                name: Term(fold.conditional(known.when, term.expr, arrival.fields[name].expr), term.sort)
                for name, term in known.fields.items()
            }
            made[found] = (along, Arrival(fold.disjunction((known.when, arrival.when)), arrival.part, arrival.event, fields))
            at = found + 1
    return [arrival for _, arrival in made]
