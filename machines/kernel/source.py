"""The fast reading of a table: Python source written out once per event, as attrs does for ``__init__``.

Every function stands in ``linecache``, so a traceback through a guard shows the guard. ``linecache`` is the one import of the
pure core beyond its vocabulary; it reads no clock and no file here.
"""

from __future__ import annotations

import linecache
from collections.abc import Callable, Mapping, Sequence
from enum import Enum
from typing import Any, TypeVar, cast

import attrs

from turnproof.machines.kernel.domain import fields_of
from turnproof.machines.kernel.formula import Formula, OnlyIf, Operators, Variable, read, variables
from turnproof.machines.kernel.row import HOLE, Answer, Ignored, Refused, Row, Taken

S = TypeVar("S")
F = TypeVar("F")


def _infix(sign: str) -> Callable[[str, str], str]:
    return lambda left, right: f"({left} {sign} {right})"


SOURCE: Operators[str] = {
    "eq": _infix("=="),
    "ne": _infix("!="),
    "lt": _infix("<"),
    "le": _infix("<="),
    "gt": _infix(">"),
    "ge": _infix(">="),
    "and": _infix("and"),
    "or": _infix("or"),
    "not": lambda operand: f"(not {operand})",
    "implies": lambda left, right: f"(not {left} or {right})",
    "add": _infix("+"),
    "sub": _infix("-"),
    "choose": lambda condition, then, otherwise: f"({then} if {condition} else {otherwise})",
    "latest": lambda left, right: f"max({left}, {right})",
}


class Names:
    """The globals of the generated functions: constants, classes and rows under stable names."""

    def __init__(self) -> None:
        self.table: dict[str, object] = {}
        self._known: dict[int, str] = {}

    def of(self, thing: object, wish: str) -> str:
        """The name under which generated source reaches ``thing``."""
        if id(thing) not in self._known:
            name, n = wish, 1
            while name in self.table:
                n += 1
                name = f"{wish}_{n}"
            self._known[id(thing)] = name
            self.table[name] = thing
        return self._known[id(thing)]

    def constant(self, value: object) -> str:
        """Source for a constant: a name for an Enum member, else its literal."""
        if isinstance(value, Enum):
            return self.of(value, f"{type(value).__name__}_{value.name}")
        if value is None or isinstance(value, (bool, int, str)):
            return repr(value)
        return self.of(value, f"constant_{type(value).__name__}")


