"""One embedded attempt: one prompt run on one provider, model and profile, from its preparation until it has reported how it ended.

What it is. A reply operation runs one attempt after another (retry, profile rotation, fallback model). An attempt calls the model,
runs the tools it asks for, compacts, waits for people; it ends with an answer, with an error, or because somebody or something
stopped it. What an ending means for the turn, another machine decides (``failover``).

Which runtime. OpenClaw's embedded runner (``run/attempt-stream-prepare.ts`` @00d377cc, ``run/attempt-abort.ts`` @04975666,
``runs.ts`` @00286b0b), with the classification of a stuck recovery that openclaw/openclaw#103697 asks for: the typed reason arrives
through the handle, and what is active at that moment decides the class before any flag is set. The shipped rows are variants in the
specification.

The data, flowing through. A prepared attempt registers its handle and attaches to its reply (LIVE). It counts the model calls and
tools that run. The first thing that ends it fixes ``ending`` and ``during``, stops its timers and starts its way out (SETTLING);
whatever comes later may refine that value (``attempt_terminal``) and has no effect of its own. When the loop comes back, or has not
for too long, it cleans up and reports (DONE).

What it promises.
  1. A recovery is classified by what is active: a side-effecting tool, else compaction, else a model call, else nothing known.
  2. Only the first abort has effects; a late answer of an attempt that was stopped is never delivered.
  3. It says ``replay_safe`` only if nothing that may have changed the world ran, or can still run.
  4. It ends: 10 s after it failed or was stopped at the latest, whoever hangs.

Tools. A set of calls has no place in a machine whose every field is finite or a counter. So the attempt counts the calls that run,
one counter for each class (any number, provable by induction), and the identity of a call, with what it may be told and what it may
say only once, is the machine ``tool_execution``, one instance a call. The same holds for model calls, which have no class.

Not modelled: the run's deadline and its graces (``run_budget``), the message queue (``steering_message``), streaming text, the error
itself, and which tool is safe (``tool_class``).

Rule 1: every transition of an attempt is a row of ``ROWS``.
Rule 2: this file knows nothing of clocks, tasks or transports.
"""

from __future__ import annotations

from typing import get_args

from attrs import evolve

from turnproof.machines.attempt_terminal import (
    ABORTED_EXTERNAL,
    ABORTED_RUNTIME,
    FAILED,
    OBSERVED,
    OK,
    TIMEOUT_EXTERNAL,
    TIMEOUT_IDLE,
    TIMEOUT_RUN_BUDGET,
    TIMEOUT_RUNTIME,
    YIELDED,
    During,
    Ending,
    later,
)
from turnproof.machines.embedded_attempt_events import (
    AbortController,
    AbortSession,
    AnswerCompleted,
    AttachToReply,
    AttemptFailed,
    CallerAborted,
    CancelCompaction,
    CancelRequested,
    ClearRun,
    CompactionBegan,
    CompactionEnded,
    ConsentChanged,
    DeliverAnswer,
    DetachFromReply,
    DropPrepared,
    Effect,
    Event,
    FinishExpired,
    HealthyWaitBegan,
    HealthyWaitEnded,
    IdleExpired,
    LoopReturned,
    MarkAbandoned,
    ModelCallEnded,
    ModelCallStarted,
    NotifyTimedOut,
    PreparationFailed,
    Prepared,
    ProviderAwaited,
    ProviderEventArrived,
    RegisterRun,
    ReportConsent,
    ReportOutcome,
    ReportProgress,
    ReportWait,
    RequestActive,
    RunBudgetSpent,
    RuntimeAborted,
    RunTool,
    StartBudget,
    StopBudget,
    TimeoutObserved,
    ToolEnded,
    ToolRequested,
    Unsubscribe,
    UnwindExpired,
    WaitExpired,
    WarnStillStreaming,
    YieldRequested,
)
from turnproof.machines.embedded_attempt_words import Cause, EmbeddedAttempt, Phase, Side, Stage, Stall, Timer, ToolOutcome, Wait
from turnproof.machines.kernel import (
    NOBODY,
    Duration,
    Machine,
    Row,
    StartTimer,
    StopTimer,
    TimerRule,
    choose,
    named,
    not_,
    one_of,
    only_if,
    symbol,
)
from turnproof.machines.reply_operation_words import CancelReason

