"""Turns of one session on asyncio: a body of coroutines that is retried, falls back and is recovered, and never runs a side effect twice.

Theory of operation
===================

A turn comes into the session's lane (``command_lane``), begins a reply in a :class:`ReplyRegistry`, and asks ``failover`` what to try. Each
attempt is a body (a coroutine function of the user's) around an ``embedded_attempt``: through the :class:`Attempt` it is given it calls the
model and runs tools, so the machine knows at every moment what is active. ``embedded_run`` knows which attempt is current and delivers
the one answer; ``stuck_watchdog`` and ``stuck_recovery`` find out what is stuck and cancel it by that name. How an attempt ended and
whether anything it did may have changed the world, ``failover`` turns into a retry, another profile, another model, or the end.

The wiring is that of the system ``recovery_system`` of the specification. Nothing is decided here.

Two rules of this file: nothing is awaited between reading and storing; and an attempt that does not obey is no longer waited for, but
whatever it still wants to do is asked of its machine, which refuses.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Mapping
from enum import Enum
from typing import Any, Generic, TypeVar

from turnproof.machines import (
    command_lane,
    embedded_attempt,
    embedded_run,
    failover,
    run_budget,
    steering_message,
    stuck_recovery,
    stuck_recovery_watchdog,
    tool_execution,
)
from turnproof.machines.command_lane import (
    ForgetTask,
    LaneCleared,
    LanePhase,
    RejectQueued,
    ResetRequested,
    StartTurn,
    TaskEnded,
    TurnEnqueued,
)
from turnproof.machines.embedded_attempt_events import ReportOutcome
from turnproof.machines.embedded_attempt_words import Wait
from turnproof.machines.embedded_run import (
    AbandonRequested,
    AnswerNoRun,
    AnswerOffered,
    CancelRun,
    ClearRequested,
    Deliver,
    ForceClearRequested,
    LifecycleRotated,
    RegisterRequested,
    WakeRunWaiters,
)
from turnproof.machines.failover_words import Failure
from turnproof.machines.kernel import Taken
from turnproof.machines.reply_operation_words import AbortReason, CancelReason, UpstreamReason
from turnproof.machines.stuck_recovery_watchdog_words import Work
from turnproof.machines.stuck_recovery_words import Lane, Outcome
from turnproof.shell import reply_registry
from turnproof.shell.attempt_runner_attempt import Attempt
from turnproof.shell.attempt_runner_recovery import Recovery
from turnproof.shell.attempt_runner_steering import SteeredMessage, Steering
from turnproof.shell.attempt_runner_turn import Turn
from turnproof.shell.attempt_runner_words import REQUEST_MS, Body, NotResumable, Plan, TurnResult, classify
from turnproof.shell.attempt_runner_words import LaneCleared as LaneClearedError
from turnproof.shell.common import Hooks, Tasks
from turnproof.shell.handlers import Performed
from turnproof.shell.reply_registry import ReplyRegistry
from turnproof.shell.reply_registry_reply import Reply

T = TypeVar("T")

OWN = (
    command_lane.MACHINE, embedded_attempt.MACHINE, embedded_run.MACHINE, failover.MACHINE, run_budget.MACHINE, steering_message.MACHINE,
    stuck_recovery.MACHINE, stuck_recovery_watchdog.MACHINE, tool_execution.MACHINE,
)  # fmt: skip
MACHINES = (*reply_registry.MACHINES, *OWN)
"""Every machine of an attempt runner and its registry, for a ``TraceWriter``."""


class AttemptRunner(Generic[T]):
    """Runs the turns of one session, one at a time. Build it inside a running event loop.

    ``registry``: where its replies hold the slot of ``key``; its hooks (trace, errors) are used here too.
    ``body``: one attempt, a coroutine function that returns the answer.
    ``plan``: the models and profiles to try.
    ``deliver``: hands a delivered answer on; told once a turn at most.
    ``classify``: what failover calls an error of a body, and whether it came out of the prompt itself.
    ``report``: told of each recovery: its outcome, and whether the lane was reset.
    ``durations_ms``: other durations than the machines' own, by timer, in milliseconds.
    ``request_ms``: silence after which a model call counts as past its limit, in milliseconds.

    Raises ``ValueError`` for a duration that is not positive, or of a timer that none of its machines has.
    """

    def __init__(
        self,
        registry: ReplyRegistry,
        key: str,
        session: str,
        body: Body[T],
        plan: Plan,
        *,
        deliver: Callable[[T], Performed] | None = None,
        classify: Callable[[Exception], tuple[Failure, bool]] = classify,
        report: Callable[[Outcome, bool], object] | None = None,
        durations_ms: Mapping[Enum, int] | None = None,
        request_ms: int = REQUEST_MS,
    ) -> None:
        shared = registry.hooks
        self.hooks = Hooks(
            durations_ms=durations_ms or {}, on_error=shared.on_error, trace=shared.trace, timestamp=shared.timestamp
        )  # fmt: skip
        self.hooks.check_durations(*OWN)
        self.key, self.session, self.plan, self.registry = key, session, plan, registry
        self.tasks = Tasks(shared.on_error, "attempt_runner", key)
        self.body, self.deliver_answer, self.classify = body, deliver, classify
        self._report, self._request_ms = report, request_ms
        self._queue: deque[Turn[T]] = deque()
        self._turns: dict[int, Turn[T]] = {}
        self._attempts: dict[str, Attempt[T]] = {}
        self._closing: asyncio.Task[None] | None = None
        name = registry.fresh(key)
        self._lane = self.hooks.runner(command_lane.MACHINE, self, name)
        self._runs = self.hooks.runner(embedded_run.MACHINE, self, name)
        self.recovery = Recovery(self)
        self.steering = Steering(self)
        self._last: Turn[T] | None = None

    # ── turns ──

    async def run(self, prompt: object) -> TurnResult[T]:
        """Run a turn, behind those that came before it, and say how it ended.

        A caller that is cancelled is gone: its turn is aborted as by the signal it was begun with. Raises ``LaneCleared`` if the queue was
        cleared before the turn began, and what the registry refuses (``RegistryClosed``, ``AlreadyActive``, ...).
        """
        return await self._run(Turn(self, prompt))

    async def resume(self) -> TurnResult[T]:
        """Run the last turn once more, behind those that wait, where failover left it: it ended without an answer (R-ATT-14).

        ``attempts`` of the result has those of before, too. Raises :class:`NotResumable` if something the turn did may have changed the
        world, if it has its answer, or if none is over; otherwise as :meth:`run`.
        """
        turn = self._last
        if turn is None:
            raise NotResumable(f"{self.key}: no turn is over")
        if turn in self._queue or turn in self._turns.values():
            raise NotResumable(f"{self.key}: the turn goes on already")
        turn.resume()
        return await self._run(turn)

    async def steer(self, text: str, *, prepare: Callable[[str], Awaitable[str]] | None = None) -> SteeredMessage:
        """Steer a message into the present turn; the message says in ``phase`` what became of it (R-REPLY-26, R-REPLY-28).

        ``QUEUED``: its attempt will find it (``Attempt.take_messages``). ``LEFT``: no attempt takes messages, see :meth:`take_left`.
        ``prepare`` makes the text ready (media, speech) and is awaited here; if it raises, or the caller is cancelled in it, the
        message is withdrawn and nobody ever accepts it. A message is no progress (R-ATT-21).
        """
        return await self.steering.steer(text, prepare)

    def take_left(self) -> list[str]:
        """The messages that were left to the next turn, the oldest first, each once: prompt it with them (R-REPLY-26)."""
        return self.steering.take_left()

    async def _run(self, turn: Turn[T]) -> TurnResult[T]:
        self._queue.append(turn)
        self._lane.post(TurnEnqueued())
        try:
            return await asyncio.shield(turn.done)
        except asyncio.CancelledError:
            turn.upstream.fire(UpstreamReason.USER)
            raise

    def clear(self) -> None:
        """Reject every turn that waits."""
        self._lane.post(LaneCleared())

    def abort(self, reason: AbortReason = AbortReason.USER) -> bool:
        """Abort the present turn. False if nothing runs, or it may not be aborted now."""
        holder = self.holder()
        return holder is not None and isinstance(holder.abort(reason), Taken)

    async def recover(self, *, may_abort: bool = True) -> Outcome:
        """Ask for a recovery of whatever is stuck, and say how it ended. ``may_abort``: also of work that looks alive."""
        return await self.recovery.recover(may_abort=may_abort)

    async def aclose(self) -> None:
        """Reject what waits, abort the present turn for a restart, cancel every task and release every timer.

        May be called again, and by several; cancelling a caller cancels its waiting, not the closing.
        """
        if self._closing is None:
            self._closing = asyncio.get_running_loop().create_task(self._close(), name=f"close attempt_runner {self.key}")
        await asyncio.shield(self._closing)

    async def _close(self) -> None:
        self.clear()
        self.abort(AbortReason.RESTART)
        self._runs.post(LifecycleRotated(self.fresh("lifecycle")))
        await self.tasks.aclose()
        for attempt in list(self._attempts.values()):
            await attempt.aclose()
        for runner in (self._lane, self._runs, self.recovery):
            await runner.aclose()

    async def __aenter__(self) -> AttemptRunner[T]:
        return self

    async def __aexit__(self, *exception: object) -> None:
        await self.aclose()

    # ── what its turns ask and tell ──

    def fresh(self, name: str) -> str:
        """An identity that nobody had."""
        return self.registry.fresh(name)

    def turn_over(self, number: int) -> None:
        """The owner of a turn is done: its task leaves the lane."""
        self._last = self._turns.pop(number, self._last)
        self._lane.post(TaskEnded(number))
        if self._lane.state.phase is LanePhase.FREE:
            self.recovery.watch(False)

    def attempt_began(self, attempt: Attempt[T]) -> None:
        """It is the turn's attempt now."""
        self._attempts[attempt.identity] = attempt
        attempt.start()

    # ── what its attempts ask and tell ──

    def attempt_live(self, attempt: Attempt[Any]) -> None:
        """Register its handle."""
        self._runs.post(RegisterRequested(attempt.identity, self._runs.state.generation))

    def attempt_over(self, attempt: Attempt[Any]) -> None:
        """Clear exactly its handle."""
        self._runs.post(ClearRequested(attempt.identity))
        self._attempts.pop(attempt.identity, None)
        self.recovery.run_ended(attempt.identity)

    def attempt_abandoned(self, attempt: Attempt[Any]) -> None:
        """What it still says is not delivered."""
        self._runs.post(AbandonRequested(attempt.identity))

    def attempt_answered(self, attempt: Attempt[Any]) -> None:
        """Deliver its answer, unless it was abandoned."""
        self._runs.post(AnswerOffered(attempt.identity))

    def attempt_progressed(self, attempt: Attempt[Any]) -> None:
        """Only progress makes a session look alive."""
        self.recovery.progressed()

    def attempt_refused(self, attempt: Attempt[Any]) -> None:
        """It refused to be cancelled."""
        self.recovery.refused(attempt.identity)

    def attempt_raised(self, attempt: Attempt[Any], error: Exception) -> bool:
        """Classify what its body raised."""
        return attempt.turn.raised(attempt, error)

    def attempt_reported(self, attempt: Attempt[Any], outcome: ReportOutcome) -> None:
        """What it took of the messages and did not send goes back (R-REPLY-26); then failover decides what follows."""
        self.steering.stopped(attempt.identity)
        self._attempts.pop(attempt.identity, None)
        attempt.turn.reported(attempt, outcome)

    def tools_changed(self, attempt: Attempt[Any]) -> None:
        """The oldest call is another one, or none runs."""
        self.recovery.tools_changed(bool(attempt.calls))

    # ── what its watch reads and does ──

    def run_handle(self) -> str:
        """The handle that is registered."""
        return self._runs.state.handle

    def holder(self) -> Reply | None:
        """The reply that holds the slot."""
        return self.registry.holder(self.key)

    def lane(self) -> tuple[Lane, int, bool]:
        """The lane, its task, and whether turns wait."""
        state = self._lane.state
        lane = Lane.FREE if state.phase is LanePhase.FREE else Lane.STALE if state.stale else Lane.BUSY
        return lane, state.started, state.enqueued > state.started

    def present_turn(self) -> object | None:
        """The turn whose attempt is registered."""
        attempt = self._attempts.get(self._runs.state.handle)
        return None if attempt is None else attempt.turn

    def work(self) -> Work:
        """A tool if any, else a model call if any, else the run itself."""
        attempt = self._attempts.get(self._runs.state.handle)
        if attempt is None:
            return Work.NONE
        if attempt.state.risky_tools + attempt.state.safe_tools:
            return Work.TOOL_CALL
        if attempt.state.model_calls:
            silent = attempt.reply.runner.now_ms - attempt.heard_ms >= self._request_ms
            return Work.MODEL_OVERDUE if silent else Work.MODEL_CALL
        return Work.EMBEDDED_RUN

    def waits(self) -> bool:
        """A declared wait that is not past its deadline."""
        attempt = self._attempts.get(self._runs.state.handle)
        return attempt is not None and attempt.state.wait is Wait.HEALTHY

    def stop_run(self, run: str) -> None:
        """Cancel it as stuck."""
        attempt = self._attempts.get(run)
        if attempt is not None:
            attempt.cancel(CancelReason.STUCK_RECOVERY)

    def clear_run(self, run: str) -> None:
        """Take exactly this handle out."""
        self._runs.post(ForceClearRequested(run))

    def reset_lane(self, task: int) -> None:
        """Forget this task, and start the next turn."""
        self._lane.post(ResetRequested(task))

    def recovered(self, outcome: Outcome, released: bool) -> None:
        """Report it."""
        if self._report is not None:
            self._report(outcome, released)

    # ── effects of the lane ──

    def start_turn(self, effect: StartTurn) -> None:
        """Run the first turn that waits, as the lane's task."""
        turn = self._turns[effect.turn] = self._queue.popleft()
        self.recovery.watch(True)
        self.tasks.start(turn.run(effect.turn), f"turn {effect.turn}", cancelled=turn.done.cancel)

    def forget_task(self, effect: ForgetTask) -> None:
        """It may still run; what it says to the lane is stale."""

    def reject_queued(self, effect: RejectQueued) -> None:
        """Nobody of the queue will run."""
        queue, self._queue = self._queue, deque()
        for turn in queue:
            turn.reject(LaneClearedError(f"{self.key}: the queue was cleared"))

    # ── effects of the registry of runs ──

    def cancel_run(self, effect: CancelRun) -> None:
        """Tell that attempt to stop."""
        attempt = self._attempts.get(effect.handle)
        if attempt is not None:
            attempt.cancel(effect.reason)

    def deliver(self, effect: Deliver) -> None:
        """The one answer of the turn."""
        attempt = self._attempts[effect.handle]
        attempt.reply.commit()
        attempt.turn.delivered(attempt)

    def wake_run_waiters(self, effect: WakeRunWaiters) -> None:
        """Nobody waits here: turns queue in the lane."""

    def answer_no_run(self, effect: AnswerNoRun) -> None:
        """Nobody asks here: turns queue in the lane."""
