"""What must hold of the recoveries of one session, for any identities and any number of turns and changes of its record."""

from __future__ import annotations

from attrs import evolve, frozen

from turnproof.machines.kernel import NOBODY, StopTimer, implies, named, not_, one_of, symbol
from turnproof.machines.stuck_recovery import (
    CHECKING,
    DRAINING,
    ENTERED,
    IDLE,
    MACHINE,
    R,
    now,
    over,
    owners,
    run_ended,
    settled,
    situation,
)
from turnproof.machines.stuck_recovery_words import (
    CancelStuckRun,
    CheckOwners,
    DrainExpired,
    ExpireReply,
    ForceClearReply,
    ForceClearRun,
    IdleSession,
    Lane,
    Outcome,
    OwnersChecked,
    OwnerSettled,
    RecoverAttempt,
    RecoveryAsked,
    RecoveryTimer,
    ReportRecovery,
    ResetLane,
    RoutineThrew,
    RunEnded,
    SituationRead,
    Stance,
    StuckRecovery,
)
from turnproof.specs.embedded_attempt_requirements import requirements
from turnproof.specs.harms import with_harms
from turnproof.specs.language import (
    Always,
    Fair,
    History,
    LeadsTo,
    Property,
    Sometimes,
    Spec,
    Step,
    Variant,
    after,
    count,
    emits,
    on,
    taken,
)
from turnproof.specs.stuck_recovery_exactly import EXACTLY

then = after(StuckRecovery)


@frozen
class Past:
    """What really happened to whom the recovery captured."""

    run_ended: bool = False
    owner_settled: bool = False


past = symbol(Past)
PAST = History(
    Past(),
    past,
    (
        (then.phase == IDLE, Past()),
        (on(RunEnded) & (now.phase == DRAINING) & (run_ended.run == now.run) & (now.run != NOBODY), evolve(past, run_ended=True)),
        (on(OwnerSettled) & one_of(now.phase, DRAINING, CHECKING) & (settled.reply == now.reply) & (now.reply != NOBODY),
         evolve(past, owner_settled=True)),
    ),
)  # fmt: skip

DRAIN_FIRES = Fair("an armed drain timer fires", now.phase == DRAINING, on(DrainExpired) & taken())
READ = Fair("the situation is read", now.phase == ENTERED, on(SituationRead, RoutineThrew) & taken())
CHECKED = Fair("ownership is read", now.phase == CHECKING, on(OwnersChecked, RoutineThrew) & taken())
acts = emits(RecoverAttempt) | emits(CancelStuckRun) | emits(ExpireReply) | emits(ForceClearRun) | emits(ForceClearReply) | emits(ResetLane)
reported = named("a report", count(ReportRecovery) == 1)
in_flight = now.phase != IDLE

ONE = "a recovery that is asked for while one is on is skipped, and changes nothing"
STALE = "an outdated request does nothing"
ENDS = "every recovery ends, and takes its mark away"
CAPTURED = "only what was captured is stopped, cleared or waited for"
OWNED = "the lane is reset only while nobody owns the session"
SEEN = "only the task that was seen is reset"
TRUE_DRAIN = "drained is reported only if attempt and owner both ended"
FORCED = "what was taken out by force is reported so"
ATTEMPT_ONLY = "a live attempt of a reply is cancelled alone; the reply is expired only without one"
REFUSAL = "what refuses recovery is left alone"
HEALTHY = "work in a healthy wait is left alone"

