"""One reply of a registry, as its owner sees it: the ``reply_operation`` machine, its signal, its backends and its barriers."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable
from functools import partial
from types import TracebackType
from typing import Any, Protocol, Self

import attrs

from turnproof.machines import reply_operation_words as words
from turnproof.machines.kernel import NOBODY, Answer, Taken
from turnproof.machines.reply_operation import MACHINE
from turnproof.shell.common import Hooks, Signal, Tasks, awaited
from turnproof.shell.reply_registry_words import BARRIER_MS, FENCE_MS, STALE_MS, Backend, Probed, Steerable

ReplyAnswer = Answer[words.ReplyOperation, words.Effect]


@attrs.frozen
class Guard:
    """Something a release registers, that keeps other turns out until it settles or ``timeout_ms`` have passed."""

    settled: asyncio.Future[Any]
    timeout_ms: int


class Registry(Protocol):
    """What a reply asks of its registry."""

    def reply_released(self, reply: Reply, barrier: Guard | None, fence: Guard | None) -> None:
        """The reply gave its slot up."""

    def reply_rotated(self, reply: Reply, session_id: str) -> None:
        """The session of the reply goes on under that id."""

    def reply_moved(self, reply: Reply, key: str) -> None:
        """The reply belongs to that key."""

    def rotate(self, reply: Reply, session_id: str) -> ReplyAnswer:
        """Ask the reply to rotate."""

    def move(self, reply: Reply, key: str) -> ReplyAnswer:
        """Ask the reply to move."""

    def start_attempt(self, reply: Reply) -> None:
        """Take the lane."""

    def end_attempt(self, reply: Reply) -> None:
        """Leave the lane."""


class Reply:
    """One reply, from its admission on. Made by ``ReplyRegistry.begin``.

    Its methods say what happened and return the machine's answer: ``Taken``, ``Ignored`` (harmless) or ``Refused`` with the reason.
    As a context manager it is its own owner: it completes at the end of the block, fails with ``run_failed`` if the block raises, and is
    aborted as its caller's signal would abort it if the block is cancelled.
    """

    def __init__(self, registry: Registry, hooks: Hooks, tasks: Tasks, identity: str, key: str, session_id: str) -> None:
        self.identity, self.key, self.session_id = identity, key, session_id
        self.session_ids = [session_id]
        """Every id it has had; the older ones lead waiters to it."""
        self.signal: Signal[words.Result] = Signal()
        """Fires when the reply is aborted, with its result."""
        self.last_activity_ms = 0
        """When it last gave a sign of life, on the shell's clock."""
        self._registry, self._tasks = registry, tasks
        self._owner: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._backends: dict[str, Backend] = {}
        self._recovering: str = NOBODY
        self._steered: deque[object] = deque()
        self._rotations: deque[str] = deque()
        self._moves: deque[str] = deque()
        self._barriers: list[Guard] = []
        self._fences: list[Guard] = []
        self._forget_upstream: Callable[[], None] | None = None
        self.runner = hooks.runner(MACHINE, _Effects(self), identity)
        self.stamp()

    @property
    def state(self) -> words.ReplyOperation:
        """The machine's state."""
        return self.runner.state

    @property
    def backend(self) -> Backend | None:
        """The attached backend."""
        return self._backends.get(self.state.backend)

    @property
    def quiet_ms(self) -> int:
        """Milliseconds since the last sign of life."""
        return self.runner.now_ms - self.last_activity_ms

    def stale(self, after_ms: int = STALE_MS) -> bool:
        """Whether it is silent for more than ``after_ms`` milliseconds; never in a wait for a lane, a person or the runtime."""
        waits = self.state.owned_wait or self.state.phase is words.Phase.WAITING_FOR_LANE
        return self.state.phase not in words.TERMINAL and not waits and self.quiet_ms > after_ms

    async def settled(self) -> None:
        """Wait until the owner is really done: it has completed, and every barrier it registered has settled."""
        await asyncio.shield(self._owner)

    # ── the way of a reply ──

    def enter(self, phase: words.Phase) -> ReplyAnswer:
        """It is in another phase of work."""
        return self.post(words.PhaseEntered(phase))

    def maintenance_wait(self, waits: bool) -> ReplyAnswer:
        """It begins or ends to wait for earlier maintenance of its session."""
        return self.post(words.MaintenanceWaitBegan() if waits else words.MaintenanceWaitEnded())

    def lane_wait(self, waits: bool) -> ReplyAnswer:
        """It begins or ends to wait for process-wide capacity."""
        return self.post(words.LaneWaitBegan() if waits else words.LaneWaitEnded())

    def owned_wait(self, waits: bool) -> ReplyAnswer:
        """The attempt begins or ends to wait for a person, or for something the runtime owns."""
        return self.post(words.OwnedWaitBegan() if waits else words.OwnedWaitEnded())

    def start_attempt(self) -> None:
        """Take the key's lane. Raises ``LaneBusy`` while the attempt of an earlier turn is live, or if the slot is lost."""
        self._registry.start_attempt(self)

    def end_attempt(self) -> None:
        """Leave the lane; a queued turn may begin now. May be called late, and again."""
        self._registry.end_attempt(self)

    def attach(self, identity: str, backend: Backend) -> ReplyAnswer:
        """An attempt runs. If the reply has its result, the attempt is cancelled at once, with the reason that follows from it."""
        self._backends[identity] = backend
        answer = self.post(words.BackendAttached(identity))
        if not isinstance(answer, Taken):
            self._backends.pop(identity, None)
        return answer

    def detach(self, identity: str) -> ReplyAnswer:
        """That attempt is over."""
        answer = self.post(words.BackendDetached(identity))
        self._backends.pop(identity, None)
        return answer

    def record_activity(self) -> ReplyAnswer:
        """The run gave a sign of life."""
        return self.post(words.ActivityRecorded())

    def work_began(self, latest_deadline_ms: int) -> ReplyAnswer:
        """Work with a deadline was declared; the latest of all deadlines, on the shell's clock."""
        return self.post(words.WorkBegan(latest_deadline_ms))

    def work_ended(self, latest_deadline_ms: int) -> ReplyAnswer:
        """Declared work ended; the latest deadline that remains, 0 for none."""
        return self.post(words.WorkEnded(latest_deadline_ms))

    def commit(self) -> ReplyAnswer:
        """The outcome is committed: nothing aborts it any more, and its lease runs."""
        return self.post(words.OutcomeCommitted())

    def steer(self, message: object) -> ReplyAnswer:
        """Hand a message to the running attempt."""
        backend = _steerable(self.backend)
        accepts = backend is not None and backend.accepts()
        self._steered.append(message)
        answer = self.post(words.SteerRequested(accepts, self.stale()))
        if not isinstance(answer, Taken):
            self._steered.pop()
        return answer

    def rotate(self, session_id: str) -> ReplyAnswer:
        """The session goes on under that id. Raises ``SessionIdTaken`` if another operation has it."""
        return self._registry.rotate(self, session_id)

    def move(self, key: str) -> ReplyAnswer:
        """The reply belongs to another key. Raises ``KeyChangeRefused`` if that key is busy or fenced, or the reply no longer queued."""
        return self._registry.move(self, key)

    # ── somebody ends it ──

    def abort(self, reason: words.AbortReason = words.AbortReason.USER) -> ReplyAnswer:
        """A person, or a restart, aborts it."""
        self.report_consent()
        return self.post(words.AbortRequested(reason))

    def abort_upstream(self, reason: words.UpstreamReason = words.UpstreamReason.USER) -> ReplyAnswer:
        """The caller that began it is gone; the backend is not asked."""
        return self.post(words.UpstreamAborted(reason))

    def supersede(self) -> ReplyAnswer:
        """A newer turn takes the key."""
        self.report_consent()
        return self.post(words.SupersedeRequested())

    def recover(self) -> ReplyAnswer:
        """The attached attempt is stuck: cancel it by that name, and let the reply live on."""
        self.report_consent()
        return self.post(words.RecoveryRequested())

    def expire(self, reason: words.ExpiryReason, fence: Awaitable[object] | None = None, *, fence_ms: int = FENCE_MS) -> ReplyAnswer:
        """The whole reply is dead. ``fence``: keeps every successor out from the release on, ``fence_ms`` milliseconds at most."""
        return self._with_guard(self._fences, fence, fence_ms, words.ExpiryRequested(reason))

    def force_clear(self) -> ReplyAnswer:
        """A drain of exactly this reply failed."""
        return self.post(words.ForceCleared())

    def evict(self) -> ReplyAnswer:
        """The lifecycle that owns it goes away."""
        return self.post(words.Evicted())

    # ── the owner ends it ──

    def complete(self, barrier: Awaitable[object] | None = None, *, barrier_ms: int = BARRIER_MS) -> ReplyAnswer:
        """The owner is done. ``barrier``: follow-ups wait for it, ``barrier_ms`` milliseconds at most, and :meth:`settled` to its end."""
        return self._with_guard(self._barriers, barrier, barrier_ms, words.Completed(barrier is not None))

    def fail(self, code: words.FailureCode = words.FailureCode.RUN_FAILED) -> ReplyAnswer:
        """The owner gave up."""
        return self.post(words.Failed(code))

    def retain_failure(self) -> ReplyAnswer:
        """A failure keeps the slot until the owner completes."""
        return self.post(words.RetainFailureRequested())

    def retain_until_complete(self) -> ReplyAnswer:
        """So does an abort before anything ran."""
        return self.post(words.RetainUntilCompleteRequested())

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if isinstance(error, asyncio.CancelledError):
            self.abort_upstream()
        elif error is not None:
            self.fail()
        self.complete()

    # ── for the registry ──

    def post(self, event: words.Event) -> ReplyAnswer:
        """Apply an event."""
        return self.runner.post(event)

    def listen_to(self, upstream: Signal[words.UpstreamReason]) -> None:
        """Abort with the signal it was begun with."""
        forget = upstream.listen(self.abort_upstream)
        if upstream.fired:
            return
        self._forget_upstream = forget

    def rotating(self, session_id: str, event: words.Event) -> ReplyAnswer:
        """Apply an event whose effect means ``session_id``."""
        return self._meaning(self._rotations, session_id, event)

    def moving(self, key: str, event: words.Event) -> ReplyAnswer:
        """Apply an event whose effect means ``key``."""
        return self._meaning(self._moves, key, event)

    def stamp(self) -> None:
        """A sign of life, now."""
        self.last_activity_ms = self.runner.now_ms

    def _meaning(self, waiting: deque[str], what: str, event: words.Event) -> ReplyAnswer:
        waiting.append(what)
        answer = self.post(event)
        if not isinstance(answer, Taken):
            waiting.pop()
        return answer

    def _with_guard(self, guards: list[Guard], what: Awaitable[object] | None, timeout_ms: int, event: words.Event) -> ReplyAnswer:
        """Apply an event that may bring a release, and let that release register ``what``."""
        if what is None:
            return self.post(event)
        guard = Guard(self._tasks.start(awaited(what), "guard"), timeout_ms)
        guards.append(guard)
        answer = self.post(event)
        if guard in guards and (self.state.released or not isinstance(answer, Taken)) and not _releases(answer):
            guards.remove(guard)
        if isinstance(event, words.Completed) and isinstance(answer, Taken):
            # A registry that shuts down cancels the barrier, and nothing waits for it any more: nor may :meth:`settled`.
            over = partial(self.post, words.BarrierSettled())
            self._tasks.start(self._barrier(guard), "barrier of the owner", cancelled=over)
        return answer

    def _all(self, guards: list[Guard]) -> Guard | None:
        """Several as one: settled when all are."""
        if len(guards) <= 1:
            return guards[0] if guards else None
        settled = self._tasks.start(asyncio.wait([guard.settled for guard in guards]), "guards")
        return Guard(settled, max(guard.timeout_ms for guard in guards))

    async def _barrier(self, guard: Guard) -> None:
        await asyncio.wait((guard.settled,))
        self.post(words.BarrierSettled())

    def report_consent(self) -> None:
        """Ask the backend's probe, and tell the machine if the answer has changed."""
        consents = self._consents()
        if consents is not self.state.backend_consents:
            self.post(words.ConsentReported(consents))

    def _consents(self) -> bool:
        """A call from inside the cancel of a recovery is no person's: the backend is being cut, and consents to nothing more."""
        backend = self.backend
        if backend is None:
            return True
        if self._recovering == self.state.backend:
            return False
        if not isinstance(backend, Probed):
            return True
        try:
            return backend.consents()
        except Exception:
            return False

    def __repr__(self) -> str:
        return f"<reply {self.identity} of {self.key!r}: {self.state.phase.value}, {self.state.result.value}>"


