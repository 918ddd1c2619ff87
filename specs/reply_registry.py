"""The reply registry as a system: two operations compete for one key, with callers that wait, ids that rotate and attempts that linger.

Parts: the slot of the key, two reply operations ``a`` and ``b`` with their owners and attempts, three session ids, a caller that
waits for the key and one that waits by the first session id. The environment may do anything at any time: owners vanish, attempts
end late or never, an abort, an expiry or a force clear comes at the worst moment.
"""

from __future__ import annotations

from turnproof.machines.kernel import Row, implies, named, not_
from turnproof.machines.reply_operation import MACHINE as REPLY
from turnproof.machines.reply_operation_words import (
    AbortReason,
    AbortRequested,
    AbortSignal,
    ActivityRecorded,
    BackendAttached,
    BackendDetached,
    BarrierSettled,
    CancelBackend,
    Completed,
    ConsentReported,
    DeliverSteer,
    DetachUpstream,
    Evicted,
    ExpiryReason,
    ExpiryRequested,
    Failed,
    ForceCleared,
    KeyChangeRequested,
    LaneWaitBegan,
    LaneWaitEnded,
    MaintenanceWaitBegan,
    MaintenanceWaitEnded,
    MoveToKey,
    OutcomeCommitted,
    OwnedWaitBegan,
    OwnedWaitEnded,
    Phase,
    PhaseEntered,
    RecoveryRequested,
    Release,
    ReplyOperation,
    Result,
    RetainFailureRequested,
    RetainUntilCompleteRequested,
    RotateSession,
    SessionRotationRequested,
    SettleExpired,
    SettleOwner,
    StampActivity,
    SteerRequested,
    SupersedeRequested,
    Timer,
    UpstreamAborted,
    WindowExpired,
    WorkBegan,
    WorkEnded,
)
from turnproof.machines.reply_slot import (
    FREE,
    HELD,
    Admit,
    AnswerIdle,
    AttemptEnded,
    AttemptRequested,
    BarrierEnded,
    BeginRequested,
    FenceEnded,
    OfferDeclined,
    ReleaseReported,
    StartAttempt,
    StartQueuedTurn,
    TurnKind,
    TurnQueued,
    WaitAbandoned,
    WaitRequested,
    WakeWaiters,
)
from turnproof.machines.reply_slot import MACHINE as SLOT
from turnproof.machines.reply_waiter import MACHINE as WAITER
from turnproof.machines.reply_waiter import WAITING, CallerAborted, KeyReleased, RegisterWait, Resolve, WaitStarted, WithdrawWait
from turnproof.machines.session_id import ALIAS, AnswerUnknown, ForwardWait, IdBound, IdReplaced, OwnerReleased, WaitByIdRequested
from turnproof.machines.session_id import MACHINE as SESSION_ID
from turnproof.specs.harms import with_harms
from turnproof.specs.language import Always, Fair, LeadsTo, Property, Sometimes
from turnproof.specs.language import Step as StepProperty
from turnproof.specs.reply_operation_requirements import REQUIREMENTS
from turnproof.specs.reply_registry_environment import (
    ATTEMPT,
    IDS,
    OWNER,
    AskLane,
    AskSlot,
    Attach,
    Attempt,
    AttemptPhase,
    AttemptWanted,
    BeginWanted,
    Bind,
    Cancelled,
    Finished,
    LaneGiven,
    Leave,
    Owner,
    OwnerPhase,
    Replace,
    Rotated,
    TellBegun,
)
from turnproof.specs.reply_registry_environment import Admitted as OwnerAdmitted
from turnproof.specs.system import Absorbs, AnyPart, Part, Spontaneous, System, SystemSpec, SystemVariant, Unsent, Wire

slot = Part("slot", SLOT)
a, b = Part("a", REPLY), Part("b", REPLY)
owner_a, owner_b = Part("owner_a", OWNER), Part("owner_b", OWNER)
attempt_a, attempt_b = Part("attempt_a", ATTEMPT), Part("attempt_b", ATTEMPT)
ids = Part("ids", IDS)
id_1, id_2, id_3 = Part("id_1", SESSION_ID), Part("id_2", SESSION_ID), Part("id_3", SESSION_ID)
by_key, by_id = Part("by_key", WAITER), Part("by_id", WAITER)
IDENTIFIERS = (id_1, id_2, id_3)

