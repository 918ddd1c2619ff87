"""Public reports that the modelled server cannot say, played on the adapter's machines alone: each ends as its report asks.

The cases (``data/cases-given.jsonl``) are reconstructions of public reports. Many come from systems with a busy and an idle status a
turn; ``busy`` is read as a start that serves the turn's prompt, ``idle`` as its end. The orchestrator runs one turn at a time: a turn
that is asked for while another is being stopped waits until that one is over.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from session_adapter import Adapter

from turnproof.machines.session_stop import InterruptAnswered, StopPhase
from turnproof.machines.session_stream import What
from turnproof.machines.session_words import Answer, Turn
from turnproof.specs.session_target import TARGET

CASES: Mapping[str, Mapping[str, Any]] = {
    case["id"]: case
    for case in map(json.loads, (Path(__file__).parent / "data" / "cases-given.jsonl").read_text(encoding="utf-8").splitlines())
    if case["machine"] == "session"
}


class Script(Adapter):
    """Plays the words of the case files."""

    def __init__(self) -> None:
        super().__init__(TARGET)
        self.served: set[str] = set()
        self.words: Mapping[str, Callable[[str], object]] = {
            "start_turn": self.start_turn,
            "prompt_ok": lambda turn: self.answer(turn, Answer.OK),
            "prompt_lost": lambda turn: self.answer(turn, Answer.UNCLEAR),
            "busy": self.busy,
            "idle": self.idle,
            "started": lambda _: self.started(*self.waiting()),
            "succeeded": lambda _: self.idle(self.last()),
            "failed": self.fail,
            "stop": lambda _: self.stop(),
            "stop_ok": lambda _: self.send("stop", InterruptAnswered(True)),
            "stop_hang": lambda _: None,
            "cleanup": lambda _: self.ended("interrupted"),
            "advance": lambda ms: self.advance(int(ms)),
            "silence": lambda ms: self.advance(int(ms)),
            "drop": lambda _: self.drop(),
            "reconnect": lambda _: None,
            "eof": lambda _: self.die(),
            "exit": lambda _: self.die(),
            "turn_started": lambda turn: self.started(turn),
            "text": lambda _: None,
            "replay": lambda _: None,
            "child_start": lambda _: None,
            "child_end": lambda _: None,
            "report": lambda child: self.started(child),
            "item_done": lambda child: self.started(child),
            "offer": lambda _: None,
        }

    def play(self, events: list[str]) -> None:
        """Every event, in its order."""
        for event in events:
            found = re.fullmatch(r"(\w+)(?:\((.*)\))?", event)
            assert found is not None, event
            name, argument = found.groups()
            self.words[name](argument or "")

    def waiting(self) -> tuple[str, ...]:
        """The prompt that is sent and not delivered yet; a prompt in doubt if no turn is installed."""
        return (self.session.item if self.session.phase is Turn.USER else self.session.doubt,)

    def last(self) -> str:
        """The turn installed."""
        return str(self.session.item)

    def start_turn(self, turn: str) -> None:
        """A turn that is being stopped is over first: by its end if its interrupt was answered, else after the wait for the answer."""
        if self.session.phase is not Turn.NONE:
            if self.states["stop"].phase is StopPhase.WAITING:
                self.advance(10_000)
            else:
                self.ended("interrupted")
        assert self.session.phase is Turn.NONE
        self.start(turn, doubt=bool(self.session.doubt or self.session.more))

    def serve(self, turn: str) -> None:
        """What precedes the end of a turn on the wire."""
        if turn not in self.served:
            self.busy(turn)

    def busy(self, turn: str) -> None:
        self.served.add(turn)
        self.started(turn)

    def fail(self, turn: str) -> None:
        self.serve(turn)
        self.ended("failed")

    def idle(self, turn: str) -> None:
        if self.session.phase is Turn.USER and self.session.item == turn:
            self.serve(turn)
        self.ended("interrupted" if self.session.stopped else "succeeded")


def played(name: str, *, until: int | None = None) -> Script:
    """The case, up to but without the event of that number."""
    script = Script()
    script.play(CASES[name]["events"][:until])
    return script


def test_a_question_that_fails_keeps_no_turn_from_its_end() -> None:
    script = played("OS-03", until=-1)
    assert script.outcomes == ["interrupted", "completed"]


def test_nothing_opens_a_turn_once_the_session_is_gone() -> None:
    script = played("OS-13")
    assert script.outcomes == ["failed"]
    assert script.session.phase is Turn.NONE
    assert (script.offers, script.session.running) == (0, False)


def test_the_cleanup_of_a_turn_does_not_end_the_watch_over_the_next() -> None:
    script = played("OS-17")
    assert script.session.item == "T2"
    asked = script.requests.count("history")
    script.advance(10_000)
    assert script.requests.count("history") == asked + 1


def test_a_slow_answer_does_not_overrule_what_is_newer() -> None:
    """What is published after the subscription is handled after the answer, so that the newer always comes last."""
    script = Script()
    script.drop()
    script.publish(What.STARTED)
    assert not script.session.running
    script.read(active=False)
    assert script.session.running


def test_every_end_of_a_child_is_reported() -> None:
    script = Script()
    script.play([*CASES["OS-29"]["events"][:3], "idle(c1)", "report(c1)"])
    assert script.offers == 2


def test_a_doubled_end_of_a_child_is_no_second_report() -> None:
    """A report is an item of the inbox: what rings twice is delivered once, and the adapter sees one start."""
    script = Script()
    script.play(["report(A)", "offer", "idle(A)", "report(B)", "child_end(A)"])
    assert script.offers == 2
