"""The fifteen regression sequences of attempt, recovery and failover, on a clock that only moves when told (R-ATT-30).

Model-call stall, side-effecting-tool stall, unknown or stale recovery, the reason's way through the reply operation, abortability, and
terminal clean-up: each sequence names the requirements it shows.
"""

from __future__ import annotations

import sys

import pytest
from attempt_script import AttemptScript, played

from turnproof.machines.attempt_terminal import ABORTED_EXTERNAL, TIMEOUT_IDLE, TIMEOUT_RUNTIME, During
from turnproof.machines.embedded_attempt import LIVE
from turnproof.machines.embedded_attempt_events import AbortController, CancelRequested
from turnproof.machines.embedded_attempt_words import Stall
from turnproof.machines.failover_words import Action, How, Reason
from turnproof.machines.reply_operation_words import CancelReason, RecoveryRequested, Result
from turnproof.machines.stuck_recovery_words import Outcome, RecoveryAsked, SessionMoved
from turnproof.specs.recovery_system_environment import TaskLeft, Times
from turnproof.specs.recovery_system_parts import first, lane, owner, recovery, reply, second, slot

BEGIN = ("begin(A)", "phase(running)", "attach")


def cancels(script: AttemptScript) -> list[CancelReason]:
    """The reasons with which the first attempt was cancelled."""
    return [e.reason for e in script.play.events(first, CancelRequested)]  # type: ignore[attr-defined]


def test_1_a_stalled_model_call_reaches_the_fallback_R_ATT_1_6() -> None:
    script = played([*BEGIN, "model_start(1)", "recover"])
    assert cancels(script) == [CancelReason.STUCK_RECOVERY]
    assert (script.state(first).stall, script.state(first).ending) == (Stall.MODEL_IDLE_TIMEOUT, TIMEOUT_IDLE)
    assert (script.state(reply).result, script.state(slot).holder) == (Result.NONE, "a")
    script.words("decide(assistant)")
    assert script.decisions() == [(Action.FALLBACK_MODEL, Reason.TIMEOUT)]
    script.words("fallback", "a_start(2)", "model_start(2)", "model_end(2,final)")
    assert script.state(reply).frozen
    assert script.state(reply).result is Result.NONE


def test_2_a_stalled_tool_ends_the_turn_R_ATT_4_11() -> None:
    script = played([*BEGIN, "model_start(1)", "tool_start(exec,side)", "recover", "decide(assistant)"])
    assert (script.state(first).stall, script.tries()) == (Stall.TOOL_EXECUTION_TIMEOUT, [How.FIRST])
    assert script.decisions()[-1][0] is Action.CONTINUE_NORMAL
    script.words("a_start(2)")
    assert script.refusals == ["a_start(2)"]
    assert script.happened() is Times.ONCE


def test_3_a_run_that_hangs_after_its_model_call_surfaces_R_ATT_7_8() -> None:
    script = played([*BEGIN, "model_start(1)", "model_end(1)", "recover", "decide(assistant)"])
    assert (script.state(first).stall, script.state(first).ending) == (Stall.EXTERNAL_ABORT, ABORTED_EXTERNAL)
    assert script.decisions() == [(Action.SURFACE_ERROR, Reason.EXTERNAL_ABORT)]


def test_4_a_committed_outcome_refuses_recovery_R_ATT_9() -> None:
    script = played([*BEGIN, "freeze", "recover"])
    assert (script.outcomes(), cancels(script), script.state(reply).result) == ([Outcome.REFUSED], [], Result.NONE)


def test_5_an_attempt_whose_probe_refuses_is_not_recovered_R_ATT_9() -> None:
    script = played([*BEGIN, "model_start(1)", "probe(no)", "recover"])
    assert (script.outcomes(), cancels(script), script.state(first).phase) == ([Outcome.REFUSED], [], LIVE)


def test_6_the_late_end_of_an_older_request_does_not_clear_a_newer_one_R_ATT_8() -> None:
    script = played([*BEGIN, "model_start(1)", "model_start(2)", "model_end(1)", "recover"])
    assert script.state(first).stall is Stall.MODEL_IDLE_TIMEOUT


def test_7_compaction_before_a_model_call_R_ATT_6_11() -> None:
    script = played([*BEGIN, "compact_start", "model_start(1)", "recover", "decide(assistant)"])
    assert (script.state(first).stall, script.state(first).during) == (Stall.COMPACTION_TIMEOUT, During.COMPACTION)
    assert (script.decisions(), script.tries()) == ([(Action.CONTINUE_NORMAL, Reason.TOOL_OR_COMPACTION)], [How.FIRST])


def test_8_a_tool_nobody_knows_counts_as_side_effecting_R_ATT_5() -> None:
    script = played([*BEGIN, "tool_start(surprise,unknown)", "model_start(1)", "recover"])
    assert (script.state(first).stall, script.state(first).ending) == (Stall.TOOL_EXECUTION_TIMEOUT, TIMEOUT_RUNTIME)


