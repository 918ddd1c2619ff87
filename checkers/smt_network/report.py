"""From what a proof about a system found to its verdicts. No word here says more than what both solvers confirmed."""

from __future__ import annotations

import re
from collections import Counter

from turnproof.checkers.smt.rechecking import FEW, NOT_RECHECKED, extent, lines
from turnproof.checkers.smt_network.engine import Proof
from turnproof.checkers.smt_network.relation import wrong_sentence
from turnproof.checkers.verdict import Engine, Outcome, Verdict
from turnproof.specs.language import Always, Step

AGREE = "the explicit engine and the terms take the same steps"
INDUCTIVE = "the invariant is inductive, and no step is a fault"
CONSISTENT = "the proof and the explored graph do not contradict each other"
MEANINGFUL = "no proved property follows from the types alone"


def verdicts(proof: Proof) -> list[Verdict]:
    """Properties that are proved, then what they rest on."""
    judge = _Judge(proof)
    return [judge.agreement(), *judge.properties(), judge.inductive(), judge.meaningful(), judge.consistent(), *proof.rechecked]


class _Judge:
    def __init__(self, proof: Proof) -> None:
        self.proof = proof
        self.base, self.by_claim = _failures(proof)

    def verdict(
        self,
        check: str,
        outcome: Outcome,
        how: str,
        detail: str = "",
        *,
        engine: Engine = Engine.SYMBOLIC,
        requirements: tuple[str, ...] = (),
        seconds: float = 0.0,
    ) -> Verdict:
        return Verdict(
            machine=self.proof.spec.system.name,
            check=check,
            engine=engine,
            outcome=outcome,
            how=how,
            detail=detail,
            requirements=requirements,
            seconds=seconds,
        )

    def agreement(self) -> Verdict:
        """The relation is that of the tables, as far as it was compared."""
        proof, walk = self.proof, self.proof.graph.walk
        whole = proof.edges.steps >= walk.transitions and walk.complete
        how = "exhaustive" if whole else "sampled"
        beyond = f"; {proof.edges.unfollowed:,} not followed to their end" if proof.edges.unfollowed else ""
        of = f" of {walk.transitions:,}" if walk.complete and not whole else "" if whole else " of those explored"
        text = (
            f"{how} ({proof.edges.states:,} states, {proof.edges.steps:,}{of} steps by evaluation{beyond}; every event handled in "
            f"{proof.deliveries.steps:,} steps; computed by z3 itself: {proof.sampled.confirmed} of "
            f"{proof.sampled.confirmed + len(proof.sampled.wrong)})"
        )
        differences = [f"{d.where}: {d.what}" for d in (*proof.edges.differences, *proof.deliveries.differences)]
        detail = differences + [f"z3's own answer: {line}" for line in proof.sampled.wrong]
        outcome = Outcome.VIOLATED if differences or (detail and not proof.sampled.why) else Outcome.HOLDS
        if outcome is Outcome.HOLDS and (proof.sampled.why or not proof.edges.steps):
            outcome, detail = Outcome.UNDETERMINED, [proof.sampled.why or "no step was compared"]
        return self.verdict(AGREE, outcome, text, "; ".join(detail[:FEW]), engine=Engine.TABLE, seconds=proof.compared_s)

    # ── properties ──

    def properties(self) -> list[Verdict]:
        """Those that the certificate claims. One that did not pass the re-check is UNDETERMINED; the others have no verdict here."""
        certificate = self.proof.certificate
        claims = () if certificate is None else certificate.claims
        made = []
        for number, claim in enumerate(claims):
            outcome, how, detail = self._claimed(number)
            made.append(self.verdict(claim.name, outcome, how, detail, requirements=claim.requirements))
        for unreadable in self.proof.unreadable:
            made.append(self.verdict(unreadable.name, Outcome.UNDETERMINED, "not translated", f"no solver can read it: {unreadable.why}"))
        return made

    def _claimed(self, number: int) -> tuple[Outcome, str, str]:
        assert self.proof.certificate is not None
        wrong = self.base + self.by_claim.get(number, [])
        differ = self.proof.edges.differences or self.proof.deliveries.differences or self.proof.sampled.wrong
        if differ:
            # What is proved of other steps than those of the tables is not proved of the system.
            return Outcome.UNDETERMINED, "not proved", "the terms do not take the steps of the explicit engine"
        if wrong:
            return Outcome.UNDETERMINED, "not proved", "its proof did not pass the re-check: " + "; ".join(wrong[:FEW])
        size = f"an invariant of {len(self.proof.certificate.invariant)} conjuncts"
        return Outcome.HOLDS, f"{self._word()} ({extent(self.proof.certificate.table)}; {size}; {self._by()})", ""

    def _both(self) -> bool:
        return bool(self.proof.runs) and all(run.ran for run in self.proof.runs)

    def _word(self) -> str:
        return "proved" if self._both() else NOT_RECHECKED

    def _by(self) -> str:
        ran = [f"{run.solver} {run.version}" for run in self.proof.runs if run.ran]
        return f"certificate {'re-checked' if self._both() else 'checked'} by {' and '.join(ran)}"

    # ── what they rest on ──

    def inductive(self) -> Verdict:
        """The invariant, what it is made of, and which properties it does not show."""
        proof = self.proof
        left = self._left()
        if proof.certificate is None or proof.result is None:
            return self.verdict(INDUCTIVE, Outcome.UNDETERMINED, "not proved", f"{proof.why or 'no certificate could be made'}{left}")
        if self.base:
            detail = "the re-check failed: " + "; ".join(self.base[:FEW])
            return self.verdict(INDUCTIVE, Outcome.UNDETERMINED, "not proved", detail)
        kinds = Counter(str(c.origin) for c in proof.certificate.invariant)
        words = {"type": "of types", "property": "properties", "lemma": "lemmas", "mined": "mined from the graph"}
        made_of = ", ".join(f"{kinds[k]} {word}" for k, word in words.items() if kinds[k])
        queries = sum(len(group.queries) for group in proof.certificate.groups)
        size = f"{len(proof.certificate.invariant)} conjuncts ({made_of}), {len(proof.table.rows)} rows, {queries:,} queries"
        redundant = f"; implied by the others: {'; '.join(proof.result['redundant'])}" if proof.result["redundant"] else ""
        how = f"{self._word()} ({extent(proof.certificate.table)}; {self._by()}): {size}{redundant}{left}"
        return self.verdict(INDUCTIVE, Outcome.HOLDS, how)

    def _left(self) -> str:
        """Properties of states and steps that are shown within the explored bounds only."""
        certificate, proof = self.proof.certificate, self.proof
        shown = set() if certificate is None else {c.name for c in certificate.claims}
        names = [p.name for p in proof.spec.properties if isinstance(p, Always | Step) and p.name not in shown | proof.violated]
        return f"; exhaustive within the explored bounds only: {'; '.join(names)}" if names else ""

    def meaningful(self) -> Verdict:
        """Vacuity: nothing is proved of nothing."""
        proof = self.proof
        if proof.result is None or (proof.certificate is None and not proof.vacuous and not proof.contradiction):
            return self.verdict(MEANINGFUL, Outcome.UNDETERMINED, "not asked", proof.why)
        if proof.contradiction:
            return self.verdict(MEANINGFUL, Outcome.VIOLATED, "z3", f"everything would hold: {proof.contradiction}")
        detail = f"implied by the types alone: {'; '.join(sorted(proof.vacuous))}" if proof.vacuous else ""
        count = len(proof.certificate.claims) if proof.certificate is not None else 0
        how = f"z3 ({count} claims, each false in some step that the types allow)"
        return self.verdict(MEANINGFUL, Outcome.VIOLATED if detail else Outcome.HOLDS, how, detail)

    def consistent(self) -> Verdict:
        """Explicit and symbolic say the same of the explored part."""
        proof, walk = self.proof, self.proof.graph.walk
        how = f"compared ({walk.states:,} states with the invariant, each conjunct as the term it is)"
        if proof.result is None or proof.certificate is None:
            return self.verdict(CONSISTENT, Outcome.UNDETERMINED, "not compared", proof.why)
        conflicts = [f"the invariant {line} is proved, yet violated" for line in proof.broken]
        conflicts += [f"{c.name!r} is proved, yet violated" for c in proof.certificate.claims if c.name in proof.violated]
        conflicts += [f"{fault.value!r} is proved, yet violated" for fault in walk.flaws if fault.value in proof.table.claimed]
        if proof.edges.unfollowed and wrong_sentence(None) in proof.table.claimed:
            conflicts.append(f"{wrong_sentence(None)!r} is proved, yet {proof.edges.unfollowed:,} explored steps are not")
        return self.verdict(CONSISTENT, Outcome.VIOLATED if conflicts else Outcome.HOLDS, how, "; ".join(conflicts[:FEW]))


_CLAIM = re.compile(r"\bclaim\.(\d+)")


def _failures(proof: Proof) -> tuple[list[str], dict[int, list[str]]]:
    """Queries that did not get their expected answer: those every proof rests on, and those of one claim."""
    base: list[str] = []
    by_claim: dict[int, list[str]] = {}
    if proof.certificate is None:
        return base, by_claim
    needed = {n for n, c in enumerate(proof.certificate.claims) if c.name in proof.table.claimed}
    claims = [_CLAIM.search(q.assertion) for g in proof.certificate.groups for q in g.queries]
    for run in proof.runs:
        if run.ran:
            for (name, expected, answer, _), claim in zip(lines(proof.certificate, run), claims, strict=True):
                if answer != expected:
                    why = f" ({run.why})" if answer == "not asked" and run.why else ""
                    line = f"{run.solver} answers {answer}{why} to {name}"
                    number = None if claim is None else int(claim.group(1)) - 1
                    (base if number is None or number in needed else by_claim.setdefault(number, [])).append(line)
    return base, by_claim
