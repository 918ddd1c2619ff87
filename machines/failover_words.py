"""The vocabulary of failover: the state of a turn, what happens to it, and what its runtime must do. The table is in ``failover``."""

from __future__ import annotations

from enum import Enum
from typing import Annotated

from attrs import frozen

from turnproof.machines.attempt_terminal import During, Ending
from turnproof.machines.embedded_attempt_words import Stage
from turnproof.machines.kernel import NOBODY, Counter, Token

# ── vocabulary ──


class Phase(Enum):
    """Where a turn is."""

    IDLE = "idle"
    READY = "ready"
    """An attempt is to begin."""
    RUNNING = "running"
    """One attempt is on."""
    OVER = "over"


class Failure(Enum):
    """What the error is, as the runtime classifies it."""

    NONE = "none"
    PLAIN = "plain"
    """An error that failover does not know."""
    UNKNOWN = "unknown"
    """One that it knows as a failure of the provider, without a reason."""
    TIMEOUT = "timeout"
    FORMAT = "format"
    """The provider cannot read the conversation, and no other form is left to try: final."""
    FORMAT_RETRYABLE = "format_retryable"
    SESSION_EXPIRED = "session_expired"
    REFUSAL = "refusal"
    REFUSAL_SHOWN = "refusal_shown"
    """A refusal of which the user saw a part."""
    TLS_CERTIFICATE = "tls_certificate"
    OVERLOADED = "overloaded"
    """Stands for every other reason: overload, rate limit, billing, authentication, no such model."""
    CLI_STOPPED = "cli_stopped"
    """A command-line provider ended with a code that says: stop."""


class Action(Enum):
    """What is decided."""

    CONTINUE_NORMAL = "continue_normal"
    """What there is, is the answer; for a timeout the timeout payload."""
    ROTATE_PROFILE = "rotate_profile"
    FALLBACK_MODEL = "fallback_model"
    SURFACE_ERROR = "surface_error"
    RETURN_ERROR_PAYLOAD = "return_error_payload"


class Reason(Enum):
    """Why it is decided so."""

    NONE = "none"
    EXTERNAL_ABORT = "external_abort"
    RUN_BUDGET = "run_budget"
    NOT_REPLAY_SAFE = "not_replay_safe"
    """Something may have changed the world."""
    TOOL_OR_COMPACTION = "tool_or_compaction"
    """It timed out in a tool or in a compaction."""
    NOTHING_LEFT = "nothing_left"
    PLAIN = "plain"
    UNKNOWN = "unknown"
    TIMEOUT = "timeout"
    FORMAT = "format"
    SESSION_EXPIRED = "session_expired"
    REFUSAL = "refusal"
    TLS_CERTIFICATE = "tls_certificate"
    OVERLOADED = "overloaded"
    CLI_STOPPED = "cli_stopped"


class How(Enum):
    """How an attempt differs from the one before."""

    FIRST = "first"
    SAME_MODEL = "same_model"
    NEXT_PROFILE = "next_profile"
    NEXT_MODEL = "next_model"
    RESUME = "resume"


# ── state ──


@frozen
class Failover:
    """One turn."""

    phase: Phase = Phase.IDLE
    attempt: Annotated[str, Token] = NOBODY
    """The attempt that is on."""
    profiles: Annotated[int, Counter] = 0
    """Other profiles of the model that were not tried."""
    models: Annotated[int, Counter] = 0
    """Configured fallback models that were not tried."""
    retries: Annotated[int, Counter] = 0
    """Times the same model may be tried again after an ordinary timeout."""
    harness_owned: bool = False
    """The transport belongs to a harness, which may have done things that the runtime did not see."""
    failure: Failure = Failure.NONE
    """What the error of this attempt is, as far as it was classified."""
    at_limit: bool = False
    """The outer loop has tried as often as it may: what follows is decided at the stage ``retry_limit``."""
    resumable: bool = False
    """The turn ended without an answer, and nothing it did may have changed the world."""


# ── events: what happened ──


@frozen
class TurnBegan:
    """The turn begins, with what its configuration leaves to try. ``harness_owned``: its transport belongs to a harness."""

    profiles: Annotated[int, Counter]
    models: Annotated[int, Counter]
    retries: Annotated[int, Counter]
    harness_owned: bool


@frozen
class AttemptBegan:
    """An attempt wants to begin."""

    attempt: Annotated[str, Token]


@frozen
class ErrorClassified:
    """An error of the present attempt came to light and was classified."""

    failure: Failure


@frozen
class RetryLimitReached:
    """The outer loop has tried as often as it may."""


@frozen
class AttemptEnded:
    """An attempt reports its end. ``replay_safe``: nothing it did, or may still do, would be repeated by another."""

    attempt: Annotated[str, Token]
    stage: Stage
    ending: Ending
    during: During
    replay_safe: bool


@frozen
class ProcessDied:
    """The process of the attempt is gone: nobody will ever say what it did."""


@frozen
class ResumeRequested:
    """Somebody wants the turn to go on after its end."""


Event = TurnBegan | AttemptBegan | ErrorClassified | RetryLimitReached | AttemptEnded | ProcessDied | ResumeRequested


# ── effects: what the runtime must do ──


@frozen
class BeginAttempt:
    """Begin an attempt of this turn."""

    how: How


@frozen
class LetRun:
    """This attempt is the turn's attempt now."""

    attempt: Annotated[str, Token]


@frozen
class Decided:
    """The decision and why."""

    action: Action
    reason: Reason


Effect = BeginAttempt | LetRun | Decided