PREPARING, LIVE, SETTLING, DONE = Phase
R = Row[EmbeddedAttempt, Effect]


# ── timers ──

IDLE_MS = Duration(120_000, "OpenClaw's default LLM idle limit; 60 s for cron, none for a local provider, a provider's own overrides it")
WAIT_MS = Duration(900_000, "own decision: as long as a quiet tool may take, unless the wait names its own deadline")
UNWIND_MS = Duration(10_000, "own decision: where OpenClaw warns 'still streaming'; shorter than the 15 s a recovery waits for the attempt")
FINISH_MS = Duration(195_000, "own decision: the compaction limit (180 s) and 15 s, as the release of an ownerless lane")


# ── symbols ──

now = symbol(EmbeddedAttempt)
prepared, tool, ended, consent = symbol(Prepared), symbol(ToolRequested), symbol(ToolEnded), symbol(ConsentChanged)
failed, caller, cancel, wait = symbol(AttemptFailed), symbol(CallerAborted), symbol(CancelRequested), symbol(HealthyWaitBegan)
observed = symbol(TimeoutObserved)

risky = named("a side-effecting tool runs", now.risky_tools > 0)
some_tool = named("a tool runs", (now.safe_tools > 0) | (now.risky_tools > 0))
idle_armed = named("idle timer armed", now.idle_watched & now.waiting & (now.safe_tools == 0) & (now.risky_tools == 0))
last_tool = named("the last tool", now.safe_tools + now.risky_tools == 1)
finished = named("finished", one_of(now.ending, OK, OBSERVED))
stuck = named("as stuck", cancel.reason == CancelReason.STUCK_RECOVERY)
waits_healthily = named("waits healthily", now.wait == Wait.HEALTHY)

stop_idle = only_if(idle_armed, StopTimer(Timer.IDLE))
rearm_idle = (stop_idle, only_if(now.idle_watched & (now.safe_tools == 0) & (now.risky_tools == 0), StartTimer(Timer.IDLE)))
resume_idle = only_if(now.idle_watched & now.waiting & last_tool, StartTimer(Timer.IDLE))
"""Tool time never counts: the timer begins anew when the last tool is over."""
give_back = (
    only_if(waits_healthily, StopTimer(Timer.WAIT)),
    only_if(waits_healthily, ReportWait(False)),
    only_if(not_(now.consents), ReportConsent(True)),
    StopBudget(),
)
leave_live = (stop_idle, *give_back)
may_compact = only_if(now.compacting, CancelCompaction())
during = choose(now.compacting, During.COMPACTION, choose(some_tool, During.TOOL_EXECUTION, During.PROMPT))
cause = choose(cancel.reason == CancelReason.USER_ABORT, Cause.USER_ABORT,
        choose(cancel.reason == CancelReason.RESTART, Cause.RESTART,
        choose(cancel.reason == CancelReason.SUPERSEDED, Cause.SUPERSEDED, Cause.STUCK_RECOVERY)))  # fmt: skip
effects_after = choose(ended.outcome == ToolOutcome.HAPPENED, True, now.effects)


def settling(ending: Ending, at: During = During.NONE, *, timeout: bool = False, stall: Stall = Stall.NONE) -> EmbeddedAttempt:
    """The state on its way out of LIVE. What no longer decides anything is forgotten; claims of tools that run are not."""
    return evolve(
        now,
        ending=ending,
        during=at,
        also_aborted=timeout,
        stall=stall,
        model_calls=0,
        safe_tools=0,
        compacting=False,
        waiting=False,
        idle_watched=True,
        consents=True,
        wait=Wait.NONE,
    )


