"""What each event of a steered message must record and tell, exactly."""

from __future__ import annotations

from turnproof.machines.kernel import not_, one_of
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
    ForgetMessage,
    KeepForNextTurn,
    MessageSteered,
    MessageWithdrawn,
    PreparationDone,
    PutIntoRequest,
    QueueDrained,
    RequestSent,
    ReturnToHead,
    TurnOver,
    now,
    ready,
    steered,
)
from turnproof.specs.exactly import Writer
from turnproof.specs.language import Property

write = Writer(MACHINE)
ID, R26 = "R-REPLY-28", "R-REPLY-26"
new, prepares = now.phase == NEW, now.phase == PREPARING
LATER, IN = ({"phase": LEFT}, KeepForNextTurn()), ({"phase": QUEUED}, AcceptMessage())

EXACTLY: tuple[Property, ...] = (
    write.answers(MessageSteered,
                  write.case(MessageSteered, new & not_(steered.open), *LATER),
                  write.case(MessageSteered, new & steered.open & steered.prepared, *IN),
                  write.case(MessageSteered, new & steered.open & not_(steered.prepared), {"phase": PREPARING}), requirements=ID),
    write.answers(PreparationDone,
                  write.case(PreparationDone, prepares & ready.open, *IN),
                  write.case(PreparationDone, prepares & not_(ready.open), *LATER), requirements=ID),
    write.answers(MessageWithdrawn,
                  write.case(MessageWithdrawn, one_of(now.phase, NEW, PREPARING), {"phase": WITHDRAWN}),
                  write.case(MessageWithdrawn, one_of(now.phase, QUEUED, LEFT), {"phase": WITHDRAWN}, ForgetMessage()),
                  requirements=ID, refuses=now.phase == TAKEN),
    write.answers(QueueDrained, write.case(QueueDrained, now.phase == QUEUED, {"phase": TAKEN}, PutIntoRequest()), requirements=R26),
    write.answers(RequestSent, write.case(RequestSent, now.phase == TAKEN, {"phase": DELIVERED}), requirements=R26),
    write.answers(AttemptStopped, write.case(AttemptStopped, now.phase == TAKEN, {"phase": QUEUED}, ReturnToHead()), requirements=R26),
    write.answers(TurnOver, write.case(TurnOver, one_of(now.phase, QUEUED, TAKEN), *LATER), requirements=R26),
)  # fmt: skip
