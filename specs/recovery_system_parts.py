"""The parts of the recovery system and how they are wired. What must hold of it is in ``recovery_system``."""

from __future__ import annotations

from turnproof.machines import command_lane as lane_words
from turnproof.machines import embedded_attempt_events as attempt_words
from turnproof.machines import embedded_run as run_words
from turnproof.machines import failover_words, tool_execution
from turnproof.machines import reply_operation_words as reply_words
from turnproof.machines import reply_slot as slot_words
from turnproof.machines import stuck_recovery_words as recovery_words
from turnproof.machines.attempt_terminal import FAILED
from turnproof.machines.command_lane import BUSY, FREE
from turnproof.machines.command_lane import MACHINE as LANE
from turnproof.machines.embedded_attempt import LIVE
from turnproof.machines.embedded_attempt import MACHINE as ATTEMPT
from turnproof.machines.embedded_attempt_words import EmbeddedAttempt, ToolOutcome
from turnproof.machines.embedded_run import EMPTY
from turnproof.machines.embedded_run import MACHINE as RUNS
from turnproof.machines.failover import MACHINE as FAILOVER
from turnproof.machines.failover import OVER, READY
from turnproof.machines.kernel import NOBODY, named, not_, symbol
from turnproof.machines.reply_operation import MACHINE as REPLY
from turnproof.machines.reply_operation_words import AbortReason, ExpiryReason, FailureCode, Phase, ReplyOperation, Result, Window
from turnproof.machines.reply_slot import MACHINE as SLOT
from turnproof.machines.reply_slot import TurnKind
from turnproof.machines.stuck_recovery import CHECKING, ENTERED
from turnproof.machines.stuck_recovery import MACHINE as RECOVERY
from turnproof.machines.stuck_recovery_words import Lane, Stance
from turnproof.machines.tool_execution import MACHINE as TOOL
from turnproof.machines.tool_execution import Mutation
from turnproof.specs import recovery_system_environment as world
from turnproof.specs.language import Said
from turnproof.specs.recovery_system_environment import ANSWERS, LEDGER, LISTENER, OWNER, PROCESS, PROVIDER, REENTRY, ListenerPhase
from turnproof.specs.system import Absorbs, AnyPart, Budget, Copy, Part, Spontaneous, Switch, System, Unsent, Wire

A, B = "a", "b"
"""Identities: of the attempts, of their calls, and of the replies of the first and the second turn."""

lane, slot, runs = Part("lane", LANE), Part("slot", SLOT), Part("runs", RUNS)
reply = Part("reply", REPLY, ReplyOperation(phase=Phase.RUNNING))
first, second = Part("first", ATTEMPT), Part("second", ATTEMPT)
tool_1, tool_2 = Part("tool_1", TOOL), Part("tool_2", TOOL)
failover, recovery = Part("failover", FAILOVER), Part("recovery", RECOVERY)
owner, process, reentry = Part("owner", OWNER), Part("process", PROCESS), Part("reentry", REENTRY)
signal_1, signal_2 = Part("signal_1", LISTENER), Part("signal_2", LISTENER)
ledger, answers, provider = Part("ledger", LEDGER), Part("answers", ANSWERS), Part("provider", PROVIDER)

ATTEMPTS = ((A, first, tool_1, signal_1, 1), (B, second, tool_2, signal_2, 2))

PERSON = Switch("a person aborts", "once, at any moment")
RESTARTS = Switch("the process restarts", "once, at any moment")
REENTERS = Switch("a listener aborts again from inside a cancel", "once")
COMPACTS = Switch("the first attempt compacts")
WAITS = Switch("the first attempt waits for a person")
HANGS_ON = Switch("a tool that was stopped goes on", "its signal is ignored, and what it does happens late")

begun = named("the turn has begun", lane.now.started > 0)
over_to_next = named("the next turn has begun", lane.now.started > 1)


# ── what the parts say to each other ──


