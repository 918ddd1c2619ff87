"""Ten minutes of the real shell on the real clock, with everything that can go wrong: nothing may be left, and no promise broken.

``TURNPROOF_SOAK_S`` says how many seconds instead of 600; ``make test`` runs two. Durations are a thousandth of the machines' own.
"""

from __future__ import annotations

import asyncio
import gc
import os
import random
import resource
import time
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any
from weakref import WeakSet

import attrs
import pytest
from broken_shells import LeavesItsTasks, OutlivesClosing, with_timers

from turnproof.checkers.stateful.chance import Chance
from turnproof.checkers.stateful.guide import taken_event
from turnproof.checkers.traces import Monitor, replay
from turnproof.checkers.verdict import Outcome
from turnproof.machines.kernel import TIMER_EFFECTS
from turnproof.shell import Failure, Runner, RunnerClosed
from turnproof.specs.catalog import specifications
from turnproof.specs.language import Spec
from turnproof.specs.reply_operation import SPEC as REPLY
from turnproof.traces.exporters import all_of
from turnproof.traces.writer import TraceWriter

EPOCH_S, LIVE = 15.0, 60
"""Everything is closed and counted after so many seconds; instances of each machine that live at a time."""
LATE_S = 0.05
GROWTH = 1.1
"""How much the memory may grow from the third epoch to the last."""
AnyRunner = Runner[Any, Any, Any]
SwallowsItsTimers = with_timers("SwallowsItsTimers", OutlivesClosing)


def resident() -> int:
    """Bytes of memory that the process holds now (Linux), or held at most (elsewhere)."""
    try:
        return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()
    except OSError:
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


class Planted(Exception):
    """What a handler raises on purpose."""


@attrs.define
class Soak:
    """What one soak counts. ``make``: the class under test."""

    make: Callable[..., AnyRunner] = Runner
    rng: random.Random = attrs.field(factory=lambda: random.Random(1))
    runners: WeakSet[AnyRunner] = attrs.field(factory=WeakSet)
    counts: Counter[str] = attrs.field(factory=Counter)
    wrong: list[str] = attrs.field(factory=list)
    resident: list[int] = attrs.field(factory=list)

    def reported(self, failure: Failure) -> None:
        """Only what was planted, and what cancelled itself, may be reported."""
        self.counts["failures reported"] += 1
        if not isinstance(failure.error, (Planted, asyncio.CancelledError, RunnerClosed)):
            self.wrong.append(repr(failure))

    def handler(self, runner: list[AnyRunner], chance: Chance, events: list[type]) -> Any:
        """A handler that does anything."""

        def perform(effect: object) -> Any:
            self.counts["effects"] += 1
            kind = self.rng.random()
            if kind < 0.06:
                raise Planted
            if kind < 0.12 and not runner[0].closed:
                runner[0].post(chance.event(self.rng, events))
            elif kind < 0.30:
                return self.awaiting(kind, runner[0], chance.event(self.rng, events))
            return None

        return perform

    async def awaiting(self, kind: float, runner: AnyRunner, event: object) -> None:
        """A handler that awaits: ends late, fails late, sends, cancels itself, or hangs until it is cancelled."""
        await asyncio.sleep(self.rng.random() * LATE_S)
        if kind < 0.15:
            raise Planted
        if kind < 0.18:
            raise asyncio.CancelledError
        if kind < 0.21:
            await runner.send(event)
        if kind < 0.23:
            await asyncio.get_running_loop().create_future()


