"""A turn of an OpenCode session whose user sends more while it runs: a steer, under the approved rule and without its defects.

A steer is one more item of the inbox, delivered at a step boundary of the execution that runs. Where the execution ends first, the server
begins another for it, and the turn's end has to wait: it is **held**. Parts of a world of its own (``session_steers``), beside the machines
of the session: one turn that is served, one steer, one Stop. The stream, the requests and the Stops are those of the session.

The approved rule (``HELD_BY_SET``) holds a success while it knows of a steer that is not delivered, and is told by the stream alone what
became of it. The other design (``HELD_BY_HISTORY``) trusts the stream only from the steer's own delivery to the end that follows it; else
it reads the history, at every end and every 10 s, and takes a steer that is parked out of the inbox. A steer whose request failed unclearly
stays in doubt until the history tells. These are rules 1, 3, 4 and 5 of ``turnproof.machines.session``.

Source: pingdotgg/t3code ``OpenCode2AdapterV2.ts`` @3e33a21 for the held end; what a reconnect does to ``steers`` is not said there, and so
it does nothing here.
"""

from __future__ import annotations

from enum import Enum
from typing import Any

from attrs import evolve, frozen

from turnproof.machines import session_words as words
from turnproof.machines.kernel import Duration, Machine, Row, StartTimer, StopTimer, TimerRule, choose, named, not_, only_if, symbol
from turnproof.machines.session_stream import What
from turnproof.machines.session_words import Answer, Cause, End, Outcome, Past
from turnproof.specs.session_environment import (
    BreakStream,
    CleanedUp,
    Finished,
    Interrupted,
    InterruptReply,
    Joined,
    Publish,
    Restarted,
    ServerPhase,
    Settled,
    StartPublished,
)

PROMPT, STEER, REPORT = "p", "s", "c"
"""The turn's prompt, its steer, and the report of a background child; executions are not told apart here."""

# ── the server ──


class Place(Enum):
    """Where the steer, or the report, is."""

    ABSENT = "absent"
    WAITING = "waiting"
    RUNNING = "running"
    OVER = "over"
    CANCELLED = "cancelled"


IDLE, QUEUED, RUNNING, STOPPING, SETTLING = ServerPhase


@frozen
class Server:
    """The execution that serves the turn, and those after it."""

    phase: ServerPhase = RUNNING
    steer: Place = Place.ABSENT
    report: Place = Place.ABSENT
    doorbell: bool = False
    past: Past = Past.UNDER_WAY
    """What the history says of the last item of the turn that was delivered."""
    lost: bool = False
    """The process died while that item ran: what the history says of it later is said of another's run."""


@frozen
class SteerAdmitted:
    """The steer is in the inbox."""


@frozen
class ReportQueued:
    """A background child reports."""


@frozen
class CancelAsked:
    """``inbox.cancel`` of the steer is processed."""


@frozen
class TurnAsked:
    """``session.active`` and the history of the turn are read. ``restarted``: by a reconnect that finds another process."""

    restarted: bool = False


@frozen
class TurnRead:
    """What they say, of the turn's last item delivered, and of the steer."""

    active: bool
    past: Past
    delivered: bool
    restarted: bool = False


@frozen
class SteerCancelled:
    """The steer was taken out of the inbox before it was delivered."""


server, hit, asked = symbol(Server), symbol(Interrupted), symbol(TurnAsked)
steer_waits, report_waits = server.steer == Place.WAITING, server.report == Place.WAITING
waiting = named("something waits in the inbox", steer_waits | report_waits)


def _runs(**more: object) -> Server:
    """Everything that waits is delivered."""
    return evolve(server, steer=choose(steer_waits, Place.RUNNING, server.steer), past=choose(steer_waits, Past.UNDER_WAY, server.past),
                  lost=server.lost & not_(steer_waits), report=choose(report_waits, Place.RUNNING, server.report), **more)  # type: ignore[arg-type]  # fmt: skip


def _ends(past: Past) -> Server:
    """The execution under way is over; a later one's idle item says nothing new of a turn that was over."""
    return evolve(server, phase=SETTLING, past=choose(server.past == Past.UNDER_WAY, past, server.past),
                  steer=choose(server.steer == Place.RUNNING, Place.OVER, server.steer),
                  report=choose(server.report == Place.RUNNING, Place.OVER, server.report))  # fmt: skip


