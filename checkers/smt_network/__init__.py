"""Proofs about systems: the network of machines as one relation per action, compared with the explicit engine, and an invariant.

Theory of operation
===================

The relation is made from the same tables that the explicit engine walks, by an independent reading (:mod:`.cascade`); hence the
first thing a run does is to compare the two, step by step (:mod:`.agreement`). Then an inductive invariant is searched
(:mod:`.search`) and written down as a certificate in the format of single machines: actions stand where events are, and each
action's rows are the steps that begin with one row of the part reached first. It is re-checked by a fresh z3 and by cvc5 from the file.

Two things differ from single machines. A step may be a fault (a full channel, an effect nobody receives); that none is, is a claim
of the certificate, and a certificate without it is refused. And a property that is not inductive is no failure here: the
explicit engine has shown it within its bounds, and the report says which properties have only that.

| module | holds |
|---|---|
| ``variables``, ``fold`` | the variables of a system; making small terms |
| ``rules``, ``cascade``, ``relation`` | what steps share; one step, run to completion, as terms; every action and its rows; formulas |
| ``columns``, ``agreement``, ``probe`` | explored states and steps as columns; comparing them with the terms; and with z3 itself |
| ``pieces``, ``search`` | the text of a certificate and the questions mined; looking for an invariant |
| ``engine``, ``report`` | a whole run; its verdicts |
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from turnproof.checkers.progress import Progress
    from turnproof.checkers.verdict import Verdict
    from turnproof.specs.system import SystemSpec


def check(
    spec: SystemSpec, *, certificate: Path | None = None, progress: Progress | None = None, seconds: float | None = None
) -> list[Verdict]:
    """Every verdict of the symbolic engine on one system; its proofs go to ``certificate``, re-checked from that file.

    ``seconds`` limits the search for an invariant. Properties that are not proved have no verdict here. Raises :class:`TableError`
    for a table or a lemma that no solver can read.
    """
    from turnproof.checkers.smt_network import engine

    return engine.check(spec, certificate=certificate, progress=progress, seconds=seconds)


__all__ = ["check"]
