"""The turn loop on a clock: providers that answer, die, hang and break; tools that are counted; messages that join; cancel."""

from __future__ import annotations

import asyncio
import contextlib
from typing import Any

import pytest
from loop_toys import ANSWER, CALLS, STOP, Model, Script, Shop, call
from registry_toys import Log, story
from shell_toys import until_cancelled

from turnproof.machines.finish_reason import Protocol
from turnproof.machines.tool_call import CallPhase
from turnproof.machines.turn_loop_events import PublishError, PublishIdle, PublishStatus, WarnIncomplete
from turnproof.machines.turn_loop_words import Cause, Failure, Outcome, Source, Status
from turnproof.shell import VirtualClock
from turnproof.shell.turn_loop import TurnLoop
from turnproof.shell.turn_loop_words import (
    CallInputPart,
    CallPart,
    ContinueNote,
    FinishPart,
    HostedCallPart,
    HostedResultPart,
    PromptRefused,
    Request,
    Step,
    StreamError,
    StreamPart,
    TextPart,
    Told,
    UserMessage,
)

# ── answers ──


@story
async def test_an_answer_completes_the_run(clock: VirtualClock, log: Log) -> None:
    told: list[Told] = []
    async with TurnLoop(Model(ANSWER), tell=told.append, **log.hooks) as loop:
        result = await loop.prompt("hi")
        assert (result.outcome, result.text) == (Outcome.COMPLETED, "hello")
        assert loop.history.messages[0] == UserMessage("hi")
        assert isinstance(loop.history.messages[1], Step)
    assert told[0] == PublishStatus(Status.BUSY)
    assert [type(one) for one in told[-3:]] == [FinishPart, PublishStatus, PublishIdle]


@story
async def test_results_of_calls_go_back_and_each_call_runs_once(clock: VirtualClock, log: Log) -> None:
    shop = Shop()
    model = Model([CallInputPart("call-x", "buy"), call("x"), call("x"), call("y"), CALLS], ANSWER)
    async with TurnLoop(model, shop.tools, **log.hooks) as loop:
        result = await loop.prompt("buy both")
    assert (result.outcome, shop.ran) == (Outcome.COMPLETED, ["x", "y"])
    step = model.requests[1].messages[1]
    assert isinstance(step, Step)
    assert [(record.end, record.output) for record in step.calls] == [(CallPhase.DONE, "bought x"), (CallPhase.DONE, "bought y")]


@story
async def test_calls_that_are_held_run_when_a_finish_part_asks_for_them(clock: VirtualClock, log: Log) -> None:
    shop = Shop()
    model = Model([call("x"), 5, CALLS], [call("y"), 5, FinishPart("length")])
    async with TurnLoop(model, shop.tools, hold_calls=True, **log.hooks) as loop:
        waiting = loop.send("hi")
        await clock.advance(4_000)
        assert shop.ran == []
        result = await waiting
    assert (result.outcome, result.cause, shop.ran) == (Outcome.ERRORED, Cause.LENGTH, ["x"])
    last = loop.history.messages[-1]
    assert isinstance(last, Step)
    assert last.calls[0].end is CallPhase.NOT_RUN


@story
async def test_a_tool_that_fails_or_does_not_exist_is_told_to_the_model(clock: VirtualClock, log: Log) -> None:
    async def broken(what: Any) -> None:
        raise OSError("no disk")

    model = Model([call("x", "broken"), call("y", "nothing"), CALLS], ANSWER)
    async with TurnLoop(model, {"broken": broken}, **log.hooks) as loop:
        assert (await loop.prompt("hi")).outcome is Outcome.COMPLETED
    step = loop.history.messages[1]
    assert isinstance(step, Step)
    assert [record.output for record in step.calls] == ["OSError: no disk", "LookupError: no tool 'nothing'; the tools: broken"]


@story
async def test_what_the_provider_runs_is_not_run_here(clock: VirtualClock, log: Log) -> None:
    model = Model([HostedCallPart("h", "search", "q"), HostedResultPart("h", "found"), TextPart("so"), STOP])
    async with TurnLoop(model, **log.hooks) as loop:
        assert (await loop.prompt("hi")).outcome is Outcome.COMPLETED
    step = loop.history.messages[1]
    assert isinstance(step, Step)
    assert (step.calls[0].end, step.calls[0].output) == (CallPhase.DONE, "found")


@story
async def test_a_structured_output_ends_the_run_with_its_value(clock: VirtualClock, log: Log) -> None:
    model = Model([TextPart("well"), CallPart("o", "output", {"n": 1}), 60, STOP])
    async with TurnLoop(model, structured="output", **log.hooks) as loop:
        result = await loop.prompt("hi")
        assert (result.outcome, result.output, clock.now_ms) == (Outcome.COMPLETED, {"n": 1}, 0)
        step = loop.history.messages[-1]
        assert isinstance(step, Step)
        assert [(record.tool, record.end) for record in step.calls] == [("output", CallPhase.DONE)]
    async with TurnLoop(Model(ANSWER), structured="output", **log.hooks) as loop:
        assert (await loop.prompt("hi")).cause is Cause.UNSTRUCTURED


