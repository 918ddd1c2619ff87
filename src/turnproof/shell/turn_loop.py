"""The turn loop on asyncio: any provider, tools as coroutines, bounded tries with waits, cancel, and messages that join a run.

Theory of operation
===================

One :class:`TurnLoop` is one session: a ``turn_loop`` machine, and a ``tool_call`` machine for each call. A provider is an async iterator of
parts; the raw finish reason of its protocol becomes a word through the tables of ``finish_reason``, and a stream that simply closes is
never a completion. What happened is told to the machine; the requests, tools and waits it asks for are made. The shell keeps what no
machine carries: the history, the request that may be repeated byte for byte, and who waits for which run.

Two rules of this file: nothing is awaited between reading and storing; and whoever waits is assigned to a run when the step is stored,
not when its effects are performed, so that a message sent from inside a callback is answered by its own run.
"""

from __future__ import annotations

import asyncio
import itertools
import time
from collections import deque
from collections.abc import Awaitable, Callable, Mapping
from enum import Enum
from functools import partial
from typing import Any

from turnproof.machines import tool_call
from turnproof.machines import turn_loop_events as events
from turnproof.machines.finish_reason import Protocol, Runtime
from turnproof.machines.kernel import Answer, Refused, Taken
from turnproof.machines.tool_call import Dispatch, Permission
from turnproof.machines.turn_loop import MACHINE
from turnproof.machines.turn_loop_words import (
    RESTING,
    Cause,
    CompactionResult,
    Failure,
    Outcome,
    Phase,
    Room,
    Source,
    Task,
    Wanted,
)
from turnproof.machines.turn_loop_words import Request as Kind
from turnproof.machines.turn_loop_words import TurnLoop as State
from turnproof.shell.common import Hooks, Tasks, Trace, awaited
from turnproof.shell.handlers import Failure as HandlerFailure
from turnproof.shell.handlers import log_failure
from turnproof.shell.runner import TraceStep
from turnproof.shell.turn_loop_call import Asker
from turnproof.shell.turn_loop_history import History
from turnproof.shell.turn_loop_stream import Stream
from turnproof.shell.turn_loop_words import (
    CallRecord,
    Message,
    PromptRefused,
    Provider,
    Request,
    RunResult,
    StreamError,
    Told,
    Tools,
    classify,
)

Waiting = asyncio.Future[RunResult]
Messages = tuple[Message, ...]


MACHINES = (MACHINE, tool_call.MACHINE)
"""Every machine of a loop, for a ``TraceWriter``."""


