"""One attempt of a turn, as its body sees it: the ``embedded_attempt`` machine around a coroutine that calls the model and runs tools."""

from __future__ import annotations

import asyncio
import inspect
import logging
from collections.abc import AsyncGenerator, AsyncIterable, Awaitable, Callable, Coroutine, Iterator
from contextlib import contextmanager
from typing import Any, Generic, Protocol, TypeVar, cast

from turnproof.machines import embedded_attempt_events as events
from turnproof.machines import run_budget
from turnproof.machines.embedded_attempt import DONE, LIVE, MACHINE
from turnproof.machines.embedded_attempt_words import Cause, EmbeddedAttempt
from turnproof.machines.failover_words import How
from turnproof.machines.kernel import Answer, Refused, Taken
from turnproof.machines.reply_operation_words import CancelReason
from turnproof.machines.tool_class import mutation
from turnproof.shell.attempt_runner_call import Call
from turnproof.shell.attempt_runner_steering import SteeredMessage, Steering
from turnproof.shell.attempt_runner_words import AttemptOver, Body, Plan
from turnproof.shell.common import Hooks, Signal, Tasks
from turnproof.shell.reply_registry_reply import Reply

T = TypeVar("T")
V = TypeVar("V")
LOG = logging.getLogger("turnproof.shell")


class Host(Protocol):
    """What an attempt asks of the runner of its turn."""

    hooks: Hooks
    tasks: Tasks
    plan: Plan

    def attempt_live(self, attempt: Attempt[Any]) -> None:
        """Put its handle into the registry of runs."""

    def attempt_over(self, attempt: Attempt[Any]) -> None:
        """Take exactly its handle out."""

    def attempt_abandoned(self, attempt: Attempt[Any]) -> None:
        """What it still says is not delivered."""

    def attempt_answered(self, attempt: Attempt[Any]) -> None:
        """Deliver its answer, unless it was abandoned."""

    def attempt_progressed(self, attempt: Attempt[Any]) -> None:
        """It made semantic progress."""

    def attempt_refused(self, attempt: Attempt[Any]) -> None:
        """It refused to be cancelled."""

    def attempt_raised(self, attempt: Attempt[Any], error: Exception) -> bool:
        """Its body raised; classify the error. Returns whether it came out of the prompt itself."""

    def attempt_reported(self, attempt: Attempt[Any], outcome: events.ReportOutcome) -> None:
        """It is over; decide what follows."""

    def tools_changed(self, attempt: Attempt[Any]) -> None:
        """The oldest call that runs is another one, or none runs."""

    @property
    def steering(self) -> Steering:
        """The messages of its session."""


class Owner(Protocol):
    """The turn an attempt belongs to."""

    def raised(self, attempt: Any, error: Exception) -> bool:
        """Classify an error; whether it came out of the prompt itself."""

    def reported(self, attempt: Any, outcome: events.ReportOutcome) -> None:
        """Decide what follows."""

    def delivered(self, attempt: Any) -> None:
        """Hand its answer on."""


