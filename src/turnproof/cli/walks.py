"""Options that say how a system is walked, the same for every command that walks one; and ``turnproof estimate``."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import attrs
import click

from turnproof.checkers.engines import Plan
from turnproof.checkers.report.model import AnySpec, name_of
from turnproof.cli import names
from turnproof.cli.app import SETTINGS, example
from turnproof.cli.files import Output
from turnproof.cli.misuse import Misuse
from turnproof.cli.output import say
from turnproof.cli.progress import Shown
from turnproof.specs.system import SystemSpec

UNITS = {"": 1, "k": 1_000, "m": 1_000_000, "g": 1_000_000_000}


class Bytes(click.ParamType[int]):
    """``500M``, ``2G``, or a number of bytes."""

    name = "bytes"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> int:
        """The number of bytes. A usage error if it is none."""
        if isinstance(value, int):
            return value
        found = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([kmg]?)b?", str(value).strip().lower())
        size = int(float(found[1]) * UNITS[found[2]]) if found else 0
        return size if size > 0 else self.fail(f"{value!r} is no amount of memory, expected for example 500M or 2G", param, ctx)


OPTIONS = (
    click.option("--without", multiple=True, metavar="SWITCH", help="Systems: turn this power of the environment off; may be repeated."),
    click.option("--symmetry", is_flag=True, help="Systems: one state for all that differ by an exchange of interchangeable pieces."),
    click.option("--max-states", type=click.IntRange(min=1), help="Systems: end the walk at so many states: UNDETERMINED."),
    click.option(
        "--max-seconds",
        type=click.FloatRange(min=0, min_open=True),
        help="End the walk over a system, and every engine on a machine, after so long: UNDETERMINED.",
    ),
    click.option("--max-memory", type=Bytes(), metavar="BYTES", help="Systems: end the walk at 500M, 2G, ...: UNDETERMINED."),
)


@attrs.frozen(kw_only=True)
class Walking:
    """What the options say."""

    without: tuple[str, ...] = ()
    symmetry: bool = False
    states: int | None = None
    seconds: float | None = None
    memory: int | None = None

    @property
    def asked(self) -> str:
        """One option about systems alone that was given; empty if none was."""
        given = {
            "--without": self.without, "--symmetry": self.symmetry, "--max-states": self.states, "--max-memory": self.memory,
        }  # fmt: skip
        return next((name for name, value in given.items() if value), "")

    def plans(self, specs: Sequence[AnySpec], plans: Sequence[Plan]) -> list[Plan]:
        """The plans with what was asked of their systems. Raises :class:`Misuse` where it can be asked of none."""
        systems = [spec for spec in specs if isinstance(spec, SystemSpec)]
        if self.asked and not systems:
            raise Misuse(f"{self.asked} is about systems, and none is named: {', '.join(names.catalog().systems)}")
        off = self.off(systems)
        if self.symmetry and not any(spec.interchangeable for spec in systems):
            raise Misuse(f"--symmetry: {', '.join(map(name_of, systems))} names nothing that is interchangeable")
        timed = [attrs.evolve(plan, seconds=self.seconds) for plan in plans]
        return [self._plan(spec, plan, off) if isinstance(spec, SystemSpec) else plan for spec, plan in zip(specs, timed, strict=True)]

    def off(self, systems: Sequence[AnySpec]) -> Mapping[str, frozenset[str]]:
        """System -> its switches that are turned off."""
        return names.switches(systems, self.without)

    def _plan(self, spec: SystemSpec, plan: Plan, off: Mapping[str, frozenset[str]]) -> Plan:
        limits: dict[str, Any] = {"states": self.states, "memory": self.memory}
        return attrs.evolve(plan, off=off[spec.system.name], symmetry=self.symmetry and bool(spec.interchangeable), **limits)


def walking(command: Callable[..., int]) -> Callable[..., int]:
    """Give a command the options; it gets them as ``walk``."""

    @functools.wraps(command)
    def called(
        *given: Any,
        without: tuple[str, ...],
        symmetry: bool,
        max_states: int | None,
        max_seconds: float | None,
        max_memory: int | None,
        **more: Any,
    ) -> int:
        walk = Walking(without=without, symmetry=symmetry, states=max_states, seconds=max_seconds, memory=max_memory)
        return command(*given, walk=walk, **more)

    for option in reversed(OPTIONS):
        called = option(called)
    return called


@example(
    "turnproof estimate recovery_system                          how large it is, before a long run",
    "turnproof estimate recovery_system --seconds 20 --without 'a person aborts'",
)
@click.command(context_settings=SETTINGS)
@click.argument("system")
@click.option("--seconds", type=click.FloatRange(min=0, min_open=True), default=5.0, show_default=True, help="How long to walk.")
@click.option("--without", multiple=True, metavar="SWITCH", help="Turn this power of the environment off; may be repeated.")
@click.option("--json", "json_", type=click.Path(path_type=Path), metavar="FILE", help="Write the figures as JSON; - for standard output.")
def estimate(system: str, seconds: float, without: Sequence[str], json_: Path | None) -> int:
    """Walk a system for a moment and say how large it seems: states, time and memory of a whole walk.

    What was found is a lower bound; what is more than that is a guess from the growth of the levels, and says so.
    """
    spec = names.system(system)
    off = names.switches([spec], without)[spec.system.name]
    output = None if json_ is None else Output(json_, "--json")
    if output is not None:
        output.check()
    from turnproof.checkers.network.estimate import estimate as measure

    with Shown() as progress:
        found = measure(spec, off=off, seconds=seconds, progress=progress)
    if output is None or not output.to_stdout:
        say(found.text())
    if output is not None:
        output.write(found.json())
    return 0


__all__ = ["Walking", "estimate", "walking"]
