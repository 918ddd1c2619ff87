"""The column reading of a formula: one NumPy pass decides it for every state, or every step, at once.

Theory of operation
===================

A formula is compiled once into a :class:`Reading`: the sort of its values, and a function of :class:`Columns`. Columns give
the arrays that its variables stand for; a value is a plain ``bool`` or ``int`` where it is the same everywhere, else an array.
Arrays of different shapes broadcast, so that a state's field stays as long as there are states and is never copied per event.

``and``, ``or``, ``implies`` and ``choose`` read from left to right and stop at a plain bool. That is what makes the field of an
event readable in a property of every step: ``on(AbortRequested) & (abort.reason == USER)`` never looks at ``reason`` where the
event is another. ``words.check_words`` finds a formula that lacks such a guard before anything is evaluated.

Enum members, tokens and timers are small integers here. The codes are the same in the whole process, so columns of different
graphs can be compared.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from enum import Enum
from typing import Any, Protocol, cast

import attrs
import numpy as np
import numpy.typing as npt

from turnproof.machines.kernel import Field, Kind, TableError, Variable, fields_of, read
from turnproof.machines.kernel.formula import Operators
from turnproof.specs.language import Answered, Emitted, OnEvent, Said

Array = npt.NDArray[Any]
Data = Array | bool | int
Sort = object
"""``bool``, ``int``, :data:`TOKEN` or an Enum class."""

TOKEN = "a token"


class Columns(Protocol):
    """Where a reading finds its variables. Raises :class:`TableError` for a word that has no meaning there."""

    def field(self, variable: Variable) -> Data:
        """The codes of one field."""

    def on(self, event: type) -> Data:
        """Whether the event of the step is of this class."""

    def answered(self, said: Said) -> Data:
        """Whether the step is answered so."""

    def emitted(self, pattern: Emitted, fields: Sequence[tuple[str, Data]]) -> Data:
        """How many effects of the pattern's class, with these field values, the step emits."""


@attrs.frozen
class Reading:
    """A compiled formula: the sort of its values, and how to get them."""

    sort: Sort
    run: Callable[[Columns], Data]


# ── codes ──


class _Codes:
    """Things -> 0, 1, 2, ... in the order in which they are first met."""

    def __init__(self, *first: object) -> None:
        self.table: dict[object, int] = {thing: n for n, thing in enumerate(first)}

    def of(self, thing: object) -> int:
        return self.table.setdefault(thing, len(self.table))


_TOKENS = _Codes("")
_MEMBERS = _Codes()
_ENUMS: dict[type, dict[object, int]] = {}


def _enum(cls: type) -> dict[object, int]:
    known = _ENUMS.get(cls)
    if known is None:
        known = _ENUMS[cls] = {member: n for n, member in enumerate(cast("type[Enum]", cls))}
    return known


def sort_of(field: Field) -> Sort:
    """The sort of a field. Raises :class:`TableError` for an opaque one: only one of its values is explored."""
    if field.kind is Kind.OPAQUE:
        raise TableError(f"reads {field}, which is Opaque: one value of it is explored, so nothing can be said about it")
    if field.kind in (Kind.RANGE, Kind.COUNTER):
        return int
    return {Kind.BOOL: bool, Kind.TOKEN: TOKEN}.get(field.kind, field.base)


def code(value: object, field: Field) -> int:
    """The code of one value of ``field``."""
    if field.kind is Kind.ENUM:
        return _MEMBERS.of(value) if field.base is Enum else _enum(field.base)[value]
    if field.kind is Kind.TOKEN:
        return _TOKENS.of(value)
    return int(cast(int, value)) if field.kind is not Kind.OPAQUE else 0


def encode(field: Field, values: Iterable[object]) -> Array:
    """The codes of many values: bool for a bool, 16 bits for names, 32 for numbers."""
    kind = {Kind.BOOL: np.bool_, Kind.RANGE: np.int32, Kind.COUNTER: np.int32}.get(field.kind, np.int16)
    if field.kind in (Kind.BOOL, Kind.RANGE, Kind.COUNTER):
        return np.array([cast(int, v) for v in values], dtype=kind)
    if field.kind is Kind.ENUM and field.base is not Enum:
        table = _enum(field.base)
        return np.array([table[v] for v in values], dtype=kind)
    return np.array([code(v, field) for v in values], dtype=kind)


# ── compiling ──


def read_columns(node: object, where: str) -> Reading:
    """``node`` compiled. Raises :class:`TableError`, with ``where`` before it, if sorts are mixed or an opaque field is read."""
    try:
        return read(node, _variable, COLUMNS, _constant)
    except TableError as error:
        raise TableError(f"{where} {error}") from None


def condition(node: object, where: str) -> Callable[[Columns], Data]:
    """``node`` compiled as a truth value."""
    reading = read_columns(node, where)
    if reading.sort is not bool:
        raise TableError(f"{where} is not a condition: its value is {_called(reading.sort)}")
    return reading.run


def _constant(value: object) -> Reading:
    if isinstance(value, Enum):
        number = _enum(type(value))[value]
        return Reading(type(value), _fixed(number))
    if isinstance(value, bool):
        return Reading(bool, lambda columns: value)
    if isinstance(value, int):
        return Reading(int, lambda columns: value)
    if isinstance(value, str):
        token = _TOKENS.of(value)
        return Reading(TOKEN, _fixed(token))
    raise TableError(f"has the constant {value!r}, which no field can hold")


