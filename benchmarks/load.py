"""``python -m benchmarks load``: a process full of live replies, beside the same written by hand with ``asyncio.timeout``, in one run.

Every operation lives through the same in both. It runs, a backend attaches, it is judged stuck: the backend is cancelled and a timer
armed (*begin*, at an even pace). Thousands at a time are aborted in one go, which stops that timer, cancels the backend again and arms
another; then their owners complete (*storm*; in the last one the handler that cancels backends is slow). The timers of the others fire,
at the pace at which they were armed, and their owners complete as they hear the signal (*fire*). Each contestant has a process of its
own, so that memory is its own.
"""

from __future__ import annotations

import asyncio
import gc
import json
import os
import platform
import resource
import subprocess
import sys
import time
from collections import defaultdict
from collections.abc import Awaitable, Callable, Sequence
from statistics import quantiles
from typing import Protocol

import attrs

OPERATIONS, STORM, STORMS = 100_000, 10_000, 3
"""Live operations; how many are aborted at once; how many times that happens, the last time with a slow handler."""
TICK, TICK_S = 100, 0.01
"""Operations are begun in slices of so many, one slice in so many seconds: 10,000 a second."""
REST_S = 8.0
"""Seconds between the last begin and the first timer that fires: time for the storms."""
SLOW_S = 0.1
"""What the slow handler takes for each operation."""
BEAT_S = 0.005
"""Period of the heartbeat that measures how long the loop does nothing else."""


class Contest(Protocol):
    """What a contestant can do. An operation is named by its number; its handlers call the :class:`Book`."""

    def begin(self, number: int) -> None:
        """Three events: it runs, its backend attaches, it is judged stuck. Its timer is armed then."""

    def abort(self, number: int) -> None:
        """One event: a person aborts it."""

    def complete(self, number: int) -> None:
        """One event: its owner is done."""

    def open(self) -> int:
        """Operations that are not released."""


@attrs.define
class Book:
    """What both contestants are told, and call as their effects."""

    window_s: float
    """How long the timer of an operation runs."""
    slow: bool = False
    cancelled: int = 0
    released: int = 0
    due: list[float] = attrs.field(factory=list)
    """Operation -> when its timer is due, on the loop's clock."""
    delays: list[float] = attrs.field(factory=list)

    def cancel_backend(self) -> Awaitable[None] | None:
        """Cancel a backend; while it is slow there is something to await."""
        self.cancelled += 1
        return asyncio.sleep(SLOW_S) if self.slow else None

    def fired(self, number: int) -> None:
        """The timer of an operation has fired, and this is its first effect."""
        self.delays.append(asyncio.get_running_loop().time() - self.due[number])


@attrs.frozen
class Figures:
    """What one contestant took. Seconds are of its processor, per operation or event in microseconds."""

    contestant: str
    operations: int
    bytes_each: float
    begin_us: float
    storm_us: float
    slow_storm_us: float
    fire_us: float
    events_per_s: float
    delay_p50_ms: float
    delay_p99_ms: float
    delay_max_ms: float
    stall_begin_ms: float
    """Longest time in which the loop did nothing else while operations were begun in slices of 1,000; so for the next two."""
    stall_storm_ms: float
    stall_fire_ms: float
    left: int
    """Tasks and timers that were left when all was over."""


class Heart:
    """Beats, and notes how late."""

    def __init__(self) -> None:
        self.worst = 0.0
        self.task = asyncio.create_task(self._beat())

    async def _beat(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            due = loop.time() + BEAT_S
            await asyncio.sleep(BEAT_S)
            self.worst = max(self.worst, loop.time() - due)

    def since(self) -> float:
        """The worst since the last time this was asked, in milliseconds."""
        worst, self.worst = self.worst, 0.0
        return worst * 1000


class Clocks:
    """Processor time by phase."""

    def __init__(self) -> None:
        self.took: dict[str, float] = defaultdict(float)
        self._start = 0.0

    def start(self) -> None:
        self._start = time.process_time()

    def stop(self, phase: str) -> None:
        self.took[phase] += time.process_time() - self._start


def resident() -> int:
    """Bytes of memory that this process holds now (Linux), or held at most (elsewhere)."""
    try:
        with open("/proc/self/statm", encoding="ascii") as file:
            return int(file.read().split()[1]) * resource.getpagesize()
    except OSError:
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)


