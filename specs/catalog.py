"""Every specification of the project, by the name of its machine. The command line and the tests know machines only from here."""

from __future__ import annotations

from collections.abc import Mapping

from turnproof.specs.language import Spec
from turnproof.specs.system import SystemSpec


def specifications() -> Mapping[str, Spec]:
    """Name of the machine -> its specification."""
    from turnproof.specs.attempt_terminal import SPEC as ATTEMPT_TERMINAL
    from turnproof.specs.command_lane import SPEC as COMMAND_LANE
    from turnproof.specs.embedded_attempt import SPEC as EMBEDDED_ATTEMPT
    from turnproof.specs.embedded_run import SPEC as EMBEDDED_RUN
    from turnproof.specs.failover import SPEC as FAILOVER
    from turnproof.specs.reply_operation import SPEC as REPLY_OPERATION
    from turnproof.specs.reply_slot import SPEC as REPLY_SLOT
    from turnproof.specs.reply_waiter import SPEC as REPLY_WAITER
    from turnproof.specs.run_budget import SPEC as RUN_BUDGET
    from turnproof.specs.session_id import SPEC as SESSION_ID
    from turnproof.specs.steering_message import SPEC as STEERING_MESSAGE
    from turnproof.specs.stuck_recovery import SPEC as STUCK_RECOVERY
    from turnproof.specs.stuck_recovery_decision import SPEC as STUCK_DECISION
    from turnproof.specs.stuck_recovery_watchdog import SPEC as STUCK_WATCHDOG
    from turnproof.specs.tool_call import SPEC as TOOL_CALL
    from turnproof.specs.tool_execution import SPEC as TOOL_EXECUTION
    from turnproof.specs.turn_loop import SPEC as TURN_LOOP

    replies = (REPLY_OPERATION, REPLY_SLOT, SESSION_ID, REPLY_WAITER)
    turns = (TURN_LOOP, TOOL_CALL)
    attempts = (EMBEDDED_ATTEMPT, ATTEMPT_TERMINAL, RUN_BUDGET, TOOL_EXECUTION, STEERING_MESSAGE, EMBEDDED_RUN, COMMAND_LANE, FAILOVER)
    recoveries = (STUCK_WATCHDOG, STUCK_DECISION, STUCK_RECOVERY)
    return {spec.machine.name: spec for spec in (*replies, *turns, *attempts, *recoveries)}


def systems() -> Mapping[str, SystemSpec]:
    """Name of the system -> its specification."""
    from turnproof.specs.recovery_system import SPEC as RECOVERY_SYSTEM
    from turnproof.specs.reply_registry import SPEC as REPLY_REGISTRY
    from turnproof.specs.watched_turn import SPEC as WATCHED_TURN

    return {spec.system.name: spec for spec in (REPLY_REGISTRY, RECOVERY_SYSTEM, WATCHED_TURN)}
