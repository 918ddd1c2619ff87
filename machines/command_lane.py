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

from turnproof.machines.kernel import Counter, Machine, Row, named, symbol

# ── vocabulary ──


class LanePhase(Enum):
    """Whether a task runs in the lane."""

    FREE = "free"
    BUSY = "busy"


FREE, BUSY = LanePhase


# ── state ──


@frozen
class CommandLane:
    """The lane of one session."""

    phase: LanePhase = FREE
    enqueued: Annotated[int, Counter] = 0
    """Number of the last turn that came."""
    started: Annotated[int, Counter] = 0
    """Number of the last turn that was started."""


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


Event = TurnEnqueued | TaskEnded | ResetRequested | LaneCleared


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


Effect = StartTurn | ForgetTask | RejectQueued


# ── symbols ──

now = symbol(CommandLane)
ended, reset = symbol(TaskEnded), symbol(ResetRequested)

due = named("a turn waits", now.enqueued > now.started)
next_turn = evolve(now, started=now.started + 1)
start = StartTurn(now.started + 1)

R = Row[CommandLane, Effect]


# ── rows: the first that matches wins ──

ROWS: tuple[R, ...] = (
    R(TurnEnqueued, at=FREE, to=BUSY, data=evolve(now, enqueued=now.enqueued + 1, started=now.started + 1), emit=(start,)),
    R(TurnEnqueued, data=evolve(now, enqueued=now.enqueued + 1), name="TurnEnqueued/waits"),
    R(ended, at=BUSY, when=(ended.turn == now.started) & due, data=next_turn, emit=(start,), name="TaskEnded/next"),
    R(ended, at=BUSY, when=ended.turn == now.started, to=FREE, name="TaskEnded/free"),
    R(TaskEnded, ignore="a task the lane no longer counts"),
    R(reset, at=BUSY, when=(reset.turn == now.started) & due, data=next_turn, emit=(ForgetTask(now.started), start),
      name="ResetRequested/next"),
    R(reset, at=BUSY, when=reset.turn == now.started, to=FREE, emit=(ForgetTask(now.started),), name="ResetRequested/free"),
    R(ResetRequested, at=BUSY, refuse="a fresh task is in the lane"),
    R(ResetRequested, ignore="the lane is free"),
    R(LaneCleared, when=due, data=evolve(now, enqueued=now.started), emit=(RejectQueued(),)),
    R(LaneCleared, ignore="nothing waits"),
)  # fmt: skip


# ── the machine ──

MACHINE: Machine[CommandLane, Event, Effect] = Machine(
    name="command_lane",
    initial=CommandLane(),
    now=now,
    events=get_args(Event),
    effects=get_args(Effect),
    rows=ROWS,
)
step = MACHINE.step
