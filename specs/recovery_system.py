"""Attempt, failover and stuck recovery as one system: a turn of two attempts, whatever stalls, whoever aborts, in whatever order.

Parts: the reply operation and its slot, the lane, the registry of runs, two attempts (the second falls back to another model) with a
tool call each, failover and the recovery routine. The environment may do anything at any time: the provider answers, late or never; a
tool begins, ends, proves that it changed nothing, or hangs; a person aborts, a message comes, the process restarts, the owner vanishes,
a listener aborts again from inside a cancel. Timers fire whenever they run, in any order, and a recovery may be asked for at any moment:
more than the real watchdog ever asks (``watched_turn`` has that one).
"""

from __future__ import annotations

from turnproof.machines.attempt_terminal import Ending
from turnproof.machines.command_lane import ResetRequested, StartTurn
from turnproof.machines.embedded_attempt import DONE, LIVE, SETTLING
from turnproof.machines.embedded_attempt_events import (
    AnswerCompleted,
    CallerAborted,
    CancelRequested,
    IdleExpired,
    LoopReturned,
    UnwindExpired,
)
from turnproof.machines.embedded_attempt_words import Stall
from turnproof.machines.embedded_run import EMPTY, Deliver
from turnproof.machines.failover import OVER, READY, RUNNING
from turnproof.machines.failover_words import AttemptBegan, LetRun
from turnproof.machines.kernel import implies, named, not_, one_of
from turnproof.machines.reply_operation_words import (
    AbortSignal,
    CancelReason,
    RecoveryRequested,
    Result,
    SettleExpired,
    Timer,
)
from turnproof.machines.reply_slot import BeginRequested
from turnproof.machines.stuck_recovery_words import (
    CancelStuckRun,
    ExpireReply,
    ForceClearRun,
    Outcome,
    RecoverAttempt,
    ReportRecovery,
    ResetLane,
    SituationRead,
)
from turnproof.machines.tool_execution import FLUSHING, HANDED
from turnproof.machines.tool_execution import RUNNING as TOOL_RUNS
from turnproof.specs.embedded_attempt_requirements import TESTS, requirements
from turnproof.specs.harms import with_harms
from turnproof.specs.language import Always, Fair, LeadsTo, Property, Sometimes, Step
from turnproof.specs.recovery_system_environment import ListenerPhase, Provider, Times
from turnproof.specs.recovery_system_parts import (
    SYSTEM,
    answers,
    failover,
    first,
    lane,
    ledger,
    provider,
    recovery,
    reply,
    runs,
    second,
    signal_2,
    slot,
    tool_1,
)
from turnproof.specs.system import SystemSpec

# ── words ──

recovers_first = named("the first attempt is recovered", recovery.emits(RecoverAttempt, run="a"))
recovers_second = named("the second attempt is recovered", recovery.emits(RecoverAttempt, run="b"))
fallback_begins = named("the fallback begins", failover.emits(LetRun, attempt="b"))
fell_back = named("the fallback has begun", signal_2.now.phase == ListenerPhase.LISTENING)
committed = named("the outcome is committed", (reply.now.result == Result.NONE) & reply.now.frozen)
call_in_flight = named("a side-effecting call may still happen",
    ledger.now.first_may & one_of(tool_1.now.phase, FLUSHING, HANDED, TOOL_RUNS))  # fmt: skip
next_turn_starts = named("the next turn starts", lane.emits(StartTurn, turn=2))
idle_stall = named("a stalled model call, and nothing that may have changed the world",
    (first.now.phase == SETTLING) & (first.now.stall == Stall.MODEL_IDLE_TIMEOUT) & not_(first.now.effects) & (first.now.risky_tools == 0)
    & (failover.now.phase == RUNNING) & (failover.now.attempt == "a"))  # fmt: skip

