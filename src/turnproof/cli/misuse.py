"""What is said when something was asked for wrongly: one line, the place, what was expected, the nearest name. Never a traceback."""

from __future__ import annotations

import ast
import traceback
from pathlib import Path
from types import ModuleType
from typing import Any

from turnproof.checkers.report.locate import rows_written_in, shown_path
from turnproof.checkers.written import excerpt
from turnproof.machines.kernel import Machine

TABLES = {("turnproof", "machines"), ("turnproof", "specs")}


class Misuse(Exception):
    """The command cannot do what was asked. Exit status 2. The message is shown as it is."""


def broken_table(problem: Exception) -> str:
    """The message for a machine or specification that does not import: the line that is wrong, then what is wrong with it."""
    if isinstance(problem, SyntaxError) and problem.filename:
        return f"{shown_path(Path(problem.filename))}:{problem.lineno}: {problem.msg}"
    frames = [(frame, line) for frame, line in traceback.walk_tb(problem.__traceback__) if _is_table(frame.f_code.co_filename)]
    said = str(problem) if isinstance(problem, (TypeError, ValueError)) else f"{type(problem).__name__}: {problem}"
    if not frames:
        return f"the specifications cannot be loaded: {' '.join(said.split())}"
    frame, line = frames[-1]
    file = Path(frame.f_code.co_filename)
    place = f"{shown_path(file)}:{_first_line(file, line)}"
    heading, *mistakes = said.splitlines()
    if not mistakes:
        return f"{place}: {heading}"
    lines = _row_lines(problem, frame.f_globals)
    return "\n".join(f"{_place_of(mistake, lines) or place}: {heading} {mistake.strip()}" for mistake in mistakes)


def _is_table(filename: str) -> bool:
    """Whether a frame belongs to a table or a specification, and not to the language they are written in."""
    path = Path(filename)
    within = set(zip(path.parts, path.parts[1:], strict=False))
    return bool(within & TABLES) and ("machines", "kernel") not in within and path.name not in ("language.py", "catalog.py")


def _first_line(file: Path, line: int) -> int:
    """The first line of the innermost ``Row(...)``, property or machine that ``line`` lies in: where a reader would look."""
    try:
        tree = ast.parse(file.read_text(encoding="utf-8"))
    except (OSError, SyntaxError, UnicodeDecodeError):
        return line
    calls = [n for n in ast.walk(tree) if isinstance(n, ast.Call) and n.lineno <= line <= (n.end_lineno or n.lineno)]
    named = [c for c in calls if isinstance(c.func, ast.Name) and c.func.id[:1].isupper()]
    return max((c.lineno for c in named), default=line)


def _row_lines(problem: Exception, names: dict[str, Any]) -> dict[str, str]:
    """Name of a row -> file:line, for the machine whose construction failed."""
    for frame, _ in traceback.walk_tb(problem.__traceback__):
        machine = frame.f_locals.get("machine")
        if isinstance(machine, Machine):
            module = ModuleType(str(names.get("__name__", "")))
            vars(module).update(names)
            return {name: f"{place.path}:{place.line}" for name, place in rows_written_in(module, machine).items()}
    return {}


def _place_of(mistake: str, lines: dict[str, str]) -> str:
    named = [name for name in lines if mistake.strip().startswith((f"row {name}:", f"timer {name}"))]
    return lines[max(named, key=len)] if named else ""


__all__ = ["Misuse", "broken_table", "excerpt"]
