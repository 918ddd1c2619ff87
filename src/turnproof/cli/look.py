"""``turnproof list``, ``explain`` and ``coverage``: what there is to know of a machine without judging it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from turnproof.checkers.report.model import AnySpec, machines_of, name_of
from turnproof.cli import names
from turnproof.cli.app import SETTINGS, example
from turnproof.cli.files import Output
from turnproof.cli.misuse import Misuse
from turnproof.cli.output import columns, say, say_json
from turnproof.cli.progress import Shown
from turnproof.specs.language import Spec

if TYPE_CHECKING:
    from turnproof.checkers.coverage import Coverage
    from turnproof.checkers.network.coverage import SystemCoverage


@example("turnproof list", "turnproof list --json")
@click.command("list", context_settings=SETTINGS)
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def list_machines(as_json: bool) -> int:
    """Name the machines and systems, with the size of their tables and specifications.

    A large system is verified only if it is named.
    """
    specs, facts, broken = names.catalog(), [], []
    for name in specs.names:
        try:
            facts.append(_facts(specs[name], name in specs.large))
        except Misuse as problem:
            broken.append(str(problem))
    if as_json:
        say_json({"format": "turnproof.list", "version": 1, "machines": facts})
    elif facts:
        say(columns([list(facts[0]), *([str(value) for value in fact.values()] for fact in facts)]))
    if broken:
        raise Misuse("\n".join(broken))
    return 0


def _facts(spec: AnySpec, large: bool) -> dict[str, object]:
    machines = machines_of(spec)
    return {
        "name": name_of(spec),
        "kind": "machine" if isinstance(spec, Spec) else "large system" if large else "system",
        "parts": 1 if isinstance(spec, Spec) else len(spec.system.parts),
        "rows": sum(len(machine.rows) for machine in machines),
        "events": len({event for machine in machines for event in machine.events}),
        "effects": len({effect for machine in machines for effect in machine.effects}),
        "requirements": len(spec.requirements),
        "properties": len(spec.properties),
        "variants": len(spec.variants),
    }


@example(
    "turnproof explain reply_operation",
    "turnproof explain reply_operation AbortRequested",
    "turnproof explain reply_operation abort_requested | less",
    "turnproof explain reply_operation R-REPLY-13",
)
@click.command(context_settings=SETTINGS)
@click.argument("machine")
@click.argument("event", required=False, metavar="[EVENT|REQUIREMENT]")
def explain(machine: str, event: str | None) -> int:
    """Say the table in words: the whole machine, or the rows of one event in their order. Or one requirement: what checks it.

    A system has requirements, but no table of its own.
    """
    requirement = None if event is None else names.requirement(machine, event)
    if requirement is not None:
        from turnproof.checkers.report.requirement import explain_requirement

        say(explain_requirement(*requirement))
        return 0
    spec = names.one(machine)
    name = None if event is None else names.event_name(spec, event)
    from turnproof.checkers import draw

    say(draw.explain(spec.machine, name).rstrip("\n"))
    return 0


@example(
    "turnproof coverage reply_operation",
    "turnproof coverage reply_operation --json coverage.json",
    "turnproof coverage reply_registry --pairs",
)
@click.command(context_settings=SETTINGS)
@click.argument("machine")
@click.option("--json", "json_", type=click.Path(path_type=Path), metavar="FILE", help="Write the figures as JSON; - for standard output.")
@click.option("--pairs", is_flag=True, help="Of a system, also which step may directly follow which.")
def coverage(machine: str, json_: Path | None, pairs: bool) -> int:
    """Show which event was answered how in which phase, over the whole explored graph; of a system, part by part."""
    (spec,) = names.some([machine])
    if pairs and isinstance(spec, Spec):
        raise Misuse(f"--pairs is about systems, and {name_of(spec)} is a machine")
    output = None if json_ is None else Output(json_, "--json")
    if output is not None:
        output.check()
    covered = _covered(spec, pairs)
    if output is None or not output.to_stdout:
        say(covered.text().rstrip("\n"))
    if output is not None:
        output.write(covered.json())
    return 0


def _covered(spec: AnySpec, pairs: bool) -> Coverage | SystemCoverage:
    with Shown() as progress:
        if isinstance(spec, Spec):
            from turnproof.checkers.coverage import coverage as measure
            from turnproof.checkers.graph import explore

            return measure(explore(spec, progress=progress))
        from turnproof.checkers.network import coverage as engine
        from turnproof.checkers.network.explicit import explore as walk

        graph = walk(spec, properties=(), progress=progress)
        return engine.coverage(graph, with_pairs=pairs)


__all__ = ["coverage", "explain", "list_machines"]
