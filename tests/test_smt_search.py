"""The search for an invariant: what it must find, what it must not claim, and how it says why. In this process, without a re-check."""

from __future__ import annotations

import itertools
import random
from typing import Any

import attrs
import numpy as np
import pytest
from smt_toys import DIAL, NOTE, TALLY, Told, found
from toys import GATE_SPEC, LOCK, LOCK_SPEC, QUEUE, Acquired, LockPhase, QueuePhase, Served, acquired, spec_of

from turnproof.checkers.smt import z3api
from turnproof.checkers.smt.evaluate import Evaluator
from turnproof.checkers.smt.mine import Feature, Oracle, pack, unpack
from turnproof.machines.kernel import NOBODY, implies
from turnproof.specs.language import Always, Spec, Step, at_most, count, never, on, refused, taken

lock, queue, tally, dial = LOCK.now, QUEUE.now, TALLY.now, DIAL.now


def names(result: dict[str, Any], origin: str) -> list[str]:
    return [c["name"] for c in result["invariant"] if c["origin"] == origin]


@pytest.mark.parametrize("spec", [GATE_SPEC, LOCK_SPEC], ids=["gate", "lock"])
def test_what_holds_is_shown(spec: Spec) -> None:
    result = found(spec)
    assert not result["failed"]
    assert not result["undecided"]
    shown = {*names(result, "property"), *result["steps"]}
    assert shown == {p.name for p in spec.properties if isinstance(p, Always | Step)}
    assert all(result["fires"].values())


def test_the_search_is_the_same_every_time() -> None:
    assert found(LOCK_SPEC) == found(LOCK_SPEC)


WELCOME = Step(
    "whoever wants a lock without an owner gets it",
    implies(on(Acquired) & (lock.owner == NOBODY) & (acquired.by != NOBODY), taken()),
    requirements=(),
)


def test_a_conjunct_is_mined_where_it_is_needed() -> None:
    """That a lock without an owner is free stands in no property here."""
    result = found(spec_of(LOCK, WELCOME))
    assert result["steps"] == [WELCOME.name]
    assert names(result, "mined") == ["phase = taken implies owner /= none"]


def test_none_is_mined_where_none_is_needed() -> None:
    result = found(LOCK_SPEC)
    assert names(result, "mined") == []


def test_what_holds_only_within_the_bounds_is_not_shown() -> None:
    """Explored to 2, judged to 3: the graph never shows 4."""
    few = Always("never more than three wait", queue.waiting <= 3, requirements=())
    result = found(spec_of(QUEUE, few, counter=2))
    step = result["failed"][few.name]
    assert (step["row"], step["before"]["waiting"], step["after"]["waiting"]) == ("joined", 3, 4)
    assert result["k"] == {}


def test_a_guess_from_the_bounds_dies_and_takes_with_it_what_stood_on_it() -> None:
    """Explored to 0, somebody served is always the last one. A queue of two refutes the guess, and the property with it."""
    last = Step("whoever is served is the last", implies(on(Served) & taken(), queue.waiting == 1), requirements=())
    result = found(spec_of(QUEUE, last, counter=0))
    assert set(result["failed"]) == {last.name}
    assert result["failed"][last.name]["row"] == "served"


def test_counters_are_proved_for_every_count() -> None:
    idle = Always("an idle queue is empty", implies(queue.phase == QueuePhase.IDLE, queue.waiting == 0), requirements=())
    busy = Always("a busy queue is not", implies(queue.phase == QueuePhase.BUSY, queue.waiting > 0), requirements=())
    refusal = Step("nobody is served in an idle queue", implies(on(Served) & (queue.phase == QueuePhase.IDLE), refused()), requirements=())
    result = found(spec_of(QUEUE, idle, busy, refusal, counter=1))
    assert not result["failed"]


# ── lemmas ──

BALANCE = ("begun is ended plus open", tally.begun == tally.ended + tally.open)
ORDER = Always("no more end than begin", tally.ended <= tally.begun, requirements=())


def test_a_lemma_shows_what_no_guess_can() -> None:
    without = found(spec_of(TALLY, ORDER))
    assert set(without["failed"]) == {ORDER.name}
    result = found(spec_of(TALLY, ORDER, lemmas=(BALANCE,)))
    assert not result["failed"]
    assert names(result, "lemma") == [BALANCE[0]]
    assert result["redundant"] == [ORDER.name]


def test_a_lemma_that_is_not_inductive_dies() -> None:
    wrong = ("nothing is open", tally.open == 0)
    result = found(spec_of(TALLY, ORDER, lemmas=(wrong,)))
    assert result["failed"][wrong[0]]["row"] == "begun"
    late = ("two are open", tally.open == 2)
    assert found(spec_of(TALLY, ORDER, lemmas=(late,)))["failed"][late[0]]["row"] is None


# ── k-induction, history, time ──


