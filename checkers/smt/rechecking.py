"""Re-checks a certificate from its file alone, with a fresh z3 and with cvc5, each in a child process of its own.

The file says what each query must answer. One wrong answer of one solver and nothing is proved; two solvers that contradict
each other mean that one of them is wrong, and that is reported as a violation, never passed over.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import attrs

from turnproof.checkers.progress import SILENT, Progress
from turnproof.checkers.smt import certificate as certificates
from turnproof.checkers.smt import children, cvc5api
from turnproof.checkers.smt.pieces import Certificate, Table
from turnproof.checkers.verdict import Engine, Outcome, Verdict

SECONDS, SECONDS_A_QUERY = 120.0, 0.05
"""Hard limit for one solver on one certificate: so long, or longer if it has very many queries."""
QUERY_MS = 5_000
"""Time for one query."""
FEW = 3
NOT_RECHECKED = "proved by z3 only, not re-checked"
SOLVERS = ("z3", "cvc5")


@attrs.frozen(eq=False)
class Run:
    """What one solver answered. ``answers`` maps (group, query) to the answer and its milliseconds."""

    solver: str
    version: str
    answers: Mapping[tuple[int, int], tuple[str, float]]
    why: str
    """Why it is not through, or was not run; empty if it is through."""
    seconds: float
    ran: bool = True


def patience(certificate: Certificate) -> float:
    """Seconds that a solver may take for a certificate."""
    return max(SECONDS, SECONDS_A_QUERY * sum(len(group.queries) for group in certificate.groups))


def recheck(path: Path, *, progress: Progress | None = None, seconds: float | None = None) -> list[Verdict]:
    """A verdict for each solver, for their agreement, and for what the certificate claims.

    Raises :class:`.certificate.CertificateError`, one line, for a file that is no whole certificate.
    """
    certificate = certificates.read(path)
    return verdicts(certificate, run(certificate, progress or SILENT, seconds=seconds), path)


def run(certificate: Certificate, progress: Progress, *, seconds: float | None = None) -> list[Run]:
    """Ask both solvers every query, at the same time. The pieces must have been checked."""
    versions = {"z3": _z3_version(), "cvc5": cvc5api.version()}
    wanted = [solver for solver in SOLVERS if versions[solver] is not None]
    groups = [[group.preamble, [query.assertion for query in group.queries]] for group in certificate.groups]
    tasks = [
        {"kind": "script", "solver": solver, "prelude": certificate.prelude, "groups": groups, "query_ms": QUERY_MS} for solver in wanted
    ]
    total = len(tasks) * sum(len(group.queries) for group in certificate.groups)
    heard = 0

    def hear(_: int, answer: Any) -> None:
        nonlocal heard
        heard += len(answer[1])
        progress.say("certificate: queries", heard, total)

    runs = {}
    for solver, ended in zip(
        wanted, children.run(tasks, seconds=patience(certificate) if seconds is None else seconds, hear=hear), strict=True
    ):
        answers = {(group, n): (answer, ms) for group, given in ended.answers for n, (answer, ms) in enumerate(given)}
        runs[solver] = Run(solver, versions[solver] or "", answers, ended.why, ended.seconds)
    missing = Run("cvc5", "", {}, "cvc5 is not installed: pip install 'turnproof[verify]'", 0.0, ran=False)
    return [runs.get(solver, missing) for solver in SOLVERS]


def _z3_version() -> str:
    from turnproof.checkers.smt import z3api

    return z3api.VERSION


def verdicts(certificate: Certificate, runs: list[Run], path: Path) -> list[Verdict]:
    """A verdict for each solver, for their agreement, and for the claims."""
    made = [*(_of_solver(certificate, run, path) for run in runs), _together(certificate, runs)]
    return [*made, _claims(certificate, runs, made)]


def _verdict(certificate: Certificate, check: str, outcome: Outcome, how: str, detail: str = "", seconds: float = 0.0) -> Verdict:
    return Verdict(
        machine=certificate.table.machine, check=check, engine=Engine.SYMBOLIC, outcome=outcome, how=how, detail=detail, seconds=seconds
    )


def _of_solver(certificate: Certificate, run: Run, path: Path) -> Verdict:
    check = f"the certificate is re-checked by {run.solver}"
    total = sum(len(group.queries) for group in certificate.groups)
    how = f"{run.solver} {run.version}, a fresh process, {len(run.answers):,} of {total:,} queries from {path.name}"
    if not run.ran:
        return _verdict(certificate, check, Outcome.UNDETERMINED, NOT_RECHECKED, run.why)
    wrong = [(name, expected, answer) for name, expected, answer, _ in lines(certificate, run) if answer != expected]
    refuted = [w for w in wrong if w[2] in ("sat", "unsat")]
    if refuted:
        return _verdict(certificate, check, Outcome.VIOLATED, how, _few(refuted), run.seconds)
    if run.why:
        return _verdict(certificate, check, Outcome.UNDETERMINED, how, run.why, run.seconds)
    if wrong:
        return _verdict(certificate, check, Outcome.UNDETERMINED, how, _few(wrong), run.seconds)
    return _verdict(certificate, check, Outcome.HOLDS, how, seconds=run.seconds)


def _few(wrong: list[tuple[str, str, str]]) -> str:
    shown = "; ".join(f"{name}: expected {expected}, answered {answer}" for name, expected, answer in wrong[:FEW])
    return shown + (f"; and {len(wrong) - FEW} more" if len(wrong) > FEW else "")


def _together(certificate: Certificate, runs: list[Run]) -> Verdict:
    """z3 and cvc5 never contradict each other."""
    check = "z3 and cvc5 give the same answer to every query"
    first, second = runs
    both = first.answers.keys() & second.answers.keys()
    differ = [
        f"{certificate.groups[g].queries[q].name}: z3 says {first.answers[g, q][0]}, cvc5 says {second.answers[g, q][0]}"
        for g, q in sorted(both)
        if {first.answers[g, q][0], second.answers[g, q][0]} == {"sat", "unsat"}
    ]
    if differ:
        return _verdict(
            certificate,
            check,
            Outcome.VIOLATED,
            f"compared ({len(both):,} queries)",
            "one of the two solvers is wrong: " + "; ".join(differ[:FEW]),
        )
    total = sum(len(group.queries) for group in certificate.groups)
    if len(both) < total:
        return _verdict(certificate, check, Outcome.UNDETERMINED, f"compared ({len(both):,} of {total:,} queries)", first.why or second.why)
    return _verdict(certificate, check, Outcome.HOLDS, f"compared ({len(both):,} queries)")


def _claims(certificate: Certificate, runs: list[Run], made: list[Verdict]) -> Verdict:
    """What a person takes away from a re-checked file: how many properties it proves, and what it leaves open."""
    check = "the certificate proves what it claims"
    outcomes = {verdict.outcome for verdict in made}
    worst = Outcome.VIOLATED if Outcome.VIOLATED in outcomes else Outcome.UNDETERMINED
    if outcomes != {Outcome.HOLDS}:
        everywhere = all(run.ran for run in runs)
        detail = "; ".join(f"{v.check}: {v.outcome.value}" for v in made if v.outcome is not Outcome.HOLDS)
        return _verdict(certificate, check, worst, "not proved" if everywhere else NOT_RECHECKED, detail)
    by = " and ".join(f"{run.solver} {run.version}" for run in runs)
    size = f"{len(certificate.claims)} properties of {certificate.table.machine}, an invariant of {len(certificate.invariant)} conjuncts"
    names = list(certificate.unproved)
    more = f"; and {len(names) - FEW} more" if len(names) > FEW else ""
    left = f"; not among them: {'; '.join(names[:FEW])}{more}" if names else ""
    return _verdict(certificate, check, Outcome.HOLDS, f"proved ({extent(certificate.table)}; re-checked by {by}): {size}{left}")


def extent(table: Table) -> str:
    """For what a proof holds: ``any length of run, any count``, and what stays bounded in it."""
    bounds = list(table.bounds)
    more = f" and {len(bounds) - FEW} more such bounds" if len(bounds) > FEW else ""
    return "any length of run, any count" + (f"; bounded as the system has it: {', '.join(bounds[:FEW])}{more}" if bounds else "")


def lines(certificate: Certificate, run: Run) -> Iterator[tuple[str, str, str, float]]:
    """Each query: name, expected answer, the answer (``not asked`` if it never came to it), milliseconds."""
    for g, group in enumerate(certificate.groups):
        for q, query in enumerate(group.queries):
            answer, ms = run.answers.get((g, q), ("not asked", 0.0))
            yield query.name, query.expected, answer, ms


def log(certificate: Certificate, runs: list[Run]) -> Iterator[str]:
    """A line a query, as mypyvy prints them: ``row abort/live preserves "one owner" ... ok (z3 1.2 ms, cvc5 3.4 ms)``."""
    for one, *others in zip(*(lines(certificate, run) for run in runs if run.ran), strict=True):
        name, expected, _, _ = one
        asked = (one, *others)
        ok = all(a == expected for _, _, a, _ in asked)
        times = ", ".join(f"{run.solver} {ms:.1f} ms" for run, (_, _, _, ms) in zip((r for r in runs if r.ran), asked, strict=True))
        yield f"{name} ... {'ok' if ok else 'FAILED: expected ' + expected + ', answered ' + '/'.join(a for _, _, a, _ in asked)} ({times})"
