"""The log that two sessions wrote: the machines follow it, and an altered line is named with the promise it breaks."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from wire_toys import Server

from turnproof.checkers.traces import replay
from turnproof.checkers.verdict import exit_status
from turnproof.machines import session, session_start, session_stop, session_stream
from turnproof.machines.session_stream import What
from turnproof.shell import run_virtual
from turnproof.shell.session import Session
from turnproof.specs.catalog import specifications
from turnproof.traces.writer import TraceWriter

MACHINES: tuple[Any, ...] = (session.MACHINE, session_start.MACHINE, session_stop.MACHINE, session_stream.MACHINE)


async def an_hour(writer: TraceWriter) -> None:
    """Two sessions side by side: turns that complete, one that is stopped, a drop and a restart of the stream."""
    servers = Server(), Server()
    async with Session(servers[0], key="left", trace=writer) as left, Session(servers[1], key="right", trace=writer) as right:
        for number in range(3):
            turns = [asyncio.create_task(talk.start_turn(f"p{number}", prompt=f"p{number}")) for talk in (left, right)]
            await asyncio.sleep(0.5)
            for server in servers:
                server.begin(f"p{number}")
            await asyncio.sleep(1)
            if number == 1:
                servers[0].drop()
                await asyncio.sleep(2)
            if number == 2:
                await right.stop()
                servers[1].end(What.INTERRUPTED)
            for server in servers[: 3 - number]:
                server.end()
            await asyncio.gather(*turns)
    await asyncio.sleep(60)


@pytest.fixture
def log(tmp_path: Path) -> Path:
    path = tmp_path / "sessions.jsonl"
    with TraceWriter(path, *MACHINES) as writer:
        run_virtual(an_hour(writer))
    return path


def test_every_machine_follows_the_log_of_two_sessions(log: Path) -> None:
    keys = {json.loads(line).get("key") for line in log.read_text().splitlines()}
    assert {"left", "right"} <= keys
    for machine in MACHINES:
        report = replay(specifications()[machine.name], log)
        assert exit_status(report.verdicts) == 0, report.text()


def test_an_end_that_ends_a_turn_it_did_not_serve_is_named(log: Path) -> None:
    lines = log.read_text().splitlines()
    (number,) = (n for n, line in enumerate(lines) if is_line(line, "left", 5))
    served = json.loads(lines[number])
    del served["post"]
    lines[number] = json.dumps(served | {"args": {"item": "another"}, "answer": "ignored"})
    log.write_text("\n".join(lines) + "\n")
    (ended,) = (n for n, line in enumerate(lines, 1) if is_line(line, "left", 6))
    report = replay(specifications()["session"], log)
    text = report.text()
    assert exit_status(report.verdicts) == 1
    assert f"{log}:{ended}: left: ExecutionEnded(how=succeeded) taken" in text
    assert "expected ItemDelivered, " in text
    assert "the variant session_any_end can do what is told above" in text


def is_line(line: str, key: str, seq: int) -> bool:
    """Whether it is that line of the session of that name."""
    said = json.loads(line)
    return (said["machine"], said["key"], said["seq"]) == ("session", key, seq)


def test_a_torn_last_line_costs_nothing_but_itself(log: Path) -> None:
    log.write_text(log.read_text()[:-20])
    report = replay(specifications()["session"], log)
    assert exit_status(report.verdicts) == 0
    assert "the last line is torn and was left out" in report.text()
