"""The one module that imports z3. It ships no types, so everything above it goes through the functions here.

Rules of this module:

Rule 1: one :class:`Context` a proof. Contexts are not shared between threads, and nothing of one reaches another.
Rule 2: no Python operator on a z3 value. ``<`` on bit-vectors is the signed comparison, ``in`` and ``not`` are silently False;
each comparison has a function whose name says which one it is.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NewType, cast

import z3

Expr = NewType("Expr", object)
"""A z3 expression."""

VERSION: str = z3.get_version_string()

BOOL, INT = "Bool", "Int"
"""Names of sorts in SMT-LIB; the third is ``(_ BitVec n)``."""


def bits(width: int) -> str:
    """The name of the sort of bit-vectors of ``width`` bits."""
    return f"(_ BitVec {width})"


class SolverError(RuntimeError):
    """z3 refused a text or a call; the message is its own."""


class Context:
    """Makes symbols and literals of one z3 context."""

    def __init__(self) -> None:
        self.ref = z3.Context()

    def symbol(self, name: str, sort: str) -> Expr:
        """The constant called ``name``."""
        return Expr(z3.Const(name, self._sort(sort)))

    def boolean(self, value: bool) -> Expr:
        """``true`` or ``false``."""
        return Expr(z3.BoolVal(value, self.ref))

    def integer(self, value: int) -> Expr:
        """An integer literal."""
        return Expr(z3.IntVal(value, self.ref))

    def bit_vector(self, value: int, width: int) -> Expr:
        """An unsigned literal of ``width`` bits."""
        return Expr(z3.BitVecVal(value, width, self.ref))

    def literal(self, value: int, sort: str) -> Expr:
        """The literal of ``sort`` with that number; 0 and 1 are the truth values."""
        if sort == BOOL:
            return self.boolean(bool(value))
        return self.integer(value) if sort == INT else self.bit_vector(value, _width(sort))

    def parse(self, text: str, known: Mapping[str, Expr]) -> tuple[Expr, ...]:
        """What the ``assert`` commands of an SMT-LIB text assert; ``known`` are declared already. Raises :class:`SolverError`."""
        declared = {name: cast(z3.ExprRef, symbol).decl() for name, symbol in known.items()}
        try:
            return tuple(Expr(e) for e in z3.parse_smt2_string(text, decls=declared, ctx=self.ref))
        except z3.Z3Exception as error:
            raise SolverError(str(error)) from None

    def _sort(self, sort: str) -> object:
        if sort == BOOL:
            return z3.BoolSort(self.ref)
        return z3.IntSort(self.ref) if sort == INT else z3.BitVecSort(_width(sort), self.ref)


def _width(sort: str) -> int:
    return int(sort.removeprefix("(_ BitVec ").removesuffix(")"))


# ── making terms ──


def equal(left: Expr, right: Expr) -> Expr:
    """``=``."""
    return Expr(cast(z3.ExprRef, left) == cast(z3.ExprRef, right))


def negation(operand: Expr) -> Expr:
    """``not``."""
    return Expr(z3.Not(operand))


def conjunction(operands: Sequence[Expr]) -> Expr:
    """``and`` of one or more."""
    return operands[0] if len(operands) == 1 else Expr(z3.And(*operands))


def disjunction(operands: Sequence[Expr]) -> Expr:
    """``or`` of one or more."""
    return operands[0] if len(operands) == 1 else Expr(z3.Or(*operands))


def implication(left: Expr, right: Expr) -> Expr:
    """``=>``."""
    return Expr(z3.Implies(left, right))


def conditional(condition: Expr, then: Expr, otherwise: Expr) -> Expr:
    """``ite``."""
    return Expr(z3.If(condition, then, otherwise))


def add(left: Expr, right: Expr) -> Expr:
    """``+`` of integers."""
    return Expr(cast(z3.ArithRef, left) + cast(z3.ArithRef, right))


def subtract(left: Expr, right: Expr) -> Expr:
    """``-`` of integers."""
    return Expr(cast(z3.ArithRef, left) - cast(z3.ArithRef, right))


def total(operands: Sequence[Expr]) -> Expr:
    """``+`` of one or more integers."""
    return operands[0] if len(operands) == 1 else Expr(z3.Sum(*operands))


def less(left: Expr, right: Expr) -> Expr:
    """``<`` of integers."""
    return Expr(cast(z3.ArithRef, left) < cast(z3.ArithRef, right))


def at_most(left: Expr, right: Expr) -> Expr:
    """``<=`` of integers."""
    return Expr(cast(z3.ArithRef, left) <= cast(z3.ArithRef, right))


def unsigned_at_most(left: Expr, right: Expr) -> Expr:
    """``bvule``: ``<=`` of bit-vectors, read without a sign."""
    return Expr(z3.ULE(left, right))


# ── reading terms ──


def text(term: Expr) -> str:
    """The term in SMT-LIB, on one line."""
    return " ".join(cast(z3.ExprRef, term).sexpr().split())


def sort_of(term: Expr) -> str:
    """The name of its sort in SMT-LIB."""
    return str(cast(z3.ExprRef, term).sort().sexpr())


def identity(term: Expr) -> int:
    """A number that equal terms of one context share as long as one of them lives."""
    return int(cast(z3.ExprRef, term).get_id())


def kind(term: Expr) -> int:
    """The kind of the term's top node, one of :data:`KINDS`; -1 for what is no application."""
    return int(cast(z3.ExprRef, term).decl().kind()) if z3.is_app(term) else -1


