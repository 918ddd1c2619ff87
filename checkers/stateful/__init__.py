"""The stateful engine: the real shell on a virtual clock, in random runs, with faults injected into everything it calls.

:func:`check` generates a Hypothesis state machine from a specification: one rule for each event class, and rules that move the clock,
let late handlers end, send in crowds and close in the middle. After every action the shell is compared with the table, which a model
of its own interprets. A run that fails is made small (``shrink``), replayed, and told; :func:`play` plays its script again.
"""

from turnproof.checkers.stateful.engine import PROPERTIES, SEED, SHELL, check
from turnproof.checkers.stateful.rig import Broken, play

__all__ = ["PROPERTIES", "SEED", "SHELL", "Broken", "check", "play"]
