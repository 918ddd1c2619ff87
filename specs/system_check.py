"""What building a system, or its specification, checks. Each mistake is one sentence that names the place and says what to write."""

from __future__ import annotations

import difflib
from collections import Counter as Tally
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any, cast

import attrs

from turnproof.machines.kernel import (
    TIMER_EFFECTS,
    Field,
    Formula,
    Kind,
    OnlyIf,
    TableError,
    Variable,
    fields_of,
    formula,
    nodes,
    show,
    variables,
)
from turnproof.specs.language import Always, EventuallyAlways, Fair, LeadsTo, Property, Sometimes, Step
from turnproof.specs.system_words import NEXT, STEP_WORDS, ChannelDid, Pending, Received, SentBy, TimerIs

if TYPE_CHECKING:
    from turnproof.specs.system import AnyPart, Channel, Copy, Empties, May, Spontaneous, System, SystemSpec, Wire


def check_system(system: System) -> None:
    """Raise :class:`TableError` with every mistake found, one a line."""
    # Names come first: the other checks look things up by them.
    mistakes = list(_name_mistakes(system)) or list(_mistakes(system))
    if mistakes:
        raise TableError(f"system {system.name}:\n" + "\n".join(f"  {m}" for m in dict.fromkeys(mistakes)))


def _name_mistakes(system: System) -> Iterator[str]:
    names = [p.name for p in system.everyone] + [c.name for c in system.channels]
    for name, count in Tally(names).items():
        if count > 1:
            yield f"{count} parts or channels are called {name!r}: each needs a name of its own"
        if not name.isidentifier() or name == NEXT[1:]:
            yield f"{name!r} cannot name a part or a channel: write an identifier other than {NEXT[1:]!r}"
    if not system.parts:
        yield "it has no parts"


def _mistakes(system: System) -> Iterator[str]:
    for wire in system.wires:
        yield from (f"wire {wire}: {m}" for m in _wire_mistakes(system, wire))
    for copy in system.copies:
        yield from (f"copy {copy}: {m}" for m in _copy_mistakes(system, copy))
    for channel in system.channels:
        yield from (f"channel {channel.name}: {m}" for m in _channel_mistakes(system, channel))
    for spontaneous in system.spontaneous:
        yield from (f"spontaneous {spontaneous}: {m}" for m in _spontaneous_mistakes(system, spontaneous))
    for monitor in system.monitors:
        if monitor.machine.effects:
            yield f"monitor {monitor.name} has effects ({monitor.machine.effects[0].__name__}): a monitor never answers; make it a part"
    for part in system.everyone:
        yield from _part_mistakes(system, part)
    yield from _switch_mistakes(system)


# ── pieces ──


def _known_part(system: System, part: AnyPart, role: str, among: Iterable[AnyPart]) -> Iterator[str]:
    names = [p.name for p in among]
    if part.name not in names:
        yield f"{part.name} is no {role} of this system; it has {', '.join(names) or 'none'}"


def _wire_mistakes(system: System, wire: Wire | Empties) -> Iterator[str]:
    from turnproof.specs.system import Channel, Wire

    problems = list(_known_part(system, wire.source, "part", system.parts))
    channel = wire.to if isinstance(wire, Wire) else wire.channel
    if isinstance(channel, Channel) and channel not in system.channels:
        problems.append(f"the channel {channel.name} is not in channels=")
    if isinstance(wire, Wire):
        problems += _known_part(system, wire.target, "part", system.everyone)
    yield from problems
    if problems:
        return
    known = system.part(wire.source.name).machine.effects
    if wire.effect_class in TIMER_EFFECTS:
        yield f"the clock takes {wire.effect_class.__name__}: wire the effects that the parts themselves define"
    elif wire.effect_class not in known:
        yield f"{wire.source.name} has no effect {wire.effect_class.__name__}{_nearest(wire.effect_class.__name__, known)}"
    yield from _own_fields(wire.where, wire.effect_class, "where=")
    if isinstance(wire, Wire):
        yield from _template_mistakes(system, wire.target, wire.event, wire.event_class, wire.effect_class)


def _copy_mistakes(system: System, copy: Copy) -> Iterator[str]:
    problems = [*_known_part(system, copy.of, "part", system.parts), *_known_part(system, copy.to, "monitor", system.monitors)]
    yield from problems
    if problems:
        return
    machine = system.part(copy.of.name).machine
    known = (*machine.events, *machine.effects)
    if copy.what_class not in known:
        yield f"{copy.of.name} has neither an event nor an effect {copy.what_class.__name__}{_nearest(copy.what_class.__name__, known)}"
    yield from _own_fields(copy.where, copy.what_class, "where=")
    yield from _template_mistakes(system, copy.to, copy.event, copy.event_class, copy.what_class)