DELIVERS = (only_if(steer_waits, Publish(What.DELIVERED, PROMPT, STEER)), only_if(report_waits, Publish(What.DELIVERED, PROMPT, REPORT)))
BEGINS = (Publish(What.STARTED, PROMPT), *DELIVERS)
told = TurnRead(server.phase != IDLE, server.past, (server.steer == Place.RUNNING) | (server.steer == Place.OVER), asked.restarted)
rings = server.phase != QUEUED
SERVER: Machine[Server, Any, Any] = Machine(
    name="session_steered_server",
    initial=Server(),
    now=server,
    events=(SteerAdmitted, ReportQueued, StartPublished, Joined, Finished, Interrupted, CleanedUp, Settled, Restarted, CancelAsked,
            TurnAsked),
    effects=(Publish, InterruptReply, BreakStream, TurnRead, SteerCancelled),
    rows=(
        Row(SteerAdmitted, at=IDLE, data=evolve(server, phase=QUEUED, steer=Place.WAITING)),
        Row(SteerAdmitted, data=evolve(server, steer=Place.WAITING, doorbell=rings)),
        Row(ReportQueued, at=IDLE, data=evolve(server, phase=QUEUED, report=Place.WAITING)),
        Row(ReportQueued, data=evolve(server, report=Place.WAITING, doorbell=rings)),
        Row(StartPublished, at=QUEUED, when=waiting, data=_runs(phase=RUNNING), emit=BEGINS),
        Row(StartPublished, at=QUEUED, to=IDLE, because="what it was begun for was cancelled"),
        Row(StartPublished, ignore="nothing is queued"),
        Row(Joined, at=RUNNING, when=waiting, data=_runs(doorbell=False), emit=DELIVERS),
        Row(Joined, ignore="nothing waits for the execution that runs"),
        Row(Finished, at=RUNNING, data=_ends(Past.SUCCEEDED), emit=(Publish(What.SUCCEEDED, PROMPT),)),
        Row(Finished, ignore="nothing runs"),
        Row(Interrupted, at=RUNNING, to=STOPPING, data=evolve(server, doorbell=False), emit=(InterruptReply(True),)),
        Row(hit, at=QUEUED, when=hit.early, to=STOPPING, emit=(InterruptReply(True),)),
        Row(Interrupted, at=QUEUED, when=waiting, data=_runs(phase=STOPPING), emit=(InterruptReply(True), *BEGINS)),
        Row(Interrupted, at=SETTLING, data=evolve(server, doorbell=False), emit=(InterruptReply(False),),
            because="the doorbell is dropped: no successor, and the inbox rows stay parked"),
        Row(Interrupted, emit=(InterruptReply(False),)),
        Row(CleanedUp, at=STOPPING, data=_ends(Past.INTERRUPTED), emit=(Publish(What.INTERRUPTED, PROMPT),)),
        Row(CleanedUp, ignore="nothing stops"),
        Row(Settled, at=SETTLING, when=server.doorbell, to=QUEUED, data=evolve(server, doorbell=False)),
        Row(Settled, at=SETTLING, to=IDLE),
        Row(Settled, ignore="nothing settles"),
        Row(CancelAsked, when=steer_waits, data=evolve(server, steer=Place.CANCELLED), emit=(SteerCancelled(),)),
        Row(CancelAsked, ignore="it was delivered, or is not there"),
        Row(Restarted, data=evolve(server, phase=IDLE, doorbell=False, lost=server.past == Past.UNDER_WAY,
                                   steer=choose(server.steer == Place.RUNNING, Place.OVER, server.steer),
                                   report=choose(server.report == Place.RUNNING, Place.OVER, server.report)), emit=(BreakStream(),)),
        Row(asked, emit=(told,), stay=True),
    ),
)  # fmt: skip

# ── the turn ──


class Standing(Enum):
    """How the turn stands, as the adapter knows."""

    SERVED = "served"
    HELD = "held"
    """An end came, and a steer may be to come; or the stream dropped: whose end comes next is not known."""
    OVER = "over"


class Steering(Enum):
    """How far the steer is, as the adapter knows."""

    NONE = "none"
    SENT = "sent"
    TAKEN = "taken"
    """The reply said so."""
    DOUBTFUL = "doubtful"
    """Its request failed unclearly: it may be in the inbox, or come there yet."""
    SETTLED = "settled"
    """Delivered, cancelled or refused."""


class Timer(Enum):
    """The timers of a turn."""

    RECHECK = "recheck"
    """Fires when a turn was held so long."""


SERVED, HELD, OVER = Standing
NONE, SENT, TAKEN, DOUBTFUL, SETTLED = Steering


@frozen
class SteeredTurn:
    """The turn installed, and its steer."""

    phase: Standing = SERVED
    steer: Steering = NONE
    stopped: bool = False


@frozen
class SteerWanted:
    """The user sends more."""


@frozen
class SteerAnswered:
    """The reply of the steer's request."""

    answer: Answer