def run_abort(
    why: Cause, *, timeout: bool = False, cut: tuple[Effect, ...] = (may_compact,), leave: tuple[Effect, ...] = leave_live
) -> tuple[Effect, ...]:
    """The one abort of a run, in OpenClaw's order. ``cut`` and ``leave`` are shorter where the row's guard says what is not on."""
    notify: tuple[Effect, ...] = (NotifyTimedOut(),) if timeout else ()
    abandon: tuple[Effect, ...] = (MarkAbandoned(),) if timeout else ()
    return (*notify, AbortController(why), *cut, AbortSession(), *abandon, *leave, StartTimer(Timer.UNWIND))


def report(*, stage: Stage | None = None, ending: Ending | None = None, stall: Stall | None = None) -> ReportOutcome:
    """What the outer loop is told; what is not given is read from the state."""
    return ReportOutcome(
        stage=choose(now.prompt_error, Stage.PROMPT, Stage.ASSISTANT) if stage is None else stage,
        ending=now.ending if ending is None else ending,
        during=now.during,
        stall=now.stall if stall is None else stall,
        replay_safe=not_(now.effects) & (now.risky_tools == 0),
        tool=now.tool,
    )


clean_up: tuple[Effect, ...] = (Unsubscribe(), DetachFromReply(), ClearRun(), report())
"""Each is performed even if an earlier one throws: that is the shell's word (R-ATT-19)."""
over = evolve(now, risky_tools=0, effects=choose(risky, True, now.effects), prompt_error=False)


def early(event: object, ending: Ending, why: Cause, name: str, *, when: bool | None = None, stall: Stall = Stall.NONE) -> R:
    """An abort before anything was live: no handle and no backend are there to be cleared, and it ends at once."""
    emit = (AbortController(why), DropPrepared(), report(stage=Stage.PROMPT, ending=ending, stall=stall))
    return R(event, at=PREPARING, when=when, to=DONE, data=evolve(now, ending=ending, stall=stall), emit=emit, name=name)


# ── rows: the first that matches wins ──

