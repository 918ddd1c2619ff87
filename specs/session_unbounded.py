"""The target, ``turnproof.machines.session``, is safe for any number of prompts, Stops, drops and executions, and a stream of any length.

``session_system`` explores an exact environment within bounds. Here the environment has none: one item of the inbox is followed, which may
be any of them, and of every other anything may be told (``session_unbounded_parts``). Every verification explores it with one other
identity and wakes to one. The proof is asked for, ``turnproof verify session_unbounded --engine explicit,symbolic`` (two minutes), and
has any number of both; its certificate is re-checked by a fresh z3 and by cvc5. There is no channel and no budget, so none is bounded.

Proved are S1 to S8 and L7, and what L1 to L3 say of states: to a turn that is installed something is still to come that ends it or looks
after it, so that none is left when everything is quiet; and every wake that was held is known until it is taken. That what is to come does
come needs fairness (``session_unbounded_ends``), and is explored, not proved.

What the proof rests on is that this environment allows whatever a real one does. The words of its parts argue for that, and
``tests/test_session_unbounded.py`` follows runs of the exact environment in it, step by step, for each of their items.
"""

from __future__ import annotations

from attrs import evolve

from turnproof.machines import session as target
from turnproof.machines import session_start as start_words
from turnproof.machines import session_words as words
from turnproof.machines.kernel import NOBODY, Row, choose, implies, not_, one_of
from turnproof.machines.session import MACHINE, Timer
from turnproof.machines.session_start import SendPrompt
from turnproof.machines.session_stop import WAITING, TurnOver
from turnproof.machines.session_stream import LOST, SUBSCRIBED, What
from turnproof.machines.session_words import Cause, End, ExecutionEnded, HistoryRead, Outcome, ReportTurn, Turn
from turnproof.specs import session_properties as promised
from turnproof.specs import session_unbounded_parts as env
from turnproof.specs.language import Always, Property, Sometimes, Step
from turnproof.specs.session import EAGER
from turnproof.specs.session_properties import ASKED, OWN_END, OWN_STOP, OWN_WAKE, STUCK, TOGETHER, WRONG
from turnproof.specs.session_requests import RequestPhase
from turnproof.specs.session_requirements import requirements
from turnproof.specs.session_unbounded_ends import PROMISES
from turnproof.specs.session_unbounded_parts import Ahead, P, Place, TruthPhase
from turnproof.specs.session_unbounded_system import (
    AGAIN,
    doubt,
    item,
    line,
    now,
    request,
    session,
    start,
    stop,
    stream,
    system,
    truth,
    watched,
)
from turnproof.specs.system import SystemSpec, SystemVariant

after = session.next
own_end = line.took(env.OwnEndComes)
lost = one_of(stream.now.phase, LOST, SUBSCRIBED)
another = (now.item != P) & (now.item != NOBODY)
exempt = now.stopped & session.on(ExecutionEnded, how=End.INTERRUPTED)
of_wake = ((now.item == P) & own_end) | ((now.item == NOBODY) & not_(truth.now.severed)) | another
"""The end that is handled is the end of the wake's execution. Of a wake with another item it is shown where that item is followed."""
certain = ((now.item == P) & own_end) | ((now.item != P) & not_(truth.now.severed) & session.on(ExecutionEnded))
running = one_of(item.now.phase, Place.WAITING, Place.RUNNING)
sent = request.now.phase != RequestPhase.UNSENT
TELLS = "S2: what the end of its execution tells a turn is how that execution ended"
KEPT = "L3: the wakes that the session knows of are those that were held and not taken"
ENDED = "L1, L2: to a turn that is installed something is still to come that ends it or looks after it"

