"""The symbolic engine as a whole: what it says of machines that hold, that break, that say nothing, and when it cannot tell."""

from __future__ import annotations

import functools
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import attrs
import pytest
from smt_toys import NOTE, TALLY, found
from toys import GATE, GATE_SPEC, LOCK, QUEUE, Freed, L, Served, acquired, freed, spec_of

from turnproof.checkers.graph import explore
from turnproof.checkers.smt import certificate, check, cvc5api, engine, prove, readings, report
from turnproof.checkers.smt.explored import Found
from turnproof.checkers.smt.grid import Grid
from turnproof.checkers.smt.pieces import Conjunct
from turnproof.checkers.smt.translate import Symbolic
from turnproof.checkers.verdict import Engine, Outcome, Verdict, exit_status
from turnproof.machines.kernel import NOBODY, TableError, implies
from turnproof.specs.language import Always, Spec, Step, never, on, taken

gate, queue, lock, tally, note = GATE.now, QUEUE.now, LOCK.now, TALLY.now, NOTE.now


def by_check(verdicts: list[Verdict]) -> Mapping[str, Verdict]:
    assert len({v.check for v in verdicts}) == len(verdicts)
    return {v.check: v for v in verdicts}


# ── a machine on which everything holds ──


@functools.cache
def gate_run(folder: Path) -> tuple[Mapping[str, Verdict], Path]:
    path = folder / "gate.json"
    return by_check(check(GATE_SPEC, explore(GATE_SPEC), certificate=path)), path


@pytest.fixture(scope="module")
def gate_verdicts(tmp_path_factory: pytest.TempPathFactory) -> tuple[Mapping[str, Verdict], Path]:
    return gate_run(tmp_path_factory.mktemp("gate"))


def test_everything_holds_and_says_how(gate_verdicts: tuple[Mapping[str, Verdict], Path]) -> None:
    verdicts, path = gate_verdicts
    assert {v.outcome for v in verdicts.values()} == {Outcome.HOLDS}
    assert not [v.check for v in verdicts.values() if v.detail]
    for prop in GATE_SPEC.properties:
        if isinstance(prop, Always | Step):
            verdict = verdicts[prop.name]
            assert verdict.how.startswith("proved (any length of run, any count; an invariant of ")
            assert "certificate re-checked by z3 " in verdict.how
            assert " and cvc5 " in verdict.how
            assert (verdict.engine, verdict.requirements) == (Engine.SYMBOLIC, prop.requirements)
    assert certificate.read(path).table.machine == "gate"


def test_the_verdicts_beside_the_properties(gate_verdicts: tuple[Mapping[str, Verdict], Path]) -> None:
    verdicts, path = gate_verdicts
    others = [name for name in verdicts if name not in {p.name for p in GATE_SPEC.properties}]
    assert others == [
        readings.AGREE,
        readings.HIDDEN,
        report.DOMAINS,
        report.ANSWERED,
        report.INDUCTIVE,
        report.MEANINGFUL,
        report.CONSISTENT,
        "the certificate is re-checked by z3",
        "the certificate is re-checked by cvc5",
        "z3 and cvc5 give the same answer to every query",
        "the certificate proves what it claims",
    ]
    assert "exhaustive (28 pairs of state and event" in verdicts[readings.AGREE].how
    assert "computed by z3 itself: 28 of a sample of 28, seed 0" in verdicts[readings.AGREE].how
    log = path.with_suffix(".log").read_text().splitlines()
    assert 'row passed preserves "a shut gate has a timer" ... ok (z3 ' in "\n".join(log)
    assert len(log) == sum(len(g["queries"]) for g in json.loads(path.read_text())["groups"])


# ── machines on which something does not ──


def properties(*wanted: Always | Step, machine: Any = QUEUE, **more: Any) -> Mapping[str, Verdict]:
    spec = spec_of(machine, *wanted, **more)
    return by_check(check(spec, explore(spec)))