class Attempt(Generic[T]):
    """One attempt. Its body gets this object, and does through it whatever may stall or change the world."""

    def __init__(
        self, host: Host, turn: Owner, reply: Reply, body: Body[T], identity: str, prompt: object, choice: tuple[str, str, How]
    ) -> None:
        self.turn = turn
        self.identity, self.prompt = identity, prompt
        self.model, self.profile, self.how = choice
        self.reply = reply
        """The reply this attempt works for."""
        self.stopped: Signal[Cause] = Signal()
        """Fires when the attempt is stopped, with the cause; its task is cancelled then as well."""
        self.answer: T | None = None
        self.error: Exception | None = None
        self.calls: dict[str, Call] = {}
        """Calls that are not over, the oldest first."""
        self.heard_ms = reply.runner.now_ms
        """When the provider said something last, on the shell's clock."""
        self._host, self._body = host, body
        self._task: asyncio.Task[None] | None = None
        self._runner = host.hooks.runner(MACHINE, _Effects(self), identity)
        self._budget = host.hooks.runner(run_budget.MACHINE, _Budget(self), identity)
        self._forget_signal: Callable[[], None] = lambda: None

    @property
    def state(self) -> EmbeddedAttempt:
        """The machine's state."""
        return self._runner.state

    # ── what a body does ──

    def prompt_as(self, kind: type[V]) -> V:
        """The prompt of the turn, typed. Raises ``TypeError`` if it is no ``kind``."""
        if not isinstance(self.prompt, kind):
            raise TypeError(f"{self.identity}: the prompt is a {type(self.prompt).__name__}, expected a {kind.__name__}")
        return self.prompt

    def take_messages(self) -> list[str]:
        """The messages that were steered into this turn, the oldest first; put them into the next request (R-REPLY-26).

        They count as delivered at the first sign of the provider in the model call that begins next. If the attempt ends before, the
        turn's next attempt gets them again. Empty if nothing waits, or the attempt is over. Ask again before you return the answer:
        what then still waits is left to the next turn.
        """
        return self._host.steering.take(self.identity, self.turn) if self.accepts() else []

    async def model_call(self, call: Awaitable[V]) -> V:
        """Await one whole answer of the model. Raises :class:`AttemptOver` if the attempt is over."""
        carried = self._begin_model_call(call)
        try:
            result = await call
            self._heard(carried)
            return result
        finally:
            self._model_call_ended(carried)

    async def stream(self, parts: AsyncIterable[V]) -> AsyncGenerator[V, None]:
        """Go through the parts of one answer as they come. Close it (``contextlib.aclosing``) if you leave early."""
        carried = self._begin_model_call(parts)
        try:
            async for part in parts:
                self._heard(carried)
                yield part
                self.post(events.ProviderAwaited())
        finally:
            self._model_call_ended(carried)

    def request_active(self) -> None:
        """Bytes came, not yet a part: the provider is not silent."""
        self.post(events.RequestActive())

    async def tool(
        self,
        name: str,
        work: Callable[[], Awaitable[V]],
        *,
        action: str = "",
        marked_safe: bool = False,
        has_text: bool = False,
        sets_model: bool = False,
    ) -> V:
        """Run a tool, once, and return its result.

        What it may do to the world is decided before it begins: by ``marked_safe`` or the plan's list, and by its name and ``action``
        (``tool_class``); what nobody knows counts as changing the world.

        Raises what the tool raises, and :class:`AttemptOver` if the attempt is over: then the tool is not run.
        """
        identity = f"{self.identity}:{name}.{self._runner.steps}"
        call = self.calls[identity] = Call(self, self._host.hooks, self._host.tasks, identity, name, work)
        try:
            what = mutation(name, action, has_text=has_text, sets_model=sets_model)
            return cast(V, await call.run(marked=marked_safe, listed=name in self._host.plan.safe_tools, mutation=what))
        finally:
            if call.over:
                self.calls.pop(identity, None)

    @contextmanager
    def compaction(self) -> Iterator[None]:
        """The conversation is being compacted."""
        self._both(events.CompactionBegan())
        try:
            yield
        finally:
            self._both(events.CompactionEnded())

    @contextmanager
    def waiting(self, until_ms: int = 0) -> Iterator[None]:
        """A person, an approval or the runtime itself is waited for, until ``until_ms`` on the shell's clock (0: 900 s): not stuck."""
        self.post(events.HealthyWaitBegan(until_ms))
        self._budget.post(run_budget.ApprovalBegan())
        try:
            yield
        finally:
            self.post(events.HealthyWaitEnded())
            self._budget.post(run_budget.ApprovalEnded())

    @contextmanager
    def protected(self) -> Iterator[None]:
        """A stretch that a recovery or an abort must not cut."""
        self.post(events.ConsentChanged(False))
        try:
            yield
        finally:
            self.post(events.ConsentChanged(True))

    # ── what a reply does with it: it is a backend with a probe ──

    def cancel(self, reason: CancelReason) -> None:
        """Stop, for that reason."""
        if isinstance(self.post(events.CancelRequested(reason)), Refused):
            self._host.attempt_refused(self)

    def consents(self) -> bool:
        """Whether it may be cut now."""
        return self.state.consents

    def accepts(self) -> bool:
        """Whether it takes messages now (R-REPLY-28)."""
        return self.state.phase is LIVE and not self.stopped.fired

    def steer(self, message: object) -> None:
        """The reply let this message in. No progress (R-ATT-21)."""
        self._host.steering.accepted(message, self.turn)

    # ── for the runner of the turn ──

    def start(self) -> None:
        """Listen to the reply's signal, and begin, unless it has fired."""
        self._forget_signal = self.reply.signal.listen(lambda _: self.post(events.CallerAborted(False)))
        if self.state.phase is not DONE:
            self._task = self._host.tasks.start(self._run(), "attempt")

    def post(self, event: events.Event) -> Answer[EmbeddedAttempt, events.Effect]:
        """Apply an event."""
        return self._runner.post(event)

    def request_tool(self, event: events.ToolRequested) -> bool:
        """Count a call before it runs."""
        return isinstance(self.post(event), Taken)

    def tool_ended(self, call: Call, event: events.ToolEnded) -> None:
        """A call is over; the next one is the oldest."""
        self.calls.pop(call.identity, None)
        if not self._runner.closed:
            self.post(event)
            self._host.tools_changed(self)

    def tool_admitted(self, identity: str) -> None:
        """A call was counted."""
        self.calls[identity].admit()
        self._host.tools_changed(self)

    def stop(self, cause: Cause) -> None:
        """Cancel the body and tell every call to stop. Neither has to obey."""
        for call in list(self.calls.values()):
            call.stop()
        if self._task is not None:
            self._task.cancel()
        self.stopped.fire(cause)

    async def aclose(self) -> None:
        """Release its timers, whatever its body still does."""
        self._forget_signal()
        await self._runner.aclose()
        await self._budget.aclose()

    async def _run(self) -> None:
        try:
            if not isinstance(self.post(events.Prepared(self._host.plan.watch_idle)), Taken) or self.stopped.fired:
                return
            self.answer = await self._body(self)
            self.post(events.AnswerCompleted())
        except asyncio.CancelledError:
            self.post(events.RuntimeAborted())
        except Exception as error:
            self.error, at_prompt = error, False
            try:
                at_prompt = self._host.attempt_raised(self, error)
            finally:
                self.post(events.AttemptFailed(at_prompt))
        finally:
            self.post(events.LoopReturned())

    def _begin_model_call(self, call: object) -> list[SteeredMessage]:
        self.heard_ms = self._runner.now_ms
        if not isinstance(self.post(events.ModelCallStarted()), Taken):
            if inspect.iscoroutine(call):
                cast("Coroutine[Any, Any, Any]", call).close()
            raise AttemptOver(f"{self.identity} calls no model any more: it is over")
        return self._host.steering.request(self.identity)

    def _model_call_ended(self, carried: list[SteeredMessage]) -> None:
        self._host.steering.unsent(carried)
        self.post(events.ModelCallEnded())

    def _heard(self, carried: list[SteeredMessage]) -> None:
        self.heard_ms = self._runner.now_ms
        if isinstance(self.post(events.ProviderEventArrived()), Taken):
            self._host.steering.sent(carried)
        self._budget.post(run_budget.StreamProduced())

    def _both(self, event: events.CompactionBegan | events.CompactionEnded) -> None:
        self.post(event)
        self._budget.post(event)

    def __repr__(self) -> str:
        return f"<attempt {self.identity} on {self.model}, {self.profile}: {self.state.phase.value}>"


