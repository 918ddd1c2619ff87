"""The recorded program and the machine: the shipped variant agrees at every call, the target differs where the requirements say so."""

from __future__ import annotations

import copy
import gzip
import json
from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import attrs
import pytest

from turnproof.checkers.traces import ReplayReport, replay
from turnproof.checkers.traces.recording import Fitting
from turnproof.checkers.verdict import Outcome, exit_status
from turnproof.machines.kernel import Duration, Row, StartTimer, TimerRule
from turnproof.machines.reply_operation import MACHINE, cancel
from turnproof.machines.reply_operation_words import CancelBackend, CancelReason, Release, Timer
from turnproof.specs.language import AnyMachine
from turnproof.specs.reply_operation import SPEC
from turnproof.specs.reply_operation_shipped import SHIPPED
from turnproof.traces.line import TraceError
from turnproof.traces.openclaw import SOURCE

DATA = Path(__file__).parent / "data" / "openclaw" / "reply-operation.jsonl.gz"
Record = dict[str, Any]


@pytest.fixture(scope="module")
def report() -> ReplayReport:
    return replay(SPEC, DATA)


@pytest.fixture(scope="module")
def records() -> list[Record]:
    with gzip.open(DATA, "rt", encoding="utf-8") as file:
        return [json.loads(line) for line in file]


