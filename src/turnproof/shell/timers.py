"""The timers of one instance on an event loop: armed, held and expired by what the machine says."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from enum import Enum

from turnproof.machines.kernel import PauseTimer, ResumeTimer, StartTimer, StopTimer

TimerEffect = StartTimer | StopTimer | PauseTimer | ResumeTimer

_NOTHING_HELD: dict[Enum, float] = {}
"""Shared and never added to: most instances never pause a timer."""


class Timers:
    """Performs the timer effects of a machine. ``expired`` is called with a timer that fired.

    An expiry is never judged here: a timer that fires although it was stopped is handed on, and the machine ignores it. The one
    exception is a timer that was stopped and started again: the late expiry of the first start would be taken for that of the
    second, so it is dropped, and the second fires in its own time.
    """

    __slots__ = ("_armed", "_durations_ms", "_expired", "_held", "_loop", "_starts")

    def __init__(self, loop: asyncio.AbstractEventLoop, durations_ms: Mapping[Enum, int], expired: Callable[[Enum], object]) -> None:
        self._loop, self._durations_ms, self._expired = loop, durations_ms, expired
        self._armed: dict[Enum, tuple[int, asyncio.TimerHandle]] = {}
        self._held: dict[Enum, float] = _NOTHING_HELD
        self._starts = 0

    def perform(self, effect: TimerEffect) -> None:
        """Start, stop, pause or resume a timer."""
        timer = effect.timer
        if isinstance(effect, StartTimer):
            when = self._loop.time() + self._durations_ms[timer] / 1000
            self._arm(timer, max(when, effect.not_before_ms / 1000) if effect.not_before_ms else when)
        elif isinstance(effect, StopTimer):
            self._cancel(timer)
        elif isinstance(effect, PauseTimer):
            if timer in self._armed:
                left = self._disarm(timer)
                self._held = {**self._held, timer: left}
        elif timer in self._held:
            self._arm(timer, self._loop.time() + self._held[timer])

    def due_ms(self) -> Mapping[Enum, int]:
        """Timers that run -> when they fire, in milliseconds on the loop's clock."""
        return {timer: round(handle.when() * 1000) for timer, (_, handle) in self._armed.items()}

    def held_ms(self) -> Mapping[Enum, int]:
        """Timers that are paused -> the milliseconds they have left."""
        return {timer: round(left * 1000) for timer, left in self._held.items()}

    def clear(self) -> None:
        """Stop them all."""
        for timer in (*self._armed, *self._held):
            self._cancel(timer)

    def _arm(self, timer: Enum, when: float) -> None:
        self._cancel(timer)
        self._starts += 1
        self._armed[timer] = (self._starts, self._loop.call_at(when, self._fire, timer, self._starts))

    def _disarm(self, timer: Enum) -> float:
        """Seconds it had left on the loop."""
        _, handle = self._armed[timer]
        self._cancel(timer)
        return max(0.0, handle.when() - self._loop.time())

    def _cancel(self, timer: Enum) -> None:
        if self._held:
            self._held = {other: left for other, left in self._held.items() if other is not timer} or _NOTHING_HELD
        armed = self._armed.pop(timer, None)
        if armed is not None:
            armed[1].cancel()

    def _fire(self, timer: Enum, start: int) -> None:
        if timer in self._armed:
            newest, _ = self._armed[timer]
            if newest != start:
                return
            del self._armed[timer]
        self._expired(timer)
