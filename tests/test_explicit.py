"""The explicit engine: the graph it explores, the properties it judges, the shortest runs it tells, and the variants that must fail."""

from __future__ import annotations

import itertools
from typing import Any

import attrs
import pytest
import toys
from attrs import evolve
from toys import GATE, GATE_SPEC, QUEUE, G, coin, gate, queue, spec_of, then_gate

from turnproof.checkers.evaluation import Evaluation
from turnproof.checkers.explicit import check, check_requirements, check_variants, cut_short, judge_property
from turnproof.checkers.graph import LimitReached, explore
from turnproof.checkers.judge import Judge
from turnproof.checkers.predicates import Memory
from turnproof.checkers.replay import InternalError
from turnproof.checkers.verdict import Outcome, Verdict, exit_status
from turnproof.machines.kernel import StartTimer, StopTimer, TableError, Taken, implies, not_, symbol
from turnproof.specs.language import (
    Always,
    History,
    Property,
    Said,
    Sometimes,
    Spec,
    Step,
    Variant,
    at_most,
    count,
    ignored,
    never,
    on,
    refuses,
    taken,
)

OPENS = G(
    coin,
    at=toys.SHUT,
    to=toys.OPEN,
    data=evolve(gate, closing=True),
    emit=(toys.Unlock(), StartTimer(toys.GateTimer.CLOSING)),
    name="coin/any",
)
"""Any coin opens the gate, also a bad one."""
FREE = GATE.variant("gate_for_free", replace={"coin/enough": OPENS}, drop=("coin/bad",))


def judged(prop: Property, machine: toys.AnyMachine = GATE, **more: Any) -> Verdict:
    spec = spec_of(machine, prop, **more)
    return judge_property(Judge(explore(spec)), prop)


def events_of(verdict: Verdict) -> list[str]:
    assert verdict.story is not None
    return [step.event for step in verdict.story.steps]


# ── the graph ──


def test_the_graph_is_what_step_answers() -> None:
    graph = explore(GATE_SPEC)
    for s in range(graph.explored):
        for e, event in enumerate(graph.events):
            answer = GATE.step(graph.states[s], event)
            assert graph.rows[graph.row[e, s]] is answer.row
            after, effects = (answer.state, answer.effects) if isinstance(answer, Taken) else (graph.states[s], ())
            assert graph.states[graph.successor[e, s]] == after
            assert graph.effect_lists[graph.effects[e, s]] == effects
    assert (graph.explored, graph.steps) == (4, 28)
    assert [graph.answers(said) for said in Said] == [9, 14, 5]
    assert sum(graph.fires) == graph.steps


def test_paths_are_shortest_and_real() -> None:
    graph = explore(GATE_SPEC)
    for node in range(graph.explored):
        path = graph.path(node)
        assert len(path) == graph.depth[node]
        at = 0
        for before, event in path:
            assert before == at
            at = int(graph.successor[event, before])
        assert at == node
    assert graph.depth.tolist() == sorted(graph.depth.tolist())


def test_counters_are_cut_at_the_bound_and_the_report_says_so() -> None:
    joined = Sometimes("two wait", queue.waiting == 2, requirements=())
    graph = explore(spec_of(QUEUE, joined, counter=3))
    assert [s.waiting for s in graph.states] == [0, 1, 2, 3, 4]
    assert (graph.explored, graph.cut) == (4, 1)
    assert graph.bounds() == "exhaustive within counter <= 3 (4 states, 8 steps; counters to 3)"
    assert explore(GATE_SPEC).bounds() == "exhaustive (4 states, 28 steps)"
    assert explore(toys.LOCK_SPEC).bounds() == "exhaustive (3 states, 18 steps; 2 tokens)"


def test_what_lies_just_beyond_the_bound_is_judged() -> None:
    """A step that leaves the bound is a step like any other, and so is the state it leads to."""
    assert judged(never("three wait", queue.waiting == 3, requirements=()), QUEUE).outcome is Outcome.VIOLATED
    assert judged(never("four wait", queue.waiting == 4, requirements=()), QUEUE).outcome is Outcome.HOLDS


def test_a_value_outside_its_domain_names_row_and_field() -> None:
    dear = GATE.variant("gate_dear", replace={"coin/enough": attrs.evolve(GATE.row("coin/enough"), data=evolve(gate, fare=gate.fare + 3))})
    with pytest.raises(
        TableError,
        match=r"machine gate_dear: row coin/enough, on CoinInserted\(good=True\): Gate.fare becomes 3, expected an integer from 0 to 2",
    ):
        explore(GATE_SPEC, machine=dear)
    below = QUEUE.variant("queue_below", drop=("served/nobody", "served/last"))
    with pytest.raises(TableError, match=r"row served, on Served\(\): Queue.waiting becomes -1, expected an integer of 0 or more"):
        explore(spec_of(QUEUE, Sometimes("x", queue.waiting == 1, requirements=())), machine=below)


