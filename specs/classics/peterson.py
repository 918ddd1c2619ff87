"""Peterson's mutual exclusion of two processes (G. L. Peterson, "Myths about the mutual exclusion problem", 1981).

Each read and each write of shared memory is a step of its own. The shared variables (two flags, whose turn) are a part, the
``memory``; a process writes by an effect that is wired to it and reads by a guard.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from typing import Annotated

from attrs import evolve, frozen

from turnproof.machines.kernel import Machine, Range, Row, implies, not_, symbol
from turnproof.specs.language import Always, Fair, LeadsTo, Sometimes
from turnproof.specs.system import NoDeadlock, Part, Spontaneous, System, SystemSpec, SystemVariant, Wire


class At(Enum):
    """Where a process is; each name is the line it is about to execute."""

    IDLE = "idle"
    RAISE_FLAG = "raise_flag"
    GIVE_TURN = "give_turn"
    WAIT = "wait"
    CRITICAL = "critical"


@frozen
class Process:
    """One of the two."""

    phase: At = At.IDLE


@frozen
class Wanted:
    """The process wants to enter."""


@frozen
class Moved:
    """The process executes the line it is at."""


@frozen
class RaiseFlag:
    """Write: I am interested."""


@frozen
class GiveTurn:
    """Write: it is the other's turn."""


@frozen
class LowerFlag:
    """Write: I am no longer interested."""


PROCESS: Machine[Process, object, object] = Machine(
    name="peterson_process",
    initial=Process(),
    now=symbol(Process),
    events=(Wanted, Moved),
    effects=(RaiseFlag, GiveTurn, LowerFlag),
    rows=(
        Row(Wanted, at=At.IDLE, to=At.RAISE_FLAG),
        Row(Wanted, refuse="it is on its way"),
        Row(Moved, at=At.RAISE_FLAG, to=At.GIVE_TURN, emit=(RaiseFlag(),)),
        Row(Moved, at=At.GIVE_TURN, to=At.WAIT, emit=(GiveTurn(),)),
        Row(Moved, at=At.WAIT, to=At.CRITICAL),
        Row(Moved, at=At.CRITICAL, to=At.IDLE, emit=(LowerFlag(),)),
        Row(Moved, refuse="it is idle"),
    ),
)


class Memory(Enum):
    """The memory has one phase: it is there."""

    SHARED = "shared"


@frozen
class Variables:
    """What both processes read."""

    phase: Memory = Memory.SHARED
    flag_1: bool = False
    flag_2: bool = False
    turn: Annotated[int, Range(1, 2)] = 1


@frozen
class FlagWritten:
    """A flag of a process was written."""

    process: Annotated[int, Range(1, 2)]
    up: bool


@frozen
class TurnWritten:
    """The turn was given to a process."""

    process: Annotated[int, Range(1, 2)]


variables, flag_written, turn_written = symbol(Variables), symbol(FlagWritten), symbol(TurnWritten)
MEMORY: Machine[Variables, object, object] = Machine(
    name="peterson_memory",
    initial=Variables(),
    now=variables,
    events=(FlagWritten, TurnWritten),
    effects=(),
    rows=(
        Row(flag_written, when=flag_written.process == 1, data=evolve(variables, flag_1=flag_written.up)),
        Row(flag_written, data=evolve(variables, flag_2=flag_written.up)),
        Row(turn_written, data=evolve(variables, turn=turn_written.process)),
    ),
)

memory = Part("memory", MEMORY)
one, two = Part("one", PROCESS), Part("two", PROCESS)


def peterson(name: str = "peterson", *, polite: bool = True) -> System:
    """The system. Not ``polite``: a process looks only at the other's flag, never at whose turn it is."""
    shared = memory.now
    free_1, free_2 = not_(shared.flag_2), not_(shared.flag_1)
    if polite:
        free_1, free_2 = free_1 | (shared.turn == 1), free_2 | (shared.turn == 2)
    return System(
        name=name,
        parts=(memory, one, two),
        wires=tuple(
            wire
            for number, process in enumerate((one, two), 1)
            for wire in (
                Wire(process, RaiseFlag, memory, FlagWritten(number, True)),
                Wire(process, LowerFlag, memory, FlagWritten(number, False)),
                Wire(process, GiveTurn, memory, TurnWritten(3 - number)),
            )
        ),
        spontaneous=tuple(
            happening
            for process, free in ((one, free_1), (two, free_2))
            for happening in (
                Spontaneous(process, Wanted, when=process.now.phase == At.IDLE),
                Spontaneous(process, Moved, when=(process.now.phase != At.IDLE) & ((process.now.phase != At.WAIT) | free)),
            )
        ),
    )


SYSTEM = peterson()
REQUIREMENTS: Mapping[str, str] = {
    "PET-1": "The processes are never in the critical section together.",
    "PET-2": "A process that wants to enter enters.",
}
_moves = tuple(Fair(f"process {p.name} moves", p.now.phase != At.IDLE, p.took(Moved)) for p in (one, two))

SPEC = SystemSpec(
    system=SYSTEM,
    requirements=REQUIREMENTS,
    properties=(
        Always("one in the critical section", implies(one.now.phase == At.CRITICAL, two.now.phase != At.CRITICAL), requirements="PET-1"),
        Sometimes("the other waits meanwhile", (one.now.phase == At.CRITICAL) & (two.now.phase == At.WAIT), requirements="PET-1"),
        NoDeadlock("somebody can move", requirements="PET-2"),
        *(
            LeadsTo(f"{p.name} enters", p.now.phase == At.RAISE_FLAG, p.now.phase == At.CRITICAL, fairness=_moves, requirements="PET-2")
            for p in (one, two)
        ),
    ),
    variants=(
        SystemVariant(
            system=peterson("peterson_without_turn", polite=False),
            about="flags alone: both raise theirs, and each waits for the other",
            violates={"somebody can move": 6},
        ),
    ),
)
