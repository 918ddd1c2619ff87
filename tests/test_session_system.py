"""The OpenCode session: what each version of the mark does, what V4 still gets wrong, and what no adapter can know."""

from __future__ import annotations

from pathlib import Path

import pytest

from turnproof.checkers.network.explicit import NetworkGraph, explore, violation
from turnproof.checkers.network.play import Play
from turnproof.checkers.network.triggers import show_event
from turnproof.machines import session as target
from turnproof.machines import session_start, session_stop
from turnproof.machines.session_mark import MACHINE as V4
from turnproof.machines.session_start import Prepared, SendDue
from turnproof.machines.session_stream import MACHINE as STREAM
from turnproof.machines.session_stream import Arrived, Dropped, Published, SnapshotTaken, Stream, StreamPhase, Subscribed, What
from turnproof.machines.session_words import Past
from turnproof.specs import session_history
from turnproof.specs import session_properties as p
from turnproof.specs.catalog import specifications, systems
from turnproof.specs.language import Sometimes, Spec
from turnproof.specs.session_defects import ALONE, DEFECTS, Defect, only, question
from turnproof.specs.session_environment import Admitted, Finished, Joined, Restarted, StartPublished
from turnproof.specs.session_history import LENGTHS, V3, VERSIONS, historic
from turnproof.specs.session_parts import ASKS, DEATH, MORE, N2, POWERS, World
from turnproof.specs.session_requests import Prompted, PromptTaken, ReplyHandled
from turnproof.specs.session_requirements import REQUIREMENTS, TESTS
from turnproof.specs.session_system import SPEC
from turnproof.specs.session_target import BLIND, ONE, TARGET, WHOLE
from turnproof.specs.system import Switch, SystemSpec

BY_NAME = {machine.name: machine for machine in VERSIONS}


def walked(world: World, *names: str, until_broken: bool = True) -> NetworkGraph:
    """This world, asked for the properties of these names only."""
    wanted = tuple(q for q in p.properties(world) if q.name in names)
    assert len(wanted) == len(names)
    spec = SystemSpec(system=world.system("session_asked"), requirements=REQUIREMENTS, properties=wanted, tokens=3, counter=3)
    return explore(spec, until_broken=until_broken)


def shortest(graph: NetworkGraph, name: str) -> int | None:
    """Steps of the shortest violation; None if the whole graph has none."""
    found = violation(graph, next(q for q in graph.properties if q.name == name))
    if found is None:
        assert graph.walk.complete
        assert not graph.walk.flaws
        return None
    return found.story.length


# ── history ──


@pytest.mark.parametrize("version", LENGTHS)
def test_the_versions_do_what_the_history_says(version: str) -> None:
    """R-SES-30: V0 to V3 break what they broke, at these lengths; V4 breaks none of it, and its graph is explored whole."""
    graph = walked(historic(BY_NAME[version]), *LENGTHS[version])
    assert {name: shortest(graph, name) for name in LENGTHS[version]} == LENGTHS[version]


def test_with_a_child_the_approved_rule_sends_a_prompt_unchecked() -> None:
    """The upstream analysis found none; the end of a report spends the mark. A continuation is never stuck all the same."""
    graph = walked(historic(V4, child=True), p.FAILED_ASKED)
    assert shortest(graph, p.FAILED_ASKED) == 14


# ── defects of V4 ──


def test_the_defects_are_variants_that_verification_must_see_fail() -> None:
    """At their lengths: ``make verify`` fails if one of them passes, or is shorter or longer."""
    named = {v.system.name: dict(v.violates) for v in SPEC.variants}
    assert len(DEFECTS) == len({d.name for d in DEFECTS}) == 12
    assert all(named[f"session_v4_{d.name}"] == {d.breaks: d.length} for d in DEFECTS)


