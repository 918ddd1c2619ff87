"""Names and values in the text an oracle reads: one identifier for each thing, none of them a word of the language."""

from __future__ import annotations

import re
from collections.abc import Iterable
from enum import Enum

from turnproof.checkers.oracles.folding import WIDEST
from turnproof.checkers.oracles.model import Key, Model
from turnproof.machines.kernel import Field, fields_of, token_names
from turnproof.machines.kernel.domain import Kind
from turnproof.specs.system_words import Ledger

LEDGER = (Ledger.OFF, Ledger.RUNNING, Ledger.PAUSED)
"""What the clock knows of a timer, in the order of its numbers."""


class Names:
    """Gives every thing of a model an identifier: readable, unique, and not among ``reserved``."""

    def __init__(self, reserved: Iterable[str]) -> None:
        self.taken = set(reserved)
        self.known: dict[object, str] = {}
        self.constants: dict[str, int] = {}
        """Every named value, in order of first use."""
        self.groups: dict[str, str] = {}
        """Named value -> what it is one of."""
        self.tokens: dict[str, str] = {}

    def of(self, thing: object, wish: str) -> str:
        """The identifier of ``thing``, ``wish`` if it is free."""
        if thing not in self.known:
            name = re.sub(r"\W+", "_", wish)
            name = name if name[:1].isalpha() else f"x_{name}"
            while name in self.taken:
                name += "_"
            self.taken.add(name)
            self.known[thing] = name
        return self.known[thing]

    def member(self, value: Enum) -> str:
        """The named constant of a member."""
        members = list(type(value))
        name = self.of(value, f"{self.of(type(value), type(value).__name__)}_{value.name}")
        self.constants[name] = members.index(value)
        self.groups[name] = type(value).__name__
        return name

    def ledger(self, value: Ledger) -> str:
        """The named constant of what a timer is."""
        name = self.of(("ledger", value), f"Timer_{value.name}")
        self.constants[name] = LEDGER.index(value)
        self.groups[name] = "what a timer is"
        return name

    def grouped(self) -> list[tuple[str, list[tuple[str, int]]]]:
        """The named values by what they are one of; each group in the order of its numbers."""
        groups: dict[str, list[tuple[str, int]]] = {}
        for name, number in self.constants.items():
            groups.setdefault(self.groups.get(name, ""), []).append((name, number))
        return [(group, sorted(values, key=lambda value: value[1])) for group, values in groups.items()]

    def token(self, value: str) -> str:
        """The named constant of an identity."""
        if value not in self.tokens:
            self.tokens[value] = self.of(("token", value), f"token_{value}" if value else "nobody")
            self.constants[self.tokens[value]] = len(self.tokens) - 1
            self.groups[self.tokens[value]] = "identities"
        return self.tokens[value]

    def constant(self, value: object, true: str, false: str) -> str:
        """A value as text."""
        if isinstance(value, bool):
            return true if value else false
        if isinstance(value, Enum):
            return self.member(value)
        return self.token(value) if isinstance(value, str) else str(value)

    def handler(self, key: Key) -> str:
        """What a part does with a class of event."""
        return self.of(("handler", key), f"{key[0]}_on_{key[1].__name__}")

    def message(self, key: Key) -> str:
        """The event on its way to the part."""
        name = self.of(("message", key), f"{key[1].__name__}_to_{key[0]}")
        self.constants.setdefault(name, sum(isinstance(k, tuple) and k[0] == "message" for k in self.known))
        self.groups[name] = "events on their way"
        return name

    def field(self, part: str, name: str) -> str:
        """The variable of one field of a part."""
        return self.of(("field", part, name), f"{part}_{name}")

    def timer(self, part: str, timer: Enum) -> str:
        """The variable of a timer of a part."""
        return self.of(("timer", part, timer), f"{part}_timer_{timer.name.lower()}")


def words(text: str) -> frozenset[str]:
    """The words of a text: those that a language keeps for itself, and those of the frame around a model."""
    return frozenset(text.split())


def bounds(field: Field, model: Model, tokens: int, *, carried: bool = False) -> tuple[int, int]:
    """Smallest and largest number that stands for a value of the field; ``carried`` by an event, a counter has no bound of its own."""
    if field.kind is Kind.RANGE:
        return field.lo, field.hi
    if field.kind is Kind.COUNTER:
        return 0, WIDEST if carried else model.counter
    if field.kind is Kind.TOKEN:
        return 0, max(tokens, len(token_names(model.spec.tokens)) + 1) - 1
    return (0, 1) if field.kind is Kind.BOOL else (0, len(list(field.base)) - 1)  # type: ignore[call-overload]


def state_fields(model: Model) -> list[tuple[str, Field, object]]:
    """Part, field and first value of everything in the state of a part that a table can read."""
    return [
        (part.name, field, getattr(part.start, field.name))
        for part in model.system.everyone
        for field in fields_of(part.machine.state).values()
        if field.kind is not Kind.OPAQUE
    ]


__all__ = ["LEDGER", "Names", "bounds", "state_fields", "words"]
