"""The words a formula uses: of a state, of a step, of one event; and whether it may use them where it stands."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import cast

import attrs

from turnproof.machines.kernel import Formula, TableError, Variable
from turnproof.specs.language import Answered, Emitted, OnEvent


def check_words(node: object, where: str, *, states: Sequence[type], events: Sequence[type], step: bool) -> None:
    """Raise :class:`TableError` if ``node`` reads what it cannot see.

    ``states`` are the classes whose fields it may read. With ``step`` it may also read the state after, the event, the answer
    and the effects; the field of an event only behind ``on(Event)``, since another event has no such field.
    """
    known = ", ".join(cls.__name__ for cls in states) + (" and events" if step else "")
    for variable in words_of(node):
        owner = variable.owner.__name__
        about_step = isinstance(variable, (OnEvent, Answered, Emitted))
        if (about_step or variable.scope == "next") and not step:
            raise TableError(f"{where} reads `{variable}`, a word of a step, but it is about a state: make it a Step")
        if isinstance(variable, OnEvent) and variable.owner not in events:
            raise TableError(f"{where} speaks of the event {owner}, which the machine does not have")
        is_field = variable.owner in states or (step and not variable.scope and variable.owner in events)
        if not about_step and not is_field:
            raise TableError(f"{where} reads {owner}.{variable.name}; it may read {known}")
    if step:
        for event in events:
            _Guarded(event, frozenset(events), where).value(node)


def words_of(node: object) -> tuple[Variable, ...]:
    """The variables of a formula, each occurrence of a pattern of effects by itself."""
    return tuple(_read_by(node))


def _read_by(node: object) -> Iterator[Variable]:
    if isinstance(node, Formula):
        for arg in node.args:
            if isinstance(arg, Variable):
                yield arg
                for inner in arg.inner():
                    yield from _read_by(inner)
            else:
                yield from _read_by(arg)


@attrs.frozen
class _Guarded:
    """A formula's value where only the class of the event is known: true, false, or None."""

    event: type
    events: frozenset[type]
    where: str

    def value(self, node: object) -> bool | None:
        if not isinstance(node, Formula):
            return node if isinstance(node, bool) else None
        if node.op == "var":
            return self.variable(cast(Variable, node.args[0]))
        if node.op == "named":
            return self.value(node.args[1])
        first = self.value(node.args[0])
        if node.op == "not":
            return None if first is None else not first
        if node.op in ("and", "or", "implies"):
            stop = node.op != "and"
            first = first if node.op != "implies" or first is None else not first
            return first if first is stop else self.joined(first, self.value(node.args[1]), stop)
        if node.op == "choose" and first is not None:
            return self.value(node.args[1 if first else 2])
        for arg in node.args[1:]:
            self.value(arg)
        return None

    @staticmethod
    def joined(first: bool | None, second: bool | None, stop: bool) -> bool | None:
        return stop if second is stop else second if first is not None else None

    def variable(self, variable: Variable) -> bool | None:
        if isinstance(variable, OnEvent):
            return variable.owner is self.event
        if isinstance(variable, Emitted):
            for inner in variable.inner():
                self.value(inner)
        elif variable.owner in self.events and variable.owner is not self.event:
            name = variable.owner.__name__
            raise TableError(
                f"{self.where} reads {name}.{variable.name} also where the event is {self.event.__name__}, which has no such field: "
                f"write on({name}) & ... before it, or implies(on({name}), ...) around it"
            )
        return None


def is_about_steps(node: object) -> bool:
    """Whether a formula uses words of a step. The field of an event stands behind ``on(Event)``, so it need not be looked for."""
    return any(isinstance(v, (OnEvent, Answered, Emitted)) or v.scope == "next" for v in words_of(node))


__all__ = ["check_words", "is_about_steps", "words_of"]
