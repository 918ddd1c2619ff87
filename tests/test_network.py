"""The explicit engine for systems: verdicts, stories that replay, vacuity, variants, and searches that are cut short."""

from __future__ import annotations

from typing import Any

import attrs
import pytest
from systems import (
    CALL,
    CALL_SPEC,
    CRASHES,
    FIRES,
    HOLDER,
    LOSSES,
    Ask,
    Asked,
    AskRequested,
    Caller,
    Crashed,
    ReplyArrived,
    ReplyTimedOut,
    Timer,
    Truth,
    Work,
    answer,
    caller,
    ground,
    replies,
    service,
)

from turnproof.checkers.network.explicit import check, check_variants, explore, violation
from turnproof.checkers.network.play import Play, is_fair
from turnproof.checkers.network.run import Broken
from turnproof.checkers.story import render_mermaid, render_pytest, render_text
from turnproof.checkers.verdict import Outcome, Verdict
from turnproof.machines.kernel import Row, TableError, implies, not_
from turnproof.specs.language import Always, EventuallyAlways, Fair, LeadsTo, Property, Sometimes, Step
from turnproof.specs.system import Channel, NoDeadlock, Spontaneous, Switch, System, SystemSpec, SystemVariant, Unsent, Wire

HOLDS, VIOLATED, UNDETERMINED = Outcome.HOLDS, Outcome.VIOLATED, Outcome.UNDETERMINED


def checked(spec: SystemSpec, **options: Any) -> dict[str, Verdict]:
    """Sentence -> verdict."""
    graph = explore(spec, **options)
    verdicts = {v.check: v for v in check(spec, graph)}
    assert len(verdicts) >= len(spec.properties)
    return verdicts


def about(*properties: Property, system: System = CALL) -> SystemSpec:
    return SystemSpec(system=system, requirements={}, properties=properties)


def verdict_on(prop: Property, system: System = CALL, **options: Any) -> Verdict:
    return checked(about(prop, system=system), **options)[prop.name]


def test_the_toy_holds() -> None:
    verdicts = checked(CALL_SPEC)
    assert {v.outcome for v in verdicts.values()} == {HOLDS}
    assert verdicts["a wait ends"].how == "exhaustive (55 states, 100 steps; 2 tokens, counters to 2)"
    assert verdicts["a wait ends"].requirements == ("R-1",)


def test_levels_count_the_states() -> None:
    graph = explore(CALL_SPEC)
    assert sum(graph.walk.levels) == graph.walk.states == 55
    assert graph.walk.depth == 7


def replayed(story_of: Verdict, spec: SystemSpec) -> Play:
    """The story's own steps played through :class:`Play`; what its pasteable test does."""
    assert story_of.story is not None
    run = Play(spec)
    for step in story_of.story.steps:
        eval(f"run.send({step.code})", {"run": run, **NAMES})
    return run


NAMES = {cls.__name__: cls for cls in (AskRequested, Crashed, ReplyArrived, Timer, Asked)}


def exec_claim(verdict: Verdict, spec: SystemSpec) -> None:
    assert verdict.story is not None
    exec(verdict.story.claim, {"run": replayed(verdict, spec), **NAMES})


BROKEN: list[tuple[Property, int]] = [
    (Always("nobody gives up", caller.now.phase != Caller.GAVE_UP, requirements=()), 2),
    (Always("never two replies under way", replies.length < 2, requirements=()), 3),
    (Step("no reply is late", not_(caller.ignored(ReplyArrived)), requirements=()), 3),
    (Step("no reply gets lost", not_(replies.loses), requirements=()), 2),
    (Step("a crash changes nothing", implies(service.took(Crashed), service.next.phase == service.now.phase), requirements=()), 1),
    (NoDeadlock("somebody can always act", requirements=()), 4),
    (
        LeadsTo(
            "a wait is answered",
            caller.now.phase == Caller.WAITING,
            caller.now.phase == Caller.ANSWERED,
            fairness=(FIRES,),
            requirements=(),
        ),
        2,
    ),
    (LeadsTo("a wait ends without a clock", caller.now.phase == Caller.WAITING, caller.now.phase != Caller.WAITING, requirements=()), 1),
    (LeadsTo("an answer arrives", service.took(Asked), caller.took(ReplyArrived), fairness=(FIRES,), requirements=()), 2),
    # The step that leads into the wait comes before it, and keeps nothing that the wait promises.
    (LeadsTo("who waits asks again", caller.now.phase == Caller.WAITING, caller.took(AskRequested), requirements=()), 1),
    (EventuallyAlways("it is answered at last", caller.now.phase == Caller.ANSWERED, fairness=(FIRES,), requirements=()), 0),
]


