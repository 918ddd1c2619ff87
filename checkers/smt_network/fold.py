"""Making z3 terms that are no larger than they need be: constants are folded where a term is made.

Composing a cascade of machines puts many constants where variables were (a phase just set, an event's field given by a wire).
Each function here makes the term of its operator, or a smaller term that equals it in every model by the laws of its operator
alone. z3's own simplifier has no part in it: what a proof asks should not depend on it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from turnproof.checkers.smt import z3api
from turnproof.checkers.smt.terms import NUMBER, TRUTH, Reader, Term, Values
from turnproof.checkers.smt.terms import Z3 as CHECKED
from turnproof.checkers.smt.z3api import BOOL, KINDS, Context, Expr
from turnproof.machines.kernel import Variable, read
from turnproof.machines.kernel.formula import Operators

_ITE, _NOT = KINDS["ite"], KINDS["not"]


class Folder:
    """The operators of one context."""

    def __init__(self, context: Context) -> None:
        self.context = context
        self.true, self.false = context.boolean(True), context.boolean(False)
        self._true, self._false = z3api.identity(self.true), z3api.identity(self.false)
        self._made: dict[tuple[object, ...], tuple[Expr, tuple[Expr, ...]]] = {}
        """Operator and operands -> what was made of them; operands are kept, because z3 gives a freed term's number to another one."""

    def _once(self, make: Callable[..., Expr], *operands: Expr) -> Expr:
        key = (make, *(z3api.identity(o) for o in operands))
        found = self._made.get(key)
        if found is None:
            found = self._made[key] = (make(*operands), operands)
        return found[0]

    def is_true(self, term: Expr) -> bool:
        """Whether it is the literal ``true``."""
        return z3api.identity(term) == self._true

    def is_false(self, term: Expr) -> bool:
        """Whether it is the literal ``false``."""
        return z3api.identity(term) == self._false

    # ── truth values ──

    def negation(self, term: Expr) -> Expr:
        """``not``."""
        return self._once(self._negation, term)

    def _negation(self, term: Expr) -> Expr:
        if self.is_true(term):
            return self.false
        if self.is_false(term):
            return self.true
        return z3api.arguments(term)[0] if z3api.kind(term) == _NOT else z3api.negation(term)

    def conjunction(self, terms: Iterable[Expr]) -> Expr:
        """``and``; ``true`` of none."""
        kept: dict[int, Expr] = {}
        for term in terms:
            key = z3api.identity(term)
            if key == self._false or z3api.identity(self.negation(term)) in kept:
                return self.false
            if key != self._true:
                kept[key] = term
        return self._once(_both, *kept.values()) if len(kept) > 1 else next(iter(kept.values()), self.true)

    def disjunction(self, terms: Iterable[Expr]) -> Expr:
        """``or``; ``false`` of none."""
        kept: dict[int, Expr] = {}
        for term in terms:
            key = z3api.identity(term)
            if key == self._true or z3api.identity(self.negation(term)) in kept:
                return self.true
            if key != self._false:
                kept[key] = term
        return self._once(_either, *kept.values()) if len(kept) > 1 else next(iter(kept.values()), self.false)

    # ── values ──

    def conditional(self, condition: Expr, then: Expr, otherwise: Expr) -> Expr:
        """``ite``."""
        return self._once(self._conditional, condition, then, otherwise)

    def _conditional(self, condition: Expr, then: Expr, otherwise: Expr) -> Expr:
        if self.is_true(condition) or z3api.identity(then) == z3api.identity(otherwise):
            return then
        if self.is_false(condition):
            return otherwise
        if z3api.sort_of(then) == BOOL:
            if self.is_true(then) or z3api.identity(then) == z3api.identity(condition):
                return self.disjunction((condition, otherwise))
            if self.is_false(then):
                return self.conjunction((self.negation(condition), otherwise))
            if self.is_true(otherwise):
                return self.disjunction((self.negation(condition), then))
            if self.is_false(otherwise):
                return self.conjunction((condition, then))
        if z3api.kind(otherwise) == _ITE:
            again, _, last = z3api.arguments(otherwise)
            if z3api.identity(again) == z3api.identity(condition):
                return self.conditional(condition, then, last)
        return z3api.conditional(condition, then, otherwise)

    def equal(self, left: Expr, right: Expr) -> Expr:
        """``=``."""
        return self._once(self._equal, left, right)

    def _equal(self, left: Expr, right: Expr) -> Expr:
        if z3api.identity(left) == z3api.identity(right):
            return self.true
        if z3api.sort_of(left) == BOOL:
            for one, other in ((left, right), (right, left)):
                if self.is_true(one):
                    return other
                if self.is_false(one):
                    return self.negation(other)
        return self._spread(self.equal, lambda a, b: a == b, z3api.equal, left, right)

    def at_most(self, left: Expr, right: Expr) -> Expr:
        """``<=`` of integers."""
        return self._once(self._at_most, left, right)

    def _at_most(self, left: Expr, right: Expr) -> Expr:
        return self._spread(self.at_most, lambda a, b: a <= b, z3api.at_most, left, right)

    def less(self, left: Expr, right: Expr) -> Expr:
        """``<`` of integers."""
        return self._once(self._less, left, right)

    def _less(self, left: Expr, right: Expr) -> Expr:
        return self._spread(self.less, lambda a, b: a < b, z3api.less, left, right)

    def unsigned_at_most(self, left: Expr, right: Expr) -> Expr:
        """``<=`` of bit-vectors without a sign."""
        return self._once(self._unsigned_at_most, left, right)

    def _unsigned_at_most(self, left: Expr, right: Expr) -> Expr:
        return self._spread(self.unsigned_at_most, lambda a, b: a <= b, z3api.unsigned_at_most, left, right)

    def _spread(
        self,
        again: Callable[[Expr, Expr], Expr],
        decide: Callable[[int, int], bool],
        make: Callable[[Expr, Expr], Expr],
        left: Expr,
        right: Expr,
    ) -> Expr:
        """A comparison: decided of two literals, and taken into a choice one side of which it decides."""
        one, other = z3api.literal_value(left), z3api.literal_value(right)
        if one is not None and other is not None:
            return self.true if decide(one, other) else self.false
        for chosen, literal, swapped in ((left, other, False), (right, one, True)):
            if literal is not None and z3api.kind(chosen) == _ITE:
                condition, then, otherwise = z3api.arguments(chosen)
                parts = [again(left, x) if swapped else again(x, right) for x in (then, otherwise)]
                if any(self.is_true(p) or self.is_false(p) for p in parts):
                    return self.conditional(condition, *parts)
        return make(left, right)

    def plus(self, left: Expr, right: Expr) -> Expr:
        """``+`` of integers."""
        one, other = z3api.literal_value(left), z3api.literal_value(right)
        if one is not None and other is not None:
            return self.context.integer(one + other)
        if one == 0 or other == 0:
            return right if one == 0 else left
        return z3api.add(left, right)

    def minus(self, left: Expr, right: Expr) -> Expr:
        """``-`` of integers."""
        one, other = z3api.literal_value(left), z3api.literal_value(right)
        if one is not None and other is not None:
            return self.context.integer(one - other)
        return left if other == 0 else z3api.subtract(left, right)

    def latest(self, left: Expr, right: Expr) -> Expr:
        """The larger of two integers."""
        return self.conditional(self.at_most(right, left), left, right)

    def operators(self) -> Operators[Term]:
        """Operator of a formula -> how terms of its operands become its term, with the checks of :data:`.smt.terms.Z3`."""
        folded: dict[str, Callable[..., Expr]] = {
            "eq": self.equal,
            "ne": lambda a, b: self.negation(self.equal(a, b)),
            "lt": self.less,
            "le": self.at_most,
            "gt": lambda a, b: self.less(b, a),
            "ge": lambda a, b: self.at_most(b, a),
            "and": lambda a, b: self.conjunction((a, b)),
            "or": lambda a, b: self.disjunction((a, b)),
            "not": self.negation,
            "implies": lambda a, b: self.disjunction((self.negation(a), b)),
            "add": self.plus,
            "sub": self.minus,
            "choose": self.conditional,
            "latest": self.latest,
        }
        return {name: _checked(name, function) for name, function in folded.items()}