# ── dead and broken streams ──


@story
async def test_a_dead_stream_is_sampled_again_after_a_wait_and_leaves_nothing(clock: VirtualClock, log: Log) -> None:
    told: list[Told] = []
    model = Model([], ANSWER)
    async with TurnLoop(model, tell=told.append, **log.hooks) as loop:
        assert (await loop.prompt("hi")).outcome is Outcome.COMPLETED
    assert model.times == [0, 2_000]
    assert model.requests[0] is model.requests[1]
    assert len(loop.history.messages) == 2
    assert told.count(WarnIncomplete("")) == 1
    assert PublishStatus(Status.WAITING) in told


@story
async def test_a_stream_that_is_always_dead_ends_the_run_as_incomplete(clock: VirtualClock, log: Log) -> None:
    told: list[Told] = []
    model = Model([])
    async with TurnLoop(model, tell=told.append, **log.hooks) as loop:
        result = await loop.prompt("hi")
    assert (result.outcome, result.cause, len(model.requests)) == (Outcome.ERRORED, Cause.INCOMPLETE, 3)
    assert model.times == [0, 2_000, 6_000]
    assert PublishError(Cause.INCOMPLETE, "") in told


@story
async def test_a_text_that_was_cut_is_kept_and_continued_once(clock: VirtualClock, log: Log) -> None:
    model = Model([TextPart("half"), FinishPart("surprise")], ANSWER)
    async with TurnLoop(model, protocol=Protocol.MISTRAL, **log.hooks) as loop:
        assert (await loop.prompt("hi")).outcome is Outcome.COMPLETED
    messages = model.requests[1].messages
    assert [type(message) for message in messages] == [UserMessage, Step, ContinueNote]
    step = messages[1]
    assert isinstance(step, Step)
    assert step.finish is not None
    assert (step.text, step.finish.unmapped) == ("half", True)


@story
async def test_an_error_that_may_pass_is_retried_and_a_hint_is_a_minimum(clock: VirtualClock, log: Log) -> None:
    model = Model([StreamError(Failure.RETRYABLE, retry_after_ms=7_000)], [ConnectionResetError()], ANSWER)
    async with TurnLoop(model, **log.hooks) as loop:
        assert (await loop.prompt("hi")).outcome is Outcome.COMPLETED
    assert model.times == [0, 7_000, 11_000]


@story
async def test_an_error_after_a_call_never_repeats_the_request(clock: VirtualClock, log: Log) -> None:
    shop = Shop()
    model = Model([call("x"), ConnectionResetError()], ANSWER)
    async with TurnLoop(model, shop.tools, **log.hooks) as loop:
        assert (await loop.prompt("hi")).outcome is Outcome.COMPLETED
    assert (shop.ran, len(model.requests[1].messages)) == (["x"], 2)


@story
async def test_an_error_nobody_knows_is_fatal_and_silence_only_where_asked_for(clock: VirtualClock, log: Log) -> None:
    async with TurnLoop(Model([ValueError("bug")]), **log.hooks) as loop:
        assert (await loop.prompt("hi")).cause is Cause.PROVIDER
    model = Model([TextPart("a"), 600, STOP])
    async with TurnLoop(model, **log.hooks) as loop:
        assert (await loop.prompt("hi")).outcome is Outcome.COMPLETED
    model = Model([600, STOP], ANSWER)
    async with TurnLoop(model, silence_ms=30_000, **log.hooks) as loop:
        assert (await loop.prompt("hi")).outcome is Outcome.COMPLETED
    assert model.times[1] - model.times[0] == 32_000


@story
async def test_what_was_announced_and_never_came_is_written_down_as_not_run(clock: VirtualClock, log: Log) -> None:
    model = Model([TextPart("half"), CallInputPart("cut", "buy"), HostedCallPart("h", "search", "q")], ANSWER)
    async with TurnLoop(model, Shop().tools, **log.hooks) as loop:
        assert (await loop.prompt("hi")).outcome is Outcome.COMPLETED
    step = loop.history.messages[1]
    assert isinstance(step, Step)
    assert [record.end for record in step.calls] == [CallPhase.NOT_RUN, CallPhase.ORPHAN]


class Deaf:
    """A stream that is no generator, does not obey, and notes that it is closed."""

    def __init__(self) -> None:
        self.closed = 0

    def stream(self, request: Request) -> Deaf:
        return self

    def __aiter__(self) -> Deaf:
        return self

    async def __anext__(self) -> StreamPart:
        with contextlib.suppress(asyncio.CancelledError):
            await until_cancelled()
        return TextPart("late")

    async def aclose(self) -> None:
        self.closed += 1


@story
async def test_a_stream_is_closed_and_what_it_says_after_a_cancel_is_not_kept(clock: VirtualClock, log: Log) -> None:
    deaf = Deaf()
    async with TurnLoop(deaf, **log.hooks) as loop:
        waiting = loop.send("hi")
        await clock.advance(1_000)
        loop.cancel()
        assert (await waiting).outcome is Outcome.ABORTED
        step = loop.history.messages[1]
        assert isinstance(step, Step)
        assert step.text == ""
    assert deaf.closed == 1


