"""Agreement of the readings: each mistake that one of them could make is planted, and must be reported with its pair and both rows."""

from __future__ import annotations

import builtins
from collections.abc import Callable
from typing import Any

import attrs
import pytest
from smt_toys import NOTE, TALLY, Phase, setting
from toys import GATE, GATE_SPEC, LOCK, LOCK_SPEC, OPEN, UNLOCKED_ONCE, UNLOCKS, Gate, spec_of

from turnproof.checkers.progress import SILENT
from turnproof.checkers.smt import agreement, probe, readings, terms, unread, z3api
from turnproof.checkers.smt.agreement import Disagreement, Play
from turnproof.checkers.smt.translate import Symbolic
from turnproof.checkers.verdict import Outcome
from turnproof.machines.kernel import Ignored, Refused, Taken
from turnproof.specs.language import Always, Spec

NOTE_SPEC = spec_of(NOTE, Always("something", NOTE.now.loud == False, requirements=()))  # noqa: E712 - a formula
TALLY_SPEC = spec_of(TALLY, Always("something", TALLY.now.phase == Phase.ON, requirements=()))
HISTORY_SPEC = spec_of(GATE, UNLOCKED_ONCE, histories=(UNLOCKS,))
ALL = {"gate": GATE_SPEC, "lock": LOCK_SPEC, "note": NOTE_SPEC, "tally": TALLY_SPEC, "history": HISTORY_SPEC}


@pytest.mark.parametrize("spec", ALL.values(), ids=ALL)
def test_the_readings_agree(spec: Spec) -> None:
    graph, _, grid, _ = setting(spec)
    runs, missing = readings.agreement_runs(grid, SILENT)
    assert not missing
    assert [run.differences for run in runs] == [()] * len(runs)
    assert {run.pairs for run in runs} == {graph.steps}
    assert {"generated source", "interpretation", "transitions view", "z3 terms"} <= {run.reading for run in runs}
    assert ("interned table, by value" in {run.reading for run in runs}) == bool(graph.machine.interned_events)


# ── the z3 terms ──


def z3_differences(spec: Spec, change: Callable[[Symbolic], None] = lambda symbolic: None, **more: Any) -> tuple[Disagreement, ...]:
    _, symbolic, grid, _ = setting(spec, **more)
    change(symbolic)
    return agreement.terms(grid, SILENT).differences


def with_row(symbolic: Symbolic, name: str, **changes: Any) -> None:
    """One row changed, also where later rows exclude it."""
    old = next(r for r in symbolic.rows if r.name == name)
    new = attrs.evolve(old, **changes)
    rows = (new if r is old else r for r in symbolic.rows)
    symbolic.rows = tuple(attrs.evolve(r, earlier=tuple(new if e is old else e for e in r.earlier)) for r in rows)


@pytest.mark.parametrize(("op", "other"), [("eq", "ne"), ("not", "identity"), ("add", "sub")])
def test_a_mutated_operator(op: str, other: str, monkeypatch: pytest.MonkeyPatch) -> None:
    table = {**terms.Z3, "identity": lambda operand: operand}
    monkeypatch.setattr(terms, "Z3", {**terms.Z3, op: table[other]})
    spec = GATE_SPEC if op == "add" else LOCK_SPEC
    found = z3_differences(spec)
    if op == "not":
        assert not found  # the lock negates nothing: only the test of the table itself sees this slip
    else:
        assert found
        assert {d.reading for d in found} == {"z3 terms"}


def test_two_rows_swapped() -> None:
    rows = list(LOCK.rows)
    first, second = (next(n for n, r in enumerate(rows) if r.name == name) for name in ("acquired/again", "acquired/taken"))
    rows[first], rows[second] = rows[second], rows[first]
    found = z3_differences(LOCK_SPEC, machine=attrs.evolve(LOCK, rows=tuple(rows)))
    assert found
    assert (found[0].what, found[0].expected, found[0].found) == ("row", "row acquired/again", "row acquired/taken")


def test_a_dropped_conjunct() -> None:
    def drop(symbolic: Symbolic) -> None:
        row = next(r for r in symbolic.rows if r.name == "freed")
        with_row(symbolic, "freed", guard=z3api.arguments(row.guard)[1])

    found = z3_differences(LOCK_SPEC, drop)
    assert found
    assert (found[0].expected, found[0].found) == ("row freed/other", "row freed")


