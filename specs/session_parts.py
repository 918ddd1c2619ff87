"""The OpenCode session as a system: the adapter's machines, the server, the requests between them, and who may do what when.

``world`` builds it around any design of the session: the rule of the mark in each of its versions, or the target. What the environment
may do has the names N1 to N13; ``without`` takes some of them away, and a report says which a violation needs.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Any

import attrs

from turnproof.machines import session_start as start_words
from turnproof.machines import session_stop as stop_words
from turnproof.machines import session_stream as stream_words
from turnproof.machines import session_words as words
from turnproof.machines.kernel import NOBODY, OnlyIf, any_of, named, not_, one_of, symbol
from turnproof.machines.session_start import MACHINE as START
from turnproof.machines.session_stop import MACHINE as STOP
from turnproof.machines.session_stream import DEAD, LOST, SUBSCRIBED, UP, What
from turnproof.machines.session_stream import MACHINE as STREAM
from turnproof.machines.session_words import Past, Turn
from turnproof.specs import session_environment as env
from turnproof.specs import session_requests as req
from turnproof.specs import session_truth as truth_words
from turnproof.specs.language import AnyMachine
from turnproof.specs.session_environment import ITEMS, PLACES, A, B, C, Place, ServerPhase
from turnproof.specs.session_requests import How, RequestPhase, UserPhase
from turnproof.specs.system import Absorbs, AnyPart, Budget, Channel, Copy, Empties, Part, Spontaneous, Switch, System, Unsent, Wire
from turnproof.specs.system_words import pending

N1 = Switch("N1", "a prompt's reply is lost, the prompt is never taken, or it is refused")
N2 = Switch("N2", "a prompt whose request failed is admitted at any later time")
N3 = Switch("N3", "a taken prompt's start is published any time later")
N4 = Switch("N4", "an interrupt is answered by an error, or is lost; that its reply takes longer than 10 s is always possible")
N5 = Switch("N5", "an event is handled late, also after the failure of a request was")
N6 = Switch("N6", "the stream drops at any point, twice")
N7 = Switch("N7", "the background child ends at any time, and reports")
N8 = Switch("N8", "a prompt meets an execution that runs or settles: it joins it, or misses it by one step")
N9 = Switch("N9", "a continuation starts any time after its offer, also after a user turn")
N10 = Switch("N10", "the user sends a prompt while something is still under way")
N11 = Switch("N11", "the server restarts: an execution is gone without an end")
N12 = Switch("N12", "a session that settles is found active although its end is published")
N13 = Switch("N13", "an interrupt ends a queued run that never publishes its start")
POWERS = (N1, N2, N3, N4, N5, N6, N7, N8, N9, N10, N11, N12, N13)
"""The nondeterminism of the environment. N3, N5, N9 and N10 are about order: without one, what it delays happens before anything else."""

STOPS = Switch("stops", "the user stops the turn that is installed, twice")
ASKS = Switch("asks", "an execution asks for a permission, once")
DEATH = Switch("death", "the reconnect fails for good")
MORE = (STOPS, ASKS, DEATH)

server, service, user = Part("server", env.SERVER), Part("service", req.SERVICE), Part("user", req.USER)
request_a, request_b = Part("request_a", req.REQUEST), Part("request_b", req.REQUEST)
interrupt_1, interrupt_2 = (Part(f"interrupt_{n}", req.INTERRUPT) for n in (1, 2))
"""The interrupts of the two Stops."""
late = Part("late", req.LATE_INTERRUPTS)
"""Interrupts nobody waits for: of a Stop that timed out or whose turn is over, and of a start that found the session still active."""
stop_1, stop_2 = Part("stop_1", STOP), Part("stop_2", STOP)
start, stream = Part("start", START), Part("stream", STREAM)
truth = Part("truth", truth_words.TRUTH)
REQUESTS = ((A, request_a), (B, request_b))
buffer = Channel("buffer", to=stream, capacity=10, when=stream.now.phase == UP)


@attrs.frozen(eq=False, kw_only=True)
class Design:
    """A design of the adapter: its machines, and what they read where they are not told."""

    session: AnyMachine
    doubt: Any
    """Whether a start has to ask ``session.active``: a formula over the session's state."""
    wakes: Any
    """Whether some wake is held: a formula over the session's state."""
    stop: AnyMachine = STOP
    start: AnyMachine = START
    item: Any = None
    """The item the history is read for; None: the prompt of the user turn installed."""
    keeps_wakes: bool = False
    """A held wake is forgotten only when the stream is dead."""
    knows_restarts: bool = True
    """A reconnect tells whether the server is the same process."""
    in_doubt: Any = None
    """The prompt a start asks the history about, besides ``session.active``; None: it asks for the session alone."""


