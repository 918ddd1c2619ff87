"""The column reading of formulas equals the kernel's Python reading, operator by operator, and refuses what it cannot read."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any, cast

import numpy as np
import pytest
import toys

from turnproof.checkers.columns import COLUMNS, TOKEN, Data, Reading, code, encode, read_columns, sort_of
from turnproof.checkers.evaluation import Evaluation
from turnproof.checkers.graph import explore
from turnproof.checkers.predicates import Predicates
from turnproof.checkers.words import check_words, is_about_steps
from turnproof.machines.kernel import OPERATORS, Formula, StartTimer, StopTimer, TableError, choose, fields_of, implies, latest, not_
from turnproof.machines.kernel.evaluate import PYTHON
from turnproof.specs.language import Emitted, Said, Spec, after, count, emits, ignored, on, refused, taken

NUMBERS = (-1, 0, 1, 7)
TRUTHS = (False, True)
DOMAINS: dict[str, tuple[Sequence[object], ...]] = {
    **dict.fromkeys(("eq", "ne", "lt", "le", "gt", "ge", "add", "sub", "latest"), (NUMBERS, NUMBERS)),
    **dict.fromkeys(("and", "or", "implies"), (TRUTHS, TRUTHS)),
    "not": (TRUTHS,),
    "choose": (TRUTHS, NUMBERS, NUMBERS),
}


@pytest.mark.parametrize("op", OPERATORS)
def test_every_operator_equals_the_kernels(op: str) -> None:
    domains = DOMAINS[op]
    combinations = list(itertools.product(*domains))
    wanted = np.array([PYTHON[op](*values) for values in combinations])
    arrays = [np.array([values[n] for values in combinations]) for n in range(len(domains))]
    # Each argument as an array, and as each of its plain values: `and` and `or` stop early only at plain ones.
    for arguments in itertools.product(*([array, *domain] for array, domain in zip(arrays, domains, strict=True))):
        readings = [_fixed(type(domain[0]), data) for domain, data in zip(domains, arguments, strict=True)]
        found = COLUMNS[op](*readings).run(cast(Any, None))
        here = np.all([array == data for array, data in zip(arrays, arguments, strict=True)], axis=0)
        assert np.array_equal(np.broadcast_to(found, wanted.shape)[here], wanted[here]), (op, arguments)


def _fixed(sort: type, data: Any) -> Reading:
    return Reading(sort, lambda columns: data)


def test_there_is_a_reading_for_every_operator() -> None:
    assert set(COLUMNS) == set(OPERATORS) == set(DOMAINS)


def test_a_wrong_operator_would_be_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(COLUMNS, "lt", COLUMNS["le"])
    with pytest.raises(AssertionError):
        test_every_operator_equals_the_kernels("lt")


# ── over a graph ──

gate, coin, then = toys.gate, toys.coin, toys.then_gate
lock, acquired = toys.lock, toys.acquired

GATE_STEPS = (
    on(toys.CoinInserted) & coin.good,
    implies(on(toys.CoinInserted), (coin.good & taken()) | refused() | ignored()) & (refused() | ignored()),
    taken() & (then.phase != gate.phase),
    choose(on(toys.Passed), taken(), not_(taken())),
    (then.fare == gate.fare + 1) | (then.fare <= gate.fare - 1),
    latest(gate.fare, then.fare) == 1,
    emits(toys.Unlock) & (count(StartTimer, timer=toys.GateTimer.CLOSING) == 1),
    count(StopTimer, timer=toys.GateTimer.CLOSING) + count(toys.Lock) == 2,
)
LOCK_STEPS = (
    on(toys.Acquired) & (acquired.by == lock.owner),
    implies(on(toys.Acquired), count(toys.Granted, to=acquired.by, again=lock.owner == acquired.by) == 1),
    count(toys.Granted, to="a") >= 1,
    count(toys.Granted, to=lock.owner) == 1,
    emits(toys.Granted, again=False) & (toys.then_lock.owner != lock.owner),
    on(toys.Freed) & (toys.freed.by != lock.owner) & refused(),
)


def short(value: Any) -> str:
    return value.machine.name if isinstance(value, Spec) else str(value)


@pytest.mark.parametrize(
    ("spec", "node"), [*((toys.GATE_SPEC, node) for node in GATE_STEPS), *((toys.LOCK_SPEC, node) for node in LOCK_STEPS)], ids=short
)
def test_steps_are_read_as_python_reads_them(spec: Any, node: Any) -> None:
    graph = explore(spec)
    found = Evaluation(graph).steps_where(node, "the formula")
    against = Evaluation(graph).steps_against(node, "the formula")
    test = Predicates(spec.machine, ()).test(node)
    kinds = list(Said)
    truths = set()
    for e, event in enumerate(graph.events):
        for s in range(graph.explored):
            said, effects = kinds[graph.said[graph.row[e, s]]], graph.effect_lists[graph.effects[e, s]]
            expected = test(graph.states[s], (), event, said, effects, graph.states[graph.successor[e, s]], ())
            assert bool(found[e, s]) is expected, (event, graph.states[s])
            assert bool(against[e, s]) is not expected
            truths.add(expected)
    assert truths == {True, False}, "the formula tells nothing apart, so the test shows nothing"


def test_patterns_of_one_effect_are_told_apart() -> None:
    one, other = (cast(Formula, count(toys.Granted, to=name)).args[0] for name in "ab")
    assert isinstance(one, Emitted)
    assert one != other
    assert len({one, other}) == 2


def test_codes_are_the_same_for_one_value_and_for_a_column() -> None:
    for owner, values in ((toys.LockState, ("", "a", "b", "zed")), (toys.Gate, tuple(toys.GatePhase))):
        field = fields_of(owner)["owner" if owner is toys.LockState else "phase"]
        assert encode(field, values).tolist() == [code(value, field) for value in values]
        assert len(set(encode(field, values).tolist())) == len(values)
    assert sort_of(fields_of(toys.LockState)["owner"]) == TOKEN


def test_sums_do_not_overflow_the_columns() -> None:
    big: Data = np.array([2**31 - 1], dtype=np.int32)
    total = COLUMNS["add"](_fixed(int, big), _fixed(int, big)).run(cast(Any, None))
    assert np.array_equal(total, [2**32 - 2])


# ── what cannot be read ──


@pytest.mark.parametrize(
    ("node", "message"),
    [
        (Formula("eq", (toys.gate.phase, toys.LockPhase.FREE)), "property 'p' compares GatePhase with LockPhase, which are never equal"),
        (Formula("eq", (toys.gate.closing, 1)), "property 'p' compares bool with int, which are never equal"),
        (Formula("lt", (toys.gate.phase, toys.SHUT)), "property 'p' needs int where it has GatePhase"),
        (Formula("and", (toys.gate.closing, toys.gate.phase)), "property 'p' needs bool where it has GatePhase"),
        (Formula("eq", (count(toys.Granted, to=True), 1)), "property 'p' counts Granted whose to is bool; it is a token"),
        (Formula("eq", (count(StartTimer, not_before_ms=0), 1)), "property 'p' reads StartTimer.not_before_ms, which is Opaque"),
    ],
)
def test_mixed_sorts_are_refused(node: Formula, message: str) -> None:
    with pytest.raises(TableError, match=f"^{message}"):
        read_columns(node, "property 'p'")


def refuse(node: object, *, step: bool) -> str:
    with pytest.raises(TableError) as caught:
        check_words(node, "property 'p'", states=[toys.Gate], events=toys.GATE.events, step=step)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_a_field_of_an_event_needs_its_event() -> None:
    said = refuse(implies(coin.good, taken()), step=True)
    assert said.startswith(
        "property 'p' reads CoinInserted.good also where the event is Passed, which has no such field: write on(CoinInserted) &"
    )
    for guarded in (on(toys.CoinInserted) & coin.good, implies(on(toys.CoinInserted), coin.good), not_(on(toys.CoinInserted)) | coin.good):
        check_words(guarded, "", states=[toys.Gate], events=toys.GATE.events, step=True)
    assert "also where" in refuse(coin.good & on(toys.CoinInserted), step=True), "the guard must stand before what it guards"
    assert "also where" in refuse(emits(toys.Granted, again=coin.good), step=True)


def test_a_state_has_no_words_of_a_step() -> None:
    for node in (taken(), on(toys.Passed), emits(toys.Lock), then.closing):
        assert "a word of a step, but it is about a state" in refuse(node, step=False)
        assert is_about_steps(node)
    assert not is_about_steps(gate.closing)


def test_an_event_or_a_state_of_another_machine_is_refused() -> None:
    assert refuse(on(toys.Served), step=True) == "property 'p' speaks of the event Served, which the machine does not have"
    assert refuse(lock.owner == "", step=True) == "property 'p' reads LockState.owner; it may read Gate and events"
    assert refuse(after(toys.Queue).waiting == 0, step=True).endswith("it may read Gate and events")
