"""Upstream's own judges of a step, and the designs of the turn loop that must fail.

``pre``, ``post`` and ``v2`` are OpenCode's policies at three times: 2026-03-27 to 1.18.20, since 1.18.21, and the later core runner.
Each is the loop with another judge: the rows of ``StepRecorded``, and for a compaction the row that accepts its summary. The exit
guard reads what the judge left, so it is replaced with it. Everything else is the same machine, so that bug, storm and cure are
three runs of one table.

| what differs | pre | post | v2 | bounded |
|---|---|---|---|---|
| unknown, no result of a local call | ends as an answer | next request at once, unbounded | tries, one budget for all | tries, bounded |
| absent, or a call that never came | next request at once, unbounded | as before | tries | tries, bounded |
| an error after a call was run | same request again | same request again | a new step | a new step |
| length, error | ends as an answer | ends as an answer | not known: as before | errored |
| an empty stop | ends as an answer | ends as an answer | ends as an answer | asked again, marked |
| a person rejects a call | ends, looks complete | the same | blocked | blocked |
| an empty summary | cuts the history | cuts the history | refused | refused |
"""

from __future__ import annotations

from attrs import evolve

from turnproof.machines.kernel import Row, named, not_, one_of
from turnproof.machines.turn_loop import MACHINE
from turnproof.machines.turn_loop_events import (
    AbortStream,
    AppendContinue,
    Cancelled,
    DiscardAttempt,
    Effect,
    Finish,
    PublishIdle,
)
from turnproof.machines.turn_loop_judge import (
    COMPACTING,
    COMPLETED,
    DECIDING,
    IDLE,
    RETRY_WAIT,
    STREAMING,
    broken,
    compacted,
    errs,
    judged,
    may_retry,
    mine,
    now,
    over,
    progressed,
    read_on,
    recorded,
    results,
    start_queued,
    step_over,
    wait_retry,
    warn,
)
from turnproof.machines.turn_loop_words import Cause, CompactionResult, Content, Ending, Outcome, Phase, TurnLoop, Wanted
from turnproof.specs.language import AnyMachine, Variant

R = Row[TurnLoop, Effect]

unknown = named("unknown", now.ending == Ending.UNKNOWN)
structured = recorded.wanted == Wanted.STRUCTURED
next_step = progressed(step_over())
ends_here = progressed(step_over(ending=now.ending, answered=True))
same_request = evolve(step_over(), repeat=True, retries=now.retries + 1)

JUDGE_ROWS = tuple(row.name for row in MACHINE.rows if row.event.__name__ == "StepRecorded" and row.answer == "taken")
KEPT = tuple(MACHINE.row(f"StepRecorded/{name}") for name in ("captured", "fatal", "content filter", "overflow"))
"""Rows of the judge on which everybody agrees."""


def upstream(unknown_ends: bool) -> tuple[R, ...]:
    """The judge of v1. The one difference between before and after 1.18.21 is whether ``unknown`` ends the turn."""
    return (
        *KEPT,
        judged("upstream/rejected", now.content == Content.REJECTED, COMPLETED, over(ending=now.ending), Finish(Outcome.COMPLETED),
               PublishIdle(), start_queued, because="The loop stops without an error: it looks as if the turn were complete (#47759)."),
        judged("upstream/error, any content", broken & may_retry, RETRY_WAIT, same_request, *wait_retry,
               because="The request built before the step is sent again, whatever the step has run."),
        errs("upstream/error again", broken, Cause.PROVIDER),
        errs("upstream/unstructured", structured & one_of(now.ending, Ending.STOP, Ending.LENGTH, Ending.ERROR), Cause.UNSTRUCTURED),
        judged("upstream/results", results, DECIDING, next_step, *read_on),
        judged("upstream/unknown", unknown, DECIDING, ends_here if unknown_ends else next_step, *read_on),
        judged("upstream/ends", one_of(now.ending, Ending.STOP, Ending.LENGTH, Ending.ERROR), DECIDING, ends_here, *read_on),
        R(recorded, at=Phase.JUDGING, when=mine(recorded.generation), to=DECIDING, data=next_step, emit=read_on,
          name="StepRecorded/upstream/no finish"),
    )  # fmt: skip


ANY_SUMMARY = R(
    compacted,
    at=COMPACTING,
    when=mine(compacted.generation) & one_of(compacted.result, CompactionResult.SUMMARY, CompactionResult.EMPTY),
    to=DECIDING,
    emit=read_on,
    name="CompactionEnded/any summary",
)


def with_judge(name: str, judge: tuple[R, ...], *, any_summary: bool = False) -> AnyMachine:
    """The loop with another judge."""
    return MACHINE.variant(name, drop=JUDGE_ROWS, first=judge, replace={"CompactionEnded/summary": ANY_SUMMARY} if any_summary else {})


started = named("output started", now.content != Content.NOTHING)
interrupted = named("a call was interrupted", now.content == Content.DISPATCHED)
failed = named(
    "failed attempt",
    one_of(now.ending, Ending.RETRYABLE, Ending.UNKNOWN, Ending.ABSENT) | ((now.ending == Ending.TOOL_CALLS) & not_(results)),
)

V2_JUDGE: tuple[R, ...] = (
    *KEPT,
    MACHINE.row("StepRecorded/rejected"),
    judged("v2/retry", failed & not_(started) & may_retry, RETRY_WAIT, same_request, DiscardAttempt(), *wait_retry),
    judged("v2/continue", failed & started & not_(interrupted) & may_retry, RETRY_WAIT, evolve(step_over(), retries=now.retries + 1),
           warn, AppendContinue(), *wait_retry),
    errs("v2/error again", broken, Cause.PROVIDER),
    errs("v2/incomplete", failed, Cause.INCOMPLETE),
    errs("v2/unstructured", structured & not_(results), Cause.UNSTRUCTURED),
    judged("v2/results", results, DECIDING, next_step, *read_on),
    R(recorded, at=Phase.JUDGING, when=mine(recorded.generation), to=DECIDING, data=ends_here, emit=read_on, name="StepRecorded/v2/ends"),
)  # fmt: skip

