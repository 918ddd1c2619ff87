"""The shipped server followed moment by moment: which design it is, what it breaks, and what a stream must be to be followed."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from turnproof.checkers import traces
from turnproof.checkers.traces import ReplayReport
from turnproof.checkers.verdict import Outcome
from turnproof.specs.turn_loop import SPEC
from turnproof.traces.line import TraceError

DATA = Path(__file__).parent / "data" / "opencode"
Record = dict[str, Any]
SHIPPED = "opencode_1_18_33"
EVERYONE = {SPEC.machine.name, *(v.machine.name for v in SPEC.variants)}
UPSTREAM = {SHIPPED, "turn_loop_pre", "turn_loop_post"}


def records(name: str) -> list[Record]:
    return [json.loads(line) for line in (DATA / f"{name}.jsonl").read_text(encoding="utf-8").splitlines()]


def replay(tmp_path: Path, lines: Iterable[Record], variant: str | None = None) -> ReplayReport:
    path = tmp_path / "stream.jsonl"
    path.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    return traces.replay(SPEC, path, variant=variant)


def followed_by(report: ReplayReport) -> set[str]:
    return {fit.design for fit in report.fits if fit.sequences == report.counts["sessions"]}


def broken(report: ReplayReport) -> set[str]:
    return {rid for difference in report.differences for rid in difference.requirements}


# ── the recordings ──

DEAD = {"R-LOOP-3", "R-LOOP-4", "R-LOOP-27"}
EXPECTED: dict[str, tuple[set[str], set[str]]] = {
    "stop": (EVERYONE, set()),
    "tool_then_stop": (EVERYONE, set()),
    "http_500_once": (EVERYONE, set()),
    "tool_call_then_dead": (EVERYONE - {"turn_loop_v2"}, set()),
    "dead_once": ({SHIPPED, "turn_loop_post"}, DEAD),
    "dead_empty": ({SHIPPED, "turn_loop_post", "turn_loop_resample_at_once"}, DEAD | {"R-LOOP-9"}),
    "length": (UPSTREAM | {"turn_loop_v2"}, {"R-LOOP-16"}),
    "content_filter": (EVERYONE, set()),
    "http_400": ({SHIPPED}, {"R-LOOP-2"}),
    "abort_midstream": ({SHIPPED}, {"R-LOOP-2"}),
    "abort_during_tool": ({SHIPPED}, {"R-LOOP-2", "R-LOOP-6"}),
}
"""Recording -> which designs follow it to its end, and which requirements the shipped one breaks in it."""


def test_every_recording_is_expected() -> None:
    assert set(EXPECTED) == {path.stem for path in DATA.glob("*.jsonl")} == {Path(path).stem for path in SPEC.recordings}


@pytest.mark.parametrize("name", EXPECTED)
def test_the_shipped_server_is_followed_to_the_end(name: str) -> None:
    report = traces.replay(SPEC, DATA / f"{name}.jsonl", source="opencode")
    designs, requirements = EXPECTED[name]
    assert [v.outcome for v in report.verdicts] == [Outcome.HOLDS, *([Outcome.VIOLATED] if requirements else [])]
    assert {rid for v in report.verdicts for rid in v.requirements} == requirements
    assert report.design == SHIPPED
    assert followed_by(report) == designs
    assert broken(report) == requirements
    assert report.unknown == {}
    assert report.divergences == ()


def test_before_the_fix_the_run_would_have_ended_there() -> None:
    """A dead stream, then ``busy`` and another answer: before 1.18.21 idle came instead."""
    report = traces.replay(SPEC, DATA / "dead_once.jsonl", variant="pre")
    [divergence] = report.divergences
    assert divergence.said.startswith("a new answer begins")
    assert "idle" in divergence.possible
    assert report.verdicts[0].outcome is Outcome.VIOLATED


def test_the_target_waits_where_the_shipped_server_asks_at_once() -> None:
    report = traces.replay(SPEC, DATA / "dead_empty.jsonl", variant="target")
    [divergence] = report.divergences
    assert divergence.said == "the status says busy"
    assert "retry" in divergence.possible
    assert "opencode_1_18_33 follows best" in report.verdicts[0].detail


def test_idle_while_a_call_runs_is_told_in_words() -> None:
    text = traces.replay(SPEC, DATA / "abort_during_tool.jsonl").text()
    assert "idle is published only once no call is open" in text
    assert "a client is told that nothing runs while a call still writes files" in text
    assert "a person cancels" in text
    assert "required:    streaming -> stopping, shows nothing" in text


# ── what must not be followed ──


def status(line: Record, kind: str) -> bool:
    return bool(line["type"] == "session.status" and line["properties"]["status"]["type"] == kind)


def positions(lines: list[Record], kind: str) -> list[int]:
    return [n for n, line in enumerate(lines) if status(line, kind)]


def test_an_idle_too_many_is_found(tmp_path: Path) -> None:
    lines = records("stop")
    [at] = positions(lines, "idle")
    report = replay(tmp_path, [*lines[: at + 2], *lines[at:]])
    assert report.verdicts[0].outcome is Outcome.VIOLATED
    assert followed_by(report) == set()
    assert report.divergences[0].said == "idle is published"


def test_an_idle_that_never_comes_is_told(tmp_path: Path) -> None:
    lines = records("abort_during_tool")
    last = positions(lines, "idle")[-1]
    report = replay(tmp_path, lines[:last])
    assert any("the stream ends in the middle of a run (stopping)" in note for note in report.notes)
    whole = traces.replay(SPEC, DATA / "abort_during_tool.jsonl")
    assert not any("the stream ends" in note for note in whole.notes)


def test_an_answer_after_the_end_is_found(tmp_path: Path) -> None:
    """A run that was over asks the model again although nobody said anything."""
    lines = records("stop")
    [idle] = positions(lines, "idle")
    began = next(
        n for n, line in enumerate(lines) if line["type"] == "message.updated" and line["properties"]["info"]["role"] == "assistant"
    )
    again = json.loads(json.dumps(lines[began]))
    again["properties"]["info"]["id"] = "msg_ffffffffffff0000000000"
    report = replay(tmp_path, [*lines[: idle + 2], again, *lines[idle + 2 :]])
    assert report.verdicts[0].outcome is Outcome.VIOLATED


def test_a_retry_that_did_not_wait_is_found(tmp_path: Path) -> None:
    """The ids carry the time: 40 ms after the status said retry the model was asked again."""
    lines = records("http_500_once")
    [at] = positions(lines, "retry")
    busy = next(n for n in positions(lines, "busy") if n > at)
    began = int(lines[at]["id"][4:13], 16)
    hurried = dict(lines[busy], id=f"evt_{began + 40:09x}001" + lines[busy]["id"][16:])
    report = replay(tmp_path, [*lines[:busy], hurried, *lines[busy + 1 :]])
    assert followed_by(report) == set()
    assert report.divergences[0].said == "the status says busy"
    untold = replay(tmp_path, [{k: v for k, v in line.items() if k != "id"} for line in lines])
    assert followed_by(untold) == EVERYONE, "without times nothing can be said about them"


def test_a_call_that_runs_after_the_stream_is_gone_is_found(tmp_path: Path) -> None:
    lines = records("tool_then_stop")
    ran = next(n for n, x in enumerate(lines) if x["properties"].get("part", {}).get("state", {}).get("status") == "pending")
    idle = positions(lines, "idle")[0]
    late = [json.loads(json.dumps(lines[n]).replace("call_1_0", "call_9_9")) for n in (ran, ran + 1)]
    report = replay(tmp_path, [*lines[: idle + 2], *late, *lines[idle + 2 :]])
    assert report.verdicts[0].outcome is Outcome.VIOLATED
    assert "call_9_9" in report.divergences[0].said


# ── what a stream may be like ──


@pytest.mark.parametrize("name", ["dead_once", "abort_during_tool", "http_500_once"])
def test_a_stream_cut_anywhere_is_followed_as_far_as_it_goes(tmp_path: Path, name: str) -> None:
    lines = records(name)
    for cut in range(1, len(lines), 3):
        report = replay(tmp_path, lines[:cut])
        moments = report.counts["moments"]
        assert SHIPPED in followed_by(report) or not moments
        assert (report.verdicts[0].outcome is Outcome.VIOLATED) == (not moments), report.text()


def test_a_torn_last_line_is_left_out(tmp_path: Path) -> None:
    whole = (DATA / "dead_once.jsonl").read_bytes()
    path = tmp_path / "torn.jsonl"
    path.write_bytes(whole[: whole.index(b'"session.idle"')])
    report = traces.replay(SPEC, path)
    assert report.verdicts[0].outcome is Outcome.HOLDS
    assert any("torn" in note for note in report.notes)


def test_interleaved_sessions_are_followed_apart(tmp_path: Path) -> None:
    one, other = records("dead_once"), records("abort_during_tool")
    mixed = [line for pair in zip(one, other, strict=False) for line in pair] + one[len(other) :] + other[len(one) :]
    report = replay(tmp_path, mixed)
    assert report.counts["sessions"] == 2
    assert followed_by(report) == {SHIPPED}
    assert broken(report) == EXPECTED["dead_once"][1] | EXPECTED["abort_during_tool"][1]


def test_two_runs_of_one_session(tmp_path: Path) -> None:
    first = records("dead_once")
    session = first[0]["properties"]["sessionID"]
    text = "\n".join(json.dumps(line) for line in records("tool_then_stop"))
    second = [json.loads(line) for line in text.replace(records("tool_then_stop")[0]["properties"]["sessionID"], session).splitlines()]
    report = replay(tmp_path, first + second)
    assert report.counts["sessions"] == 1
    assert followed_by(report) == {SHIPPED, "turn_loop_post"}


def test_a_stream_that_begins_in_the_middle_waits_for_a_message(tmp_path: Path) -> None:
    lines = records("dead_once")
    report = replay(tmp_path, [*lines[15:], *records("stop")])
    assert report.counts["sessions"] == 1
    assert any("before its first user message" in note for note in report.notes)
    assert report.verdicts[0].outcome is Outcome.HOLDS


def test_what_nobody_knows_is_counted_and_skipped(tmp_path: Path) -> None:
    lines = records("stop")
    session = lines[0]["properties"]["sessionID"]
    strange: list[Record] = [
        {"id": "x", "type": "session.pondered", "properties": {"sessionID": session}},
        {"id": "x", "type": "weather.updated", "properties": {}},
        {
            "id": "x",
            "type": "message.part.updated",
            "properties": {"part": {"type": "hologram", "sessionID": session, "messageID": "m", "id": "p"}},
        },
        {"id": "x", "type": "session.status", "properties": {"sessionID": session, "status": {"type": "dreaming"}}, "mood": 1},
    ]
    report = replay(tmp_path, [*lines[:8], *strange, *lines[8:]])
    assert report.verdicts[0].outcome is Outcome.HOLDS
    assert report.unknown == {"session.pondered": 1, "weather.updated": 1, 'part "hologram"': 1, 'status "dreaming"': 1}
    assert any("mood (1)" in note for note in report.notes)


def test_a_file_without_a_session_is_no_success(tmp_path: Path) -> None:
    report = replay(tmp_path, [{"type": "server.connected", "properties": {}}])
    assert report.verdicts[0].outcome is Outcome.VIOLATED
    assert "nothing matched" in report.verdicts[0].detail


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{"type": "session.idle", "properties": {}}\n[1]\n', "stream.jsonl:2:1: is no event, expected an object with type and properties"),
        ('{"type": "session.idle", "properties": {}}\n{"type": 3}\n', "stream.jsonl:2:2: is no event"),
        ('{"type": "session.idle", "properties": {}}\n{"type": \n{}\n', "stream.jsonl:2:"),
    ],
)
def test_a_malformed_line_is_named(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "stream.jsonl"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(TraceError, match=message.replace(".", r"\.").replace("[", r"\[")):
        traces.replay(SPEC, path, source="opencode")


def test_what_is_asked_for_must_exist(tmp_path: Path) -> None:
    with pytest.raises(TraceError, match="has no variant 'bost'; did you mean post"):
        traces.replay(SPEC, DATA / "stop.jsonl", variant="bost")
    with pytest.raises(TraceError, match="says itself what it leaves out"):
        traces.replay(SPEC, DATA / "stop.jsonl", allow=("lost",))
    from turnproof.specs.reply_slot import SPEC as OTHER

    with pytest.raises(TraceError, match="which is about turn_loop, not reply_slot"):
        traces.replay(OTHER, DATA / "stop.jsonl")
