"""What no property of a state or a step can say about the turn loop."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import get_args

import attrs
import numpy as np
import pytest

from turnproof.checkers.graph import explore
from turnproof.checkers.judge import Judge
from turnproof.machines.kernel import HOLE, Ignored, Kind, Refused, StartTimer, Taken, fields_of
from turnproof.machines.turn_loop import MACHINE
from turnproof.machines.turn_loop_events import Event, StepRecorded
from turnproof.machines.turn_loop_judge import BACKOFF_MS
from turnproof.machines.turn_loop_words import Content, Ending, Phase, Timer, TurnLoop, Wanted
from turnproof.specs.language import Always, Spec, Step, taken
from turnproof.specs.tool_call import SPEC as TOOL_CALL
from turnproof.specs.turn_loop import SPEC
from turnproof.specs.turn_loop_streams import CASES
from turnproof.specs.turn_loop_verdicts import CASES as JUDGED


def walk(start: TurnLoop, *, depth: int) -> list[TurnLoop]:
    """Every state within ``depth`` steps, found by the table alone."""
    seen: dict[TurnLoop, None] = {start: None}
    front = [start]
    for _ in range(depth):
        front = [
            answer.state
            for state in front
            for event in MACHINE.all_events(tokens=1, counter=1)
            if isinstance(answer := MACHINE.step(state, event), Taken)
            and answer.state not in seen
            and seen.setdefault(answer.state) is None
        ]
        front = list(dict.fromkeys(front))
    return list(seen)


def test_step_is_total_and_deterministic() -> None:
    """R-LOOP-20: the same state and event give the same answer again, some row answers, and nothing handed in is changed."""
    states = walk(SPEC.machine.initial, depth=6)
    assert len(states) > 300
    for state in states:
        before = attrs.asdict(state)
        for event in MACHINE.all_events(tokens=1):
            answer = MACHINE.step(state, event)
            assert answer == MACHINE.step(state, event)
            assert isinstance(answer, (Taken, Ignored, Refused))
            assert answer.row is not HOLE
        assert attrs.asdict(state) == before


def test_no_event_or_state_speaks_of_usage() -> None:
    """R-LOOP-18: there is nothing of which a usage of zero could decide anything; what the shell counts comes as whether there is room."""
    names = {name for cls in (*MACHINE.events, MACHINE.state) for name in fields_of(cls)}
    assert not [name for name in names for word in ("token", "usage", "cost", "price") if word in name]
    numbers = {
        name
        for cls in MACHINE.events
        for name, field in fields_of(cls).items()
        if field.kind in (Kind.COUNTER, Kind.RANGE) or (field.kind is Kind.OPAQUE and field.base is int)
    }
    assert numbers == {"steps", "at_ms", "retry_at_ms"}


# ── waits ──

JUDGING = TurnLoop(phase=Phase.JUDGING, generation="g", retry_limit=9, resample_limit=9, continue_limit=9)


def wait(state: TurnLoop, at_ms: int) -> StartTimer:
    """The wait that follows the step of ``state``."""
    answer = MACHINE.step(state, StepRecorded("g", Wanted.ANSWER, at_ms))
    assert isinstance(answer, Taken)
    [started] = [e for e in answer.effects if isinstance(e, StartTimer)]
    return started


@pytest.mark.parametrize(
    ("ending", "content", "budget", "timer"),
    [
        (Ending.RETRYABLE, Content.NOTHING, "retries", Timer.RETRY),
        (Ending.RETRYABLE, Content.TEXT, "retries", Timer.RETRY),
        (Ending.RETRYABLE, Content.RESULT, "retries", Timer.RETRY),
        (Ending.UNKNOWN, Content.NOTHING, "resamples", Timer.RESAMPLE),
        (Ending.STOP, Content.NOTHING, "resamples", Timer.RESAMPLE),
        (Ending.ABSENT, Content.TEXT, "continues", Timer.CONTINUE),
    ],
)
def test_waits_follow_the_schedule_and_never_undercut_a_hint(ending: Ending, content: Content, budget: str, timer: Timer) -> None:
    """R-LOOP-14: 2, 4, 8, 16, 30, 30 s by our own count, never shorter than before, and never before what the provider asked for."""
    now_ms = 1_000_000
    plain = attrs.evolve(JUDGING, ending=ending, content=content)
    spent: dict[str, Callable[[int], TurnLoop]] = {
        "retries": lambda n: attrs.evolve(plain, retries=n),
        "resamples": lambda n: attrs.evolve(plain, resamples=n),
        "continues": lambda n: attrs.evolve(plain, continues=n),
    }
    before = [spent[budget](tries) for tries in range(8)]
    ours = [wait(state, now_ms) for state in before]
    assert {started.timer for started in ours} == {timer}
    assert [started.not_before_ms - now_ms for started in ours] == [*BACKOFF_MS, *[BACKOFF_MS[-1]] * 3]
    for state, hint in itertools.product(before, (1, now_ms + 3_000, now_ms + 3_600_000)):
        hinted = wait(attrs.evolve(state, retry_at_ms=hint), now_ms)
        assert hinted.not_before_ms == max(hint, wait(state, now_ms).not_before_ms)


def test_a_shell_that_tells_no_time_still_waits() -> None:
    """The timer's own duration is the least wait, so a clock of zero is no wait of zero."""
    assert {rule.timer: rule.duration.milliseconds for rule in MACHINE.timers} == {
        Timer.RETRY: 2_000, Timer.RESAMPLE: 2_000, Timer.CONTINUE: 2_000, Timer.GRACE: 250
    }  # fmt: skip


