"""The graph of a machine: every state that events can reach, and how every event is answered there.

Theory of operation
===================

Breadth first from the initial state, through ``machine.step`` and nothing else: the graph is what the machine does. A node is a
state of the machine together with the specification's history variables. The parent of a node is the node it was first reached
from, so the path along parents is a shortest run.

Counters are unbounded in production. A step that takes one above the specification's bound leads to a node that is recorded and
judged but not explored further; ``cut`` counts such steps, and every report then says "within counter <= n".

Tables are dense, event x node: the row that answered, the node after, the list of effects. A pair that the environment
assumption excludes has row -1.
"""

from __future__ import annotations

import time
from array import array
from collections.abc import Iterator, Mapping
from functools import cached_property
from typing import Any

import attrs
import numpy as np

from turnproof.checkers.columns import Array, encode
from turnproof.checkers.predicates import Memory, Pasts, Predicates
from turnproof.checkers.progress import SILENT, Progress
from turnproof.checkers.words import check_words
from turnproof.machines.kernel import HOLE, Field, Ignored, Kind, Row, TableError, Taken, fields_of, show
from turnproof.specs.language import AnyMachine, Said, Spec

SAY_EVERY = 512
"""States between two reports of progress."""


class LimitReached(RuntimeError):
    """The machine has more states than the limit. A search cut short shows nothing: its verdict is UNDETERMINED."""

    def __init__(self, machine: str, limit: int) -> None:
        super().__init__(f"the search of {machine} was cut short at its limit of {limit:,} states")
        self.machine, self.limit = machine, limit


@attrs.frozen
class Block:
    """The consecutive events of one class: ``events[start:stop]``."""

    event: type
    start: int
    stop: int


@attrs.frozen(eq=False, kw_only=True, slots=False)
class Graph:
    """All reachable states of one machine within the bounds of its specification, and all steps from them.

    Nodes are numbered in breadth-first order; the first ``explored`` are expanded, those after lie beyond the counter bound.
    """

    spec: Spec
    machine: AnyMachine
    events: tuple[Any, ...]
    states: tuple[Any, ...]
    """Node -> state of the machine."""
    pasts: tuple[Pasts, ...]
    """Node -> values of the history variables."""
    explored: int
    row: Array
    """(event, node) -> index into :attr:`rows`; -1 where the assumption excludes the event."""
    successor: Array
    """(event, node) -> node after the step; the node itself where the event is ignored or refused, -1 where it is excluded."""
    effects: Array
    """(event, node) -> index into :attr:`effect_lists`."""
    effect_lists: tuple[tuple[Any, ...], ...]
    parent: Array
    """Node -> the node it was first reached from; -1 for the initial node."""
    parent_event: Array
    depth: Array
    """Node -> length of the shortest run that reaches it."""
    cut: int
    """Steps that lead beyond the counter bound."""
    to_depth: int | None = None
    """If given, nodes this many steps from the initial one were not expanded either."""
    seconds: float

    @cached_property
    def rows(self) -> tuple[Row[Any, Any], ...]:
        """The machine's rows in order, and :data:`HOLE` last."""
        return (*self.machine.rows, HOLE)

    @property
    def hole(self) -> int:
        """Index of :data:`HOLE` in :attr:`rows`."""
        return len(self.machine.rows)

    @cached_property
    def said(self) -> Array:
        """Row index -> answer, as an index into ``tuple(Said)``."""
        kinds = list(Said)
        return np.array([kinds.index(Said(row.answer)) for row in self.rows], dtype=np.int8)

    @cached_property
    def fires(self) -> Array:
        """Row index -> number of steps it answers."""
        return np.bincount(self.row[self.row >= 0].ravel(), minlength=len(self.rows))

    @cached_property
    def blocks(self) -> tuple[Block, ...]:
        """The events by class."""
        made, start = [], 0
        for cls in self.machine.events:
            stop = start + sum(1 for event in self.events if type(event) is cls)
            made.append(Block(cls, start, stop))
            start = stop
        return tuple(made)

    @cached_property
    def columns(self) -> Mapping[tuple[type, str], Array]:
        """(state or history class, field) -> its codes, one for each node."""
        made: dict[tuple[type, str], Array] = {}
        for owner, instances in self._instances():
            for name, field in fields_of(owner).items():
                if field.kind is not Kind.OPAQUE:
                    made[owner, name] = encode(field, [getattr(i, name) for i in instances])
        return made

    def _instances(self) -> Iterator[tuple[type, tuple[object, ...]]]:
        yield self.machine.state, self.states
        for n, history in enumerate(self.spec.histories):
            yield type(history.initial), tuple(pasts[n] for pasts in self.pasts)

    @property
    def steps(self) -> int:
        """Pairs of state and event that were tried."""
        return int(self.fires.sum())

    def answers(self, said: Said) -> int:
        """Steps answered so; holes are not among the refused."""
        chosen = self.said[:-1] == list(Said).index(said)
        return int(self.fires[:-1][chosen].sum())

    def path(self, node: int) -> list[tuple[int, int]]:
        """A shortest run to ``node``: (node before, event) of each step."""
        steps: list[tuple[int, int]] = []
        while self.parent[node] >= 0:
            steps.append((int(self.parent[node]), int(self.parent_event[node])))
            node = int(self.parent[node])
        return steps[::-1]

    def bounds(self, *notes: str) -> str:
        """What the search covered, as verdicts say it: ``exhaustive (7,456 states, 432,448 steps; 2 tokens, counters to 2)``."""
        kinds = {field.kind for cls in (self.machine.state, *self.machine.events) for field in fields_of(cls).values()}
        sizes = [f"{self.spec.tokens} token{'s' if self.spec.tokens != 1 else ''}"] if Kind.TOKEN in kinds else []
        sizes += [f"counters to {self.spec.counter}"] if Kind.COUNTER in kinds else []
        parts = [f"{self.explored:,} states, {self.steps:,} steps", ", ".join(sizes)]
        parts += ["" if self.spec.assume is None else f"assuming {show(self.spec.assume)}", *notes]
        within = f" within counter <= {self.spec.counter}" if self.cut else ""
        deep = "" if self.to_depth is None else f" to depth {self.to_depth}"
        return f"exhaustive{within}{deep} ({'; '.join(part for part in parts if part)})"


