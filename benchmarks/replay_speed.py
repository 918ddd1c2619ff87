"""``python -m benchmarks.replay_speed [LINES]``: a replay beside a bare ``msgspec`` decode loop over the same log, in one run.

The log is what the writer writes of many interleaved replies, each with a handle that never recurs; now and then something other than
the usual happens. The rounds alternate, and the best of each is told: the machine is noisy, and noise only adds.
"""

from __future__ import annotations

import random
import resource
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import attrs
import msgspec

from turnproof.checkers.traces.beliefs import Beliefs
from turnproof.checkers.traces.log import LogReplay
from turnproof.checkers.traces.monitor import Monitor
from turnproof.machines.kernel import Taken
from turnproof.machines.reply_operation import MACHINE
from turnproof.machines.reply_operation_words import (
    AbortReason,
    AbortRequested,
    ActivityRecorded,
    BackendAttached,
    BackendDetached,
    Completed,
    ConsentReported,
    ExpiryReason,
    ExpiryRequested,
    Failed,
    FailureCode,
    LaneWaitBegan,
    LaneWaitEnded,
    OutcomeCommitted,
    Phase,
    PhaseEntered,
    RecoveryRequested,
)
from turnproof.specs.reply_operation import SPEC
from turnproof.traces.writer import TraceWriter

LIVE = 100
ROUNDS = 4
LINES, FEW = 1_000_000, 20_000
"""Lines that are replayed; steps that are written and watched."""
BAR = 0.5
"""The least speed of a replay, of that of a bare decode loop."""
MEMORY_MAX = 64 << 20
"""Bytes by which the memory may grow, whatever the length of the log."""
UNUSUAL = 0.03
RARE = (
    AbortRequested(AbortReason.USER),
    ExpiryRequested(ExpiryReason.NO_ACTIVITY),
    RecoveryRequested(),
    Failed(FailureCode.RUN_FAILED),
)


@attrs.frozen
class Step:
    """What the writer asks of a step."""

    seq: int
    ts: float
    machine: str
    key: str
    event: Any
    answer: Any
    before: Any
    post: Any


@attrs.define(eq=False)
class Reply:
    """One reply while the log is made."""

    key: str
    events: Iterator[Any]
    seq: int = 0
    state: Any = MACHINE.initial


class TypedLine(msgspec.Struct):
    """The format for ``msgspec``, which is quicker with a type than without."""

    seq: int
    key: str
    event: str
    ts: float = 0.0
    args: dict[str, Any] = {}
    post: dict[str, Any] = {}
    answer: str = ""
    machine: str = ""
    version: int = 1


def plan(handle: str) -> tuple[Any, ...]:
    """The usual life of a reply."""
    alive = ActivityRecorded()
    return (
        PhaseEntered(Phase.COMPACTING), PhaseEntered(Phase.FLUSHING), LaneWaitBegan(), LaneWaitEnded(), PhaseEntered(Phase.RUNNING),
        BackendAttached(handle), alive, alive, ConsentReported(False), alive, ConsentReported(True), alive, OutcomeCommitted(),
        BackendDetached(handle), Completed(False),
    )  # fmt: skip


def steps(count: int) -> Iterator[Step]:
    """``count`` steps of replies that live side by side."""
    rng, begun, live = random.Random(1), 0, list[Reply]()
    for number in range(count):
        while len(live) < LIVE:
            begun += 1
            live.append(Reply(f"session-{begun}", iter(plan(f"run-{begun}"))))
        reply = rng.choice(live)
        event = next(reply.events, None)
        if event is None:
            live.remove(reply)
            event = RARE[0]
        elif rng.random() < UNUSUAL:
            event = rng.choice(RARE)
        before, answer = reply.state, MACHINE.step(reply.state, event)
        reply.state = answer.state if isinstance(answer, Taken) else before
        reply.seq += 1
        yield Step(reply.seq, 1.7e9 + number / 1_000, MACHINE.name, reply.key, event, answer, before, reply.state)


def bare(path: Path, decode: Callable[[bytes], object]) -> float:
    """Seconds of processor time to decode every line."""
    start = time.process_time()
    with path.open("rb") as file:
        for line in file:
            decode(line)
    return time.process_time() - start


