"""The pure decision of one tick against its table, written here a second time as plain conditions (R-ATT-31)."""

from __future__ import annotations

from turnproof.machines.kernel import Taken
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
)


def expected(tick: Ticked) -> Decide:
    """The table of the newest design, row by row."""
    if tick.standing is not Standing.CURRENT:
        return Decide(Decision.OBSERVE, Why.RETIRED)
    if tick.record is not Record.NONE:
        blocked = tick.record in (Record.BLOCKED, Record.OVERDUE)
        return Decide(Decision.BLOCKED, Why.RECOVERY_BLOCKED) if blocked else Decide(Decision.OBSERVE, Why.RECOVERING)
    late = {
        OperationPhase.FINISHING_LATE: Why.FINALIZATION_STALLED,
        OperationPhase.TERMINAL_LATE: Why.TERMINAL_UNRELEASED,
    }
    if tick.phase in late:
        return Decide(Decision.EXPIRE_CLEANUP, late[tick.phase])
    if tick.phase is not OperationPhase.WORKING:
        return Decide(Decision.OBSERVE, Why.CLEANING_UP)
    if tick.execution_due:
        return Decide(Decision.STOP, Why.EXECUTION_DEADLINE)
    if tick.waits:
        return Decide(Decision.OBSERVE, Why.HEALTHY_WAIT)
    if tick.silence is Silence.DUE and tick.tools_due:
        return Decide(Decision.STOP, Why.SEMANTIC_STALL)
    if tick.silence is not Silence.SHORT:
        return Decide(Decision.WARN, Why.QUIET)
    return Decide(Decision.OBSERVE, Why.HEALTHY)


def differences(step: object = MACHINE.step) -> list[Ticked]:
    assert callable(step)
    found = []
    for tick in MACHINE.all_events():
        answer = step(MACHINE.initial, tick)
        if not isinstance(answer, Taken) or answer.effects != (expected(tick),) or answer.state != MACHINE.initial:
            found.append(tick)
    return found


def test_the_decision_equals_its_table_on_every_input() -> None:
    """R-ATT-31: on all of them, and it remembers nothing."""
    assert len(MACHINE.all_events()) == 1_440
    assert differences() == []


def test_a_changed_row_would_be_seen() -> None:
    dropped = MACHINE.variant("without a row", drop=("4 execution deadline",))
    assert len(differences(dropped.step)) > 10
