"""The compiled walk against the plain one on random systems: same states, steps, levels, answers, traces, edges, verdicts."""

from __future__ import annotations

import random
from collections import Counter
from typing import Any

import attrs
import pytest
from random_systems import Maker, Phase, described

from turnproof.checkers.liveness import Edges
from turnproof.checkers.network import arrays, compiled, promises, shard
from turnproof.checkers.network.compiled import CompiledWalk
from turnproof.checkers.network.compiled_labels import CompiledLabels
from turnproof.checkers.network.explicit import explore, judge_property, violation
from turnproof.checkers.network.plain import PlainWalk
from turnproof.checkers.network.plain_labels import PlainLabels
from turnproof.checkers.network.questions import ACTED
from turnproof.checkers.network.run import Runner
from turnproof.checkers.network.triggers import triggers
from turnproof.checkers.network.walk import Limits, Over, Question, Walk, replay
from turnproof.specs.language import EventuallyAlways, Fair, LeadsTo
from turnproof.specs.system import System, SystemSpec

SEEDS = range(90)
BIG = 1_500
"""States beyond which a random system is left out: the plain walk is slow."""


def asked(maker: Maker, system: System) -> tuple[Question, ...]:
    states = [Question(("state", "", n), maker.state_formula(system), Over.STATE) for n in range(4)]
    steps = [Question(("step", "", n), maker.step_formula(system), Over.STEP) for n in range(6)]
    return (*states, *steps, *(Question(("stuck", "", n), maker.state_formula(system), Over.STUCK) for n in range(2)))


def plainly(seed: int) -> tuple[PlainWalk, Walk, tuple[Question, ...]]:
    maker = Maker(seed)
    system = maker.system()
    runner = Runner(system, counter=1)
    questions = asked(maker, system)
    plain = PlainWalk(runner, triggers(system, tokens=2, counter=1), questions)
    return plain, plain.run(Limits(states=BIG)), questions


def summary(walk: Walk) -> dict[str, Any]:
    """Everything two engines must agree on."""
    return {
        "states": walk.states,
        "transitions": walk.transitions,
        "levels": walk.levels,
        "cut": walk.cut,
        "taken": walk.taken,
        "hits": {key: len(trace()) for key, trace in walk.hits.items()},
        "flaws": {fault: len(flaw.trace) for fault, flaw in walk.flaws.items()},
        "coverage": None if walk.flaws else {(h.part, h.event, h.state, h.said, h.row) for h in walk.handled},
        "wires": None if walk.flaws else (walk.wires, walk.copies),
    }


def test_random_systems_agree() -> None:
    met: Counter[str] = Counter()
    for seed in SEEDS:
        plain, expected, questions = plainly(seed)
        if not expected.complete:
            continue
        found = CompiledWalk(plain.runner, plain.triggers, questions, threads=1).run(Limits())
        assert summary(found) == summary(expected), f"seed {seed}"
        for trace in found.hits.values():
            replay(plain.runner, trace())
        met.update([*described(plain.runner.system).split(), *(f.name for f in expected.flaws), *(k[0] for k in expected.hits)])
        met.update({"cut": expected.cut > 0, "large": expected.states > 100})
    wanted = ("Wire", "Empties", "reordered", "lossy", "droppable", "held", "monitor", "switch", "budget", "state", "step", "stuck")
    assert all(met[feature] > 3 for feature in (*wanted, "cut", "large", "OVERFLOW", "ENDLESS", "HOLE", "UNRECEIVED")), met


@pytest.mark.parametrize(
    "changed",
    [
        {"arrays.KEY_BITS": 5, "shard.NARROW": 0},
        {"arrays.KEY_BITS": 9},
        {"shard.NARROW": 0},
        {"compiled.CHUNK": 3, "compiled.ROOM": 8, "compiled.RECENT": 2, "arrays.MISSING_ROOM": 2},
        {"compiled.ALONE": 0, "compiled.CHUNK": 16, "shard.SMALLEST": 4, "shard.NARROW": 0},
        {"compiled.ROW": 1},
        {"compiled.ROW": 3, "arrays.KEY_BITS": 9},
    ],
    ids=["many words", "several words", "hash set", "small chunks", "two threads", "outcomes by hash", "some outcomes by hash"],
)
def test_layout_chunks_and_threads_change_nothing(changed: dict[str, int], monkeypatch: pytest.MonkeyPatch) -> None:
    modules = {"arrays": arrays, "shard": shard, "compiled": compiled}
    for place, value in changed.items():
        module, name = place.split(".")
        monkeypatch.setattr(modules[module], name, value)
    words = 0
    for seed in random.Random(str(changed)).sample(SEEDS, 20):
        plain, expected, questions = plainly(seed)
        if expected.complete:
            walked = CompiledWalk(plain.runner, plain.triggers, questions, threads=2 if "compiled.ALONE" in changed else 1)
            assert summary(walked.run(Limits())) == summary(expected), f"seed {seed}"
            words = max(words, walked.arrays.layout.words)
            if "compiled.ROW" in changed:
                # Outcomes of steps are remembered only where no question is about steps.
                few = tuple(q for q in questions if q.over is not Over.STEP)
                again = summary(CompiledWalk(plain.runner, plain.triggers, few, threads=1).run(Limits()))
                assert again | {"hits": 0, "coverage": 0} == summary(expected) | {"hits": 0, "coverage": 0}, f"seed {seed}"
    assert (words > 1) is ("arrays.KEY_BITS" in changed)


