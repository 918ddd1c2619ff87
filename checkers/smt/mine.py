"""Candidate conjuncts from the explored graph: what it never shows may be an invariant.

A *feature* is a small question about a state with a few answers, its classes: the value of an Enum, a bool or a small Range,
whether a token is nobody, whether two tokens are the same one, whether a counter is 0, 1 or more, how two counters compare.
The explored states give a table of answers. A candidate says that some combination of answers, which no explored state gives,
is given by none at all:

    ``a in S``        ``a = x implies b in S``        ``a = x and b = y implies c in S``

Candidates are only guesses; the solver keeps those that are inductive. None is made without need: each must rule out a state
from which the proof failed (Bradley, "SAT-based model checking without unrolling", 2011, with the explored states as the oracle
of what may not be ruled out).
"""

from __future__ import annotations

import base64
import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import attrs
import numpy as np
from numpy.typing import NDArray

SMALL = 32
"""A Range with more values is not asked for its value."""
LITERALS = 6
"""Most answers that one candidate combines."""


@attrs.frozen
class Feature:
    """One question. ``classes`` are its answers: how a person reads each, and the SMT-LIB test over ``now``."""

    kind: str
    """``value``, ``nobody``, ``named`` (which of some tokens, or another one), ``amount``, ``equal`` or ``order``."""
    slots: tuple[str, ...]
    classes: tuple[tuple[str, str], ...]
    low: int = 0
    """The value of the first class, for ``value``."""

    def answer(self, state: Mapping[str, int]) -> int:
        """The class of a state, given as slot -> number; -1 if it has none."""
        first = state[self.slots[0]]
        if self.kind == "value":
            return first - self.low if 0 <= first - self.low < len(self.classes) else -1
        if self.kind == "nobody":
            return int(first != 0)
        if self.kind == "named":
            return first if 0 <= first < len(self.classes) else len(self.classes) - 1
        if self.kind == "amount":
            return min(first, 2) if first >= 0 else -1
        other = state[self.slots[1]]
        return int(first != other) if self.kind == "equal" else (first > other) - (first < other) + 1

    def answers(self, columns: Mapping[str, NDArray[Any]]) -> NDArray[Any]:
        """The classes of many states."""
        first = columns[self.slots[0]].astype(np.int64)
        other = columns[self.slots[-1]].astype(np.int64)
        classes: NDArray[Any] = first - self.low
        if self.kind == "nobody":
            classes = (first != 0).astype(np.int64)
        elif self.kind == "named":
            classes = np.where(first < len(self.classes), first, len(self.classes) - 1)
        elif self.kind == "amount":
            classes = np.minimum(first, 2)
        elif self.kind == "equal":
            classes = (first != other).astype(np.int64)
        elif self.kind == "order":
            classes = np.sign(first - other) + 1
        return classes


@attrs.frozen
class Candidate:
    """A guess: where all of ``given`` are answered so, ``feature`` is answered as one of ``allowed``."""

    name: str
    smt: str
    reads: tuple[str, ...]


