"""What must hold of one message that is steered into a run."""

from __future__ import annotations

from attrs import evolve, frozen

from turnproof.machines.kernel import implies, not_, one_of, symbol
from turnproof.machines.steering_message import (
    DELIVERED,
    LEFT,
    MACHINE,
    NEW,
    PREPARING,
    QUEUED,
    TAKEN,
    WITHDRAWN,
    AcceptMessage,
    AttemptStopped,
    KeepForNextTurn,
    MessageSteered,
    MessageWithdrawn,
    PreparationDone,
    R,
    RequestSent,
    ReturnToHead,
    SteeringMessage,
    TurnOver,
    now,
    ready,
    steered,
)
from turnproof.specs.harms import with_harms
from turnproof.specs.language import (
    Always,
    Fair,
    History,
    LeadsTo,
    Property,
    Sometimes,
    Spec,
    Step,
    Variant,
    after,
    emits,
    on,
    refuses,
    taken,
)
from turnproof.specs.reply_operation_requirements import REQUIREMENTS
from turnproof.specs.steering_message_exactly import EXACTLY

then = after(SteeringMessage)
ID = "R-REPLY-28"
R26 = "R-REPLY-26"


@frozen
class Past:
    """Whether the person took it back before it was in a request, and whether an abort put it back."""

    withdrawn: bool = False
    returned: bool = False


past = symbol(Past)
PAST = History(
    Past(),
    past,
    (
        (on(MessageWithdrawn) & taken(), evolve(past, withdrawn=True)),
        (emits(ReturnToHead), evolve(past, returned=True)),
    ),
)

ENDS = Fair("a turn ends at last", one_of(now.phase, QUEUED, TAKEN), on(TurnOver, RequestSent, MessageWithdrawn) & taken())
NEVER_LOST = "an accepted message is delivered, withdrawn or left to the next turn"
BACK = "a message taken into a request that is not sent goes back"
WITHDRAWN_IN_TIME = "a message that was withdrawn is accepted by nobody"

PROPERTIES: tuple[Property, ...] = (
    Step("a message is accepted only while the attempt accepts any", requirements=ID, holds=
         implies(emits(AcceptMessage), (on(MessageSteered) & steered.open) | (on(PreparationDone) & ready.open)),
         harm="a message is accepted by a run that will never read it"),
    Step(WITHDRAWN_IN_TIME, implies(past.withdrawn, not_(taken())), requirements=ID, harm="a message somebody took back is answered"),
    Always("withdrawn is for ever", past.withdrawn == (now.phase == WITHDRAWN), requirements=ID),
    refuses("a message in a request cannot be taken back", MessageWithdrawn, now.phase == TAKEN, requirements=ID),
    Step(BACK, implies(on(AttemptStopped) & (now.phase == TAKEN), emits(ReturnToHead) & (then.phase == QUEUED)), requirements=R26,
        harm="a message that was accepted just before an abort is lost"),
    Step("what is queued or taken when the turn is over is left to the next turn", requirements=R26, holds=
         implies(on(TurnOver) & one_of(now.phase, QUEUED, TAKEN), emits(KeepForNextTurn) & (then.phase == LEFT))),
    Step("a message reaches the model out of a request, once", requirements=R26, holds=
         implies(then.phase == DELIVERED, one_of(now.phase, TAKEN, DELIVERED)) & implies(now.phase == DELIVERED, not_(taken()))),
    Step("a message that comes too late is left to the next turn", requirements=R26, holds=
         implies((on(MessageSteered) & not_(steered.open) & (now.phase == NEW)) | (on(PreparationDone) & not_(ready.open)
         & (now.phase == PREPARING)), emits(KeepForNextTurn)), harm="a message vanishes"),
    LeadsTo(NEVER_LOST, one_of(now.phase, QUEUED, TAKEN), one_of(now.phase, DELIVERED, WITHDRAWN, LEFT), requirements=R26,
        fairness=(ENDS,), harm="a message is accepted and never answered"),
    Sometimes("a message is delivered after an abort put it back", (now.phase == DELIVERED) & past.returned, requirements=R26),
    Sometimes("a message is withdrawn in preparation", on(MessageWithdrawn) & (now.phase == PREPARING), requirements=ID),
)  # fmt: skip

LOST = MACHINE.variant("steering_message_lost", first=(R(AttemptStopped, at=TAKEN, to=MACHINE.phases[0], name="AttemptStopped/lost"),))
STILL_QUEUED = MACHINE.variant(
    "steering_message_still_queued",
    first=(R(ready, at=WITHDRAWN, when=ready.open, to=QUEUED, emit=(AcceptMessage(),), name="PreparationDone/still queued"),),
)

SPEC = Spec(
    machine=MACHINE,
    requirements={rid: REQUIREMENTS[rid] for rid in (ID, R26)},
    properties=with_harms((*PROPERTIES, *EXACTLY)),
    histories=(PAST,),
    variants=(
        Variant(machine=LOST, violates={BACK: 3}, about="openclaw/openclaw#128008: what was drained just before an abort was lost."),
        Variant(machine=STILL_QUEUED, violates={WITHDRAWN_IN_TIME: 2},
                about="openclaw/openclaw#126314: a message aborted during its slow preparation was queued all the same."),
    ),
)  # fmt: skip
