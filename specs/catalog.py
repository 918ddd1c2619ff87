"""Every specification of the project, by the name of its machine. The command line and the tests know machines only from here."""

from __future__ import annotations

from collections.abc import Mapping

from turnproof.specs.language import Spec
from turnproof.specs.system import SystemSpec


def specifications() -> Mapping[str, Spec]:
    """Name of the machine -> its specification."""
    from turnproof.specs.reply_operation import SPEC as REPLY_OPERATION
    from turnproof.specs.reply_slot import SPEC as REPLY_SLOT
    from turnproof.specs.reply_waiter import SPEC as REPLY_WAITER
    from turnproof.specs.session_id import SPEC as SESSION_ID
    from turnproof.specs.tool_call import SPEC as TOOL_CALL
    from turnproof.specs.turn_loop import SPEC as TURN_LOOP

    return {spec.machine.name: spec for spec in (REPLY_OPERATION, REPLY_SLOT, SESSION_ID, REPLY_WAITER, TURN_LOOP, TOOL_CALL)}


def systems() -> Mapping[str, SystemSpec]:
    """Name of the system -> its specification."""
    from turnproof.specs.reply_registry import SPEC as REPLY_REGISTRY

    return {spec.system.name: spec for spec in (REPLY_REGISTRY,)}
