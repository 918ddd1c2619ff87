"""The time a run may take: its deadline, the two graces a busy run is given when the deadline comes, and the one timeout at the end.

What it is. An attempt has a run budget from the moment its stream runtime starts. When the deadline comes, a run in the middle of a
compaction gets one extension, a run whose stream still produces gets one drain in slices; then the budget is spent, once.

Which runtime. OpenClaw's embedded runner (``run/attempt-stream-prepare.ts`` @00d377cc); the newest code pauses the deadline during a
human approval and keeps what was left. A limit at the timer maximum means none.

The phases in one sentence. Off, running, paused for an approval, in one of the two graces, then spent or stopped.

What it promises.
  1. Each grace is given at most once, and the timeout comes exactly once, never before the deadline.
  2. Whatever the run does, it comes at most 300 s after the deadline.

Not modelled: what the timeout does to the attempt (``embedded_attempt``), which is also told of compactions and approvals.

Rule 1: every transition of a budget is a row of ``ROWS``.
Rule 2: this file knows nothing of clocks, tasks or transports.
"""

from __future__ import annotations

from enum import Enum
from typing import Annotated, get_args

from attrs import evolve, frozen

from turnproof.machines.embedded_attempt_events import CompactionBegan, CompactionEnded
from turnproof.machines.kernel import (
    Duration,
    Machine,
    PauseTimer,
    Range,
    ResumeTimer,
    Row,
    StartTimer,
    StopTimer,
    TimerRule,
    named,
    not_,
    one_of,
    only_if,
    symbol,
)

# ── vocabulary ──


class BudgetPhase(Enum):
    """Where the run is in its time."""

    OFF = "off"
    """Not started, or without a limit."""
    RUNNING = "running"
    PAUSED = "paused"
    """A person is asked; their time does not count."""
    COMPACTION_GRACE = "compaction_grace"
    DRAIN_GRACE = "drain_grace"
    SPENT = "spent"
    STOPPED = "stopped"
    """The run was over first."""


class BudgetTimer(Enum):
    """The timers of a run budget."""

    DEADLINE = "deadline"
    """The run used up the time it was given."""
    COMPACTION_GRACE = "compaction_grace"
    """The extension for a compaction in flight is over."""
    DRAIN_SLICE = "drain_slice"
    """A slice of the drain is over: look again whether the stream produces."""
    QUIET = "quiet"
    """The stream has produced nothing for as long as a slice."""


OFF, RUNNING, PAUSED, COMPACTION_GRACE, DRAIN_GRACE, SPENT, STOPPED = BudgetPhase

LAST_SLICE = 3
"""Slices after the first: four of 30 s are the 120 s of the drain."""

DEADLINE_MS = Duration(
    600_000, "the command-line agent's default (openclaw/openclaw#110369); a gateway's is 48 h; the caller's value overrides"
)
COMPACTION_GRACE_MS = Duration(180_000, "the compaction timeout since openclaw/openclaw#91361")
DRAIN_SLICE_MS = Duration(30_000, "OpenClaw's stream drain: 120 s in slices of 30 s")


# ── state ──


@frozen
class RunBudget:
    """The time of one run."""

    phase: BudgetPhase = OFF
    compacting: bool = False
    lively: bool = False
    """The stream produced something within the last 30 s."""
    compaction_grace_used: bool = False
    drain_grace_used: bool = False
    slices: Annotated[int, Range(0, LAST_SLICE)] = 0
    """Slices of the drain that are over."""


# ── events: what happened ──


@frozen
class RunStarted:
    """The stream runtime starts."""

    limited: bool


@frozen
class RunEnded:
    """The run is over; its time no longer matters."""


@frozen
class StreamProduced:
    """The stream produced something."""


@frozen
class ApprovalBegan:
    """A person is asked."""


@frozen
class ApprovalEnded:
    """They have answered."""


@frozen
class DeadlineExpired:
    """The deadline fired."""


@frozen
class CompactionGraceExpired:
    """The extension ran out."""


@frozen
class DrainSliceExpired:
    """A slice of the drain ran out."""


@frozen
class QuietExpired:
    """Nothing was produced for 30 s."""


Event = (
    RunStarted | RunEnded | CompactionBegan | CompactionEnded | StreamProduced | ApprovalBegan | ApprovalEnded | DeadlineExpired
    | CompactionGraceExpired | DrainSliceExpired | QuietExpired
)  # fmt: skip


# ── effects: what the shell must do ──


@frozen
class SpendBudget:
    """Tell the attempt that its time is used up."""


Effect = SpendBudget | StartTimer | StopTimer | PauseTimer | ResumeTimer


# ── symbols ──

now, started = symbol(RunBudget), symbol(RunStarted)

counts = (RUNNING, PAUSED, COMPACTION_GRACE, DRAIN_GRACE)
"""The run is on, and limited."""
may_compact = named("compacts, first time", now.compacting & not_(now.compaction_grace_used))
may_drain = named("produces, first time", now.lively & not_(now.drain_grace_used))
ending = evolve(now, compacting=False, lively=False, slices=0)
stop_quiet = only_if(now.lively, StopTimer(BudgetTimer.QUIET))

