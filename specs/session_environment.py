"""The environment of an OpenCode session: the server's execution and inbox, requests under way, the orchestrator.

Written as machines so that each may do anything a real one does. None of them is part of the adapter. Three items exist: the prompts
``a`` and ``b`` of the first and the second user turn, and the report ``c`` of a background child. Every execution serves at least one
item that none before it served, so there are at most three; each is called by the first item it was begun with.

Sources: anomalyco/opencode ``packages/core/src/session/run-coordinator.ts`` and ``execution.ts`` @074027a.
"""

from __future__ import annotations

from enum import Enum
from typing import Annotated, Any

from attrs import evolve, frozen

from turnproof.machines.kernel import NOBODY, Machine, Range, Row, Token, any_of, choose, named, one_of, only_if, symbol
from turnproof.machines.session_stream import Published, What
from turnproof.machines.session_words import Answer, Past

A, B, C = ITEMS = ("a", "b", "c")
"""The prompts of the two user turns, and the report of the child."""

# ── the server: one execution at a time, and its inbox ──


class ServerPhase(Enum):
    """How the execution of the session stands."""

    IDLE = "idle"
    QUEUED = "queued"
    """Owned; its start is not published yet."""
    RUNNING = "running"
    STOPPING = "stopping"
    """Interrupted, and cleaning up."""
    SETTLING = "settling"
    """Its end is published, and the key is still owned."""


class Place(Enum):
    """Where an item of the inbox is."""

    ABSENT = "absent"
    WAITING = "waiting"
    RUNNING = "running"
    """The execution under way serves it."""
    SUCCEEDED = "succeeded"
    """The execution that served it is over, and wrote an idle item that says so."""
    INTERRUPTED = "interrupted"
    LOST = "lost"
    """The server restarted: no end and no idle item."""
    BURIED = "buried"
    """As lost, and the idle item of a later execution follows it: the history reads as if that had served it."""
    CANCELLED = "cancelled"
    OVER = "over"
    """Over, and how it ended is not told apart: its turn has its terminal, or it is a report. This keeps the number of states down."""


IDLE, QUEUED, RUNNING, STOPPING, SETTLING = ServerPhase


@frozen
class Server:
    """The execution of one session and its inbox."""

    phase: ServerPhase = IDLE
    a: Place = Place.ABSENT
    b: Place = Place.ABSENT
    c: Place = Place.ABSENT
    doorbell: bool = False
    """Work was recorded since the loop looked last."""
    execution: Annotated[str, Token] = NOBODY
    """The execution under way, by the first item it was begun with; nobody once it is settled."""
    asking: bool = False
    """It waits for an answer to a permission request."""
    told_a: bool = False
    """The turn of the prompt has its terminal: how its run ends is read by nobody."""
    told_b: bool = False


@frozen
class Admitted:
    """Work is recorded: a prompt is admitted, or a report queued. A repeat of the same id is nothing."""

    item: Annotated[str, Token]


@frozen
class StartPublished:
    """The loop begins: the start is published, and what waits is delivered."""


@frozen
class Joined:
    """At a step boundary what waits is delivered into the execution that runs."""


@frozen
class Finished:
    """The loop decided to end, perhaps one step before more work was recorded, and publishes it."""


@frozen
class PermissionWanted:
    """A tool asks for a permission, and waits."""


@frozen
class PermissionGiven:
    """The user answers what was shown."""


@frozen
class PermissionRejected:
    """The adapter rejected the request."""


@frozen
class Interrupted:
    """An interrupt is processed. ``early``: a queued run ends without having published a start."""

    early: bool


@frozen
class CleanedUp:
    """The interrupted execution is over at last."""


@frozen
class Settled:
    """The key is given up, or a successor begins at once if the doorbell rang."""


@frozen
class Restarted:
    """The server process died: no end is published, no idle item is written, and the stream breaks."""


@frozen
class CancelAsked:
    """``inbox.cancel`` is processed."""

    item: Annotated[str, Token]


