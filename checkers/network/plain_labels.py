"""The labelled graph of a plain walk: every step performed once more, every formula read on it."""

from __future__ import annotations

from functools import cached_property

import numpy as np

from turnproof.checkers.columns import Array
from turnproof.checkers.liveness import Edges
from turnproof.checkers.network.plain import PlainWalk
from turnproof.checkers.network.run import Broken, Cut, Occurrence
from turnproof.checkers.network.walk import Choice, Trace
from turnproof.machines.kernel import Formula


class PlainLabels:
    """:class:`turnproof.checkers.network.labelled.Labels` of a plain walk."""

    def __init__(self, plain: PlainWalk) -> None:
        self.plain = plain
        self.known: Array = np.ones(len(plain.worlds), dtype=np.bool_)
        self.steps: list[Occurrence] = []
        self.choices: list[Choice] = []
        numbers: list[int] = []
        for i, world in enumerate(plain.worlds):
            for number, trigger in enumerate(plain.triggers):
                if plain.runner.enabled(world, trigger):
                    try:
                        self.steps.append(plain.runner.perform(world, trigger))
                    except (Cut, Broken):
                        self.known[i] = False
                        continue
                    self.choices.append(plain.choice(world, trigger))
                    numbers.append(number)
        self.label: Array = np.array(numbers, dtype=np.int32)

    @cached_property
    def edges(self) -> Edges:
        """Every step, stutters included."""
        index = self.plain.index
        source = np.array([index[s.before] for s in self.steps], dtype=np.int64)
        target = np.array([index[s.after] for s in self.steps], dtype=np.int64)
        return Edges(len(self.plain.worlds), source, target)

    def nodes_where(self, node: Formula) -> Array:
        """Node -> whether a formula over states holds."""
        return np.array([bool(self.plain.runner.holds(node, world)) for world in self.plain.worlds], dtype=np.bool_)

    def edges_where(self, node: Formula) -> Array:
        """Edge -> whether a formula over steps holds."""
        return np.array([bool(self.plain.runner.holds_of(node, step)) for step in self.steps], dtype=np.bool_)

    def choice(self, edge: int) -> Choice:
        """What began the step of an edge."""
        return self.choices[edge]

    def way_to(self, node: int) -> Trace:
        """A shortest way from the initial node."""
        return self.plain.trace(node)
