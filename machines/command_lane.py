"""The command lane of one session: its turns run one at a time, in the order in which they came, each once.

What it is. Every turn of a session is a task in the session's lane; the next one starts when the task before it ends. A task whose
owner never comes back blocks the lane; then, and only if nothing owns the session any more, a recovery resets it.

Which runtime. OpenClaw's command lane ``session:<key>``: a reset bumps a generation and forgets the active task, completions of an
older generation are ignored, and the queue is pumped; a clear rejects what is queued. Here turns are numbered as they come, so the
number of a task is its generation, and the queue is two counters: the turns ``started + 1`` to ``enqueued`` wait, in that order.

The phases in one sentence. Free, or busy with the task ``started``.

What it promises.
  1. Each turn starts at most once, in the order in which they came, and never beside another that the lane still counts.
  2. Nothing waits at a free lane.
  3. A reset hits exactly the task that was seen, never a fresh one; a late completion of a task that was reset changes nothing.

Not modelled: the global lane under it, and what a turn is.

Rule 1: every transition of a lane is a row of ``ROWS``.
Rule 2: this file knows nothing of clocks, tasks or transports.
"""

from __future__ import annotations

from enum import Enum
from typing import Annotated, get_args

from attrs import evolve, frozen

from turnproof.machines.kernel import Counter, Duration, Machine, Row, StartTimer, StopTimer, TimerRule, named, not_, only_if, symbol

# ── vocabulary ──


class LanePhase(Enum):
    """Whether a task runs in the lane."""

    FREE = "free"
    BUSY = "busy"


class LaneTimer(Enum):
    """The timer of a lane."""

    OWNERLESS = "ownerless"
    """The task has been in the lane for so long that it may be forgotten, if nobody owns the session."""


FREE, BUSY = LanePhase

OWNERLESS_MS = Duration(300_000, "max(300 s, compaction limit + 15 s), the compaction limit being 180 s since openclaw/openclaw#91361")


# ── state ──


@frozen
class CommandLane:
    """The lane of one session."""

    phase: LanePhase = FREE
    enqueued: Annotated[int, Counter] = 0
    """Number of the last turn that came."""
    started: Annotated[int, Counter] = 0
    """Number of the last turn that was started."""
    stale: bool = False
    """Its task has been in the lane for 300 s."""


# ── events: what happened ──


@frozen
class TurnEnqueued:
    """A turn came."""


@frozen
class TaskEnded:
    """The task of that turn is over."""

    turn: Annotated[int, Counter]


@frozen
class ResetRequested:
    """A recovery found nobody who owns the session, and this task in its lane."""

    turn: Annotated[int, Counter]


@frozen
class LaneCleared:
    """What waits is to be rejected."""


@frozen
class OwnerlessExpired:
    """The task has been in the lane for 300 s."""


Event = TurnEnqueued | TaskEnded | ResetRequested | LaneCleared | OwnerlessExpired


# ── effects: what the shell must do ──


@frozen
class StartTurn:
    """Run this turn as the lane's task."""

    turn: Annotated[int, Counter]


@frozen
class ForgetTask:
    """The lane no longer counts this task; it may still run."""

    turn: Annotated[int, Counter]


@frozen
class RejectQueued:
    """Tell every queued turn that the lane was cleared."""


Effect = StartTurn | ForgetTask | RejectQueued | StartTimer | StopTimer


# ── symbols ──

now = symbol(CommandLane)
ended, reset = symbol(TaskEnded), symbol(ResetRequested)

due = named("a turn waits", now.enqueued > now.started)
next_turn = evolve(now, started=now.started + 1, stale=False)
start = (StartTurn(now.started + 1), StartTimer(LaneTimer.OWNERLESS))
stop = only_if(not_(now.stale), StopTimer(LaneTimer.OWNERLESS))
forget = ForgetTask(now.started)

R = Row[CommandLane, Effect]


# ── rows: the first that matches wins ──

ROWS: tuple[R, ...] = (
    R(TurnEnqueued, at=FREE, to=BUSY, data=evolve(now, enqueued=now.enqueued + 1, started=now.started + 1), emit=start),
    R(TurnEnqueued, data=evolve(now, enqueued=now.enqueued + 1), name="TurnEnqueued/waits"),
    R(ended, at=BUSY, when=(ended.turn == now.started) & due, data=next_turn, emit=(stop, *start), name="TaskEnded/next"),
    R(ended, at=BUSY, when=ended.turn == now.started, to=FREE, data=evolve(now, stale=False), emit=(stop,), name="TaskEnded/free"),
    R(TaskEnded, ignore="a task the lane no longer counts"),
    R(reset, at=BUSY, when=(reset.turn == now.started) & due, data=next_turn, emit=(forget, stop, *start), name="ResetRequested/next"),
    R(reset, at=BUSY, when=reset.turn == now.started, to=FREE, data=evolve(now, stale=False), emit=(forget, stop),
      name="ResetRequested/free"),
    R(ResetRequested, at=BUSY, refuse="a fresh task is in the lane"),
    R(ResetRequested, ignore="the lane is free"),
    R(LaneCleared, when=due, data=evolve(now, enqueued=now.started), emit=(RejectQueued(),)),
    R(LaneCleared, ignore="nothing waits"),
    R(OwnerlessExpired, at=BUSY, when=not_(now.stale), data=evolve(now, stale=True)),
    R(OwnerlessExpired, ignore="the task ended in time"),
)  # fmt: skip


# ── the machine ──

MACHINE: Machine[CommandLane, Event, Effect] = Machine(
    name="command_lane",
    initial=CommandLane(),
    now=now,
    events=get_args(Event),
    effects=get_args(Effect),
    rows=ROWS,
    timers=(TimerRule(LaneTimer.OWNERLESS, (now.phase == BUSY) & not_(now.stale), OwnerlessExpired, OWNERLESS_MS),),
    released=now.phase == FREE,
)
step = MACHINE.step
