"""What must hold of the work of a turn loop: its calls, its cancel, stale answers, compactions, steps and messages."""

from __future__ import annotations

from turnproof.machines.finish_reason import FinishReason
from turnproof.machines.kernel import NOBODY, StartTimer, StopTimer, any_of, implies, named, not_, one_of
from turnproof.machines.turn_loop_events import (
    AbortCalls,
    AbortCompaction,
    AbortStream,
    AbortSubtask,
    BuildRequest,
    CallCompleted,
    CallEnded,
    Cancelled,
    CompactionEnded,
    DropHeldCalls,
    Finish,
    HistoryLoaded,
    KeepMessage,
    MarkOrphans,
    Prepared,
    PublishIdle,
    ReadHistory,
    RecordStep,
    RunHeldCalls,
    RunTool,
    Sample,
    StartCompaction,
    StartQueued,
    StartSubtask,
    StepFinished,
    StreamEnded,
    UserPrompted,
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
    loaded,
    misprepared,
    now,
    prepared,
    prompt,
    reasoning,
    recorded,
    subtask,
    text,
)
from turnproof.machines.turn_loop_words import (
    TERMINAL,
    CompactionResult,
    Content,
    Ending,
    Phase,
    Room,
    Source,
    Task,
    Timer,
    TurnLoop,
)
from turnproof.specs.language import Always, Fair, LeadsTo, Property, Sometimes, Step, after, count, emits, never, on, refused, taken
from turnproof.specs.turn_loop_promises import GRACE, PATIENCE, PROMISES, WORK_ENDS, many_calls, resting, running

then = after(TurnLoop)
over = one_of(then.phase, *TERMINAL)
held = named("calls are held back", now.content == Content.HELD)
QUEUED = Fair("a queued run is begun", resting & now.prompted, on(UserPrompted) & taken())


def stale() -> bool:
    """The event answers another piece of work than the present one."""
    pairs = (
        (event, event.generation)
        for event in (loaded, prepared, misprepared, reasoning, text, began, completed, hosted, ended, captured, finished, closed,
                      broke, recorded, compacted, subtask)
    )  # fmt: skip
    return any_of(*(on(event) & (generation != now.generation) for event, generation in pairs))


