"""A model that plays scripts and tools that count, for tests of the turn loop."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import Any

from shell_toys import until_cancelled

from turnproof.shell.turn_loop_words import CallPart, FinishPart, Request, StreamPart, TextPart

Script = list[StreamPart | Exception | float]
"""Parts to say; a number waits for so many seconds, an exception breaks the stream."""

STOP, CALLS = FinishPart("stop"), FinishPart("tool-calls")
ANSWER: Script = [TextPart("hello"), STOP]


class Model:
    """Plays one script a request; the last one for all that follow."""

    def __init__(self, *scripts: Script) -> None:
        self.scripts = list(scripts)
        self.requests: list[Request] = []
        self.times: list[int] = []

    async def stream(self, request: Request) -> AsyncIterator[StreamPart]:
        script = self.scripts[min(len(self.requests), len(self.scripts) - 1)]
        self.requests.append(request)
        self.times.append(round(asyncio.get_running_loop().time() * 1000))
        for part in script:
            if isinstance(part, Exception):
                raise part
            if isinstance(part, (int, float)):
                await asyncio.sleep(part)
            else:
                yield part


class Shop:
    """Tools that count."""

    def __init__(self) -> None:
        self.ran: list[Any] = []

    async def buy(self, what: Any) -> str:
        self.ran.append(what)
        await asyncio.sleep(1)
        return f"bought {what}"

    async def hang(self, what: Any) -> str:
        self.ran.append(what)
        while True:
            try:
                await until_cancelled()
            except asyncio.CancelledError:
                if what == "obeys":
                    raise
            await asyncio.sleep(2)
            return "late"

    @property
    def tools(self) -> dict[str, Callable[[Any], Any]]:
        return {"buy": self.buy, "hang": self.hang}


def call(what: str, tool: str = "buy", name: str = "") -> CallPart:
    return CallPart(name or f"call-{what}", tool, what)
