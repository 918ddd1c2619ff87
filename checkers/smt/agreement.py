"""Agreement of the readings: every one chooses the same row, successor and effects, on every step of the explored graph.

What is compared with what ``machine.step`` answered when the graph was explored:

* the generated source (and the interned table, where the machine has one), called on every pair of state and event;
* the z3 terms, evaluated on every pair, histories included (:mod:`.evaluate`), and by the solver itself on a sample (:mod:`.sample`);
* plain interpretation and the ``transitions`` view, called once for each combination of what they can see (:mod:`.unread`).

The row itself is compared, not only what it does: a reading that ignores guards may still lead to the same successors.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import attrs
import numpy as np

from turnproof.checkers.columns import Array
from turnproof.checkers.graph import Graph
from turnproof.checkers.progress import Progress
from turnproof.checkers.smt import z3api
from turnproof.checkers.smt.evaluate import Column, Evaluator, UnknownNode
from turnproof.checkers.smt.grid import Grid, Normal
from turnproof.checkers.smt.translate import SymbolicEffect, SymbolicRow
from turnproof.checkers.written import show_event
from turnproof.machines.kernel import Answer, Ignored, Refused, Row, Taken, fields_of, show

Play = Callable[[Any, Any], Answer[Any, Any]]


@attrs.frozen
class Disagreement:
    """One pair on which two readings differ."""

    reading: str
    event: int
    node: int
    what: str
    expected: str
    found: str


@attrs.frozen
class Agreed:
    """What was compared: the name of the reading, its calls or evaluations, and where it differs (the first few)."""

    reading: str
    pairs: int
    calls: int
    differences: tuple[Disagreement, ...]


KINDS = {"taken": Taken, "ignored": Ignored, "refused": Refused}
FEW = 3
"""Differences reported for one reading and event."""


# ── plain: every pair ──


def plain(grid: Grid, reading: str, play: Callable[[object], Play], progress: Progress, *, states: Sequence[object] = ()) -> Agreed:
    """Call a fast reading on every pair. ``play`` gives, for an event, the function that answers it; ``states`` replace the graph's own."""
    graph = grid.graph
    states = states or graph.states[: graph.explored]
    differences: list[Disagreement] = []
    for number, event in enumerate(graph.events):
        progress.say(f"agreement: {reading}", number, len(graph.events))
        step, rows = play(event), graph.row[number].tolist()
        answers = [step(state, event) for state in states]
        for node, answer in enumerate(answers):
            if rows[node] >= 0 and not _same(graph, number, node, answer):
                differences.append(_difference(graph, reading, number, node, answer))
                if len(differences) >= FEW:
                    break
    return Agreed(reading, graph.steps, graph.steps, tuple(differences))


def _same(graph: Graph, event: int, node: int, answer: Answer[Any, Any]) -> bool:
    row = graph.rows[graph.row[event, node]]
    if answer.row is not row or not well_formed(answer):
        return False
    if not isinstance(answer, Taken):
        return True
    expected = graph.states[graph.successor[event, node]]
    return bool(answer.state == expected) and answer.effects == graph.effect_lists[graph.effects[event, node]]


def well_formed(answer: Answer[Any, Any]) -> bool:
    """Whether the answer is of the kind, and with the words, that its row gives."""
    return type(answer) is KINDS[answer.row.answer] and (isinstance(answer, Taken) or answer.why == answer.row.ignore + answer.row.refuse)


def _difference(graph: Graph, reading: str, event: int, node: int, answer: Answer[Any, Any]) -> Disagreement:
    expected = shown(
        graph,
        graph.rows[graph.row[event, node]],
        graph.states[graph.successor[event, node]],
        graph.effect_lists[graph.effects[event, node]],
    )
    state = answer.state if isinstance(answer, Taken) else graph.states[node]
    found = shown(graph, answer.row, state, answer.effects if isinstance(answer, Taken) else ())
    what = "row" if answer.row is not graph.rows[graph.row[event, node]] else "successor or effects"
    if not well_formed(answer):
        what, found = "answer", f"{found}, as {type(answer).__name__}"
    return Disagreement(reading, event, node, what, expected, found)


def shown(graph: Graph, row: Row[Any, Any], state: object, effects: tuple[object, ...]) -> str:
    """An answer in words."""
    emitted = f", emits {effects_text(effects)}" if effects else ""
    return f"row {row.name} to {state_text(graph, state)}{emitted}"


def state_text(graph: Graph, state: object) -> str:
    """The fields in which a state differs from the initial one."""
    first = graph.machine.initial
    parts = [
        f"{f} = {show(getattr(state, f))}"
        for f in fields_of(graph.machine.state)
        if getattr(state, f) is not getattr(first, f) and getattr(state, f) != getattr(first, f)
    ]
    return f"({', '.join(parts) or 'the initial state'})"


# ── the z3 terms: every pair, by columns ──


def terms(grid: Grid, progress: Progress) -> Agreed:
    """Evaluate the terms that the solver gets on every pair, histories included."""
    graph = grid.graph
    differences: list[Disagreement] = []
    before = grid.before()
    chosen = {row.name: row.chosen() for row in grid.symbolic.rows}
    evaluations = 0
    for number, event in enumerate(graph.events):
        progress.say("agreement: z3 terms", number, len(graph.events))
        try:
            evaluator = Evaluator({**before, **grid.other_inputs(), **grid.inputs(event)}, nodes=grid.nodes)
            found = list(_event_terms(grid, number, evaluator, chosen))
        except UnknownNode as error:
            found = [Disagreement(Z3, number, 0, "reads", "a term of known nodes", str(error))]
        differences += found[:FEW]
        evaluations += graph.explored
    return Agreed(Z3, graph.steps, evaluations, tuple(differences))


