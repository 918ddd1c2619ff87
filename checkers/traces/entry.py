"""The one entry: streams that are followed with unseen steps go to ``stream``, everything else to ``run``."""

from __future__ import annotations

import time
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import cast

import attrs

from turnproof.checkers.progress import SILENT, Progress
from turnproof.checkers.traces import run
from turnproof.checkers.traces.report import ReplayReport
from turnproof.checkers.traces.stream import replay_stream
from turnproof.machines.kernel import Machine
from turnproof.specs.language import AnyMachine, Spec
from turnproof.traces.files import in_order, lines_of
from turnproof.traces.line import LineProblem, TraceError, close_to, decode
from turnproof.traces.source import recognise
from turnproof.traces.source import source as named_source
from turnproof.traces.stream import StreamSource, is_stream


def replay(
    machine_or_spec: AnyMachine | Spec,
    path: Path | Sequence[Path],
    *,
    source: str | None = None,
    variant: str | None = None,
    allow: Collection[str] = (),
    unobserved: Collection[str] = (),
    progress: Progress | None = None,
) -> ReplayReport:
    """Judge a log, a recording or a stream; see :func:`turnproof.checkers.traces.run.replay`."""
    paths = in_order((path,) if isinstance(path, Path) else tuple(path))
    found = _stream(paths, source)
    if found is None or isinstance(machine_or_spec, Machine):
        return run.replay(machine_or_spec, path, source=source, variant=variant, allow=allow, unobserved=unobserved, progress=progress)
    if found.machine != machine_or_spec.machine.name:
        raise TraceError(f"{paths[0]}: is {found.program}, which is about {found.machine}, not {machine_or_spec.machine.name}")
    if allow or unobserved:
        raise TraceError(f"{found.program} says itself what it leaves out: allow and unobserved are for trace lines")
    started = time.perf_counter()
    report = replay_stream(machine_or_spec, paths, found, _design(machine_or_spec, variant, found), progress or SILENT)
    return attrs.evolve(report, seconds=time.perf_counter() - started)


def _stream(paths: Sequence[Path], name: str | None) -> StreamSource | None:
    if name in ("trace", "turnproof") or not paths:
        return None
    found = named_source(name) if name is not None else recognise(_first(paths))
    return cast(StreamSource, found) if is_stream(found) else None


def _first(paths: Sequence[Path]) -> object:
    """The first line that can be decoded at all; None if there is none."""
    for path in paths:
        for some in lines_of(path):
            for line in some.data:
                if line.strip():
                    try:
                        return decode(line)
                    except LineProblem:
                        return None
    return None


def _design(spec: Spec, name: str | None, source: StreamSource) -> AnyMachine | None:
    if name is None:
        return None
    designs = {spec.machine.name: spec.machine} | {v.machine.name: v.machine for v in spec.variants}
    other = {"target": spec.machine} | {n.removeprefix(f"{spec.machine.name}_"): machine for n, machine in designs.items()}
    if source.variant in designs:
        other["shipped"] = designs[source.variant]
    known = other | designs
    if name not in known:
        raise TraceError(
            f"{spec.machine.name} has no variant {name!r}{close_to(name, known) or '; it has ' + ', '.join(('target', *designs))}"
        )
    return known[name]


__all__ = ["replay"]
