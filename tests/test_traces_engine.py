"""The engine that remembers texts, names and nodes finds exactly what stepping each line by itself finds."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from trace_logs import Line, chances, dump, handles, lines_of, play

from turnproof.checkers.traces import follow, log, replay
from turnproof.checkers.traces.beliefs import Beliefs
from turnproof.checkers.traces.log import LogReplay
from turnproof.checkers.verdict import exit_status
from turnproof.machines.kernel import Ignored, Kind, Refused, Taken, fields_of
from turnproof.machines.reply_operation import MACHINE
from turnproof.machines.reply_operation_words import ActivityRecorded, BackendAttached, BackendDetached, Phase, PhaseEntered
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


@pytest.fixture(params=["all is remembered", "little is remembered"])
def memory(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    if request.param == "little is remembered":
        monkeypatch.setattr(follow, "REMEMBERED", 40)
        monkeypatch.setattr(follow, "NODES", 10)
    return str(request.param)


def tight(line: Mapping[str, Any]) -> str:
    return json.dumps(line, separators=(",", ":"), ensure_ascii=False)


def reordered(line: Mapping[str, Any], *first: str) -> Line:
    return {name: line[name] for name in (*first, *line) if name in line}


ORDERS: Mapping[str, Callable[[Mapping[str, Any]], str]] = {
    "as written": tight,
    "spaced": lambda line: json.dumps(line, ensure_ascii=False),
    "escaped": json.dumps,
    "turned round": lambda line: json.dumps({name: line[name] for name in reversed(list(line))}),
    "the event before the key": lambda line: tight(reordered(line, "seq", "ts", "event", "key")),
    "the key first": lambda line: tight(reordered(line, "key", "seq")),
}


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("sort", ["whatever may happen", "handles that never recur"])
def test_the_engine_agrees_with_stepping_line_by_line(
    tmp_path: Path, seed: int, order: str, sort: str, memory: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(log, "DETAILED", 1_000)
    rng = random.Random(seed)
    events = chances(rng, 4 + seed, 600) if sort == "whatever may happen" else handles(rng, 600)
    lines = spoiled(rng, lines_of(play(tmp_path / "log.jsonl", events)))
    read = LogReplay(Beliefs(SPEC))
    read.read([dump(tmp_path / "spoiled.jsonl", lines, ORDERS[order])])
    expected = first_divergences(lines)
    assert {finding.key: finding.place.number for finding in read.findings} == expected
    assert read.lines == len(lines)
    if not expected:
        assert read.judged == len(lines)
    if memory == "little is remembered":
        assert read.beliefs.size <= 11


def test_an_identity_that_is_called_like_a_word_is_not_taken_for_it(tmp_path: Path) -> None:
    """Two lines that differ in one text alone, which is an identity and a phase at once."""
    lines = lines_of(play(tmp_path / "log.jsonl", [("a", PhaseEntered(Phase.RUNNING)), ("a", BackendAttached("running"))]))
    lines[1]["post"]["phase"] = "running"
    other = json.loads(json.dumps(lines).replace('"a"', '"b"'))
    other[1]["args"]["backend"] = other[1]["post"]["backend"] = other[1]["post"]["phase"] = "queued"
    report = replay(SPEC, dump(tmp_path / "both.jsonl", [*lines, *other], tight))
    assert [told.place for told in report.divergences] == [f"{tmp_path / 'both.jsonl'}:4"]


def test_a_word_is_not_replaced_because_an_identity_is_called_so(tmp_path: Path) -> None:
    events: list[tuple[str, object]] = [("x", PhaseEntered(Phase.RUNNING)), ("x", BackendAttached("plain"))]
    for key, phase in (("a", Phase.FLUSHING), ("b", Phase.COMPACTING)):
        own = [PhaseEntered(Phase.RUNNING), BackendAttached(phase.value), PhaseEntered(phase), ActivityRecorded()]
        events += [(key, event) for event in own]
    lines = lines_of(play(tmp_path / "log.jsonl", events))
    lines[-1]["post"] = {"phase": Phase.COMPACTING.value}
    report = replay(SPEC, dump(tmp_path / "told.jsonl", lines, tight))
    assert exit_status(report.verdicts) == 0, report.text()


def test_an_identity_that_is_written_with_escapes_is_the_same_one(tmp_path: Path) -> None:
    events = [PhaseEntered(Phase.RUNNING), BackendAttached("run-1"), BackendDetached("run-1")]
    lines = [tight(line) for line in lines_of(play(tmp_path / "log.jsonl", [("a", event) for event in events]))]
    lines[2] = lines[2].replace("run-1", "run\\u002d1")
    other = [line.replace('"a"', '"b"').replace("run-1", "run-2") for line in lines]
    path = tmp_path / "both.jsonl"
    path.write_text("\n".join((*lines, *other)) + "\n", encoding="utf-8")
    assert [told.place for told in replay(SPEC, path).divergences] == [f"{path}:6"]


def test_spoiling_does_spoil(tmp_path: Path) -> None:
    for sort in ("whatever", "handles"):
        counts = []
        for seed in range(4):
            rng = random.Random(seed)
            events = chances(rng, 4 + seed, 600) if sort == "whatever" else handles(rng, 600)
            counts.append(len(first_divergences(spoiled(rng, lines_of(play(tmp_path / f"{sort}{seed}.jsonl", events))))))
        assert sum(counts) > 15


def test_the_report_of_a_spoiled_log_can_be_written(tmp_path: Path) -> None:
    rng = random.Random(3)
    lines = spoiled(rng, lines_of(play(tmp_path / "log.jsonl", chances(rng, 6, 400))))
    report = replay(SPEC, dump(tmp_path / "spoiled.jsonl", lines))
    assert report.divergences
    assert json.loads(json.dumps(report.json()))["verdicts"][0]["outcome"] == "violated"
    assert "nearest repair" in report.text()
