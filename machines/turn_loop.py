"""The turn loop of a coding agent: from a user's message to the one outcome of its run, through as many model calls as it takes.

What it is. One machine is one session. A message begins a *run*. Each *step* reads the history, builds a request, samples the
model, runs the local calls it asks for, waits for them, writes the step down and judges it: the run is complete, goes on, tries
again, or ends with a reason. A message that comes meanwhile joins the run; one that comes while a run is being stopped follows it.

Which runtime. OpenCode's session loop (anomalyco/opencode, ``packages/opencode/src/session/prompt.ts`` @982a9044c), with the
bounded policy that the reports on dead streams ask for (#43856, #43939, #49414) in place of its judge. Upstream's own judges before
1.18.21 (``pre``), since (``post``) and of its later core runner (``v2``) are variants in the specification: they replace the rows of
``StepRecorded`` and of the two guards before it, nothing else.

The data, flowing through. A message is kept and the history read (DECIDING). What the history says is done: sum up, let a child
work, or build a request (PREPARING) and send it (STREAMING). The stream leaves content, calls and, if it lives to say so, a finish
reason. Calls still running are waited for (DRAINING); those of a lost step get a moment (SETTLING). The step is recorded and judged
by two facts, how it ended and what it left (JUDGING). An answer goes back to DECIDING, and completes the run if nothing new came.
An incomplete step that left nothing is discarded and repeated, one that left something is kept and continued; both after a wait.

What it promises.
  1. A run completes only after a real ``stop`` or a captured structured output, and every run has exactly one outcome.
  2. A dead stream is never a success and never an endless loop: tries are bounded, and every repeated request follows a wait.
  3. Nothing is repeated after a call was run, held back complete, or executed by the provider.
  4. Cancel beats every timer and every state; what answers an older piece of work changes nothing.

Tool calls. A set of calls has no place in a machine whose every field is finite or a counter, so the life of a call is split. The
loop counts calls without a result (``open_calls``, any number, provable by induction) and remembers the most telling thing of the
step (``content``). Which call it is, that it runs once, that an equal call is asked about first, and what its orphan says, is the
machine ``tool_call``, one instance a call, known by its identity. An adapter that runs calls when they are complete (eager) and one
that holds them back until the finish part (deferred) differ in ``CallCompleted.held``.

Identity. Whoever starts a piece of work mints its ``generation`` (a message its run, a request its model call) and never uses one
twice; an answer of another generation is stale. A message that comes while the history is read starts the reading again.

Budgets. The four limits are fields of the state that no row changes: a runtime sets them in its initial state, proofs hold for all.
A compaction has a bound and no wait: it repeats no request.

Not modelled: shell commands that share the session, titles, permissions and questions (``tool_call``), tokens and prices (the shell
says whether there is room), jitter (the shell's, upwards only), and the compaction's own retries.

Rule 1: every transition of a session is a row of ``ROWS``.
Rule 2: this file knows nothing of clocks, tasks or transports.
"""

from __future__ import annotations

from typing import get_args

from attrs import evolve

