"""Public reports about sessions, played on the target: each ends as its report asks, or lies outside of it, and why.

The cases (``data/cases-given.jsonl``) are reconstructions of public reports in the words of its column ``events``; many come from systems
with a busy/idle status, whose ``busy`` and ``idle`` are a start and an end here. The first turn is prompt a, the second prompt b.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from session_script import TARGET, Script, outcomes

from turnproof.machines.session_start import Prepared, StartPhase, TurnWanted
from turnproof.machines.session_stream import Arrived, AttemptsSpent, StreamPhase, What
from turnproof.machines.session_words import Turn
from turnproof.specs.session_requests import How, PromptTaken, ReplyHandled

CASES: Mapping[str, Mapping[str, Any]] = {
    case["id"]: case
    for case in map(json.loads, (Path(__file__).parent / "data" / "cases-given.jsonl").read_text(encoding="utf-8").splitlines())
    if case["machine"] == "session"
}


def running() -> Script:
    """A first turn whose run has started."""
    script = Script(TARGET)
    script.prompts("a")
    script.started()
    return script


def second(script: Script) -> None:
    """A second turn, its question answered if it asks, and its prompt taken."""
    script.turn()
    if script.asks:
        script.answered()
    script.installed()
    script.sent()
    script.taken("b")


def late_idle_of_a_stopped_run() -> None:
    """OS-01: the run is stopped and ends late, after the second turn began; the second turn keeps running."""
    script = running()
    script.stop()
    script.advance(11_000)
    script.interrupt(How.UNHEARD)
    script.ended(handled=False)
    second(script)
    script.handled()
    assert script.terminals == outcomes("interrupted")
    assert script.part("session").phase is Turn.USER
    script.started()
    script.ended()
    assert script.terminals == outcomes("interrupted", "completed")


def empty_status_after_a_reconnect() -> None:
    """OS-05: the reconnect finds nothing active although the prompt is on its way; the turn goes on and runs."""
    script = Script(TARGET)
    script.turn()
    script.installed()
    script.sent()
    script.drop()
    script.reconnect()
    assert script.terminals == []
    script.taken("a")
    script.started()
    assert script.part("session").phase is Turn.USER
    script.ended()
    assert script.terminals == outcomes("completed")


def second_idle_after_a_report() -> None:
    """OS-07: the run of a report follows the turn's own; after its end nothing is active."""
    script = running()
    script.ended()
    script.report()
    script.started()
    script.continues()
    script.ended()
    assert script.terminals == outcomes("completed", "completed")
    assert script.part("session").phase is Turn.NONE


def abort_without_an_answer() -> None:
    """OS-09: a Stop that hangs ends the turn on our side within 10 s."""
    script = running()
    script.stop()
    script.advance(60_000)
    assert script.terminals == outcomes("interrupted")
    assert script.part("session").phase is Turn.NONE
    assert script.now_ms <= 60_000


def stream_gone_for_good() -> None:
    """OS-11: the stream ends and cannot be had again: the turn fails, and no start installs a turn any more."""
    script = running()
    script.drop()
    script._send("stream", AttemptsSpent())
    assert script.terminals == outcomes("failed")
    assert script.part("stream").phase is StreamPhase.DEAD
    script._send("start", TurnWanted("b", False))
    script._send("start", Prepared(False))
    assert script.part("start").phase is StartPhase.IDLE
    assert script.terminals == outcomes("failed")


def background_end_after_its_turn() -> None:
    """OS-15: what ends after its turn asks for one continuation."""
    script = running()
    script.ended()
    script.report()
    script.started()
    assert script.part("service").offers == 1
    script.continues()
    script.ended()
    assert script.part("service").offers == 0
    assert script.terminals == outcomes("completed", "completed")


def busy_without_the_prompt() -> None:
    """OS-19: a reconnect finds the session busy and the prompt not in its history; it is looked for again, and the turn ends."""
    script = Script(TARGET)
    script.report()
    script.started()
    script.turn()
    script.installed()
    script.sent()
    script._send("request_a", PromptTaken(False))
    script.drop()
    script.reconnect()
    script._send("request_a", ReplyHandled())
    assert script.part("session").phase is Turn.USER
    script.ended()
    script.started(handled=False)
    script.drop()
    script.ended()
    script.reconnect()
    assert script.terminals == outcomes("completed")


