"""The graph of a system with what liveness asks about it: where formulas hold, as arrays over nodes and edges."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Protocol

import attrs
import numpy as np

from turnproof.checkers.columns import Array
from turnproof.checkers.liveness import Assumption, Edges, Lasso, Region, find_lasso, reachable, without_fair_run
from turnproof.checkers.network.questions import ACTED, stutter_serves
from turnproof.checkers.network.walk import Choice, Trace
from turnproof.checkers.network.within import read_within
from turnproof.machines.kernel import Formula, formula, show
from turnproof.specs.language import EventuallyAlways, Fair, LeadsTo, Property
from turnproof.specs.system import System, Within
from turnproof.specs.system_words import reads_step


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


class Labels(Protocol):
    """What an engine gives for liveness. Node 0 is the initial state."""

    @property
    def edges(self) -> Edges:
        """Every step, stutters included; if it was made for bounds, those that a bound looks at."""

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

    def way_to(self, node: int) -> Trace:
        """A shortest way from the initial node."""


@attrs.frozen(eq=False)
class Judgement:
    """What liveness found: a lasso; or why the property says nothing; or that what follows is not known."""

    lasso: Lasso | None = None
    vacuous: str = ""
    unknown: bool = False
    choices: tuple[Choice, ...] = ()
    """What begins each step of the lasso."""


def judge(labels: Labels, prop: LeadsTo | EventuallyAlways) -> Judgement:
    """Decide a promise about the future. A lasso is shortest, and fair by itself."""
    whole = leads_to(labels, prop) if isinstance(prop, LeadsTo) else eventually_always(labels, prop)
    region = attrs.evolve(whole, nodes=whole.nodes & labels.known)
    fairness = [assumption(labels, fair) for fair in prop.fairness]
    lasso = find_lasso(labels.edges, region, fairness)
    if lasso is not None:
        return Judgement(lasso, choices=tuple(labels.choice(edge) for edge in (*lasso.prefix, *lasso.cycle)))
    unused = idle(prop, (bool(fair.enabled.any()) for fair in fairness))
    if unused:
        return Judgement(vacuous=unused)
    entered = entries(labels.edges, whole)
    if isinstance(prop, LeadsTo):
        reached = bool(whole.starts.any() or whole.start_edges.any())
        stuck = lambda: int((entered & without_fair_run(labels.edges, fairness, unknown=~labels.known)).sum())  # noqa: E731
        empty = vacuous(prop, reached, int(entered.sum()), stuck)
        if empty:
            return Judgement(vacuous=empty)
    kept = whole.edges & whole.nodes[labels.edges.source] & whole.nodes[labels.edges.target]
    return Judgement(unknown=bool((reachable(labels.edges, kept, entered) & ~labels.known).any()))


def idle(prop: LeadsTo | EventuallyAlways, enabled: Iterable[bool]) -> str:
    """Why a promise whose assumptions are ``enabled`` somewhere, or not, says nothing; empty if it says something."""
    unused = [fair.name for fair, anywhere in zip(prop.fairness, enabled, strict=True) if not anywhere]
    if not unused:
        return ""
    return f"vacuous: the fairness assumption {unused[0]!r} is enabled nowhere: drop it, or correct its condition"


def vacuous(prop: LeadsTo, reached: bool, entries: int, stuck: Callable[[], int]) -> str:
    """Why a promise that is kept says nothing; empty if it says something.

    ``reached``: whether it begins anywhere; ``entries``: in how many states; ``stuck``: from how many of them no fair run goes on.
    """
    if not reached:
        return f"vacuous: `{show(prop.first)}` is never reached"
    if not entries:
        return f"vacuous: wherever `{show(prop.first)}` holds, `{show(prop.then)}` holds already: write an Always or a Step"
    lost = stuck()
    if not lost:
        return ""
    names = ", ".join(repr(fair.name) for fair in prop.fairness)
    return f"vacuous: it holds for want of runs: from {lost:,} states where `{show(prop.first)}` holds no run can satisfy {names}"


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
    if not stutter_serves(taken):
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
