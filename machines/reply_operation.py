"""The reply operation: one reply of a chat gateway, from admission until its slot is free again.

What it is. One operation is one reply turn for one session key. The *owner* began it and must end it (``Completed`` or
``Failed``). At most one *backend*, the running attempt, is attached at a time; several may attach one after another (retry,
profile rotation, fallback model). A registry (``reply_slot``) keeps at most one operation per key in the key's *slot*.

Which runtime. OpenClaw's ``src/auto-reply/reply/reply-run-registry`` at its newest known state (``reply-run-registry.state.ts``
@07862b23, ``.contracts.ts`` @04d3867c, ``reply-run-finalization-lease.ts`` @37e8569c), plus the cancellation of a stuck attempt
that keeps the reply alive, as proposed for openclaw/openclaw#103697. Where the shipped program breaks a requirement the
requirement stands here, and the shipped rows are a named variant in the specification.

The phases in one sentence. A reply is queued, may wait for maintenance or for a free lane, compacts and flushes memory, runs;
then it has exactly one result (completed, failed, aborted), and its phase mirrors the result for ever.

What it promises.
  1. One result, recorded once; one release of the slot, at most 60 s after the result whatever the owner does.
  2. A committed outcome (``frozen``, no result yet) is never killed by an abort or a recovery.
  3. A stuck attempt is cancelled once, by name (``stuck_recovery``), and the reply lives on for a bounded window.

Not modelled: the identity of keys and sessions, waiters and barriers of the next turn (``reply_slot``); when evidence counts
as stale and when a probe throws (the shell decides and reports it as an event); callbacks after release; E3's bookkeeping bits
``executionStarted`` and ``terminalRecovery``, which no guard of the operation reads.

Rule 1: every transition of a reply operation is a row of ``ROWS``.
Rule 2: this file knows nothing of clocks, tasks or transports.
"""

from __future__ import annotations

from typing import get_args

from attrs import evolve

from turnproof.machines.kernel import (
    NOBODY,
    Duration,
    Machine,
    PauseTimer,
    ResumeTimer,
    Row,
    StartTimer,
    StopTimer,
    TimerRule,
    choose,
    named,
    not_,
    one_of,
    only_if,
    symbol,
)
from turnproof.machines.reply_operation_words import (
    PRE_BACKEND,
    TERMINAL,
    WAITS,
    AbortReason,
    AbortRequested,
    AbortSignal,
    ActivityRecorded,
    BackendAttached,
    BackendDetached,
    BarrierSettled,
    CancelBackend,
    CancelReason,
    Completed,
    ConsentReported,
    DeliverSteer,
    DetachUpstream,
    Effect,
    Event,
    Evicted,
    ExpiryReason,
    ExpiryRequested,
    Failed,
    FailureCode,
    ForceCleared,
    KeyChangeRequested,
    LaneWaitBegan,
    LaneWaitEnded,
    LeaseExpired,
    MaintenanceWaitBegan,
    MaintenanceWaitEnded,
    MoveToKey,
    OutcomeCommitted,
    OwnedWaitBegan,
    OwnedWaitEnded,
    Phase,
    PhaseEntered,
    RecoveryRequested,
    Release,
    ReplyOperation,
    Result,
    RetainFailureRequested,
    RetainUntilCompleteRequested,
    RotateSession,
    SessionRotationRequested,
    SettleExpired,
    SettleOwner,
    StampActivity,
    SteerRequested,
    SupersedeRequested,
    Timer,
    UpstreamAborted,
    UpstreamReason,
    Window,
    WindowExpired,
    WorkBegan,
    WorkEnded,
)

QUEUED, WAITING_FOR_MAINTENANCE, WAITING_FOR_LANE, COMPACTING, FLUSHING, RUNNING, COMPLETED, FAILED, ABORTED = Phase


# ── timers ──

