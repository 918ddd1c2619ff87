"""Messages steered into the turns of a session: one ``steering_message`` machine a message, and the queue they wait in.

A message is offered to the reply that holds the slot, which asks its attempt; what neither takes is left to the next turn. The queue
belongs to a turn: an attempt that was stopped puts back what it took, and the next attempt of that turn finds it at the head.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Awaitable, Callable
from typing import Any, Protocol

from turnproof.machines import reply_operation
from turnproof.machines.kernel import Taken
from turnproof.machines.reply_operation_words import SteerRequested
from turnproof.machines.steering_message import (
    MACHINE,
    NEW,
    PREPARING,
    TAKEN,
    AcceptMessage,
    AttemptStopped,
    Event,
    ForgetMessage,
    KeepForNextTurn,
    MessagePhase,
    MessageSteered,
    MessageWithdrawn,
    PreparationDone,
    PutIntoRequest,
    QueueDrained,
    RequestSent,
    ReturnToHead,
    TurnOver,
)
from turnproof.shell.common import Hooks
from turnproof.shell.reply_registry_reply import Reply


class Steered(Protocol):
    """What the messages ask of the runner of their session."""

    hooks: Hooks
    key: str

    def fresh(self, name: str) -> str:
        """An identity that nobody had."""

    def holder(self) -> Reply | None:
        """The reply that holds the slot."""

    def present_turn(self) -> object | None:
        """The turn whose attempt is registered."""


class SteeredMessage:
    """A message somebody steered into a run. :attr:`phase` says what has become of it (R-REPLY-28, R-REPLY-26)."""

    def __init__(self, steering: Steering, identity: str, text: str, turn: object | None) -> None:
        self.text = text
        self.turn = turn
        """The turn it was written in; None if no attempt ran."""
        self.attempt = ""
        """The attempt that took it last."""
        self.requested = False
        """A model call that began after it was taken carries it."""
        self._steering = steering
        self._runner = steering.hooks.runner(MACHINE, self, identity)

    @property
    def phase(self) -> MessagePhase:
        """Queued, taken, delivered, withdrawn, or left to the next turn."""
        return self._runner.state.phase

    def withdraw(self) -> bool:
        """Take it back. False if it is in a request already, was delivered, or was withdrawn before."""
        return self.post(MessageWithdrawn())

    def post(self, event: Event) -> bool:
        """Apply an event; whether it was taken."""
        return isinstance(self._runner.post(event), Taken)

    # ── effects ──

    def accept_message(self, effect: AcceptMessage) -> None:
        """Behind those that wait."""
        self._steering.queue.append(self)

    def forget_message(self, effect: ForgetMessage) -> None:
        """Out of the queue, or out of what is left."""
        self._steering.forget(self)

    def put_into_request(self, effect: PutIntoRequest) -> None:
        """Into the next request."""
        self._steering.queue.remove(self)
        self._steering.taken.append(self)

    def return_to_head(self, effect: ReturnToHead) -> None:
        """Before those that wait."""
        self._steering.taken.remove(self)
        self._steering.queue.appendleft(self)

    def keep_for_next_turn(self, effect: KeepForNextTurn) -> None:
        """Whoever begins the next turn takes it."""
        self._steering.forget(self)
        self._steering.left.append(self)

    def __repr__(self) -> str:
        return f"<message {self._runner.key}: {self.phase.value}>"


class Steering:
    """Every message of a session that is not delivered yet."""

    def __init__(self, session: Steered) -> None:
        self.hooks, self._session = session.hooks, session
        self.queue: deque[SteeredMessage] = deque()
        self.taken: list[SteeredMessage] = []
        self.left: list[SteeredMessage] = []

    async def steer(self, text: str, prepare: Callable[[str], Awaitable[str]] | None) -> SteeredMessage:
        """Offer a message, after its preparation if it needs one."""
        message = self._new(text)
        if prepare is None:
            self._offer(message)
            if message.phase is NEW:
                message.post(MessageSteered(False, True))
            return message
        message.post(MessageSteered(self._open(), False))
        if message.phase is not PREPARING:
            return message
        try:
            message.text = await prepare(text)
        except BaseException:
            message.withdraw()
            raise
        if message.turn is self._session.present_turn():
            self._offer(message)
        if message.phase is PREPARING:
            message.post(PreparationDone(False))
        return message

    def accepted(self, message: object, turn: object) -> None:
        """The reply handed it to the attempt of this turn; also one that came to the reply directly, as text."""
        known = message if isinstance(message, SteeredMessage) else self._new(str(message))
        known.turn = turn
        known.post(PreparationDone(True) if known.phase is PREPARING else MessageSteered(True, True))

    def take(self, attempt: str, turn: object) -> list[str]:
        """What waits for this turn, the oldest first, into the next request of its attempt."""
        texts = []
        for message in [m for m in self.queue if m.turn is turn]:
            if message.post(QueueDrained()):
                message.attempt, message.requested = attempt, False
                texts.append(message.text)
        return texts

    def request(self, attempt: str) -> list[SteeredMessage]:
        """A model call begins: what its attempt took goes with it."""
        carried = [m for m in self.taken if m.attempt == attempt and not m.requested]
        for message in carried:
            message.requested = True
        return carried

    def sent(self, carried: list[SteeredMessage]) -> None:
        """The provider answers that request, so it reached the model."""
        for message in carried:
            if message.phase is TAKEN:
                message.post(RequestSent())
                self.taken.remove(message)

    def unsent(self, carried: list[SteeredMessage]) -> None:
        """The request is over. What the provider never answered goes with the next one of the same attempt."""
        for message in carried:
            message.requested = False

    def stopped(self, attempt: str) -> None:
        """It was aborted, or ended: what it took and did not send goes back, in the order in which it was taken."""
        for message in reversed([m for m in self.taken if m.attempt == attempt]):
            message.post(AttemptStopped())

    def turn_over(self, turn: object) -> None:
        """No other attempt of this turn will come."""
        for message in [m for m in (*self.taken, *self.queue) if m.turn is turn]:
            message.post(TurnOver())

    def take_left(self) -> list[str]:
        """What was left to the next turn, the oldest first; it is whoever asks who answers it now."""
        left, self.left = self.left, []
        return [message.text for message in left]

    def forget(self, message: SteeredMessage) -> None:
        """Wherever it waits."""
        for place in (self.queue, self.taken, self.left):
            if message in place:
                place.remove(message)

    def _new(self, text: str) -> SteeredMessage:
        return SteeredMessage(self, self._session.fresh(f"{self._session.key}:message"), text, self._session.present_turn())

    def _offer(self, message: SteeredMessage) -> None:
        reply = self._session.holder()
        if reply is not None:
            reply.steer(message)

    def _open(self) -> bool:
        """What the reply would answer, asked of its machine."""
        reply = self._session.holder()
        backend: Any = None if reply is None else reply.backend
        if reply is None or backend is None:
            return False
        return isinstance(reply_operation.step(reply.state, SteerRequested(backend.accepts(), reply.stale())), Taken)
