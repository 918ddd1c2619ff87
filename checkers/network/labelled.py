"""The graph of a system with what liveness asks about it: where formulas hold, as arrays over nodes and edges."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterable, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Protocol

import attrs
import numpy as np

from turnproof.checkers.columns import Array
from turnproof.checkers.liveness import Assumption, Edges, Lasso, Region, fair_members, find_lasso, reachable
from turnproof.checkers.network.walk import Choice
from turnproof.checkers.network.within import read_within
from turnproof.machines.kernel import Formula, formula, show, variables
from turnproof.specs.language import EventuallyAlways, Fair, LeadsTo, Property, Said
from turnproof.specs.system import System, Within
from turnproof.specs.system_words import Received, acted, reads_step

if TYPE_CHECKING:
    from turnproof.checkers.network.fair import Rows


def read_by(properties: Iterable[Property], system: System) -> tuple[list[Formula], list[Formula]]:
    """The formulas over states, and over steps, that judging these properties of ``system`` will ask for."""
    nodes: list[Formula] = []
    edges: list[Formula] = []
    for prop in properties:
        if isinstance(prop, LeadsTo):
            for side in (formula(prop.first, prop.name), formula(prop.then, prop.name)):
                (edges if reads_step(side) else nodes).append(side)
        elif isinstance(prop, EventuallyAlways):
            nodes.append(formula(prop.holds, prop.name))
        elif isinstance(prop, Within):
            about_nodes, about_edges = read_within(prop, system)
            nodes += about_nodes
            edges += about_edges
            continue
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
    def label(self) -> Array:
        """Edge -> the number of the trigger that begins its step."""

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
    whole = leads_to(labels, prop) if isinstance(prop, LeadsTo) else eventually_always(labels, prop)
    region = attrs.evolve(whole, nodes=whole.nodes & labels.known)
    fairness = [assumption(labels, fair) for fair in prop.fairness]
    ways = Ways(labels.edges)
    among = ways.fair(region, fairness)
    if among.any():
        lasso = find_lasso(labels.edges, region, fairness, among=among)
        if lasso is None:
            raise RuntimeError(f"internal error: {prop.name!r} has a fair component without a fair run")
        return Judgement(lasso)
    idle = [fair.name for fair in fairness if not fair.enabled.any()]
    if idle:
        return Judgement(vacuous=f"vacuous: the fairness assumption {idle[0]!r} is enabled nowhere: drop it, or correct its condition")
    if isinstance(prop, LeadsTo):
        vacuous = _vacuous(labels, prop, whole, ways, fairness)
        if vacuous:
            return Judgement(vacuous=vacuous)
    return Judgement(unknown=bool((ways.stay(whole) & ~labels.known).any()))


class Ways:
    """Questions about the ways through one graph; with compiled loops where numba is installed."""

    def __init__(self, edges: Edges) -> None:
        self.edges = edges
        self.compiled = importlib.util.find_spec("numba") is not None

    @cached_property
    def rows(self) -> Rows:
        """The edges by where they come from."""
        from turnproof.checkers.network.fair import rows_of

        return rows_of(self.edges)

    def reachable(self, allowed: Array, starts: Array) -> Array:
        """Node -> whether it can be reached from ``starts`` along ``allowed`` edges."""
        return self.rows.reachable(allowed, starts) if self.compiled else reachable(self.edges, allowed, starts)

    def stay(self, region: Region) -> Array:
        """Node -> whether a bad run can be there."""
        return self.reachable(_kept(self.edges, region), entries(self.edges, region))

    def fair(self, region: Region, fairness: Sequence[Assumption]) -> Array:
        """Node -> whether a fair bad run can visit it again and again."""
        assumptions = list(fairness)
        if region.visit is not None:
            # Again and again in ``visit`` is weak fairness of something enabled everywhere else and never taken.
            assumptions.append(Assumption("", ~region.visit, np.zeros(len(self.edges.source), np.bool_)))
        return self._fair(_kept(self.edges, region), self.stay(region), assumptions)

    def _fair(self, allowed: Array, wanted: Array, assumptions: Sequence[Assumption]) -> Array:
        if self.compiled:
            from turnproof.checkers.network.fair import fair_nodes

            return fair_nodes(self.edges, self.rows, allowed, wanted, assumptions)
        return fair_members(self.edges, allowed, wanted, assumptions)

    def without_fair_run(self, fairness: Sequence[Assumption], unknown: Array) -> Array:
        """Node -> whether no fair run at all goes on from there. From ``unknown`` nodes one is taken to."""
        every = np.ones(len(self.edges.source), np.bool_)
        # A state where nothing is enabled is fair by its stutter alone. Most graphs need no more than this.
        quiet = np.ones(self.edges.nodes, np.bool_)
        for assumed in fairness:
            quiet &= ~assumed.enabled
        lost = ~self._leading_to(every, quiet | unknown)
        if lost.any():
            lost = ~self._leading_to(every, unknown | self._fair(every, np.ones(self.edges.nodes, np.bool_), fairness))
        return lost

    def _leading_to(self, allowed: Array, goals: Array) -> Array:
        if self.compiled:
            from turnproof.checkers.network.fair import rows_of

            return rows_of(self.edges, backwards=True).reachable(allowed, goals)
        return reachable(Edges(self.edges.nodes, self.edges.target, self.edges.source), allowed, goals)


def _kept(edges: Edges, region: Region) -> Array:
    kept: Array = region.edges & region.nodes[edges.source] & region.nodes[edges.target]
    return kept


def _vacuous(labels: Labels, prop: LeadsTo, region: Region, ways: Ways, fairness: Sequence[Assumption]) -> str:
    if not (region.starts.any() or region.start_edges.any()):
        return f"vacuous: `{show(prop.first)}` is never reached"
    entered = entries(labels.edges, region)
    if not entered.any():
        return f"vacuous: wherever `{show(prop.first)}` holds, `{show(prop.then)}` holds already: write an Always or a Step"
    stuck = entered & ways.without_fair_run(fairness, ~labels.known)
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
