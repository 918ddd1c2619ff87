"""Runs the engines on specifications and gathers what they say.

Silence is never taken for "holds": an engine that raised, ran out of memory, was killed, or said nothing is UNDETERMINED with the
reason, and :mod:`turnproof.checkers.own_checks` looks for what nobody spoke about.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, cast

import attrs

from turnproof.checkers.engines import ENGINES, Plan, RunSystem
from turnproof.checkers.jobs import INTERRUPTED, Done, Findings, Job, OutOfTime, run_here, run_jobs
from turnproof.checkers.own_checks import own_checks, undetermined
from turnproof.checkers.progress import SILENT, Progress, amount
from turnproof.checkers.report.model import AnySpec, MachineReport, Size, name_of
from turnproof.checkers.verdict import Engine, Outcome, Verdict
from turnproof.machines.kernel import TableError
from turnproof.specs.language import Said, Spec

if TYPE_CHECKING:
    from turnproof.checkers.graph import Graph


TOLD = 3
"""Specifications of which an interrupted run says how far it was."""


class Interrupted(KeyboardInterrupt):
    """A run was interrupted, and what was covered is reported. The text says how far it was."""


def verify(spec: AnySpec, engines: Sequence[str] = (), *, plan: Plan | None = None, progress: Progress = SILENT) -> list[Verdict]:
    """Every verdict about one specification. Unknown names of engines raise ``KeyError``."""
    return list(report(spec, attrs.evolve(plan or Plan(), engines=tuple(engines)), progress=progress).verdicts)


def report(spec: AnySpec, plan: Plan, *, progress: Progress = SILENT, catalog: Mapping[str, AnySpec] | None = None) -> MachineReport:
    """Run the engines of ``plan`` on one specification; as :func:`reports`, for one."""
    (made,) = reports([(spec, plan)], progress=progress, catalog=catalog)
    return made


def reports(
    pairs: Sequence[tuple[AnySpec, Plan]], *, progress: Progress = SILENT, catalog: Mapping[str, AnySpec] | None = None, workers: int = 2
) -> Iterator[MachineReport]:
    """Run each plan on its specification, ``workers`` engines at a time over all of them; each report as soon as those before it are out.

    ``catalog`` is where ``spec.elsewhere`` must be found; None skips that. On ``KeyboardInterrupt`` the reports say what was covered,
    and after the last of them :class:`Interrupted` is raised. Raises :class:`TableError` where exploring shows a mistake of a table
    (a row that leaves the domain of a field), and ``KeyError`` for an engine that does not exist.
    """
    for name in (name for _, plan in pairs for name in plan.engines if name not in ENGINES):
        raise KeyError(f"no engine {name!r}; engines: {', '.join(ENGINES)}")
    watch, out, interrupted = _Watch(progress), 0, False
    subjects = [_Subject(spec, plan, prefix=f"{name_of(spec)} " if len(pairs) > 1 else "") for spec, plan in pairs]
    try:
        for subject in subjects:
            subject.explore(watch)
        for done in _all_jobs(subjects, watch, workers):
            interrupted |= done.interrupted or done.error == INTERRUPTED
            for subject in subjects:
                subject.take(done)
            while out < len(subjects) and subjects[out].complete and not interrupted:
                out += 1
                yield subjects[out - 1].report(catalog)
    except KeyboardInterrupt:
        interrupted = True
        for subject in subjects:
            subject.give_up()
    yield from (subject.report(catalog) for subject in subjects[out:])
    if interrupted:
        raise Interrupted(_covered(subjects, watch))


def _all_jobs(subjects: Sequence[_Subject], watch: _Watch, workers: int) -> Iterator[Done]:
    jobs = [(subject.cost(name), job) for subject in subjects for name, job in subject.jobs()]
    return run_jobs(in_turn(jobs), watch, workers=workers)


def in_turn(jobs: Sequence[tuple[float, Job]]) -> list[Job]:
    """Jobs with their costs, by turns the longest that is left and, until that costs as much, the first that are left.

    Two workers then end together, and what stands first is not kept for the end: whoever reads along sees the reports come.
    """
    left, made = list(jobs), []
    while left:
        longest = max(left, key=lambda pair: pair[0])
        left.remove(longest)
        made.append(longest[1])
        spent = 0.0
        while left and spent < longest[0]:
            cost, job = left.pop(0)
            spent += cost
            made.append(job)
    return made


class _Subject:
    """One specification on its way through the engines."""

    def __init__(self, spec: AnySpec, plan: Plan, *, prefix: str) -> None:
        self.spec, self.plan, self.prefix = spec, plan, prefix
        self.started = self.ended = time.perf_counter()
        self.graph: Graph | None = None
        self.not_run: dict[str, str] = {}
        self.finished: dict[str, Done] = {}
        self.waiting: set[str] = set()
        self._settle()

    def _settle(self) -> None:
        """Which engines run, and why the others do not."""
        for name, entry in ENGINES.items():
            asked = self.plan.left_out.get(name, "") or ("" if self.plan.wanted(name) else "not asked for")
            why = asked or entry.cannot(self.spec, self.plan)
            if why:
                self.not_run[name] = why
            else:
                self.waiting.add(name)

    def explore(self, progress: Progress) -> None:
        """Explore a machine if one of its engines reads the graph."""
        readers = [name for name in self.waiting if ENGINES[name].reads_graph]
        if isinstance(self.spec, Spec) and readers:
            self._explore(self.spec, progress)
            if self.graph is None:
                self.not_run |= dict.fromkeys(readers, "the graph is not complete")
                self.waiting.difference_update(readers)

    def _explore(self, spec: Spec, progress: Progress) -> None:
        mistakes: list[TableError] = []

        def run(progress: Progress) -> list[Verdict]:
            from turnproof.checkers.graph import LimitReached, explore

            try:
                self.graph = explore(spec, progress=progress)
            except (LimitReached, OutOfTime) as limit:
                return [undetermined(spec, "the whole graph is explored", Engine.EXPLICIT, "cut short", str(limit))]
            except TableError as mistake:
                mistakes.append(mistake)
            return []

        self.finished["explore"] = run_here(Job(f"{self.prefix}explore", run, seconds=self.plan.seconds), progress)
        self.ended = time.perf_counter()
        if mistakes:
            raise mistakes[0]

    def jobs(self) -> list[tuple[str, Job]]:
        """The engines that are to run, by name."""
        started = [name for name in ENGINES if name in self.waiting and not self._answered_within(name)]
        a_system = not isinstance(self.spec, Spec)  # the walk over it keeps its time itself, and tells what it has seen by then
        seconds = None if a_system else self.plan.seconds
        return [(name, Job(self.prefix + name, partial(self._run, name), a_system, seconds)) for name in started]

    def _answered_within(self, name: str) -> bool:
        """Whether another engine that runs here answers for this one as well."""
        return not isinstance(self.spec, Spec) and ENGINES[name].within in self.waiting

    def cost(self, name: str) -> float:
        """Roughly how many seconds an engine takes, so that the longest is started first and two workers end together."""
        steps = 0 if self.graph is None else self.graph.steps
        if not isinstance(self.spec, Spec):
            return {"symbolic": 6.0, "variants": 2.0, "diagram": 0.2}.get(name, 10.0)
        machine: dict[str, float] = {"symbolic": 1 + steps**0.5 / 50, "explicit": 0.1 + steps / 400_000, "stateful": 1.5, "variants": 0.5}
        return machine.get(name, 0.3)

    def _run(self, name: str, progress: Progress) -> list[Verdict] | Findings:
        entry = ENGINES[name]
        if isinstance(self.spec, Spec):
            return entry.run(self.spec, cast("Graph", self.graph), self.plan, progress)
        return cast("RunSystem", entry.run_system)(self.spec, self.plan, progress)

    def take(self, done: Done) -> None:
        """Keep the result of a job if it is one of this specification's."""
        name = done.name.removeprefix(self.prefix)
        if done.name == self.prefix + name and name in self.waiting:
            self.ended = time.perf_counter()
            for other in [n for n in self.waiting if n != name and self._answered_within(n) and ENGINES[n].within == name]:
                error = f"the engine {name} did not finish" if done.error else ""
                self.finished[other] = Done(self.prefix + other, tuple(done.also.get(other, ())), 0.0, error)
                self.waiting.discard(other)
            self.waiting.discard(name)
            self.finished[name] = done

    def give_up(self) -> None:
        """What has not ended will not."""
        for name in [name for name in ENGINES if name in self.waiting]:
            self.take(Done(self.prefix + name, (), 0.0, INTERRUPTED))

    @property
    def complete(self) -> bool:
        """Whether every engine has ended."""
        return not self.waiting

    def verdicts(self) -> list[Verdict]:
        """What the engines said so far, in the order of :data:`ENGINES`."""
        order = [name for name in ("explore", *ENGINES) if name in self.finished]
        return [v for name in order for v in _verdicts(self.spec, name, self.finished[name])]

    def _size(self) -> Size | None:
        return (
            next((done.size for done in self.finished.values() if done.size is not None), None) if self.graph is None else size(self.graph)
        )

    def report(self, catalog: Mapping[str, AnySpec] | None) -> MachineReport:
        """Everything that the run says of this specification."""
        verdicts = self.verdicts()
        return MachineReport(
            spec=self.spec,
            verdicts=(*verdicts, *own_checks(self.spec, set(self.finished), verdicts, catalog)),
            size=self._size(),
            timings={name: done.seconds for name, done in self.finished.items() if done.error != INTERRUPTED},
            not_run=self.not_run,
            off=tuple(sorted(self.plan.off)),
            coverage=next((done.coverage for done in self.finished.values() if done.coverage is not None), None),
            seconds=self.ended - self.started,
            certificate=_certificate(self.plan, self.finished),
            lost={name: done.error for name, done in self.finished.items() if done.lost},
            remarks=tuple(remark for done in self.finished.values() for remark in done.remarks),
            untouched=not any(name in ENGINES and done.error != INTERRUPTED for name, done in self.finished.items()),
        )


