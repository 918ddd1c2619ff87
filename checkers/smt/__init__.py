"""Proofs: the table as z3 terms, compared with every other reading, and an inductive invariant that two solvers confirm.

In the order of a run: :mod:`.translate` makes terms of a specification, :mod:`.agreement` compares them with the other readings of
the table on the explored graph, :mod:`.search` (in a child process) looks for an invariant, :mod:`.certificate` writes it down with
every query that :mod:`.compose` derives from it, and :mod:`.rechecking` has a fresh z3 and cvc5 answer them from the file alone.
"""

from turnproof.checkers.smt.certificate import CertificateError
from turnproof.checkers.smt.engine import check
from turnproof.checkers.smt.rechecking import recheck

__all__ = ["CertificateError", "check", "recheck"]
