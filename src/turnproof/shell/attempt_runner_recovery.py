"""The watch over one session and its recoveries: the ``stuck_watchdog`` and ``stuck_recovery`` machines on facts read when they ask."""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from typing import Protocol

from turnproof.machines import reply_operation, stuck_recovery, stuck_recovery_watchdog
from turnproof.machines.kernel import NOBODY, Taken
from turnproof.machines.reply_operation_words import WAITS, ExpiryReason, ExpiryRequested, RecoveryRequested
from turnproof.machines.stuck_recovery_watchdog_words import (
    Diagnosed,
    Examine,
    OldestToolBegan,
    ProgressMade,
    RequestRecovery,
    SessionExamined,
    ToolsOver,
    Warn,
    WatchBegan,
    WatchEnded,
    WatchTimer,
)
from turnproof.machines.stuck_recovery_watchdog_words import Session as SessionRecord
from turnproof.machines.stuck_recovery_watchdog_words import Work as ActiveWork
from turnproof.machines.stuck_recovery_words import (
    CancelRefused,
    CancelStuckRun,
    CheckOwners,
    ExpireReply,
    ForceClearReply,
    ForceClearRun,
    IdleSession,
    Lane,
    Outcome,
    OwnersChecked,
    OwnerSettled,
    ReadSituation,
    RecoverAttempt,
    RecoveryAsked,
    ReportRecovery,
    ResetLane,
    RunEnded,
    SessionMoved,
    SituationRead,
    Stance,
)
from turnproof.shell.attempt_runner_words import LATE_MS, OVERDUE_MS
from turnproof.shell.common import Hooks, Tasks
from turnproof.shell.reply_registry_reply import Reply

LOG = logging.getLogger("turnproof.shell")


class Watched(Protocol):
    """The session, as far as its watch knows it."""

    hooks: Hooks
    tasks: Tasks
    key: str

    def run_handle(self) -> str:
        """The handle that is registered."""

    def holder(self) -> Reply | None:
        """The reply that holds the slot."""

    def lane(self) -> tuple[Lane, int, bool]:
        """The lane, its task, and whether turns wait."""

    def work(self) -> ActiveWork:
        """What is active."""

    def waits(self) -> bool:
        """A declared wait is on, and not past its deadline."""

    def stop_run(self, run: str) -> None:
        """Cancel a run that no reply owns, as stuck."""

    def clear_run(self, run: str) -> None:
        """Take exactly this handle out."""

    def reset_lane(self, task: int) -> None:
        """Forget this task."""

    def fresh(self, name: str) -> str:
        """An identity that nobody had."""

    def recovered(self, outcome: Outcome, released: bool) -> None:
        """A recovery is over."""


