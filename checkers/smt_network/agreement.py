"""Agreement of the explicit engine and the terms: the same steps from the same states, and the same words of every step.

On every explored state of a block, for every trigger of the explicit engine, the terms of its action are evaluated (by
:mod:`turnproof.checkers.smt.evaluate`, node by node, as the solvers get them):

* there is a step exactly where the action's first row whose guard holds is one that is followed; exactly one is;
* the state after it is the explicit engine's, in every variable;
* every count that a property reads, and every property of steps, is the same.

On a smaller sample (:func:`deliveries`) steps are performed by ``machine.step``, and the terms must choose the same row of the same
part for every event that is handled, in the same order; steps that are not allowed must be faults of the same kind.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import attrs
import numpy as np

from turnproof.checkers.network.explicit import NetworkGraph
from turnproof.checkers.network.run import Broken, Cut, Fault, Occurrence, Runner, World
from turnproof.checkers.network.triggers import Kind as Begin
from turnproof.checkers.network.triggers import Trigger
from turnproof.checkers.progress import Progress
from turnproof.checkers.smt.evaluate import Evaluator, Nodes, UnknownNode
from turnproof.checkers.smt.z3api import Expr
from turnproof.checkers.smt_network.columns import Block, Column, States
from turnproof.checkers.smt_network.relation import Action, Network, NetworkRow
from turnproof.checkers.smt_network.variables import readable
from turnproof.machines.kernel import Formula, show
from turnproof.specs.system import Spontaneous, System

FEW = 3
"""Differences reported."""


@attrs.frozen
class Difference:
    """One step on which the two readings differ."""

    where: str
    what: str


@attrs.frozen
class Agreed:
    """What was compared, and the first few differences."""

    states: int
    steps: int
    differences: tuple[Difference, ...]
    unfollowed: int = 0
    """Steps among them that the terms do not follow to their end."""


class Picked(Mapping[str, Column]):
    """Columns of some rows, taken out when first asked for."""

    def __init__(self, columns: Mapping[str, Column], rows: Column) -> None:
        self.columns, self.rows, self.taken = columns, rows, dict[str, Column]()

    def __getitem__(self, name: str) -> Column:
        if name not in self.taken:
            column = self.columns[name]
            self.taken[name] = column if len(column) == 1 else column[self.rows]
        return self.taken[name]

    def __contains__(self, name: object) -> bool:
        return name in self.columns

    def __iter__(self) -> Iterator[str]:
        return iter(self.columns)

    def __len__(self) -> int:
        return len(self.columns)


@attrs.frozen(eq=False)
class Asked:
    """A formula about steps: as the explicit engine reads it, and as a term."""

    formula: Formula
    term: Expr


def asked(network: Network, formulas: Mapping[str, object]) -> list[Asked]:
    """The properties of steps, and of every word they count whether it is at least 1, and at least 2."""
    made = [Asked(f, network.step_formula(f, name)) for name, f in formulas.items() if isinstance(f, Formula)]
    for count in network.counts.values():
        word = Formula("var", (count.word,))
        for most in (1, 2):
            node = word >= most
            made.append(Asked(node, network.step_formula(node, count.name)))
    return made


class Comparison:
    """Compares blocks of one graph with the terms of one network."""

    def __init__(self, network: Network, graph: NetworkGraph, questions: Sequence[Asked]) -> None:
        self.network, self.graph, self.questions = network, graph, tuple(questions)
        self.nodes = Nodes()
        self.unfollowed = 0
        """Steps that the terms do not follow to their end, and say so."""
        self.actions = [self._actions_of(t) for t in graph.triggers]
        self.reordered = [c for c in network.variables.channels if c.channel.reordered and c.channel.capacity > 1]

    def _actions_of(self, trigger: Trigger) -> list[tuple[Action, dict[str, Column], Expr]]:
        """The actions a trigger stands for, with their inputs and what the trigger asks beside them."""
        fold, made = self.network.fold, list[tuple[Action, dict[str, Column], Expr]]()
        for action in self.network.actions:
            if action.kind is not trigger.kind or action.where != trigger.where or action.position != trigger.position:
                continue
            if action.kind is Begin.SEND and self._number(self.network.system, action.source) != self._number(
                self.graph.system, trigger.source
            ):
                continue
            if action.kind is Begin.EXPIRE and action.timer is not trigger.timer:
                continue
            inputs = {i.name: np.array([self.network.values.number(getattr(trigger.event, i.field.name))], np.int64) for i in action.inputs}
            tests = [
                fold.equal(term.expr, self.network.reader.constant(getattr(trigger.event, name)).expr)
                for name, term in action.given.items()
            ]
            made.append((action, inputs, fold.conjunction(tests)))
        return made

    @staticmethod
    def _number(system: System, source: Spontaneous | None) -> int:
        """The place of a spontaneous event in its system: the two systems are the same, but for a defect that a test plants."""
        return next(n for n, s in enumerate(system.spontaneous) if s is source)

    def block(self, block: Block) -> Iterator[Difference]:
        """Where the terms differ from what the explicit engine did."""
        count = len(block.known)
        state = {f"now.{name}": column for name, column in block.states.items()}
        for number, trigger in enumerate(self.graph.triggers):
            steps = np.flatnonzero(block.label == number)
            there: Column = np.zeros(count, np.bool_)
            there[block.source[steps]] = True
            step_of: Column = np.full(count, -1, np.int64)
            step_of[block.source[steps]] = steps
            said: Column = np.zeros(count, np.int64)
            for action, inputs, besides in self.actions[number]:
                symbols = {**state, **inputs}
                reader = Evaluator(symbols, nodes=self.nodes)
                wanted = np.broadcast_to(reader.column(besides), count).astype(np.bool_)
                left = wanted.copy()
                for row in action.rows:
                    here = left & np.broadcast_to(reader.column(row.guard), count).astype(np.bool_)
                    left &= ~here
                    if row.stutter or not here.any():
                        continue
                    if row.faulty and row.wrong is None:
                        self.unfollowed += int((here & there).sum())
                        said += here
                        continue
                    if row.faulty:
                        yield from self._only(trigger, row, here & there, "which the explicit engine performs, is a fault")
                        continue
                    said += here
                    yield from self._only(trigger, row, here & ~there & block.known, "is a step here alone")
                    rows = np.flatnonzero(here & there)
                    if rows.size:
                        yield from self._row(block, trigger, row, symbols, rows, step_of[rows])
            missing = np.flatnonzero(there & (said != 1))
            if missing.size:
                yield Difference(f"{trigger} in state {missing[0]} of its block", f"{int(said[missing[0]])} rows are chosen, expected 1")

    def _only(self, trigger: Trigger, row: NetworkRow, wrong: Column, words: str) -> Iterator[Difference]:
        if wrong.any():
            yield Difference(f"{trigger} in state {int(np.flatnonzero(wrong)[0])} of its block", f"row {row.name} {words}")

    def _row(
        self, block: Block, trigger: Trigger, row: NetworkRow, symbols: Mapping[str, Column], rows: Column, steps: Column
    ) -> Iterator[Difference]:
        """One row: the state after, and the words."""
        reader = Evaluator(Picked(symbols, rows), nodes=self.nodes)
        found: dict[str, Column] = {}
        for place in self.network.variables.places:
            term = row.next.get(place.name)
            column = symbols[f"now.{place.name}"][rows] if term is None else np.broadcast_to(reader.column(term), len(rows))
            found[place.name] = column.astype(np.int64)
        expected = {name: column[steps] for name, column in block.after.items()}
        after = dict(found)
        for slots in self.reordered:
            self._sort(slots, found)
            self._sort(slots, expected)
        for name, column in found.items():
            wrong = np.flatnonzero(column != expected[name])
            if wrong.size:
                at = int(wrong[0])
                yield Difference(
                    f"{trigger} in state {int(rows[at])} of its block, row {row.name}",
                    f"{name} becomes {int(expected[name][at])} for the explicit engine, {int(column[at])} for the terms",
                )
        yield from self._words(block, trigger, row, {**Picked(symbols, rows)}, after, reader, steps)

    def _sort(self, slots: Any, columns: dict[str, Column]) -> None:
        """The slots of a reordered channel in one order; which one does not matter."""
        places = [slots.slot(n) for n in range(slots.channel.capacity)]
        table = np.stack(
            [
                np.stack([columns[p.name] for p in slot], axis=-1) if slot else np.zeros((len(columns[slots.length.name]), 1), np.int64)
                for slot in places
            ],
            axis=1,
        )
        length = columns[slots.length.name]
        full = np.arange(table.shape[1])[None, :] < length[:, None]
        order = np.lexsort((*(table[:, :, n] for n in range(table.shape[2])), ~full), axis=1)
        table = np.take_along_axis(table, order[:, :, None], axis=1)
        for n, slot in enumerate(places):
            for m, place in enumerate(slot):
                columns[place.name] = table[:, n, m]

    def _words(
        self,
        block: Block,
        trigger: Trigger,
        row: NetworkRow,
        symbols: dict[str, Column],
        after: Mapping[str, Column],
        reader: Evaluator,
        steps: Column,
    ) -> Iterator[Difference]:
        words = {**symbols, **{f"next.{name}": column for name, column in after.items()}}
        none: Column = np.zeros(1, np.int64)
        words |= {c.name: reader.column(row.counts[c.name]) if c.name in row.counts else none for c in self.network.counts.values()}
        second = Evaluator(words, nodes=self.nodes)
        for number, question in enumerate(self.questions):
            column = np.broadcast_to(second.column(question.term), len(steps)).astype(np.bool_)
            wrong = np.flatnonzero(column != block.holds[number][steps])
            if wrong.size:
                yield Difference(
                    f"{trigger}, row {row.name}", f"`{show(question.formula)}` is {bool(column[wrong[0]])} for the terms alone"
                )


def edges(
    network: Network, graph: NetworkGraph, questions: Sequence[Asked], progress: Progress, *, steps: int | None = None, seed: int = 0
) -> Agreed:
    """Compare every explored step, or a sample of about ``steps``."""
    states = States(network.variables, graph)
    comparison = Comparison(network, graph, questions)
    seen = performed = 0
    differences = list(_start(network, graph))
    for block in states.blocks([q.formula for q in questions], steps=steps, seed=seed):
        progress.say("agreement: steps", performed, steps or graph.walk.transitions)
        try:
            differences += comparison.block(block)
        except UnknownNode as error:
            differences.append(Difference("reading a term", str(error)))
        seen, performed = seen + len(block.known), performed + len(block.source)
        if len(differences) > FEW:
            break
    return Agreed(seen, performed, tuple(differences[:FEW]), comparison.unfollowed)


def _start(network: Network, graph: NetworkGraph) -> Iterator[Difference]:
    """The initial state, as a certificate has it."""
    expected = network.variables.numbers(graph.runner.initial())
    for place in network.variables.places:
        if place.start != expected[place.name]:
            yield Difference(
                "the initial state", f"{place.name} is {expected[place.name]} for the explicit engine, {place.start} for the terms"
            )


# ── what is handled within a step ──


def deliveries(network: Network, runner: Runner, triggers: Sequence[Trigger], worlds: Sequence[World], comparison: Comparison) -> Agreed:
    """Perform every step of ``worlds`` through ``machine.step``; the terms must handle the same events by the same rows, in order."""
    differences: list[Difference] = []
    performed = 0
    for world in worlds:
        numbers = numbers_of(network, world)
        for number, trigger in enumerate(triggers):
            if not runner.enabled(world, trigger):
                continue
            performed += 1
            fault, step = None, None
            try:
                step = runner.perform(world, trigger)
            except Broken as broken:
                fault = broken.fault
            except Cut:
                continue
            for action, inputs, besides in comparison.actions[number]:
                reader = Evaluator({**numbers, **inputs}, nodes=comparison.nodes)
                row = next(r for r in action.rows if bool(reader.column(r.guard)[0])) if bool(reader.column(besides)[0]) else None
                if row is None or row.stutter:
                    continue
                found = _handled(network, row, reader)
                expected = _expected(network, runner, step)
                if row.faulty and row.wrong is None:
                    continue
                if row.faulty != (fault is not None) or (fault is None and found != expected):
                    differences.append(
                        Difference(f"{trigger}, row {row.name}", f"handled {_told(fault, expected)}; the terms: {_told(row.wrong, found)}")
                    )
        if len(differences) > FEW:
            break
    return Agreed(len(worlds), performed, tuple(differences[:FEW]))


def numbers_of(network: Network, world: World) -> dict[str, Column]:
    """A state as columns of one row, by the names of its symbols."""
    return {f"now.{name}": np.array([n], np.int64) for name, n in network.variables.numbers(world).items()}


Line = tuple[str, str, str, tuple[int, ...]]


def _handled(network: Network, row: NetworkRow, reader: Evaluator) -> list[Line]:
    made = []
    for handled in row.handled:
        if bool(reader.column(handled.arrival.when)[0]):
            names = [r.name for r, when in handled.rows if bool(reader.column(when)[0])]
            fields = tuple(int(reader.column(term.expr)[0]) for term in handled.arrival.fields.values())
            made.append((network.system.everyone[handled.arrival.part].name, handled.arrival.event.__name__, " and ".join(names), fields))
    return made


def _expected(network: Network, runner: Runner, step: Occurrence | None) -> list[Line]:
    return [
        (
            runner.system.everyone[d.part].name,
            type(d.event).__name__,
            d.row,
            tuple(network.values.number(getattr(d.event, name)) for name in readable(type(d.event))),
        )
        for d in (() if step is None else step.deliveries)
    ]


def _told(fault: Fault | None, lines: Sequence[Line]) -> str:
    return (
        fault.value if fault is not None else ", ".join(f"{who} {event}{fields} by {row}" for who, event, row, fields in lines) or "nothing"
    )
