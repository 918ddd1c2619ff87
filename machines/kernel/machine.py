"""A machine is a state class, a tuple of rows, and what is promised about its timers. Building one checks it.

``MACHINE.step(state, event)`` is pure: it returns :class:`Taken`, :class:`Ignored` or :class:`Refused`, never raises on a known
event, and never changes its arguments. Three readings of one table choose the same row everywhere (verification checks each
reachable pair): ``interpret`` (plain interpretation), ``generated`` (source written at import), and, for events whose fields
are finite in a machine whose state is finite, the interned table.
"""

from __future__ import annotations

import itertools
import operator
from collections.abc import Callable, Iterator, Mapping, Sequence
from enum import Enum
from typing import Any, Generic, TypeVar, cast

import attrs

from turnproof.machines.kernel.check import check_machine
from turnproof.machines.kernel.domain import FINITE, fields_of
from turnproof.machines.kernel.evaluate import interpreter
from turnproof.machines.kernel.formula import Formula, formula, nodes
from turnproof.machines.kernel.row import Answer, Row, Taken, TimerRule
from turnproof.machines.kernel.source import Writer

S = TypeVar("S")
E = TypeVar("E")
F = TypeVar("F")

INTERN_LIMIT = 200_000
"""Most (state, event) pairs a machine interns up front; a larger one runs its generated source."""


@attrs.frozen(eq=False, kw_only=True)
class Machine(Generic[S, E, F]):
    """One lifecycle as a table. ``E`` and ``F`` are the unions of its events and effects.

    Raises :class:`TableError` when the table is written wrongly; the message names the row and what to write instead.
    """

    name: str
    """How the command line and reports call it: snake_case, unique."""
    initial: S
    now: S
    """``symbol(State)``, the instance the rows are written over."""
    events: tuple[type, ...]
    """``get_args(Event)``: every event the machine knows."""
    effects: tuple[type, ...]
    """``get_args(Effect)``: every effect it may emit."""
    rows: tuple[Row[S, F], ...]
    timers: tuple[TimerRule, ...] = ()
    released: bool | None = None
    """Where nothing may be armed any more; None if the machine has no end."""
    phase: str = "phase"
    """The Enum field that ``at`` and ``to`` speak of."""
    step: Callable[[S, E], Answer[S, F]] = attrs.field(init=False, repr=False)
    interpret: Callable[[S, object], Answer[S, F]] = attrs.field(init=False, repr=False)
    generated: Mapping[type, Callable[[S, Any], Answer[S, F]]] = attrs.field(init=False, repr=False)

    def __attrs_post_init__(self) -> None:
        put = object.__setattr__
        put(self, "rows", named_rows(self.rows))
        check_machine(cast("Machine[Any, Any, Any]", self))
        put(self, "interpret", interpreter(self.rows, self.phase))
        put(self, "generated", Writer(self.name, self.state, self.phase, self.rows).functions(self.events))
        if self.interned_events:
            initial, step = _interned(self)
            put(self, "initial", initial)
            put(self, "step", step)
        else:
            put(self, "step", _dispatch(self.generated, self.name))

    @property
    def state(self) -> type:
        """The state class."""
        return type(self.initial)

    @property
    def phases(self) -> tuple[Enum, ...]:
        """Every phase, in order of definition."""
        return cast("tuple[Enum, ...]", fields_of(self.state)[self.phase].values(tokens=0, counter=0))

    @property
    def interned_events(self) -> tuple[type, ...]:
        """The events whose step is a lookup: every field of the state and of the event is finite, and the table is small enough."""
        if not _finite(self.state):
            return ()
        events = tuple(event for event in self.events if _finite(event))
        return events if _size(self.state) * sum(_size(event) for event in events) <= INTERN_LIMIT else ()

    @property
    def released_formula(self) -> Formula | None:
        """``released`` as the formula it is."""
        return None if self.released is None else formula(self.released, "released")

    def all_events(self, *, tokens: int = 1, counter: int = 0) -> tuple[E, ...]:
        """Every event over its explored domain: ``tokens`` fresh identities, counters up to ``counter``."""
        return tuple(cast(E, e) for cls in self.events for e in instances(cls, tokens=tokens, counter=counter))

    def row(self, name: str) -> Row[S, F]:
        """The row of that name. Raises ``KeyError`` with the names there are."""
        for row in self.rows:
            if row.name == name:
                return row
        raise KeyError(f"{self.name} has no row {name!r}; its rows: {', '.join(r.name for r in self.rows)}")

    def variant(
        self,
        name: str,
        *,
        replace: Mapping[str, Row[S, F] | Sequence[Row[S, F]]] | None = None,
        drop: Sequence[str] = (),
        first: Sequence[Row[S, F]] = (),
    ) -> Machine[S, E, F]:
        """The same machine with rows replaced, dropped, or put before all others. Unknown row names raise ``KeyError``."""
        changes: dict[str, tuple[Row[S, F], ...]] = dict.fromkeys(drop, ())
        for key, new in (replace or {}).items():
            changes[key] = (new,) if isinstance(new, Row) else tuple(new)
        for key in changes:
            self.row(key)
        kept = [changes.get(row.name, (row,)) for row in self.rows]
        return attrs.evolve(self, name=name, rows=(*first, *itertools.chain.from_iterable(kept)))


