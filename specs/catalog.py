"""Every specification of the project, by the name of its machine. The command line and the tests know machines only from here.

A specification is loaded when it is asked for by name: one that is written wrongly stops nobody who asks for another.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterator, Mapping
from typing import Generic, TypeVar, cast

from turnproof.specs.language import Spec
from turnproof.specs.system import SystemSpec

T = TypeVar("T")

MACHINES: Mapping[str, str] = {
    # replies
    "reply_operation": "reply_operation",
    "reply_slot": "reply_slot",
    "session_id": "session_id",
    "reply_waiter": "reply_waiter",
    # turns
    "turn_loop": "turn_loop",
    "tool_call": "tool_call",
    # attempts
    "embedded_attempt": "embedded_attempt",
    "attempt_terminal": "attempt_terminal",
    "run_budget": "run_budget",
    "tool_execution": "tool_execution",
    "steering_message": "steering_message",
    "embedded_run": "embedded_run",
    "command_lane": "command_lane",
    "failover": "failover",
    # sessions
    "session": "session",
    "session_start": "session_start",
    "session_stop": "session_stop",
    "session_stream": "session_stream",
    "session_mark": "session_mark",
    # recoveries
    "stuck_watchdog": "stuck_recovery_watchdog",
    "stuck_decision": "stuck_recovery_decision",
    "stuck_recovery": "stuck_recovery",
}
"""Name of the machine -> the module here whose ``SPEC`` is its specification."""

SYSTEMS: Mapping[str, str] = {
    "reply_registry": "reply_registry",
    "recovery_system": "recovery_system",
    "watched_turn": "watched_turn",
    "agent_turn": "agent_turn",
    "session_system": "session_system",
    "session_permissions": "session_permissions",
    "session_ends": "session_ends",
    "session_times": "session_times",
    "session_working": "session_working",
    "session_failed": "session_failed",
    "session_reconnect": "session_reconnect",
    "session_steers": "session_steers",
    "session_unbounded": "session_unbounded",
}
"""The same for systems."""

LARGE: Mapping[str, str] = {
    "session_whole": "session_whole",
    "session_background": "session_background",
}
"""The same for systems that take long, or that no other result rests on: everything can be asked about them, by name only."""


class Loaded(Mapping[str, T], Generic[T]):
    """Name -> specification, each loaded when it is asked for."""

    def __init__(self, modules: Mapping[str, str]) -> None:
        self.modules = modules

    def __getitem__(self, name: str) -> T:
        """Raises whatever importing its module raises."""
        return cast(T, importlib.import_module(f"turnproof.specs.{self.modules[name]}").SPEC)

    def __contains__(self, name: object) -> bool:
        # Mapping's own would load it.
        return name in self.modules

    def __iter__(self) -> Iterator[str]:
        return iter(self.modules)

    def __len__(self) -> int:
        return len(self.modules)


def specifications() -> Mapping[str, Spec]:
    """Name of the machine -> its specification."""
    return Loaded[Spec](MACHINES)


def systems() -> Mapping[str, SystemSpec]:
    """Name of the system -> its specification; without the large ones."""
    return Loaded[SystemSpec](SYSTEMS)


def large() -> Mapping[str, SystemSpec]:
    """Name of the large system -> its specification."""
    return Loaded[SystemSpec](LARGE)
