"""What must hold of one embedded attempt, for any number of model calls and tools, whatever its environment sends and in whatever order."""

from __future__ import annotations

from typing import Annotated

from attrs import evolve, frozen

from turnproof.machines.attempt_terminal import (
    ABORTED_EXTERNAL,
    ABORTED_RUNTIME,
    EXTERNAL,
    INTERRUPTED,
    OBSERVED,
    OK,
    TIMEOUT_IDLE,
    TIMEOUT_RUN_BUDGET,
    TIMEOUT_RUNTIME,
    TIMEOUTS,
    During,
    Ending,
)
from turnproof.machines.embedded_attempt import DONE, LIVE, MACHINE, PREPARING, SETTLING, caller, cancel, ended, now, observed, tool, wait
from turnproof.machines.embedded_attempt_events import (
    AbortController,
    AbortSession,
    AnswerCompleted,
    CallerAborted,
    CancelRequested,
    ClearRun,
    DeliverAnswer,
    DetachFromReply,
    DropPrepared,
    FinishExpired,
    HealthyWaitBegan,
    IdleExpired,
    MarkAbandoned,
    ModelCallEnded,
    ModelCallStarted,
    NotifyTimedOut,
    ProviderEventArrived,
    ReportConsent,
    ReportOutcome,
    ReportProgress,
    ReportWait,
    RequestActive,
    RunBudgetSpent,
    RuntimeAborted,
    RunTool,
    StopBudget,
    TimeoutObserved,
    ToolEnded,
    ToolRequested,
    Unsubscribe,
    UnwindExpired,
    YieldRequested,
)
from turnproof.machines.embedded_attempt_words import Cause, EmbeddedAttempt, Side, Stage, Stall, Timer, ToolOutcome, Wait
from turnproof.machines.kernel import Counter, StartTimer, StopTimer, implies, named, not_, one_of, symbol
from turnproof.machines.reply_operation_words import CancelReason
from turnproof.specs.embedded_attempt_exactly import EXACTLY
from turnproof.specs.embedded_attempt_requirements import TESTS, requirements
from turnproof.specs.harms import with_harms
from turnproof.specs.language import (
    Always,
    Carries,
    Fair,
    History,
    LeadsTo,
    Property,
    Sometimes,
    Spec,
    Step,
    after,
    at_most,
    count,
    emits,
    on,
    refused,
    refuses,
    taken,
)

then = after(EmbeddedAttempt)

# Written here again on purpose: a slip in the machine's own definitions must not move the properties with it.
stuck = named("a recovery", cancel.reason == CancelReason.STUCK_RECOVERY)
interrupted = named("interrupted", one_of(now.ending, *INTERRUPTED))
recovered = named("a recovery is accepted", on(CancelRequested) & stuck & taken())
side_effecting = named("a side-effecting tool is active", now.risky_tools > 0)
tool_free = named("no tool runs", (now.safe_tools == 0) & (now.risky_tools == 0))
leaves = named("stops being live", (now.phase == LIVE) & (then.phase != LIVE))
ABORTERS = (CancelRequested, CallerAborted, RuntimeAborted, YieldRequested)
TIMED = (IdleExpired, RunBudgetSpent)


# ── history ──


@frozen
class Truth:
    """What really happened, counted from the events alone."""

    calls: Annotated[int, Counter] = 0
    """Requests of the live attempt that live."""
    claims: Annotated[int, Counter] = 0
    """Side-effecting calls that were let run and have not ended."""
    changed: bool = False
    """A side-effecting call ended and may have done what it does."""
    answered: bool = False


@frozen
class Flags:
    """The seven booleans of the older shape, set as the older code set them."""

    aborted: bool = False
    external: bool = False
    timed_out: bool = False
    idle: bool = False
    budget: bool = False
    compaction: bool = False
    tool: bool = False


truth, flags = symbol(Truth), symbol(Flags)
claimed = (ended.side != Side.SAFE) & (truth.claims > 0) & (now.phase != DONE)

TRUTH = History(Truth(), truth, (
    (leaves & on(AnswerCompleted), evolve(truth, calls=0, answered=True)),
    (leaves, evolve(truth, calls=0)),
    (on(ModelCallStarted) & (now.phase == LIVE), evolve(truth, calls=truth.calls + 1)),
    (on(ModelCallEnded) & (truth.calls > 0), evolve(truth, calls=truth.calls - 1)),
    (on(ToolRequested) & (tool.side != Side.SAFE) & taken(), evolve(truth, claims=truth.claims + 1)),
    (on(ToolEnded) & claimed & (ended.outcome == ToolOutcome.HAPPENED), evolve(truth, claims=truth.claims - 1, changed=True)),
    (on(ToolEnded) & claimed, evolve(truth, claims=truth.claims - 1)),
))  # fmt: skip

