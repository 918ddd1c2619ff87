"""The transition relation of a system: its actions, each as rows of terms, and its formulas as terms over a step.

An *action* is one way to begin a step: a spontaneous event, the expiry of a timer, the delivery (or loss) of the event in one slot
of a channel, the loss of a whole channel. Fields of an event that are left open are inputs, over all of their production domain:
any token, any count. All switches are on: what is proved holds under every adversary.

Each action is a list of rows in the form of :class:`.smt.pieces.RowPiece`; the first whose guard holds is the step:

* for each row of the part that is reached first, the steps that begin so and are a fault, then those that are followed to the end;
* last the stutter: where the action is not enabled nothing happens.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, cast

import attrs

from turnproof.checkers.network.compile import structure
from turnproof.checkers.network.run import Fault
from turnproof.checkers.network.triggers import Kind as Begin
from turnproof.checkers.smt import z3api
from turnproof.checkers.smt.terms import NUMBER, TRUTH, Term, sort_of
from turnproof.checkers.smt.terms import domain as domain_of
from turnproof.checkers.smt.translate import plain
from turnproof.checkers.smt.z3api import Expr
from turnproof.checkers.smt_network.cascade import Arrival, Cascade, Handled, Wrong
from turnproof.checkers.smt_network.fold import FoldingReader
from turnproof.checkers.smt_network.rules import AnyRow, Count, Rules
from turnproof.checkers.smt_network.variables import Place, Variables, readable
from turnproof.machines.kernel import Field, Formula, TableError, Variable, show_constant, variables
from turnproof.specs.language import Said
from turnproof.specs.system import Channel, Happening, Ledger, May, Spontaneous, System
from turnproof.specs.system_words import NEXT, STEP_WORDS, Acted, ChannelDid, Pending, Received, SentBy, TimerIs

WRONGS: tuple[Wrong, ...] = (*Fault, None)
"""Everything that may be wrong with a step."""


def wrong_word(wrong: Wrong) -> str:
    """The word that counts whether a step is of this kind."""
    return f"count.fault.{'unfollowed' if wrong is None else wrong.name.lower()}"


def wrong_sentence(wrong: Wrong) -> str:
    """What is claimed of every step: that it is not of this kind."""
    return "every step is followed to its end" if wrong is None else wrong.value


@attrs.frozen(eq=False)
class Input:
    """A field of an event that is left open."""

    name: str
    field: Field
    term: Term
    domain: Expr | None


@attrs.frozen(eq=False)
class NetworkRow:
    """One row of an action: ``guard`` over ``now`` and the inputs; what it writes; what it counts."""

    name: str
    row: AnyRow | None
    """The row of the part that is reached first; None where no part is."""
    guard: Expr
    next: Mapping[str, Expr]
    counts: Mapping[str, Expr]
    wrong: Wrong = None
    """What kind of fault its steps are, for a row that is ``faulty``."""
    faulty: bool = False
    stutter: bool = False
    handled: tuple[Handled, ...] = ()


@attrs.frozen(eq=False)
class Action:
    """One way to begin a step. ``where``, ``source``, ``timer`` and ``position`` are those of the explicit engine's trigger."""

    name: str
    kind: Begin
    where: str
    enabled: Expr
    """Before any row is chosen."""
    inputs: tuple[Input, ...]
    rows: tuple[NetworkRow, ...]
    source: Spontaneous | None = None
    timer: object = None
    position: int = 0
    given: Mapping[str, Term] = attrs.field(factory=dict)
    """Fields of the event that a formula over states gives."""


