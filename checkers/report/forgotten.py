"""Classes that a machine forgot: written beside its events and effects, and in no union; or in a union, and of no use.

That a row names an event or emits an effect outside the union, and that no row answers an event, is a mistake that building a machine
reports. What is seen here needs the module that the machine stands in, and is a remark: a module may hold classes for others.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import ModuleType
from typing import get_args

import attrs

from turnproof.checkers.report.locate import machine_module, machine_place, shown_path
from turnproof.checkers.report.model import AnySpec
from turnproof.machines.kernel import Machine, OnlyIf
from turnproof.machines.kernel.row import TIMER_EFFECTS
from turnproof.specs.language import AnyMachine, Spec

ALIASES = ("Event", "Effect")
"""What a machine's module calls the unions of its events and effects."""


def forgotten(spec: AnySpec) -> tuple[str, ...]:
    """One sentence for each, with the class, the machine and the place; none for a system, whose machines have specifications."""
    if not isinstance(spec, Spec):
        return ()
    machine = spec.machine
    place = machine_place(machine)
    where = f"{machine.name} ({place.path}:{place.line})" if place is not None else machine.name
    machines = _machines()
    return (*_outside(machine, where, machines), *_against_alias(machine, where, machines), *_never_emitted(spec, where))


def _outside(machine: AnyMachine, where: str, machines: Sequence[AnyMachine]) -> Iterator[str]:
    """Classes of a module that only this machine's events and effects come from."""
    own = [cls for cls in (machine.state, *machine.events, *machine.effects) if cls not in TIMER_EFFECTS]
    home = sys.modules.get(machine.state.__module__)
    if home is None:
        return
    known = {cls for other in machines for cls in (other.state, *other.events, *other.effects)} | set(own)
    known |= {cls for name in ALIASES for cls in _listed(vars(home).get(name))}  # of these it is said that the machine lacks them
    for cls in vars(home).values():
        if isinstance(cls, type) and attrs.has(cls) and cls.__module__ == home.__name__ and cls not in known and _once(home, machines):
            yield f"{cls.__name__} ({_line(cls)}) is in no union of {where}: add it to the events or the effects, or take it away"


def _once(home: ModuleType, machines: Sequence[AnyMachine]) -> bool:
    """Whether the module is one machine's: it makes one, and no class of it is another's."""
    return len({other.state for other in machines if other.state.__module__ == home.__name__}) == 1


def _against_alias(machine: AnyMachine, where: str, machines: Sequence[AnyMachine]) -> Iterator[str]:
    """The aliases ``Event`` and ``Effect`` of the machine's module, against the tuples that it was given."""
    module = machine_module(machine)
    if module is None or not _once(module, machines):
        return
    for name, given in zip(ALIASES, (machine.events, machine.effects), strict=True):
        listed = _listed(vars(module).get(name))
        for cls in listed:
            if cls not in given:
                yield f"{cls.__name__} ({_line(cls)}) is in {name}, and not among the {name.lower()}s= of {where}"
        for cls in given if listed else ():
            if cls not in listed:
                yield f"{cls.__name__} ({_line(cls)}) is among the {name.lower()}s= of {where}, and not in {name}"


def _listed(alias: object) -> tuple[type, ...]:
    return get_args(alias) or ((alias,) if isinstance(alias, type) else ())


def _never_emitted(spec: Spec, where: str) -> Iterator[str]:
    rows = [row for machine in (spec.machine, *(variant.machine for variant in spec.variants)) for row in machine.rows]
    emitted = {type(item.effect if isinstance(item, OnlyIf) else item) for row in rows for item in row.emit}
    for cls in spec.machine.effects:
        if cls not in emitted:
            yield f"{cls.__name__} is an effect of {where}, and no row emits it: emit it, or take it out of the union"


def _machines() -> tuple[AnyMachine, ...]:
    """Every machine that is held by a loaded module which makes machines."""
    loaded = [m for m in list(sys.modules.values()) if type(m) is ModuleType and vars(m).get("Machine") is Machine]
    return tuple({id(v): v for module in loaded for v in list(vars(module).values()) if isinstance(v, Machine)}.values())


def _line(cls: type) -> str:
    try:
        file, line = inspect.getsourcefile(cls), inspect.getsourcelines(cls)[1]
    except (OSError, TypeError):
        return cls.__module__
    return f"{shown_path(Path(file))}:{line}" if file else cls.__module__


__all__ = ["forgotten"]
