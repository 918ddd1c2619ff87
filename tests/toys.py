"""Small machines with one of everything: a gate with timers, a queue with a counter, a lock with tokens. Tests plant mistakes in them."""

from __future__ import annotations

from enum import Enum
from typing import Annotated, Any, get_args

from attrs import evolve, frozen

from turnproof.machines.kernel import (
    NOBODY,
    Counter,
    Duration,
    Machine,
    PauseTimer,
    Range,
    ResumeTimer,
    Row,
    StartTimer,
    StopTimer,
    TimerRule,
    Token,
    implies,
    only_if,
    symbol,
)
from turnproof.specs.language import (
    Always,
    Fair,
    LeadsTo,
    Property,
    Sometimes,
    Spec,
    Step,
    after,
    at_most,
    count,
    emits,
    never,
    on,
    refuses,
    taken,
)

AnyMachine = Machine[Any, Any, Any]
NO_REQUIREMENT: tuple[str, ...] = ()


def spec_of(machine: AnyMachine, *properties: Property, **more: Any) -> Spec:
    """A specification of these properties, whose requirements are those that the properties name."""
    named = {rid: f"the sentence of {rid}" for prop in properties for rid in prop.requirements}
    return Spec(machine=machine, requirements={**named, **more.pop("requirements", {})}, properties=properties, **more)


# ── a gate: opens for a coin until its timer fires, may be held open, and breaks down ──


class GatePhase(Enum):
    SHUT = "shut"
    OPEN = "open"
    HELD = "held"
    BROKEN = "broken"


class GateTimer(Enum):
    CLOSING = "closing"
    """The gate stands open."""


@frozen
class Gate:
    phase: GatePhase = GatePhase.SHUT
    closing: bool = False
    fare: Annotated[int, Range(0, 2)] = 0


@frozen
class CoinInserted:
    good: bool


@frozen
class Passed: ...


@frozen
class HoldRequested: ...


@frozen
class HoldEnded: ...


@frozen
class BrokeDown: ...


@frozen
class ClosingExpired: ...


@frozen
class Unlock: ...


@frozen
class Lock: ...


GateEvent = CoinInserted | Passed | HoldRequested | HoldEnded | BrokeDown | ClosingExpired
GateEffect = Unlock | Lock | StartTimer | StopTimer | PauseTimer | ResumeTimer

SHUT, OPEN, HELD, BROKEN = GatePhase
gate, coin = symbol(Gate), symbol(CoinInserted)
SECOND = Duration(1_000, "a toy")
G = Row[Gate, GateEffect]

GATE_ROWS = (
    G(coin, at=SHUT, when=coin.good, to=OPEN, data=evolve(gate, closing=True, fare=gate.fare + 1), name="coin/enough",
      emit=(Unlock(), StartTimer(GateTimer.CLOSING))),
    G(CoinInserted, at=SHUT, refuse="that is no money", name="coin/bad"),
    G(CoinInserted, at=BROKEN, refuse="out of order", name="coin/broken"),
    G(CoinInserted, ignore="the gate is open, the coin falls through", name="coin/open"),
    G(Passed, at=OPEN, to=SHUT, data=evolve(gate, closing=False, fare=0), emit=(StopTimer(GateTimer.CLOSING), Lock()), name="passed"),
    G(Passed, at=HELD, stay=True, name="passed/held"),
    G(Passed, refuse="the gate is shut", name="passed/shut"),
    G(HoldRequested, at=OPEN, to=HELD, data=evolve(gate, closing=False), emit=(PauseTimer(GateTimer.CLOSING),), name="hold"),
    G(HoldRequested, ignore="nothing to hold", name="hold/otherwise"),
    G(HoldEnded, at=HELD, to=OPEN, data=evolve(gate, closing=True), emit=(ResumeTimer(GateTimer.CLOSING),), name="let go"),
    G(HoldEnded, ignore="nothing is held", name="let go/otherwise"),
    G(BrokeDown, at=BROKEN, ignore="it is broken", name="broke/again"),
    G(BrokeDown, to=BROKEN, data=evolve(gate, closing=False, fare=0), name="broke",
      emit=(only_if(gate.phase != SHUT, StopTimer(GateTimer.CLOSING)), Unlock())),
    G(ClosingExpired, at=OPEN, to=SHUT, data=evolve(gate, closing=False, fare=0), emit=(Lock(),), name="closing"),
    G(ClosingExpired, ignore="it was passed in time", name="closing/late"),
)  # fmt: skip

GATE: Machine[Gate, GateEvent, GateEffect] = Machine(
    name="gate",
    initial=Gate(),
    now=gate,
    events=get_args(GateEvent),
    effects=get_args(GateEffect),
    rows=GATE_ROWS,
    timers=(TimerRule(GateTimer.CLOSING, gate.closing, ClosingExpired, SECOND, paused=gate.phase == HELD),),
    released=gate.phase == BROKEN,
)

then_gate = after(Gate)
CLOSES = Fair("the closing timer fires", gate.closing, on(ClosingExpired))
CLOSES_AT_LAST = Fair("a closing timer that runs again and again fires", gate.closing, on(ClosingExpired), strong=True)
LET_GO = Fair("whoever holds the gate lets go", gate.phase == HELD, on(HoldEnded))

UNLOCKED_ONCE, UNLOCKS = at_most(
    2, count(Unlock), "the gate unlocks at most twice in a row", variable="unlocks", requirements=NO_REQUIREMENT
)