R = Row[RunBudget, Effect]


def out_of_time(expiry: type, at: BudgetPhase, *more: R) -> tuple[R, ...]:
    """What happens when the time of a phase is over: the graces in order, each once, then the timeout."""
    name = expiry.__name__
    return (
        *([] if at is COMPACTION_GRACE else [
            R(expiry, at=at, when=may_compact, to=COMPACTION_GRACE, data=evolve(now, compaction_grace_used=True, slices=0),
              emit=(StartTimer(BudgetTimer.COMPACTION_GRACE),), name=f"{name}/compacts")]),
        *more,
        *([] if at is DRAIN_GRACE else [
            R(expiry, at=at, when=may_drain, to=DRAIN_GRACE, data=evolve(now, drain_grace_used=True),
              emit=(StartTimer(BudgetTimer.DRAIN_SLICE),), name=f"{name}/produces")]),
        R(expiry, at=at, to=SPENT, data=ending, name=f"{name}/spent",
          emit=(SpendBudget(),) if at is RUNNING else (stop_quiet, SpendBudget())),
        R(expiry, ignore="the run is over, or in another phase of its time"),
    )  # fmt: skip


# ── rows: the first that matches wins ──

ROWS: tuple[R, ...] = (
    R(started, at=OFF, when=started.limited, to=RUNNING, emit=(StartTimer(BudgetTimer.DEADLINE),)),
    R(RunStarted, ignore="it runs already, or has no limit"),
    R(RunEnded, at=OFF, to=STOPPED, name="RunEnded/off"),
    R(RunEnded, at=counts, to=STOPPED, data=ending,
      emit=(only_if(one_of(now.phase, RUNNING, PAUSED), StopTimer(BudgetTimer.DEADLINE)),
            only_if(now.phase == COMPACTION_GRACE, StopTimer(BudgetTimer.COMPACTION_GRACE)),
            only_if(now.phase == DRAIN_GRACE, StopTimer(BudgetTimer.DRAIN_SLICE)), stop_quiet)),
    R(RunEnded, ignore="it is over"),
    R(CompactionBegan, at=counts, when=not_(now.compacting), data=evolve(now, compacting=True)),
    R(CompactionBegan, ignore="compaction is on, or no time counts"),
    R(CompactionEnded, at=counts, when=now.compacting, data=evolve(now, compacting=False)),
    R(CompactionEnded, ignore="no compaction is on"),
    R(StreamProduced, at=counts, data=evolve(now, lively=True), emit=(stop_quiet, StartTimer(BudgetTimer.QUIET))),
    R(StreamProduced, ignore="no time counts"),
    R(QuietExpired, when=now.lively, data=evolve(now, lively=False)),
    R(QuietExpired, ignore="the stream produced in time, or the run is over"),
    R(ApprovalBegan, at=RUNNING, to=PAUSED, emit=(PauseTimer(BudgetTimer.DEADLINE),)),
    R(ApprovalBegan, ignore="paused already, or no deadline runs: a grace is not paused"),
    R(ApprovalEnded, at=PAUSED, to=RUNNING, emit=(ResumeTimer(BudgetTimer.DEADLINE),)),
    R(ApprovalEnded, ignore="nothing is paused"),

    *out_of_time(DeadlineExpired, RUNNING),
    *out_of_time(CompactionGraceExpired, COMPACTION_GRACE),
    *out_of_time(DrainSliceExpired, DRAIN_GRACE,
        R(DrainSliceExpired, at=DRAIN_GRACE, when=now.lively & (now.slices < LAST_SLICE), data=evolve(now, slices=now.slices + 1),
          emit=(StartTimer(BudgetTimer.DRAIN_SLICE),), name="DrainSliceExpired/next slice")),
)  # fmt: skip


# ── the machine ──

MACHINE: Machine[RunBudget, Event, Effect] = Machine(
    name="run_budget",
    initial=RunBudget(),
    now=now,
    events=get_args(Event),
    effects=get_args(Effect),
    rows=ROWS,
    timers=(
        TimerRule(BudgetTimer.DEADLINE, now.phase == RUNNING, DeadlineExpired, DEADLINE_MS, paused=now.phase == PAUSED),
        TimerRule(BudgetTimer.COMPACTION_GRACE, now.phase == COMPACTION_GRACE, CompactionGraceExpired, COMPACTION_GRACE_MS),
        TimerRule(BudgetTimer.DRAIN_SLICE, now.phase == DRAIN_GRACE, DrainSliceExpired, DRAIN_SLICE_MS),
        TimerRule(BudgetTimer.QUIET, now.lively, QuietExpired, DRAIN_SLICE_MS),
    ),
    released=one_of(now.phase, SPENT, STOPPED),
)
step = MACHINE.step