@pytest.mark.parametrize("power", [*POWERS, *MORE], ids=lambda s: str(s.name))
def test_what_a_power_breaks_alone(power: Switch) -> None:
    world = only(power)
    names = [q.name for q in p.properties(world)]
    graph = walked(world, *names, until_broken=False)
    assert graph.walk.complete
    broken = {name: shortest(graph, name) for name in names}
    assert {name: length for name, length in broken.items() if length is not None} == ALONE.get(power.name, {})


@pytest.mark.parametrize("defect", DEFECTS, ids=lambda d: str(d.name))
def test_a_defect_needs_each_of_its_powers(defect: Defect) -> None:
    for power in defect.needs:
        if power is ASKS:
            continue  # without it nothing asks, and there is no such property
        graph = walked(only(*(s for s in defect.needs if s is not power)), defect.breaks)
        assert shortest(graph, defect.breaks) is None, f"{defect.name} does not need {power.name}"


@pytest.mark.parametrize("defect", DEFECTS, ids=lambda d: str(d.name))
def test_the_target_does_not_have_it(defect: Defect) -> None:
    """The same powers against the target, explored whole."""
    mine = defect.world
    world = World(TARGET, mine.without, drops=1)
    assert shortest(walked(world, defect.breaks), defect.breaks) is None


def test_each_rule_of_the_target_removes_a_defect() -> None:
    text = target.__doc__ or ""
    assert {defect.rule for defect in DEFECTS} == {n for n in range(1, 10) if f"\n  {n}. " in text.split("What it promises")[0]}


@pytest.mark.parametrize("machine", [V3, V4], ids=["v3", "v4"])
def test_the_question_of_the_last_review(machine: session_history.Marked) -> None:
    """R-SES-33: can an earlier prompt still run when a later one is sent after a reconnect?

    Yes, in V3 and V4, also with strict admission: a reconnect ends a turn whose prompt is on its way. The user sees it interrupted, then an
    answer they were told they would not get, beside the next one. For a prompt whose request failed unclearly the answer is no with strict
    admission (the whole graph), and yes with late admission: the idle session promotes the mark, and the prompt's own start clears it.
    """
    strict, late = question(machine, late=False), question(machine, late=True)
    assert N2 in strict.without
    assert N2 not in late.without
    graph = walked(strict, p.ASKED, p.FAILED_ASKED, until_broken=False)
    assert shortest(graph, p.ASKED) is not None
    assert shortest(graph, p.FAILED_ASKED) is None
    assert shortest(walked(late, p.FAILED_ASKED), p.FAILED_ASKED) is not None


# ── what no adapter can know ──


def told(run: Play) -> list[str]:
    """Everything that any machine of the adapter was told: events of the session, the operations and the stream, as they handled them."""
    mine = {run.runner.index[name] for name in ("session", "start", "stop_1", "service")}
    return [show_event(d.event) for step in run.steps for d in step.deliveries if d.part in mine]


def run_of(restart: bool) -> Play:
    """A prompt runs; the stream breaks; when it is back, the session is active and the history holds the prompt and a report.

    With ``restart`` the server lost the run, and what is active serves the report alone; without, the report joined the prompt's run.
    """
    world = World(BLIND, (ASKS, DEATH), stops=1, drops=1)
    spec = SystemSpec(system=world.system("session_pair"), requirements=REQUIREMENTS, properties=p.properties(world), tokens=3, counter=3)
    run = Play(spec)
    run.send("user", Prompted(False))
    run.send("start", Prepared(True))
    run.send("start", SendDue(True))
    run.send("request_a", PromptTaken(False))
    run.send("request_a", ReplyHandled())
    run.send("server", StartPublished())
    for what, item in ((What.STARTED, ""), (What.DELIVERED, "a")):
        run.send("buffer", Arrived(what, "a", item))
    run.send("server" if restart else "stream", Restarted() if restart else Dropped())
    run.send("server", Admitted("c"))
    run.send("server", StartPublished() if restart else Joined())
    run.send("stream", Subscribed())
    run.send("stream", SnapshotTaken(True, Past.UNDER_WAY))
    run.send("server", Finished())
    run.send("buffer", Arrived(What.SUCCEEDED, "c" if restart else "a"))
    return run