def kind_name(number: int) -> str:
    """What z3 calls a kind, for messages."""
    return next((n for n in dir(z3) if n.startswith("Z3_OP_") and getattr(z3, n) == number), f"kind {number}")


def arguments(term: Expr) -> tuple[Expr, ...]:
    """The operands of the top node."""
    return tuple(Expr(c) for c in cast(z3.ExprRef, term).children())


def name_of(term: Expr) -> str:
    """The name of a symbol."""
    return str(cast(z3.ExprRef, term).decl().name())


def literal_value(term: Expr) -> int | None:
    """The number a literal stands for, bit-vectors without a sign and truth values as 0 and 1; None if it is no literal."""
    if z3.is_true(term) or z3.is_false(term):
        return int(z3.is_true(term))
    if z3.is_int_value(term) or z3.is_bv_value(term):
        return int(cast(z3.IntNumRef, term).as_long())
    return None


def width_of(term: Expr) -> int:
    """How many bits a bit-vector has."""
    return int(cast(z3.BitVecRef, term).size())


def symbols_in(term: Expr) -> tuple[str, ...]:
    """The names of the symbols a term holds, sorted."""
    found: set[str] = set()
    seen: set[int] = set()
    todo = [cast(z3.ExprRef, term)]
    while todo:
        node = todo.pop()
        if node.get_id() not in seen:
            seen.add(node.get_id())
            todo += node.children()
            if z3.is_const(node) and kind(Expr(node)) == z3.Z3_OP_UNINTERPRETED:
                found.add(str(node.decl().name()))
    return tuple(sorted(found))


