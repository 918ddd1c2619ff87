"""What the session's machine under the rule of the mark (V4) does of itself, whoever sends it what: the rule as it was approved.

That the rule is not enough is shown with the server beside it: ``session_system`` and ``session_defects``.
"""

from __future__ import annotations

from turnproof.machines.kernel import implies, not_, symbol
from turnproof.machines.session_mark import CLEAR, CONTINUATION, MACHINE, NONE, STARTED, UNSTARTED, USER, MarkedSession, now, wakes
from turnproof.machines.session_words import (
    Answer,
    ContinuationStarted,
    End,
    ExecutionEnded,
    ExecutionStarted,
    HistoryRead,
    HoldWake,
    Outcome,
    PromptAnswered,
    RejectPermission,
    ReportTurn,
    RunMarked,
    SkipEnd,
    StreamDied,
    TakeWake,
)
from turnproof.specs.harms import with_harms
from turnproof.specs.language import Always, Property, Sometimes, Spec, Step, Variant, after, count, emits, on, taken
from turnproof.specs.session_history import V0, V1, V2, V3
from turnproof.specs.session_requirements import requirements

then = after(MarkedSession)
ended, read, answered = symbol(ExecutionEnded), symbol(HistoryRead), symbol(PromptAnswered)
marked = now.mark != CLEAR

RECORDS = "marking records whether the session is busy"
STEPS = "any start steps the mark, before it is held or routed: recorded first, cleared after"
TAKES = "a continuation that takes a wake that runs clears the mark"
REPLAYS = "the replay of an ended wake leaves the mark, and its end ends the continuation"
IDLE = "a reconnect that finds the session idle promotes the mark, one that finds it active leaves it"
LATE = "a late end is skipped, clears the mark and ends no turn"

PROPERTIES: tuple[Property, ...] = (
    Step(RECORDS, implies(on(RunMarked), (then.mark == STARTED) == now.busy) & implies(on(RunMarked), then.mark != CLEAR),
         requirements="R-SES-17"),
    Step(STEPS, requirements=("R-SES-18", "R-SES-19"), holds=
         implies(on(ExecutionStarted) & (now.mark == UNSTARTED), then.mark == STARTED)
         & implies(on(ExecutionStarted) & (now.mark != UNSTARTED), then.mark == CLEAR)),
    Step(TAKES, implies(on(ContinuationStarted) & taken() & (now.ended == 0) & now.running, then.mark == CLEAR), requirements="R-SES-20"),
    Step(REPLAYS, requirements="R-SES-21", holds=
         implies(on(ContinuationStarted) & (now.phase == NONE) & (now.ended > 0),
                 (then.mark == now.mark) & emits(ReportTurn, outcome=Outcome.COMPLETED) & (then.phase == NONE))),
    Step(LATE, requirements="R-SES-22", holds=
         implies(on(ExecutionEnded) & marked & not_(now.running), emits(SkipEnd) & (then.mark == CLEAR) & not_(emits(ReportTurn)))),
    Step(IDLE, requirements="R-SES-27", holds=
         implies(on(HistoryRead) & marked & not_(read.active), then.mark == STARTED)
         & implies(on(HistoryRead) & read.active, then.mark == now.mark)),
    Step("a clear refusal sets no mark", requirements="R-SES-31", holds=
         implies(on(PromptAnswered) & (answered.answer == Answer.REFUSED), then.mark == now.mark)),
    Step("an unclear failure of the turn's own request sets it", requirements="R-SES-23", holds=
         implies(on(PromptAnswered) & (answered.answer == Answer.UNCLEAR) & emits(ReportTurn), then.mark != CLEAR)),
    Step("busy is started and not ended, in the order handled", requirements="R-SES-9", holds=
         implies(on(ExecutionStarted), then.busy) & implies(on(ExecutionEnded), not_(then.busy))),
    Step("a turn has one terminal, and is installed no more", requirements="R-SES-1", holds=
         (count(ReportTurn) <= 1) & implies(emits(ReportTurn), then.phase == NONE)),
    Step("a turn ends only with a terminal", requirements="R-SES-1", holds=
         implies((now.phase != NONE) & (then.phase == NONE), emits(ReportTurn))),
    Always("only a user turn has a prompt of its own", requirements="R-SES-7", holds=
           implies(now.phase != USER, not_(now.unsent))),
    Step("a wake is held only where no turn is installed", implies(emits(HoldWake), now.phase == NONE), requirements="R-SES-7"),
    Step("once the stream is dead no turn is active and no wake is held", requirements="R-SES-16", holds=
         implies(on(StreamDied), (then.phase == NONE) & (then.ended == 0) & not_(then.running))),
    Step("a stopped turn is never completed by an end", requirements="R-SES-2", holds=
         implies(now.stopped & on(ExecutionEnded), not_(emits(ReportTurn, outcome=Outcome.COMPLETED)))),
    Sometimes("a failed end fails the turn", on(ExecutionEnded) & (ended.how == End.FAILED) & emits(ReportTurn, outcome=Outcome.FAILED),
              requirements="R-SES-2"),
    Sometimes("a continuation takes a wake that runs under a mark", on(ContinuationStarted) & marked & now.running & emits(TakeWake),
              requirements="R-SES-20"),
    Sometimes("a request is rejected as stale", emits(RejectPermission), requirements="R-SES-22"),
    Sometimes("wakes wait while a turn is installed", (now.phase == USER) & wakes, requirements="R-SES-7"),
    Sometimes("a continuation is installed", now.phase == CONTINUATION, requirements="R-SES-20"),
)  # fmt: skip

SPEC = Spec(
    machine=MACHINE,
    requirements=requirements(1, 2, 7, 9, 16, 17, 18, 19, 20, 21, 22, 23, 27, 31),
    properties=with_harms(PROPERTIES),
    variants=(
        Variant(machine=V0, violates={STEPS: 2, TAKES: 3, REPLAYS: 4}, about="V0, 716357c: a start does not move the mark."),
        Variant(machine=V1, violates={STEPS: 2, IDLE: 2}, about="V1, 61b9521: any start clears it."),
        Variant(machine=V2, violates={IDLE: 2, REPLAYS: 4}, about="V2, 92daf4d: an active session promotes it at a reconnect."),
        Variant(machine=V3, violates={TAKES: 3, REPLAYS: 4}, about="V3, 145cf15: a continuation takes a wake and leaves it."),
    ),
    tokens=2,
    counter=2,
)
