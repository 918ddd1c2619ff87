"""The designs of the reply operation that shipped, or were proposed, and were wrong. Each must fail the property it broke.

Eras and bugs after OpenClaw's public history: E0 (@bcc87e77, @04b9a865), E1 and E2 (same file, by content), the proposals P1
(@1b49b646) and P2 (@04975666) of openclaw/openclaw#93655, and E3 (@07862b23). A variant is the target with the rows that were
different put back; where several bugs of one era hide each other, each has a variant of its own.
"""

from __future__ import annotations

from attrs import evolve

from turnproof.machines.kernel import Row, StartTimer, choose, not_, only_if
from turnproof.machines.reply_operation import (
    ABORTED,
    FAILED,
    MACHINE,
    abort,
    abortable,
    attended,
    cancel,
    ending,
    expiry,
    failed,
    now,
    pending,
)
from turnproof.machines.reply_operation_words import (
    AbortReason,
    AbortSignal,
    CancelReason,
    DetachUpstream,
    Effect,
    ExpiryReason,
    RecoveryRequested,
    Release,
    ReplyOperation,
    Result,
    Timer,
    UpstreamAborted,
)
from turnproof.specs.language import Variant
from turnproof.specs.reply_operation_shipped import VARIANT as SHIPPED

R = Row[ReplyOperation, Effect]

MIRRORS = "the phase mirrors the result"
SETTLES = "every reply with a result that holds its slot has an armed settle timer"
RELEASED = "every reply with a result is released"
ALIVE = "an accepted stuck recovery leaves the reply alive"
TYPED = "an accepted stuck recovery cancels the attached backend once, as stuck_recovery"
LISTENED = "an aborted signal belongs to a reply with a result"
REFUSES_ENDED = "a reply with a result refuses every abort and recovery"
UNCHANGED = "a recorded result never changes"
COMMITTED_EXPIRY = "a committed outcome expires only because its finalization stalled"
EXPIRY_KEEPS = "an accepted expiry records run_stalled, cancels as superseded, signals, and keeps the slot"
BACKEND_LIVES = "no abort, supersession or expiry gives up the slot while a backend is attached"

by_user_or_restart = choose(abort.reason == AbortReason.RESTART, Result.ABORTED_FOR_RESTART, Result.ABORTED_BY_USER)
cancel_reason = choose(abort.reason == AbortReason.RESTART, CancelReason.RESTART, CancelReason.USER_ABORT)
unsettled = evolve(ending(by_user_or_restart), settle_armed=False)
stuck = Result.ABORTED_FOR_STUCK_RECOVERY


E0_ABORT = MACHINE.variant(
    "reply_operation_e0",
    first=(
        # A second abort finds no guard: it rewrites the phase, signals and cancels again; a completed reply turns aborted.
        R(abort, to=ABORTED, name="AbortRequested/e0", emit=(AbortSignal(), cancel(cancel_reason)),
          data=evolve(now, result=choose(now.result == Result.NONE, by_user_or_restart, now.result), signal_aborted=True)),
    ),
)  # fmt: skip

E0_UPSTREAM = MACHINE.variant(
    "reply_operation_e0_upstream",
    first=(
        R(
            UpstreamAborted,
            when=not_(now.signal_aborted),
            data=evolve(now, signal_aborted=True),
            emit=(AbortSignal(),),
            name="UpstreamAborted/e0",
        ),
    ),
)

E1_HUNG_OWNER = MACHINE.variant(
    "reply_operation_e1",
    replace={
        "AbortRequested/settle": R(abort, when=abortable, to=ABORTED, data=unsettled, name="AbortRequested/e1",
                                   emit=(DetachUpstream(), AbortSignal(), cancel(cancel_reason))),
    },
)  # fmt: skip

E1_RETAINED_FAILURE = MACHINE.variant(
    "reply_operation_e1_retained_failure",
    replace={
        "Failed/retained": R(failed, when=pending & (now.retain_failure | now.retain_until_complete), to=FAILED, name="Failed/e1",
                             data=evolve(ending(Result.RUN_FAILED, signal=False, freeze=True), settle_armed=False)),
    },
)  # fmt: skip

E2_COMMITTED = MACHINE.variant("reply_operation_e2", drop=("ExpiryRequested/finalizing",))

E2_AT_ONCE = MACHINE.variant(
    "reply_operation_e2_at_once",
    replace={
        "ExpiryRequested/accepted": R(expiry, to=FAILED, name="ExpiryRequested/e2",
            emit=(cancel(CancelReason.SUPERSEDED), AbortSignal(), Release()),
                                      data=evolve(ending(Result.RUN_STALLED, settle=False, freeze=True), expiry_reason=expiry.reason)),
    },
)  # fmt: skip

E3_ALONE = MACHINE.variant(
    "reply_operation_e3",
    replace={
        "RecoveryRequested/accepted": R(RecoveryRequested, when=abortable & attended, to=FAILED, name="RecoveryRequested/e3",
                                        data=evolve(ending(Result.RUN_STALLED, freeze=True), expiry_reason=ExpiryReason.STUCK_RECOVERY),
                                        emit=(DetachUpstream(), cancel(CancelReason.SUPERSEDED), AbortSignal(), StartTimer(Timer.SETTLE))),
    },
)  # fmt: skip