SETTLE_MS = Duration(60_000, "reply-run-registry.state.ts @07862b23: a terminal reply holds its slot at most a minute")
LEASE_MS = Duration(60_000, "reply-run-finalization-lease.ts @37e8569c; a later declared work deadline extends it")
WINDOW_MS = Duration(60_000, "own decision: the length proposed upstream is not known; as long as the settle timer")


# ── symbols ──

now = symbol(ReplyOperation)
entered, attached, detached = symbol(PhaseEntered), symbol(BackendAttached), symbol(BackendDetached)
probed, began, ended = symbol(ConsentReported), symbol(WorkBegan), symbol(WorkEnded)
abort, upstream, expiry = symbol(AbortRequested), symbol(UpstreamAborted), symbol(ExpiryRequested)
completed, failed, steer = symbol(Completed), symbol(Failed), symbol(SteerRequested)
rotation, move = symbol(SessionRotationRequested), symbol(KeyChangeRequested)

pending = named("pending", now.result == Result.NONE)
finalizing = named("finalizing", (now.result == Result.NONE) & now.frozen)
held = named("held", (now.result != Result.NONE) & not_(now.released))
attended = named("backend attached", now.backend != NOBODY)
abortable = named("abortable", (now.result == Result.NONE) & not_(now.frozen) & ((now.backend == NOBODY) | now.backend_consents))
"""The one abort rule (R-REPLY-10): user, restart, supersession and stuck recovery all read it."""
idle = named("nothing to wait for", (now.backend == NOBODY) & not_(now.retain_until_complete))
retained = named("retained", now.retain_failure | now.retain_until_complete)

stop_window = only_if(now.window != Window.CLOSED, StopTimer(Timer.WINDOW))
stop_lease = only_if(now.lease_armed, StopTimer(Timer.LEASE))
pause_window = only_if(now.window == Window.OPEN, PauseTimer(Timer.WINDOW))
resume_window = only_if(now.window == Window.PAUSED, ResumeTimer(Timer.WINDOW))
detach_upstream = only_if(not_(now.frozen), DetachUpstream())
signal = only_if(not_(now.signal_aborted), AbortSignal())
renew_lease = (StopTimer(Timer.LEASE), StartTimer(Timer.LEASE, now.work_deadline_ms))

window_in_wait = choose(now.window == Window.OPEN, Window.PAUSED, now.window)
window_after_wait = choose(now.window == Window.PAUSED, Window.OPEN, now.window)
failure = choose(failed.code == FailureCode.GATEWAY_DRAINING, Result.GATEWAY_DRAINING,
          choose(failed.code == FailureCode.COMMAND_LANE_CLEARED, Result.COMMAND_LANE_CLEARED,
          choose(failed.code == FailureCode.SESSION_CORRUPTION_RESET, Result.SESSION_CORRUPTION_RESET,
          choose(failed.code == FailureCode.RUN_STALLED, Result.RUN_STALLED, Result.RUN_FAILED))))  # fmt: skip


def cancel(reason: CancelReason) -> Effect:
    """Cancel the attached backend, if there is one."""
    return only_if(now.backend != NOBODY, CancelBackend(now.backend, reason))


def ending(result: Result, *, settle: bool = True, signal: bool = True, freeze: bool = False) -> ReplyOperation:
    """The state once a result is recorded: no backend, window or lease is left, and either the settle timer runs or the slot is free."""
    return evolve(
        now,
        result=result,
        frozen=True if freeze else now.frozen,
        signal_aborted=True if signal else now.signal_aborted,
        backend=NOBODY,
        recovered=NOBODY,
        window=Window.CLOSED,
        lease_armed=False,
        settle_armed=settle,
        released=not settle,
    )


owner_settled = named("owner settled", now.owner_done & (now.owner_barriers == 0))
pending_barriers = choose(completed.barrier, now.owner_barriers + 1, now.owner_barriers)
settle_owner = only_if(not_(completed.barrier) & (now.owner_barriers == 0), SettleOwner())

