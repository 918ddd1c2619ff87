"""How long an OpenCode session without its stream keeps anybody waiting: the attempts to reconnect, and a start that waits for them.

A stream that is lost is subscribed again, five times at most, two seconds apart; subscribing and reading the history have 15 s together. A
start that finds the stream down waits 30 s for it. Both are awaits of the shell beside the machines; here they are machines of their own,
around ``session_stream`` and ``session_start``, so that the bounds of R-SES-15 are computed and not added up by hand.

Five attempts of 15 s and four pauses of 2 s make 83 s: no pause comes before the first. A start never waits for the interrupt it sends to a
session that is still active, so its bounds are 30 s for the stream, and 5 s
for the question once the stream is back; what it prepares are awaits of the HTTP client.

Source: pingdotgg/t3code ``OpenCode2Client.ts`` and ``OpenCode2AdapterV2.ts`` @3e33a21, for all figures.
"""

from __future__ import annotations

from enum import Enum
from typing import Annotated, Any

from attrs import evolve, frozen

from turnproof.machines import session_start as start_words
from turnproof.machines import session_stream as stream_words
from turnproof.machines import session_words as words
from turnproof.machines.kernel import (
    TIMER_EFFECTS,
    Duration,
    Machine,
    Range,
    Row,
    StartTimer,
    StopTimer,
    TimerRule,
    implies,
    one_of,
    symbol,
)
from turnproof.machines.session_stop import TurnOver
from turnproof.machines.session_stream import DEAD, UP
from turnproof.machines.session_words import Past
from turnproof.specs.language import Always, Property, Sometimes, Step
from turnproof.specs.session_parts import start, stream
from turnproof.specs.session_requirements import requirements
from turnproof.specs.session_times import BEGUN, OWN
from turnproof.specs.system import Absorbs, Budget, Part, Spontaneous, System, SystemSpec, Unsent, Wire, Within

SOURCE = "t3code OpenCode2AdapterV2.ts @3e33a21"
LAST = 4
"""Attempts that may fail before the last one."""

# ── the attempts ──


class Phase(Enum):
    """How the connection stands."""

    CONNECTED = "connected"
    SUBSCRIBING = "subscribing"
    READING = "reading"
    """Subscribed, and the history is being read."""
    PAUSING = "pausing"
    GIVEN_UP = "given up"


class Timer(Enum):
    """The timers of a reconnect."""

    ATTEMPT = "attempt"
    """Fires when an attempt took so long."""
    PAUSE = "pause"
    """Fires when the next attempt is due."""


@frozen
class Reconnect:
    """The attempts to subscribe again."""

    phase: Phase = Phase.CONNECTED
    failed: Annotated[int, Range(0, LAST)] = 0
    """Attempts that failed since the stream was up."""


@frozen
class ConnectionLost:
    """The subscription ended, or was silent for 45 s."""


@frozen
class SubscriptionStands:
    """The server answered the subscription."""


@frozen
class HistoryCame:
    """``session.active`` and the history were read."""


@frozen
class AttemptFailed:
    """An attempt was answered by an error."""


@frozen
class AttemptExpired:
    """An attempt was not answered in time."""


@frozen
class PauseExpired:
    """The next attempt is due."""


CONNECTED, SUBSCRIBING, READING, PAUSING, GIVEN_UP = Phase
TRYING = (SUBSCRIBING, READING)
now = symbol(Reconnect)
PAUSED = (stream_words.Dropped(), StartTimer(Timer.PAUSE))
SPENT = (stream_words.Dropped(), stream_words.AttemptsSpent())
QUIET = StopTimer(Timer.ATTEMPT)
again = evolve(now, phase=PAUSING, failed=now.failed + 1)
more = now.failed < LAST

