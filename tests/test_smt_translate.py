"""From a specification to terms: names that every solver reads, holes, and mistakes that are refused with their place."""

from __future__ import annotations

from enum import Enum
from typing import Any, cast

import attrs
import pytest
from attrs import evolve, frozen
from smt_toys import found, setting
from toys import GATE, GATE_SPEC, LOCK, UNLOCKED_ONCE, UNLOCKS, Acquired, Granted, Passed, Unlock, acquired, spec_of

from turnproof.checkers.smt import compose, cvc5api, prove, z3api
from turnproof.checkers.smt.translate import Symbolic
from turnproof.machines.kernel import Machine, Row, StartTimer, TableError, symbol
from turnproof.specs.language import Always, History, after, count, never, on, taken

gate, lock = GATE.now, LOCK.now


class Zustand(Enum):
    AN = "an"
    AUS = "aus"


@frozen
class Gerät:
    phase: Zustand = Zustand.AN
    größe: bool = False


@frozen
class Gedrückt: ...


gerät = symbol(Gerät)
GERÄT: Machine[Gerät, Gedrückt, StartTimer] = Machine(
    name="geraet",
    initial=Gerät(),
    now=gerät,
    events=(Gedrückt,),
    effects=(StartTimer,),
    rows=(Row(Gedrückt, data=evolve(gerät, größe=True), name="gedrückt"),),
)


def test_names_are_read_by_both_solvers_without_quotes() -> None:
    spec = spec_of(GERÄT, never("aus", gerät.phase == Zustand.AUS, requirements=()))
    _, symbolic, _, table = setting(spec)
    assert {"now.gr_uf6_udfe", "next.phase", "on.Gedr_ufcckt", "answer.taken"} <= set(symbolic.symbols())
    types = compose.prelude(table, (), ())
    for shell in (z3api.Script(), cvc5api.Script()):
        shell.run(types)
        shell.run("\n".join(compose.meaning(table, table.rows[0])))
        assert [answer for answer, _ in shell.ask(["(not next.gr_uf6_udfe)", "on.Gedr_ufcckt"])] == ["unsat", "sat"]
    assert not found(spec)["failed"]


def test_nothing_is_primed_or_quoted() -> None:
    _, _, _, table = setting(spec_of(GATE, UNLOCKED_ONCE, histories=(UNLOCKS,)))
    for name in compose.sorts(table):
        assert "'" not in name
        assert "|" not in name
    assert "now.Count_unlocks.unlocks" in compose.sorts(table)


def test_two_histories_of_one_name_are_told_apart() -> None:
    other = attrs.evolve(UNLOCKS, initial=type(UNLOCKS.initial)(), rules=UNLOCKS.rules)
    twin = type("Count_unlocks", (), {"__annotations__": {"unlocks": bool}, "unlocks": False, "__module__": __name__})
    second = History(attrs.frozen(twin)(), symbol(attrs.frozen(twin)), ())
    symbolic = Symbolic(GATE, (other, second))
    assert {s.name for s in symbolic.slots} >= {"Count_unlocks.unlocks", "Count_unlocks.2.unlocks"}


def test_a_row_of_a_guarded_event_gets_a_hole_after_it() -> None:
    names = [row.name for row in Symbolic(LOCK.variant("holed", drop=("freed/other", "acquired/taken"))).rows]
    assert names == ["acquired/nobody", "acquired", "acquired/again", "hole/Acquired", "freed", "hole/Freed"]


def symbolic_text(node: Any) -> str:
    return z3api.text(Symbolic(LOCK).step_formula(node, "the property"))


def test_words_of_a_step() -> None:
    assert symbolic_text(on(Acquired)) == "on.Acquired"
    assert symbolic_text(taken()) == "answer.taken"
    assert symbolic_text(after(type(LOCK.initial)).owner == acquired.by) == "(= next.owner event.Acquired.by)"
    assert symbolic_text(count(Granted) > 1) == "(< 1 count.Granted)"


def test_equal_counts_are_one_word_and_others_are_not() -> None:
    symbolic = Symbolic(LOCK)
    for wanted in ({"to": acquired.by}, {"to": acquired.by}, {"to": lock.owner}, {"again": True}, {"again": False}):
        symbolic.step_formula(count(Granted, **wanted) == 1, "x")
    assert len(symbolic.counts) == 4


def read_everywhere(node: Any) -> None:
    """Read a property, and what its words mean in every row."""
    symbolic = Symbolic(LOCK)
    symbolic.step_formula(node, "the property")
    for row in symbolic.rows:
        symbolic.meaning(row)


@pytest.mark.parametrize(
    ("node", "said"),
    [
        (lambda: on(Passed), r"on\(Passed\): the machine has no such event"),
        (lambda: count(Unlock) == 1, r"count\(Unlock\): the machine has no such effect"),
        (lambda: gate.closing, "Gate.closing is no field of the state, of an event or of a history; these are known: LockState, Acquired"),
        (lambda: lock.owner == cast(Any, lock.phase), "the property: `=` of a token and LockPhase"),
        (lambda: count(Granted, again=lock.owner) == 1, "count.Granted, again=...."),
    ],
)
def test_what_cannot_be_read_is_refused(node: Any, said: str) -> None:
    with pytest.raises(TableError, match=said):
        read_everywhere(node())


def test_a_property_of_states_knows_no_step() -> None:
    with pytest.raises(TableError, match="it reads `on Passed`, but speaks of every state"):
        Symbolic(GATE).state_formula(on(Passed), "the property")


def test_a_history_does_not_read_another_one_after_the_step() -> None:
    past: Any = UNLOCKS.now
    then: Any = after(type(UNLOCKS.initial))
    reads = History(UNLOCKS.initial, past, ((then.unlocks == 1, past),))
    with pytest.raises(TableError, match="a history sees the machine's state after the step"):
        Symbolic(GATE, (reads,))


def test_the_digest_changes_with_the_table() -> None:
    def text(machine: Any) -> str:
        return prove.table_text(machine)

    assert text(LOCK) == text(attrs.evolve(LOCK))
    assert text(LOCK) != text(LOCK.variant("lock", drop=("acquired/nobody",)))
    assert text(LOCK) != text(attrs.evolve(LOCK, rows=LOCK.rows[::-1]))


def test_a_requirement_stays_with_its_claim() -> None:
    wanted = Always("a shut gate has no timer", gate.closing == (gate.phase == GATE.phases[1]), requirements="G-9")
    assert [p.requirements for p in spec_of(GATE, wanted).properties] == [("G-9",)]
    assert GATE_SPEC.machine is GATE