def _attempt_wires(name: str, attempt: Part[EmbeddedAttempt], tool: AnyPart, signal: AnyPart) -> tuple[Wire, ...]:
    outcome, run_tool = symbol(attempt_words.ReportOutcome), symbol(attempt_words.RunTool)
    waits, ask, end = symbol(attempt_words.ReportWait), symbol(tool_execution.AskToRun), symbol(tool_execution.ReportEnd)
    cancel, cancel_run, let = symbol(reply_words.CancelBackend), symbol(run_words.CancelRun), symbol(failover_words.LetRun)
    stuck = symbol(recovery_words.CancelStuckRun)
    waited = (
        Wire(attempt, waits, reply, reply_words.OwnedWaitBegan(), where=waits.waits),
        Wire(attempt, waits, reply, reply_words.OwnedWaitEnded(), where=not_(waits.waits)),
    )
    return (
        Wire(attempt, attempt_words.AttachToReply, reply, reply_words.BackendAttached(name)),
        Wire(attempt, attempt_words.DetachFromReply, reply, reply_words.BackendDetached(name)),
        *(waited if name == A else ()),
        Wire(attempt, attempt_words.RegisterRun, runs, run_words.RegisterRequested(name, NOBODY)),
        Wire(attempt, attempt_words.ClearRun, runs, run_words.ClearRequested(name)),
        Wire(attempt, attempt_words.ClearRun, recovery, recovery_words.RunEnded(name)),
        Wire(attempt, attempt_words.MarkAbandoned, runs, run_words.AbandonRequested(name)),
        Wire(attempt, attempt_words.DeliverAnswer, runs, run_words.AnswerOffered(name)),
        Wire(attempt, run_tool, tool, tool_execution.CallAdmitted()),
        Wire(attempt, attempt_words.AbortController, tool, tool_execution.StopRequested()),
        Wire(attempt, outcome, failover, failover_words.AttemptEnded(
            name, outcome.stage, outcome.ending, outcome.during, outcome.replay_safe)),
        Wire(tool, ask, attempt, attempt_words.ToolRequested(name, ask.side, ask.tool)),
        Wire(tool, end, attempt, attempt_words.ToolEnded(end.side, end.outcome)),
        Wire(reply, cancel, attempt, attempt_words.CancelRequested(cancel.reason), where=cancel.backend == name),
        Wire(reply, reply_words.AbortSignal, signal, world.Fired()),
        Wire(signal, world.TellAttempt, attempt, attempt_words.CallerAborted(False)),
        Wire(failover, let, signal, world.Started(), where=let.attempt == name),
        Wire(runs, cancel_run, attempt, attempt_words.CancelRequested(cancel_run.reason), where=cancel_run.handle == name),
        Wire(recovery, stuck, attempt, attempt_words.CancelRequested(reply_words.CancelReason.STUCK_RECOVERY), where=stuck.run == name),
        Wire(reentry, world.CancelAgain, attempt, attempt_words.CancelRequested(reply_words.CancelReason.USER_ABORT)),
    )  # fmt: skip


def _wires() -> tuple[Wire, ...]:
    start, cancel = symbol(lane_words.StartTurn), symbol(reply_words.CancelBackend)
    recover, force, reset = symbol(recovery_words.RecoverAttempt), symbol(recovery_words.ForceClearRun), symbol(recovery_words.ResetLane)
    return (
        Wire(lane, start, slot, slot_words.BeginRequested(A, TurnKind.VISIBLE), where=start.turn == 1),
        Wire(lane, start, failover, failover_words.TurnBegan(0, 1, 0, False), where=start.turn == 1),
        Wire(lane, start, slot, slot_words.BeginRequested(B, TurnKind.VISIBLE), where=start.turn == 2),
        *(wire for name, attempt, tool, signal, _ in ATTEMPTS for wire in _attempt_wires(name, attempt, tool, signal)),
        Wire(reply, reply_words.Release, slot, slot_words.ReleaseReported(A, False, False)),
        Wire(reply, reply_words.SettleOwner, recovery, recovery_words.OwnerSettled(A)),
        Wire(reply, cancel, reentry, world.CancelSeen(cancel.reason)),
        Wire(reentry, world.AbortAgain, reply, reply_words.AbortRequested(AbortReason.USER)),
        Wire(runs, run_words.Deliver, reply, reply_words.OutcomeCommitted()),
        Wire(recovery, recover, reply, reply_words.RecoveryRequested()),
        Wire(recovery, recovery_words.ExpireReply, reply, reply_words.ExpiryRequested(ExpiryReason.STUCK_RECOVERY)),
        Wire(recovery, recovery_words.ForceClearReply, reply, reply_words.ForceCleared()),
        Wire(recovery, force, runs, run_words.ForceClearRequested(force.run)),
        Wire(recovery, reset, lane, lane_words.ResetRequested(reset.task)),
        Wire(owner, world.CompleteReply, reply, reply_words.Completed(False)),
        Wire(owner, world.FailReply, reply, reply_words.Failed(FailureCode.RUN_FAILED)),
        Wire(owner, world.EndTask, lane, lane_words.TaskEnded(1)),
        Wire(process, world.AbortForRestart, reply, reply_words.AbortRequested(AbortReason.RESTART)),
        Wire(process, world.RotateRuns, runs, run_words.LifecycleRotated(A)),
    )  # fmt: skip


