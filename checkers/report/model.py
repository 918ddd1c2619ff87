"""What one run showed. Every form of the report, text and machine-readable, is a function of these classes alone."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

import attrs

from turnproof.checkers.verdict import Outcome, Story, Verdict, exit_status
from turnproof.machines.kernel import show
from turnproof.specs.language import AnyMachine, Property, Spec
from turnproof.specs.system import SystemSpec

if TYPE_CHECKING:
    from turnproof.checkers.network.coverage import SystemCoverage

AnySpec = Spec | SystemSpec
"""What can be verified: the specification of a machine, or of a system of machines."""

NO_VARIANT = "the specification names no variant"
NO_RECORDING = "the specification names no recording"
MACHINES_ONLY = "reads single machines only"
NO_INVARIANT = "the specification has no property of states or steps that could be proved"
NOTHING_TO_DO = frozenset({NO_VARIANT, NO_RECORDING, MACHINES_ONLY, NO_INVARIANT})
"""Why an engine has no question to answer. Whatever else keeps one from running leaves a question open."""

VIOLATED, LOST = 1, 2
"""Exit statuses: something does not hold; the process of an engine died, so part of the run is missing."""
WORST_FIRST = (Outcome.VIOLATED, Outcome.UNDETERMINED, Outcome.HOLDS)


@attrs.frozen
class Size:
    """The explored graph in figures."""

    states: int
    steps: int
    """Pairs of state and event that were tried."""
    depth: int
    """Length of the longest of all shortest runs."""
    taken: int | None = None
    """How many steps were taken; the others were ignored or refused. None for a system, where a step may be many answers."""
    representatives: bool = False
    """Whether ``states`` counts one for all that differ by an exchange of what is interchangeable."""


@attrs.frozen(kw_only=True, eq=False)
class MachineReport:
    """Everything that one run says of one specification."""

    spec: AnySpec
    verdicts: tuple[Verdict, ...]
    size: Size | None = None
    """None where the exploration did not finish."""
    timings: Mapping[str, float] = attrs.field(factory=dict)
    """Engine -> seconds of wall-clock time. Engines run side by side, so the sum exceeds ``seconds``."""
    not_run: Mapping[str, str] = attrs.field(factory=dict)
    """Engine -> why it did not run. What it would have shown is not claimed."""
    seconds: float = 0.0
    certificate: str = ""
    """Path of the certificate that was written; empty if none was."""
    coverage: SystemCoverage | None = None
    """What the walk over a system passed through; None for a machine (``turnproof coverage`` tells)."""
    off: tuple[str, ...] = ()
    """Switches of a system's environment that were turned off."""
    lost: Mapping[str, str] = attrs.field(factory=dict)
    """Engine -> how its process died before it had an answer."""
    remarks: tuple[str, ...] = ()
    """What engines noticed that is no failure: conditions of guards that decide nothing."""
    untouched: bool = False
    """An interrupt came before any engine had an answer."""

    @property
    def name(self) -> str:
        """The name of the machine or system."""
        return name_of(self.spec)

    @property
    def left_open(self) -> tuple[str, ...]:
        """Engines that did not run although they had something to check."""
        return tuple(engine for engine, why in self.not_run.items() if why not in NOTHING_TO_DO)

    @property
    def rows(self) -> int:
        """Rows of the table; of a system, of all its machines together."""
        return sum(len(machine.rows) for machine in machines_of(self.spec))

    @property
    def events(self) -> int:
        """Classes of events; of a system, those of all its machines."""
        return len({event for machine in machines_of(self.spec) for event in machine.events})

    @property
    def bounds(self) -> str:
        """The bounds of the exploration, and the assumption about the environment, in words."""
        assume = f"; assuming {show(self.spec.assume)}" if isinstance(self.spec, Spec) and self.spec.assume is not None else ""
        without = f"; without {', '.join(self.off)}" if self.off else ""
        return f"{self.spec.tokens} tokens besides nobody, counters to {self.spec.counter}{assume}{without}"

    def of_property(self, prop: Property) -> tuple[Verdict, ...]:
        """What the engines said of one property."""
        return tuple(v for v in self.verdicts if v.check == prop.name and v.machine == self.name)

    def other_checks(self) -> tuple[Verdict, ...]:
        """Verdicts about this machine that are not about a property: the table itself, golden numbers, diagrams."""
        names = {prop.name for prop in self.spec.properties}
        return tuple(v for v in self.verdicts if v.check not in names and v.machine == self.name)

    def of_variants(self) -> tuple[Verdict, ...]:
        """Verdicts about historic variants: each holds if the variant fails as it should."""
        return tuple(v for v in self.verdicts if v.machine != self.name)

    def of_requirement(self, requirement: str) -> tuple[Verdict, ...]:
        """Every verdict about this machine that counts for a requirement."""
        names = {prop.name for prop in self.properties_of(requirement)}
        return tuple(v for v in self.verdicts if v.machine == self.name and (v.check in names or requirement in v.requirements))

    def counterexamples(self, *, every_route: bool = False) -> tuple[Story, ...]:
        """The stories of what does not hold; with ``every_route`` also those of the same failure by other routes."""
        bad = [v for v in self.verdicts if v.outcome is not Outcome.HOLDS and v.story is not None]
        return tuple(s for v in bad for s in (v.story, *(v.others if every_route else ())) if s is not None)

    def properties_of(self, requirement: str) -> tuple[Property, ...]:
        """The properties that discharge a requirement."""
        return tuple(p for p in self.spec.properties if requirement in p.requirements)


