"""What must hold of the watchdog of one session, for every combination of facts."""

from __future__ import annotations

from attrs import evolve

from turnproof.machines.kernel import StartTimer, implies, named, not_, one_of
from turnproof.machines.stuck_recovery_watchdog import EXAMINING, MACHINE, OFF, WATCHING, R, facts, ill, next_tick, now, stop_age
from turnproof.machines.stuck_recovery_watchdog_words import (
    Age,
    Diagnosed,
    Diagnosis,
    Examine,
    MessageArrived,
    ProgressMade,
    RequestRecovery,
    RequestRepeated,
    Session,
    SessionExamined,
    StuckWatchdog,
    TickExpired,
    ToolAge,
    Warn,
    WatchTimer,
    Work,
)
from turnproof.specs.embedded_attempt_requirements import requirements
from turnproof.specs.harms import with_harms
from turnproof.specs.language import Fair, LeadsTo, Property, Sometimes, Spec, Step, Variant, after, count, emits, on, taken
from turnproof.specs.stuck_recovery_watchdog_exactly import EXACTLY

then = after(StuckWatchdog)

# Written here again on purpose: a slip in the machine's own definitions must not move the properties with it.
examined = named("a tick is decided", on(SessionExamined) & (now.phase == EXAMINING))
dead = named("nothing is active, and the progress is stale", (facts.work == Work.NONE) & (now.age != Age.FRESH)
    & not_((facts.session == Session.IDLE) & not_(facts.queued)) & not_(facts.waits))  # fmt: skip
hangs = named("a run is active, and made no progress for 360 s",
    one_of(facts.work, Work.MODEL_OVERDUE, Work.EMBEDDED_RUN) & one_of(now.age, Age.DUE, Age.QUIET)
    & not_(facts.waits) & (facts.owned | not_(facts.queued) | (facts.session != Session.IDLE)))  # fmt: skip
tool_time = named("a tool within its 900 s and its own deadline",
    (facts.work == Work.TOOL_CALL) & ((now.age != Age.QUIET) | (now.tool_age != ToolAge.QUIET)))  # fmt: skip
aborts = emits(RequestRecovery, may_abort=True)

WAITS = "a declared healthy wait is only observed"
PROGRESS_ONLY = "only progress sets the age back"
MUTED = "a muted warning delays no recovery"
LATE = "a late tick decides no recovery"
LONG_TOOL = "a tool that runs within its time is never aborted"
STALLED = "a run without progress for 360 s is recovered at the next tick"
TOTAL = "a tick has one diagnosis, and the next one is armed"
TICKS = Fair("an armed tick fires", now.phase == WATCHING, on(TickExpired) & taken())
READS = Fair("the facts are read", now.phase == EXAMINING, on(SessionExamined) & taken())

PROPERTIES: tuple[Property, ...] = (
    Step(TOTAL, requirements="R-ATT-20", holds=
         implies(examined, (count(Diagnosed) == 1) & (then.phase == WATCHING) & emits(StartTimer, timer=WatchTimer.TICK)),
         harm="a session that no row describes is never looked at again"),
    Step("a diagnosis that asks for nothing asks for nothing", requirements="R-ATT-20", holds=
         implies(emits(RequestRecovery), not_(emits(Diagnosed, diagnosis=Diagnosis.LONG_RUNNING))
                 & not_(emits(Diagnosed, diagnosis=Diagnosis.UNTRACKED)) & not_(emits(Diagnosed, diagnosis=Diagnosis.AT_REST)))),
    Step("only a stalled run may be aborted alive", requirements="R-ATT-20", holds=
         implies(aborts, emits(Diagnosed, diagnosis=Diagnosis.BLOCKED_TOOL_CALL) | emits(Diagnosed, diagnosis=Diagnosis.NO_PROGRESS)
                 | emits(Diagnosed, diagnosis=Diagnosis.QUEUED_BEHIND_TERMINAL)), harm="a healthy run is killed"),
    Step(LONG_TOOL, implies(examined & tool_time, not_(aborts)), requirements="R-ATT-20",
         harm="a long command is killed at three times the warning age, and shown as the user's own abort"),
    Step("a session whose run vanished is recovered", requirements="R-ATT-20", holds=
         implies(examined & dead & not_(facts.late), emits(RequestRecovery, may_abort=False)), harm="a session stays wedged for hours"),
    Step(STALLED, implies(examined & hangs & not_(facts.late), aborts), requirements=("R-ATT-20", "R-ATT-23"),
         harm="a run that hangs after its model call is never stopped (openclaw/openclaw#100213)"),
    Step("progress that nobody owns is not recovered while it is fresh", requirements="R-ATT-20", holds=
         implies(examined & (facts.work == Work.NONE) & (now.age == Age.FRESH), not_(emits(RequestRecovery))),
         harm="a run that streams from outside the registry is taken for dead"),
    Step(WAITS, implies(examined & facts.waits & ((facts.session != Session.IDLE) | facts.queued | (facts.work != Work.NONE)),
         emits(Diagnosed, diagnosis=Diagnosis.HEALTHY_WAIT) & not_(emits(RequestRecovery)) & not_(emits(Warn))),
         requirements="R-ATT-10", harm="a person who takes their time loses the run that asked them"),
    Step(PROGRESS_ONLY, requirements="R-ATT-21", holds=
         implies((now.age != Age.FRESH) & (then.age == Age.FRESH), on(ProgressMade) | (then.phase == OFF))
         & implies(emits(StartTimer, timer=WatchTimer.STALE), on(ProgressMade) | (now.phase == OFF)),
         harm="messages to a dead run, or a provider that fails again and again, keep it looking alive"),
    Step(LATE, implies(on(SessionExamined) & facts.late, not_(emits(RequestRecovery))), requirements="R-ATT-23",
         harm="a process that was suspended kills every run when it wakes"),
    Step("a warning is muted, a diagnosis is not", requirements="R-ATT-23", holds=
         implies(emits(Warn), not_(now.muted)) & implies(examined & now.muted, emits(Diagnosed))),
    Sometimes("a muted session is recovered", on(SessionExamined) & now.muted & emits(RequestRecovery), requirements="R-ATT-23"),
    Step(MUTED, requirements="R-ATT-23", holds=
         implies(examined & now.muted & not_(facts.late) & dead, emits(RequestRecovery))
         & implies(examined & now.muted & not_(facts.late) & hangs, emits(RequestRecovery)),
         harm="a back-off that doubles delays a recovery for hours (openclaw/openclaw#92752)"),
    LeadsTo("a watched session is looked at again", now.phase == WATCHING, (now.phase == EXAMINING) | (now.phase == OFF),
        requirements="R-ATT-23", fairness=(TICKS,)),
    LeadsTo("what is looked at is decided", now.phase == EXAMINING, now.phase != EXAMINING, requirements="R-ATT-23", fairness=(READS,)),
    *(Sometimes(f"a tick says {d.value}", on(SessionExamined) & emits(Diagnosed, diagnosis=d), requirements="R-ATT-20") for d in Diagnosis),
    Sometimes("a blocked tool is aborted", on(SessionExamined) & aborts & (facts.work == Work.TOOL_CALL), requirements="R-ATT-20"),
    Sometimes("a tick reads the facts", emits(Examine), requirements="R-ATT-20"),
)  # fmt: skip

