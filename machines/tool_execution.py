"""One tool call, known by its identity: what it may do to the world, whether it began, and what its end says.

What it is. A model asks for a call; the attempt counts it and lets it run; what is pending is flushed; the tool is handed its input
and begins; it ends. The attempt only counts calls (``embedded_attempt``); which call it is, that it runs once, and what it may claim
at its end, stands here. One instance a call.

Which runtime. OpenClaw's tool tracking (``embedded-agent-subscribe.handlers.tools.ts`` @1b49b646). There a call is recorded only after
a flush, so one that is about to run is not counted; here it is counted before.

The phases in one sentence. Planned, asked for, admitted and flushing, handed over, running, ended.

What it promises.
  1. It is replay-safe only if it is marked or listed as safe and is not mutating; whatever nobody knows may change the world.
  2. It is handed over at most once, and says at most once that it ended.
  3. It says that it never started only where it never will.

Not modelled: arguments, results, output. Whether a name mutates is ``tool_class``.

Rule 1: every transition of a call is a row of ``ROWS``.
Rule 2: this file knows nothing of clocks, tasks or transports.
"""

from __future__ import annotations

from enum import Enum
from typing import Annotated, get_args

from attrs import evolve, frozen

from turnproof.machines.embedded_attempt_words import Side, ToolOutcome
from turnproof.machines.kernel import Machine, Opaque, Row, choose, named, symbol

# ── vocabulary ──


class CallPhase(Enum):
    """How far a call is."""

    PLANNED = "planned"
    ASKED = "asked"
    """The attempt was asked to let it run."""
    FLUSHING = "flushing"
    """Admitted and counted; what the user should see first is being flushed."""
    HANDED = "handed"
    """The tool has its input, and has not begun."""
    RUNNING = "running"
    ENDED = "ended"


class Mutation(Enum):
    """What the analysis of mutations says of a name and its action."""

    NONE = "none"
    MUTATING = "mutating"
    UNKNOWN = "unknown"


PLANNED, ASKED, FLUSHING, HANDED, RUNNING, ENDED = CallPhase


# ── state ──


@frozen
class ToolExecution:
    """One call."""

    phase: CallPhase = PLANNED
    side: Side = Side.UNKNOWN
    """What it may do to the world, decided when it was asked for."""


# ── events: what happened ──


@frozen
class CallAsked:
    """The model asks for it. ``marked``: the event says replay-safe; ``listed``: the run lists its name as safe."""

    marked: bool
    listed: bool
    mutation: Mutation
    tool: Annotated[str, Opaque] = ""


@frozen
class CallAdmitted:
    """The attempt has counted it: it may run."""


@frozen
class Flushed:
    """What was pending is out."""


@frozen
class Began:
    """The tool began: from here on, what it does may have happened."""


@frozen
class NeverBegan:
    """The tool gave its input back: validation failed, or it could not be started."""


@frozen
class Finished:
    """The tool is over. ``marked_safe``: a structured marker says that it changed nothing."""

    marked_safe: bool
    mutation: Mutation


@frozen
class StopRequested:
    """The attempt's controller was aborted."""


Event = CallAsked | CallAdmitted | Flushed | Began | NeverBegan | Finished | StopRequested


# ── effects: what the shell must do ──


@frozen
class AskToRun:
    """Ask the attempt to count it."""

    side: Side
    tool: Annotated[str, Opaque]


@frozen
class Execute:
    """Hand the input to the tool."""


@frozen
class SignalTool:
    """Abort the tool's signal. It may obey, late or never."""


@frozen
class ReportEnd:
    """Tell the attempt that the call is over."""

    side: Side
    outcome: ToolOutcome


Effect = AskToRun | Execute | SignalTool | ReportEnd


# ── symbols ──

now = symbol(ToolExecution)
asked, finished = symbol(CallAsked), symbol(Finished)

safe = named("safe to repeat", (asked.marked | asked.listed) & (asked.mutation == Mutation.NONE))
side = choose(safe, Side.SAFE, choose(asked.mutation == Mutation.UNKNOWN, Side.UNKNOWN, Side.POTENTIAL))
proven = named("proven safe", finished.marked_safe & (finished.mutation == Mutation.NONE))
counted = now.side
never = ReportEnd(counted, ToolOutcome.NEVER_STARTED)

R = Row[ToolExecution, Effect]


# ── rows: the first that matches wins ──

ROWS: tuple[R, ...] = (
    R(asked, at=PLANNED, to=ASKED, data=evolve(now, side=side), emit=(AskToRun(side, asked.tool),)),
    R(CallAsked, ignore="it was asked for before"),
    R(CallAdmitted, at=ASKED, to=FLUSHING),
    R(CallAdmitted, ignore="it was admitted before, or is over"),
    R(Flushed, at=FLUSHING, to=HANDED, emit=(Execute(),)),
    R(Flushed, ignore="nothing waits for the flush"),
    R(Began, at=HANDED, to=RUNNING),
    R(Began, ignore="it has no input to begin with"),
    R(NeverBegan, at=HANDED, to=ENDED, emit=(never,)),
    R(NeverBegan, ignore="it began, is over, or was never handed over"),
    R(finished, at=(HANDED, RUNNING), to=ENDED, emit=(ReportEnd(counted, choose(proven, ToolOutcome.PROVEN_SAFE, ToolOutcome.HAPPENED)),),
      because="An end without a beginning: the tool began unseen, so its side effect may have happened."),
    R(Finished, ignore="it does not run"),
    R(StopRequested, at=(PLANNED, ASKED), to=ENDED, name="StopRequested/not counted"),
    R(StopRequested, at=FLUSHING, to=ENDED, emit=(never,), name="StopRequested/flushing",
      because="It was counted and never will run: the claim of a side effect is withdrawn."),
    R(StopRequested, at=(HANDED, RUNNING), emit=(SignalTool(),), because="The tool has its input; only its own end says what happened."),
    R(StopRequested, ignore="it is over"),
)  # fmt: skip


# ── the machine ──

MACHINE: Machine[ToolExecution, Event, Effect] = Machine(
    name="tool_execution",
    initial=ToolExecution(),
    now=now,
    events=get_args(Event),
    effects=get_args(Effect),
    rows=ROWS,
)
step = MACHINE.step
