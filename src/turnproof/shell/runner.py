"""One instance of one machine on asyncio: decide, store, then act.

Theory of operation
===================

:meth:`Runner.post` is the one function that applies an event. It steps the machine, stores the state, performs the timer effects and
puts the other effects into a queue: all that without an ``await`` and without calling anybody, so nobody ever sees a state
whose timers are not armed. Then it performs the queue, first in first out.

* **An event from inside** (out of a handler, a signal listener, a timer) is answered at once, against the state that is
  already stored; its effects wait until those before it are performed. So effects run to completion in the order of the steps, and a
  backend that calls ``abort`` from inside ``cancel`` is refused, not queued behind itself.
* **A coroutine function as handler** runs in a task of the runner's own. The next effect is performed when that task made its first
  step, not when it ended: order is the order of starting. A handler that hangs therefore delays no release and no timer.
* **A handler that raises** is reported (``on_error``); the step stands and the later effects are performed.
* **Cancelling** a caller that awaits :meth:`Runner.send` cancels its waiting. The step stands, its effects and timers live on.

Two rules of this file: nothing is awaited between reading and storing the state; and every failure reaches ``on_error`` once.
"""

from __future__ import annotations

import asyncio
import inspect
import time
from collections import deque
from collections.abc import Callable, Mapping
from enum import Enum
from functools import lru_cache, partial
from types import TracebackType
from typing import Any, Generic, Self, TypeVar, cast

import attrs

from turnproof.machines.kernel import TIMER_EFFECTS, Answer, Ignored, Machine, StartTimer, Taken
from turnproof.shell.handlers import Failure, Handler, check_handlers, log_failure, method_names
from turnproof.shell.timers import TimerEffect, Timers

S = TypeVar("S")
E = TypeVar("E")
F = TypeVar("F")

SLICE = 1_000
"""Effects performed in one go. A handler that feeds itself for ever then starves neither the other tasks nor the timers."""
_TIMES = frozenset(TIMER_EFFECTS)
_NO_QUEUE: deque[Any] = deque()
_NO_TASKS: set[Any] = set()
"""What an instance has between steps. Shared and never added to: an empty deque takes as much memory as the rest of an instance."""
GRACE_MS = 5_000
"""How long :meth:`Runner.aclose` waits for handlers to end after it cancelled them, in milliseconds."""


Durations = Mapping[Any, int]
"""Timer -> milliseconds. ``Any`` because a ``Mapping`` is invariant in its keys: a ``dict`` of one machine's timers must do."""


class RunnerClosed(RuntimeError):
    """An event came after the runner was closed."""


@attrs.frozen
class TraceStep(Generic[S, E, F]):
    """One step, for a log: all that a replay needs, and the state after it to compare with."""

    seq: int
    """1, 2, 3, ... for each runner."""
    ts: float
    """Seconds, as the runner's ``timestamp`` tells them."""
    machine: str
    key: str
    event: E
    answer: Answer[S, F]
    before: S
    """The state the event met."""
    post: S
    """The state after the step."""

    @property
    def said(self) -> str:
        """``taken``, ``ignored`` or ``refused``."""
        return "taken" if isinstance(self.answer, Taken) else "ignored" if isinstance(self.answer, Ignored) else "refused"

    @property
    def row(self) -> str:
        """The name of the row that answered."""
        return self.answer.row.name

    @property
    def effects(self) -> tuple[F, ...]:
        """The effects of the step, timers included, in order; none unless it was taken."""
        return self.answer.effects if isinstance(self.answer, Taken) else ()


