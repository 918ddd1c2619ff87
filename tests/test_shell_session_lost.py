"""A session on a clock whose stream is lost, whose server restarts or parks a prompt, and whose callers go away."""

from __future__ import annotations

import asyncio

import pytest
from registry_toys import Log, story
from wire_toys import UNCLEAR, Server

from turnproof.machines import session, session_stop
from turnproof.machines.session_stream import What
from turnproof.machines.session_words import Cause, DropWakes, HoldWake, Outcome, Past
from turnproof.shell import VirtualClock
from turnproof.shell.session import Session
from turnproof.shell.session_transport import StreamDown, TurnEnd

COMPLETED = TurnEnd(Outcome.COMPLETED, Cause.EXECUTION)


def turn(talk: Session, content: str) -> asyncio.Task[TurnEnd]:
    return asyncio.create_task(talk.start_turn(content, prompt=content))


# ── the stream is lost ──


@story
async def test_after_a_reconnect_the_history_says_what_became_of_the_turn(clock: VirtualClock, log: Log) -> None:
    server = Server()
    async with Session(server, **log.hooks) as talk:
        one = turn(talk, "p1")
        await clock.settle()
        server.begin("p1")
        await clock.settle()
        server.drop()
        server.end()
        assert await one == TurnEnd(Outcome.COMPLETED, Cause.HISTORY)
        two = turn(talk, "p2")
        await clock.settle()
        server.begin("p2")
        await clock.settle()
        server.replies["subscribe"] += [OSError("down"), OSError("down")]
        server.drop()
        await clock.advance(5_000)
        assert not two.done()
        server.end()
        assert await two == COMPLETED


@story
async def test_what_another_process_ran_is_lost(clock: VirtualClock, log: Log) -> None:
    server = Server()
    async with Session(server, **log.hooks) as talk:
        one = turn(talk, "p1")
        await clock.settle()
        server.begin("p1")
        await clock.settle()
        server.process = "second"  # it runs something else by now
        server.drop()
        assert await one == TurnEnd(Outcome.INTERRUPTED, Cause.HISTORY)


@story
async def test_a_stream_that_cannot_be_had_again_ends_everything(clock: VirtualClock, log: Log) -> None:
    server, told = Server(), list[object]()
    async with Session(server, tell=told.append, **log.hooks) as talk:
        server.begin("report")
        await clock.settle()
        running = asyncio.create_task(talk.continue_turn())
        await clock.settle()
        server.end(What.FAILED)
        assert (await running).outcome is Outcome.FAILED
        server.begin("report 2")
        await clock.settle()
        server.replies["subscribe"] += [OSError("down")] * 5
        started = clock.now_ms
        await clock.advance(45_000)
        await clock.advance(8_000)
        assert told[-1] == DropWakes()
        assert clock.now_ms == started + 53_000
        with pytest.raises(StreamDown):
            await turn(talk, "p1")
        with pytest.raises(StreamDown):
            await talk.continue_turn()


@story
async def test_a_prompt_that_is_parked_is_taken_out_of_the_inbox(clock: VirtualClock, log: Log) -> None:
    server = Server()
    async with Session(server, **log.hooks) as talk:
        server.waiting.add("p1")
        one = turn(talk, "p1")
        await clock.advance(9_999)
        server.publish(None)
        assert "cancel p1" not in server.asked
        await clock.advance(1)
        assert await one == TurnEnd(Outcome.FAILED, Cause.REQUEST)
        assert server.asked[-2:] == ["read p1", "cancel p1"]


@story
async def test_what_is_buffered_when_the_stream_is_lost_is_lost(clock: VirtualClock, log: Log) -> None:
    server, told = Server(), list[object]()
    async with Session(server, tell=told.append, **log.hooks) as talk:
        one = turn(talk, "p1")
        await clock.advance(9_000)
        server.replies["read"] += [8.0]
        await clock.advance(2_000)
        server.begin("p1")
        server.end()
        await clock.settle()
        assert not one.done(), "events wait while the history is read"
        server.drop()
        assert await one == TurnEnd(Outcome.COMPLETED, Cause.HISTORY)
        await clock.advance(8_000)
    assert told == [], "what was buffered at the drop is lost"


