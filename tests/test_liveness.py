"""Liveness, where home-made checkers go wrong: one tiny model for each known mistake, and a brute-force oracle for the rest."""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable, Iterator, Sequence

import attrs
import numpy as np
import pytest
from lasso_models import Model

from turnproof.checkers.liveness import Assumption, Region, find_lasso, without_fair_run


def test_an_unfair_cycle_is_no_violation() -> None:
    """fabracht/tla-rs#59: 0 may go to itself by way of 1 for ever, but then `go` is for ever enabled and never taken."""
    model = Model([(0, 1, "idle"), (1, 0, "idle"), (0, 2, "go"), (1, 2, "go")], 3)
    assert model.leads_to({0}, {2}, model.fair("go")) is None
    assert model.told(model.leads_to({0}, {2})) == ([0], [])


def test_fairness_is_judged_on_the_cycle_that_is_shown() -> None:
    """fabracht/tla-rs#59, #62: one component is fair as a whole, but the cycle inside the region is not.

    0 and 1 turn round each other (`hold`), `free` leads to 2 and `again` back. Everything is one component, and in it `free` is
    taken; only a cycle that avoids 2 would violate the promise, and that cycle never takes `free`.
    """
    model = Model([(0, 1, "hold"), (1, 0, "hold"), (0, 2, "free"), (1, 2, "free"), (2, 0, "again")], 3)
    assert model.leads_to({0}, {2}, model.fair("free")) is None


def test_the_cycle_shown_is_fair_by_itself() -> None:
    """A component may contain both fair and unfair cycles: the short one, 0 1, never takes `serve`; the one shown must."""
    model = Model([(0, 1, "a"), (1, 0, "a"), (1, 2, "serve"), (2, 1, "b"), (0, 2, "serve"), (0, 3, "out")], 4)
    fair = model.fair("serve")
    lasso = model.leads_to({0}, {3}, fair, model.fair("b"))
    assert lasso is not None
    assert any(fair.taken[edge] for edge in lasso.cycle)
    assert model.told(lasso) in (([0], [2, 1, 0]), ([0, 2], [1, 2]), ([0, 1], [2, 1]))


def test_a_stutter_is_no_step_taken() -> None:
    """fabracht/tla-rs#63, #65: `grow` may also leave 0 as it is; staying there for ever does not serve it."""
    model = Model([(0, 0, "grow"), (0, 1, "grow")], 2)
    assert model.leads_to({0}, {1}, model.fair("grow")) is None


def test_eventually_always_is_not_dropped() -> None:
    """fabracht/tla-rs#62: from some moment on only 1: violated by turning round for ever, kept where 1 is never left."""
    turning = Model([(0, 1, "a"), (1, 0, "a")], 2)
    assert turning.told(turning.eventually_always({1}, turning.fair("a"))) == ([0], [1, 0])
    resting = Model([(0, 1, "a"), (1, 1, "a")], 2)
    assert resting.eventually_always({1}, resting.fair("a")) is None
    assert resting.told(resting.eventually_always({1})) == ([0], []), "without fairness the run may stop in 0"


def test_a_run_may_stop_for_ever_where_nothing_is_fair() -> None:
    """fabracht/tla-rs#62: the implicit stutter. The one edge that leaves 0 need not be taken."""
    model = Model([(0, 1, "step")], 2)
    assert model.told(model.leads_to({0}, {1})) == ([0], [])
    assert model.leads_to({0}, {1}, model.fair("step")) is None


def test_what_is_shown_is_a_cycle_and_no_component() -> None:
    """fabracht/tla-rs#64, #66: 0 1 2 is one component with edges in one direction only; the cycle must follow them."""
    model = Model([(0, 1, "a"), (1, 2, "a"), (2, 0, "a"), (2, 3, "out")], 4)
    assert model.told(model.leads_to({0}, {3}, model.fair("a"))) == ([0], [1, 2, 0])
    stuck = Model([(0, 1, "a"), (1, 2, "a"), (2, 0, "a"), (0, 0, "a")], 3)
    assert stuck.told(stuck.eventually_always({1, 2})) == ([0], []), "one state with its stutter is the shortest witness"