def _template_mistakes(system: System, target: AnyPart, template: object, event: type, source: type) -> Iterator[str]:
    known = system.part(target.name).machine.events
    if event not in known:
        yield f"{target.name} has no event {event.__name__}{_nearest(event.__name__, known)}"
        return
    if isinstance(template, type):
        missing = [f.name for f in attrs.fields(cast(Any, event)) if f.default is attrs.NOTHING]
        if missing:
            yield f"{event.__name__} has the field {missing[0]}: write {event.__name__}({missing[0]}=...) instead of the class"
    elif template is not None:
        for name, field in fields_of(event).items():
            node = getattr(template, name)
            yield from _own_fields(node, source, f"{event.__name__}.{name}")
            yield from _value_mistakes(node, field)


def _own_fields(node: object, owner: type, place: str) -> Iterator[str]:
    for variable in sorted(variables(node), key=str):
        if variable.owner is not owner or variable.scope:
            yield f"{place} reads {variable.owner.__name__}.{variable}, but only the fields of {owner.__name__} are there to read"


def _value_mistakes(node: object, field: Field) -> Iterator[str]:
    if not isinstance(node, Formula):
        if not field.holds(node):
            yield f"{field} is {node!r}, expected {field.expected()}"
        return
    found, wanted = sort_of(node), sort_of(Formula("var", (Variable(field.owner, field.name),)))
    if found is not None and wanted is not None and found != wanted:
        yield f"{field} is given `{show(node)}`, which is {_called(found)}, expected {field.expected()}"


def _channel_mistakes(system: System, channel: Channel) -> Iterator[str]:
    from turnproof.specs.system import Wire

    yield from _known_part(system, channel.to, "part", system.parts)
    if channel.capacity < 1:
        yield f"its capacity is {channel.capacity}, expected at least 1"
    if not any(isinstance(w, Wire) and w.to is channel for w in system.wires):
        yield "no wire leads into it"
    yield from state_mistakes(system, channel.when, "when=")
    for may in (channel.lossy, channel.droppable):
        if may is not None:
            yield from state_mistakes(system, may.when, "when=")


def _spontaneous_mistakes(system: System, spontaneous: Spontaneous) -> Iterator[str]:
    problems = list(_known_part(system, spontaneous.to, "part", system.parts))
    yield from problems
    if problems:
        return
    known = system.part(spontaneous.to.name).machine.events
    event = spontaneous.event_class
    if event not in known:
        yield f"{spontaneous.to.name} has no event {event.__name__}{_nearest(event.__name__, known)}"
        return
    yield from state_mistakes(system, spontaneous.when, "when=", event=event)
    if not isinstance(spontaneous.event, type):
        for name, field in fields_of(event).items():
            node = getattr(spontaneous.event, name)
            yield from state_mistakes(system, node, f"{event.__name__}.{name}", event=event)
            if not _is_own(node, event, name):
                yield from _value_mistakes(node, field)


def _is_own(node: object, event: type, name: str) -> bool:
    """``symbol(Event)``'s own field: left open, so all its values are explored."""
    return isinstance(node, Formula) and node.op == "var" and node.args[0] == Variable(event, name)


# ── parts: who receives, who sends ──


def _part_mistakes(system: System, part: AnyPart) -> Iterator[str]:
    machine = part.machine
    if type(part.start) is not machine.state:
        yield f"{part.name} starts as a {type(part.start).__name__}, expected a {machine.state.__name__}"
        return
    for name, field in fields_of(machine.state).items():
        if not field.holds(getattr(part.start, name)):
            yield f"{part.name}.{name} starts as {getattr(part.start, name)!r}, expected {field.expected()}"
    for rule in machine.timers:
        if any(f.default is attrs.NOTHING for f in attrs.fields(cast(Any, rule.expires))):
            yield f"part {part.name}: the expiry {rule.expires.__name__} of {rule.timer.name} has fields, but a clock knows none"
    emitted = dict.fromkeys(type(i.effect if isinstance(i, OnlyIf) else i) for row in machine.rows for i in row.emit)
    emitted = {cls: None for cls in emitted if cls not in TIMER_EFFECTS}
    wired = {w.effect_class for w in system.wires if w.source.name == part.name}
    absorbed = [cls for a in system.absorbed if a.part.name == part.name for cls in a.classes]
    for cls in emitted:
        if cls not in wired and cls not in absorbed:
            yield f"nobody receives {part.name}.{cls.__name__}: wire it, or write Absorbs({part.name}, {cls.__name__})"
    for cls in absorbed:
        if cls not in emitted:
            yield f"Absorbs({part.name}, {cls.__name__}): no row of {part.name} emits it"
    yield from _unsent_mistakes(system, part)


