"""Who searches: this engine, SPIN, Rumur and TLC, each in processes of its own, from the text of the model to the verdict."""

from __future__ import annotations

import json
import os
import re
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import attrs

from benchmarks import models
from benchmarks.subjects import PHILOSOPHERS, PROJECT, TWO_PHASE_COMMIT, Subject, specification
from turnproof.checkers.oracles import write
from turnproof.checkers.oracles.model import build
from turnproof.checkers.oracles.programs import TOOLS, jar
from turnproof.checkers.oracles.promela import WHOLE, Promela

LIMIT = 400
"""Seconds of processor time after which a process is ended."""


@attrs.frozen
class Run:
    """One run of one contestant."""

    states: int
    whole: float
    """Seconds, end to end."""
    search: float
    """Seconds of the search alone, as the program reports it."""
    cpu: float
    """Seconds of processor time of all its processes, which a busy machine changes less."""
    searching: float
    """Seconds of processor time of the process that searches, or of the search alone where the program tells."""
    peak: int
    """Bytes: the largest of its processes."""


@attrs.define
class Spent:
    """What commands cost."""

    whole: float = 0.0
    cpu: float = 0.0
    last: float = 0.0
    """Seconds of processor time of the last one."""
    peak: int = 0


# ── processes ──


def timed(commands: Sequence[Sequence[str]], directory: Path) -> tuple[str, Spent]:
    """Run commands one after the other: what the last one printed, and what all of them cost. Raises ``RuntimeError``."""
    spent, began, said = Spent(), time.perf_counter(), ""
    for command in commands:
        with tempfile.TemporaryFile("w+") as output:
            child = subprocess.Popen(command, cwd=directory, stdout=output, stderr=subprocess.STDOUT, preexec_fn=_limited)
            _, status, usage = os.wait4(child.pid, 0)
            child.returncode = os.waitstatus_to_exitcode(status)
            spent.last = usage.ru_utime + usage.ru_stime
            spent.cpu += spent.last
            spent.peak = max(spent.peak, usage.ru_maxrss * (1 if sys.platform == "darwin" else 1024))
            output.seek(0)
            said = output.read()
        if spent.last >= LIMIT:
            raise RuntimeError(f"{command[0]} was ended after {LIMIT} s of processor time")
        if child.returncode:
            raise RuntimeError(f"{command[0]} ended with {child.returncode}: {said[-500:]}")
    spent.whole = time.perf_counter() - began
    return said, spent


def _limited() -> None:
    resource.setrlimit(resource.RLIMIT_CPU, (LIMIT, LIMIT))


def number(pattern: str, said: str) -> float:
    """The last number that the pattern finds."""
    found = re.findall(pattern, said)
    if not found:
        raise RuntimeError(f"no {pattern!r} in: {said[-500:]}")
    return float(found[-1].replace(",", ""))


Contestant = Callable[[Subject, Path], Run]

# ── contestants ──


def ours(threads: int) -> Contestant:
    """This engine, in an interpreter of its own."""

    def run(subject: Subject, directory: Path) -> Run:
        command = [sys.executable, "-m", "benchmarks.contestants", json.dumps(attrs.asdict(subject)), str(threads)]
        said, spent = timed([command], Path.cwd())
        answer = json.loads(said.splitlines()[-1])
        return Run(answer["states"], spent.whole, answer["search"], spent.cpu, answer["cpu"], spent.peak)

    return run


def search(subject: Subject, threads: int) -> dict[str, object]:
    """What the child of :func:`ours` does."""
    from turnproof.checkers.network.explicit import check, explore

    spec = specification(subject)
    began = time.process_time()
    graph = explore(spec, engine="compiled", threads=threads)
    cpu = time.process_time() - began
    bad = [v for v in check(spec, graph) if v.story is not None]
    if bad or not graph.walk.complete:
        raise RuntimeError(f"{bad or graph.walk.why}")
    return {"states": graph.walk.states, "search": graph.walk.seconds, "cpu": cpu}


def deepest(subject: Subject) -> int:
    """Room for a path of a depth-first search. Philosophers go round for ever; the others' paths were never longer than a few hundred."""
    return (subject.states or 2_000_000) + 1 if subject.kind == PHILOSOPHERS else 10_000


def spin(text: Callable[[Subject], str], *, breadth_first: bool = False, flags: Sequence[str] = ()) -> Contestant:
    """SPIN, with the hash table sized for the states there are."""

    def run(subject: Subject, directory: Path) -> Run:
        (directory / "model.pml").write_text(text(subject))
        table = max(18, (subject.states or 1_000_000).bit_length())
        mode = ["-DBFS"] if breadth_first else []
        fast = ["-O2", "-w", "-DSAFETY", "-DNOREDUCE", "-DNOFAIR", "-DNOBOUNDCHECK", "-DMEMLIM=16000", *mode]
        compile_ = ["gcc", *fast, "-o", "pan", "pan.c"]
        said, spent = timed(
            [["spin", *flags, "-a", "model.pml"], compile_, ["./pan", "-E", f"-m{deepest(subject)}", f"-w{table}"]], directory
        )
        if "errors: 0" not in said or "max search depth" in said:
            raise RuntimeError(said[-800:])
        states, took = int(number(r"([\d.e+]+) states, stored", said)), number(r"elapsed time ([\d.e+-]+) seconds", said)
        return Run(states, spent.whole, took, spent.cpu, spent.last, spent.peak)

    return run