KINDS: Mapping[str, int] = {
    "true": z3.Z3_OP_TRUE,
    "false": z3.Z3_OP_FALSE,
    "=": z3.Z3_OP_EQ,
    "distinct": z3.Z3_OP_DISTINCT,
    "ite": z3.Z3_OP_ITE,
    "and": z3.Z3_OP_AND,
    "or": z3.Z3_OP_OR,
    "not": z3.Z3_OP_NOT,
    "=>": z3.Z3_OP_IMPLIES,
    "xor": z3.Z3_OP_XOR,
    "<=": z3.Z3_OP_LE,
    ">=": z3.Z3_OP_GE,
    "<": z3.Z3_OP_LT,
    ">": z3.Z3_OP_GT,
    "+": z3.Z3_OP_ADD,
    "-": z3.Z3_OP_SUB,
    "unary -": z3.Z3_OP_UMINUS,
    "integer": z3.Z3_OP_ANUM,
    "bits": z3.Z3_OP_BNUM,
    "bvule": z3.Z3_OP_ULEQ,
    "bvuge": z3.Z3_OP_UGEQ,
    "bvult": z3.Z3_OP_ULT,
    "bvugt": z3.Z3_OP_UGT,
    "bvsle": z3.Z3_OP_SLEQ,
    "bvsge": z3.Z3_OP_SGEQ,
    "bvslt": z3.Z3_OP_SLT,
    "bvsgt": z3.Z3_OP_SGT,
    "symbol": z3.Z3_OP_UNINTERPRETED,
}
"""Every kind of node that a reader of terms has to know."""


def substitute(term: Expr, pairs: Iterable[tuple[Expr, Expr]]) -> Expr:
    """The term with the first of each pair replaced by the second, all at once."""
    found = list(pairs)
    return Expr(z3.substitute(term, *found)) if found else term


def simplified(term: Expr) -> Expr:
    """The term after z3's own simplifier: good for guesses, never for a proof."""
    return Expr(z3.simplify(term))


# ── asking ──


class Solver:
    """An incremental solver. Answers are ``sat``, ``unsat`` or ``unknown``."""

    def __init__(self, context: Context, *, seed: int = 0, timeout_ms: int = 0) -> None:
        self.context = context
        self.solver = z3.Solver(ctx=context.ref)
        self.solver.set("random_seed", seed)
        if timeout_ms:
            self.solver.set("timeout", timeout_ms)

    def add(self, *terms: Expr) -> None:
        """Assert the terms."""
        self.solver.add(*terms)

    def track(self, term: Expr, label: Expr) -> None:
        """Assert the term under a label that :meth:`core` may name."""
        self.solver.assert_and_track(term, label)

    def push(self) -> None:
        """Begin a scope."""
        self.solver.push()

    def pop(self) -> None:
        """End the scope begun last."""
        self.solver.pop()

    def check(self, *assumptions: Expr) -> str:
        """Whether everything asserted, with the assumptions, can hold."""
        return str(self.solver.check(*assumptions))

    def core(self) -> tuple[Expr, ...]:
        """Labels and assumptions the last ``unsat`` needed."""
        return tuple(Expr(e) for e in self.solver.unsat_core())

    def why_unknown(self) -> str:
        """The reason of the last ``unknown``."""
        return str(self.solver.reason_unknown())

    def value(self, term: Expr) -> int:
        """What the term is in the model of the last ``sat``, as :func:`literal_value`."""
        found = literal_value(Expr(self.solver.model().eval(term, model_completion=True)))
        if found is None:
            raise SolverError(f"z3 gave no value to {text(term)}")
        return found


class Script:
    """Runs SMT-LIB commands one text at a time, as a z3 that reads a file would."""

    name = "z3"
    version = VERSION

    def __init__(self) -> None:
        self.context = z3.Context()

    def ask(self, assertions: Sequence[str]) -> Iterator[tuple[str, float]]:
        """Whether each assertion can hold beside what was asserted, and how many milliseconds that took."""
        for assertion in assertions:
            started = time.perf_counter()
            answer = self.run(f"(push 1)\n(assert {assertion})\n(check-sat)\n(pop 1)")
            yield answer, (time.perf_counter() - started) * 1000

    def run(self, commands: str) -> str:
        """What z3 prints. Raises :class:`SolverError` for a text it cannot read."""
        try:
            return str(z3.Z3_eval_smtlib2_string(self.context.ref(), commands)).strip()
        except z3.Z3Exception as error:
            message = error.args[0] if error.args else error
            text = message.decode(errors="replace") if isinstance(message, bytes) else str(message)
            raise SolverError(" ".join(text.split())) from None
