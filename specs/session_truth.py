"""What an observer beside the wire knows of an OpenCode session: which execution served which prompt, and whose wake a turn took.

A monitor: the adapter never sees any of it. An execution is called by the first item it was begun with.
"""

from __future__ import annotations

from enum import Enum
from typing import Annotated, Any

from attrs import evolve, frozen

from turnproof.machines.kernel import NOBODY, Machine, Row, Token, choose, symbol


class TruthPhase(Enum):
    """What happened that never may."""

    SOUND = "sound"
    TWICE = "twice"
    """A turn got a second terminal."""
    ASTRAY = "astray"
    """A wake was taken that nobody held: taken twice, or taken and dropped."""


SOUND, TWICE, ASTRAY = TruthPhase


@frozen
class Truth:
    """Executions of prompts and wakes."""

    phase: TruthPhase = SOUND
    a: Annotated[str, Token] = NOBODY
    """The execution that the first prompt was delivered to."""
    b: Annotated[str, Token] = NOBODY
    running: Annotated[str, Token] = NOBODY
    """The execution of the last start handled."""
    first: Annotated[str, Token] = NOBODY
    """The execution of the oldest wake held."""
    second: Annotated[str, Token] = NOBODY
    third: Annotated[str, Token] = NOBODY
    taken: Annotated[str, Token] = NOBODY
    """The execution of the wake that the continuation installed took."""
    told_a: bool = False
    """The turn of the first prompt has its terminal."""
    told_b: bool = False
    failed: bool = False
    """The turn of the first prompt failed because its request did."""


@frozen
class Delivered:
    """The server delivered an item to an execution."""

    item: Annotated[str, Token]
    execution: Annotated[str, Token]


@frozen
class StartHandled:
    """The adapter handles the start of an execution."""

    execution: Annotated[str, Token]


@frozen
class EndHandled:
    """The adapter handles the end of an execution; of nobody if it never started."""

    execution: Annotated[str, Token]


@frozen
class StartOver:
    """The stream dropped, or went on: no wake is going to be held for the last start any more."""


@frozen
class WakeHeld:
    """The adapter holds a wake for the start it handles."""


@frozen
class WakeTaken:
    """The oldest wake is a continuation's."""


@frozen
class WakeAbsorbed:
    """The newest wake is a user turn's."""


@frozen
class WakesDropped:
    """Every wake held is forgotten."""


@frozen
class Told:
    """A turn has its terminal."""

    prompt: Annotated[str, Token]


@frozen
class Began:
    """A user turn begins, perhaps once more after it was refused."""

    prompt: Annotated[str, Token]


@frozen
class FirstFailed:
    """The turn of the first prompt failed because its request did."""


truth, delivered, started, told, began = symbol(Truth), symbol(Delivered), symbol(StartHandled), symbol(Told), symbol(Began)
NONE_HELD, ONE_HELD, TWO_HELD = truth.first == NOBODY, truth.second == NOBODY, truth.third == NOBODY

TRUTH: Machine[Truth, Any, Any] = Machine(
    name="session_truth",
    initial=Truth(),
    now=truth,
    events=(Delivered, StartHandled, EndHandled, StartOver, WakeHeld, WakeTaken, WakeAbsorbed, WakesDropped, Told, Began, FirstFailed),
    effects=(),
    rows=(
        Row(delivered, when=((delivered.item == "a") & truth.told_a) | ((delivered.item == "b") & truth.told_b),
            ignore="its turn is over: nothing asks whose end comes"),
        Row(delivered, when=delivered.item == "a", data=evolve(truth, a=delivered.execution)),
        Row(delivered, when=delivered.item == "b", data=evolve(truth, b=delivered.execution)),
        Row(Delivered, ignore="which execution a report was delivered to is known by its wake"),
        Row(started, data=evolve(truth, running=started.execution)),
        Row(EndHandled, data=evolve(truth, running=NOBODY)),
        Row(StartOver, data=evolve(truth, running=NOBODY)),
        Row(WakeHeld, when=NONE_HELD, data=evolve(truth, first=truth.running, running=NOBODY)),
        Row(WakeHeld, when=ONE_HELD, data=evolve(truth, second=truth.running, running=NOBODY)),
        Row(WakeHeld, data=evolve(truth, third=truth.running, running=NOBODY)),
        Row(WakeTaken, when=NONE_HELD, to=ASTRAY),
        Row(WakeTaken, data=evolve(truth, taken=truth.first, first=truth.second, second=truth.third, third=NOBODY)),
        Row(WakeAbsorbed, when=NONE_HELD, to=ASTRAY),
        Row(WakeAbsorbed, when=ONE_HELD, data=evolve(truth, first=NOBODY)),
        Row(WakeAbsorbed, when=TWO_HELD, data=evolve(truth, second=NOBODY)),
        Row(WakeAbsorbed, data=evolve(truth, third=NOBODY)),
        Row(WakesDropped, data=evolve(truth, first=NOBODY, second=NOBODY, third=NOBODY)),
        Row(told, when=told.prompt == NOBODY, data=evolve(truth, taken=NOBODY)),
        Row(told, when=((told.prompt == "a") & truth.told_a) | ((told.prompt == "b") & truth.told_b), to=TWICE),
        Row(told, data=evolve(truth, a=choose(told.prompt == "a", NOBODY, truth.a), b=choose(told.prompt == "b", NOBODY, truth.b),
                              told_a=truth.told_a | (told.prompt == "a"), told_b=truth.told_b | (told.prompt == "b"))),
        Row(FirstFailed, data=evolve(truth, failed=True)),
        Row(began, data=evolve(truth, told_a=choose(began.prompt == "a", False, truth.told_a),
                               told_b=choose(began.prompt == "b", False, truth.told_b))),
    ),
)  # fmt: skip
