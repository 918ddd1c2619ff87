"""What the shells of several machines share: how their runners are built, the tasks they own, and a signal that fires once.

A composed shell performs each effect by an ordinary function that sends the event of another machine. So one call from outside runs to
completion through all of them: nobody ever sees an operation that is released while its slot is held.
"""

from __future__ import annotations

import asyncio
import inspect
import time
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from enum import Enum
from functools import partial
from typing import Any, Generic, TypeVar, cast

import attrs

from turnproof.machines.kernel import Machine
from turnproof.shell.handlers import Failure, Performed, log_failure
from turnproof.shell.runner import GRACE_MS, Runner, RunnerClosed, TraceStep

S = TypeVar("S")
E = TypeVar("E")
F = TypeVar("F")
R = TypeVar("R")

Trace = Callable[[TraceStep[Any, Any, Any]], object]
"""Told of each step of each machine. ``Any`` because the machines are different ones; ``turnproof.traces.TraceWriter`` is a ``Trace``."""


def only(trace: Trace, *machines: Machine[Any, Any, Any]) -> Trace:
    """A hook that hands on the steps of these machines: a composed shell has several, and a monitor or writer may know some of them."""
    names = frozenset(machine.name for machine in machines)

    def told(step: TraceStep[Any, Any, Any]) -> None:
        if step.machine in names:
            trace(step)

    return told


@attrs.frozen(kw_only=True)
class Hooks:
    """What every runner of a composed shell is given."""

    durations_ms: Mapping[Enum, int] = attrs.field(factory=dict)
    """Other durations than the machines' own, in milliseconds; each machine takes those of its timers."""
    on_error: Callable[[Failure], object] = log_failure
    trace: Trace | None = None
    timestamp: Callable[[], float] = time.time

    def runner(
        self, machine: Machine[S, E, F], handlers: object, key: str, *, trace: Callable[[TraceStep[S, E, F]], object] | None = None
    ) -> Runner[S, E, F]:
        """A runner of ``machine`` with these hooks. ``trace`` is told of each step before :attr:`trace` is."""
        timers = {rule.timer for rule in machine.timers}
        return Runner(
            machine,
            handlers,
            key=key,
            durations_ms={timer: ms for timer, ms in self.durations_ms.items() if timer in timers},
            on_error=self.on_error,
            trace=self.trace if trace is None else self._both(trace),
            timestamp=self.timestamp,
        )

    def _both(self, first: Callable[[TraceStep[S, E, F]], object]) -> Callable[[TraceStep[S, E, F]], object]:
        second = self.trace
        if second is None:
            return first

        def told(step: TraceStep[S, E, F]) -> None:
            first(step)
            second(step)

        return told

    def check_durations(self, *machines: Machine[Any, Any, Any]) -> None:
        """Raise ``ValueError`` for a duration of a timer that none of ``machines`` has, or that is not positive."""
        known = {rule.timer for machine in machines for rule in machine.timers}
        for timer, duration in self.durations_ms.items():
            if timer not in known:
                names = ", ".join(sorted(f"{type(t).__name__}.{t.name}" for t in known))
                raise ValueError(f"durations_ms: {timer} is no timer of {', '.join(m.name for m in machines)}; they have {names}")
            if duration <= 0:
                raise ValueError(f"durations_ms: {timer.name} is {duration} ms, expected more than 0")


