"""Promises about the future, through a machine and a specification: how they are judged, told, played again, and found vacuous."""

from __future__ import annotations

from enum import Enum
from typing import Annotated

import attrs
import pytest
import toys
from toys import spec_of

from turnproof.checkers.explicit import check, judge_property
from turnproof.checkers.graph import explore
from turnproof.checkers.judge import Judge
from turnproof.checkers.replay import Run
from turnproof.checkers.story import render_text
from turnproof.checkers.verdict import Outcome, Verdict
from turnproof.machines.kernel import Counter, Machine, Range, Row, TableError, implies, symbol
from turnproof.specs.language import EventuallyAlways, Fair, LeadsTo, Property, after, ignored, on, taken


class Where(Enum):
    ON = "on"


@attrs.frozen
class Ring:
    where: Where = Where.ON
    x: Annotated[int, Range(0, 3)] = 0


@attrs.frozen
class Grown:
    by: Annotated[int, Range(0, 1)]


@attrs.frozen
class Reset: ...


@attrs.frozen
class Told: ...


ring, grown, next_ring = symbol(Ring), symbol(Grown), after(Ring)
R = Row[Ring, Told]
RING: Machine[Ring, Grown | Reset, Told] = Machine(
    name="ring",
    initial=Ring(),
    now=ring,
    events=(Grown, Reset),
    effects=(Told,),
    phase="where",
    rows=(
        R(grown, when=ring.x < 3, data=attrs.evolve(ring, x=ring.x + grown.by), name="grown"),
        R(Grown, ignore="it is as large as it gets", name="grown/full"),
        R(Reset, when=ring.x == 2, data=attrs.evolve(ring, x=1), name="reset"),
        R(Reset, refuse="only a ring of two is reset", name="reset/otherwise"),
    ),
)
GROWS = Fair("it grows", ring.x < 3, on(Grown))
GROWS_AT_LAST = Fair("it grows at last", ring.x == 2, on(Grown) & (next_ring.x == 3), strong=True)


def verdict(prop: Property, machine: toys.AnyMachine = RING, **more: object) -> Verdict:
    return judge_property(Judge(explore(spec_of(machine, prop, **more))), prop)


def reaches_three(*fairness: Fair) -> LeadsTo:
    return LeadsTo("it grows to three", ring.x == 0, ring.x == 3, requirements=(), fairness=fairness)


def test_a_stutter_that_is_answered_taken_serves_no_fairness() -> None:
    """``Grown(by=0)`` is taken and changes nothing; with ``by=1`` weakly fair from 0 to 2, only the reset can keep it from three."""
    without_reset = RING.variant("ring", drop=("reset",))
    assert verdict(reaches_three(GROWS), without_reset).outcome is Outcome.HOLDS
    lasso = verdict(reaches_three(GROWS))
    assert lasso.outcome is Outcome.VIOLATED
    assert lasso.story is not None
    assert [step.event for step in lasso.story.steps[lasso.story.loop_from - 1 :]] in (["Grown(by=1)", "Reset"], ["Reset", "Grown(by=1)"])
    assert lasso.story.length == 3


def test_strong_fairness_forbids_that_cycle() -> None:
    assert verdict(reaches_three(GROWS, GROWS_AT_LAST)).outcome is Outcome.HOLDS


def test_a_run_that_stops_is_told_as_such() -> None:
    stopped = verdict(reaches_three())
    assert stopped.story is not None
    assert (stopped.story.length, stopped.story.loop_from) == (0, 1)
    assert "and then nothing happens any more, for ever" in render_text(stopped.story)
    assert stopped.detail == "broken in 0 events, after which nothing need happen any more"
    assert stopped.how.endswith("no fairness assumed)")


def test_a_lasso_is_told_as_prefix_and_loop() -> None:
    told = verdict(reaches_three(GROWS)).story
    assert told is not None
    lines = render_text(told).splitlines()
    assert lines.index("  and then for ever:") == next(n for n, line in enumerate(lines) if line.startswith(f"   {told.loop_from}.")) - 1


def test_ignored_and_refused_steps_serve_a_fairness_only_if_it_asks_for_them() -> None:
    """At three every ``Grown`` is ignored. Fair is that it is taken, so no fair run stays there; unless ignoring it counts."""
    full = RING.variant("ring", drop=("reset",))
    stays = LeadsTo("three is left", ring.x == 3, ring.x == 0, requirements=(), fairness=(Fair("it grows", ring.x == 3, on(Grown)),))
    assert "no run can satisfy 'it grows'" in verdict(stays, full).detail
    ignoring = attrs.evolve(stays, fairness=(Fair("it is told", ring.x == 3, on(Grown) & ignored()),))
    broken = verdict(ignoring, full)
    assert broken.story is not None
    assert broken.story.steps[-1].answer.startswith("ignored")
    assert (broken.story.length, broken.story.loop_from) == (4, 4)


def test_eventually_always_through_a_specification() -> None:
    stays = EventuallyAlways("it stays at three", ring.x == 3, requirements=(), fairness=(GROWS, GROWS_AT_LAST))
    assert verdict(stays).outcome is Outcome.HOLDS
    weak = verdict(attrs.evolve(stays, fairness=(GROWS,)))
    assert weak.outcome is Outcome.VIOLATED
    assert weak.story is not None
    assert weak.story.length == 3