def test_a_search_cut_short_is_undetermined() -> None:
    with pytest.raises(LimitReached) as caught:
        explore(GATE_SPEC, limit=3)
    verdict = cut_short(caught.value)
    assert verdict.outcome is Outcome.UNDETERMINED
    assert exit_status([verdict]) == 3
    assert explore(GATE_SPEC, limit=4).explored == 4


def test_the_assumption_excludes_steps() -> None:
    honest = implies(on(toys.CoinInserted), coin.good)
    graph = explore(spec_of(GATE, Sometimes("x", gate.phase == toys.OPEN, requirements=()), assume=honest))
    bad = graph.events.index(toys.CoinInserted(False))
    assert (graph.row[bad] == -1).all()
    assert graph.steps == 24
    assert "; assuming on CoinInserted implies good)" in graph.bounds()
    opens = Always("it never opens", gate.phase != toys.OPEN, requirements=())
    assert events_of(judged(opens, assume=honest)) == ["CoinInserted(good=yes)"]
    held = Always("it is never held", gate.phase != toys.HELD, requirements=())
    assert events_of(judged(held, assume=honest)) == ["CoinInserted(good=yes)", "HoldRequested"]
    all_good = Step("every coin is good", not_(on(toys.CoinInserted)) | coin.good, requirements=())
    assert judged(all_good, assume=honest).outcome is Outcome.HOLDS
    bad_coin = Sometimes("a bad coin", on(toys.CoinInserted) & not_(coin.good), requirements=())
    assert judged(bad_coin, assume=honest).outcome is Outcome.VIOLATED
    never_breaks = never("it breaks", gate.phase == toys.BROKEN, requirements=())
    assert judged(never_breaks, assume=not_(on(toys.BrokeDown))).outcome is Outcome.HOLDS


def test_a_graph_of_the_first_steps_only() -> None:
    near = explore(GATE_SPEC, depth=1)
    assert near.explored == 1
    assert near.depth.max() == 1
    assert "to depth 1" in near.bounds()


# ── properties: each holds on the gate, and breaks where a mistake is planted ──


def plant(name: str, **changes: Any) -> toys.AnyMachine:
    return GATE.variant("gate_planted", replace={name: attrs.evolve(GATE.row(name), **changes)})


PLANTED = [
    ("an open gate has its timer armed", plant("let go", data=None), ["CoinInserted(good=yes)", "HoldRequested", "HoldEnded"]),
    ("a shut gate has a timer", plant("passed", data=evolve(gate, fare=0)), ["CoinInserted(good=yes)", "Passed"]),
    ("only a good coin opens a shut gate", FREE, ["CoinInserted(good=no)"]),
    ("an opened gate is unlocked once", plant("coin/enough", emit=()), ["CoinInserted(good=yes)"]),
    ("a shut gate is not passed", plant("passed/shut", refuse="", stay=True), ["Passed"]),
    ("somebody passes", plant("passed", to=None), None),
    ("the gate is held", plant("hold", to=None), None),
    ("an open gate shuts or breaks", plant("closing", to=None, data=None), ["CoinInserted(good=yes)", "ClosingExpired"]),
]


def test_every_property_of_the_gate_holds() -> None:
    verdicts = check(GATE_SPEC, explore(GATE_SPEC))
    assert {v.outcome for v in verdicts} == {Outcome.HOLDS}
    assert {v.check for v in verdicts} >= {p.name for p in GATE_SPEC.properties}
    assert all(v.how and not v.detail for v in verdicts)


def test_a_graph_serves_the_specifications_it_was_explored_for() -> None:
    graph = explore(GATE_SPEC)
    fewer = attrs.evolve(GATE_SPEC, properties=GATE_SPEC.properties[:1])
    assert {v.check for v in check(fewer, graph)} < {v.check for v in check(GATE_SPEC, graph)}
    for changed in ({"tokens": 3}, {"histories": (toys.UNLOCKS,)}, {"assume": on(toys.Passed)}):
        with pytest.raises(TableError, match="was explored for a specification of other history, assumption or bounds"):
            check(attrs.evolve(GATE_SPEC, **changed), graph)


