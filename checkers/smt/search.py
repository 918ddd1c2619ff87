"""Looks for an inductive invariant. Runs in a child process, and only suggests: what it finds is proved by re-checking it.

Theory of operation
===================

An *obligation* is a statement and a row: a step of the row, from a state where all living conjuncts hold, leads to a state that
satisfies the statement (a conjunct), or keeps it (a claim about steps). Types, properties about states and the author's lemmas
are conjuncts from the start. For each obligation one query:

* ``unsat``: done; the unsat core says which conjuncts it stood on;
* ``sat``: a counterexample to induction. The fields that made it fail are found by a second query (its core, as PDR lifts a
  state), and the explored states suggest a conjunct about them that rules it out (:mod:`.mine`). The new conjunct lives from now
  on, with obligations of its own;
* ``sat`` and nothing that was never seen rules it out: the statement cannot be shown. It dies, and what stood on it is asked again.

When nothing is left to ask, the living conjuncts are inductive together: this is Houdini (Flanagan and Leino, 2001) with
candidates made on demand. Last, conjuncts that nothing stands on, and mined ones that the others imply, are left out.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import attrs
import msgspec

from turnproof.checkers.smt import compose, z3api
from turnproof.checkers.smt.mine import Oracle, unpack
from turnproof.checkers.smt.pieces import Claim, Conjunct, Group, Table
from turnproof.checkers.smt.z3api import Context, Expr, Solver

MOST_MINED = 400
"""Conjuncts mined in one search; a machine that needs more needs a lemma of its author."""
MOST_WRONG = 60
"""Guesses that may die before the search stops guessing: what the graph suggests is then true only within its bounds."""
SAY_EVERY = 50


@attrs.define(eq=False)
class Statement:
    """A conjunct of the invariant, or a claim about steps."""

    name: str
    origin: str
    """``type``, ``property``, ``lemma`` or ``mined``; ``step`` for a claim about steps."""
    reads: tuple[str, ...]
    smt: str
    term: Expr
    label: Expr
    failed: dict[str, Any] | None = None
    """The counterexample to induction it died of."""
    stands_on: dict[str, frozenset[int]] = attrs.field(factory=dict)
    """Row -> numbers of the conjuncts that its obligation needed."""


@attrs.define(eq=False)
class RowTerms:
    """A row over ``now`` and the fields of its event."""

    name: str
    chosen: Expr
    after: dict[str, Expr]
    """``now.x`` -> the term of ``x`` after the step; only what may change."""
    words: dict[str, Expr]
    """Every word of the step -> its term."""
    solver: Solver
    known: int = 0
    """How many statements the solver has heard of."""


class Search:
    """One search. ``task`` is what :func:`turnproof.checkers.smt.prove.task` makes."""

    most_mined, most_wrong = MOST_MINED, MOST_WRONG

    def __init__(self, task: Mapping[str, Any]) -> None:
        self.table = task["table"]
        self.seed, self.query_ms = int(task["seed"]), int(task["query_ms"])
        self.oracle = self.read_oracle(task["mined"])
        self.context = Context()
        self.symbols = {name: self.context.symbol(name, sort) for name, sort in task["sorts"].items()}
        self.read: dict[tuple[str, str], Expr] = {}
        self.statements: list[Statement] = []
        self.mined: dict[str, int] = {}
        self.wrong = 0
        self.asked = 0
        self.undecided: list[str] = []
        self.assumptions = [self.term("true" if f["domain"] is None else f["domain"]) for f in self.table["fields"]] + [
            self.term(self.table["assumption"])
        ]
        self.initial = [(self.symbols[f"now.{v['name']}"], self.term(v["initial"], v["sort"])) for v in self.table["state"]]
        self.rows = [self._row(place) for place in range(len(self.table["rows"]))]
        self.by_name = {row.name: row for row in self.rows}
        for piece in task["statements"]:
            self.state(piece["name"], piece["origin"], tuple(piece["reads"]), piece["smt"])

    def read_oracle(self, mined: Mapping[str, Any]) -> Oracle:
        """What the explored states say."""
        return unpack(mined)

    # ── reading the pieces ──

    def term(self, text: str, sort: str = z3api.BOOL) -> Expr:
        """The term of a text."""
        key = (text, sort)
        if key not in self.read:
            marker = self.context.symbol("a marker", sort)
            self.read[key] = z3api.arguments(
                self.context.parse(f"(assert (= |a marker| {text}))", {**self.symbols, "a marker": marker})[0]
            )[1]
        return self.read[key]

    def _row(self, place: int) -> RowTerms:
        piece = self.table["rows"][place]
        above = [r for r in self.table["rows"][:place] if r["event"] == piece["event"]]
        chosen = z3api.conjunction([*(z3api.negation(self.term(r["guard"])) for r in above), self.term(piece["guard"])])
        words: dict[str, Expr] = {}
        for variable in self.table["state"]:
            if variable["name"] not in self.table["histories"]:
                words[f"next.{variable['name']}"] = self.term(
                    piece["next"].get(variable["name"], f"now.{variable['name']}"), variable["sort"]
                )
        for word in self.table["words"]:
            name = word["name"]
            truth = name in (f"on.{piece['event']}", f"answer.{piece['answer']}")
            counted = self.term(piece["counts"].get(name, "0"), z3api.INT) if name.startswith("count.") else self.context.boolean(truth)
            words[name] = self._replaced(counted, words)
        sorts = {v["name"]: v["sort"] for v in self.table["state"]}
        for name, text in self.table["histories"].items():
            words[f"next.{name}"] = self._replaced(self.term(text, sorts[name]), words)
        after = {f"now.{n.removeprefix('next.')}": t for n, t in words.items() if n.startswith("next.")}
        changed = {n: t for n, t in after.items() if z3api.identity(t) != z3api.identity(self.symbols[n])}
        solver = Solver(self.context, seed=self.seed, timeout_ms=self.query_ms)
        solver.add(*(self._replaced(a, words) for a in self.assumptions), chosen)
        return RowTerms(piece["name"], chosen, changed, words, solver)

    def _replaced(self, term: Expr, words: Mapping[str, Expr]) -> Expr:
        return z3api.substitute(term, [(self.symbols[name], words[name]) for name in z3api.symbols_in(term) if name in words])

    def state(self, name: str, origin: str, reads: tuple[str, ...], smt: str) -> int:
        """Add a statement; its number."""
        number = len(self.statements)
        label = self.context.symbol(f"statement {number}", z3api.BOOL)
        self.statements.append(Statement(name, origin, reads, smt, self.term(smt), label))
        return number

    # ── obligations ──

    def after(self, statement: Statement, row: RowTerms) -> Expr | None:
        """What has to hold after a step of the row; None where the step changes nothing that the statement reads."""
        if statement.origin == "step":
            kept = z3api.substitute(statement.term, [(self.symbols[n], row.words[n]) for n in statement.reads if n in row.words])
            return None if z3api.literal_value(z3api.simplified(kept)) == 1 else kept
        if not any(name in row.after for name in statement.reads):
            return None
        return z3api.substitute(statement.term, [(self.symbols[n], row.after[n]) for n in statement.reads if n in row.after])

    def living(self) -> list[int]:
        """Numbers of the conjuncts that may be assumed."""
        return [n for n, s in enumerate(self.statements) if s.failed is None and s.origin != "step"]

    def run(self) -> Iterator[dict[str, Any]]:
        """Do all there is to do; reports of progress on the way."""
        todo = deque((n, row.name) for n in range(len(self.statements)) for row in self.rows)
        for number, statement in enumerate(self.statements):
            if statement.origin != "step" and not self.starts(statement):
                self.die(number, {"row": None, "before": {}, "inputs": {}, "after": self._values_at_start()}, todo)
        while todo:
            number, name = todo.popleft()
            if self.asked % SAY_EVERY == 0:
                yield {"progress": [self.asked, self.asked + len(todo)]}
            if self.statements[number].failed is None:
                self.oblige(number, self.by_name[name], todo)

    def starts(self, statement: Statement) -> bool:
        """Whether the initial state satisfies it."""
        return z3api.literal_value(z3api.simplified(z3api.substitute(statement.term, self.initial))) == 1

    def _values_at_start(self) -> dict[str, int]:
        return {z3api.name_of(s).removeprefix("now."): z3api.literal_value(v) or 0 for s, v in self.initial}

    def oblige(self, number: int, row: RowTerms, todo: deque[tuple[int, str]]) -> None:
        """Ask one obligation until it holds or the statement dies."""
        statement = self.statements[number]
        after = self.after(statement, row)
        if after is None:
            statement.stands_on[row.name] = frozenset()
            return
        while statement.failed is None:
            answer, core, found = self.ask(row, z3api.negation(after), self.living())
            if answer == "unsat":
                statement.stands_on[row.name] = core
                return
            if answer == "unknown":
                self.undecided.append(f'row {row.name}: "{statement.name}"')
                self.die(number, {"row": row.name, "unknown": True, "before": {}, "inputs": {}, "after": {}}, todo)
                return
            if not self.rule_out(found, row, after, todo):
                self.die(number, found, todo)

    def ask(self, row: RowTerms, wrong: Expr, living: Sequence[int]) -> tuple[str, frozenset[int], dict[str, Any]]:
        """Can a step of the row, from a state where the living hold, be wrong? Answer, core, and the step if it can."""
        solver = row.solver
        for statement in self.statements[row.known :]:
            if statement.origin != "step":
                solver.add(z3api.implication(statement.label, statement.term))
        row.known = len(self.statements)
        solver.push()
        try:
            solver.add(wrong)
            answer = solver.check(*(self.statements[n].label for n in living))
            self.asked += 1
            if answer == "unsat":
                return answer, frozenset(int(z3api.name_of(e).split()[1]) for e in solver.core()), {}
            return answer, frozenset(), self._step(row) if answer == "sat" else {}
        finally:
            solver.pop()

    def _step(self, row: RowTerms) -> dict[str, Any]:
        """The step in the solver's model."""
        before = {v["name"]: row.solver.value(self.symbols[f"now.{v['name']}"]) for v in self.table["state"]}
        after = {n.removeprefix("next."): row.solver.value(t) for n, t in row.words.items() if n.startswith("next.")}
        return {
            "row": row.name,
            "before": before,
            "inputs": {f["name"]: row.solver.value(self.symbols[f["name"]]) for f in self.table["fields"]},
            "after": after,
        }

    # ── candidates ──

    def rule_out(self, step: Mapping[str, Any], row: RowTerms, after: Expr, todo: deque[tuple[int, str]]) -> bool:
        """Add a conjunct that the state before the step violates; False if there is none."""
        if len(self.mined) >= self.most_mined or self.wrong >= self.most_wrong:
            return False
        for candidate in self.oracle.candidates(step["before"], self.lift(step, row, after)):
            known = self.mined.get(candidate.smt)
            if known is None:
                number = self.state(candidate.name, "mined", candidate.reads, candidate.smt)
                self.mined[candidate.smt] = number
                if not self.starts(self.statements[number]):
                    self.statements[number].failed = dict(step)
                    continue
                # Its own obligations come first: a wrong guess should die before much stands on it.
                todo.extendleft((number, r.name) for r in self.rows)
                return True
        return False

    def lift(self, step: Mapping[str, Any], row: RowTerms, after: Expr) -> list[str]:
        """The slots whose values alone make the step wrong, whatever the others are."""
        solver = Solver(self.context, seed=self.seed, timeout_ms=self.query_ms)
        for field in self.table["fields"]:
            symbol = self.symbols[field["name"]]
            solver.add(z3api.equal(symbol, self.context.literal(step["inputs"][field["name"]], field["sort"])))
        solver.add(z3api.disjunction([z3api.negation(row.chosen), after]))
        labels = {}
        for place, variable in enumerate(self.table["state"]):
            labels[place] = self.context.symbol(f"slot {place}", z3api.BOOL)
            symbol = self.symbols[f"now.{variable['name']}"]
            solver.track(z3api.equal(symbol, self.context.literal(step["before"][variable["name"]], variable["sort"])), labels[place])
        if solver.check() != "unsat":
            return []
        return [self.table["state"][int(z3api.name_of(e).split()[1])]["name"] for e in solver.core()]

    def die(self, number: int, step: dict[str, Any], todo: deque[tuple[int, str]]) -> None:
        """The statement cannot be shown; what stood on it is asked again."""
        self.statements[number].failed = step
        self.wrong += self.statements[number].origin == "mined"
        for other, statement in enumerate(self.statements):
            for row, core in list(statement.stands_on.items()):
                if number in core and statement.failed is None:
                    del statement.stands_on[row]
                    todo.append((other, row))

    # ── what is left in the end ──

    def needed(self) -> list[int]:
        """Conjuncts that were given, and the mined ones that something needed stands on."""
        wanted = [n for n, s in enumerate(self.statements) if s.failed is None and s.origin != "mined"]
        found = set(wanted)
        while wanted:
            for core in self.statements[wanted.pop()].stands_on.values():
                wanted += core - found
                found |= core
        return sorted(n for n in found if self.statements[n].origin != "step")

    def implied(self, conjuncts: Sequence[int]) -> tuple[list[int], list[str]]:
        """Without the mined conjuncts that the others imply; and the names of given ones that the others imply."""
        solver = Solver(self.context, seed=self.seed, timeout_ms=self.query_ms)
        for number in conjuncts:
            solver.add(z3api.implication(self.statements[number].label, self.statements[number].term))
        kept, redundant = list(conjuncts), []
        for number in sorted(conjuncts, key=lambda n: (self.statements[n].origin != "mined", -n)):
            statement = self.statements[number]
            solver.push()
            solver.add(z3api.negation(statement.term))
            answer = solver.check(*(self.statements[n].label for n in kept if n != number))
            solver.pop()
            if answer == "unsat" and statement.origin == "mined":
                kept.remove(number)
            elif answer == "unsat" and statement.origin != "type":
                redundant.append(statement.name)
        return kept, redundant

    def fires(self, row: RowTerms, conjuncts: Sequence[int]) -> bool:
        """Whether the conjuncts leave a state in which the row is chosen."""
        return self.ask(row, self.context.boolean(True), conjuncts)[0] != "unsat"

    def result(self) -> dict[str, Any]:
        """Everything the parent needs to write a certificate."""
        kept, redundant = self.implied(self.needed())
        statements = [{"name": s.name, "origin": s.origin, "reads": s.reads, "smt": s.smt} for s in (self.statements[n] for n in kept)]
        return {
            "invariant": statements,
            "steps": [s.name for s in self.statements if s.origin == "step" and s.failed is None],
            "failed": {s.name: s.failed for s in self.statements if s.failed is not None and s.origin != "mined"},
            "redundant": redundant,
            "fires": {row.name: self.fires(row, kept) for row in self.rows},
            "asked": self.asked,
            "mined": len(self.mined),
            "undecided": self.undecided,
        }


