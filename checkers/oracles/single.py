"""A single machine as a system of one part: every event may come at any time, within the bounds of its specification."""

from __future__ import annotations

from typing import Any, cast

from turnproof.machines.kernel import TIMER_EFFECTS, Formula, Variable, formula, variables
from turnproof.specs.language import Always, Property, Sometimes, Spec
from turnproof.specs.system import Absorbs, NoDeadlock, Part, Spontaneous, System, SystemSpec
from turnproof.specs.system_words import STEP_WORDS


def as_system(spec: Spec) -> SystemSpec:
    """The system. History variables are left out, and so are the properties that read them, or speak of steps or of the future."""
    part = Part(spec.machine.name, spec.machine)
    expiries = {rule.expires for rule in spec.machine.timers}
    emitted = {type(getattr(item, "effect", item)) for row in spec.machine.rows for item in row.emit}
    absorbed = tuple(cls for cls in spec.machine.effects if cls in emitted and cls not in TIMER_EFFECTS)
    assume = None if spec.assume is None else formula(spec.assume, "assume=")
    properties = tuple(p for prop in spec.properties for p in _moved(spec, prop))
    return SystemSpec(
        system=System(
            name=spec.machine.name,
            parts=(part,),
            spontaneous=tuple(
                Spontaneous(part, event, when=None if assume is None else _assumed(spec, assume, event))
                for event in spec.machine.events
                if event not in expiries
            ),
            absorbed=(Absorbs(part, *absorbed),) if absorbed else (),
        ),
        requirements=spec.requirements,
        properties=properties or (NoDeadlock("it goes on", requirements=()),),
        tokens=spec.tokens,
        counter=spec.counter,
    )


def scoped(node: object, state: type, scope: str) -> Any:
    """The formula with the fields of ``state`` read from the part of that name."""
    if not isinstance(node, Formula):
        return node
    if node.op == "var":
        variable = cast(Variable, node.args[0])
        return Formula("var", (Variable(state, variable.name, scope),)) if variable.owner is state and not variable.scope else node
    return Formula(node.op, tuple(scoped(arg, state, scope) for arg in node.args))


def _assumed(spec: Spec, assume: Formula, event: type) -> Any:
    """The assumption about one class of event: what it says of others is left out."""
    return scoped(_about(assume, event), spec.machine.state, spec.machine.name)


def _about(node: object, event: type) -> Any:
    from turnproof.specs.language import OnEvent

    if not isinstance(node, Formula):
        return node
    if node.op == "var":
        variable = cast(Variable, node.args[0])
        return variable.owner is event if isinstance(variable, OnEvent) else node
    return Formula(node.op, tuple(_about(arg, event) for arg in node.args))


def _moved(spec: Spec, prop: Property) -> tuple[Property, ...]:
    if not isinstance(prop, Always | Sometimes):
        return ()
    read = variables(prop.holds)
    if any(v.owner is not spec.machine.state or v.scope or isinstance(v, STEP_WORDS) for v in read):
        return ()
    holds = scoped(prop.holds, spec.machine.state, spec.machine.name)
    return (type(prop)(prop.name, holds, requirements=prop.requirements, harm=prop.harm),)


__all__ = ["as_system", "scoped"]