CALL_PROPERTIES: tuple[Property, ...] = (
    Step("a complete call of the present stream is run or held back, once", requirements="R-LOOP-5", holds=
         implies(on(CallCompleted) & taken(), (then.open_calls == now.open_calls + 1)
                 & ((count(RunTool) == 1) == (then.content != Content.HELD)) & (count(RunTool) <= 1))),
    Step("a call is run only when it completes, or is released by a finish part", requirements="R-LOOP-5", holds=
         implies(emits(RunTool), on(CallCompleted)) & implies(emits(RunHeldCalls), on(StepFinished) & held),
         harm="a call runs that the model did not finish, or runs again"),
    Step("held calls are run only by a finish that asks for them", requirements="R-LOOP-5", holds=
         implies(emits(RunHeldCalls), one_of(then.ending, Ending.STOP, Ending.TOOL_CALLS))),
    Step("calls are run only in a live stream", implies(emits(RunTool) | emits(RunHeldCalls), (now.phase == Phase.STREAMING)
         & (then.phase == Phase.STREAMING)), requirements=("R-LOOP-5", "R-LOOP-10")),
    Always("calls are open only while a step is", requirements="R-LOOP-6",
         harm="a call shows as running for ever in a session that is idle", holds=
           implies(now.open_calls > 0, one_of(now.phase, Phase.STREAMING, Phase.DRAINING, Phase.SETTLING, Phase.STOPPING))),
    Always("draining and settling wait for calls", implies(one_of(now.phase, Phase.DRAINING, Phase.SETTLING), now.open_calls > 0),
         requirements="R-LOOP-6",
           harm="a step waits for nothing"),
    Always("held calls are open calls that nobody runs", implies(held, (now.open_calls > 0) == (now.phase == Phase.STREAMING)),
         requirements="R-LOOP-6"),
    Step("an open call goes by its end, as an orphan, or as not run", requirements="R-LOOP-6", holds=
         implies(then.open_calls < now.open_calls, (on(CallEnded) & (then.open_calls == now.open_calls - 1)) | emits(MarkOrphans)
         | emits(DropHeldCalls)),
         harm="a tool part stays pending in the history"),
    Step("calls still open when a run is over are written down", requirements=("R-LOOP-6", "R-LOOP-2"), holds=
         implies(emits(Finish) & (now.open_calls > 0), emits(MarkOrphans) | (on(CallEnded) & (now.open_calls == 1)))),
    Step("idle is published only once no call is open", implies(emits(PublishIdle), then.open_calls == 0),
         requirements=("R-LOOP-2", "R-LOOP-6"),
         harm="a client is told that nothing runs while a call still writes files"),
    Step("a call that ran is never said to be not run", requirements="R-LOOP-7", holds=
         implies(emits(DropHeldCalls), held), harm="the model runs again what may have happened"),
    Step("what is written down as unknown was run", implies(emits(MarkOrphans), not_(held) & (now.open_calls > 0)),
         requirements="R-LOOP-7"),
    Step("a step is over only once its calls are", requirements="R-LOOP-6", holds=
         implies(then.phase == Phase.JUDGING, then.open_calls == 0)),
    Step("a step is recorded exactly when it is over", requirements="R-LOOP-6", holds=
         emits(RecordStep) == (((then.phase == Phase.JUDGING) & (now.phase != Phase.JUDGING))
                               | ((now.phase == Phase.STOPPING) & (then.phase == Phase.ABORTED)))),
    Step("a stream that is over is judged only after its calls ended", requirements="R-LOOP-28", holds=
         implies(on(StreamEnded) & taken() & (now.phase == Phase.STREAMING) & (now.open_calls > 0)
         & not_(held), then.phase == Phase.DRAINING)),
    Step("a result is remembered through the step", requirements="R-LOOP-28", holds=
         implies(on(CallEnded) & taken() & (now.phase != Phase.STOPPING), one_of(then.content, Content.RESULT, Content.REJECTED))),
    Sometimes("two calls run at once", (now.open_calls == 2) & (now.content == Content.DISPATCHED), requirements="R-LOOP-5"),
    Sometimes("two held calls are released", emits(RunHeldCalls) & (now.open_calls == 2), requirements="R-LOOP-5"),
    Sometimes("held calls are dropped with a dead stream", emits(DropHeldCalls) & on(StreamEnded), requirements="R-LOOP-7"),
    Sometimes("an orphan is marked and the run still errs", emits(MarkOrphans) & (then.phase == Phase.JUDGING), requirements="R-LOOP-7"),
)  # fmt: skip

