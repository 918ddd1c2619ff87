"""A session of the OpenCode adapter that goes by what was delivered: the target, without the mark and without its defects.

What it is. The adapter's state of one session that decides which turn an event of the stream belongs to. The events of an execution name
nobody, so this design asks them for nothing: an execution serves a turn from the moment the inbox delivers the turn's own item to it, and
the next end on the same stream is the end of that execution, for executions follow one another. Where the stream was lost, the history of
the server says what became of the item. One instance a session.

Which runtime. An adapter beside an OpenCode server (anomalyco/opencode ``run-coordinator.ts`` @074027a) whose wire stays as it is:
``session.inbox.delivered`` with the item's id, the message list, ``session.active`` and ``inbox.cancel``. ``session_mark`` is the design
it replaces.

The rules, each with the defect of the mark that it removes:
  1. An end ends a turn only if the turn's item was delivered to that execution. No end is eaten, and none ends another's turn.
  2. A Stop ends the turn it was for, and no other; one that comes before the prompt is sent ends it at once.
  3. After a reconnect the history decides about the item, not whether the session is active. A prompt still on its way is left alone.
  4. While a prompt is sent and not delivered, the history is read again every 10 s: a prompt that is parked is taken out of the inbox.
  5. A prompt whose turn ended and whose run is not known to be over stays in doubt, by its id: the next start asks for it, and goes on
     unless its run is under way. An answer about the session alone clears nothing.
  6. Wakes are kept over a reconnect. A permission request is always shown.

What it promises: S1 to S8, L1 to L5 and L7 of ``turnproof.specs.session_properties``, and L6 of ``session_times``, on a wire where a
reconnect tells whether the server is still the same process (S9 is about ``busy``, a flag that this design does not need).

Not modelled: steers and the end they hold back, text and tools, background work that a user's Stop ends, child sessions, the outcome
a held wake's end carries. A wake is held as a count: only the last can be running. Of several prompts in doubt the last is named; that
there are more is remembered, and every start asks.

Rule 1: every transition of the session is a row of ``ROWS``.
Rule 2: this file knows nothing of clocks, requests or transports.
"""

from __future__ import annotations

from enum import Enum
from typing import Annotated, Any, get_args

from attrs import evolve, frozen

from turnproof.machines.kernel import (
    NOBODY,
    Counter,
    Duration,
    Machine,
    Row,
    StartTimer,
    StopTimer,
    TimerRule,
    Token,
    choose,
    named,
    not_,
    only_if,
    symbol,
)
from turnproof.machines.session_words import (
    AbsorbWake,
    Answer,
    CancelPrompt,
    Cause,
    ContinuationStarted,
    DropWakes,
    End,
    EndRequested,
    ExecutionEnded,
    ExecutionStarted,
    HistoryRead,
    HoldWake,
    InstallRequested,
    ItemDelivered,
    Outcome,
    Past,
    PermissionAsked,
    PromptAnswered,
    PromptCancelled,
    PromptFoundOver,
    PromptHandedOver,
    ReadAgain,
    ReportTurn,
    SendSkipped,
    SessionFoundIdle,
    ShowPermission,
    StartRefused,
    StopFutile,
    StopSent,
    StopWithdrawn,
    StreamDied,
    TakeWake,
    Turn,
)

# ── vocabulary ──

NONE, USER, CONTINUATION = Turn
INSTALLED = (USER, CONTINUATION)


class Sending(Enum):
    """How far the prompt of the user turn installed is, as the adapter knows."""

    UNSENT = "unsent"
    SENT = "sent"
    TAKEN = "taken"
    """The reply said so: it is in the inbox, or was delivered from there."""
    UNSURE = "unsure"
    """The history has it under way; whether its delivery is still to come on the stream is not known."""
    SERVED = "served"
    """It was delivered to the execution that runs on the stream: the next end is its end."""


class Timer(Enum):
    """The timers of a session."""

    RECHECK = "recheck"
    """Fires when a prompt was sent so long ago, and is not delivered."""


UNSENT, SENT, TAKEN, UNSURE, SERVED = Sending

# ── state ──


@frozen
class Session:
    """One session."""

    phase: Turn = NONE
    item: Annotated[str, Token] = NOBODY
    """The item of the turn installed, or of the wake that runs while none is; nobody: none, or its delivery was not handled yet."""
    sending: Sending = UNSENT
    stopped: bool = False
    """A Stop of the turn installed was sent: a later success counts as interrupted."""
    ended: Annotated[int, Counter] = 0
    """Wakes held that have ended."""
    running: bool = False
    """The last wake held still runs."""
    doubt: Annotated[str, Token] = NOBODY
    """A prompt whose turn ended, and whose run is not known to be over."""
    more: bool = False
    """There are others in doubt."""


