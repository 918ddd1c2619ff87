"""The same failure by other routes: for each way to begin the step that breaks a property, the shortest run that ends so.

A walk finds one shortest counterexample. Here, once something is broken, the same states are walked again with a question for each
beginning: an event that comes to a part, an expiry, a delivery.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, cast

import attrs

from turnproof.checkers.network.questions import BROKEN
from turnproof.checkers.network.triggers import Kind, Trigger
from turnproof.checkers.network.walk import Key, Limits, Over, Question, Trace, replay
from turnproof.checkers.progress import Progress
from turnproof.machines.kernel import Formula, Variable, formula, not_, variables
from turnproof.specs.language import Always, Property, Step
from turnproof.specs.system_words import NEXT, Happening, Pending, TimerIs, channel_did, received

if TYPE_CHECKING:
    from turnproof.checkers.network.explicit import NetworkGraph

ROUTE = "route"
MOST_STATES = 5_000_000
"""A system larger than this is not walked a second time."""
DID = {Kind.DELIVER: Happening.DELIVERED, Kind.LOSE: Happening.LOST, Kind.DROP: Happening.DROPPED}

Beginning = tuple[Kind, str, type | None]


def routes(graph: NetworkGraph, broken: Sequence[Property], progress: Progress) -> dict[str, list[Trace]]:
    """Property -> the shortest trace for each other beginning of the step that breaks it, shortest first."""
    askable = [prop for prop in broken if isinstance(prop, Always | Step) and _readable(prop)]
    if not askable or graph.walk.states > MOST_STATES:
        return {}
    beginnings = list(dict.fromkeys(_beginning(t) for t in graph.triggers))
    hits = _walked(graph, tuple(_question(prop, n, one) for prop in askable for n, one in enumerate(beginnings)), progress)
    found: dict[str, list[Trace]] = {}
    for prop in askable:
        first = graph.walk.hits[BROKEN, prop.name, 0]()
        known: dict[Beginning, Trace] = {_beginning(first[-1].trigger): first} if first else {}
        traces = (hits[ROUTE, prop.name, n]() for n in range(len(beginnings)) if (ROUTE, prop.name, n) in hits)
        for trace in sorted((t for t in traces if _breaks_last(graph, prop, t)), key=len):
            known.setdefault(_beginning(trace[-1].trigger), trace)
        found[prop.name] = [trace for trace in known.values() if trace is not first]
    return found


def _walked(graph: NetworkGraph, asked: tuple[Question, ...], progress: Progress) -> dict[Key, Callable[[], Trace]]:
    from turnproof.checkers.network.explicit import walker_of

    group = graph.symmetry
    put = asked if group is None else tuple(group.closed(question) for question in asked)
    engine = "plain" if graph.walk.engine == "plain Python" else "compiled"
    walker = walker_of(engine, graph.runner, graph.triggers, put, None, group)
    walk = walker.run(Limits(states=None if graph.walk.complete else graph.walk.states), progress)
    if group is not None:
        group.settle(walk, graph.runner, graph.triggers, asked)
    return walk.hits


def _breaks_last(graph: NetworkGraph, prop: Always | Step, trace: Trace) -> bool:
    """Whether nothing before the last step of the run breaks the property."""
    before = replay(graph.runner, trace)[:-1]
    if isinstance(prop, Step):
        return all(graph.runner.holds_of(prop.holds, step) for step in before)
    return all(graph.runner.holds(prop.holds, step.after) for step in before)


def _beginning(trigger: Trigger) -> Beginning:
    return trigger.kind, trigger.where, None if trigger.event is None else type(trigger.event)


def _question(prop: Always | Step, number: int, beginning: Beginning) -> Question:
    kind, where, event = beginning
    began = received(where, cast(type, event)) >= 1 if kind in (Kind.SEND, Kind.EXPIRE) else channel_did(where, DID[kind])
    holds: Any = formula(prop.holds, prop.name)
    after: Any = later(holds)
    breaks = not_(holds) if isinstance(prop, Step) else holds & not_(after)
    return Question((ROUTE, prop.name, number), formula(breaks & began, prop.name), Over.STEP)


def _readable(prop: Always | Step) -> bool:
    """Timers and channels are read before a step only; so a state property of theirs has no step that breaks it."""
    return isinstance(prop, Step) or not any(isinstance(v, TimerIs | Pending) for v in variables(prop.holds))


def later(node: Formula) -> Formula:
    """A formula over states, of the state after the step."""
    if node.op == "var":
        variable = cast(Variable, node.args[0])
        return Formula("var", (attrs.evolve(variable, scope=variable.scope + NEXT),))
    if node.op == "named":
        return later(cast(Formula, node.args[1]))
    return Formula(node.op, tuple(later(arg) if isinstance(arg, Formula) else arg for arg in node.args))


__all__ = ["MOST_STATES", "later", "routes"]
