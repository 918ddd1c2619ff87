"""Tries every mutant of one machine, in two processes where the platform allows it."""

from __future__ import annotations

import contextlib
import signal
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from multiprocessing import get_context

from turnproof.checkers.explicit import check
from turnproof.checkers.graph import explore
from turnproof.checkers.jobs import can_fork
from turnproof.checkers.mutants.operators import controls, fairness_mutants, mutants
from turnproof.checkers.mutants.original import Original
from turnproof.checkers.mutants.report import MutantReport
from turnproof.checkers.mutants.trial import judge_mutant
from turnproof.checkers.mutants.words import Mutant, Result
from turnproof.checkers.progress import SILENT, Progress
from turnproof.checkers.verdict import Outcome
from turnproof.specs.language import Spec

PORTION = 24
"""Mutants that a process is given at a time; neighbours share a row, and with it the properties that kill."""


def run(spec: Spec, *, row: str | None = None, workers: int = 2, progress: Progress | None = None) -> MutantReport:
    """What becomes of every mutant of ``spec.machine``, or of one of its rows.

    Raises ``KeyError`` for an unknown row, ``LimitReached`` if the machine itself is too large to explore, and
    :class:`TableError` where its table or specification is written wrongly.
    """
    said, started = SILENT if progress is None else progress, time.perf_counter()
    changes = (*(() if row else fairness_mutants(spec)), *mutants(spec.machine, row))
    graph = explore(spec, progress=said)
    failing = tuple(v.check for v in check(spec, graph) if v.outcome is not Outcome.HOLDS)
    original = Original(graph)
    known = controls(spec.machine)
    # Judged before the processes fork, so that each inherits what it would have to compute anyway.
    tried = tuple(judge_mutant(original, mutant) for mutant in known) if not failing else ()
    results = _all(original, changes, workers, said) if not failing else ()
    return MutantReport(
        machine=spec.machine.name,
        whole=row is None,
        states=graph.explored,
        steps=graph.steps,
        bounds=graph.bounds(),
        results=tuple(results),
        controls=tried,
        failing=failing,
        seconds=time.perf_counter() - started,
    )


def _all(original: Original, changes: Sequence[Mutant], workers: int, progress: Progress) -> list[Result]:
    found: list[Result | None] = [None] * len(changes)
    done = 0
    for at, results in _portions(original, changes, workers):
        found[at : at + len(results)] = results
        done += len(results)
        progress.say("mutants tried", done, len(changes))
    return [result for result in found if result is not None]


def _portions(original: Original, changes: Sequence[Mutant], workers: int) -> Iterator[tuple[int, list[Result]]]:
    starts = range(0, len(changes), PORTION)
    if workers < 2 or len(starts) < 2 or not can_fork():
        for at in starts:
            yield at, [judge_mutant(original, mutant) for mutant in changes[at : at + PORTION]]
        return
    _ = original.numbers, original.promises, original.invariants, original.questions.antecedents, original.questions.witnesses
    with ProcessPoolExecutor(workers, mp_context=get_context("fork"), initializer=_adopt, initargs=(original, changes)) as pool:
        waiting = [pool.submit(_portion, at) for at in starts]
        try:
            for future in as_completed(waiting):
                yield future.result()
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise


_HERE: list[tuple[Original, Sequence[Mutant]]] = []
"""In a forked process: what it works on. Inherited by the fork, never sent."""


def _adopt(original: Original, changes: Sequence[Mutant]) -> None:
    with contextlib.suppress(ValueError):
        # The parent alone answers Ctrl-C.
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
    _HERE[:] = [(original, changes)]


def _portion(at: int) -> tuple[int, list[Result]]:
    original, changes = _HERE[0]
    return at, [judge_mutant(original, mutant) for mutant in changes[at : at + PORTION]]


__all__ = ["run"]
