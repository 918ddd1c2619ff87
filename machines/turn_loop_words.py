"""The vocabulary of the turn loop and its state. Events and effects are in ``turn_loop_events``, the table is in ``turn_loop``."""

from __future__ import annotations

from enum import Enum
from typing import Annotated

from attrs import frozen

from turnproof.machines.kernel import NOBODY, Counter, Opaque, Token

# ── vocabulary ──


class Phase(Enum):
    """Where a session is. The last four are how its last run ended."""

    IDLE = "idle"
    """No run yet."""
    DECIDING = "deciding"
    """The history is being read; what it says decides the next thing to do."""
    PREPARING = "preparing"
    """The request is being built."""
    STREAMING = "streaming"
    """The model answers."""
    DRAINING = "draining"
    """The stream is over, local calls still run and are waited for."""
    SETTLING = "settling"
    """The step is lost or has all it needs; local calls that still run get a moment to end."""
    JUDGING = "judging"
    """The step is being recorded; then it is judged."""
    RETRY_WAIT = "retry_wait"
    """Backs off after an error of the provider."""
    RESAMPLE_WAIT = "resample_wait"
    """Backs off before the same request is sent again, because the answer was incomplete and left nothing."""
    CONTINUE_WAIT = "continue_wait"
    """Backs off before the model is asked to go on, because the answer was incomplete and left something."""
    COMPACTING = "compacting"
    """The history is being summed up."""
    SUBTASK = "subtask"
    """A child session works."""
    STOPPING = "stopping"
    """Cancelled; stream, calls, compaction or child are being joined."""
    COMPLETED = "completed"
    ERRORED = "errored"
    ABORTED = "aborted"
    BLOCKED = "blocked"
    """A person rejected a call and said nothing more."""


TERMINAL = (Phase.COMPLETED, Phase.ERRORED, Phase.ABORTED, Phase.BLOCKED)
RESTING = (Phase.IDLE, *TERMINAL)
"""No run is on."""
RUNNING = tuple(phase for phase in Phase if phase not in RESTING)


class Ending(Enum):
    """How the stream of the step ended, as far as is known."""

    OPEN = "open"
    """No finish part yet."""
    STOP = "stop"
    LENGTH = "length"
    TOOL_CALLS = "tool-calls"
    CONTENT_FILTER = "content-filter"
    ERROR = "error"
    UNKNOWN = "unknown"
    """A finish part with a reason that nobody maps, or that an adapter made up."""
    ABSENT = "absent"
    """It closed without a finish part."""
    RETRYABLE = "retryable"
    """It broke by an error that may pass."""
    FATAL = "fatal"
    """It broke by an error that will come again."""
    OVERFLOW = "overflow"
    """The provider says the context is too long."""
    CAPTURED = "captured"
    """The structured output that was asked for is here."""


class Content(Enum):
    """The most telling thing the attempt left, from nothing to what most forbids a second try."""

    NOTHING = "nothing"
    REASONING = "reasoning"
    CUT_CALL = "cut_call"
    """The input of a call, never completed; no text."""
    TEXT = "text"
    TEXT_AND_CUT_CALL = "text_and_cut_call"
    HOSTED = "hosted"
    """A call that the provider itself executed."""
    HELD = "held"
    """Complete local calls that the adapter holds back until the finish part; none was run."""
    DISPATCHED = "dispatched"
    """A local call was run, and none has a result."""
    RESULT = "result"
    """A local call has a result, good or bad."""
    REJECTED = "rejected"
    """A person rejected a call without a word."""


EMPTY = (Content.NOTHING, Content.REASONING, Content.CUT_CALL)
"""Nothing that must be kept: the attempt may be discarded and repeated."""
WORDS = (Content.TEXT, Content.TEXT_AND_CUT_CALL, Content.HOSTED)
"""Something that answers."""
RAN = (Content.DISPATCHED, Content.RESULT, Content.REJECTED)
"""A local call was run."""


class Failure(Enum):
    """Classes of a broken stream. Which error is which is the adapter's business."""

    RETRYABLE = "retryable"
    FATAL = "fatal"
    OVERFLOW = "overflow"


class CallResult(Enum):
    """How a local call ended."""

    DONE = "done"
    FAILED = "failed"
    """Also: denied by a rule, or rejected by a person who said what to do instead."""
    REJECTED = "rejected"


class Task(Enum):
    """What the newest user message asks for besides an answer."""

    NONE = "none"
    SUBTASK = "subtask"
    COMPACTION = "compaction"


