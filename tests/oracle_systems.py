"""Random systems as questions for the oracles."""

from __future__ import annotations

from random_systems import Maker

from turnproof.specs.language import Always, Property, Sometimes
from turnproof.specs.system import SystemSpec

BIG = 1_500
"""States beyond which a random system is left out: the plain walk is slow."""


def specification(seed: int) -> SystemSpec:
    """A random system with four random properties of states."""
    maker = Maker(seed)
    system = maker.system()
    kinds: tuple[type[Always | Sometimes], ...] = (Always, Sometimes)
    properties: tuple[Property, ...] = tuple(
        kinds[n % 2](f"property {n}", maker.state_formula(system), requirements=())  # type: ignore[arg-type]
        for n in range(4)
    )
    return SystemSpec(system=system, requirements={}, properties=properties, tokens=2, counter=1)
