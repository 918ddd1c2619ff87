"""The judge of a step, and what it shares with the rest of the loop: symbols, budgets, the states after a step, pass or run.

A step is judged by how its stream ended and by the most telling thing it left, nothing else: no usage, no price, no clock. The
first row that matches wins. These rows, the two that end a compaction, and the row that completes a run are what the variants of
upstream's history replace.
"""

from __future__ import annotations

from attrs import evolve

from turnproof.machines.kernel import NOBODY, Duration, Row, StartTimer, choose, latest, named, not_, one_of, only_if, symbol
from turnproof.machines.turn_loop_events import (
    AppendContinue,
    CallBegan,
    CallCompleted,
    CallEnded,
    CompactionEnded,
    DiscardAttempt,
    Effect,
    Finish,
    HistoryLoaded,
    HostedCallSeen,
    OutputCaptured,
    PreparationFailed,
    Prepared,
    PublishError,
    PublishIdle,
    PublishStatus,
    ReadHistory,
    ReasoningArrived,
    StartQueued,
    StepFinished,
    StepRecorded,
    StreamBroke,
    StreamEnded,
    SubtaskEnded,
    TextArrived,
    UserPrompted,
    WarnEmpty,
    WarnIncomplete,
)
from turnproof.machines.turn_loop_words import (
    EMPTY,
    WORDS,
    Cause,
    Content,
    Ending,
    Outcome,
    Phase,
    Status,
    Timer,
    TurnLoop,
    Wanted,
)

(IDLE, DECIDING, PREPARING, STREAMING, DRAINING, SETTLING, JUDGING, RETRY_WAIT, RESAMPLE_WAIT, CONTINUE_WAIT, COMPACTING, SUBTASK,
 STOPPING, COMPLETED, ERRORED, ABORTED, BLOCKED) = Phase  # fmt: skip
R = Row[TurnLoop, Effect]


# ── timers ──

BACKOFF_MS = (2_000, 4_000, 8_000, 16_000, 30_000)
"""Least wait before the first, second, ... try; the last holds for all that follow (OpenCode ``session/retry.ts`` @982a9044c)."""
RETRY_MS = Duration(BACKOFF_MS[0], "OpenCode session/retry.ts @982a9044c: 2 s, doubled up to 30 s; an explicit hint is a minimum")
RESAMPLE_MS = Duration(BACKOFF_MS[0], "own decision: as long as a retry; upstream's plain fix waits 0 ms and storms (#49414)")
CONTINUE_MS = Duration(BACKOFF_MS[0], "upstream's core runner backs off from 2 s before it continues")
GRACE_MS = Duration(250, "OpenCode session/processor.ts @982a9044c: what a call that still runs gets at cleanup")


# ── symbols ──

now = symbol(TurnLoop)
prompt, loaded, prepared, misprepared = symbol(UserPrompted), symbol(HistoryLoaded), symbol(Prepared), symbol(PreparationFailed)
reasoning, text, began, completed = symbol(ReasoningArrived), symbol(TextArrived), symbol(CallBegan), symbol(CallCompleted)
hosted, ended, captured, finished = symbol(HostedCallSeen), symbol(CallEnded), symbol(OutputCaptured), symbol(StepFinished)
closed, broke, recorded = symbol(StreamEnded), symbol(StreamBroke), symbol(StepRecorded)
compacted, subtask = symbol(CompactionEnded), symbol(SubtaskEnded)

empty = named("nothing to keep", one_of(now.content, *EMPTY))
words = named("words", one_of(now.content, *WORDS))
results = named("results", now.content == Content.RESULT)
cut_call = named("cut call", one_of(now.content, Content.CUT_CALL, Content.TEXT_AND_CUT_CALL))
unfinished = named("no known finish", one_of(now.ending, Ending.UNKNOWN, Ending.ABSENT))
broken = named("provider error", now.ending == Ending.RETRYABLE)
out_of_steps = named("out of steps", now.limited & (now.steps_left == 0))
may_retry = named("may retry", now.retries < now.retry_limit)
may_resample = named("may resample", now.resamples < now.resample_limit)
may_continue = named("may continue", now.continues < now.continue_limit)
start_queued = only_if(now.prompted, StartQueued())
read_on = (PublishStatus(Status.BUSY), ReadHistory())


def mine(generation: str) -> bool:
    """What happened belongs to the present piece of work."""
    return named("present", generation == now.generation)


# ── the states after a step, a pass, a run ──


def step_over(*, ending: Ending = Ending.OPEN, answered: bool = False) -> TurnLoop:
    """A step was judged: what it left is in the history now, no longer here."""
    return evolve(now, ending=ending, content=Content.NOTHING, answered=answered, raw="", retry_at_ms=0)


def progressed(state: TurnLoop) -> TurnLoop:
    """The step brought something: every budget of tries is full again. No budget refills another (R-LOOP-19)."""
    return evolve(state, retries=0, resamples=0, continues=0)


def step_begun(*, ending: Ending = Ending.OPEN, answered: bool = False) -> TurnLoop:
    """The history was read with every message so far, and a pass through the loop begins."""
    return evolve(now, ending=ending, answered=answered, prompted=False, steps_left=choose(now.limited, now.steps_left - 1, 0))


def over(cause: Cause = Cause.NONE, *, ending: Ending = Ending.OPEN) -> TurnLoop:
    """A run has its outcome: nothing of it is left but that and a message it did not read."""
    return evolve(step_over(ending=ending), generation=NOBODY, open_calls=0, repeat=False, limited=False, steps_left=0, retries=0,
                  resamples=0, continues=0, compactions=0, cause=cause)  # fmt: skip


