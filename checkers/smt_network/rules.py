"""What the steps of one system share: its wires and rows by part, and every formula of theirs read once for the same state."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import attrs

from turnproof.checkers.smt.terms import Term
from turnproof.checkers.smt.terms import domain as domain_of
from turnproof.checkers.smt.z3api import BOOL, Expr, identity, sort_of
from turnproof.checkers.smt_network.fold import Folder, FoldingReader
from turnproof.checkers.smt_network.variables import Variables
from turnproof.machines.kernel import Kind, Row, TableError, Variable, fields_of
from turnproof.specs.system import AnyPart

AnyRow = Row[Any, Any]


@attrs.frozen(eq=False)
class Count:
    """A word that counts something in a step: its name in a proof, the word, and its pattern's formulas."""

    name: str
    word: Variable
    term: Term


class Rules:
    """What steps of one system share: its variables, its wires, and every formula of its rows read at most once for the same state."""

    def __init__(self, variables: Variables, counts: Sequence[Count]) -> None:
        self.variables, self.counts = variables, tuple(counts)
        self.system, self.context = variables.system, variables.context
        self.fold = Folder(self.context)
        names = [p.name for p in self.system.everyone]
        self.wires = [[w for w in self.system.wires if w.source.name == name] for name in names]
        self.copies = [[c for c in self.system.copies if c.of.name == name] for name in names]
        self.absorbed = [{cls for a in self.system.absorbed if a.part.name == name for cls in a.classes} for name in names]
        self.rows = [
            {event: tuple(r for r in part.machine.rows if r.event is event) for event in part.machine.events}
            for part in self.system.everyone
        ]
        self._read: dict[tuple[object, ...], tuple[Term, object, tuple[Expr, ...]]] = {}

    def term(self, node: object, known: Mapping[tuple[type, str, str], Term], place: str) -> Term:
        """A formula or constant over ``known``: owner, name and scope of a variable -> its term."""

        def variable(v: Variable) -> Term:
            found = known.get((v.owner, v.name, v.scope))
            if found is None:
                raise TableError(f"{place} reads {v.owner.__name__}.{v.name}, which is Opaque or not there: no proof can follow it")
            used.append(found.expr)
            return found

        used: list[Expr] = []
        key = (id(node), *(identity(t.expr) for t in known.values()))
        if key not in self._read:
            # The node and the terms are kept: their identities must stay theirs.
            made = FoldingReader(self.fold, self.variables.values, variable).term(node)
            self._read[key] = (made, node, tuple(t.expr for t in known.values()))
        return self._read[key][0]

    def truth(self, node: object, known: Mapping[tuple[type, str, str], Term], place: str) -> Expr:
        """A formula that must be a bool."""
        term = self.term(node, known, place)
        if sort_of(term.expr) != BOOL:
            raise TableError(f"{place} is {term.sort}, not a bool")
        return term.expr

    def outside(self, cls: type, name: str, value: Term) -> Expr:
        """That a value is outside the domain of a field."""
        field = fields_of(cls)[name]
        if field.kind is Kind.RANGE:
            lo, hi = self.context.integer(field.lo), self.context.integer(field.hi)
            return self.fold.negation(self.fold.conjunction((self.fold.at_most(lo, value.expr), self.fold.at_most(value.expr, hi))))
        if field.kind is Kind.COUNTER:
            return self.fold.less(value.expr, self.context.integer(0))
        inside = domain_of(value.expr, field, self.context) if field.kind is not Kind.ENUM else None
        return self.fold.false if inside is None else self.fold.negation(inside)


def terms_of(part: AnyPart, state: Mapping[str, Term], scope: str = "") -> dict[tuple[type, str, str], Term]:
    """The state of a part as :meth:`Rules.term` wants it."""
    return {(part.machine.state, name, scope): term for name, term in state.items()}


def fields_as(cls: type, fields: Mapping[str, Term]) -> dict[tuple[type, str, str], Term]:
    """The fields of an event or effect as :meth:`Rules.term` wants them."""
    return {(cls, name, ""): term for name, term in fields.items()}
