"""The table in words, for a terminal."""

from __future__ import annotations

import difflib
import textwrap
from collections.abc import Iterator
from typing import Any

from turnproof.checkers.draw import comments, table
from turnproof.checkers.draw.table import Entry
from turnproof.machines.kernel import Machine, TableError

AnyMachine = Machine[Any, Any, Any]
WIDTH = 100


def explain(machine: AnyMachine, event: str | None = None) -> str:
    """Per event, its rows as numbered sentences, and what the named guards stand for. ``event`` picks one by its name.

    Raises :class:`TableError` with the nearest name where there is no such event.
    """
    chosen = None if event is None else _known(machine, event)
    lines = []
    for _, groups in table.by_event(machine):
        for cls, rows in groups:
            if chosen in (None, cls):
                lines += [*_event(cls, rows), ""]
    guards = table.guards(machine, chosen)
    if guards:
        lines.append("where")
        for guard in guards:
            lines += _filled(f"{guard.name}: {guard.detail}", "  ", hang=4)
    return "\n".join(lines).rstrip("\n") + "\n"


def _known(machine: AnyMachine, event: str) -> type:
    known = {cls.__name__: cls for cls in machine.events}
    if event in known:
        return known[event]
    close = difflib.get_close_matches(event, known, n=1)
    raise TableError(
        f"{machine.name} knows no event {event!r}; " + (f"did you mean {close[0]}?" if close else f"it knows {', '.join(known)}")
    )


def _event(cls: type, rows: tuple[Entry, ...]) -> Iterator[str]:
    fields = table.vocabulary((cls,))[0].detail
    yield from _filled(cls.__name__ + (f" ({fields})" if fields else ""), "", hang=4)
    about = comments.about(cls).replace("``", "")
    if about:
        yield from _filled(about, "  ")
    for entry in rows:
        yield from _filled(f"{entry.number}. {sentence(entry)}", "  ", hang=len(str(entry.number)) + 4)


def sentence(entry: Entry) -> str:
    """``at running, when abortable: -> aborted; settle_armed := yes; effects: Release, because ... (row ...)``."""
    parts = [f"{entry.condition}: {entry.answer}"]
    if entry.changes:
        parts.append(", ".join(f"{name} := {value}" for name, value in entry.changes))
    if entry.effects:
        parts.append("effects: " + ", ".join(effect + (f" if {condition}" if condition else "") for effect, condition in entry.effects))
    text = "; ".join(parts)
    for why in entry.why:
        text += f"; because: {why.rstrip('.')}"
    return f"{text}. [{entry.name}]"


def _filled(text: str, indent: str, *, hang: int = 2) -> Iterator[str]:
    filler = textwrap.TextWrapper(
        WIDTH, initial_indent=indent, subsequent_indent=" " * hang, break_long_words=False, break_on_hyphens=False
    )
    yield from filler.wrap(text)
