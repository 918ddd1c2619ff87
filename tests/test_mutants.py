"""The mutation engine: what each operator makes, that the quick way and the slow way agree on every fate, and the command."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import attrs
import pytest
import toys
from click.testing import CliRunner

from turnproof.checkers.explicit import check
from turnproof.checkers.golden import measure
from turnproof.checkers.graph import Graph, explore
from turnproof.checkers.mutants import Fate, Mutant, Operator, run
from turnproof.checkers.mutants.operators import controls, fairness_mutants, mutants
from turnproof.checkers.mutants.original import Original
from turnproof.checkers.mutants.report import EXPECTED
from turnproof.checkers.mutants.trial import judge_mutant
from turnproof.checkers.verdict import Outcome
from turnproof.cli.commands import root
from turnproof.machines.kernel import HOLE, Ignored, Refused, TableError, Taken, implies, named, not_
from turnproof.machines.reply_slot import BeginRequested, now
from turnproof.specs.language import Carries, Fair, LeadsTo, Spec, Step, on, taken
from turnproof.specs.reply_operation import SPEC as REPLY_OPERATION
from turnproof.specs.reply_slot import SPEC as REPLY_SLOT
from turnproof.specs.reply_waiter import SPEC as REPLY_WAITER
from turnproof.specs.session_id import SPEC as SESSION_ID

ALL_SPECS = (REPLY_OPERATION, REPLY_SLOT, SESSION_ID, REPLY_WAITER)


def told(answer: object) -> object:
    """An answer without its row and its words."""
    if isinstance(answer, Taken):
        return answer.state, answer.effects
    assert isinstance(answer, (Ignored, Refused))
    return "no row" if answer.row is HOLE else type(answer)


def the_slow_way(spec: Spec, original: Graph, mutant: Mutant) -> Fate:
    """The fate by building the mutant, exploring it whole and judging it whole; opaque values left aside."""
    try:
        machine = mutant.built(spec.machine)
    except (TableError, TypeError):
        return Fate.NOT_BUILT
    try:
        graph = explore(spec, machine=machine)
    except TableError:
        return Fate.KILLED
    if set(graph.states) == set(original.states) and all(
        told(machine.step(state, event)) == told(spec.machine.step(state, event))
        for state in original.states[: original.explored]
        for event, row in zip(original.events, original.row[:, original.states.index(state)], strict=True)
        if row >= 0
    ):
        return Fate.EQUIVALENT
    verdicts = check(spec, graph)
    if any(verdict.outcome is Outcome.VIOLATED for verdict in verdicts):
        return Fate.KILLED
    if measure(spec, graph) != measure(spec, original):
        return Fate.REGRESSION
    return Fate.UNDETERMINED if any(v.outcome is Outcome.UNDETERMINED for v in verdicts) else Fate.SURVIVED


def compared(spec: Spec, every: int) -> Iterator[tuple[Mutant, Fate, Fate]]:
    graph = explore(spec)
    original = Original(graph)
    for mutant in (*controls(spec.machine), *mutants(spec.machine)[::every]):
        result = judge_mutant(original, mutant)
        quick = Fate.EQUIVALENT if "only opaque values differ" in result.by else result.fate
        yield mutant, quick, the_slow_way(spec, graph, mutant)


@pytest.mark.parametrize(("spec", "every"), [(SESSION_ID, 9), (REPLY_WAITER, 9), (REPLY_SLOT, 37), (toys.GATE_SPEC, 4)])
def test_the_quick_way_and_the_slow_way_agree_on_every_fate(spec: Spec, every: int) -> None:
    wrong = [f"{m.row}: {m.about}: {quick} but {slow}" for m, quick, slow in compared(spec, every) if quick is not slow]
    assert not wrong


def test_with_an_assumption_and_a_counter_too() -> None:
    assumed = attrs.evolve(REPLY_SLOT, assume=not_(on(BeginRequested) & (now.waiting > 0)), counter=1)
    wrong = [f"{m.row}: {m.about}: {quick} but {slow}" for m, quick, slow in compared(assumed, 41) if quick is not slow]
    assert not wrong


def of(spec: Spec, row: str, operator: Operator) -> list[str]:
    return [mutant.about for mutant in mutants(spec.machine, row) if mutant.operator is operator]


def test_every_operator_is_used_by_the_machines_and_no_mutant_is_the_row_itself() -> None:
    made = [(spec, mutant) for spec in ALL_SPECS for mutant in (*mutants(spec.machine), *fairness_mutants(spec))]
    assert {mutant.operator for _, mutant in made} == set(Operator) - {Operator.CONTROL}
    for spec, mutant in made:
        for name, new in mutant.changes.items():
            assert not any(row is spec.machine.row(name) for row in new), mutant


def test_the_mutants_of_one_row() -> None:
    row = "ReleaseReported/offer"
    assert of(REPLY_SLOT, row, Operator.DROP_ROW) == ["drop it"]
    assert of(REPLY_SLOT, row, Operator.REORDER) == ["behind ReleaseReported/free"]
    assert of(REPLY_SLOT, row, Operator.ANSWER) == ["ignored in place of taken", "refused in place of taken"]
    assert of(REPLY_SLOT, row, Operator.RETARGET) == [
        "stay, not to offered",
        "to free in place of offered",
        "to held in place of offered",
    ]
    assert "StartQueuedTurn() twice" in of(REPLY_SLOT, row, Operator.DOUBLE_EFFECT)
    assert "leave queued as it is" in of(REPLY_SLOT, row, Operator.DROP_UPDATE)
    assert any("drop `lane free`" in about for about in of(REPLY_SLOT, row, Operator.IDENTITY))
    assert any(about.startswith("update: queued: `queued + 1`") for about in of(REPLY_SLOT, row, Operator.BOUND))
    assert of(toys.GATE_SPEC, "hold", Operator.TIMER)[-1] == "forget timer closing: closing stay too"


def test_the_controls_end_as_they_must() -> None:
    for spec in (*ALL_SPECS[1:], toys.GATE_SPEC):
        original = Original(explore(spec))
        assert tuple(judge_mutant(original, control).fate for control in controls(spec.machine)) == EXPECTED


def test_a_mutant_that_leaves_a_domain_is_killed() -> None:
    original = Original(explore(toys.GATE_SPEC))
    row = toys.GATE.row("coin/enough")
    assert row.data is not None
    wild = attrs.evolve(row, data=attrs.evolve(row.data, fare=toys.gate.fare - 1))
    result = judge_mutant(original, Mutant(row.name, Operator.BOUND, "minus", {row.name: (wild,)}))
    assert result.fate is Fate.KILLED
    assert "stays in its domain" in result.by


def test_fairness_that_is_needed_and_fairness_that_is_not() -> None:
    original = Original(explore(toys.GATE_SPEC))
    assert {judge_mutant(original, mutant).fate for mutant in fairness_mutants(toys.GATE_SPEC)} == {Fate.KILLED}
    prop = toys.GATE_SPEC.properties[-1]
    assert isinstance(prop, LeadsTo)
    passes = Fair("somebody passes", toys.gate.phase == toys.OPEN, on(toys.Passed))
    padded = toys.spec_of(toys.GATE, attrs.evolve(prop, fairness=(*prop.fairness, passes)))
    fates = {mutant.about: judge_mutant(Original(explore(padded)), mutant).fate for mutant in fairness_mutants(padded)}
    assert fates["without 'somebody passes'"] is Fate.SURVIVED


def test_a_value_that_no_guard_reads_is_missed_all_the_same() -> None:
    (lost,) = [r for r in run(REPLY_WAITER, row="WaitStarted/waits", workers=1).results if "not_before_ms" in r.about]
    assert (lost.fate, lost.by) == (Fate.KILLED, "a caller waits until its own deadline")
    unsaid = attrs.evolve(REPLY_WAITER, properties=tuple(p for p in REPLY_WAITER.properties if not isinstance(p, Carries)))
    (lost,) = [r for r in run(unsaid, row="WaitStarted/waits", workers=1).results if "not_before_ms" in r.about]
    assert lost.fate is Fate.REGRESSION
    assert "only opaque values differ" in lost.by


def test_a_property_less_is_a_survivor_more() -> None:
    once = "an idle key answers once"
    fewer = attrs.evolve(REPLY_SLOT, properties=tuple(p for p in REPLY_SLOT.properties if p.name != once))
    assert run(REPLY_SLOT, row="WaitRequested/idle", workers=1).status == 0
    report = run(fewer, row="WaitRequested/idle", workers=1)
    assert [r.about for r in report.results if r.fate is Fate.SURVIVED] == ["AnswerIdle() twice"]
    assert report.status == 1
    assert "say that this step emits this effect once" in report.text()


def test_two_processes_find_what_one_finds() -> None:
    one, two = (run(SESSION_ID, workers=workers) for workers in (1, 2))
    assert [(r.row, r.about, r.fate) for r in one.results] == [(r.row, r.about, r.fate) for r in two.results]
    assert one.status == two.status == 0
    assert one.semantic_rate == 1.0


def test_no_mutant_is_tried_on_a_machine_that_fails() -> None:
    wrong = toys.spec_of(
        toys.GATE, Step("no coin is taken", implies(on(toys.CoinInserted), named("not taken", not_(taken()))), requirements="X")
    )
    report = run(wrong, workers=1)
    assert not report.results
    assert report.status == 1
    assert "no coin is taken" in report.text()


def test_a_rate_below_the_bar_is_a_failure_and_no_mutant_is_no_success() -> None:
    report = run(toys.LOCK_SPEC, workers=1)
    assert report.semantic_rate < 0.95
    assert report.status == 1
    assert any("expected at least 95%" in complaint for complaint in report.complaints)
    assert attrs.evolve(report, results=()).complaints == ("no mutant was made, so nothing is shown",)


def test_the_command(tmp_path: Path) -> None:
    runner, out = CliRunner(), tmp_path / "mutants.json"
    result = runner.invoke(root, ["mutants", "session_id", "--json", str(out), "--workers", "1"])
    assert result.exit_code == 0, result.output
    assert "all rows" in result.output
    assert "killed by the properties alone: 100.0%" in result.output
    told_in_json = json.loads(out.read_text())
    assert told_in_json["format"] == "turnproof.mutants"
    assert len(told_in_json["mutants"]) == sum(told_in_json["counts"].values())
    assert told_in_json["counts"]["survived"] == 0


def test_misuse_of_the_command() -> None:
    runner = CliRunner()
    for arguments, said in (
        (["sesion_id"], "session_id"),
        (["session_id", "--row", "IdBound/nobdy"], "IdBound/nobody"),
        (["reply_registry"], "is a system"),
    ):
        result = runner.invoke(root, ["mutants", *arguments])
        assert result.exit_code == 2
        assert said in result.output
        assert len(result.output.splitlines()) == 1
