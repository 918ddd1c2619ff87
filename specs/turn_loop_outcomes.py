"""What each judge makes of each way a step can end: the outcome table, played and not written.

A row is one way a step ends and what it left, as a script. The same attempt is played again whenever the loop asks the model again,
until the run is over or has asked :data:`PATIENCE` times.
"""

from __future__ import annotations

from collections.abc import Mapping

import attrs

from turnproof.machines.turn_loop_events import AppendContinue, CompactionEnded, HistoryLoaded, StepRecorded, WarnEmpty
from turnproof.machines.turn_loop_words import EMPTY, Content, Phase
from turnproof.specs.language import AnyMachine
from turnproof.specs.turn_loop_history import BOUNDED, POST, PRE, V2
from turnproof.specs.turn_loop_script import Played, Script

PATIENCE = 12
"""Requests after which a run that still goes on is called endless; every budget together allows fewer."""

JUDGES: Mapping[str, AnyMachine] = {"pre": PRE, "post": POST, "v2": V2, "bounded": BOUNDED}


@attrs.frozen
class Row:
    """One way a step ends."""

    letter: str
    finish: str
    content: str
    attempt: tuple[str, ...]
    """The words of the attempt, played each time the model is asked."""
    then: tuple[str, ...] = ("text", "finish(stop)", "stream_end")
    """What is played after results went back to the model, or after a compaction."""
    first: tuple[str, ...] = ()
    """What comes before the prompt."""


def _row(letter: str, finish: str, content: str, attempt: str, *, first: str = "") -> Row:
    return Row(letter, finish, content, tuple(attempt.split()), first=tuple(first.split()))


ROWS: tuple[Row, ...] = (
    _row("A", "unknown", "nothing", "finish(unknown) stream_end"),
    _row("B", "unknown", "reasoning only", "reasoning finish(unknown) stream_end"),
    _row("C", "unknown", "partial text", "text finish(unknown) stream_end"),
    _row("D", "unknown", "a local call completed", "tool_call(a) tool_done(a) finish(unknown) stream_end"),
    _row("D2", "unknown", "a local call failed", "tool_call(a) tool_failed(a) finish(unknown) stream_end"),
    _row("E", "unknown", "only a hosted call", "hosted(a) finish(unknown) stream_end"),
    _row("F", "unknown", "only an unfinished call", "tool_input(a) finish(unknown) stream_end"),
    _row("F2", "unknown", "only calls held back and never run", "held_call(a) finish(unknown) stream_end"),
    _row("G", "unknown", "structured output wanted, none given", "text finish(unknown) stream_end", first="json_schema"),
    _row("H", "unknown", "of a compaction", "compaction_empty", first="overflow"),
    _row("I", "absent", "nothing", "stream_end"),
    _row("I2", "absent", "partial text", "text stream_end"),
    _row("J", "stop", "empty", "finish(stop) stream_end"),
    _row("K", "length", "text", "text finish(length) stream_end"),
    _row("L", "error", "a malformed call", "tool_input(a) finish(error) stream_end"),
    _row("M", "content-filter", "text", "text finish(content-filter) stream_end"),
    _row("N", "absent", "cancelled in the wait for a retry", "stream_error(http_500) cancel"),
    _row("O", "tool-calls", "no call", "text finish(tool-calls) stream_end"),
    _row("O2", "tool-calls", "nothing at all", "finish(tool-calls) stream_end"),
    _row("P", "tool-calls", "only an unfinished call", "tool_input(a) finish(tool-calls) stream_end"),
    _row("Q", "stop", "a local call completed", "tool_call(a) tool_done(a) finish(stop) stream_end"),
    _row("R", "stop", "only a hosted call", "hosted(a) finish(stop) stream_end"),
    _row("S", "tool-calls", "a person rejected a call", "tool_call(a) reject finish(tool-calls) stream_end"),
    _row("T", "stop", "over the limit", "overflow text finish(stop) stream_end compaction_done"),
    _row("T2", "tool-calls", "over the limit", "overflow tool_call(a) tool_done(a) finish(tool-calls) stream_end compaction_done"),
    _row("U", "a passing error", "a local call completed", "tool_call(a) tool_done(a) stream_error(socket)"),
)  # fmt: skip
"""The rows of the published table; a digit marks a second case of one row."""


