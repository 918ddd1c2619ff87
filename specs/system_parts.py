"""The pieces of a system that stand for themselves: parts, channels, and what limits the environment. Read ``system`` first."""

from __future__ import annotations

from enum import Enum
from typing import Any, Generic, TypeVar

import attrs

from turnproof.machines.kernel import Machine, TableError
from turnproof.specs.language import Said
from turnproof.specs.system_words import Happening, Ledger, after, channel_did, pending, received, sent, state, timer_is

S = TypeVar("S")


@attrs.frozen(eq=False)
class Part(Generic[S]):
    """A named instance of a machine. Two parts may be instances of one machine. ``initial`` overrides the machine's own."""

    name: str
    machine: Machine[S, Any, Any] = attrs.field(repr=False)
    initial: S | None = None

    @property
    def start(self) -> S:
        """The state in which every run finds the part."""
        return self.machine.initial if self.initial is None else self.initial

    @property
    def now(self) -> S:
        """The present state, for guards and properties."""
        return state(self.name, self.machine)

    @property
    def next(self) -> S:
        """The state after the step, for Step properties."""
        return after(self.name, self.machine)

    def received(self, event: type, **fields: object) -> int:
        """How many such events the part handled in the step, however answered."""
        return received(self.name, event, None, **fields)

    def on(self, event: type, **fields: object) -> bool:
        """The part handled such an event in the step, however answered."""
        return received(self.name, event, None, **fields) >= 1

    def took(self, event: type, **fields: object) -> bool:
        """The part handled such an event in the step and took it."""
        return received(self.name, event, Said.TAKEN, **fields) >= 1

    def ignored(self, event: type, **fields: object) -> bool:
        """The part ignored such an event in the step."""
        return received(self.name, event, Said.IGNORED, **fields) >= 1

    def refused(self, event: type, **fields: object) -> bool:
        """The part refused such an event in the step."""
        return received(self.name, event, Said.REFUSED, **fields) >= 1

    def count(self, effect: type, **fields: object) -> int:
        """How many such effects the part emitted in the step."""
        return sent(self.name, effect, **fields)

    def emits(self, effect: type, **fields: object) -> bool:
        """The part emitted such an effect in the step."""
        return sent(self.name, effect, **fields) >= 1

    def running(self, timer: Enum) -> bool:
        """That timer of the part runs."""
        return timer_is(self.name, timer, Ledger.RUNNING)

    def paused(self, timer: Enum) -> bool:
        """That timer of the part is held."""
        return timer_is(self.name, timer, Ledger.PAUSED)


AnyPart = Part[Any]


@attrs.frozen
class Switch:
    """A named power of the environment. A report says which switches a violation needs; a run may turn any of them off."""

    name: str
    about: str = attrs.field(default="", eq=False)


@attrs.frozen
class Budget:
    """At most ``limit`` times in a run, together, for everything that shares this budget. An event that is ignored or refused counts."""

    name: str
    limit: int

    def __attrs_post_init__(self) -> None:
        if self.limit < 1:
            raise TableError(
                f"Budget({self.name!r}, {self.limit}): a budget of less than one forbids; leave the event out, or turn its switch off"
            )


@attrs.frozen(eq=False)
class May:
    """A choice of the environment: where ``when`` holds, if ``switch`` is on, within ``budget``. Each of them None: without that limit."""

    when: bool | None = None
    switch: Switch | None = None
    budget: Budget | None = None


@attrs.frozen(eq=False, kw_only=True)
class Channel:
    """Events under way to a part, at most ``capacity`` of them, first in first out. Each delivery is a step of its own, at any time later.

    One event more than ``capacity`` is an error that exploration reports with its trace: bound what is sent, or make room.
    """

    name: str = attrs.field(kw_only=False)
    to: AnyPart = attrs.field(kw_only=False)
    capacity: int
    when: bool | None = None
    """Nothing is delivered where this does not hold; None: no such limit."""
    reordered: bool = False
    """Any event under way may be the next to arrive, not only the first."""
    lossy: May | None = None
    """The event that would be next to arrive may get lost instead. (Losing at the head loses any subset of a queue in the end.)"""
    droppable: May | None = None
    """Everything under way may get lost at once."""

    @property
    def length(self) -> int:
        """How many events are under way."""
        return pending(self.name)

    @property
    def delivers(self) -> bool:
        """The step delivers from this channel."""
        return channel_did(self.name, Happening.DELIVERED)

    @property
    def loses(self) -> bool:
        """The step loses one event."""
        return channel_did(self.name, Happening.LOST)

    @property
    def drops(self) -> bool:
        """The step loses everything under way (also an empty channel can be dropped by a part's effect)."""
        return channel_did(self.name, Happening.DROPPED)
