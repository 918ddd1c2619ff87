"""Cases that say exactly what an event records and tells: each part of a case notices its own mistake."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import attrs
import pytest

from turnproof.checkers.explicit import check
from turnproof.checkers.graph import explore
from turnproof.checkers.mutants import Fate
from turnproof.checkers.mutants.run import run
from turnproof.checkers.verdict import Outcome
from turnproof.machines.command_lane import (
    BUSY,
    FREE,
    MACHINE,
    ForgetTask,
    LaneCleared,
    LaneTimer,
    RejectQueued,
    ResetRequested,
    StartTurn,
    TaskEnded,
    now,
    reset,
)
from turnproof.machines.kernel import Row, StartTimer, StopTimer, TableError, not_, only_if
from turnproof.specs.command_lane import SPEC
from turnproof.specs.command_lane_exactly import EXACTLY
from turnproof.specs.exactly import NOTHING, Writer
from turnproof.specs.language import AnyMachine, Order, Spec
from turnproof.specs.steering_message import SPEC as MESSAGE
from turnproof.specs.tool_execution import SPEC as TOOL

R = Row[Any, Any]
QUEUED = now.enqueued > now.started
SURVIVED_BARE = 3
"""Changes of the row that clears a lane which the sentences alone let pass."""
STOP = only_if(not_(now.stale), StopTimer(LaneTimer.OWNERLESS))


def changed(row: str, put: Callable[[Any], Any]) -> AnyMachine:
    """The lane with one row changed."""
    old = next(r for r in MACHINE.rows if r.name == row)
    return MACHINE.variant("command_lane_changed", replace={row: put(old)})


def broken(machine: AnyMachine) -> set[str]:
    """The names of the properties that it breaks."""
    spec = attrs.evolve(SPEC, machine=machine, variants=())
    return {v.check for v in check(spec, explore(spec)) if v.outcome is Outcome.VIOLATED and v.story is not None}


MISTAKES: dict[str, tuple[AnyMachine, str]] = {
    "a field that changes": (changed("LaneCleared/a_turn_waits", lambda r: attrs.evolve(r, data=None)), "LaneCleared"),
    "an effect": (changed("LaneCleared/a_turn_waits", lambda r: attrs.evolve(r, emit=())), "LaneCleared"),
    "an effect twice": (changed("LaneCleared/a_turn_waits", lambda r: attrs.evolve(r, emit=r.emit * 2)), "LaneCleared"),
    "another effect": (changed("LaneCleared/a_turn_waits", lambda r: attrs.evolve(r, emit=(*r.emit, ForgetTask(0)))), "LaneCleared"),
    "the value of an effect": (changed("ResetRequested/free", lambda r: attrs.evolve(r, emit=(ForgetTask(7), STOP))), "ResetRequested"),
    "a condition of an effect": (
        changed("TaskEnded/free", lambda r: attrs.evolve(r, emit=(only_if(now.stale, StopTimer(LaneTimer.OWNERLESS)),))),
        "TaskEnded",
    ),
    "a phase": (changed("TaskEnded/free", lambda r: attrs.evolve(r, to=BUSY)), "TaskEnded"),
    "ignored for taken": (
        changed("TaskEnded/free", lambda r: R(r.event, at=BUSY, when=r.when, ignore="no", name=r.name)),
        "TaskEnded",
    ),
    "ignored for refused": (changed("ResetRequested/busy", lambda r: R(r.event, at=BUSY, ignore="no", name=r.name)), "ResetRequested"),
    "refused for ignored": (changed("LaneCleared/otherwise", lambda r: R(r.event, refuse="no", name=r.name)), "LaneCleared"),
    "taken for ignored": (changed("LaneCleared/otherwise", lambda r: R(r.event, stay=True, name=r.name)), "LaneCleared"),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_each_part_of_a_case_notices_its_own_mistake(mistake: str) -> None:
    machine, event = MISTAKES[mistake]
    assert f"{event} is answered exactly so" in broken(machine)


def test_effects_in_another_order_break_the_order_of_the_cases() -> None:
    machine = changed("ResetRequested/free", lambda r: attrs.evolve(r, emit=tuple(reversed(r.emit))))
    (order,) = [p for p in SPEC.properties if isinstance(p, Order)]
    assert broken(machine) == {order.name}
    assert order.all == (ForgetTask, StopTimer(LaneTimer.OWNERLESS), StartTurn, StartTimer(LaneTimer.OWNERLESS))


def test_cases_that_list_effects_in_two_orders_have_none() -> None:
    write = Writer(MACHINE)
    one = write.case(LaneCleared, None, NOTHING, ForgetTask(0), RejectQueued())
    other = write.case(ResetRequested, None, NOTHING, RejectQueued(), ForgetTask(0))
    with pytest.raises(TableError, match=r"the cases list these effects in two orders: .*(ForgetTask|RejectQueued)"):
        write.ordered("some order", (one, other), "R-ATT-26")


def test_a_case_cannot_speak_of_a_field_that_is_not_there() -> None:
    with pytest.raises(TableError, match="CommandLane has no field 'ended' that a case could speak of"):
        Writer(MACHINE).case(TaskEnded, now.phase == FREE, {"ended": 1})


def test_an_order_of_effects_that_never_meet_is_vacuous() -> None:
    alone = Order("nothing meets", RejectQueued, ForgetTask, rest=(StartTurn,), requirements="R-ATT-26")
    spec = attrs.evolve(SPEC, properties=(alone,), variants=())
    (verdict,) = [v for v in check(spec, explore(spec)) if v.check == alone.name]
    assert verdict.outcome is Outcome.VIOLATED
    assert "no step that it speaks of emits both RejectQueued and another of its effects" in verdict.detail


def test_a_case_that_is_never_reached_is_vacuous() -> None:
    write = Writer(MACHINE)
    never = write.answers(ResetRequested, write.case(ResetRequested, (reset.turn > now.enqueued) & (reset.turn == now.started), NOTHING),
                          requirements="R-ATT-26")  # fmt: skip
    spec = attrs.evolve(SPEC, properties=(never,), variants=())
    (verdict,) = [v for v in check(spec, explore(spec)) if v.check == never.name]
    assert verdict.outcome is Outcome.VIOLATED


@pytest.mark.parametrize("spec", [SPEC, TOOL, MESSAGE], ids=lambda spec: spec.machine.name)
def test_no_change_of_a_row_goes_unnoticed_by_the_properties(spec: Spec) -> None:
    """The large tables of an attempt are changed by ``turnproof mutants``; the small ones here, too."""
    report = run(spec, workers=1)
    assert report.complaints == ()
    assert report.semantic_rate == 1.0
    assert report.different > 100


def test_without_its_cases_the_lane_has_changes_that_nobody_notices() -> None:
    bare = attrs.evolve(SPEC, properties=tuple(p for p in SPEC.properties if p.name not in {one.name for one in EXACTLY}))
    assert run(bare, row="LaneCleared/a_turn_waits", workers=1).count(Fate.SURVIVED) == SURVIVED_BARE
