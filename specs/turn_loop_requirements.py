"""The requirements of the turn loop, each as a sentence that can be tested.

Derived from OpenCode's session loop, from the reports on dead streams (anomalyco/opencode#43856, #43939, #49414 and others) and from
the pull request that excludes unmapped finish reasons from the exit guard (anomalyco/opencode#43892).
"""

from __future__ import annotations

from collections.abc import Mapping

REQUIREMENTS: Mapping[str, str] = {
    "R-LOOP-1": "Completed implies that the last step saw a terminal finish reason, or that a structured output was captured.",
    "R-LOOP-2": "Every started run ends in exactly one of completed, errored, aborted, blocked, exactly once, and publishes idle "
    "exactly once afterwards.",
    "R-LOOP-3": "A run with a dead last step is never reported as success; exit status, error event and message error agree.",
    "R-LOOP-4": "At most resample-limit consecutive resamples without progress; samples are at most steps x (1 + retry limit) + resamples.",
    "R-LOOP-5": "A call id is run at most once; a request is never repeated after a call was run or hosted in that attempt.",
    "R-LOOP-6": "Every tool part reaches completed, error or orphan before the run is over; none stays pending or running.",
    "R-LOOP-7": "An orphan is reported as outcome unknown; nothing concludes that it did not run.",
    "R-LOOP-8": "The two guards agree: a reason is terminal for both or for neither.",
    "R-LOOP-9": "Between two equal requests there is a wait above zero, and the status says so.",
    "R-LOOP-10": "After a cancel there is no sample, no call run and no timer but the grace timer; the outcome is aborted, also in a wait.",
    "R-LOOP-11": "Stale inputs (an old run, a timer that was cleared, a late result) never change the outcome.",
    "R-LOOP-12": "A compaction counts only with a terminal finish and a summary; consecutive ones that free nothing are bounded.",
    "R-LOOP-13": "A user message that arrives during a run is answered by it or a following one, never lost, never answered twice.",
    "R-LOOP-14": "Waits honour explicit hints as a minimum; the local schedule never shrinks, up to its cap.",
    "R-LOOP-15": "Blocked by the user is told from completed.",
    "R-LOOP-16": "The finishes content-filter, length and error never end as completed without a mark.",
    "R-LOOP-17": "The step limit is a real bound: after the limit step there is no further sample.",
    "R-LOOP-18": "Usage of zero alone never decides anything, neither completion nor overflow.",
    "R-LOOP-19": "The budgets for provider errors and for incomplete streams are independent; one does not refill the other.",
    "R-LOOP-20": "Same inputs, same commands; no clock and no I/O inside.",
    "R-LOOP-21": "A stream that closes without a finish part gives unknown; mappers map every listed raw value as "
    "published, every other to unknown.",
    "R-LOOP-22": "A reply without a finish part, then a normal one: exactly two samples, outcome completed, no error.",
    "R-LOOP-23": "Every resample or continuation because of an unknown finish logs one warning, also when the next sample succeeds.",
    "R-LOOP-24": "Where no finish is unknown or absent, upstream before and after its fix behave the same.",
    "R-LOOP-25": "After a dead step that left only step markers the next request equals the one before; no empty message is sent.",
    "R-LOOP-26": "A continuation keeps text and results already recorded, and never repeats a text that was kept.",
    "R-LOOP-27": "The native runtime too: an unmapped raw value gives unknown, a clean end without terminal gives absent; "
    "one budget for both.",
    "R-LOOP-28": "A dead step with a completed local call goes on to an ordinary next step that carries the result.",
    "R-LOOP-29": "Equal calls are counted across steps, and the guard fires before the repeated call runs.",
    "R-LOOP-30": "Upstream's policies show their defects, the bounded one neither; they differ only in the exit guard and the judge.",
    "R-LOOP-31": "A raw reason that was present but unmapped is kept, and told from no finish part at all.",
    "R-LOOP-32": "What an old run reports late is ignored unless its identity is current; a run started after a cancel is unaffected.",
}
"""Requirement id -> its sentence."""

TESTS: Mapping[str, str] = {
    "R-LOOP-14": "tests/test_turn_loop.py::test_waits_follow_the_schedule_and_never_undercut_a_hint",
    "R-LOOP-18": "tests/test_turn_loop.py::test_no_event_or_state_speaks_of_usage",
    "R-LOOP-20": "tests/test_turn_loop.py::test_step_is_total_and_deterministic",
    "R-LOOP-21": "tests/test_finish_reason.py::test_a_stream_that_only_closes_is_never_a_completion",
    "R-LOOP-22": "tests/test_turn_loop_cases.py::test_a_dead_reply_then_a_normal_one_takes_two_samples",
    "R-LOOP-24": "tests/test_turn_loop_variants.py::test_before_and_after_the_fix_agree_where_every_finish_is_known",
    "R-LOOP-27": "tests/test_finish_reason.py::test_a_stream_that_only_closes_is_never_a_completion",
    "R-LOOP-30": "tests/test_turn_loop_variants.py::test_variants_replace_the_judge_and_the_exit_guard_alone",
    "R-LOOP-31": "tests/test_finish_reason.py::test_unmapped_and_absent_are_told_apart",
}
"""Requirement id -> the named test that discharges what no property of a state or a step can say."""

ELSEWHERE: Mapping[str, str] = {
    "R-LOOP-29": "tool_call",
}
"""Requirement id -> the specification that discharges it."""
