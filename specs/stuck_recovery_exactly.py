"""What each event of a recovery must record and tell, exactly; the situation it reads by the reference's table, row by row."""

from __future__ import annotations

from collections.abc import Mapping

from turnproof.machines.kernel import NOBODY, StartTimer, StopTimer, any_of, choose, not_, one_of, only_if
from turnproof.machines.stuck_recovery import (
    CHECKING,
    DRAINING,
    ENTERED,
    IDLE,
    MACHINE,
    asked,
    moved,
    now,
    owners,
    refused,
    run_ended,
    settled,
    situation,
)
from turnproof.machines.stuck_recovery_words import (
    CancelRefused,
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
    ReadSituation,
    RecoverAttempt,
    RecoveryAsked,
    RecoveryTimer,
    ReportRecovery,
    ResetLane,
    RoutineThrew,
    RunEnded,
    SessionMoved,
    SituationRead,
    Stance,
)
from turnproof.specs.exactly import NOTHING, Case, Writer
from turnproof.specs.language import Property

write = Writer(MACHINE)
OVER: Mapping[str, object] = {
    "phase": IDLE, "asked": NOBODY, "may_abort": False, "run": NOBODY, "reply": NOBODY, "task": 0, "run_over": False, "owner_over": False,
    "forced": False,
}  # fmt: skip
CAPTURED: Mapping[str, object] = {"phase": DRAINING, "run": situation.run, "reply": situation.reply, "task": situation.task}
stop, drain = StopTimer(RecoveryTimer.DRAIN), StartTimer(RecoveryTimer.DRAIN)
Rung = tuple[bool, Mapping[str, object], tuple[object, ...]]


def ends(when: bool, outcome: Outcome, *before: object, released: bool = False) -> Rung:
    """The situation asks for no drain."""
    return (now.phase == ENTERED) & when, OVER, (*before, ReportRecovery(outcome, released))


def drains(when: bool, effect: object) -> Rung:
    """Somebody is told to stop."""
    return (now.phase == ENTERED) & when, CAPTURED, (effect, drain)


# ── the situation ──

run, reply = situation.run != NOBODY, situation.reply != NOBODY
may = now.may_abort | situation.overdue
no, waits = situation.stance == Stance.REFUSES, situation.stance == Stance.WAITS
SITUATION: tuple[Case, ...] = write.ladder(
    SituationRead,
    ends(now.generation != now.asked, Outcome.SKIPPED_STALE),
    ends(run & waits, Outcome.KEPT_WAITING),
    ends(reply & waits, Outcome.KEPT_WAITING),
    ends(run & not_(now.may_abort) & not_(situation.overdue), Outcome.OBSERVED),
    ends(run & reply & no, Outcome.REFUSED),
    drains(run & reply, RecoverAttempt(situation.reply, situation.run)),
    drains(run, CancelStuckRun(situation.run)),
    ends(reply & not_(may), Outcome.KEPT_REPLY),
    ends(reply & no, Outcome.REFUSED),
    drains(reply, ExpireReply(situation.reply)),
    ends(situation.lane == Lane.STALE, Outcome.RELEASED, ResetLane(situation.task), IdleSession(), released=True),
    ends(situation.lane == Lane.BUSY, Outcome.KEPT_LANE),
    ends(situation.queued & (situation.lane == Lane.FREE), Outcome.RELEASED, IdleSession()),
    ends(situation.lane == Lane.FREE, Outcome.NOTHING),
)

# ── the drain, and the lane after it ──

draining = now.phase == DRAINING
captured_run, captured_reply = now.run != NOBODY, now.reply != NOBODY
ended = draining & captured_run & (run_ended.run == now.run)
its_owner = captured_reply & (settled.reply == now.reply)
owned = (owners.run != NOBODY) | (owners.reply != NOBODY)
all_over = now.owner_over & any_of(now.run_over, not_(captured_run))
clears = not_(owned) & one_of(owners.lane, Lane.BUSY, Lane.STALE) & (owners.task == now.task) & (owners.queued | not_(all_over))
outcome = choose(now.forced, Outcome.FORCED, choose(all_over, Outcome.DRAINED, Outcome.ATTEMPT_ENDED))
checking, fresh = now.phase == CHECKING, now.asked == now.generation
ASKED = (
    write.case(RecoveryAsked, (now.phase == IDLE) & not_(asked.keyed), NOTHING, ReportRecovery(Outcome.SKIPPED_NO_KEY, False)),
    write.case(RecoveryAsked, (now.phase == IDLE) & asked.keyed,
               {"phase": ENTERED, "asked": asked.generation, "may_abort": asked.may_abort}, ReadSituation()),
    write.case(RecoveryAsked, now.phase != IDLE, NOTHING, ReportRecovery(Outcome.SKIPPED_IN_FLIGHT, False)),
)  # fmt: skip
ENDED = (write.case(RunEnded, ended, {"phase": CHECKING, "run_over": True}, stop, CheckOwners()),)
SETTLED = (
    write.case(OwnerSettled, draining & its_owner & not_(captured_run), {"phase": CHECKING, "owner_over": True}, stop, CheckOwners()),
    write.case(OwnerSettled, its_owner & (checking | (draining & captured_run)), {"owner_over": True}),
)
REFUSED = (
    write.case(CancelRefused, draining & captured_run & (refused.run == now.run), OVER, stop, ReportRecovery(Outcome.REFUSED, False)),
)
EXPIRED = (
    write.case(DrainExpired, draining & captured_run, {"phase": CHECKING, "forced": True}, ForceClearRun(now.run), CheckOwners()),
    write.case(DrainExpired, draining & not_(captured_run), {"phase": CHECKING, "forced": True}, ForceClearReply(now.reply),
               CheckOwners()),
)  # fmt: skip
CHECKED = (
    write.case(OwnersChecked, checking & clears, OVER, ResetLane(now.task), only_if(fresh, IdleSession()), ReportRecovery(outcome, True)),
    write.case(OwnersChecked, checking & not_(clears), OVER, only_if(fresh & not_(owned), IdleSession()), ReportRecovery(outcome, False)),
)
THREW = (write.case(RoutineThrew, now.phase != IDLE, OVER, only_if(draining, stop), ReportRecovery(Outcome.FAILED, False)),)

EXACTLY: tuple[Property, ...] = (
    write.answers(SessionMoved, write.case(SessionMoved, None, {"generation": moved.generation}), requirements="R-ATT-22"),
    write.answers(RecoveryAsked, *ASKED, requirements="R-ATT-22"),
    write.answers(SituationRead, *SITUATION, requirements=("R-ATT-1", "R-ATT-9", "R-ATT-10", "R-ATT-20")),
    write.answers(RunEnded, *ENDED, requirements="R-ATT-25"),
    write.answers(OwnerSettled, *SETTLED, requirements="R-ATT-25"),
    write.answers(CancelRefused, *REFUSED, requirements=("R-ATT-9", "R-ATT-28")),
    write.answers(DrainExpired, *EXPIRED, requirements="R-ATT-25"),
    write.answers(OwnersChecked, *CHECKED, requirements=("R-ATT-26", "R-ATT-28")),
    write.answers(RoutineThrew, *THREW, requirements=("R-ATT-22", "R-ATT-28")),
    write.ordered("the drain's time runs once the stop is told, ends before anything else, and the report comes last",
                  (*SITUATION, *ENDED, *SETTLED, *REFUSED, *EXPIRED, *CHECKED, *THREW), "R-ATT-28"),
)  # fmt: skip