@frozen
class TurnTold:
    """The turn of this prompt has its terminal."""

    prompt: Annotated[str, Token]


@frozen
class TurnBegun:
    """A turn of this prompt begins, perhaps once more after it was refused."""

    prompt: Annotated[str, Token]


@frozen
class HistoryAsked:
    """``session.active`` and the history of an item are read, and answered within the step."""

    item: Annotated[str, Token]


@frozen
class HistoryAnswer:
    """What is read."""

    active: bool
    past: Past


@frozen
class Publish:
    """Publish an event of the session."""

    what: What
    execution: Annotated[str, Token]
    item: Annotated[str, Token] = NOBODY


@frozen
class InterruptReply:
    """Answer an interrupt. ``accepted``: there was something to interrupt."""

    accepted: bool


@frozen
class BreakStream:
    """The connection of every subscriber breaks."""


@frozen
class ItemCancelled:
    """The item was taken out of the inbox before it was delivered."""

    item: Annotated[str, Token]


server, admitted, hit, cancel = symbol(Server), symbol(Admitted), symbol(Interrupted), symbol(CancelAsked)
WAITS = {A: server.a == Place.WAITING, B: server.b == Place.WAITING, C: server.c == Place.WAITING}
waiting = named("something waits in the inbox", any_of(*WAITS.values()))
lead = choose(WAITS[A], A, choose(WAITS[B], B, C))


def _moved(before: Place, after: Place, **more: object) -> Server:
    """Every item that is ``before`` is ``after`` now."""
    moved = {name: choose(getattr(server, name) == before, after, getattr(server, name)) for name in ITEMS}
    return evolve(server, **moved, **more)  # type: ignore[arg-type]


def _ended(after: Place) -> Server:
    """The execution under way is over; what was lost before has its idle item after it now."""
    moved = {}
    for name, told in ((A, server.told_a), (B, server.told_b), (C, None)):
        place = getattr(server, name)
        over = choose(place == Place.RUNNING, after, choose(place == Place.LOST, Place.BURIED, place))
        known = one_of(place, Place.RUNNING, Place.LOST)
        moved[name] = choose(known if told is None else known & told, Place.OVER, over)
    return evolve(server, **moved, phase=SETTLING, execution=NOBODY)  # type: ignore[arg-type]


def _one(item: str, after: Place, **more: object) -> Server:
    """The item that the event names is ``after`` now."""
    moved = {name: choose(item == name, after, getattr(server, name)) for name in ITEMS}  # type: ignore[comparison-overlap]
    return evolve(server, **moved, **more)  # type: ignore[arg-type]


def _is(item: str, place: Place) -> bool:
    """The item that the event names is there."""
    return any_of(*((item == name) & (getattr(server, name) == place) for name in ITEMS))


PLACES = {
    Past.ABSENT: (Place.ABSENT, Place.WAITING, Place.CANCELLED),
    Past.UNDER_WAY: (Place.RUNNING, Place.LOST),
    Past.SUCCEEDED: (Place.SUCCEEDED, Place.BURIED, Place.OVER),
    Past.INTERRUPTED: (Place.INTERRUPTED,),
}
"""What the history says of an item, by where the server has it."""
asked, told, begun = symbol(HistoryAsked), symbol(TurnTold), symbol(TurnBegun)
ENDS = (Place.SUCCEEDED, Place.INTERRUPTED, Place.BURIED, Place.CANCELLED)


def _delivered(execution: str) -> tuple[Any, ...]:
    return tuple(only_if(WAITS[name], Publish(What.DELIVERED, execution, name)) for name in ITEMS)


