"""What the stream, calls, joins and waits of a turn loop must record and tell, exactly, and in which order. See ``turn_loop_records``."""

from __future__ import annotations

from collections.abc import Mapping

from turnproof.machines.finish_reason import FinishReason
from turnproof.machines.kernel import StartTimer, StopTimer, all_of, any_of, choose, implies, named, not_, one_of
from turnproof.machines.turn_loop_events import (
    AbortCalls,
    AbortCompaction,
    AbortStream,
    AbortSubtask,
    BuildRequest,
    CallBegan,
    CallCompleted,
    CallEnded,
    Cancelled,
    CompactionEnded,
    ContinueDue,
    DropHeldCalls,
    Finish,
    GraceExpired,
    HistoryLoaded,
    HostedCallSeen,
    KeepMessage,
    MarkOrphans,
    OutputCaptured,
    PreparationFailed,
    Prepared,
    PublishError,
    PublishIdle,
    PublishStatus,
    ReadHistory,
    ReasoningArrived,
    RecordStep,
    ResampleDue,
    RetryDue,
    RunHeldCalls,
    RunTool,
    Sample,
    StartQueued,
    StepFinished,
    StepRecorded,
    StreamBroke,
    StreamEnded,
    SubtaskEnded,
    TextArrived,
)
from turnproof.machines.turn_loop_judge import (
    began,
    broke,
    captured,
    closed,
    compacted,
    completed,
    ended,
    finished,
    hosted,
    now,
    reasoning,
    subtask,
    text,
)
from turnproof.machines.turn_loop_words import (
    CallResult,
    Cause,
    CompactionResult,
    Content,
    Ending,
    Failure,
    Phase,
    Request,
    Status,
    Timer,
)
from turnproof.specs.language import Order, Property, Step, count, emits, ignored, on, refused, taken
from turnproof.specs.turn_loop_records import (
    CANCELS,
    HISTORY,
    MESSAGES,
    RAN,
    REQUESTS,
    RUN_OVER,
    TOLD,
    Case,
    calls_run,
    case,
    exactly,
    held,
    present,
    queue,
)

alone = named("nothing else is joined", (now.ending == Ending.OPEN) & (now.open_calls == 0))


# ── the stream ──

ENDINGS = {
    FinishReason.STOP: Ending.STOP, FinishReason.LENGTH: Ending.LENGTH, FinishReason.TOOL_CALLS: Ending.TOOL_CALLS,
    FinishReason.CONTENT_FILTER: Ending.CONTENT_FILTER, FinishReason.ERROR: Ending.ERROR, FinishReason.UNKNOWN: Ending.UNKNOWN,
}  # fmt: skip
FAILURES = {Failure.RETRYABLE: Ending.RETRYABLE, Failure.FATAL: Ending.FATAL, Failure.OVERFLOW: Ending.OVERFLOW}
healthy = one_of(finished.reason, FinishReason.STOP, FinishReason.TOOL_CALLS)
holds_back = named("it is held back", (completed.held | held) & not_(one_of(now.content, *RAN))
                   & not_(one_of(now.ending, Ending.STOP, Ending.TOOL_CALLS)))  # fmt: skip
absent = choose(now.ending == Ending.OPEN, Ending.ABSENT, now.ending)
drops: Mapping[type, bool] = {DropHeldCalls: now.content == Content.HELD}
nothing_yet = one_of(now.content, Content.NOTHING, Content.REASONING)

CONTENT: tuple[Case, ...] = (
    case("reasoning counts for itself alone", "R-LOOP-26", present(ReasoningArrived, Phase.STREAMING, reasoning.generation),
         {"content": choose(now.content == Content.NOTHING, Content.REASONING, now.content)}),
    case("text is kept, with a cut call beside it", "R-LOOP-26", present(TextArrived, Phase.STREAMING, text.generation),
         {"content": choose(nothing_yet, Content.TEXT, choose(now.content == Content.CUT_CALL, Content.TEXT_AND_CUT_CALL, now.content))}),
    case("a call that began is cut until it is complete", "R-LOOP-5", present(CallBegan, Phase.STREAMING, began.generation),
         {"content": choose(nothing_yet, Content.CUT_CALL, choose(now.content == Content.TEXT, Content.TEXT_AND_CUT_CALL, now.content))}),
    case("a hosted call outweighs words", "R-LOOP-5", present(HostedCallSeen, Phase.STREAMING, hosted.generation),
         {"content": choose(one_of(now.content, Content.HELD, *RAN), now.content, Content.HOSTED)}),
    case("a call is held back until the finish part", "R-LOOP-5",
         present(CallCompleted, Phase.STREAMING, completed.generation, holds_back),
         {"content": Content.HELD, "open_calls": now.open_calls + 1}),
    case("any other complete call is run", "R-LOOP-5", present(CallCompleted, Phase.STREAMING, completed.generation, not_(holds_back)),
         {"content": choose(one_of(now.content, *RAN), now.content, Content.DISPATCHED), "open_calls": now.open_calls + 1}, RunTool),
)  # fmt: skip

