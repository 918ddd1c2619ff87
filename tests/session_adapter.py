"""The adapter's machines of one OpenCode session on a clock, driven by hand: what the server, the wire and the user do is written down."""

from __future__ import annotations

from collections import deque
from enum import Enum
from typing import Any

import attrs

from turnproof.machines import session_start as start_words
from turnproof.machines import session_stop as stop_words
from turnproof.machines import session_stream as stream_words
from turnproof.machines.kernel import NOBODY, Machine, StartTimer, StopTimer, Taken
from turnproof.machines.session_start import StartPhase
from turnproof.machines.session_stop import StopPhase
from turnproof.machines.session_stream import StreamPhase, What
from turnproof.machines.session_words import (
    Answer,
    CancelPrompt,
    ContinuationStarted,
    HoldWake,
    Outcome,
    Past,
    PromptAnswered,
    ReadAgain,
    RejectPermission,
    ReportTurn,
    Turn,
)
from turnproof.specs.session_parts import Design

ENDS = {"succeeded": What.SUCCEEDED, "failed": What.FAILED, "interrupted": What.INTERRUPTED}


class Adapter:
    """One session. ``outcomes`` are the terminals in order, ``requests`` what went out to the server in order."""

    def __init__(self, design: Design) -> None:
        self.machines: dict[str, Machine[Any, Any, Any]] = {
            "session": design.session,
            "start": design.start,
            "stop": design.stop,
            "stream": stream_words.MACHINE,
        }
        self.states: dict[str, Any] = {name: machine.initial for name, machine in self.machines.items()}
        self.now_ms = 0
        self.due: dict[tuple[str, Enum], int] = {}
        self.told: list[tuple[str, Outcome]] = []
        self.requests: list[str] = []
        self.offers = 0
        self.buffer: deque[stream_words.Arrived] = deque()
        self.queue: deque[tuple[str, Any]] = deque()

    @property
    def session(self) -> Any:
        """The state of the session."""
        return self.states["session"]

    @property
    def outcomes(self) -> list[str]:
        """The terminals so far."""
        return [outcome.value for _, outcome in self.told]

    # ── events ──

    def send(self, part: str, event: object) -> None:
        """One event, and everything that follows from it."""
        self.queue.append((part, event))
        while self.queue:
            name, one = self.queue.popleft()
            answer = self.machines[name].step(self.states[name], one)
            if isinstance(answer, Taken):
                self.states[name] = answer.state
                for effect in answer.effects:
                    self._perform(name, effect)

    def _perform(self, part: str, effect: Any) -> None:
        match effect:
            case StartTimer(timer=timer):
                rule = next(r for r in self.machines[part].timers if r.timer is timer)
                assert rule.duration is not None
                self.due[part, timer] = self.now_ms + rule.duration.milliseconds
            case StopTimer(timer=timer):
                self.due.pop((part, timer), None)
            case ReportTurn(outcome=outcome, prompt=prompt):
                self.told.append((prompt, outcome))
                self.queue.extend((name, stop_words.TurnOver()) for name in ("start", "stop"))
            case HoldWake():
                self.offers += 1
            case start_words.SendPrompt(prompt=prompt):
                self.requests.append(f"prompt {prompt}")
            case stop_words.SendInterrupt():
                self.requests.append("interrupt")
            case RejectPermission():
                self.requests.append("reject")
            case CancelPrompt(prompt=prompt):
                self.requests.append(f"cancel {prompt}")
            case ReadAgain():
                self.requests.append("history")
            case stream_words.Buffer(what=what, execution=execution, item=item):
                self.buffer.append(stream_words.Arrived(what, execution, item))
            case stream_words.LoseBuffer():
                self.buffer.clear()
            case _:
                if part != "session" and type(effect) in self.machines["session"].events:
                    self.queue.append(("session", effect))

    def advance(self, ms: int) -> None:
        """Let the time pass; every timer fires when it is due."""
        end = self.now_ms + ms
        while self.due and min(self.due.values()) <= end:
            (part, timer), at = min(self.due.items(), key=lambda item: item[1])
            del self.due[part, timer]
            self.now_ms = at
            self.send(part, next(r for r in self.machines[part].timers if r.timer is timer).expires())
        self.now_ms = end

    # ── the user ──

    def start(self, prompt: str, *, doubt: bool, active: bool | None = False, over: bool = False, send: bool = True) -> None:
        """The user's turn, up to its prompt. ``active``: what ``session.active`` answers if it is asked; None: nothing."""
        assert self._starting() is StartPhase.IDLE
        self.send("start", start_words.TurnWanted(prompt, doubt))
        if self._starting() is StartPhase.ASKING:
            self.requests.append("active")
            if active is None:
                return
            self.send("start", start_words.ActiveRead(active, over))
            self.send("start", start_words.AnswerHandled())
        self.send("start", start_words.Prepared(self.states["stream"].phase is StreamPhase.UP))
        if send:
            wanted = self.session.phase is Turn.USER and not self.session.stopped
            self.send("start", start_words.SendDue(wanted))

    def _starting(self) -> Any:
        return self.states["start"].phase

    def answer(self, prompt: str, answer: Answer) -> None:
        """The reply of the prompt request."""
        self.send("session", PromptAnswered(prompt, answer))

    def stop(self) -> None:
        """The user stops the turn that is installed; nothing happens if there is none."""
        if self.session.phase is not Turn.NONE:
            self.states["stop"] = attrs.evolve(self.states["stop"], phase=StopPhase.IDLE)
            self.send("stop", stop_words.StopRequested(False))

    def proceed(self) -> None:
        """The orchestrator starts a continuation it was offered."""
        assert self.offers > 0
        self.offers -= 1
        self.send("session", ContinuationStarted())

    # ── the wire ──

    def publish(self, what: What, item: str = NOBODY) -> None:
        """The server publishes an event. It is handled at once, unless nobody is subscribed or the history is read first."""
        self.send("stream", stream_words.Published(what, NOBODY, item))
        self._drain()

    def started(self, *items: str) -> None:
        """A start, and the items of the inbox that this execution serves."""
        self.publish(What.STARTED)
        for item in items:
            self.publish(What.DELIVERED, item)

    def ended(self, how: str = "succeeded") -> None:
        """An end."""
        self.publish(ENDS[how])

    def drop(self) -> None:
        """The connection breaks; a new subscription stands, and nothing was read yet."""
        self.send("stream", stream_words.Dropped())
        self.send("stream", stream_words.Subscribed())

    def read(self, active: bool, past: Past = Past.ABSENT) -> None:
        """``session.active`` and the history are read after a reconnect; then the new subscription is handled."""
        self.send("stream", stream_words.SnapshotTaken(active, past))
        self._drain()

    def die(self) -> None:
        """The stream is gone, and every attempt to reconnect failed."""
        self.send("stream", stream_words.Dropped())
        self.send("stream", stream_words.AttemptsSpent())

    def _drain(self) -> None:
        while self.buffer and self.states["stream"].phase is StreamPhase.UP:
            self.send("stream", self.buffer.popleft())
