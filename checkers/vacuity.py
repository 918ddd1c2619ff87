"""A property that cannot fail shows nothing: here each way in which one that holds may hold for want of a case.

* the antecedent of an implication is never reached;
* the types alone imply it: it is true of every combination of values, whatever the machine does;
* no fair run goes on from where a promise about the future is made, or nothing is ever pending;
* a fairness assumption is enabled nowhere.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import cast

import numpy as np

from turnproof.checkers.judge import Judge
from turnproof.checkers.liveness import without_fair_run
from turnproof.checkers.type_shape import implied_by_types
from turnproof.checkers.words import is_about_steps
from turnproof.machines.kernel import Formula, conjuncts, formula, show
from turnproof.specs.language import Always, Carries, EventuallyAlways, Fair, LeadsTo, Order, Property, Step, effect_name


def why_vacuous(judge: Judge, prop: Property) -> str:
    """Why ``prop``, which holds, shows nothing; empty if it does show something."""
    if isinstance(prop, (Always, Step)):
        return "; ".join(_antecedents(judge, prop)) or _types(judge, prop)
    if isinstance(prop, Order):
        alone = judge.never_beside_another(prop)
        other = effect_name(prop.second) if prop.rest == () and prop.first in alone else "another of its effects"
        return f"vacuous: no step that it speaks of emits both {effect_name(alone[0])} and {other}" if alone else ""
    if isinstance(prop, Carries):
        there = f"in which {prop.carrier.__name__}.{prop.field} is carried"
        return "" if judge.steps_that_carry(prop).any() else f"vacuous: no step that it speaks of is taken {there}"
    if isinstance(prop, LeadsTo):
        return "; ".join(_future(judge, prop))
    if isinstance(prop, EventuallyAlways):
        return "; ".join(_fairness(judge, prop.fairness))
    return ""


def antecedents(prop: Always | Step) -> Iterator[object]:
    """The conditions under which the conjuncts of ``prop`` say anything."""
    for part in map(_bare, conjuncts(_bare(formula(prop.holds, f"property {prop.name!r}")))):
        if part.op == "implies":
            yield part.args[0]


def _antecedents(judge: Judge, prop: Always | Step) -> Iterator[str]:
    evaluate = judge.evaluation.states_where if isinstance(prop, Always) else judge.evaluation.steps_where
    for antecedent in antecedents(prop):
        if not evaluate(antecedent, f"property {prop.name!r}").any():
            yield f"vacuous: the antecedent `{show(antecedent)}` is never reached"


def _bare(node: Formula) -> Formula:
    while node.op == "named":
        node = cast(Formula, node.args[1])
    return node


def _types(judge: Judge, prop: Always | Step) -> str:
    implied = implied_by_types(judge.graph, prop.holds, f"property {prop.name!r}", step=isinstance(prop, Step))
    return (
        f"vacuous: the types alone imply it; it is true of all {implied:,} combinations of values, whatever the machine does"
        if implied
        else ""
    )


def _future(judge: Judge, prop: LeadsTo) -> Iterator[str]:
    where = f"property {prop.name!r}"
    region = judge.leads_to(prop)
    if not (region.starts.any() or region.start_edges.any()):
        yield f"vacuous: `{show(prop.first)}` is never reached"
        return
    starts = region.starts.copy()
    starts[judge.edges.target[region.start_edges]] = True
    pending = (region.starts & region.nodes).any() or (region.start_edges & region.edges & region.nodes[judge.edges.target]).any()
    if not pending:
        kind = "step" if is_about_steps(prop.first) else "state"
        yield f"vacuous: in every {kind} where `{show(prop.first)}` holds, `{show(prop.then)}` holds already: write an Always or a Step"
    yield from _fairness(judge, prop.fairness)
    assumptions = [judge.assumption(fair) for fair in prop.fairness]
    stuck = starts & without_fair_run(judge.edges, assumptions, unknown=~judge.expanded)
    if stuck.any():
        names = ", ".join(repr(fair.name) for fair in prop.fairness)
        node = int(np.flatnonzero(stuck)[0])
        yield (
            f"vacuous: {where} holds for want of runs; in {int(stuck.sum()):,} states where `{show(prop.first)}` holds, the first "
            f"{int(judge.graph.depth[node])} events from the start, no run can satisfy {names}"
        )


def _fairness(judge: Judge, fairness: tuple[Fair, ...]) -> Iterator[str]:
    for fair in fairness:
        if not judge.assumption(fair).enabled.any():
            yield f"vacuous: the fairness assumption {fair.name!r} is enabled nowhere: drop it, or correct its condition"


__all__ = ["antecedents", "why_vacuous"]