@pytest.fixture(scope="module")
def some(records: list[Record], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The first 300 sequences."""
    return written(tmp_path_factory.mktemp("openclaw") / "some.jsonl", records[:300])


def fitted(machine: AnyMachine, path: Path = DATA) -> Fitting:
    fitting = Fitting(SOURCE)
    fitting.run([machine], [path])
    return fitting


def written(path: Path, records: list[Record]) -> Path:
    path.write_text("".join(json.dumps(record) + "\n" for record in records), encoding="utf-8")
    return path


# ── the recording as it is ──


def test_the_source_and_the_variant_are_found_without_being_named(report: ReplayReport) -> None:
    assert report.design == SHIPPED.name == SOURCE.variant
    assert [v.outcome for v in report.verdicts] == [Outcome.HOLDS, Outcome.VIOLATED]
    assert [fit.design for fit in report.fits] == [SHIPPED.name, MACHINE.name], "no other can fit better, so none is tried"


def test_every_call_of_every_sequence_agrees_with_the_shipped_variant(report: ReplayReport) -> None:
    assert dict(report.counts) == {"sequences": 1_500, "calls": 15_784, "calls judged": 15_784}
    assert (report.fits[0].sequences, report.fits[0].calls) == (1_500, 15_784)
    assert report.divergences == ()
    assert report.unknown == {}
    assert report.notes == ()
    assert report.unused_calls == ()


def test_the_target_differs_in_82_sequences(report: ReplayReport) -> None:
    target = next(fit for fit in report.fits if fit.design == MACHINE.name)
    assert 1_500 - target.sequences == 82


def test_what_the_program_does_and_the_target_forbids_are_three_things(report: ReplayReport) -> None:
    found = {d.requirements: (d.sequences, d.calls) for d in report.differences}
    assert found == {("R-REPLY-19",): (14, 14), ("R-REPLY-22",): (29, 30), ("R-REPLY-26",): (41, 41)}


def test_a_difference_is_told_as_a_story(report: ReplayReport) -> None:
    waits, cancels, slots = report.differences
    assert [told.text for told in waits.story] == ["waitGlobalLane()", "expire(stuck_recovery)"]
    assert "a healthy wait is never stuck" in waits.target
    assert cancels.program.startswith("cancels a (")
    assert cancels.target.startswith("cancels nothing")
    assert [told.text for told in slots.story] == ["attachBackend(a)", "supersede()"]
    assert slots.program == "the slot is free"
    assert slots.target.startswith("keeps the slot")
    assert all(d.harm and d.sentences and "reply-operation.jsonl.gz:" in d.where for d in report.differences)


def test_the_text_says_it_in_words(report: ReplayReport) -> None:
    text = report.text()
    assert f"{SHIPPED.name} " in text
    assert "41 calls in 41 sequences" in text
    assert "HOLDS the program behaves like openclaw_2026_9_6: 15,784 of 15,784 calls" in text
    assert "rows used: " in text
    assert json.loads(json.dumps(report.json()))["differences"][0]["requirements"] == ["R-REPLY-19"]


def test_a_program_that_behaves_as_known_and_breaks_requirements_does_not_pass(report: ReplayReport) -> None:
    _, required = report.verdicts
    assert exit_status(report.verdicts) == 1
    assert required.requirements == ("R-REPLY-19", "R-REPLY-22", "R-REPLY-26")
    assert required.how == "85 of 15,784 calls must not be"
    assert "expire(stuck_recovery): phase failed" in required.detail
    assert required.detail.endswith("--variant openclaw_2026_9_6")


def test_rows_that_recordings_never_use_are_named(report: ReplayReport) -> None:
    assert "SteerRequested/accepted" in report.unused_rows
    assert "RecoveryRequested/accepted" in report.unused_rows
    assert "AbortRequested/settle" not in report.unused_rows


def test_demanding_the_target_is_refused_by_the_recording(some: Path) -> None:
    report = replay(SPEC, some, source="openclaw", variant="target")
    assert exit_status(report.verdicts) == 1
    assert "26 sequences with a difference; openclaw_2026_9_6 fits best" in report.verdicts[0].detail
    assert report.divergences


@pytest.mark.parametrize("name", ["shipped", "openclaw_2026_9_6"])
def test_a_variant_may_be_named(name: str, records: list[Record], tmp_path: Path) -> None:
    assert replay(SPEC, written(tmp_path / "some.jsonl", records[:50]), variant=name).design == SHIPPED.name


# ── recordings that say something else ──


def _spoil(
    records: list[Record], name: str, change: Callable[[Any], Any], wanted: Callable[[Record], bool]
) -> tuple[list[Record], int, int]:
    """The records with one observation changed: where."""
    made = copy.deepcopy(records)
    for number, record in enumerate(made):
        for place, step in enumerate(record["steps"]):
            if wanted(step):
                step[name] = change(step[name])
                return made, number, place
    raise AssertionError("nothing to spoil")


SPOILED: Mapping[str, tuple[str, Callable[[Any], Any], Callable[[Record], bool]]] = {
    "a returned value": ("returned", lambda value: not value, lambda step: step["call"] == "abortByUser" and step["returned"]),
    "a refusal": ("returned", lambda value: True, lambda step: step["call"] == "supersede" and not step["returned"]),
    "a cancel reason": ("cancels", lambda value: [[value[0][0], "stuck_recovery"]], lambda step: bool(step["cancels"])),
    "a cancel twice": ("cancels", lambda value: value * 2, lambda step: bool(step["cancels"])),
    "a cancel too many": ("cancels", lambda value: [["a", "restart"]], lambda step: step["call"] == "advance"),
    "a phase": ("phase", lambda value: "running", lambda step: step["phase"] == "aborted"),
    "a code": ("result", lambda value: ["aborted", "aborted_for_restart"], lambda step: step["result"] == ["aborted", "aborted_by_user"]),
    "the slot": ("registered", lambda value: not value, lambda step: step["call"] == "advance" and not step["registered"]),
    "the signal": ("signal_aborted", lambda value: not value, lambda step: step["call"] == "expire"),
    "an error": ("threw", lambda value: "TypeError", lambda step: step["call"] == "fail"),
}


@pytest.mark.parametrize("what", SPOILED)
def test_one_changed_observation_is_found_at_its_call(what: str, records: list[Record], tmp_path: Path) -> None:
    made, number, place = _spoil(records[:200], *SPOILED[what])
    tally = fitted(SHIPPED, written(tmp_path / "spoiled.jsonl", made)).tallies[0]
    assert tally.clashed == 1
    clash = tally.clashes[0]
    assert clash.place.endswith(f":{number + 1}")
    assert clash.number == place


def test_a_changed_recording_is_violated_and_told(records: list[Record], tmp_path: Path) -> None:
    """Then every design is tried, and none explains it."""
    made, number, place = _spoil(records[:60], *SPOILED["a phase"])
    report = replay(SPEC, written(tmp_path / "spoiled.jsonl", made))
    assert exit_status(report.verdicts) == 1
    assert report.verdicts[0].outcome is Outcome.VIOLATED
    assert {fit.design for fit in report.fits} == {MACHINE.name, *(v.machine.name for v in SPEC.variants)}
    [told] = report.divergences
    assert told.place.endswith(f":{number + 1}: sequence {number}, call {place + 1}")
    assert "phase running" in told.said
    assert "phase aborted" in told.objections[0]


# ── machines that do something else ──


def _emit_without(row: str, effect: type) -> AnyMachine:
    old = SHIPPED.row(row)
    kept = tuple(e for e in old.emit if not isinstance(getattr(e, "effect", e), effect))
    assert len(kept) < len(old.emit)
    return SHIPPED.variant("mutant", replace={row: attrs.evolve(old, emit=kept)})


def _duration(timer: Timer, milliseconds: int) -> AnyMachine:
    rules = tuple(
        TimerRule(r.timer, r.armed, r.expires, Duration(milliseconds, "mutant"), r.paused) if r.timer is timer else r
        for r in SHIPPED.timers
    )
    return attrs.evolve(SHIPPED, timers=rules)


def _other_cancel(row: str) -> AnyMachine:
    old: Row[Any, Any] = SHIPPED.row(row)
    wrong = cancel(CancelReason.STUCK_RECOVERY)
    emit = tuple(wrong if isinstance(getattr(e, "effect", None), CancelBackend) else e for e in old.emit)
    return SHIPPED.variant("mutant", replace={row: attrs.evolve(old, emit=emit)})


MUTANTS: Mapping[str, Callable[[], AnyMachine]] = {
    "no settle timer after an abort": lambda: _emit_without("AbortRequested/settle", StartTimer),
    "no settle timer after an expiry": lambda: _emit_without("ExpiryRequested/accepted", StartTimer),
    "no settle timer after a retained failure": lambda: _emit_without("Failed/retained", StartTimer),
    "no settle timer after a supersession": lambda: _emit_without("SupersedeRequested/finalizing", StartTimer),
    "no lease": lambda: _emit_without("OutcomeCommitted/pending", StartTimer),
    "a sign of life does not renew the lease": lambda: SHIPPED.variant("mutant", drop=("ActivityRecorded/finalizing",)),
    "no cancel after an abort": lambda: _emit_without("AbortRequested/settle", CancelBackend),
    "another reason": lambda: _other_cancel("ExpiryRequested/accepted"),
    "a settle timer of 59,999 ms": lambda: _duration(Timer.SETTLE, 59_999),
    "a settle timer of 60,001 ms": lambda: _duration(Timer.SETTLE, 60_001),
    "a lease of 59,999 ms": lambda: _duration(Timer.LEASE, 59_999),
    "a lease of 60,001 ms": lambda: _duration(Timer.LEASE, 60_001),
    "a committed outcome may be aborted": lambda: SHIPPED.variant("mutant", drop=("AbortRequested/finalizing",), first=(
        attrs.evolve(SHIPPED.row("AbortRequested/settle"), when=None, name="AbortRequested/any"),)),
    "a late backend is kept": lambda: SHIPPED.variant("mutant", drop=("BackendAttached/late",)),
    "no settle expiry": lambda: SHIPPED.variant("mutant", drop=("SettleExpired",)),
}  # fmt: skip


@pytest.mark.parametrize("what", MUTANTS)
def test_a_mutant_of_the_machine_is_caught_by_the_recording(what: str, some: Path) -> None:
    mutant = MUTANTS[what]()
    assert fitted(mutant, some).tallies[0].clashed or fitted(mutant).tallies[0].clashed


def test_the_control_that_changes_nothing_is_not_caught(some: Path) -> None:
    same = SHIPPED.variant("control", replace={"SettleExpired": attrs.evolve(SHIPPED.row("SettleExpired"), emit=(Release(),))})
    assert fitted(same, some).tallies[0].clashed == 0


# ── other recordings of the same program ──


def every_step(change: Callable[[Record], object]) -> Callable[[list[Record]], None]:
    def run(records: list[Record]) -> None:
        for record in records:
            for step in record["steps"]:
                change(step)

    return run


def insert(**step: Any) -> Callable[[list[Record]], None]:
    """A call in the middle of the fourth sequence, with nothing to be seen of it unless ``step`` says so."""

    def run(records: list[Record]) -> None:
        steps = records[3]["steps"]
        steps.insert(2, {**steps[1], "cancels": [], "returned": None, "args": [], **step})

    return run


def other_handles(step: Record) -> None:
    names = {"a": "run-4711", "b": {"id": 7}}
    if step["call"] in ("attachBackend", "detachBackend"):
        step["args"] = [names[step["args"][0]]]
    step["cancels"] = [[names[backend], reason] for backend, reason in step["cancels"]]


OTHERS: Mapping[str, tuple[Callable[[list[Record]], object], int, str]] = {
    "as it is": (lambda records: None, 0, "behaves like openclaw_2026_9_6"),
    "other handles": (every_step(other_handles), 0, "behaves like openclaw_2026_9_6"),
    "other times": (insert(call="advance", args=[0.25]), 0, "behaves like"),
    "more fields": (every_step(lambda step: step.update(waiters=0)), 0, "fields the source does not know: steps.waiters"),
    "no ids": (lambda records: [record.pop("id") for record in records], 0, "behaves like"),
    "an empty sequence": (lambda records: records[2].update(steps=[]), 0, "behaves like"),
    "an upstream reason": (
        every_step(lambda step: step.update(args=["gone"]) if step["call"] == "upstreamAbort" else None),
        0,
        'upstream reason "gone" counts as the user\'s',
    ),
    "an unknown call without effect": (insert(call="pingHealth"), 3, "pingHealth is no known call"),
    "an unknown call with an effect": (
        insert(call="recoverAttempt", cancels=[["a", "stuck_recovery"]]),
        3,
        "not known: recoverAttempt is no known call",
    ),
    "a misspelt call": (insert(call="setFase", args=["running"]), 3, "setFase is no known call; did you mean setPhase?"),
    "an unknown phase": (insert(call="setPhase", args=["sleeping"]), 3, 'phase "sleeping" is not known'),
    "an unknown code": (insert(call="fail", args=["tired"]), 3, 'failure code "tired" is not known'),
    "an unknown expiry": (insert(call="expire", args=["none"]), 3, "an expiry names its reason"),
    "a time that runs backwards": (insert(call="advance", args=[-5]), 3, "-5 is no time in milliseconds"),
    "an argument too many": (insert(call="setPhase", args=["running", 1]), 3, "setPhase has 2 arguments, expected 1"),
    "nobody attached": (insert(call="attachBackend", args=[""]), 3, "has no identity"),
    "a field never told": (every_step(lambda step: step.pop("cancels")), 3, "not told, so not compared: cancels"),
    "nothing told": (every_step(lambda step: [step.pop(name) for name in SOURCE.compared]), 1, "nothing matched: no call tells any of"),
    "nothing known": (every_step(lambda step: step.update(call="x" + step["call"])), 1, "nothing matched: no call is known: x"),
    "no calls": (lambda records: [record.update(steps=[]) for record in records], 1, "nothing matched: no sequence has a call"),
    "a restart that the machine took for a person": (
        lambda records: [record.update(upstream="restart") for record in records if record["upstream"]],
        1,
        "sequences with a difference",
    ),
}


@pytest.mark.parametrize("what", OTHERS)
def test_other_recordings_of_the_same_program(what: str, records: list[Record], tmp_path: Path) -> None:
    change, status, said = OTHERS[what]
    made = copy.deepcopy(records[:90])
    change(made)
    report = replay(SPEC, written(tmp_path / "other.jsonl", made), variant="shipped")
    assert exit_status(report.verdicts) == status
    assert said in report.text()


def test_what_comes_after_an_unknown_call_with_an_effect_is_not_judged(records: list[Record], tmp_path: Path) -> None:
    made = copy.deepcopy(records[:10])
    OTHERS["an unknown call with an effect"][0](made)
    report = replay(SPEC, written(tmp_path / "other.jsonl", made))
    assert report.counts["calls"] - report.counts["calls judged"] == len(made[3]["steps"]) - 2
    quiet = copy.deepcopy(records[:10])
    OTHERS["an unknown call without effect"][0](quiet)
    report = replay(SPEC, written(tmp_path / "quiet.jsonl", quiet))
    assert report.counts["calls"] - report.counts["calls judged"] == 1


def test_a_difference_that_an_unknown_call_may_have_caused_is_not_held_against_the_machine(records: list[Record], tmp_path: Path) -> None:
    made = copy.deepcopy(records[:60])
    every_step(lambda step: step.update(call="consent") if step["call"] == "setAbortable" else None)(made)
    assert exit_status(replay(SPEC, written(tmp_path / "consent.jsonl", made), variant="shipped").verdicts) == 3


MALFORMED: Mapping[str, tuple[Callable[[list[Record]], object], str]] = {
    "no steps": (lambda records: records[2].pop("steps"), ":3:1: is no recorded sequence"),
    "a step that is none": (lambda records: records[2]["steps"].insert(1, "x"), ':3:30: steps[2] is "x", expected an object with call'),
    "no call": (lambda records: records[2]["steps"][0].pop("call"), ":3:30: steps[1] is {"),
    "arguments that are none": (lambda records: records[2]["steps"][0].update(args=None), ":3:30: steps[1].args is null, expected a list"),
}


@pytest.mark.parametrize("what", MALFORMED)
def test_a_malformed_recording_is_a_clear_error(what: str, records: list[Record], tmp_path: Path) -> None:
    change, said = MALFORMED[what]
    made = copy.deepcopy(records[:5])
    change(made)
    with pytest.raises(TraceError) as error:
        replay(SPEC, written(tmp_path / "bad.jsonl", made))
    assert f"bad.jsonl{said}" in str(error.value)
    assert "\n" not in str(error.value)


def test_a_torn_last_line_is_left_out_and_said(records: list[Record], tmp_path: Path) -> None:
    path = written(tmp_path / "torn.jsonl", records[:20])
    path.write_bytes(path.read_bytes()[:-50])
    report = replay(SPEC, path, variant="shipped")
    assert report.counts["sequences"] == 19
    assert "torn.jsonl:20: the last line is torn and was left out" in report.text()
    assert exit_status(report.verdicts) == 0


def test_a_truncated_archive_is_an_error(tmp_path: Path) -> None:
    path = tmp_path / "cut.jsonl.gz"
    path.write_bytes(DATA.read_bytes()[:20_000])
    with pytest.raises(TraceError, match="the gzip data ends early"):
        replay(SPEC, path)


def test_the_wrong_source_and_the_wrong_names_are_errors() -> None:
    with pytest.raises(TraceError, match="there is no source 'opencalw'; did you mean openclaw"):
        replay(SPEC, DATA, source="opencalw")
    with pytest.raises(TraceError, match="has no variant 'shiped'; did you mean shipped"):
        replay(SPEC, DATA, variant="shiped")
    with pytest.raises(TraceError, match="has no 'seq'"):
        replay(SPEC, DATA, source="trace")
    with pytest.raises(TraceError, match="is complete"):
        replay(SPEC, DATA, allow=["lost"])
    other = attrs.evolve(SPEC, machine=attrs.evolve(MACHINE, name="something_else"), variants=(), recordings={})
    with pytest.raises(TraceError, match="which is about reply_operation, not something_else"):
        replay(other, DATA)


def test_every_call_of_the_recording_is_known(records: list[Record]) -> None:
    made = Counter(step["call"] for record in records for step in record["steps"])
    assert set(made) == set(SOURCE.calls)