# ── events ──


@frozen
class RecheckExpired:
    """A prompt was sent so long ago, and is not delivered."""


Event = (
    ExecutionStarted | ExecutionEnded | ItemDelivered | PermissionAsked | HistoryRead | StreamDied | InstallRequested | StartRefused
    | SessionFoundIdle | PromptFoundOver | PromptHandedOver | SendSkipped | PromptAnswered | PromptCancelled | ContinuationStarted
    | StopSent | StopWithdrawn | StopFutile | EndRequested | RecheckExpired
)  # fmt: skip
Effect = (
    ReportTurn | HoldWake | TakeWake | AbsorbWake | DropWakes | ShowPermission | ReadAgain | CancelPrompt | StartTimer | StopTimer
)  # fmt: skip
Rows = tuple[Row[Session, Any], ...]

# ── symbols ──

now = symbol(Session)
ended, delivered, installing, read = symbol(ExecutionEnded), symbol(ItemDelivered), symbol(InstallRequested), symbol(HistoryRead)
answered, cancelled, refused = symbol(PromptAnswered), symbol(PromptCancelled), symbol(StartRefused)
handed, skipped = symbol(PromptHandedOver), symbol(SendSkipped)
served = named("the turn is served", (now.phase == CONTINUATION) | (now.sending == SERVED))
watched = named("its prompt is sent and not delivered",
    (now.phase == USER) & ((now.sending == SENT) | (now.sending == TAKEN) | (now.sending == UNSURE)))  # fmt: skip
wakes = named("a wake is held", (now.ended > 0) | now.running)
START_RECHECK, STOP_RECHECK = StartTimer(Timer.RECHECK), StopTimer(Timer.RECHECK)
IF_WATCHED = only_if(watched, STOP_RECHECK)


def over(**more: object) -> Session:
    """No turn is installed any more, and nothing is in doubt because of it."""
    return evolve(now, phase=NONE, item=NOBODY, sending=UNSENT, stopped=False, **more)  # type: ignore[arg-type]


def doubtful(**more: object) -> Session:
    """No turn is installed any more, and the run of its prompt may still come, or be alive."""
    return over(doubt=now.item, more=now.more | (now.doubt != NOBODY), **more)


def tells(outcome: Outcome, cause: Cause, *timer: object) -> tuple[Any, ...]:
    """The terminal of the user turn installed, or of the continuation. ``timer``: what becomes of the recheck."""
    return *timer, ReportTurn(outcome, choose(now.phase == USER, now.item, NOBODY), cause)


def leaves(outcome: Outcome, cause: Cause, timer: object) -> tuple[Any, ...]:
    """The terminal of the turn installed, whose prompt is taken out of the inbox if it still waits there."""
    return *tells(outcome, cause, timer), CancelPrompt(now.item)


# ── rows: what the stream tells ──

succeeded = named("it counts as completed", (ended.how == End.SUCCEEDED) & not_(now.stopped))
unserved_stop = named("its Stop ended another run",
    (now.phase == USER) & now.stopped & (ended.how == End.INTERRUPTED) & (now.sending != UNSENT))  # fmt: skip

