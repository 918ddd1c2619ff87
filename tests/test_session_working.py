"""S9 of a design that has no ``busy`` flag: what is shown at work, and what is at work."""

from __future__ import annotations

import pytest

from turnproof.checkers.network.explicit import explore, violation
from turnproof.machines import session as target
from turnproof.machines.session_mark import MACHINE as V4
from turnproof.specs import session_working as spec
from turnproof.specs.session_history import design
from turnproof.specs.session_parts import ASKS, DEATH, N2, N4, N8, N11, N13, World
from turnproof.specs.system import SystemSpec


def broken(world: World) -> set[str]:
    """The promises that this world breaks; its graph is explored whole."""
    props = (*spec.properties(world), *spec.reached(world))
    asked = SystemSpec(
        system=spec.watched(world, "session_asked"), requirements=spec.SPEC.requirements, properties=props, tokens=3, counter=3
    )
    graph = explore(asked, until_broken=False)
    assert graph.walk.complete
    assert not graph.walk.flaws
    return {q.name for q in props if violation(graph, q) is not None}


def test_the_target_has_no_flag_that_could_be_wrong() -> None:
    assert "busy" not in target.Session.__annotations__
    assert "busy" in type(V4.initial).__annotations__


@pytest.mark.soak
def test_what_works_is_shown_and_what_is_shown_works_with_a_stop_and_a_restart() -> None:
    assert broken(spec.STOPPED) == set()


@pytest.mark.soak
def test_the_rule_of_the_mark_shows_what_works_and_too_much_besides() -> None:
    assert broken(World(design(V4), (ASKS, DEATH, N2, N4, N8, N11, N13), stops=1, drops=1)) == {spec.WORKING, spec.CALM}
