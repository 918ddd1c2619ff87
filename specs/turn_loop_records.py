"""What each event of the turn loop must record and tell, exactly: next phase, every field, every effect, and their order.

A second writing of the table, by what must come out instead of by rows: no case refers to another, and none depends on an order. What a
case does not name stays as it was, and no effect is emitted but those it names. The judge's cases are in ``turn_loop_verdicts``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import get_args

from attrs import frozen

from turnproof.machines.kernel import NOBODY, Kind, StartTimer, StopTimer, all_of, choose, fields_of, implies, named, not_, one_of
from turnproof.machines.turn_loop_events import (
    AbortCalls,
    AbortCompaction,
    AbortStream,
    AbortSubtask,
    BuildRequest,
    Cancelled,
    DropHeldCalls,
    Effect,
    Finish,
    HistoryLoaded,
    KeepMessage,
    PreparationFailed,
    Prepared,
    PublishError,
    PublishIdle,
    PublishStatus,
    ReadHistory,
    Sample,
    StartCompaction,
    StartQueued,
    StartSubtask,
    UserPrompted,
)
from turnproof.machines.turn_loop_judge import (
    loaded,
    misprepared,
    now,
    prepared,
    prompt,
)
from turnproof.machines.turn_loop_words import (
    Cause,
    Content,
    Ending,
    Phase,
    Room,
    Source,
    Task,
    Timer,
    TurnLoop,
)
from turnproof.specs.language import Step, after, count, emits, ignored, on, refused, taken
from turnproof.specs.turn_loop_promises import resting, running

then = after(TurnLoop)
WAITS = {Phase.RETRY_WAIT: Timer.RETRY, Phase.RESAMPLE_WAIT: Timer.RESAMPLE, Phase.CONTINUE_WAIT: Timer.CONTINUE}
RAN = (Content.DISPATCHED, Content.RESULT, Content.REJECTED)

held = named("calls are held back", now.content == Content.HELD)
calls_run = named("a call runs", (now.open_calls > 0) & (now.content != Content.HELD))
no_step_left = named("no step is left", now.limited & (now.steps_left == 0))

FIELDS = tuple(name for name, field in fields_of(TurnLoop).items() if field.kind is not Kind.OPAQUE)
STEP_OVER: Mapping[str, object] = {"ending": Ending.OPEN, "content": Content.NOTHING, "answered": False}
RUN_OVER: Mapping[str, object] = {
    **STEP_OVER, "generation": NOBODY, "open_calls": 0, "repeat": False, "limited": False, "steps_left": 0, "retries": 0, "resamples": 0,
    "continues": 0, "compactions": 0, "cause": Cause.NONE,
}  # fmt: skip
"""Fields once a step, or a run, is over."""


@frozen(eq=False)
class Case:
    """One case: when it is, and what must hold then."""

    name: str
    ids: str | Sequence[str]
    when: bool
    holds: bool
    whole: bool = False
    """It says everything about the step; every step that is taken is such a case, and only one."""


def case(
    name: str, ids: str | Sequence[str], when: bool, changes: Mapping[str, object], *emit: type, maybe: Mapping[type, bool] | None = None
) -> Case:
    """In this case exactly these fields change, to these values, and exactly these effects are emitted, once each.

    ``maybe``: effects that are emitted exactly where their condition holds.
    """
    fields = [getattr(then, f) == (changes[f] if f in changes else getattr(now, f)) for f in FIELDS]
    wanted = {**dict.fromkeys(emit, True), **(maybe or {})}
    effects = [count(kind) == (0 if kind not in wanted else 1 if wanted[kind] is True else choose(wanted[kind], 1, 0))
               for kind in get_args(Effect)]  # fmt: skip
    return Case(name, ids, when, taken() & all_of(*fields, *effects), whole=True)


def exactly(what: str, *cases: Case, harm: str = "") -> Step:
    """Every one of these cases, as one promise: a solver is asked once a row, not once a row and case."""
    ids = dict.fromkeys(rid for c in cases for rid in ((c.ids,) if isinstance(c.ids, str) else c.ids))
    return Step(f"exactly so: {what}", all_of(*(implies(c.when, c.holds) for c in cases)), requirements=tuple(ids), harm=harm)


def present(event: type, phase: Phase, generation: str, when: bool | None = None) -> bool:
    """The event answers the present piece of work at this phase."""
    answer = on(event) & (now.phase == phase) & (generation == now.generation)
    return answer if when is None else answer & when


# ── messages and cancel ──

nameless = prompt.generation == NOBODY
silenced = (prompt.source == Source.HARNESS) & now.automation_off
nothing_queued = (prompt.source == Source.QUEUE) & (running | not_(now.prompted))
accepted = named("the message is accepted", not_(nameless) & not_(silenced) & not_(nothing_queued))
STOPPED: Mapping[str, object] = {
    **RUN_OVER, "generation": now.generation, "prompted": False, "automation_off": True, "phase": Phase.STOPPING,
    "open_calls": choose(now.content == Content.HELD, 0, now.open_calls),
}  # fmt: skip

MESSAGES: tuple[Case, ...] = (
    Case("a message is refused for want of an identity, or after a cancel", "R-LOOP-13", on(UserPrompted), refused() == (nameless
         | silenced)),
    Case("a queue that is empty, or late, is ignored", "R-LOOP-13", on(UserPrompted), ignored() == (not_(nameless) & not_(silenced)
         & nothing_queued)),
    case("a message at rest begins a run", "R-LOOP-13", on(UserPrompted) & accepted & resting,
         {"phase": Phase.DECIDING, "generation": prompt.generation, "prompted": True, "automation_off": False, "limited": prompt.steps > 0,
          "steps_left": prompt.steps, "ending": Ending.OPEN, "cause": Cause.NONE},
         PublishStatus, ReadHistory, maybe={KeepMessage: prompt.source != Source.QUEUE}),
    case("a message while the history is read has it read again", "R-LOOP-13", on(UserPrompted) & accepted & (now.phase == Phase.DECIDING),
         {"generation": prompt.generation, "prompted": True}, KeepMessage, ReadHistory),
    case("a message while a run is stopped follows it", "R-LOOP-13", on(UserPrompted) & accepted & (now.phase == Phase.STOPPING),
         {"prompted": True, "automation_off": now.automation_off & (prompt.source != Source.PERSON)}, KeepMessage),
    case("any other message joins the run", "R-LOOP-13",
         on(UserPrompted) & accepted & running & not_(one_of(now.phase, Phase.DECIDING, Phase.STOPPING)), {"prompted": True}, KeepMessage),
)  # fmt: skip

CANCELS: tuple[Case, ...] = (
    case("a cancel at rest empties the queue and silences harnesses", "R-LOOP-10",
         on(Cancelled) & resting & (now.prompted | not_(now.automation_off)), {"prompted": False, "automation_off": True}),
    case("a cancel while a run is stopped cancels what follows it", "R-LOOP-10", on(Cancelled) & (now.phase == Phase.STOPPING)
         & now.prompted,
         {"prompted": False, "automation_off": True}),
    Case("a cancel with nothing to cancel is ignored", "R-LOOP-10", on(Cancelled), ignored() == ((resting & not_(now.prompted)
         & now.automation_off)
                                              | ((now.phase == Phase.STOPPING) & not_(now.prompted)))),
    case("a cancel of a stream", "R-LOOP-10", on(Cancelled) & (now.phase == Phase.STREAMING), STOPPED, AbortStream, StartTimer,
         maybe={DropHeldCalls: now.content == Content.HELD, AbortCalls: calls_run}),
    case("a cancel while calls are waited for", "R-LOOP-10", on(Cancelled) & (now.phase == Phase.DRAINING),
         {**STOPPED, "ending": Ending.ABSENT}, AbortCalls, StartTimer),
    case("a cancel while calls have their moment", "R-LOOP-10", on(Cancelled) & (now.phase == Phase.SETTLING),
         {**STOPPED, "ending": Ending.ABSENT}),
    case("a cancel of a compaction", "R-LOOP-10", on(Cancelled) & (now.phase == Phase.COMPACTING), STOPPED, AbortCompaction, StartTimer),
    case("a cancel of a child", "R-LOOP-10", on(Cancelled) & (now.phase == Phase.SUBTASK), STOPPED, AbortSubtask, StartTimer),
    case("a cancel where nothing must be joined ends the run", "R-LOOP-10",
         on(Cancelled) & one_of(now.phase, Phase.DECIDING, Phase.PREPARING, Phase.JUDGING, *WAITS),
         {**RUN_OVER, "phase": Phase.ABORTED, "prompted": False, "automation_off": True}, Finish, PublishIdle,
         maybe={StopTimer: one_of(now.phase, *WAITS)}),
    Case("a cancel stops the timer of its wait", "R-LOOP-10", on(Cancelled), all_of(*(emits(StopTimer,
         timer=timer) == (now.phase == phase) for phase, timer in WAITS.items()))),
)  # fmt: skip


# ── the history, the request ──

reading = on(HistoryLoaded) & (now.phase == Phase.DECIDING) & (loaded.generation == now.generation)
out = named("answered, and nothing new", now.answered & not_(now.prompted) & (loaded.task == Task.NONE))
too_long = named("the conversation is too long", (loaded.room == Room.OVER) | (now.ending == Ending.OVERFLOW))
compacts = named("it is compacted", too_long & (loaded.room != Room.NO_COMPACTION) & (loaded.task == Task.NONE)
                 & (now.compactions < now.compaction_limit) & (out | not_(no_step_left)))  # fmt: skip
goes_on = named("it goes on", not_(compacts) & not_(out) & not_(no_step_left))
BEGUN: Mapping[str, object] = {
    "answered": False, "prompted": False, "ending": Ending.OPEN, "steps_left": choose(now.limited, now.steps_left - 1, 0),
}  # fmt: skip
TOLD = (PublishError, Finish, PublishIdle)
queue: Mapping[type, bool] = {StartQueued: now.prompted}

HISTORY: tuple[Case, ...] = (
    case("a conversation that is too long is compacted, if it may be", "R-LOOP-12", reading & compacts,
         {"phase": Phase.COMPACTING, "ending": choose(now.ending == Ending.OVERFLOW, Ending.OPEN, now.ending),
          "answered": now.answered & not_(now.prompted), "prompted": False, "compactions": now.compactions + 1}, StartCompaction),
    case("an answer and nothing new completes the run", ("R-LOOP-1", "R-LOOP-8"), reading & not_(compacts) & out,
         {**RUN_OVER, "phase": Phase.COMPLETED, "ending": now.ending}, Finish, PublishIdle),
    case("a run out of steps errs", "R-LOOP-17", reading & not_(compacts) & not_(out) & no_step_left,
         {**RUN_OVER, "phase": Phase.ERRORED, "cause": Cause.STEP_LIMIT}, *TOLD, maybe=queue),
    case("a task for a child is given to it", "R-LOOP-17", reading & goes_on & (loaded.task == Task.SUBTASK),
         {**BEGUN, "phase": Phase.SUBTASK}, StartSubtask),
    case("a compaction that is asked for is the answer", "R-LOOP-12", reading & goes_on & (loaded.task == Task.COMPACTION),
         {**BEGUN, "phase": Phase.COMPACTING, "ending": Ending.STOP, "answered": True}, StartCompaction),
    case("a conversation that stays too long errs", "R-LOOP-12", reading & goes_on & (loaded.task == Task.NONE) & too_long,
         {**RUN_OVER, "phase": Phase.ERRORED, "cause": Cause.OVERFLOW, "prompted": False}, *TOLD),
    case("else a request is built", "R-LOOP-17", reading & goes_on & (loaded.task == Task.NONE) & not_(too_long),
         {**BEGUN, "phase": Phase.PREPARING}, BuildRequest),
)  # fmt: skip

REQUESTS: tuple[Case, ...] = (
    case("a request that is built is sent", "R-LOOP-4", present(Prepared, Phase.PREPARING, prepared.generation, prepared.call != NOBODY),
         {"phase": Phase.STREAMING, "generation": prepared.call, "repeat": False}, PublishStatus, Sample),
    Case("a model call without an identity is refused", "R-LOOP-32", on(Prepared), refused() == (prepared.call == NOBODY)),
    case("a history that cannot be read errs", "R-LOOP-2", present(PreparationFailed, Phase.DECIDING, misprepared.generation),
         {**RUN_OVER, "phase": Phase.ERRORED, "cause": Cause.PREPARATION, "prompted": False}, *TOLD),
    case("a request that cannot be built errs", "R-LOOP-2", present(PreparationFailed, Phase.PREPARING, misprepared.generation),
         {**RUN_OVER, "phase": Phase.ERRORED, "cause": Cause.PREPARATION}, *TOLD, maybe=queue),
)  # fmt: skip
