"""The slot of one session key: which reply holds it, who waits for it, and when the next turn may begin.

What it is. A key has one slot. An operation begins into it and gives it up once; whoever waits for the key wakes then; a queued
turn is offered the slot when both the slot and the lane (where the attempt of an earlier turn may still run) are free.

Which runtime. The registry around OpenClaw's reply operations (``reply-run-registry.state.ts`` @07862b23): the map from key to
operation is a family of these machines, one a key. Maps of session ids are ``session_id``, a caller that waits is ``reply_waiter``.

The phases in one sentence. A slot is free, held by one operation, or offered to a queued turn that has not begun yet.

What it promises.
  1. At most one operation holds the slot, and only its own release frees it.
  2. Waiters wake once a release, while nobody holds the slot.
  3. A queued turn starts once, when neither slot nor attempt of an earlier turn is live, and is never lost.

Not modelled: which turn of the queue comes first (a count, not a list); what a barrier or a fence waits for.

Rule 1: every transition of a slot is a row of ``ROWS``.
Rule 2: this file knows nothing of clocks, tasks or transports.
"""

from __future__ import annotations

from enum import Enum
from typing import Annotated, get_args

from attrs import evolve, frozen

from turnproof.machines.kernel import NOBODY, Counter, Machine, Row, Token, choose, named, not_, only_if, symbol

# ── vocabulary ──


class SlotPhase(Enum):
    """Who has the slot."""

    FREE = "free"
    HELD = "held"
    OFFERED = "offered"
    """A queued turn was started and has not begun yet."""


class TurnKind(Enum):
    """Who asks to begin."""

    VISIBLE = "visible"
    """Somebody looks at it: waits for no follow-up barrier."""
    FOLLOW_UP = "follow_up"
    """Waits until every follow-up barrier settled or timed out."""
    QUEUED = "queued"
    """Was offered the slot out of the queue."""


FREE, HELD, OFFERED = SlotPhase


# ── state ──


@frozen
class ReplySlot:
    """The slot of one session key."""

    phase: SlotPhase = SlotPhase.FREE
    holder: Annotated[str, Token] = NOBODY
    attempt: Annotated[str, Token] = NOBODY
    """The operation whose attempt is live in the key's lane; it may have lost the slot."""
    queued: Annotated[int, Counter] = 0
    """Turns that wait in the queue."""
    waiting: Annotated[int, Counter] = 0
    """Callers that wait for the key to be idle."""
    barriers: Annotated[int, Counter] = 0
    """Follow-up barriers that neither settled nor timed out."""
    fences: Annotated[int, Counter] = 0
    """Cleanups of predecessors that keep every successor out."""


# ── events: what happened ──


@frozen
class BeginRequested:
    """An operation wants the slot."""

    operation: Annotated[str, Token]
    kind: TurnKind


@frozen
class ReleaseReported:
    """An operation gave its slot up, and registered a follow-up barrier or a fence with that, or neither."""

    operation: Annotated[str, Token]
    barrier: bool
    fence: bool


@frozen
class BarrierEnded:
    """A follow-up barrier settled or timed out; for admission that is the same."""


@frozen
class FenceEnded:
    """The cleanup of a predecessor is over."""


@frozen
class AttemptRequested:
    """The attempt of an operation wants the key's lane."""

    operation: Annotated[str, Token]


@frozen
class AttemptEnded:
    """The attempt of an operation left the lane."""

    operation: Annotated[str, Token]


@frozen
class TurnQueued:
    """A message came while the key was busy."""


@frozen
class OfferDeclined:
    """The turn that was offered the slot will not begin."""


@frozen
class WaitRequested:
    """A caller waits for the key to be idle."""


@frozen
class WaitAbandoned:
    """A caller no longer waits: it timed out or its own signal fired."""


Event = (
    BeginRequested | ReleaseReported | BarrierEnded | FenceEnded | AttemptRequested | AttemptEnded | TurnQueued | OfferDeclined
    | WaitRequested | WaitAbandoned
)  # fmt: skip


# ── effects: what the shell must do ──


@frozen
class Admit:
    """Let the operation begin."""

    operation: Annotated[str, Token]


@frozen
class WakeWaiters:
    """Wake every caller that waits for the key; each gets true."""


@frozen
class AnswerIdle:
    """Tell the caller that asked that the key is idle already."""


@frozen
class StartQueuedTurn:
    """Take the next turn out of the queue and let it begin."""


@frozen
class StartAttempt:
    """The lane is the operation's: let its attempt run."""

    operation: Annotated[str, Token]


Effect = Admit | WakeWaiters | AnswerIdle | StartQueuedTurn | StartAttempt


# ── symbols ──

now = symbol(ReplySlot)
begin, release = symbol(BeginRequested), symbol(ReleaseReported)
wanted, ended = symbol(AttemptRequested), symbol(AttemptEnded)

lane_free = named("lane free", now.attempt == NOBODY)
open_to_followups = named("open to follow-ups", (now.barriers == 0) & (now.fences == 0))
due = named("a queued turn waits", now.queued > 0)
wake = only_if(now.waiting > 0, WakeWaiters())

barriers_after = choose(release.barrier, now.barriers + 1, now.barriers)
fences_after = choose(release.fence, now.fences + 1, now.fences)
freed = evolve(now, holder=NOBODY, waiting=0, barriers=barriers_after, fences=fences_after)


# ── rows: the first that matches wins ──