STREAMED: Rows = (
    Row(ExecutionStarted, at=NONE, data=evolve(now, running=True, item=NOBODY), emit=(HoldWake(),)),
    # What was under way before is over, or this is its own start: then its delivery follows.
    Row(ExecutionStarted, at=USER, when=now.sending == UNSURE, data=evolve(now, sending=TAKEN)),
    Row(ExecutionStarted, at=INSTALLED, stay=True),
    Row(delivered, at=USER, when=(delivered.item == now.item) & watched, data=evolve(now, sending=SERVED), emit=(STOP_RECHECK,)),
    Row(ItemDelivered, at=USER, ignore="another's item, or told before"),
    Row(delivered, when=(now.item == NOBODY) & ((now.phase == CONTINUATION) | now.running), data=evolve(now, item=delivered.item),
        because="the first item delivered to the execution of a wake is what the history knows it by"),
    Row(ItemDelivered, ignore="the wake has its item, or there is none"),
    Row(ExecutionEnded, at=NONE, when=now.running, data=evolve(now, running=False, item=NOBODY, ended=now.ended + 1)),
    Row(ExecutionEnded, at=NONE, stay=True),
    Row(ended, when=served & succeeded, data=over(), emit=tells(Outcome.COMPLETED, Cause.EXECUTION)),
    Row(ended, when=served & (ended.how == End.FAILED), data=over(), emit=tells(Outcome.FAILED, Cause.EXECUTION)),
    Row(ExecutionEnded, when=served, data=over(), emit=tells(Outcome.INTERRUPTED, Cause.EXECUTION)),
    Row(ended, when=unserved_stop, data=doubtful(), emit=leaves(Outcome.INTERRUPTED, Cause.EXECUTION, STOP_RECHECK)),
    Row(ExecutionEnded, when=now.sending == UNSURE, stay=True, emit=(ReadAgain(now.item),)),
    Row(ExecutionEnded, stay=True, because="the end of a run that did not serve the turn"),
    Row(PermissionAsked, emit=(ShowPermission(),), because="a request that nobody sees blocks the session"),
)  # fmt: skip

# ── rows: what the history tells ──

lost = named("the server lost its run", (read.past == Past.UNDER_WAY) & not_(read.active))
parked = named("it is parked in the inbox", (read.past == Past.ABSENT) & not_(read.active) & (now.sending == TAKEN))
HISTORY: Rows = (
    # Of a run that a restart took, the history may read as if a later one had served it.
    Row(read, at=USER, when=read.restarted & (read.past != Past.ABSENT), data=doubtful(),
        emit=tells(Outcome.INTERRUPTED, Cause.HISTORY, IF_WATCHED)),
    Row(read, at=CONTINUATION, when=read.restarted, data=over(), emit=tells(Outcome.INTERRUPTED, Cause.HISTORY)),
    Row(read, at=NONE, when=read.restarted & now.running, data=evolve(now, running=False, item=NOBODY, ended=now.ended + 1)),
    Row(read, at=INSTALLED, when=(read.past == Past.SUCCEEDED) & not_(now.stopped), data=over(),
        emit=tells(Outcome.COMPLETED, Cause.HISTORY, IF_WATCHED)),
    Row(read, at=INSTALLED, when=(read.past == Past.SUCCEEDED) | (read.past == Past.INTERRUPTED), data=over(),
        emit=tells(Outcome.INTERRUPTED, Cause.HISTORY, IF_WATCHED)),
    Row(read, at=USER, when=lost, data=doubtful(), emit=tells(Outcome.INTERRUPTED, Cause.HISTORY, IF_WATCHED)),
    Row(read, at=CONTINUATION, when=lost | (now.item == NOBODY), data=over(),
        emit=tells(Outcome.INTERRUPTED, Cause.HISTORY), because="without an item nobody can tell whether what runs is its execution"),
    Row(read, at=USER, when=(read.past == Past.UNDER_WAY) & watched, data=evolve(now, sending=UNSURE)),
    Row(read, at=USER, when=parked, stay=True, emit=(CancelPrompt(now.item),)),
    Row(read, at=INSTALLED, stay=True),
    Row(read, when=now.running & read.active & (read.past == Past.UNDER_WAY), stay=True),
    Row(read, when=now.running, data=evolve(now, running=False, item=NOBODY, ended=now.ended + 1)),
    Row(read, stay=True),
    Row(RecheckExpired, when=watched, emit=(START_RECHECK, ReadAgain(now.item))),
    Row(RecheckExpired, ignore="the prompt was delivered, or its turn is over"),
    Row(StreamDied, at=USER, when=now.sending != UNSENT, data=doubtful(ended=0, running=False),
        emit=(*tells(Outcome.FAILED, Cause.STREAM, IF_WATCHED), only_if(wakes, DropWakes()))),
    Row(StreamDied, at=INSTALLED, data=over(ended=0, running=False),
        emit=(*tells(Outcome.FAILED, Cause.STREAM), only_if(wakes, DropWakes()))),
    Row(StreamDied, data=evolve(now, ended=0, running=False, item=NOBODY), emit=(only_if(wakes, DropWakes()),)),
)  # fmt: skip

# ── rows: starts and requests ──

