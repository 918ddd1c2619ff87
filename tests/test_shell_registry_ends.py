"""The reply registry on a clock: abort, recovery, expiry, owners that fail, shutdown, its log, and the real clock."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from registry_toys import Guarded, Log, Recording, only, running, story

import turnproof.shell
from turnproof.checkers.traces import replay
from turnproof.checkers.traces.monitor import Monitor
from turnproof.checkers.verdict import exit_status
from turnproof.machines import reply_operation, reply_waiter, turn_loop_words
from turnproof.machines.kernel import Refused, Taken
from turnproof.machines.reply_operation_words import (
    AbortReason,
    CancelReason,
    ExpiryReason,
    FailureCode,
    Phase,
    Result,
    Timer,
    UpstreamReason,
)
from turnproof.shell import VirtualClock, run_virtual
from turnproof.shell.common import Signal, Trace
from turnproof.shell.common import only as of_machines
from turnproof.shell.reply_registry import MACHINES, ReplyRegistry
from turnproof.shell.reply_registry_reply import Reply
from turnproof.shell.reply_registry_words import (
    AlreadyActive,
    RegistryClosed,
)
from turnproof.specs.catalog import specifications
from turnproof.traces.writer import TraceWriter

# ── abort, supersession, recovery, expiry ──


@story
async def test_a_hung_owner_keeps_its_slot_for_a_minute_and_no_longer(clock: VirtualClock, log: Log) -> None:
    registry, backend = ReplyRegistry(**log.hooks), Recording()
    reply = running(registry, backend)
    reply.abort()
    assert (backend.cancels, reply.signal.reason) == ([CancelReason.USER_ABORT], Result.ABORTED_BY_USER)
    await clock.advance(59_999)
    assert registry.holder("chat") is reply
    await clock.advance(1)
    assert registry.holder("chat") is None
    assert reply.state.result is Result.ABORTED_BY_USER


@pytest.mark.parametrize("answer", [False, RuntimeError("the probe broke")])
def test_a_probe_that_refuses_or_raises_refuses_every_abort(answer: bool | Exception) -> None:
    @story
    async def test(clock: VirtualClock, log: Log) -> None:
        registry, backend = ReplyRegistry(**log.hooks), Guarded(answer)
        reply = running(registry, backend)
        for refused in (reply.abort(), reply.abort(AbortReason.RESTART), reply.supersede(), reply.recover()):
            assert isinstance(refused, Refused)
        backend.answer = True
        assert isinstance(reply.supersede(), Taken)
        assert backend.cancels == [CancelReason.SUPERSEDED]
        reply.complete()

    test()


@story
async def test_a_recovery_cancels_the_attempt_by_name_and_the_next_attempt_completes(clock: VirtualClock, log: Log) -> None:
    registry, backend = ReplyRegistry(**log.hooks), Recording()
    reply = running(registry, backend)
    reply.recover()
    assert (backend.cancels, reply.state.result, reply.signal.fired) == ([CancelReason.STUCK_RECOVERY], Result.NONE, False)
    assert isinstance(reply.recover(), Refused)
    reply.detach("run")
    await clock.advance(59_999)
    reply.attach("run-2", Recording())
    await clock.advance(600_000)
    reply.complete()
    assert reply.state.result is Result.COMPLETED


@story
async def test_an_abort_from_inside_the_cancel_of_a_recovery_is_no_persons(clock: VirtualClock, log: Log) -> None:
    registry = ReplyRegistry(**log.hooks)
    answers: list[object] = []
    backend = Recording(lambda reason: answers.append(reply.abort()))
    reply = running(registry, backend)
    reply.recover()
    assert isinstance(answers[0], Refused)
    assert reply.state.result is Result.NONE
    backend.on_cancel = None
    reply.detach("run")
    reply.attach("run-2", backend)
    assert isinstance(reply.abort(), Taken)
    reply.complete()


@story
async def test_the_window_of_a_recovery_ends_in_an_expiry(clock: VirtualClock, log: Log) -> None:
    registry = ReplyRegistry(**log.hooks)
    reply = running(registry, Recording())
    reply.recover()
    await clock.advance(60_000)
    assert reply.state.result is Result.RUN_STALLED
    await clock.advance(60_000)
    assert registry.holder("chat") is None


@story
async def test_a_visible_turn_expires_a_dead_holder_and_begins(clock: VirtualClock, log: Log) -> None:
    registry, backend = ReplyRegistry(**log.hooks), Recording()
    reply = running(registry, backend)
    began = await registry.begin_visible("chat", "s2", timeout_ms=900_000)
    assert reply.state.expiry_reason is ExpiryReason.NO_ACTIVITY
    assert 600_000 < clock.now_ms <= 690_000
    assert backend.cancels == [CancelReason.SUPERSEDED]
    with pytest.raises(AlreadyActive):
        await registry.begin_visible("chat", "s3", timeout_ms=20_000)
    began.complete()


@story
async def test_the_signal_a_reply_was_begun_with_aborts_it(clock: VirtualClock, log: Log) -> None:
    registry = ReplyRegistry(**log.hooks)
    upstream: Signal[UpstreamReason] = Signal()
    reply, committed = registry.begin("one", "s1", upstream=upstream), registry.begin("two", "s2", upstream=upstream)
    committed.commit()
    upstream.fire(UpstreamReason.RESTART)
    assert (reply.state.result, committed.state.result) == (Result.ABORTED_FOR_RESTART, Result.NONE)
    late = registry.begin("three", "s3", upstream=upstream)
    assert late.state.released
    committed.complete()


@story
async def test_steering_reaches_a_backend_that_takes_it(clock: VirtualClock, log: Log) -> None:
    registry, backend = ReplyRegistry(**log.hooks), Guarded()
    reply = registry.begin("chat", "s1")
    assert isinstance(reply.steer("early"), Refused)
    reply.enter(Phase.RUNNING)
    reply.attach("run", backend)
    await clock.advance(5)
    assert isinstance(reply.steer("hello"), Taken)
    assert (backend.messages, reply.last_activity_ms) == (["hello"], 0)
    await clock.advance(600_000)
    assert isinstance(reply.steer("to a dead run"), Refused)
    reply.complete()


# ── failures, owners, shutdown ──


def test_a_cancel_that_raises_stops_neither_release_nor_timer() -> None:
    async def main() -> None:
        log = Log()
        registry = ReplyRegistry(**log.hooks)

        def broken(reason: CancelReason) -> None:
            raise OSError("no")

        reply = running(registry, Recording(broken))
        reply.abort()
        assert reply.state.settle_armed
        assert [str(failure.error) for failure in log.failures] == ["no"]
        other = running(registry, Recording(lambda reason: hang_up()), "other", "s2")
        other.evict()
        assert registry.holder("other") is None
        await asyncio.sleep(61)
        assert registry.replies == ()
        assert [str(failure.error) for failure in log.failures] == ["no", "late"]

    async def hang_up() -> None:
        await asyncio.sleep(1)
        raise OSError("late")

    run_virtual(main())


@story
async def test_an_owner_that_fails_or_is_cancelled_gives_its_slot_back(clock: VirtualClock, log: Log) -> None:
    registry = ReplyRegistry(**log.hooks)
    kept: list[Reply] = []

    async def owner() -> None:
        with registry.begin("chat", "s1") as reply:
            kept.append(reply)
            await asyncio.sleep(10)

    def failing() -> None:
        with registry.begin("chat", "s1") as reply:
            kept.append(reply)
            raise OSError("no disk")

    task = asyncio.create_task(owner())
    await clock.settle()
    task.cancel()
    await clock.settle()
    with pytest.raises(OSError, match="no disk"):
        failing()
    async with asyncio.timeout(1):
        await asyncio.gather(*(reply.settled() for reply in kept))
    assert [reply.state.result for reply in kept] == [Result.ABORTED_BY_USER, Result.RUN_FAILED]


@story
async def test_a_shutdown_ends_every_reply_wakes_everybody_and_admits_nobody(clock: VirtualClock, log: Log) -> None:
    registry, backend = ReplyRegistry(**log.hooks), Recording()
    obedient, frozen = running(registry, backend), running(registry, Recording(), "two", "s2")
    backend.on_cancel = lambda reason: only(obedient.complete())
    frozen.commit()
    queued = asyncio.create_task(registry.begin_queued("two", "s2"))
    waits = asyncio.create_task(registry.wait_for_idle("two", 60_000))
    await clock.settle()
    caller = asyncio.create_task(registry.shutdown())
    await clock.settle()
    caller.cancel()
    await registry.shutdown()
    assert clock.now_ms == 15_000
    assert (obedient.state.result, frozen.state.result) == (Result.ABORTED_FOR_RESTART, Result.ABORTED_FOR_RESTART)
    assert await waits
    with pytest.raises(RegistryClosed):
        await queued
    with pytest.raises(RegistryClosed):
        registry.begin("three", "s3")
    assert registry.replies == ()


@story
async def test_a_shutdown_rejects_a_turn_that_waits_for_a_lane_nobody_leaves(clock: VirtualClock, log: Log) -> None:
    registry = ReplyRegistry(**log.hooks)
    reply = registry.begin("chat", "s1")
    reply.start_attempt()
    queued = asyncio.create_task(registry.begin_queued("chat", "s1"))
    other = registry.begin("other", "s2")
    other.complete(asyncio.get_running_loop().create_future())
    follow_up = asyncio.create_task(registry.begin_follow_up("other", "s2"))
    await clock.settle()
    await registry.shutdown()
    for refused in (queued, follow_up):
        with pytest.raises(RegistryClosed):
            await refused
    assert clock.now_ms == 0


@story
async def test_a_future_that_is_given_as_a_barrier_outlives_the_registry(clock: VirtualClock, log: Log) -> None:
    registry = ReplyRegistry(**log.hooks)
    barrier = asyncio.get_running_loop().create_future()
    registry.begin("chat", "s1").complete(barrier)
    await clock.settle()
    await registry.shutdown()
    assert not barrier.cancelled()


def test_a_signal_fires_once_and_reaches_every_listener() -> None:
    signal, heard = Signal[str](), list[str]()

    def broken(reason: str) -> None:
        raise OSError(reason)

    signal.listen(broken)
    signal.listen(heard.append)
    signal.listen(heard.append)()
    with pytest.raises(ExceptionGroup, match="fired for first"):
        signal.fire("first")
    signal.fire("second")
    signal.listen(heard.append)
    assert (heard, signal.reason) == (["first", "first"], "first")


def test_a_duration_of_no_known_timer_is_named() -> None:
    async def main() -> None:
        with pytest.raises(ValueError, match=r"RETRY is no timer of reply_operation, .*; they have .*Timer.SETTLE"):
            ReplyRegistry(durations_ms={turn_loop_words.Timer.RETRY: 5})
        with pytest.raises(ValueError, match="SETTLE is 0 ms, expected more than 0"):
            ReplyRegistry(durations_ms={Timer.SETTLE: 0})

    run_virtual(main())


# ── the log, and the real clock ──


async def a_day(registry: ReplyRegistry, scale: float) -> Reply:
    """A turn that is recovered, one that queues behind it, and one whose owner hangs."""
    reply = running(registry, Recording())
    queued = asyncio.create_task(registry.begin_queued("chat", "s1"))
    waits = asyncio.create_task(registry.wait_for_session_idle("s1", round(90_000 * scale)))
    await asyncio.sleep(0)
    reply.rotate("s2")
    reply.recover()
    reply.attach("run-2", Recording())
    await asyncio.sleep(30 * scale)
    reply.complete(asyncio.sleep(1 * scale))
    assert await waits
    await reply.settled()
    next_one = await queued
    next_one.enter(Phase.RUNNING)
    next_one.fail(FailureCode.RUN_FAILED)
    hung = running(registry, Recording())
    hung.abort()
    assert not await registry.wait_for_idle("chat", round(30_000 * scale))
    assert await registry.wait_for_idle("chat", round(60_000 * scale))
    await registry.shutdown()
    return hung


def test_a_replay_of_the_log_follows_every_machine(tmp_path: Path) -> None:
    path = tmp_path / "day.jsonl"
    with TraceWriter(path, *MACHINES) as writer:

        async def main() -> None:
            await a_day(ReplyRegistry(trace=writer), 1)

        run_virtual(main())
    for machine in MACHINES:
        report = replay(specifications()[machine.name], path)
        assert exit_status(report.verdicts) == 0, report.text()


def test_a_monitor_of_one_machine_watches_it_in_the_registry() -> None:
    monitor = Monitor(specifications()["reply_operation"])
    run_virtual(a_clean_day(of_machines(monitor, reply_operation.MACHINE)))
    assert (monitor.first, monitor.steps > 10) == (None, True)


async def a_clean_day(trace: Trace) -> None:
    log = Log()
    await a_day(ReplyRegistry(trace=trace, on_error=log.failures.append), 1)
    assert log.failures == []


def test_the_same_day_on_the_real_clock() -> None:
    async def main() -> None:
        registry = ReplyRegistry(durations_ms={Timer.SETTLE: 150, Timer.WINDOW: 150, reply_waiter.Timer.SLICE: 1})
        hung = await a_day(registry, 1 / 400)
        assert hung.state.result is Result.ABORTED_BY_USER

    asyncio.run(main())


def test_every_name_the_shell_offers_is_there() -> None:
    assert [name for name in turnproof.shell.__all__ if not hasattr(turnproof.shell, name)] == []
    with pytest.raises(AttributeError, match="has no attribute 'Registry'"):
        turnproof.shell.__getattr__("Registry")
