"""The HTML page of a machine: pictures and tables in one file that needs nothing else, for a design review."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from html import escape
from typing import Any

from turnproof.checkers.draw import comments, table
from turnproof.checkers.draw.scene import Scene
from turnproof.checkers.draw.table import Entry, Word
from turnproof.machines.kernel import Machine

AnyMachine = Machine[Any, Any, Any]

STYLE = """
body { font: 15px/1.5 Helvetica, Arial, 'Liberation Sans', sans-serif; color: #24292f; margin: 0 auto; max-width: 1180px; padding: 24px; }
h1, h2, h3, h4 { color: #0b1f33; line-height: 1.25; } h2 { border-bottom: 1px solid #c3cad2; padding-bottom: 4px; margin-top: 48px; }
nav a { margin-right: 14px; white-space: nowrap; } a { color: #0b4f8a; }
svg a { cursor: pointer; } svg a:hover text { text-decoration: underline; }
.about { white-space: pre-line; max-width: 80ch; } .quiet { color: #6a737d; }
figure { margin: 24px 0 40px; overflow-x: auto; }
figure svg { box-sizing: border-box; max-width: 100%; height: auto; border: 1px solid #e1e4e8; }
table { border-collapse: collapse; width: 100%; margin: 8px 0 24px; font-size: 13px; }
th, td { border: 1px solid #d0d7de; padding: 5px 8px; text-align: left; vertical-align: top; overflow-wrap: break-word; }
th { background: #f6f8fa; white-space: nowrap; } td:first-child { white-space: nowrap; }
tr.refused td { background: #fdf3f3; } tr.ignored td { color: #6a737d; } tr:target td { background: #fff3c4; }
code { font-size: 12.5px; } @media print { h2 { break-before: page; } figure, tr { break-inside: avoid; } }
"""


def page(machine: AnyMachine, pictures: Sequence[tuple[Scene, str]]) -> str:
    """The page; ``pictures`` are scenes with their SVG, whose row numbers point to ``#row-``."""
    name = escape(machine.name)
    links = "".join(f'<a href="#{scene.name}">{escape(scene.title.split(": ")[-1])}</a>' for scene, _ in pictures)
    sections = ("Rows", *(title for title, _, rows in _vocabulary(machine) if rows))
    more = "".join(f'<a href="#{title.lower()}">{title}</a>' for title in sections)
    parts = [
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">',
        f"<title>{name}</title>\n<style>{STYLE}</style>\n</head>\n<body>",
        f"<h1>{name}</h1>",
        '<p class="quiet">Written by <code>turnproof draw</code> from the table of the machine; do not edit.</p>',
        f"<nav>Pictures: {links}<br>Tables: {more}</nav>",
        *_about(machine),
        "<h2>Pictures</h2>",
        *(f'<figure id="{scene.name}">\n{svg.rstrip()}\n</figure>' for scene, svg in pictures),
        '<h2 id="rows">Rows</h2>',
        "<p>Rows are tried from the top; the first that matches answers. Names of guards stand for the formulas under Guards.</p>",
        *_rows(machine),
    ]
    for title, header, rows in _vocabulary(machine):
        if rows:
            parts += [f'<h2 id="{title.lower()}">{title}</h2>', *_grid(header, [("", "", row) for row in rows])]
    return "\n".join([*parts, "</body>\n</html>"]) + "\n"


def _about(machine: AnyMachine) -> Iterator[str]:
    module = comments.home(machine)
    text = (module.__doc__ or "").strip() if module else ""
    for paragraph in text.split("\n\n") if text else []:
        lines = paragraph.splitlines()
        # Paragraphs flow; lists keep their lines.
        joined = (
            "\n".join(lines) if any(re.match(r" *\d+\. |Rule \d", line) for line in lines) else " ".join(line.strip() for line in lines)
        )
        yield f'<p class="about">{_code(joined)}</p>'


def _rows(machine: AnyMachine) -> Iterator[str]:
    for heading, events in table.by_event(machine):
        if heading:
            yield f"<h3>{escape(heading[:1].upper() + heading[1:])}</h3>"
        for event, entries in events:
            yield f"<h4>{event.__name__}</h4>"
            about = comments.about(event)
            if about:
                yield f"<p>{_code(about)}</p>"
            header = ("#", "row", "when", "answer", "changes", "effects", "why")
            yield from _grid(header, [(f"row-{entry.number}", entry.said, _cells(entry)) for entry in entries])


def _cells(entry: Entry) -> tuple[str, ...]:
    word, _, why = entry.answer.partition(": ")
    return (
        str(entry.number),
        escape(entry.label),
        escape(entry.condition.removeprefix("when ")),
        f"<b>{word}</b>: {_code(why)}" if why else escape(entry.answer),
        _lines(f"{name} := {value}" for name, value in entry.changes),
        _lines(effect + (f", if {condition}" if condition else "") for effect, condition in entry.effects),
        "<br>".join(_code(text) for text in entry.why),
    )


def _vocabulary(machine: AnyMachine) -> Iterator[tuple[str, tuple[str, ...], list[tuple[str, ...]]]]:
    def cells(words: Sequence[Word]) -> list[tuple[str, ...]]:
        return [(f"<code>{escape(word.name)}</code>", escape(word.detail), _code(word.about)) for word in words]

    yield "Guards", ("guard", "stands for", ""), cells(table.guards(machine))
    yield "Phases", ("phase", "", "meaning"), cells(table.phases(machine))
    yield "State", ("field", "values", "meaning"), cells(table.state_fields(machine))
    yield "Events", ("event", "fields", "meaning"), cells(table.vocabulary(machine.events))
    yield "Effects", ("effect", "fields", "meaning"), cells(table.vocabulary(machine.effects))
    header = ("timer", "duration", "runs", "expiry", "meaning", "source of the duration")
    rows = [(c.name, c.length, c.runs, c.expires, c.about, c.source) for c in table.clocks(machine)]
    yield "Timers", header, [tuple(_code(cell) for cell in row) for row in rows]


def _grid(header: Sequence[str], rows: Sequence[tuple[str, str, Sequence[str]]]) -> Iterator[str]:
    """A table without the columns that are empty in every row; a row is (id, class, cells)."""
    kept = [n for n in range(len(header)) if n == 0 or any(cells[n] for _, _, cells in rows)]
    yield "<table>"
    yield "<tr>" + "".join(f"<th>{header[n]}</th>" for n in kept) + "</tr>"
    for name, kind, cells in rows:
        mark = (f' id="{name}"' if name else "") + (f' class="{kind}"' if kind else "")
        yield f"<tr{mark}>" + "".join(f"<td>{cells[n]}</td>" for n in kept) + "</tr>"
    yield "</table>"


def _lines(texts: Iterable[str]) -> str:
    return "<br>".join(escape(text) for text in texts)


def _code(text: str) -> str:
    """Prose with its ``code`` set as code and its *emphasis* as emphasis."""
    return re.sub(r"\*(\w[^*]*)\*", r"<em>\1</em>", re.sub(r"``(.+?)``", r"<code>\1</code>", escape(text)))
