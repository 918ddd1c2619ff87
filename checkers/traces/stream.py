"""Follows the stream of another program: what came and what was shown is given, what happened unseen is searched for.

A *belief* is a state the machine may be in, with its timers on the stream's own clock, and what it must still show. A moment is explained
by as few unseen steps as do it; beliefs that explain none are given up. Where none is left, the design and the program part: that is the
first divergence. The design that follows most is what the program behaves like. The steps by which it does, told beside the promises of
the specification, say what the program does that it must not.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from enum import Enum
from pathlib import Path
from typing import Any

import attrs

from turnproof.checkers.predicates import Memory, Pasts, Predicates, StepTest
from turnproof.checkers.progress import SILENT, Progress
from turnproof.checkers.traces.report import Difference, Divergence, Fit, ReplayReport, Told, counted, requirements_verdict
from turnproof.checkers.verdict import Engine, Outcome, Verdict
from turnproof.machines.kernel import Ignored, StartTimer, StopTimer, Taken
from turnproof.specs.language import Always, AnyMachine, Property, Said, Spec, Step
from turnproof.traces.files import lines_of
from turnproof.traces.line import LineProblem, TraceError, column_of, decode
from turnproof.traces.stream import Came, Moment, Session, Shown, StreamRead, StreamSource

UNSEEN = 8
"""Most unseen steps between two moments."""
SLACK_MS = 25
"""How much sooner than its time a timer may seem to fire: clocks are read before lines are written."""
TOLD = 12
"""Moments of a story that are told."""
DIVERGENCES = 5


@attrs.frozen(eq=False)
class Passed:
    """A step that the design took, and the one before it."""

    moment: int
    before: Any
    pasts: Pasts
    event: Any
    said: Said
    row: Any
    effects: tuple[Any, ...]
    after: Any
    pasts_after: Pasts
    earlier: Passed | None


@attrs.frozen
class Belief:
    """Where the machine may be."""

    state: Any
    pasts: Pasts
    due: tuple[tuple[Enum, int], ...] = ()
    """Timers that run, and when they fire on the stream's clock."""
    pending: tuple[str, ...] = ()
    """What it must show next."""
    trail: Passed | None = attrs.field(default=None, eq=False)


@attrs.frozen
class Parted:
    """The first moment a design cannot explain."""

    session: Session
    number: int
    beliefs: tuple[Belief, ...]


