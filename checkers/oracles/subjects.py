"""What there is to compare besides the catalogue: the classics, in sizes that take no time."""

from __future__ import annotations

from collections.abc import Mapping

from turnproof.specs.system import SystemSpec


def classics() -> Mapping[str, SystemSpec]:
    """Name -> its specification."""
    from turnproof.specs.classics import peterson, philosophers, two_phase_commit

    specs = (two_phase_commit.SPEC, two_phase_commit.specification(5), peterson.SPEC, philosophers.SPEC, philosophers.specification(6))
    return {spec.system.name: spec for spec in specs}


__all__ = ["classics"]
