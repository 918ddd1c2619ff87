"""Promises with a time: how long a system takes at most, if nobody helps. The computation itself is :mod:`turnproof.checkers.bounds`."""

from __future__ import annotations

from collections import Counter as Tally
from collections.abc import Iterator
from enum import Enum
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

import attrs
import numpy as np

from turnproof.checkers.bounds import Clock, Longest, Silent, longest
from turnproof.checkers.columns import Array
from turnproof.checkers.network.triggers import Kind, Trigger
from turnproof.machines.kernel import Formula, StartTimer, TimerRule, formula
from turnproof.specs.system import AnyPart, System, Within
from turnproof.specs.system_words import reads_step

if TYPE_CHECKING:
    from collections.abc import Sequence

    from turnproof.checkers.network.labelled import Labels


def timers(system: System) -> Iterator[tuple[AnyPart, TimerRule]]:
    """Every timer of every part."""
    return ((part, rule) for part in system.parts for rule in part.machine.timers)


def _runs(part: AnyPart, timer: Enum) -> Formula:
    return formula(part.running(timer), "a running timer")


def _starts(part: AnyPart, timer: Enum) -> Formula:
    return formula(part.emits(StartTimer, timer=timer), "a timer that starts")


def read_within(prop: Within, system: System) -> tuple[list[Formula], list[Formula]]:
    """The formulas over states, and over steps, that judging ``prop`` asks for."""
    first = formula(prop.first, prop.name)
    nodes = [formula(prop.then, prop.name), *(_runs(part, rule.timer) for part, rule in timers(system))]
    edges = [_starts(part, rule.timer) for part, rule in timers(system)]
    return (nodes, [*edges, first]) if reads_step(first) else ([*nodes, first], edges)


@attrs.frozen(eq=False)
class Bound:
    """What was computed: the bound, its longest way as edges, and both in words."""

    longest: Longest
    words: str
    edges: tuple[int, ...]


def judge_within(labels: Labels, prop: Within, system: System, triggers: Sequence[Trigger]) -> Bound:
    """Compute the bound of ``prop``. Raises :class:`turnproof.checkers.bounds.TooMany`."""
    done = at_once(triggers, prop)[labels.label]
    clocks = _clocks(labels, system, triggers)
    begins, begin_edges = places(labels, formula(prop.first, prop.name))
    kept = np.flatnonzero(done | begin_edges | np.logical_or.reduce([clock.fires for clock in clocks]))
    silent = Silent(
        nodes=labels.edges.nodes,
        source=labels.edges.source[kept],
        target=labels.edges.target[kept],
        at_once=done[kept],
        clocks=tuple(attrs.evolve(c, fires=c.fires[kept], starts=c.starts[kept]) for c in clocks),
        goal=labels.nodes_where(formula(prop.then, prop.name)),
        begins=begins,
        begin_edges=begin_edges[kept],
        cap_ms=2 * prop.milliseconds,
    )
    found = longest(silent)
    edges = tuple(int(kept[move.edge]) for move in found.way)
    words = "; ".join(_told(found, edges, labels, triggers))
    return Bound(found, words, edges)


def places(labels: Labels, node: Formula) -> tuple[Array, Array]:
    """Where a formula holds: nodes, and edges. One about steps holds of no node."""
    nodes, edges = np.zeros(labels.edges.nodes, dtype=np.bool_), np.zeros(len(labels.edges.source), dtype=np.bool_)
    return (nodes, labels.edges_where(node)) if reads_step(node) else (labels.nodes_where(node), edges)


def _told(found: Longest, edges: tuple[int, ...], labels: Labels, triggers: Sequence[Trigger]) -> Iterator[str]:
    """The way, each thing that happens once: the last time it does, and how often."""
    last: dict[str, int] = {}
    times = Tally(str(triggers[int(labels.label[edge])]) for edge in edges)
    for move, edge in zip(found.way, edges, strict=True):
        what = str(triggers[int(labels.label[edge])])
        last.pop(what, None)
        last[what] = move.by_ms
    for what, by in last.items():
        yield f"by {seconds(by)} {what}" + (f" ({times[what]} times)" if times[what] > 1 else "")


def at_once(triggers: Sequence[Trigger], prop: Within) -> Array:
    """Trigger -> whether the runtime does it at once. What a switch allows is a fault of the environment, which is silent."""
    done = [t.kind is Kind.DELIVER or (t.kind is Kind.SEND and type(t.event) in prop.at_once and t.switch is None) for t in triggers]
    return np.array(done, np.bool_)


_CLOCKS: WeakKeyDictionary[Labels, tuple[Clock, ...]] = WeakKeyDictionary()
"""The clocks of a walked system, read once for all its bounds."""


def _clocks(labels: Labels, system: System, triggers: Sequence[Trigger]) -> tuple[Clock, ...]:
    if labels not in _CLOCKS:
        _CLOCKS[labels] = tuple(_clock(labels, part, rule, triggers) for part, rule in timers(system))
    return _CLOCKS[labels]


def _clock(labels: Labels, part: AnyPart, rule: TimerRule, triggers: Sequence[Trigger]) -> Clock:
    fires = np.array([t.kind is Kind.EXPIRE and t.where == part.name and t.timer is rule.timer for t in triggers], np.bool_)
    return Clock(
        name=f"{part.name}.{rule.timer.name.lower()}",
        milliseconds=rule.duration.milliseconds,
        runs=labels.nodes_where(_runs(part, rule.timer)),
        fires=fires[labels.label],
        starts=labels.edges_where(_starts(part, rule.timer)),
    )


def seconds(milliseconds: int) -> str:
    """``330 s``, ``330.001 s``."""
    return f"{milliseconds / 1000:g} s"


__all__ = ["Bound", "at_once", "judge_within", "read_within", "seconds", "timers"]
