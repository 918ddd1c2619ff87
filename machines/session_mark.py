"""A session of the OpenCode adapter under the rule of the mark: the design as it was approved (V4), and what it grew from.

What it is. The adapter's state of one session that decides which turn an event of the stream belongs to: the turn installed, the mark,
the wakes held, and whether the session is busy. They are one machine because every guard reads them together: what an end does depends
on the mark, on the wake that runs and on the turn; what installing a turn does depends on the wake; and ``finish`` ends whatever turn is
installed. Starts, Stops and the stream are machines of their own (``session_start``, ``session_stop``, ``session_stream``); they send
events here and learn from ``ReportTurn`` that a turn is over. One instance a session.

Which runtime. pingdotgg/t3code ``OpenCode2AdapterV2.ts`` @3e33a21 (V4), and its earlier rules: 716357c (V0), 61b9521 (V1), 92daf4d and
bfa132a (V2), 145cf15 (V3); the order is certain, the exact boundaries of V2 to V4 are reconstructed from the pull request.

What it promises is ``turnproof.specs.session_mark``; what it breaks beside a server is ``turnproof.specs.session_defects``.
``turnproof.machines.session`` is the design without its defects.

Not modelled: steers and the end they hold back, text and tools, a thread of child sessions, the outcome that a held wake's end carries
(a replay reports it as it finds it: completed). A wake is held as a count: only the last can be running.

Rule 1: every transition of the session under the mark is a row of ``ROWS``.
Rule 2: this file knows nothing of clocks, requests or transports.
"""

from __future__ import annotations

from typing import Annotated, Any, get_args

from attrs import evolve, frozen

