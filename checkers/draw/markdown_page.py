"""The Markdown page of a machine, as GitHub renders it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from turnproof.checkers.draw import comments, table
from turnproof.checkers.draw.scene import Scene
from turnproof.checkers.draw.table import Entry, Word
from turnproof.machines.kernel import Machine

AnyMachine = Machine[Any, Any, Any]

NOTE = "Written by `turnproof draw` from the table of the machine; do not edit."
ORDER = "Rows are tried from the top; the first that matches answers. Names of guards stand for the formulas under Guards."


def markdown(machine: AnyMachine, pictures: Sequence[Scene] = ()) -> str:
    """State, events, effects, timers and every row of a machine, with links to ``pictures``."""
    parts = [f"# {machine.name}", "", NOTE, "", *_about(machine)]
    if pictures:
        first, *others = pictures
        parts += [f"![{first.title}]({first.name}.svg)", ""]
        links = ", ".join(f"[{scene.title.split(': ')[-1]}]({scene.name}.svg)" for scene in others)
        parts += [f"Also: {links}.", ""] if links else []
        parts += [f"All of it on one page, to be opened in a browser: [{machine.name}.html]({machine.name}.html).", ""]
    parts += ["## Rows", "", ORDER, ""]
    for heading, events in table.by_event(machine):
        parts += [f"### {_sentence(heading)}", ""] if heading else []
        for event, entries in events:
            parts += [*_event(machine, event, entries), ""]
    for title, header, rows in _vocabulary(machine):
        parts += [] if not rows else [f"## {title}", "", *grid(header, rows), ""]
    return "\n".join(parts).rstrip("\n") + "\n"


def _about(machine: AnyMachine) -> Iterator[str]:
    module = comments.home(machine)
    text = (module.__doc__ or "").strip() if module else ""
    if text:
        yield from (line.rstrip() for line in text.replace("``", "`").splitlines())
        yield ""


def _event(machine: AnyMachine, event: type, entries: Sequence[Entry]) -> Iterator[str]:
    about = comments.about(event)
    yield f"#### {event.__name__}"
    yield ""
    if about:
        yield from (escape(about), "")
    yield from grid(("#", "row", "when", "answer", "changes", "effects", "why"), (_cells(entry) for entry in entries))


def _cells(entry: Entry) -> tuple[str, ...]:
    word, _, why = entry.answer.partition(": ")
    effects = (escape(effect) + (f", if {escape(condition)}" if condition else "") for effect, condition in entry.effects)
    return (
        str(entry.number),
        escape(entry.label),
        escape(entry.condition.removeprefix("when ")),
        f"**{word}**: {escape(why)}" if why else escape(entry.answer),
        "<br>".join(f"{escape(name)} := {escape(value)}" for name, value in entry.changes),
        "<br>".join(effects),
        "<br>".join(escape(text) for text in entry.why),
    )


def _vocabulary(machine: AnyMachine) -> Iterator[tuple[str, tuple[str, ...], list[tuple[str, ...]]]]:
    def cells(words: Sequence[Word]) -> list[tuple[str, ...]]:
        return [(f"`{word.name}`", escape(word.detail), escape(word.about)) for word in words]

    yield "Guards", ("guard", "stands for", ""), cells(table.guards(machine))
    yield "Phases", ("phase", "", "meaning"), cells(table.phases(machine))
    yield "State", ("field", "values", "meaning"), cells(table.state_fields(machine))
    yield "Events", ("event", "fields", "meaning"), cells(table.vocabulary(machine.events))
    yield "Effects", ("effect", "fields", "meaning"), cells(table.vocabulary(machine.effects))
    header = ("timer", "duration", "runs", "expiry", "meaning", "source of the duration")
    clocks = table.clocks(machine)
    yield "Timers", header, [(f"`{c.name}`", c.length, escape(c.runs), f"`{c.expires}`", escape(c.about), escape(c.source)) for c in clocks]


def grid(header: Sequence[str], rows: Iterable[Sequence[str]]) -> Iterator[str]:
    """A table without the columns that are empty in every row."""
    body = [*rows]
    kept = [n for n in range(len(header)) if n == 0 or any(row[n] for row in body)]
    yield "| " + " | ".join(header[n] for n in kept) + " |"
    yield "|" + "|".join("---" for _ in kept) + "|"
    for row in body:
        yield "| " + " | ".join(row[n] for n in kept) + " |"


def _sentence(text: str) -> str:
    return text[:1].upper() + text[1:]


def escape(text: str) -> str:
    """Text for a cell: on one line, no character of it taken for Markdown."""
    text = " ".join(text.replace("``", "`").split())
    for character in ("\\", "|", "*", "_", "<", "["):
        text = text.replace(character, f"\\{character}")
    return text
