"""Decides one property over one graph, and tells the shortest runs that break it."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

import attrs
import numpy as np

from turnproof.checkers import carried
from turnproof.checkers.columns import Array
from turnproof.checkers.evaluation import Evaluation
from turnproof.checkers.graph import Graph
from turnproof.checkers.liveness import Assumption, Edges, Region, find_lasso, levels, reachable
from turnproof.checkers.replay import Check, Run, asks_for_a_refusal, expect_same, replayed
from turnproof.checkers.story import tell
from turnproof.checkers.verdict import Story
from turnproof.checkers.words import is_about_steps
from turnproof.machines.kernel import TableError, formula
from turnproof.specs.language import Always, Carries, EventuallyAlways, Fair, LeadsTo, Order, Property, Said, Sometimes, Step

Lines = Sequence[tuple[int, int]]
"""Steps as (event, node before)."""


@attrs.frozen
class Violation:
    """A broken property: the shortest story first, one story for each row that breaks it, and how many steps or states do."""

    stories: tuple[Story, ...]
    count: int
    what: str
    """What ``count`` counts: ``steps`` or ``states``; empty for a promise about the future, of which one run is told."""
    shortest: bool = True

    @property
    def length(self) -> int:
        """Events of the shortest counterexample."""
        return self.stories[0].length

    def detail(self) -> str:
        """The one line beside the story."""
        first, *others = self.stories
        rows = [f"{story.steps[-1].row} ({story.length})" for story in others if story.steps]
        by = f" by row {first.steps[-1].row}" if first.steps and self.what else ""
        text = f"broken in {events(first.length)}{by}{_for_ever(first)}"
        if rows:
            text += f"; also by {', '.join(rows)}"
        if self.count > 1 and self.what:
            text += f"; {self.count:,} {self.what} in all"
        return text if self.shortest else f"{text}; the search for a shorter one was cut short"


def _for_ever(story: Story) -> str:
    if not story.loop_from:
        return ""
    last = story.length + 1 - story.loop_from
    return f", of which the last {last if last > 1 else 'one'} for ever" if last else ", after which nothing need happen any more"


def events(number: int) -> str:
    """``1 event``, ``3 events``."""
    return f"{number} event{'' if number == 1 else 's'}"


class Judge:
    """One graph, and what is asked about it."""

    def __init__(self, graph: Graph) -> None:
        self.graph, self.spec, self.machine = graph, graph.spec, graph.machine
        self.evaluation = Evaluation(graph)

    # ── properties ──

    def violation(self, prop: Property, *, all_routes: bool = True) -> Violation | None:
        """How ``prop`` is broken; None if it is not. Raises :class:`TableError` for a property that cannot be read."""
        where = f"property {prop.name!r}"
        if isinstance(prop, Always):
            bad = ~self.evaluation.states_where(prop.holds, where)
            return self._broken_state(bad, prop, all_routes)
        if isinstance(prop, Step):
            return self._broken_step(self.evaluation.steps_against(prop.holds, where), prop, all_routes)
        if isinstance(prop, Order):
            return self._broken_step(self.steps_out_of_order(prop), prop, all_routes)
        if isinstance(prop, Carries):
            return self._broken_carrying(prop, all_routes)
        if isinstance(prop, LeadsTo):
            return self._lasso(self.leads_to(prop), prop.fairness, prop)
        if isinstance(prop, EventuallyAlways):
            return self._lasso(self.eventually_always(prop), prop.fairness, prop)
        raise TableError(f"{where}: a {type(prop).__name__} is a kind of property the explicit engine does not know")

    def witness(self, prop: Sometimes) -> Story | None:
        """The shortest run that reaches ``prop``; None if no run does."""
        where = f"property {prop.name!r}"
        if is_about_steps(prop.holds):
            event, node = np.nonzero(self.evaluation.steps_where(prop.holds, where))
            first = np.argmin(self.graph.depth[node]) if len(node) else 0
            lines = [self.line(int(event[first]), int(node[first]))] if len(node) else []
        else:
            found = np.flatnonzero(self.evaluation.states_where(prop.holds, where))
            lines = [self.line_to(int(found[np.argmin(self.graph.depth[found])]))] if len(found) else []
        for line in lines:
            run = self.run(line, lambda run: run.reaches(prop.holds) or run.holds_now(prop.holds), prop.name)
            return tell(run, f"reached: {prop.name}", f"assert run.reaches(run.property({prop.name!r}).holds)")
        return None

    def _broken_state(self, bad: Array, prop: Property, all_routes: bool) -> Violation | None:
        if not bad.any():
            return None
        breaking = bad[self.graph.successor] & (self.graph.row >= 0)
        lines = [[]] if bad[0] else self.first_runs(breaking, all_rows=False)
        return self._told(lines, prop, all_routes, int(bad.sum()), "states")

    def _broken_step(self, bad: Array, prop: Property, all_routes: bool) -> Violation | None:
        if not bad.any():
            return None
        return self._told(self.first_runs(bad, all_rows=True), prop, all_routes, int(bad.sum()), "steps")

    def carrying(self, prop: Carries) -> carried.Carrying:
        """The property, ready to be asked of single steps."""
        return carried.Carrying(self.machine, prop, self.spec.histories)

    def steps_that_carry(self, prop: Carries) -> Array:
        """(event, node) -> whether ``prop`` says something of the step."""
        when = None if prop.when is None else self.evaluation.steps_where(prop.when, f"property {prop.name!r}")
        return carried.steps_spoken_of(self.graph, self.carrying(prop), when)

    def _broken_carrying(self, prop: Carries, all_routes: bool) -> Violation | None:
        bad = carried.steps_wrong(self.graph, self.carrying(prop), self.steps_that_carry(prop))
        if not bad.any():
            return None
        lines = self.first_runs(bad, all_rows=True)[: None if all_routes else 1]
        stories = []
        for line in lines:
            run = self.run(line, lambda run: run.breaks(prop), prop.name)
            stories.append(tell(run, f"{sentence(prop)}. {run.miscarried(prop)}", f"run.expect({prop.name!r})"))
        return Violation(tuple(stories), int(bad.sum()), "steps")

    def _told(self, lines: Sequence[Lines], prop: Property, all_routes: bool, count: int, what: str) -> Violation:
        chosen = lines if all_routes else lines[:1]
        stories = [self.tell(line, lambda run: run.breaks(prop), sentence(prop), f"run.expect({prop.name!r})") for line in chosen]
        return Violation(tuple(stories), count, what)

    def never_beside_another(self, prop: Order) -> list[object]:
        """The effects that ``prop`` puts in order with nothing: no step that it speaks of emits them with another of its effects."""
        places = [set(prop.places(made)) for made in self.graph.effect_lists]
        met = {n for n in range(len(prop.all)) if self._steps_with([n in here and len(here) > 1 for here in places], prop).any()}
        return [one for n, one in enumerate(prop.all) if n not in met]

    def steps_out_of_order(self, prop: Order) -> Array:
        """(event, node) -> whether the step breaks ``prop``."""
        return self._steps_with([prop.broken_by(made) for made in self.graph.effect_lists], prop)

    def _steps_with(self, marked: Sequence[bool], prop: Order) -> Array:
        there = np.array(marked, dtype=bool)[self.graph.effects] & (self.graph.row >= 0)
        return there if prop.when is None else there & self.evaluation.steps_where(prop.when, f"property {prop.name!r}")

    # ── promises about the future ──

    @cached_property
    def edges(self) -> Edges:
        """The graph's steps, event by event; edge n is step ``divmod(n, explored)``."""
        explored = self.graph.explored
        source = np.broadcast_to(np.arange(explored, dtype=np.int32), self.graph.row.shape).ravel()
        # A step that the assumption excludes becomes a stutter, which every node has anyway.
        target = np.where(self.graph.row >= 0, self.graph.successor, np.arange(explored, dtype=np.int32)).ravel()
        return Edges(len(self.graph.states), source, target)

    @cached_property
    def expanded(self) -> Array:
        """Node -> whether its steps are known."""
        known: Array = np.arange(len(self.graph.states)) < self.graph.explored
        return known

    def assumption(self, fair: Fair) -> Assumption:
        """A fairness assumption over the graph's nodes and edges."""
        where = f"fairness {fair.name!r}"
        enabled = self.evaluation.states_where(fair.enabled, f"{where}: enabled")
        taken = self.evaluation.steps_where(fair.taken, f"{where}: taken")
        if not asks_for_a_refusal(fair):
            taken = taken & self.changes
        return Assumption(fair.name, np.array(enabled), taken.ravel(), fair.strong)

    @cached_property
    def changes(self) -> Array:
        """(event, node) -> whether the step is taken and changes a state or emits something."""
        graph = self.graph
        taken = graph.said[graph.row] == list(Said).index(Said.TAKEN)
        moved = (graph.successor != np.arange(graph.explored)) | (graph.effects > 0)
        changes: Array = (graph.row >= 0) & taken & moved
        return changes

    def places(self, node: object, where: str) -> tuple[Array, Array]:
        """Where a formula holds: nodes, and edges. One about steps holds of no node."""
        about_steps = is_about_steps(node)
        nodes = np.zeros(len(self.graph.states), dtype=np.bool_)
        steps = np.zeros(self.graph.row.size, dtype=np.bool_)
        if about_steps:
            steps = self.evaluation.steps_where(node, where).ravel()
        else:
            nodes = np.array(self.evaluation.states_where(node, where))
        return nodes, steps

    def leads_to(self, prop: LeadsTo) -> Region:
        """Where a run that breaks ``prop`` stays: ``first`` held, and ``then`` has not since."""
        where = f"property {prop.name!r}"
        formula(prop.first, f"{where}: first"), formula(prop.then, f"{where}: then")
        first_nodes, first_edges = self.places(prop.first, f"{where}: first")
        then_nodes, then_edges = self.places(prop.then, f"{where}: then")
        return Region(nodes=~then_nodes, edges=~then_edges, starts=first_nodes, start_edges=first_edges)

    def eventually_always(self, prop: EventuallyAlways) -> Region:
        """A run that breaks ``prop`` comes back again and again to where it does not hold."""
        nodes = len(self.graph.states)
        starts = np.zeros(nodes, dtype=np.bool_)
        starts[0] = True
        bad = ~self.evaluation.states_where(prop.holds, f"property {prop.name!r}")
        every, none = np.ones(self.graph.row.size, dtype=np.bool_), np.zeros(self.graph.row.size, dtype=np.bool_)
        return Region(nodes=np.ones(nodes, dtype=np.bool_), edges=every, starts=starts, start_edges=none, visit=bad)

    def _lasso(self, region: Region, fairness: Sequence[Fair], prop: Property) -> Violation | None:
        assumptions = [self.assumption(fair) for fair in fairness]
        # A node beyond the bounds has no edges here; that a run may stop there for ever is known all the same.
        lasso = find_lasso(self.edges, region, assumptions)
        if lasso is None:
            return None
        loop_from = len(lasso.prefix) + 1
        line = [self.step_of(edge) for edge in (*lasso.prefix, *lasso.cycle)]
        claim = f"run.expect({prop.name!r}, loop_from={loop_from})"
        story = self.tell(line, lambda run: run.breaks(prop, loop_from=loop_from), sentence(prop), claim, loop_from=loop_from)
        return Violation((story,), 1, "", shortest=lasso.shortest)

    def leaves_bounds(self, region: Region) -> bool:
        """Whether a run that has not kept its promise yet can leave what was explored, so that nothing is known of its future."""
        starts = region.starts & region.nodes
        starts[self.edges.target[region.start_edges & region.edges]] = True
        starts &= region.nodes
        kept = region.edges & region.nodes[self.edges.source] & region.nodes[self.edges.target]
        return bool((reachable(self.edges, kept, starts) & ~self.expanded).any())

    # ── runs ──

    def step_of(self, edge: int) -> tuple[int, int]:
        """(event, node) of an edge."""
        return divmod(edge, self.graph.explored)

    def line_to(self, node: int) -> Lines:
        """A shortest run to ``node``."""
        return [(event, before) for before, event in self.graph.path(node)]

    def line(self, event: int, node: int) -> Lines:
        """A shortest run that ends with ``event`` in ``node``."""
        return [*self.line_to(node), (event, node)]

    def first_runs(self, bad: Array, *, all_rows: bool) -> list[Lines]:
        """A shortest run to one of the marked steps, for each row that answers one, the shortest run first.

        Each run ends at its first marked step: what follows a failure is no other route to it. With ``all_rows``, rows that come
        only after a failure are told all the same, last.
        """
        start = np.where(np.arange(self.edges.nodes) == 0, 0, -1)
        length, by = levels(self.edges, ~bad.ravel(), start)
        clean = bad & (length[: self.graph.explored] >= 0)
        lines: list[Lines] = [[*self._along(by, node), (event, node)] for event, node in self._first_by_row(clean, length)]
        if all_rows:
            told = {int(self.graph.row[line[-1]]) for line in lines}
            rest = bad & ~np.isin(self.graph.row, list(told))
            lines += [[*self.line_to(node), (event, node)] for event, node in self._first_by_row(rest, self.graph.depth)]
        return lines

    def _first_by_row(self, marked: Array, length: Array) -> list[tuple[int, int]]:
        """Of each row, the marked step in the nearest node."""
        event, node = np.nonzero(marked)
        order = np.lexsort((event, node, length[node]))
        event, node = event[order], node[order]
        _, first = np.unique(self.graph.row[event, node], return_index=True)
        return [(int(event[n]), int(node[n])) for n in np.sort(first)]

    def _along(self, by: Array, node: int) -> Lines:
        """The steps that lead to ``node``, where ``by`` says by which edge each node is reached."""
        steps: list[tuple[int, int]] = []
        while by[node] >= 0:
            steps.append(self.step_of(int(by[node])))
            node = steps[-1][1]
        return steps[::-1]

    def run(self, line: Lines, breaks: Check, what: str) -> Run:
        """The run of ``line`` through ``machine.step``. Raises ``InternalError`` unless it breaks what it should, by the same states."""
        graph = self.graph
        run = replayed(self.spec, self.machine, [graph.events[event] for event, _ in line], breaks, what)
        nodes = [int(graph.successor[event, node]) for event, node in line]
        expect_same(run, [(graph.states[n], graph.pasts[n]) for n in nodes])
        return run

    def tell(self, line: Lines, breaks: Check, broken: str, claim: str, *, loop_from: int = 0, names: Sequence[type] = ()) -> Story:
        """The story of ``line``, after it was played again. ``names`` are the classes that ``claim`` speaks of."""
        return tell(self.run(line, breaks, broken), broken, claim, loop_from=loop_from, names=names)


def sentence(prop: Property) -> str:
    """The sentence of a property with its requirements and its harm."""
    return told(prop.name, prop.requirements, prop.harm)


def told(name: str, requirements: Sequence[str], harm: str = "") -> str:
    """``released is for ever (R-REPLY-3): a successor's slot is freed``."""
    ids = f" ({', '.join(requirements)})" if requirements else ""
    return f"{name}{ids}" + (f": {harm}" if harm else "")


__all__ = ["Judge", "Violation", "events", "sentence", "told"]
