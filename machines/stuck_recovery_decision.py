"""The pure decision of one watchdog tick where the operation owns its watchdog: facts in, one decision with its reason out.

What it is. In the newest design there is no routine any more that drains and clears: an operation has a watchdog of its own, and a
recovery is one tick of it. The tick compares the clock with the deadlines that the operation declared, and the first row that matches
decides. Comparing is the shell's business; here each comparison is a fact.

Which runtime. OpenClaw's ``sessions/session-controller.watchdog-state.ts`` (its commit is not known; it may be a branch).

What it promises.
  1. Every combination of facts is decided by the first row that matches, with its reason.
  2. It has no memory: the same facts always give the same decision.

Not modelled: who sets the deadlines.

Rule 1: every decision is a row of ``ROWS``.
Rule 2: this file knows nothing of clocks, tasks or transports.
"""

from __future__ import annotations

from enum import Enum

from attrs import frozen

from turnproof.machines.kernel import Machine, Row, choose, named, one_of, symbol

# ── vocabulary ──


class Memory(Enum):
    """What a decision remembers of the one before."""

    NONE = "none"


class Standing(Enum):
    """Whose operation it is."""

    CURRENT = "current"
    REPLACED = "replaced"
    """Another one is current in its session."""
    SETTLED = "settled"


class Record(Enum):
    """The recovery that is on record."""

    NONE = "none"
    PENDING = "pending"
    """Begun less than 60 s ago."""
    OVERDUE = "overdue"
    """Pending for 60 s or more."""
    BLOCKED = "blocked"


class OperationPhase(Enum):
    """How far the operation is."""

    WORKING = "working"
    FINISHING = "finishing"
    FINISHING_LATE = "finishing_late"
    """Past its clean-up deadline."""
    TERMINAL = "terminal"
    TERMINAL_LATE = "terminal_late"


class Silence(Enum):
    """How long there was no semantic progress."""

    SHORT = "short"
    QUIET = "quiet"
    """120 s or more."""
    DUE = "due"
    """Past the deadline for semantic progress (300 s by default)."""


class Decision(Enum):
    """What the tick does."""

    OBSERVE = "observe"
    WARN = "warn"
    STOP = "stop"
    EXPIRE_CLEANUP = "expire_cleanup"
    BLOCKED = "blocked"


class Why(Enum):
    """Why."""

    RETIRED = "retired"
    RECOVERING = "recovering"
    RECOVERY_BLOCKED = "recovery_blocked"
    FINALIZATION_STALLED = "finalization_stalled"
    TERMINAL_UNRELEASED = "terminal_unreleased"
    CLEANING_UP = "cleaning_up"
    EXECUTION_DEADLINE = "execution_deadline"
    HEALTHY_WAIT = "healthy_wait"
    SEMANTIC_STALL = "semantic_stall"
    QUIET = "quiet"
    HEALTHY = "healthy"


# ── state: none ──


@frozen
class StuckDecision:
    """It has no memory."""

    phase: Memory = Memory.NONE


# ── events: what happened ──


@frozen
class Ticked:
    """One tick, with its facts."""

    standing: Standing
    record: Record
    phase: OperationPhase
    execution_due: bool
    """The deadline of the whole execution has passed."""
    waits: bool
    """A declared wait is not past its own deadline."""
    silence: Silence
    tools_due: bool
    """Every declared deadline of a tool has passed; true without tools."""


Event = Ticked


# ── effects: what the shell must do ──


@frozen
class Decide:
    """Do that, and say why."""

    decision: Decision
    why: Why


Effect = Decide


# ── symbols ──

now, tick = symbol(StuckDecision), symbol(Ticked)

R = Row[StuckDecision, Effect]


def decides(decision: Decision, why: Why, when: bool | None, name: str) -> R:
    """A row."""
    return R(tick, when=when, emit=(Decide(decision, why),), name=name)


ending = named("it ends", tick.phase != OperationPhase.WORKING)
late = named("its clean-up is late", one_of(tick.phase, OperationPhase.FINISHING_LATE, OperationPhase.TERMINAL_LATE))
stalled_end = choose(tick.phase == OperationPhase.FINISHING_LATE, Why.FINALIZATION_STALLED, Why.TERMINAL_UNRELEASED)


# ── rows: the first that matches wins ──

ROWS: tuple[R, ...] = (
    decides(Decision.OBSERVE, Why.RETIRED, tick.standing != Standing.CURRENT, "1 retired"),
    decides(Decision.BLOCKED, Why.RECOVERY_BLOCKED, one_of(tick.record, Record.BLOCKED, Record.OVERDUE), "2 recovery blocked"),
    decides(Decision.OBSERVE, Why.RECOVERING, tick.record == Record.PENDING, "2 recovering"),
    R(tick, when=late, emit=(Decide(Decision.EXPIRE_CLEANUP, stalled_end),), name="3 clean-up is late"),
    decides(Decision.OBSERVE, Why.CLEANING_UP, ending, "3 cleans up"),
    decides(Decision.STOP, Why.EXECUTION_DEADLINE, tick.execution_due, "4 execution deadline"),
    decides(Decision.OBSERVE, Why.HEALTHY_WAIT, tick.waits, "5 waits"),
    decides(Decision.STOP, Why.SEMANTIC_STALL, (tick.silence == Silence.DUE) & tick.tools_due, "6 semantic stall"),
    decides(Decision.WARN, Why.QUIET, tick.silence != Silence.SHORT, "7 quiet"),
    decides(Decision.OBSERVE, Why.HEALTHY, None, "8 healthy"),
)  # fmt: skip


# ── the machine ──

MACHINE: Machine[StuckDecision, Ticked, Decide] = Machine(
    name="stuck_decision",
    initial=StuckDecision(),
    now=now,
    events=(Ticked,),
    effects=(Decide,),
    rows=ROWS,
)
step = MACHINE.step
