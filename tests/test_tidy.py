"""Rules of taste that no linter has: what a machine may import, and how long a file or a function may grow.

Each rule is a function from one source text to its complaints, so that a planted violation shows it can fail.
"""

import ast
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
PRODUCT = ("machines", "specs", "checkers", "src")
EVERYTHING = (*PRODUCT, "tests", "benchmarks")

FILE_LINES = 420
FUNCTION_LINES = 60

PURE = {"__future__", "attrs", "collections.abc", "enum", "typing"}
"""All that a machine may import besides its neighbours: no clock, no task, no chance, no solver."""

KERNEL = PURE | {"collections", "difflib", "itertools", "linecache", "operator"}
"""The kernel writes source, so it needs linecache for tracebacks; the rest are functions of their arguments."""

Complaints = Iterator[str]
Rule = Callable[[str, str], Complaints]


def imported(source: str) -> Iterator[tuple[int, str]]:
    """Every module that the text imports anywhere, functions included, with its line; a relative import keeps its dots."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield node.lineno, "." * node.level + (node.module or "")


def within(module: str, package: str) -> bool:
    """Whether the module is the package or lies in it."""
    return module == package or module.startswith(f"{package}.")


def machines_are_pure(path: str, source: str) -> Complaints:
    """machines/ imports the pure few and itself."""
    if not path.startswith("machines/"):
        return
    allowed = KERNEL if path.startswith("machines/kernel/") else PURE
    for line, module in imported(source):
        if module not in allowed and not within(module, "turnproof.machines"):
            yield f"{path}:{line}: imports {module}; a machine may import {', '.join(sorted(allowed))} and turnproof.machines"


def checkers_know_tables(path: str, source: str) -> Complaints:
    """checkers/ reads tables through the kernel and names no machine."""
    if not path.startswith("checkers/"):
        return
    for line, module in imported(source):
        if within(module, "turnproof.machines") and not within(module, "turnproof.machines.kernel"):
            yield f"{path}:{line}: imports {module}; an engine may import turnproof.machines.kernel, never a particular machine"


def files_are_short(path: str, source: str) -> Complaints:
    """A file fits in one reading."""
    count = len(source.splitlines())
    if count > FILE_LINES:
        yield f"{path}: {count} lines, {FILE_LINES} at most; split it by subject"


def functions_are_short(path: str, source: str) -> Complaints:
    """A function of the product fits on one screen, docstring included."""
    if not path.startswith(PRODUCT):
        return
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            count = (node.end_lineno or node.lineno) - node.lineno + 1
            if count > FUNCTION_LINES:
                yield f"{path}:{node.lineno}: {node.name} has {count} lines, {FUNCTION_LINES} at most"


RULES: tuple[Rule, ...] = (machines_are_pure, checkers_know_tables, files_are_short, functions_are_short)


def sources() -> dict[str, str]:
    """Path from the root -> text of every Python file, the links in src/turnproof left out."""
    found = (path for folder in EVERYTHING for path in sorted((ROOT / folder).rglob("*.py")))
    linked = {ROOT / "src" / "turnproof" / name for name in ("machines", "specs", "checkers")}
    return {str(path.relative_to(ROOT)): path.read_text(encoding="utf-8") for path in found if not linked.intersection(path.parents)}


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.__name__)
def test_the_project_is_tidy(rule: Rule) -> None:
    complaints = [complaint for path, source in sources().items() for complaint in rule(path, source)]
    assert not complaints, "\n" + "\n".join(complaints)


def test_the_rules_look_at_every_folder() -> None:
    read = {path.split("/")[0] for path in sources()}
    assert read >= {*PRODUCT, "tests"}


LONG_FUNCTION = "def f() -> None:\n" + "    pass\n" * FUNCTION_LINES
LONG_FILE = "x = 1\n" * (FILE_LINES + 1)


@pytest.mark.parametrize(
    ("rule", "path", "source", "complaint"),
    [
        *[
            (machines_are_pure, "machines/reply.py", f"import {module}", f"machines/reply.py:1: imports {module};")
            for module in ("asyncio", "time", "random", "z3", "os", "datetime")
        ],
        (machines_are_pure, "machines/reply.py", "import linecache", "machines/reply.py:1: imports linecache;"),
        (machines_are_pure, "machines/reply.py", "from collections import deque", "imports collections;"),
        (machines_are_pure, "machines/reply.py", "from turnproof.shell import run", "imports turnproof.shell;"),
        (machines_are_pure, "machines/reply.py", "from . import words", "imports .;"),
        (machines_are_pure, "machines/reply.py", "def f():\n    from time import time", "machines/reply.py:2: imports time;"),
        (machines_are_pure, "machines/kernel/row.py", "import z3", "imports z3;"),
        (machines_are_pure, "machines/kernel/row.py", "import time", "imports time;"),
        (checkers_know_tables, "checkers/explicit.py", "from turnproof.machines.reply import MACHINE", "imports turnproof.machines.reply;"),
        (checkers_know_tables, "checkers/explicit.py", "import turnproof.machines", "imports turnproof.machines;"),
        (files_are_short, "specs/reply.py", LONG_FILE, f"specs/reply.py: {FILE_LINES + 1} lines"),
        (functions_are_short, "src/turnproof/cli/app.py", LONG_FUNCTION, f"app.py:1: f has {FUNCTION_LINES + 1} lines"),
        (functions_are_short, "specs/reply.py", LONG_FUNCTION.replace("def", "async def"), f"f has {FUNCTION_LINES + 1} lines"),
    ],
)
def test_a_planted_violation_is_found(rule: Rule, path: str, source: str, complaint: str) -> None:
    found = list(rule(path, source))
    assert len(found) == 1
    assert complaint in found[0]


@pytest.mark.parametrize(
    ("rule", "path", "source"),
    [
        (machines_are_pure, "machines/reply.py", "from enum import Enum\nimport attrs\nfrom turnproof.machines.kernel import Row"),
        (machines_are_pure, "machines/kernel/source.py", "import linecache"),
        (machines_are_pure, "checkers/symbolic.py", "import z3"),
        (checkers_know_tables, "checkers/explicit.py", "from turnproof.machines.kernel.row import Row"),
        (files_are_short, "specs/reply.py", "x = 1\n" * FILE_LINES),
        (functions_are_short, "specs/reply.py", LONG_FUNCTION.removesuffix("    pass\n")),
    ],
)
def test_what_is_allowed_is_not_found(rule: Rule, path: str, source: str) -> None:
    assert list(rule(path, source)) == []
