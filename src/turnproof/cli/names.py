"""From the names on the command line to machines, events and engines."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from turnproof.checkers.engines import ENGINES
from turnproof.checkers.report.model import AnySpec
from turnproof.checkers.written import WrittenError, event_class, excerpt, nearest, plain
from turnproof.cli.misuse import Misuse, broken_table
from turnproof.specs.language import Spec


def catalog() -> Mapping[str, AnySpec]:
    """Every specification, of machines first, then of systems. Raises :class:`Misuse` if one is written wrongly."""
    try:
        from turnproof.specs import catalog as known

        return {**known.specifications(), **known.systems()}
    except Exception as problem:
        raise Misuse(broken_table(problem)) from problem


def one(name: str) -> Spec:
    """The specification of that machine. Raises :class:`Misuse`; a system is no machine."""
    (spec,) = machines([name])
    return spec


def machines(names: Sequence[str]) -> list[Spec]:
    """The specifications of those machines, each once; of all machines, but no system, if none is named. Raises :class:`Misuse`."""
    specs = catalog()
    alone = {name: spec for name, spec in specs.items() if isinstance(spec, Spec)}
    for name in names:
        found = _known(name, specs, "machine")
        if found not in alone:
            raise Misuse(f"{found} is a system of machines, expected a machine: {', '.join(alone)}")
    return [alone[name] for name in dict.fromkeys(_known(n, alone, "machine") for n in names)] if names else list(alone.values())


def some(names: Sequence[str]) -> list[AnySpec]:
    """The specifications of those machines and systems, each once; all of them if none is named. Raises :class:`Misuse`."""
    specs = catalog()
    chosen = [_known(name, specs, "machine") for name in names] or list(specs)
    return [specs[name] for name in dict.fromkeys(chosen)]


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


__all__ = ["catalog", "engines", "event_name", "machines", "one", "requirement", "some"]
