"""Files named on the command line: broken inputs get one line, outputs are written whole, and logs and certificates are judged."""

from __future__ import annotations

import bz2
import gzip
import json
import os
from collections.abc import Mapping
from pathlib import Path

import attrs
import pytest
from test_cli_commands import complaint, run

from turnproof.checkers import verify as verify_module
from turnproof.checkers.engines import ENGINES, Plan
from turnproof.checkers.verdict import Outcome
from turnproof.checkers.verify import report
from turnproof.cli.files import Output, readable
from turnproof.cli.misuse import Misuse
from turnproof.specs.reply_operation import SPEC

ROOT = Path(__file__).resolve().parents[1]
RECORDING = ROOT / "tests" / "data" / "openclaw" / "reply-operation.jsonl.gz"

# ── outputs ──


def test_a_file_is_replaced_whole_and_keeps_its_mode(tmp_path: Path) -> None:
    file = tmp_path / "r.json"
    file.write_text("old")
    file.chmod(0o640)
    Output(file, "--json").write("new")
    assert (file.read_text(), file.stat().st_mode & 0o777) == ("new", 0o640)
    assert list(tmp_path.iterdir()) == [file]


def test_a_write_that_fails_leaves_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "r.json"
    file.write_text("old")

    def fail(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", fail)
    with pytest.raises(Misuse, match="no space left on device"):
        Output(file, "--json").write("new")
    assert (file.read_text(), list(tmp_path.iterdir())) == ("old", [file])


def test_a_link_is_followed_and_a_device_is_never_replaced(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path / "real")
    Output(tmp_path / "link", "--json").write("text")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "real").read_text() == "text"
    null = Output(Path(os.devnull), "--json")
    null.check()
    null.write("text")
    assert Path(os.devnull).is_char_device()


NOWHERE = Path("/proc/nowhere")
UNWRITABLE = [[option, NOWHERE] for option in ("--json", "--junit", "--sarif", "--pytest", "--certificate")] + [["--itf", NOWHERE]]


@pytest.mark.skipif(not NOWHERE.parent.is_dir(), reason="there is no /proc here")
@pytest.mark.parametrize("options", UNWRITABLE, ids=[str(option) for option, _ in UNWRITABLE])
def test_what_cannot_be_written_is_said_before_anything_runs(options: list[str | Path], monkeypatch: pytest.MonkeyPatch) -> None:
    def never(*_: object, **__: object) -> None:
        raise AssertionError("it ran")

    monkeypatch.setattr("turnproof.cli.verify.reports", never)
    what = "the directory cannot be made" if options[0] == "--itf" else "no file can be made in the directory /proc"
    assert complaint("verify", "reply_waiter", *options) == f"{options[0]} /proc/nowhere: {what} (no such file or directory)"


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no full device here")
def test_a_report_that_cannot_be_written_in_the_end_costs_no_other(tmp_path: Path) -> None:
    file = tmp_path / "report.xml"
    result = run("verify", "reply_waiter", "--engine", "golden", "--json", "/dev/full", "--junit", file)
    assert (result.exit_code, result.stderr) == (2, "turnproof: --json /dev/full: no space left on device\n")
    assert result.stdout.splitlines()[-1].startswith("holds: 1 machine, ")
    assert "<testsuites" in file.read_text()


# ── inputs ──


def broken_gzip(text: bytes) -> bytes:
    return gzip.compress(text)[:-9]


FILES: Mapping[str, tuple[bytes, str]] = {
    "empty": (b"", "is empty, expected a log (JSON lines)"),
    "blank": (b" \n\n", "holds only white space, expected a log (JSON lines)"),
    "binary": (b'{"a": 1}\n\x00\x01', "is not text (a NUL byte at offset 9), expected a log (JSON lines)"),
    "log.gz": (broken_gzip(b'{"a": 1}\n' * 1000), "the gzip data is broken ("),
    "packed": (gzip.compress(b"")[:4], "the gzip data is broken ("),
    "crc.gz": (gzip.compress(b"{}\n")[:-8] + b"\0" * 8, "the gzip data is broken (CRC check failed"),
    "named.gz": (b"{}\n", "is named .gz but is not gzip data"),
    "hollow.gz": (gzip.compress(b""), "holds only white space"),
    "inner.gz": (gzip.compress(b"\0"), "is not text (a NUL byte at offset 0)"),
    "log.bz2": (bz2.compress(b"{}"), "is packed with bzip2, which is not read; expected a log (JSON lines), plain or gzip"),
}


@pytest.mark.parametrize("name", FILES)
def test_a_broken_file_gets_one_line(name: str, tmp_path: Path) -> None:
    content, said = FILES[name]
    (tmp_path / name).write_bytes(content)
    line = complaint("replay", "reply_operation", tmp_path / name)
    assert line.startswith(f"{tmp_path / name}: ")
    assert said in line
    line = complaint("recheck", tmp_path / name)
    assert line.startswith(f"{tmp_path / name}: ")
    assert content[:2] != b"\x1f\x8b" or "is packed with gzip, which is not read; expected a certificate (JSON), not packed" in line


