"""From what a proof found to its verdicts. No word here says more than what both solvers confirmed."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator

import attrs

from turnproof.checkers.smt.counterexample import Reach, describe
from turnproof.checkers.smt.engine import Proof
from turnproof.checkers.smt.rechecking import Run, lines
from turnproof.checkers.verdict import Engine, Outcome, Verdict
from turnproof.specs.language import Always, Carries, Property, Step

DOMAINS = "every field keeps to its domain"
ANSWERED = "a row answers every event, in every state the invariant allows"
INDUCTIVE = "the invariant is inductive"
CONSISTENT = "the proof and the explored graph do not contradict each other"
MEANINGFUL = "no property follows from the types alone"
FEW = 3


def verdicts(proof: Proof) -> list[Verdict]:
    """Every verdict of the proof: properties first, then what they rest on."""
    judge = _Judge(proof)
    made = [judge.of_property(p) for p in proof.spec.properties if isinstance(p, Always | Carries | Step)]
    made += [judge.domains(), judge.answered(), *judge.lemmas(), judge.inductive(), judge.meaningful(), judge.consistent()]
    return [*made, *proof.rechecked]


@attrs.frozen
class _Shown:
    """Whether something is proved: ``outcome``, and the words for it."""

    outcome: Outcome
    how: str
    detail: str = ""


class _Judge:
    def __init__(self, proof: Proof) -> None:
        self.proof, self.result = proof, proof.result
        self.machine = proof.grid.graph.machine.name
        self.reach = Reach(proof.grid)
        self.base, self.by_claim = _failures(proof)

    def verdict(self, check: str, shown: _Shown, *, requirements: tuple[str, ...] = (), engine: Engine = Engine.SYMBOLIC) -> Verdict:
        return Verdict(
            machine=self.machine,
            check=check,
            engine=engine,
            outcome=shown.outcome,
            how=shown.how,
            detail=shown.detail,
            requirements=requirements,
        )

    # ── properties ──

    def of_property(self, prop: Property) -> Verdict:
        return self.verdict(prop.name, self._property(prop.name), requirements=prop.requirements)

    def _property(self, name: str) -> _Shown:
        unreadable = next((u.why for u in self.proof.unreadable if u.name == name), None)
        if unreadable is not None:
            return _Shown(Outcome.UNDETERMINED, "not translated", f"no solver can read it: {unreadable}")
        violated = self.proof.violated.get(name)
        if violated is not None and violated.sure:
            return _Shown(Outcome.VIOLATED, "replayed on the explored graph", f"{violated.words} ({violated.times:,} such)")
        if self.result is None:
            return _Shown(Outcome.UNDETERMINED, "not proved", self.proof.why)
        if name in self.proof.vacuous:
            return _Shown(
                Outcome.VIOLATED,
                "vacuous",
                "it follows from the types of the fields alone, so it says nothing about the machine: strengthen it or take it out",
            )
        claim = self._claim(name)
        return self._failed(name) if claim is None else self._proved(claim)

    def _claim(self, name: str) -> int | None:
        certificate = self.proof.certificate
        return None if certificate is None else next((n for n, c in enumerate(certificate.claims) if c.name == name), None)

    def _failed(self, name: str) -> _Shown:
        assert self.result is not None
        found = self.result["failed"].get(name)
        if found is None:
            return _Shown(Outcome.UNDETERMINED, "not proved", self.proof.why or "the search gave it up")
        return _Shown(Outcome.UNDETERMINED, "not proved", describe(self.proof.grid, self.reach, found))

    def _proved(self, number: int) -> _Shown:
        """How a claim of the certificate stands after the re-check."""
        assert self.proof.certificate is not None
        claim = self.proof.certificate.claims[number]
        wrong = self.base + self.by_claim.get(number, [])
        if wrong:
            return _Shown(Outcome.UNDETERMINED, "not proved", "its proof did not pass the re-check: " + "; ".join(wrong[:FEW]))
        by = f"{claim.k}-induction over " if claim.k > 1 else ""
        note = "" if claim.kind == "always" or claim.needs_step else "; it follows from the invariant, whatever the step"
        over = f"{by}an invariant of {len(self.proof.certificate.invariant)} conjuncts"
        return _Shown(Outcome.HOLDS, f"{self._word()} (any length of run, any count; {over}; {self._by()}{note})")

    def _word(self) -> str:
        return "proved" if self._both() else "proved by z3 only, not re-checked"

    def _both(self) -> bool:
        return bool(self.proof.runs) and all(run.ran for run in self.proof.runs)

    def _by(self) -> str:
        ran = [f"{run.solver} {run.version}" for run in self.proof.runs if run.ran]
        return (
            f"certificate re-checked by {' and '.join(ran)}" if self._both() else f"certificate checked by {ran[0]}; cvc5 is not installed"
        )

    # ── what they rest on ──

    def _rests(self, *, failing: str = "") -> _Shown:
        """The verdict of what holds if the base of the certificate does."""
        if self.result is None or self.proof.certificate is None:
            return _Shown(Outcome.UNDETERMINED, "not proved", failing or self.proof.why or "no certificate could be made")
        if failing:
            return _Shown(Outcome.UNDETERMINED, "not proved", failing)
        if self.base:
            return _Shown(Outcome.UNDETERMINED, "not proved", "the re-check failed: " + "; ".join(self.base[:FEW]))
        return _Shown(Outcome.HOLDS, f"{self._word()} (any length of run, any count; {self._by()})")

    def domains(self) -> Verdict:
        """Each row keeps each field to its domain, so that every bound of the types is an invariant."""
        failed = [w.name for w in self.proof.wanted if w.origin == "type" and self.result is not None and w.name in self.result["failed"]]
        details = (
            [f"{name}: {describe(self.proof.grid, self.reach, self.result['failed'][name])}" for name in failed] if self.result else []
        )
        return self.verdict(DOMAINS, self._rests(failing="; ".join(details)))

    def answered(self) -> Verdict:
        """No hole of the table is ever chosen. The hole of an event is a row of its own, if its last row has a guard."""
        open_holes = (
            []
            if self.result is None
            else [name.removeprefix("hole/") for name, fires in self.result["fires"].items() if name.startswith("hole/") and fires]
        )
        failing = (
            f"the invariant leaves states in which no row answers {', '.join(open_holes)}: end the event's rows with one without a guard"
            if open_holes
            else ""
        )
        return self.verdict(ANSWERED, self._rests(failing=failing))

    def lemmas(self) -> Iterator[Verdict]:
        """The author's lemmas, each on its own: one that is not inductive helps nobody."""
        for name, _ in self.proof.spec.lemmas:
            found = None if self.result is None else self.result["failed"].get(name)
            failing = "" if found is None else describe(self.proof.grid, self.reach, found)
            yield self.verdict(f"lemma: {name}", self._rests(failing=failing))

    def inductive(self) -> Verdict:
        """The invariant itself, with what is redundant in it."""
        shown = self._rests()
        if shown.outcome is Outcome.HOLDS and self.proof.certificate is not None and self.result is not None:
            kinds = Counter(str(c.origin) for c in self.proof.certificate.invariant)
            parts = [
                f"{kinds[k]} {words}"
                for k, words in (("type", "of types"), ("property", "properties"), ("lemma", "lemmas"), ("mined", "mined from the graph"))
                if kinds[k]
            ]
            queries = sum(len(g.queries) for g in self.proof.certificate.groups)
            redundant = f"; implied by the others: {'; '.join(self.result['redundant'])}" if self.result["redundant"] else ""
            dead = [name for name, fires in self.result["fires"].items() if not fires and not name.startswith("hole/")]
            never = f"; rows it never lets be chosen: {', '.join(dead)}" if dead else ""
            made_of = f" ({', '.join(parts)})" if parts else ""
            size = f"{len(self.proof.certificate.invariant)} conjuncts{made_of}, {queries:,} queries"
            shown = attrs.evolve(shown, how=f"{shown.how}: {size}{redundant}{never}")
        return self.verdict(INDUCTIVE, shown)

    def meaningful(self) -> Verdict:
        """Vacuity: nothing is proved of nothing."""
        if self.result is None:
            return self.verdict(MEANINGFUL, _Shown(Outcome.UNDETERMINED, "not asked", self.proof.why))
        if self.proof.contradiction:
            return self.verdict(MEANINGFUL, _Shown(Outcome.VIOLATED, "z3", f"everything would hold: {self.proof.contradiction}"))
        detail = f"implied by the types alone: {'; '.join(sorted(self.proof.vacuous))}" if self.proof.vacuous else ""
        count = sum(w.origin in ("step", "property") for w in self.proof.wanted)
        return self.verdict(
            MEANINGFUL,
            _Shown(
                Outcome.VIOLATED if detail else Outcome.HOLDS,
                f"z3 ({count} properties, each false in some step that the types allow)",
                detail,
            ),
        )

    def consistent(self) -> Verdict:
        """Explicit and symbolic say the same of the explored part."""
        graph = self.proof.grid.graph
        conflicts = list(self._conflicts())
        size = f"{len(graph.states):,} states and {graph.steps:,} steps"
        how = f"compared ({size} with {len(self.proof.wanted)} statements and the invariant, each as the z3 term it is)"
        shown = _Shown(Outcome.VIOLATED if conflicts else Outcome.HOLDS, how, "; ".join(conflicts[:FEW]))
        if not conflicts and self.result is None:
            shown = _Shown(Outcome.UNDETERMINED, how, self.proof.why)
        return self.verdict(CONSISTENT, shown)

    def _conflicts(self) -> Iterator[str]:
        for name, found in self.proof.violated.items():
            if not found.sure:
                yield f"{name!r}: its z3 term is false where its Python reading is true: {found.words}"
            elif self._claim(name) is not None and self._property_is_shown(name):
                yield f"{name!r} is proved, yet violated: {found.words}"
        for name, found in self.proof.broken.items():
            yield f"the invariant {name!r} is proved, yet violated: {found.words}"
        if self.result is not None:
            yield from self._row_conflicts()
            yield from self._unexplained()

    def _property_is_shown(self, name: str) -> bool:
        number = self._claim(name)
        return number is not None and self._proved(number).outcome is Outcome.HOLDS

    def _row_conflicts(self) -> Iterator[str]:
        assert self.result is not None
        graph = self.proof.grid.graph
        for number, row in enumerate(graph.machine.rows):
            if graph.fires[number] and not self.result["fires"].get(row.name, True):
                yield f"row {row.name} is proved never to be chosen, yet answers {int(graph.fires[number]):,} explored steps"

    def _unexplained(self) -> Iterator[str]:
        """A step from a reachable state breaks a property that the graph says holds."""
        assert self.result is not None
        for name, found in self.result["failed"].items():
            if found.get("unknown") or found["row"] is None or name in self.proof.violated:
                continue
            node = self.reach.node(found["before"])
            if node is not None and node < self.proof.grid.graph.explored and self._explored(found):
                step = describe(self.proof.grid, self.reach, found)
                yield f"{name!r} is broken by a step from a reachable state, which the graph does not know: {step}"

    def _explored(self, found: dict[str, dict[str, int]]) -> bool:
        """Whether the step is one that the graph explored: its event's tokens and counters are within the bounds."""
        return self.reach.node(found["after"]) is not None


_CLAIM = re.compile(r"\bclaim\.(\d+)")


def _failures(proof: Proof) -> tuple[list[str], dict[int, list[str]]]:
    """Queries that did not get their expected answer: those every proof rests on, and those of one claim."""
    base: list[str] = []
    by_claim: dict[int, list[str]] = {}
    if proof.certificate is None:
        return base, by_claim
    claims = [[int(n) - 1 for n in _CLAIM.findall(q.assertion)] for g in proof.certificate.groups for q in g.queries]
    for run in proof.runs:
        if run.ran:
            for (name, expected, answer, _), about in zip(lines(proof.certificate, run), claims, strict=True):
                if answer != expected:
                    line = f"{run.solver} answers {answer}{_because(run, answer)} to {name}"
                    for told in [by_claim.setdefault(claim, []) for claim in about] or [base]:
                        told.append(line)
    return base, by_claim


def _because(run: Run, answer: str) -> str:
    return f" ({run.why})" if answer == "not asked" and run.why else ""
