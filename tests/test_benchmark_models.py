"""The models that peers are measured on are the same problem: they have as many states as ours."""

from __future__ import annotations

import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from turnproof.checkers.oracles import installed
from turnproof.checkers.oracles.model import build
from turnproof.checkers.oracles.programs import RUN, TOOLS
from turnproof.checkers.oracles.promela import WHOLE, Promela
from turnproof.specs.classics import peterson, two_phase_commit

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


HERE = [
    pytest.param(
        name,
        marks=[
            pytest.mark.skipif(name not in installed(), reason=f"{name} is not installed"),
            *([pytest.mark.soak] if name == "tlc" else []),
        ],
    )
    for name in TOOLS
]


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


@pytest.mark.skipif("spin" not in installed(), reason="spin is not installed")
@pytest.mark.parametrize("apart", [0, 20, WHOLE])
def test_every_form_of_promela_has_the_same_states(apart: int, tmp_path: Path) -> None:
    """Steps that are one ``d_step``, steps that are worked off by the loop that all share, and some of each."""
    text = Promela(build(two_phase_commit.specification(4)), apart=apart).write()
    assert ("atomic" in text) is (apart == 0)
    assert RUN["spin"](text, tmp_path, states=1_568, optimise="-O0").states == 1_568


@pytest.mark.skipif("spin" not in installed(), reason="spin is not installed")
def test_steps_of_both_forms_in_one_text(tmp_path: Path) -> None:
    text = Promela(build(peterson.SPEC), apart=4).write()
    assert "atomic" in text
    assert "  :: d_step { /* one <- Wanted */" in text
    assert RUN["spin"](text, tmp_path, states=34, optimise="-O0").states == 34


def contest() -> tuple[ModuleType, ModuleType]:
    sys.path.insert(0, str(ROOT))
    try:
        from benchmarks import contestants, systems
    finally:
        sys.path.remove(str(ROOT))
    return systems, contestants


def test_who_counts_otherwise_stops_the_run(monkeypatch: pytest.MonkeyPatch) -> None:
    systems, contestants = contest()

    def counting(states: int) -> object:
        return lambda subject, directory: contestants.Run(states, 1.0, 1.0, 1.0, 1.0, 1 << 20)

    monkeypatch.setattr(systems, "ours", lambda threads: counting(8_832))
    monkeypatch.setattr(systems, "contestants", lambda subject: iter([("turnproof", counting(8_832)), ("other", counting(8_831))]))
    with pytest.raises(systems.Disagreement, match="5 managers: other counts 8,831 states, expected 8,832"):
        systems.measure("two-phase commit", quick=True)


def test_who_is_slow_or_fails_is_named_and_not_asked_again(monkeypatch: pytest.MonkeyPatch) -> None:
    systems, contestants = contest()
    counts, asked = {5: 8_832, 6: 50_816}, list[str]()

    def taking(name: str, cpu: float) -> object:
        def run(subject: Any, directory: Path) -> object:
            asked.append(name)
            if name == "failing":
                raise RuntimeError("no more memory")
            return contestants.Run(counts[subject.size], cpu, cpu, cpu, cpu, 1 << 20)

        return run

    monkeypatch.setattr(systems, "ours", lambda threads: taking("warm", 1.0))
    everybody = [("turnproof", taking("turnproof", 1.0)), ("slow", taking("slow", 61.0)), ("failing", taking("failing", 1.0))]
    monkeypatch.setattr(systems, "contestants", lambda subject: iter(everybody))
    figures, left_out = systems.measure("two-phase commit", quick=True)
    assert [(f.contestant, f.rounds) for f in figures] == [("turnproof", 3), ("slow", 1), ("turnproof", 3)]
    assert (asked.count("slow"), asked.count("failing")) == (1, 1)
    assert "slow on two-phase commit, 6 managers: two-phase commit, 5 managers took it 61 s of processor time" in left_out
    assert "failing on two-phase commit, 5 managers: it failed on two-phase commit, 5 managers: no more memory" in left_out
    assert systems.ratios(figures)[1].split()[-4:] == ["61.00"] * 4
