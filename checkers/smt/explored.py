"""What the explored graph says about the statements of a proof: the other half of "explicit and symbolic do not contradict".

Statements are evaluated as the z3 terms they are, on every explored state and step. Where one is false, the Python reading of the
property is asked about that very step, replayed through ``machine.step``; a violation is reported only if both say so.
"""

from __future__ import annotations

from collections.abc import Mapping

import attrs
import numpy as np

from turnproof.checkers.predicates import Predicates
from turnproof.checkers.progress import Progress
from turnproof.checkers.smt.agreement import effects_text, state_text
from turnproof.checkers.smt.evaluate import Column, Evaluator
from turnproof.checkers.smt.grid import Grid
from turnproof.checkers.smt.z3api import Expr
from turnproof.checkers.written import show_event
from turnproof.machines.kernel import Taken
from turnproof.specs.language import Said


@attrs.frozen
class Found:
    """Where a statement is false: a node, and for a step its event (-1 for a state). ``sure``: the Python reading says so too."""

    node: int
    event: int
    times: int
    sure: bool
    words: str


def states_against(grid: Grid, terms: Mapping[str, tuple[Expr, object]]) -> Mapping[str, Found]:
    """Name -> the first node that violates it; statements that hold everywhere are left out. Each is a term and its formula."""
    evaluator = Evaluator({f"now.{name}": column for name, column in grid.now.items()}, nodes=grid.nodes)
    found: dict[str, Found] = {}
    predicates = Predicates(grid.graph.machine, grid.graph.spec.histories)
    for name, (term, node_formula) in terms.items():
        wrong = np.flatnonzero(~_truth(evaluator.column(term), len(grid.graph.states)))
        if wrong.size:
            node = int(wrong[0])
            state, pasts = grid.graph.states[node], grid.graph.pasts[node]
            sure = node_formula is not None and not predicates.test(node_formula)(state, pasts, None, Said.TAKEN, (), state, pasts)
            words = f"reached in {int(grid.graph.depth[node])} steps: {state_text(grid.graph, state)}"
            found[name] = Found(node, -1, int(wrong.size), sure, words)
    return found


def steps_against(grid: Grid, terms: Mapping[str, tuple[Expr, object]], progress: Progress) -> Mapping[str, Found]:
    """Name -> the first step that violates it."""
    found: dict[str, Found] = {}
    wanted = {f"next.{name}" for name in grid.now}
    for number, event in enumerate(grid.graph.events):
        progress.say("proof: claims on the graph", number, len(grid.graph.events))
        symbols = {**grid.before(), **grid.other_inputs(), **grid.inputs(event), **grid.words(number, wanted)}
        evaluator = Evaluator({**symbols, **grid.counts(number, Evaluator(symbols, nodes=grid.nodes))}, nodes=grid.nodes, lazy=True)
        allowed = grid.graph.row[number] >= 0
        for name, (term, node_formula) in terms.items():
            wrong = np.flatnonzero(allowed & ~_truth(evaluator.column(term), grid.graph.explored))
            if wrong.size:
                known = found.get(name)
                times = int(wrong.size) + (known.times if known else 0)
                found[name] = attrs.evolve(known, times=times) if known else _step(grid, number, int(wrong[0]), times, node_formula)
    return found


def _truth(column: Column, length: int) -> Column:
    return np.broadcast_to(column.astype(np.bool_), length)


def _step(grid: Grid, number: int, node: int, times: int, node_formula: object) -> Found:
    graph = grid.graph
    state, event, pasts = graph.states[node], graph.events[number], graph.pasts[node]
    answer = graph.machine.step(state, event)
    after = answer.state if isinstance(answer, Taken) else state
    effects = answer.effects if isinstance(answer, Taken) else ()
    said, past_after = Said(answer.row.answer), graph.pasts[graph.successor[number, node]]
    test = Predicates(graph.machine, graph.spec.histories).test(node_formula)
    sure = not test(state, pasts, event, said, effects, after, past_after)
    words = f"{show_event(event)} in {state_text(graph, state)}: row {answer.row.name}, {said.value}, emits {effects_text(effects)}"
    return Found(node, number, times, sure, words)
