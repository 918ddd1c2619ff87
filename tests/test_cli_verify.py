"""The gathering of verdicts: nothing an engine does, or leaves out, comes out as "holds"."""

from __future__ import annotations

import json
import os
import signal
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import attrs
import jsonschema
import pytest
from cli_toys import HOLDING, SPEC, VIOLATED, children, engine, forever, says, verdict
from systems import CALL_SPEC

from turnproof.checkers import engines, jobs
from turnproof.checkers import verify as verify_module
from turnproof.checkers.engines import EngineEntry, Plan
from turnproof.checkers.jobs import Done, Job, run_jobs
from turnproof.checkers.own_checks import has_test, own_checks
from turnproof.checkers.progress import SILENT, Progress
from turnproof.checkers.report import json_report, machine_text, schema
from turnproof.checkers.report.model import MachineReport, RunReport
from turnproof.checkers.verdict import Engine, Outcome, Verdict, exit_status
from turnproof.checkers.verify import report, reports, verify
from turnproof.machines.kernel import Row, TableError
from turnproof.specs.language import Spec

ROOT = Path(__file__).resolve().parents[1]
EXPLICIT = says(HOLDING)
GOLDEN = says([verdict("golden numbers", engine=Engine.GOLDEN)])


@pytest.fixture
def use(monkeypatch: pytest.MonkeyPatch) -> Callable[[Mapping[str, EngineEntry]], None]:
    """Put stand-ins in the place of all engines."""

    def put(entries: Mapping[str, EngineEntry]) -> None:
        monkeypatch.setattr(verify_module, "ENGINES", dict(entries))

    return put


def odd(report: MachineReport) -> dict[str, tuple[Outcome, str]]:
    """Check -> outcome and detail, of what does not hold."""
    return {v.check: (v.outcome, v.detail) for v in report.verdicts if v.outcome is not Outcome.HOLDS}


Use = Callable[[Mapping[str, EngineEntry]], None]


def test_everything_holds(use: Use) -> None:
    use({"explicit": EXPLICIT, "golden": GOLDEN})
    found = report(SPEC, Plan())
    assert odd(found) == {}
    assert {v.check for v in found.verdicts} >= {p.name for p in SPEC.properties} | {"golden numbers"}
    assert exit_status(found.verdicts) == 0
    assert found.size is not None
    assert found.size.states == 3 + 2
    assert found.size.steps == found.size.states * len(SPEC.machine.all_events(tokens=2, counter=2))
    assert set(found.timings) == {"explore", "explicit", "golden"}


def test_verify_gives_the_verdicts(use: Use) -> None:
    use({"explicit": EXPLICIT, "golden": GOLDEN})
    assert [v.check for v in verify(SPEC)] == [v.check for v in report(SPEC, Plan()).verdicts]
    assert not any(v.engine is Engine.GOLDEN for v in verify(SPEC, ["explicit"]))
    with pytest.raises(KeyError, match="no engine 'explict'; engines: explicit, golden"):
        verify(SPEC, ["explict"])


def test_what_was_not_asked_for_is_said(use: Use) -> None:
    use({"explicit": EXPLICIT, "golden": GOLDEN, "symbolic": attrs.evolve(GOLDEN, needs=lambda spec: "no solver here")})
    assert report(SPEC, Plan(engines=("explicit",))).not_run == {"golden": "not asked for", "symbolic": "not asked for"}
    assert report(SPEC, Plan(left_out={"golden": "--quick"})).not_run == {"golden": "--quick", "symbolic": "no solver here"}


# ── engines that fail ──


def raising(problem: Exception) -> EngineEntry:
    def run(progress: Progress) -> list[Verdict]:
        raise problem

    return engine(run)


def dying(sent: int) -> EngineEntry:
    def run(progress: Progress) -> list[Verdict]:
        os.kill(os.getpid(), sent)
        time.sleep(60)
        return []

    return engine(run)


