"""Plays one run of a machine again, by itself, and says what it breaks.

No counterexample is shown before it was played here: through ``machine.step``, with formulas read by Python and a ledger of the
timers kept step by step, so that a slip of the graph engine shows as an internal error and never as a false alarm. The pasteable
test of a counterexample uses the same :class:`Run`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from enum import Enum
from typing import Any

import attrs

from turnproof.checkers.carried import Carrying
from turnproof.checkers.predicates import Memory, Pasts, Predicates
from turnproof.checkers.words import is_about_steps, words_of
from turnproof.machines.kernel import HOLE, Ignored, PauseTimer, ResumeTimer, StartTimer, StopTimer, Taken, TimerRule
from turnproof.specs.language import (
    Always,
    Answered,
    AnyMachine,
    Carries,
    EventuallyAlways,
    Fair,
    LeadsTo,
    Order,
    Property,
    Said,
    Sometimes,
    Spec,
    Step,
)


class InternalError(AssertionError):
    """An engine is wrong: what it found does not happen when it is played again. Never the fault of a machine or a specification."""


class Ledger(Enum):
    """What the effects of a run have made of a timer."""

    OFF = "off"
    ARMED = "armed"
    PAUSED = "paused"


NEEDS = {
    StartTimer: ((Ledger.OFF,), Ledger.ARMED, "started"),
    StopTimer: ((Ledger.ARMED, Ledger.PAUSED), Ledger.OFF, "stopped"),
    PauseTimer: ((Ledger.ARMED,), Ledger.PAUSED, "paused"),
    ResumeTimer: ((Ledger.PAUSED,), Ledger.ARMED, "resumed"),
}
"""Effect on a timer -> where it is allowed, what it makes of the timer, and the word for it."""


@attrs.frozen
class Played:
    """One step of a run."""

    before: Any
    pasts: Pasts
    event: Any
    answer: Any
    said: Said
    effects: tuple[Any, ...]
    after: Any
    pasts_after: Pasts
    complaints: Mapping[Enum, str]
    """Timer -> how this step broke its discipline."""


class Run:
    """A run of a specification's machine from its initial state, or of ``machine`` in its place."""

    def __init__(self, spec: Spec, *, machine: AnyMachine | None = None) -> None:
        self.spec = spec
        self.machine = spec.machine if machine is None else machine
        self.predicates = Predicates(self.machine, spec.histories)
        self.memory = Memory(self.machine, spec)
        self.state: Any = self.machine.initial
        self.pasts = self.memory.initial
        self.ledger = {rule.timer: Ledger.OFF for rule in self.machine.timers}
        self.played: list[Played] = []

    def send(self, event: object) -> Any:
        """Play one event; the answer of the machine."""
        answer = self.machine.step(self.state, event)
        if isinstance(answer, Taken):
            said, effects, after = Said.TAKEN, answer.effects, answer.state
        else:
            said, effects, after = Said.IGNORED if isinstance(answer, Ignored) else Said.REFUSED, (), self.state
        pasts = self.memory.after(self.state, self.pasts, event, said, effects, after)
        complaints = self._complaints(event, said, effects, after)
        self.played.append(Played(self.state, self.pasts, event, answer, said, effects, after, pasts, complaints))
        self.state, self.pasts = after, pasts
        return answer

    # ── what the run breaks ──

    def expect(self, name: str, *, loop_from: int = 0) -> None:
        """Raise ``AssertionError`` if the run breaks the property of that name: at its end, or for ever from step ``loop_from`` on."""
        assert not self.breaks(self.property(name), loop_from=loop_from), f"broken: {name}"

    def expect_an_answer(self) -> None:
        """Raise ``AssertionError`` if no row of the table answered the last event."""
        assert not self.falls_through(), f"no row answers {self.played[-1].event} in {self.played[-1].before}"

    def expect_discipline(self, timer: Enum) -> None:
        """Raise ``AssertionError`` if the last step broke the discipline of ``timer``."""
        complaint = self.complaint(timer)
        assert not complaint, f"timer {timer.name}: {complaint}"

    def property(self, name: str) -> Property:
        """The property of that name. Raises ``KeyError`` with the names there are."""
        for prop in self.spec.properties:
            if prop.name == name:
                return prop
        raise KeyError(f"no property is called {name!r}; there are {', '.join(repr(p.name) for p in self.spec.properties)}")

    def breaks(self, prop: Property, *, loop_from: int = 0) -> bool:
        """Whether the run ends in a violation of ``prop``; for a promise about the future, whether its loop never keeps it."""
        if isinstance(prop, Always):
            return not self.holds_now(prop.holds)
        if isinstance(prop, Step):
            return bool(self.played) and not self.held(prop.holds, self.played[-1])
        if isinstance(prop, Order):
            last = self.played[-1] if self.played else None
            return last is not None and prop.broken_by(last.effects) and (prop.when is None or self.held(prop.when, last))
        if isinstance(prop, Carries):
            return bool(self.miscarried(prop))
        if isinstance(prop, LeadsTo):
            return self._is_fair(prop.fairness, loop_from) and self._never_led_to(prop, loop_from)
        if isinstance(prop, EventuallyAlways):
            states = self._loop_states(loop_from)
            return self._is_fair(prop.fairness, loop_from) and any(not self._holds_in(prop.holds, *state) for state in states)
        if isinstance(prop, Sometimes):
            raise TypeError(f"no run breaks {prop.name!r}: it only has to be reached by some run")
        raise TypeError(f"{type(prop).__name__} is a kind of property that cannot be replayed")

    def miscarried(self, prop: Carries) -> str:
        """How the row of the last step carries a wrong value, for some opaque values and counts; empty if it does not."""
        if not self.played:
            return ""
        last = self.played[-1]
        carrying = Carrying(self.machine, prop, self.spec.histories)
        return carrying.fault(self.machine.generated[type(last.event)], last.before, last.pasts, last.event)

    def falls_through(self) -> bool:
        """Whether the last event met a hole of the table."""
        return bool(self.played) and self.played[-1].answer.row is HOLE

    def complaint(self, timer: Enum) -> str:
        """How the last step broke the discipline of ``timer``; empty if it did not."""
        return self.played[-1].complaints.get(timer, "") if self.played else self._mismatch(self._rule(timer), self.machine.initial)

    def reaches(self, holds: object) -> bool:
        """Whether the last step, or else the state at the end, satisfies ``holds``."""
        return self.holds_now(holds) if not self.played else self.held(holds, self.played[-1])

    # ── formulas ──

    def holds_now(self, node: object) -> bool:
        """Whether a formula over the state holds at the end of the run."""
        return self._holds_in(node, self.state, self.pasts)

    def held(self, node: object, step: Played) -> bool:
        """Whether a formula over a step holds of ``step``."""
        test = self.predicates.test(node)
        return test(step.before, step.pasts, step.event, step.said, step.effects, step.after, step.pasts_after)

    def _holds_in(self, node: object, state: object, pasts: Pasts) -> bool:
        return self.predicates.test(node)(state, pasts, None, Said.IGNORED, (), state, pasts)

    # ── for ever ──

    def _loop_states(self, loop_from: int) -> list[tuple[object, Pasts]]:
        """The states of the loop: from before step ``loop_from`` (counted from 1) to the end. Raises ``ValueError`` if it is no loop."""
        loop = self.played[loop_from - 1 :] if loop_from else None
        if loop is None or loop_from > len(self.played) + 1:
            raise ValueError(f"a promise about the future is broken by a loop: say loop_from=, 1 to {len(self.played) + 1}")
        if loop and (loop[0].before, loop[0].pasts) != (self.state, self.pasts):
            raise ValueError(f"the steps from {loop_from} on do not lead back to where they begin")
        return [(step.before, step.pasts) for step in loop] or [(self.state, self.pasts)]

    def _is_fair(self, fairness: Sequence[Fair], loop_from: int) -> bool:
        states, steps = self._loop_states(loop_from), self.played[loop_from - 1 :]
        for fair in fairness:
            enabled = [self._holds_in(fair.enabled, *state) for state in states]
            must = any(enabled) if fair.strong else all(enabled)
            if must and not any(self.counts_as_taken(fair, step) for step in steps):
                return False
        return True

    def counts_as_taken(self, fair: Fair, step: Played) -> bool:
        """Whether a fairness assumption is served by ``step``."""
        if not self.held(fair.taken, step):
            return False
        return asks_for_a_refusal(fair) or bool(step.effects) or (step.after, step.pasts_after) != (step.before, step.pasts)

    def _never_led_to(self, prop: LeadsTo, loop_from: int) -> bool:
        """Whether at some moment ``first`` held, and neither then nor later, the loop included, ``then``."""
        first, then = self._moments(prop.first), self._moments(prop.then)
        last = max((n for n, held in enumerate(then) if held), default=-1)
        return last < 2 * (loop_from - 1) and any(held for n, held in enumerate(first) if n > last)

    def _moments(self, node: object) -> list[bool]:
        """Alternating: the state, the step from it, the next state, ...; a formula about steps holds of no state and vice versa."""
        steps = is_about_steps(node)
        made = [not steps and self._holds_in(node, self.machine.initial, self.memory.initial)]
        for step in self.played:
            made += [steps and self.held(node, step), not steps and self._holds_in(node, step.after, step.pasts_after)]
        return made

    # ── timers ──

    def _rule(self, timer: Enum) -> TimerRule:
        return next(rule for rule in self.machine.timers if rule.timer is timer)

    def _complaints(self, event: object, said: Said, effects: tuple[Any, ...], after: object) -> dict[Enum, str]:
        found: dict[Enum, str] = {}
        for rule in self.machine.timers:
            wrong = self._expiry(rule, event, said)
            for effect in effects:
                if type(effect) in NEEDS and effect.timer is rule.timer:
                    allowed, made, word = NEEDS[type(effect)]
                    if self.ledger[rule.timer] not in allowed:
                        wrong = wrong or f"it is {word} while it is {self.ledger[rule.timer].value}"
                    self.ledger[rule.timer] = made
            claimed, released = self._claims(rule, after)
            wrong = wrong or mismatch(self.ledger[rule.timer], claimed, released)
            # From here on the state is believed again, so that one slip is told once.
            self.ledger[rule.timer] = Ledger.ARMED if claimed is None else claimed
            if wrong:
                found[rule.timer] = wrong
        return found

    def _expiry(self, rule: TimerRule, event: object, said: Said) -> str:
        if type(event) is not rule.expires:
            return ""
        if self.ledger[rule.timer] is Ledger.ARMED:
            self.ledger[rule.timer] = Ledger.OFF
            return "" if said is Said.TAKEN else "its expiry is not taken while it is armed, so it never fires again"
        return f"its expiry is taken while it is {self.ledger[rule.timer].value}" if said is Said.TAKEN else ""

    def _mismatch(self, rule: TimerRule, state: object) -> str:
        return mismatch(self.ledger[rule.timer], *self._claims(rule, state))

    def _claims(self, rule: TimerRule, state: object) -> tuple[Ledger | None, bool]:
        """What the state says of a timer (None: armed and paused at once), and whether nothing may be armed any more."""
        armed = self._holds_in(rule.armed, state, self.pasts)
        paused = rule.paused is not None and self._holds_in(rule.paused, state, self.pasts)
        released = self.machine.released is not None and self._holds_in(self.machine.released, state, self.pasts)
        if armed and paused:
            return None, released
        return Ledger.ARMED if armed else Ledger.PAUSED if paused else Ledger.OFF, released