@frozen
class RecheckExpired:
    """A turn was held so long."""


@frozen
class SendSteer:
    """Send it with the delivery "steer"."""


@frozen
class CancelSteer:
    """``inbox.cancel``."""


@frozen
class ReadTurn:
    """Read ``session.active`` and the history of the turn."""


now, ended, delivered = symbol(SteeredTurn), symbol(words.ExecutionEnded), symbol(words.ItemDelivered)
answered, read = symbol(SteerAnswered), symbol(TurnRead)
undelivered = named("a steer is not delivered", (now.steer == SENT) | (now.steer == TAKEN))
Rows = tuple[Row[SteeredTurn, Any], ...]
over = evolve(now, phase=OVER, steer=SETTLED, stopped=False)
IF_STOPPED: Any = choose(now.stopped, Outcome.INTERRUPTED, Outcome.COMPLETED)


def tells(outcome: Any, cause: Cause) -> words.ReportTurn:
    """The turn's terminal."""
    return words.ReportTurn(outcome, PROMPT, cause)


COMMON: Rows = (
    Row(SteerWanted, at=SERVED, when=not_(now.stopped) & (now.steer == NONE), data=evolve(now, steer=SENT), emit=(SendSteer(),)),
    Row(SteerWanted, refuse="a steer is for a turn that runs and is not being stopped"),
    Row(words.StopSent, at=(SERVED, HELD), data=evolve(now, stopped=True)),
    Row(words.StopSent, ignore="the turn is over"),
    Row(words.StopWithdrawn, data=evolve(now, stopped=False)),
)
EVENTS: tuple[type, ...] = (
    SteerWanted, SteerAnswered, SteerCancelled, TurnRead, words.ExecutionStarted, words.ExecutionEnded, words.ItemDelivered, words.StopSent,
    words.StopWithdrawn, words.StopFutile, words.EndRequested,
)  # fmt: skip

# ── the approved rule ──

success = named("its end is a success", (ended.how == End.SUCCEEDED) & not_(now.stopped))
by_history: Any = choose((read.past == Past.SUCCEEDED) & not_(now.stopped), Outcome.COMPLETED, Outcome.INTERRUPTED)
HELD_BY_SET: Machine[SteeredTurn, Any, Any] = Machine(
    name="session_held_by_set",
    initial=SteeredTurn(),
    now=now,
    events=(*EVENTS, words.RunMarked),
    effects=(words.ReportTurn, SendSteer, CancelSteer),
    rows=(
        *COMMON,
        Row(words.ExecutionStarted, at=HELD, to=SERVED),
        Row(words.ExecutionStarted, ignore="nothing is held"),
        Row(delivered, when=(delivered.item == STEER) & undelivered, data=evolve(now, steer=SETTLED)),
        Row(words.ItemDelivered, ignore="another's item, or the turn is over"),
        Row(words.ExecutionEnded, at=OVER, ignore="the turn is over"),
        Row(ended, when=success & undelivered, to=HELD),
        Row(ended, when=success, data=over, emit=(tells(Outcome.COMPLETED, Cause.EXECUTION),)),
        Row(words.ExecutionEnded, data=over, emit=(tells(Outcome.INTERRUPTED, Cause.EXECUTION),)),
        Row(answered, at=(SERVED, HELD), when=answered.answer == Answer.OK, ignore="what becomes of it comes on the stream"),
        Row(SteerAnswered, at=HELD, when=undelivered, data=over, emit=(tells(Outcome.COMPLETED, Cause.EXECUTION),)),
        Row(SteerAnswered, at=SERVED, when=undelivered, data=evolve(now, steer=SETTLED)),
        Row(SteerAnswered, ignore="it was delivered, or the turn is over"),
        Row(SteerCancelled, at=HELD, data=over, emit=(tells(Outcome.COMPLETED, Cause.EXECUTION),)),
        Row(SteerCancelled, ignore="nothing is held"),
        Row(read, at=(SERVED, HELD), when=not_(read.active), data=over, emit=(tells(by_history, Cause.HISTORY),)),
        Row(TurnRead, ignore="a session that is active keeps its turn"),
        Row(words.StopFutile, at=HELD, data=over, emit=(tells(Outcome.INTERRUPTED, Cause.STOP), CancelSteer())),
        Row(words.StopFutile, data=evolve(now, stopped=False)),
        Row(words.EndRequested, at=(SERVED, HELD), data=over, emit=(tells(Outcome.INTERRUPTED, Cause.STOP),)),
        Row(words.EndRequested, ignore="the turn is over"),
        Row(words.RunMarked, ignore="what the mark does is told elsewhere"),
    ),
)  # fmt: skip

