"""The one entry: which kind of file it is, which design is followed, and what the findings amount to."""

from __future__ import annotations

import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path

from turnproof.checkers.progress import SILENT, Progress
from turnproof.checkers.traces.beliefs import Beliefs
from turnproof.checkers.traces.diagnose import tell
from turnproof.checkers.traces.finding import Kind, Tolerance
from turnproof.checkers.traces.log import LogReplay
from turnproof.checkers.traces.recording import Explaining, Fitting, Read, Tally, differing
from turnproof.checkers.traces.report import Broken, Difference, Divergence, ReplayReport, Told, counted, requirements_verdict
from turnproof.checkers.verdict import Engine, Outcome, Verdict
from turnproof.machines.kernel import Machine
from turnproof.specs.language import AnyMachine, Sometimes, Spec, taken
from turnproof.traces.files import in_order, lines_of
from turnproof.traces.line import LineProblem, TraceError, close_to, decode
from turnproof.traces.source import Source, recognise
from turnproof.traces.source import source as named_source

TOLD = 5
"""Divergences that are told in full; the others are counted."""
WRONG = {Kind.DIVERGED: "that cannot be", Kind.MISSING: "after a gap", Kind.DOUBLED: "doubled or late"}
"""Kinds of lines that violate, in words behind their number."""
TARGET = "target"
"""Another name for the machine itself, as a variant."""


def replay(
    machine_or_spec: AnyMachine | Spec,
    path: Path | Sequence[Path],
    *,
    source: str | None = None,
    variant: str | None = None,
    allow: Collection[str] = (),
    unobserved: Collection[str] = (),
    progress: Progress | None = None,
) -> ReplayReport:
    """Judge a log, or a recording. Several paths are one rotated log.

    ``source``: what wrote the file; None: found out by looking. ``trace`` means trace lines.
    ``variant``: the design to follow. None: the machine itself for trace lines, the best-fitting design for a recording.
    ``allow``: what the log may have suffered (:class:`Tolerance`): ``lost``, ``doubled``, ``reordered`` lines, ``unknown`` events.
    ``unobserved``: events that happen without a line, by class.

    The verdicts: HOLDS if every line (call) agrees; VIOLATED if one does not, if a promise broke, or if nothing matched at all;
    UNDETERMINED if all that could be judged agrees but some could not. Raises :class:`TraceError` for a file that is no log, a malformed
    line, and a name that nobody has.
    """
    started = time.perf_counter()
    spec = _spec(machine_or_spec)
    paths = in_order((path,) if isinstance(path, Path) else tuple(path))
    if not paths:
        raise TraceError("no file is given")
    show = progress or SILENT
    found = _source(spec, paths, source)
    if found is None:
        report = _replay_log(spec, paths, _design(spec, variant, None), _tolerances(allow), _classes(spec, unobserved), show)
    else:
        if allow or unobserved:
            raise TraceError(f"a recording of {found.program} is complete: allow and unobserved are for trace lines")
        report = _replay_recording(spec, paths, found, None if variant is None else _design(spec, variant, found), show)
    return _timed(report, time.perf_counter() - started)


def _timed(report: ReplayReport, seconds: float) -> ReplayReport:
    import attrs

    return attrs.evolve(report, seconds=seconds)


# ── what was asked for ──


def _spec(machine_or_spec: AnyMachine | Spec) -> Spec:
    if isinstance(machine_or_spec, Machine):
        return Spec(machine=machine_or_spec, requirements={}, properties=(Sometimes("some event is taken", taken(), requirements=()),))
    return machine_or_spec


def _source(spec: Spec, paths: Sequence[Path], name: str | None) -> Source | None:
    """The source of the files; None for trace lines."""
    if name in ("trace", "turnproof"):
        return None
    found = named_source(name) if name is not None else recognise(_first_record(paths))
    if found is not None and found.machine != spec.machine.name:
        raise TraceError(f"{paths[0]}: is a recording of {found.program}, which is about {found.machine}, not {spec.machine.name}")
    return found


def _first_record(paths: Sequence[Path]) -> object:
    for path in paths:
        for some in lines_of(path):
            for line in (*some.data, some.torn):
                if line.strip():
                    try:
                        return decode(line)
                    except LineProblem:
                        return None
    return None


