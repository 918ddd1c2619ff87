"""What a turn loop reads from a provider, what it keeps, and what it hands back."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from typing import Any, Protocol

import attrs

from turnproof.machines.finish_reason import Finish
from turnproof.machines.tool_call import CallPhase
from turnproof.machines.turn_loop_events import PublishError, PublishIdle, PublishStatus, WarnEmpty, WarnIncomplete
from turnproof.machines.turn_loop_words import Cause, Failure, Outcome

# ── what a stream says ──


@attrs.frozen
class TextPart:
    """A piece of text."""

    text: str


@attrs.frozen
class ReasoningPart:
    """A piece of reasoning."""

    text: str


@attrs.frozen
class CallInputPart:
    """The input of a local call has begun."""

    call: str
    tool: str


@attrs.frozen
class CallPart:
    """A local call is complete. ``call`` names it within its stream."""

    call: str
    tool: str
    input: Any


@attrs.frozen
class HostedCallPart:
    """A call that the provider runs itself."""

    call: str
    tool: str
    input: Any


@attrs.frozen
class HostedResultPart:
    """The provider has run it."""

    call: str
    output: Any


@attrs.frozen
class FinishPart:
    """Why the model stopped, in the provider's own word; None: a finish part that names no reason."""

    raw: str | None


StreamPart = TextPart | ReasoningPart | CallInputPart | CallPart | HostedCallPart | HostedResultPart | FinishPart


class StreamError(Exception):
    """A stream broke, or never began. ``retry_after_ms``: the provider asks not to be called for so long; 0: it did not say."""

    def __init__(self, failure: Failure, message: str = "", *, retry_after_ms: int = 0) -> None:
        super().__init__(message or failure.value)
        self.failure, self.retry_after_ms = failure, retry_after_ms


def classify(error: Exception) -> tuple[Failure, int]:
    """What an error of a stream is to the loop, and its hint in milliseconds. What nobody knows would come again: it is fatal."""
    if isinstance(error, StreamError):
        return error.failure, error.retry_after_ms
    return (Failure.RETRYABLE if isinstance(error, (TimeoutError, ConnectionError)) else Failure.FATAL), 0


# ── the history ──


@attrs.frozen
class UserMessage:
    """What a user said."""

    content: Any


@attrs.define
class CallRecord:
    """A call of a step, and how it ended."""

    call: str
    tool: str
    input: Any
    end: CallPhase | None = None
    """None while it runs. ``ORPHAN``: it was run and may have happened; ``NOT_RUN``: it never was."""
    output: Any = None
    """Its result, or the text of its error."""


@attrs.frozen
class Step:
    """What one answer of the model left."""

    text: str
    reasoning: str
    calls: tuple[CallRecord, ...]
    finish: Finish | None
    """None: no finish part came."""


@attrs.frozen
class ContinueNote:
    """The answer before it was interrupted: go on without repeating."""


@attrs.frozen
class Summary:
    """What stands for the history before it."""

    text: str


Message = UserMessage | Step | ContinueNote | Summary


@attrs.frozen
class Request:
    """What the model is asked."""

    messages: tuple[Message, ...]
    tools: tuple[str, ...]
    last_step: bool
    """No tools are offered, and the model is told that this is the last step."""


class Provider(Protocol):
    """A model."""

    def stream(self, request: Request) -> AsyncIterator[StreamPart]:
        """The answer, part by part. Breaks by raising; ``StreamError`` says what the loop should make of it."""


Tool = Callable[[Any], Awaitable[Any]]
"""Runs a call with its input, and returns the result. Raising is a failed call, which the model is told of."""
Tools = Mapping[str, Tool]

Told = PublishStatus | PublishIdle | PublishError | WarnIncomplete | WarnEmpty | StreamPart
"""What a client may want to see: the loop's own effects of telling, and each part of a stream."""


@attrs.frozen
class RunResult:
    """How a run ended."""

    outcome: Outcome
    cause: Cause
    """Why it errored."""
    text: str
    """The text of its last step."""
    output: Any = None
    """The structured output, if one was asked for and captured."""


class PromptRefused(RuntimeError):
    """The loop does not take this message: a person cancelled, and only a person starts it again; or it is closed."""
