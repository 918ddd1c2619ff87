"""The composed shells on the real clock, with the same callers and faults as on the virtual one: closed, they leave no task and no timer.

``TURNPROOF_SOAK_S`` says how many seconds instead of 600. The machines' durations are a thousandth of their own; at most :data:`LONG_MS`.
"""

from __future__ import annotations

import asyncio
import logging
import os
import random
import time
from collections import Counter
from enum import Enum
from typing import Any

import attrs
import pytest
from rules_attempts import Turns
from rules_loop import Loops
from rules_registry import Registry
from rules_session import Sessions

from turnproof.checkers.stateful.composed import Stage, actions
from turnproof.shell.common import Tasks
from turnproof.specs.language import AnyMachine

pytestmark = pytest.mark.filterwarnings("ignore:coroutine .* was never awaited:RuntimeWarning")
STAGES: tuple[type[Stage], ...] = (Registry, Turns, Loops, Sessions)
EPOCH_S, LANES, LONG_MS, PATIENCE_S = 15.0, 4, 600, 10.0


class RealClock:
    """The running loop's clock, as a stage asks for it."""

    now_ms = 0

    def scheduled_ms(self) -> list[int]:
        return []

    async def advance(self, ms: float) -> None:
        await asyncio.sleep(ms / 1000)

    async def settle(self) -> None:
        await asyncio.sleep(0)

    def jump(self, ms: float) -> None:
        time.sleep(min(ms, 2) / 1000)


def real(kind: type[Stage], loop: asyncio.AbstractEventLoop) -> Stage:
    """A stage of that kind on the real clock; its steps are not compared, for several stages share the process."""

    class Real(kind):  # type: ignore[misc, valid-type]
        def durations_ms(self, *machines: AnyMachine) -> dict[Enum, int]:
            return {rule.timer: min(LONG_MS, 1 + rule.duration.milliseconds // 1_000) for machine in machines for rule in machine.timers}

        def once(self, *args: Any, **more: Any) -> None:
            pass

    stage: Stage = Real()
    stage.clock.loop.close()
    setattr(stage, "clock", RealClock())  # noqa: B010
    stage.times = (0, 1, 2, 10, 50)
    return stage


@attrs.define
class Count:
    """What one soak counts."""

    what: Counter[str] = attrs.field(factory=Counter)
    wrong: list[str] = attrs.field(factory=list)


async def one_life(kind: type[Stage], seed: int, count: Count, until: float) -> None:
    """Open, do anything, close in the middle; then every caller has its answer."""
    loop, rng = asyncio.get_running_loop(), random.Random(seed)
    stage = real(kind, loop)
    stage.rng = rng
    names = [name for name in actions(kind) if name != "shell_closes"]
    await stage.open()
    for _ in range(rng.randint(1, 60)):
        if loop.time() > until:
            break
        await getattr(stage, f"do_{rng.choice(names)}")(rng)
        await asyncio.sleep(rng.random() * 0.01)
        stage.judge()
        count.what["actions"] += 1
    closer = asyncio.create_task(stage.close(), name="closer")
    if rng.random() < 0.3:
        await asyncio.sleep(0)
        closer.cancel()
    await asyncio.wait((closer,))
    await stage.close()
    waiting = (await asyncio.wait(stage.calls, timeout=PATIENCE_S))[1] if stage.calls else set()
    stage.judge_end()
    count.what["lives"] += 1
    count.what["faults"] += sum(stage.faults.values())
    count.wrong += [*stage.shadow.wrong, *(f"{kind.__name__} {seed}: closed, and still waits: {task!r}" for task in waiting)]
    for task in stage.calls:
        task.cancel()


async def epoch(number: int, seconds: float, count: Count) -> None:
    """Lives side by side; then nothing may be left."""
    loop = asyncio.get_running_loop()
    until = loop.time() + seconds

    async def lane(kind: type[Stage], start: int) -> None:
        while loop.time() < until:
            await one_life(kind, start, count, until)
            start += 1

    async with asyncio.TaskGroup() as group:
        for n, kind in enumerate(STAGES * LANES):
            group.create_task(lane(kind, number * 10_000_000 + n * 100_000))
    await asyncio.sleep(1.2)  # somebody may obey a second late
    left = [task.get_name() for task in asyncio.all_tasks() if task is not asyncio.current_task()]
    timers = [handle for handle in loop.__dict__["_scheduled"] if not handle.cancelled()]
    count.wrong += [f"epoch {number}: tasks {left[:5]}, timers {timers[:5]}"] if left or timers else []


def soaked(seconds: float) -> Count:
    """Soak the composed shells for so long."""
    count, end = Count(), time.monotonic() + seconds

    async def main() -> None:
        asyncio.get_running_loop().set_exception_handler(lambda loop, context: count.wrong.append(repr(context)))
        number = 0
        while (left := end - time.monotonic()) > 0.1:
            await epoch(number, min(EPOCH_S, left), count)
            number += 1

    logging.disable(logging.ERROR)
    try:
        asyncio.run(main())
    finally:
        logging.disable(logging.NOTSET)
    return count


@pytest.mark.soak
def test_ten_minutes_of_composed_shells_leave_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    seconds = float(os.environ.get("TURNPROOF_SOAK_S", "600"))
    count = soaked(seconds)
    with capsys.disabled():
        print(f"\n{seconds:.0f} s: " + ", ".join(f"{number:,} {what}" for what, number in count.what.items()))
    assert count.wrong == []
    assert count.what["lives"] >= len(STAGES)
    assert count.what["faults"] > 0


@pytest.mark.soak
def test_composed_shells_that_leave_their_tasks_are_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    async def nothing(self: Tasks, **more: Any) -> None:
        pass

    monkeypatch.setattr(Tasks, "aclose", nothing)
    monkeypatch.setattr("test_shell_rules_soak.PATIENCE_S", 0.5)
    assert soaked(3.0).wrong
