"""What each event of an attempt must record and tell, exactly."""

from __future__ import annotations

from collections.abc import Mapping

from turnproof.machines.attempt_terminal import During, Ending
from turnproof.machines.embedded_attempt import (
    DONE,
    LIVE,
    MACHINE,
    PREPARING,
    SETTLING,
    caller,
    cancel,
    consent,
    ended,
    failed,
    now,
    observed,
    prepared,
    tool,
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
from turnproof.machines.embedded_attempt_words import Cause, Side, Stage, Stall, Timer, ToolOutcome, Wait
from turnproof.machines.kernel import NOBODY, StartTimer, StopTimer, choose, not_, one_of, only_if
from turnproof.machines.reply_operation_words import CancelReason
from turnproof.specs.exactly import NOTHING, Case, Writer
from turnproof.specs.language import Property

write = Writer(MACHINE)
E = Ending
live, settles, prepares = now.phase == LIVE, now.phase == SETTLING, now.phase == PREPARING
no_tool = (now.safe_tools == 0) & (now.risky_tools == 0)
one_tool = ((now.safe_tools == 1) & (now.risky_tools == 0)) | ((now.safe_tools == 0) & (now.risky_tools == 1))
idle_runs = live & now.waiting & now.idle_watched & no_tool
answered = one_of(now.ending, E.OK, E.OBSERVED)

stop_idle = only_if(idle_runs, StopTimer(Timer.IDLE))
back = (
    only_if(now.wait == Wait.HEALTHY, StopTimer(Timer.WAIT)),
    only_if(now.wait == Wait.HEALTHY, ReportWait(False)),
    only_if(not_(now.consents), ReportConsent(True)),
    StopBudget(),
)
QUIET: Mapping[str, object] = {
    "model_calls": 0, "safe_tools": 0, "compacting": False, "waiting": False, "idle_watched": True, "consents": True, "wait": Wait.NONE,
}  # fmt: skip
"""What decides nothing any more."""
OVER: Mapping[str, object] = {
    "phase": DONE, "risky_tools": 0, "effects": choose(now.risky_tools > 0, True, now.effects), "prompt_error": False,
}  # fmt: skip
safe_to_repeat = not_(now.effects) & (now.risky_tools == 0)
last_words = (
    Unsubscribe(),
    DetachFromReply(),
    ClearRun(),
    ReportOutcome(choose(now.prompt_error, Stage.PROMPT, Stage.ASSISTANT), now.ending, now.during, now.stall, safe_to_repeat, ""),
)


def settle(ending: Ending, during: During = During.NONE, *, timeout: bool = False, stall: Stall = Stall.NONE) -> Mapping[str, object]:
    """The fields of an attempt on its way out."""
    return {**QUIET, "phase": SETTLING, "ending": ending, "during": during, "also_aborted": timeout, "stall": stall}


def aborts(event: type, when: bool | None, why: Cause, ending: Ending, *, stall: Stall = Stall.NONE) -> Case:
    """A live attempt is aborted, without a timeout."""
    emit = (AbortController(why), only_if(now.compacting, CancelCompaction()), AbortSession(), stop_idle, *back, StartTimer(Timer.UNWIND))
    return write.case(event, live if when is None else live & when, settle(ending, stall=stall), *emit)


def times_out(event: type, when: bool, ending: Ending, during: During, *, stall: Stall = Stall.NONE, expired: bool = False) -> Case:
    """A live attempt times out. ``expired``: it is its own idle timer that did it, and runs no more."""
    emit = (NotifyTimedOut(), AbortController(Cause.TIMEOUT), only_if(now.compacting, CancelCompaction()), AbortSession(), MarkAbandoned(),
            *(() if expired else (stop_idle,)), *back, StartTimer(Timer.UNWIND))  # fmt: skip
    return write.case(event, live & when, settle(ending, during, timeout=True, stall=stall), *emit)


def never_live(event: type, when: bool | None, why: Cause, ending: Ending, stall: Stall = Stall.NONE) -> Case:
    """It is aborted before it was live."""
    told = ReportOutcome(Stage.PROMPT, ending, During.NONE, stall, True, "")
    changes = {"phase": DONE, "ending": ending, "stall": stall}
    return write.case(event, prepares if when is None else prepares & when, changes, AbortController(why), DropPrepared(), told)


def after_failure(event: type, when: bool | None, why: Cause) -> Case:
    """It had failed, and is aborted before anybody tries again."""
    late = settles & (now.ending == E.FAILED)
    changes = {"ending": E.ABORTED_EXTERNAL}
    return write.case(event, late if when is None else late & when, changes, AbortController(why), AbortSession())


# ── the work ──

PREPARED = (
    write.case(Prepared, prepares, {"phase": LIVE, "idle_watched": prepared.watch_idle}, AttachToReply(), RegisterRun(), StartBudget()),
    write.case(PreparationFailed, prepares, {"phase": DONE, "ending": E.FAILED}, DropPrepared(),
               ReportOutcome(Stage.PROMPT, E.FAILED, During.NONE, Stall.NONE, True, "")),
)  # fmt: skip
asks = (stop_idle, only_if(now.idle_watched & no_tool, StartTimer(Timer.IDLE)))
CALLS = (
    write.case(ModelCallStarted, live, {"model_calls": now.model_calls + 1, "waiting": True}, *asks),
    write.case(ProviderAwaited, live & (now.model_calls > 0), {"waiting": True}, *asks),
    write.case(ProviderEventArrived, live & (now.model_calls > 0), {"waiting": False}, stop_idle, ReportProgress()),
    write.case(RequestActive, idle_runs, NOTHING, StopTimer(Timer.IDLE), StartTimer(Timer.IDLE)),
    write.case(ModelCallEnded, live & (now.model_calls == 1), {"model_calls": 0, "waiting": False}, stop_idle),
    write.case(ModelCallEnded, live & (now.model_calls > 1), {"model_calls": now.model_calls - 1}),
)
known, safe = tool.call != NOBODY, tool.side == Side.SAFE
happened = choose(ended.outcome == ToolOutcome.HAPPENED, True, now.effects)
goes_on = only_if(now.idle_watched & now.waiting & one_tool, StartTimer(Timer.IDLE))
counted = one_of(ended.side, Side.POTENTIAL, Side.UNKNOWN) & (now.risky_tools > 0)
TOOLS = (
    write.case(ToolRequested, live & known & safe, {"safe_tools": now.safe_tools + 1}, stop_idle, RunTool(tool.call), ReportProgress()),
    write.case(ToolRequested, live & known & not_(safe), {"risky_tools": now.risky_tools + 1}, stop_idle, RunTool(tool.call),
               ReportProgress()),
    write.case(ToolEnded, live & (ended.side == Side.SAFE) & (now.safe_tools > 0), {"safe_tools": now.safe_tools - 1}, goes_on,
               ReportProgress()),
    write.case(ToolEnded, live & counted, {"risky_tools": now.risky_tools - 1, "effects": happened}, goes_on, ReportProgress()),
    write.case(ToolEnded, settles & counted, {"risky_tools": now.risky_tools - 1, "effects": happened}),
)  # fmt: skip
WAITS = (
    write.case(CompactionBegan, live & not_(now.compacting), {"compacting": True}, ReportProgress()),
    write.case(CompactionEnded, live & now.compacting, {"compacting": False}, ReportProgress()),
    write.case(HealthyWaitBegan, live & (now.wait == Wait.NONE), {"wait": Wait.HEALTHY}, StartTimer(Timer.WAIT), ReportWait(True)),
    write.case(HealthyWaitEnded, live & (now.wait == Wait.HEALTHY), {"wait": Wait.NONE}, StopTimer(Timer.WAIT), ReportWait(False)),
    write.case(HealthyWaitEnded, live & (now.wait == Wait.OVERDUE), {"wait": Wait.NONE}),
    write.case(WaitExpired, now.wait == Wait.HEALTHY, {"wait": Wait.OVERDUE}, ReportWait(False)),
    write.case(ConsentChanged, live, {"consents": consent.consents}, ReportConsent(consent.consents)),
)

# ── the end ──

ITSELF = (
    write.case(AnswerCompleted, live, {**settle(E.OK), "effects": True}, DeliverAnswer(), stop_idle, *back, StartTimer(Timer.FINISH)),
    write.case(AttemptFailed, live, {**settle(E.FAILED), "prompt_error": failed.at_prompt}, stop_idle, *back, StartTimer(Timer.UNWIND)),
    write.case(AttemptFailed, settles & answered, {"ending": E.FAILED, "prompt_error": failed.at_prompt}, StopTimer(Timer.FINISH),
               StartTimer(Timer.UNWIND)),
    write.case(AttemptFailed, settles & not_(answered), {"prompt_error": now.prompt_error | failed.at_prompt}),
)  # fmt: skip
R = CancelReason
stuck = cancel.reason == R.STUCK_RECOVERY
healthy = not_(now.consents) | (now.wait == Wait.HEALTHY)
may = stuck & not_(healthy)
called = now.model_calls > 0
OTHERS = ((R.USER_ABORT, Cause.USER_ABORT), (R.RESTART, Cause.RESTART), (R.SUPERSEDED, Cause.SUPERSEDED))
CANCELS = (
    times_out(CancelRequested, may & (now.risky_tools > 0), E.TIMEOUT_RUNTIME, During.TOOL_EXECUTION, stall=Stall.TOOL_EXECUTION_TIMEOUT),
    times_out(CancelRequested, may & (now.risky_tools == 0) & now.compacting, E.TIMEOUT_RUNTIME, During.COMPACTION,
              stall=Stall.COMPACTION_TIMEOUT),
    times_out(CancelRequested, may & (now.risky_tools == 0) & not_(now.compacting) & called, E.TIMEOUT_IDLE,
              choose(now.safe_tools > 0, During.TOOL_EXECUTION, During.PROMPT), stall=Stall.MODEL_IDLE_TIMEOUT),
    aborts(CancelRequested, may & (now.risky_tools == 0) & not_(now.compacting) & not_(called), Cause.STUCK_RECOVERY, E.ABORTED_EXTERNAL,
           stall=Stall.EXTERNAL_ABORT),
    never_live(CancelRequested, stuck, Cause.STUCK_RECOVERY, E.ABORTED_EXTERNAL, Stall.EXTERNAL_ABORT),
    *(case for reason, why in OTHERS for case in (
        never_live(CancelRequested, cancel.reason == reason, why, E.ABORTED_EXTERNAL),
        aborts(CancelRequested, cancel.reason == reason, why, E.ABORTED_EXTERNAL),
        after_failure(CancelRequested, cancel.reason == reason, why))),
)  # fmt: skip
some_tool = choose(no_tool, During.PROMPT, During.TOOL_EXECUTION)
then_on = choose(now.compacting, During.COMPACTION, some_tool)
ABORTS = (
    never_live(CallerAborted, None, Cause.CALLER, E.ABORTED_EXTERNAL),
    times_out(CallerAborted, caller.timed_out, E.TIMEOUT_EXTERNAL, then_on),
    aborts(CallerAborted, not_(caller.timed_out), Cause.CALLER, E.ABORTED_EXTERNAL),
    after_failure(CallerAborted, None, Cause.CALLER),
    never_live(RuntimeAborted, None, Cause.RUNTIME, E.ABORTED_RUNTIME),
    aborts(RuntimeAborted, None, Cause.RUNTIME, E.ABORTED_RUNTIME),
    aborts(YieldRequested, None, Cause.YIELD, E.YIELDED),
    times_out(IdleExpired, idle_runs, E.TIMEOUT_IDLE, choose(now.compacting, During.COMPACTION, During.PROMPT), expired=True),
    times_out(RunBudgetSpent, live, E.TIMEOUT_RUN_BUDGET, then_on),
)
seen = choose(observed.compaction, During.COMPACTION, During.TOOL_EXECUTION)
LAST = (
    write.case(TimeoutObserved, settles, {"ending": choose(now.ending == E.OK, E.OBSERVED, now.ending),
               "during": choose(now.during == During.COMPACTION, During.COMPACTION, seen)}),
    write.case(LoopReturned, live, {**QUIET, **OVER}, stop_idle, *back, *last_words),
    write.case(LoopReturned, settles, OVER, only_if(answered, StopTimer(Timer.FINISH)), only_if(not_(answered), StopTimer(Timer.UNWIND)),
               *last_words),
    write.case(UnwindExpired, settles & not_(answered), OVER, WarnStillStreaming(), *last_words),
    write.case(FinishExpired, settles & answered, OVER, WarnStillStreaming(), *last_words),
)  # fmt: skip

EVERY = (*PREPARED, *CALLS, *TOOLS, *WAITS, *ITSELF, *CANCELS, *ABORTS, *LAST)
IDS: Mapping[type, str | tuple[str, ...]] = {
    Prepared: "R-ATT-19", PreparationFailed: "R-ATT-19", ModelCallStarted: ("R-ATT-8", "R-ATT-17"), ModelCallEnded: ("R-ATT-8", "R-ATT-17"),
    ProviderAwaited: "R-ATT-17", ProviderEventArrived: "R-ATT-17", RequestActive: "R-ATT-17", ToolRequested: ("R-ATT-5", "R-ATT-14"),
    ToolEnded: ("R-ATT-5", "R-ATT-17"), CompactionBegan: "R-ATT-6", CompactionEnded: "R-ATT-6", HealthyWaitBegan: "R-ATT-10",
    HealthyWaitEnded: "R-ATT-10", WaitExpired: "R-ATT-10", ConsentChanged: "R-ATT-9", AnswerCompleted: "R-ATT-16",
    AttemptFailed: ("R-ATT-15", "R-ATT-16"), CancelRequested: ("R-ATT-3", "R-ATT-4", "R-ATT-6", "R-ATT-7", "R-ATT-9", "R-ATT-16"),
    CallerAborted: "R-ATT-16", RuntimeAborted: "R-ATT-16", YieldRequested: "R-ATT-16", IdleExpired: "R-ATT-17", RunBudgetSpent: "R-ATT-16",
    TimeoutObserved: "R-ATT-15", LoopReturned: "R-ATT-19", UnwindExpired: "R-ATT-19", FinishExpired: "R-ATT-19",
}  # fmt: skip
REFUSED: Mapping[type, bool] = {
    ToolRequested: not_(live) | not_(known),
    CancelRequested: stuck & (settles | (now.phase == DONE) | (live & healthy)),
}

EXACTLY: tuple[Property, ...] = (
    *(write.answers(event, *(case for case in EVERY if case.event is event), requirements=ids, refuses=REFUSED.get(event))
      for event, ids in IDS.items()),
    write.ordered("a run is aborted before its timers stop, gives back what it used before the next timer starts, and reports last",
                  EVERY, ("R-ATT-16", "R-ATT-19")),
)  # fmt: skip
