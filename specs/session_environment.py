"""The server of an OpenCode session: its execution and its inbox. Requests and the orchestrator are ``session_requests``.

Written as machines so that each may do anything a real one does. None of them is part of the adapter. Three items exist: the prompts
``a`` and ``b`` of the first and the second user turn, and the report ``c`` of a background child. Every execution serves at least one
item that none before it served, so there are at most three; each is called by the first item it was begun with.

``inbox.cancel`` and a second reading of the history are answered within the step that asks for them. What either would find later is tried
all the same: a prompt that is admitted after its cancel (N2), and events that are handled after what they tell is over (N5).

``session.active`` and the history are read as of one moment. They are two requests; an adapter that asks for the active sessions first, and
for the history once more where the two do not fit together, knows no less. An execution never publishes ``failed`` here: it differs from
``succeeded`` in the terminal's word alone, which ``session_failed`` shows.

Sources: anomalyco/opencode ``packages/core/src/session/run-coordinator.ts`` and ``execution.ts`` @074027a.
"""

from __future__ import annotations

from enum import Enum
from typing import Annotated, Any

from attrs import evolve, frozen

from turnproof.machines.kernel import NOBODY, Machine, Row, Token, any_of, choose, named, one_of, only_if, symbol
from turnproof.machines.session_stream import What
from turnproof.machines.session_words import Past

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


def ended(after: Place) -> Server:
    """The execution under way is over; what was lost before has its idle item after it now."""
    moved = {}
    for name, told in ((A, server.told_a), (B, server.told_b), (C, None)):
        place = getattr(server, name)
        over = choose(place == Place.RUNNING, after, choose(place == Place.LOST, Place.BURIED, place))
        known = one_of(place, Place.RUNNING, Place.LOST)
        moved[name] = choose(known if told is None else known & told, Place.OVER, over)
    return evolve(server, **moved, phase=SETTLING, execution=NOBODY)


def _one(item: str, after: Place, **more: object) -> Server:
    """The item that the event names is ``after`` now."""
    moved = {name: choose(item == name, after, getattr(server, name)) for name in ITEMS}
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
        Row(Finished, at=RUNNING, data=ended(Place.SUCCEEDED),
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
        Row(CleanedUp, at=STOPPING, data=ended(Place.INTERRUPTED),
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
