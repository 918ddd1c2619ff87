"""The ``transitions`` reading of a table: a model that the library moves, one trigger an event, one of its transitions a row and phase.

An independent reading: the library picks the transition (source, then the conditions in order, the first that hold win) and
moves the phase; guards, updates and effects are closures folded from the formulas here, not the generated source of the kernel.

How a row becomes transitions of the library:

* one for each phase of ``at`` (each phase of the machine without ``at``), in the order of the rows;
* ``to`` is its destination; a row that stays, is ignored or is refused is internal (no destination);
* a row whose update sets the phase by a formula is one transition for each phase, with the condition that the formula yields it.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from enum import Enum
from typing import Any, Generic, TypeVar, cast

import attrs
import transitions

from turnproof.machines.kernel import HOLE, Answer, Formula, Ignored, Machine, OnlyIf, Refused, Row, Taken, Variable, read

S = TypeVar("S")
E = TypeVar("E")
F = TypeVar("F")

NO_ROW = cast(Row[Any, Any], HOLE)
Reading = Callable[[Any, Any], Any]
"""The value of a formula, given the state and the event."""
Condition = Callable[[Any], bool]
"""What the library asks before a transition; it is given the event, and reads the state from the model."""


def _binary(function: Callable[[Any, Any], Any]) -> Callable[[Reading, Reading], Reading]:
    return lambda left, right: lambda state, event: function(left(state, event), right(state, event))


def _and(left: Reading, right: Reading) -> Reading:
    return lambda state, event: left(state, event) and right(state, event)


def _or(left: Reading, right: Reading) -> Reading:
    return lambda state, event: left(state, event) or right(state, event)


def _not(operand: Reading) -> Reading:
    return lambda state, event: not operand(state, event)


def _implies(left: Reading, right: Reading) -> Reading:
    return lambda state, event: not left(state, event) or right(state, event)


def _choose(condition: Reading, then: Reading, otherwise: Reading) -> Reading:
    return lambda state, event: then(state, event) if condition(state, event) else otherwise(state, event)


CLOSURES: Mapping[str, Callable[..., Reading]] = {
    "eq": _binary(operator.eq),
    "ne": _binary(operator.ne),
    "lt": _binary(operator.lt),
    "le": _binary(operator.le),
    "gt": _binary(operator.gt),
    "ge": _binary(operator.ge),
    "and": _and,
    "or": _or,
    "not": _not,
    "implies": _implies,
    "add": _binary(operator.add),
    "sub": _binary(operator.sub),
    "choose": _choose,
    "latest": _binary(max),
}
"""Operator -> how two closures become one."""


def closure(node: object, state: type) -> Reading:
    """A formula (or constant) as a function of state and event; ``state`` tells a state field from an event field."""

    def variable(variable: Variable) -> Reading:
        get = operator.attrgetter(variable.name)
        return (lambda s, e: get(s)) if variable.owner is state else (lambda s, e: get(e))

    return read(node, variable, CLOSURES, lambda value: lambda s, e: value)


def template(instance: object, state: type) -> Reading:
    """A state or effect with formulas in it as a function that makes the instance; one without is made once."""
    cls = cast(Any, type(instance))
    names = [f.name for f in attrs.fields(cls)]
    if not any(isinstance(getattr(instance, name), Formula) for name in names):
        return lambda s, e: instance
    parts = [closure(getattr(instance, name), state) for name in names]
    return lambda s, e: cls(*[part(s, e) for part in parts])


class Model:
    """What the library moves. It sets ``phase``; the callbacks of the chosen transition note the rest."""

    def __init__(self, phase: Enum) -> None:
        self.phase = phase
        self.data: Any = None
        """The state before the step."""
        self.row: Row[Any, Any] = NO_ROW
        """The row of the transition that was executed."""
        self.after: Any = None
        """The other fields after the step; the phase is what the library set."""
        self.effects: tuple[Any, ...] = ()


class View(Generic[S, E, F]):
    """A machine as the ``transitions`` library runs it. Not thread-safe: one model is put back for every step."""

    def __init__(self, machine: Machine[S, E, F]) -> None:
        self.source = machine
        self.model = Model(getattr(machine.initial, machine.phase))
        self.machine = transitions.Machine(
            model=self.model,
            states=type(self.model.phase),
            initial=self.model.phase,
            model_attribute="phase",
            auto_transitions=False,
            ignore_invalid_triggers=True,
        )
        for row in machine.rows:
            self._add(row)
        self._triggers = {event: getattr(self.model, event.__name__) for event in machine.events}
        self._with_phase = _setter(machine.state, machine.phase)

    def play(self, state: S, event: E) -> Answer[S, F]:
        """What the library answers; compare it with ``machine.step``. A pair without a row is refused by ``HOLE``, as there."""
        model = self.model
        model.phase = phase = getattr(state, self.source.phase)
        model.data, model.row = state, NO_ROW
        self._triggers[type(event)](event)
        row = model.row
        if row.ignore:
            return Ignored(row.ignore, row)
        if row.refuse:
            return Refused(row.refuse, row)
        if model.after is state:
            after = state if model.phase is phase else self._with_phase(state, model.phase)
        else:
            after = self._with_phase(model.after, model.phase)
        return Taken(after, model.effects, row)

    def _add(self, row: Row[S, F]) -> None:
        state, model = self.source.state, self.model
        guard = None if row.guard is None else closure(row.guard, state)
        conditions: list[Condition] = []
        if guard is not None:
            conditions.append(lambda event: bool(guard(model.data, event)))
        note = self._note(row)
        for source in row.phases or self.source.phases:
            for dest, condition in self._destinations(row, source):
                self.machine.add_transition(
                    row.event.__name__,
                    source,
                    None if dest is source else dest,
                    conditions=[*conditions, *condition],
                    before=note,
                )

    def _destinations(self, row: Row[S, F], source: Enum) -> Iterator[tuple[Enum, list[Condition]]]:
        target = row.to if row.to is not None else None if row.data is None else getattr(row.data, self.source.phase)
        if not isinstance(target, Formula):
            yield (source if target is None else target), []
        elif target.op == "var" and target.args[0] == Variable(self.source.state, self.source.phase):
            yield source, []
        else:
            for phase in self.source.phases:
                yield phase, [_lands(closure(target, self.source.state), self.model, phase)]

    def _note(self, row: Row[S, F]) -> Callable[[Any], None]:
        model = self.model
        if row.answer != "taken":
            return lambda event: setattr(model, "row", row)
        state = self.source.state
        after: Reading = (lambda s, e: s) if row.data is None else template(row.data, state)
        effects = _effects(row, state)

        def note(event: Any) -> None:
            model.row = row
            model.after = after(model.data, event)
            model.effects = effects(model.data, event)

        return note


@attrs.frozen
class Disagreement:
    """A pair that the library and ``machine.step`` answer differently: another row, successor or list of effects."""

    state: object
    event: object
    library: Answer[Any, Any]
    step: Answer[Any, Any]

    def __str__(self) -> str:
        return f"{self.event} in {self.state}: transitions says {_said(self.library)}, step says {_said(self.step)}"


def _said(answer: Answer[Any, Any]) -> str:
    text = f"row {answer.row.name} ({answer.row.answer})"
    return f"{text} -> {answer.state} emitting {answer.effects}" if isinstance(answer, Taken) else text


def disagreements(machine: Machine[S, E, F], pairs: Iterable[tuple[S, E]], *, view: View[S, E, F] | None = None) -> Iterator[Disagreement]:
    """Every given pair that the library answers otherwise than ``step``. About 12 us a pair, of which the library itself takes 10."""
    play = (view or View(machine)).play
    for state, event in pairs:
        library, step = play(state, event), machine.step(state, event)
        if library.row is not step.row or library != step:
            yield Disagreement(state, event, library, step)


def _lands(target: Reading, model: Model, phase: Enum) -> Condition:
    return lambda event: target(model.data, event) is phase


def _setter(cls: type, name: str) -> Callable[[Any, Any], Any]:
    names = [f.name for f in attrs.fields(cast(Any, cls))]
    place = names.index(name)
    # One name alone would give its value, not a tuple of one.
    values: Callable[[Any], Sequence[Any]] = operator.attrgetter(*names) if len(names) > 1 else lambda instance: (getattr(instance, name),)

    def put(instance: Any, value: Any) -> Any:
        fields = list(values(instance))
        fields[place] = value
        return cast(Any, cls)(*fields)

    return put


def _effects(row: Row[Any, Any], state: type) -> Reading:
    parts: list[tuple[Reading | None, Reading]] = []
    for item in row.emit:
        condition = closure(item.condition, state) if isinstance(item, OnlyIf) else None
        parts.append((condition, template(item.effect if isinstance(item, OnlyIf) else item, state)))
    if not parts:
        return lambda s, e: ()
    return lambda s, e: tuple([made(s, e) for condition, made in parts if condition is None or condition(s, e)])