@pytest.mark.parametrize(("prop", "length"), BROKEN, ids=lambda x: getattr(x, "name", ""))
def test_a_broken_property_has_the_shortest_story_and_it_replays(prop: Property, length: int) -> None:
    spec = about(prop)
    found = checked(spec)[prop.name]
    assert found.outcome is VIOLATED
    assert found.story is not None
    assert found.story.length == length
    run = replayed(found, spec)
    assert not run.keeps(prop.name, loop_from=found.story.loop_from)
    with pytest.raises(AssertionError):
        exec_claim(found, spec)
    assert prop.name in render_text(found.story)
    assert prop.name in render_pytest(found.story)
    assert render_mermaid(found.story).startswith("sequenceDiagram")


def test_a_story_tells_who_did_what_and_what_it_set_off() -> None:
    found = verdict_on(BROKEN[2][0])
    assert found.story is not None
    asked, expired, late = found.story.steps
    assert (asked.actor, asked.event, asked.answer) == ("environment", "caller <- AskRequested", "taken")
    assert asked.effects == (
        "caller.Ask -> service <- Asked, taken",
        "caller.StartTimer(timer=reply, not_before_ms=0)",
        "service.Answer(number=1) -> replies",
    )
    assert ("replies", "[]", "[ReplyArrived(number=1)]") in [(c.field, c.before, c.after) for c in asked.changes]
    assert ("budget asks", "2", "1") in [(c.field, c.before, c.after) for c in asked.changes]
    assert (expired.actor, expired.event) == ("timer reply", "caller <- ReplyTimedOut")
    assert (late.actor, late.answer) == ("channel replies", "ignored: a late or second reply")
    assert late.code == '"replies", ReplyArrived(number=1)'


def test_a_sequence_diagram_has_a_column_for_each_part() -> None:
    spec = about(BROKEN[2][0])
    found = violation(graph := explore(spec), spec.properties[0])
    assert found is not None
    lines = found.diagram(graph).splitlines()
    assert lines[:5] == ["sequenceDiagram", *(f"    participant {name}" for name in ("outside", "caller", "service", "ground"))]
    assert "    outside->>caller: 1. AskRequested" in lines
    assert "    caller->>service: Asked" in lines
    assert "    service--)caller: ReplyArrived(number=1) into replies" in lines
    assert "    outside--xcaller: 3. ReplyArrived(number=1) [channel replies] (ignored: a late or second reply)" in lines
    assert lines[-1] == "    Note over outside,ground: broken: no reply is late"
    waits = about(BROKEN[7][0])
    endless = violation(graph := explore(waits), waits.properties[0])
    assert endless is not None
    assert "nothing happens any more, for ever" in endless.diagram(graph)
    lost = about(BROKEN[3][0])
    loses = violation(graph := explore(lost), lost.properties[0])
    assert loses is not None
    assert "    outside-xcaller: 2. ReplyArrived(number=1) is lost in replies" in loses.diagram(graph)


def test_a_switch_that_is_off_is_off() -> None:
    late = Step("no reply gets lost", not_(replies.loses), requirements=())
    spec = about(late)
    assert checked(spec, off=[LOSSES.name])[late.name].outcome is HOLDS
    assert "without replies get lost" in checked(spec, off=[LOSSES.name])[late.name].how
    with pytest.raises(KeyError, match="call has no switch 'x'; its switches: replies get lost, the server crashes"):
        explore(spec, off=["x"])