ROWS: tuple[R, ...] = (
    # ── preparation ──
    R(prepared, at=PREPARING, to=LIVE, data=evolve(now, idle_watched=prepared.watch_idle),
      emit=(AttachToReply(), RegisterRun(), StartBudget())),
    R(Prepared, ignore="it was stopped before it was ready; what was prepared is cleaned up"),
    R(PreparationFailed, at=PREPARING, to=DONE, data=evolve(now, ending=FAILED),
      emit=(DropPrepared(), report(stage=Stage.PROMPT, ending=FAILED))),
    R(PreparationFailed, ignore="it was stopped before"),

    # ── model calls: a count, and whether the loop waits for one ──
    R(ModelCallStarted, at=LIVE, data=evolve(now, model_calls=now.model_calls + 1, waiting=True), emit=rearm_idle,
      because="Not progress: a provider that fails again and again must not look alive (openclaw/openclaw#119009)."),
    R(ModelCallStarted, ignore="the attempt is not live"),
    R(ProviderAwaited, at=LIVE, when=now.model_calls > 0, data=evolve(now, waiting=True), emit=rearm_idle),
    R(ProviderAwaited, ignore="no model call is active"),
    R(ProviderEventArrived, at=LIVE, when=now.model_calls > 0, data=evolve(now, waiting=False), emit=(stop_idle, ReportProgress())),
    R(ProviderEventArrived, ignore="late: the call or the attempt is over"),
    R(RequestActive, at=LIVE, when=idle_armed, emit=(StopTimer(Timer.IDLE), StartTimer(Timer.IDLE))),
    R(RequestActive, ignore="the idle timer does not run"),
    R(ModelCallEnded, at=LIVE, when=now.model_calls == 1, data=evolve(now, model_calls=0, waiting=False), emit=(stop_idle,),
      name="ModelCallEnded/last"),
    R(ModelCallEnded, at=LIVE, when=now.model_calls > 1, data=evolve(now, model_calls=now.model_calls - 1),
      name="ModelCallEnded/another lives"),
    R(ModelCallEnded, ignore="no such call is active"),

    # ── tools: counted before they run ──
    R(tool, when=tool.call == NOBODY, refuse="a call has an identity", name="ToolRequested/nobody"),
    R(tool, at=LIVE, when=tool.side == Side.SAFE, data=evolve(now, safe_tools=now.safe_tools + 1), name="ToolRequested/safe",
      emit=(stop_idle, RunTool(tool.call), ReportProgress())),
    R(tool, at=LIVE, data=evolve(now, risky_tools=now.risky_tools + 1, tool=tool.tool), name="ToolRequested/side-effecting",
      emit=(stop_idle, RunTool(tool.call), ReportProgress()),
      because="Unknown counts as side-effecting, and the claim is made before anything is flushed: no call runs uncounted (R-ATT-5)."),
    R(ToolRequested, refuse="the attempt is not live: the call is not run"),
    R(ended, at=LIVE, when=(ended.side == Side.SAFE) & (now.safe_tools > 0), data=evolve(now, safe_tools=now.safe_tools - 1),
      emit=(resume_idle, ReportProgress()), name="ToolEnded/safe"),
    R(ended, at=LIVE, when=(ended.side != Side.SAFE) & risky, data=evolve(now, risky_tools=now.risky_tools - 1, effects=effects_after),
      emit=(resume_idle, ReportProgress()), name="ToolEnded/side-effecting"),
    R(ended, at=SETTLING, when=(ended.side != Side.SAFE) & risky, name="ToolEnded/while settling",
      data=evolve(now, risky_tools=now.risky_tools - 1, effects=effects_after)),
    R(ToolEnded, ignore="no such call is counted"),

    # ── compaction, healthy waits, stretches that must not be cut ──
    R(CompactionBegan, at=LIVE, when=not_(now.compacting), data=evolve(now, compacting=True), emit=(ReportProgress(),)),
    R(CompactionBegan, ignore="compaction is on, or the attempt is not live"),
    R(CompactionEnded, at=LIVE, when=now.compacting, data=evolve(now, compacting=False), emit=(ReportProgress(),)),
    R(CompactionEnded, ignore="no compaction is on"),
    R(wait, at=LIVE, when=now.wait == Wait.NONE, data=evolve(now, wait=Wait.HEALTHY),
      emit=(StartTimer(Timer.WAIT, wait.until_ms), ReportWait(True))),
    R(HealthyWaitBegan, ignore="it waits already, or is not live"),
    R(HealthyWaitEnded, at=LIVE, when=waits_healthily, data=evolve(now, wait=Wait.NONE), emit=(StopTimer(Timer.WAIT), ReportWait(False))),
    R(HealthyWaitEnded, at=LIVE, when=now.wait == Wait.OVERDUE, data=evolve(now, wait=Wait.NONE), name="HealthyWaitEnded/overdue"),
    R(HealthyWaitEnded, ignore="no wait is on"),
    R(WaitExpired, when=waits_healthily, data=evolve(now, wait=Wait.OVERDUE), emit=(ReportWait(False),)),
    R(WaitExpired, ignore="the wait is over"),
    R(consent, at=LIVE, data=evolve(now, consents=consent.consents), emit=(ReportConsent(consent.consents),)),
    R(ConsentChanged, ignore="the attempt is not live"),

    # ── it ends by itself ──
    R(AnswerCompleted, at=LIVE, to=SETTLING, data=evolve(settling(OK), effects=True), emit=(DeliverAnswer(), *leave_live,
      StartTimer(Timer.FINISH)),
      because="An answer that is out is an effect: running the turn again would answer twice."),
    R(AnswerCompleted, ignore="a late answer of an attempt that is over is dropped"),
    R(failed, at=LIVE, to=SETTLING, data=evolve(settling(FAILED), prompt_error=failed.at_prompt), emit=(*leave_live,
      StartTimer(Timer.UNWIND))),
    R(failed, at=SETTLING, when=finished, data=evolve(now, ending=FAILED, prompt_error=failed.at_prompt),
      name="AttemptFailed/after the answer",
      emit=(StopTimer(Timer.FINISH), StartTimer(Timer.UNWIND))),
    R(failed, at=SETTLING, data=evolve(now, prompt_error=choose(failed.at_prompt, True, now.prompt_error)), name="AttemptFailed/unwinding",
      because="The error of an interrupted run; it never weakens the interruption."),
    R(AttemptFailed, ignore="the attempt is not live"),

    # ── a stuck recovery: what is active decides, before any flag is set ──
    R(cancel, at=LIVE, when=stuck & not_(now.consents), refuse="it must not be cut now", name="CancelRequested/protected"),
    R(cancel, at=LIVE, when=stuck & waits_healthily, refuse="a healthy wait is not stuck", name="CancelRequested/waits"),
    R(cancel, at=LIVE, when=stuck & risky, to=SETTLING, name="CancelRequested/stuck in a tool",
      data=settling(TIMEOUT_RUNTIME, During.TOOL_EXECUTION, timeout=True, stall=Stall.TOOL_EXECUTION_TIMEOUT),
      emit=run_abort(Cause.TIMEOUT, timeout=True, leave=(StopBudget(),))),
    R(cancel, at=LIVE, when=stuck & now.compacting, to=SETTLING, name="CancelRequested/stuck in compaction",
      data=settling(TIMEOUT_RUNTIME, During.COMPACTION, timeout=True, stall=Stall.COMPACTION_TIMEOUT),
      emit=run_abort(Cause.TIMEOUT, timeout=True, cut=(CancelCompaction(),), leave=(stop_idle, StopBudget()))),
    R(cancel, at=LIVE, when=stuck & (now.model_calls > 0), to=SETTLING, name="CancelRequested/stuck in a model call",
      data=settling(TIMEOUT_IDLE, choose(now.safe_tools > 0, During.TOOL_EXECUTION, During.PROMPT), timeout=True,
                    stall=Stall.MODEL_IDLE_TIMEOUT),
      emit=run_abort(Cause.TIMEOUT, timeout=True, cut=(), leave=(stop_idle, StopBudget())),
      because="Active now, not 'started once': an attempt that hangs after its model call ended is not idle (R-ATT-8)."),
    R(cancel, at=LIVE, when=stuck, to=SETTLING, data=settling(ABORTED_EXTERNAL, stall=Stall.EXTERNAL_ABORT),
      emit=run_abort(Cause.STUCK_RECOVERY, cut=(), leave=(StopBudget(),)), name="CancelRequested/stuck in nothing known"),
    early(cancel, ABORTED_EXTERNAL, Cause.STUCK_RECOVERY, "CancelRequested/stuck in preparation", when=stuck, stall=Stall.EXTERNAL_ABORT),
    R(cancel, when=stuck, refuse="the attempt is over", name="CancelRequested/nothing to recover"),

    # ── other aborts: the first one wins ──
    early(cancel, ABORTED_EXTERNAL, cause, "CancelRequested/in preparation"),
    R(cancel, at=LIVE, to=SETTLING, data=settling(ABORTED_EXTERNAL), emit=run_abort(cause)),
    R(cancel, at=SETTLING, when=now.ending == FAILED, data=evolve(now, ending=ABORTED_EXTERNAL), emit=(AbortController(cause),
      AbortSession()),
      name="CancelRequested/after a failure", because="Otherwise the failure would be retried although somebody stopped the turn."),
    R(CancelRequested, ignore="it is over, or was stopped before"),
    early(CallerAborted, ABORTED_EXTERNAL, Cause.CALLER, "CallerAborted/in preparation"),
    R(caller, at=LIVE, when=caller.timed_out, to=SETTLING, data=settling(TIMEOUT_EXTERNAL, during, timeout=True),
      emit=run_abort(Cause.TIMEOUT, timeout=True), name="CallerAborted/timed out"),
    R(caller, at=LIVE, to=SETTLING, data=settling(ABORTED_EXTERNAL), emit=run_abort(Cause.CALLER)),
    R(CallerAborted, at=SETTLING, when=now.ending == FAILED, data=evolve(now, ending=ABORTED_EXTERNAL),
      emit=(AbortController(Cause.CALLER), AbortSession()), name="CallerAborted/after a failure"),
    R(CallerAborted, ignore="it is over, or was stopped before"),
    early(RuntimeAborted, ABORTED_RUNTIME, Cause.RUNTIME, "RuntimeAborted/in preparation"),
    R(RuntimeAborted, at=LIVE, to=SETTLING, data=settling(ABORTED_RUNTIME), emit=run_abort(Cause.RUNTIME)),
    R(RuntimeAborted, ignore="it is over, or was stopped before"),
    R(YieldRequested, at=LIVE, to=SETTLING, data=settling(YIELDED), emit=run_abort(Cause.YIELD)),
    R(YieldRequested, ignore="nothing runs that could yield"),

    # ── timeouts of its own ──
    R(IdleExpired, at=LIVE, when=idle_armed, to=SETTLING, emit=run_abort(Cause.TIMEOUT, timeout=True, leave=give_back),
      data=settling(TIMEOUT_IDLE, choose(now.compacting, During.COMPACTION, During.PROMPT), timeout=True)),
    R(IdleExpired, ignore="something arrived in time, a tool runs, or the attempt is over"),
    R(RunBudgetSpent, at=LIVE, to=SETTLING, data=settling(TIMEOUT_RUN_BUDGET, during, timeout=True),
      emit=run_abort(Cause.TIMEOUT, timeout=True)),
    R(RunBudgetSpent, ignore="the attempt is over"),

    # ── the way out ──
    R(observed, at=SETTLING, data=evolve(now, ending=choose(now.ending == OK, OBSERVED, now.ending),
      during=later(now.during, choose(observed.compaction, During.COMPACTION, During.TOOL_EXECUTION))),
      because="An observation alone interrupts nothing; it refines the phase of a timeout."),
    R(TimeoutObserved, ignore="nothing settles"),
    R(LoopReturned, at=LIVE, to=DONE, data=evolve(over, safe_tools=0, model_calls=0, compacting=False, waiting=False, idle_watched=True,
      consents=True, wait=Wait.NONE), emit=(*leave_live, *clean_up), name="LoopReturned/without an answer"),
    R(LoopReturned, at=SETTLING, to=DONE, data=over,
      emit=(only_if(finished, StopTimer(Timer.FINISH)), only_if(not_(finished), StopTimer(Timer.UNWIND)), *clean_up)),
    R(LoopReturned, ignore="it is over"),
    R(UnwindExpired, at=SETTLING, when=not_(finished), to=DONE, data=over, emit=(WarnStillStreaming(), *clean_up)),
    R(UnwindExpired, ignore="the loop came back in time"),
    R(FinishExpired, at=SETTLING, when=finished, to=DONE, data=over, emit=(WarnStillStreaming(), *clean_up)),
    R(FinishExpired, ignore="the loop came back in time"),
)  # fmt: skip


# ── the machine ──

MACHINE: Machine[EmbeddedAttempt, Event, Effect] = Machine(
    name="embedded_attempt",
    initial=EmbeddedAttempt(),
    now=now,
    events=get_args(Event),
    effects=get_args(Effect),
    rows=ROWS,
    timers=(
        TimerRule(Timer.IDLE, (now.phase == LIVE) & idle_armed, IdleExpired, IDLE_MS),
        TimerRule(Timer.WAIT, waits_healthily, WaitExpired, WAIT_MS),
        TimerRule(Timer.UNWIND, (now.phase == SETTLING) & not_(finished), UnwindExpired, UNWIND_MS),
        TimerRule(Timer.FINISH, (now.phase == SETTLING) & finished, FinishExpired, FINISH_MS),
    ),
    released=now.phase == DONE,
)
step = MACHINE.step