def explore(
    spec: Spec,
    *,
    machine: AnyMachine | None = None,
    progress: Progress | None = None,
    limit: int = 5_000_000,
    depth: int | None = None,
) -> Graph:
    """The graph of ``spec.machine``, or of ``machine`` in its place (a variant, a mutant), or its first ``depth`` steps.

    Raises :class:`LimitReached` where there are more than ``limit`` states, and :class:`TableError` where a row leaves the domain
    of a field; the message names row, field and state.
    """
    return _Search(spec, spec.machine if machine is None else machine, limit, depth).run(progress or SILENT)


class _Search:
    """One breadth-first search. Nodes beyond the bound are numbered from -2 downwards until the search is over."""

    def __init__(self, spec: Spec, machine: AnyMachine, limit: int, to_depth: int | None) -> None:
        check_spec(spec, machine)
        self.spec, self.machine, self.limit, self.to_depth = spec, machine, limit, to_depth
        self.events = machine.all_events(tokens=spec.tokens, counter=spec.counter)
        self.allowed = None if spec.assume is None else Predicates(machine, spec.histories).test(spec.assume)
        self.memory = Memory(machine, spec)
        self.row_numbers = {id(row): n for n, row in enumerate((*machine.rows, HOLE))}
        self.nodes: list[tuple[object, Pasts]] = []
        self.beyond: list[tuple[object, Pasts]] = []
        self.known: dict[object, int] = {}
        self.depths: list[int] = []
        self.reached: list[tuple[int, int]] = []
        self.reached_beyond: list[tuple[int, int]] = []
        self.effect_numbers: dict[tuple[object, ...], int] = {(): 0}
        self.pasts: dict[Pasts, Pasts] = {}
        self.remembered: dict[object, Pasts] = {}

    def run(self, progress: Progress) -> Graph:
        started = time.perf_counter()
        rows, successors, effects = array("i"), array("i"), array("i")
        self.node(self.machine.initial, self.shared(self.memory.initial), -1, -1, None)
        expanded = 0
        for number, (state, pasts) in enumerate(self.nodes):
            if self.depths[number] == self.to_depth:
                break
            expanded += 1
            if number % SAY_EVERY == 0:
                progress.say("states explored", number, len(self.nodes))
            self.expand(number, state, pasts, rows, successors, effects)
        progress.say("states explored", len(self.nodes), len(self.nodes))
        shape = (expanded, len(self.events))
        successor = _table(successors, shape)
        cut = int((successor < -1).sum())
        if cut:
            successor = np.where(successor < -1, len(self.nodes) - 2 - successor, successor)
        return self.graph(_table(rows, shape), successor, _table(effects, shape), cut, started)

    def expand(self, number: int, state: object, pasts: Pasts, rows: array[int], successors: array[int], effects: array[int]) -> None:
        step, allowed, row_numbers = self.machine.step, self.allowed, self.row_numbers
        remembers = bool(self.memory.rules)
        for e, event in enumerate(self.events):
            if allowed is not None and not allowed(state, pasts, event, Said.TAKEN, (), state, pasts):
                rows.append(-1)
                successors.append(-1)
                effects.append(0)
                continue
            answer = step(state, event)
            rows.append(row_numbers[id(answer.row)])
            if isinstance(answer, Taken):
                listed = answer.effects
                effects.append(self.effect_numbers.setdefault(listed, len(self.effect_numbers)) if listed else 0)
                after = self.past(state, pasts, event, Said.TAKEN, listed, answer.state) if remembers else pasts
                successors.append(self.node(answer.state, after, number, e, answer.row))
                continue
            effects.append(0)
            if remembers:
                said = Said.IGNORED if isinstance(answer, Ignored) else Said.REFUSED
                after = self.past(state, pasts, event, said, (), state)
                successors.append(number if after is pasts else self.node(state, after, number, e, answer.row))
            else:
                successors.append(number)

    def past(self, before: object, pasts: Pasts, event: object, said: Said, effects: tuple[object, ...], after: object) -> Pasts:
        """The history after a step; remembered by kind where no rule looks at more than kinds."""
        if not self.memory.blind:
            return self.shared(self.memory.after(before, pasts, event, said, effects, after))
        key = (type(event), said, effects and self.effect_numbers[effects], id(pasts))
        known = self.remembered.get(key)
        if known is None:
            known = self.remembered[key] = self.shared(self.memory.after(before, pasts, event, said, effects, after))
        return known

    def shared(self, pasts: Pasts) -> Pasts:
        """One object for equal histories, so that they are compared by identity."""
        return self.pasts.setdefault(pasts, pasts)

    def node(self, state: object, pasts: Pasts, parent: int, event: int, row: Row[Any, Any] | None) -> int:
        key = (state, id(pasts))
        known = self.known.get(key)
        if known is not None:
            return known
        if self.within(state, pasts, event, row):
            number = len(self.nodes)
            if number >= self.limit:
                raise LimitReached(self.machine.name, self.limit)
            self.nodes.append((state, pasts))
            self.depths.append(self.depths[parent] + 1 if parent >= 0 else 0)
            self.reached.append((parent, event))
        else:
            number = -2 - len(self.beyond)
            self.beyond.append((state, pasts))
            self.reached_beyond.append((parent, event))
        self.known[key] = number
        return number

    def within(self, state: object, pasts: Pasts, event: int, row: Row[Any, Any] | None) -> bool:
        """Whether every counter is within the bound. Raises :class:`TableError` if a value is outside its field's domain."""
        inside = True
        for instance in (state, *pasts):
            for name, field in fields_of(type(instance)).items():
                value = getattr(instance, name)
                if not field.holds(value):
                    raise TableError(self.outside(field, value, event, row))
                inside = inside and not (field.kind is Kind.COUNTER and value > self.spec.counter)
        return inside

    def outside(self, field: Field, value: object, event: int, row: Row[Any, Any] | None) -> str:
        place = "the initial state" if row is None else f"row {row.name}, on {self.events[event]}"
        return f"machine {self.machine.name}: {place}: {field} becomes {value!r}, expected {field.expected()}"

    def graph(self, row: Array, successor: Array, effects: Array, cut: int, started: float) -> Graph:
        nodes, reached = self.nodes + self.beyond, self.reached + self.reached_beyond
        parent = np.array([p for p, _ in reached], dtype=np.int32)
        depths = self.depths + [self.depths[p] + 1 for p, _ in self.reached_beyond]
        return Graph(
            spec=self.spec,
            machine=self.machine,
            events=self.events,
            states=tuple(state for state, _ in nodes),
            pasts=tuple(pasts for _, pasts in nodes),
            explored=row.shape[1],
            row=row,
            successor=successor,
            effects=effects,
            effect_lists=tuple(self.effect_numbers),
            parent=parent,
            parent_event=np.array([e for _, e in reached], dtype=np.int32),
            depth=np.array(depths, dtype=np.int32),
            cut=cut,
            to_depth=self.to_depth,
            seconds=time.perf_counter() - started,
        )


def _table(values: array[int], shape: tuple[int, int]) -> Array:
    return np.ascontiguousarray(np.frombuffer(values, dtype=np.int32).reshape(shape).T) if values else np.zeros(shape[::-1], dtype=np.int32)


def check_spec(spec: Spec, machine: AnyMachine) -> None:
    """Raise :class:`TableError` if the assumption or a history variable is written wrongly."""
    pasts = [type(history.initial) for history in spec.histories]
    states = [machine.state, *pasts]
    if spec.assume is not None:
        check_words(spec.assume, "the environment assumption", states=states, events=machine.events, step=True)
    for history in spec.histories:
        where = f"history variable {type(history.initial).__name__}"
        if type(history.now) is not type(history.initial):
            raise TableError(f"{where}: now= is a {type(history.now).__name__}: write symbol({type(history.initial).__name__})")
        for condition, update in history.rules:
            check_words(condition, f"{where}: a rule", states=states, events=machine.events, step=True)
            if type(update) is not type(history.initial):
                raise TableError(f"{where}: a rule updates it to a {type(update).__name__}: write evolve(now, ...)")


__all__ = ["Block", "Graph", "LimitReached", "check_spec", "explore"]