# ── vacuity ──

IDLE = Always("idle or not", (caller.now.phase == Caller.IDLE) | (caller.now.phase != Caller.IDLE), requirements=())


@pytest.mark.parametrize(
    ("prop", "sentence"),
    [
        (Sometimes("two late replies", caller.received(ReplyArrived) == 2, requirements=()), "never reached"),
        (Sometimes("wrong", ground.now.phase == Truth.WRONG, requirements=()), "never reached"),
        (
            Always("wrong is idle", implies(ground.now.phase == Truth.WRONG, caller.now.phase == Caller.IDLE), requirements=()),
            "vacuous: the antecedent `ground.phase = wrong` is never reached",
        ),
        (
            Step("wrong too", implies(caller.on(AskRequested), caller.received(AskRequested) == 1)
                & implies(caller.took(ReplyTimedOut) & service.on(Asked), caller.now.phase == Caller.IDLE), requirements=()),
            "vacuous: the antecedent `caller taken ReplyTimedOut >= 1 and service received Asked >= 1` is never reached",
        ),
        (LeadsTo("from wrong", ground.now.phase == Truth.WRONG, caller.now.phase == Caller.IDLE, requirements=()), "is never reached"),
        (LeadsTo("at once", caller.now.phase == Caller.IDLE, caller.now.phase == Caller.IDLE, requirements=()), "holds already"),
        (
            LeadsTo("fair for nobody", caller.now.phase == Caller.WAITING, caller.now.phase != Caller.WAITING, requirements=(),
                fairness=(FIRES, Fair("wrong acts", ground.now.phase == Truth.WRONG, caller.on(AskRequested)))),
            "the fairness assumption 'wrong acts' is enabled nowhere",
        ),
        (
            LeadsTo("fair for no run", caller.now.phase == Caller.WAITING, caller.now.phase == Caller.IDLE, requirements=(),
                fairness=(Fair("impossible", caller.now.phase != Caller.IDLE, caller.refused(ReplyTimedOut)),)),
            "it holds for want of runs",
        ),
    ],
    ids=lambda x: getattr(x, "name", ""),
)  # fmt: skip
def test_what_cannot_fail_fails(prop: Property, sentence: str) -> None:
    found = verdict_on(prop)
    assert found.outcome is VIOLATED
    assert sentence in found.detail
    assert found.story is None


NEVER = Switch("never")
SOLID = service.machine.variant("solid", replace={"Crashed/up": Row(Crashed, at=Work.UP, ignore="no")})
down = service.now.phase == Work.DOWN


@pytest.mark.parametrize(
    ("system", "check_name", "sentence"),
    [
        (
            attrs.evolve(CALL, spontaneous=(*CALL.spontaneous, Spontaneous(service, Asked, when=ground.now.phase == Truth.WRONG))),
            "every spontaneous event is taken at last",
            "service.Asked never comes: its guard never holds",
        ),
        (
            CALL.with_machines("solid", service=SOLID),
            "every spontaneous event is taken at last",
            "service.Crashed comes, but is never taken",
        ),
        (
            attrs.evolve(CALL, wires=(*CALL.wires, Wire(service, answer, service, Asked, where=answer.number > 2))),
            "every wire and copy is used",
            "wire service.Answer -> service.Asked: never used",
        ),
        (
            attrs.evolve(CALL, spontaneous=(*CALL.spontaneous, Spontaneous(service, Asked, switch=NEVER, when=down)),
                         switches=(*CALL.switches, NEVER)),
            "every switch has an effect",
            "the switch 'never' has no effect: nothing it allows ever changes a state",
        ),
        (
            attrs.evolve(CALL).with_machines("calm", caller=caller.machine.variant("calm", replace={
                "AskRequested/idle+gave_up": Row(AskRequested, at=(Caller.IDLE, Caller.GAVE_UP), to=Caller.WAITING, emit=(Ask(),))})),
            "every timer expires at last",
            "caller: reply expires, never: if it is never started here on purpose, write Unsent(caller, ReplyTimedOut)",
        ),
        (
            attrs.evolve(CALL, unsent=(Unsent(caller, ReplyTimedOut),)),
            "every timer expires at last",
            "caller: reply expires, although Unsent(caller, ReplyTimedOut) says that it never does",
        ),
        (
            attrs.evolve(CALL, channels=(quiet := Channel("replies", caller, capacity=2, when=ground.now.phase == Truth.WRONG),),
                wires=(CALL.wires[0], Wire(service, answer, quiet, ReplyArrived(answer.number))), switches=(CRASHES,)),
            "every channel delivers, and fails as it may",
            "replies never delivers",
        ),
    ],
)  # fmt: skip
def test_what_no_run_uses_fails(system: System, check_name: str, sentence: str) -> None:
    found = checked(about(IDLE, system=system))[check_name]
    assert found.outcome is VIOLATED
    assert sentence in found.detail


