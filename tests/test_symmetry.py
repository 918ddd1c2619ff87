"""Walking representatives: the same answers as walking everything, real runs, honest counts; and what is not symmetric is refused."""

from __future__ import annotations

import importlib.util
from collections import Counter
from collections.abc import Hashable
from typing import Annotated, Any

import attrs
import pytest
from attrs import frozen
from lock_system import locking
from random_systems import Named
from symmetric_systems import SymmetricMaker
from test_network_random import asked

from turnproof.checkers.network import explicit
from turnproof.checkers.network.explicit import check, explore, violation
from turnproof.checkers.network.plain import PlainWalk
from turnproof.checkers.network.run import Runner
from turnproof.checkers.network.symmetry import Symmetry
from turnproof.checkers.network.triggers import triggers
from turnproof.checkers.network.walk import Limits, Question, Trace, Walk, replay
from turnproof.checkers.verdict import Outcome
from turnproof.machines.kernel import Opaque, TableError, Token, not_
from turnproof.specs.classics import peterson, two_phase_commit
from turnproof.specs.classics.two_phase_commit import Decision, Stage
from turnproof.specs.language import Always, LeadsTo, Sometimes
from turnproof.specs.symmetry import UNCHANGED, Interchangeable, normal, why_not
from turnproof.specs.system import Part, Spontaneous, System, SystemSpec, SystemVariant, Wire

SEEDS = range(26)
BIG = 1_000


def commit(managers: int, *more: Any, hasty: bool = False) -> SystemSpec:
    """Two-phase commit, its managers interchangeable."""
    spec = two_phase_commit.specification(managers)
    system = two_phase_commit.two_phase_commit(managers, hasty=hasty)
    properties = (*(p for p in spec.properties if not isinstance(p, LeadsTo)), *more)
    return attrs.evolve(spec, system=system, properties=properties, variants=(), interchangeable=(_managers(system),))


# ── random systems ──


def answers(walk: Walk) -> dict[str, Any]:
    """What must not depend on the reduction."""
    return {
        "depth": walk.depth,
        "hits": {key: len(trace()) for key, trace in walk.hits.items()},
        "flaws": {fault: len(flaw.trace) for fault, flaw in walk.flaws.items()},
        "coverage": None if walk.flaws else {(h.part, h.event, h.state, h.said, h.row) for h in walk.handled},
        "wires": None if walk.flaws else (walk.wires, walk.copies),
        "taken": None if walk.flaws else dict(walk.taken),
    }


def holds_at_the_end(runner: Runner, question: Question, trace: Trace) -> bool:
    steps = replay(runner, trace)
    if question.key[0] == "step":
        return bool(runner.holds_of(question.holds, steps[-1]))
    return bool(runner.holds(question.holds, steps[-1].after if steps else runner.initial()))


@pytest.mark.parametrize("engine", ["plain", "compiled"])
def test_random_systems_answer_alike_with_and_without(engine: str) -> None:
    met: Counter[str] = Counter()
    for seed in SEEDS if engine == "compiled" else SEEDS[::2]:
        maker = SymmetricMaker(seed)
        system, interchangeable = maker.symmetric()
        runner, every = Runner(system, counter=1), triggers(system, tokens=2, counter=1)
        questions = asked(maker, system)
        whole = PlainWalk(runner, every, questions)
        expected = whole.run(Limits(states=BIG))
        if not expected.complete:
            continue
        group = Symmetry(system, interchangeable, 2)
        put = tuple(group.closed(q) for q in questions)
        found = explicit.walker_of(engine, runner, every, put, 1, group).run(Limits())
        group.settle(found, runner, every, questions)
        assert answers(found) == answers(expected), f"seed {seed}"
        assert all(holds_at_the_end(runner, q, found.hits[q.key]()) for q in questions if q.key in found.hits), f"seed {seed}"
        canonical = group.canonical()
        if not expected.flaws and not expected.cut:
            assert found.states == len({canonical(world) for world in whole.worlds}), f"seed {seed}"
        met.update(tokens=len(interchangeable) > 1, three=len(interchangeable[0].columns) > 2, fewer=found.states < expected.states)
        met.update([*(f.name for f in expected.flaws), *(k[0] for k in expected.hits)], copies=len(group.copies(questions[0].holds)) > 1)
    assert all(met[what] > 2 for what in ("tokens", "three", "fewer", "state", "step", "copies")), met