SERVER: Machine[Server, Any, Any] = Machine(
    name="session_server",
    initial=Server(),
    now=server,
    events=(Admitted, StartPublished, Joined, Finished, PermissionWanted, PermissionGiven, PermissionRejected, Interrupted, CleanedUp,
            Settled, Restarted, CancelAsked, HistoryAsked, TurnTold, TurnBegun),
    effects=(Publish, InterruptReply, BreakStream, ItemCancelled, HistoryAnswer),
    rows=(
        Row(admitted, at=IDLE, when=_is(admitted.item, Place.ABSENT), data=_one(admitted.item, Place.WAITING, phase=QUEUED)),
        Row(admitted, at=QUEUED, when=_is(admitted.item, Place.ABSENT), data=_one(admitted.item, Place.WAITING)),
        Row(admitted, when=_is(admitted.item, Place.ABSENT), data=_one(admitted.item, Place.WAITING, doorbell=True)),
        Row(Admitted, ignore="the same id again"),
        Row(StartPublished, at=QUEUED, when=waiting, data=_moved(Place.WAITING, Place.RUNNING, phase=RUNNING, execution=lead),
            emit=(Publish(What.STARTED, lead), *_delivered(lead))),
        Row(StartPublished, at=QUEUED, to=IDLE, because="what it was begun for was cancelled"),
        Row(StartPublished, ignore="nothing is queued"),
        Row(Joined, at=RUNNING, when=waiting, data=_moved(Place.WAITING, Place.RUNNING, doorbell=False), emit=_delivered(server.execution)),
        Row(Joined, ignore="nothing waits for the execution that runs"),
        Row(Finished, at=RUNNING, data=_ended(Place.SUCCEEDED),
            emit=(Publish(What.SUCCEEDED, server.execution),)),
        Row(Finished, ignore="nothing runs"),
        Row(PermissionWanted, at=RUNNING, data=evolve(server, asking=True), emit=(Publish(What.ASKED, server.execution),)),
        Row(PermissionWanted, ignore="nothing runs"),
        Row(PermissionGiven, data=evolve(server, asking=False)),
        Row(PermissionRejected, at=RUNNING, when=server.asking, to=STOPPING, data=evolve(server, asking=False, doorbell=False)),
        Row(PermissionRejected, ignore="nothing asks"),
        Row(Interrupted, at=RUNNING, to=STOPPING, data=evolve(server, doorbell=False, asking=False), emit=(InterruptReply(True),)),
        Row(hit, at=QUEUED, when=hit.early, to=STOPPING, emit=(InterruptReply(True),),
            because="it ends interrupted and never started; the inbox rows stay"),
        Row(Interrupted, at=QUEUED, when=waiting, data=_moved(Place.WAITING, Place.RUNNING, phase=STOPPING, execution=lead),
            emit=(InterruptReply(True), Publish(What.STARTED, lead), *_delivered(lead))),
        Row(Interrupted, at=SETTLING, data=evolve(server, doorbell=False), emit=(InterruptReply(False),),
            because="the doorbell is dropped: no successor, and the inbox rows stay parked"),
        Row(Interrupted, emit=(InterruptReply(False),)),
        Row(CleanedUp, at=STOPPING, data=_ended(Place.INTERRUPTED),
            emit=(Publish(What.INTERRUPTED, server.execution),)),
        Row(CleanedUp, ignore="nothing stops"),
        Row(Settled, at=SETTLING, when=server.doorbell, to=QUEUED, data=evolve(server, doorbell=False)),
        Row(Settled, at=SETTLING, to=IDLE),
        Row(Settled, ignore="nothing settles"),
        Row(Restarted, data=_moved(Place.RUNNING, Place.LOST, phase=IDLE, execution=NOBODY, doorbell=False, asking=False),
            emit=(BreakStream(),)),
        Row(cancel, when=_is(cancel.item, Place.WAITING), data=_one(cancel.item, Place.CANCELLED), emit=(ItemCancelled(cancel.item),)),
        Row(CancelAsked, ignore="it was delivered, or is not there"),
        *(Row(asked, when=any_of(*(_is(asked.item, place) for place in places)), emit=(HistoryAnswer(server.phase != IDLE, past),))
          for past, places in PLACES.items() if past is not Past.ABSENT),
        Row(told, when=told.prompt == A, data=evolve(server, told_a=True, a=choose(one_of(server.a, *ENDS), Place.OVER, server.a))),
        Row(TurnTold, data=evolve(server, told_b=True, b=choose(one_of(server.b, *ENDS), Place.OVER, server.b))),
        Row(begun, when=begun.prompt == A, data=evolve(server, told_a=False)),
        Row(TurnBegun, data=evolve(server, told_b=False)),
        Row(HistoryAsked, emit=(HistoryAnswer(server.phase != IDLE, Past.ABSENT),)),
    ),
)  # fmt: skip