SIDES = (("a", a, owner_a, attempt_a), ("b", b, owner_b, attempt_b))


def _wires_of(name: str, reply: Part[ReplyOperation], owner: AnyPart, attempt: AnyPart) -> tuple[Wire, ...]:
    """What one operation, its owner and its attempt say to the registry, and what it says to them."""
    from turnproof.machines.kernel import symbol

    admit, start, cancel = symbol(Admit), symbol(StartAttempt), symbol(CancelBackend)
    return (
        Wire(owner, AskSlot, slot, BeginRequested(name, TurnKind.VISIBLE)),
        Wire(slot, admit, owner, OwnerAdmitted(), where=admit.operation == name),
        Wire(owner, TellBegun, id_1, IdBound(name)),
        Wire(reply, Release, slot, ReleaseReported(name, False, False)),
        *(Wire(reply, Release, one, OwnerReleased(name)) for one in IDENTIFIERS),
        Wire(attempt, AskLane, slot, AttemptRequested(name)),
        Wire(slot, start, attempt, LaneGiven(), where=start.operation == name),
        Wire(attempt, Attach, reply, BackendAttached(name)),
        Wire(reply, cancel, attempt, Cancelled()),
        Wire(attempt, Leave, reply, BackendDetached(name)),
        Wire(attempt, Leave, slot, AttemptEnded(name)),
    )


def _world_of(reply: Part[ReplyOperation], owner: AnyPart, attempt: AnyPart) -> tuple[Spontaneous, ...]:
    """What may happen to one operation at any time once it has begun."""
    begun = owner.now.phase == OwnerPhase.BEGUN
    events = (
        PhaseEntered(Phase.RUNNING), AbortRequested(AbortReason.USER), ExpiryRequested(ExpiryReason.NO_ACTIVITY),
        OutcomeCommitted(), RetainUntilCompleteRequested(), Completed(False), ForceCleared(),
    )  # fmt: skip
    return (
        Spontaneous(owner, BeginWanted()),
        *(Spontaneous(reply, event, when=begun) for event in events),
        Spontaneous(attempt, AttemptWanted(), when=begun & (reply.now.phase == Phase.RUNNING)),
        Spontaneous(attempt, Finished()),
    )


ELSEWHERE_OF_A_REPLY = (
    MaintenanceWaitBegan, MaintenanceWaitEnded, LaneWaitBegan, LaneWaitEnded, OwnedWaitBegan, OwnedWaitEnded, ConsentReported,
    ActivityRecorded, WorkBegan, WorkEnded, UpstreamAborted, SupersedeRequested, RecoveryRequested, BarrierSettled, Failed,
    RetainFailureRequested, Evicted, SteerRequested, KeyChangeRequested, WindowExpired,
)  # fmt: skip
SHELL_OF_A_REPLY = (AbortSignal, DetachUpstream, StampActivity, DeliverSteer, MoveToKey, SettleOwner)


