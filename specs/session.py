"""What the session's machine of the target does of itself, whoever sends it what: proved for any number of wakes and any identities.

What holds with the server beside it, and only with it, is ``session_system``.
"""

from __future__ import annotations

from turnproof.machines.kernel import NOBODY, Row, implies, not_, symbol
from turnproof.machines.session import (
    CONTINUATION,
    MACHINE,
    NONE,
    SERVED,
    UNSENT,
    UNSURE,
    USER,
    Session,
    Timer,
    now,
    over,
    tells,
    wakes,
)
from turnproof.machines.session_words import (
    Answer,
    CancelPrompt,
    Cause,
    DropWakes,
    EndRequested,
    ExecutionEnded,
    HistoryRead,
    HoldWake,
    InstallRequested,
    ItemDelivered,
    Outcome,
    Past,
    PermissionAsked,
    PromptAnswered,
    PromptFoundOver,
    ReadAgain,
    ReportTurn,
    SendSkipped,
    ShowPermission,
    StreamDied,
)
from turnproof.specs.harms import with_harms
from turnproof.specs.language import Always, Property, Sometimes, Spec, Step, Variant, after, count, emits, on
from turnproof.specs.session_requirements import requirements

then = after(Session)
delivered, read, answered = symbol(ItemDelivered), symbol(HistoryRead), symbol(PromptAnswered)
skipped, installing = symbol(SendSkipped), symbol(InstallRequested)

OWN_ITEM = "an end completes a turn only if its item was delivered, or it is a continuation"
DOUBT = "a prompt that was sent is forgotten only with its end, its refusal or its cancel"

PROPERTIES: tuple[Property, ...] = (
    Step("a turn has one terminal, and is installed no more", requirements="R-SES-1", holds=
         (count(ReportTurn) <= 1) & implies(emits(ReportTurn), then.phase == NONE)),
    Step("a turn ends only with a terminal", requirements="R-SES-1", holds=
         implies((now.phase != NONE) & (then.phase == NONE), emits(ReportTurn))),
    Step(OWN_ITEM, requirements="R-SES-2", holds=
         implies(on(ExecutionEnded) & emits(ReportTurn, outcome=Outcome.COMPLETED), (now.phase == CONTINUATION) | (now.sending == SERVED))),
    Step("a turn is served only by the delivery of its own item", requirements="R-SES-2", holds=
         implies((now.sending != SERVED) & (then.sending == SERVED),
                 on(ItemDelivered) & (delivered.item == now.item) & (now.phase == USER))),
    Step("an end that may be the turn's own is skipped only to ask the history", requirements="R-SES-6", holds=
         implies(on(ExecutionEnded) & (now.phase == USER) & (now.sending == UNSURE) & (then.phase == USER), emits(ReadAgain))),
    Step("the end of what serves the turn ends it", requirements="R-SES-6", holds=
         implies(on(ExecutionEnded) & ((now.phase == CONTINUATION) | (now.sending == SERVED)), emits(ReportTurn))),
    Step("a Stop that comes before the prompt is sent ends the turn", requirements="R-SES-10", holds=
         implies(on(SendSkipped) & (now.phase == USER) & (now.item == skipped.prompt) & (now.sending == UNSENT),
                 emits(ReportTurn, cause=Cause.STOP))),
    Step("a prompt that is not sent is never completed", requirements="R-SES-4", holds=
         implies((now.phase == USER) & (now.sending == UNSENT) & on(ExecutionEnded), not_(emits(ReportTurn)))),
    Step(DOUBT, requirements="R-SES-5", holds=
         implies((now.doubt != NOBODY) & (then.doubt == NOBODY), not_(emits(ReportTurn)) & not_(on(HistoryRead)))
         & implies(now.more, then.more)),
    Step("a Stop that times out leaves a prompt that was sent in doubt", requirements="R-SES-5", holds=
         implies(on(EndRequested) & (now.phase == USER) & (now.sending != UNSENT), (then.doubt == now.item) & emits(CancelPrompt))),
    Step("a clear refusal leaves nothing in doubt", requirements="R-SES-31", holds=
         implies(on(PromptAnswered) & (answered.answer == Answer.REFUSED) & (now.doubt == NOBODY), then.doubt == NOBODY)),
    Always("a wake runs only where no turn is installed", implies(now.running, now.phase == NONE), requirements="R-SES-7"),
    Always("only a user turn sends", implies(now.phase != USER, now.sending == UNSENT), requirements="R-SES-7"),
    Step("a wake is held only where no turn is installed", implies(emits(HoldWake), now.phase == NONE), requirements="R-SES-7"),
    Step("a permission request is shown", implies(on(PermissionAsked), emits(ShowPermission)), requirements="R-SES-8"),
    Step("no wake is forgotten while the stream lives", implies(emits(DropWakes), on(StreamDied)), requirements="R-SES-12"),
    Step("once the stream is dead no turn is active and no wake is held", requirements="R-SES-16", holds=
         implies(on(StreamDied), (then.phase == NONE) & (then.ended == 0) & not_(then.running))),
    Step("what the server lost ends the turn", requirements="R-SES-10", holds=
         implies(on(HistoryRead) & not_(read.active) & (read.past == Past.UNDER_WAY) & (now.phase == USER), emits(ReportTurn))),
    Sometimes("a parked prompt is taken out of the inbox", on(HistoryRead) & emits(CancelPrompt), requirements="R-SES-10"),
    Sometimes("two prompts are in doubt", now.more, requirements="R-SES-5"),
    Sometimes("a start finds the run in doubt over", on(PromptFoundOver) & (now.doubt != NOBODY), requirements="R-SES-5"),
    Sometimes("wakes wait while a turn is installed", (now.phase == USER) & wakes, requirements="R-SES-7"),
    Sometimes("the history ends a turn", emits(ReportTurn, cause=Cause.HISTORY), requirements="R-SES-2"),
)  # fmt: skip

ANY_END = MACHINE.variant(
    "session_any_end",
    first=(Row(ExecutionEnded, at=USER, data=over(), emit=tells(Outcome.COMPLETED, Cause.EXECUTION), name="any end"),),
)
EAGER = MACHINE.variant(
    "session_eager",
    first=(Row(PromptFoundOver, data=over(doubt=NOBODY, more=False), name="forgets"),),
)

SPEC = Spec(
    machine=MACHINE,
    requirements=requirements(1, 2, 4, 5, 6, 7, 8, 10, 12, 16, 31),
    properties=with_harms(PROPERTIES),
    variants=(
        Variant(machine=ANY_END, violates={OWN_ITEM: 2}, about="As under the mark: an end ends whatever turn is installed."),
        Variant(machine=EAGER, violates={DOUBT: 5}, about="One prompt found over is taken for all of them."),
    ),
    discipline={Timer.RECHECK: ("R-SES-10",)},
    assume=implies(on(InstallRequested), installing.prompt != NOBODY),
    tokens=2,
    counter=2,
)
