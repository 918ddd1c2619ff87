"""A machine on a clock that moves when told: timers fire at their millisecond, in order, and each effect on a timer does what it says."""

from __future__ import annotations

from enum import Enum
from typing import Annotated, get_args

import pytest
from attrs import evolve, frozen

from turnproof.checkers.timed import Timed
from turnproof.machines.kernel import (
    Duration,
    Machine,
    Opaque,
    PauseTimer,
    ResumeTimer,
    Row,
    StartTimer,
    StopTimer,
    TimerRule,
    only_if,
    symbol,
)
from turnproof.machines.reply_operation import MACHINE
from turnproof.machines.reply_operation_words import (
    ActivityRecorded,
    BackendAttached,
    LaneWaitBegan,
    LaneWaitEnded,
    OutcomeCommitted,
    Phase,
    PhaseEntered,
    RecoveryRequested,
    Result,
    Timer,
    Window,
    WorkBegan,
)
from turnproof.specs.language import Said


class Mode(Enum):
    ON = "on"


class Clock(Enum):
    SHORT = "short"
    """Fires after 10 ms."""
    LONG = "long"
    """Fires after 20 ms."""


@frozen
class State:
    phase: Mode = Mode.ON
    short: bool = False
    long: bool = False


@frozen
class Both:
    not_before_ms: Annotated[int, Opaque] = 0


@frozen
class ShortFired: ...


@frozen
class LongFired: ...


Event = Both | ShortFired | LongFired
Effect = StartTimer | StopTimer
now, both = symbol(State), symbol(Both)
TWO: Machine[State, Event, Effect] = Machine(
    name="two_timers",
    initial=State(),
    now=now,
    events=get_args(Event),
    effects=get_args(Effect),
    rows=(
        Row(both, data=evolve(now, short=True, long=True),
            emit=(only_if(now.long, StopTimer(Clock.LONG)), StartTimer(Clock.LONG, both.not_before_ms), StartTimer(Clock.SHORT))),
        Row(ShortFired, data=evolve(now, short=False)),
        Row(LongFired, data=evolve(now, long=False)),
    ),
    timers=(
        TimerRule(Clock.SHORT, now.short, ShortFired, Duration(10, "toy")),
        TimerRule(Clock.LONG, now.long, LongFired, Duration(20, "toy")),
    ),
)  # fmt: skip


def test_timers_fire_in_order_at_their_instant() -> None:
    timed = Timed(TWO)
    timed.send(Both())
    assert timed.due_ms == {Clock.LONG: 20, Clock.SHORT: 10}
    assert timed.advance(9) == ()
    steps = timed.advance(50)
    assert [(step.at_ms, type(step.event), step.by_clock) for step in steps] == [(10, ShortFired, True), (20, LongFired, True)]
    assert timed.now_ms == 59
    assert timed.due_ms == {}


def test_timers_due_together_fire_in_the_order_of_starting() -> None:
    timed = Timed(TWO, durations_ms={Clock.LONG: 10})
    timed.send(Both())
    assert [type(step.event) for step in timed.advance(10)] == [LongFired, ShortFired]
    timed.send(Both())
    timed.send(Both())
    assert [type(step.event) for step in timed.advance(10)] == [LongFired, ShortFired], "both were started again, in this order"


def test_a_timer_never_fires_before_it_may() -> None:
    timed = Timed(TWO)
    timed.send(Both(not_before_ms=100))
    assert timed.due_ms[Clock.LONG] == 100
    timed.send(Both(not_before_ms=5))
    assert timed.due_ms[Clock.LONG] == 20


def test_time_does_not_run_backwards() -> None:
    with pytest.raises(ValueError, match="time does not run backwards"):
        Timed(TWO).advance(-1)


def test_a_reply_is_held_until_its_settle_timer_fires() -> None:
    timed = Timed(MACHINE)
    timed.send(PhaseEntered(Phase.RUNNING))
    step = timed.send(OutcomeCommitted())
    assert step.said is Said.TAKEN
    assert StartTimer(Timer.LEASE) in step.effects
    timed.advance(30_000)
    timed.send(ActivityRecorded())
    timed.advance(59_999)
    assert timed.state.result is Result.NONE
    timed.advance(1)
    assert (timed.state.result, timed.state.released, timed.now_ms) == (Result.RUN_STALLED, True, 90_000)


def test_declared_work_extends_the_lease() -> None:
    timed = Timed(MACHINE)
    timed.send(OutcomeCommitted())
    timed.send(WorkBegan(200_000))
    assert timed.due_ms == {Timer.LEASE: 200_000}


def test_a_window_that_is_paused_keeps_what_it_has_left() -> None:
    timed = Timed(MACHINE)
    for event in (PhaseEntered(Phase.RUNNING), BackendAttached("b"), RecoveryRequested()):
        timed.send(event)
    timed.advance(20_000)
    step = timed.send(LaneWaitBegan())
    assert PauseTimer(Timer.WINDOW) in step.effects
    assert (timed.due_ms, timed.left_ms) == ({}, {Timer.WINDOW: 40_000})
    timed.advance(1_000_000)
    assert timed.state.window is Window.PAUSED
    assert ResumeTimer(Timer.WINDOW) in timed.send(LaneWaitEnded()).effects
    assert timed.due_ms == {Timer.WINDOW: 1_060_000}


def test_the_same_moment_under_other_rows_is_independent() -> None:
    timed = Timed(TWO)
    timed.send(Both())
    timed.advance(5)
    other = timed.like(TWO)
    other.advance(100)
    assert (timed.now_ms, timed.due_ms) == (5, {Clock.LONG: 20, Clock.SHORT: 10})
    assert (other.now_ms, other.due_ms) == (105, {})
