"""A run of a system played by hand, step by step through ``machine.step``: what a counterexample's pasteable test uses.

run = Play(SPEC)
run.send("caller", AskRequested())         # an event comes from outside
run.send("caller", Timer.REPLY)            # a timer expires
run.send("replies", ReplyArrived(1))       # a channel delivers
run.send("replies", ReplyArrived(1), "lose")
run.send("replies", "drop")
assert run.keeps("a wait ends")
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum

import attrs

from turnproof.checkers.network.questions import ACTED, stutter_serves
from turnproof.checkers.network.run import Broken, Cut, Occurrence, Runner, World
from turnproof.checkers.network.triggers import Kind, Trigger, show_event, triggers
from turnproof.machines.kernel import formula
from turnproof.specs.language import Always, EventuallyAlways, Fair, LeadsTo, Property, Sometimes, Step
from turnproof.specs.system import NoDeadlock, System, SystemSpec
from turnproof.specs.system_words import reads_step


class Play:
    """One run of ``spec.system``, or of ``system`` instead of it (a variant), with every switch on."""

    def __init__(self, spec: SystemSpec, system: System | None = None) -> None:
        self.spec, self.system = spec, spec.system if system is None else system
        self.runner = Runner(self.system, counter=spec.counter)
        self.triggers = triggers(self.system, tokens=spec.tokens, counter=spec.counter)
        self.worlds: list[World] = [self.runner.initial()]
        self.steps: list[Occurrence] = []

    @property
    def now(self) -> World:
        """The state the run is in."""
        return self.worlds[-1]

    def send(self, where: str, what: object, how: str = "") -> Occurrence:
        """One step. Raises ``ValueError`` when it is not possible now."""
        for trigger in self.triggers:
            if trigger.where == where and self._means(trigger, what, how):
                if trigger.kind in (Kind.DELIVER, Kind.LOSE):
                    if what not in self.now.channels[self.runner.channel[where]]:
                        break
                    trigger = self.runner.located(self.now, trigger, what)
                if self.runner.enabled(self.now, trigger):
                    return self._perform(trigger)
        shown = show_event(what) if attrs.has(type(what)) else what
        raise ValueError(f"step {len(self.steps) + 1}: {where} {shown} {how}".rstrip() + " cannot happen here")

    @staticmethod
    def _means(trigger: Trigger, what: object, how: str) -> bool:
        if isinstance(what, Enum):
            return trigger.kind is Kind.EXPIRE and trigger.timer is what
        if isinstance(what, str):
            return trigger.kind is Kind(what)
        if trigger.kind is Kind.SEND:
            return bool(trigger.event == what)
        return trigger.kind is Kind(how or "deliver")

    def _perform(self, trigger: Trigger) -> Occurrence:
        step = self.runner.perform(self.now, trigger)
        self.steps.append(step)
        self.worlds.append(step.after)
        return step

    def in_time(self, name: str) -> bool:
        """Whether the system as it is now keeps the promise with a time of that name: the bound is computed again, over its whole graph."""
        from turnproof.checkers.network.explicit import explore, judge_property
        from turnproof.checkers.verdict import Outcome

        prop = next(p for p in self.spec.properties if p.name == name)
        graph = explore(self.spec, system=self.system, properties=(prop,))
        return judge_property(graph, prop).outcome is Outcome.HOLDS

    def keeps(self, name: str, *, loop_from: int = 0) -> bool:
        """Whether this run keeps the property of that name; with ``loop_from``, its steps from that number on are repeated for ever."""
        prop = next(p for p in self.spec.properties if p.name == name)
        return keeps(self.runner, prop, self.triggers, self.worlds, self.steps, loop_from)


def keeps(runner: Runner, prop: Property, every: tuple[Trigger, ...], worlds: list[World], steps: list[Occurrence], loop_from: int) -> bool:
    """Whether a finite run, or a lasso, keeps ``prop``. One more than the number of steps as ``loop_from``: nothing happens any more."""
    if isinstance(prop, Always):
        return all(runner.holds(prop.holds, w) for w in worlds)
    if isinstance(prop, Step):
        return all(runner.holds_of(prop.holds, s) for s in steps)
    if isinstance(prop, Sometimes):
        raise ValueError(f"{prop.name!r} is about all runs, not about one")
    if isinstance(prop, LeadsTo | EventuallyAlways) and not loop_from:
        raise ValueError(f"{prop.name!r} is about runs that never end: say where this one loops")
    if isinstance(prop, LeadsTo):
        return _led(runner, prop, worlds, steps, loop_from)
    if isinstance(prop, EventuallyAlways):
        # What loops for ever is the steps from loop_from on; with none of them, the last state.
        return all(runner.holds(prop.holds, world) for world in worlds[loop_from:] or worlds[-1:])
    if isinstance(prop, NoDeadlock):
        return not is_stuck(runner, every, worlds[-1]) or (prop.unless is not None and bool(runner.holds(prop.unless, worlds[-1])))
    raise TypeError(f"no engine for systems reads a {type(prop).__name__}")


def _led(runner: Runner, prop: LeadsTo, worlds: list[World], steps: list[Occurrence], loop_from: int) -> bool:
    def held(what: bool, moment: World | Occurrence) -> bool:
        """Whether it holds at this moment: one about steps holds of no state, one about states of no step."""
        if isinstance(moment, Occurrence):
            return reads_step(what) and bool(runner.holds_of(what, moment))
        return not reads_step(what) and bool(runner.holds(what, moment))

    loop = [moment for pair in zip(steps[loop_from - 1 :], worlds[loop_from:], strict=True) for moment in pair]
    stem = [moment for pair in zip(steps[: loop_from - 1], worlds[1:loop_from], strict=True) for moment in pair]
    owed = False
    # A step is one moment and the state that it leads to the next, so a step keeps nothing that its own end promises. Twice round the
    # loop, so that what is owed at its end is looked for in all of it.
    for moment in (worlds[0], *stem, *loop, *loop):
        owed = (owed or held(prop.first, moment)) and not held(prop.then, moment)
    return not owed


def is_fair(runner: Runner, fairness: Sequence[Fair], worlds: Sequence[World], steps: Sequence[Occurrence], loop_from: int) -> bool:
    """Whether the loop of a lasso is fair by itself: a weak assumption is somewhere not enabled or taken, a strong one taken or nowhere
    enabled. A step that changes nothing and has no effect is a stutter, see :func:`stutter_serves`."""
    loop, around = steps[loop_from - 1 :], worlds[loop_from:] or worlds[-1:]
    for fair in fairness:
        taken = formula(fair.taken, fair.name)
        serves = [step for step in loop if stutter_serves(taken) or step.before != step.after or runner.holds_of(ACTED, step)]
        enabled = [bool(runner.holds(fair.enabled, world)) for world in around]
        if (any(enabled) if fair.strong else all(enabled)) and not any(runner.holds_of(taken, step) for step in serves):
            return False
    return True


def is_stuck(runner: Runner, every: tuple[Trigger, ...], world: World) -> bool:
    """Whether no step changes anything."""
    return not any(runner.enabled(world, t) and _moves(runner, world, t) for t in every)


def _moves(runner: Runner, world: World, trigger: Trigger) -> bool:
    try:
        return runner.perform(world, trigger).after != world
    except (Cut, Broken):
        # A step that is not followed might change anything.
        return True
