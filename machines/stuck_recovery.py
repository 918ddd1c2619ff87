"""The recovery of a stuck session: cancel the attempt or expire the reply, wait for it, and free the lane if nobody owns it any more.

What it is. The watchdog asks (``stuck_recovery_watchdog``). The routine reads the situation once, decides by the first row that
matches, and from then on means exactly the attempt and the operation it saw. If there is a live attempt, the attempt is cancelled with
its typed reason and the reply lives on; only a reply without an attempt is expired. Whoever does not end in time is taken out by force.
Before the lane is touched, ownership is read again.

Which runtime. OpenClaw's recovery routine and its abort-and-drain (``logging/diagnostic.ts``, ``runs.ts`` @00286b0b) of its newest
known era, with the cancellation of the attempt alone that openclaw/openclaw#103697 asks for, and the recheck of ownership before a
reset that was stated there.

The data, flowing through. Asked (mark set, generation kept), situation read (run and reply captured), draining (15 s), owners checked,
reported. Every path ends in a report, and the report takes the mark away.

What it promises.
  1. One recovery at a time; an outdated request is skipped; the mark goes on every exit, exceptions included.
  2. Only what was captured is cancelled, expired, cleared or waited for; a replacement is never hit.
  3. The lane is reset only while nobody owns the session, and only the task that was seen.
  4. The report says what happened: drained only if attempt and owner both ended.

Decisions of its own. A reply is never expired after a refusal (committed, not to be cut, recovered before): it is left to its own
timers and to the quiet-run takeover. A captured attempt that is forced out leaves its reply to the recovery window.

Not modelled: follow-up barriers of a drain (``reply_slot``), persistence of "killed".

Rule 1: every transition of a recovery is a row of ``ROWS``.
Rule 2: this file knows nothing of clocks, tasks or transports.
"""

from __future__ import annotations

from typing import get_args

from attrs import evolve

from turnproof.machines.kernel import NOBODY, Duration, Machine, Row, StartTimer, StopTimer, TimerRule, choose, named, not_, only_if, symbol
from turnproof.machines.stuck_recovery_words import (
    CancelRefused,
    CancelStuckRun,
    CheckOwners,
    DrainExpired,
    Effect,
    Event,
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
    RecoveryPhase,
    RecoveryTimer,
    ReportRecovery,
    ResetLane,
    RoutineThrew,
    RunEnded,
    SessionMoved,
    SituationRead,
    Stance,
    StuckRecovery,
)

IDLE, ENTERED, DRAINING, CHECKING = RecoveryPhase
R = Row[StuckRecovery, Effect]

DRAIN_MS = Duration(15_000, "runs.ts @00286b0b: abortAndDrain waits 15 s")


# ── symbols ──

now = symbol(StuckRecovery)
moved, asked, situation, owners = symbol(SessionMoved), symbol(RecoveryAsked), symbol(SituationRead), symbol(OwnersChecked)
run_ended, settled, refused = symbol(RunEnded), symbol(OwnerSettled), symbol(CancelRefused)

outdated = named("outdated", now.asked != now.generation)
run_active, reply_active = named("a run is registered", situation.run != NOBODY), named("a reply holds the slot", situation.reply != NOBODY)
allowed = named("may abort", now.may_abort | situation.overdue)
its_run = named("the captured run", (run_ended.run == now.run) & (now.run != NOBODY))
its_owner = named("the captured owner", (settled.reply == now.reply) & (now.reply != NOBODY))
no_run = named("no run was captured", now.run == NOBODY)
ownerless = named("nobody owns the session", (owners.run == NOBODY) & (owners.reply == NOBODY))
drained = named("drained", now.owner_over & (now.run_over | (now.run == NOBODY)))
same_task = named("the task that was seen", (owners.lane != Lane.FREE) & (owners.task == now.task))
resets = named("the lane is to be reset", ownerless & same_task & (owners.queued | not_(drained)))
unmoved = named("the record has not moved on", ownerless & not_(outdated))

over = evolve(
    now, phase=IDLE, asked=NOBODY, may_abort=False, run=NOBODY, reply=NOBODY, task=0, run_over=False, owner_over=False, forced=False
)
captured = evolve(now, phase=DRAINING, run=situation.run, reply=situation.reply, task=situation.task)
outcome = choose(now.forced, Outcome.FORCED, choose(drained, Outcome.DRAINED, Outcome.ATTEMPT_ENDED))
drain = StartTimer(RecoveryTimer.DRAIN)


def skips(why: Outcome, when: bool | None, because: str = "") -> R:
    """The situation asks for nothing that may be done."""
    return R(situation, at=ENTERED, when=when, data=over, emit=(ReportRecovery(why, False),), name=f"SituationRead/{why.value}",
             because=because)  # fmt: skip


def stops(name: str, when: bool, effect: Effect, because: str = "") -> R:
    """Somebody is told to stop, and waited for."""
    return R(situation, at=ENTERED, when=when, data=captured, emit=(effect, drain), name=f"SituationRead/{name}", because=because)


# ── rows: the first that matches wins ──

