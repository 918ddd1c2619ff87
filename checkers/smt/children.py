"""Solvers run in child processes with a hard limit of time and memory: one that hangs or grows is ended, and its task has no answer.

A task is plain data; the child answers with one JSON line an answer, so what it found before its end is not lost. The child is a
fresh interpreter, never a fork: nothing of this process, no thread and no solver, is in it.
"""

from __future__ import annotations

import json
import os
import selectors
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from typing import IO, Any

import attrs

MEMORY_MB = 4_096
"""Address space a child may take; more than ten times what the largest proof of the project needs."""

Answer = Any
"""One JSON value."""


@attrs.frozen
class Ended:
    """How a task ended: its answers so far, and why there are no more. ``why`` is empty if the child was through."""

    answers: tuple[Answer, ...]
    why: str
    seconds: float


@attrs.define(eq=False)
class _Running:
    process: subprocess.Popen[bytes]
    deadline: float
    started: float
    errors: IO[bytes]
    answers: list[Answer] = attrs.field(factory=list)
    rest: bytes = b""
    ended: float = 0.0
    why: str | None = None


def run(
    tasks: Sequence[Mapping[str, object]], *, seconds: float, hear: Callable[[int, Answer], None] = lambda task, answer: None
) -> list[Ended]:
    """Run all tasks at once, each in a child of its own, each for ``seconds`` at most; ``hear`` gets every answer as it comes."""
    running: list[_Running] = []
    try:
        with selectors.DefaultSelector() as selector:
            for number, task in enumerate(tasks):
                child = _start(task, seconds)
                running.append(child)
                assert child.process.stdout is not None
                os.set_blocking(child.process.stdout.fileno(), False)
                selector.register(child.process.stdout, selectors.EVENT_READ, number)
            while selector.get_map():
                _wait(selector, running, hear)
        return [Ended(tuple(c.answers), _why(c), c.ended - c.started) for c in running]
    finally:
        for child in running:
            if child.process.poll() is None:
                child.process.kill()
            child.process.wait()
            if child.process.stdout is not None:
                child.process.stdout.close()
            child.errors.close()


def _start(task: Mapping[str, object], seconds: float) -> _Running:
    # A file, not a pipe: a child that dies before it reads cannot block us.
    with tempfile.TemporaryFile() as text:
        text.write(json.dumps({"memory_mb": MEMORY_MB, **task}).encode())
        text.seek(0)
        errors = tempfile.TemporaryFile()  # noqa: SIM115 - closed in run(), after the child has ended
        # -P: a file of the working directory that is called like a module must not be taken for it.
        command = [sys.executable, "-P", "-m", "turnproof.checkers.smt.worker"]
        process = subprocess.Popen(command, stdin=text, stdout=subprocess.PIPE, stderr=errors)
    now = time.monotonic()
    return _Running(process, now + seconds, now, errors)


def _wait(selector: selectors.BaseSelector, running: list[_Running], hear: Callable[[int, Answer], None]) -> None:
    open_tasks = [key.data for key in selector.get_map().values()]
    patience = max(0.0, min(running[n].deadline for n in open_tasks) - time.monotonic())
    for key, _ in selector.select(patience):
        child = running[key.data]
        data = os.read(key.fd, 1 << 16)
        lines = (child.rest + data).split(b"\n")
        child.rest = lines.pop()
        for line in lines:
            answer = json.loads(line)
            child.answers.append(answer)
            hear(key.data, answer)
        if not data:
            selector.unregister(key.fileobj)
            child.process.wait()
            child.ended = time.monotonic()
    for number in [key.data for key in selector.get_map().values()]:
        child = running[number]
        if time.monotonic() >= child.deadline:
            child.why = f"time: ended after {child.deadline - child.started:g} s"
            child.ended = time.monotonic()
            child.process.kill()
            selector.unregister(child.process.stdout)


def _why(child: _Running) -> str:
    if child.why is not None:
        return child.why
    status = child.process.wait()
    if status == 0:
        return ""
    child.errors.seek(0)
    said = child.errors.read().decode(errors="replace").strip().splitlines()
    last = said[-1] if said else ""
    if "MemoryError" in last or "out of memory" in last or "bad_alloc" in last or status == -9:
        return f"memory: more than {MEMORY_MB:,} MB"
    return f"the solver's process ended with status {status}" + (f": {last}" if last else "")
