"""What must hold of how steps and runs end: outcomes, tries, waits and what is kept."""

from __future__ import annotations

from turnproof.machines.kernel import StartTimer, any_of, implies, named, not_, one_of
from turnproof.machines.turn_loop_events import (
    AppendContinue,
    BuildRequest,
    CallCompleted,
    CallEnded,
    Cancelled,
    ContinueDue,
    DiscardAttempt,
    Finish,
    HistoryLoaded,
    HostedCallSeen,
    Prepared,
    PublishError,
    PublishIdle,
    PublishStatus,
    ResampleDue,
    RetryDue,
    Sample,
    StepRecorded,
    TextArrived,
    UserPrompted,
    WarnEmpty,
    WarnIncomplete,
)
from turnproof.machines.turn_loop_judge import ended, loaded, now, prepared, recorded
from turnproof.machines.turn_loop_words import (
    TERMINAL,
    CallResult,
    Cause,
    Content,
    Ending,
    Outcome,
    Phase,
    Request,
    Status,
    Task,
    Timer,
    TurnLoop,
    Wanted,
)
from turnproof.specs.language import Always, Property, Sometimes, Step, after, count, emits, never, on, taken
from turnproof.specs.turn_loop_promises import barren, completion, no_call, no_finish, nothing_kept, resting, running, terminal

then = after(TurnLoop)
over = one_of(then.phase, *TERMINAL)
kept = named("there is something to keep", not_(one_of(then.content, Content.NOTHING, Content.REASONING, Content.CUT_CALL)))
RAN = (Content.DISPATCHED, Content.RESULT, Content.REJECTED)
out = named("answered, and nothing new", now.answered & not_(now.prompted) & (loaded.task == Task.NONE))
WAITS = (Timer.RETRY, Timer.RESAMPLE, Timer.CONTINUE)


def starts_wait() -> bool:
    """A wait begins."""
    return any_of(*(emits(StartTimer, timer=timer) for timer in WAITS))