class Network:
    """A system as terms. ``formulas`` are those over steps that will be read: what they count becomes words of each step."""

    def __init__(self, system: System, formulas: Sequence[object] = ()) -> None:
        self.system, self.variables = system, Variables(system)
        self.context, self.values = self.variables.context, self.variables.values
        self.counts = dict(self._counts(formulas))
        self.rules = Rules(self.variables, tuple(self.counts.values()))
        self.fold = self.rules.fold
        self.reader = FoldingReader(self.fold, self.values, self._before)
        self.step_reader = FoldingReader(self.fold, self.values, self._during)
        self.names: dict[str, int] = {}
        self.actions = tuple(self._actions())
        self.constants = tuple(self.values.tokens)
        """The tokens that the system itself names, nobody first: their numbers are 0, 1, 2, ..."""

    # ── formulas ──

    def _counts(self, formulas: Sequence[object]) -> Iterator[tuple[object, Count]]:
        seen: dict[object, None] = {}
        names: dict[str, int] = {}
        for node in formulas:
            for word in sorted((v for v in variables(node) if isinstance(v, STEP_WORDS)), key=str):
                key = structure(Formula("var", (word,)))
                if key in seen:
                    continue
                seen[key] = None
                base = plain(f"count.{_called(word)}")
                names[base] = names.get(base, 0) + 1
                name = base if names[base] == 1 else f"{base}.{names[base]}"
                yield key, Count(name, word, Term(self.context.symbol(name, z3api.INT), NUMBER))

    def _before(self, v: Variable) -> Term:
        if isinstance(v, STEP_WORDS) or v.scope.endswith(NEXT):
            raise TableError(f"it reads `{v}`, a word of a step, but speaks of every state")
        return self._of_state(v, next_=False)

    def _of_state(self, v: Variable, *, next_: bool) -> Term:
        places = self.variables
        if isinstance(v, Pending):
            return places.channels[places.channel[v.scope]].length.now
        part = places.part[v.scope.removesuffix(NEXT)]
        if isinstance(v, TimerIs):
            ledger = next(p for timer, p in places.timers[part].items() if timer is v.timer).now
            return Term(self.fold.equal(ledger.expr, self.reader.constant(v.ledger).expr), TRUTH)
        place = places.fields[part].get(v.name)
        if place is None:
            raise TableError(f"it reads `{v}`, which is Opaque: a property or a proof cannot read it")
        return place.next if next_ else place.now

    def _during(self, v: Variable) -> Term:
        if isinstance(v, STEP_WORDS):
            return self.counts[structure(Formula("var", (v,)))].term
        return self._of_state(v, next_=v.scope.endswith(NEXT))

    def state_formula(self, node: object, place: str) -> Expr:
        """A formula over states. Raises :class:`TableError` with ``place``."""
        return self.reader.truth(node, place)

    def step_formula(self, node: object, place: str) -> Expr:
        """A formula over a step; what it counts must have been named when the network was made. Raises :class:`TableError`."""
        return self.step_reader.truth(node, place)

    def symbols(self) -> Mapping[str, Expr]:
        """Every symbol a term may hold, by its name."""
        made = {f"now.{p.name}": p.now.expr for p in self.variables.places} | {f"next.{p.name}": p.next.expr for p in self.variables.places}
        made |= {i.name: i.term.expr for action in self.actions for i in action.inputs}
        return made | {c.name: c.term.expr for c in self.counts.values()}

    # ── actions ──

    def _name(self, base: str) -> str:
        base = plain(base)
        self.names[base] = self.names.get(base, 0) + 1
        return base if self.names[base] == 1 else f"{base}.{self.names[base]}"

    def _actions(self) -> Iterator[Action]:
        for source in self.system.spontaneous:
            yield self._spontaneous(source)
        for number, part in enumerate(self.system.parts):
            for rule in part.machine.timers:
                yield self._expiry(number, rule.timer, rule.expires)
        for number, channel in enumerate(self.system.channels):
            for position in range(channel.capacity if channel.reordered else 1):
                yield from self._deliveries(number, channel, position)
                if channel.lossy is not None:
                    yield self._loss(number, channel, position, channel.lossy)
            if channel.droppable is not None:
                yield self._drop(number, channel, channel.droppable)

    def _spontaneous(self, source: Spontaneous) -> Action:
        cls, part = source.event_class, self.variables.part[source.to.name]
        name = self._name(f"{source.to.name}.{cls.__name__}")
        inputs: list[Input] = []
        fields: dict[str, Term] = {}
        given: dict[str, Term] = {}
        tests: list[Expr] = []
        place = f"spontaneous {source}"
        for field_name, field in readable(cls).items():
            node = None if isinstance(source.event, type) else getattr(source.event, field_name)
            own = isinstance(node, Formula) and node.op == "var" and node.args[0] == Variable(cls, field_name)
            if isinstance(source.event, type) or own:
                fields[field_name] = self._input(name, field_name, field, inputs)
            else:
                fields[field_name] = self.reader.term(node)
                if isinstance(node, Formula):
                    given[field_name] = fields[field_name]
                    tests.append(self.fold.negation(self.rules.outside(cls, field_name, fields[field_name])))
        if source.when is not None:
            reader = FoldingReader(self.fold, self.values, lambda v: fields[v.name] if v.owner is cls and not v.scope else self._before(v))
            tests.append(reader.truth(source.when, f"{place}: when="))
        tests += self._budget(source)
        words = ", ".join(
            show_constant(getattr(source.event, f)) for f in fields if not isinstance(getattr(source.event, f, None), Formula)
        )
        about = f"{source.to.name} {cls.__name__}" + (f"({words})" if words and not isinstance(source.event, type) else "")
        enabled = self.fold.conjunction(tests)
        rows = tuple(self._rows(name, about, enabled, Arrival(self.fold.true, part, cls, fields), self._spends(source)))
        return Action(name, Begin.SEND, source.to.name, enabled, tuple(inputs), rows, source=source, given=given)

    def _input(self, action: str, name: str, field: Field, inputs: list[Input]) -> Term:
        sort = sort_of(field)
        full = plain(f"event.{action}.{name}")
        term = Term(self.context.symbol(full, sort.smt), sort)
        inputs.append(Input(full, field, term, domain_of(term.expr, field, self.context)))
        return term

    def _budget(self, may: Spontaneous | May) -> list[Expr]:
        if may.budget is None:
            return []
        left = self.variables.budgets[self.system.budgets.index(may.budget)]
        return [self.fold.less(self.context.integer(0), left.now.expr)]

    def _spends(self, may: Spontaneous | May | None) -> list[tuple[Place, Expr]]:
        """What beginning a step writes at once."""
        if may is None or may.budget is None:
            return []
        left = self.variables.budgets[self.system.budgets.index(may.budget)]
        return [(left, self.fold.minus(left.now.expr, self.context.integer(1)))]

    def _expiry(self, part: int, timer: Any, expires: type) -> Action:
        name = self._name(f"{self.system.everyone[part].name}.{expires.__name__}")
        ledger = next(p for t, p in self.variables.timers[part].items() if t is timer)
        running, off = (self.reader.constant(x).expr for x in (Ledger.RUNNING, Ledger.OFF))
        enabled = self.fold.equal(ledger.now.expr, running)
        event = expires()
        fields = {f: self.reader.term(getattr(event, f)) for f in readable(expires)}
        about = f"{self.system.everyone[part].name} {timer.name.lower()} expires"
        rows = tuple(self._rows(name, about, enabled, Arrival(self.fold.true, part, expires, fields), [(ledger, off)]))
        return Action(name, Begin.EXPIRE, self.system.everyone[part].name, enabled, (), rows, timer=timer)

    # ── channels ──

    def _there(self, number: int, channel: Channel, position: int) -> list[Expr]:
        """That a slot holds an event, and not the same as the one before it."""
        slots = self.variables.channels[number]
        tests = [self.fold.less(self.context.integer(position), slots.length.now.expr)]
        if position:
            pairs = zip(slots.slot(position - 1), slots.slot(position), strict=True)
            tests.append(self.fold.negation(self.fold.conjunction(self.fold.equal(a.now.expr, b.now.expr) for a, b in pairs)))
        return tests

    def _when(self, node: object, place: str) -> list[Expr]:
        return [] if node is None else [self.state_formula(node, place)]

    def _deliveries(self, number: int, channel: Channel, position: int) -> Iterator[Action]:
        slots, part = self.variables.channels[number], self.variables.part[channel.to.name]
        tests = self._there(number, channel, position) + self._when(channel.when, f"channel {channel.name}: when=")
        for place, cls in enumerate(slots.events):
            kind = slots.kinds[position]
            right = [] if kind is None else [self.fold.equal(kind.now.expr, self.context.integer(place))]
            enabled = self.fold.conjunction((*tests, *right))
            name = self._name(f"{channel.name}.delivers.{cls.__name__}")
            fields = {f: slots.fields[position][cls, f].now for f in readable(cls)}
            about = f"{channel.name} delivers {cls.__name__}" + (f" #{position}" if position else "")
            arrival = Arrival(self.fold.true, part, cls, fields)
            rows = tuple(self._rows(name, about, enabled, arrival, [], taken=(number, position)))
            yield Action(name, Begin.DELIVER, channel.name, enabled, (), rows, position=position, timer=cls)

    def _loss(self, number: int, channel: Channel, position: int, may: May) -> Action:
        tests = self._there(number, channel, position) + self._when(may.when, f"channel {channel.name}: lossy=") + self._budget(may)
        enabled, name = self.fold.conjunction(tests), self._name(f"{channel.name}.loses")
        step = self._begun(enabled, self._spends(may))
        step.take(number, position)
        step.did(channel.name, Happening.LOST, self.fold.true)
        about = f"{channel.name} loses" + (f" #{position}" if position else "")
        rows = tuple(self._finished(name, about, None, enabled, step))
        return Action(name, Begin.LOSE, channel.name, enabled, (), (*rows, self._stutter(name)), position=position)

    def _drop(self, number: int, channel: Channel, may: May) -> Action:
        tests = self._when(may.when, f"channel {channel.name}: droppable=") + self._budget(may)
        # Also an empty channel can be dropped by a part's effect; from outside only one that holds something.
        tests.append(self.fold.less(self.context.integer(0), self.variables.channels[number].length.now.expr))
        enabled, name = self.fold.conjunction(tests), self._name(f"{channel.name}.drops")
        step = self._begun(enabled, self._spends(may))
        step.empty(number, self.fold.true)
        rows = tuple(self._finished(name, f"{channel.name} drops", None, enabled, step))
        return Action(name, Begin.DROP, channel.name, enabled, (), (*rows, self._stutter(name)))

    # ── rows ──

    def _begun(self, guard: Expr, writes: Sequence[tuple[Place, Expr]]) -> Cascade:
        step = Cascade(self.rules, dict(self._fixed(guard)))
        for place, value in writes:
            step.write(place, value, self.fold.true)
        return step

    def _fixed(self, guard: Expr) -> Iterator[tuple[str, Expr]]:
        """Variables that a guard fixes, and their values: what follows is composed for these values."""
        by_symbol = {z3api.identity(p.now.expr): p for p in self.variables.places}
        for term in _conjuncts(guard):
            kind, operands = z3api.kind(term), z3api.arguments(term)
            if z3api.identity(term) in by_symbol:
                yield by_symbol[z3api.identity(term)].name, self.fold.true
            elif kind == z3api.KINDS["not"] and z3api.identity(operands[0]) in by_symbol:
                yield by_symbol[z3api.identity(operands[0])].name, self.fold.false
            elif kind == z3api.KINDS["="]:
                for one, other in (operands, operands[::-1]):
                    if z3api.identity(one) in by_symbol and z3api.literal_value(other) is not None:
                        yield by_symbol[z3api.identity(one)].name, other

    def _rows(
        self,
        action: str,
        about: str,
        enabled: Expr,
        arrival: Arrival,
        writes: Sequence[tuple[Place, Expr]],
        *,
        taken: tuple[int, int] | None = None,
    ) -> Iterator[NetworkRow]:
        """The rows of an action that begins with an event that comes to a part."""
        start = self._begun(self.fold.true, writes)
        if taken is not None:
            start.take(*taken)
        choices, hole = start.choices(attrs.evolve(arrival, when=enabled))
        for row, guard in choices:
            step = self._begun(guard, writes)
            if taken is not None:
                step.take(*taken)
                step.did(self.system.channels[taken[0]].name, Happening.DELIVERED, self.fold.true)
            step.arrive(arrival)
            step.run(only=row)
            yield from self._finished(action, f"{about}: {row.name}", row, guard, step)
        if not self.fold.is_false(hole):
            yield self._fault(f"{about}: no row", None, hole, Fault.HOLE)
        yield self._stutter(action)

    def _one(self) -> Expr:
        return self.context.integer(1)

    def _fault(self, about: str, row: AnyRow | None, guard: Expr, wrong: Wrong) -> NetworkRow:
        return NetworkRow(f"{about} (not: {wrong_sentence(wrong)})", row, guard, {}, {wrong_word(wrong): self._one()}, wrong, faulty=True)

    def _stutter(self, action: str) -> NetworkRow:
        return NetworkRow(f"{action}: nothing", None, self.fold.true, {}, {}, stutter=True)

    def _finished(self, action: str, about: str, row: AnyRow | None, guard: Expr, step: Cascade) -> Iterator[NetworkRow]:
        """A fault of each kind there may be, then the step itself."""
        for fault, conditions in step.faults.items():
            here = self.fold.conjunction((guard, self.fold.disjunction(conditions)))
            if not self.fold.is_false(here):
                yield self._fault(about, row, here, fault)
        after = {}
        for place in self.variables.places:
            if place.name in step.written and z3api.identity(step.state[place.name]) != z3api.identity(place.now.expr):
                after[place.name] = step.state[place.name]
        counts = {name: self._total(conditions) for name, conditions in step.counted.items()}
        yield NetworkRow(about, row, guard, after, counts, handled=tuple(step.handled))

    def _total(self, conditions: Sequence[Expr]) -> Expr:
        total = self.context.integer(0)
        for condition in conditions:
            total = self.fold.plus(total, self.fold.conditional(condition, self._one(), self.context.integer(0)))
        return total


def _conjuncts(term: Expr) -> Iterator[Expr]:
    if z3api.kind(term) == z3api.KINDS["and"]:
        for part in z3api.arguments(term):
            yield from _conjuncts(part)
    else:
        yield term


def _called(word: Variable) -> str:
    """A word of a step as one name."""
    if isinstance(word, Acted):
        return "acted"
    if isinstance(word, ChannelDid):
        return f"{word.scope}.{word.what.value}"
    if isinstance(word, Received):
        return f"{word.scope}.{word.said.value if isinstance(word.said, Said) else 'received'}.{word.owner.__name__}"
    return f"{cast(SentBy, word).scope}.emits.{word.owner.__name__}"
