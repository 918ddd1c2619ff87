"""The requests under way to the server of an OpenCode session, and the orchestrator: part of the environment, like the server itself."""

from __future__ import annotations

from enum import Enum
from typing import Annotated, Any

from attrs import evolve, frozen

from turnproof.machines.kernel import Machine, Range, Row, Token, choose, symbol
from turnproof.machines.session_words import Answer
from turnproof.specs.session_environment import A, B

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
    SAID_YES = "said yes"
    """Its reply is on its way."""
    SAID_NO = "said no"
    SAID_ERROR = "said error"
    DONE = "done"


class How(Enum):
    """What becomes of an interrupt."""

    ANSWERED = "answered"
    UNHEARD = "unheard"
    """The server processes it, and nobody waits for the reply."""
    LOST = "lost"
    """The server does nothing, and no reply ever comes."""
    FAILS = "fails"
    """The server does nothing, and an error comes."""


NOT_SENT, UNDER_WAY, PROCESSING, SAID_YES, SAID_NO, SAID_ERROR, HANDLED = InterruptPhase
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


@frozen
class Abandon:
    """It is still under way, and nobody waits for it."""


interrupt, processed, replied = symbol(Interrupt), symbol(InterruptProcessed), symbol(ServerReplied)
INTERRUPT: Machine[Interrupt, Any, Any] = Machine(
    name="interrupt_request",
    initial=Interrupt(),
    now=interrupt,
    events=(InterruptSent, InterruptProcessed, ServerReplied, InterruptReplyHandled, ReplyUnwanted),
    effects=(AskServer, TellAnswer, TellFailure, Abandon),
    rows=(
        Row(InterruptSent, at=NOT_SENT, to=UNDER_WAY),
        Row(InterruptSent, refuse="a Stop sends one interrupt"),
        Row(processed, at=UNDER_WAY, when=processed.how == How.ANSWERED, to=PROCESSING, emit=(AskServer(processed.early),)),
        Row(processed, at=UNDER_WAY, when=processed.how == How.FAILS, to=SAID_ERROR),
        Row(InterruptProcessed, ignore="none is under way for which somebody waits"),
        Row(replied, at=PROCESSING, data=evolve(interrupt, phase=choose(replied.accepted, SAID_YES, SAID_NO))),
        Row(ServerReplied, ignore="it is the reply to another interrupt"),
        Row(InterruptReplyHandled, at=SAID_YES, to=HANDLED, emit=(TellAnswer(True),)),
        Row(InterruptReplyHandled, at=SAID_NO, to=HANDLED, emit=(TellAnswer(False),)),
        Row(InterruptReplyHandled, at=SAID_ERROR, to=HANDLED, emit=(TellFailure(),)),
        Row(InterruptReplyHandled, ignore="no reply is on its way"),
        Row(ReplyUnwanted, at=REPLIES, to=HANDLED),
        Row(ReplyUnwanted, at=UNDER_WAY, to=HANDLED, emit=(Abandon(),)),
        Row(ReplyUnwanted, ignore="no reply is on its way"),
    ),
)


class LatePhase(Enum):
    """One phase; what is under way is a number."""

    OPEN = "open"


@frozen
class Late:
    """Interrupts under way for which nobody waits. They are alike: the server processes one of them, or none, at any later time."""

    phase: LatePhase = LatePhase.OPEN
    flying: Annotated[int, Range(0, 3)] = 0


@frozen
class InterruptAbandoned:
    """A Stop waits no more for its interrupt."""


late = symbol(Late)
LATE_INTERRUPTS: Machine[Late, Any, Any] = Machine(
    name="late_interrupts",
    initial=Late(),
    now=late,
    events=(InterruptSent, InterruptAbandoned, InterruptProcessed),
    effects=(AskServer,),
    rows=(
        Row(InterruptSent, when=late.flying == 0, data=evolve(late, flying=1)),
        Row(InterruptSent, ignore="one is under way already"),
        Row(InterruptAbandoned, when=late.flying < 3, data=evolve(late, flying=late.flying + 1)),
        Row(InterruptAbandoned, refuse="there are three interrupts"),
        Row(processed, when=(late.flying > 0) & (processed.how == How.UNHEARD), data=evolve(late, flying=late.flying - 1),
            emit=(AskServer(processed.early),)),
        Row(InterruptProcessed, when=late.flying > 0, data=evolve(late, flying=late.flying - 1)),
        Row(InterruptProcessed, ignore="none is under way"),
    ),
)  # fmt: skip

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
