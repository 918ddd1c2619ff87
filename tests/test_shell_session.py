"""A session on a clock, against a server whose events name nobody: starts, Stops, wakes, reconnects, restarts."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from registry_toys import Log, story
from shell_toys import leftovers
from wire_toys import REFUSED, UNCLEAR, Server

from turnproof.machines.session_stream import What
from turnproof.machines.session_words import AbsorbWake, Cause, HoldWake, Outcome, Past, TakeWake, Turn
from turnproof.shell import VirtualClock
from turnproof.shell.session import Session
from turnproof.shell.session_transport import QuestionUnanswered, SessionBusy, StopFailed, StreamDown, TurnEnd

COMPLETED = TurnEnd(Outcome.COMPLETED, Cause.EXECUTION)


def turn(talk: Session, content: str) -> asyncio.Task[TurnEnd]:
    return asyncio.create_task(talk.start_turn(content, prompt=content))


# ── turns and their requests ──


@story
async def test_a_turn_ends_with_the_end_of_the_execution_that_served_its_prompt(clock: VirtualClock, log: Log) -> None:
    server = Server()
    async with Session(server, **log.hooks) as talk:
        one = turn(talk, "p1")
        await clock.settle()
        with pytest.raises(SessionBusy):
            await talk.start_turn("p2")
        server.begin()
        server.end()
        await clock.settle()
        assert not one.done(), "the end of an execution that was not given the prompt"
        server.begin("p1")
        server.end()
        assert await one == COMPLETED
        failing = turn(talk, "p2")
        await clock.settle()
        server.begin("p2")
        server.end(What.FAILED)
        assert (await failing).outcome is Outcome.FAILED
    assert [word for word in server.asked if word.startswith("prompt")] == ["prompt p1", "prompt p2"]


@story
async def test_a_clear_refusal_leaves_nothing_in_doubt(clock: VirtualClock, log: Log) -> None:
    server = Server()
    server.replies["prompt"] += [REFUSED]
    async with Session(server, **log.hooks) as talk:
        assert await turn(talk, "p1") == TurnEnd(Outcome.FAILED, Cause.REQUEST)
        asked = len(server.asked)
        second = turn(talk, "p2")
        await clock.settle()
        assert server.asked[asked:] == ["prompt p2"]
        server.begin("p2")
        server.end()
        assert await second == COMPLETED


@story
async def test_an_unclear_failure_is_asked_about_before_the_next_prompt(clock: VirtualClock, log: Log) -> None:
    server = Server()
    server.replies["prompt"] += [UNCLEAR]
    async with Session(server, **log.hooks) as talk:
        assert (await turn(talk, "p1")).outcome is Outcome.FAILED
        await clock.settle()
        server.begin("p1")
        await clock.settle()
        assert await turn(talk, "p2") == TurnEnd(Outcome.FAILED, Cause.REQUEST), "the first run is still alive"
        await clock.settle()
        assert server.asked[-2:] == ["read p1", "interrupt"]
        server.end(What.INTERRUPTED)
        third = turn(talk, "p3")
        await clock.settle()
        assert server.asked[-2:] == ["read p1", "prompt p3"]
        server.begin("p3")
        server.end()
        assert await third == COMPLETED
        assert talk.state.doubt == ""


@story
async def test_a_question_without_an_answer_begins_no_turn(clock: VirtualClock, log: Log) -> None:
    server = Server()
    server.replies["prompt"] += [UNCLEAR]
    async with Session(server, **log.hooks) as talk:
        await turn(talk, "p1")
        server.past["p1"] = Past.UNDER_WAY
        server.replies["read"] += ["hangs", OSError("no route")]
        for expected in (5_000, 10_000):
            with pytest.raises(QuestionUnanswered):
                await turn(talk, "p2")
            assert (clock.now_ms, talk.state.phase) == (expected, Turn.NONE)


@story
async def test_a_preparation_that_raises_or_outlives_the_stream_begins_no_turn(clock: VirtualClock, log: Log) -> None:
    server = Server()
    fail: list[Exception] = [OSError("no model")]

    async def prepare() -> None:
        if fail:
            raise fail.pop()
        await asyncio.sleep(0.5)

    async with Session(server, prepare=prepare, **log.hooks) as talk:
        with pytest.raises(OSError, match="no model"):
            await turn(talk, "p1")
        server.replies["subscribe"] += [OSError("down")]
        second = turn(talk, "p2")
        await clock.settle()
        server.drop()
        with pytest.raises(StreamDown):
            await second
        third = turn(talk, "p3")
        await clock.advance(3_000)
        server.begin("p3")
        server.end()
        assert await third == COMPLETED
    assert [word for word in server.asked if word.startswith("prompt")] == ["prompt p3"]


@story
async def test_one_start_at_a_time(clock: VirtualClock, log: Log) -> None:
    server = Server()

    async def prepare() -> None:
        await asyncio.sleep(1)

    async with Session(server, prepare=prepare, **log.hooks) as talk:
        one = turn(talk, "p1")
        await clock.settle()
        with pytest.raises(SessionBusy):
            await talk.start_turn("p2")
        with pytest.raises(SessionBusy):
            await talk.continue_turn()
        await clock.advance(1_000)
        server.begin("p1")
        server.end()
        assert await one == COMPLETED
    assert [word for word in server.asked if word.startswith("prompt")] == ["prompt p1"]


# ── Stops ──


@story
async def test_a_stop_makes_of_a_later_success_an_interruption(clock: VirtualClock, log: Log) -> None:
    server = Server()
    async with Session(server, **log.hooks) as talk:
        one = turn(talk, "p1")
        await clock.settle()
        server.begin("p1")
        await clock.settle()
        await talk.stop()
        assert not one.done()
        server.end()
        assert (await one).outcome is Outcome.INTERRUPTED
        with pytest.raises(StopFailed, match="no turn is installed"):
            await talk.stop()


@pytest.mark.parametrize(("reply", "message"), [(False, "nothing was running"), (OSError("500"), "500")])
def test_a_stop_that_fails_leaves_the_turn_as_it_was(reply: Any, message: str) -> None:
    @story
    async def test(clock: VirtualClock, log: Log) -> None:
        server = Server()
        server.replies["interrupt"] += [reply]
        async with Session(server, **log.hooks) as talk:
            one = turn(talk, "p1")
            await clock.settle()
            server.begin("p1")
            await clock.settle()
            with pytest.raises(StopFailed, match=message):
                await talk.stop()
            server.end()
            assert await one == COMPLETED

    test()


@story
async def test_a_turn_that_is_stopped_before_its_prompt_is_sent_never_sends_it(clock: VirtualClock, log: Log) -> None:
    server = Server()

    async def inventory() -> None:
        await asyncio.sleep(2)

    for futile in (True, False):
        server.replies["interrupt"] += [not futile]
        async with Session(server, inventory=inventory, **log.hooks) as talk:
            one = turn(talk, "p1")
            await clock.advance(1_000)
            if futile:
                with pytest.raises(StopFailed):
                    await talk.stop()
            else:
                await talk.stop()
            assert await one == TurnEnd(Outcome.INTERRUPTED, Cause.STOP)
            two = turn(talk, "p2")
            await clock.advance(3_000)
            server.begin("p2")
            server.end()
            assert await two == COMPLETED
    assert [word for word in server.asked if word.startswith("prompt")] == ["prompt p2"] * 2


@story
async def test_a_stop_without_a_reply_ends_its_turn_and_the_late_end_ends_no_other(clock: VirtualClock, log: Log) -> None:
    server = Server()
    server.replies["interrupt"] += ["hangs"]
    async with Session(server, **log.hooks) as talk:
        one = turn(talk, "p1")
        await clock.settle()
        server.begin("p1")
        await clock.settle()
        cancelled, stopping = asyncio.create_task(talk.stop()), asyncio.create_task(talk.stop())
        await clock.settle()
        cancelled.cancel()
        await stopping
        assert server.asked.count("interrupt") == 1, "the second Stop joins the first"
        assert (await one, clock.now_ms) == (TurnEnd(Outcome.INTERRUPTED, Cause.STOP), 10_000)
        server.active = False
        server.past["p1"] = Past.INTERRUPTED
        two = turn(talk, "p2")
        await clock.settle()
        server.publish(What.INTERRUPTED)
        await clock.settle()
        assert not two.done()
        server.begin("p2")
        server.end()
        assert await two == COMPLETED


@story
async def test_a_stop_is_over_with_its_turn_and_ends_no_other(clock: VirtualClock, log: Log) -> None:
    server = Server()
    server.replies["interrupt"] += ["hangs"]
    async with Session(server, **log.hooks) as talk:
        one = turn(talk, "p1")
        await clock.settle()
        server.begin("p1")
        await clock.settle()
        stopping = asyncio.create_task(talk.stop())
        await clock.advance(3_000)
        server.end()
        assert (await one).outcome is Outcome.INTERRUPTED
        await stopping
        await clock.settle()
        assert clock.now_ms == 3_000
        assert [task for task in leftovers() if "interrupt" in task.get_name()] == []
        two = turn(talk, "p2")
        await clock.settle()
        server.begin("p2")
        await clock.advance(20_000)
        assert not two.done()
        server.end()
        assert await two == COMPLETED


# ── wakes and continuations ──


@story
async def test_a_continuation_that_comes_late_ends_as_its_wake_did(clock: VirtualClock, log: Log) -> None:
    """R-SES-14: what was held is told when its turn comes, also that it failed."""
    server = Server()
    async with Session(server, **log.hooks) as talk:
        for number, how in enumerate((What.FAILED, What.SUCCEEDED, What.INTERRUPTED)):
            server.begin(f"report {number}")
            server.end(how)
            await clock.settle()
        outcomes = [(await talk.continue_turn()).outcome for _ in range(3)]
        assert outcomes == [Outcome.FAILED, Outcome.COMPLETED, Outcome.INTERRUPTED]


@story
async def test_a_wake_is_offered_and_its_continuation_ends_with_it(clock: VirtualClock, log: Log) -> None:
    server, told = Server(), list[object]()
    async with Session(server, tell=told.append, **log.hooks) as talk:
        server.begin("report")
        await clock.settle()
        assert told == [HoldWake()]
        running = asyncio.create_task(talk.continue_turn())
        await clock.settle()
        assert told[1:] == [TakeWake()]
        with pytest.raises(SessionBusy):
            await talk.continue_turn()
        server.end()
        assert await running == COMPLETED
        server.begin("report 2")
        server.end()
        await clock.settle()
        assert await talk.continue_turn() == TurnEnd(Outcome.COMPLETED, Cause.REPLAY)
        assert await talk.continue_turn() == TurnEnd(Outcome.COMPLETED, Cause.REQUEST), "nothing is left to take"
        server.begin("report 3")
        await clock.settle()
        user = turn(talk, "p1")
        await clock.settle()
        assert AbsorbWake() in told
        server.publish(What.DELIVERED, "p1")
        server.end()
        assert await user == COMPLETED


@story
async def test_permission_requests_are_shown(clock: VirtualClock, log: Log) -> None:
    server, shown = Server(), list[object]()
    async with Session(server, show=shown.append, **log.hooks) as talk:
        one = turn(talk, "p1")
        await clock.settle()
        server.begin("p1")
        server.publish(What.ASKED, payload={"tool": "exec"})
        server.publish(None)
        server.end()
        await one
    assert shown == [{"tool": "exec"}]