class Follower:
    """One design, following sessions of one source."""

    def __init__(self, source: StreamSource, spec: Spec, design: AnyMachine) -> None:
        self.source, self.spec, self.design = source, spec, design
        self.memory = Memory(design, spec)
        self.durations = {rule.timer: rule.duration.milliseconds for rule in design.timers}
        self.expiries = {rule.timer: rule.expires() for rule in design.timers}
        self.sessions = self.moments = 0
        self.parted: list[Parted] = []
        self.ended: list[tuple[Session, Belief]] = []
        self.open: list[str] = []
        """Sessions whose stream ends in the middle of something, and of what."""

    def follow(self, session: Session) -> None:
        """Follow one session from its beginning."""
        beliefs: tuple[Belief, ...] = (Belief(self.source.initial(self.design.initial), self.memory.initial),)
        last_ms: int | None = None
        for number, moment in enumerate(session.moments):
            found = self.explain(beliefs, moment, number, last_ms)
            if not found:
                self.parted.append(Parted(session, number, beliefs))
                self.ended.append((session, beliefs[0]))
                return
            beliefs, last_ms = found, moment.at_ms if moment.at_ms is not None else last_ms
            self.moments += 1
        best = min(beliefs, key=lambda b: (len(b.pending), not self.source.is_over(b.state)))
        self.sessions += 1
        self.ended.append((session, best))
        if best.pending:
            self.open.append(f"session {session.name}: the stream ends before this is shown: {', '.join(best.pending)}")
        elif not self.source.is_over(best.state):
            phase = getattr(best.state, self.design.phase).value
            self.open.append(f"session {session.name}: the stream ends in the middle of a run ({phase})")

    # ── one moment ──

    def explain(self, beliefs: Iterable[Belief], moment: Moment, number: int, last_ms: int | None) -> tuple[Belief, ...]:
        """The beliefs after a moment, by as few unseen steps as explain it; empty if nothing does."""
        beliefs = tuple(beliefs)
        for front in self.closure(beliefs, moment, number, last_ms):
            found = [b for belief in front for b in self.meets(belief, moment, number)]
            if found:
                return _distinct(found)
        if isinstance(moment, Came) and moment.late:
            return _distinct(b for belief in beliefs for b in self.meets(belief, moment, number, ignored=True))
        return ()

    def closure(self, beliefs: Iterable[Belief], moment: Moment, number: int, last_ms: int | None) -> Iterator[tuple[Belief, ...]]:
        """The beliefs after no unseen step, after one, after two, ... What shows something is not stepped further."""
        front, seen = tuple(beliefs), set(beliefs)
        for _ in range(UNSEEN + 1):
            if not front:
                return
            yield front
            steps = (self.step(b, event, number, last_ms) for b in front if not b.pending for event in self.unseen(b, moment))
            front = _distinct(b for b in steps if b is not None and b not in seen)
            seen.update(front)

    def unseen(self, belief: Belief, moment: Moment) -> Iterator[Any]:
        """What may have happened, and timers whose time has come."""
        yield from self.source.unseen(belief.state, moment)
        for timer, due in belief.due:
            if moment.at_ms is None or due <= moment.at_ms + SLACK_MS:
                yield self.expiries[timer]

    def meets(self, belief: Belief, moment: Moment, number: int, *, ignored: bool = False) -> Iterator[Belief]:
        """The belief after the moment itself, if it agrees."""
        if isinstance(moment, Shown):
            if belief.pending[:1] == (moment.word,):
                yield attrs.evolve(belief, pending=belief.pending[1:])
            return
        after = self.step(belief, moment.event(belief.state), number, moment.at_ms, ignored=ignored)
        if after is not None:
            yield after

    def step(self, belief: Belief, event: Any, number: int, at_ms: int | None, *, ignored: bool = False) -> Belief | None:
        """The belief after an event that is taken, or ignored where that is enough."""
        answer = self.design.step(belief.state, event)
        if not isinstance(answer, Taken):
            return belief if ignored and isinstance(answer, Ignored) else None
        pasts = self.memory.after(belief.state, belief.pasts, event, Said.TAKEN, answer.effects, answer.state)
        words = tuple(word for effect in answer.effects if (word := self.source.shows(effect)) is not None)
        passed = Passed(
            number, belief.state, belief.pasts, event, Said.TAKEN, answer.row, answer.effects, answer.state, pasts, belief.trail
        )
        return Belief(answer.state, pasts, self.timers(belief.due, event, answer.effects, at_ms or 0), (*belief.pending, *words), passed)

    def timers(self, due: tuple[tuple[Enum, int], ...], event: Any, effects: Sequence[Any], at_ms: int) -> tuple[tuple[Enum, int], ...]:
        """The timers that run after a step."""
        running = {timer: when for timer, when in due if self.expiries[timer] != event}
        for effect in effects:
            if isinstance(effect, StartTimer):
                running[effect.timer] = max(at_ms + self.durations[effect.timer], effect.not_before_ms)
            elif isinstance(effect, StopTimer):
                running.pop(effect.timer, None)
        return tuple(sorted(running.items(), key=lambda item: str(item[0].value)))

    def could_show(self, parted: Parted) -> tuple[str, ...]:
        """What the design might have shown next instead."""
        moment = parted.session.moments[parted.number]
        fronts = self.closure(parted.beliefs, moment, parted.number, moment.at_ms)
        return tuple(dict.fromkeys(belief.pending[0] for front in fronts for belief in front if belief.pending))


def _distinct(beliefs: Iterable[Belief]) -> tuple[Belief, ...]:
    return tuple(dict.fromkeys(beliefs))


# ── what a design's steps break ──


@attrs.define
class Kind:
    """What was broken together, by requirement."""

    promises: dict[str, Property] = attrs.field(factory=dict)
    times: int = 0
    sessions: set[str] = attrs.field(factory=set)
    example: Difference | None = None