def cancel_and_the_next_turn() -> None:
    """OS-21: a cancelled run's end comes in its order; the next turn is unaffected."""
    script = running()
    script.stop()
    script.interrupt()
    script.ended()
    assert script.terminals == outcomes("interrupted")
    second(script)
    script.started()
    script.ended()
    assert script.terminals == outcomes("interrupted", "completed")


def duplicate_idle() -> None:
    """OS-23: an end that comes before the second turn has shown any activity ends nothing."""
    script = running()
    script.ended()
    second(script)
    script._send("stream", Arrived(What.SUCCEEDED, ""))
    assert script.terminals == outcomes("completed")
    script.started()
    assert script.part("session").phase is Turn.USER


def idle_lost_in_a_drop() -> None:
    """OS-25: the end is lost in a drop; the reconnect reads it, and the second turn is accepted."""
    script = running()
    script.drop()
    script.ended()
    script.reconnect()
    assert script.terminals == outcomes("completed")
    second(script)
    assert script.part("session").phase is Turn.USER


def lost_reply_and_a_late_start() -> None:
    """OS-33: the reply of a prompt is lost and its run starts: it runs once, and its answer is shown in a continuation."""
    script = Script(TARGET)
    script.turn()
    script.installed()
    script.sent()
    script._send("request_a", PromptTaken(True))
    script.started(handled=False)
    script._send("request_a", ReplyHandled())
    script.handled()
    script.ended()
    script.continues()
    assert script.terminals == outcomes("failed", "completed")
    assert script.prompts_sent == 1


def stale_interrupted_flag() -> None:
    """OS-35: a Stop that comes after the end leaves nothing behind; the next turn's failure is a failure."""
    script = running()
    script.ended(handled=False)
    script.stop()
    script.handled()
    second(script)
    script.started()
    script.ended(What.FAILED)
    assert script.terminals[-1:] == outcomes("failed")
    assert len(script.terminals) == 2


def end_without_the_reply() -> None:
    """OS-37: the reply of the request never comes; the turn ends by its end."""
    script = Script(TARGET)
    script.turn()
    script.installed()
    script.sent()
    script._send("request_a", PromptTaken(False))
    script.started()
    script.ended()
    script.advance(60_000)
    assert script.terminals == outcomes("completed")


PLAYED: Mapping[str, Callable[[], None]] = {
    "OS-01": late_idle_of_a_stopped_run,
    "OS-05": empty_status_after_a_reconnect,
    "OS-07": second_idle_after_a_report,
    "OS-09": abort_without_an_answer,
    "OS-11": stream_gone_for_good,
    "OS-15": background_end_after_its_turn,
    "OS-19": busy_without_the_prompt,
    "OS-21": cancel_and_the_next_turn,
    "OS-23": duplicate_idle,
    "OS-25": idle_lost_in_a_drop,
    "OS-33": lost_reply_and_a_late_start,
    "OS-35": stale_interrupted_flag,
    "OS-37": end_without_the_reply,
}
OUTSIDE = {
    "OS-03": "a status request that fails: the session asks the history again by its timer, and how a request is retried is the shell's",
    "OS-13": "a process that exits while a turn is being started: the native turn start is another wire",
    "OS-17": "a watchdog over turns: no machine of the session watches silence, the stream's 45 s are the shell's",
    "OS-27": "a slow status answer over a newer event: nothing of the stream is handled between the question and its answer",
    "OS-29": "a child that is resumed and ends again: one report a child is what the model has",
    "OS-31": "suppression of duplicate child ends: the server queues a report once, by its id",
}
"""Cases that the modelled server cannot say, and why; ``test_session_cases_adapter`` plays them on the adapter's machines alone."""


@pytest.mark.parametrize("case", PLAYED)
def test_a_reported_case_ends_as_it_should(case: str) -> None:
    PLAYED[case]()


def test_every_case_is_played_or_lies_outside() -> None:
    assert sorted(CASES) == sorted([*PLAYED, *OUTSIDE])


@pytest.mark.parametrize("case", PLAYED)
def test_a_played_case_names_its_report(case: str) -> None:
    assert (PLAYED[case].__doc__ or "").startswith(f"{case}: ")
    assert CASES[case]["report"]