def mismatch(ledger: Ledger, claimed: Ledger | None, released: bool) -> str:
    """What is wrong between a timer's ledger and what the state after a step says of it; empty if nothing is."""
    if claimed is None:
        return "the state says that it is armed and paused at once"
    if claimed is not ledger:
        return f"the effects leave it {ledger.value}, the state says {claimed.value}"
    return f"it is still {ledger.value} where the machine is released" if released and ledger is not Ledger.OFF else ""


def asks_for_a_refusal(fair: Fair) -> bool:
    """Whether the assumption itself counts ignored or refused steps."""
    return any(isinstance(word, Answered) and word.said is not Said.TAKEN for word in words_of(fair.taken))


Check = Callable[[Run], bool]


def replayed(spec: Spec, machine: AnyMachine, events: Sequence[object], breaks: Check, what: str) -> Run:
    """The run of ``events``, after making sure that it ends where ``breaks`` is true. Raises :class:`InternalError` if it does not."""
    run = Run(spec, machine=machine)
    for event in events:
        run.send(event)
    if not breaks(run):
        told = ", ".join(str(event) for event in events) or "no event at all"
        raise InternalError(f"internal error: the explicit engine says that {told} breaks `{what}`; played again it does not")
    return run


def expect_same(run: Run, states: Sequence[tuple[object, Pasts]]) -> None:
    """Raise :class:`InternalError` unless the run passed through exactly these states with their histories."""
    passed = [(step.after, step.pasts_after) for step in run.played]
    if passed != list(states):
        raise InternalError("internal error: the explicit engine recorded other states than machine.step gives")


__all__ = ["NEEDS", "Check", "InternalError", "Ledger", "Played", "Run", "asks_for_a_refusal", "expect_same", "mismatch", "replayed"]
