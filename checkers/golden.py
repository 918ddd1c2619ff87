"""Golden numbers: how large each machine is, and how short its shortest runs are. A changed number is a diff to review.

The manifest is TOML, one table a machine. ``states`` are distinct states of the machine; ``nodes`` tell apart the values of history
variables too. The lengths of variants are those that the specification states; the explicit engine checks them.
"""

from __future__ import annotations

import json
import re
import time
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from turnproof.checkers.graph import Graph
from turnproof.checkers.judge import Judge
from turnproof.checkers.verdict import Engine, Outcome, Verdict
from turnproof.machines.kernel import TableError
from turnproof.specs.language import Property, Said, Sometimes, Spec
from turnproof.specs.system import SystemSpec

if TYPE_CHECKING:
    from turnproof.checkers.network.explicit import NetworkGraph

MANIFEST = Path(__file__).resolve().parent.parent / "specs" / "manifest.toml"
HEADER = "# Golden numbers of every exploration. Written by `turnproof golden --update`; review every changed number.\n"
CHECK = "the golden numbers are unchanged"
UPDATE = "`make golden` writes it again, for review"

Numbers = Mapping[str, "int | Numbers"]


def measure(spec: Spec, graph: Graph) -> dict[str, int | Numbers]:
    """The golden numbers of one exploration."""
    judge = Judge(graph)
    reached = {prop.name: judge.witness(prop) for prop in spec.properties if isinstance(prop, Sometimes)}
    variants = {variant.machine.name: dict(variant.violates) for variant in spec.variants}
    return {
        "tokens": spec.tokens,
        "counter": spec.counter,
        "states": len(set(graph.states[: graph.explored])),
        "nodes": graph.explored,
        "taken": graph.answers(Said.TAKEN),
        "ignored": graph.answers(Said.IGNORED),
        "refused": graph.answers(Said.REFUSED),
        "beyond_counter": graph.cut,
        "depth": int(graph.depth[: graph.explored].max()),
        "reached": {name: story.length for name, story in reached.items() if story is not None},
        "variants": variants,
    }


def check_golden(spec: Spec, graph: Graph, manifest: Path = MANIFEST) -> list[Verdict]:
    """Whether the numbers are those of the manifest. Raises :class:`TableError` if it is no TOML."""
    return _compared(spec.machine.name, measure(spec, graph), f"{graph.explored:,} states against {manifest.name}", manifest)


def update_golden(spec: Spec, graph: Graph, manifest: Path = MANIFEST) -> bool:
    """Write the numbers of one machine into the manifest, leaving the others; whether anything changed."""
    return _update(spec.machine.name, measure(spec, graph), manifest)


# ── systems ──


def numbered(spec: SystemSpec) -> tuple[Property, ...]:
    """The properties that golden numbers need a walk to ask about."""
    return tuple(prop for prop in spec.properties if isinstance(prop, Sometimes))


def measure_system(spec: SystemSpec, graph: NetworkGraph) -> dict[str, int | Numbers]:
    """The golden numbers of a whole walk over a system. ``steps`` are steps of the system, stutters included."""
    from turnproof.checkers.network.questions import REACHED

    walk = graph.walk
    reached = {prop.name: walk.hits.get((REACHED, prop.name, 0)) for prop in numbered(spec)}
    return {
        "tokens": spec.tokens,
        "counter": spec.counter,
        "states": walk.states,
        "steps": walk.transitions,
        "beyond_counter": walk.cut,
        "depth": walk.depth,
        "reached": {name: len(trace()) for name, trace in reached.items() if trace is not None},
        "variants": {variant.system.name: dict(variant.violates) for variant in spec.variants},
    }


def check_system_golden(spec: SystemSpec, graph: NetworkGraph, manifest: Path = MANIFEST) -> list[Verdict]:
    """As :func:`check_golden`. A walk cut short has no numbers: UNDETERMINED."""
    from turnproof.checkers.network.explicit import cut_short

    walk, name = graph.walk, spec.system.name
    how = f"{walk.states:,} states against {manifest.name}"
    if not walk.complete or walk.flaws:
        return [Verdict(machine=name, check=CHECK, engine=Engine.GOLDEN, outcome=Outcome.UNDETERMINED, how=how, detail=cut_short(graph))]
    return _compared(name, measure_system(spec, graph), how, manifest)