def test_violated_open_and_empty_properties_have_words_of_their_own() -> None:
    broken = Always("never two wait", queue.waiting <= 1, requirements=())
    wrong = Step("nobody is ever refused", implies(on(Served), taken()), requirements=())
    beyond = Always("never more than three wait", queue.waiting <= 3, requirements=())
    empty = Always("nobody waits less than nobody", queue.waiting >= 0, requirements=())
    tautology = Step("served or not", implies(on(Served), on(Served)), requirements=())
    true = Always("an idle queue is empty", implies(queue.phase == queue_idle(), queue.waiting == 0), requirements=())
    verdicts = properties(broken, wrong, beyond, empty, tautology, true)
    assert verdicts[broken.name].outcome is Outcome.VIOLATED
    assert verdicts[broken.name].detail == "reached in 2 steps: (phase = busy, waiting = 2) (2 such)"
    assert verdicts[wrong.name].outcome is Outcome.VIOLATED
    assert verdicts[wrong.name].detail == "Served in (the initial state): row served/nobody, refused, emits nothing (1 such)"
    assert verdicts[beyond.name].outcome is Outcome.UNDETERMINED
    assert "not inductive: row joined on Joined() from (" in verdicts[beyond.name].detail
    assert "waiting = 3) breaks it, changing waiting: 3 -> 4; " in verdicts[beyond.name].detail
    for name in (empty.name, tautology.name):
        assert verdicts[name].outcome is Outcome.VIOLATED
        assert "follows from the types of the fields alone" in verdicts[name].detail
    assert verdicts[report.MEANINGFUL].detail == "implied by the types alone: nobody waits less than nobody; served or not"
    assert verdicts[true.name].outcome is Outcome.HOLDS
    assert verdicts[report.CONSISTENT].outcome is Outcome.HOLDS
    assert verdicts["the certificate proves what it claims"].how.endswith(
        "not among them: never two wait; nobody is ever refused; never more than three wait; and 2 more"
    )


def queue_idle() -> Any:
    return QUEUE.phases[0]


def test_a_hole_of_the_table_is_a_step_of_its_own() -> None:
    holed = LOCK.variant("holed", drop=("freed/other",))
    owned = Always("a taken lock has an owner", (lock.phase == LOCK.phases[1]) == (lock.owner != NOBODY), requirements=())
    never_refused = Step("whoever frees is heard", implies(on(Freed), taken()), requirements=())
    verdicts = properties(owned, never_refused, machine=holed)
    assert verdicts[owned.name].outcome is Outcome.HOLDS
    assert verdicts[report.ANSWERED].outcome is Outcome.UNDETERMINED
    assert verdicts[report.ANSWERED].detail.startswith("the invariant leaves states in which no row answers Freed: ")
    assert verdicts[never_refused.name].outcome is Outcome.VIOLATED


def test_an_assumption_that_excludes_everything() -> None:
    wrong = Always("never two wait", queue.waiting <= 1, requirements=())
    verdicts = properties(wrong, assume=queue.waiting < 0)
    assert verdicts[report.MEANINGFUL].detail == "everything would hold: the environment assumption can never hold"
    assert {v.outcome for v in verdicts.values()} & {Outcome.VIOLATED}
    assert verdicts[wrong.name].outcome is not Outcome.HOLDS


def test_an_assumption_is_part_of_the_proof() -> None:
    few = Always("never two wait", queue.waiting <= 1, requirements=())
    verdicts = properties(few, assume=implies(on(joined()), queue.waiting == 0))
    assert verdicts[few.name].outcome is Outcome.HOLDS


def joined() -> type:
    return QUEUE.events[0]


def test_what_no_solver_can_read_is_open() -> None:
    opaque = Always("written at the start", note.written_ms == 0, requirements=())
    loud = never("it is loud", note.loud, requirements=())
    verdicts = properties(opaque, loud, machine=NOTE)
    assert verdicts[opaque.name].outcome is Outcome.UNDETERMINED
    assert verdicts[opaque.name].detail.startswith("no solver can read it: ")
    assert "Note.written_ms" in verdicts[opaque.name].detail
    assert verdicts[loud.name].outcome is Outcome.HOLDS


def test_without_cvc5_nothing_is_called_re_checked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cvc5api, "version", lambda: None)
    idle = Always("an idle queue is empty", implies(queue.phase == queue_idle(), queue.waiting == 0), requirements=())
    verdicts = properties(idle)
    assert verdicts[idle.name].how.startswith("proved by z3 only, not re-checked (")
    assert "cvc5 is not installed" in verdicts[idle.name].how
    assert verdicts["the certificate is re-checked by cvc5"].outcome is Outcome.UNDETERMINED
    assert exit_status(verdicts.values()) == 3


def test_lemmas_have_verdicts() -> None:
    ordered = Always("no more end than begin", tally.ended <= tally.begun, requirements=())
    balance = ("begun is ended plus open", tally.begun == tally.ended + tally.open)
    wrong = ("nothing is open", tally.open == 0)
    verdicts = properties(ordered, machine=TALLY, lemmas=(balance, wrong))
    assert verdicts[ordered.name].outcome is Outcome.HOLDS
    assert verdicts["lemma: begun is ended plus open"].outcome is Outcome.HOLDS
    assert verdicts["lemma: nothing is open"].outcome is Outcome.UNDETERMINED
    assert "row begun" in verdicts["lemma: nothing is open"].detail
    assert "1 lemmas" in verdicts[report.INDUCTIVE].how
    assert "implied by the others: no more end than begin" in verdicts[report.INDUCTIVE].how


