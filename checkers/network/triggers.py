"""Everything that may begin a step of a system, listed once: which events may come, which timers may expire, what channels may do."""

from __future__ import annotations

import itertools
from collections.abc import Collection, Iterator
from enum import Enum
from typing import Any, cast

import attrs

from turnproof.machines.kernel import Formula, Variable, fields_of, formula, show_constant, variables
from turnproof.specs.system import May, Spontaneous, Switch, System


class Kind(Enum):
    """The five ways a step begins."""

    SEND = "send"
    """A spontaneous event comes to a part."""
    EXPIRE = "expire"
    """A running timer of a part fires."""
    DELIVER = "deliver"
    """A channel delivers."""
    LOSE = "lose"
    """A channel loses the event that would be next."""
    DROP = "drop"
    """A channel loses everything."""


@attrs.frozen(eq=False)
class Trigger:
    """One way to begin a step. ``position`` is the place in the channel (0 but for reordered channels)."""

    kind: Kind
    where: str
    """The part, or the channel."""
    event: Any = None
    timer: Enum | None = None
    position: int = 0
    guard: Formula | None = None
    budget: int = -1
    """Index into ``system.budgets``, -1 for none."""
    switch: Switch | None = None
    source: Spontaneous | None = None

    def __str__(self) -> str:
        if self.kind is Kind.SEND:
            return f"{self.where} <- {show_event(self.event)}"
        if self.kind is Kind.EXPIRE:
            return f"{self.where}: {cast(Enum, self.timer).name.lower()} expires"
        return f"{self.where} {self.kind.value}s" + (f" #{self.position}" if self.position else "")


def show_event(event: object) -> str:
    """``AbortRequested(reason=user)``."""
    fields = ", ".join(f"{name}={show_constant(getattr(event, name))}" for name in fields_of(type(event)))
    return f"{type(event).__name__}({fields})" if fields else type(event).__name__


def triggers(system: System, *, tokens: int, counter: int, off: Collection[str] = ()) -> tuple[Trigger, ...]:
    """Every trigger whose switch is not among the names in ``off``, in a stable order."""
    every = itertools.chain(
        itertools.chain.from_iterable(_sends(system, s, tokens, counter) for s in system.spontaneous),
        (Trigger(Kind.EXPIRE, part.name, rule.expires(), rule.timer) for part in system.parts for rule in part.machine.timers),
        _channels(system),
    )
    return tuple(t for t in every if t.switch is None or t.switch.name not in off)


def _sends(system: System, source: Spontaneous, tokens: int, counter: int) -> Iterator[Trigger]:
    budget = -1 if source.budget is None else system.budgets.index(source.budget)
    cls = source.event_class
    fields = fields_of(cls)
    given = {} if isinstance(source.event, type) else {name: getattr(source.event, name) for name in fields}
    domains = [
        (given[name],) if name in given and not isinstance(given[name], Formula) else field.values(tokens=tokens, counter=counter)
        for name, field in fields.items()
    ]
    for values in itertools.product(*domains):
        chosen = dict(zip(fields, values, strict=True))
        # A field given as a formula over parts: this event comes only where the formula has this very value.
        terms = [
            formula(node == chosen[name], "a field")
            for name, node in given.items()
            if isinstance(node, Formula) and not _is_own(node, cls, name)
        ]
        if source.when is not None:
            terms.append(substitute(formula(source.when, "when="), cls, chosen))
        guard = _conjunction(terms)
        yield Trigger(Kind.SEND, source.to.name, cls(**chosen), guard=guard, budget=budget, switch=source.switch, source=source)


def _is_own(node: Formula, cls: type, name: str) -> bool:
    return node.op == "var" and node.args[0] == Variable(cls, name)


def _conjunction(terms: list[Formula]) -> Formula | None:
    if not terms:
        return None
    first, *rest = terms
    for other in rest:
        first = first & other
    return first


def substitute(node: Formula, cls: type, values: dict[str, object]) -> Formula:
    """The formula with the fields of an event of class ``cls`` replaced by their values."""
    if not any(v.owner is cls and not v.scope for v in variables(node)):
        return node
    if node.op == "var":
        return cast(Formula, values[cast(Variable, node.args[0]).name])
    return Formula(node.op, tuple(substitute(arg, cls, values) if isinstance(arg, Formula) else arg for arg in node.args))


def _channels(system: System) -> Iterator[Trigger]:
    for channel in system.channels:
        when = None if channel.when is None else formula(channel.when, "when=")
        places = range(channel.capacity if channel.reordered else 1)
        for position in places:
            yield Trigger(Kind.DELIVER, channel.name, position=position, guard=when)
        if channel.lossy is not None:
            for position in places:
                yield _may(system, channel.lossy, Kind.LOSE, channel.name, position)
        if channel.droppable is not None:
            yield _may(system, channel.droppable, Kind.DROP, channel.name, 0)


def _may(system: System, may: May, kind: Kind, name: str, position: int) -> Trigger:
    guard = None if may.when is None else formula(may.when, "when=")
    budget = -1 if may.budget is None else system.budgets.index(may.budget)
    return Trigger(kind, name, position=position, guard=guard, budget=budget, switch=may.switch)
