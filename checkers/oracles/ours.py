"""What our own engines say of the same question, in the form in which the oracles answer."""

from __future__ import annotations

import attrs

from turnproof.checkers.graph import explore as explore_machine
from turnproof.checkers.network.explicit import explore as explore_system
from turnproof.checkers.network.questions import BROKEN, REACHED
from turnproof.checkers.network.run import Fault
from turnproof.checkers.oracles.model import Model
from turnproof.checkers.progress import Progress
from turnproof.machines.kernel import not_
from turnproof.machines.kernel.evaluate import environment, value
from turnproof.specs.language import Always, Property, Sometimes, Spec
from turnproof.specs.system import System, SystemSpec


@attrs.frozen(kw_only=True)
class Ours:
    """The answer of this project's explicit engine."""

    states: int
    reported: frozenset[int]
    """Numbers of the claims that are broken, or reached."""
    faults: frozenset[Fault] = frozenset()
    cut: bool = False
    """Whether a step left the bounds, or was not allowed, and was not followed."""
    why: str = ""
    """Why the search is not complete."""


def of_system(spec: SystemSpec, system: System | None, model: Model, progress: Progress) -> Ours:
    """The walk over the whole system."""
    walk = explore_system(spec, system=system, progress=progress).walk
    hits = {c.number for c in model.claims if (REACHED if c.reach else BROKEN, c.prop.name, 0) in walk.hits}
    return Ours(
        states=walk.states, reported=frozenset(hits), faults=frozenset(walk.flaws), cut=bool(walk.cut or walk.flaws),
        why="" if walk.complete else walk.why,
    )  # fmt: skip


def of_machine(spec: Spec, model: Model, progress: Progress) -> Ours:
    """The graph of a single machine: its states within the bounds, whatever its history variables remember of the way there."""
    graph = explore_machine(spec, progress=progress)
    states = dict.fromkeys(graph.states[: graph.explored])
    written = {prop.name: prop for prop in spec.properties}
    hits = {c.number for c in model.claims if any(_met(written[c.prop.name], state) for state in states)}
    holes = frozenset({Fault.HOLE} if bool((graph.row[:, : graph.explored] == graph.hole).any()) else ())
    return Ours(states=len(states), reported=frozenset(hits), faults=holes, cut=bool(graph.cut) or bool(holes))


def _met(prop: Property, state: object) -> bool:
    if isinstance(prop, Always):
        return bool(value(not_(prop.holds), environment(state)))
    return isinstance(prop, Sometimes) and bool(value(prop.holds, environment(state)))


__all__ = ["Ours", "of_machine", "of_system"]
