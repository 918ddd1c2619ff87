"""A specification as z3 terms: rows, histories and the words of a step. One instance a proof, in a context of its own.

Names are unprimed, so that cvc5 reads them too: ``now.phase`` and ``next.phase`` before and after the step, ``event.Failed.code``
for the fields of an event, ``now.Past.recovered`` for a history variable; ``on.Failed``, ``answer.taken`` and ``count.Release``
are the words of a step. Each row says what the words mean in a step of its own, so a property is one term, whatever the row.

Row i of an event is chosen where its guard holds and the guard of no earlier row of that event does. An event whose last row is
guarded gets one more row, its hole: refused, as ``step`` does it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, cast

import attrs

from turnproof.checkers.smt import z3api
from turnproof.checkers.smt.terms import NUMBER, TRUTH, Reader, Sort, Term, Values, domain, sort_of
from turnproof.checkers.smt.z3api import Context, Expr
from turnproof.machines.kernel import HOLE, Field, Formula, Kind, Machine, OnlyIf, Row, TableError, Variable, fields_of, variables
from turnproof.specs.language import Answered, Carries, Emitted, History, OnEvent, Said

AnyMachine = Machine[Any, Any, Any]
AnyRow = Row[Any, Any]


@attrs.frozen(eq=False)
class Slot:
    """A field of the state, or of a history, before and after a step."""

    owner: type
    field: Field
    name: str
    now: Term
    next: Term


@attrs.frozen(eq=False)
class Input:
    """A field of an event."""

    event: type
    field: Field
    name: str
    term: Term


@attrs.frozen(eq=False)
class SymbolicEffect:
    """An effect of a row: where it is emitted (None: always), and its fields without the Opaque ones."""

    condition: Expr | None
    effect: type
    fields: Mapping[str, Term]


@attrs.frozen(eq=False)
class SymbolicRow:
    """A row as terms over ``now`` and the fields of its event. ``successor`` has the slots that the row writes."""

    row: AnyRow
    name: str
    event: type
    guard: Expr
    earlier: tuple[SymbolicRow, ...]
    """The rows of the same event above this one."""
    successor: Mapping[str, Expr]
    effects: tuple[SymbolicEffect, ...]

    @property
    def answer(self) -> Said:
        """How a step of this row is answered."""
        return Said(self.row.answer)

    def chosen(self) -> Expr:
        """That this row is the first of its event whose guard holds."""
        return z3api.conjunction((*(z3api.negation(r.guard) for r in self.earlier), self.guard))


@attrs.frozen(eq=False)
class Miscarried:
    """The word that counts what a step carries otherwise than ``prop`` expects."""

    name: str
    prop: Carries
    term: Term


@attrs.frozen(eq=False)
class CountWord:
    """The word that counts the effects matching a pattern."""

    name: str
    term: Term
    effect: type
    wanted: Mapping[str, Term]


class Symbolic:
    """A machine and its histories as terms. Raises :class:`TableError` for what no solver could read, with its place."""

    def __init__(self, machine: AnyMachine, histories: Sequence[History] = ()) -> None:
        self.machine, self.context, self.values = machine, Context(), Values()
        self.slots = tuple(self._slots(machine.state, "")) + tuple(
            s for n, h in enumerate(histories) for s in self._slots(type(h.initial), _prefix(histories, n))
        )
        self.inputs = tuple(self._inputs())
        self.on = {event: Term(self.context.symbol(on_name(event), z3api.BOOL), TRUTH) for event in machine.events}
        self.answered = {said: Term(self.context.symbol(f"answer.{said.value}", z3api.BOOL), TRUTH) for said in Said}
        self.counts: dict[str, CountWord] = {}
        self._patterns: dict[object, CountWord] = {}
        self.miscarried: dict[str, Miscarried] = {}
        """Property of opaque values -> its word; and the opaque fields that such properties and the rows read. See ``smt.carried``."""
        self.opaque: dict[Variable, tuple[str, Term]] = {}
        self._known = {(s.owner, s.field.name, ""): s.now for s in self.slots} | {
            (s.owner, s.field.name, "next"): s.next for s in self.slots
        }
        self._known |= {(i.event, i.field.name, ""): i.term for i in self.inputs}
        self.before = Reader(self.context, self.values, self._before)
        self.step = Reader(self.context, self.values, self._during)
        self.initial = {s.name: self._initial(s, histories) for s in self.slots}
        self._distinct()
        self.rows = tuple(self._rows())
        self.history = {s.name: self._history(s, h) for h in histories for s in self.slots if s.owner is type(h.initial)}

    # ── symbols ──

    def _slots(self, owner: type, prefix: str) -> Iterator[Slot]:
        for name, field in fields_of(owner).items():
            if field.kind is not Kind.OPAQUE:
                sort = sort_of(field)
                full = plain(prefix + name)
                now, after = (Term(self.context.symbol(f"{when}.{full}", sort.smt), sort) for when in ("now", "next"))
                yield Slot(owner, field, full, now, after)

    def _inputs(self) -> Iterator[Input]:
        for event in self.machine.events:
            for name, field in fields_of(event).items():
                if field.kind is not Kind.OPAQUE:
                    full, sort = plain(f"event.{event.__name__}.{name}"), sort_of(field)
                    yield Input(event, field, full, Term(self.context.symbol(full, sort.smt), sort))

    def domains(self) -> Mapping[str, Expr]:
        """Slot name -> its domain constraint over ``now``; slots whose sort says it all are left out."""
        found = {s.name: domain(s.now.expr, s.field, self.context) for s in self.slots}
        return {name: constraint for name, constraint in found.items() if constraint is not None}

    def input_domains(self) -> Mapping[str, Expr]:
        """Name of an event's field -> its domain constraint."""
        found = {i.name: domain(i.term.expr, i.field, self.context) for i in self.inputs}
        return {name: constraint for name, constraint in found.items() if constraint is not None}

    def symbols(self) -> Mapping[str, Expr]:
        """Every symbol a term may hold, by its name."""
        made = {f"now.{s.name}": s.now.expr for s in self.slots} | {f"next.{s.name}": s.next.expr for s in self.slots}
        made |= {i.name: i.term.expr for i in self.inputs}
        made |= {on_name(event): term.expr for event, term in self.on.items()}
        made |= {f"answer.{said.value}": term.expr for said, term in self.answered.items()}
        return made | {word.name: word.term.expr for word in self.counts.values()}

    def _distinct(self) -> None:
        names = [s.name for s in self.slots] + [i.name for i in self.inputs] + [on_name(event) for event in self.on]
        twice = sorted({name for name in names if names.count(name) > 1})
        if twice:
            raise TableError(f"machine {self.machine.name}: two things are called {twice[0]}, and a solver could not tell them apart")

    # ── variables ──

    def _before(self, variable: Variable) -> Term:
        found = self._known.get((variable.owner, variable.name, variable.scope))
        if found is None:
            where = f"{variable.owner.__name__}.{variable.name}"
            field = fields_of(variable.owner).get(variable.name) if attrs.has(variable.owner) else None
            if field is not None and field.kind is Kind.OPAQUE:
                sort_of(field)
            known = ", ".join(dict.fromkeys(owner.__name__ for owner, _, _ in self._known))
            raise TableError(f"{where} is no field of the state, of an event or of a history; these are known: {known}")
        return found

    def _during(self, variable: Variable) -> Term:
        if isinstance(variable, OnEvent):
            if variable.owner not in self.on:
                raise TableError(f"on({variable.owner.__name__}): the machine has no such event")
            return self.on[variable.owner]
        if isinstance(variable, Answered):
            return self.answered[variable.said]
        return self._count(variable).term if isinstance(variable, Emitted) else self._before(variable)

    def _count(self, pattern: Emitted) -> CountWord:
        for name, _ in pattern.fields:
            field = fields_of(pattern.owner)[name]
            if field.kind is Kind.OPAQUE:
                sort_of(field)
        wanted = {name: self.step.term(value) for name, value in pattern.fields}
        key = (pattern.owner, tuple((name, term.sort, z3api.text(term.expr)) for name, term in wanted.items()))
        if key not in self._patterns:
            if pattern.owner not in self.machine.effects:
                raise TableError(f"count({pattern.owner.__name__}): the machine has no such effect")
            name = plain(f"count.{pattern.owner.__name__}") + (f".{len(self.counts)}" if wanted else "")
            word = CountWord(name, Term(self.context.symbol(name, z3api.INT), NUMBER), pattern.owner, wanted)
            self._patterns[key] = self.counts[name] = word
        return self._patterns[key]

    def _initial(self, slot: Slot, histories: Sequence[History]) -> Expr:
        start = next((h.initial for h in histories if type(h.initial) is slot.owner), self.machine.initial)
        return self.context.literal(self.values.number(getattr(start, slot.field.name)), slot.now.sort.smt)

    # ── rows ──

    def _rows(self) -> Iterator[SymbolicRow]:
        for event in self.machine.events:
            above: list[SymbolicRow] = []
            for row in (r for r in self.machine.rows if r.event is event):
                above.append(self._row(row, row.name, tuple(above)))
                yield above[-1]
            if not above or z3api.literal_value(above[-1].guard) != 1:
                hole = SymbolicRow(HOLE, f"hole/{event.__name__}", event, self.context.boolean(True), tuple(above), {}, ())
                yield hole

    def _row(self, row: AnyRow, name: str, earlier: tuple[SymbolicRow, ...]) -> SymbolicRow:
        place = f"row {name}"
        parts = []
        if row.phases:
            phase = self._known[self.machine.state, self.machine.phase, ""]
            parts.append(z3api.disjunction([z3api.equal(phase.expr, self.before.constant(p).expr) for p in row.phases]))
        if row.guard is not None:
            parts.append(self.before.truth(row.guard, f"{place}: the guard"))
        guard = z3api.conjunction(parts) if parts else self.context.boolean(True)
        effects = tuple(self._effect(item, place) for item in row.emit)
        return SymbolicRow(row, name, row.event, guard, earlier, dict(self._successor(row, place)), effects)

    def _successor(self, row: AnyRow, place: str) -> Iterator[tuple[str, Expr]]:
        for slot in self.slots:
            if slot.owner is not self.machine.state:
                continue
            if slot.field.name == self.machine.phase and row.to is not None:
                yield slot.name, self.before.constant(row.to).expr
            elif row.data is not None and not _is(getattr(row.data, slot.field.name), slot):
                yield slot.name, self._value(getattr(row.data, slot.field.name), slot.now.sort, self.before, f"{place}: {slot.name}")

    def _value(self, node: object, sort: Sort, reader: Reader, place: str) -> Expr:
        term = reader.term(node)
        if term.sort != sort:
            raise TableError(f"{place} is given {term.sort}, not {sort}")
        return term.expr

    def _effect(self, item: object, place: str) -> SymbolicEffect:
        condition = self.before.truth(item.condition, f"{place}: only_if()") if isinstance(item, OnlyIf) else None
        effect = item.effect if isinstance(item, OnlyIf) else item
        known = fields_of(type(effect))
        fields = {name: self.before.term(getattr(effect, name)) for name, field in known.items() if field.kind is not Kind.OPAQUE}
        return SymbolicEffect(condition, type(effect), fields)

    def count_of(self, word: CountWord, row: SymbolicRow) -> Expr:
        """How many effects the word counts in a step of ``row``."""
        one, none = self.context.integer(1), self.context.integer(0)
        parts = []
        for effect in row.effects:
            if effect.effect is word.effect:
                tests = [] if effect.condition is None else [effect.condition]
                tests += [
                    self._matches(effect.fields[name], wanted, f"count({word.effect.__name__}, {name}=...)")
                    for name, wanted in word.wanted.items()
                ]
                parts.append(z3api.conditional(z3api.conjunction(tests), one, none) if tests else one)
        return z3api.total(parts) if parts else none

    def _matches(self, given: Term, wanted: Term, place: str) -> Expr:
        if given.sort != wanted.sort:
            if Kind.ENUM is given.sort.kind is wanted.sort.kind:
                return self.context.boolean(False)
            raise TableError(f"{place} compares {given.sort} with {wanted.sort}")
        return z3api.equal(given.expr, wanted.expr)

    def _history(self, slot: Slot, history: History) -> Expr:
        value = slot.now.expr
        for number, (condition, data) in reversed(list(enumerate(history.rules, 1))):
            place = f"history {slot.owner.__name__}, rule {number}"
            for variable in variables(condition) | variables(data):
                if variable.scope == "next" and variable.owner is not self.machine.state:
                    raise TableError(
                        f"{place} reads `{variable}`: a history sees the machine's state after the step, not another history's"
                    )
            new = self._value(getattr(data, slot.field.name), slot.now.sort, self.step, place)
            value = z3api.conditional(self.step.truth(condition, place), new, value)
        return value

    # ── a step of one row, in terms of what is before it ──

    def meaning(self, row: SymbolicRow) -> Mapping[str, Expr]:
        """What each word of a step means in a step of ``row``: symbol name -> term over ``now``, the event, and words before it.

        In the order in which they may be replaced or defined: states after the step, event and answer, counts, histories.
        """
        made = {f"next.{s.name}": row.successor.get(s.name, s.now.expr) for s in self.slots if s.owner is self.machine.state}
        made |= {on_name(event): self.context.boolean(event is row.event) for event in self.on}
        made |= {f"answer.{said.value}": self.context.boolean(said is row.answer) for said in self.answered}
        made |= {word.name: self.count_of(word, row) for word in self.counts.values()}
        return made | {f"next.{name}": term for name, term in self.history.items()}

    def state_formula(self, node: object, place: str) -> Expr:
        """A formula over the state and histories. Raises :class:`TableError` with ``place``, also where it speaks of a step."""
        return self._over(Reader(self.context, self.values, self._state_only), node, place)

    def step_formula(self, node: object, place: str) -> Expr:
        """A formula over a whole step. Raises :class:`TableError` with ``place``."""
        return self._over(self.step, node, place)

    def _state_only(self, variable: Variable) -> Term:
        if type(variable) is not Variable or variable.scope or not any(s.owner is variable.owner for s in self.slots):
            raise TableError(f"it reads `{variable}`, but speaks of every state: only Step properties know events, answers and effects")
        return self._before(variable)

    def _over(self, reader: Reader, node: object, place: str) -> Expr:
        return reader.truth(node, place)


def plain(name: str) -> str:
    """A name as every solver reads it without quotes."""
    return "".join(letter if letter.isascii() else f"_u{ord(letter):x}" for letter in name)


def on_name(event: type) -> str:
    """The word that says the event of the step is of this class."""
    return plain(f"on.{event.__name__}")


def _prefix(histories: Sequence[History], number: int) -> str:
    name = type(histories[number].initial).__name__
    same = sum(type(h.initial).__name__ == name for h in histories[:number])
    return f"{name}.{same + 1}." if same else f"{name}."


def _is(node: object, slot: Slot) -> bool:
    """Whether an update leaves the field as it is."""
    return isinstance(node, Formula) and node.op == "var" and cast(Variable, node.args[0]) == Variable(slot.owner, slot.field.name)
