"""What every table owes: some row answers every reachable pair, every row answers one, and every guard decides something.

A row is reached by a pair of state and event if the event and the phase are its own and no row above it answers. A guard that is
true of every pair that reaches it decides nothing, and neither does one that is true of none.
"""

from __future__ import annotations

import time
from collections.abc import Iterator

import attrs
import numpy as np

from turnproof.checkers.columns import Array, condition, is_array
from turnproof.checkers.graph import Graph
from turnproof.checkers.judge import Judge, Violation, told
from turnproof.checkers.verdict import Engine, Outcome, Verdict
from turnproof.machines.kernel import OnlyIf, show
from turnproof.specs.language import Said


@attrs.frozen
class RowCount:
    """One row on the reachable pairs."""

    row: str
    event: str
    answer: str
    reached: int
    """Pairs that come as far as this row."""
    fired: int
    """Pairs that it answers."""

    @property
    def passed(self) -> int:
        """Pairs that reach it and find its guard false."""
        return self.reached - self.fired


def count_rows(graph: Graph) -> tuple[RowCount, ...]:
    """How often each row is reached and answers."""
    phase = graph.columns[graph.machine.state, graph.machine.phase][: graph.explored]
    order = {member: n for n, member in enumerate(graph.machine.phases)}
    blocks = {block.event: graph.row[block.start : block.stop] for block in graph.blocks}
    made = []
    for number, row in enumerate(graph.machine.rows):
        chosen = blocks[row.event]
        if row.phases:
            chosen = chosen[:, np.isin(phase, [order[p] for p in row.phases])]
        reached = int((chosen >= number).sum())
        made.append(RowCount(row.name, row.event.__name__, row.answer, reached, int(graph.fires[number])))
    return tuple(made)


def check_table(judge: Judge) -> list[Verdict]:
    """Environment, totality, dead rows, guards, conditions of effects: one verdict each, or one for each thing that is wrong."""
    return [*_environment(judge), *_totality(judge), *_rows(judge), *_conditions(judge)]


def _verdict(
    judge: Judge, check: str, wrong: str, started: float, *, violation: Violation | None = None, requirements: tuple[str, ...] = ()
) -> Verdict:
    stories = violation.stories if violation else ()
    return Verdict(
        machine=judge.machine.name,
        check=check,
        engine=Engine.TABLE,
        outcome=Outcome.VIOLATED if wrong else Outcome.HOLDS,
        how=judge.graph.bounds(),
        requirements=requirements,
        detail=wrong,
        story=stories[0] if stories else None,
        others=stories[1:],
        seconds=time.perf_counter() - started,
    )


def _environment(judge: Judge) -> Iterator[Verdict]:
    started, graph = time.perf_counter(), judge.graph
    wrong = ""
    if judge.spec.assume is not None:
        assumed = show(judge.spec.assume)
        if not (graph.row[:, 0] >= 0).any():
            wrong = f"no event satisfies the assumption `{assumed}` in the initial state, so nothing was explored: correct assume="
        elif (graph.row >= 0).all():
            wrong = f"the assumption `{assumed}` excludes no step: drop assume="
        yield _verdict(judge, "the environment assumption can be met and excludes something", wrong, started)
    if not wrong:
        wrong = "" if graph.answers(Said.TAKEN) else "no step is taken from any state explored, so every property holds for want of runs"
        yield _verdict(judge, "the machine takes a step", wrong, started)


def _totality(judge: Judge) -> Iterator[Verdict]:
    started, graph = time.perf_counter(), judge.graph
    check = "every reachable pair has a row"
    holes = graph.row == graph.hole
    if not holes.any():
        yield _verdict(judge, check, "", started, requirements=judge.spec.total)
        return
    for block in graph.blocks:
        here = np.zeros_like(holes)
        here[block.start : block.stop] = holes[block.start : block.stop]
        if not here.any():
            continue
        line = judge.first_runs(here, all_rows=False)[0]
        name = block.event.__name__
        broken = told(f"{check}: none answers {name}", judge.spec.total, "the event is lost, or the caller crashes")
        story = judge.tell(line, lambda run: run.falls_through(), broken, "run.expect_an_answer()")
        violation = Violation((story,), int(here.sum()), "steps")
        wrong = f"no row answers {name} in {violation.count:,} reachable pairs: add a row for it, last of its group"
        yield _verdict(judge, f"{check}: {name}", wrong, started, violation=violation, requirements=judge.spec.total)


def _rows(judge: Judge) -> Iterator[Verdict]:
    started = time.perf_counter()
    dead, idle = [], []
    for count in count_rows(judge.graph):
        row = judge.machine.row(count.row)
        guard = "" if row.guard is None else show(row.guard)
        if not count.fired and count.reached:
            dead.append(f"row {count.row} never fires: its guard `{guard}` is false of all {count.reached:,} pairs that reach it")
        elif not count.fired:
            dead.append(f"row {count.row} never fires: no pair reaches it; {_why_unreached(judge, count)}")
        elif guard and not count.passed:
            idle.append(
                f"row {count.row}: its guard `{guard}` is true of all {count.reached:,} pairs that reach it and decides nothing: drop when="
            )
    yield _verdict(judge, "every row fires", "\n".join(dead), started)
    yield _verdict(judge, "every guard is true somewhere and false somewhere", "\n".join(idle), started)


def _why_unreached(judge: Judge, count: RowCount) -> str:
    row, graph = judge.machine.row(count.row), judge.graph
    if row.phases:
        phase = graph.columns[graph.machine.state, graph.machine.phase][: graph.explored]
        order = {member: n for n, member in enumerate(graph.machine.phases)}
        missing = [p.name.lower() for p in row.phases if not (phase == order[p]).any()]
        if len(missing) == len(row.phases):
            return f"no reachable state is in {' or '.join(missing)}"
    return f"the rows above it answer every {count.event}: drop it, or move it up"


def _conditions(judge: Judge) -> Iterator[Verdict]:
    started, graph = time.perf_counter(), judge.graph
    wrong = []
    columns = {c.block.event: c for c in judge.evaluation.steps}
    for number, row in enumerate(graph.machine.rows):
        for item in row.emit:
            if not isinstance(item, OnlyIf) or not graph.fires[number]:
                continue
            here = columns[row.event]
            data, fired = condition(item.condition, f"row {row.name}: only_if()")(here), here.row == number
            held: Array | bool = (data & fired).sum() if is_array(data) else int(data) * fired.sum()
            effect, text, steps = type(item.effect).__name__, show(item.condition), int(fired.sum())
            if not held:
                wrong.append(f"row {row.name}: `{text}` is false of all its {steps:,} steps, so {effect} is never emitted: drop it")
            elif int(held) == steps:
                wrong.append(f"row {row.name}: `{text}` is true of all its {steps:,} steps: emit {effect} without only_if()")
    yield _verdict(judge, "every only_if() is true somewhere and false somewhere", "\n".join(wrong), started)


__all__ = ["RowCount", "check_table", "count_rows"]
