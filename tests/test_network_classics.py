"""The classic systems: their authors' numbers of states, their verdicts, and what a long walk says of itself."""

from __future__ import annotations

import json

import pytest

from turnproof.checkers.network import compiled
from turnproof.checkers.network.coverage import coverage, pairs
from turnproof.checkers.network.estimate import Estimate, estimate, extrapolated
from turnproof.checkers.network.explicit import check, check_variants, explore
from turnproof.checkers.verdict import Outcome
from turnproof.specs.classics import peterson, philosophers, two_phase_commit
from turnproof.specs.classics.two_phase_commit import specification
from turnproof.specs.system import SystemSpec

HOLDS, VIOLATED, UNDETERMINED = Outcome.HOLDS, Outcome.VIOLATED, Outcome.UNDETERMINED
SEVEN = specification(7)


@pytest.mark.parametrize(("managers", "states"), [(3, 288), (5, 8_832), (7, 296_448)])
def test_two_phase_commit_has_the_states_of_the_tla_module(managers: int, states: int) -> None:
    assert explore(specification(managers), properties=()).walk.states == states


@pytest.mark.parametrize(
    ("spec", "states", "transitions"),
    [
        (peterson.SPEC, 34, 62),
        (philosophers.specification(3), 31, 69),
        (philosophers.specification(5), 337, 1_238),
        (philosophers.specification(9), 40_099, 263_217),
        (SEVEN, 296_448, 2_716_033),
    ],
    ids=lambda x: x.system.name if isinstance(x, SystemSpec) else "",
)
def test_states_and_transitions_are_those_that_spin_counts(spec: SystemSpec, states: int, transitions: int) -> None:
    """Counted by SPIN 6.5.2 (``-DSAFETY -DNOREDUCE``) on the same systems in Promela; it counts the start as one transition more."""
    walk = explore(spec, properties=()).walk
    assert (walk.states, walk.transitions) == (states, transitions)


@pytest.mark.parametrize("spec", [two_phase_commit.SPEC, peterson.SPEC, philosophers.SPEC], ids=lambda s: s.system.name)
@pytest.mark.parametrize("engine", ["plain", "compiled"])
def test_the_classics_hold_and_their_variants_fail(spec: SystemSpec, engine: str) -> None:
    graph = explore(spec, engine=engine)
    assert {v.check: v.detail for v in check(spec, graph) if v.outcome is not HOLDS} == {}
    assert {v.outcome for v in check_variants(spec)} <= {HOLDS}


@pytest.mark.parametrize("seats", [2, 3, 5])
def test_alike_philosophers_starve_when_each_holds_one_fork(seats: int) -> None:
    assert [(v.outcome, v.detail) for v in check_variants(philosophers.specification(seats))] == [(HOLDS, "")]


@pytest.mark.parametrize("managers", [2, 3, 4])
def test_managers_that_take_their_promise_back_disagree(managers: int) -> None:
    assert [(v.outcome, v.detail) for v in check_variants(specification(managers))] == [(HOLDS, "")]


def test_threads_change_no_number(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compiled, "CHUNK", 500)
    one, two = (explore(SEVEN, threads=n) for n in (1, 2))
    for name in ("states", "transitions", "levels", "taken", "cut"):
        assert getattr(one.walk, name) == getattr(two.walk, name)
    assert {k: len(t()) for k, t in one.walk.hits.items()} == {k: len(t()) for k, t in two.walk.hits.items()}


def test_a_memory_budget_ends_in_undetermined() -> None:
    graph = explore(SEVEN, memory=1_000_000)
    assert not graph.walk.complete
    verdicts = {v.check: v for v in check(SEVEN, graph)}
    held = verdicts["nobody commits where another aborts"]
    assert held.outcome is UNDETERMINED
    assert held.detail.startswith("the memory limit of 1 MB ended the search at ")
    assert verdicts["everybody ends"].outcome is UNDETERMINED
    assert verdicts["everybody aborts"].outcome in (HOLDS, UNDETERMINED)
    assert {v.outcome for v in verdicts.values()} <= {HOLDS, UNDETERMINED}


