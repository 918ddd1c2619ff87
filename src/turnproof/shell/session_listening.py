"""The stream of a session: the ``session_stream`` machine around subscriptions that are lost, and readings of the history.

A pump puts what the subscription yields into the buffer; one handler takes it out. So an event, and a reading of the history that the
session asked for, are handled one after another and never interleaved.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import AsyncIterator
from typing import Any, Protocol

from turnproof.machines import session_words as words
from turnproof.machines.kernel import NOBODY
from turnproof.machines.session_stream import (
    MACHINE,
    Arrived,
    AskHistory,
    AttemptsSpent,
    Buffer,
    Dropped,
    LoseBuffer,
    Published,
    SnapshotTaken,
    StreamPhase,
    Subscribed,
)
from turnproof.shell.common import Hooks, Tasks
from turnproof.shell.session_transport import ATTEMPT_MS, ATTEMPTS, PAUSE_MS, SILENCE_MS, Transport, WireEvent

LOG = logging.getLogger("turnproof.shell")
Heard = words.ExecutionStarted | words.ExecutionEnded | words.ItemDelivered | words.PermissionAsked | words.HistoryRead | words.StreamDied


class Listener(Protocol):
    """The session, as far as its stream knows it."""

    def item(self) -> str:
        """The item of which the history is read at a reconnect."""

    def hear(self, event: Heard, payload: Any) -> None:
        """Something came on the stream, or out of the history."""


class Listening:
    """Listens for a session, subscription after subscription."""

    def __init__(self, hooks: Hooks, tasks: Tasks, key: str, wire: Transport, listener: Listener) -> None:
        self.up = asyncio.Event()
        """Set while a subscription stands whose history was read."""
        self._tasks, self._wire, self._listener = tasks, wire, listener
        self._payload: Any = None
        self._due: deque[tuple[Arrived, Any] | str] = deque()
        self._woken = asyncio.Event()
        self._process, self._subscriptions = "", 1
        self.runner = hooks.runner(MACHINE, self, key)

    async def begin(self) -> None:
        """Subscribe for the first time. Raises what the wire raises."""
        events = await self._wire.subscribe()
        self._process = (await self._wire.read(NOBODY)).process
        self.up.set()
        self._tasks.start(self._listen(events), "stream")
        self._tasks.start(self._handle(), "handler")

    async def _listen(self, events: AsyncIterator[WireEvent]) -> None:
        found: AsyncIterator[WireEvent] | None = events
        while found is not None:
            await self._pump(found)
            self.up.clear()
            self.runner.post(Dropped())
            found = await self._reconnect()
        self.runner.post(AttemptsSpent())

    async def _pump(self, events: AsyncIterator[WireEvent]) -> None:
        """Buffer what comes; return when the subscription is lost."""
        try:
            while True:
                async with asyncio.timeout(SILENCE_MS / 1000):
                    event = await anext(events, None)
                if event is None:
                    return
                if event.what is not None:
                    self._payload = event.payload
                    self.runner.post(Published(event.what, NOBODY, event.item))
        except Exception as error:
            LOG.warning("the stream was lost: %r", error)
        finally:
            close = getattr(events, "aclose", None)
            if close is not None:
                await close()

    async def _reconnect(self) -> AsyncIterator[WireEvent] | None:
        for attempt in range(ATTEMPTS):
            if attempt:
                await asyncio.sleep(PAUSE_MS / 1000)
            try:
                async with asyncio.timeout(ATTEMPT_MS / 1000):
                    events = await self._wire.subscribe()
                    self.runner.post(Subscribed())
                    snapshot = await self._wire.read(self._listener.item())
            except Exception as error:
                LOG.warning("attempt %d to reconnect failed: %r", attempt + 1, error)
                self.runner.post(Dropped())
                continue
            self._subscriptions += 1
            restarted, self._process = snapshot.process != self._process, snapshot.process
            self.runner.post(SnapshotTaken(snapshot.active, snapshot.past, restarted))
            self.up.set()
            return events
        return None

    async def _handle(self) -> None:
        """Handle what is due, one after another."""
        while True:
            await self._woken.wait()
            self._woken.clear()
            while self._due:
                due = self._due.popleft()
                if isinstance(due, str):
                    await self._read(due)
                else:
                    arrived, self._payload = due
                    self.runner.post(arrived)

    async def _read(self, item: str) -> None:
        """Read the history; what a reconnect has overtaken is not heard."""
        subscription = self._subscriptions
        try:
            async with asyncio.timeout(ATTEMPT_MS / 1000):
                snapshot = await self._wire.read(item)
        except Exception as error:
            LOG.warning("the history was not read: %r", error)
            return
        if self.runner.state.phase is StreamPhase.UP and subscription == self._subscriptions and item == self._listener.item():
            self._listener.hear(words.HistoryRead(snapshot.active, snapshot.past), None)

    # ── effects ──

    def buffer(self, effect: Buffer) -> None:
        """Until the handler comes to it."""
        self._due.append((Arrived(effect.what, effect.execution, effect.item), self._payload))
        self._woken.set()

    def lose_buffer(self, effect: LoseBuffer) -> None:
        """What was asked is asked again by the reconnect."""
        self._due.clear()

    def ask_history(self, effect: AskHistory) -> None:
        """Before the next event is handled."""
        self._due.appendleft(effect.item)
        self._woken.set()

    def execution_started(self, effect: words.ExecutionStarted) -> None:
        """To the session."""
        self._listener.hear(effect, None)

    def execution_ended(self, effect: words.ExecutionEnded) -> None:
        """To the session."""
        self._listener.hear(effect, None)

    def item_delivered(self, effect: words.ItemDelivered) -> None:
        """To the session."""
        self._listener.hear(effect, None)

    def permission_asked(self, effect: words.PermissionAsked) -> None:
        """To the session, with the request."""
        self._listener.hear(effect, self._payload)

    def history_read(self, effect: words.HistoryRead) -> None:
        """To the session."""
        self._listener.hear(effect, None)

    def stream_died(self, effect: words.StreamDied) -> None:
        """To the session."""
        self._listener.hear(effect, None)
