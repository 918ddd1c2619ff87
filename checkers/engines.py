"""The engines by name: what each is called on the command line, how it is run, and where it cannot run.

This module knows the engines' signatures and no machine. An engine is imported when it runs, so that a command that needs one
does not pay for all.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import attrs

from turnproof.checkers import system_engines
from turnproof.checkers.jobs import Findings
from turnproof.checkers.progress import Progress
from turnproof.checkers.report.locate import project_root
from turnproof.checkers.report.model import MACHINES_ONLY, NO_INVARIANT, NO_RECORDING, NO_VARIANT, AnySpec
from turnproof.checkers.system_engines import diagrams_path, manifest_path
from turnproof.checkers.verdict import Engine, Verdict
from turnproof.specs.language import Always, Spec, Step
from turnproof.specs.system import SystemSpec

if TYPE_CHECKING:
    from turnproof.checkers.graph import Graph

STEPS = 20_000
"""Most steps of the sampled runs against the shell, unless a number is asked for."""
STEPS_A_ROW = 60
"""A table is sampled in proportion to its rows: the shell is the same for all of them."""


@attrs.frozen(kw_only=True)
class Plan:
    """Which engines run, and with what."""

    engines: tuple[str, ...] = ()
    """Names from :data:`ENGINES`; empty: all of them."""
    certificate: Path | None = None
    """Where the certificate of the proofs is written; None: nowhere."""
    steps: int | None = None
    """Steps of the sampled runs; None: in proportion to the table."""
    seed: int | None = None
    left_out: Mapping[str, str] = attrs.field(factory=dict)
    """Engine -> why it is left out, for the report."""
    off: frozenset[str] = frozenset()
    """Switches of a system's environment that are turned off."""
    symmetry: bool = False
    """Walk one state of a system for all that differ by an exchange of what is interchangeable."""
    states: int | None = None
    seconds: float | None = None
    memory: int | None = None
    """Where the walk over a system ends although it is not done: so many states, seconds, bytes. None: never for that reason.
    ``seconds`` ends the exploration of a machine too, and every engine on it."""

    def wanted(self, engine: str) -> bool:
        """Whether the engine is to run."""
        return engine not in self.left_out and (not self.engines or engine in self.engines)


Run = Callable[[Spec, "Graph", Plan, Progress], "list[Verdict] | Findings"]
RunSystem = Callable[[SystemSpec, Plan, Progress], "list[Verdict] | Findings"]


@attrs.frozen
class EngineEntry:
    """One engine as the command line names it."""

    run: Run
    speaks: Engine
    """The name under which its failure is reported."""
    about: str
    needs: Callable[[Spec], str] = lambda spec: ""
    """Why it cannot run on this specification or in this place; empty if it can."""
    reads_graph: bool = True
    """Whether it needs the explored graph of the machine."""
    run_system: RunSystem | None = None
    """The same for a system of machines; None where there is no such engine."""
    needs_of_system: Callable[[SystemSpec, Plan], str] = system_engines.nothing
    """As ``needs``, for a system."""
    within: str = ""
    """The engine that answers for this one as well, on a system, where both run."""

    def cannot(self, spec: AnySpec, plan: Plan) -> str:
        """Why it cannot run on ``spec``; empty if it can."""
        if isinstance(spec, Spec):
            return self.needs(spec)
        return MACHINES_ONLY if self.run_system is None else self.needs_of_system(spec, plan)


def _explicit(spec: Spec, graph: Graph, plan: Plan, progress: Progress) -> Findings:
    from turnproof.checkers import explicit
    from turnproof.checkers.conjuncts import idle_conjuncts

    return Findings(explicit.check(spec, graph, progress=progress), None, remarks=tuple(map(str, idle_conjuncts(graph))))


def _variants(spec: Spec, graph: Graph, plan: Plan, progress: Progress) -> list[Verdict]:
    from turnproof.checkers import explicit

    return explicit.check_variants(spec, progress=progress)


def _symbolic(spec: Spec, graph: Graph, plan: Plan, progress: Progress) -> list[Verdict]:
    from turnproof.checkers import smt

    return smt.check(spec, graph, certificate=plan.certificate, progress=progress)


