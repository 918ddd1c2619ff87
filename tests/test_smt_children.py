"""Child processes: one that hangs is ended, one that grows is stopped, one that fails says why, and what they found is kept."""

from __future__ import annotations

import os
import time
from typing import Any

import pytest

from turnproof.checkers.smt import children

HARD = "(declare-const x Int) (declare-const y Int) (declare-const z Int)"
CUBES = "(= (+ (* x x x) (* y y y) (* z z z)) 114)"
"""Whether 114 is a sum of three cubes is an open question."""


def script(*assertions: str, prelude: str = HARD, solver: str = "z3", query_ms: int = 600_000) -> dict[str, Any]:
    return {
        "kind": "script",
        "solver": solver,
        "prelude": prelude,
        "groups": [["", [assertion]] for assertion in assertions],
        "query_ms": query_ms,
    }


def said(ended: children.Ended) -> list[str]:
    """The answers in order."""
    return [answer for _, given in ended.answers for answer, _ in given]


@pytest.mark.parametrize("solver", ["z3", "cvc5"])
def test_answers_come_with_their_place_and_time(solver: str) -> None:
    prelude = "(set-logic ALL) (declare-const x Int)"
    (ended,) = children.run([script("(= x 1)", "(< x x)", prelude=prelude, solver=solver)], seconds=30)
    assert said(ended) == ["sat", "unsat"]
    assert ended.why == ""
    assert all(ms >= 0 for _, given in ended.answers for _, ms in given)


def test_one_that_hangs_is_ended_and_what_it_found_is_kept() -> None:
    heard: list[tuple[int, Any]] = []
    started = time.monotonic()
    hangs, finishes = children.run(
        [script("(= x 1)", CUBES), script("(= x 2)")], seconds=1.5, hear=lambda task, answer: heard.append((task, answer[1][0][0]))
    )
    assert time.monotonic() - started < 10
    assert hangs.why == "time: ended after 1.5 s"
    assert said(hangs) == ["sat"]
    assert (finishes.why, len(finishes.answers)) == ("", 1)
    assert sorted(heard) == [(0, "sat"), (1, "sat")]


def test_a_single_query_has_a_limit_too() -> None:
    (ended,) = children.run([script(CUBES, "(= x 1)", query_ms=200)], seconds=60)
    assert said(ended) == ["unknown", "sat"]


def test_one_that_grows_is_stopped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(children, "MEMORY_MB", 16)
    (ended,) = children.run([script("(= x 1)")], seconds=30)
    assert not ended.answers
    assert ended.why


def test_one_that_fails_says_why() -> None:
    (ended,) = children.run([script("(= x nobody)")], seconds=30)
    assert ended.why.startswith("the solver's process ended with status 1: ")
    assert "unknown constant nobody" in ended.why


def test_no_child_outlives_an_error() -> None:
    def stop(task: int, answer: Any) -> None:
        raise KeyboardInterrupt

    before = set(os.listdir("/proc")) if os.path.isdir("/proc") else set()
    started = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        children.run([script("(= x 1)", CUBES)], seconds=60, hear=stop)
    assert time.monotonic() - started < 20
    mine = [pid for pid in set(os.listdir("/proc")) - before if pid.isdigit() and _parent(pid) == os.getpid()] if before else []
    assert not mine


def _parent(pid: str) -> int:
    try:
        with open(f"/proc/{pid}/stat", encoding="ascii") as file:
            return int(file.read().rpartition(")")[2].split()[1])
    except OSError:
        return -1
