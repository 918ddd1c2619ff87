"""Reported failures of attempts, failover and recovery, played on the clock: what should have happened does, the reported design fails."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest
from attempt_script import MESSAGES, AttemptScript, played

from turnproof.checkers.timed import Timed
from turnproof.machines.embedded_attempt import DONE, LIVE
from turnproof.machines.embedded_attempt import MACHINE as ATTEMPT
from turnproof.machines.embedded_attempt_events import AnswerCompleted, DeliverAnswer, ReportOutcome
from turnproof.machines.embedded_attempt_words import Stall
from turnproof.machines.embedded_run import MACHINE as RUNS
from turnproof.machines.embedded_run import Deliver, ForceClearRequested
from turnproof.machines.embedded_run import answer as offered
from turnproof.machines.failover_words import Action, How
from turnproof.machines.kernel import Row
from turnproof.machines.reply_operation_words import Release, Result
from turnproof.machines.steering_message import DELIVERED, QUEUED, WITHDRAWN, AcceptMessage, QueueDrained, RequestSent, ReturnToHead
from turnproof.machines.stuck_recovery_watchdog import MACHINE as WATCHDOG
from turnproof.machines.stuck_recovery_watchdog_words import (
    Diagnosed,
    Diagnosis,
    ProgressMade,
    RequestRecovery,
    Session,
    SessionExamined,
    TickExpired,
    WatchBegan,
    Work,
)
from turnproof.machines.stuck_recovery_words import ForceClearReply, ForceClearRun, Outcome
from turnproof.specs.embedded_attempt_history import E1_REASON_LOST, SILENT_PREPARATION
from turnproof.specs.failover import NO_IDLE, RESUMES, TWO_AT_ONCE
from turnproof.specs.language import AnyMachine
from turnproof.specs.recovery_system_environment import Times
from turnproof.specs.recovery_system_parts import failover, first, lane, recovery, reply, runs
from turnproof.specs.steering_message import LOST, STILL_QUEUED
from turnproof.specs.stuck_recovery import SAYS_DRAINED
from turnproof.specs.stuck_recovery_watchdog import MESSAGES_COUNT, NEVER_RECOVERS, NO_TOOL_FLOOR, RETRIES_COUNT
from turnproof.specs.watched_turn_parts import watchdog

CASES: Mapping[str, Mapping[str, object]] = {
    case["id"]: case
    for case in map(json.loads, (Path(__file__).parent / "data" / "cases-given.jsonl").read_text(encoding="utf-8").splitlines())
    if case["id"].startswith("AT-")
}
UNTRACKED = "AT-23"
"""Played on the watchdog alone: the run that streams is in no registry, so the system has nothing of it."""


def words(case: str) -> list[str]:
    events = CASES[case]["events"]
    assert isinstance(events, list)
    return events


def starts_once(script: AttemptScript, turn: int) -> bool:
    return script.starts().count(turn) == 1 and script.starts() == sorted(script.starts())


# ── what should have happened ──


def at_01(script: AttemptScript) -> None:
    freed = script.state(reply).released and starts_once(script, 2)
    assert freed or Outcome.DRAINED not in script.outcomes()
    assert script.outcomes()[-1] is Outcome.DRAINED
    assert freed


def at_03(script: AttemptScript) -> None:
    assert script.state(reply).released
    assert starts_once(script, 2)
    assert script.state(lane).started == 2


def at_09(script: AttemptScript) -> None:
    assert script.diagnoses() == [Diagnosis.NO_PROGRESS]
    assert [e.may_abort for e in script.play.effects(watchdog, RequestRecovery)] == [True]
    assert script.state(first).stall is Stall.EXTERNAL_ABORT
    assert script.tries() == [How.FIRST]
    assert script.decisions()[-1][0] is Action.SURFACE_ERROR


def at_13(script: AttemptScript) -> None:
    assert script.diagnoses() == [Diagnosis.BLOCKED_TOOL_CALL]
    assert script.play.effects(watchdog, RequestRecovery) == []
    assert script.state(first).phase is LIVE
    script.words("advance(540000)", "tick")
    assert script.state(first).stall is Stall.TOOL_EXECUTION_TIMEOUT
    script.words("advance(120000)")
    assert script.state(reply).result is Result.RUN_STALLED


def at_15(script: AttemptScript) -> None:
    assert script.outcomes() == [Outcome.FORCED]
    assert [e.run for e in script.play.effects(recovery, ForceClearRun)] == ["a"]
    assert script.play.effects(recovery, ForceClearReply) == []
    assert script.state(reply).result is Result.NONE, "the reply is left to its recovery window"
    # Whoever registers next is not hit by what was meant for the captured run.
    script.play.send(runs, ForceClearRequested("b"))
    assert script.state(runs).handle == ""


def at_17(script: AttemptScript) -> None:
    assert script.state(first).stall is Stall.TOOL_EXECUTION_TIMEOUT
    script.words("advance(10000)")
    reports = script.play.effects(first, ReportOutcome)
    assert [(r.stall, r.tool, r.replay_safe) for r in reports] == [(Stall.TOOL_EXECUTION_TIMEOUT, "exec", False)]


def at_19(script: AttemptScript) -> None:
    assert script.diagnoses() == [Diagnosis.NO_PROGRESS]
    assert [e.may_abort for e in script.play.effects(watchdog, RequestRecovery)] == [True]


def at_21(script: AttemptScript) -> None:
    assert script.diagnoses() == [Diagnosis.NO_PROGRESS]
    assert [e.may_abort for e in script.play.effects(watchdog, RequestRecovery)] == [True]


def at_31(script: AttemptScript) -> None:
    assert script.refusals == ["model_end(1,final)"]
    assert [e.handle for e in script.play.effects(runs, Deliver)] == ["b"]


def at_33(script: AttemptScript) -> None:
    assert script.refusals == ["a_start(2)"]
    assert script.state(first).phase is not DONE
    assert script.state(failover).attempt == "a"
    # Terminal at last, it stays the only one: the caller's deadline came from outside, and such an end surfaces.
    script.words("a_end(1)", "a_start(2)")
    assert script.refusals == ["a_start(2)", "a_start(2)"]
    assert script.decisions()[-1][0] is Action.SURFACE_ERROR


def at_35(script: AttemptScript) -> None:
    assert script.decisions()[-1][0] in (Action.ROTATE_PROFILE, Action.FALLBACK_MODEL)
    assert script.tries()[-1] is How.NEXT_MODEL


def at_37(script: AttemptScript) -> None:
    assert script.tries() == [How.FIRST, How.SAME_MODEL, How.NEXT_MODEL]


def at_39(script: AttemptScript) -> None:
    assert script.refusals == ["resume"]
    assert script.happened() is Times.ONCE
    assert script.tries() == [How.FIRST]


def at_41(script: AttemptScript) -> None:
    message = MESSAGES["s1"]
    assert script.state(message).phase is QUEUED
    assert len(script.play.effects(message, ReturnToHead)) == 1
    for event in (QueueDrained(), RequestSent(), RequestSent()):
        script.play.send(message, event)
    assert script.state(message).phase is DELIVERED


def at_43(script: AttemptScript) -> None:
    message = MESSAGES["s1"]
    assert script.state(message).phase is WITHDRAWN
    assert script.play.effects(message, AcceptMessage) == []


def at_51(script: AttemptScript) -> None:
    assert len(script.play.effects(first, ReportOutcome)) == 1
    assert len(script.play.effects(reply, Release)) == 1
    assert script.state(first).phase is DONE


EXPECTED: Mapping[str, Callable[[AttemptScript], None]] = {
    "AT-01": at_01,
    "AT-03": at_03,
    "AT-09": at_09,
    "AT-13": at_13,
    "AT-15": at_15,
    "AT-17": at_17,
    "AT-19": at_19,
    "AT-21": at_21,
    "AT-31": at_31,
    "AT-33": at_33,
    "AT-35": at_35,
    "AT-37": at_37,
    "AT-39": at_39,
    "AT-41": at_41,
    "AT-43": at_43,
    "AT-51": at_51,
}
RETRIES = {"AT-37": 1}


def test_every_case_is_played() -> None:
    assert set(EXPECTED) | {UNTRACKED} == set(CASES)


@pytest.mark.parametrize("case", EXPECTED)
def test_what_was_reported_does_not_happen(case: str) -> None:
    EXPECTED[case](played(words(case), retries=RETRIES.get(case, 0)))


def test_a_run_outside_every_registry_is_long_running_while_its_progress_is_fresh() -> None:
    """AT-23, openclaw/openclaw#89831."""
    watched = Timed(WATCHDOG)
    facts = SessionExamined(False, Session.PROCESSING, False, Work.NONE, False, False)
    watched.send(WatchBegan())
    watched.send(ProgressMade(False))
    watched.advance(60_000)
    # The ticks of the first minute left their question open: the facts are read now.
    step = watched.send(facts)
    assert Diagnosed(Diagnosis.UNTRACKED) in step.effects
    assert not any(isinstance(e, RequestRecovery) for e in step.effects)
    watched.advance(90_000)
    assert any(isinstance(e, RequestRecovery) for e in watched.send(facts).effects), "after 120 s it is dead"
    assert TickExpired in WATCHDOG.events


