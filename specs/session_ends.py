"""Turns and continuations of an OpenCode session end: promises about the future, under stated fairness, around the target.

That nothing is left when everything is quiet is shown in ``session_system``; that a run comes to rest at all is shown here. Every
verification does so within narrow bounds, for a promise about the future needs the graph with its steps; the soak does it at the whole
bounds (``tests/test_session_liveness.py``).
"""

from __future__ import annotations

import attrs

from turnproof.machines import session_start as start_words
from turnproof.machines.kernel import Row, not_
from turnproof.machines.session import MACHINE, RecheckExpired, Timer
from turnproof.machines.session_stream import LOST, SUBSCRIBED, UP
from turnproof.machines.session_words import Turn
from turnproof.specs.language import Fair, LeadsTo, Property, Sometimes
from turnproof.specs.session_environment import ServerPhase
from turnproof.specs.session_parts import ASKS, REQUESTS, World, buffer, server, service, start, stream
from turnproof.specs.session_properties import STUCK
from turnproof.specs.session_requests import ContinuationDue, RequestPhase
from turnproof.specs.session_requirements import requirements
from turnproof.specs.session_target import ENDING, TARGET
from turnproof.specs.system import SystemSpec, SystemVariant
from turnproof.specs.system_words import pending


def serving(world: World, *phases: ServerPhase) -> tuple[Fair, ...]:
    """The server's own work is done. What waits for a permission waits for the user, who answers at last."""
    found = []
    for phase in phases:
        asks = ASKS not in world.without and phase is ServerPhase.RUNNING
        works: bool = (server.now.phase == phase) & not_(server.now.asking) if asks else server.now.phase == phase
        found.append(Fair(f"a session that is {phase.value} goes on", works, server.next.phase != phase))
    if ASKS not in world.without:
        found.append(Fair("a permission request is answered", server.now.asking, not_(server.next.asking)))
    return tuple(found)


def streaming() -> tuple[Fair, ...]:
    """What is published is handled, and a stream that is lost comes back, or is given up."""
    waiting = (pending("buffer") > 0) & (stream.now.phase == UP)
    return (
        Fair("what is buffered is handled", waiting, buffer.delivers | (stream.next.phase != UP)),
        Fair("a lost stream is subscribed again", stream.now.phase == LOST, stream.next.phase != LOST),
        Fair("the history is read", stream.now.phase == SUBSCRIBED, stream.next.phase != SUBSCRIBED),
    )


def starting(*phases: start_words.StartPhase) -> tuple[Fair, ...]:
    """A start does what it does by itself, and the server answers it."""
    return tuple(Fair(f"a start that is {step.value} goes on", start.now.phase == step, start.next.phase != step) for step in phases)


def prompting(world: World) -> tuple[Fair, ...]:
    """A prompt's request comes to its end, and a prompt that is not delivered is looked for."""
    found = [Fair("a prompt not delivered is looked for", world.session.running(Timer.RECHECK), world.session.took(RecheckExpired))]
    for prompt, request in REQUESTS:
        for phase in (RequestPhase.FLYING, RequestPhase.OK, RequestPhase.REFUSED, RequestPhase.BROKEN, RequestPhase.BROKEN_LATE):
            found.append(
                Fair(f"the request of {prompt} that is {phase.value} goes on", request.now.phase == phase, request.next.phase != phase)
            )
    return tuple(found)


def promises(world: World) -> tuple[Property, ...]:
    """L1 to L4 as promises about the future of this world, each under what it needs: less is not enough.

    Nothing is assumed of the user, but that there are finitely many prompts, and that a permission request is answered; nothing of Stops,
    neither that the server answers them nor that their timers fire; and nothing of prompts that may be admitted later.
    """
    now = world.session.now
    free = (service.now.offers > 0) & (now.phase == Turn.NONE) & (start.now.phase == start_words.IDLE) & (stream.now.phase == UP)
    taken = Fair("an offer is taken", free, service.took(ContinuationDue))
    working = tuple(phase for phase in ServerPhase if phase is not ServerPhase.IDLE)
    steps = tuple(step for step in start_words.StartPhase if step is not start_words.IDLE)
    turns = (*serving(world, *working), *streaming(), *prompting(world))
    return (
        LeadsTo("L1: a user turn ends", now.phase == Turn.USER, now.phase != Turn.USER,
                fairness=(*turns, *starting(start_words.INSTALLED)), requirements="R-SES-10", harm=STUCK),
        LeadsTo("L2: a continuation ends", now.phase == Turn.CONTINUATION, now.phase != Turn.CONTINUATION,
                fairness=(*serving(world, ServerPhase.RUNNING, ServerPhase.STOPPING), *streaming()), requirements="R-SES-11", harm=STUCK),
        LeadsTo("L3: a wake that is held is taken at last", now.ended > 0, now.ended == 0,
                fairness=(*turns, *starting(*steps), taken), requirements="R-SES-12", harm="a background reply is never shown"),
        LeadsTo("L4: a start comes to its end", start.now.phase != start_words.IDLE, start.now.phase == start_words.IDLE,
                fairness=starting(*steps), requirements="R-SES-13", harm="a turn is never begun"),
    )  # fmt: skip


def doubt(world: World) -> Property:
    """L5 read strictly, that nothing stays in doubt: it is not so, and does no harm (``session_system``: no end of a wake is skipped)."""
    stays = world.quiet() & world.design.doubt
    return Sometimes("L5, read strictly: a prompt may be in doubt when everything is quiet", stays, requirements="R-SES-14")


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
    requirements=requirements(10, 11, 12, 13, 14),
    properties=(*promises(ENDING), doubt(ENDING)),
    variants=(_without_rechecks(),),
    tokens=3,
    counter=3,
)
