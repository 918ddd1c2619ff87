"""Dining philosophers (E. W. Dijkstra, "Hierarchical ordering of sequential processes", 1971): forks, hunger, and a deadlock.

Each fork is a part. A philosopher asks for the near fork and, in a step of its own, for the far one; a fork that is taken keeps the
request until it is laid down. If all ask for the near fork first, they can all hold one for ever; if one of them is contrary, they cannot.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from typing import Annotated

from attrs import evolve, frozen

from turnproof.machines.kernel import Machine, Range, Row, choose, not_, only_if, symbol
from turnproof.specs.language import Always, Fair, LeadsTo, Sometimes
from turnproof.specs.system import NoDeadlock, Part, Spontaneous, System, SystemSpec, SystemVariant, Wire


class Meal(Enum):
    """What a philosopher does."""

    THINKING = "thinking"
    WAITING_FOR_FIRST = "waiting_for_first"
    HOLDING_FIRST = "holding_first"
    WAITING_FOR_SECOND = "waiting_for_second"
    EATING = "eating"


@frozen
class Philosopher:
    """One of them."""

    phase: Meal = Meal.THINKING


@frozen
class GotHungry:
    """The philosopher wants to eat."""


@frozen
class FirstGiven:
    """The first fork is his."""


@frozen
class Reached:
    """The philosopher reaches for the second fork."""


@frozen
class SecondGiven:
    """The second fork is his."""


@frozen
class HadEnough:
    """The philosopher lays both forks down."""


@frozen
class AskFirst:
    """Ask for the first fork."""


@frozen
class AskSecond:
    """Ask for the second fork."""


@frozen
class LayDown:
    """Lay both forks down."""


PHILOSOPHER: Machine[Philosopher, object, object] = Machine(
    name="philosopher",
    initial=Philosopher(),
    now=symbol(Philosopher),
    events=(GotHungry, FirstGiven, Reached, SecondGiven, HadEnough),
    effects=(AskFirst, AskSecond, LayDown),
    rows=(
        Row(GotHungry, at=Meal.THINKING, to=Meal.WAITING_FOR_FIRST, emit=(AskFirst(),)),
        Row(GotHungry, refuse="hungry already"),
        Row(FirstGiven, at=Meal.WAITING_FOR_FIRST, to=Meal.HOLDING_FIRST),
        Row(FirstGiven, refuse="not asked for"),
        Row(Reached, at=Meal.HOLDING_FIRST, to=Meal.WAITING_FOR_SECOND, emit=(AskSecond(),)),
        Row(Reached, refuse="it does not hold its first fork, or has reached already"),
        Row(SecondGiven, at=Meal.WAITING_FOR_SECOND, to=Meal.EATING),
        Row(SecondGiven, refuse="not asked for"),
        Row(HadEnough, at=Meal.EATING, to=Meal.THINKING, emit=(LayDown(),)),
        Row(HadEnough, refuse="not eating"),
    ),
)


class Use(Enum):
    """Who has a fork."""

    FREE = "free"
    TAKEN = "taken"
    ASKED = "asked"
    """Taken, and the other neighbour waits for it."""


@frozen
class Fork:
    """A fork between two neighbours, 0 and 1."""

    phase: Use = Use.FREE
    holder: Annotated[int, Range(0, 1)] = 0


@frozen
class Asked:
    """A neighbour asks for the fork."""

    by: Annotated[int, Range(0, 1)]


@frozen
class LaidDown:
    """The neighbour who has it lays it down."""


@frozen
class Give:
    """The fork is now this neighbour's."""

    to: Annotated[int, Range(0, 1)]


