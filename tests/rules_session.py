"""A session on a stage: a server that publishes what it likes, replies late, wrongly or not at all, and a user who starts and stops."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator
from typing import Any

from turnproof.checkers.stateful.composed import Stage
from turnproof.machines import session_words as words
from turnproof.machines.session_start import SendPrompt
from turnproof.machines.session_stop import SendInterrupt
from turnproof.machines.session_stream import What
from turnproof.shell.session import MACHINES, Session, Told
from turnproof.shell.session_transport import PromptRejected, SessionError, Snapshot, TurnEnd, WireEvent

ITEMS = ("p1", "p2", "report")
PROMPTS = ITEMS[:2]


class Wire:
    """The transport. Each request may be troubled as the stage likes."""

    def __init__(self, stage: Sessions) -> None:
        self.stage, self.calm = stage, True
        self.queues: list[asyncio.Queue[WireEvent | None]] = []

    async def troubled(self, share: float = 0.5) -> random.Random:
        rng = random.Random(self.stage.rng.random())
        await asyncio.sleep(0)
        if not self.calm and rng.random() < share:
            await self.stage.delay(rng)
        return rng

    async def subscribe(self) -> AsyncIterator[WireEvent]:
        await self.troubled(0.3)
        queue: asyncio.Queue[WireEvent | None] = asyncio.Queue()
        self.queues.append(queue)
        return self.parts(queue)

    async def parts(self, queue: asyncio.Queue[WireEvent | None]) -> AsyncIterator[WireEvent]:
        while (event := await queue.get()) is not None:
            yield event

    async def read(self, item: str) -> Snapshot:
        rng = await self.troubled(0.3)
        return Snapshot(rng.random() < 0.5, rng.choice(list(words.Past)), rng.choice(("same", "same", "other")))

    async def prompt(self, prompt: str, content: Any) -> None:
        self.stage.done["prompt"] += 1
        self.stage.sent.append(content)
        rng = await self.troubled()
        if rng.random() < 0.2:
            raise PromptRejected("no")

    async def interrupt(self) -> bool:
        self.stage.done["interrupt"] += 1
        return (await self.troubled()).random() < 0.7

    async def cancel(self, prompt: str) -> bool:
        self.stage.done["cancel"] += 1
        return (await self.troubled()).random() < 0.5


class Sessions(Stage):
    """One session, again and again."""

    machines = MACHINES
    refusals = (SessionError, PromptRejected)

    async def open(self) -> None:
        self.wire = Wire(self)
        self.sent: list[object] = []
        self.session = Session(
            self.wire,
            tell=self.told,
            show=lambda request: self.trouble(self.rng),
            prepare=lambda: self.delay(random.Random(self.rng.random())),
            inventory=lambda: self.delay(random.Random(self.rng.random())),
            durations_ms=self.durations_ms(*MACHINES),
            on_error=self.failed,
        )
        await self.session.__aenter__()
        self.wire.calm = False

    async def close(self) -> None:
        await self.session.aclose()

    def told(self, wake: Told) -> None:
        self.done[type(wake).__name__] += 1
        self.trouble(self.rng)

    def judge(self) -> None:
        self.once("prompt", SendPrompt, exactly=False)
        self.once("interrupt", SendInterrupt, exactly=False)
        self.once("cancel", words.CancelPrompt, exactly=False)
        for kind in (words.HoldWake, words.TakeWake, words.AbsorbWake, words.DropWakes):
            self.once(kind.__name__, kind)
        self.once("turn ended", words.ReportTurn, exactly=False)
        if len(self.sent) != len(set(self.sent)):
            self.shadow.wrong.append(f"a prompt was sent twice: {self.sent}")

    def reenter(self, rng: random.Random) -> None:
        if rng.random() < 0.5:
            self.call(self.session.stop())
        else:
            self.start(rng)

    def start(self, rng: random.Random) -> None:
        self.done["turns"] += 1
        self.call(self.turn(self.session.start_turn(self.done["turns"], prompt=rng.choice(PROMPTS))))

    async def turn(self, wanted: Any) -> TurnEnd:
        end = await wanted
        self.done["turn ended"] += 1
        assert isinstance(end, TurnEnd)
        return end

    # ── the user ──

    async def do_start(self, rng: random.Random) -> None:
        self.start(rng)

    async def do_continue(self, rng: random.Random) -> None:
        self.call(self.turn(self.session.continue_turn()))

    async def do_stop(self, rng: random.Random) -> None:
        self.call(self.session.stop())

    # ── the server ──

    async def do_stream_breaks(self, rng: random.Random) -> None:
        queues, self.wire.queues = self.wire.queues, []
        for queue in queues:
            queue.put_nowait(None)

    async def do_heartbeat(self, rng: random.Random) -> None:
        self.publish(None, "", rng)

    async def do_execution(self, rng: random.Random) -> None:
        """One that serves something, from start to end."""
        self.publish(What.STARTED, "", rng)
        self.publish(What.DELIVERED, self.session.state.item if rng.random() < 0.7 else rng.choice(ITEMS), rng)
        self.publish(rng.choice((What.SUCCEEDED, What.FAILED, What.INTERRUPTED)), "", rng)

    def publish(self, what: What | None, item: str, rng: random.Random) -> None:
        for queue in self.wire.queues:
            queue.put_nowait(WireEvent(what, item, "request"))


def _published(what: What) -> Any:
    async def act(self: Sessions, rng: random.Random) -> None:
        self.publish(what, rng.choice(ITEMS) if what is What.DELIVERED else "", rng)

    return act


for _what in What:
    setattr(Sessions, f"do_{_what.value}", _published(_what))
