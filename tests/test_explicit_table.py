"""What every machine owes without writing it down: the table, its timers, and properties that can fail. Each check on a planted mistake."""

from __future__ import annotations

from enum import Enum
from typing import Any

import attrs
import pytest
import toys
from toys import GATE, GATE_SPEC, G, coin, gate, lock, queue, spec_of, then_gate, then_lock

from turnproof.checkers.explicit import check, judge_property
from turnproof.checkers.graph import explore
from turnproof.checkers.judge import Judge
from turnproof.checkers.own_checks import own_checks
from turnproof.checkers.replay import Run
from turnproof.checkers.story import tell
from turnproof.checkers.table import count_rows
from turnproof.checkers.type_shape import LISTED, implied_by_types
from turnproof.checkers.verdict import Engine, Outcome, Verdict
from turnproof.machines.kernel import (
    Machine,
    PauseTimer,
    ResumeTimer,
    StartTimer,
    StopTimer,
    TableError,
    all_of,
    implies,
    named,
    not_,
    only_if,
)
from turnproof.specs.language import (
    Always,
    EventuallyAlways,
    Fair,
    LeadsTo,
    Property,
    Sometimes,
    Step,
    at_most,
    count,
    emits,
    on,
    refused,
    taken,
)

CLOSING = toys.GateTimer.CLOSING
ANY = Sometimes("anything", gate.phase == toys.SHUT, requirements=())


def plant(replace: dict[str, Any], **more: Any) -> toys.AnyMachine:
    """The gate with rows changed: a dictionary of changed attributes, or rows to put in the place of one."""
    rows = {name: attrs.evolve(GATE.row(name), **new) if isinstance(new, dict) else new for name, new in replace.items()}
    return GATE.variant("gate_planted", replace=rows, **more)


def table_of(machine: toys.AnyMachine, **more: Any) -> dict[str, Verdict]:
    spec = spec_of(machine, ANY, **more)
    return {v.check: v for v in check(spec, explore(spec)) if v.engine is Engine.TABLE}


def failed(machine: toys.AnyMachine, **more: Any) -> dict[str, Verdict]:
    return {name: v for name, v in table_of(machine, **more).items() if v.outcome is Outcome.VIOLATED}


def test_the_gate_itself_owes_nothing() -> None:
    assert failed(GATE) == {}
    assert set(table_of(GATE)) == {
        "the machine takes a step",
        "every reachable pair has a row",
        "every row fires",
        "every guard is true somewhere and false somewhere",
        "every only_if() is true somewhere and false somewhere",
        "timer closing is armed exactly where the state says so, started and stopped once",
        "every requirement has a property, a named test or a system that discharges it",
    }


# ── the table ──


def test_a_hole_is_told_with_the_run_that_falls_into_it() -> None:
    (verdict,) = failed(plant({}, drop=("hold/otherwise",))).values()
    assert verdict.check == "every reachable pair has a row: HoldRequested"
    assert verdict.detail == "no row answers HoldRequested in 3 reachable pairs: add a row for it, last of its group"
    assert verdict.story is not None
    assert [step.event for step in verdict.story.steps] == ["HoldRequested"]
    assert verdict.story.steps[-1].answer == "refused: the table has no row for this event in this state"


def test_every_event_with_a_hole_is_named() -> None:
    found = failed(plant({}, drop=("hold/otherwise", "let go/otherwise")))
    assert sorted(found) == ["every reachable pair has a row: HoldEnded", "every reachable pair has a row: HoldRequested"]


def test_a_row_that_no_pair_reaches_is_dead() -> None:
    shadowed = plant({"hold/otherwise": (GATE.row("hold/otherwise"), G(toys.HoldRequested, refuse="never", name="hold/never"))})
    verdict = failed(shadowed)["every row fires"]
    assert (
        verdict.detail
        == "row hold/never never fires: no pair reaches it; the rows above it answer every HoldRequested: drop it, or move it up"
    )


def test_a_row_at_a_phase_that_is_never_reached_is_dead() -> None:
    unheld = plant({"hold": {"to": None, "data": None, "emit": (), "stay": True}})
    verdict = failed(unheld)["every row fires"]
    assert "row let go never fires: no pair reaches it; no reachable state is in held" in verdict.detail
    assert "row passed/held never fires" in verdict.detail


def test_a_guard_that_is_never_true_is_dead() -> None:
    verdict = failed(plant({"coin/enough": {"when": coin.good & (gate.fare == 2)}}))["every row fires"]
    assert "row coin/enough never fires: its guard `good and fare = 2` is false of all 2 pairs that reach it" in verdict.detail


