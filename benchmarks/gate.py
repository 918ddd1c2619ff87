"""A small machine whose every field is finite, so that its whole table is interned: a gate that opens for two coins."""

from __future__ import annotations

from enum import Enum
from typing import Annotated, get_args

from attrs import evolve, frozen

from turnproof.machines.kernel import Duration, Machine, Range, Row, StartTimer, StopTimer, TimerRule, symbol


class Phase(Enum):
    """Where the gate is."""

    LOCKED = "locked"
    OPEN = "open"
    ALARM = "alarm"


class Timer(Enum):
    """The timer of the gate."""

    CLOSE = "close"
    """Nobody walked through."""


LOCKED, OPEN, ALARM = Phase


@frozen
class Gate:
    """The gate."""

    phase: Phase = Phase.LOCKED
    coins: Annotated[int, Range(0, 2)] = 0
    armed: bool = False


@frozen
class CoinInserted:
    """A coin fell in."""


@frozen
class Pushed:
    """Somebody pushed, with or without force."""

    hard: bool


@frozen
class CloseExpired:
    """Nobody walked through in time."""


@frozen
class Reset:
    """The guard turned the key."""


@frozen
class Unlock:
    """Draw the bolt."""


@frozen
class Lock:
    """Shoot the bolt."""


@frozen
class Ring:
    """Ring the bell."""


Event = CoinInserted | Pushed | CloseExpired | Reset
Effect = Unlock | Lock | Ring | StartTimer | StopTimer
now, pushed = symbol(Gate), symbol(Pushed)

ROWS: tuple[Row[Gate, Effect], ...] = (
    Row(CoinInserted, at=LOCKED, when=now.coins == 1, to=OPEN, data=evolve(now, coins=2, armed=True),
        emit=(Unlock(), StartTimer(Timer.CLOSE))),
    Row(CoinInserted, at=LOCKED, data=evolve(now, coins=now.coins + 1)),
    Row(CoinInserted, refuse="the slot is shut"),
    Row(Pushed, at=OPEN, to=LOCKED, data=evolve(now, coins=0, armed=False), emit=(StopTimer(Timer.CLOSE), Lock())),
    Row(pushed, at=LOCKED, when=pushed.hard, to=ALARM, data=evolve(now, coins=0), emit=(Ring(),)),
    Row(Pushed, ignore="it does not move"),
    Row(CloseExpired, when=now.armed, to=LOCKED, data=evolve(now, coins=0, armed=False), emit=(Lock(),)),
    Row(CloseExpired, ignore="somebody walked through"),
    Row(Reset, at=ALARM, to=LOCKED),
    Row(Reset, ignore="there is no alarm"),
)  # fmt: skip

MACHINE: Machine[Gate, Event, Effect] = Machine(
    name="gate", initial=Gate(), now=now, events=get_args(Event), effects=get_args(Effect), rows=ROWS,
    timers=(TimerRule(Timer.CLOSE, now.armed, CloseExpired, Duration(5_000, "a gate in a station")),),
)  # fmt: skip
