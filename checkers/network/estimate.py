"""How large a system is, before a long run: a walk cut short, and where the growth of its levels points.

Breadth-first levels of a network of finite parts grow, slow down and shrink. Where they have begun to slow down, the logarithm of
their sizes is close to a parabola; its other side is the estimate. It is a guess, and says so; what was found is a lower bound.
"""

from __future__ import annotations

import json
import math
from collections.abc import Collection, Sequence
from itertools import pairwise

import attrs

from turnproof.checkers.network.explicit import explore
from turnproof.checkers.progress import Progress
from turnproof.specs.system import System, SystemSpec


@attrs.frozen
class Estimate:
    """What a short walk says about a whole one."""

    system: str
    known: int
    """States found, a lower bound."""
    complete: bool
    """The short walk was the whole one."""
    depth: int
    """Levels completed."""
    states: int | None
    """States in all, by extrapolation; None if the levels still grow too fast to tell."""
    rate: float
    """States a second."""
    bytes_per_state: float

    @property
    def seconds(self) -> float | None:
        """How long the whole walk would take."""
        return None if self.states is None else self.states / self.rate

    @property
    def memory(self) -> float | None:
        """Bytes the whole walk would take."""
        return None if self.states is None else self.states * self.bytes_per_state

    def json(self) -> str:
        """The figures as JSON text; null for what cannot be told."""
        more = {"seconds": self.seconds, "memory": self.memory}
        return json.dumps({"format": "turnproof.estimate", "version": 1, **attrs.asdict(self), **more}, indent=1) + "\n"

    def text(self) -> str:
        """One line for a person."""
        if self.complete:
            return f"{self.system}: {self.known:,} states, {self.depth} steps deep; that is all of it"
        if self.depth < 0:
            return f"{self.system}: no level was finished in this time; give it more with --seconds"
        found = f"{self.system}: at least {self.known:,} states, {self.depth} steps deep so far, {self.rate:,.0f} states/s"
        if self.states is None or self.seconds is None or self.memory is None:
            return f"{found}; the levels still grow, so nothing can be said about the whole"
        return f"{found}; about {_rounded(self.states):,} in all (a guess), {_duration(self.seconds)}, {self.memory / 1e6:,.0f} MB"


def _rounded(number: int) -> int:
    """Two figures: more would claim too much."""
    digits = max(0, len(str(number)) - 2)
    return round(number, -digits)


def _duration(seconds: float) -> str:
    return f"{seconds:.0f} s" if seconds < 120 else f"{seconds / 60:.0f} min" if seconds < 7200 else f"{seconds / 3600:.0f} h"


def estimate(
    spec: SystemSpec, *, system: System | None = None, off: Collection[str] = (), seconds: float = 5.0, progress: Progress | None = None
) -> Estimate:
    """Walk for ``seconds`` and extrapolate."""
    graph = explore(spec, system=system, properties=(), off=off, seconds=seconds, progress=progress)
    walk = graph.walk
    # A walk cut short ends within a level, which is therefore too small.
    levels = walk.levels if walk.complete else walk.levels[:-1]
    return Estimate(
        system=graph.system.name,
        known=walk.states,
        complete=walk.complete,
        depth=len(levels) - 1,
        states=walk.states if walk.complete else extrapolated(levels, walk.states),
        rate=walk.states / max(walk.seconds, 1e-9),
        bytes_per_state=max(16.0, walk.memory / max(walk.states, 1)),
    )


def extrapolated(levels: Sequence[int], known: int) -> int | None:
    """The sum of all levels, from the first ones; None if they do not yet point to an end."""
    logs = [math.log(n) for n in levels if n > 0]
    if len(logs) < 6:
        return None
    growth = [b - a for a, b in pairwise(logs)][-6:]
    # Growth falls by about the same amount with every level.
    steps = range(len(growth))
    middle, mean = sum(steps) / len(growth), sum(growth) / len(growth)
    slope = sum((k - middle) * (g - mean) for k, g in zip(steps, growth, strict=True)) / sum((k - middle) ** 2 for k in steps)
    now = mean + slope * (steps[-1] - middle)
    if slope >= -0.01:
        return None
    total, level = float(known), logs[-1]
    for _ in range(100_000):
        now += slope
        level += now
        total += math.exp(min(level, 60.0))
        if now < 0 and level < 0:
            break
    return max(known, int(total)) if total < 1e15 else None