OUTCOME_PROPERTIES: tuple[Property, ...] = (
    Always("completed implies a terminal reason", implies(now.phase == Phase.COMPLETED, terminal), requirements=("R-LOOP-1", "R-LOOP-3"),
           harm="a stream that died is taken for a finished answer"),
    Step("a run becomes over exactly where its outcome is told", requirements="R-LOOP-2", holds=
         emits(Finish) == (running & over), harm="a caller waits for ever, or gets two answers"),
    Step("one outcome, then idle once", requirements="R-LOOP-2", holds=
         (count(Finish) == count(PublishIdle)) & (count(Finish) <= 1), harm="a client thinks that two runs ended, or that none did"),
    Step("the outcome told is the one recorded", requirements=("R-LOOP-2", "R-LOOP-3"), holds=
         (emits(Finish, outcome=Outcome.COMPLETED) == (running & (then.phase == Phase.COMPLETED)))
         & (emits(Finish, outcome=Outcome.ERRORED) == (running & (then.phase == Phase.ERRORED)))
         & (emits(Finish, outcome=Outcome.ABORTED) == (running & (then.phase == Phase.ABORTED)))
         & (emits(Finish, outcome=Outcome.BLOCKED) == (running & (then.phase == Phase.BLOCKED)))),
    Step("only a message ends the rest after a run", implies(resting & not_(one_of(then.phase, Phase.IDLE, *TERMINAL)), on(UserPrompted)),
         requirements="R-LOOP-2"),
    Step("an outcome stands until the next run", implies(resting & one_of(then.phase, Phase.IDLE, *TERMINAL), then.phase == now.phase),
         requirements="R-LOOP-2", harm="a run that completed is shown as aborted"),
    Step("a run that errored says why, and no other does", requirements="R-LOOP-3", holds=
         (count(PublishError) == count(Finish, outcome=Outcome.ERRORED)) & (emits(PublishError) == emits(PublishError, cause=then.cause)),
         harm="exit status 0, no error event, and half an answer"),
    Always("a cause belongs to a run that errored", (now.cause != Cause.NONE) == (now.phase == Phase.ERRORED), requirements="R-LOOP-3"),
    never("a run completes on content-filter, length or error",
          (now.phase == Phase.COMPLETED) & one_of(now.ending, Ending.CONTENT_FILTER, Ending.LENGTH, Ending.ERROR), requirements="R-LOOP-16",
          harm="a cut or censored answer passes for the whole"),
    *(Step(f"a step that ends {ending.value} without results errs as {cause.value}", requirements="R-LOOP-16", holds=
           implies(on(StepRecorded) & taken() & (now.ending == ending) & one_of(now.content, *content),
                   (then.phase == Phase.ERRORED) & (then.cause == cause)))
      for ending, cause, content in (
          (Ending.LENGTH, Cause.LENGTH, (Content.NOTHING, Content.TEXT, Content.HOSTED, Content.HELD)),
          (Ending.CONTENT_FILTER, Cause.CONTENT_FILTER, (Content.NOTHING, Content.TEXT, Content.HOSTED, Content.RESULT)),
          (Ending.ERROR, Cause.PROVIDER, (Content.NOTHING, Content.TEXT, Content.HOSTED, Content.RESULT)),
          (Ending.FATAL, Cause.PROVIDER, tuple(Content)))),
    Step("an empty stop is marked or asked again, never silent", requirements="R-LOOP-16", holds=
         implies(on(StepRecorded) & taken() & (now.ending == Ending.STOP) & nothing_kept,
                 emits(WarnEmpty) | emits(DiscardAttempt) | emits(PublishError)),
         harm="the run is recorded as a success without a word"),
    Step("a first answer without a word is asked again, or errs", requirements="R-LOOP-16", holds=
         implies(on(StepRecorded) & taken() & (now.ending == Ending.STOP) & nothing_kept & (recorded.wanted == Wanted.ANSWER),
                 not_(then.answered) & (then.repeat | over)),
         harm="the run is recorded as a success without a word"),
    Step("an empty stop after results is an answer", requirements="R-LOOP-16", holds=
         implies(on(StepRecorded) & taken() & (now.ending == Ending.STOP) & nothing_kept & (recorded.wanted == Wanted.NOTHING),
                 then.answered & emits(WarnEmpty) & not_(emits(AppendContinue))),
         harm="a harness says continue to a model that is done"),
    Step("a rejected call blocks the run", requirements="R-LOOP-15", holds=
         implies(on(StepRecorded) & taken() & (now.content == Content.REJECTED) & not_(one_of(now.ending, Ending.FATAL, Ending.CAPTURED)),
                 then.phase == Phase.BLOCKED), harm="a run stopped by a no looks finished"),
    Step("only a rejection blocks", implies(running & (then.phase == Phase.BLOCKED), now.content == Content.REJECTED),
         requirements="R-LOOP-15"),
    Step("a rejection is not forgotten within its step", requirements="R-LOOP-15", holds=
         implies(on(CallEnded) & taken() & ((ended.result == CallResult.REJECTED) | (now.content == Content.REJECTED))
                 & (now.phase != Phase.STOPPING), then.content == Content.REJECTED)),
    Step("what ends the turn for one guard is terminal for the other", requirements="R-LOOP-8", holds=
         implies(on(StepRecorded) & taken(), implies(then.answered, terminal)),
         harm="one guard goes on where the other stops, or stops where it goes on"),
    Step("a completion with words is an answer", requirements="R-LOOP-8", holds=
         implies(on(StepRecorded) & taken() & ((now.ending == Ending.CAPTURED) | ((now.ending == Ending.STOP)
                 & one_of(now.content, Content.TEXT, Content.HOSTED) & (recorded.wanted != Wanted.STRUCTURED))), then.answered),
         harm="a finished turn is sampled again"),
    Step("the exit guard lets an answer out, and nothing else", requirements="R-LOOP-8", holds=
         implies(on(HistoryLoaded) & taken(), implies(then.phase == Phase.COMPLETED, out) & implies(out, (then.phase == Phase.COMPLETED)
                 | ((then.phase == Phase.COMPACTING) & then.answered)))),
    *(Sometimes(f"a run errs as {cause.value}", now.cause == cause, requirements="R-LOOP-2") for cause in Cause if cause is not Cause.NONE),
    *(Sometimes(f"a run ends {phase.value}", now.phase == phase, requirements="R-LOOP-2") for phase in TERMINAL),
    Sometimes("a captured output completes a run", (now.phase == Phase.COMPLETED) & (now.ending == Ending.CAPTURED),
         requirements="R-LOOP-1"),
)  # fmt: skip

