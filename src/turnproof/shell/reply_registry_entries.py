"""The entries of a reply registry: the slot of one key, and one session id, each with what its machine does not carry."""

from __future__ import annotations

import asyncio
from collections import deque
from typing import Protocol

from turnproof.machines import reply_slot, session_id
from turnproof.machines.kernel import Answer
from turnproof.machines.reply_slot import (
    Admit,
    AnswerIdle,
    OfferDeclined,
    ReplySlot,
    StartAttempt,
    StartQueuedTurn,
    WaitAbandoned,
    WaitRequested,
    WakeWaiters,
)
from turnproof.machines.session_id import AnswerUnknown, ForwardWait, WaitByIdRequested
from turnproof.shell.common import Hooks
from turnproof.shell.reply_registry_waiting import Waiter

Offer = asyncio.Future[None]
"""A turn that waits in the queue of a key: done when it may begin."""


class Entries(Protocol):
    """What an entry asks of its registry."""

    hooks: Hooks

    def slot_of(self, operation: str) -> Slot:
        """The slot that the operation holds."""


class Slot:
    """The slot of one key, who waits for it, and the turns of its queue."""

    def __init__(self, registry: Entries, key: str, name: str) -> None:
        self.key = key
        self.waiters: list[Waiter] = []
        self.queue: deque[Offer] = deque()
        self._admissions: set[Offer] = set()
        self._runner = registry.hooks.runner(reply_slot.MACHINE, self, name)

    @property
    def state(self) -> ReplySlot:
        """The machine's state."""
        return self._runner.state

    def post(self, event: reply_slot.Event) -> Answer[ReplySlot, reply_slot.Effect]:
        """Apply an event."""
        return self._runner.post(event)

    async def guard_over(self, timeout_ms: int) -> None:
        """Wait until a barrier or a fence is over, ``timeout_ms`` milliseconds at most."""
        over: Offer = asyncio.get_running_loop().create_future()
        self._admissions.add(over)
        try:
            await asyncio.wait((over,), timeout=timeout_ms / 1000)
        finally:
            self._admissions.discard(over)

    def wake_admissions(self) -> None:
        """A barrier or a fence is over: whoever waits for that asks again."""
        for over in self._admissions:
            if not over.done():
                over.set_result(None)

    def register(self, waiter: Waiter) -> None:
        """The waiter waits for the key."""
        waiter.withdraw = self.withdraw
        self.waiters.append(waiter)
        self.post(WaitRequested())

    def withdraw(self, waiter: Waiter) -> None:
        """It no longer does."""
        if waiter in self.waiters:
            self.waiters.remove(waiter)
            self.post(WaitAbandoned())

    def admit(self, effect: Admit) -> None:
        """The caller of ``begin`` goes on."""

    def wake_waiters(self, effect: WakeWaiters) -> None:
        """Everybody who waits gets true."""
        waiters, self.waiters = self.waiters, []
        for waiter in waiters:
            waiter.wake()

    def answer_idle(self, effect: AnswerIdle) -> None:
        """Nobody waits for an idle key but who has just asked."""
        waiters, self.waiters = self.waiters, []
        for waiter in waiters:
            waiter.wake()

    def start_queued_turn(self, effect: StartQueuedTurn) -> None:
        """The first of the queue begins, unless its caller has gone."""
        offer = self.queue.popleft()
        if offer.done():
            self.post(OfferDeclined())
        else:
            offer.set_result(None)

    def start_attempt(self, effect: StartAttempt) -> None:
        """The caller of ``start_attempt`` goes on."""


class Id:
    """One session id, and who asks by it."""

    def __init__(self, registry: Entries, session: str, name: str) -> None:
        self.session = session
        self._registry = registry
        self._asking: deque[Waiter] = deque()
        self.runner = registry.hooks.runner(session_id.MACHINE, self, name)

    def post(self, event: session_id.Event) -> None:
        """Apply an event."""
        self.runner.post(event)

    def register(self, waiter: Waiter) -> None:
        """The waiter waits for whatever the id leads to."""
        self._asking.append(waiter)
        self.post(WaitByIdRequested())

    def forward_wait(self, effect: ForwardWait) -> None:
        """It waits at the slot of the operation."""
        self._registry.slot_of(effect.operation).register(self._asking.popleft())

    def answer_unknown(self, effect: AnswerUnknown) -> None:
        """Nothing runs under this id."""
        self._asking.popleft().wake()