def test_the_edges_of_a_component_count_not_its_states() -> None:
    """tlaplus/tlaplus#201: A is x' = (x + 1) % 3, B is x' in 0..2, A is weakly fair. That A is taken again and again then holds.

    Both directions are edges between the same states; only those of A serve its fairness.
    """
    a, b = [(x, (x + 1) % 3, "A") for x in range(3)], [(x, y, "B") for x in range(3) for y in range(3) if x != y]
    model = Model([*a, *b], 3)
    fair = model.fair("A")
    region = attrs.evolve(model.region(starts={0}, stays={0, 1, 2}), edges=~fair.taken)
    assert find_lasso(model.graph(), region, [fair]) is None
    assert model.told(find_lasso(model.graph(), region, [])) == ([0], [])


def test_the_lasso_is_the_shortest_one() -> None:
    """A near cycle is long and a far one short: stem and cycle together decide."""
    near = [(0, 1, "go"), (1, 2, "go"), (2, 3, "go"), (3, 0, "go")]
    far = [(0, 4, "go"), (4, 5, "go"), (5, 4, "go")]
    model = Model([*near, *far], 7)
    assert model.told(model.leads_to({0}, {6}, model.fair("go"))) == ([0, 4], [5, 4])
    farther = Model([*near, (0, 4, "go"), (4, 5, "go"), (5, 6, "go"), (6, 5, "go")], 8)
    assert len(farther.told(farther.leads_to({0}, {7}, farther.fair("go")))[1]) in (4, 2)
    assert farther.leads_to({0}, {7}, farther.fair("go")).length == 4  # type: ignore[union-attr]


def test_weak_fairness_is_weaker_than_strong() -> None:
    """`grab` is enabled in 0 only, and the run alternates between 0 and 1: never enabled for good, but again and again."""
    model = Model([(0, 1, "turn"), (1, 0, "turn"), (0, 2, "grab")], 3)
    turning = model.fair("turn")
    assert model.told(model.leads_to({0}, {2}, turning, model.fair("grab"))) == ([0], [1, 0])
    assert model.leads_to({0}, {2}, turning, model.fair("grab", strong=True)) is None


def test_strong_fairness_is_served_by_staying_where_it_is_not_enabled() -> None:
    """The component 0 1 2 enables `grab` in 0 and never takes it, but 1 2 alone does not enable it: found only by taking it apart."""
    model = Model([(0, 1, "a"), (1, 2, "a"), (2, 1, "a"), (2, 0, "a"), (0, 3, "grab")], 4)
    assert model.told(model.leads_to({0}, {3}, model.fair("a"), model.fair("grab", strong=True))) == ([0, 1], [2, 1])


def test_where_no_fair_run_goes_on_is_known() -> None:
    """tlaplus/tlaplus#839: a bound cut the only step that could serve the assumption, so every promise would hold for want of runs."""
    model = Model([(0, 1, "a")], 2)
    cut = Assumption("never taken", np.array([True, True]), np.array([False]))
    assert without_fair_run(model.graph(), [cut], unknown=np.array([False, False])).tolist() == [True, True]
    assert without_fair_run(model.graph(), [cut], unknown=np.array([False, True])).tolist() == [False, False]
    assert without_fair_run(model.graph(), [model.fair("a")], unknown=np.array([False, False])).tolist() == [False, False]


# ── against brute force ──

LONGEST = 5
"""Edges of the lassos that brute force tries."""


def walks(model: Model, length: int) -> Iterator[list[int]]:
    """Every path of at most ``length`` edges from node 0, shortest first."""
    paths: list[list[int]] = [[]]
    for _ in range(length + 1):
        yield from paths
        paths = [[*p, n] for p in paths for n, e in enumerate(model.edges) if e[0] == (model.edges[p[-1]][1] if p else 0)]


Breaks = Callable[[Sequence[int], Sequence[int], int], bool]
"""nodes, edges, place of the turn: whether the walk that goes on from its end as from its turn breaks the promise."""