def test_an_interrupt_of_a_live_run_whose_abort_hangs_ends_in_one_terminal_event() -> None:
    """AT-51, its other situation."""
    script = played(["attach", "model_start(1)", "abort(user)", "remote_abort_hang", "advance(9999)"])
    assert script.play.effects(first, ReportOutcome) == []
    script.words("advance(1)")
    assert len(script.play.effects(first, ReportOutcome)) == 1
    script.words("advance(49999)")
    assert script.play.effects(reply, Release) == []
    script.words("advance(1)")
    assert len(script.play.effects(reply, Release)) == 1
    script.words("advance(600000)")
    assert len(script.play.effects(first, ReportOutcome)) == len(script.play.effects(reply, Release)) == 1


# ── the designs that were reported still fail ──

ANY_TIME = ATTEMPT.variant(
    "embedded_attempt_answers_any_time", first=(Row(AnswerCompleted, at=DONE, emit=(DeliverAnswer(),), name="AnswerCompleted/any time"),)
)
UNGATED = RUNS.variant("embedded_run_ungated", first=(Row(offered, emit=(Deliver(offered.handle),), name="AnswerOffered/ungated"),))

REPORTED: Mapping[str, Mapping[str, AnyMachine]] = {
    "AT-01": {"recovery": SAYS_DRAINED},
    "AT-09": {"watchdog": NEVER_RECOVERS},
    "AT-13": {"watchdog": NO_TOOL_FLOOR},
    "AT-15": {"recovery": SAYS_DRAINED},
    "AT-17": {"first": E1_REASON_LOST},
    "AT-19": {"watchdog": MESSAGES_COUNT},
    "AT-21": {"watchdog": RETRIES_COUNT},
    "AT-31": {"first": ANY_TIME, "runs": UNGATED},
    "AT-33": {"failover": TWO_AT_ONCE},
    "AT-35": {"failover": NO_IDLE},
    "AT-39": {"failover": RESUMES},
    "AT-41": {"s1": LOST},
    "AT-43": {"s1": STILL_QUEUED},
    "AT-51": {"first": SILENT_PREPARATION},
}


@pytest.mark.parametrize("case", REPORTED)
def test_the_design_that_was_reported_still_fails(case: str) -> None:
    with pytest.raises(AssertionError):
        EXPECTED[case](played(words(case), retries=RETRIES.get(case, 0), machines=REPORTED[case]))
