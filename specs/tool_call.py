"""What must hold of a tool call: it runs at most once, and how it ended is never said wrongly."""

from __future__ import annotations

from attrs import evolve

from turnproof.machines.kernel import Row, any_of, implies, named, not_, one_of
from turnproof.machines.tool_call import (
    ASKED,
    ENDED,
    HELD,
    MACHINE,
    NOT_RUN,
    ORPHAN,
    REJECTED,
    RUNNING,
    WRITING,
    Answered,
    Ask,
    Broke,
    CallPhase,
    Dispatch,
    Effect,
    Execute,
    InputCompleted,
    Interrupt,
    Permission,
    Released,
    StepClosed,
    StopRequested,
    Succeeded,
    TellLoop,
    ToolCall,
    Withdraw,
    WriteEnd,
    answered,
    complete,
    now,
)
from turnproof.specs.harms import with_harms
from turnproof.specs.language import (
    Always,
    Fair,
    LeadsTo,
    Order,
    Property,
    Sometimes,
    Spec,
    Step,
    Variant,
    after,
    at_most,
    count,
    emits,
    ignored,
    on,
    taken,
)
from turnproof.specs.turn_loop_requirements import REQUIREMENTS

then = after(ToolCall)
R = Row[ToolCall, Effect]
ended = one_of(now.phase, *ENDED)

by_provider = complete.dispatch == Dispatch.BY_PROVIDER
held_back = complete.dispatch == Dispatch.AT_FINISH
at_once = complete.dispatch == Dispatch.AT_ONCE
not_denied = complete.permission != Permission.DENIED
asks = named("to be asked about", (complete.permission == Permission.ASK) | (complete.equal_before >= 2))

RUN_ONCE, RUNS = at_most(1, count(Execute), "a call runs at most once", variable="runs", requirements="R-LOOP-5",
    harm="a side effect happens twice")  # fmt: skip
TOLD_ONCE, TOLD = at_most(1, count(TellLoop), "the loop hears of an end once", variable="told", requirements="R-LOOP-11",
    harm="the loop counts one result as two, and goes on while a call runs")  # fmt: skip
ASKED_FIRST = "a repeated call is asked about before it runs"
HONEST = "what is said to be not run was not run"

