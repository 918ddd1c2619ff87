"""The exchanges of a system as the kernel reads them: columns to sort, and tables of what a local state becomes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from turnproof.checkers.network.kernel.fold import F_ELEMENTS, F_FIRST, F_GROUPS, folded_predecessor, representative
from turnproof.checkers.network.kernel.places import Ints, Small
from turnproof.checkers.network.run import World
from turnproof.checkers.network.symmetry import Symmetry, locals_of
from turnproof.checkers.network.tables import Tables
from turnproof.checkers.network.walk import Trace

if TYPE_CHECKING:
    from turnproof.checkers.network.compiled import CompiledWalk


class Folded:
    """Numbers of local states, closed under the exchanges. :meth:`close` after every ``tables.fill``."""

    def __init__(self, symmetry: Symmetry, tables: Tables) -> None:
        self.symmetry, self.tables = symmetry, tables
        self.components = tables.components
        self.count = len(self.components)
        index = {name: n for n, name in enumerate(symmetry.names)}
        self.columns = [[[index[name] for name in column] for column in group] for group in symmetry.columns]
        for group in self.columns:
            for column in group[1:]:
                for first, other in zip(group[0], column, strict=True):
                    # One numbering for all that may be exchanged: then an exchange is a permutation of numbers.
                    self.components[other].locals, self.components[other].ids = self.components[first].locals, self.components[first].ids
        self.goes = [[index[by.name(name)] for name in symmetry.names] for by in symmetry.elements]
        self.tables_of: list[list[list[int]]] = [[[] for _ in self.components] for _ in symmetry.elements]
        self.close()

    def close(self) -> None:
        """Number every local state that an exchange makes of a known one, and lay the arrays out anew."""
        done = -1
        while done != (done := sum(len(c.locals) for c in self.components)):
            for by, goes, made in zip(self.symmetry.elements, self.goes, self.tables_of, strict=True):
                for comp, component in enumerate(self.components):
                    for state in component.locals[len(made[comp]) :]:
                        made[comp].append(self.components[goes[comp]].local(self.symmetry.component(comp, state, by)))
        self.f, self.images = self._arrays()

    def _arrays(self) -> tuple[Ints, Small]:
        f: list[int] = [0] * F_FIRST
        f[F_GROUPS], f[F_ELEMENTS] = len(self.columns), len(self.goes)
        for group in self.columns:
            f += [len(group), len(group[0]), *(comp for column in group for comp in column)]
        images: list[int] = []
        for goes, made in zip(self.goes, self.tables_of, strict=True):
            for comp, there in enumerate(goes):
                f += [there, len(images)]
                images += made[comp]
        return np.array(f, np.int64), np.array(images or [0], np.int32)

    def scratch(self) -> Ints:
        """Room for the work of one thread."""
        return np.zeros(3 * self.count, np.int64)

    def numbers(self, locals_: Sequence[int]) -> tuple[int, ...]:
        """The representative of a state that is given by the numbers of its local states."""
        v = self.scratch()
        v[: self.count] = locals_
        representative(self.f, self.images, v, self.count)
        return tuple(v[: self.count].tolist())

    def canonical(self, world: World) -> tuple[int, ...]:
        """The same, for a state as it is; a state that was never numbered has none."""
        known = [c.ids.get(local, -1) for c, local in zip(self.components, locals_of(world), strict=True)]
        return () if -1 in known else self.numbers(known)


def real_trace(walked: CompiledWalk, folds: Folded, level: int, s: int, row: int) -> Trace:
    """A real run past the representatives on a shortest way to that one."""
    chain: list[tuple[int, ...]] = []
    while level > 0:
        chain.append(tuple(walked.locals(s, row)))
        level -= 1
        s, row = _before(walked, folds, level, np.array(chain[-1], np.int64))
    return folds.symmetry.follow(walked.runner, walked.triggers, folds.canonical, list(reversed(chain)))


def _before(walked: CompiledWalk, folds: Folded, level: int, target: Ints) -> tuple[int, int]:
    a, b, work, scratch = walked.arrays.a, walked.arrays.b, walked.places[0].work, folds.scratch()
    for s, shard in enumerate(walked.shards):
        first, last = shard.levels[level], walked.end_of(level, shard)
        row = folded_predecessor(a, b, work, shard.keys, first, last, folds.f, folds.images, scratch, target)
        if row >= 0:
            return s, int(row)
    raise RuntimeError("internal error: a representative has no predecessor in the level before")


__all__ = ["Folded", "real_trace"]
