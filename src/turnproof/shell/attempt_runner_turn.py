"""One turn of a session: the ``failover`` machine around the attempts of one reply, and the owner of that reply."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Generic, TypeVar

from turnproof.machines import failover
from turnproof.machines.attempt_terminal import OBSERVED, OK, TIMEOUTS
from turnproof.machines.embedded_attempt_events import ReportOutcome
from turnproof.machines.failover_words import (
    Action,
    AttemptBegan,
    AttemptEnded,
    BeginAttempt,
    Decided,
    Effect,
    ErrorClassified,
    Event,
    Failover,
    How,
    LetRun,
    Reason,
    ResumeRequested,
    RetryLimitReached,
    TurnBegan,
)
from turnproof.machines.kernel import Refused
from turnproof.machines.reply_operation_words import FailureCode, Phase, UpstreamReason
from turnproof.shell.attempt_runner_attempt import Attempt
from turnproof.shell.attempt_runner_words import ADMISSION_MS, AttemptReport, NotResumable, TurnResult
from turnproof.shell.common import Signal
from turnproof.shell.reply_registry_reply import Reply
from turnproof.shell.runner import Runner

if TYPE_CHECKING:
    from turnproof.shell.attempt_runner import AttemptRunner

T = TypeVar("T")


class Turn(Generic[T]):
    """One prompt, its reply and its attempts."""

    def __init__(self, session: AttemptRunner[T], prompt: object) -> None:
        self._session, self._prompt = session, prompt
        self._reports: list[AttemptReport] = []
        self._model = self._profile = 0
        self._failover: Runner[Failover, Event, Effect] | None = None
        self._renew()

    def _renew(self) -> None:
        """What a run of the turn begins with; a resumed one keeps its reports, and where failover stands."""
        loop = asyncio.get_running_loop()
        self.done: asyncio.Future[TurnResult[T]] = loop.create_future()
        """How it ended, for whoever asked for it."""
        self.upstream: Signal[UpstreamReason] = Signal()
        """Fires when whoever asked for it has gone."""
        self._over: asyncio.Future[None] = loop.create_future()
        self._answers: list[T] = []
        self._delivery: asyncio.Task[None] | None = None
        self._tried = 0
        self._decision = Decided(Action.SURFACE_ERROR, Reason.NONE)
        self._attempt: Attempt[T] | None = None

    async def run(self, number: int) -> None:
        """Own the reply of this turn, from its admission until it is complete."""
        try:
            session = self._session
            reply = await session.registry.begin_visible(session.key, session.session, timeout_ms=ADMISSION_MS, upstream=self.upstream)
            with reply:
                await self._try(reply)
                if self._delivery is not None:
                    await asyncio.wait((self._delivery,))
                    if self._delivery.exception() is not None:
                        self._answers.clear()
                if not self._answers:
                    stalled = bool(self._reports) and self._reports[-1].outcome.ending in TIMEOUTS
                    reply.fail(FailureCode.RUN_STALLED if stalled else FailureCode.RUN_FAILED)
            if not self.done.done():
                self.done.set_result(self._result(reply))
        except Exception as error:
            self.reject(error)
        finally:
            self._session.turn_over(number)

    def resume(self) -> None:
        """Make ready to run once more. Raises :class:`NotResumable` with what failover says against it (R-ATT-14)."""
        if self._failover is None:
            raise NotResumable("the turn never began")
        answer = failover.step(self._failover.state, ResumeRequested())
        if isinstance(answer, Refused):
            raise NotResumable(answer.why)
        self._renew()

    def reject(self, error: Exception) -> None:
        """It will not run, or cannot."""
        if not self.done.done():
            self.done.set_exception(error)
            self.done.exception()  # seen: whoever asked may have gone

    # ── what its attempts tell ──

    def raised(self, attempt: Attempt[T], error: Exception) -> bool:
        """Classify an error, if the attempt is the turn's."""
        failure, at_prompt = self._session.classify(error)
        if self._failover is not None and self._failover.state.attempt == attempt.identity:
            self._post(ErrorClassified(failure))
        return at_prompt

    def reported(self, attempt: Attempt[T], outcome: ReportOutcome) -> None:
        """Decide what follows the end of an attempt; one that failed as the last that may be tried is decided at that stage."""
        tries = self._session.plan.tries
        self._tried += 1
        if tries is not None and self._tried >= tries and outcome.ending not in (OK, OBSERVED):
            self._post(RetryLimitReached())
        self._reports.append(AttemptReport(attempt.identity, attempt.model, attempt.profile, attempt.how, outcome, attempt.error))
        self._post(AttemptEnded(attempt.identity, outcome.stage, outcome.ending, outcome.during, outcome.replay_safe))

    def delivered(self, attempt: Attempt[T]) -> None:
        """Hand its answer on."""
        answer = attempt.answer
        assert answer is not None
        self._answers.append(answer)
        if self._session.deliver_answer is not None:
            self._delivery = self._session.tasks.start(self._deliver(answer), "delivery")

    async def _deliver(self, answer: T) -> None:
        assert self._session.deliver_answer is not None
        result = self._session.deliver_answer(answer)
        if result is not None:
            await result

    async def _try(self, reply: Reply) -> None:
        """Try what failover says until it says that the turn is over."""
        self._reply = reply
        reply.enter(Phase.RUNNING)
        plan = self._session.plan
        try:
            if self._failover is None:
                self._failover = self._session.hooks.runner(failover.MACHINE, self, reply.identity)
                self._post(TurnBegan(len(plan.profiles) - 1, len(plan.models) - 1, plan.retries, plan.harness_owned))
            else:
                self._post(ResumeRequested())
            await self._over
        finally:
            self._session.steering.turn_over(self)

    def _post(self, event: Event) -> None:
        assert self._failover is not None, "a turn that has an attempt has begun"
        self._failover.post(event)

    def _result(self, reply: Reply) -> TurnResult[T]:
        answer = self._answers[0] if self._answers else None
        undelivered = None if self._delivery is None else self._delivery.exception()
        return TurnResult(answer, self._decision.action, self._decision.reason, reply.state.result, tuple(self._reports), undelivered)

    # ── effects ──

    def begin_attempt(self, effect: BeginAttempt) -> None:
        """Choose model and profile, and ask to begin."""
        self._model += effect.how is How.NEXT_MODEL
        self._profile += effect.how is How.NEXT_PROFILE
        plan, session = self._session.plan, self._session
        choice = (plan.models[self._model], plan.profiles[self._profile], effect.how)
        self._attempt = Attempt(session, self, self._reply, session.body, session.fresh(self._reply.identity), self._prompt, choice)
        self._post(AttemptBegan(self._attempt.identity))

    def let_run(self, effect: LetRun) -> None:
        """It is the turn's attempt now."""
        if self._attempt is not None and self._attempt.identity == effect.attempt:
            self._session.attempt_began(self._attempt)

    def decided(self, effect: Decided) -> None:
        """The newest decision counts."""
        self._decision = effect
        if self._failover is not None and self._failover.state.phase is failover.OVER and not self._over.done():
            self._over.set_result(None)
