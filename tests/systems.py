"""Toy systems for the tests of the engine for composed systems: small, and each has one of everything."""

from __future__ import annotations

from enum import Enum
from typing import Annotated

from attrs import evolve, frozen

from turnproof.machines.kernel import (
    Duration,
    Machine,
    PauseTimer,
    Range,
    ResumeTimer,
    Row,
    StartTimer,
    StopTimer,
    TimerRule,
    implies,
    not_,
    symbol,
)
from turnproof.specs.language import Always, Fair, LeadsTo, Sometimes, Step
from turnproof.specs.system import (
    Absorbs,
    Budget,
    Channel,
    Copy,
    May,
    NoDeadlock,
    Part,
    Spontaneous,
    Switch,
    System,
    SystemSpec,
    Wire,
)


class Caller(Enum):
    IDLE = "idle"
    WAITING = "waiting"
    ANSWERED = "answered"
    GAVE_UP = "gave_up"


class Timer(Enum):
    REPLY = "reply"
    """No reply came."""


@frozen
class Client:
    """Asks once; gives up when no reply comes in time."""

    phase: Caller = Caller.IDLE


@frozen
class AskRequested:
    pass


@frozen
class ReplyArrived:
    number: Annotated[int, Range(1, 2)]


@frozen
class ReplyTimedOut:
    pass


@frozen
class Ask:
    pass


@frozen
class Report:
    """Tells the outside world."""


client = symbol(Client)
CLIENT: Machine[Client, object, object] = Machine(
    name="client",
    initial=Client(),
    now=client,
    events=(AskRequested, ReplyArrived, ReplyTimedOut),
    effects=(Ask, Report, StartTimer, StopTimer),
    rows=(
        Row(AskRequested, at=(Caller.IDLE, Caller.GAVE_UP), to=Caller.WAITING, emit=(Ask(), StartTimer(Timer.REPLY))),
        Row(AskRequested, refuse="it has asked already"),
        Row(ReplyArrived, at=Caller.WAITING, to=Caller.ANSWERED, emit=(StopTimer(Timer.REPLY), Report())),
        Row(ReplyArrived, ignore="a late or second reply"),
        Row(ReplyTimedOut, at=Caller.WAITING, to=Caller.GAVE_UP),
        Row(ReplyTimedOut, ignore="it was answered in time"),
    ),
    timers=(TimerRule(Timer.REPLY, client.phase == Caller.WAITING, ReplyTimedOut, Duration(1000, "test")),),
)


class Work(Enum):
    UP = "up"
    DOWN = "down"


@frozen
class Server:
    phase: Work = Work.UP
    served: Annotated[int, Range(0, 2)] = 0


@frozen
class Asked:
    pass


@frozen
class Crashed:
    pass


@frozen
class Answer:
    number: Annotated[int, Range(1, 2)]


server = symbol(Server)
SERVER: Machine[Server, object, object] = Machine(
    name="server",
    initial=Server(),
    now=server,
    events=(Asked, Crashed),
    effects=(Answer,),
    rows=(
        Row(Asked, at=Work.UP, when=server.served < 2, data=evolve(server, served=server.served + 1), emit=(Answer(server.served + 1),)),
        Row(Asked, ignore="down, or done"),
        Row(Crashed, at=Work.UP, to=Work.DOWN),
        Row(Crashed, ignore="down already"),
    ),
)


class Truth(Enum):
    NONE = "none"
    SERVED = "served"
    WRONG = "wrong"


@frozen
class Ground:
    """Whether the server ever answered."""

    phase: Truth = Truth.NONE


@frozen
class Served:
    pass


GROUND: Machine[Ground, object, object] = Machine(
    name="ground",
    initial=Ground(),
    now=symbol(Ground),
    events=(Served,),
    effects=(),
    rows=(Row(Served, at=Truth.NONE, to=Truth.SERVED), Row(Served, ignore="once is enough")),
)

