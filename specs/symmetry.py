"""Interchangeable pieces of a system: what may be exchanged without anybody noticing, and the check that this is so.

Two states that differ only by such an exchange have the same future up to the exchange, so an engine may look at one of them for both
(C. N. Ip and D. L. Dill, "Better verification through symmetry", 1996). That is sound only if the exchange is an automorphism of the
system: the same machines, the same wiring, the same guards. :func:`exchange_mistakes` checks it piece by piece, on the system as it
is written, and gives up where it cannot tell: a symmetry that is not recognised is an error, never a wrong answer.

Properties need not be symmetric: an engine asks the exchanged property as well.
"""

from __future__ import annotations

from collections import Counter as Tally
from collections.abc import Hashable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, cast

import attrs

from turnproof.machines.kernel import NOBODY, TIMER_EFFECTS, Formula, Kind, OnlyIf, TableError, Variable, fields_of
from turnproof.machines.kernel.domain import token_names
from turnproof.specs.system_words import NEXT

if TYPE_CHECKING:
    from turnproof.specs.system import AnyPart, Budget, Channel, Copy, Empties, Spontaneous, System, SystemSpec, Wire
    from turnproof.specs.system_parts import May

NAMES = (Kind.TOKEN, Kind.OPAQUE)
"""Kinds of fields in which a token may stand: an opaque one may carry what was a token elsewhere."""

Piece = Any
"""A part, a monitor, a channel, a budget, or a token by its name."""


class Interchangeable:
    """Any two of these may be exchanged. Each is a piece, or a tuple of pieces that belong together, in the same order everywhere.

    ``Interchangeable((manager_1, vote_1), (manager_2, vote_2), (manager_3, vote_3))``, or ``Interchangeable("a", "b")`` for tokens
    that stand for nobody in particular, or both together where a token names a part.
    """

    def __init__(self, *columns: Piece | tuple[Piece, ...]) -> None:
        self.columns: tuple[tuple[Piece, ...], ...] = tuple(c if isinstance(c, tuple) else (c,) for c in columns)

    @property
    def names(self) -> tuple[str, ...]:
        """The first piece of each, by name."""
        return tuple(_name(column[0]) for column in self.columns)

    @property
    def tokens(self) -> frozenset[str]:
        """The tokens among the pieces."""
        return frozenset(piece for column in self.columns for piece in column if isinstance(piece, str))

    def exchange(self, one: int, other: int) -> Exchange:
        """The exchange of two of them."""
        names: dict[str, str] = {}
        tokens: dict[str, str] = {}
        for left, right in zip(self.columns[one], self.columns[other], strict=True):
            known = tokens if isinstance(left, str) else names
            known |= {_name(left): _name(right), _name(right): _name(left)}
        return Exchange(names, tokens)

    def __str__(self) -> str:
        return ", ".join(self.names)


def _name(piece: Piece) -> str:
    return piece if isinstance(piece, str) else str(piece.name)


@attrs.frozen(eq=False)
class Exchange:
    """A permutation of names (of parts, channels and budgets) and of tokens. What is not named stays."""

    names: Mapping[str, str] = attrs.field(factory=dict)
    tokens: Mapping[str, str] = attrs.field(factory=dict)

    def name(self, name: str) -> str:
        """The name of what takes its place."""
        return self.names.get(name, name)

    def scope(self, scope: str) -> str:
        """The same for the scope of a variable, which may end in ``.next``."""
        bare = scope.removesuffix(NEXT)
        return self.name(bare) + scope[len(bare) :]

    def then(self, other: Exchange) -> Exchange:
        """This one first, then the other."""
        return Exchange(
            {n: other.name(self.name(n)) for n in {*self.names, *other.names}},
            {t: other.tokens.get(self.tokens.get(t, t), self.tokens.get(t, t)) for t in {*self.tokens, *other.tokens}},
        )

    @property
    def inverse(self) -> Exchange:
        """What undoes it."""
        return Exchange({v: k for k, v in self.names.items()}, {v: k for k, v in self.tokens.items()})

    def value(self, thing: object) -> Any:
        """An instance (a state, an event) with its tokens exchanged."""
        if not self.tokens:
            return thing
        changed = {
            field.name: self.tokens[getattr(thing, field.name)]
            for field in fields_of(type(thing)).values()
            if field.kind in NAMES and getattr(thing, field.name) in self.tokens
        }
        return attrs.evolve(cast(Any, thing), **changed) if changed else thing

    def formula(self, node: object) -> Any:
        """A formula over parts with names and tokens exchanged."""
        if isinstance(node, str):
            return self.tokens.get(node, node)
        if not isinstance(node, Formula):
            return node
        if node.op == "var":
            return Formula("var", (self._variable(cast(Variable, node.args[0])),))
        if node.op == "named":
            return Formula("named", (node.args[0], self.formula(node.args[1])))
        return Formula(node.op, tuple(self.formula(arg) for arg in node.args))

    def _variable(self, variable: Variable) -> Variable:
        changed: dict[str, object] = {"scope": self.scope(variable.scope)}
        fields: tuple[tuple[str, object], ...] = getattr(variable, "fields", ())
        if fields:
            changed["fields"] = tuple((name, self.formula(node)) for name, node in fields)
        return attrs.evolve(variable, **cast(Any, changed))


