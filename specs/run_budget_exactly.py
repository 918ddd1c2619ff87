"""What each event of a run's budget must record and tell, exactly."""

from __future__ import annotations

from turnproof.machines.embedded_attempt_events import CompactionBegan, CompactionEnded
from turnproof.machines.kernel import PauseTimer, ResumeTimer, StartTimer, StopTimer, not_, one_of, only_if
from turnproof.machines.run_budget import (
    COMPACTION_GRACE,
    DRAIN_GRACE,
    LAST_SLICE,
    MACHINE,
    OFF,
    PAUSED,
    RUNNING,
    SPENT,
    STOPPED,
    ApprovalBegan,
    ApprovalEnded,
    BudgetTimer,
    CompactionGraceExpired,
    DeadlineExpired,
    DrainSliceExpired,
    QuietExpired,
    RunEnded,
    RunStarted,
    SpendBudget,
    StreamProduced,
    now,
    started,
)
from turnproof.specs.exactly import Writer
from turnproof.specs.language import Property

write = Writer(MACHINE)
ID = "R-ATT-18"
phase = now.phase
on_time = one_of(phase, RUNNING, PAUSED, COMPACTION_GRACE, DRAIN_GRACE)
compacts = now.compacting & not_(now.compaction_grace_used)
streams = now.lively & not_(now.drain_grace_used)
slices_left = now.lively & (now.slices < LAST_SLICE)
quiet = only_if(now.lively, StopTimer(BudgetTimer.QUIET))

OVER = {"phase": STOPPED, "compacting": False, "lively": False, "slices": 0}
UP = {**OVER, "phase": SPENT}
COMPACTS = ({"phase": COMPACTION_GRACE, "compaction_grace_used": True, "slices": 0}, StartTimer(BudgetTimer.COMPACTION_GRACE))
STREAMS = ({"phase": DRAIN_GRACE, "drain_grace_used": True}, StartTimer(BudgetTimer.DRAIN_SLICE))

ENDED = (
    write.case(RunEnded, phase == OFF, {"phase": STOPPED}),
    write.case(RunEnded, one_of(phase, RUNNING, PAUSED), OVER, StopTimer(BudgetTimer.DEADLINE), quiet),
    write.case(RunEnded, phase == COMPACTION_GRACE, OVER, StopTimer(BudgetTimer.COMPACTION_GRACE), quiet),
    write.case(RunEnded, phase == DRAIN_GRACE, OVER, StopTimer(BudgetTimer.DRAIN_SLICE), quiet),
)
PRODUCED = (write.case(StreamProduced, on_time, {"lively": True}, quiet, StartTimer(BudgetTimer.QUIET)),)
DEADLINE = (
    write.case(DeadlineExpired, (phase == RUNNING) & compacts, *COMPACTS),
    write.case(DeadlineExpired, (phase == RUNNING) & not_(compacts) & streams, *STREAMS),
    write.case(DeadlineExpired, (phase == RUNNING) & not_(compacts) & not_(streams), UP, quiet, SpendBudget()),
)
COMPACTED = (
    write.case(CompactionGraceExpired, (phase == COMPACTION_GRACE) & streams, *STREAMS),
    write.case(CompactionGraceExpired, (phase == COMPACTION_GRACE) & not_(streams), UP, quiet, SpendBudget()),
)
DRAINED = (
    write.case(DrainSliceExpired, (phase == DRAIN_GRACE) & compacts, *COMPACTS),
    write.case(DrainSliceExpired, (phase == DRAIN_GRACE) & not_(compacts) & slices_left, {"slices": now.slices + 1},
               StartTimer(BudgetTimer.DRAIN_SLICE)),
    write.case(DrainSliceExpired, (phase == DRAIN_GRACE) & not_(compacts) & not_(slices_left), UP, quiet, SpendBudget()),
)  # fmt: skip

EXACTLY: tuple[Property, ...] = (
    write.answers(RunStarted, write.case(RunStarted, (phase == OFF) & started.limited, {"phase": RUNNING},
                                         StartTimer(BudgetTimer.DEADLINE)), requirements=ID),
    write.answers(RunEnded, *ENDED, requirements=ID, harm="a run that is over is timed out"),
    write.answers(CompactionBegan, write.case(CompactionBegan, on_time & not_(now.compacting), {"compacting": True}), requirements=ID),
    write.answers(CompactionEnded, write.case(CompactionEnded, on_time & now.compacting, {"compacting": False}), requirements=ID),
    write.answers(StreamProduced, *PRODUCED, requirements=ID),
    write.answers(QuietExpired, write.case(QuietExpired, now.lively, {"lively": False}), requirements=ID),
    write.answers(ApprovalBegan, write.case(ApprovalBegan, phase == RUNNING, {"phase": PAUSED}, PauseTimer(BudgetTimer.DEADLINE)),
                  requirements=ID, harm="a run is timed out while a person thinks"),
    write.answers(ApprovalEnded, write.case(ApprovalEnded, phase == PAUSED, {"phase": RUNNING}, ResumeTimer(BudgetTimer.DEADLINE)),
                  requirements=ID),
    write.answers(DeadlineExpired, *DEADLINE, requirements=ID),
    write.answers(CompactionGraceExpired, *COMPACTED, requirements=ID),
    write.answers(DrainSliceExpired, *DRAINED, requirements=ID),
    write.ordered("timers stop before another starts, and before anybody is told", (*ENDED, *PRODUCED, *DEADLINE, *COMPACTED, *DRAINED),
                  ID),
)  # fmt: skip
