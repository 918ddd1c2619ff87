"""The words of properties and guards over several parts: whose state, what happened to whom within one step, what is under way.

``state("op", MACHINE)`` is ``symbol(State)`` whose variables carry the part's name as their scope, so that Always, Step, Sometimes,
LeadsTo and Fair read systems as they read one machine. A step of a system may deliver several events (run to completion);
the words of a step therefore COUNT what happened in it. Field patterns of a count are constants, or formulas over the part's
own state just before it handled the event in question.
"""

from __future__ import annotations

from enum import Enum
from typing import Any, TypeVar, cast

import attrs

from turnproof.machines.kernel import Formula, Machine, TableError, Variable, symbol, variables
from turnproof.specs.language import Emitted, Said

S = TypeVar("S")

NEXT = ".next"
"""Ends the scope of a variable that reads a part's state after the step: ``op.next``."""


class Ledger(Enum):
    """What the clock knows of a timer of a part."""

    OFF = "off"
    RUNNING = "running"
    PAUSED = "paused"


class Happening(Enum):
    """What a step may do to a channel."""

    DELIVERED = "delivered"
    LOST = "lost"
    DROPPED = "dropped"


@attrs.frozen(eq=False)
class Received(Variable):
    """How many events of class ``owner`` the part ``scope`` handled in the step, answered as ``said`` (None: in any way)."""

    said: Said | None = None
    fields: tuple[tuple[str, object], ...] = ()

    # As in Emitted: different patterns are different words.
    __eq__ = object.__eq__
    __hash__ = object.__hash__

    def __str__(self) -> str:
        return f"{self.scope} {self.said.value if self.said else 'received'} {self.owner.__name__}{_pattern(self.fields)}"

    def inner(self) -> tuple[object, ...]:
        """The formulas of its pattern."""
        return tuple(v for _, v in self.fields)


@attrs.frozen(eq=False)
class SentBy(Emitted):
    """How many effects of class ``owner`` the part ``scope`` emitted in the step."""

    def __str__(self) -> str:
        return f"{self.scope} emitted {self.owner.__name__}{_pattern(self.fields)}"


@attrs.frozen(eq=False)
class TimerIs(Variable):
    """Whether the clock has ``timer`` of the part ``scope`` as ``ledger``."""

    timer: Enum | None = None
    ledger: Ledger = Ledger.RUNNING

    def __str__(self) -> str:
        return f"{self.scope}.{cast(Enum, self.timer).name.lower()} is {self.ledger.value}"


@attrs.frozen(eq=False)
class Pending(Variable):
    """How many events are under way in the channel ``scope``."""

    def __str__(self) -> str:
        return f"events in {self.scope}"


@attrs.frozen(eq=False)
class ChannelDid(Variable):
    """How many times the step did ``what`` to the channel ``scope`` (0 or 1)."""

    what: Happening = Happening.DELIVERED

    def __str__(self) -> str:
        return f"{self.scope} {self.what.value}"


@attrs.frozen(eq=False)
class Acted(Variable):
    """How many events any part took in the step with an effect. A step without, that leaves every state as it was, is a stutter."""

    def __str__(self) -> str:
        return "events taken with an effect"


STEP_WORDS = (Received, SentBy, ChannelDid, Acted)
"""Variables that only a step can read."""


def _pattern(fields: tuple[tuple[str, object], ...]) -> str:
    inside = ", ".join(f"{n}={v.name.lower() if isinstance(v, Enum) else v}" for n, v in fields)
    return f"({inside})" if inside else ""


def reads_step(formula: object) -> bool:
    """Whether a formula can only be read on a step: it counts something, or reads a state after the step."""
    return any(isinstance(v, STEP_WORDS) or v.scope.endswith(NEXT) for v in variables(formula))


def state(part: str, machine: Machine[S, Any, Any]) -> S:
    """The present state of the part of that name, as a symbol."""
    return cast(S, symbol(machine.state, scope=part))


def after(part: str, machine: Machine[S, Any, Any]) -> S:
    """The state of that part after the step, as a symbol."""
    return cast(S, symbol(machine.state, scope=part + NEXT))


def received(part: str, event: type, said: Said | None = None, **fields: object) -> int:
    """How many such events the part handled in the step."""
    return cast(int, Formula("var", (Received(event, "", part, said, _fields(event, fields)),)))


def sent(part: str, effect: type, **fields: object) -> int:
    """How many such effects the part emitted in the step."""
    return cast(int, Formula("var", (SentBy(effect, "", part, _fields(effect, fields)),)))


def acted() -> int:
    """How many events any part took in the step with an effect."""
    return cast(int, Formula("var", (Acted(int, "acted", ""),)))


def _fields(cls: type, fields: dict[str, object]) -> tuple[tuple[str, object], ...]:
    known = [f.name for f in attrs.fields(cast(Any, cls))]
    for name in fields:
        if name not in known:
            raise TableError(f"{cls.__name__} has no field {name!r}; it has {', '.join(known) or 'none'}")
    return tuple(fields.items())


def timer_is(part: str, timer: Enum, ledger: Ledger) -> bool:
    """The clock has that timer of the part so."""
    return cast(bool, Formula("var", (TimerIs(type(timer), timer.name, part, timer, ledger),)))


def pending(channel: str) -> int:
    """How many events are under way in the channel."""
    return cast(int, Formula("var", (Pending(int, "pending", channel),)))


def channel_did(channel: str, what: Happening) -> bool:
    """The step did that to the channel."""
    return cast(int, Formula("var", (ChannelDid(int, what.value, channel, what),))) >= 1
