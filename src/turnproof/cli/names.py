"""From the names on the command line to machines, events and engines."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from turnproof.checkers.engines import ENGINES
from turnproof.checkers.report.model import AnySpec, name_of
from turnproof.checkers.written import WrittenError, event_class, excerpt, nearest, plain
from turnproof.cli.misuse import Misuse, broken_table
from turnproof.specs.language import Spec
from turnproof.specs.system import SystemSpec


class Catalog(Mapping[str, AnySpec]):
    """Every specification by name, of machines first, then of systems; each loaded when asked for. :class:`Misuse` if it cannot be.

    Large systems are found by their names, and left out where everything is gone through.
    """

    def __init__(self) -> None:
        try:
            from turnproof.specs import catalog as known

            self.machines, self.systems, self.large = known.specifications(), known.systems(), known.large()
        except Exception as problem:
            raise Misuse(broken_table(problem)) from problem

    def __getitem__(self, name: str) -> AnySpec:
        places: tuple[Mapping[str, AnySpec], ...] = (self.machines, self.systems, self.large)
        for place in places:
            if name in place:
                try:
                    return place[name]
                except Exception as problem:
                    raise Misuse(broken_table(problem)) from problem
        raise KeyError(name)

    def __contains__(self, name: object) -> bool:
        return name in self.machines or name in self.systems or name in self.large

    def __iter__(self) -> Iterator[str]:
        return iter((*self.machines, *self.systems))

    def __len__(self) -> int:
        return len(self.machines) + len(self.systems)

    @property
    def names(self) -> tuple[str, ...]:
        """Every name that can be asked for."""
        return (*self.machines, *self.systems, *self.large)


def catalog() -> Catalog:
    """Every specification. Raises :class:`Misuse` if there is no list of them."""
    return Catalog()


def one(name: str) -> Spec:
    """The specification of that machine. Raises :class:`Misuse`; a system is no machine."""
    (spec,) = machines([name])
    return spec


def machines(names: Sequence[str]) -> list[Spec]:
    """The specifications of those machines, each once; of all machines, but no system, if none is named. Raises :class:`Misuse`."""
    specs = catalog()
    chosen = [_known(name, specs.names, "machine") for name in names] or list(specs.machines)
    for name in chosen:
        if name not in specs.machines:
            raise Misuse(f"{name} is a system of machines, expected a machine: {', '.join(specs.machines)}")
    return [spec for name in dict.fromkeys(chosen) if isinstance(spec := specs[name], Spec)]


def system(name: str) -> SystemSpec:
    """The specification of that system. Raises :class:`Misuse`; a machine is no system."""
    specs = catalog()
    found = specs[_known(name, specs.names, "system")]
    if isinstance(found, Spec):
        raise Misuse(f"{found.machine.name} is a single machine, expected a system: {', '.join(specs.systems) or 'there is none'}")
    return found


def some(names: Sequence[str]) -> list[AnySpec]:
    """The specifications of those machines and systems, each once; all of them if none is named. Raises :class:`Misuse`."""
    specs = catalog()
    chosen = [_known(name, specs.names, "machine") for name in names] or list(specs)
    return [specs[name] for name in dict.fromkeys(chosen)]


def switches(specs: Sequence[AnySpec], given: Sequence[str]) -> Mapping[str, frozenset[str]]:
    """System -> which of its switches are named, however they are spelled; each must be one of some system here. Raises :class:`Misuse`."""
    there = {spec.system.name: [s.name for s in spec.system.switches] for spec in specs if isinstance(spec, SystemSpec)}
    every = [name for names in there.values() for name in names]
    if given and not every:
        raise Misuse(f"--without {excerpt(given[0])}: no system that is verified here has a switch")
    chosen = {_known(name, every, "switch") for name in given}
    return {system: frozenset(chosen.intersection(names)) for system, names in there.items()}


def with_companions(specs: Sequence[AnySpec]) -> list[AnySpec]:
    """The specifications, each followed by its companions, each once. Raises :class:`Misuse` for a companion that does not exist."""
    known = catalog()
    chosen: dict[str, AnySpec] = {}
    for spec in specs:
        chosen.setdefault(name_of(spec), spec)
        for name in () if isinstance(spec, Spec) else spec.companions:
            companion = _known(name, known, "machine")
            chosen.setdefault(companion, known[companion])
    return list(chosen.values())


def engines(names: Sequence[str]) -> tuple[str, ...]:
    """Engines by name, commas allowed. Raises :class:`Misuse`."""
    single = [part.strip() for name in names for part in name.split(",") if part.strip()]
    if names and not single:
        raise Misuse(f"--engine needs a name: {', '.join(ENGINES)}")
    return tuple(dict.fromkeys(_known(name, ENGINES, "engine") for name in single))


def requirement(machine: str, name: str) -> tuple[AnySpec, str] | None:
    """The specification and the id of its requirement, however it is spelled; ``None`` if the name has not the form of an id.

    Raises :class:`Misuse` if it has, and that specification has no such requirement.
    """
    if "-" not in name or not name[-1].isdigit():
        return None
    (spec,) = some([machine])
    return spec, _known(name, spec.requirements, "requirement")


def event_name(spec: Spec, name: str) -> str:
    """The name of an event class, however it is spelled. Raises :class:`Misuse`."""
    try:
        return event_class(spec.machine, name).__name__
    except WrittenError as error:
        raise Misuse(str(error)) from None


def _known(name: str, known: Iterable[str], what: str) -> str:
    names = list(known)
    for candidate in names:
        if plain(candidate) == plain(name):
            return candidate
    every = "; there are: " + ", ".join(names)
    raise Misuse(f"no {what} {excerpt(name)}{nearest(name, names) or every}")


__all__ = ["Catalog", "catalog", "engines", "event_name", "machines", "one", "requirement", "some", "switches", "system"]
