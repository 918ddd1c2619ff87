"""A session beside an OpenCode server on asyncio: turns, continuations, Stops and reconnects over a wire that names nobody.

Theory of operation
===================

The machines are ``session`` (which turn an event belongs to), ``session_start``, one ``session_stop`` a Stop, and ``session_stream``.
Starts and Stops run beside the stream, as in the adapter: what happens between two of their awaits does happen. The wiring is that of the
session's specification.

Two rules of this file: nothing is awaited between reading and storing; and whatever is asked of the wire comes back as an event.
"""

from __future__ import annotations

import asyncio
import itertools
import logging
import time
from collections import deque
from collections.abc import Awaitable, Callable, Mapping
from enum import Enum
from typing import Any

from turnproof.machines import session, session_start, session_stop, session_stream
from turnproof.machines import session_words as words
from turnproof.machines.kernel import NOBODY, Refused
from turnproof.machines.session_start import ActiveRead, AnswerHandled, Prepared, SendDue, SendPrompt, Start, TurnWanted
from turnproof.machines.session_stop import SendInterrupt, TurnOver
from turnproof.machines.session_words import Answer, Cause, Outcome, Past, Turn
from turnproof.shell.common import Hooks, Tasks, Trace, awaited
from turnproof.shell.handlers import Failure, log_failure
from turnproof.shell.runner import TraceStep
from turnproof.shell.session_listening import Heard, Listening
from turnproof.shell.session_stopping import Stopping
from turnproof.shell.session_transport import (
    INTERRUPT_MS,
    INVENTORY_MS,
    RECONNECT_MS,
    PromptRejected,
    QuestionUnanswered,
    SessionBusy,
    StopFailed,
    StreamDown,
    Transport,
    TurnEnd,
)

LOG = logging.getLogger("turnproof.shell")
Ending = asyncio.Future[TurnEnd]
ENDED = {
    words.End.SUCCEEDED: Outcome.COMPLETED, words.End.INTERRUPTED: Outcome.INTERRUPTED, words.End.FAILED: Outcome.FAILED,
}  # fmt: skip
Told = words.HoldWake | words.TakeWake | words.AbsorbWake | words.DropWakes
"""What becomes of wakes. ``HoldWake`` offers a continuation: answer it by :meth:`Session.continue_turn` when its turn comes."""
MACHINES = (session.MACHINE, session_start.MACHINE, session_stop.MACHINE, session_stream.MACHINE)
"""Every machine of a session, for a ``TraceWriter``."""