RECONNECT: Machine[Reconnect, Any, Any] = Machine(
    name="session_reconnect_attempts",
    initial=Reconnect(),
    now=now,
    events=(ConnectionLost, SubscriptionStands, HistoryCame, AttemptFailed, AttemptExpired, PauseExpired),
    effects=(stream_words.Dropped, stream_words.Subscribed, stream_words.SnapshotTaken, stream_words.AttemptsSpent, StartTimer, StopTimer),
    rows=(
        Row(ConnectionLost, at=CONNECTED, to=SUBSCRIBING, emit=(stream_words.Dropped(), StartTimer(Timer.ATTEMPT))),
        Row(ConnectionLost, ignore="there is no connection"),
        Row(SubscriptionStands, at=SUBSCRIBING, to=READING, emit=(stream_words.Subscribed(),), name="subscribed"),
        Row(SubscriptionStands, ignore="nobody waits for it"),
        # What the history says is nothing to the time it takes.
        Row(HistoryCame, at=READING, data=evolve(now, phase=CONNECTED, failed=0),
            emit=(QUIET, stream_words.SnapshotTaken(True, Past.ABSENT))),
        Row(HistoryCame, ignore="nobody waits for it"),
        Row(AttemptFailed, at=TRYING, when=more, data=again, emit=(QUIET, *PAUSED)),
        Row(AttemptFailed, at=TRYING, to=GIVEN_UP, emit=(QUIET, *SPENT)),
        Row(AttemptFailed, ignore="none is under way"),
        Row(AttemptExpired, at=TRYING, when=more, data=again, emit=PAUSED),
        Row(AttemptExpired, at=TRYING, to=GIVEN_UP, emit=SPENT),
        Row(AttemptExpired, ignore="none is under way"),
        Row(PauseExpired, at=PAUSING, to=SUBSCRIBING, emit=(StartTimer(Timer.ATTEMPT),), name="attempt"),
        Row(PauseExpired, ignore="no attempt is due"),
    ),
    timers=(
        TimerRule(Timer.ATTEMPT, one_of(now.phase, *TRYING), AttemptExpired, Duration(15_000, SOURCE)),
        TimerRule(Timer.PAUSE, now.phase == PAUSING, PauseExpired, Duration(2_000, SOURCE)),
    ),
)  # fmt: skip

# ── a start that waits for the stream ──


class Patience(Enum):
    """How a start that was wanted stands."""

    IDLE = "idle"
    WAITING = "waiting"
    """For a stream that is down."""
    OVER = "over"
    """It began, or was refused."""


class WaitTimer(Enum):
    """The timer of the wait."""

    STREAM = "stream"
    """Fires when a start waited so long for the stream."""


@frozen
class Waiting:
    """A start before its first question."""

    phase: Patience = Patience.IDLE


@frozen
class StartWanted:
    """The orchestrator starts a user turn. ``up``: the stream is up."""

    up: bool


@frozen
class StreamIsBack:
    """The history was read, and the stream is up."""


@frozen
class WaitExpired:
    """The stream did not come back in time: an error, and no turn."""


waiting, wanted = symbol(Waiting), symbol(StartWanted)
IDLE, WAITS, OVER = Patience
begins = start_words.TurnWanted("a", True)
WAIT: Machine[Waiting, Any, Any] = Machine(
    name="session_start_wait",
    initial=Waiting(),
    now=waiting,
    events=(StartWanted, StreamIsBack, WaitExpired),
    effects=(start_words.TurnWanted, StartTimer, StopTimer),
    rows=(
        Row(wanted, at=IDLE, when=wanted.up, to=OVER, emit=(begins,)),
        Row(StartWanted, at=IDLE, to=WAITS, emit=(StartTimer(WaitTimer.STREAM),)),
        Row(StartWanted, refuse="a start is under way"),
        Row(StreamIsBack, at=WAITS, to=OVER, emit=(StopTimer(WaitTimer.STREAM), begins)),
        Row(StreamIsBack, ignore="nobody waits for it"),
        Row(WaitExpired, at=WAITS, to=OVER, name="refused"),
        Row(WaitExpired, ignore="nobody waits"),
    ),
    timers=(TimerRule(WaitTimer.STREAM, waiting.phase == WAITS, WaitExpired, Duration(30_000, SOURCE)),),
)

# ── the system ──

reconnect, wait = Part("reconnect", RECONNECT), Part("wait", WAIT)
LOSSES = Budget("losses", 2)