_timeout = evolve(flags, aborted=True, timed_out=True, compaction=now.compacting,
    tool=not_(now.compacting) & ((now.safe_tools > 0) | (now.risky_tools > 0)))  # fmt: skip
_stuck = evolve(flags, aborted=True, timed_out=True)

FLAGS = History(Flags(), flags, (
    (on(IdleExpired) & taken(), evolve(_timeout, idle=True)),
    (on(RunBudgetSpent) & taken(), evolve(_timeout, budget=True)),
    (on(CallerAborted) & taken() & caller.timed_out & (now.phase == LIVE), evolve(_timeout, external=True)),
    (recovered & (truth.claims > 0), evolve(_stuck, tool=True)),
    (recovered & now.compacting, evolve(_stuck, compaction=True)),
    (recovered & (truth.calls > 0), evolve(_stuck, idle=True, tool=now.safe_tools > 0)),
    (on(CallerAborted, CancelRequested) & taken(), evolve(flags, aborted=True, external=True)),
    (on(RuntimeAborted) & taken(), evolve(flags, aborted=True)),
    (on(TimeoutObserved) & taken() & observed.compaction, evolve(flags, compaction=True)),
    (on(TimeoutObserved) & taken(), evolve(flags, tool=True)),
))  # fmt: skip

REPORTED_ONCE, REPORTS = at_most(1, count(ReportOutcome), "an attempt reports its outcome once", variable="reports",
    requirements="R-ATT-19", harm="the turn is decided twice")  # fmt: skip
ABORTED_ONCE, ABORTS_SO_FAR = at_most(1, count(NotifyTimedOut), "an attempt times out once", variable="timeouts",
    requirements="R-ATT-16", harm="listeners hear of two timeouts of one run")  # fmt: skip
DELIVERED_ONCE, DELIVERIES = at_most(1, count(DeliverAnswer), "an attempt delivers one answer", variable="deliveries",
    requirements="R-ATT-16", harm="the user gets two answers")  # fmt: skip

# ── fairness ──

LOOP_GIVEN_UP = Fair("an armed unwind timer fires", (now.phase == SETTLING) & not_(one_of(now.ending, OK, OBSERVED)),
    on(UnwindExpired) & taken())  # fmt: skip
FINISH_GIVEN_UP = Fair("an armed finish timer fires", (now.phase == SETTLING) & one_of(now.ending, OK, OBSERVED),
    on(FinishExpired) & taken())  # fmt: skip

TOOL_FIRST = "an active side-effecting tool decides the class of a recovery, whatever else is active"
UNKNOWN_SURFACES = "a recovery that finds nothing known is an external abort"
MODEL_NEXT = "a recovery that finds only a model call is a model idle timeout"
COMPACTION_NEXT = "a recovery that finds compaction and no side-effecting tool is a compaction timeout"
IDLE_NEEDS_CALL = "no recovery is a model idle timeout unless a request really lives"
FIRST_WINS = "a second abort has no effect, and changes nothing of the ending"
LATE_DROPPED = "only a live attempt delivers an answer"
SAFE_IS_TRUE = "replay-safe is said only where nothing changed, nothing can still change, and nothing was answered"
NAMED = "a person is told of another tool than the one that may have changed something"
TOOL_TIME = "the idle timer ends no attempt while a tool runs"
COUNTED = "every call that runs was counted as what it is, unknown as side-effecting"
STOPPED_TOOLS = "no tool call begins once the attempt is not live"
TYPED = "an accepted recovery gives a class in the step that ends the attempt"
SHOWN = "the user's abort is given as cause only where the user aborted"

