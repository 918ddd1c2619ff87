"""A Stop of the OpenCode adapter: one interrupt, sent for the turn that was installed when the user asked, and its answer.

Which runtime. pingdotgg/t3code ``OpenCode2AdapterV2.ts`` @3e33a21. The interrupt names the session alone, and its reply comes as soon as
the server has accepted it, not when the run is over. A Stop waits 10 s for the reply. Whether its turn is still the one installed is
known from the terminals: a turn that ended is never installed again.

Not modelled: background work that a user's Stop ends before the turn.

Rule 1: every transition of a Stop is a row of ``ROWS``.
Rule 2: this file knows nothing of clocks, requests or transports.
"""

from __future__ import annotations

from enum import Enum
from typing import Any, get_args

from attrs import evolve, frozen

from turnproof.machines.kernel import Duration, Machine, Row, StartTimer, StopTimer, TimerRule, only_if, symbol
from turnproof.machines.session_words import EndRequested, RunMarked, StopFutile, StopSent, StopWithdrawn

# ── vocabulary ──


class StopPhase(Enum):
    """How far a Stop is."""

    IDLE = "idle"
    WAITING = "waiting"
    """Its interrupt is sent, and not answered."""
    DONE = "done"


class Timer(Enum):
    """The timers of a Stop."""

    REPLY = "reply"
    """Fires when the interrupt had no reply for so long."""


IDLE, WAITING, DONE = StopPhase

# ── state ──


@frozen
class Stop:
    """One Stop."""

    phase: StopPhase = IDLE
    own: bool = False
    """The turn it was for is still the one installed."""


# ── events ──


@frozen
class StopRequested:
    """The user, or the orchestrator, stops the turn that is installed. ``another``: a Stop of it waits for its reply already."""

    another: bool


@frozen
class InterruptAnswered:
    """The server answered the interrupt. ``interrupted``: it had something to interrupt."""

    interrupted: bool


@frozen
class InterruptFailed:
    """The interrupt was answered by an error."""


@frozen
class TurnOver:
    """The turn installed has ended."""


@frozen
class ReplyExpired:
    """The interrupt had no reply in time."""


Event = StopRequested | InterruptAnswered | InterruptFailed | TurnOver | ReplyExpired

# ── effects ──


@frozen
class SendInterrupt:
    """Send the interrupt."""


@frozen
class DropReply:
    """Nobody waits for the reply of the interrupt any more."""


Effect = SendInterrupt | DropReply | StopSent | StopWithdrawn | StopFutile | RunMarked | EndRequested | StartTimer | StopTimer

# ── rows ──

now, reply, requested = symbol(Stop), symbol(InterruptAnswered), symbol(StopRequested)
quiet = StopTimer(Timer.REPLY)
Rows = tuple[Row[Stop, Any], ...]

marks, ends = (RunMarked(), EndRequested(), DropReply()), "timed_out"
MARKING: Rows = (
    Row(InterruptAnswered, at=WAITING, to=DONE, data=evolve(now, own=False), emit=(quiet, only_if(now.own, StopFutile())), name="futile"),
    Row(InterruptFailed, at=WAITING, to=DONE, data=evolve(now, own=False), emit=(quiet, only_if(now.own, StopWithdrawn())), name="failed"),
    Row(TurnOver, at=WAITING, data=evolve(now, own=False), name="turn_over"),
    Row(ReplyExpired, at=WAITING, to=DONE, data=evolve(now, own=False), emit=marks, name=ends),
)  # fmt: skip
"""What these rows were up to V4: a Stop outlives its turn, and one that times out marks the session and ends whatever turn is installed."""

ROWS: Rows = (
    Row(requested, at=IDLE, when=requested.another, ignore="it joins the Stop that waits", name="joins"),
    Row(StopRequested, at=IDLE, to=WAITING, data=evolve(now, own=True), emit=(StopSent(), SendInterrupt(), StartTimer(Timer.REPLY))),
    Row(StopRequested, refuse="this Stop was made before"),
    Row(reply, at=WAITING, when=reply.interrupted, to=DONE, data=evolve(now, own=False), emit=(quiet,),
        because="the end on the stream is waited for, and no timer bounds it"),
    Row(InterruptAnswered, at=WAITING, to=DONE, data=evolve(now, own=False), emit=(quiet, StopFutile()), name="futile"),
    Row(InterruptAnswered, ignore="the Stop is over"),
    Row(InterruptFailed, at=WAITING, to=DONE, data=evolve(now, own=False), emit=(quiet, StopWithdrawn()), name="failed"),
    Row(InterruptFailed, ignore="the Stop is over"),
    Row(TurnOver, at=WAITING, to=DONE, data=evolve(now, own=False), emit=(quiet, DropReply()), name="turn_over"),
    Row(TurnOver, ignore="no Stop waits"),
    Row(ReplyExpired, at=WAITING, to=DONE, data=evolve(now, own=False), emit=(EndRequested(), DropReply()), name=ends),
    Row(ReplyExpired, ignore="the reply was handled, or nobody waits for it"),
)  # fmt: skip

MACHINE: Machine[Stop, Event, Effect] = Machine(
    name="session_stop",
    initial=Stop(),
    now=now,
    events=get_args(Event),
    effects=get_args(Effect),
    rows=ROWS,
    timers=(TimerRule(Timer.REPLY, now.phase == WAITING, ReplyExpired, Duration(10_000, "t3code OpenCode2AdapterV2.ts @3e33a21")),),
    released=now.phase == DONE,
)
step = MACHINE.step