def system() -> System:
    """The stream, its attempts, and one start."""
    trying = one_of(reconnect.now.phase, *TRYING)
    told = one_of(start.now.phase, start_words.TOLD_IDLE, start_words.TOLD_OVER, start_words.TOLD_ACTIVE)
    asking = start.now.phase == start_words.ASKING
    answers = ((False, False), (False, True), (True, False))
    return System(
        name="session_reconnect",
        parts=(reconnect, stream, wait, start),
        wires=(
            *(Wire(reconnect, effect, stream) for effect in (stream_words.Dropped, stream_words.Subscribed, stream_words.SnapshotTaken,
                                                             stream_words.AttemptsSpent)),
            Wire(stream, words.HistoryRead, wait, StreamIsBack()),
            Wire(wait, start_words.TurnWanted, start),
        ),
        spontaneous=(
            Spontaneous(reconnect, ConnectionLost(), when=reconnect.now.phase == CONNECTED, budget=LOSSES),
            Spontaneous(reconnect, SubscriptionStands(), when=reconnect.now.phase == SUBSCRIBING),
            Spontaneous(reconnect, HistoryCame(), when=reconnect.now.phase == READING),
            Spontaneous(reconnect, AttemptFailed(), when=trying),
            Spontaneous(wait, StartWanted(stream.now.phase == UP), when=wait.now.phase == IDLE),
            *(Spontaneous(start, start_words.ActiveRead(*answer), when=asking) for answer in answers),
            Spontaneous(start, start_words.AnswerHandled(), when=told),
            Spontaneous(start, start_words.Prepared(stream.now.phase == UP), when=start.now.phase == start_words.PREPARING),
            Spontaneous(start, start_words.SendDue(True), when=start.now.phase == start_words.INSTALLED),
        ),
        absorbed=(
            Absorbs(stream, *(e for e in stream.machine.effects if e is not words.HistoryRead)),
            Absorbs(start, *(e for e in start.machine.effects if e not in TIMER_EFFECTS)),
        ),
        unsent=(
            Unsent(stream, stream_words.Published, stream_words.Arrived, stream_words.ServerLost, words.ReadAgain,
                   because="nothing is published here"),
            Unsent(start, TurnOver, because="nothing ends the turn of this start before it is sent"),
        ),
    )  # fmt: skip


SETTLES = "L6: a stream that is lost is up again, or given up, within 83 s, although nothing is answered"
HALFWAY = "L6: a stream that is lost is up again, or given up, within 83 s, although only its subscriptions are answered"
BEGINS = "L6: a start that finds no stream begins or is refused within 30 s, although the stream stays away"
ENDS = "L6: a start that began is over within 5 s, although its question is not answered"
NEVER_BACK = "the user sees a session that reconnects for ever"
SYSTEM = system()
settled = one_of(stream.now.phase, UP, DEAD)

PROPERTIES: tuple[Property, ...] = (
    Within(SETTLES, reconnect.took(ConnectionLost), settled, requirements="R-SES-15", milliseconds=83_000, harm=NEVER_BACK),
    Within(HALFWAY, reconnect.took(ConnectionLost), settled, requirements="R-SES-15", milliseconds=83_000, at_once=(SubscriptionStands,),
           harm=NEVER_BACK),
    Within(BEGINS, wait.took(StartWanted), wait.now.phase != WAITS, requirements="R-SES-15", milliseconds=30_000, harm=BEGUN),
    Within(ENDS, wait.emits(start_words.TurnWanted), start.now.phase == start_words.IDLE, requirements="R-SES-15", milliseconds=5_000,
           at_once=OWN[1:], harm=BEGUN),
    Always("the stream is up exactly while it is connected", (stream.now.phase == UP) == (reconnect.now.phase == CONNECTED),
           requirements="R-SES-15", harm="a turn waits for events of a connection that is gone"),
    Step("a stream is given up only by its fifth attempt", requirements="R-SES-16",
         harm="a connection that would come back is given up, and every turn on it fails", holds=
         implies(reconnect.emits(stream_words.AttemptsSpent), (reconnect.now.failed == LAST) & one_of(reconnect.now.phase, *TRYING))),
    Sometimes("the fifth attempt succeeds", reconnect.took(HistoryCame) & (reconnect.now.failed == LAST), requirements="R-SES-15"),
    Sometimes("the stream is given up while a start waits", stream.emits(words.StreamDied) & (wait.now.phase == WAITS),
              requirements="R-SES-15"),
    Sometimes("a start that waited begins", wait.took(StreamIsBack), requirements="R-SES-15"),
)  # fmt: skip


SPEC = SystemSpec(
    system=SYSTEM,
    requirements=requirements(15, 16),
    properties=PROPERTIES,
    tokens=1,
    counter=1,
)
