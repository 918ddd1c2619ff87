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

from enum import Enum

import attrs

from turnproof.checkers.network.run import Broken, Cut, Occurrence, Runner, World
from turnproof.checkers.network.triggers import Kind, Trigger, show_event, triggers
from turnproof.specs.language import Always, EventuallyAlways, LeadsTo, Property, Sometimes, Step
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
    def now(node: bool, world: World, step: Occurrence | None) -> bool:
        if not reads_step(node):
            return bool(runner.holds(node, world))
        return step is not None and bool(runner.holds_of(node, step))

    moments: list[tuple[World, Occurrence | None]] = [(worlds[0], None), *zip(worlds[1:], steps, strict=True)]
    owed = False
    # Twice round the loop, so that what is owed at its end is looked for in all of it.
    for world, step in (*moments, *moments[loop_from:]):
        owed = (owed or now(prop.first, world, step)) and not now(prop.then, world, step)
    return not owed


def is_stuck(runner: Runner, every: tuple[Trigger, ...], world: World) -> bool:
    """Whether no step changes anything."""
    return not any(runner.enabled(world, t) and _moves(runner, world, t) for t in every)


def _moves(runner: Runner, world: World, trigger: Trigger) -> bool:
    try:
        return runner.perform(world, trigger).after != world
    except (Cut, Broken):
        # A step that is not followed might change anything.
        return True