def test_a_wrong_exchange_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    """Representatives of what is no orbit at all: the comparison above would notice."""
    monkeypatch.setattr(Symmetry, "canonical", lambda self: lambda world: world.parts[0])
    different = 0
    for seed in range(15):
        maker = SymmetricMaker(seed)
        system, interchangeable = maker.symmetric()
        runner, every = Runner(system, counter=1), triggers(system, tokens=2, counter=1)
        questions = asked(maker, system)
        expected = PlainWalk(runner, every, questions).run(Limits(states=BIG))
        group = Symmetry(system, interchangeable, 2)
        found = PlainWalk(runner, every, tuple(group.closed(q) for q in questions), symmetry=group).run(Limits(states=BIG))
        different += found.depth != expected.depth or found.hits.keys() != expected.hits.keys()
    assert different > 3


# ── a system that everybody knows ──


@pytest.mark.parametrize("engine", ["plain", "compiled"])
def test_two_phase_commit_in_eighty_states(engine: str) -> None:
    spec = commit(3)
    whole, less = explore(spec, engine=engine), explore(spec, engine=engine, symmetry=True)
    assert (whole.walk.states, less.walk.states) == (288, 80)
    assert less.bounds() == (
        "exhaustive (80 representatives, 302 steps; 2 tokens, counters to 2; one state for all that differ by an exchange of "
        "manager_1, manager_2, manager_3)"
    )
    assert [(v.check, v.outcome) for v in check(spec, less)] == [(v.check, v.outcome) for v in check(spec, whole)]


def test_levels_orbit_by_orbit() -> None:
    """Every representative stands for at most 3! states, and the whole levels are as deep."""
    whole, less = explore(commit(4)).walk, explore(commit(4), symmetry=True).walk
    assert len(whole.levels) == len(less.levels)
    assert all(few <= many <= 24 * few for few, many in zip(less.levels, whole.levels, strict=True))


def test_a_property_of_one_manager_is_asked_of_all_and_told_of_that_one() -> None:
    _, first, _, third = two_phase_commit.two_phase_commit(3).parts
    early = (third.now.phase == Stage.COMMITTED) & (first.now.phase != Stage.COMMITTED)
    apart = Always("the third never commits before the first", not_(early),
                   requirements="2PC-1")  # fmt: skip
    spec = commit(3, apart)
    whole, less = explore(spec), explore(spec, symmetry=True)
    found, expected = violation(less, apart), violation(whole, apart)
    assert found is not None
    assert expected is not None
    assert found.story.length == expected.story.length == 8
    assert any(step.actor == "manager_3" or "manager_3" in step.event for step in found.story.steps)
    end: tuple[Any, ...] = found.steps[-1].after.parts
    states = dict(zip((p.name for p in spec.system.everyone), end, strict=True))
    assert (states["manager_3"].phase, states["manager_1"].phase) == (Stage.COMMITTED, Stage.PREPARED)


def test_a_broken_design_breaks_in_as_many_steps() -> None:
    spec = commit(3, hasty=True)
    prop = spec.properties[0]
    found = violation(explore(spec, symmetry=True), prop)
    assert found is not None
    assert found.story.length == 9


def test_promises_about_the_future_stay_open() -> None:
    spec = two_phase_commit.specification(3)
    verdict = next(v for v in check(spec, explore(spec, symmetry=True)) if v.check == "everybody ends")
    assert verdict.outcome is Outcome.UNDETERMINED
    assert verdict.detail == "what follows for ever is not kept by representatives: run without --symmetry"


def _managers(system: System) -> Interchangeable:
    return Interchangeable(*zip(system.parts[1:], system.channels, strict=True))


