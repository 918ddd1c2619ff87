"""The OpenCode session as a system, around the target: what must hold whatever the server, the wire and the user do.

The session's machine goes by what the inbox delivered (``turnproof.machines.session``). The environment has every power N1 to N13 at once.
What is explored by every verification has one Stop and one drop; the whole bounds (two of each) are ``session_whole``.

The designs that shipped and were wrong are the rule of the mark: V0 to V3 as they followed each other, and V4, the one that was approved,
once for each of its defects.

One guarantee of the wire is needed beyond what it says today: a reconnect has to tell whether the server is still the same process. Without
it two runs look alike to any adapter (``tests/test_session_system.py`` shows the pair): a run that a restart took and another's that began
since, against the same run still alive. Whoever ends the turn at the next end is wrong in the first, whoever does not is stuck in the
second.
"""

from __future__ import annotations

from turnproof.machines.kernel import all_of, implies, one_of
from turnproof.machines.session import RecheckExpired
from turnproof.machines.session_words import CancelPrompt, HistoryRead, Turn
from turnproof.specs import session_defects, session_history
from turnproof.specs.language import Property, Step
from turnproof.specs.session_parts import ASKS, DEATH, N1, N2, N4, N12, N13, STOPS, World, request_a, request_b
from turnproof.specs.session_properties import OWN_END, properties, reached
from turnproof.specs.session_requests import RequestPhase
from turnproof.specs.session_requirements import TESTS, requirements
from turnproof.specs.session_target import BLIND, ONE
from turnproof.specs.system import SystemSpec, SystemVariant

session = ONE.session
SYSTEM = ONE.system("session_system")
settled = all_of(*(one_of(r.now.phase, RequestPhase.UNSENT, RequestPhase.LATE, RequestPhase.DONE) for r in (request_a, request_b)))

OWN: tuple[Property, ...] = (
    Step("L1: what a recheck finds of an idle session ends the turn, or takes its prompt out of the inbox", requirements="R-SES-10", holds=
         implies(session.on(HistoryRead, active=False) & session.on(RecheckExpired) & settled,
                 (session.next.phase == Turn.NONE) | session.emits(CancelPrompt)), harm="the user looks at a turn that nothing will end"),
)  # fmt: skip
PROPERTIES: tuple[Property, ...] = (*properties(ONE), *OWN, *reached(ONE))


def _blind() -> SystemVariant:
    world = World(BLIND, (ASKS, DEATH, N1, N2, N4, N12, N13, STOPS), stops=1, drops=1)
    wanted = tuple(p for p in properties(world) if p.name == OWN_END)
    return SystemVariant(
        system=world.system("session_blind"),
        violates={OWN_END: 14},
        properties=wanted,
        about="The target on a wire that does not tell a restart: a run that the restart took is taken for alive, because another runs.",
    )


SPEC = SystemSpec(
    system=SYSTEM,
    requirements=requirements(1, 2, 3, 4, 5, 6, 7, 10, 11, 12, 13, 14, 16, 21, 23, 24, 25, 26, 28, 29, 30, 32, 33),
    properties=PROPERTIES,
    tests={rid: TESTS[rid] for rid in ("R-SES-13", "R-SES-25", "R-SES-28", "R-SES-29", "R-SES-30", "R-SES-32", "R-SES-33")},
    variants=(*session_history.variants(), *session_defects.variants(), _blind()),
    tokens=3,
    counter=3,
)
