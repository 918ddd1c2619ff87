"""The command as a process: signals, pipes, terminals, encodings, and tables that do not import."""

from __future__ import annotations

import os
import pty
import re
import select
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from concurrent.futures.process import BrokenProcessPool
from pathlib import Path

import pytest
from cli_toys import children

from turnproof.checkers import jobs
from turnproof.cli import main

ROOT = Path(__file__).resolve().parents[1]
TESTS = ROOT / "tests"
ENVIRONMENT = {k: v for k, v in os.environ.items() if k not in ("NO_COLOR", "FORCE_COLOR", "TERM")}


def turnproof(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run the command to its end."""
    command = [sys.executable, "-m", "turnproof", *arguments]
    return subprocess.run(command, env={**ENVIRONMENT, **environment}, capture_output=True, text=True, check=False, timeout=60)


@pytest.fixture
def slow() -> Iterator[subprocess.Popen[str]]:
    """A run of ``verify`` that never ends, in a process group of its own, with one engine finished."""
    process = subprocess.Popen(
        [sys.executable, str(TESTS / "cli_slow.py"), "verify"],
        env=ENVIRONMENT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def solver(process: subprocess.Popen[str]) -> int:
    """Wait until the slow engine has started its own child; the child's id."""
    assert process.stderr is not None
    for line in process.stderr:
        if line.startswith("child "):
            time.sleep(0.3)
            return int(line.split()[1])
    raise AssertionError("the slow engine never started")


def alive(process: int) -> bool:
    stat = Path(f"/proc/{process}/stat")
    return stat.exists() and stat.read_text().rpartition(")")[2].split()[0] != "Z"


@pytest.mark.skipif(not jobs.can_fork(), reason="engines run in this process here")
@pytest.mark.parametrize(
    ("sent", "whole_group"),
    [(signal.SIGINT, True), (signal.SIGINT, False), (signal.SIGTERM, False)],
    ids=["Ctrl-C", "SIGINT to the process alone", "SIGTERM"],
)
def test_an_interrupt_keeps_what_was_covered_and_leaves_nothing_behind(
    slow: subprocess.Popen[str], sent: signal.Signals, whole_group: bool
) -> None:
    child = solver(slow)
    (os.killpg if whole_group else os.kill)(slow.pid, sent)
    out, error = slow.communicate(timeout=20)
    assert slow.returncode == 3
    assert re.search(r"a locked door refuses to open +holds  explicit exhaustive", out)
    assert "UNDETERMINED the engine symbolic finishes\n  explicit, not finished: interrupted\n" in out
    assert out.splitlines()[-1].startswith("UNDETERMINED: 1 machine, ")
    lines = [line for line in error.splitlines() if "rows" not in line or "interrupted" in line]
    assert len(lines) == 1, error
    assert lines[0].startswith(
        "turnproof: interrupted; front_door: explore, explicit finished, 3 checks, 0 of them not holding; under way: symbolic: rows "
    )
    assert lines[0].endswith("; what was not covered is undetermined")
    assert not alive(child)
    assert children(slow.pid) == []


@pytest.mark.skipif(not jobs.can_fork(), reason="engines run in this process here")
def test_a_worker_that_is_killed_is_named_and_every_other_result_stands(slow: subprocess.Popen[str], tmp_path: Path) -> None:
    child = solver(slow)
    (worker,) = children(slow.pid)
    os.kill(worker, signal.SIGKILL)
    out, error = slow.communicate(timeout=20)
    assert slow.returncode == 2
    assert re.search(r"a locked door refuses to open +holds  explicit exhaustive", out)
    said = [line for line in error.splitlines() if "lost" in line]
    assert said == [
        "turnproof: lost: front_door: engine symbolic: its process was killed (out of memory?) before it had an answer; "
        "every other result stands"
    ]
    assert not alive(child), "what it had started is ended with it"


def test_a_pool_that_loses_a_worker_is_no_mistake_of_ours(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    def killed(*_: object, **__: object) -> None:
        raise BrokenProcessPool("A process in the process pool was terminated abruptly")

    monkeypatch.setattr("turnproof.checkers.mutants.run", killed)
    assert main(["mutants", "reply_waiter"]) == 2
    assert capsys.readouterr().err == "turnproof: lost: a worker process was killed (out of memory?); nothing is concluded\n"


@pytest.mark.parametrize(
    "arguments",
    [["explain", "reply_waiter"], ["--help"], ["step", "reply_operation", *["Completed no"] * 3000]],
    ids=["short", "help", "long"],
)
def test_a_reader_who_leaves_early_is_no_error(arguments: Sequence[str]) -> None:
    process = subprocess.Popen(
        [sys.executable, "-m", "turnproof", *arguments], env=ENVIRONMENT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    assert process.stderr is not None
    process.stdout.close()
    error = process.stderr.read()
    process.stderr.close()
    assert process.wait(timeout=20) in (0, 141)
    assert error == ""


def test_a_closed_or_full_standard_output() -> None:
    command = f"{sys.executable} -m turnproof explain reply_waiter"
    for redirection, status in ((">&-", 0), ("> /dev/full", 2)):
        done = subprocess.run(["sh", "-c", f"{command} {redirection}"], env=ENVIRONMENT, capture_output=True, text=True, check=False)
        assert done.returncode == status, done.stderr
        assert len(done.stderr.splitlines()) <= 1
        assert "Traceback" not in done.stderr


def test_an_encoding_without_our_letters() -> None:
    done = turnproof("step", "reply_operation", "BackendAttached(backend='\N{SNOWMAN}')", PYTHONIOENCODING="ascii", PYTHONUTF8="0")
    assert done.returncode == 0
    assert "BackendAttached(" in done.stdout
    assert done.stderr == ""


def test_the_module_and_the_script_are_one() -> None:
    script = subprocess.run([str(Path(sys.executable).parent / "turnproof"), "--version"], capture_output=True, text=True, check=False)
    assert turnproof("--version").stdout == script.stdout
    assert script.returncode == 0


@pytest.mark.skipif(not jobs.can_fork(), reason="engines run in this process here")
def test_a_terminal_sees_bars_and_gets_its_cursor_back() -> None:
    master, slave = pty.openpty()
    command = [sys.executable, str(TESTS / "cli_slow.py"), "verify"]
    process = subprocess.Popen(command, env={**ENVIRONMENT, "TERM": "xterm"}, stdout=subprocess.PIPE, stderr=slave, start_new_session=True)
    os.close(slave)
    seen, deadline = b"", time.monotonic() + 15
    while time.monotonic() < deadline and b"symbolic: rows" not in seen:
        if select.select([master], [], [], 0.2)[0]:
            seen += os.read(master, 65536)
    process.send_signal(signal.SIGINT)
    process.wait(timeout=20)
    while select.select([master], [], [], 0.2)[0]:
        try:
            seen += os.read(master, 65536)
        except OSError:
            break
    os.close(master)
    assert process.stdout is not None
    process.stdout.close()
    assert b"symbolic: rows" in seen
    assert seen.rfind(b"\x1b[?25h") > seen.rfind(b"\x1b[?25l") >= 0
    assert b"interrupted; front_door" in re.sub(rb"\x1b\[[0-9;?]*[A-Za-z]", b"", seen)


# ── tables that are written wrongly ──


PLANTED = """\
from enum import Enum
from attrs import evolve, frozen
from turnproof.machines.kernel import Machine, Row, symbol

class Phase(Enum):
    OFF = "off"
    ON = "on"

@frozen
class Lamp:
    phase: Phase = Phase.OFF
    hot: bool = False

@frozen
class Pressed: ...

now = symbol(Lamp)

ROWS = (
    Row(Pressed, at=Phase.OFF, to=Phase.ON,
        data=evolve(now, hot=True)),
    Row(Pressed, when=now.hot, to=Phase.OFF),
    Row(Pressed, ignore="it is cold"),
)

MACHINE = Machine(name="lamp", initial=Lamp(), now=now, events=(Pressed,), effects=(), rows=ROWS)
"""

MISTAKES = {
    "no mistake": ("symbol(Lamp)", "symbol(Lamp)", ""),
    "a plain bool for a guard": ("when=now.hot", "when=now.hot is True", "22: Row(Pressed, ...): the guard is the constant False: "),
    "and": ("when=now.hot", "when=now.hot and now.hot", "22: `hot` is a formula, not a value: `and`, `or`, "),
    "two answers": ("to=Phase.OFF)", "to=Phase.OFF, ignore='x')", "22: Row(Pressed, ...) answers with more than one of them: "),
    "no such field": ("hot=True", "hott=True", "20: Lamp has no field 'hott'; did you mean hot?"),
    "no such attribute": ("when=now.hot", "when=now.ho", "22: Lamp has no 'ho'; did you mean hot?"),
    "outside the domain": (
        "hot=True",
        "hot=Phase.ON",
        "20: machine lamp: row Pressed/off: data.hot is <Phase.ON: 'on'>, expected true or false",
    ),
    "no such phase": ("to=Phase.OFF", "to=Phase.OF", "22: Phase has no 'OF'; did you mean OFF?"),
    "no such name": ("Row(Pressed, when", "Row(Presed, when", "22: name 'Presed' is not defined; did you mean Pressed?"),
    "no such word": ("Machine, Row, symbol", "Machine, Row, symbl", "3: cannot import name 'symbl' from 'turnproof.machines.kernel'"),
    "an open bracket": ("events=(Pressed,)", "events=(Pressed,", "26: "),
    "no such module": ("from enum", "from enumeration", "1: No module named 'enumeration'"),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_a_table_written_wrongly_is_told_with_its_line(name: str, tmp_path: Path) -> None:
    before, after, said = MISTAKES[name]
    for folder in ("machines", "specs", "checkers", "src"):
        shutil.copytree(ROOT / folder, tmp_path / folder, symlinks=True, ignore=shutil.ignore_patterns("__pycache__"))
    (tmp_path / "machines" / "lamp.py").write_text(PLANTED.replace(before, after, 1))
    with (tmp_path / "specs" / "catalog.py").open("a") as catalog:
        catalog.write("\nimport turnproof.machines.lamp\n")
    command = [sys.executable, "-m", "turnproof", "list"]
    environment = {**ENVIRONMENT, "PYTHONPATH": str(tmp_path / "src")}
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == (2 if said else 0), done.stderr
    assert (done.stdout == "") == bool(said)
    assert len(done.stderr.splitlines()) == bool(said)
    assert done.stderr.startswith(f"turnproof: machines/lamp.py:{said}" if said else "")
