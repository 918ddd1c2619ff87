"""A machine with its timers on a clock that only moves when told: pure, with no event loop and no waiting.

Recordings made under a mock clock are replayed on it, and cases that speak of time are played on it. It performs the four timer effects
and leaves every other effect to whoever asked.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from typing import Any, Self

import attrs

from turnproof.machines.kernel import Ignored, PauseTimer, ResumeTimer, StartTimer, StopTimer, Taken
from turnproof.specs.language import AnyMachine, Said


@attrs.frozen
class TimedStep:
    """One step, and when it happened."""

    at_ms: int
    before: Any
    event: Any
    answer: Any
    after: Any
    by_clock: bool = False
    """Whether a timer sent the event."""

    @property
    def said(self) -> Said:
        """How the machine answered."""
        return Said.TAKEN if isinstance(self.answer, Taken) else Said.IGNORED if isinstance(self.answer, Ignored) else Said.REFUSED

    @property
    def effects(self) -> tuple[Any, ...]:
        """What it emitted, timer effects included."""
        return self.answer.effects if isinstance(self.answer, Taken) else ()


class Timed:
    """One instance of a machine, from its initial state at 0 ms.

    ``durations_ms``: other durations than the machine's own, for some or all timers.

    Two timers that are due at the same instant fire in the order in which they were started. A timer that is started again begins anew.
    """

    def __init__(self, machine: AnyMachine, *, durations_ms: Mapping[Enum, int] | None = None) -> None:
        self.machine = machine
        self.state: Any = machine.initial
        self.now_ms = 0
        self.due_ms: dict[Enum, int] = {}
        """Timers that run -> when they fire."""
        self.left_ms: dict[Enum, int] = {}
        """Timers that are paused -> what they have left."""
        self._durations_ms = {rule.timer: rule.duration.milliseconds for rule in machine.timers} | dict(durations_ms or {})
        self._expiries: dict[Enum, Any] = {rule.timer: rule.expires() for rule in machine.timers}

    def send(self, event: object) -> TimedStep:
        """Apply one event now."""
        return self._send(event, by_clock=False)

    def advance(self, ms: int) -> tuple[TimedStep, ...]:
        """Let ``ms`` milliseconds pass; the steps of the timers that fired, those due at the last instant included.

        Raises ``ValueError`` for a negative time.
        """
        if ms < 0:
            raise ValueError(f"advance({ms}): time does not run backwards")
        end = self.now_ms + ms
        steps = []
        while self.due_ms:
            timer, due = min(self.due_ms.items(), key=_due)
            if due > end:
                break
            self.now_ms = max(due, self.now_ms)
            del self.due_ms[timer]
            steps.append(self._send(self._expiries[timer], by_clock=True))
        self.now_ms = end
        return tuple(steps)

    def like(self, machine: AnyMachine) -> Self:
        """The same moment of the same run, under the rows of ``machine``."""
        other = type(self)(machine)
        other.state, other.now_ms = self.state, self.now_ms
        other.due_ms, other.left_ms = dict(self.due_ms), dict(self.left_ms)
        return other

    def _send(self, event: object, *, by_clock: bool) -> TimedStep:
        before = self.state
        answer = self.machine.step(before, event)
        if isinstance(answer, Taken):
            self.state = answer.state
            for effect in answer.effects:
                self._perform(effect)
        return TimedStep(self.now_ms, before, event, answer, self.state, by_clock)

    def _perform(self, effect: object) -> None:
        match effect:
            case StartTimer(timer, not_before_ms):
                self.left_ms.pop(timer, None)
                # Out and in again, so that the order of the dictionary is the order of starting.
                self.due_ms.pop(timer, None)
                self.due_ms[timer] = max(self.now_ms + self._durations_ms[timer], not_before_ms)
            case StopTimer(timer):
                self.due_ms.pop(timer, None)
                self.left_ms.pop(timer, None)
            case PauseTimer(timer):
                if timer in self.due_ms:
                    self.left_ms[timer] = self.due_ms.pop(timer) - self.now_ms
            case ResumeTimer(timer):
                if timer in self.left_ms:
                    self.due_ms[timer] = self.now_ms + self.left_ms.pop(timer)
            case _:
                pass


def _due(item: tuple[Enum, int]) -> int:
    return item[1]


__all__ = ["Timed", "TimedStep"]