def rumur(text: Callable[[Subject], str]) -> Contestant:
    """Rumur, on one thread, with a set that need not grow."""

    def run(subject: Subject, directory: Path) -> Run:
        (directory / "model.m").write_text(text(subject))
        room = 1 << max(23, ((subject.states or 1_000_000) * 16).bit_length())
        options = ["--deadlock-detection", "off", "--threads", "1", "--set-capacity", str(room), "--output-format", "machine-readable"]
        began = [
            ["rumur", *options, "-o", "model.c", "model.m"],
            ["gcc", "-std=c11", "-O3", "-march=native", "-mcx16", "-w", "-o", "model", "model.c", "-lpthread"],
        ]
        _, before = timed(began, directory)
        said, alone = timed([["./model"]], directory)
        states = int(number(r'<summary states="(\d+)"', said))
        return Run(states, before.whole + alone.whole, alone.whole, before.cpu + alone.cpu, alone.cpu, max(before.peak, alone.peak))

    return run


def tlc(text: Callable[[Subject], str]) -> Contestant:
    """TLC, with one worker."""

    def run(subject: Subject, directory: Path) -> Run:
        from turnproof.checkers.oracles.tla import CONFIGURATION

        module, _, configuration = text(subject).partition(CONFIGURATION)
        (directory / "model.tla").write_text(module)
        (directory / "model.cfg").write_text(configuration)
        command = [
            "java",
            "-XX:+UseParallelGC",
            "-Xmx8g",
            "-Xss64m",
            f"-Djava.io.tmpdir={directory}",
            "-cp",
            str(jar()),
            "tlc2.TLC",
            "-deadlock",
            "-workers",
            "1",
        ]
        said, spent = timed([[*command, "-nowarning", "-metadir", "states", "model"]], directory)
        if "No error has been found" not in said:
            raise RuntimeError(said[-800:])
        states = int(number(r"(\d+) distinct states found", said))
        return Run(states, spent.whole, spent.whole, spent.cpu, spent.cpu, spent.peak)

    return run


APART = {"recovery_system": 60}
"""System -> the most rows of a step that is written as one ``d_step``; more, and SPIN refuses it. Where none stands here: any number."""


def generated(oracle: str, *, breadth_first: bool = False) -> Callable[[Subject], str]:
    """The text that this project writes; for SPIN, the form that it searches fastest."""

    def text(subject: Subject) -> str:
        spec = specification(subject)
        if oracle != "spin":
            return write(spec, oracle)
        apart = APART.get(subject.name.partition(",")[0], WHOLE)
        return Promela(build(spec), undo=False, breadth_first=breadth_first, apart=apart).write()

    return text


def exported(subject: Subject) -> str:
    """The Promela that ``turnproof oracle --write`` gives a reviewer, in which every handler stands once."""
    return Promela(build(specification(subject)), undo=False).write()


def by_hand(suffix: str) -> Callable[[Subject], str]:
    """The text that a person wrote."""
    return lambda subject: models.text(f"two_phase_commit.{suffix}", subject.size)


def contestants(subject: Subject) -> Iterator[tuple[str, Contestant]]:
    """Everybody who takes part and is installed. Where there is a text by hand, it is what the peers are given."""
    yield "turnproof", ours(1)
    yield "turnproof, 2 threads", ours(2)
    hand = subject.kind == TWO_PHASE_COMMIT
    if not TOOLS["spin"].missing():
        flags = [] if hand else ["-o2"]
        yield "SPIN, depth first", spin(by_hand("pml") if hand else generated("spin"), flags=flags)
        broad = by_hand("pml") if hand else generated("spin", breadth_first=True)
        if subject.kind == PROJECT:
            yield "SPIN, as exported", spin(exported, flags=flags)
        if not (subject.kind == PROJECT and subject.name.partition(",")[0] in APART):
            yield "SPIN, breadth first", spin(broad, breadth_first=True, flags=flags)
    if not TOOLS["rumur"].missing():
        yield "Rumur", rumur(by_hand("m") if hand else generated("rumur"))
    if not TOOLS["tlc"].missing():
        yield "TLC", tlc(by_hand("tla") if hand else generated("tlc"))


if __name__ == "__main__":
    print(json.dumps(search(Subject(**json.loads(sys.argv[1])), int(sys.argv[2]))))
