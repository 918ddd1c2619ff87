"""What OpenClaw 2026.9.6 really does, where it breaks a requirement that the target keeps.

Found by replaying 1,500 recorded call sequences of the shipped registry (15,784 calls): the target agrees with all of them except
for the three differences below, and this variant agrees with every step. Stuck recovery of an attempt, declared work, barriers
and human waits do not occur in those recordings; there the variant is the target.

| difference | requirement |
|---|---|
| a wait for a lane may be ended as stuck or stale | R-REPLY-19 |
| a backend stays attached after the result, and is cancelled again by a later expiry or eviction | R-REPLY-22 |
| an abort in a wait for a lane entered from running frees the slot while the cancelled backend still lives | R-REPLY-26 |
"""

from __future__ import annotations

from collections.abc import Mapping

from attrs import evolve

from turnproof.machines.kernel import Row, not_
from turnproof.machines.reply_operation import (
    ABORTED,
    MACHINE,
    abort,
    abortable,
    aborted_by,
    cancel,
    cancelled_by,
    ending,
    held,
    now,
    pending,
    upstream,
    upstream_cancel,
    upstream_result,
)
from turnproof.machines.reply_operation_words import (
    PRE_BACKEND,
    AbortSignal,
    CancelReason,
    DetachUpstream,
    Effect,
    Evicted,
    ExpiryRequested,
    Release,
    ReplyOperation,
    Result,
    SupersedeRequested,
)
from turnproof.specs.language import Variant

R = Row[ReplyOperation, Effect]

KEEPS_ITS_BACKEND = (
    "AbortRequested/settle",
    "UpstreamAborted/settle",
    "SupersedeRequested/finalizing",
    "SupersedeRequested/settle",
    "WindowExpired/nothing attached",
    "ExpiryRequested/accepted",
    "Failed/retained",
)
"""Rows that record a result and keep the slot."""


def _still_attached(name: str) -> R:
    row = MACHINE.row(name)
    assert row.data is not None
    return evolve(row, data=evolve(row.data, backend=now.backend))


def _at_once(event: object, when: bool, result: Result, reason: CancelReason, name: str) -> R:
    return R(event, at=PRE_BACKEND, when=when & not_(now.retain_until_complete), to=ABORTED, data=ending(result, settle=False), name=name,
             emit=(DetachUpstream(), AbortSignal(), cancel(reason), Release()))  # fmt: skip


ROWS: Mapping[str, R] = {
    **{name: _still_attached(name) for name in KEEPS_ITS_BACKEND},
    "AbortRequested/at once": _at_once(abort, abortable, aborted_by, cancelled_by, "AbortRequested/at once"),
    "UpstreamAborted/at once": _at_once(upstream, pending & not_(now.frozen), upstream_result, upstream_cancel, "UpstreamAborted/at once"),
    "SupersedeRequested/at once": _at_once(
        SupersedeRequested, abortable, Result.ABORTED_FOR_SUPERSESSION, CancelReason.SUPERSEDED, "SupersedeRequested/at once"
    ),
    "ExpiryRequested/held": R(ExpiryRequested, when=held, data=evolve(now, signal_aborted=True), name="ExpiryRequested/held",
                              emit=(cancel(CancelReason.SUPERSEDED), *MACHINE.row("ExpiryRequested/held").emit)),
    "Evicted/held": R(Evicted, data=evolve(now, signal_aborted=True, settle_armed=False, released=True, backend=""), name="Evicted/held",
                      emit=(*MACHINE.row("Evicted/held").emit[:2], cancel(CancelReason.RESTART), Release())),
}  # fmt: skip

SHIPPED = MACHINE.variant(
    "openclaw_2026_9_6", replace=ROWS, drop=("ExpiryRequested/stuck in a wait", "ExpiryRequested/stale in a lane wait")
)

VARIANT = Variant(
    machine=SHIPPED,
    about="OpenClaw 2026.9.6 as shipped and recorded: healthy waits expire, a backend is cancelled again after the result, and an abort "
    "frees the slot of a backend that still lives.",
    violates={
        "stuck recovery ends no healthy wait": 2,
        "a wait for a lane, a human or the runtime is never stale": 2,
        "no backend stays attached after a result": 2,
        "no abort, supersession or expiry gives up the slot while a backend is attached": 2,
    },
)
