"""The event stream of the OpenCode adapter: volatile, ordered, and without memory.

Which runtime. pingdotgg/t3code ``OpenCode2Client.ts`` and ``OpenCode2AdapterV2.ts`` @3e33a21. A subscription delivers what is published
after it; nothing is replayed and there is no cursor. A drop loses what is published until the next subscription and what lies in the
buffer. After a reconnect ``session.active`` and the history are read before any event of the new subscription is handled.

What is published names the execution here, so that a monitor can know it; the machine hands on a start, an end and a permission request
without it. Only what the inbox delivers carries an id on the wire.

Rule 1: every transition of the stream is a row of ``ROWS``.
Rule 2: this file knows nothing of clocks, requests or transports.
"""

from __future__ import annotations

from enum import Enum
from typing import Annotated, Any, get_args

from attrs import evolve, frozen

from turnproof.machines.kernel import NOBODY, Machine, Row, Token, symbol
from turnproof.machines.session_words import (
    End,
    ExecutionEnded,
    ExecutionStarted,
    HistoryRead,
    ItemDelivered,
    Past,
    PermissionAsked,
    ReadAgain,
    StreamDied,
)

# ── vocabulary ──


class StreamPhase(Enum):
    """How the stream stands."""

    UP = "up"
    LOST = "lost"
    SUBSCRIBED = "subscribed"
    """Subscribed, and nothing is handled until the history was read."""
    DEAD = "dead"


class What(Enum):
    """What a published event says."""

    STARTED = "started"
    DELIVERED = "delivered"
    ASKED = "asked"
    SUCCEEDED = "succeeded"
    INTERRUPTED = "interrupted"
    FAILED = "failed"


UP, LOST, SUBSCRIBED, DEAD = StreamPhase

# ── state ──


@frozen
class Stream:
    """The subscription."""

    phase: StreamPhase = UP
    restarted: bool = False
    """The server was another process when the stream was up last."""


# ── events ──


@frozen
class Published:
    """The server published an event of this session."""

    what: What
    execution: Annotated[str, Token]
    item: Annotated[str, Token] = NOBODY


@frozen
class Arrived:
    """An event of the buffer is handled."""

    what: What
    execution: Annotated[str, Token]
    item: Annotated[str, Token] = NOBODY


@frozen
class Dropped:
    """The connection broke, or was silent for 45 s."""


@frozen
class ServerLost:
    """The connection broke because the server's process is gone; another one takes its place."""


@frozen
class Subscribed:
    """A new subscription stands."""


@frozen
class SnapshotTaken:
    """``session.active`` and the history were read."""

    active: bool
    past: Past
    restarted: bool = False
    """The process is seen to be another one."""


@frozen
class AttemptsSpent:
    """The fifth attempt to reconnect failed."""


Event = Published | Arrived | Dropped | ServerLost | Subscribed | SnapshotTaken | AttemptsSpent | ReadAgain

# ── effects ──


@frozen
class Buffer:
    """Keep the event until it is handled."""

    what: What
    execution: Annotated[str, Token]
    item: Annotated[str, Token]


@frozen
class LoseBuffer:
    """What was buffered is lost."""


@frozen
class AskHistory:
    """Read ``session.active`` and the history of the item."""

    item: Annotated[str, Token]


Effect = Buffer | LoseBuffer | AskHistory | ExecutionStarted | ExecutionEnded | ItemDelivered | PermissionAsked | HistoryRead | StreamDied

# ── rows ──

now, published, arrived = symbol(Stream), symbol(Published), symbol(Arrived)
taken, again = symbol(SnapshotTaken), symbol(ReadAgain)
Rows = tuple[Row[Stream, Any], ...]

ROWS: Rows = (
    Row(published, at=(UP, SUBSCRIBED), emit=(Buffer(published.what, published.execution, published.item),)),
    Row(Published, ignore="nobody is subscribed"),
    Row(arrived, when=arrived.what == What.STARTED, emit=(ExecutionStarted(),)),
    Row(arrived, when=arrived.what == What.DELIVERED, emit=(ItemDelivered(arrived.item),)),
    Row(arrived, when=arrived.what == What.ASKED, emit=(PermissionAsked(),)),
    Row(arrived, when=arrived.what == What.SUCCEEDED, emit=(ExecutionEnded(End.SUCCEEDED),)),
    Row(arrived, when=arrived.what == What.INTERRUPTED, emit=(ExecutionEnded(End.INTERRUPTED),)),
    Row(Arrived, emit=(ExecutionEnded(End.FAILED),)),
    Row(Dropped, at=(UP, SUBSCRIBED), to=LOST, emit=(LoseBuffer(),)),
    Row(Dropped, ignore="there is no connection"),
    Row(ServerLost, at=(UP, SUBSCRIBED), data=evolve(now, phase=LOST, restarted=True), emit=(LoseBuffer(),)),
    Row(ServerLost, at=LOST, data=evolve(now, restarted=True)),
    Row(ServerLost, ignore="the stream is dead"),
    Row(Subscribed, at=LOST, to=SUBSCRIBED),
    Row(Subscribed, ignore="the stream is not lost"),
    Row(taken, at=SUBSCRIBED, data=evolve(now, phase=UP, restarted=False), emit=(HistoryRead(taken.active, taken.past, taken.restarted),)),
    Row(SnapshotTaken, ignore="nothing waits for it"),
    Row(AttemptsSpent, at=LOST, to=DEAD, emit=(StreamDied(),)),
    Row(AttemptsSpent, ignore="the stream is not lost"),
    Row(again, at=UP, emit=(AskHistory(again.item),)),
    Row(ReadAgain, ignore="the reconnect reads it, or nothing can"),
)  # fmt: skip

MACHINE: Machine[Stream, Event, Effect] = Machine(
    name="session_stream",
    initial=Stream(),
    now=now,
    events=get_args(Event),
    effects=get_args(Effect),
    rows=ROWS,
    released=now.phase == DEAD,
)
step = MACHINE.step