# ── what may happen at any time ──


def its_turn(name: str) -> bool:
    """The attempt may be the next: the first begins the turn, the second follows it."""
    return begun if name == A else signal_1.now.phase == ListenerPhase.LISTENING


def _attempt_world(name: str, attempt: Part[EmbeddedAttempt], tool: AnyPart, signal: AnyPart) -> tuple[Spontaneous, ...]:
    """What an attempt, its provider and its tool may do."""
    started, live = signal.now.phase == ListenerPhase.LISTENING, attempt.now.phase == LIVE
    return (
        Spontaneous(failover, failover_words.AttemptBegan(name), when=its_turn(name) & (signal.now.phase == ListenerPhase.UNSTARTED)),
        Spontaneous(attempt, attempt_words.Prepared(True), when=started),
        Spontaneous(attempt, attempt_words.ModelCallStarted(), when=live & (attempt.now.model_calls == 0)),
        Spontaneous(attempt, attempt_words.ModelCallEnded(), when=live & (attempt.now.model_calls > 0)),
        Spontaneous(attempt, attempt_words.ProviderEventArrived(), when=live & attempt.now.waiting),
        Spontaneous(attempt, attempt_words.AnswerCompleted(), when=started),
        Spontaneous(attempt, attempt_words.AttemptFailed(False), when=live),
        Spontaneous(attempt, attempt_words.LoopReturned(), when=started),
        Spontaneous(tool, tool_execution.CallAsked(False, False, Mutation.MUTATING), when=live),
        Spontaneous(tool, tool_execution.Flushed()),
        Spontaneous(tool, tool_execution.Began(), when=live),
        Spontaneous(tool, tool_execution.Finished(False, Mutation.NONE)),
    )


def _first_world() -> tuple[Spontaneous, ...]:
    """What only the first attempt does; of the second there is nothing to learn that the first does not show."""
    live = first.now.phase == LIVE
    failed = (first.now.ending == FAILED) & (failover.now.attempt == A) & (failover.now.failure == failover_words.Failure.NONE)
    return (
        Spontaneous(first, attempt_words.AttemptFailed(True), when=live),
        Spontaneous(failover, failover_words.ErrorClassified(failover_words.Failure.OVERLOADED), when=failed),
        Spontaneous(first, attempt_words.CompactionBegan(), when=live, switch=COMPACTS),
        Spontaneous(first, attempt_words.CompactionEnded(), switch=COMPACTS),
        Spontaneous(first, attempt_words.HealthyWaitBegan(), when=live, switch=WAITS),
        Spontaneous(first, attempt_words.HealthyWaitEnded(), switch=WAITS),
        Spontaneous(tool_1, tool_execution.CallAsked(True, False, Mutation.NONE), when=live),
        Spontaneous(tool_1, tool_execution.NeverBegan()),
        Spontaneous(tool_1, tool_execution.Finished(True, Mutation.NONE)),
        Spontaneous(tool_1, tool_execution.Began(), when=first.now.phase != LIVE, switch=HANGS_ON),
    )


def _world() -> tuple[Spontaneous, ...]:
    messages, once, recoveries = Budget("messages", 2), Budget("aborts of a person", 1), Budget("recoveries", 1)
    return (
        Spontaneous(lane, lane_words.TurnEnqueued(), budget=messages),
        *(event for name, attempt, tool, signal, _ in ATTEMPTS for event in _attempt_world(name, attempt, tool, signal)),
        *_first_world(),
        Spontaneous(owner, world.TurnSettled(False), when=failover.now.phase == OVER),
        Spontaneous(owner, world.TurnSettled(True), when=failover.now.phase == READY),
        Spontaneous(owner, world.TaskLeft()),
        Spontaneous(reply, reply_words.AbortRequested(AbortReason.USER), when=begun, switch=PERSON, budget=once),
        Spontaneous(process, world.Restarted(), when=begun, switch=RESTARTS),
        Spontaneous(reentry, world.ListenerArmed(), when=begun, switch=REENTERS),
        *(Spontaneous(recovery, recovery_words.RecoveryAsked(True, NOBODY, may), when=begun, budget=recoveries) for may in (True, False)),
        *situations_read(),
        *_checked(),
    )  # fmt: skip


