"""What the tests of the symbolic engine for systems share: terms beside an exploration, and defects planted in one of the two."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

import attrs
from attrs import evolve
from systems import CALL, CLIENT, SERVER, Answer, Caller, Work, server
from systems import caller as caller_part

from turnproof.checkers.network.explicit import NetworkGraph, explore
from turnproof.checkers.progress import SILENT
from turnproof.checkers.smt_network import agreement, probe
from turnproof.checkers.smt_network.agreement import Agreed, Comparison
from turnproof.checkers.smt_network.relation import Network
from turnproof.machines.kernel import StartTimer, StopTimer, only_if, symbol
from turnproof.specs.language import Step
from turnproof.specs.system import Budget, May, System, SystemSpec, Wire

ARRIVED = CLIENT.row("ReplyArrived/waiting")


def formulas(spec: SystemSpec) -> dict[str, object]:
    """The properties of steps."""
    return {p.name: p.holds for p in spec.properties if isinstance(p, Step)}


def compared(spec: SystemSpec, *, system: System | None = None, steps: int | None = None, **how: Any) -> tuple[Agreed, Agreed]:
    """The terms of ``system`` against what ``spec.system`` does: every step (or a sample), and what is handled in some of them."""
    graph = explore(spec, **how)
    network = Network(spec.system if system is None else system, list(formulas(spec).values()))
    questions = agreement.asked(network, formulas(spec))
    edges = agreement.edges(network, graph, questions, SILENT, steps=steps)
    return edges, handled(network, graph, questions)


def handled(network: Network, graph: NetworkGraph, questions: list[agreement.Asked], count: int = 40) -> Agreed:
    """What is handled in every step of some states."""
    comparison = Comparison(network, graph, questions)
    return agreement.deliveries(network, graph.runner, graph.triggers, probe.worlds(graph, count, 0), comparison)


# ── one defect each, planted in the terms' system alone ──


def _client(row: str, **changes: Any) -> System:
    old = CLIENT.row(row)
    return CALL.with_machines("mutated", caller=CLIENT.variant("mutated", replace={row: attrs.evolve(old, **changes)}))


def _server(row: str, **changes: Any) -> System:
    return CALL.with_machines("mutated", service=SERVER.variant("mutated", replace={row: attrs.evolve(SERVER.row(row), **changes)}))


def _wired(number: int, **changes: Any) -> System:
    wires = tuple(attrs.evolve(w, **changes) if n == number and isinstance(w, Wire) else w for n, w in enumerate(CALL.wires))
    return attrs.evolve(CALL, wires=wires)


def _spontaneous(number: int, **changes: Any) -> System:
    return attrs.evolve(CALL, spontaneous=tuple(attrs.evolve(s, **changes) if n == number else s for n, s in enumerate(CALL.spontaneous)))


def _channel(**changes: Any) -> System:
    channel = attrs.evolve(CALL.channels[0], **changes)
    second = cast(Wire, CALL.wires[1])
    return attrs.evolve(CALL, channels=(channel,), wires=(CALL.wires[0], attrs.evolve(second, to=channel)))


LOSSES = cast(May, CALL.channels[0].lossy)
ASK, ANSWERED = "AskRequested/idle+gave_up", "ReplyArrived/waiting"
DEFECTS: Mapping[str, System] = {
    "a row leads elsewhere": _client(ANSWERED, to=Caller.GAVE_UP),
    "a row applies in fewer phases": _client(ASK, at=Caller.IDLE),
    "a row applies in more phases": _client(ANSWERED, at=(Caller.WAITING, Caller.GAVE_UP)),
    "a timer is not stopped": _client(ANSWERED, emit=tuple(e for e in ARRIVED.emit if not isinstance(e, StopTimer))),
    "a timer is not started": _client(ASK, emit=tuple(e for e in CLIENT.row(ASK).emit if not isinstance(e, StartTimer))),
    "an effect is emitted only sometimes": _server("Asked/up", emit=(only_if(server.served < 1, Answer(server.served + 1)),)),
    "a guard is off by one": _server("Asked/up", when=server.served < 1),
    "an update is off by one": _server("Asked/up", data=evolve(server, served=server.served)),
    "a field of an effect is off by one": _server("Asked/up", emit=(Answer(2),)),
    "an effect comes twice": _server("Asked/up", emit=(Answer(server.served + 1), Answer(server.served + 1))),
    "a wire carries only some": _wired(1, where=symbol(Answer).number == 1),
    "a wire carries nothing": _wired(1, where=symbol(Answer).number > 2),
    "a copy is missing": attrs.evolve(CALL, copies=(attrs.evolve(CALL.copies[0], where=symbol(Answer).number == 2),)),
    "a spontaneous event has another guard": _spontaneous(1, when=CALL.parts[1].now.phase == Work.DOWN),
    "a budget is larger": _spontaneous(0, budget=Budget("asks", 3)),
    "a budget is spent by another": _spontaneous(1, budget=CALL.budgets[0]),
    "a channel does not lose all it may": _channel(lossy=attrs.evolve(LOSSES, when=caller_part.now.phase == Caller.WAITING)),
    "a channel is held": _channel(when=caller_part.now.phase == Caller.WAITING),
}
"""What is planted -> the system that the terms are made of."""
