"""Small changes of one formula: each yields the whole tree with one place changed, and says in words what was changed.

A name around a changed formula is taken off, since the name would no longer be true of it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from enum import Enum
from typing import cast

import attrs

from turnproof.checkers.mutants.words import Operator
from turnproof.machines.kernel import NOBODY, Field, Formula, Kind, Variable, fields_of, show
from turnproof.machines.kernel.domain import representative

OPPOSITE = {"eq": "ne", "ne": "eq", "lt": "ge", "ge": "lt", "gt": "le", "le": "gt"}
CLOSED = {"lt": "le", "le": "lt", "gt": "ge", "ge": "gt"}
"""A comparison, and the one that takes its bound in or leaves it out."""


@attrs.frozen
class Edit:
    """One change: by which operator, in words, and what stands there now."""

    operator: Operator
    about: str
    node: object


Edits = Iterator[Edit]


def conditions(node: Formula) -> Edits:
    """Every change of a truth value: a part dropped, negated, compared with something else, moved by one."""
    yield Edit(Operator.NEGATE, f"negate `{show(node)}`", _negated(node))
    yield from _everywhere(node, _change_of_condition)


def _everywhere(node: object, change: Callable[[Formula], Edits]) -> Edits:
    """``change`` applied at ``node`` and at each place below it."""
    if not isinstance(node, Formula) or node.op == "var":
        return
    if node.op == "named":
        yield from _everywhere(node.args[1], change)
        return
    yield from change(node)
    for n, arg in enumerate(node.args):
        for edit in _everywhere(arg, change):
            yield attrs.evolve(edit, node=Formula(node.op, (*node.args[:n], edit.node, *node.args[n + 1 :])))


def _change_of_condition(node: Formula) -> Edits:
    if node.op in ("and", "or"):
        for kept, dropped in (node.args, node.args[::-1]):
            operator = Operator.IDENTITY if _compares_tokens(dropped) else Operator.DROP_CONJUNCT
            yield Edit(operator, f"drop `{show(dropped)}` from `{show(node)}`", kept)
        for n, part in enumerate(node.args):
            if isinstance(part, Formula) and part.op not in ("and", "or"):
                changed = Formula(node.op, (*node.args[:n], _negated(part), *node.args[n + 1 :]))
                yield Edit(Operator.NEGATE, f"negate `{show(part)}` in `{show(node)}`", changed)
    elif node.op in OPPOSITE:
        yield from _change_of_comparison(node)
    elif node.op == "not":
        yield Edit(Operator.NEGATE, f"drop the `not` of `{show(node)}`", node.args[0])


def _negated(node: Formula) -> object:
    body = _bare(node)
    if body.op == "not":
        return body.args[0]
    if body.op in OPPOSITE:
        return Formula(OPPOSITE[body.op], body.args)
    return Formula("not", (node,))


def _bare(node: object) -> Formula:
    while isinstance(node, Formula) and node.op == "named":
        node = node.args[1]
    return cast(Formula, node)


def _change_of_comparison(node: Formula) -> Edits:
    left, right = node.args
    text = show(node)
    if isinstance(right, Enum):
        for other in _neighbours(right):
            yield Edit(
                Operator.CONSTANT, f"compare `{show(left)}` with {show(other)} in place of {show(right)}", Formula(node.op, (left, other))
            )
    elif isinstance(right, int) and not isinstance(right, bool):
        for number in (right - 1, right + 1):
            yield Edit(Operator.BOUND, f"{number} in place of {right} in `{text}`", Formula(node.op, (left, number)))
    elif node.op in CLOSED:
        changed = Formula(CLOSED[node.op], node.args)
        yield Edit(Operator.BOUND, f"`{show(changed)}` in place of `{text}`", changed)
    if isinstance(left, Formula) and left.op == "var":
        yield from (
            Edit(
                Operator.IDENTITY,
                f"compare {_called(other)} in place of {_called(left)} with {show(right)}",
                Formula(node.op, (other, right)),
            )
            for other in _other_tokens(left)
        )


def _called(node: object) -> str:
    variable = cast(Variable, cast(Formula, node).args[0])
    return f"{variable.owner.__name__}.{variable.name}"


def _compares_tokens(node: object) -> bool:
    if not isinstance(node, Formula):
        return False
    body = _bare(node)
    if body.op not in ("eq", "ne"):
        return False
    fields = [field_of(arg) for arg in body.args]
    return any(field is not None and field.kind is Kind.TOKEN for field in fields)


def field_of(node: object) -> Field | None:
    """The field that a plain variable reads; None for anything else."""
    if isinstance(node, Formula) and node.op == "var":
        variable = cast(Variable, node.args[0])
        return fields_of(variable.owner).get(variable.name)
    return None


def _neighbours(member: Enum) -> tuple[Enum, ...]:
    """The members before and after, round the end; one where there are but two."""
    members = list(type(member))
    at = members.index(member)
    around = dict.fromkeys((members[(at + 1) % len(members)], members[at - 1]))
    return tuple(other for other in around if other is not member)


def _other_tokens(node: Formula) -> Iterator[Formula]:
    """Another identity of the same class: what a mistaken generation check would compare."""
    field = field_of(node)
    if field is not None and field.kind is Kind.TOKEN:
        for name, other in fields_of(field.owner).items():
            if other.kind is Kind.TOKEN and name != field.name:
                yield Formula("var", (Variable(field.owner, name),))


# ── values: of updates, and of the fields of effects ──


def values(node: object, field: Field, operator: Operator, state: type) -> Edits:
    """Every change of a value given to ``field``. ``state`` is where another identity comes from."""
    if not isinstance(node, Formula):
        for other in _other_constants(node, field, state):
            yield Edit(operator, f"{field.name}={show(other)} in place of {show(node)}", other)
        return
    own = field_of(node)
    if own is not None:
        yield from _other_sources(node, own, field, operator, state)
        return
    yield from _inside(node, field, operator, state)


def _inside(node: Formula, field: Field, operator: Operator, state: type) -> Edits:
    if node.op == "named":
        yield from _inside(_bare(node), field, operator, state)
    elif node.op == "choose":
        condition, then, otherwise = node.args
        yield Edit(operator, f"{field.name}: always `{show(then)}`", then)
        yield Edit(operator, f"{field.name}: always `{show(otherwise)}`", otherwise)
        for edit in conditions(cast(Formula, condition)):
            yield attrs.evolve(edit, about=f"{field.name}: {edit.about}", node=Formula("choose", (edit.node, then, otherwise)))
        for edit in values(then, field, operator, state):
            yield attrs.evolve(edit, node=Formula("choose", (condition, edit.node, otherwise)))
        for edit in values(otherwise, field, operator, state):
            yield attrs.evolve(edit, node=Formula("choose", (condition, then, edit.node)))
    elif node.op in ("add", "sub"):
        left, right = node.args
        other = "sub" if node.op == "add" else "add"
        yield Edit(
            Operator.BOUND, f"{field.name}: `{show(Formula(other, node.args))}` in place of `{show(node)}`", Formula(other, node.args)
        )
        if isinstance(right, int):
            yield Edit(Operator.BOUND, f"{field.name}: by {right + 1} in place of {right}", Formula(node.op, (left, right + 1)))
    elif node.op == "latest":
        for kept in node.args:
            yield Edit(operator, f"{field.name}: `{show(kept)}` alone", kept)
    elif field.kind is Kind.BOOL:
        for edit in conditions(node):
            yield attrs.evolve(edit, operator=operator, about=f"{field.name}: {edit.about}")


def _other_constants(value: object, field: Field, state: type) -> Iterator[object]:
    if isinstance(value, Enum):
        yield from _neighbours(value)
    elif isinstance(value, bool):
        yield not value
    elif field.kind in (Kind.RANGE, Kind.COUNTER):
        yield from (n for n in (cast(int, value) - 1, cast(int, value) + 1) if field.holds(n))
    elif field.kind is Kind.TOKEN and value == NOBODY:
        yield from (
            Formula("var", (Variable(state, name),)) for name, f in fields_of(state).items() if f.kind is Kind.TOKEN and name != field.name
        )


def _other_sources(node: Formula, own: Field, field: Field, operator: Operator, state: type) -> Edits:
    """A plain copy from elsewhere: another identity, nobody, the empty value, the opposite."""
    if own.kind is Kind.TOKEN:
        yield Edit(operator, f"{field.name}=none in place of {_called(node)}", NOBODY)
        others = [*_other_tokens(node), *(o for o in _tokens_of(state) if own.owner is not state)]
        yield from (Edit(operator, f"{field.name}={_called(other)} in place of {_called(node)}", other) for other in others)
    elif own.kind is Kind.OPAQUE:
        empty = representative(own.base)
        yield Edit(operator, f"{field.name}={empty!r} in place of {_called(node)}", empty)
    elif own.kind is Kind.BOOL:
        yield Edit(operator, f"{field.name}=not {_called(node)}", Formula("not", (node,)))
    elif own.kind is Kind.ENUM:
        first = next(iter(cast("type[Enum]", own.base)))
        yield Edit(operator, f"{field.name}={show(first)} in place of {_called(node)}", first)
    elif own.kind in (Kind.RANGE, Kind.COUNTER):
        yield Edit(Operator.BOUND, f"{field.name}={_called(node)} + 1", Formula("add", (node, 1)))


def _tokens_of(state: type) -> Iterator[Formula]:
    return (Formula("var", (Variable(state, name),)) for name, f in fields_of(state).items() if f.kind is Kind.TOKEN)


__all__ = ["Edit", "Edits", "conditions", "field_of", "values"]
