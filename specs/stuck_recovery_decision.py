"""What must hold of the pure decision of one watchdog tick."""

from __future__ import annotations

from turnproof.machines.kernel import implies, named, not_, one_of
from turnproof.machines.stuck_recovery_decision import (
    MACHINE,
    Decide,
    Decision,
    OperationPhase,
    Record,
    Silence,
    Standing,
    StuckDecision,
    Ticked,
    Why,
    decides,
    tick,
)
from turnproof.specs.embedded_attempt_requirements import TESTS, requirements
from turnproof.specs.harms import with_harms
from turnproof.specs.language import Property, Sometimes, Spec, Step, Variant, after, count, emits, on
from turnproof.specs.stuck_recovery_decision_exactly import EXACTLY

then = after(StuckDecision)
ID = "R-ATT-31"

retired = named("another operation is current, or it is settled", tick.standing != Standing.CURRENT)
works = named("it works and no recovery is on record", (tick.standing == Standing.CURRENT) & (tick.record == Record.NONE)
    & (tick.phase == OperationPhase.WORKING))  # fmt: skip
stops = emits(Decide, decision=Decision.STOP)

ONE = "a tick gives one decision"
WAITS = "a declared wait within its deadline is never stopped for silence"
RETIRED = "an operation that is over is only observed"
STALL = "a silent run past its deadlines is stopped"

PROPERTIES: tuple[Property, ...] = (
    Step(ONE, implies(on(Ticked), count(Decide) == 1), requirements=ID),
    Step(RETIRED, implies(on(Ticked) & retired, emits(Decide, decision=Decision.OBSERVE, why=Why.RETIRED)), requirements=ID,
         harm="the watchdog of an old operation stops its successor"),
    Step("a recovery on record is not begun again", implies(on(Ticked) & (tick.record != Record.NONE), not_(stops)), requirements=ID),
    Step("a recovery that takes a minute is reported as blocked", requirements=ID, holds=
         implies(on(Ticked) & not_(retired) & one_of(tick.record, Record.BLOCKED, Record.OVERDUE), emits(Decide,
         decision=Decision.BLOCKED))),
    Step("an end is never stopped, only its clean-up expires", requirements=ID, holds=
         implies(on(Ticked) & (tick.phase != OperationPhase.WORKING), not_(stops))
         & implies(emits(Decide, decision=Decision.EXPIRE_CLEANUP), on(Ticked)
                 & one_of(tick.phase, OperationPhase.FINISHING_LATE, OperationPhase.TERMINAL_LATE)),
         harm="a reply that is being delivered is thrown away"),
    Step(WAITS, requirements=("R-ATT-10", ID), holds=
         implies(on(Ticked) & works & tick.waits & not_(tick.execution_due), emits(Decide, why=Why.HEALTHY_WAIT)),
         harm="a person who takes their time loses the run that asked them"),
    Step("an execution deadline also ends a wait", implies(on(Ticked) & works & tick.execution_due, stops), requirements=ID),
    Step(STALL, requirements=ID, holds=
         implies(on(Ticked) & works & not_(tick.execution_due) & not_(tick.waits),
                 emits(Decide, why=Why.SEMANTIC_STALL) == ((tick.silence == Silence.DUE) & tick.tools_due)),
         harm="a tool within its declared deadline is killed"),
    *(Sometimes(f"a tick decides {d.value}", emits(Decide, decision=d), requirements=ID) for d in Decision),
)  # fmt: skip

IMPATIENT = MACHINE.variant("stuck_decision_impatient", drop=("5 waits",))
BLIND = MACHINE.variant(
    "stuck_decision_without_tools",
    replace={"6 semantic stall": decides(Decision.STOP, Why.SEMANTIC_STALL, tick.silence == Silence.DUE, "6 semantic stall")},
)

SPEC = Spec(
    machine=MACHINE,
    requirements=requirements("R-ATT-10", ID),
    properties=with_harms((*PROPERTIES, *EXACTLY)),
    tests={ID: TESTS[ID]},
    variants=(
        Variant(machine=IMPATIENT, violates={WAITS: 1}, about="A decision that does not ask for declared waits stops a run that waits for "
                  "a person."),
        Variant(machine=BLIND, violates={STALL: 1}, about="A deadline for progress that ignores what a tool declared kills long commands."),
    ),
)  # fmt: skip
