"""Turns and continuations of an OpenCode session end: promises about the future, under stated fairness, around the target.

That nothing is left when everything is quiet is shown in ``session_system``; that a run comes to rest at all is shown here, within narrower
bounds, for a promise about the future needs the whole graph with its edges.
"""

from __future__ import annotations

import attrs

from turnproof.machines import session_start as start_words
from turnproof.machines import session_stop as stop_words
from turnproof.machines.kernel import Row
from turnproof.machines.session import MACHINE, RecheckExpired, Timer
from turnproof.machines.session_stream import LOST, SUBSCRIBED, UP
from turnproof.machines.session_words import Turn
from turnproof.specs.language import Fair, LeadsTo, Property
from turnproof.specs.session_environment import ServerPhase
from turnproof.specs.session_parts import REQUESTS, World, buffer, server, service, start, stop_1, stream
from turnproof.specs.session_properties import STUCK
from turnproof.specs.session_requests import ContinuationDue, RequestPhase
from turnproof.specs.session_requirements import requirements
from turnproof.specs.session_target import ENDING, TARGET
from turnproof.specs.system import SystemSpec, SystemVariant
from turnproof.specs.system_words import pending


def fairness(world: World) -> tuple[Fair, ...]:
    """What happens at last: the server's own work, deliveries, the adapter's own work, replies, timers. Nothing about the user."""
    session = world.session
    fair = [
        Fair(f"a session that is {phase.value} goes on", server.now.phase == phase, server.next.phase != phase)
        for phase in ServerPhase
        if phase is not ServerPhase.IDLE
    ]
    waiting = (pending("buffer") > 0) & (stream.now.phase == UP)
    fair += [
        Fair("what is buffered is handled", waiting, buffer.delivers | (stream.next.phase != UP)),
        Fair("a lost stream is subscribed again", stream.now.phase == LOST, stream.next.phase != LOST),
        Fair("the history is read", stream.now.phase == SUBSCRIBED, stream.next.phase != SUBSCRIBED),
        Fair("a prompt not delivered is looked for", session.running(Timer.RECHECK), session.took(RecheckExpired)),
    ]
    for prompt, request in REQUESTS:
        for phase in (RequestPhase.FLYING, RequestPhase.OK, RequestPhase.REFUSED, RequestPhase.BROKEN, RequestPhase.BROKEN_LATE):
            fair.append(
                Fair(f"the request of {prompt} that is {phase.value} goes on", request.now.phase == phase, request.next.phase != phase)
            )
    for step in start_words.StartPhase:
        if step is not start_words.IDLE:
            fair.append(Fair(f"a start that is {step.value} goes on", start.now.phase == step, start.next.phase != step))
    if world.stops > 0:
        waits = stop_1.now.phase == stop_words.WAITING
        fair.append(Fair("the timer of a Stop fires, or its reply comes", waits, stop_1.next.phase != stop_words.WAITING))
    return tuple(fair)


def promises(world: World) -> tuple[Property, ...]:
    """L1 to L4 as promises about the future of this world."""
    now = world.session.now
    free = (service.now.offers > 0) & (now.phase == Turn.NONE) & (start.now.phase == start_words.IDLE) & (stream.now.phase == UP)
    taken = Fair("an offer is taken", free, service.took(ContinuationDue), strong=True)
    fair = fairness(world)
    return (
        LeadsTo("L1: a user turn ends", now.phase == Turn.USER, now.phase != Turn.USER, fairness=fair, requirements="R-SES-10", harm=STUCK),
        LeadsTo("L2: a continuation ends", now.phase == Turn.CONTINUATION, now.phase != Turn.CONTINUATION, fairness=fair,
                requirements="R-SES-11", harm=STUCK),
        LeadsTo("L3: a wake that is held is taken at last", now.ended > 0, now.ended == 0,
                fairness=(*fair, taken), requirements="R-SES-12", harm="a background reply is never shown"),
        LeadsTo("L4: a start comes to its end", start.now.phase != start_words.IDLE, start.now.phase == start_words.IDLE, fairness=fair,
                requirements="R-SES-13", harm="a turn is never begun"),
    )  # fmt: skip


def _without_rechecks() -> SystemVariant:
    """The target that never looks again for a prompt: its timer fires once, and nothing comes of it."""
    looks = (row for row in MACHINE.rows if row.event is RecheckExpired and row.emit)
    blind = MACHINE.variant("session_without_rechecks", replace={row.name: Row(RecheckExpired, stay=True, name=row.name) for row in looks})
    world = World(attrs.evolve(TARGET, session=blind), ENDING.without, stops=0, drops=1)
    return SystemVariant(
        system=world.system("session_without_rechecks"),
        about="The target without its rechecks: a restart parks a prompt in the inbox, and nobody looks for it.",
        violates={"L1: a user turn ends": 9},
    )


SPEC = SystemSpec(
    system=ENDING.system("session_ends"),
    requirements=requirements(10, 11, 12, 13),
    properties=promises(ENDING),
    variants=(_without_rechecks(),),
    tokens=3,
    counter=3,
)
