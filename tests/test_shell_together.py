"""A turn loop inside an attempt: what the loop streams and runs goes through the attempt, so a stall is found and no call runs twice."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest
from loop_toys import CALLS, STOP, Model, Script, Shop, call
from registry_toys import Log, story

from turnproof.machines import failover_words
from turnproof.machines.embedded_attempt_words import Stall
from turnproof.machines.reply_operation_words import Result
from turnproof.machines.turn_loop_words import Cause, Failure, Outcome
from turnproof.shell import (
    Attempt,
    AttemptRunner,
    Plan,
    ProviderFailure,
    ReplyRegistry,
    Request,
    StreamError,
    StreamPart,
    TextPart,
    TurnLoop,
    VirtualClock,
)

HOURS = 36_000


class Through:
    """The model of an attempt, its parts going through the attempt."""

    def __init__(self, attempt: Attempt[str], model: Model) -> None:
        self.attempt, self.model = attempt, model

    def stream(self, request: Request) -> AsyncIterator[StreamPart]:
        return self.attempt.stream(self.model.stream(request))


class Agent:
    """Runs the loop of a turn inside each attempt; ``scripts`` are what each model says, request by request."""

    def __init__(self, log: Log, **scripts: list[Script]) -> None:
        self.log, self.shop = log, Shop()
        self.models = {name: Model(*script) for name, script in scripts.items()}

    async def body(self, attempt: Attempt[str]) -> str:
        async def run(name: str, what: Any) -> Any:
            return await attempt.tool(name, lambda: self.shop.tools[name](what))

        tools = {name: (lambda what, name=name: run(name, what)) for name in self.shop.tools}
        through = Through(attempt, self.models[attempt.model])
        async with TurnLoop(through, tools, key=f"{attempt.identity}/", **self.log.hooks) as loop:
            result = await loop.prompt(attempt.prompt)
        if result.outcome is not Outcome.COMPLETED:
            known = failover_words.Failure.OVERLOADED if result.cause is Cause.PROVIDER else failover_words.Failure.PLAIN
            raise ProviderFailure(known, f"the loop ended {result.outcome.value}: {result.cause.value}")
        return result.text

    def turns(self) -> AttemptRunner[str]:
        plan = Plan(models=tuple(self.models), retries=0)
        return AttemptRunner(ReplyRegistry(**self.log.hooks), "chat", "s1", self.body, plan)


ANSWER: Script = [TextPart("done"), STOP]


@story
async def test_a_stream_that_stalls_in_the_loop_reaches_the_fallback(clock: VirtualClock, log: Log) -> None:
    agent = Agent(log, small=[[TextPart("let me"), HOURS]], large=[ANSWER])
    async with agent.turns() as turns:
        result = await turns.run("hi")
    assert (result.answer, clock.now_ms, len(result.attempts)) == ("done", 120_000, 2)


@story
async def test_an_answer_with_a_call_is_one_attempt(clock: VirtualClock, log: Log) -> None:
    agent = Agent(log, small=[[call("x"), CALLS], ANSWER])
    async with agent.turns() as turns:
        result = await turns.run("buy x")
    assert (result.answer, agent.shop.ran, result.reply) == ("done", ["x"], Result.COMPLETED)


@pytest.mark.parametrize("fate", ["hangs", "silent afterwards", "broken afterwards"])
def test_a_call_that_was_run_in_the_loop_is_never_run_by_another_attempt(fate: str) -> None:
    @story
    async def test(clock: VirtualClock, log: Log) -> None:
        fatal = StreamError(Failure.FATAL)
        fates: dict[str, list[Script]] = {
            "hangs": [[call("obeys", "hang"), CALLS]],
            "silent afterwards": [[call("x"), CALLS], [HOURS]],
            "broken afterwards": [[call("x"), CALLS], [fatal]],
        }
        agent = Agent(log, small=fates[fate], large=[[call("y"), CALLS], ANSWER])
        async with agent.turns() as turns:
            result = await turns.run("buy")
        assert (len(agent.shop.ran), len(result.attempts), result.answer) == (1, 1, None)
        if fate == "hangs":
            assert result.attempts[0].outcome.stall is Stall.TOOL_EXECUTION_TIMEOUT

    test()


@story
async def test_a_loop_that_gives_up_falls_back(clock: VirtualClock, log: Log) -> None:
    agent = Agent(log, small=[[StreamError(Failure.RETRYABLE)]], large=[ANSWER])
    async with agent.turns() as turns:
        result = await turns.run("hi")
    assert (result.answer, len(agent.models["small"].requests), len(result.attempts)) == ("done", 6, 2)
    assert isinstance(result.attempts[0].error, ProviderFailure)