UNCHANGED = Exchange()


# ── formulas, whatever the order of their operands ──


def normal(node: object, by: Exchange = UNCHANGED) -> Hashable:
    """A value that two formulas share if one is the other with operands of ``and``, ``or``, ``==``, ``!=`` in another order."""
    if isinstance(node, str):
        return (str, by.tokens.get(node, node))
    if not isinstance(node, Formula):
        return (type(node), node)
    if node.op == "named":
        return normal(node.args[1], by)
    if node.op == "var":
        return _word(cast(Variable, node.args[0]), by)
    if node.op in ("and", "or"):
        return (node.op, frozenset(normal(arg, by) for arg in _flat(node, node.op)))
    inner = tuple(normal(arg, by) for arg in node.args)
    return (node.op, frozenset(Tally(inner).items())) if node.op in ("eq", "ne", "add", "latest") else (node.op, *inner)


def _flat(node: object, op: str) -> Iterator[object]:
    if isinstance(node, Formula) and node.op == "named":
        yield from _flat(node.args[1], op)
    elif isinstance(node, Formula) and node.op == op:
        for arg in node.args:
            yield from _flat(arg, op)
    else:
        yield node


def _word(variable: Variable, by: Exchange) -> Hashable:
    known = tuple(getattr(variable, name, None) for name in ("said", "timer", "ledger", "what"))
    fields: tuple[tuple[str, object], ...] = getattr(variable, "fields", ())
    pattern = tuple((name, normal(node, by)) for name, node in fields)
    return (type(variable), variable.owner, variable.name, by.scope(variable.scope), known, pattern)


def _template(template: object, by: Exchange) -> Hashable:
    if template is None or isinstance(template, type):
        return template
    fields = fields_of(type(template))
    inside = ((n, getattr(template, n), f.kind) for n, f in fields.items())
    return (type(template), *((n, normal(v, by if k in NAMES or isinstance(v, Formula) else UNCHANGED)) for n, v, k in inside))


# ── whether an exchange is an automorphism ──


def exchange_mistakes(system: System, by: Exchange, tokens: int) -> Iterator[str]:
    """Why the exchange is not seen to change nothing; nothing if it is."""
    yield from _piece_mistakes(system, by)
    yield from _token_mistakes(system, by, tokens)
    mistakes = [*_wire_mistakes(system, by), *_spontaneous_mistakes(system, by)]
    if by.names:
        for kind, given in (("Absorbs", system.absorbed), ("Unsent", system.unsent)):
            said = {(g.part.name, cls) for g in given for cls in g.classes}
            for part, cls in sorted(said - {(by.name(p), cls) for p, cls in said}, key=str):
                mistakes.append(f"{kind}({part}, {cls.__name__}) has no counterpart")
    yield from mistakes


def _piece_mistakes(system: System, by: Exchange) -> Iterator[str]:
    for part in system.everyone:
        other = system.part(by.name(part.name))
        if other.machine is not part.machine:
            yield f"{part.name} is a {part.machine.name}, and {other.name} a {other.machine.name}"
        elif by.value(part.start) != other.start:
            yield f"{part.name} and {other.name} start differently"
        elif (part in system.monitors) is not (other in system.monitors):
            yield f"one of {part.name} and {other.name} is a monitor"
    channels = {c.name: c for c in system.channels}
    for channel in system.channels:
        there = channels[by.name(channel.name)]
        if _channel(channel, by) != _channel(there, UNCHANGED):
            yield f"the channels {channel.name} and {there.name} differ in what they deliver, lose or hold"
    limits = {b.name: b.limit for b in system.budgets}
    for name, limit in limits.items():
        if limits[by.name(name)] != limit:
            yield f"the budgets {name} and {by.name(name)} differ"


