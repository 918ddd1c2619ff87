"""What a certificate is made of: the table as text, the invariant, the claims, and every query with its expected answer.

All texts are SMT-LIB 2. Terms of a row speak of ``now.*`` and ``event.*``; those of a history also of ``next.*``, ``on.*``,
``answer.*`` and ``count.*``, the words of a step. A conjunct or a claim names in ``reads`` the symbols its text holds.
"""

from __future__ import annotations

from typing import Literal

import msgspec

FORMAT = "turnproof certificate 1"


class Piece(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A part of a certificate; unknown keys are an error, so that nothing in the file goes unread."""


class StateVariable(Piece, frozen=True):
    """A field of the state or of a history: its sort, its value at the start, and what its numbers mean."""

    name: str
    sort: str
    initial: str
    values: tuple[str, ...] = ()


class EventField(Piece, frozen=True):
    """A field of an event, and its domain."""

    name: str
    sort: str
    domain: str = "true"


class WordOfStep(Piece, frozen=True):
    """A symbol that each row gives a meaning to."""

    name: str
    sort: str


class RowPiece(Piece, frozen=True):
    """A row: it is chosen where its guard holds and the guard of no earlier row of its event does."""

    name: str
    event: str
    answer: Literal["taken", "ignored", "refused"]
    guard: str
    next: dict[str, str]
    counts: dict[str, str]
    fires: bool = True
    """Whether the invariant leaves a state in which it is chosen."""


class Conjunct(Piece, frozen=True):
    """One conjunct of the invariant."""

    name: str
    origin: Literal["type", "property", "lemma", "mined"]
    reads: tuple[str, ...]
    smt: str


class Claim(Piece, frozen=True):
    """A property that the queries prove: of every state the invariant allows, or of every step from there."""

    name: str
    kind: Literal["always", "step"]
    requirements: tuple[str, ...]
    reads: tuple[str, ...]
    smt: str
    needs_step: bool = True
    """For a step: whether the invariant alone, whatever the step, does not imply it."""
    k: int = 1
    """For a state: 1 if the invariant implies it, else the k of the k-induction that shows it."""


class Query(Piece, frozen=True, rename={"assertion": "assert"}):
    """One question: can the assertion hold after the preamble of its group?"""

    name: str
    assertion: str
    expected: Literal["sat", "unsat"]


class Group(Piece, frozen=True):
    """Queries that share a preamble."""

    name: str
    preamble: str
    queries: tuple[Query, ...]


class Table(Piece, frozen=True):
    """A machine and its histories as text."""

    machine: str
    digest: str
    """SHA-256 of the table's text as a person reads it."""
    events: tuple[str, ...]
    state: tuple[StateVariable, ...]
    fields: tuple[EventField, ...]
    words: tuple[WordOfStep, ...]
    histories: dict[str, str]
    """History variable -> its value after a step, over the words of the step."""
    rows: tuple[RowPiece, ...]
    assumption: str = "true"
    """Environment assumption over the state and the event."""
    claimed: tuple[str, ...] = ()
    """Claims that must be among those shown, or nothing is: of a system, that no step is a fault."""
    bounds: tuple[str, ...] = ()
    """What is bounded in production too and stays so in the proof: of a system, its channels and budgets."""


class Certificate(Piece, frozen=True):
    """A proof that can be checked from this alone."""

    format: str
    made_with: dict[str, str]
    table: Table
    invariant: tuple[Conjunct, ...]
    claims: tuple[Claim, ...]
    unproved: dict[str, str]
    """Properties that are not proved here, and why."""
    prelude: str
    groups: tuple[Group, ...]
    digest: str
    """SHA-256 of everything above, against damage; what the queries show does not rest on it."""
