"""The virtual clock: time passes only when nothing else can, and never for ever."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import time
from collections.abc import Callable, Coroutine
from pathlib import Path

import pytest

from turnproof.shell import ClockStalled, RealClock, VirtualClock, run_virtual, virtual_time

pytest_plugins = ["turnproof.shell.fixtures"]


def test_a_week_takes_no_time() -> None:
    async def main() -> float:
        await asyncio.sleep(7 * 24 * 3600)
        return asyncio.get_running_loop().time()

    started = time.perf_counter()
    assert run_virtual(main()) == 7 * 24 * 3600
    assert time.perf_counter() - started < 1


def test_the_code_under_test_uses_asyncio_as_ever(virtual_clock: VirtualClock) -> None:
    async def main() -> list[str]:
        seen: list[str] = []

        async def worker(name: str, seconds: float) -> None:
            await asyncio.sleep(seconds)
            seen.append(f"{name} at {virtual_clock.now_ms}")

        async with asyncio.TaskGroup() as group:
            group.create_task(worker("late", 30))
            group.create_task(worker("soon", 0.25))
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(10):
                await asyncio.Event().wait()
        seen.append(f"timeout at {virtual_clock.now_ms}")
        return seen

    assert virtual_clock.run(main()) == ["soon at 250", "late at 30000", "timeout at 40000"]


@pytest.mark.parametrize("start_ms", [0, 1, 86_400_123])
def test_advance_stops_short_of_what_is_due_later(start_ms: int) -> None:
    async def main() -> None:
        fired: list[int] = []
        asyncio.get_running_loop().call_later(60, lambda: fired.append(clock.now_ms))
        await clock.advance(59_999)
        assert fired == []
        await clock.advance(1)
        assert fired == [start_ms + 60_000]

    with virtual_time(start_ms=start_ms) as clock:
        clock.run(main())


@pytest.mark.parametrize(("step_ms", "steps"), [(100, 600), (100, 8), (1, 19), (7, 11), (300, 8)])
def test_instants_do_not_drift_apart(virtual_clock: VirtualClock, step_ms: int, steps: int) -> None:
    # 600 times 0.1 s is 60.00000000000039 s in floats, and 8 times 0.1 s is 0.7999999999999999 s.
    async def main() -> None:
        fired: list[float] = []
        asyncio.get_running_loop().call_later(step_ms * steps / 1000, lambda: fired.append(asyncio.get_running_loop().time()))
        for _ in range(steps - 1):
            await virtual_clock.advance(step_ms)
        assert fired == []
        await virtual_clock.advance(step_ms)
        assert fired == [step_ms * steps / 1000]

    virtual_clock.run(main())


def test_the_clock_is_exact_for_a_hundred_years() -> None:
    async def main() -> None:
        for seconds in (0.000001, 1_000_000, 0.25, 1_000_000_000, 0.001, 2_000_000_000.0, 0.000001):
            await asyncio.sleep(seconds)

    with virtual_time() as clock:
        clock.run(main())
        assert clock.loop.time() == 3_001_000_000.251002
    with pytest.raises(ClockStalled, match="the next callback is due at 5000000000 s, and the clock ends at 4000000000 s"):
        run_virtual(asyncio.sleep(5_000_000_000))


def test_everything_due_at_the_last_instant_happens_before_advance_returns(virtual_clock: VirtualClock) -> None:
    async def main() -> None:
        seen: list[str] = []

        async def chain() -> None:
            await asyncio.sleep(1)
            await asyncio.sleep(0)
            seen.append("woken")
            asyncio.get_running_loop().call_later(0, seen.append, "at once")
            asyncio.get_running_loop().call_later(0.001, seen.append, "later")

        task = asyncio.create_task(chain())
        await virtual_clock.advance(1_000)
        assert seen == ["woken", "at once"]
        await task

    virtual_clock.run(main())


def test_settle_lets_everything_happen_and_the_time_stand(virtual_clock: VirtualClock) -> None:
    async def main() -> None:
        seen: list[int] = []

        async def relay(n: int) -> None:
            await asyncio.sleep(0)
            seen.append(n)
            if n < 20:
                tasks.append(asyncio.create_task(relay(n + 1)))

        tasks = [asyncio.create_task(relay(0))]
        late = asyncio.create_task(asyncio.sleep(0.001))
        await virtual_clock.settle()
        assert seen == list(range(21))
        assert not late.done()
        assert virtual_clock.now_ms == 0

    virtual_clock.run(main())


def test_time_goes_on_from_run_to_run(virtual_clock: VirtualClock) -> None:
    virtual_clock.run(asyncio.sleep(5))
    virtual_clock.loop.call_later(2, lambda: None)
    assert virtual_clock.now_ms == 5_000
    assert virtual_clock.scheduled_ms() == [7_000]


async def wait_for_nobody() -> None:
    await asyncio.get_running_loop().create_future()


async def poll() -> None:
    while True:
        await asyncio.sleep(0)


async def beat_for_ever() -> None:
    while True:
        await asyncio.sleep(1)


@pytest.mark.parametrize(
    ("main", "why"),
    [
        (wait_for_nobody, r"at 0.000 s of virtual time nothing is scheduled and everybody waits; waiting: Task-\d+ \(wait_for_nobody\)$"),
        (poll, "the loop turned 1,000 times and its time stands still"),
        (beat_for_ever, "at 1000.000 s of virtual time the clock jumped 1,000 times"),
    ],
)
def test_a_jump_without_progress_is_an_error(main: Callable[[], Coroutine[object, object, None]], why: str) -> None:
    with virtual_time(turns_max=1_000, jumps_max=1_000) as clock, pytest.raises(ClockStalled, match=why):
        clock.run(main())


def test_threads_are_refused() -> None:
    with pytest.raises(RuntimeError, match=r"sleep.* was sent to a thread, but a virtual clock has no threads"):
        run_virtual(asyncio.to_thread(time.sleep, 1))


def test_time_does_not_run_backwards(virtual_clock: VirtualClock) -> None:
    with pytest.raises(ValueError, match="time does not run backwards"):
        virtual_clock.run(virtual_clock.advance(-1))
    with pytest.raises(ValueError, match="start_ms=-1"):
        VirtualClock(start_ms=-1)


def test_closing_cancels_what_is_left() -> None:
    ended: list[str] = []

    async def leave() -> None:
        async def wait() -> None:
            try:
                await asyncio.sleep(3600)
            except asyncio.CancelledError:
                ended.append("cancelled")
                raise

        asyncio.get_running_loop().create_task(wait()).set_name("left")
        await asyncio.sleep(0)

    with virtual_time() as clock:
        clock.run(leave())
    assert ended == ["cancelled"]
    assert clock.loop.is_closed()


def test_the_shell_needs_attrs_and_the_standard_library_alone() -> None:
    code = (
        "import sys; before = set(sys.modules); import turnproof.shell;"
        "new = {name.partition('.')[0] for name in set(sys.modules) - before};"
        "print(sorted(new - set(sys.stdlib_module_names)), 'turnproof.machines.reply_operation' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "['attr', 'attrs', 'turnproof'] False"


def test_a_jump_makes_late_what_was_due_meanwhile(virtual_clock: VirtualClock) -> None:
    async def main() -> None:
        fired: list[tuple[str, int]] = []
        loop = asyncio.get_running_loop()

        def fire(name: str) -> None:
            fired.append((name, virtual_clock.now_ms))

        for name, ms in (("b", 20), ("a", 10), ("c", 31)):
            loop.call_later(ms / 1000, fire, name)
        virtual_clock.jump(30)
        assert fired == []
        await virtual_clock.settle()
        assert fired == [("a", 30), ("b", 30)]
        await virtual_clock.advance(1)
        assert fired[-1] == ("c", 31)
        with pytest.raises(ValueError, match="time does not run backwards"):
            virtual_clock.jump(-1)

    virtual_clock.run(main())


# ── the real one, and pytest ──


def test_a_real_clock_takes_a_thousandth_of_the_time() -> None:
    clock = RealClock()
    try:
        started = time.monotonic()
        clock.run(clock.advance(60_000))
        assert time.monotonic() - started >= 0.06
        assert clock.now_ms >= 60_000
        with pytest.raises(ValueError, match="time does not run backwards"):
            clock.run(clock.advance(-1))
    finally:
        clock.close()
    with pytest.raises(ValueError, match="scale=0: expected more than 0"):
        RealClock(0)


USER = """
import asyncio

def test_waiting(virtual_clock):
    async def main():
        await asyncio.sleep(3600)
    virtual_clock.run(main())
    assert virtual_clock.now_ms == 3_600_000

def test_both(any_clock):
    any_clock.run(any_clock.advance(1_000))
    assert any_clock.now_ms >= 1_000
"""


@pytest.mark.parametrize("conftest", ["", 'pytest_plugins = ["turnproof.shell.fixtures"]\n'], ids=["found", "named"])
def test_pytest_finds_the_fixtures_by_itself_and_naming_them_is_no_mistake(tmp_path: Path, conftest: str) -> None:
    (tmp_path / "conftest.py").write_text(conftest)
    (tmp_path / "test_mine.py").write_text(USER)
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-W", "error", "--rootdir", str(tmp_path), str(tmp_path)],
        cwd=tmp_path, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout
    assert "3 passed" in done.stdout
