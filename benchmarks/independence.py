"""Whether a partial order reduction could pay: how often steps of a system are independent of each other.

``python -m benchmarks.independence`` walks each system at random for some seconds and learns what every beginning of a step may touch:
parts that handle something, what its guard reads, channels, budgets. Two beginnings that share nothing are independent. A reduction
may take a step alone only where it is independent of all that could still happen: so it needs beginnings that fall into clusters
which share nothing. One cluster means that no static reduction leaves anything out.
"""

from __future__ import annotations

import random
import time
from collections.abc import Iterator

import attrs

from turnproof.checkers.network.run import Occurrence, Runner, Unfollowed, World
from turnproof.checkers.network.triggers import Trigger, triggers
from turnproof.machines.kernel import variables
from turnproof.specs.catalog import systems
from turnproof.specs.classics import philosophers, two_phase_commit
from turnproof.specs.system import SystemSpec

SECONDS = 5.0
AGAIN = 0.03
"""How likely a random walk begins anew."""


@attrs.frozen
class Independence:
    """What a random walk saw. Beginnings that never moved anything are left out."""

    system: str
    states: int
    independent: int
    """Pairs of steps enabled together, both of which move something, that share nothing."""
    pairs: int
    clusters: int
    """Sets of beginnings that share nothing with each other."""


def touched(runner: Runner, trigger: Trigger, step: Occurrence) -> Iterator[tuple[str, object]]:
    """What the step reads or writes."""
    yield from (("part", d.part) for d in step.deliveries)
    yield from (("read", v.scope) for v in variables(trigger.guard) if trigger.guard is not None)
    yield from (("read", runner.system.everyone[d.part].name) for d in step.deliveries)
    for n, (before, after) in enumerate(zip(step.before.channels, step.after.channels, strict=True)):
        if before != after:
            yield "channel", n
    for n, (left, rest) in enumerate(zip(step.before.budgets, step.after.budgets, strict=True)):
        if left != rest:
            yield "budget", n


def measure(spec: SystemSpec, seconds: float = SECONDS, seed: int = 1) -> Independence:
    """Walk at random and compare."""
    runner, chance = Runner(spec.system, counter=spec.counter), random.Random(seed)
    every = triggers(spec.system, tokens=spec.tokens, counter=spec.counter)
    touch: dict[int, set[tuple[str, object]]] = {}
    met: dict[World, list[int]] = {}
    world, ends = runner.initial(), time.monotonic() + seconds
    while time.monotonic() < ends:
        moving = []
        for n, trigger in enumerate(every):
            step = _performed(runner, world, trigger)
            if step is not None and step.after != world:
                moving.append((n, step.after))
                touch.setdefault(n, set()).update(touched(runner, trigger, step))
        met.setdefault(world, [n for n, _ in moving])
        world = runner.initial() if not moving or chance.random() < AGAIN else chance.choice(moving)[1]
    both = [(i, j) for enabled in met.values() for i in enabled for j in enabled if i < j]
    apart = sum(1 for i, j in both if not touch[i] & touch[j])
    return Independence(spec.system.name, len(met), apart, len(both), _clusters(list(touch.values())))


def _performed(runner: Runner, world: World, trigger: Trigger) -> Occurrence | None:
    if not runner.enabled(world, trigger):
        return None
    try:
        return runner.perform(world, trigger)
    except Unfollowed:
        return None


def _clusters(sets: list[set[tuple[str, object]]]) -> int:
    found: list[set[tuple[str, object]]] = []
    for one in sets:
        joined = [other for other in found if other & one]
        found = [other for other in found if not other & one] + [one.union(*joined)]
    return len(found)


def main() -> None:
    """One line a system."""
    for spec in (*systems().values(), two_phase_commit.specification(5), philosophers.specification(6)):
        m = measure(spec)
        share = 100 * m.independent / max(1, m.pairs)
        shape = f"{m.clusters} cluster(s), {len(spec.system.channels)} channels ({m.states:,} states)"
        print(f"{m.system}: {share:.0f} % of {m.pairs:,} pairs independent, {shape}")


if __name__ == "__main__":
    main()
