"""The reply operation on asyncio: what a runtime must be able to do, as a Protocol, and the runner of one reply."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Protocol

from turnproof.machines.reply_operation import MACHINE
from turnproof.machines.reply_operation_words import (
    AbortSignal,
    CancelBackend,
    DeliverSteer,
    DetachUpstream,
    Effect,
    Event,
    MoveToKey,
    Release,
    ReplyOperation,
    RotateSession,
    SettleOwner,
    StampActivity,
)
from turnproof.shell.handlers import Failure, Performed, log_failure
from turnproof.shell.runner import Durations, Runner, TraceStep

ReplyRunner = Runner[ReplyOperation, Event, Effect]


class ReplyHandlers(Protocol):
    """Performs the effects of one reply. Each method may be a plain function or a coroutine function, and may send events."""

    def detach_upstream(self, effect: DetachUpstream) -> Performed:
        """Stop listening to the signal the reply was begun with."""

    def abort_signal(self, effect: AbortSignal) -> Performed:
        """Fire the operation's own abort signal."""

    def cancel_backend(self, effect: CancelBackend) -> Performed:
        """Cancel that backend with that reason. It is told once; whether and when it obeys is its own affair."""

    def release(self, effect: Release) -> Performed:
        """Give the slot up: registry entries go, waiters wake."""

    def stamp_activity(self, effect: StampActivity) -> Performed:
        """Note the time as the last sign of life."""

    def deliver_steer(self, effect: DeliverSteer) -> Performed:
        """Hand the message to the attached backend."""

    def rotate_session(self, effect: RotateSession) -> Performed:
        """Map the new session id; the old one stays as an alias for those who wait."""

    def move_to_key(self, effect: MoveToKey) -> Performed:
        """Move the slot and its aliases to the new key; whoever waits for the old key wakes."""

    def settle_owner(self, effect: SettleOwner) -> Performed:
        """Tell whoever waits for the owner that it is really done."""


def reply_runner(
    handlers: ReplyHandlers,
    *,
    key: str = "",
    durations_ms: Durations | None = None,
    on_error: Callable[[Failure], object] = log_failure,
    as_event: Callable[[Failure], Event | None] | None = None,
    trace: Callable[[TraceStep[ReplyOperation, Event, Effect]], object] | None = None,
    timestamp: Callable[[], float] = time.time,
) -> ReplyRunner:
    """A reply, admitted and queued. Arguments and errors as :class:`Runner` has them."""
    return Runner(
        MACHINE, handlers, key=key, durations_ms=durations_ms, on_error=on_error, as_event=as_event, trace=trace, timestamp=timestamp
    )
