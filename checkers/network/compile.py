"""Formulas over several parts as bits and little programs for the kernel.

A condition on one component's local state is an **atom**: decided once for each local state. A disjunction of atoms is a
**clause**: one bit, set in the row of every local state that satisfies one of its atoms. Everything else (counts of a step, and
comparisons of one component with another) is a stack program over clause bits and looked-up numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from enum import Enum
from typing import cast

import attrs

from turnproof.checkers.network.kernel.places import (
    ADD,
    BIT,
    BIT_AFTER,
    BITS,
    CHOOSE,
    CONST,
    COUNT,
    EQ,
    GE,
    GT,
    LE,
    LT,
    MAX,
    NE,
    NOT,
    OR,
    SUB,
    VALUE,
    VALUE_AFTER,
)
from turnproof.machines.kernel import Formula, Variable, formula, variables
from turnproof.specs.system_words import NEXT, STEP_WORDS

Code = tuple[tuple[int, int], ...]
Atom = tuple[int, Formula]
"""A component, and a condition on its local state alone."""

_BINARY = {"eq": EQ, "ne": NE, "lt": LT, "le": LE, "gt": GT, "ge": GE, "add": ADD, "sub": SUB, "latest": MAX}


@attrs.frozen(eq=False)
class Clause:
    """A bit: some of these atoms holds."""

    atoms: tuple[Atom, ...]


class Compiler:
    """Gathers clauses, numbers and counts while it compiles. ``first_bit`` bits are taken already (those of triggers)."""

    def __init__(self, component: Callable[[str], int], first_bit: int) -> None:
        self.component, self.first_bit = component, first_bit
        self.clauses: list[Clause] = []
        self.numbers: list[Atom] = []
        """Expressions over one component whose values are looked up; the place in its component's row is ``number_place``."""
        self.number_place: list[int] = []
        self.counts: list[Variable] = []
        self.programs: list[Code] = []
        self._clause_ids: dict[Hashable, int] = {}
        self._number_ids: dict[Hashable, int] = {}
        self._count_ids: dict[Hashable, int] = {}
        self._codes: dict[object, int] = {}

    # ── what a formula reads ──

    def side(self, node: object) -> tuple[int, bool] | None:
        """The one component that a formula reads, and whether after the step; None if it reads several, or counts, or nothing."""
        read = variables(node)
        if not read or any(isinstance(v, STEP_WORDS) for v in read):
            return None
        places = {(self.component(v.scope.removesuffix(NEXT)), v.scope.endswith(NEXT)) for v in read}
        return places.pop() if len(places) == 1 else None

    # ── programs ──

    def program(self, node: Formula) -> int:
        """The number of a program whose value is the formula's, 0 or 1."""
        self.programs.append(self.truth(node))
        return len(self.programs) - 1

    def literals(self, node: Formula) -> tuple[list[int], list[int], int]:
        """A conjunction as the bits that must be set before the step, those that must not be, and a program of the rest (-1: none)."""
        top = pushed(node)
        parts = flat(top, "and") if isinstance(top, Formula) and top.op == "and" else [top]
        bits: dict[int, list[int]] = {1: [], 2: []}
        rest: Formula | None = None
        for part in parts:
            code = self.truth(part)
            if len(code) in bits and code[0][0] == BIT and code[-1][0] in (BIT, NOT):
                bits[len(code)].append(code[0][1])
            else:
                rest = formula(part, "a condition") if rest is None else Formula("and", (rest, part))
        return bits[1], bits[2], -1 if rest is None else self.program(rest)

    def truth(self, node: object) -> Code:
        """Instructions that leave 0 or 1."""
        if not isinstance(node, Formula):
            return ((CONST, int(cast(int, node))),)
        if node.op == "named":
            return self.truth(node.args[1])
        side = self.side(node)
        if side is not None:
            return self.clause([(side[0], node)], after=side[1])
        if node.op == "not":
            return (*self.truth(node.args[0]), (NOT, 0))
        if node.op == "implies":
            return self.either([Formula("not", (node.args[0],)), node.args[1]])
        if node.op == "or":
            return self.either(flat(node, "or"))
        if node.op == "and":
            return (*self.either([Formula("not", (part,)) for part in flat(node, "and")]), (NOT, 0))
        if node.op == "choose":
            return (*self.truth(node.args[0]), *self.truth(node.args[1]), *self.truth(node.args[2]), (CHOOSE, 0))
        return self.value(node)

    def either(self, parts: Sequence[object]) -> Code:
        """A disjunction: its atoms before and its atoms after the step become one clause each, the rest is computed."""
        atoms: dict[bool, list[Atom]] = {False: [], True: []}
        codes: list[Code] = []
        for part in parts:
            opened = pushed(part)
            if isinstance(opened, Formula) and opened.op == "or":
                codes.append(self.either(flat(opened, "or")))
                continue
            side = self.side(opened)
            if side is not None:
                atoms[side[1]].append((side[0], cast(Formula, opened)))
            else:
                codes.append(self.truth(opened))
        for after, group in atoms.items():
            if group:
                codes.append(self.clause(group, after=after))
        first, *rest = codes
        return (*first, *(step for code in rest for step in (*code, (OR, 0))))

    def clause(self, atoms: list[Atom], *, after: bool) -> Code:
        """The bit of a clause; ``after`` reads it of the state after the step."""
        key = frozenset((comp, structure(node)) for comp, node in atoms)
        if key not in self._clause_ids:
            self._clause_ids[key] = len(self.clauses)
            self.clauses.append(Clause(tuple(atoms)))
        return ((BIT_AFTER if after else BIT, bit_place(self.first_bit + self._clause_ids[key])),)

    def value(self, node: object) -> Code:
        """Instructions that leave a number: of an Enum member, a token or a bool, its code."""
        if not isinstance(node, Formula):
            return ((CONST, self.number_of(node)),)
        if node.op == "named":
            return self.truth(node)
        side = self.side(node)
        if side is not None:
            return self.looked_up(side[0], node, side[1])
        if node.op == "var":
            return ((COUNT, self.count(cast(Variable, node.args[0]))),)
        if node.op in _BINARY:
            return (*self.value(node.args[0]), *self.value(node.args[1]), (_BINARY[node.op], 0))
        if node.op == "choose":
            return (*self.truth(node.args[0]), *self.value(node.args[1]), *self.value(node.args[2]), (CHOOSE, 0))
        return self.truth(node)

    def looked_up(self, comp: int, node: Formula, after: bool) -> Code:
        """A number looked up by the local state of one component."""
        key = (comp, structure(node))
        if key not in self._number_ids:
            self._number_ids[key] = len(self.numbers)
            self.number_place.append(sum(1 for c, _ in self.numbers if c == comp))
            self.numbers.append((comp, node))
        place = self.number_place[self._number_ids[key]]
        return ((VALUE_AFTER if after else VALUE, comp << 20 | place),)

    def count(self, variable: Variable) -> int:
        """The number of a counted word."""
        key = structure(Formula("var", (variable,)))
        if key not in self._count_ids:
            self._count_ids[key] = len(self.counts)
            self.counts.append(variable)
        return self._count_ids[key]

    def number_of(self, value: object) -> int:
        """The code of a value: a number is itself; equal things, and no others, have equal codes."""
        if isinstance(value, int) and not isinstance(value, Enum):
            return int(value)
        return self._codes.setdefault(value, len(self._codes))

    # ── what must be counted for a formula to hold ──

    def needed(self, node: object) -> int:
        """62 bits, one of which a counted word must have set if the formula holds; 0 if none need."""
        found = self._needed(node, True)
        bits = 0
        for count in found or ():
            bits |= 1 << (count % BITS)
        return bits

    def moved(self, node: object) -> int:
        """62 bits, one for each component that the formula reads after a step; -1 if it counts: so may a step that moves nothing."""
        read = variables(node)
        if any(isinstance(v, STEP_WORDS) for v in read):
            return -1
        bits = 0
        for v in read:
            if v.scope.endswith(NEXT):
                bits |= 1 << (self.component(v.scope.removesuffix(NEXT)) % BITS)
        return bits

    def _needed(self, node: object, wanted: bool) -> frozenset[int] | None:
        """Counted words of which one at least is not zero where the formula is ``wanted``; None if nothing is known."""
        if not isinstance(node, Formula):
            return frozenset() if bool(node) is not wanted else None
        if node.op == "named":
            return self._needed(node.args[1], wanted)
        if node.op == "not":
            return self._needed(node.args[0], not wanted)
        if node.op == "implies":
            return self._needed(Formula("or", (Formula("not", (node.args[0],)), node.args[1])), wanted)
        if node.op in ("and", "or"):
            both = [self._needed(arg, wanted) for arg in node.args]
            if (node.op == "and") is wanted:
                known = [b for b in both if b is not None]
                return min(known, key=len) if known else None
            return None if any(b is None for b in both) else frozenset().union(*cast("list[frozenset[int]]", both))
        return self._compared(node, wanted)

    def _compared(self, node: Formula, wanted: bool) -> frozenset[int] | None:
        """``count >= 1`` and its likes: false of a count that is zero."""
        if node.op not in ("eq", "ne", "lt", "le", "gt", "ge"):
            return None
        left, right = node.args
        if not (isinstance(left, Formula) and left.op == "var" and isinstance(left.args[0], STEP_WORDS) and isinstance(right, int)):
            return None
        at_zero = {"eq": right == 0, "ne": right != 0, "lt": right > 0, "le": right >= 0, "gt": right < 0, "ge": right <= 0}[node.op]
        return frozenset({self.count(cast(Variable, left.args[0]))}) if at_zero is not wanted else None


