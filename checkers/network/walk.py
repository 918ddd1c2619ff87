"""What a walk over a system's states is asked, and what it answers; the same for the plain walk and for the compiled one."""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum

import attrs

from turnproof.checkers.network.run import Fault, Occurrence, Runner, World
from turnproof.checkers.network.triggers import Kind, Trigger
from turnproof.machines.kernel import Formula
from turnproof.specs.language import Said

Key = tuple[str, str, int]
"""What kind of question, about which property, and which of several of that kind."""


class Over(Enum):
    """What a question is about."""

    STATE = "state"
    """Some reachable state satisfies the formula."""
    STEP = "step"
    """Some step from a reachable state satisfies it."""
    STUCK = "stuck"
    """Some reachable state satisfies it and no step from there changes anything."""


@attrs.frozen(eq=False)
class Question:
    """Is there a reachable state, or a step, where this holds? ``key`` tells questions apart."""

    key: Key
    holds: Formula
    over: Over


@attrs.frozen(eq=False)
class Choice:
    """One step of a trace: what began it; for a channel, the event it delivered or lost."""

    trigger: Trigger
    event: object = None


Trace = tuple[Choice, ...]


@attrs.frozen(eq=False)
class Flaw:
    """A fault of the system itself, with the shortest way to it; the last choice of ``trace`` is the step that is not allowed."""

    fault: Fault
    sentence: str
    trace: Trace


@attrs.frozen(eq=False)
class Handled:
    """That some reachable step had a part handle this event in this state, and how it was answered."""

    part: str
    event: object
    state: object
    said: Said
    row: str


@attrs.define(eq=False)
class Walk:
    """What a walk found. ``complete`` is false when a budget or an interrupt ended it; ``why`` says which."""

    engine: str
    states: int = 0
    transitions: int = 0
    levels: list[int] = attrs.field(factory=list)
    """States first reached in 0, 1, 2, ... steps."""
    hits: dict[Key, Trace] = attrs.field(factory=dict)
    """Key of a question -> the shortest trace to a state, or through a step, where it holds. Questions without a hit are left out."""
    flaws: dict[Fault, Flaw] = attrs.field(factory=dict)
    cut: int = 0
    """Steps not followed because they leave the bounds of counters."""
    complete: bool = True
    why: str = ""
    taken: dict[int, bool] = attrs.field(factory=dict)
    """Index of each trigger that ever began a step -> whether any such step changed anything."""
    handled: list[Handled] = attrs.field(factory=list)
    wires: set[int] = attrs.field(factory=set)
    """Indices of the wires that carried something."""
    copies: set[int] = attrs.field(factory=set)
    seconds: float = 0.0
    memory: int = 0
    """Bytes held by the states at the end, everything included."""

    @property
    def depth(self) -> int:
        """Steps to the farthest state."""
        return max(0, len(self.levels) - 1)


def replay(runner: Runner, trace: Trace) -> list[Occurrence]:
    """The steps of a trace, performed from the initial state through ``machine.step``. Raises ``RuntimeError`` where one is not enabled."""
    world: World = runner.initial()
    steps: list[Occurrence] = []
    for number, choice in enumerate(trace, 1):
        trigger = located(runner, world, choice)
        if not runner.enabled(world, trigger):
            raise RuntimeError(f"internal error: step {number} of a trace ({trigger}) is not enabled when it is replayed")
        steps.append(runner.perform(world, trigger))
        world = steps[-1].after
    return steps


def located(runner: Runner, world: World, choice: Choice) -> Trigger:
    """The trigger of a choice, with the place where its event lies in the channel now."""
    trigger = choice.trigger
    if trigger.kind not in (Kind.DELIVER, Kind.LOSE):
        return trigger
    content = world.channels[runner.channel[trigger.where]]
    if choice.event not in content:
        raise RuntimeError(f"internal error: {trigger.where} does not hold {choice.event} when a trace is replayed")
    return attrs.evolve(trigger, position=content.index(choice.event))


def by_key(questions: tuple[Question, ...]) -> Mapping[Key, Question]:
    """Questions by their key. Raises ``ValueError`` if two share one."""
    found = {q.key: q for q in questions}
    if len(found) != len(questions):
        raise ValueError("two questions share a key")
    return found