def edges_by_value(edges: Edges, world: Any, label: Any, masks: list[Any], known: Any) -> Counter[Any]:
    rows = zip(edges.source.tolist(), edges.target.tolist(), label, zip(*(m.tolist() for m in masks), strict=True), strict=True)
    return Counter((world(s), world(t), trigger, holds, bool(known[s])) for s, t, trigger, holds in rows)


def test_edges_and_what_holds_of_them_agree() -> None:
    compared = 0
    for seed in SEEDS:
        plain, expected, questions = plainly(seed)
        if not expected.complete or expected.states > 100:
            continue
        steps = [*{q.holds: q.holds for q in questions if q.over is Over.STEP}, ACTED]
        nodes = [q.holds for q in questions if q.over is Over.STATE]
        walked = CompiledWalk(plain.runner, plain.triggers, questions, threads=1)
        walked.run(Limits())
        mine, theirs = PlainLabels(plain), CompiledLabels(walked, nodes, steps)

        def place(node: int, theirs: CompiledLabels = theirs, walked: CompiledWalk = walked) -> Any:
            s = next(s for s in reversed(theirs.order) if theirs.offset[s] <= node)
            return walked.world(s, node - theirs.offset[s])

        plain_triggers = [plain.triggers.index(choice.trigger) for choice in mine.choices]
        assert edges_by_value(
            theirs.edges, place, theirs.label.tolist(), [theirs.edges_where(f) for f in steps], theirs.known
        ) == edges_by_value(mine.edges, plain.worlds.__getitem__, plain_triggers, [mine.edges_where(f) for f in steps], mine.known), (
            f"seed {seed}"
        )
        for formula in nodes:
            assert {place(n) for n in theirs.nodes_where(formula).nonzero()[0].tolist()} == {
                plain.worlds[n] for n in mine.nodes_where(formula).nonzero()[0].tolist()
            }
        assert place(0) == plain.worlds[0]
        compared += len(mine.choices)
    assert compared > 1_000, compared


def promise(maker: Maker, system: System) -> LeadsTo | EventuallyAlways:
    first: Any = maker.state_formula(system) if maker.some(0.7) else maker.step_formula(system)
    then: Any = maker.state_formula(system) if maker.some(0.8) else maker.step_formula(system)
    fairness = []
    for n in range(maker.pick(0, 0, 1, 2)):
        enabled: Any = maker.state_formula(system)
        taken: Any = maker.step_formula(system)
        fairness.append(Fair(f"fair {n}", enabled, taken, strong=maker.some(0.4)))
    if maker.some(0.4):
        # Of this assumption nothing but its condition matters: no step that takes it ends where it is enabled. Of the second more does.
        part, phase = maker.pick(*system.parts), maker.pick(*Phase)
        fairness.append(Fair("goes on", part.now.phase == phase, part.next.phase != phase))
        fairness.append(Fair("moves", part.now.size == 0, part.next.phase != phase))
    if maker.some(0.2):
        held: Any = maker.state_formula(system)
        return EventuallyAlways("a promise", held, fairness=tuple(fairness), requirements=())
    return LeadsTo("a promise", first, then, fairness=tuple(fairness), requirements=())


def test_promises_about_the_future_agree_and_lassos_replay(monkeypatch: pytest.MonkeyPatch) -> None:
    """In half of the systems the lasso is looked for near the initial state first, as in large ones."""
    seen: Counter[tuple[str, bool]] = Counter()
    for seed in SEEDS:
        monkeypatch.setattr(promises, "SHALLOW", 0 if seed % 2 else 100_000)
        maker = Maker(seed)
        system = maker.system()
        prop = promise(maker, system)
        spec = SystemSpec(system=system, requirements={}, properties=(prop,), counter=1)
        plain = explore(spec, engine="plain", limit=300)
        if not plain.walk.complete or plain.walk.flaws:
            continue
        walked = explore(spec, engine="compiled", threads=1)
        expected, found = violation(plain, prop), violation(walked, prop)
        assert (found is None) == (expected is None), f"seed {seed}"
        if found is not None and expected is not None:
            assert found.story.length == expected.story.length, f"seed {seed}"
        mine, theirs = judge_property(walked, prop), judge_property(plain, prop)
        assert (mine.outcome, mine.detail) == (theirs.outcome, theirs.detail)
        seen[type(prop).__name__, found is None] += 1
    assert len(seen) == 4, f"of each kind of promise some are kept and some broken: {seen}"
    assert min(seen.values()) > 2, seen


def test_a_planted_difference_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tables that lose the last thing a part sends: the comparison above notices, or the replay of what was found does."""
    from turnproof.checkers.network.tables import Tables

    real = Tables._handled

    def losing(self: Tables, *given: Any) -> Any:
        made = real(self, *given)
        return attrs.evolve(made, outs=made.outs[:-1]) if made.outs else made

    monkeypatch.setattr(Tables, "_handled", losing)
    different = caught = 0
    for seed in range(30):
        plain, expected, questions = plainly(seed)
        if expected.complete and not expected.flaws:
            try:
                found = CompiledWalk(plain.runner, plain.triggers, questions, threads=1).run(Limits())
            except RuntimeError as error:
                assert "when it is replayed" in str(error)  # noqa: PT017
                caught += 1
            else:
                different += summary(found) != summary(expected)
    assert different > 2
    assert caught > 0
