"""What the rule machines of the composed shells found, each told as a story."""

from __future__ import annotations

import asyncio

import pytest
from registry_toys import Log, story
from wire_toys import UNCLEAR, Server

from turnproof.machines.session_words import Past
from turnproof.shell import VirtualClock
from turnproof.shell.session import Session
from turnproof.shell.session_transport import QuestionUnanswered


@story
async def test_an_answer_that_comes_with_the_end_of_patience_leaves_nobody_waiting(clock: VirtualClock, log: Log) -> None:
    server = Server()
    server.replies["prompt"].append(UNCLEAR)
    async with Session(server, **log.hooks) as talk:
        await asyncio.wait_for(talk.start_turn("p1", prompt="p1"), 60)
        server.past["p1"] = Past.UNDER_WAY
        server.replies["read"].append(5.0)
        began_ms = clock.now_ms
        with pytest.raises(QuestionUnanswered):
            await asyncio.wait_for(talk.start_turn("p2", prompt="p2"), 60)
        assert clock.now_ms - began_ms == 5_000
        assert "prompt p2" not in server.asked