def _system() -> System:
    from turnproof.machines.kernel import symbol

    replaced, bound, forward = symbol(Replace), symbol(Bind), symbol(ForwardWait)
    return System(
        name="reply_registry",
        parts=(slot, a, b, owner_a, owner_b, attempt_a, attempt_b, ids, *IDENTIFIERS, by_key, by_id),
        wires=(
            *(wire for side in SIDES for wire in _wires_of(*side)),
            Wire(a, RotateSession, ids, Rotated()),
            *(Wire(ids, replaced, one, IdReplaced("a"), where=replaced.number == n) for n, one in enumerate(IDENTIFIERS, 1) if n < 3),
            *(Wire(ids, bound, one, IdBound("a"), where=bound.number == n) for n, one in enumerate(IDENTIFIERS, 1) if n > 1),
            Wire(by_key, RegisterWait, slot, WaitRequested()),
            Wire(by_id, RegisterWait, id_1, WaitByIdRequested()),
            Wire(id_1, forward, slot, WaitRequested()),
            Wire(id_1, AnswerUnknown, by_id, KeyReleased()),
            *(Wire(slot, answer, one, KeyReleased()) for answer in (WakeWaiters, AnswerIdle) for one in (by_key, by_id)),
            *(Wire(one, WithdrawWait, slot, WaitAbandoned()) for one in (by_key, by_id)),
        ),
        spontaneous=(
            *(event for _, reply, owner, attempt in SIDES for event in _world_of(reply, owner, attempt)),
            Spontaneous(a, SessionRotationRequested(False, False), when=(owner_a.now.phase == OwnerPhase.BEGUN) & (id_3.now.owner != "a")),
            *(Spontaneous(one, event) for one in (by_key, by_id) for event in (WaitStarted(0), CallerAborted())),
        ),
        absorbed=(
            *(Absorbs(reply, *SHELL_OF_A_REPLY) for reply in (a, b)),
            Absorbs(b, RotateSession),
            Absorbs(slot, StartQueuedTurn),
            *(Absorbs(one, Resolve) for one in (by_key, by_id)),
            *(Absorbs(one, ForwardWait, AnswerUnknown) for one in (id_2, id_3)),
        ),
        unsent=(
            *(Unsent(reply, *ELSEWHERE_OF_A_REPLY, because="covered by the reply operation's own specification") for reply in (a, b)),
            Unsent(b, SessionRotationRequested, because="one rotating session is enough"),
            Unsent(slot, BarrierEnded, FenceEnded, TurnQueued, OfferDeclined, because="covered by the slot's own specification"),
            *(Unsent(one, WaitByIdRequested, because="the caller knows the first id only") for one in (id_2, id_3)),
            Unsent(id_3, IdReplaced, because="there is no fourth id"),
        ),
    )


SYSTEM = _system()


def in_slot(reply: Part[ReplyOperation], owner: Part[Owner]) -> bool:
    """The operation has begun and not given its slot up."""
    return (owner.now.phase == OwnerPhase.BEGUN) & not_(reply.now.released)


def alive(attempt: Part[Attempt]) -> bool:
    """The attempt may still write the session."""
    return (attempt.now.phase == AttemptPhase.RUNNING) | (attempt.now.phase == AttemptPhase.STOPPING)


def touched(reply: Part[ReplyOperation]) -> bool:
    """Something late reached the operation."""
    first, *rest = (
        reply.on(e) for e in (Completed, AbortRequested, ExpiryRequested, ForceCleared, OutcomeCommitted, SettleExpired, BackendDetached)
    )
    for other in rest:
        first |= other
    return first


a_in, b_in = named("a holds its slot", in_slot(a, owner_a)), named("b holds its slot", in_slot(b, owner_b))
a_frees = a.emits(Release)
ALIAS_WAITS = "a caller that waits by a replaced id wakes with the release of the operation"
UNTOUCHED = "nothing late of a touches b"
IDLE_ANSWER = "true is answered while nobody holds the key"
HOLDER_KNOWN = "the slot knows who holds it"
ONE_ATTEMPT = "two attempts of one key never run together"
ONE_HOLDER = "at most one operation holds the slot"