@pytest.mark.parametrize(
    ("problem", "said"),
    [
        (ZeroDivisionError("division by zero"), "internal error: ZeroDivisionError: division by zero (test_cli_verify.py:"),
        (ModuleNotFoundError("No module named 'cvc5'", name="cvc5"), "the package cvc5 is not installed: pip install 'turnproof[verify]'"),
        (MemoryError(), "out of memory"),
        (TableError("row x:\n  is wrong"), "row x: is wrong"),
        (RuntimeError("two\nlines"), "internal error: RuntimeError: two lines ("),
    ],
)
@pytest.mark.parametrize("others", [{}, {"golden": GOLDEN}], ids=["alone", "beside another"])
def test_an_engine_that_raises_is_undetermined(use: Use, problem: Exception, said: str, others: dict[str, EngineEntry]) -> None:
    use({"explicit": EXPLICIT, "symbolic": raising(problem), **others})
    found = report(SPEC, Plan())
    outcome, detail = odd(found)["the engine symbolic finishes"]
    assert outcome is Outcome.UNDETERMINED
    assert detail.startswith(said)
    assert "\n" not in detail
    assert exit_status(found.verdicts) == 3
    assert {v.check for v in found.verdicts} >= {v.check for v in HOLDING}


@pytest.mark.skipif(not jobs.can_fork(), reason="engines run in this process here; a signal would end the tests")
@pytest.mark.parametrize(
    ("sent", "said"),
    [(signal.SIGKILL, "was killed (out of memory?)"), (signal.SIGUSR1, "died of SIGUSR1"), (signal.SIGTERM, "was terminated")],
)
def test_an_engine_whose_process_dies_is_undetermined(use: Use, sent: int, said: str) -> None:
    use({"explicit": EXPLICIT, "symbolic": dying(sent)})
    found = report(SPEC, Plan())
    assert odd(found) == {"the engine symbolic finishes": (Outcome.UNDETERMINED, f"its process {said} before it had an answer")}
    assert found.lost == {"symbolic": f"its process {said} before it had an answer"}
    run = RunReport(machines=(found,), version="1", started="2026-01-02T03:04:05Z", seconds=1.0)
    assert run.status == 2
    jsonschema.validate(json.loads(json_report(run)), schema())
    assert attrs.evolve(run, machines=(found, attrs.evolve(found, verdicts=(VIOLATED,), lost={}))).status == 1
    assert {v.check for v in found.verdicts} >= {v.check for v in HOLDING}


def test_a_verdict_that_cannot_be_sent_is_undetermined(use: Use) -> None:
    if not jobs.can_fork():
        pytest.skip("nothing is sent between processes here")
    use({"explicit": EXPLICIT, "golden": says([verdict("x", detail=lambda: None)])})
    (outcome, detail) = odd(report(SPEC, Plan()))["the engine golden finishes"]
    assert outcome is Outcome.UNDETERMINED
    assert "cannot be sent between processes" in detail


def test_an_engine_that_says_nothing_is_undetermined(use: Use) -> None:
    use({"explicit": EXPLICIT, "golden": says([])})
    assert odd(report(SPEC, Plan())) == {"the engine golden checks something": (Outcome.UNDETERMINED, "it finished without a verdict")}


def test_a_property_nobody_speaks_about_is_undetermined(use: Use) -> None:
    use({"explicit": says(HOLDING[:2])})
    assert odd(report(SPEC, Plan())) == {"every property has a verdict": (Outcome.UNDETERMINED, "nobody spoke about 1 of 3: a door opens")}


def test_proved_and_violated_contradict_each_other(use: Use) -> None:
    proof = verdict(VIOLATED.check, engine=Engine.SYMBOLIC, how="proved")
    use({"explicit": says([HOLDING[0], VIOLATED, HOLDING[2]]), "symbolic": says([proof])})
    outcome, detail = odd(report(SPEC, Plan()))["no property is both proved and violated"]
    assert outcome is Outcome.VIOLATED
    assert VIOLATED.check in detail


def test_violated_beyond_the_bounds_is_no_contradiction(use: Use) -> None:
    longer = attrs.evolve(VIOLATED, engine=Engine.SYMBOLIC)
    use({"explicit": EXPLICIT, "symbolic": says([longer])})
    assert set(odd(report(SPEC, Plan()))) == {VIOLATED.check}


