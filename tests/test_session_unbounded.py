"""The session without bounds: its environment allows what the bounded one does, and more of it is explored than by every verification."""

from __future__ import annotations

from random import Random

import attrs
import pytest
from session_shadow import Lost, Unbounded, follow, follow_all

from turnproof.checkers.network.explicit import explore, judge_property, violation
from turnproof.checkers.verdict import Outcome
from turnproof.machines.session import MACHINE, RecheckExpired
from turnproof.machines.session_words import HistoryRead, PromptAnswered, PromptCancelled
from turnproof.specs import session_unbounded_parts as env
from turnproof.specs.language import LeadsTo
from turnproof.specs.session_parts import ASKS, DEATH, N4, N7, N10, N13, STOPS, World
from turnproof.specs.session_target import TARGET
from turnproof.specs.session_unbounded import PROPERTIES, SPEC
from turnproof.specs.session_unbounded_ends import PROMISES, USER_ENDS, without_rechecks

EVERYTHING = World(TARGET)
"""Two Stops, two drops, a restart, an unclear prompt, a permission request, and the death of the stream."""

SMALL = World(TARGET, (N4, N7, N10, N13, STOPS, ASKS, DEATH), stops=0, drops=1)


def lost(missing: type, seeds: int) -> bool:
    """Whether one of the runs cannot be followed where the unbounded environment lacks these events."""
    lacking = Unbounded(without=missing)
    for seed in range(seeds):
        try:
            follow(EVERYTHING, Random(seed), 80, lacking)
        except Lost:
            return True
    return False


def test_a_run_of_the_bounded_session_is_one_of_the_unbounded() -> None:
    found = follow(EVERYTHING, Random(2), 10, Unbounded())
    assert found.steps == 10
    assert len(found.rows) >= 3


def test_a_run_of_another_environment_is_not() -> None:
    assert lost(env.Served, seeds=1)


def test_nothing_in_the_unbounded_session_is_counted_down() -> None:
    assert SPEC.system.budgets == ()
    assert SPEC.system.channels == ()
    assert SPEC.system.switches == ()


@pytest.mark.soak
def test_runs_of_the_bounded_session_are_runs_of_the_unbounded() -> None:
    """Some thousand steps, each followed for each item; an end that served it as such an end, and no other."""
    unbounded = Unbounded()
    every = [follow(EVERYTHING, Random(seed), 80, unbounded) for seed in range(150)]
    assert sum(f.steps for f in every) > 2_500
    rows = set[str]().union(*(f.rows for f in every))
    assert len(rows) > 0.7 * len(MACHINE.rows)


@pytest.mark.soak
def test_every_run_of_a_small_bounded_session_is_one_of_the_unbounded() -> None:
    """Two prompts, a drop, a restart, an unclear prompt; no Stop and no child: every step from every state, some minutes."""
    found = follow_all(SMALL, Unbounded())
    assert found.steps > 90_000
    assert found.longest == 4


@pytest.mark.soak
@pytest.mark.parametrize(
    "missing",
    [env.EndComes, env.OwnEndComes, env.StartComes, env.OtherComes, env.DeliveryComes, env.OtherEnded, env.Over, env.Served, env.Opened,
     HistoryRead, PromptAnswered, PromptCancelled, RecheckExpired],
)  # fmt: skip
def test_an_environment_that_lacks_something_is_noticed(missing: type) -> None:
    assert lost(missing, seeds=600)


@pytest.mark.soak
def test_more_identities_and_more_wakes_change_nothing() -> None:
    """Three other identities, wakes to three: 2,877,980 states."""
    graph = explore(attrs.evolve(SPEC, tokens=3, counter=3))
    assert graph.walk.complete
    assert not graph.walk.flaws
    assert graph.walk.states > 2_500_000
    assert [p.name for p in PROPERTIES if violation(graph, p) is not None] == []


# ── what is to come does come ──


@pytest.mark.soak
def test_without_any_one_assumption_a_run_breaks_the_promise() -> None:
    graph = explore(SPEC)
    for promise in PROMISES:
        assert isinstance(promise, LeadsTo)
        assert judge_property(graph, promise).outcome is Outcome.HOLDS
        for left_out in promise.fairness:
            rest = tuple(fair for fair in promise.fairness if fair is not left_out)
            weaker = attrs.evolve(promise, name=f"{promise.name}, without: {left_out.name}", fairness=rest)
            assert judge_property(graph, weaker).outcome is Outcome.VIOLATED, weaker.name


@pytest.mark.soak
def test_without_rechecks_a_parked_prompt_is_never_found() -> None:
    graph = explore(SPEC, system=without_rechecks(), properties=PROMISES)
    broken = {p.name: found.story.length for p in PROMISES if (found := violation(graph, p)) is not None}
    assert broken == {USER_ENDS: 6}