class Explaining:
    """The steps by which a design follows the stream, beside the promises of the specification. ``rows`` are those it used."""

    def __init__(self, follower: Follower) -> None:
        self.follower, self.spec = follower, follower.spec
        predicates = Predicates(follower.design, self.spec.histories)
        self.steps: list[tuple[Property, StepTest]] = [(p, predicates.test(p.holds)) for p in self.spec.properties if isinstance(p, Step)]
        self.states: list[tuple[Property, StepTest]] = [
            (p, predicates.test(p.holds)) for p in self.spec.properties if isinstance(p, Always)
        ]
        self.rows: set[str] = set()
        self.known = frozenset(name for v in self.spec.variants if v.machine is follower.design for name in v.violates)

    def run(self) -> tuple[Difference, ...]:
        """What the program does and the target forbids, by requirement.

        Only promises that the specification says the design breaks: those were seen. The design may break others by what no stream shows.
        """
        kinds: dict[tuple[str, ...], Kind] = {}
        for session, belief in self.follower.ended:
            for passed in reversed(list(_back(belief.trail))):
                self.rows.add(passed.row.name)
                promises = [p for p in self.broken(passed) if p.name in self.known]
                if promises:
                    ids = tuple(rid for rid in self.spec.requirements if any(rid in p.requirements for p in promises))
                    kind = kinds.setdefault(ids, Kind())
                    kind.promises.update((p.name, p) for p in promises)
                    kind.times += 1
                    kind.sessions.add(session.name)
                    kind.example = kind.example or self.example(session, passed)
        return tuple(_difference(ids, kind) for ids, kind in kinds.items())

    def broken(self, passed: Passed) -> list[Property]:
        """The promises that a step breaks, or the state it comes to where the one before kept it."""
        whole = (passed.before, passed.pasts, passed.event, passed.said, passed.effects, passed.after, passed.pasts_after)
        found = [p for p, test in self.steps if not test(*whole)]
        for p, test in self.states:
            kept = [
                test(s, pasts, None, Said.IGNORED, (), s, pasts)
                for s, pasts in ((passed.before, passed.pasts), (passed.after, passed.pasts_after))
            ]
            found += [p] if kept == [True, False] else []
        return found

    def example(self, session: Session, passed: Passed) -> Difference:
        """What happened there, and what the target does instead."""
        told = tuple(Told(number=n, text=f"{m.place}: {m.text}") for n, m in enumerate(session.moments[: passed.moment + 1], 1))
        answer = self.spec.machine.step(passed.before, passed.event)
        target = self.words(passed.before, answer.state, answer.effects) if isinstance(answer, Taken) else f"does nothing ({answer.why})"
        reason = answer.row.because
        return Difference(
            requirements=(), sentences=(), harm="", sequences=0, calls=0, where=f"session {session.name}", story=told[-TOLD:],
            program=self.words(passed.before, passed.after, passed.effects), target=target + (f" ({reason})" if reason else ""),
        )  # fmt: skip

    def words(self, before: Any, after: Any, effects: Sequence[Any]) -> str:
        """A step as its phase and what it shows."""
        phase = self.spec.machine.phase
        shown = [word for effect in effects if (word := self.follower.source.shows(effect)) is not None]
        return f"{getattr(before, phase).value} -> {getattr(after, phase).value}, shows {', then '.join(shown) or 'nothing'}"


def _back(passed: Passed | None) -> Iterator[Passed]:
    while passed is not None:
        yield passed
        passed = passed.earlier


def _difference(ids: tuple[str, ...], kind: Kind) -> Difference:
    assert kind.example is not None
    harm = "; ".join(dict.fromkeys(p.harm for p in kind.promises.values() if p.harm))
    return attrs.evolve(
        kind.example, requirements=ids, sentences=tuple(kind.promises), harm=harm, sequences=len(kind.sessions), calls=kind.times
    )


# ── the whole ──


def replay_stream(
    spec: Spec, paths: Sequence[Path], source: StreamSource, asked: AnyMachine | None, progress: Progress = SILENT
) -> ReplayReport:
    """Follow a stream with every design of a specification. ``asked``: the design to judge by; None: the one that follows most."""
    torn: list[str] = []
    read = source.sessions(_records(paths, torn))
    designs = [spec.machine, *(v.machine for v in spec.variants)]
    followers = []
    for number, design in enumerate(designs):
        progress.say("designs that follow the stream", number, len(designs))
        followers.append(follower := Follower(source, spec, design))
        for session in read.sessions:
            follower.follow(session)
    best = max(followers, key=lambda f: (f.sessions, f.moments, f.design.name == source.variant))
    chosen = best if asked is None else next(f for f in followers if f.design is asked)
    explaining = Explaining(chosen)
    differences = explaining.run()
    moments = sum(len(s.moments) for s in read.sessions)
    equal = [f.design.name for f in followers if f is not chosen and (f.sessions, f.moments) == (chosen.sessions, chosen.moments)]
    return ReplayReport(
        machine=spec.machine.name,
        design=chosen.design.name,
        source=f"recording of {source.program}",
        files=tuple(str(path) for path in paths),
        counts={"lines": read.lines, "sessions": len(read.sessions), "moments": moments, "lines passed over": sum(read.passed.values())},
        verdicts=(
            _verdict(spec, chosen, best, read, moments, differences),
            *(() if asked else requirements_verdict(spec.machine.name, chosen.design.name, differences, counted(moments, "moment"))),
        ),
        fits=tuple(sorted((Fit(design=f.design.name, sequences=f.sessions, calls=f.moments) for f in followers), key=lambda f: -f.calls)),
        differences=differences,
        divergences=tuple(_divergence(chosen, parted) for parted in chosen.parted[:DIVERGENCES]),
        unknown=dict(read.unknown.most_common()),
        notes=tuple(_notes(read, torn, chosen, equal)),
        rows=len(chosen.design.rows),
        unused_rows=tuple(row.name for row in chosen.design.rows if row.name not in explaining.rows),
        units=("session", "moment"),
    )