CRASHES = Switch("the server crashes")
LOSSES = Switch("replies get lost")

caller, service, ground = Part("caller", CLIENT), Part("service", SERVER), Part("ground", GROUND)
answer = symbol(Answer)
replies = Channel("replies", caller, capacity=2, lossy=May(switch=LOSSES, budget=Budget("losses", 1)))

CALL = System(
    name="call",
    parts=(caller, service),
    wires=(Wire(caller, Ask, service, Asked), Wire(service, answer, replies, ReplyArrived(answer.number))),
    channels=(replies,),
    spontaneous=(
        Spontaneous(caller, AskRequested, budget=Budget("asks", 2)),
        Spontaneous(service, Crashed, switch=CRASHES, when=service.now.phase == Work.UP),
    ),
    monitors=(ground,),
    copies=(Copy(service, Answer, ground, Served),),
    absorbed=(Absorbs(caller, Report),),
    switches=(CRASHES, LOSSES),
)

FIRES = Fair("an armed timer fires", caller.running(Timer.REPLY), caller.on(ReplyTimedOut))
CALL_SPEC = SystemSpec(
    system=CALL,
    requirements={"R-1": "the caller does not wait for ever", "R-2": "replies are true"},
    properties=(
        Always(
            "only a served caller is answered",
            implies(caller.now.phase == Caller.ANSWERED, ground.now.phase == Truth.SERVED),
            requirements="R-2",
        ),
        Always("who waits has a timer", implies(caller.now.phase == Caller.WAITING, caller.running(Timer.REPLY)), requirements="R-1"),
        Step(
            "a reply that is taken ends the wait",
            implies(caller.took(ReplyArrived), caller.next.phase == Caller.ANSWERED),
            requirements="R-1",
        ),
        Step("a report goes with a reply", implies(caller.emits(Report), replies.delivers), requirements="R-2"),
        Sometimes("a late reply is ignored", caller.ignored(ReplyArrived), requirements="R-1"),
        Sometimes("the caller gives up", caller.now.phase == Caller.GAVE_UP, requirements="R-1"),
        LeadsTo(
            "a wait ends", caller.now.phase == Caller.WAITING, caller.now.phase != Caller.WAITING, fairness=(FIRES,), requirements="R-1"
        ),
        NoDeadlock("somebody can act", unless=not_(caller.now.phase == Caller.WAITING), requirements="R-1"),
    ),
)


# ── a timer that can be held ──


@frozen
class Begun:
    pass


@frozen
class Held:
    pass


@frozen
class Let:
    pass


HOLDING: Machine[Client, object, object] = Machine(
    name="holding",
    initial=Client(),
    now=client,
    events=(Begun, Held, Let, ReplyTimedOut),
    effects=(StartTimer, PauseTimer, ResumeTimer),
    rows=(
        Row(Begun, at=Caller.IDLE, to=Caller.WAITING, emit=(StartTimer(Timer.REPLY),)),
        Row(Begun, ignore="begun"),
        Row(Held, at=Caller.WAITING, to=Caller.ANSWERED, emit=(PauseTimer(Timer.REPLY),)),
        Row(Held, ignore="held"),
        Row(Let, at=Caller.ANSWERED, to=Caller.WAITING, emit=(ResumeTimer(Timer.REPLY),)),
        Row(Let, ignore="not held"),
        Row(ReplyTimedOut, at=Caller.WAITING, to=Caller.GAVE_UP),
        Row(ReplyTimedOut, ignore="late"),
    ),
    timers=(
        TimerRule(Timer.REPLY, client.phase == Caller.WAITING, ReplyTimedOut, Duration(1000, "test"), client.phase == Caller.ANSWERED),
    ),
)
holder = Part("holder", HOLDING)
HOLDER = System(
    name="holder", parts=(holder,), spontaneous=(Spontaneous(holder, Begun), Spontaneous(holder, Held), Spontaneous(holder, Let))
)
