"""What must hold of the reply operation: the requirements R-REPLY-*, each as a property, a named test, or a system's property.

Explored with two backends besides nobody and at most two barriers; proved for any number of either. The environment is
unconstrained: every event may come in every state, as often as it likes.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated

from attrs import evolve, frozen

from turnproof.machines.kernel import NOBODY, StartTimer, StopTimer, Token, implies, named, not_, one_of, symbol
from turnproof.machines.reply_operation import MACHINE, abort, attached, expiry, move, now, rotation, steer
from turnproof.machines.reply_operation_words import (
    PRE_BACKEND,
    WAITS,
    AbortReason,
    AbortRequested,
    AbortSignal,
    ActivityRecorded,
    BackendAttached,
    BarrierSettled,
    CancelBackend,
    CancelReason,
    Completed,
    DeliverSteer,
    DetachUpstream,
    Evicted,
    ExpiryReason,
    ExpiryRequested,
    Failed,
    ForceCleared,
    KeyChangeRequested,
    LeaseExpired,
    MoveToKey,
    OutcomeCommitted,
    Phase,
    PhaseEntered,
    RecoveryRequested,
    Release,
    ReplyOperation,
    Result,
    RotateSession,
    SessionRotationRequested,
    SettleExpired,
    SettleOwner,
    StampActivity,
    SteerRequested,
    SupersedeRequested,
    Timer,
    UpstreamAborted,
    Window,
    WindowExpired,
    WorkBegan,
    WorkEnded,
)
from turnproof.specs.harms import with_harms
from turnproof.specs.language import (
    Always,
    Carries,
    Fair,
    History,
    LeadsTo,
    Property,
    Sometimes,
    Spec,
    Step,
    after,
    at_most,
    count,
    emits,
    never,
    on,
    refused,
    refuses,
    taken,
)
from turnproof.specs.reply_operation_records import RECORDS
from turnproof.specs.reply_operation_requirements import ELSEWHERE, REQUIREMENTS, TESTS

then = after(ReplyOperation)

# Written here again on purpose: a slip in the machine's own definitions must not move the properties with it.
DECLARED: Mapping[str, WorkBegan | WorkEnded] = {"begins": symbol(WorkBegan), "ends": symbol(WorkEnded)}
LATE = "a delivery that works as it said it would is ended as stalled, or one that hangs is not"
pending = named("pending", now.result == Result.NONE)
finalizing = named("committed", (now.result == Result.NONE) & now.frozen)
abortable = named("abortable", (now.result == Result.NONE) & not_(now.frozen) & ((now.backend == NOBODY) | now.backend_consents))
ended = named("has a result", now.result != Result.NONE)
held = named("has a result and its slot", (now.result != Result.NONE) & not_(now.released))
attended = named("backend attached", now.backend != NOBODY)
unprotected = named("pending and not committed", (now.result == Result.NONE) & not_(now.frozen))
waiting = named("in a healthy wait", one_of(now.phase, *WAITS))
FAILURES = tuple(r for r in Result if r.value.startswith("failed:"))
ABORTS = tuple(r for r in Result if r.value.startswith("aborted:"))


# ── history ──


@frozen
class Past:
    """What already happened to a reply and its state no longer says."""

    attempt_recovered: bool = False
    """A stuck attempt was cancelled."""
    cancelled_as_stuck: Annotated[str, Token] = NOBODY
    """The attempt that was cancelled as stuck last, until the reply has a result."""


past = symbol(Past)
PAST = History(Past(), past, (
    (on(RecoveryRequested) & taken(), evolve(past, attempt_recovered=True, cancelled_as_stuck=now.backend)),
    (then.result != Result.NONE, evolve(past, cancelled_as_stuck=NOBODY)),
))  # fmt: skip
RELEASED_ONCE, RELEASES = at_most(1, count(Release), "the slot is given up at most once", variable="releases", requirements="R-REPLY-3",
    harm="a successor's slot is freed by the reply before it")  # fmt: skip
SETTLED_ONCE, SETTLEMENTS = at_most(1, count(SettleOwner), "the owner settles at most once", variable="owner_settlements",
    requirements="R-REPLY-27",
    harm="whoever waits for the owner starts while it still works")  # fmt: skip


# ── fairness ──

SETTLE_FIRES = Fair("an armed settle timer fires", now.settle_armed, on(SettleExpired) & taken())
WINDOW_FIRES = Fair("a window that is open again and again runs out", now.window == Window.OPEN, on(WindowExpired) & taken(), strong=True)
WAITS_END = Fair("a healthy wait ends", waiting, waiting & not_(one_of(then.phase, *WAITS)))


RESULT_PROPERTIES: tuple[Property, ...] = (
    Step("a recorded result never changes", implies(ended, then.result == now.result), requirements="R-REPLY-1",
         harm="the user is told they aborted what a watchdog killed"),
    Always("the phase mirrors the result", requirements="R-REPLY-1", harm="a finished reply shows as working, or a live one as finished",
        holds=
           ((now.result == Result.COMPLETED) == (now.phase == Phase.COMPLETED))
           & (one_of(now.result, *FAILURES) == (now.phase == Phase.FAILED))
           & (one_of(now.result, *ABORTS) == (now.phase == Phase.ABORTED))),
    Step("released is for ever", implies(now.released, then.released), requirements="R-REPLY-3"),
    Step("the slot is given up exactly where the state says released", emits(Release) == (not_(now.released) & then.released),
        requirements="R-REPLY-3",
         harm="the registry and the operation disagree about who holds the key"),
    RELEASED_ONCE,
    never("no reply is released without a result", now.released & (now.result == Result.NONE), requirements=("R-REPLY-1", "R-REPLY-3"),
          harm="the user never hears how it ended"),
    LeadsTo("every reply with a result is released", ended, now.released, requirements="R-REPLY-4", fairness=(SETTLE_FIRES,),
            harm="the session is wedged: every later message waits for a reply that is over"),
    Always("every reply with a result that holds its slot has an armed settle timer", implies(held, now.settle_armed),
        requirements="R-REPLY-5",
           harm="if its owner never comes back, the session is wedged for ever"),
    Step("recording a result gives up the slot or arms the settle timer", requirements=("R-REPLY-5", "R-REPLY-21"), holds=
         implies(pending & (then.result != Result.NONE), emits(Release) | emits(StartTimer, timer=Timer.SETTLE)),
         harm="a cancel that throws, or an owner that vanished, leaves the slot taken for ever"),
    Step("the settle timer releases and changes nothing else", requirements="R-REPLY-5", holds=
         implies(on(SettleExpired) & now.settle_armed, then.released & (then.result == now.result) & (then.phase == now.phase))),
    Sometimes("a settle timer frees a slot", on(SettleExpired) & taken(), requirements="R-REPLY-5"),
    *(Sometimes(f"a reply ends {result.value}", now.result == result, requirements="R-REPLY-1")
      for result in Result if result not in (Result.NONE, Result.ABORTED_FOR_STUCK_RECOVERY)),
)  # fmt: skip

ABORT_PROPERTIES: tuple[Property, ...] = (
    refuses("a committed outcome refuses user abort, restart abort and stuck recovery", (AbortRequested, RecoveryRequested), finalizing,
        requirements="R-REPLY-8",
            harm="a reply whose text is already sent is shown as aborted"),
    refuses("a backend whose probe refuses is not aborted, superseded or recovered",
            (AbortRequested, SupersedeRequested, RecoveryRequested),
            unprotected & attended & not_(now.backend_consents), requirements="R-REPLY-9",
                harm="an attempt is killed inside a step that must not be cut"),
    Step("without a backend every abort is accepted", requirements="R-REPLY-9", holds=
         implies(unprotected & not_(attended) & on(AbortRequested, SupersedeRequested), taken())),
    Step("what is aborted or recovered is abortable", requirements="R-REPLY-10", holds=
         implies(on(AbortRequested, RecoveryRequested) & taken(), abortable), harm="a second copy of the abort rule forgot a case"),
    Step("a superseded reply was abortable or committed", requirements="R-REPLY-10", holds=
         implies(on(SupersedeRequested) & taken(), abortable | finalizing)),
    refuses("a reply with a result refuses every abort and recovery", (AbortRequested, SupersedeRequested, RecoveryRequested), ended,
        requirements=("R-REPLY-8", "R-REPLY-20"),
            harm="a call from inside cancel rewrites the verdict"),
    Step("the signal fires only with a result", implies(emits(AbortSignal), then.result != Result.NONE), requirements="R-REPLY-20",
         harm="a listener that asks why finds a reply that is still running"),
    Always("an aborted signal belongs to a reply with a result", implies(now.signal_aborted, ended),
        requirements=("R-REPLY-12", "R-REPLY-20"),
           harm="the fallback starts under an aborted signal and stops at once"),
    Step("the signal fires at most once", implies(emits(AbortSignal), not_(now.signal_aborted)), requirements="R-REPLY-20"),
    Step("but for stuck recovery, cancel finds the result recorded", requirements="R-REPLY-20", holds=
         implies(emits(CancelBackend) & not_(on(RecoveryRequested)), then.result != Result.NONE),
         harm="a re-entrant abort stamps aborted_by_user over a watchdog's kill"),
    Step("a step cancels at most one backend, once", count(CancelBackend) <= 1, requirements="R-REPLY-22"),
    Always("no backend stays attached after a result", implies(ended, now.backend == NOBODY), requirements="R-REPLY-22",
           harm="a backend of an ended reply is cancelled again and again, or never"),
    Step("a person's abort cancels with user_abort", requirements="R-REPLY-22", holds=
         implies(on(AbortRequested) & (abort.reason == AbortReason.USER) & taken() & attended,
         count(CancelBackend, backend=now.backend, reason=CancelReason.USER_ABORT) == 1)),
    Step("a restart cancels with restart", requirements="R-REPLY-22", holds=
         implies(on(AbortRequested) & (abort.reason == AbortReason.RESTART) & taken() & attended,
         count(CancelBackend, backend=now.backend, reason=CancelReason.RESTART) == 1)),
    Step("the upstream signal cancels the attached backend", requirements="R-REPLY-22", holds=
         implies(on(UpstreamAborted) & taken() & attended, count(CancelBackend, backend=now.backend) == 1)
         & implies(on(UpstreamAborted) & unprotected, taken())),
    Step("an accepted supersession of an uncommitted reply cancels with superseded", requirements="R-REPLY-22", holds=
         implies(on(SupersedeRequested) & taken() & unprotected & attended,
         count(CancelBackend, backend=now.backend, reason=CancelReason.SUPERSEDED) == 1)),
    Step("superseding a committed outcome neither cancels nor signals", requirements=("R-REPLY-8", "R-REPLY-22"), holds=
         implies(on(SupersedeRequested) & finalizing, taken() & not_(emits(CancelBackend)) & not_(emits(AbortSignal)) & then.settle_armed)),
    *(Step(f"a backend that attaches after {what} is cancelled with {reason.value}", requirements="R-REPLY-22", holds=
           implies(on(BackendAttached)
           & (attached.backend != NOBODY) & results, (count(CancelBackend, backend=attached.backend, reason=reason) == 1)
           & (then.backend == NOBODY)),
           harm="a late attempt writes into a session that is over")
      for what, reason, results in (
          ("a user abort", CancelReason.USER_ABORT, now.result == Result.ABORTED_BY_USER),
          ("a restart", CancelReason.RESTART, now.result == Result.ABORTED_FOR_RESTART),
          ("any other result", CancelReason.SUPERSEDED, one_of(now.result, Result.COMPLETED, Result.ABORTED_FOR_SUPERSESSION, *FAILURES)))),
    Step("an abort before anything ran releases at once", requirements="R-REPLY-23", holds=
         implies(on(AbortRequested) & taken() & one_of(now.phase, *PRE_BACKEND) & not_(attended) & not_(now.retain_until_complete),
         then.released & emits(Release))),
    Step("an abort that retains keeps the slot with an armed settle timer", requirements="R-REPLY-23", holds=
         implies(on(AbortRequested, UpstreamAborted) & taken() & now.retain_until_complete, not_(then.released) & then.settle_armed)),
    Step("no abort, supersession or expiry gives up the slot while a backend is attached", requirements="R-REPLY-26", holds=
         implies(on(AbortRequested, UpstreamAborted, SupersedeRequested, ExpiryRequested, WindowExpired) & attended, not_(emits(Release))),
         harm="the next turn runs beside a backend that still writes the same session"),
    Step("a released reply touches nothing but late backends and its own owner", requirements="R-REPLY-24", holds=
         implies(now.released, not_(emits(Release)) & not_(emits(AbortSignal)) & not_(emits(StartTimer)) & not_(emits(DetachUpstream))
                 & implies(emits(CancelBackend), on(BackendAttached))), harm="late cleanup of an old reply kills its successor"),
)  # fmt: skip

RECOVERY_PROPERTIES: tuple[Property, ...] = (
    Step("an accepted stuck recovery cancels the attached backend once, as stuck_recovery", requirements="R-REPLY-11", holds=
         implies(on(RecoveryRequested) & taken(), (count(CancelBackend, backend=now.backend, reason=CancelReason.STUCK_RECOVERY) == 1)
         & (count(CancelBackend) == 1)),
         harm="the attempt reports a user abort, and no fallback is tried"),
    Step("only a stuck recovery cancels as stuck_recovery", requirements="R-REPLY-11", holds=
         implies(emits(CancelBackend, reason=CancelReason.STUCK_RECOVERY), on(RecoveryRequested))),
    Step("an accepted stuck recovery leaves the reply alive", requirements="R-REPLY-12", holds=
         implies(on(RecoveryRequested) & taken(), (then.result == Result.NONE) & not_(then.signal_aborted) & not_(then.released)
         & not_(emits(AbortSignal)) & not_(emits(Release))),
         harm="the user's message is given up although a fallback could answer it"),
    never("no reply ends as aborted for stuck recovery", now.result == Result.ABORTED_FOR_STUCK_RECOVERY, requirements="R-REPLY-12"),
    Step("stuck recovery needs a running reply and an abortable backend not cancelled for it before", requirements="R-REPLY-13", holds=
         implies(on(RecoveryRequested) & taken(), (now.phase == Phase.RUNNING) & attended & abortable & (now.backend != now.recovered))),
    refuses("an attempt is recovered at most once", RecoveryRequested, attended & (now.backend == past.cancelled_as_stuck),
            requirements="R-REPLY-13", harm="a second cancel reaches the attempt while it is cleaning up"),
    Step("the next attempt may attach while the window is open, and closes it", requirements="R-REPLY-14", holds=
         implies(on(BackendAttached) & (now.window != Window.CLOSED) & (attached.backend != NOBODY) & (attached.backend != now.recovered),
                 taken() & (then.window == Window.CLOSED) & (then.backend == attached.backend) & (then.result == Result.NONE))),
    Sometimes("a reply whose attempt was recovered still completes", past.attempt_recovered & (now.result == Result.COMPLETED),
        requirements="R-REPLY-14"),
    Step("a window that runs out expires the reply", requirements="R-REPLY-15", holds=
         implies(on(WindowExpired) & (now.window == Window.OPEN), (then.result == Result.RUN_STALLED) & then.settle_armed
         & not_(then.released))),
    Always("an open window belongs to a pending reply that may still be aborted", implies(now.window != Window.CLOSED, pending
        & not_(now.frozen)), requirements="R-REPLY-15"),
    Always("the window is paused exactly in a healthy wait", requirements="R-REPLY-15", holds=
           implies(now.window != Window.CLOSED, (now.window == Window.PAUSED) == waiting),
           harm="waiting for capacity counts as being stuck"),
    LeadsTo("an open window closes", now.window != Window.CLOSED, now.window == Window.CLOSED, requirements="R-REPLY-15",
        fairness=(WINDOW_FIRES, WAITS_END),
            harm="a recovered reply shows working for ever"),
    LeadsTo("a recovered reply gets a new attempt or ends", now.window != Window.CLOSED, (now.window == Window.CLOSED)
        & (attended | now.frozen | ended), requirements="R-REPLY-15",
            fairness=(WINDOW_FIRES, WAITS_END), harm="the reply is alive, and nothing will ever answer it"),
)  # fmt: skip

EXPIRY_PROPERTIES: tuple[Property, ...] = (
    Step("an accepted expiry records run_stalled, cancels as superseded, signals, and keeps the slot", requirements="R-REPLY-16", holds=
         implies(on(ExpiryRequested) & taken() & pending,
                 (then.result == Result.RUN_STALLED) & emits(AbortSignal) & not_(then.released) & then.settle_armed
                 & (emits(CancelBackend, backend=now.backend, reason=CancelReason.SUPERSEDED) == attended)),
         harm="a successor runs beside a backend nobody stopped"),
    refuses("an expiry is refused once the slot is given up", ExpiryRequested, now.released, requirements="R-REPLY-17"),
    refuses("a committed outcome expires only because its finalization stalled", ExpiryRequested,
            finalizing & (expiry.reason != ExpiryReason.FINALIZATION_STALLED), requirements="R-REPLY-17",
                harm="a reply that is being delivered is thrown away"),
    Always("a committed outcome runs on a lease", implies(finalizing, now.lease_armed), requirements="R-REPLY-18",
        harm="a delivery that hangs holds the session for ever"),
    Step("a lease that runs out ends the reply as run_stalled and releases at once", requirements="R-REPLY-18", holds=
         implies(on(LeaseExpired) & now.lease_armed, (then.result == Result.RUN_STALLED) & then.released & emits(Release))),
    Step("activity, a repeated commit and declared work renew the lease", requirements="R-REPLY-18", holds=
         implies(on(ActivityRecorded, OutcomeCommitted, WorkBegan, WorkEnded) & finalizing, emits(StopTimer, timer=Timer.LEASE)
         & emits(StartTimer, timer=Timer.LEASE))),
    Step("a phase or a backend does not renew the lease", requirements="R-REPLY-18", holds=
         implies(on(PhaseEntered, BackendAttached) & finalizing, not_(emits(StartTimer, timer=Timer.LEASE)))),
    *(Carries(f"work that {what} moves the lease to the latest deadline that is declared", StartTimer, "not_before_ms",
              event.latest_deadline_ms, when=on(type(event)), matching={"timer": Timer.LEASE}, requirements="R-REPLY-18", harm=LATE)
      for what, event in DECLARED.items()),
    Carries("a lease runs until the latest deadline that was declared", StartTimer, "not_before_ms", now.work_deadline_ms,
            when=not_(on(WorkBegan, WorkEnded)), matching={"timer": Timer.LEASE}, requirements="R-REPLY-18", harm=LATE),
    *(Carries(f"a deadline is remembered when work {what}", ReplyOperation, "work_deadline_ms", event.latest_deadline_ms,
              when=on(type(event)), requirements="R-REPLY-18", harm=LATE) for what, event in DECLARED.items()),
    Carries("a declared deadline is forgotten by nothing but the next", ReplyOperation, "work_deadline_ms", now.work_deadline_ms,
            when=not_(on(WorkBegan, WorkEnded)), requirements="R-REPLY-18", harm=LATE),
    *(Carries(f"the {timer.value} timer waits for no declared work", StartTimer, "not_before_ms", 0, matching={"timer": timer},
              requirements=rid, harm="a stuck reply holds its slot until the work's deadline")
      for timer, rid in ((Timer.SETTLE, "R-REPLY-5"), (Timer.WINDOW, "R-REPLY-15"))),
    refuses("stuck recovery ends no healthy wait", ExpiryRequested, waiting & (expiry.reason == ExpiryReason.STUCK_RECOVERY),
        requirements="R-REPLY-19",
            harm="a reply that waits for capacity is killed for waiting"),
    refuses("stuck recovery cancels nothing in a healthy wait", RecoveryRequested, waiting, requirements="R-REPLY-19"),
    refuses("a wait for a lane, a human or the runtime is never stale", ExpiryRequested,
            pending & ((now.phase == Phase.WAITING_FOR_LANE) | now.owned_wait) & (expiry.reason == ExpiryReason.NO_ACTIVITY),
                requirements="R-REPLY-19",
            harm="an approval that takes its time kills the reply that asked for it"),
    Step("a window never runs out in a healthy wait", implies(on(WindowExpired) & waiting, not_(taken())), requirements="R-REPLY-19"),
)  # fmt: skip

OWNER_PROPERTIES: tuple[Property, ...] = (
    Step("the owner settles only when done and without barriers", implies(emits(SettleOwner), then.owner_done
        & (then.owner_barriers == 0)), requirements="R-REPLY-27"),
    SETTLED_ONCE,
    Step("the last barrier settles the owner", implies(on(BarrierSettled) & (now.owner_barriers == 1), emits(SettleOwner)),
        requirements="R-REPLY-27"),
    Always("only a done owner has barriers", implies(now.owner_barriers > 0, now.owner_done), requirements="R-REPLY-27"),
    Sometimes("an owner waits for two barriers", now.owner_barriers == 2, requirements="R-REPLY-27"),
    Step("force clear, eviction and timers do not settle the owner", requirements="R-REPLY-27", holds=
         implies(on(ForceCleared, Evicted, SettleExpired, LeaseExpired, Failed), not_(emits(SettleOwner)))),
    Step("a session id another key owns is never taken", requirements="R-REPLY-25", holds=
         implies(emits(RotateSession), on(SessionRotationRequested) & not_(rotation.owned_by_another_key) & pending),
         harm="two keys share a session, and each wakes the other's waiters"),
    Step("an operation changes its key only while queued, to a free key", requirements="R-REPLY-25", holds=
         implies(emits(MoveToKey), on(KeyChangeRequested) & pending & (now.phase == Phase.QUEUED)
                 & not_(move.target_occupied) & not_(move.target_fenced))),
    Step("a free new id is accepted from a pending reply", requirements="R-REPLY-25", holds=
         implies(on(SessionRotationRequested) & pending & not_(rotation.owned_by_another_key) & not_(rotation.unchanged),
                 emits(RotateSession))),
    Step("completing releases", requirements="R-REPLY-4", holds=implies(on(Completed), then.released)),
    Step("steering needs a running reply, an accepting backend and fresh evidence", requirements="R-REPLY-28", holds=
         implies(emits(DeliverSteer), on(SteerRequested) & (now.phase == Phase.RUNNING) & attended & steer.backend_accepts
         & not_(steer.evidence_stale))),
    Step("steering is delivered or refused", implies(on(SteerRequested), emits(DeliverSteer) | refused()), requirements="R-REPLY-28",
        harm="a message vanishes"),
    Step("a message is no sign of life", implies(on(SteerRequested), not_(emits(StampActivity))), requirements="R-REPLY-28",
        harm="messages to a dead run keep it looking alive"),
    Sometimes("a message is steered into a run", emits(DeliverSteer), requirements="R-REPLY-28"),
)  # fmt: skip

PROPERTIES = RESULT_PROPERTIES + ABORT_PROPERTIES + RECOVERY_PROPERTIES + EXPIRY_PROPERTIES + OWNER_PROPERTIES + RECORDS


def _spec() -> Spec:
    from turnproof.specs.reply_operation_history import VARIANTS

    return Spec(
        machine=MACHINE,
        requirements=REQUIREMENTS,
        properties=with_harms(PROPERTIES),
        histories=(PAST, RELEASES, SETTLEMENTS),
        tests=TESTS,
        total=("R-REPLY-29",),
        elsewhere=ELSEWHERE,
        variants=VARIANTS,
        discipline={Timer.SETTLE: ("R-REPLY-5",), Timer.LEASE: ("R-REPLY-18",), Timer.WINDOW: ("R-REPLY-15",)},
        tokens=2,
        counter=2,
        recordings={"tests/data/openclaw/reply-operation.jsonl.gz": "openclaw_2026_9_6"},
    )


SPEC = _spec()
