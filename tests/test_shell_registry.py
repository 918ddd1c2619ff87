"""The reply registry on a clock: admission, waiting, ids, queue and barriers."""

from __future__ import annotations

import asyncio

import pytest
from registry_toys import Log, Recording, running, story

from turnproof.machines.kernel import Ignored, Refused, Taken
from turnproof.machines.reply_operation_words import (
    ExpiryReason,
    Phase,
)
from turnproof.machines.reply_slot import SlotPhase, TurnKind
from turnproof.machines.session_id import IdReplaced
from turnproof.shell import VirtualClock
from turnproof.shell.common import Signal
from turnproof.shell.reply_registry import ReplyRegistry
from turnproof.shell.reply_registry_words import (
    AlreadyActive,
    FollowupAdmissionBlocked,
    KeyChangeRefused,
    LaneBusy,
    QueuedTurnFirst,
    SessionIdTaken,
    SuccessorAdmissionBlocked,
)

# ── admission ──


@story
async def test_one_operation_holds_a_key_and_the_refusal_says_which(clock: VirtualClock, log: Log) -> None:
    registry = ReplyRegistry(**log.hooks)
    first = registry.begin("chat", "s1")
    with pytest.raises(AlreadyActive, match="chat: the key already has an active operation"):
        registry.begin("chat", "s1")
    with pytest.raises(SessionIdTaken, match="other: 's1': the id belongs to another operation"):
        registry.begin("other", "s1")
    assert registry.slot_state("other").phase is SlotPhase.FREE
    assert list(registry.replies) == [first]
    first.complete()
    assert list(registry.replies) == []
    assert registry.holder("chat") is registry.by_session("s1") is None
    second = registry.begin("chat", "s1")
    assert isinstance(first.complete(), Ignored)
    assert registry.holder("chat") is second
    second.complete()
    with pytest.raises(ValueError, match="neither may be empty"):
        registry.begin("", "s1")


@story
async def test_a_barrier_keeps_followups_out_until_it_settles_or_times_out(clock: VirtualClock, log: Log) -> None:
    registry = ReplyRegistry(**log.hooks)
    barrier = asyncio.get_running_loop().create_future()
    reply = registry.begin("chat", "s1")
    reply.complete(barrier)
    with pytest.raises(FollowupAdmissionBlocked):
        registry.begin("chat", "s1", kind=TurnKind.FOLLOW_UP)
    registry.begin("chat", "s1").complete()
    await clock.advance(14_999)
    with pytest.raises(FollowupAdmissionBlocked):
        registry.begin("chat", "s1", kind=TurnKind.FOLLOW_UP)
    await clock.advance(1)
    registry.begin("chat", "s1", kind=TurnKind.FOLLOW_UP).complete()
    settled = asyncio.create_task(reply.settled())
    await clock.settle()
    assert not settled.done()
    barrier.set_result(None)
    await settled


@story
async def test_a_fence_keeps_every_successor_out(clock: VirtualClock, log: Log) -> None:
    registry = ReplyRegistry(**log.hooks)
    fence = asyncio.get_running_loop().create_future()
    reply = running(registry, Recording())
    reply.expire(ExpiryReason.NO_ACTIVITY, fence)
    reply.complete()
    with pytest.raises(SuccessorAdmissionBlocked):
        registry.begin("chat", "s1")
    fence.set_result(None)
    await clock.settle()
    registry.begin("chat", "s1").complete()


@story
async def test_a_follow_up_waits_for_the_key_and_its_barriers_and_a_visible_turn_for_a_fence(clock: VirtualClock, log: Log) -> None:
    registry = ReplyRegistry(**log.hooks)
    barrier = asyncio.get_running_loop().create_future()
    reply = registry.begin("chat", "s1")
    follow_up = asyncio.create_task(registry.begin_follow_up("chat", "s1", timeout_ms=60_000))
    cancelled = asyncio.create_task(registry.begin_follow_up("chat", "s1", timeout_ms=60_000))
    await clock.advance(1_000)
    reply.complete(barrier)
    with pytest.raises(FollowupAdmissionBlocked):
        await registry.begin_follow_up("chat", "s1", timeout_ms=2_000)
    assert clock.now_ms == 3_000
    cancelled.cancel()
    barrier.set_result(None)
    begun = await follow_up
    begun.enter(Phase.RUNNING)
    begun.expire(ExpiryReason.NO_ACTIVITY, asyncio.sleep(5))
    await clock.advance(1_000)
    begun.complete()
    visible = await registry.begin_visible("chat", "s1", timeout_ms=60_000)
    assert clock.now_ms == 8_000
    with pytest.raises(AlreadyActive):
        await registry.begin_follow_up("chat", "s1", timeout_ms=1_000)
    visible.complete()


@story
async def test_a_refused_expiry_registers_no_fence(clock: VirtualClock, log: Log) -> None:
    registry = ReplyRegistry(**log.hooks)
    reply = running(registry, Recording())
    reply.commit()
    fence = asyncio.get_running_loop().create_future()
    assert isinstance(reply.expire(ExpiryReason.NO_ACTIVITY, fence), Refused)
    reply.complete()
    registry.begin("chat", "s1").complete()
    fence.set_result(None)


# ── waiting ──