def test_a_guard_ignored_where_the_successor_is_the_same() -> None:
    """Both rows refuse and change nothing; only the row itself tells them apart."""
    found = z3_differences(LOCK_SPEC, lambda symbolic: with_row(symbolic, "acquired/nobody", guard=symbolic.context.boolean(False)))
    assert {d.what for d in found} == {"row"}
    taken = [d for d in found if d.found == "row acquired/taken"]
    assert taken
    assert {d.expected for d in taken} == {"row acquired/nobody"}


def test_two_rows_chosen_at_once() -> None:
    def both(symbolic: Symbolic) -> None:
        symbolic.rows = tuple(attrs.evolve(r, earlier=()) for r in symbolic.rows)

    assert any(" row " in d.found for d in z3_differences(LOCK_SPEC, both))


@pytest.mark.parametrize("what", ["successor", "effects", "condition"])
def test_a_wrong_successor_or_effect(what: str) -> None:
    def change(symbolic: Symbolic) -> None:
        row = next(r for r in symbolic.rows if r.name == "broke")
        if what == "successor":
            with_row(symbolic, "broke", successor={k: v for k, v in row.successor.items() if k != "closing"})
        elif what == "effects":
            with_row(symbolic, "broke", effects=row.effects[::-1])
        else:
            with_row(symbolic, "broke", effects=(attrs.evolve(row.effects[0], condition=None), *row.effects[1:]))

    found = z3_differences(GATE_SPEC, change)
    assert found
    assert {d.what for d in found} == {"successor" if what == "successor" else "effects"}


def test_a_wrong_history() -> None:
    def change(symbolic: Symbolic) -> None:
        symbolic.history = {name: next(s.now.expr for s in symbolic.slots if s.name == name) for name in symbolic.history}

    found = z3_differences(HISTORY_SPEC, change)
    assert found
    assert found[0].expected == "Count_unlocks.unlocks = 1"
    assert found[0].found == "Count_unlocks.unlocks = 0"


@pytest.mark.parametrize("signed", [False, True])
def test_a_signed_comparison_in_a_guard(signed: bool) -> None:
    """ "Below OPEN" is SHUT alone; with a sign, the upper half of the phases is below it too."""

    def change(symbolic: Symbolic) -> None:
        import z3

        phase: Any = next(s.now.expr for s in symbolic.slots if s.name == "phase")
        opened: Any = symbolic.before.constant(OPEN).expr
        with_row(symbolic, "coin/bad", guard=phase < opened if signed else z3.ULT(phase, opened))

    assert {d.what for d in z3_differences(GATE_SPEC, change)} == ({"row"} if signed else set())


# ── generated source, interpretation, the view ──


def test_a_wrong_generated_source() -> None:
    _, _, grid, _ = setting(LOCK_SPEC)
    wrong = LOCK.variant("lock", drop=("acquired/nobody",))
    run = agreement.plain(grid, "generated source", lambda event: wrong.generated[type(event)], SILENT)
    assert run.differences
    assert run.differences[0].expected.startswith("row acquired/nobody to (the initial state)")
    assert run.differences[0].found.startswith("row acquired to (phase = taken), emits Granted(")


def slow(spec: Spec, play: Play) -> tuple[Disagreement, ...]:
    _, _, grid, _ = setting(spec)
    return unread.projected(grid, {"a reading": play}, SILENT)[0].differences


def test_a_slow_reading_that_ignores_a_guard() -> None:
    wrong = LOCK.variant("lock", drop=("acquired/nobody",))
    found = slow(LOCK_SPEC, wrong.interpret)
    assert {d.what for d in found} == {"row"}
    assert {d.expected for d in found} == {"row acquired/nobody"}


def test_a_slow_reading_that_looks_at_what_no_row_reads() -> None:
    def play(state: Gate, event: object) -> Any:
        return GATE.interpret(state, event) if state.fare < 2 else Refused("no", GATE.rows[1])

    found = slow(GATE_SPEC, play)
    assert found
    assert found[0].found == "it looks at fare, which no row of the event reads"