class _Budget:
    """Performs the effect of a run's budget."""

    def __init__(self, attempt: Attempt[Any]) -> None:
        self._attempt = attempt

    def spend_budget(self, effect: run_budget.SpendBudget) -> None:
        self._attempt.post(events.RunBudgetSpent())


class _Effects(Generic[T]):
    """Performs the effects of an attempt."""

    def __init__(self, attempt: Attempt[T]) -> None:
        self._attempt = attempt

    def attach_to_reply(self, effect: events.AttachToReply) -> None:
        self._attempt.reply.attach(self._attempt.identity, self._attempt)

    def register_run(self, effect: events.RegisterRun) -> None:
        self._attempt._host.attempt_live(self._attempt)

    def start_budget(self, effect: events.StartBudget) -> None:
        self._attempt._budget.post(run_budget.RunStarted(self._attempt._host.plan.limited))

    def run_tool(self, effect: events.RunTool) -> None:
        self._attempt.tool_admitted(effect.call)

    def deliver_answer(self, effect: events.DeliverAnswer) -> None:
        self._attempt._host.attempt_answered(self._attempt)

    def report_progress(self, effect: events.ReportProgress) -> None:
        self._attempt.reply.record_activity()
        self._attempt._host.attempt_progressed(self._attempt)

    def report_consent(self, effect: events.ReportConsent) -> None:
        self._attempt.reply.report_consent()

    def report_wait(self, effect: events.ReportWait) -> None:
        self._attempt.reply.owned_wait(effect.waits)

    def notify_timed_out(self, effect: events.NotifyTimedOut) -> None:
        LOG.info("%s timed out on %s", self._attempt.identity, self._attempt.model)

    def abort_controller(self, effect: events.AbortController) -> None:
        self._attempt.stop(effect.cause)

    def cancel_compaction(self, effect: events.CancelCompaction) -> None:
        """The body is cancelled, and its compaction with it."""

    def abort_session(self, effect: events.AbortSession) -> None:
        """The body is cancelled, and its session with it."""

    def mark_abandoned(self, effect: events.MarkAbandoned) -> None:
        self._attempt._host.attempt_abandoned(self._attempt)

    def warn_still_streaming(self, effect: events.WarnStillStreaming) -> None:
        LOG.warning("%s was stopped and has not come back; it is no longer waited for", self._attempt.identity)

    def unsubscribe(self, effect: events.Unsubscribe) -> None:
        self._attempt._forget_signal()

    def detach_from_reply(self, effect: events.DetachFromReply) -> None:
        self._attempt.reply.detach(self._attempt.identity)

    def clear_run(self, effect: events.ClearRun) -> None:
        self._attempt._host.attempt_over(self._attempt)

    def drop_prepared(self, effect: events.DropPrepared) -> None:
        self._attempt._forget_signal()

    def stop_budget(self, effect: events.StopBudget) -> None:
        self._attempt._budget.post(run_budget.RunEnded())

    def report_outcome(self, effect: events.ReportOutcome) -> None:
        self._attempt._host.attempt_reported(self._attempt, effect)