# ── a prompt request ──


class RequestPhase(Enum):
    """How far a prompt request is."""

    UNSENT = "unsent"
    FLYING = "flying"
    OK = "ok"
    """Its reply is on its way."""
    REFUSED = "refused"
    BROKEN = "broken"
    """An error is on its way; whether the prompt was taken is decided."""
    BROKEN_LATE = "broken, late"
    """An error is on its way, and the prompt may be admitted yet."""
    LATE = "late"
    """The error was handled, and the prompt may be admitted yet."""
    DONE = "done"


UNSENT, FLYING, OK, REFUSED, BROKEN, BROKEN_LATE, LATE, DONE = RequestPhase


@frozen
class Request:
    """The request of one prompt."""

    phase: RequestPhase = UNSENT


@frozen
class PromptSent:
    """The adapter hands the prompt to the HTTP client."""


@frozen
class PromptTaken:
    """The server admits it. ``lost``: the reply is lost on its way, and an error takes its place."""

    lost: bool


@frozen
class PromptNotTaken:
    """An error, and the server never takes the prompt."""


@frozen
class PromptRefused:
    """A clear refusal."""


@frozen
class PromptDelayed:
    """An error now, while the prompt is still under way."""


@frozen
class PromptTakenLate:
    """The server admits it after all."""


@frozen
class ReplyHandled:
    """The adapter handles the reply."""


@frozen
class TurnIsOver:
    """The turn of the prompt is over: nothing waits for a reply, but for a clear refusal."""


@frozen
class Admit:
    """Record the prompt in the inbox."""


@frozen
class Reply:
    """What the adapter is told."""

    answer: Answer


request, prompt_taken = symbol(Request), symbol(PromptTaken)
REQUEST: Machine[Request, Any, Any] = Machine(
    name="prompt_request",
    initial=Request(),
    now=request,
    events=(PromptSent, PromptTaken, PromptNotTaken, PromptRefused, PromptDelayed, PromptTakenLate, ReplyHandled, TurnIsOver),
    effects=(Admit, Reply),
    rows=(
        Row(PromptSent, at=UNSENT, to=FLYING),
        Row(PromptSent, refuse="a prompt is sent once"),
        Row(prompt_taken, at=FLYING, when=prompt_taken.lost, to=BROKEN, emit=(Admit(),)),
        Row(PromptTaken, at=FLYING, to=OK, emit=(Admit(),)),
        Row(PromptTaken, ignore="nothing is under way"),
        Row(PromptNotTaken, at=FLYING, to=BROKEN),
        Row(PromptNotTaken, ignore="nothing is under way"),
        Row(PromptRefused, at=FLYING, to=REFUSED),
        Row(PromptRefused, ignore="nothing is under way"),
        Row(PromptDelayed, at=FLYING, to=BROKEN_LATE),
        Row(PromptDelayed, ignore="nothing is under way"),
        Row(PromptTakenLate, at=BROKEN_LATE, to=BROKEN, emit=(Admit(),)),
        Row(PromptTakenLate, at=LATE, to=DONE, emit=(Admit(),)),
        Row(PromptTakenLate, ignore="nothing is late"),
        Row(ReplyHandled, at=OK, to=DONE, emit=(Reply(Answer.OK),)),
        Row(ReplyHandled, at=REFUSED, to=DONE, emit=(Reply(Answer.REFUSED),)),
        Row(ReplyHandled, at=BROKEN, to=DONE, emit=(Reply(Answer.UNCLEAR),)),
        Row(ReplyHandled, at=BROKEN_LATE, to=LATE, emit=(Reply(Answer.UNCLEAR),)),
        Row(ReplyHandled, ignore="no reply is on its way"),
        Row(TurnIsOver, at=(OK, BROKEN), to=DONE),
        Row(TurnIsOver, at=BROKEN_LATE, to=LATE),
        Row(TurnIsOver, ignore="nothing else is told apart by it"),
    ),
)