# ── what the runtime reads, at the moment it reads it ──

a_run = named("a run is registered", runs.now.phase != EMPTY)
a_reply = named("the reply is in its slot", not_(reply.now.released))
waiting = named("turns wait", lane.now.enqueued > lane.now.started)
pending = (reply.now.result == Result.NONE) & not_(reply.now.frozen)
accepts_recovery = named("the reply accepts a recovery of its attempt",
    pending & (reply.now.phase == Phase.RUNNING) & (reply.now.backend != NOBODY) & reply.now.backend_consents
    & (reply.now.backend != reply.now.recovered) & (reply.now.window == Window.CLOSED))  # fmt: skip
accepts_expiry = named("the reply accepts its expiry", pending | (reply.now.result != Result.NONE))
LANES = (
    (Lane.FREE, lane.now.phase == FREE),
    (Lane.BUSY, (lane.now.phase == BUSY) & not_(lane.now.stale)),
    (Lane.STALE, (lane.now.phase == BUSY) & lane.now.stale),
)


def situations_read(overdue: bool = False) -> tuple[Spontaneous, ...]:
    """The situation, as the recovery routine reads it. ``overdue``: turns wait for long; a formula, or no where requests say so anyway."""
    at = recovery.now.phase == ENTERED

    def read(run: str, reply_id: str, stance: Stance, when: bool, *, lane_is: Lane = Lane.BUSY) -> tuple[Spontaneous, ...]:
        here = at & (runs.now.handle == run) & when
        return (Spontaneous(recovery, recovery_words.SituationRead(run, reply_id, stance, overdue, lane_is, 1, waiting), when=here),)

    asleep = reply.now.owned_wait | over_to_next
    situations: list[Spontaneous] = []
    for run in (NOBODY, A, B):
        accepts = accepts_expiry if run == NOBODY else accepts_recovery
        waits = asleep if run != B else over_to_next
        situations += read(run, A, Stance.WAITS, waits)
        situations += read(run, A, Stance.ACCEPTS, a_reply & not_(asleep) & accepts)
        situations += read(run, A, Stance.REFUSES, a_reply & not_(asleep) & not_(accepts))
    for run in (A, B):
        situations += read(run, NOBODY, Stance.ACCEPTS, not_(a_reply) & not_(over_to_next))
    for lane_is, when in LANES:
        situations += read(NOBODY, NOBODY, Stance.ACCEPTS, not_(a_reply) & not_(over_to_next) & when, lane_is=lane_is)
    return tuple(situations)


def _checked() -> tuple[Spontaneous, ...]:
    """Who owns the session, read together with the lane."""
    at = recovery.now.phase == CHECKING
    owned = a_run | a_reply | over_to_next
    return (
        Spontaneous(recovery, recovery_words.OwnersChecked(A, A, Lane.BUSY, 1, waiting), when=at & owned),
        *(
            Spontaneous(recovery, recovery_words.OwnersChecked(NOBODY, NOBODY, lane_is, 1, waiting), when=at & not_(owned) & when)
            for lane_is, when in LANES
        ),
    )


# ── the system ──

ELSEWHERE = "covered by the machine's own specification"


