"""What users write and give to the composed shells may raise, hang, ignore its cancellation or be cancelled itself, at any moment."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import pytest
from loop_toys import ANSWER, CALLS, Model, Script, Shop, call
from registry_toys import Guarded, Log, Recording
from shell_toys import leftovers, until_cancelled

from turnproof.machines.failover_words import Failure
from turnproof.machines.reply_operation_words import AbortReason, CancelReason, ExpiryReason, Phase, Result
from turnproof.machines.reply_slot import SlotPhase
from turnproof.machines.tool_call import Permission
from turnproof.machines.turn_loop_words import Cause, Outcome
from turnproof.shell import (
    Attempt,
    AttemptRunner,
    Performed,
    Plan,
    ProviderFailure,
    ReplyRegistry,
    TurnLoop,
    VirtualClock,
    run_virtual,
    virtual_time,
)
from turnproof.shell.reply_registry_words import RegistryError


def broken(*_: object) -> Any:
    raise OSError("broken")


# ── one fault at a time ──


@pytest.mark.parametrize(
    ("given", "outcome", "cause"),
    [
        ({"tell": broken}, Outcome.COMPLETED, Cause.NONE),
        ({"permission": broken}, Outcome.COMPLETED, Cause.NONE),
        ({"ask": broken, "permission": lambda _: Permission.ASK}, Outcome.BLOCKED, Cause.NONE),
        ({"classify": broken, "script": [ValueError("bug")]}, Outcome.ERRORED, Cause.PROVIDER),
    ],
    ids=["tell", "permission", "ask", "classify"],
)
def test_what_a_loop_is_given_may_raise(given: dict[str, Any], outcome: Outcome, cause: Cause) -> None:
    async def main() -> None:
        log, shop = Log(), Shop()
        script: Script = given.pop("script", [call("x"), CALLS])
        async with TurnLoop(Model(script, ANSWER), shop.tools, **given, **log.hooks) as loop:
            result = await loop.prompt("hi")
        assert (result.outcome, result.cause) == (outcome, cause)
        assert {str(failure.error) for failure in log.failures} == {"broken"}
        assert shop.ran == (["x"] if "tell" in given else [])
        assert leftovers() == set()

    run_virtual(main())


def test_a_provider_that_is_no_stream_ends_the_run() -> None:
    async def main() -> None:
        class Wrong:
            def stream(self, request: object) -> Any:
                return ["no", "stream"]

        async with TurnLoop(Wrong()) as loop:
            assert (await loop.prompt("hi")).cause is Cause.PROVIDER

    run_virtual(main())


def test_a_provider_that_does_not_let_go_is_not_waited_for() -> None:
    class Stubborn:
        async def stream(self, request: object) -> AsyncIterator[Any]:
            try:
                await until_cancelled()
                yield None
            finally:
                await asyncio.sleep(60)

    async def main() -> None:
        loop = TurnLoop(Stubborn(), on_error=lambda _: None)
        waiting = loop.send("hi")
        await asyncio.sleep(1)
        loop.cancel()
        started = asyncio.get_running_loop().time()
        assert (await waiting).outcome is Outcome.ABORTED
        assert asyncio.get_running_loop().time() - started == 0.25
        await loop.aclose()
        await asyncio.sleep(120)

    run_virtual(main())


def test_a_delivery_or_a_classification_that_raises_ends_the_turn_and_the_next_one_runs() -> None:
    async def main() -> None:
        log = Log()

        async def body(attempt: Attempt[str]) -> str:
            if attempt.prompt == "fail":
                raise ValueError("a bug")
            return "answer"

        async with AttemptRunner(ReplyRegistry(**log.hooks), "chat", "s", body, Plan(models=("m",)), deliver=broken) as turns:
            result = await turns.run("hi")
            assert (result.answer, result.reply, str(result.undelivered)) == (None, Result.RUN_FAILED, "broken")
        async with AttemptRunner(ReplyRegistry(**log.hooks), "chat", "s", body, Plan(models=("m",)), classify=broken) as turns:
            assert (await turns.run("fail")).reply is Result.RUN_FAILED
            assert (await turns.run("hi")).answer == "answer"
        assert {str(failure.error) for failure in log.failures} == {"broken"}
        assert leftovers() == set()

    run_virtual(main())


def test_a_body_and_a_tool_that_never_end_do_not_hold_up_the_close() -> None:
    async def deaf() -> str:
        while True:
            try:
                await until_cancelled()
            except asyncio.CancelledError:
                await asyncio.sleep(30)
                return "late"

    async def body(attempt: Attempt[str]) -> str:
        task = asyncio.ensure_future(attempt.tool("exec", deaf))
        try:
            return await asyncio.shield(task)
        except asyncio.CancelledError:
            await asyncio.sleep(40)
            return "later"

    async def main() -> None:
        log = Log()
        turns = AttemptRunner(ReplyRegistry(**log.hooks), "chat", "s", body, Plan(models=("m",)))
        running = asyncio.create_task(turns.run("hi"))
        recovering = asyncio.create_task(turns.recover(may_abort=False))
        await asyncio.sleep(1)
        callers = [asyncio.create_task(turns.aclose()) for _ in range(2)]
        await asyncio.sleep(0)
        callers[0].cancel()
        await callers[1]
        assert asyncio.get_running_loop().time() == 6
        await asyncio.gather(running, recovering, return_exceptions=True)
        await asyncio.sleep(100)
        assert {type(failure.error) for failure in log.failures} <= {TimeoutError}
        assert leftovers() == set()

    run_virtual(main())


# ── storms: many at once, anything at any moment ──


def storm(seed: int, main: Callable[[VirtualClock, Log, random.Random], Awaitable[None]]) -> Log:
    """Run a storm; afterwards nothing is left of it."""
    escaped: list[dict[str, object]] = []
    log = Log()
    with virtual_time() as clock:
        clock.loop.set_exception_handler(lambda loop, context: escaped.append(context))

        async def run() -> None:
            await main(clock, log, random.Random(seed))
            await clock.settle()
            assert leftovers() == set()
            assert clock.scheduled_ms() == []

        clock.run(run())
    assert escaped == []
    log.check()
    return log


async def some_turns(chance: random.Random) -> None:
    """A few turns of the loop, or some time: a cancel lands between any two awaits."""
    if chance.random() < 0.6:
        for _ in range(chance.randrange(4)):
            await asyncio.sleep(0)
    else:
        await asyncio.sleep(chance.choice((0.05, 0.2, 5, 59.999, 60, 61)))


def consistent(registry: ReplyRegistry) -> None:
    """What the explored system promises, of the real objects."""
    for reply in registry.replies:
        state = registry.slot_state(reply.key)
        assert (state.phase, state.holder) == (SlotPhase.HELD, reply.identity)
        assert not reply.state.released
        assert registry.by_session(reply.session_id) is reply
    for slot in registry._slots.values():
        assert slot.state.waiting == len(slot.waiters)
        assert slot.state.queued == len(slot.queue)
        assert not slot.waiters or slot.state.phase is SlotPhase.HELD


@pytest.mark.parametrize("seed", range(12))
def test_a_storm_over_a_registry_leaves_every_key_free(seed: int) -> None:
    async def main(clock: VirtualClock, log: Log, chance: random.Random) -> None:
        registry = ReplyRegistry(**log.hooks)

        def on_cancel(reason: CancelReason) -> Performed:
            holder = registry.holder(chance.choice(KEYS))
            if holder is not None and chance.random() < 0.5:
                holder.abort(AbortReason.USER)
            return asyncio.sleep(1) if chance.random() < 0.3 else None

        async def owner(number: int) -> None:
            key = chance.choice(KEYS)
            backend = (Recording(on_cancel), Guarded(chance.random() < 0.7))[chance.randrange(2)]
            queued = chance.random() < 0.5
            begin = registry.begin_queued(key, f"s{number}") if queued else registry.begin_visible(key, f"s{number}", timeout_ms=100_000)
            with await begin as reply:
                await some_turns(chance)
                reply.enter(Phase.RUNNING)
                reply.attach(f"run-{number}", backend)
                for _ in range(chance.randrange(5)):
                    await some_turns(chance)
                    chance.choice((
                        reply.abort, reply.supersede, reply.recover, reply.commit, reply.record_activity, reply.force_clear,
                        reply.retain_failure, reply.fail, lambda: reply.expire(ExpiryReason.NO_ACTIVITY, asyncio.sleep(3)),
                        lambda: reply.rotate(f"s{number}.{chance.random()}"), lambda: reply.complete(asyncio.sleep(2)),
                    ))()  # fmt: skip
                    consistent(registry)

        async def waiter(number: int) -> None:
            for _ in range(4):
                await some_turns(chance)
                if chance.random() < 0.5:
                    await registry.wait_for_idle(chance.choice(KEYS), chance.randrange(60_000))
                else:
                    await registry.wait_for_session_idle(f"s{chance.randrange(20)}", chance.randrange(60_000))

        tasks = [asyncio.create_task((owner, waiter)[number % 3 == 2](number)) for number in range(24)]
        for _ in range(60):
            await some_turns(chance)
            consistent(registry)
            if chance.random() < 0.3:
                chance.choice(tasks).cancel()
        await registry.shutdown()
        results = await asyncio.gather(*tasks, return_exceptions=True)
        assert [r for r in results if isinstance(r, Exception) and not isinstance(r, RegistryError)] == []
        assert (registry.replies, [slot.waiters for slot in registry._slots.values() if slot.waiters]) == ((), [])

    assert storm(seed, main).failures == []


KEYS = ("one", "two", "three")


@pytest.mark.parametrize("seed", range(12))
def test_a_storm_over_turns_runs_no_side_effect_twice(seed: int) -> None:
    async def main(clock: VirtualClock, log: Log, chance: random.Random) -> None:
        effects: dict[object, int] = {}
        delivered: list[str] = []

        async def change(prompt: object) -> str:
            effects[prompt] = effects.get(prompt, 0) + 1
            await some_turns(chance)
            if chance.random() < 0.2:
                await until_cancelled()
            return "done"

        async def body(attempt: Attempt[str]) -> str:
            for _ in range(3):
                await attempt.model_call(some_turns(chance) if chance.random() < 0.8 else until_cancelled())
                if chance.random() < 0.2:
                    raise ProviderFailure(chance.choice(list(Failure)), at_prompt=chance.random() < 0.5)
                if chance.random() < 0.3:
                    try:
                        await attempt.tool("exec", lambda: change(attempt.prompt))
                    finally:
                        if chance.random() < 0.2:
                            await asyncio.sleep(30)  # it does not obey at once
                    break
            return str(attempt.prompt)

        plan = Plan(models=("a", "b"), profiles=("p", "q"), watch_idle=chance.random() < 0.5, limited=chance.random() < 0.5)
        turns = AttemptRunner(ReplyRegistry(**log.hooks), "chat", "s", body, plan, deliver=delivered.append)
        tasks = [asyncio.create_task(turns.run(number)) for number in range(12)]
        recoveries = []
        for _ in range(60):
            await some_turns(chance)
            match chance.randrange(8):
                case 0:
                    recoveries.append(asyncio.create_task(turns.recover(may_abort=chance.random() < 0.8)))
                case 1:
                    turns.abort()
                case 2:
                    chance.choice(tasks).cancel()
                case _:
                    pass
        if chance.random() < 0.5:
            await asyncio.wait(tasks, timeout=5_000)
        await turns.aclose()
        await asyncio.gather(*tasks, *recoveries, return_exceptions=True)
        await turns.registry.shutdown()
        await asyncio.sleep(100)
        assert max(effects.values(), default=0) <= 1
        assert len(delivered) == len(set(delivered))

    log = storm(seed, main)
    assert {type(failure.error) for failure in log.failures} <= {TimeoutError}


@pytest.mark.parametrize("seed", range(12))
def test_a_storm_over_a_loop_answers_every_message_once(seed: int) -> None:
    async def main(clock: VirtualClock, log: Log, chance: random.Random) -> None:
        shop = Shop()
        scripts: list[Script] = [
            ANSWER, [], [call("x"), CALLS], [call("hangs", "hang"), CALLS], [ConnectionResetError()], [0.5, *ANSWER], [ValueError("bug")],
            [call("obeys", "hang"), ConnectionResetError()],
        ]  # fmt: skip
        model = Model(*(chance.choice(scripts) for _ in range(40)))
        loop = TurnLoop(model, shop.tools, hold_calls=chance.random() < 0.3, **log.hooks)
        waiting = []
        for number in range(40):
            await some_turns(chance)
            match chance.randrange(4):
                case 0:
                    loop.cancel()
                case 1:
                    caller = asyncio.create_task(loop.prompt(number))
                    await asyncio.sleep(0)
                    caller.cancel()
                case _:
                    waiting.append(loop.send(number))
        if chance.random() < 0.5:
            loop.cancel()  # a tool may hang for ever
            await asyncio.wait(waiting, timeout=1)
            assert all(one.done() for one in waiting)
        await loop.aclose()
        await asyncio.sleep(10)
        assert all(one.done() and not one.cancelled() for one in waiting)
        users = [message.content for message in loop.history.messages if hasattr(message, "content")]
        assert users == sorted(users)
        assert len(users) == len(set(users))

    assert storm(seed, main).failures == []
