"""The machines of attempt, failover and recovery: every property holds, every historic design fails where it should."""

from __future__ import annotations

import pytest

from turnproof.checkers import explicit
from turnproof.checkers.graph import explore
from turnproof.checkers.verdict import Outcome
from turnproof.specs.attempt_terminal import SPEC as ATTEMPT_TERMINAL
from turnproof.specs.command_lane import SPEC as COMMAND_LANE
from turnproof.specs.embedded_attempt import SPEC as EMBEDDED_ATTEMPT
from turnproof.specs.embedded_run import SPEC as EMBEDDED_RUN
from turnproof.specs.failover import SPEC as FAILOVER
from turnproof.specs.language import Spec
from turnproof.specs.run_budget import SPEC as RUN_BUDGET
from turnproof.specs.steering_message import SPEC as STEERING_MESSAGE
from turnproof.specs.stuck_recovery import SPEC as STUCK_RECOVERY
from turnproof.specs.stuck_recovery_decision import SPEC as STUCK_DECISION
from turnproof.specs.stuck_recovery_watchdog import SPEC as STUCK_WATCHDOG
from turnproof.specs.tool_execution import SPEC as TOOL_EXECUTION

SPECS = (
    EMBEDDED_ATTEMPT,
    ATTEMPT_TERMINAL,
    RUN_BUDGET,
    TOOL_EXECUTION,
    STEERING_MESSAGE,
    EMBEDDED_RUN,
    COMMAND_LANE,
    FAILOVER,
    STUCK_WATCHDOG,
    STUCK_DECISION,
    STUCK_RECOVERY,
)


LARGE = 30
"""Rows from which on a machine is left to the soak: every verification asks the same."""
EACH = [pytest.param(s, id=s.machine.name, marks=[pytest.mark.soak] if len(s.machine.rows) >= LARGE else []) for s in SPECS]


@pytest.mark.parametrize("spec", EACH)
def test_the_target_holds_and_every_historic_design_fails(spec: Spec) -> None:
    verdicts = [*explicit.check(spec, explore(spec)), *explicit.check_variants(spec)]
    assert len(verdicts) > len(spec.properties)
    assert [(v.machine, v.check, v.detail) for v in verdicts if v.outcome is not Outcome.HOLDS] == []


@pytest.mark.parametrize("spec", SPECS, ids=lambda spec: spec.machine.name)
def test_every_machine_has_a_design_that_fails(spec: Spec) -> None:
    assert sum(len(variant.violates) for variant in spec.variants) >= 2
