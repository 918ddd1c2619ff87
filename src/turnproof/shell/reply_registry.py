"""The registry of replies on asyncio: one reply a session key, callers that wait, ids that rotate, turns that queue.

Theory of operation
===================

Each key has a ``reply_slot`` machine, each session id a ``session_id``, each waiting caller a ``reply_waiter`` and each reply a
``reply_operation``. The registry holds no decision of its own: it hands the effects of one machine to the next as events, as the system
``reply_registry`` of the specification wires them, and keeps what a machine does not carry: futures, backends, names.

Every effect is performed by an ordinary function, so a call runs to completion through all machines before it returns. Whatever calls
back (a backend's cancel, a listener of a signal) may call the registry again: the results are recorded, and it is answered by them.

Two rules of this file: nothing is awaited between reading and storing; and whatever can be asked is asked of a machine.
"""

from __future__ import annotations

import asyncio
import itertools
import time
from collections.abc import Callable, Mapping
from enum import Enum
from typing import Any

from turnproof.machines import reply_operation, reply_slot, reply_waiter, session_id
from turnproof.machines.kernel import Refused
from turnproof.machines.reply_operation_words import (
    AbortReason,
    ExpiryReason,
    KeyChangeRequested,
    Result,
    SessionRotationRequested,
    UpstreamReason,
)
from turnproof.machines.reply_slot import (
    AttemptEnded,
    AttemptRequested,
    BarrierEnded,
    BeginRequested,
    FenceEnded,
    OfferDeclined,
    ReleaseReported,
    ReplySlot,
    SlotPhase,
    TurnKind,
    TurnQueued,
)
from turnproof.machines.session_id import IdBound, IdReplaced, OwnerReleased
from turnproof.shell.common import Hooks, Signal, Tasks, Trace
from turnproof.shell.handlers import Failure, log_failure
from turnproof.shell.reply_registry_entries import Id, Offer, Slot
from turnproof.shell.reply_registry_reply import Guard, Reply, ReplyAnswer
from turnproof.shell.reply_registry_waiting import Waiter
from turnproof.shell.reply_registry_words import (
    SLICE_MS,
    STALE_MS,
    UNRELEASED_MS,
    AlreadyActive,
    FollowupAdmissionBlocked,
    KeyChangeRefused,
    LaneBusy,
    QueuedTurnFirst,
    RegistryClosed,
    SessionIdTaken,
    SuccessorAdmissionBlocked,
    admission_error,
)

MACHINES = (reply_operation.MACHINE, reply_slot.MACHINE, session_id.MACHINE, reply_waiter.MACHINE)
"""Every machine of a registry, for a ``TraceWriter``."""


