"""Storms over the composed shells, every step of every machine judged by its specification: no promise of any machine breaks in them."""

from __future__ import annotations

import attrs
import pytest
import registry_toys
import test_shell_faults as faults
import test_shell_session_storm as sessions
from registry_toys import Log

from turnproof.checkers.traces.monitor import Monitor
from turnproof.machines.reply_operation_words import Result
from turnproof.specs.catalog import specifications

STORMS = (
    faults.test_a_storm_over_a_registry_leaves_every_key_free,
    faults.test_a_storm_over_turns_runs_no_side_effect_twice,
    faults.test_a_storm_over_a_loop_answers_every_message_once,
    sessions.test_every_turn_ends_once_and_none_completes_that_was_not_run,
)


@pytest.fixture
def logs(monkeypatch: pytest.MonkeyPatch) -> list[Log]:
    """The log of each storm that was played."""
    found: list[Log] = []
    check = Log.check

    def kept(log: Log) -> None:
        found.append(log)
        check(log)

    monkeypatch.setattr(registry_toys.Log, "check", kept)
    return found


def judged(logs: list[Log]) -> Monitor:
    specs = specifications()
    monitor = Monitor(*(specs[name] for name in sorted({step.machine for log in logs for step in log.steps})))
    for number, log in enumerate(logs):
        for step in log.steps:
            monitor(attrs.evolve(step, key=f"{number} {step.key}"))
    return monitor


def test_a_storm_breaks_no_promise_of_any_machine(logs: list[Log]) -> None:
    for storm in STORMS:
        storm(0)
    monitor = judged(logs)
    assert (monitor.first, monitor.unjudged) == (None, 0)
    assert monitor.steps > 800
    assert len({step.machine for log in logs for step in log.steps}) == 18


def test_a_step_that_is_none_of_the_tables_is_told(logs: list[Log]) -> None:
    STORMS[0](1)
    steps = logs[0].steps
    at = next(n for n, step in enumerate(steps) if step.machine == "reply_operation" and step.post.result is Result.COMPLETED)
    steps[at] = attrs.evolve(steps[at], post=attrs.evolve(steps[at].post, result=Result.RUN_FAILED))
    monitor = judged(logs)
    assert monitor.first is not None
    assert monitor.first.machine == "reply_operation"


@pytest.mark.soak
@pytest.mark.parametrize("tens", range(2, 30))
def test_many_storms_break_no_promise(tens: int, logs: list[Log]) -> None:
    for seed in range(10 * tens, 10 * tens + 10):
        for storm in STORMS:
            storm(seed)
    assert (judged(logs).first, judged(logs).unjudged) == (None, 0)
