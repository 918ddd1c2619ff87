"""What a walk over a system shows of each property: verdicts, shortest counterexamples, and why something stays open."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import attrs

from turnproof.checkers.network.play import is_fair, keeps
from turnproof.checkers.network.questions import ANTECEDENT, BROKEN, REACHED, antecedents
from turnproof.checkers.network.routes import routes
from turnproof.checkers.network.run import Fault, Occurrence
from turnproof.checkers.network.sequence import sequence
from turnproof.checkers.network.story import code, tell
from turnproof.checkers.network.vacuity import unused
from turnproof.checkers.network.walk import INTERRUPT, Flaw, Trace, replay
from turnproof.checkers.progress import SILENT, Progress
from turnproof.checkers.verdict import Engine, Outcome, Story, Verdict
from turnproof.machines.kernel import show
from turnproof.specs.language import Always, EventuallyAlways, LeadsTo, Property, Sometimes, Step
from turnproof.specs.system import NoDeadlock, SystemSpec, Within

if TYPE_CHECKING:
    from turnproof.checkers.network.explicit import NetworkGraph
    from turnproof.checkers.network.labelled import Judgement

BYTES_PER_EDGE = 50
"""Of a step while promises with a time are judged: its ends, its beginning, what holds of it, and the longest way (measured)."""
BYTES_PER_STEP = 24
"""Of a step while promises about the future are judged: where it leads, what holds of it, and the work on components (measured)."""


def check(spec: SystemSpec, graph: NetworkGraph, *, progress: Progress | None = None) -> list[Verdict]:
    """One verdict for each fault a system may have, each property, each kind of thing that must be used, and the requirements."""
    said = SILENT if progress is None else progress
    verdicts = [_faultless(graph, fault) for fault in Fault]
    verdicts += _judged_one_by_one(graph, said)
    # What is never used without some power of the environment is used with it; that is asked of the whole system alone.
    kinds = () if graph.off else unused(graph.system, graph.triggers, graph.walk)
    verdicts += [_used(graph, what, missing) for what, missing in kinds]
    return [*verdicts, _requirements(spec)]


def _judged_one_by_one(graph: NetworkGraph, progress: Progress) -> list[Verdict]:
    """A verdict for each property. Ctrl-C leaves those open that are not judged yet."""
    verdicts: list[Verdict] = []
    try:
        for number, prop in enumerate(graph.properties):
            progress.say("properties judged", number, len(graph.properties))
            verdicts.append(judge_property(graph, prop))
        return _with_routes(graph, verdicts, progress)
    except KeyboardInterrupt:
        left = graph.properties[len(verdicts) :]
        why = f"not judged, for {INTERRUPT} came before"
        made = [attrs.evolve(_verdict(graph, p.name, Outcome.UNDETERMINED, why), requirements=p.requirements) for p in left]
        return [*verdicts, *made]


def _with_routes(graph: NetworkGraph, verdicts: list[Verdict], progress: Progress) -> list[Verdict]:
    broken = {prop.name: prop for prop in graph.properties if (BROKEN, prop.name, 0) in graph.walk.hits}
    found = routes(graph, list(broken.values()), progress)
    told = {name: tuple(_told(graph, broken[name], trace, 0).story for trace in traces) for name, traces in found.items()}
    return [attrs.evolve(verdict, others=told.get(verdict.check, ())) for verdict in verdicts]


def _verdict(graph: NetworkGraph, name: str, outcome: Outcome, detail: str = "", story: Story | None = None) -> Verdict:
    if outcome is Outcome.HOLDS and not (graph.walk.complete and not graph.walk.flaws):
        outcome, detail = Outcome.UNDETERMINED, cut_short(graph)
    return Verdict(
        machine=graph.system.name, check=name, engine=Engine.EXPLICIT, outcome=outcome, how=graph.bounds(), detail=detail, story=story
    )


def cut_short(graph: NetworkGraph) -> str:
    """Why a walk does not show that something holds."""
    walk = graph.walk
    if not walk.complete:
        return f"{walk.why} ended the search at {walk.states:,} states, {walk.depth} steps deep"
    return "steps were not followed: " + "; ".join(flaw.sentence for flaw in walk.flaws.values())


def _faultless(graph: NetworkGraph, fault: Fault) -> Verdict:
    flaw = graph.walk.flaws.get(fault)
    if flaw is not None:
        return _verdict(graph, fault.value, Outcome.VIOLATED, flaw.sentence, _flaw_story(graph, flaw))
    # One fault cuts the walk short for the others as well, but does not make their own question any less open.
    return _verdict(graph, fault.value, Outcome.HOLDS)


def _flaw_story(graph: NetworkGraph, flaw: Flaw) -> Story:
    """The way to the step that is not allowed; that step itself has no end to show, so the claim performs it."""
    *before, last = flaw.trace
    performed = replay(graph.runner, tuple(before))
    broken = f"then {last.trigger}: {flaw.sentence}"
    return tell(graph.runner, graph.spec, performed, broken, f"run.send({code(last.trigger, last.event)})", last=last)


def judge_property(graph: NetworkGraph, prop: Property) -> Verdict:
    """The verdict on one property."""
    started = time.perf_counter()
    if isinstance(prop, Within) and graph.walk.complete and not without_edges(graph, prop):
        return attrs.evolve(_in_time(graph, prop), requirements=prop.requirements, seconds=time.perf_counter() - started)
    open_because = without_edges(graph, prop) if isinstance(prop, LeadsTo | EventuallyAlways | Within) else ""
    outcome, detail, story = (Outcome.UNDETERMINED, open_because, None) if open_because else _judged(graph, prop)
    made = _verdict(graph, prop.name, outcome, detail, story)
    return attrs.evolve(made, requirements=prop.requirements, seconds=time.perf_counter() - started)


def _judged(graph: NetworkGraph, prop: Property) -> tuple[Outcome, str, Story | None]:
    if isinstance(prop, Sometimes):
        if (REACHED, prop.name, 0) in graph.walk.hits:
            return Outcome.HOLDS, "", None
        if not graph.walk.complete:
            return Outcome.UNDETERMINED, f"not reached so far; {cut_short(graph)}", None
        return *_never(graph, "never reached: no run of the system comes there"), None
    found = violation(graph, prop)
    if found is not None:
        return Outcome.VIOLATED, f"broken in {steps(found.story.length)}", found.story
    if isinstance(prop, Always | Step | NoDeadlock):
        vacuous = _vacuous(graph, prop)
        return (*_never(graph, vacuous), None) if vacuous and graph.walk.complete else (Outcome.HOLDS, "", None)
    if isinstance(prop, Within):
        return Outcome.UNDETERMINED, cut_short(graph), None
    if isinstance(prop, LeadsTo | EventuallyAlways):
        if not graph.walk.complete:
            return Outcome.UNDETERMINED, cut_short(graph), None
        judged = judgement(graph, prop)
        if judged.vacuous:
            return *_never(graph, judged.vacuous), None
        if judged.unknown:
            return Outcome.UNDETERMINED, "a run leaves the bounds with its promise open: what follows is not known", None
    return Outcome.HOLDS, "", None


def _never(graph: NetworkGraph, why: str) -> tuple[Outcome, str]:
    """What never comes up is a failure of the specification, unless a power of the environment is off: then it is not asked."""
    if not graph.off:
        return Outcome.VIOLATED, why
    return Outcome.UNDETERMINED, f"{why}; but without {', '.join(sorted(graph.off))} it need not"


def _in_time(graph: NetworkGraph, prop: Within) -> Verdict:
    """The verdict on a promise with a time. The bound and its longest way stand in ``how``; a broken one is told as a story."""
    from turnproof.checkers.bounds import TooMany
    from turnproof.checkers.network.within import judge_within, seconds

    try:
        found = judge_within(graph.labels, prop, graph.system, graph.triggers)
    except TooMany as reason:
        return _verdict(graph, prop.name, Outcome.UNDETERMINED, str(reason))
    bound = found.longest
    if not bound.beginnings:
        return _verdict(graph, prop.name, *_never(graph, f"vacuous: `{show(prop.first)}` is nowhere reached without `{show(prop.then)}`"))
    takes, over = seconds(bound.milliseconds), f"{bound.beginnings:,} beginning{'' if bound.beginnings == 1 else 's'}"
    if bound.bounded and bound.milliseconds <= prop.milliseconds:
        how = f"at most {takes} (computed from the timers over {over}; the longest: {found.words})"
        return attrs.evolve(_verdict(graph, prop.name, Outcome.HOLDS), how=how)
    most = seconds(2 * prop.milliseconds)
    why = f"it may take {takes}: {found.words}" if bound.bounded else f"no timer bounds it, or none below {most}: {found.words}"
    trace = (*graph.labels.way_to(bound.start), *(graph.labels.choice(edge) for edge in found.edges))
    claim = f"assert run.in_time({prop.name!r})"
    story = tell(graph.runner, graph.spec, replay(graph.runner, trace), sentence(prop), claim)
    return _verdict(graph, prop.name, Outcome.VIOLATED, f"promised: {seconds(prop.milliseconds)}; {why}", story)


def without_edges(graph: NetworkGraph, prop: Property) -> str:
    """Why this promise about the future cannot be judged on this graph; empty if it can."""
    if graph.symmetry is not None:
        return "what follows for ever is not kept by representatives: run without --symmetry"
    wanted = graph.walk.transitions * (BYTES_PER_EDGE if isinstance(prop, Within) else BYTES_PER_STEP)
    if graph.walk.complete and graph.memory is not None and graph.walk.memory + wanted > graph.memory:
        return f"the memory limit of {graph.memory / 1e6:,.6g} MB is too low: {graph.walk.transitions:,} steps take {wanted / 1e6:,.3g} MB"
    return ""


def steps(number: int) -> str:
    """``1 step``, ``3 steps``."""
    return f"{number} step{'' if number == 1 else 's'}"


def _vacuous(graph: NetworkGraph, prop: Always | Step | NoDeadlock) -> str:
    if isinstance(prop, NoDeadlock):
        return ""
    never = [a for n, a in enumerate(antecedents(prop)) if (ANTECEDENT, prop.name, n) not in graph.walk.hits]
    return "; ".join(f"vacuous: the antecedent `{show(a)}` is never reached" for a in never)


@attrs.frozen(eq=False)
class Counterexample:
    """A shortest run that breaks a property, as it was performed through ``machine.step``."""

    steps: tuple[Occurrence, ...]
    loop_from: int
    """Number of the first step that is repeated for ever; one more than there are: nothing happens any more; 0: the run is finite."""
    story: Story

    def diagram(self, graph: NetworkGraph) -> str:
        """As a Mermaid sequence diagram, one column a part."""
        return sequence(graph.runner, list(self.steps), self.story.broken, loop_from=self.loop_from)


def violation(graph: NetworkGraph, prop: Property) -> Counterexample | None:
    """The shortest counterexample, replayed through ``machine.step``; None if there is none."""
    if isinstance(prop, LeadsTo | EventuallyAlways):
        return _lasso(graph, prop) if graph.walk.complete else None
    trace = graph.walk.hits.get((BROKEN, prop.name, 0))
    return None if trace is None else _told(graph, prop, trace(), 0)


def judgement(graph: NetworkGraph, prop: LeadsTo | EventuallyAlways) -> Judgement:
    """What liveness found of a promise about the future; decided once for each graph."""
    if prop.name not in graph.judged:
        graph.judged[prop.name] = _judgement(graph, prop)
    return graph.judged[prop.name]


def _judgement(graph: NetworkGraph, prop: LeadsTo | EventuallyAlways) -> Judgement:
    if graph.promised is None:
        from turnproof.checkers.network.labelled import judge

        return judge(graph.labels, prop)
    from turnproof.checkers.network.promises import judge as judge_promise

    return judge_promise(graph.promised, prop)


def _lasso(graph: NetworkGraph, prop: LeadsTo | EventuallyAlways) -> Counterexample | None:
    judged = judgement(graph, prop)
    return None if judged.lasso is None else _told(graph, prop, judged.choices, len(judged.lasso.prefix) + 1)


def _told(graph: NetworkGraph, prop: Property, trace: Trace, loop_from: int) -> Counterexample:
    performed = replay(graph.runner, trace)
    worlds = [graph.runner.initial(), *(step.after for step in performed)]
    if keeps(graph.runner, prop, graph.triggers, worlds, performed, loop_from):
        raise RuntimeError(f"internal error: a counterexample to {prop.name!r} keeps it when it is replayed")
    if 0 < loop_from <= len(performed) and worlds[loop_from - 1] != worlds[-1]:
        raise RuntimeError(f"internal error: the loop of a counterexample to {prop.name!r} does not close when it is replayed")
    if isinstance(prop, LeadsTo | EventuallyAlways) and not is_fair(graph.runner, prop.fairness, worlds, performed, loop_from):
        raise RuntimeError(f"internal error: the loop of a counterexample to {prop.name!r} is not fair when it is replayed")
    more = f", loop_from={loop_from}" if loop_from else ""
    claim = f"assert run.keeps({prop.name!r}{more})"
    story = tell(graph.runner, graph.spec, performed, sentence(prop), claim, loop_from=loop_from)
    return Counterexample(tuple(performed), loop_from, story)


def sentence(prop: Property) -> str:
    """``a wait ends (R-1): the user waits for ever``."""
    ids = f" ({', '.join(prop.requirements)})" if prop.requirements else ""
    return f"{prop.name}{ids}" + (f": {prop.harm}" if prop.harm else "")


def _used(graph: NetworkGraph, what: str, missing: tuple[str, ...]) -> Verdict:
    if missing and graph.walk.complete:
        return _verdict(graph, what, Outcome.VIOLATED, "; ".join(missing))
    if missing:
        return _verdict(graph, what, Outcome.UNDETERMINED, f"not yet: {'; '.join(missing)}; {cut_short(graph)}")
    return _verdict(graph, what, Outcome.HOLDS)


def _requirements(spec: SystemSpec) -> Verdict:
    missing = spec.undischarged()
    listed = "; ".join(f"{rid} ({spec.requirements[rid]})" for rid in missing)
    return Verdict(
        machine=spec.system.name,
        check="every requirement has a property, a named test or a specification that discharges it",
        engine=Engine.TABLE,
        outcome=Outcome.VIOLATED if missing else Outcome.HOLDS,
        how=f"{len(spec.requirements)} requirements, {len(spec.properties)} properties",
        requirements=missing,
        detail=f"nothing discharges {listed}" if missing else "",
    )


__all__ = ["Counterexample", "check", "cut_short", "judge_property", "judgement", "sentence", "steps", "violation", "without_edges"]