def test_an_evaluation_that_fails_is_no_success() -> None:
    """tlaplus/tlaplus#1440: a promise that cannot be read stops the check; it never counts as kept."""
    unreadable = LeadsTo("unreadable", grown.by == 1, ring.x == 3, requirements=())
    spec = spec_of(RING, unreadable)
    with pytest.raises(TableError, match="property 'unreadable': first reads Grown"):
        check(spec, explore(spec))
    constant = LeadsTo("constant", True, ring.x == 3, requirements=())
    with pytest.raises(TypeError, match="property 'constant': first is the constant True"):
        verdict(constant)


def test_a_kind_of_property_nobody_knows_is_refused() -> None:
    """fabracht/tla-rs#62: what the engine cannot check it must not leave out."""

    @attrs.frozen(eq=False, kw_only=True)
    class Infinitely(Property):
        often: bool

    spec = spec_of(RING, Infinitely("x", often=ring.x == 3, requirements=()))
    with pytest.raises(TableError, match="a Infinitely is a kind of property the explicit engine does not know"):
        check(spec, explore(spec))


def test_steps_may_start_and_keep_a_promise() -> None:
    """``first`` and ``then`` may speak of steps: growing to two is followed by a reset, or by three."""
    grows_to_two = on(Grown) & (ring.x == 1) & (next_ring.x == 2)
    kept = LeadsTo(
        "two is left by a step", grows_to_two, (on(Reset) & taken()) | (on(Grown) & (next_ring.x == 3)), requirements=(), fairness=(GROWS,)
    )
    assert verdict(kept).outcome is Outcome.HOLDS
    broken = verdict(attrs.evolve(kept, then=on(Grown) & (next_ring.x == 3)))
    assert broken.story is not None
    assert [step.event for step in broken.story.steps] == ["Grown(by=1)", "Grown(by=1)", "Reset"]
    assert broken.story.loop_from == 2


def test_vacuous_under_a_constraint() -> None:
    """tlaplus/tlaplus#839: the assumption about the environment forbids the very step that is said to be fair."""
    promise = LeadsTo("it grows to three", ring.x == 0, ring.x == 3, requirements=(), fairness=(GROWS,))
    forbidden = verdict(promise, assume=implies(on(Grown), grown.by == 0))
    assert forbidden.outcome is Outcome.VIOLATED
    assert "holds for want of runs" in forbidden.detail


@attrs.frozen
class Heap:
    where: Where = Where.ON
    n: Annotated[int, Counter] = 0


heap = symbol(Heap)
HEAP: Machine[Heap, Reset, Told] = Machine(
    name="heap",
    initial=Heap(),
    now=heap,
    events=(Reset,),
    effects=(Told,),
    phase="where",
    rows=(Row(Reset, data=attrs.evolve(heap, n=heap.n + 1), name="more"),),
)


def test_a_promise_that_leaves_the_bound_is_undetermined() -> None:
    """tlaplus/tlaplus#839: with the counter cut at two, no fair run is left, and 'it comes down to zero again' would hold."""
    falls = LeadsTo("it falls", heap.n == 1, heap.n == 0, requirements=(), fairness=(Fair("more comes", heap.n >= 0, on(Reset)),))
    cut = verdict(falls, HEAP)
    assert cut.outcome is Outcome.UNDETERMINED
    assert "leaves the bound counter <= 2" in cut.detail
    rises = attrs.evolve(falls, then=heap.n == 2)
    assert verdict(rises, HEAP).outcome is Outcome.HOLDS, "within the bound, it is decided"
    never = attrs.evolve(falls, fairness=())
    assert verdict(never, HEAP).outcome is Outcome.VIOLATED, "a run that stops inside the bound is a real one"


def test_a_lasso_is_checked_again_by_playing_it() -> None:
    prop = reaches_three(GROWS)
    run = Run(spec_of(RING, prop))
    for _ in range(2):
        run.send(Grown(1))
    run.send(Reset())
    run.send(Grown(1))
    assert run.breaks(prop, loop_from=3)
    assert not run.breaks(prop, loop_from=5), "to stop at two is not fair"
    with pytest.raises(ValueError, match="do not lead back"):
        run.breaks(prop, loop_from=2)
    run.send(Grown(1))
    assert not run.breaks(prop, loop_from=6), "it has grown to three"


def test_a_loop_that_keeps_its_promise_before_it_makes_it_breaks_nothing() -> None:
    """Within the loop the promise is made after it was last kept; once more round, it is kept again."""
    prop = LeadsTo("two shrinks", ring.x == 2, ring.x == 1, requirements=())
    run = Run(spec_of(RING, prop))
    for event in (Grown(1), Grown(1), Reset(), Grown(1)):
        run.send(event)
    assert not run.breaks(prop, loop_from=3)
    assert run.breaks(prop, loop_from=5), "it may stop at two"


@pytest.mark.parametrize("prop", [p for p in toys.GATE_SPEC.properties if isinstance(p, LeadsTo)], ids=lambda p: p.name)
def test_the_gate_needs_strong_fairness(prop: LeadsTo) -> None:
    assert verdict(prop, toys.GATE).outcome is Outcome.HOLDS
    weak = verdict(attrs.evolve(prop, fairness=(toys.CLOSES, toys.LET_GO)), toys.GATE)
    assert weak.outcome is Outcome.VIOLATED
    assert weak.detail == "broken in 3 events, of which the last 2 for ever"
