"""That turns, continuations, wakes and starts of an OpenCode session end: each promise can fail, and all hold at the whole bounds."""

from __future__ import annotations

from typing import Any

import attrs
import pytest

from turnproof.checkers.network.explicit import explore, judge_property, violation
from turnproof.checkers.network.promises import judge
from turnproof.checkers.verdict import Outcome
from turnproof.machines import session as target
from turnproof.machines import session_start as start
from turnproof.machines import session_stop as stop
from turnproof.machines.kernel import NOBODY, Row, StartTimer, symbol
from turnproof.machines.session_words import Cause, ContinuationStarted, HistoryRead, ReportTurn, Turn
from turnproof.machines.session_words import Outcome as Ending
from turnproof.specs import session_ends, session_times
from turnproof.specs.language import AnyMachine, LeadsTo, Property
from turnproof.specs.session_parts import MORE, N1, N6, N7, N9, POWERS, STOPS, World
from turnproof.specs.session_requirements import REQUIREMENTS
from turnproof.specs.session_target import ENDING, TARGET, WHOLE
from turnproof.specs.system import Switch, SystemSpec

due = symbol(start.SendDue)
now = target.now
taken: Row[target.Session, Any] = Row(
    ContinuationStarted, at=Turn.NONE, when=now.ended > 0, stay=True, emit=(ReportTurn(Ending.COMPLETED, NOBODY, Cause.REPLAY),)
)
sent: Row[start.Start, Any] = Row(start.SendDue, at=start.INSTALLED, when=due.wanted, to=start.PREPARING)
PLANTED: tuple[tuple[str, AnyMachine, tuple[Switch, ...], tuple[int, int]], ...] = (
    ("L1", target.MACHINE.variant("session_unrefused", drop=["PromptAnswered/its_turn_is_installed#2"]), (N1,), (6, 6)),
    ("L2", target.MACHINE.variant("session_unread", first=[Row(HistoryRead, at=Turn.CONTINUATION, stay=True)]), (N6, N7), (10, 11)),
    ("L3", target.MACHINE.variant("session_untaken", replace={"ContinuationStarted/none": taken}), (N7, N9), (8, 9)),
    ("L4", start.MACHINE.variant("session_start_unsent", replace={"SendDue/installed": sent}), (), (4, 3)),
)
"""Each promise, a mistake that breaks it, the powers it needs, and the lasso: its steps, and the first repeated (one more: none)."""


def asked(world: World, *letters: str) -> tuple[SystemSpec, tuple[Property, ...]]:
    """This world, asked for these promises."""
    wanted = tuple(p for p in session_ends.promises(world) if p.name[:2] in letters)
    return SystemSpec(system=world.system("session_asked"), requirements=REQUIREMENTS, properties=wanted, tokens=3, counter=3), wanted


EVERY = World(TARGET, (), stops=1, drops=1)
"""Every switch there is, permission requests too: one Stop, one drop."""


@pytest.mark.parametrize(("letter", "machine", "powers", "lasso"), PLANTED, ids=[letter for letter, *_ in PLANTED])
def test_each_promise_is_broken_by_a_planted_mistake(
    letter: str, machine: AnyMachine, powers: tuple[Switch, ...], lasso: tuple[int, int]
) -> None:
    starts = machine.name.startswith("session_start")
    design = attrs.evolve(TARGET, start=machine) if starts else attrs.evolve(TARGET, session=machine)
    world = World(design, [s for s in (*POWERS, *MORE) if s not in powers], stops=0, drops=1)
    spec, (prop,) = asked(world, letter)
    found = violation(explore(spec), prop)
    assert found is not None
    assert (found.story.length, found.loop_from) == lasso


