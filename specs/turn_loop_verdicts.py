"""What the judge must decide, case by case: every way a step can end, by what it left and what is left of the budgets."""

from __future__ import annotations

from collections.abc import Mapping

from turnproof.machines.kernel import StartTimer, implies, named, not_, one_of
from turnproof.machines.turn_loop_events import (
    AppendContinue,
    DiscardAttempt,
    Finish,
    PublishError,
    PublishIdle,
    PublishStatus,
    ReadHistory,
    StartQueued,
    StepRecorded,
    WarnEmpty,
    WarnIncomplete,
)
from turnproof.machines.turn_loop_judge import now, recorded
from turnproof.machines.turn_loop_words import Cause, Content, Ending, Phase, Status, Wanted
from turnproof.specs.language import Order, Property, Step, emits, on
from turnproof.specs.turn_loop_records import RUN_OVER, STEP_OVER, TOLD, WAITS, Case, case, exactly, no_step_left, queue, then

E = Ending
judging = on(StepRecorded) & (now.phase == Phase.JUDGING) & (recorded.generation == now.generation)
rejected = named("rejected", now.content == Content.REJECTED)
result = named("a result", now.content == Content.RESULT)
plain = named("no result", not_(one_of(now.content, Content.RESULT, Content.REJECTED)))
cut = named("a cut call", one_of(now.content, Content.CUT_CALL, Content.TEXT_AND_CUT_CALL))
words = named("words", one_of(now.content, Content.TEXT, Content.TEXT_AND_CUT_CALL, Content.HOSTED))
nothing = named("nothing to keep", one_of(now.content, Content.NOTHING, Content.REASONING, Content.CUT_CALL))
structured = recorded.wanted == Wanted.STRUCTURED
unknown = named("no known finish", one_of(now.ending, E.UNKNOWN, E.ABSENT))
dead = named("dead", unknown | ((now.ending == E.TOOL_CALLS) & not_(cut)))
empty_stop = (now.ending == E.STOP) & plain & not_(structured) & not_(words) & (recorded.wanted != Wanted.NOTHING)
broken = now.ending == E.RETRYABLE

ANSWERED: Mapping[str, object] = {
    **STEP_OVER, "phase": Phase.DECIDING, "ending": now.ending, "answered": True, "retries": 0, "resamples": 0, "continues": 0,
}  # fmt: skip
NEXT: Mapping[str, object] = {**STEP_OVER, "phase": Phase.DECIDING, "retries": 0, "resamples": 0, "continues": 0}
RETRIED: Mapping[str, object] = {**STEP_OVER, "phase": Phase.RETRY_WAIT, "retries": now.retries + 1}
AGAIN: Mapping[str, object] = {**STEP_OVER, "phase": Phase.RESAMPLE_WAIT, "repeat": True, "resamples": now.resamples + 1}
WAIT = (PublishStatus, StartTimer)


def errs(name: str, ids: str, when: bool, cause: Cause, *before: type) -> Case:
    """The run errs for this cause."""
    return case(name, ids, judging & when, {**RUN_OVER, "phase": Phase.ERRORED, "cause": cause}, *before, *TOLD, maybe=queue)


NO_CHOICE: tuple[Case, ...] = (
    case("a captured output answers", "R-LOOP-1", judging & (now.ending == E.CAPTURED), ANSWERED, PublishStatus, ReadHistory),
    errs("an error that comes again", "R-LOOP-4", now.ending == E.FATAL, Cause.PROVIDER),
    case("a rejection blocks", "R-LOOP-15", judging & rejected & not_(one_of(now.ending, E.CAPTURED, E.FATAL)),
         {**RUN_OVER, "phase": Phase.BLOCKED}, Finish, PublishIdle, maybe={StartQueued: now.prompted}),
    errs("a content filter", "R-LOOP-16", (now.ending == E.CONTENT_FILTER) & not_(rejected), Cause.CONTENT_FILTER),
    errs("a malformed answer", "R-LOOP-16", (now.ending == E.ERROR) & not_(rejected), Cause.PROVIDER),
    case("an overflow is for the history to decide", "R-LOOP-12", judging & (now.ending == E.OVERFLOW) & not_(rejected),
         {**STEP_OVER, "phase": Phase.DECIDING, "ending": E.OVERFLOW}, PublishStatus, ReadHistory),
)  # fmt: skip

RESULTS: tuple[Case, ...] = (
    case("results, then an error", "R-LOOP-28", judging & result & broken & (now.retries < now.retry_limit), RETRIED, *WAIT),
    errs("results, then an error, once too often", "R-LOOP-4", result & broken & (now.retries >= now.retry_limit), Cause.PROVIDER),
    case("results", "R-LOOP-28", judging & result & one_of(now.ending, E.STOP, E.LENGTH, E.TOOL_CALLS, E.UNKNOWN, E.ABSENT), NEXT,
         PublishStatus, ReadHistory, maybe={WarnIncomplete: unknown}),
)  # fmt: skip

