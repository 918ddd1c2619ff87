"""A lock whose state names its holder: clients that are interchangeable only together with the tokens they are called by."""

from __future__ import annotations

from enum import Enum
from typing import Annotated

from attrs import evolve, frozen

from turnproof.machines.kernel import NOBODY, Machine, Row, Token, implies, symbol
from turnproof.specs.language import Always, Sometimes
from turnproof.specs.system import Channel, Interchangeable, Part, Spontaneous, System, SystemSpec, Wire


class Use(Enum):
    FREE = "free"
    HELD = "held"


@frozen
class Lock:
    phase: Use = Use.FREE
    holder: Annotated[str, Token] = NOBODY


@frozen
class Acquired:
    by: Annotated[str, Token]


@frozen
class Released:
    by: Annotated[str, Token]


@frozen
class Grant:
    to: Annotated[str, Token]


lock, acquired, released = symbol(Lock), symbol(Acquired), symbol(Released)
LOCK: Machine[Lock, object, object] = Machine(
    name="lock",
    initial=Lock(),
    now=lock,
    events=(Acquired, Released),
    effects=(Grant,),
    rows=(
        Row(acquired, at=Use.FREE, to=Use.HELD, data=evolve(lock, holder=acquired.by), emit=(Grant(acquired.by),)),
        Row(Acquired, refuse="somebody has it"),
        Row(released, at=Use.HELD, when=released.by == lock.holder, to=Use.FREE, data=evolve(lock, holder=NOBODY)),
        Row(Released, refuse="somebody else has it"),
    ),
)


class Want(Enum):
    IDLE = "idle"
    ASKED = "asked"
    HOLDING = "holding"


@frozen
class Client:
    phase: Want = Want.IDLE


@frozen
class Wanted: ...


@frozen
class Granted: ...


@frozen
class Finished: ...


@frozen
class Ask: ...


@frozen
class GiveBack: ...


CLIENT: Machine[Client, object, object] = Machine(
    name="client",
    initial=Client(),
    now=symbol(Client),
    events=(Wanted, Granted, Finished),
    effects=(Ask, GiveBack),
    rows=(
        Row(Wanted, at=(Want.IDLE, Want.ASKED), to=Want.ASKED, emit=(Ask(),)),
        Row(Wanted, refuse="it has the lock"),
        Row(Granted, at=Want.ASKED, to=Want.HOLDING),
        Row(Granted, ignore="it does not wait"),
        Row(Finished, at=Want.HOLDING, to=Want.IDLE, emit=(GiveBack(),)),
        Row(Finished, refuse="it has no lock"),
    ),
)


def locking(names: str, *, tokens: int = 3) -> SystemSpec:
    """Clients called by these letters, each with a channel to the lock."""
    the_lock = Part("lock", LOCK)
    clients = {name: Part(f"client_{name}", CLIENT) for name in names}
    asks = {name: Channel(f"asks_{name}", the_lock, capacity=1) for name in names}
    grant = symbol(Grant)
    first = clients[names[0]]
    return SystemSpec(
        system=System(
            name="locking",
            parts=(the_lock, *clients.values()),
            channels=tuple(asks.values()),
            wires=tuple(
                wire
                for name, one in clients.items()
                for wire in (
                    Wire(one, Ask, asks[name], Acquired(name)),
                    Wire(one, GiveBack, the_lock, Released(name)),
                    Wire(the_lock, grant, one, Granted(), where=grant.to == name),
                )
            ),
            spontaneous=tuple(
                Spontaneous(one, event, when=one.now.phase == phase)
                for one in clients.values()
                for event, phase in ((Wanted, Want.IDLE), (Finished, Want.HOLDING))
            ),
        ),
        requirements={"R-1": "the lock knows its holder"},
        properties=(
            Always("the lock knows", implies(first.now.phase == Want.HOLDING, the_lock.now.holder == names[0]), requirements="R-1"),
            Sometimes("the last has it", the_lock.now.holder == names[-1], requirements="R-1"),
            Always("the last never has it", the_lock.now.holder != names[-1], requirements="R-1"),
        ),
        tokens=tokens,
        interchangeable=(Interchangeable(*((clients[name], asks[name], name) for name in names)),),
    )


__all__ = ["Acquired", "Released", "Want", "locking"]
