"""The environment of a session without bounds: one item is followed exactly, of every other anything may be told at any time.

What stands for any number. One item of the inbox, ``p``, is followed: any prompt of a user or any report of a child may be it, for all are
alike. Every other item is an identity of its own, and there are as many as a run likes; when one of them is delivered, answered, taken out
of the inbox, or what the history says of it, is left to the environment. Stops, interrupts, drops, restarts, unclear replies, wakes and
offers have no budget. An interrupt names nobody, so an execution may be interrupted at any time.

What stands for the stream. No buffer is kept, so none is bounded. Executions follow one another; therefore all that is known of what lies
between the event handled last and the one published last is where the delivery and the end of ``p`` are in it (:class:`Ahead`). Before
and after them anything may come, as long as starts and ends take turns.

How what ``session_environment`` has is found here, for the item that is followed and for all others:
  * a prompt or a report is recorded: :class:`Admitted`; nothing, until it is told of;
  * an execution begins or goes on and takes what waits: :class:`Served`, then :class:`DeliveryComes`; :class:`StartComes` and
    :class:`OtherComes`, at any time that fits the order;
  * it ends: :class:`Over`, then :class:`OwnEndComes`; :class:`EndComes`, and :class:`OtherEnded` where it writes an idle item;
  * an interrupt hits it, early or late, from a Stop or from a start: the same, for it may end so at any time;
  * the server dies: :class:`ServerDied`; the stream drops: the stream's own row, and :class:`Emptied`;
  * a new subscription stands: :class:`Opened`. An execution that serves the item then is the one whose end comes next.
"""

from __future__ import annotations

from enum import Enum
from typing import Annotated, Any

from attrs import evolve, frozen

from turnproof.machines.kernel import NOBODY, Counter, Machine, Row, Token, choose, not_, one_of, only_if, symbol
from turnproof.machines.session_stream import What

P = "p"
"""The item that is followed."""

# ── the item, as the server has it ──


class Place(Enum):
    """Where the item is."""

    ABSENT = "absent"
    WAITING = "waiting"
    RUNNING = "running"
    """The execution under way serves it."""
    SUCCEEDED = "succeeded"
    INTERRUPTED = "interrupted"
    LOST = "lost"
    """The server restarted: no end and no idle item."""
    BURIED = "buried"
    """As lost, and the idle item of a later execution follows it: the history reads as if that had served it."""
    CANCELLED = "cancelled"


@frozen
class Item:
    """One item of the inbox."""

    phase: Place = Place.ABSENT


@frozen
class Admitted:
    """It is recorded: a prompt, or a report."""


@frozen
class Served:
    """An execution takes it from the inbox. ``live``: the stream is subscribed."""

    live: bool


@frozen
class Over:
    """The execution that serves it ends. ``well``: it was not interrupted, and did not fail."""

    well: bool


@frozen
class ServerDied:
    """The server's process is gone, and whatever it ran."""


@frozen
class OtherEnded:
    """A later execution writes its idle item."""


@frozen
class CancelAsked:
    """``inbox.cancel`` is processed."""


@frozen
class Announce:
    """Its delivery is published to a subscriber."""


@frozen
class BreakStream:
    """The connection of every subscriber breaks."""


@frozen
class Cancelled:
    """It was taken out of the inbox before it was delivered."""


item, served, over = symbol(Item), symbol(Served), symbol(Over)
ITEM: Machine[Item, Any, Any] = Machine(
    name="followed_item",
    initial=Item(),
    now=item,
    events=(Admitted, Served, Over, ServerDied, OtherEnded, CancelAsked),
    effects=(Announce, BreakStream, Cancelled),
    rows=(
        Row(Admitted, at=Place.ABSENT, to=Place.WAITING),
        Row(Admitted, ignore="the same id again"),
        Row(served, at=Place.WAITING, to=Place.RUNNING, emit=(only_if(served.live, Announce()),)),
        Row(Served, ignore="it does not wait"),
        Row(over, at=Place.RUNNING, data=evolve(item, phase=choose(over.well, Place.SUCCEEDED, Place.INTERRUPTED))),
        Row(Over, ignore="nothing serves it"),
        Row(ServerDied, at=Place.RUNNING, to=Place.LOST, emit=(BreakStream(),)),
        Row(ServerDied, emit=(BreakStream(),)),
        Row(OtherEnded, at=Place.LOST, to=Place.BURIED),
        Row(OtherEnded, ignore="the history knows how it ended, or that it did not"),
        Row(CancelAsked, at=Place.WAITING, to=Place.CANCELLED, emit=(Cancelled(),)),
        Row(CancelAsked, ignore="it was delivered, or is not there"),
    ),
)

# ── what is published and not handled ──


class Ahead(Enum):
    """What is still to come on the stream, as far as the item is concerned."""

    NOTHING = "nothing"
    DELIVERY = "delivery"
    """Its delivery, and after that the end of the execution that serves it."""
    END = "end"
    """The execution at which the adapter is serves it: the next end is that execution's."""


@frozen
class Line:
    """The stream between the event handled last and the one published last."""

    phase: Ahead = Ahead.NOTHING
    busy: bool = False
    """An execution is under way where the adapter is."""


@frozen
class Published:
    """The delivery of the item is published."""


@frozen
class StartComes:
    """The start of some execution is handled."""


@frozen
class OtherComes:
    """The delivery of another item is handled."""

    item: Annotated[str, Token]


@frozen
class RequestComes:
    """A permission request is handled."""


@frozen
class EndComes:
    """The end of an execution that did not serve the item is handled. One that was interrupted early has no start."""

    what: What