own = named("its turn is installed", (now.phase == USER) & (now.item == answered.prompt))
ours = named("its turn is installed", (now.phase == USER) & (now.item == cancelled.prompt))
STARTS: Rows = (
    Row(InstallRequested, at=INSTALLED, refuse="a turn is installed"),
    Row(installing, data=evolve(now, phase=USER, item=installing.prompt, running=False, sending=UNSENT),
        emit=(only_if(now.running, AbsorbWake()),), because="what the wake holds is replayed into the turn; its end does not end the turn"),
    Row(refused, at=NONE, emit=(ReportTurn(Outcome.FAILED, refused.prompt, Cause.REQUEST),)),
    Row(StartRefused, refuse="a turn is installed"),
    Row(SessionFoundIdle, when=now.doubt != NOBODY, emit=(CancelPrompt(now.doubt),), because="it may wait in the inbox, or come later"),
    Row(SessionFoundIdle, ignore="nothing is in doubt by its name"),
    Row(PromptFoundOver, data=evolve(now, doubt=NOBODY)),
    Row(handed, at=USER, when=(now.item == handed.prompt) & (now.sending == UNSENT), data=evolve(now, sending=SENT), emit=(START_RECHECK,)),
    Row(PromptHandedOver, ignore="its turn is over, or it was handed over before"),
    Row(skipped, at=USER, when=(now.item == skipped.prompt) & (now.sending == UNSENT), data=over(),
        emit=tells(Outcome.INTERRUPTED, Cause.STOP)),
    Row(SendSkipped, ignore="its turn is over, or its prompt is out"),
    Row(answered, when=own & (answered.answer == Answer.OK) & (now.sending == SENT), data=evolve(now, sending=TAKEN)),
    Row(answered, when=own & (answered.answer == Answer.REFUSED), data=over(), emit=tells(Outcome.FAILED, Cause.REQUEST, IF_WATCHED)),
    Row(answered, when=own & (answered.answer == Answer.UNCLEAR) & (now.sending == SENT), data=doubtful(),
        emit=leaves(Outcome.FAILED, Cause.REQUEST, STOP_RECHECK)),
    Row(answered, when=(answered.prompt == now.doubt) & (answered.answer == Answer.REFUSED), data=evolve(now, doubt=NOBODY)),
    Row(PromptAnswered, ignore="its turn is over, or the inbox has told more than the reply does"),
    Row(cancelled, when=ours, data=over(), emit=tells(Outcome.FAILED, Cause.REQUEST, IF_WATCHED)),
    Row(cancelled, when=cancelled.prompt == now.doubt, data=evolve(now, doubt=NOBODY)),
    Row(PromptCancelled, ignore="nobody waits for it"),
)  # fmt: skip

# ── rows: continuations and Stops ──

STOPS: Rows = (
    Row(ContinuationStarted, at=NONE, when=now.ended > 0, data=evolve(now, ended=now.ended - 1),
        emit=(TakeWake(), ReportTurn(Outcome.COMPLETED, NOBODY, Cause.REPLAY))),
    Row(ContinuationStarted, at=NONE, when=now.running, to=CONTINUATION, data=evolve(now, running=False), emit=(TakeWake(),)),
    Row(ContinuationStarted, at=NONE, emit=(ReportTurn(Outcome.COMPLETED, NOBODY, Cause.REQUEST),)),
    Row(ContinuationStarted, refuse="a turn is installed"),
    Row(StopSent, at=INSTALLED, data=evolve(now, stopped=True)),
    Row(StopSent, ignore="no turn is installed"),
    Row(StopWithdrawn, data=evolve(now, stopped=False)),
    Row(StopFutile, at=USER, when=now.sending == UNSENT, data=over(), emit=tells(Outcome.INTERRUPTED, Cause.STOP)),
    Row(StopFutile, data=evolve(now, stopped=False)),
    Row(EndRequested, at=USER, when=now.sending != UNSENT, data=doubtful(), emit=leaves(Outcome.INTERRUPTED, Cause.STOP, IF_WATCHED)),
    Row(EndRequested, at=INSTALLED, data=over(), emit=tells(Outcome.INTERRUPTED, Cause.STOP)),
    Row(EndRequested, ignore="no turn is installed"),
)  # fmt: skip

ROWS: Rows = (*STREAMED, *HISTORY, *STARTS, *STOPS)

MACHINE: Machine[Session, Event, Effect] = Machine(
    name="session",
    initial=Session(),
    now=now,
    events=get_args(Event),
    effects=get_args(Effect),
    rows=ROWS,
    timers=(TimerRule(Timer.RECHECK, watched, RecheckExpired, Duration(10_000, "as long as an interrupt's reply is waited for")),),
)
step = MACHINE.step