class Tasks:
    """The tasks of a shell: each is named, its failure reported once, and closing leaves none."""

    def __init__(self, on_error: Callable[[Failure], object], machine: str, key: str) -> None:
        self._on_error, self._machine, self._key = on_error, machine, key
        self._running: set[asyncio.Task[Any]] = set()

    def start(
        self, work: Coroutine[Any, Any, R], name: str, effect: object = None, *, cancelled: Callable[[], object] | None = None
    ) -> asyncio.Task[R]:
        """Run ``work`` as a task of its own. What it raises is reported with ``effect``.

        ``cancelled``: called once it ended by its cancellation. A task that is cancelled before its first step runs none of its own code,
        no ``finally`` either; so what must be told of its end is told here.
        """
        task = asyncio.get_running_loop().create_task(work, name=f"{self._machine} {self._key}: {name}")
        self._running.add(task)
        task.add_done_callback(partial(self._ended, effect))
        if cancelled is not None:
            task.add_done_callback(partial(self._cancelled, cancelled))
        return task

    def own(self, work: Coroutine[Any, Any, R], name: str) -> asyncio.Task[R]:
        """As :meth:`start`, for a task that somebody waits for, who gets what it raises."""
        task = asyncio.get_running_loop().create_task(work, name=f"{self._machine} {self._key}: {name}")
        self._running.add(task)
        task.add_done_callback(self._over)
        return task

    def perform(self, result: Performed, name: str, effect: object = None) -> None:
        """Let what a function of the user's returned run on, if it is to be awaited. Never pauses the effects that follow."""
        if result is not None and inspect.isawaitable(result):
            self.start(awaited(result), name, effect)

    def report(self, error: BaseException, effect: object = None) -> None:
        """Report what a function of the user's raised."""
        self._on_error(Failure(self._machine, self._key, effect, error))

    async def aclose(self, *, grace_ms: int = GRACE_MS) -> None:
        """Cancel them all but the caller's own, and wait ``grace_ms`` milliseconds; who is not over then is reported."""
        tasks = self._running - {cast("asyncio.Task[Any]", asyncio.current_task())}
        for task in tasks:
            task.cancel()
        if tasks:
            _, left = await asyncio.wait(tasks, timeout=grace_ms / 1000)
            for task in left:
                self.report(TimeoutError(f"{task.get_name()} ignored its cancellation for {grace_ms:,} ms"))

    @staticmethod
    def _cancelled(told: Callable[[], object], task: asyncio.Task[Any]) -> None:
        if task.cancelled():
            told()

    def _over(self, task: asyncio.Task[Any]) -> None:
        self._running.discard(task)
        if not task.cancelled():
            task.exception()  # seen: whoever waits, if anybody still does, gets it

    def _ended(self, effect: object, task: asyncio.Task[Any]) -> None:
        self._running.discard(task)
        error = None if task.cancelled() else task.exception()
        if error is not None and not isinstance(error, RunnerClosed):
            self.report(error, effect)


async def awaited(result: Awaitable[R]) -> R:
    """``result`` as a coroutine, which a task needs. A future is somebody else's: it outlives the task's cancellation."""
    return await (asyncio.shield(result) if isinstance(result, asyncio.Future) else result)


class Signal(Generic[R]):
    """Something that fires once, with a reason: what is running listens to it, and what is late looks at it."""

    __slots__ = ("_listeners", "reason")

    def __init__(self) -> None:
        self.reason: R | None = None
        """Why it fired; None while it has not."""
        self._listeners: list[Callable[[R], object]] = []

    @property
    def fired(self) -> bool:
        """Whether it has fired."""
        return self.reason is not None

    def listen(self, listener: Callable[[R], object]) -> Callable[[], None]:
        """Call ``listener`` with the reason when it fires, or now if it has. Returns what takes the listener out again."""
        if self.reason is not None:
            listener(self.reason)
        else:
            self._listeners.append(listener)
        return partial(self._forget, listener)

    def fire(self, reason: R) -> None:
        """Fire, once. Every listener is called; what they raise is raised after the last, as an ``ExceptionGroup``."""
        if self.reason is not None:
            return
        self.reason = reason
        listeners, self._listeners = self._listeners, []
        errors: list[Exception] = []
        for listener in listeners:
            try:
                listener(reason)
            except Exception as error:
                errors.append(error)
        if errors:
            raise ExceptionGroup(f"listeners of a signal that fired for {reason}", errors)

    def _forget(self, listener: Callable[[R], object]) -> None:
        if listener in self._listeners:
            self._listeners.remove(listener)