def test_a_guard_that_is_never_false_decides_nothing() -> None:
    (verdict,) = failed(plant({"passed": {"when": gate.closing}})).values()
    assert verdict.check == "every guard is true somewhere and false somewhere"
    assert verdict.detail == "row passed: its guard `closing` is true of all 1 pairs that reach it and decides nothing: drop when="


def test_a_condition_of_an_effect_that_decides_nothing() -> None:
    always = failed(plant({"passed": {"emit": (only_if(gate.closing, StopTimer(CLOSING)), toys.Lock())}}))
    name = "every only_if() is true somewhere and false somewhere"
    assert always[name].detail == "row passed: `closing` is true of all its 1 steps: emit StopTimer without only_if()"
    never = failed(plant({"passed": {"emit": (StopTimer(CLOSING), only_if(gate.fare == 2, toys.Lock()))}}))
    assert never[name].detail == "row passed: `fare = 2` is false of all its 1 steps, so Lock is never emitted: drop it"


def test_an_assumption_that_nothing_satisfies_or_that_excludes_nothing() -> None:
    name = "the environment assumption can be met and excludes something"
    nothing = failed(GATE, assume=gate.phase == toys.OPEN)
    assert nothing[name].detail.startswith("no event satisfies the assumption `phase = open` in the initial state, so nothing was explored")
    everything = failed(GATE, assume=gate.fare <= 2)
    assert everything[name].detail == "the assumption `fare <= 2` excludes no step: drop assume="
    assert table_of(GATE, assume=not_(on(toys.HoldRequested)))[name].outcome is Outcome.HOLDS


def test_a_machine_that_takes_no_step_shows_nothing() -> None:
    inert = GATE.variant("inert", drop=("coin/enough", "broke"))
    assert failed(inert)["the machine takes a step"].detail == (
        "no step is taken from any state explored, so every property holds for want of runs"
    )


def test_pairs_are_counted_row_by_row() -> None:
    counts = {count.row: count for count in count_rows(explore(GATE_SPEC))}
    assert (counts["coin/enough"].reached, counts["coin/enough"].fired, counts["coin/enough"].passed) == (2, 1, 1)
    assert (counts["coin/open"].reached, counts["coin/open"].fired) == (4, 4)
    assert sum(count.fired for count in counts.values()) == 28


# ── timers ──

START, STOP, PAUSE, RESUME = StartTimer(CLOSING), StopTimer(CLOSING), PauseTimer(CLOSING), ResumeTimer(CLOSING)
BREAKS: dict[str, tuple[dict[str, Any], int]] = {
    "it is started while it is armed": ({"coin/enough": {"emit": (toys.Unlock(), START, START)}}, 1),
    "it is started while it is paused": ({"let go": {"emit": (START,)}}, 3),
    "it is stopped while it is off": ({"broke": {"emit": (STOP, toys.Unlock())}}, 1),
    "it is paused while it is off": ({"coin/enough": {"emit": (toys.Unlock(), PAUSE)}}, 1),
    "it is paused while it is paused": ({"hold": {"emit": (PAUSE, PAUSE)}}, 2),
    "it is resumed while it is off": ({"coin/enough": {"emit": (toys.Unlock(), RESUME)}}, 1),
    "it is resumed while it is armed": ({"passed": {"emit": (RESUME, STOP, toys.Lock())}}, 2),
    "its expiry is taken while it is off": ({"closing": {"at": (toys.SHUT, toys.OPEN)}}, 1),
    "its expiry is taken while it is paused": ({"closing": {"at": (toys.HELD, toys.OPEN)}}, 3),
    "its expiry is not taken while it is armed, so it never fires again": ({"closing": {"at": toys.HELD}}, 2),
    "the effects leave it off, the state says armed": ({"coin/enough": {"emit": (toys.Unlock(),)}}, 1),
    "the effects leave it armed, the state says off": ({"passed": {"emit": (toys.Lock(),)}}, 2),
    "the effects leave it armed, the state says paused": ({"hold": {"emit": ()}}, 2),
    "the effects leave it paused, the state says armed": ({"let go": {"emit": (toys.Lock(),)}}, 3),
    "the state says that it is armed and paused at once": ({"hold": {"data": None}}, 2),
}


@pytest.mark.parametrize("message", BREAKS)
def test_each_breach_of_the_timers_discipline_has_its_sentence(message: str) -> None:
    replace, length = BREAKS[message]
    found = failed(plant(replace), discipline={CLOSING: ("G-5",)}, requirements={"G-5": ""})
    verdict = found[f"timer closing: {message}"]
    assert verdict.requirements == ("G-5",)
    assert verdict.story is not None
    assert verdict.story.length == length
    assert verdict.story.broken == f"timer closing: {message} (G-5): a timer that fires twice or never, and a state that does not know it"


