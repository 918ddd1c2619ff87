"""What must hold of the slot of a session key, for any number of waiters, queued turns, barriers and fences."""

from __future__ import annotations

from attrs import evolve

from turnproof.machines.kernel import NOBODY, Row, choose, implies, named, not_, one_of
from turnproof.machines.reply_slot import (
    FREE,
    HELD,
    MACHINE,
    OFFERED,
    Admit,
    AnswerIdle,
    AttemptEnded,
    AttemptRequested,
    BarrierEnded,
    BeginRequested,
    Effect,
    FenceEnded,
    OfferDeclined,
    ReleaseReported,
    ReplySlot,
    StartAttempt,
    StartQueuedTurn,
    TurnKind,
    TurnQueued,
    WaitAbandoned,
    WaitRequested,
    WakeWaiters,
    begin,
    ended,
    freed,
    now,
    release,
    wake,
    wanted,
)
from turnproof.specs.harms import with_harms
from turnproof.specs.language import (
    Always,
    Order,
    Property,
    Sometimes,
    Spec,
    Step,
    Variant,
    after,
    count,
    emits,
    ignored,
    on,
    refused,
    refuses,
    taken,
)
from turnproof.specs.reply_operation_requirements import REQUIREMENTS

then = after(ReplySlot)
R = Row[ReplySlot, Effect]

blocked = named("something is in the way of a queued turn", (now.attempt != NOBODY) | (now.barriers > 0) | (now.fences > 0))
identified = named("the caller says who it is", begin.operation != NOBODY)
followup = named("a follow-up or a queued turn", begin.kind != TurnKind.VISIBLE)
stale = named("not the holder", (release.operation == NOBODY) | (release.operation != now.holder))

LOST_TURN = "no queued turn is left at an idle key"
STALE_RELEASE = "a release by anybody but the holder changes nothing"
LANE_SERIAL = "a queued turn starts only when slot and lane are free"

PROPERTIES: tuple[Property, ...] = (
    Always("the slot has a holder exactly while it is held", (now.phase == HELD) == (now.holder != NOBODY), requirements="R-REPLY-2"),
    refuses("a begin on an occupied key is refused", BeginRequested, now.phase == HELD, requirements="R-REPLY-2",
            harm="two replies write the same session at once"),
    Step("only a begin gives the slot to an operation", requirements="R-REPLY-2", holds=
         implies((then.holder != now.holder) & (then.holder != NOBODY), on(BeginRequested) & (then.holder == begin.operation)
         & emits(Admit))),
    refuses("a follow-up barrier is checked first", BeginRequested, identified & followup & (now.barriers > 0),
        requirements=("R-REPLY-2", "R-REPLY-27"),
            harm="a follow-up overtakes what it was meant to follow"),
    refuses("a fence keeps every successor out", BeginRequested, now.fences > 0, requirements="R-REPLY-2"),
    Step("a visible turn is admitted to a free key", requirements="R-REPLY-2", holds=
         implies(on(BeginRequested) & identified & (begin.kind == TurnKind.VISIBLE) & (now.phase == FREE) & (now.fences == 0), taken())),
    Step("waiters wake only by the release of the holder", implies(emits(WakeWaiters), on(ReleaseReported) & not_(stale)),
        requirements="R-REPLY-6"),
    Step("no release forgets a waiter", requirements="R-REPLY-6", holds=
         implies(on(ReleaseReported) & not_(stale) & (now.waiting > 0), (count(WakeWaiters) == 1) & (then.waiting == 0)),
         harm="a caller waits for a key that is free"),
    Step("nobody holds the slot when waiters wake", implies(emits(WakeWaiters), then.phase != HELD), requirements="R-REPLY-6",
         harm="a caller starts beside the successor"),
    Step("an idle key answers at once", implies(on(WaitRequested), emits(AnswerIdle) == (now.phase != HELD)), requirements="R-REPLY-6"),
    Always("callers wait only for a held key", implies(now.waiting > 0, now.phase == HELD), requirements="R-REPLY-6"),
    Sometimes("two callers wake together", emits(WakeWaiters) & (now.waiting == 2), requirements="R-REPLY-6"),
    Step(STALE_RELEASE, implies(on(ReleaseReported) & stale, not_(taken())), requirements="R-REPLY-24",
        harm="a successor loses its slot to a reply that is over"),
    Step("the holder's release frees the slot", implies(on(ReleaseReported) & not_(stale), then.holder == NOBODY),
        requirements="R-REPLY-24"),
    Step(LANE_SERIAL, implies(emits(StartQueuedTurn), (then.holder == NOBODY) & (then.attempt == NOBODY) & (then.barriers == 0)
        & (then.fences == 0)
         & (then.phase == OFFERED)), requirements="R-REPLY-26", harm="the next turn runs beside an attempt that still writes the session"),
    Step("a queued turn leaves the queue exactly when it is started", requirements="R-REPLY-26", holds=
         (emits(StartQueuedTurn) & ((then.queued == now.queued - 1) | (on(TurnQueued) & (then.queued == now.queued))))
         | (not_(emits(StartQueuedTurn)) & ((then.queued == now.queued) | (on(TurnQueued) & (then.queued == now.queued + 1)))),
         harm="a message is lost, or answered twice"),
    Step("a turn is started once before it begins or declines", requirements="R-REPLY-26", holds=
         implies(emits(StartQueuedTurn), (now.phase != OFFERED) | on(OfferDeclined))),
    Always(LOST_TURN, implies((now.phase == FREE) & (now.queued > 0), blocked), requirements="R-REPLY-26",
        harm="a message waits for ever at a key that nobody uses"),
    refuses("a lane runs one attempt", AttemptRequested, (now.attempt != NOBODY) & (wanted.operation != now.attempt),
        requirements="R-REPLY-26"),
    refuses("only the holder starts an attempt", AttemptRequested, wanted.operation != now.holder, requirements="R-REPLY-26"),
    Step("the end of another's attempt is ignored", requirements="R-REPLY-24", holds=
         implies(on(AttemptEnded) & ((ended.operation == NOBODY) | (ended.operation != now.attempt)), ignored())),
    refuses("an operation without identity does not begin", BeginRequested, not_(identified), requirements="R-REPLY-2"),
    Step("a barrier or fence that nobody registered ends nothing", requirements="R-REPLY-27", holds=
         implies((on(BarrierEnded) & (now.barriers == 0)) | (on(FenceEnded) & (now.fences == 0)), ignored())),
    Step("every registered barrier keeps follow-ups out until it ends", requirements="R-REPLY-27", holds=
         implies((then.barriers < now.barriers), on(BarrierEnded) & (then.barriers == now.barriers - 1))),
    Sometimes("a queued turn begins", on(BeginRequested) & taken() & (begin.kind == TurnKind.QUEUED), requirements="R-REPLY-26"),
    Sometimes("a turn waits for the attempt of an operation that lost its slot", (now.phase == FREE) & (now.attempt != NOBODY)
        & (now.queued > 0), requirements="R-REPLY-26"),
    Step("an offer that nobody has is declined by nobody", implies(on(OfferDeclined) & (now.phase != OFFERED), not_(taken())
        & not_(refused())), requirements="R-REPLY-26"),
)  # fmt: skip

