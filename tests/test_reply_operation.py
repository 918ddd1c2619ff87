"""What no property of a state or a step can say about the reply operation."""

from __future__ import annotations

from typing import cast, get_args

import attrs
import pytest

from turnproof.checkers import explicit
from turnproof.checkers.graph import explore
from turnproof.checkers.judge import Judge
from turnproof.checkers.verdict import Outcome
from turnproof.machines.kernel import HOLE, Ignored, OnlyIf, Refused, Row, StopTimer, TableError, Taken, conjuncts, formula, named
from turnproof.machines.reply_operation import MACHINE, abortable
from turnproof.machines.reply_operation_words import DeliverSteer, Effect, Event, Phase, Release, ReplyOperation
from turnproof.specs.language import Order
from turnproof.specs.reply_operation import SPEC


@pytest.fixture(scope="module")
def reachable() -> list[ReplyOperation]:
    """Every state within the bounds of the specification, found by the interpreter alone."""
    events = MACHINE.all_events(tokens=1)
    seen: dict[ReplyOperation, None] = {MACHINE.initial: None}
    queue = [MACHINE.initial]
    for state in queue:
        for event in events:
            answer = MACHINE.step(state, event)
            if isinstance(answer, Taken) and answer.state.owner_barriers <= 1 and answer.state not in seen:
                seen[answer.state] = None
                queue.append(answer.state)
    return queue


def test_step_is_total_and_deterministic(reachable: list[ReplyOperation]) -> None:
    """R-REPLY-29: the same state and event give the same answer again, some row answers, and nothing handed in is changed."""
    assert len(reachable) > 1_000
    for state in reachable:
        before = attrs.asdict(state)
        for event in MACHINE.all_events(tokens=1):
            answer = MACHINE.step(state, event)
            assert answer == MACHINE.step(state, event)
            assert isinstance(answer, (Taken, Ignored, Refused))
            assert answer.row is not HOLE
        assert attrs.asdict(state) == before


def accepts_an_abort(row: Row[ReplyOperation, Effect]) -> bool:
    """Whether the row aborts, supersedes or recovers a reply that has no result and is not committed."""
    return (
        row.answer == "taken"
        and row.event.__name__ in ("AbortRequested", "SupersedeRequested", "RecoveryRequested")
        and "finalizing" not in row.name
    )


def reads(row: Row[ReplyOperation, Effect], rule: object) -> bool:
    """Whether the guard has this very formula as a conjunct, not a copy of it."""
    return row.guard is not None and any(part is rule for part in conjuncts(row.guard))


def test_there_is_one_abort_rule() -> None:
    """R-REPLY-10: every accepting row reads the one formula ``abortable`` itself."""
    rows = [row for row in MACHINE.rows if accepts_an_abort(row)]
    assert {row.event.__name__ for row in rows} == {"AbortRequested", "SupersedeRequested", "RecoveryRequested"}
    assert all(reads(row, abortable) for row in rows)


def test_a_copy_of_the_abort_rule_would_be_seen() -> None:
    body = formula(abortable, "the rule").args[1]
    copy = attrs.evolve(MACHINE.row("RecoveryRequested/accepted"), when=named("abortable", cast(bool, body)))
    assert not reads(copy, abortable)


@pytest.mark.soak
def test_every_historic_variant_fails_and_the_target_does_not() -> None:
    """R-REPLY-30: each variant breaks what it is known to break, at its shortest; the target breaks nothing in the same bounds."""
    names = {variant.machine.name for variant in SPEC.variants}
    assert len(names) == len(SPEC.variants) >= 12
    told = explicit.check_variants(SPEC)
    assert len(told) >= sum(len(variant.violates) for variant in SPEC.variants)
    assert [verdict for verdict in told if verdict.outcome is not Outcome.HOLDS] == []
    for verdict in explicit.check(SPEC, explore(SPEC)):
        assert verdict.outcome is Outcome.HOLDS, verdict


def orders() -> list[Order]:
    return [prop for prop in SPEC.properties if isinstance(prop, Order)]


@pytest.mark.parametrize("order", orders(), ids=lambda order: order.name.replace(" ", "-"))
def test_each_order_of_effects_can_be_broken(order: Order) -> None:
    """Swapping the two effects in each row that emits both breaks the order, and the story ends in a step of such a row."""

    def kind(effect: object) -> type:
        return type(effect.effect if isinstance(effect, OnlyIf) else effect)

    def swapped(row: Row[ReplyOperation, Effect]) -> Row[ReplyOperation, Effect]:
        late = [e for e in row.emit if kind(e) is order.second]
        return attrs.evolve(row, emit=(*late, *(e for e in row.emit if kind(e) is not order.second)))

    rows = {row.name: swapped(row) for row in MACHINE.rows if {order.first, order.second} <= {kind(e) for e in row.emit}}
    spec = attrs.evolve(SPEC, properties=(order,), variants=(), recordings={}, histories=(), counter=0)
    broken = MACHINE.variant("swapped", replace=rows)
    # Every row that emits two effects answers within five events.
    violation = Judge(explore(spec, machine=broken, depth=5)).violation(order, all_routes=False)
    assert violation is not None
    assert violation.stories[0].steps[-1].row in rows


def test_an_order_of_effects_that_never_come_together_is_vacuous() -> None:
    order = Order("vacuous", DeliverSteer, Release, requirements="R-REPLY-28")
    spec = attrs.evolve(SPEC, properties=(order,), variants=(), recordings={}, histories=(), tokens=1, counter=0)
    verdict = next(v for v in explicit.check(spec, explore(spec)) if v.check == "vacuous")
    assert verdict.outcome is Outcome.VIOLATED
    assert "no step that it speaks of emits both DeliverSteer and Release" in verdict.detail


def test_an_order_names_effects_of_the_machine() -> None:
    with pytest.raises(TableError, match="orders StopTimer before itself"):
        attrs.evolve(SPEC, properties=(Order("x", StopTimer, StopTimer, requirements="R-REPLY-5"),))
    with pytest.raises(TableError, match="orders Phase, which is no effect of reply_operation"):
        attrs.evolve(SPEC, properties=(Order("x", Phase, StopTimer, requirements="R-REPLY-5"),))


def test_every_event_class_is_explored() -> None:
    assert {type(e) for e in MACHINE.all_events()} == set(MACHINE.events)
    assert get_args(Event) == MACHINE.events


def test_every_requirement_is_discharged() -> None:
    assert SPEC.undischarged() == ()
