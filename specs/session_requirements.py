"""The requirements of the OpenCode session, and what discharges those that no property of the system can say."""

from __future__ import annotations

from collections.abc import Mapping

REQUIREMENTS: Mapping[str, str] = {
    "R-SES-1": "Every turn emits at most one terminal, and none after another turn was installed.",
    "R-SES-2": "A terminal caused by an execution's end belongs to a turn whose prompt, or wake, that execution served; exempt is an "
    "interrupted end after a Stop of that turn.",
    "R-SES-3": "A terminal caused by a Stop belongs to the stopped turn.",
    "R-SES-4": "A turn reported completed had its prompt sent.",
    "R-SES-5": "While a prompt whose turn already ended is queued or running, no other prompt is sent without a session.active question in "
    "the same start.",
    "R-SES-6": "An end is skipped only if the execution it closes served no installed turn.",
    "R-SES-7": "At most one turn is active; at most the last wake is running; a wake is taken at most once or dropped, never both.",
    "R-SES-8": "A permission or form of the active turn's own execution is never rejected as stale.",
    "R-SES-9": "`busy` equals started and not ended in the order handled, except across a drop.",
    "R-SES-10": "When everything enabled is done, no user turn is active.",
    "R-SES-11": "When everything enabled is done, no continuation is active.",
    "R-SES-12": "When everything enabled is done, no wake is left without a pending offer or turn.",
    "R-SES-13": "When everything enabled is done, no turn is left waiting for a start or holding an end.",
    "R-SES-14": "When everything enabled is done and the session is idle, no remaining mark is effective.",
    "R-SES-15": "A Stop answers within 10 s, a start's question within 5 s.",
    "R-SES-16": "After the stream is dead no turn is active and no wake is held.",
    "R-SES-17": "Marking records whether the session was busy at that moment.",
    "R-SES-18": "Any start is applied to the mark before the event is held or routed; a start clears a mark whose run had started.",
    "R-SES-19": "The first start after an unstarted mark only records; only a start after that clears it.",
    "R-SES-20": "A continuation that takes a wake that still runs clears the mark.",
    "R-SES-21": "Replay of a held wake never eats the mark; an ended wake's own end ends the continuation.",
    "R-SES-22": "A genuinely late end is skipped, clears the mark and ends no turn.",
    "R-SES-23": "A prompt request that failed without clear refusal and whose execution starts late: the next user turn asks first.",
    "R-SES-24": "The same with a reconnect in between that finds the session active before the late start.",
    "R-SES-25": "The lost-stream scenario ends interrupted, failed, completed; under V0 interrupted, failed.",
    "R-SES-26": "After an unclear failure of a prompt the server never took, a background reply's continuation ends completed.",
    "R-SES-27": "A reconnect reads the session whenever a mark is pending: idle promotes the mark, active leaves it.",
    "R-SES-28": "A new subscription delivers only events published after it.",
    "R-SES-29": "An undecodable start or end counts in every rule exactly like the decoded one.",
    "R-SES-30": "V0 to V3 each reproduce their traces within the bounds; V4 reproduces none of them.",
    "R-SES-31": "A clear refusal sets no mark: the next prompt goes out without a question.",
    "R-SES-32": "A scenario can hold two events on gates.",
    "R-SES-33": "Whether an earlier prompt can still run when a later one is sent after a reconnect is answered by search.",
}


SYSTEM_TESTS = "tests/test_session_system.py"
TESTS: Mapping[str, str] = {
    "R-SES-13": f"{SYSTEM_TESTS}::test_the_target_has_no_state_in_which_a_turn_waits_for_a_start",
    "R-SES-15": f"{SYSTEM_TESTS}::test_every_wait_of_a_stop_and_a_start_has_its_timer",
    "R-SES-25": "tests/test_session_vectors.py::test_7_the_lost_stream",
    "R-SES-28": f"{SYSTEM_TESTS}::test_a_new_subscription_delivers_only_what_is_published_after_it",
    "R-SES-29": "tests/test_session_vectors.py::test_3_a_start_that_cannot_be_decoded",
    "R-SES-30": f"{SYSTEM_TESTS}::test_the_versions_do_what_the_history_says",
    "R-SES-32": "tests/test_session_vectors.py::test_7_the_lost_stream",
    "R-SES-33": f"{SYSTEM_TESTS}::test_the_question_of_the_last_review",
}


def requirements(*numbers: int) -> Mapping[str, str]:
    """Those of these numbers."""
    return {f"R-SES-{n}": REQUIREMENTS[f"R-SES-{n}"] for n in numbers}
