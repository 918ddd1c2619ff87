"""The proof that the session is safe for any number of everything, its certificate, and that neither holds of designs that are wrong."""

from __future__ import annotations

from pathlib import Path

import pytest

from turnproof.checkers.progress import SILENT
from turnproof.checkers.smt import certificate, recheck, rechecking
from turnproof.checkers.smt_network import check, pieces
from turnproof.checkers.smt_network.relation import Network
from turnproof.checkers.verdict import Outcome, Verdict
from turnproof.specs.language import Step
from turnproof.specs.session_unbounded import PROPERTIES, SPEC, VARIANTS
from turnproof.specs.session_unbounded_system import system
from turnproof.specs.system import System, SystemVariant


@pytest.fixture(scope="module")
def proved(tmp_path_factory: pytest.TempPathFactory) -> tuple[list[Verdict], Path]:
    path = tmp_path_factory.mktemp("proof") / "session_unbounded.json"
    return check(SPEC, certificate=path), path


@pytest.mark.soak
def test_every_safety_property_is_proved_for_any_number_of_everything(proved: tuple[list[Verdict], Path]) -> None:
    verdicts = {v.check: v for v in proved[0]}
    assert {name: v.outcome for name, v in verdicts.items() if v.outcome is not Outcome.HOLDS} == {}
    for prop in PROPERTIES:
        how = verdicts[prop.name].how
        assert how.startswith("proved (any length of run, any count; an invariant of "), "nothing is bounded"
        assert "certificate re-checked by z3 " in how
        assert " and cvc5 " in how
    assert [v.outcome for v in recheck(proved[1])] == [Outcome.HOLDS] * 4


def transplanted(made: Path, other: System) -> list[str]:
    """The invariant of that certificate as if it were one of the other system: the queries that a fresh z3 does not answer as expected."""
    whole = certificate.read(made)
    network = Network(other, [p.holds for p in SPEC.properties if isinstance(p, Step)])
    pieces.statements(network, SPEC)
    graft = certificate.make(pieces.table(network), whole.invariant, whole.claims, {}, whole.made_with)
    certificate.check(graft, other.name)
    runs = rechecking.run(graft, SILENT)
    answers = [line for run in runs for line in rechecking.lines(graft, run)]
    # Which rows are ever chosen was not asked of the other system, and is no part of its being inductive.
    return [name for name, expected, answer, _ in answers if answer != expected and not name.endswith(" can be chosen")]


@pytest.mark.soak
@pytest.mark.parametrize("variant", VARIANTS, ids=lambda v: str(v.system.name))
def test_its_invariant_is_none_of_a_design_that_is_wrong(proved: tuple[list[Verdict], Path], variant: SystemVariant) -> None:
    assert any("preserves" in name or "keeps" in name for name in transplanted(proved[1], variant.system))


@pytest.mark.soak
def test_of_the_target_itself_it_is_one(proved: tuple[list[Verdict], Path]) -> None:
    """So that what fails above fails because of the rows that were changed."""
    assert transplanted(proved[1], system()) == []