def _certificate(plan: Plan, finished: Mapping[str, Done]) -> str:
    done = finished.get("symbolic")
    return (
        str(plan.certificate) if done is not None and not done.error and plan.certificate is not None and plan.certificate.is_file() else ""
    )


# ── from finished jobs to verdicts ──


def size(graph: Graph) -> Size:
    """The explored graph in figures."""
    return Size(graph.explored, graph.steps, int(graph.depth.max()), graph.answers(Said.TAKEN))


def _verdicts(spec: AnySpec, name: str, done: Done) -> Iterator[Verdict]:
    yield from done.verdicts
    speaks = ENGINES[name].speaks if name in ENGINES else Engine.EXPLICIT
    if done.error:
        yield undetermined(spec, f"the engine {name} finishes", speaks, "not finished", done.error)
    elif not done.verdicts and name in ENGINES:
        yield undetermined(spec, f"the engine {name} checks something", speaks, "no verdict", "it finished without a verdict")


# ── interruption ──


class _Watch:
    """Passes progress on and remembers the last word of each job, for whoever interrupts."""

    def __init__(self, progress: Progress) -> None:
        self.progress = progress
        self.last: dict[str, tuple[str, int, int | None]] = {}

    def say(self, what: str, done: int, total: int | None = None) -> None:
        self.last[what.partition(":")[0]] = (what, done, total)
        self.progress.say(what, done, total)