ONCE = "the side effect of the turn happens at most once"
SAFE_FALLBACK = "the fallback begins only if nothing changed the world, and nothing still can,"
TYPED = "a recovery reaches the attempt as stuck_recovery, once, and no signal comes with it"
CLASSED = "a live attempt that is recovered has its class in the same step, whoever else cancels"
UNKNOWN = "a recovery that finds neither tool nor compaction nor a living request is an external abort"
ALIVE = "the recovery of an attempt leaves its reply without a result"
NOT_THE_USER = "a recovery is never recorded as the user's abort"
ATTEMPT_FIRST = "the reply is expired for being stuck only where no attempt is registered"
COMMITTED = "a committed outcome is neither recovered nor expired"
CLASS_STAYS = "the class of a recovery never changes"
ONE_ANSWER = "at most one answer is delivered"
LATE = "an answer is delivered only by an attempt that was live"
ONE_ATTEMPT = "two attempts of a turn are never live together"
OWNERLESS = "the lane is reset only while no run is registered and the reply is released"
SLOT_FREE = "the next turn finds its slot free, and no attempt of the turn before it live"
FALLS_BACK = "a stalled model call without a side effect reaches the fallback, unless the turn is ended by somebody"
SETTLES = "every reply with a result gives its slot up"

UNWINDS = Fair("an interrupted attempt comes back, or its unwind timer fires",
    (first.now.phase == SETTLING) & (first.now.stall != Stall.NONE), first.took(UnwindExpired) | first.took(LoopReturned))  # fmt: skip
BEGINS = Fair("the owner begins what is due", failover.now.phase == READY, failover.took(AttemptBegan) | (failover.next.phase == OVER)
    | (reply.next.result != Result.NONE))  # fmt: skip
SETTLE_FIRES = Fair("a running settle timer fires", reply.running(Timer.SETTLE), reply.took(SettleExpired))

