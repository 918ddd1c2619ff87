"""Whole searches beside SPIN, Rumur and TLC, in one run: time end to end, states a second, peak memory.

Every contestant searches every reachable state and checks the safety properties of states, on one thread unless its name says
otherwise. The peers are given two-phase commit as a person who knows their language writes it (``benchmarks/models``), everything
else as this project writes it for them. Counts must be equal, or the run stops.

``end to end`` begins with the text of the model, or with the start of the interpreter, and includes every compilation; our kernel
is in its cache on disk, as after the first run of any model. ``search`` is what the program itself says of its search. The contestants
take turns, round by round, and processor time stands beside the time on the wall, because the machine may have other work.
"""

from __future__ import annotations

import platform
import re
import shutil
import statistics
import subprocess
import tempfile
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

import attrs

from benchmarks.contestants import Run, contestants, ours
from benchmarks.subjects import Subject, subjects
from turnproof.checkers.oracles.programs import TOOLS, version

ROUNDS = 3
PATIENCE = 60.0
"""A contestant whose run took more processor time is not asked again, neither for that model nor for a larger one of its kind."""


@attrs.frozen
class Figure:
    """The median of several runs."""

    subject: str
    kind: str
    contestant: str
    states: int
    whole: float
    search: float
    cpu: float
    searching: float
    peak: int
    rounds: int

    @property
    def rate(self) -> float:
        """States a second of the search alone."""
        return self.states / max(self.search, 1e-3)


class Disagreement(RuntimeError):
    """A contestant counts other states: whatever it was measured on is not the same problem."""


def measure(kind: str, quick: bool = False, rounds: int = ROUNDS, patience: float = PATIENCE) -> tuple[list[Figure], list[str]]:
    """Medians of ``rounds`` runs on the models of one kind; and who was left out, with the reason. Raises :class:`Disagreement`."""
    figures: list[Figure] = []
    left_out = [f"{name}: {' and '.join(tool.missing())} not installed" for name, tool in TOOLS.items() if tool.missing()]
    slow: dict[str, str] = {}
    for subject in (s for s in subjects(quick) if s.kind == kind):
        ours(1)(subject, Path())  # the kernel goes into its cache on disk
        left_out += [f"{name} on {subject.name}: {why}" for name, why in slow.items()]
        found = _rounds(subject, rounds, patience, slow, left_out)
        figures += found
        print("\n".join(line(f) for f in found), flush=True)
    return figures, left_out


def _rounds(subject: Subject, rounds: int, patience: float, slow: dict[str, str], left_out: list[str]) -> list[Figure]:
    """Everybody's turn, so many times. Who took too long, or failed, has had its last."""
    runs: dict[str, list[Run]] = {}
    over = set(slow)
    for _ in range(rounds):
        for name, contestant in contestants(subject):
            if name in over:
                continue
            try:
                with tempfile.TemporaryDirectory(prefix="turnproof-bench-") as directory:
                    run = contestant(subject, Path(directory))
            except (RuntimeError, OSError) as problem:
                over.add(name)
                slow[name] = f"it failed on {subject.name}: {' '.join(str(problem).split())[-300:]}"
                left_out.append(f"{name} on {subject.name}: {slow[name]}")
                continue
            if subject.states is None:
                subject = attrs.evolve(subject, states=run.states)
            if run.states != subject.states:
                raise Disagreement(f"{subject.name}: {name} counts {run.states:,} states, expected {subject.states:,}")
            runs.setdefault(name, []).append(run)
            if run.cpu > patience:
                over.add(name)
                slow[name] = f"{subject.name} took it {run.cpu:.0f} s of processor time"
    return [_median(subject, name, found) for name, found in runs.items()]


def _median(subject: Subject, name: str, runs: Sequence[Run]) -> Figure:
    def middle(value: Callable[[Run], float]) -> float:
        return statistics.median(value(run) for run in runs)

    return Figure(
        subject.name, subject.kind, name, runs[0].states, middle(lambda r: r.whole), middle(lambda r: r.search), middle(lambda r: r.cpu),
        middle(lambda r: r.searching), int(middle(lambda r: r.peak)), len(runs),
    )  # fmt: skip


# ── what is printed ──

HEADING = (
    f"{'model':<32} {'contestant':<21} {'states':>11} {'end to end':>10} {'search s':>8} {'states/s':>11} "
    f"{'cpu s':>7} {'of it search':>12} {'peak MiB':>8} {'B/state':>8} {'rounds':>6}"
)


def line(figure: Figure) -> str:
    """One line of the table."""
    return (
        f"{figure.subject:<32} {figure.contestant:<21} {figure.states:>11,} {figure.whole:>10.2f} {figure.search:>8.2f} "
        f"{figure.rate:>11,.0f} {figure.cpu:>7.2f} {figure.searching:>12.2f} {figure.peak / 2**20:>8,.0f} "
        f"{figure.peak / figure.states:>8,.0f} {figure.rounds:>6}"
    )


def ratios(figures: Iterable[Figure]) -> list[str]:
    """How many times as long as this engine's one thread everybody takes: end to end and searching, on the wall and of the processor."""
    lines = [f"{'times as long as turnproof':<32} {'contestant':<21} {'end to end':>10} {'search':>8} {'cpu':>8} {'of it search':>12}"]
    base: Figure | None = None
    for figure in figures:
        if figure.contestant == "turnproof":
            base = figure
        elif base is not None and base.subject == figure.subject:
            lines.append(
                f"{figure.subject:<32} {figure.contestant:<21} {figure.whole / base.whole:>10.2f} {figure.search / base.search:>8.2f} "
                f"{figure.cpu / base.cpu:>8.2f} {figure.searching / base.searching:>12.2f}"
            )
    return lines


def versions() -> dict[str, str]:
    """What was measured."""
    from turnproof import __version__

    found = {"turnproof": __version__, "python": platform.python_version(), "machine": platform.machine(), "system": platform.system()}
    found |= {name: version(name) for name, tool in TOOLS.items() if not tool.missing()}
    if shutil.which("gcc"):
        found["gcc"] = subprocess.run(["gcc", "-dumpfullversion"], capture_output=True, text=True, check=True).stdout.strip()
    return found


def processor() -> str:
    """The name of the processor, where the system tells it."""
    file = Path("/proc/cpuinfo")
    found = re.search(r"model name\s*: (.*)", file.read_text()) if file.is_file() else None
    return found[1] if found else "unknown"
