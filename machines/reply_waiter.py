"""One caller that waits until a session key is idle.

What it is. A caller asks once, and is answered once: true when the key was released (or was idle already), false when its time is
up or its own signal fired.

Which runtime. Waiting for idle in OpenClaw's reply-run registry (``reply-run-registry.state.ts`` @07862b23): slices of 15 s,
at least 100 ms.

The phases in one sentence. A caller asks, waits, and is answered; then it may ask again.

What it promises. One answer a question, and true only by a release of the key or an idle key.

Rule 1: every transition of a waiter is a row of ``ROWS``.
Rule 2: this file knows nothing of clocks, tasks or transports.
"""

from __future__ import annotations

from enum import Enum
from typing import Annotated, get_args

from attrs import evolve, frozen

from turnproof.machines.kernel import Duration, Machine, Opaque, Row, StartTimer, StopTimer, TimerRule, not_, symbol

# ── vocabulary ──


class WaiterPhase(Enum):
    """Where a caller is."""

    IDLE = "idle"
    WAITING = "waiting"


class Timer(Enum):
    """The timer of a waiter."""

    SLICE = "slice"
    """The caller has waited as long as it wanted to."""


IDLE, WAITING = WaiterPhase


# ── state ──


@frozen
class ReplyWaiter:
    """One caller that waits for a key to be idle."""

    phase: WaiterPhase = WaiterPhase.IDLE
    caller_aborted: bool = False
    """The caller's own signal has fired. Never cleared."""


# ── events: what happened ──


@frozen
class WaitStarted:
    """The caller asks, and gives up at ``deadline_ms`` on the shell's clock if that is later than the shortest slice."""

    deadline_ms: Annotated[int, Opaque]


@frozen
class KeyReleased:
    """The key was released, or was idle when the caller asked."""


@frozen
class CallerAborted:
    """The caller's own signal fired."""


@frozen
class SliceExpired:
    """The time of the caller is up."""


Event = WaitStarted | KeyReleased | CallerAborted | SliceExpired


# ── effects: what the shell must do ──


@frozen
class RegisterWait:
    """Put the caller among those who wait for the key."""


@frozen
class WithdrawWait:
    """Take the caller out again."""


@frozen
class Resolve:
    """Answer the caller."""

    released: bool


Effect = RegisterWait | WithdrawWait | Resolve | StartTimer | StopTimer


# ── timers ──

SLICE_MS = Duration(100, "reply-run-registry.state.ts @07862b23: the shortest bounded wait; admission asks for slices of 15 000 ms")


# ── symbols ──

now, asked = symbol(ReplyWaiter), symbol(WaitStarted)


# ── rows: the first that matches wins ──

ROWS: tuple[Row[ReplyWaiter, Effect], ...] = (
    Row(WaitStarted, at=WAITING, refuse="the caller already waits"),
    Row(WaitStarted, when=now.caller_aborted, emit=(Resolve(False),), because="A caller that is aborted already gets false at once."),
    # Armed before the key is asked: an idle key answers within the same step.
    Row(asked, to=WAITING, emit=(StartTimer(Timer.SLICE, asked.deadline_ms), RegisterWait()), name="WaitStarted/waits"),
    Row(KeyReleased, at=WAITING, to=IDLE, emit=(StopTimer(Timer.SLICE), Resolve(True))),
    Row(KeyReleased, ignore="the caller was answered before"),
    Row(CallerAborted, at=WAITING, to=IDLE, data=evolve(now, caller_aborted=True),
        emit=(StopTimer(Timer.SLICE), WithdrawWait(), Resolve(False))),
    Row(CallerAborted, when=not_(now.caller_aborted), data=evolve(now, caller_aborted=True), name="CallerAborted/while idle"),
    Row(CallerAborted, ignore="the signal fires once"),
    Row(SliceExpired, at=WAITING, to=IDLE, emit=(WithdrawWait(), Resolve(False))),
    Row(SliceExpired, ignore="the caller was answered in time"),
)  # fmt: skip


# ── the machine ──

MACHINE: Machine[ReplyWaiter, Event, Effect] = Machine(
    name="reply_waiter",
    initial=ReplyWaiter(),
    now=now,
    events=get_args(Event),
    effects=get_args(Effect),
    rows=ROWS,
    timers=(TimerRule(Timer.SLICE, now.phase == WAITING, SliceExpired, SLICE_MS),),
)
step = MACHINE.step
