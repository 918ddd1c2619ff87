"""The asyncio shell: runs machines. It applies an event, stores the state, then performs the effects in order.

``Runner`` is one instance of one machine; ``turnproof.shell.reply_operation`` has the typed way to one reply. Whole lifecycles, wired of
many machines: ``ReplyRegistry`` holds the replies of a gateway, ``AttemptRunner`` runs the turns of one session in it, ``TurnLoop`` is the
loop of a coding agent, ``Session`` an adapter beside a server whose events name nobody. ``virtual_time`` and ``run_virtual`` make tests
take no time, ``RealClock`` plays them once for real; pytest finds the fixtures of ``turnproof.shell.fixtures``. Needs attrs and the
standard library, nothing else, and loads no machine that you do not use.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from turnproof.shell.clock import ClockStalled, VirtualClock, VirtualLoop, run_virtual, virtual_time
from turnproof.shell.common import Signal, only
from turnproof.shell.handlers import Failure, Handler, HandlersError, Performed, log_failure
from turnproof.shell.real_clock import Clock, RealClock
from turnproof.shell.runner import Runner, RunnerClosed, TraceStep

if TYPE_CHECKING:
    from turnproof.shell.attempt_runner import AttemptRunner
    from turnproof.shell.attempt_runner_attempt import Attempt
    from turnproof.shell.attempt_runner_steering import SteeredMessage
    from turnproof.shell.attempt_runner_words import (
        AttemptOver,
        AttemptReport,
        LaneCleared,
        NotResumable,
        NotStarted,
        Plan,
        ProviderFailure,
        TurnResult,
    )
    from turnproof.shell.reply_registry import ReplyRegistry
    from turnproof.shell.reply_registry_reply import Reply
    from turnproof.shell.reply_registry_words import (
        AdmissionRefused,
        AlreadyActive,
        Backend,
        FollowupAdmissionBlocked,
        KeyChangeRefused,
        LaneBusy,
        QueuedTurnFirst,
        RegistryClosed,
        RegistryError,
        SessionIdTaken,
        SuccessorAdmissionBlocked,
    )
    from turnproof.shell.session import Session
    from turnproof.shell.session_transport import (
        PromptRejected,
        QuestionUnanswered,
        SessionBusy,
        SessionError,
        Snapshot,
        StopFailed,
        StreamDown,
        Transport,
        TurnEnd,
        WireEvent,
    )
    from turnproof.shell.turn_loop import TurnLoop
    from turnproof.shell.turn_loop_words import (
        CallInputPart,
        CallPart,
        CallRecord,
        ContinueNote,
        FinishPart,
        HostedCallPart,
        HostedResultPart,
        PromptRefused,
        Provider,
        ReasoningPart,
        Request,
        RunResult,
        Step,
        StreamError,
        StreamPart,
        Summary,
        TextPart,
        UserMessage,
    )

__all__ = [
    "AdmissionRefused",
    "AlreadyActive",
    "Attempt",
    "AttemptOver",
    "AttemptReport",
    "AttemptRunner",
    "Backend",
    "CallInputPart",
    "CallPart",
    "CallRecord",
    "Clock",
    "ClockStalled",
    "ContinueNote",
    "Failure",
    "FinishPart",
    "FollowupAdmissionBlocked",
    "Handler",
    "HandlersError",
    "HostedCallPart",
    "HostedResultPart",
    "KeyChangeRefused",
    "LaneBusy",
    "LaneCleared",
    "NotResumable",
    "NotStarted",
    "Performed",
    "Plan",
    "PromptRefused",
    "PromptRejected",
    "Provider",
    "ProviderFailure",
    "QuestionUnanswered",
    "QueuedTurnFirst",
    "RealClock",
    "ReasoningPart",
    "RegistryClosed",
    "RegistryError",
    "Reply",
    "ReplyRegistry",
    "Request",
    "RunResult",
    "Runner",
    "RunnerClosed",
    "Session",
    "SessionBusy",
    "SessionError",
    "SessionIdTaken",
    "Signal",
    "Snapshot",
    "SteeredMessage",
    "Step",
    "StopFailed",
    "StreamDown",
    "StreamError",
    "StreamPart",
    "SuccessorAdmissionBlocked",
    "Summary",
    "TextPart",
    "TraceStep",
    "Transport",
    "TurnEnd",
    "TurnLoop",
    "TurnResult",
    "UserMessage",
    "VirtualClock",
    "VirtualLoop",
    "WireEvent",
    "log_failure",
    "only",
    "run_virtual",
    "virtual_time",
]

_LATER = {
    "attempt_runner": ("AttemptRunner",),
    "attempt_runner_attempt": ("Attempt",),
    "attempt_runner_steering": ("SteeredMessage",),
    "attempt_runner_words": (
        "AttemptOver", "AttemptReport", "LaneCleared", "NotResumable", "NotStarted", "Plan", "ProviderFailure", "TurnResult",
    ),
    "reply_registry": ("ReplyRegistry",),
    "reply_registry_reply": ("Reply",),
    "reply_registry_words": (
        "AdmissionRefused", "AlreadyActive", "Backend", "FollowupAdmissionBlocked", "KeyChangeRefused", "LaneBusy", "QueuedTurnFirst",
        "RegistryClosed", "RegistryError", "SessionIdTaken", "SuccessorAdmissionBlocked",
    ),
    "session": ("Session",),
    "session_transport": (
        "PromptRejected", "QuestionUnanswered", "SessionBusy", "SessionError", "Snapshot", "StopFailed", "StreamDown", "Transport",
        "TurnEnd", "WireEvent",
    ),
    "turn_loop": ("TurnLoop",),
    "turn_loop_words": (
        "CallInputPart", "CallPart", "CallRecord", "ContinueNote", "FinishPart", "HostedCallPart", "HostedResultPart", "PromptRefused",
        "Provider", "ReasoningPart", "Request", "RunResult", "Step", "StreamError", "StreamPart", "Summary", "TextPart", "UserMessage",
    ),
}  # fmt: skip
"""Module -> names of it that load machines, and so are imported when they are first asked for."""


def __getattr__(name: str) -> Any:
    for module, names in _LATER.items():
        if name in names:
            return getattr(import_module(f"turnproof.shell.{module}"), name)
    raise AttributeError(f"module 'turnproof.shell' has no attribute {name!r}")
