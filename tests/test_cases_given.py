"""Public reports about reply operations, played on the machine: each ends as its report asks.

The cases (``data/cases-given.jsonl``) are reconstructions of public reports in the words of its column ``events``. Cases with two
operations are two instances, one after the other. A word about an attempt, a tick or a delivery is an event of another machine and
moves nothing here.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from turnproof.checkers.timed import Timed, TimedStep
from turnproof.machines.reply_operation import MACHINE
from turnproof.machines.reply_operation_words import (
    AbortReason,
    AbortRequested,
    BackendAttached,
    BackendDetached,
    Completed,
    DeliverSteer,
    Event,
    OutcomeCommitted,
    Phase,
    PhaseEntered,
    RecoveryRequested,
    Release,
    Result,
    SteerRequested,
    SupersedeRequested,
)
from turnproof.specs.language import Said

CASES: Mapping[str, Mapping[str, Any]] = {
    case["id"]: case
    for case in map(json.loads, (Path(__file__).parent / "data" / "cases-given.jsonl").read_text(encoding="utf-8").splitlines())
    if case["machine"] == "reply_operation"
}

ELSEWHERE = {
    "RO-11": "a durable release that fails, and whether B may begin meanwhile, is the registry's: reply_registry",
    "RO-27": "settlement of a delivery that was registered late belongs to the delivery of the registry: reply_registry",
    "RO-29": "whether B's work may start before A's owner has settled is the admission of the registry: reply_registry",
}
"""Cases that the operation alone cannot say, and where they belong."""

WORDS: Mapping[str, Callable[[str], Event]] = {
    "phase": lambda name: PhaseEntered(Phase(name)),
    "attach": lambda name: BackendAttached(name or "backend"),
    "detach": lambda name: BackendDetached(name or "backend"),
    "freeze": lambda _: OutcomeCommitted(),
    "complete": lambda _: Completed(False),
    "supersede": lambda _: SupersedeRequested(),
    "abort": lambda reason: AbortRequested(AbortReason(reason)),
    "recover": lambda _: RecoveryRequested(),
    "enq": lambda _: SteerRequested(backend_accepts=True, evidence_stale=False),
}
OUTSIDE = frozenset({"a_end", "model_end", "owner_gone", "tick", "deliver"})
"""Words about the attempt, its owner and the delivery: no event reaches the operation."""


class Play:
    """A case, word by word. ``operations`` are its operations by name, ``steps`` what happened to the newest."""

    def __init__(self, words: list[str]) -> None:
        self.operations: dict[str, Timed] = {}
        self.steps: dict[str, list[TimedStep]] = {}
        self.without: list[str] = []
        """Words that came while there was no operation."""
        for word in words:
            self._word(*_split(word))

    def _word(self, word: str, argument: str) -> None:
        if word == "begin":
            self.operations[argument], self.steps[argument] = Timed(MACHINE), []
            return
        if not self.operations:
            self.without.append(word)
            return
        name = next(reversed(self.operations))
        timed = self.operations[name]
        if word == "advance":
            self.steps[name] += timed.advance(int(argument))
        elif word not in OUTSIDE:
            self.steps[name].append(timed.send(WORDS[word](argument)))

    def answer(self, name: str, event: type) -> TimedStep:
        """The one step of ``name`` on such an event."""
        [step] = [s for s in self.steps[name] if isinstance(s.event, event)]
        return step


def _split(word: str) -> tuple[str, str]:
    found = re.fullmatch(r"(\w+)(?:\(([^)]*)\))?", word)
    assert found is not None, word
    return found[1], found[2] or ""


def superseded_and_settled(play: Play) -> None:
    a = play.operations["A"]
    assert a.state.result is Result.ABORTED_FOR_SUPERSESSION
    assert a.state.released
    [release] = [step for step in play.steps["A"] if Release() in step.effects]
    assert (release.at_ms, release.by_clock) == (60_000, True)


def freed_within_a_minute(play: Play) -> None:
    assert play.answer("A", AbortRequested).said is Said.TAKEN
    [release] = [step for step in play.steps["A"] if Release() in step.effects]
    assert release.at_ms <= 60_000
    assert play.operations["A"].state.result is Result.ABORTED_BY_USER


def recovery_refused_and_completed(play: Play) -> None:
    step = play.answer("A", RecoveryRequested)
    assert (step.said, step.effects) == (Said.REFUSED, ())
    assert play.operations["A"].state.result is Result.COMPLETED


def live_and_steered(play: Play) -> None:
    assert play.operations["A"].state.result is Result.NONE
    assert not play.operations["A"].state.signal_aborted
    assert play.answer("A", SteerRequested).effects == (DeliverSteer(),)


def fresh_after_an_abort(play: Play) -> None:
    assert play.operations["A"].state.released
    b = play.operations["B"].state
    assert (b.phase, b.signal_aborted, b.result) == (Phase.RUNNING, False, Result.NONE)


def idle_cancel_is_nothing(play: Play) -> None:
    assert play.without == ["abort"]
    a = play.operations["A"].state
    assert (a.result, a.signal_aborted) == (Result.COMPLETED, False)


EXPECTED: Mapping[str, Callable[[Play], None]] = {
    "RO-05": superseded_and_settled,
    "RO-07": freed_within_a_minute,
    "RO-25": recovery_refused_and_completed,
    "RO-45": live_and_steered,
    "RO-47": fresh_after_an_abort,
    "RO-49": idle_cancel_is_nothing,
}


@pytest.mark.parametrize("case", EXPECTED)
def test_a_reported_case_ends_as_it_should(case: str) -> None:
    EXPECTED[case](Play(CASES[case]["events"]))


def test_every_case_is_played_or_belongs_elsewhere() -> None:
    assert sorted(CASES) == sorted([*EXPECTED, *ELSEWHERE])


def test_each_word_of_the_cases_played_is_known() -> None:
    words = {_split(word)[0] for case in EXPECTED for word in CASES[case]["events"]}
    assert words <= {*WORDS, *OUTSIDE, "begin", "advance"}