CANCEL_PROPERTIES: tuple[Property, ...] = (
    Step("a cancel of a run stops it", requirements="R-LOOP-10", holds=
         implies(on(Cancelled) & running, one_of(then.phase, Phase.STOPPING, Phase.ABORTED)),
         harm="the first cancel ends only the stream, and the loop begins again"),
    Step("a run that is being stopped ends aborted", implies(now.phase == Phase.STOPPING, one_of(then.phase, Phase.STOPPING,
         Phase.ABORTED)),
         requirements="R-LOOP-10", harm="a cancelled run completes, or goes on"),
    Step("a cancel samples nothing, runs nothing, and arms nothing but the grace timer", requirements="R-LOOP-10", holds=
         implies(on(Cancelled) | (now.phase == Phase.STOPPING), not_(emits(Sample)) & not_(emits(RunTool)) & not_(emits(RunHeldCalls))
                 & (count(StartTimer) == count(StartTimer, timer=Timer.GRACE)) & not_(emits(StartCompaction)) & not_(emits(StartSubtask)))),
    Step("a cancel lets go of the stream, the calls, the summary and the child", requirements="R-LOOP-10", holds=
         implies(on(Cancelled) & (now.phase == Phase.STREAMING), emits(AbortStream) & (emits(AbortCalls) == ((now.open_calls > 0)
         & not_(held))))
         & implies(on(Cancelled) & (now.phase == Phase.DRAINING), emits(AbortCalls))
         & implies(on(Cancelled) & (now.phase == Phase.COMPACTING), emits(AbortCompaction))
         & implies(on(Cancelled) & (now.phase == Phase.SUBTASK), emits(AbortSubtask)),
         harm="a call goes on writing files after the user said stop"),
    Step("a cancel in a wait ends the run at once", requirements="R-LOOP-10", holds=
         implies(on(Cancelled) & one_of(now.phase, Phase.RETRY_WAIT, Phase.RESAMPLE_WAIT, Phase.CONTINUE_WAIT),
                 (then.phase == Phase.ABORTED) & (count(StopTimer) == 1)), harm="a message without error and without finish"),
    Step("only a cancel aborts", implies(running & one_of(then.phase, Phase.STOPPING, Phase.ABORTED), on(Cancelled)
         | (now.phase == Phase.STOPPING)),
         requirements="R-LOOP-2"),
    Step("after a cancel no harness starts a run", requirements="R-LOOP-10", holds=
         implies(on(UserPrompted) & (prompt.source == Source.HARNESS) & now.automation_off, refused()),
         harm="17 automatic prompts in 55 seconds that no cancel stops"),
    Step("a cancel turns automation off until a person speaks", requirements="R-LOOP-10", holds=
         implies(on(Cancelled), then.automation_off) & implies(now.automation_off & not_(then.automation_off), on(UserPrompted)
                 & (prompt.source != Source.HARNESS))),
    LeadsTo("a run that is being stopped is over soon", now.phase == Phase.STOPPING, now.phase != Phase.STOPPING, requirements="R-LOOP-10",
            fairness=(GRACE,)),
    Sometimes("a cancel lands in a wait for a retry", on(Cancelled) & (now.phase == Phase.RETRY_WAIT) & (then.phase == Phase.ABORTED),
              requirements="R-LOOP-10"),
    Step("what answers another piece of work changes nothing", implies(stale(), not_(taken())), requirements=("R-LOOP-11", "R-LOOP-32"),
         harm="a late result of an old run ends the new one"),
    Step("an answer of the present piece of work is refused by nobody", requirements="R-LOOP-11", holds=
         implies(not_(stale()) & not_(on(UserPrompted)) & refused(), on(StepFinished) | (on(Prepared) & (prepared.call == NOBODY)))),
    Step("a new piece of work has a new identity", requirements=("R-LOOP-11", "R-LOOP-32"), holds=
         implies(on(Prepared) & taken(), then.generation == prepared.call)
         & implies(on(UserPrompted) & taken() & (resting | (now.phase == Phase.DECIDING)), then.generation == prompt.generation)),
    Always("a run that is over has no identity", (now.generation == NOBODY) == resting, requirements=("R-LOOP-11", "R-LOOP-32")),
    Sometimes("a late result is ignored", on(CallEnded) & not_(taken()) & running, requirements="R-LOOP-11"),
)  # fmt: skip