aborted_by = choose(abort.reason == AbortReason.RESTART, Result.ABORTED_FOR_RESTART, Result.ABORTED_BY_USER)
cancelled_by = choose(abort.reason == AbortReason.RESTART, CancelReason.RESTART, CancelReason.USER_ABORT)
upstream_result = choose(upstream.reason == UpstreamReason.RESTART, Result.ABORTED_FOR_RESTART,
    choose(upstream.reason == UpstreamReason.SUPERSEDED, Result.ABORTED_FOR_SUPERSESSION, Result.ABORTED_BY_USER))  # fmt: skip
upstream_cancel = choose(upstream.reason == UpstreamReason.RESTART, CancelReason.RESTART,
    choose(upstream.reason == UpstreamReason.SUPERSEDED, CancelReason.SUPERSEDED, CancelReason.USER_ABORT))  # fmt: skip
late_cancel = choose(now.result == Result.ABORTED_FOR_RESTART, CancelReason.RESTART,
    choose(now.result == Result.ABORTED_BY_USER, CancelReason.USER_ABORT, CancelReason.SUPERSEDED))  # fmt: skip


# ── rows: the first that matches wins ──

ROWS: tuple[Row[ReplyOperation, Effect], ...] = (
    # ── phases and healthy waits ──
    Row(entered, when=one_of(entered.phase, *TERMINAL), refuse="a terminal phase is reached by a result, never by setting it",
        name="PhaseEntered/terminal"),
    Row(entered, when=one_of(entered.phase, *WAITS), refuse="a wait begins and ends with its own event", name="PhaseEntered/wait"),
    Row(entered, when=pending, data=evolve(now, phase=entered.phase, window=window_after_wait), emit=(StampActivity(), resume_window),
        because="Any phase of work may follow any other, also backwards (reply-run-registry.state.ts, setPhase)."),
    Row(PhaseEntered, ignore="the reply has its result; its phase mirrors it"),

    Row(MaintenanceWaitBegan, at=QUEUED, to=WAITING_FOR_MAINTENANCE, data=evolve(now, window=window_in_wait), emit=(pause_window,)),
    Row(MaintenanceWaitBegan, when=pending, refuse="only a queued reply waits for maintenance"),
    Row(MaintenanceWaitBegan, ignore="the reply has its result"),
    Row(MaintenanceWaitEnded, at=WAITING_FOR_MAINTENANCE, to=QUEUED, data=evolve(now, window=window_after_wait), emit=(resume_window,)),
    Row(MaintenanceWaitEnded, ignore="the wait was left by another way"),

    Row(LaneWaitBegan, at=QUEUED, to=WAITING_FOR_LANE, data=evolve(now, lane_entered_running=False, window=window_in_wait),
        emit=(pause_window,)),
    Row(LaneWaitBegan, at=RUNNING, to=WAITING_FOR_LANE, data=evolve(now, lane_entered_running=True, window=window_in_wait),
        emit=(pause_window,)),
    Row(LaneWaitBegan, when=pending, refuse="a lane is waited for from queued or running"),
    Row(LaneWaitBegan, ignore="the reply has its result"),
    Row(LaneWaitEnded, at=WAITING_FOR_LANE, emit=(resume_window,),
        data=evolve(now, phase=choose(now.lane_entered_running, RUNNING, QUEUED), lane_entered_running=False, window=window_after_wait)),
    Row(LaneWaitEnded, ignore="the wait was left by another way"),

    Row(OwnedWaitBegan, when=pending, data=evolve(now, owned_wait=True)),
    Row(OwnedWaitBegan, ignore="the reply has its result"),
    Row(OwnedWaitEnded, when=now.owned_wait, data=evolve(now, owned_wait=False)),
    Row(OwnedWaitEnded, ignore="no such wait is on"),

    # ── the backend ──
    Row(attached, when=attached.backend == NOBODY, refuse="a backend has an identity", name="BackendAttached/nobody"),
    # A late attempt must not write into a session that is over, or already somebody else's (R-REPLY-22).
    Row(attached, when=not_(pending), emit=(CancelBackend(attached.backend, late_cancel),), name="BackendAttached/late",
        because="A result exists: the late backend is cancelled at once with the reason that follows from the result (contracts.ts "
                "@04d3867c)."),
    Row(attached, when=(attached.backend == now.recovered) & (now.window != Window.CLOSED),
        refuse="it was cancelled for stuck recovery; a new attempt has its own handle",
        name="BackendAttached/already recovered",
        because="Own decision: the cancelled attempt itself must not pass for the next one and keep the reply for ever."),
    Row(attached, data=evolve(now, backend=attached.backend, window=Window.CLOSED), emit=(stop_window, StampActivity()),
        name="BackendAttached/pending",
        because="Replaces an earlier handle silently, as upstream does; closes the recovery window: this is the next attempt."),
    Row(detached, when=(detached.backend == now.backend) & attended, data=evolve(now, backend=NOBODY)),
    Row(BackendDetached, ignore="another backend is attached, or none"),
    Row(probed, when=pending, data=evolve(now, backend_consents=probed.consents)),
    Row(ConsentReported, ignore="nothing can be aborted any more"),

    Row(steer, at=RUNNING, emit=(DeliverSteer(),), name="SteerRequested/accepted",
        when=pending & attended & (now.backend != now.recovered) & steer.backend_accepts & not_(steer.evidence_stale),
        because="No StampActivity: a message is no sign of life of the run (R-REPLY-28, openclaw/openclaw#94701)."),
    Row(SteerRequested, refuse="steering needs a running, attached backend that accepts input and was heard of lately"),

    # ── finalization and its lease ──
    Row(OutcomeCommitted, when=finalizing, emit=renew_lease),
    Row(OutcomeCommitted, when=pending, data=evolve(now, frozen=True, lease_armed=True, window=Window.CLOSED),
        emit=(DetachUpstream(), stop_window, StartTimer(Timer.LEASE, now.work_deadline_ms))),
    Row(OutcomeCommitted, when=held & not_(now.frozen), data=evolve(now, frozen=True), name="OutcomeCommitted/held",
        because="Only the bit is set: the result stands, and the lease is for replies without one."),
    Row(OutcomeCommitted, ignore="the outcome was committed before, and the reply has its result"),
    Row(ActivityRecorded, when=finalizing, emit=(StampActivity(), *renew_lease)),
    Row(ActivityRecorded, when=not_(now.released), emit=(StampActivity(),), name="ActivityRecorded/holds its slot"),
    Row(ActivityRecorded, ignore="the slot is given up; nobody judges its age"),
    Row(began, when=finalizing, data=evolve(now, work_deadline_ms=began.latest_deadline_ms),
        emit=(StopTimer(Timer.LEASE), StartTimer(Timer.LEASE, began.latest_deadline_ms))),
    Row(began, when=pending, data=evolve(now, work_deadline_ms=began.latest_deadline_ms)),
    Row(WorkBegan, ignore="the reply has its result"),
    Row(ended, when=finalizing, data=evolve(now, work_deadline_ms=ended.latest_deadline_ms),
        emit=(StopTimer(Timer.LEASE), StartTimer(Timer.LEASE, ended.latest_deadline_ms))),
    Row(ended, when=pending, data=evolve(now, work_deadline_ms=ended.latest_deadline_ms)),
    Row(WorkEnded, ignore="the reply has its result"),
    Row(LeaseExpired, when=now.lease_armed, to=FAILED, name="LeaseExpired/finalizing",
        data=evolve(ending(Result.RUN_STALLED, settle=False), expiry_reason=ExpiryReason.FINALIZATION_STALLED),
        emit=(cancel(CancelReason.SUPERSEDED), AbortSignal(), Release()),
        because="Released at once: the minute of grace was the lease itself, a settle timer would add a second one (R-REPLY-18)."),
    Row(LeaseExpired, ignore="the lease ended in another way"),

    # ── abort: by a person, or because the process restarts ──
    Row(abort, at=PRE_BACKEND, when=abortable & idle, to=ABORTED, name="AbortRequested/at once", data=ending(aborted_by, settle=False),
        emit=(stop_window, DetachUpstream(), AbortSignal(), Release())),
    Row(abort, when=abortable, to=ABORTED, data=ending(aborted_by), name="AbortRequested/settle",
        emit=(stop_window, DetachUpstream(), AbortSignal(), cancel(cancelled_by), StartTimer(Timer.SETTLE)),
        because="Also before anything ran, if a backend is attached (a lane wait entered from running): its slot must not be free while "
                "it lives (R-REPLY-26)."),
    Row(abort, when=finalizing, refuse="the outcome is committed"),
    Row(abort, when=pending, refuse="the backend's probe refuses an abort"),
    Row(AbortRequested, refuse="the reply has its result"),

    # ── abort: by the signal the reply was begun with; the probe is not asked ──
    Row(upstream, at=PRE_BACKEND, when=pending & not_(now.frozen) & idle, to=ABORTED, name="UpstreamAborted/at once",
        data=ending(upstream_result, settle=False),
        emit=(stop_window, DetachUpstream(), AbortSignal(), Release())),
    Row(upstream, when=pending & not_(now.frozen), to=ABORTED, data=ending(upstream_result), name="UpstreamAborted/settle",
        emit=(stop_window, DetachUpstream(), AbortSignal(), cancel(upstream_cancel), StartTimer(Timer.SETTLE)),
        because="The caller that began the reply is gone, so nobody would read what the backend protects."),
    Row(UpstreamAborted, ignore="no longer listening: the outcome is committed or the reply has its result"),

    # ── supersession ──
    Row(SupersedeRequested, when=finalizing, to=ABORTED, data=ending(Result.ABORTED_FOR_SUPERSESSION, signal=False),
        emit=(StopTimer(Timer.LEASE), StartTimer(Timer.SETTLE)),
        because="No cancel and no signal: the final text is being delivered; the newer turn only takes the verdict, and waits for the "
                "slot."),
    Row(SupersedeRequested, at=PRE_BACKEND, when=abortable & idle, to=ABORTED, name="SupersedeRequested/at once",
        data=ending(Result.ABORTED_FOR_SUPERSESSION, settle=False),
        emit=(stop_window, DetachUpstream(), AbortSignal(), Release())),
    Row(SupersedeRequested, when=abortable, to=ABORTED, data=ending(Result.ABORTED_FOR_SUPERSESSION), name="SupersedeRequested/settle",
        emit=(stop_window, DetachUpstream(), AbortSignal(), cancel(CancelReason.SUPERSEDED), StartTimer(Timer.SETTLE))),
    Row(SupersedeRequested, when=pending, refuse="the backend's probe refuses an abort"),
    Row(SupersedeRequested, refuse="the reply has its result"),

    # ── stuck recovery of the attempt: the reply lives on ──
    Row(RecoveryRequested, at=RUNNING, name="RecoveryRequested/accepted",
        when=abortable & attended & (now.backend != now.recovered) & (now.window == Window.CLOSED),
        data=evolve(now, recovered=now.backend, window=Window.OPEN),
        emit=(CancelBackend(now.backend, CancelReason.STUCK_RECOVERY), StartTimer(Timer.WINDOW)),
        because="No result and no signal: a fallback started under an aborted signal would stop at once (openclaw/openclaw#93655)."),
    Row(RecoveryRequested, when=now.window != Window.CLOSED, refuse="this attempt was already cancelled for stuck recovery",
        name="RecoveryRequested/window open"),
    Row(RecoveryRequested, when=finalizing, refuse="the outcome is committed"),
    Row(RecoveryRequested,
        refuse="stuck recovery needs a running reply with an attached backend that consents and was not cancelled before"),
    Row(WindowExpired, when=now.window == Window.OPEN, to=FAILED,
        data=evolve(ending(Result.RUN_STALLED, freeze=True), expiry_reason=ExpiryReason.STUCK_RECOVERY),
        emit=(DetachUpstream(), cancel(CancelReason.SUPERSEDED), AbortSignal(), StartTimer(Timer.SETTLE)),
        name="WindowExpired/nothing attached"),
    Row(WindowExpired, ignore="the window closed in time, or is held by a healthy wait"),

    # ── expiry of the whole reply ──
    Row(expiry, when=expiry.reason == ExpiryReason.NONE, refuse="an expiry names its reason", name="ExpiryRequested/no reason"),
    Row(ExpiryRequested, when=now.released, refuse="the reply does not hold its slot", name="ExpiryRequested/released"),
    Row(ExpiryRequested, when=held, data=evolve(now, signal_aborted=True), emit=(signal,), name="ExpiryRequested/held",
        because="The result stands and the settle timer already runs; only the signal may still be live, after a failure that was "
                "retained."),
    Row(expiry, when=finalizing & (expiry.reason != ExpiryReason.FINALIZATION_STALLED), refuse="the outcome is committed"),
    Row(expiry, at=WAITS, when=expiry.reason == ExpiryReason.STUCK_RECOVERY, refuse="a healthy wait is never stuck",
        name="ExpiryRequested/stuck in a wait"),
    Row(expiry, at=WAITING_FOR_LANE, when=expiry.reason == ExpiryReason.NO_ACTIVITY,
        refuse="a reply that waits for a lane is never stale", name="ExpiryRequested/stale in a lane wait"),
    Row(expiry, when=now.owned_wait & (expiry.reason == ExpiryReason.NO_ACTIVITY), refuse="a reply that waits for a human is never stale",
        name="ExpiryRequested/stale in an owned wait"),
    # The result is recorded before the cancel: the cancel may come back as an abort, which must then find a result (R-REPLY-20).
    Row(expiry, to=FAILED, data=evolve(ending(Result.RUN_STALLED, freeze=True), expiry_reason=expiry.reason),
        name="ExpiryRequested/accepted",
        emit=(stop_window, stop_lease, detach_upstream, cancel(CancelReason.SUPERSEDED), AbortSignal(), StartTimer(Timer.SETTLE)),
        because="The slot stays until the owner is done or a minute has passed: its backend may still write this session (R-REPLY-16)."),

    # ── another session id, another key ──
    Row(rotation, when=not_(pending), ignore="the reply has its result"),
    Row(rotation, when=rotation.unchanged, ignore="the session has this id already", name="SessionRotationRequested/unchanged"),
    Row(rotation, when=rotation.owned_by_another_key, refuse="the id belongs to another key", name="SessionRotationRequested/owned"),
    Row(SessionRotationRequested, emit=(RotateSession(),)),
    Row(move, at=QUEUED, when=pending & not_(move.target_occupied) & not_(move.target_fenced), emit=(MoveToKey(),)),
    Row(move, at=QUEUED, when=pending & move.target_occupied, refuse="the other key already has an active operation",
        name="KeyChangeRequested/occupied"),
    Row(move, at=QUEUED, refuse="a predecessor's cleanup keeps the other key fenced", name="KeyChangeRequested/fenced"),
    Row(KeyChangeRequested, refuse="an operation changes its key only while it is queued"),

    # ── the owner ends it ──
    Row(RetainFailureRequested, when=now.released, ignore="the slot is given up"),
    Row(RetainFailureRequested, data=evolve(now, retain_failure=True)),
    Row(RetainUntilCompleteRequested, when=now.released, ignore="the slot is given up"),
    Row(RetainUntilCompleteRequested, data=evolve(now, retain_until_complete=True)),
    Row(completed, when=pending, to=COMPLETED,
        data=evolve(ending(Result.COMPLETED, settle=False, signal=False), owner_done=True, owner_barriers=pending_barriers),
        emit=(stop_window, stop_lease, detach_upstream, Release(), settle_owner)),
    Row(completed, when=held, data=evolve(now, settle_armed=False, released=True, owner_done=True, owner_barriers=pending_barriers),
        emit=(StopTimer(Timer.SETTLE), Release(), settle_owner)),
    Row(completed, when=owner_settled, ignore="the owner has settled"),
    Row(completed, data=evolve(now, owner_done=True, owner_barriers=pending_barriers), emit=(settle_owner,), name="Completed/released",
        because="The slot went by timer or force; only now is the owner itself done, and its barriers add up over repeated calls."),
    Row(BarrierSettled, when=now.owner_barriers == 0, ignore="no barrier is registered"),
    Row(BarrierSettled, data=evolve(now, owner_barriers=now.owner_barriers - 1), emit=(only_if(now.owner_barriers == 1, SettleOwner()),)),
    Row(Failed, when=now.released, ignore="the slot is given up", name="Failed/released"),
    Row(failed, when=pending & retained, to=FAILED, data=ending(failure, signal=False, freeze=True), name="Failed/retained",
        emit=(stop_window, stop_lease, detach_upstream, StartTimer(Timer.SETTLE))),
    Row(failed, when=pending, to=FAILED, data=ending(failure, settle=False, signal=False, freeze=True),
        emit=(stop_window, stop_lease, detach_upstream, Release())),
    Row(Failed, when=retained, data=evolve(now, frozen=True), name="Failed/held and retained"),
    Row(Failed, data=evolve(now, frozen=True, settle_armed=False, released=True), emit=(StopTimer(Timer.SETTLE), Release()),
        name="Failed/held"),

    # ── somebody else frees the slot ──
    Row(SettleExpired, when=now.settle_armed, data=evolve(now, settle_armed=False, released=True), emit=(Release(),)),
    Row(SettleExpired, ignore="the slot was given up in time"),
    Row(ForceCleared, when=now.released, refuse="the reply does not hold its slot", name="ForceCleared/released"),
    Row(ForceCleared, when=pending, to=FAILED, data=ending(Result.RUN_FAILED, settle=False, signal=False, freeze=True),
        emit=(stop_window, stop_lease, detach_upstream, Release()),
        because="Does not settle the owner: only the owner's own completion does."),
    Row(ForceCleared, data=evolve(now, frozen=True, settle_armed=False, released=True), emit=(StopTimer(Timer.SETTLE), Release()),
        name="ForceCleared/held"),
    Row(Evicted, when=now.released, ignore="the slot is given up", name="Evicted/released"),
    Row(Evicted, when=pending, to=ABORTED, data=ending(Result.ABORTED_FOR_RESTART, settle=False),
        emit=(stop_window, stop_lease, detach_upstream, AbortSignal(), cancel(CancelReason.RESTART), Release())),
    Row(Evicted, data=evolve(now, signal_aborted=True, settle_armed=False, released=True),
        emit=(StopTimer(Timer.SETTLE), signal, Release()),
        name="Evicted/held"),
)  # fmt: skip


# ── the machine ──

MACHINE: Machine[ReplyOperation, Event, Effect] = Machine(
    name="reply_operation",
    initial=ReplyOperation(),
    now=now,
    events=get_args(Event),
    effects=get_args(Effect),
    rows=ROWS,
    timers=(
        TimerRule(Timer.SETTLE, now.settle_armed, SettleExpired, SETTLE_MS),
        TimerRule(Timer.LEASE, now.lease_armed, LeaseExpired, LEASE_MS),
        TimerRule(Timer.WINDOW, now.window == Window.OPEN, WindowExpired, WINDOW_MS, paused=now.window == Window.PAUSED),
    ),
    released=now.released,
)
step = MACHINE.step
