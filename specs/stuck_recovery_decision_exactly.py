"""What each tick must decide, exactly: the reference's table of the newest design, row by row."""

from __future__ import annotations

from turnproof.machines.kernel import one_of
from turnproof.machines.stuck_recovery_decision import (
    MACHINE,
    Decide,
    Decision,
    OperationPhase,
    Record,
    Silence,
    Standing,
    Ticked,
    Why,
    tick,
)
from turnproof.specs.exactly import NOTHING, Writer
from turnproof.specs.language import Property

write = Writer(MACHINE)
ENDS = (OperationPhase.FINISHING, OperationPhase.FINISHING_LATE, OperationPhase.TERMINAL, OperationPhase.TERMINAL_LATE)
TABLE: tuple[tuple[bool, Decision, Why], ...] = (
    (one_of(tick.standing, Standing.REPLACED, Standing.SETTLED), Decision.OBSERVE, Why.RETIRED),
    ((tick.record == Record.BLOCKED) | (tick.record == Record.OVERDUE), Decision.BLOCKED, Why.RECOVERY_BLOCKED),
    (tick.record == Record.PENDING, Decision.OBSERVE, Why.RECOVERING),
    (tick.phase == OperationPhase.FINISHING_LATE, Decision.EXPIRE_CLEANUP, Why.FINALIZATION_STALLED),
    (tick.phase == OperationPhase.TERMINAL_LATE, Decision.EXPIRE_CLEANUP, Why.TERMINAL_UNRELEASED),
    (one_of(tick.phase, *ENDS), Decision.OBSERVE, Why.CLEANING_UP),
    (tick.execution_due, Decision.STOP, Why.EXECUTION_DEADLINE),
    (tick.waits, Decision.OBSERVE, Why.HEALTHY_WAIT),
    ((tick.silence == Silence.DUE) & tick.tools_due, Decision.STOP, Why.SEMANTIC_STALL),
    (one_of(tick.silence, Silence.QUIET, Silence.DUE), Decision.WARN, Why.QUIET),
    (tick.silence == Silence.SHORT, Decision.OBSERVE, Why.HEALTHY),
)

EXACTLY: tuple[Property, ...] = (
    write.answers(Ticked, *write.ladder(Ticked, *((when, NOTHING, (Decide(decision, why),)) for when, decision, why in TABLE)),
                  requirements="R-ATT-31"),
)  # fmt: skip
