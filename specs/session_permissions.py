"""Permission requests of an OpenCode session, around the target, in a world of their own.

They multiply the states and have nothing to do with Stops: an execution asks once, over a drop, a join or the death of the stream.
"""

from __future__ import annotations

from turnproof.machines.session_words import ShowPermission, Turn
from turnproof.specs.language import Sometimes
from turnproof.specs.session_properties import rare
from turnproof.specs.session_requirements import requirements
from turnproof.specs.session_target import ASKING
from turnproof.specs.system import SystemSpec

SPEC = SystemSpec(
    system=ASKING.system("session_permissions"),
    requirements=requirements(8, 16),
    properties=(
        *rare(ASKING),
        Sometimes("the user is asked in their turn", (ASKING.session.now.phase == Turn.USER) & ASKING.session.emits(ShowPermission),
                  requirements="R-SES-8"),
    ),
    tokens=3,
    counter=3,
)  # fmt: skip
