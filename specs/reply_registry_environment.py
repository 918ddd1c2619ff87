"""The environment of the reply registry: owners that begin replies, attempts that run for them, and the ids a session rotates through.

Written as machines so that each may do anything a real one does: an owner may vanish at any moment, an attempt may end late or
never. None of them is part of the runtime.
"""

from __future__ import annotations

from enum import Enum
from typing import Annotated, Any

from attrs import frozen

from turnproof.machines.kernel import Machine, Range, Row, symbol


class OwnerPhase(Enum):
    """How far the owner of a reply is."""

    AWAY = "away"
    ASKING = "asking"
    BEGUN = "begun"
    """Admitted once; an owner begins one reply in a run."""


@frozen
class Owner:
    """The caller that wants to begin one reply."""

    phase: OwnerPhase = OwnerPhase.AWAY


@frozen
class BeginWanted:
    """It wants to begin, perhaps again after a refusal."""


@frozen
class Admitted:
    """The slot is its reply's."""


@frozen
class AskSlot:
    """Ask for the slot of the key."""


@frozen
class TellBegun:
    """The reply has begun: its session id belongs to it."""


owner = symbol(Owner)
OWNER: Machine[Owner, Any, Any] = Machine(
    name="reply_owner",
    initial=Owner(),
    now=owner,
    events=(BeginWanted, Admitted),
    effects=(AskSlot, TellBegun),
    rows=(
        Row(BeginWanted, at=OwnerPhase.BEGUN, ignore="its reply has begun"),
        Row(BeginWanted, to=OwnerPhase.ASKING, emit=(AskSlot(),)),
        Row(Admitted, at=OwnerPhase.ASKING, to=OwnerPhase.BEGUN, emit=(TellBegun(),)),
        Row(Admitted, refuse="nobody asked"),
    ),
)


class AttemptPhase(Enum):
    """How far an attempt is."""

    NONE = "none"
    WANTED = "wanted"
    RUNNING = "running"
    STOPPING = "stopping"
    """Cancelled, and still writing."""
    GONE = "gone"


@frozen
class Attempt:
    """The one attempt that runs for a reply."""

    phase: AttemptPhase = AttemptPhase.NONE


@frozen
class AttemptWanted:
    """The owner wants to run it."""


@frozen
class LaneGiven:
    """The lane is its own."""


@frozen
class Cancelled:
    """It was told to stop."""


@frozen
class Finished:
    """It is over: by itself, or at last after a cancel."""


@frozen
class AskLane:
    """Ask for the lane of the key."""


@frozen
class Attach:
    """Attach to the reply."""


@frozen
class Leave:
    """Detach from the reply and leave the lane."""


attempt = symbol(Attempt)
ATTEMPT: Machine[Attempt, Any, Any] = Machine(
    name="reply_attempt",
    initial=Attempt(),
    now=attempt,
    events=(AttemptWanted, LaneGiven, Cancelled, Finished),
    effects=(AskLane, Attach, Leave),
    rows=(
        Row(AttemptWanted, at=(AttemptPhase.NONE, AttemptPhase.WANTED), to=AttemptPhase.WANTED, emit=(AskLane(),)),
        Row(AttemptWanted, ignore="it was started before"),
        Row(LaneGiven, at=AttemptPhase.WANTED, to=AttemptPhase.RUNNING, emit=(Attach(),)),
        Row(LaneGiven, refuse="nobody asked for the lane"),
        Row(Cancelled, at=AttemptPhase.RUNNING, to=AttemptPhase.STOPPING),
        Row(Cancelled, ignore="it stops already, or is gone"),
        Row(Finished, at=(AttemptPhase.RUNNING, AttemptPhase.STOPPING), to=AttemptPhase.GONE, emit=(Leave(),)),
        Row(Finished, ignore="it does not run"),
    ),
)


class Step(Enum):
    """How often the session got a new id."""

    FIRST = "first"
    SECOND = "second"
    THIRD = "third"


@frozen
class Ids:
    """Which of three ids the session has."""

    phase: Step = Step.FIRST


@frozen
class Rotated:
    """The reply accepted a new id."""


@frozen
class Replace:
    """This id is the current one no more."""

    number: Annotated[int, Range(1, 3)]


@frozen
class Bind:
    """This id is the current one now."""

    number: Annotated[int, Range(1, 3)]


ids = symbol(Ids)
IDS: Machine[Ids, Any, Any] = Machine(
    name="session_ids",
    initial=Ids(),
    now=ids,
    events=(Rotated,),
    effects=(Replace, Bind),
    rows=(
        Row(Rotated, at=Step.FIRST, to=Step.SECOND, emit=(Replace(1), Bind(2))),
        Row(Rotated, at=Step.SECOND, to=Step.THIRD, emit=(Replace(2), Bind(3))),
        Row(Rotated, refuse="the session has no fourth id in this model"),
    ),
)
