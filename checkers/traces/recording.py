"""Replays a recording of another program: every design in step with it, and the best one explained by what the target forbids.

Each sequence is played through each design, timers and all, until they differ; a design *agrees* with a sequence if they never do. The
design that agrees with most is what the program behaves like. Where that is not the target, a second pass asks at every call what the
target would have done at that very moment: where it differs, the promises that the design breaks there say which requirement that is.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import attrs

from turnproof.checkers.predicates import Memory, Pasts, Predicates, StepTest
from turnproof.checkers.progress import SILENT, Progress
from turnproof.checkers.timed import Timed, TimedStep
from turnproof.checkers.traces.report import Difference, Fit, Told
from turnproof.machines.kernel import Row
from turnproof.specs.language import Always, AnyMachine, Property, Said, Spec, Step
from turnproof.traces.files import lines_of
from turnproof.traces.line import LineProblem, TraceError, column_of, decode
from turnproof.traces.source import Advance, Call, Recorded, Send, Source, Unknown


@attrs.frozen
class Placed:
    """A sequence, and where it stands."""

    place: str
    sequence: Recorded


@attrs.frozen
class Clash:
    """The first call of a sequence at which a design differs."""

    place: str
    sequence: Recorded
    number: int
    predicted: Mapping[str, object]


@attrs.define
class Tally:
    """How one design fares."""

    machine: AnyMachine
    sequences: int = 0
    calls: int = 0
    clashes: list[Clash] = attrs.field(factory=list)
    clashed: int = 0
    unjudged: int = 0
    """Calls from a difference on that may be due to an unknown call before it."""


@attrs.define
class Read:
    """What was read, whatever the design."""

    sequences: int = 0
    calls: int = 0
    unjudged: int = 0
    """Calls that are not known, and those after them that nobody can judge."""
    torn: list[str] = attrs.field(factory=list)
    made: Counter[str] = attrs.field(factory=Counter)
    unknown: Counter[str] = attrs.field(factory=Counter)
    extra: Counter[str] = attrs.field(factory=Counter)
    missing: Counter[str] = attrs.field(factory=Counter)
    notes: Counter[str] = attrs.field(factory=Counter)


KEPT = 5
"""Clashes of a design that are kept; the others are counted."""


def sequences(source: Source, paths: Sequence[Path], read: Read, progress: Progress = SILENT) -> Iterator[Placed]:
    """Every sequence of the files. Raises :class:`TraceError`."""
    for path in paths:
        for some in lines_of(path):
            if some.torn:
                read.torn.append(f"{path}:{some.first}")
            for number, line in enumerate(some.data, some.first):
                if not line.strip():
                    continue
                try:
                    sequence = source.read(decode(line))
                except LineProblem as problem:
                    raise TraceError(f"{path}:{number}:{problem.at or column_of(line, problem.field)}: {problem}") from None
                read.sequences += 1
                yield Placed(f"{path}:{number}", sequence)
            progress.say(f"sequences of {path.name}", read.sequences)


class Fitting:
    """The first pass: designs in step with every sequence. ``read`` says what there was."""

    def __init__(self, source: Source) -> None:
        self.source = source
        self.tallies: list[Tally] = []
        self.read = Read()

    def run(self, designs: Sequence[AnyMachine], paths: Sequence[Path], progress: Progress = SILENT) -> None:
        """Read the files and play these designs, in addition to those that were played before."""
        tallies, self.read = [Tally(machine) for machine in designs], Read()
        for placed in sequences(self.source, paths, self.read, progress):
            judged = self._known(placed.sequence)
            for tally in tallies:
                self._play(tally, placed, judged)
        self.tallies += tallies

    @property
    def perfect(self) -> bool:
        """Whether some design agrees with all there is, so that none can fit better."""
        return any(not tally.clashed and tally.calls for tally in self.tallies)

    def best(self) -> Tally:
        """The design that agrees with most; the first of those that are equal."""
        return max(self.tallies, key=lambda tally: (tally.sequences, tally.calls))

    def fits(self) -> tuple[Fit, ...]:
        """How each design fares, the best first."""
        made = (Fit(design=t.machine.name, sequences=t.sequences, calls=t.calls) for t in self.tallies)
        return tuple(sorted(made, key=lambda fit: (-fit.sequences, -fit.calls)))

    def _known(self, sequence: Recorded) -> int:
        """Count what the sequence has. Returns how many of its calls can be judged: none after an unknown call that showed an effect."""
        read, judged, seen_before = self.read, 0, None
        read.extra.update(sequence.extra)
        read.missing.update(sequence.missing)
        blind = False
        for call in sequence.calls:
            read.calls += 1
            read.made[call.name] += 1
            if call.note:
                read.notes[call.note] += 1
            if isinstance(call.move, Unknown):
                read.unknown[call.move.why] += 1
                blind = blind or not _quiet(call, seen_before)
            judged += not blind
            seen_before = call.seen
        read.unjudged += len(sequence.calls) - judged + sum(isinstance(call.move, Unknown) for call in sequence.calls[:judged])
        return judged

    def _play(self, tally: Tally, placed: Placed, judged: int) -> None:
        timed, doubtful = Timed(tally.machine), False
        for number, call in enumerate(placed.sequence.calls[:judged]):
            if isinstance(call.move, Unknown):
                doubtful = True
                continue
            before = timed.state
            predicted = self.source.predict(call, before, move(timed, call), timed.state)
            if differing(predicted, call):
                if doubtful:
                    tally.unjudged += judged - number
                    return
                tally.clashed += 1
                if len(tally.clashes) < KEPT:
                    tally.clashes.append(Clash(placed.place, placed.sequence, number, predicted))
                return
            tally.calls += 1
        tally.sequences += judged == len(placed.sequence.calls) and not doubtful


def _quiet(call: Call, before: Mapping[str, object] | None) -> bool:
    """Whether a call showed no effect."""
    lasting = [name for name in call.seen if name not in ("cancels", "returned", "threw")]
    return not call.seen.get("cancels") and before is not None and all(before.get(name) == call.seen[name] for name in lasting)


def differing(predicted: Mapping[str, object], call: Call) -> list[str]:
    """What was seen otherwise than predicted."""
    return [name for name, value in call.seen.items() if predicted[name] != value]


def move(timed: Timed, call: Call) -> tuple[TimedStep, ...]:
    """Make the call on a machine."""
    if isinstance(call.move, Send):
        return (timed.send(call.move.event),)
    return timed.advance(call.move.ms) if isinstance(call.move, Advance) else ()


@attrs.define
class Kind:
    """Differences of one set of requirements."""

    promises: dict[str, Property] = attrs.field(factory=dict)
    calls: int = 0
    sequences: set[str] = attrs.field(factory=set)
    best: tuple[tuple[bool, int], Difference] | None = None
    """The shortest example, one without an earlier difference before any other."""


class Explaining:
    """The second pass: one design beside the target, call by call. ``rows`` collects the rows it used."""

    def __init__(self, source: Source, spec: Spec, design: AnyMachine) -> None:
        self.source, self.spec, self.design = source, spec, design
        self.memory = Memory(design, spec)
        predicates = Predicates(design, spec.histories)
        self.steps: list[tuple[Property, StepTest]] = [(p, predicates.test(p.holds)) for p in spec.properties if isinstance(p, Step)]
        self.states: list[tuple[Property, StepTest]] = [(p, predicates.test(p.holds)) for p in spec.properties if isinstance(p, Always)]
        self.kinds: dict[tuple[str, ...], Kind] = {}
        self.rows: set[str] = set()
        self.known_faults = frozenset(name for v in spec.variants if v.machine is design for name in v.violates)

    def run(self, paths: Sequence[Path], progress: Progress = SILENT) -> tuple[Difference, ...]:
        """What the design does and the target forbids, by requirement."""
        for placed in sequences(self.source, paths, Read(), progress):
            self._explain(placed)
        return tuple(self._difference(ids, kind) for ids, kind in sorted(self.kinds.items(), key=lambda item: _order(self.spec, item[0])))

    def _explain(self, placed: Placed) -> None:
        timed, pasts, told = Timed(self.design), self.memory.initial, list[Told]()
        seen_before: Mapping[str, object] | None = None
        for number, call in enumerate(placed.sequence.calls, 1):
            if isinstance(call.move, Unknown):
                return
            seen_before = seen_before or self.source.predict(call, timed.state, (), timed.state)
            other, before = timed.like(self.spec.machine), (timed.state, pasts)
            steps = move(timed, call)
            pasts = self._advance(steps, pasts)
            if differing(self.source.predict(call, before[0], steps, timed.state), call):
                return
            changes = [self.source.words(n, v) for n, v in call.seen.items() if (_USUAL if n in _USUAL else seen_before).get(n) != v]
            if changes or any(step.before != step.after for step in steps):
                told.append(Told(number=number, text=call.text, changes=", ".join(changes)))
            meant = move(other, call)
            wanted = self.source.predict(call, before[0], meant, other.state)
            wrong = differing(wanted, call)
            if wrong:
                self._note(placed, number, call, told, (steps, before, (timed.state, pasts)), (meant, wanted, wrong))
            seen_before = {**seen_before, **call.seen}

    def _advance(self, steps: Sequence[TimedStep], pasts: Pasts) -> Pasts:
        for step in steps:
            self.rows.add(step.answer.row.name)
            pasts = self.memory.after(step.before, pasts, step.event, step.said, step.effects, step.after)
        return pasts

    def _note(self, placed: Placed, number: int, call: Call, told: list[Told], did: Any, should: Any) -> None:
        meant, wanted, wrong = should
        promises = self._broken(*did)
        ids = tuple(rid for rid in self.spec.requirements if any(rid in p.requirements for p in promises))
        kind = self.kinds.setdefault(ids, Kind())
        kind.promises.update((p.name, p) for p in promises)
        kind.calls += 1
        kind.sequences.add(placed.place)
        size = (any(placed.place in other.sequences for other in self.kinds.values() if other is not kind), len(told))
        if kind.best is None or size < kind.best[0]:
            why = [text for step in meant if (text := _reason(step))]
            target = ", ".join(self.source.words(n, wanted[n]) for n in wrong) + (f" ({'; '.join(why)})" if why else "")
            story = (*(t for t in told if t.number != number), Told(number=number, text=call.text))
            example = Difference(
                requirements=ids, sentences=(), harm="", sequences=0, calls=0, target=target, story=story,
                program=", ".join(self.source.words(n, call.seen[n]) for n in wrong),
                where=f"sequence {placed.sequence.name} ({placed.place})",
            )  # fmt: skip
            kind.best = (size, example)

    def _broken(self, steps: Sequence[TimedStep], before: tuple[Any, Pasts], after: tuple[Any, Pasts]) -> list[Property]:
        """What the design breaks here: in the state it was in, else by the step itself, else in the state it came to.

        The promises that the specification says the design breaks come before any other: those are the causes, others may be consequences.
        """
        pasts, found = before[1], dict[str, Property]()
        for step in steps:
            then = self.memory.after(step.before, pasts, step.event, step.said, step.effects, step.after)
            broken = (p for p, test in self.steps if not test(step.before, pasts, step.event, step.said, step.effects, step.after, then))
            found.update((p.name, p) for p in broken)
            pasts = then
        groups = (self._broken_in(before), list(found.values()), self._broken_in(after))
        known = ([p for p in group if p.name in self.known_faults] for group in groups)
        return next((group for group in (*known, *groups) if group), [])

    def _broken_in(self, item: tuple[Any, Pasts]) -> list[Property]:
        state, pasts = item
        return [p for p, test in self.states if not test(state, pasts, None, Said.IGNORED, (), state, pasts)]

    def _difference(self, ids: tuple[str, ...], kind: Kind) -> Difference:
        assert kind.best is not None
        return attrs.evolve(
            kind.best[1],
            sentences=tuple(kind.promises),
            harm="; ".join(dict.fromkeys(p.harm for p in kind.promises.values() if p.harm)),
            sequences=len(kind.sequences),
            calls=kind.calls,
        )


_USUAL: Mapping[str, object] = {"cancels": [], "returned": None, "threw": None}
"""What a call shows that has no effect besides what lasts."""


def _reason(step: TimedStep) -> str:
    row: Row[Any, Any] = step.answer.row
    return getattr(step.answer, "why", "") or row.because


def _order(spec: Spec, ids: tuple[str, ...]) -> tuple[int, ...]:
    places = {rid: number for number, rid in enumerate(spec.requirements)}
    return tuple(places[rid] for rid in ids) or (len(places),)


__all__ = ["Clash", "Explaining", "Fitting", "Read", "Tally", "differing", "move", "sequences"]
