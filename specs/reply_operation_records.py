"""What each event of the reply operation must record and tell: small promises, each of which somebody relies on."""

from __future__ import annotations

from turnproof.machines.kernel import NOBODY, PauseTimer, ResumeTimer, StartTimer, StopTimer, choose, implies, named, not_, one_of
from turnproof.machines.reply_operation import (
    abort,
    attached,
    completed,
    detached,
    entered,
    expiry,
    failed,
    move,
    now,
    probed,
    rotation,
    upstream,
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
from turnproof.specs.language import Always, Order, Property, Step, after, count, emits, ignored, on, refused, refuses, taken

then = after(ReplyOperation)
pending = named("pending", now.result == Result.NONE)
unprotected = named("pending and not committed", (now.result == Result.NONE) & not_(now.frozen))
attended = named("backend attached", now.backend != NOBODY)
held = named("has a result and its slot", (now.result != Result.NONE) & not_(now.released))
kept = named("a retain bit is set", now.retain_failure | now.retain_until_complete)
protected_then = named("committed or ended after the step", then.frozen | (then.result != Result.NONE))

CODES = (
    (FailureCode.GATEWAY_DRAINING, Result.GATEWAY_DRAINING),
    (FailureCode.COMMAND_LANE_CLEARED, Result.COMMAND_LANE_CLEARED),
    (FailureCode.SESSION_CORRUPTION_RESET, Result.SESSION_CORRUPTION_RESET),
    (FailureCode.RUN_FAILED, Result.RUN_FAILED),
    (FailureCode.RUN_STALLED, Result.RUN_STALLED),
)
UPSTREAM = (
    (UpstreamReason.USER, Result.ABORTED_BY_USER, CancelReason.USER_ABORT),
    (UpstreamReason.RESTART, Result.ABORTED_FOR_RESTART, CancelReason.RESTART),
    (UpstreamReason.SUPERSEDED, Result.ABORTED_FOR_SUPERSESSION, CancelReason.SUPERSEDED),
)

RECORDED_RESULTS: tuple[Property, ...] = (
    *(Step(f"failing as {code.value} records {result.value}", requirements="R-REPLY-1", holds=
           implies(on(Failed) & pending & (failed.code == code), (then.result == result) & then.frozen)) for code, result in CODES),
    *(Step(f"an upstream abort for {reason.value} records {result.value} and cancels as {cancel.value}", requirements="R-REPLY-22", holds=
           implies(on(UpstreamAborted) & unprotected & (upstream.reason == reason),
                   (then.result == result) & (emits(CancelBackend, reason=cancel) == attended) & emits(AbortSignal)))
      for reason, result, cancel in UPSTREAM),
    Step("completing a pending reply records completed", implies(on(Completed) & pending, then.result == Result.COMPLETED),
        requirements="R-REPLY-1"),
    Step("a superseded reply says so", implies(on(SupersedeRequested) & taken(), then.result == Result.ABORTED_FOR_SUPERSESSION),
        requirements="R-REPLY-1"),
    Step("a force clear of a pending reply records run_failed and releases", requirements=("R-REPLY-1", "R-REPLY-24"), holds=
         implies(on(ForceCleared) & pending, (then.result == Result.RUN_FAILED) & emits(Release))),
    Step("a force clear of a reply that holds its slot releases it", implies(on(ForceCleared) & held, emits(Release)),
        requirements="R-REPLY-24"),
    Step("an eviction ends a pending reply as aborted for restart, cancels so, signals and releases",
        requirements=("R-REPLY-1", "R-REPLY-22"), holds=
         implies(on(Evicted) & pending, (then.result == Result.ABORTED_FOR_RESTART)
         & (emits(CancelBackend, reason=CancelReason.RESTART) == attended)
                 & emits(AbortSignal) & emits(Release))),
    Step("an eviction frees the slot of a reply with a result, whose signal fires if it has not", requirements="R-REPLY-4", holds=
         implies(on(Evicted) & held, emits(Release) & then.signal_aborted)),
    Step("an accepted user or restart abort fires the signal", implies(on(AbortRequested) & taken(), emits(AbortSignal)),
        requirements="R-REPLY-22"),
    Step("a superseded reply that was not committed hears the signal", requirements="R-REPLY-22", holds=
         implies(on(SupersedeRequested) & taken() & unprotected, emits(AbortSignal))),
    Step("the signal is marked as fired exactly when it fires", requirements="R-REPLY-20", holds=
         emits(AbortSignal) == (not_(now.signal_aborted) & then.signal_aborted)),
    Step("an expiry of a reply with a result only fires its signal", requirements="R-REPLY-16", holds=
         implies(on(ExpiryRequested) & held & taken(), then.signal_aborted & not_(emits(Release)) & not_(emits(CancelBackend)))),
    Step("whole-reply expiry remembers its reason", requirements="R-REPLY-16", holds=
         implies(on(ExpiryRequested) & taken() & pending, then.expiry_reason == expiry.reason)
         & implies(on(WindowExpired) & taken(), then.expiry_reason == ExpiryReason.STUCK_RECOVERY)
         & implies(on(LeaseExpired) & taken(), then.expiry_reason == ExpiryReason.FINALIZATION_STALLED)),
    Step("a window or a lease that runs out cancels as superseded and signals", requirements=("R-REPLY-15", "R-REPLY-18"), holds=
         implies(on(WindowExpired, LeaseExpired) & taken(), emits(AbortSignal)
         & (emits(CancelBackend, reason=CancelReason.SUPERSEDED) == attended))),
    Step("a retained failure keeps the slot, any other gives it up", requirements="R-REPLY-5", holds=
         implies(on(Failed) & pending, then.released == not_(kept)), harm="an owner that asked to keep the slot finds it given away"),
    Step("a failure of a reply with a result gives up a slot that is not retained", requirements="R-REPLY-4", holds=
         implies(on(Failed) & held, (then.released == not_(kept)) & then.frozen)),
    Step("completing a reply that holds its slot gives it up", implies(on(Completed) & not_(now.released), emits(Release)),
        requirements="R-REPLY-4"),
    Step("an owner that completes without barriers settles", requirements="R-REPLY-27", holds=
         implies(on(Completed) & not_(completed.barrier) & (now.owner_barriers == 0) & not_(now.owner_done), emits(SettleOwner)),
         harm="whoever waits for the owner waits for ever"),
    Step("every barrier of a completing owner is counted", requirements="R-REPLY-27", holds=
         implies(on(Completed) & taken(), then.owner_barriers == choose(completed.barrier, now.owner_barriers + 1, now.owner_barriers))),
    refuses("an attempt that was cancelled as stuck is not steered", SteerRequested, attended & (now.backend == now.recovered),
            requirements="R-REPLY-28", harm="the message goes to an attempt that no longer reads"),
    refuses("a begun or ended reply keeps its key", KeyChangeRequested, now.phase != Phase.QUEUED, requirements="R-REPLY-25"),
    Step("a person's abort records aborted_by_user, a restart's aborted_for_restart", requirements=("R-REPLY-1", "R-REPLY-22"), holds=
         implies(on(AbortRequested) & taken(), then.result ==
         choose(abort.reason == AbortReason.RESTART, Result.ABORTED_FOR_RESTART, Result.ABORTED_BY_USER)),
         harm="the user is told that they aborted what a restart ended"),
    Step("an abort gives up the slot at once exactly where nothing ran and nothing retains it", requirements=("R-REPLY-23", "R-REPLY-26"),
         holds=implies(on(AbortRequested, UpstreamAborted, SupersedeRequested) & taken() & unprotected,
         emits(Release) == (one_of(now.phase, *PRE_BACKEND) & not_(attended) & not_(now.retain_until_complete)))),
    Step("what is cancelled is the attached backend, or one that attaches late", requirements="R-REPLY-22", holds=
         implies(emits(CancelBackend) & not_(on(BackendAttached)), attended & (count(CancelBackend, backend=now.backend) == 1)),
         harm="the wrong attempt is cancelled, and the right one goes on writing"),
    Step("a stall or a force clear protects what it ended from any later abort", requirements="R-REPLY-8", holds=
         implies(on(ForceCleared, WindowExpired) & taken(), then.frozen) & implies(on(ExpiryRequested) & taken() & pending, then.frozen)),
    Always("the mark of a recovered attempt ends with the reply", implies(now.result != Result.NONE, now.recovered == NOBODY),
        requirements="R-REPLY-13"),
    Step("no step tells the shell the same thing twice", requirements=("R-REPLY-20", "R-REPLY-24"), holds=
         (count(StampActivity) <= 1) & (count(DetachUpstream) <= 1) & (count(AbortSignal) <= 1) & (count(DeliverSteer) <= 1)
         & (count(RotateSession) <= 1) & (count(MoveToKey) <= 1), harm="a message reaches the run twice"),
    Step("completing marks the owner done", implies(on(Completed), then.owner_done), requirements="R-REPLY-27"),
)  # fmt: skip

ORDERS: tuple[Property, ...] = (
    Order("an expiry cancels the backend before it fires the signal", CancelBackend, AbortSignal, requirements="R-REPLY-16",
          when=on(ExpiryRequested, WindowExpired, LeaseExpired), harm="a listener of the signal frees what the backend still uses"),
    Order("an abort fires the signal before it cancels the backend", AbortSignal, CancelBackend, requirements="R-REPLY-22",
          when=on(AbortRequested, UpstreamAborted, SupersedeRequested, Evicted)),
    Order("the upstream signal is let go before the own one fires", DetachUpstream, AbortSignal, requirements="R-REPLY-20",
          harm="the signal that fires comes back as a second abort"),
    Order("what stops a backend comes before the slot is free", CancelBackend, Release, requirements="R-REPLY-24",
          harm="the successor begins before its predecessor was told to stop"),
    Order("the signal fires before the slot is free", AbortSignal, Release, requirements="R-REPLY-24"),
    Order("the slot is free before the owner settles", Release, SettleOwner, requirements="R-REPLY-27",
          harm="whoever waits for the owner finds the slot taken"),
    Order("the last thing an abort does is to arm the settle timer", CancelBackend, StartTimer, requirements="R-REPLY-21",
          when=not_(on(RecoveryRequested))),
    Order("the recovery window counts from the cancel", CancelBackend, StartTimer, requirements="R-REPLY-15", when=on(RecoveryRequested)),
    Order("the settle timer is armed when everything else is said: after the signal", AbortSignal, StartTimer, requirements="R-REPLY-21"),
    Order("a timer that starts finds the upstream signal let go", DetachUpstream, StartTimer, requirements="R-REPLY-20"),
    Order("old timers stop before a new one starts", StopTimer, StartTimer, requirements="R-REPLY-5"),
    Order("timers stop before the signal fires", StopTimer, AbortSignal, requirements="R-REPLY-21",
          harm="a listener that ends the reply finds its timer still running"),
    Order("timers stop before the slot is free", StopTimer, Release, requirements="R-REPLY-24",
          harm="a timer of the old reply fires into its successor"),
    Order("timers stop before the upstream signal is let go", StopTimer, DetachUpstream, requirements="R-REPLY-20",
          when=not_(on(OutcomeCommitted))),
    Order("committing first lets go of the upstream signal", DetachUpstream, StopTimer, requirements="R-REPLY-8", when=on(OutcomeCommitted),
          harm="a caller that leaves just then aborts a reply that is being delivered"),
    Order("the upstream signal is let go before a backend is cancelled", DetachUpstream, CancelBackend, requirements="R-REPLY-20",
          harm="the cancel comes back by way of the caller"),
    Order("the upstream signal is let go before the slot is free", DetachUpstream, Release, requirements="R-REPLY-24",
          harm="the caller of the old reply aborts its successor"),
    Order("activity is noted before the lease it renews starts anew", StampActivity, StopTimer, requirements="R-REPLY-18",
          when=on(ActivityRecorded)),
    Order("a phase is noted as a sign of life before the window goes on", StampActivity, ResumeTimer, requirements="R-REPLY-28"),
    Order("the recovery window closes before the next attempt counts as alive", StopTimer, StampActivity, requirements="R-REPLY-14",
          when=on(BackendAttached)),
)  # fmt: skip

RECORDED_FACTS: tuple[Property, ...] = (
    Step("from commitment or result on, the upstream signal is not listened to", requirements="R-REPLY-8", holds=
         emits(DetachUpstream) == (unprotected & protected_then), harm="a caller that left aborts a reply that is being delivered"),
    Step("committing freezes a reply that holds its slot", implies(on(OutcomeCommitted) & not_(now.released), then.frozen),
        requirements="R-REPLY-8"),
    Step("frozen is for ever", implies(now.frozen, then.frozen), requirements="R-REPLY-8"),
    Step("the last answer of the probe counts", requirements="R-REPLY-9", holds=
         implies(on(ConsentReported) & pending, then.backend_consents == probed.consents)),
    Step("a backend that detaches is forgotten, another stays", requirements="R-REPLY-22", holds=
         implies(on(BackendDetached) & not_(now.released), then.backend == choose(detached.backend == now.backend, NOBODY, now.backend))),
    Step("a backend that attaches to a pending reply is the attached one", requirements="R-REPLY-22", holds=
         implies(on(BackendAttached) & taken() & pending, then.backend == attached.backend)),
    Step("only stuck recovery marks an attempt as recovered", requirements="R-REPLY-13", holds=
         implies((then.recovered != now.recovered) & (then.recovered != NOBODY), (then.window == Window.OPEN)
         & (then.recovered == now.backend))),
    Step("retain bits are set when asked for, while the slot is held", requirements="R-REPLY-23", holds=
         implies(on(RetainFailureRequested) & not_(now.released), then.retain_failure)
         & implies(on(RetainUntilCompleteRequested) & not_(now.released), then.retain_until_complete)
         & implies(now.retain_failure, then.retain_failure) & implies(now.retain_until_complete, then.retain_until_complete)),
    Step("a phase of work is entered as it is said", requirements="R-REPLY-1", holds=
         implies(on(PhaseEntered) & pending & not_(one_of(entered.phase, *WAITS, *TERMINAL)), then.phase == entered.phase)),
    Step("a wait for maintenance begins and ends in queued", requirements="R-REPLY-19", holds=
         implies(on(MaintenanceWaitBegan) & taken(), (now.phase == Phase.QUEUED) & (then.phase == Phase.WAITING_FOR_MAINTENANCE))
         & implies(on(MaintenanceWaitBegan) & (now.phase == Phase.QUEUED), taken())
         & implies(on(MaintenanceWaitEnded) & (now.phase == Phase.WAITING_FOR_MAINTENANCE), then.phase == Phase.QUEUED)),
    Step("a wait for a lane remembers where it began", requirements="R-REPLY-19", holds=
         implies(on(LaneWaitBegan) & taken(), (then.phase == Phase.WAITING_FOR_LANE)
         & (then.lane_entered_running == (now.phase == Phase.RUNNING)))
         & implies(on(LaneWaitBegan) & one_of(now.phase, Phase.QUEUED, Phase.RUNNING), taken())),
    Step("a wait for a lane ends where it began", requirements="R-REPLY-19", holds=
         implies(on(LaneWaitEnded) & (now.phase == Phase.WAITING_FOR_LANE),
         then.phase == choose(now.lane_entered_running, Phase.RUNNING, Phase.QUEUED)),
         harm="a running reply falls back to queued, and is aborted as if nothing ran"),
    Step("a wait for a human or the runtime is noted while the reply is pending", requirements="R-REPLY-19", holds=
         implies(on(OwnedWaitBegan) & pending, then.owned_wait) & implies(on(OwnedWaitEnded), not_(then.owned_wait))),
    Step("the window is held when a wait begins and goes on when it ends", requirements="R-REPLY-15", holds=
         implies((now.window == Window.OPEN) & (then.window == Window.PAUSED), emits(PauseTimer, timer=Timer.WINDOW))
         & implies((now.window == Window.PAUSED) & (then.window == Window.OPEN), emits(ResumeTimer, timer=Timer.WINDOW))),
    Step("phases, attached backends and recorded activity are signs of life, and nothing else is", requirements="R-REPLY-28", holds=
         implies(emits(StampActivity), on(PhaseEntered, BackendAttached, ActivityRecorded))
         & implies(on(PhaseEntered, BackendAttached) & taken() & pending, emits(StampActivity))
         & implies(on(ActivityRecorded) & not_(now.released), emits(StampActivity)),
         harm="a run that works is judged stale, or a dead one is not"),
)  # fmt: skip

ended = named("has a result", now.result != Result.NONE)
protected = named("committed or ended", now.frozen | (now.result != Result.NONE))
waiting_stuck = one_of(now.phase, *WAITS) & (expiry.reason == ExpiryReason.STUCK_RECOVERY)
waiting_stale = ((now.phase == Phase.WAITING_FOR_LANE) | now.owned_wait) & (expiry.reason == ExpiryReason.NO_ACTIVITY)
committed_kept = now.frozen & (expiry.reason != ExpiryReason.FINALIZATION_STALLED)

ANSWERS: tuple[Property, ...] = (
    Step("what happens to a reply after its result is ignored, not refused", requirements="R-REPLY-24", holds=
         implies(ended & on(MaintenanceWaitBegan, LaneWaitBegan, OwnedWaitBegan, ConsentReported, WorkBegan, WorkEnded,
                            SessionRotationRequested), ignored())
         & implies(ended & on(PhaseEntered) & not_(one_of(entered.phase, *WAITS, *TERMINAL)), ignored()),
         harm="a caller that is only late is told that it did something wrong"),
    Step("what happens after the slot is given up is ignored, not refused", requirements="R-REPLY-24", holds=
         implies(now.released & on(ActivityRecorded, OutcomeCommitted, RetainFailureRequested, RetainUntilCompleteRequested, Failed,
                                   Evicted), ignored())),
    Step("a timer that fires though it was stopped is ignored", requirements=("R-REPLY-5", "R-REPLY-15", "R-REPLY-18"), holds=
         implies(on(SettleExpired), ignored() == not_(now.settle_armed)) & implies(on(LeaseExpired), ignored() == not_(now.lease_armed))
         & implies(on(WindowExpired), ignored() == (now.window != Window.OPEN))),
    Step("a wait that is not on ends without a word", requirements="R-REPLY-19", holds=
         implies(on(MaintenanceWaitEnded), ignored() == (now.phase != Phase.WAITING_FOR_MAINTENANCE))
         & implies(on(LaneWaitEnded), ignored() == (now.phase != Phase.WAITING_FOR_LANE))
         & implies(on(OwnedWaitEnded), ignored() == not_(now.owned_wait))),
    Step("a wait for a lane that ends leaves no trace of where it began", implies(on(LaneWaitEnded) & taken(),
        not_(then.lane_entered_running)), requirements="R-REPLY-19"),
    Step("a pending reply waits for maintenance only from queued, for a lane only from queued or running", requirements="R-REPLY-19", holds=
         implies(on(MaintenanceWaitBegan) & pending & (now.phase != Phase.QUEUED), refused())
         & implies(on(LaneWaitBegan) & pending & not_(one_of(now.phase, Phase.QUEUED, Phase.RUNNING)), refused())),
    Step("a phase that is no work is refused", implies(on(PhaseEntered) & one_of(entered.phase, *WAITS, *TERMINAL), refused()),
        requirements="R-REPLY-1"),
    Step("a backend attaches by name, and not again after it was recovered", requirements=("R-REPLY-13", "R-REPLY-14"), holds=
         implies(on(BackendAttached), refused() == ((attached.backend == NOBODY)
         | (pending & (attached.backend == now.recovered) & (now.window != Window.CLOSED)))),
         harm="the cancelled attempt passes for the next one, and keeps the reply for ever"),
    Step("the detaching of a backend that is not attached is ignored", requirements="R-REPLY-22", holds=
         implies(on(BackendDetached), ignored() == ((detached.backend != now.backend) | not_(attended)))),
    Step("a commitment counts once", requirements="R-REPLY-8", holds=
         implies(on(OutcomeCommitted), ignored() == (now.released | (now.frozen & ended)))),
    Step("declared work of a pending reply is noted", implies(on(WorkBegan, WorkEnded) & pending, taken()), requirements="R-REPLY-18"),
    Step("the upstream signal of a committed or ended reply is ignored", requirements="R-REPLY-8", holds=
         implies(on(UpstreamAborted), ignored() == protected)),
    Step("an expiry is accepted unless the reply is committed, or waits as it may", requirements=("R-REPLY-16", "R-REPLY-17"), holds=
         implies(on(ExpiryRequested) & pending, taken()
         == not_(committed_kept | waiting_stuck | waiting_stale | (expiry.reason == ExpiryReason.NONE))),
         harm="a dead reply holds the session, because its expiry is refused"),
    Step("an expiry without a reason is refused", implies(on(ExpiryRequested) & (expiry.reason == ExpiryReason.NONE), refused()),
        requirements="R-REPLY-17"),
    Step("a session id that is not new is no rotation, one that another key owns is an error", requirements="R-REPLY-25", holds=
         implies(on(SessionRotationRequested) & pending & rotation.unchanged, ignored())
         & implies(on(SessionRotationRequested) & pending & not_(rotation.unchanged) & rotation.owned_by_another_key, refused())),
    Step("a key that is taken or fenced is refused", requirements="R-REPLY-25", holds=
         implies(on(KeyChangeRequested) & (move.target_occupied | move.target_fenced), refused())),
    Step("a force clear of a reply that holds no slot is refused", implies(on(ForceCleared) & now.released, refused()),
        requirements="R-REPLY-24"),
    Step("an owner that has settled, and a barrier that nobody registered, settle nothing", requirements="R-REPLY-27", holds=
         implies(on(Completed) & now.released & now.owner_done & (now.owner_barriers == 0), ignored())
         & implies(on(BarrierSettled), ignored() == (now.owner_barriers == 0))),
)  # fmt: skip

RECORDS = RECORDED_RESULTS + ORDERS + RECORDED_FACTS + ANSWERS
