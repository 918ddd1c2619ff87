"""A message steered into a run: accepted, taken into a request, and either answered or back at the head of the queue.

What it is. A person writes while a run is on. The message may need preparation (media, transcription), is then accepted by the attempt
if it still accepts messages, is taken into the next request, and is delivered when that request is sent. One instance a message.

Which runtime. OpenClaw's steering queue: admission closes before the last hooks of an attempt run, and reopens if a message was
already waiting (the last drain).

The phases in one sentence. New, in preparation, queued, taken into a request, then delivered, withdrawn or left to the next turn.

What it promises.
  1. A message that was withdrawn in time is never accepted.
  2. A message that was accepted is delivered once, or left to the next turn: an abort in between puts it back where it was.

Not modelled: the text, and the order of several messages (each goes back to the head in the order in which it was taken).

Rule 1: every transition of a message is a row of ``ROWS``.
Rule 2: this file knows nothing of clocks, tasks or transports.
"""

from __future__ import annotations

from enum import Enum
from typing import get_args

from attrs import frozen

from turnproof.machines.kernel import Machine, Row, not_, symbol

# ── vocabulary ──


class MessagePhase(Enum):
    """Where a message is."""

    NEW = "new"
    PREPARING = "preparing"
    QUEUED = "queued"
    """Accepted by the attempt."""
    TAKEN = "taken"
    """In a request that is not sent yet."""
    DELIVERED = "delivered"
    WITHDRAWN = "withdrawn"
    LEFT = "left"
    """Left to the next turn: the attempt accepts nothing any more."""


NEW, PREPARING, QUEUED, TAKEN, DELIVERED, WITHDRAWN, LEFT = MessagePhase


# ── state ──


@frozen
class SteeringMessage:
    """One message."""

    phase: MessagePhase = NEW


# ── events: what happened ──


@frozen
class MessageSteered:
    """A person wrote it. ``open``: the attempt accepts messages; ``prepared``: it needs no preparation."""

    open: bool
    prepared: bool


@frozen
class PreparationDone:
    """It is ready; ``open``: the attempt still accepts messages."""

    open: bool


@frozen
class MessageWithdrawn:
    """The person took it back."""


@frozen
class QueueDrained:
    """The attempt takes what is queued into its next request; also the last drain, which so goes on with another request."""


@frozen
class RequestSent:
    """The request it is in reached the model."""


@frozen
class AttemptStopped:
    """The attempt was aborted, or ended: what it took and did not send goes back."""


@frozen
class TurnOver:
    """No other attempt of this turn will come."""


Event = MessageSteered | PreparationDone | MessageWithdrawn | QueueDrained | RequestSent | AttemptStopped | TurnOver


# ── effects: what the shell must do ──


@frozen
class AcceptMessage:
    """Put it into the attempt's queue, and tell the person so."""


@frozen
class ForgetMessage:
    """Take it out of the queue."""


@frozen
class PutIntoRequest:
    """Put it into the next request."""


@frozen
class ReturnToHead:
    """Put it back at the head of the queue."""


@frozen
class KeepForNextTurn:
    """Leave it to the next turn, as an ordinary message."""


Effect = AcceptMessage | ForgetMessage | PutIntoRequest | ReturnToHead | KeepForNextTurn


# ── symbols ──

now = symbol(SteeringMessage)
steered, ready = symbol(MessageSteered), symbol(PreparationDone)

R = Row[SteeringMessage, Effect]


# ── rows: the first that matches wins ──

ROWS: tuple[R, ...] = (
    R(steered, at=NEW, when=not_(steered.open), to=LEFT, emit=(KeepForNextTurn(),), name="MessageSteered/closed"),
    R(steered, at=NEW, when=steered.prepared, to=QUEUED, emit=(AcceptMessage(),), name="MessageSteered/accepted"),
    R(steered, at=NEW, to=PREPARING, name="MessageSteered/prepares"),
    R(MessageSteered, ignore="it was steered before"),
    R(ready, at=PREPARING, when=ready.open, to=QUEUED, emit=(AcceptMessage(),), name="PreparationDone/accepted"),
    R(ready, at=PREPARING, to=LEFT, emit=(KeepForNextTurn(),), name="PreparationDone/closed"),
    R(PreparationDone, ignore="it was withdrawn meanwhile, or never prepared"),
    R(MessageWithdrawn, at=(NEW, PREPARING), to=WITHDRAWN, name="MessageWithdrawn/in time"),
    R(MessageWithdrawn, at=(QUEUED, LEFT), to=WITHDRAWN, emit=(ForgetMessage(),), name="MessageWithdrawn/queued"),
    R(MessageWithdrawn, at=TAKEN, refuse="it is in a request already"),
    R(MessageWithdrawn, ignore="it was delivered, or withdrawn before"),
    R(QueueDrained, at=QUEUED, to=TAKEN, emit=(PutIntoRequest(),)),
    R(QueueDrained, ignore="it is not queued"),
    R(RequestSent, at=TAKEN, to=DELIVERED),
    R(RequestSent, ignore="it is not in the request"),
    R(AttemptStopped, at=TAKEN, to=QUEUED, emit=(ReturnToHead(),),
      because="openclaw/openclaw#128008: a message taken just before an abort was lost."),
    R(AttemptStopped, ignore="the attempt had not taken it"),
    R(TurnOver, at=(QUEUED, TAKEN), to=LEFT, emit=(KeepForNextTurn(),)),
    R(TurnOver, ignore="it does not wait for this turn"),
)  # fmt: skip


# ── the machine ──

MACHINE: Machine[SteeringMessage, Event, Effect] = Machine(
    name="steering_message",
    initial=SteeringMessage(),
    now=now,
    events=get_args(Event),
    effects=get_args(Effect),
    rows=ROWS,
)
step = MACHINE.step