from turnproof.machines.finish_reason import FinishReason
from turnproof.machines.kernel import NOBODY, Machine, Row, StartTimer, StopTimer, TimerRule, choose, named, not_, one_of, only_if
from turnproof.machines.turn_loop_events import (
    AbortCalls,
    AbortCompaction,
    AbortStream,
    AbortSubtask,
    BuildRequest,
    CallBegan,
    CallCompleted,
    Cancelled,
    ContinueDue,
    DropHeldCalls,
    Effect,
    Event,
    Finish,
    GraceExpired,
    HistoryLoaded,
    HostedCallSeen,
    KeepMessage,
    MarkOrphans,
    OutputCaptured,
    PreparationFailed,
    Prepared,
    PublishIdle,
    PublishStatus,
    ReasoningArrived,
    RecordStep,
    ResampleDue,
    RetryDue,
    RunHeldCalls,
    RunTool,
    Sample,
    StartCompaction,
    StartSubtask,
    StepFinished,
    TextArrived,
)
from turnproof.machines.turn_loop_judge import (
    ABORTED,
    COMPACTING,
    COMPLETED,
    CONTINUE_MS,
    CONTINUE_WAIT,
    DECIDING,
    DRAINING,
    ERRORED,
    GRACE_MS,
    JUDGE,
    JUDGING,
    PREPARING,
    RESAMPLE_MS,
    RESAMPLE_WAIT,
    RETRY_MS,
    RETRY_WAIT,
    SETTLING,
    STOPPING,
    STREAMING,
    SUBTASK,
    began,
    broke,
    captured,
    closed,
    compacted,
    completed,
    ended,
    errored,
    finished,
    hosted,
    loaded,
    mine,
    misprepared,
    now,
    out_of_steps,
    over,
    prepared,
    prompt,
    read_on,
    reasoning,
    start_queued,
    step_begun,
    subtask,
    text,
)
from turnproof.machines.turn_loop_words import (
    EMPTY,
    RAN,
    RESTING,
    WORDS,
    CallResult,
    Cause,
    CompactionResult,
    Content,
    Ending,
    Failure,
    Outcome,
    Request,
    Room,
    Source,
    Status,
    Task,
    Timer,
    TurnLoop,
)

R = Row[TurnLoop, Effect]


# ── symbols of these rows; the shared ones are in turn_loop_judge ──

done = named("answered, and nothing new", now.answered & not_(now.prompted) & (loaded.task == Task.NONE))
"""The guard at the top of the loop. What counts as answered, the judge alone decides (R-LOOP-8)."""
may_compact = named("may compact", now.compactions < now.compaction_limit)
too_long = named("too long", (loaded.room == Room.OVER) | (now.ending == Ending.OVERFLOW))
"""By our own count, or because the provider said so."""
to_compact = evolve(now, ending=choose(now.ending == Ending.OVERFLOW, Ending.OPEN, now.ending), answered=now.answered & not_(now.prompted),
                    prompted=False, compactions=now.compactions + 1)  # fmt: skip
holding = named("holding calls back", now.content == Content.HELD)
calls_run = named("calls run", (now.open_calls > 0) & (now.content != Content.HELD))
joined = named("all joined", (now.ending == Ending.OPEN) & (now.open_calls == 0))
drop_held = only_if(now.content == Content.HELD, DropHeldCalls())
begin_grace = (AbortCalls(), StartTimer(Timer.GRACE))
finish_aborted = (RecordStep(), Finish(Outcome.ABORTED), PublishIdle(), start_queued)
finish_reason = choose(finished.reason == FinishReason.STOP, Ending.STOP,
                choose(finished.reason == FinishReason.LENGTH, Ending.LENGTH,
                choose(finished.reason == FinishReason.TOOL_CALLS, Ending.TOOL_CALLS,
                choose(finished.reason == FinishReason.CONTENT_FILTER, Ending.CONTENT_FILTER,
                choose(finished.reason == FinishReason.ERROR, Ending.ERROR, Ending.UNKNOWN)))))  # fmt: skip
healthy = named("healthy", one_of(finished.reason, FinishReason.STOP, FinishReason.TOOL_CALLS))
closing = choose(now.ending == Ending.OPEN, Ending.ABSENT, now.ending)
failure = choose(broke.failure == Failure.RETRYABLE, Ending.RETRYABLE,
          choose(broke.failure == Failure.OVERFLOW, Ending.OVERFLOW, Ending.FATAL))  # fmt: skip
call_ended = evolve(now, open_calls=now.open_calls - 1,
    content=choose((ended.result == CallResult.REJECTED) | (now.content == Content.REJECTED), Content.REJECTED,
                   Content.RESULT))  # fmt: skip


def stopping(*, joins: bool) -> TurnLoop:
    """A run was cancelled. ``joins``: something besides calls must still end; the ending stays open until it does."""
    return evolve(over(ending=Ending.OPEN if joins else Ending.ABSENT), generation=now.generation, prompted=False, automation_off=True,
                  open_calls=choose(now.content == Content.HELD, 0, now.open_calls))  # fmt: skip