class Recovery:
    """Judges a session and recovers it. Decides nothing itself: it reads facts and tells machines."""

    def __init__(self, watched: Watched) -> None:
        self._watched = watched
        self._askers: deque[asyncio.Future[Outcome]] = deque()
        self._progress_ms = self._tick_ms = 0
        name = watched.fresh(watched.key)
        self.routine = watched.hooks.runner(stuck_recovery.MACHINE, self, name)
        self.watchdog = watched.hooks.runner(stuck_recovery_watchdog.MACHINE, self, name)

    # ── what happens to the session ──

    def watch(self, on: bool) -> None:
        """The session has work, or none any more."""
        self._progress_ms = self.watchdog.now_ms
        self.watchdog.post(WatchBegan() if on else WatchEnded())
        self._note_tick()

    def progressed(self) -> None:
        """Semantic progress."""
        self._progress_ms = self.watchdog.now_ms
        self.watchdog.post(ProgressMade(False))

    def tools_changed(self, running: bool) -> None:
        """Another call is the oldest now, or none runs."""
        self.watchdog.post(OldestToolBegan() if running else ToolsOver())

    def run_ended(self, run: str) -> None:
        """That handle left the registry."""
        self.routine.post(RunEnded(run))

    def refused(self, run: str) -> None:
        """That attempt refused its cancel."""
        self.routine.post(CancelRefused(run))

    async def recover(self, *, may_abort: bool) -> Outcome:
        """Ask for a recovery, and wait until it is over. A caller that is cancelled no longer waits; the recovery goes on."""
        asked: asyncio.Future[Outcome] = asyncio.get_running_loop().create_future()
        self._askers.append(asked)
        self._ask(may_abort)
        return await asked

    async def aclose(self) -> None:
        """Release the timers, and whoever waits for a report."""
        await self.routine.aclose()
        await self.watchdog.aclose()
        for asked in self._askers:
            asked.cancel()

    def _ask(self, may_abort: bool) -> None:
        self.routine.post(RecoveryAsked(True, self.routine.state.generation, may_abort))

    def _note_tick(self) -> None:
        self._tick_ms = self.watchdog.due_ms().get(WatchTimer.TICK, 0)

    # ── effects of the watchdog ──

    def examine(self, effect: Examine) -> None:
        """Read the facts."""
        late = self.watchdog.now_ms - self._tick_ms >= LATE_MS
        run, (_, _, queued) = self._watched.run_handle(), self._watched.lane()
        active = run != NOBODY or self._watched.holder() is not None
        record = SessionRecord.PROCESSING if active else SessionRecord.WAITING if queued else SessionRecord.IDLE
        self.watchdog.post(SessionExamined(late, record, queued, self._watched.work(), run != NOBODY, self._watched.waits()))
        self._note_tick()

    def diagnosed(self, effect: Diagnosed) -> None:
        """For the record."""
        LOG.debug("%s: %s", self._watched.key, effect.diagnosis.value)

    def warn(self, effect: Warn) -> None:
        """Write a warning."""
        LOG.warning("%s: %s", self._watched.key, effect.diagnosis.value)

    def request_recovery(self, effect: RequestRecovery) -> None:
        """Nobody waits for its report."""
        self._askers.append(asyncio.get_running_loop().create_future())
        self._ask(effect.may_abort)

    # ── effects of the routine ──

    def read_situation(self, effect: ReadSituation) -> None:
        """Read run, reply and lane, now."""
        run, reply, (lane, task, queued) = self._watched.run_handle(), self._watched.holder(), self._watched.lane()
        overdue = queued and self.routine.now_ms - self._progress_ms >= OVERDUE_MS
        named = NOBODY if reply is None else reply.identity
        self.routine.post(SituationRead(run, named, _stance(run, reply), overdue, lane, task, queued))

    def recover_attempt(self, effect: RecoverAttempt) -> None:
        """The attempt of the reply, which lives on."""
        reply = self._captured(effect.reply)
        if reply is not None and isinstance(reply.recover(), Taken):
            self._watched.tasks.start(self._settles(reply), "wait for the owner")
        else:
            self.refused(effect.run)

    def cancel_stuck_run(self, effect: CancelStuckRun) -> None:
        """A run that no reply owns."""
        self._watched.stop_run(effect.run)

    def expire_reply(self, effect: ExpireReply) -> None:
        """The whole reply."""
        reply = self._captured(effect.reply)
        if reply is not None:
            self._watched.tasks.start(self._settles(reply), "wait for the owner")
            reply.expire(ExpiryReason.STUCK_RECOVERY)

    def force_clear_run(self, effect: ForceClearRun) -> None:
        """Exactly this handle."""
        self._watched.clear_run(effect.run)

    def force_clear_reply(self, effect: ForceClearReply) -> None:
        """Exactly this reply."""
        reply = self._captured(effect.reply)
        if reply is not None:
            reply.force_clear()

    def check_owners(self, effect: CheckOwners) -> None:
        """Read who owns the session, now."""
        reply, (lane, task, queued) = self._watched.holder(), self._watched.lane()
        self.routine.post(OwnersChecked(self._watched.run_handle(), NOBODY if reply is None else reply.identity, lane, task, queued))

    def reset_lane(self, effect: ResetLane) -> None:
        """Exactly this task."""
        self._watched.reset_lane(effect.task)

    def idle_session(self, effect: IdleSession) -> None:
        """The record moves: what was seen before is outdated."""
        self.routine.post(SessionMoved(self._watched.fresh("generation")))

    def report_recovery(self, effect: ReportRecovery) -> None:
        """Whoever asked in the middle of another recovery is told at once; else it is who asked first."""
        asked = self._askers.pop() if effect.outcome is Outcome.SKIPPED_IN_FLIGHT else self._askers.popleft()
        if not asked.done():
            asked.set_result(effect.outcome)
        self._watched.recovered(effect.outcome, effect.released)

    async def _settles(self, reply: Reply) -> None:
        """Whoever owns the reply, in this session or elsewhere: it is known when they are really done."""
        await reply.settled()
        self.routine.post(OwnerSettled(reply.identity))

    def _captured(self, identity: str) -> Reply | None:
        holder = self._watched.holder()
        return holder if holder is not None and holder.identity == identity else None


def _stance(run: str, reply: Reply | None) -> Stance:
    """What the reply would answer, asked of its machine."""
    if reply is None:
        return Stance.ACCEPTS
    if reply.state.owned_wait or reply.state.phase in WAITS:
        return Stance.WAITS
    event = ExpiryRequested(ExpiryReason.STUCK_RECOVERY) if run == NOBODY else RecoveryRequested()
    return Stance.ACCEPTS if isinstance(reply_operation.step(reply.state, event), Taken) else Stance.REFUSES
