"""The format of trace lines: written by the real runner, read back, checked against its schema, and clear about what is wrong."""

from __future__ import annotations

import gzip
import json
import random
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import attrs
import jsonschema
import pytest
from reply_on_a_clock import Reply
from trace_logs import RUN, Step, chances, dump, lines_of, play

from turnproof.checkers.traces import replay
from turnproof.checkers.verdict import exit_status
from turnproof.machines.kernel import Taken, fields_of, instances
from turnproof.machines.reply_operation import MACHINE
from turnproof.machines.reply_operation_words import (
    AbortReason,
    AbortRequested,
    BackendAttached,
    CancelReason,
    Completed,
    Phase,
    PhaseEntered,
)
from turnproof.shell import VirtualClock, virtual_time
from turnproof.shell.reply_operation import reply_runner
from turnproof.specs.reply_operation import SPEC
from turnproof.traces import files, line, split
from turnproof.traces import writer as writer_module
from turnproof.traces.coding import Coder
from turnproof.traces.files import in_order
from turnproof.traces.line import FIELDS, REQUIRED, TraceError, schema
from turnproof.traces.writer import TraceWriter


@pytest.fixture(params=["msgspec", "standard library"])
def decoder(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Everything that reads is tried with and without the optional package."""
    if request.param == "standard library":
        monkeypatch.setattr(line, "import_module", _missing)
        monkeypatch.setattr(split, "import_module", _missing)
        monkeypatch.setattr(line, "_decode", line._decoder())
        monkeypatch.setattr(split, "_decode_parts", split._parts_decoder())
        assert split._decode_parts is None
    return str(request.param)


def _missing(name: str) -> object:
    raise ImportError(name)


# ── written and read ──


def test_what_the_runner_writes_is_read_back(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"

    async def main(clock: VirtualClock) -> None:
        first, second = Reply(clock), Reply(clock)
        runners = [reply_runner(reply, key=key, trace=trace, timestamp=clock.loop.time) for key, reply in (("one", first), ("two", second))]
        for runner in runners:
            await runner.send(PhaseEntered(Phase.RUNNING))
        await runners[0].send(BackendAttached("run-1"))
        await runners[0].send(AbortRequested(AbortReason.USER))
        await runners[0].send(AbortRequested(AbortReason.USER))
        await clock.advance(60_000)
        await runners[1].send(Completed(False))
        assert first.cancels == [("run-1", CancelReason.USER_ABORT)]
        for runner in runners:
            await runner.aclose()
        await first.runner.aclose()
        await second.runner.aclose()

    with TraceWriter(path, MACHINE) as trace, virtual_time() as clock:
        clock.run(main(clock))
    lines = lines_of(path)
    assert [(found["key"], found["seq"], found["event"], found["answer"]) for found in lines] == [
        ("one", 1, "PhaseEntered", "taken"),
        ("two", 1, "PhaseEntered", "taken"),
        ("one", 2, "BackendAttached", "taken"),
        ("one", 3, "AbortRequested", "taken"),
        ("one", 4, "AbortRequested", "refused"),
        ("one", 5, "SettleExpired", "taken"),
        ("two", 2, "Completed", "taken"),
    ]
    assert lines[5]["ts"] == 60.0
    assert lines[5]["post"] == {"released": True, "settle_armed": False}
    report = replay(SPEC, path)
    assert exit_status(report.verdicts) == 0
    assert report.counts["lines judged"] == 7
    lines[5]["post"] = {"released": False}
    assert exit_status(replay(SPEC, dump(path, lines)).verdicts) == 1


def test_every_line_satisfies_the_schema(tmp_path: Path) -> None:
    validator = jsonschema.Draft202012Validator(schema())
    for found in lines_of(play(tmp_path / "log.jsonl", chances(random.Random(1), 5, 300))):
        validator.validate(found)
        assert list(found) == [name for name in FIELDS if name in found]
    for wrong in ({}, {"seq": -1, "key": "k", "event": "E"}, {"seq": 1, "key": "k", "event": "E", "answer": "maybe"}):
        assert not validator.is_valid(wrong)


def test_the_schema_and_the_reader_name_the_same_fields() -> None:
    assert tuple(schema()["properties"]) == FIELDS
    assert tuple(schema()["required"]) == REQUIRED


def test_every_event_and_state_survives_writing_and_reading() -> None:
    coder = Coder(MACHINE)
    for cls in MACHINE.events:
        for event in instances(cls, tokens=2, counter=2):
            args = json.loads(json.dumps(coder.write_event(event)))
            assert coder.event(cls.__name__, args) == event


def test_the_state_of_a_line_is_what_the_step_changed(tmp_path: Path) -> None:
    coder, states = Coder(MACHINE), dict[str, Any]()
    for found in lines_of(play(tmp_path / "log.jsonl", chances(random.Random(2), 40, 900))):
        before = states.get(found["key"], MACHINE.initial)
        event: Any = coder.event(found["event"], found["args"])
        answer = MACHINE.step(before, event)
        states[found["key"]] = after = answer.state if isinstance(answer, Taken) else before
        changed = {name for name in fields_of(MACHINE.state) if getattr(before, name) != getattr(after, name)}
        changes = dict(coder.post(found.get("post", {})))
        assert all(getattr(after, name) == value for name, value in changes.items())
        assert changed - {"work_deadline_ms"} == set(changes), "what is only carried would never be compared"


def test_names_of_members_are_read_as_well_as_values() -> None:
    assert Coder(MACHINE).event("PhaseEntered", {"phase": "WAITING_FOR_LANE"}) == PhaseEntered(Phase.WAITING_FOR_LANE)


# ── the writer ──

RUNNING = PhaseEntered(Phase.RUNNING)
STEP = Step(1, 1.0, MACHINE.name, "k", RUNNING, MACHINE.step(MACHINE.initial, RUNNING), MACHINE.initial, MACHINE.initial)


def test_the_writer_holds_lines_back_and_flushes_when_it_is_told_or_full(tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    with TraceWriter(path, MACHINE, flush_s=3_600) as writer:
        writer(STEP)
        assert path.read_bytes() == b""
        writer.flush()
        size = len(path.read_bytes())
        assert size > 0
        for _ in range(2_000):
            writer(STEP)
        assert len(path.read_bytes()) > 1 << 16
    writer.close()
    assert len(path.read_bytes()) == 2_001 * size == size * writer.lines


def test_a_writer_appends_and_flushes_each_line_if_one_asks(tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    play(path, RUN[:3])
    before = path.read_bytes()
    with TraceWriter(path, MACHINE, buffer_bytes=0) as writer:
        writer(
            Step(1, 1.0, MACHINE.name, "k", PhaseEntered(Phase.RUNNING), MACHINE.step(MACHINE.initial, PhaseEntered(Phase.RUNNING)), 0, 0)
        )
        assert path.read_bytes().startswith(before)
        assert path.read_bytes().count(b"\n") == 4


def test_a_writer_flushes_when_the_last_flush_is_long_ago(tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    with TraceWriter(path, MACHINE, flush_s=0) as writer:
        writer(
            Step(1, 1.0, MACHINE.name, "k", PhaseEntered(Phase.RUNNING), MACHINE.step(MACHINE.initial, PhaseEntered(Phase.RUNNING)), 0, 0)
        )
        assert path.read_bytes().endswith(b"\n")


def test_the_writer_says_what_it_cannot_write(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="name the machines"):
        TraceWriter(tmp_path / "log.jsonl")
    with pytest.raises(ValueError, match="neither may be negative"):
        TraceWriter(tmp_path / "log.jsonl", MACHINE, flush_s=-1)
    step = Step(1, 1.0, MACHINE.name, "k", Completed(False), MACHINE.step(MACHINE.initial, Completed(False)), 0, 0)
    with TraceWriter(tmp_path / "log.jsonl", MACHINE) as writer:
        with pytest.raises(ValueError, match="writes reply_operation, not other"):
            writer(Step(1, 1.0, "other", "k", step.event, step.answer, 0, 0))
        with pytest.raises(ValueError, match="is no time"):
            writer(Step(1, float("nan"), MACHINE.name, "k", step.event, step.answer, 0, 0))
    assert (tmp_path / "log.jsonl").read_bytes() == b""


def test_the_writer_remembers_no_more_than_it_may(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(writer_module, "REMEMBERED", 10)
    with TraceWriter(tmp_path / "log.jsonl", MACHINE) as writer:
        for number in range(100):
            writer(attrs.evolve(STEP, key=f"k{number}", event=BackendAttached(f"b{number}")))
        assert max(len(writer._keys), len(writer._events)) <= 10
    assert len({line["args"]["backend"] for line in lines_of(tmp_path / "log.jsonl")}) == 100


# ── files ──

FORMS: Mapping[str, Callable[[bytes], bytes]] = {
    "plain": lambda data: data,
    "gzip": gzip.compress,
    "gzip in two members": lambda data: gzip.compress(data[: data.index(b"\n") + 1]) + gzip.compress(data[data.index(b"\n") + 1 :]),
    "a byte order mark": lambda data: b"\xef\xbb\xbf" + data,
    "line feeds of Windows": lambda data: data.replace(b"\n", b"\r\n"),
    "blank lines": lambda data: b"\n" + data.replace(b"\n", b"\n  \n"),
    "no last line feed": lambda data: data[:-1],
}


@pytest.mark.parametrize("form", FORMS)
def test_a_log_may_come_in_many_forms(form: str, tmp_path: Path, decoder: str) -> None:
    path = play(tmp_path / "log", RUN)
    path.write_bytes(FORMS[form](path.read_bytes()))
    report = replay(SPEC, path)
    assert exit_status(report.verdicts) == 0
    assert report.counts["lines"] == 9
    assert report.notes == ()


def test_the_writer_writes_gzip_if_the_name_says_so(tmp_path: Path) -> None:
    path = play(tmp_path / "log.jsonl.gz", RUN)
    assert path.read_bytes().startswith(b"\x1f\x8b")
    assert exit_status(replay(SPEC, path).verdicts) == 0


def test_a_rotated_log_is_read_oldest_first(tmp_path: Path) -> None:
    lines = play(tmp_path / "log.jsonl", RUN).read_bytes().splitlines(keepends=True)
    newest, middle, oldest = tmp_path / "log.jsonl", tmp_path / "log.jsonl.1", tmp_path / "log.jsonl.2.gz"
    oldest.write_bytes(gzip.compress(b"".join(lines[:3])))
    middle.write_bytes(b"".join(lines[3:5]))
    newest.write_bytes(b"".join(lines[5:]))
    given = (newest, middle, oldest)
    assert in_order(given) == (oldest, middle, newest)
    report = replay(SPEC, given)
    assert exit_status(report.verdicts) == 0
    assert report.counts["lines"] == 9
    missing = replay(SPEC, (newest, oldest))
    assert exit_status(missing.verdicts) == 1
    assert f"{newest}:2: r1: lines 3 to 4 of r1 are missing before line 5" in missing.text()


def test_files_without_times_stay_in_the_order_given(tmp_path: Path) -> None:
    lines = [{name: value for name, value in found.items() if name != "ts"} for found in lines_of(play(tmp_path / "log", RUN))]
    first, second = dump(tmp_path / "b", lines[:4]), dump(tmp_path / "a", lines[4:])
    assert exit_status(replay(SPEC, (first, second)).verdicts) == 0


def test_a_torn_last_line_is_left_out_and_said(tmp_path: Path, decoder: str) -> None:
    path = play(tmp_path / "log.jsonl", RUN)
    path.write_bytes(path.read_bytes()[:-20])
    report = replay(SPEC, path)
    assert exit_status(report.verdicts) == 0
    assert report.counts["lines"] == 8
    assert f"{path}:9: the last line is torn and was left out" in report.text()


def test_a_log_longer_than_one_read_is_read_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = play(tmp_path / "log.jsonl", chances(random.Random(5), 9, 400))
    for size in (1, 100, 5_000):
        monkeypatch.setattr(files, "BLOCK", size)
        report = replay(SPEC, path)
        assert (exit_status(report.verdicts), report.counts["lines"]) == (0, 400)


# ── what is wrong, and where ──

GOOD = b'{"seq":1,"ts":1.0,"key":"r","event":"PhaseEntered","args":{"phase":"running"}}\n'


def second(**fields: object) -> bytes:
    """A good first line, and a second one with other fields; None takes a field out."""
    whole = {"seq": 2, "ts": 1.0, "key": "r", "event": "PhaseEntered", "args": {"phase": "running"}, **fields}
    return GOOD + json.dumps({name: value for name, value in whole.items() if value is not None}, separators=(",", ":")).encode() + b"\n"


MALFORMED: Mapping[str, tuple[bytes, str]] = {
    "nothing": (b"", "log: is empty, expected one JSON object a line"),
    "white space": (b" \n\n  ", "log: is empty"),
    "no JSON": (b"hello\n", "log:1:1: is no JSON object: expecting value"),
    "broken JSON": (GOOD + b'{"seq":2,"key":"r","event":,}\n', "log:2:28: is no JSON object: expecting value"),
    "two objects": (GOOD + GOOD[:-1] + b" x\n", "log:2:80: is no JSON object: extra data"),
    "half an object": (GOOD + b'{"seq":2,"key":\n' + GOOD, "log:2:16: is no JSON object: the line ends early"),
    "a list": (b"[1, 2]\n", "log:1:1: is [1, 2], expected a JSON object with seq, key, event"),
    "a number": (GOOD + b"5\n", "log:2:1: is 5, expected a JSON object"),
    "no number": (GOOD + b'{"seq":2,"ts":NaN,"key":"r","event":"Evicted"}\n', "is no JSON object"),
    "deep": (GOOD + b'{"seq":2,"key":"r","event":"Evicted","args":' + b"[" * 100_000 + b"\n", "log:2:"),
    "not UTF-8": (GOOD + GOOD.replace(b"running", b"runn\xffng"), "log:2:73: is not UTF-8 (byte 0xff)"),
    "no seq": (second(seq=None), "log:2:1: has no 'seq', expected a JSON object with seq, key, event"),
    "a misspelt field": (second(key=None, keey="r"), "log:2:1: has no 'key' (it has 'keey')"),
    "seq below 0": (second(seq=-1), "log:2:2: seq is -1, expected an integer of 0 or more"),
    "seq as a text": (second(seq="2"), 'log:2:2: seq is "2", expected an integer of 0 or more'),
    "seq as a bool": (second(seq=True), "log:2:2: seq is true"),
    "seq as a fraction": (second(seq=2.5), "log:2:2: seq is 2.5"),
    "ts as a text": (second(ts="now"), 'log:2:10: ts is "now", expected seconds as a number'),
    "ts as a text, the rest met before": (
        GOOD + b"".join(GOOD.replace(b'"seq":1', b'"seq":%d' % n) for n in (2, 3)) + GOOD.replace(b'1,"ts":1.0', b'4,"ts":"now"'),
        'log:4:10: ts is "now", expected seconds as a number',
    ),
    "key as a number": (second(key=5), "log:2:19: key is 5, expected a text that names the instance"),
    "event as a number": (second(event=5), "log:2:29: event is 5, expected the name of an event"),
    "args as a list": (second(args=[1]), "log:2:52: args is [1], expected an object with the event's fields"),
    "post as a list": (second(post=[1]), "log:2:79: post is [1], expected an object with fields of the state"),
    "another answer": (second(answer="maybe"), 'log:2:79: answer is "maybe", expected one of taken, ignored, refused'),
    "another version": (second(version=2), "log:2:79: version is 2, expected 1"),
    "a field the event lacks": (second(args={"phaze": "running"}), "log:2:60: PhaseEntered has no field 'phaze'; did you mean phase?"),
    "a field too few": (second(args={}), "log:2:52: PhaseEntered needs args.phase: one of queued, "),
    "another member": (second(args={"phase": "runing"}), 'log:2:60: args.phase is "runing", expected one of queued, '),
    "a member that is none": (second(args={"phase": {}}), "log:2:60: args.phase is {}, expected one of"),
    "a bool that is none": (second(event="ConsentReported", args={"consents": "yes"}), 'args.consents is "yes", expected true or false'),
    "an identity that is none": (second(event="BackendAttached", args={"backend": 7}), "args.backend is 7, expected a text"),
    "a field the state lacks": (second(post={"fase": 1}), "log:2:87: the state has no field 'fase'; did you mean phase?"),
    "another value in the state": (second(post={"owner_barriers": -1}), "log:2:87: post.owner_barriers is -1, expected an integer of 0"),
    "gzip cut short": (gzip.compress(GOOD * 50)[:-12], "the gzip data ends early"),
    "gzip that is none": (b"\x1f\x8b\x08" + b"x" * 50, "the gzip data "),
    "gzip with a wrong sum": (gzip.compress(GOOD)[:-8] + bytes(8), "the gzip data is broken (CRC check failed"),
}


@pytest.mark.parametrize("what", MALFORMED)
def test_a_malformed_log_is_one_clear_line(what: str, tmp_path: Path, decoder: str) -> None:
    data, said = MALFORMED[what]
    path = tmp_path / "log"
    path.write_bytes(data)
    with pytest.raises(TraceError) as error:
        replay(SPEC, path)
    assert said in str(error.value)
    assert str(error.value).startswith(str(path))
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("fields", [{"args": {"phase": "runing"}}, {"seq": -1}, {"answer": "maybe"}])
def test_a_malformed_line_is_found_in_any_order_of_fields(fields: dict[str, object], tmp_path: Path, decoder: str) -> None:
    whole = {"version": 1, "event": "PhaseEntered", "args": {"phase": "running"}, "key": "r", "seq": 1}
    path = dump(tmp_path / "log", [whole, {**whole, "seq": 2, **fields}])
    with pytest.raises(TraceError, match=r"log:2:\d+: "):
        replay(SPEC, path)


def test_a_file_without_line_feeds_is_not_read_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "LONGEST", 1 << 20)
    path = tmp_path / "log"
    path.write_bytes(b"x" * ((1 << 20) + 1))
    with pytest.raises(TraceError, match=r"log:1: the line is longer than 1 MiB"):
        replay(SPEC, path)


def test_no_file_and_a_directory_are_clear_errors(tmp_path: Path) -> None:
    with pytest.raises(TraceError, match="nowhere: no such file or directory, expected a log"):
        replay(SPEC, tmp_path / "nowhere")
    with pytest.raises(TraceError, match="is a directory, expected a log"):
        replay(SPEC, tmp_path)
    with pytest.raises(TraceError, match="no file is given"):
        replay(SPEC, ())


# ── what costs nothing ──


def growing(count: int) -> Iterator[tuple[str, object]]:
    """Replies one after the other, each with handles of its own."""
    for number in range(count):
        key, handle = f"r{number}", f"run-{number}"
        yield key, PhaseEntered(Phase.RUNNING)
        yield key, BackendAttached(handle)
        yield key, AbortRequested(AbortReason.USER)
        yield key, Completed(False)


def test_memory_does_not_grow_with_the_log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from turnproof.checkers.traces import log
    from turnproof.checkers.traces.beliefs import Beliefs

    monkeypatch.setattr(log, "RECENT", 50)
    beliefs = Beliefs(SPEC)
    read = log.LogReplay(beliefs)
    read.read([play(tmp_path / "log.jsonl", growing(1_000))])
    assert (read.lines, read.judged, read.begun) == (4_000, 4_000, 1_000)
    assert len(read.instances) == len(read._by_written) == 50
    assert len(beliefs._nodes) == 5
    assert sum(len(node) for node in beliefs._nodes.values()) <= 6