def answers(task: Mapping[str, Any]) -> Iterator[object]:
    """What the child writes: progress, and the result last."""
    search = Search(task)
    yield from search.run()
    result = search.result()
    result["k"] = dict(by_k_induction(task, result, search.statements))
    yield {"result": result}


def by_k_induction(task: Mapping[str, Any], result: Mapping[str, Any], statements: Sequence[Statement]) -> Iterator[tuple[str, int]]:
    """Properties about states that died of a step, and the k for which k-induction shows them nevertheless."""
    table = msgspec.convert(task["table"], Table)
    invariant = tuple(msgspec.convert(piece, Conjunct) for piece in result["invariant"])
    for statement in statements:
        if statement.origin == "property" and statement.failed is not None and statement.failed["row"] is not None:
            for k in range(2, compose.LARGEST_K + 1):
                claim = Claim(statement.name, "always", (), statement.reads, statement.smt, k=k)
                groups = compose.groups(table, invariant, [claim])[-k - 1 :]
                if all(_answered(compose.prelude(table, invariant, [claim]), group, int(task["query_ms"])) for group in groups):
                    yield statement.name, k
                    break


def _answered(prelude: str, group: Group, limit_ms: int) -> bool:
    """Whether z3 gives every query of the group its expected answer."""
    shell = z3api.Script()
    shell.run(f"(set-option :timeout {limit_ms})\n{prelude}\n{group.preamble}")
    answers = [answer for answer, _ in shell.ask([q.assertion for q in group.queries])]
    return answers == [q.expected for q in group.queries]