def test_without_numba_too(monkeypatch: pytest.MonkeyPatch) -> None:
    real = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name, *more: None if name == "numba" else real(name, *more))
    graph = explore(commit(3), symmetry=True)
    assert (graph.walk.engine, graph.walk.states) == ("plain Python", 80)


# ── what is not symmetric ──


def refusal(spec: SystemSpec, *interchangeable: Interchangeable) -> str:
    with pytest.raises(TableError) as error:
        attrs.evolve(spec, interchangeable=interchangeable)
    return str(error.value)


def test_what_may_not_be_exchanged_says_why() -> None:
    spec = two_phase_commit.specification(3)
    leader, *managers = spec.system.parts
    votes = spec.system.channels
    assert "are not interchangeable: coordinator is a coordinator, and manager_1 a manager" in refusal(
        spec, Interchangeable(leader, managers[0])
    )
    assert "manager_1.Vote -> coordinator.VoteArrived through vote_1 has no counterpart" in refusal(spec, Interchangeable(*managers))
    assert "manager_1 stands in two places of interchangeable=" in refusal(spec, Interchangeable(managers[0], managers[0]))
    assert "at least two can be exchanged" in refusal(spec, Interchangeable(managers[0]))
    assert "each must be made of the same kinds of pieces" in refusal(
        spec, Interchangeable((managers[0], votes[0]), (votes[1], managers[1]))
    )
    assert "nobody is no part of two_phase_commit_3" in refusal(spec, Interchangeable(Part("nobody", managers[0].machine), managers[0]))
    assert "nobody cannot be exchanged" in refusal(spec, Interchangeable("", "a"))
    assert "c is not among the 2 tokens explored, and b is not alike" in refusal(spec, Interchangeable("c", "b"))


def test_processes_that_are_told_apart_by_numbers_are_refused() -> None:
    assert "has no counterpart" in refusal(peterson.SPEC, Interchangeable(peterson.one, peterson.two))


def test_a_guard_that_prefers_one_is_refused() -> None:
    system = two_phase_commit.two_phase_commit(2)
    leader, one, _ = system.parts
    biased = attrs.evolve(
        system, spontaneous=(*system.spontaneous, Spontaneous(one, two_phase_commit.GaveUp, when=leader.now.phase == Decision.NONE))
    )
    (mistake,) = why_not(biased, _managers(biased), 2)
    assert mistake.startswith("manager_1 and manager_2 are not interchangeable: spontaneous manager_1.GaveUp has no counterpart")


def test_an_order_that_shows_is_refused() -> None:
    """A broadcast to parts that answer: who hears it first answers first."""
    maker = SymmetricMaker(3)
    machine = maker.machine("m")
    centre, one, two = Part("centre", maker.machine("c")), Part("one", machine), Part("two", machine)
    from random_systems import Call, Ping, Plain, Tell

    emitted = {type(getattr(i, "effect", i)) for row in machine.rows for i in row.emit}
    wires = [Wire(centre, Ping, part, Plain()) for part in (one, two)]
    wires += [Wire(part, effect, centre, Plain()) for part in (one, two) for effect in (Ping, Tell, Call) if effect in emitted]
    spontaneous = (Spontaneous(centre, Plain),)
    given: dict[str, Any] = {"parts": (centre, one, two), "wires": tuple(wires)}
    system = System(name="s", spontaneous=spontaneous, **given, **maker.declared({**given, "spontaneous": spontaneous}))
    (mistake,) = why_not(system, Interchangeable(one, two), 2)
    assert mistake.endswith("centre.Ping would be received in another order, and who receives it answers, so the order shows")


def test_a_machine_that_names_a_token_is_refused() -> None:
    for seed in range(20):
        maker = SymmetricMaker(seed)
        machine = maker.machine("m")
        part = Part("p", machine)
        spontaneous = (Spontaneous(part, Named),)
        given: dict[str, Any] = {"parts": (part,), "wires": ()}
        system = System(name="s", spontaneous=spontaneous, **given, **maker.declared({**given, "spontaneous": spontaneous}))
        mistakes = list(why_not(system, Interchangeable("a", "b"), 2))
        if mistakes:
            assert "of m names the token a" in mistakes[0] or "of m names the token b" in mistakes[0]
            return
    pytest.fail("no machine names a token")


