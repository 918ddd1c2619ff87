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
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import attrs
import msgspec

from turnproof.checkers.traces.beliefs import Beliefs
from turnproof.checkers.traces.log import LogReplay
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


def main(lines: int) -> int:
    """Measure and print."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "log.jsonl"
        few = list(steps(20_000))
        with TraceWriter(Path(folder) / "few.jsonl", MACHINE) as writer:
            start = time.process_time()
            for step in few:
                writer(step)
            writing = (time.process_time() - start) / len(few)
        del few
        with TraceWriter(path, MACHINE) as writer:
            for step in steps(lines):
                writer(step)
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        typed = msgspec.json.Decoder(TypedLine).decode
        rounds = [(bare(path, msgspec.json.decode), bare(path, typed), replayed(path, lines)) for _ in range(ROUNDS)]
        grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
        size = path.stat().st_size
    untyped, typed_, replay = (min(column) / lines * 1e6 for column in zip(*rounds, strict=True))
    print(f"{lines:,} lines, {size / 1e6:.0f} MB; memory grew by {grown / 1024:.0f} MB at the highest")
    print(f"{'':<28} {'us/line':>8} {'lines/s':>12} {'replay/it':>10}")
    for name, cost in (("msgspec, decode to dict", untyped), ("msgspec, decode to Struct", typed_), ("replay", replay)):
        print(f"{name:<28} {cost:>8.3f} {1e6 / cost:>12,.0f} {cost / replay:>10.2f}")
    print(f"{'write':<28} {writing * 1e6:>8.3f} {1 / writing:>12,.0f}")
    return 0


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]) if len(sys.argv) > 1 else 1_000_000))