def update_system_golden(spec: SystemSpec, graph: NetworkGraph, manifest: Path = MANIFEST) -> bool:
    """As :func:`update_golden`. Raises :class:`TableError` if the walk was cut short."""
    from turnproof.checkers.network.explicit import cut_short

    if not graph.walk.complete or graph.walk.flaws:
        raise TableError(f"system {spec.system.name} has no golden numbers: {cut_short(graph)}")
    return _update(spec.system.name, measure_system(spec, graph), manifest)


# ── the manifest ──


def _compared(name: str, found: Numbers, how: str, manifest: Path) -> list[Verdict]:
    started = time.perf_counter()
    known = read_manifest(manifest).get(name)
    if known is None:
        wrong = [f"{manifest.name} has no table [{name}]"]
    elif isinstance(known, int):
        wrong = [f"{manifest.name}: {name} is a number, expected a table"]
    else:
        wrong = _differences(known, found, "")
    return [
        Verdict(
            machine=name,
            check=CHECK,
            engine=Engine.GOLDEN,
            outcome=Outcome.VIOLATED if wrong else Outcome.HOLDS,
            how=how,
            detail="; ".join(wrong) + f"; {UPDATE}" if wrong else "",
            seconds=time.perf_counter() - started,
        )
    ]


def _update(name: str, numbers: Numbers, manifest: Path) -> bool:
    before = manifest.read_text(encoding="utf-8") if manifest.exists() else ""
    every = {**read_manifest(manifest), name: numbers}
    text = HEADER + "".join(_written(one, every[one]) for one in sorted(every))
    if text != before:
        manifest.write_text(text, encoding="utf-8")
    return text != before


def read_manifest(manifest: Path) -> Numbers:
    """Machine -> its numbers; empty if there is no such file. Raises :class:`TableError` if it is no TOML or holds more than numbers."""
    try:
        read = tomllib.loads(manifest.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise TableError(f"{manifest}: not TOML: {error}") from None
    return _numbers(read, str(manifest))


def _numbers(read: Mapping[str, object], place: str) -> Numbers:
    made: dict[str, int | Numbers] = {}
    for name, value in read.items():
        if isinstance(value, dict):
            made[name] = _numbers(value, f"{place}: {name}")
        elif isinstance(value, int) and not isinstance(value, bool):
            made[name] = value
        else:
            raise TableError(f"{place}: {name} is {value!r}, expected a number or a table of numbers")
    return made


def _differences(known: Numbers, found: Numbers, prefix: str) -> list[str]:
    wrong = []
    for name in dict.fromkeys((*known, *found)):
        before, after = known.get(name), found.get(name)
        if isinstance(before, Mapping) and isinstance(after, Mapping):
            wrong += _differences(before, after, f"{prefix}{name}: ")
        elif before != after:
            wrong.append(f"{prefix}{name}: {_shown(before)} -> {_shown(after)}")
    return wrong


def _shown(value: int | Numbers | None) -> str:
    return "nothing" if value is None else "a table" if isinstance(value, Mapping) else f"{value:,}"


def _written(name: str, numbers: int | Numbers) -> str:
    """A table and the tables inside it."""
    if isinstance(numbers, int):
        return f"{name} = {numbers}\n"
    inner = {key: value for key, value in numbers.items() if isinstance(value, Mapping)}
    lines = [f"{_key(key)} = {value}\n" for key, value in numbers.items() if isinstance(value, int)]
    head = f"\n[{name}]\n" if lines or not inner else ""
    return head + "".join(lines) + "".join(_written(f"{name}.{_key(key)}", value) for key, value in inner.items())


def _key(name: str) -> str:
    """A bare key where TOML allows one, else a quoted one; JSON escapes are a subset of TOML's."""
    return name if re.fullmatch(r"[A-Za-z0-9_-]+", name) else json.dumps(name, ensure_ascii=False)


__all__ = [
    "MANIFEST",
    "check_golden",
    "check_system_golden",
    "measure",
    "measure_system",
    "numbered",
    "read_manifest",
    "update_golden",
    "update_system_golden",
]