class Runner(Generic[S, E, F]):
    """Runs one instance of ``machine``. Build it inside a running event loop; all calls belong to the thread of that loop.

    ``handlers``: an object with a method for each effect, or a mapping from effect class to function (see ``shell.handlers``).
    ``key``: names the instance in traces and errors.
    ``durations_ms``: other durations than the machine's own, for some or all timers, in milliseconds.
    ``on_error``: told of each :class:`Failure`, once; logs it unless replaced.
    ``as_event``: turns a failure into an event of the machine, where it has one for it; None leaves it at the report.
    ``trace``: told of each step after the state is stored and before its effects are performed.
    ``timestamp``: the clock of the trace, in seconds.

    Raises :class:`HandlersError` if an effect has no handler, ``RuntimeError`` outside a running loop, ``ValueError`` for a duration
    that is not positive or of a timer the machine does not have.
    """

    __slots__ = (
        "__weakref__", "_as_event", "_closing", "_expiries", "_handlers", "_loop", "_methods", "_on_error", "_performing", "_queue",
        "_tasks", "_timers", "_timestamp", "_trace", "closed", "key", "machine", "state", "steps",
    )  # fmt: skip

    def __init__(
        self,
        machine: Machine[S, E, F],
        handlers: object,
        *,
        key: str = "",
        durations_ms: Durations | None = None,
        on_error: Callable[[Failure], object] = log_failure,
        as_event: Callable[[Failure], E | None] | None = None,
        trace: Callable[[TraceStep[S, E, F]], object] | None = None,
        timestamp: Callable[[], float] = time.time,
    ) -> None:
        check_handlers(machine, handlers)
        try:
            self._loop = asyncio.get_running_loop()
        except RuntimeError:
            raise RuntimeError(f"{machine.name}: build the runner inside a coroutine, its timers need the running event loop") from None
        self.machine, self.key = machine, key
        self.state: S = machine.initial
        """The present state. Read it, never write it."""
        self.steps = 0
        """How many events were applied, whatever the answer."""
        self.closed = False
        """Whether :meth:`aclose` was called; no event is accepted any more."""
        self._handlers, self._on_error, self._as_event = handlers, on_error, as_event
        self._methods = None if isinstance(handlers, Mapping) else method_names(machine)
        self._trace, self._timestamp = trace, timestamp
        self._expiries = cast("Mapping[Enum, E]", _expiries(machine))
        self._timers = Timers(self._loop, _durations_ms(machine, durations_ms), self._expired)
        self._queue: deque[F | asyncio.Future[None]] = _NO_QUEUE
        self._performing = False
        self._tasks: set[asyncio.Task[None]] = _NO_TASKS
        self._closing: asyncio.Task[None] | None = None

    # ── events ──

    async def send(self, event: E) -> Answer[S, F]:
        """Apply ``event``; return its answer once every effect of the step was performed, or at least started where the handler awaits.

        Raises :class:`RunnerClosed`, and ``TypeError`` for an event the machine does not know; what handlers raise goes to ``on_error``.
        """
        answer = self.post(event)
        await self._queue_passed()
        return answer

    def post(self, event: E) -> Answer[S, F]:
        """Apply ``event`` and return its answer at once, for callers that cannot await. Raises as :meth:`send` does."""
        self._check(event)
        before = self.state
        answer = self.machine.step(before, event)
        if isinstance(answer, Taken):
            self.state = answer.state
            for effect in answer.effects:
                if type(effect) in _TIMES:
                    self._time(cast("TimerEffect", effect))
                else:
                    if self._queue is _NO_QUEUE:
                        self._queue = deque()
                    self._queue.append(effect)
        self.steps += 1
        if self._trace is not None:
            self._write(before, event, answer)
        if self._queue and not self._performing:
            self._perform_queue()
        return answer

    def due_ms(self) -> Mapping[Enum, int]:
        """Timers that run -> when they fire, in milliseconds on the loop's clock."""
        return self._timers.due_ms()

    def held_ms(self) -> Mapping[Enum, int]:
        """Timers that are paused -> the milliseconds they have left."""
        return self._timers.held_ms()

    @property
    def now_ms(self) -> int:
        """The shell's clock, which ``StartTimer.not_before_ms`` speaks of: milliseconds of the loop's ``time()``."""
        return round(self._loop.time() * 1000)

    async def idle(self) -> None:
        """Wait until every effect is performed and every handler has ended, those of events they sent included."""
        while True:
            await self._queue_passed()
            others = self._tasks - {asyncio.current_task()}
            if not others:
                return
            await asyncio.wait(others)

    # ── closing ──

    async def aclose(self, *, grace_ms: int = GRACE_MS) -> None:
        """Accept no event any more, stop every timer, start the effects that are still due, cancel the handlers and wait for them.

        A handler that is not over ``grace_ms`` milliseconds after it was cancelled is reported as a :class:`Failure`. May be called
        again, by several, and from inside a handler, which then is not waited for.
        """
        if self._closing is None:
            self.closed = True
            self._timers.clear()
            self._closing = self._loop.create_task(
                self._close(asyncio.current_task(), grace_ms), name=f"close {self.machine.name} {self.key}"
            )
        await asyncio.shield(self._closing)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        await self.aclose()

    async def _close(self, caller: asyncio.Task[Any] | None, grace_ms: int) -> None:
        await self._queue_passed()
        running = {task: task.get_name() for task in self._tasks if task is not caller}
        for task in running:
            task.cancel()
        if running:
            _, left = await asyncio.wait(running, timeout=grace_ms / 1000)
            for task in left:
                self._report(None, TimeoutError(f"{running[task]} ignored its cancellation for {grace_ms:,} ms"))

    # ── effects ──

    def _enqueue(self, item: F | asyncio.Future[None]) -> None:
        if self._queue is _NO_QUEUE:
            self._queue = deque()
        self._queue.append(item)

    def _perform_queue(self) -> None:
        self._performing = True
        try:
            for _ in range(SLICE):
                if not self._queue:
                    self._performing, self._queue = False, _NO_QUEUE
                    return
                if self._perform(self._queue.popleft()):
                    break
        except BaseException:
            # KeyboardInterrupt or SystemExit out of a handler ends the program's run, not this instance: the rest is still due.
            self._loop.call_soon(self._perform_queue)
            raise
        # Behind the first step of the task just made, or behind whatever else is ready after a whole slice.
        self._loop.call_soon(self._perform_queue)

    def _perform(self, item: F | asyncio.Future[None]) -> bool:
        """Perform one item of the queue; true if a task was made, whose first step comes before the next item."""
        if isinstance(item, asyncio.Future):
            if not item.done():
                item.set_result(None)
            return False
        try:
            result = self._handler(type(item))(item)
        except (Exception, asyncio.CancelledError) as error:
            self._failed(item, error)
            return False
        if result is None or not inspect.isawaitable(result):
            return False
        task = self._loop.create_task(_awaited(result), name=f"{self.machine.name} {self.key}: handler of {item!r}")
        if self._tasks is _NO_TASKS:
            self._tasks = set()
        self._tasks.add(task)
        task.add_done_callback(partial(self._ended, item))
        return True

    def _handler(self, effect: type) -> Handler:
        if self._methods is None:
            return cast("Mapping[type, Handler]", self._handlers)[effect]
        return cast("Handler", getattr(self._handlers, self._methods[effect]))

    def _ended(self, effect: F, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if task.cancelled():
            if not self.closed:
                self._report(effect, asyncio.CancelledError("its task was cancelled, and not by the runner"))
            return
        error = task.exception()
        if error is not None:
            self._failed(effect, error)

    def _failed(self, effect: F, error: BaseException) -> None:
        # A handler that has something left to say while the runner closes around it did nothing wrong.
        if not (self.closed and isinstance(error, RunnerClosed)):
            self._report(effect, error)

    async def _queue_passed(self) -> None:
        """Wait until everything that is in the queue now has been performed."""
        if self._performing:
            passed: asyncio.Future[None] = self._loop.create_future()
            self._enqueue(passed)
            await passed

    # ── timers, traces, errors ──

    def _expired(self, timer: Enum) -> None:
        if not self.closed:
            self.post(self._expiries[timer])

    def _time(self, effect: TimerEffect) -> None:
        try:
            self._timers.perform(effect)
        except Exception as error:
            # Its deadline came with an event and is no time. The machine counts on the timer, so it runs for its duration.
            self._timers.perform(StartTimer(effect.timer))
            self._loop.call_soon(self._report, cast("F", effect), error)

    def _write(self, before: S, event: E, answer: Answer[S, F]) -> None:
        trace = cast("Callable[[TraceStep[S, E, F]], object]", self._trace)
        try:
            trace(TraceStep(self.steps, self._timestamp(), self.machine.name, self.key, event, answer, before, self.state))
        except (Exception, asyncio.CancelledError) as error:
            self._report(None, error)
        except BaseException:
            # As in _perform_queue: the step stands, so its effects are due, whoever leaves the program.
            if self._queue and not self._performing:
                self._performing = True
                self._loop.call_soon(self._perform_queue)
            raise

    def _report(self, effect: F | None, error: BaseException) -> None:
        failure = Failure(self.machine.name, self.key, effect, error)
        try:
            self._on_error(failure)
            event = None if self._as_event is None or self.closed else self._as_event(failure)
        except (Exception, asyncio.CancelledError) as second:
            self._loop.call_exception_handler({"message": f"on_error or as_event failed on {failure!r}", "exception": second})
            return
        if event is not None:
            self.post(event)

    def _check(self, event: E) -> None:
        if self.closed:
            raise RunnerClosed(f"{self.machine.name} {self.key!r} is closed: {type(event).__name__} came too late")
        try:
            here = asyncio.get_running_loop() is self._loop
        except RuntimeError:
            here = False
        if not here:
            raise RuntimeError(
                f"{self.machine.name} {self.key!r} lives on another event loop: from a thread write "
                f"loop.call_soon_threadsafe(runner.post, {type(event).__name__}(...))"
            )

    def __repr__(self) -> str:
        return f"<runner {self.machine.name} {self.key!r}: {self.state!r}{', closed' if self.closed else ''}>"


async def _awaited(result: Any) -> None:
    await result


@lru_cache(maxsize=256)
def _expiries(machine: Machine[Any, Any, Any]) -> Mapping[Enum, object]:
    """Timer -> the event of its expiry. Raises ``TypeError`` if that event has a field without a default: a timer knows no values."""
    return {rule.timer: rule.expires() for rule in machine.timers}


def _durations_ms(machine: Machine[Any, Any, Any], others: Durations | None) -> Mapping[Enum, int]:
    return _own_durations_ms(machine) if others is None else _other_durations_ms(machine, tuple(others.items()))


@lru_cache(maxsize=256)
def _other_durations_ms(machine: Machine[Any, Any, Any], others: tuple[tuple[Enum, int], ...]) -> Mapping[Enum, int]:
    """One table for all instances that differ in the same way. ``ValueError`` as :class:`Runner` says."""
    own = _own_durations_ms(machine)
    for timer, duration in others:
        if timer not in own:
            raise ValueError(f"durations_ms: {timer} is no timer of {machine.name}; it has {', '.join(t.name for t in own) or 'none'}")
        if duration <= 0:
            raise ValueError(f"durations_ms: {timer.name} is {duration} ms, expected more than 0")
    return {**own, **dict(others)}


@lru_cache(maxsize=256)
def _own_durations_ms(machine: Machine[Any, Any, Any]) -> Mapping[Enum, int]:
    return {rule.timer: rule.duration.milliseconds for rule in machine.timers}
