"""What the shell must do: the table by plain interpretation, and its timers. Independent of generated source and of asyncio."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import Enum
from typing import Any

import attrs

from turnproof.checkers.predicates import Memory, Pasts, Predicates, StepTest
from turnproof.checkers.written import show_event, show_value
from turnproof.machines.kernel import TIMER_EFFECTS, Answer, Ignored, PauseTimer, ResumeTimer, StartTimer, StopTimer, Taken, fields_of
from turnproof.machines.kernel.evaluate import interpreter
from turnproof.specs.language import Always, Property, Said, Spec, Step

AnyAnswer = Answer[Any, Any]


@attrs.frozen
class Complaint:
    """What is wrong. ``broken`` is the property that broke; None where the shell did not do what the table says."""

    sentence: str
    broken: Property | None = None


class Judge:
    """Everything of a specification that is compiled once and read in every sampled step."""

    def __init__(self, spec: Spec) -> None:
        machine = spec.machine
        predicates = Predicates(machine, spec.histories)
        self.spec = spec
        self.memory = Memory(machine, spec)
        self.steppers: Mapping[type, Callable[[Any, object], AnyAnswer]] = {
            event: interpreter(tuple(row for row in machine.rows if row.event is event), machine.phase) for event in machine.events
        }
        self.always = [(p, predicates.test(p.holds)) for p in spec.properties if isinstance(p, Always)]
        self.steps = [(p, predicates.test(p.holds)) for p in spec.properties if isinstance(p, Step)]
        self.armed = {rule.timer: predicates.test(rule.armed) for rule in machine.timers}
        self.paused = {rule.timer: predicates.test(rule.paused) for rule in machine.timers if rule.paused is not None}
        self.released = None if machine.released is None else predicates.test(machine.released)
        self.assume = None if spec.assume is None else predicates.test(spec.assume)
        self.expiries: Mapping[type, Enum] = {rule.expires: rule.timer for rule in machine.timers}
        self.durations_ms: Mapping[Enum, int] = {rule.timer: rule.duration.milliseconds for rule in machine.timers}

    @property
    def promises(self) -> int:
        """How many properties every step is judged by."""
        return len(self.always) + len(self.steps)


def holds_in(test: StepTest, state: object, pasts: Pasts) -> bool:
    """Whether a formula over a state holds."""
    return test(state, pasts, None, Said.IGNORED, (), state, pasts)


class Model:
    """One instance as the table has it: state, effects due, timers armed and held."""

    def __init__(self, judge: Judge) -> None:
        self.judge = judge
        self.state: Any = judge.spec.machine.initial
        self.pasts: Pasts = judge.memory.initial
        self.armed: dict[Enum, int] = {}
        """Timer -> when it is due, in milliseconds."""
        self.held: dict[Enum, int] = {}
        """Timer -> the milliseconds it has left."""
        self.effects: list[object] = []
        """Every effect but those on timers, in order, since the instance began."""
        self.history: list[object] = []
        """Every event since the instance began."""
        self.afterlife = 0
        """Events since it was released."""

    def accepts(self, event: object) -> bool:
        """Whether anybody may send ``event`` now: the assumption holds, and it is no expiry of a timer that runs or is held."""
        timer = self.judge.expiries.get(type(event))
        if timer is not None and (timer in self.armed or timer in self.held):
            return False
        assume = self.judge.assume
        return assume is None or assume(self.state, self.pasts, event, Said.IGNORED, (), self.state, self.pasts)

    def step(self, event: object, now_ms: int) -> tuple[AnyAnswer, Complaint | None]:
        """Apply one event; the answer, and the first property that broke."""
        answer = self.judge.steppers[type(event)](self.state, event)
        taken = isinstance(answer, Taken)
        said = Said.TAKEN if taken else Said.IGNORED if isinstance(answer, Ignored) else Said.REFUSED
        effects = answer.effects if isinstance(answer, Taken) else ()
        after = answer.state if isinstance(answer, Taken) else self.state
        pasts = self.judge.memory.after(self.state, self.pasts, event, said, effects, after)
        whole = (self.state, self.pasts, event, said, effects, after, pasts)
        broken = next((p for p, test in self.judge.steps if not test(*whole)), None)
        self.state, self.pasts = after, pasts
        self.history.append(event)
        self.afterlife += self.is_released()
        for effect in effects:
            if isinstance(effect, TIMER_EFFECTS):
                self._time(effect, now_ms)
            else:
                self.effects.append(effect)
        return answer, self.broken_now() if broken is None else Complaint(broken.name, broken)

    def broken_now(self) -> Complaint | None:
        """The first property of states that does not hold."""
        return next((Complaint(p.name, p) for p, test in self.judge.always if not holds_in(test, self.state, self.pasts)), None)

    def is_released(self) -> bool:
        """Whether the instance is over."""
        return self.judge.released is not None and holds_in(self.judge.released, self.state, self.pasts)

    def timers_by_state(self) -> tuple[set[Enum], set[Enum]]:
        """The timers that run and those that are held, as the state has them."""
        armed = {timer for timer, test in self.judge.armed.items() if holds_in(test, self.state, self.pasts)}
        return armed, {timer for timer, test in self.judge.paused.items() if holds_in(test, self.state, self.pasts)}

    def _time(self, effect: StartTimer | StopTimer | PauseTimer | ResumeTimer, now_ms: int) -> None:
        timer = effect.timer
        if isinstance(effect, StartTimer):
            self.held.pop(timer, None)
            self.armed[timer] = max(now_ms + self.judge.durations_ms[timer], effect.not_before_ms)
        elif isinstance(effect, StopTimer):
            self.armed.pop(timer, None)
            self.held.pop(timer, None)
        elif isinstance(effect, PauseTimer):
            if timer in self.armed:
                self.held[timer] = max(0, self.armed.pop(timer) - now_ms)  # 0: it is due, and only the loop was too busy
        elif timer in self.held:
            self.armed[timer] = now_ms + self.held.pop(timer)


# ── in messages ──


def same(one: AnyAnswer, other: AnyAnswer) -> bool:
    """Whether two answers are of one row and say the same; two refusals of different rows are not the same."""
    return one.row is other.row and one == other


def differing(answer: AnyAnswer, other: AnyAnswer) -> str:
    """Where two answers part: their kinds and rows, else their effects, else their states."""
    kinds = [f"{type(a).__name__.lower()} by row {a.row.name}" for a in (answer, other)]
    if not isinstance(answer, Taken) or not isinstance(other, Taken) or answer.row is not other.row:
        return f"was answered {kinds[0]}; the table answers {kinds[1]}"
    effects = [", ".join(show_event(effect) for effect in a.effects) or "no effect" for a in (answer, other)]
    if answer.effects != other.effects:
        return f"was answered with {effects[0]}; the table answers with {effects[1]}"
    return f"was answered with a state where {apart(answer.state, other.state)}"


def apart(shell: object, table: object) -> str:
    """The fields in which two states differ."""
    if type(shell) is not type(table):
        return f"the shell has {shell!r} and the table {table!r}"
    pairs = ((name, getattr(shell, name), getattr(table, name)) for name in fields_of(type(shell)))
    return ", ".join(f"{name} is {show_value(one)}, by the table {show_value(other)}" for name, one, other in pairs if one != other)


def running(timers: tuple[set[Enum], set[Enum]]) -> str:
    """Timers that run and that are held, in a message."""
    run, held = (", ".join(sorted(timer.name.lower() for timer in some)) or "none" for some in timers)
    return f"{run} run and {held} are held"


def dues(timers: Mapping[Enum, int]) -> str:
    """Timers with their milliseconds in a message."""
    return ", ".join(f"{timer.name.lower()} at {ms}" for timer, ms in timers.items()) or "none"
