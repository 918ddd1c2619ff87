"""Executions of an OpenCode session that end ``failed``: one more way to end, in a world of its own.

Everywhere else an execution succeeds or is interrupted, for a failure differs in the terminal's word alone. That it does is shown here:
every promise of S1 to S7 and L1 to L3 holds with failures too, a turn is told the failure of its own execution and of no other, and what
failed is never called complete.

Of a failed run the history reads as interrupted here: the adapter's machines have no third word for the past, and neither takes it for an
answer. What the end of a held wake says is not kept by the machines (``session_words``, ``Cause.REPLAY``).
"""

from __future__ import annotations

from typing import Any

import attrs

from turnproof.machines.kernel import NOBODY, Machine, Row, any_of, implies, not_, one_of
from turnproof.machines.session import MACHINE as SESSION
from turnproof.machines.session import ended, over, served, tells
from turnproof.machines.session_stream import Arrived, What
from turnproof.machines.session_words import Cause, End, ExecutionEnded, Outcome, ReportTurn, Turn
from turnproof.specs import session_environment as env
from turnproof.specs.language import Property, Sometimes, Step
from turnproof.specs.session_environment import ITEMS, SERVER, A, B, Place, Server, ServerPhase
from turnproof.specs.session_history import V4, design
from turnproof.specs.session_parts import (
    ASKS,
    DEATH,
    MORE,
    N1,
    N2,
    N4,
    N6,
    N7,
    N8,
    N10,
    N11,
    N13,
    POWERS,
    STOPS,
    World,
    server,
    stream,
    truth,
)
from turnproof.specs.session_properties import FAILED_ASKED, WRONG, rest, safety
from turnproof.specs.session_requirements import requirements
from turnproof.specs.session_target import TARGET
from turnproof.specs.system import Part, Spontaneous, Switch, System, SystemSpec, SystemVariant

FAILS = Switch("fails", "an execution ends failed")


@attrs.frozen
class Failed:
    """The execution under way fails, and publishes it."""


FAILING: Machine[Server, Any, Any] = attrs.evolve(
    SERVER,
    name="session_server_failing",
    events=(*SERVER.events, Failed),
    rows=(
        *SERVER.rows,
        Row(Failed, at=ServerPhase.RUNNING, data=env.ended(Place.INTERRUPTED), emit=(env.Publish(What.FAILED, env.server.execution),)),
        Row(Failed, ignore="nothing runs"),
    ),
)


def failing(world: World, name: str) -> System:
    """The system of this world under this name, with a server whose executions may fail."""
    system = world.system(name)
    fails = Spontaneous(server, Failed(), when=(server.now.phase == ServerPhase.RUNNING) & not_(server.now.asking), switch=FAILS)
    parts = tuple(Part("server", FAILING) if part.name == "server" else part for part in system.parts)
    return attrs.evolve(system, parts=parts, spontaneous=(*system.spontaneous, fails), switches=(*system.switches, FAILS))


TOLD = "S2: a turn that ends with its own execution that failed is told so"
OTHERS = "S2: a turn is told no failure but that of its own execution or request"
UNCALLED = "S2: a turn whose own execution failed is not called complete, by the history neither"


def properties(world: World) -> tuple[Property, ...]:
    """S1 to S7, L1 to L3, and what a failure adds."""
    session, prompt = world.session, world.session.now.prompt if world.design.item is None else world.design.item
    by_end, now = session.emits(ReportTurn, cause=Cause.EXECUTION), session.now
    own = any_of(*(stream.on(Arrived, what=What.FAILED, execution=e) & _serves(e, now.phase, prompt) for e in ITEMS))
    fails = session.emits(ReportTurn, outcome=Outcome.FAILED, cause=Cause.EXECUTION)
    return (
        # What is unchecked beside a failed prompt is unchecked beside any.
        *(p for p in safety(world) if p.name != FAILED_ASKED),
        *rest(world),
        Step(TOLD, implies(own & by_end, fails), requirements="R-SES-2", harm="a run that failed is called complete"),
        Step(OTHERS, implies(fails, own), requirements="R-SES-2", harm=WRONG),
        Step(UNCALLED, implies(own, not_(session.emits(ReportTurn, outcome=Outcome.COMPLETED))), requirements="R-SES-2",
             harm="a run that failed is called complete"),
    )  # fmt: skip


def _serves(execution: str, phase: Turn, prompt: str) -> bool:
    """This execution serves the turn installed."""
    user = any_of(*((prompt == p) & (served == execution) for p, served in ((A, truth.now.a), (B, truth.now.b))))
    return ((phase == Turn.USER) & user) | ((phase == Turn.CONTINUATION) & (truth.now.taken == execution))


def reached(world: World) -> tuple[Property, ...]:
    """What some run must show, or nothing was tried."""
    session = world.session
    failed = {"outcome": Outcome.FAILED, "cause": Cause.EXECUTION}
    return (
        Sometimes("a user turn fails with its execution", session.emits(ReportTurn, prompt=A, **failed), requirements="R-SES-2"),
        Sometimes("a continuation fails with its wake", session.emits(ReportTurn, prompt=NOBODY, **failed), requirements="R-SES-2"),
        Sometimes("a turn goes on after the failure of another's execution", requirements="R-SES-6", holds=
            session.on(ExecutionEnded, how=End.FAILED) & (session.now.phase == Turn.USER) & (session.next.phase == Turn.USER)),
        Sometimes("the history ends a turn whose execution failed", requirements="R-SES-2", holds=
            session.emits(ReportTurn, prompt=A, cause=Cause.HISTORY) & one_of(server.now.a, Place.INTERRUPTED)),
    )  # fmt: skip


# ── the worlds ──

WORLD = World(TARGET, [s for s in (*POWERS, *MORE) if s not in (N1, N4, N6, N8, N10, STOPS)], stops=1, drops=1)
WIDE = World(TARGET, (ASKS, DEATH, N2, N4, N11, N13), stops=1, drops=1)
"""With a child that reports: a soak test explores it."""
UNTOLD = SESSION.variant(
    "session_failed_untold",
    first=(
        Row(ended, when=served & (ended.how == End.FAILED), data=over(), emit=tells(Outcome.COMPLETED, Cause.EXECUTION), name="complete"),
    ),
)
MARKED = World(design(V4), [s for s in (*POWERS, *MORE) if s not in (N7, N10)], stops=1, drops=1)


def variants() -> tuple[SystemVariant, ...]:
    """The rule of the mark, and a mistake."""
    untold = World(attrs.evolve(TARGET, session=UNTOLD), [*POWERS, *MORE], stops=1, drops=1)
    return (
        SystemVariant(
            system=failing(MARKED, "session_failed_v4"),
            properties=tuple(p for p in properties(MARKED) if p.name == OTHERS),
            violates={OTHERS: 8},
            about="V4: a background reply fails while the user's turn is being prepared, and the user's turn fails with it.",
        ),
        SystemVariant(
            system=failing(untold, "session_failed_untold"),
            properties=tuple(p for p in properties(untold) if p.name in (TOLD, UNCALLED)),
            violates={TOLD: 9, UNCALLED: 9},
            about="The target that takes any end but an interrupt for a success.",
        ),
    )


SPEC = SystemSpec(
    system=failing(WORLD, "session_failed"),
    requirements=requirements(1, 2, 3, 4, 5, 6, 7, 10, 11, 12, 14, 21, 26),
    properties=(*properties(WORLD), *reached(WORLD)),
    variants=variants(),
    tokens=3,
    counter=3,
)
