"""The two verdicts about the table itself: its readings agree, and no row is hidden."""

from __future__ import annotations

import time
from collections.abc import Sequence

import attrs

from turnproof.checkers.progress import Progress
from turnproof.checkers.smt import agreement, probe, unread
from turnproof.checkers.smt.agreement import Agreed, Disagreement, state_text
from turnproof.checkers.smt.grid import Grid
from turnproof.checkers.smt.pieces import Conjunct, Table
from turnproof.checkers.verdict import Engine, Outcome, Verdict
from turnproof.checkers.written import show_event
from turnproof.specs.language import Spec

PAIRS = 300
"""Pairs that the solver itself computes."""
FEW = 3

AGREE = "every reading of the table chooses the same row, successor and effects"
HIDDEN = "no row is hidden by the rows above it"


def agreement_runs(grid: Grid, say: Progress) -> tuple[list[Agreed], str]:
    """Every reading compared with the graph; and why one is missing."""
    machine = grid.graph.machine
    runs = [agreement.plain(grid, unread.REFERENCE, lambda event: machine.generated[type(event)], say)]
    if machine.interned_events:
        # The graph was explored through states of the table itself, found by identity; a copy is found by value.
        copies = [attrs.evolve(state) for state in grid.graph.states[: grid.graph.explored]]
        runs.append(agreement.plain(grid, "interned table, by value", lambda event: machine.step, say, states=copies))
    slow: dict[str, agreement.Play] = {
        unread.REFERENCE + " (Opaque fields)": lambda state, event: machine.generated[type(event)](state, event),
        "interpretation": machine.interpret,
    }
    missing = ""
    try:
        from turnproof.checkers.draw.view import View
    except ModuleNotFoundError as error:
        missing = f"the transitions view is not compared: {error}"
    else:
        slow["transitions view"] = View(machine).play
    runs += unread.projected(grid, slow, say)
    runs.append(agreement.terms(grid, say))
    return runs, missing


def agreement_verdict(grid: Grid, table: Table, say: Progress, *, seed: int) -> Verdict:
    """All readings on every explored pair, and z3 itself on a sample."""
    started = time.perf_counter()
    runs, missing = agreement_runs(grid, say)
    sampled = probe.sample(grid, table, pairs=PAIRS, seed=seed)
    called = "; ".join(f"{run.reading} {run.calls:,}" for run in runs)
    how = (
        f"exhaustive ({grid.graph.steps:,} pairs of state and event; evaluations: {called}; "
        f"computed by z3 itself: {sampled.confirmed} of a sample of {sampled.confirmed + len(sampled.wrong)}, seed {seed})"
    )
    differences = [d for run in runs for d in run.differences]
    detail = _details(grid, differences) + [f"z3's own answer: {line}" for line in sampled.wrong[:FEW]]
    outcome = Outcome.VIOLATED if detail and (differences or not sampled.why) else Outcome.HOLDS
    if outcome is Outcome.HOLDS and (missing or sampled.why):
        outcome, detail = Outcome.UNDETERMINED, [missing or sampled.why]
    return Verdict(
        machine=grid.graph.machine.name,
        check=AGREE,
        engine=Engine.TABLE,
        outcome=outcome,
        how=how,
        detail="; ".join(detail),
        seconds=time.perf_counter() - started,
    )


def _details(grid: Grid, differences: Sequence[Disagreement]) -> list[str]:
    lines = [
        f"{d.reading}: {show_event(grid.graph.events[d.event])} in {state_text(grid.graph, grid.graph.states[d.node])}: "
        f"{d.what}: expected {d.expected}, found {d.found}"
        for d in differences[:FEW]
    ]
    return lines + ([f"and {len(differences) - FEW} more"] if len(differences) > FEW else [])


def shadows(spec: Spec, table: Table, types: Sequence[Conjunct]) -> Verdict:
    """Rows that no state of the types can choose because of the rows above them."""
    started = time.perf_counter()
    found, undecided, why = probe.shadowed(table, types)
    detail = [
        f"row {s.row} is hidden by {', '.join(s.hidden_by)}: move it above, or take it out"
        if s.hidden_by
        else f"the guard of row {s.row} is never true"
        for s in found
    ]
    outcome = Outcome.VIOLATED if found else Outcome.UNDETERMINED if undecided else Outcome.HOLDS
    if outcome is Outcome.UNDETERMINED:
        detail = [f"not decided for {', '.join(undecided[:FEW])}: {why or 'z3 gave no answer in time'}"]
    return Verdict(
        machine=table.machine,
        check=HIDDEN,
        engine=Engine.TABLE,
        outcome=outcome,
        how=f"z3, over all states of the types ({len([r for r in table.rows if not r.name.startswith('hole/')])} rows)",
        detail="; ".join(detail),
        seconds=time.perf_counter() - started,
    )