class Oracle:
    """Answers of the explored states, and candidates that rule out a state without contradicting any of them."""

    def __init__(self, features: Sequence[Feature], table: NDArray[Any]) -> None:
        self.features, self.table = tuple(features), table
        self.seen = [frozenset(np.unique(table[:, n]).tolist()) for n in range(len(self.features))]

    def candidates(self, state: Mapping[str, int], relevant: Iterable[str]) -> Iterator[Candidate]:
        """Candidates that exclude ``state``: first those about the ``relevant`` slots alone, small ones first."""
        answers = [feature.answer(state) for feature in self.features]
        wanted = set(relevant)
        near = [n for n, f in enumerate(self.features) if wanted.issuperset(f.slots)]
        for pool in (near, list(range(len(self.features)))):
            for size in (0, 1, 2):
                yield from self._implications(pool, answers, size)
            long = self._clause(pool, answers)
            if long is not None:
                yield long

    def _implications(self, pool: Sequence[int], answers: Sequence[int], size: int) -> Iterator[Candidate]:
        """``size`` answers given, one excluded; the strongest come first."""
        found: list[tuple[float, int, Candidate, Candidate | None]] = []
        for given in itertools.combinations(pool, size):
            mask = self._mask(given, answers)
            if size and not mask.any():
                continue
            for target in pool:
                if target in given:
                    continue
                allowed = frozenset(np.unique(self.table[mask, target]).tolist()) if size else self.seen[target]
                if answers[target] not in allowed:
                    strength = len(allowed) / len(self.features[target].classes)
                    weak = self._weak(given, target, answers)
                    found.append((strength, len(found), self._candidate(given, answers, target, allowed), weak))
        found.sort(key=lambda f: f[:2])
        yield from (strong for _, _, strong, _ in found)
        yield from (weak for _, _, _, weak in found if weak is not None)

    def _weak(self, given: Sequence[int], target: int, answers: Sequence[int]) -> Candidate | None:
        """Excludes the one answer instead of all that were never seen."""
        if answers[target] < 0:
            return None
        others = frozenset(range(len(self.features[target].classes))) - {answers[target]}
        return self._candidate(given, answers, target, others) if others else None

    def _mask(self, given: Sequence[int], answers: Sequence[int]) -> NDArray[Any]:
        mask = np.ones(len(self.table), dtype=np.bool_)
        for number in given:
            mask &= self.table[:, number] == answers[number]
        return mask

    def _clause(self, pool: Sequence[int], answers: Sequence[int]) -> Candidate | None:
        """A combination of up to :data:`LITERALS` answers that no explored state gives, found greedily."""
        chosen: list[int] = []
        mask = np.ones(len(self.table), dtype=np.bool_)
        while mask.any() and len(chosen) < LITERALS:
            rest = [n for n in pool if n not in chosen and answers[n] >= 0]
            if not rest:
                return None
            best = min(rest, key=lambda n: int((mask & (self.table[:, n] == answers[n])).sum()))
            mask &= self.table[:, best] == answers[best]
            chosen.append(best)
        if mask.any() or len(chosen) < 4:
            return None
        return self._candidate(
            chosen[:-1], answers, chosen[-1], frozenset(range(len(self.features[chosen[-1]].classes))) - {answers[chosen[-1]]}
        )

    def _candidate(self, given: Sequence[int], answers: Sequence[int], target: int, allowed: frozenset[int]) -> Candidate:
        feature = self.features[target]
        inside = sorted(a for a in allowed if 0 <= a < len(feature.classes))
        reads = dict.fromkeys(f"now.{s}" for n in (*given, target) for s in self.features[n].slots)
        then_words, then = _among(feature, inside)
        if not given:
            return Candidate(then_words, then, tuple(reads))
        words = " and ".join(self.features[n].classes[answers[n]][0] for n in given)
        tests = [self.features[n].classes[answers[n]][1] for n in given]
        test = tests[0] if len(tests) == 1 else f"(and {' '.join(tests)})"
        return Candidate(f"{words} implies {then_words}", f"(=> {test} {then})", tuple(reads))


def _among(feature: Feature, inside: Sequence[int]) -> tuple[str, str]:
    """That the answer is one of ``inside``; written as what it is not, where that is shorter."""
    outside = [a for a in range(len(feature.classes)) if a not in inside]
    if not inside:
        return "false", "false"
    if len(outside) == 1 and len(inside) > 1:
        words, test = feature.classes[outside[0]]
        return f"not {words}", f"(not {test})"
    names = [feature.classes[a][0] for a in inside]
    tests = [feature.classes[a][1] for a in inside]
    if len(inside) == 1:
        return names[0], tests[0]
    values = [name.partition(" = ") for name in names]
    joined = f"{values[0][0]} in {{{', '.join(v[2] for v in values)}}}" if feature.kind == "value" else f"({' or '.join(names)})"
    return joined, f"(or {' '.join(tests)})"


# ── to and from plain data ──


def pack(features: Sequence[Feature], table: NDArray[Any]) -> dict[str, object]:
    """As JSON for the child process; each row of answers once."""
    rows = np.unique(table.astype(np.int8), axis=0) if table.size else table.astype(np.int8)
    return {
        "features": [attrs.asdict(f) for f in features],
        "shape": list(rows.shape),
        "table": base64.b64encode(np.ascontiguousarray(rows).tobytes()).decode(),
    }


def unpack(data: Mapping[str, Any]) -> Oracle:
    """What :func:`pack` made."""
    features = [Feature(f["kind"], tuple(f["slots"]), tuple((w, s) for w, s in f["classes"]), f["low"]) for f in data["features"]]
    table = np.frombuffer(base64.b64decode(data["table"]), dtype=np.int8).reshape(data["shape"])
    return Oracle(features, table)
