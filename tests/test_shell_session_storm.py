"""A session in a storm: a server that serves, loses, delays, refuses and restarts at random, and a user who starts and stops at will."""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from typing import Any

import pytest
from registry_toys import Log
from shell_toys import leftovers
from wire_toys import REFUSED, UNCLEAR, Server

from turnproof.machines.session_stream import What
from turnproof.machines.session_words import HoldWake, Outcome, Past, ReportTurn, Turn
from turnproof.shell import virtual_time
from turnproof.shell.session import Session
from turnproof.shell.session_transport import SessionError


class Weather(Server):
    """A server that runs what it was given, one execution at a time, as chance has it."""

    def __init__(self, chance: random.Random) -> None:
        super().__init__()
        self.chance = chance
        self.sent: Counter[str] = Counter()
        self.succeeded: set[str] = set()
        self.reports = 0

    async def prompt(self, prompt: str, content: Any) -> None:
        self.sent[prompt] += 1
        await self.nap()
        fate = self.chance.random()
        if fate < 0.1:
            raise REFUSED
        if fate < 0.9:
            self.waiting.add(prompt)
        await self.nap()
        if fate > 0.8:
            raise UNCLEAR

    async def cancel(self, prompt: str) -> bool:
        await self.nap()
        taken = prompt in self.waiting
        self.waiting.discard(prompt)
        return taken

    async def interrupt(self) -> bool:
        await self.nap()
        fate = self.chance.random()
        if fate < 0.2:
            raise UNCLEAR
        if fate < 0.4:
            await asyncio.Event().wait()
        return self.active

    async def nap(self) -> None:
        await asyncio.sleep(self.chance.choice((0, 0, 0.1, 1, 12)))

    async def serve(self) -> None:
        """Run what waits; now and then a report of its own; now and then lose the stream or the process."""
        while True:
            await self.nap()
            await asyncio.sleep(0.01)
            if self.chance.random() < 0.1:
                self.drop()
            if self.chance.random() < 0.3:
                self.reports += 1
                self.waiting.add(f"report {self.reports}")
            served = [item for item in sorted(self.waiting) if self.chance.random() < 0.7]
            if not served:
                continue
            self.waiting.difference_update(served)
            self.begin(*served)
            await self.nap()
            if self.chance.random() < 0.05:
                self.active, self.process = False, f"process {self.chance.random()}"
                self.past = {item: Past.INTERRUPTED if past is Past.UNDER_WAY else past for item, past in self.past.items()}
                self.drop()
            else:
                what = self.chance.choice((What.SUCCEEDED, What.SUCCEEDED, What.INTERRUPTED, What.FAILED))
                self.succeeded.update(served if what is not What.INTERRUPTED else ())
                self.end(what)


async def some_turns(chance: random.Random) -> None:
    for _ in range(chance.randrange(3)):
        await asyncio.sleep(0)
    await asyncio.sleep(chance.choice((0, 0, 0.05, 1, 6, 11)))


@pytest.mark.parametrize("seed", range(12))
def test_every_turn_ends_once_and_none_completes_that_was_not_run(seed: int) -> None:
    chance, log = random.Random(seed), Log()
    offers: list[object] = []

    async def main() -> None:
        server = Weather(chance)
        serving = asyncio.create_task(server.serve())
        turns: dict[str, asyncio.Task[Any]] = {}
        others: list[asyncio.Task[Any]] = []
        async with Session(server, tell=offers.append, inventory=server.nap, **log.hooks) as session:
            for number in range(60):
                await some_turns(chance)
                match chance.randrange(6):
                    case 0 | 1 | 2:
                        name = f"prompt {number}"
                        turns[name] = asyncio.create_task(session.start_turn(name, prompt=name))
                    case 3:
                        others.append(asyncio.create_task(session.stop()))
                    case 4 if HoldWake() in offers:
                        offers.remove(HoldWake())
                        others.append(asyncio.create_task(session.continue_turn()))
                    case _ if others:
                        chance.choice(others).cancel()
                    case _:
                        pass
                assert session.state.phase is not Turn.USER or server.sent[session.state.item] <= 1
            serving.cancel()
            await asyncio.sleep(120)
        await asyncio.gather(*turns.values(), *others, return_exceptions=True)
        errors = [task.exception() for task in (*turns.values(), *others) if not task.cancelled()]
        assert [error for error in errors if error is not None and not isinstance(error, SessionError)] == []
        assert max(server.sent.values(), default=0) <= 1
        reported = Counter(report.prompt for report in log.effects("session", ReportTurn) if report.prompt)
        assert max(reported.values(), default=0) <= 1
        for name, task in turns.items():
            ended = not task.cancelled() and task.exception() is None
            assert ended == (reported[name] == 1)
            if ended and task.result().outcome is Outcome.COMPLETED:
                assert (server.sent[name], name in server.succeeded) == (1, True)
        assert any(reported)
        await asyncio.sleep(30)

    with virtual_time() as clock:

        async def run() -> None:
            await main()
            await clock.settle()
            assert leftovers() == set()
            assert clock.scheduled_ms() == []

        clock.run(run())
    log.check()
    assert log.failures == []