# ── what is read, at the moment it is read ──


def past_is(item: Any, *pasts: Past) -> Any:
    """The history says one of these of the item now; of nobody it says that it is absent."""
    places = [place for past in pasts for place in PLACES[past]]
    there = any_of(*((item == name) & one_of(getattr(server.now, name), *places) for name in ITEMS))
    return there | (item == NOBODY) if Past.ABSENT in pasts else there


active = named("the session is active", server.now.phase != ServerPhase.IDLE)
settling = server.now.phase == ServerPhase.SETTLING
queued = server.now.phase == ServerPhase.QUEUED


NEEDS = {env.BreakStream: N11, words.StreamDied: DEATH, words.PermissionAsked: ASKS, words.RejectPermission: ASKS}
"""Effects that no run brings about without a power."""


class World:
    """Builds one system. ``session`` is the part whose machine the design brings."""

    more: tuple[Switch, ...] = ()
    """Powers of a world that has others than ``POWERS`` and ``MORE``."""

    def __init__(self, design: Design, without: Collection[Switch] = (), *, stops: int = 2, drops: int = 2) -> None:
        self.design, self.without, self.stops, self.drops = design, frozenset(without), stops, drops
        self.session: Part[Any] = Part("session", design.session)
        machines = {"stop_1": design.stop, "stop_2": design.stop, "start": design.start}
        self.stopping: tuple[AnyPart, ...] = (stop_1, stop_2)[:stops]
        self.interrupts = (interrupt_1, interrupt_2)[:stops]
        mine = (self.session, start, *self.stopping, stream, *self.interrupts, late)
        self.parts: tuple[AnyPart, ...] = tuple(
            Part(p.name, machines.get(p.name, p.machine)) for p in (*mine, server, user, service, request_a, request_b)
        )

    @property
    def wakes_after(self) -> Any:
        """Whether some wake is held after the step. Every design counts them alike."""
        return (self.session.next.ended > 0) | self.session.next.running

    # ── wires ──

    def wires(self) -> Iterator[Wire | Empties]:
        """Every wire of every design; what the machines at hand do not emit is left out."""
        session = self.session
        publish, keep, want = symbol(env.Publish), symbol(stream_words.Buffer), symbol(req.WantTurn)
        cancelled, unwanted, reread = symbol(env.ItemCancelled), symbol(words.CancelPrompt), symbol(stream_words.AskHistory)
        history, report = symbol(env.HistoryAnswer), symbol(words.ReportTurn)
        yield Wire(server, publish, stream, stream_words.Published(publish.what, publish.execution, publish.item))
        yield Wire(server, env.BreakStream, stream, stream_words.ServerLost())
        yield Wire(session, words.ReadAgain, stream)
        yield Wire(stream, reread, server, env.HistoryAsked(reread.item))
        yield Wire(server, history, session, words.HistoryRead(history.active, history.past))
        yield Wire(server, cancelled, session, words.PromptCancelled(cancelled.item))
        yield Wire(stream, keep, buffer, stream_words.Arrived(keep.what, keep.execution, keep.item))
        yield Empties(stream, stream_words.LoseBuffer, buffer)
        for heard in (
            words.ExecutionStarted,
            words.ExecutionEnded,
            words.ItemDelivered,
            words.PermissionAsked,
            words.HistoryRead,
            words.StreamDied,
        ):
            yield Wire(stream, heard, session)
        yield Wire(user, want, start, start_words.TurnWanted(want.prompt, want.doubt))
        for said in (
            words.InstallRequested,
            words.StartRefused,
            words.SessionFoundIdle,
            words.PromptFoundOver,
            words.PromptHandedOver,
            words.SendSkipped,
        ):
            yield Wire(start, said, session)
        yield Wire(start, words.StartRefused, user, req.PromptBack())
        yield Wire(start, stop_words.SendInterrupt, late, req.InterruptSent())
        sent, reply = symbol(start_words.SendPrompt), symbol(req.Reply)
        for prompt, request in REQUESTS:
            yield Wire(start, sent, request, req.PromptSent(), where=sent.prompt == prompt)
            yield Wire(session, report, request, req.TurnIsOver(), where=report.prompt == prompt)
            yield Wire(request, req.Admit, server, env.Admitted(prompt))
            yield Wire(request, reply, session, words.PromptAnswered(prompt, reply.answer))
        yield from self._stop_wires()
        for part in (start, *self.stopping):
            yield Wire(session, words.ReportTurn, part, stop_words.TurnOver())
        yield Wire(session, words.HoldWake, service, req.Offered())
        yield Wire(session, words.AbsorbWake, service, req.OfferDropped())
        yield Wire(session, words.DropWakes, service, req.OffersDropped())
        yield Wire(session, report, server, env.TurnTold(report.prompt), where=report.prompt != NOBODY)
        yield Wire(user, want, server, env.TurnBegun(want.prompt))
        yield Wire(service, req.StartContinuation, session, words.ContinuationStarted())
        yield Wire(session, words.RejectPermission, server, env.PermissionRejected())
        yield Wire(session, unwanted, server, env.CancelAsked(unwanted.prompt))

    def _stop_wires(self) -> Iterator[Wire]:
        """Of the Stops, and of every interrupt."""
        session, asked, told, answer = self.session, symbol(req.AskServer), symbol(env.InterruptReply), symbol(req.TellAnswer)
        for stop, interrupt in ((stop_1, interrupt_1), (stop_2, interrupt_2))[: self.stops]:
            for stops in (words.StopSent, words.StopWithdrawn, words.StopFutile, words.RunMarked, words.EndRequested):
                yield Wire(stop, stops, session)
            yield Wire(stop, stop_words.DropReply, interrupt, req.ReplyUnwanted())
            yield Wire(stop, stop_words.SendInterrupt, interrupt, req.InterruptSent())
            yield Wire(interrupt, answer, stop, stop_words.InterruptAnswered(answer.interrupted))
            yield Wire(interrupt, req.TellFailure, stop, stop_words.InterruptFailed())
        for interrupt in self.interrupts:
            yield Wire(interrupt, req.Abandon, late, req.InterruptAbandoned())
            yield Wire(server, told, interrupt, req.ServerReplied(told.accepted))
        senders: tuple[AnyPart, ...] = (*self.interrupts, late)
        for sender in senders:
            yield Wire(sender, asked, server, env.Interrupted(asked.early))

    def copies(self) -> Iterator[Copy]:
        """What the monitor sees."""
        publish, arrived, report = symbol(env.Publish), symbol(stream_words.Arrived), symbol(words.ReportTurn)
        want = symbol(req.WantTurn)
        yield Copy(server, publish, truth, truth_words.Delivered(publish.item, publish.execution), where=publish.what == What.DELIVERED)
        yield Copy(stream, arrived, truth, truth_words.StartHandled(arrived.execution), where=arrived.what == What.STARTED)
        yield Copy(stream, arrived, truth, truth_words.EndHandled(arrived.execution),
                   where=one_of(arrived.what, What.SUCCEEDED, What.INTERRUPTED, What.FAILED))  # fmt: skip
        yield Copy(stream, stream_words.LoseBuffer, truth, truth_words.StartOver())
        yield Copy(stream, arrived, truth, truth_words.StartOver(), where=arrived.what == What.DELIVERED)
        yield Copy(self.session, words.HoldWake, truth, truth_words.WakeHeld())
        yield Copy(self.session, words.TakeWake, truth, truth_words.WakeTaken())
        yield Copy(self.session, words.AbsorbWake, truth, truth_words.WakeAbsorbed())
        yield Copy(self.session, words.DropWakes, truth, truth_words.WakesDropped())
        yield Copy(self.session, report, truth, truth_words.Told(report.prompt))
        yield Copy(user, want, truth, truth_words.Began(want.prompt))
        failed = (report.prompt == A) & (report.outcome == words.Outcome.FAILED) & (report.cause == words.Cause.REQUEST)
        yield Copy(self.session, report, truth, truth_words.FirstFailed(), where=failed)

    # ── what may happen ──

    def events(self) -> Iterator[Spontaneous]:
        """Everything that may begin a step, but for the timers."""
        yield from self._user()
        yield from self._adapter()
        yield from self._server()
        yield from self._requests()

    def _user(self) -> Iterator[Spontaneous]:
        now, idle = self.session.now, start.now.phase == start_words.IDLE
        free = (now.phase == Turn.NONE) & idle & (stream.now.phase == UP)
        more = user.now.phase != UserPhase.SECOND
        yield Spontaneous(user, req.Prompted(self.design.doubt), when=free & more)
        if self.stops > 0:
            first = stop_1.now.phase == stop_words.IDLE
            yield Spontaneous(stop_1, stop_words.StopRequested(False), when=(now.phase != Turn.NONE) & first, switch=STOPS)
        if self.stops > 1:
            second = (stop_1.now.phase != stop_words.IDLE) & (stop_2.now.phase == stop_words.IDLE)
            another: Any = stop_1.now.phase == stop_words.WAITING
            yield Spontaneous(stop_2, stop_words.StopRequested(another), when=(now.phase != Turn.NONE) & second, switch=STOPS)
        yield Spontaneous(service, req.ContinuationDue(self.design.wakes), when=free & (service.now.offers > 0))
        yield Spontaneous(server, env.PermissionGiven(), when=server.now.asking, switch=ASKS)

    def _adapter(self) -> Iterator[Spontaneous]:
        now = self.session.now
        asking = start.now.phase == start_words.ASKING
        doubt = self.design.in_doubt
        told = [(start_words.ActiveRead(active), asking)]
        if doubt is not None:
            alive, over = active & past_is(doubt, Past.UNDER_WAY), past_is(doubt, Past.SUCCEEDED, Past.INTERRUPTED)
            # While the session settles, nothing is under way.
            yield Spontaneous(start, start_words.ActiveRead(True), when=asking & alive & not_(settling))
            neither = not_(alive) & not_(over)
            told = [(start_words.ActiveRead(False, True), asking & over), (start_words.ActiveRead(False), asking & neither)]
        for answer, when in told:
            yield Spontaneous(start, answer, when=when & not_(settling))
            yield Spontaneous(start, answer, when=when & settling, switch=N12)
        answers = one_of(start.now.phase, start_words.TOLD_IDLE, start_words.TOLD_OVER, start_words.TOLD_ACTIVE)
        yield Spontaneous(start, start_words.AnswerHandled(), when=answers)
        yield Spontaneous(start, start_words.Prepared(stream.now.phase == UP), when=start.now.phase == start_words.PREPARING)
        mine = now.prompt if self.design.item is None else self.design.item
        wanted = (now.phase == Turn.USER) & (mine == start.now.prompt) & not_(now.stopped)
        yield Spontaneous(start, start_words.SendDue(wanted), when=start.now.phase == start_words.INSTALLED)
        drops = Budget("drops", self.drops)
        yield Spontaneous(stream, stream_words.Dropped(), when=one_of(stream.now.phase, UP, SUBSCRIBED), switch=N6, budget=drops)
        yield Spontaneous(stream, stream_words.Subscribed(), when=stream.now.phase == LOST)
        yield Spontaneous(stream, stream_words.AttemptsSpent(), when=stream.now.phase == LOST, switch=DEATH)
        known: Any = stream.now.restarted if self.design.knows_restarts else False
        for past in Past:
            read, when = stream_words.SnapshotTaken(active, past, known), (stream.now.phase == SUBSCRIBED) & past_is(mine, past)
            yield Spontaneous(stream, read, when=when & not_(settling))
            if past is not Past.UNDER_WAY:
                yield Spontaneous(stream, read, when=when & settling, switch=N12)

    def _server(self) -> Iterator[Spontaneous]:
        now = server.now
        yield Spontaneous(server, env.Admitted(C), when=now.c == Place.ABSENT, switch=N7)
        yield Spontaneous(server, env.StartPublished(), when=queued)
        yield Spontaneous(server, env.Joined(), when=(now.phase == ServerPhase.RUNNING) & env_waiting & not_(now.asking))
        yield Spontaneous(server, env.Finished(), when=(now.phase == ServerPhase.RUNNING) & not_(now.asking))
        yield Spontaneous(server, env.CleanedUp(), when=now.phase == ServerPhase.STOPPING)
        yield Spontaneous(server, env.Settled(), when=settling)
        yield Spontaneous(server, env.PermissionWanted(), when=(now.phase == ServerPhase.RUNNING) & not_(now.asking), switch=ASKS,
                          budget=Budget("permission requests", 1))  # fmt: skip
        yield Spontaneous(server, env.Restarted(), when=active, switch=N11, budget=Budget("restarts", 1))

    def _requests(self) -> Iterator[Spontaneous]:
        unclear, idle = Budget("unclear prompts", 1), server.now.phase == ServerPhase.IDLE
        for _, request in REQUESTS:
            phase = request.now.phase
            flying, delayed = phase == RequestPhase.FLYING, one_of(phase, RequestPhase.BROKEN_LATE, RequestPhase.LATE)
            for lost, switch, budget in ((False, None, None), (True, N1, unclear)):
                yield Spontaneous(request, req.PromptTaken(lost), when=flying & idle, switch=switch, budget=budget)
                if N8 not in self.without:
                    yield Spontaneous(request, req.PromptTaken(lost), when=flying & not_(idle), switch=switch or N8, budget=budget)
            yield Spontaneous(request, req.PromptNotTaken(), when=flying, switch=N1, budget=unclear)
            yield Spontaneous(request, req.PromptRefused(), when=flying, switch=N1)
            yield Spontaneous(request, req.PromptDelayed(), when=flying, switch=N2, budget=unclear)
            yield Spontaneous(request, req.PromptTakenLate(), when=delayed, switch=N2)
            replies = one_of(phase, RequestPhase.OK, RequestPhase.REFUSED, RequestPhase.BROKEN, RequestPhase.BROKEN_LATE)
            yield Spontaneous(request, req.ReplyHandled(), when=replies)
        for stop, interrupt in zip(self.stopping, self.interrupts, strict=True):
            waits = (interrupt.now.phase == req.UNDER_WAY) & (stop.now.phase == stop_words.WAITING)
            yield Spontaneous(interrupt, req.InterruptProcessed(How.ANSWERED, False), when=waits)
            yield Spontaneous(interrupt, req.InterruptProcessed(How.ANSWERED, True), when=waits & queued, switch=N13)
            yield Spontaneous(interrupt, req.InterruptProcessed(How.FAILS, False), when=waits, switch=N4)
            yield Spontaneous(interrupt, req.InterruptReplyHandled(), when=one_of(interrupt.now.phase, *req.REPLIES))
        flying = late.now.flying > 0
        yield Spontaneous(late, req.InterruptProcessed(How.UNHEARD, False), when=flying)
        yield Spontaneous(late, req.InterruptProcessed(How.UNHEARD, True), when=flying & queued, switch=N13)
        yield Spontaneous(late, req.InterruptProcessed(How.LOST, False), when=flying, switch=N4)

    # ── order: what happens before anything else, without N3, N5, N9 or N10 ──

    def _ordered(self, event: Spontaneous) -> Spontaneous:
        guards = [] if event.when is None else [event.when]
        if N3 in self.without and event.event_class is not env.StartPublished:
            guards.append(not_(queued))
        if N5 in self.without and event.event_class is not stream_words.SnapshotTaken and event.event_class is not stream_words.Subscribed:
            guards.append((pending("buffer") == 0) & (stream.now.phase != SUBSCRIBED))
        if N9 in self.without and event.event_class is req.Prompted:
            guards.append(service.now.offers == 0)
        if N10 in self.without and event.event_class is req.Prompted:
            guards.append(self.quiet())
        when = None
        for guard in guards:
            when = guard if when is None else when & guard
        return attrs.evolve(event, when=when)

    def quiet(self) -> Any:
        """Everything enabled is done, but for what the user and the child may begin, and a prompt that may never be admitted."""
        requests = [one_of(r.now.phase, RequestPhase.UNSENT, RequestPhase.LATE, RequestPhase.DONE) for _, r in REQUESTS]
        interrupts = [one_of(i.now.phase, req.NOT_SENT, req.HANDLED) for i in self.interrupts] + [late.now.flying == 0]
        stops = [s.now.phase != stop_words.WAITING for s in self.stopping]
        calm = (server.now.phase == ServerPhase.IDLE) & (pending("buffer") == 0) & one_of(stream.now.phase, UP, DEAD)
        timers = [not_(self.session.running(rule.timer)) for rule in self.session.machine.timers]
        for one in (*requests, *interrupts, *stops, *timers):
            calm = calm & one
        due = (service.now.offers > 0) & (stream.now.phase == UP) & (self.session.now.phase == Turn.NONE)
        return named("everything is quiet", calm & (start.now.phase == start_words.IDLE) & not_(due))

    # ── the system ──

    def system(self, name: str) -> System:
        """The whole system under this name."""
        emitted = {p.name: {type(i.effect if isinstance(i, OnlyIf) else i) for row in p.machine.rows for i in row.emit} for p in self.parts}
        known = {p.name: set(p.machine.events) for p in self.parts}
        silent: set[type] = {effect for effect, power in NEEDS.items() if power in self.without}
        if DEATH in self.without and self.design.keeps_wakes:
            silent.add(words.DropWakes)
        if self.stops == 0:
            silent.add(words.SendSkipped)
        wires = tuple(w for w in self.wires() if w.effect_class in emitted[w.source.name] - silent
                      and (isinstance(w, Empties) or w.event_class in known[w.target.name]))  # fmt: skip
        events = tuple(self._ordered(e) for e in self.events() if e.switch not in self.without)
        used = {e.switch for e in events}
        copies = tuple(c for c in self.copies() if c.what_class not in silent and c.what_class in emitted[c.of.name] | known[c.of.name])
        sent = {(w.target.name, w.event_class) for w in wires if isinstance(w, Wire)} | {(e.to.name, e.event_class) for e in events}
        sent |= {(c.to.name, c.event_class) for c in copies}
        wired = {(w.source.name, w.effect_class) for w in wires}
        return System(
            name=name,
            parts=self.parts,
            wires=wires,
            channels=(buffer,),
            spontaneous=events,
            monitors=(truth,),
            copies=copies,
            absorbed=tuple(Absorbs(p, *lost) for p in self.parts if (lost := self._unheard(p, emitted[p.name], wired))),
            unsent=tuple(
                Unsent(p, *never, because="nothing here sends it") for p in (*self.parts, truth) if (never := self._unsent(p, sent))
            ),
            switches=tuple(s for s in (*POWERS, *MORE, *self.more) if s in used),
        )

    @staticmethod
    def _unheard(part: AnyPart, emitted: Collection[type], wired: Collection[tuple[str, type]]) -> tuple[type, ...]:
        from turnproof.machines.kernel import TIMER_EFFECTS

        return tuple(e for e in part.machine.effects if e in emitted and e not in TIMER_EFFECTS and (part.name, e) not in wired)

    @staticmethod
    def _unsent(part: AnyPart, sent: Collection[tuple[str, type]]) -> tuple[type, ...]:
        expiries = {rule.expires for rule in part.machine.timers}
        return tuple(e for e in part.machine.events if (part.name, e) not in sent and e not in expiries)


env_waiting = named(
    "something waits in the inbox",
    (server.now.a == Place.WAITING) | (server.now.b == Place.WAITING) | (server.now.c == Place.WAITING),
)