STUCK_PROPERTIES: tuple[Property, ...] = (
    Step(TYPED, requirements=("R-ATT-3", "R-ATT-29"), holds=
         implies(recovered, (then.stall != Stall.NONE) & (now.stall == Stall.NONE) & not_(interrupted))
         & implies(then.stall != now.stall, recovered), harm="failover decides on flags that a listener set before anybody looked"),
    Step(TOOL_FIRST, requirements="R-ATT-4", holds=
         implies(recovered & (truth.claims > 0), (then.stall == Stall.TOOL_EXECUTION_TIMEOUT) & (then.ending == TIMEOUT_RUNTIME)
         & (then.during == During.TOOL_EXECUTION)), harm="the turn is tried again, and the command runs twice"),
    Step(COMPACTION_NEXT, requirements="R-ATT-6", holds=
         implies(recovered & (truth.claims == 0) & now.compacting, (then.stall == Stall.COMPACTION_TIMEOUT)
         & (then.ending == TIMEOUT_RUNTIME) & (then.during == During.COMPACTION))),
    Step(MODEL_NEXT, requirements="R-ATT-6", holds=
         implies(recovered & (truth.claims == 0) & not_(now.compacting) & (truth.calls > 0),
                 (then.stall == Stall.MODEL_IDLE_TIMEOUT) & (then.ending == TIMEOUT_IDLE)),
         harm="a stalled model call surfaces as an abort, and the configured fallback is never asked"),
    Step(UNKNOWN_SURFACES, requirements="R-ATT-7", holds=
         implies(recovered & (truth.claims == 0) & not_(now.compacting) & (truth.calls == 0),
                 (then.stall == Stall.EXTERNAL_ABORT) & (then.ending == ABORTED_EXTERNAL)),
         harm="a run that hangs after its model call is replayed, although nobody knows what it did"),
    Step(IDLE_NEEDS_CALL, implies(then.stall == Stall.MODEL_IDLE_TIMEOUT, (now.stall == then.stall) | (truth.calls > 0)),
        requirements="R-ATT-8", harm="a run that hangs after its model call is replayed"),
    Always("the calls that are counted are the calls that live", implies(now.phase == LIVE, now.model_calls == truth.calls),
        requirements="R-ATT-8"),
    Step("the end of one of two requests leaves the attempt with an active one", requirements="R-ATT-8", holds=
         implies(on(ModelCallEnded) & (now.phase == LIVE) & (truth.calls > 1), then.model_calls > 0)),
    Sometimes("two requests live at once", truth.calls == 2, requirements="R-ATT-8"),
    refuses("an attempt that is over, or must not be cut, refuses recovery", CancelRequested,
            stuck & (one_of(now.phase, SETTLING, DONE) | not_(now.consents)), requirements="R-ATT-9",
            harm="an attempt is killed inside a step that must not be cut, or after its answer"),
    refuses("a healthy wait is not recovered", CancelRequested, stuck & (now.wait == Wait.HEALTHY), requirements="R-ATT-10",
            harm="an approval that takes its time kills the run that asked for it"),
    Sometimes("a wait past its own deadline is recovered", recovered & (now.wait == Wait.OVERDUE), requirements="R-ATT-10"),
    *(Sometimes(f"a recovery finds {stall.value}", recovered & (then.stall == stall), requirements="R-ATT-3")
      for stall in Stall if stall is not Stall.NONE),
)  # fmt: skip

ABORT_PROPERTIES: tuple[Property, ...] = (
    Step(FIRST_WINS, requirements="R-ATT-16", holds=
         implies(on(*ABORTERS, *TIMED) & interrupted, not_(taken())), harm="a stray cancel turns an idle timeout into a person's abort"),
    Step("an interruption is never taken back", requirements="R-ATT-16", holds=implies(interrupted, then.ending == now.ending)),
    ABORTED_ONCE,
    Step("an abort of the run tells controller and session, and a timeout everybody", requirements="R-ATT-16", holds=
         implies(not_(interrupted) & one_of(then.ending, *INTERRUPTED) & (now.phase != PREPARING),
                 (count(AbortController) == 1) & (count(AbortSession) == 1)
                 & (emits(NotifyTimedOut) == one_of(then.ending, *TIMEOUTS)) & (emits(MarkAbandoned) == one_of(then.ending, *TIMEOUTS)))),
    Step(SHOWN, requirements="R-ATT-29", holds=
         implies(emits(AbortController, cause=Cause.USER_ABORT), on(CancelRequested) & (cancel.reason == CancelReason.USER_ABORT)),
         harm="the user is told they aborted what a watchdog stopped"),
    Step("the report carries the class", implies(on(UnwindExpired) & taken(), emits(ReportOutcome, stall=now.stall, ending=now.ending)),
        requirements="R-ATT-29"),
    Step(LATE_DROPPED, implies(emits(DeliverAnswer), (now.phase == LIVE) & not_(interrupted)), requirements="R-ATT-16",
        harm="the fallback answers, and the orphaned attempt answers as well"),
    DELIVERED_ONCE,
    Sometimes("an answer comes too late", on(AnswerCompleted) & interrupted, requirements="R-ATT-16"),
    Sometimes("a failed attempt is aborted before anybody tries again", on(CancelRequested) & taken() & (now.phase == SETTLING),
        requirements="R-ATT-16"),
)  # fmt: skip

