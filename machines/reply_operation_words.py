"""The vocabulary of a reply operation: its state, what happens to it, and what the shell must do. The table is in ``reply_operation``."""

from __future__ import annotations

from enum import Enum
from typing import Annotated

from attrs import frozen

from turnproof.machines.kernel import NOBODY, Counter, Opaque, PauseTimer, ResumeTimer, StartTimer, StopTimer, Token
from turnproof.machines.reply_operation_reasons import AbortReason as AbortReason
from turnproof.machines.reply_operation_reasons import CancelReason as CancelReason
from turnproof.machines.reply_operation_reasons import ExpiryReason as ExpiryReason
from turnproof.machines.reply_operation_reasons import FailureCode as FailureCode
from turnproof.machines.reply_operation_reasons import Result as Result
from turnproof.machines.reply_operation_reasons import UpstreamReason as UpstreamReason


class Phase(Enum):
    """Where a reply is. There is no finalizing phase: that is ``frozen`` without a result."""

    QUEUED = "queued"
    """Admitted, nothing started."""
    WAITING_FOR_MAINTENANCE = "waiting_for_deferred_maintenance"
    """Waits for earlier maintenance of the same session; healthy."""
    WAITING_FOR_LANE = "waiting_for_global_lane"
    """Waits for process-wide capacity; healthy."""
    COMPACTING = "preflight_compacting"
    """Compacts the conversation before the run."""
    FLUSHING = "memory_flushing"
    RUNNING = "running"
    """The backend runs or is about to attach."""
    COMPLETED = "completed"
    FAILED = "failed"
    ABORTED = "aborted"


class Window(Enum):
    """The time a reply has, after a stuck attempt was cancelled, to attach the next attempt."""

    CLOSED = "closed"
    OPEN = "open"
    PAUSED = "paused"
    """Open, but the reply is in a healthy wait, whose time does not count."""


class Timer(Enum):
    """The timers of a reply."""

    SETTLE = "settle"
    """The reply has its result but its owner has not released the slot."""
    LEASE = "lease"
    """The outcome is committed, but nothing was heard of its finalization since the last renewal."""
    WINDOW = "window"
    """A stuck attempt was cancelled, and no new one attached."""


WAITS = (Phase.WAITING_FOR_MAINTENANCE, Phase.WAITING_FOR_LANE)
PRE_BACKEND = (Phase.QUEUED, *WAITS)
TERMINAL = (Phase.COMPLETED, Phase.FAILED, Phase.ABORTED)


# ── state ──


@frozen
class ReplyOperation:
    """One reply to one message."""

    phase: Phase = Phase.QUEUED
    result: Result = Result.NONE
    frozen: bool = False
    """Nothing may abort it any more: the outcome is committed, or was given up. Never cleared."""
    released: bool = False
    """The slot was given up. Never cleared."""
    signal_aborted: bool = False
    """The operation's one abort signal has fired."""
    backend: Annotated[str, Token] = NOBODY
    """The attached attempt."""
    backend_consents: bool = True
    """The last answer of the backend's abortability probe; a probe that throws is reported as no."""
    recovered: Annotated[str, Token] = NOBODY
    """The attempt that was already cancelled for stuck recovery."""
    window: Window = Window.CLOSED
    lane_entered_running: bool = False
    """The phase before the wait for a lane was ``running``, and returns after it."""
    owned_wait: bool = False
    """The attempt waits for a human, or for something the runtime itself owns."""
    retain_failure: bool = False
    """``Failed`` keeps the slot until the owner completes."""
    retain_until_complete: bool = False
    """So does an abort before anything ran."""
    settle_armed: bool = False
    lease_armed: bool = False
    expiry_reason: ExpiryReason = ExpiryReason.NONE
    owner_done: bool = False
    """The owner has called complete."""
    owner_barriers: Annotated[int, Counter] = 0
    """Registered barriers of the owner that have not really settled (a time-out does not count)."""
    work_deadline_ms: Annotated[int, Opaque] = 0
    """Latest deadline of the work declared during finalization, on the shell's clock; 0: none."""


# ── events: what happened ──


@frozen
class PhaseEntered:
    """The owner moved on to another phase of work."""

    phase: Phase


@frozen
class MaintenanceWaitBegan:
    """The reply waits for earlier maintenance of its session."""


@frozen
class MaintenanceWaitEnded:
    """That maintenance is done."""


@frozen
class LaneWaitBegan:
    """The reply waits for process-wide capacity."""


@frozen
class LaneWaitEnded:
    """It got its lane."""


@frozen
class OwnedWaitBegan:
    """The attempt began to wait for a human, or for something the runtime itself owns."""


@frozen
class OwnedWaitEnded:
    """The human, or the runtime, has answered."""


@frozen
class BackendAttached:
    """An attempt started under this reply."""

    backend: Annotated[str, Token]


