"""Runs the engines of one specification, two at a time where the platform allows it, and loses none of them.

Theory of operation
===================

The graph of a machine is explored once, in the parent. Engines that read it run in forked children, which inherit it without a
copy being sent; verdicts come back through a pipe. Each child leads its own process group, so that solvers it started can be
ended with it. A child that raises, dies, or is killed by the kernel for want of memory gives a :class:`Done` with an ``error``:
whoever reads it must not take it for "holds". So does one that is still at work when its time is over.

An interrupt (``KeyboardInterrupt``, which Ctrl-C raises and whoever installs a handler for SIGTERM) ends the jobs, and not the
results: those that are there stand, and every other job comes out as :data:`INTERRUPTED`.

Fork is used on Linux alone. On macOS system libraries start threads of their own, after which a fork is not safe; there the
jobs run one after the other in this process, with the same results.
"""

from __future__ import annotations

import contextlib
import ctypes
import gc
import os
import signal
import sys
import time
import traceback
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from multiprocessing import get_context
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import attrs

from turnproof.checkers.progress import Named, Progress, amount
from turnproof.checkers.report.model import Size
from turnproof.checkers.verdict import Verdict
from turnproof.machines.kernel import TableError

if TYPE_CHECKING:
    from turnproof.checkers.network.coverage import SystemCoverage

GRACE_S = 2.0
"""How long a child may take to end its own children before it is killed."""
TERMINATED = 128 + signal.SIGTERM
"""The exit status of a child that was sent SIGTERM."""
SAY_EVERY_S = 0.1
"""A child tells its progress at most this often."""


@attrs.frozen
class Findings:
    """What an engine that explores for itself found, with the size of what it explored."""

    verdicts: list[Verdict]
    size: Size | None
    also: Mapping[str, list[Verdict]] = attrs.field(factory=dict)
    """What other engines would have found, answered on the way."""
    coverage: SystemCoverage | None = None
    interrupted: bool = False
    """An interrupt ended it before it was done."""
    remarks: tuple[str, ...] = ()
    """What it noticed that is no failure."""


@attrs.frozen
class Job:
    """One engine on one specification. ``run`` may raise anything."""

    name: str
    run: Callable[[Progress], list[Verdict] | Findings]
    gives_up: bool = False
    """Told of an interrupt by SIGINT, it soon ends with what it knows by then."""
    seconds: float | None = None
    """It is ended so long after it began; None: never."""


@attrs.frozen
class Done:
    """A finished job. ``error`` says what went wrong, and is empty if nothing did."""

    name: str
    verdicts: tuple[Verdict, ...]
    seconds: float
    error: str = ""
    size: Size | None = None
    also: Mapping[str, list[Verdict]] = attrs.field(factory=dict)
    coverage: SystemCoverage | None = None
    interrupted: bool = False
    remarks: tuple[str, ...] = ()
    lost: bool = False
    """Its process died, and nobody here ended it."""


INTERRUPTED = "interrupted"
"""The error of a job that an interrupt ended, or kept from beginning."""


class OutOfTime(Exception):
    """A job is at work for longer than it may be."""

    def __init__(self, seconds: float, at: str = "") -> None:
        super().__init__(f"the time limit of {seconds:g} s ended it" + (f" at {at}" if at else ""))


def can_fork() -> bool:
    """Whether jobs may run in forked children here."""
    return sys.platform == "linux"


def run_jobs(jobs: Sequence[Job], progress: Progress, *, workers: int = 2) -> Iterator[Done]:
    """Every job's result, in the order in which they finish. Jobs are started in the order given, ``workers`` at a time.

    After ``KeyboardInterrupt`` a job under way that ends with what it knows is told, and its result comes out; all others are
    :data:`INTERRUPTED`. A second one ends the children and is raised again, and closing the iterator early ends them too.
    """
    alone = len(jobs) < 2 and not any(job.seconds for job in jobs)
    if workers < 2 or alone or not can_fork():
        yield from _run_one_by_one(jobs, progress)
    else:
        yield from _run_forked(jobs, progress, workers)


def _run_one_by_one(jobs: Sequence[Job], progress: Progress) -> Iterator[Done]:
    interrupted = False
    for job in jobs:
        try:
            done = Done(job.name, (), 0.0, INTERRUPTED) if interrupted else run_here(job, progress)
        except KeyboardInterrupt:
            done = Done(job.name, (), 0.0, INTERRUPTED)
        interrupted |= done.interrupted or done.error == INTERRUPTED
        _say_finished(done, progress)
        yield done


