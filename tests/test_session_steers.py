"""A turn with a steer: what the approved rule gets wrong, with which powers, and that the other design has none of it."""

from __future__ import annotations

import pytest

from turnproof.checkers.network.explicit import explore, violation
from turnproof.specs import session_steers as spec
from turnproof.specs.session_history import MARKING_STOP
from turnproof.specs.session_parts import N1, N2, N6, N11, N12, STOPS
from turnproof.specs.session_steers_parts import HELD_BY_SET
from turnproof.specs.system import Switch, SystemSpec


def broken(world: spec.Steered) -> dict[str, int]:
    """What this world breaks, and in how many steps; its graph is explored whole."""
    props = spec.properties(world)
    asked = SystemSpec(system=world.system("session_asked"), requirements=spec.SPEC.requirements, properties=props, tokens=3, counter=1)
    graph = explore(asked, until_broken=False)
    assert graph.walk.complete
    assert not graph.walk.flaws
    found = {q.name: violation(graph, q) for q in props}
    return {name: told.story.length for name, told in found.items() if told is not None}


def approved(*powers: Switch) -> spec.Steered:
    """The approved rule in an environment that has these powers alone."""
    return spec.Steered(HELD_BY_SET, MARKING_STOP, [s for s in spec.POWERS if s not in powers])


ALONE = {
    N1: {spec.STEERED: 7},
    N2: {spec.STEERED: 8},
    N6: {spec.TURN_RESTS: 10, spec.HELD_RESTS: 10},
    N11: {spec.TURN_RESTS: 10, spec.HELD_RESTS: 10},
    STOPS: {spec.TURN_RESTS: 9, spec.HELD_RESTS: 9},
}
"""What each power alone breaks in the approved rule; a power that is not here breaks nothing alone. A restart breaks the stream: a drop."""


@pytest.mark.parametrize("power", spec.POWERS, ids=lambda s: str(s.name))
def test_what_a_power_breaks_alone(power: Switch) -> None:
    assert broken(approved(power)) == ALONE.get(power, {})


def test_a_session_that_settles_keeps_a_turn_that_is_over_as_without_steers() -> None:
    """No defect of its own: a reconnect finds active what has published its end (``session_defects``, settling_is_active)."""
    assert broken(approved(N6, N12)) == {spec.TURN_RESTS: 5, spec.HELD_RESTS: 10}


def test_without_powers_the_approved_rule_keeps_every_promise() -> None:
    assert broken(approved()) == {}


@pytest.mark.soak
@pytest.mark.parametrize("wrong", spec.WRONGS, ids=lambda w: str(w.name))
def test_the_target_keeps_every_promise_where_others_do_not(wrong: spec.Wrong) -> None:
    assert wrong.breaks in broken(wrong.world)
    assert broken(spec.Steered(without=wrong.world.without)) == {}
