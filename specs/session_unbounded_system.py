"""The session in an environment without bounds: the adapter's machines as they are, wired to ``session_unbounded_parts``.

Nothing here is counted down: any number of prompts, reports, executions, Stops, interrupts, drops, restarts, unclear replies, wakes and
offers, and a stream of any length. All powers N1 to N13, permission requests, executions that fail, and the death of the stream,
at once and always.

Where the environment is told less exactly than in ``session_environment``, it may do more:
  * a turn of another item, its request, its history and its deliveries are whatever the environment says;
  * an interrupt may end any execution, whether or not a Stop was made, and its reply says what it likes;
  * a second reading of the history, there answered within the step that asks, may come at any time in which one could be asked for;
  * the orchestrator may start a continuation at any time in which no turn runs, offered or not.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from attrs import evolve

from turnproof.machines import session as target
from turnproof.machines import session_start as start_words
from turnproof.machines import session_stop as stop_words
from turnproof.machines import session_stream as stream_words
from turnproof.machines import session_words as words
from turnproof.machines.kernel import NOBODY, OnlyIf, Row, StartTimer, named, not_, one_of, symbol
from turnproof.machines.session_start import MACHINE as START
from turnproof.machines.session_stop import MACHINE as STOP
from turnproof.machines.session_stream import LOST, SUBSCRIBED, UP, What
from turnproof.machines.session_stream import MACHINE as STREAM
from turnproof.machines.session_words import Past, ReportTurn, Turn
from turnproof.specs import session_requests as req
from turnproof.specs import session_unbounded_parts as env
from turnproof.specs.language import AnyMachine
from turnproof.specs.session_requests import RequestPhase
from turnproof.specs.session_unbounded_parts import Ahead, P, Place
from turnproof.specs.system import Absorbs, AnyPart, Copy, Part, Spontaneous, System, Unsent, Wire

AGAIN = STOP.variant(
    "session_stops",
    first=(
        Row(stop_words.StopRequested, at=stop_words.DONE, to=stop_words.WAITING, data=evolve(stop_words.now, own=True),
            emit=(words.StopSent(), stop_words.SendInterrupt(), StartTimer(stop_words.Timer.REPLY)), name="the next Stop"),
    ),
)  # fmt: skip
"""One Stop after another: while one waits for its reply, another joins it, so there is never a second that waits."""

session: Part[target.Session] = Part("session", target.MACHINE)
start, stop, stream = Part("start", START), Part("stop", AGAIN), Part("stream", STREAM)
request, item, line, truth = Part("request", req.REQUEST), Part("item", env.ITEM), Part("line", env.LINE), Part("truth", env.TRUTH)
now = session.now
doubt = named("something is in doubt", (now.doubt != NOBODY) | now.more)
free = named("no turn runs or begins", (now.phase == Turn.NONE) & (start.now.phase == start_words.IDLE) & (stream.now.phase == UP))
live = one_of(stream.now.phase, UP, SUBSCRIBED)
watched = named("the prompt is sent and not delivered",
    (now.phase == Turn.USER) & one_of(now.sending, target.SENT, target.TAKEN, target.UNSURE))  # fmt: skip
PLACES = {
    Past.ABSENT: (Place.ABSENT, Place.WAITING, Place.CANCELLED),
    Past.UNDER_WAY: (Place.RUNNING, Place.LOST),
    Past.SUCCEEDED: (Place.SUCCEEDED, Place.BURIED),
    Past.INTERRUPTED: (Place.INTERRUPTED,),
}
"""What the history says of the item, by where the server has it."""


def past_is(past: Past) -> Any:
    """The history says this of the item followed."""
    return one_of(item.now.phase, *PLACES[past])


def read(active: bool, past: Past) -> Any:
    """The history may say so of the item of the turn, or of the wake that runs: exactly that of the item followed, anything of another."""
    mine = past_is(past) if active else past_is(past) & (item.now.phase != Place.RUNNING)
    others = (now.item != NOBODY) & (now.item != P)
    if active and past is Past.UNDER_WAY:
        # What was delivered to a wake before, and is under way yet, is served by an execution that was under way all the time.
        others = others & ((now.phase == Turn.USER) | line.now.busy | stream.now.restarted)
    nobody = now.item == NOBODY
    told = ((now.item == P) & mine) | others
    return told | nobody if past is Past.ABSENT else told


# ── wires ──

HEARD = (words.ExecutionStarted, words.ExecutionEnded, words.ItemDelivered, words.PermissionAsked, words.HistoryRead, words.StreamDied)
SAID = (words.InstallRequested, words.StartRefused, words.SessionFoundIdle, words.PromptFoundOver, words.PromptHandedOver,
        words.SendSkipped)  # fmt: skip


def wires() -> Iterator[Wire]:
    """What the parts tell each other."""
    hand, cancel, sent, reply, report = (
        symbol(env.Hand), symbol(words.CancelPrompt), symbol(start_words.SendPrompt), symbol(req.Reply), symbol(ReportTurn)
    )  # fmt: skip
    yield Wire(line, hand, stream, stream_words.Arrived(hand.what, NOBODY, hand.item))
    yield Wire(line, env.Subscribe, stream, stream_words.Subscribed())
    yield Wire(item, env.Announce, line, env.Published())
    yield Wire(item, env.BreakStream, stream, stream_words.ServerLost())
    yield Wire(item, env.Cancelled, session, words.PromptCancelled(P))
    yield Wire(stream, stream_words.LoseBuffer, line, env.Emptied())
    for heard in HEARD:
        yield Wire(stream, heard, session)
    for said in SAID:
        yield Wire(start, said, session)
    yield Wire(start, sent, request, req.PromptSent(), where=sent.prompt == P)
    yield Wire(request, req.Admit, item, env.Admitted())
    yield Wire(request, reply, session, words.PromptAnswered(P, reply.answer))
    yield Wire(session, report, request, req.TurnIsOver(), where=report.prompt == P)
    yield Wire(session, cancel, item, env.CancelAsked(), where=cancel.prompt == P)
    for stops in (words.StopSent, words.StopWithdrawn, words.StopFutile, words.EndRequested):
        yield Wire(stop, stops, session)
    for part in (start, stop):
        yield Wire(session, ReportTurn, part, stop_words.TurnOver())


def copies() -> Iterator[Copy]:
    """What the monitor sees."""
    report, want = symbol(ReportTurn), symbol(start_words.TurnWanted)
    yield Copy(session, words.HoldWake, truth, env.WakeHeld())
    yield Copy(session, words.TakeWake, truth, env.WakeTaken())
    yield Copy(session, words.AbsorbWake, truth, env.WakeTaken())
    yield Copy(session, words.DropWakes, truth, env.WakesDropped())
    yield Copy(stream, stream_words.LoseBuffer, truth, env.StreamLost())
    yield Copy(stop, words.StopSent, truth, env.StopMade())
    yield Copy(session, report, truth, env.Told(report.prompt))
    yield Copy(start, want, truth, env.Began(want.prompt))


# ── what may happen ──


def events(knows_restarts: bool = True) -> Iterator[Spontaneous]:
    """Everything that may begin a step, but for the timers."""
    yield from _user()
    yield from _starts_and_stops()
    yield from _stream(knows_restarts)
    yield from _server()
    yield from _others()


def _user() -> Iterator[Spontaneous]:
    want = symbol(start_words.TurnWanted)
    unused = (request.now.phase == RequestPhase.UNSENT) & (item.now.phase == Place.ABSENT)
    yield Spontaneous(start, start_words.TurnWanted(P, doubt), when=free & unused)
    yield Spontaneous(start, start_words.TurnWanted(want.prompt, doubt), when=free & (want.prompt != P) & (want.prompt != NOBODY))
    yield Spontaneous(stop, stop_words.StopRequested(False), when=(now.phase != Turn.NONE) & (stop.now.phase != stop_words.WAITING))
    yield Spontaneous(session, words.ContinuationStarted(), when=free)


def _starts_and_stops() -> Iterator[Spontaneous]:
    asking, mine = start.now.phase == start_words.ASKING, now.doubt == P
    finished = one_of(item.now.phase, *PLACES[Past.SUCCEEDED], *PLACES[Past.INTERRUPTED])
    alive = one_of(item.now.phase, *PLACES[Past.UNDER_WAY])
    none = not_(finished) & (item.now.phase != Place.RUNNING)
    for answer, when in ((start_words.ActiveRead(True), alive), (start_words.ActiveRead(False, True), finished),
                         (start_words.ActiveRead(False), none)):  # fmt: skip
        yield Spontaneous(start, answer, when=asking & (not_(mine) | when))
    answers = one_of(start.now.phase, start_words.TOLD_IDLE, start_words.TOLD_OVER, start_words.TOLD_ACTIVE)
    yield Spontaneous(start, start_words.AnswerHandled(), when=answers)
    yield Spontaneous(start, start_words.Prepared(stream.now.phase == UP), when=start.now.phase == start_words.PREPARING)
    wanted = (now.phase == Turn.USER) & (now.item == start.now.prompt) & not_(now.stopped)
    yield Spontaneous(start, start_words.SendDue(wanted), when=start.now.phase == start_words.INSTALLED)
    waits = stop.now.phase == stop_words.WAITING
    for interrupted in (True, False):
        yield Spontaneous(stop, stop_words.InterruptAnswered(interrupted), when=waits)
    yield Spontaneous(stop, stop_words.InterruptFailed(), when=waits)


def _stream(knows_restarts: bool) -> Iterator[Spontaneous]:
    known: Any = stream.now.restarted if knows_restarts else False
    yield Spontaneous(stream, stream_words.Dropped(), when=live)
    yield Spontaneous(stream, stream_words.AttemptsSpent(), when=stream.now.phase == LOST)
    for past in Past:
        for active in (True, False):
            snapshot = stream_words.SnapshotTaken(active, past, known)
            yield Spontaneous(stream, snapshot, when=(stream.now.phase == SUBSCRIBED) & read(active, past))
            # What a recheck asks for is answered within its step; here it may come at any time in which one could ask.
            asked = (stream.now.phase == UP) & session.running(target.Timer.RECHECK)
            yield Spontaneous(session, words.HistoryRead(active, past), when=asked & read(active, past))


def _server() -> Iterator[Spontaneous]:
    phase, up = request.now.phase, stream.now.phase == UP
    flying, delayed = phase == RequestPhase.FLYING, one_of(phase, RequestPhase.BROKEN_LATE, RequestPhase.LATE)
    for lost in (False, True):
        yield Spontaneous(request, req.PromptTaken(lost), when=flying)
    for failed in (req.PromptNotTaken(), req.PromptRefused(), req.PromptDelayed()):
        yield Spontaneous(request, failed, when=flying)
    yield Spontaneous(request, req.PromptTakenLate(), when=delayed)
    replies = one_of(phase, RequestPhase.OK, RequestPhase.REFUSED, RequestPhase.BROKEN, RequestPhase.BROKEN_LATE)
    yield Spontaneous(request, req.ReplyHandled(), when=replies)
    place = item.now.phase
    no_prompt = (phase == RequestPhase.UNSENT) & (start.now.prompt != P) & (now.item != P)
    yield Spontaneous(item, env.Admitted(), when=(place == Place.ABSENT) & no_prompt)
    yield Spontaneous(item, env.Served(live), when=place == Place.WAITING)
    for well in (True, False):
        yield Spontaneous(item, env.Over(well), when=place == Place.RUNNING)
    yield Spontaneous(item, env.ServerDied())
    yield Spontaneous(item, env.OtherEnded(), when=place == Place.LOST)
    yield Spontaneous(line, env.DeliveryComes(), when=up & (line.now.phase == Ahead.DELIVERY) & line.now.busy)
    for what, at in ((What.SUCCEEDED, Place.SUCCEEDED), (What.INTERRUPTED, Place.INTERRUPTED), (What.FAILED, Place.INTERRUPTED)):
        yield Spontaneous(line, env.OwnEndComes(what), when=up & (line.now.phase == Ahead.END) & (place == at))
    for busy in (True, False):
        yield Spontaneous(line, env.Opened(place == Place.RUNNING, busy), when=stream.now.phase == LOST)


def _others() -> Iterator[Spontaneous]:
    other, answered, cancelled = symbol(env.OtherComes), symbol(words.PromptAnswered), symbol(words.PromptCancelled)
    up, busy, free_line = stream.now.phase == UP, line.now.busy, line.now.phase != Ahead.END
    yield Spontaneous(line, env.StartComes(), when=up & not_(busy) & free_line)
    yield Spontaneous(line, other, when=up & busy & (other.item != P) & (other.item != NOBODY))
    yield Spontaneous(line, env.RequestComes(), when=up & busy)
    for how in (What.SUCCEEDED, What.FAILED):
        yield Spontaneous(line, env.EndComes(how), when=up & busy & free_line)
    yield Spontaneous(line, env.EndComes(What.INTERRUPTED), when=up & free_line)
    yield Spontaneous(session, answered, when=(answered.prompt != P) & (answered.prompt != NOBODY))
    yield Spontaneous(session, cancelled, when=(cancelled.prompt != P) & (cancelled.prompt != NOBODY))


ABSORBED = {
    "session": (
        words.ShowPermission,
        words.ReadAgain,
        words.HoldWake,
        words.DropWakes,
        words.AbsorbWake,
        words.TakeWake,
        words.CancelPrompt,
    ),
    "start": (stop_words.SendInterrupt, start_words.SendPrompt),
    "stop": (stop_words.SendInterrupt, stop_words.DropReply),
    "stream": (stream_words.Buffer, stream_words.AskHistory),
}  # fmt: skip
"""What becomes of these is the environment's to say; the prompt of the item, and taking it out of the inbox, are wired as well."""


