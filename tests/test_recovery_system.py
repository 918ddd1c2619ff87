"""The recovery system: every historic rule fails in it, and what its environment leaves out is left out for a reason."""

from __future__ import annotations

import attrs
import pytest

from turnproof.checkers.network.explicit import check_variants, explore, judge_property, violation
from turnproof.checkers.network.timed import TimedSystem
from turnproof.checkers.verdict import Outcome
from turnproof.cli import names
from turnproof.cli.misuse import Misuse
from turnproof.machines.command_lane import TurnEnqueued
from turnproof.machines.embedded_attempt_events import ModelCallStarted, Prepared
from turnproof.machines.failover_words import AttemptBegan
from turnproof.machines.kernel import Taken
from turnproof.machines.reply_operation_words import AbortReason, AbortRequested
from turnproof.machines.stuck_recovery_watchdog import MACHINE as WATCHDOG
from turnproof.machines.stuck_recovery_watchdog_words import RequestRecovery
from turnproof.machines.stuck_recovery_words import RecoveryAsked
from turnproof.specs.embedded_attempt_requirements import ATTEMPT_REQUIREMENTS, TESTS
from turnproof.specs.language import Always, Step
from turnproof.specs.recovery_system import SPEC
from turnproof.specs.recovery_system_parts import SYSTEM, failover, first, lane, reply
from turnproof.specs.reply_operation_history import E1_HUNG_OWNER
from turnproof.specs.system import Within
from turnproof.specs.watched_turn import AT_ONCE, lane_free, slot_free
from turnproof.specs.watched_turn import SPEC as WATCHED

STATES_LEAST = 100_000


@pytest.mark.soak
def test_every_historic_rule_fails_and_the_target_does_not() -> None:
    """R-ATT-32: each design fails what it broke, at its shortest; the target keeps the same properties in the same bounds."""
    told = check_variants(SPEC)
    assert [(v.machine, v.check, v.detail) for v in told if v.outcome is not Outcome.HOLDS] == []
    named = {v.system.name.removeprefix("recovery_system_") for v in SPEC.variants}
    assert named >= {"e1", "blanket_idle", "p1", "p2", "no_recheck", "september", "idle_in_tool_time", "counted_late", "p3"}
    broken = {name for variant in SPEC.variants for name in variant.violates}
    kept = tuple(p for p in SPEC.properties if p.name in broken)
    assert all(isinstance(p, (Always, Step)) for p in kept)
    graph = explore(SPEC, properties=kept)
    assert graph.walk.complete
    assert graph.walk.states >= STATES_LEAST
    assert [p.name for p in kept if violation(graph, p) is not None] == []


def test_a_walk_that_ends_once_all_is_broken_finds_the_same_lengths() -> None:
    variant = next(v for v in SPEC.variants if v.system.name.endswith("two_at_once"))
    wanted = tuple(p for p in SPEC.properties if p.name in variant.violates)
    graph = explore(SPEC, system=variant.system, properties=wanted, until_broken=True)
    assert not graph.walk.complete
    assert graph.walk.why == "nothing more was asked"
    for prop in wanted:
        found = violation(graph, prop)
        assert found is not None
        assert found.story.length == variant.violates[prop.name]


def test_the_real_watchdog_asks_for_nothing_that_the_system_does_not_try_at_any_moment() -> None:
    """The recovery system lets a recovery of either kind be asked for whenever the turn has begun; the watchdog knows no third kind."""
    asked = {s.event.may_abort for s in SYSTEM.spontaneous if isinstance(s.event, RecoveryAsked)}
    events = WATCHDOG.all_events()
    states, queue = {WATCHDOG.initial}, [WATCHDOG.initial]
    emitted = set()
    for state in queue:
        for event in events:
            answer = WATCHDOG.step(state, event)
            if isinstance(answer, Taken):
                emitted |= {e.may_abort for e in answer.effects if isinstance(e, RequestRecovery)}
                if answer.state not in states:
                    states.add(answer.state)
                    queue.append(answer.state)
    assert emitted == asked == {True, False}


# ── the bound ──


@pytest.mark.soak
def test_the_bound_is_computed() -> None:
    """Every verification computes and prints it as well."""
    prop = next(p for p in WATCHED.properties if "even if the owner never answers" in p.name)
    verdict = judge_property(explore(WATCHED, properties=(prop,)), prop)
    assert verdict.outcome is Outcome.HOLDS
    assert verdict.how.startswith("at most 330 s (computed from the timers over ")


def test_the_computed_bound_is_nearly_reached_by_a_run_on_the_clock() -> None:
    """330 s: a tick just after the lane's task came of age, and one just before it."""
    latest = 0
    for offset in range(0, 30_000, 5_000):
        run = TimedSystem(WATCHED.system, at_once=AT_ONCE)
        run.send(lane, TurnEnqueued())
        run.send(failover, AttemptBegan("a"))
        run.send(first, Prepared(True))
        run.send(first, ModelCallStarted())
        run.advance(offset)
        run.send(lane, TurnEnqueued())
        run.send(reply, AbortRequested(AbortReason.USER))
        aborted = run.now_ms
        while not (run.runner.holds(slot_free, run.world) and run.runner.holds(lane_free, run.world)):
            run.advance(1_000)
            assert run.now_ms - aborted <= 330_000
        latest = max(latest, run.now_ms - aborted)
    assert latest >= 300_000


@pytest.mark.soak
def test_without_the_settle_timer_there_is_no_bound() -> None:
    prop = next(p for p in WATCHED.properties if "within a minute" in p.name)
    system = WATCHED.system.with_machines("watched_turn_hung_owner", reply=E1_HUNG_OWNER)
    verdict = judge_property(explore(WATCHED, system=system, properties=(prop,)), prop)
    assert verdict.outcome is Outcome.VIOLATED
    assert "promised: 60 s" in verdict.detail
    assert verdict.story is not None


@pytest.mark.soak
@pytest.mark.parametrize("milliseconds", [329_999])
def test_a_promise_one_millisecond_shorter_is_broken(milliseconds: int) -> None:
    prop = next(p for p in WATCHED.properties if "even if the owner never answers" in p.name)
    assert isinstance(prop, Within)
    shorter = attrs.evolve(prop, milliseconds=milliseconds)
    verdict = judge_property(explore(WATCHED, properties=(shorter,)), shorter)
    assert verdict.outcome is Outcome.VIOLATED
    assert "it may take 330 s" in verdict.detail


def test_whoever_verifies_the_recovery_is_told_the_bound_as_well() -> None:
    assert [*names.with_companions([SPEC])] == [SPEC, WATCHED]
    assert [*names.with_companions([WATCHED, SPEC])] == [WATCHED, SPEC]
    with pytest.raises(Misuse, match=r"no machine .*watched_tern.* did you mean watched_turn"):
        names.with_companions([attrs.evolve(SPEC, companions=("watched_tern",))])


# ── requirements ──


def test_every_requirement_has_a_specification_that_discharges_it() -> None:
    from test_embedded_specs import SPECS

    discharged = {rid for spec in (*SPECS, SPEC, WATCHED) for rid in spec.requirements}
    assert discharged == set(ATTEMPT_REQUIREMENTS) | {rid for rid in discharged if rid.startswith("R-REPLY")}
    assert set(TESTS) <= discharged
    assert [spec.undischarged() for spec in (*SPECS, SPEC, WATCHED)] == [()] * (len(SPECS) + 2)
