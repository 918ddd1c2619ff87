"""One tool call of a turn loop: the ``tool_call`` machine around the coroutine that runs it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from turnproof.machines.tool_call import (
    HOSTED,
    MACHINE,
    WRITING,
    Answered,
    Ask,
    Broke,
    CallPhase,
    Dispatch,
    Event,
    Execute,
    InputCompleted,
    Interrupt,
    Permission,
    Succeeded,
    TellLoop,
    Withdraw,
    WriteEnd,
)
from turnproof.shell.common import Hooks, Tasks
from turnproof.shell.turn_loop_words import CallRecord, Tools

Asker = Callable[[CallRecord], Awaitable[bool]]
"""Asks a person whether a call may run."""


class Call:
    """Runs a call at most once, and writes down how it ended."""

    def __init__(
        self, hooks: Hooks, tasks: Tasks, key: str, record: CallRecord, tools: Tools, ask: Asker | None, tell: Callable[[CallPhase], None]
    ) -> None:
        self.record = record
        self._tasks, self._tools, self._ask, self._tell = tasks, tools, ask, tell
        self._task: asyncio.Task[Any] | None = None
        self._question: asyncio.Task[bool] | None = None
        self._runner = hooks.runner(MACHINE, self, key)

    @property
    def writing(self) -> bool:
        """Its input is not complete."""
        return self._runner.state.phase is WRITING

    def complete(self, dispatch: Dispatch, permission: Permission, equal_before: int) -> None:
        """Its input is complete."""
        if permission is Permission.DENIED:
            self.record.output = "denied by the rules"
        self.post(InputCompleted(dispatch, permission, equal_before))

    def hosted_result(self, output: Any) -> None:
        """The provider has run it."""
        if self._runner.state.phase is HOSTED:
            self.record.output = output
        self.post(Succeeded())

    def post(self, event: Event) -> None:
        """Apply an event."""
        self._runner.post(event)

    async def _execute(self) -> Any:
        tool = self._tools.get(self.record.tool)
        if tool is None:
            raise LookupError(f"no tool {self.record.tool!r}; the tools: {', '.join(self._tools) or 'none'}")
        return await tool(self.record.input)

    def _ended(self, task: asyncio.Task[Any]) -> None:
        error = asyncio.CancelledError("stopped; what it did until then may have happened") if task.cancelled() else task.exception()
        if self.record.end is None:
            self.record.output = task.result() if error is None else f"{type(error).__name__}: {error}"
        self.post(Succeeded() if error is None else Broke())

    def _answered(self, question: asyncio.Task[bool]) -> None:
        if question.cancelled():
            return
        error = question.exception()
        if error is not None:
            self._tasks.report(error)
        self.post(Answered(error is None and question.result()))

    # ── effects ──

    def execute(self, effect: Execute) -> None:
        """Run the tool."""
        self._task = self._tasks.own(self._execute(), f"tool {self.record.tool}")
        self._task.add_done_callback(self._ended)

    def ask(self, effect: Ask) -> None:
        """Ask a person; where there is none, the answer is no."""
        if self._ask is None:
            self.post(Answered(False))
        else:
            self._question = self._tasks.own(_asked(self._ask, self.record), f"question about {self.record.tool}")
            self._question.add_done_callback(self._answered)

    def withdraw(self, effect: Withdraw) -> None:
        """Take the question back."""
        if self._question is not None:
            self._question.cancel()

    def interrupt(self, effect: Interrupt) -> None:
        """Cancel the tool's task. It may obey, late or never."""
        if self._task is not None:
            self._task.cancel()

    def write_end(self, effect: WriteEnd) -> None:
        """Into the history."""
        self.record.end = effect.end

    def tell_loop(self, effect: TellLoop) -> None:
        """The loop counts it down."""
        self._tell(effect.end)


async def _asked(ask: Asker, record: CallRecord) -> bool:
    return await ask(record)