def test_k_induction_shows_what_no_single_step_preserves() -> None:
    six = never("the dial stands at six", dial.number == 6, requirements=())
    result = found(spec_of(DIAL, six))
    assert result["failed"][six.name]["before"]["number"] == 5
    assert result["k"] == {six.name: 2}


def test_k_induction_does_not_show_what_is_false() -> None:
    two = never("the dial stands at two", dial.number == 2, requirements=())
    assert found(spec_of(DIAL, two))["k"] == {}


def test_a_history_is_part_of_the_proof() -> None:
    once, told = at_most(1, count(Told), "it is told at most once", variable="told", requirements=())
    result = found(spec_of(NOTE, once, histories=(told,)))
    assert not result["failed"]
    never_told, silent = at_most(0, count(Told), "it is never told", variable="told", requirements=())
    assert set(found(spec_of(NOTE, never_told, histories=(silent,)))["failed"]) == {never_told.name}


def test_no_answer_is_no_proof(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(z3api.Solver, "check", lambda self, *assumptions: "unknown")
    result = found(LOCK_SPEC)
    assert result["undecided"]
    assert not result["steps"]
    assert all(step["unknown"] for step in result["failed"].values())


def test_a_table_with_a_hole_has_a_row_for_it() -> None:
    holed = LOCK.variant("holed", drop=("freed/other",))
    assert found(spec_of(holed, WELCOME))["fires"]["hole/Freed"] is True
    # A free lock has no owner, and nobody frees nothing: with this row the last one can be spared only if nobody else comes.
    assert "hole/Acquired" not in found(spec_of(holed, WELCOME))["fires"]


# ── candidates ──


def features() -> list[Feature]:
    def values(slot: str, count: int) -> Feature:
        return Feature("value", (slot,), tuple((f"{slot} = {n}", f"(= now.{slot} {n})") for n in range(count)))

    same = Feature("equal", ("x", "y"), (("x = y", "(= now.x now.y)"), ("x /= y", "(not (= now.x now.y))")))
    some = Feature("amount", ("z",), (("z = 0", "(= now.z 0)"), ("z = 1", "(= now.z 1)"), ("z > 1", "(> now.z 1)")))
    return [values("x", 3), values("y", 3), some, same]


@pytest.mark.parametrize("seed", range(4))
def test_a_candidate_rules_out_the_state_and_no_explored_one(seed: int) -> None:
    chance = random.Random(seed)
    seen = np.array([[chance.randrange(3), chance.randrange(3), chance.randrange(4)] for _ in range(chance.randrange(2, 12))])
    columns = {"x": seen[:, 0], "y": seen[:, 1], "z": seen[:, 2]}
    asked = features()
    oracle = unpack(pack(asked, np.stack([f.answers(columns) for f in asked], axis=1)))
    context = z3api.Context()
    symbols = {f"now.{s}": context.symbol(f"now.{s}", z3api.INT) for s in "xyz"}
    tried = 0
    for x, y, z in itertools.product(range(3), range(3), range(4)):
        state = {"x": x, "y": y, "z": z}
        for candidate in itertools.islice(oracle.candidates(state, ["x", "z"]), 12):
            tried += 1
            term = context.parse(f"(assert {candidate.smt})", symbols)[0]
            assert set(z3api.symbols_in(term)) <= set(candidate.reads)
            assert Evaluator({f"now.{s}": c for s, c in columns.items()}).column(term).all(), candidate
            assert not Evaluator({f"now.{s}": np.array([v]) for s, v in state.items()}).column(term)[0], candidate
    assert tried


def test_a_feature_reads_one_state_as_it_reads_many() -> None:
    columns = {s: np.array(v) for s, v in {"x": [0, 1, 2, 2], "y": [0, 2, 1, 2], "z": [0, 1, 2, 9]}.items()}
    order = Feature("order", ("x", "y"), (("<", ""), ("=", ""), (">", "")))
    nobody = Feature("nobody", ("x",), (("none", ""), ("some", "")))
    for feature in [*features(), order, nobody]:
        one_by_one = [feature.answer({s: int(c[n]) for s, c in columns.items()}) for n in range(4)]
        assert feature.answers(columns).tolist() == one_by_one


def test_a_state_that_was_explored_is_never_ruled_out() -> None:
    columns = {s: np.array([1, 2]) for s in "xyz"}
    oracle = Oracle(features(), np.stack([f.answers(columns) for f in features()], axis=1))
    assert not list(oracle.candidates({"x": 1, "y": 1, "z": 1}, ["x", "y", "z"]))


def test_a_free_lock_is_the_only_one_without_an_owner() -> None:
    """The property itself is strong enough; what stands beside it is not repeated."""
    owned = Always("a taken lock has an owner", (lock.phase == LockPhase.TAKEN) == (lock.owner != NOBODY), requirements=())
    twice = attrs.evolve(owned, name="and again")
    assert found(spec_of(LOCK, owned, twice))["redundant"] in ([owned.name], [twice.name], [twice.name, owned.name])
