"""Proofs about systems from end to end: what is proved, for what, what is not, and that nobody is deceived by a certificate."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import attrs
import msgspec
import pytest
from network_terms import ANSWERED, ASK, DEFECTS, formulas
from systems import CALL, CALL_SPEC, AskRequested, Caller, caller

from turnproof.checkers.engines import ENGINES, Plan
from turnproof.checkers.smt import CertificateError, certificate, recheck
from turnproof.checkers.smt.pieces import Certificate, Claim, RowPiece
from turnproof.checkers.smt_network import check, engine
from turnproof.checkers.smt_network.relation import Network
from turnproof.checkers.smt_network.report import AGREE, CONSISTENT, INDUCTIVE, MEANINGFUL
from turnproof.checkers.verdict import Engine, Outcome, Verdict
from turnproof.checkers.verify import verify
from turnproof.machines.kernel import Row, TableError, implies, one_of
from turnproof.specs.catalog import systems
from turnproof.specs.classics import peterson, two_phase_commit
from turnproof.specs.language import Always, Property, Step
from turnproof.specs.system import Part, Spontaneous, System, SystemSpec, Wire

replace = msgspec.structs.replace
PROVABLE = [p.name for p in CALL_SPEC.properties if isinstance(p, Always | Step)]
FAULTLESS = ["no channel overflows", "every event lies in its domain"]
BOUNDS = "bounded as the system has it: channel replies holds at most 2, budget asks: at most 2, budget losses: at most 1"


def by_check(verdicts: list[Verdict]) -> Mapping[str, Verdict]:
    assert len({v.check for v in verdicts}) == len(verdicts)
    return {v.check: v for v in verdicts}


def bad(verdicts: Mapping[str, Verdict]) -> dict[str, Outcome]:
    return {name: v.outcome for name, v in verdicts.items() if v.outcome is not Outcome.HOLDS}


@pytest.fixture(scope="module")
def proved(tmp_path_factory: pytest.TempPathFactory) -> tuple[Mapping[str, Verdict], Path]:
    return _proved(tmp_path_factory.mktemp("call"))


@functools.cache
def _proved(folder: Path) -> tuple[Mapping[str, Verdict], Path]:
    path = folder / "call.json"
    return by_check(check(CALL_SPEC, certificate=path)), path


# ── a system that holds ──


def test_properties_of_states_and_steps_are_proved_and_it_is_said_what_stays_bounded(proved: tuple[Mapping[str, Verdict], Path]) -> None:
    verdicts, _ = proved
    assert bad(verdicts) == {}
    for name in PROVABLE + FAULTLESS:
        assert verdicts[name].how.startswith(f"proved (any length of run, any count; {BOUNDS}; an invariant of ")
        assert " re-checked by z3 " in verdicts[name].how
        assert " and cvc5 " in verdicts[name].how
    assert {v.requirements for name, v in verdicts.items() if name in PROVABLE} == {("R-1",), ("R-2",)}
    assert not any(p.name in verdicts for p in CALL_SPEC.properties if not isinstance(p, Always | Step))
    assert "exhaustive within" not in verdicts[INDUCTIVE].how


def test_its_certificate_is_checked_again_from_the_file_alone(proved: tuple[Mapping[str, Verdict], Path]) -> None:
    again = by_check(recheck(proved[1]))
    assert bad(again) == {}
    claim = again["the certificate proves what it claims"].how
    assert claim.startswith(f"proved (any length of run, any count; {BOUNDS}; re-checked by z3 ")
    assert "6 properties of call" in claim
    assert proved[1].with_suffix(".log").read_text().count(" ... ok (z3 ") == sum(
        len(g.queries) for g in certificate.read(proved[1]).groups
    )


def test_lemmas_of_the_author_prove_what_counts_to_any_number_of_managers() -> None:
    for managers in (3, 5):
        verdicts = by_check(check(two_phase_commit.specification(managers)))
        assert bad(verdicts) == {}
        assert f", {2 + 4 * managers} lemmas)" in verdicts[INDUCTIVE].how
        assert verdicts["nobody commits where another aborts"].how.startswith("proved (any length of run, any count")


def test_a_system_without_channels_has_no_bounds() -> None:
    verdicts = by_check(check(peterson.SPEC))
    assert bad(verdicts) == {}
    assert "bounded" not in " ".join(v.how for v in verdicts.values())


def test_a_verification_gives_both_opinions_and_proves_unasked_only_where_the_specification_says_so(tmp_path: Path) -> None:
    entry = ENGINES["symbolic"]
    assert entry.cannot(CALL_SPEC, Plan()) == "its proof may take minutes, or not be found: ask for it by --engine symbolic"
    assert entry.cannot(CALL_SPEC, Plan(engines=("symbolic",))) == ""
    assert entry.cannot(attrs.evolve(CALL_SPEC, proved=True), Plan()) == ""
    assert entry.cannot(systems()["reply_registry"], Plan()) == ""
    assert entry.cannot(CALL_SPEC, Plan(engines=("symbolic",), off=frozenset({"the server crashes"}))) == "it proves with every switch on"
    plan = Plan(certificate=tmp_path / "call.json")
    both = [(v.check, v.engine) for v in verify(CALL_SPEC, ["symbolic", "explicit"], plan=plan) if v.outcome is Outcome.HOLDS]
    assert all({(name, Engine.SYMBOLIC), (name, Engine.EXPLICIT)} <= set(both) for name in PROVABLE + FAULTLESS)
    assert ("no property is both proved and violated", Engine.TABLE) in both
    assert certificate.read(tmp_path / "call.json").table.machine == "call"


# ── what does not hold, or is not shown ──


def test_a_broken_property_has_no_proof_and_the_others_keep_theirs() -> None:
    spec = two_phase_commit.specification(3)
    hasty = attrs.evolve(spec, system=spec.variants[0].system, variants=(), lemmas=())
    verdicts = by_check(check(hasty))
    assert "nobody commits where another aborts" not in verdicts
    assert verdicts["who commits, all voted"].outcome is Outcome.HOLDS
    assert bad(verdicts) == {}


def test_a_property_that_is_not_inductive_is_no_failure_but_named(monkeypatch: pytest.MonkeyPatch) -> None:
    # Without candidates nothing can rule out a state that nobody reaches.
    monkeypatch.setattr("turnproof.checkers.smt_network.pieces.features", lambda network: ())
    spec = attrs.evolve(peterson.SPEC, variants=(), properties=(*peterson.SPEC.properties, TURN))
    verdicts = by_check(check(spec))
    assert bad(verdicts) == {}
    assert "one in the critical section" not in verdicts
    assert verdicts[TURN.name].how.startswith("proved")
    assert verdicts[INDUCTIVE].how.endswith("; exhaustive within the explored bounds only: one in the critical section")


ONE = peterson.SPEC.system.parts[1]
ENTERS = ONE.next.phase == peterson.At.CRITICAL
TURN = Step("nobody enters but by waiting", implies(ENTERS, one_of(ONE.now.phase, peterson.At.WAIT, peterson.At.CRITICAL)), requirements=())


def overflowing() -> SystemSpec:
    """A call whose channel is too small: two answers may be under way."""
    small = attrs.evolve(CALL.channels[0], capacity=1)
    second = CALL.wires[1]
    assert isinstance(second, Wire)
    system = attrs.evolve(CALL, channels=(small,), wires=(CALL.wires[0], attrs.evolve(second, to=small)))
    return attrs.evolve(CALL_SPEC, system=system, properties=CALL_SPEC.properties[:3], variants=())


def test_nothing_is_proved_of_a_system_that_has_a_fault() -> None:
    verdicts = by_check(check(overflowing()))
    assert not any(v.how.startswith("proved") for v in verdicts.values())
    assert verdicts[INDUCTIVE].outcome is Outcome.UNDETERMINED
    assert verdicts[INDUCTIVE].detail.startswith("it is not shown of every step that no channel overflows")
    assert not any(p.name in verdicts for p in CALL_SPEC.properties)


def test_steps_that_are_not_followed_to_their_end_prove_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("turnproof.checkers.smt_network.cascade.MOST_ARRIVALS", 1)
    verdicts = by_check(check(CALL_SPEC))
    assert verdicts[INDUCTIVE].outcome is Outcome.UNDETERMINED
    assert verdicts[INDUCTIVE].detail.startswith("it is not shown of every step that every step is followed to its end")
    assert not any(v.how.startswith("proved") for v in verdicts.values())


def test_a_search_without_time_is_undetermined() -> None:
    verdicts = by_check(check(CALL_SPEC, seconds=0.01))
    assert bad(verdicts) == dict.fromkeys((INDUCTIVE, MEANINGFUL, CONSISTENT), Outcome.UNDETERMINED)
    assert "time: ended after 0.01 s" in verdicts[INDUCTIVE].detail
    assert "; exhaustive within the explored bounds only: only a served caller is answered; " in verdicts[INDUCTIVE].detail


@pytest.mark.parametrize(
    "defect", ["a row leads elsewhere", pytest.param("a budget is larger", marks=pytest.mark.soak), "a wire carries nothing"]
)
def test_terms_that_differ_from_the_tables_prove_nothing(defect: str) -> None:
    network = Network(DEFECTS[defect], list(formulas(CALL_SPEC).values()))
    verdicts = by_check(engine.check(CALL_SPEC, network=network))
    assert verdicts[AGREE].outcome is Outcome.VIOLATED
    assert {v.outcome for name, v in verdicts.items() if name in PROVABLE} <= {Outcome.UNDETERMINED}


def test_an_invariant_that_an_explored_state_breaks_is_a_contradiction() -> None:
    # By the terms who is answered has given up, so that nobody is ever answered is inductive there.
    asks = Step("who waits does not ask", implies(caller.took(AskRequested), caller.now.phase != Caller.WAITING), requirements="R-1")
    lemma = ("nobody is answered", caller.now.phase != Caller.ANSWERED)
    spec = attrs.evolve(CALL_SPEC, properties=(asks,), lemmas=(lemma,))
    network = Network(DEFECTS["a row leads elsewhere"], list(formulas(spec).values()))
    verdicts = by_check(engine.check(spec, network=network))
    assert verdicts[CONSISTENT].outcome is Outcome.VIOLATED
    assert verdicts[CONSISTENT].detail.startswith("the invariant nobody is answered (")


def test_what_follows_from_the_types_alone_is_vacuous() -> None:
    empty = Always("the server served at most twice", CALL.parts[1].now.served <= 2, requirements="R-1")
    verdicts = by_check(check(attrs.evolve(CALL_SPEC, properties=(*CALL_SPEC.properties, empty))))
    assert verdicts[MEANINGFUL].outcome is Outcome.VIOLATED
    assert verdicts[MEANINGFUL].detail == f"implied by the types alone: {empty.name}"
    assert empty.name not in verdicts


def test_a_lemma_called_like_a_property_is_refused() -> None:
    with pytest.raises(TableError, match="the lemma 'who waits has a timer' is called like a property"):
        check(attrs.evolve(CALL_SPEC, lemmas=(("who waits has a timer", caller.now.phase == Caller.WAITING),)))


def test_identities_and_counts_have_no_bounds(tmp_path: Path) -> None:
    """What exploration sees of two tokens and counts to 2 is proved of all of them; what is true only there is not."""
    from random_systems import Plain, Thing, named_, thing

    from turnproof.machines.kernel import Machine

    rows: tuple[Row[Any, Any], ...] = (
        Row(named_, when=thing.tag == "", data=attrs.evolve(thing, tag=named_.tag, count=thing.count + 1)),
        Row(named_, refuse="taken"),
        Row(Plain, data=attrs.evolve(thing, tag="", count=thing.count + 1)),
    )
    machine: Machine[Thing, object, object] = Machine(
        name="owned", initial=Thing(), now=thing, events=(type(named_), Plain), effects=(), rows=rows
    )
    part = Part("it", machine)
    system = System(name="owned", parts=(part,), spontaneous=(Spontaneous(part, type(named_)), Spontaneous(part, Plain)))
    owned = (part.now.tag != "") & (part.next.tag != "")
    properties: tuple[Property, ...] = (
        Step("a taken one is not taken again", implies(owned, part.next.tag == part.now.tag), requirements=()),
        Step("it counts", part.next.count <= part.now.count + 1, requirements=()),
        Always("it counts to two", part.now.count <= 2, requirements=()),
        Always("a or b", (part.now.tag == "") | (part.now.tag == "a") | (part.now.tag == "b"), requirements=()),
    )  # fmt: skip
    verdicts = by_check(check(SystemSpec(system=system, requirements={}, properties=properties)))
    assert verdicts["a taken one is not taken again"].how.startswith("proved (any length of run, any count;")
    assert verdicts["it counts"].outcome is Outcome.HOLDS
    assert verdicts[INDUCTIVE].how.endswith("; exhaustive within the explored bounds only: it counts to two; a or b")


# ── tampering ──


Change = Callable[[Certificate], Certificate]


def rows_of(whole: Certificate, change: Callable[[RowPiece], RowPiece | None]) -> Certificate:
    """The certificate of the table with changed rows (None: without), composed anew as somebody would who knows how."""
    rows = tuple(made for row in whole.table.rows if (made := change(row)) is not None)
    return certificate.make(replace(whole.table, rows=rows), whole.invariant, whole.claims, whole.unproved, whole.made_with)


def is_fault(row: RowPiece) -> bool:
    return any(name.startswith("count.fault.") for name in row.counts)


def without_claim(name: str) -> Change:
    def change(whole: Certificate) -> Certificate:
        claims = tuple(c for c in whole.claims if c.name != name)
        return certificate.make(whole.table, whole.invariant, claims, whole.unproved, whole.made_with)

    return change


def without_conjunct(name: str) -> Change:
    def change(whole: Certificate) -> Certificate:
        kept = tuple(c for c in whole.invariant if c.name != name)
        return certificate.make(whole.table, kept, whole.claims, whole.unproved, whole.made_with)

    return change


def without_timer(row: RowPiece) -> RowPiece:
    return replace(row, next={name: text for name, text in row.next.items() if ".timer." not in name})


def claiming(whole: Certificate, change: Callable[[Claim], Claim]) -> Certificate:
    claims = tuple(map(change, whole.claims))
    return certificate.make(whole.table, whole.invariant, claims, whole.unproved, whole.made_with)


REFUSED: dict[str, tuple[Change, str]] = {
    "the claim that nothing overflows is left out": (without_claim("no channel overflows"), "'no channel overflows' is missing"),
    "faults are no rows any more": (lambda c: rows_of(c, lambda r: None if is_fault(r) else r), "no row counts count.fault."),
    "faults are not counted": (
        lambda c: rows_of(c, lambda r: replace(r, counts={}) if is_fault(r) else r),
        "no row counts count.fault.",
    ),
    "where nothing begins something may": (
        lambda c: rows_of(c, lambda r: None if r.name.endswith(": nothing") else r),
        "must have the guard true",
    ),
    "a digest does not fit": (lambda c: replace(c, digest="0" * 64), "$.digest"),
    "a query is left out": (
        lambda c: signed(replace(c, groups=tuple(replace(g, queries=g.queries[:-1]) if n == 6 else g for n, g in enumerate(c.groups)))),
        "is missing",
    ),
}
REFUTED: dict[str, Change] = {
    "a fault may begin, it is said": lambda c: rows_of(c, lambda r: replace(r, fires=True) if is_fault(r) else r),
    "a row never begins, it is said": lambda c: rows_of(c, lambda r: replace(r, fires=False) if r.name.endswith(ANSWERED) else r),
    "a conjunct is left out": lambda c: without_conjunct(next(x.name for x in c.invariant if x.origin == "mined"))(c),
    "an update is left out": lambda c: rows_of(c, lambda r: without_timer(r) if r.name.endswith(ASK) else r),
    "a guard is left out": lambda c: rows_of(c, lambda r: replace(r, guard="true") if r.name == "replies loses" else r),
    "claims say nothing": lambda c: claiming(c, lambda x: replace(x, smt="true", reads=()) if x.name in PROVABLE else x),
}


def signed(changed: Certificate) -> Certificate:
    return replace(changed, digest=certificate.digest(changed))


@pytest.mark.parametrize("what", REFUSED)
def test_tampering_that_is_seen_at_once(what: str, proved: tuple[Mapping[str, Verdict], Path], tmp_path: Path) -> None:
    change, message = REFUSED[what]
    path = tmp_path / "changed.json"
    certificate.write(change(certificate.read(proved[1])), path)
    with pytest.raises(CertificateError) as refused:
        recheck(path)
    assert message in str(refused.value)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize("what", REFUTED)
def test_tampering_that_the_solvers_refute(what: str, proved: tuple[Mapping[str, Verdict], Path], tmp_path: Path) -> None:
    path = tmp_path / "changed.json"
    certificate.write(REFUTED[what](certificate.read(proved[1])), path)
    verdicts = by_check(recheck(path))
    assert verdicts["the certificate proves what it claims"].outcome is Outcome.VIOLATED
    assert verdicts["the certificate is re-checked by z3"].outcome is Outcome.VIOLATED
    assert verdicts["the certificate is re-checked by cvc5"].outcome is Outcome.VIOLATED