# ── an interrupt request ──


class InterruptPhase(Enum):
    """How far an interrupt request is."""

    UNSENT = "unsent"
    FLYING = "flying"
    PROCESSING = "processing"
    """For the length of one step: the server handles it."""
    HANGING = "hanging"
    """As processing, but nobody waits for the reply."""
    SAID_YES = "said yes"
    """Its reply is on its way."""
    SAID_NO = "said no"
    SAID_ERROR = "said error"
    DONE = "done"


class How(Enum):
    """What becomes of an interrupt."""

    ANSWERED = "answered"
    UNHEARD = "unheard"
    """The server processes it, and nobody waits for a reply."""
    LOST = "lost"
    """The server does nothing, and no reply ever comes."""
    FAILS = "fails"
    """The server does nothing, and an error comes."""


NOT_SENT, UNDER_WAY, PROCESSING, HANGING, SAID_YES, SAID_NO, SAID_ERROR, HANDLED = InterruptPhase
REPLIES = (SAID_YES, SAID_NO, SAID_ERROR)


@frozen
class Interrupt:
    """One interrupt request."""

    phase: InterruptPhase = NOT_SENT


@frozen
class InterruptSent:
    """The adapter sends it."""


@frozen
class InterruptProcessed:
    """It reaches the server, or does not. ``early`` is for a run that is queued."""

    how: How
    early: bool


@frozen
class ServerReplied:
    """The server answers what it is processing."""

    accepted: bool


@frozen
class InterruptReplyHandled:
    """The adapter handles the reply."""


@frozen
class ReplyUnwanted:
    """Nobody waits for the reply any more."""


@frozen
class AskServer:
    """Interrupt the session."""

    early: bool


@frozen
class TellAnswer:
    """The adapter is told whether there was something to interrupt."""

    interrupted: bool


@frozen
class TellFailure:
    """The adapter is told that the request failed."""


interrupt, processed, replied = symbol(Interrupt), symbol(InterruptProcessed), symbol(ServerReplied)
INTERRUPT: Machine[Interrupt, Any, Any] = Machine(
    name="interrupt_request",
    initial=Interrupt(),
    now=interrupt,
    events=(InterruptSent, InterruptProcessed, ServerReplied, InterruptReplyHandled, ReplyUnwanted),
    effects=(AskServer, TellAnswer, TellFailure),
    rows=(
        Row(InterruptSent, at=(NOT_SENT, HANDLED), to=UNDER_WAY),
        Row(InterruptSent, ignore="one is under way already"),
        Row(processed, at=UNDER_WAY, when=processed.how == How.ANSWERED, to=PROCESSING, emit=(AskServer(processed.early),)),
        Row(processed, at=UNDER_WAY, when=processed.how == How.UNHEARD, to=HANGING, emit=(AskServer(processed.early),)),
        Row(processed, at=UNDER_WAY, when=processed.how == How.FAILS, to=SAID_ERROR),
        Row(InterruptProcessed, at=UNDER_WAY, to=HANDLED),
        Row(InterruptProcessed, ignore="none is under way"),
        Row(replied, at=PROCESSING, data=evolve(interrupt, phase=choose(replied.accepted, SAID_YES, SAID_NO))),
        Row(ServerReplied, at=HANGING, to=HANDLED),
        Row(ServerReplied, ignore="it is the reply to another interrupt"),
        Row(InterruptReplyHandled, at=SAID_YES, to=HANDLED, emit=(TellAnswer(True),)),
        Row(InterruptReplyHandled, at=SAID_NO, to=HANDLED, emit=(TellAnswer(False),)),
        Row(InterruptReplyHandled, at=SAID_ERROR, to=HANDLED, emit=(TellFailure(),)),
        Row(InterruptReplyHandled, ignore="no reply is on its way"),
        Row(ReplyUnwanted, at=REPLIES, to=HANDLED),
        Row(ReplyUnwanted, ignore="no reply is on its way"),
    ),
)