PROPERTIES: tuple[Property, ...] = (
    RUN_ONCE,
    TOLD_ONCE,
    Step("an ended call stays as it ended", implies(ended, then.phase == now.phase), requirements=("R-LOOP-6", "R-LOOP-11")),
    Step("an ended call does nothing", implies(ended, (count(Execute) + count(Ask) + count(Interrupt) + count(WriteEnd)) == 0),
         requirements=("R-LOOP-5", "R-LOOP-11")),
    Step("the end is written down when it comes", emits(WriteEnd) == (not_(ended) & one_of(then.phase, *ENDED)), requirements="R-LOOP-6",
         harm="a tool part stays pending in the history"),
    Step("what is written is what happened", requirements=("R-LOOP-6", "R-LOOP-7"), holds=
         any_of(not_(emits(WriteEnd)), *((then.phase == end) & (count(WriteEnd, end=end) == 1) for end in ENDED))),
    Step("the loop is told what is written", requirements="R-LOOP-6", holds=
         any_of(not_(emits(TellLoop)), *((count(WriteEnd, end=end) == 1) & (count(TellLoop, end=end) == 1) for end in ENDED))),
    Step("when the step closes the call is over", implies(on(StepClosed), one_of(then.phase, *ENDED)), requirements="R-LOOP-6"),
    Always(HONEST, implies(one_of(now.phase, NOT_RUN, REJECTED, WRITING, HELD, ASKED), not_(now.ran)), requirements="R-LOOP-7",
           harm="the model runs again what may have happened"),
    Always("an orphan was run", implies(now.phase == ORPHAN, now.ran), requirements="R-LOOP-7",
         harm="a call that never ran is reported as unknown"),
    Step("what ran and has no result is an orphan", implies(on(StepClosed) & not_(ended) & now.ran, then.phase == ORPHAN),
         requirements="R-LOOP-7"),
    Step("a run is remembered", implies(emits(Execute) | (then.phase == CallPhase.HOSTED), then.ran) & implies(now.ran, then.ran),
         requirements="R-LOOP-7"),
    Step(ASKED_FIRST, requirements="R-LOOP-29", harm="364 identical greps", holds=
         implies(on(InputCompleted) & taken() & (complete.equal_before >= 2) & (complete.dispatch != Dispatch.BY_PROVIDER),
                 not_(emits(Execute)) & implies(then.phase == HELD, then.rule != Permission.ALLOWED))),
    Step("a call to be asked about runs only after a yes", requirements="R-LOOP-29", holds=
         implies(emits(Execute), (on(InputCompleted) & (complete.equal_before < 2) & (complete.permission == Permission.ALLOWED))
                 | (on(Released) & (now.rule == Permission.ALLOWED)) | (on(Answered) & answered.yes & (now.phase == ASKED)))),
    Step("what was held to be asked about is asked about", implies(on(Released) & (now.phase == HELD) & (now.rule == Permission.ASK),
         emits(Ask) & (then.phase == ASKED)), requirements="R-LOOP-29"),
    Step("a question is taken back when nobody waits for it", requirements="R-LOOP-10", holds=
         implies((now.phase == ASKED) & (on(StopRequested) | on(StepClosed)), emits(Withdraw) & (then.phase == NOT_RUN))),
    Step("a tool that runs is told to stop", implies(on(StopRequested), emits(Interrupt) == (now.phase == RUNNING)),
         requirements="R-LOOP-10"),
    Step("after a stop nothing new is run", implies(on(StopRequested) | on(StepClosed), not_(emits(Execute))), requirements="R-LOOP-10"),
    *(Step(f"a complete call {what}", requirements=ids, holds=implies(on(InputCompleted) & (now.phase == WRITING) & when, result))
      for what, ids, when, result in (
        ("of the provider is its own to run", "R-LOOP-5", by_provider, then.phase == CallPhase.HOSTED),
        ("that waits for the finish part is held back", "R-LOOP-5", held_back, (then.phase == HELD)
                & ((then.rule == Permission.DENIED) == (complete.permission == Permission.DENIED))
                & ((then.rule == Permission.ASK) == (not_denied & asks))),
        ("that must be asked about is asked about, once", "R-LOOP-29", at_once & not_denied & asks, (then.phase == ASKED)
                & (count(Ask) == 1)),
        ("that may run runs", "R-LOOP-5", at_once & not_denied & not_(asks), (then.phase == RUNNING) & emits(Execute)))),
    Step("one id is one call", implies(on(InputCompleted) & (now.phase != WRITING), ignored()), requirements="R-LOOP-5",
         harm="a call that comes twice runs twice"),
    Step("what is released runs, or is asked about once", requirements=("R-LOOP-5", "R-LOOP-29"), holds=
         implies(on(Released) & (now.phase == HELD), ((count(Ask) == 1) == (now.rule == Permission.ASK))
                 & (emits(Execute) == (now.rule == Permission.ALLOWED)) & ((then.phase == RUNNING) == (now.rule == Permission.ALLOWED))
                 & (then.rule == Permission.ALLOWED))
         & implies(on(Released) & (now.phase != HELD), ignored())),
    Step("a question is asked only of a call that must be", implies(emits(Ask), (then.phase == ASKED) & (count(Ask) == 1)),
         requirements="R-LOOP-29"),
    Step("an answer decides a call that is asked about, and no other", requirements="R-LOOP-29", holds=
         implies(on(Answered) & (now.phase == ASKED), ((then.phase == RUNNING) == answered.yes)
                 & ((then.phase == REJECTED) == not_(answered.yes))
                 & (emits(Execute) == answered.yes))
         & implies(on(Answered) & (now.phase != ASKED), ignored())),
    Step("a result ends the call that ran", requirements="R-LOOP-6", holds=
         implies(on(Succeeded) & one_of(now.phase, RUNNING, CallPhase.HOSTED), then.phase == CallPhase.DONE)
         & implies(on(Broke) & one_of(now.phase, RUNNING, CallPhase.HOSTED), then.phase == CallPhase.FAILED)
         & implies(on(Succeeded, Broke) & not_(one_of(now.phase, RUNNING, CallPhase.HOSTED)), ignored())),
    Step("the loop hears of every end it waits for", requirements="R-LOOP-6", harm="the loop waits for ever", holds=
         emits(TellLoop) == (emits(WriteEnd) & not_(on(StepClosed)) & (now.phase != CallPhase.HOSTED))),
    Step("a stop reaches what runs and what is asked about, and nothing else", requirements="R-LOOP-10", holds=
         implies(on(StopRequested), (count(Interrupt) <= 1) & implies(not_(one_of(now.phase, RUNNING, ASKED)), ignored()))),
    Step("a question is taken back once, where one was asked", requirements="R-LOOP-10", holds=
         implies(emits(Withdraw), (now.phase == ASKED) & (count(Withdraw) == 1))),
    Always("only a held call still waits for its rule", implies(now.rule != Permission.ALLOWED, now.phase == HELD),
           requirements="R-LOOP-29"),
    Step("a denied call that was held back fails when it would run", requirements=("R-LOOP-5", "R-LOOP-6"), holds=
         implies(on(Released) & (now.phase == HELD) & (now.rule == Permission.DENIED), (then.phase == CallPhase.FAILED) & emits(TellLoop)),
         harm="the loop, which counts it, waits for ever"),
    Step("what is held back does not end before its release, but with its step", requirements="R-LOOP-6", holds=
         implies(emits(TellLoop), implies(now.phase == HELD, on(Released)) & implies(on(InputCompleted), not_(held_back)))),
    Step("a call that is closed early was not run unless it ran", requirements="R-LOOP-7", holds=
         implies(on(StepClosed) & not_(ended) & not_(now.ran), then.phase == NOT_RUN)),
    Step("a closed call is closed once", implies(on(StepClosed) & ended, ignored()), requirements="R-LOOP-6"),
    Order("what is written down is written before the loop goes on", WriteEnd, TellLoop, requirements="R-LOOP-6",
          harm="the loop builds its next request without the result"),
    Order("a question is taken back before its call is closed", Withdraw, WriteEnd, requirements="R-LOOP-10",
          harm="a person answers a question about a call that is over"),
    Step("a denied call that would run at once fails at once", requirements="R-LOOP-5", holds=
         implies(on(InputCompleted) & taken() & (complete.permission == Permission.DENIED) & at_once, then.phase == CallPhase.FAILED)),
    LeadsTo("every call ends", not_(ended), ended, requirements="R-LOOP-6", harm="a tool part shows as running for ever",
            fairness=(Fair("the step closes", not_(ended), on(StepClosed) & taken()),)),
    Sometimes("a late result is ignored", on(Succeeded) & (now.phase == ORPHAN) & not_(taken()), requirements="R-LOOP-11"),
    *(Sometimes(f"a call ends {end.value}", now.phase == end, requirements="R-LOOP-6") for end in ENDED),
)  # fmt: skip