WORK_PROPERTIES: tuple[Property, ...] = (
    Step("a compaction counts only with a summary", requirements="R-LOOP-12", holds=
         implies((now.phase == Phase.COMPACTING) & (then.phase == Phase.DECIDING),
                 on(CompactionEnded) & (compacted.result == CompactionResult.SUMMARY)),
         harm="the conversation is cut behind an empty summary"),
    Step("a failed compaction errs", requirements="R-LOOP-12", holds=
         implies((now.phase == Phase.COMPACTING) & on(CompactionEnded) & taken()
         & (compacted.result != CompactionResult.SUMMARY), then.phase == Phase.ERRORED)),
    Step("an automatic compaction spends its budget", requirements="R-LOOP-12", holds=
         implies(emits(StartCompaction) & not_(on(HistoryLoaded)
         & (loaded.task == Task.COMPACTION)), then.compactions == now.compactions + 1),
         harm="overflow, compact, overflow, for ever"),
    Step("only a request that fitted refills the budget of compactions", requirements=("R-LOOP-12", "R-LOOP-18"), holds=
         implies(then.compactions < now.compactions, over | on(Cancelled)
                 | (on(StepFinished) & one_of(finished.reason, FinishReason.STOP, FinishReason.TOOL_CALLS))),
         harm="a dead step has no usage, and looks as if all were well"),
    Step("without automatic compaction none is started", requirements="R-LOOP-12", holds=
         implies(emits(StartCompaction), on(HistoryLoaded) & ((loaded.room != Room.NO_COMPACTION) | (loaded.task == Task.COMPACTION)))),
    Step("a compaction is for want of room, or asked for", requirements="R-LOOP-12", holds=
         implies(emits(StartCompaction) & on(HistoryLoaded), (loaded.room == Room.OVER) | (now.ending == Ending.OVERFLOW)
                 | (loaded.task == Task.COMPACTION))),
    Step("what the provider calls too long is not sent again as it is", requirements="R-LOOP-12", holds=
         implies((now.phase == Phase.DECIDING) & (now.ending == Ending.OVERFLOW), not_(emits(BuildRequest))),
         harm="overflow, again and again, for the same request"),
    Sometimes("a second overflow errs", on(HistoryLoaded) & (now.ending == Ending.OVERFLOW) & (now.compactions > 0)
         & (then.phase == Phase.ERRORED),
              requirements="R-LOOP-12"),
    Step("a pass through the loop takes a step", requirements="R-LOOP-17", holds=
         implies(now.limited & running & not_(over) & not_(then.phase == Phase.STOPPING),
                 (then.steps_left == now.steps_left)
                 | (on(HistoryLoaded) & (now.steps_left > 0) & (then.steps_left == now.steps_left - 1)))
         & implies(on(HistoryLoaded) & taken() & now.limited & one_of(then.phase, Phase.PREPARING, Phase.SUBTASK),
                   then.steps_left == now.steps_left - 1)),
    Step("after the limit step no step begins", requirements="R-LOOP-17", holds=
         implies(now.limited & (now.steps_left == 0) & on(HistoryLoaded) & taken(),
                 over | ((then.phase == Phase.COMPACTING) & then.answered)), harm="a limited agent goes on for ever"),
    Step("the limit step is sampled as such", requirements="R-LOOP-17", holds=
         implies(emits(Sample), emits(Sample, last_step=True) == (now.limited & (now.steps_left == 0)))),
    Always("the limit is set where it counts", implies(now.steps_left > 0, now.limited), requirements="R-LOOP-17"),
    Sometimes("the limit step is sampled", emits(Sample, last_step=True), requirements="R-LOOP-17"),
    Step("a message is kept, or came out of the queue, or is refused", requirements="R-LOOP-13", holds=
         implies(on(UserPrompted) & (prompt.source != Source.QUEUE), emits(KeepMessage) | refused()), harm="a message vanishes"),
    Step("a message that came is not forgotten before it is read", requirements="R-LOOP-13", holds=
         implies(now.prompted & not_(then.prompted), on(Cancelled) | (on(HistoryLoaded) & taken())
                 | ((now.phase == Phase.DECIDING) & (then.phase == Phase.ERRORED))), harm="a message is lost"),
    Step("what was read while a message came is read again", requirements="R-LOOP-13", holds=
         implies(on(UserPrompted) & taken() & (now.phase == Phase.DECIDING), emits(ReadHistory) & (then.generation == prompt.generation)
         & then.prompted)),
    never("a run completes while a message waits", (now.phase == Phase.COMPLETED) & now.prompted, requirements="R-LOOP-13",
          harm="a message is never answered"),
    Step("a message that a run leaves unread begins its own", requirements="R-LOOP-13", holds=
         implies(emits(Finish), emits(StartQueued) == then.prompted), harm="a message waits for the next one"),
    Step("a queue that was cancelled begins nothing", requirements=("R-LOOP-10", "R-LOOP-13"), holds=
         implies(on(UserPrompted) & (prompt.source == Source.QUEUE) & not_(now.prompted), not_(taken())),
         harm="a message is answered twice"),
    Step("a running session has one run", requirements="R-LOOP-13", holds=
         implies(on(UserPrompted) & running, not_(emits(Finish)) & not_(emits(PublishIdle)) & (then.phase == now.phase))),
    Sometimes("a message joins a run", on(UserPrompted) & taken() & (now.phase == Phase.STREAMING), requirements="R-LOOP-13"),
    Sometimes("a message follows a run that is being stopped", emits(StartQueued) & (then.phase == Phase.ABORTED),
         requirements="R-LOOP-13"),
    LeadsTo("a message is read, or cancelled", now.prompted, not_(now.prompted) | many_calls, requirements="R-LOOP-13",
         harm="a message is never answered",
            fairness=(*PROMISES, QUEUED)),
    LeadsTo("a run with a limit of steps ends", running & now.limited, resting | many_calls, requirements="R-LOOP-2", fairness=PROMISES,
            harm="a session shows working for ever"),
    LeadsTo("a run without a limit ends if the model and the user let it", running, resting | many_calls, requirements="R-LOOP-2",
            fairness=(*WORK_ENDS, *PATIENCE), harm="a session shows working for ever"),
)  # fmt: skip
