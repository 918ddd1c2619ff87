"""How long it takes at most: small graphs with the right answer, random ones against every concrete run, and a bound that is broken."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from enum import Enum
from typing import Any

import attrs
import numpy as np
import pytest
from attrs import evolve, frozen

from turnproof.checkers.bounds import UNBOUNDED, Clock, Longest, Silent, longest
from turnproof.checkers.network.explicit import explore, judge_property
from turnproof.checkers.verdict import Outcome
from turnproof.machines.kernel import Duration, Machine, Row, StartTimer, StopTimer, TimerRule, symbol
from turnproof.specs.system import Part, Spontaneous, System, SystemSpec, Within

Edge = tuple[int, int, str, str]
"""Source, target, the timer that fires ("" at once), and the timers the step starts, by letter."""


def bound(nodes: int, runs: Mapping[str, Sequence[int]], durations: dict[str, int], edges: Sequence[Edge], begins: Sequence[int], goal: int,
          cap: int = 10_000) -> Longest:  # fmt: skip
    """The bound of a graph given in words."""
    mask = np.zeros(nodes, np.bool_)
    clocks = []
    for name, milliseconds in durations.items():
        where = mask.copy()
        where[list(runs[name])] = True
        clocks.append(
            Clock(
                name=name,
                milliseconds=milliseconds,
                runs=where,
                fires=np.array([e[2] == name for e in edges]),
                starts=np.array([name in e[3] for e in edges]),
            )
        )
    at_goal, starts = mask.copy(), mask.copy()
    at_goal[goal], starts[list(begins)] = True, True
    return longest(
        Silent(
            nodes=nodes,
            source=np.array([e[0] for e in edges]),
            target=np.array([e[1] for e in edges]),
            at_once=np.array([e[2] == "" for e in edges]),
            clocks=tuple(clocks),
            goal=at_goal,
            begins=starts,
            begin_edges=np.zeros(len(edges), np.bool_),
            cap_ms=cap,
        )
    )


# ── small graphs with the right answer ──


def test_one_timer_takes_its_duration() -> None:
    found = bound(2, {"a": [0]}, {"a": 60}, [(0, 1, "a", "")], [0], 1)
    assert (found.milliseconds, [m.by_ms for m in found.way]) == (60, [60])


def test_a_timer_that_the_first_one_starts_adds_its_duration() -> None:
    edges = [(0, 1, "a", "b"), (1, 2, "b", "")]
    assert bound(3, {"a": [0], "b": [1]}, {"a": 60, "b": 100}, edges, [0], 2).milliseconds == 160


def test_timers_that_run_together_do_not_add_up() -> None:
    """b has run beside a all the time; whichever comes first, the other is due by its own duration."""
    edges = [(0, 1, "a", ""), (0, 2, "b", ""), (1, 3, "b", ""), (2, 3, "a", "")]
    assert bound(4, {"a": [0, 2], "b": [0, 1]}, {"a": 60, "b": 100}, edges, [0], 3).milliseconds == 100


def test_a_tick_after_the_moment_is_waited_for() -> None:
    """The tick t comes every 30 and reads whether a, at most 100, has fired: 100 and one more tick."""
    edges = [(0, 0, "t", "t"), (0, 1, "a", ""), (1, 2, "t", "")]
    assert bound(3, {"a": [0], "t": [0, 1]}, {"a": 100, "t": 30}, edges, [0], 2).milliseconds == 130


def test_a_tick_that_is_known_comes_at_its_multiples() -> None:
    """As above, but both start together: a at 100 exactly, the ticks at 30, 60, 90, 120."""
    edges = [(3, 0, "s", "at"), (0, 0, "t", "t"), (0, 1, "a", ""), (1, 2, "t", "")]
    runs = {"a": [0], "t": [0, 1], "s": [3]}
    assert bound(4, runs, {"a": 100, "t": 30, "s": 1}, edges, [3], 2).milliseconds == 121


def test_what_is_done_at_once_takes_no_time() -> None:
    edges = [(0, 1, "a", ""), (1, 2, "", ""), (1, 3, "a", "")]
    assert bound(4, {"a": [0, 1]}, {"a": 60}, [*edges, (2, 3, "", "")], [0], 3).milliseconds == 60


def test_the_longer_of_two_readings_counts() -> None:
    edges = [(0, 1, "", "a"), (0, 2, "", "b"), (1, 3, "a", ""), (2, 3, "b", "")]
    assert bound(4, {"a": [1], "b": [2]}, {"a": 60, "b": 100}, edges, [0], 3).milliseconds == 100


@pytest.mark.parametrize(
    "edges",
    [[], [(0, 0, "a", "a")], [(0, 1, "a", "a"), (1, 0, "a", "a")]],
    ids=["nothing runs on", "a tick alone", "a cycle of ticks"],
)
def test_what_may_wait_for_ever_has_no_bound(edges: list[Edge]) -> None:
    runs = {"a": [0, 1]} if edges else {"a": [2]}
    found = bound(3, runs, {"a": 30}, edges or [(2, 2, "a", "a")], [0], 2 if edges else 1)
    assert not found.bounded
    assert found.milliseconds == UNBOUNDED


def test_without_a_beginning_there_is_nothing_to_bound() -> None:
    assert bound(2, {"a": [0]}, {"a": 60}, [(0, 1, "a", "")], [], 1).beginnings == 0


# ── random graphs against every concrete run ──


Moment = tuple[int, int, tuple[tuple[str, int], ...]]
"""Node, time, and when each timer is due."""


def concrete(nodes: int, runs: dict[str, list[int]], durations: dict[str, int], edges: list[Edge], goal: int, cap: int) -> int:
    """The latest moment over all runs with whole milliseconds; -1 if one goes on beyond ``cap``."""
    first = [c for c in durations if 0 in runs[c]]
    states: set[Moment] = {(0, 0, ())}
    for c in first:
        states = {(n, t, (*d, (c, left))) for n, t, d in states for left in range(1, durations[c] + 1)}
    worst, seen, queue = 0, set(states), list(states)
    for node, time, due in queue:
        if node == goal:
            worst = max(worst, time)
            continue
        if time > cap or not due:
            return -1
        soon = min(at for _, at in due)
        for fired in [c for c, at in due if at == soon]:
            for source, target, clock, starts in edges:
                if source != node or clock != fired:
                    continue
                kept = {c: at for c, at in due if c != fired and c in durations and target in runs[c]}
                kept |= {c: soon + durations[c] for c in starts if target in runs[c]}
                after = (target, soon, tuple(sorted(kept.items())))
                if after not in seen:
                    seen.add(after)
                    queue.append(after)
    return worst


def sample(seed: int) -> tuple[int, dict[str, list[int]], dict[str, int], list[Edge]]:
    """A random graph: in each node some timers run, each with one edge; what starts to run is started."""
    chance = random.Random(seed)
    nodes, durations = chance.randint(3, 5), {c: chance.randint(1, 6) for c in "abc"}
    runs = {c: [n for n in range(nodes - 1) if chance.random() < 0.6] for c in "abc"}
    edges: list[Edge] = []
    for node in range(nodes - 1):
        for c in (c for c in "abc" if node in runs[c]):
            target = chance.randint(0, nodes - 1)
            starts = "".join(k for k in "abc" if target in runs[k] and (k == c or node not in runs[k] or chance.random() < 0.2))
            edges.append((node, target, c, starts))
    return nodes, runs, durations, edges


def test_no_concrete_run_is_longer_than_the_bound() -> None:
    bounded = sharp = 0
    for seed in range(400):
        nodes, runs, durations, edges = sample(seed)
        if not edges:
            continue
        worst = concrete(nodes, runs, durations, edges, nodes - 1, cap=60)
        found = bound(nodes, runs, durations, edges, [0], nodes - 1, cap=200)
        if found.bounded:
            assert 0 <= worst <= found.milliseconds, seed
            bounded += 1
            sharp += worst == found.milliseconds
    assert bounded > 80
    assert sharp > bounded * 0.6


# ── in a system ──


class Lamp(Enum):
    OFF = "off"
    ON = "on"
    FADING = "fading"


class LampTimer(Enum):
    BURN = "burn"
    FADE = "fade"


@frozen
class LampState:
    phase: Lamp = Lamp.OFF


@frozen
class Lit:
    pass


@frozen
class BurnedOut:
    pass


@frozen
class Faded:
    pass


now = symbol(LampState)
LAMP: Machine[LampState, Any, Any] = Machine(
    name="lamp",
    initial=LampState(),
    now=now,
    events=(Lit, BurnedOut, Faded),
    effects=(StartTimer, StopTimer),
    rows=(
        Row(Lit, at=Lamp.OFF, to=Lamp.ON, emit=(StartTimer(LampTimer.BURN),)),
        Row(Lit, at=Lamp.ON, data=evolve(now, phase=Lamp.ON), emit=(StopTimer(LampTimer.BURN), StartTimer(LampTimer.BURN))),
        Row(Lit, ignore="it fades"),
        Row(BurnedOut, at=Lamp.ON, to=Lamp.FADING, emit=(StartTimer(LampTimer.FADE),)),
        Row(BurnedOut, ignore="late"),
        Row(Faded, at=Lamp.FADING, to=Lamp.OFF),
        Row(Faded, ignore="late"),
    ),
    timers=(
        TimerRule(LampTimer.BURN, now.phase == Lamp.ON, BurnedOut, Duration(60_000, "a test")),
        TimerRule(LampTimer.FADE, now.phase == Lamp.FADING, Faded, Duration(5_000, "a test")),
    ),
)
lamp = Part("lamp", LAMP)


def judged(milliseconds: int, machine: Machine[LampState, Any, Any] = LAMP, engine: str = "auto") -> tuple[Outcome, str, str]:
    part = attrs.evolve(lamp, machine=machine)
    prop = Within("it is dark again", lamp.now.phase == Lamp.ON, lamp.now.phase == Lamp.OFF, requirements="R", milliseconds=milliseconds)
    system = System(name="night", parts=(part,), spontaneous=(Spontaneous(part, Lit()),))
    spec = SystemSpec(system=system, requirements={"R": "dark"}, properties=(prop,))
    verdict = judge_property(explore(spec, engine=engine), prop)
    return verdict.outcome, verdict.how, verdict.detail


@pytest.mark.parametrize("engine", ["auto", "plain"])
def test_a_promise_with_a_time_holds_or_is_broken_by_a_millisecond(engine: str) -> None:
    outcome, how, _ = judged(65_000, engine=engine)
    assert outcome is Outcome.HOLDS
    assert how.startswith(
        "at most 65 s (computed from the timers over 1 beginning; the longest: by 60 s lamp: burn expires; by 65 s lamp: fade"
    )
    outcome, _, detail = judged(64_999, engine=engine)
    assert outcome is Outcome.VIOLATED
    assert "it may take 65 s" in detail


def test_a_timer_that_is_never_started_bounds_nothing() -> None:
    forgets = LAMP.variant("lamp_forgets", replace={"BurnedOut/on": Row(BurnedOut, at=Lamp.ON, to=Lamp.FADING, name="BurnedOut/on")})
    outcome, _, detail = judged(65_000, forgets)
    assert outcome is Outcome.VIOLATED
    assert "no timer bounds it" in detail


def test_a_promise_that_never_begins_is_vacuous() -> None:
    dark = LAMP.variant("lamp_dark", replace={"Lit/off": Row(Lit, at=Lamp.OFF, ignore="no power", name="Lit/off")})
    outcome, _, detail = judged(65_000, dark)
    assert outcome is Outcome.VIOLATED
    assert "vacuous" in detail