@pytest.mark.parametrize(("name", "machine", "run"), PLANTED, ids=[p[0] for p in PLANTED])
def test_a_planted_mistake_is_found_with_its_shortest_run(name: str, machine: toys.AnyMachine, run: list[str] | None) -> None:
    verdicts = {v.check: v for v in check(GATE_SPEC, explore(GATE_SPEC, machine=machine))}
    verdict = verdicts[name]
    assert verdict.outcome is Outcome.VIOLATED
    assert verdict.requirements
    if run is None:
        assert verdict.detail == "never reached: no run of the machine comes there"
    else:
        assert events_of(verdict) == run


def test_there_is_a_planted_mistake_for_every_property() -> None:
    assert {name for name, _, _ in PLANTED} == {p.name for p in GATE_SPEC.properties}


def test_a_broken_initial_state_needs_no_event() -> None:
    broken = judged(Always("the gate is open", gate.phase == toys.OPEN, requirements=()))
    assert events_of(broken) == []
    assert broken.detail == "broken in 0 events; 3 states in all"


def test_the_same_failure_by_other_routes_is_grouped() -> None:
    open_ = Always("it never opens", gate.phase != toys.OPEN, requirements=())
    two = GATE.variant(
        "gate_two",
        first=(
            G(
                toys.Passed,
                at=toys.SHUT,
                to=toys.OPEN,
                data=evolve(gate, closing=True),
                name="climbed",
                emit=(StartTimer(toys.GateTimer.CLOSING),),
            ),
        ),
    )
    verdict = judged(open_, two)
    assert verdict.story is not None
    routes = [story.steps[-1].row for story in (verdict.story, *verdict.others)]
    assert routes == ["coin/enough", "climbed"]
    assert verdict.detail == "broken in 1 event by row coin/enough; also by climbed (1); 2 states in all"
    assert all(story.broken == verdict.story.broken for story in verdict.others)


def test_steps_are_grouped_by_row_too() -> None:
    verdict = judged(Step("nothing is taken", not_(taken()), requirements=()))
    rows = {story.steps[-1].row for story in (verdict.story, *verdict.others) if story is not None}
    assert rows == {row.name for row in GATE.rows if row.answer == "taken"}
    lengths = [story.length for story in (verdict.story, *verdict.others) if story is not None]
    assert lengths == [1, 1, 2, 2, 2, 3, 3], "the first two break it first; the others only after one of those did"


# ── history ──


def test_at_most_counts_over_the_whole_run() -> None:
    once, unlocks = at_most(1, count(toys.Unlock), "unlocked at most once", variable="unlocks", requirements=())
    broken = judged(once, histories=(unlocks,))
    assert events_of(broken) == ["CoinInserted(good=yes)", "BrokeDown"]
    assert broken.story is not None
    assert [(c.field, c.before, c.after) for c in broken.story.steps[-1].changes if c.field == "unlocks"] == [("unlocks", "1", "2")]
    unheld = GATE.variant("gate_once", drop=("broke", "passed", "closing"))
    assert judged(once, unheld, histories=(unlocks,)).outcome is Outcome.HOLDS


@attrs.frozen
class Seen:
    bad: bool = False
    late: bool = False


seen = symbol(Seen)
LOOKS = History(
    Seen(),
    seen,
    (
        (on(toys.CoinInserted) & not_(coin.good) & (gate.phase == toys.SHUT), evolve(seen, bad=True)),
        (on(toys.ClosingExpired) & ignored(), evolve(seen, late=True)),
    ),
)
"""Looks at the state, at a field of an event, and at an answer."""
COUNTS = at_most(2, count(StopTimer), "x", variable="stops", requirements=())[1]
"""Looks at effects, of which one event may emit more or fewer."""


@pytest.mark.parametrize("history", [LOOKS, COUNTS, toys.UNLOCKS], ids=["looks", "counts stops", "counts unlocks"])
def test_history_is_what_its_rules_say_in_every_step(history: History) -> None:
    spec = spec_of(GATE, Sometimes("x", gate.phase == toys.SHUT, requirements=()), histories=(history,))
    graph, memory = explore(spec), Memory(GATE, spec)
    assert graph.explored > explore(GATE_SPEC).explored
    for e, node in itertools.product(range(len(graph.events)), range(graph.explored)):
        before, pasts, event, after = graph.states[node], graph.pasts[node], graph.events[e], graph.successor[e, node]
        said, effects = list(Said)[graph.said[graph.row[e, node]]], graph.effect_lists[graph.effects[e, node]]
        assert graph.pasts[after] == memory.after(before, pasts, event, said, effects, graph.states[after])


