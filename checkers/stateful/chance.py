"""Where the sampled runs get their events, manners and bursts from: domains of the fields, and lists drawn once with a fixed seed.

A burst is many actions for one draw of Hypothesis, whose own bookkeeping costs several times what the shell does. It is a function of
its seed and length, so it can be made again, and shorter.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Sequence

from turnproof.checkers.stateful.actions import (
    PLAIN,
    SENDING,
    START_MS,
    Action,
    Advance,
    Caller,
    Close,
    Crowd,
    Doing,
    Fault,
    Jump,
    LateHandlersEnd,
    Plan,
    Send,
    SendTaken,
)
from turnproof.machines.kernel import NOBODY, Field, Kind, fields_of, token_names
from turnproof.specs.language import AnyMachine

TOKENS = 3
"""Identities beside nobody."""
COUNT_MAX = 3
"""Largest value of a counter in an event."""
INSTANCES_MAX = 60
"""Most instances of one event class; of a larger domain, that many are drawn."""
MANNERS = 300
"""Different ways of a caller and its handlers."""
PLAN_MAX, CROWD_MAX, TURNS_MAX = 4, 6, 4

Manner = tuple[Caller, Plan]


class Chance:
    """Everything that can be drawn for one machine; the same for each process and run."""

    def __init__(self, machine: AnyMachine) -> None:
        self.rng = random.Random(0)
        self.times = times(machine)
        self.events: dict[type, Sequence[object]] = {cls: self._instances(cls) for cls in machine.events}
        classes = list(self.events)
        manners = [(self.rng.choice(list(Caller)), self.plan(self.rng, classes)) for _ in range(MANNERS)]
        self.manners: list[Manner] = [(Caller.AWAITS, ()), *sorted(manners, key=_simplest_first)]

    def _instances(self, cls: type) -> Sequence[object]:
        domains = [self._values(field) for field in fields_of(cls).values()]
        made = [cls(*values) for values in itertools.product(*domains)]
        return made if len(made) <= INSTANCES_MAX else self.rng.sample(made, INSTANCES_MAX)

    def _values(self, field: Field) -> Sequence[object]:
        """For an opaque number, among others times on the shell's clock, also past and far ones."""
        if field.kind is Kind.TOKEN:
            return (*token_names(TOKENS), NOBODY)
        if field.kind is not Kind.OPAQUE or field.base not in (int, str):
            return field.values(tokens=TOKENS, counter=COUNT_MAX)
        return (0, *(START_MS + ms for ms in self.times), -1, 10**12) if field.base is int else ("", "x", "é\n'", "long" * 50)

    def event(self, rng: random.Random, classes: Sequence[type]) -> object:
        """Any event of these classes; each class is as likely as the next."""
        return rng.choice(self.events[rng.choice(classes)])

    def plan(self, rng: random.Random, classes: Sequence[type]) -> Plan:
        """What the handlers of one action do: in every third action, nothing special."""
        faults = rng.choices(list(Fault), k=rng.randint(1, PLAN_MAX)) if rng.random() < 0.67 else ()
        return tuple(
            Doing(fault, self.event(rng, classes) if fault in SENDING else None, rng.choice(self.times) if fault is Fault.BLOCKS else 0)
            for fault in faults
        )

    def burst(self, seed: int, length: int) -> tuple[Action, ...]:
        """``length`` actions. As in swarm testing, each burst does without some of the events, so that some get past what ends others."""
        rng = random.Random(seed)
        classes = rng.sample(list(self.events), rng.randint(1, len(self.events)))
        return tuple(self._action(rng, classes) for _ in range(length))

    def _action(self, rng: random.Random, classes: Sequence[type]) -> Action:
        kind, plan = rng.random(), self.plan(rng, classes)
        if kind < 0.27:
            return Send(self.event(rng, classes), rng.choice(list(Caller)), plan)
        if kind < 0.54:
            return SendTaken(rng.randrange(2**32), rng.choice(list(Caller)), plan)
        if kind < 0.64:
            return Crowd(tuple(self.event(rng, classes) for _ in range(rng.randint(2, CROWD_MAX))), plan)
        if kind < 0.67:
            return Jump(rng.choice((1, *self.times)), plan, True)
        if kind < 0.84:
            return Advance(rng.choice((-1, 0, 0, 1)), True, plan)
        if kind < 0.88:
            return Advance(rng.choice(self.times), False, plan)
        if kind < 0.90:
            return Jump(rng.choice(self.times), plan)
        if kind < 0.95:
            return LateHandlersEnd(rng.randint(1, 3), plan)
        events = tuple(self.event(rng, classes) for _ in range(rng.randint(0, CROWD_MAX)))
        return Close(events, rng.randint(0, TURNS_MAX), plan, rng.choice((-1, rng.randint(0, TURNS_MAX))))


def times(machine: AnyMachine) -> list[int]:
    """Milliseconds around the durations of the machine's timers, and some that are not."""
    durations = {rule.duration.milliseconds for rule in machine.timers}
    near = {d + off for d in durations for off in (-1, 0, 1)} | {0, 1}
    chance = random.Random(0)
    return sorted(near | {chance.randrange(2 * max(durations, default=1_000)) for _ in range(12)})


def _simplest_first(manner: Manner) -> tuple[int, int, int]:
    caller, plan = manner
    return len(plan), sum(doing.fault not in PLAIN for doing in plan), list(Caller).index(caller)