fork, asked = symbol(Fork), symbol(Asked)
FORK: Machine[Fork, object, object] = Machine(
    name="fork",
    initial=Fork(),
    now=fork,
    events=(Asked, LaidDown),
    effects=(Give,),
    rows=(
        Row(asked, at=Use.FREE, to=Use.TAKEN, data=evolve(fork, holder=asked.by), emit=(Give(asked.by),)),
        Row(asked, at=Use.TAKEN, when=asked.by != fork.holder, to=Use.ASKED),
        Row(Asked, refuse="it has the fork, or has asked"),
        Row(LaidDown, at=Use.ASKED, to=Use.TAKEN, data=evolve(fork, holder=choose(fork.holder == 0, 1, 0)),
            emit=(only_if(fork.holder == 0, Give(1)), only_if(fork.holder == 1, Give(0)))),
        Row(LaidDown, at=Use.TAKEN, to=Use.FREE, data=evolve(fork, holder=0)),
        Row(LaidDown, refuse="nobody has it"),
    ),
)  # fmt: skip

REQUIREMENTS: Mapping[str, str] = {
    "DIN-1": "Neighbours never eat at the same time.",
    "DIN-2": "The table never stops.",
    "DIN-3": "Whoever is hungry eats.",
}


def table(seats: int, *, contrary: bool = True) -> System:
    """That many philosophers. If the first is ``contrary``, it asks for its far fork first."""
    guests = tuple(Part(f"philosopher_{n}", PHILOSOPHER) for n in range(seats))
    forks = tuple(Part(f"fork_{n}", FORK) for n in range(seats))
    wires: list[Wire] = []
    give = symbol(Give)
    for n, guest in enumerate(guests):
        # Fork n is the near fork of philosopher n, its neighbour 0, and the far fork of the one before, its neighbour 1.
        near, far = (forks[n], 0), (forks[(n + 1) % seats], 1)
        first, second = (far, near) if contrary and n == 0 else (near, far)
        for (place, me), ask, given in ((first, AskFirst, FirstGiven), (second, AskSecond, SecondGiven)):
            wires += [
                Wire(guest, ask, place, Asked(me)),
                Wire(place, give, guest, given, where=give.to == me),
                Wire(guest, LayDown, place, LaidDown),
            ]
    return System(
        name=f"philosophers_{seats}" if contrary else f"philosophers_{seats}_all_alike",
        parts=(*guests, *forks),
        wires=tuple(wires),
        spontaneous=tuple(
            happening
            for guest in guests
            for happening in (
                Spontaneous(guest, GotHungry, when=guest.now.phase == Meal.THINKING),
                Spontaneous(guest, Reached, when=guest.now.phase == Meal.HOLDING_FIRST),
                Spontaneous(guest, HadEnough, when=guest.now.phase == Meal.EATING),
            )
        ),
    )


def specification(seats: int) -> SystemSpec:
    """What must hold with one contrary philosopher, and what breaks without."""
    system = table(seats)
    guests = system.parts[:seats]
    eating = tuple(guest.now.phase == Meal.EATING for guest in guests)
    enough = tuple(Fair(f"{guest.name} has enough at last", guest.now.phase == Meal.EATING, guest.took(HadEnough)) for guest in guests)
    reach = tuple(Fair(f"{guest.name} reaches at last", guest.now.phase == Meal.HOLDING_FIRST, guest.took(Reached)) for guest in guests)
    return SystemSpec(
        system=system,
        requirements=REQUIREMENTS,
        properties=(
            *(
                Always(f"{guests[n].name} and the next never eat together", not_(eating[n] & eating[(n + 1) % seats]), requirements="DIN-1")
                for n in range(seats)
            ),
            Sometimes("somebody eats", eating[0], requirements="DIN-3"),
            NoDeadlock("somebody can act", requirements="DIN-2"),
            LeadsTo("a hungry philosopher eats", guests[0].now.phase == Meal.WAITING_FOR_FIRST, eating[0], fairness=(*enough, *reach),
                    requirements="DIN-3"),
        ),
        variants=(
            SystemVariant(
                system=table(seats, contrary=False),
                about="all ask for their near fork first",
                violates={"somebody can act": 2 * seats},
            ),
        ),
    )  # fmt: skip


SPEC = specification(4)