def flat(node: Formula, op: str) -> list[object]:
    """The operands of a chain of one operator, names on the chain taken off."""
    found: list[object] = []
    for arg in node.args:
        bare = pushed(arg) if isinstance(arg, Formula) and arg.op == "named" else arg
        if isinstance(bare, Formula) and bare.op == op:
            found += flat(bare, op)
        else:
            found.append(bare)
    return found


def pushed(node: object) -> object:
    """Names taken off the top, and a negation driven one level down: ``not (a and b)`` is ``not a or not b``."""
    while isinstance(node, Formula) and node.op == "named":
        node = node.args[1]
    if not (isinstance(node, Formula) and node.op == "not"):
        return (
            Formula("or", (Formula("not", (node.args[0],)), node.args[1])) if isinstance(node, Formula) and node.op == "implies" else node
        )
    inner = node.args[0]
    while isinstance(inner, Formula) and inner.op == "named":
        inner = inner.args[1]
    if not isinstance(inner, Formula):
        return node
    if inner.op == "not":
        return pushed(inner.args[0])
    if inner.op == "and":
        return Formula("or", tuple(Formula("not", (arg,)) for arg in inner.args))
    if inner.op == "or":
        return Formula("and", tuple(Formula("not", (arg,)) for arg in inner.args))
    if inner.op == "implies":
        return Formula("and", (inner.args[0], Formula("not", (inner.args[1],))))
    return node


def bit_place(bit: int) -> int:
    """A bit of the clause rows as the argument of an instruction."""
    return (bit // BITS) << 6 | (bit % BITS)


def structure(node: object) -> Hashable:
    """A value that two formulas share exactly if they are built alike. Names on formulas do not count."""
    if not isinstance(node, Formula):
        return (type(node), node)
    if node.op == "named":
        return structure(node.args[1])
    if node.op == "var":
        return _word(cast(Variable, node.args[0]))
    return (node.op, *(structure(arg) for arg in node.args))


def _word(variable: Variable) -> tuple[object, ...]:
    parts: list[object] = [type(variable), variable.owner, variable.name, variable.scope]
    for name in ("said", "timer", "ledger", "what"):
        parts.append(getattr(variable, name, None))
    fields: tuple[tuple[str, object], ...] = getattr(variable, "fields", ())
    return (*parts, *((name, structure(node)) for name, node in fields))