@frozen
class BackendDetached:
    """An attempt ended and let go of the reply."""

    backend: Annotated[str, Token]


@frozen
class ConsentReported:
    """The shell asked the backend's abortability probe. No backend, or one without a probe, consents."""

    consents: bool


@frozen
class ActivityRecorded:
    """The run gave a sign of life."""


@frozen
class WorkBegan:
    """Work with a deadline was declared; ``latest_deadline_ms`` is the latest of all that is declared."""

    latest_deadline_ms: Annotated[int, Opaque]


@frozen
class WorkEnded:
    """Declared work ended; ``latest_deadline_ms`` is the latest of what remains, 0 if nothing does."""

    latest_deadline_ms: Annotated[int, Opaque]


@frozen
class OutcomeCommitted:
    """The final text exists and is being written or delivered (upstream: freezeAbort)."""


@frozen
class AbortRequested:
    """A person, or a restart of the process, asks to abort the reply."""

    reason: AbortReason


@frozen
class UpstreamAborted:
    """The signal this reply was begun with fired."""

    reason: UpstreamReason


@frozen
class SupersedeRequested:
    """A newer turn takes the key."""


@frozen
class RecoveryRequested:
    """The watchdog judged the attempt stuck and asks to cancel it, not the reply."""


@frozen
class ExpiryRequested:
    """Somebody judged the whole reply dead."""

    reason: ExpiryReason


@frozen
class Completed:
    """The owner is done. ``barrier``: follow-ups must wait for one more thing the owner registered."""

    barrier: bool


@frozen
class BarrierSettled:
    """A registered barrier of the owner really settled."""


@frozen
class Failed:
    """The owner gave up, and says why."""

    code: FailureCode


@frozen
class RetainFailureRequested:
    """The owner wants to keep the slot if it fails, until it completes."""


@frozen
class RetainUntilCompleteRequested:
    """The owner wants to keep the slot through an early abort, until it completes."""


@frozen
class ForceCleared:
    """A drain of exactly this operation failed."""


@frozen
class Evicted:
    """The lifecycle that owns the reply is going away."""


@frozen
class SteerRequested:
    """A message for the running attempt. The shell reports the backend's queue hook and the age of the evidence."""

    backend_accepts: bool
    evidence_stale: bool


@frozen
class SessionRotationRequested:
    """The session goes on under a new id. The registry reports whether the id is new and whose it is."""

    unchanged: bool
    owned_by_another_key: bool


@frozen
class KeyChangeRequested:
    """The reply belongs to another session key. The registry reports the slot of that key."""

    target_occupied: bool
    target_fenced: bool
    """A predecessor's cleanup still keeps the next operation of that key out."""


@frozen
class SettleExpired:
    """The settle timer fired."""


@frozen
class LeaseExpired:
    """The finalization lease ran out."""


@frozen
class WindowExpired:
    """The recovery window ran out."""


Event = (
    PhaseEntered | MaintenanceWaitBegan | MaintenanceWaitEnded | LaneWaitBegan | LaneWaitEnded | OwnedWaitBegan | OwnedWaitEnded
    | BackendAttached | BackendDetached | ConsentReported | ActivityRecorded | WorkBegan | WorkEnded | OutcomeCommitted
    | AbortRequested | UpstreamAborted | SupersedeRequested | RecoveryRequested | ExpiryRequested | Completed | BarrierSettled
    | Failed | RetainFailureRequested | RetainUntilCompleteRequested | ForceCleared | Evicted | SteerRequested
    | SessionRotationRequested | KeyChangeRequested | SettleExpired | LeaseExpired | WindowExpired
)  # fmt: skip


# ── effects: what the shell must do ──


@frozen
class DetachUpstream:
    """Stop listening to the signal the reply was begun with."""


@frozen
class AbortSignal:
    """Fire the operation's own abort signal."""


@frozen
class CancelBackend:
    """Tell this attempt to stop, and why."""

    backend: Annotated[str, Token]
    reason: CancelReason


@frozen
class Release:
    """Give the slot up: registry entries go, waiters wake."""


@frozen
class StampActivity:
    """Note the time as the last sign of life."""


@frozen
class DeliverSteer:
    """Hand the message to the attached backend."""


@frozen
class RotateSession:
    """Map the new session id; the old one stays as an alias for those who wait."""


@frozen
class MoveToKey:
    """Move the slot and its aliases; whoever waits for the old key wakes."""


@frozen
class SettleOwner:
    """Tell whoever waits for the owner that it is really done."""


Effect = (
    DetachUpstream | AbortSignal | CancelBackend | Release | StampActivity | DeliverSteer | RotateSession | MoveToKey | SettleOwner
    | StartTimer | StopTimer | PauseTimer | ResumeTimer
)  # fmt: skip