REAL_ENDS: tuple[Case, ...] = (
    errs("cut by a limit", "R-LOOP-16", plain & ((now.ending == E.LENGTH) | ((now.ending == E.TOOL_CALLS) & cut)), Cause.LENGTH),
    errs("no structured output", "R-LOOP-16", plain & structured & ((now.ending == E.STOP) | dead), Cause.UNSTRUCTURED),
    case("an answer in words", "R-LOOP-8", judging & (now.ending == E.STOP) & words & not_(structured), ANSWERED,
         PublishStatus, ReadHistory),
    case("no words after results", "R-LOOP-16",
         judging & (now.ending == E.STOP) & plain & not_(words) & (recorded.wanted == Wanted.NOTHING), ANSWERED,
         WarnEmpty, PublishStatus, ReadHistory),
    case("an empty answer", "R-LOOP-16", judging & empty_stop & (now.resamples < now.resample_limit), AGAIN, DiscardAttempt, *WAIT),
    errs("an empty answer once too often", "R-LOOP-16", empty_stop & (now.resamples >= now.resample_limit), Cause.EMPTY),
)  # fmt: skip

ERRORS: tuple[Case, ...] = (
    case("an error before anything", "R-LOOP-4", judging & broken & nothing & (now.retries < now.retry_limit),
         {**RETRIED, "repeat": True}, DiscardAttempt, *WAIT),
    case("an error after something", "R-LOOP-26",
         judging & broken & plain & not_(nothing) & not_(no_step_left) & (now.retries < now.retry_limit), RETRIED, AppendContinue, *WAIT),
    errs("an error once too often", "R-LOOP-4", broken & plain & ((now.retries >= now.retry_limit) | (not_(nothing)
         & no_step_left)),
         Cause.PROVIDER),
)  # fmt: skip

DEAD: tuple[Case, ...] = (
    case("dead before anything", "R-LOOP-4", judging & dead & not_(structured) & nothing
         & (now.resamples < now.resample_limit), AGAIN,
         WarnIncomplete, DiscardAttempt, *WAIT),
    case("dead after something", "R-LOOP-26",
         judging & dead & not_(structured) & plain & not_(nothing) & not_(no_step_left) & (now.continues < now.continue_limit),
         {**STEP_OVER, "phase": Phase.CONTINUE_WAIT, "continues": now.continues + 1}, WarnIncomplete, AppendContinue, *WAIT),
    errs("dead once too often", "R-LOOP-4",
         dead & not_(structured) & plain & ((nothing & (now.resamples >= now.resample_limit))
                                            | (not_(nothing) & ((now.continues >= now.continue_limit) | no_step_left))),
         Cause.INCOMPLETE, WarnIncomplete),
)  # fmt: skip

WORDS: tuple[Property, ...] = (
    *(Step(f"{timer.value} is the timer of its own wait", requirements="R-LOOP-9", holds=
           implies(on(StepRecorded), emits(StartTimer, timer=timer) == ((now.phase == Phase.JUDGING)
           & (then.phase == phase)))) for phase, timer in WAITS.items()),
    Step("a step that is judged shows busy, a wait, or nothing", requirements="R-LOOP-9", holds=
         implies(judging, emits(PublishStatus, status=Status.WAITING) == one_of(then.phase, *WAITS))),
    Order("a step is warned of before anything is done about it", WarnIncomplete, DiscardAttempt, requirements="R-LOOP-23"),
    Order("a warning before going on", WarnIncomplete, AppendContinue, requirements="R-LOOP-23"),
    Order("a warning before the error", WarnIncomplete, PublishError, requirements="R-LOOP-23"),
    Order("a warning before the next status", WarnIncomplete, PublishStatus, requirements="R-LOOP-23"),
    Order("a mark before the next status", WarnEmpty, PublishStatus, requirements="R-LOOP-16"),
    Order("an attempt is discarded before the wait shows", DiscardAttempt, PublishStatus, requirements="R-LOOP-25"),
    Order("the message to go on stands before the wait shows", AppendContinue, PublishStatus, requirements="R-LOOP-26"),
)  # fmt: skip

CASES: tuple[Case, ...] = (*NO_CHOICE, *RESULTS, *REAL_ENDS, *ERRORS, *DEAD)
"""Every case of the judge."""

VERDICTS: tuple[Property, ...] = (
    exactly("an end that leaves no choice", *NO_CHOICE), exactly("a step with results", *RESULTS), exactly("a real end", *REAL_ENDS),
    exactly("an error of the provider", *ERRORS), exactly("a dead stream", *DEAD), *WORDS,
)  # fmt: skip
