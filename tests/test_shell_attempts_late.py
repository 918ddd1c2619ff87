"""The attempt runner on a clock: streams that go silent in the middle, and attempts that speak after their end."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator

import pytest
from registry_toys import Log, story
from shell_toys import until_cancelled

from turnproof.machines.embedded_attempt_events import CallerAborted
from turnproof.machines.failover_words import Failure, How
from turnproof.machines.reply_operation_words import Result
from turnproof.machines.stuck_recovery_words import Outcome
from turnproof.shell import Attempt, AttemptRunner, Plan, ProviderFailure, ReplyRegistry, VirtualClock, run_virtual


async def words(count: int, pause: float, *, silent: bool = False) -> AsyncIterator[str]:
    for number in range(count):
        await asyncio.sleep(pause)
        yield f"word {number}"
    if silent:
        await until_cancelled()


@story
async def test_a_stream_that_goes_silent_in_the_middle_falls_back(clock: VirtualClock, log: Log) -> None:
    async def body(attempt: Attempt[str]) -> str:
        async with contextlib.aclosing(attempt.stream(words(2, 100, silent=attempt.model == "first"))) as stream:
            return " ".join([word async for word in stream])

    plan = Plan(models=("first", "second"), retries=0)
    async with AttemptRunner(ReplyRegistry(**log.hooks), "chat", "s", body, plan) as turns:
        result = await turns.run("hi")
    assert (result.answer, clock.now_ms) == ("word 0 word 1", 200_000 + 120_000 + 200_000)


@story
async def test_the_watchdog_leaves_a_stream_alone_that_speaks(clock: VirtualClock, log: Log) -> None:
    async def body(attempt: Attempt[str]) -> str:
        async with contextlib.aclosing(attempt.stream(words(10, 119))) as stream:
            return str(len([word async for word in stream]))

    plan = Plan(models=("local",), watch_idle=False)
    async with AttemptRunner(ReplyRegistry(**log.hooks), "chat", "s", body, plan) as turns:
        turn = asyncio.create_task(turns.run("hi"))
        await clock.advance(600_000)
        holder = turns.holder()
        assert holder is not None
        assert holder.quiet_ms == 5_000, "each word is a sign of life of the reply"
        result = await turn
    assert (result.answer, clock.now_ms) == ("10", 1_190_000)


@story
async def test_a_late_error_of_an_abandoned_attempt_is_not_the_next_ones(clock: VirtualClock, log: Log) -> None:
    async def body(attempt: Attempt[str]) -> str:
        if attempt.model == "third":
            return "ok"
        try:
            return await attempt.model_call(until_cancelled_text())
        finally:
            if attempt.model == "first":
                await asyncio.sleep(20)
                raise ProviderFailure(Failure.FORMAT)

    async def until_cancelled_text() -> str:
        await until_cancelled()
        return ""

    plan = Plan(models=("first", "second", "third"), retries=0)
    async with AttemptRunner(ReplyRegistry(**log.hooks), "chat", "s", body, plan) as turns:
        result = await turns.run("hi")
    assert (result.answer, [attempt.how for attempt in result.attempts]) == ("ok", [How.FIRST, How.NEXT_MODEL, How.NEXT_MODEL])


@story
async def test_an_attempt_that_is_over_no_longer_listens_to_the_signal_of_its_reply(clock: VirtualClock, log: Log) -> None:
    async def body(attempt: Attempt[str]) -> str:
        if attempt.model == "first":
            raise ProviderFailure(Failure.OVERLOADED)
        await until_cancelled()
        return ""

    plan = Plan(models=("first", "second"), retries=0)
    async with AttemptRunner(ReplyRegistry(**log.hooks), "chat", "s", body, plan) as turns:
        turn = asyncio.create_task(turns.run("hi"))
        await clock.advance(1_000)
        turns.abort()
        assert (await turn).reply is Result.ABORTED_BY_USER
    assert len(log.of("embedded_attempt", CallerAborted)) == 1


@pytest.mark.parametrize("settles", [True, False])
def test_a_reply_without_an_attempt_is_expired_and_its_owner_waited_for(settles: bool) -> None:
    @story
    async def test(clock: VirtualClock, log: Log) -> None:
        async def body(attempt: Attempt[str]) -> str:
            return "ok"

        registry = ReplyRegistry(**log.hooks)
        async with AttemptRunner(registry, "chat", "s", body, Plan(models=("m",))) as turns:
            reply = registry.begin("chat", "s")
            recovery = asyncio.create_task(turns.recover())
            await clock.advance(5_000)
            assert (reply.state.result, recovery.done()) == (Result.RUN_STALLED, False)
            if settles:
                reply.complete()
            assert await recovery is (Outcome.DRAINED if settles else Outcome.FORCED)
            assert clock.now_ms == (5_000 if settles else 15_000)
            assert (await turns.run("hi")).answer == "ok"

    test()


async def deaf() -> str:
    """Something that goes on for 40 s, however often it is cancelled."""
    time = asyncio.get_running_loop().time
    until = time() + 40
    while time() < until:
        with contextlib.suppress(asyncio.CancelledError):
            await asyncio.sleep(until - time())
    return "late"


@story
async def test_a_second_recovery_is_told_at_once_that_one_is_under_way(clock: VirtualClock, log: Log) -> None:
    async def body(attempt: Attempt[str]) -> str:
        return await attempt.model_call(deaf())

    async with AttemptRunner(ReplyRegistry(**log.hooks), "chat", "s", body, Plan(models=("m",), retries=0)) as turns:
        turn = asyncio.create_task(turns.run("hi"))
        await clock.advance(1_000)
        first = asyncio.create_task(turns.recover())
        await clock.settle()
        assert (await turns.recover(), clock.now_ms) == (Outcome.SKIPPED_IN_FLIGHT, 1_000)
        assert (await first, clock.now_ms) == (Outcome.ATTEMPT_ENDED, 11_000)
        assert (await turn).answer is None
        await clock.advance(40_000)


def test_closing_in_the_middle_of_a_recovery_releases_whoever_waits_for_it() -> None:
    async def body(attempt: Attempt[str]) -> str:
        return await attempt.model_call(deaf())

    async def main() -> None:
        turns = AttemptRunner(ReplyRegistry(on_error=lambda _: None), "chat", "s", body, Plan(models=("m",)))
        turn = asyncio.create_task(turns.run("hi"))
        await asyncio.sleep(1)
        recovery = asyncio.create_task(turns.recover())
        await asyncio.sleep(1)
        await turns.aclose()
        with pytest.raises(asyncio.CancelledError):
            await recovery
        with pytest.raises(asyncio.CancelledError):
            await turn
        await asyncio.sleep(60)

    run_virtual(main())


@story
async def test_an_answer_that_is_being_delivered_is_neither_aborted_nor_recovered(clock: VirtualClock, log: Log) -> None:
    delivered: list[str] = []

    async def body(attempt: Attempt[str]) -> str:
        return "answer"

    async def deliver(answer: str) -> None:
        await asyncio.sleep(5)
        delivered.append(answer)

    async with AttemptRunner(ReplyRegistry(**log.hooks), "chat", "s", body, Plan(models=("m",)), deliver=deliver) as turns:
        turn = asyncio.create_task(turns.run("hi"))
        await clock.advance(1_000)
        assert not turns.abort()
        assert await turns.recover() is Outcome.REFUSED
        assert ((await turn).reply, delivered) == (Result.COMPLETED, ["answer"])


@story
async def test_the_watchdog_asks_for_nothing_while_a_person_is_waited_for(clock: VirtualClock, log: Log) -> None:
    asked: list[Outcome] = []

    async def body(attempt: Attempt[str]) -> str:
        with attempt.waiting(1_800_000):
            await asyncio.sleep(1_500)
        return "approved"

    def report(outcome: Outcome, released: bool) -> None:
        asked.append(outcome)

    async with AttemptRunner(ReplyRegistry(**log.hooks), "chat", "s", body, Plan(models=("m",)), report=report) as turns:
        assert (await turns.run("may I?")).answer == "approved"
    assert asked == []


async def silent(attempt: Attempt[str]) -> str:
    """Nothing comes of the first model."""
    if attempt.model == "first":
        await attempt.model_call(until_cancelled())
    return "ok"


LOCAL = Plan(models=("first", "second"), retries=0, watch_idle=False)


@story
async def test_a_tick_that_comes_late_decides_nothing(clock: VirtualClock, log: Log) -> None:
    async with AttemptRunner(ReplyRegistry(**log.hooks), "chat", "s", silent, LOCAL) as turns:
        turn = asyncio.create_task(turns.run("hi"))
        await clock.advance(350_000)
        clock.loop._now += 35  # the process was busy over the tick at 360 s
        assert (await turn).answer == "ok"
        assert clock.now_ms == 385_000 + 30_000


@story
async def test_work_that_looks_alive_is_recovered_where_a_turn_waits_for_long(clock: VirtualClock, log: Log) -> None:
    async with AttemptRunner(ReplyRegistry(**log.hooks), "chat", "s", silent, LOCAL) as turns:
        first = asyncio.create_task(turns.run("one"))
        await clock.advance(299_000)
        assert await turns.recover(may_abort=False) is Outcome.OBSERVED
        second = asyncio.create_task(turns.run("two"))
        await clock.settle()
        assert await turns.recover(may_abort=False) is Outcome.OBSERVED
        await clock.advance(1_000)
        assert await turns.recover(may_abort=False) is Outcome.ATTEMPT_ENDED
        assert (await first).answer == "ok"
        second.cancel()


@story
async def test_a_run_whose_tools_end_one_after_another_makes_progress(clock: VirtualClock, log: Log) -> None:
    async def look() -> None:
        await asyncio.sleep(100)

    async def body(attempt: Attempt[str]) -> str:
        for _ in range(6):
            await attempt.tool("look", look)
            await asyncio.sleep(60)
        return "ok"

    async with AttemptRunner(ReplyRegistry(**log.hooks), "chat", "s", body, Plan(models=("m",))) as turns:
        assert (await turns.run("hi")).answer == "ok"
