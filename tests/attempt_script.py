"""Plays a turn on the clock from a script: the words by which public reports tell what a run, its tools and its users did.

The parts are those of the recovery system, wired as there, with the real watchdog and two messages that may be steered. The script says
what came from outside; what the runtime reads it reads at once, and ticks come only where the script says so. Nothing here decides.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import attrs

from turnproof.checkers.network.timed import TimedSystem
from turnproof.machines import embedded_attempt_events as attempt_words
from turnproof.machines import failover_words, steering_message, tool_execution
from turnproof.machines import reply_operation_words as reply_words
from turnproof.machines import stuck_recovery_watchdog_words as watch_words
from turnproof.machines import stuck_recovery_words as recovery_words
from turnproof.machines.command_lane import StartTurn, TurnEnqueued
from turnproof.machines.embedded_attempt import DONE, LIVE, SETTLING
from turnproof.machines.embedded_attempt_words import EmbeddedAttempt, Timer
from turnproof.machines.failover import READY
from turnproof.machines.kernel import NOBODY, symbol
from turnproof.machines.reply_operation_words import AbortReason, CancelReason, ExpiryReason, FailureCode
from turnproof.machines.steering_message import MACHINE as MESSAGE
from turnproof.machines.stuck_recovery_watchdog_words import WatchPhase, WatchTimer
from turnproof.machines.stuck_recovery_words import RecoveryTimer
from turnproof.machines.tool_execution import PLANNED, Mutation
from turnproof.specs import recovery_system_environment as world
from turnproof.specs.language import AnyMachine
from turnproof.specs.recovery_system_parts import (
    SYSTEM,
    failover,
    first,
    lane,
    ledger,
    owner,
    process,
    recovery,
    reply,
    second,
    situations_read,
    tool_1,
    tool_2,
    waiting,
)
from turnproof.specs.system import Absorbs, Part, System, Unsent, Wire
from turnproof.specs.watched_turn import AT_ONCE
from turnproof.specs.watched_turn_parts import SYSTEM_WATCHED, watchdog

MESSAGES = {name: Part(name, MESSAGE) for name in ("s1", "s2")}
ATTEMPTS: tuple[tuple[str, Part[EmbeddedAttempt], Part[Any]], ...] = (("a", first, tool_1), ("b", second, tool_2))
SIDES = {
    "side": (False, False, Mutation.MUTATING),
    "safe": (True, False, Mutation.NONE),
    "unknown": (False, False, Mutation.UNKNOWN),
}
M = steering_message


def gateway(*, retries: int = 0, models: int = 1) -> System:
    """Everything together. ``retries`` and ``models``: what failover may try."""
    start = symbol(StartTurn)
    watch = [w for w in SYSTEM_WATCHED.wires if "watchdog" in (w.source.name, getattr(getattr(w, "target", None), "name", ""))]
    begins = Wire(lane, start, failover, failover_words.TurnBegan(0, models, retries, False), where=start.turn == 1)
    stops = [Wire(a, attempt_words.AbortController, m, M.AttemptStopped()) for _, a, _ in ATTEMPTS for m in MESSAGES.values()]
    of_messages = (M.AcceptMessage, M.ForgetMessage, M.PutIntoRequest, M.ReturnToHead, M.KeepForNextTurn)
    to_messages = (M.MessageSteered, M.PreparationDone, M.MessageWithdrawn, M.QueueDrained, M.RequestSent, M.TurnOver)
    return attrs.evolve(
        SYSTEM,
        name="gateway",
        parts=(*SYSTEM.parts, watchdog, *MESSAGES.values()),
        wires=(
            *(w for w in SYSTEM.wires if w.effect_class is not StartTurn or getattr(w, "target", None) is not failover),
            begins,
            *watch,
            *stops,
            Wire(second, attempt_words.ReportProgress, watchdog, watch_words.ProgressMade(False)),
            Wire(second, attempt_words.RunTool, watchdog, watch_words.OldestToolBegan()),
        ),
        spontaneous=(
            *(s for s in SYSTEM.spontaneous if s.event_class is not recovery_words.SituationRead),
            *(s for s in SYSTEM_WATCHED.spontaneous if s.to is watchdog),
            *situations_read(waiting & (watchdog.now.age != watch_words.Age.FRESH) & (watchdog.now.age != watch_words.Age.STALE)),
        ),
        absorbed=(
            *SYSTEM.absorbed,
            *(a for a in SYSTEM_WATCHED.absorbed if a.part is watchdog),
            *(Absorbs(m, *of_messages) for m in MESSAGES.values()),
        ),
        unsent=(
            *SYSTEM.unsent,
            *(u for u in SYSTEM_WATCHED.unsent if u.part is watchdog),
            *(Unsent(m, *to_messages) for m in MESSAGES.values()),
        ),
        switches=(*SYSTEM.switches, *(s for s in SYSTEM_WATCHED.switches if s not in SYSTEM.switches)),
    )


class AttemptScript:
    """One run, played word by word. ``refusals`` has every word that the machines refused or ignored."""

    def __init__(self, *, retries: int = 0, models: int = 1, machines: Mapping[str, AnyMachine] | None = None) -> None:
        system = gateway(retries=retries, models=models).with_machines("gateway", **(machines or {}))
        self.play = TimedSystem(system, at_once=AT_ONCE, held=[("watchdog", WatchTimer.TICK)])
        self.current = 0
        self.of_request: dict[str, int] = {}
        self.refusals: list[str] = []

    # ── reading what came of it ──

    @property
    def attempt(self) -> Part[EmbeddedAttempt]:
        """The present attempt."""
        return ATTEMPTS[self.current][1]

    def state(self, part: Part[Any]) -> Any:
        """The present state of a part."""
        return self.play.state(part)

    def decisions(self) -> list[tuple[failover_words.Action, failover_words.Reason]]:
        """Every decision of failover."""
        return [(e.action, e.reason) for e in self.play.effects(failover, failover_words.Decided)]

    def tries(self) -> list[failover_words.How]:
        """How failover went on, in order."""
        return [e.how for e in self.play.effects(failover, failover_words.BeginAttempt)]

    def outcomes(self) -> list[recovery_words.Outcome]:
        """How each recovery ended."""
        return [e.outcome for e in self.play.effects(recovery, recovery_words.ReportRecovery)]

    def diagnoses(self) -> list[watch_words.Diagnosis]:
        """What each tick said."""
        return [e.diagnosis for e in self.play.effects(watchdog, watch_words.Diagnosed)]

    def starts(self) -> list[int]:
        """Turns in the order in which they started."""
        return [e.turn for e in self.play.effects(lane, StartTurn)]

    def happened(self) -> world.Times:
        """How often the side effect of the turn happened."""
        return self.state(ledger).phase  # type: ignore[no-any-return]

    # ── words ──

    def words(self, *words: str) -> AttemptScript:
        """Play the words."""
        for number, word in enumerate(words):
            match = re.fullmatch(r"(\w+)(?:\((.*)\))?", word)
            assert match is not None, word
            name, args = match[1], [a.strip() for a in match[2].split(",")] if match[2] else []
            follows = words[number + 1] if number + 1 < len(words) else ""
            handler: Callable[..., object] = getattr(self, f"do_{name}")
            handler(*args, **({"prepared": follows != "prep"} if name == "steer" else {}))
        return self

    def send(self, part: Part[Any], event: object, word: str = "") -> bool:
        """Whether the event was taken."""
        step = self.play.send(part, event)
        taken = step.deliveries[0].said.value == "taken"
        if word and not taken:
            self.refusals.append(word)
        return taken

    def do_begin(self, *_: str) -> None:
        self.send(lane, TurnEnqueued())

    def do_phase(self, phase: str) -> None:
        assert phase == "running", "the reply of this system runs from its beginning"

    def _begun(self) -> None:
        if not self.state(lane).started:
            self.do_begin()

    def do_a_start(self, number: str) -> None:
        self._begun()
        name, attempt, _ = ATTEMPTS[int(number) - 1]
        if self.send(failover, failover_words.AttemptBegan(name), f"a_start({number})"):
            self.current = int(number) - 1
            self.send(attempt, attempt_words.Prepared(True))

    def do_a_end(self, number: str) -> None:
        self.send(ATTEMPTS[int(number) - 1][1], attempt_words.LoopReturned())

    def do_attach(self) -> None:
        self.do_a_start(str(self.current + 1))

    def do_prep(self) -> None:
        if self.state(self.attempt).phase is not LIVE:
            self._begun()
            self.send(failover, failover_words.AttemptBegan(ATTEMPTS[self.current][0]))

    def do_prep_done(self) -> None:
        for message in MESSAGES.values():
            self.send(message, M.PreparationDone(self.state(self.attempt).phase is LIVE))

    def do_fallback(self) -> None:
        assert self.state(failover).phase is READY

    do_switch = do_retry = do_fallback

    def do_model_start(self, number: str) -> None:
        if self.of_request:
            self.send(watchdog, watch_words.RequestRepeated())
        self.of_request[number] = self.current
        self.send(self.attempt, attempt_words.ModelCallStarted(), f"model_start({number})")

    def do_model_end(self, number: str, final: str = "") -> None:
        attempt = ATTEMPTS[self.of_request[number]][1]
        if final:
            self.send(attempt, attempt_words.AnswerCompleted(), f"model_end({number},final)")
        self.send(attempt, attempt_words.ModelCallEnded())

    def do_model_error(self, number: str) -> None:
        if number in self.of_request:
            self.do_model_end(number)
        else:
            self.send(self.attempt, attempt_words.AttemptFailed(False))
            self.send(failover, failover_words.ErrorClassified(failover_words.Failure.OVERLOADED))

    def do_tool_start(self, name: str, side: str) -> None:
        tool = ATTEMPTS[self.current][2]
        assert self.state(tool).phase is PLANNED, "one call an attempt"
        marked, listed, mutation = SIDES[side]
        self.send(tool, tool_execution.CallAsked(marked, listed, mutation, name))
        self.send(tool, tool_execution.Flushed())
        self.send(tool, tool_execution.Began(), f"tool_start({name},{side})")

    def do_tool_end(self, name: str, sent: str = "") -> None:
        self.send(ATTEMPTS[self.current][2], tool_execution.Finished(False, Mutation.NONE))

    def do_compact_start(self) -> None:
        self.send(self.attempt, attempt_words.CompactionBegan())

    def do_compact_end(self) -> None:
        self.send(self.attempt, attempt_words.CompactionEnded())

    def do_idle_fire(self) -> None:
        if self.play.fire(self.attempt, Timer.IDLE) is None:
            self.send(self.attempt, attempt_words.IdleExpired(), "idle_fire")

    def do_deadline(self) -> None:
        self.send(self.attempt, attempt_words.RunBudgetSpent())

    def do_client_deadline(self) -> None:
        self.send(self.attempt, attempt_words.CallerAborted(True))

    def do_cancel(self, reason: str) -> None:
        self.send(self.attempt, attempt_words.CancelRequested(CancelReason(reason)), f"cancel({reason})")

    def do_decide(self, stage: str, *_: str) -> None:
        if stage == "prompt":
            self.send(self.attempt, attempt_words.AttemptFailed(True))
            self.send(failover, failover_words.ErrorClassified(failover_words.Failure.TIMEOUT))
        if self.state(self.attempt).phase is not DONE:
            self.send(self.attempt, attempt_words.LoopReturned())

    def do_resume(self) -> None:
        if self.state(self.attempt).phase in (LIVE, SETTLING):
            self.send(self.attempt, attempt_words.LoopReturned())
        self.send(failover, failover_words.ResumeRequested(), "resume")

    def do_tick(self) -> None:
        if self.state(watchdog).phase is WatchPhase.OFF:
            self.send(watchdog, watch_words.WatchBegan())
        self.play.fire(watchdog, WatchTimer.TICK)

    def do_progress(self, kind: str) -> None:
        if self.state(watchdog).phase is WatchPhase.OFF:
            self.send(watchdog, watch_words.WatchBegan())
        self.send(watchdog, watch_words.ProgressMade(kind in ("run_completed", "response_done")))

    def do_recover(self, *_: str) -> None:
        self.send(recovery, recovery_words.RecoveryAsked(True, NOBODY, True))

    def do_recover_error(self) -> None:
        self.send(recovery, recovery_words.RoutineThrew())

    def do_drain_ok(self) -> None:
        """Attempt and owner both end."""
        self.send(owner, world.TurnSettled(False))
        self.send(self.attempt, attempt_words.LoopReturned())

    def do_abort_refused(self) -> None:
        """The attempt does not obey: nothing comes of the cancel."""

    def do_drain_timeout(self) -> None:
        self.play.fire(recovery, RecoveryTimer.DRAIN)

    def do_force_clear(self, *_: str) -> None:
        """It follows by itself where the drain ran out."""

    do_lane_reset = do_remote_abort_hang = do_owner_gone = do_force_clear

    def do_advance(self, ms: str) -> None:
        self.play.advance(int(ms))

    def do_enq(self, _: str) -> None:
        self._begun()
        self.send(lane, TurnEnqueued())
        self.send(watchdog, watch_words.MessageArrived())

    def do_steer(self, name: str, *, prepared: bool) -> None:
        self.send(MESSAGES[name], M.MessageSteered(self.state(self.attempt).phase is LIVE, prepared), f"steer({name})")
        self.send(watchdog, watch_words.MessageArrived())

    def do_steer_cancel(self, name: str) -> None:
        self.send(MESSAGES[name], M.MessageWithdrawn(), f"steer_cancel({name})")

    def do_drain(self, name: str) -> None:
        self.send(MESSAGES[name], M.QueueDrained(), f"drain({name})")

    def do_final_drain(self) -> None:
        for message in MESSAGES.values():
            self.send(message, M.QueueDrained())

    do_drain_empty = do_final_drain

    def do_abort(self, who: str) -> None:
        self._begun()
        if who == "up":
            self.send(reply, reply_words.UpstreamAborted(reply_words.UpstreamReason.USER), "abort(up)")
        elif who == "restart":
            self.send(process, world.Restarted())
        else:
            self.send(reply, reply_words.AbortRequested(AbortReason.USER), "abort(user)")

    def do_wait(self, kind: str) -> None:
        events: Mapping[str, tuple[Part[Any], object]] = {
            "human": (self.attempt, attempt_words.HealthyWaitBegan()),
            "capacity": (reply, reply_words.LaneWaitBegan()),
            "maintenance": (reply, reply_words.MaintenanceWaitBegan()),
        }
        self.send(*events[kind])

    def do_wait_end(self) -> None:
        self.send(self.attempt, attempt_words.HealthyWaitEnded())
        self.send(reply, reply_words.LaneWaitEnded())

    def do_freeze(self) -> None:
        self.send(reply, reply_words.OutcomeCommitted())

    def do_complete(self, *_: str) -> None:
        self.send(owner, world.TurnSettled(False))

    do_owner_done = do_complete

    def do_fail(self, *_: str) -> None:
        self.send(reply, reply_words.Failed(FailureCode.RUN_FAILED))

    def do_detach(self, *_: str) -> None:
        self.send(reply, reply_words.BackendDetached(ATTEMPTS[self.current][0]))

    def do_supersede(self, *_: str) -> None:
        self.send(reply, reply_words.SupersedeRequested())

    def do_expire(self, reason: str = "no_activity") -> None:
        self.send(reply, reply_words.ExpiryRequested(ExpiryReason(reason)))

    def do_probe(self, consents: str) -> None:
        """What the abortability probe answers: yes or no."""
        self.send(self.attempt, attempt_words.ConsentChanged(consents == "yes"))
        self.send(reply, reply_words.ConsentReported(consents == "yes"))


def played(words: Iterable[str], *, retries: int = 0, models: int = 1, machines: Mapping[str, AnyMachine] | None = None) -> AttemptScript:
    """A script that played the words; ``machines`` puts other machines in the place of parts, by name."""
    return AttemptScript(retries=retries, models=models, machines=machines).words(*words)


__all__ = ["ATTEMPTS", "MESSAGES", "AttemptScript", "played"]
