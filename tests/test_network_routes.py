"""The same failure by other routes: each ends with another beginning, each is a real run, and none breaks the property before its end."""

from __future__ import annotations

import attrs
import pytest
from systems import CALL_SPEC, Caller, Timer, caller

from turnproof.checkers.network import routes
from turnproof.checkers.network.explicit import check, explore
from turnproof.checkers.verdict import Outcome, Verdict
from turnproof.machines.kernel import implies, not_
from turnproof.specs.classics import two_phase_commit
from turnproof.specs.language import Always, LeadsTo, Property, Step
from turnproof.specs.system import SystemSpec

APART = "nobody commits where another aborts"


def hasty(managers: int = 3) -> SystemSpec:
    spec = two_phase_commit.specification(managers)
    properties = tuple(p for p in spec.properties if not isinstance(p, LeadsTo))
    return attrs.evolve(spec, system=two_phase_commit.two_phase_commit(managers, hasty=True), properties=properties, variants=())


def verdict_on(spec: SystemSpec, name: str, **how: bool | str) -> Verdict:
    graph = explore(spec, **how)  # type: ignore[arg-type]
    return next(v for v in check(spec, graph) if v.check == name)


def ends(verdict: Verdict) -> list[tuple[int, str]]:
    assert verdict.story is not None
    return [(story.length, story.steps[-1].event) for story in (verdict.story, *verdict.others)]


@pytest.mark.parametrize("how", [{}, {"symmetry": True}, {"engine": "plain"}], ids=str)
def test_every_manager_that_gives_up_or_commits_too_late_is_a_route(how: dict[str, bool | str]) -> None:
    verdict = verdict_on(hasty(), APART, **how)
    found = ends(verdict)
    assert verdict.outcome is Outcome.VIOLATED
    assert sorted(length for length, _ in found) == [9, 9, 9, 9, 9, 9]
    assert [length for length, _ in found] == sorted(length for length, _ in found)
    assert len({event.split("(")[0] for _, event in found}) == 6, "each manager, giving up after a commit or committing after it gave up"


def test_each_story_is_a_test_of_its_own() -> None:
    verdict = verdict_on(hasty(), APART)
    assert all(story.claim == f"assert run.keeps({APART!r})" and story.broken.startswith(APART) for story in verdict.others)


def test_a_step_has_a_route_for_each_way_to_begin_it() -> None:
    still = Step("while the caller waits, nothing happens", not_(caller.now.phase == Caller.WAITING), requirements="R-1")
    found = ends(verdict_on(attrs.evolve(CALL_SPEC, properties=(*CALL_SPEC.properties, still)), still.name))
    wanted = ["ReplyArrived(number=1) is lost", "caller <- AskRequested", "caller <- ReplyArrived(number=1)"]
    assert sorted(found) == [(2, event) for event in (*wanted, "caller <- ReplyTimedOut", "service <- Crashed")]


def test_what_holds_has_none_and_nothing_is_walked_for_it(monkeypatch: pytest.MonkeyPatch) -> None:
    def walked(*_: object) -> object:
        raise AssertionError("walked a second time")

    monkeypatch.setattr(routes, "_walked", walked)
    spec = two_phase_commit.specification(3)
    assert all(not v.others for v in check(spec, explore(spec)))


def test_a_state_property_of_timers_has_one_route_alone() -> None:
    idle: Property = Always("no timer runs", not_(caller.running(Timer.REPLY)), requirements="R-1")
    verdict = verdict_on(attrs.evolve(CALL_SPEC, properties=(*CALL_SPEC.properties, idle)), idle.name)
    assert (verdict.outcome, verdict.others) == (Outcome.VIOLATED, ())


def test_a_run_that_breaks_it_before_its_end_is_no_route() -> None:
    """A state that is left and reached again: only first breaks count, so no story tells of two."""
    calm = Always(
        "the caller never waits", implies(caller.now.phase == Caller.WAITING, caller.now.phase == Caller.IDLE), requirements="R-1"
    )
    spec = attrs.evolve(CALL_SPEC, properties=(*CALL_SPEC.properties, calm))
    assert [length for length, _ in ends(verdict_on(spec, calm.name))] == [1]


def test_a_large_system_is_not_walked_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(routes, "MOST_STATES", 10)
    assert verdict_on(hasty(), APART).others == ()
