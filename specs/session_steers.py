"""A turn of an OpenCode session whose user sends more while it runs: no end that is held for a steer is held for ever (L4).

A world of its own around the two machines of ``session_steers_parts``: one turn that is served, one steer, one Stop, a background report
that brings executions of its own, one drop, and the powers of the environment that touch them.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Any

import attrs

from turnproof.machines import session_stop as stop_words
from turnproof.machines import session_stream as stream_words
from turnproof.machines import session_words as words
from turnproof.machines.kernel import TIMER_EFFECTS, OnlyIf, Row, implies, named, not_, one_of, symbol
from turnproof.machines.session_stop import MACHINE as STOP
from turnproof.machines.session_stream import LOST, SUBSCRIBED, UP
from turnproof.machines.session_words import Outcome, Past, ReportTurn
from turnproof.specs import session_environment as env
from turnproof.specs import session_requests as req
from turnproof.specs import session_steers_parts as steers
from turnproof.specs.language import Always, AnyMachine, Property, Sometimes, Step
from turnproof.specs.session_history import MARKING_STOP
from turnproof.specs.session_parts import N1, N2, N4, N6, N7, N11, N12, N13, STOPS
from turnproof.specs.session_properties import STUCK, WRONG
from turnproof.specs.session_requests import How, RequestPhase
from turnproof.specs.session_requirements import requirements
from turnproof.specs.session_steers_parts import HELD, HELD_BY_HISTORY, HELD_BY_SET, OVER, PROMPT, SERVED, Place, Steering
from turnproof.specs.system import (
    Absorbs,
    AnyPart,
    Budget,
    Channel,
    Empties,
    Part,
    Spontaneous,
    Switch,
    System,
    SystemSpec,
    SystemVariant,
    Unsent,
    Wire,
)
from turnproof.specs.system_words import pending

POWERS = (N1, N2, N4, N6, N7, N11, N12, N13, STOPS)
server, stream = Part("server", steers.SERVER), Part("stream", stream_words.MACHINE)
request, interrupt = Part("request", req.REQUEST), Part("interrupt", req.INTERRUPT)
late = Part("late", req.LATE_INTERRUPTS)
buffer = Channel("buffer", to=stream, capacity=10, when=stream.now.phase == UP)


class Steered:
    """Builds one system around a design of the turn."""

    def __init__(self, turn: AnyMachine = HELD_BY_HISTORY, stop: AnyMachine = STOP, without: Collection[Switch] = ()) -> None:
        self.turn: Part[Any] = Part("turn", turn)
        self.stop: Part[Any] = Part("stop", stop)
        self.without = frozenset(without)

    # ── wires ──

    def wires(self) -> Iterator[Wire | Empties]:
        """Every wire of every design; what the machines at hand do not emit is left out."""
        turn, stop = self.turn, self.stop
        publish, keep = symbol(env.Publish), symbol(stream_words.Buffer)
        asked, reply, told, answer = symbol(req.AskServer), symbol(req.Reply), symbol(env.InterruptReply), symbol(req.TellAnswer)
        yield Wire(server, publish, stream, stream_words.Published(publish.what, publish.execution, publish.item))
        yield Wire(stream, keep, buffer, stream_words.Arrived(keep.what, keep.execution, keep.item))
        yield Empties(stream, stream_words.LoseBuffer, buffer)
        for heard in (words.ExecutionStarted, words.ExecutionEnded, words.ItemDelivered):
            yield Wire(stream, heard, turn)
        history = symbol(words.HistoryRead)
        yield Wire(server, env.BreakStream, stream, stream_words.ServerLost())
        yield Wire(stream, history, server, steers.TurnAsked(history.restarted))
        yield Wire(turn, steers.ReadTurn, stream, words.ReadAgain(PROMPT))
        yield Wire(stream, stream_words.AskHistory, server, steers.TurnAsked())
        yield Wire(server, steers.TurnRead, turn)
        yield Wire(server, steers.SteerCancelled, turn)
        yield Wire(turn, steers.CancelSteer, server, steers.CancelAsked())
        yield Wire(turn, steers.SendSteer, request, req.PromptSent())
        yield Wire(request, req.Admit, server, steers.SteerAdmitted())
        yield Wire(request, reply, turn, steers.SteerAnswered(reply.answer))
        yield Wire(turn, ReportTurn, request, req.TurnIsOver())
        yield Wire(turn, ReportTurn, stop, stop_words.TurnOver())
        for said in (words.StopSent, words.StopWithdrawn, words.StopFutile, words.RunMarked, words.EndRequested):
            yield Wire(stop, said, turn)
        yield Wire(stop, stop_words.DropReply, interrupt, req.ReplyUnwanted())
        yield Wire(stop, stop_words.SendInterrupt, interrupt, req.InterruptSent())
        yield Wire(interrupt, answer, stop, stop_words.InterruptAnswered(answer.interrupted))
        yield Wire(interrupt, req.TellFailure, stop, stop_words.InterruptFailed())
        yield Wire(interrupt, req.Abandon, late, req.InterruptAbandoned())
        yield Wire(server, told, interrupt, req.ServerReplied(told.accepted))
        for sender in (interrupt, late):
            yield Wire(sender, asked, server, env.Interrupted(asked.early))

    # ── what may happen ──

    def events(self) -> Iterator[Spontaneous]:
        """Everything that may begin a step, but for the timers."""
        turn, stop, place, phase = self.turn.now, self.stop.now, server.now.steer, server.now.phase
        more = (turn.phase == SERVED) & not_(turn.stopped) & (turn.steer == Steering.NONE) & (stream.now.phase == UP)
        yield Spontaneous(self.turn, steers.SteerWanted(), when=more)
        yield Spontaneous(self.stop, stop_words.StopRequested(False), when=(turn.phase != OVER) & (stop.phase == stop_words.IDLE),
                          switch=STOPS)  # fmt: skip
        yield Spontaneous(server, steers.ReportQueued(), when=server.now.report == Place.ABSENT, switch=N7)
        yield Spontaneous(server, env.StartPublished(), when=phase == env.ServerPhase.QUEUED)
        waits = (place == Place.WAITING) | (server.now.report == Place.WAITING)
        yield Spontaneous(server, env.Joined(), when=(phase == env.ServerPhase.RUNNING) & waits)
        yield Spontaneous(server, env.Finished(), when=phase == env.ServerPhase.RUNNING)
        yield Spontaneous(server, env.CleanedUp(), when=phase == env.ServerPhase.STOPPING)
        yield Spontaneous(server, env.Settled(), when=phase == env.ServerPhase.SETTLING)
        yield Spontaneous(stream, stream_words.Dropped(), when=one_of(stream.now.phase, UP, SUBSCRIBED), switch=N6,
                          budget=Budget("drops", 1))  # fmt: skip
        yield Spontaneous(stream, stream_words.Subscribed(), when=stream.now.phase == LOST)
        snapshot, back = stream_words.SnapshotTaken(True, Past.ABSENT, stream.now.restarted), stream.now.phase == SUBSCRIBED
        yield Spontaneous(stream, snapshot, when=back & (phase != env.ServerPhase.SETTLING))
        yield Spontaneous(stream, snapshot, when=back & (phase == env.ServerPhase.SETTLING), switch=N12)
        yield Spontaneous(server, env.Restarted(), when=phase != env.ServerPhase.IDLE, switch=N11, budget=Budget("restarts", 1))
        yield from self._requests()

    def _requests(self) -> Iterator[Spontaneous]:
        stop, phase, ways = self.stop.now, request.now.phase, interrupt.now.phase
        flying, delayed = phase == RequestPhase.FLYING, one_of(phase, RequestPhase.BROKEN_LATE, RequestPhase.LATE)
        yield Spontaneous(request, req.PromptTaken(False), when=flying)
        yield Spontaneous(request, req.PromptTaken(True), when=flying, switch=N1)
        yield Spontaneous(request, req.PromptNotTaken(), when=flying, switch=N1)
        yield Spontaneous(request, req.PromptRefused(), when=flying, switch=N1)
        yield Spontaneous(request, req.PromptDelayed(), when=flying, switch=N2)
        yield Spontaneous(request, req.PromptTakenLate(), when=delayed, switch=N2)
        replies = one_of(phase, RequestPhase.OK, RequestPhase.REFUSED, RequestPhase.BROKEN, RequestPhase.BROKEN_LATE)
        yield Spontaneous(request, req.ReplyHandled(), when=replies)
        waits, queued = (ways == req.UNDER_WAY) & (stop.phase == stop_words.WAITING), server.now.phase == env.ServerPhase.QUEUED
        yield Spontaneous(interrupt, req.InterruptProcessed(How.ANSWERED, False), when=waits)
        yield Spontaneous(interrupt, req.InterruptProcessed(How.ANSWERED, True), when=waits & queued, switch=N13)
        yield Spontaneous(interrupt, req.InterruptProcessed(How.FAILS, False), when=waits, switch=N4)
        yield Spontaneous(interrupt, req.InterruptReplyHandled(), when=one_of(ways, *req.REPLIES))
        abandoned = late.now.flying > 0
        yield Spontaneous(late, req.InterruptProcessed(How.UNHEARD, False), when=abandoned)
        yield Spontaneous(late, req.InterruptProcessed(How.UNHEARD, True), when=abandoned & queued, switch=N13)
        yield Spontaneous(late, req.InterruptProcessed(How.LOST, False), when=abandoned, switch=N4)

    def quiet(self) -> Any:
        """Everything enabled is done, but for what the user and the child may begin, and a steer that may never be admitted."""
        calm = (server.now.phase == env.ServerPhase.IDLE) & (pending("buffer") == 0) & (stream.now.phase == UP) & (late.now.flying == 0)
        calm = calm & one_of(request.now.phase, RequestPhase.UNSENT, RequestPhase.LATE, RequestPhase.DONE)
        calm = calm & one_of(interrupt.now.phase, req.NOT_SENT, req.HANDLED) & (self.stop.now.phase != stop_words.WAITING)
        for rule in self.turn.machine.timers:
            calm = calm & not_(self.turn.running(rule.timer))
        return named("everything is quiet", calm)

    # ── the system ──

    def system(self, name: str) -> System:
        """The whole system under this name."""
        parts: tuple[AnyPart, ...] = (self.turn, stream, self.stop, interrupt, late, server, request)
        emitted = {p.name: {type(i.effect if isinstance(i, OnlyIf) else i) for row in p.machine.rows for i in row.emit} for p in parts}
        silent: set[type] = {env.BreakStream} if N11 in self.without else set()
        wires = tuple(w for w in self.wires() if w.effect_class in emitted[w.source.name] - silent
                      and (isinstance(w, Empties) or w.event_class in w.target.machine.events))  # fmt: skip
        events = tuple(e for e in self.events() if e.switch not in self.without)
        sent = {(w.target.name, w.event_class) for w in wires if isinstance(w, Wire)} | {(e.to.name, e.event_class) for e in events}
        sent |= {(p.name, rule.expires) for p in parts for rule in p.machine.timers}
        wired = {(w.source.name, w.effect_class) for w in wires}
        used = {e.switch for e in events}
        lost = {p: [e for e in p.machine.effects if e in emitted[p.name] - {*TIMER_EFFECTS} and (p.name, e) not in wired] for p in parts}
        never = {p: [e for e in p.machine.events if (p.name, e) not in sent] for p in parts}
        return System(
            name=name,
            parts=parts,
            wires=wires,
            channels=(buffer,),
            spontaneous=events,
            absorbed=tuple(Absorbs(p, *effects) for p, effects in lost.items() if effects),
            unsent=tuple(Unsent(p, *missing, because="nothing here sends it") for p, missing in never.items() if missing),
            switches=tuple(s for s in POWERS if s in used),
        )


ONE_TERMINAL = "S1: a turn with a steer has one terminal"
STEERED = "S2: no turn is called complete while its steer runs"
TRUE_END = "S2: no turn is called complete whose last run was interrupted, or lost"
TURN_RESTS = "L1: when everything is quiet no turn with a steer is active"
HELD_RESTS = "L4: when everything is quiet no end is held for a steer"


def properties(world: Steered) -> tuple[Property, ...]:
    """What must hold of a turn with a steer."""
    turn, quiet = world.turn, world.quiet()
    completed = turn.emits(ReportTurn, outcome=Outcome.COMPLETED)
    return (
        Step(
            ONE_TERMINAL,
            implies(turn.emits(ReportTurn), (turn.now.phase != OVER) & (turn.next.phase == OVER)),
            requirements="R-SES-1",
            harm="the user gets two ends for one prompt, or none",
        ),
        Step(STEERED, not_(completed & (server.now.steer == Place.RUNNING)), requirements="R-SES-2", harm=WRONG),
        Step(TRUE_END, not_(completed & ((server.now.past == Past.INTERRUPTED) | server.now.lost)), requirements="R-SES-2", harm=WRONG),
        Always(TURN_RESTS, not_(quiet & (turn.now.phase != OVER)), requirements="R-SES-10", harm=STUCK),
        Always(HELD_RESTS, not_(quiet & (turn.now.phase == HELD)), requirements="R-SES-13", harm=STUCK),
    )


def reached(world: Steered) -> tuple[Property, ...]:
    """What some run must show, or nothing was tried."""
    turn = world.turn
    completes = turn.emits(ReportTurn, outcome=Outcome.COMPLETED)
    return (
        Sometimes("a turn goes on with its steer after its end was held", requirements="R-SES-13", holds=
            (turn.now.phase == HELD) & turn.on(words.ItemDelivered) & (turn.next.phase == SERVED)),
        Sometimes("it completes with its steer", completes & (server.now.steer == Place.OVER), requirements="R-SES-2"),
        Sometimes("a steer that is parked is taken out of the inbox", requirements="R-SES-13", holds=
            turn.on(steers.RecheckExpired) & (server.now.steer == Place.WAITING) & (server.next.steer == Place.CANCELLED)),
        Sometimes("a Stop ends a turn that is held", (turn.now.phase == HELD) & turn.on(words.EndRequested), requirements="R-SES-13"),
    )  # fmt: skip


# ── designs that fail ──


@attrs.frozen(eq=False)
class Wrong:
    """A design of the turn that breaks a promise, the powers it needs, and the steps of the shortest story."""

    name: str
    turn: AnyMachine
    needs: tuple[Switch, ...]
    breaks: str
    length: int
    about: str
    stop: AnyMachine = STOP

    @property
    def world(self) -> Steered:
        """This design, in an environment that has these powers alone."""
        return Steered(self.turn, self.stop, [s for s in POWERS if s not in self.needs])


def approved(name: str, needs: tuple[Switch, ...], breaks: str, length: int, about: str) -> Wrong:
    """The approved rule, with the Stop it has."""
    return Wrong(f"session_steers_v4_{name}", HELD_BY_SET, needs, breaks, length, f"V4: {about}", MARKING_STOP)


BLIND = HELD_BY_HISTORY.variant(
    "session_steers_unread",
    first=(Row(steers.RecheckExpired, stay=True, name="looks for nothing"),),
)
FORGETFUL = HELD_BY_HISTORY.variant(
    "session_steers_forgotten",
    first=(
        Row(
            steers.SteerAnswered,
            when=steers.undelivered & (steers.answered.answer == words.Answer.UNCLEAR),
            data=attrs.evolve(steers.now, steer=Steering.SETTLED),
            emit=(steers.CancelSteer(), steers.READ_HELD),
            name="forgets",
        ),
    ),
)
WRONGS = (
    approved("parked", (STOPS,), HELD_RESTS, 9,
             "a Stop meets a session that settles: nothing to interrupt, and the steer's doorbell is dropped. The Stop is told so before "
             "the end is handled, so nothing is held yet; then the end is held for a steer that is parked, and nobody looks."),
    approved("unheard", (N6,), HELD_RESTS, 10,
             "a drop takes the delivery of the steer, and the reconnect finds the session active. The steer stays undelivered in the "
             "adapter's books, and the end that follows is held for it for ever."),
    approved("dropped", (N1,), STEERED, 7,
             "a steer's request fails unclearly, and the end that was held for it completes the turn, while the steer runs."),
    Wrong("session_steers_unread", BLIND, (STOPS,), HELD_RESTS, 10, "The target that never looks again: a parked steer holds its turn."),
    Wrong("session_steers_forgotten", FORGETFUL, (N1,), STEERED, 7, "The target that takes an unclear failure of a steer for its end."),
)  # fmt: skip
"""What the approved rule gets wrong with steers, and two mistakes in the other design."""


def variants() -> tuple[SystemVariant, ...]:
    """Each as a system that must fail, in its own small world."""
    return tuple(
        SystemVariant(
            system=wrong.world.system(wrong.name),
            about=wrong.about,
            violates={wrong.breaks: wrong.length},
            properties=tuple(p for p in properties(wrong.world) if p.name == wrong.breaks),
        )
        for wrong in WRONGS
    )


WORLD = Steered()
SPEC = SystemSpec(
    system=WORLD.system("session_steers"),
    requirements=requirements(1, 2, 10, 13),
    properties=(*properties(WORLD), *reached(WORLD)),
    variants=variants(),
    tokens=3,
    counter=1,
)