def errored(cause: Cause) -> tuple[Effect, ...]:
    """What everybody is told of a run that errored."""
    return (PublishError(cause, now.raw), Finish(Outcome.ERRORED), PublishIdle())


def earliest(tries: int) -> int:
    """When the next try may begin, on the shell's clock: by our schedule, and not before the provider's hint (R-LOOP-14)."""
    wait = BACKOFF_MS[-1]
    for number, milliseconds in reversed(tuple(enumerate(BACKOFF_MS[:-1]))):
        wait = choose(tries == number, milliseconds, wait)
    return latest(now.retry_at_ms, recorded.at_ms + wait)


# ── the judge ──


def judged(name: str, when: bool, to: Phase, data: TurnLoop, *emit: Effect, because: str = "") -> R:
    """A row of the judge."""
    return R(recorded, at=JUDGING, when=mine(recorded.generation) & when, to=to, data=data, emit=emit, because=because,
             name=f"StepRecorded/{name}")  # fmt: skip


def errs(name: str, when: bool, cause: Cause, *before: Effect) -> R:
    """A row of the judge that ends the run as errored."""
    return judged(name, when, ERRORED, over(cause), *before, *errored(cause), start_queued)


warn = WarnIncomplete(now.raw)
wait_retry = (PublishStatus(Status.WAITING), StartTimer(Timer.RETRY, earliest(now.retries)))
wait_resample = (PublishStatus(Status.WAITING), StartTimer(Timer.RESAMPLE, earliest(now.resamples)))
wait_continue = (PublishStatus(Status.WAITING), StartTimer(Timer.CONTINUE, earliest(now.continues)))
to_retry = evolve(step_over(), retries=now.retries + 1)
to_resample = evolve(step_over(), repeat=True, resamples=now.resamples + 1)
answer = progressed(step_over(ending=now.ending, answered=True))

JUDGE: tuple[R, ...] = (
    # ── ends that leave no choice ──
    judged("captured", now.ending == Ending.CAPTURED, DECIDING, answer, *read_on),
    errs("fatal", now.ending == Ending.FATAL, Cause.PROVIDER),
    judged("rejected", now.content == Content.REJECTED, BLOCKED, over(), Finish(Outcome.BLOCKED), PublishIdle(), start_queued,
           because="Not completed: a person said no and nothing more, and must be asked before anything goes on (R-LOOP-15)."),
    errs("content filter", now.ending == Ending.CONTENT_FILTER, Cause.CONTENT_FILTER),
    errs("error", now.ending == Ending.ERROR, Cause.PROVIDER),
    judged("overflow", now.ending == Ending.OVERFLOW, DECIDING, step_over(ending=now.ending), *read_on,
           because="Whether there is something to sum up, and whether it may be, the history says."),

    # ── results go back to the model, however the stream ended: what ran is not asked for twice (R-LOOP-28) ──
    judged("results, then an error", results & broken & may_retry, RETRY_WAIT, to_retry, *wait_retry,
           because="A new step, not the same request: that one does not know the results (the hazard of upstream's row 21). The error "
                   "counts in spite of the results, so that a provider that always breaks is given up."),
    errs("results, then an error again", results & broken, Cause.PROVIDER),
    judged("results", results, DECIDING, progressed(step_over()), only_if(unfinished, warn), *read_on),

    # ── real ends ──
    errs("length", (now.ending == Ending.LENGTH) | ((now.ending == Ending.TOOL_CALLS) & cut_call), Cause.LENGTH),
    errs("unstructured", (recorded.wanted == Wanted.STRUCTURED) & not_(broken), Cause.UNSTRUCTURED),
    judged("answer", (now.ending == Ending.STOP) & words, DECIDING, answer, *read_on),
    judged("empty after results", (now.ending == Ending.STOP) & (recorded.wanted == Wanted.NOTHING), DECIDING, answer,
           WarnEmpty(), *read_on, because="Legitimate: the calls said it all. No message is injected (google-gemini/gemini-cli#26340)."),
    judged("empty", (now.ending == Ending.STOP) & may_resample, RESAMPLE_WAIT, to_resample, DiscardAttempt(), *wait_resample),
    errs("empty again", now.ending == Ending.STOP, Cause.EMPTY),

    # ── errors of the provider, on their own budget ──
    judged("error before anything", broken & empty & may_retry, RETRY_WAIT, evolve(to_retry, repeat=True), DiscardAttempt(), *wait_retry),
    judged("error after something", broken & not_(out_of_steps) & may_retry, RETRY_WAIT, to_retry, AppendContinue(), *wait_retry),
    errs("error again", broken, Cause.PROVIDER),

    # ── dead streams: no known finish, or a call that was announced and never came ──
    judged("dead before anything", empty & may_resample, RESAMPLE_WAIT, to_resample, warn, DiscardAttempt(), *wait_resample),
    judged("dead after something", not_(empty) & not_(out_of_steps) & may_continue, CONTINUE_WAIT,
           evolve(step_over(), continues=now.continues + 1), warn, AppendContinue(), *wait_continue),
    R(recorded, at=JUDGING, when=mine(recorded.generation), to=ERRORED, data=over(Cause.INCOMPLETE), name="StepRecorded/dead again",
      emit=(warn, *errored(Cause.INCOMPLETE), start_queued)),
    R(StepRecorded, ignore="no step is being recorded"),
)  # fmt: skip
"""The rows of ``StepRecorded``."""