# ── messages, cancel, close ──


@story
async def test_a_message_joins_the_run_and_both_callers_get_its_result(clock: VirtualClock, log: Log) -> None:
    model = Model([TextPart("one"), 5, STOP], [TextPart("two"), STOP])
    async with TurnLoop(model, **log.hooks) as loop:
        first = loop.send("first")
        await clock.advance(1_000)
        second = loop.send("second")
        assert await first == await second
    kinds = [type(message) for message in model.requests[1].messages]
    assert kinds == [UserMessage, Step, UserMessage]
    assert model.requests[1].messages[-1] == UserMessage("second")


@story
async def test_a_message_while_a_run_is_stopped_is_answered_by_the_next_run(clock: VirtualClock, log: Log) -> None:
    shop = Shop()
    model = Model([call("stubborn", "hang"), CALLS], ANSWER)
    async with TurnLoop(model, shop.tools, **log.hooks) as loop:
        first = loop.send("first")
        await clock.advance(1_000)
        assert loop.cancel()
        second = loop.send("second")
        assert ((await first).outcome, clock.now_ms) == (Outcome.ABORTED, 1_250)
        assert (await second).outcome is Outcome.COMPLETED
        await clock.advance(5_000)
    step = loop.history.messages[1]
    assert isinstance(step, Step)
    assert step.calls[0].end is CallPhase.ORPHAN
    assert step.calls[0].output is None


@story
async def test_a_cancel_stops_stream_calls_and_waits(clock: VirtualClock, log: Log) -> None:
    shop = Shop()
    scripts: list[Script] = [[call("obeys", "hang"), 60], []]
    for script in scripts:
        loop = TurnLoop(Model(script), shop.tools, **log.hooks)
        waiting = loop.send("hi")
        await clock.advance(1_000)
        started = clock.now_ms
        assert loop.cancel()
        assert ((await waiting).outcome, clock.now_ms) == (Outcome.ABORTED, started)
        assert not loop.cancel()
        with pytest.raises(PromptRefused, match="a person cancelled"):
            loop.send("continue", source=Source.HARNESS)
        assert len(loop.history.messages) < 3
        again = loop.send("a person again")
        await clock.settle()
        assert UserMessage("a person again") in loop.history.messages
        loop.cancel()
        assert (await again).outcome is Outcome.ABORTED
        await loop.aclose()
        with pytest.raises(PromptRefused, match="is closed"):
            loop.send("again")


@story
async def test_a_message_sent_from_inside_a_callback_begins_its_own_run(clock: VirtualClock, log: Log) -> None:
    sent: list[Any] = []

    def tell(told: Told) -> None:
        if isinstance(told, PublishError):
            sent.append(loop.send("again"))

    model = Model([ValueError("bug")], ANSWER)
    loop = TurnLoop(model, tell=tell, **log.hooks)
    assert (await loop.prompt("hi")).outcome is Outcome.ERRORED
    assert (await sent[0]).outcome is Outcome.COMPLETED
    await loop.aclose()


@story
async def test_a_message_that_waits_for_its_run_is_answered_if_the_run_is_cancelled_before_it_begins(clock: VirtualClock, log: Log) -> None:
    def tell(told: Told) -> None:
        if isinstance(told, PublishIdle):
            loop.cancel()

    shop = Shop()
    loop = TurnLoop(Model([call("stubborn", "hang"), CALLS]), shop.tools, tell=tell, **log.hooks)
    first = loop.send("first")
    await clock.advance(1_000)
    loop.cancel()
    second = loop.send("second")
    assert [(await first).outcome, (await second).outcome] == [Outcome.ABORTED, Outcome.ABORTED]
    await clock.advance(5_000)
    await loop.aclose()


@story
async def test_a_caller_that_is_cancelled_no_longer_waits_and_the_run_goes_on(clock: VirtualClock, log: Log) -> None:
    shop = Shop()
    model = Model([call("x"), CALLS], ANSWER)
    async with TurnLoop(model, shop.tools, **log.hooks) as loop:
        caller = asyncio.create_task(loop.prompt("hi"))
        await clock.advance(500)
        caller.cancel()
        await clock.advance(1_000)
        assert (len(model.requests), shop.ran) == (2, ["x"])


@story
async def test_a_cancel_before_the_stream_has_begun_aborts_the_run_at_once(clock: VirtualClock, log: Log) -> None:
    loop = TurnLoop(Model(ANSWER), **log.hooks)
    waiting = loop.send("hi")
    loop.cancel()
    assert ((await waiting).outcome, clock.now_ms) == (Outcome.ABORTED, 0)
    await loop.aclose()


@story
async def test_closing_in_the_middle_leaves_nothing(clock: VirtualClock, log: Log) -> None:
    shop = Shop()
    scripts: list[Script] = [[call("obeys", "hang"), CALLS], [60], []]
    for script in scripts:
        loop = TurnLoop(Model(script), shop.tools, **log.hooks)
        waiting = loop.send("hi")
        await clock.advance(100)
        await loop.aclose()
        await loop.aclose()
        assert (await waiting).outcome is Outcome.ABORTED
