"""What one step of a system is, in plain Python: run to completion, channels, timers, and what may go wrong only when it runs."""

from __future__ import annotations

import re
from typing import Annotated, Any

import attrs
import pytest
from attrs import evolve, frozen
from systems import (
    CALL,
    CRASHES,
    Answer,
    Ask,
    Asked,
    AskRequested,
    Caller,
    Client,
    Crashed,
    ReplyArrived,
    ReplyTimedOut,
    Served,
    Server,
    Timer,
    Work,
    answer,
    caller,
    ground,
    replies,
    service,
)

from turnproof.checkers.network.run import Broken, Fault, Runner, World
from turnproof.checkers.network.triggers import Kind, triggers
from turnproof.machines.kernel import Duration, Machine, Range, Row, StartTimer, TableError, TimerRule, Token, symbol
from turnproof.specs.system import (
    Absorbs,
    Channel,
    Empties,
    Ledger,
    May,
    Part,
    Spontaneous,
    System,
    Wire,
)

# ── one step ──


def runner(system: System = CALL) -> Runner:
    return Runner(system, counter=2)


def play(system: System, *wanted: str) -> list[World]:
    """The worlds along the triggers whose texts are given."""
    run = runner(system)
    every = {str(t): t for t in triggers(system, tokens=2, counter=2)}
    worlds = [run.initial()]
    for text in wanted:
        assert run.enabled(worlds[-1], every[text]), text
        worlds.append(run.perform(worlds[-1], every[text]).after)
    return worlds


def test_a_step_runs_to_completion_and_a_channel_waits() -> None:
    begun, asked, late, arrived = play(CALL, "caller <- AskRequested", "caller: reply expires", "replies delivers")
    assert begun.parts == (caller.start, service.start, ground.start)
    assert asked.parts[1] == Server(served=1), "the server handled the request within the same step"
    assert asked.parts[2] != ground.start, "the monitor saw the answer within the same step"
    assert asked.channels == ((ReplyArrived(1),),), "the reply is under way"
    assert asked.timers[0] == (Ledger.RUNNING,)
    assert late.timers[0] == (Ledger.OFF,)
    assert (arrived.parts[0], arrived.channels) == (Client(Caller.GAVE_UP), ((),))


def test_a_reply_in_time_stops_the_timer() -> None:
    *_, after = play(CALL, "caller <- AskRequested", "replies delivers")
    assert after.timers[0] == (Ledger.OFF,)
    assert after.parts[0] == Client(Caller.ANSWERED)


def test_budgets_guards_and_switches_limit_the_environment() -> None:
    run = runner()
    every = {str(t): t for t in triggers(CALL, tokens=2, counter=2)}
    twice = play(CALL, "caller <- AskRequested", "caller <- AskRequested")[-1]
    assert not run.enabled(twice, every["caller <- AskRequested"]), "the budget is used up"
    crashed = play(CALL, "service <- Crashed")[-1]
    assert not run.enabled(crashed, every["service <- Crashed"]), "its guard fails"
    assert "service <- Crashed" not in {str(t) for t in triggers(CALL, tokens=2, counter=2, off=[CRASHES.name])}


def test_words_of_a_step_count_what_happened_in_it() -> None:
    run = runner()
    every = {str(t): t for t in triggers(CALL, tokens=2, counter=2)}
    asked = run.perform(run.initial(), every["caller <- AskRequested"])
    for true in (caller.took(AskRequested), caller.emits(Ask), service.took(Asked), service.emits(Answer, number=1), ground.took(Served)):
        assert run.holds_of(true, asked)
    assert run.holds_of(service.count(Answer, number=service.now.served), asked) == 0, "a pattern reads the state before the event"
    for false in (caller.refused(AskRequested), service.emits(Answer, number=2), replies.delivers, caller.next.phase == Caller.IDLE):
        assert not run.holds_of(false, asked)
    again = run.perform(asked.after, every["caller <- AskRequested"])
    assert run.holds_of(caller.refused(AskRequested), again)
    delivered = run.perform(asked.after, every["replies delivers"])
    assert run.holds_of(replies.delivers, delivered)
    assert run.holds_of(caller.took(ReplyArrived, number=1), delivered)
    lost = run.perform(asked.after, every["replies loses"])
    assert run.holds_of(replies.loses, lost)
    assert not lost.deliveries


# ── channels ──


def channelled(**fields: Any) -> System:
    """The same call through a channel with other manners, and a server that answers whenever it likes."""
    channel = Channel("replies", caller, **{"capacity": 2, **fields})
    return attrs.evolve(
        CALL,
        wires=(Wire(caller, Ask, service, Asked), Wire(service, answer, channel, ReplyArrived(answer.number))),
        channels=(channel,),
        spontaneous=(Spontaneous(service, Asked), Spontaneous(caller, AskRequested), Spontaneous(service, Crashed, switch=CRASHES)),
        switches=(CRASHES,),
    )


