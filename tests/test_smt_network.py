"""A system's steps as terms: folded terms equal plain ones, and the relation takes the steps of the explicit engine, all of them."""

from __future__ import annotations

import random
from typing import Any

import attrs
import numpy as np
import pytest
from network_terms import DEFECTS, compared, formulas, handled
from random_systems import Maker, described
from systems import CALL, CALL_SPEC, HOLDER, Caller

from turnproof.checkers.network.compiled import CompiledWalk
from turnproof.checkers.network.explicit import NetworkGraph, explore
from turnproof.checkers.network.plain import PlainWalk
from turnproof.checkers.network.run import Fault, Runner
from turnproof.checkers.network.triggers import triggers
from turnproof.checkers.network.walk import Limits
from turnproof.checkers.progress import SILENT
from turnproof.checkers.smt import z3api
from turnproof.checkers.smt.mine import Feature
from turnproof.checkers.smt_network import agreement, pieces, probe
from turnproof.checkers.smt_network.agreement import Comparison
from turnproof.checkers.smt_network.fold import Folder
from turnproof.checkers.smt_network.relation import Network
from turnproof.checkers.smt_network.search import Bits
from turnproof.checkers.smt_network.variables import Variables
from turnproof.machines.kernel import TableError
from turnproof.specs.catalog import systems
from turnproof.specs.classics import peterson, philosophers, two_phase_commit
from turnproof.specs.language import Sometimes
from turnproof.specs.system import Budget, System, SystemSpec

HELD = HOLDER.parts[0].now.phase == Caller.ANSWERED
HOLDER_SPEC = SystemSpec(system=HOLDER, requirements={}, properties=(Sometimes("it is held", HELD, requirements=()),))
TOYS: dict[str, tuple[SystemSpec, int]] = {
    "call": (CALL_SPEC, 100),
    "two_phase_commit": (two_phase_commit.SPEC, 1_097),
    "two_phase_commit_5": (two_phase_commit.specification(5), 52_611),
    "peterson": (peterson.SPEC, 62),
    "philosophers": (philosophers.SPEC, 301),
    "holder": (HOLDER_SPEC, 20),
}


@pytest.mark.parametrize("name", TOYS)
def test_every_step_of_a_small_system_is_one_of_the_terms_and_nothing_else(name: str) -> None:
    spec, steps = TOYS[name]
    edges, inside = compared(spec)
    assert (edges.differences, inside.differences) == ((), ())
    assert edges.steps == explore(spec).walk.transitions >= min(steps, 12)
    assert edges.unfollowed == 0
    assert inside.steps >= 10


@pytest.mark.parametrize("name", ["call", "two_phase_commit", "peterson"])
def test_the_plain_walk_is_read_as_the_compiled_one(name: str) -> None:
    spec, steps = TOYS[name]
    edges, inside = compared(spec, engine="plain")
    assert (edges.differences, inside.differences, edges.steps) == ((), (), steps)


@pytest.mark.soak
def test_a_million_steps_of_the_reply_registry() -> None:
    edges, inside = compared(systems()["reply_registry"], steps=1_000_000)
    assert (edges.differences, inside.differences, edges.unfollowed) == ((), (), 0)
    assert edges.steps >= 1_000_000


@pytest.mark.soak
@pytest.mark.parametrize("name", ["recovery_system", "watched_turn"])
def test_a_million_steps_of_each_large_system(name: str) -> None:
    edges, inside = compared(systems()[name], steps=1_000_000, limit=400_000)
    assert (edges.differences, inside.differences, edges.unfollowed) == ((), (), 0)
    assert edges.steps >= 1_000_000


def randomly(seed: int) -> tuple[System, NetworkGraph, dict[str, object]]:
    """A random system, walked as far as 600 states, and questions about its steps."""
    maker = Maker(seed)
    system = maker.system()
    runner, every = Runner(system, counter=1), triggers(system, tokens=2, counter=1)
    asked: dict[str, object] = {f"question {n}": maker.step_formula(system) for n in range(5)}
    engine = CompiledWalk(runner, every, (), threads=1)
    graph = NetworkGraph(CALL_SPEC, system, (), frozenset(), runner, every, engine.run(Limits(states=600)), engine)
    return system, graph, asked