def _channel(channel: Channel, by: Exchange) -> Hashable:
    may = tuple(_may(m, by) for m in (channel.lossy, channel.droppable))
    return (by.name(channel.to.name), channel.capacity, channel.reordered, normal(channel.when, by), *may)


def _may(may: May | None, by: Exchange) -> Hashable:
    return None if may is None else (normal(may.when, by), may.switch, _budget(may.budget, by))


def _budget(budget: Budget | None, by: Exchange) -> str | None:
    return None if budget is None else by.name(budget.name)


def _token_mistakes(system: System, by: Exchange, tokens: int) -> Iterator[str]:
    explored = frozenset(token_names(tokens))
    for token, other in by.tokens.items():
        if (token in explored) is not (other in explored):
            yield f"{token} is {'' if token in explored else 'not '}among the {tokens} tokens explored, and {other} is not alike"
    if by.tokens:
        for machine in dict.fromkeys(p.machine for p in system.everyone):
            for row in machine.rows:
                named = sorted(set(by.tokens) & set(_strings((row.when, row.data, *row.emit))))
                if named:
                    yield f"row {row.name} of {machine.name} names the token {named[0]}"


def _strings(thing: object) -> Iterator[str]:
    if isinstance(thing, str):
        yield thing
    elif isinstance(thing, tuple):
        for one in thing:
            yield from _strings(one)
    elif isinstance(thing, OnlyIf):
        yield from _strings((thing.condition, thing.effect))
    elif isinstance(thing, Formula):
        yield from _strings(thing.args if thing.op not in ("named", "var") else thing.args[1:])
    elif attrs.has(type(thing)):
        for name in fields_of(type(thing)):
            yield from _strings(getattr(thing, name))


# ── wires and copies: the same, and in the same order where the order shows ──


def _wire_mistakes(system: System, by: Exchange) -> Iterator[str]:
    from turnproof.specs.system import Wire

    wires: dict[tuple[str, type], list[Wire | Empties]] = {}
    for wire in system.wires:
        wires.setdefault((wire.source.name, wire.effect_class), []).append(wire)
    for (source, effect), mine in wires.items():
        there = wires.get((by.name(source), effect), [])
        quiet = all(not isinstance(w, Wire) or w.to in system.channels or _quiet(system, w.target, w.event_class) for w in mine)
        ours, theirs = [_wire(w, by) for w in mine], [_wire(w, UNCHANGED) for w in there]
        yield from _order(f"{source}.{effect.__name__}", [str(w) for w in mine], ours, theirs, quiet)
    copies: dict[tuple[str, type], list[Copy]] = {}
    for copy in system.copies:
        copies.setdefault((copy.of.name, copy.what_class), []).append(copy)
    for (source, what), same in copies.items():
        ours, theirs = [_copy(c, by) for c in same], [_copy(c, UNCHANGED) for c in copies.get((by.name(source), what), [])]
        # Monitors never answer, so it does not show which of several hears of something first.
        yield from _order(f"{source}.{what.__name__}", [str(c) for c in same], ours, theirs, True)


Sent = tuple[str, Hashable]
"""To whom, and everything else."""


def _wire(wire: Wire | Empties, by: Exchange) -> Sent:
    from turnproof.specs.system import Wire

    if isinstance(wire, Wire):
        return by.name(wire.to.name), (Wire, _template(wire.event, by), wire.event_class, normal(wire.where, by))
    return by.name(wire.channel.name), (type(wire), normal(wire.where, by))


def _copy(copy: Copy, by: Exchange) -> Sent:
    return by.name(copy.to.name), (_template(copy.event, by), copy.event_class, normal(copy.where, by), copy.said)


def told(thing: Wire | Empties | Copy, by: Exchange) -> Hashable:
    """A value that tells wires and copies apart, exchanged."""
    from turnproof.specs.system import Copy

    if isinstance(thing, Copy):
        return by.name(thing.of.name), thing.what_class, _copy(thing, by)
    return by.name(thing.source.name), thing.effect_class, _wire(thing, by)


