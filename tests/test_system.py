"""The language of systems: what building one refuses, and in which words."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import attrs
import pytest
from systems import (
    CALL,
    CALL_SPEC,
    Answer,
    Ask,
    Asked,
    AskRequested,
    Caller,
    Client,
    Crashed,
    ReplyArrived,
    Report,
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

from turnproof.machines.kernel import StartTimer, TableError, symbol
from turnproof.specs.language import Always, EventuallyAlways, Fair, LeadsTo, Property, Step
from turnproof.specs.system import (
    Absorbs,
    Budget,
    Channel,
    Copy,
    Empties,
    Part,
    Spontaneous,
    Switch,
    Unsent,
    Wire,
    state,
)


def changed(**fields: Any) -> Callable[[], object]:
    return lambda: attrs.evolve(CALL, **fields)


stray = Part("stray", service.machine)
elsewhere = Channel("elsewhere", caller, capacity=1)
noisy = Part("noisy", service.machine)


@pytest.mark.parametrize(
    ("build", "sentence"),
    [
        (changed(absorbed=()), "nobody receives caller.Report: wire it, or write Absorbs(caller, Report)"),
        (
            changed(wires=CALL.wires[1:]),
            "nobody sends service.Asked: wire an effect to it, make it Spontaneous, or write Unsent(service, Asked)",
        ),
        (
            changed(wires=(*CALL.wires, Wire(stray, Answer, caller, ReplyArrived(1)))),
            "stray is no part of this system; it has caller, service",
        ),
        (changed(wires=(*CALL.wires, Wire(service, Answer, stray, Asked))), "stray is no part of this system"),
        (changed(wires=(*CALL.wires, Wire(service, Ask, caller, ReplyArrived(1)))), "service has no effect Ask; it has Answer"),
        (changed(wires=(*CALL.wires, Wire(service, Answer, caller, Crashed))), "caller has no event Crashed"),
        (changed(wires=(*CALL.wires, Wire(caller, StartTimer, service, Asked))), "the clock takes StartTimer"),
        (changed(wires=(*CALL.wires, Wire(service, Answer, elsewhere, ReplyArrived(1)))), "the channel elsewhere is not in channels="),
        (changed(wires=(*CALL.wires, Empties(service, Answer, elsewhere))), "the channel elsewhere is not in channels="),
        (
            changed(wires=(*CALL.wires, Wire(service, Answer, caller, ReplyArrived(3)))),
            "ReplyArrived.number is 3, expected an integer from 1 to 2",
        ),
        (
            changed(wires=(*CALL.wires, Wire(service, answer, caller, ReplyArrived(answer.number == 1)))),
            "ReplyArrived.number is given `number = 1`, which is bool, expected an integer from 1 to 2",
        ),
        (
            changed(wires=(*CALL.wires, Wire(service, Answer, caller, ReplyArrived))),
            "ReplyArrived has the field number: write ReplyArrived(number=...)",
        ),
        (
            changed(
                wires=(*CALL.wires, Wire(service, Answer, caller, ReplyArrived(symbol(Answer).number), where=service.now.phase == Work.UP))
            ),
            "where= reads Server.service.phase, but only the fields of Answer are there to read",
        ),
        (changed(channels=(*CALL.channels, elsewhere)), "channel elsewhere: no wire leads into it"),
        (changed(channels=(attrs.evolve(replies, capacity=0),)), "its capacity is 0, expected at least 1"),
        (changed(spontaneous=(*CALL.spontaneous, Spontaneous(stray, Crashed))), "stray is no part of this system"),
        (changed(spontaneous=(*CALL.spontaneous, Spontaneous(caller, Crashed))), "caller has no event Crashed"),
        (
            changed(spontaneous=(*CALL.spontaneous, Spontaneous(caller, ReplyArrived(5)))),
            "ReplyArrived.number is 5, expected an integer from 1 to 2",
        ),
        (
            changed(spontaneous=(*CALL.spontaneous, Spontaneous(caller, AskRequested, when=caller.next.phase == Caller.IDLE))),
            "when= reads `caller.next.phase`, a word of a step",
        ),
        (
            changed(spontaneous=(*CALL.spontaneous, Spontaneous(caller, AskRequested, when=symbol(Client).phase == Caller.IDLE))),
            "when= reads Client.phase: write part.now.field, or state(part, MACHINE).field",
        ),
        (
            changed(spontaneous=(*CALL.spontaneous, Spontaneous(caller, AskRequested, when=stray.now.phase == Work.UP))),
            "when= reads the part 'stray': the parts are caller, service, ground",
        ),
        (
            changed(spontaneous=(*CALL.spontaneous, Spontaneous(caller, AskRequested, when=caller.now.phase == Work.UP))),  # type: ignore[comparison-overlap]
            "compares Caller with Work, which are never equal",
        ),
        (
            changed(spontaneous=(*CALL.spontaneous, Spontaneous(caller, AskRequested, when=False))),
            "when= is the constant False: it was evaluated in Python",
        ),
        (changed(monitors=(ground, noisy)), "monitor noisy has effects (Answer): a monitor never answers; make it a part"),
        (changed(copies=(Copy(caller, Answer, ground, Served),)), "caller has neither an event nor an effect Answer"),
        (changed(copies=(Copy(service, Answer, service, Asked),)), "service is no monitor of this system; it has ground"),
        (changed(absorbed=(*CALL.absorbed, Absorbs(service, Report))), "Absorbs(service, Report): no row of service emits it"),
        (changed(unsent=(Unsent(service, Asked),)), "Unsent(service, Asked): something does send it"),
        (changed(unsent=(Unsent(service, Report),)), "Unsent(service, Report): service has no such event"),
        (changed(switches=(*CALL.switches, Switch("the sun explodes"))), "nothing uses the switch 'the sun explodes'"),
        (changed(switches=CALL.switches[1:]), "the switch 'the server crashes' is not in switches="),
        (changed(parts=(caller, service, Part("caller", service.machine))), "2 parts or channels are called 'caller'"),
        (changed(parts=(caller, service, Part("next", service.machine))), "'next' cannot name a part"),
        (changed(parts=(Part[Any]("caller", caller.machine, Server()), service)), "caller starts as a Server, expected a Client"),
        (
            changed(spontaneous=(*CALL.spontaneous, Spontaneous(caller, AskRequested, budget=Budget("asks", 7)))),
            "2 different budgets are called 'asks'",
        ),
        (lambda: Budget("asks", 0), "a budget of less than one forbids"),
    ],
)
def test_a_system_written_wrongly_is_refused(build: Callable[[], object], sentence: str) -> None:
    with pytest.raises(TableError, match=re.escape(sentence)):
        build()


def with_property(prop: Property) -> Callable[[], object]:
    return lambda: attrs.evolve(CALL_SPEC, properties=(prop,))


@pytest.mark.parametrize(
    ("build", "sentence"),
    [
        (with_property(Always("p", caller.took(ReplyArrived), requirements=())), "a word of a step: only Step, Sometimes"),
        (with_property(Always("p", caller.next.phase == Caller.IDLE, requirements=())), "a word of a step"),
        (with_property(Step("p", state("nobody", caller.machine).phase == Caller.IDLE, requirements=())), "reads the part 'nobody'"),
        (with_property(Step("p", caller.took(Crashed), requirements=())), "counts Crashed, which is no event of caller"),
        (
            with_property(Step("p", caller.emits(Answer), requirements=())),
            "counts Answer, which is no effect of caller; it has Ask, Report",
        ),
        (with_property(Step("p", elsewhere.delivers, requirements=())), "reads the channel elsewhere, which is not in channels="),
        (with_property(Always("p", service.running(Timer.REPLY), requirements=())), "service has no such timer"),
        (with_property(EventuallyAlways("p", caller.took(ReplyArrived), requirements=())), "a word of a step"),
        (
            with_property(LeadsTo("p", caller.took(ReplyArrived), stray.now.phase == Work.UP, requirements=())),
            "reads the part 'stray': the parts are caller, service, ground",
        ),
        (
            with_property(
                LeadsTo(
                    "p",
                    caller.took(ReplyArrived),
                    caller.now.phase == Caller.IDLE,
                    requirements=(),
                    fairness=(Fair("f", caller.took(ReplyArrived), caller.took(ReplyArrived)),),
                )
            ),
            "fairness 'f' reads `caller taken ReplyArrived`, a word of a step",
        ),
        (with_property(Always("p", caller.now.phase == Caller.IDLE, requirements="R-9")), "names R-9, which is no requirement"),
        (
            with_property(Step("p", service.emits(Answer, number=caller.now.phase), requirements=())),
            "it may read the state of service alone",
        ),
        (lambda: attrs.evolve(CALL_SPEC, properties=()), "it checks nothing"),
        (lambda: attrs.evolve(CALL_SPEC, properties=CALL_SPEC.properties[:1] * 2), "2 properties are called"),
        (lambda: service.emits(Answer, size=1), "Answer has no field 'size'; it has number"),
    ],
)
def test_a_specification_written_wrongly_is_refused(build: Callable[[], object], sentence: str) -> None:
    with pytest.raises(TableError, match=re.escape(sentence)):
        build()


def test_requirements_without_a_property_are_told() -> None:
    assert CALL_SPEC.undischarged() == ()
    more = attrs.evolve(CALL_SPEC, requirements={**CALL_SPEC.requirements, "R-3": "nobody looks"})
    assert more.undischarged() == ("R-3",)
