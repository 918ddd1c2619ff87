"""A machine's table as texts: what the Markdown page, the HTML page and the explanation in a terminal are made of."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import attrs

from turnproof.checkers.draw import comments, words
from turnproof.checkers.draw.timers import length
from turnproof.machines.kernel import TIMER_EFFECTS, Machine, Row, fields_of, formula, nodes, show, show_constant

AnyMachine = Machine[Any, Any, Any]


@attrs.frozen(kw_only=True)
class Entry:
    """One row."""

    number: int
    name: str
    section: str
    """The heading above it in the source."""
    event: type
    where: str
    """The phases it applies at, in words."""
    guard: str
    said: str
    """``taken``, ``ignored`` or ``refused``."""
    answer: str
    """``-> aborted``, ``stays``, ``ignored: why`` or ``refused: why``."""
    changes: tuple[tuple[str, str], ...]
    """Field and new value, the phase left out."""
    effects: tuple[tuple[str, str], ...]
    """Effect and its condition, empty if it has none."""
    why: tuple[str, ...]
    """The comment above the row and its ``because``."""
    first: bool
    """No row above it is about the same event."""

    @property
    def condition(self) -> str:
        """Where and when it applies: ``at running, when abortable``; ``always`` or ``otherwise`` if nothing narrows it."""
        parts = [*([f"at {self.where}"] if self.where != "any phase" else []), *([f"when {self.guard}"] if self.guard else [])]
        return ", ".join(parts) or ("always" if self.first else "otherwise")

    @property
    def label(self) -> str:
        """What its name adds to that of its event."""
        return self.name.removeprefix(self.event.__name__).lstrip("/")


def entries(machine: AnyMachine) -> tuple[Entry, ...]:
    """Every row, in order."""
    return tuple(_entries(machine))


def _entries(machine: AnyMachine) -> Iterator[Entry]:
    seen: set[type] = set()
    for number, (row, beside) in enumerate(zip(machine.rows, comments.rows(machine), strict=True), 1):
        yield Entry(
            number=number,
            name=row.name,
            section=beside.section,
            event=row.event,
            where=words.phases(machine, row),
            guard=words.guard(row),
            said=row.answer,
            answer=words.answer(machine, row),
            changes=tuple((name, value) for name, value in words.changes(machine, row) if name != machine.phase),
            effects=tuple(words.effects(row)),
            why=tuple(text for text in (beside.comment, row.because) if text),
            first=row.event not in seen,
        )
        seen.add(row.event)


def by_event(machine: AnyMachine) -> tuple[tuple[str, tuple[tuple[type, tuple[Entry, ...]], ...]], ...]:
    """Rows grouped by event, events under the heading where their first row stands. Both in the order of the table."""
    rows = entries(machine)
    headings: dict[str, list[type]] = {}
    for event in dict.fromkeys(entry.event for entry in rows):
        heading = next(entry.section for entry in rows if entry.event is event)
        headings.setdefault(heading, []).append(event)
    return tuple(
        (heading, tuple((event, tuple(entry for entry in rows if entry.event is event)) for event in events))
        for heading, events in headings.items()
    )


@attrs.frozen
class Word:
    """One line of a vocabulary: a field, an event, an effect, a phase."""

    name: str
    detail: str
    """Domain, fields, or initial value."""
    about: str


def state_fields(machine: AnyMachine) -> tuple[Word, ...]:
    """Each field of the state: its domain and initial value, and its docstring."""
    said = comments.fields(machine.state)
    return tuple(
        Word(name, f"{words.domain(machine.state, name)}; at first {show_constant(getattr(machine.initial, name))}", said.get(name, ""))
        for name in fields_of(machine.state)
    )


def phases(machine: AnyMachine) -> tuple[Word, ...]:
    """Each phase and its docstring."""
    said = comments.fields(type(machine.phases[0]))
    return tuple(Word(show_constant(phase), "", said.get(phase.name, "")) for phase in machine.phases)


def vocabulary(classes: tuple[type, ...]) -> tuple[Word, ...]:
    """Events or effects with their fields and docstrings; the timer effects, which every machine shares, are left out."""
    return tuple(
        Word(cls.__name__, "; ".join(f"{name}: {words.domain(cls, name)}" for name in fields_of(cls)), comments.about(cls))
        for cls in classes
        if cls not in TIMER_EFFECTS
    )


def guards(machine: AnyMachine, event: type | None = None) -> tuple[Word, ...]:
    """Each named formula that the rows (of one event) use, and what it stands for; those it uses itself come before it."""
    found: dict[str, Word] = {}

    def note(row: Row[Any, Any], part: object) -> None:
        for node in nodes(part):
            if node.op == "named" and node.args[0] not in found:
                note(row, node.args[1])
                found.setdefault(str(node.args[0]), Word(str(node.args[0]), words.told(row, node.args[1]), ""))

    for row in machine.rows:
        if event in (None, row.event):
            for part in (row.when, row.data, *row.emit):
                note(row, part)
    return tuple(found.values())


@attrs.frozen
class Clock:
    """One timer."""

    name: str
    length: str
    source: str
    runs: str
    """Where it runs, and where it is paused."""
    expires: str
    about: str


def clocks(machine: AnyMachine) -> tuple[Clock, ...]:
    """Each timer with its duration and the source of it."""
    found = []
    for rule in machine.timers:
        runs = f"while {show(formula(rule.armed, 'armed'))}"
        if rule.paused is not None:
            runs += f"; paused while {show(formula(rule.paused, 'paused'))}"
        about = comments.fields(type(rule.timer)).get(rule.timer.name, "")
        found.append(Clock(show_constant(rule.timer), length(rule.duration), rule.duration.source, runs, rule.expires.__name__, about))
    return tuple(found)
