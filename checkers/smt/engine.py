"""The symbolic engine: agreement of the readings, hidden rows, and every property of states and steps proved where it can be.

The order of a run: translate; compare the readings on the explored graph; let z3 look for hidden rows; search an inductive
invariant (a suggestion); write the certificate; re-check it from its file by a fresh z3 and by cvc5. Only what both of them
confirmed is called proved. What cannot be proved is UNDETERMINED, with the step on which the proof fails.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import attrs
import msgspec

from turnproof.checkers.graph import Graph
from turnproof.checkers.progress import SILENT, Progress
from turnproof.checkers.smt import carried, compose, explored, probe, prove, readings, rechecking, z3api
from turnproof.checkers.smt import certificate as certificates
from turnproof.checkers.smt.explored import Found
from turnproof.checkers.smt.grid import Grid
from turnproof.checkers.smt.pieces import Certificate, Claim, Conjunct, Table
from turnproof.checkers.smt.prove import Unreadable, Wanted
from turnproof.checkers.smt.translate import Symbolic
from turnproof.checkers.verdict import Verdict
from turnproof.machines.kernel import formula
from turnproof.specs.language import Always, Carries, Spec, Step

SEARCH_SECONDS = 60.0
"""Hard limit for the search for an invariant."""
SEED = 0


@attrs.frozen(eq=False, kw_only=True)
class Proof:
    """Everything one run found out; :mod:`.report` turns it into verdicts."""

    spec: Spec
    grid: Grid
    wanted: Sequence[Wanted]
    unreadable: Sequence[Unreadable]
    result: Mapping[str, Any] | None
    why: str
    vacuous: frozenset[str]
    """Properties that follow from the types alone."""
    state_only: frozenset[str]
    """Properties of steps that follow from the invariant, whatever the step."""
    contradiction: str
    """Why no environment is left; empty if one is."""
    violated: Mapping[str, Found]
    broken: Mapping[str, Found]
    """Conjuncts of the invariant that an explored state violates."""
    certificate: Certificate | None
    runs: Sequence[rechecking.Run]
    rechecked: Sequence[Verdict]


def check(
    spec: Spec, graph: Graph, *, certificate: Path | None = None, progress: Progress | None = None, seed: int = SEED
) -> list[Verdict]:
    """Every verdict of the symbolic engine on one specification, and the certificate of its proofs in ``certificate``.

    Raises :class:`TableError` for a table or lemma that no solver can read; a property that none can read is UNDETERMINED.
    """
    from turnproof.checkers.smt import report

    say = progress or SILENT
    symbolic = Symbolic(graph.machine, spec.histories)
    wanted, unreadable = prove.statements(symbolic, spec)
    table = prove.table(symbolic, spec)
    grid = Grid(symbolic, graph)
    types = [_conjunct(attrs.asdict(w)) for w in wanted if w.origin == "type"]
    made = [readings.agreement_verdict(grid, table, say, seed=seed), readings.shadows(spec, table, types)]
    with tempfile.TemporaryDirectory(prefix="turnproof-") as folder:
        path = certificate or Path(folder) / f"{graph.machine.name}.certificate.json"
        proof = _prove(spec, grid, wanted, unreadable, table, path, say, seed)
    return made + report.verdicts(proof)


def _prove(
    spec: Spec, grid: Grid, wanted: list[Wanted], unreadable: list[Unreadable], table: Table, path: Path, say: Progress, seed: int
) -> Proof:
    say.say("proof: search", 0)
    violated = _violations(spec, grid, frozenset(w.name for w in wanted), say)
    # What a replayed step violates cannot be shown, and would only mislead the search: it assumes what it is to show.
    hopeful = [w for w in wanted if w.name not in violated or not violated[w.name].sure]
    result, why = prove.search(prove.task(table, hopeful, grid, seed=seed), seconds=SEARCH_SECONDS, progress=say)
    made: Certificate | None = None
    runs: list[rechecking.Run] = []
    rechecked: list[Verdict] = []
    vacuous, state_only, contradiction = frozenset[str](), frozenset[str](), ""
    broken: Mapping[str, Found] = {}
    if result is not None:
        invariant = [_conjunct(piece) for piece in result["invariant"]]
        claims = list(_claims(spec, hopeful, result))
        rows = tuple(msgspec.structs.replace(row, fires=result["fires"][row.name]) for row in table.rows)
        table = msgspec.structs.replace(table, rows=rows)
        vacuous, state_only, contradiction = vacuity(table, invariant, claims)
        kept = [msgspec.structs.replace(c, needs_step=c.name not in state_only) for c in claims if c.name not in vacuous]
        broken = explored.states_against(grid, {c.name: (_parsed(grid, c), None) for c in invariant})
        if kept and any(row.fires for row in rows):
            unproved = {
                p.name: "not proved"
                for p in spec.properties
                if isinstance(p, Always | Carries | Step) and p.name not in {c.name for c in kept}
            }
            made = certificates.make(
                table, invariant, kept, unproved, {"z3": z3api.VERSION, "python": sys.version.split()[0], "seed": str(seed)}
            )
            certificates.write(made, path)
            made = certificates.read(path)
            runs = rechecking.run(made, say)
            rechecked = rechecking.verdicts(made, runs, path)
            path.with_suffix(".log").write_text("\n".join(rechecking.log(made, runs)) + "\n", encoding="utf-8")
    return Proof(
        spec=spec,
        grid=grid,
        wanted=wanted,
        unreadable=unreadable,
        result=result,
        why=why,
        vacuous=vacuous,
        state_only=state_only,
        contradiction=contradiction,
        violated=violated,
        broken=broken,
        certificate=made,
        runs=runs,
        rechecked=rechecked,
    )


def _conjunct(piece: Mapping[str, Any]) -> Conjunct:
    return Conjunct(piece["name"], piece["origin"], tuple(piece["reads"]), piece["smt"])


def _claims(spec: Spec, wanted: Sequence[Wanted], result: Mapping[str, Any]) -> Iterator[Claim]:
    """The properties that the search shows."""
    requirements = {p.name: p.requirements for p in spec.properties}
    for w in wanted:
        if w.origin == "step" and w.name in result["steps"]:
            yield Claim(w.name, "step", requirements[w.name], w.reads, w.smt)
        elif w.origin == "property" and (w.name not in result["failed"] or w.name in result["k"]):
            yield Claim(w.name, "always", requirements[w.name], w.reads, w.smt, k=result["k"].get(w.name, 1))


def vacuity(table: Table, invariant: Sequence[Conjunct], claims: Sequence[Claim]) -> tuple[frozenset[str], frozenset[str], str]:
    """Claims that the types imply, claims about steps that the invariant implies, and why no step is left to the environment."""
    alone, allowed = compose.types_alone(table, invariant, claims), compose.invariant_alone(table, invariant, claims)
    questions = [(g.preamble, [q.assertion for q in g.queries]) for g in (alone, allowed)]
    questions.append((alone.preamble, ["true", table.assumption]))
    asked = probe.ask(compose.prelude(table, invariant, claims), questions)
    vacuous = frozenset(c.name for c, answer in zip(claims, asked.answers[0], strict=True) if answer == "unsat")
    steps = [c for c in claims if c.kind == "step"]
    state_only = frozenset(c.name for c, answer in zip(steps, asked.answers[1], strict=True) if answer == "unsat") - vacuous
    types, assumption = asked.answers[2]
    why = (
        "no state satisfies the domains of its fields"
        if types == "unsat"
        else "the environment assumption can never hold"
        if assumption == "unsat"
        else ""
    )
    return vacuous, state_only, why


def _violations(spec: Spec, grid: Grid, readable: frozenset[str], say: Progress) -> Mapping[str, Found]:
    """Properties that the explored graph violates, by the z3 terms themselves."""
    states: dict[str, tuple[z3api.Expr, object]] = {}
    steps: dict[str, tuple[z3api.Expr, object]] = {}
    for prop in spec.properties:
        if prop.name in readable and isinstance(prop, Always):
            states[prop.name] = (grid.symbolic.state_formula(prop.holds, prop.name), formula(prop.holds, prop.name))
        elif prop.name in readable and isinstance(prop, Step):
            steps[prop.name] = (grid.symbolic.step_formula(prop.holds, prop.name), formula(prop.holds, prop.name))
    return {**explored.states_against(grid, states), **explored.steps_against(grid, steps, say), **carried.violated(grid.graph, spec)}


def _parsed(grid: Grid, conjunct: Conjunct) -> z3api.Expr:
    return grid.symbolic.context.parse(f"(assert {conjunct.smt})", grid.symbolic.symbols())[0]