def test_a_search_that_is_cut_short_runs_no_engine(use: Use, monkeypatch: pytest.MonkeyPatch) -> None:
    from turnproof.checkers import graph

    def stop(*_: object, **__: object) -> None:
        raise graph.LimitReached("front_door", 5)

    monkeypatch.setattr(graph, "explore", stop)
    use({"explicit": EXPLICIT})
    found = report(SPEC, Plan())
    assert found.size is None
    assert found.not_run == {"explicit": "the graph is not complete"}
    assert odd(found)["the whole graph is explored"][0] is Outcome.UNDETERMINED
    assert exit_status(found.verdicts) == 3


def test_a_row_that_leaves_its_domain_is_a_mistake_of_the_table(use: Use, monkeypatch: pytest.MonkeyPatch) -> None:
    from turnproof.checkers import graph

    def stop(*_: object, **__: object) -> None:
        raise TableError("machine front_door: row Locked/closed leaves its domain")

    monkeypatch.setattr(graph, "explore", stop)
    use({"explicit": EXPLICIT})
    with pytest.raises(TableError, match="leaves its domain"):
        report(SPEC, Plan())


# ── requirements discharged by name ──


def discharge(spec: Spec, catalog: Mapping[str, Spec] | None = None) -> Verdict:
    (found,) = [v for v in own_checks(spec, set(), [], catalog) if v.check == "what discharges a requirement by name exists"]
    return found


def test_a_test_that_does_not_exist_discharges_nothing() -> None:
    assert discharge(SPEC).outcome is Outcome.HOLDS
    missing = discharge(attrs.evolve(SPEC, tests={"R-DOOR-3": "tests/cli_toys.py::test_gone"}))
    assert (missing.outcome, missing.detail) == (Outcome.VIOLATED, "R-DOOR-3: no test tests/cli_toys.py::test_gone")
    assert missing.requirements == ("R-DOOR-3",)


def test_a_specification_elsewhere_must_exist_and_check_it() -> None:
    spec = attrs.evolve(SPEC, tests={}, elsewhere={"R-DOOR-3": "back_door"})
    assert discharge(spec, {}).detail == "R-DOOR-3: no specification back_door"
    assert discharge(spec, {"back_door": attrs.evolve(SPEC, tests={})}).detail == "R-DOOR-3: back_door has no property or test for it"
    assert discharge(spec, {"back_door": SPEC}).outcome is Outcome.HOLDS


@pytest.mark.parametrize(
    ("node", "known"),
    [
        ("tests/test_cli_verify.py::test_everything_holds", True),
        ("tests/test_cli_verify.py::test_nothing_holds", False),
        ("tests/test_cli_verify.py::TestX::test_everything_holds[a]", True),
        ("tests/gone.py::test_everything_holds", False),
        ("README.md::test_x", False),
        ("tests::test_x", False),
    ],
)
def test_whether_a_named_test_exists(node: str, known: bool) -> None:
    assert has_test(ROOT, node) is known


# ── several machines, progress, interruption ──


class Heard:
    def __init__(self) -> None:
        self.words: list[tuple[str, int, int | None]] = []

    def say(self, what: str, done: int, total: int | None = None) -> None:
        self.words.append((what, done, total))


def test_reports_come_in_order_and_keep_to_their_own(use: Use) -> None:
    use({"explicit": EXPLICIT, "golden": GOLDEN})
    other = attrs.evolve(SPEC, machine=attrs.evolve(SPEC.machine, name="back_door"))
    heard = Heard()
    found = list(reports([(SPEC, Plan()), (other, Plan(engines=("golden",)))], progress=heard))
    assert [r.name for r in found] == ["front_door", "back_door"]
    assert [sum(v.check == "golden numbers" for v in r.verdicts) for r in found] == [1, 1]
    assert found[1].not_run == {"explicit": "not asked for"}
    jobs_heard = {what.partition(":")[0] for what, _, _ in heard.words}
    assert jobs_heard >= {"front_door explore", "front_door golden", "back_door golden"}


