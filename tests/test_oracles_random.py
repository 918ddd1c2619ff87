"""Two hundred random systems: `make oracles` asks every oracle that is installed about each."""

from __future__ import annotations

import pytest
from oracle_systems import BIG, specification

from turnproof.checkers.network import explicit
from turnproof.checkers.oracles import compare, installed, ours
from turnproof.checkers.verdict import Outcome


@pytest.mark.soak
@pytest.mark.parametrize("seed", range(200))
def test_random_systems(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ours, "explore_system", lambda spec, **more: explicit.explore(spec, engine="plain", limit=BIG, **more))
    asked = installed()
    assert asked, "no oracle is installed"
    verdicts = compare(specification(seed), oracles=asked)
    if any("our own search is not complete" in v.detail for v in verdicts):
        pytest.skip(f"more than {BIG:,} states")
    assert {v.outcome for v in verdicts} == {Outcome.HOLDS}, [v for v in verdicts if v.outcome is not Outcome.HOLDS]
