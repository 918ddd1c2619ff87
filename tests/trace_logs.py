"""Makes logs for tests: events played through a machine's ``step`` and written by the real writer, then spoiled as a test likes."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import attrs

from turnproof.machines.kernel import Machine, Taken
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
    SettleExpired,
    SupersedeRequested,
    WorkBegan,
)
from turnproof.traces.writer import TraceWriter

AnyMachine = Machine[Any, Any, Any]
Line = dict[str, Any]


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


def play(path: Path, events: Iterable[tuple[str, object]], machine: AnyMachine = MACHINE, **options: Any) -> Path:
    """Write what the machine does with (key, event) pairs, one second apart."""
    states: dict[str, tuple[int, Any]] = {}
    with TraceWriter(path, machine, **options) as writer:
        for number, (key, event) in enumerate(events):
            seq, before = states.get(key, (0, machine.initial))
            answer = machine.step(before, event)
            after = answer.state if isinstance(answer, Taken) else before
            writer(Step(seq + 1, 100.0 + number, machine.name, key, event, answer, before, after))
            states[key] = seq + 1, after
    return path


def lines_of(path: Path) -> list[Line]:
    """The lines, decoded."""
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def dump(path: Path, lines: Iterable[Mapping[str, Any]], form: Callable[[Mapping[str, Any]], str] = json.dumps) -> Path:
    """Write lines as they are given."""
    path.write_text("".join(form(line) + "\n" for line in lines), encoding="utf-8")
    return path


def renumbered(lines: Sequence[Line]) -> list[Line]:
    """The lines with a new count for each key."""
    counts: dict[str, int] = {}
    made = []
    for line in lines:
        counts[line["key"]] = counts.get(line["key"], 0) + 1
        made.append({**line, "seq": counts[line["key"]]})
    return made


def chances(rng: random.Random, keys: int, count: int) -> list[tuple[str, object]]:
    """Events for several instances, each with handles of its own; whatever may happen, in any order."""
    made: list[tuple[str, object]] = []
    for _ in range(count):
        key = f"r{rng.randrange(keys)}"
        handle = rng.choice((f"{key}-a", f"{key}-b", "running", 'a "quoted" one', "ä"))
        event = rng.choice(
            (
                PhaseEntered(rng.choice((Phase.RUNNING, Phase.COMPACTING))),
                LaneWaitBegan(),
                LaneWaitEnded(),
                BackendAttached(handle),
                BackendDetached(handle),
                ConsentReported(rng.random() < 0.5),
                ActivityRecorded(),
                OutcomeCommitted(),
                AbortRequested(AbortReason.USER),
                SupersedeRequested(),
                RecoveryRequested(),
                ExpiryRequested(ExpiryReason.NO_ACTIVITY),
                Failed(FailureCode.RUN_FAILED),
                Completed(False),
                Completed(True),
                SettleExpired(),
                WorkBegan(rng.choice((0, 5_000))),
            )
        )
        made.append((key, event))
    return made


def handles(rng: random.Random, count: int) -> list[tuple[str, object]]:
    """Events of many short instances whose handles never recur, old ones among them: what the names of a replay must survive."""
    made: list[tuple[str, object]] = []
    for number in range(count // 12):
        key, mine = f"k{number}", [f"h{number}-{n}" for n in range(3)]
        made += [(key, PhaseEntered(Phase.RUNNING)), (key, BackendAttached(mine[0]))]
        for _ in range(9):
            handle = rng.choice(mine)
            event = rng.choice((BackendAttached(handle), BackendDetached(handle), BackendDetached(handle), RecoveryRequested()))
            made.append((key, event))
        made.append((key, Completed(False)))
    return made


RUN: tuple[tuple[str, object], ...] = (
    ("r1", PhaseEntered(Phase.RUNNING)),
    ("r1", BackendAttached("run-1")),
    ("r2", PhaseEntered(Phase.RUNNING)),
    ("r1", ActivityRecorded()),
    ("r1", AbortRequested(AbortReason.USER)),
    ("r2", BackendAttached("run-7")),
    ("r1", SettleExpired()),
    ("r1", AbortRequested(AbortReason.USER)),
    ("r2", Completed(False)),
)
"""Two replies, interleaved: r1 is aborted, settles, and refuses a second abort; r2 completes."""