def test_a_lemma_must_be_readable_and_have_a_name_of_its_own() -> None:
    ordered = Always("no more end than begin", tally.ended <= tally.begun, requirements=())
    with pytest.raises(TableError, match="called like a property"):
        properties(ordered, machine=TALLY, lemmas=((ordered.name, tally.open == 0),))
    with pytest.raises(TableError, match="only Step properties know events"):
        properties(ordered, machine=TALLY, lemmas=(("x", taken()),))


def test_a_search_that_takes_too_long_leaves_everything_open(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine, "SEARCH_SECONDS", 0.01)
    few = Always("never two wait", queue.waiting <= 1, requirements=())
    true = Always("an idle queue is empty", implies(queue.phase == queue_idle(), queue.waiting == 0), requirements=())
    verdicts = properties(few, true)
    assert verdicts[true.name].outcome is Outcome.UNDETERMINED
    assert verdicts[true.name].detail == "time: ended after 0.01 s"
    assert verdicts[few.name].outcome is Outcome.VIOLATED
    assert not any(v.outcome is Outcome.HOLDS and v.engine is Engine.SYMBOLIC for v in verdicts.values())


# ── hidden rows ──


def hidden(machine: Any) -> Verdict:
    spec = spec_of(machine, never("x", lock.phase != lock.phase, requirements=()))
    symbolic = Symbolic(machine)
    wanted, _ = prove.statements(symbolic, spec)
    types = [Conjunct(w.name, "type", tuple(w.reads), w.smt) for w in wanted if w.origin == "type"]
    return readings.shadows(spec, prove.table(symbolic, spec), types)


def test_a_row_hidden_by_another_names_it() -> None:
    again = L(acquired, when=(acquired.by == lock.owner) & (lock.owner != NOBODY), refuse="again", name="acquired/hidden")
    rows = list(LOCK.rows)
    rows.insert(3, again)
    verdict = hidden(attrs.evolve(LOCK, rows=tuple(rows)))
    assert verdict.outcome is Outcome.VIOLATED
    assert verdict.detail == "row acquired/hidden is hidden by acquired/again: move it above, or take it out"


def test_a_row_hidden_by_several_names_them_all() -> None:
    rows = (*LOCK.rows[:3], L(acquired, when=acquired.by == lock.owner, refuse="x", at=LOCK.phases[0], name="free"), *LOCK.rows[3:])
    verdict = hidden(attrs.evolve(LOCK, rows=rows))
    assert verdict.detail.startswith("row free is hidden by acquired")


def test_a_guard_that_is_never_true() -> None:
    odd = L(freed, when=(freed.by == NOBODY) & (freed.by == lock.owner) & (lock.owner != NOBODY), refuse="x", name="freed/odd")
    verdict = hidden(attrs.evolve(LOCK, rows=(*LOCK.rows[:4], odd, *LOCK.rows[4:])))
    assert verdict.detail == "the guard of row freed/odd is never true"


def test_no_row_of_a_good_table_is_hidden() -> None:
    assert hidden(LOCK).outcome is Outcome.HOLDS


# ── the two engines must not contradict each other ──


def proof_of(spec: Spec, **changes: Any) -> list[Verdict]:
    """The verdicts of a proof in which something was changed after the fact."""
    graph = explore(spec)
    symbolic = Symbolic(graph.machine, spec.histories)
    wanted, unreadable = prove.statements(symbolic, spec)
    values: dict[str, Any] = {
        "spec": spec, "grid": Grid(symbolic, graph), "wanted": wanted, "unreadable": unreadable, "result": found(spec), "why": "",
        "vacuous": frozenset(), "state_only": frozenset(), "contradiction": "", "violated": {}, "broken": {}, "certificate": None,
        "runs": [], "rechecked": [],
    }  # fmt: skip
    return report.verdicts(engine.Proof(**{**values, **changes}))


FEW = spec_of(QUEUE, Always("never two wait", queue.waiting <= 1, requirements=()))


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"violated": {"never two wait": Found(3, -1, 1, False, "here")}}, "its z3 term is false where its Python reading is true: here"),
        ({"broken": {"a conjunct": Found(3, -1, 1, True, "here")}}, "the invariant 'a conjunct' is proved, yet violated: here"),
        ({}, "'never two wait' is broken by a step from a reachable state, which the graph does not know"),
    ],
)
def test_a_contradiction_of_the_engines_is_a_violation(changes: dict[str, Any], said: str) -> None:
    verdict = by_check(proof_of(FEW, **changes))[report.CONSISTENT]
    assert verdict.outcome is Outcome.VIOLATED
    assert said in verdict.detail


def test_a_row_proved_dead_that_fires_is_a_contradiction() -> None:
    result = found(GATE_SPEC)
    result["fires"]["passed"] = False
    verdict = by_check(proof_of(GATE_SPEC, result=result))[report.CONSISTENT]
    assert verdict.detail == "row passed is proved never to be chosen, yet answers 1 explored steps"