def test_no_adapter_can_tell_a_restart_from_a_joined_run() -> None:
    """The two runs look alike to every machine of the adapter, whatever its design: it ends the turn in both or in neither.

    Ending it is right where the report joined (not ending it skips the turn's own end), and wrong where the server restarted.
    """
    joined, restarted = run_of(restart=False), run_of(restart=True)
    assert told(joined) == told(restarted)
    assert joined.keeps(p.OWN_END)
    assert joined.keeps(p.SKIPPED_USER)
    assert not restarted.keeps(p.OWN_END)


# ── the target ──


def test_the_target_has_no_state_in_which_a_turn_waits_for_a_start() -> None:
    """R-SES-13: there is no such flag, and no end is held."""
    assert {"awaiting_start", "held_end"} & set(target.Session.__annotations__) == set()
    assert "awaiting_start" in type(V4.initial).__annotations__


def test_every_wait_of_a_stop_and_a_start_has_its_timer() -> None:
    """R-SES-15: 10 s for the reply of a Stop, 5 s for the answer to a start's question, 10 s between two looks for a prompt."""
    durations = {rule.timer.name: rule.duration.milliseconds for m in (session_stop, session_start, target) for rule in m.MACHINE.timers}
    assert durations == {"REPLY": 10_000, "QUESTION": 5_000, "RECHECK": 10_000}


def test_a_new_subscription_delivers_only_what_is_published_after_it() -> None:
    """R-SES-28: what is published while nobody is subscribed reaches nobody, and a drop loses the buffer."""
    event = Published(What.STARTED, "a")
    for phase in StreamPhase:
        effects = getattr(STREAM.step(Stream(phase), event), "effects", ())
        assert bool(effects) == (phase in (StreamPhase.UP, StreamPhase.SUBSCRIBED))
    assert {type(e).__name__ for row in STREAM.rows if row.event.__name__ == "Dropped" for e in row.emit} == {"LoseBuffer"}


def test_the_worlds_have_the_powers_they_say() -> None:
    assert WHOLE.without == {ASKS}
    assert ONE.without == {ASKS}
    assert {s.name for s in SPEC.system.switches} >= {s.name for s in POWERS if s.name not in ("N3", "N5", "N9", "N10")}
    assert {b.name: b.limit for b in WHOLE.system("whole").budgets} == {"drops": 2, "restarts": 1, "unclear prompts": 1}


def test_every_requirement_is_discharged_by_a_specification_or_a_named_test() -> None:
    every: dict[str, Spec | SystemSpec] = {**specifications(), **systems()}
    mine = [spec for name, spec in every.items() if name == "session" or name.startswith("session_")]
    held = {rid for spec in mine for rid in spec.requirements if rid.startswith("R-SES-")}
    assert held == set(REQUIREMENTS)
    assert [spec.undischarged() for spec in mine] == [()] * len(mine)
    assert len(mine) >= 9
    for node in TESTS.values():
        path, name = node.split("::")
        assert f"def {name}(" in (Path(__file__).parent / Path(path).name).read_text(encoding="utf-8")


@pytest.mark.soak
def test_permission_requests_at_the_whole_bounds_change_nothing() -> None:
    """``session_whole`` with the one power it leaves out: 114 million states, 7 GB, some minutes."""
    world = World(TARGET)
    props = p.properties(world)
    spec = SystemSpec(system=world.system("session_everything"), requirements=REQUIREMENTS, properties=props, tokens=3, counter=3)
    graph = explore(spec)
    assert graph.walk.complete
    assert not graph.walk.flaws
    assert graph.walk.states == 114_313_587
    assert [q.name for q in props if not isinstance(q, Sometimes) and violation(graph, q) is not None] == []
