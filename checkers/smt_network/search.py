"""Looks for an inductive invariant of a system: :mod:`turnproof.checkers.smt.search`, with two things done for many rows and states.

* Obligations of one row are asked together: a step of the row breaks one of these statements? ``unsat`` answers all of them. A
  system has hundreds of rows, and most statements survive most of them.
* Candidates come from bits: for each answer to each question the set of explored states that give it. Which answers never occur
  together is known from the start, and three at a time cost one ``and`` of two sets.

As there, what is found here is only a suggestion; the certificate's own queries prove it, one by one.
"""

from __future__ import annotations

import base64
import functools
import itertools
import operator
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from turnproof.checkers.smt import z3api
from turnproof.checkers.smt.mine import Candidate, Feature, Oracle
from turnproof.checkers.smt.search import SAY_EVERY, RowTerms, Search
from turnproof.checkers.smt.z3api import Expr, Solver

TOGETHER = 24
"""Obligations of a row asked in one query."""
FAR = 12
"""Questions beside the relevant ones that candidates with two premises may ask."""


class Bits(Oracle):
    """:class:`Oracle` over sets of states as integers, one bit a state."""

    def __init__(self, features: Sequence[Feature], having: Sequence[Sequence[int]]) -> None:
        self.features, self.having = tuple(features), having
        self.seen = [frozenset(c for c, states in enumerate(classes) if states) for classes in having]
        self.all = functools.reduce(operator.or_, (states for classes in having for states in classes), 0)
        self.together: dict[tuple[int, int], list[frozenset[int]]] = {}

    def beside(self, given: int, target: int, answer: int) -> frozenset[int]:
        """The answers to ``target`` of explored states that answer ``given`` so."""
        known = self.together.get((given, target))
        if known is None:
            known = [self.allowed(mine, target) for mine in self.having[given]]
            self.together[given, target] = known
        return known[answer]

    def gives(self, states: int, target: int, answer: int) -> bool:
        """Whether one of these states gives this answer to ``target``."""
        classes = self.having[target]
        return 0 <= answer < len(classes) and bool(states & classes[answer])

    def allowed(self, states: int, target: int) -> frozenset[int]:
        """The answers to ``target`` of these states."""
        return frozenset(c for c, having in enumerate(self.having[target]) if states & having)

    def candidates(self, state: Mapping[str, int], relevant: Iterable[str]) -> Iterator[Candidate]:
        """Candidates that exclude ``state``: first those about the ``relevant`` slots alone, small ones first."""
        answers = [feature.answer(state) for feature in self.features]
        wanted = set(relevant)
        near = [n for n, f in enumerate(self.features) if wanted.issuperset(f.slots)]
        touching = [n for n, f in enumerate(self.features) if n not in near and wanted.intersection(f.slots)]
        everything = list(range(len(self.features)))
        yield from self._excluded(near, answers)
        yield from self._one(near, near, answers)
        yield from self._two(near, near, answers)
        yield from self._one(near, everything, answers)
        yield from self._one(everything, near, answers)
        yield from self._three(near, answers)
        pool = [*near, *touching[:FAR]]
        yield from self._two(pool, pool, answers)
        yield from self._excluded(everything, answers)
        yield from self._one(everything, everything, answers)
        yield from self._two(near, everything, answers)

    def _excluded(self, pool: Sequence[int], answers: Sequence[int]) -> Iterator[Candidate]:
        for target in pool:
            if answers[target] not in self.seen[target]:
                yield self._candidate((), answers, target, self.seen[target])

    def _ordered(self, found: list[tuple[float, int, Candidate]]) -> Iterator[Candidate]:
        found.sort(key=lambda f: f[:2])
        yield from (candidate for _, _, candidate in found)

    def _add(
        self, found: list[tuple[float, int, Candidate]], given: Sequence[int], answers: Sequence[int], target: int, allowed: frozenset[int]
    ) -> None:
        strength = len(allowed) / len(self.features[target].classes)
        found.append((strength, len(found), self._candidate(given, answers, target, allowed)))

    def _one(self, premises: Sequence[int], targets: Sequence[int], answers: Sequence[int]) -> Iterator[Candidate]:
        found: list[tuple[float, int, Candidate]] = []
        for given in premises:
            if answers[given] in self.seen[given]:
                for target in targets:
                    if target != given:
                        allowed = self.beside(given, target, answers[given])
                        if answers[target] not in allowed:
                            self._add(found, (given,), answers, target, allowed)
        yield from self._ordered(found)

    def _two(self, premises: Sequence[int], targets: Sequence[int], answers: Sequence[int]) -> Iterator[Candidate]:
        found: list[tuple[float, int, Candidate]] = []
        for one, other in itertools.combinations(premises, 2):
            states = self._states((one, other), answers)
            if states:
                for target in targets:
                    if target not in (one, other) and not self.gives(states, target, answers[target]):
                        self._add(found, (one, other), answers, target, self.allowed(states, target))
        yield from self._ordered(found)

    def _three(self, pool: Sequence[int], answers: Sequence[int]) -> Iterator[Candidate]:
        for given in itertools.combinations(pool, 3):
            states = self._states(given, answers)
            if states:
                for target in pool:
                    if target not in given and not self.gives(states, target, answers[target]):
                        yield self._candidate(given, answers, target, self.allowed(states, target))

    def _states(self, given: Sequence[int], answers: Sequence[int]) -> int:
        states = self.all
        for number in given:
            classes = self.having[number]
            states &= classes[answers[number]] if 0 <= answers[number] < len(classes) else 0
        return states


