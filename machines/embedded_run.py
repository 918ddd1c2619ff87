"""The entry of one session in the registry of embedded runs: which attempt's handle is current, and whether it was abandoned.

What it is. A live attempt registers its handle under its session id. Whoever wants to abort, wait, force clear or deliver goes through
this entry, and means the handle it saw, not whatever stands there now.

Which runtime. OpenClaw's ``embedded-agent-runner/runs.ts`` @00286b0b: the map from session id to handle is a family of these, one a
session id. It is another registry than that of reply operations (``reply_slot``).

The phases in one sentence. Empty, or held by one handle.

What it promises.
  1. A handle of an older lifecycle generation is never kept; a new generation empties the entry before it aborts anything.
  2. Only the current handle clears, abandons or delivers; a replacement is never hit by what was meant for the one before.
  3. Nobody waits for an entry that is empty.

Not modelled: maps by run id, session key and file; the session file's lock.

Rule 1: every transition of an entry is a row of ``ROWS``.
Rule 2: this file knows nothing of clocks, tasks or transports.
"""

from __future__ import annotations

from enum import Enum
from typing import Annotated, get_args

from attrs import evolve, frozen

from turnproof.machines.kernel import NOBODY, Counter, Machine, Row, Token, named, only_if, symbol
from turnproof.machines.reply_operation_words import CancelReason

# ── vocabulary ──


class RunPhase(Enum):
    """Whether a run is registered."""

    EMPTY = "empty"
    HELD = "held"


class Abandonment(Enum):
    """Whether what the run still says is delivered."""

    NONE = "none"
    TIMED_OUT = "timeout"
    """It was given up: nothing it says is delivered."""
    RECOVERING = "recovering_timeout"
    """A retry of it is on; whoever holds the token may restore it."""


EMPTY, HELD = RunPhase


# ── state ──


@frozen
class EmbeddedRun:
    """The entry of one session id."""

    phase: RunPhase = EMPTY
    handle: Annotated[str, Token] = NOBODY
    generation: Annotated[str, Token] = NOBODY
    """The present lifecycle generation of the process."""
    abandonment: Abandonment = Abandonment.NONE
    retry: Annotated[str, Token] = NOBODY
    """Who may restore an abandoned run."""
    waiting: Annotated[int, Counter] = 0
    """Callers that wait until the session has no run."""


# ── events: what happened ──


@frozen
class RegisterRequested:
    """A live attempt of that lifecycle generation registers."""

    handle: Annotated[str, Token]
    generation: Annotated[str, Token]


@frozen
class ClearRequested:
    """An attempt is over."""

    handle: Annotated[str, Token]


@frozen
class ForceClearRequested:
    """A drain of exactly this handle failed."""

    handle: Annotated[str, Token]


@frozen
class AbandonRequested:
    """An attempt timed out: what it still says is not to be delivered."""

    handle: Annotated[str, Token]


@frozen
class RetryRequested:
    """A retry of the abandoned run begins, under this token."""

    handle: Annotated[str, Token]
    retry: Annotated[str, Token]


@frozen
class RestoreRequested:
    """The retry that holds this token wants its run to be heard again."""

    retry: Annotated[str, Token]


@frozen
class AnswerOffered:
    """An attempt has its final text."""

    handle: Annotated[str, Token]


@frozen
class LifecycleRotated:
    """The process restarts its lifecycle: this is the generation now."""

    generation: Annotated[str, Token]


@frozen
class RunWaitRequested:
    """A caller waits until the session has no run."""


@frozen
class RunWaitAbandoned:
    """It no longer does."""


Event = (
    RegisterRequested | ClearRequested | ForceClearRequested | AbandonRequested | RetryRequested | RestoreRequested | AnswerOffered
    | LifecycleRotated | RunWaitRequested | RunWaitAbandoned
)  # fmt: skip


# ── effects: what the shell must do ──


@frozen
class CancelRun:
    """Cancel this attempt, and say why."""

    handle: Annotated[str, Token]
    reason: CancelReason


@frozen
class Deliver:
    """Deliver the final text of this attempt."""

    handle: Annotated[str, Token]


@frozen
class WakeRunWaiters:
    """Wake every caller that waits for the session to have no run."""


