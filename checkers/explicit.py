"""The explicit engine: everything the whole graph of one machine can answer.

:func:`check` judges a specification's properties, the discipline of timers, the table itself and the coverage of requirements, and
counts what cannot fail as a failure. :func:`check_variants` makes sure that each design known to be wrong fails as it should.
"""

from __future__ import annotations

import difflib
import time
from collections.abc import Iterator

import attrs

from turnproof.checkers.discipline import check_discipline
from turnproof.checkers.graph import Graph, LimitReached, explore
from turnproof.checkers.judge import Judge, Violation, events
from turnproof.checkers.progress import SILENT, Progress
from turnproof.checkers.table import check_table
from turnproof.checkers.vacuity import why_vacuous
from turnproof.checkers.verdict import Engine, Outcome, Story, Verdict
from turnproof.machines.kernel import TableError
from turnproof.specs.language import EventuallyAlways, LeadsTo, Property, Sometimes, Spec, Variant


def check(spec: Spec, graph: Graph, *, progress: Progress | None = None) -> list[Verdict]:
    """One verdict a property and one for each thing every machine owes; the table's faults first.

    Raises :class:`TableError` for a property that cannot be read, rather than leave it out, and ``InternalError`` if a
    counterexample does not happen when it is played again.
    """
    said = SILENT if progress is None else progress
    judge = Judge(_of(spec, graph))
    verdicts = [*check_table(judge), *check_discipline(judge)]
    for number, prop in enumerate(spec.properties):
        said.say("properties judged", number, len(spec.properties))
        verdicts.append(judge_property(judge, prop))
    said.say("properties judged", len(spec.properties), len(spec.properties))
    return [*verdicts, *check_requirements(spec)]


def _of(spec: Spec, graph: Graph) -> Graph:
    """The graph, seen as explored for ``spec``: a specification with other properties may share it, not one with other states."""
    if graph.spec is spec:
        return graph
    same = spec.histories == graph.spec.histories and spec.assume is graph.spec.assume
    if not same or (spec.tokens, spec.counter) != (graph.spec.tokens, graph.spec.counter):
        raise TableError(f"the graph of {graph.machine.name} was explored for a specification of other history, assumption or bounds")
    return attrs.evolve(graph, spec=spec)


def judge_property(judge: Judge, prop: Property) -> Verdict:
    """The verdict on one property."""
    started = time.perf_counter()
    outcome, detail, stories = _judged(judge, prop)
    return Verdict(
        machine=judge.machine.name,
        check=prop.name,
        engine=Engine.EXPLICIT,
        outcome=outcome,
        how=_how(judge, prop),
        requirements=prop.requirements,
        detail=detail,
        story=stories[0] if stories else None,
        others=stories[1:],
        seconds=time.perf_counter() - started,
    )


def _judged(judge: Judge, prop: Property) -> tuple[Outcome, str, tuple[Story, ...]]:
    if isinstance(prop, Sometimes):
        reached = judge.witness(prop) is not None
        return (Outcome.HOLDS, "", ()) if reached else (Outcome.VIOLATED, "never reached: no run of the machine comes there", ())
    violation = judge.violation(prop)
    if violation is not None:
        return Outcome.VIOLATED, violation.detail(), violation.stories
    vacuous = why_vacuous(judge, prop)
    if vacuous:
        return Outcome.VIOLATED, vacuous, ()
    if isinstance(prop, (LeadsTo, EventuallyAlways)):
        region = judge.leads_to(prop) if isinstance(prop, LeadsTo) else judge.eventually_always(prop)
        if judge.leaves_bounds(region):
            bound = f"counter <= {judge.spec.counter}"
            why = f"a run leaves the bound {bound} with its promise open, and what follows is not known: bound it with assume="
            return Outcome.UNDETERMINED, why, ()
    return Outcome.HOLDS, "", ()


def _how(judge: Judge, prop: Property) -> str:
    if not isinstance(prop, (LeadsTo, EventuallyAlways)):
        return judge.graph.bounds()
    fairness = [f"{'strong' if fair.strong else 'weak'} fairness: {fair.name}" for fair in prop.fairness]
    return judge.graph.bounds(*(fairness or ["no fairness assumed"]))


