"""Every small change of a table, in a stable order. No change is made twice, and none is the table itself."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, cast

import attrs

from turnproof.checkers.mutants.rewrite import conditions, values
from turnproof.checkers.mutants.words import AnyRow, Mutant, Operator
from turnproof.machines.kernel import TIMER_EFFECTS, Formula, OnlyIf, TimerRule, Variable, fields_of, show, variables
from turnproof.specs.language import AnyMachine, EventuallyAlways, LeadsTo, Spec


def mutants(machine: AnyMachine, row: str | None = None) -> tuple[Mutant, ...]:
    """Every mutant of ``machine``, row by row; of one row, if named. Raises ``KeyError`` for a row it does not have."""
    rows = machine.rows if row is None else (machine.row(row),)
    made: list[Mutant] = []
    for each in rows:
        seen = {_shape(each)}
        for mutant in _of_row(machine, each):
            shape = "; ".join(f"{name}: {' | '.join(_shape(r) for r in new)}" for name, new in mutant.changes.items() if name != each.name)
            shape += " | ".join(_shape(r) for r in mutant.changes.get(each.name, (each,)))
            if shape not in seen:
                seen.add(shape)
                made.append(mutant)
    return tuple(made)


def fairness_mutants(spec: Spec) -> tuple[Mutant, ...]:
    """Each fairness assumption left out, and each strong one made weak: a promise that still holds did not need it."""
    made = []
    for prop in spec.properties:
        if not isinstance(prop, (LeadsTo, EventuallyAlways)):
            continue
        for n, fair in enumerate(prop.fairness):
            others = (prop.fairness[:n], prop.fairness[n + 1 :])
            made.append(Mutant(prop.name, Operator.FAIRNESS, f"without {fair.name!r}", prop=prop, fairness=(*others[0], *others[1])))
            if fair.strong:
                weak = attrs.evolve(fair, strong=False)
                made.append(Mutant(prop.name, Operator.FAIRNESS, f"{fair.name!r} weak", prop=prop, fairness=(*others[0], weak, *others[1])))
    return tuple(made)


def controls(machine: AnyMachine) -> tuple[Mutant, ...]:
    """Three mutants whose fate is known: one that changes nothing, one that takes every row of an event, one that cannot be built."""
    first = machine.rows[0]
    same = Mutant(first.name, Operator.CONTROL, "no change", {first.name: (attrs.evolve(first),)})
    deaf = _rebuilt(first, at=None, when=None)
    unbuilt = attrs.evolve(first, on=type("EventOfNoMachine", (), {}))
    return (
        same,
        Mutant(
            first.name, Operator.CONTROL, "answers nothing", {first.name: (attrs.evolve(deaf, when=_never(machine)),), **_rest(machine)}
        ),
        Mutant(first.name, Operator.CONTROL, "about an event that the machine does not have", {first.name: (unbuilt,)}),
    )


def _never(machine: AnyMachine) -> bool:
    phase = getattr(machine.now, machine.phase)
    first, *others = machine.phases
    node = phase == first
    for other in others[:1]:
        node = node & (phase == other)
    return cast(bool, node if others else Formula("not", (node,)))


def _rest(machine: AnyMachine) -> dict[str, tuple[AnyRow, ...]]:
    first = machine.rows[0]
    return {row.name: () for row in machine.rows[1:] if row.event is first.event}


# ── rows ──


def _of_row(machine: AnyMachine, row: AnyRow) -> Iterator[Mutant]:
    def changed(operator: Operator, about: str, *new: AnyRow) -> Mutant:
        return Mutant(row.name, operator, about, {row.name: new})

    yield changed(Operator.DROP_ROW, "drop it")
    yield from _reordered(machine, row)
    for about, new in _answers(row):
        yield changed(Operator.ANSWER, about, new)
    for about, new in _phases(machine, row):
        yield changed(Operator.PHASES, about, new)
    if row.guard is not None:
        yield changed(Operator.DROP_CONJUNCT, "drop its guard", _rebuilt(row, when=None))
        for edit in conditions(row.guard):
            yield changed(edit.operator, edit.about, _rebuilt(row, when=edit.node))
    if row.answer == "taken":
        for about, new in _targets(machine, row):
            yield changed(Operator.RETARGET, about, new)
        for operator, about, new in (*_effects(machine, row), *_updates(machine, row), *_timers(machine, row)):
            yield changed(operator, about, new)


def _reordered(machine: AnyMachine, row: AnyRow) -> Iterator[Mutant]:
    same = [other for other in machine.rows if other.event is row.event]
    at = same.index(row)
    if at + 1 < len(same):
        below = same[at + 1]
        yield Mutant(row.name, Operator.REORDER, f"behind {below.name}", {row.name: (below,), below.name: (row,)})


def _answers(row: AnyRow) -> Iterator[tuple[str, AnyRow]]:
    nothing: dict[str, Any] = {"to": None, "data": None, "emit": (), "stay": False, "ignore": "", "refuse": ""}
    why = row.ignore or row.refuse or "mutated"
    for answer, given in (("taken", {"stay": True}), ("ignored", {"ignore": why}), ("refused", {"refuse": why})):
        if answer != row.answer:
            yield f"{answer} in place of {row.answer}", attrs.evolve(row, **{**nothing, **given})


def _phases(machine: AnyMachine, row: AnyRow) -> Iterator[tuple[str, AnyRow]]:
    if not row.phases:
        return
    yield "at every phase", _rebuilt(row, at=None)
    for phase in row.phases:
        rest = tuple(p for p in row.phases if p is not phase)
        if rest:
            yield f"not at {show(phase)}", _rebuilt(row, at=rest)
    for phase in machine.phases:
        if phase not in row.phases:
            yield f"also at {show(phase)}", _rebuilt(row, at=(*row.phases, phase))


def _targets(machine: AnyMachine, row: AnyRow) -> Iterator[tuple[str, AnyRow]]:
    if row.to is None:
        return
    yield f"stay, not to {show(row.to)}", _rebuilt(row, to=None)
    for phase in machine.phases:
        if phase is not row.to:
            yield f"to {show(phase)} in place of {show(row.to)}", _rebuilt(row, to=phase)


def _rebuilt(row: AnyRow, **changes: Any) -> AnyRow:
    """The row with changes; one that would no longer answer stays where it is."""
    given = {"to": row.to, "data": row.data, "emit": row.emit, **changes}
    empty = given["to"] is None and given["data"] is None and not given["emit"] and not row.ignore and not row.refuse
    return attrs.evolve(row, **{**changes, "stay": empty})


# ── effects ──


def _effects(machine: AnyMachine, row: AnyRow) -> Iterator[tuple[Operator, str, AnyRow]]:
    emit = tuple(row.emit)
    for n, item in enumerate(emit):
        before, after = emit[:n], emit[n + 1 :]
        text = effect_text(item)
        timer = isinstance(_plain(item), TIMER_EFFECTS)
        yield Operator.TIMER if timer else Operator.DROP_EFFECT, f"drop {text}", _rebuilt(row, emit=(*before, *after))
        yield Operator.DOUBLE_EFFECT, f"{text} twice", _rebuilt(row, emit=(*before, item, item, *after))
        if after:
            swapped = (*before, after[0], item, *after[1:])
            yield Operator.SWAP_EFFECTS, f"{effect_text(after[0])} before {text}", _rebuilt(row, emit=swapped)
        for operator, about, new in _changed_effect(item, machine.state):
            yield operator, about, _rebuilt(row, emit=(*before, new, *after))


def _plain(item: object) -> object:
    return item.effect if isinstance(item, OnlyIf) else item


def _changed_effect(item: object, state: type) -> Iterator[tuple[Operator, str, object]]:
    effect = _plain(item)
    if isinstance(item, OnlyIf):
        yield Operator.CONDITION, f"{effect_text(effect)} without only_if", effect
        for edit in conditions(item.condition):
            yield Operator.CONDITION, f"only_if of {effect_text(effect)}: {edit.about}", OnlyIf(cast(Formula, edit.node), effect)
    for name, field in fields_of(type(effect)).items():
        for edit in values(getattr(effect, name), field, Operator.EFFECT_VALUE, state):
            new = attrs.evolve(cast(Any, effect), **{name: edit.node})
            yield edit.operator, f"{type(effect).__name__}: {edit.about}", OnlyIf(item.condition, new) if isinstance(item, OnlyIf) else new


def effect_text(item: object) -> str:
    """``StopTimer(lease) if lease_armed``."""
    if isinstance(item, OnlyIf):
        return f"{effect_text(item.effect)} if {show(item.condition)}"
    return f"{type(item).__name__}({', '.join(show(getattr(item, f.name)) for f in attrs.fields(cast(Any, type(item))))})"


# ── updates ──


def _updates(machine: AnyMachine, row: AnyRow) -> Iterator[tuple[Operator, str, AnyRow]]:
    for name, node in changed_fields(machine, row):
        unchanged = getattr(machine.now, name)
        yield Operator.DROP_UPDATE, f"leave {name} as it is", _with_data(row, {name: unchanged})
        for edit in values(node, fields_of(machine.state)[name], Operator.UPDATE_VALUE, machine.state):
            yield edit.operator, f"update: {edit.about}", _with_data(row, {name: edit.node})


def changed_fields(machine: AnyMachine, row: AnyRow) -> Iterator[tuple[str, object]]:
    """The fields that ``data`` changes, with what they become."""
    if row.data is not None:
        for name in fields_of(machine.state):
            node = getattr(row.data, name)
            if not (isinstance(node, Formula) and node.op == "var" and node.args[0] == Variable(machine.state, name)):
                yield name, node


def _with_data(row: AnyRow, fields: dict[str, object]) -> AnyRow:
    return _rebuilt(row, data=attrs.evolve(cast(Any, row.data), **fields))


def _timers(machine: AnyMachine, row: AnyRow) -> Iterator[tuple[Operator, str, AnyRow]]:
    """A timer forgotten altogether: neither its effects nor what the state says of it."""
    for rule in machine.timers:
        emit = tuple(item for item in row.emit if getattr(_plain(item), "timer", None) is not rule.timer)
        told = {name: getattr(machine.now, name) for name, _ in changed_fields(machine, row) if name in _fields_of_timer(rule)}
        if len(emit) < len(tuple(row.emit)) and told:
            yield Operator.TIMER, f"forget timer {show(rule.timer)}: {', '.join(told)} stay too", _rebuilt(_with_data(row, told), emit=emit)


def _fields_of_timer(rule: TimerRule) -> set[str]:
    read = variables(rule.armed) | (variables(rule.paused) if rule.paused is not None else frozenset())
    return {variable.name for variable in read}


# ── shapes: two rows of one shape are the same mutant ──


def _shape(row: AnyRow) -> str:
    phases = ",".join(p.name for p in row.phases)
    return f"{row.event.__name__} at {phases} when {_exact(row.when)} {outcome(row)} {row.name}"


def outcome(row: AnyRow) -> str:
    """What a row does where it answers; two rows of one outcome give the same answer there, reasons aside."""
    data = "" if row.data is None else _exact(row.data)
    emitted = " ".join(_exact(item) for item in row.emit)
    return f"{row.answer}: to {row.to} data {data} emit {emitted}"


def _exact(node: object) -> str:
    """A formula without names and abbreviations, with the class of each variable."""
    if isinstance(node, OnlyIf):
        return f"if({_exact(node.condition)}, {_exact(node.effect)})"
    if not isinstance(node, Formula):
        if attrs.has(type(node)):
            return f"{type(node).__name__}({', '.join(_exact(getattr(node, f.name)) for f in attrs.fields(cast(Any, type(node))))})"
        return repr(node)
    if node.op == "var":
        variable = cast(Variable, node.args[0])
        return f"{variable.owner.__name__}.{variable.name}"
    if node.op == "named":
        return _exact(node.args[1])
    return f"{node.op}({', '.join(_exact(arg) for arg in node.args)})"


__all__ = ["changed_fields", "controls", "effect_text", "fairness_mutants", "mutants", "outcome"]
