"""What the three languages share: a chain of rows of which the first that matches is taken, comments, and an order of assignments."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import cast

import attrs

from turnproof.checkers.oracles.model import Branch, Handler
from turnproof.machines.kernel import Formula, Variable, variables

COMPARISONS = ("eq", "ne", "lt", "le", "gt", "ge")


@attrs.frozen
class Notation:
    """How a language writes formulas: a sign for each infix operator, and templates for the rest."""

    signs: Mapping[str, str]
    no: str
    choose: str
    """Condition, then, otherwise."""
    latest: str

    def write(self, node: object, variable: Callable[[Variable], str], constant: Callable[[object], str], *, under: str = "") -> str:
        """The formula as text; brackets only where they are needed under an operator ``under``."""
        if not isinstance(node, Formula):
            return constant(node)
        if node.op == "var":
            return variable(cast(Variable, node.args[0]))

        def inner(arg: object, under: str) -> str:
            return self.write(arg, variable, constant, under=under)

        if node.op == "named":
            return inner(node.args[1], under)
        if node.op == "implies":
            return inner(Formula("or", (Formula("not", (node.args[0],)), node.args[1])), under)
        if node.op == "not":
            return self.no + inner(node.args[0], "not")
        if node.op == "choose":
            return self.choose.format(*(inner(arg, "choose") for arg in node.args))
        if node.op == "latest":
            return self.latest.format(*(inner(arg, "choose") for arg in node.args))
        text = f" {self.signs[node.op]} ".join(inner(arg, node.op) for arg in node.args)
        plain = under in ("", node.op) if node.op in ("and", "or") else under == "" or (under in ("and", "or") and node.op in COMPARISONS)
        return text if plain else f"({text})"


@attrs.frozen
class Layout:
    """How a language writes ``if``, ``else if``, ``else``. ``{}`` stands for the condition."""

    first: str
    other: str
    last: str
    end: str
    join: str
    skip: str
    remark: str
    ends: str = ""
    """What the last statement of a body ends in."""
    once: bool = False
    """Whether one ``end`` ends the whole chain."""


def comment(text: str) -> str:
    """A text that cannot end a comment."""
    return text.replace("*/", "* /").replace("/*", "/ *").replace("*)", "* )").replace("(*", "( *").replace("\n", " ")


def first_matches(
    handler: Handler, text: Callable[[object], str], statements: Callable[[Branch], list[str]], layout: Layout, hole: str
) -> str:
    """The rows as a chain, each under its name; ``hole`` is what happens where none matches. Idle rows at the end become one."""
    branches = list(handler.branches)
    idle: list[Branch] = []
    while handler.total and branches and branches[-1].idle:
        idle.insert(0, branches.pop())
    lines: list[str] = []
    depth = 0
    for branch in branches:
        remark = layout.remark.format(comment(f"{branch.row}{'' if branch.said.value == 'taken' else f': {branch.said.value}'}"))
        body = statements(branch) or [layout.skip]
        if branch.condition is True:
            lines += [f"{layout.last if depth else ''}  {remark}", _body(body, layout)]
            break
        lines += [f"{(layout.other if depth else layout.first).format(text(branch.condition))}  {remark}", _body(body, layout)]
        depth += 1
    else:
        remark = layout.remark.format(comment(", ".join(f"{b.row}: {b.said.value}" for b in idle) or "no row"))
        lines += [f"{layout.last if depth else ''}  {remark}", _body([hole or layout.skip], layout)]
    return "\n".join([*lines, f"  {' '.join([layout.end] * (1 if layout.once else depth))}" if depth else ""]).rstrip()


def _body(statements: Iterable[str], layout: Layout) -> str:
    body = [s for s in statements if s]
    return "    " + f"{layout.join}\n    ".join(body) + layout.ends if body else ""


def in_order(updates: Iterable[tuple[str, object]], state: type) -> tuple[list[tuple[str, object]], list[tuple[str, object]]]:
    """The assignments in an order in which none reads what was assigned before, and those that must be held back in a variable."""
    left = dict(updates)
    reads = {name: {v.name for v in variables(node) if v.owner is state and not v.scope} - {name} for name, node in left.items()}
    done: list[tuple[str, object]] = []
    while left:
        free = [name for name in left if not any(name in reads[other] for other in left if other != name)]
        if not free:
            return done, list(left.items())
        done += [(name, left.pop(name)) for name in free]
    return done, []


__all__ = ["Layout", "comment", "first_matches", "in_order"]