def system(
    name: str = "session_unbounded", *, machine: AnyMachine = target.MACHINE, stops: AnyMachine = AGAIN, knows_restarts: bool = True
) -> System:
    """The session that ``machine`` is. ``knows_restarts``: a reconnect tells whether the server is the same process."""
    parts: tuple[AnyPart, ...] = (Part("session", machine), start, Part("stop", stops), stream, request, item, line)
    emitted = {p.name: {type(i.effect if isinstance(i, OnlyIf) else i) for row in p.machine.rows for i in row.emit} for p in parts}
    joined, sent = tuple(w for w in wires() if w.effect_class in emitted[w.source.name]), tuple(events(knows_restarts))
    told = {(w.target.name, w.event_class) for w in joined} | {(e.to.name, e.event_class) for e in sent}
    told |= {(p.name, rule.expires) for p in parts for rule in p.machine.timers}
    unsent = [(p, tuple(e for e in p.machine.events if (p.name, e) not in told)) for p in parts]
    absorbed = [(p, tuple(e for e in ABSORBED.get(p.name, ()) if e in emitted[p.name])) for p in parts]
    return System(
        name=name,
        parts=parts,
        wires=joined,
        spontaneous=sent,
        monitors=(truth,),
        copies=tuple(copies()),
        absorbed=tuple(Absorbs(p, *effects) for p, effects in absorbed if effects),
        unsent=tuple(Unsent(p, *never, because="nothing here sends it") for p, never in unsent if never),
    )