# ── the specification ──


@pytest.mark.parametrize("spec", [SPEC, TOOL_CALL], ids=lambda spec: spec.machine.name)
def test_every_requirement_is_discharged(spec: Spec) -> None:
    assert spec.undischarged() == ()


def test_every_event_class_is_explored() -> None:
    assert {type(e) for e in MACHINE.all_events()} == set(MACHINE.events)
    assert get_args(Event) == MACHINE.events


def test_the_explored_machine_is_the_one_that_ships_but_for_its_budgets() -> None:
    assert SPEC.machine.rows == MACHINE.rows
    limits = {name: value for name, value in attrs.asdict(MACHINE.initial).items() if name.endswith("_limit")}
    assert limits == {"retry_limit": 5, "resample_limit": 2, "continue_limit": 1, "compaction_limit": 1}
    assert attrs.evolve(SPEC.machine.initial, **limits) == MACHINE.initial


def test_no_row_changes_a_budget_limit() -> None:
    for row in MACHINE.rows:
        for name in fields_of(MACHINE.state):
            if name.endswith("_limit") and row.data is not None:
                assert getattr(row.data, name) is getattr(MACHINE.now, name), row.name


@pytest.mark.parametrize("limits", [(0, 0, 0, 0), (2, 0, 0, 0), (0, 2, 0, 0)])
def test_every_promise_holds_with_other_budgets(limits: tuple[int, int, int, int]) -> None:
    """The explored machine has budgets of one; a runtime may set others, none among them."""
    retry, resample, proceed, compaction = limits
    initial = attrs.evolve(
        SPEC.machine.initial, retry_limit=retry, resample_limit=resample, continue_limit=proceed, compaction_limit=compaction
    )
    spec = attrs.evolve(SPEC, machine=attrs.evolve(MACHINE, initial=initial), counter=max(1, *limits), variants=(), recordings={})
    judge = Judge(explore(spec))
    promises = [p for p in spec.properties if isinstance(p, (Always, Step))]
    assert len(promises) > 80
    assert [p.name for p in promises if judge.violation(p, all_routes=False) is not None] == []


def test_the_cases_of_the_second_writing_cover_every_step_and_none_twice() -> None:
    """What is written down as cases leaves no taken step out, so no step escapes what it must record and tell."""
    spec = attrs.evolve(SPEC, variants=(), recordings={}, counter=1)
    evaluation = Judge(explore(spec)).evaluation
    cases = [c for c in (*CASES, *JUDGED) if c.whole]
    assert len({c.name for c in cases}) == len(cases) >= 90
    times = np.stack([evaluation.steps_where(c.when & taken(), c.name) for c in cases]).sum(axis=0)
    assert (times[evaluation.steps_where(taken(), "taken")] == 1).all()
    empty = [c.name for c in cases if not evaluation.steps_where(c.when, c.name).any()]
    assert empty == [f"a result that is not the last at {phase}" for phase in ("draining", "settling")], "with one call, nothing else"