def _design(spec: Spec, name: str | None, source: Source | None) -> AnyMachine:
    designs = {spec.machine.name: spec.machine} | {v.machine.name: v.machine for v in spec.variants}
    other = {TARGET: spec.machine} | {n.removeprefix(f"{spec.machine.name}_"): machine for n, machine in designs.items()}
    if source is not None and source.variant in designs:
        other["shipped"] = designs[source.variant]
    known = other | designs
    if name is None:
        return spec.machine
    if name not in known:
        raise TraceError(
            f"{spec.machine.name} has no variant {name!r}{close_to(name, known) or '; it has ' + ', '.join((TARGET, *designs))}"
        )
    return known[name]


def _tolerances(allow: Collection[str]) -> frozenset[Tolerance]:
    known = {t.value: t for t in Tolerance}
    for name in allow:
        if name not in known:
            raise TraceError(f"allow {name!r}: expected {', '.join(known)}{close_to(name, known)}")
    return frozenset(known[name] for name in allow)


def _classes(spec: Spec, names: Collection[str]) -> tuple[type, ...]:
    events = {cls.__name__: cls for cls in spec.machine.events}
    for name in names:
        if name not in events:
            raise TraceError(f"unobserved {name!r}: {spec.machine.name} has no such event{close_to(name, events)}")
    return tuple(events[name] for name in names)


# ── trace lines ──


def _replay_log(
    spec: Spec, paths: Sequence[Path], design: AnyMachine, allow: frozenset[Tolerance], unobserved: tuple[type, ...], progress: Progress
) -> ReplayReport:
    beliefs = Beliefs(spec, design, unobserved)
    read = LogReplay(beliefs, allow=allow)
    read.read(paths, progress)
    if read.suspects:
        again = LogReplay(beliefs, allow=allow, only=read.suspects, ordered=read.shared is None)
        again.read(paths, progress)
        read.add(again)
    told = [f for kind in Kind for f in [f for f in read.findings if f.kind is kind][:TOLD]]
    divergences, explaining = tell(beliefs, paths, told, allow) if told else ((), ())
    broken = tuple(_broken(beliefs, read))
    unknown = dict(read.follower.unknown.most_common())
    return ReplayReport(
        machine=spec.machine.name,
        design=design.name,
        source="trace lines",
        files=tuple(str(path) for path in paths),
        counts=_counts(read),
        verdicts=tuple(_log_verdicts(spec, design, read, broken, allow, divergences)),
        divergences=divergences,
        broken=broken,
        unknown=unknown,
        notes=(*_log_notes(read, beliefs, unobserved), *(f"the variant {name} can do what is told above" for name in explaining)),
        rows=len(design.rows),
        unused_rows=tuple(row.name for row in design.rows if row.name not in beliefs.rows),
    )


def _counts(read: LogReplay) -> Mapping[str, int]:
    live = sum(1 for _ in read.live())
    found = {"lines": read.lines, "instances": read.begun, "lines judged": read.judged + read.late, "not ended at the end": live}
    return found | ({"lines of other machines": sum(read.foreign.values())} if read.foreign else {})


def _broken(beliefs: Beliefs, read: LogReplay) -> Iterator[Broken]:
    for number, promise in enumerate(beliefs.promises):
        found = read.broken.get(number)
        if found is not None:
            yield Broken(
                sentence=promise.name, requirements=promise.requirements, harm=promise.harm,
                times=found.times, place=str(found.place), key=found.key, said=found.said,
            )  # fmt: skip


