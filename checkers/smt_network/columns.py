"""Explored states and steps of a system as columns of numbers, the same numbers that its terms speak of."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import attrs
import numpy as np
from numpy.typing import NDArray

from turnproof.checkers.network.explicit import NetworkGraph
from turnproof.checkers.network.plain import PlainWalk
from turnproof.checkers.network.run import Broken, Cut, Occurrence, World
from turnproof.checkers.smt_network.variables import Variables
from turnproof.machines.kernel import Formula

if TYPE_CHECKING:
    from turnproof.checkers.network.compiled import CompiledWalk

Column = NDArray[Any]
ROWS, SAMPLED_ROWS = 20_000, 2_000
"""States of a block, and of one of a sample."""
MOST_FORMULAS = 62
"""Formulas about steps that one pass of the kernel decides."""


@attrs.frozen(eq=False)
class Block:
    """Some states and every step from them that the explicit engine follows."""

    states: Mapping[str, Column]
    """Name of a variable -> its number in each state."""
    known: Column
    """State -> whether all its steps are here (none was cut off at a bound, none is a fault)."""
    source: Column
    """Step -> the place of its state in this block."""
    label: Column
    """Step -> the number of its trigger."""
    after: Mapping[str, Column]
    """Name of a variable -> its number after each step."""
    holds: tuple[Column, ...]
    """Formula about steps -> whether it holds of each step."""


class States:
    """The states of a walked graph as columns."""

    def __init__(self, variables: Variables, graph: NetworkGraph) -> None:
        self.variables, self.graph = variables, graph
        self._tables: dict[int, Column] = {}

    def all(self, most: int = 2_000_000) -> Mapping[str, Column]:
        """Up to ``most`` states that were reached: those nearest to the start first, in each part of the set of states."""
        engine = self.graph.engine
        if isinstance(engine, PlainWalk):
            return self.of_worlds(engine.worlds[:most])
        keys = [shard.keys[: min(shard.count, most // len(engine.shards) + 1)] for shard in engine.shards]
        return self.of_keys(engine, np.concatenate(keys))

    def of_worlds(self, worlds: Sequence[World]) -> dict[str, Column]:
        """States as they are."""
        rows = [list(self.variables.numbers(world).values()) for world in worlds]
        names = list(self.variables.numbers(self.graph.runner.initial()))
        table = np.array(rows, np.int64).reshape(-1, len(names))
        return {name: table[:, n] for n, name in enumerate(names)}

    def of_keys(self, engine: CompiledWalk, keys: Column) -> dict[str, Column]:
        """States as the compiled walk packs them."""
        layout, made = engine.arrays.layout, dict[str, Column]()
        for comp, width in enumerate(layout.widths):
            locals_ = keys[:, layout.word[comp]] >> layout.shift[comp] & ((1 << width) - 1)
            table = self._table(engine, comp)
            for n, name in enumerate(self._names(engine, comp)):
                made[name] = table[locals_, n]
        return made

    def _names(self, engine: CompiledWalk, comp: int) -> list[str]:
        tables = engine.tables
        if comp < tables.parts:
            return [p.name for p in self.variables.part_places(comp)]
        if comp < tables.first_budget:
            return [p.name for p in self.variables.channel_places(comp - tables.parts)]
        return [self.variables.budgets[comp - tables.first_budget].name]

    def _table(self, engine: CompiledWalk, comp: int) -> Column:
        """Local state of a component -> the numbers of its variables."""
        tables, found = engine.tables, engine.tables.components[comp].locals
        known = self._tables.get(comp)
        if known is None or len(known) < len(found):
            rows: list[list[int]]
            if comp < tables.parts:
                rows = [list(self.variables.part_numbers(comp, *local)) for local in found]
            elif comp < tables.first_budget:
                rows = [list(self.variables.channel_numbers(comp - tables.parts, local)) for local in found]
            else:
                rows = [[local] for local in found]
            known = self._tables[comp] = np.array(rows, np.int64).reshape(len(found), -1)
        return known

    # ── steps ──

    def blocks(self, formulas: Sequence[Formula], *, steps: int | None = None, seed: int = 0) -> Iterator[Block]:
        """Every state and step, in blocks; with ``steps``, blocks drawn at random until there are so many steps."""
        engine = self.graph.engine
        made = self._plain(engine, formulas) if isinstance(engine, PlainWalk) else self._compiled(engine, formulas, steps, seed)
        seen = 0
        for block in made:
            yield block
            seen += len(block.source)
            if steps is not None and seen >= steps:
                return

    def _plain(self, engine: PlainWalk, formulas: Sequence[Formula]) -> Iterator[Block]:
        for first in range(0, len(engine.worlds), ROWS):
            worlds = engine.worlds[first : first + ROWS]
            known: Column = np.ones(len(worlds), np.bool_)
            found: list[tuple[int, int, Occurrence]] = []
            for n, world in enumerate(worlds):
                for number, trigger in enumerate(engine.triggers):
                    if engine.runner.enabled(world, trigger):
                        try:
                            found.append((n, number, engine.runner.perform(world, trigger)))
                        except (Cut, Broken):
                            known[n] = False
            yield Block(
                self.of_worlds(worlds),
                known,
                np.array([n for n, _, _ in found], np.int64),
                np.array([number for _, number, _ in found], np.int64),
                self.of_worlds([step.after for _, _, step in found]),
                tuple(np.array([bool(engine.runner.holds_of(f, step)) for _, _, step in found], np.bool_) for f in formulas),
            )

    def _compiled(self, engine: CompiledWalk, formulas: Sequence[Formula], steps: int | None, seed: int) -> Iterator[Block]:
        compiler = engine.tables.compiler
        programs = np.array([(n % MOST_FORMULAS, compiler.program(f)) for n, f in enumerate(formulas)], np.int32).reshape(-1, 2)
        engine.recompiled()
        # A walk that ended early has states whose steps were not all looked at; the tables may lack entries for them.
        rows = ROWS if steps is None else SAMPLED_ROWS
        places = [(s, first) for s in range(len(engine.shards)) for first in range(0, self._expanded(engine, s), rows)]
        if steps is not None:
            random.Random(seed).shuffle(places)
        for s, first in places:
            yield self._of_shard(engine, s, first, min(first + rows, self._expanded(engine, s)), programs)

    def _expanded(self, engine: CompiledWalk, shard: int) -> int:
        return engine.shards[shard].count if engine.walk.complete else engine.places[shard].position

    def _of_shard(self, engine: CompiledWalk, s: int, first: int, last: int, programs: Column) -> Block:
        from turnproof.checkers.network.kernel.back import edges_of

        keys, passes = engine.shards[s].keys, max(1, -(-len(programs) // MOST_FORMULAS))
        known: Column = np.ones(last, np.bool_)
        room = (last - first) * len(engine.triggers) + len(engine.triggers)
        target, label = np.zeros((room, engine.arrays.layout.words), np.int64), np.zeros((room, 3), np.int32)
        bits: list[Column] = []
        made = 0
        for n in range(passes):
            holds: Column = np.zeros(room, np.int64)
            asked = programs[n * MOST_FORMULAS : (n + 1) * MOST_FORMULAS]
            _, written = edges_of(
                engine.arrays.a, engine.arrays.b, engine.places[0].work, keys, first, last, asked, target, label, holds, known
            )
            made = int(written)
            bits += [(holds[:made] >> bit & 1).astype(np.bool_) for bit in range(len(asked))]
        return Block(
            self.of_keys(engine, keys[first:last]),
            known[first:last],
            label[:made, 0].astype(np.int64) - first,
            label[:made, 1].astype(np.int64),
            self.of_keys(engine, target[:made]),
            tuple(bits),
        )
