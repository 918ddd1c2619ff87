"""What is searched: classics of known size, and the composed systems of this project."""

from __future__ import annotations

import attrs

from turnproof.specs import catalog
from turnproof.specs.classics import philosophers, two_phase_commit
from turnproof.specs.language import Always
from turnproof.specs.system import Budget, SystemSpec

TWO_PHASE_COMMIT, PHILOSOPHERS, PROJECT = "two-phase commit", "dining philosophers", "systems of the project"


@attrs.frozen
class Subject:
    """One model. ``states`` is what every contestant must count; None: what the first counts."""

    name: str
    kind: str
    size: int
    states: int | None


def subjects(quick: bool = False) -> list[Subject]:
    """What is searched, small ones of each kind first."""
    counts = {5: 8_832, 6: 50_816, 7: 296_448, 8: 1_745_408, 9: 10_340_352}
    managers, seats = ((5, 6), (6,)) if quick else ((7, 8, 9), (8, 10, 12))
    found = [Subject(f"two-phase commit, {n} managers", TWO_PHASE_COMMIT, n, counts[n]) for n in managers]
    found += [Subject(f"dining philosophers, {n} seats", PHILOSOPHERS, n, None) for n in seats]
    if not quick:
        found += [
            Subject("reply_registry", PROJECT, 0, 219_892),
            Subject("recovery_system", PROJECT, 1, 1_382_288),
            Subject("recovery_system, 2 recoveries", PROJECT, 2, 3_933_208),
            Subject("agent_turn", PROJECT, 0, 165_944),
            Subject("session_system", PROJECT, 1, 4_797_362),
        ]
    return found


def specification(subject: Subject) -> SystemSpec:
    """Its specification, with the safety properties of states alone."""
    if subject.kind == TWO_PHASE_COMMIT:
        spec = two_phase_commit.specification(subject.size)
    elif subject.kind == PHILOSOPHERS:
        spec = philosophers.specification(subject.size)
    else:
        spec = catalog.systems()[subject.name.partition(",")[0]]
        spec = allowing(spec, subject.size) if subject.size > 1 else spec
    return attrs.evolve(spec, properties=tuple(p for p in spec.properties if isinstance(p, Always)), variants=())


def allowing(spec: SystemSpec, recoveries: int) -> SystemSpec:
    """The same system, in which a recovery may be asked for more often."""
    more = Budget("recoveries", recoveries)
    begins = tuple(
        attrs.evolve(s, budget=more) if s.budget is not None and s.budget.name == more.name else s for s in spec.system.spontaneous
    )
    return attrs.evolve(spec, system=attrs.evolve(spec.system, spontaneous=begins))