PROPERTIES: tuple[Property, ...] = (
    Always(ONE_HOLDER, not_(a_in & b_in), requirements="R-REPLY-2", harm="two replies answer in one session"),
    Always(HOLDER_KNOWN, ((slot.now.holder == "a") == a_in) & ((slot.now.holder == "b") == b_in),
        requirements="R-REPLY-2"),
    Always("who waits, waits for a held key", requirements="R-REPLY-6", harm="a caller waits for ever at a free key", holds=
           implies((by_key.now.phase == WAITING) | (by_id.now.phase == WAITING), slot.now.phase == HELD)),
    StepProperty(IDLE_ANSWER, requirements="R-REPLY-6", holds=
         implies(by_key.emits(Resolve, released=True) | by_id.emits(Resolve, released=True), slot.next.phase != HELD),
         harm="a caller starts beside the successor"),
    StepProperty("a release answers each waiting caller once", requirements="R-REPLY-6", holds=
         implies((a_frees | b.emits(Release)) & (by_key.now.phase == WAITING), by_key.count(Resolve, released=True) == 1)),
    StepProperty(ALIAS_WAITS, requirements="R-REPLY-7", holds=
         implies(a_frees & (by_id.now.phase == WAITING), by_id.count(Resolve, released=True) == 1),
         harm="a caller that knows the old id waits for ever"),
    Sometimes("a caller waits by an id that was replaced", (by_id.now.phase == WAITING) & (id_1.now.phase == ALIAS),
        requirements="R-REPLY-7"),
    Sometimes("the session rotates twice while a caller waits", (by_id.now.phase == WAITING) & (id_3.now.owner == "a"),
        requirements="R-REPLY-7"),
    StepProperty(UNTOUCHED, requirements="R-REPLY-24", holds=
         implies(a.now.released & b_in & touched(a), (slot.next.holder == "b") & (b.next.result == b.now.result)
         & not_(b.emits(AbortSignal))
                 & (by_key.next.phase == by_key.now.phase)), harm="late cleanup of an old reply kills its successor"),
    Sometimes("b holds the slot while a's cleanup is late", a.now.released & b_in & (id_1.now.owner == "b"), requirements="R-REPLY-24"),
    Always("an id never outlives its operation", requirements="R-REPLY-25", holds=
           implies(id_1.now.owner == "a", a_in) & implies(id_1.now.owner == "b", b_in) & implies(id_2.now.owner == "a", a_in)),
    Always(ONE_ATTEMPT, not_(alive(attempt_a) & alive(attempt_b)), requirements="R-REPLY-26",
           harm="two attempts write one session"),
    Sometimes("an attempt outlives the slot of its operation", a.now.released & alive(attempt_a), requirements="R-REPLY-26"),
    LeadsTo("an operation with a result gives the slot up", a_in & (a.now.result != Result.NONE), slot.now.holder != "a",
        requirements="R-REPLY-4",
            fairness=(Fair("a running settle timer fires", a.running(Timer.SETTLE), a.took(SettleExpired)),), harm="the session is wedged"),
    Sometimes("the key is free again after both", (slot.now.phase == FREE) & b.now.released, requirements="R-REPLY-2"),
)  # fmt: skip


def _variants() -> tuple[SystemVariant, ...]:
    from turnproof.specs.reply_slot import BY_SESSION, NO_SERIAL_LANE
    from turnproof.specs.session_id import FORGETS

    again = REPLY.variant(
        "reply_operation_releases_again",
        replace={"Completed/released": Row(Completed, emit=(Release(),), name="Completed/released")},
    )
    return (
        SystemVariant(
            system=SYSTEM.with_machines("reply_registry_forgets_ids", id_1=FORGETS, id_2=FORGETS),
            violates={IDLE_ANSWER: 3},
            about="A rotation that deletes the old id: a caller that waits by it is told at once that nothing runs.",
        ),
        SystemVariant(
            system=SYSTEM.with_machines("reply_registry_by_session", slot=BY_SESSION, a=again, b=again),
            violates={HOLDER_KNOWN: 4, UNTOUCHED: 4},
            about="E0 and E1: a late release frees the successor's slot, because it names the session and not the operation (B11).",
        ),
        SystemVariant(
            system=SYSTEM.with_machines("reply_registry_lane_reset", slot=NO_SERIAL_LANE),
            violates={ONE_ATTEMPT: 7},
            about="The lane is reset while the attempt of the reply before still runs, and the next attempt starts beside it (B7).",
        ),
    )


SPEC = SystemSpec(
    system=SYSTEM,
    requirements={
        rid: REQUIREMENTS[rid]
        for rid in ("R-REPLY-2", "R-REPLY-4", "R-REPLY-6", "R-REPLY-7", "R-REPLY-24", "R-REPLY-25", "R-REPLY-26")
    },
    properties=with_harms(PROPERTIES),
    variants=_variants(),
    tokens=2,
    counter=2,
    proved=True,
)  # fmt: skip
