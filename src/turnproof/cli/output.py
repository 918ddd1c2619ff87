"""Standard output: text, coloured where a terminal wants it, and JSON."""

from __future__ import annotations

import contextlib
import json
import os
import sys
from collections.abc import Sequence

import click

from turnproof.checkers.report import Paint


def paint(*, error_stream: bool = False) -> Paint:
    """Colours on a terminal, unless NO_COLOR is set or TERM is dumb; FORCE_COLOR asks for them anywhere."""
    if os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb":
        return Paint(False)
    stream = sys.stderr if error_stream else sys.stdout
    return Paint(bool(os.environ.get("FORCE_COLOR")) or (stream is not None and stream.isatty()))


def say(text: str, *, error_stream: bool = False) -> None:
    """One text and a newline. Colours are decided by :func:`paint` alone.

    Where nobody reads any more (``| head -1``) the text goes nowhere: the rest of the command, its files and its exit status stand.
    """
    try:
        click.echo(text, err=error_stream, color=True)
    except BrokenPipeError:
        silence()


def silence() -> None:
    """Let everything that is still written to standard output go nowhere, what is buffered included."""
    with contextlib.suppress(OSError, ValueError, AttributeError):
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, sys.stdout.fileno())
        os.close(nowhere)


def say_json(value: object) -> None:
    """A value as indented JSON."""
    say(json.dumps(value, indent=1, ensure_ascii=False))


def columns(rows: Sequence[Sequence[str]]) -> str:
    """Rows as left-aligned columns two spaces apart."""
    widths = [max(len(row[n]) for row in rows) for n in range(len(rows[0]))]
    return "\n".join("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows)


__all__ = ["columns", "paint", "say", "say_json", "silence"]
