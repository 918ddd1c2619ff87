"""From the pieces of a certificate to its queries: the one place that says what has to be asked.

Whoever writes a certificate composes its queries here, and whoever re-checks one composes them again and compares; a query
that is missing, added or changed does not pass. The queries of an inductive invariant I over a table of rows:

* the initial state satisfies each conjunct of I, and I can hold at all;
* each row that I lets be chosen leads to a state that satisfies each conjunct of I, one query for each row and conjunct;
* each step of each row from I keeps each claim about steps; each state of I satisfies each claim about states;
* no claim follows from the types alone: it can be false while every symbol keeps to its domain.

That each preamble can hold is a query of its own ("row x can be chosen"). An unsat core that leaves the row out would therefore
mean that the negated claim is impossible whatever the step; this is asked directly, once a claim, with a step that may be anything.

A conjunct is a function of the symbols it reads, defined before any symbol is declared, so its text cannot reach the state
before the step where the state after it is meant. Fields that a row does not write are defined as what they were; the queries
that come to "nothing changed" are asked like all others.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from turnproof.checkers.smt.kinduction import base_and_step
from turnproof.checkers.smt.pieces import Claim, Conjunct, Group, Query, RowPiece, Table

SAT: Final = "sat"
UNSAT: Final = "unsat"
LARGEST_K = 3


def conjunct_name(number: int) -> str:
    """The function that stands for a conjunct."""
    return f"inv.{number + 1}"


def claim_name(number: int) -> str:
    """The function that stands for a claim."""
    return f"claim.{number + 1}"


def sorts(table: Table) -> Mapping[str, str]:
    """Every symbol a text may hold -> its sort."""
    known = {f"{when}.{v.name}": v.sort for when in ("now", "next") for v in table.state}
    return known | {f.name: f.sort for f in table.fields} | {w.name: w.sort for w in table.words}


def prelude(table: Table, invariant: Sequence[Conjunct], claims: Sequence[Claim]) -> str:
    """What every query needs: conjuncts and claims as functions, then the state before the step and the fields of events."""
    known = sorts(table)
    lines = ["(set-logic ALL)"]
    for number, conjunct in enumerate(invariant):
        lines.append(_function(conjunct_name(number), conjunct.reads, conjunct.smt, known))
    for number, claim in enumerate(claims):
        lines.append(_function(claim_name(number), claim.reads, claim.smt, known))
    lines += [f"(declare-const now.{v.name} {v.sort})" for v in table.state]
    lines += [f"(declare-const {f.name} {f.sort})" for f in table.fields]
    return "\n".join(lines)


def _function(name: str, reads: Sequence[str], body: str, known: Mapping[str, str]) -> str:
    return f"(define-fun {name} ({' '.join(f'({symbol} {known[symbol]})' for symbol in reads)}) Bool {body})"


def applied(name: str, reads: Sequence[str], when: str = "now") -> str:
    """A conjunct or claim applied to the symbols it reads; ``when`` replaces ``now`` for the state at another time."""
    if not reads:
        return name
    return f"({name} {' '.join(when + s.removeprefix('now') if s.startswith('now.') else s for s in reads)})"


def groups(table: Table, invariant: Sequence[Conjunct], claims: Sequence[Claim]) -> tuple[Group, ...]:
    """Every group of queries, in order."""
    made = [
        initial(table, invariant),
        possible(invariant),
        types_alone(table, invariant, claims),
        invariant_alone(table, invariant, claims),
    ]
    made.append(states(invariant, claims))
    made += [of_row(table, row, invariant, claims) for row in table.rows]
    for number, claim in enumerate(claims):
        if claim.kind == "always" and claim.k > 1:
            named = {conjunct_name(n): c for n, c in enumerate(invariant)}
            made += base_and_step(table, named, claim_name(number), claim)
    return tuple(made)


def _holds(invariant: Sequence[Conjunct], when: str = "now") -> list[str]:
    return [f"(assert {applied(conjunct_name(n), c.reads, when)})" for n, c in enumerate(invariant)]


def initial(table: Table, invariant: Sequence[Conjunct]) -> Group:
    """The initial state satisfies each conjunct."""
    preamble = "\n".join(f"(define-fun init.{v.name} () {v.sort} {v.initial})" for v in table.state)
    queries = (
        Query(f'the initial state satisfies "{c.name}"', f"(not {applied(conjunct_name(n), c.reads, 'init')})", UNSAT)
        for n, c in enumerate(invariant)
    )
    return Group("initial state", preamble, tuple(queries))


def possible(invariant: Sequence[Conjunct]) -> Group:
    """The invariant can hold: what follows from a contradiction shows nothing."""
    return Group("the invariant", "\n".join(_holds(invariant)), (Query("the invariant can hold", "true", SAT),))


def types_alone(table: Table, invariant: Sequence[Conjunct], claims: Sequence[Claim]) -> Group:
    """Each claim can be false as far as the types go."""
    types = [n for n, c in enumerate(invariant) if c.origin == "type"]
    lines = [f"(assert {applied(conjunct_name(n), invariant[n].reads, when)})" for n in types for when in ("now", "next")]
    preamble = "\n".join([*_free_step(table), *lines])
    queries = (
        Query(f'the types alone do not imply "{c.name}"', f"(not {applied(claim_name(n), c.reads)})", SAT) for n, c in enumerate(claims)
    )
    return Group("what the types allow", preamble, tuple(queries))


def invariant_alone(table: Table, invariant: Sequence[Conjunct], claims: Sequence[Claim]) -> Group:
    """Whether a claim about steps can be false as far as the invariant goes, were any step possible."""
    preamble = "\n".join([*_free_step(table), *_holds(invariant)])
    steps = [(n, c) for n, c in enumerate(claims) if c.kind == "step"]
    queries = (
        Query(
            f'the invariant alone does {"not " if c.needs_step else ""}imply "{c.name}"',
            f"(not {applied(claim_name(n), c.reads)})",
            SAT if c.needs_step else UNSAT,
        )
        for n, c in steps
    )
    return Group("what the invariant allows", preamble, tuple(queries))


def _free_step(table: Table) -> list[str]:
    """A step that may be anything: one event, one answer, counts of 0 or more, any state after it."""
    lines = [f"(declare-const next.{v.name} {v.sort})" for v in table.state]
    lines += [f"(declare-const {w.name} {w.sort})" for w in table.words]
    lines += [f"(assert {f.domain})" for f in table.fields]
    lines += [f"(assert (<= 0 {w.name}))" for w in table.words if w.name.startswith("count.")]
    for prefix in ("on.", "answer."):
        names = [w.name for w in table.words if w.name.startswith(prefix)]
        lines.append(f"(assert {_one_of(names)})")
    return lines


def _one_of(names: Sequence[str]) -> str:
    """Exactly one of the names is true."""
    cases = [f"(and {' '.join(name if name == chosen else f'(not {name})' for name in names)} true)" for chosen in names]
    return f"(or {' '.join(cases)} false)"


def states(invariant: Sequence[Conjunct], claims: Sequence[Claim]) -> Group:
    """Each claim about states follows from the invariant."""
    followed = [(n, c) for n, c in enumerate(claims) if c.kind == "always" and c.k == 1]
    queries = (Query(f'the invariant implies "{c.name}"', f"(not {applied(claim_name(n), c.reads)})", UNSAT) for n, c in followed)
    return Group("claims about states", "\n".join(_holds(invariant)), tuple(queries))


def of_row(table: Table, row: RowPiece, invariant: Sequence[Conjunct], claims: Sequence[Claim]) -> Group:
    """One row: whether it is ever chosen, that it preserves each conjunct, and that its steps keep each claim about steps."""
    lines = meaning(table, row)
    lines += [f"(assert {f.domain})" for f in table.fields] + [f"(assert {table.assumption})"] + _holds(invariant)
    lines += [f"(assert (not {other.guard}))" for other in earlier(table, row)] + [f"(assert {row.guard})"]
    queries = [Query(f"row {row.name} {'can' if row.fires else 'cannot'} be chosen", "true", SAT if row.fires else UNSAT)]
    kept, shown = [], []
    for n, conjunct in enumerate(invariant):
        after = [f"next.{name.removeprefix('now.')}" for name in conjunct.reads]
        kept.append((conjunct.name, applied(conjunct_name(n), conjunct.reads, "next"), _untouched(table, row, after)))
    for n, claim in enumerate(claims):
        if claim.kind == "step":
            shown.append((claim.name, applied(claim_name(n), claim.reads), _untouched(table, row, claim.reads)))
    queries += [*_each(row, "preserves", "conjuncts", kept), *_each(row, "keeps", "claims", shown)]
    return Group(f"row {row.name}", "\n".join(lines), tuple(queries))


TOGETHER, APART = 24, 4
"""Most statements in one query; and how many a row may leave untouched without their being asked together."""


def _untouched(table: Table, row: RowPiece, reads: Sequence[str]) -> bool:
    """Whether a statement reads nothing that the row does: not its event, no effect of it, no field that it or a history changes."""
    changed = {f"on.{row.event}", *row.counts, *(f"next.{name}" for name in (*row.next, *table.histories))}
    return changed.isdisjoint(reads)


def _each(row: RowPiece, verb: str, what: str, statements: Sequence[tuple[str, str, bool]]) -> Iterator[Query]:
    """A query for each statement; those that a step of the row does not touch are asked together, for they hold as they held before.

    Up to :data:`APART` of them are asked one by one all the same: a small certificate is read by people.
    """
    together = sum(untouched for _, _, untouched in statements) > APART
    quiet = [term for _, term, untouched in statements if untouched and together]
    for name, term, untouched in statements:
        if not (untouched and together):
            yield Query(f'row {row.name} {verb} "{name}"', f"(not {term})", UNSAT)
    for at in range(0, len(quiet), TOGETHER):
        part = quiet[at : at + TOGETHER]
        yield Query(f"row {row.name} {verb} {what} {at + 1} to {at + len(part)} of those it does not touch", _no_all(part), UNSAT)


def _no_all(terms: Sequence[str]) -> str:
    return f"(not (and {' '.join(terms)} true))"


def earlier(table: Table, row: RowPiece) -> Iterator[RowPiece]:
    """The rows of the same event above ``row``."""
    for other in table.rows:
        if other is row:
            return
        if other.event == row.event:
            yield other


def meaning(table: Table, row: RowPiece) -> list[str]:
    """What the words of a step mean in a step of ``row``, as definitions."""
    machine = [v for v in table.state if v.name not in table.histories]
    lines = [f"(define-fun next.{v.name} () {v.sort} {row.next.get(v.name, f'now.{v.name}')})" for v in machine]
    for word in table.words:
        body = "true" if word.name in (f"on.{row.event}", f"answer.{row.answer}") else "false"
        lines.append(
            f"(define-fun {word.name} () {word.sort} {row.counts.get(word.name, '0') if word.name.startswith('count.') else body})"
        )
    return lines + [f"(define-fun next.{v.name} () {v.sort} {table.histories[v.name]})" for v in table.state if v.name in table.histories]