PROPERTIES: tuple[Property, ...] = (
    Always(ONCE, ledger.now.phase != Times.TWICE, requirements="R-ATT-14", harm="the command runs twice"),
    *(Step(f"{SAFE_FALLBACK} {after}", requirements=("R-ATT-12", "R-ATT-14"), holds=
           implies(fallback_begins & how, (ledger.now.phase == Times.NEVER) & not_(call_in_flight)),
           harm="the fallback repeats what the first attempt has done, or is still doing")
      for after, how in (
          ("after a recovery", first.now.stall != Stall.NONE),
          ("after an idle timeout", (first.now.ending == Ending.TIMEOUT_IDLE) & (first.now.stall == Stall.NONE)),
          ("after an error", first.now.ending == Ending.FAILED))),
    Step(TYPED, requirements=("R-ATT-1", "R-ATT-2"), holds=
         implies(recovers_first, (first.received(CancelRequested, reason=CancelReason.STUCK_RECOVERY) == 1) & not_(first.on(CallerAborted)))
         & implies(recovers_second, (second.received(CancelRequested, reason=CancelReason.STUCK_RECOVERY) == 1)
         & not_(second.on(CallerAborted))), harm="the attempt records a person's abort, and no fallback is tried"),
    Step(CLASSED, requirements=("R-ATT-2", "R-ATT-3"), holds=
         implies(recovers_first & (first.now.phase == LIVE), first.next.stall != Stall.NONE)
         & implies(recovers_second & (second.now.phase == LIVE), second.next.stall != Stall.NONE)),
    Step(UNKNOWN, requirements=("R-ATT-7", "R-ATT-8"), holds=
         implies(recovers_first & (first.now.phase == LIVE) & (provider.now.phase == Provider.SILENT) & not_(first.now.compacting)
                 & (first.now.risky_tools == 0), first.next.stall == Stall.EXTERNAL_ABORT),
         harm="a run that hangs after its model call is replayed, although nobody knows what it did"),
    Step(ALIVE, requirements="R-ATT-2", holds=
         implies(reply.took(RecoveryRequested), (reply.next.result == Result.NONE) & not_(reply.emits(AbortSignal))),
         harm="the fallback starts under an aborted signal and stops at once"),
    Step(NOT_THE_USER, requirements="R-ATT-29", holds=
         implies(recovery.emits(RecoverAttempt) | recovery.emits(ExpireReply) | recovery.emits(CancelStuckRun),
                 (reply.next.result != Result.ABORTED_BY_USER) | (reply.now.result == Result.ABORTED_BY_USER)),
         harm="the user is told they aborted what a watchdog stopped"),
    Step(ATTEMPT_FIRST, implies(recovery.emits(ExpireReply), runs.now.phase == EMPTY), requirements="R-ATT-1",
         harm="the user's message is given up although a fallback could answer it"),
    Step(COMMITTED, requirements="R-ATT-9", holds=
         implies(recovery.on(SituationRead) & committed, not_(recovery.emits(RecoverAttempt)) & not_(recovery.emits(ExpireReply))),
         harm="a reply whose text is being delivered is thrown away"),
    Step(CLASS_STAYS, requirements="R-ATT-16", holds=
         implies(first.now.stall != Stall.NONE, (first.next.stall == first.now.stall) & (first.next.ending == first.now.ending))
         & implies(second.now.stall != Stall.NONE, (second.next.stall == second.now.stall) & (second.next.ending == second.now.ending)),
         harm="a stray cancel takes the right to a fallback away"),
    Sometimes("a recovered attempt is cancelled again", first.on(CancelRequested) & (first.now.stall != Stall.NONE),
        requirements="R-ATT-16"),
    Always(ONE_ANSWER, answers.now.phase != Times.TWICE, requirements="R-ATT-16", harm="the user gets two answers"),
    Step(LATE, requirements="R-ATT-16", holds=
         implies(runs.emits(Deliver, handle="a"), first.now.phase == LIVE) & implies(runs.emits(Deliver, handle="b"),
         second.now.phase == LIVE),
         harm="an abandoned attempt answers after the fallback did"),
    Sometimes("an abandoned attempt answers too late", first.on(AnswerCompleted) & fell_back, requirements="R-ATT-16"),
    Always(ONE_ATTEMPT, not_((first.now.phase == LIVE) & (second.now.phase == LIVE)), requirements="R-ATT-14",
           harm="two attempts write one session"),
    Step(OWNERLESS, requirements="R-ATT-26", holds=
         implies(lane.took(ResetRequested), (runs.now.phase == EMPTY) & reply.now.released),
         harm="a queued turn starts beside the fallback of the one before"),
    Step(SLOT_FREE, requirements="R-ATT-27", holds=
         implies(next_turn_starts, not_(slot.refused(BeginRequested)) & (first.next.phase != LIVE) & (second.next.phase != LIVE)),
         harm="two turns of one session run side by side"),
    Sometimes("a reset starts the turn that waits", lane.took(ResetRequested) & next_turn_starts, requirements="R-ATT-27"),
    Sometimes("a lane is reset after a forced clear", recovery.emits(ResetLane) & recovery.now.forced, requirements="R-ATT-26"),
    Sometimes("a stalled model call is answered by the fallback", requirements="R-ATT-6", holds=
        (first.now.stall == Stall.MODEL_IDLE_TIMEOUT) & (answers.now.phase == Times.ONCE) & fell_back),
    Sometimes("a silent model call is answered by the fallback, without any recovery", requirements="R-ATT-6", holds=
        first.took(IdleExpired) & (first.now.stall == Stall.NONE)),
    Sometimes("a fallback fails as well", (second.now.phase == DONE) & (failover.now.phase == OVER), requirements="R-ATT-6"),
    LeadsTo(FALLS_BACK, idle_stall, fell_back | (reply.now.result != Result.NONE), requirements="R-ATT-6", fairness=(UNWINDS, BEGINS),
            harm="the configured fallback is never asked"),
    LeadsTo(SETTLES, (reply.now.result != Result.NONE) & not_(reply.now.released), reply.now.released, requirements="R-ATT-26",
            fairness=(SETTLE_FIRES,), harm="the session is wedged"),
    Sometimes("an attempt is forced out while its reply lives on", recovery.emits(ForceClearRun) & (reply.now.result == Result.NONE),
        requirements="R-ATT-28"),
    *(Sometimes(f"a recovery ends {o.value}", recovery.emits(ReportRecovery, outcome=o), requirements="R-ATT-28")
      for o in (Outcome.ATTEMPT_ENDED, Outcome.DRAINED, Outcome.FORCED, Outcome.REFUSED, Outcome.KEPT_WAITING, Outcome.RELEASED)),
)  # fmt: skip


def _spec() -> SystemSpec:
    from turnproof.specs.recovery_system_history import VARIANTS

    ids = (1, 2, 3, 6, 7, 8, 9, 12, 14, 16, 26, 27, 28, 29, 30, 32)
    return SystemSpec(
        system=SYSTEM,
        requirements=requirements(*(f"R-ATT-{n}" for n in ids)),
        properties=with_harms(PROPERTIES),
        tests={rid: TESTS[rid] for rid in ("R-ATT-30", "R-ATT-32")},
        variants=VARIANTS,
        companions=("watched_turn",),
        tokens=2,
        counter=2,
    )


SPEC = _spec()