# ── faults of the system itself ──


def test_an_overflow_is_told_with_its_story_and_nothing_else_holds_any_more() -> None:
    narrow = Channel("replies", caller, capacity=1)
    system = attrs.evolve(
        CALL,
        channels=(narrow,),
        wires=(CALL.wires[0], Wire(service, answer, narrow, ReplyArrived(answer.number))),
        spontaneous=(*CALL.spontaneous, Spontaneous(service, Asked)),
        switches=(CRASHES,),
    )
    gives_up = Always("nobody gives up", caller.now.phase != Caller.GAVE_UP, requirements=())
    verdicts = checked(about(IDLE, gives_up, system=system))
    overflow = verdicts["no channel overflows"]
    assert overflow.outcome is VIOLATED
    assert overflow.detail == "the channel replies overflows: it holds 1, and ReplyArrived(number=2) is sent into it"
    assert overflow.story is not None
    assert overflow.story.length == 1
    assert overflow.story.broken.startswith("then service <- Asked: the channel replies overflows")
    with pytest.raises(Broken, match="the channel replies overflows"):
        exec_claim(overflow, about(IDLE, system=system))
    assert verdicts[IDLE.name].outcome is UNDETERMINED
    assert verdicts["every effect is received"].outcome is UNDETERMINED
    assert verdicts[gives_up.name].outcome is VIOLATED, "what was found is found"


# ── searches that end early ──


def test_a_search_cut_short_shows_only_what_it_found() -> None:
    gives_up = Always("nobody gives up", caller.now.phase != Caller.GAVE_UP, requirements=())
    verdicts = checked(
        about(IDLE, gives_up, BROKEN[6][0], Sometimes("answered", caller.now.phase == Caller.ANSWERED, requirements=())), limit=8
    )
    assert verdicts[IDLE.name].outcome is UNDETERMINED
    assert "the limit of 8 states ended the search at" in verdicts[IDLE.name].detail
    assert verdicts[gives_up.name].outcome is VIOLATED
    assert verdicts["a wait is answered"].outcome is UNDETERMINED
    assert verdicts["every wire and copy is used"].outcome in (HOLDS, UNDETERMINED)
    assert VIOLATED not in {v.outcome for n, v in verdicts.items() if n.startswith("every")}


def test_ctrl_c_ends_in_undetermined(monkeypatch: pytest.MonkeyPatch) -> None:
    class Interrupting:
        def say(self, what: str, done: int, total: int | None = None) -> None:
            raise KeyboardInterrupt

    spec = about(IDLE)
    graph = explore(spec, progress=Interrupting())
    assert not graph.walk.complete
    assert {v.check: v for v in check(spec, graph)}[IDLE.name].detail.startswith("an interrupt ended the search")


# ── variants ──

FORGETFUL = caller.machine.variant(
    "forgetful",
    replace={"AskRequested/idle+gave_up": Row(AskRequested, at=(Caller.IDLE, Caller.GAVE_UP), to=Caller.WAITING, emit=(Ask(),))},
)