P1_UNSETTLED = MACHINE.variant(
    "reply_operation_p1",
    replace={
        "RecoveryRequested/accepted": R(RecoveryRequested, when=abortable & attended, to=ABORTED, name="RecoveryRequested/p1",
                                        data=evolve(ending(stuck), settle_armed=False),
                                        emit=(DetachUpstream(), AbortSignal(), cancel(CancelReason.STUCK_RECOVERY))),
    },
)  # fmt: skip

P2_WHOLE_REPLY = MACHINE.variant(
    "reply_operation_p2",
    replace={
        "RecoveryRequested/accepted": R(RecoveryRequested, when=abortable & attended, to=ABORTED, name="RecoveryRequested/p2",
            data=ending(stuck),
                                        emit=(DetachUpstream(), AbortSignal(), cancel(CancelReason.STUCK_RECOVERY),
                                              StartTimer(Timer.SETTLE))),
    },
)  # fmt: skip

REENTRANT = MACHINE.variant(
    "reply_operation_reentrant_cancel",
    first=(
        R(abort, at=FAILED, when=not_(now.released), to=ABORTED, data=evolve(now, result=by_user_or_restart, signal_aborted=True),
          emit=(only_if(not_(now.signal_aborted), AbortSignal()),), name="AbortRequested/re-entrant"),
    ),
)  # fmt: skip

UNGUARDED = MACHINE.variant(
    "reply_operation_unguarded_abort",
    replace={
        "AbortRequested/settle": R(abort, when=pending, to=ABORTED, data=ending(by_user_or_restart), name="AbortRequested/unguarded",
                                   emit=(AbortSignal(), cancel(cancel_reason), StartTimer(Timer.SETTLE))),
    },
)  # fmt: skip


VARIANTS: tuple[Variant, ...] = (
    SHIPPED,
    Variant(machine=E0_ABORT, violates={SETTLES: 1, MIRRORS: 2, REFUSES_ENDED: 2, RELEASED: 1},
            about="E0 (April to June 2026): no abort guard, no frozen bit, no settle timer. A second abort rewrites the phase, signals "
                  "and cancels "
                  "again; an abort after completed shows it aborted; a hung owner wedges the session (bugs B1, B9)."),
    Variant(machine=E0_UPSTREAM, violates={LISTENED: 1},
            about="E0: the upstream signal only fires the operation's own signal and records no result, so an aborted reply later "
                  "completes (B15)."),
    Variant(machine=E1_HUNG_OWNER, violates={SETTLES: 2, RELEASED: 2},
            about="E1 (early July 2026): the abort guard exists, the settle timer does not. A running reply whose owner hangs is never "
                  "released (B9)."),
    Variant(machine=E1_RETAINED_FAILURE, violates={SETTLES: 2, RELEASED: 2},
            about="E1: a retained failure keeps the slot with no timer, for ever if the owner vanishes (B10)."),
    Variant(machine=E2_COMMITTED, violates={COMMITTED_EXPIRY: 2},
            about="E2 (July 2026): expiry ignores the frozen bit, so a reply that is being delivered becomes failed:run_stalled and its "
                  "text is lost (B5)."),
    Variant(machine=E2_AT_ONCE, violates={EXPIRY_KEEPS: 1, BACKEND_LIVES: 2},
            about="E2: expiry releases at once while the backend lives; the successor's session is written by two backends (B8)."),
    Variant(machine=E3_ALONE, violates={TYPED: 2, ALIVE: 2},
            about="E3 (main, August to September 2026): recovery expires the whole reply and cancels as superseded; the attempt never "
                  "learns why, "
                  "so no fallback is tried (rest of B1)."),
    Variant(machine=P1_UNSETTLED, violates={ALIVE: 2, SETTLES: 2, RELEASED: 2},
            about="P1 (proposal, June 2026): recovery aborts the whole reply on a path of its own that arms no settle timer (B4, B6)."),
    Variant(machine=P2_WHOLE_REPLY, violates={ALIVE: 2, "no reply ends as aborted for stuck recovery": 2},
            about="P2 (proposal, July 2026): the whole reply is aborted before the fallback starts, which then finds an aborted signal "
                  "and stops (B6)."),
    Variant(machine=REENTRANT, violates={UNCHANGED: 2, REFUSES_ENDED: 2},
            about="A re-entrant cancel stamps aborted_by_user over a watchdog's kill: the result was not guarded against a call from "
                  "inside cancel (B13)."),
    Variant(machine=UNGUARDED, violates={"a committed outcome refuses user abort, restart abort and stuck recovery": 2,
                                         "a backend whose probe refuses is not aborted, superseded or recovered": 3},
            about="E0 and the reports behind the guard: an abort kills a reply whose text is already sent, or a backend that refused."),
)  # fmt: skip