@frozen
class AnswerNoRun:
    """Tell the caller that asked that no run is on."""


Effect = CancelRun | Deliver | WakeRunWaiters | AnswerNoRun


# ── symbols ──

now = symbol(EmbeddedRun)
register, clear, force = symbol(RegisterRequested), symbol(ClearRequested), symbol(ForceClearRequested)
abandon, retry, restore = symbol(AbandonRequested), symbol(RetryRequested), symbol(RestoreRequested)
answer, rotated = symbol(AnswerOffered), symbol(LifecycleRotated)

R = Row[EmbeddedRun, Effect]


def mine(handle: str) -> bool:
    """The event is about the current handle."""
    return named("its own handle", (handle != NOBODY) & (handle == now.handle))


wake = only_if(now.waiting > 0, WakeRunWaiters())
emptied = evolve(now, phase=EMPTY, handle=NOBODY, abandonment=Abandonment.NONE, retry=NOBODY, waiting=0)


# ── rows: the first that matches wins ──

ROWS: tuple[R, ...] = (
    R(register, when=register.handle == NOBODY, refuse="a run has an identity", name="RegisterRequested/nobody"),
    R(register, when=register.generation != now.generation, emit=(CancelRun(register.handle, CancelReason.RESTART),),
      name="RegisterRequested/older generation", because="Not kept: a run of a lifecycle that is over must not look alive (R-ATT-24)."),
    R(register, data=evolve(now, phase=HELD, handle=register.handle, abandonment=Abandonment.NONE, retry=NOBODY),
      name="RegisterRequested/current", because="Replaces an earlier handle silently, as upstream does; whoever waits goes on waiting."),
    R(clear, when=mine(clear.handle), data=emptied, emit=(wake,)),
    R(ClearRequested, ignore="another run is registered, or none: a logged no-op"),
    R(force, when=mine(force.handle), data=emptied, emit=(wake, CancelRun(force.handle, CancelReason.SUPERSEDED)),
      because="The attempt may still live: it is told, so that it starts no tool and delivers nothing."),
    R(ForceClearRequested, refuse="that handle is not registered: a replacement is never hit"),
    R(abandon, when=mine(abandon.handle), data=evolve(now, abandonment=Abandonment.TIMED_OUT, retry=NOBODY)),
    R(AbandonRequested, ignore="that handle is not registered"),
    R(retry, when=mine(retry.handle) & (now.abandonment == Abandonment.TIMED_OUT) & (retry.retry != NOBODY),
      data=evolve(now, abandonment=Abandonment.RECOVERING, retry=retry.retry)),
    R(RetryRequested, refuse="only an abandoned run that is registered is retried"),
    R(restore, when=(now.abandonment == Abandonment.RECOVERING) & (restore.retry == now.retry),
      data=evolve(now, abandonment=Abandonment.NONE, retry=NOBODY)),
    R(RestoreRequested, refuse="another retry holds the token, or none"),
    R(answer, when=mine(answer.handle) & (now.abandonment == Abandonment.NONE), emit=(Deliver(answer.handle),)),
    R(AnswerOffered, ignore="late: that run was abandoned, replaced or cleared"),
    R(rotated, when=rotated.generation == now.generation, ignore="it is this generation already"),
    # The entry is emptied first: the abort may come back with a successor that registers.
    R(rotated, at=HELD, data=evolve(emptied, generation=rotated.generation), emit=(wake, CancelRun(now.handle, CancelReason.RESTART))),
    R(rotated, data=evolve(now, generation=rotated.generation)),
    R(RunWaitRequested, at=HELD, data=evolve(now, waiting=now.waiting + 1)),
    R(RunWaitRequested, emit=(AnswerNoRun(),), name="RunWaitRequested/no run"),
    R(RunWaitAbandoned, when=now.waiting > 0, data=evolve(now, waiting=now.waiting - 1)),
    R(RunWaitAbandoned, ignore="it was woken first"),
)  # fmt: skip


# ── the machine ──

MACHINE: Machine[EmbeddedRun, Event, Effect] = Machine(
    name="embedded_run",
    initial=EmbeddedRun(),
    now=now,
    events=get_args(Event),
    effects=get_args(Effect),
    rows=ROWS,
)
step = MACHINE.step
