"""The graph of a compiled walk for its promises about the future: 8 bytes a step, or 12.

A promise is about few nodes and steps, and about assumptions that most promises share. So an assumption is one bit of a number for each
node (it is enabled there) and one bit of a number for each step (it is taken), and the places of a promise are bits, too. A step that
changes nothing and of which nothing holds is not kept. A component with a node where a weak assumption is not enabled meets it anyway:
so whether one is taken is asked only of steps from where it is enabled, and not at all if no step that takes it ends where it is enabled.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cached_property
from threading import Event
from typing import TypeVar

import attrs
import numpy as np

from turnproof.checkers.columns import Array
from turnproof.checkers.network.compile import structure
from turnproof.checkers.network.compiled import CompiledWalk
from turnproof.checkers.network.kernel.back import states_where
from turnproof.checkers.network.kernel.fair import steps_of
from turnproof.checkers.network.kernel.places import Bytes, Ints, Small
from turnproof.checkers.network.kernel.states import index_rows, resolve
from turnproof.checkers.network.questions import ACTED, stutter_serves
from turnproof.checkers.network.walk import Choice
from turnproof.machines.kernel import Formula, TableError, formula
from turnproof.specs.language import EventuallyAlways, Fair, LeadsTo, Property
from turnproof.specs.system_words import reads_step

T = TypeVar("T")

MOST = 60
"""Assumptions and formulas that are judged together."""
BATCH = 1 << 17
"""Steps written at a time."""


@attrs.define(eq=False)
class Questions:
    """What is asked: of nodes whether assumptions are enabled, of steps whether they are taken; then what promises say of either."""

    nodes: list[Formula] = attrs.field(factory=list)
    steps: list[Formula] = attrs.field(factory=list)
    strong: int = 0
    """Bits of strong assumptions."""
    weak: int = 0
    served: int = 0
    """Bits of assumptions that a step without change or effect can serve."""
    bits: dict[object, int] = attrs.field(factory=dict)

    @classmethod
    def of(cls, promises: Sequence[LeadsTo | EventuallyAlways]) -> Questions:
        """Of these promises. Raises :class:`TableError` if they ask too much."""
        asked = cls()
        for fair in (fair for prop in promises for fair in prop.fairness):
            asked._assume(fair)
        for prop in promises:
            for side in sides(prop):
                asked._place(side)
        most = max(len(asked.nodes), len(asked.steps))
        if most > MOST:
            names = ", ".join(repr(prop.name) for prop in promises)
            raise TableError(f"{most} different formulas in promises about the future; at most {MOST} are judged together: {names}")
        return asked

    def _assume(self, fair: Fair) -> None:
        if self._key(fair) in self.bits:
            return
        taken, bit = formula(fair.taken, fair.name), 1 << len(self.nodes)
        self.bits[self._key(fair)] = bit
        self.nodes.append(formula(fair.enabled, fair.name))
        self.steps.append(taken)
        self.strong |= bit if fair.strong else 0
        self.weak |= 0 if fair.strong else bit
        self.served |= bit if stutter_serves(taken) else 0

    def _place(self, node: Formula) -> None:
        if structure(node) not in self.bits:
            asked = self.steps if reads_step(node) else self.nodes
            self.bits[structure(node)] = 1 << len(asked)
            asked.append(node)

    @staticmethod
    def _key(fair: Fair) -> object:
        return structure(formula(fair.enabled, fair.name)), structure(formula(fair.taken, fair.name)), fair.strong

    def assumption(self, fair: Fair) -> int:
        """The bit of an assumption, of nodes and of steps."""
        return self.bits[self._key(fair)]

    def place(self, node: Formula) -> tuple[int, int]:
        """The bit of a formula among those of nodes, and among those of steps; one of them is 0."""
        bit = self.bits[structure(node)]
        return (0, bit) if reads_step(node) else (bit, 0)


def sides(prop: LeadsTo | EventuallyAlways) -> tuple[Formula, ...]:
    """The formulas of a promise, without its fairness."""
    said = (prop.first, prop.then) if isinstance(prop, LeadsTo) else (prop.holds,)
    return tuple(formula(side, prop.name) for side in said)


class Promised:
    """The graph, as rows of steps: ``first[n]`` to ``first[n + 1]`` are those of node n. Node 0 is the initial state."""

    def __init__(self, walked: CompiledWalk, properties: Sequence[Property]) -> None:
        self.walked = walked
        self.asked = Questions.of([p for p in properties if isinstance(p, LeadsTo | EventuallyAlways)])
        self.order = [walked.home, *(s for s in range(len(walked.shards)) if s != walked.home)]
        counts = [walked.shards[s].count for s in self.order]
        self.offset = dict(zip(self.order, np.cumsum([0, *counts[:-1]]).tolist(), strict=True))
        self.nodes = sum(counts)
        self.known: Array = np.ones(self.nodes, np.bool_)
        """Node -> whether all its steps are there: False where one was cut off at a bound."""
        self.does: Ints = np.zeros(self.nodes, np.int64)
        """Node -> what holds there, as bits."""
        self._compile()
        self.first, self.target, self.takes = self._learn()

    def _compile(self) -> None:
        compiler, asked = self.walked.tables.compiler, self.asked
        self._on_state: Small = np.array([(n, compiler.program(node)) for n, node in enumerate(asked.nodes)], np.int32).reshape(-1, 2)
        self._on_step: Small = np.array([compiler.program(node) for node in (*asked.steps, ACTED)], np.int32)
        assumed = asked.weak | asked.strong
        always = ((1 << len(asked.steps)) - 1) & ~asked.weak
        open_ones = sum(bit for n in range(len(asked.steps)) if (bit := 1 << n) & asked.weak and not self._leaves(n))
        self._bits: Ints = np.array([open_ones, always, assumed & ~asked.served], np.int64)
        self.walked.recompiled()

    def _leaves(self, n: int) -> bool:
        """Whether a step that takes assumption ``n`` always ends where it is not enabled, as one local state after the step shows."""
        tables, enabled, taken = self.walked.tables, self.asked.nodes[n], self.asked.steps[n]
        before, after = tables.compiler.side(enabled), tables.compiler.side(taken)
        if before is None or after is None or after != (before[0], True):
            return False
        comp = before[0]
        return not any(tables.decide(enabled, comp, s) and tables.decide(taken, comp, s) for s in tables.components[comp].locals)

    # ── one pass over everything ──

    def _learn(self) -> tuple[Ints, Small, Ints]:
        numbers: list[Small] = []
        for s, shard in enumerate(self.walked.shards):
            if shard.narrow:
                shard.index_by_slots(len(shard.slots))
            numbers.append(np.zeros(len(shard.slots), np.int32))
            index_rows(shard.keys, shard.count, shard.slots, numbers[s], self.offset[s])
        each: Small = np.zeros(self.nodes, np.int32)
        parts = by_shard(self.walked.threads, self.order, lambda s, ended: self._shard(s, numbers, each, ended))
        numbers.clear()
        first = np.concatenate([[0], np.cumsum(each, dtype=np.int64)])
        targets, takes = ([array for part in parts for array in part[n]] for n in range(2))
        del parts
        return first, _joined(targets), _joined(takes)

    def _shard(self, s: int, numbers: Sequence[Small], each: Small, ended: Event) -> tuple[list[Small], list[Array]]:
        walked, shard, first, work = self.walked, self.walked.shards[s], self.offset[s], self.walked.places[s].work
        mine = slice(first, first + shard.count)
        states_where(walked.arrays.a, walked.arrays.b, work, shard.keys, 0, shard.count, self._on_state, self.does[mine])
        steps, row = Steps(BATCH + len(walked.triggers), shard.layout.words), 0
        targets: list[Small] = []
        takes: list[Array] = []
        while row < shard.count and not ended.is_set():
            row = self._steps(s, row, shard.count, steps)
            label, made = steps.label, steps.made
            target: Small = label[:made, 0] + np.int32(first)
            for d, other in enumerate(walked.shards):
                resolve(steps.target, label, made, d, other.slots, numbers[d], target)
            np.add.at(each[mine], label[:made, 0], np.int32(1))
            targets.append(target)
            takes.append(steps.takes[:made].astype(np.int32 if len(self.asked.steps) < 31 else np.int64))
        return targets, takes

    def _steps(self, s: int, row: int, last: int, into: Steps) -> int:
        """Write the steps of rows from ``row`` on; the row that comes next."""
        walked, shard, first = self.walked, self.walked.shards[s], self.offset[s]
        upto, made = steps_of(
            walked.arrays.a, walked.arrays.b, walked.places[s].work, shard.keys, row, last, self._on_step, self._bits, self.does[first:],
            into.target, into.label, into.takes, self.known[first:],
        )  # fmt: skip
        into.made = int(made)
        return int(upto)

    # ── looking back ──

    @cached_property
    def depth(self) -> Array:
        """Node -> how many steps it is from the initial state."""
        found = np.zeros(self.nodes, np.int16)
        for s, shard in enumerate(self.walked.shards):
            for level, begins in enumerate(shard.levels):
                found[self.offset[s] + begins : self.offset[s] + self.walked.end_of(level, shard)] = level
        return found

    def where(self, bit: int) -> Bytes:
        """Node -> whether one of these bits is set, as a byte."""
        made: Bytes = (self.does & bit != 0).view(np.uint8)
        return made

    def choice(self, node: int, target: int, takes: int) -> Choice:
        """What begins a step between two nodes of which that holds. Raises ``RuntimeError`` if there is no such step."""
        (s, row), (other, wanted) = self._row(node), self._row(target)
        steps = Steps(2 * len(self.walked.triggers), self.walked.arrays.layout.words)
        self._steps(s, row, row + 1, steps)
        key = self.walked.shards[other].keys[wanted]
        for n in range(steps.made):
            if int(steps.takes[n]) == takes and (steps.target[n] == key).all():
                return self.walked.choice(s, row, int(steps.label[n, 1]))
        raise RuntimeError("internal error: a step of the graph is not found again")

    def _row(self, node: int) -> tuple[int, int]:
        s = next(s for s in reversed(self.order) if self.offset[s] <= node)
        return s, node - self.offset[s]


class Steps:
    """Room for steps: the keys they lead to; row, trigger and shard; what holds of each."""

    def __init__(self, room: int, words: int) -> None:
        self.target: Ints = np.zeros((room, words), np.int64)
        self.label: Small = np.zeros((room, 3), np.int32)
        self.takes: Ints = np.zeros(room, np.int64)
        self.made = 0


def by_shard(threads: int, shards: Sequence[int], job: Callable[[int, Event], T]) -> list[T]:
    """What ``job`` gives for each shard, done by several threads. When one fails, or Ctrl-C comes, the others are told by the event."""
    ended = Event()
    with ThreadPoolExecutor(threads) as pool:
        futures = [pool.submit(job, s, ended) for s in shards]
        try:
            return [future.result() for future in futures]
        except BaseException:
            ended.set()
            raise


def _joined(parts: list[Array]) -> Array:
    """The parts side by side. Each is let go when it is copied, so that what is needed twice is little."""
    made = np.zeros(sum(len(part) for part in parts), parts[0].dtype if parts else np.int32)
    end = len(made)
    while parts:
        part = parts.pop()
        made[end - len(part) : end] = part
        end -= len(part)
    return made