@attrs.frozen(kw_only=True, eq=False)
class RunReport:
    """One run: every machine that was checked."""

    machines: tuple[MachineReport, ...]
    version: str
    """The version of turnproof."""
    started: str
    """ISO 8601, in UTC."""
    seconds: float

    @property
    def verdicts(self) -> tuple[Verdict, ...]:
        """All verdicts of the run."""
        return tuple(v for m in self.machines for v in m.verdicts)

    @property
    def status(self) -> int:
        """The exit status. A run without a verdict is undetermined: nothing was checked. One that lost a process could not be made, 2."""
        found = exit_status(self.verdicts) if self.verdicts else 3
        return LOST if found != VIOLATED and any(machine.lost for machine in self.machines) else found

    @property
    def outcome(self) -> Outcome:
        """The worst outcome of the run."""
        return {0: Outcome.HOLDS, VIOLATED: Outcome.VIOLATED}.get(self.status, Outcome.UNDETERMINED)


def worst(verdicts: Iterable[Verdict]) -> Outcome | None:
    """The worst outcome of some verdicts; None if there is none."""
    found = {v.outcome for v in verdicts}
    return next((o for o in WORST_FIRST if o in found), None)


def counted(verdicts: Iterable[Verdict]) -> dict[Outcome, int]:
    """Outcome -> how many verdicts."""
    made = dict.fromkeys(Outcome, 0)
    for verdict in verdicts:
        made[verdict.outcome] += 1
    return made


def name_of(spec: AnySpec) -> str:
    """The name of a machine or system, as the command line calls it."""
    return str(spec.machine.name if isinstance(spec, Spec) else spec.system.name)


def machines_of(spec: AnySpec) -> tuple[AnyMachine, ...]:
    """The machine, or the machines that a system is made of, each once."""
    return (spec.machine,) if isinstance(spec, Spec) else tuple(dict.fromkeys(part.machine for part in spec.system.everyone))


def harm_of(spec: AnySpec, check: str) -> str:
    """The harm that a property names; empty if the check is no property or names none."""
    return next((p.harm for p in spec.properties if p.name == check), "")


__all__ = [
    "MACHINES_ONLY",
    "NOTHING_TO_DO",
    "NO_RECORDING",
    "NO_VARIANT",
    "WORST_FIRST",
    "AnySpec",
    "MachineReport",
    "RunReport",
    "Size",
    "counted",
    "harm_of",
    "machines_of",
    "name_of",
    "worst",
]
