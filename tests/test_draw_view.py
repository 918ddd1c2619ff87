"""The ``transitions`` reading of a table agrees with ``step`` on every pair, and a mistake in it is found."""

import itertools
from collections.abc import Callable, Iterator
from typing import Any

import attrs
import draw_toys
import pytest

from turnproof.checkers.draw import View, disagreements, view
from turnproof.checkers.graph import Graph, explore
from turnproof.machines.kernel import HOLE, OPERATORS, Formula, Machine, Refused, Row
from turnproof.machines.kernel.evaluate import PYTHON
from turnproof.specs.catalog import specifications
from turnproof.specs.language import Spec

AnyMachine = Machine[Any, Any, Any]
TOY = draw_toys.MACHINE
SPECS = {draw_toys.MACHINE.name: draw_toys.SPEC, **specifications()}
FEW = {name: spec for name, spec in SPECS.items() if len(spec.machine.rows) <= 40 or name == "reply_operation"}
"""The rest is compared by every verification: the engines agree on every pair."""


def pairs(graph: Graph, every: int = 1) -> Iterator[tuple[Any, Any]]:
    return itertools.product(dict.fromkeys(graph.states[::every]), graph.events)


@pytest.fixture(scope="module")
def toy() -> Graph:
    return explore(draw_toys.SPEC)


ENOUGH = 5_000
"""Pairs tried of each machine here; ``turnproof verify`` compares every pair."""


@pytest.mark.parametrize("spec", FEW.values(), ids=FEW.keys())
def test_agrees_with_step(spec: Spec) -> None:
    graph = explore(spec)
    chosen = [*pairs(graph, every=1 + graph.steps // ENOUGH)]
    # Nodes that differ only in what a history recalls are one state here.
    assert len(chosen) > min(len(set(graph.states)) * len(graph.events), ENOUGH) // 2 > 5
    assert [*disagreements(spec.machine, chosen)] == []


def reordered(machine: AnyMachine, upper: str, lower: str) -> AnyMachine:
    """The same row objects, two of them in each other's place."""
    order = [row.name for row in machine.rows]
    i, j = order.index(upper), order.index(lower)
    rows = [*machine.rows]
    rows[i], rows[j] = rows[j], rows[i]
    return attrs.evolve(machine, rows=tuple(rows))


def test_two_rows_in_the_wrong_order_are_found_by_the_row_alone(toy: Graph) -> None:
    # One ignores, the other stays without effects: the state is the same, only the row tells the two tables apart.
    wrong = View(reordered(TOY, "Arrived/late", "Arrived/otherwise"))
    found = [*disagreements(TOY, pairs(toy), view=wrong)]
    assert found
    assert all(d.library.row is not d.step.row for d in found)
    assert "row Arrived/otherwise (taken)" in str(found[0])
    assert "row Arrived/late (ignored)" in str(found[0])


def nothing(operand: view.Reading) -> view.Reading:
    return operand


@pytest.mark.parametrize(
    ("operator", "mistaken"),
    [
        ("and", view.CLOSURES["or"]),
        ("or", view.CLOSURES["and"]),
        ("not", nothing),
        ("ge", view.CLOSURES["gt"]),
        ("eq", view.CLOSURES["ne"]),
        ("add", view.CLOSURES["sub"]),
    ],
)
def test_a_mistaken_operator_is_found(
    toy: Graph, monkeypatch: pytest.MonkeyPatch, operator: str, mistaken: Callable[..., view.Reading]
) -> None:
    monkeypatch.setattr(view, "CLOSURES", {**view.CLOSURES, operator: mistaken})
    assert any(disagreements(TOY, pairs(toy), view=View(TOY)))


@pytest.mark.parametrize("field", ["effects", "after"])
def test_a_lost_effect_and_a_lost_change_are_found(toy: Graph, field: str) -> None:
    changed = View(TOY)
    lost: dict[str, Callable[[], Any]] = {"effects": tuple, "after": lambda: changed.model.data}
    changed.machine.finalize_event.append(lambda event: setattr(changed.model, field, lost[field]()))
    assert any(disagreements(TOY, pairs(toy), view=changed))


@pytest.mark.parametrize("operator", sorted(OPERATORS))
def test_every_operator_means_what_the_kernel_says(operator: str) -> None:
    values: dict[str, list[Any]] = {"bool": [False, True], "int": [0, 1, 2]}
    kinds = {"and": "bool", "or": "bool", "not": "bool", "implies": "bool", "choose": "bool"}.get(operator, "int")
    arity = {"not": 1, "choose": 3}.get(operator, 2)
    for args in itertools.product(values[kinds], repeat=arity):
        got = view.closure(Formula(operator, args), object)(None, None)
        assert got == PYTHON[operator](*args), (operator, args)


def test_a_pair_without_a_row_is_refused_by_the_hole() -> None:
    holed = TOY.variant("holed", drop=["Held/otherwise"])
    answer = View(holed).play(draw_toys.Download(), draw_toys.Held())
    assert isinstance(answer, Refused)
    assert answer.row is HOLE


def test_the_library_alone_moves_the_phase(toy: Graph) -> None:
    # Without its destination a transition of the library stays where it is, so the view would too.
    changed = View(TOY)
    transition = changed.machine.events["Asked"].transitions["IDLE"][0]
    transition.dest = None
    assert any(d.event == draw_toys.Asked() for d in disagreements(TOY, pairs(toy), view=changed))


def test_a_row_is_one_transition_for_each_phase_it_applies_at() -> None:
    events = View(TOY).machine.events
    assert [len(events["Asked"].transitions[phase.name]) for phase in draw_toys.Phase] == [2, 1, 1, 1, 1, 1]
    assert isinstance(TOY.rows[0], Row)
