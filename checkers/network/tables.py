"""A system as tables of small numbers, filled in on demand: what the kernel asks for, ``machine.step`` answers.

A component is a part with the ledger of its timers, a channel with what is under way in it, or a budget with what is left of it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from enum import Enum
from typing import Any, cast

import attrs

from turnproof.checkers.network.compile import Compiler, structure
from turnproof.checkers.network.run import Fault, World
from turnproof.checkers.network.triggers import Kind, Trigger
from turnproof.checkers.network.walk import Handled
from turnproof.machines.kernel import (
    HOLE,
    TIMER_EFFECTS,
    Formula,
    Ignored,
    PauseTimer,
    ResumeTimer,
    StartTimer,
    Taken,
    Variable,
    fields_of,
    read,
)
from turnproof.machines.kernel import conjuncts as split
from turnproof.machines.kernel.domain import Kind as FieldKind
from turnproof.machines.kernel.evaluate import PYTHON, value
from turnproof.specs.language import Said
from turnproof.specs.system import AnyPart, Channel, Copy, Empties, Happening, Ledger, System, Wire
from turnproof.specs.system_words import Acted, ChannelDid, Pending, Received, SentBy, TimerIs

CODES = {fault: n for n, fault in enumerate((None, Fault.ENDLESS, *(f for f in Fault if f is not Fault.ENDLESS)))}
"""Why a step is not followed -> its number in the kernel; None: it leaves the bounds."""

State = tuple[Any, tuple[Ledger, ...]]
Out = tuple[int, int]


@attrs.define(eq=False)
class Component:
    """One component: its local states and inputs as they are met, each with its number."""

    name: str
    queued: bool
    locals: list[Any] = attrs.field(factory=list)
    ids: dict[Any, int] = attrs.field(factory=dict)
    inputs: list[Any] = attrs.field(factory=list)
    input_ids: dict[Any, int] = attrs.field(factory=dict)

    def local(self, state: Any) -> int:
        """The number of a local state, new or known."""
        number = self.ids.get(state)
        if number is None:
            number = self.ids[state] = len(self.locals)
            self.locals.append(state)
        return number

    def input(self, given: Any) -> int:
        """The number of an input, new or known."""
        number = self.input_ids.get(given)
        if number is None:
            number = self.input_ids[given] = len(self.inputs)
            self.inputs.append(given)
        return number


@attrs.frozen(eq=False)
class Filled:
    """One entry: where it stands, what it says, and what it stood for when a part handled an event."""

    component: int
    local: int
    given: int
    after: int
    outs: tuple[Out, ...]
    handled: Handled | None
    effects: tuple[object, ...]
    did: tuple[Happening, ...] = ()


class Tables:
    """The components of a system and their entries. ``fill`` adds entries, ``net`` gives the arrays."""

    def __init__(self, system: System, triggers: tuple[Trigger, ...], *, counter: int) -> None:
        self.system, self.triggers, self.counter = system, triggers, counter
        everyone = system.everyone
        self.components = [Component(p.name, True) for p in everyone]
        self.components += [Component(c.name, False) for c in system.channels]
        self.components += [Component(f"budget {b.name}", False) for b in system.budgets]
        self.index = {c.name: n for n, c in enumerate(self.components)}
        self.parts, self.first_budget = len(everyone), len(everyone) + len(system.channels)
        self.timers = [tuple(rule.timer for rule in p.machine.timers) for p in everyone]
        self.counters = [[n for n, f in fields_of(p.machine.state).items() if f.kind is FieldKind.COUNTER] for p in everyone]
        self.wires = [[w for w in system.wires if w.source.name == p.name] for p in everyone]
        self.copies = [[c for c in system.copies if c.of.name == p.name] for p in everyone]
        self.absorbed = [{cls for a in system.absorbed if a.part.name == p.name for cls in a.classes} for p in everyone]
        self.allowed: list[dict[object, int | None]] = [{} for _ in everyone]
        self.entries: list[Filled] = []
        self.used_wires: set[int] = set()
        self.used_copies: set[int] = set()
        self.compiler = Compiler(self.index.__getitem__, len(triggers))
        self.start = [self.components[n].local(state) for n, state in enumerate(self._initial())]
        self.rest: list[dict[int, list[Formula]]] = [{} for _ in triggers]
        """Trigger -> component -> what its guard asks of that component alone; what several ask is one formula."""
        self.same: dict[object, Formula] = {}
        self.rows = [self._trigger(n, t) for n, t in enumerate(triggers)]

    def _initial(self) -> Iterator[Any]:
        for part, timers in zip(self.system.everyone, self.timers, strict=True):
            yield (part.start, (Ledger.OFF,) * len(timers))
        yield from (() for _ in self.system.channels)
        yield from (b.limit for b in self.system.budgets)

    # ── triggers ──

    def _trigger(self, number: int, trigger: Trigger) -> tuple[int, int, int, int]:
        """Budget, component, input and rest of the guard; what single components forbid becomes bit ``number``."""
        budget = -1 if trigger.budget < 0 else self.first_budget + trigger.budget
        comp = self.index[trigger.where]
        if budget >= 0:
            self.components[budget].input(("spend",))
        given: tuple[Any, ...]
        if trigger.kind is Kind.SEND:
            given = ("event", trigger.event)
        elif trigger.kind is Kind.EXPIRE:
            given = ("expire", trigger.timer, trigger.event)
        elif trigger.kind is Kind.DROP:
            given = ("empty",)
        else:
            given = (trigger.kind.value, trigger.position)
        rest: Formula | None = None
        for part in () if trigger.guard is None else split(trigger.guard):
            side = self.compiler.side(part)
            if side is None:
                rest = part if rest is None else Formula("and", (rest, part))
            else:
                self.rest[number].setdefault(side[0], []).append(self.same.setdefault(structure(part), part))
        program = -1 if rest is None else self.compiler.program(rest)
        return budget, comp, self.components[comp].input(given), program

    def forbids(self, number: int, comp: int, state: Any, decided: dict[int, bool]) -> bool:
        """Whether this local state of one component keeps trigger ``number`` from being enabled.

        ``decided`` holds what was decided of this local state before, by the ``id`` of a formula.
        """
        trigger = self.triggers[number]
        if trigger.budget >= 0 and comp == self.first_budget + trigger.budget and state == 0:
            return True
        if comp == self.index[trigger.where]:
            if trigger.kind is Kind.EXPIRE:
                timers = self.timers[comp]
                if state[1][timers.index(cast(Enum, trigger.timer))] is not Ledger.RUNNING:
                    return True
            elif trigger.kind is not Kind.SEND:
                place = trigger.position
                if place >= len(state) or (place > 0 and state[place - 1] == state[place]):
                    return True
        for part in self.rest[number].get(comp, ()):
            if id(part) not in decided:
                decided[id(part)] = bool(self.decide(part, comp, state))
            if not decided[id(part)]:
                return True
        return False

    def concerns(self, number: int, comp: int) -> bool:
        """Whether this component alone may keep trigger ``number`` from being enabled."""
        trigger = self.triggers[number]
        if comp == self.index[trigger.where] or (trigger.budget >= 0 and comp == self.first_budget + trigger.budget):
            return True
        return comp in self.rest[number]

    def width(self, comp: int) -> int:
        """Bits for a component's local states to begin with."""
        if comp >= self.first_budget:
            return self.system.budgets[comp - self.first_budget].limit.bit_length()
        if comp >= self.parts:
            return 1 if self.system.channels[comp - self.parts].capacity == 1 else 3
        return 3

    # ── formulas over one component ──

    def decide(self, node: object, comp: int, state: Any) -> Any:
        """The value of a formula that reads this one component."""

        def variable(v: Variable) -> object:
            if isinstance(v, Pending):
                return len(state)
            if isinstance(v, TimerIs):
                return state[1][self.timers[comp].index(cast(Enum, v.timer))] is v.ledger
            return getattr(state[0], v.name)

        return read(node, variable, PYTHON, lambda constant: constant)

    # ── entries ──

    def fill(self, missing: Iterable[tuple[int, int, int]]) -> None:
        """Fill in entries: (component, local state, input) each."""
        for comp, local, given in missing:
            component = self.components[comp]
            state, what = component.locals[local], component.inputs[given]
            if comp < self.parts:
                self.entries.append(self._handled(comp, local, given, state, what))
            elif comp < self.first_budget:
                self.entries.append(self._channelled(comp, local, given, state, what))
            else:
                self.entries.append(Filled(comp, local, given, component.local(state - 1), (), None, ()))

    def _handled(self, comp: int, local: int, given: int, state: State, what: tuple[Any, ...]) -> Filled:
        part = self.system.everyone[comp]
        now, ledger = state[0], list(state[1])
        event = what[-1]
        if what[0] == "expire":
            ledger[self.timers[comp].index(what[1])] = Ledger.OFF
        answer = part.machine.step(now, event)
        if answer.row is HOLE:
            return Filled(comp, local, given, local, ((-1, CODES[Fault.HOLE]),), None, ())
        said = Said.TAKEN if isinstance(answer, Taken) else Said.IGNORED if isinstance(answer, Ignored) else Said.REFUSED
        after, effects = (answer.state, answer.effects) if isinstance(answer, Taken) else (now, ())
        why = None if after is now else self._beyond(comp, after)
        outs: list[Out] = []
        for out in () if why is not None else self._sent(comp, event, said, effects, ledger):
            outs.append(out)
            if out[0] < 0:
                break
        if why is not None:
            outs.append((-1, why))
        elif after is not now or effects or what[0] == "expire":
            # Only then can the state be another; looking it up costs its hash.
            local_after = self.components[comp].local((after, tuple(ledger)))
            return Filled(comp, local, given, local_after, tuple(outs), Handled(part.name, event, now, said, answer.row.name), effects)
        return Filled(comp, local, given, local, tuple(outs), Handled(part.name, event, now, said, answer.row.name), effects)

    def _beyond(self, comp: int, state: object) -> int | None:
        """Why a part may not be in this state: its number, or None. Asked of each state once."""
        known = self.allowed[comp]
        if state not in known:
            known[state] = self._why_not(comp, state)
        return known[state]

    def _why_not(self, comp: int, state: object) -> int | None:
        if any(getattr(state, name) > self.counter for name in self.counters[comp]):
            return CODES[None]
        if any(not field.holds(getattr(state, name)) for name, field in fields_of(type(state)).items()):
            return CODES[Fault.DOMAIN]
        return None

    def _sent(self, comp: int, event: object, said: Said, effects: tuple[object, ...], ledger: list[Ledger]) -> Iterator[Out]:
        yield from self._copied(comp, event, said)
        for effect in effects:
            if isinstance(effect, TIMER_EFFECTS):
                place = self.timers[comp].index(effect.timer)
                ledger[place] = clocked(ledger[place], effect)
                continue
            yield from self._copied(comp, effect, said)
            received = type(effect) in self.absorbed[comp]
            for wire in self.wires[comp]:
                if wire.carries(effect):
                    received = True
                    yield self._carried(wire, effect)
            if not received:
                yield -1, CODES[Fault.UNRECEIVED]

    def _copied(self, comp: int, thing: object, said: Said) -> Iterator[Out]:
        for copy in self.copies[comp]:
            if copy.sees(thing, said):
                self.used_copies.add(self.system.copies.index(copy))
                yield self._event(copy, copy.to, copy.arrives(thing))

    def _carried(self, wire: Wire | Empties, effect: object) -> Out:
        self.used_wires.add(self.system.wires.index(wire))
        if isinstance(wire, Empties):
            comp = self.index[wire.channel.name]
            return comp, self.components[comp].input(("empty",))
        return self._event(wire, wire.to, wire.arrives(effect))

    def _event(self, along: Wire | Copy, to: AnyPart | Channel, event: object) -> Out:
        if any(not field.holds(getattr(event, name)) for name, field in fields_of(type(event)).items()):
            return -1, CODES[Fault.DOMAIN]
        comp = self.index[to.name]
        return comp, self.components[comp].input(("push" if isinstance(to, Channel) else "event", event))

    def _channelled(self, comp: int, local: int, given: int, state: tuple[Any, ...], what: tuple[Any, ...]) -> Filled:
        channel = self.system.channels[comp - self.parts]
        outs: tuple[Out, ...] = ()
        did: tuple[Happening, ...] = ()
        after = state
        if what[0] == "push":
            if len(state) >= channel.capacity:
                outs = ((-1, CODES[Fault.OVERFLOW]),)
            else:
                after = tuple(sorted((*state, what[1]), key=repr)) if channel.reordered else (*state, what[1])
        elif what[0] == "empty":
            after, did = (), (Happening.DROPPED,)
        else:
            after, did = state[: what[1]] + state[what[1] + 1 :], (Happening.LOST,)
            if what[0] == Kind.DELIVER.value:
                to = self.index[channel.to.name]
                outs, did = ((to, self.components[to].input(("event", state[what[1]]))),), (Happening.DELIVERED,)
        return Filled(comp, local, given, self.components[comp].local(after), outs, None, (), did)

    # ── what a step counts ──

    def counted(self, entry: Filled) -> Iterator[tuple[int, int]]:
        """Which counted words the entry adds to, and how much."""
        name = self.components[entry.component].name
        for number, word in enumerate(self.compiler.counts):
            amount = 0
            if isinstance(word, Acted):
                amount = 1 if entry.handled is not None and entry.effects else 0
            elif word.scope != name:
                continue
            elif isinstance(word, ChannelDid):
                amount = entry.did.count(word.what)
            elif entry.handled is not None:
                amount = self._counted(word, entry.handled, entry.effects)
            if amount:
                yield number, amount

    @staticmethod
    def _counted(word: Variable, handled: Handled, effects: tuple[object, ...]) -> int:
        env = {Variable(type(handled.state), n, word.scope): getattr(handled.state, n) for n in fields_of(type(handled.state))}

        def fits(thing: object) -> bool:
            pattern = cast("tuple[tuple[str, object], ...]", getattr(word, "fields", ()))
            return type(thing) is word.owner and all(getattr(thing, name) == value(node, env) for name, node in pattern)

        if isinstance(word, Received):
            return int((word.said is None or word.said is handled.said) and fits(handled.event))
        return sum(1 for effect in effects if fits(effect)) if isinstance(word, SentBy) else 0

    def handled(self) -> list[Handled]:
        """What parts handled, once each, whatever their timers were."""
        same_state = [_first_of(c.locals, lambda local: local[0]) for c in self.components[: self.parts]]
        same_event = [_first_of(c.inputs, lambda given: given[-1]) for c in self.components[: self.parts]]
        found: dict[tuple[int, int, int], Handled] = {}
        for e in self.entries:
            if e.handled is not None:
                found.setdefault((e.component, same_state[e.component][e.local], same_event[e.component][e.given]), e.handled)
        return list(found.values())

    # ── worlds ──

    def world(self, locals_: Iterable[int]) -> World:
        """The state of the system whose components have these local states."""
        states = [self.components[n].locals[int(local)] for n, local in enumerate(locals_)]
        parts = cast("list[State]", states[: self.parts])
        channels, budgets = states[self.parts : self.first_budget], states[self.first_budget :]
        return World(tuple(p[0] for p in parts), tuple(p[1] for p in parts), tuple(channels), tuple(budgets))


def _first_of(things: list[Any], key: Callable[[Any], Any]) -> list[int]:
    """For each thing the number of the first one with the same key."""
    first: dict[Any, int] = {}
    return [first.setdefault(key(thing), n) for n, thing in enumerate(things)]


def clocked(ledger: Ledger, effect: object) -> Ledger:
    """What a timer is after a timer effect."""
    if isinstance(effect, StartTimer):
        return Ledger.RUNNING
    if isinstance(effect, PauseTimer):
        return Ledger.PAUSED if ledger is Ledger.RUNNING else ledger
    if isinstance(effect, ResumeTimer):
        return Ledger.RUNNING if ledger is Ledger.PAUSED else ledger
    return Ledger.OFF
