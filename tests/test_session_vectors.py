"""The test vectors of the session, each on the versions it is for: the order of events is that of the vector."""

from __future__ import annotations

import pytest
from session_script import APPROVED, DESIGNS, TARGET, Script, outcomes

from turnproof.machines.session_stream import Arrived, What
from turnproof.machines.session_words import Mark, RunMarked, Turn
from turnproof.specs import session_history as history
from turnproof.specs.session_environment import Place
from turnproof.specs.session_history import design
from turnproof.specs.session_parts import Design
from turnproof.specs.session_requests import How, PromptTaken, ReplyHandled

both = pytest.mark.parametrize("around", DESIGNS.values(), ids=DESIGNS)
BY_NAME = {f"v{n}": design(machine) for n, machine in enumerate(history.VERSIONS)} | {"target": TARGET}


def hung_stop(around: Design) -> Script:
    """A prompt runs, its Stop has no reply for 11 s, and the turn is interrupted on our side."""
    script = Script(around)
    script.prompts("a")
    script.started()
    script.stop()
    script.advance(11_000)
    assert script.terminals == outcomes("interrupted")
    return script


def second_turn_after_an_idle_answer(script: Script) -> None:
    script.turn()
    assert script.asks
    script.answered()
    script.installed()
    script.sent()
    script.taken("b")


@both
def test_1_a_late_end_and_then_a_failure(around: Design) -> None:
    script = hung_stop(around)
    script.ended(handled=False)
    second_turn_after_an_idle_answer(script)
    script.handled()
    script.started()
    script.ended(What.FAILED)
    assert script.terminals == outcomes("interrupted", "failed")


@both
def test_2_without_the_late_end(around: Design) -> None:
    script = hung_stop(around)
    script.ended(handled=False)
    script.drop()
    script.reconnect()
    second_turn_after_an_idle_answer(script)
    script.started()
    script.ended()
    assert script.terminals == outcomes("interrupted", "completed")


@both
def test_3_a_start_that_cannot_be_decoded(around: Design) -> None:
    """R-SES-29: it is the same event, with the session's id and nothing else; it counts as a start and an end do."""
    script = hung_stop(around)
    script.ended(handled=False)
    script.drop()
    script.reconnect()
    second_turn_after_an_idle_answer(script)
    script.started(handled=False)
    script._send("stream", Arrived(What.STARTED, "nobody knows"))
    script.handled()
    script.ended()
    assert script.terminals == outcomes("interrupted", "completed")


def test_4_an_unclear_failure_and_an_active_session() -> None:
    script = Script(APPROVED)
    script.turn()
    script.installed()
    script.sent()
    script.taken("a", lost=True)
    script.turn()
    script.answered()
    assert script.terminals == outcomes("failed", "failed")
    assert script.prompts_sent == 1
    assert script.part("late").flying > 0


@both
def test_5_a_clear_refusal_leaves_nothing_to_ask(around: Design) -> None:
    script = Script(around)
    script.turn()
    script.installed()
    script.sent()
    script.fails("a", refused=True)
    script.turn()
    assert not script.asks
    script.installed()
    script.sent()
    script.taken("b")
    script.started()
    script.ended()
    assert script.terminals == outcomes("failed", "completed")


@both
def test_6_a_hung_stop_and_an_active_session(around: Design) -> None:
    script = hung_stop(around)
    script.turn()
    script.answered()
    assert script.terminals == outcomes("interrupted", "failed")
    assert script.part("late").flying > 0


@pytest.mark.parametrize("version", BY_NAME)
def test_7_the_lost_stream(version: str) -> None:
    """R-SES-25, R-SES-32: the drop waits until the failed turn has asked, the report's end until the continuation has its wake."""
    script = hung_stop(BY_NAME[version])
    script.turn()
    script.answered()
    script.drop()
    script.interrupt(How.UNHEARD)
    script.ended()
    script.reconnect()
    script.report()
    script.started()
    script.continues()
    script.ended()
    expected = ("interrupted", "failed") if version == "v0" else ("interrupted", "failed", "completed")
    assert script.terminals == outcomes(*expected)


@both
def test_8_nothing_to_interrupt(around: Design) -> None:
    script = Script(around)
    script.prompts("a")
    script.started()
    script.ended(handled=False)
    script.stop()
    script.interrupt()
    assert script.terminals == []
    assert script.part("session").phase is Turn.USER


