"""The engine that remembers texts, names and nodes finds exactly what stepping each line by itself finds."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest
from trace_logs import Line, chances, dump, lines_of, play

from turnproof.checkers.traces import replay
from turnproof.checkers.traces.beliefs import Beliefs
from turnproof.checkers.traces.log import LogReplay
from turnproof.machines.kernel import Ignored, Kind, Refused, Taken, fields_of
from turnproof.machines.reply_operation import MACHINE
from turnproof.specs.reply_operation import SPEC
from turnproof.traces.coding import Coder

CODER = Coder(MACHINE)


def first_divergences(lines: list[Line]) -> dict[str, int]:
    """Key -> number of the first line that does not fit, by stepping with the real handles and comparing."""
    states: dict[str, Any] = {}
    found: dict[str, int] = {}
    carried = {name for name, field in fields_of(MACHINE.state).items() if field.kind is Kind.OPAQUE}
    for number, line in enumerate(lines, 1):
        key = line["key"]
        if key in found:
            continue
        before = states.get(key, MACHINE.initial)
        event: Any = CODER.event(line["event"], line["args"])
        answer = MACHINE.step(before, event)
        said = {Taken: "taken", Ignored: "ignored", Refused: "refused"}[type(answer)]
        after = answer.state if isinstance(answer, Taken) else before
        told = line.get("answer")
        post = CODER.post(line.get("post") or {})
        if (
            (told is None and said == "refused")
            or (told is not None and told != said)
            or any(getattr(after, name) != value for name, value in post if name not in carried)
        ):
            found[key] = number
        states[key] = after
    return found


def spoiled(rng: random.Random, lines: list[Line]) -> list[Line]:
    """Some lines with another answer, event or state, still well written."""
    made = []
    for line in lines:
        line = json.loads(json.dumps(line))
        chance = rng.random()
        if chance < 0.01 and "post" in line:
            line["post"]["backend"] = rng.choice(("r0-a", "r1-a", "", "running", "new"))
        elif chance < 0.02:
            line["answer"] = rng.choice(("taken", "ignored", "refused"))
        elif chance < 0.03:
            line["event"], line["args"] = "ActivityRecorded", {}
        elif chance < 0.2:
            line.pop("answer")
        elif chance < 0.25 and "post" in line:
            line["post"]["work_deadline_ms"] = 77
        made.append(line)
    return made


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("order", ["as written", "spaced", "turned round", "escaped"])
def test_the_engine_agrees_with_stepping_line_by_line(tmp_path: Path, seed: int, order: str) -> None:
    rng = random.Random(seed)
    lines = spoiled(rng, lines_of(play(tmp_path / "log.jsonl", chances(rng, 4 + seed, 600))))
    turned = [dict(reversed(line.items())) for line in lines]
    path = tmp_path / "spoiled.jsonl"
    if order == "as written":
        dump(path, lines, lambda line: json.dumps(line, separators=(",", ":"), ensure_ascii=False))
    else:
        dump(path, turned if order == "turned round" else lines, lambda line: json.dumps(line, ensure_ascii=order == "escaped"))
    read = LogReplay(Beliefs(SPEC))
    read.read([path])
    found = {finding.key: finding.place.number for finding in read.findings}
    expected = first_divergences(lines)
    assert len(expected) < 20, "more than are told"
    assert found == expected
    assert read.lines == len(lines)
    if not expected:
        assert read.judged == len(lines)


def test_spoiling_does_spoil(tmp_path: Path) -> None:
    counts = []
    for seed in range(12):
        rng = random.Random(seed)
        counts.append(len(first_divergences(spoiled(rng, lines_of(play(tmp_path / f"{seed}.jsonl", chances(rng, 4 + seed, 600)))))))
    assert sum(counts) > 40


def test_the_report_of_a_spoiled_log_can_be_written(tmp_path: Path) -> None:
    rng = random.Random(3)
    lines = spoiled(rng, lines_of(play(tmp_path / "log.jsonl", chances(rng, 6, 400))))
    report = replay(SPEC, dump(tmp_path / "spoiled.jsonl", lines))
    assert report.divergences
    assert json.loads(json.dumps(report.json()))["verdicts"][0]["outcome"] == "violated"
    assert "nearest repair" in report.text()