from turnproof.machines.kernel import NOBODY, Counter, Machine, Row, Token, choose, named, not_, only_if, symbol
from turnproof.machines.session_words import (
    AbsorbWake,
    Answer,
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
    Mark,
    Outcome,
    Past,
    PermissionAsked,
    PromptAnswered,
    PromptHandedOver,
    RejectPermission,
    ReportTurn,
    RunMarked,
    SendSkipped,
    SessionFoundIdle,
    ShowPermission,
    SkipEnd,
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
CLEAR, UNSTARTED, STARTED = Mark
INSTALLED = (USER, CONTINUATION)

# ── state ──


@frozen
class MarkedSession:
    """One session under the rule of the mark."""

    phase: Turn = NONE
    prompt: Annotated[str, Token] = NOBODY
    """The prompt of the user turn installed."""
    unsent: bool = False
    """The prompt of the turn installed was not handed to the HTTP client yet."""
    awaiting_start: bool = False
    """Installed after a mark: everything before this session's next start is the old run's tail."""
    stopped: bool = False
    """A Stop of the turn installed was sent: a later success counts as interrupted."""
    mark: Mark = CLEAR
    busy: bool = False
    """A start was handled and no end since, drops aside."""
    ended: Annotated[int, Counter] = 0
    """Wakes held that have ended."""
    running: bool = False
    """The last wake held still runs."""
    asked: bool = False
    """The wake that runs holds a permission request."""


Event = (
    ExecutionStarted | ExecutionEnded | ItemDelivered | PermissionAsked | HistoryRead | StreamDied | InstallRequested | StartRefused
    | SessionFoundIdle | PromptHandedOver | SendSkipped | PromptAnswered | ContinuationStarted | StopSent | StopWithdrawn | StopFutile
    | RunMarked | EndRequested
)  # fmt: skip
Effect = (
    ReportTurn | HoldWake | TakeWake | AbsorbWake | DropWakes | SkipEnd | ShowPermission | RejectPermission
)  # fmt: skip
Rows = tuple[Row[MarkedSession, Any], ...]

# ── symbols ──

now = symbol(MarkedSession)
ended, installing, read, answered = symbol(ExecutionEnded), symbol(InstallRequested), symbol(HistoryRead), symbol(PromptAnswered)
refused, handed, skipped = symbol(StartRefused), symbol(PromptHandedOver), symbol(SendSkipped)
marked = named("marked", now.mark != CLEAR)
wakes = named("a wake is held", (now.ended > 0) | now.running)


def over(**more: object) -> MarkedSession:
    """No turn is installed any more."""
    return evolve(now, phase=NONE, prompt=NOBODY, unsent=False, awaiting_start=False, stopped=False, **more)  # type: ignore[arg-type]


def report(outcome: Outcome, cause: Cause) -> ReportTurn:
    """The terminal of the turn installed."""
    return ReportTurn(outcome, now.prompt, cause)


# ── rows: what the stream tells ──

STEPPED = choose(now.mark == UNSTARTED, STARTED, CLEAR)
"""The mark after a start: of an unstarted run the first start only records; a start after that belongs to another run."""


def starts(mark: Mark) -> Rows:
    """``mark``: what the mark is after any start, before the event is held or routed."""
    return (
        Row(ExecutionStarted, when=now.running, data=evolve(now, mark=mark, busy=True), name="start/wake_runs",
            because="it is appended to the wake: a drop took the end between"),
        # Also the late start of a prompt whose request failed: nothing on the wire tells them apart.
        Row(ExecutionStarted, at=NONE, data=evolve(now, mark=mark, busy=True, running=True), emit=(HoldWake(),), name="start/wake"),
        Row(ExecutionStarted, at=INSTALLED, data=evolve(now, mark=mark, busy=True, awaiting_start=False), name="start/turn"),
    )  # fmt: skip


ENDS: Rows = (
    Row(ExecutionEnded, when=now.running, data=evolve(now, busy=False, running=False, asked=False, ended=now.ended + 1), name="end/wake"),
    Row(ExecutionEnded, when=marked, data=evolve(now, busy=False, mark=CLEAR), emit=(SkipEnd(),), name="end/marked"),
    Row(ExecutionEnded, at=NONE, data=evolve(now, busy=False), name="end/nobody"),
    Row(ExecutionEnded, at=INSTALLED, when=now.awaiting_start, data=evolve(now, busy=False), emit=(SkipEnd(),), name="end/old_tail"),
    Row(ended, at=INSTALLED, when=(ended.how == End.SUCCEEDED) & not_(now.stopped), data=over(busy=False),
        emit=(report(Outcome.COMPLETED, Cause.EXECUTION),), name="end/completed"),
    Row(ended, at=INSTALLED, when=ended.how == End.FAILED, data=over(busy=False),
        emit=(report(Outcome.FAILED, Cause.EXECUTION),), name="end/failed"),
    Row(ExecutionEnded, at=INSTALLED, data=over(busy=False), emit=(report(Outcome.INTERRUPTED, Cause.EXECUTION),), name="end/interrupted"),
)  # fmt: skip

ITEMS: Rows = (Row(ItemDelivered, ignore="the rule of the mark does not read what the inbox delivers"),)

PERMISSIONS: Rows = (
    Row(PermissionAsked, when=now.running, data=evolve(now, asked=True)),
    Row(PermissionAsked, at=INSTALLED, when=not_(now.awaiting_start), emit=(ShowPermission(),)),
    Row(PermissionAsked, when=marked | now.awaiting_start, emit=(RejectPermission(),)),
    Row(PermissionAsked, ignore="no turn is installed and nothing is marked"),
)


def reconciles(idle: Mark, active: Mark) -> Rows:
    """``idle``, ``active``: what the mark is after a reconnect that finds the session so. Every held wake is forgotten."""
    drops = only_if(wakes, DropWakes())
    gone: dict[str, Any] = {"ended": 0, "running": False, "asked": False, "busy": False, "mark": idle}
    succeeded = named("its idle item says succeeded", (read.past == Past.SUCCEEDED) & not_(now.stopped))
    return (
        Row(read, at=INSTALLED, when=not_(read.active) & succeeded, data=over(**gone),
            emit=(report(Outcome.COMPLETED, Cause.HISTORY), drops), name="reconcile/completed"),
        Row(read, at=INSTALLED, when=not_(read.active), data=over(**gone),
            emit=(report(Outcome.INTERRUPTED, Cause.HISTORY), drops), name="reconcile/interrupted"),
        Row(read, at=NONE, when=not_(read.active), data=evolve(now, **gone), emit=(drops,), name="reconcile/idle"),
        Row(read, data=evolve(now, ended=0, running=False, asked=False, mark=active), emit=(drops,), name="reconcile/active"),
    )  # fmt: skip


DEATH: Rows = (
    Row(StreamDied, at=INSTALLED, data=over(ended=0, running=False, asked=False), name="death/turn",
        emit=(report(Outcome.FAILED, Cause.STREAM), only_if(wakes, DropWakes()))),
    Row(StreamDied, data=evolve(now, ended=0, running=False, asked=False), emit=(only_if(wakes, DropWakes()),), name="death/none"),
)  # fmt: skip

# ── rows: starts, requests, Stops ──

installed = evolve(now, phase=USER, prompt=installing.prompt, unsent=True)
same = named("its turn is installed", (now.phase == USER) & (now.prompt == answered.prompt))
STARTS: Rows = (
    Row(InstallRequested, at=INSTALLED, refuse="a turn is installed"),
    Row(installing, when=now.running, data=evolve(installed, awaiting_start=False, running=False, asked=False),
        emit=(AbsorbWake(), only_if(now.asked, ShowPermission())), because="the replay of the wake's start clears awaiting_start"),
    Row(installing, data=evolve(installed, awaiting_start=installing.after), stay=True),
    Row(refused, at=NONE, emit=(ReportTurn(Outcome.FAILED, refused.prompt, Cause.REQUEST),)),
    Row(StartRefused, refuse="a turn is installed"),
    Row(SessionFoundIdle, data=evolve(now, mark=CLEAR)),
    Row(handed, at=USER, when=now.prompt == handed.prompt, data=evolve(now, unsent=False)),
    Row(PromptHandedOver, ignore="its turn is over"),
    # A start that finds its turn stopped returns and says nothing.
    Row(SendSkipped, ignore="the Stop is going to end the turn"),
    Row(PromptAnswered, when=not_(same), ignore="its turn is over"),
    Row(answered, when=answered.answer == Answer.OK, ignore="the turn ends by the stream"),
    Row(answered, when=answered.answer == Answer.REFUSED, data=over(), emit=(report(Outcome.FAILED, Cause.REQUEST),)),
    Row(PromptAnswered, data=over(mark=choose(now.busy, STARTED, UNSTARTED)), emit=(report(Outcome.FAILED, Cause.REQUEST),),
        name="prompt/unclear"),
)  # fmt: skip

REPLAYED: Rows = (
    Row(ContinuationStarted, at=NONE, when=now.ended > 0, data=evolve(now, ended=now.ended - 1), name="continue/ended",
        emit=(TakeWake(), ReportTurn(Outcome.COMPLETED, NOBODY, Cause.REPLAY))),
)  # fmt: skip
REPLAYED_EATEN: Rows = (
    Row(ContinuationStarted, at=NONE, when=(now.ended > 0) & marked, name="continue/eaten", emit=(TakeWake(), SkipEnd()),
        data=evolve(now, phase=CONTINUATION, ended=now.ended - 1, mark=CLEAR)),
    *REPLAYED,
)  # fmt: skip


def takes(mark: Mark) -> Rows:
    """``mark``: what the mark is once a continuation took a wake that runs."""
    return (
        Row(ContinuationStarted, at=NONE, when=now.running, name="continue/running",
            emit=(TakeWake(), only_if(now.asked, ShowPermission())),
            data=evolve(now, phase=CONTINUATION, running=False, asked=False, mark=mark)),
    )  # fmt: skip


CONTINUES: Rows = (
    Row(ContinuationStarted, at=NONE, emit=(ReportTurn(Outcome.COMPLETED, NOBODY, Cause.REQUEST),), name="continue/nothing"),
    Row(ContinuationStarted, refuse="a turn is installed"),
)
STOPS: Rows = (
    Row(StopSent, at=INSTALLED, data=evolve(now, stopped=True)),
    Row(StopSent, ignore="no turn is installed"),
    Row(StopWithdrawn, data=evolve(now, stopped=False)),
    Row(StopFutile, at=USER, when=now.unsent, data=over(), emit=(report(Outcome.INTERRUPTED, Cause.STOP),)),
    Row(StopFutile, data=evolve(now, stopped=False)),
    Row(RunMarked, data=evolve(now, mark=choose(now.busy, STARTED, UNSTARTED)), name="mark"),
    Row(EndRequested, at=INSTALLED, data=over(), emit=(report(Outcome.INTERRUPTED, Cause.STOP),)),
    Row(EndRequested, ignore="no turn is installed"),
)

ROWS: Rows = (
    *starts(STEPPED), *ENDS, *ITEMS, *PERMISSIONS, *reconciles(choose(marked, STARTED, CLEAR), now.mark), *DEATH, *STARTS, *REPLAYED,
    *takes(CLEAR), *CONTINUES, *STOPS,
)  # fmt: skip


MACHINE: Machine[MarkedSession, Event, Effect] = Machine(
    name="session_mark",
    initial=MarkedSession(),
    now=now,
    events=get_args(Event),
    effects=get_args(Effect),
    rows=ROWS,
)
"""V4."""
step = MACHINE.step
