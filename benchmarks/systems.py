"""Whole searches beside SPIN, Rumur and TLC, in one run: wall time end to end, states a second, peak memory.

Every contestant searches every reachable state and checks the safety properties of states, on one thread unless its name says
otherwise. Two-phase commit stands twice for the peers: as a person who knows their language writes it (``benchmarks/models``), and
as this project writes it for them; what nobody wrote by hand is marked as generated. Counts must be equal, or the run stops.

``end to end`` begins with the text of the model, or with the start of the interpreter, and includes every compilation; our kernel
is in its cache on disk, as after the first run of any model. ``search`` is what the program itself says of its search.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import attrs

from benchmarks import models
from turnproof.checkers.oracles import write
from turnproof.checkers.oracles.model import build
from turnproof.checkers.oracles.programs import TOOLS, jar
from turnproof.checkers.oracles.promela import Promela
from turnproof.specs.classics import philosophers, two_phase_commit
from turnproof.specs.language import Always
from turnproof.specs.system import SystemSpec

ROUNDS = 3
PATIENCE = 100.0
"""A contestant that took longer is not asked for the next larger model of its kind."""


@attrs.frozen
class Subject:
    """One model. ``states`` is what every contestant must count; None: what the first counts."""

    name: str
    kind: str
    size: int
    states: int | None


@attrs.frozen
class Run:
    """One run of one contestant."""

    states: int
    whole: float
    """Seconds, end to end."""
    search: float
    """Seconds of the search alone, as the program reports it."""
    peak: int
    """Bytes: the largest of its processes."""


@attrs.frozen
class Figure:
    """The median of several runs."""

    subject: str
    kind: str
    contestant: str
    states: int
    whole: float
    search: float
    peak: int
    rounds: int

    @property
    def rate(self) -> float:
        """States a second of the search alone."""
        return self.states / max(self.search, 1e-3)


def subjects(quick: bool) -> list[Subject]:
    """What is searched."""
    counts = {5: 8_832, 6: 50_816, 7: 296_448, 8: 1_745_408, 9: 10_340_352}
    managers, seats = ((5, 6), (6,)) if quick else ((5, 6, 7, 8, 9), (8, 10, 12))
    found = [Subject(f"two-phase commit, {n} managers", "two-phase commit", n, counts[n]) for n in managers]
    found += [Subject(f"dining philosophers, {n} seats", "dining philosophers", n, None) for n in seats]
    return [*found, *([] if quick else [Subject("reply registry", "reply registry", 0, 219_892)])]


def specification(subject: Subject) -> SystemSpec:
    """Its specification, with the safety properties of states alone."""
    from turnproof.specs.reply_registry import SPEC as REGISTRY

    spec = {
        "two-phase commit": lambda: two_phase_commit.specification(subject.size),
        "dining philosophers": lambda: philosophers.specification(subject.size),
        "reply registry": lambda: REGISTRY,
    }[subject.kind]()
    return attrs.evolve(spec, properties=tuple(p for p in spec.properties if isinstance(p, Always)), variants=())


# ── processes ──


def timed(commands: Sequence[Sequence[str]], directory: Path) -> tuple[str, float, int]:
    """Run commands one after the other: what the last printed, seconds for all, and the peak memory of the largest."""
    began, peak, said = time.perf_counter(), 0, ""
    for command in commands:
        with tempfile.TemporaryFile("w+") as output:
            child = subprocess.Popen(command, cwd=directory, stdout=output, stderr=subprocess.STDOUT)
            _, status, usage = os.wait4(child.pid, 0)
            child.returncode = os.waitstatus_to_exitcode(status)
            peak = max(peak, usage.ru_maxrss * (1 if sys.platform == "darwin" else 1024))
            output.seek(0)
            said = output.read()
        if child.returncode:
            raise RuntimeError(f"{command[0]} ended with {child.returncode}: {said[-500:]}")
    return said, time.perf_counter() - began, peak


def number(pattern: str, said: str) -> float:
    """The last number that the pattern finds."""
    found = re.findall(pattern, said)
    if not found:
        raise RuntimeError(f"no {pattern!r} in: {said[-500:]}")
    return float(found[-1].replace(",", ""))


# ── contestants ──


def ours(threads: int) -> Callable[[Subject, Path], Run]:
    """This engine, in an interpreter of its own."""

    def run(subject: Subject, directory: Path) -> Run:
        command = [sys.executable, "-m", "benchmarks.systems", json.dumps(attrs.asdict(subject)), str(threads)]
        said, whole, peak = timed([command], Path.cwd())
        answer = json.loads(said.splitlines()[-1])
        return Run(answer["states"], whole, answer["search"], peak)

    return run


def search(subject: Subject, threads: int) -> dict[str, object]:
    """What the child of :func:`ours` does."""
    from turnproof.checkers.network.explicit import check, explore

    spec = specification(subject)
    graph = explore(spec, engine="compiled", threads=threads)
    bad = [v for v in check(spec, graph) if v.story is not None]
    if bad or not graph.walk.complete:
        raise RuntimeError(f"{bad or graph.walk.why}")
    return {"states": graph.walk.states, "search": graph.walk.seconds}


def deepest(subject: Subject) -> int:
    """Room for a path of a depth-first search. Two-phase commit only ever goes forward; philosophers go round for ever."""
    return (subject.states or 1_000_000) + 1 if subject.kind == "dining philosophers" else 10_000


def spin(text: Callable[[Subject], str], *, breadth_first: bool = False, flags: Sequence[str] = ()) -> Callable[[Subject, Path], Run]:
    """SPIN, with the hash table sized for the states there are."""

    def run(subject: Subject, directory: Path) -> Run:
        (directory / "model.pml").write_text(text(subject))
        table = max(18, (subject.states or 1_000_000).bit_length())
        mode = ["-DBFS"] if breadth_first else []
        fast = ["-O2", "-w", "-DSAFETY", "-DNOREDUCE", "-DNOFAIR", "-DNOBOUNDCHECK", "-DMEMLIM=16000", *mode]
        compile_ = ["gcc", *fast, "-o", "pan", "pan.c"]
        commands = [["spin", *flags, "-a", "model.pml"], compile_, ["./pan", "-E", f"-m{deepest(subject)}", f"-w{table}"]]
        said, whole, peak = timed(commands, directory)
        if "errors: 0" not in said or "max search depth" in said:
            raise RuntimeError(said[-800:])
        return Run(int(number(r"([\d.e+]+) states, stored", said)), whole, number(r"elapsed time ([\d.e+-]+) seconds", said), peak)

    return run


def rumur(text: Callable[[Subject], str]) -> Callable[[Subject, Path], Run]:
    """Rumur, on one thread, with a set that need not grow."""

    def run(subject: Subject, directory: Path) -> Run:
        (directory / "model.m").write_text(text(subject))
        room = 1 << max(23, ((subject.states or 1_000_000) * 16).bit_length())
        options = ["--deadlock-detection", "off", "--threads", "1", "--set-capacity", str(room), "--output-format", "machine-readable"]
        began = [
            ["rumur", *options, "-o", "model.c", "model.m"],
            ["gcc", "-std=c11", "-O3", "-march=native", "-mcx16", "-w", "-o", "model", "model.c", "-lpthread"],
        ]
        _, before, peak = timed(began, directory)
        said, alone, more = timed([["./model"]], directory)
        return Run(int(number(r'<summary states="(\d+)"', said)), before + alone, alone, max(peak, more))

    return run


def tlc(text: Callable[[Subject], str]) -> Callable[[Subject, Path], Run]:
    """TLC, with one worker."""

    def run(subject: Subject, directory: Path) -> Run:
        from turnproof.checkers.oracles.tla import CONFIGURATION

        module, _, configuration = text(subject).partition(CONFIGURATION)
        (directory / "model.tla").write_text(module)
        (directory / "model.cfg").write_text(configuration)
        command = ["java", "-XX:+UseParallelGC", "-Xmx8g", "-Xss64m", "-cp", str(jar()), "tlc2.TLC", "-deadlock", "-workers", "1"]
        said, whole, peak = timed([[*command, "-nowarning", "-metadir", "states", "model"]], directory)
        if "No error has been found" not in said:
            raise RuntimeError(said[-800:])
        return Run(int(number(r"(\d+) distinct states found", said)), whole, whole, peak)

    return run


def generated(oracle: str, *, breadth_first: bool = False) -> Callable[[Subject], str]:
    """The text that this project writes."""

    def text(subject: Subject) -> str:
        spec = specification(subject)
        return Promela(build(spec), undo=False, breadth_first=breadth_first).write() if oracle == "spin" else write(spec, oracle)

    return text


def by_hand(suffix: str) -> Callable[[Subject], str]:
    """The text that a person wrote."""
    return lambda subject: models.text(f"two_phase_commit.{suffix}", subject.size)


def contestants(kind: str) -> Iterator[tuple[str, Callable[[Subject, Path], Run]]]:
    """Everybody who takes part in models of that kind and is installed."""
    yield "turnproof", ours(1)
    yield "turnproof, 2 threads", ours(2)
    hand = kind == "two-phase commit"
    if not TOOLS["spin"].missing():
        if hand:
            yield "SPIN, depth first", spin(by_hand("pml"))
            yield "SPIN, breadth first", spin(by_hand("pml"), breadth_first=True)
        yield "SPIN, depth first, generated", spin(generated("spin"), flags=["-o2"])
        yield "SPIN, breadth first, generated", spin(generated("spin", breadth_first=True), breadth_first=True, flags=["-o2"])
    if not TOOLS["rumur"].missing():
        if hand:
            yield "Rumur", rumur(by_hand("m"))
        yield "Rumur, generated", rumur(generated("rumur"))
    if not TOOLS["tlc"].missing():
        if hand:
            yield "TLC", tlc(by_hand("tla"))
        else:
            yield "TLC, generated", tlc(generated("tlc"))


# ── the run ──


class Disagreement(RuntimeError):
    """A contestant counts other states: whatever it was measured on is not the same problem."""


def measure(kind: str, quick: bool = False, rounds: int = ROUNDS) -> tuple[list[Figure], list[str]]:
    """Medians of ``rounds`` runs on the models of one kind; and who was left out, with the reason. Raises :class:`Disagreement`."""
    figures: list[Figure] = []
    left_out = [f"{name}: {' and '.join(tool.missing())} not installed" for name, tool in TOOLS.items() if tool.missing()]
    slow: dict[str, str] = {}
    for subject in (s for s in subjects(quick) if s.kind == kind):
        ours(1)(subject, Path())  # the kernel goes into its cache on disk
        for name, contestant in contestants(kind):
            if name in slow:
                left_out.append(f"{name} on {subject.name}: {slow[name]}")
                continue
            try:
                figure = median(subject, name, contestant, rounds)
            except (RuntimeError, OSError) as problem:
                left_out.append(f"{name} on {subject.name}: it failed: {' '.join(str(problem).split())[-300:]}")
                print(f"LEFT OUT: {left_out[-1]}", flush=True)
                continue
            if subject.states is None:
                subject = attrs.evolve(subject, states=figure.states)
            if figure.states != subject.states:
                raise Disagreement(f"{subject.name}: {name} counts {figure.states:,} states, expected {subject.states:,}")
            figures.append(figure)
            print(line(figure), flush=True)
            if figure.whole > PATIENCE:
                slow[name] = f"{subject.name} took it {figure.whole:.0f} s"
    return figures, left_out


def median(subject: Subject, name: str, contestant: Callable[[Subject, Path], Run], rounds: int) -> Figure:
    """The median of several runs of one contestant on one model."""
    runs = []
    for _ in range(rounds):
        with tempfile.TemporaryDirectory(prefix="turnproof-bench-") as directory:
            runs.append(contestant(subject, Path(directory)))
        if runs[-1].whole > PATIENCE:
            break
    middle = statistics.median
    return Figure(
        subject.name, subject.kind, name, runs[0].states, middle(r.whole for r in runs), middle(r.search for r in runs),
        int(middle(r.peak for r in runs)), len(runs),
    )  # fmt: skip


def line(figure: Figure) -> str:
    """One line of the table."""
    return (
        f"{figure.subject:<32} {figure.contestant:<32} {figure.states:>12,} {figure.whole:>9.2f} {figure.search:>9.2f} "
        f"{figure.rate:>12,.0f} {figure.peak / 2**20:>8,.0f} {figure.peak / figure.states:>9,.0f} {figure.rounds:>6}"
    )


HEADING = (
    f"{'model':<32} {'contestant':<32} {'states':>12} {'whole s':>9} {'search s':>9} "
    f"{'states/s':>12} {'peak MiB':>8} {'B/state':>9} {'rounds':>6}"
)


def versions() -> dict[str, str]:
    """What was measured."""
    import platform

    from turnproof import __version__
    from turnproof.checkers.oracles.programs import version

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


if __name__ == "__main__":
    print(json.dumps(search(Subject(**json.loads(sys.argv[1])), int(sys.argv[2]))))
