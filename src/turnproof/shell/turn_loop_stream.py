"""Reads the stream of a provider for a turn loop, and runs the calls in it."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from functools import partial
from typing import Any
from typing import Protocol as Interface

from turnproof.machines import tool_call
from turnproof.machines import turn_loop_events as events
from turnproof.machines.finish_reason import Call as CallKind
from turnproof.machines.finish_reason import Protocol, Runtime, normalize, table
from turnproof.machines.kernel import Answer, Taken
from turnproof.machines.tool_call import Dispatch, Permission
from turnproof.machines.turn_loop_words import CallResult, Failure, Phase
from turnproof.machines.turn_loop_words import TurnLoop as State
from turnproof.shell.common import Hooks, Tasks
from turnproof.shell.turn_loop_call import Asker, Call
from turnproof.shell.turn_loop_history import Draft, History
from turnproof.shell.turn_loop_words import (
    CallInputPart,
    CallPart,
    CallRecord,
    FinishPart,
    HostedCallPart,
    HostedResultPart,
    Provider,
    ReasoningPart,
    Request,
    StreamPart,
    TextPart,
    Told,
    Tools,
)

RESULTS = {tool_call.DONE: CallResult.DONE, tool_call.REJECTED: CallResult.REJECTED}
"""How the end of a call is told to the loop; every other end is FAILED."""


class Session(Interface):
    """The loop, as far as its stream knows it."""

    hooks: Hooks
    tasks: Tasks
    history: History

    @property
    def state(self) -> State:
        """The machine's state."""

    @property
    def now_ms(self) -> int:
        """The shell's clock, in milliseconds."""

    def post(self, event: events.Event) -> Answer[State, events.Effect] | None:
        """Apply an event; None if the loop is closed."""

    def report(self, told: Told) -> None:
        """Tell whoever listens."""

    def captured(self, output: Any) -> None:
        """The structured output is here."""


