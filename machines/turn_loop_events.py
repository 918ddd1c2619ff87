"""What happens to a turn loop, and what its shell must do. Vocabulary and state are in ``turn_loop_words``."""

from __future__ import annotations

from typing import Annotated

from attrs import frozen

from turnproof.machines.finish_reason import FinishReason
from turnproof.machines.kernel import Counter, Opaque, StartTimer, StopTimer, Token
from turnproof.machines.turn_loop_words import (
    CallResult,
    Cause,
    CompactionResult,
    Failure,
    Outcome,
    Request,
    Room,
    Source,
    Status,
    Task,
    Wanted,
)

# ── events: what happened ──


@frozen
class UserPrompted:
    """A message came. ``steps``: the limit of its agent, 0 for none. ``generation`` is fresh."""

    generation: Annotated[str, Token]
    source: Source
    steps: Annotated[int, Counter]


@frozen
class Cancelled:
    """A person wants it to stop."""


@frozen
class HistoryLoaded:
    """The history was read."""

    generation: Annotated[str, Token]
    task: Task
    room: Room


@frozen
class Prepared:
    """The request is built; ``call`` is the fresh identity of the model call it is for."""

    generation: Annotated[str, Token]
    call: Annotated[str, Token]


@frozen
class PreparationFailed:
    """There is no user message, or its agent or model is unknown."""

    generation: Annotated[str, Token]


@frozen
class ReasoningArrived:
    """Reasoning that is not blank."""

    generation: Annotated[str, Token]


@frozen
class TextArrived:
    """Text that is not blank."""

    generation: Annotated[str, Token]


@frozen
class CallBegan:
    """The input of a local call began."""

    generation: Annotated[str, Token]


@frozen
class CallCompleted:
    """A local call is complete. ``held``: the adapter holds calls back until the finish part. ``call`` identifies it."""

    generation: Annotated[str, Token]
    held: bool
    call: Annotated[str, Opaque]


@frozen
class HostedCallSeen:
    """The provider executes, or executed, a call itself."""

    generation: Annotated[str, Token]


@frozen
class CallEnded:
    """A local call that was run has its result."""

    generation: Annotated[str, Token]
    result: CallResult


@frozen
class OutputCaptured:
    """The structured output that was asked for was given, by the call made for it."""

    generation: Annotated[str, Token]


@frozen
class StepFinished:
    """A finish part came; the last one counts."""

    generation: Annotated[str, Token]
    reason: FinishReason
    raw: Annotated[str, Opaque]


@frozen
class StreamEnded:
    """The stream closed."""

    generation: Annotated[str, Token]


@frozen
class StreamBroke:
    """The stream broke, or never began. ``retry_at_ms``: not before, on the shell's clock; 0: the provider did not say."""

    generation: Annotated[str, Token]
    failure: Failure
    retry_at_ms: Annotated[int, Opaque]


@frozen
class StepRecorded:
    """The step is written down. ``at_ms``: the shell's clock."""

    generation: Annotated[str, Token]
    wanted: Wanted
    at_ms: Annotated[int, Opaque]


@frozen
class CompactionEnded:
    """The compaction is over."""

    generation: Annotated[str, Token]
    result: CompactionResult


@frozen
class SubtaskEnded:
    """The child session is done, or failed; the history says which."""

    generation: Annotated[str, Token]


@frozen
class RetryDue:
    """The wait after an error is over."""


@frozen
class ResampleDue:
    """The wait before the same request is over."""


@frozen
class ContinueDue:
    """The wait before going on is over."""


@frozen
class GraceExpired:
    """Whatever still runs had its moment."""


Event = (
    UserPrompted | Cancelled | HistoryLoaded | Prepared | PreparationFailed | ReasoningArrived | TextArrived | StepFinished | StreamEnded
    | StreamBroke | CallBegan | CallCompleted | HostedCallSeen | CallEnded | OutputCaptured | StepRecorded | CompactionEnded
    | SubtaskEnded | RetryDue | ResampleDue | ContinueDue | GraceExpired
)  # fmt: skip


# ── effects: what the shell must do ──


@frozen
class KeepMessage:
    """Write the user message down."""


@frozen
class ReadHistory:
    """Read the history and report what it holds, as ``HistoryLoaded`` or ``PreparationFailed``."""


@frozen
class BuildRequest:
    """Build the request and give the call its identity, as ``Prepared`` or ``PreparationFailed``."""

    request: Request


@frozen
class Sample:
    """Send the request. ``last_step``: offer no tools, and say so to the model."""

    request: Request
    last_step: bool


@frozen
class AbortStream:
    """Stop reading, and let go of the connection."""


@frozen
class RunTool:
    """Run this local call, once."""

    call: Annotated[str, Opaque]


@frozen
class RunHeldCalls:
    """Run every call of this step that was held back, once."""


@frozen
class DropHeldCalls:
    """Write down that the calls held back were not run."""


@frozen
class AbortCalls:
    """Tell the calls that run to stop."""


@frozen
class MarkOrphans:
    """Write down of every call that still runs that its outcome is unknown. It may have happened."""


@frozen
class RecordStep:
    """Close what is open of the step and write it down: text, reasoning, unfinished call input, finish reason."""


@frozen
class DiscardAttempt:
    """Take the attempt's parts out of the history, so that the next request is the last one again."""


@frozen
class AppendContinue:
    """Mark the step incomplete, and append a message: the answer was interrupted, go on without repeating."""


@frozen
class StartCompaction:
    """Sum the history up."""


@frozen
class AbortCompaction:
    """Stop summing up."""


@frozen
class StartSubtask:
    """Let the child session work."""


@frozen
class AbortSubtask:
    """Stop the child session."""


@frozen
class PublishStatus:
    """Show clients what the session does."""

    status: Status


@frozen
class PublishError:
    """Tell clients and the exit status why the run errored; write it into the message."""

    cause: Cause
    raw: Annotated[str, Opaque]


@frozen
class WarnIncomplete:
    """Log that a step was incomplete, with session, message and the raw finish reason, empty if there was none."""

    raw: Annotated[str, Opaque]


@frozen
class WarnEmpty:
    """Log that a run completes on an answer without a word."""


@frozen
class Finish:
    """The run is over: waiters get their answer."""

    outcome: Outcome


@frozen
class PublishIdle:
    """Show clients that nothing runs."""


@frozen
class StartQueued:
    """A message waits that the run that just ended did not answer: begin its run (``UserPrompted`` from the queue)."""


Effect = (
    KeepMessage | ReadHistory | BuildRequest | Sample | AbortStream | RunTool | RunHeldCalls | DropHeldCalls | AbortCalls | MarkOrphans
    | RecordStep | DiscardAttempt | AppendContinue | StartCompaction | AbortCompaction | StartSubtask | AbortSubtask | PublishStatus
    | PublishError | WarnIncomplete | WarnEmpty | Finish | PublishIdle | StartQueued | StartTimer | StopTimer
)  # fmt: skip
