"""Conditions of guards that decide nothing are remarked, and those that decide something are not."""

from __future__ import annotations

import json

import attrs
import pytest
from attrs import evolve
from cli_toys import HOLDING, MACHINE, SPEC, Hand, Phase, Rang, machine_report, now, opened, run_report

from turnproof.checkers.conjuncts import idle_conjuncts
from turnproof.checkers.engines import Plan
from turnproof.checkers.graph import explore
from turnproof.checkers.report import json_report, machine_text
from turnproof.checkers.verdict import Outcome
from turnproof.checkers.verify import report
from turnproof.machines.kernel import NOBODY, Row
from turnproof.specs.language import Spec

NEEDED = (now.phase == Phase.CLOSED) & (opened.hand == Hand.LEFT)


def door(guard: bool) -> Spec:
    """The door, whose first row has this guard; those behind it answer everything else."""
    first = Row(opened, when=guard, to=Phase.OPEN, data=evolve(now, owner=opened.by), emit=(Rang(opened.by),), name="open")
    rows = (first, *(row for row in MACHINE.rows[2:]))
    return attrs.evolve(SPEC, machine=attrs.evolve(MACHINE, rows=rows))


@pytest.mark.parametrize(
    ("guard", "said"),
    [
        (now.phase == Phase.CLOSED, []),
        (NEEDED, []),
        (NEEDED & (now.turns == 0), ["row open: `turns = 0` is true of all pairs that reach it"]),
        (
            NEEDED & (now.phase != Phase.OPEN),
            ["row open: `phase /= open` is never the only one that is false, of 18 pairs that reach it"],
        ),
        (NEEDED & (now.phase == Phase.CLOSED), 2),
        (NEEDED | (now.owner != NOBODY), []),
    ],
    ids=["one condition", "two that decide", "a constant", "one that follows", "one twice", "no conjunction"],
)
def test_a_condition_that_is_never_alone_in_being_false_is_remarked(guard: bool, said: list[str] | int) -> None:
    found = [str(idle) for idle in idle_conjuncts(explore(door(guard)))]
    assert (len(found) if isinstance(said, int) else found) == said


def test_a_remark_is_in_the_report_and_fails_nothing() -> None:
    made = report(door(NEEDED & (now.turns == 0)), Plan(engines=("explicit",)))
    assert made.remarks == ("row open: `turns = 0` is true of all pairs that reach it",)
    assert not any("turns" in v.check + v.detail for v in made.verdicts if v.outcome is not Outcome.HOLDS)
    text = " ".join(machine_text(made).split())
    assert (
        "conditions that decide nothing in what was explored (no failure: drop them, or keep them for the reader): row open: `turns" in text
    )
    (machine,) = json.loads(json_report(run_report(made)))["machines"]
    assert machine["remarks"] == list(made.remarks)


def test_many_remarks_are_counted() -> None:
    many = machine_report(*HOLDING, remarks=tuple(f"row {n}: `x` is true of all pairs that reach it" for n in range(9)))
    assert "row 3: `x` is true of all pairs that reach it; and 5 more, which --verbose tells" in " ".join(machine_text(many).split())
    assert "row 8: `x`" in machine_text(many, verbose=True)
    assert "conditions that decide nothing" not in machine_text(machine_report(*HOLDING))