class ReplyRegistry:
    """The replies of a process. Build it inside a running event loop; all calls belong to the thread of that loop.

    ``durations_ms``: other durations than the machines' own, by timer, in milliseconds.
    ``on_error``: told of each failure of a handler, once. ``trace``: told of each step of each machine; a ``TraceWriter`` for
    :data:`MACHINES` is one. ``timestamp``: the clock of the trace, in seconds.

    Raises ``ValueError`` for a duration that is not positive, or of a timer that none of the four machines has.
    """

    def __init__(
        self,
        *,
        durations_ms: Mapping[Enum, int] | None = None,
        on_error: Callable[[Failure], object] = log_failure,
        trace: Trace | None = None,
        timestamp: Callable[[], float] = time.time,
    ) -> None:
        self.hooks = Hooks(durations_ms=durations_ms or {}, on_error=on_error, trace=trace, timestamp=timestamp)
        self.hooks.check_durations(*MACHINES)
        self._loop = asyncio.get_running_loop()
        self._tasks = Tasks(on_error, "reply_registry", "")
        self._slots: dict[str, Slot] = {}
        self._ids: dict[str, Id] = {}
        self._replies: dict[str, Reply] = {}
        self._numbers = itertools.count(1)
        self._shutdown: asyncio.Task[None] | None = None

    def fresh(self, name: str) -> str:
        """An identity that nobody has had in this registry."""
        return f"{name}#{next(self._numbers)}"

    # ── admission ──

    def begin(self, key: str, session: str, *, kind: TurnKind = TurnKind.VISIBLE, upstream: Signal[UpstreamReason] | None = None) -> Reply:
        """Begin a reply in the slot of ``key``, under the session id ``session``; ``upstream`` aborts it when it fires.

        Raises ``ValueError`` for an empty key or id, :class:`RegistryClosed`, :class:`SessionIdTaken`, and what the slot refuses as
        ``FollowupAdmissionBlocked``, ``AlreadyActive``, ``SuccessorAdmissionBlocked`` or ``QueuedTurnFirst``. Then nothing has changed.
        """
        self._check(key, session)
        slot = self._slot(key)
        identity = self.fresh(key)
        event = BeginRequested(identity, kind)
        asked = reply_slot.step(slot.state, event)
        if not isinstance(asked, Refused):
            self._check_id(key, session, identity)
        answer = slot.post(event)
        if isinstance(answer, Refused):
            self._tidy(slot)
            raise admission_error(key, answer)
        reply = self._replies[identity] = Reply(self, self.hooks, self._tasks, identity, key, session)
        self._id(session).post(IdBound(identity))
        if upstream is not None:
            reply.listen_to(upstream)
        return reply

    async def begin_queued(self, key: str, session: str, *, upstream: Signal[UpstreamReason] | None = None) -> Reply:
        """Join the queue of ``key`` and begin when slot and lane are free. A caller that is cancelled leaves the queue.

        Raises as :meth:`begin` does; :class:`RegistryClosed` also if the registry is shut down meanwhile.
        """
        self._check(key, session)
        slot = self._slot(key)
        offer: Offer = self._loop.create_future()
        slot.queue.append(offer)
        slot.post(TurnQueued())
        try:
            await offer
            return self.begin(key, session, kind=TurnKind.QUEUED, upstream=upstream)
        except BaseException:
            if _accepted(offer):
                slot.post(OfferDeclined())
            raise

    async def begin_visible(
        self,
        key: str,
        session: str,
        *,
        timeout_ms: int,
        stale_ms: int = STALE_MS,
        upstream: Signal[UpstreamReason] | None = None,
    ) -> Reply:
        """Begin a turn somebody looks at: wait for the key in slices, and expire a holder that is over or dead.

        A holder with a result is expired after :data:`UNRELEASED_MS` of silence, a live one after ``stale_ms`` milliseconds. Raises as
        :meth:`begin` does; what only time can change, after ``timeout_ms`` milliseconds.
        """

        def judge(holder: Reply) -> None:
            if holder.state.result is not Result.NONE and holder.quiet_ms >= UNRELEASED_MS:
                holder.expire(ExpiryReason.TERMINAL_UNRELEASED)
            elif holder.stale(stale_ms):
                holder.expire(ExpiryReason.NO_ACTIVITY)

        return await self._begin_waiting(key, session, TurnKind.VISIBLE, timeout_ms, upstream, judge)

    async def begin_follow_up(
        self, key: str, session: str, *, timeout_ms: int = SLICE_MS, upstream: Signal[UpstreamReason] | None = None
    ) -> Reply:
        """Begin a follow-up once the key is free and every follow-up barrier has settled or timed out.

        Raises as :meth:`begin` does; what only time can change, after ``timeout_ms`` milliseconds.
        """
        return await self._begin_waiting(key, session, TurnKind.FOLLOW_UP, timeout_ms, upstream, None)

    async def _begin_waiting(
        self,
        key: str,
        session: str,
        kind: TurnKind,
        timeout_ms: int,
        upstream: Signal[UpstreamReason] | None,
        judge: Callable[[Reply], None] | None,
    ) -> Reply:
        until = self.now_ms + timeout_ms
        while True:
            try:
                return self.begin(key, session, kind=kind, upstream=upstream)
            except QueuedTurnFirst:
                await asyncio.sleep(0)  # who was offered the slot begins, or declines, when its task runs next
            except AlreadyActive:
                if self.now_ms >= until:
                    raise
                await self.wait_for_idle(key, min(SLICE_MS, until - self.now_ms))
                holder = self.holder(key)
                if holder is not None and judge is not None:
                    judge(holder)
            except (FollowupAdmissionBlocked, SuccessorAdmissionBlocked):
                if self.now_ms >= until:
                    raise
                await self._slot(key).guard_over(until - self.now_ms)

    # ── who is there ──

    @property
    def now_ms(self) -> int:
        """The shell's clock, in milliseconds."""
        return round(self._loop.time() * 1000)

    @property
    def replies(self) -> tuple[Reply, ...]:
        """Every reply that holds a slot."""
        return tuple(self._replies.values())

    def holder(self, key: str) -> Reply | None:
        """The reply that holds the slot of ``key``."""
        slot = self._slots.get(key)
        return None if slot is None else self._replies.get(slot.state.holder)

    def by_session(self, session: str) -> Reply | None:
        """The reply that has, or had, this session id and holds its slot."""
        known = self._ids.get(session)
        return None if known is None else self._replies.get(known.runner.state.owner)

    def slot_state(self, key: str) -> ReplySlot:
        """The state of the slot of ``key``."""
        slot = self._slots.get(key)
        return reply_slot.MACHINE.initial if slot is None else slot.state

    # ── waiting ──

    async def wait_for_idle(self, key: str, timeout_ms: int = SLICE_MS, *, signal: Signal[Any] | None = None) -> bool:
        """True once ``key`` is released, or at once if nobody holds it; false after ``timeout_ms`` milliseconds (100 at least), or when
        ``signal`` fires.
        """
        return await self._wait(self._slot(key), timeout_ms, signal)

    async def wait_for_session_idle(self, session: str, timeout_ms: int = SLICE_MS, *, signal: Signal[Any] | None = None) -> bool:
        """As :meth:`wait_for_idle`, for whatever operation has or had this session id; true at once if none."""
        return await self._wait(self._id(session), timeout_ms, signal)

    async def _wait(self, entry: Slot | Id, timeout_ms: int, signal: Signal[Any] | None) -> bool:
        try:
            return await Waiter(self.hooks, self.fresh("waiter"), entry.register).ask(timeout_ms, signal)
        finally:
            if isinstance(entry, Slot):
                self._tidy(entry)
            else:
                self._tidy_id(entry.session)

    # ── shutting down ──

    async def shutdown(self, *, grace_ms: int = SLICE_MS) -> None:
        """Let nobody begin any more, abort every reply for the restart, wait ``grace_ms`` milliseconds, evict what is left, release all.

        May be called again, and by several; cancelling a caller cancels its waiting, not the shutdown.
        """
        if self._shutdown is None:
            self._shutdown = self._loop.create_task(self._shut_down(grace_ms), name="shutdown of the reply registry")
        await asyncio.shield(self._shutdown)

    async def _shut_down(self, grace_ms: int) -> None:
        for slot in list(self._slots.values()):
            for offer in slot.queue:
                if not offer.done():
                    offer.set_exception(RegistryClosed("the reply registry was shut down"))
        until = self.now_ms + grace_ms
        for reply in self.replies:
            reply.abort(AbortReason.RESTART)
        for reply in self.replies:
            if reply.identity in self._replies and self.now_ms < until:
                await self.wait_for_idle(reply.key, until - self.now_ms)
        for reply in self.replies:
            reply.evict()
        await self._tasks.aclose()
        for slot in self._slots.values():
            slot.wake_admissions()

    # ── what replies ask ──

    def rotate(self, reply: Reply, session: str) -> ReplyAnswer:
        """Let the session of ``reply`` go on under another id. Raises :class:`SessionIdTaken`, and ``ValueError`` for an empty id."""
        if not session:
            raise ValueError(f"{reply.key}: a session id is not empty")
        owned = isinstance(session_id.step(self._id_state(session), IdBound(reply.identity)), Refused)
        answer = reply.rotating(session, SessionRotationRequested(session == reply.session_id, owned))
        if isinstance(answer, Refused) and owned:
            raise SessionIdTaken(f"{reply.key}: {session!r}: {answer.why}")
        return answer

    def move(self, reply: Reply, key: str) -> ReplyAnswer:
        """Move ``reply`` to another key. Raises :class:`KeyChangeRefused`, and ``ValueError`` for an empty key or its own."""
        if not key or key == reply.key:
            raise ValueError(f"{reply.key}: another key was expected, not {key!r}")
        slot = self.slot_state(key)
        answer = reply.moving(key, KeyChangeRequested(slot.phase is not SlotPhase.FREE, slot.fences > 0))
        if isinstance(answer, Refused):
            raise KeyChangeRefused(f"{reply.key} to {key}: {answer.why}")
        return answer

    def start_attempt(self, reply: Reply) -> None:
        """Give the lane of its key to ``reply``. Raises :class:`LaneBusy`."""
        answer = self._slot(reply.key).post(AttemptRequested(reply.identity))
        if isinstance(answer, Refused):
            raise LaneBusy(f"{reply.key}: {answer.why}")

    def end_attempt(self, reply: Reply) -> None:
        """The attempt of ``reply`` has left the lane."""
        slot = self._slot(reply.key)
        slot.post(AttemptEnded(reply.identity))
        self._tidy(slot)

    # ── what replies tell ──

    def reply_released(self, reply: Reply, barrier: Guard | None, fence: Guard | None) -> None:
        """A reply gave its slot up: its ids go, its guards stand, and whoever waits wakes."""
        del self._replies[reply.identity]
        for one in dict.fromkeys(reply.session_ids):
            self._id(one).post(OwnerReleased(reply.identity))
            self._tidy_id(one)
        slot = self._slot(reply.key)
        slot.post(ReleaseReported(reply.identity, barrier is not None, fence is not None))
        for guard, event in ((barrier, BarrierEnded()), (fence, FenceEnded())):
            if guard is not None:
                self._tasks.start(self._guard(slot, guard, event), "guard of a release")
        self._tidy(slot)

    def reply_rotated(self, reply: Reply, session: str) -> None:
        """The old id stays as an alias for those who wait."""
        self._id(reply.session_id).post(IdReplaced(reply.identity))
        self._id(session).post(IdBound(reply.identity))
        reply.session_id = session
        reply.session_ids.append(session)

    def reply_moved(self, reply: Reply, key: str) -> None:
        """The slot moves; whoever waits for the old key wakes."""
        old = self._slot(reply.key)
        self._slot(key).post(BeginRequested(reply.identity, TurnKind.VISIBLE))
        reply.key = key
        old.post(ReleaseReported(reply.identity, False, False))
        self._tidy(old)

    async def _guard(self, slot: Slot, guard: Guard, event: BarrierEnded | FenceEnded) -> None:
        await asyncio.wait((guard.settled,), timeout=guard.timeout_ms / 1000)
        slot.post(event)
        slot.wake_admissions()
        self._tidy(slot)

    # ── entries come when they are asked for, and go when there is nothing to remember ──

    def slot_of(self, operation: str) -> Slot:
        """The slot that ``operation`` holds."""
        return self._slot(self._replies[operation].key)

    def _check(self, key: str, session: str) -> None:
        if not key or not session:
            raise ValueError(f"key {key!r}, session id {session!r}: neither may be empty")
        if self._shutdown is not None:
            raise RegistryClosed("the reply registry was shut down")

    def _check_id(self, key: str, session: str, identity: str) -> None:
        answer = session_id.step(self._id_state(session), IdBound(identity))
        if isinstance(answer, Refused):
            raise SessionIdTaken(f"{key}: {session!r}: {answer.why}")

    def _slot(self, key: str) -> Slot:
        found = self._slots.get(key)
        if found is None:
            found = self._slots[key] = Slot(self, key, self.fresh(f"slot {key}"))
        return found

    def _id(self, session: str) -> Id:
        found = self._ids.get(session)
        if found is None:
            found = self._ids[session] = Id(self, session, self.fresh(f"id {session}"))
        return found

    def _id_state(self, session: str) -> session_id.SessionId:
        found = self._ids.get(session)
        return session_id.MACHINE.initial if found is None else found.runner.state

    def _tidy(self, slot: Slot) -> None:
        if slot.state == reply_slot.MACHINE.initial and self._slots.get(slot.key) is slot:
            del self._slots[slot.key]

    def _tidy_id(self, session: str) -> None:
        if self._id_state(session) == session_id.MACHINE.initial:
            self._ids.pop(session, None)


def _accepted(offer: Offer) -> bool:
    return offer.done() and not offer.cancelled() and offer.exception() is None
