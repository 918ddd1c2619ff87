"""The explicit engine for systems: ``explore`` walks every reachable state, ``check`` judges, ``check_variants`` knows the history."""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Collection, Iterator
from typing import TYPE_CHECKING

import attrs

from turnproof.checkers.network.judging import Counterexample, check, cut_short, judge_property, steps, violation
from turnproof.checkers.network.plain import PlainWalk
from turnproof.checkers.network.questions import BROKEN, questions
from turnproof.checkers.network.run import Runner
from turnproof.checkers.network.symmetry import Symmetry
from turnproof.checkers.network.triggers import Trigger, triggers
from turnproof.checkers.network.walk import INTERRUPT, Limits, Question, Walk
from turnproof.checkers.progress import SILENT, Progress
from turnproof.checkers.verdict import Engine, Outcome, Verdict
from turnproof.machines.kernel import TableError
from turnproof.specs.language import Always, Property, Step
from turnproof.specs.system import NoDeadlock, System, SystemSpec, SystemVariant, Within

if TYPE_CHECKING:
    from turnproof.checkers.network.compiled import CompiledWalk
    from turnproof.checkers.network.labelled import Judgement, Labels
    from turnproof.checkers.network.promised import Promised


@attrs.define(eq=False)
class NetworkGraph:
    """A walked system. ``off`` names the switches that were turned off."""

    spec: SystemSpec
    system: System
    properties: tuple[Property, ...]
    off: frozenset[str]
    runner: Runner
    triggers: tuple[Trigger, ...]
    walk: Walk
    engine: PlainWalk | CompiledWalk
    symmetry: Symmetry | None = None
    memory: int | None = None
    """Bytes that the edges may take, too; None: as many as there are."""
    judged: dict[str, Judgement] = attrs.field(factory=dict)
    _labels: Labels | None = None
    _promised: Promised | None = None

    @property
    def labels(self) -> Labels:
        """The graph with its edges, for bounds, and for promises about the future where :attr:`promised` is None; made when asked for."""
        if self._labels is None:
            self._labels = labels_of(self.engine, self.properties)
        return self._labels

    def every_step(self) -> Labels:
        """The graph with all its edges, and nothing that holds of them."""
        if isinstance(self.engine, PlainWalk):
            return self.engine.labels()
        from turnproof.checkers.network.compiled_labels import CompiledLabels

        return CompiledLabels(self.engine, [], [])

    @property
    def promised(self) -> Promised | None:
        """The graph for promises about the future, made when first asked for; None of a plain walk."""
        if self._promised is None and not isinstance(self.engine, PlainWalk):
            from turnproof.checkers.network.promised import Promised

            self._promised = Promised(self.engine, self.properties)
        return self._promised

    def bounds(self) -> str:
        """``exhaustive (55 states, 100 steps; 2 tokens, counters to 2)``."""
        what = "states" if self.symmetry is None else "representatives"
        parts = [
            f"{self.walk.states:,} {what}, {self.walk.transitions:,} steps; {self.spec.tokens} tokens, counters to {self.spec.counter}"
        ]
        if self.symmetry is not None:
            parts.append(f"one state for all that differ by an exchange of {self.symmetry}")
        if self.off:
            parts.append(f"without {', '.join(sorted(self.off))}")
        word = "exhaustive" if self.walk.complete and not self.walk.flaws else "cut short"
        return f"{word} ({'; '.join(parts)})"


def explore(
    spec: SystemSpec,
    *,
    system: System | None = None,
    properties: tuple[Property, ...] | None = None,
    off: Collection[str] = (),
    engine: str = "auto",
    threads: int | None = None,
    limit: int | None = None,
    seconds: float | None = None,
    memory: int | None = None,
    until_broken: bool = False,
    symmetry: bool = False,
    progress: Progress | None = None,
) -> NetworkGraph:
    """Walk every reachable state of ``spec.system``, or of ``system`` instead (a variant).

    ``until_broken``: end once each property is broken, if none is a promise about the future; a shorter way cannot be found then.

    ``off`` names switches to turn off. ``engine`` is ``compiled``, ``plain`` (slow, needs nothing but Python), or ``auto``: compiled
    where numba is installed. ``symmetry`` walks one state for all that differ by an exchange of what the specification calls
    interchangeable. A walk that ``limit`` (states), ``seconds``, ``memory`` (bytes) or Ctrl-C ends is not complete, and says so.
    Raises ``KeyError`` for an unknown switch or engine, :class:`TableError` where there is nothing to exchange.
    """
    chosen = spec.system if system is None else system
    known = {s.name for s in chosen.switches}
    for name in off:
        if name not in known:
            raise KeyError(f"{chosen.name} has no switch {name!r}; its switches: {', '.join(sorted(known)) or 'none'}")
    asked = spec.properties if properties is None else properties
    runner = Runner(chosen, counter=spec.counter)
    every = triggers(chosen, tokens=spec.tokens, counter=spec.counter, off=off)
    about, group = questions(asked), None
    if symmetry:
        if not spec.interchangeable:
            raise TableError(f"{chosen.name} has nothing to exchange: name it in interchangeable= of its specification")
        group = Symmetry(chosen, spec.interchangeable, spec.tokens)
    put = about if group is None else tuple(group.closed(question) for question in about)
    walker = walker_of(engine, runner, every, put, threads, group)
    answered = frozenset((BROKEN, p.name, 0) for p in asked) if until_broken and all(map(_found_walking, asked)) else frozenset()
    limits = Limits(states=limit, seconds=seconds, memory=memory, answered=answered)
    walk = walker.run(limits, SILENT if progress is None else progress)
    if group is not None:
        group.settle(walk, runner, every, about)
    return NetworkGraph(spec, chosen, asked, frozenset(off), runner, every, walk, walker, group, memory)


