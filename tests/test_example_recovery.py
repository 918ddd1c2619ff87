"""The example tells what happens, as the README says, and its log is one that every machine of it follows."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from turnproof.cli import main
from turnproof.examples import recovery

ROOT = Path(__file__).resolve().parents[1]


@pytest.fixture
def told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> str:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", ["recovery"])
    recovery.main()
    return capsys.readouterr().out


def test_a_stall_is_recovered_a_fallback_answers_and_a_command_is_not_run_again(told: str) -> None:
    first, second = told.split("asked: invoice")
    order = [
        "asked: appointment", "ToolRequested(", "RecoveryRequested", "CancelRequested(stuck_recovery)", "Decided(fallback_model, timeout)",
        'says: "You are free at three."', "Completed(False)",
    ]  # fmt: skip
    places = [first.index(word) for word in order]
    assert places == sorted(places)
    assert second.count("AttemptBegan(") == 1
    assert "Decided(continue_normal, tool_or_compaction)" in second
    assert "invoices sent: 1" in second


def test_the_readme_shows_what_the_example_says(told: str) -> None:
    section = (ROOT / "README.md").read_text(encoding="utf-8").split("## A reply that survives a stalled provider")[1].split("\n## ")[0]
    shown = re.search(r"```text\n(.*?)```", section, re.DOTALL)
    assert shown is not None
    lines = shown[1].splitlines()
    assert len(lines) >= 4
    assert [line for line in lines if line not in told.splitlines()] == []


@pytest.mark.parametrize("machine", ["embedded_attempt", "stuck_recovery"])
def test_the_log_is_replayed(machine: str, told: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["replay", machine, "recovery.jsonl"]) == 0
    log = tmp_path / "recovery.jsonl"
    text = log.read_text(encoding="utf-8")
    log.write_text(text.replace('"ending":"timeout:idle"', '"ending":"ok"').replace('"RunEnded"', '"OwnerSettled"'), encoding="utf-8")
    assert main(["replay", machine, "recovery.jsonl"]) != 0


def test_it_runs_as_a_module(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "turnproof.examples.recovery", str(tmp_path / "log.jsonl")], capture_output=True, text=True, check=True
    )
    assert done.stderr == ""
    assert (tmp_path / "log.jsonl").stat().st_size > 10_000