def test_a_variant_that_is_not_symmetric_cannot_be_reduced() -> None:
    spec = commit(3)
    uneven = spec.system.with_machines("uneven", manager_2=two_phase_commit.HASTY)
    with pytest.raises(TableError, match="system uneven cannot be reduced: manager_1 and manager_2 are not interchangeable"):
        explore(spec, system=uneven, symmetry=True)
    assert SystemVariant(system=uneven, about="", violates={"x": 1}).system is uneven


def test_nothing_to_exchange() -> None:
    with pytest.raises(TableError, match="peterson has nothing to exchange: name it in interchangeable="):
        explore(peterson.SPEC, symmetry=True)


def test_formulas_in_another_order_are_the_same() -> None:
    one, two, _ = two_phase_commit.two_phase_commit(3).parts[1:]
    swap = Interchangeable(one, two).exchange(0, 1)
    left, right = one.now.phase == Stage.WORKING, two.now.phase == Stage.WORKING
    both: Any = left & right
    assert normal(both) == normal(right & left) == normal(both, swap)
    assert normal(left) != normal(right)
    assert normal(left, swap) == normal(right)
    assert normal(left | right) != normal(both)
    assert isinstance(normal(one.now.phase == two.now.phase), Hashable)
    assert normal(swap.formula(left)) == normal(right)
    assert swap.then(swap).name("manager_1") == UNCHANGED.name("manager_1")


def test_a_sometimes_of_one_is_reached_by_a_run_of_that_one() -> None:
    _, _, second, _ = two_phase_commit.two_phase_commit(3).parts
    gone = Sometimes("the second gives up", second.now.phase == Stage.ABORTED, requirements="2PC-1")
    graph = explore(commit(3, gone), symmetry=True)
    trace = graph.walk.hits["reached", gone.name, 0]()
    assert [(c.trigger.where, type(c.event).__name__) for c in trace] == [("manager_2", "GaveUp")]


# ── parts that are called by tokens ──


@pytest.mark.parametrize("engine", ["plain", "compiled"])
def test_clients_and_the_tokens_that_name_them(engine: str) -> None:
    spec = locking("abc")
    whole, less = explore(spec, engine=engine), explore(spec, engine=engine, symmetry=True)
    assert less.walk.states < whole.walk.states / 3
    said = [(v.check, v.outcome, v.detail, v.story.length if v.story else 0) for v in check(spec, less)]
    assert said == [(v.check, v.outcome, v.detail, v.story.length if v.story else 0) for v in check(spec, whole)]
    found = violation(less, spec.properties[2])
    assert found is not None
    lock: Any = found.steps[-1].after.parts[0]
    assert lock.holder == "c", "the run ends with the client of which the property speaks"


def test_clients_without_their_tokens_are_refused() -> None:
    spec = locking("ab", tokens=2)
    _, one, other = spec.system.parts
    two = spec.system.channels
    assert "client_a.Ask -> lock.Acquired through asks_a has no counterpart" in refusal(
        spec, Interchangeable((one, two[0]), (other, two[1]))
    )


def test_too_many_exchanges_of_tokens() -> None:
    spec = locking("abcdefg", tokens=7)
    with pytest.raises(TableError, match="5,040 exchanges of tokens, at most 720 can be tried"):
        explore(spec, symmetry=True)


@frozen
class Letter:
    to: Annotated[str, Token]
    text: Annotated[str, Opaque] = ""
    count: Annotated[int, Opaque] = 0


def test_a_token_is_exchanged_wherever_it_is_carried() -> None:
    swap = Interchangeable("a", "b").exchange(0, 1)
    assert swap.value(Letter("a", "b")) == Letter("b", "a")
    assert swap.value(Letter("c", "dear a", 1)) == Letter("c", "dear a", 1)
    assert swap.then(swap).value(Letter("a")) == Letter("a")
    assert swap.inverse.value(Letter("b")) == Letter("a")