def test_a_channel_keeps_order_unless_it_is_reordered() -> None:
    twice = ("service <- Asked", "service <- Asked")
    first = play(channelled(), *twice, "replies delivers")[-1]
    assert first.channels == ((ReplyArrived(2),),)
    second = play(channelled(reordered=True), *twice, "replies delivers #1")[-1]
    assert second.channels == ((ReplyArrived(1),),)


def test_equal_events_in_a_reordered_channel_are_one_choice() -> None:
    system = channelled(reordered=True)
    run = runner(system)
    world = run.initial()._replace(channels=((ReplyArrived(1), ReplyArrived(1)),))
    names = [str(t) for t in triggers(system, tokens=2, counter=2) if t.kind is Kind.DELIVER and run.enabled(world, t)]
    assert names == ["replies delivers"]


def test_a_channel_may_be_dropped_whole() -> None:
    *_, after = play(channelled(droppable=May()), "service <- Asked", "service <- Asked", "replies drops")
    assert after.channels == ((),)


def test_a_channel_delivers_only_where_it_may() -> None:
    system = channelled(when=service.now.phase == Work.UP)
    run = runner(system)
    *_, down = play(system, "service <- Asked", "service <- Crashed")
    delivers = next(t for t in triggers(system, tokens=2, counter=2) if t.kind is Kind.DELIVER)
    assert not run.enabled(down, delivers)
    assert run.enabled(down._replace(parts=(down.parts[0], service.start, down.parts[2])), delivers)


def test_an_overflow_names_the_channel_and_the_event() -> None:
    with pytest.raises(
        Broken, match=re.escape("the channel replies overflows: it holds 1, and ReplyArrived(number=2) is sent into it")
    ) as broken:
        play(channelled(capacity=1), "service <- Asked", "service <- Asked")
    assert broken.value.fault is Fault.OVERFLOW


# ── what a system may do wrong only when it runs ──


@frozen
class Ball:
    phase: Work = Work.UP


@frozen
class Ping:
    pass


@frozen
class Pong:
    pass


ball = symbol(Ball)
PLAYER: Machine[Ball, object, object] = Machine(
    name="player", initial=Ball(), now=ball, events=(Ping,), effects=(Pong,), rows=(Row(Ping, emit=(Pong(),)),)
)


def test_a_cascade_that_never_ends_is_an_error() -> None:
    left, right = Part("left", PLAYER), Part("right", PLAYER)
    game = System(
        name="game",
        parts=(left, right),
        wires=(Wire(left, Pong, right, Ping), Wire(right, Pong, left, Ping)),
        spontaneous=(Spontaneous(left, Ping),),
    )
    with pytest.raises(Broken, match="a step delivers more than 100 events, the next Ping to left") as broken:
        play(game, "left <- Ping")
    assert broken.value.fault is Fault.ENDLESS


@frozen
class Number:
    size: Annotated[int, Range(0, 9)]


@frozen
class Counted:
    """Its token keeps the kernel from listing every state up front, where growing out of the range would already fail."""

    phase: Work = Work.UP
    size: Annotated[int, Range(0, 3)] = 0
    tag: Annotated[str, Token] = ""


@frozen
class Grew:
    pass


@frozen
class Took:
    size: Annotated[int, Range(0, 1)]


counted, number = symbol(Counted), symbol(Number)
COUNTED: Machine[Counted, object, object] = Machine(
    name="counted",
    initial=Counted(),
    now=counted,
    events=(Grew,),
    effects=(Number,),
    rows=(Row(Grew, data=evolve(counted, size=counted.size + 1), emit=(Number(counted.size),)),),
)
TAKER: Machine[Ball, object, object] = Machine(
    name="taker", initial=Ball(), now=ball, events=(Took,), effects=(), rows=(Row(Took, at=Work.UP, stay=True),)
)
source, sink = Part("source", COUNTED), Part("sink", TAKER)


def flow(*wires: Wire, absorbed: tuple[Absorbs, ...] = ()) -> System:
    return System(name="flow", parts=(source, sink), wires=wires, spontaneous=(Spontaneous(source, Grew),), absorbed=absorbed)


def test_a_value_out_of_its_domain_is_an_error() -> None:
    growing = flow(Wire(source, number, sink, Took(number.size)))
    with pytest.raises(Broken, match=re.escape("gives Took.size the value 2, expected an integer from 0 to 1")) as broken:
        play(growing, *["source <- Grew"] * 3)
    assert broken.value.fault is Fault.DOMAIN
    absorbing = flow(Wire(source, number, sink, Took(0), where=number.size == 0), absorbed=(Absorbs(source, Number),))
    with pytest.raises(Broken, match=re.escape("source.size becomes 4, expected an integer from 0 to 3")):
        play(absorbing, *["source <- Grew"] * 4)


