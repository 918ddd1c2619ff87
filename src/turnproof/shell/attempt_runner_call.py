"""One tool call of an attempt: the ``tool_execution`` machine around a coroutine that may change the world."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, Protocol

from turnproof.machines.embedded_attempt_events import ToolEnded, ToolRequested
from turnproof.machines.tool_execution import (
    ENDED,
    HANDED,
    MACHINE,
    AskToRun,
    Began,
    CallAdmitted,
    CallAsked,
    Event,
    Execute,
    Finished,
    Flushed,
    Mutation,
    NeverBegan,
    ReportEnd,
    SignalTool,
    StopRequested,
)
from turnproof.shell.attempt_runner_words import AttemptOver, NotStarted
from turnproof.shell.common import Hooks, Tasks


class Counting(Protocol):
    """The attempt, as far as a call knows it."""

    def request_tool(self, event: ToolRequested) -> bool:
        """Count the call; false if the attempt is over."""

    def tool_ended(self, call: Call, event: ToolEnded) -> None:
        """The call is over."""


class Call:
    """Runs ``work`` at most once, counted by its attempt before it begins."""

    def __init__(self, attempt: Counting, hooks: Hooks, tasks: Tasks, identity: str, tool: str, work: Callable[[], Awaitable[Any]]) -> None:
        self.identity, self.tool = identity, tool
        self._attempt, self._tasks, self._work = attempt, tasks, work
        self._task: asyncio.Task[Any] | None = None
        self._runner = hooks.runner(MACHINE, self, identity)

    async def run(self, *, marked: bool, listed: bool, mutation: Mutation) -> Any:
        """The tool's result, or what it raises. Raises :class:`AttemptOver` if it is not run.

        A caller that is cancelled no longer waits; whether the tool is told to stop, its attempt says.
        """
        self.post(CallAsked(marked, listed, mutation, self.tool))
        if self._task is None:
            raise AttemptOver(f"{self.tool} is not run: the attempt is over")
        return await asyncio.shield(self._task)

    def admit(self) -> None:
        """The attempt has counted it."""
        self.post(CallAdmitted())
        self.post(Flushed())

    def stop(self) -> None:
        """The attempt's controller was aborted."""
        self.post(StopRequested())

    def post(self, event: Event) -> None:
        """Apply an event."""
        self._runner.post(event)

    async def _execute(self) -> Any:
        self.post(Began())
        return await self._work()

    def _ended(self, task: asyncio.Task[Any]) -> None:
        if self._runner.state.phase is HANDED:
            self.post(NeverBegan())
        else:
            self.post(Finished(_gave_back(task), Mutation.NONE))

    # ── effects ──

    def ask_to_run(self, effect: AskToRun) -> None:
        """Let the attempt count it."""
        if not self._attempt.request_tool(ToolRequested(self.identity, effect.side, effect.tool)):
            self.post(StopRequested())

    def execute(self, effect: Execute) -> None:
        """Hand the input over."""
        self._task = self._tasks.own(self._execute(), f"tool {self.tool}")
        self._task.add_done_callback(self._ended)

    def signal_tool(self, effect: SignalTool) -> None:
        """Cancel the tool's task. It may obey, late or never."""
        if self._task is not None:
            self._task.cancel()

    def report_end(self, effect: ReportEnd) -> None:
        """Let the attempt count it down."""
        self._attempt.tool_ended(self, ToolEnded(effect.side, effect.outcome))

    @property
    def over(self) -> bool:
        """Whether it has ended."""
        return self._runner.state.phase is ENDED


def _gave_back(task: asyncio.Task[Any]) -> bool:
    return not task.cancelled() and isinstance(task.exception(), NotStarted)