PRE = with_judge("turn_loop_pre", upstream(unknown_ends=True), any_summary=True)
POST = with_judge("turn_loop_post", upstream(unknown_ends=False), any_summary=True)
V2 = evolve(with_judge("turn_loop_v2", V2_JUDGE), initial=evolve(MACHINE.initial, retry_limit=4))
BOUNDED = MACHINE
"""The four judges: upstream before and after 1.18.21, its core runner, and the target."""

INTRA_STEP_RETRY = MACHINE.variant(
    "turn_loop_intra_step_retry",
    replace={"StepRecorded/results, then an error": judged("results, then the same request", results & broken & may_retry, RETRY_WAIT,
                                                           same_request, *wait_retry)},
)  # fmt: skip

NO_WAIT = MACHINE.variant(
    "turn_loop_resample_at_once",
    replace={"StepRecorded/dead before anything": judged("dead, at once", one_of(now.content, Content.NOTHING, Content.REASONING), DECIDING,
                                                         step_over(), warn, *read_on)},
)  # fmt: skip

CANCELS_THE_STREAM = MACHINE.variant(
    "turn_loop_cancels_the_stream_only",
    replace={"Cancelled/streaming": R(Cancelled, at=STREAMING, to=DECIDING, data=step_over(), emit=(AbortStream(), *read_on),
                                      name="Cancelled/stream only")},
)  # fmt: skip

SILENT_CANCEL = MACHINE.variant(
    "turn_loop_silent_cancel",
    first=(R(Cancelled, at=RETRY_WAIT, to=IDLE, data=over(), name="Cancelled/silent"),),
)

AUTO_RESUME = MACHINE.variant("turn_loop_auto_resume", drop=("UserPrompted/automation off",))

LOSES_A_MESSAGE = MACHINE.variant(
    "turn_loop_loses_a_message",
    replace={
        "UserPrompted/reads again": evolve(MACHINE.row("UserPrompted/reads again"), data=now, emit=MACHINE.row("UserPrompted/joins").emit)
    },
)

SMALL = evolve(MACHINE.initial, retry_limit=1, resample_limit=1, continue_limit=1, compaction_limit=1)
"""The initial state that is explored: budgets of one. Every row that reads a budget compares it with what was spent, and nothing else."""

SPENDS = "a step that brought nothing spends a budget or ends the run"
WAITS = "a step that left nothing is followed by a wait, never at once by a request"
REPEATS = "nothing is repeated after text, or a call that was run, held back or hosted"
GUARDS = "what ends the turn for one guard is terminal for the other"
SILENT_STOP = "an empty stop is marked or asked again, never silent"
SUMMARY = "a compaction counts only with a summary"


def _variant(machine: AnyMachine, about: str, violates: dict[str, int]) -> Variant:
    return Variant(machine=evolve(machine, initial=SMALL), about=about, violates=violates)


VARIANTS: tuple[Variant, ...] = (
    _variant(PRE,
             "OpenCode, 2026-03-27 (#18433) to 1.18.20: the judge says unknown is no completion and records no error, the exit guard "
             "says it is one and ends the run. A dead stream is a finished answer (#43856, #39968, #41469), exit status 0.",
             {"completed implies a terminal reason": 7, GUARDS: 6, SILENT_STOP: 6, REPEATS: 6, SUMMARY: 3,
              "a rejected call blocks the run": 7, "a run completes on content-filter, length or error": 7}),
    _variant(POST,
             "OpenCode since 1.18.21 (#43892): unknown goes on, at once and without a bound: 1,661 turns in 88 s (#43622), 2,517 "
             "requests (#45315), 331 dead turns of 360 (#49008).",
             {SPENDS: 5, WAITS: 5, REPEATS: 6, SILENT_STOP: 6, SUMMARY: 3}),
    _variant(V2,
             "OpenCode's core runner: bounded, but errors of the provider and dead streams share one budget, so a dead stream uses up "
             "the patience for a rate limit; an empty stop is still silent.",
             {"an error of the provider spends no budget of dead streams, nor the other way round": 5, SILENT_STOP: 6}),
    _variant(INTRA_STEP_RETRY,
             "The retry inside a step (OpenCode, table row 21): the request from before the step is sent again although a call of the "
             "step was run, so the model asks for it again and it runs twice.",
             {REPEATS: 7}),
    _variant(NO_WAIT, "The plain fix: a dead stream is sampled again at once, 86 to 138 requests in 10 s (#49414).", {WAITS: 5, SPENDS: 5}),
    _variant(CANCELS_THE_STREAM, "The first cancel ends the stream and the loop begins again; users cancel twice (#49008).",
             {"a cancel of a run stops it": 4, "calls are open only while a step is": 5}),
    _variant(SILENT_CANCEL,
             "A cancel that lands in the wait for a retry: the message has neither error nor finish, and nobody hears of an outcome.",
             {"a cancel in a wait ends the run at once": 6, "a cancel of a run stops it": 6}),
    _variant(AUTO_RESUME,
             "A harness that says continue at every idle: 17 prompts in 55 s, also after a cancel "
             "(Mte90/opencode-auto-resume#19).",
             {"after a cancel no harness starts a run": 2}),
    _variant(LOSES_A_MESSAGE, "A message that comes while the history is read is not in it, and nothing reads it again.",
             {"what was read while a message came is read again": 2}),
)  # fmt: skip
"""Every design that must fail, with the length of its shortest counterexample."""
