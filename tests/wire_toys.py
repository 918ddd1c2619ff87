"""A server for tests of the session: one session, executions begun and ended by hand, replies as the test wants them."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator
from typing import Any

from turnproof.machines.session_stream import What
from turnproof.machines.session_words import Past
from turnproof.shell.session_transport import PromptRejected, Snapshot, WireEvent


class Server:
    """The server and the wire to it. Every request is noted; ``replies`` of an operation are used up one by one, then all is well.

    A reply is what is answered, an exception, ``"hangs"``, or seconds by which the answer is late: what was read is old by then.
    """

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.past: dict[str, Past] = {}
        self.waiting: set[str] = set()
        """Prompts that wait in the inbox."""
        self.active = False
        self.process = "first"
        self.replies: dict[str, deque[Any]] = {"prompt": deque(), "interrupt": deque(), "read": deque(), "subscribe": deque()}
        self._subscriptions: list[asyncio.Queue[WireEvent | None]] = []

    # ── what the test does ──

    def publish(self, what: What | None, item: str = "", payload: object = None) -> None:
        """To whoever is subscribed."""
        for queue in self._subscriptions:
            queue.put_nowait(WireEvent(what, item, payload))

    def begin(self, *items: str) -> None:
        """An execution starts and serves these."""
        self.active = True
        self.publish(What.STARTED)
        for item in items:
            self.past[item] = Past.UNDER_WAY
            self.publish(What.DELIVERED, item)

    def end(self, what: What = What.SUCCEEDED) -> None:
        """It ends."""
        self.active = False
        past = Past.INTERRUPTED if what is What.INTERRUPTED else Past.SUCCEEDED
        self.past = {item: past if was is Past.UNDER_WAY else was for item, was in self.past.items()}
        self.publish(what)

    def drop(self) -> None:
        """Every connection breaks."""
        for queue in self._subscriptions:
            queue.put_nowait(None)
        self._subscriptions = []

    # ── the wire ──

    async def subscribe(self) -> AsyncIterator[WireEvent]:
        await self._reply("subscribe")
        queue: asyncio.Queue[WireEvent | None] = asyncio.Queue()
        self._subscriptions.append(queue)
        return _events(queue)

    async def read(self, item: str) -> Snapshot:
        self.asked.append(f"read {item}".strip())
        snapshot = Snapshot(self.active, self.past.get(item, Past.ABSENT), self.process)
        await self._reply("read")
        return snapshot

    async def prompt(self, prompt: str, content: Any) -> None:
        self.asked.append(f"prompt {content}")
        await self._reply("prompt")

    async def interrupt(self) -> bool:
        self.asked.append("interrupt")
        return bool(await self._reply("interrupt", self.active))

    async def cancel(self, prompt: str) -> bool:
        self.asked.append(f"cancel {prompt}")
        return prompt in self.waiting

    async def _reply(self, operation: str, usual: object = None) -> object:
        await asyncio.sleep(0)
        reply = self.replies[operation].popleft() if self.replies[operation] else usual
        if isinstance(reply, float):
            await asyncio.sleep(reply)
        if reply == "hangs":
            await asyncio.Event().wait()
        if isinstance(reply, Exception):
            raise reply
        return reply


async def _events(queue: asyncio.Queue[WireEvent | None]) -> AsyncIterator[WireEvent]:
    while True:
        event = await queue.get()
        if event is None:
            return
        yield event


REFUSED = PromptRejected("no such model")
UNCLEAR = ConnectionError("502")
