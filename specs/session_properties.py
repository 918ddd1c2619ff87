"""What must hold of an OpenCode session, whatever its design: safety against the monitor's truth, and rest when everything is quiet.

"Quiet" stands for the moment when the environment makes no new prompts, Stops or drops and everything enabled is done; what is true of
every quiet state is what the user is left with. That a run comes to rest at all is a promise of its own.
"""

from __future__ import annotations

from turnproof.machines.kernel import NOBODY, all_of, any_of, implies, not_, one_of
from turnproof.machines.session_start import SendPrompt
from turnproof.machines.session_stream import Arrived, What
from turnproof.machines.session_words import (
    Cause,
    ContinuationStarted,
    DropWakes,
    End,
    EndRequested,
    ExecutionEnded,
    Outcome,
    ReadAgain,
    ReportTurn,
    ShowPermission,
    StreamDied,
    Turn,
)
from turnproof.specs import session_parts as parts
from turnproof.specs.language import Always, Property, Sometimes, Step
from turnproof.specs.session_environment import ITEMS, A, B, Place
from turnproof.specs.session_parts import ASKS, DEATH, World, server, service, start, stream, truth
from turnproof.specs.session_requests import RequestPhase
from turnproof.specs.session_truth import ASTRAY, TWICE, EndHandled

ONE_TERMINAL = "S1: every turn has at most one terminal, and only while it is installed"
OWN_END = "S2: the end of an execution ends a user turn only if it served the turn's prompt"
OWN_WAKE = "S2: the end of an execution ends a continuation only if it is the end of its wake"
TRUE_PAST = "S2: a turn that the history completes was served to its end"
OWN_STOP = "S3: a Stop ends the turn it was for"
SENT = "S4: a turn reported completed had its prompt sent"
ASKED = "S5: no prompt is sent unchecked while an earlier one, whose turn is over, is queued or runs"
FAILED_ASKED = "S5: no prompt is sent unchecked while one whose turn failed with its request is queued or runs"
SKIPPED_USER = "S6: no end of an execution that served the user turn's prompt is skipped"
SKIPPED_WAKE = "S6: no end of the continuation's own wake is skipped"
ONE_TURN = "S7: a wake is taken at most once or dropped, never both"
OWN_ASK = "S8: no permission request of the active turn's own execution is rejected"
USER_RESTS = "L1: when everything is quiet no user turn is active"
PARKED = "L1: when everything is quiet the prompt of no turn is parked in the inbox"
CONTINUATION_RESTS = "L2: when everything is quiet no continuation is active"
WAKES_REST = "L3: when everything is quiet no wake is held without an offer"
WAKES_KEPT = "L3: no wake is forgotten while the stream lives"
STARTS_REST = "L4: when everything is quiet no turn waits for a start"
DEAD_RESTS = "L7: once the stream is dead no turn is active and no wake is held"
UNSENT_FORGOTTEN = "no turn is left active whose prompt was never sent"

WRONG = "the user reads an answer that is not the answer to their prompt"
TOGETHER = "two prompts run together, and one of them answers unseen"
STUCK = "the user looks at a turn that nothing will end"


def _end_of(execution: str) -> bool:
    """The step handles an end of this execution."""
    return truth.on(EndHandled, execution=execution)


def _ends_wrong(reports: bool, served: str) -> bool:
    """The step handles an end and ``reports``, though the execution that ended is not ``served``."""
    wrong = [_end_of(e) & (served != e) for e in ITEMS]
    return reports & any_of(_end_of(NOBODY), *wrong)


def _goes_on(after: Turn, turn: Turn, served: str, reads: bool) -> bool:
    """The step handles the end of ``served``, and the turn stays installed although the history is not asked."""
    return (after == turn) & not_(reads) & any_of(*(_end_of(e) & (served == e) for e in ITEMS))


def safety(world: World) -> tuple[Property, ...]:
    """S1 to S7 of this system."""
    session = world.session
    now, after = session.now, session.next
    prompt = now.prompt if world.design.item is None else world.design.item
    exempt = now.stopped & session.on(ExecutionEnded, how=End.INTERRUPTED)
    by_end = {p: session.emits(ReportTurn, prompt=p, cause=Cause.EXECUTION) for p in (A, B, NOBODY)}
    reads = session.emits(ReadAgain) if ReadAgain in session.machine.effects else session.emits(ReportTurn)
    ended = {A: one_of(server.now.a, Place.WAITING, Place.RUNNING)}
    completed = {p: session.emits(ReportTurn, outcome=Outcome.COMPLETED, prompt=p) for p in (A, B)}
    by_history = {p: session.emits(ReportTurn, outcome=Outcome.COMPLETED, prompt=p, cause=Cause.HISTORY) for p in (A, B)}
    unsent = {A: parts.request_a.now.phase == RequestPhase.UNSENT, B: parts.request_b.now.phase == RequestPhase.UNSENT}
    own = {A: truth.now.a, B: truth.now.b}
    by_stop = session.emits(ReportTurn, cause=Cause.STOP)
    return (
        Always(ONE_TERMINAL, truth.now.phase != TWICE, requirements="R-SES-1", harm="one turn ends twice"),
        Step(OWN_END, all_of(*(not_(_ends_wrong(by_end[p], own[p]) & not_(exempt)) for p in (A, B))), requirements="R-SES-2", harm=WRONG),
        Step(OWN_WAKE, not_(_ends_wrong(by_end[NOBODY], truth.now.taken) & not_(exempt)), requirements="R-SES-2",
             harm="a background reply is cut off, or ends with another's end"),
        Step(TRUE_PAST, implies(by_history[A], server.now.a == Place.SUCCEEDED) & implies(by_history[B], server.now.b == Place.SUCCEEDED),
             requirements="R-SES-2", harm=WRONG),
        Step(OWN_STOP, not_(by_stop & any_of(*(s.emits(EndRequested) & not_(s.now.own) for s in world.stopping))),
             requirements="R-SES-3", harm="a Stop of an earlier turn ends the next one"),
        Step(SENT, not_(completed[A] & unsent[A]) & not_(completed[B] & unsent[B]), requirements="R-SES-4",
             harm="the prompt is never sent, and the user is told that it was answered"),
        Step(ASKED, implies(start.emits(SendPrompt, prompt=B) & ended[A], start.now.asked), requirements="R-SES-5", harm=TOGETHER),
        Step(FAILED_ASKED, implies(start.emits(SendPrompt, prompt=B) & ended[A] & truth.now.failed, start.now.asked),
             requirements=("R-SES-5", "R-SES-23", "R-SES-24"), harm=TOGETHER),
        Step(SKIPPED_USER, not_(any_of(*((now.phase == Turn.USER) & (prompt == p) & _goes_on(after.phase, Turn.USER, own[p], reads)
                                         for p in (A, B)))),
             requirements="R-SES-6", harm=STUCK),
        Step(SKIPPED_WAKE, not_((now.phase == Turn.CONTINUATION) & _goes_on(after.phase, Turn.CONTINUATION, truth.now.taken, reads))
             & implies(session.on(ContinuationStarted) & (now.ended > 0), after.phase != Turn.CONTINUATION),
             requirements=("R-SES-6", "R-SES-14", "R-SES-21"), harm=STUCK),
        Always(ONE_TURN, truth.now.phase != ASTRAY, requirements="R-SES-7", harm="a background reply is shown twice"),
    )  # fmt: skip