def _log_verdicts(
    spec: Spec, design: AnyMachine, read: LogReplay, broken: Sequence[Broken], allow: frozenset[Tolerance], told: Sequence[Divergence]
) -> Iterator[Verdict]:
    name, counts = spec.machine.name, read.counts
    check = f"the log follows {design.name}"
    tolerated = ", ".join(f"{count:,} {t.value}" for t, count in read.tolerated.items())
    how = f"{read.judged + read.late:,} of {counted(read.lines, 'line')} followed, {counted(read.begun, 'instance')}"
    how += f"; tolerated: {tolerated}" if tolerated else ""
    wrong = ", ".join(f"{counted(counts[k], 'line')} {WRONG[k]}" for k in WRONG if counts[k])
    unknown = sum(read.follower.unknown.values())
    if wrong:
        ids, first = _first(told)
        yield _verdict(name, check, Outcome.VIOLATED, how, f"{wrong}; {first}" if first else wrong, ids)
    elif counts[Kind.UNDETERMINED]:
        lost = f"{counted(counts[Kind.UNDETERMINED], 'instance')} lost from sight: {Kind.UNDETERMINED.value}"
        yield _verdict(name, check, Outcome.UNDETERMINED, how, lost)
    elif not read.judged:
        yield _verdict(name, check, Outcome.VIOLATED, how, _nothing_matched(read))
    elif unknown and Tolerance.UNKNOWN not in allow:
        why = f"{counted(unknown, 'line')} with an event that the machine does not know"
        yield _verdict(name, check, Outcome.UNDETERMINED, how, why)
    else:
        yield _verdict(name, check, Outcome.HOLDS, how)
    if design is spec.machine:
        for promise in broken:
            where = f"broken first at {promise.place}, {promise.said}" + (f": {promise.harm}" if promise.harm else "")
            yield _verdict(name, promise.sentence, Outcome.VIOLATED, counted(promise.times, "line"), where, promise.requirements)


def _first(told: Sequence[Divergence]) -> tuple[tuple[str, ...], str]:
    """The first line that is wrong, on one line for whoever reads no further: event, why, promise. With the requirements it breaks."""
    if not told:
        return (), ""
    one = told[0]
    promise = f"; it breaks {one.promises[0]}" if one.promises else ""
    return one.requirements, f"the first, {one.place}: {one.said}{': ' if one.objections else ''}{'; '.join(one.objections)}{promise}"


def _nothing_matched(read: LogReplay) -> str:
    if read.follower.unknown:
        name = next(iter(read.follower.unknown))
        return f"nothing matched: no line names an event of the machine, the first is {name!r}{close_to(name, read.follower.coder.events)}"
    if read.foreign:
        return f"nothing matched: every line is about another machine ({', '.join(read.foreign)})"
    return "nothing matched: the log has no line"


def _log_notes(read: LogReplay, beliefs: Beliefs, unobserved: tuple[type, ...]) -> Iterator[str]:
    yield from (f"{place}: the last line is torn and was left out" for place in read.torn)
    if read.shared is not None:
        yield "seq counts the lines of the whole file, so a key names one instance for ever"
    if read.cut_off:
        yield f"{read.cut_off:,} instances began again before they had ended (a restart?)"
    if read.foreign:
        yield "lines of other machines: " + ", ".join(f"{name} ({count:,})" for name, count in read.foreign.most_common())
    if read.follower.extra:
        yield "fields the format does not know: " + ", ".join(f"{name} ({count:,})" for name, count in read.follower.extra.most_common())
    if read.follower.not_compared:
        yield f"only carried, so not compared: {', '.join(sorted(read.follower.not_compared))}"
    if unobserved:
        yield f"unobserved: {', '.join(cls.__name__ for cls in unobserved)}"
    if beliefs.machine is not beliefs.spec.machine:
        yield f"followed is the variant {beliefs.machine.name}: broken promises are its known faults"


# ── recordings ──