class Stream:
    """The stream of the present model call, and the calls of its step."""

    def __init__(
        self,
        session: Session,
        provider: Provider,
        tools: Tools,
        protocol: Protocol,
        runtime: Runtime,
        *,
        hold_calls: bool,
        structured: str,
        permission: Callable[[CallRecord], Permission] | None,
        ask: Asker | None,
        classify: Callable[[Exception], tuple[Failure, int]],
        silence_ms: int,
    ) -> None:
        table(protocol, runtime)
        self._session, self._provider, self._tools = session, provider, tools
        self._protocol, self._runtime, self._hold, self._structured = protocol, runtime, hold_calls, structured
        self._permission, self._ask, self._classify, self._silence_ms = permission, ask, classify, silence_ms
        self._calls: dict[str, Call] = {}
        self._made: list[str] = []
        self._reading: asyncio.Task[None] | None = None

    def start(self, generation: str, request: Request) -> None:
        """Send a request, and read the answer as that model call."""
        self._calls = {}
        ended = partial(self._session.post, events.StreamEnded(generation))
        self._reading = self._session.tasks.start(self._stream(generation, request), "stream", cancelled=ended)

    def abort(self) -> None:
        """Let go of the connection."""
        if self._reading is not None:
            self._reading.cancel()

    def dispatch(self, call: str, dispatch: Dispatch) -> None:
        """Hand a complete call to its machine."""
        self._dispatch(self._calls[call], dispatch)

    def to_calls(self, event: tool_call.Event) -> None:
        """Tell every call of the step; its machine knows whether it is meant."""
        for call in list(self._calls.values()):
            call.post(event)

    def run_over(self) -> None:
        """Calls are equal only within a run."""
        self._made = []

    async def _stream(self, call: str, request: Request) -> None:
        try:
            parts = self._provider.stream(request)
            try:
                while self._reads(call):  # a stream that swallows its cancellation is not read on
                    async with asyncio.timeout(self._silence_ms / 1000 if self._silence_ms else None):
                        part = await anext(parts, None)
                    if part is None:
                        break
                    self._part(call, part)
            finally:
                await _close(parts)
            self._session.post(events.StreamEnded(call))
        except Exception as error:
            failure, after_ms = self._classified(error)
            self._session.post(events.StreamBroke(call, failure, self._session.now_ms + after_ms if after_ms else 0))

    def _reads(self, generation: str) -> bool:
        """Whether the loop reads the stream of that model call."""
        return self._session.state.generation == generation and self._session.state.phase is Phase.STREAMING

    def _classified(self, error: Exception) -> tuple[Failure, int]:
        try:
            return self._classify(error)
        except Exception as second:
            self._session.tasks.report(second)
            return Failure.FATAL, 0

    def _permitted(self, record: CallRecord) -> Permission:
        """What the rules say; rules that raise say no."""
        try:
            return Permission.ALLOWED if self._permission is None else self._permission(record)
        except Exception as error:
            self._session.tasks.report(error)
            return Permission.DENIED

    def _part(self, generation: str, part: StreamPart) -> None:
        draft = self._session.history.draft
        if draft is None or not self._reads(generation):
            return
        self._session.report(part)
        match part:
            case TextPart(text):
                draft.text += text
                if text.strip():
                    self._session.post(events.TextArrived(generation))
            case ReasoningPart(text):
                draft.reasoning += text
                if text.strip():
                    self._session.post(events.ReasoningArrived(generation))
            case CallInputPart(call, tool):
                if self._call(draft, generation, call, tool, None) is not None:
                    self._session.post(events.CallBegan(generation))
            case CallPart(call, tool, given):
                self._complete(draft, generation, call, tool, given)
            case HostedCallPart(call, tool, given):
                made = self._call(draft, generation, call, tool, given)
                if made is not None and isinstance(self._session.post(events.HostedCallSeen(generation)), Taken):
                    made.complete(Dispatch.BY_PROVIDER, Permission.ALLOWED, 0)
            case HostedResultPart(call, output):
                known = self._calls.get(f"{generation}:{call}")
                if known is not None:
                    known.hosted_result(output)
            case FinishPart(raw):
                kind = CallKind.FUNCTION if draft.calls else CallKind.NONE
                draft.finish = normalize(self._protocol, raw, runtime=self._runtime, call=kind)
                self._session.post(events.StepFinished(generation, draft.finish.reason, raw or ""))

    def _call(self, draft: Draft, generation: str, call: str, tool: str, given: Any) -> Call | None:
        """The call of that name, if its input is not complete; None for one that was complete before."""
        key = f"{generation}:{call}"
        known = self._calls.get(key)
        if known is None:
            record = CallRecord(call, tool, given)

            def tell(end: tool_call.CallPhase) -> None:
                self._session.post(events.CallEnded(generation, RESULTS.get(end, CallResult.FAILED)))

            known = self._calls[key] = Call(self._session.hooks, self._session.tasks, key, record, self._tools, self._ask, tell)
            draft.calls.append(record)
        known.record.input = given
        return known if known.writing else None

    def _complete(self, draft: Draft, generation: str, name: str, tool: str, given: Any) -> None:
        call = self._call(draft, generation, name, tool, given)
        if call is None:
            return
        if tool == self._structured:
            del self._calls[f"{generation}:{name}"]
            call.record.end = tool_call.DONE  # its input is all there is to do: it is no call that closing the step finds open
            self._session.captured(given)
            self._session.post(events.OutputCaptured(generation))
            return
        answer = self._session.post(events.CallCompleted(generation, self._hold, f"{generation}:{name}"))
        if isinstance(answer, Taken) and not any(isinstance(effect, events.RunTool) for effect in answer.effects):
            self._dispatch(call, Dispatch.AT_FINISH)

    def _dispatch(self, call: Call, dispatch: Dispatch) -> None:
        record = call.record
        made = _text(record)
        equal_before = self._made.count(made)
        self._made.append(made)
        call.complete(dispatch, self._permitted(record), equal_before)


def _text(record: CallRecord) -> str:
    """Equal calls have equal texts."""
    try:
        return json.dumps([record.tool, record.input], sort_keys=True, default=repr)
    except (TypeError, ValueError):
        return repr((record.tool, record.input))


async def _close(parts: AsyncIterator[StreamPart]) -> None:
    close = getattr(parts, "aclose", None)
    if close is not None:
        await close()