TRY_PROPERTIES: tuple[Property, ...] = (
    Always("tries stay within their budgets", requirements="R-LOOP-4", harm="a request storm: 1,661 turns in 88 seconds", holds=
           (now.retries <= now.retry_limit) & (now.resamples <= now.resample_limit) & (now.continues <= now.continue_limit)
           & (now.compactions <= now.compaction_limit)),
    Step("a step that brought nothing spends a budget or ends the run", requirements=("R-LOOP-3", "R-LOOP-4", "R-LOOP-27"), holds=
         implies(on(StepRecorded) & taken() & barren & (recorded.wanted != Wanted.NOTHING),
                 over | (then.resamples == now.resamples + 1) | (then.continues == now.continues + 1)),
         harm="an endless loop on a provider that never says why it stopped"),
    Step("a request is repeated only out of a budget", requirements="R-LOOP-4", holds=
         implies(then.repeat & not_(now.repeat), (then.resamples == now.resamples + 1) | (then.retries == now.retries + 1))),
    Step("the same request is sent again only where that was decided", requirements=("R-LOOP-4", "R-LOOP-25"), holds=
         implies(emits(Sample), emits(Sample, request=Request.SAME) == now.repeat)),
    Step("a discarded attempt is repeated, and only a discarded one", requirements="R-LOOP-25", holds=
         emits(DiscardAttempt) == (then.repeat & not_(now.repeat)), harm="an empty assistant message stands in the next request"),
    Step("nothing is repeated after text, or a call that was run, held back or hosted", requirements=("R-LOOP-5", "R-LOOP-26"), holds=
         implies(emits(DiscardAttempt) | (then.repeat & not_(now.repeat)), nothing_kept),
         harm="a side effect happens twice, or an answer is thrown away"),
    Step("what arrives is remembered until the step is judged", requirements=("R-LOOP-5", "R-LOOP-26"), holds=
         implies(on(TextArrived, HostedCallSeen, CallCompleted, CallEnded) & taken() & (now.phase != Phase.STOPPING), kept)
         & implies(not_(nothing_kept) & not_(kept), (on(StepRecorded) & taken()) | on(Cancelled))
         & implies(one_of(now.content, *RAN) & not_(one_of(then.content, *RAN)), (on(StepRecorded) & taken()) | on(Cancelled)),
         harm="a side effect happens twice, or an answer is thrown away"),
    Step("what is incomplete and kept is continued, not repeated", requirements="R-LOOP-26", holds=
         implies(on(StepRecorded) & taken() & not_(nothing_kept) & not_(over), not_(emits(DiscardAttempt)) & not_(then.repeat))),
    Step("the model is asked to go on only if something incomplete was kept", requirements="R-LOOP-26", holds=
         implies(emits(AppendContinue), on(StepRecorded) & not_(nothing_kept) & not_(completion))),
    Step("a step that left nothing is followed by a wait, never at once by a request", requirements="R-LOOP-9", holds=
         implies(on(StepRecorded) & taken() & nothing_kept & (now.ending != Ending.OVERFLOW),
                 over | then.answered | (starts_wait() & one_of(then.phase, Phase.RETRY_WAIT, Phase.RESAMPLE_WAIT))),
         harm="the provider is hit as fast as it answers"),
    Step("the same request is built only once a wait is over", requirements="R-LOOP-9", holds=
         implies(emits(BuildRequest, request=Request.SAME), on(RetryDue, ResampleDue) & now.repeat)
         & implies(on(HistoryLoaded) & taken(), not_(then.repeat))),
    Step("a wait is shown, and nothing else is shown as one", starts_wait() == emits(PublishStatus, status=Status.WAITING),
         requirements="R-LOOP-9",
         harm="a user sees a session that looks stuck"),
    Step("a wait ends by its timer, or by a cancel", requirements="R-LOOP-9", holds=
         implies(one_of(now.phase, Phase.RETRY_WAIT, Phase.RESAMPLE_WAIT, Phase.CONTINUE_WAIT) & (then.phase != now.phase),
                 on(RetryDue, ResampleDue, ContinueDue, Cancelled))),
    Step("an incomplete step is logged once, whatever follows", requirements="R-LOOP-23", holds=
         implies(on(StepRecorded) & taken() & (no_finish | no_call) & (now.content != Content.REJECTED)
         & (recorded.wanted != Wanted.STRUCTURED)
                 & not_((now.ending == Ending.TOOL_CALLS) & one_of(now.content, Content.CUT_CALL, Content.TEXT_AND_CUT_CALL)),
                 count(WarnIncomplete) == 1), harm="half an answer leaves no trace"),
    Step("a warning of an incomplete step is about one", implies(emits(WarnIncomplete), on(StepRecorded) & (no_finish | no_call)),
         requirements="R-LOOP-23"),
    Step("results go back to the model as an ordinary step", requirements=("R-LOOP-28", "R-LOOP-5"), holds=
         implies(on(StepRecorded) & taken() & (now.content == Content.RESULT)
         & one_of(now.ending, Ending.STOP, Ending.TOOL_CALLS, Ending.LENGTH,
                 Ending.UNKNOWN, Ending.ABSENT),
                 ((then.phase == Phase.DECIDING) | (then.phase == Phase.COMPACTING)) & not_(then.answered) & not_(emits(DiscardAttempt))
                 & (then.resamples <= now.resamples) & (then.continues <= now.continues)),
         harm="work that was done is asked for again"),
    Step("a try spends its own budget and leaves the others alone", requirements="R-LOOP-19", holds=
         implies(then.retries > now.retries, (then.retries == now.retries + 1) & (then.resamples == now.resamples)
         & (then.continues == now.continues))
         & implies(then.resamples > now.resamples, (then.resamples == now.resamples + 1) & (then.retries == now.retries)
                   & (then.continues == now.continues))
         & implies(then.continues > now.continues, (then.continues == now.continues + 1) & (then.retries == now.retries)
                   & (then.resamples == now.resamples))),
    Step("an error of the provider spends no budget of dead streams, nor the other way round", requirements="R-LOOP-19", holds=
         implies((then.retries > now.retries), now.ending == Ending.RETRYABLE)
         & implies((then.resamples > now.resamples) | (then.continues > now.continues), now.ending != Ending.RETRYABLE)),
    Step("only progress or the end of the run refills a budget", requirements=("R-LOOP-4", "R-LOOP-19"), holds=
         implies((then.retries < now.retries) | (then.resamples < now.resamples) | (then.continues < now.continues),
                 over | on(Cancelled) | (on(StepRecorded) & (then.answered | (now.content == Content.RESULT))
                 & (now.ending != Ending.RETRYABLE)))),
    Step("progress refills every budget of tries", requirements="R-LOOP-19", holds=
         implies(on(StepRecorded) & taken() & not_(over) & (then.answered | ((now.content == Content.RESULT)
         & (now.ending != Ending.RETRYABLE)
                 & (now.ending != Ending.OVERFLOW))), (then.retries == 0) & (then.resamples == 0) & (then.continues == 0)),
         harm="a long run errs for a few bad streams, hours apart"),
    Step("an error that will come again is not tried again", requirements="R-LOOP-4", holds=
         implies(on(StepRecorded) & taken() & (now.ending == Ending.FATAL), then.phase == Phase.ERRORED)),
    Step("every sample is of a request built for it", implies(emits(Sample), on(Prepared) & (now.phase == Phase.PREPARING)
         & (then.generation == prepared.call)),
         requirements="R-LOOP-4"),
    Sometimes("a dead stream is sampled again, and that answers", on(StepRecorded) & (now.resamples > 0) & then.answered,
              requirements="R-LOOP-22"),
    Sometimes("the same request is sent again", emits(Sample, request=Request.SAME), requirements="R-LOOP-25"),
    Sometimes("the model is asked to go on", emits(AppendContinue), requirements="R-LOOP-26"),
    Sometimes("an error after a result waits for a new step", (now.phase == Phase.RETRY_WAIT) & not_(now.repeat), requirements="R-LOOP-28"),
)  # fmt: skip