# ── the design without its defects ──

ARM, DISARM = StartTimer(Timer.RECHECK), only_if(now.phase == HELD, StopTimer(Timer.RECHECK))
there = named("the steer is still to be delivered", undelivered & not_(read.delivered))
doubtful = now.steer == DOUBTFUL
known: Any = choose((undelivered | doubtful) & read.delivered, SETTLED, now.steer)
closed = named("the history has an end of it", (read.past == Past.SUCCEEDED) | (read.past == Past.INTERRUPTED))
arms = only_if(now.phase == SERVED, ARM)
READ_HELD = only_if(now.phase == HELD, ReadTurn())
HELD_BY_HISTORY: Machine[SteeredTurn, Any, Any] = Machine(
    name="session_held_by_history",
    initial=SteeredTurn(),
    now=now,
    events=(*EVENTS, RecheckExpired),
    effects=(words.ReportTurn, SendSteer, CancelSteer, ReadTurn, StartTimer, StopTimer),
    rows=(
        *COMMON,
        Row(words.ExecutionStarted, ignore="it may be another's"),
        Row(delivered, at=(SERVED, HELD), when=(delivered.item == STEER) & (now.steer != NONE),
            data=evolve(now, phase=SERVED, steer=SETTLED), emit=(DISARM,), because="the next end on this stream is its own"),
        Row(words.ItemDelivered, ignore="another's item, or the turn is over"),
        Row(words.ExecutionEnded, at=OVER, ignore="the turn is over"),
        Row(words.ExecutionEnded, at=HELD, stay=True, emit=(ReadTurn(),), because="whose end it is the history tells"),
        Row(ended, at=SERVED, when=success & (undelivered | doubtful), to=HELD, emit=(ARM, only_if(doubtful, ReadTurn()))),
        Row(ended, at=SERVED, when=success, data=over, emit=(tells(Outcome.COMPLETED, Cause.EXECUTION),)),
        Row(words.ExecutionEnded, data=over,
            emit=(tells(Outcome.INTERRUPTED, Cause.EXECUTION), only_if(undelivered | doubtful, CancelSteer()))),
        Row(answered, when=undelivered & (answered.answer == Answer.OK), data=evolve(now, steer=TAKEN)),
        Row(answered, when=undelivered & (answered.answer == Answer.REFUSED), data=evolve(now, steer=SETTLED), emit=(READ_HELD,)),
        Row(SteerAnswered, when=undelivered, data=evolve(now, steer=DOUBTFUL), emit=(CancelSteer(), READ_HELD),
            because="it may be in the inbox all the same"),
        Row(SteerAnswered, ignore="it was delivered, or the turn is over"),
        Row(SteerCancelled, at=(SERVED, HELD), data=evolve(now, steer=SETTLED), emit=(READ_HELD,)),
        Row(SteerCancelled, ignore="the turn is over"),
        Row(TurnRead, at=OVER, ignore="the turn is over"),
        # Of a run that a restart took, the history may read as if a later one had served it.
        Row(read, when=read.restarted, data=over, emit=(tells(Outcome.INTERRUPTED, Cause.HISTORY), DISARM, CancelSteer())),
        Row(read, when=closed & not_(there), data=over, emit=(tells(by_history, Cause.HISTORY), DISARM)),
        Row(read, when=not_(read.active) & (now.steer == TAKEN) & there, data=evolve(now, phase=HELD), emit=(arms, CancelSteer()),
            because="it is parked in the inbox"),
        Row(read, when=not_(read.active) & not_(closed), data=over, emit=(tells(Outcome.INTERRUPTED, Cause.HISTORY), DISARM),
            because="its run is lost, and no restart was told: on this wire one is told"),
        Row(read, data=evolve(now, phase=HELD, steer=known), emit=(arms,)),
        Row(RecheckExpired, at=HELD, emit=(ARM, ReadTurn()), stay=True),
        Row(RecheckExpired, ignore="nothing is held"),
        Row(words.StopFutile, at=HELD, data=over, emit=(tells(Outcome.INTERRUPTED, Cause.STOP), DISARM, CancelSteer())),
        Row(words.StopFutile, data=evolve(now, stopped=False)),
        Row(words.EndRequested, at=(SERVED, HELD), data=over, emit=(tells(Outcome.INTERRUPTED, Cause.STOP), DISARM, CancelSteer())),
        Row(words.EndRequested, ignore="the turn is over"),
    ),
    timers=(TimerRule(Timer.RECHECK, now.phase == HELD, RecheckExpired, Duration(10_000, "as long as a reply is waited for")),),
)  # fmt: skip