def _both(*terms: Expr) -> Expr:
    return z3api.conjunction(terms)


def _either(*terms: Expr) -> Expr:
    return z3api.disjunction(terms)


_LOGICAL = frozenset({"and", "or", "not", "implies"})
_NUMERIC = frozenset({"lt", "le", "gt", "ge", "add", "sub", "latest"})


def _checked(name: str, function: Callable[..., Expr]) -> Callable[..., Term]:
    """``function`` after the sorts of its operands were found to fit ``name``; where they do not, :data:`.smt.terms.Z3` says so."""

    def apply(*operands: Term) -> Term:
        sorts = [o.sort for o in operands]
        if name in _LOGICAL:
            fits = all(sort == TRUTH for sort in sorts)
        elif name in _NUMERIC:
            fits = all(sort == NUMBER for sort in sorts)
        else:
            fits = sorts[-1] == sorts[-2] and (name != "choose" or sorts[0] == TRUTH)
        if not fits:
            return CHECKED[name](*operands)
        sort = sorts[-1] if name in ("add", "sub", "latest", "choose") else TRUTH
        return Term(function(*(o.expr for o in operands)), sort)

    return apply


class FoldingReader(Reader):
    """Folds formulas into terms as small as they can be; ``variable`` says what a variable is."""

    def __init__(self, folder: Folder, values: Values, variable: Callable[[Variable], Term]) -> None:
        super().__init__(folder.context, values, variable)
        self.operators = folder.operators()

    def term(self, node: object) -> Term:
        """A formula or a constant as a term."""
        return read(node, self.variable, self.operators, self.constant)
