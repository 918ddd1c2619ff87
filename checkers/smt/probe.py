"""Small questions for z3 besides the proof: rows that no state could choose, and a sample of steps it computes itself."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence

import attrs

from turnproof.checkers.smt import children, compose
from turnproof.checkers.smt.evaluate import Evaluator
from turnproof.checkers.smt.grid import Grid
from turnproof.checkers.smt.pieces import Conjunct, RowPiece, Table
from turnproof.checkers.smt.terms import Term
from turnproof.checkers.smt.translate import SymbolicRow
from turnproof.checkers.smt.z3api import text
from turnproof.checkers.written import show_event

SECONDS = 60.0
QUERY_MS = 5_000


@attrs.frozen
class Asked:
    """Answers to a list of questions, each a preamble and some assertions; ``why`` says why some are missing."""

    answers: tuple[tuple[str, ...], ...]
    why: str


def ask(prelude: str, questions: Sequence[tuple[str, Sequence[str]]]) -> Asked:
    """Ask z3 in a child process."""
    task = {"kind": "script", "solver": "z3", "prelude": prelude, "groups": [[p, list(a)] for p, a in questions], "query_ms": QUERY_MS}
    ended = children.run([task], seconds=SECONDS)[0]
    got = {group: [answer for answer, _ in given] for group, given in ended.answers}
    answers = tuple(tuple(got.get(g, ["not asked"] * len(asked))) for g, (_, asked) in enumerate(questions))
    return Asked(answers, ended.why)


# ── shadowed rows ──


@attrs.frozen
class Shadowed:
    """A row that no state of its types can choose, and the rows above that take them all."""

    row: str
    hidden_by: tuple[str, ...]


def shadowed(table: Table, types: Sequence[Conjunct]) -> tuple[list[Shadowed], list[str], str]:
    """Rows hidden by the ones above them, over ALL states in the types; rows left undecided; and why."""
    prelude = compose.prelude(table, types, ())
    holds = [f"(assert {compose.applied(compose.conjunct_name(n), c.reads)})" for n, c in enumerate(types)]
    base = "\n".join([*holds, *(f"(assert {f.domain})" for f in table.fields)])
    rows = [row for row in table.rows if not row.name.startswith("hole/")]
    questions = [(base, [_conjunction([f"(not {o.guard})" for o in compose.earlier(table, row)] + [row.guard])]) for row in rows]
    asked = ask(prelude, questions)
    found = [row for row, (answer,) in zip(rows, asked.answers, strict=True) if answer == "unsat"]
    undecided = [row.name for row, (answer,) in zip(rows, asked.answers, strict=True) if answer not in ("sat", "unsat")]
    return list(_hiders(table, prelude, base, found)), undecided, asked.why


def _conjunction(parts: Sequence[str]) -> str:
    return f"(and {' '.join(parts)} true)"


def _hiders(table: Table, prelude: str, base: str, rows: Sequence[RowPiece]) -> Iterator[Shadowed]:
    """One row above that hides it alone, if there is one; else all above that share a state with it; none if its guard is never true."""
    if not rows:
        return
    above = [list(compose.earlier(table, row)) for row in rows]
    questions = [
        (base, [row.guard, *(a for o in others for a in (f"(and {row.guard} (not {o.guard}))", f"(and {row.guard} {o.guard})"))])
        for row, others in zip(rows, above, strict=True)
    ]
    for row, others, answers in zip(rows, above, ask(prelude, questions).answers, strict=True):
        alone = [o.name for n, o in enumerate(others) if answers[1 + 2 * n] == "unsat"]
        sharing = [o.name for n, o in enumerate(others) if answers[2 + 2 * n] == "sat"]
        yield Shadowed(row.name, () if answers[0] == "unsat" else tuple(alone[:1] or sharing))


# ── a sample of steps, computed by the solver ──


@attrs.frozen
class Sampled:
    """How many pairs z3 confirmed, and what it said of the others."""

    confirmed: int
    wrong: tuple[str, ...]
    why: str


def sample(grid: Grid, table: Table, *, pairs: int, seed: int) -> Sampled:
    """Let z3 compute a sample of explored steps: at least one of every row that fires, the rest drawn at random.

    For each pair two queries: with its state and event fixed, row, successor, history and effects can be those of the graph
    (``sat``), and they can be no others (``unsat``).
    """
    chosen = _choose(grid, pairs, seed)
    names = {r.name: r for r in table.rows}
    questions, pieces = [], {id(r.row): (r, names[r.name]) for r in grid.symbolic.rows if not r.name.startswith("hole/")}
    for event, node in chosen:
        row, piece = pieces[id(grid.graph.rows[grid.graph.row[event, node]])]
        agreed = _conjunction(list(_agreed(grid, table, row, piece, event, node)))
        questions.append(("\n".join([*compose.meaning(table, piece), *_fixed(grid, event, node)]), [agreed, f"(not {agreed})"]))
    asked = ask(compose.prelude(table, (), ()), questions)
    wrong = [
        f"{show_event(grid.graph.events[event])} in state {node}, row {grid.graph.rows[grid.graph.row[event, node]].name}: "
        f"z3 says {' and '.join(answers)}, expected sat and unsat"
        for (event, node), answers in zip(chosen, asked.answers, strict=True)
        if answers != ("sat", "unsat")
    ]
    return Sampled(len(chosen) - len(wrong), tuple(wrong), asked.why)


def _choose(grid: Grid, pairs: int, seed: int) -> list[tuple[int, int]]:
    graph, chance = grid.graph, random.Random(seed)
    made: dict[tuple[int, int], None] = {}
    for number, row in enumerate(graph.rows[:-1]):
        if graph.fires[number]:
            block = next(b for b in graph.blocks if b.event is row.event)
            events, nodes = (graph.row[block.start : block.stop] == number).nonzero()
            place = chance.randrange(len(events))
            made[block.start + int(events[place]), int(nodes[place])] = None
    tries = 0
    while len(made) < min(pairs, graph.steps) and tries < 10 * pairs:
        tries += 1
        event, node = chance.randrange(len(graph.events)), chance.randrange(graph.explored)
        if 0 <= graph.row[event, node] < graph.hole:
            made[event, node] = None
    return list(made)


def _fixed(grid: Grid, event: int, node: int) -> Iterator[str]:
    for slot in grid.symbolic.slots:
        yield f"(assert (= now.{slot.name} {_literal(grid, slot.now, int(grid.now[slot.name][node]))}))"
    inputs = grid.inputs(grid.graph.events[event])
    for given in grid.symbolic.inputs:
        if given.name in inputs:
            yield f"(assert (= {given.name} {_literal(grid, given.term, int(inputs[given.name][0]))}))"


def _literal(grid: Grid, term: Term, number: int) -> str:
    return text(grid.symbolic.context.literal(number, term.sort.smt))


def _agreed(grid: Grid, table: Table, row: SymbolicRow, piece: RowPiece, event: int, node: int) -> Iterator[str]:
    """That z3's step is the graph's: the row, the state and history after it, and the effects."""
    graph = grid.graph
    yield from (f"(not {other.guard})" for other in compose.earlier(table, piece))
    yield piece.guard
    after = graph.successor[event, node]
    for slot in grid.symbolic.slots:
        yield f"(= next.{slot.name} {_literal(grid, slot.now, int(grid.now[slot.name][after]))})"
    evaluator = Evaluator(
        {**{f"now.{n}": c[node : node + 1] for n, c in grid.now.items()}, **grid.inputs(graph.events[event])}, nodes=grid.nodes
    )
    emitted = list(graph.effect_lists[graph.effects[event, node]])
    for effect in row.effects:
        present = effect.condition is None or bool(evaluator.column(effect.condition)[0])
        if effect.condition is not None:
            yield text(effect.condition) if present else f"(not {text(effect.condition)})"
        if present:
            made = emitted.pop(0) if emitted else None
            if type(made) is not effect.effect:
                yield "false"
                return
            for name, term in effect.fields.items():
                yield f"(= {text(term.expr)} {_literal(grid, term, grid.symbolic.values.number(getattr(made, name)))})"
    if emitted:
        yield "false"
