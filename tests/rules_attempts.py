"""Turns of an attempt runner on a stage: bodies that do anything, models and tools that make trouble, recoveries, aborts and clears."""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from contextlib import aclosing
from typing import Any

from turnproof.checkers.stateful.composed import Stage
from turnproof.checkers.stateful.tally import Planted
from turnproof.machines.embedded_run import Deliver
from turnproof.machines.failover_words import Failure
from turnproof.machines.reply_operation_words import AbortReason
from turnproof.machines.stuck_recovery_words import ReportRecovery
from turnproof.shell import reply_registry
from turnproof.shell.attempt_runner import MACHINES, OWN, AttemptRunner
from turnproof.shell.attempt_runner_attempt import Attempt
from turnproof.shell.attempt_runner_words import AttemptOver, LaneCleared, NotStarted, Plan, ProviderFailure
from turnproof.shell.reply_registry import ReplyRegistry
from turnproof.shell.reply_registry_words import RegistryError

SAFE, RISKY = "look", "send"
PLAN = Plan(models=("first", "second"), profiles=("a", "b"), retries=1, limited=True, safe_tools=frozenset({SAFE}))


class Turns(Stage):
    """One session, again and again."""

    machines = MACHINES
    refusals = (RegistryError, LaneCleared, AttemptOver, NotStarted, ProviderFailure)

    async def open(self) -> None:
        self.turns = 0
        self.changed: Counter[object] = Counter()
        self.answered: Counter[object] = Counter()
        self.registry = ReplyRegistry(durations_ms=self.durations_ms(*reply_registry.MACHINES), on_error=self.failed)
        self.runner: AttemptRunner[str] = AttemptRunner(
            self.registry,
            "chat",
            "s1",
            self.body,
            PLAN,
            deliver=self.deliver,
            report=self.reported,
            durations_ms=self.durations_ms(*OWN),
        )

    async def close(self) -> None:
        await self.runner.aclose()
        await self.registry.shutdown(grace_ms=1)

    def judge(self) -> None:
        self.once("delivered", Deliver, exactly=False)
        self.once("recovered", ReportRecovery)
        self.shadow.wrong += [f"the side effect of {turn} happened {n} times" for turn, n in self.changed.items() if n > 1]
        self.shadow.wrong += [f"{turn} was answered {n} times" for turn, n in self.answered.items() if n > 1]

    def judge_end(self) -> None:
        self.shadow.wrong += [f"closed, and {reply!r} holds its slot" for reply in self.registry.replies]

    def reenter(self, rng: random.Random) -> None:
        match rng.randrange(4):
            case 0:
                self.runner.abort(rng.choice(list(AbortReason)))
            case 1:
                self.call(self.runner.recover(may_abort=rng.random() < 0.5))
            case 2:
                self.runner.clear()
            case _:
                self.turn()

    def turn(self) -> None:
        self.turns += 1
        self.call(self.runner.run(f"turn {self.turns}"))

    # ── what the runner calls ──

    async def body(self, attempt: Attempt[str]) -> str:
        """Some model calls and tools; a side effect is asked for once an attempt at most."""
        rng, changes = random.Random(self.rng.random()), 1
        for _ in range(rng.randint(0, 3)):
            match rng.randrange(6):
                case 0:
                    await attempt.model_call(self.model(rng))
                case 1:
                    async with aclosing(attempt.stream(self.parts(rng))) as parts:
                        async for _ in parts:
                            attempt.request_active()
                case 2:
                    await attempt.tool(SAFE, lambda: self.look(rng))
                case 3 if changes:
                    changes = 0
                    await attempt.tool(RISKY, lambda: self.change(attempt.prompt, rng))
                case 4:
                    with attempt.waiting(), attempt.protected():
                        await self.delay(rng)
                case _:
                    with attempt.compaction():
                        await self.delay(rng)
        return str(attempt.prompt)

    async def model(self, rng: random.Random) -> str:
        await self.delay(rng)
        if rng.random() < 0.3:
            raise ProviderFailure(rng.choice(list(Failure)), at_prompt=rng.random() < 0.5)
        return "word"

    async def parts(self, rng: random.Random) -> Any:
        for _ in range(rng.randint(0, 3)):
            await self.delay(rng)
            yield "word"

    async def look(self, rng: random.Random) -> str:
        self.done["looked"] += 1
        await self.delay(rng)
        return "seen"

    async def change(self, prompt: object, rng: random.Random) -> str:
        if rng.random() < 0.1:
            raise NotStarted
        self.changed[prompt] += 1
        await self.delay(rng)
        return "done"

    async def deliver(self, answer: str) -> None:
        self.done["delivered"] += 1
        self.answered[answer] += 1
        rng = random.Random(self.rng.random())
        await asyncio.sleep(rng.choice((0, 0, 1)))
        if rng.random() < 0.1:
            raise Planted

    def reported(self, outcome: object, reset: bool) -> None:
        self.done["recovered"] += 1
        if self.rng.random() < 0.2:
            self.trouble(self.rng)

    # ── the client ──

    async def do_turn(self, rng: random.Random) -> None:
        self.turn()

    async def do_abort(self, rng: random.Random) -> None:
        self.runner.abort(rng.choice(list(AbortReason)))

    async def do_recover(self, rng: random.Random) -> None:
        self.call(self.runner.recover(may_abort=rng.random() < 0.5))

    async def do_clear(self, rng: random.Random) -> None:
        if rng.random() < 0.3:
            self.runner.clear()
