"""The graph of a system with what liveness asks about it: where formulas hold, as arrays over nodes and edges."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Protocol

import attrs
import numpy as np

from turnproof.checkers.columns import Array
from turnproof.checkers.liveness import Assumption, Edges, Lasso, Region, find_lasso, reachable, without_fair_run
from turnproof.checkers.network.walk import Choice
from turnproof.machines.kernel import Formula, formula, show, variables
from turnproof.specs.language import EventuallyAlways, Fair, LeadsTo, Property, Said
from turnproof.specs.system_words import Received, acted, reads_step


def read_by(properties: Iterable[Property]) -> tuple[list[Formula], list[Formula]]:
    """The formulas over states, and over steps, that judging these properties will ask for."""
    nodes: list[Formula] = []
    edges: list[Formula] = []
    for prop in properties:
        if isinstance(prop, LeadsTo):
            for side in (formula(prop.first, prop.name), formula(prop.then, prop.name)):
                (edges if reads_step(side) else nodes).append(side)
        elif isinstance(prop, EventuallyAlways):
            nodes.append(formula(prop.holds, prop.name))
        else:
            continue
        nodes += [formula(fair.enabled, fair.name) for fair in prop.fairness]
        edges += [formula(fair.taken, fair.name) for fair in prop.fairness]
    return nodes, [*edges, ACTED]


ACTED = formula(acted() >= 1, "acted")


class Labels(Protocol):
    """What an engine gives for liveness. Node 0 is the initial state."""

    @property
    def edges(self) -> Edges:
        """Every step, stutters included."""

    @property
    def known(self) -> Array:
        """Node -> whether all its steps are edges: False where a step was cut off at a bound."""

    def nodes_where(self, node: Formula) -> Array:
        """Node -> whether a formula over states holds."""

    def edges_where(self, node: Formula) -> Array:
        """Edge -> whether a formula over steps holds."""

    def choice(self, edge: int) -> Choice:
        """What began the step of an edge."""


@attrs.frozen(eq=False)
class Judgement:
    """What liveness found: a lasso; or why the property says nothing; or that what follows is not known."""

    lasso: Lasso | None = None
    vacuous: str = ""
    unknown: bool = False


def judge(labels: Labels, prop: LeadsTo | EventuallyAlways) -> Judgement:
    """Decide a promise about the future. A lasso is shortest, and fair by itself."""
    region = leads_to(labels, prop) if isinstance(prop, LeadsTo) else eventually_always(labels, prop)
    fairness = [assumption(labels, fair) for fair in prop.fairness]
    lasso = find_lasso(labels.edges, attrs.evolve(region, nodes=region.nodes & labels.known), fairness)
    if lasso is not None:
        return Judgement(lasso)
    idle = [fair.name for fair in fairness if not fair.enabled.any()]
    if idle:
        return Judgement(vacuous=f"vacuous: the fairness assumption {idle[0]!r} is enabled nowhere: drop it, or correct its condition")
    entered = entries(labels.edges, region)
    if isinstance(prop, LeadsTo):
        vacuous = _vacuous(labels, prop, region, entered, fairness)
        if vacuous:
            return Judgement(vacuous=vacuous)
    kept = region.edges & region.nodes[labels.edges.source] & region.nodes[labels.edges.target]
    return Judgement(unknown=bool((reachable(labels.edges, kept, entered) & ~labels.known).any()))


def _vacuous(labels: Labels, prop: LeadsTo, region: Region, entered: Array, fairness: Sequence[Assumption]) -> str:
    if not (region.starts.any() or region.start_edges.any()):
        return f"vacuous: `{show(prop.first)}` is never reached"
    if not entered.any():
        return f"vacuous: wherever `{show(prop.first)}` holds, `{show(prop.then)}` holds already: write an Always or a Step"
    stuck = entered & without_fair_run(labels.edges, fairness, unknown=~labels.known)
    if stuck.any():
        names = ", ".join(repr(fair.name) for fair in prop.fairness)
        where = f"from {int(stuck.sum()):,} states where `{show(prop.first)}` holds"
        return f"vacuous: it holds for want of runs: {where} no run can satisfy {names}"
    return ""


def entries(edges: Edges, region: Region) -> Array:
    """The nodes in which a bad run may begin its stay."""
    starts = region.starts & region.nodes
    starts[edges.target[region.start_edges & region.edges]] = True
    starts &= region.nodes
    return starts


def assumption(labels: Labels, fair: Fair) -> Assumption:
    """A fairness assumption over nodes and edges. A step that changes nothing and has no effect is a stutter, never a step taken.

    (Unless the assumption asks for an event to be ignored or refused, which changes nothing.)
    """
    taken = formula(fair.taken, fair.name)
    does = labels.edges_where(taken)
    if not any(isinstance(v, Received) and v.said in (Said.IGNORED, Said.REFUSED) for v in variables(taken)):
        does = does & ((labels.edges.source != labels.edges.target) | labels.edges_where(ACTED))
    return Assumption(fair.name, labels.nodes_where(formula(fair.enabled, fair.name)), does, fair.strong)


def places(labels: Labels, node: Formula) -> tuple[Array, Array]:
    """Where a formula holds: nodes, and edges. One about steps holds of no node."""
    nodes, edges = np.zeros(labels.edges.nodes, dtype=np.bool_), np.zeros(len(labels.edges.source), dtype=np.bool_)
    return (nodes, labels.edges_where(node)) if reads_step(node) else (labels.nodes_where(node), edges)


def leads_to(labels: Labels, prop: LeadsTo) -> Region:
    """Where a run that breaks ``prop`` stays: ``first`` held, and ``then`` has not since."""
    first_nodes, first_edges = places(labels, formula(prop.first, prop.name))
    then_nodes, then_edges = places(labels, formula(prop.then, prop.name))
    return Region(nodes=~then_nodes, edges=~then_edges, starts=first_nodes, start_edges=first_edges)


def eventually_always(labels: Labels, prop: EventuallyAlways) -> Region:
    """A run that breaks ``prop`` comes back again and again to where it does not hold."""
    nodes, edges = labels.edges.nodes, len(labels.edges.source)
    starts = np.zeros(nodes, dtype=np.bool_)
    starts[0] = True
    bad = ~labels.nodes_where(formula(prop.holds, prop.name))
    return Region(nodes=np.ones(nodes, dtype=np.bool_), edges=np.ones(edges, dtype=np.bool_), starts=starts,
                  start_edges=np.zeros(edges, dtype=np.bool_), visit=bad)  # fmt: skip
