"""A run that is interrupted, or limited in time, or read while it goes on: what is there is reported, and no process stays."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable, Mapping
from pathlib import Path

import attrs
import pytest
from cli_toys import HOLDING, SPEC, children, engine, forever, says, verdict

from turnproof.checkers import jobs
from turnproof.checkers import verify as verify_module
from turnproof.checkers.engines import EngineEntry, Plan
from turnproof.checkers.jobs import Job
from turnproof.checkers.progress import Progress
from turnproof.checkers.report.model import MachineReport
from turnproof.checkers.verdict import Engine, Outcome, Verdict, exit_status
from turnproof.checkers.verify import Interrupted, in_turn, report, reports
from turnproof.specs.language import Spec

EXPLICIT = says(HOLDING)
GOLDEN = says([verdict("golden numbers", engine=Engine.GOLDEN)])
Use = Callable[[Mapping[str, EngineEntry]], None]


@pytest.fixture
def use(monkeypatch: pytest.MonkeyPatch) -> Use:
    """Put stand-ins in the place of all engines."""
    return lambda entries: monkeypatch.setattr(verify_module, "ENGINES", dict(entries))


def odd(report: MachineReport) -> dict[str, tuple[Outcome, str]]:
    """Check -> outcome and detail, of what does not hold."""
    return {v.check: (v.outcome, v.detail) for v in report.verdicts if v.outcome is not Outcome.HOLDS}


@pytest.mark.parametrize("entries", [("explicit", "symbolic"), ("symbolic",)], ids=["forked", "here"])
def test_an_interrupted_run_says_what_was_covered_and_leaves_no_process(use: Use, entries: tuple[str, ...]) -> None:
    every = {"explicit": EXPLICIT, "symbolic": engine(forever)}
    use({name: every[name] for name in entries})
    timer = threading.Timer(0.6, os.kill, (os.getpid(), signal.SIGINT))
    timer.start()
    with pytest.raises(Interrupted) as caught:
        report(SPEC, Plan())
    said = str(caught.value)
    assert said.startswith("front_door: explore")
    assert "symbolic: rows" in said
    assert "of 94" in said
    assert ("explicit finished, 3 checks, 0 of them not holding" in said) is (len(entries) == 2)
    assert children(os.getpid()) == []


def test_an_interrupt_before_the_first_engine_leaves_everything_open(use: Use, monkeypatch: pytest.MonkeyPatch) -> None:
    from turnproof.checkers import graph

    def stop(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(graph, "explore", stop)
    use({"explicit": EXPLICIT, "golden": GOLDEN})
    other = attrs.evolve(SPEC, machine=attrs.evolve(SPEC.machine, name="back_door"))
    made: list[MachineReport] = []
    with pytest.raises(Interrupted, match=r"^0 of 2 complete; after \d+ s$"):
        made.extend(reports([(SPEC, Plan()), (other, Plan())]))
    assert [one.untouched for one in made] == [True, True]
    assert {v.outcome for one in made for v in one.verdicts if "finishes" in v.check} == {Outcome.UNDETERMINED}


@pytest.mark.parametrize("forked", [True, False], ids=["forked", "here"])
def test_a_machine_has_a_time_limit_too(use: Use, monkeypatch: pytest.MonkeyPatch, forked: bool) -> None:
    if not forked:
        monkeypatch.setattr(jobs, "can_fork", lambda: False)
    use({"explicit": EXPLICIT, "symbolic": engine(forever)})
    found = report(SPEC, Plan(seconds=0.3))
    (outcome, detail) = odd(found)["the engine symbolic finishes"]
    assert outcome is Outcome.UNDETERMINED
    assert detail.startswith("the time limit of 0.3 s ended it at rows ")
    assert {v.check for v in found.verdicts} >= {v.check for v in HOLDING}
    assert (exit_status(found.verdicts), found.lost, children(os.getpid())) == (3, {}, [])


@pytest.mark.skipif(not jobs.can_fork(), reason="nobody can end a silent engine here")
def test_a_silent_engine_is_ended_at_its_time_limit(use: Use) -> None:
    def silent(progress: Progress) -> list[Verdict]:
        time.sleep(60)
        return []

    use({"symbolic": engine(silent)})
    assert odd(report(SPEC, Plan(seconds=0.2)))["the engine symbolic finishes"][1] == "the time limit of 0.2 s ended it"
    assert children(os.getpid()) == []


def test_an_exploration_is_ended_at_the_time_limit(use: Use) -> None:
    use({"explicit": EXPLICIT, "variants": attrs.evolve(GOLDEN, reads_graph=False)})
    found = report(SPEC, Plan(seconds=1e-9))
    outcome, detail = odd(found)["the whole graph is explored"]
    assert (outcome, detail) == (Outcome.UNDETERMINED, "the time limit of 1e-09 s ended it at states explored 0 of 1")
    assert found.not_run == {"explicit": "the graph is not complete"}


@pytest.mark.skipif(not jobs.can_fork(), reason="one engine after the other here")
def test_a_report_is_out_while_others_are_at_work(use: Use, tmp_path: Path) -> None:
    def second(progress: Progress) -> list[Verdict]:
        while not (tmp_path / "read").exists():
            time.sleep(0.02)
        return list(HOLDING)

    def either(spec: Spec, graph: object, plan: Plan, progress: Progress) -> list[Verdict]:
        return list(HOLDING) if spec is SPEC else second(progress)

    use({"explicit": EngineEntry(either, Engine.EXPLICIT, "a stand-in"), "golden": GOLDEN})
    other = attrs.evolve(SPEC, machine=attrs.evolve(SPEC.machine, name="back_door"))
    stream = reports([(SPEC, Plan()), (other, Plan())])
    assert next(stream).name == "front_door"
    (tmp_path / "read").touch()
    assert [one.name for one in stream] == ["back_door"]


def test_the_longest_job_goes_first_and_the_others_as_they_stand() -> None:
    jobs_with_costs = [(cost, Job(name, lambda p: [])) for name, cost in (("a", 1.0), ("b", 2.0), ("c", 9.0), ("d", 3.0), ("e", 5.0))]
    assert [job.name for job in in_turn(jobs_with_costs)] == ["c", "a", "b", "d", "e"]
    assert [job.name for job in in_turn([(1.0, Job(n, lambda p: [])) for n in "abcd"])] == ["a", "b", "c", "d"]
    assert in_turn([]) == []
