"""How a reply operation ends, and why it is aborted, cancelled or given up: the codes of its vocabulary."""

from __future__ import annotations

from enum import Enum


class Result(Enum):
    """How a reply ended: kind and code in one word. Written once."""

    NONE = "none"
    COMPLETED = "completed"
    GATEWAY_DRAINING = "failed:gateway_draining"
    COMMAND_LANE_CLEARED = "failed:command_lane_cleared"
    SESSION_CORRUPTION_RESET = "failed:session_corruption_reset"
    RUN_FAILED = "failed:run_failed"
    RUN_STALLED = "failed:run_stalled"
    ABORTED_BY_USER = "aborted:aborted_by_user"
    ABORTED_FOR_RESTART = "aborted:aborted_for_restart"
    ABORTED_FOR_SUPERSESSION = "aborted:aborted_for_supersession"
    ABORTED_FOR_STUCK_RECOVERY = "aborted:aborted_for_stuck_recovery"
    """Two withdrawn proposals ended the whole reply so; no row of the target does."""


class FailureCode(Enum):
    """What the owner may fail with. ``aborted_by_user`` is a code of the protocol that ``fail()`` does not accept."""

    GATEWAY_DRAINING = "gateway_draining"
    COMMAND_LANE_CLEARED = "command_lane_cleared"
    SESSION_CORRUPTION_RESET = "session_corruption_reset"
    RUN_FAILED = "run_failed"
    RUN_STALLED = "run_stalled"


class AbortReason(Enum):
    """Who asks to abort the reply."""

    USER = "user"
    RESTART = "restart"


class UpstreamReason(Enum):
    """Why the signal this reply was begun with fired. A reason nobody knows counts as the user's."""

    USER = "user"
    RESTART = "restart"
    SUPERSEDED = "superseded"


class CancelReason(Enum):
    """What a backend is told when it is cancelled."""

    USER_ABORT = "user_abort"
    RESTART = "restart"
    SUPERSEDED = "superseded"
    STUCK_RECOVERY = "stuck_recovery"


class ExpiryReason(Enum):
    """Why the whole reply is given up as stalled."""

    NONE = "none"
    TERMINAL_UNRELEASED = "terminal_unreleased"
    NO_ACTIVITY = "no_activity"
    STUCK_RECOVERY = "stuck_recovery"
    FINALIZATION_STALLED = "finalization_stalled"
