"""The start of a user turn in the OpenCode adapter: every await a step, and what may happen between them does.

Which runtime. pingdotgg/t3code ``OpenCode2AdapterV2.ts`` @3e33a21. A start checks the mark, asks ``session.active`` if there is one (at
most 5 s), prepares (agent, rules, model, tools: each an await that reads the mark no more), installs the turn, reads inventories, and
hands the prompt to the HTTP client if its turn is still installed and not stopped. The reply belongs to the session (``session_mark``).

Not modelled: the wait of 30 s for a stream that is down; a start that gives up leaves nothing behind.

Rule 1: every transition of a start is a row of ``ROWS``.
Rule 2: this file knows nothing of clocks, requests or transports.
"""

from __future__ import annotations

from enum import Enum
from typing import Annotated, Any, get_args

from attrs import evolve, frozen

from turnproof.machines.kernel import NOBODY, Duration, Machine, Row, StartTimer, StopTimer, TimerRule, Token, choose, one_of, symbol
from turnproof.machines.session_stop import SendInterrupt, TurnOver
from turnproof.machines.session_words import (
    InstallRequested,
    PromptFoundOver,
    PromptHandedOver,
    SendSkipped,
    SessionFoundIdle,
    StartRefused,
)

# ── vocabulary ──


class StartPhase(Enum):
    """How far a start is."""

    IDLE = "idle"
    ASKING = "asking"
    """``session.active`` is asked, and not answered."""
    TOLD_IDLE = "told idle"
    """The answer was written, and is on its way."""
    TOLD_OVER = "told over"
    """As told idle, and the history says that the run in doubt is over."""
    TOLD_ACTIVE = "told active"
    PREPARING = "preparing"
    INSTALLED = "installed"
    """The turn is installed, and its prompt not sent."""


class Timer(Enum):
    """The timers of a start."""

    QUESTION = "question"
    """Fires when ``session.active`` had no answer for so long."""


IDLE, ASKING, TOLD_IDLE, TOLD_OVER, TOLD_ACTIVE, PREPARING, INSTALLED = StartPhase

# ── state ──


@frozen
class Start:
    """The start under way; one at a time, as the orchestrator runs one turn at a time."""

    phase: StartPhase = IDLE
    prompt: Annotated[str, Token] = NOBODY
    asked: bool = False
    """``session.active`` was asked in this start."""


# ── events ──


@frozen
class TurnWanted:
    """The orchestrator starts a user turn. ``doubt``: an earlier run may still be alive (a mark)."""

    prompt: Annotated[str, Token]
    doubt: bool


@frozen
class ActiveRead:
    """The server reads what answers the question. ``active``: the session is active; a design that asks the history as well takes it for
    active only while the run in doubt is under way. ``over``: the history says that this run is over."""

    active: bool
    over: bool = False


@frozen
class AnswerHandled:
    """The answer of ``session.active`` is handled."""


@frozen
class Prepared:
    """Every await before installing is over. ``streaming``: the stream is up."""

    streaming: bool


@frozen
class SendDue:
    """The inventories are read: the prompt may go out. ``wanted``: the turn is installed and not stopped."""

    wanted: bool


@frozen
class QuestionExpired:
    """``session.active`` had no answer in time."""


Event = TurnWanted | ActiveRead | AnswerHandled | Prepared | SendDue | TurnOver | QuestionExpired

# ── effects ──


@frozen
class SendPrompt:
    """Hand the prompt to the HTTP client."""

    prompt: Annotated[str, Token]


Effect = (
    SendPrompt | SendInterrupt | InstallRequested | StartRefused | SessionFoundIdle | PromptFoundOver | PromptHandedOver | SendSkipped
    | StartTimer | StopTimer
)  # fmt: skip

# ── rows ──

now, wanted, told, prepared, due = symbol(Start), symbol(TurnWanted), symbol(ActiveRead), symbol(Prepared), symbol(SendDue)
over = evolve(now, phase=IDLE, prompt=NOBODY, asked=False)
QUESTIONED = (ASKING, TOLD_IDLE, TOLD_OVER, TOLD_ACTIVE)
question, answered = StartTimer(Timer.QUESTION), StopTimer(Timer.QUESTION)
Rows = tuple[Row[Start, Any], ...]

ROWS: Rows = (
    Row(wanted, at=IDLE, when=wanted.doubt, data=evolve(now, phase=ASKING, prompt=wanted.prompt, asked=True), emit=(question,)),
    Row(wanted, at=IDLE, data=evolve(now, phase=PREPARING, prompt=wanted.prompt)),
    Row(TurnWanted, refuse="a start is under way"),
    Row(told, at=ASKING, data=evolve(now, phase=choose(told.active, TOLD_ACTIVE, choose(told.over, TOLD_OVER, TOLD_IDLE)))),
    Row(ActiveRead, ignore="nothing is asked"),
    # Still active: interrupt it again, and let this turn fail, "still stopping".
    Row(AnswerHandled, at=TOLD_ACTIVE, data=over, emit=(answered, SendInterrupt(), StartRefused(now.prompt))),
    Row(AnswerHandled, at=TOLD_IDLE, to=PREPARING, emit=(answered, SessionFoundIdle())),
    Row(AnswerHandled, at=TOLD_OVER, to=PREPARING, emit=(answered, PromptFoundOver())),
    Row(AnswerHandled, ignore="nothing is told"),
    Row(QuestionExpired, at=QUESTIONED, data=over),
    Row(QuestionExpired, ignore="the answer was handled"),
    Row(prepared, at=PREPARING, when=prepared.streaming, to=INSTALLED, emit=(InstallRequested(now.prompt, now.asked),)),
    Row(Prepared, at=PREPARING, data=over, because="the stream is down: an error, and no turn"),
    Row(Prepared, ignore="nothing is prepared"),
    Row(due, at=INSTALLED, when=due.wanted, data=over, emit=(SendPrompt(now.prompt), PromptHandedOver(now.prompt))),
    Row(SendDue, at=INSTALLED, data=over, emit=(SendSkipped(now.prompt),)),
    Row(SendDue, ignore="nothing is installed"),
    Row(TurnOver, at=INSTALLED, data=over, because="its turn is not the one installed any more: the prompt is never sent"),
    Row(TurnOver, ignore="no turn of this start is installed"),
)  # fmt: skip

MACHINE: Machine[Start, Event, Effect] = Machine(
    name="session_start",
    initial=Start(),
    now=now,
    events=get_args(Event),
    effects=get_args(Effect),
    rows=ROWS,
    timers=(
        TimerRule(
            Timer.QUESTION,
            one_of(now.phase, *QUESTIONED),
            QuestionExpired,
            Duration(5_000, "t3code OpenCode2AdapterV2.ts @3e33a21"),
        ),
    ),
)
step = MACHINE.step
