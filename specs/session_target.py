"""The adapter around the target, ``turnproof.machines.session``, and the bounds within which it is explored."""

from __future__ import annotations

import attrs

from turnproof.machines.kernel import NOBODY
from turnproof.machines.session import MACHINE
from turnproof.specs.session_parts import ASKS, DEATH, N2, N4, N11, N13, STOPS, Design, World
from turnproof.specs.system_words import state

now = state("session", MACHINE)
TARGET = Design(
    session=MACHINE,
    doubt=(now.doubt != NOBODY) | now.more,
    wakes=(now.ended > 0) | now.running,
    item=now.item,
    in_doubt=now.doubt,
    keeps_wakes=True,
)
BLIND = attrs.evolve(TARGET, knows_restarts=False)
"""The target where a reconnect does not tell whether the server is still the same process."""

ONE = World(TARGET, (ASKS,), stops=1, drops=1)
"""N1 to N13 and a reconnect that fails for good; one Stop, one drop. What ``make verify`` explores."""
WHOLE = World(TARGET, (ASKS,))
"""N1 to N13 and a reconnect that fails for good, with two Stops and two drops: two prompts, one child, one unclear prompt, one restart."""
ASKING = World(TARGET, (N2, N4, N11, N13, STOPS), stops=0, drops=1)
"""An execution asks for a permission, over a drop, and nobody stops anything."""
ENDING = World(TARGET, (N4, N13, STOPS, ASKS, DEATH), stops=0, drops=1)
"""For promises about the future, which need the graph with its edges."""
