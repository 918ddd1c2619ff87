"""What somebody writes who uses the shell: checked by mypy --strict in a test, never run. A line that is ignored must be an error."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import aclosing
from pathlib import Path
from typing import Any, assert_type

from turnproof.machines.failover_words import Failure
from turnproof.machines.kernel import Ignored, Refused, Taken
from turnproof.machines.reply_operation import MACHINE
from turnproof.machines.reply_operation_words import CancelReason, Effect, Event, Phase, ReplyOperation, Result
from turnproof.machines.session_stream import What
from turnproof.machines.session_words import Cause, Past
from turnproof.machines.turn_loop_words import Failure as StreamFailure
from turnproof.machines.turn_loop_words import Outcome
from turnproof.shell import (
    AlreadyActive,
    Attempt,
    AttemptRunner,
    Backend,
    CallPart,
    FinishPart,
    Performed,
    Plan,
    PromptRejected,
    Provider,
    ProviderFailure,
    Reply,
    ReplyRegistry,
    Request,
    Runner,
    RunResult,
    Session,
    Signal,
    Snapshot,
    StreamError,
    StreamPart,
    TextPart,
    Transport,
    TurnEnd,
    TurnLoop,
    TurnResult,
    WireEvent,
    run_virtual,
)
from turnproof.traces.writer import TraceWriter


class Run:
    """A backend."""

    async def cancel(self, reason: CancelReason) -> None:
        assert_type(reason, CancelReason)


class Deaf:
    """No backend: it takes no reason."""

    def cancel(self) -> None: ...


async def gateway(log: TraceWriter) -> Result:
    registry = ReplyRegistry(trace=log)
    upstream: Signal[Any] = Signal()
    try:
        with registry.begin("chat", "session-1", upstream=upstream) as reply:
            assert_type(reply, Reply)
            reply.enter(Phase.RUNNING)
            backend: Backend = Run()
            reply.attach("run-1", backend)
            reply.attach("run-2", Deaf())  # type: ignore[arg-type]
            reply.enter("running")  # type: ignore[arg-type]
            match reply.abort():
                case Taken(state, effects):
                    assert_type(state, ReplyOperation)
                    assert_type(effects, tuple[Effect, ...])
                case Ignored(why) | Refused(why):
                    assert_type(why, str)
    except AlreadyActive as busy:
        print(busy.key)
    await registry.shutdown()
    return reply.state.result


async def body(attempt: Attempt[str]) -> str:
    assert_type(await attempt.model_call(asyncio.sleep(1, "text")), str)

    async def count() -> int:
        return 3

    assert_type(await attempt.tool("count", count, marked_safe=True), int)
    async with aclosing(attempt.stream(words())) as stream:
        async for word in stream:
            assert_type(word, str)
    with attempt.protected(), attempt.waiting():
        raise ProviderFailure(Failure.OVERLOADED)


async def words() -> AsyncIterator[str]:
    yield "word"


async def turns(registry: ReplyRegistry) -> TurnResult[str]:
    def deliver(answer: str) -> None: ...
    def misdeliver(answer: int) -> None: ...

    plan = Plan(models=("small", "large"))
    async with AttemptRunner(registry, "chat", "session-1", body, plan, deliver=deliver) as runner:
        result = await runner.run("hello")
        assert_type(result.answer, str | None)
    AttemptRunner[str](registry, "chat", "s", body, plan, deliver=misdeliver)  # type: ignore[arg-type]
    return result


class Model:
    """A provider."""

    async def stream(self, request: Request) -> AsyncIterator[StreamPart]:
        if request.last_step:
            raise StreamError(StreamFailure.RETRYABLE, retry_after_ms=1_000)
        yield TextPart("hello")
        yield CallPart("call-1", "look", {})
        yield FinishPart("stop")


class Mute:
    """No provider."""

    async def answer(self, request: Request) -> str:
        return "hello"


async def agent() -> RunResult:
    async def look(given: Mapping[str, str]) -> str:
        return given["path"]

    provider: Provider = Model()
    async with TurnLoop(provider, {"look": look}) as loop:
        result = await loop.prompt("hi")
        assert_type(result.outcome, Outcome)
        loop.cancel()
    TurnLoop(Mute())  # type: ignore[arg-type]
    return result


class Wire:
    """A transport."""

    async def subscribe(self) -> AsyncIterator[WireEvent]:
        async def events() -> AsyncIterator[WireEvent]:
            yield WireEvent(What.STARTED)

        return events()

    async def read(self, item: str) -> Snapshot:
        return Snapshot(active=False, past=Past.ABSENT)

    async def prompt(self, prompt: str, content: Any) -> None:
        raise PromptRejected("no such model")

    async def interrupt(self) -> bool:
        return True

    async def cancel(self, prompt: str) -> bool:
        return False


async def adapter() -> TurnEnd:
    wire: Transport = Wire()
    async with Session(wire, show=print) as session:
        end = await session.start_turn("hi")
        assert_type(end.cause, Cause)
    Session(Run())  # type: ignore[arg-type]
    return end


class OneReply:
    """Handlers by hand."""

    def release(self, effect: object) -> Performed:
        return None


async def one(handlers: object) -> None:
    runner: Runner[ReplyOperation, Event, Effect] = Runner(MACHINE, handlers)
    await runner.send("no event")  # type: ignore[arg-type]


if __name__ == "__main__":
    with TraceWriter(Path("log.jsonl"), MACHINE) as writer:
        print(run_virtual(gateway(writer)).value)