FRESH_AGAIN = evolve(now, age=Age.FRESH)
MESSAGES_COUNT = MACHINE.variant(
    "stuck_watchdog_messages_count",
    first=(R(MessageArrived, at=(WATCHING, EXAMINING), data=FRESH_AGAIN, emit=(*stop_age, StartTimer(WatchTimer.STALE)),
             name="MessageArrived/counts"),),
)  # fmt: skip
RETRIES_COUNT = MACHINE.variant(
    "stuck_watchdog_retries_count",
    first=(R(RequestRepeated, at=(WATCHING, EXAMINING), data=FRESH_AGAIN, emit=(*stop_age, StartTimer(WatchTimer.STALE)),
             name="RequestRepeated/counts"),),
)  # fmt: skip
NO_TOOL_FLOOR = MACHINE.variant(
    "stuck_watchdog_no_tool_floor",
    replace={f"SessionExamined/{Diagnosis.BLOCKED_TOOL_CALL.value}":
             ill(Diagnosis.BLOCKED_TOOL_CALL, (facts.work == Work.TOOL_CALL) & (now.age != Age.FRESH), one_of(now.age, Age.DUE,
             Age.QUIET), True)},
)  # fmt: skip
MUTED_TOO = MACHINE.variant(
    "stuck_watchdog_muted_recovery",
    first=(R(facts, at=EXAMINING, when=now.muted & (now.age != Age.FRESH), to=WATCHING, emit=(Diagnosed(Diagnosis.NO_PROGRESS), next_tick),
             name="SessionExamined/muted"),),
)  # fmt: skip
NEVER_RECOVERS = MACHINE.variant(
    "stuck_watchdog_model_ended",
    replace={f"SessionExamined/{Diagnosis.NO_PROGRESS.value}":
             ill(Diagnosis.NO_PROGRESS, (facts.work != Work.NONE) & (now.age != Age.FRESH),
                 (facts.work == Work.MODEL_OVERDUE) & one_of(now.age, Age.DUE, Age.QUIET), True)},
)  # fmt: skip

SPEC = Spec(
    machine=MACHINE,
    requirements=requirements("R-ATT-10", "R-ATT-20", "R-ATT-21", "R-ATT-23"),
    properties=with_harms((*PROPERTIES, *EXACTLY)),
    variants=(
        Variant(machine=MESSAGES_COUNT, violates={PROGRESS_ONLY: 2},
                about="openclaw/openclaw#94701: inbound messages refreshed the age of the session and hid a dead run."),
        Variant(machine=RETRIES_COUNT, violates={PROGRESS_ONLY: 2},
                about="openclaw/openclaw#119009, #119851: endless failing retries kept refreshing the liveness of a run."),
        Variant(machine=NO_TOOL_FLOOR, violates={LONG_TOOL: 5, LATE: 5},
                about="openclaw/openclaw#88870: a long but active run was killed at three times the warning age, on a late tick as well."),
        Variant(machine=MUTED_TOO, violates={MUTED: 6},
                about="openclaw/openclaw#92752: the back-off of the warning delayed the recovery itself."),
        Variant(machine=NEVER_RECOVERS, violates={STALLED: 5},
                about="openclaw/openclaw#100213: the model call had ended, the run never went on, and recovery chose to do nothing."),
    ),
)  # fmt: skip
