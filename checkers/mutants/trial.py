"""One mutant on trial: what differs, whether a property sees it, and, if none of single steps does, what the whole graph says.

Theory of operation
===================

First the pairs that can differ, nearest first, in growing portions: those to which a shortest run of the original leads that the
mutant leaves as it is. A property that one of their steps breaks, is broken. If every pair gives the same answer, the two machines
agree on every reachable pair, by induction along runs: the mutant is equivalent. Else the mutant's own graph is completed, of
which the unchanged steps are taken over, and judged whole: rows, guards, witnesses, promises about the future,
vacuity; last come the golden numbers.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from typing import Any, cast

import attrs
import numpy as np

from turnproof.checkers.carried import alike, marked
from turnproof.checkers.columns import Array, is_array, negate
from turnproof.checkers.discipline import first_breach
from turnproof.checkers.draw.markdown_page import markdown
from turnproof.checkers.graph import Block
from turnproof.checkers.judge import Judge
from turnproof.checkers.liveness import has_lasso
from turnproof.checkers.mutants.complete import completed
from turnproof.checkers.mutants.original import Judged, Original, iterate
from turnproof.checkers.mutants.same import Alike
from turnproof.checkers.mutants.words import Fate, Mutant, Result
from turnproof.checkers.mutants.world import Fragment, LeavesDomain, NotBuilt, Table, TooLarge, World
from turnproof.machines.kernel import Ignored, Kind, Refused, TableError, Taken, fields_of
from turnproof.machines.kernel.domain import representative
from turnproof.specs.language import EventuallyAlways, LeadsTo, Order, Said

PORTIONS = (48, 768, 1 << 30)
"""How many nodes the first portions hold: most mutants are killed by the first."""


def judge_mutant(original: Original, mutant: Mutant) -> Result:
    """What becomes of one mutant."""
    started = time.process_time()
    try:
        fate, by = _fairness(original, mutant) if mutant.prop is not None else Trial(World(original, mutant)).run()
    except (NotBuilt, TableError, TypeError) as problem:
        fate, by = Fate.NOT_BUILT, " ".join(str(problem).split())
    except LeavesDomain as problem:
        fate, by = Fate.KILLED, f"every value stays in its domain: {problem}"
    except TooLarge as problem:
        fate, by = Fate.UNDETERMINED, str(problem)
    return Result(mutant.row, mutant.operator, mutant.about, fate, by, time.process_time() - started)


def _fairness(original: Original, mutant: Mutant) -> tuple[Fate, str]:
    weaker = attrs.evolve(cast("LeadsTo | EventuallyAlways", mutant.prop), fairness=mutant.fairness)
    judge = original.judge
    region = judge.leads_to(weaker) if isinstance(weaker, LeadsTo) else judge.eventually_always(weaker)
    if has_lasso(judge.edges, region, [original.assumption(fair) for fair in weaker.fairness]):
        return Fate.KILLED, weaker.name
    if judge.leaves_bounds(region):
        return Fate.UNDETERMINED, "a run leaves the bounds with its promise open"
    return Fate.SURVIVED, "the promise holds without it"


class Trial:
    """One mutant of a row."""

    def __init__(self, world: World) -> None:
        self.world, self.original = world, world.original
        graph, block = self.original.graph, world.block
        here = slice(block.start, block.stop)
        self.row = world.chosen()
        self.alike = Alike(graph, world.rows)
        self.successor, self.effects = graph.successor[here].copy(), graph.effects[here].copy()
        before, hole = graph.row[here], graph.hole
        other = (self.row != before) | (self.row > hole)
        settled = world.outcome[self.row] == world.outcome[before]
        self.open: Array = other & ~settled & (self.row >= 0)
        """Pairs that may differ and were not stepped yet."""
        self.different = np.zeros_like(self.open)
        self.renamed = int((other & (self.row >= 0)).sum())

    def run(self) -> tuple[Fate, str]:
        """Its fate, and by what."""
        tried = self.open.copy()
        by = self._near() or self._miscarried(tried & ~self.open)
        if by:
            return Fate.KILLED, by
        if not self.different.any():
            return self._same(tried)
        done = completed(self.world, self)
        if isinstance(done, str):
            return Fate.KILLED, done
        judge = Judge(done)
        questions = self.original.questions
        by = questions.fault(judge)
        if by:
            return Fate.KILLED, by
        changed = numbers_changed(self.original.numbers, questions.numbers(judge, self.original.states_of(done)))
        if changed:
            return Fate.REGRESSION, changed
        if self._only_opaque():
            return self._by_the_table()
        unsure = questions.unsure(judge)
        return (Fate.UNDETERMINED, unsure) if unsure else (Fate.SURVIVED, f"{int(self.different.sum()):,} steps differ")

    # ── near the original ──

    def _near(self) -> str:
        """What breaks in pairs that a shortest run reaches unchanged; all of them are stepped if none does."""
        while self.open.any():
            fine = self.original.untouched(self.world.block, self.open | self.different)
            nodes = np.flatnonzero(self.open.any(axis=0) & fine)
            if not len(nodes):
                return ""
            for portion in _portions(nodes):
                by = self.step(portion)
                if by:
                    return by
        return ""

    def step(self, nodes: Array) -> str:
        """Step the open pairs of these nodes, and say what the ones that differ break."""
        here = np.zeros_like(self.open)
        here[:, nodes] = self.open[:, nodes]
        for event, same in self._groups(here):
            if self._step(event, int(same[0])):
                for node in same[1:].tolist():
                    self._step(event, node)
        self.open &= ~here
        here &= self.different
        return self._broken(here) if here.any() else ""

    def _groups(self, among: Array) -> Iterator[tuple[int, Array]]:
        """Groups of pairs of which all differ or none does."""
        block = self.world.block
        return self.alike.groups(self.original.graph.row[block.start : block.stop], self.row, among)

    def _step(self, event: int, node: int) -> bool:
        row, successor, effects = self.world.step(node, self.world.block.start + event)
        differs = self._differs(event, node, row, successor, effects)
        if differs:
            self.different[event, node] = True
            self.successor[event, node], self.effects[event, node] = successor, effects
        return differs

    def _differs(self, event: int, node: int, row: int, successor: int, effects: int) -> bool:
        graph, number = self.original.graph, self.world.block.start + event
        if successor != graph.successor[number, node] or effects != graph.effects[number, node]:
            return True
        before = int(graph.row[number, node])
        return bool(self.world.said[row] != self.world.said[before] or (row == graph.hole) != (before == graph.hole))

    def _broken(self, here: Array) -> str:
        """The first thing that these steps of the class break."""
        return breach(self.world, *self._part(here))

    def _part(self, here: Array) -> tuple[Array, Table, tuple[Any, ...], tuple[Block, ...]]:
        """Some steps of the class: the nodes they start from, the steps, and the class by itself."""
        nodes = np.flatnonzero(here.any(axis=0))
        row = np.where(here, self.row, -1)[:, nodes]
        table = Table(row, self.successor[:, nodes], self.effects[:, nodes])
        block = self.world.block
        events = self.original.graph.events[block.start : block.stop]
        return nodes, table, events, (Block(block.event, 0, len(events)),)

    # ── opaque values ──

    def _miscarried(self, tried: Array) -> str:
        """The property of opaque values that breaks in one of these pairs, which every run of the mutant may meet; empty if none does."""
        world, original = self.world, self.original
        if not tried.any() or not original.carryings:
            return ""
        nodes, table, events, blocks = self._part(tried)
        fragment = _fragment(world, nodes, table, events, blocks)
        (columns,) = Judge(fragment).evaluation.steps
        taken = columns.allowed & (world.said[table.row] == list(Said).index(Said.TAKEN))
        for carrying, when in original.carryings:
            about = np.array([carrying.speaks_of(made) for made in fragment.effect_lists], dtype=np.bool_)
            among = about[table.effects] & taken & (True if when is None else when(columns))
            for event, node, _ in alike(fragment, carrying, world.rows, table.row, among):
                if carrying.fault(world.answer, *world.at(int(nodes[node])), events[event]):
                    return carrying.prop.name
        return ""

    # ── the same everywhere ──

    def _same(self, tried: Array) -> tuple[Fate, str]:
        if self._opaque_differs(tried):
            return self._by_the_table()
        pairs = f"{int((self.original.graph.row >= 0).sum()):,} pairs"
        if self.renamed:
            return (
                Fate.EQUIVALENT,
                f"same answers, successors and effects in all {pairs}; in {self.renamed:,} of them by a changed or other row",
            )
        return Fate.EQUIVALENT, f"same answers, successors and effects in all {pairs}, by the same rows"

    def _by_the_table(self) -> tuple[Fate, str]:
        """No property reads an opaque value and no number counts one; what shows the difference is the table that is committed."""
        machine = self.original.machine
        if markdown(attrs.evolve(self.world.mutant.built(machine), name=machine.name)) != markdown(machine):
            return Fate.REGRESSION, "the committed table: only opaque values differ"
        return Fate.SURVIVED, "only opaque values differ, and the committed table does not show it"

    def _only_opaque(self) -> bool:
        """Whether the steps that differ are the same but for opaque values."""
        world, graph, start = self.world, self.original.graph, self.world.block.start
        return all(
            world.said[self.row[event, node]] == world.said[graph.row[start + event, node]]
            and _clear(world.at(int(self.successor[event, node]))[0]) == _clear(world.at(int(graph.successor[start + event, node]))[0])
            and [_clear(e) for e in world.effect_lists[self.effects[event, node]]]
            == [_clear(e) for e in graph.effect_lists[graph.effects[start + event, node]]]
            for event, node in iterate(self.different)
        )

    def _opaque_differs(self, tried: Array) -> bool:
        """Whether some pair differs once every opaque field has a value of its own."""
        original, world = self.original, self.world
        states = original.graph.states
        for marks in original.opaque:
            for event, same in self._groups(tried):
                state = marked(states[int(same[0])], marks)
                happened = marked(original.graph.events[world.block.start + event], marks)
                if _told(world.answer(state, happened)) != _told(original.machine.generated[world.event](state, happened)):
                    return True
        return False


def _clear(instance: Any) -> Any:
    """A state or an effect with every opaque field empty."""
    empty = {name: representative(field.base) for name, field in fields_of(type(instance)).items() if field.kind is Kind.OPAQUE}
    return attrs.evolve(instance, **empty) if empty else instance


def _told(answer: object) -> object:
    """An answer without its row and its words."""
    if isinstance(answer, Taken):
        return answer.state, answer.effects
    return Ignored if isinstance(answer, Ignored) else Refused


def _portions(nodes: Array) -> Iterator[Array]:
    at = 0
    for size in PORTIONS:
        if at < len(nodes):
            yield nodes[at : at + size]
            at += size


# ── single steps and states ──


def breach(world: World, sources: Array, table: Table, events: tuple[Any, ...], blocks: tuple[Block, ...]) -> str:
    """What some of these steps, or the states they lead to, break: totality, properties of steps and states, timers. Empty if nothing."""
    if (table.row == world.original.graph.hole).any():
        return "every reachable pair has a row"
    fragment = _fragment(world, sources, table, events, blocks)
    judge = Judge(fragment)
    return _promise_broken(world, judge, fragment) or _invariant_broken(world, judge) or first_breach(judge)


def _fragment(world: World, sources: Array, table: Table, events: tuple[Any, ...], blocks: tuple[Block, ...]) -> Fragment:
    """Some steps and the states they lead to; nodes are counted anew, the sources first."""
    targets = np.unique(table.successor[table.row >= 0])
    nodes = np.concatenate([sources, targets[~np.isin(targets, sources)]])
    local = np.searchsorted(nodes, table.successor, sorter=(order := np.argsort(nodes)))
    successor = order[np.minimum(local, len(nodes) - 1)]
    return world.fragment(nodes, len(sources), events, blocks, Table(table.row, successor, table.effects))


def _promise_broken(world: World, judge: Judge, fragment: Fragment) -> str:
    promises = world.original.promises_for(world.event)
    for n, judged in enumerate(promises):
        if any(_breaks(judged, columns, fragment) for columns in judge.evaluation.steps):
            # What killed one mutant of an event kills the next one more often than not.
            promises.insert(0, promises.pop(n))
            return judged.prop.name
    return ""


def _breaks(judged: Judged, columns: Any, fragment: Fragment) -> bool:
    data = True if judged.run is None else judged.run(columns)
    if not isinstance(judged.prop, Order):
        return bool((negate(data) & columns.allowed).any()) if is_array(data) or not data else False
    if not is_array(data) and not data:
        return False
    marked = np.array([judged.prop.broken_by(made) for made in fragment.effect_lists], dtype=np.bool_)
    return bool((marked[columns.effects] & columns.allowed & data).any())


def _invariant_broken(world: World, judge: Judge) -> str:
    for judged in world.original.invariants:
        data = judged.run(judge.evaluation.states) if judged.run is not None else True
        if not np.all(data):
            return judged.prop.name
    return ""


def numbers_changed(before: Mapping[str, int], after: Mapping[str, int]) -> str:
    """The first golden number that differs."""
    for name in dict.fromkeys((*before, *after)):
        if before.get(name) != after.get(name):
            return f"{name}: {before.get(name, 'nothing')} -> {after.get(name, 'nothing')}"
    return ""


__all__ = ["Trial", "breach", "judge_mutant", "numbers_changed"]