def arrives(event: ReasoningArrived | TextArrived | CallBegan | HostedCallSeen, content: Content, *below: Content) -> R:
    """Something arrives that tells more than what was there."""
    return R(event, at=STREAMING, when=mine(event.generation) & one_of(now.content, *below), data=evolve(now, content=content),
             name=f"{type(event).__name__}/{content.value}")  # fmt: skip


def arrives_again(event: ReasoningArrived | TextArrived | CallBegan | HostedCallSeen) -> R:
    """Something arrives that tells nothing new."""
    return R(event, at=STREAMING, when=mine(event.generation), stay=True, name=f"{type(event).__name__}/more")


# ── rows: the first that matches wins ──

ROWS: tuple[R, ...] = (
    # ── a message ──
    R(prompt, when=prompt.generation == NOBODY, refuse="a run has an identity", name="UserPrompted/nobody"),
    R(prompt, when=(prompt.source == Source.HARNESS) & now.automation_off, name="UserPrompted/automation off",
      refuse="a person cancelled; only a person starts it again"),
    R(prompt, at=RESTING, when=(prompt.source == Source.QUEUE) & not_(now.prompted), ignore="the message that waited was cancelled",
      name="UserPrompted/queue empty"),
    R(prompt, at=RESTING, to=DECIDING, name="UserPrompted/begins",
      data=evolve(now, generation=prompt.generation, prompted=True, automation_off=False, limited=prompt.steps > 0,
                  steps_left=prompt.steps, ending=Ending.OPEN, cause=Cause.NONE),
      emit=(only_if(prompt.source != Source.QUEUE, KeepMessage()), *read_on)),
    R(prompt, when=prompt.source == Source.QUEUE, ignore="a run is on that will read the message", name="UserPrompted/queue late"),
    R(prompt, at=DECIDING, data=evolve(now, generation=prompt.generation, prompted=True), emit=(KeepMessage(), *read_on[1:]),
      name="UserPrompted/reads again", because="The reading under way may have missed it; its answer is stale now (R-LOOP-13)."),
    R(prompt, at=STOPPING, emit=(KeepMessage(),), name="UserPrompted/follows",
      data=evolve(now, prompted=True, automation_off=choose(prompt.source == Source.PERSON, False, now.automation_off))),
    R(prompt, data=evolve(now, prompted=True), emit=(KeepMessage(),), name="UserPrompted/joins"),

    # ── cancel ──
    R(Cancelled, at=RESTING, when=now.prompted | not_(now.automation_off), data=evolve(now, prompted=False, automation_off=True),
      name="Cancelled/resting", because="A message that waits for its own run is taken out of the queue, and no harness goes on."),
    R(Cancelled, at=RESTING, ignore="nothing runs and nothing waits", name="Cancelled/nothing"),
    R(Cancelled, at=STREAMING, to=STOPPING, data=stopping(joins=True), name="Cancelled/streaming",
      emit=(AbortStream(), drop_held, only_if(calls_run, AbortCalls()), StartTimer(Timer.GRACE))),
    R(Cancelled, at=DRAINING, to=STOPPING, data=stopping(joins=False), emit=begin_grace),
    R(Cancelled, at=SETTLING, to=STOPPING, data=stopping(joins=False),
      because="The calls were told to stop, and their moment already runs."),
    R(Cancelled, at=COMPACTING, to=STOPPING, data=stopping(joins=True), emit=(AbortCompaction(), StartTimer(Timer.GRACE))),
    R(Cancelled, at=SUBTASK, to=STOPPING, data=stopping(joins=True), emit=(AbortSubtask(), StartTimer(Timer.GRACE))),
    R(Cancelled, at=STOPPING, when=now.prompted, data=evolve(now, prompted=False, automation_off=True), name="Cancelled/follower"),
    R(Cancelled, at=STOPPING, ignore="it is being stopped"),
    R(Cancelled, to=ABORTED, data=evolve(over(), prompted=False, automation_off=True), name="Cancelled/at once",
      emit=(only_if(now.phase == RETRY_WAIT, StopTimer(Timer.RETRY)), only_if(now.phase == RESAMPLE_WAIT, StopTimer(Timer.RESAMPLE)),
            only_if(now.phase == CONTINUE_WAIT, StopTimer(Timer.CONTINUE)), Finish(Outcome.ABORTED), PublishIdle())),

    # ── the history decides ──
    R(loaded, at=DECIDING, when=mine(loaded.generation) & (loaded.room != Room.NO_COMPACTION) & too_long & may_compact
      & (loaded.task == Task.NONE) & (done | not_(out_of_steps)), to=COMPACTING, data=to_compact, emit=(StartCompaction(),),
      name="HistoryLoaded/too long",
      because="Also of an answer, so that the next message finds room. It takes no step: a run with one left must still answer."),
    R(loaded, at=DECIDING, when=mine(loaded.generation) & done, to=COMPLETED, data=over(ending=now.ending), name="HistoryLoaded/complete",
      emit=(Finish(Outcome.COMPLETED), PublishIdle())),
    R(loaded, at=DECIDING, when=mine(loaded.generation) & out_of_steps, to=ERRORED, data=over(Cause.STEP_LIMIT),
      name="HistoryLoaded/out of steps", emit=(*errored(Cause.STEP_LIMIT), start_queued)),
    R(loaded, at=DECIDING, when=mine(loaded.generation) & (loaded.task == Task.SUBTASK), to=SUBTASK, data=step_begun(),
      emit=(StartSubtask(),), name="HistoryLoaded/subtask"),
    R(loaded, at=DECIDING, when=mine(loaded.generation) & (loaded.task == Task.COMPACTION), to=COMPACTING,
      data=step_begun(ending=Ending.STOP, answered=True), emit=(StartCompaction(),), name="HistoryLoaded/compaction asked for",
      because="The summary is the answer; only an accepted one leads back here."),
    R(loaded, at=DECIDING, when=mine(loaded.generation) & too_long, to=ERRORED, data=evolve(over(Cause.OVERFLOW), prompted=False),
      emit=errored(Cause.OVERFLOW), name="HistoryLoaded/still too long"),
    R(loaded, at=DECIDING, when=mine(loaded.generation), to=PREPARING, data=step_begun(), emit=(BuildRequest(Request.NEW),),
      name="HistoryLoaded/step"),
    R(HistoryLoaded, ignore="nobody waits for this reading"),
    R(prepared, when=prepared.call == NOBODY, refuse="a model call has an identity", name="Prepared/nobody"),
    R(prepared, at=PREPARING, when=mine(prepared.generation), to=STREAMING, data=evolve(now, generation=prepared.call, repeat=False),
      emit=(PublishStatus(Status.BUSY), Sample(choose(now.repeat, Request.SAME, Request.NEW), out_of_steps))),
    R(Prepared, ignore="nobody waits for this request"),
    R(misprepared, at=DECIDING, when=mine(misprepared.generation), to=ERRORED, data=evolve(over(Cause.PREPARATION), prompted=False),
      emit=errored(Cause.PREPARATION)),
    R(misprepared, at=PREPARING, when=mine(misprepared.generation), to=ERRORED, data=over(Cause.PREPARATION),
      emit=(*errored(Cause.PREPARATION), start_queued)),
    R(PreparationFailed, ignore="nobody waits for this request"),

    # ── the stream ──
    arrives(reasoning, Content.REASONING, Content.NOTHING),
    arrives_again(reasoning),
    R(ReasoningArrived, ignore="no such stream is read"),
    arrives(text, Content.TEXT, Content.NOTHING, Content.REASONING),
    arrives(text, Content.TEXT_AND_CUT_CALL, Content.CUT_CALL),
    arrives_again(text),
    R(TextArrived, ignore="no such stream is read"),
    arrives(began, Content.CUT_CALL, Content.NOTHING, Content.REASONING),
    arrives(began, Content.TEXT_AND_CUT_CALL, Content.TEXT),
    arrives_again(began),
    R(CallBegan, ignore="no such stream is read"),
    arrives(hosted, Content.HOSTED, *EMPTY, *WORDS[:-1]),
    arrives_again(hosted),
    R(HostedCallSeen, ignore="no such stream is read"),
    R(completed, at=STREAMING, name="CallCompleted/held", data=evolve(now, content=Content.HELD, open_calls=now.open_calls + 1),
      when=mine(completed.generation) & (completed.held | holding) & not_(one_of(now.content, *RAN))
      & not_(one_of(now.ending, Ending.STOP, Ending.TOOL_CALLS))),
    R(completed, at=STREAMING, when=mine(completed.generation), emit=(RunTool(completed.call),), name="CallCompleted/run",
      data=evolve(now, content=choose(one_of(now.content, *RAN), now.content, Content.DISPATCHED), open_calls=now.open_calls + 1)),
    R(CallCompleted, ignore="no such stream is read: the call is not run"),
    R(finished, when=finished.reason == FinishReason.ABSENT, refuse="a finish part has a reason", name="StepFinished/absent"),
    R(finished, at=STREAMING, when=mine(finished.generation) & healthy & holding, emit=(RunHeldCalls(),), name="StepFinished/releases",
      data=evolve(now, ending=finish_reason, raw=finished.raw, compactions=0, content=Content.DISPATCHED)),
    R(finished, at=STREAMING, when=mine(finished.generation) & healthy, name="StepFinished/healthy",
      data=evolve(now, ending=finish_reason, raw=finished.raw, compactions=0),
      because="The request fitted: compactions begin to count anew. Usage says nothing, a dead step has none (R-LOOP-18)."),
    R(finished, at=STREAMING, when=mine(finished.generation), data=evolve(now, ending=finish_reason, raw=finished.raw),
      name="StepFinished/other"),
    R(StepFinished, ignore="no such stream is read"),
    R(captured, at=(STREAMING, DRAINING), when=mine(captured.generation) & calls_run, to=SETTLING,
      data=evolve(now, ending=Ending.CAPTURED), emit=(only_if(now.phase == STREAMING, AbortStream()), *begin_grace)),
    R(captured, at=STREAMING, when=mine(captured.generation), to=JUDGING, data=evolve(now, ending=Ending.CAPTURED, open_calls=0),
      emit=(AbortStream(), drop_held, RecordStep()), name="OutputCaptured/step over"),
    R(OutputCaptured, ignore="the step is over"),

    # ── the stream ends; calls that run are waited for ──
    R(closed, at=STREAMING, when=mine(closed.generation) & calls_run, to=DRAINING, data=evolve(now, ending=closing)),
    R(closed, at=STREAMING, when=mine(closed.generation), to=JUDGING, data=evolve(now, ending=closing, open_calls=0),
      emit=(drop_held, RecordStep()), name="StreamEnded/step over"),
    R(broke, at=STREAMING, when=mine(broke.generation) & calls_run & (broke.failure == Failure.FATAL), to=SETTLING,
      data=evolve(now, ending=failure), emit=begin_grace, name="StreamBroke/fatal"),
    R(broke, at=STREAMING, when=mine(broke.generation) & calls_run, to=DRAINING,
      data=evolve(now, ending=failure, retry_at_ms=broke.retry_at_ms)),
    R(broke, at=STREAMING, when=mine(broke.generation), to=JUDGING,
      data=evolve(now, ending=failure, open_calls=0, retry_at_ms=broke.retry_at_ms), emit=(drop_held, RecordStep()),
      name="StreamBroke/step over"),
    *(row for event in (closed, broke) for row in (
        R(event, at=STOPPING, when=mine(event.generation) & joined, to=ABORTED, data=over(),
          emit=(StopTimer(Timer.GRACE), *finish_aborted)),
        R(event, at=STOPPING, when=mine(event.generation) & (now.ending == Ending.OPEN), data=evolve(now, ending=Ending.ABSENT),
          name=f"{type(event).__name__}/stopping"),
        R(type(event), ignore="no such stream is read"))),
    R(ended, when=not_(mine(ended.generation)) | not_(calls_run), ignore="the result is late: what it belonged to is over",
      name="CallEnded/late"),
    R(ended, at=STREAMING, data=call_ended),
    R(ended, at=DRAINING, when=now.open_calls == 1, to=JUDGING, data=call_ended, emit=(RecordStep(),), name="CallEnded/drained"),
    R(ended, at=SETTLING, when=now.open_calls == 1, to=JUDGING, data=call_ended, emit=(StopTimer(Timer.GRACE), RecordStep()),
      name="CallEnded/settled"),
    R(ended, at=STOPPING, when=(now.open_calls == 1) & (now.ending != Ending.OPEN), to=ABORTED, data=over(),
      emit=(StopTimer(Timer.GRACE), *finish_aborted), name="CallEnded/joined"),
    R(ended, at=STOPPING, data=evolve(now, open_calls=now.open_calls - 1)),
    R(ended, data=call_ended, name="CallEnded/others run"),
    R(GraceExpired, at=SETTLING, to=JUDGING, data=evolve(now, open_calls=0), emit=(MarkOrphans(), RecordStep()),
      because="An orphan may have happened: it is written down as unknown, never as not run (R-LOOP-7)."),
    R(GraceExpired, at=STOPPING, to=ABORTED, data=over(), emit=(only_if(now.open_calls > 0, MarkOrphans()), *finish_aborted)),
    R(GraceExpired, ignore="everything ended in time"),
    *JUDGE,

    # ── waits ──
    R(RetryDue, at=RETRY_WAIT, when=now.repeat, to=PREPARING, emit=(BuildRequest(Request.SAME),), name="RetryDue/same request"),
    R(RetryDue, at=RETRY_WAIT, to=DECIDING, emit=read_on),
    R(RetryDue, ignore="the wait was cancelled"),
    R(ResampleDue, at=RESAMPLE_WAIT, to=PREPARING, emit=(BuildRequest(Request.SAME),)),
    R(ResampleDue, ignore="the wait was cancelled"),
    R(ContinueDue, at=CONTINUE_WAIT, to=DECIDING, emit=read_on),
    R(ContinueDue, ignore="the wait was cancelled"),

    # ── compaction and subtask ──
    R(compacted, at=COMPACTING, when=mine(compacted.generation) & (compacted.result == CompactionResult.SUMMARY), to=DECIDING, emit=read_on,
      name="CompactionEnded/summary"),
    R(compacted, at=COMPACTING, when=mine(compacted.generation) & (compacted.result == CompactionResult.TOO_LONG), to=ERRORED,
      data=over(Cause.OVERFLOW), emit=(*errored(Cause.OVERFLOW), start_queued), name="CompactionEnded/too long"),
    R(compacted, at=COMPACTING, when=mine(compacted.generation), to=ERRORED, data=over(Cause.COMPACTION), name="CompactionEnded/no summary",
      emit=(*errored(Cause.COMPACTION), start_queued),
      because="Cutting the history behind an empty summary would lose the conversation (R-LOOP-12)."),
    R(subtask, at=SUBTASK, when=mine(subtask.generation), to=DECIDING, emit=read_on),
    *(row for event in (compacted, subtask) for row in (
        R(event, at=STOPPING, when=mine(event.generation) & joined, to=ABORTED, data=over(),
          emit=(StopTimer(Timer.GRACE), *finish_aborted)),
        R(type(event), ignore="nobody waits for it"))),
)  # fmt: skip


# ── the machine ──

MACHINE: Machine[TurnLoop, Event, Effect] = Machine(
    name="turn_loop",
    initial=TurnLoop(),
    now=now,
    events=get_args(Event),
    effects=get_args(Effect),
    rows=ROWS,
    timers=(
        TimerRule(Timer.RETRY, now.phase == RETRY_WAIT, RetryDue, RETRY_MS),
        TimerRule(Timer.RESAMPLE, now.phase == RESAMPLE_WAIT, ResampleDue, RESAMPLE_MS),
        TimerRule(Timer.CONTINUE, now.phase == CONTINUE_WAIT, ContinueDue, CONTINUE_MS),
        TimerRule(Timer.GRACE, one_of(now.phase, SETTLING, STOPPING), GraceExpired, GRACE_MS),
    ),
)
step = MACHINE.step
