"""What must hold of one tool call."""

from __future__ import annotations

from attrs import evolve, frozen

from turnproof.machines.embedded_attempt_words import Side, ToolOutcome
from turnproof.machines.kernel import implies, named, not_, one_of, symbol
from turnproof.machines.tool_execution import (
    ASKED,
    ENDED,
    FLUSHING,
    HANDED,
    MACHINE,
    PLANNED,
    RUNNING,
    AskToRun,
    Began,
    CallAsked,
    Execute,
    Finished,
    Mutation,
    R,
    ReportEnd,
    StopRequested,
    ToolExecution,
    asked,
    finished,
    now,
)
from turnproof.specs.embedded_attempt_requirements import requirements
from turnproof.specs.harms import with_harms
from turnproof.specs.language import (
    Always,
    Carries,
    History,
    Property,
    Sometimes,
    Spec,
    Step,
    Variant,
    after,
    at_most,
    count,
    emits,
    on,
    taken,
)
from turnproof.specs.tool_execution_exactly import EXACTLY

then = after(ToolExecution)
repeatable = named("marked or listed, and known not to mutate", (asked.marked | asked.listed) & (asked.mutation == Mutation.NONE))


@frozen
class Ran:
    """Whether the tool ever began."""

    began: bool = False


ran = symbol(Ran)
RAN = History(Ran(), ran, ((on(Began) & taken(), evolve(ran, began=True)),))

EXECUTED_ONCE, EXECUTIONS = at_most(1, count(Execute), "a call is handed over once", variable="executions", requirements="R-ATT-14",
    harm="the command runs twice")  # fmt: skip
ENDED_ONCE, ENDS = at_most(1, count(ReportEnd), "a call says once that it ended", variable="ends", requirements="R-ATT-5",
    harm="the attempt counts another call as ended, and calls itself replay-safe while that one runs")  # fmt: skip
ONLY_SAFE = "a call is safe to repeat only if marked or listed, and known not to mutate"
WITHDRAWN = "that it never started is said only of a call that did not begin"

PROPERTIES: tuple[Property, ...] = (
    Step(ONLY_SAFE, requirements="R-ATT-5", holds=
         implies(emits(AskToRun, side=Side.SAFE), on(CallAsked) & repeatable) & implies(on(CallAsked) & taken() & repeatable,
         emits(AskToRun, side=Side.SAFE)), harm="a call nobody knows is run again"),
    Step("a call of unknown effect is said to be unknown", requirements="R-ATT-5", holds=
         implies(on(CallAsked) & taken() & (asked.mutation == Mutation.UNKNOWN), emits(AskToRun, side=Side.UNKNOWN))),
    Carries("the tool that is asked for is the one the model called", AskToRun, "tool", asked.tool, when=on(CallAsked),
            requirements="R-ATT-5", harm="a rule for a harmless tool lets another one run"),
    Step("what was said when it was asked for is said at its end", implies(emits(ReportEnd), emits(ReportEnd, side=now.side)),
        requirements="R-ATT-5"),
    EXECUTED_ONCE,
    ENDED_ONCE,
    Step("a call is handed over only after it was counted", implies(emits(Execute), now.phase == FLUSHING), requirements="R-ATT-5",
        harm="a recovery finds no tool while one is about to run"),
    Step(WITHDRAWN, requirements="R-ATT-5", holds=
         implies(emits(ReportEnd, outcome=ToolOutcome.NEVER_STARTED), not_(ran.began) & (then.phase == ENDED)),
         harm="a side effect that happened is taken for one that did not"),
    Step("nothing begins after its end", implies(now.phase == ENDED, not_(taken())), requirements="R-ATT-14",
         harm="a side effect happens after it was said that it never would"),
    Step("an end is called safe only where marker and analysis agree", requirements="R-ATT-5", holds=
         implies(emits(ReportEnd, outcome=ToolOutcome.PROVEN_SAFE), on(Finished) & finished.marked_safe
         & (finished.mutation == Mutation.NONE))),
    Step("a counted call that ends says so", requirements="R-ATT-5", holds=
         implies(one_of(now.phase, FLUSHING, HANDED, RUNNING) & (then.phase == ENDED), count(ReportEnd) == 1),
         harm="a claim is never withdrawn, and the attempt never replay-safe again"),
    Always("a call that began runs or is over", implies(ran.began, one_of(now.phase, RUNNING, ENDED)), requirements="R-ATT-5"),
    Sometimes("a call is stopped before it began", on(StopRequested) & emits(ReportEnd), requirements="R-ATT-5"),
    Sometimes("a call is stopped while it runs", on(StopRequested) & (now.phase == RUNNING), requirements="R-ATT-14"),
)  # fmt: skip

LISTED_IS_SAFE = MACHINE.variant(
    "tool_execution_listed_is_safe",
    first=(R(asked, at=PLANNED, when=asked.listed, to=ASKED, data=evolve(now, side=Side.SAFE), emit=(AskToRun(Side.SAFE, ""),),
             name="CallAsked/listed"),),
)  # fmt: skip
HOPEFUL = MACHINE.variant(
    "tool_execution_hopeful_stop",
    first=(R(StopRequested, at=(HANDED, RUNNING), to=ENDED, emit=(ReportEnd(now.side, ToolOutcome.NEVER_STARTED),),
             name="StopRequested/hopeful"),),
)  # fmt: skip
UNCOUNTED = MACHINE.variant(
    "tool_execution_uncounted",
    first=(R(CallAsked, at=PLANNED, to=HANDED, emit=(Execute(),), name="CallAsked/at once"),),
)

SPEC = Spec(
    machine=MACHINE,
    requirements=requirements("R-ATT-5", "R-ATT-14"),
    properties=with_harms((*PROPERTIES, *EXACTLY)),
    histories=(RAN, EXECUTIONS, ENDS),
    variants=(
        Variant(machine=LISTED_IS_SAFE, violates={ONLY_SAFE: 1},
                about="A list of safe names that is not asked about mutations: a listed tool with a mutating action is run again."),
        Variant(machine=HOPEFUL, violates={WITHDRAWN: 5},
                about="A stop taken for an end: the tool ignores its signal, and what it does happens after it was said that it never "
                      "will."),
        Variant(machine=UNCOUNTED, violates={"a call is handed over only after it was counted": 1},
                about="OpenClaw counts a call only after a flush: a recovery in between finds no tool."),
    ),
)  # fmt: skip