def _records(paths: Sequence[Path], torn: list[str]) -> Iterator[tuple[str, object]]:
    for path in paths:
        for some in lines_of(path):
            if some.torn:
                torn.append(f"{path}:{some.first}")
            for number, line in enumerate(some.data, some.first):
                if line.strip():
                    try:
                        record = decode(line)
                        if not isinstance(record, dict) or not isinstance(record.get("type"), str):
                            raise LineProblem("is no event, expected an object with type and properties", field="type")
                    except LineProblem as problem:
                        raise TraceError(f"{path}:{number}:{problem.at or column_of(line, problem.field)}: {problem}") from None
                    yield f"{path.name}:{number}", record


def _verdict(spec: Spec, chosen: Follower, best: Follower, read: StreamRead, moments: int, differences: Sequence[Difference]) -> Verdict:
    ids = list(dict.fromkeys(rid for difference in differences for rid in difference.requirements))
    detail, outcome = "", Outcome.HOLDS
    if not moments:
        outcome, detail = Outcome.VIOLATED, "nothing matched: no line says anything about a session"
    elif chosen.parted:
        hint = f"; {best.design.name} follows best" if best is not chosen else ""
        first = _divergence(chosen, chosen.parted[0])
        told = f"the first, {first.place}: {first.said}, but {'; '.join(first.objections)}"
        outcome, detail = Outcome.VIOLATED, f"{counted(len(chosen.parted), 'session')} with a moment it cannot explain{hint}; {told}"
    elif ids and chosen.design is spec.machine:
        outcome, detail = Outcome.VIOLATED, f"it breaks {', '.join(ids)}, see above"
    return Verdict(
        machine=spec.machine.name,
        check=f"the program behaves like {chosen.design.name}",
        engine=Engine.TRACES,
        outcome=outcome,
        how=f"{chosen.moments:,} of {counted(moments, 'moment')} in {counted(len(read.sessions), 'session')} followed",
        detail=detail,
        requirements=tuple(ids) if outcome is Outcome.VIOLATED else (),
    )


def _divergence(follower: Follower, parted: Parted) -> Divergence:
    moment = parted.session.moments[parted.number]
    phase = follower.design.phase
    could = follower.could_show(parted)
    told = parted.session.moments[: parted.number + 1][-TOLD:]
    instead = f"{follower.design.name} shows {' or '.join(could) or 'nothing'} there"
    states = (f"{getattr(b.state, phase).value}" + (f", about to show {b.pending[0]}" if b.pending else "") for b in parted.beliefs)
    return Divergence(
        place=f"{moment.place}: session {parted.session.name}",
        said=moment.text,
        objections=(instead if isinstance(moment, Shown) else "no state takes it",),
        states=tuple(dict.fromkeys(states)),
        possible=could,
        story=tuple(Told(number=n, text=f"{m.place}: {m.text}") for n, m in enumerate(told, 1)),
    )  # fmt: skip


def _notes(read: StreamRead, torn: Sequence[str], chosen: Follower, equal: Sequence[str]) -> Iterator[str]:
    yield from (f"{place}: the last line is torn and was left out" for place in torn)
    if equal:
        yield f"nothing here tells it from {', '.join(equal)}"
    if read.passed:
        yield "lines that say nothing about the machine: " + ", ".join(f"{kind} ({count:,})" for kind, count in read.passed.most_common())
    if read.extra:
        yield "fields the source does not know: " + ", ".join(f"{name} ({count:,})" for name, count in read.extra.most_common())
    yield from (f"{note} ({count:,} lines)" for note, count in read.notes.most_common())
    yield from chosen.open


__all__ = ["Explaining", "Follower", "replay_stream"]