waits_on: Row[stop.Stop, Any] = Row(stop.ReplyExpired, at=stop.WAITING, stay=True, emit=(StartTimer(stop.Timer.REPLY),))
gives_up: Row[stop.Stop, Any] = Row(
    stop.ReplyExpired, at=stop.WAITING, data=attrs.evolve(stop.now, phase=stop.DONE, own=False), emit=(stop.DropReply(),)
)
asks_on: Row[start.Start, Any] = Row(start.QuestionExpired, at=start.QUESTIONED, stay=True, emit=(StartTimer(start.Timer.QUESTION),))
LATE: tuple[tuple[str, AnyMachine, tuple[Switch, ...]], ...] = (
    ("a Stop is over", stop.MACHINE.variant("session_stop_waits_on", replace={stop.ends: waits_on}), (STOPS,)),
    ("the turn of a Stop", stop.MACHINE.variant("session_stop_gives_up", replace={stop.ends: gives_up}), (STOPS,)),
    ("the question of a start", start.MACHINE.variant("session_start_asks_on", replace={"QuestionExpired/4_phases": asks_on}), (N1,)),
    ("once its question is over", start.MACHINE.variant("session_start_waits", drop=["Prepared/preparing#2"]), (N1, N6)),
)
"""Each bound of ``session_times``, a mistake that breaks it, and the powers it needs."""


@pytest.mark.parametrize(("bound", "machine", "powers"), LATE, ids=[bound for bound, *_ in LATE])
def test_each_bound_is_broken_by_a_planted_mistake(bound: str, machine: AnyMachine, powers: tuple[Switch, ...]) -> None:
    stops = machine.name.startswith("session_stop")
    design = attrs.evolve(TARGET, stop=machine) if stops else attrs.evolve(TARGET, start=machine)
    world = World(design, [s for s in (*POWERS, *MORE) if s not in powers], stops=1, drops=1)
    (prop,) = (p for p in session_times.bounds(world) if p.name.startswith(bound))
    spec = SystemSpec(system=world.system("session_late"), requirements=REQUIREMENTS, properties=(prop,), tokens=3, counter=3)
    judged = judge_property(explore(spec), prop)
    assert judged.outcome is Outcome.VIOLATED
    assert judged.detail.startswith("promised:")
    assert judged.story is not None


@pytest.mark.soak
def test_no_promise_holds_without_any_of_its_assumptions() -> None:
    """Each assumption is needed: without it some run, fair to all others, breaks the promise."""
    spec, promises = asked(ENDING, "L1", "L2", "L3", "L4")
    graph = explore(spec).promised
    assert graph is not None
    for prop in promises:
        assert isinstance(prop, LeadsTo)
        assert judge(graph, prop).lasso is None
        for left in prop.fairness:
            fewer = attrs.evolve(prop, fairness=tuple(fair for fair in prop.fairness if fair is not left))
            assert judge(graph, fewer).lasso is not None, f"{prop.name} does not need that {left.name}"


@pytest.mark.soak
@pytest.mark.parametrize(("world", "states"), [(EVERY, 14_886_836), (WHOLE, 36_752_416)], ids=["every switch", "whole"])
def test_all_promises_hold(world: World, states: int) -> None:
    """Every power of the environment at once; 223,415,333 steps at the whole bounds, some minutes, 6 GB."""
    spec, promises = asked(world, "L1", "L2", "L3", "L4")
    graph = explore(spec)
    assert graph.walk.complete
    assert not graph.walk.flaws
    assert graph.walk.states == states
    assert [(p.name, judge_property(graph, p).outcome) for p in promises] == [(p.name, Outcome.HOLDS) for p in promises]


@pytest.mark.soak
def test_all_bounds_hold_at_the_whole_bounds() -> None:
    """Of both Stops, from 325,431 beginnings each and more."""
    props = session_times.bounds(WHOLE)
    spec = SystemSpec(system=WHOLE.system("session_whole_times"), requirements=REQUIREMENTS, properties=props, tokens=3, counter=3)
    graph = explore(spec)
    judged = [judge_property(graph, p) for p in props]
    assert [(v.check, v.outcome) for v in judged] == [(p.name, Outcome.HOLDS) for p in props]
    assert [v.how.split(" (")[0] for v in judged] == [*["at most 10 s"] * 4, "at most 5 s", "at most 0 s"]