free_for = named("nothing keeps a follow-up out", identified & (now.barriers == 0) & (now.fences == 0))
OWED: tuple[Property, ...] = (
    refuses("an offered slot is for the turn it was offered to", BeginRequested, (now.phase == OFFERED) & (begin.kind != TurnKind.QUEUED),
            requirements="R-REPLY-26", harm="a message that already left the queue is never answered"),
    refuses("a queued turn begins only in a slot that it was offered", BeginRequested,
            (now.phase == FREE) & (begin.kind == TurnKind.QUEUED), requirements="R-REPLY-26"),
    Step("a follow-up begins in a free slot, a queued turn in one it was offered", requirements=("R-REPLY-2", "R-REPLY-26"), holds=
         implies(on(BeginRequested) & free_for & (begin.kind == TurnKind.FOLLOW_UP) & (now.phase == FREE), taken())
         & implies(on(BeginRequested) & free_for & (begin.kind == TurnKind.QUEUED) & (now.phase == OFFERED), taken())),
    Step("whoever begins is let in, once, and nobody else", requirements="R-REPLY-2", holds=
         implies(on(BeginRequested) & taken(), (count(Admit) == 1) & (count(Admit, operation=begin.operation) == 1))),
    Step("a late release is no mistake of its caller", implies(on(ReleaseReported) & stale, ignored()), requirements="R-REPLY-24"),
    Step("nobody is woken where nobody waits", implies(emits(WakeWaiters), now.waiting > 0), requirements="R-REPLY-6"),
    Order("waiters wake before the next turn begins", WakeWaiters, StartQueuedTurn, requirements="R-REPLY-6",
          harm="a caller is told that the key is idle while the next turn holds it"),
    Step("one message starts one turn", count(StartQueuedTurn) <= 1, requirements="R-REPLY-26", harm="a message is answered twice"),
    Step("a slot is offered by starting a turn", requirements="R-REPLY-26", holds=
         implies((then.phase == OFFERED) & ((now.phase != OFFERED) | (on(OfferDeclined) & taken())), emits(StartQueuedTurn)),
         harm="the slot is kept for a turn that nobody started"),
    Step("an offer that is declined goes to the next turn or frees the slot", requirements="R-REPLY-26", holds=
         implies(on(OfferDeclined) & (now.phase == OFFERED), taken() & (emits(StartQueuedTurn) | (then.phase == FREE)))),
    Step("a message that comes is started or queued", requirements="R-REPLY-26", holds=
         implies(on(TurnQueued), emits(StartQueuedTurn) | (then.queued == now.queued + 1)), harm="a message is lost"),
    Step("a release registers the barrier and the fence it speaks of, one each", requirements=("R-REPLY-2", "R-REPLY-27"), holds=
         implies(on(ReleaseReported) & not_(stale), (then.barriers == choose(release.barrier, now.barriers + 1, now.barriers))
         & (then.fences == choose(release.fence, now.fences + 1, now.fences)))),
    Step("a barrier or fence that ends is one less", requirements=("R-REPLY-2", "R-REPLY-27"), holds=
         implies(on(BarrierEnded) & (now.barriers > 0), then.barriers == now.barriers - 1)
         & implies(on(FenceEnded) & (now.fences > 0), then.fences == now.fences - 1),
         harm="follow-ups, or every successor, are kept out for ever"),
    refuses("nobody starts no attempt", AttemptRequested, wanted.operation == NOBODY, requirements="R-REPLY-26"),
    Step("the holder's attempt starts in a lane that is free or its own", requirements="R-REPLY-26", holds=
         implies(on(AttemptRequested) & (wanted.operation != NOBODY) & (wanted.operation == now.holder)
         & one_of(now.attempt, NOBODY, wanted.operation), (count(StartAttempt) == 1)
         & (count(StartAttempt, operation=wanted.operation) == 1) & (then.attempt == wanted.operation))),
    Step("an attempt that ends leaves the lane", requirements="R-REPLY-26", holds=
         implies(on(AttemptEnded) & (ended.operation != NOBODY) & (ended.operation == now.attempt), then.attempt == NOBODY),
         harm="no queued turn of the session ever starts again"),
    Step("each caller that waits is counted, and each that gives up no longer", requirements="R-REPLY-6", holds=
         implies(on(WaitRequested) & (now.phase == HELD), then.waiting == now.waiting + 1)
         & implies(on(WaitAbandoned) & (now.waiting > 0), then.waiting == now.waiting - 1)
         & implies(on(WaitAbandoned), ignored() == (now.waiting == 0))),
    Step("an idle key answers once", count(AnswerIdle) <= 1, requirements="R-REPLY-6"),
)  # fmt: skip


