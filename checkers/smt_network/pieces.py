"""From the terms of a system to what a certificate holds: its table as text, the statements to show, and the questions mined."""

from __future__ import annotations

import hashlib
import itertools
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from turnproof.checkers.smt import z3api
from turnproof.checkers.smt.mine import SMALL, Feature
from turnproof.checkers.smt.pieces import EventField, RowPiece, StateVariable, Table, WordOfStep
from turnproof.checkers.smt.prove import Unreadable, Wanted, table_text
from turnproof.checkers.smt_network.cascade import Wrong
from turnproof.checkers.smt_network.columns import Column
from turnproof.checkers.smt_network.relation import WRONGS, Network, wrong_sentence, wrong_word
from turnproof.checkers.smt_network.variables import Place
from turnproof.machines.kernel import Kind, TableError, show_constant
from turnproof.specs.language import Always, Said, Step
from turnproof.specs.system import System, SystemSpec

FAULT = "fault"
"""Origin of a claim that no step is a fault of some kind."""


def wrongs(network: Network) -> tuple[Wrong, ...]:
    """The kinds of fault that some row of the system is, as far as the terms tell."""
    found = {row.wrong for action in network.actions for row in action.rows if row.faulty}
    return tuple(w for w in WRONGS if w in found)


def statements(network: Network, spec: SystemSpec) -> tuple[list[Wanted], list[Unreadable]]:
    """Types, that no step is a fault, properties and lemmas as statements; and the properties that cannot be."""
    made = [_wanted(f"{p.name} keeps to its domain", "type", p.domain) for p in network.variables.places if p.domain is not None]
    made += [_wanted(name, "type", term) for name, term in _empty_slots(network)]
    for wrong in wrongs(network):
        word = network.context.symbol(wrong_word(wrong), z3api.INT)
        made.append(_wanted(wrong_sentence(wrong), "step", z3api.equal(word, network.context.integer(0))))
    unreadable: list[Unreadable] = []
    for prop in spec.properties:
        try:
            if isinstance(prop, Always):
                made.append(_wanted(prop.name, "property", network.state_formula(prop.holds, "the property")))
            elif isinstance(prop, Step):
                made.append(_wanted(prop.name, "step", network.step_formula(prop.holds, "the property")))
        except TableError as error:
            unreadable.append(Unreadable(prop.name, str(error)))
    for name, lemma in spec.lemmas:
        if any(w.name == name for w in made):
            raise TableError(f"the lemma {name!r} is called like a property or another lemma")
        made.append(_wanted(name, "lemma", network.state_formula(lemma, f"the lemma {name!r}")))
    return made, unreadable


def _empty_slots(network: Network) -> Iterator[tuple[str, z3api.Expr]]:
    """That a slot which holds nothing is all zeros: so it is written, and every other invariant of a channel rests on it."""
    for slots in network.variables.channels:
        for number in range(slots.channel.capacity):
            zeros = [z3api.equal(p.now.expr, network.variables.literal(p, 0)) for p in slots.slot(number)]
            if zeros:
                held = z3api.less(network.context.integer(number), slots.length.now.expr)
                yield f"{slots.channel.name}: slot {number} holds nothing but an event", z3api.disjunction((held, z3api.conjunction(zeros)))


def _wanted(name: str, origin: str, term: z3api.Expr) -> Wanted:
    return Wanted(name, origin, z3api.symbols_in(term), z3api.text(term))


def table(network: Network) -> Table:
    """The system as text."""
    places = network.variables.places
    words = [f"on.{a.name}" for a in network.actions] + [f"answer.{said.value}" for said in Said]
    counts = [c.name for c in network.counts.values()] + [wrong_word(w) for w in wrongs(network)]
    return Table(
        machine=network.system.name,
        digest=hashlib.sha256(system_text(network.system).encode()).hexdigest(),
        events=tuple(a.name for a in network.actions),
        state=tuple(
            StateVariable(
                p.name,
                p.now.sort.smt,
                z3api.text(network.variables.literal(p, p.start)),
                tuple(show_constant(m) for m in p.now.sort.members or ()),
            )
            for p in places
        ),
        fields=tuple(
            EventField(i.name, i.term.sort.smt, "true" if i.domain is None else z3api.text(i.domain))
            for a in network.actions
            for i in a.inputs
        ),
        words=tuple(WordOfStep(name, z3api.BOOL) for name in words) + tuple(WordOfStep(name, z3api.INT) for name in counts),
        histories={},
        rows=tuple(_rows(network)),
        claimed=tuple(wrong_sentence(w) for w in wrongs(network)),
        bounds=tuple(f"channel {c.name} holds at most {c.capacity}" for c in network.system.channels)
        + tuple(f"budget {b.name}: at most {b.limit}" for b in network.system.budgets),
    )