def test_nothing_is_armed_where_the_machine_is_released() -> None:
    armed: toys.AnyMachine = Machine(**{**_parts(GATE), "released": gate.phase == toys.OPEN})
    assert failed(armed)["timer closing: it is still armed where the machine is released"].story is not None
    paused: toys.AnyMachine = Machine(**{**_parts(GATE), "released": gate.phase == toys.HELD})
    assert failed(paused)["timer closing: it is still paused where the machine is released"].story is not None


def _parts(machine: toys.AnyMachine) -> dict[str, Any]:
    return {f.name: getattr(machine, f.name) for f in attrs.fields(type(machine)) if f.init}


def test_a_timer_that_is_armed_in_the_initial_state() -> None:
    armed = attrs.evolve(GATE, initial=toys.Gate(phase=toys.OPEN, closing=True))
    verdict = failed(armed)["timer closing: the effects leave it off, the state says armed"]
    assert verdict.story is not None
    assert verdict.story.length == 0


def test_a_timer_that_is_never_armed() -> None:
    unarmed = {"coin/enough": {"emit": (toys.Unlock(),), "data": None}, "broke": {"emit": (toys.Unlock(),)}}
    verdict = failed(plant(unarmed, drop=("hold", "let go", "passed", "closing")))["timer closing is armed by some run"]
    assert verdict.detail == "no reachable state says armed: `closing` is never true"


def test_discipline_of_an_unknown_timer_is_refused() -> None:
    class Other(Enum):
        X = "x"

    with pytest.raises(TableError, match="discipline= names the timer X, which gate does not have"):
        table_of(GATE, discipline={Other.X: ()})


# ── properties that cannot fail ──


def judged(prop: Property, machine: toys.AnyMachine = GATE, **more: Any) -> Verdict:
    spec = spec_of(machine, prop, **more)
    return judge_property(Judge(explore(spec)), prop)


WONDER = Fair("wonder", gate.fare >= 0, emits(toys.Lock) & on(toys.HoldEnded))
NOBODY_PASSES = Fair("nobody", gate.fare == 2, on(toys.Passed))
FOR_WANT = "vacuous: property 'x' holds for want of runs; in 1 states where `phase = open` holds, the first 1 events from the start, "
IMPLIED = "vacuous: the types alone imply it; it is true of all {} combinations of values, whatever the machine does"

VACUOUS: dict[str, tuple[Property, str]] = {
    "antecedent of a state": (
        Always("x", implies(gate.fare == 2, gate.closing), requirements=()),
        "vacuous: the antecedent `fare = 2` is never reached",
    ),
    "antecedent of a step": (
        Step("x", implies(on(toys.Passed) & (gate.fare == 2), refused()), requirements=()),
        "vacuous: the antecedent `on Passed and fare = 2` is never reached",
    ),
    "antecedent of one conjunct": (
        Step("x", not_(emits(toys.Unlock) & emits(toys.Lock)) & implies(emits(toys.Lock) & on(toys.HoldEnded), taken()), requirements=()),
        "vacuous: the antecedent `emitted Lock() >= 1 and on HoldEnded` is never reached",
    ),
    "antecedent under a name": (
        Always("x", named("no dear gate", implies(gate.fare == 2, gate.closing)), requirements=()),
        "vacuous: the antecedent `fare = 2` is never reached",
    ),
    "a fairness of what holds at last": (
        EventuallyAlways("x", gate.fare <= 1, requirements=(), fairness=(NOBODY_PASSES,)),
        "vacuous: the fairness assumption 'nobody' is enabled nowhere: drop it, or correct its condition",
    ),
    "types of a state": (Always("x", gate.fare <= 2, requirements=()), IMPLIED.format(3)),
    "a tautology of two fields": (
        Always("x", (gate.phase == toys.SHUT) | (gate.phase != toys.SHUT) | gate.closing, requirements=()),
        IMPLIED.format(8),
    ),
    "shape of a step": (
        Step("x", implies(refused(), (then_gate.phase == gate.phase) & not_(emits(toys.Unlock))), requirements=()),
        IMPLIED.format(144),
    ),
    "a promise never made": (
        LeadsTo("x", gate.fare == 2, gate.phase == toys.SHUT, requirements=()),
        "vacuous: `fare = 2` is never reached",
    ),
    "a promise kept at once": (
        LeadsTo("x", gate.phase == toys.OPEN, gate.closing, requirements=()),
        "vacuous: in every state where `phase = open` holds, `closing` holds already: write an Always or a Step",
    ),
    "a fairness never enabled": (
        LeadsTo("x", gate.phase == toys.HELD, gate.phase != toys.HELD, requirements=(), fairness=(toys.LET_GO, NOBODY_PASSES)),
        "vacuous: the fairness assumption 'nobody' is enabled nowhere: drop it, or correct its condition",
    ),
    "a fairness nothing can serve": (
        LeadsTo("x", gate.phase == toys.OPEN, gate.phase == toys.BROKEN, requirements=(), fairness=(WONDER,)),
        FOR_WANT + "no run can satisfy 'wonder'",
    ),
}