@frozen
class DeliveryComes:
    """The delivery of the item is handled."""


@frozen
class OwnEndComes:
    """The end of the execution that served the item is handled. Of one that failed the history reads as interrupted."""

    what: What


@frozen
class Emptied:
    """What was published and not handled is lost."""


@frozen
class Opened:
    """A new subscription stands. ``serving``: an execution serves the item. ``busy``: some execution is under way."""

    serving: bool
    busy: bool


@frozen
class Hand:
    """The adapter handles this event of the stream."""

    what: What
    item: Annotated[str, Token] = NOBODY


@frozen
class Subscribe:
    """The new subscription stands."""


line, other, end, own, opened = symbol(Line), symbol(OtherComes), symbol(EndComes), symbol(OwnEndComes), symbol(Opened)
UNTOUCHED = (Ahead.NOTHING, Ahead.DELIVERY)
LINE: Machine[Line, Any, Any] = Machine(
    name="stream_ahead",
    initial=Line(),
    now=line,
    events=(Published, StartComes, OtherComes, RequestComes, EndComes, DeliveryComes, OwnEndComes, Emptied, Opened),
    effects=(Hand, Subscribe),
    rows=(
        Row(Published, to=Ahead.DELIVERY),
        Row(StartComes, at=UNTOUCHED, when=not_(line.busy), data=evolve(line, busy=True), emit=(Hand(What.STARTED),)),
        Row(StartComes, ignore="an execution is under way: its end comes first"),
        Row(other, when=line.busy, emit=(Hand(What.DELIVERED, other.item),)),
        Row(OtherComes, ignore="no execution is under way that it could be delivered to"),
        Row(RequestComes, when=line.busy, emit=(Hand(What.ASKED),)),
        Row(RequestComes, ignore="no execution is under way that could ask"),
        Row(end, at=UNTOUCHED, when=line.busy | (end.what == What.INTERRUPTED), data=evolve(line, busy=False), emit=(Hand(end.what),)),
        Row(EndComes, ignore="what is under way serves the item, or nothing is"),
        Row(DeliveryComes, at=Ahead.DELIVERY, when=line.busy, to=Ahead.END, emit=(Hand(What.DELIVERED, P),)),
        Row(DeliveryComes, ignore="it is not published, or something comes before it"),
        Row(own, at=Ahead.END, data=evolve(line, phase=Ahead.NOTHING, busy=False),
            emit=(Hand(own.what),)),
        Row(OwnEndComes, ignore="its delivery comes first"),
        Row(Emptied, data=evolve(line, phase=Ahead.NOTHING, busy=False)),
        Row(opened, data=evolve(line, phase=choose(opened.serving, Ahead.END, Ahead.NOTHING), busy=opened.serving | opened.busy),
            emit=(Subscribe(),)),
    ),
)  # fmt: skip

# ── what an observer beside the wire knows ──


class TruthPhase(Enum):
    """What happened that never may."""

    SOUND = "sound"
    TWICE = "twice"
    """The turn of the item got a second terminal."""
    ASTRAY = "astray"
    """A wake was taken that nobody held: taken twice, or taken and dropped."""


@frozen
class Truth:
    """The turn of the item, and the wakes. A monitor: the adapter never sees any of it."""

    phase: TruthPhase = TruthPhase.SOUND
    told: bool = False
    """The turn of the item has its terminal."""
    held: Annotated[int, Counter] = 0
    """Wakes held."""
    severed: bool = False
    """The stream was lost since a wake was held last: whose end comes next is not known by that."""
    aimed: bool = False
    """The Stop was made for the turn that is installed."""


@frozen
class WakeHeld:
    """The adapter holds a wake for the start it handles."""


@frozen
class WakeTaken:
    """A wake is a turn's now."""


@frozen
class WakesDropped:
    """Every wake held is forgotten."""


@frozen
class StreamLost:
    """What was published and not handled is lost."""


@frozen
class StopMade:
    """A Stop of the turn installed is made."""


@frozen
class Told:
    """A turn has its terminal."""

    prompt: Annotated[str, Token]


@frozen
class Began:
    """A user turn begins, perhaps once more after it was refused."""

    prompt: Annotated[str, Token]


truth, told, began = symbol(Truth), symbol(Told), symbol(Began)
TRUTH: Machine[Truth, Any, Any] = Machine(
    name="session_witness",
    initial=Truth(),
    now=truth,
    events=(WakeHeld, WakeTaken, WakesDropped, StreamLost, StopMade, Told, Began),
    effects=(),
    rows=(
        Row(WakeHeld, data=evolve(truth, held=truth.held + 1, severed=False)),
        Row(WakeTaken, when=truth.held > 0, data=evolve(truth, held=truth.held - 1)),
        Row(WakeTaken, to=TruthPhase.ASTRAY),
        Row(WakesDropped, data=evolve(truth, held=0)),
        Row(StreamLost, data=evolve(truth, severed=True)),
        Row(StopMade, data=evolve(truth, aimed=True)),
        Row(told, when=(told.prompt == P) & truth.told, data=evolve(truth, phase=TruthPhase.TWICE, aimed=False)),
        Row(told, data=evolve(truth, told=truth.told | (told.prompt == P), aimed=False)),
        Row(began, when=began.prompt == P, data=evolve(truth, told=False)),
        Row(Began, ignore="another's turn"),
    ),
)
GONE = (Place.SUCCEEDED, Place.BURIED)
"""Where the history says that it succeeded."""
is_over = one_of(item.phase, Place.SUCCEEDED, Place.BURIED, Place.INTERRUPTED)
