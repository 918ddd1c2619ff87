"""Golden numbers and coverage: written, read back, and a changed number seen."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path
from typing import Any

import attrs
import pytest
import toys
from toys import GATE, GATE_SPEC

from turnproof.checkers.coverage import coverage
from turnproof.checkers.golden import MANIFEST, check_golden, read_manifest, update_golden
from turnproof.checkers.graph import explore
from turnproof.checkers.verdict import Outcome
from turnproof.machines.kernel import TableError
from turnproof.specs.language import Variant

FULL = attrs.evolve(
    GATE_SPEC,
    variants=(Variant(machine=GATE.variant("gate_holey", drop=("hold",)), about="", violates={"the gate is held": 0}),),
    histories=(toys.UNLOCKS,),
)


@pytest.fixture
def manifest(tmp_path: Path) -> Path:
    return tmp_path / "manifest.toml"


def test_the_numbers_are_written_and_read_back(manifest: Path) -> None:
    graph = explore(FULL)
    assert update_golden(FULL, graph, manifest)
    assert not update_golden(FULL, graph, manifest), "a second time nothing changes"
    numbers: Any = tomllib.loads(manifest.read_text(encoding="utf-8"))["gate"]
    assert numbers == read_manifest(manifest)["gate"]
    assert (numbers["states"], numbers["nodes"]) == (4, graph.explored)
    assert numbers["taken"] + numbers["ignored"] + numbers["refused"] == graph.steps
    assert numbers["depth"] == graph.depth.max()
    assert numbers["reached"] == {"somebody passes": 2, "the gate is held": 2}
    assert numbers["variants"] == {"gate_holey": {"the gate is held": 0}}
    (verdict,) = check_golden(FULL, graph, manifest)
    assert (verdict.outcome, verdict.detail) == (Outcome.HOLDS, "")


def test_a_changed_number_is_named(manifest: Path) -> None:
    update_golden(GATE_SPEC, explore(GATE_SPEC), manifest)
    stuck = explore(GATE_SPEC, machine=GATE.variant("gate", drop=("passed/held",)))
    (verdict,) = check_golden(GATE_SPEC, stuck, manifest)
    assert verdict.outcome is Outcome.VIOLATED
    assert verdict.detail == "taken: 9 -> 8; refused: 5 -> 6; `make golden` writes it again, for review"
    unheld = explore(GATE_SPEC, machine=GATE.variant("gate", drop=("hold",)))
    assert "states: 4 -> 3" in check_golden(GATE_SPEC, unheld, manifest)[0].detail
    assert "reached: the gate is held: 2 -> nothing" in check_golden(GATE_SPEC, unheld, manifest)[0].detail


def test_other_machines_stay_as_they_are(manifest: Path) -> None:
    update_golden(GATE_SPEC, explore(GATE_SPEC), manifest)
    before = read_manifest(manifest)["gate"]
    update_golden(toys.LOCK_SPEC, explore(toys.LOCK_SPEC), manifest)
    assert read_manifest(manifest) == {"gate": before, "lock": read_manifest(manifest)["lock"]}


def test_a_machine_that_is_not_in_the_manifest_is_a_failure(manifest: Path) -> None:
    (verdict,) = check_golden(GATE_SPEC, explore(GATE_SPEC), manifest)
    assert verdict.outcome is Outcome.VIOLATED
    assert verdict.detail.startswith("manifest.toml has no table [gate]")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[gate", "not TOML"),
        ("[gate]\nstates = 'four'", "gate: states is 'four', expected a number"),
        ("gate = true", "gate is True, expected a number"),
    ],
)
def test_a_broken_manifest_is_one_clear_line(manifest: Path, text: str, message: str) -> None:
    manifest.write_text(text, encoding="utf-8")
    with pytest.raises(TableError, match=message) as caught:
        check_golden(GATE_SPEC, explore(GATE_SPEC), manifest)
    assert "\n" not in str(caught.value)


def test_the_manifest_lies_beside_the_specifications() -> None:
    assert MANIFEST.parent.name == "specs"


# ── coverage ──


def test_the_matrix_counts_every_pair() -> None:
    covered = coverage(explore(GATE_SPEC))
    cells = covered.cells
    assert cells["CoinInserted"]["shut"] == attrs.evolve(cells["Passed"]["open"], taken=1, refused=1)
    assert cells["CoinInserted"]["shut"].words == "taken, refused"
    assert cells["ClosingExpired"]["held"].words == "ignored"
    assert sum(cell.total for row in cells.values() for cell in row.values()) == 28
    assert covered.depths == (1, 2, 1)


def test_what_never_happens_and_what_no_row_answers_is_told() -> None:
    unheld = coverage(explore(GATE_SPEC, machine=GATE.variant("gate", drop=("hold", "broke/again"))))
    assert unheld.cells["Passed"]["held"].words == "never"
    holey = coverage(explore(GATE_SPEC, machine=GATE.variant("gate", drop=("hold/otherwise",))))
    assert holey.cells["HoldRequested"]["shut"].words == "missing"


def test_coverage_as_json_and_as_text() -> None:
    covered = coverage(explore(GATE_SPEC))
    read: Any = json.loads(covered.json())
    assert read["matrix"]["Passed"]["shut"] == {"answers": "refused", "taken": 0, "ignored": 0, "refused": 1, "missing": 0}
    enough = next(row for row in read["rows"] if row["row"] == "coin/enough")
    assert (enough["guard_true"], enough["guard_false"]) == (1, 1)
    text = covered.text().splitlines()
    assert text[0] == "gate: 4 states, at most 2 events from the start"
    assert any(line.split() == ["coin/enough", "1", "1", "taken"] for line in text)
