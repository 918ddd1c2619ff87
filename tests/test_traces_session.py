"""The log of a session beside a server, judged afterwards: several sessions in one file, an altered line, a torn end."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest
from registry_toys import Log, story
from trace_logs import dump, lines_of
from wire_toys import Server

from turnproof.checkers.traces import replay
from turnproof.checkers.verdict import exit_status
from turnproof.machines import session, session_start, session_stop, session_stream
from turnproof.shell import Session, VirtualClock
from turnproof.specs.catalog import specifications
from turnproof.traces.writer import TraceWriter

MACHINES = (session.MACHINE, session_start.MACHINE, session_stop.MACHINE, session_stream.MACHINE)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Two sessions with three turns each, the last one stopped, their steps interleaved."""
    path = tmp_path / "log.jsonl"

    @story
    async def play(clock: VirtualClock, log: Log) -> None:
        servers = (Server(), Server())
        with TraceWriter(path, *MACHINES) as writer:
            talks = [Session(server, key=f"s{n}", trace=writer) for n, server in enumerate(servers)]
            for talk in talks:
                await talk.__aenter__()
            for prompt in ("p1", "p2"):
                turns = [asyncio.create_task(talk.start_turn(prompt, prompt=prompt)) for talk in talks]
                await clock.settle()
                for server in servers:
                    server.begin(prompt)
                    server.end()
                    await clock.settle()
                await asyncio.gather(*turns)
            stopped = [asyncio.create_task(talk.start_turn("p3", prompt="p3")) for talk in talks]
            await clock.settle()
            for server, talk in zip(servers, talks, strict=True):
                server.begin("p3")
                await clock.settle()
                await talk.stop()
                server.end()
            await asyncio.gather(*stopped)
            for talk in talks:
                await talk.aclose()

    play()
    return path


@pytest.mark.parametrize("machine", ["session", "session_start", "session_stop", "session_stream"])
def test_a_log_of_two_sessions_keeps_every_promise(machine: str, path: Path) -> None:
    report = replay(specifications()[machine], path)
    assert exit_status(report.verdicts) == 0, report.text()
    assert len({line["key"] for line in lines_of(path) if line["machine"] == machine}) >= 2


def test_an_altered_line_is_named_with_what_is_wrong(path: Path) -> None:
    lines = lines_of(path)
    at = next(n for n, line in enumerate(lines) if line["machine"] == "session" and line["answer"] == "taken" and n > len(lines) // 2)
    lines[at] = {**lines[at], "answer": "refused"}
    report = replay(specifications()["session"], dump(path, lines))
    assert exit_status(report.verdicts) == 1
    assert f"log.jsonl:{at + 1}: {lines[at]['key']}: {lines[at]['event']}" in report.text(), report.text()


def test_a_torn_last_line_is_told_and_the_rest_is_judged(path: Path) -> None:
    whole = path.read_text(encoding="utf-8")
    path.write_text(whole + json.dumps(lines_of(path)[-1])[:20], encoding="utf-8")
    report = replay(specifications()["session"], path)
    assert exit_status(report.verdicts) == 0, report.text()
    assert "torn" in report.text()