FINISHES: tuple[Case, ...] = (
    *(case(f"a finish part that says {reason.value} is kept", "R-LOOP-31",
           present(StepFinished, Phase.STREAMING, finished.generation, finished.reason == reason),
           {"ending": ending, "compactions": choose(healthy, 0, now.compactions),
            "content": choose(healthy & held, Content.DISPATCHED, now.content)}, maybe={RunHeldCalls: healthy & held})
      for reason, ending in ENDINGS.items()),
    Case("a finish part without a reason is refused", "R-LOOP-31", on(StepFinished), refused() == (finished.reason == FinishReason.ABSENT)),
)  # fmt: skip

STREAM_ENDS: tuple[Case, ...] = (
    case("a captured output ends a step at once", "R-LOOP-1", present(OutputCaptured, Phase.STREAMING, captured.generation,
         not_(calls_run)),
         {"phase": Phase.JUDGING, "ending": Ending.CAPTURED, "open_calls": 0}, AbortStream, RecordStep, maybe=drops),
    *(case(f"a captured output while calls run at {phase.value} gives them their moment", "R-LOOP-1",
           present(OutputCaptured, phase, captured.generation, calls_run), {"phase": Phase.SETTLING, "ending": Ending.CAPTURED},
           AbortCalls, StartTimer, maybe={AbortStream: now.phase == Phase.STREAMING}) for phase in (Phase.STREAMING, Phase.DRAINING)),
    case("a closed stream waits for calls", "R-LOOP-28", present(StreamEnded, Phase.STREAMING, closed.generation, calls_run),
         {"phase": Phase.DRAINING, "ending": absent}),
    case("a closed stream without calls ends the step", "R-LOOP-28",
         present(StreamEnded, Phase.STREAMING, closed.generation, not_(calls_run)),
         {"phase": Phase.JUDGING, "ending": absent, "open_calls": 0}, RecordStep, maybe=drops),
    *(case(f"a stream that breaks as {failure.value} {what}", "R-LOOP-28",
           present(StreamBroke, Phase.STREAMING, broke.generation, (broke.failure == failure) & when),
           {"phase": phase, "ending": ending, **changes}, *effects, maybe=maybe)
      for failure, ending in FAILURES.items()
      for what, when, phase, changes, effects, maybe in (
          ("without calls ends the step", not_(calls_run), Phase.JUDGING, {"open_calls": 0}, (RecordStep,), drops),
          ("while calls run waits for them", calls_run, Phase.SETTLING if failure is Failure.FATAL else Phase.DRAINING, {},
           (AbortCalls, StartTimer) if failure is Failure.FATAL else (), {}))),
)  # fmt: skip


# ── calls, joins, waits ──

ABORTED: Mapping[str, object] = {**RUN_OVER, "phase": Phase.ABORTED}
STOPPED_EFFECTS = (RecordStep, Finish, PublishIdle)
JOINS = (
    (StreamEnded, closed.generation),
    (StreamBroke, broke.generation),
    (CompactionEnded, compacted.generation),
    (SubtaskEnded, subtask.generation),
)
with_result = choose((ended.result == CallResult.REJECTED) | (now.content == Content.REJECTED), Content.REJECTED, Content.RESULT)
one_less = {"open_calls": now.open_calls - 1, "content": with_result}
last = now.open_calls == 1

JOINED: tuple[Case, ...] = (
    *(case(f"what is joined last ends the run: {event.__name__}", "R-LOOP-10", present(event, Phase.STOPPING, generation, alone),
           ABORTED, StopTimer, *STOPPED_EFFECTS, maybe=queue) for event, generation in JOINS),
    *(case(f"a stream that is joined before its calls is no longer waited for: {event.__name__}", "R-LOOP-10",
           present(event, Phase.STOPPING, generation, (now.ending == Ending.OPEN) & (now.open_calls > 0)), {"ending": Ending.ABSENT})
      for event, generation in JOINS[:2]),
    Case("what was joined before is not joined again", "R-LOOP-11",
         on(*(event for event, _ in JOINS)) & (now.phase == Phase.STOPPING) & (now.ending != Ending.OPEN), ignored()),
)  # fmt: skip