TOOL_PROPERTIES: tuple[Property, ...] = (
    Step(COUNTED, requirements="R-ATT-5", holds=
         implies(on(ToolRequested) & taken() & (tool.side != Side.SAFE), (then.risky_tools == now.risky_tools + 1)
         & (then.safe_tools == now.safe_tools)) & implies(emits(RunTool), on(ToolRequested)),
         harm="a command whose class nobody knows is run again"),
    Step("a safe call is counted as safe", requirements="R-ATT-5", holds=
         implies(on(ToolRequested) & taken() & (tool.side == Side.SAFE), (then.safe_tools == now.safe_tools + 1)
         & (then.risky_tools == now.risky_tools) & emits(RunTool, call=tool.call))),
    Step(STOPPED_TOOLS, implies(on(ToolRequested) & (now.phase != LIVE), refused()), requirements="R-ATT-14",
        harm="a tool of an abandoned attempt starts beside the fallback"),
    Always("the calls that are counted are the calls that may still do something", requirements=("R-ATT-5", "R-ATT-14"), holds=
           implies(now.phase != DONE, now.risky_tools == truth.claims)),
    Step(SAFE_IS_TRUE, requirements=("R-ATT-12", "R-ATT-14"), holds=
         implies(emits(ReportOutcome, replay_safe=True), (truth.claims == 0) & not_(truth.changed) & not_(truth.answered)),
         harm="a side effect happens twice"),
    Step("replay-safe is said where it is true", requirements="R-ATT-12", holds=
         implies(emits(ReportOutcome, replay_safe=False), (truth.claims > 0) | truth.changed | truth.answered)),
    *(Carries(f"{what}", EmbeddedAttempt, "tool", expected, when=when, requirements="R-ATT-12", harm=NAMED) for what, expected, when in (
        ("a side-effecting call is remembered by its tool", tool.tool, on(ToolRequested) & (tool.side != Side.SAFE)),
        ("a safe call is not remembered as the last that may have changed something", now.tool, on(ToolRequested)
         & (tool.side == Side.SAFE)),
        ("nothing but a call changes which tool is named", now.tool, not_(on(ToolRequested))))),
    Carries("the report names the last tool that may have changed something", ReportOutcome, "tool", now.tool, requirements="R-ATT-12",
            harm=NAMED),
    Carries("a declared wait lasts as long as it says", StartTimer, "not_before_ms", wait.until_ms, when=on(HealthyWaitBegan),
            matching={"timer": Timer.WAIT}, requirements="R-ATT-10", harm="a person who may answer until tomorrow is cut off today"),
    *(Carries(f"the {timer.value} timer waits for no declared wait", StartTimer, "not_before_ms", 0, matching={"timer": timer},
              requirements="R-ATT-17" if timer is Timer.IDLE else "R-ATT-19") for timer in Timer if timer is not Timer.WAIT),
    Sometimes("a call that never started leaves the attempt replay-safe", requirements="R-ATT-5", holds=
        on(ToolEnded) & taken() & (ended.side == Side.UNKNOWN) & (ended.outcome == ToolOutcome.NEVER_STARTED) & not_(then.effects)),
    Sometimes("an attempt reports while its tool still runs", on(UnwindExpired) & taken() & (now.risky_tools > 0), requirements="R-ATT-12"),
    Step(TOOL_TIME, requirements="R-ATT-17", holds=
         implies(on(IdleExpired) & taken(), (now.safe_tools == 0) & (now.risky_tools == 0) & now.waiting & (truth.calls > 0)
         & now.idle_watched), harm="a long tool counts as a silent provider, and the turn is tried again while it runs"),
    Step("every event of the provider stops the idle timer", requirements="R-ATT-17", holds=
         implies(on(ProviderEventArrived) & taken(), not_(then.waiting) & not_(emits(StartTimer, timer=Timer.IDLE)))),
    Step("activity of the request renews the idle timer", requirements="R-ATT-17", holds=
         implies(on(RequestActive) & taken(), emits(StopTimer, timer=Timer.IDLE) & emits(StartTimer, timer=Timer.IDLE))),
    Step("a model call that starts is no progress", implies(emits(ReportProgress), not_(on(ModelCallStarted)) & (now.phase == LIVE)),
        requirements="R-ATT-21", harm="a provider that fails again and again keeps the run looking alive"),
)  # fmt: skip

