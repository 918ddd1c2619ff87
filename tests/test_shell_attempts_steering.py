"""The attempt runner on a clock: messages steered into a run, the limit of tries, and a turn that goes on after its end."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from registry_toys import Log, story
from shell_toys import until_cancelled
from test_shell_attempts import TWO, World, answer, runner

from turnproof.checkers.traces import Monitor
from turnproof.machines.failover_words import Action, Failure, How
from turnproof.machines.steering_message import MessagePhase, MessageWithdrawn
from turnproof.shell import Attempt, NotResumable, Plan, ProviderFailure, SteeredMessage, VirtualClock
from turnproof.specs.catalog import specifications

ONE = Plan(models=("first",), retries=0)


def judge(log: Log) -> None:
    """Every step of every machine keeps the promises of its specification."""
    specs = specifications()
    monitor = Monitor(*(specs[name] for name in sorted({step.machine for step in log.steps})))
    for step in log.steps:
        monitor(step)
    assert (monitor.first, monitor.unjudged) == (None, 0)


# ── messages ──


@story
async def test_a_message_taken_before_a_stall_goes_to_the_fallback_in_its_order_and_is_delivered_once(
    clock: VirtualClock, log: Log
) -> None:
    seen: list[tuple[str, list[str]]] = []

    async def body(attempt: Attempt[str]) -> str:
        await attempt.model_call(answer("plan"))
        seen.append((attempt.model, attempt.take_messages()))
        if attempt.model == "first":
            await attempt.model_call(until_cancelled())
        await attempt.model_call(answer("ok"))
        seen.append((attempt.model, attempt.take_messages()))
        return "ok"

    async with runner(log, body) as turns:
        turn = asyncio.create_task(turns.run(prompt="hi"))
        await clock.settle()
        one, two = await turns.steer("one"), await turns.steer("two")
        assert (one.phase, two.phase) == (MessagePhase.QUEUED, MessagePhase.QUEUED)
        await asyncio.sleep(1)
        assert (one.phase, one.withdraw()) == (MessagePhase.TAKEN, False)
        assert (await turn).answer == "ok"
    assert seen == [("first", ["one", "two"]), ("second", ["one", "two"]), ("second", [])]
    assert (one.phase, two.phase, turns.take_left()) == (MessagePhase.DELIVERED, MessagePhase.DELIVERED, [])
    judge(log)


@story
async def test_what_nobody_took_and_what_comes_too_late_is_left_to_the_next_turn_once(clock: VirtualClock, log: Log) -> None:
    async with runner(log, lambda attempt: attempt.model_call(answer("ok"))) as turns:
        early = await turns.steer("early")
        turn = asyncio.create_task(turns.run("hi"))
        await clock.settle()
        waits, back = await turns.steer("waits"), await turns.steer("back")
        assert back.withdraw()
        assert not back.withdraw()
        await turn
        late = await turns.steer("late")
        assert late.withdraw()
    assert [m.phase for m in (early, waits, back, late)] == [
        MessagePhase.LEFT, MessagePhase.LEFT, MessagePhase.WITHDRAWN, MessagePhase.WITHDRAWN,
    ]  # fmt: skip
    assert (turns.take_left(), turns.take_left()) == (["early", "waits"], [])
    judge(log)


@story
async def test_a_preparation_that_raises_is_cancelled_or_is_late_accepts_nothing(clock: VirtualClock, log: Log) -> None:
    heard: list[str] = []

    async def body(attempt: Attempt[str]) -> str:
        await attempt.model_call(answer("plan"))
        await asyncio.sleep(1)
        heard.extend(attempt.take_messages())
        return await attempt.model_call(answer("ok"))

    async def ready(text: str) -> str:
        await asyncio.sleep(0.5)
        return text.upper()

    async def fails(text: str) -> str:
        raise OSError("no microphone")

    async def late(text: str) -> str:
        await asyncio.sleep(60)
        return text

    async with runner(log, body) as turns:
        turn = asyncio.create_task(turns.run("hi"))
        await clock.settle()
        slow, hangs = asyncio.create_task(turns.steer("slow", prepare=late)), asyncio.create_task(turns.steer("gone", prepare=late))
        with pytest.raises(OSError, match="no microphone"):
            await turns.steer("broken", prepare=fails)
        assert (await turns.steer("spoken", prepare=ready)).phase is MessagePhase.QUEUED
        hangs.cancel()
        await turn
        assert len(log.of("steering_message", MessageWithdrawn)) == 2, "of one that failed, and of one that nobody waits for"
        assert (await slow).phase is MessagePhase.LEFT
    assert (heard, turns.take_left()) == (["SPOKEN"], ["slow"])
    judge(log)


@story
async def test_a_message_that_a_failed_attempt_took_goes_to_the_next_one(clock: VirtualClock, log: Log) -> None:
    seen: list[list[str]] = []

    async def body(attempt: Attempt[str]) -> str:
        await attempt.model_call(answer("plan"))
        seen.append(attempt.take_messages())
        if attempt.model == "first":
            raise ProviderFailure(Failure.TIMEOUT)
        return await attempt.model_call(answer("ok"))

    async with runner(log, body) as turns:
        turn = asyncio.create_task(turns.run("hi"))
        await clock.settle()
        message = await turns.steer("one")
        await turn
    assert (seen[0], seen[-1], message.phase) == (["one"], ["one"], MessagePhase.DELIVERED)
    judge(log)


@story
async def test_a_message_prepared_in_one_turn_is_not_steered_into_the_next(clock: VirtualClock, log: Log) -> None:
    heard: list[str] = []

    async def body(attempt: Attempt[str]) -> str:
        await attempt.model_call(answer("plan"))
        await asyncio.sleep(10)
        heard.extend(attempt.take_messages())
        return await attempt.model_call(answer("ok"))

    async def late(text: str) -> str:
        await asyncio.sleep(15)
        return text

    async with runner(log, body) as turns:
        turn = asyncio.create_task(turns.run("hi"))
        await clock.settle()
        slow = asyncio.create_task(turns.steer("slow", prepare=late))
        await turn
        await turns.run("and then")
        assert (await slow).phase is MessagePhase.LEFT
    assert (heard, turns.take_left()) == ([], ["slow"])
    judge(log)


@story
async def test_another_request_that_runs_beside_it_delivers_no_message(clock: VirtualClock, log: Log) -> None:
    phases: list[MessagePhase] = []
    messages: list[SteeredMessage] = []

    async def body(attempt: Attempt[str]) -> str:
        await attempt.model_call(answer("plan"))
        attempt.take_messages()
        carries = asyncio.create_task(attempt.model_call(until_cancelled()))
        await asyncio.sleep(0)
        await attempt.model_call(answer("beside it"))
        phases.append(messages[0].phase)
        carries.cancel()
        await asyncio.wait((carries,))
        return "ok"

    async with runner(log, body) as turns:
        turn = asyncio.create_task(turns.run("hi"))
        await clock.settle()
        messages.append(await turns.steer("one"))
        await turn
    assert (phases, messages[0].phase) == ([MessagePhase.TAKEN], MessagePhase.LEFT)
    judge(log)


@story
async def test_what_a_provider_says_to_an_attempt_that_is_over_delivers_nothing(clock: VirtualClock, log: Log) -> None:
    async def stubborn() -> str:
        try:
            await until_cancelled()
        except asyncio.CancelledError:
            await asyncio.sleep(2)
        return "late"

    async def slow() -> str:
        await asyncio.sleep(10)
        return "ok"

    async def body(attempt: Attempt[str]) -> str:
        await attempt.model_call(answer("plan"))
        attempt.take_messages()
        said.append(attempt.model)
        return await attempt.model_call(stubborn() if attempt.model == "first" else slow())

    said: list[str] = []
    async with runner(log, body) as turns:
        turn = asyncio.create_task(turns.run("hi"))
        await clock.settle()
        message = await turns.steer("one")
        while "second" not in said:
            await asyncio.sleep(1)
        await asyncio.sleep(5)
        phases = [message.phase]
        await turn
    assert [*phases, message.phase] == [MessagePhase.TAKEN, MessagePhase.DELIVERED], "the second provider said nothing at first"
    judge(log)


@story
async def test_closing_in_the_middle_of_a_request_leaves_its_messages(clock: VirtualClock, log: Log) -> None:
    async def body(attempt: Attempt[str]) -> str:
        await attempt.model_call(answer("plan"))
        attempt.take_messages()
        await attempt.model_call(until_cancelled())
        return ""

    turns = runner(log, body)
    turn = asyncio.create_task(turns.run("hi"))
    await clock.settle()
    message = await turns.steer("now")
    await asyncio.sleep(1)
    await turns.aclose()
    await asyncio.wait((turn,))
    assert (message.phase, turns.take_left()) == (MessagePhase.LEFT, ["now"])
    judge(log)


@story
async def test_an_attempt_that_was_stopped_takes_no_message(clock: VirtualClock, log: Log) -> None:
    taken: list[list[str]] = []

    async def body(attempt: Attempt[str]) -> str:
        try:
            await attempt.model_call(until_cancelled())
        except asyncio.CancelledError:
            taken.append(attempt.take_messages())
            raise
        return ""

    async with runner(log, body, ONE) as turns:
        turn = asyncio.create_task(turns.run("hi"))
        await clock.settle()
        await turns.steer("now")
        await turn
    assert (taken, turns.take_left()) == ([[]], ["now"])


# ── the limit of tries ──


@pytest.mark.parametrize(
    ("failure", "tried"), [(Failure.TIMEOUT, ["first"] * 2), (Failure.OVERLOADED, ["first", "first", "second", "third"])]
)
def test_the_limit_of_tries_ends_a_run_as_its_stage_says(failure: Failure, tried: list[str]) -> None:
    async def body(attempt: Attempt[str]) -> str:
        raise ProviderFailure(failure)

    @story
    async def play(clock: VirtualClock, log: Log) -> None:
        plan = Plan(models=("first", "second", "third"), profiles=("a", "b"), retries=2, tries=2)
        async with runner(log, body, plan) as turns:
            result = await turns.run("hi")
        assert (result.action, result.answer) == (Action.RETURN_ERROR_PAYLOAD, None)
        assert [attempt.model for attempt in result.attempts] == tried
        judge(log)

    play()


@story
async def test_an_answer_of_the_last_try_is_no_limit(clock: VirtualClock, log: Log) -> None:
    async with runner(log, lambda attempt: attempt.model_call(answer("ok")), Plan(models=("first",), tries=1)) as turns:
        result = await turns.run("hi")
    assert (result.answer, result.action) == ("ok", Action.CONTINUE_NORMAL)


def test_a_plan_has_a_try() -> None:
    with pytest.raises(ValueError, match="1 try or more, or None for no limit, not 0"):
        Plan(models=("first",), tries=0)


# ── a turn that goes on ──


@story
async def test_a_recovered_turn_is_resumed_on_its_model(clock: VirtualClock, log: Log) -> None:
    stall = [True]

    async def body(attempt: Attempt[str]) -> str:
        if stall:
            await attempt.model_call(answer("plan"))
            await asyncio.sleep(10_000)
        return await attempt.model_call(answer(attempt.prompt_as(str)))

    async with runner(log, body, TWO) as turns:
        with pytest.raises(NotResumable, match="no turn is over"):
            await turns.resume()
        turn = asyncio.create_task(turns.run("hi"))
        await asyncio.sleep(1)
        await turns.recover()
        assert (await turn).answer is None
        stall.clear()
        again = await turns.resume()
        assert (again.answer, [a.how for a in again.attempts]) == ("hi", [How.FIRST, How.RESUME])
        with pytest.raises(NotResumable, match="has its answer"):
            await turns.resume()
    judge(log)


@story
async def test_a_turn_whose_tool_may_have_changed_the_world_is_never_resumed(clock: VirtualClock, log: Log) -> None:
    world = World()

    async def body(attempt: Attempt[Any]) -> Any:
        return await attempt.tool("send", world.change_and_hang)

    async with runner(log, body, TWO) as turns:
        turn = asyncio.create_task(turns.run("hi"))
        await asyncio.sleep(1)
        await turns.recover()
        assert (await turn).answer is None
        with pytest.raises(NotResumable, match="changed the world"):
            await turns.resume()
    assert world.effects == 1
    judge(log)


@story
async def test_a_turn_is_resumed_by_one_caller(clock: VirtualClock, log: Log) -> None:
    async def body(attempt: Attempt[str]) -> str:
        if attempt.how is How.FIRST:
            raise ProviderFailure(Failure.OVERLOADED)
        return await attempt.model_call(answer("ok"))

    async with runner(log, body, ONE) as turns:
        await turns.run("hi")
        one = asyncio.create_task(turns.resume())
        await clock.settle()
        with pytest.raises(NotResumable, match="goes on already"):
            await turns.resume()
        assert (await one).answer == "ok"


@story
async def test_a_prompt_of_another_type_is_named(clock: VirtualClock, log: Log) -> None:
    async def body(attempt: Attempt[str]) -> str:
        return str(attempt.prompt_as(int))

    async with runner(log, body, ONE) as turns:
        result = await turns.run("hi")
    assert isinstance(result.error, TypeError)
    assert str(result.error).endswith("the prompt is a str, expected a int")