RESULTS: tuple[Case, ...] = (
    case("a result during the stream", "R-LOOP-6", present(CallEnded, Phase.STREAMING, ended.generation, calls_run), one_less),
    *(case(f"a result that is not the last at {phase.value}", "R-LOOP-6", present(CallEnded, phase, ended.generation, calls_run
         & not_(last)),
           one_less) for phase in (Phase.DRAINING, Phase.SETTLING)),
    case("the last result that is waited for", "R-LOOP-6", present(CallEnded, Phase.DRAINING, ended.generation, calls_run & last),
         {**one_less, "phase": Phase.JUDGING}, RecordStep),
    case("the last result within the moment", "R-LOOP-6", present(CallEnded, Phase.SETTLING, ended.generation, calls_run & last),
         {**one_less, "phase": Phase.JUDGING}, StopTimer, RecordStep),
    case("the last result that is joined", "R-LOOP-10",
         present(CallEnded, Phase.STOPPING, ended.generation, last & (now.ending != Ending.OPEN)), ABORTED, StopTimer, *STOPPED_EFFECTS,
         maybe=queue),
    case("a result that is joined before others", "R-LOOP-10",
         present(CallEnded, Phase.STOPPING, ended.generation, (now.open_calls > 0) & not_(last & (now.ending != Ending.OPEN))),
         {"open_calls": now.open_calls - 1}),
    Case("a result that nobody waits for is ignored", "R-LOOP-11", on(CallEnded) & ((ended.generation != now.generation)
         | not_(calls_run)), ignored()),
)  # fmt: skip

WAITED: tuple[Case, ...] = (
    case("calls that outlast their moment are orphans", "R-LOOP-7", on(GraceExpired) & (now.phase == Phase.SETTLING),
         {"phase": Phase.JUDGING, "open_calls": 0}, MarkOrphans, RecordStep),
    case("what outlasts the stop is left behind", "R-LOOP-10", on(GraceExpired) & (now.phase == Phase.STOPPING), ABORTED, *STOPPED_EFFECTS,
         maybe={MarkOrphans: now.open_calls > 0, **queue}),
    *(case(f"the same request after a wait: {name}", "R-LOOP-9", when, {"phase": Phase.PREPARING}, BuildRequest)
      for name, when in (("an error", on(RetryDue) & (now.phase == Phase.RETRY_WAIT) & now.repeat),
                         ("a dead step", on(ResampleDue) & (now.phase == Phase.RESAMPLE_WAIT)))),
    *(case(f"a new step after a wait: {name}", "R-LOOP-9", when, {"phase": Phase.DECIDING}, PublishStatus, ReadHistory)
      for name, when in (("an error", on(RetryDue) & (now.phase == Phase.RETRY_WAIT) & not_(now.repeat)),
                         ("a dead step", on(ContinueDue) & (now.phase == Phase.CONTINUE_WAIT)))),
    case("a summary leads back to the history", "R-LOOP-12",
         present(CompactionEnded, Phase.COMPACTING, compacted.generation, compacted.result == CompactionResult.SUMMARY),
         {"phase": Phase.DECIDING}, PublishStatus, ReadHistory),
    *(case(f"a compaction that ends {result.value} errs", "R-LOOP-12",
           present(CompactionEnded, Phase.COMPACTING, compacted.generation, compacted.result == result),
           {**RUN_OVER, "phase": Phase.ERRORED, "cause": cause}, *TOLD, maybe=queue)
      for result, cause in ((CompactionResult.EMPTY, Cause.COMPACTION), (CompactionResult.FAILED, Cause.COMPACTION),
                            (CompactionResult.TOO_LONG, Cause.OVERFLOW))),
    case("a child that is done leads back to the history", "R-LOOP-17", present(SubtaskEnded, Phase.SUBTASK, subtask.generation),
         {"phase": Phase.DECIDING}, PublishStatus, ReadHistory),
)  # fmt: skip


# ── where an event is nobody's business; words of effects; order ──

