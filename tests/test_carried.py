"""Properties of opaque values: each engine sees a value that is carried elsewhere, and a property without a case is no property."""

from __future__ import annotations

import itertools
from enum import Enum
from typing import Annotated, Any

import pytest
import toys
from attrs import evolve, frozen

from turnproof.checkers import smt
from turnproof.checkers.carried import Carrying, markings
from turnproof.checkers.explicit import judge_property
from turnproof.checkers.graph import explore
from turnproof.checkers.judge import Judge
from turnproof.checkers.mutants import Fate, Operator, run
from turnproof.checkers.verdict import Outcome, Verdict
from turnproof.machines.kernel import (
    Counter,
    Duration,
    Kind,
    Machine,
    OnlyIf,
    Opaque,
    Row,
    StartTimer,
    TableError,
    TimerRule,
    choose,
    fields_of,
    latest,
    only_if,
    symbol,
    variables,
)
from turnproof.specs.catalog import specifications
from turnproof.specs.language import Carries, Spec, Step, count, emits, on
from turnproof.specs.turn_loop import SPEC as TURN_LOOP

# ── a caller that may be told to call later ──


class CallPhase(Enum):
    READY = "ready"
    WAITING = "waiting"


class Clock(Enum):
    AGAIN = "again"
    """Time to call again."""


@frozen
class Call:
    phase: CallPhase = CallPhase.READY
    tries: Annotated[int, Counter] = 0
    limit: Annotated[int, Counter] = 2
    hint_ms: Annotated[int, Opaque] = 0
    note: Annotated[str, Opaque] = ""


@frozen
class Hinted:
    """The other side asks not to be called before."""

    until_ms: Annotated[int, Opaque]
    note: Annotated[str, Opaque]


@frozen
class Failed:
    at_ms: Annotated[int, Opaque]


@frozen
class Due:
    """The wait is over."""


@frozen
class Report:
    note: Annotated[str, Opaque]


now, hinted, failed = symbol(Call), symbol(Hinted), symbol(Failed)
READY, WAITING = CallPhase
CallRow = Row[Call, "Report | StartTimer"]


def pause(tries: int, third: int = 400) -> int:
    return choose(tries == 0, 100, choose(tries == 1, 200, third))


RIGHT = latest(now.hint_ms, failed.at_ms + pause(now.tries))


def rows(*, hint: Any = hinted.until_ms, due: Any = RIGHT, said: Any = now.note) -> Any:
    return (
        Row(hinted, data=evolve(now, hint_ms=hint, note=hinted.note)),
        Row(failed, at=READY, when=now.tries < now.limit, to=WAITING, data=evolve(now, tries=now.tries + 1),
            emit=(only_if(now.tries == 0, Report(said)), StartTimer(Clock.AGAIN, due))),
        Row(Failed, ignore="enough"),
        Row(Due, at=WAITING, to=READY),
        Row(Due, ignore="nobody waits"),
    )  # fmt: skip


def machine(**how: Any) -> Machine[Any, Any, Any]:
    return Machine(name="call", initial=Call(), now=now, events=(Hinted, Failed, Due), effects=(Report, StartTimer), rows=rows(**how),
                   timers=(TimerRule(Clock.AGAIN, now.phase == WAITING, Due, Duration(100, "a toy")),))  # fmt: skip


WAIT = Carries("a wait is as long as asked for", StartTimer, "not_before_ms", RIGHT, requirements=())
KEPT = Carries("a hint is kept", Call, "hint_ms", hinted.until_ms, when=on(Hinted), requirements="R-1", harm="a storm")
SAID = Carries("the note is the last one", Report, "note", now.note, requirements=())


def spec(*properties: Carries, **how: Any) -> Spec:
    return toys.spec_of(machine(**how), *(properties or (WAIT, KEPT, SAID)), counter=2)


def explicit(of: Spec, prop: Carries) -> Verdict:
    return judge_property(Judge(explore(of)), prop)


@pytest.mark.parametrize("prop", [WAIT, KEPT, SAID], ids=lambda prop: prop.name)
def test_what_is_carried_right_holds_and_is_proved(prop: Carries) -> None:
    of = spec()
    assert explicit(of, prop).outcome is Outcome.HOLDS
    (proved,) = (v for v in smt.check(of, explore(of)) if v.check == prop.name)
    assert proved.outcome is Outcome.HOLDS
    assert proved.how.startswith("proved")


