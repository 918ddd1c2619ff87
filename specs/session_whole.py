"""The OpenCode session at its whole bounds: two prompts, a child, two Stops, an unclear prompt, two drops, a restart, every power at once.

``session_system`` has one Stop and one drop, and is part of every verification; this one is asked for by its name. Permission requests
have a world of their own (``session_permissions``); the soak adds them here too, which makes three times as many states.
"""

from __future__ import annotations

from turnproof.specs.session_properties import properties, reached
from turnproof.specs.session_requirements import requirements
from turnproof.specs.session_target import WHOLE
from turnproof.specs.system import SystemSpec

SPEC = SystemSpec(
    system=WHOLE.system("session_whole"),
    requirements=requirements(1, 2, 3, 4, 5, 6, 7, 10, 11, 12, 14, 16, 21, 23, 24, 26),
    properties=(*properties(WHOLE), *reached(WHOLE)),
    tokens=3,
    counter=3,
)