def _releases(answer: ReplyAnswer) -> bool:
    return isinstance(answer, Taken) and any(isinstance(effect, words.Release) for effect in answer.effects)


def _steerable(backend: object) -> Steerable | None:
    return backend if isinstance(backend, Steerable) else None


class _Effects:
    """Performs the effects of a reply."""

    def __init__(self, reply: Reply) -> None:
        self._reply = reply

    def detach_upstream(self, effect: words.DetachUpstream) -> None:
        forget, self._reply._forget_upstream = self._reply._forget_upstream, None
        if forget is not None:
            forget()

    def abort_signal(self, effect: words.AbortSignal) -> None:
        self._reply.signal.fire(self._reply.state.result)

    def cancel_backend(self, effect: words.CancelBackend) -> None:
        reply = self._reply
        backend = reply._backends.get(effect.backend)
        if backend is None:
            return
        reply._recovering = effect.backend if effect.reason is words.CancelReason.STUCK_RECOVERY else NOBODY
        try:
            reply._tasks.perform(backend.cancel(effect.reason), f"cancel of {effect.backend}", effect)
        finally:
            reply._recovering = NOBODY

    def release(self, effect: words.Release) -> None:
        reply = self._reply
        barriers, reply._barriers = reply._barriers, []
        fences, reply._fences = reply._fences, []
        reply._registry.reply_released(reply, reply._all(barriers), reply._all(fences))

    def stamp_activity(self, effect: words.StampActivity) -> None:
        self._reply.stamp()

    def deliver_steer(self, effect: words.DeliverSteer) -> None:
        message, backend = self._reply._steered.popleft(), _steerable(self._reply.backend)
        if backend is not None:
            self._reply._tasks.perform(backend.steer(message), "steering", effect)

    def rotate_session(self, effect: words.RotateSession) -> None:
        self._reply._registry.reply_rotated(self._reply, self._reply._rotations.popleft())

    def move_to_key(self, effect: words.MoveToKey) -> None:
        self._reply._registry.reply_moved(self._reply, self._reply._moves.popleft())

    def settle_owner(self, effect: words.SettleOwner) -> None:
        if not self._reply._owner.done():
            self._reply._owner.set_result(None)