class Room(Enum):
    """How much of the context the conversation takes."""

    ENOUGH = "enough"
    OVER = "over"
    """Over the limit, and automatic compaction is on."""
    NO_COMPACTION = "no_compaction"
    """Automatic compaction is off, so the limit is not looked at."""


class Wanted(Enum):
    """What the conversation still wants from the step that was recorded."""

    ANSWER = "answer"
    STRUCTURED = "structured"
    """An output of a given form was asked for."""
    NOTHING = "nothing"
    """The step follows results of calls, so ending without a word is legitimate."""


class CompactionResult(Enum):
    """How a compaction ended."""

    SUMMARY = "summary"
    """A terminal finish reason and a text."""
    EMPTY = "empty"
    """An unknown or absent finish reason, or no text."""
    TOO_LONG = "too_long"
    """The history does not even fit into the request that would sum it up."""
    FAILED = "failed"


class Source(Enum):
    """Who starts."""

    PERSON = "person"
    HARNESS = "harness"
    """A program that says "continue" by itself."""
    QUEUE = "queue"
    """The message was kept while a run ended; its own run is due now."""


class Request(Enum):
    """Which request."""

    NEW = "new"
    SAME = "same"
    """The one before, byte for byte."""


class Status(Enum):
    """What a client is shown."""

    BUSY = "busy"
    WAITING = "retry"
    """Waits before the next request."""


class Outcome(Enum):
    """How a run ended."""

    COMPLETED = "completed"
    ERRORED = "errored"
    ABORTED = "aborted"
    BLOCKED = "blocked"


class Cause(Enum):
    """Why a run errored."""

    NONE = "none"
    INCOMPLETE = "incomplete_stream"
    """The stream died and the budget is used up."""
    EMPTY = "empty_answer"
    LENGTH = "length"
    CONTENT_FILTER = "content_filter"
    PROVIDER = "provider"
    OVERFLOW = "context_overflow"
    UNSTRUCTURED = "structured_output_missing"
    COMPACTION = "compaction_failed"
    STEP_LIMIT = "step_limit"
    PREPARATION = "preparation_failed"
    """No user message, or an unknown agent or model."""


class Timer(Enum):
    """The timers of the loop."""

    RETRY = "retry"
    """Time to try again after an error of the provider."""
    RESAMPLE = "resample"
    """Time to send the same request again after an incomplete answer."""
    CONTINUE = "continue"
    """Time to ask the model to go on after an incomplete answer."""
    GRACE = "grace"
    """Stream and calls had their moment to end; what still runs is written down as "outcome unknown"."""


# ── state ──


@frozen
class TurnLoop:
    """One session and its present run."""

    phase: Phase = Phase.IDLE
    generation: Annotated[str, Token] = NOBODY
    """Identity of the present piece of work: the run's beginning, then each model call. What answers another one is stale."""
    ending: Ending = Ending.OPEN
    content: Content = Content.NOTHING
    open_calls: Annotated[int, Counter] = 0
    """Local calls of this step without a result."""
    answered: bool = False
    """The last step ended the turn: unless something new came, the run is complete."""
    repeat: bool = False
    """The next request is the last one again."""
    prompted: bool = False
    """A user message came that no request contains yet."""
    automation_off: bool = False
    """A person cancelled, and has not spoken since: no harness may start a run."""
    limited: bool = False
    """The run's agent has a limit of steps."""
    steps_left: Annotated[int, Counter] = 0
    """Steps the run may still begin; counts only where ``limited``."""
    retries: Annotated[int, Counter] = 0
    """Tries after errors of the provider since the last progress."""
    resamples: Annotated[int, Counter] = 0
    """Repeated requests after incomplete answers since the last progress."""
    continues: Annotated[int, Counter] = 0
    """Requests to go on after incomplete answers since the last progress."""
    compactions: Annotated[int, Counter] = 0
    """Automatic compactions since the last progress."""
    retry_limit: Annotated[int, Counter] = 5
    """anomalyco/opencode#41939."""
    resample_limit: Annotated[int, Counter] = 2
    continue_limit: Annotated[int, Counter] = 1
    compaction_limit: Annotated[int, Counter] = 1
    cause: Cause = Cause.NONE
    """Why the last run errored."""
    retry_at_ms: Annotated[int, Opaque] = 0
    """The provider asked not to be called before, on the shell's clock; 0: it did not."""
    raw: Annotated[str, Opaque] = ""
    """The raw finish reason, kept for reports."""
