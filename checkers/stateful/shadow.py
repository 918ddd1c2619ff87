"""A shadow of every runner in a composed shell: the table alone, sent the same events, and compared with the shell whenever it rests.

A composed shell builds its runners through :class:`~turnproof.shell.common.Hooks`. While :meth:`Shadow.watching` lasts, each of them gets
a :class:`Watched`: it steps the table again, keeps its own account of timers, and owes each effect until its handler is called, once and
in order. The handlers themselves are the shell's own.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from enum import Enum
from functools import partial
from typing import Any

import attrs

from turnproof.machines.kernel import TIMER_EFFECTS, PauseTimer, ResumeTimer, StartTimer, StopTimer, Taken
from turnproof.shell import Runner, TraceStep
from turnproof.shell.common import Hooks
from turnproof.shell.handlers import method_names
from turnproof.specs.language import AnyMachine

AnyRunner = Runner[Any, Any, Any]
AnyStep = TraceStep[Any, Any, Any]


@attrs.define(eq=False)
class Watched:
    """One runner and its table. ``runner`` is set once it is built."""

    shadow: Shadow
    machine: AnyMachine
    key: str
    state: Any
    runner: AnyRunner | None = None
    steps: int = 0
    armed: set[Enum] = attrs.field(factory=set)
    held: set[Enum] = attrs.field(factory=set)
    owed: deque[object] = attrs.field(factory=deque)

    def told(self, step: AnyStep) -> None:
        """The shell made a step: the table makes it, too."""
        answer = self.machine.step(self.state, step.event)
        self.steps += 1
        self.shadow.count(self.machine, answer)
        for rule in self.machine.timers:
            if type(step.event) is rule.expires:
                self.armed.discard(rule.timer)
        if step.before != self.state:
            self.wrong(f"{step.event!r} met {step.before!r}; by the table it meets {self.state!r}")
        elif (type(answer), answer.row.name) != (type(step.answer), step.row):
            self.wrong(f"{step.event!r} was answered by {step.row}, by the table by {answer.row.name}")
        if isinstance(answer, Taken):
            self.state = answer.state
            for effect in answer.effects:
                self._owe(effect)
        if step.post != self.state:
            self.wrong(f"{step.event!r} led to {step.post!r}, by the table to {self.state!r}")

    def _owe(self, effect: Any) -> None:
        match effect:
            case StartTimer(timer=timer):
                self.armed.add(timer)
                self.held.discard(timer)
            case StopTimer(timer=timer):
                self.armed.discard(timer)
                self.held.discard(timer)
            case PauseTimer(timer=timer):
                if timer in self.armed:
                    self.armed.discard(timer)
                    self.held.add(timer)
            case ResumeTimer(timer=timer):
                if timer in self.held:
                    self.held.discard(timer)
                    self.armed.add(timer)
            case _:
                self.owed.append(effect)

    def performing(self, effect: object, perform: Callable[[object], Any]) -> Any:
        """The handler of an effect is called: it must be the next that is owed."""
        if not self.owed or self.owed[0] != effect:
            self.wrong(f"{effect!r} is performed, and the table owes {self.owed[0] if self.owed else 'none'!r}")
        else:
            self.owed.popleft()
        return perform(effect)

    def compare(self) -> None:
        """At rest, shell and table are in the same state, with the same timers, and nothing is owed."""
        runner = self.runner
        if runner is None:
            return
        if runner.state != self.state or runner.steps != self.steps:
            self.wrong(f"is in {runner.state!r} after {runner.steps} steps, the table in {self.state!r} after {self.steps}")
        if self.owed:
            self.wrong(f"has not performed {list(self.owed)!r}")
        due, held = (set(), set()) if runner.closed else (self.armed, self.held)
        if (set(runner.due_ms()), set(runner.held_ms())) != (due, held):
            self.wrong(f"runs {_names(runner.due_ms())} and holds {_names(runner.held_ms())}, the table {_names(due)} and {_names(held)}")

    def wrong(self, what: str) -> None:
        """Note a difference; whoever plays the shell looks at them after each action."""
        self.shadow.wrong.append(f"{self.machine.name} {self.key!r} {what}")


@attrs.define(eq=False)
class Shadow:
    """The shadows of all runners that are built while it watches."""

    watched: list[Watched] = attrs.field(factory=list)
    wrong: list[str] = attrs.field(factory=list)
    """Every difference, the first first."""
    steps: int = 0
    rows: set[tuple[str, str]] = attrs.field(factory=set)
    effects: Counter[type] = attrs.field(factory=Counter)
    """How often the tables gave an effect of each class."""

    def count(self, machine: AnyMachine, answer: Any) -> None:
        """Note a step."""
        self.steps += 1
        self.rows.add((machine.name, answer.row.name))
        if isinstance(answer, Taken):
            self.effects.update(type(effect) for effect in answer.effects)

    def compare(self) -> None:
        """Compare every runner with its table."""
        for watched in self.watched:
            watched.compare()

    @contextmanager
    def watching(self) -> Iterator[None]:
        """Watch every runner of a composed shell that is built meanwhile. One shadow at a time watches."""
        build = Hooks.runner

        def built(hooks: Hooks, machine: AnyMachine, handlers: object, key: str, *, trace: Any = None) -> AnyRunner:
            watched = Watched(self, machine, key, machine.initial)
            self.watched.append(watched)

            def told(step: AnyStep) -> None:
                watched.told(step)
                if trace is not None:
                    trace(step)

            watched.runner = build(hooks, machine, _counted(watched, handlers), key, trace=told)
            return watched.runner

        setattr(Hooks, "runner", built)  # noqa: B010  # a frozen class, and mypy knows that methods are not assigned
        try:
            yield
        finally:
            setattr(Hooks, "runner", build)  # noqa: B010


def _counted(watched: Watched, handlers: object) -> dict[type, Callable[[Any], Any]]:
    """The handlers, each noted as it is called. A method is looked up when it is called, as a runner does."""
    if isinstance(handlers, Mapping):
        return {effect: partial(_noted, watched, handlers[effect]) for effect in watched.machine.effects if effect not in TIMER_EFFECTS}
    return {effect: partial(_noted, watched, partial(_method, handlers, name)) for effect, name in method_names(watched.machine).items()}


def _noted(watched: Watched, perform: Callable[[object], Any], effect: object) -> Any:
    return watched.performing(effect, perform)


def _method(handlers: object, name: str, effect: object) -> Any:
    return getattr(handlers, name)(effect)


def _names(timers: Any) -> str:
    return ", ".join(sorted(timer.name for timer in timers)) or "none"
