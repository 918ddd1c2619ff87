"""The attempt runner on a clock: streams that go silent in the middle, and attempts that speak after their end."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import aclosing

import pytest
from registry_toys import Log, story
from shell_toys import until_cancelled

from turnproof.machines.embedded_attempt_events import CallerAborted
from turnproof.machines.failover_words import Failure, How
from turnproof.machines.reply_operation_words import Result
from turnproof.machines.stuck_recovery_words import Outcome
from turnproof.shell import Attempt, AttemptRunner, Plan, ProviderFailure, ReplyRegistry, VirtualClock


async def words(count: int, pause: float, *, silent: bool = False) -> AsyncIterator[str]:
    for number in range(count):
        await asyncio.sleep(pause)
        yield f"word {number}"
    if silent:
        await until_cancelled()


@story
async def test_a_stream_that_goes_silent_in_the_middle_falls_back(clock: VirtualClock, log: Log) -> None:
    async def body(attempt: Attempt[str]) -> str:
        async with aclosing(attempt.stream(words(2, 100, silent=attempt.model == "first"))) as stream:
            return " ".join([word async for word in stream])

    plan = Plan(models=("first", "second"), retries=0)
    async with AttemptRunner(ReplyRegistry(**log.hooks), "chat", "s", body, plan) as turns:
        result = await turns.run("hi")
    assert (result.answer, clock.now_ms) == ("word 0 word 1", 200_000 + 120_000 + 200_000)


@story
async def test_the_watchdog_leaves_a_stream_alone_that_speaks(clock: VirtualClock, log: Log) -> None:
    async def body(attempt: Attempt[str]) -> str:
        async with aclosing(attempt.stream(words(10, 119))) as stream:
            return str(len([word async for word in stream]))

    plan = Plan(models=("local",), watch_idle=False)
    async with AttemptRunner(ReplyRegistry(**log.hooks), "chat", "s", body, plan) as turns:
        result = await turns.run("hi")
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
