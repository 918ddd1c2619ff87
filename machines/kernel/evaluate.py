"""The Python reading of a table, by plain interpretation: slow, short, and the reference that every faster reading must equal."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from typing import Any, TypeVar, cast

import attrs

from turnproof.machines.kernel.domain import fields_of
from turnproof.machines.kernel.formula import Formula, OnlyIf, Operators, Variable
from turnproof.machines.kernel.row import HOLE, Answer, Ignored, Refused, Row, Taken

S = TypeVar("S")
F = TypeVar("F")

Environment = Mapping[Variable, object]


def _both(left: bool, right: bool) -> bool:
    return left and right


def _either(left: bool, right: bool) -> bool:
    return left or right


def _implies(left: bool, right: bool) -> bool:
    return not left or right


def _choose(condition: bool, then: object, otherwise: object) -> object:
    return then if condition else otherwise


PYTHON: Operators[Any] = {
    "eq": operator.eq,
    "ne": operator.ne,
    "lt": operator.lt,
    "le": operator.le,
    "gt": operator.gt,
    "ge": operator.ge,
    "and": _both,
    "or": _either,
    "not": operator.not_,
    "implies": _implies,
    "add": operator.add,
    "sub": operator.sub,
    "choose": _choose,
    "latest": max,
}


_VARIABLES: dict[tuple[type, str], tuple[tuple[Variable, str], ...]] = {}


def _variables(cls: type, scope: str) -> tuple[tuple[Variable, str], ...]:
    known = _VARIABLES.get((cls, scope))
    if known is None:
        known = _VARIABLES[cls, scope] = tuple((Variable(cls, name, scope), name) for name in fields_of(cls))
    return known


def environment(*instances: object, scope: str = "") -> dict[Variable, object]:
    """The variables of ``symbol(type(instance))`` with the values ``instance`` has."""
    return {variable: getattr(i, name) for i in instances for variable, name in _variables(type(i), scope)}


class _Remembering(dict[Variable, object]):
    """The environment of one step, with the values of named formulas: the guards of a table share them."""

    def __init__(self, *instances: object) -> None:
        super().__init__(environment(*instances))
        self.named: dict[int, Any] = {}


def value(node: object, env: Environment) -> Any:
    """The value of a formula (or constant) in ``env``."""
    return _fold(node, env, env.named if isinstance(env, _Remembering) else {})


def _fold(node: object, env: Environment, named: dict[int, Any]) -> Any:
    if not isinstance(node, Formula):
        return node
    op, args = node.op, node.args
    if op == "var":
        return env[cast(Variable, args[0])]
    if op == "named":
        place = id(node)
        if place not in named:
            named[place] = _fold(args[1], env, named)
        return named[place]
    # Guards of a table are conjunctions of which most are false at once.
    if op == "and":
        return _fold(args[0], env, named) and _fold(args[1], env, named)
    if op == "or":
        return _fold(args[0], env, named) or _fold(args[1], env, named)
    if op == "choose":
        return _fold(args[1 if _fold(args[0], env, named) else 2], env, named)
    return PYTHON[op](*[_fold(arg, env, named) for arg in args])


def fill(template: object, env: Environment) -> Any:
    """``template`` with every formula replaced by its value."""
    cls = cast(Any, type(template))
    return cls(**{f.alias: value(getattr(template, f.name), env) for f in attrs.fields(cls)})


def effects(row: Row[S, F], env: Environment) -> tuple[F, ...]:
    """The effects of a taken row, in order, without those whose condition is false."""
    made: list[F] = []
    for item in row.emit:
        if isinstance(item, OnlyIf):
            if value(item.condition, env):
                made.append(fill(item.effect, env))
        else:
            made.append(fill(item, env))
    return tuple(made)


def matches(row: Row[Any, Any], state: object, event: object, phase: str, env: Environment) -> bool:
    """Whether ``row`` applies to ``event`` in ``state``."""
    if row.event is not type(event):
        return False
    if row.phases and getattr(state, phase) not in row.phases:
        return False
    return row.when is None or bool(value(row.when, env))


def answer(row: Row[S, F], state: S, phase: str, env: Environment) -> Answer[S, F]:
    """What ``row`` answers in ``state``; ``env`` has the state's and the event's fields."""
    if row.ignore:
        return Ignored(row.ignore, row)
    if row.refuse:
        return Refused(row.refuse, row)
    after: Any = state if row.data is None else fill(row.data, env)
    if row.to is not None:
        after = attrs.evolve(after, **{phase: row.to})
    return Taken(after, effects(row, env), row)


def interpreter(rows: tuple[Row[S, F], ...], phase: str) -> Callable[[S, object], Answer[S, F]]:
    """``step`` by trying the rows of the event in order."""
    of: dict[type, list[Row[S, F]]] = {}
    for row in rows:
        of.setdefault(row.event, []).append(row)

    def step(state: S, event: object) -> Answer[S, F]:
        env = _Remembering(state, event)
        for row in of.get(type(event), ()):
            if matches(row, state, event, phase, env):
                return answer(row, state, phase, env)
        return Refused(HOLE.refuse, cast("Row[S, F]", HOLE))

    return step