# ── the orchestrator ──


class UserPhase(Enum):
    """How many user turns were begun."""

    FRESH = "fresh"
    FIRST = "first"
    SECOND = "second"


@frozen
class User:
    """The user, who sends one prompt after another; a turn that was refused before its prompt was sent may be tried again."""

    phase: UserPhase = UserPhase.FRESH


@frozen
class Prompted:
    """The user sends the next prompt. ``doubt``: what the start finds when it checks the mark."""

    doubt: bool


@frozen
class PromptBack:
    """The start of the last turn was refused."""


@frozen
class WantTurn:
    """Start a user turn."""

    prompt: Annotated[str, Token]
    doubt: bool


user, prompted = symbol(User), symbol(Prompted)
USER: Machine[User, Any, Any] = Machine(
    name="session_user",
    initial=User(),
    now=user,
    events=(Prompted, PromptBack),
    effects=(WantTurn,),
    rows=(
        Row(prompted, at=UserPhase.FRESH, to=UserPhase.FIRST, emit=(WantTurn(A, prompted.doubt),)),
        Row(prompted, at=UserPhase.FIRST, to=UserPhase.SECOND, emit=(WantTurn(B, prompted.doubt),)),
        Row(Prompted, ignore="there is no third prompt"),
        Row(PromptBack, at=UserPhase.FIRST, to=UserPhase.FRESH),
        Row(PromptBack, at=UserPhase.SECOND, to=UserPhase.FIRST),
        Row(PromptBack, refuse="no turn was begun"),
    ),
)


class ServicePhase(Enum):
    """The continuation service has one phase; what it holds is a number."""

    OPEN = "open"


@frozen
class Service:
    """The queue of continuation offers."""

    phase: ServicePhase = ServicePhase.OPEN
    offers: Annotated[int, Range(0, 3)] = 0


@frozen
class Offered:
    """A wake is held: a continuation is offered."""


@frozen
class OfferDropped:
    """The newest wake is a user turn's: its offer does nothing."""


@frozen
class OffersDropped:
    """Every wake was dropped: no offer does anything."""


@frozen
class ContinuationDue:
    """An offer is taken while no turn runs. ``wake``: some wake is held; which one offered it is not looked at."""

    wake: bool


@frozen
class StartContinuation:
    """Start a continuation turn."""


service, due = symbol(Service), symbol(ContinuationDue)
SERVICE: Machine[Service, Any, Any] = Machine(
    name="continuation_service",
    initial=Service(),
    now=service,
    events=(Offered, OfferDropped, OffersDropped, ContinuationDue),
    effects=(StartContinuation,),
    rows=(
        Row(Offered, data=evolve(service, offers=service.offers + 1)),
        Row(OfferDropped, when=service.offers > 0, data=evolve(service, offers=service.offers - 1)),
        Row(OfferDropped, ignore="nothing is offered"),
        Row(OffersDropped, data=evolve(service, offers=0)),
        Row(due, when=(service.offers > 0) & due.wake, data=evolve(service, offers=service.offers - 1), emit=(StartContinuation(),)),
        Row(ContinuationDue, when=service.offers > 0, data=evolve(service, offers=service.offers - 1)),
        Row(ContinuationDue, ignore="nothing is offered"),
    ),
)

__all__ = ["Published"]
