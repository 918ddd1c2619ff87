"""A turn with its calls: the loop, two tool calls wired to it, a model that may die at any word, tools, rules and a person.

Calls are run when they are complete (an eager adapter) or held back until the finish part (a deferred one); each has its switch. The
provider may end or break a stream at any moment, tools may end late or never, a cancel may come at any time. Identities of runs
and model calls are one here: that what answers an older piece of work changes nothing, the loop's own specification shows for all.
"""

from __future__ import annotations

import attrs

from turnproof.machines.finish_reason import FinishReason
from turnproof.machines.kernel import OnlyIf, choose, implies, named, not_, one_of, symbol
from turnproof.machines.tool_call import (
    ASKED,
    DONE,
    ENDED,
    HELD,
    NOT_RUN,
    ORPHAN,
    REJECTED,
    RUNNING,
    Answered,
    Ask,
    Broke,
    CallPhase,
    Dispatch,
    Execute,
    InputCompleted,
    Interrupt,
    Released,
    StepClosed,
    StopRequested,
    Succeeded,
    TellLoop,
    ToolCall,
    Withdraw,
    WriteEnd,
)
from turnproof.machines.tool_call import MACHINE as TOOL_CALL
from turnproof.machines.turn_loop import MACHINE as TURN_LOOP
from turnproof.machines.turn_loop_events import (
    AbortCalls,
    AbortCompaction,
    AbortStream,
    AbortSubtask,
    AppendContinue,
    BuildRequest,
    CallBegan,
    CallCompleted,
    CallEnded,
    Cancelled,
    CompactionEnded,
    DiscardAttempt,
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
    RunHeldCalls,
    RunTool,
    Sample,
    StartCompaction,
    StartQueued,
    StartSubtask,
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
from turnproof.machines.turn_loop_words import CallResult, Failure, Outcome, Phase, Room, Source, Task, Timer, Wanted
from turnproof.specs.agent_turn_environment import (
    CLOSED,
    EXECUTIONS,
    FIRST,
    MODEL,
    OPEN,
    SECOND,
    STREAM,
    Announce,
    AttemptDiscarded,
    CallArrives,
    Close,
    Ended,
    EndWritten,
    Executed,
    Finished,
    HeldWanted,
    Hold,
    LetGo,
    RequestBuilt,
    RunWanted,
    SameWanted,
    Sampled,
    SideEffects,
    Start,
    StepOver,
    Stop,
    StopWanted,
    Style,
    Which,
)
from turnproof.specs.harms import with_harms
from turnproof.specs.language import Always, AnyMachine, Fair, LeadsTo, Property, Said, Sometimes
from turnproof.specs.language import Step as StepProperty
from turnproof.specs.system import Absorbs, Copy, Part, Spontaneous, Switch, System, SystemSpec, SystemVariant, Unsent, Wire
from turnproof.specs.turn_loop_history import INTRA_STEP_RETRY, PRE, SMALL
from turnproof.specs.turn_loop_requirements import REQUIREMENTS

RUN = "a"
"""The one identity of runs and model calls."""

loop = Part("loop", TURN_LOOP, SMALL)
model = Part("model", MODEL)
call_1, call_2 = Part("call_1", TOOL_CALL), Part("call_2", TOOL_CALL)
executions, stream = Part("executions", EXECUTIONS), Part("stream", STREAM)
CALLS = ((FIRST, call_1), (SECOND, call_2))

EAGER = Switch("eager", "the adapter has calls run as soon as they are complete")
DEFERRED = Switch("deferred", "the adapter holds calls back until the finish part")
RESULTS = {CallPhase.DONE: CallResult.DONE, CallPhase.REJECTED: CallResult.REJECTED, CallPhase.FAILED: CallResult.FAILED,
           CallPhase.NOT_RUN: CallResult.FAILED}  # fmt: skip
"""End of a call -> what the loop is told."""


LEAVE = (KeepMessage, ReadHistory, Sample, AbortStream, AppendContinue, PublishStatus, PublishError, WarnIncomplete, WarnEmpty, Finish,
         PublishIdle, StartCompaction, AbortCompaction, StartSubtask, AbortSubtask)  # fmt: skip
"""Effects of the loop that nobody in this system performs."""


# ── wiring ──


def _wires_of(which: Which, call: Part[ToolCall]) -> tuple[Wire, ...]:
    """What the adapter and one call say to each other, and what the loop and the history hear."""
    hold, start, let_go, stop, close = symbol(Hold), symbol(Start), symbol(LetGo), symbol(Stop), symbol(Close)
    tell, write = symbol(TellLoop), symbol(WriteEnd)
    return (
        Wire(model, hold, call, InputCompleted(Dispatch.AT_FINISH, hold.permission, 0), where=hold.call == which),
        Wire(model, start, call, InputCompleted(Dispatch.AT_ONCE, start.permission, 0), where=start.call == which),
        Wire(model, let_go, call, Released(), where=let_go.call == which),
        Wire(model, stop, call, StopRequested(), where=stop.call == which),
        Wire(model, close, call, StepClosed(), where=close.call == which),
        Wire(call, write, model, EndWritten(which, write.end)),
        *(Wire(call, tell, loop, CallEnded(RUN, result), where=tell.end == end) for end, result in RESULTS.items()),
    )


def _loop_wires() -> tuple[Wire, ...]:
    announce, build = symbol(Announce), symbol(BuildRequest)
    return (
        Wire(model, announce, loop, CallCompleted(RUN, announce.held, "")),
        Wire(loop, RunTool, model, RunWanted()),
        Wire(loop, RunHeldCalls, model, HeldWanted()),
        Wire(loop, AbortCalls, model, StopWanted()),
        *(Wire(loop, ends, model, StepOver()) for ends in (DropHeldCalls, MarkOrphans, RecordStep)),
        Wire(loop, build, model, RequestBuilt(build.request)),
        Wire(loop, DiscardAttempt, model, AttemptDiscarded()),
        Wire(loop, StartQueued, loop, UserPrompted(RUN, Source.QUEUE, 0)),
    )


def _arrivals() -> tuple[Spontaneous, ...]:
    """A call may come while a stream is read, also one that is being let go."""
    arrives = symbol(CallArrives)
    reading = one_of(loop.now.phase, Phase.STREAMING, Phase.STOPPING)
    return tuple(
        Spontaneous(model, CallArrives(arrives.call, arrives.again, style, arrives.permission), when=reading, switch=switch)
        for style, switch in ((Style.EAGER, EAGER), (Style.DEFERRED, DEFERRED))
    )


def _world() -> tuple[Spontaneous, ...]:
    reading = one_of(loop.now.phase, Phase.STREAMING, Phase.STOPPING)
    finishes = (FinishReason.STOP, FinishReason.TOOL_CALLS, FinishReason.LENGTH, FinishReason.UNKNOWN)
    return (
        Spontaneous(loop, UserPrompted(RUN, Source.PERSON, 0)),
        Spontaneous(loop, Cancelled()),
        Spontaneous(loop, HistoryLoaded(RUN, Task.NONE, Room.ENOUGH), when=loop.now.phase == Phase.DECIDING),
        Spontaneous(loop, Prepared(RUN, RUN), when=loop.now.phase == Phase.PREPARING),
        Spontaneous(loop, TextArrived(RUN), when=loop.now.phase == Phase.STREAMING),
        *(Spontaneous(loop, StepFinished(RUN, reason, ""), when=loop.now.phase == Phase.STREAMING) for reason in finishes),
        Spontaneous(loop, StreamEnded(RUN), when=reading),
        *(Spontaneous(loop, StreamBroke(RUN, failure, 0), when=reading) for failure in (Failure.RETRYABLE, Failure.FATAL)),
        *(Spontaneous(loop, StepRecorded(RUN, wanted, 0), when=loop.now.phase == Phase.JUDGING)
          for wanted in (Wanted.ANSWER, Wanted.NOTHING)),
        *_arrivals(),
        *(Spontaneous(call, Answered(yes), when=call.now.phase == ASKED) for _, call in CALLS for yes in (True, False)),
        *(Spontaneous(call, end, when=one_of(call.now.phase, RUNNING, ORPHAN)) for _, call in CALLS for end in (Succeeded(), Broke())),
    )  # fmt: skip


def _system() -> System:
    finished, arrives = symbol(StepFinished), symbol(CallArrives)
    return System(
        name="agent_turn",
        parts=(loop, model, call_1, call_2),
        monitors=(executions, stream),
        wires=(*_loop_wires(), *(wire for which, call in CALLS for wire in _wires_of(which, call))),
        copies=(
            *(Copy(call, Execute, executions, Executed(which)) for which, call in CALLS),
            Copy(model, arrives, executions, SameWanted(), where=arrives.again, said=Said.TAKEN),
            Copy(loop, Sample, stream, Sampled()),
            Copy(loop, finished, stream, Finished(finished.reason == FinishReason.STOP), said=Said.TAKEN),
        ),
        spontaneous=_world(),
        absorbed=(
            Absorbs(loop, *LEAVE),
            *(Absorbs(call, Execute, Ask, Withdraw, Interrupt) for _, call in CALLS),
        ),
        unsent=(
            Unsent(loop, PreparationFailed, ReasoningArrived, CallBegan, HostedCallSeen, OutputCaptured, CompactionEnded, SubtaskEnded,
                   because="covered by the loop's own specification"),
        ),
        switches=(EAGER, DEFERRED),
    )  # fmt: skip


SYSTEM = _system()


# ── what must hold ──

first_open, second_open = (
    named("the first call is open", model.now.first == OPEN),
    named("the second call is open", model.now.second == OPEN),
)
step_on = one_of(loop.now.phase, Phase.STREAMING, Phase.DRAINING, Phase.SETTLING, Phase.STOPPING)
DEAD = "a dead stream is never a finished answer"
TWICE = "no side effect happens a second time"
COUNTED = "the loop counts the calls that have no end"
DRAINED = "a step that waits for calls ends once they do"
IDLE = "idle is told only once every call is closed"


def waited_for(call: Part[ToolCall]) -> bool:
    """The call is complete and has no end: one that the loop counts, unless it let it go unread."""
    return one_of(call.now.phase, HELD, ASKED, RUNNING)


counted = choose(waited_for(call_1), 1, 0) + choose(waited_for(call_2), 1, 0)

PROPERTIES: tuple[Property, ...] = (
    StepProperty(DEAD, implies(loop.emits(Finish, outcome=Outcome.COMPLETED), stream.now.phase == Ended.STOP),
                 requirements=("R-LOOP-1", "R-LOOP-3"), harm="a stream that died is taken for a finished answer, exit status 0"),
    Always(TWICE, executions.now.phase == SideEffects.ONCE, requirements=("R-LOOP-5", "R-LOOP-28"),
           harm="rm, a payment, a deploy: done twice"),
    Always(COUNTED, requirements="R-LOOP-6", holds=
           implies(one_of(loop.now.phase, Phase.STREAMING, Phase.DRAINING, Phase.SETTLING), loop.now.open_calls == counted),
           harm="a step waits for a call that is over, or does not wait for one that runs"),
    Always("a step that is over leaves no call open", requirements=("R-LOOP-6", "R-LOOP-2"), holds=
           implies(first_open | second_open, step_on) & implies(not_(step_on), not_(waited_for(call_1)) & not_(waited_for(call_2))),
           harm="a tool part shows as running for ever"),
    StepProperty("a step that is written down has ended every call", requirements="R-LOOP-6", holds=
         implies(loop.emits(RecordStep), (model.next.first != OPEN) & (model.next.second != OPEN)
                 & implies(first_open, one_of(call_1.next.phase, *ENDED)) & implies(second_open, one_of(call_2.next.phase, *ENDED)))),
    StepProperty(IDLE, requirements=("R-LOOP-2", "R-LOOP-6"), holds=
         implies(loop.emits(PublishIdle), (model.next.first != OPEN) & (model.next.second != OPEN)),
         harm="a client is told that nothing runs while a call still writes files"),
    *(StepProperty(f"a cancel reaches the {which.value} call", requirements="R-LOOP-10", holds=
         implies(loop.took(Cancelled) & one_of(loop.now.phase, Phase.STREAMING, Phase.DRAINING),
                 implies(call.now.phase == RUNNING, call.emits(Interrupt)) & implies(call.now.phase == ASKED, call.emits(Withdraw))
                 & implies(call.now.phase == HELD, call.next.phase == NOT_RUN)),
         harm="a call goes on after the user said stop, or a question stays on the screen") for which, call in CALLS),
    *(StepProperty(f"after a cancel the {which.value} call is not run", requirements="R-LOOP-10", holds=
         implies(loop.on(Cancelled) | (loop.now.phase == Phase.STOPPING), not_(call.emits(Execute)))) for which, call in CALLS),
    *(StepProperty(f"the {which.value} call is said to be not run only if it was not", requirements="R-LOOP-7", holds=
         implies(call.emits(WriteEnd, end=NOT_RUN) | call.emits(WriteEnd, end=REJECTED), not_(call.now.ran)))
      for which, call in CALLS),
    *(LeadsTo(f"a cancel settles the {which.value} call", (loop.now.phase == Phase.STOPPING) & is_open,
              one_of(call.now.phase, *ENDED), requirements=("R-LOOP-6", "R-LOOP-10"), harm="a tool part shows as running for ever",
              fairness=(Fair("the moment of calls that are stopped ends", loop.running(Timer.GRACE), loop.took(GraceExpired)),))
      for which, call, is_open in ((FIRST, call_1, first_open), (SECOND, call_2, second_open))),
    LeadsTo(DRAINED, loop.now.phase == Phase.DRAINING, loop.now.phase != Phase.DRAINING,
            requirements="R-LOOP-6", harm="a session shows as working for ever",
            fairness=tuple(Fair(f"the {which.value} call ends, or a person answers", waited_for(call),
                                call.took(Succeeded) | call.took(Broke) | call.took(Answered)) for which, call in CALLS)),
    Sometimes("two calls run at once", (call_1.now.phase == RUNNING) & (call_2.now.phase == RUNNING), requirements="R-LOOP-5"),
    Sometimes("two calls that were held back run by one finish part", requirements="R-LOOP-5", holds=
              call_1.emits(Execute) & call_2.emits(Execute)),
    Sometimes("a stream dies while a call runs, and its result goes back", requirements="R-LOOP-28", holds=
              loop.took(StepRecorded) & (stream.now.phase != Ended.STOP) & (call_1.now.phase == DONE)
              & (loop.next.phase == Phase.DECIDING)),
    Sometimes("what was not run is asked for again, and runs", (call_1.now.phase == NOT_RUN) & model.now.again & (call_2.now.phase == DONE),
              requirements="R-LOOP-7"),
    Sometimes("an orphan ends late, and nobody cares", (call_1.now.phase == ORPHAN) & call_1.ignored(Succeeded), requirements="R-LOOP-7"),
    Sometimes("a run with two calls completes", loop.emits(Finish, outcome=Outcome.COMPLETED) & (model.now.second == CLOSED),
              requirements="R-LOOP-1"),
)  # fmt: skip


def _with_loop(name: str, machine: AnyMachine) -> System:
    """The same system around another loop, which need not do everything that this one does."""
    emitted = {type(item.effect if isinstance(item, OnlyIf) else item) for row in machine.rows for item in row.emit}
    leaves = Absorbs(loop, *(effect for effect in LEAVE if effect in emitted))
    parts = tuple(attrs.evolve(part, machine=machine) if part.name == loop.name else part for part in SYSTEM.parts)
    return attrs.evolve(SYSTEM, name=name, parts=parts, absorbed=(leaves, *SYSTEM.absorbed[1:]))


def _variants() -> tuple[SystemVariant, ...]:
    from turnproof.specs.tool_call import ABORTED_IS_NOT_RUN, DENIED_EARLY
    from turnproof.specs.turn_loop_shipped import SHIPPED

    return (
        SystemVariant(
            system=_with_loop("agent_turn_pre", PRE),
            violates={DEAD: 7},
            about="OpenCode up to 1.18.20: a stream that ends without a known reason ends the turn, and nothing says so (#43856).",
        ),
        SystemVariant(
            system=_with_loop("agent_turn_intra_step_retry", INTRA_STEP_RETRY),
            violates={TWICE: 10},
            about="The retry inside a step: the request from before the call is sent again, and the model asks again for what was done.",
        ),
        SystemVariant(
            system=SYSTEM.with_machines("agent_turn_aborted_is_not_run", call_1=ABORTED_IS_NOT_RUN),
            violates={TWICE: 10},
            about="A call cut off by a cancel is written down as not run: in the next run the model asks for it again.",
        ),
        SystemVariant(
            system=SYSTEM.with_machines("agent_turn_denied_early", call_1=DENIED_EARLY, call_2=DENIED_EARLY),
            violates={COUNTED: 4, DRAINED: 6},
            about="Our own first table: a call that is held back and denied failed at once, when the loop does not listen yet. Found here.",
        ),
        SystemVariant(
            system=_with_loop("agent_turn_shipped", SHIPPED),
            violates={IDLE: 5},
            about="OpenCode 1.18.33: idle is published when a cancel comes, while the call still runs (abort during a tool).",
        ),
    )


SPEC = SystemSpec(
    system=SYSTEM,
    requirements={rid: REQUIREMENTS[rid] for rid in (f"R-LOOP-{n}" for n in (1, 2, 3, 5, 6, 7, 10, 28))},
    properties=with_harms(PROPERTIES),
    variants=_variants(),
    tokens=1,
    counter=2,
)