def test_an_effect_that_no_wire_carries_is_an_error_when_it_happens() -> None:
    picky = flow(Wire(source, number, sink, Took(number.size), where=number.size == 0))
    with pytest.raises(Broken, match=re.escape("nobody receives Number(size=1) of source")) as broken:
        play(picky, "source <- Grew", "source <- Grew")
    assert broken.value.fault is Fault.UNRECEIVED


def test_a_hole_in_a_table_is_an_error() -> None:
    hole: Machine[Ball, object, object] = Machine(
        name="hole", initial=Ball(), now=ball, events=(Took,), effects=(), rows=(Row(Took, at=Work.DOWN, stay=True),)
    )
    holed = attrs.evolve(flow(Wire(source, Number, sink, Took(0))), parts=(source, Part("sink", hole)))
    with pytest.raises(Broken, match=re.escape("sink has no row for Took(size=0) in Ball(phase=<Work.UP: 'up'>)")) as broken:
        play(holed, "source <- Grew")
    assert broken.value.fault is Fault.HOLE


def test_a_paused_timer_cannot_expire_until_it_is_resumed() -> None:
    from systems import HOLDER, holder

    run = runner(HOLDER)
    paused = play(HOLDER, "holder <- Begun", "holder <- Held")[-1]
    assert paused.timers == ((Ledger.PAUSED,),)
    expiry = next(t for t in triggers(HOLDER, tokens=2, counter=2) if t.kind is Kind.EXPIRE)
    assert not run.enabled(paused, expiry)
    resumed = play(HOLDER, "holder <- Begun", "holder <- Held", "holder <- Let")[-1]
    assert run.enabled(resumed, expiry)
    assert run.holds(holder.running(Timer.REPLY), resumed)
    assert run.holds(holder.paused(Timer.REPLY), paused)


def test_an_event_computed_from_the_state_of_a_part_comes_only_so() -> None:
    system = attrs.evolve(channelled(), spontaneous=(Spontaneous(caller, AskRequested), Spontaneous(service, Crashed, switch=CRASHES),
        Spontaneous(caller, ReplyArrived(service.now.served), when=service.now.served > 0)))  # fmt: skip
    run = runner(system)
    *_, asked = play(system, "caller <- AskRequested")
    possible = [str(t) for t in triggers(system, tokens=2, counter=2) if run.enabled(asked, t) and t.kind is Kind.SEND]
    assert "caller <- ReplyArrived(number=1)" in possible
    assert "caller <- ReplyArrived(number=2)" not in possible


def test_a_guard_may_read_the_event_it_lets_through() -> None:
    arrived = symbol(ReplyArrived)
    system = attrs.evolve(CALL, spontaneous=(*CALL.spontaneous, Spontaneous(caller, ReplyArrived, when=arrived.number > 1)))
    run = runner(system)
    possible = [str(t) for t in triggers(system, tokens=2, counter=2) if run.enabled(run.initial(), t)]
    assert "caller <- ReplyArrived(number=2)" in possible
    assert "caller <- ReplyArrived(number=1)" not in possible


def test_an_effect_can_empty_a_channel() -> None:
    system = channelled()
    emptied = attrs.evolve(system, wires=(*system.wires, Empties(caller, Ask, system.channels[0])))
    *_, after = play(emptied, "service <- Asked", "caller <- AskRequested")
    assert after.channels == ((ReplyArrived(2),),), "what was under way is gone, what is sent afterwards is there"


def test_the_same_system_with_another_machine() -> None:
    deaf = service.machine.variant("deaf", replace={"Asked/up": Row(Asked, at=Work.UP, ignore="deaf")})
    variant = CALL.with_machines(
        "call with a deaf server",
        service=deaf,
    )
    assert variant.part("service").machine is deaf
    *_, after = play(attrs.evolve(variant, wires=variant.wires), "caller <- AskRequested")
    assert after.channels == ((),)
    with pytest.raises(KeyError, match="no part 'nobody'; its parts: caller, service, ground"):
        CALL.with_machines("x", nobody=deaf)


def test_the_clock_knows_a_timer_without_fields_only() -> None:
    @frozen
    class Late:
        by: Annotated[int, Range(0, 1)]

    machine: Machine[Client, object, object] = Machine(
        name="late",
        initial=Client(),
        now=symbol(Client),
        events=(Late,),
        effects=(StartTimer,),
        rows=(Row(Late, stay=True),),
        timers=(TimerRule(Timer.REPLY, symbol(Client).phase == Caller.WAITING, Late, Duration(1, "test")),),
    )
    with pytest.raises(TableError, match=re.escape("the expiry Late of REPLY has fields, but a clock knows none")):
        System(name="late", parts=(Part("late", machine),))


def test_an_expiry_needs_its_timer() -> None:
    run = runner()
    expiry = next(t for t in triggers(CALL, tokens=2, counter=2) if t.kind is Kind.EXPIRE)
    assert expiry.event == ReplyTimedOut()
    assert not run.enabled(run.initial(), expiry)