def _unsent() -> tuple[Unsent, ...]:
    w, r, s = attempt_words, reply_words, slot_words
    return (
        *(
            Unsent(attempt, w.PreparationFailed, w.ProviderAwaited, w.RequestActive, w.ConsentChanged, w.YieldRequested, w.RuntimeAborted,
                   w.RunBudgetSpent, w.TimeoutObserved, because=ELSEWHERE)
            for attempt in (first, second)
        ),
        Unsent(second, w.CompactionBegan, w.CompactionEnded, w.HealthyWaitBegan, w.HealthyWaitEnded, w.WaitExpired,
               because="one attempt that does is enough"),
        Unsent(reply, r.ConsentReported, r.PhaseEntered, r.MaintenanceWaitBegan, r.MaintenanceWaitEnded, r.LaneWaitBegan, r.LaneWaitEnded,
        r.ActivityRecorded,
               r.WorkBegan, r.WorkEnded, r.UpstreamAborted, r.SupersedeRequested, r.BarrierSettled, r.RetainFailureRequested,
               r.RetainUntilCompleteRequested, r.Evicted, r.SteerRequested, r.SessionRotationRequested, r.KeyChangeRequested,
               because=ELSEWHERE),
        Unsent(slot, s.BarrierEnded, s.FenceEnded, s.AttemptRequested, s.AttemptEnded, s.TurnQueued, s.OfferDeclined, s.WaitRequested,
               s.WaitAbandoned, because=ELSEWHERE),
        Unsent(runs, run_words.RetryRequested, run_words.RestoreRequested, run_words.RunWaitRequested, run_words.RunWaitAbandoned,
               because=ELSEWHERE),
        Unsent(tool_2, tool_execution.NeverBegan, because="one call that is given back is enough"),
        Unsent(lane, lane_words.LaneCleared, because=ELSEWHERE),
        Unsent(failover, failover_words.RetryLimitReached, failover_words.ProcessDied, failover_words.ResumeRequested, because=ELSEWHERE),
        Unsent(recovery, recovery_words.SessionMoved, recovery_words.CancelRefused, recovery_words.RoutineThrew, because=ELSEWHERE),
    )  # fmt: skip


def _absorbed() -> tuple[Absorbs, ...]:
    w, r, c = attempt_words, reply_words, recovery_words
    return (
        *(
            Absorbs(attempt, w.StartBudget, w.StopBudget, w.NotifyTimedOut, w.CancelCompaction, w.AbortSession, w.WarnStillStreaming,
                    w.Unsubscribe, w.DropPrepared, w.ReportProgress, w.ReportConsent)
            for attempt in (first, second)
        ),
        Absorbs(second, w.ReportWait),
        *(Absorbs(tool, tool_execution.Execute, tool_execution.SignalTool) for tool in (tool_1, tool_2)),
        Absorbs(reply, r.AbortSignal, r.DetachUpstream, r.StampActivity, r.DeliverSteer, r.RotateSession, r.MoveToKey),
        Absorbs(slot, slot_words.Admit, slot_words.WakeWaiters, slot_words.AnswerIdle, slot_words.StartQueuedTurn, slot_words.StartAttempt),
        Absorbs(runs, run_words.WakeRunWaiters, run_words.AnswerNoRun, run_words.CancelRun),
        Absorbs(lane, lane_words.ForgetTask, lane_words.RejectQueued, lane_words.StartTurn),
        Absorbs(failover, failover_words.BeginAttempt, failover_words.Decided),
        Absorbs(recovery, c.ReadSituation, c.CheckOwners, c.IdleSession, c.ReportRecovery, c.CancelStuckRun),
    )  # fmt: skip


def _copies() -> tuple[Copy, ...]:
    ask, end = symbol(tool_execution.AskToRun), symbol(tool_execution.ReportEnd)
    return (
        *(
            copy
            for _, _, tool, _, number in ATTEMPTS
            for copy in (
                Copy(tool, ask, ledger, world.CallDeclared(number, ask.side)),
                Copy(tool, tool_execution.Began, ledger, world.CallBegan(number), said=Said.TAKEN),
            )
        ),
        Copy(tool_1, end, ledger, world.CallDisproved(1), where=end.outcome == ToolOutcome.PROVEN_SAFE),
        Copy(runs, run_words.Deliver, answers, world.AnswerDelivered()),
        Copy(first, attempt_words.ModelCallStarted, provider, world.RequestLives(), said=Said.TAKEN),
        Copy(first, attempt_words.ModelCallEnded, provider, world.RequestOver(), said=Said.TAKEN),
        Copy(first, attempt_words.StopBudget, provider, world.RequestOver()),
    )


def system(name: str = "recovery_system") -> System:
    """The whole system."""
    return System(
        name=name,
        parts=(lane, slot, runs, reply, first, second, tool_1, tool_2, failover, recovery, owner, process, reentry, signal_1, signal_2),
        wires=_wires(),
        spontaneous=_world(),
        monitors=(ledger, answers, provider),
        copies=_copies(),
        absorbed=_absorbed(),
        unsent=_unsent(),
        switches=(PERSON, RESTARTS, REENTERS, COMPACTS, WAITS, HANGS_ON),
    )  # fmt: skip


SYSTEM = system()
