"""A virtual clock for asyncio: a test that waits an hour takes no time.

Theory of operation
===================

:class:`VirtualLoop` is an asyncio event loop whose ``time()`` only moves when nothing else can happen: once every task waits,
it jumps to the next scheduled callback (*autojump*). Code under test keeps calling ``asyncio.sleep``, ``asyncio.timeout`` and
``loop.call_later``; it cannot tell. Instants are whole microseconds, so 59.999 s and then 0.001 s is exactly 60 s, and two things
due at that instant are due together.

A jump without progress is an error, never a hang (:class:`ClockStalled`): nothing is scheduled and everybody waits; the loop
turns and turns and its time stands still; or it jumps on and on and the awaited result does not come.

Prior art: ``trio.testing.MockClock`` with its autojump, and ``wait_all_tasks_blocked``, which :meth:`VirtualClock.settle` is here
(https://trio.readthedocs.io/en/stable/reference-testing.html). Not modelled: threads, processes, signals and the network. Real time is
invisible to this loop, so what needs it is refused with an error.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Coroutine, Iterator, Mapping
from contextlib import contextmanager
from contextvars import Context
from enum import Enum
from typing import Any, NoReturn, TypeVar, TypeVarTuple, cast

from turnproof.machines.kernel import Machine

T = TypeVar("T")
Ts = TypeVarTuple("Ts")

TURNS_MAX = 100_000
"""Turns of the loop at one instant before it counts as turning in place."""
JUMPS_MAX = 100_000
"""Jumps in one :meth:`VirtualClock.run` before the awaited result counts as never coming."""
FAR_S = 4_000_000_000.0
"""Virtual seconds (126 years) that the clock can show: beyond, a float no longer tells one microsecond from the next."""
WAITING_SHOWN = 5
"""Waiting tasks that an error names."""


class ClockStalled(RuntimeError):
    """The virtual clock cannot make progress. The message says who waits."""


class _Jumps:
    """Stands where asyncio keeps its selector: instead of sleeping until the next callback, it moves the time there."""

    def __init__(self, loop: VirtualLoop) -> None:
        self.loop = loop

    def select(self, timeout: float | None) -> tuple[()]:
        self.loop._pass_time(timeout)
        return ()


class VirtualLoop(asyncio.BaseEventLoop):
    """An event loop on virtual time. Use it through :func:`virtual_time`, :func:`run_virtual` or the fixtures.

    ``start_ms``: what the clock shows first, in milliseconds, 0 or more.
    """

    def __init__(self, *, start_ms: int = 0, turns_max: int = TURNS_MAX, jumps_max: int = JUMPS_MAX) -> None:
        super().__init__()
        if start_ms < 0:
            self.close()
            raise ValueError(f"start_ms={start_ms}: a clock shows 0 ms or more")
        self.turns_max, self.jumps_max = turns_max, jumps_max
        self.turns = self.jumps = 0
        self._now = start_ms / 1000
        self._blocked: deque[asyncio.Future[None]] = deque()
        self._selector = _Jumps(self)
        # Half a microsecond instead of what the operating system has: asyncio adds it to the time to find what is due, and at a late
        # hour a nanosecond would be lost in the addition.
        self._clock_resolution = 0.5e-6

    def time(self) -> float:
        """Virtual seconds."""
        return self._now

    def call_at(self, when: float, callback: Callable[[*Ts], object], *args: *Ts, context: Context | None = None) -> asyncio.TimerHandle:
        """As asyncio has it, at the nearest whole microsecond."""
        return super().call_at(round(when * 1_000_000) / 1_000_000, callback, *args, context=context)

    def scheduled(self) -> list[asyncio.TimerHandle]:
        """Every callback that is due later and was not cancelled, the earliest first."""
        return sorted((handle for handle in self._queue() if not handle.cancelled()), key=asyncio.TimerHandle.when)

    def when_blocked(self) -> asyncio.Future[None]:
        """A future that is done once nothing can happen any more at this instant. Several are done one after another."""
        future = self.create_future()
        self._blocked.append(future)
        return future

    def _skip(self, seconds: float) -> None:
        self._now = round((self._now + seconds) * 1_000_000) / 1_000_000

    def _queue(self) -> list[asyncio.TimerHandle]:
        return cast("list[asyncio.TimerHandle]", self.__dict__["_scheduled"])

    def _pass_time(self, timeout: float | None) -> None:
        if timeout is not None and timeout <= 0:
            self.turns += 1
            if self.turns > self.turns_max:
                self._stalled(f"the loop turned {self.turns_max:,} times and its time stands still: something polls with sleep(0)")
            return
        while self._blocked:
            future = self._blocked.popleft()
            if not future.done():
                future.set_result(None)
                return
        if timeout is None:
            self._stalled("nothing is scheduled and everybody waits")
        when = self._queue()[0].when()
        if when > FAR_S:
            self._stalled(f"the next callback is due at {when:.0f} s, and the clock ends at {FAR_S:.0f} s")
        self.turns = 0
        self.jumps += 1
        if self.jumps > self.jumps_max:
            self._stalled(f"the clock jumped {self.jumps_max:,} times and what is awaited did not come: something repeats for ever")
        self._now = max(self._now, when)

    def _stalled(self, why: str) -> NoReturn:
        self.turns = self.jumps = 0  # so that the tasks can still be cancelled
        waiting = [task for task in asyncio.all_tasks(self) if not task.done()]
        names = ", ".join(sorted(_named(task) for task in waiting)[:WAITING_SHOWN])
        more = f" and {len(waiting) - WAITING_SHOWN} more" if len(waiting) > WAITING_SHOWN else ""
        raise ClockStalled(f"at {self._now:.3f} s of virtual time {why}; waiting: {names or 'no task'}{more}")

    def _process_events(self, event_list: tuple[()]) -> None:
        """There is no input or output to process."""

    def _write_to_self(self) -> None:
        """The loop never sleeps, so nobody has to wake it."""

    def run_in_executor(self, executor: object, func: Callable[[*Ts], T], *args: *Ts) -> NoReturn:
        """Refused: a thread runs on real time, which this loop does not see. Raises ``RuntimeError``."""
        raise RuntimeError(
            f"{getattr(func, '__qualname__', func)} was sent to a thread, but a virtual clock has no threads: replace it in the test"
        )


def _named(task: asyncio.Task[Any]) -> str:
    coroutine = task.get_coro()
    return f"{task.get_name()} ({getattr(coroutine, '__qualname__', coroutine)})"


class VirtualClock:
    """Runs coroutines on virtual time, and moves that time by hand where a test wants to."""

    def __init__(self, *, start_ms: int = 0, turns_max: int = TURNS_MAX, jumps_max: int = JUMPS_MAX) -> None:
        self.loop = VirtualLoop(start_ms=start_ms, turns_max=turns_max, jumps_max=jumps_max)
        self._runner = asyncio.Runner(loop_factory=lambda: self.loop)

    @property
    def now_ms(self) -> int:
        """Milliseconds on this clock, which are those of every shell on its loop."""
        return round(self.loop.time() * 1000)

    def durations_ms(self, machine: Machine[Any, Any, Any]) -> Mapping[Enum, int]:
        """The durations of the timers of ``machine``, as they are: a real clock scales them."""
        return {rule.timer: rule.duration.milliseconds for rule in machine.timers}

    def run(self, main: Coroutine[Any, Any, T]) -> T:
        """Run ``main`` to its end. May be called again and again; time, timers and tasks go on where they were.

        Raises :class:`ClockStalled` if ``main`` cannot end.
        """
        self.loop.turns = self.loop.jumps = 0
        return self._runner.run(main)

    async def settle(self) -> None:
        """Let everything happen that can happen at this instant; the time stays."""
        await self.loop.when_blocked()

    async def advance(self, ms: float) -> None:
        """Move ``ms`` milliseconds (0 or more) on. Everything due until then has happened when this returns, the last instant included."""
        if ms < 0:
            raise ValueError(f"advance({ms}): time does not run backwards")
        await asyncio.sleep(ms / 1000)
        await self.settle()

    def jump(self, ms: float) -> None:
        """Let ``ms`` milliseconds (0 or more) be over at once: the process slept, or somebody blocked the loop. What is due comes late."""
        if ms < 0:
            raise ValueError(f"jump({ms}): time does not run backwards")
        self.loop._skip(ms / 1000)

    def scheduled_ms(self) -> list[int]:
        """When each callback is due that was not cancelled, in milliseconds on this clock, the earliest first."""
        return [round(handle.when() * 1000) for handle in self.loop.scheduled()]

    def close(self) -> None:
        """Cancel the tasks that are left, and close the loop."""
        self._runner.close()


@contextmanager
def virtual_time(*, start_ms: int = 0, turns_max: int = TURNS_MAX, jumps_max: int = JUMPS_MAX) -> Iterator[VirtualClock]:
    """A clock of one's own for a block: ``with virtual_time() as clock: clock.run(main())``."""
    clock = VirtualClock(start_ms=start_ms, turns_max=turns_max, jumps_max=jumps_max)
    try:
        yield clock
    finally:
        clock.close()


def run_virtual(main: Coroutine[Any, Any, T], *, start_ms: int = 0) -> T:
    """``asyncio.run`` on virtual time. Raises :class:`ClockStalled` if ``main`` cannot end."""
    with virtual_time(start_ms=start_ms) as clock:
        return clock.run(main)