async def one_life(soak: Soak, spec: Spec, chance: Chance, key: str, trace: Any, until: float) -> None:
    """One instance: events of callers that may leave, then closed in the middle of whatever happens."""
    machine, rng, loop = spec.machine, soak.rng, asyncio.get_running_loop()
    expiries = {rule.expires for rule in machine.timers}
    events = [cls for cls in machine.events if cls not in expiries]
    place: list[AnyRunner] = []
    handler = soak.handler(place, chance, events)
    runner = soak.make(
        machine,
        {effect: handler for effect in machine.effects if effect not in TIMER_EFFECTS},
        key=key,
        durations_ms={rule.timer: max(1, rule.duration.milliseconds // 1_000) for rule in machine.timers},
        on_error=soak.reported,
        trace=trace,
    )
    place.append(runner)
    soak.runners.add(runner)
    soak.counts["instances"] += 1
    for _ in range(rng.randint(1, 60)):
        if loop.time() > until:
            break
        event: Any = taken_event(machine, runner.state, rng.randrange(2**32)) if rng.random() < 0.6 else None
        if event is None or type(event) in expiries:
            event = chance.event(rng, events)
        caller = asyncio.create_task(runner.send(event))
        if rng.random() < 0.3:
            await asyncio.sleep(0)
            caller.cancel()
            soak.counts["callers cancelled"] += 1
        await asyncio.gather(caller, return_exceptions=True)
        await asyncio.sleep(rng.random() * 0.02)
    closer = asyncio.create_task(runner.aclose())
    if rng.random() < 0.3:
        await asyncio.sleep(0)
        closer.cancel()
    await asyncio.gather(closer, return_exceptions=True)
    await runner.aclose()
    soak.counts["steps"] += runner.steps
    if runner.due_ms() or runner.held_ms():
        soak.wrong.append(f"{runner!r} has timers: {runner.due_ms()}, {runner.held_ms()}")


async def epoch(soak: Soak, number: int, seconds: float, specs: list[tuple[Spec, Chance, Any]]) -> None:
    """Lives side by side for so long; then nothing may be left."""
    loop = asyncio.get_running_loop()
    until = loop.time() + seconds

    async def lives(spec: Spec, chance: Chance, trace: Any, lane: int) -> None:
        n = 0
        while loop.time() < until:
            await one_life(soak, spec, chance, f"{number}-{lane}-{n}", trace, until)
            n += 1

    async with asyncio.TaskGroup() as group:
        for spec, chance, trace in specs:
            for lane in range(max(1, LIVE // len(specs))):
                group.create_task(lives(spec, chance, trace, lane))
    await asyncio.sleep(2 * LATE_S)
    gc.collect()
    tasks = [task.get_name() for task in asyncio.all_tasks() if task is not asyncio.current_task()]
    timers = [handle for handle in loop.__dict__["_scheduled"] if not handle.cancelled()]
    soak.counts["tasks left"] += len(tasks)
    soak.counts["timers left"] += len(timers)
    soak.counts["runners left"] += len(soak.runners)
    soak.wrong += [f"epoch {number}: {tasks[:3]}, {timers[:3]}"] if tasks or timers or len(soak.runners) else []
    soak.resident.append(resident())


def soaked(seconds: float, folder: Path, make: Callable[..., AnyRunner] = Runner, names: Sequence[str] = ()) -> tuple[Soak, Monitor]:
    """Soak for so long, all machines (or those named) side by side; then the log of the replies is replayed."""
    soak = Soak(make)
    chosen = {name: spec for name, spec in specifications().items() if name in (names or specifications())}
    free = [spec for spec in chosen.values() if spec.assume is None]
    monitor = Monitor(*free, situations=1_000)
    log = folder / "replies.jsonl"
    escaped: list[dict[str, Any]] = []
    with TraceWriter(log, REPLY.machine) as writer:
        traces = {spec.machine.name: monitor for spec in free}
        specs = [
            (spec, Chance(spec.machine), all_of(writer, monitor) if spec is REPLY else traces.get(name)) for name, spec in chosen.items()
        ]

        async def main() -> None:
            asyncio.get_running_loop().set_exception_handler(lambda loop, context: escaped.append(context))
            end, number = time.monotonic() + seconds, 0
            while (left := end - time.monotonic()) > 0.1:
                await epoch(soak, number, min(EPOCH_S, left), specs)
                number += 1

        asyncio.run(main())
    soak.wrong += [repr(context) for context in escaped]
    judged = replay(REPLY, log, source="trace")
    soak.counts["lines replayed"] = judged.counts["lines"]
    soak.wrong += [v.detail for v in judged.verdicts if v.outcome is not Outcome.HOLDS]
    return soak, monitor


def check(soak: Soak, monitor: Monitor) -> None:
    assert soak.wrong == []
    assert (soak.counts["tasks left"], soak.counts["timers left"], soak.counts["runners left"]) == (0, 0, 0)
    assert monitor.first is None, str(monitor.first)
    assert monitor.unjudged == 0


QUICK = ("reply_operation", "reply_waiter", "stuck_watchdog")


def test_two_seconds_of_everything_leave_nothing(tmp_path: Path) -> None:
    soak, monitor = soaked(2.0, tmp_path, names=QUICK)
    check(soak, monitor)
    assert soak.counts["steps"] > 100
    assert soak.counts["lines replayed"] > 10


@pytest.mark.parametrize("broken", [LeavesItsTasks, SwallowsItsTimers], ids=lambda cls: cls.__name__)
def test_a_shell_that_leaves_something_is_found_out(broken: type[AnyRunner], tmp_path: Path) -> None:
    soak, _ = soaked(1.0, tmp_path, broken, QUICK)
    assert soak.wrong


@pytest.mark.soak
def test_ten_minutes_of_everything_leave_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    seconds = float(os.environ.get("TURNPROOF_SOAK_S", "600"))
    soak, monitor = soaked(seconds, tmp_path)
    with capsys.disabled():
        sizes = ", ".join(f"{size / 1e6:.0f}" for size in soak.resident)
        print(f"\n{seconds:.0f} s: " + ", ".join(f"{count:,} {what}" for what, count in soak.counts.items()))
        print(f"memory after each epoch, MB: {sizes}; {monitor.steps:,} steps judged by the monitor")
    check(soak, monitor)
    if len(soak.resident) > 3:
        assert soak.resident[-1] < soak.resident[2] * GROWTH