END_PROPERTIES: tuple[Property, ...] = (
    Always("each of the seven older booleans is a reading of the one value", requirements="R-ATT-15", holds=
           (flags.aborted == (one_of(now.ending, ABORTED_RUNTIME, ABORTED_EXTERNAL) | now.also_aborted))
           & (flags.external == one_of(now.ending, *EXTERNAL)) & (flags.timed_out == one_of(now.ending, *TIMEOUTS))
           & (flags.idle == (now.ending == TIMEOUT_IDLE)) & (flags.budget == (now.ending == TIMEOUT_RUN_BUDGET))
           & (flags.compaction == (now.during == During.COMPACTION))
           & ((flags.tool & not_(flags.compaction)) == (now.during == During.TOOL_EXECUTION)),
           harm="a policy that reads the older booleans decides otherwise than one that reads the value"),
    Step("a report is the last word, after every step of the clean-up", requirements="R-ATT-19", holds=
         implies((then.phase == DONE) & (now.phase != DONE) & (now.phase != PREPARING),
                 emits(Unsubscribe) & emits(DetachFromReply) & emits(ClearRun) & emits(ReportOutcome))
         & implies(emits(ReportOutcome), (then.phase == DONE) & (now.phase != DONE)),
         harm="a session whose attempt is over still counts as busy"),
    Step("an attempt that ends before it was live drops what was prepared", requirements="R-ATT-19", holds=
         implies((now.phase == PREPARING) & (then.phase == DONE), emits(DropPrepared) & emits(ReportOutcome, stage=Stage.PROMPT)),
         harm="an interrupt during preparation ends in nothing at all"),
    REPORTED_ONCE,
    Step("an attempt that stops being live gives back what the reply knows of it", requirements="R-ATT-19", holds=
         implies(leaves, emits(StopBudget) & implies(not_(now.consents), emits(ReportConsent, consents=True))
                 & implies(now.wait == Wait.HEALTHY, emits(ReportWait, waits=False))),
         harm="the next attempt of the reply can never be aborted"),
    Step("done is for ever", implies(now.phase == DONE, not_(taken())), requirements="R-ATT-19"),
    LeadsTo("an attempt that was stopped, or failed, reports", (now.phase == SETTLING) & not_(one_of(now.ending, OK, OBSERVED)),
        now.phase == DONE, requirements="R-ATT-19", fairness=(LOOP_GIVEN_UP,), harm="a hung abort leaves the turn running for ever"),
    LeadsTo("an attempt with an answer reports", (now.phase == SETTLING) & one_of(now.ending, OK, OBSERVED), now.phase == DONE,
        requirements="R-ATT-19", fairness=(LOOP_GIVEN_UP, FINISH_GIVEN_UP)),
    *(Sometimes(f"an attempt ends {ending.value}", (now.phase == DONE) & (now.ending == ending), requirements="R-ATT-15")
      for ending in Ending),
)  # fmt: skip


def _spec() -> Spec:
    from turnproof.specs.embedded_attempt_history import VARIANTS

    ids = (3, 4, 5, 6, 7, 8, 9, 10, 12, 14, 15, 16, 17, 19, 21, 29)
    return Spec(
        machine=MACHINE,
        requirements=requirements(*(f"R-ATT-{n}" for n in ids)),
        properties=with_harms((*STUCK_PROPERTIES, *ABORT_PROPERTIES, *TOOL_PROPERTIES, *END_PROPERTIES, *EXACTLY)),
        histories=(TRUTH, FLAGS, REPORTS, ABORTS_SO_FAR, DELIVERIES),
        variants=VARIANTS,
        discipline={Timer.IDLE: ("R-ATT-17",), Timer.WAIT: ("R-ATT-10",), Timer.UNWIND: ("R-ATT-19",), Timer.FINISH: ("R-ATT-19",)},
        tests={rid: TESTS[rid] for rid in ("R-ATT-19",)},
        tokens=1,
        counter=2,
    )


SPEC = _spec()
