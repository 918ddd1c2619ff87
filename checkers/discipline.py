"""The discipline of timers, which every machine owes without writing it down.

What the effects of a run have made of a timer (off, armed, paused) must be what the state says of it after every step. A timer is
started only while it is off, stopped only while it is armed or paused, paused only while armed, resumed only while paused. Its
expiry is taken exactly while it is armed, and uses it up. Nothing is armed or paused where the machine is released.

Each distinct list of effects is played once on each state of the ledger; the steps of the graph only look the outcome up.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from enum import Enum

import numpy as np

from turnproof.checkers.columns import Array
from turnproof.checkers.judge import Judge, Violation, told
from turnproof.checkers.replay import NEEDS, Ledger, Run, mismatch
from turnproof.checkers.verdict import Engine, Outcome, Verdict
from turnproof.machines.kernel import TableError, TimerRule, formula
from turnproof.specs.language import Said

LEDGERS = tuple(Ledger)
BOTH = len(LEDGERS)
"""The code of a state that says armed and paused at once."""
NO_EXPIRY, TAKEN, NOT_TAKEN = range(3)
HARM = "a timer that fires twice or never, and a state that does not know it"


def check_discipline(judge: Judge) -> list[Verdict]:
    """One verdict a timer, or one for each way it breaks its discipline."""
    for timer in judge.spec.discipline:
        if timer not in {rule.timer for rule in judge.machine.timers}:
            raise TableError(f"discipline= names the timer {timer.name}, which {judge.machine.name} does not have")
    return [verdict for rule in judge.machine.timers for verdict in _check(judge, rule)]


def first_breach(judge: Judge) -> str:
    """One way in which some timer breaks its discipline, without the run that leads to it; empty if none does."""
    for rule in judge.machine.timers:
        ledger = _Ledger(judge, rule)
        number = int(ledger.steps().max(initial=0))
        if number:
            return f"timer {rule.timer.name.lower()}: {ledger.messages[number]}"
    return ""


def _check(judge: Judge, rule: TimerRule) -> Iterator[Verdict]:
    started = time.perf_counter()
    ids = tuple(judge.spec.discipline.get(rule.timer, ()))
    name = f"timer {rule.timer.name.lower()}"
    ledger = _Ledger(judge, rule)
    broken = list(ledger.violations(ids))
    how = judge.graph.bounds()

    def verdict(check: str, outcome: Outcome, detail: str = "", violation: Violation | None = None) -> Verdict:
        stories = violation.stories if violation else ()
        return Verdict(
            machine=judge.machine.name,
            check=check,
            engine=Engine.TABLE,
            outcome=outcome,
            how=how,
            requirements=ids,
            detail=detail,
            story=stories[0] if stories else None,
            others=stories[1:],
            seconds=time.perf_counter() - started,
        )

    for message, violation in broken:
        yield verdict(f"{name}: {message}", Outcome.VIOLATED, violation.detail(), violation)
    if not ledger.armed.any():
        yield verdict(f"{name} is armed by some run", Outcome.VIOLATED, f"no reachable state says armed: `{rule.armed}` is never true")
    elif not broken:
        yield verdict(f"{name} is armed exactly where the state says so, started and stopped once", Outcome.HOLDS)


class _Ledger:
    """One timer of one graph."""

    def __init__(self, judge: Judge, rule: TimerRule) -> None:
        self.judge, self.rule = judge, rule
        self.messages: list[str] = [""]
        self.armed = self._where(rule.armed, "armed")
        paused = self._where(rule.paused, "paused") if rule.paused is not None else np.zeros_like(self.armed)
        released = judge.machine.released_formula
        self.released = self._where(released, "released") if released is not None else np.zeros_like(self.armed)
        codes = [LEDGERS.index(Ledger.OFF), LEDGERS.index(Ledger.ARMED), LEDGERS.index(Ledger.PAUSED)]
        self.claimed = np.select([self.armed & paused, self.armed, paused], [BOTH, codes[1], codes[2]], codes[0])

    def _where(self, node: object, what: str) -> Array:
        place = f"timer {self.rule.timer.name}: {what}"
        return np.array(self.judge.evaluation.states_where(formula(node, place), place))

    def violations(self, ids: tuple[str, ...]) -> Iterator[tuple[str, Violation]]:
        """Each sentence that some step breaks, with the runs to it."""
        wrong = mismatch(Ledger.OFF, self._ledger(int(self.claimed[0])), bool(self.released[0]))
        if wrong:
            yield wrong, self._told(wrong, [[]], 1, ids)
        found = self.steps()
        for number in np.unique(found[found > 0]).tolist():
            bad = found == number
            lines = self.judge.first_runs(bad, all_rows=True)
            yield self.messages[number], self._told(self.messages[number], lines, int(bad.sum()), ids)

    def _told(self, message: str, lines: Sequence[Sequence[tuple[int, int]]], count: int, ids: tuple[str, ...]) -> Violation:
        timer = self.rule.timer
        broken = told(f"timer {timer.name.lower()}: {message}", ids, HARM)
        claim = f"run.expect_discipline({type(timer).__name__}.{timer.name})"
        stories = [self.judge.tell(line, _complains(timer, message), broken, claim, names=(type(timer),)) for line in lines]
        return Violation(tuple(stories), count, "steps")

    def steps(self) -> Array:
        """(event, node) -> number of the message; 0 where nothing is wrong."""
        graph = self.judge.graph
        sequences = [tuple(type(e) for e in listed if type(e) in NEEDS and e.timer is self.rule.timer) for listed in graph.effect_lists]
        distinct = list(dict.fromkeys(sequences))
        of_list = np.array([distinct.index(s) for s in sequences])
        played = np.array([[[self._play(s, ledger, expiry) for expiry in range(3)] for ledger in LEDGERS] for s in distinct])
        compared = np.array(
            [[[self._compare(ledger, claim, bool(r)) for r in range(2)] for claim in range(BOTH + 1)] for ledger in LEDGERS]
        )
        before = np.where(self.claimed == BOTH, LEDGERS.index(Ledger.ARMED), self.claimed)[: graph.explored]
        # A slip inside the step comes first; only then what the state after it says.
        outcome = played[of_list[graph.effects], before[None, :], self._expiry()]
        message, ledger = outcome[..., 0], outcome[..., 1]
        after = compared[ledger, self.claimed[graph.successor], self.released[graph.successor].astype(np.int8)]
        found: Array = np.where(message > 0, message, after) * (graph.row >= 0)
        return found

    def _expiry(self) -> Array:
        """(event, node) -> whether the step is the timer's expiry, and taken."""
        graph = self.judge.graph
        is_expiry = np.array([type(event) is self.rule.expires for event in graph.events])[:, None]
        taken = graph.said[graph.row] == list(Said).index(Said.TAKEN)
        return np.where(is_expiry, np.where(taken, TAKEN, NOT_TAKEN), NO_EXPIRY)

    def _play(self, effects: Sequence[type], ledger: Ledger, expiry: int) -> tuple[int, int]:
        """Number of the first thing that is wrong, and the ledger afterwards."""
        wrong = ""
        if expiry == TAKEN and ledger is not Ledger.ARMED:
            wrong = f"its expiry is taken while it is {ledger.value}"
        elif expiry == NOT_TAKEN and ledger is Ledger.ARMED:
            wrong = "its expiry is not taken while it is armed, so it never fires again"
        if expiry != NO_EXPIRY and ledger is Ledger.ARMED:
            ledger = Ledger.OFF
        for effect in effects:
            allowed, made, word = NEEDS[effect]
            if ledger not in allowed:
                wrong = wrong or f"it is {word} while it is {ledger.value}"
            ledger = made
        return self._number(wrong), LEDGERS.index(ledger)

    def _compare(self, ledger: Ledger, claimed: int, released: bool) -> int:
        return self._number(mismatch(ledger, self._ledger(claimed), released))

    @staticmethod
    def _ledger(claimed: int) -> Ledger | None:
        return None if claimed == BOTH else LEDGERS[claimed]

    def _number(self, message: str) -> int:
        if message not in self.messages:
            self.messages.append(message)
        return self.messages.index(message)


def _complains(timer: Enum, message: str) -> Callable[[Run], bool]:
    return lambda run: run.complaint(timer) == message


__all__ = ["check_discipline", "first_breach"]