@both
def test_9_an_interrupt_that_fails(around: Design) -> None:
    script = Script(around)
    script.prompts("a")
    script.started()
    script.stop()
    script.interrupt(How.FAILS)
    script.ended()
    assert script.terminals == outcomes("completed")


def test_10_leftovers_of_a_load() -> None:
    """The requests rejected at a load mark the session; their run's late end ends no turn."""
    script = Script(APPROVED)
    script._send("session", RunMarked())
    script.turn()
    script.answered()
    script._send("stream", Arrived(What.INTERRUPTED, ""))
    script.installed()
    script.sent()
    script.taken("a")
    script.started()
    script.ended()
    assert script.terminals == outcomes("completed")


@both
def test_12_a_drop_that_finds_the_session_active(around: Design) -> None:
    script = Script(around)
    script.prompts("a")
    script.started()
    script.drop()
    script.reconnect()
    script.ended()
    assert script.terminals == outcomes("completed")


def test_14_a_drop_forgets_the_wakes_of_the_mark_and_not_of_the_target() -> None:
    """Under the mark no pending background work is left; the target keeps the wake, and its continuation is shown."""
    for around, left in ((APPROVED, 0), (TARGET, 1)):
        script = Script(around)
        script.report()
        script.started()
        script.drop()
        script.ended()
        script.reconnect()
        assert script.part("session").ended == script.part("service").offers == left
        assert not script.part("session").running


def late_start(around: Design, *, drop: bool) -> Script:
    """A prompt's reply is lost; perhaps the stream drops and is back while the run is queued; then it starts."""
    script = Script(around)
    script.turn()
    script.installed()
    script.sent()
    script.taken("a", lost=True)
    if drop:
        script.drop()
        script.reconnect()
    script.started()
    return script


@pytest.mark.parametrize(("version", "asks"), [("v1", False), ("v2", True), ("v3", True), ("v4", True)])
def test_16_a_late_start(version: str, asks: bool) -> None:
    script = late_start(BY_NAME[version], drop=False)
    script.turn()
    assert script.asks == asks


@pytest.mark.parametrize(("version", "asks"), [("v1", False), ("v2", False), ("v3", True), ("v4", True)])
def test_17_a_late_start_after_a_reconnect(version: str, asks: bool) -> None:
    script = late_start(BY_NAME[version], drop=True)
    script.turn()
    assert script.asks == asks


@pytest.mark.parametrize("queued", [True, False])
def test_16_and_17_in_the_target(queued: bool) -> None:
    """A prompt that still waits is taken out of the inbox, and nothing is in doubt; one that was delivered is asked about."""
    script = Script(TARGET)
    script.turn()
    script.installed()
    script.sent()
    script._send("request_a", PromptTaken(True))
    if not queued:
        script.started(handled=False)
    script._send("request_a", ReplyHandled())
    assert script.terminals == outcomes("failed")
    assert script.part("server").a is (Place.CANCELLED if queued else Place.RUNNING)
    script.handled()
    script.turn()
    assert script.asks == (not queued)
    if script.asks:
        script.answered()
        assert script.terminals == outcomes("failed", "failed")


@pytest.mark.parametrize("early", [False, True], ids=["18_taken_while_it_runs", "19_taken_when_it_ended"])
@pytest.mark.parametrize(("version", "ends"), [("v3", False), ("v4", True), ("target", True)])
def test_a_report_after_a_prompt_that_was_never_taken(version: str, ends: bool, early: bool) -> None:
    script = Script(BY_NAME[version])
    script.turn()
    script.installed()
    script.sent()
    script.fails("a")
    script.report()
    script.started()
    if early:
        script.ended()
        script.continues()
    else:
        script.continues()
        script.ended()
    assert script.terminals == (outcomes("failed", "completed") if ends else outcomes("failed"))
    assert (script.part("session").phase is Turn.NONE) == ends


OUTSIDE = {
    11: "the answer to a permission is the shell's: its two tries of 10 s each are no event of the session",
    13: "a parent and its child are two sessions; the child's end reaches the parent as a tool call's",
    15: "a session that the server does not know is forgotten by the shell: there is no session any more",
}
"""Vectors that lie outside of one session, and why."""


def test_every_vector_is_played_or_lies_outside() -> None:
    played = {int(name.split("_")[1]) for name in globals() if name.startswith("test_") and name.split("_")[1].isdigit()}
    assert played | {18, 19} | set(OUTSIDE) == set(range(1, 20))


def test_the_mark_is_what_the_vectors_say_it_is() -> None:
    assert hung_stop(APPROVED).part("session").mark is Mark.STARTED