def _finite(cls: type) -> bool:
    return all(field.kind in FINITE for field in fields_of(cls).values())


def _size(cls: type) -> int:
    total = 1
    for field in fields_of(cls).values():
        total *= len(field.values(tokens=0, counter=0))
    return total


def instances(cls: type, *, tokens: int, counter: int) -> Iterator[object]:
    """Every instance of an attrs class over its explored domain, in a stable order."""
    domains = [f.values(tokens=tokens, counter=counter) for f in fields_of(cls).values()]
    return (cls(*values) for values in itertools.product(*domains))


def named_rows(rows: Sequence[Row[S, F]]) -> tuple[Row[S, F], ...]:
    """Rows with a unique name each: the one given, else event, phases and a number where several would be called the same."""
    taken = {row.name for row in rows if row.name}
    made: list[Row[S, F]] = []
    for row in rows:
        if not row.name:
            base = name = default_name(row)
            n = 1
            while name in taken:
                n += 1
                name = f"{base}#{n}"
            taken.add(name)
            row = attrs.evolve(row, name=name)
        made.append(row)
    return tuple(made)


def default_name(row: Row[Any, Any]) -> str:
    """``AbortRequested/running+preparing/abortable``: event, phases (at most three, then their number), name of the guard."""
    phases = [p.name.lower() for p in row.phases]
    parts = [row.event.__name__]
    if phases:
        parts.append("+".join(phases) if len(phases) <= 3 else f"{len(phases)}_phases")
    if row.guard is not None:
        labels = [str(n.args[0]) for n in nodes(row.guard) if n.op == "named"]
        if labels:
            parts.append("+".join(label.replace(" ", "_") for label in labels[:2]))
    if len(parts) == 1 and row.guard is None:
        parts.append("otherwise")
    return "/".join(parts)


def _dispatch(functions: Mapping[type, Callable[[S, Any], Answer[S, F]]], name: str) -> Callable[[S, E], Answer[S, F]]:
    def step(state: S, event: E) -> Answer[S, F]:
        try:
            function = functions[type(event)]
        except KeyError:
            raise unknown_event(name, event, functions) from None
        return function(state, event)

    return step


def unknown_event(name: str, event: object, known: Mapping[type, object]) -> TypeError:
    """The error for an event that no row could be about: a mistake of the program, not of the run."""
    return TypeError(f"{name} knows no event {type(event).__name__}; it knows {', '.join(sorted(cls.__name__ for cls in known))}")


def _interned(machine: Machine[S, E, F]) -> tuple[S, Callable[[S, E], Answer[S, F]]]:
    """The whole table as dictionaries, and the initial state as the table's own object.

    A state that came out of ``step`` is found by identity, any other by value. Identity is sound here: the table keeps its states
    alive, so no other object can have the same ``id`` meanwhile. Below the state, an event without fields is found by its class.
    """
    slow = _dispatch(machine.generated, machine.name)
    states = {s: cast(S, s) for s in instances(machine.state, tokens=0, counter=0)}
    by_value = {state: _answers(machine, slow, state, states) for state in states.values()}
    by_identity = {id(state): answers for state, answers in by_value.items()}

    def by_the_slow_path(state: S, event: E) -> Answer[S, F]:
        found: Any = by_value.get(state, {}).get(type(event))
        if type(found) is tuple:
            key, answers = found
            found = answers.get(key(event))
        return slow(state, event) if found is None else cast("Answer[S, F]", found)

    # Names bound as defaults are locals, which is a fifth of the time of a step.
    def step(state: S, event: E, _by_identity: Any = by_identity, _id: Any = id, _tuple: Any = tuple) -> Answer[S, F]:
        try:
            found: Any = _by_identity[_id(state)][event.__class__]
            if found.__class__ is _tuple:
                return found[1][found[0](event)]  # type: ignore[no-any-return]
            return found  # type: ignore[no-any-return]
        except KeyError:
            return by_the_slow_path(state, event)

    return states[machine.initial], step


def _answers(machine: Machine[S, E, F], slow: Callable[[S, E], Answer[S, F]], state: S, states: Mapping[object, S]) -> dict[type, object]:
    """Event class -> its answer in ``state``; for a class with fields, how to read them and a dictionary from their values."""

    def canonical(event: object) -> Answer[S, F]:
        # From a state no run reaches a count may leave its range; such a successor stays outside the table.
        answer = slow(state, cast(E, event))
        return Taken(states.get(answer.state, answer.state), answer.effects, answer.row) if isinstance(answer, Taken) else answer

    made: dict[type, object] = {}
    for cls in machine.interned_events:
        if not fields_of(cls):
            made[cls] = canonical(cls())
            continue
        # The values of the fields, read in C: hashing the event itself would run Python twice a step.
        key = operator.attrgetter(*fields_of(cls))
        made[cls] = (key, {key(event): canonical(event) for event in instances(cls, tokens=0, counter=0)})
    return made


__all__ = ["INTERN_LIMIT", "Machine", "default_name", "instances", "named_rows", "unknown_event"]
