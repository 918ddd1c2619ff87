"""k-induction: a claim that no single step preserves may still hold if it held k states in a row (Sheeran, Singh, Stalmarck, 2000).

The texts of the pieces are taken as they are and renamed: ``now.x`` and ``next.x`` of step j become ``s<j>.x`` and ``s<j+1>.x``,
every other symbol gets ``step<j>.`` before it. Which row a step takes is a number; all rows stand in one formula, so this is
the fallback, not the rule.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from turnproof.checkers.smt.pieces import Claim, Conjunct, Group, Query

if TYPE_CHECKING:
    from turnproof.checkers.smt.pieces import RowPiece, Table

_SYMBOL = re.compile(r"(?<![A-Za-z0-9_.#!])(now|next|event|on|answer|count)\.[A-Za-z0-9_.]*")


def at_step(text: str, step: int) -> str:
    """A text of the pieces, about step number ``step``."""
    return _SYMBOL.sub(lambda found: _renamed(found.group(), step), text)


def _renamed(symbol: str, step: int) -> str:
    if symbol.startswith("now."):
        return f"s{step}.{symbol.removeprefix('now.')}"
    return f"s{step + 1}.{symbol.removeprefix('next.')}" if symbol.startswith("next.") else f"step{step}.{symbol}"


def holds_at(name: str, reads: Sequence[str], step: int) -> str:
    """A conjunct or claim about states, of the state before step number ``step``."""
    return f"({name} {' '.join(at_step(symbol, step) for symbol in reads)})" if reads else name


def base_and_step(table: Table, invariant: Mapping[str, Conjunct], name: str, claim: Claim) -> list[Group]:
    """The queries of one claim, called ``name``: the first k states of a run satisfy it, and so does what follows k that do."""
    made = []
    for length in range(claim.k):
        lines = _states(table, 0)
        lines += [f"(assert (= s0.{v.name} {v.initial}))" for v in table.state]
        lines += [line for step in range(length) for line in transition(table, step)]
        query = Query(f'after {length} steps "{claim.name}"', f"(not {holds_at(name, claim.reads, length)})", "unsat")
        made.append(Group(f"{claim.k}-induction of {claim.name}, after {length} steps", "\n".join(lines), (query,)))
    lines = _states(table, 0)
    for step in range(claim.k):
        lines += [f"(assert {holds_at(conjunct, piece.reads, step)})" for conjunct, piece in invariant.items()]
        lines += [f"(assert {holds_at(name, claim.reads, step)})", *transition(table, step)]
    query = Query(f'{claim.k} states in a row keep "{claim.name}"', f"(not {holds_at(name, claim.reads, claim.k)})", "unsat")
    possible = Query(f'{claim.k} states in a row may satisfy "{claim.name}"', "true", "sat")
    made.append(Group(f"{claim.k}-induction of {claim.name}", "\n".join(lines), (possible, query)))
    return made


def _states(table: Table, number: int) -> list[str]:
    return [f"(declare-const s{number}.{v.name} {v.sort})" for v in table.state]


def transition(table: Table, step: int) -> list[str]:
    """Step number ``step``: any row that is chosen, and the state after it."""
    row = f"step{step}.row"
    lines = [f"(declare-const {row} Int)", *_states(table, step + 1)]
    lines += [f"(declare-const {at_step(f.name, step)} {f.sort})" for f in table.fields]
    lines += [f"(assert {at_step(f.domain, step)})" for f in table.fields]
    for word in table.words:
        lines.append(f"(define-fun {at_step(word.name, step)} () {word.sort} {_word(table, word.name, row, step)})")
    lines.append(f"(assert {at_step(table.assumption, step)})")
    lines.append(f"(assert (and (<= 0 {row}) (< {row} {len(table.rows)})))")
    for number, piece in enumerate(table.rows):
        lines.append(
            f"(assert (=> (= {row} {number}) (and {at_step(_chosen(table, number), step)} {at_step(_after(table, piece), step)})))"
        )
    return lines + [f"(assert (= s{step + 1}.{name} {at_step(text, step)}))" for name, text in table.histories.items()]


def _word(table: Table, name: str, row: str, step: int) -> str:
    if name.startswith("count."):
        text = "0"
        for number, piece in enumerate(table.rows):
            if name in piece.counts:
                text = f"(ite (= {row} {number}) {at_step(piece.counts[name], step)} {text})"
        return text
    numbers = [n for n, piece in enumerate(table.rows) if name in (f"on.{piece.event}", f"answer.{piece.answer}")]
    return f"(or {' '.join(f'(= {row} {n})' for n in numbers)} false)"


def _chosen(table: Table, number: int) -> str:
    piece = table.rows[number]
    above = [other for other in table.rows[:number] if other.event == piece.event]
    return f"(and {' '.join(f'(not {other.guard})' for other in above)} {piece.guard})"


def _after(table: Table, piece: RowPiece) -> str:
    machine = [v.name for v in table.state if v.name not in table.histories]
    parts = (f"(= next.{name} {piece.next.get(name, 'now.' + name)})" for name in machine)
    return f"(and {' '.join(parts)} true)"
