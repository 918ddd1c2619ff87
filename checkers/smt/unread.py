"""Slow readings, called once for each combination of what they can see.

Parametricity (Wadler, "Theorems for free!", 1989): a reading that never looks at a field treats all its values alike. So plain
interpretation and the ``transitions`` view are called once for each combination of the fields that the rows of an event read,
with an :class:`Unread` in every other field, which raises when anything looks at it and must come out where it went in. The
answer is then compared on every pair of the graph that has this combination. Opaque fields carry a mark of their own each,
so that a mix-up of two of them shows, which an exploration with one value for each cannot see.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NoReturn, cast

import attrs
import numpy as np

from turnproof.checkers.columns import Array
from turnproof.checkers.progress import Progress
from turnproof.checkers.smt.agreement import FEW, Agreed, Disagreement, Play, effects_text, normal_text, shown, well_formed, word
from turnproof.checkers.smt.grid import Grid, Normal, normal
from turnproof.machines.kernel import HOLE, Answer, Formula, Kind, Machine, Taken, Variable, fields_of, variables


class Looked(RuntimeError):
    """A reading looked at a field that the rows of the event do not read."""


@attrs.frozen(eq=False)
class Unread:
    """Stands in a field that must not matter. Whatever looks at it raises :class:`Looked`."""

    field: str

    def _looked(self, *_: object) -> NoReturn:
        raise Looked(f"it looks at {self.field}, which no row of the event reads")

    __bool__ = __eq__ = __ne__ = __hash__ = __lt__ = __le__ = __gt__ = __ge__ = __add__ = __sub__ = __iter__ = __int__ = __index__ = _looked


MARK = 1_000_003
"""Opaque integers are marked by multiples of this, other Opaque values by an object of their own."""


def _mark(base: type, number: int) -> object:
    return MARK * number if base is int else object()


def read_fields(machine: Machine[Any, Any, Any], event: type) -> frozenset[str]:
    """The fields of the state that the rows of an event read: the phase, guards, conditions, and what updates and effects copy."""
    found: set[str] = {machine.phase}
    for row in machine.rows:
        if row.event is event:
            nodes: list[object] = [row.guard, *row.emit]
            if row.data is not None:
                nodes += [n for name in fields_of(machine.state) if not _stays(n := getattr(row.data, name), machine.state, name)]
            found |= {v.name for n in nodes if n is not None for v in variables(n) if v.owner is machine.state}
    return frozenset(found)


def _stays(node: object, state: type, name: str) -> bool:
    return isinstance(node, Formula) and node.op == "var" and cast(Variable, node.args[0]) == Variable(state, name)


def projected(grid: Grid, readings: Mapping[str, Play], progress: Progress) -> list[Agreed]:
    """Call slow readings once for each combination of what the rows of an event read, and compare on every pair."""
    graph, machine = grid.graph, grid.graph.machine
    differences: dict[str, list[Disagreement]] = {name: [] for name in readings}
    calls = 0
    for number, block in enumerate(graph.blocks):
        progress.say("agreement: interpretation and view", number, len(graph.blocks))
        reads = read_fields(machine, block.event)
        key = np.stack([grid.now[name][: graph.explored].astype(np.int64) for name in sorted(reads) if name in grid.now])
        _, first, inverse = np.unique(key, axis=1, return_index=True, return_inverse=True)
        inverse = inverse.ravel()
        states = [_masked(machine, graph.states[node], reads) for node in first.tolist()]
        for event_number in range(block.start, block.stop):
            event = _marked(graph.events[event_number])
            calls += len(states)
            for name, play in readings.items():
                if len(differences[name]) < FEW:
                    differences[name] += _broadcast(grid, name, play, event_number, event, states, first, inverse)
    return [Agreed(name, graph.steps, calls, tuple(found[:FEW])) for name, found in differences.items()]


def _masked(machine: Machine[Any, Any, Any], state: object, reads: frozenset[str]) -> object:
    values: dict[str, object] = {}
    for number, (name, field) in enumerate(fields_of(machine.state).items(), 2):
        value = getattr(state, name)
        values[name] = _mark(field.base, number) if field.kind is Kind.OPAQUE else value if name in reads else Unread(name)
    return machine.state(**values)


def _marked(event: object) -> object:
    marks = {
        name: _mark(field.base, 1000 + n) for n, (name, field) in enumerate(fields_of(type(event)).items()) if field.kind is Kind.OPAQUE
    }
    return attrs.evolve(cast(Any, event), **marks)


def _broadcast(
    grid: Grid, reading: str, play: Play, number: int, event: object, states: list[object], first: Array, inverse: Array
) -> Iterator[Disagreement]:
    """Where the answers on the combinations differ from the graph, on any pair that has the combination."""
    graph, slots = grid.graph, [s for s in grid.symbolic.slots if s.owner is grid.graph.machine.state]
    rows = np.zeros(len(states), dtype=np.int64)
    same = np.ones((len(slots), len(states)), dtype=np.bool_)  # What stays as a whole stays in every slot.
    value = np.zeros((len(slots), len(states)), dtype=np.int64)
    effects: list[Normal] = []
    allowed = graph.row[number] >= 0
    for n, state in enumerate(states):
        try:
            answer = play(state, event)
            rows[n] = grid.rows.get(id(answer.row), -2)
            effects.append(normal(answer.effects, grid.symbolic.values) if isinstance(answer, Taken) else ())
            after = answer.state if isinstance(answer, Taken) else state
            for k, slot in enumerate(slots) if after is not state else ():
                given, came = getattr(state, slot.field.name), getattr(after, slot.field.name)
                same[k, n] = came is given
                value[k, n] = 0 if came is given else grid.symbolic.values.number(_readable(came))
            if not well_formed(answer):
                raise Mixed(f"row {answer.row.name} is answered as {type(answer).__name__}")
            if reading != REFERENCE:
                _exactly(grid, answer, state, event)
        except (Looked, Mixed) as error:
            node = int(first[n])
            if allowed[node]:
                expected = shown(graph, graph.rows[graph.row[number, node]], graph.states[graph.successor[number, node]], ())
                yield Disagreement(reading, number, node, "reads", expected, str(error))
            rows[n] = grid.rows[id(HOLE)]
            effects = [*effects[:n], ()]
            continue
    yield from _compared(
        grid,
        reading,
        number,
        allowed,
        rows[inverse],
        {s.name: (same[k][inverse], value[k][inverse]) for k, s in enumerate(slots)},
        effects,
        inverse,
    )


REFERENCE = "generated source"


class Mixed(RuntimeError):
    """An Opaque value came out where another one belongs, or an answer of another kind."""


def _readable(value: object) -> object:
    if isinstance(value, Unread):
        raise Looked(f"it moves {value.field} to another field")
    return value


def _exactly(grid: Grid, answer: Answer[Any, Any], state: object, event: object) -> None:
    """The whole answer, Opaque fields included, is what the generated source gives."""
    expected = grid.graph.machine.generated[type(event)](state, event)
    if answer.row is not expected.row or not (isinstance(answer, Taken) and isinstance(expected, Taken)):
        return
    for what, given, wanted in (("state", (answer.state,), (expected.state,)), ("effects", answer.effects, expected.effects)):
        for one, other in zip(given, wanted, strict=False):
            for name, field in fields_of(type(one)).items():
                if field.kind is Kind.OPAQUE and getattr(one, name) != getattr(other, name, None):
                    raise Mixed(
                        f"row {answer.row.name}: {what}: {field} holds {getattr(one, name)!r}, "
                        f"the generated source gives {getattr(other, name, None)!r}"
                    )


def _compared(
    grid: Grid,
    reading: str,
    number: int,
    allowed: Array,
    rows: Array,
    after: Mapping[str, tuple[Array, Array]],
    effects: list[Normal],
    inverse: Array,
) -> Iterator[Disagreement]:
    graph = grid.graph
    wrong = allowed & (rows != graph.row[number])
    for node in np.flatnonzero(wrong)[:FEW].tolist():
        found = f"row {graph.rows[rows[node]].name}" if rows[node] >= 0 else "a row of another machine"
        yield Disagreement(reading, number, node, "row", f"row {graph.rows[graph.row[number, node]].name}", found)
    agreed = allowed & ~wrong
    for name, (same, value) in after.items():
        before, expected = grid.now[name][: graph.explored], grid.now[name][graph.successor[number]]
        differ = agreed & (np.where(same, before, value) != expected)
        for node in np.flatnonzero(differ)[:FEW].tolist():
            given = int(before[node]) if same[node] else int(value[node])
            yield Disagreement(
                reading,
                number,
                node,
                "successor",
                f"{name} = {word(grid, name, int(expected[node]))}",
                f"{name} = {word(grid, name, given)}",
            )
    numbers = _numbered(effects)
    keys = np.array([numbers[e] for e in effects])[inverse]
    listed = np.array([numbers.get(e, -1) for e in grid.effects])[graph.effects[number]]
    for node in np.flatnonzero(agreed & (keys != listed))[:FEW].tolist():
        expected_effects = graph.effect_lists[graph.effects[number, node]]
        yield Disagreement(
            reading, number, node, "effects", f"emits {effects_text(expected_effects)}", f"emits {normal_text(effects[int(inverse[node])])}"
        )


def _numbered(effects: list[Normal]) -> dict[Normal, int]:
    numbers: dict[Normal, int] = {}
    for effect in effects:
        numbers.setdefault(effect, len(numbers))
    return numbers