def _symbolic_of_system(spec: SystemSpec, plan: Plan, progress: Progress) -> list[Verdict]:
    from turnproof.checkers import smt_network

    return smt_network.check(spec, certificate=plan.certificate, progress=progress)


def _not_unasked(spec: SystemSpec, plan: Plan) -> str:
    """Why a system is not proved."""
    if plan.off:
        return "it proves with every switch on"
    if not any(isinstance(prop, Always | Step) for prop in spec.properties):
        return NO_INVARIANT
    if not spec.proved and "symbolic" not in plan.engines:
        return "its proof may take minutes, or not be found: ask for it by --engine symbolic"
    return ""


def _stateful(spec: Spec, graph: Graph, plan: Plan, progress: Progress) -> list[Verdict]:
    from turnproof.checkers import stateful

    steps = min(STEPS, STEPS_A_ROW * len(spec.machine.rows)) if plan.steps is None else plan.steps
    return stateful.check(spec, steps=steps, seed=plan.seed, progress=progress)


def _golden(spec: Spec, graph: Graph, plan: Plan, progress: Progress) -> list[Verdict]:
    from turnproof.checkers import golden

    return golden.check_golden(spec, graph, manifest_path())


def _diagram(spec: Spec, graph: Graph, plan: Plan, progress: Progress) -> list[Verdict]:
    from turnproof.checkers import draw

    return draw.stale(spec, graph, diagrams_path() or Path("diagrams"))


def _traces(spec: Spec, graph: Graph, plan: Plan, progress: Progress) -> list[Verdict]:
    from turnproof.checkers import traces

    root = project_root() or Path()
    reports = [traces.replay(spec, root / path, variant=design, progress=progress) for path, design in spec.recordings.items()]
    return [verdict for report in reports for verdict in report.verdicts]


def _no_recordings(spec: Spec) -> str:
    if not spec.recordings:
        return NO_RECORDING
    return "" if project_root() is not None else "installed without recordings"


def _no_variants(spec: Spec) -> str:
    return "" if spec.variants else NO_VARIANT


def _no_checkout(spec: Spec) -> str:
    return "" if diagrams_path() is not None else "installed without diagrams"


ENGINES: Mapping[str, EngineEntry] = {
    "symbolic": EngineEntry(
        _symbolic,
        Engine.SYMBOLIC,
        "proofs for any length of run and any count, re-checked; agreement of the readings; shadowed rows",
        run_system=_symbolic_of_system,
        needs_of_system=_not_unasked,
    ),
    "explicit": EngineEntry(
        _explicit,
        Engine.EXPLICIT,
        "the whole graph within the bounds: every property, totality, dead rows, timers, vacuity",
        run_system=system_engines.explicit,
    ),
    "variants": EngineEntry(
        _variants,
        Engine.EXPLICIT,
        "every historic variant violates what it must, at its recorded length",
        _no_variants,
        reads_graph=False,
        run_system=system_engines.variants,
        needs_of_system=system_engines.no_variants,
    ),
    "stateful": EngineEntry(_stateful, Engine.STATEFUL, "random runs of the real shell under a virtual clock", reads_graph=False),
    "traces": EngineEntry(
        _traces, Engine.TRACES, "recordings of real programs are explained to the last call", _no_recordings, reads_graph=False
    ),
    "diagram": EngineEntry(
        _diagram,
        Engine.DIAGRAM,
        "the committed pictures and tables are those of the table",
        _no_checkout,
        run_system=system_engines.diagram,
        needs_of_system=system_engines.no_checkout,
    ),
    "golden": EngineEntry(
        _golden,
        Engine.GOLDEN,
        "states, transitions and depth are those of the manifest",
        run_system=system_engines.golden,
        needs_of_system=system_engines.no_golden,
        within="explicit",
    ),
}
"""Name -> engine. The longest comes first, so that two workers end at about the same time."""

QUICK = ("explicit", "golden")
"""The engines of ``--quick``."""


__all__ = ["ENGINES", "QUICK", "STEPS", "STEPS_A_ROW", "EngineEntry", "Findings", "Plan", "diagrams_path", "manifest_path"]
