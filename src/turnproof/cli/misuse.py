"""What is said when something was asked for wrongly: one line, the place, what was expected, the nearest name. Never a traceback."""

from __future__ import annotations

import ast
import re
import sys
import traceback
from pathlib import Path
from types import ModuleType
from typing import Any

import attrs

from turnproof.checkers.report.locate import rows_written_in, shown_path
from turnproof.checkers.written import excerpt, nearest
from turnproof.machines.kernel import Machine

TABLES = {("turnproof", "machines"), ("turnproof", "specs")}
LANGUAGE = {"language.py", "catalog.py", "system.py", "system_check.py", "system_parts.py", "system_words.py", "symmetry.py"}
"""Files among the specifications that are the language they are written in: a mistake is never on their lines."""


class Misuse(Exception):
    """The command cannot do what was asked. Exit status 2. The message is shown as it is."""


def broken_table(problem: Exception) -> str:
    """The message for a machine or specification that does not import: the line that is wrong, then what is wrong with it."""
    if isinstance(problem, SyntaxError) and problem.filename:
        return f"{shown_path(Path(problem.filename))}:{problem.lineno}: {problem.msg}"
    frames = [(frame, line) for frame, line in traceback.walk_tb(problem.__traceback__) if _is_table(frame.f_code.co_filename)]
    said = _said(problem)
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


def _said(problem: Exception) -> str:
    """What Python or the kernel says, with the nearest name where a name is wrong."""
    frame = list(traceback.walk_tb(problem.__traceback__))[-1][0] if problem.__traceback__ else None
    names: dict[str, Any] = {} if frame is None else {**frame.f_globals, **frame.f_locals}
    if isinstance(problem, AttributeError):
        # An Enum says nothing but the name before Python 3.12; the class stands in its frame.
        owner, name = problem.obj or names.get("cls"), problem.name or str(problem)
        label = owner.__name__ if isinstance(owner, (type, ModuleType)) else type(owner).__name__
        return f"{label} has no {name!r}" + nearest(name, (n for n in dir(owner) if not n.startswith("_")))
    if isinstance(problem, NameError):
        return f"{problem}{nearest(problem.name or '', names)}"
    if isinstance(problem, ImportError):
        wrong = re.search(r"cannot import name '(\w+)'", str(problem))
        return str(problem) + (nearest(wrong[1], vars(sys.modules.get(problem.name or "", sys))) if wrong else "")
    wrong = re.search(r"^(\w+)\.__init__\(\) got an unexpected keyword argument '(\w+)'", str(problem))
    if wrong:
        for _, owner in ((f, f.f_globals.get(wrong[1])) for f, _ in traceback.walk_tb(problem.__traceback__)):
            if isinstance(owner, type) and attrs.has(owner):
                return f"{wrong[1]} has no field {wrong[2]!r}{nearest(wrong[2], (a.name for a in attrs.fields(owner)))}"
    return str(problem) if isinstance(problem, (TypeError, ValueError)) else f"{type(problem).__name__}: {problem}"


def _is_table(filename: str) -> bool:
    """Whether a frame belongs to a table or a specification, and not to the language they are written in."""
    path = Path(filename)
    within = set(zip(path.parts, path.parts[1:], strict=False))
    return bool(within & TABLES) and ("machines", "kernel") not in within and path.name not in LANGUAGE


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
