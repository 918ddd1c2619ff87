"""``turnproof replay`` as an operator meets it: a pipe is a log too, and the last line says which event broke what."""

from __future__ import annotations

import gzip
import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from trace_logs import dump

from turnproof.checkers.traces import replay
from turnproof.cli.commands import root
from turnproof.specs.reply_operation import SPEC

RECORDING = Path(__file__).parent / "data" / "openclaw" / "reply-operation.jsonl.gz"
EVENTS = (
    ("PhaseEntered", {"phase": "running"}, None),
    ("BackendAttached", {"backend": "b"}, None),
    ("AbortRequested", {"reason": "user"}, "taken"),
    ("AbortRequested", {"reason": "user"}, "taken"),
)
WRONG = [
    {"seq": n, "ts": float(n), "key": "chat-7", "event": event, "args": args} | ({"answer": said} if said else {})
    for n, (event, args, said) in enumerate(EVENTS, 1)
]


def turnproof(*arguments: str, given: bytes = b"") -> Result:
    return CliRunner().invoke(root, ["replay", "reply_operation", *arguments], input=given)


def written(lines: list[dict[str, object]]) -> bytes:
    return "".join(json.dumps(line) + "\n" for line in lines).encode()


# ── pipes ──


@pytest.mark.parametrize("pack", [bytes, gzip.compress], ids=["plain", "gzip"])
def test_standard_input_is_a_log_packed_or_not(pack: Callable[[bytes], bytes]) -> None:
    done = turnproof("-", given=pack(written(WRONG[:3])))
    assert done.exit_code == 0, done.stderr
    assert done.stdout.startswith("reply_operation: <stdin> (trace lines)\n")
    wrong = turnproof("-", given=pack(written(WRONG)))
    assert wrong.exit_code == 1
    assert "\n<stdin>:4: chat-7: AbortRequested(reason=user) taken\n" in wrong.stdout
    assert "turnproof-" not in wrong.stdout


def test_a_pipe_named_as_a_file_is_a_log_too() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "turnproof", "replay", "reply_operation", "/dev/stdin"],
        input=written(WRONG),
        capture_output=True,
        check=False,
    )
    assert done.returncode == 1, done.stderr
    assert b"\n/dev/stdin:4: chat-7: AbortRequested(reason=user) taken\n" in done.stdout


def test_json_names_standard_input_too() -> None:
    document = json.loads(turnproof("-", "--json", "-", given=written(WRONG)).stdout)
    assert document["files"] == ["<stdin>"]
    assert document["divergences"][0]["place"] == "<stdin>:4"


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "<stdin>: is empty, expected a log (JSON lines)"),
        (b"hello\n", "<stdin>:1:1: is no JSON object: expecting value"),
        (b"\0", "<stdin>: is not text (a NUL byte at offset 0), expected a log (JSON lines)"),
        (written(WRONG[:1]) + b"{}\n", "<stdin>:2:1: has no 'seq', expected a JSON object with seq, key, event"),
    ],
)
def test_what_is_wrong_with_standard_input_is_one_line(data: bytes, message: str) -> None:
    done = turnproof("-", given=data)
    assert (done.exit_code, done.stderr, done.stdout) == (2, f"turnproof: {message}\n", "")


def test_standard_input_is_given_once() -> None:
    assert turnproof("-", "-").stderr == "turnproof: -: standard input is given twice\n"


# ── the last line ──


def test_the_verdict_names_the_event_the_reason_and_the_promise(tmp_path: Path) -> None:
    report = replay(SPEC, dump(tmp_path / "wrong.jsonl", WRONG))
    *_, last = report.text().splitlines()
    place = tmp_path / "wrong.jsonl"
    assert last == (
        "VIOLATED the log follows reply_operation (R-REPLY-10, R-REPLY-8, R-REPLY-20): 3 of 4 lines followed, 1 instance; "
        f"1 line that cannot be; the first, {place}:4: chat-7: AbortRequested(reason=user) taken: it is refused there: "
        'the reply has its result; the log says taken; it breaks "what is aborted or recovered is abortable" (R-REPLY-10)'
    )
    assert "a reply with a result refuses every abort and recovery" in report.divergences[0].promises[1]


def test_a_promise_is_blamed_only_where_the_line_says_how_the_event_was_answered(tmp_path: Path) -> None:
    silent = [{name: value for name, value in line.items() if name != "answer"} for line in WRONG]
    report = replay(SPEC, dump(tmp_path / "silent.jsonl", silent))
    assert report.divergences[0].promises == ()
    assert report.verdicts[0].requirements == ()


# ── arrows ──


def test_a_design_is_pointed_at_as_what_it_is(tmp_path: Path) -> None:
    path = tmp_path / "some.jsonl"
    with gzip.open(RECORDING, "rt") as file:
        path.write_text("".join(next(file) for _ in range(60)))
    free, target = (replay(SPEC, path, variant=variant).text() for variant in (None, "target"))
    marks = [{line.split()[0]: line.partition("<- ")[2] for line in text.splitlines() if "calls" in line and "sequences," in line
              and line.startswith("  ")} for text in (free, target)]  # fmt: skip
    assert marks[0]["openclaw_2026_9_6"] == "behaves like this"
    assert marks[0]["reply_operation"] == ""
    assert marks[1]["openclaw_2026_9_6"] == "fits best"
    assert marks[1]["reply_operation"] == "asked for, and does not fit"
    assert "the first, " in target.splitlines()[-1]
