"""A turn loop on a stage: a model whose answers are drawn part by part, tools that fail, hang and obey late, people who answer or not."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import AsyncIterator
from typing import Any

from turnproof.checkers.stateful.composed import Stage
from turnproof.machines import turn_loop, turn_loop_events
from turnproof.machines.tool_call import Execute, Permission
from turnproof.machines.turn_loop_words import Failure, Room, Source, Task
from turnproof.shell.turn_loop import MACHINES, Messages, TurnLoop
from turnproof.shell.turn_loop_words import (
    CallInputPart,
    CallPart,
    CallRecord,
    FinishPart,
    HostedCallPart,
    HostedResultPart,
    PromptRefused,
    ReasoningPart,
    Request,
    StreamError,
    StreamPart,
    Summary,
    TextPart,
    Told,
)

FINISHES = ("stop", "tool-calls", "length", "content-filter", "surprise", None)


class Loops(Stage):
    """One loop, again and again."""

    machines = MACHINES
    refusals = (PromptRefused, StreamError)

    async def open(self) -> None:
        self.names = 0
        self.ran: Counter[str] = Counter()
        self.loop = TurnLoop(
            self,
            {"buy": self.tool, "hang": self.tool},
            hold_calls=self.rng.random() < 0.3,
            steps=self.rng.choice((0, 0, 3)),
            read=self.read,
            compact=self.compact,
            subtask=self.subtask,
            permission=self.permission,
            ask=self.ask,
            tell=self.told,
            silence_ms=self.rng.choice((0, 30_000)),
            durations_ms=self.durations_ms(turn_loop.MACHINE),
            on_error=self.failed,
        )

    async def close(self) -> None:
        await self.loop.aclose()

    def judge(self) -> None:
        self.once("tool", Execute, exactly=False)
        self.once("sampled", turn_loop_events.Sample, exactly=False)
        self.once("compacted", turn_loop_events.StartCompaction, exactly=False)
        self.once("subtask", turn_loop_events.StartSubtask, exactly=False)
        for kind in (turn_loop_events.PublishStatus, turn_loop_events.PublishIdle, turn_loop_events.PublishError):
            self.once(kind.__name__, kind)
        twice = [name for name, times in self.ran.items() if times > 1]
        self.shadow.wrong += [f"the call {name} ran {self.ran[name]} times" for name in twice]

    def reenter(self, rng: random.Random) -> None:
        if rng.random() < 0.3:
            self.loop.cancel()
        else:
            self.prompt(rng, Source.HARNESS)

    # ── what the loop calls ──

    async def stream(self, request: Request) -> AsyncIterator[StreamPart]:
        self.done["sampled"] += 1
        rng = random.Random(self.rng.random())
        for _ in range(rng.randint(0, 4)):
            if rng.random() < 0.15:
                await self.delay(rng)
            if rng.random() < 0.1:
                raise StreamError(rng.choice(list(Failure)), retry_after_ms=rng.choice((0, 5_000)))
            yield self.part(rng)
        if rng.random() < 0.8:
            yield FinishPart(rng.choice(FINISHES))

    def part(self, rng: random.Random) -> StreamPart:
        """The next part; a call has a name that no other call has, most times."""
        self.names += 1
        name = f"call {self.names if rng.random() < 0.9 else max(1, self.names - 1)}"
        tool = rng.choice(("buy", "buy", "hang", "none"))
        call = CallPart(name, tool, f"{name}.{self.names}")
        hosted = (HostedCallPart(name, tool, "q"), HostedResultPart(name, "found"))
        parts: tuple[StreamPart, ...] = (TextPart("word"), ReasoningPart("hm"), CallInputPart(name, tool), call, call, *hosted)
        return rng.choice(parts)

    async def tool(self, given: Any) -> str:
        self.done["tool"] += 1
        self.ran[given] += 1
        await self.delay(random.Random(self.rng.random()))
        return "done"

    def read(self, messages: Messages) -> tuple[Task, Room]:
        self.fault(0.05)
        rare = self.rng.random() < 0.2
        return (self.rng.choice(list(Task)), self.rng.choice(list(Room))) if rare else (Task.NONE, Room.ENOUGH)

    async def compact(self, messages: Messages) -> Messages | None:
        self.done["compacted"] += 1
        await self.delay(random.Random(self.rng.random()))
        return (Summary("so far"),) if self.rng.random() < 0.7 else None

    async def subtask(self, messages: Messages) -> None:
        self.done["subtask"] += 1
        await self.delay(random.Random(self.rng.random()))

    def permission(self, record: CallRecord) -> Permission:
        self.fault(0.1)
        return self.rng.choice([Permission.ALLOWED, Permission.ALLOWED, *list(Permission)])

    async def ask(self, record: CallRecord) -> bool:
        await self.delay(random.Random(self.rng.random()))
        return self.rng.random() < 0.7

    def told(self, told: Told) -> None:
        self.done[type(told).__name__] += 1
        self.fault(0.1)

    def fault(self, share: float) -> None:
        if self.rng.random() < share:
            self.trouble(self.rng)

    # ── the client ──

    def prompt(self, rng: random.Random, source: Source) -> None:
        self.call(self.loop.prompt("do it", source=source))

    async def do_prompt(self, rng: random.Random) -> None:
        self.prompt(rng, rng.choice((Source.PERSON, Source.PERSON, Source.HARNESS)))

    async def do_cancel(self, rng: random.Random) -> None:
        self.loop.cancel()
