"""Replaying logs: what conforms, what does not, what is said about it, and what a log may be forgiven if one asks."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import attrs
import pytest
from trace_logs import RUN, Line, dump, lines_of, play, renumbered

from turnproof.checkers.traces import ReplayReport, beliefs, log, replay
from turnproof.checkers.verdict import Outcome, exit_status
from turnproof.machines.reply_operation import MACHINE
from turnproof.machines.reply_operation_words import (
    AbortReason,
    AbortRequested,
    ActivityRecorded,
    BackendAttached,
    BackendDetached,
    Completed,
    ConsentReported,
    Phase,
    PhaseEntered,
    RecoveryRequested,
    SupersedeRequested,
)
from turnproof.specs.reply_operation import SPEC
from turnproof.specs.reply_operation_history import E0_ABORT
from turnproof.specs.reply_operation_shipped import SHIPPED
from turnproof.traces.line import TraceError

Change = Callable[[list[Line]], list[Line]]


@pytest.fixture
def run(tmp_path: Path) -> list[Line]:
    """The lines of :data:`trace_logs.RUN`: numbers 1, 2, 4, 5, 7, 8 are r1's, 3, 6, 9 are r2's."""
    return lines_of(play(tmp_path / "run.jsonl", RUN))


def judged(tmp_path: Path, lines: Sequence[Line], **asked: Sequence[str]) -> ReplayReport:
    return replay(SPEC, dump(tmp_path / "log.jsonl", lines), **asked)  # type: ignore[arg-type]


@pytest.fixture(params=["a situation never met", "one that was met before"])
def met(request: pytest.FixtureRequest, run: list[Line]) -> list[Line]:
    """Lines to put before others: none, or the same run under other keys, so that every text of it is remembered."""
    copies = [{**line, "key": f"{line['key']}-{n}"} for n in range(3) for line in run]
    return copies if request.param == "one that was met before" else []


def without(*numbers: int) -> Change:
    return lambda lines: [line for number, line in enumerate(lines, 1) if number not in numbers]


def with_(number: int, **fields: object) -> Change:
    return lambda lines: [{**line, **fields} if n == number else line for n, line in enumerate(lines, 1)]


def test_what_the_writer_wrote_conforms(tmp_path: Path) -> None:
    report = replay(SPEC, play(tmp_path / "run.jsonl", RUN))
    assert exit_status(report.verdicts) == 0
    assert dict(report.counts) == {"lines": 9, "instances": 2, "lines judged": 9, "not ended at the end": 0}
    assert "AbortRequested/settle" not in report.unused_rows
    assert "SteerRequested/accepted" in report.unused_rows
    assert f"rows used: 7 of {len(MACHINE.rows)}" in report.text()


def test_a_machine_alone_is_enough(tmp_path: Path) -> None:
    assert exit_status(replay(MACHINE, play(tmp_path / "run.jsonl", RUN)).verdicts) == 0


# ── what does not conform, and what is said ──

DIVERGED: Mapping[str, tuple[Change, int, str, str]] = {
    "an answer that is wrong": (
        with_(8, answer="taken"), 8, "it is refused there: the reply has its result; the log says taken", "none that changes one line",
    ),
    "a refusal that the log does not tell": (
        with_(8, answer=None), 8, "the log does not say it was refused", 'the line must say so ("answer": "refused")',
    ),
    "a state that is wrong": (
        with_(5, post={"result": "aborted:aborted_for_restart"}), 5,
        "result=aborted:aborted_by_user, the log says aborted:aborted_for_restart", "the event is possible there, but not with this state",
    ),
    "the handle of another": (with_(6, post={"backend": "run-1"}), 6, "backend=run-7, the log says run-1", "not with this state after it"),
    "a line left out": (
        lambda lines: renumbered(without(5)(lines)), 6, "it is ignored there: the slot was given up in time; the log says taken",
        "expected AbortRequested, UpstreamAborted, SupersedeRequested or ExpiryRequested before this line; one line missing?",
    ),
    "two lines exchanged": (
        lambda lines: renumbered([*lines[:4], lines[6], lines[5], lines[4], *lines[7:]]), 5, "it is ignored there",
        "exchange this line with the next one of its instance",
    ),
    "a line of another": (
        lambda lines: renumbered([*lines[:8], {**lines[6], "key": "r2"}, lines[8]]), 9, "it is ignored there",
        "leave this line out; does it belong to another instance?",
    ),
    "an event that was another": (
        with_(5, event="ConsentReported", args={"consents": True}), 5, "phase=running, the log says aborted",
        "with this state after it, the event can only have been AbortRequested or UpstreamAborted",
    ),
}  # fmt: skip


@pytest.mark.parametrize("what", DIVERGED)
def test_the_line_that_does_not_fit_is_told(what: str, run: list[Line], met: list[Line], tmp_path: Path) -> None:
    change, number, objection, repair = DIVERGED[what]
    report = judged(tmp_path, [*met, *change(run)])
    assert exit_status(report.verdicts) == 1
    told = report.divergences[0]
    assert told.place.endswith(f"log.jsonl:{len(met) + number}")
    assert objection in "\n".join(told.objections)
    assert repair in told.repair
    assert told.states
    assert told.possible
    assert 1 <= len(told.story) <= 4


def test_the_shortest_part_of_a_log_still_diverges_and_no_line_of_it_is_too_many(run: list[Line], tmp_path: Path) -> None:
    told = judged(tmp_path, with_(8, answer="taken")(run)).divergences[0]
    assert [t.number for t in told.story] == [2, 4, 6]
    part = [json.loads(line) for line in told.log]
    assert judged(tmp_path, part).divergences[0].place.endswith(":3")
    for number in (1, 2):
        rest = judged(tmp_path, renumbered(without(number)(part)))
        assert not any(d.place.endswith(":2") for d in rest.divergences)


def test_a_long_log_is_told_in_reasonable_time(tmp_path: Path) -> None:
    events = [("r", PhaseEntered(Phase.RUNNING)), *(("r", ConsentReported(bool(n % 2))) for n in range(1_000)), ("r", Completed(False))]
    lines = lines_of(play(tmp_path / "long.jsonl", events))
    report = judged(tmp_path, [*lines[:-1], {**lines[-1], "answer": "refused"}])
    assert [told.number for told in report.divergences[0].story] == [1_002]


def test_an_instance_that_diverged_is_left_and_the_others_are_followed(run: list[Line], tmp_path: Path) -> None:
    report = judged(tmp_path, with_(2, answer="refused")(run))
    assert len(report.divergences) == 1
    assert report.counts["lines judged"] == 4


def test_a_variant_that_can_do_it_is_named(tmp_path: Path) -> None:
    user = AbortRequested(AbortReason.USER)
    lines = lines_of(play(tmp_path / "e0.jsonl", [("r", PhaseEntered(Phase.RUNNING)), ("r", user), ("r", user)], E0_ABORT))
    assert "the variant reply_operation_e0 can do what is told above" in judged(tmp_path, lines).text()


# ── the order of lines ──

ORDER: Mapping[str, tuple[Change, tuple[str, ...], str]] = {
    "a line lost": (without(7), ("lost",), "line 5 of r1 is missing before line 6"),
    "two lines lost": (without(5, 7), ("lost",), "lines 4 to 5 of r1 are missing before line 6"),
    "the first line lost": (without(1), ("lost",), "line 1 of r1 is missing before line 2"),
    "a line doubled": (lambda lines: [*lines[:2], lines[1], *lines[2:]], ("doubled",), "line 2 was read before"),
    "a line doubled later": (lambda lines: [*lines, lines[3]], ("doubled",), "line 3 was read before"),
    "lines in the wrong order": (lambda lines: [*lines[:4], lines[6], lines[7], lines[4], lines[5], lines[8]], ("reordered",), "missing"),
    "the first lines in the wrong order": (lambda lines: [lines[1], lines[0], *lines[2:]], ("reordered",), "is missing"),
    "lost and reordered": (
        lambda lines: [lines[1], lines[0], *lines[2:6], *lines[7:]], ("reordered", "lost"), "is missing",
    ),
}  # fmt: skip


@pytest.mark.parametrize("what", ORDER)
def test_a_log_is_forgiven_only_what_one_asks_for(what: str, run: list[Line], met: list[Line], tmp_path: Path) -> None:
    change, allow, said = ORDER[what]
    strict, tolerant = judged(tmp_path, [*met, *change(run)]), judged(tmp_path, [*met, *change(run)], allow=allow)
    assert exit_status(strict.verdicts) == 1
    assert said in strict.text()
    assert exit_status(tolerant.verdicts) == 0, tolerant.text()
    assert "tolerated: " in tolerant.verdicts[0].how


def test_a_gap_of_one_line_names_what_may_have_stood_there(tmp_path: Path) -> None:
    lines = lines_of(
        play(tmp_path / "run.jsonl", [("r", PhaseEntered(Phase.RUNNING)), ("r", BackendAttached("b")), ("r", RecoveryRequested())])
    )
    report = judged(tmp_path, without(2)(lines))
    assert report.divergences[0].repair == "the missing line may be BackendAttached"


def test_tolerance_does_not_forgive_what_cannot_be(run: list[Line], tmp_path: Path) -> None:
    lines = with_(6, answer="ignored")(without(3)(run))
    assert exit_status(judged(tmp_path, lines, allow=["lost", "doubled", "reordered"]).verdicts) == 1


def test_an_identity_that_a_lost_line_brought_is_known_when_it_appears(tmp_path: Path) -> None:
    events = [PhaseEntered(Phase.RUNNING), BackendAttached("x"), ConsentReported(True), BackendDetached("x"), BackendDetached("y")]
    lines = lines_of(play(tmp_path / "run.jsonl", [("r", event) for event in events]))
    assert [line["answer"] for line in lines] == ["taken"] * 4 + ["ignored"]
    assert exit_status(judged(tmp_path, without(2)(lines), allow=["lost"]).verdicts) == 0
    assert exit_status(judged(tmp_path, without(2)(with_(5, answer="taken")(lines)), allow=["lost"]).verdicts) == 1


def test_an_identity_that_appears_may_be_another_than_the_lost_one(tmp_path: Path) -> None:
    events = [PhaseEntered(Phase.RUNNING), BackendAttached("x"), RecoveryRequested(), BackendAttached("y")]
    lines = with_(3, post={})(lines_of(play(tmp_path / "run.jsonl", [("r", event) for event in events])))
    assert exit_status(judged(tmp_path, without(2)(lines), allow=["lost"]).verdicts) == 0
    lines[3]["args"]["backend"] = "x"
    assert exit_status(judged(tmp_path, lines).verdicts) == 1, "the recovered attempt does not attach again"


def test_steps_that_are_never_logged_are_searched(run: list[Line], tmp_path: Path) -> None:
    lines = with_(7, post={"released": True})(renumbered(without(7)(run)))
    assert exit_status(judged(tmp_path, lines).verdicts) == 1
    report = judged(tmp_path, lines, unobserved=["SettleExpired"])
    assert exit_status(report.verdicts) == 0
    assert "unobserved: SettleExpired" in report.text()
    assert exit_status(judged(tmp_path, lines, unobserved=["LeaseExpired"]).verdicts) == 1


def test_a_count_of_the_whole_file_is_recognised(run: list[Line], tmp_path: Path) -> None:
    lines = [{**line, "seq": number} for number, line in enumerate(run, 3)]
    report = judged(tmp_path, lines, allow=["lost"])
    assert "seq counts the lines of the whole file" in report.text()
    lines = [{**line, "seq": number} for number, line in enumerate(run, 1)]
    assert exit_status(judged(tmp_path, lines).verdicts) == 0
    gap = judged(tmp_path, without(4)(lines))
    assert exit_status(gap.verdicts) == 1
    assert "line 4 of the file is missing before line 5" in gap.text()
    assert exit_status(judged(tmp_path, without(4)(lines), allow=["lost"]).verdicts) == 0
    assert exit_status(judged(tmp_path, without(5)(lines), allow=["lost"]).verdicts) == 0, "the lost line may be of any instance"


# ── lives, machines, events, promises ──


def test_a_key_begins_again_once_its_instance_has_ended(run: list[Line], tmp_path: Path) -> None:
    report = judged(tmp_path, [*run, *run])
    assert exit_status(report.verdicts) == 0
    assert report.counts["instances"] == 4
    assert "began again" not in report.text()


def test_an_instance_that_is_cut_off_is_noted(run: list[Line], tmp_path: Path) -> None:
    report = judged(tmp_path, [*run[:6], *run])
    assert exit_status(report.verdicts) == 0
    assert "2 instances began again before they had ended" in report.text()


def test_late_lines_of_a_forgotten_instance_are_judged_by_a_second_reading(
    run: list[Line], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(log, "RECENT", 1)
    others = [{**line, "key": f"{line['key']}-{n}"} for n in range(5) for line in run]
    late = {**run[7], "seq": 7}
    good = judged(tmp_path, [*run, *others, late])
    assert exit_status(good.verdicts) == 0
    assert "55 of 55 lines followed, 12 instances" in good.verdicts[0].how
    bad = judged(tmp_path, [*run, *others, {**late, "answer": "taken"}])
    assert exit_status(bad.verdicts) == 1
    assert bad.divergences[0].place.endswith(":55")
    counted = [{**line, "seq": number} for number, line in enumerate([*run, *others, late, late], 1)]
    assert exit_status(judged(tmp_path, counted).verdicts) == 0
    assert exit_status(judged(tmp_path, [*counted[:-1], {**counted[-1], "answer": "taken"}]).verdicts) == 1


def test_lines_of_other_machines_are_passed_over(run: list[Line], tmp_path: Path) -> None:
    other = {"seq": 1, "key": "r1", "event": "Anything", "machine": "attempt"}
    report = judged(tmp_path, [other, *run, other])
    assert exit_status(report.verdicts) == 0
    assert "lines of other machines: attempt (2)" in report.text()


def test_events_nobody_knows_are_counted_named_and_not_green(run: list[Line], tmp_path: Path) -> None:
    lines = with_(4, event="ActivtyRecorded")(run)
    report = judged(tmp_path, lines)
    assert dict(report.unknown) == {"ActivtyRecorded": 1}
    assert exit_status(report.verdicts) == 3
    assert "not known: ActivtyRecorded (1)" in report.text()
    assert exit_status(judged(tmp_path, lines, allow=["unknown"]).verdicts) == 0


def test_fields_nobody_knows_are_counted_and_named(run: list[Line], tmp_path: Path) -> None:
    report = judged(tmp_path, [{**line, "level": "info"} for line in [*run, *run]])
    assert exit_status(report.verdicts) == 0
    assert "fields the format does not know: level (18)" in report.text()


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"event": "Complete"}, "nothing matched: no line names an event of the machine, the first is 'Complete'; did you mean Completed?"),
        ({"machine": "attempt"}, "nothing matched: every line is about another machine (attempt)"),
    ],
)
def test_a_log_of_which_nothing_matched_fails(fields: dict[str, str], said: str, run: list[Line], tmp_path: Path) -> None:
    report = judged(tmp_path, [{**line, **fields} for line in run], allow=["unknown"])
    assert report.verdicts[0].outcome is Outcome.VIOLATED
    assert said in report.text()


def test_a_promise_that_a_line_breaks_is_told_in_one_line(tmp_path: Path) -> None:
    user = AbortRequested(AbortReason.USER)
    events = [PhaseEntered(Phase.RUNNING), user, ActivityRecorded(), Completed(False), user]
    path = play(tmp_path / "e0.jsonl", [("r", event) for event in events], E0_ABORT)
    spec = attrs.evolve(SPEC, machine=E0_ABORT, variants=(), recordings={})
    report = replay(spec, path)
    assert report.verdicts[0].outcome is Outcome.HOLDS
    assert exit_status(report.verdicts) == 1
    sentence = "every reply with a result that holds its slot has an armed settle timer"
    [broken] = [b for b in report.broken if b.sentence == sentence]
    assert (broken.place, broken.key, broken.times) == (f"{path}:2", "r", 1)
    assert f'{path}:2: r: AbortRequested(reason=user) broke "{sentence}" (R-REPLY-5)' in report.text()


def test_a_variant_is_followed_and_its_faults_are_known(tmp_path: Path) -> None:
    path = play(tmp_path / "shipped.jsonl", [("r", BackendAttached("b")), ("r", SupersedeRequested())], SHIPPED)
    assert exit_status(replay(SPEC, path).verdicts) == 1
    report = replay(SPEC, path, variant=SHIPPED.name)
    assert exit_status(report.verdicts) == 0
    assert any("R-REPLY-26" in broken.requirements for broken in report.broken)
    assert "broken promises are its known faults" in report.text()


def test_too_much_unlogged_is_undetermined_not_green(run: list[Line], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(beliefs, "MOST", 300)
    report = judged(tmp_path, [{**line, "seq": line["seq"] + 500} for line in run if line["key"] == "r1"], allow=["lost"])
    assert exit_status(report.verdicts) == 3
    assert "too much is unlogged to say" in report.text()


def test_names_that_nobody_has_are_errors(run: list[Line], tmp_path: Path) -> None:
    with pytest.raises(TraceError, match="allow 'losst': expected lost, doubled, reordered, unknown; did you mean lost"):
        judged(tmp_path, run, allow=["losst"])
    with pytest.raises(TraceError, match="has no such event; did you mean SettleExpired"):
        judged(tmp_path, run, unobserved=["SettleExpire"])
