"""The vocabulary of the recovery routine: its state, what happens to it, and what its shell must do. The table is in ``stuck_recovery``."""

from __future__ import annotations

from enum import Enum
from typing import Annotated

from attrs import frozen

from turnproof.machines.kernel import NOBODY, Counter, StartTimer, StopTimer, Token

# ── vocabulary ──


class RecoveryPhase(Enum):
    """How far a recovery is."""

    IDLE = "idle"
    ENTERED = "entered"
    """Its mark is set; the situation is being read."""
    DRAINING = "draining"
    """The attempt was told to stop, or the reply expired; it is waited for."""
    CHECKING = "checking"
    """Whoever owns the session now is being read, before the lane is touched."""


class Lane(Enum):
    """The session's lane."""

    FREE = "free"
    BUSY = "busy"
    STALE = "stale"
    """Busy with the same task for longer than an ownerless task may hold it."""


class Stance(Enum):
    """What the reply, or its attempt, makes of a recovery."""

    ACCEPTS = "accepts"
    """Stuck recovery of its attempt, or without a run its own expiry."""
    REFUSES = "refuses"
    WAITS = "waits"
    """It is in a declared healthy wait."""


class Outcome(Enum):
    """How a recovery ended. Nothing but ``drained`` says that everything is over."""

    SKIPPED_NO_KEY = "skipped:missing_session_ref"
    SKIPPED_IN_FLIGHT = "skipped:already_in_flight"
    SKIPPED_STALE = "skipped:stale_session_state"
    OBSERVED = "skipped:active_embedded_run"
    KEPT_WAITING = "skipped:healthy_wait"
    KEPT_REPLY = "skipped:active_reply_work"
    KEPT_LANE = "skipped:active_lane_task"
    REFUSED = "refused"
    """The reply's outcome is committed, its attempt must not be cut, or was recovered before."""
    ATTEMPT_ENDED = "attempt_ended"
    """The attempt is over; the reply lives on, for its next attempt or its expiry."""
    DRAINED = "drained"
    """Attempt and owner are both over."""
    FORCED = "force_cleared"
    """It did not end in time, and was taken out by force."""
    RELEASED = "released"
    """Nothing owned the session; its lane was reset."""
    NOTHING = "nothing_to_do"
    FAILED = "failed"


class RecoveryTimer(Enum):
    """The timer of a recovery."""

    DRAIN = "drain"
    """The attempt, or the owner, did not end."""


# ── state ──


@frozen
class StuckRecovery:
    """The recoveries of one session."""

    phase: RecoveryPhase = RecoveryPhase.IDLE
    generation: Annotated[str, Token] = NOBODY
    """Identity of the present state of the session's record."""
    asked: Annotated[str, Token] = NOBODY
    """The generation that was seen by whoever asked."""
    may_abort: bool = False
    run: Annotated[str, Token] = NOBODY
    """The handle captured at entry."""
    reply: Annotated[str, Token] = NOBODY
    """The operation captured at entry."""
    task: Annotated[int, Counter] = 0
    """The lane's task at entry."""
    run_over: bool = False
    owner_over: bool = False
    forced: bool = False


# ── events: what happened ──


@frozen
class SessionMoved:
    """The session's record changed, and has this identity now: what was seen before is outdated."""

    generation: Annotated[str, Token]


@frozen
class RecoveryAsked:
    """The watchdog asks, for the generation it saw. ``keyed``: the session has a key; ``may_abort``: also work that is alive."""

    keyed: bool
    generation: Annotated[str, Token]
    may_abort: bool


@frozen
class SituationRead:
    """What the session looks like now. ``run`` and ``reply``: who is registered, by identity."""

    run: Annotated[str, Token]
    reply: Annotated[str, Token]
    stance: Stance
    overdue: bool
    """Turns wait, and the last progress is 300 s old or more."""
    lane: Lane
    task: Annotated[int, Counter]
    queued: bool
    """Turns wait."""


@frozen
class RunEnded:
    """That attempt's handle left the registry."""

    run: Annotated[str, Token]


@frozen
class OwnerSettled:
    """The owner of that operation is done, barriers included."""

    reply: Annotated[str, Token]


@frozen
class CancelRefused:
    """That attempt refused to be cancelled."""

    run: Annotated[str, Token]


@frozen
class OwnersChecked:
    """Who owns the session at this moment, read together with the lane."""

    run: Annotated[str, Token]
    reply: Annotated[str, Token]
    lane: Lane
    task: Annotated[int, Counter]
    queued: bool


@frozen
class RoutineThrew:
    """Something the routine called has raised."""


@frozen
class DrainExpired:
    """The time to end is over."""


Event = (
    SessionMoved | RecoveryAsked | SituationRead | RunEnded | OwnerSettled | CancelRefused | OwnersChecked | RoutineThrew | DrainExpired
)  # fmt: skip


# ── effects: what the shell must do ──


@frozen
class ReadSituation:
    """Read the situation of the session, now."""


@frozen
class RecoverAttempt:
    """Ask this operation to cancel this attempt of it as stuck; the reply lives on."""

    reply: Annotated[str, Token]
    run: Annotated[str, Token]


@frozen
class CancelStuckRun:
    """Cancel this attempt, which no operation owns, as stuck."""

    run: Annotated[str, Token]


@frozen
class ExpireReply:
    """Expire this operation as stuck."""

    reply: Annotated[str, Token]


@frozen
class ForceClearRun:
    """Take exactly this handle out of the registry."""

    run: Annotated[str, Token]


@frozen
class ForceClearReply:
    """Force exactly this operation out of its slot."""

    reply: Annotated[str, Token]


@frozen
class CheckOwners:
    """Read who owns the session, now, and the lane with it."""


@frozen
class ResetLane:
    """Forget this task of the lane, and start the next turn."""

    task: Annotated[int, Counter]


@frozen
class IdleSession:
    """Set the session's record to idle; it moves with that."""


@frozen
class ReportRecovery:
    """How the recovery ended; ``released``: the lane was reset."""

    outcome: Outcome
    released: bool


Effect = (
    ReadSituation | RecoverAttempt | CancelStuckRun | ExpireReply | ForceClearRun | ForceClearReply | CheckOwners | ResetLane | IdleSession
    | ReportRecovery | StartTimer | StopTimer
)  # fmt: skip
