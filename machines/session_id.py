"""One session id: which operation it belongs to, and whether it still is that operation's current id.

What it is. A session goes on under new ids while one operation runs; callers that wait by an old id must still find it. The maps
from session id to key, and of wait aliases, are a family of these machines, one an id.

Which runtime. ``updateSessionId`` and the wait aliases of OpenClaw's reply-run registry (``reply-run-registry.state.ts`` @07862b23).

The phases in one sentence. An id is unknown, the current id of one operation, or an alias that operation left behind.

What it promises. An id belongs to at most one operation; an alias leads waiters to the same operation as the id that replaced it.

Rule 1: every transition of a session id is a row of ``ROWS``.
Rule 2: this file knows nothing of clocks, tasks or transports.
"""

from __future__ import annotations

from enum import Enum
from typing import Annotated, get_args

from attrs import evolve, frozen

from turnproof.machines.kernel import NOBODY, Machine, Row, Token, named, symbol

# ── vocabulary ──


class IdPhase(Enum):
    """What an id leads to."""

    UNKNOWN = "unknown"
    CURRENT = "current"
    ALIAS = "alias"
    """Left behind by a rotation; leads waiters to the same operation."""


UNKNOWN, CURRENT, ALIAS = IdPhase


# ── state ──


@frozen
class SessionId:
    """One session id."""

    phase: IdPhase = IdPhase.UNKNOWN
    owner: Annotated[str, Token] = NOBODY


# ── events: what happened ──


@frozen
class IdBound:
    """An operation began with this id, or rotated to it."""

    operation: Annotated[str, Token]


@frozen
class IdReplaced:
    """The operation rotated from this id to another."""

    operation: Annotated[str, Token]


@frozen
class OwnerReleased:
    """An operation gave its slot up; all its ids go."""

    operation: Annotated[str, Token]


@frozen
class WaitByIdRequested:
    """A caller that knows only this id waits for its operation to end."""


Event = IdBound | IdReplaced | OwnerReleased | WaitByIdRequested


# ── effects: what the shell must do ──


@frozen
class ForwardWait:
    """Let the caller wait for the key that this operation holds."""

    operation: Annotated[str, Token]


@frozen
class AnswerUnknown:
    """Tell the caller that nothing runs under this id: it is idle."""


Effect = ForwardWait | AnswerUnknown


# ── symbols ──

now = symbol(SessionId)
bound, replaced, released = symbol(IdBound), symbol(IdReplaced), symbol(OwnerReleased)

mine = named("of the same operation", bound.operation == now.owner)


# ── rows: the first that matches wins ──

ROWS: tuple[Row[SessionId, Effect], ...] = (
    Row(bound, when=bound.operation == NOBODY, refuse="an operation has an identity", name="IdBound/nobody"),
    Row(bound, at=UNKNOWN, to=CURRENT, data=evolve(now, owner=bound.operation)),
    Row(bound, at=ALIAS, when=mine, to=CURRENT, because="An operation may rotate back to an id it had before."),
    Row(bound, when=mine, ignore="the operation has this id already"),
    Row(IdBound, refuse="the id belongs to another operation"),
    Row(replaced, at=CURRENT, when=replaced.operation == now.owner, to=ALIAS,
        because="Waiters that came by this id are woken by the release of the same operation (R-REPLY-7)."),
    Row(IdReplaced, ignore="the id is not that operation's current one"),
    Row(released, at=(CURRENT, ALIAS), when=released.operation == now.owner, to=UNKNOWN, data=evolve(now, owner=NOBODY)),
    Row(OwnerReleased, ignore="the id is not that operation's",
        because="An entry is deleted only if it still points to the operation that goes (R-REPLY-24)."),
    Row(WaitByIdRequested, at=UNKNOWN, emit=(AnswerUnknown(),)),
    Row(WaitByIdRequested, emit=(ForwardWait(now.owner),)),
)  # fmt: skip


# ── the machine ──

MACHINE: Machine[SessionId, Event, Effect] = Machine(
    name="session_id",
    initial=SessionId(),
    now=now,
    events=get_args(Event),
    effects=get_args(Effect),
    rows=ROWS,
)
step = MACHINE.step
