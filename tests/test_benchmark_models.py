"""The models that peers are measured on are the same problem: they have as many states as ours."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from turnproof.checkers.oracles import installed
from turnproof.checkers.oracles.programs import RUN, TOOLS

ROOT = Path(__file__).parents[1]
SUFFIX = {"spin": "pml", "rumur": "m", "tlc": "tla"}


def model(oracle: str) -> str:
    """Two-phase commit with five managers, as it was written by hand."""
    sys.path.insert(0, str(ROOT))
    try:
        from benchmarks import models
    finally:
        sys.path.remove(str(ROOT))
    return models.text(f"two_phase_commit.{SUFFIX[oracle]}", 5)


HERE = [pytest.param(name, marks=pytest.mark.skipif(name not in installed(), reason=f"{name} is not installed")) for name in TOOLS]


@pytest.mark.parametrize("oracle", HERE)
def test_a_model_by_hand_has_the_states_of_ours(oracle: str, tmp_path: Path) -> None:
    answer = RUN[oracle](model(oracle), tmp_path, states=8_832, optimise="-O0")
    assert (answer.states, answer.reported, answer.why) == (8_832, frozenset(), "")


@pytest.mark.parametrize("oracle", HERE)
def test_a_model_by_hand_that_forgets_a_vote_has_other_states(oracle: str, tmp_path: Path) -> None:
    right, wrong = {
        "spin": ("heard == ALL", "heard == 1"),
        "rumur": ("heard[i] endforall", "true endforall"),
        "tlc": ("heard = RM", "TRUE"),
    }[oracle]
    text = model(oracle)
    assert right in text
    answer = RUN[oracle](text.replace(right, wrong), tmp_path, states=8_832, optimise="-O0")
    assert answer.states != 8_832
