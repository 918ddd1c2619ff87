"""The requirements of the reply operation and its registry, each as a sentence that can be tested.

Derived from OpenClaw's reply-run registry and from openclaw/openclaw#103697 (typed reason through the reply path, one abort guard,
bounded settlement after a stuck recovery).
"""

from __future__ import annotations

from collections.abc import Mapping

REQUIREMENTS: Mapping[str, str] = {
    "R-REPLY-1": "Once a result is recorded its kind and code never change, and the phase mirrors its kind.",
    "R-REPLY-2": "A key's slot holds at most one operation; a begin on an occupied key is refused and changes nothing; follow-up "
    "barrier, occupied slot and successor barrier are checked in this order.",
    "R-REPLY-3": "Released is for ever, and is entered once.",
    "R-REPLY-4": "Every operation with a result is released within a bound, whatever owner, backend and environment do.",
    "R-REPLY-5": "Every operation with a result that still holds its slot has an armed settle timer: held at +59 999 ms, released at "
    "+60 000 ms, result unchanged.",
    "R-REPLY-6": "Each waiter of a key wakes once per release, never while a successor holds the key; one that timed out or gave up "
    "gets false, once.",
    "R-REPLY-7": "A waiter that came by an old session id is woken by the release of the same operation, however often the id rotated.",
    "R-REPLY-8": "A committed outcome refuses user abort, restart abort and stuck recovery without any effect.",
    "R-REPLY-9": "A probe that says no, or throws, makes the operation non-abortable for user, restart, supersession and stuck "
    "recovery; no backend counts as abortable.",
    "R-REPLY-10": "Stuck recovery reads the same abort guard as the other aborts; there is no second copy of it.",
    "R-REPLY-11": "An accepted stuck recovery cancels the backend once with that typed reason, also when it came through the registry.",
    "R-REPLY-12": "After an accepted stuck recovery there is no result, the signal is live, slot and lane are held.",
    "R-REPLY-13": "Stuck recovery needs phase running and an attached, abortable backend that was not already cancelled for it; else it "
    "is refused.",
    "R-REPLY-14": "While the recovery window is open the next attempt may attach; the window then closes, and the reply can still "
    "complete.",
    "R-REPLY-15": "A window in which nothing attaches ends in whole-reply expiry; the slot is free at most window + 60 000 ms after the "
    "recovery, healthy waits not counted.",
    "R-REPLY-16": "Expiry records failed:run_stalled before it cancels as superseded, signals, and keeps the slot with an armed settle "
    "timer.",
    "R-REPLY-17": "Expiry is refused where the slot is gone, and where the outcome is committed unless its finalization stalled.",
    "R-REPLY-18": "A committed outcome whose lease is not renewed for 60 000 ms (or until its latest declared work deadline) ends "
    "failed:run_stalled and is released at once.",
    "R-REPLY-19": "Healthy waits are never ended by stuck recovery; a wait for a lane, a human or the runtime is never judged stale.",
    "R-REPLY-20": "A call from inside cancel or a signal listener finds the result recorded and is refused accordingly.",
    "R-REPLY-21": "A cancel that throws prevents neither the release nor the settle timer.",
    "R-REPLY-22": "An accepted abort cancels the attached backend at most once, with its own reason; no backend stays attached after a "
    "result; a late one is cancelled at once.",
    "R-REPLY-23": "An abort before any backend releases at once; with retain-until-complete the slot is held with an armed settle timer.",
    "R-REPLY-24": "Nothing late of an old operation removes, aborts or wakes anything of its successor.",
    "R-REPLY-25": "Rotation to a session id another key owns is an error that changes nothing; an operation changes its key only while "
    "queued.",
    "R-REPLY-26": "No queued turn of a key starts while slot or attempt of an earlier turn is live; when both are gone it starts once.",
    "R-REPLY-27": "Follow-ups are refused until every registered barrier settled or timed out; the owner counts as settled only when "
    "the real barriers settled.",
    "R-REPLY-28": "Steering needs phase running, an attached backend that accepts input, and fresh evidence; it is no sign of life.",
    "R-REPLY-29": "The step is total and deterministic, with no I/O, clock or callback inside.",
    "R-REPLY-30": "Each historic variant shows its named bug within the explored bounds, and the target shows none of them.",
}
"""Requirement id -> its sentence."""

TESTS: Mapping[str, str] = {
    "R-REPLY-18": "tests/test_reply_operation_sequences.py::test_declared_work_extends_the_lease_to_its_deadline_R_REPLY_18",
    "R-REPLY-29": "tests/test_reply_operation.py::test_step_is_total_and_deterministic",
    "R-REPLY-30": "tests/test_reply_operation.py::test_every_historic_variant_fails_and_the_target_does_not",
}
"""Requirement id -> the named test that discharges what no property of a state or a step can say."""

ELSEWHERE: Mapping[str, str] = {
    "R-REPLY-2": "reply_slot",
    "R-REPLY-6": "reply_slot",
    "R-REPLY-7": "session_id",
}
"""Requirement id -> the specification that discharges it."""