def _covered(subjects: Sequence[_Subject], watch: _Watch) -> str:
    """What was finished of what is not complete, and what was under way: one line."""
    ended = {subject: [name for name, done in subject.finished.items() if not done.error] for subject in subjects}
    begun = [subject for subject in subjects if any(d.error for d in subject.finished.values()) and ended[subject]]
    whole = sum(not any(d.error for d in subject.finished.values()) for subject in subjects)
    said = [_said(subject, ended[subject]) for subject in begun[:TOLD]]
    said += [f"and {len(begun) - TOLD} more that are begun"] if len(begun) > TOLD else []
    said += [f"{whole} of {len(subjects)} complete"] if len(subjects) > 1 else []
    over = {subject.prefix + name for subject in subjects for name in ended[subject]}
    running = [f"{what} {amount(done, total)}" for job, (what, done, total) in watch.last.items() if job not in over]
    seconds = time.perf_counter() - subjects[0].started if subjects else 0.0
    return "; ".join(said + ([f"under way: {', '.join(running)}"] if running else []) + [f"after {seconds:.0f} s"])


def _said(subject: _Subject, ended: Sequence[str]) -> str:
    verdicts = [v for name in ended for v in subject.finished[name].verdicts]
    bad = sum(v.outcome is not Outcome.HOLDS for v in verdicts)
    return f"{name_of(subject.spec)}: {', '.join(ended)} finished, {len(verdicts)} checks, {bad} of them not holding"


__all__ = ["ENGINES", "Interrupted", "in_turn", "report", "reports", "size", "verify"]