PROPERTIES: tuple[Property, ...] = (
    Always(promised.ONE_TERMINAL, truth.now.phase != TruthPhase.TWICE, requirements="R-SES-1", harm="one turn ends twice"),
    Step(OWN_END, implies(session.emits(ReportTurn, prompt=P, cause=Cause.EXECUTION), own_end | exempt), requirements="R-SES-2",
         harm=WRONG),
    Step(OWN_WAKE, implies(session.emits(ReportTurn, prompt=NOBODY, cause=Cause.EXECUTION), of_wake | exempt), requirements="R-SES-2",
         harm="a background reply is cut off, or ends with another's end"),
    Step(TELLS, requirements="R-SES-2", harm=WRONG, holds=
         implies(session.emits(ReportTurn, outcome=Outcome.COMPLETED, prompt=P, cause=Cause.EXECUTION),
                 line.took(env.OwnEndComes, what=What.SUCCEEDED))
         & implies(session.emits(ReportTurn, outcome=Outcome.FAILED, prompt=P, cause=Cause.EXECUTION),
                   line.took(env.OwnEndComes, what=What.FAILED))),
    Step(promised.TRUE_PAST, requirements="R-SES-2", harm=WRONG, holds=
         implies(session.emits(ReportTurn, outcome=Outcome.COMPLETED, prompt=P, cause=Cause.HISTORY), item.now.phase == Place.SUCCEEDED)),
    Step(OWN_STOP, implies(stop.emits(words.EndRequested), truth.now.aimed), requirements="R-SES-3",
         harm="a Stop of an earlier turn ends the next one"),
    Step(promised.SENT, implies(session.emits(ReportTurn, outcome=Outcome.COMPLETED, prompt=P), sent), requirements="R-SES-4",
         harm="the prompt is never sent, and the user is told that it was answered"),
    Step(ASKED, implies(start.emits(SendPrompt) & (start.now.prompt != P) & sent & running, start.now.asked),
         requirements=("R-SES-5", "R-SES-23", "R-SES-24"), harm=TOGETHER),
    Step(promised.SKIPPED_USER, requirements="R-SES-6", harm=STUCK, holds=
         not_(own_end & (now.phase == Turn.USER) & (now.item == P) & (after.phase == Turn.USER) & not_(session.emits(words.ReadAgain)))),
    Step(promised.SKIPPED_WAKE, requirements=("R-SES-6", "R-SES-21"), harm=STUCK, holds=
         not_((now.phase == Turn.CONTINUATION) & certain & (after.phase == Turn.CONTINUATION))
         & implies(session.on(words.ContinuationStarted) & (now.ended > 0), after.phase != Turn.CONTINUATION)),
    Always(promised.ONE_TURN, truth.now.phase != TruthPhase.ASTRAY, requirements="R-SES-7", harm="a background reply is shown twice"),
    Always(KEPT, truth.now.held == choose(now.running, now.ended + 1, now.ended), requirements=("R-SES-7", "R-SES-12"),
           harm="a background reply is never shown"),
    Step(promised.OWN_ASK, implies(session.on(words.PermissionAsked), session.emits(words.ShowPermission)), requirements="R-SES-8",
         harm="the user is never asked, and their own turn is killed"),
    Always(ENDED, requirements=("R-SES-10", "R-SES-11"), harm=STUCK, holds=
           implies((now.phase == Turn.USER) & (now.sending == target.UNSENT),
                   (start.now.phase == start_words.INSTALLED) & (start.now.prompt == now.item))
           & implies(watched, session.running(Timer.RECHECK))
           & implies((now.phase == Turn.USER) & (now.sending == target.SERVED) & (now.item == P), (line.now.phase == Ahead.END) | lost)
           & implies((now.phase == Turn.CONTINUATION) & (now.item == P), (line.now.phase == Ahead.END) | lost)
           & implies((now.phase == Turn.CONTINUATION) & (now.item == NOBODY), line.now.busy | lost)),
    Step(promised.DEAD_RESTS, implies(session.on(words.StreamDied), (after.phase == Turn.NONE) & (after.ended == 0) & not_(after.running)),
         requirements="R-SES-16", harm=STUCK),
)  # fmt: skip