PROPERTIES: tuple[Property, ...] = (
    Step(ONE, requirements="R-ATT-22", holds=
         implies(on(RecoveryAsked) & in_flight, (then.phase == now.phase) & (then.run == now.run) & (then.asked == now.asked)
         & emits(ReportRecovery, outcome=Outcome.SKIPPED_IN_FLIGHT) & not_(acts)),
         harm="two recoveries of one session clear each other's work"),
    Step(STALE, requirements="R-ATT-22", holds=
         implies(on(SituationRead) & (now.phase == ENTERED) & (now.asked != now.generation),
                 not_(acts) & emits(ReportRecovery, outcome=Outcome.SKIPPED_STALE)),
         harm="a recovery that was justified a while ago kills what has begun since"),
    LeadsTo(ENDS, in_flight, now.phase == IDLE, requirements="R-ATT-22", fairness=(DRAIN_FIRES, READ, CHECKED),
            harm="a recovery that hangs, or threw, forbids every later one"),
    Step("the mark goes exactly with the report", requirements="R-ATT-22", holds=
         implies(in_flight & (then.phase == IDLE), reported) & implies(in_flight & reported & not_(on(RecoveryAsked)), then.phase == IDLE)),
    Step("a routine that throws takes its mark away", requirements="R-ATT-22", holds=
         implies(on(RoutineThrew) & in_flight, (then.phase == IDLE) & emits(ReportRecovery, outcome=Outcome.FAILED)
         & (emits(StopTimer, timer=RecoveryTimer.DRAIN) == (now.phase == DRAINING)))),
    Always("at rest nothing is captured", implies(now.phase == IDLE, (now.run == NOBODY) & (now.reply == NOBODY) & not_(now.forced)),
        requirements="R-ATT-25"),
    Step(CAPTURED, requirements="R-ATT-25", holds=
         implies(emits(ForceClearRun), emits(ForceClearRun, run=now.run) & (now.run != NOBODY))
         & implies(emits(ForceClearReply), emits(ForceClearReply, reply=now.reply) & (now.run == NOBODY))
         & implies(on(RunEnded) & ((run_ended.run != now.run) | (now.run == NOBODY)), not_(taken()))
         & implies(on(OwnerSettled) & ((settled.reply != now.reply) | (now.reply == NOBODY)), not_(taken()))
         & implies((now.phase == DRAINING) & (then.phase != IDLE), (then.run == now.run) & (then.reply == now.reply)),
         harm="the attempt that replaced the stuck one is aborted or cleared"),
    Step("who is told to stop is who was read", requirements=("R-ATT-1", "R-ATT-25"), holds=
         implies(emits(RecoverAttempt), on(SituationRead) & emits(RecoverAttempt, reply=situation.reply, run=situation.run))
         & implies(emits(CancelStuckRun), on(SituationRead) & emits(CancelStuckRun, run=situation.run))
         & implies(emits(ExpireReply), on(SituationRead) & emits(ExpireReply, reply=situation.reply))),
    Step(ATTEMPT_ONLY, requirements="R-ATT-1", holds=
         implies(emits(ExpireReply), on(SituationRead) & (situation.run == NOBODY))
         & implies(on(SituationRead) & taken() & (situation.run != NOBODY) & (situation.reply != NOBODY) & (then.phase == DRAINING),
                   emits(RecoverAttempt)), harm="the user's message is given up although a fallback could answer it"),
    Step(REFUSAL, requirements="R-ATT-9", holds=
         implies(on(SituationRead) & (now.phase == ENTERED) & (situation.reply != NOBODY) & (situation.stance == Stance.REFUSES),
         not_(acts)),
         harm="a reply whose text is being delivered is expired"),
    Step(HEALTHY, requirements="R-ATT-10", holds=
         implies(on(SituationRead) & (now.phase == ENTERED) & (situation.stance == Stance.WAITS) & ((situation.run != NOBODY)
         | (situation.reply != NOBODY)),
                 not_(acts))),
    Step("work that is alive is stopped only if that is allowed", requirements="R-ATT-20", holds=
         implies(on(SituationRead) & (now.phase == ENTERED) & ((situation.run != NOBODY) | (situation.reply != NOBODY))
                 & not_(now.may_abort) & not_(situation.overdue), not_(acts))),
    Step(OWNED, requirements="R-ATT-26", holds=
         implies(on(SituationRead) & emits(ResetLane), (situation.run == NOBODY) & (situation.reply == NOBODY))
         & implies(on(OwnersChecked) & emits(ResetLane), (owners.run == NOBODY) & (owners.reply == NOBODY))
         & implies(emits(ResetLane), on(SituationRead, OwnersChecked)),
         harm="a queued turn starts beside the fallback that answers the one before"),
    Step(SEEN, requirements="R-ATT-26", holds=
         implies(on(OwnersChecked) & emits(ResetLane), emits(ResetLane, task=now.task) & (owners.task == now.task)
         & (owners.lane != Lane.FREE)),
         harm="a turn that has just begun is forgotten in place of the stuck one"),
    Step("an ownerless lane is reset only once its task is stale", requirements="R-ATT-26", holds=
         implies(on(SituationRead) & emits(ResetLane), situation.lane == Lane.STALE)),
    Step("the report says whether the lane was reset", requirements="R-ATT-28", holds=
         emits(ReportRecovery, released=True) == emits(ResetLane)),
    Step(TRUE_DRAIN, requirements="R-ATT-28", holds=
         implies(emits(ReportRecovery, outcome=Outcome.DRAINED), past.owner_settled & (past.run_ended | (now.run == NOBODY))
         & not_(now.forced)),
         harm="a session is called recovered while its owner still works"),
    Step(FORCED, requirements="R-ATT-28", holds=
         implies(on(OwnersChecked) & taken() & now.forced, emits(ReportRecovery, outcome=Outcome.FORCED))
         & implies(emits(ReportRecovery, outcome=Outcome.FORCED), now.forced), harm="a forced clear is shown as a clean abort"),
    Step("the record is set to idle only while it has not moved on and nobody owns the session", requirements="R-ATT-22", holds=
         implies(emits(IdleSession), now.asked == now.generation)
         & implies(on(OwnersChecked) & emits(IdleSession), (owners.run == NOBODY) & (owners.reply == NOBODY))),
    *(Sometimes(f"a recovery ends {o.value}", emits(ReportRecovery, outcome=o), requirements="R-ATT-28") for o in Outcome),
    Sometimes("ownership is read again before anything is reset", emits(CheckOwners), requirements="R-ATT-26"),
    Sometimes("an owner settles while its attempt ends", on(OwnerSettled) & taken() & (then.phase == DRAINING), requirements="R-ATT-28"),
)  # fmt: skip