def _say_finished(done: Done, progress: Progress) -> None:
    if done.error != INTERRUPTED:
        progress.say(f"{done.name}: finished", 1, 1)


def run_here(job: Job, progress: Progress) -> Done:
    """Run one job in this process. Only ``KeyboardInterrupt`` and ``SystemExit`` get out."""
    started = time.perf_counter()
    said: Progress = Named(job.name, progress)
    try:
        found = job.run(said if job.seconds is None else _Impatient(said, job.seconds))
    except Exception as problem:
        return Done(job.name, (), time.perf_counter() - started, describe(problem))
    findings = found if isinstance(found, Findings) else Findings(found, None)
    seconds = time.perf_counter() - started
    return Done(
        job.name, tuple(findings.verdicts), seconds, size=findings.size, also=findings.also, coverage=findings.coverage,
        interrupted=findings.interrupted, remarks=findings.remarks,
    )  # fmt: skip


def describe(problem: BaseException) -> str:
    """One line: what was raised and where. A missing package names the extra that brings it."""
    if isinstance(problem, ModuleNotFoundError) and problem.name and not problem.name.startswith("turnproof"):
        return f"the package {problem.name} is not installed: pip install 'turnproof[verify]'"
    if isinstance(problem, MemoryError):
        return "out of memory"
    if isinstance(problem, (TableError, OutOfTime)):
        return " ".join(str(problem).split())
    frames = traceback.extract_tb(problem.__traceback__)
    place = f" ({Path(frames[-1].filename).name}:{frames[-1].lineno})" if frames else ""
    text = " ".join(str(problem).split())
    return f"internal error: {type(problem).__name__}{': ' + text if text else ''}{place}"


class _Impatient:
    """Passes progress on, and raises :class:`OutOfTime` once the time is over."""

    def __init__(self, progress: Progress, seconds: float) -> None:
        self.progress, self.seconds, self.ends = progress, seconds, time.monotonic() + seconds

    def say(self, what: str, done: int, total: int | None = None) -> None:
        if time.monotonic() >= self.ends:
            raise OutOfTime(self.seconds, f"{what} {amount(done, total)}")
        self.progress.say(what, done, total)


class _PipeProgress:
    def __init__(self, pipe: Connection) -> None:
        self.pipe, self.last = pipe, 0.0

    def say(self, what: str, done: int, total: int | None = None) -> None:
        now = time.monotonic()
        if now - self.last >= SAY_EVERY_S:
            self.last = now
            self.pipe.send((what, done, total))


def _child(job: Job, pipe: Connection, parent: int) -> None:
    with contextlib.suppress(OSError):
        os.setpgid(0, 0)
    _die_with(parent)
    # The parent alone answers an interrupt: it ends this group with SIGTERM, which must unwind so that solvers are reaped.
    signal.signal(signal.SIGINT, signal.default_int_handler if job.gives_up else signal.SIG_IGN)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(TERMINATED))
    try:
        try:
            done = run_here(job, _PipeProgress(pipe))
        except KeyboardInterrupt:
            done = Done(job.name, (), 0.0, INTERRUPTED)
        try:
            pipe.send(done)
        except (TypeError, AttributeError, ValueError) as problem:
            pipe.send(Done(job.name, (), done.seconds, f"internal error: a verdict cannot be sent between processes ({problem})"))
    except BrokenPipeError:
        os._exit(1)


