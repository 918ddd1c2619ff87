"""Opaque values in a proof: each is a free input of the step, and a row is asked how many of its effects carry a wrong one.

That count is a word of the step like any other, so a property of opaque values is a claim about single steps, and its queries stand
in the certificate beside the rest. The state's opaque values are inputs too, not state: the claim is proved whatever they are.
"""

from __future__ import annotations

from collections.abc import Iterator

from turnproof.checkers.carried import steps_wrong
from turnproof.checkers.graph import Graph
from turnproof.checkers.judge import Judge
from turnproof.checkers.smt import z3api
from turnproof.checkers.smt.explored import Found
from turnproof.checkers.smt.terms import NUMBER, TOKEN, Reader, Term
from turnproof.checkers.smt.translate import Miscarried, Symbolic, SymbolicRow, plain
from turnproof.checkers.smt.z3api import Expr
from turnproof.machines.kernel import Formula, Kind, OnlyIf, TableError, Variable, fields_of
from turnproof.specs.language import Carries, Said, Spec


def claim(symbolic: Symbolic, prop: Carries) -> Expr:
    """That a step of which ``prop`` speaks carries nothing wrong. Raises :class:`TableError` for what no solver can read."""
    word = symbolic.miscarried.get(prop.name)
    if word is None:
        name = plain(f"count.miscarried.{len(symbolic.miscarried)}")
        word = Miscarried(name, prop, Term(symbolic.context.symbol(name, z3api.INT), NUMBER))
        for row in symbolic.rows:
            count_of(symbolic, word, row)
    none = z3api.equal(word.term.expr, symbolic.context.integer(0))
    when = [] if prop.when is None else [z3api.negation(symbolic.step_formula(prop.when, "the property"))]
    symbolic.miscarried[prop.name] = word
    return z3api.disjunction([*when, none])


def count_of(symbolic: Symbolic, word: Miscarried, row: SymbolicRow) -> Expr:
    """How many values a step of ``row`` carries otherwise."""
    one, none = symbolic.context.integer(1), symbolic.context.integer(0)
    wrong = list(_wrong(symbolic, word.prop, row)) if row.answer is Said.TAKEN else []
    return z3api.total([z3api.conditional(z3api.conjunction(tests), one, none) for tests in wrong]) if wrong else none


def _wrong(symbolic: Symbolic, prop: Carries, row: SymbolicRow) -> Iterator[list[Expr]]:
    """For each place of the row that carries the value, the conditions under which it is there and wrong."""
    place = f"row {row.name}"
    if prop.carrier is symbolic.machine.state:
        yield [_differs(symbolic, _update(prop, row), prop, place)]
        return
    for item in row.row.emit:
        effect = item.effect if isinstance(item, OnlyIf) else item
        if type(effect) is prop.carrier:
            tests = [symbolic.before.truth(item.condition, place)] if isinstance(item, OnlyIf) else []
            tests += [_equal(symbolic, getattr(effect, name), wanted) for name, wanted in prop.matching.items()]
            yield [*tests, _differs(symbolic, getattr(effect, prop.field), prop, place)]


def _update(prop: Carries, row: SymbolicRow) -> object:
    stays = Formula("var", (Variable(prop.carrier, prop.field),))
    return stays if row.row.data is None else getattr(row.row.data, prop.field)


def _reader(symbolic: Symbolic) -> Reader:
    def variable(wanted: Variable) -> Term:
        field = fields_of(wanted.owner).get(wanted.name) if type(wanted) is Variable else None
        if field is None or field.kind is not Kind.OPAQUE:
            return symbolic.before.variable(wanted)
        known = symbolic.opaque.get(wanted)
        if known is None:
            name, sort = plain(f"event.{wanted.owner.__name__}.{wanted.name}"), NUMBER if field.base is int else TOKEN
            known = symbolic.opaque[wanted] = (name, Term(symbolic.context.symbol(name, sort.smt), sort))
        return known[1]

    return Reader(symbolic.context, symbolic.values, variable)


def _equal(symbolic: Symbolic, given: object, wanted: object) -> Expr:
    left, right = symbolic.before.term(given), symbolic.before.term(wanted)
    # One field may hold members of several Enums, as that of a timer does.
    return z3api.equal(left.expr, right.expr) if left.sort == right.sort else symbolic.context.boolean(False)


def _differs(symbolic: Symbolic, given: object, prop: Carries, place: str) -> Expr:
    reader = _reader(symbolic)
    left, right = reader.term(given), reader.term(prop.expected)
    if left.sort != right.sort:
        raise TableError(f"{place} gives {prop.carrier.__name__}.{prop.field} {left.sort}, expected {right.sort}")
    return z3api.negation(z3api.equal(left.expr, right.expr))


def violated(graph: Graph, spec: Spec) -> dict[str, Found]:
    """Name -> the first explored step that carries a wrong value, by the explicit engine's reading."""
    found: dict[str, Found] = {}
    judge = Judge(graph)
    for prop in (p for p in spec.properties if isinstance(p, Carries)):
        bad = steps_wrong(graph, judge.carrying(prop), judge.steps_that_carry(prop))
        if bad.any():
            event, node = (int(places[0]) for places in bad.nonzero())
            words = f"{graph.events[event]}: row {graph.rows[graph.row[event, node]].name}"
            found[prop.name] = Found(node, event, int(bad.sum()), True, words)
    return found
