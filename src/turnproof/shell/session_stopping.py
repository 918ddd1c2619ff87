"""One Stop of a session: the ``session_stop`` machine around an interrupt and its reply."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence

from turnproof.machines import session_words as words
from turnproof.machines.kernel import Taken
from turnproof.machines.session_stop import (
    DONE,
    MACHINE,
    WAITING,
    DropReply,
    Effect,
    Event,
    InterruptAnswered,
    InterruptFailed,
    SendInterrupt,
    Stop,
    StopRequested,
)
from turnproof.shell.common import Hooks, Tasks
from turnproof.shell.runner import TraceStep
from turnproof.shell.session_transport import StopFailed, Transport

Heard = words.StopSent | words.StopWithdrawn | words.StopFutile | words.EndRequested


class Stopping:
    """Runs one Stop. ``hear``: the session, which is told what comes of it."""

    def __init__(self, hooks: Hooks, tasks: Tasks, key: str, wire: Transport, hear: Callable[[Heard], object]) -> None:
        self._tasks, self._wire, self._hear = tasks, wire, hear
        self._over: asyncio.Future[Event] = asyncio.get_running_loop().create_future()
        self._reply: asyncio.Task[None] | None = None
        self._error: Exception | None = None
        self.runner = hooks.runner(MACHINE, self, key, trace=self._stepped)

    async def run(self, others: Sequence[Stopping]) -> None:
        """Send the interrupt, or join one of ``others`` that waits for the same, and wait until the Stop is over.

        Raises :class:`StopFailed`; a caller that is cancelled no longer waits.
        """
        waiting = [other for other in others if other.runner.state.phase is WAITING]
        answer = self.runner.post(StopRequested(bool(waiting)))
        over = self._over if isinstance(answer, Taken) or not waiting else waiting[0]._over
        last = await asyncio.shield(over)
        if isinstance(last, InterruptFailed):
            raise StopFailed(f"the interrupt failed: {self._error}") from self._error
        if isinstance(last, InterruptAnswered) and not last.interrupted:
            raise StopFailed("nothing was running")

    def post(self, event: Event) -> None:
        """Apply an event; nothing once it is closed."""
        if not self.runner.closed:
            self.runner.post(event)

    def _stepped(self, step: TraceStep[Stop, Event, Effect]) -> None:
        if step.post.phase is DONE and not self._over.done():
            self._over.set_result(step.event)

    async def _interrupt(self) -> None:
        try:
            self.post(InterruptAnswered(await self._wire.interrupt()))
        except Exception as error:
            self._error = error
            self.post(InterruptFailed())

    # ── effects ──

    def send_interrupt(self, effect: SendInterrupt) -> None:
        """Ask the server."""
        self._reply = self._tasks.start(self._interrupt(), "interrupt")

    def drop_reply(self, effect: DropReply) -> None:
        """Nobody waits for it."""
        if self._reply is not None:
            self._reply.cancel()

    def stop_sent(self, effect: words.StopSent) -> None:
        """To the session."""
        self._hear(effect)

    def stop_withdrawn(self, effect: words.StopWithdrawn) -> None:
        """To the session."""
        self._hear(effect)

    def stop_futile(self, effect: words.StopFutile) -> None:
        """To the session."""
        self._hear(effect)

    def run_marked(self, effect: words.RunMarked) -> None:
        """Only the rule of the mark has it."""

    def end_requested(self, effect: words.EndRequested) -> None:
        """To the session."""
        self._hear(effect)