class NetworkSearch(Search):
    """A search that asks the obligations of a row together."""

    # A system has more variables than a machine; its explored part suggests more, and more that is true only there.
    most_mined, most_wrong = 4_000, 800

    def __init__(self, task: Mapping[str, Any]) -> None:
        self.pending: dict[str, dict[int, None]] = {}
        self.heard = 0
        super().__init__(task)
        self.solver = Solver(self.context, seed=self.seed, timeout_ms=self.query_ms)

    def read_oracle(self, mined: Mapping[str, Any]) -> Oracle:
        """What the explored states say."""
        features = [Feature(f["kind"], tuple(f["slots"]), tuple((w, s) for w, s in f["classes"]), f["low"]) for f in mined["features"]]
        return Bits(features, [[int.from_bytes(base64.b64decode(text), "little") for text in classes] for classes in mined["having"]])

    def term(self, text: str, sort: str = z3api.BOOL) -> Expr:
        """The term of a text. All texts of the task are read at the first call: each call of the parser declares every symbol."""
        if not self.read:
            wanted = list(dict.fromkeys(self._texts()))
            markers = {f"a marker {s}": self.context.symbol(f"a marker {s}", s) for s in dict.fromkeys(s for _, s in wanted)}
            script = "\n".join(f"(assert (= |a marker {s}| {t}))" for t, s in wanted)
            for key, read in zip(wanted, self.context.parse(script, {**self.symbols, **markers}), strict=True):
                self.read[key] = z3api.arguments(read)[1]
        return super().term(text, sort)

    def _texts(self) -> Iterator[tuple[str, str]]:
        sorts = {v["name"]: v["sort"] for v in self.table["state"]}
        yield from ((f["domain"], z3api.BOOL) for f in self.table["fields"])
        yield from ((v["initial"], v["sort"]) for v in self.table["state"])
        yield from ((f"now.{v['name']}", v["sort"]) for v in self.table["state"])
        for row in self.table["rows"]:
            yield row["guard"], z3api.BOOL
            yield from ((text, sorts[name]) for name, text in row["next"].items())
            yield from ((text, z3api.INT) for text in row["counts"].values())
        yield "0", z3api.INT

    def run(self) -> Iterator[dict[str, Any]]:
        """Do all there is to do; reports of progress on the way."""
        ignored: deque[tuple[int, str]] = deque()
        for number, statement in enumerate(self.statements):
            if statement.origin != "step" and not self.starts(statement):
                self.die(number, {"row": None, "before": {}, "inputs": {}, "after": self._values_at_start()}, ignored)
        self.pending = {row.name: {} for row in self.rows}
        for number in range(len(self.statements)):
            self.owe(number)
        said = 0
        while any(self.pending.values()):
            name = max(self.pending, key=lambda n: len(self.pending[n]))
            self.settle(self.by_name[name])
            if self.asked - said >= SAY_EVERY:
                said = self.asked
                yield {"progress": [self.asked, self.asked + sum(map(len, self.pending.values()))]}

    def owe(self, number: int) -> None:
        """Every row has to keep the statement, as far as it changes anything that the statement reads."""
        statement = self.statements[number]
        for row in self.rows:
            if self.after(statement, row) is None:
                statement.stands_on[row.name] = frozenset()
            else:
                self.pending[row.name][number] = None

    def settle(self, row: RowTerms) -> None:
        """Some obligations of one row, until they hold or one of them has cost a candidate or its life."""
        owed = [n for n in self.pending[row.name] if self.statements[n].failed is None][:TOGETHER]
        if not owed:
            self.pending[row.name].clear()
            return
        terms = {n: self.after(self.statements[n], row) for n in owed}
        wrongs = {n: self.context.boolean(False) if term is None else z3api.negation(term) for n, term in terms.items()}
        answer, core, step, broken = self.ask_together(row, wrongs)
        if answer == "unsat":
            for n in owed:
                self.statements[n].stands_on[row.name] = core - {n} if self.statements[n].origin == "step" else core
                self.pending[row.name].pop(n, None)
            return
        if answer != "sat":
            if len(owed) == 1:
                self.undecided.append(f"{self.statements[owed[0]].name} after {row.name}")
                self.die(owed[0], {"row": row.name, "unknown": True}, deque())
            else:
                # Too much at once: one by one from here on.
                for n in owed:
                    self.alone(row, n)
            return
        self.blame(row, broken[0], terms[broken[0]], step)

    def alone(self, row: RowTerms, number: int) -> None:
        """One obligation of a row."""
        term = self.after(self.statements[number], row)
        if term is None:
            return
        answer, core, step, _ = self.ask_together(row, {number: z3api.negation(term)})
        if answer == "unsat":
            self.statements[number].stands_on[row.name] = core
            self.pending[row.name].pop(number, None)
        elif answer == "sat":
            self.blame(row, number, term, step)
        else:
            self.undecided.append(f"{self.statements[number].name} after {row.name}")
            self.die(number, {"row": row.name, "unknown": True}, deque())

    def blame(self, row: RowTerms, number: int, after: Expr | None, step: dict[str, Any]) -> None:
        """A step breaks the statement: a candidate rules its first state out, or the statement dies."""
        assert after is not None
        before = len(self.statements)
        if self.rule_out(step, row, after, deque()):
            for new in range(before, len(self.statements)):
                if self.statements[new].failed is None:
                    self.owe(new)
        else:
            self.die(number, step, deque())

    def ask_together(
        self, row: RowTerms, wrongs: Mapping[int, Expr], conjuncts: Sequence[int] | None = None
    ) -> tuple[str, frozenset[int], dict[str, Any], list[int]]:
        """Whether the row breaks one of the statements; the core, or the step and those it breaks."""
        # One solver for all rows: what is known of states is asserted once, not once for each of some hundred rows.
        solver, living = self.solver, self.living() if conjuncts is None else conjuncts
        for statement in self.statements[self.heard :]:
            if statement.origin != "step":
                solver.add(z3api.implication(statement.label, statement.term))
        self.heard = len(self.statements)
        solver.push()
        try:
            solver.add(*self.assumptions, row.chosen, z3api.disjunction(list(wrongs.values())))
            answer = solver.check(*(self.statements[n].label for n in living))
            self.asked += 1
            if answer == "unsat":
                return answer, frozenset(int(z3api.name_of(e).split()[1]) for e in solver.core()), {}, []
            if answer != "sat":
                return answer, frozenset(), {}, []
            return answer, frozenset(), self._stepped(row), [n for n, wrong in wrongs.items() if solver.value(wrong) == 1]
        finally:
            solver.pop()

    def _stepped(self, row: RowTerms) -> dict[str, Any]:
        """The step in the solver's model; what it changes is left out until somebody asks."""
        value = self.solver.value
        return {
            "row": row.name,
            "before": {v["name"]: value(self.symbols[f"now.{v['name']}"]) for v in self.table["state"]},
            "inputs": {f["name"]: value(self.symbols[f["name"]]) for f in self.table["fields"]},
            "after": {n.removeprefix("now."): value(t) for n, t in row.after.items()},
        }

    def fires(self, row: RowTerms, conjuncts: Sequence[int]) -> bool:
        """Whether the conjuncts leave a state in which the row is chosen."""
        return self.ask_together(row, {0: self.context.boolean(True)}, conjuncts)[0] != "unsat"

    def die(self, number: int, step: dict[str, Any], todo: deque[tuple[int, str]]) -> None:
        """The statement cannot be shown; what stood on it is asked again."""
        again: deque[tuple[int, str]] = deque()
        super().die(number, step, again)
        for owed, row in again:
            self.pending.setdefault(row, {})[owed] = None
        for waiting in self.pending.values():
            waiting.pop(number, None)


def answers(task: Mapping[str, Any]) -> Iterator[object]:
    """What the child writes: progress, and the result last."""
    search = NetworkSearch(task)
    yield from search.run()
    yield {"result": {**search.result(), "k": {}}}