def test_9_a_safe_tool_does_not_forbid_a_replay_R_ATT_6() -> None:
    script = played([*BEGIN, "tool_start(read,safe)", "model_start(1)", "recover"])
    assert (script.state(first).stall, script.state(first).during) == (Stall.MODEL_IDLE_TIMEOUT, During.TOOL_EXECUTION)
    script.words("decide(assistant)")
    assert script.decisions() == [(Action.FALLBACK_MODEL, Reason.TIMEOUT)]


@pytest.mark.parametrize("started_first", [True, False])
def test_10_the_idle_timer_does_not_beat_a_tool_R_ATT_12_17(started_first: bool) -> None:
    tool, model = "tool_start(exec,side)", "model_start(1)"
    script = played([*BEGIN, *((tool, model) if started_first else (model, tool)), "idle_fire", "decide(assistant)"])
    assert script.refusals == ["idle_fire"]
    assert (script.tries(), script.decisions()[-1][0]) == ([How.FIRST], Action.CONTINUE_NORMAL)


def test_11_a_timed_out_prompt_of_the_hosts_transport_does_not_repeat_a_tool_R_ATT_13() -> None:
    script = played([*BEGIN, "tool_start(exec,side)", "decide(prompt)"])
    assert (script.decisions(), script.tries()) == ([(Action.SURFACE_ERROR, Reason.NOT_REPLAY_SAFE)], [How.FIRST])
    safe = played([*BEGIN, "model_start(1)", "decide(prompt)"])
    assert (safe.decisions(), safe.tries()) == ([(Action.FALLBACK_MODEL, Reason.TIMEOUT)], [How.FIRST, How.NEXT_MODEL])


def test_12_the_first_abort_stands_R_ATT_16() -> None:
    script = played([*BEGIN, "model_start(1)", "idle_fire", "cancel(user_abort)"])
    assert (script.state(first).ending, script.refusals) == (TIMEOUT_IDLE, ["cancel(user_abort)"])
    assert len(script.play.effects(first, AbortController)) == 1
    script.words("decide(assistant)")
    assert script.decisions() == [(Action.FALLBACK_MODEL, Reason.TIMEOUT)]


def test_13_the_typed_reason_reaches_the_backend_through_the_reply_operation_R_ATT_1() -> None:
    script = played([*BEGIN, "model_start(1)"])
    script.send(reply, RecoveryRequested())
    assert cancels(script) == [CancelReason.STUCK_RECOVERY]
    assert script.state(first).stall is Stall.MODEL_IDLE_TIMEOUT


def test_14_a_turn_that_waits_does_not_start_beside_the_fallback_R_ATT_26_27() -> None:
    script = played([*BEGIN, "model_start(1)", "recover", "decide(assistant)", "fallback", "a_start(2)", "enq(t)", "tick"])
    assert (script.starts(), script.state(second).phase, script.state(lane).enqueued) == ([1], LIVE, 2)
    assert script.outcomes() == [Outcome.ATTEMPT_ENDED]
    script.words("model_start(2)", "model_end(2,final)", "a_end(2)", "complete")

    script.send(owner, TaskLeft())
    assert script.starts() == [1, 2]


def test_15_slot_and_lane_are_free_although_the_owner_is_gone_R_ATT_25_27_28() -> None:
    script = played([*BEGIN, "enq(t)", "recover", "owner_gone", "advance(119999)"])
    assert not script.state(reply).released
    script.words("advance(1)")
    assert (script.state(reply).released, script.state(reply).result) == (True, Result.RUN_STALLED)
    script.words("advance(180000)", "tick")
    assert script.starts() == [1, 2]
    assert script.outcomes()[-1] is Outcome.RELEASED


def test_a_stale_recovery_does_nothing_R_ATT_22() -> None:
    script = played([*BEGIN, "model_start(1)"])
    script.send(recovery, SessionMoved("a"))
    script.send(recovery, RecoveryAsked(True, "b", True))
    assert (script.outcomes(), script.state(first).phase) == ([Outcome.SKIPPED_STALE], LIVE)


def test_an_error_of_the_routine_takes_its_mark_away_R_ATT_22() -> None:
    script = played([*BEGIN, "model_start(1)", "recover", "recover_error", "recover"])
    assert script.outcomes()[0] is Outcome.FAILED
    assert Outcome.SKIPPED_IN_FLIGHT not in script.outcomes()


def test_every_sequence_is_played() -> None:
    """R-ATT-30: the fifteen are there, each once."""
    names = [name for name in vars(sys.modules[__name__]) if name.startswith("test_")]
    assert [n for n in range(1, 16) if any(name.startswith(f"test_{n}_") for name in names)] == list(range(1, 16))
