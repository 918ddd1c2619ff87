"""What an attempt runner is given, what it hands back, and what it raises."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Generic, TypeVar

import attrs

from turnproof.machines.embedded_attempt_events import ReportOutcome
from turnproof.machines.failover_words import Action, Failure, How, Reason
from turnproof.machines.reply_operation_words import Result

if TYPE_CHECKING:
    from turnproof.shell.attempt_runner_attempt import Attempt

T = TypeVar("T")

Body = Callable[["Attempt[T]"], Awaitable[T]]
"""The loop of one attempt: calls the model and runs tools through the attempt it is given, and returns the answer."""

ADMISSION_MS = 75_000
"""How long a turn waits for the slot of its key, in milliseconds: longer than a reply that is over may hold it."""
REQUEST_MS = 120_000
"""Silence after which a model call counts as past its request's limit, in milliseconds: OpenClaw's default LLM idle limit."""
OVERDUE_MS = 300_000
"""Silence after which a turn that waits makes a recovery due, in milliseconds (logging/diagnostic.ts)."""
LATE_MS = 1_000
"""A tick of the watchdog that comes so many milliseconds late decides nothing (logging/diagnostic.ts)."""


class AttemptOver(RuntimeError):
    """The attempt is over: it was stopped or replaced, and starts nothing any more."""


class NotStarted(RuntimeError):
    """Raised by a tool that gives its input back: it has done nothing, and never will."""


class LaneCleared(RuntimeError):
    """The queue of the session was cleared before the turn began."""


class NotResumable(RuntimeError):
    """The last turn does not go on: it has its answer, or something may have changed the world, or it is not over."""


class ProviderFailure(Exception):
    """An error of the provider, with what failover calls it. ``at_prompt``: out of the prompt itself, not out of an answer."""

    def __init__(self, failure: Failure, message: str = "", *, at_prompt: bool = False) -> None:
        super().__init__(message or failure.value)
        self.failure, self.at_prompt = failure, at_prompt


def classify(error: Exception) -> tuple[Failure, bool]:
    """What failover calls an error, and whether it came out of the prompt itself. What nobody knows is ``PLAIN``, and ends the turn."""
    if isinstance(error, ProviderFailure):
        return error.failure, error.at_prompt
    return (Failure.TIMEOUT if isinstance(error, TimeoutError) else Failure.PLAIN), False


@attrs.frozen(kw_only=True)
class Plan:
    """What a turn may try. Models and profiles in the order of preference; every profile serves every model."""

    models: tuple[str, ...]
    profiles: tuple[str, ...] = ("default",)
    retries: int = 1
    """Times the same model is tried again after an ordinary timeout (OpenClaw: 1)."""
    tries: int | None = None
    """Attempts of one run after which an error is decided at failover's stage ``retry_limit``; None: only the lists end it."""
    harness_owned: bool = False
    """The transport belongs to a harness, which may do things that the runtime does not see."""
    watch_idle: bool = True
    """The idle timer is on; a local provider has none."""
    limited: bool = False
    """The run has a deadline: ``BudgetTimer.DEADLINE``, 600 s unless other durations are given."""
    safe_tools: frozenset[str] = frozenset()
    """Names of tools that may be run again."""

    def __attrs_post_init__(self) -> None:
        if not self.models or not self.profiles or self.retries < 0:
            raise ValueError(f"a plan has a model, a profile and 0 retries or more, not {self}")
        if self.tries is not None and self.tries < 1:
            raise ValueError(f"a plan has 1 try or more, or None for no limit, not {self.tries}")


@attrs.frozen
class AttemptReport:
    """How one attempt ended."""

    identity: str
    model: str
    profile: str
    how: How
    outcome: ReportOutcome
    error: Exception | None
    """What its body raised."""


@attrs.frozen
class TurnResult(Generic[T]):
    """How a turn ended."""

    answer: T | None
    """What was delivered; None if nothing was."""
    action: Action
    reason: Reason
    """Why nothing more was tried."""
    reply: Result
    attempts: tuple[AttemptReport, ...]
    undelivered: BaseException | None = None
    """What the delivery of the answer raised; then :attr:`answer` is None and the reply has failed."""

    @property
    def error(self) -> Exception | None:
        """The newest error of any attempt."""
        return next((attempt.error for attempt in reversed(self.attempts) if attempt.error is not None), None)