def _unsent_mistakes(system: System, part: AnyPart) -> Iterator[str]:
    from turnproof.specs.system import Wire

    sources = {w.event_class for w in system.wires if isinstance(w, Wire) and w.target.name == part.name}
    sources |= {c.event_class for c in system.copies if c.to.name == part.name}
    sources |= {s.event_class for s in system.spontaneous if s.to.name == part.name}
    expiries = {rule.expires for rule in part.machine.timers}
    unsent = [cls for u in system.unsent if u.part.name == part.name for cls in u.classes]
    for cls in part.machine.events:
        if cls not in sources | expiries and cls not in unsent:
            unsent_as = f"Unsent({part.name}, {cls.__name__})"
            yield f"nobody sends {part.name}.{cls.__name__}: wire an effect to it, make it Spontaneous, or write {unsent_as}"
    for cls in unsent:
        if cls not in part.machine.events:
            yield f"Unsent({part.name}, {cls.__name__}): {part.name} has no such event{_nearest(cls.__name__, part.machine.events)}"
        elif cls in sources:
            yield f"Unsent({part.name}, {cls.__name__}): something does send it"


def _switch_mistakes(system: System) -> Iterator[str]:
    mays: list[May | Spontaneous | None] = [*system.spontaneous, *(m for c in system.channels for m in (c.lossy, c.droppable))]
    used = dict.fromkeys(m.switch for m in mays if m is not None and m.switch is not None)
    for switch in system.switches:
        if switch not in used:
            yield f"nothing uses the switch {switch.name!r}"
    for switch in used:
        if switch not in system.switches:
            yield f"the switch {switch.name!r} is not in switches="
    for name, count in Tally(b.name for b in system.budgets).items():
        if count > 1:
            yield f"{count} different budgets are called {name!r}: share one Budget object, or give each its own name"


# ── formulas over parts ──


def state_mistakes(system: System, node: object, place: str, *, event: type | None = None) -> Iterator[str]:
    """What is wrong with a formula over the present states of parts (and, in a spontaneous event, its own fields)."""
    if node is None or not isinstance(node, Formula):
        if isinstance(node, bool) and place == "when=":
            yield f"{place} is the constant {node}: it was evaluated in Python. Compare with ==, never with `is`; write one_of() for `in`."
        return
    for variable in sorted(variables(node), key=str):
        if event is not None and variable.owner is event and not variable.scope:
            continue
        if isinstance(variable, STEP_WORDS) or variable.scope.endswith(NEXT):
            yield f"{place} reads `{variable}`, a word of a step: only Step, Sometimes and the taken= of Fair can"
        else:
            yield from _variable_mistakes(system, variable, place)
    yield from _type_mistakes(node, place)


def step_mistakes(system: System, node: object, place: str) -> Iterator[str]:
    """What is wrong with a formula over a step of the system."""
    for variable in sorted(variables(node), key=str):
        yield from _variable_mistakes(system, variable, place)
    yield from _type_mistakes(node, place)


def _variable_mistakes(system: System, variable: Variable, place: str) -> Iterator[str]:
    scope = variable.scope.removesuffix(NEXT)
    if isinstance(variable, Pending | ChannelDid):
        if scope not in {c.name for c in system.channels}:
            yield f"{place} reads the channel {scope}, which is not in channels="
        return
    if scope not in {p.name for p in system.everyone}:
        shown = f"{variable.owner.__name__}.{variable}" if not scope else f"the part {scope!r}"
        hint = (
            "write part.now.field, or state(part, MACHINE).field"
            if not scope
            else f"the parts are {', '.join(p.name for p in system.everyone)}"
        )
        yield f"{place} reads {shown}: {hint}"
        return
    machine = system.part(scope).machine
    if isinstance(variable, TimerIs):
        if variable.timer not in {rule.timer for rule in machine.timers}:
            yield f"{place} reads {variable}, but {scope} has no such timer"
    elif isinstance(variable, Received | SentBy):
        known = machine.events if isinstance(variable, Received) else machine.effects
        if variable.owner not in known:
            kind = "event" if isinstance(variable, Received) else "effect"
            yield f"{place} counts {variable.owner.__name__}, which is no {kind} of {scope}{_nearest(variable.owner.__name__, known)}"
        for inner in (v for node in variable.inner() for v in variables(node)):
            if inner.scope != scope or isinstance(inner, STEP_WORDS):
                yield f"{place}: the pattern of `{variable}` reads {inner}; it may read the state of {scope} alone"
    elif variable.owner is not machine.state:
        yield f"{place} reads {variable.owner.__name__}.{variable.name}, but the state of {scope} is {machine.state.__name__}"
    elif fields_of(variable.owner)[variable.name].kind is Kind.OPAQUE:
        yield f"{place} reads {variable}, which is Opaque"


