"""The user stops the background work: what the rule of the mark does to the turn beside it needs a report and a prompt that joins."""

from __future__ import annotations

import attrs
import pytest

from turnproof.checkers.network.explicit import explore, violation
from turnproof.machines.session import MACHINE as SESSION
from turnproof.machines.session_mark import MACHINE as V4
from turnproof.specs import session_background as spec
from turnproof.specs.session_history import design
from turnproof.specs.session_properties import SKIPPED_USER, USER_RESTS
from turnproof.specs.session_requirements import REQUIREMENTS
from turnproof.specs.system import Switch, SystemSpec


def broken(world: spec.Stopped) -> dict[str, int]:
    """What this world breaks, and in how many steps; its graph is explored whole."""
    props = (*spec.properties(world), *(spec.reached(world) if world is spec.WIDE else ()))
    asked = SystemSpec(system=world.system("session_asked"), requirements=REQUIREMENTS, properties=props, tokens=3, counter=3)
    graph = explore(asked, until_broken=False)
    assert graph.walk.complete
    assert not graph.walk.flaws
    found = {q.name: violation(graph, q) for q in props}
    return {name: told.story.length for name, told in found.items() if told is not None}


@pytest.mark.soak
@pytest.mark.parametrize("missing", spec.JOINED, ids=lambda s: str(s.name))
def test_the_defect_needs_each_of_its_powers(missing: Switch) -> None:
    marked = attrs.evolve(design(V4), session=spec.MARKED)
    without = [s for s in spec.EVERY if s not in spec.JOINED or s is missing]
    assert {SKIPPED_USER, USER_RESTS} & set(broken(spec.Stopped(marked, without))) == set()
    assert {SKIPPED_USER, USER_RESTS} <= set(broken(spec.BY_MARK))


def test_both_designs_are_what_they_are_elsewhere_and_hear_two_things_more() -> None:
    for mine, theirs in ((spec.MARKED, V4), (spec.UNMARKED, SESSION)):
        assert mine.rows[: len(theirs.rows)] == theirs.rows
        assert [event.__name__ for event in mine.events[len(theirs.events) :]] == ["WakeSilenced", "WakesStopped"]


@pytest.mark.soak
def test_the_specification_holds_and_its_variants_fail_as_they_should() -> None:
    """Asked for by name only: no verification of everything has it."""
    graph = explore(spec.SPEC)
    assert graph.walk.complete
    assert not graph.walk.flaws
    assert [q.name for q in spec.SPEC.properties if violation(graph, q) is not None] == []
    for variant in spec.SPEC.variants:
        props = variant.properties or spec.SPEC.properties
        asked = SystemSpec(system=variant.system, requirements=REQUIREMENTS, properties=props, tokens=3, counter=3)
        found = explore(asked, until_broken=False)
        assert {q.name: told.story.length for q in props if (told := violation(found, q)) is not None} == variant.violates


@pytest.mark.soak
def test_the_target_keeps_every_promise_of_the_session_in_a_wider_world() -> None:
    """What it does not keep is that a stopped child is never heard: the start of a run whose turn is over takes the report, as upstream.

    Nobody's turn is hurt by it. Which execution a report is in is known by its delivery, one event after the start.
    """
    assert broken(spec.WIDE) == {spec.SILENT: 16}
