"""The turn loop on a clock: equal calls, questions, limits, compaction, children; its log, and the real clock."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

from loop_toys import ANSWER, CALLS, Model, Script, Shop, call
from registry_toys import Log, story
from shell_toys import leftovers, until_cancelled

from turnproof.checkers.traces import replay
from turnproof.checkers.verdict import exit_status
from turnproof.machines import tool_call, turn_loop
from turnproof.machines.tool_call import Permission
from turnproof.machines.turn_loop_words import Cause, Outcome, Room, Task, Timer
from turnproof.shell import VirtualClock, run_virtual
from turnproof.shell.turn_loop import TurnLoop
from turnproof.shell.turn_loop_words import (
    FinishPart,
    Message,
    Step,
    Summary,
    UserMessage,
)
from turnproof.specs.catalog import specifications
from turnproof.traces.writer import TraceWriter

# ── guards, limits, compaction, children ──


@story
async def test_the_third_equal_call_is_asked_about_and_no_is_the_answer_where_nobody_can_be_asked(clock: VirtualClock, log: Log) -> None:
    shop = Shop()
    again: Script = [call("x"), CALLS]
    async with TurnLoop(Model(again), shop.tools, **log.hooks) as loop:
        assert (await loop.prompt("hi")).outcome is Outcome.BLOCKED
    assert shop.ran == ["x", "x"]
    answers = [True, False]

    async def ask(record: object) -> bool:
        await asyncio.sleep(1)
        return answers.pop(0)

    async with TurnLoop(Model(again), shop.tools, ask=ask, permission=lambda _: Permission.ALLOWED, **log.hooks) as loop:
        assert (await loop.prompt("hi")).outcome is Outcome.BLOCKED
    assert len(shop.ran) == 5


@story
async def test_calls_are_equal_only_within_a_run(clock: VirtualClock, log: Log) -> None:
    shop = Shop()
    twice: list[Script] = [[call("x"), CALLS], [call("x"), CALLS], ANSWER]
    async with TurnLoop(Model(*twice, *twice), shop.tools, **log.hooks) as loop:
        assert [(await loop.prompt(n)).outcome for n in range(2)] == [Outcome.COMPLETED] * 2
    assert shop.ran == ["x"] * 4


@story
async def test_a_question_is_taken_back_with_the_run(clock: VirtualClock, log: Log) -> None:
    async def ask(record: object) -> bool:
        await until_cancelled()
        return True

    shop = Shop()
    loop = TurnLoop(Model([call("x"), CALLS]), shop.tools, ask=ask, permission=lambda _: Permission.ASK, **log.hooks)
    waiting = loop.send("hi")
    await clock.advance(1_000)
    loop.cancel()
    assert ((await waiting).outcome, shop.ran, clock.now_ms) == (Outcome.ABORTED, [], 1_000)
    await clock.settle()
    assert leftovers() == set()
    await loop.aclose()


@story
async def test_the_last_step_offers_no_tools_and_is_the_last(clock: VirtualClock, log: Log) -> None:
    shop = Shop()
    model = Model([call("x"), CALLS], [call("y"), CALLS])
    async with TurnLoop(model, shop.tools, steps=2, **log.hooks) as loop:
        assert (await loop.prompt("hi")).cause is Cause.STEP_LIMIT
    assert [(request.last_step, len(request.tools)) for request in model.requests] == [(False, 2), (True, 0)]


@story
async def test_a_history_that_is_too_long_is_summed_up(clock: VirtualClock, log: Log) -> None:
    async def compact(messages: tuple[Message, ...]) -> tuple[Message, ...]:
        await asyncio.sleep(3)
        return (Summary("so far"), messages[-1])

    def read(messages: tuple[Message, ...]) -> tuple[Task, Room]:
        return Task.NONE, Room.ENOUGH if isinstance(messages[0], Summary) else Room.OVER

    model = Model(ANSWER)
    async with TurnLoop(model, read=read, compact=compact, **log.hooks) as loop:
        first = loop.send("first")
        await clock.advance(1_000)
        second = loop.send("second")
        assert (await first, (await second).outcome) == (await second, Outcome.COMPLETED)
    assert model.requests[0].messages == (Summary("so far"), UserMessage("first"), UserMessage("second"))
    async with TurnLoop(model, read=lambda _: (Task.NONE, Room.OVER), **log.hooks) as loop:
        assert (await loop.prompt("hi")).cause is Cause.COMPACTION


@story
async def test_a_child_works_before_the_answer_and_stops_with_the_run(clock: VirtualClock, log: Log) -> None:
    async def subtask(messages: tuple[Message, ...]) -> Message:
        await asyncio.sleep(5)
        return UserMessage("the child says so")

    def read(messages: tuple[Message, ...]) -> tuple[Task, Room]:
        return (Task.SUBTASK if len(messages) == 1 else Task.NONE), Room.ENOUGH

    model = Model(ANSWER)
    async with TurnLoop(model, read=read, subtask=subtask, **log.hooks) as loop:
        assert (await loop.prompt("hi")).outcome is Outcome.COMPLETED
    assert len(model.requests[0].messages) == 2
    loop = TurnLoop(model, read=read, subtask=subtask, **log.hooks)
    started, waiting = clock.now_ms, loop.send("hi")
    await clock.advance(1_000)
    loop.cancel()
    assert ((await waiting).outcome, clock.now_ms - started) == (Outcome.ABORTED, 1_000)
    await loop.aclose()


@story
async def test_a_compaction_that_is_cancelled_writes_no_step_twice(clock: VirtualClock, log: Log) -> None:
    async def compact(messages: tuple[Message, ...]) -> None:
        await until_cancelled()

    shop = Shop()
    read = lambda messages: (Task.NONE, Room.OVER if len(messages) > 1 else Room.ENOUGH)  # noqa: E731
    async with TurnLoop(Model([call("x"), CALLS]), shop.tools, read=read, compact=compact, **log.hooks) as loop:
        waiting = loop.send("hi")
        await clock.advance(2_000)
        loop.cancel()
        assert ((await waiting).outcome, clock.now_ms) == (Outcome.ABORTED, 2_000)
        assert [type(message) for message in loop.history.messages] == [UserMessage, Step]


def test_a_history_that_cannot_be_read_ends_the_run_and_is_reported() -> None:
    async def main() -> None:
        def read(messages: tuple[Message, ...]) -> tuple[Task, Room]:
            raise OSError("no disk")

        log = Log()
        async with TurnLoop(Model(ANSWER), read=read, **log.hooks) as loop:
            assert (await loop.prompt("hi")).cause is Cause.PREPARATION
        assert [str(failure.error) for failure in log.failures] == ["no disk"]

    run_virtual(main())


# ── the log, and the real clock ──


async def a_session(**more: Any) -> tuple[Model, Shop, list[Outcome]]:
    """A dead stream, a call, a cancel."""
    shop = Shop()
    model = Model([], [call("stubborn", "hang"), 0.05, FinishPart("length")], ANSWER)
    async with TurnLoop(model, shop.tools, key="session", **more) as loop:
        first = loop.send("one")
        while not shop.ran:
            await asyncio.sleep(0.005)
        loop.cancel()
        outcomes = [(await first).outcome, (await loop.prompt("two")).outcome]
    return model, shop, outcomes


def test_a_replay_of_the_log_follows_loop_and_calls(tmp_path: Path) -> None:
    path = tmp_path / "session.jsonl"
    with TraceWriter(path, turn_loop.MACHINE, tool_call.MACHINE) as writer:
        _, shop, outcomes = run_virtual(a_session(trace=writer))
    assert (shop.ran, outcomes) == (["stubborn"], [Outcome.ABORTED, Outcome.COMPLETED])
    for machine in (turn_loop.MACHINE, tool_call.MACHINE):
        report = replay(specifications()[machine.name], path)
        assert exit_status(report.verdicts) == 0, report.text()


def test_the_same_session_on_the_real_clock() -> None:
    model, shop, outcomes = asyncio.run(a_session(jitter=lambda: -1_980, durations_ms={Timer.RESAMPLE: 20, Timer.GRACE: 20}))
    assert (shop.ran, outcomes) == (["stubborn"], [Outcome.ABORTED, Outcome.COMPLETED])
    assert 15 <= model.times[1] - model.times[0] < 1_000
