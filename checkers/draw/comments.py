"""What stands beside a table in its source and not in its values: docstrings of fields, comments above rows, section headings.

Read from the source text. Where there is none (a machine built in a session, a variant whose rows were replaced) there are simply no
comments to show: nothing that a check relies on comes from here.
"""

from __future__ import annotations

import ast
import inspect
import io
import itertools
import sys
import textwrap
import tokenize
from collections.abc import Iterator, Mapping
from types import ModuleType
from typing import Any

import attrs

from turnproof.machines.kernel import Machine

AnyMachine = Machine[Any, Any, Any]


def fields(cls: type) -> Mapping[str, str]:
    """The docstring under each field of a class, or under each member of an Enum."""
    try:
        body = ast.parse(textwrap.dedent(inspect.getsource(cls))).body[0]
    except (OSError, TypeError, SyntaxError):
        return {}
    found = {}
    statements = body.body if isinstance(body, ast.ClassDef) else []
    for field, text in itertools.pairwise(statements):
        if isinstance(text, ast.Expr) and isinstance(text.value, ast.Constant) and isinstance(text.value.value, str):
            target = field.target if isinstance(field, ast.AnnAssign) else field.targets[0] if isinstance(field, ast.Assign) else None
            if isinstance(target, ast.Name):
                found[target.id] = inspect.cleandoc(text.value.value)
    return found


def about(cls: type) -> str:
    """The docstring of a class; empty if it has none of its own (attrs writes none)."""
    return inspect.cleandoc(cls.__doc__ or "")


@attrs.frozen
class Beside:
    """What stands above one row: the heading of its section, and the comment lines of its own."""

    section: str = ""
    comment: str = ""


def home(machine: AnyMachine) -> ModuleType | None:
    """The module whose ``MACHINE`` this is; None for a machine that no module keeps under that name."""
    keepers = [name for name, module in [*sys.modules.items()] if getattr(module, "__dict__", {}).get("MACHINE") is machine]
    # A specification may import the machine under the same name; the module that defines it stands first.
    keepers.sort(key=lambda name: (".machines." not in name, name))
    return sys.modules[keepers[0]] if keepers else None


def rows(machine: AnyMachine) -> tuple[Beside, ...]:
    """One :class:`Beside` a row. All empty unless ``ROWS`` in the machine's module lists its rows one by one."""
    nothing = (Beside(),) * len(machine.rows)
    module = home(machine)
    if module is None:
        return nothing
    try:
        source = inspect.getsource(module)
    except (OSError, TypeError):
        return nothing
    items = _items(ast.parse(source))
    if len(items) != len(machine.rows):
        return nothing
    return tuple(_beside(source, items))


def _items(tree: ast.Module) -> list[ast.expr]:
    """The elements of the tuple assigned to ROWS."""
    for node in tree.body:
        targets = node.targets if isinstance(node, ast.Assign) else [node.target] if isinstance(node, ast.AnnAssign) else []
        if any(isinstance(t, ast.Name) and t.id == "ROWS" for t in targets) and isinstance(getattr(node, "value", None), ast.Tuple):
            return list(node.value.elts)  # type: ignore[attr-defined]
    return []


def _beside(source: str, items: list[ast.expr]) -> Iterator[Beside]:
    tokens = tokenize.generate_tokens(io.StringIO(source).readline)
    comments = {
        t.start[0]: t.string.lstrip("# ").rstrip() for t in tokens if t.type == tokenize.COMMENT and t.line.lstrip().startswith("#")
    }
    section, last = "", items[0].lineno - 1
    while last in comments:
        last -= 1
    for item in items:
        own = [comments[n] for n in range(last + 1, item.lineno) if n in comments]
        heads = [text for text in own if text.startswith("──")]
        section = heads[-1].strip("─ ") if heads else section
        yield Beside(section, " ".join(text for text in own if text not in heads))
        last = item.end_lineno or item.lineno
