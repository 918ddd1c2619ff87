"""The engines on a system of machines: what is walked, with which bounds, and what one walk answers for several engines."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from turnproof.checkers.jobs import Findings
from turnproof.checkers.progress import Progress
from turnproof.checkers.report.locate import project_root
from turnproof.checkers.report.model import NO_VARIANT, Size
from turnproof.checkers.verdict import Engine, Outcome, Verdict
from turnproof.machines.kernel import TableError
from turnproof.specs.system import SystemSpec

if TYPE_CHECKING:
    from turnproof.checkers.engines import Plan
    from turnproof.checkers.network.explicit import NetworkGraph


def explicit(spec: SystemSpec, plan: Plan, progress: Progress) -> Findings:
    """Walk the system once; the golden numbers are compared on the way where they are asked for."""
    from turnproof.checkers.network import explicit as engine
    from turnproof.checkers.network.coverage import coverage
    from turnproof.checkers.network.walk import INTERRUPT

    graph = engine.explore(
        spec, off=plan.off, symmetry=plan.symmetry, limit=plan.states, seconds=plan.seconds, memory=plan.memory, progress=progress
    )
    walk = graph.walk
    golden = plan.wanted("golden") and not no_golden(spec, plan)
    return Findings(
        engine.check(spec, graph, progress=progress),
        Size(walk.states, walk.transitions, walk.depth, representatives=graph.symmetry is not None),
        also={"golden": _compared(spec, graph)} if golden else {},
        coverage=coverage(graph),
        interrupted=walk.why == INTERRUPT,
    )


def _compared(spec: SystemSpec, graph: NetworkGraph) -> list[Verdict]:
    """The golden numbers; a manifest that cannot be read leaves them open, and nothing else."""
    from turnproof.checkers.golden import CHECK, check_system_golden

    try:
        return check_system_golden(spec, graph, manifest_path())
    except TableError as problem:
        why = " ".join(str(problem).split())
        return [
            Verdict(
                machine=spec.system.name, check=CHECK, engine=Engine.GOLDEN, outcome=Outcome.UNDETERMINED, how="not compared", detail=why
            )
        ]


def variants(spec: SystemSpec, plan: Plan, progress: Progress) -> list[Verdict]:
    """Whether each variant fails as it should."""
    from turnproof.checkers.network import explicit as engine

    return engine.check_variants(spec, limit=plan.states, progress=progress)


def golden(spec: SystemSpec, plan: Plan, progress: Progress) -> list[Verdict]:
    """The golden numbers alone."""
    from turnproof.checkers.golden import check_system_golden, numbered
    from turnproof.checkers.network import explicit as engine

    graph = engine.explore(spec, properties=numbered(spec), limit=plan.states, seconds=plan.seconds, memory=plan.memory, progress=progress)
    return check_system_golden(spec, graph, manifest_path())


def diagram(spec: SystemSpec, plan: Plan, progress: Progress) -> list[Verdict]:
    """Whether the committed picture of the system is that of its wiring."""
    from turnproof.checkers.draw import stale_system

    return stale_system(spec, diagrams_path() or Path("diagrams"))


def no_variants(spec: SystemSpec, plan: Plan) -> str:
    """Why the variants are not asked."""
    if not spec.variants:
        return NO_VARIANT
    return "their lengths are those with every switch on" if plan.off else ""


def no_golden(spec: SystemSpec, plan: Plan) -> str:
    """Why the golden numbers are not compared."""
    if plan.off:
        return "its numbers are those with every switch on"
    return "its numbers are those of every state, not of representatives" if plan.symmetry else ""


def no_checkout(spec: SystemSpec, plan: Plan) -> str:
    """Why pictures are not compared."""
    return "" if diagrams_path() is not None else "installed without diagrams"


def nothing(spec: SystemSpec, plan: Plan) -> str:
    """Nothing keeps it from running."""
    return ""


def manifest_path() -> Path:
    """The file of golden numbers."""
    from turnproof import specs

    return Path(specs.__path__[0]).resolve() / "manifest.toml"


def diagrams_path() -> Path | None:
    """The folder of generated diagrams; None for an installed wheel."""
    root = project_root()
    return None if root is None else root / "diagrams"


__all__ = [
    "diagram", "diagrams_path", "explicit", "golden", "manifest_path", "no_checkout", "no_golden", "no_variants", "nothing", "variants",
]  # fmt: skip
