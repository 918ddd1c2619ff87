"""What each event of a machine must record and tell, exactly: every field, every effect, and how often, case by case.

A second writing of a table by what must come out instead of by rows: the cases of an event exclude each other, so none depends on
an order; what a case does not name stays as it was, and no effect is emitted but those it names. What is in no case, and not refused,
is ignored.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from graphlib import CycleError, TopologicalSorter
from typing import Any, cast

from attrs import frozen

from turnproof.machines.kernel import Kind, OnlyIf, StartTimer, StopTimer, TableError, all_of, any_of, choose, fields_of, implies, not_
from turnproof.specs.language import AnyMachine, Order, Step, after, count, effect_name, on, refused, taken

NOTHING: Mapping[str, object] = {}


@frozen(eq=False)
class Case:
    """One case of one event: when it is (None: always), and what must hold of the step then."""

    event: type
    when: bool | None
    holds: bool
    emit: tuple[object, ...]


class Writer:
    """Writes cases for one machine."""

    def __init__(self, machine: AnyMachine) -> None:
        self.machine = machine
        self.now: Any = machine.now
        self.then: Any = after(machine.state)
        self.fields = [name for name, field in fields_of(machine.state).items() if field.kind is not Kind.OPAQUE]

    def case(self, event: type, when: bool | None, changes: Mapping[str, object], *emit: object) -> Case:
        """In this case exactly these fields change, to these values, and exactly these effects are emitted, once each, in this order.

        An effect is a class (then its fields do not matter), an instance whose fields are constants or formulas, or an ``only_if``
        of these. A field in ``changes`` that the state does not have raises :class:`TableError`.
        """
        unknown = [name for name in changes if name not in self.fields]
        if unknown:
            raise TableError(f"{self.machine.state.__name__} has no field {unknown[0]!r} that a case could speak of")
        fields = [getattr(self.then, f) == changes.get(f, getattr(self.now, f)) for f in self.fields]
        return Case(event, when, all_of(*fields, *self._effects(emit)), emit)

    def ladder(self, event: type, *rungs: tuple[bool, Mapping[str, object], tuple[object, ...]]) -> tuple[Case, ...]:
        """Cases of which the first counts whose condition holds: for what the reference itself gives as an ordered table."""
        made: list[Case] = []
        above: list[bool] = []
        for when, changes, emit in rungs:
            made.append(self.case(event, all_of(when, *(not_(other) for other in above)), changes, *emit))
            above.append(when)
        return tuple(made)

    def _effects(self, emit: Sequence[object]) -> Iterator[bool]:
        for kind in self.machine.effects:
            mine = [(condition, effect) for condition, effect in map(_parts, emit) if effect is kind or type(effect) is kind]
            times: Any = sum(1 for condition, _ in mine if condition is None)
            for condition, _ in mine:
                if condition is not None:
                    times = choose(cast(bool, condition), 1, 0) + times
            yield count(kind) == times
            for condition, effect in mine:
                values = {} if effect is kind else _readable(effect)
                if values:
                    yield count(kind, **values) == (1 if condition is None else choose(cast(bool, condition), 1, 0))

    def answers(self, event: type, *cases: Case, requirements: str | Sequence[str], refuses: bool | None = None, harm: str = "") -> Step:
        """Everything about one event: its cases, where it is refused, and that it is ignored everywhere else."""
        here = on(event)
        whens = [case.when for case in cases if case.when is not None]
        always = len(whens) < len(cases)
        told = [implies(here if case.when is None else here & case.when, case.holds) for case in cases]
        if not always:
            told.append(implies(here, taken() == any_of(*whens)) if whens else implies(here, not_(taken())))
            told.append(implies(here, not_(refused()) if refuses is None else refused() == refuses))
        else:
            told.append(implies(here, taken()))
        return Step(f"{event.__name__} is answered exactly so", all_of(*told), requirements=requirements, harm=harm)

    def ordered(self, name: str, cases: Sequence[Case], requirements: str | Sequence[str], *, harm: str = "") -> Order:
        """One order of effects in which every case lists its own. Raises :class:`TableError` if there is none."""
        sorter: TopologicalSorter[object] = TopologicalSorter()
        for case in cases:
            items = [_placed(item) for item in case.emit]
            for first, second in itertools.pairwise(items):
                if first != second:
                    sorter.add(second, first)
        try:
            first, second, *rest = sorter.static_order()
        except CycleError as error:
            cycle = ", ".join(effect_name(effect) for effect in error.args[1])
            raise TableError(f"{name!r}: the cases list these effects in two orders: {cycle}") from None
        return Order(name, first, second, rest=tuple(rest), requirements=requirements, harm=harm)


def _parts(item: object) -> tuple[object, object]:
    return (item.condition, item.effect) if isinstance(item, OnlyIf) else (None, item)


def _readable(effect: object) -> dict[str, object]:
    return {name: getattr(effect, name) for name, field in fields_of(type(effect)).items() if field.kind is not Kind.OPAQUE}


def _placed(item: object) -> object:
    """What an order speaks of: a timer's start or stop by its timer, every other effect by its class."""
    _, effect = _parts(item)
    if isinstance(effect, StartTimer | StopTimer):
        return type(effect)(effect.timer)
    return effect if isinstance(effect, type) else type(effect)


__all__ = ["NOTHING", "Case", "Writer"]
