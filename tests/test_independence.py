"""What says whether a partial order reduction could pay can say both."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from systems import SERVER, Asked, Crashed, Work

from turnproof.specs.classics import two_phase_commit
from turnproof.specs.language import Sometimes
from turnproof.specs.system import Absorbs, Part, Spontaneous, System, SystemSpec


@pytest.fixture
def _root(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "path", [*sys.path, str(Path(__file__).parents[1])])


@pytest.mark.usefixtures("_root")
def test_parts_that_share_nothing_are_independent_and_those_of_a_commit_are_not() -> None:
    from benchmarks.independence import measure

    parts = tuple(Part(f"server_{n}", SERVER) for n in range(3))
    apart = System(
        name="apart",
        parts=parts,
        spontaneous=tuple(Spontaneous(part, event) for part in parts for event in (Asked, Crashed)),
        absorbed=tuple(Absorbs(part, *SERVER.effects) for part in parts),
    )
    falls = Sometimes("one falls", parts[0].now.phase == Work.DOWN, requirements=())
    found = measure(SystemSpec(system=apart, requirements={}, properties=(falls,)), 0.3)
    assert found.clusters == 3
    assert 0 < found.independent < found.pairs
    assert measure(two_phase_commit.SPEC, 0.3).clusters == 1
