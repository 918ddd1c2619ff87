"""Where a row or a property stands: file and line, read from the syntax tree of the module that defines it.

A row does not know its own line. The calls of ``Row(...)`` in the module of the machine are aligned with ``MACHINE.rows`` by what
both show (event, name, reason), so rows that are made in a loop or a helper lose their line and nothing else.
"""

from __future__ import annotations

import ast
import difflib
import re
import sys
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path
from types import ModuleType
from typing import Any

import attrs

from turnproof.checkers.report.model import AnySpec, machines_of
from turnproof.checkers.verdict import Verdict
from turnproof.machines.kernel import Machine, Row
from turnproof.specs.language import Spec
from turnproof.specs.system import SystemSpec


@attrs.frozen
class Place:
    """A line of a file. ``path`` is relative to the folder of the project or the working directory where it lies below one of them."""

    path: str
    line: int

    @property
    def relative(self) -> bool:
        """Whether the path can be resolved against the root of a repository."""
        return not Path(self.path).is_absolute()


def project_root() -> Path | None:
    """The folder of the checkout this package is imported from; None for an installed wheel."""
    root = Path(__file__).resolve().parents[2]
    return root if (root / "pyproject.toml").is_file() and (root / "machines").is_dir() else None


def shown_path(path: Path) -> str:
    """``path`` as reports print it."""
    real = path.resolve()
    for base in (project_root(), Path.cwd().resolve()):
        if base is not None and real.is_relative_to(base):
            return real.relative_to(base).as_posix()
    return str(real)


def places(spec: AnySpec, verdict: Verdict) -> tuple[Place, ...]:
    """Where a verdict points: the row of the last step of its story, or the row it names; then the property; else the table."""
    found: list[Place | None] = []
    rows = all_row_places(spec)
    if verdict.story is not None and verdict.story.steps:
        found.append(rows.get(row_name(verdict.story.steps[-1].row)))
    else:
        named = [name for name in rows if name in verdict.check or name in verdict.detail]
        found += [rows[max(named, key=len)]] if named else []
    found.append(property_place(spec, verdict.check))
    if not any(found):
        found.append(machine_place(spec.machine) if isinstance(spec, Spec) else system_place(spec))
    return tuple(dict.fromkeys(p for p in found if p is not None))


def row_name(row: str) -> str:
    """The name of a row as its machine knows it; a step of a system puts the name of the part before it."""
    part, colon, name = row.partition(": ")
    return name if colon and part.isidentifier() else row


def all_row_places(spec: AnySpec) -> dict[str, Place]:
    """Name of a row -> where it is written, over every machine of the specification."""
    return {name: place for machine in machines_of(spec) for name, place in row_places(machine).items()}


def system_place(spec: SystemSpec) -> Place | None:
    """Where the system is put together."""
    for module in _makers(spec.system, "System"):
        file = _file(module)
        if file is not None:
            return Place(shown_path(file), _calls(file, "System")[-1].lineno)
    return None


def machine_module(machine: Machine[Any, Any, Any]) -> ModuleType | None:
    """The module that makes the machine."""
    return next(_makers(machine, "Machine"), None)


def machine_place(machine: Machine[Any, Any, Any]) -> Place | None:
    """Where ``MACHINE`` is made: the line of its ``Machine(...)``, else the first of its file."""
    file = _file(machine_module(machine))
    if file is None:
        return None
    lines = [call.lineno for call in _calls(file, "Machine")]
    return Place(shown_path(file), lines[-1] if lines else 1)


def row_places(machine: Machine[Any, Any, Any]) -> dict[str, Place]:
    """Name of a row -> where it is written."""
    module = machine_module(machine)
    return {} if module is None else rows_written_in(module, machine)