def test_history_is_told_in_stories() -> None:
    both = Sometimes("both", seen.bad & seen.late, requirements=())
    spec = spec_of(GATE, both, histories=(LOOKS,))
    story = Judge(explore(spec)).witness(both)
    assert story is not None
    assert {step.event for step in story.steps} == {"CoinInserted(good=no)", "ClosingExpired"}
    assert [change.field for step in story.steps for change in step.changes] in (["bad", "late"], ["late", "bad"])
    assert explore(spec).explored == 4 * 4


# ── requirements and variants ──


def test_a_requirement_that_nothing_discharges_is_named() -> None:
    (missing,) = check_requirements(attrs.evolve(GATE_SPEC, requirements={**GATE_SPEC.requirements, "G-9": "the gate is green"}))
    assert missing.outcome is Outcome.VIOLATED
    assert missing.requirements == ("G-9",)
    assert missing.detail == "nothing discharges G-9 (the gate is green)"
    assert [v.outcome for v in check_requirements(GATE_SPEC)] == [Outcome.HOLDS]
    undisciplined = attrs.evolve(GATE_SPEC, discipline={})
    assert [v.requirements for v in check_requirements(undisciplined)] == [("G-5",)]


def with_variant(**violates: int) -> Spec:
    return attrs.evolve(
        GATE_SPEC,
        variants=(Variant(machine=FREE, about="any coin would do", violates={k.replace("_", " "): v for k, v in violates.items()}),),
    )


def test_a_variant_fails_as_it_should() -> None:
    (verdict,) = check_variants(with_variant(only_a_good_coin_opens_a_shut_gate=1))
    assert verdict.outcome is Outcome.HOLDS
    assert verdict.machine == "gate_for_free"
    assert events_of(verdict) == ["CoinInserted(good=no)"]


def test_a_variant_that_passes_or_fails_in_another_length_is_a_failure() -> None:
    (longer,) = check_variants(with_variant(only_a_good_coin_opens_a_shut_gate=2))
    assert (longer.outcome, longer.detail.split(":")[0]) == (Outcome.VIOLATED, "it is broken in 1 event at the shortest, not in 2")
    (passes,) = check_variants(with_variant(a_shut_gate_is_not_passed=1))
    assert passes.outcome is Outcome.VIOLATED
    assert passes.detail.startswith("it holds; the variant was expected to break it in 1 event")
    assert "any coin would do" in passes.detail


def test_a_variant_found_far_from_where_it_was_expected() -> None:
    slow = plant("let go", data=None)
    spec = attrs.evolve(GATE_SPEC, variants=(Variant(machine=slow, about="", violates={"an open gate has its timer armed": 1}),))
    (verdict,) = check_variants(spec)
    assert verdict.detail.startswith("it is broken in 3 events at the shortest, not in 1")


def test_a_variant_that_should_break_nothing_is_refused() -> None:
    with pytest.raises(TableError, match="variant gate_for_free violates nothing: name the property it breaks"):
        check_variants(with_variant())


def test_a_variant_of_an_unknown_property_is_refused() -> None:
    with pytest.raises(TableError, match="which is no property of the specification; did you mean 'somebody passes'"):
        check_variants(with_variant(somebody_pases=1))


# ── the engine is not believed ──


def test_a_counterexample_that_does_not_happen_is_an_internal_error(monkeypatch: pytest.MonkeyPatch) -> None:
    """The column reading says that every step is bad; played again, none is."""
    monkeypatch.setattr(Evaluation, "steps_against", lambda self, node, where: self.graph.row >= 0)
    with pytest.raises(InternalError, match="played again it does not"):
        judged(refuses("a shut gate is not passed", toys.Passed, gate.phase == toys.SHUT, requirements=()))


def test_a_graph_with_a_wrong_edge_is_an_internal_error() -> None:
    prop = Step("nothing opens it", implies(gate.phase == toys.SHUT, then_gate.phase != toys.OPEN), requirements=())
    graph = explore(spec_of(GATE, prop))
    wrong = attrs.evolve(graph, states=(graph.states[0], *[evolve(s, fare=2) for s in graph.states[1:]]))
    with pytest.raises(InternalError, match="recorded other states than"):
        Judge(wrong).violation(prop)


def test_verdicts_are_plain_enough_to_be_sent_between_processes() -> None:
    import pickle

    for verdict in check(GATE_SPEC, explore(GATE_SPEC, machine=FREE)):
        assert pickle.loads(pickle.dumps(verdict)) == verdict