def _order(what: str, shown: list[str], ours: list[Sent], theirs: list[Sent], quiet: bool) -> Iterator[str]:
    if ours == theirs:
        return
    missing = Tally(ours) - Tally(theirs)
    if missing or len(ours) != len(theirs):
        yield f"{next((s for s, w in zip(shown, ours, strict=True) if w in missing), what)} has no counterpart"
    elif not quiet or any([w for w in ours if w[0] == to] != [w for w in theirs if w[0] == to] for to, _ in ours):
        yield f"{what} would be received in another order, and who receives it answers, so the order shows"


def _quiet(system: System, part: AnyPart, event: type) -> bool:
    """Whether handling the event touches nothing but the part itself, whatever it is, and cannot fail: then others may come first."""
    machine = system.part(part.name).machine
    rows = [row for row in machine.rows if row.event is event]
    emitted = (i.effect if isinstance(i, OnlyIf) else i for row in rows for i in row.emit)
    absorbed = {cls for a in system.absorbed if a.part.name == part.name for cls in a.classes}
    wired = {w.effect_class for w in system.wires if w.source.name == part.name}
    copied = {c.what_class for c in system.copies if c.of.name == part.name}
    return (
        event not in copied
        and all(isinstance(e, TIMER_EFFECTS) or (type(e) in absorbed and type(e) not in wired | copied) for e in emitted)
        and any(row.when is None and not row.phases for row in rows)
        and not any(f.kind is Kind.COUNTER for f in fields_of(machine.state).values())
    )


def _spontaneous_mistakes(system: System, by: Exchange) -> Iterator[str]:
    there = Tally(_spontaneous(s, UNCHANGED) for s in system.spontaneous)
    for spontaneous in system.spontaneous:
        if not there[_spontaneous(spontaneous, by)]:
            yield f"spontaneous {spontaneous} has no counterpart"


def _spontaneous(spontaneous: Spontaneous, by: Exchange) -> Hashable:
    given = _template(spontaneous.event, by)
    return (
        by.name(spontaneous.to.name), spontaneous.event_class, given, normal(spontaneous.when, by), spontaneous.switch,
        _budget(spontaneous.budget, by),
    )  # fmt: skip


# ── the check of a specification ──


def check_interchangeable(spec: SystemSpec) -> None:
    """Raise :class:`TableError` with every reason why what the specification calls interchangeable is not."""
    mistakes = [m for one in spec.interchangeable for m in _shape_mistakes(spec, one)]
    used = Tally(p if isinstance(p, str) else p.name for one in spec.interchangeable for column in one.columns for p in column)
    mistakes += [f"{name} stands in two places of interchangeable=" for name, count in used.items() if count > 1]
    if not mistakes:
        mistakes = [m for one in spec.interchangeable for m in why_not(spec.system, one, spec.tokens)]
    if mistakes:
        raise TableError(f"specification of {spec.system.name}:\n" + "\n".join(f"  {m}" for m in dict.fromkeys(mistakes)))


def why_not(system: System, one: Interchangeable, tokens: int) -> Iterator[str]:
    """Why these are not interchangeable in the system. Neighbours are tried: if they can be exchanged, any two can."""
    for n in range(len(one.columns) - 1):
        for mistake in exchange_mistakes(system, one.exchange(n, n + 1), tokens):
            yield f"{one.names[n]} and {one.names[n + 1]} are not interchangeable: {mistake}"


def _shape_mistakes(spec: SystemSpec, one: Interchangeable) -> Iterator[str]:
    system = spec.system
    if len(one.columns) < 2:
        yield f"Interchangeable({one}) names {len(one.columns)}: at least two can be exchanged"
    if len({tuple(_kind(p) for p in column) for column in one.columns}) > 1:
        yield f"Interchangeable({one}): each must be made of the same kinds of pieces, in the same order"
    known = {
        "part": {p.name for p in system.everyone},
        "channel": {c.name for c in system.channels},
        "budget": {b.name for b in system.budgets},
    }
    for piece in (p for column in one.columns for p in column):
        kind = _kind(piece)
        if kind == "token":
            if piece == NOBODY:
                yield f"Interchangeable({one}): nobody cannot be exchanged"
        elif _name(piece) not in known.get(kind, ()):
            yield f"Interchangeable({one}): {_name(piece)} is no {kind} of {system.name}"


def _kind(piece: Piece) -> str:
    return "token" if isinstance(piece, str) else type(piece).__name__.lower()


__all__ = ["UNCHANGED", "Exchange", "Interchangeable", "check_interchangeable", "exchange_mistakes", "normal", "told", "why_not"]