class Session:
    """One session. Use it as an async context manager: it subscribes, and closes with everything it started.

    ``transport``: the wire. ``tell``: told of wakes. ``show``: shows a permission request or form.
    ``prepare``: what a start awaits before its turn is installed; if it raises, no turn is begun.
    ``inventory``: what it awaits between that and sending the prompt, 5 s at most; if it raises, the prompt is sent as it is.
    ``key``: names the session in traces, and begins every identity.
    ``durations_ms``, ``on_error``, ``trace``, ``timestamp``: as a ``Runner`` has them, for all its machines.
    """

    def __init__(
        self,
        transport: Transport,
        *,
        key: str = "",
        tell: Callable[[Told], object] | None = None,
        show: Callable[[Any], object] | None = None,
        prepare: Callable[[], Awaitable[object]] | None = None,
        inventory: Callable[[], Awaitable[object]] | None = None,
        durations_ms: Mapping[Enum, int] | None = None,
        on_error: Callable[[Failure], object] = log_failure,
        trace: Trace | None = None,
        timestamp: Callable[[], float] = time.time,
    ) -> None:
        self._hooks = Hooks(durations_ms=durations_ms or {}, on_error=on_error, trace=trace, timestamp=timestamp)
        self._hooks.check_durations(*MACHINES)
        self._tasks = Tasks(on_error, "session", key)
        self._wire, self._tell, self._show, self._prepare, self._inventory = transport, tell, show, prepare, inventory
        self.key = key
        self._numbers = itertools.count(1)
        self._turns: dict[str, Ending] = {}
        self._contents: dict[str, Any] = {}
        self._continuation: Ending | None = None
        self._wakes_ended: deque[Outcome] = deque()
        """How the wakes that the machine counts as ended did end, oldest first."""
        self._stops: list[Stopping] = []
        self._payload: Any = None
        self._starting: asyncio.Future[None] | None = None
        self._closing: asyncio.Task[None] | None = None
        self._session = self._hooks.runner(session.MACHINE, self, key, trace=self._session_stepped)
        self._stream = Listening(self._hooks, self._tasks, key, transport, self)
        self._start = self._hooks.runner(session_start.MACHINE, self, key, trace=self._start_stepped)

    @property
    def state(self) -> session.Session:
        """The session machine's state."""
        return self._session.state

    # ── turns ──

    async def start_turn(self, content: object, *, prompt: str = "") -> TurnEnd:
        """Begin a user turn with ``content`` as its prompt, sent under the id ``prompt`` (a fresh one unless given); wait for its end.

        Raises :class:`SessionBusy`, :class:`StreamDown` and :class:`QuestionUnanswered`: then no turn was begun. A caller that is cancelled
        no longer waits; the turn goes on.
        """
        prompt = prompt or f"{self.key}prompt-{next(self._numbers)}"
        if isinstance(session.step(self.state, words.InstallRequested(prompt, False)), Refused) or self._starting is not None:
            raise SessionBusy(f"session {self.key!r}: a turn is installed, or a start is under way")
        ending: Ending = asyncio.get_running_loop().create_future()
        self._turns[prompt], self._contents[prompt] = ending, content
        self._starting = asyncio.get_running_loop().create_future()
        started = self._tasks.own(self._begin(prompt), f"start of {prompt}")
        await asyncio.shield(started)
        return await ending

    async def continue_turn(self) -> TurnEnd:
        """Begin the continuation that was offered for the oldest wake; wait for its end.

        Raises :class:`SessionBusy` and :class:`StreamDown`: then none was begun.
        """
        if self._starting is not None or isinstance(session.step(self.state, words.ContinuationStarted()), Refused):
            raise SessionBusy(f"session {self.key!r}: a turn is installed, or a start is under way")
        if not self._stream.up.is_set():
            raise StreamDown(f"session {self.key!r}: the stream is down")
        ending: Ending = asyncio.get_running_loop().create_future()
        self._continuation = ending
        self._session.post(words.ContinuationStarted())
        return await ending

    async def stop(self) -> None:
        """Stop the turn that is installed, and wait until its interrupt is accepted, its turn is over, or 10 s have passed.

        Raises :class:`StopFailed` if nothing ran, or the interrupt was answered by an error: the turn goes on, unless it had not been sent.
        A caller that is cancelled no longer waits; the Stop goes on.
        """
        if self.state.phase is Turn.NONE:
            raise StopFailed(f"session {self.key!r}: no turn is installed")
        stop = Stopping(self._hooks, self._tasks, f"{self.key}stop-{next(self._numbers)}", self._wire, self._session.post)
        others = tuple(self._stops)
        self._stops.append(stop)
        await asyncio.shield(self._tasks.own(self._stopping(stop, others), "stop"))

    async def _stopping(self, stop: Stopping, others: tuple[Stopping, ...]) -> None:
        try:
            await stop.run(others)
        finally:
            self._stops.remove(stop)
            await stop.runner.aclose()

    # ── opening and closing ──

    async def __aenter__(self) -> Session:
        await self._stream.begin()
        return self

    async def __aexit__(self, *exception: object) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        """Let go of the wire, cancel every task and timer; turns that have no end are cancelled. May be called again, and by several."""
        if self._closing is None:
            self._closing = asyncio.get_running_loop().create_task(self._close(), name=f"close session {self.key}")
        await asyncio.shield(self._closing)

    async def _close(self) -> None:
        await self._tasks.aclose()
        await self._session.aclose()
        await self._stream.runner.aclose()
        await self._start.aclose()
        await self._tasks.aclose()  # a send that was cancelled is unclear, which may have asked to take the prompt back
        for ending in (*self._turns.values(), self._continuation):
            if ending is not None:
                ending.cancel()

    # ── a start ──

    async def _begin(self, prompt: str) -> None:
        try:
            await self._streaming()
            self._start.post(TurnWanted(prompt, self.state.doubt != NOBODY or self.state.more))
            await self._ask()
            if self._start.state.phase is session_start.IDLE:
                return
            if self._prepare is not None:
                await awaited(self._prepare())
            self._start.post(Prepared(self._stream.up.is_set()))
            if self._start.state.phase is session_start.IDLE:
                raise StreamDown(f"session {self.key!r}: the stream went down")
            await self._take_inventory()
            wanted = self.state.phase is Turn.USER and self.state.item == prompt and not self.state.stopped
            self._start.post(SendDue(wanted))
        except BaseException:
            self._turns.pop(prompt, None)
            if not self._start.closed:
                self._start.post(Prepared(False))
            raise
        finally:
            self._contents.pop(prompt, None)
            self._starting = None

    async def _take_inventory(self) -> None:
        if self._inventory is not None:
            try:
                async with asyncio.timeout(INVENTORY_MS / 1000):
                    await awaited(self._inventory())
            except Exception as error:
                LOG.warning("the inventory was not read: %r", error)

    async def _streaming(self) -> None:
        try:
            async with asyncio.timeout(RECONNECT_MS / 1000):
                await self._stream.up.wait()
        except TimeoutError:
            raise StreamDown(f"session {self.key!r}: the stream is down") from None

    async def _ask(self) -> None:
        """Ask about the run in doubt, where the start has to, until the answer or the end of the start's patience."""
        if self._start.state.phase is not session_start.ASKING:
            return
        assert self._starting is not None
        doubt = self.state.doubt
        question = self._tasks.own(self._wire.read(doubt), "question")
        await asyncio.wait((question, self._starting), return_when=asyncio.FIRST_COMPLETED)
        if self._starting.done() or not question.done() or question.exception() is not None:  # the patience may end as the answer comes
            question.cancel()
            await asyncio.wait((self._starting,))
            raise QuestionUnanswered(f"session {self.key!r}: whether an earlier run is alive was not answered")
        snapshot = question.result()
        over = doubt != NOBODY and snapshot.past in (Past.SUCCEEDED, Past.INTERRUPTED)
        alive = snapshot.active and (doubt == NOBODY or snapshot.past is Past.UNDER_WAY)
        self._start.post(ActiveRead(alive, over))
        self._start.post(AnswerHandled())

    def _start_stepped(self, step: TraceStep[Start, session_start.Event, session_start.Effect]) -> None:
        """Whoever waits for the start to be over is told when the step is stored."""
        over = step.post.phase is session_start.IDLE and step.before.phase is not session_start.IDLE
        if over and self._starting is not None and not self._starting.done():
            self._starting.set_result(None)

    async def _interrupt(self) -> None:
        try:
            async with asyncio.timeout(INTERRUPT_MS / 1000):
                await self._wire.interrupt()
        except Exception as error:
            LOG.warning("an earlier run was not interrupted: %r", error)

    async def _send(self, prompt: str, content: Any) -> None:
        answer = Answer.UNCLEAR
        try:
            await self._wire.prompt(prompt, content)
            answer = Answer.OK
        except PromptRejected:
            answer = Answer.REFUSED
        except Exception as error:
            LOG.warning("what became of %s is unclear: %r", prompt, error)
        finally:
            if not self._session.closed:
                self._session.post(words.PromptAnswered(prompt, answer))

    # ── what the stream tells ──

    def item(self) -> str:
        """The item of which the history is read at a reconnect."""
        return self.state.item

    def hear(self, event: Heard, payload: Any) -> None:
        """Something came on the stream, or out of the history."""
        self._payload = payload
        self._session.post(event)

    # ── effects of the start ──

    def send_prompt(self, effect: SendPrompt) -> None:
        """Hand it to the wire."""
        self._tasks.start(self._send(effect.prompt, self._contents[effect.prompt]), f"prompt {effect.prompt}")

    def send_interrupt(self, effect: SendInterrupt) -> None:
        """An earlier run is still active: interrupt it again. Nobody waits for the reply."""
        self._tasks.start(self._interrupt(), "interrupt")

    def install_requested(self, effect: words.InstallRequested) -> None:
        """To the session."""
        self._session.post(effect)

    def start_refused(self, effect: words.StartRefused) -> None:
        """To the session."""
        self._session.post(effect)

    def session_found_idle(self, effect: words.SessionFoundIdle) -> None:
        """To the session."""
        self._session.post(effect)

    def prompt_found_over(self, effect: words.PromptFoundOver) -> None:
        """To the session."""
        self._session.post(effect)

    def prompt_handed_over(self, effect: words.PromptHandedOver) -> None:
        """To the session."""
        self._session.post(effect)

    def send_skipped(self, effect: words.SendSkipped) -> None:
        """To the session."""
        self._session.post(effect)

    # ── effects of the session ──

    def _session_stepped(self, step: TraceStep[session.Session, Any, Any]) -> None:
        """How a wake ended is kept for the continuation that comes later: its machine only counts (R-SES-14)."""
        event = step.event
        if step.post.ended > step.before.ended:
            how = event.how if isinstance(event, words.ExecutionEnded) else words.End.SUCCEEDED
            lost = isinstance(event, words.HistoryRead) and event.restarted
            self._wakes_ended.append(Outcome.INTERRUPTED if lost else ENDED[how])
        elif step.post.ended == 0 and not isinstance(event, words.ContinuationStarted):
            self._wakes_ended.clear()

    def report_turn(self, effect: words.ReportTurn) -> None:
        """The one terminal of a turn; of a replayed wake, the one that the wake's execution had."""
        outcome = self._wakes_ended.popleft() if effect.cause is Cause.REPLAY else effect.outcome
        self._start.post(TurnOver())
        for stop in list(self._stops):
            stop.post(TurnOver())
        if effect.prompt == NOBODY:
            ending, self._continuation = self._continuation, None
        else:
            ending = self._turns.pop(effect.prompt, None)
        if ending is not None and not ending.done():
            ending.set_result(TurnEnd(outcome, effect.cause))

    def hold_wake(self, effect: words.HoldWake) -> None:
        """Offer a continuation."""
        self._report(effect)

    def take_wake(self, effect: words.TakeWake) -> None:
        """It is the continuation's."""
        self._report(effect)

    def absorb_wake(self, effect: words.AbsorbWake) -> None:
        """It is the user turn's."""
        self._report(effect)

    def drop_wakes(self, effect: words.DropWakes) -> None:
        """They are forgotten."""
        self._report(effect)

    def show_permission(self, effect: words.ShowPermission) -> None:
        """To the user."""
        if self._show is not None:
            self._show(self._payload)

    def read_again(self, effect: words.ReadAgain) -> None:
        """To the stream."""
        self._stream.runner.post(effect)

    def cancel_prompt(self, effect: words.CancelPrompt) -> None:
        """Out of the inbox, if it still waits there."""
        self._tasks.start(self._cancel(effect.prompt), f"cancel of {effect.prompt}")

    async def _cancel(self, prompt: str) -> None:
        if await self._wire.cancel(prompt):
            self._session.post(words.PromptCancelled(prompt))

    def _report(self, told: Told) -> None:
        if self._tell is not None:
            self._tell(told)
