"""The requirements of the embedded attempt, of failover and of stuck recovery, each as a sentence that can be tested.

Derived from OpenClaw's embedded runner and watchdog and from openclaw/openclaw#103697: the typed reason reaches the attempt, what is
active is classified before anybody decides, and a side effect that may have happened is never made to happen again.
"""

from __future__ import annotations

from collections.abc import Mapping

ATTEMPT_REQUIREMENTS: Mapping[str, str] = {
    "R-ATT-1": "The reason a recovery starts with, stuck_recovery, is the reason the attempt's cancel receives, by whatever path.",
    "R-ATT-2": "Of one recovery the attempt sees the typed reason before any untyped abort; no listener records an external abort first.",
    "R-ATT-3": "A recovery is classified by what is active at that moment, before any flag of the ending is set and before failover "
    "decides.",
    "R-ATT-4": "With a potentially side-effecting tool active the class is tool_execution_timeout, whatever else is active.",
    "R-ATT-5": "A tool call is replay-safe only if marked or listed safe and not mutating; everything else, unknown included, is "
    "potentially side-effecting.",
    "R-ATT-6": "Without such a tool, active compaction gives compaction_timeout, else an active model call gives model_idle_timeout, "
    "which may enter retry and fallback.",
    "R-ATT-7": "In every other situation the class is external_abort: it surfaces, and nothing is tried again.",
    "R-ATT-8": "A model call is active while at least one request lives: the late end of an older one does not clear a newer one, and "
    "after "
    "the last end the class is not model_idle_timeout.",
    "R-ATT-9": "A finalizing, finished or otherwise non-abortable reply or attempt refuses recovery: no cancel, no flag, no class.",
    "R-ATT-10": "Work in a declared healthy wait is observed, not recovered, until that wait's own deadline.",
    "R-ATT-11": "A tool timeout or a compaction timeout leads to no rotation, fallback or retry; the turn ends with the timeout payload.",
    "R-ATT-12": "With a potentially side-effecting tool active at the interruption no stage replays, also when the model was idle as well.",
    "R-ATT-13": "A timeout that surfaces as a prompt error is replayed only if the attempt is replay-safe, whoever owns the transport.",
    "R-ATT-14": "An external abort surfaces at every stage; a side effect that happened is not made to happen again by retry, rotation, "
    "fallback or resume.",
    "R-ATT-15": "The join of endings never lowers the kind, ok is neutral, an observation alone interrupts nothing, and timeout and abort "
    "join alike in both orders.",
    "R-ATT-16": "Only the first abort of an attempt has effects; a stray later one repeats none and turns no idle timeout external.",
    "R-ATT-17": "The idle timer runs only while the attempt waits for a provider event; tool time never counts; every event stops it.",
    "R-ATT-18": "On the run deadline compaction grace is used at most once, drain grace at most once, then the timeout fires exactly once.",
    "R-ATT-19": "Every step of the clean-up at the end of an attempt runs even if an earlier one throws; the reply's slot is not touched.",
    "R-ATT-20": "Watchdog classification, active-abort eligibility and the failover tables are total and ordered.",
    "R-ATT-21": "Only progress moves the watchdog's age of progress: no message, no steering, no model retry without semantic progress.",
    "R-ATT-22": "A recovery with an outdated generation is skipped; one recovery a key at a time; its mark is removed on every exit.",
    "R-ATT-23": "A warning's back-off delays no justified recovery; a tick 1 000 ms or more late decides none.",
    "R-ATT-24": "A handle is registered only for the current lifecycle generation and cleared only by itself; an older generation is "
    "refused with restart.",
    "R-ATT-25": "Abort, drain and force clear act on the handle and the operation captured at entry; a replacement is never hit.",
    "R-ATT-26": "The lane is reset only if neither attempt nor reply operation owns it at that moment, no fresh task is in it, and there "
    "is "
    "a reason to.",
    "R-ATT-27": "After a recovery each queued turn starts exactly once, in order, and the queue does not replay the recovered turn.",
    "R-ATT-28": "A recovery is reported drained only if attempt and owner both ended; forced clear, refusal and nothing released are told "
    "apart from success.",
    "R-ATT-29": "The cause shown for a recovered turn is the stall class, and the blocked tool if there was one; never the user's abort.",
    "R-ATT-30": "Regression sequences with a fake clock: model stall, tool stall, unknown or stale recovery, the reason's way through the "
    "reply operation, abortability, terminal clean-up.",
    "R-ATT-31": "The pure decision of one watchdog tick gives the first matching row, has no memory, and equals its table on all inputs.",
    "R-ATT-32": "The historic rules (started instead of active, blanket idle, dropped reason, reset without ownership check) fail where "
    "they "
    "should; the target shows none of their bugs.",
}
"""Requirement id -> its sentence."""


def requirements(*ids: str) -> Mapping[str, str]:
    """The requirements of these ids, for one specification. Raises ``KeyError`` for an id there is not."""
    return {rid: ATTEMPT_REQUIREMENTS[rid] for rid in ids}


TESTS: Mapping[str, str] = {
    "R-ATT-19": "tests/test_embedded_attempt.py::test_every_step_of_the_clean_up_runs_whatever_an_earlier_one_does",
    "R-ATT-30": "tests/test_embedded_attempt_sequences.py::test_every_sequence_is_played",
    "R-ATT-31": "tests/test_stuck_recovery_decision.py::test_the_decision_equals_its_table_on_every_input",
    "R-ATT-32": "tests/test_recovery_system.py::test_every_historic_rule_fails_and_the_target_does_not",
}
"""Requirement id -> the named test that discharges what no property of a state or a step can say."""