TAKEN_AT: Mapping[type, tuple[Phase, ...]] = {
    HistoryLoaded: (Phase.DECIDING,), Prepared: (Phase.PREPARING,), PreparationFailed: (Phase.DECIDING, Phase.PREPARING),
    **dict.fromkeys((ReasoningArrived, TextArrived, CallBegan, CallCompleted, HostedCallSeen, StepFinished), (Phase.STREAMING,)),
    OutputCaptured: (Phase.STREAMING, Phase.DRAINING), StreamEnded: (Phase.STREAMING, Phase.STOPPING),
    StreamBroke: (Phase.STREAMING, Phase.STOPPING), StepRecorded: (Phase.JUDGING,), CompactionEnded: (Phase.COMPACTING, Phase.STOPPING),
    SubtaskEnded: (Phase.SUBTASK, Phase.STOPPING), RetryDue: (Phase.RETRY_WAIT,), ResampleDue: (Phase.RESAMPLE_WAIT,),
    ContinueDue: (Phase.CONTINUE_WAIT,), GraceExpired: (Phase.SETTLING, Phase.STOPPING),
    CallEnded: (Phase.STREAMING, Phase.DRAINING, Phase.SETTLING, Phase.STOPPING),
}  # fmt: skip
ORDERS: tuple[tuple[type, type, str], ...] = (
    (KeepMessage, PublishStatus, "R-LOOP-13"), (KeepMessage, ReadHistory, "R-LOOP-13"), (PublishStatus, ReadHistory, "R-LOOP-9"),
    (PublishStatus, Sample, "R-LOOP-9"), (PublishStatus, StartTimer, "R-LOOP-9"),
    (AbortStream, DropHeldCalls, "R-LOOP-10"), (AbortStream, AbortCalls, "R-LOOP-10"), (AbortStream, RecordStep, "R-LOOP-10"),
    (AbortCalls, StartTimer, "R-LOOP-6"), (AbortStream, StartTimer, "R-LOOP-10"), (DropHeldCalls, StartTimer, "R-LOOP-10"),
    (AbortCompaction, StartTimer, "R-LOOP-10"), (AbortSubtask, StartTimer, "R-LOOP-10"), (DropHeldCalls, RecordStep, "R-LOOP-6"),
    (MarkOrphans, RecordStep, "R-LOOP-6"), (StopTimer, RecordStep, "R-LOOP-11"), (StopTimer, Finish, "R-LOOP-11"),
    (RecordStep, Finish, "R-LOOP-6"), (PublishError, Finish, "R-LOOP-3"), (Finish, PublishIdle, "R-LOOP-2"),
    (PublishIdle, StartQueued, "R-LOOP-2"),
)  # fmt: skip

WORDS: tuple[Property, ...] = (
    Step("every event has its phases", requirements="R-LOOP-11", holds=
         all_of(*(implies(on(event) & not_(one_of(now.phase, *phases)), not_(taken())) for event, phases in TAKEN_AT.items()))),
    Step("what is not taken is ignored, but for what is asked of the loop", requirements="R-LOOP-11", holds=
         implies(any_of(*(on(event) for event in TAKEN_AT if event not in (Prepared, StepFinished))), not_(refused()))),
    Step("a request is new, but after a wait for the same", requirements="R-LOOP-9", holds=
         emits(BuildRequest) == (emits(BuildRequest, request=Request.NEW) | emits(BuildRequest, request=Request.SAME))),
    Step("a request out of the history is new", implies(on(HistoryLoaded), not_(emits(BuildRequest, request=Request.SAME))),
         requirements="R-LOOP-9"),
    Step("the same request is the one of the wait", requirements="R-LOOP-9", holds=
         implies(on(RetryDue, ResampleDue), not_(emits(BuildRequest, request=Request.NEW)))),
    Step("only a wait shows as one", requirements="R-LOOP-9", holds=
         implies(not_(on(StepRecorded)), not_(emits(PublishStatus, status=Status.WAITING)))),
    Step("the moment of calls is what is armed, but for waits", requirements="R-LOOP-10", holds=
         implies(not_(on(StepRecorded)), count(StartTimer) == count(StartTimer, timer=Timer.GRACE))
         & implies(on(StepRecorded), not_(emits(StartTimer, timer=Timer.GRACE)))),
    Step("what is joined stops its moment", requirements="R-LOOP-11", holds=
         implies(not_(on(Cancelled)), count(StopTimer) == count(StopTimer, timer=Timer.GRACE))),
    *(Order(f"{first.__name__} before {second.__name__}", first, second, requirements=rid) for first, second, rid in ORDERS),
)  # fmt: skip

CASES: tuple[Case, ...] = (
    *MESSAGES, *CANCELS, *HISTORY, *REQUESTS, *CONTENT, *FINISHES, *STREAM_ENDS, *JOINED, *RESULTS, *WAITED,
)  # fmt: skip
"""Every case but the judge's."""

PROPERTIES: tuple[Property, ...] = (
    exactly("a message", *MESSAGES), exactly("a cancel", *CANCELS), exactly("what the history says", *HISTORY),
    exactly("a request", *REQUESTS), exactly("what arrives", *CONTENT), exactly("a finish part", *FINISHES),
    exactly("the end of a stream", *STREAM_ENDS), exactly("what is joined", *JOINED), exactly("the result of a call", *RESULTS),
    exactly("what is waited for", *WAITED), *WORDS,
)  # fmt: skip