ROWS: tuple[R, ...] = (
    R(moved, data=evolve(now, generation=moved.generation)),
    R(asked, at=IDLE, when=not_(asked.keyed), emit=(ReportRecovery(Outcome.SKIPPED_NO_KEY, False),), name="RecoveryAsked/no key"),
    R(asked, at=IDLE, to=ENTERED, data=evolve(now, asked=asked.generation, may_abort=asked.may_abort), emit=(ReadSituation(),),
      name="RecoveryAsked/entered"),
    R(RecoveryAsked, emit=(ReportRecovery(Outcome.SKIPPED_IN_FLIGHT, False),), name="RecoveryAsked/in flight"),

    # ── the situation, read once ──
    skips(Outcome.SKIPPED_STALE, outdated),
    skips(Outcome.KEPT_WAITING, (run_active | reply_active) & (situation.stance == Stance.WAITS)),
    skips(Outcome.OBSERVED, run_active & not_(allowed)),
    skips(Outcome.REFUSED, (run_active & reply_active | reply_active & allowed) & (situation.stance == Stance.REFUSES),
      "Never followed by an expiry or a forced clear: the reply has timers of its own (its lease, its settle timer)."),
    stops("attempt of a reply", run_active & reply_active, RecoverAttempt(situation.reply, situation.run),
      "The attempt alone, with its typed reason: the reply may still be answered by a fallback (openclaw/openclaw#103697)."),
    stops("attempt of nobody", run_active, CancelStuckRun(situation.run)),
    skips(Outcome.KEPT_REPLY, reply_active & not_(allowed)),
    stops("reply without an attempt", reply_active, ExpireReply(situation.reply)),
    R(situation, at=ENTERED, when=situation.lane == Lane.STALE, data=over, name="SituationRead/ownerless lane",
      emit=(ResetLane(situation.task), IdleSession(), ReportRecovery(Outcome.RELEASED, True))),
    skips(Outcome.KEPT_LANE, situation.lane == Lane.BUSY),
    R(situation, at=ENTERED, when=situation.queued, data=over, emit=(IdleSession(), ReportRecovery(Outcome.RELEASED, False)),
      name="SituationRead/stale record"),
    skips(Outcome.NOTHING, None),
    R(SituationRead, ignore="no recovery asked for it"),

    # ── draining: of what was captured, nothing else ──
    R(run_ended, at=DRAINING, when=its_run, to=CHECKING, data=evolve(now, run_over=True), emit=(StopTimer(RecoveryTimer.DRAIN),
      CheckOwners())),
    R(RunEnded, ignore="another run, or nobody waits for it"),
    R(settled, at=DRAINING, when=its_owner & no_run, to=CHECKING, data=evolve(now, owner_over=True),
      emit=(StopTimer(RecoveryTimer.DRAIN), CheckOwners()), name="OwnerSettled/of the expired reply"),
    R(settled, at=(DRAINING, CHECKING), when=its_owner, data=evolve(now, owner_over=True), name="OwnerSettled/while the run ends"),
    R(OwnerSettled, ignore="another owner, or nobody waits for it"),
    R(refused, at=DRAINING, when=(refused.run == now.run) & (now.run != NOBODY), data=over,
      emit=(StopTimer(RecoveryTimer.DRAIN), ReportRecovery(Outcome.REFUSED, False))),
    R(CancelRefused, ignore="another run, or nobody waits for it"),
    R(DrainExpired, at=DRAINING, when=no_run, to=CHECKING, data=evolve(now, forced=True), emit=(ForceClearReply(now.reply), CheckOwners()),
      name="DrainExpired/reply"),
    R(DrainExpired, at=DRAINING, to=CHECKING, data=evolve(now, forced=True), emit=(ForceClearRun(now.run), CheckOwners()),
      name="DrainExpired/run"),
    R(DrainExpired, ignore="it ended in time"),

    # ── ownership is read again, at the moment of the reset ──
    R(owners, at=CHECKING, when=resets, data=over, name="OwnersChecked/reset",
      emit=(ResetLane(now.task), only_if(not_(outdated), IdleSession()), ReportRecovery(outcome, True))),
    R(owners, at=CHECKING, data=over, emit=(only_if(unmoved, IdleSession()), ReportRecovery(outcome, False)), name="OwnersChecked/kept"),
    R(OwnersChecked, ignore="no recovery asked for it"),

    R(RoutineThrew, at=(ENTERED, DRAINING, CHECKING), data=over,
      emit=(only_if(now.phase == DRAINING, StopTimer(RecoveryTimer.DRAIN)), ReportRecovery(Outcome.FAILED, False))),
    R(RoutineThrew, ignore="no recovery is on"),
)  # fmt: skip


# ── the machine ──

MACHINE: Machine[StuckRecovery, Event, Effect] = Machine(
    name="stuck_recovery",
    initial=StuckRecovery(),
    now=now,
    events=get_args(Event),
    effects=get_args(Effect),
    rows=ROWS,
    timers=(TimerRule(RecoveryTimer.DRAIN, now.phase == DRAINING, DrainExpired, DRAIN_MS),),
    released=now.phase == IDLE,
)
step = MACHINE.step