@pytest.mark.parametrize("what", VACUOUS)
def test_a_property_that_cannot_fail_is_a_failure(what: str) -> None:
    prop, message = VACUOUS[what]
    verdict = judged(prop)
    assert (verdict.outcome, verdict.detail) == (Outcome.VIOLATED, message)


def test_a_vacuous_property_that_is_proved_is_no_contradiction_of_the_engines() -> None:
    prop = VACUOUS["antecedent of a state"][0]
    vacuous = judged(prop)
    proved = attrs.evolve(vacuous, engine=Engine.SYMBOLIC, outcome=Outcome.HOLDS, detail="")
    broken = attrs.evolve(vacuous, story=tell(Run(GATE_SPEC), "a run that breaks it", "pass"))
    for explicit, outcome in ((vacuous, Outcome.HOLDS), (broken, Outcome.VIOLATED)):
        (agreement,) = (v for v in own_checks(spec_of(GATE, prop), {"explicit", "symbolic"}, [explicit, proved], None))
        assert agreement.outcome is outcome


def test_a_sometimes_that_is_never_reached() -> None:
    assert judged(Sometimes("x", gate.fare == 2, requirements=())).detail == "never reached: no run of the machine comes there"
    assert judged(Sometimes("x", on(toys.Passed) & emits(toys.Unlock), requirements=())).outcome is Outcome.VIOLATED
    assert judged(Sometimes("x", on(toys.Passed) & emits(toys.Lock), requirements=())).outcome is Outcome.HOLDS


BROKEN_OR_GOOD = implies(on(toys.CoinInserted) & coin.good, not_(refused()) | (gate.phase == toys.BROKEN))
HANDED_ON = (lock.owner == "") | (then_lock.owner == "") | (lock.owner == then_lock.owner)

MEANINGFUL: dict[str, tuple[toys.AnyMachine, Property]] = {
    "a bound of a counter, which has none in production": (toys.QUEUE, Always("x", queue.waiting <= 3, requirements=())),
    "tokens that differ": (toys.LOCK, Step("x", HANDED_ON, requirements=())),
    "a number of effects": (GATE, Step("x", count(toys.Unlock) <= 1, requirements=())),
    "a step that is taken": (
        GATE,
        Step("x", implies(on(toys.Passed) & taken(), (gate.phase == toys.OPEN) | (gate.phase == toys.HELD)), requirements=()),
    ),
    "two conjuncts": (GATE, Step("x", (not_(on(toys.CoinInserted)) | not_(taken()) | coin.good) & BROKEN_OR_GOOD, requirements=())),
}


@pytest.mark.parametrize("what", MEANINGFUL)
def test_a_property_that_can_fail_is_none(what: str) -> None:
    machine, prop = MEANINGFUL[what]
    assert judged(prop, machine).outcome is Outcome.HOLDS


def test_at_most_is_not_implied_by_the_range_of_its_counter() -> None:
    prop, history = at_most(2, count(toys.Lock), "x", variable="locks", requirements=())
    assert judged(prop, GATE.variant("gate_short", drop=("closing", "passed")), histories=(history,)).outcome is Outcome.HOLDS


def test_too_many_combinations_are_sampled_and_left_to_the_solver() -> None:
    """A sample that violates the property decides; one that does not decides nothing."""
    graph = explore(GATE_SPEC)
    timers = (StartTimer, StopTimer, PauseTimer, ResumeTimer)
    wide = all_of(*(gate.fare + then_gate.fare + count(effect) >= 0 for effect in (toys.Unlock, toys.Lock, *timers)))
    sizes = 3 * 3 * 2**6 * 3
    assert sizes < LISTED
    assert implied_by_types(graph, wide, "x", step=True) == sizes
    wider = all_of(*(gate.fare + count(effect) < 40 for effect in (toys.Unlock, toys.Lock, *timers))) | not_(taken()) | taken()
    assert implied_by_types(graph, wider, "x", step=True) == 0, "more combinations than are listed: not known here"
