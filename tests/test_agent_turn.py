"""The loop wired to its calls: planted mistakes in either break a promise of both, by a story of the whole system."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import attrs
import pytest
from attrs import evolve

from turnproof.checkers.network import explicit
from turnproof.checkers.verdict import Outcome
from turnproof.machines.kernel import OnlyIf, Row
from turnproof.machines.tool_call import MACHINE as CALL
from turnproof.machines.tool_call import StepClosed
from turnproof.machines.turn_loop import MACHINE as LOOP
from turnproof.machines.turn_loop_events import AbortCalls, DropHeldCalls, MarkOrphans, RecordStep
from turnproof.machines.turn_loop_judge import now
from turnproof.specs.agent_turn import COUNTED, DEAD, IDLE, SPEC, SYSTEM, TWICE
from turnproof.specs.language import AnyMachine
from turnproof.specs.system import SystemVariant


def without(machine: AnyMachine, row: str, *effects: type) -> AnyMachine:
    """The machine, one of whose rows emits less."""
    old: Row[Any, Any] = machine.row(row)
    kept = tuple(item for item in old.emit if type(item.effect if isinstance(item, OnlyIf) else item) not in effects)
    return machine.variant(f"{machine.name}_less", replace={row: evolve(old, emit=kept)})


def loop(machine: Callable[[], AnyMachine]) -> Any:
    return lambda: {"loop": machine()}


def calls(machine: Callable[[], AnyMachine]) -> Any:
    return lambda: {"call_1": machine(), "call_2": machine()}


DEAD_ROW = LOOP.row("StepRecorded/dead after something")
SAYS_ANSWERED = {DEAD_ROW.name: evolve(LOOP.row("StepRecorded/answer"), when=DEAD_ROW.when, name=DEAD_ROW.name)}
MISTAKES: dict[str, tuple[str, int, Any]] = {
    "a dead stream is an answer": (DEAD, 7, loop(lambda: LOOP.variant("m", replace=SAYS_ANSWERED))),
    "a cancel does not tell the calls": ("a cancel reaches the first call", 6,
                                         loop(lambda: without(LOOP, "Cancelled/draining", AbortCalls))),
    "a cancel forgets held calls": ("a cancel reaches the first call", 5,
                                    loop(lambda: without(LOOP, "Cancelled/streaming", DropHeldCalls))),
    "an orphan is marked nowhere": ("a step that is over leaves no call open", 6,
                                    loop(lambda: without(LOOP, "GraceExpired/settling", MarkOrphans, RecordStep))),
    "a call ignores that its step is over": ("a step that is written down has ended every call", 5,
                                             calls(lambda: CALL.variant("m", first=(Row(StepClosed, ignore="deaf", name="deaf"),)))),
    "a result counts for nothing": (COUNTED, 4, loop(lambda: LOOP.variant("m", replace={
        "CallEnded/streaming": evolve(LOOP.row("CallEnded/streaming"), data=evolve(now, content=now.content))}))),
    "idle before the calls are over": (IDLE, 6, loop(lambda: LOOP.variant("m", replace={
        "Cancelled/draining": evolve(LOOP.row("Cancelled/draining"), emit=LOOP.row("Cancelled/at once").emit[-1:])}))),
}  # fmt: skip
"""What is planted -> the promise that it breaks, in how many steps, and how it is made."""


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_planted_mistake_breaks_its_promise(mistake: str) -> None:
    name, length, make = MISTAKES[mistake]
    prop = next(p for p in SPEC.properties if p.name == name)
    wrong = SystemVariant(system=SYSTEM.with_machines("wrong", **make()), about=mistake, violates={name: length})
    (verdict,) = explicit.check_variants(attrs.evolve(SPEC, variants=(wrong,)))
    assert verdict.outcome is Outcome.HOLDS, verdict.detail
    assert verdict.story is not None
    assert prop.requirements[0] in verdict.story.broken
    assert prop.harm in verdict.story.broken


def test_the_side_effect_is_counted_by_ground_truth_alone() -> None:
    """The monitor hears of executions and of what the model wanted, and answers nobody."""
    monitor = next(m for m in SYSTEM.monitors if m.name == "executions")
    assert monitor.machine.effects == ()
    assert {str(c.of.name) for c in SYSTEM.copies if c.to.name == "executions"} == {"call_1", "call_2", "model"}
    assert TWICE in {p.name for p in SPEC.properties}