def _variable(variable: Variable) -> Reading:
    if isinstance(variable, OnEvent):
        owner = variable.owner
        return Reading(bool, lambda columns: columns.on(owner))
    if isinstance(variable, Answered):
        said = variable.said
        return Reading(bool, lambda columns: columns.answered(said))
    if isinstance(variable, Emitted):
        return _emitted(variable)
    return Reading(sort_of(fields_of(variable.owner)[variable.name]), lambda columns: columns.field(variable))


def _emitted(variable: Emitted) -> Reading:
    readings: list[tuple[str, Callable[[Columns], Data]]] = []
    for name, node in variable.fields:
        field = fields_of(variable.owner)[name]
        if field.base is Enum and isinstance(node, Enum):
            readings.append((name, _fixed(_MEMBERS.of(node))))
            continue
        reading = read(node, _variable, COLUMNS, _constant)
        if reading.sort != sort_of(field):
            raise TableError(f"counts {variable.owner.__name__} whose {name} is {_called(reading.sort)}; it is {_called(sort_of(field))}")
        readings.append((name, reading.run))
    return Reading(int, lambda columns: columns.emitted(variable, [(name, run(columns)) for name, run in readings]))


def _fixed(number: int) -> Callable[[Columns], Data]:
    return lambda columns: number


def _called(sort: Sort) -> str:
    return sort.__name__ if isinstance(sort, type) else str(sort)


def is_array(data: Data) -> bool:
    """Whether the value differs from place to place."""
    return isinstance(data, np.ndarray)


# ── operators ──


def _same(left: Reading, right: Reading) -> None:
    if left.sort != right.sort:
        raise TableError(f"compares {_called(left.sort)} with {_called(right.sort)}, which are never equal")


def _wants(sort: type, *readings: Reading) -> None:
    for reading in readings:
        if reading.sort is not sort:
            raise TableError(f"needs {_called(sort)} where it has {_called(reading.sort)}")


def _equal(left: Reading, right: Reading) -> Reading:
    _same(left, right)
    return Reading(bool, lambda columns: left.run(columns) == right.run(columns))


def _unequal(left: Reading, right: Reading) -> Reading:
    _same(left, right)
    return Reading(bool, lambda columns: left.run(columns) != right.run(columns))


def _ordered(compare: Callable[[Any, Any], Data]) -> Callable[[Reading, Reading], Reading]:
    def build(left: Reading, right: Reading) -> Reading:
        _wants(int, left, right)
        return Reading(bool, lambda columns: compare(left.run(columns), right.run(columns)))

    return build


def _arithmetic(combine: Callable[[Any, Any], Data]) -> Callable[[Reading, Reading], Reading]:
    def build(left: Reading, right: Reading) -> Reading:
        _wants(int, left, right)
        return Reading(int, lambda columns: combine(_wide(left.run(columns)), _wide(right.run(columns))))

    return build


def _wide(data: Data) -> Any:
    """64 bits, so that no sum of explored values overflows."""
    return data.astype(np.int64) if isinstance(data, np.ndarray) else data


def negate(data: Data) -> Data:
    """Not."""
    return ~data if isinstance(data, np.ndarray) else not data


def _not(operand: Reading) -> Reading:
    _wants(bool, operand)
    return Reading(bool, lambda columns: negate(operand.run(columns)))


def _both(left: Reading, right: Reading) -> Reading:
    _wants(bool, left, right)

    def run(columns: Columns) -> Data:
        first = left.run(columns)
        if not isinstance(first, np.ndarray):
            return right.run(columns) if first else False
        if not first.any():
            return False
        second = right.run(columns)
        return first & second if isinstance(second, np.ndarray) else first if second else False

    return Reading(bool, run)


def _either(left: Reading, right: Reading) -> Reading:
    _wants(bool, left, right)

    def run(columns: Columns) -> Data:
        first = left.run(columns)
        if not isinstance(first, np.ndarray):
            return True if first else right.run(columns)
        if first.all():
            return True
        second = right.run(columns)
        return first | second if isinstance(second, np.ndarray) else True if second else first

    return Reading(bool, run)


def _implies(left: Reading, right: Reading) -> Reading:
    return _either(_not(left), right)


def _choose(when: Reading, then: Reading, otherwise: Reading) -> Reading:
    _wants(bool, when)
    if then.sort != otherwise.sort:
        raise TableError(f"chooses between {_called(then.sort)} and {_called(otherwise.sort)}")

    def run(columns: Columns) -> Data:
        first = when.run(columns)
        if not isinstance(first, np.ndarray):
            return then.run(columns) if first else otherwise.run(columns)
        return np.where(first, then.run(columns), otherwise.run(columns))

    return Reading(then.sort, run)


def _latest(left: Any, right: Any) -> Data:
    return cast(Data, np.maximum(left, right) if is_array(left) or is_array(right) else max(left, right))


COLUMNS: Operators[Reading] = {
    "eq": _equal,
    "ne": _unequal,
    "lt": _ordered(lambda left, right: left < right),
    "le": _ordered(lambda left, right: left <= right),
    "gt": _ordered(lambda left, right: left > right),
    "ge": _ordered(lambda left, right: left >= right),
    "and": _both,
    "or": _either,
    "not": _not,
    "implies": _implies,
    "add": _arithmetic(lambda left, right: left + right),
    "sub": _arithmetic(lambda left, right: left - right),
    "choose": _choose,
    "latest": _arithmetic(_latest),
}
"""One entry for each of the kernel's operators."""


__all__ = [
    "COLUMNS",
    "TOKEN",
    "Array",
    "Columns",
    "Data",
    "Reading",
    "code",
    "condition",
    "encode",
    "is_array",
    "negate",
    "read_columns",
    "sort_of",
]