def outcome(machine: AnyMachine, row: Row) -> str:
    """What the loop does, in words: each decision once, with how often it came, then how the run ends."""
    script = Script(machine).play((*row.first, "user_prompt"))
    for _ in range(PATIENCE + 1):
        if script.is_over:
            break
        # A model that is asked again calls again, under a new id and with another input.
        call = chr(ord("a") + script.samples % 26)
        script.play(row.then if _moved_on(script) else (word.replace("(a)", f"({call})") for word in row.attempt))
        script.word("sample")
    decisions = [text for step in script.steps if (text := _decision(step))]
    if not script.is_over:
        return f"{_counted(decisions[:1])}, without end"
    return ", ".join(part for part in (_counted(decisions), _end(script)) if part)


def _moved_on(script: Script) -> bool:
    """Whether the next request holds something that the first did not: results of calls, or a summary."""
    accepted = any(isinstance(s.event, CompactionEnded) and s.after.phase is Phase.DECIDING for s in script.steps)
    return accepted or any(
        isinstance(s.event, StepRecorded) and s.before.content is Content.RESULT and not s.after.repeat for s in script.steps
    )


SAME = "same request after a wait"
ON = "asked to go on after a wait"
RESULTS = "next step with the results"
LATER = "next step with the results after a wait"
AT_ONCE = "asked again at once"
COMPACTS = "compacts"


def _decision(step: Played) -> str:
    """What the judge decided, if it did; the end of a run is told by its outcome."""
    phase = step.after.phase
    if isinstance(step.event, HistoryLoaded) and phase is Phase.COMPACTING:
        return COMPACTS
    if not isinstance(step.event, StepRecorded) or step.answer != "taken":
        return ""
    if phase in (Phase.RETRY_WAIT, Phase.RESAMPLE_WAIT, Phase.CONTINUE_WAIT):
        asks = any(isinstance(e, AppendContinue) for e in step.effects)
        return SAME if step.after.repeat else ON if asks else LATER
    if phase is Phase.DECIDING and not step.after.answered:
        return RESULTS if step.before.content.value == "result" else AT_ONCE
    return ""


def _counted(decisions: list[str]) -> str:
    parts: list[str] = []
    for text in dict.fromkeys(decisions):
        times = decisions.count(text)
        parts.append(text if times == 1 else f"{text} ({times} times)")
    return ", ".join(parts)


def _end(script: Script) -> str:
    state = script.state
    if state.phase is Phase.ERRORED:
        return f"errored ({state.cause.value})"
    if state.phase is Phase.COMPLETED:
        last = [s.before for s in script.steps if isinstance(s.event, StepRecorded)][-1]
        marked = bool(script.effects(WarnEmpty))
        silent = state.ending.value not in ("stop", "captured") or (last.content in EMPTY and not marked)
        return "SILENT END" if silent else "completed, marked empty" if marked else "completed"
    return str(state.phase.value)


def table() -> str:
    """The whole table as Markdown."""
    lines = [
        "# What each judge makes of the end of a step",
        "",
        "Played from the machine by `turnproof.specs.turn_loop_outcomes`; the script of each row is in its source. A run that still",
        f"goes on after {PATIENCE} requests is called without end. SILENT END: completed, although the step had no completion reason",
        "or not a word.",
        "",
        f"| # | finish | content | {' | '.join(JUDGES)} |",
        f"|{'---|' * (3 + len(JUDGES))}",
    ]
    lines += [f"| {r.letter} | {r.finish} | {r.content} | {' | '.join(outcome(m, r) for m in JUDGES.values())} |" for r in ROWS]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    from pathlib import Path

    Path(__file__).resolve().parents[1].joinpath("diagrams", "turn_loop_outcomes.md").write_text(table(), encoding="utf-8")