def test_a_time_budget_ends_in_undetermined() -> None:
    graph = explore(specification(9), seconds=0.2)
    assert graph.walk.why == "the time limit of 0.2 s"
    assert 0 < graph.walk.states < 10_340_352


class Listener:
    def __init__(self, interrupt_at: int = 1 << 60) -> None:
        self.said: list[str] = []
        self.interrupt_at = interrupt_at

    def say(self, what: str, done: int, total: int | None = None) -> None:
        self.said.append(what)
        if done > self.interrupt_at:
            raise KeyboardInterrupt


def test_progress_says_depth_queue_speed_and_memory() -> None:
    listener = Listener()
    explore(specification(5), progress=listener)
    assert all(word in listener.said[-1] for word in ("states (depth ", " waiting, ", " states/s, ", " MB)"))


def test_ctrl_c_keeps_what_was_found() -> None:
    graph = explore(SEVEN, progress=Listener(interrupt_at=20_000))
    assert graph.walk.why == "an interrupt"
    assert graph.walk.states > 20_000
    # Every trace of what was found still leads there, also from the level that was not finished.
    for trace in graph.walk.hits.values():
        trace()


def test_a_state_takes_few_bytes() -> None:
    walk = explore(specification(8), properties=()).walk
    assert walk.states == 1_745_408
    buffers = 40_000_000
    assert (walk.memory - buffers) / walk.states < 48


# ── estimates ──


def test_an_estimate_of_a_small_system_is_exact() -> None:
    found = estimate(peterson.SPEC)
    assert (found.complete, found.states) == (True, 34)
    assert found.text() == "peterson: 34 states, 9 steps deep; that is all of it"


@pytest.mark.parametrize("part", [10, 13, 16])
def test_an_extrapolation_comes_near(part: int) -> None:
    levels = explore(SEVEN, properties=()).walk.levels
    guess = extrapolated(levels[:part], sum(levels[:part]))
    assert guess is not None
    assert 296_448 / 2 < guess < 296_448 * 2


def test_no_estimate_where_the_levels_still_grow() -> None:
    assert extrapolated([2**n for n in range(12)], 4095) is None
    assert extrapolated([1, 3, 9], 13) is None


def test_an_estimate_of_a_large_system_says_that_it_guesses() -> None:
    found = estimate(specification(10), seconds=0.5)
    assert not found.complete
    assert "at least" in found.text()
    assert "a guess" in found.text() or "nothing can be said" in found.text()


# ── coverage ──


def test_coverage_of_two_phase_commit() -> None:
    graph = explore(two_phase_commit.SPEC)
    seen = coverage(graph)
    assert seen.depths == tuple(graph.walk.levels)
    manager = seen.parts[1]
    assert manager.cells["Decided"]["prepared"].words == "taken"
    assert manager.cells["GaveUp"]["prepared"].words == "never"
    assert {row.row: row.words for row in manager.rows}["Decided"] == "true and false"
    assert seen.triggers["coordinator <- CommitChosen"] == "changes the state"
    assert "manager_1 (manager)" in seen.text()
    assert json.loads(seen.json())["states"] == 288


def test_pairs_say_what_may_follow_what() -> None:
    for engine in ("plain", "compiled"):
        found = pairs(explore(two_phase_commit.SPEC, engine=engine))
        assert ("coordinator <- CommitChosen", "manager_1 <- Decided") in found
        assert ("manager_1 <- PrepareChosen", "vote_1 delivers") in found
        assert ("coordinator <- CommitChosen", "coordinator <- AbortChosen") not in found
        assert ("manager_1 <- GaveUp", "manager_1 <- PrepareChosen") not in found


def test_an_estimate_of_no_level_claims_nothing() -> None:
    nothing = Estimate(system="slow", known=1, complete=False, depth=-1, states=None, rate=0.0, bytes_per_state=0.0)
    assert nothing.text() == "slow: no level was finished in this time; give it more with --seconds"
