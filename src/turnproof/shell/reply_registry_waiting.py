"""One caller that waits for a key to be idle: the ``reply_waiter`` machine around an awaited answer."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from turnproof.machines.reply_waiter import MACHINE, CallerAborted, KeyReleased, RegisterWait, Resolve, WaitStarted, WithdrawWait
from turnproof.shell.common import Hooks, Signal


class Waiter:
    """Asks once and is answered once. ``register`` puts it among those who wait and sets :attr:`withdraw`."""

    def __init__(self, hooks: Hooks, key: str, register: Callable[[Waiter], None]) -> None:
        self.withdraw: Callable[[Waiter], None] | None = None
        """Takes it out of where it waits."""
        self._register = register
        self._answer: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
        self._runner = hooks.runner(MACHINE, self, key)

    async def ask(self, timeout_ms: int, signal: Signal[Any] | None) -> bool:
        """True when the key is released or was idle, false after ``timeout_ms`` milliseconds or when ``signal`` fires.

        A caller that is cancelled is taken out as one whose signal fired.
        """
        forget = None if signal is None else signal.listen(lambda _: self._runner.post(CallerAborted()))
        self._runner.post(WaitStarted(self._runner.now_ms + timeout_ms))
        try:
            return await self._answer
        except asyncio.CancelledError:
            self._runner.post(CallerAborted())
            raise
        finally:
            if forget is not None:
                forget()

    def wake(self) -> None:
        """The key was released, or is idle."""
        self._runner.post(KeyReleased())

    # ── effects ──

    def register_wait(self, effect: RegisterWait) -> None:
        """Among those who wait."""
        self._register(self)

    def withdraw_wait(self, effect: WithdrawWait) -> None:
        """Out again."""
        if self.withdraw is not None:
            self.withdraw(self)

    def resolve(self, effect: Resolve) -> None:
        """Answer the caller, unless it has gone."""
        if not self._answer.done():
            self._answer.set_result(effect.released)
