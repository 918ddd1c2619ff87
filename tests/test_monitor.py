"""The monitor: promises judged in the running process, each told once when it breaks first, and nothing stopped."""

from __future__ import annotations

import logging
import random
import subprocess
import sys
from collections.abc import Iterable, Iterator
from typing import Any, cast

import attrs
import pytest
from shell_toys import MACHINE as JOB
from shell_toys import SPEC as JOB_SPEC
from shell_toys import Recorder, Started, on_virtual_time
from trace_logs import Step, chances, handles

from turnproof.checkers.stateful.chance import Chance
from turnproof.checkers.stateful.guide import taken_event
from turnproof.checkers.traces import Monitor, Report
from turnproof.examples import recovery
from turnproof.machines.kernel import StartTimer, Taken
from turnproof.machines.reply_operation import MACHINE
from turnproof.machines.reply_operation_words import (
    AbortReason,
    AbortRequested,
    BackendAttached,
    Completed,
    Phase,
    PhaseEntered,
    ReplyOperation,
)
from turnproof.shell import Failure, Runner, VirtualClock, run_virtual
from turnproof.shell.attempt_runner import MACHINES
from turnproof.specs.catalog import specifications
from turnproof.specs.language import Always, Variant
from turnproof.specs.language import Step as StepProperty
from turnproof.specs.reply_operation import SPEC

Events = Iterable[tuple[str, object]]


def steps(events: Events, machine: Any = MACHINE, states: dict[str, tuple[int, Any]] | None = None) -> Iterator[Step]:
    """What a runtime would hand to its trace hook, under the name of the machine that is watched."""
    states = {} if states is None else states
    for number, (key, event) in enumerate(events):
        seq, before = states.get(key, (0, machine.initial))
        answer = machine.step(before, event)
        after = answer.state if isinstance(answer, Taken) else before
        states[key] = seq + 1, after
        yield Step(seq + 1, float(number), MACHINE.name, key, event, answer, before, after)


def watched(events: Events, machine: Any = MACHINE, **options: Any) -> tuple[Monitor, list[Report]]:
    reports: list[Report] = []
    monitor = Monitor(SPEC, on_report=reports.append, **options)
    for step in steps(events, machine):
        monitor(step)
    return monitor, reports


# ── a runtime that is right ──


@pytest.mark.parametrize("seed", range(4))
def test_the_real_table_breaks_nothing_whatever_happens(seed: int) -> None:
    rng = random.Random(seed)
    events = chances(rng, keys=20, count=4_000) if seed % 2 else handles(rng, count=4_000)
    monitor, reports = watched(events)
    assert (reports, monitor.first, monitor.broken) == ([], None, {})
    assert (monitor.steps, monitor.unjudged) == (len(events), 0)


@pytest.mark.parametrize("name", [name for name, spec in specifications().items() if spec.assume is None])
def test_no_table_that_is_followed_where_it_goes_differs_from_itself(name: str) -> None:
    spec = specifications()[name]
    machine, rng, chance = spec.machine, random.Random(name), Chance(spec.machine)
    reports: list[Report] = []
    monitor = Monitor(spec, on_report=reports.append, situations=200)
    for life in range(20):
        state = machine.initial
        for seq in range(1, 61):
            event: Any = taken_event(machine, state, rng.randrange(2**32)) if rng.random() < 0.7 else None
            if event is None or type(event) in {rule.expires for rule in machine.timers}:
                event = chance.event(rng, list(machine.events))
            before, answer = state, machine.step(state, event)
            state = answer.state if isinstance(answer, Taken) else before
            monitor(Step(seq, 1.0, name, f"k{life}", event, answer, before, state))
    assert [str(report) for report in reports if report.diverged] == []
    assert (monitor.steps, monitor.unjudged) == (1_200, 0)
    [watch] = monitor._watches.values()
    assert watch.follower._remembered <= 200