class Writer:
    """Writes ``step_<Event>(s, e)`` for each event of one machine."""

    def __init__(self, name: str, state: type, phase: str, rows: Sequence[Row[Any, Any]]) -> None:
        self.name, self.state, self.phase, self.rows = name, state, phase, tuple(rows)
        self.names = Names()

    def functions(self, events: Sequence[type]) -> Mapping[type, Callable[[Any, Any], Answer[Any, Any]]]:
        """Event class -> its compiled function."""
        text = "\n\n".join(self.function(event) for event in events)
        filename = f"<turnproof step {self.name}>"
        # A variant of a machine may share its name; the entry of the newest one is the one shown.
        linecache.cache[filename] = (len(text), None, text.splitlines(keepends=True), filename)
        space: dict[str, Any] = dict(self.names.table)
        exec(compile(text, filename, "exec"), space)
        return {event: space[f"step_{event.__name__}"] for event in events}

    def function(self, event: type) -> str:
        """The source of one event's function."""
        mine = [row for row in self.rows if row.event is event]
        lines = [f"def step_{event.__name__}(s, e):"]
        used = sorted(
            {v.name for row in mine for v in _read_by(row) if v.owner is self.state}
            | ({self.phase} if any(r.phases for r in mine) else set())
        )
        lines += [f"    {name} = s.{name}" for name in used]
        for row in mine:
            test = self.test(row)
            if test is None:
                lines.append(f"    return {self.result(row)}")
                break
            lines += [f"    if {test}:", f"        return {self.result(row)}"]
        else:
            hole = self.names.of(Refused(HOLE.refuse, HOLE), "no_row")
            lines.append(f"    return {hole}")
        return "\n".join(lines) + "\n"

    def test(self, row: Row[Any, Any]) -> str | None:
        """The condition of a row; None if it always applies."""
        parts = []
        if row.phases:
            parts.append("(" + " or ".join(f"{self.phase} is {self.names.constant(p)}" for p in row.phases) + ")")
        if row.guard is not None:
            parts.append(self.expression(row.guard))
        return " and ".join(parts) or None

    def expression(self, node: object) -> str:
        """Source for a formula or constant."""
        return read(node, self.variable, SOURCE, self.names.constant)

    def variable(self, variable: Variable) -> str:
        """A state field is a local; an event field is read from ``e``."""
        return variable.name if variable.owner is self.state else f"e.{variable.name}"

    def result(self, row: Row[Any, Any]) -> str:
        """Source for the answer of a row."""
        if row.ignore:
            return self.names.of(Ignored(row.ignore, row), "ignored")
        if row.refuse:
            return self.names.of(Refused(row.refuse, row), "refused")
        return f"{self.names.of(Taken, 'Taken')}({self.successor(row)}, {self.effects(row)}, {self.names.of(row, 'row')})"

    def successor(self, row: Row[Any, Any]) -> str:
        """Source for the next state; the state itself where nothing changes."""
        changed = {}
        for field in fields_of(self.state):
            node = self.phase_or(field, row)
            if not (isinstance(node, Formula) and node.op == "var" and cast(Variable, node.args[0]) == Variable(self.state, field)):
                changed[field] = self.expression(node)
        if not changed:
            return "s"
        values = [changed.get(field, f"s.{field}") for field in fields_of(self.state)]
        return f"{self.names.of(self.state, self.state.__name__)}({', '.join(values)})"

    def phase_or(self, field: str, row: Row[Any, Any]) -> object:
        """The formula or constant a row gives to ``field``."""
        if field == self.phase and row.to is not None:
            return row.to
        return Formula("var", (Variable(self.state, field),)) if row.data is None else getattr(row.data, field)

    def effects(self, row: Row[Any, Any]) -> str:
        """Source for the tuple of effects. Effects without a formula are made once."""
        if not row.emit:
            return "()"
        parts = []
        for item in row.emit:
            condition = self.expression(item.condition) if isinstance(item, OnlyIf) else None
            made = self.effect(item.effect if isinstance(item, OnlyIf) else item)
            parts.append(f"{made}," if condition is None else f"*(({made},) if {condition} else ()),")
        return f"({' '.join(parts)})"

    def effect(self, effect: object) -> str:
        """Source for one effect."""
        if not variables(effect):
            return self.names.of(effect, f"a_{type(effect).__name__}")
        fields = (self.expression(getattr(effect, f.name)) for f in attrs.fields(cast(Any, type(effect))))
        return f"{self.names.of(type(effect), type(effect).__name__)}({', '.join(fields)})"


_READ: dict[Row[Any, Any], frozenset[Variable]] = {}
"""Rows are themselves alone, and stand in many a changed table."""
MOST_READ = 4_096


def _read_by(row: Row[Any, Any]) -> frozenset[Variable]:
    known = _READ.get(row)
    if known is None:
        if len(_READ) >= MOST_READ:
            _READ.clear()
        known = _READ[row] = _find_read_by(row)
    return known


def _find_read_by(row: Row[Any, Any]) -> frozenset[Variable]:
    found = frozenset() if row.when is None else variables(row.when)
    for item in row.emit:
        found |= variables(item)
    if row.data is not None:
        for f in attrs.fields(cast(Any, type(row.data))):
            node = getattr(row.data, f.name)
            if not (isinstance(node, Formula) and node.op == "var") or cast(Variable, node.args[0]).name != f.name:
                found |= variables(node)
    return found