def replayed(path: Path, lines: int) -> float:
    """Seconds of processor time to judge every line, preparations included."""
    start = time.process_time()
    read = LogReplay(Beliefs(SPEC))
    read.read([path])
    seconds = time.process_time() - start
    assert read.judged == lines, read.findings
    return seconds


def watched(made: Sequence[Step]) -> float:
    """Seconds of processor time for a monitor to judge every step as it happens."""
    monitor = Monitor(SPEC)
    start = time.process_time()
    for step in made:
        monitor(step)
    seconds = time.process_time() - start
    assert (monitor.steps, monitor.unjudged, monitor.first) == (len(made), 0, None)
    return seconds


@attrs.frozen
class Figures:
    """Microseconds a line or step, the best of :data:`ROUNDS` rounds; and what memory grew by in all of them."""

    lines: int
    file_bytes: int
    grown_bytes: int
    decode_us: float
    typed_us: float
    replay_us: float
    write_us: float
    monitor_us: float
    late_monitor_us: float
    """Of the last tenth of the steps that the monitor judged: it must cost what the first did."""


def measure(lines: int = LINES) -> Figures:
    """Write a log, then decode and replay it in alternating rounds."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "log.jsonl"
        few = list(steps(FEW))
        with TraceWriter(Path(folder) / "few.jsonl", MACHINE) as writer:
            start = time.process_time()
            for step in few:
                writer(step)
            writing = (time.process_time() - start) / len(few)
        tenth = len(few) // 10
        monitor, late = (min(found) for found in zip(*(_judged(few, tenth) for _ in range(ROUNDS)), strict=True))
        del few
        with TraceWriter(path, MACHINE) as writer:
            for step in steps(lines):
                writer(step)
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        typed = msgspec.json.Decoder(TypedLine).decode
        rounds = [(bare(path, msgspec.json.decode), bare(path, typed), replayed(path, lines)) for _ in range(ROUNDS)]
        grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
        size = path.stat().st_size
    plain, typed_, replay = (min(column) / lines * 1e6 for column in zip(*rounds, strict=True))
    return Figures(lines, size, grown * 1024, plain, typed_, replay, writing * 1e6, monitor * 1e6, late * 1e6)


def _judged(made: Sequence[Step], tenth: int) -> tuple[float, float]:
    """Seconds a step of a monitor: over all, and over the last tenth."""
    whole, first = watched(made), watched(made[:-tenth])
    return whole / len(made), max(0.0, whole - first) / tenth


def table(figures: Figures) -> str:
    """The figures as text."""
    rows = (
        ("msgspec, decode to dict", figures.decode_us),
        ("msgspec, decode to Struct", figures.typed_us),
        ("replay", figures.replay_us),
        ("write a line", figures.write_us),
        ("monitor, a step", figures.monitor_us),
    )
    lines = [
        f"{figures.lines:,} lines, {figures.file_bytes / 1e6:.0f} MB; memory grew by {figures.grown_bytes / 1e6:.0f} MB at the highest",
        f"{'':<28} {'us each':>8} {'each/s':>12} {'x replay':>10}",
    ]
    lines += [f"{name:<28} {cost:>8.3f} {1e6 / cost:>12,.0f} {cost / figures.replay_us:>10.2f}" for name, cost in rows]
    return "\n".join(lines)


def over_the_bar(figures: Figures) -> list[str]:
    """What is slower, or larger, than it may be. Of a short log nothing is said: most of the time goes into the first thousand lines."""
    found: list[str] = []
    if figures.lines < LINES:
        return found
    if figures.replay_us > figures.decode_us / BAR:
        found.append(f"a replay is at {figures.decode_us / figures.replay_us:.2f} of the speed of a bare decode loop, the bar is {BAR}")
    if figures.grown_bytes > MEMORY_MAX:
        found.append(f"memory grew by {figures.grown_bytes / 1e6:.0f} MB while it replayed")
    return found


def main(lines: int) -> int:
    """Measure and print."""
    figures = measure(lines)
    print(table(figures))
    over = over_the_bar(figures)
    for sentence in over:
        print(f"OVER: {sentence}")
    return 1 if over else 0


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]) if len(sys.argv) > 1 else LINES))
