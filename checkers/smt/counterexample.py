"""A counterexample to induction as a person reads it: one step from a state nobody may ever reach, and whether anybody does."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from turnproof.checkers.smt.grid import Grid
from turnproof.checkers.smt.terms import Sort, Values
from turnproof.machines.kernel import Kind, show


class Reach:
    """Finds states, given as slot -> number, among the explored ones; tokens are told apart, their names do not matter."""

    def __init__(self, grid: Grid) -> None:
        self.grid = grid
        self.names = [slot.name for slot in grid.symbolic.slots]
        self.tokens = [slot.field.kind is Kind.TOKEN for slot in grid.symbolic.slots]
        rows = zip(*(grid.now[name].tolist() for name in self.names), strict=True)
        self.known: dict[tuple[int, ...], int] = {}
        for node, row in enumerate(rows):
            self.known.setdefault(self._named(row), node)

    def _named(self, row: tuple[int, ...]) -> tuple[int, ...]:
        """Tokens numbered in the order in which they occur; nobody stays 0."""
        order: dict[int, int] = {0: 0}
        return tuple(order.setdefault(v, len(order)) if token else int(v) for v, token in zip(row, self.tokens, strict=True))

    def node(self, state: Mapping[str, int]) -> int | None:
        """The explored node that is this state; None if there is none."""
        return self.known.get(self._named(tuple(state[name] for name in self.names)))

    def where(self, state: Mapping[str, int]) -> str:
        """Whether the state is reachable, as far as the exploration can tell."""
        node = self.node(state)
        if node is not None:
            return f"that state IS reachable, in {int(self.grid.graph.depth[node])} steps"
        beyond = [
            n
            for n, slot in zip(self.names, self.grid.symbolic.slots, strict=True)
            if slot.field.kind is Kind.COUNTER and state[n] > self.grid.graph.spec.counter
        ]
        if beyond:
            return (
                f"that state is outside the explored bounds ({beyond[0]} = {state[beyond[0]]}, explored to {self.grid.graph.spec.counter})"
            )
        return "that state is not reachable within the explored bounds; a lemma may rule it out"


def describe(grid: Grid, reach: Reach, found: Mapping[str, Any]) -> str:
    """The step the solver found, as a diff, and whether its first state is reachable."""
    if found.get("unknown"):
        return f"z3 gave no answer in time for row {found['row']}"
    if found["row"] is None:
        return "the initial state does not satisfy it"
    sorts = {slot.name: slot.now.sort for slot in grid.symbolic.slots}
    before, after = found["before"], found["after"]
    start = {name: int(column[0]) for name, column in grid.now.items()}
    state = ", ".join(_pairs(grid.symbolic.values, sorts, {n: v for n, v in before.items() if v != start[n]})) or "the initial state"
    changes = "; ".join(
        f"{n}: {_word(grid, sorts[n], before[n])} -> {_word(grid, sorts[n], after[n])}" for n in before if before[n] != after[n]
    )
    inputs = {i.name: i for i in grid.symbolic.inputs}
    event = next(row.event.__name__ for row in grid.symbolic.rows if row.name == found["row"])
    given = {n: v for n, v in found["inputs"].items() if n.startswith(f"event.{event}.")}
    fields = ", ".join(_pairs(grid.symbolic.values, {n: i.term.sort for n, i in inputs.items()}, given)).replace(f"event.{event}.", "")
    step = f"row {found['row']} on {event}({fields}) from ({state}) breaks it, changing {changes or 'nothing'}"
    return f"not inductive: {step}; {reach.where(before)}"


def _pairs(values: Values, sorts: Mapping[str, Sort], numbers: Mapping[str, int]) -> Iterator[str]:
    return (f"{name} = {show(values.value(number, sorts[name]))}" for name, number in numbers.items())


def _word(grid: Grid, sort: Sort, number: int) -> str:
    return show(grid.symbolic.values.value(number, sort))