def _found_walking(prop: Property) -> bool:
    return isinstance(prop, Always | Step | NoDeadlock)


def walker_of(
    engine: str,
    runner: Runner,
    every: tuple[Trigger, ...],
    asked: tuple[Question, ...],
    threads: int | None,
    symmetry: Symmetry | None = None,
) -> PlainWalk | CompiledWalk:
    """The walk that ``engine`` names. Raises ``KeyError`` for a name it does not know."""
    if engine not in ("auto", "compiled", "plain"):
        raise KeyError(f"no engine {engine!r}; engines: auto, compiled, plain")
    if engine == "plain" or (engine == "auto" and importlib.util.find_spec("numba") is None):
        return PlainWalk(runner, every, asked, symmetry=symmetry)
    from turnproof.checkers.network.compiled import CompiledWalk

    return CompiledWalk(runner, every, asked, threads=threads or min(2, os.cpu_count() or 1), symmetry=symmetry)


def labels_of(engine: PlainWalk | CompiledWalk, properties: tuple[Property, ...]) -> Labels:
    """The edges of a walk: all of a plain one, of a compiled one those that the bounds among ``properties`` need."""
    if isinstance(engine, PlainWalk):
        return engine.labels()
    from turnproof.checkers.network.compiled_labels import CompiledLabels

    return CompiledLabels.for_bounds(engine, [prop for prop in properties if isinstance(prop, Within)])


# ── variants ──


def check_variants(spec: SystemSpec, *, progress: Progress | None = None, limit: int | None = None) -> list[Verdict]:
    """Whether each variant breaks each property it should, in exactly the shortest number of steps that the specification states."""
    said = SILENT if progress is None else progress
    verdicts: list[Verdict] = []
    for number, variant in enumerate(spec.variants):
        said.say("variants checked", number, len(spec.variants))
        interrupted = any(INTERRUPT in v.detail for v in verdicts)
        made = _check_variant(spec, variant, 1 if interrupted else limit, said)
        verdicts += [attrs.evolve(v, detail=f"not begun, for {INTERRUPT} came before") for v in made] if interrupted else made
    return verdicts


def _check_variant(spec: SystemSpec, variant: SystemVariant, limit: int | None, progress: Progress) -> Iterator[Verdict]:
    asked = spec.properties if variant.properties is None else variant.properties
    wanted = tuple(p for p in asked if p.name in variant.violates)
    graph = explore(spec, system=variant.system, properties=wanted, limit=limit, until_broken=True, progress=progress)
    for prop in wanted:
        length, found = variant.violates[prop.name], violation(graph, prop)
        story = None if found is None else found.story
        outcome = Outcome.VIOLATED
        if story is None:
            detail = f"it is not broken; it should be in {steps(length)}. What it was: {variant.about}"
            if not graph.walk.complete:
                outcome, detail = Outcome.UNDETERMINED, f"not broken so far; {cut_short(graph)}"
        elif story.length != length:
            detail = f"it is broken in {steps(story.length)} at the shortest, not in {length}: correct the length, or the variant"
        else:
            outcome, detail = Outcome.HOLDS, ""
        yield Verdict(
            machine=variant.system.name,
            check=f"fails as it should: {prop.name}",
            engine=Engine.EXPLICIT,
            outcome=outcome,
            how=f"shortest counterexample, {steps(length)}",
            requirements=prop.requirements,
            detail=detail,
            story=story,
        )


__all__ = [
    "Counterexample",
    "NetworkGraph",
    "check",
    "check_variants",
    "cut_short",
    "explore",
    "judge_property",
    "violation",
    "walker_of",
]