REACHED: tuple[Property, ...] = (
    Sometimes("the turn completes with the end of its execution", requirements="R-SES-2", holds=
              session.emits(ReportTurn, outcome=Outcome.COMPLETED, prompt=P, cause=Cause.EXECUTION) & own_end),
    Sometimes("the history ends the turn", session.emits(ReportTurn, prompt=P, cause=Cause.HISTORY), requirements="R-SES-2"),
    Sometimes("a continuation outlives a drop, and ends with its wake", requirements="R-SES-2", holds=
              session.emits(ReportTurn, prompt=NOBODY, cause=Cause.EXECUTION) & own_end & truth.now.severed),
    Sometimes("a Stop that times out ends its turn", session.emits(ReportTurn, prompt=P, cause=Cause.STOP) & stop.emits(words.EndRequested),
              requirements="R-SES-3"),
    Sometimes("another prompt is sent while that of a turn that is over runs", requirements="R-SES-5", holds=
              start.emits(SendPrompt) & (start.now.prompt != P) & sent & (item.now.phase == Place.RUNNING)),
    Sometimes("a turn is installed while another's execution is under way", requirements="R-SES-6", holds=
              (now.phase == Turn.USER) & (now.item == P) & line.now.busy & (line.now.phase == Ahead.DELIVERY)),
    Sometimes("a wake is taken", (now.phase == Turn.CONTINUATION) & (now.item == P), requirements="R-SES-7"),
)  # fmt: skip

# ── for the proof: what a person who knows the machine would say of it ──

installed = (now.phase == Turn.USER) & (now.item == P)
may_come = one_of(request.now.phase, RequestPhase.FLYING, RequestPhase.BROKEN_LATE, RequestPhase.LATE)
may_run = may_come | (sent & running)
LEMMAS: tuple[tuple[str, bool], ...] = (
    ("a prompt that may run yet is that of the turn installed, or in doubt", implies(may_run, installed | (now.doubt == P) | now.more)),
    ("what a start is told to be over is over",
     implies((start.now.phase == start_words.TOLD_OVER) & (now.doubt == P), not_(may_run))),
    ("a start that asked nobody found nothing in doubt",
     implies(one_of(start.now.phase, start_words.PREPARING, start_words.INSTALLED) & not_(start.now.asked), not_(doubt))),
)  # fmt: skip

# ── designs that fail here, too ──

_KEPT = next(row for row in MACHINE.rows if row.event is HistoryRead and "without an item" in row.because)
KEEPING = MACHINE.variant("session_keeping", replace={_KEPT.name: Row(HistoryRead, at=Turn.CONTINUATION, stay=True, name=_KEPT.name)})
OUTLIVING = AGAIN.variant(
    "session_stop_outliving",
    replace={row.name: Row(TurnOver, at=WAITING, stay=True, name=row.name) for row in AGAIN.rows if row.event is TurnOver and row.emit},
)
_LOST = next(row for row in MACHINE.rows if row.event is HistoryRead and str(row.when) == "running" and row.data is not None)
FORGETTING = MACHINE.variant(
    "session_forgetting",
    replace={_LOST.name: Row(HistoryRead, when=target.now.running, data=evolve(target.now, running=False, item=NOBODY), name=_LOST.name)},
)
VARIANTS = (
    SystemVariant(system=system("unbounded_eager", machine=EAGER), violates={ASKED: 20}, about="One prompt found over is taken for all."),
    SystemVariant(system=system("unbounded_blind", knows_restarts=False), violates={OWN_END: 11},
                  about="The target on a wire that does not tell a restart."),
    SystemVariant(system=system("unbounded_keeping", machine=KEEPING), violates={OWN_WAKE: 6},
                  about="A continuation without an item is kept over a reconnect: the next end may be anybody's."),
    SystemVariant(system=system("unbounded_forgetting", machine=FORGETTING), violates={KEPT: 4},
                  about="A wake whose end was lost with the stream is forgotten."),
    SystemVariant(system=system("unbounded_outliving", stops=OUTLIVING), violates={OWN_STOP: 5}, about="A Stop outlives its turn."),
)  # fmt: skip

SPEC = SystemSpec(
    system=system(),
    requirements=requirements(1, 2, 3, 4, 5, 6, 7, 8, 10, 11, 12, 16, 21, 23, 24),
    properties=(*PROPERTIES, *PROMISES, *REACHED),
    lemmas=LEMMAS,
    variants=VARIANTS,
    tokens=1,
    counter=1,
)
