"""A system with its timers on a clock that only moves when told: for cases that speak of time, and for bounds that are tried.

It is :class:`turnproof.checkers.timed.Timed` for systems. Events come from whoever plays; a spontaneous event of a class in ``at_once``
is performed as soon as its guard holds, as the runtime would that it stands for.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from enum import Enum
from typing import Any, TypeVar, cast

from turnproof.checkers.network.run import Occurrence, Runner, World
from turnproof.checkers.network.triggers import Kind, Trigger, triggers
from turnproof.machines.kernel import StartTimer
from turnproof.specs.system import Ledger, Part, System

S = TypeVar("S")
Clock = tuple[str, Enum]
"""Part and timer."""
BUSY = 100
"""Most steps at once without any time passing; one more is an error."""


class TimedSystem:
    """One run of a system, from its initial state at 0 ms. Switches do not matter: whoever plays decides.

    ``held`` names timers that do not fire by themselves. Two timers due at the same instant fire in the order in which they started.
    """

    def __init__(self, system: System, *, at_once: Collection[type] = (), held: Collection[Clock] = (), counter: int = 1_000) -> None:
        self.system, self.held = system, frozenset(held)
        self.runner = Runner(system, counter=counter)
        self.durations = {(p.name, r.timer): r.duration.milliseconds for p in system.parts for r in p.machine.timers}
        self.expiries = {(p.name, r.timer): r.expires for p in system.parts for r in p.machine.timers}
        self.reads = [
            t for t in triggers(system, tokens=2, counter=2) if t.kind is Kind.SEND and type(t.event) in at_once and t.switch is None
        ]
        self.world: World = self.runner.initial()
        self.now_ms = 0
        self.due_ms: dict[Clock, int] = {}
        self.left_ms: dict[Clock, int] = {}
        self.steps: list[tuple[int, Occurrence]] = []
        """When, and what."""

    def state(self, part: Part[S]) -> S:
        """The present state of a part."""
        return cast(S, self.world.parts[self.runner.index[part.name]])

    def send(self, part: Part[Any], event: object) -> Occurrence:
        """An event comes to a part; the system does what follows, and what it does at once."""
        return self._perform(Trigger(Kind.SEND, part.name, event))

    def fire(self, part: Part[Any], timer: Enum) -> Occurrence | None:
        """Let a running timer fire now, before it is due; None if it does not run."""
        clock = (part.name, timer)
        if self.due_ms.pop(clock, None) is None:
            return None
        return self._perform(Trigger(Kind.EXPIRE, part.name, self.expiries[clock](), timer))

    def advance(self, ms: int) -> None:
        """Let time pass; every timer due by then, the last instant included, fires."""
        end = self.now_ms + ms
        while True:
            due = {clock: at for clock, at in self.due_ms.items() if clock not in self.held}
            if not due or min(due.values()) > end:
                break
            clock = min(due, key=lambda c: due[c])
            self.now_ms = max(self.now_ms, self.due_ms.pop(clock))
            self._perform(Trigger(Kind.EXPIRE, clock[0], self.expiries[clock](), clock[1]))
        self.now_ms = end

    def events(self, part: Part[Any], event: type) -> list[object]:
        """Every event of that class that the part handled so far."""
        index = self.runner.index[part.name]
        return [d.event for _, step in self.steps for d in step.deliveries if d.part == index and type(d.event) is event]

    def effects(self, part: Part[Any], effect: type) -> list[Any]:
        """Every effect of that class that the part emitted so far."""
        index = self.runner.index[part.name]
        return [e for _, step in self.steps for d in step.deliveries if d.part == index for e in d.effects if type(e) is effect]

    def _perform(self, trigger: Trigger) -> Occurrence:
        first = self._step(trigger)
        for _ in range(BUSY):
            read = next((t for t in self.reads if self.runner.enabled(self.world, t)), None)
            if read is None:
                return first
            self._step(read)
        raise RuntimeError(f"{self.system.name} reads its state for ever at {self.now_ms} ms")

    def _step(self, trigger: Trigger) -> Occurrence:
        step = self.runner.perform(self.world, trigger)
        started: dict[Clock, int] = {}
        for delivery in step.deliveries:
            for effect in delivery.effects:
                if isinstance(effect, StartTimer):
                    clock = (self.system.everyone[delivery.part].name, effect.timer)
                    started[clock] = max(self.now_ms + self.durations[clock], effect.not_before_ms)
        self.world = step.after
        self._reckon(started)
        self.steps.append((self.now_ms, step))
        return step

    def _reckon(self, started: Mapping[Clock, int]) -> None:
        """Bring the clock in line with the ledger of the system."""
        for i, part in enumerate(self.system.everyone):
            for timer, ledger in zip(self.runner.timers[i], self.world.timers[i], strict=True):
                clock = (part.name, timer)
                if ledger is Ledger.RUNNING and clock in started:
                    self.due_ms.pop(clock, None)
                    self.due_ms[clock] = started[clock]
                    self.left_ms.pop(clock, None)
                elif ledger is Ledger.RUNNING and clock in self.left_ms:
                    self.due_ms[clock] = self.now_ms + self.left_ms.pop(clock)
                elif ledger is Ledger.PAUSED and clock in self.due_ms:
                    self.left_ms[clock] = self.due_ms.pop(clock) - self.now_ms
                elif ledger is Ledger.OFF:
                    self.due_ms.pop(clock, None)
                    self.left_ms.pop(clock, None)


__all__ = ["TimedSystem"]
