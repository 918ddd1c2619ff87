"""What the start of a user turn does of itself."""

from __future__ import annotations

from turnproof.machines import session_start as start
from turnproof.machines.kernel import implies, not_
from turnproof.machines.session_stop import TurnOver
from turnproof.machines.session_words import (
    InstallRequested,
    SendSkipped,
    StartRefused,
)
from turnproof.specs.harms import with_harms
from turnproof.specs.language import Sometimes, Spec, Step, after, emits, on, refuses, taken
from turnproof.specs.session_requirements import requirements

after_start = after(start.Start)

SPEC = Spec(
    machine=start.MACHINE,
    requirements=requirements(5, 15, 31),
    properties=with_harms((
        Step("a start that was told of a doubt asks before it sends", requirements="R-SES-5", holds=
             implies(on(start.TurnWanted) & start.wanted.doubt & taken(), after_start.phase == start.ASKING)),
        Step("a start without a doubt asks nothing", requirements="R-SES-31", holds=
             implies(on(start.TurnWanted) & not_(start.wanted.doubt) & taken(), after_start.phase == start.PREPARING)),
        Step("a session that is still active gets no second prompt", requirements="R-SES-5", holds=
             implies(start.now.phase == start.TOLD_ACTIVE, not_(emits(InstallRequested)))),
        Step("a prompt is sent by the start that installed its turn", requirements="R-SES-5", holds=
             implies(emits(start.SendPrompt), start.now.phase == start.INSTALLED)),
        refuses("one start at a time", start.TurnWanted, start.now.phase != start.IDLE, requirements="R-SES-15"),
        Sometimes("it is refused", emits(StartRefused), requirements="R-SES-5"),
        Sometimes("its question has no answer", on(start.QuestionExpired) & taken(), requirements="R-SES-15"),
        Sometimes("its turn is stopped before it sends", emits(SendSkipped), requirements="R-SES-5"),
        Sometimes("its turn is over before it sends", on(TurnOver) & taken(), requirements="R-SES-5"),
    )),
    discipline={start.Timer.QUESTION: ("R-SES-15",)},
    tokens=1,
)  # fmt: skip