def variant(**violates: int) -> SystemSpec:
    names = {"timer": "who waits has a timer", "ends": "a wait ends", "served": "only a served caller is answered"}
    wrong = SystemVariant(
        system=CALL.with_machines("call without a timer", caller=FORGETFUL),
        about="no timer was started",
        violates={names[n]: k for n, k in violates.items()},
    )
    return attrs.evolve(CALL_SPEC, variants=(wrong,))


def test_a_variant_fails_as_it_should() -> None:
    found = check_variants(variant(timer=1))
    assert [(v.outcome, v.check, v.detail) for v in found] == [(HOLDS, "fails as it should: who waits has a timer", "")]
    assert found[0].story is not None
    assert found[0].story.length == 1
    assert "SPEC" in "".join(found[0].story.setup)


@pytest.mark.parametrize(
    ("violates", "detail"),
    [
        ({"timer": 2}, "it is broken in 1 step at the shortest, not in 2"),
        ({"served": 3}, "it is not broken; it should be in 3 steps. What it was: no timer"),
    ],
)
def test_a_variant_that_passes_or_fails_otherwise_is_violated(violates: dict[str, int], detail: str) -> None:
    found = check_variants(variant(**violates))
    assert found[0].outcome is VIOLATED
    assert found[0].detail.startswith(detail)


# ── bounds and timers ──


def test_a_paused_timer_and_strong_fairness() -> None:
    holder = HOLDER.parts[0]
    waits, over = holder.now.phase == Caller.WAITING, holder.now.phase == Caller.GAVE_UP
    fires = Fair("the timer fires", holder.running(Timer.REPLY), holder.on(ReplyTimedOut))
    weak = LeadsTo("it ends", waits, over, fairness=(fires,), requirements=())
    found = verdict_on(weak, system=HOLDER)
    assert found.outcome is VIOLATED, "held and let go again and again, it never fires"
    assert found.story is not None
    let_go = Fair("it is let go", holder.paused(Timer.REPLY), not_(holder.next.phase == Caller.ANSWERED))
    strong = attrs.evolve(weak, fairness=(attrs.evolve(fires, strong=True), let_go))
    assert verdict_on(strong, system=HOLDER).outcome is HOLDS


def test_a_loop_that_is_shown_is_fair_by_itself() -> None:
    """What is checked of each lasso when it is replayed: a wait without a clock is no run in which the timer fires."""
    run = Play(CALL_SPEC)
    run.send("caller", AskRequested())
    assert is_fair(run.runner, (), run.worlds, run.steps, 2)
    assert not is_fair(run.runner, (FIRES,), run.worlds, run.steps, 2)
    run.send("caller", Timer.REPLY)
    assert is_fair(run.runner, (FIRES,), run.worlds, run.steps, 2)
    assert is_fair(run.runner, (FIRES,), run.worlds, run.steps, 3)


def test_promises_that_ask_too_much_are_refused() -> None:
    many = tuple(Fair(f"{n} replies go", replies.length >= n, replies.delivers) for n in range(61))
    prop = LeadsTo("it ends", caller.now.phase == Caller.WAITING, caller.now.phase == Caller.IDLE, fairness=many, requirements=())
    with pytest.raises(TableError, match="63 different formulas in promises about the future; at most 60 are judged together: 'it ends'"):
        verdict_on(prop)


def test_play_refuses_what_cannot_happen() -> None:
    run = Play(CALL_SPEC)
    with pytest.raises(ValueError, match="step 1: caller ReplyArrived\\(number=1\\) cannot happen here"):
        run.send("caller", ReplyArrived(1))
    with pytest.raises(ValueError, match="step 1: replies ReplyArrived"):
        run.send("replies", ReplyArrived(1))
    run.send("caller", AskRequested())
    run.send("replies", ReplyArrived(1), "lose")
    assert run.now.channels == ((),)
    assert run.keeps("who waits has a timer")
    with pytest.raises(ValueError, match="is about runs that never end"):
        run.keeps("a wait ends")
