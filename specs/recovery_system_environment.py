"""The environment of the recovery system: the owner of the turn, the signal that attempts listen to, a restart, calls from inside a cancel.

Written as machines, so that each may do what a real one does at its worst: an owner that never answers, a restart in the middle of a
recovery, a listener that aborts again from inside the cancel it was called by. None of them is part of the runtime. The two monitors at
the end see what no part can: how often the side effect of the turn happened, and how often an answer was delivered.
"""

from __future__ import annotations

from enum import Enum
from typing import Annotated, Any

from attrs import evolve, frozen

from turnproof.machines.embedded_attempt_words import Side
from turnproof.machines.kernel import Machine, Range, Row, choose, not_, symbol
from turnproof.machines.reply_operation_words import CancelReason

# ── the owner of the turn ──


class OwnerPhase(Enum):
    """How far the owner is. It may stay anywhere for ever."""

    WORKING = "working"
    ENDED = "ended"
    """It has told the reply how the turn ended."""
    LEFT = "left"
    """Its task has left the lane."""


@frozen
class TurnOwner:
    """The code that runs the turn as a task of the lane."""

    phase: OwnerPhase = OwnerPhase.WORKING


@frozen
class TurnSettled:
    """The turn is decided; the owner comes back to it."""

    failed: bool


@frozen
class TaskLeft:
    """Its task ends."""


@frozen
class CompleteReply:
    """Complete the reply."""


@frozen
class FailReply:
    """Fail the reply."""


@frozen
class EndTask:
    """End the task in the lane."""


owner, settles = symbol(TurnOwner), symbol(TurnSettled)
OWNER: Machine[TurnOwner, Any, Any] = Machine(
    name="turn_owner",
    initial=TurnOwner(),
    now=owner,
    events=(TurnSettled, TaskLeft),
    effects=(CompleteReply, FailReply, EndTask),
    rows=(
        Row(settles, at=OwnerPhase.WORKING, when=settles.failed, to=OwnerPhase.ENDED, emit=(FailReply(),)),
        Row(TurnSettled, at=OwnerPhase.WORKING, to=OwnerPhase.ENDED, emit=(CompleteReply(),)),
        Row(TurnSettled, ignore="it is done"),
        Row(TaskLeft, at=OwnerPhase.ENDED, to=OwnerPhase.LEFT, emit=(EndTask(),)),
        Row(TaskLeft, ignore="it is not done, or gone"),
    ),
)


# ── the signal that an attempt listens to ──


class ListenerPhase(Enum):
    """Whether the attempt was started, and listens."""

    UNSTARTED = "unstarted"
    LISTENING = "listening"


@frozen
class Listener:
    """An attempt's listener on the reply's one signal."""

    phase: ListenerPhase = ListenerPhase.UNSTARTED
    aborted: bool = False
    """The signal has fired."""


@frozen
class Started:
    """The attempt starts, and looks at the signal first."""


@frozen
class Fired:
    """The signal fires."""


@frozen
class TellAttempt:
    """Tell the attempt that its caller aborted."""


listener = symbol(Listener)
LISTENER: Machine[Listener, Any, Any] = Machine(
    name="signal_listener",
    initial=Listener(),
    now=listener,
    events=(Started, Fired),
    effects=(TellAttempt,),
    rows=(
        Row(Started, at=ListenerPhase.UNSTARTED, when=listener.aborted, to=ListenerPhase.LISTENING, emit=(TellAttempt(),)),
        Row(Started, at=ListenerPhase.UNSTARTED, to=ListenerPhase.LISTENING),
        Row(Started, ignore="it was started before"),
        Row(Fired, at=ListenerPhase.LISTENING, when=not_(listener.aborted), data=evolve(listener, aborted=True), emit=(TellAttempt(),)),
        Row(Fired, when=not_(listener.aborted), data=evolve(listener, aborted=True), name="Fired/before it started"),
        Row(Fired, ignore="a signal fires once"),
    ),
)


# ── a restart of the process's lifecycle ──


class ProcessPhase(Enum):
    """Which lifecycle."""

    FIRST = "first"
    SECOND = "second"


@frozen
class Process:
    """The process."""

    phase: ProcessPhase = ProcessPhase.FIRST


@frozen
class Restarted:
    """It restarts its lifecycle."""


@frozen
class RotateRuns:
    """A new generation for the registry of runs."""


@frozen
class AbortForRestart:
    """Abort the reply for the restart."""


PROCESS: Machine[Process, Any, Any] = Machine(
    name="process",
    initial=Process(),
    now=symbol(Process),
    events=(Restarted,),
    effects=(RotateRuns, AbortForRestart),
    rows=(
        Row(Restarted, at=ProcessPhase.FIRST, to=ProcessPhase.SECOND, emit=(AbortForRestart(), RotateRuns())),
        Row(Restarted, ignore="one restart is enough"),
    ),
)


# ── a call from inside a cancel ──


class ReentryPhase(Enum):
    """Whether the next cancel comes back as calls."""

    QUIET = "quiet"
    ARMED = "armed"
    SPENT = "spent"


@frozen
class Reentry:
    """A listener that aborts reply and attempt again from inside the cancel it is told of."""

    phase: ReentryPhase = ReentryPhase.QUIET