def rare(world: World) -> tuple[Property, ...]:
    """S8 and L7, in a world that has what they are about."""
    session, now = world.session, world.session.now
    prompt = now.prompt if world.design.item is None else world.design.item
    own = {A: truth.now.a, B: truth.now.b}
    asked = any_of(*(stream.on(Arrived, what=What.ASKED, execution=e) & (prompt == p) & (own[p] == e) for e in ITEMS for p in (A, B)))
    dead = (session.next.phase == Turn.NONE) & not_(world.wakes_after)
    found: tuple[Property, ...] = ()
    if ASKS not in world.without:
        shown = implies((now.phase == Turn.USER) & asked, session.emits(ShowPermission))
        found += (Step(OWN_ASK, shown, requirements="R-SES-8", harm="the user is never asked, and their own turn is killed"),)
    if DEATH not in world.without:
        found += (Step(DEAD_RESTS, implies(session.on(StreamDied), dead), requirements="R-SES-16", harm=STUCK),)
    return found


def rest(world: World) -> tuple[Property, ...]:
    """L1 to L4 of this system: what is left when everything is quiet."""
    session, now, quiet = world.session, world.session.now, world.quiet()
    prompt = now.prompt if world.design.item is None else world.design.item
    waits = any_of(*((prompt == p) & (place == Place.WAITING) for p, place in ((A, server.now.a), (B, server.now.b))))
    found: tuple[Property, ...] = (
        Always(USER_RESTS, not_(quiet & (now.phase == Turn.USER)), requirements="R-SES-10", harm=STUCK),
        Always(PARKED, not_(quiet & (now.phase == Turn.USER) & waits), requirements="R-SES-10", harm=STUCK),
        Always(CONTINUATION_RESTS, not_(quiet & (now.phase == Turn.CONTINUATION)), requirements=("R-SES-11", "R-SES-26"), harm=STUCK),
        Always(WAKES_REST, not_(quiet & world.design.wakes & (service.now.offers == 0)), requirements="R-SES-12",
               harm="a background reply is never shown"),
    )  # fmt: skip
    dropped = session.emits(DropWakes) & not_(session.on(StreamDied))
    found += (Step(WAKES_KEPT, not_(dropped), requirements="R-SES-12", harm="a background reply is never shown"),)
    if hasattr(now, "awaiting_start"):
        found += (Always(STARTS_REST, not_(quiet & now.awaiting_start), requirements="R-SES-13", harm=STUCK),)
    return found


def reached(world: World) -> tuple[Property, ...]:
    """What some run must show, or nothing was tried."""
    session = world.session
    return (
        Sometimes(
            "a user turn completes", session.emits(ReportTurn, outcome=Outcome.COMPLETED, cause=Cause.EXECUTION), requirements="R-SES-2"
        ),
        Sometimes("a Stop ends its turn", session.emits(ReportTurn, cause=Cause.STOP), requirements="R-SES-3"),
        Sometimes("the history ends a turn", session.emits(ReportTurn, cause=Cause.HISTORY), requirements="R-SES-2"),
        Sometimes("a continuation ends with its wake", requirements="R-SES-2", holds=
            session.emits(ReportTurn, prompt=NOBODY, cause=Cause.EXECUTION)),
        Sometimes("an earlier prompt waits or runs while the next is sent", requirements="R-SES-5", holds=
            start.emits(SendPrompt, prompt=B) & one_of(server.now.a, Place.WAITING, Place.RUNNING)),
        Sometimes("a turn waits in the inbox for a run of another's", requirements="R-SES-10", holds=
            (session.now.phase == Turn.USER) & (server.now.a == Place.WAITING) & (server.now.c == Place.RUNNING)),
    )  # fmt: skip


def properties(world: World) -> tuple[Property, ...]:
    """All of them."""
    return (*safety(world), *rare(world), *rest(world))
