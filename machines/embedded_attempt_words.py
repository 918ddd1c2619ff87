"""The vocabulary of an embedded attempt and its state. Its events and effects are in ``embedded_attempt_events``."""

from __future__ import annotations

from enum import Enum
from typing import Annotated

from attrs import frozen

from turnproof.machines.attempt_terminal import During, Ending
from turnproof.machines.kernel import Counter, Opaque

# ── vocabulary ──


class Phase(Enum):
    """Where an attempt is. What a live one does (waits, streams, runs tools, compacts) is in its counters and bits."""

    PREPARING = "preparing"
    """Nothing that could be aborted runs yet; an abort ends it at once."""
    LIVE = "live"
    SETTLING = "settling"
    """Finished, failed or interrupted; its loop has not come back."""
    DONE = "done"
    """It has reported how it ended, and said it will do nothing more."""


class Stall(Enum):
    """What a recovery found the attempt doing."""

    NONE = "none"
    TOOL_EXECUTION_TIMEOUT = "tool_execution_timeout"
    COMPACTION_TIMEOUT = "compaction_timeout"
    MODEL_IDLE_TIMEOUT = "model_idle_timeout"
    EXTERNAL_ABORT = "external_abort"
    """Nothing that is known to be active: unknown is never replayed."""


class Side(Enum):
    """What a tool call may do to the world, as it was decided when the call was asked for."""

    SAFE = "safe"
    """Marked or listed as safe, and not mutating: it may run again."""
    POTENTIAL = "potential"
    UNKNOWN = "unknown"
    """Nobody could tell; counts as potential."""


class ToolOutcome(Enum):
    """What the end of a tool call says about its side effect."""

    HAPPENED = "happened"
    """It ran; what it may do, it may have done."""
    PROVEN_SAFE = "proven_safe"
    """A structured marker and the analysis of mutations both say that it changed nothing."""
    NEVER_STARTED = "never_started"


class Wait(Enum):
    """A declared wait for a person, an approval or the runtime itself."""

    NONE = "none"
    HEALTHY = "healthy"
    OVERDUE = "overdue"
    """Past its own deadline: no excuse any more."""


class Stage(Enum):
    """Where the attempt's error came to light."""

    PROMPT = "prompt"
    ASSISTANT = "assistant"


class Cause(Enum):
    """What the attempt's own controller is aborted with."""

    TIMEOUT = "timeout"
    USER_ABORT = "user_abort"
    RESTART = "restart"
    SUPERSEDED = "superseded"
    STUCK_RECOVERY = "stuck_recovery"
    CALLER = "caller"
    YIELD = "yield"
    RUNTIME = "runtime"


class Timer(Enum):
    """The timers of an attempt. The deadline of the whole run is ``run_budget``."""

    IDLE = "idle"
    """A model call was waited for, and gave no sign since."""
    WAIT = "wait"
    """A declared wait is past its own deadline."""
    UNWIND = "unwind"
    """The attempt failed or was interrupted, and its loop has not come back."""
    FINISH = "finish"
    """The attempt has its answer, and what follows it (compaction, hooks) has not come back."""


# ── state ──


@frozen
class EmbeddedAttempt:
    """One prompt run on one provider, model and profile."""

    phase: Phase = Phase.PREPARING
    ending: Ending = Ending.OK
    during: During = During.NONE
    also_aborted: bool = False
    """``ending``, ``during`` and this bit are one value of ``attempt_terminal``."""
    stall: Stall = Stall.NONE
    prompt_error: bool = False
    """The error came out of the prompt itself, not out of an assistant message."""
    model_calls: Annotated[int, Counter] = 0
    """Provider requests that live; counted, because the late end of an older one must not clear a newer one."""
    safe_tools: Annotated[int, Counter] = 0
    """Replay-safe tool calls that run."""
    risky_tools: Annotated[int, Counter] = 0
    """Potentially side-effecting tool calls that run, or are about to."""
    effects: bool = False
    """Something happened that must not happen twice: a side effect that was not disproved, or a delivered answer."""
    compacting: bool = False
    waiting: bool = False
    """For the next provider event, or for the stream object itself."""
    idle_watched: bool = True
    """The idle timer is on for this provider (a local one has none)."""
    consents: bool = True
    """It may be cut now; the answer of its abortability probe."""
    wait: Wait = Wait.NONE
    tool: Annotated[str, Opaque] = ""
    """Name of the last potentially side-effecting tool, for the cause that is shown."""
