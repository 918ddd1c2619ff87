"""What each event of a tool call must record and tell, exactly."""

from __future__ import annotations

from turnproof.machines.embedded_attempt_words import Side, ToolOutcome
from turnproof.machines.kernel import choose, one_of
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
    CallAdmitted,
    CallAsked,
    Execute,
    Finished,
    Flushed,
    Mutation,
    NeverBegan,
    ReportEnd,
    SignalTool,
    StopRequested,
    asked,
    finished,
    now,
)
from turnproof.specs.exactly import NOTHING, Writer
from turnproof.specs.language import Property

write = Writer(MACHINE)
unclear = asked.mutation == Mutation.UNKNOWN
harmless = (asked.mutation == Mutation.NONE) & (asked.marked | asked.listed)
side = choose(harmless, Side.SAFE, choose(unclear, Side.UNKNOWN, Side.POTENTIAL))
outcome = choose(finished.mutation == Mutation.NONE, choose(finished.marked_safe, ToolOutcome.PROVEN_SAFE, ToolOutcome.HAPPENED),
                 ToolOutcome.HAPPENED)  # fmt: skip
OVER = {"phase": ENDED}
given_back = ReportEnd(now.side, ToolOutcome.NEVER_STARTED)

EXACTLY: tuple[Property, ...] = (
    write.answers(CallAsked, write.case(CallAsked, now.phase == PLANNED, {"phase": ASKED, "side": side}, AskToRun(side, "")),
                  requirements="R-ATT-5"),
    write.answers(CallAdmitted, write.case(CallAdmitted, now.phase == ASKED, {"phase": FLUSHING}), requirements="R-ATT-5"),
    write.answers(Flushed, write.case(Flushed, now.phase == FLUSHING, {"phase": HANDED}, Execute()), requirements="R-ATT-14"),
    write.answers(Began, write.case(Began, now.phase == HANDED, {"phase": RUNNING}), requirements="R-ATT-14"),
    write.answers(NeverBegan, write.case(NeverBegan, now.phase == HANDED, OVER, given_back), requirements="R-ATT-5"),
    write.answers(Finished, write.case(Finished, one_of(now.phase, HANDED, RUNNING), OVER, ReportEnd(now.side, outcome)),
                  requirements="R-ATT-5"),
    write.answers(StopRequested,
                  write.case(StopRequested, one_of(now.phase, PLANNED, ASKED), OVER),
                  write.case(StopRequested, now.phase == FLUSHING, OVER, given_back),
                  write.case(StopRequested, one_of(now.phase, HANDED, RUNNING), NOTHING, SignalTool()),
                  requirements=("R-ATT-5", "R-ATT-14"), harm="a stopped call is taken for one that ended, or the tool never hears of it"),
)  # fmt: skip