def _replay_recording(spec: Spec, paths: Sequence[Path], source: Source, asked: AnyMachine | None, progress: Progress) -> ReplayReport:
    designs = [spec.machine, *(v.machine for v in spec.variants)]
    likely = [d for d in designs if d is spec.machine or d is asked or d.name == source.variant]
    fitting = Fitting(source)
    fitting.run(likely, paths, progress)
    if not fitting.perfect:
        fitting.run([d for d in designs if d not in likely], paths, progress)
    read, best = fitting.read, fitting.best()
    chosen = best if asked is None else next(t for t in fitting.tallies if t.machine is asked)
    explaining = Explaining(source, spec, best.machine)
    differences = explaining.run(paths, progress)
    return ReplayReport(
        machine=spec.machine.name,
        design=chosen.machine.name,
        source=f"recording of {source.program}",
        files=tuple(str(path) for path in paths),
        counts={"sequences": read.sequences, "calls": read.calls, "calls judged": read.calls - read.unjudged - best.unjudged},
        verdicts=(
            _recording_verdict(spec, source, read, chosen, best, differences),
            *(() if asked else requirements_verdict(spec.machine.name, chosen.machine.name, differences, counted(read.calls, "call"))),
        ),
        fits=fitting.fits(),
        differences=differences,
        divergences=tuple(_clashes(source, chosen)),
        unknown=dict(read.unknown.most_common()),
        notes=tuple(_recording_notes(read, source)),
        rows=len(best.machine.rows),
        unused_rows=tuple(row.name for row in best.machine.rows if row.name not in explaining.rows),
        unused_calls=tuple(name for name in source.calls if not read.made[name]),
    )


def _recording_verdict(spec: Spec, source: Source, read: Read, chosen: Tally, best: Tally, differences: Sequence[Difference]) -> Verdict:
    name, design = spec.machine.name, chosen.machine.name
    check = f"the program behaves like {design}"
    how = f"{chosen.calls:,} of {read.calls:,} calls in {counted(read.sequences, 'sequence')} agree on {', '.join(source.compared)}"
    nothing = _nothing_compared(source, read)
    if nothing:
        return _verdict(name, check, Outcome.VIOLATED, how, f"nothing matched: {nothing}")
    if chosen.clashed:
        hint = f"; {best.machine.name} fits best" if best is not chosen else ""
        first = next(_clashes(source, chosen))
        first_ = f"; the first, {first.place}: {first.said}, but {'; '.join(first.objections)}"
        return _verdict(name, check, Outcome.VIOLATED, how, f"{counted(chosen.clashed, 'sequence')} with a difference{hint}{first_}")
    unjudged = read.unjudged + chosen.unjudged
    if unjudged:
        return _verdict(
            name, check, Outcome.UNDETERMINED, how, f"not judged: {counted(unjudged, 'call')} not known, or after one that is not"
        )
    if read.missing:
        return _verdict(name, check, Outcome.UNDETERMINED, how, f"not every call tells {', '.join(read.missing)}")
    return _verdict(name, check, Outcome.HOLDS, how)


def _nothing_compared(source: Source, read: Read) -> str:
    """Why a recording says nothing at all; empty if it says something."""
    if not read.calls:
        return "no sequence has a call"
    if read.calls == read.unjudged:
        return f"no call is known: {next(iter(read.unknown))}"
    silent = all(read.missing[name] == read.calls for name in source.compared)
    return f"no call tells any of {', '.join(source.compared)}" if silent else ""


def _clashes(source: Source, tally: Tally) -> Iterator[Divergence]:
    for clash in tally.clashes:
        call = clash.sequence.calls[clash.number]
        wrong = differing(clash.predicted, call)
        yield Divergence(
            place=f"{clash.place}: sequence {clash.sequence.name}, call {clash.number + 1}",
            said=f"{call.text}: {', '.join(source.words(n, call.seen[n]) for n in wrong)}",
            objections=(f"{tally.machine.name}: {', '.join(source.words(n, clash.predicted[n]) for n in wrong)}",),
            story=tuple(Told(number=n, text=c.text) for n, c in enumerate(clash.sequence.calls[: clash.number + 1], 1)),
        )


def _recording_notes(read: Read, source: Source) -> Iterator[str]:
    yield from (f"{place}: the last line is torn and was left out" for place in read.torn)
    yield from (f"{note} ({count:,} times)" for note, count in read.notes.most_common())
    if read.extra:
        yield "fields the source does not know: " + ", ".join(f"{name} ({count:,})" for name, count in read.extra.most_common())
    if read.missing:
        yield "not told, so not compared: " + ", ".join(f"{name} ({count:,} calls)" for name, count in read.missing.most_common())


def _verdict(machine: str, check: str, outcome: Outcome, how: str, detail: str = "", requirements: tuple[str, ...] = ()) -> Verdict:
    return Verdict(machine=machine, check=check, engine=Engine.TRACES, outcome=outcome, how=how, detail=detail, requirements=requirements)