def check_requirements(spec: Spec) -> list[Verdict]:
    """Whether every requirement is discharged by something."""
    missing = spec.undischarged()
    listed = "; ".join(f"{rid} ({spec.requirements[rid]})" for rid in missing)
    return [
        Verdict(
            machine=spec.machine.name,
            check="every requirement has a property, a named test or a system that discharges it",
            engine=Engine.TABLE,
            outcome=Outcome.VIOLATED if missing else Outcome.HOLDS,
            how=f"{len(spec.requirements)} requirements, {len(spec.properties)} properties",
            requirements=missing,
            detail=f"nothing discharges {listed}" if missing else "",
        )
    ]


def cut_short(error: LimitReached) -> Verdict:
    """The verdict of a search that did not end: it shows nothing."""
    return Verdict(
        machine=error.machine,
        check="every reachable state is explored",
        engine=Engine.EXPLICIT,
        outcome=Outcome.UNDETERMINED,
        how=f"cut short at {error.limit:,} states",
        detail=f"{error}; raise the limit, or lower tokens= and counter= of the specification",
    )


# ── variants ──


def check_variants(spec: Spec, *, progress: Progress | None = None) -> list[Verdict]:
    """Whether each variant breaks each property it should, in exactly the shortest number of events that the specification states.

    A verdict that holds carries the story of that run. Raises :class:`TableError` for an unknown property.
    """
    said = SILENT if progress is None else progress
    verdicts: list[Verdict] = []
    for number, variant in enumerate(spec.variants):
        said.say("variants checked", number, len(spec.variants))
        verdicts += _check_variant(spec, variant, said)
    said.say("variants checked", len(spec.variants), len(spec.variants))
    return verdicts


def _check_variant(spec: Spec, variant: Variant, progress: Progress) -> Iterator[Verdict]:
    if not variant.violates:
        raise TableError(f"variant {variant.machine.name} violates nothing: name the property it breaks")
    expected = {_named(spec, variant, name): length for name, length in variant.violates.items()}
    # A run of n events stays within n steps of the start, and so does a lasso: what is found there is shortest. What is not found
    # may still be anywhere else.
    try:
        near = Judge(explore(spec, machine=variant.machine, progress=progress, depth=max(expected.values())))
        found = {prop: near.violation(prop, all_routes=False) for prop in expected}
        if None in found.values():
            far = Judge(explore(spec, machine=variant.machine, progress=progress))
            found = {prop: far.violation(prop, all_routes=False) for prop in expected}
    except LimitReached as error:
        yield cut_short(error)
        return
    for prop, length in expected.items():
        yield _variant_verdict(variant, prop, length, found[prop])


def _named(spec: Spec, variant: Variant, name: str) -> Property:
    for prop in spec.properties:
        if prop.name == name:
            return prop
    near = difflib.get_close_matches(name, [prop.name for prop in spec.properties], n=1)
    hint = f"; did you mean {near[0]!r}?" if near else ""
    raise TableError(f"variant {variant.machine.name} should violate {name!r}, which is no property of the specification{hint}")


def _variant_verdict(variant: Variant, prop: Property, length: int, found: Violation | None) -> Verdict:
    if found is None:
        detail = f"it holds; the variant was expected to break it in {events(length)}. What it was: {variant.about}"
    elif found.length != length:
        detail = f"it is broken in {events(found.length)} at the shortest, not in {length}: correct the length, or the variant"
    else:
        detail = ""
    return Verdict(
        machine=variant.machine.name,
        check=f"fails as it should: {prop.name}",
        engine=Engine.EXPLICIT,
        outcome=Outcome.VIOLATED if detail else Outcome.HOLDS,
        how=f"shortest counterexample, {events(length)}",
        requirements=prop.requirements,
        detail=detail,
        story=None if found is None else found.stories[0],
    )


__all__ = ["check", "check_requirements", "check_variants", "cut_short", "judge_property"]
