"""What a Stop does of itself."""

from __future__ import annotations

from turnproof.machines import session_stop as stop
from turnproof.machines.kernel import implies, not_
from turnproof.machines.session_words import (
    EndRequested,
    StopFutile,
    StopSent,
    StopWithdrawn,
)
from turnproof.specs.harms import with_harms
from turnproof.specs.language import Always, Sometimes, Spec, Step, Variant, after, count, emits, on, taken
from turnproof.specs.session_history import MARKING_STOP
from turnproof.specs.session_requirements import requirements

OWN = "a Stop ends the turn it was for, and no other"
after_stop = after(stop.Stop)

SPEC = Spec(
    machine=stop.MACHINE,
    requirements=requirements(3, 15),
    properties=with_harms((
        Step(OWN, implies(emits(EndRequested), stop.now.own & (stop.now.phase == stop.WAITING)), requirements="R-SES-3",
             harm="a Stop of an earlier turn ends the next one"),
        Step("it answers once", requirements="R-SES-15", holds=
             (count(EndRequested) + count(StopFutile) + count(StopWithdrawn) <= 1)
             & implies(stop.now.phase == stop.DONE, not_(taken()))),
        Step("the end of its turn is the end of it", requirements="R-SES-3", holds=
             implies(on(stop.TurnOver) & (stop.now.phase == stop.WAITING), after_stop.phase == stop.DONE)),
        Always("it is for a turn exactly while it waits", stop.now.own == (stop.now.phase == stop.WAITING), requirements="R-SES-3"),
        Sometimes("it times out", emits(EndRequested), requirements="R-SES-15"),
        Sometimes("nothing was running", emits(StopFutile), requirements="R-SES-15"),
        Sometimes("it is sent", emits(StopSent), requirements="R-SES-15"),
    )),
    variants=(Variant(machine=MARKING_STOP, violates={OWN: 3}, about="Up to V4: it outlives its turn."),),
    discipline={stop.Timer.REPLY: ("R-SES-15",)},
)  # fmt: skip