def test_a_slow_reading_that_moves_a_field_to_another() -> None:
    def play(state: Any, event: object) -> Any:
        answer = TALLY.interpret(state, event)
        return attrs.evolve(answer, state=attrs.evolve(answer.state, begun=state.ended)) if isinstance(answer, Taken) else answer

    found = slow(TALLY_SPEC, play)
    assert any(d.found == "it moves ended to another field" for d in found)


def test_a_slow_reading_with_another_successor_or_effect() -> None:
    def successor(state: Any, event: object) -> Any:
        answer = GATE.interpret(state, event)
        return attrs.evolve(answer, state=attrs.evolve(answer.state, closing=True)) if isinstance(answer, Taken) else answer

    def effects(state: Any, event: object) -> Any:
        answer = GATE.interpret(state, event)
        return attrs.evolve(answer, effects=answer.effects[:-1]) if isinstance(answer, Taken) else answer

    assert {d.what for d in slow(GATE_SPEC, successor)} == {"successor"}
    assert {d.what for d in slow(GATE_SPEC, effects)} == {"effects"}


def test_opaque_values_mixed_up() -> None:
    def play(state: Any, event: Any) -> Any:
        answer = NOTE.interpret(state, event)
        if isinstance(answer, Taken) and answer.row.name == "read":
            return attrs.evolve(answer, state=attrs.evolve(answer.state, read_ms=state.written_ms))
        return answer

    found = slow(NOTE_SPEC, play)
    assert found
    assert "row read: state: Note.read_ms holds 3000009, the generated source gives " in found[0].found


def test_an_answer_of_the_wrong_kind() -> None:
    def play(state: Any, event: Any) -> Any:
        answer = GATE.interpret(state, event)
        return Taken(state, (), answer.row) if isinstance(answer, Ignored) else answer

    _, _, grid, _ = setting(GATE_SPEC)
    assert agreement.plain(grid, "a reading", lambda event: play, SILENT).differences
    assert unread.projected(grid, {"a reading": play}, SILENT)[0].differences


# ── what z3 itself computes ──


@pytest.mark.parametrize("spec", [LOCK_SPEC, HISTORY_SPEC], ids=["lock", "history"])
def test_z3_itself_computes_a_sample(spec: Spec) -> None:
    graph, _, grid, table = setting(spec)
    sampled = probe.sample(grid, table, pairs=40, seed=3)
    assert (sampled.wrong, sampled.why) == ((), "")
    assert sum(bool(n) for n in graph.fires[:-1]) <= sampled.confirmed <= min(40, graph.steps)


def test_a_wrong_table_is_seen_by_z3_itself() -> None:
    _, _, grid, table = setting(LOCK_SPEC)
    rows = tuple(attrs_replace(r, next={**r.next, "owner": "0"}) if r.name == "acquired" else r for r in table.rows)
    sampled = probe.sample(grid, attrs_replace(table, rows=rows), pairs=40, seed=3)
    assert sampled.wrong
    assert all("row acquired: z3 says unsat and sat" in line for line in sampled.wrong)


def attrs_replace(piece: Any, **changes: Any) -> Any:
    import msgspec

    return msgspec.structs.replace(piece, **changes)


# ── the verdict ──


def test_the_verdict_names_pair_and_both_rows() -> None:
    _, symbolic, grid, table = setting(LOCK_SPEC)
    assert readings.agreement_verdict(grid, table, SILENT, seed=0).outcome is Outcome.HOLDS
    with_row(symbolic, "acquired/nobody", guard=symbolic.context.boolean(False))
    verdict = readings.agreement_verdict(grid, table, SILENT, seed=0)
    assert verdict.outcome is Outcome.VIOLATED
    assert "z3 terms: Acquired(by=none) in (the initial state): row: expected row acquired/nobody, found row acquired" in verdict.detail


def test_a_missing_view_is_undetermined(monkeypatch: pytest.MonkeyPatch) -> None:
    original = builtins.__import__

    def refuse(name: str, *args: Any, **more: Any) -> Any:
        if name == "turnproof.checkers.draw.view":
            raise ModuleNotFoundError("No module named 'transitions'")
        return original(name, *args, **more)

    monkeypatch.setattr(builtins, "__import__", refuse)
    _, _, grid, table = setting(TALLY_SPEC)
    verdict = readings.agreement_verdict(grid, table, SILENT, seed=0)
    assert verdict.outcome is Outcome.UNDETERMINED
    assert verdict.detail == "the transitions view is not compared: No module named 'transitions'"