@pytest.mark.parametrize("command", [["replay", "reply_operation"], ["recheck"]], ids=["replay", "recheck"])
def test_a_file_that_is_none(command: list[str], tmp_path: Path) -> None:
    (tmp_path / "recording.jsonl").write_text("{}")
    assert f"{tmp_path}: is a directory, expected a" in complaint(*command, tmp_path)
    line = complaint(*command, tmp_path / "recordin.jsonl")
    assert "no such file or directory, expected a" in line
    assert line.endswith("; did you mean recording.jsonl?")
    assert "file name too long" in complaint(*command, tmp_path / ("x" * 300))


def test_a_good_file_plain_or_packed(tmp_path: Path) -> None:
    for name, content in (("a", b"{}\n"), ("b.gz", gzip.compress(b"{}\n")), ("c", gzip.compress(b"{}\n"))):
        (tmp_path / name).write_bytes(content)
        assert readable(tmp_path / name, "a log", packed=True) == tmp_path / name


# ── logs and recordings ──


@pytest.fixture
def recording(tmp_path: Path) -> Path:
    """The first sequences of the real recording; the target disagrees with some of them."""
    with gzip.open(RECORDING, "rt") as file:
        lines = [next(file) for _ in range(60)]
    (tmp_path / "some.jsonl").write_text("".join(lines))
    return tmp_path / "some.jsonl"


def test_a_recording_is_judged_by_the_design_that_fits(recording: Path) -> None:
    result = run("replay", "reply_operation", recording)
    assert result.exit_code == 1
    assert "HOLDS the program behaves like openclaw_2026_9_6: " in result.stdout
    assert "VIOLATED the program does what reply_operation requires (R-REPLY-" in result.stdout
    assert run("replay", "reply_operation", recording, "--variant", "shipped", "--from", "openclaw").exit_code == 0


def test_a_recording_that_the_target_forbids_is_violated(recording: Path, tmp_path: Path) -> None:
    result = run("replay", "ReplyOperation", recording, "--variant", "target", "--json", tmp_path / "r.json")
    assert result.exit_code == 1
    assert "VIOLATED" in result.stdout
    document = json.loads((tmp_path / "r.json").read_text())
    assert [v["outcome"] for v in document["verdicts"]] == ["violated"]
    assert json.loads(run("replay", "reply_operation", recording, "--json", "-").stdout)["design"] == "openclaw_2026_9_6"


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--variant", "shiped"], "reply_operation has no variant 'shiped'; did you mean shipped?"),
        (["--from", "opencalw"], "did you mean openclaw?"),
        (["--unobserved", "Complet"], "reply_operation has no event 'Complet'; did you mean Completed?"),
        (["--from", "trace", "--allow", "lots"], "allow 'lots': expected lost, doubled, reordered, unknown"),
        (["--json", "/no/such/place"], "--json /no/such/place: there is no directory /no/such"),
    ],
)
def test_a_wrong_option_of_replay_gets_one_line(recording: Path, options: list[str], said: str) -> None:
    assert said in complaint("replay", "reply_operation", recording, *options)


def test_a_recording_of_another_machine_and_a_line_cut_short(recording: Path) -> None:
    assert "is about reply_operation, not reply_slot" in complaint("replay", "reply_slot", recording)
    with recording.open("a") as file:
        file.write('{"seq":\n')
    assert f"{recording}:61:" in complaint("replay", "reply_operation", recording)


def test_the_recordings_of_a_specification_are_part_of_verify(recording: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(verify_module, "ENGINES", {"traces": ENGINES["traces"]})

    def judged(path: Path, design: str) -> tuple[Outcome, str]:
        found = report(attrs.evolve(SPEC, tests={}, recordings={str(path): design}), Plan())
        (said,) = found.verdicts
        return said.outcome, said.detail

    assert judged(recording, "openclaw_2026_9_6")[0] is Outcome.HOLDS
    assert judged(recording, "reply_operation")[0] is Outcome.VIOLATED
    outcome, detail = judged(recording.parent / "gone.jsonl", "reply_operation")
    assert outcome is Outcome.UNDETERMINED
    assert "gone.jsonl" in detail


# ── certificates ──


@pytest.mark.parametrize(
    "text", ["{}", "[]", "null", '"x"', "1", '{"format": "turnproof.certificate"}', "{", "[" * 5000, '{"format": 1e400}', "NaN", "\ufeff{}"]
)
def test_what_is_no_certificate_gets_one_line(text: str, tmp_path: Path) -> None:
    (tmp_path / "c.json").write_text(text)
    assert complaint("recheck", tmp_path / "c.json").startswith(f"{tmp_path}/c.json: no ")
