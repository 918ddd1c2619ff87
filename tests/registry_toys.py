"""Backends for the tests of composed shells, and the logs of all their machines, checked as they end."""

from __future__ import annotations

import functools
from collections.abc import Callable, Coroutine
from typing import Any

from shell_toys import leftovers

from turnproof.machines.reply_operation_words import CancelReason, Phase
from turnproof.shell import Failure, Performed, TraceStep, VirtualClock, virtual_time
from turnproof.shell.reply_registry import ReplyRegistry
from turnproof.shell.reply_registry_reply import Reply


class Recording:
    """A backend that notes its cancels, and may do something in them."""

    def __init__(self, on_cancel: Callable[[CancelReason], Performed] | None = None) -> None:
        self.cancels: list[CancelReason] = []
        self.on_cancel = on_cancel

    def cancel(self, reason: CancelReason) -> Performed:
        self.cancels.append(reason)
        return None if self.on_cancel is None else self.on_cancel(reason)


class Guarded(Recording):
    """A backend with a probe, and a queue for messages."""

    def __init__(self, answer: bool | Exception = True) -> None:
        super().__init__()
        self.answer, self.messages = answer, list[object]()

    def consents(self) -> bool:
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer

    def accepts(self) -> bool:
        return True

    def steer(self, message: object) -> None:
        self.messages.append(message)


class Log:
    """Every step of every machine, and every failure."""

    def __init__(self) -> None:
        self.steps: list[TraceStep[Any, Any, Any]] = []
        self.failures: list[Failure] = []

    @property
    def hooks(self) -> dict[str, Any]:
        """``trace`` and ``on_error`` for whatever is tested."""
        return {"trace": self.steps.append, "on_error": self.failures.append}

    def of(self, machine: str, kind: type[Any]) -> list[Any]:
        """The events of a class that a machine was sent."""
        return [step.event for step in self.steps if step.machine == machine and isinstance(step.event, kind)]

    def effects(self, machine: str, kind: type[Any]) -> list[Any]:
        """The effects of a class that a machine gave."""
        return [effect for step in self.steps if step.machine == machine for effect in step.effects if isinstance(effect, kind)]

    def check(self) -> None:
        """Every instance counts its steps and goes on from where it was; a key that begins anew is another instance."""
        last: dict[tuple[str, str], tuple[int, Any]] = {}
        for step in self.steps:
            known = None if step.seq == 1 else last.get((step.machine, step.key))
            seq, state = known or (0, step.before)
            assert (step.seq, step.before) == (seq + 1, state)
            last[step.machine, step.key] = (step.seq, step.post)


Story = Callable[[VirtualClock, Log], Coroutine[Any, Any, None]]


def story(test: Story) -> Callable[[], None]:
    """Run a coroutine function as a test on a virtual clock; at its end no task, timer or failure is left, and the log is whole."""

    async def main(clock: VirtualClock, log: Log) -> None:
        await test(clock, log)
        await clock.settle()
        assert leftovers() == set()
        assert clock.scheduled_ms() == []

    def run() -> None:
        escaped: list[dict[str, object]] = []
        log = Log()
        with virtual_time() as clock:
            clock.loop.set_exception_handler(lambda loop, context: escaped.append(context))
            clock.run(main(clock, log))
        assert escaped == []
        assert log.failures == []
        log.check()

    functools.update_wrapper(run, test)
    del run.__wrapped__  # type: ignore[attr-defined]  # pytest would read the coroutine function's parameters
    return run


def running(registry: ReplyRegistry, backend: Recording, key: str = "chat", session: str = "s1") -> Reply:
    reply = registry.begin(key, session)
    reply.enter(Phase.RUNNING)
    reply.attach("run", backend)
    return reply


def only(answer: object) -> None:
    """For a handler of one expression."""