async def live(name: str, make: Callable[[Book], Contest], operations: int, storm: int) -> Figures:
    """Let one contestant live through everything."""
    loop = asyncio.get_running_loop()
    book = Book(operations / TICK * TICK_S * 1.5 + REST_S, due=[0.0] * operations)
    contest, heart, clocks = make(book), Heart(), Clocks()
    gc.collect()
    empty = resident()
    started = loop.time()
    clocks.start()
    for number in range(operations):
        if number % TICK == 0:
            await asyncio.sleep(max(0.0, started + number / TICK * TICK_S - loop.time()))
        book.due[number] = loop.time() + book.window_s
        contest.begin(number)
    await asyncio.sleep(2 * TICK_S)  # so that tasks have begun
    clocks.stop("begin")
    full, stall_begin = resident(), heart.since()
    stall_storm = 0.0
    for n in range(STORMS):
        book.slow = n == STORMS - 1
        gc.collect()  # whose turn a full collection is, is chance: no phase pays for what the one before it made
        await asyncio.sleep(2 * BEAT_S)
        heart.since()
        await _storm(contest, range(n * storm, (n + 1) * storm), clocks, "slow storm" if book.slow else "storm")
        stall_storm = max(stall_storm, heart.since())
    book.slow = False
    assert contest.open() == operations - STORMS * storm, contest.open()
    assert loop.time() < book.due[STORMS * storm], "the storms took so long that timers have fired already"
    await asyncio.sleep(max(0.0, book.due[STORMS * storm] - loop.time() - 2 * SLOW_S))
    gc.collect()
    await asyncio.sleep(2 * BEAT_S)
    heart.since()
    clocks.start()
    while contest.open():
        await asyncio.sleep(SLOW_S)
    clocks.stop("fire")
    stall_fire, rest = heart.since(), operations - STORMS * storm
    heart.task.cancel()
    await asyncio.sleep(2 * SLOW_S)
    assert (len(book.delays), book.released) == (rest, operations), (len(book.delays), book.released)
    assert book.cancelled == 2 * operations, book.cancelled
    cuts, took = quantiles(book.delays, n=100), clocks.took
    events = operations * 3 + STORMS * storm * 2 + rest * 2
    return Figures(
        name, operations, (full - empty) / operations, took["begin"] / operations * 1e6, took["storm"] / (STORMS - 1) / storm * 1e6,
        took["slow storm"] / storm * 1e6, took["fire"] / rest * 1e6, events / sum(took.values()), cuts[49] * 1e3, cuts[98] * 1e3,
        max(book.delays) * 1e3, stall_begin, stall_storm, stall_fire, len(asyncio.all_tasks()) - 1 + _scheduled(loop),
    )  # fmt: skip


async def _storm(contest: Contest, numbers: range, clocks: Clocks, name: str) -> None:
    """Abort all of them without a pause; a little later, their owners complete."""
    clocks.start()
    for number in numbers:
        contest.abort(number)
    await asyncio.sleep(3 * SLOW_S)
    for number in numbers:
        contest.complete(number)
        if number % TICK == TICK - 1:
            await asyncio.sleep(0)
    await asyncio.sleep(SLOW_S)
    clocks.stop(name)


def _scheduled(loop: asyncio.AbstractEventLoop) -> int:
    return sum(not handle.cancelled() for handle in loop.__dict__["_scheduled"])


def contestant(name: str) -> Callable[[Book], Contest]:
    """The contestant of that name."""
    from benchmarks import load_contestants

    return load_contestants.CONTESTANTS[name]


def child(name: str, operations: int, storm: int) -> Figures:
    """Run one contestant in a process of its own."""
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.load", "--child", name, str(operations), str(storm)],
        capture_output=True, text=True, check=False, cwd=os.getcwd(),
    )  # fmt: skip
    if done.returncode:
        raise RuntimeError(f"{name}: {done.stderr.strip().splitlines()[-1:]}")
    return Figures(**json.loads(done.stdout))


ROWS: Sequence[tuple[str, str]] = (
    ("bytes_each", "memory, bytes an operation"),
    ("begin_us", "begin, us an operation"),
    ("storm_us", "abort in a storm, us an operation"),
    ("slow_storm_us", "the same, slow handler"),
    ("fire_us", "a timer fires, us an operation"),
    ("events_per_s", "events/s of processor time"),
    ("delay_p50_ms", "timer fires late by, p50 ms"),
    ("delay_p99_ms", "timer fires late by, p99 ms"),
    ("delay_max_ms", "timer fires late by, most ms"),
    ("stall_begin_ms", "longest stall while they begin, ms"),
    ("stall_storm_ms", "longest stall in a storm, ms"),
    ("stall_fire_ms", "longest stall while timers fire, ms"),
    ("left", "tasks and timers left"),
)
COSTS = ("bytes_each", "begin_us", "storm_us", "slow_storm_us", "fire_us")
"""What may be at most twice what the hand-written one takes."""
BAR = 2.0


def table(figures: Sequence[Figures]) -> str:
    """The figures side by side, with the ratio where it is a cost."""
    ours, hand = figures
    lines = [f"{ours.operations:,} operations{'':<22} " + " ".join(f"{f.contestant:>14}" for f in figures) + f" {'ratio':>7}"]
    for name, words in ROWS:
        one, other = getattr(ours, name), getattr(hand, name)
        ratio = f"{one / other:>7.2f}" if name in COSTS else ""
        lines.append(f"{words:<40} {one:>14,.1f} {other:>14,.1f} {ratio}".rstrip())
    return "\n".join(lines)


def over_the_bar(figures: Sequence[Figures]) -> list[str]:
    """Costs that are more than :data:`BAR` times those of the hand-written one."""
    ours, hand = figures
    ratios = {name: getattr(ours, name) / getattr(hand, name) for name in COSTS}
    return [f"{name} is {ratio:.2f} times the hand-written one, the bar is {BAR}" for name, ratio in ratios.items() if ratio > BAR]


def run(quick: bool = False) -> list[Figures]:
    """Both contestants, one after the other."""
    operations, storm = (10_000, 1_000) if quick else (OPERATIONS, STORM)
    return [child(name, operations, storm) for name in ("runner", "by hand")]


def facts() -> dict[str, object]:
    """Where the figures come from."""
    return {"command": "python -m benchmarks load", "python": platform.python_version(), "machine": platform.machine(),
            "load": round(os.getloadavg()[0], 2)}  # fmt: skip


def main(arguments: Sequence[str]) -> int:
    """One contestant for a parent, or both with a table."""
    if arguments[:1] == ["--child"]:
        name, operations, storm = arguments[1:]
        figures = asyncio.run(live(name, contestant(name), int(operations), int(storm)))
        print(json.dumps(attrs.asdict(figures)))
        return 0
    both = run("--quick" in arguments)
    print(table(both))
    for sentence in over_the_bar(both):
        print(f"OVER: {sentence}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
