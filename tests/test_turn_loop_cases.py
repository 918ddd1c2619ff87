"""Reported failures of turn loops, played on the machine: what should have happened does, and the design reported still fails."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from turnproof.machines.turn_loop import MACHINE
from turnproof.machines.turn_loop_events import (
    AppendContinue,
    DiscardAttempt,
    PublishError,
    RunTool,
    Sample,
    StartCompaction,
    WarnEmpty,
    WarnIncomplete,
)
from turnproof.machines.turn_loop_words import Cause, Phase
from turnproof.specs.language import AnyMachine
from turnproof.specs.turn_loop_history import AUTO_RESUME, INTRA_STEP_RETRY, POST, PRE
from turnproof.specs.turn_loop_script import Script

CASES: Mapping[str, Mapping[str, object]] = {
    case["id"]: case
    for case in map(json.loads, (Path(__file__).parent / "data" / "cases-given.jsonl").read_text(encoding="utf-8").splitlines())
    if case["machine"] == "turn_loop"
}
RESAMPLE_MAX = MACHINE.initial.resample_limit


def words(case: str) -> list[str]:
    events = CASES[case]["events"]
    assert isinstance(events, list)
    return events


def played(case: str, machine: AnyMachine = MACHINE) -> Script:
    return Script(machine).play(words(case))


def again(script: Script, *attempt: str) -> Script:
    """The same attempt, as often as the loop asks for it."""
    for _ in range(10):
        if script.is_over:
            break
        script.play(("sample", *attempt))
    return script


def errored(script: Script, cause: Cause) -> bool:
    return (script.state.phase, script.state.cause) == (Phase.ERRORED, cause) and len(script.effects(PublishError)) >= 1


def ever(script: Script, phase: Phase) -> bool:
    return any(step.after.phase is phase for step in script.steps)


# ── what should have happened ──


def tl_01(script: Script) -> None:
    assert script.state.phase is Phase.RESAMPLE_WAIT
    assert min(script.waits()) > 0
    assert errored(again(script, "finish(unknown)", "stream_end"), Cause.INCOMPLETE)
    assert not ever(script, Phase.COMPLETED)


def tl_03(script: Script) -> None:
    assert script.samples == 1 + RESAMPLE_MAX
    assert errored(script, Cause.INCOMPLETE)
    assert len(script.waits()) == RESAMPLE_MAX
    assert min(script.waits()) > 0


def tl_05(script: Script) -> None:
    assert errored(script, Cause.LENGTH)
    assert (script.samples, script.waits()) == (1, [])


def tl_07(script: Script) -> None:
    assert script.state.phase is Phase.RESAMPLE_WAIT
    assert errored(again(script, "finish(stop)", "stream_end"), Cause.EMPTY)
    assert script.samples == 1 + RESAMPLE_MAX


def tl_09(script: Script) -> None:
    assert errored(script, Cause.INCOMPLETE)
    assert script.samples == 1 + RESAMPLE_MAX


def tl_11(script: Script) -> None:
    assert script.state.phase is Phase.COMPLETED
    assert script.samples == 2


def incomplete_with_text(script: Script) -> None:
    assert script.state.phase in (Phase.CONTINUE_WAIT, Phase.RETRY_WAIT)
    assert script.effects(AppendContinue)
    assert not script.effects(DiscardAttempt), "the text is kept"
    assert min(script.waits()) > 0


def tl_17(script: Script) -> None:
    assert not ever(script, Phase.COMPLETED)
    assert len(script.effects(WarnIncomplete)) == 2
    assert (len(script.effects(DiscardAttempt)), len(script.effects(AppendContinue))) == (1, 1)


def tl_19(script: Script) -> None:
    assert script.executed == ["a"]
    assert script.samples == 1, "no second request while a call of the first one runs"
    script.play(("tool_done(a)", "sample", "text", "finish(stop)", "stream_end"))
    assert script.state.phase is Phase.COMPLETED
    assert [e.request.value for e in script.effects(Sample)] == ["new", "new"]
    assert script.executed == ["a"]


def tl_23(script: Script) -> None:
    assert script.state.phase is Phase.COMPLETED
    assert not script.effects(AppendContinue)
    assert len(script.effects(WarnEmpty)) == 1


def tl_25(script: Script) -> None:
    assert errored(script, Cause.PROVIDER)
    assert script.waits() == []
    other = Script(MACHINE).play(word.replace("quota", "stream_read") for word in words("TL-25"))
    assert other.state.phase is Phase.RETRY_WAIT


def tl_27(script: Script) -> None:
    assert errored(script, Cause.OVERFLOW)
    assert not script.effects(StartCompaction)


def tl_29(script: Script) -> None:
    assert script.state.phase is Phase.ABORTED
    assert script.samples == 1


def tl_31(script: Script) -> None:
    number = next(n for n, step in enumerate(script.steps) if type(step.event).__name__ == "Cancelled")
    assert not [e for step in script.steps[number:] for e in step.effects if isinstance(e, Sample)]
    assert script.state.phase is Phase.ABORTED
    assert script.steps[-1].answer.startswith("refused: a person cancelled")


def tl_33(script: Script) -> None:
    assert script.executed == ["a1", "a2"]
    assert script.asked == ["a3"], "asked before it ran"


def tl_35(script: Script) -> None:
    assert script.executed == ["a"]
    assert len(script.effects(RunTool)) == 1


def tl_37(script: Script) -> None:
    assert script.state.phase is Phase.COMPLETED
    assert script.samples == 2
    assert script.executed == ["a"]


def tl_39(script: Script) -> None:
    assert errored(script, Cause.LENGTH)
    assert script.executed == []


EXPECTED: Mapping[str, Callable[[Script], None]] = {
    "TL-01": tl_01, "TL-03": tl_03, "TL-05": tl_05, "TL-07": tl_07, "TL-09": tl_09, "TL-11": tl_11, "TL-13": incomplete_with_text,
    "TL-15": incomplete_with_text, "TL-17": tl_17, "TL-19": tl_19, "TL-21": incomplete_with_text, "TL-23": tl_23, "TL-25": tl_25,
    "TL-27": tl_27, "TL-29": tl_29, "TL-31": tl_31, "TL-33": tl_33, "TL-35": tl_35, "TL-37": tl_37, "TL-39": tl_39,
}  # fmt: skip


def test_every_case_is_played() -> None:
    assert set(EXPECTED) == set(CASES)


@pytest.mark.parametrize("case", EXPECTED)
def test_what_should_have_happened_happens(case: str) -> None:
    EXPECTED[case](played(case))


# ── the reports ──


def test_before_1_18_21_a_dead_stream_ends_the_run_as_complete() -> None:
    script = played("TL-01", PRE)
    assert script.state.phase is Phase.COMPLETED
    assert not script.effects(PublishError)


def test_since_1_18_21_a_dead_stream_is_sampled_again_at_once() -> None:
    script = played("TL-03", POST)
    assert (script.samples, script.waits()) == (7, [])


@pytest.mark.parametrize("machine", [PRE, POST])
def test_upstream_takes_an_empty_stop_for_an_answer(machine: AnyMachine) -> None:
    script = played("TL-07", machine)
    assert script.state.phase is Phase.COMPLETED
    assert not script.effects(WarnEmpty)


def test_upstream_repeats_the_request_of_a_call_that_ran() -> None:
    script = Script(INTRA_STEP_RETRY).play(
        ("user_prompt", "tool_call(a)", "tool_done(a)", "stream_error(socket)", "sample", "tool_call(b)")
    )
    assert [e.request.value for e in script.effects(Sample)] == ["new", "same"]
    assert script.executed == ["a", "b"], "the model asks for what it was never told, and it happens twice"


def test_a_harness_that_may_start_anything_goes_on_after_a_cancel() -> None:
    with pytest.raises(AssertionError):
        tl_31(played("TL-31", AUTO_RESUME))


# ── the requirement that names a case ──


@pytest.mark.parametrize("dead", [("finish(unknown)", "stream_end"), ("stream_end",), ("reasoning", "finish(unknown)", "stream_end")])
def test_a_dead_reply_then_a_normal_one_takes_two_samples(dead: tuple[str, ...]) -> None:
    """R-LOOP-22, and R-LOOP-23: a warning although the next sample succeeds."""
    script = Script(MACHINE).play(("user_prompt", *dead, "sample", "text", "finish(stop)", "stream_end"))
    assert script.samples == 2
    assert script.state.phase is Phase.COMPLETED
    assert script.state.ending.value == "stop"
    assert not script.effects(PublishError)
    assert len(script.effects(WarnIncomplete)) == 1


def test_a_word_nobody_knows_is_refused() -> None:
    with pytest.raises(ValueError, match="no word 'tool_cal"):
        Script(MACHINE).word("tool_cal(a)")