@story
async def test_a_waiter_wakes_with_the_release_or_is_told_that_its_time_is_up(clock: VirtualClock, log: Log) -> None:
    registry = ReplyRegistry(**log.hooks)
    assert await registry.wait_for_idle("chat")
    reply = registry.begin("chat", "s1")
    assert not await registry.wait_for_idle("chat", 400)
    assert clock.now_ms == 400
    waits = [asyncio.create_task(registry.wait_for_idle("chat")) for _ in range(3)]
    await clock.advance(100)
    reply.complete()
    assert await asyncio.gather(*waits) == [True, True, True]
    assert clock.now_ms == 500


@story
async def test_a_cancelled_waiter_and_one_whose_signal_fired_leave_nothing(clock: VirtualClock, log: Log) -> None:
    registry = ReplyRegistry(**log.hooks)
    signal: Signal[str] = Signal()
    reply = registry.begin("chat", "s1")
    cancelled = asyncio.create_task(registry.wait_for_idle("chat"))
    signalled = asyncio.create_task(registry.wait_for_idle("chat", signal=signal))
    await clock.settle()
    assert registry.slot_state("chat").waiting == 2
    cancelled.cancel()
    signal.fire("gone")
    assert not await signalled
    with pytest.raises(asyncio.CancelledError):
        await cancelled
    assert not await registry.wait_for_idle("chat", signal=signal)
    assert registry.slot_state("chat").waiting == 0
    reply.complete()


@story
async def test_a_waiter_by_an_old_id_wakes_after_two_rotations(clock: VirtualClock, log: Log) -> None:
    registry = ReplyRegistry(**log.hooks)
    reply = registry.begin("chat", "s1")
    waits = asyncio.create_task(registry.wait_for_session_idle("s1"))
    await clock.settle()
    assert isinstance(reply.rotate("s2"), Taken)
    assert isinstance(reply.rotate("s3"), Taken)
    late = asyncio.create_task(registry.wait_for_session_idle("s2"))
    await clock.settle()
    assert registry.by_session("s1") is registry.by_session("s3") is reply
    assert log.of("session_id", IdReplaced) == [IdReplaced(reply.identity)] * 2
    reply.complete()
    assert await waits
    assert await late
    assert await registry.wait_for_session_idle("s3")
    assert registry.by_session("s1") is None


@story
async def test_an_id_of_another_key_is_refused_and_nothing_changes(clock: VirtualClock, log: Log) -> None:
    registry = ReplyRegistry(**log.hooks)
    one, two = registry.begin("one", "s1"), registry.begin("two", "s2")
    with pytest.raises(SessionIdTaken, match="one: 's2': the id belongs to another key"):
        one.rotate("s2")
    assert isinstance(one.rotate("s1"), Ignored)
    assert (one.session_id, registry.by_session("s2")) == ("s1", two)
    one.complete()
    two.complete()


@story
async def test_a_queued_reply_moves_and_whoever_waits_for_the_old_key_wakes(clock: VirtualClock, log: Log) -> None:
    registry = ReplyRegistry(**log.hooks)
    reply, other = registry.begin("old", "s1"), registry.begin("busy", "s2")
    waits = asyncio.create_task(registry.wait_for_idle("old"))
    await clock.settle()
    with pytest.raises(KeyChangeRefused, match="old to busy: the other key already has an active operation"):
        reply.move("busy")
    reply.move("new")
    assert await waits
    assert (registry.holder("old"), registry.holder("new"), reply.key) == (None, reply, "new")
    reply.enter(Phase.RUNNING)
    with pytest.raises(KeyChangeRefused, match="only while it is queued"):
        reply.move("newer")
    reply.complete()
    other.complete()
    assert registry.replies == ()


# ── the queue and the lane ──


@story
async def test_queued_turns_begin_in_order_when_slot_and_lane_are_free(clock: VirtualClock, log: Log) -> None:
    registry = ReplyRegistry(**log.hooks)
    first = registry.begin("chat", "s1")
    first.start_attempt()
    order: list[int] = []

    async def turn(number: int) -> None:
        with await registry.begin_queued("chat", "s1"):
            order.append(number)
            await asyncio.sleep(1)

    turns = [asyncio.create_task(turn(number)) for number in range(3)]
    await clock.settle()
    turns[1].cancel()
    first.complete()
    await clock.settle()
    assert order == []
    first.end_attempt()
    await asyncio.gather(*turns, return_exceptions=True)
    assert order == [0, 2]
    assert registry.slot_state("chat").queued == 0


@story
async def test_a_turn_cancelled_between_its_offer_and_its_beginning_passes_the_offer_on(clock: VirtualClock, log: Log) -> None:
    registry = ReplyRegistry(**log.hooks)
    first = registry.begin("chat", "s1")
    turns = [asyncio.create_task(registry.begin_queued("chat", "s1")) for _ in range(2)]
    await clock.settle()
    first.complete()
    with pytest.raises(QueuedTurnFirst):
        registry.begin("chat", "s1")
    visible = asyncio.create_task(registry.begin_visible("chat", "s1", timeout_ms=1_000))
    turns[0].cancel()
    (await turns[1]).complete()
    (await visible).complete()
    assert registry.slot_state("chat").phase is SlotPhase.FREE


@story
async def test_the_lane_is_not_given_to_two(clock: VirtualClock, log: Log) -> None:
    registry = ReplyRegistry(**log.hooks)
    first = registry.begin("chat", "s1")
    first.start_attempt()
    first.complete()
    second = registry.begin("chat", "s1")
    with pytest.raises(LaneBusy, match="the attempt of an earlier turn is still live"):
        second.start_attempt()
    first.end_attempt()
    second.start_attempt()
    second.complete()
    second.end_attempt()
