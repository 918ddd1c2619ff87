"""The bounds of a reconnect and of a start that waits for it: their figures are the shell's, and each is broken by a planted mistake."""

from __future__ import annotations

import attrs
import pytest

from turnproof.checkers.network.explicit import explore, judge_property
from turnproof.checkers.verdict import Outcome
from turnproof.machines import session_stream as stream
from turnproof.machines.kernel import Row, StartTimer
from turnproof.shell import session_transport as shell
from turnproof.specs import session_reconnect as spec
from turnproof.specs.language import AnyMachine
from turnproof.specs.session_requirements import REQUIREMENTS
from turnproof.specs.system import SystemSpec


def test_the_figures_are_those_of_the_shell() -> None:
    durations = {rule.timer.name: rule.duration.milliseconds for m in (spec.RECONNECT, spec.WAIT) for rule in m.timers}
    assert durations == {"ATTEMPT": shell.ATTEMPT_MS, "PAUSE": shell.PAUSE_MS, "STREAM": shell.RECONNECT_MS}
    assert spec.LAST + 1 == shell.ATTEMPTS
    assert shell.ATTEMPTS * shell.ATTEMPT_MS + spec.LAST * shell.PAUSE_MS == 83_000


forgets: Row[spec.Reconnect, object] = Row(
    spec.SubscriptionStands,
    at=spec.SUBSCRIBING,
    data=attrs.evolve(spec.now, phase=spec.READING, failed=0),
    emit=(stream.Subscribed(),),
)
insists: Row[spec.Reconnect, object] = Row(spec.AttemptExpired, at=spec.TRYING, stay=True, emit=(StartTimer(spec.Timer.ATTEMPT),))
stays: Row[spec.Waiting, object] = Row(spec.WaitExpired, at=spec.WAITS, stay=True, emit=(StartTimer(spec.WaitTimer.STREAM),))
PLANTED: tuple[tuple[str, str, AnyMachine], ...] = (
    (spec.HALFWAY, "reconnect", spec.RECONNECT.variant("session_reconnect_forgets", replace={"subscribed": forgets})),
    (spec.SETTLES, "reconnect", spec.RECONNECT.variant("session_reconnect_insists", first=[insists])),
    (spec.BEGINS, "wait", spec.WAIT.variant("session_reconnect_stays", replace={"refused": stays})),
)
"""Each bound and a mistake that breaks it: a subscription counts as a success, an attempt is waited for again, a start waits again."""


@pytest.mark.parametrize(("bound", "part", "machine"), PLANTED, ids=[machine.name for _, _, machine in PLANTED])
def test_each_bound_is_broken_by_a_planted_mistake(bound: str, part: str, machine: AnyMachine) -> None:
    (prop,) = (p for p in spec.PROPERTIES if p.name == bound)
    system = spec.SYSTEM.with_machines(machine.name, **{part: machine})
    graph = explore(SystemSpec(system=system, requirements=REQUIREMENTS, properties=(prop,), tokens=1, counter=1))
    judged = judge_property(graph, prop)
    assert judged.outcome is Outcome.VIOLATED
    assert judged.detail.startswith("promised:")
    assert judged.story is not None


def test_a_subscription_whose_history_is_never_read_is_no_success() -> None:
    """The mistake is not seen where nothing at all is answered: a bound that lets the server answer half is needed."""
    (prop,) = (p for p in spec.PROPERTIES if p.name == spec.SETTLES)
    system = spec.SYSTEM.with_machines("session_reconnect_forgets", reconnect=PLANTED[0][2])
    graph = explore(SystemSpec(system=system, requirements=REQUIREMENTS, properties=(prop,), tokens=1, counter=1))
    assert judge_property(graph, prop).outcome is Outcome.HOLDS
