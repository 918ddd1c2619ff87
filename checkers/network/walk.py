"""What a walk over a system's states is asked, and what it answers; the same for the plain walk and for the compiled one."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from enum import Enum

import attrs

from turnproof.checkers.network.run import Fault, Occurrence, Runner, World
from turnproof.checkers.network.triggers import Trigger
from turnproof.checkers.progress import Progress
from turnproof.machines.kernel import Formula
from turnproof.specs.language import Said

Key = tuple[str, str, int]
"""What kind of question, about which property, and which of several of that kind."""


INTERRUPT = "an interrupt"
"""Why a walk ended that Ctrl-C ended."""


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


@attrs.frozen(kw_only=True)
class Limits:
    """When a walk ends although it is not done. None: never for that reason."""

    states: int | None = None
    seconds: float | None = None
    memory: int | None = None
    """Bytes for the states and their index."""
    answered: frozenset[Key] = frozenset()
    """End as soon as all of these questions are answered, if there are any; breadth first, an answer is the shortest one."""

    def enough(self, hits: Iterable[Key]) -> str:
        """Why the walk may end at the end of a level; empty if it may not."""
        return "nothing more was asked" if self.answered and self.answered.issubset(hits) else ""

    def held(self, memory: int) -> str:
        """Why a walk that holds so many bytes ends; empty if it may go on."""
        return f"the memory limit of {self.memory / 1e6:,.6g} MB" if self.memory is not None and memory > self.memory else ""

    def reached(self, states: int, seconds: float) -> str:
        """Which limit is reached, in words; empty if none is."""
        if self.states is not None and states > self.states:
            return f"the limit of {self.states:,} states"
        if self.seconds is not None and seconds > self.seconds:
            return f"the time limit of {self.seconds:g} s"
        return ""


@attrs.define(eq=False)
class Walk:
    """What a walk found. ``complete`` is false when a budget or an interrupt ended it; ``why`` says which."""

    engine: str
    states: int = 0
    transitions: int = 0
    levels: list[int] = attrs.field(factory=list)
    """States first reached in 0, 1, 2, ... steps."""
    hits: dict[Key, Callable[[], Trace]] = attrs.field(factory=dict)
    """Key of a question -> gives the shortest trace to a state, or through a step, where it holds. One without a hit is left out."""
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


def say_how_far(progress: Progress, known: int, depth: int, queue: int, seconds: float, memory: int) -> None:
    """States found, with depth, queue, states a second and memory."""
    rate = known / max(seconds, 1e-9)
    progress.say(f"states (depth {depth}, {queue:,} waiting, {rate:,.0f} states/s, {memory / 1e6:,.0f} MB)", known)


def replay(runner: Runner, trace: Trace) -> list[Occurrence]:
    """The steps of a trace, performed from the initial state through ``machine.step``. Raises ``RuntimeError`` where one is not enabled."""
    world: World = runner.initial()
    steps: list[Occurrence] = []
    for number, choice in enumerate(trace, 1):
        trigger = runner.located(world, choice.trigger, choice.event)
        if not runner.enabled(world, trigger):
            raise RuntimeError(f"internal error: step {number} of a trace ({trigger}) is not enabled when it is replayed")
        steps.append(runner.perform(world, trigger))
        world = steps[-1].after
    return steps
