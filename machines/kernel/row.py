"""The vocabulary of every table: a row, the three answers of a step, timers and their durations."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from enum import Enum
from typing import Annotated, Generic, TypeVar

import attrs

from turnproof.machines.kernel.domain import Opaque, TableError
from turnproof.machines.kernel.formula import Formula, formula, show

S = TypeVar("S")
F = TypeVar("F")


@attrs.frozen(kw_only=True, eq=False, repr=False)
class Row(Generic[S, F]):
    """One rule: on this event, at these phases, when this holds, answer so. The first matching row of a machine wins.

    A row answers in exactly one of three ways:

    * taken: any of ``to``, ``data``, ``emit`` is given, or ``stay`` is true (a step that changes nothing and is still wanted);
    * ignored: ``ignore`` says why a duplicate or late event is harmless by design;
    * refused: ``refuse`` says why the caller asked for something that must not happen.

    Everything on the right-hand side of ``data`` and ``emit`` reads the state BEFORE the step.
    Raises ``TypeError`` or :class:`TableError` when the row answers in no way or in two.
    """

    on: object = attrs.field(kw_only=False)
    """An event class, or ``symbol(EventClass)`` when the row reads its fields."""
    at: Enum | Sequence[Enum] | None = None
    """The phases where the row applies; None: every phase."""
    when: bool | None = None
    """The guard, a formula over the state and the event; None: always."""
    to: Enum | None = None
    """The next phase; None: the phase stays, unless ``data`` sets it."""
    data: S | None = None
    """``evolve(now, ...)``: the other fields after the step."""
    emit: Sequence[F] = ()
    """Effects, in the order the shell performs them."""
    stay: bool = False
    ignore: str = ""
    refuse: str = ""
    because: str = ""
    """Why the row is as it is, with its source, where a reader would wonder. Shown in tables and explanations."""
    name: str = ""
    """Unique within the machine; made of event, phases and guard when left out."""

    def __attrs_post_init__(self) -> None:
        place = f"Row({self.event.__name__}, ...)"
        if self.when is not None:
            formula(self.when, f"{place}: the guard")
        takes = self.to is not None or self.data is not None or bool(self.emit) or self.stay
        if takes + bool(self.ignore) + bool(self.refuse) != 1:
            found = "nothing" if not (takes or self.ignore or self.refuse) else "more than one of them"
            raise TableError(
                f"{place} answers with {found}: write to=, data=, emit= (or stay=True) for a step that is taken, ignore='why' for "
                "a harmless event, or refuse='why' for a wrong request. A refusal carries no effects."
            )

    @property
    def event(self) -> type:
        """The event class this row is about."""
        return self.on if isinstance(self.on, type) else type(self.on)

    @property
    def phases(self) -> tuple[Enum, ...]:
        """The phases of ``at``; empty means every phase."""
        if self.at is None:
            return ()
        return (self.at,) if isinstance(self.at, Enum) else tuple(self.at)

    @property
    def guard(self) -> Formula | None:
        """``when`` as the formula it is."""
        return None if self.when is None else formula(self.when, "the guard")

    @property
    def answer(self) -> str:
        """``taken``, ``ignored`` or ``refused``."""
        return "ignored" if self.ignore else "refused" if self.refuse else "taken"

    def __repr__(self) -> str:
        parts = [self.name or self.event.__name__]
        if self.phases:
            parts.append("at " + "/".join(p.name.lower() for p in self.phases))
        if self.guard is not None:
            parts.append("when " + show(self.guard))
        return f"<row {' '.join(parts)}: {self.answer}>"


@attrs.frozen
class Taken(Generic[S, F]):
    """The step was taken: the next state, and the effects in the order they must be performed."""

    state: S
    effects: tuple[F, ...]
    row: Row[S, F] = attrs.field(repr=False)


@attrs.frozen
class Ignored(Generic[S, F]):
    """A duplicate or late event: the state stays, harmless by design."""

    why: str
    row: Row[S, F] = attrs.field(repr=False)


@attrs.frozen
class Refused(Generic[S, F]):
    """The caller asked for something that must not happen: the state stays, no effect."""

    why: str
    row: Row[S, F] = attrs.field(repr=False)


Answer = Taken[S, F] | Ignored[S, F] | Refused[S, F]
Step = Callable[[S, object], Answer[S, F]]


@attrs.frozen
class NoSuchEvent:
    """Stands for the event of :data:`HOLE`; never sent."""


HOLE: Row[object, object] = Row(NoSuchEvent, refuse="the table has no row for this event in this state", name="hole")
"""The answer where a table has a hole. ``step`` refuses rather than raises in production; verification fails on a reachable hole."""


@attrs.frozen
class StartTimer:
    """Arm ``timer``: it fires after its duration, and not before ``not_before_ms`` (milliseconds on the shell's clock; 0: at once)."""

    timer: Enum
    not_before_ms: Annotated[int, Opaque] = 0


@attrs.frozen
class StopTimer:
    """Disarm ``timer``, running or paused. If it fires all the same, the machine ignores the expiry."""

    timer: Enum


@attrs.frozen
class PauseTimer:
    """Hold a running ``timer``: what remains of its duration is kept for :class:`ResumeTimer`."""

    timer: Enum


@attrs.frozen
class ResumeTimer:
    """Let a paused ``timer`` run again for what remained when it was paused."""

    timer: Enum


TIMER_EFFECTS = (StartTimer, StopTimer, PauseTimer, ResumeTimer)
"""The effects every machine shares; a shell performs them, the timer discipline of the checkers accounts for them."""


@attrs.frozen
class Duration:
    """A named constant of time. ``source`` says where the figure comes from."""

    milliseconds: int
    source: str

    def __attrs_post_init__(self) -> None:
        if self.milliseconds <= 0:
            raise TableError(f"Duration({self.milliseconds}): a timer of no length is an event, not a timer")


@attrs.frozen(eq=False)
class TimerRule:
    """A timer of a machine: ``armed`` says in which states it runs, ``expires`` is the event of its expiry.

    ``paused`` says in which states it is held with time left; None for a timer that is never paused.
    """

    timer: Enum
    armed: bool
    expires: type
    duration: Duration
    paused: bool | None = None


def durations(rules: Sequence[TimerRule]) -> Mapping[Enum, Duration]:
    """Timer -> duration, for shells."""
    return {rule.timer: rule.duration for rule in rules}