# ── history ──

BY_SESSION = MACHINE.variant(
    "reply_slot_by_session",
    replace={"ReleaseReported/stale": R(release, when=now.holder == NOBODY, ignore="nobody holds the slot", name="ReleaseReported/stale")},
)

NO_LANE_CHECK = MACHINE.variant(
    "reply_slot_lane_reset",
    replace={
        "ReleaseReported/offer": R(release,
            when=(now.barriers == 0) & (now.fences == 0) & (now.queued > 0) & not_(release.barrier) & not_(release.fence), to=OFFERED,
                                   data=evolve(freed, queued=now.queued - 1), emit=(wake, StartQueuedTurn()), name="ReleaseReported/offer"),
    },
)  # fmt: skip

NO_PUMP = MACHINE.variant(
    "reply_slot_no_pump",
    replace={
        "AttemptEnded/offer": R(ended, at=FREE, when=one_of(now.fences, 7), data=evolve(now, attempt=NOBODY), name="AttemptEnded/offer")
    },
)

NO_SERIAL_LANE = MACHINE.variant(
    "reply_slot_two_attempts",
    replace={
        "AttemptRequested/lane_free": R(wanted, data=evolve(now, attempt=wanted.operation), emit=(StartAttempt(wanted.operation),),
                                        name="AttemptRequested/lane_free"),
    },
)  # fmt: skip

SPEC = Spec(
    machine=MACHINE,
    requirements={rid: REQUIREMENTS[rid] for rid in ("R-REPLY-2", "R-REPLY-6", "R-REPLY-24", "R-REPLY-26", "R-REPLY-27")},
    properties=with_harms(PROPERTIES + OWED),
    variants=(
        Variant(machine=BY_SESSION, violates={STALE_RELEASE: 2, "waiters wake only by the release of the holder": 3},
                about="E0 and E1: release and force clear are bound to the session id, not to the operation, so an old owner frees its "
                      "successor's slot (B11)."),
        Variant(machine=NO_LANE_CHECK, violates={LANE_SERIAL: 4},
                about="Proposals without the ownership recheck: the lane is reset while the fallback runs, and a queued turn starts "
                      "beside it (B7)."),
        Variant(machine=NO_SERIAL_LANE, violates={"a lane runs one attempt": 5},
                about="The lane is reset while an attempt still runs, and the next one starts beside it (B7)."),
        Variant(machine=NO_PUMP, violates={LOST_TURN: 5},
                about="openclaw/openclaw#89208: queued work is left behind after a clean abort, because the end of the attempt pumps no "
                      "queue."),
    ),
    tokens=2,
    counter=2,
)  # fmt: skip