Z3 = "z3 terms"


def _event_terms(grid: Grid, number: int, evaluator: Evaluator, guards: Mapping[str, z3api.Expr]) -> Iterator[Disagreement]:
    graph, symbolic = grid.graph, grid.symbolic
    rows = [row for row in symbolic.rows if row.event is type(graph.events[number])]
    chosen = np.stack([np.broadcast_to(evaluator.column(guards[row.name]), graph.explored) for row in rows])
    allowed = graph.row[number] >= 0
    numbers = np.array([grid.rows[id(row.row)] for row in rows])
    found = np.where(chosen.sum(axis=0) == 1, numbers[chosen.argmax(axis=0)], -2)
    wrong = allowed & (found != graph.row[number])
    for node in np.flatnonzero(wrong)[:FEW].tolist():
        names = [row.name for row, mine in zip(rows, chosen[:, node].tolist(), strict=True) if mine]
        expected = graph.rows[graph.row[number, node]].name
        yield Disagreement(Z3, number, node, "row", f"row {expected}", f"row {', row '.join(names)}" if names else "no row")
    for place, row in enumerate(rows):
        nodes = np.flatnonzero(allowed & ~wrong & chosen[place])
        if nodes.size:
            yield from _successors(grid, number, row, nodes, evaluator)
            yield from _effects(grid, number, row, nodes, evaluator)
    yield from _histories(grid, number, np.flatnonzero(allowed & ~wrong), evaluator)


def _successors(grid: Grid, number: int, row: SymbolicRow, nodes: Array, evaluator: Evaluator) -> Iterator[Disagreement]:
    after = grid.graph.successor[number][nodes]
    for slot in grid.symbolic.slots:
        if slot.owner is grid.graph.machine.state:
            term = row.successor.get(slot.name, slot.now.expr)
            yield from _differing(grid, number, nodes, slot.name, evaluator.column(term), grid.now[slot.name][after])


def _differing(grid: Grid, number: int, nodes: Array, slot: str, column: Column, expected: Column) -> Iterator[Disagreement]:
    found = np.broadcast_to(column, grid.graph.explored)[nodes]
    for place in np.flatnonzero(found != expected)[:FEW].tolist():
        words = (f"{slot} = {word(grid, slot, int(value))}" for value in (expected[place], found[place]))
        yield Disagreement(Z3, number, int(nodes[place]), "successor", *words)


def _histories(grid: Grid, number: int, nodes: Array, evaluator: Evaluator) -> Iterator[Disagreement]:
    """The histories' terms read words of the step, which come from what the graph recorded."""
    symbolic = grid.symbolic
    if not symbolic.history or not nodes.size:
        return
    machine = {f"next.{s.name}" for s in symbolic.slots if s.name not in symbolic.history}
    words = dict(grid.words(number, machine))
    words |= grid.counts(number, Evaluator({**evaluator.symbols, **words}, nodes=grid.nodes))
    reader = Evaluator({**evaluator.symbols, **words}, nodes=grid.nodes)
    for name, term in symbolic.history.items():
        yield from _differing(grid, number, nodes, name, reader.column(term), grid.now[name][grid.graph.successor[number][nodes]])


def _effects(grid: Grid, number: int, row: SymbolicRow, nodes: Array, evaluator: Evaluator) -> Iterator[Disagreement]:
    """Distinct combinations of conditions and field values are few; each is turned into effects and compared once."""
    parts: list[Column] = []
    for effect in row.effects:
        conditions = [] if effect.condition is None else [effect.condition]
        parts += [np.broadcast_to(evaluator.column(c), grid.graph.explored)[nodes] for c in conditions]
        parts += [np.broadcast_to(evaluator.column(t.expr), grid.graph.explored)[nodes] for t in effect.fields.values()]
    listed = grid.graph.effects[number][nodes].astype(np.int64)
    table = np.stack([*(p.astype(np.int64) for p in parts), listed])
    combinations, first = np.unique(table, axis=1, return_index=True)
    for combination, place in zip(combinations.T.tolist(), first.tolist(), strict=True):
        found = _made(row.effects, combination[:-1], grid)
        if found != grid.effects[combination[-1]]:
            expected = effects_text(grid.graph.effect_lists[combination[-1]])
            yield Disagreement(Z3, number, int(nodes[place]), "effects", f"emits {expected}", f"emits {normal_text(found)}")


def _made(effects: tuple[SymbolicEffect, ...], numbers: list[int], grid: Grid) -> Normal:
    """The effects that a combination of numbers stands for."""
    made, rest = [], iter(numbers)
    for effect in effects:
        emitted = effect.condition is None or bool(next(rest))
        fields = tuple((name, term.sort.python, next(rest)) for name, term in effect.fields.items())
        if emitted:
            made.append((effect.effect, fields))
    return tuple(made)


def word(grid: Grid, slot: str, number: int) -> str:
    """A value of a slot as reports print it."""
    sort = next(s.now.sort for s in grid.symbolic.slots if s.name == slot)
    return show(grid.symbolic.values.value(number, sort))


def effects_text(effects: tuple[object, ...]) -> str:
    """Effects as reports print them."""
    return ", ".join(show_event(e) for e in effects) or "nothing"


def normal_text(effects: Normal) -> str:
    """Effects in normal form as reports print them."""
    return ", ".join(f"{cls.__name__}({', '.join(f'{n}={number}' for n, _, number in fields)})" for cls, fields in effects) or "nothing"