def _rows(network: Network) -> Iterator[RowPiece]:
    names: dict[str, int] = {}
    for action in network.actions:
        for row in action.rows:
            names[row.name] = names.get(row.name, 0) + 1
            yield RowPiece(
                name=row.name if names[row.name] == 1 else f"{row.name} [{names[row.name]}]",
                event=action.name,
                answer="refused" if row.stutter else "taken",
                guard=z3api.text(row.guard),
                next={name: z3api.text(term) for name, term in row.next.items()},
                counts={name: z3api.text(term) for name, term in row.counts.items()},
            )


def system_text(system: System) -> str:
    """The system as a person reads it, for its digest."""
    lines = [f"system {system.name}"]
    for part in system.everyone:
        lines += [f"part {part.name} starts as {part.start}", table_text(part.machine)]
    lines += [f"{w} {w.where} {getattr(w, 'event', '')}" for w in system.wires]
    lines += [f"{c} {c.where} {c.event} {c.said}" for c in system.copies]
    lines += [f"{c.name} to {c.to.name} holds {c.capacity}, reordered: {c.reordered}, when {c.when}" for c in system.channels]
    lines += [f"{s} {s.event} when {s.when} within {s.budget}" for s in system.spontaneous]
    return "\n".join(lines)


# ── what is mined ──


def features(network: Network) -> tuple[Feature, ...]:
    """Every question that candidates are made of."""
    return tuple(_features(network.variables.places, network.constants))


def having(made: Sequence[Feature], columns: Mapping[str, Column]) -> list[list[bytes]]:
    """Question -> class -> the states that give this answer, one bit each, the first state lowest."""
    found: list[list[bytes]] = []
    for feature in made:
        classes = feature.answers(columns)
        found.append([np.packbits(classes == c, bitorder="little").tobytes() for c in range(len(feature.classes))])
    return found


def _features(places: Sequence[Place], constants: Sequence[str]) -> Iterator[Feature]:
    for place in places:
        yield from _of_one(place, constants)
    for kind, op in ((Kind.TOKEN, "equal"), (Kind.COUNTER, "order")):
        same = [p for p in places if p.kind is kind]
        for left, right in itertools.combinations(same, 2):
            yield _of_two(op, left, right)


def _of_two(kind: str, left: Place, right: Place) -> Feature:
    one, other = z3api.text(left.now.expr), z3api.text(right.now.expr)
    if kind == "equal":
        same = f"(= {one} {other})"
        return Feature(
            kind, (left.name, right.name), ((f"{left.name} = {right.name}", same), (f"{left.name} /= {right.name}", f"(not {same})"))
        )
    return Feature(
        kind, (left.name, right.name), tuple((f"{left.name} {op} {right.name}", f"({op} {one} {other})") for op in ("<", "=", ">"))
    )


def _of_one(place: Place, constants: Sequence[str]) -> Iterator[Feature]:
    name, text = place.name, z3api.text(place.now.expr)
    if place.kind is Kind.BOOL:
        yield Feature("value", (name,), ((f"not {name}", f"(not {text})"), (name, text)))
    elif place.kind is Kind.ENUM:
        members: list[Any] = list(place.now.sort.members or ())
        width = z3api.width_of(place.now.expr)
        tests = [f"(= {text} #b{n:0{width}b})" for n in range(len(members))]
        yield Feature("value", (name,), tuple((f"{name} = {show_constant(m)}", t) for m, t in zip(members, tests, strict=True)))
    elif place.kind is Kind.RANGE and place.hi - place.lo < SMALL:
        numbers = range(place.lo, place.hi + 1)
        yield Feature("value", (name,), tuple((f"{name} = {n}", f"(= {text} {_number(n)})") for n in numbers), place.lo)
    elif place.kind is Kind.TOKEN and len(constants) > 1:
        named = [(f"{name} = {show_constant(c)}", f"(= {text} {n})") for n, c in enumerate(constants)]
        other = f"(not (or {' '.join(test for _, test in named)}))"
        yield Feature("named", (name,), (*named, (f"{name} = another", other)))
    elif place.kind is Kind.TOKEN:
        yield Feature("nobody", (name,), ((f"{name} = none", f"(= {text} 0)"), (f"{name} /= none", f"(not (= {text} 0))")))
    elif place.kind is Kind.COUNTER:
        yield Feature(
            "amount", (name,), ((f"{name} = 0", f"(= {text} 0)"), (f"{name} = 1", f"(= {text} 1)"), (f"{name} > 1", f"(> {text} 1)"))
        )


def _number(n: int) -> str:
    return str(n) if n >= 0 else f"(- {-n})"