def test_a_deadline_reckoned_from_what_is_only_carried_is_the_tables() -> None:
    loop = specifications()["turn_loop"]
    monitor, reckoned = Monitor(loop, on_report=lambda report: pytest.fail(str(report))), 0
    for life in range(400):
        state = loop.machine.initial
        for seq in range(1, 41):
            event: Any = taken_event(loop.machine, state, life * 1_000 + seq)
            if event is not None:
                before, answer = state, loop.machine.step(state, event)
                assert isinstance(answer, Taken)
                state = answer.state
                reckoned += any(isinstance(e, StartTimer) and e.not_before_ms > 0 for e in answer.effects)
                monitor(Step(seq, 1.0, "turn_loop", f"k{life}", event, answer, before, state))
        if reckoned >= 3:
            break
    assert reckoned > 0, "no run came to a wait"


@on_virtual_time
async def test_it_is_the_trace_hook_of_a_runner(clock: VirtualClock) -> None:
    monitor = Monitor(JOB_SPEC)
    failures: list[Failure] = []
    async with Runner(JOB, Recorder(), key="k", trace=monitor, on_error=failures.append) as runner:
        await runner.send(Started("w"))
        await clock.advance(60_000)
    assert failures == []
    assert monitor.steps == runner.steps > 1
    assert (monitor.unjudged, monitor.first) == (0, None)


def test_a_whole_recovery_of_many_machines_keeps_every_promise() -> None:
    watched_names = {machine.name for machine in MACHINES} & set(specifications())
    reports: list[Report] = []
    monitor = Monitor(*(specifications()[name] for name in sorted(watched_names)), on_report=reports.append)

    class Log:
        lines = 0

        def __call__(self, step: Any) -> None:
            if step.machine in watched_names:
                monitor(step)

    _, invoices = run_virtual(recovery.chat(cast(Any, Log())))
    assert invoices == 1
    assert [str(report) for report in reports] == []
    assert len(watched_names) > 8
    assert (monitor.steps > 100, monitor.unjudged) == (True, 0)


# ── a runtime that is wrong ──

CHECKED = [v for v in SPEC.variants if any(isinstance(p, (Always, StepProperty)) and p.name in v.violates for p in SPEC.properties)]


@pytest.mark.parametrize("variant", CHECKED, ids=lambda variant: variant.machine.name)
def test_what_a_wrong_design_breaks_is_told_while_it_runs(variant: Variant) -> None:
    wrong = attrs.evolve(variant.machine, name=MACHINE.name)
    told: set[str] = set()
    chance, classes = Chance(MACHINE), list(MACHINE.events)
    for seed in range(60):
        rng = random.Random(seed)
        monitor, reports = watched([(f"r{rng.randrange(100)}", chance.event(rng, classes)) for _ in range(1_000)], wrong)
        told |= {report.sentence for report in reports if not report.diverged}
        assert monitor.unjudged == 0
        if told & set(variant.violates):
            break
    assert told & set(variant.violates), told


E0 = next(v.machine for v in SPEC.variants if v.machine.name.endswith("_e0"))
ABORT = [PhaseEntered(Phase.RUNNING), BackendAttached("run-4711"), AbortRequested(AbortReason.USER), Completed(False)]


def test_a_report_is_one_line_for_an_operator_and_comes_once() -> None:
    monitor, reports = watched([(key, event) for key in ("r1", "r2") for event in ABORT], E0)
    sentence = "every reply with a result that holds its slot has an armed settle timer"
    [report] = [r for r in reports if r.sentence == sentence]
    assert (report.key, report.seq, report.requirements) == ("r1", 3, ("R-REPLY-5",))
    assert str(report) == (
        f'reply_operation r1, step 3: AbortRequested(reason=user) broke "{sentence}" (R-REPLY-5): '
        "if its owner never comes back, the session is wedged for ever"
    )
    assert monitor.broken[sentence] == 2
    assert monitor.first is reports[0]
    assert [r.diverged for r in reports].count(True) == len({r.sentence for r in reports if r.diverged}) >= 1
    different = next(r for r in reports if r.diverged)
    assert str(different).startswith(
        "reply_operation r1, step 3: AbortRequested(reason=user) is not as the table has it: AbortRequested had the effects "
    )


