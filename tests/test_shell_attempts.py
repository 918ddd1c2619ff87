"""The attempt runner on a clock: stalls, recoveries, fallbacks, and side effects that are counted."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import aclosing
from pathlib import Path
from typing import Any

import pytest
from registry_toys import Log, story
from shell_toys import until_cancelled

from turnproof.checkers.traces import replay
from turnproof.checkers.verdict import exit_status
from turnproof.machines import embedded_attempt, failover
from turnproof.machines.attempt_terminal import During, Ending
from turnproof.machines.embedded_attempt_events import CancelRequested
from turnproof.machines.embedded_attempt_words import Stall, Timer, ToolOutcome
from turnproof.machines.failover_words import Action, Failure, How, Reason
from turnproof.machines.reply_operation_words import CancelReason, RecoveryRequested, Result
from turnproof.machines.stuck_recovery_words import Outcome
from turnproof.machines.tool_execution import ReportEnd
from turnproof.shell import VirtualClock, run_virtual
from turnproof.shell.attempt_runner import AttemptRunner
from turnproof.shell.attempt_runner_attempt import Attempt
from turnproof.shell.attempt_runner_words import AttemptOver, LaneCleared, NotStarted, Plan, ProviderFailure
from turnproof.shell.reply_registry import ReplyRegistry
from turnproof.specs.catalog import specifications
from turnproof.traces.writer import TraceWriter

Body = Callable[[Attempt[str]], Awaitable[str]]
TWO = Plan(models=("first", "second"), retries=0)


class World:
    """Counts what may happen once only."""

    def __init__(self) -> None:
        self.effects = 0
        self.answers: list[str] = []

    async def change(self) -> str:
        self.effects += 1
        return "done"

    async def change_and_hang(self) -> str:
        self.effects += 1
        await until_cancelled()
        return "never"


def runner(log: Log, body: Body, plan: Plan = TWO, **more: Any) -> AttemptRunner[str]:
    return AttemptRunner(ReplyRegistry(**log.hooks), "chat", "s1", body, plan, **more)


async def answer(text: str) -> str:
    await asyncio.sleep(0.1)
    return text


# ── a provider that stalls ──


@story
async def test_a_silent_model_call_falls_back_to_the_next_model(clock: VirtualClock, log: Log) -> None:
    async def body(attempt: Attempt[str]) -> str:
        if attempt.model == "first":
            await attempt.model_call(until_cancelled())
        return await attempt.model_call(answer(f"from {attempt.model}"))

    world = World()
    async with runner(log, body, deliver=lambda text: world.answers.append(text)) as turns:
        result = await turns.run("hi")
        assert clock.scheduled_ms() == [], "nothing is watched between turns"
    assert (result.answer, world.answers, result.reply) == ("from second", ["from second"], Result.COMPLETED)
    assert clock.now_ms == 120_100
    first, second = result.attempts
    assert (first.outcome.ending, first.outcome.during, second.how) == (Ending.TIMEOUT_IDLE, During.PROMPT, How.NEXT_MODEL)


@story
async def test_a_retry_and_another_profile_come_before_another_model(clock: VirtualClock, log: Log) -> None:
    async def body(attempt: Attempt[str]) -> str:
        if attempt.model == "first":
            await attempt.model_call(until_cancelled())
        return await attempt.model_call(answer("ok"))

    async with runner(log, body, Plan(models=("first", "second"), profiles=("a", "b"), retries=1)) as turns:
        result = await turns.run("hi")
    assert [(a.model, a.profile, a.how) for a in result.attempts] == [
        ("first", "a", How.FIRST),
        ("first", "a", How.SAME_MODEL),
        ("first", "b", How.NEXT_PROFILE),
        ("second", "b", How.NEXT_MODEL),
    ]


@story
async def test_a_stream_that_speaks_is_not_silent(clock: VirtualClock, log: Log) -> None:
    async def parts() -> AsyncIterator[str]:
        for word in ("one", "two", "three"):
            await asyncio.sleep(119)
            yield word

    async def body(attempt: Attempt[str]) -> str:
        async with aclosing(attempt.stream(parts())) as stream:
            return " ".join([word async for word in stream])

    async with runner(log, body) as turns:
        assert (await turns.run("hi")).answer == "one two three"


@story
async def test_the_watchdog_recovers_a_local_provider_that_has_no_idle_timer(clock: VirtualClock, log: Log) -> None:
    async def body(attempt: Attempt[str]) -> str:
        if attempt.model == "first":
            await attempt.model_call(until_cancelled())
        return await attempt.model_call(answer("ok"))

    seen: list[Outcome] = []
    plan = Plan(models=("first", "second"), retries=0, watch_idle=False)
    async with runner(log, body, plan, report=lambda outcome, _: seen.append(outcome)) as turns:
        result = await turns.run("hi")
    assert (result.answer, seen) == ("ok", [Outcome.ATTEMPT_ENDED])
    assert 360_000 <= clock.now_ms <= 400_000
    assert result.attempts[0].outcome.stall is Stall.MODEL_IDLE_TIMEOUT
    assert len(log.of("reply_operation", RecoveryRequested)) == 1


@story
async def test_a_body_that_ignores_its_cancellation_is_not_waited_for_and_starts_nothing_any_more(clock: VirtualClock, log: Log) -> None:
    world, refused = World(), list[str]()

    async def body(attempt: Attempt[str]) -> str:
        if attempt.model == "first":
            try:
                await attempt.model_call(until_cancelled())
            except asyncio.CancelledError:
                await asyncio.sleep(20)
                late: tuple[Awaitable[str], ...] = (attempt.tool("exec", world.change), attempt.model_call(answer("late")))
                for call in late:
                    with pytest.raises(AttemptOver) as over:
                        await call
                    refused.append(str(over.value))
                return "late"
        await asyncio.sleep(30)
        return "in time"

    async with runner(log, body, deliver=lambda text: world.answers.append(text)) as turns:
        result = await turns.run("hi")
    assert (result.answer, world.answers, world.effects, len(refused)) == ("in time", ["in time"], 0, 2)


# ── side effects ──


@pytest.mark.parametrize("how", ["recovered", "out of time"])
def test_a_stalled_side_effecting_tool_never_replays(how: str) -> None:
    @story
    async def test(clock: VirtualClock, log: Log) -> None:
        world = World()

        async def body(attempt: Attempt[str]) -> str:
            await attempt.model_call(answer("run exec"))
            return await attempt.tool("exec", world.change_and_hang)

        async with runner(log, body, Plan(models=("first", "second"), profiles=("a", "b"), limited=True)) as turns:
            turn = asyncio.create_task(turns.run("hi"))
            if how == "recovered":
                await clock.advance(60_000)
                assert await turns.recover() is Outcome.ATTEMPT_ENDED
            result = await turn
        assert clock.now_ms == (60_000 if how == "recovered" else 600_000)
        assert (world.effects, len(result.attempts), result.answer) == (1, 1, None)
        assert (result.action, result.reply) == (Action.CONTINUE_NORMAL, Result.RUN_STALLED)
        assert result.attempts[0].outcome.tool == "exec"

    test()


@story
async def test_the_watchdog_leaves_a_long_command_alone_and_stops_it_after_a_quarter_of_an_hour(clock: VirtualClock, log: Log) -> None:
    world = World()

    async def body(attempt: Attempt[str]) -> str:
        return await attempt.tool("exec", world.change_and_hang)

    async with runner(log, body) as turns:
        result = await turns.run("hi")
    assert 900_000 <= clock.now_ms <= 960_000
    assert (world.effects, result.attempts[0].outcome.stall) == (1, Stall.TOOL_EXECUTION_TIMEOUT)


@story
async def test_an_error_after_a_side_effect_is_not_retried(clock: VirtualClock, log: Log) -> None:
    world = World()

    async def body(attempt: Attempt[str]) -> str:
        await attempt.tool("exec", world.change)
        raise ProviderFailure(Failure.OVERLOADED, "overloaded")

    async with runner(log, body) as turns:
        result = await turns.run("hi")
    assert (world.effects, result.reason, str(result.error)) == (1, Reason.NOT_REPLAY_SAFE, "overloaded")


@pytest.mark.parametrize("kind", ["listed", "marked", "gave back"])
def test_an_error_after_a_tool_that_may_run_again_is_retried(kind: str) -> None:
    @story
    async def test(clock: VirtualClock, log: Log) -> None:
        ran: list[str] = []

        async def look() -> str:
            ran.append("look")
            if kind == "gave back":
                raise NotStarted("no such file")
            return "seen"

        async def body(attempt: Attempt[str]) -> str:
            name = "look" if kind == "listed" else "other"
            try:
                await attempt.tool(name, look, marked_safe=kind == "marked")
            except NotStarted:
                ran.append("given back")
            if attempt.model == "first":
                raise ProviderFailure(Failure.OVERLOADED)
            return "ok"

        async with runner(log, body, Plan(models=("first", "second"), safe_tools=frozenset({"look"}))) as turns:
            result = await turns.run("hi")
        assert (result.answer, ran.count("look")) == ("ok", 2)

    test()


@story
async def test_a_tool_that_was_never_started_is_no_side_effect(clock: VirtualClock, log: Log) -> None:
    world = World()

    async def body(attempt: Attempt[str]) -> str:
        if attempt.model == "first":
            tool = asyncio.ensure_future(attempt.tool("exec", world.change))
            await asyncio.sleep(0)
            attempt.reply.recover()
            with pytest.raises(asyncio.CancelledError):
                await tool
        return "ok"

    async with runner(log, body) as turns:
        result = await turns.run("hi")
    assert world.effects == 0
    assert result.attempts[0].outcome.stall is Stall.TOOL_EXECUTION_TIMEOUT
    assert [end.outcome for end in log.effects("tool_execution", ReportEnd)] == [ToolOutcome.NEVER_STARTED]
    assert result.answer is None, "what timed out in a tool is not tried again, even if the tool never began"


# ── waits, protected stretches, aborts ──


@story
async def test_a_declared_wait_is_left_alone_until_its_deadline(clock: VirtualClock, log: Log) -> None:
    async def body(attempt: Attempt[str]) -> str:
        with attempt.waiting(1_800_000):
            await asyncio.sleep(1_500)
        return "approved"

    async with runner(log, body, Plan(models=("first",), limited=True)) as turns:
        turn = asyncio.create_task(turns.run("may I?"))
        await clock.advance(600_000)
        assert await turns.recover() is Outcome.KEPT_WAITING
        assert (await turn).answer == "approved"


@story
async def test_a_protected_stretch_refuses_recovery_and_abort(clock: VirtualClock, log: Log) -> None:
    async def body(attempt: Attempt[str]) -> str:
        with attempt.protected(), attempt.compaction():
            await asyncio.sleep(10)
        await until_cancelled()
        return "never"

    async with runner(log, body) as turns:
        turn = asyncio.create_task(turns.run("hi"))
        await clock.advance(5_000)
        assert await turns.recover() is Outcome.REFUSED
        assert not turns.abort()
        await clock.advance(6_000)
        assert turns.abort()
        result = await turn
    assert (result.reply, result.reason) == (Result.ABORTED_BY_USER, Reason.EXTERNAL_ABORT)


@story
async def test_a_caller_that_is_cancelled_takes_its_turn_along_and_the_next_turn_runs(clock: VirtualClock, log: Log) -> None:
    started: list[object] = []

    async def body(attempt: Attempt[str]) -> str:
        started.append(attempt.prompt)
        return await attempt.model_call(answer("ok") if attempt.prompt != "one" else until_cancelled_text())

    async def until_cancelled_text() -> str:
        await until_cancelled()
        return ""

    async with runner(log, body) as turns:
        one, two, three = (asyncio.create_task(turns.run(number)) for number in ("one", "two", "three"))
        await clock.advance(50)
        one.cancel()
        two.cancel()
        assert (await three).answer == "ok"
        with pytest.raises(asyncio.CancelledError):
            await one
    assert started == ["one", "three"]
    assert CancelReason.USER_ABORT in [event.reason for event in log.of("embedded_attempt", CancelRequested)]


@story
async def test_a_cleared_queue_rejects_and_closing_in_the_middle_leaves_nothing(clock: VirtualClock, log: Log) -> None:
    async def body(attempt: Attempt[str]) -> str:
        await attempt.tool("exec", until_cancelled)
        return "never"

    turns = runner(log, body)
    running, queued = (asyncio.create_task(turns.run(number)) for number in range(2))
    await clock.advance(1_000)
    turns.clear()
    with pytest.raises(LaneCleared):
        await queued
    await turns.aclose()
    await turns.aclose()
    with pytest.raises(asyncio.CancelledError):
        await running
    await turns.registry.shutdown()


@story
async def test_closing_before_anything_has_begun_releases_the_caller(clock: VirtualClock, log: Log) -> None:
    async def body(attempt: Attempt[str]) -> str:
        return "never"

    turns = runner(log, body)
    running = asyncio.create_task(turns.run("hi"))
    await asyncio.sleep(0)
    await turns.aclose()
    with pytest.raises(asyncio.CancelledError):
        await running


@story
async def test_a_plain_error_ends_the_turn(clock: VirtualClock, log: Log) -> None:
    async def body(attempt: Attempt[str]) -> str:
        raise ValueError("a bug")

    async with runner(log, body) as turns:
        result = await turns.run("hi")
    assert (result.reply, result.action, len(result.attempts)) == (Result.RUN_FAILED, Action.CONTINUE_NORMAL, 1)
    assert isinstance(result.error, ValueError)


# ── the log, and the real clock ──


async def a_night(registry: ReplyRegistry, scale: float, durations: Any) -> tuple[World, list[str | None]]:
    """Three turns: a stall with a fallback, a stuck command, a good one."""
    world = World()

    async def body(attempt: Attempt[str]) -> str:
        if attempt.prompt == "stall" and attempt.model == "first":
            await attempt.model_call(until_cancelled())
        if attempt.prompt == "stuck":
            await attempt.tool("exec", world.change_and_hang)
        return await attempt.model_call(answer(f"{attempt.prompt} on {attempt.model}"))

    turns = AttemptRunner(registry, "chat", "s1", body, TWO, durations_ms=durations)
    async with turns:
        waiting = [asyncio.create_task(turns.run(prompt)) for prompt in ("stall", "stuck", "good")]
        await waiting[0]
        await asyncio.sleep(30 * scale)
        assert await turns.recover() is Outcome.ATTEMPT_ENDED
        results = await asyncio.gather(*waiting)
    return world, [result.answer for result in results]


EXPECTED = ["stall on second", None, "good on first"]


def test_a_replay_of_the_log_follows_attempt_and_failover(tmp_path: Path) -> None:
    path = tmp_path / "night.jsonl"
    with TraceWriter(path, *specifications_machines()) as writer:

        async def main() -> None:
            world, answers = await a_night(ReplyRegistry(trace=writer), 1, {})
            assert (world.effects, answers) == (1, EXPECTED)

        run_virtual(main())
    for machine in (embedded_attempt.MACHINE, failover.MACHINE):
        report = replay(specifications()[machine.name], path)
        assert exit_status(report.verdicts) == 0, report.text()


def specifications_machines() -> list[Any]:
    return [spec.machine for spec in specifications().values()]


def test_the_same_night_on_the_real_clock() -> None:
    async def main() -> None:
        world, answers = await a_night(ReplyRegistry(), 1 / 1_000, {Timer.IDLE: 120})
        assert (world.effects, answers) == (1, EXPECTED)

    asyncio.run(main())