BY_SESSION = MACHINE.variant(
    "stuck_recovery_by_session",
    first=(R(run_ended, at=DRAINING, to=CHECKING, data=evolve(now, run_over=True), emit=(StopTimer(RecoveryTimer.DRAIN), CheckOwners()),
             name="RunEnded/any"),),
)  # fmt: skip
NO_RECHECK = MACHINE.variant(
    "stuck_recovery_without_recheck",
    first=(R(owners, at=CHECKING, when=owners.queued, data=over, emit=(ResetLane(now.task), ReportRecovery(Outcome.ATTEMPT_ENDED, True)),
             name="OwnersChecked/without recheck"),),
)  # fmt: skip
SAYS_DRAINED = MACHINE.variant(
    "stuck_recovery_says_drained",
    first=(R(owners, at=CHECKING, data=over, emit=(ReportRecovery(Outcome.DRAINED, False),), name="OwnersChecked/says drained"),),
)  # fmt: skip
MARK_STAYS = MACHINE.variant("stuck_recovery_mark_stays", first=(R(RoutineThrew, ignore="logged", name="RoutineThrew/logged"),
    R(DrainExpired, at=DRAINING, when=now.run != NOBODY, stay=True, name="DrainExpired/hangs")))  # fmt: skip
EXPIRES_REPLY = MACHINE.variant(
    "stuck_recovery_e3",
    first=(R(situation, at=ENTERED, when=(situation.reply != NOBODY) & (now.asked == now.generation) & now.may_abort, to=DRAINING,
             data=evolve(now, reply=situation.reply), emit=(ExpireReply(situation.reply),), name="SituationRead/e3"),),
)  # fmt: skip
OLD_REQUEST = MACHINE.variant("stuck_recovery_old_request", drop=("SituationRead/skipped:stale_session_state",))

SPEC = Spec(
    machine=MACHINE,
    requirements=requirements(*(f"R-ATT-{n}" for n in (1, 9, 10, 20, 22, 25, 26, 28))),
    properties=with_harms((*PROPERTIES, *EXACTLY)),
    histories=(PAST,),
    variants=(
        Variant(machine=BY_SESSION, violates={CAPTURED: 3},
                about="E0 and E1: drain and forced clear are bound to the session id, so the end of a replacement passes for the end of "
                      "the "
                      "stuck attempt (B11, openclaw/openclaw#104654, #112669)."),
        Variant(machine=NO_RECHECK, violates={OWNED: 4, SEEN: 4},
                about="Proposals without the recheck: the lane is reset while the fallback runs, and a queued turn starts beside it (B7)."),
        Variant(machine=SAYS_DRAINED, violates={TRUE_DRAIN: 4, FORCED: 4},
                about="openclaw/openclaw#92270, #145152: a recovery that released nothing, or cleared by force, is reported as an abort "
                      "(B12)."),
        Variant(machine=MARK_STAYS, violates={"a routine that throws takes its mark away": 2},
                about="A mark that is removed only on success: one exception forbids every later recovery."),
        Variant(machine=EXPIRES_REPLY, violates={ATTEMPT_ONLY: 2, HEALTHY: 2, REFUSAL: 2},
                about="E3 (main, August to September 2026): a recovery expires the whole reply, also where an attempt could be cancelled "
                      "alone, so no fallback is tried (rest of B1)."),
        Variant(machine=OLD_REQUEST, violates={STALE: 2},
                about="A recovery that does not compare generations kills what has begun since it was asked for."),
    ),
    discipline={RecoveryTimer.DRAIN: ("R-ATT-22",)},
    tokens=2,
    counter=1,
)  # fmt: skip