@frozen
class ListenerArmed:
    """Somebody registers such a listener."""


@frozen
class CancelSeen:
    """The attempt is being cancelled."""

    reason: CancelReason


@frozen
class AbortAgain:
    """Ask the reply to abort, as if a person had."""


@frozen
class CancelAgain:
    """Cancel the attempt, as if a person had."""


seen = symbol(CancelSeen)


def reentry(*, during_recovery: bool) -> Machine[Reentry, Any, Any]:
    """The listener. ``during_recovery``: it may also ask the reply from inside the cancel of a stuck recovery."""
    again = (AbortAgain(), CancelAgain())
    recovering = seen.reason == CancelReason.STUCK_RECOVERY
    return Machine(
        name="reentry",
        initial=Reentry(),
        now=symbol(Reentry),
        events=(ListenerArmed, CancelSeen),
        effects=(AbortAgain, CancelAgain),
        rows=(
            Row(ListenerArmed, at=ReentryPhase.QUIET, to=ReentryPhase.ARMED),
            Row(ListenerArmed, ignore="one listener is enough"),
            *([] if during_recovery else [
                Row(seen, at=ReentryPhase.ARMED, when=recovering, to=ReentryPhase.SPENT, emit=(CancelAgain(),), name="CancelSeen/recovery",
                    because="The shell answers a call to abort from inside the cancel of a recovery itself: it is no person's.")]),
            Row(CancelSeen, at=ReentryPhase.ARMED, to=ReentryPhase.SPENT, emit=again),
            Row(CancelSeen, ignore="nobody listens"),
        ),
    )  # fmt: skip


REENTRY = reentry(during_recovery=False)


# ── monitors: ground truth that no part can see ──


class Times(Enum):
    """How often something happened."""

    NEVER = "never"
    ONCE = "once"
    TWICE = "twice"


@frozen
class EffectLedger:
    """How often the side effect of the turn happened. Both attempts ask for the same call; each asks for it at most once."""

    phase: Times = Times.NEVER
    first_may: bool = False
    """The first attempt's call may change the world."""
    second_may: bool = False


@frozen
class CallDeclared:
    """An attempt's call was asked for, and is of that side."""

    number: Annotated[int, Range(1, 2)]
    side: Side


@frozen
class CallBegan:
    """It began."""

    number: Annotated[int, Range(1, 2)]


@frozen
class CallDisproved:
    """It ended, and proved that it changed nothing."""

    number: Annotated[int, Range(1, 2)]


ledger = symbol(EffectLedger)
declared, began, disproved = symbol(CallDeclared), symbol(CallBegan), symbol(CallDisproved)
one_more = choose(ledger.phase == Times.NEVER, Times.ONCE, Times.TWICE)
one_less = choose(ledger.phase == Times.TWICE, Times.ONCE, Times.NEVER)


def may(number: int) -> bool:
    """The call of that number may change the world."""
    return ((number == 1) & ledger.first_may) | ((number == 2) & ledger.second_may)


LEDGER: Machine[EffectLedger, Any, Any] = Machine(
    name="effect_ledger",
    initial=EffectLedger(),
    now=ledger,
    events=(CallDeclared, CallBegan, CallDisproved),
    effects=(),
    rows=(
        Row(declared, when=declared.number == 1, data=evolve(ledger, first_may=declared.side != Side.SAFE), name="CallDeclared/first"),
        Row(declared, data=evolve(ledger, second_may=declared.side != Side.SAFE), name="CallDeclared/second"),
        Row(began, when=may(began.number), data=evolve(ledger, phase=one_more)),
        Row(CallBegan, ignore="it may run as often as it likes"),
        Row(disproved, when=may(disproved.number), data=evolve(ledger, phase=one_less)),
        Row(CallDisproved, ignore="it may run as often as it likes"),
    ),
)


@frozen
class AnswerCount:
    """How often an answer was delivered."""

    phase: Times = Times.NEVER


@frozen
class AnswerDelivered:
    """An answer was delivered."""


ANSWERS: Machine[AnswerCount, Any, Any] = Machine(
    name="answer_count",
    initial=AnswerCount(),
    now=symbol(AnswerCount),
    events=(AnswerDelivered,),
    effects=(),
    rows=(
        Row(AnswerDelivered, at=Times.NEVER, to=Times.ONCE),
        Row(AnswerDelivered, to=Times.TWICE),
    ),
)


class Provider(Enum):
    """Whether a request of the first attempt lives."""

    SILENT = "silent"
    ASKED = "asked"


@frozen
class ProviderView:
    """What the provider itself knows of the first attempt's requests, of which there is one at a time."""

    phase: Provider = Provider.SILENT


@frozen
class RequestLives:
    """A request was sent."""


@frozen
class RequestOver:
    """It is over."""


PROVIDER: Machine[ProviderView, Any, Any] = Machine(
    name="provider_view",
    initial=ProviderView(),
    now=symbol(ProviderView),
    events=(RequestLives, RequestOver),
    effects=(),
    rows=(
        Row(RequestLives, to=Provider.ASKED),
        Row(RequestOver, to=Provider.SILENT),
    ),
)