def sort_of(node: object) -> object:
    """The type a node has: bool, int, "a Token" or an Enum class; None if it cannot be told."""
    if not isinstance(node, Formula):
        for kind in (bool, int):
            if isinstance(node, kind):
                return kind
        return "a Token" if isinstance(node, str) else type(node)
    if node.op == "var":
        variable = cast(Variable, node.args[0])
        if isinstance(variable, TimerIs):
            return bool
        if isinstance(variable, (*STEP_WORDS, Pending)):
            return int
        field = fields_of(variable.owner)[variable.name]
        return {Kind.RANGE: int, Kind.COUNTER: int, Kind.BOOL: bool, Kind.TOKEN: "a Token", Kind.OPAQUE: None}.get(field.kind, field.base)
    if node.op == "choose":
        return sort_of(node.args[1])
    return int if node.op in ("add", "sub", "latest") else bool


def _type_mistakes(node: object, place: str) -> Iterator[str]:
    for part in nodes(node):
        if part.op in ("eq", "ne"):
            left, right = (sort_of(arg) for arg in part.args)
            if left is not None and right is not None and left != right:
                yield f"{place}: `{show(part)}` compares {_called(left)} with {_called(right)}, which are never equal"
        elif part.op in ("lt", "le", "gt", "ge", "add", "sub"):
            for arg in part.args:
                if sort_of(arg) not in (None, int):
                    yield f"{place}: `{show(part)}` does arithmetic on {_called(sort_of(arg))}"


def _called(sort: object) -> str:
    return sort.__name__ if isinstance(sort, type) else str(sort)


def _nearest(name: str, known: Iterable[type]) -> str:
    names = [cls.__name__ for cls in known]
    close = difflib.get_close_matches(name, names, n=1)
    return f"; did you mean {close[0]}?" if close else f"; it has {', '.join(names) or 'none'}"


# ── a specification ──


def check_spec(spec: SystemSpec) -> None:
    """Raise :class:`TableError` with every mistake of the specification's own, one a line."""
    mistakes = list(_spec_mistakes(spec))
    for prop in spec.properties:
        mistakes += _property_mistakes(spec.system, prop)
    for name, lemma in spec.lemmas:
        mistakes += state_mistakes(spec.system, lemma, f"lemma {name!r}")
    if mistakes:
        raise TableError(f"specification of {spec.system.name}:\n" + "\n".join(f"  {m}" for m in dict.fromkeys(mistakes)))


def _spec_mistakes(spec: SystemSpec) -> Iterator[str]:
    if not spec.properties:
        yield "it checks nothing: it has no property"
    for name, count in Tally(p.name for p in spec.properties).items():
        if count > 1:
            yield f"{count} properties are called {name!r}"
    for prop in spec.properties:
        for rid in prop.requirements:
            if rid not in spec.requirements:
                yield f"property {prop.name!r} names {rid}, which is no requirement of this specification"
    for variant in spec.variants:
        named = {p.name for p in (spec.properties if variant.properties is None else variant.properties)}
        for name in variant.violates:
            if name not in named:
                yield f"variant {variant.system.name} must violate {name!r}, which is no property of this specification"
        if not variant.violates:
            yield f"variant {variant.system.name} violates nothing: name the property it must violate, and in how many steps"


def _fairness_mistakes(system: System, fairness: Iterable[Fair], place: str) -> Iterator[str]:
    for fair in fairness:
        yield from state_mistakes(system, formula(fair.enabled, place), f"{place}, fairness {fair.name!r}")
        yield from step_mistakes(system, formula(fair.taken, place), f"{place}, fairness {fair.name!r}")


def _property_mistakes(system: System, prop: Property) -> Iterator[str]:
    from turnproof.specs.system import NoDeadlock, Within

    place = f"property {prop.name!r}"
    if isinstance(prop, Always):
        yield from state_mistakes(system, formula(prop.holds, place), place)
    elif isinstance(prop, Step | Sometimes):
        yield from step_mistakes(system, formula(prop.holds, place), place)
    elif isinstance(prop, LeadsTo):
        for side in (prop.first, prop.then):
            yield from step_mistakes(system, formula(side, place), place)
        yield from _fairness_mistakes(system, prop.fairness, place)
    elif isinstance(prop, EventuallyAlways):
        yield from state_mistakes(system, formula(prop.holds, place), place)
        yield from _fairness_mistakes(system, prop.fairness, place)
    elif isinstance(prop, NoDeadlock):
        yield from state_mistakes(system, prop.unless, place)
    elif isinstance(prop, Within):
        yield from step_mistakes(system, formula(prop.first, place), place)
        yield from state_mistakes(system, formula(prop.then, place), place)
        for event in prop.at_once:
            if event not in {s.event_class for s in system.spontaneous}:
                yield f"{place}: at_once= names {event.__name__}, which no spontaneous event is"
    else:
        yield f"{place} is a {type(prop).__name__}, which no engine for systems can read"
