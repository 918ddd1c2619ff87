"""What one step costs, beside other ways to write the same machine, measured in one run.

Each contestant plays the same cycle of events over and over; the figure is the best of several rounds, in nanoseconds an event.
Before anything is timed, every contestant's states and effects are compared with the table's.
"""

from __future__ import annotations

import gc
import timeit
import tracemalloc
from collections.abc import Callable, Sequence
from typing import Any

import attrs

from benchmarks import gate
from benchmarks.peers import match_gate, match_slot, with_statemachine, with_transitions
from turnproof.machines import reply_slot as slot
from turnproof.machines.kernel import Machine, Taken

AnyMachine = Machine[Any, Any, Any]
ROUNDS, SECONDS = 7, 0.15

GATE_CYCLE: tuple[object, ...] = (
    gate.CoinInserted(), gate.CoinInserted(), gate.Pushed(False), gate.CloseExpired(), gate.Pushed(True), gate.Reset(),
)  # fmt: skip
"""Two coins, through, a late expiry that is ignored, an alarm, and back."""

SLOT_CYCLE: tuple[object, ...] = (
    slot.BeginRequested("a", slot.TurnKind.VISIBLE), slot.AttemptRequested("a"), slot.WaitRequested(), slot.TurnQueued(),
    slot.BeginRequested("b", slot.TurnKind.VISIBLE), slot.ReleaseReported("a", False, False), slot.AttemptEnded("a"),
    slot.BeginRequested("b", slot.TurnKind.QUEUED), slot.AttemptRequested("b"), slot.AttemptEnded("b"),
    slot.ReleaseReported("b", False, False),
)  # fmt: skip


@attrs.frozen
class Figure:
    """One contestant on one machine."""

    machine: str
    contestant: str
    nanoseconds: float


def best(play: Callable[[], object], events: int) -> float:
    """Nanoseconds an event: the best of several rounds."""
    timer = timeit.Timer(play)
    number = max(1, int(SECONDS / max(timer.timeit(20) / 20, 1e-9)))
    return min(timer.repeat(ROUNDS, number)) / number / events * 1e9


def states_of(machine: AnyMachine, cycle: Sequence[object], start: Any) -> list[tuple[Any, tuple[object, ...]]]:
    """What the table says along the cycle."""
    state, found = start, []
    for event in cycle:
        answer = machine.interpret(state, event)
        effects: tuple[object, ...] = ()
        if isinstance(answer, Taken):
            state, effects = answer.state, answer.effects
        found.append((state, effects))
    return found


def same(
    machine: AnyMachine, cycle: Sequence[object], start: Any, peer: Callable[[Any, Any], tuple[Any, tuple[object, ...]]], name: str
) -> None:
    """Raise if the hand-written peer says something else than the table."""
    state = start
    for event, (expected, effects) in zip(cycle, states_of(machine, cycle, start), strict=True):
        state, made = peer(state, event)
        if (state, tuple(made)) != (expected, tuple(effects)):
            raise AssertionError(f"{name} disagrees with {machine.name} on {event}: {state} {made}, expected {expected} {effects}")


def step_loop(machine: AnyMachine, cycle: Sequence[object], start: Any) -> Callable[[], object]:
    """Play the cycle through ``step``."""
    step = machine.step

    def play() -> object:
        state = start
        for event in cycle:
            answer = step(state, event)
            if type(answer) is Taken:
                state = answer.state
        return state

    return play


def match_loop(peer: Callable[[Any, Any], tuple[Any, object]], cycle: Sequence[object], start: Any) -> Callable[[], object]:
    """Play the cycle through a hand-written function."""

    def play() -> object:
        state = start
        for event in cycle:
            state, _ = peer(state, event)
        return state

    return play


def library_loop(apply: Callable[[Any], object], cycle: Sequence[object]) -> Callable[[], object]:
    """Play the cycle through a library; the cycle ends where it began."""

    def play() -> object:
        for event in cycle:
            apply(event)
        return None

    return play


def lookup_loop(machine: AnyMachine, cycle: Sequence[object], start: Any) -> Callable[[], object]:
    """Play the cycle through a bare dictionary from (state, event) to the next state."""
    table: dict[tuple[Any, object], Any] = {}
    before = start
    for event, (after, _) in zip(cycle, states_of(machine, cycle, start), strict=True):
        table[before, event] = before = after

    def play() -> object:
        state = start
        for event in cycle:
            state = table[state, event]
        return state

    return play


def contest(machine: AnyMachine, cycle: Sequence[object], start: Any, match: Callable[[Any, Any], Any], *, lookup: bool) -> list[Figure]:
    """All contestants on one machine."""
    same(machine, cycle, start, match, "the match function")
    n = len(cycle)
    made = [Figure(machine.name, "turnproof step", best(step_loop(machine, cycle, start), n))]
    if lookup:
        made.append(Figure(machine.name, "bare dict lookup", best(lookup_loop(machine, cycle, start), n)))
    made.append(Figure(machine.name, "match function", best(match_loop(match, cycle, start), n)))
    for name, build in (("transitions", with_transitions), ("python-statemachine", with_statemachine)):
        held, apply = build(machine)
        for event, (state, _) in zip(cycle, states_of(machine, cycle, machine.initial), strict=True):
            apply(event)
            if held.data != state:
                raise AssertionError(f"{name} disagrees with {machine.name} on {event}: {held.data}, expected {state}")
        made.append(Figure(machine.name, name, best(library_loop(apply, cycle), n)))
    return made


def bytes_per_instance(make: Callable[[int], object], count: int = 20_000) -> float:
    """Bytes of memory a live instance takes, without the list that holds it."""
    gc.collect()
    tracemalloc.start()
    kept = [make(i) for i in range(count)]
    size, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return (size - kept.__sizeof__()) / count


def memory() -> list[tuple[str, str, float]]:
    """Machine, contestant, bytes a live instance."""
    busy = slot.BeginRequested("a", slot.TurnKind.VISIBLE)

    def begun(_: int) -> object:
        answer = slot.MACHINE.step(slot.MACHINE.initial, busy)
        assert isinstance(answer, Taken)
        return answer.state

    return [
        ("gate", "turnproof (interned: one shared object a state)", bytes_per_instance(lambda i: gate.MACHINE.initial)),
        ("reply_slot", "turnproof (one state object an instance)", bytes_per_instance(begun)),
        (
            "reply_slot",
            "transitions (one model and machine an instance)",
            bytes_per_instance(lambda i: with_transitions(slot.MACHINE), 100),
        ),
    ]


def run() -> list[Figure]:
    """Measure everything."""
    return [
        *contest(gate.MACHINE, GATE_CYCLE, gate.MACHINE.initial, match_gate, lookup=True),
        *contest(slot.MACHINE, SLOT_CYCLE, slot.MACHINE.initial, match_slot, lookup=False),
    ]