class TurnLoop:
    """One session of a coding agent. Build it inside a running event loop.

    ``key``: names the session in traces, and begins every identity; give each loop of a process its own.
    ``provider``, ``tools``: the model, and what it may call, by name.
    ``protocol``, ``runtime``: how the provider's finish reasons are read. ``hold_calls``: calls run when a finish part asks for them.
    ``steps``: the most steps of a run; 0 for no limit.
    ``read``: reads the history for a task and for room; enough room and no task unless given.
    ``compact``: gives the history that takes the place of the one it is given, None if it could not. ``subtask``: lets a child work.
    ``structured``: the name of the call whose input is the structured output that every run must give.
    ``permission``: what the rules say of a call; ``ask`` asks a person, and without it the answer is no.
    ``tell``: told of parts, statuses, warnings and errors.
    ``classify``: what an error of a stream is to the loop, and how many milliseconds the provider wants to be left alone.
    ``silence_ms``: a stream that says nothing for so long counts as broken; 0: silence is no event.
    ``jitter``: milliseconds added to the moment from which a wait counts.
    ``durations_ms``, ``on_error``, ``trace``, ``timestamp``: as a ``Runner`` has them, for all its machines.
    """

    def __init__(
        self,
        provider: Provider,
        tools: Tools | None = None,
        *,
        key: str = "",
        protocol: Protocol = Protocol.AI_SDK,
        runtime: Runtime = Runtime.AI_SDK,
        hold_calls: bool = False,
        steps: int = 0,
        read: Callable[[Messages], tuple[Task, Room]] | None = None,
        compact: Callable[[Messages], Awaitable[Messages | None]] | None = None,
        subtask: Callable[[Messages], Awaitable[Message | None]] | None = None,
        structured: str = "",
        permission: Callable[[CallRecord], Permission] | None = None,
        ask: Asker | None = None,
        tell: Callable[[Told], object] | None = None,
        classify: Callable[[Exception], tuple[Failure, int]] = classify,
        silence_ms: int = 0,
        jitter: Callable[[], int] | None = None,
        durations_ms: Mapping[Enum, int] | None = None,
        on_error: Callable[[HandlerFailure], object] = log_failure,
        trace: Trace | None = None,
        timestamp: Callable[[], float] = time.time,
    ) -> None:
        self.hooks = Hooks(durations_ms=durations_ms or {}, on_error=on_error, trace=trace, timestamp=timestamp)
        self.hooks.check_durations(MACHINE)
        self._loop = asyncio.get_running_loop()
        self.tasks = Tasks(on_error, "turn_loop", key)
        self._read, self._compact, self._subtask, self._tell, self._jitter = read, compact, subtask, tell, jitter
        self._tools, self._steps, self._structured = tuple(tools or ()), steps, structured
        self.key = key
        self.history = History()
        """Every message, and the step that is being made."""
        self._numbers = itertools.count(1)
        self._incoming: deque[object] = deque()
        self._unread: list[Waiting] = []
        self._joined: list[Waiting] = []
        self._finishing: deque[tuple[list[Waiting], State]] = deque()
        self._request = Request((), (), False)
        self._output: Any = None
        self._working: asyncio.Task[None] | None = None
        self._closing: asyncio.Task[None] | None = None
        self._stream = Stream(
            self, provider, dict(tools or {}), protocol, runtime, hold_calls=hold_calls, structured=structured,
            permission=permission, ask=ask, classify=classify, silence_ms=silence_ms,
        )  # fmt: skip
        self._runner = self.hooks.runner(MACHINE, self, key, trace=self._stepped)

    # ── what a client does ──

    @property
    def state(self) -> State:
        """The machine's state."""
        return self._runner.state

    def send(self, content: object, *, source: Source = Source.PERSON) -> Waiting:
        """Take a message: it begins a run, or joins the one that is on. The future has the result of the run that read it.

        Raises :class:`PromptRefused` for a harness after a person cancelled, and after :meth:`aclose`.
        """
        if self._closing is not None:
            raise PromptRefused(f"turn loop {self.key!r} is closed")
        waiting: Waiting = self._loop.create_future()
        self._unread.append(waiting)
        self._incoming.append(content)
        answer = self.post(events.UserPrompted(self._fresh("run"), source, self._steps))
        if isinstance(answer, Refused):
            self._unread.remove(waiting)
            self._incoming.remove(content)
            raise PromptRefused(answer.why)
        return waiting

    async def prompt(self, content: object, *, source: Source = Source.PERSON) -> RunResult:
        """Take a message, and wait for the result of the run that read it. A caller that is cancelled no longer waits; the run goes on."""
        return await self.send(content, source=source)

    def cancel(self) -> bool:
        """A person wants it to stop. False if nothing ran and nothing waited."""
        return isinstance(self.post(events.Cancelled()), Taken)

    async def aclose(self) -> None:
        """Cancel the run, every task and every timer, and take no message any more.

        May be called again, and by several; cancelling a caller cancels its waiting, not the closing.
        """
        if self._closing is None:
            self._closing = self._loop.create_task(self._close(), name=f"close turn_loop {self.key}")
        await asyncio.shield(self._closing)

    async def _close(self) -> None:
        self.post(events.Cancelled())
        await self.tasks.aclose()
        await self._runner.aclose()
        for waiting in (*self._unread, *self._joined):
            waiting.cancel()

    async def __aenter__(self) -> TurnLoop:
        return self

    async def __aexit__(self, *exception: object) -> None:
        await self.aclose()

    # ── steps ──

    @property
    def now_ms(self) -> int:
        """The shell's clock, in milliseconds."""
        return self._runner.now_ms

    def captured(self, output: Any) -> None:
        """The structured output is here."""
        self._output = output

    def post(self, event: events.Event) -> Answer[State, events.Effect] | None:
        """Apply an event; None if the loop is closed."""
        return None if self._runner.closed else self._runner.post(event)

    def _stepped(self, step: TraceStep[State, events.Event, events.Effect]) -> None:
        """Assign who waits: a message that the run has read, or will not read, is answered with the run."""
        if not isinstance(step.answer, Taken):
            return
        if not step.post.prompted:
            self._joined += self._unread
            self._unread = []
        if any(isinstance(effect, events.Finish) for effect in step.effects):
            self._finishing.append((self._joined, step.post))
            self._joined = []
        elif step.post.phase in RESTING and self._joined:  # its message was taken out of the queue before its own run began
            self._resolve(self._joined, RunResult(Outcome.ABORTED, Cause.NONE, ""))
            self._joined = []

    def _fresh(self, what: str) -> str:
        return f"{self.key}{what}-{next(self._numbers)}"

    def report(self, told: Told) -> None:
        """Tell whoever listens."""
        if self._tell is not None:
            try:
                self._tell(told)
            except Exception as error:
                self.tasks.report(error, told)

    # ── effects: the history ──

    def keep_message(self, effect: events.KeepMessage) -> None:
        """Write it down."""
        self.history.keep(self._incoming.popleft())

    def read_history(self, effect: events.ReadHistory) -> None:
        """What it holds decides the next thing to do."""
        generation = self.state.generation
        try:
            task, room = (Task.NONE, Room.ENOUGH) if self._read is None else self._read(self.history.messages)
        except Exception:
            self.post(events.PreparationFailed(generation))
            raise
        self.post(events.HistoryLoaded(generation, task, room))

    def build_request(self, effect: events.BuildRequest) -> None:
        """A new request holds the whole history; the same one is not touched."""
        if effect.request is Kind.NEW:
            self._request = Request(self.history.messages, self._tools, False)
        self.history.begin_step(len(self._request.messages))
        self.post(events.Prepared(self.state.generation, self._fresh("call")))

    def record_step(self, effect: events.RecordStep) -> None:
        """Close what is open, and write the step down."""
        generation = self.state.generation
        wanted = Wanted.STRUCTURED if self._structured else Wanted.NOTHING if self.history.follows_results() else Wanted.ANSWER
        self._stream.to_calls(tool_call.StepClosed())
        self.history.record()
        if self.state.phase is Phase.JUDGING:
            now = self.now_ms + (0 if self._jitter is None else self._jitter())
            self.post(events.StepRecorded(generation, wanted, now))

    def discard_attempt(self, effect: events.DiscardAttempt) -> None:
        """The step leaves no trace."""
        self.history.discard()

    def append_continue(self, effect: events.AppendContinue) -> None:
        """The step stays, and is marked as interrupted."""
        self.history.append_continue()

    # ── effects: work ──

    def sample(self, effect: events.Sample) -> None:
        """Send the request."""
        if effect.last_step and effect.request is Kind.NEW:
            self._request = Request(self._request.messages, (), True)
        self._stream.start(self.state.generation, self._request)

    def abort_stream(self, effect: events.AbortStream) -> None:
        """Let go of the connection."""
        self._stream.abort()

    def run_tool(self, effect: events.RunTool) -> None:
        """Run it, once."""
        self._stream.dispatch(effect.call, Dispatch.AT_ONCE)

    def run_held_calls(self, effect: events.RunHeldCalls) -> None:
        """A finish part asks for them."""
        self._stream.to_calls(tool_call.Released())

    def drop_held_calls(self, effect: events.DropHeldCalls) -> None:
        """They were not run."""
        self._stream.to_calls(tool_call.StepClosed())

    def abort_calls(self, effect: events.AbortCalls) -> None:
        """Tell them to stop."""
        self._stream.to_calls(tool_call.StopRequested())

    def mark_orphans(self, effect: events.MarkOrphans) -> None:
        """What still runs may have happened."""
        self._stream.to_calls(tool_call.StepClosed())

    def start_compaction(self, effect: events.StartCompaction) -> None:
        """Sum the history up."""
        ended = partial(self.post, events.CompactionEnded(self.state.generation, CompactionResult.FAILED))
        self._working = self.tasks.start(self._sum_up(self.state.generation), "compaction", cancelled=ended)

    def abort_compaction(self, effect: events.AbortCompaction) -> None:
        """Stop it."""
        self._stop_work()

    def start_subtask(self, effect: events.StartSubtask) -> None:
        """Let a child work."""
        ended = partial(self.post, events.SubtaskEnded(self.state.generation))
        self._working = self.tasks.start(self._let_work(self.state.generation), "subtask", cancelled=ended)

    def abort_subtask(self, effect: events.AbortSubtask) -> None:
        """Stop it."""
        self._stop_work()

    def _stop_work(self) -> None:
        if self._working is not None:
            self._working.cancel()

    async def _sum_up(self, generation: str) -> None:
        result = CompactionResult.FAILED
        try:
            before = self.history.messages
            summary = None if self._compact is None else await awaited(self._compact(before))
            result = CompactionResult.SUMMARY if summary else CompactionResult.EMPTY
            if summary:
                self.history.replace(len(before), summary)
        except StreamError as error:
            result = CompactionResult.TOO_LONG if error.failure is Failure.OVERFLOW else CompactionResult.FAILED
        except Exception as error:
            self.tasks.report(error)
        self.post(events.CompactionEnded(generation, result))

    async def _let_work(self, generation: str) -> None:
        try:
            result = None if self._subtask is None else await awaited(self._subtask(self.history.messages))
            if result is not None:
                self.history.add(result)
        except Exception as error:
            self.tasks.report(error)
        self.post(events.SubtaskEnded(generation))

    # ── effects: what everybody is told ──

    def finish(self, effect: events.Finish) -> None:
        """Who waited gets the result."""
        waiting, state = self._finishing.popleft()
        result = RunResult(effect.outcome, state.cause, self.history.last_text(), self._output)
        self._output = None
        self._stream.run_over()
        self._resolve(waiting, result)

    def _resolve(self, waiting: list[Waiting], result: RunResult) -> None:
        for one in waiting:
            if not one.done():
                one.set_result(result)

    def start_queued(self, effect: events.StartQueued) -> None:
        """A message waits for its own run."""
        self.post(events.UserPrompted(self._fresh("run"), Source.QUEUE, self._steps))

    def publish_status(self, effect: events.PublishStatus) -> None:
        """To clients."""
        self.report(effect)

    def publish_error(self, effect: events.PublishError) -> None:
        """To clients."""
        self.report(effect)

    def publish_idle(self, effect: events.PublishIdle) -> None:
        """To clients."""
        self.report(effect)

    def warn_incomplete(self, effect: events.WarnIncomplete) -> None:
        """To the log."""
        self.report(effect)

    def warn_empty(self, effect: events.WarnEmpty) -> None:
        """To the log."""
        self.report(effect)
