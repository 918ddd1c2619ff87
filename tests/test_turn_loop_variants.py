"""The four judges: what they share, where they part, and the outcome table of each, cell by cell."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import attrs
import pytest

from turnproof.checkers import explicit
from turnproof.checkers.verdict import Outcome
from turnproof.machines.finish_reason import FinishReason
from turnproof.machines.kernel import Taken
from turnproof.machines.turn_loop import MACHINE
from turnproof.machines.turn_loop_events import CompactionEnded, StepFinished, StreamEnded
from turnproof.machines.turn_loop_words import CompactionResult, Ending, Phase, TurnLoop
from turnproof.specs.language import AnyMachine, Spec
from turnproof.specs.tool_call import SPEC as TOOL_CALL
from turnproof.specs.turn_loop import SPEC
from turnproof.specs.turn_loop_history import POST, PRE, SMALL, V2
from turnproof.specs.turn_loop_outcomes import JUDGES, ROWS, Row, outcome, table

TABLE = Path(__file__).resolve().parents[1] / "diagrams" / "turn_loop_outcomes.md"
JUDGE_EVENTS = {"StepRecorded", "CompactionEnded"}


# ── variants ──


@pytest.mark.parametrize("variant", [PRE, POST, V2], ids=lambda machine: machine.name)
def test_variants_replace_the_judge_and_the_exit_guard_alone(variant: AnyMachine) -> None:
    """R-LOOP-30: every row that differs judges a step, which is also what the exit guard reads, or accepts a summary."""
    theirs, ours = {row.name: row for row in variant.rows}, {row.name: row for row in MACHINE.rows}
    different = {n for n in theirs.keys() | ours.keys() if theirs.get(n) is not ours.get(n)}
    assert different
    assert {(theirs.get(n) or ours[n]).event.__name__ for n in different} <= JUDGE_EVENTS
    assert attrs.evolve(variant.initial, retry_limit=5) == MACHINE.initial


def known_finishes(machine: AnyMachine, state: TurnLoop, event: object) -> bool:
    """Whether the event keeps every finish known: no unknown reason, no stream that closes without a finish part."""
    if isinstance(event, StepFinished) and event.reason is FinishReason.UNKNOWN:
        return False
    silent = isinstance(event, StreamEnded) and state.phase is Phase.STREAMING and state.ending is Ending.OPEN
    dead_summary = isinstance(event, CompactionEnded) and event.result is CompactionResult.EMPTY
    return not silent and not dead_summary


def differences(one: AnyMachine, other: AnyMachine, *, only_known: bool) -> Iterator[str]:
    """Every pair at which two machines answer differently, in states that both reach."""
    queue = [SMALL]
    seen = {SMALL}
    for state in queue:
        for event in one.all_events(tokens=1, counter=1):
            if only_known and not known_finishes(one, state, event):
                continue
            first, second = one.step(state, event), other.step(state, event)
            effects = [a.effects if isinstance(a, Taken) else () for a in (first, second)]
            after = [a.state if isinstance(a, Taken) else state for a in (first, second)]
            if type(first) is not type(second) or effects[0] != effects[1] or after[0] != after[1]:
                yield f"{event} in {state}"
            elif after[0] not in seen and after[0].open_calls <= 1 and after[0].steps_left <= 1:
                seen.add(after[0])
                queue.append(after[0])
    assert len(seen) > 1_000


def test_before_and_after_the_fix_agree_where_every_finish_is_known() -> None:
    """R-LOOP-24."""
    assert list(differences(PRE, POST, only_known=True)) == []


def test_before_and_after_the_fix_part_at_an_unknown_finish_alone() -> None:
    found = list(differences(PRE, POST, only_known=False))
    assert found
    assert all("UNKNOWN" in text for text in found)


@pytest.mark.parametrize(("spec", "designs"), [(SPEC, 10), (TOOL_CALL, 4)])
def test_every_design_fails_where_it_should(spec: Spec, designs: int) -> None:
    verdicts = explicit.check_variants(spec)
    assert len(spec.variants) == designs
    assert len(verdicts) == sum(len(v.violates) for v in spec.variants) >= designs
    assert [f"{v.machine}: {v.check}: {v.detail}" for v in verdicts if v.outcome is not Outcome.HOLDS] == []


def test_the_silent_end_is_told_as_it_was_reported() -> None:
    """A stream that says why it stopped in a word nobody maps, and a run that is complete for it."""
    verdict = next(v for v in explicit.check_variants(SPEC) if v.check.endswith("completed implies a terminal reason"))
    assert verdict.story is not None
    assert [step.event.partition("(")[0] for step in verdict.story.steps] == [
        "UserPrompted", "HistoryLoaded", "Prepared", "StepFinished", "StreamEnded", "StepRecorded", "HistoryLoaded"
    ]  # fmt: skip
    assert "reason=unknown" in verdict.story.steps[3].event


# ── the outcome table ──

SILENT = "SILENT END"
STORM = "asked again at once, without end"
SHOULD: dict[str, str] = {
    "A": r"same request after a wait \(2 times\), errored \(incomplete_stream\)",
    "B": r"same request after a wait \(2 times\), errored \(incomplete_stream\)",
    "C": r"asked to go on after a wait, errored \(incomplete_stream\)",
    "D": r"next step with the results, completed",
    "D2": r"next step with the results, completed",
    "E": r"(asked to go on after a wait, )?errored \(incomplete_stream\)",
    "F": r"same request after a wait \(2 times\), errored \(incomplete_stream\)",
    "F2": r"asked to go on after a wait, errored \(incomplete_stream\)",
    "G": r"errored \(structured_output_missing\)",
    "H": r"compacts, errored \(compaction_failed\)",
    "I": r"same request after a wait \(2 times\), errored \(incomplete_stream\)",
    "I2": r"asked to go on after a wait, errored \(incomplete_stream\)",
    "J": r"same request after a wait \(2 times\), errored \(empty_answer\)",
    "K": r"errored \(length\)",
    "L": r"errored \(provider\)",
    "M": r"errored \(content_filter\)",
    "N": r"same request after a wait, aborted",
    "O": r"asked to go on after a wait, errored \(incomplete_stream\)",
    "O2": r"same request after a wait \(2 times\), errored \(incomplete_stream\)",
    "P": r"errored \(length\)",
    "Q": r"next step with the results, completed",
    "R": r"completed",
    "S": r"blocked",
    "T": r"compacts, completed",
    "T2": r"next step with the results, compacts, completed",
    "U": r"next step with the results after a wait, completed",
}
"""The published "should be", as what the bounded judge must say: bounded tries after waits, then an error that names its cause."""

UPSTREAM: dict[str, tuple[str, str]] = {
    **dict.fromkeys(("A", "B", "C", "E", "F", "F2", "G"), (SILENT, STORM)),
    **dict.fromkeys(("I", "I2", "O", "O2", "P"), (STORM, STORM)),
    **dict.fromkeys(("J", "K", "L", "S"), (SILENT, SILENT)),
    **dict.fromkeys(("D", "D2", "Q"), ("next step with the results, completed",) * 2),
    "H": ("compacts, completed",) * 2,
    "M": ("errored (content_filter)",) * 2,
    "N": ("same request after a wait, aborted",) * 2,
    "R": ("completed",) * 2,
    "T": ("compacts, completed",) * 2,
    "T2": ("next step with the results, compacts, completed",) * 2,
    "U": ("same request after a wait (5 times), errored (provider)",) * 2,
}
"""The published columns before and after 1.18.21. N differs upstream by its cancel, which is a variant of its own."""

RESUMES = r"asked to go on after a wait \(4 times\), errored \(incomplete_stream\)"
CORE_RUNNER: dict[str, str] = {
    **dict.fromkeys(("A", "I", "O2"), r"same request after a wait \(4 times\), errored \(incomplete_stream\)"),
    **dict.fromkeys(("B", "C", "E", "F", "F2", "G", "I2", "O", "P"), RESUMES),
    **dict.fromkeys(("D", "D2", "U"), "asked to go on after a wait, completed"),
    "H": r"compacts, errored \(compaction_failed\)",
    **dict.fromkeys(("J", "K", "L"), SILENT),
    "M": r"errored \(content_filter\)",
    "N": "same request after a wait, aborted",
    "Q": "next step with the results, completed",
    "R": "completed",
    "S": "blocked",
    "T": "compacts, completed",
    "T2": "next step with the results, compacts, completed",
}
"""The core runner by its description; K and L are not described there, and stand as before."""


def test_the_table_has_every_row_once() -> None:
    letters = [row.letter for row in ROWS]
    assert len(set(letters)) == len(letters)
    assert {letter[0] for letter in letters} == set("ABCDEFGHIJKLMNOPQRSTU")
    assert set(letters) == set(SHOULD) == set(UPSTREAM) == set(CORE_RUNNER)


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.letter)
def test_the_bounded_judge_does_what_should_be(row: Row) -> None:
    assert re.fullmatch(SHOULD[row.letter], outcome(JUDGES["bounded"], row))


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.letter)
def test_upstreams_judges_do_what_was_published(row: Row) -> None:
    assert (outcome(JUDGES["pre"], row), outcome(JUDGES["post"], row)) == UPSTREAM[row.letter]
    assert re.fullmatch(CORE_RUNNER[row.letter], outcome(JUDGES["v2"], row))


def test_no_cell_of_the_bounded_judge_is_silent_or_endless() -> None:
    cells = {row.letter: outcome(JUDGES["bounded"], row) for row in ROWS}
    assert not [letter for letter, cell in cells.items() if SILENT in cell or "without end" in cell or "at once" in cell]


def test_the_published_table_is_the_one_that_is_played() -> None:
    assert TABLE.read_text(encoding="utf-8") == table(), "run: python -m turnproof.specs.turn_loop_outcomes"
