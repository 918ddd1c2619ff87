"""Tampering with a certificate by somebody who knows its format: what is missing is seen at once, what is false is refuted."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest
from smt_toys import LOCKED

from turnproof.checkers.smt import CertificateError, certificate, recheck
from turnproof.checkers.smt.pieces import Certificate, Claim
from turnproof.checkers.verdict import Outcome

replace = msgspec.structs.replace
Change = Callable[[Certificate], Certificate]


def signed(changed: Certificate) -> Certificate:
    """With a digest that fits, as somebody would write it who means to deceive."""
    return replace(changed, digest=certificate.digest(changed))


def in_group(name: str, change: Callable[[Any], Any]) -> Change:
    return lambda c: replace(c, groups=tuple(change(g) if g.name == name else g for g in c.groups))


def in_row(name: str, /, **changes: Any) -> Change:
    return lambda c: replace(c, table=replace(c.table, rows=tuple(replace(r, **changes) if r.name == name else r for r in c.table.rows)))


def in_conjunct(number: int, /, **changes: Any) -> Change:
    return lambda c: replace(c, invariant=tuple(replace(x, **changes) if n == number else x for n, x in enumerate(c.invariant)))


def in_table(**changes: Any) -> Change:
    return lambda c: replace(c, table=replace(c.table, **changes))


def in_state(**changes: Any) -> Change:
    return lambda c: replace(c, table=replace(c.table, state=(replace(c.table.state[0], **changes), *c.table.state[1:])))


def in_claims(change: Callable[[tuple[Claim, ...]], tuple[Claim, ...]]) -> Change:
    return lambda c: replace(c, claims=change(c.claims))


def nothing_fires(whole: Certificate) -> Certificate:
    return in_table(rows=tuple(replace(row, fires=False) for row in whole.table.rows))(whole)


OWNED = "it is taken exactly while it has an owner"
QUERIES: dict[str, tuple[Change, str]] = {
    "a query is deleted": (
        in_group("row freed", lambda g: replace(g, queries=g.queries[:-1])),
        "the query 'row freed keeps \"the owner changes only through nobody\"' is missing",
    ),
    "a query is deleted in the middle": (
        in_group("row freed", lambda g: replace(g, queries=g.queries[:1] + g.queries[2:])),
        "expected 'row freed preserves",
    ),
    "a group is deleted": (lambda c: replace(c, groups=c.groups[:-1]), "$.groups: expected 11, found 10"),
    "another group is deleted": (lambda c: replace(c, groups=c.groups[:3] + c.groups[4:]), "a group is missing or misplaced"),
    "a query is added": (in_group("row freed", lambda g: replace(g, queries=(*g.queries, g.queries[0]))), "is one query too many"),
    "an expected answer is flipped": (
        in_group("row freed", lambda g: replace(g, queries=(replace(g.queries[0], expected="unsat"), *g.queries[1:]))),
        "queries[0]: expected 'row freed can be chosen': true is sat; found",
    ),
    "the preamble of a row is a contradiction": (
        in_group("row freed", lambda g: replace(g, preamble=g.preamble + "\n(assert false)")),
        "expected nothing, found (assert false)",
    ),
    "the prelude is changed": (lambda c: replace(c, prelude=c.prelude + "\n(assert false)"), "$.prelude: it is not that of the pieces"),
    "a conjunct is weakened": (in_conjunct(0, smt="true"), "$.prelude: it is not that of the pieces; line"),
    "a conjunct speaks of the state before": (in_conjunct(0, reads=()), "$.prelude"),
}
TEXTS: dict[str, tuple[Change, str]] = {
    "closes a bracket too many": (in_row("freed", guard="true) (assert false"), "].guard: expected one SMT-LIB term: a bracket closes"),
    "opens a bracket too many": (in_row("freed", guard="(and true"), "1 brackets are not closed"),
    "is two terms": (in_row("freed", guard="true true"), "2 terms"),
    "is empty": (in_row("freed", guard=" "), "0 terms"),
    "has a comment": (in_row("freed", guard="true ; and more"), "unexpected '; and more'"),
    "has a quoted name": (in_row("freed", guard="|a b|"), "unexpected '|a b|'"),
}
PIECES: dict[str, tuple[Change, str]] = {
    "a conjunct reads what is no state": (in_conjunct(0, reads=("next.phase",)), "reads 'next.phase', which is no symbol it may read"),
    "the last row has a guard": (in_row("freed/other", guard="(= now.owner 0)"), "the last row of Freed must have the guard true"),
    "a refused row changes the state": (in_row("freed/other", next={"owner": "0"}), "a step that is refused changes nothing"),
    "a row writes a field that is not there": (in_row("freed", next={"color": "0"}), "'color' is no field of the state"),
    "a row counts what is not counted": (in_row("freed", counts={"count.X": "0"}), "'count.X' is no count"),
    "a row has an unknown event": (in_row("freed", event="Melted"), "'Melted' is none of the events"),
    "two rows have one name": (in_row("freed", name="acquired"), "2 rows are called 'acquired'"),
    "no row fires": (nothing_fires, "no row fires"),
    "a history is no field": (in_table(histories={"color": "0"}), "$.table.histories: 'color' is no field of the state"),
    "no claim is left": (in_claims(lambda claims: ()), "$.claims: there is none"),
    "a claim stands there twice": (in_claims(lambda claims: (*claims, claims[0])), "2 are called"),
    "a claim about steps has a k": (in_claims(lambda claims: tuple(replace(x, k=2) for x in claims)), "is not shown by k-induction"),
    "a k is too large": (in_claims(lambda claims: (replace(claims[0], k=9), *claims[1:])), "expected 1 to 3, found 9"),
    "a claim is also called unproved": (lambda c: replace(c, unproved={OWNED: "?"}), "is also among the claims"),
    "a sort is none": (in_state(sort="Real"), "expected Bool, Int or"),
    "a name is none": (in_state(name="a b"), "'now.a b' is no symbol"),
    "two symbols have one name": (in_state(name="owner"), "the symbol now.owner is declared 2 times"),
    "an event has no word": (in_table(events=("Acquired", "Freed", "Melted")), "expected on.Melted, the word for one of the events"),
    "the format is another": (lambda c: replace(c, format="turnproof certificate 9"), "$.format: expected 'turnproof certificate 1'"),
}
TAMPERED = {**QUERIES, **{f"a text {name}": case for name, case in TEXTS.items()}, **PIECES}


@pytest.mark.parametrize("name", TAMPERED)
def test_tampering_is_seen_before_any_solver_is_asked(name: str, tmp_path: Path) -> None:
    change, said = TAMPERED[name]
    certificate.write(signed(change(LOCKED())), tmp_path / "file")
    with pytest.raises(CertificateError) as caught:
        recheck(tmp_path / "file")
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)


def remade(change: Change) -> Certificate:
    """Changed, and all queries derived anew: nothing is missing, and only a solver can tell."""
    changed = change(LOCKED())
    return certificate.make(changed.table, changed.invariant, changed.claims, {}, {})


def claimed(name: str, smt: str) -> Change:
    return in_claims(lambda claims: (*claims, Claim(name, "always", (), ("now.phase",), smt)))


BOTH_PHASES = in_conjunct(0, smt="(and (= now.phase #b0) (= now.phase #b1))", reads=("now.phase",))
FALSE: dict[str, tuple[Change, str]] = {
    "a claim is false": (claimed("it is free", "(= now.phase #b0)"), 'the invariant implies "it is free": expected unsat, answered sat'),
    "a claim follows from the types": (
        claimed("it is", "(= now.phase now.phase)"),
        'the types alone do not imply "it is": expected sat, answered unsat',
    ),
    "the invariant is a contradiction": (BOTH_PHASES, "the initial state satisfies"),
    "the invariant is weakened everywhere": (in_conjunct(0, smt="(=> (= now.owner 0) (= now.phase #b0))"), "expected unsat, answered sat"),
    "a row that fires is called dead": (in_row("freed", fires=False), "row freed cannot be chosen: expected unsat, answered sat"),
    "a row leads elsewhere": (
        in_row("freed", next={"phase": "#b1", "owner": "0"}),
        f'row freed preserves "{OWNED}": expected unsat, answered sat',
    ),
}


@pytest.mark.parametrize("name", FALSE)
def test_what_is_false_is_refuted_by_both(name: str, tmp_path: Path) -> None:
    change, said = FALSE[name]
    certificate.write(remade(change), tmp_path / "file")
    first, second, together, claims = recheck(tmp_path / "file")
    assert (first.outcome, second.outcome, claims.outcome) == (Outcome.VIOLATED,) * 3
    assert said in first.detail
    assert said in second.detail
    assert together.outcome is Outcome.HOLDS


def test_a_text_of_the_wrong_sort_is_refused_by_the_solvers(tmp_path: Path) -> None:
    certificate.write(remade(in_conjunct(0, smt="(=> now.phase true)")), tmp_path / "file")
    verdicts = recheck(tmp_path / "file")
    assert {v.outcome for v in verdicts} == {Outcome.UNDETERMINED}
    assert "the solver's process ended with status 1" in verdicts[0].detail