ONE_MESSAGE = MACHINE.variant(
    "tool_call_one_message",
    first=(R(complete, at=WRITING, when=(complete.dispatch == Dispatch.AT_ONCE) & (complete.permission == Permission.ALLOWED), to=RUNNING,
             data=evolve(now, ran=True), emit=(Execute(),), name="InputCompleted/looks at its own message"),),
)  # fmt: skip
ABORTED_IS_NOT_RUN = MACHINE.variant(
    "tool_call_aborted_is_not_run",
    first=(R(StepClosed, at=RUNNING, to=NOT_RUN, emit=(WriteEnd(NOT_RUN),), name="StepClosed/aborted"),),
)
DENIED_EARLY = MACHINE.variant(
    "tool_call_denied_early",
    first=(R(complete, at=WRITING, when=held_back & (complete.permission == Permission.DENIED), to=CallPhase.FAILED,
             emit=(WriteEnd(CallPhase.FAILED), TellLoop(CallPhase.FAILED)), name="InputCompleted/denied early"),),
)  # fmt: skip
TWO_PARTS = MACHINE.variant(
    "tool_call_completed_again",
    first=(R(complete, at=(RUNNING, ORPHAN), to=RUNNING, data=evolve(now, ran=True), emit=(Execute(),), name="InputCompleted/again"),),
)

SPEC = Spec(
    machine=MACHINE,
    requirements={rid: REQUIREMENTS[rid] for rid in ("R-LOOP-5", "R-LOOP-6", "R-LOOP-7", "R-LOOP-10", "R-LOOP-11", "R-LOOP-29")},
    properties=with_harms(PROPERTIES),
    histories=(RUNS, TOLD),
    variants=(
        Variant(machine=ONE_MESSAGE, violates={ASKED_FIRST: 1},
                about="OpenCode's doom-loop guard looks at the last parts of one message, so it never sees a call repeated across steps "
                      "(#25254, #45442)."),
        Variant(machine=ABORTED_IS_NOT_RUN, violates={HONEST: 2},
                about="A call cut off by a cancel is written down as not run although its effect may have happened (abort during a tool)."),
        Variant(machine=DENIED_EARLY, violates={"what is held back does not end before its release, but with its step": 1},
                about="A call that is held back and denied ends before its release: the loop, which counts it only from then on, hears "
                      "nothing of its end and waits for ever."),
        Variant(machine=TWO_PARTS, violates={"a call runs at most once": 2},
                about="A replay or a fallback completes a call again under the same id, and it runs again "
                      "(tverma101/AgentSwitchboard#181)."),
    ),
    counter=2,
)  # fmt: skip
