"""Two turns of a chat that stall, on virtual time, printed as they happen: ``python -m turnproof.examples.recovery [LOG]``.

In the first the model goes silent after a tool that only reads: the watchdog finds it, the attempt is cancelled by that name, the reply
lives on, and the fallback model answers. In the second a command hangs that may have changed the world: the attempt is stopped in
the same way, and nothing is run again. LOG (``recovery.jsonl`` unless given) has every step of every machine, for ``turnproof replay``.
"""

from __future__ import annotations

import asyncio
import logging
import sys
from enum import Enum
from pathlib import Path
from typing import Any, cast

import attrs

from turnproof.machines.kernel import TIMER_EFFECTS
from turnproof.shell import Attempt, AttemptRunner, Plan, ReplyRegistry, TraceStep, TurnResult, run_virtual
from turnproof.shell.attempt_runner import MACHINES
from turnproof.traces.writer import TraceWriter

SHOWN = ("command_lane", "reply_operation", "embedded_attempt", "tool_execution", "stuck_recovery", "failover")
"""Machines whose steps are printed; the log has them all."""
QUIET = ("StampActivity", "ReportProgress")
"""Effects that every sign of life has; not printed."""
PLAN = Plan(models=("local-small", "hosted-large"), retries=0, watch_idle=False, safe_tools=frozenset({"read_calendar"}))
"""A local model has no idle timer: only the watchdog finds out that it is silent."""


class Office:
    """The world that a tool may change."""

    def __init__(self) -> None:
        self.invoices = 0

    async def read_calendar(self) -> str:
        """Changes nothing."""
        await asyncio.sleep(2)
        return "free at three"

    async def send_invoice(self) -> str:
        """Changes the world, and never comes back."""
        self.invoices += 1
        await asyncio.Event().wait()
        return "sent"


async def think(seconds: float, answer: str) -> str:
    """What a model would say."""
    await asyncio.sleep(seconds)
    return answer


async def silence() -> str:
    """What a model says that has died."""
    await asyncio.Event().wait()
    return ""


def body(office: Office) -> Any:
    """One attempt: the loop that a runtime's author writes. It does what may stall or change the world through the attempt."""

    async def attempt(this: Attempt[str]) -> str:
        await this.model_call(think(3, "which tool?"))
        if this.prompt == "invoice":
            return await this.tool("send_invoice", office.send_invoice)
        when = await this.tool("read_calendar", office.read_calendar)
        if this.model == "local-small":
            await this.model_call(silence())
        return await this.model_call(think(4, f"You are {when}."))

    return attempt


def shown(value: object) -> str:
    """An event or effect as one writes it: ``CancelBackend(chat#1.2, stuck_recovery)``."""
    fields = [getattr(value, name) for name in attrs.fields_dict(cast("type[attrs.AttrsInstance]", type(value)))]
    words = [str(field.value) if isinstance(field, Enum) else str(field) for field in fields]
    return f"{type(value).__name__}({', '.join(words)})" if words else type(value).__name__


def told(step: TraceStep[Any, Any, Any]) -> str:
    """A step in one line; nothing for one that does nothing."""
    kept = [effect for effect in step.effects if not isinstance(effect, TIMER_EFFECTS) and type(effect).__name__ not in QUIET]
    effects = [shown(effect) for effect in kept]
    if step.machine not in SHOWN or not effects:
        return ""
    return f"{step.ts:6.0f} s  {step.machine:<16} {shown(step.event):<48} -> {', '.join(effects)}"


async def chat(log: TraceWriter) -> tuple[list[TurnResult[str]], int]:
    """Both turns, and how many invoices were sent."""
    office = Office()

    def trace(step: TraceStep[Any, Any, Any]) -> None:
        log(step)
        line = told(step)
        if line:
            print(line)

    def deliver(answer: str) -> None:
        print(f'{"":9} says: "{answer}"')

    registry = ReplyRegistry(trace=trace, timestamp=asyncio.get_running_loop().time)
    results = []
    async with AttemptRunner(registry, "chat", "session-1", body(office), PLAN, deliver=deliver) as turns:
        for prompt in ("appointment", "invoice"):
            print(f"\n{'':9} asked: {prompt}")
            results.append(await turns.run(prompt))
    await registry.shutdown()
    return results, office.invoices


def main() -> None:
    """Run both turns, and say how they ended."""
    path = Path(sys.argv[1] if len(sys.argv) > 1 else "recovery.jsonl")
    path.unlink(missing_ok=True)
    logging.basicConfig(stream=sys.stdout, format=f"{'':9} warns: %(message)s")
    with TraceWriter(path, *MACHINES) as log:
        results, invoices = run_virtual(chat(log))
    print()
    for result in results:
        models = ", then ".join(attempt.model for attempt in result.attempts)
        print(f"on {models}: {result.reply.value}, {result.action.value} because of {result.reason.value}; answer: {result.answer}")
    print(f"invoices sent: {invoices}\n\n{log.lines} steps are in {path}; judge them:\n  turnproof replay embedded_attempt {path}")


if __name__ == "__main__":
    main()