@pytest.mark.soak
def test_random_systems_with_everything_there_is(monkeypatch: pytest.MonkeyPatch) -> None:
    # Many of them answer themselves for ever; a few arrivals show as much as many.
    monkeypatch.setattr("turnproof.checkers.smt_network.cascade.MOST_ARRIVALS", 10)
    features: set[str] = set()
    steps = inside = faults = 0
    for seed in range(45):
        system, graph, asked = randomly(seed)
        network = Network(system, list(asked.values()))
        questions = agreement.asked(network, asked)
        edges = agreement.edges(network, graph, questions, SILENT)
        assert (seed, edges.differences) == (seed, ())
        plain = PlainWalk(graph.runner, graph.triggers, ())
        faults += bool(plain.run(Limits(states=25)).flaws)
        found = agreement.deliveries(network, graph.runner, graph.triggers, plain.worlds[:25], Comparison(network, graph, questions))
        assert (seed, found.differences) == (seed, ())
        features |= set(described(system).split())
        steps, inside = steps + edges.steps, inside + found.steps
    assert features >= {"reordered", "lossy", "droppable", "held", "monitor", "switch", "budget", "Empties"}
    assert steps > 3_000
    assert inside > 1_000
    assert faults >= 5


# ── each can fail ──


@pytest.mark.parametrize("defect", DEFECTS)
def test_a_defect_in_one_of_the_two_is_found(defect: str) -> None:
    edges, _ = compared(CALL_SPEC, system=DEFECTS[defect])
    assert edges.differences


def test_a_defect_that_leads_to_the_same_states_is_found_by_the_rows_that_answer() -> None:
    network = Network(CALL, list(formulas(CALL_SPEC).values()))
    graph = explore(CALL_SPEC)
    questions = agreement.asked(network, formulas(CALL_SPEC))
    row = next(r for a in network.actions for r in a.rows if len(r.handled) > 1)
    arrival, other = row.handled[0], row.handled[1]
    object.__setattr__(row, "handled", (other, arrival, *row.handled[2:]))
    assert agreement.edges(network, graph, questions, SILENT).differences == ()
    assert "handled" in handled(network, graph, questions).differences[0].what


def test_what_the_solver_computes_is_what_is_evaluated() -> None:
    network = Network(CALL, list(formulas(CALL_SPEC).values()))
    graph, table = explore(CALL_SPEC), pieces.table(network)
    comparison, states = Comparison(network, graph, ()), probe.worlds(graph, 30, 1)
    assert probe.sample(network, graph, comparison, table, states, seed=1).wrong == ()
    worse = pieces.table(Network(DEFECTS["an update is off by one"], list(formulas(CALL_SPEC).values())))
    found = probe.sample(network, graph, comparison, worse, states, seed=1)
    assert found.wrong
    assert found.wrong[0].endswith("z3 says unsat and sat, expected sat and unsat")


def test_steps_beyond_what_the_terms_follow_are_no_agreement_but_a_fault(monkeypatch: pytest.MonkeyPatch) -> None:
    assert pieces.wrongs(Network(CALL)) == (Fault.OVERFLOW, Fault.DOMAIN)
    monkeypatch.setattr("turnproof.checkers.smt_network.cascade.MOST_ARRIVALS", 1)
    edges, _ = compared(CALL_SPEC)
    assert edges.differences == ()
    assert edges.unfollowed > 0
    assert pieces.wrongs(Network(CALL)) == (None,)


# ── names and values ──


def test_two_things_of_one_name_are_refused() -> None:
    first, second = CALL.spontaneous
    named = (attrs.evolve(first, budget=Budget("a b", 1)), attrs.evolve(second, budget=Budget("a-b", 1)))
    twice = attrs.evolve(CALL, spontaneous=named)
    with pytest.raises(TableError, match=r"two things are called budget.a_b"):
        Variables(twice)


def test_an_empty_slot_is_all_zeros_and_the_first_to_arrive_comes_first() -> None:
    graph = explore(CALL_SPEC, engine="plain")
    assert isinstance(graph.engine, PlainWalk)
    full = next(w for w in graph.engine.worlds if len(w.channels[0]) == 2)
    numbers = Variables(CALL).numbers(full)
    assert (numbers["replies.length"], numbers["replies.0.ReplyArrived.number"], numbers["replies.1.ReplyArrived.number"]) == (2, 1, 2)
    empty = Variables(CALL).numbers(graph.runner.initial())
    assert [n for name, n in empty.items() if name.startswith("replies.")] == [0, 0, 0]


