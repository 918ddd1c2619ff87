"""Executions that end ``failed``, in a wider world than every verification explores; and that they bring V4 no defect of their own."""

from __future__ import annotations

import pytest

from turnproof.checkers.network.explicit import explore, violation
from turnproof.specs import session_failed as spec
from turnproof.specs import session_properties as p
from turnproof.specs.language import Sometimes
from turnproof.specs.session_environment import SERVER
from turnproof.specs.session_history import V4, design
from turnproof.specs.session_parts import ASKS, DEATH, N2, N11, N13, World
from turnproof.specs.session_requirements import REQUIREMENTS
from turnproof.specs.system import System, SystemSpec


def broken(system: System, world: World, *, fails: bool) -> dict[str, int]:
    """What this system breaks, and in how many steps; its graph is explored whole."""
    asked = SystemSpec(
        system=system,
        requirements=REQUIREMENTS,
        properties=(*spec.properties(world), *(spec.reached(world) if fails else ())),
        tokens=3,
        counter=3,
    )
    graph = explore(asked, until_broken=False)
    assert graph.walk.complete
    assert not graph.walk.flaws
    found = {q.name: violation(graph, q) for q in graph.properties}
    return {name: told.story.length for name, told in found.items() if told is not None}


def test_the_server_that_may_fail_does_all_that_the_other_does() -> None:
    """The rows of the server stand as they are, and one more way to end stands behind them."""
    rows = [row.name for row in SERVER.rows]
    assert [row.name for row in spec.FAILING.rows][: len(rows)] == rows
    assert {e.__name__ for e in set(spec.FAILING.events) - set(SERVER.events)} == {"Failed"}


@pytest.mark.soak
def test_the_target_keeps_every_promise_with_failures() -> None:
    assert broken(spec.failing(spec.WIDE, "session_asked"), spec.WIDE, fails=True) == {}


@pytest.mark.soak
def test_failures_bring_the_rule_of_the_mark_no_defect_of_their_own() -> None:
    """The same promises break in the same number of steps; besides, an end that ends another's turn may be a failure now."""
    world = World(design(V4), (ASKS, DEATH, N2, N11, N13), stops=1, drops=1)
    failing = broken(spec.failing(world, "session_asked"), world, fails=True)
    assert failing.pop(spec.OTHERS) == failing[p.OWN_END] == 8
    assert failing == broken(world.system("session_asked"), world, fails=False)
    assert not any(isinstance(q, Sometimes) for q in spec.properties(world))