def _die_with(parent: int) -> None:
    """Linux: be killed when the parent is, which then can end nobody; a search must not go on that nobody waits for."""
    parent_death_signal = 1
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(parent_death_signal, signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(1)


def _run_forked(jobs: Sequence[Job], progress: Progress, workers: int) -> Iterator[Done]:
    waiting = list(jobs)
    running: Running = {}
    try:
        while waiting or running:
            while waiting and len(running) < workers:
                pipe, process = _start(waiting[0])
                running[pipe] = (waiting.pop(0), process, time.perf_counter())
            try:
                finished = _finished(running, progress)
            except KeyboardInterrupt:
                finished = [*_stopped(running), *(Done(job.name, (), 0.0, INTERRUPTED) for job in waiting)]
                waiting.clear()
            for done in finished:
                _say_finished(done, progress)
                yield done
    finally:
        _end([process for _, process, _ in running.values()])


Running = dict[Connection, tuple[Job, BaseProcess, float]]


def _finished(running: Running, progress: Progress) -> list[Done]:
    """Wait for a word, or for the end of somebody's time; the results among what was said."""
    found = []
    for ready in cast("list[Connection]", wait(list(running), _patience(running))):
        job, process, started = running[ready]
        done = _receive(ready, job, process, started, progress)
        if done is not None:
            del running[ready]
            ready.close()
            process.join()
            found.append(done)
    return found + _out_of_time(running)


def _patience(running: Running) -> float | None:
    ends = [started + job.seconds + SAY_EVERY_S for job, _, started in running.values() if job.seconds is not None]
    return max(0.0, min(ends) - time.perf_counter()) if ends else None


def _out_of_time(running: Running) -> list[Done]:
    """End those whose time is over. One that says how far it is has ended itself by then."""
    found = []
    for pipe, (job, process, started) in list(running.items()):
        seconds = time.perf_counter() - started
        if job.seconds is not None and seconds >= job.seconds + SAY_EVERY_S and not pipe.poll():
            _end([process])
            del running[pipe]
            pipe.close()
            found.append(Done(job.name, (), seconds, str(OutOfTime(job.seconds))))
    return found


def _stopped(running: Running) -> list[Done]:
    """After an interrupt: jobs that can are told to end with what they know and are still running; the others are ended here."""
    ended = [(pipe, job, process) for pipe, (job, process, _) in running.items() if not job.gives_up]
    for job, process, _ in running.values():
        if job.gives_up and process.pid is not None:
            with contextlib.suppress(OSError):
                os.kill(process.pid, signal.SIGINT)
    _end([process for _, _, process in ended])
    for pipe, _, _ in ended:
        del running[pipe]
        pipe.close()
    return [Done(job.name, (), 0.0, INTERRUPTED) for _, job, _ in ended]


def _start(job: Job) -> tuple[Connection, BaseProcess]:
    context = get_context("fork")
    mine, theirs = context.Pipe(duplex=False)
    process = context.Process(target=_child, args=(job, theirs, os.getpid()), name=f"turnproof {job.name}")
    with warnings.catch_warnings():
        # Python 3.12 warns of a fork beside other threads. The child uses nothing that a thread of the parent could hold.
        warnings.simplefilter("ignore", DeprecationWarning)
        # Without this the child's collector visits, and so copies, every page of what it inherits.
        gc.freeze()
        try:
            process.start()
        finally:
            gc.unfreeze()
    theirs.close()
    with contextlib.suppress(OSError):
        os.setpgid(cast(int, process.pid), cast(int, process.pid))
    return mine, process


def _receive(pipe: Connection, job: Job, process: BaseProcess, started: float, progress: Progress) -> Done | None:
    try:
        message: Any = pipe.recv()
    except (EOFError, OSError):  # it died, perhaps in the middle of a message
        # Solvers that it started are in its group, and live on. Until it is reaped, its number is nobody else's.
        with contextlib.suppress(OSError):
            os.waitid(os.P_PID, cast(int, process.pid), os.WEXITED | os.WNOWAIT)
            os.killpg(cast(int, process.pid), signal.SIGKILL)
        process.join()
        why = f"its process {_ending(process.exitcode)} before it had an answer"
        return Done(job.name, (), time.perf_counter() - started, why, lost=True)
    if isinstance(message, Done):
        return message
    progress.say(*message)
    return None


def _ending(status: int | None) -> str:
    if status == -signal.SIGKILL:
        return "was killed (out of memory?)"
    if status is not None and status < 0:
        return f"died of {signal.Signals(-status).name}"
    return "was terminated" if status == TERMINATED else f"ended with status {status}"


def _end(processes: Sequence[BaseProcess]) -> None:
    for sent in (signal.SIGTERM, signal.SIGKILL):
        for process in processes:
            if process.is_alive():
                with contextlib.suppress(OSError):
                    os.killpg(cast(int, process.pid), sent)
        deadline = time.monotonic() + GRACE_S
        for process in processes:
            process.join(max(0.0, deadline - time.monotonic()))