# ── folding ──


def folded(seed: int) -> tuple[z3api.Context, z3api.Expr, z3api.Expr]:
    """A random term twice: made by the folder, and plainly."""
    chance, context = random.Random(seed), z3api.Context()
    fold = Folder(context)
    bools = [(b, b) for b in (context.symbol("p", z3api.BOOL), context.symbol("q", z3api.BOOL), fold.true, fold.false)]
    numbers = [(n, n) for n in (context.symbol("x", z3api.INT), context.symbol("y", z3api.INT), *map(context.integer, (0, 1, 2)))]
    makers: list[Any] = [
        lambda: (fold.negation, z3api.negation, "b", bools),
        lambda: (lambda a, b: fold.conjunction((a, b)), lambda a, b: z3api.conjunction((a, b)), "bb", bools),
        lambda: (lambda a, b: fold.disjunction((a, b)), lambda a, b: z3api.disjunction((a, b)), "bb", bools),
        lambda: (fold.conditional, z3api.conditional, "bbb", bools),
        lambda: (fold.conditional, z3api.conditional, "bnn", numbers),
        lambda: (fold.equal, z3api.equal, "bb", bools),
        lambda: (fold.equal, z3api.equal, "nn", bools),
        lambda: (fold.at_most, z3api.at_most, "nn", bools),
        lambda: (fold.less, z3api.less, "nn", bools),
        lambda: (fold.plus, z3api.add, "nn", numbers),
        lambda: (fold.minus, z3api.subtract, "nn", numbers),
    ]
    for _ in range(60):
        fast, slow, wants, into = chance.choice(makers)()
        given = [chance.choice(bools if w == "b" else numbers) for w in wants]
        into.append((fast(*(f for f, _ in given)), slow(*(s for _, s in given))))
    return context, fold.conjunction(f for f, _ in bools[-6:]), z3api.conjunction([s for _, s in bools[-6:]])


def test_a_folded_term_equals_the_plain_one() -> None:
    smaller = 0
    for seed in range(60):
        context, fast, slow = folded(seed)
        solver = z3api.Solver(context)
        solver.add(z3api.negation(z3api.equal(fast, slow)))
        assert (seed, solver.check()) == (seed, "unsat")
        smaller += len(z3api.text(fast)) < len(z3api.text(slow))
    assert smaller > 50


# ── candidates ──


def test_no_candidate_contradicts_an_explored_state_and_each_excludes_the_one_it_is_for() -> None:
    chance = np.random.default_rng(7)
    features = [Feature("value", (f"v{n}",), tuple((f"v{n} = {c}", f"v{n}:{c}") for c in range(3))) for n in range(6)]
    table = np.unique(chance.integers(0, 3, (40, 6)), axis=0)
    states = pieces.having(features, {f"v{n}": table[:, n] for n in range(6)})
    oracle, made = Bits(features, [[int.from_bytes(b, "little") for b in classes] for classes in states]), 0
    for _ in range(40):
        state = {f"v{n}": int(v) for n, v in enumerate(chance.integers(0, 3, 6))}
        for candidate in oracle.candidates(state, ["v0", "v1", "v2"]):
            made += 1
            assert not _true(candidate.smt, list(state.values()))
            assert all(_true(candidate.smt, row) for row in table.tolist())
    assert made > 200


def _true(smt: str, row: list[int]) -> bool:
    """The toy tests above: ``v0:2``, ``(and a b)``, ``(or a b)``, ``(not a)``, ``(=> a b)``."""
    words = smt.replace("(", " ( ").replace(")", " ) ").split()

    def term() -> bool:
        word = words.pop(0)
        if word != "(":
            name, value = word.split(":")
            return row[int(name[1:])] == int(value)
        op, parts = words.pop(0), []
        while words[0] != ")":
            parts.append(term())
        words.pop(0)
        return {"and": all(parts), "or": any(parts), "not": not parts[0], "=>": not parts[0] or parts[-1]}[op]

    return term()