def test_a_system_runs_the_engines_that_read_systems(use: Use) -> None:
    use({name: engines.ENGINES[name] for name in ("explicit", "golden")})
    found = report(CALL_SPEC, Plan())
    assert found.name == CALL_SPEC.system.name
    assert not found.not_run
    assert found.timings["golden"] == 0.0, "one walk answers for both"
    (golden,) = [v for v in found.verdicts if v.engine is Engine.GOLDEN]
    assert golden.detail.startswith("manifest.toml has no table [call]")
    assert {v.check for v in found.verdicts} >= {p.name for p in CALL_SPEC.properties}
    assert found.size is not None
    assert found.size.states > 10
    assert found.size.taken is None
    text = machine_text(found)
    assert f"a system of {len(CALL_SPEC.system.parts)} parts: " in text
    document = json.loads(json_report(RunReport(machines=(found,), version="1", started="2026-01-02T03:04:05Z", seconds=1.0)))
    jsonschema.validate(document, schema())
    (machine,) = document["machines"]
    assert machine["kind"] == "system"
    assert machine["coverage"]["parts"][0]["matrix"]["AskRequested"]["idle"]["answers"] == "taken"
    assert machine["coverage"]["depths"] == [1, *machine["coverage"]["depths"][1:]]
    assert "rows answer" in text


def counting(progress: Progress) -> list[Verdict]:
    for n in range(5):
        progress.say("doors", n, 5)
        time.sleep(jobs.SAY_EVERY_S)
    return list(HOLDING)


def test_progress_comes_out_of_the_child(use: Use) -> None:
    use({"explicit": engine(counting), "golden": GOLDEN})
    heard = Heard()
    report(SPEC, Plan(), progress=heard)
    counted = [done for what, done, total in heard.words if what == "explicit: doors" and total == 5]
    assert len(counted) >= 2
    assert counted == sorted(counted)
    assert ("explicit: finished", 1, 1) in heard.words


def test_jobs_run_two_at_a_time() -> None:
    if not jobs.can_fork():
        pytest.skip("one after the other here")

    def wait(progress: Progress) -> list[Verdict]:
        time.sleep(0.4)
        return list(HOLDING)

    started = time.perf_counter()
    done = list(run_jobs([Job(str(n), wait) for n in range(4)], SILENT, workers=2))
    assert 0.8 <= time.perf_counter() - started < 1.5
    assert sorted(d.name for d in done) == ["0", "1", "2", "3"]
    assert all(d.verdicts == HOLDING for d in done)


def test_an_abandoned_run_ends_its_children() -> None:
    if not jobs.can_fork():
        pytest.skip("no children here")
    results: Iterator[Done] = run_jobs([Job("a", lambda p: []), Job("b", forever)], SILENT)
    assert next(results).name == "a"
    results.close()  # type: ignore[attr-defined]
    assert children(os.getpid()) == []


def test_without_fork_the_results_are_the_same(use: Use, monkeypatch: pytest.MonkeyPatch) -> None:
    use({"explicit": EXPLICIT, "symbolic": raising(ValueError("no")), "golden": GOLDEN})
    forked = [(v.check, v.outcome) for v in report(SPEC, Plan()).verdicts]
    monkeypatch.setattr(jobs, "can_fork", lambda: False)
    assert [(v.check, v.outcome) for v in report(SPEC, Plan()).verdicts] == forked


def test_every_engine_has_a_name_and_a_sentence() -> None:
    assert list(engines.ENGINES) == ["symbolic", "explicit", "variants", "stateful", "traces", "diagram", "golden"]
    assert all(entry.about for entry in engines.ENGINES.values())
    assert set(engines.QUICK) < set(engines.ENGINES)


def test_a_machine_with_a_hole_is_still_explored(use: Use) -> None:
    holed = attrs.evolve(
        SPEC,
        machine=attrs.evolve(
            SPEC.machine, rows=(*SPEC.machine.rows[:-1], Row(SPEC.machine.rows[-1].event, at=SPEC.machine.phases[0], ignore="shut"))
        ),
    )
    use({"explicit": EXPLICIT})
    assert report(holed, Plan()).size is not None