def test_reports_are_logged_unless_one_says_otherwise(caplog: pytest.LogCaptureFixture) -> None:
    monitor = Monitor(SPEC)
    with caplog.at_level(logging.ERROR, "turnproof.monitor"):
        for step in steps([("r", event) for event in ABORT], E0):
            monitor(step)
    assert len(caplog.messages) == len(monitor.broken)
    assert caplog.messages[0] == str(monitor.first)


def test_a_hook_for_reports_that_raises_is_logged_and_stops_nothing(caplog: pytest.LogCaptureFixture) -> None:
    def angry(report: Report) -> None:
        raise OSError("no pager")

    monitor = Monitor(SPEC, on_report=angry)
    for step in steps([("r", event) for event in ABORT], E0):
        monitor(step)
    assert monitor.steps == 4
    assert all(message.startswith("on_report failed on: reply_operation r, step") for message in caplog.messages)
    assert len(caplog.messages) == len(monitor.broken) > 0


def test_a_state_that_somebody_wrote_is_told() -> None:
    states: dict[str, tuple[int, Any]] = {}
    reports: list[Report] = []
    monitor = Monitor(SPEC, on_report=reports.append)
    for step in steps([("r", ABORT[0])], states=states):
        monitor(step)
    states["r"] = (1, attrs.evolve(states["r"][1], frozen=True))
    for step in steps([("r", event) for event in ABORT[1:]], states=states):
        monitor(step)
    assert [str(report) for report in reports] == [
        "reply_operation r, step 2: BackendAttached(backend=run-4711) is not as the table has it: "
        "its state is not the one that the step before it left"
    ]
    assert monitor.unjudged == 3


# ── what it does not know ──


def test_an_instance_whose_beginning_it_did_not_see_is_not_judged_until_its_key_begins_anew() -> None:
    monitor = Monitor(SPEC)
    seen = list(steps([("r", event) for event in ABORT]))
    for step in (*seen[1:], *seen):
        monitor(step)
    assert (monitor.steps, monitor.unjudged, monitor.first) == (7, 3, None)


def test_an_instance_may_begin_in_a_state_of_its_own() -> None:
    begun = attrs.evolve(MACHINE, initial=ReplyOperation(retain_until_complete=True))
    monitor, reports = watched([("r", AbortRequested(AbortReason.USER)), ("r", Completed(False))], begun)
    assert (reports, monitor.unjudged) == ([], 0)


def test_a_step_of_another_machine_is_the_callers_mistake() -> None:
    monitor = Monitor(JOB_SPEC)
    with pytest.raises(ValueError, match="this monitor watches job, not reply_operation"):
        monitor(next(steps([("r", ABORT[0])])))
    with pytest.raises(ValueError, match="name the specifications"):
        Monitor()


# ── what it costs ──


def test_memory_grows_with_what_lives_and_not_with_what_was() -> None:
    monitor = Monitor(SPEC, remember=100)
    for round_ in range(30):
        for step in steps([(f"r{round_}-{n}", event) for n in range(100) for event in ABORT]):
            monitor(step)
        assert monitor.live <= 101
    [watch] = monitor._watches.values()
    assert watch.beliefs.size < 20, "one graph for all: identities go by canonical names"
    assert (monitor.first, monitor.unjudged) == (None, 0)


def test_it_needs_attrs_and_the_standard_library_alone() -> None:
    code = (
        "import sys; sys.modules.update(dict.fromkeys(['msgspec', 'z3', 'numpy', 'numba', 'hypothesis', 'click', 'rich']));"
        "from turnproof.checkers.traces import Monitor; from turnproof.specs.reply_operation import SPEC; Monitor(SPEC)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
