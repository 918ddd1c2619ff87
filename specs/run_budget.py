"""What must hold of the time of a run."""

from __future__ import annotations

from attrs import evolve

from turnproof.machines.kernel import StartTimer, implies, named, not_, one_of
from turnproof.machines.run_budget import (
    COMPACTION_GRACE,
    DRAIN_GRACE,
    LAST_SLICE,
    MACHINE,
    PAUSED,
    RUNNING,
    SPENT,
    STOPPED,
    ApprovalBegan,
    BudgetTimer,
    CompactionGraceExpired,
    DeadlineExpired,
    DrainSliceExpired,
    R,
    RunBudget,
    SpendBudget,
    now,
)
from turnproof.specs.embedded_attempt_requirements import requirements
from turnproof.specs.harms import with_harms
from turnproof.specs.language import Fair, LeadsTo, Property, Sometimes, Spec, Step, Variant, after, at_most, count, emits, on, taken
from turnproof.specs.run_budget_exactly import EXACTLY

then = after(RunBudget)
ID = "R-ATT-18"

SPENT_ONCE, SPENDINGS = at_most(1, count(SpendBudget), "the timeout comes once", variable="timeouts", requirements=ID,
    harm="the attempt is aborted twice")  # fmt: skip
EXTENDED_ONCE, EXTENSIONS = at_most(1, count(StartTimer, timer=BudgetTimer.COMPACTION_GRACE), "the compaction grace is given once",
    variable="extensions", requirements=ID, harm="a run that compacts again and again never ends")  # fmt: skip
DRAINED_FOUR, SLICES = at_most(4, count(StartTimer, timer=BudgetTimer.DRAIN_SLICE), "the drain grace is given once, in four slices",
    variable="drain_slices", requirements=ID, harm="a stream that never ends is never cut")  # fmt: skip

FIRES = (
    Fair("the deadline fires when it is not paused for ever", now.phase == RUNNING, on(DeadlineExpired) & taken(), strong=True),
    Fair("an approval ends", now.phase == PAUSED, now.phase != then.phase),
    Fair("the compaction grace runs out", now.phase == COMPACTION_GRACE, on(CompactionGraceExpired) & taken()),
    Fair("a slice runs out", now.phase == DRAIN_GRACE, on(DrainSliceExpired) & taken()),
)
ENDS = "a limited run ends or is stopped, whatever it does"

PROPERTIES: tuple[Property, ...] = (
    SPENT_ONCE,
    EXTENDED_ONCE,
    DRAINED_FOUR,
    Step("the budget is spent exactly where the timeout comes", requirements=ID, holds=
         emits(SpendBudget) == ((then.phase == SPENT) & (now.phase != SPENT))),
    Step("the timeout comes only when a time is over", requirements=ID, holds=
         implies(emits(SpendBudget), on(DeadlineExpired, CompactionGraceExpired, DrainSliceExpired) & (now.phase != PAUSED)),
         harm="a run is cut before its time"),
    Step("a compaction in flight is given its grace before the timeout", requirements=ID, holds=
         implies(emits(SpendBudget) & now.compacting, now.compaction_grace_used), harm="a compaction is cut at the deadline"),
    Step("a stream that produces is drained before the timeout", requirements=ID, holds=
         implies(emits(SpendBudget) & now.lively, now.drain_grace_used), harm="an answer is cut in the middle of a sentence"),
    Step("a drain goes on only while the stream produces", requirements=ID, holds=
         implies(on(DrainSliceExpired) & (now.phase == DRAIN_GRACE) & not_(now.lively), one_of(then.phase, SPENT, COMPACTION_GRACE))),
    Step("an approval stops the clock", requirements=ID, holds=
         implies(on(ApprovalBegan) & (now.phase == RUNNING), then.phase == PAUSED), harm="a person who takes their time kills the run"),
    LeadsTo(ENDS, one_of(now.phase, RUNNING, COMPACTION_GRACE, DRAIN_GRACE), one_of(now.phase, SPENT, STOPPED), requirements=ID,
        fairness=FIRES, harm="a run without an end holds its session for ever"),
    Sometimes("both graces are used", now.compaction_grace_used & now.drain_grace_used & (now.phase == SPENT), requirements=ID),
    Sometimes("all four slices are used", now.slices == LAST_SLICE, requirements=ID),
)  # fmt: skip

AGAIN = named("compacts", now.compacting)
GRACE_AGAIN = MACHINE.variant(
    "run_budget_grace_again",
    first=(
        R(CompactionGraceExpired, at=COMPACTION_GRACE, when=AGAIN, emit=(StartTimer(BudgetTimer.COMPACTION_GRACE),), name="grace again"),
    ),
)
ENDLESS_DRAIN = MACHINE.variant(
    "run_budget_endless_drain",
    first=(R(DrainSliceExpired, at=DRAIN_GRACE, when=now.lively, emit=(StartTimer(BudgetTimer.DRAIN_SLICE),), name="drain again"),),
)
NO_GRACE = MACHINE.variant(
    "run_budget_no_grace",
    first=(R(DeadlineExpired, at=RUNNING, to=SPENT, data=evolve(now, lively=False), emit=(SpendBudget(),), name="no grace"),),
)

SPEC = Spec(
    machine=MACHINE,
    requirements=requirements(ID),
    properties=with_harms((*PROPERTIES, *EXACTLY)),
    histories=(SPENDINGS, EXTENSIONS, SLICES),
    variants=(
        Variant(machine=GRACE_AGAIN, violates={EXTENDED_ONCE.name: 4, ENDS: 5},
                about="An extension for as long as a compaction is on: a compaction that hangs keeps the run for ever."),
        Variant(machine=ENDLESS_DRAIN, violates={DRAINED_FOUR.name: 7, ENDS: 8},
                about="A drain that goes on while the stream produces: a provider that never stops is never cut."),
        Variant(machine=NO_GRACE, violates={"a compaction in flight is given its grace before the timeout": 3,
                                            "a stream that produces is drained before the timeout": 3},
                about="The oldest deadline: whatever the run is doing, it is cut."),
    ),
    discipline=dict.fromkeys(BudgetTimer, (ID,)),
)  # fmt: skip
