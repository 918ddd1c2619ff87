"""Proofs: the table as z3 terms, compared with every other reading, and an inductive invariant that two solvers confirm.

In the order of a run: :mod:`.translate` makes terms of a specification, :mod:`.agreement` compares them with the other readings of
the table on the explored graph, :mod:`.search` (in a child process) looks for an invariant, :mod:`.certificate` writes it down with
every query that :mod:`.compose` derives from it, and :mod:`.rechecking` has a fresh z3 and cvc5 answer them from the file alone.

The solvers' child processes start with this package, so it imports nothing until it is asked.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from turnproof.checkers.graph import Graph
    from turnproof.checkers.progress import Progress
    from turnproof.checkers.verdict import Verdict
    from turnproof.specs.language import Spec


class CertificateError(ValueError):
    """A file is no certificate, or not a whole one. The message is one line: place, what was expected, what was found."""


def check(spec: Spec, graph: Graph, *, certificate: Path | None = None, progress: Progress | None = None) -> list[Verdict]:
    """Every verdict of the symbolic engine on one specification; its proofs go to ``certificate``, re-checked from that file.

    Beside the certificate stands a ``.log`` with a line for each query. Raises :class:`TableError` for a table or a lemma that no
    solver can read; a property that none can read is UNDETERMINED.
    """
    from turnproof.checkers.smt import engine

    return engine.check(spec, graph, certificate=certificate, progress=progress)


def recheck(path: Path, *, progress: Progress | None = None, seconds: float | None = None) -> list[Verdict]:
    """A certificate checked again by a fresh z3 and by cvc5, from its file alone; ``seconds`` is the limit of each solver.

    A verdict for each solver, for their agreement, and for what the certificate claims. Raises :class:`CertificateError`.
    """
    from turnproof.checkers.smt import rechecking

    return rechecking.recheck(path, progress=progress, seconds=seconds)


__all__ = ["CertificateError", "check", "recheck"]
