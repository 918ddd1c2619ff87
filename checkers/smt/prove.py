"""From a specification to the pieces of its proof: the table as text, the statements to show, and the search for an invariant."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import attrs
import msgspec

from turnproof.checkers.progress import Progress
from turnproof.checkers.smt import carried, children, compose, z3api
from turnproof.checkers.smt.features import features_of, table_of
from turnproof.checkers.smt.grid import Grid
from turnproof.checkers.smt.mine import pack
from turnproof.checkers.smt.pieces import EventField, RowPiece, StateVariable, Table, WordOfStep
from turnproof.checkers.smt.translate import AnyMachine, Symbolic, on_name
from turnproof.checkers.words import check_words
from turnproof.machines.kernel import OnlyIf, Row, TableError, fields_of, formula, show, show_constant
from turnproof.specs.language import Always, Carries, Spec, Step

QUERY_MS = 5_000
"""Time for one query."""


@attrs.frozen
class Wanted:
    """One statement to show. ``origin`` as :class:`.search.Statement` has it."""

    name: str
    origin: str
    reads: tuple[str, ...]
    smt: str


@attrs.frozen(eq=False)
class Unreadable:
    """A property that no solver can read, and why."""

    name: str
    why: str


def statements(symbolic: Symbolic, spec: Spec) -> tuple[list[Wanted], list[Unreadable]]:
    """Types, properties and lemmas as statements; and the properties that cannot be."""
    made = [_wanted(f"{slot} keeps to its domain", "type", term) for slot, term in symbolic.domains().items()]
    unreadable: list[Unreadable] = []
    owners = list(dict.fromkeys(slot.owner for slot in symbolic.slots))
    for prop in spec.properties:
        try:
            if isinstance(prop, Always | Step):
                check_words(prop.holds, "the property", states=owners, events=symbolic.machine.events, step=isinstance(prop, Step))
            if isinstance(prop, Always):
                made.append(_wanted(prop.name, "property", symbolic.state_formula(prop.holds, "the property")))
            elif isinstance(prop, Step):
                made.append(_wanted(prop.name, "step", symbolic.step_formula(prop.holds, "the property")))
            elif isinstance(prop, Carries):
                made.append(_wanted(prop.name, "step", carried.claim(symbolic, prop)))
        except TableError as error:
            unreadable.append(Unreadable(prop.name, str(error)))
    for name, lemma in spec.lemmas:
        if any(w.name == name for w in made):
            raise TableError(f"the lemma {name!r} is called like a property or another lemma")
        made.append(_wanted(name, "lemma", symbolic.state_formula(lemma, f"the lemma {name!r}")))
    return made, unreadable


def _wanted(name: str, origin: str, term: z3api.Expr) -> Wanted:
    return Wanted(name, origin, z3api.symbols_in(term), z3api.text(term))


def table(symbolic: Symbolic, spec: Spec) -> Table:
    """A machine and its histories as text. Properties must have been translated before: their counts are words of a step."""
    rows = tuple(_rows(symbolic))
    domains = symbolic.input_domains()
    assumption = (
        "true" if spec.assume is None else z3api.text(symbolic.step_formula(formula(spec.assume, "the assumption"), "the assumption"))
    )
    words = [name for name in symbolic.symbols() if name.startswith(("on.", "answer."))]
    return Table(
        machine=symbolic.machine.name,
        digest=hashlib.sha256(table_text(symbolic.machine).encode()).hexdigest(),
        events=tuple(event_name(event) for event in symbolic.machine.events),
        state=tuple(
            StateVariable(
                s.name, s.now.sort.smt, z3api.text(symbolic.initial[s.name]), tuple(show_constant(m) for m in s.now.sort.members or ())
            )
            for s in symbolic.slots
        ),
        fields=tuple(
            EventField(i.name, i.term.sort.smt, z3api.text(domains[i.name]) if i.name in domains else "true") for i in symbolic.inputs
        )
        + tuple(EventField(name, term.sort.smt) for name, term in symbolic.opaque.values()),
        words=tuple(WordOfStep(name, z3api.BOOL) for name in words)
        + tuple(WordOfStep(name, z3api.INT) for name in symbolic.counts)
        + tuple(WordOfStep(word.name, z3api.INT) for word in symbolic.miscarried.values()),
        histories={name: z3api.text(term) for name, term in symbolic.history.items()},
        rows=rows,
        assumption=assumption,
    )


def _rows(symbolic: Symbolic) -> Iterator[RowPiece]:
    for row in symbolic.rows:
        counts = {word.name: z3api.text(symbolic.count_of(word, row)) for word in symbolic.counts.values()}
        counts |= {word.name: z3api.text(carried.count_of(symbolic, word, row)) for word in symbolic.miscarried.values()}
        yield RowPiece(
            name=row.name,
            event=event_name(row.event),
            answer=row.answer.value,
            guard=z3api.text(row.guard),
            next={name: z3api.text(term) for name, term in row.successor.items()},
            counts={name: text for name, text in counts.items() if text != "0"},
        )


def event_name(event: type) -> str:
    """The event as its word in a step calls it."""
    return on_name(event).removeprefix("on.")


def table_text(machine: AnyMachine) -> str:
    """The table as a person reads it, for its digest: two tables with one text have the same rows in the same order."""
    lines = [f"machine {machine.name}: {machine.initial}"]
    for row in machine.rows:
        data = "" if row.data is None else _updates(machine, row)
        emit = "; ".join(f"{show(e.effect)} if {show(e.condition)}" if isinstance(e, OnlyIf) else show(e) for e in row.emit)
        lines.append(f"{row!r} to={show_constant(row.to)} {data} emit=[{emit}] {row.ignore}{row.refuse}")
    return "\n".join(lines)


def _updates(machine: AnyMachine, row: Row[Any, Any]) -> str:
    return ", ".join(f"{name}={show(getattr(row.data, name))}" for name in fields_of(machine.state))


def task(pieces: Table, wanted: Sequence[Wanted], grid: Grid, *, seed: int) -> dict[str, object]:
    """What the child that searches needs, as plain data."""
    features = features_of(grid.symbolic)
    return {
        "kind": "search",
        "table": msgspec.to_builtins(pieces),
        "sorts": dict(compose.sorts(pieces)),
        "statements": [attrs.asdict(w) for w in wanted],
        "mined": pack(features, table_of(features, grid)),
        "seed": seed,
        "query_ms": QUERY_MS,
    }


def plain(work: Mapping[str, object]) -> dict[str, Any]:
    """A task as the child reads it: lists where tuples were."""
    made: dict[str, Any] = json.loads(json.dumps(work))
    return made


def search(work: Mapping[str, object], *, seconds: float, progress: Progress) -> tuple[dict[str, Any] | None, str]:
    """The result of a search and why there is none, one of them empty."""

    def hear(_: int, answer: Any) -> None:
        if "progress" in answer:
            progress.say("proof: obligations", *answer["progress"])

    ended = children.run([work], seconds=seconds, hear=hear)[0]
    results = [answer["result"] for answer in ended.answers if "result" in answer]
    return (results[0], "") if results else (None, ended.why or "the search gave no result")