MISTAKES: dict[str, tuple[Carries, dict[str, Any]]] = {
    "another opaque value": (WAIT, {"due": failed.at_ms + pause(now.tries)}),
    "the hint alone": (WAIT, {"due": now.hint_ms}),
    "a constant off": (WAIT, {"due": latest(now.hint_ms, failed.at_ms + choose(now.tries == 0, 101, 200))}),
    "off only for a count that is not explored": (WAIT, {"due": latest(now.hint_ms, failed.at_ms + pause(now.tries, third=399))}),
    "an update that keeps the old value": (KEPT, {"hint": now.hint_ms}),
    "an update by a constant": (KEPT, {"hint": 0}),
    "an effect with a constant": (SAID, {"said": ""}),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_planted_mistake_breaks_it_with_a_story_and_is_not_proved(mistake: str) -> None:
    prop, how = MISTAKES[mistake]
    of = spec(**how)
    verdict = explicit(of, prop)
    assert verdict.outcome is Outcome.VIOLATED
    assert verdict.story is not None
    assert verdict.story.length == 1
    assert "expected" in verdict.story.broken
    (symbolic,) = (v for v in smt.check(of, explore(of)) if v.check == prop.name)
    assert symbolic.outcome is Outcome.VIOLATED


def test_the_story_names_requirement_harm_and_values() -> None:
    verdict = explicit(spec(hint=now.hint_ms), KEPT)
    assert verdict.story is not None
    assert verdict.story.broken.startswith("a hint is kept (R-1): a storm. Call.hint_ms is ")
    assert "Hinted.until_ms = " in verdict.story.broken


def test_a_property_that_no_step_exercises_is_vacuous() -> None:
    never = Carries("x", Report, "note", "", when=on(Due), requirements=())
    verdict = explicit(spec(never), never)
    assert verdict.outcome is Outcome.VIOLATED
    assert verdict.detail.startswith("vacuous")


@pytest.mark.parametrize(
    ("prop", "complaint"),
    [
        (lambda: Carries("x", Hinted, "note", "", requirements=()), "neither an effect of call nor its state"),
        (lambda: Carries("x", Report, "text", "", requirements=()), "has no field 'text'; it has note"),
        (lambda: Carries("x", Call, "tries", 0, requirements=()), "Call.tries is not Opaque"),
        (lambda: Carries("x", Report, "note", "", matching={"note": ""}, requirements=()), "matching= picks effects by fields"),
    ],
)
def test_a_property_written_wrongly_is_refused(prop: Any, complaint: str) -> None:
    with pytest.raises(TableError, match=complaint):
        spec(prop())


def test_what_the_event_does_not_have_cannot_be_expected() -> None:
    wrong = Carries("x", Call, "hint_ms", failed.at_ms, requirements=())
    with pytest.raises(TableError, match=r"expects Failed\.at_ms also where the event is Hinted.*write when=on\(Failed\)"):
        explicit(spec(wrong), wrong)


def test_no_two_marks_are_equal_and_no_constant_bridges_them() -> None:
    for marks in markings(machine()):
        numbers = sorted(n for values in marks.values() for n in values.values() if isinstance(n, int))
        assert len(numbers) == 3
        assert all(b - a > 1_000_000 for a, b in itertools.pairwise(numbers))


def test_mutants_of_opaque_values_are_killed_by_the_properties() -> None:
    step = Step("a wait begins where a call fails", emits(StartTimer) == (on(Failed) & (count(StartTimer) == 1)), requirements=())
    report = run(toys.spec_of(machine(), WAIT, KEPT, SAID, step, counter=2), row="Failed/ready", workers=1)
    assert not report.failing
    values = [r for r in report.results if r.operator is Operator.EFFECT_VALUE]
    assert len(values) == 3
    assert {r.by for r in values} == {WAIT.name, SAID.name}
    assert all(r.fate is Fate.KILLED for r in values)


# ── every machine ──


@pytest.mark.parametrize("name", specifications())
def test_every_opaque_value_that_an_effect_carries_has_a_property(name: str) -> None:
    of = specifications()[name]
    carried = {(p.carrier, p.field) for p in of.properties if isinstance(p, Carries)}
    there = {(effect, field) for effect in of.machine.effects for field, f in fields_of(effect).items() if f.kind is Kind.OPAQUE}
    given = {(cls, field) for cls, field in there if _ever_given(of, cls, field)}
    assert given <= carried


def _ever_given(of: Spec, effect: type, field: str) -> bool:
    """Whether some row gives the field a value that is not a constant."""
    effects = [item.effect if isinstance(item, OnlyIf) else item for row in of.machine.rows for item in row.emit]
    return any(variables(getattr(e, field)) for e in effects if type(e) is effect)


def test_the_wait_of_the_turn_loop_is_asked_of_every_count() -> None:
    prop = next(p for p in TURN_LOOP.properties if p.name.startswith("a wait to retry"))
    assert isinstance(prop, Carries)
    late = evolve(TURN_LOOP.machine.row("StepRecorded/error before anything"))
    timer = next(item for item in late.emit if isinstance(item, StartTimer))
    wrong = evolve(timer, not_before_ms=choose(symbol_of_loop().retries == 3, 0, timer.not_before_ms))
    mutant = TURN_LOOP.machine.variant("m", replace={late.name: evolve(late, emit=(*late.emit[:-1], wrong))})
    judge = Judge(explore(TURN_LOOP, machine=mutant, depth=6))
    assert Carrying(mutant, prop, ()).prop is prop
    found = judge.violation(prop)
    assert found is not None
    assert "TurnLoop.retries = 3" in found.stories[0].broken


def symbol_of_loop() -> Any:
    return symbol(TURN_LOOP.machine.state)