ROWS: tuple[Row[ReplySlot, Effect], ...] = (
    # ── admission: barrier, then slot, then fence, in this order (R-REPLY-2) ──
    Row(begin, when=begin.operation == NOBODY, refuse="an operation has an identity", name="BeginRequested/nobody"),
    Row(begin, when=(begin.kind != TurnKind.VISIBLE) & (now.barriers > 0), refuse="follow-up admission is blocked by a barrier",
        name="BeginRequested/barrier"),
    Row(begin, at=HELD, refuse="the key already has an active operation"),
    Row(begin, when=now.fences > 0, refuse="successor admission is blocked by a fence", name="BeginRequested/fence"),
    Row(begin, at=OFFERED, when=begin.kind != TurnKind.QUEUED, refuse="a queued turn was started first", name="BeginRequested/too late",
        because="Otherwise the newcomer takes the slot from a turn whose message has already left the queue (R-REPLY-26)."),
    Row(begin, at=FREE, when=begin.kind == TurnKind.QUEUED, refuse="no queued turn was offered the slot",
        name="BeginRequested/not offered"),
    Row(begin, to=HELD, data=evolve(now, holder=begin.operation), emit=(Admit(begin.operation),), name="BeginRequested/admitted"),

    # ── release: wakes whoever waits, then offers the slot to the queue ──
    Row(release, when=(release.operation == NOBODY) | (release.operation != now.holder),
        ignore="an old operation, whose slot was already freed",
        name="ReleaseReported/stale",
        because="Identity is the operation, not the session id: a late release must not free a successor (R-REPLY-24)."),
    Row(release, when=lane_free & open_to_followups & due & not_(release.barrier) & not_(release.fence), to=OFFERED,
        data=evolve(freed, queued=now.queued - 1), emit=(wake, StartQueuedTurn()), name="ReleaseReported/offer"),
    Row(release, to=FREE, data=freed, emit=(wake,), name="ReleaseReported/free"),
    Row(BarrierEnded, when=now.barriers == 0, ignore="no barrier is registered", name="BarrierEnded/none"),
    Row(BarrierEnded, at=FREE, when=(now.barriers == 1) & (now.fences == 0) & lane_free & due, to=OFFERED,
        data=evolve(now, barriers=0, queued=now.queued - 1), emit=(StartQueuedTurn(),), name="BarrierEnded/offer"),
    Row(BarrierEnded, data=evolve(now, barriers=now.barriers - 1), name="BarrierEnded/one less"),
    Row(FenceEnded, when=now.fences == 0, ignore="no fence is up", name="FenceEnded/none"),
    Row(FenceEnded, at=FREE, when=(now.fences == 1) & (now.barriers == 0) & lane_free & due, to=OFFERED,
        data=evolve(now, fences=0, queued=now.queued - 1), emit=(StartQueuedTurn(),), name="FenceEnded/offer"),
    Row(FenceEnded, data=evolve(now, fences=now.fences - 1), name="FenceEnded/one less"),

    # ── the lane: one attempt a key, also when its operation has lost the slot ──
    Row(wanted, when=wanted.operation == NOBODY, refuse="an operation has an identity", name="AttemptRequested/nobody"),
    Row(wanted, when=wanted.operation != now.holder, refuse="only the holder of the slot starts an attempt",
        name="AttemptRequested/not holder"),
    Row(wanted, when=lane_free, data=evolve(now, attempt=wanted.operation), emit=(StartAttempt(wanted.operation),)),
    Row(wanted, when=wanted.operation == now.attempt, emit=(StartAttempt(wanted.operation),), name="AttemptRequested/again",
        because="Retry, profile rotation or fallback: another attempt of the same reply."),
    Row(AttemptRequested, refuse="the attempt of an earlier turn is still live"),
    Row(ended, when=(ended.operation == NOBODY) | (ended.operation != now.attempt), ignore="no such attempt is live",
        name="AttemptEnded/stale"),
    Row(ended, at=FREE, when=open_to_followups & due, to=OFFERED, data=evolve(now, attempt=NOBODY, queued=now.queued - 1),
        emit=(StartQueuedTurn(),), name="AttemptEnded/offer"),
    Row(ended, data=evolve(now, attempt=NOBODY), name="AttemptEnded/lane free"),

    # ── the queue ──
    Row(TurnQueued, at=FREE, when=lane_free & open_to_followups, to=OFFERED, emit=(StartQueuedTurn(),), name="TurnQueued/offer"),
    Row(TurnQueued, data=evolve(now, queued=now.queued + 1), name="TurnQueued/queued"),
    Row(OfferDeclined, at=OFFERED, when=lane_free & open_to_followups & due, data=evolve(now, queued=now.queued - 1),
        emit=(StartQueuedTurn(),), name="OfferDeclined/next"),
    Row(OfferDeclined, at=OFFERED, to=FREE),
    Row(OfferDeclined, ignore="nothing is offered"),

    # ── callers that wait for the key to be idle ──
    Row(WaitRequested, at=HELD, data=evolve(now, waiting=now.waiting + 1)),
    Row(WaitRequested, emit=(AnswerIdle(),), name="WaitRequested/idle"),
    Row(WaitAbandoned, when=now.waiting > 0, data=evolve(now, waiting=now.waiting - 1)),
    Row(WaitAbandoned, ignore="the release came first"),
)  # fmt: skip


# ── the machine ──

MACHINE: Machine[ReplySlot, Event, Effect] = Machine(
    name="reply_slot",
    initial=ReplySlot(),
    now=now,
    events=get_args(Event),
    effects=get_args(Effect),
    rows=ROWS,
)
step = MACHINE.step
