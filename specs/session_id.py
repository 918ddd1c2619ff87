"""What must hold of one session id."""

from __future__ import annotations

from turnproof.machines.kernel import NOBODY, Row, implies, not_, one_of
from turnproof.machines.session_id import (
    ALIAS,
    CURRENT,
    MACHINE,
    UNKNOWN,
    AnswerUnknown,
    Effect,
    ForwardWait,
    IdBound,
    IdReplaced,
    OwnerReleased,
    SessionId,
    WaitByIdRequested,
    bound,
    now,
    released,
    replaced,
)
from turnproof.specs.harms import with_harms
from turnproof.specs.language import Always, Property, Sometimes, Spec, Step, Variant, after, count, emits, ignored, on, refuses, taken
from turnproof.specs.reply_operation_requirements import REQUIREMENTS

then = after(SessionId)
WAITS = "a wait by a current or an old id is forwarded to its operation"
OLD_OWNER = "the release of another operation leaves the id alone"

PROPERTIES: tuple[Property, ...] = (
    Always("an id has an owner exactly while it is known", (now.phase == UNKNOWN) == (now.owner == NOBODY), requirements="R-REPLY-7"),
    Step(WAITS, requirements="R-REPLY-7", holds=
         implies(on(WaitByIdRequested) & one_of(now.phase, CURRENT, ALIAS), emits(ForwardWait, operation=now.owner)),
         harm="a caller that knows the old id is told the session is idle while it runs"),
    Step("an unknown id is answered at once", implies(on(WaitByIdRequested) & (now.phase == UNKNOWN), emits(AnswerUnknown)),
        requirements="R-REPLY-7"),
    Step("a replaced id stays as an alias of the same operation", requirements="R-REPLY-7", holds=
         implies(on(IdReplaced) & taken(), (then.phase == ALIAS) & (then.owner == now.owner) & (replaced.operation == now.owner))),
    Sometimes("a caller waits by an alias", on(WaitByIdRequested) & (now.phase == ALIAS), requirements="R-REPLY-7"),
    refuses("an id another operation owns is not taken", IdBound, (now.owner != NOBODY) & (bound.operation != now.owner),
        requirements="R-REPLY-25",
            harm="two keys share a session"),
    Step("an owner changes only from or to nobody", implies(then.owner != now.owner, (then.owner == NOBODY) | (now.owner == NOBODY)),
        requirements="R-REPLY-25"),
    Step(OLD_OWNER, implies(on(OwnerReleased) & (released.operation != now.owner), not_(taken())), requirements="R-REPLY-24"),
    Step("the release of the owner forgets the id", implies(on(OwnerReleased) & (released.operation == now.owner)
        & (now.owner != NOBODY), then.phase == UNKNOWN),
         requirements="R-REPLY-24"),
    Step("whoever binds an id has it as its current one", implies(on(IdBound) & taken(), (then.phase == CURRENT)
        & (then.owner == bound.operation)), requirements="R-REPLY-25"),
    Step("an operation binds an id that is unknown, or its own alias; its current one it has already", requirements="R-REPLY-7", holds=
         implies(on(IdBound) & (bound.operation != NOBODY) & (now.phase == UNKNOWN), taken())
         & implies(on(IdBound) & (bound.operation == now.owner) & (now.phase == ALIAS), taken())
         & implies(on(IdBound) & (bound.operation == now.owner) & (now.phase == CURRENT), ignored()),
         harm="a session that rotates back to an old id loses its waiters"),
    Step("only the current id of the operation that rotates becomes an alias", requirements="R-REPLY-7", holds=
         implies(on(IdReplaced), ignored() == ((now.phase != CURRENT) | (replaced.operation != now.owner)))),
    Step("the release of an operation concerns no id that is not its own", requirements="R-REPLY-24", holds=
         implies(on(OwnerReleased), ignored() == ((now.phase == UNKNOWN) | (released.operation != now.owner)))),
    Step("a wait by an id is answered or forwarded, once", requirements="R-REPLY-7", holds=
         implies(on(WaitByIdRequested), count(AnswerUnknown) + count(ForwardWait) == 1)),
    refuses("an id is not bound to nobody", IdBound, bound.operation == NOBODY, requirements="R-REPLY-25"),
)  # fmt: skip

R = Row[SessionId, Effect]
FORGETS = MACHINE.variant("session_id_forgets", replace={"IdReplaced/current": R(replaced, at=CURRENT,
    when=replaced.operation == now.owner, to=UNKNOWN, name="IdReplaced/current")})  # fmt: skip
UNCHECKED = MACHINE.variant("session_id_unchecked", replace={"OwnerReleased/current+alias": R(OwnerReleased, at=(CURRENT, ALIAS),
    to=UNKNOWN, name="OwnerReleased/current+alias")})  # fmt: skip

SPEC = Spec(
    machine=MACHINE,
    requirements={rid: REQUIREMENTS[rid] for rid in ("R-REPLY-7", "R-REPLY-24", "R-REPLY-25")},
    properties=with_harms(PROPERTIES),
    variants=(
        Variant(machine=FORGETS, violates={"a replaced id stays as an alias of the same operation": 2},
                about="A rotation that deletes the old entry: whoever waits by the old id is told at once that nothing runs."),
        Variant(machine=UNCHECKED, violates={OLD_OWNER: 2},
                about="E0 and E1: entries are deleted whether or not they still point to the operation that goes (B11)."),
    ),
)  # fmt: skip