def brute_force(model: Model, breaks: Breaks, fairness: Sequence[Assumption], longest: int) -> int | None:
    """Length of the shortest fair lasso that breaks the promise, by trying all of them."""
    for path in walks(model, longest):
        nodes = [0, *(model.edges[n][1] for n in path)]
        for turn in range(len(path) + 1):
            if nodes[turn] == nodes[-1] and breaks(nodes, path, turn) and all(is_fair(a, nodes[turn:], path[turn:]) for a in fairness):
                return len(path)
    return None


def is_fair(assumption: Assumption, nodes: Sequence[int], cycle: Sequence[int]) -> bool:
    enabled = [bool(assumption.enabled[n]) for n in nodes]
    return any(assumption.taken[e] for e in cycle) or not (any(enabled) if assumption.strong else all(enabled))


def never_led_to(first: Sequence[bool], then: Sequence[bool], turn: int) -> bool:
    """Whether ``first`` holds at a moment from which on, the loop from ``turn`` on included, ``then`` does not."""
    last = max((n for n, held in enumerate(then) if held), default=-1)
    return last < turn and any(first[last + 1 :])


@attrs.frozen
class Moments:
    """Nodes and edges at which something holds."""

    nodes: set[int]
    edges: set[int]

    def along(self, nodes: Sequence[int], path: Sequence[int]) -> list[bool]:
        """Node, edge, node, edge, ..., node: where it holds."""
        held = ((n in self.nodes, e in self.edges) for n, e in zip(nodes, [*path, -1], strict=True))
        return [h for pair in held for h in pair][:-1]


def leads_to(first: Moments, then: Moments) -> Breaks:
    return lambda nodes, path, turn: never_led_to(first.along(nodes, path), then.along(nodes, path), 2 * turn)


def again_and_again(bad: set[int]) -> Breaks:
    return lambda nodes, path, turn: any(n in bad for n in nodes[turn:])


def random_moments(chance: random.Random, model: Model, often: float) -> Moments:
    """Some nodes, or some edges."""
    nodes, edges = ({n for n in range(size) if chance.random() < often} for size in (model.nodes, len(model.edges)))
    return Moments(nodes, set()) if chance.random() < 0.5 else Moments(set(), edges)


def random_question(chance: random.Random, model: Model) -> tuple[Region, Breaks]:
    """A promise about states or steps, or about what holds from some moment on; and how brute force sees it broken."""
    nodes, edges = set(range(model.nodes)), np.arange(len(model.edges))
    if chance.random() < 0.3:
        bad = {n for n in nodes if chance.random() < 0.5}
        return model.region(starts={0}, stays=nodes, visit=bad), again_and_again(bad)
    first, then = random_moments(chance, model, 0.6), random_moments(chance, model, 0.3)
    region = model.region(starts=first.nodes, stays=nodes - then.nodes)
    region = attrs.evolve(region, edges=~np.isin(edges, list(then.edges)), start_edges=np.isin(edges, list(first.edges)))
    return region, leads_to(first, then)


@pytest.mark.parametrize("seed", range(4))
def test_random_models_agree_with_brute_force(seed: int) -> None:
    chance = random.Random(seed)
    answers = {"none": 0, "stutter": 0, "cycle": 0}
    for _ in range(250):
        nodes = chance.randint(2, 4)
        pairs = list(itertools.product(range(nodes), range(nodes)))
        model = Model([(*chance.choice(pairs), chance.choice("abc")) for _ in range(chance.randint(3, 8))], nodes)
        fairness = [model.fair(label, strong=chance.random() < 0.5) for label in "abc" if chance.random() < 0.7]
        region, breaks = random_question(chance, model)
        found, expected = find_lasso(model.graph(), region, fairness), brute_force(model, breaks, fairness, LONGEST)
        told = (model, region, fairness)
        if found is not None:
            before, cycle = model.told(found)
            assert breaks([*before, *cycle], [*found.prefix, *found.cycle], len(found.prefix)), told
            assert all(is_fair(a, [before[-1], *cycle], found.cycle) for a in fairness), told
            assert found.shortest
        if expected is not None or (found is not None and found.length <= LONGEST):
            assert found is not None, told
            assert found.length == expected, told
        answers["none" if found is None else "cycle" if found.cycle else "stutter"] += 1
    assert min(answers.values()) > 30, f"the sample is one-sided: {answers}"
