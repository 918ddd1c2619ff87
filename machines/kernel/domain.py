"""What values a field may take, read from its annotation. Nothing else in the project decides a domain.

| annotation | production | explored | z3 |
|---|---|---|---|
| an ``Enum`` | its members | all members | bits with a range constraint |
| ``bool`` | both | both | Bool |
| ``Annotated[int, Range(lo, hi)]`` | lo..hi | all of them | Int with bounds |
| ``Annotated[int, Counter]`` | 0, 1, 2, ... | up to a bound that the spec states | Int, at least 0 |
| ``Annotated[str, Token]`` | any text, only compared for equality, "" is nobody | "" and a few fresh names | Int, only compared |
| ``Annotated[T, Opaque]`` | anything, never read by a guard | one representative | left out |
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from typing import Annotated, cast, get_args, get_origin, get_type_hints

import attrs


class TableError(ValueError):
    """A machine or a specification is written wrongly. The message names the place and says what to write instead."""


@attrs.frozen
class Range:
    """An integer from ``lo`` to ``hi``, both included."""

    lo: int
    hi: int

    def __attrs_post_init__(self) -> None:
        if self.lo > self.hi:
            raise TableError(f"Range({self.lo}, {self.hi}): the lower bound is above the upper one")


class Counter:
    """Marks an integer that is 0 or more and has no upper bound in production."""


class Token:
    """Marks an identity: text that is only ever compared for equality. The empty text means nobody."""


class Opaque:
    """Marks a value that is carried into effects and never read by a guard."""


NOBODY = ""
"""The token that stands for "none"."""


class Kind(Enum):
    """The six sorts of field."""

    ENUM = "enum"
    BOOL = "bool"
    RANGE = "range"
    COUNTER = "counter"
    TOKEN = "token"
    OPAQUE = "opaque"


FINITE = frozenset({Kind.ENUM, Kind.BOOL, Kind.RANGE})
"""Kinds whose values can all be listed in production; only these can be interned."""


@attrs.frozen
class Field:
    """One field of a state, an event or an effect. ``base`` is the Python type below the annotation."""

    owner: type
    name: str
    kind: Kind
    base: type
    lo: int = 0
    hi: int = 0

    def __str__(self) -> str:
        return f"{self.owner.__name__}.{self.name}"

    def values(self, *, tokens: int, counter: int) -> tuple[object, ...]:
        """Every value explored: ``tokens`` fresh identities beside nobody, counters from 0 to ``counter``."""
        if self.kind is Kind.ENUM:
            return tuple(cast(type[Enum], self.base))
        if self.kind is Kind.BOOL:
            return (False, True)
        if self.kind is Kind.RANGE:
            return tuple(range(self.lo, self.hi + 1))
        if self.kind is Kind.COUNTER:
            return tuple(range(counter + 1))
        if self.kind is Kind.TOKEN:
            return (NOBODY, *token_names(tokens))
        return (representative(self.base),)

    def holds(self, value: object) -> bool:
        """Whether ``value`` lies in the production domain of this field."""
        if self.kind is Kind.OPAQUE:
            return True
        if self.kind is Kind.BOOL or self.kind is Kind.ENUM or self.kind is Kind.TOKEN:
            return isinstance(value, self.base)
        if not isinstance(value, int) or isinstance(value, bool):
            return False
        return self.lo <= value <= self.hi if self.kind is Kind.RANGE else value >= 0

    def expected(self) -> str:
        """The domain in words, for error messages."""
        if self.kind is Kind.ENUM:
            return "one of " + ", ".join(str(m.value) for m in cast(type[Enum], self.base))
        if self.kind is Kind.RANGE:
            return f"an integer from {self.lo} to {self.hi}"
        return {Kind.BOOL: "true or false", Kind.COUNTER: "an integer of 0 or more", Kind.TOKEN: "a text"}.get(
            self.kind, f"a {self.base.__name__}"
        )


def token_names(count: int) -> tuple[str, ...]:
    """The first ``count`` fresh identities: a, b, c, ..."""
    return tuple(chr(ord("a") + i) for i in range(count))


def representative(base: type) -> object:
    """One value of an opaque type, for exploring: its empty value (0, "", ...)."""
    try:
        return base()
    except TypeError:
        return None


def fields_of(cls: type) -> Mapping[str, Field]:
    """The fields of an attrs class in order. Raises :class:`TableError` for an annotation that gives no domain."""
    known = _FIELDS.get(cls)
    if known is None:
        known = _FIELDS[cls] = _read_fields(cls)
    return known


_FIELDS: dict[type, Mapping[str, Field]] = {}


def _read_fields(cls: type) -> Mapping[str, Field]:
    if not attrs.has(cls):
        raise TableError(f"{cls.__name__} is not an attrs class: decorate it with attrs.frozen")
    try:
        hints = get_type_hints(cls, include_extras=True)
    except NameError as error:
        raise TableError(f"{cls.__name__}: an annotation names something unknown ({error}); define its types at module level") from error
    return {f.name: _read_field(cls, f.name, hints[f.name]) for f in attrs.fields(cls)}


def _read_field(cls: type, name: str, hint: object) -> Field:
    where = f"{cls.__name__}.{name}"
    if get_origin(hint) is Annotated:
        base, *marks = get_args(hint)
        for mark in marks:
            if isinstance(mark, Range):
                return Field(cls, name, Kind.RANGE, int, mark.lo, mark.hi)
            if mark in (Counter, Token, Opaque):
                return _marked(cls, name, base, mark)
        hint = base
    if hint is bool:
        return Field(cls, name, Kind.BOOL, bool)
    if isinstance(hint, type) and issubclass(hint, Enum):
        return Field(cls, name, Kind.ENUM, hint)
    raise TableError(
        f"{where}: {getattr(hint, '__name__', hint)} is not a domain. Write an Enum, bool, Annotated[int, Range(lo, hi)], "
        "Annotated[int, Counter], Annotated[str, Token] or Annotated[..., Opaque]."
    )


def _marked(cls: type, name: str, base: object, mark: object) -> Field:
    wanted: type | None = int if mark is Counter else str if mark is Token else None
    if wanted is not None and base is not wanted:
        raise TableError(f"{cls.__name__}.{name}: {cast(type, mark).__name__} marks {wanted.__name__}, not {base}")
    kind = Kind.COUNTER if mark is Counter else Kind.TOKEN if mark is Token else Kind.OPAQUE
    return Field(cls, name, kind, base if isinstance(base, type) else object)