def rows_written_in(module: ModuleType, machine: Machine[Any, Any, Any]) -> dict[str, Place]:
    """Name of a row -> where it is written in ``module``, which may be half imported."""
    file = _file(module)
    if file is None:
        return {}
    calls = _calls(file, "Row")
    written = [_call_key(call, module) for call in calls]
    built = [_row_key(row, written) for row in machine.rows]
    path = shown_path(file)
    match = difflib.SequenceMatcher(None, written, built, autojunk=False)
    return {
        machine.rows[block.b + n].name: Place(path, calls[block.a + n].lineno)
        for block in match.get_matching_blocks()
        for n in range(block.size)
    }


def property_place(spec: AnySpec, name: str) -> Place | None:
    """Where the sentence of a property is written: in the module of its specification, or in one beside it."""
    makers = list(_makers(spec, type(spec).__name__))
    beside = [m for m in _loaded() if m.__name__.startswith("turnproof.specs.") and m not in makers]
    for module in (*makers, *(beside if any(m.__name__.startswith("turnproof.specs.") for m in makers) else ())):
        file = _file(module)
        line = _sentence_line(file, name) if file is not None else 0
        if file is not None and line:
            return Place(shown_path(file), line)
    return None


def _sentence_line(file: Path, name: str) -> int:
    """The line of a call that is given ``name`` (an f-string matches by its fixed parts), else of that text; 0 if there is none."""
    for call in (n for n in ast.walk(_tree(file)) if isinstance(n, ast.Call)):
        for argument in (*call.args, *(k.value for k in call.keywords)):
            if isinstance(argument, ast.Constant) and argument.value == name:
                return argument.lineno
            if isinstance(argument, ast.JoinedStr) and re.fullmatch(_pattern(argument), name):
                return argument.lineno
    return next((n.lineno for n in ast.walk(_tree(file)) if isinstance(n, ast.Constant) and n.value == name), 0)


def _pattern(text: ast.JoinedStr) -> str:
    fixed = [v for v in text.values if isinstance(v, ast.Constant) and str(v.value).strip()]
    if not fixed:
        return "(?!)"
    return "".join(re.escape(str(v.value)) if isinstance(v, ast.Constant) else ".+" for v in text.values)


def _loaded() -> list[ModuleType]:
    return [m for m in list(sys.modules.values()) if type(m) is ModuleType]


def _makers(thing: object, by: str) -> Iterator[ModuleType]:
    """Loaded modules that hold ``thing`` and call ``by(...)``: whoever only imported it does not."""
    for module in _loaded():
        if any(value is thing for value in list(vars(module).values())):
            file = _file(module)
            if file is not None and _calls(file, by):
                yield module


def _file(module: ModuleType | None) -> Path | None:
    name = getattr(module, "__file__", None)
    return Path(name) if name and Path(name).is_file() else None


@lru_cache(maxsize=32)
def _tree(file: Path) -> ast.Module:
    try:
        return ast.parse(file.read_text(encoding="utf-8"))
    except (OSError, SyntaxError, UnicodeDecodeError):
        return ast.Module([], [])


def _calls(file: Path, name: str) -> list[ast.Call]:
    found = [n for n in ast.walk(_tree(file)) if isinstance(n, ast.Call) and isinstance(n.func, ast.Name) and n.func.id == name]
    return sorted(found, key=lambda call: (call.lineno, call.col_offset))


_Key = tuple[str, str, str, str]


def _call_key(call: ast.Call, module: ModuleType) -> _Key:
    words = {k.arg: str(k.value.value) for k in call.keywords if isinstance(k.value, ast.Constant)}
    subject = call.args[0] if call.args else None
    thing = vars(module).get(subject.id) if isinstance(subject, ast.Name) else None
    event = thing.__name__ if isinstance(thing, type) else type(thing).__name__
    return event, words.get("name", ""), words.get("ignore", ""), words.get("refuse", "")


def _row_key(row: Row[Any, Any], written: list[_Key]) -> _Key:
    named = (row.event.__name__, row.name, row.ignore, row.refuse)
    return named if named in written else (row.event.__name__, "", row.ignore, row.refuse)


__all__ = [
    "Place",
    "machine_module",
    "machine_place",
    "places",
    "project_root",
    "property_place",
    "row_places",
    "rows_written_in",
    "shown_path",
]