@story
async def test_an_old_reading_of_a_turn_that_is_under_way_does_not_cancel_it(clock: VirtualClock, log: Log) -> None:
    server = Server()
    async with Session(server, **log.hooks) as talk:
        one = turn(talk, "p1")
        await clock.advance(9_000)
        server.replies["read"] += [8.0]
        await clock.advance(2_000)
        server.begin("p1")
        server.drop()
        await clock.advance(8_000)
        assert [word for word in server.asked if word.startswith("cancel")] == []
        server.end()
        assert (await one).outcome is Outcome.COMPLETED


@story
async def test_a_reading_about_a_turn_that_is_over_is_not_heard_by_the_next(clock: VirtualClock, log: Log) -> None:
    server = Server()
    server.replies["interrupt"] += ["hangs"]
    async with Session(server, **log.hooks) as talk:
        one = turn(talk, "p1")
        await clock.settle()
        stopping = asyncio.create_task(talk.stop())
        server.replies["read"] += [3.0]
        await clock.advance(10_000)
        await stopping
        assert (await one).cause is Cause.STOP
        two = turn(talk, "p2")
        await clock.advance(4_000)
        assert "cancel p2" not in server.asked
        server.begin("p2")
        server.end()
        assert await two == COMPLETED


@story
async def test_the_history_is_read_before_the_next_event_is_handled(clock: VirtualClock, log: Log) -> None:
    server, told = Server(), list[object]()
    async with Session(server, tell=told.append, **log.hooks) as talk:
        one = turn(talk, "p1")
        await clock.settle()
        server.active, server.past["p1"] = True, Past.UNDER_WAY
        server.drop()
        await clock.settle()
        server.end()
        server.publish(What.STARTED)
        assert await one == TurnEnd(Outcome.COMPLETED, Cause.HISTORY)
        await clock.settle()
        assert told == [HoldWake()], "the start after the end is another execution's"


@story
async def test_a_history_that_cannot_be_read_makes_the_stream_dead_too(clock: VirtualClock, log: Log) -> None:
    server = Server()
    async with Session(server, **log.hooks) as talk:
        one = turn(talk, "p1")
        await clock.settle()
        server.replies["read"] += [OSError("500")] * 5
        server.drop()
        assert await one == TurnEnd(Outcome.FAILED, Cause.STREAM)


@story
async def test_another_run_that_is_alive_does_not_keep_a_prompt_in_doubt(clock: VirtualClock, log: Log) -> None:
    server = Server()
    server.replies["prompt"] += [UNCLEAR]
    async with Session(server, **log.hooks) as talk:
        assert (await turn(talk, "p1")).outcome is Outcome.FAILED
        server.begin("report")
        await clock.settle()
        two = turn(talk, "p2")
        await clock.settle()
        assert server.asked[-2:] == ["cancel p1", "prompt p2"]
        server.publish(What.DELIVERED, "p2")
        server.end()
        assert await two == COMPLETED


# ── callers, closing ──


@story
async def test_a_caller_that_is_cancelled_no_longer_waits_and_closing_leaves_nothing(clock: VirtualClock, log: Log) -> None:
    for moment in range(12):
        server = Server()
        server.replies["prompt"] += ["hangs"] if moment % 2 else []
        talk = Session(server, key=f"{moment}.", **log.hooks)
        async with talk:
            one, caller = turn(talk, "p1"), None
            for step in range(moment):
                await asyncio.sleep(0)
                if step == 4:
                    server.begin("p1")
                if step == 6:
                    caller = asyncio.create_task(talk.stop())
                if step == 7 and caller is not None:
                    caller.cancel()
            if moment == 5:
                one.cancel()
        await talk.aclose()
        await asyncio.gather(one, *([caller] if caller else []), return_exceptions=True)


def test_a_stop_without_a_reply_on_the_real_clock() -> None:
    async def main() -> None:
        server = Server()
        server.replies["interrupt"] += ["hangs"]
        async with Session(server, durations_ms={session_stop.Timer.REPLY: 20, session.Timer.RECHECK: 5}) as one:
            turning = asyncio.create_task(one.start_turn("p1", prompt="p1"))
            await asyncio.sleep(0.02)
            assert server.asked.count("read p1") >= 1
            server.begin("p1")
            await asyncio.sleep(0.005)
            await one.stop()
            assert (await turning).cause is Cause.STOP

    asyncio.run(main())