GATE_SPEC = spec_of(
    GATE,
    Always("an open gate has its timer armed", implies(gate.phase == OPEN, gate.closing), requirements="G-1", harm="the gate stays open"),
    never("a shut gate has a timer", (gate.phase == SHUT) & gate.closing, requirements="G-1"),
    Step("only a good coin opens a shut gate", implies((gate.phase == SHUT) & (then_gate.phase == OPEN), on(CoinInserted) & coin.good),
         requirements="G-2", harm="somebody rides for free"),
    Step("an opened gate is unlocked once", implies(on(CoinInserted) & taken(), count(Unlock) == 1), requirements="G-2"),
    refuses("a shut gate is not passed", Passed, gate.phase == SHUT, requirements="G-2"),
    Sometimes("somebody passes", on(Passed) & taken() & (then_gate.phase == SHUT), requirements="G-3"),
    Sometimes("the gate is held", gate.phase == HELD, requirements="G-3"),
    LeadsTo("an open gate shuts or breaks", gate.phase == OPEN, (gate.phase == SHUT) | (gate.phase == BROKEN), requirements="G-4",
            fairness=(CLOSES_AT_LAST, LET_GO), harm="everybody rides for free"),
    discipline={GateTimer.CLOSING: ("G-5",)},
    requirements={"G-5": "the timer is armed exactly while the gate stands open"},
    actors={CoinInserted: "passenger", Passed: "passenger", HoldRequested: "guard", HoldEnded: "guard"},
)  # fmt: skip
"""Everything holds. An open gate may be held and let go again and again, so weak fairness of the timer would not be enough."""


# ── a queue: counts without an upper bound ──


class QueuePhase(Enum):
    IDLE = "idle"
    BUSY = "busy"


@frozen
class Queue:
    phase: QueuePhase = QueuePhase.IDLE
    waiting: Annotated[int, Counter] = 0


@frozen
class Joined: ...


@frozen
class Served: ...


@frozen
class Call: ...


QueueEvent = Joined | Served
QueueEffect = Call | StopTimer
queue = symbol(Queue)
Q = Row[Queue, QueueEffect]

QUEUE: Machine[Queue, QueueEvent, QueueEffect] = Machine(
    name="queue",
    initial=Queue(),
    now=queue,
    events=get_args(QueueEvent),
    effects=get_args(QueueEffect),
    rows=(
        Q(Joined, data=evolve(queue, phase=QueuePhase.BUSY, waiting=queue.waiting + 1), name="joined"),
        Q(Served, when=queue.waiting == 0, refuse="nobody waits", name="served/nobody"),
        Q(Served, when=queue.waiting == 1, data=evolve(queue, phase=QueuePhase.IDLE, waiting=0), emit=(Call(),), name="served/last"),
        Q(Served, data=evolve(queue, waiting=queue.waiting - 1), emit=(Call(),), name="served"),
    ),
)


# ── a lock: held by one of several, who are known by their names ──


class LockPhase(Enum):
    FREE = "free"
    TAKEN = "taken"


@frozen
class LockState:
    phase: LockPhase = LockPhase.FREE
    owner: Annotated[str, Token] = NOBODY


@frozen
class Acquired:
    by: Annotated[str, Token]


@frozen
class Freed:
    by: Annotated[str, Token]


@frozen
class Granted:
    to: Annotated[str, Token]
    again: bool


LockEvent = Acquired | Freed
LockEffect = Granted | StopTimer
lock, acquired, freed = symbol(LockState), symbol(Acquired), symbol(Freed)
L = Row[LockState, LockEffect]

LOCK: Machine[LockState, LockEvent, LockEffect] = Machine(
    name="lock",
    initial=LockState(),
    now=lock,
    events=get_args(LockEvent),
    effects=get_args(LockEffect),
    rows=(
        L(acquired, when=acquired.by == NOBODY, refuse="nobody acquires nothing", name="acquired/nobody"),
        L(acquired, at=LockPhase.FREE, to=LockPhase.TAKEN, data=evolve(lock, owner=acquired.by), emit=(Granted(acquired.by, False),),
          name="acquired"),
        L(acquired, when=acquired.by == lock.owner, emit=(Granted(lock.owner, True),), name="acquired/again"),
        L(Acquired, refuse="somebody else has it", name="acquired/taken"),
        L(freed, when=(lock.owner != NOBODY) & (freed.by == lock.owner), to=LockPhase.FREE, data=evolve(lock, owner=NOBODY), name="freed"),
        L(Freed, refuse="only its owner frees it", name="freed/other"),
    ),
)  # fmt: skip

then_lock = after(LockState)
LOCK_SPEC = spec_of(
    LOCK,
    Always("it is taken exactly while it has an owner", (lock.phase == LockPhase.TAKEN) == (lock.owner != NOBODY), requirements="L-1"),
    Step("whoever acquires is granted it", implies(on(Acquired) & taken(), count(Granted, to=acquired.by) == 1), requirements="L-1"),
    Step("only the owner is granted it again", requirements="L-1",
         holds=implies(emits(Granted, again=True), on(Acquired) & (acquired.by == lock.owner))),
    Step("the owner changes only through nobody", requirements="L-2", harm="two believe they have it",
         holds=implies((lock.owner != NOBODY) & (then_lock.owner != NOBODY), then_lock.owner == lock.owner)),
)  # fmt: skip
