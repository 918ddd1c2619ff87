"""A whole run of the symbolic engine on a system: compare, search, write the certificate, have it re-checked, and report.

Nothing is called proved that rests on a step the terms do not allow or do not follow: without the claims that no step is a fault,
no other claim is made.
"""

from __future__ import annotations

import base64
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import attrs
import msgspec
import numpy as np

from turnproof.checkers.network.explicit import NetworkGraph, explore
from turnproof.checkers.network.questions import BROKEN
from turnproof.checkers.progress import SILENT, Progress
from turnproof.checkers.smt import certificate as certificates
from turnproof.checkers.smt import compose, prove, rechecking, z3api
from turnproof.checkers.smt.engine import vacuity
from turnproof.checkers.smt.evaluate import Evaluator
from turnproof.checkers.smt.pieces import Certificate, Claim, Conjunct, Table
from turnproof.checkers.smt.prove import QUERY_MS, Unreadable, Wanted
from turnproof.checkers.smt_network import agreement, pieces, probe
from turnproof.checkers.smt_network.agreement import Agreed, Comparison
from turnproof.checkers.smt_network.columns import Column, States
from turnproof.checkers.smt_network.probe import Sampled
from turnproof.checkers.smt_network.relation import Network
from turnproof.checkers.verdict import Verdict
from turnproof.specs.language import Step
from turnproof.specs.system import SystemSpec

SECONDS, ASKED_SECONDS = 60.0, 900.0
"""Hard limits for the search for an invariant: of a system that every verification proves, and of one that somebody asks for."""
STATES = 400_000
"""States explored for candidates and for the comparison; a system that has more is compared on these."""
STEPS = 200_000
"""Steps compared where there are more; the tests compare a million of each large system."""
WORLDS = 60
"""States from which every step is performed by ``machine.step`` once more, and one is computed by z3."""
SEED = 0


@attrs.frozen(eq=False, kw_only=True)
class Proof:
    """Everything one run found out; :mod:`.report` turns it into verdicts."""

    spec: SystemSpec
    graph: NetworkGraph
    table: Table
    edges: Agreed
    deliveries: Agreed
    sampled: Sampled
    compared_s: float
    wanted: Sequence[Wanted]
    unreadable: Sequence[Unreadable]
    violated: frozenset[str]
    """Properties that the explored graph violates."""
    result: Mapping[str, Any] | None = None
    why: str = ""
    vacuous: frozenset[str] = frozenset()
    contradiction: str = ""
    broken: Sequence[str] = ()
    """Conjuncts of the invariant that an explored state violates."""
    certificate: Certificate | None = None
    runs: Sequence[rechecking.Run] = ()
    rechecked: Sequence[Verdict] = ()


def check(
    spec: SystemSpec,
    *,
    certificate: Path | None = None,
    progress: Progress | None = None,
    seconds: float | None = None,
    seed: int = SEED,
    steps: int = STEPS,
    network: Network | None = None,
) -> list[Verdict]:
    """Every verdict of the symbolic engine on one system, and the certificate of its proofs in ``certificate``.

    ``network`` replaces the terms of ``spec.system``: for tests that plant a defect in them.
    """
    from turnproof.checkers.smt_network import report

    say = progress or SILENT
    formulas = {p.name: p.holds for p in spec.properties if isinstance(p, Step)}
    say.say("proof: terms", 0)
    terms = Network(spec.system, list(formulas.values())) if network is None else network
    graph = explore(spec, limit=STATES, progress=say)
    wanted, unreadable = pieces.statements(terms, spec)
    table = pieces.table(terms)
    began = time.perf_counter()
    questions = agreement.asked(terms, formulas)
    compared = agreement.edges(terms, graph, questions, say, steps=steps if graph.walk.transitions > steps else None, seed=seed)
    comparison = Comparison(terms, graph, questions)
    states = probe.worlds(graph, WORLDS, seed)
    handled = agreement.deliveries(terms, graph.runner, graph.triggers, states, comparison)
    sampled = probe.sample(terms, graph, comparison, table, states, seed=seed)
    proof = Proof(
        spec=spec,
        graph=graph,
        table=table,
        edges=compared,
        deliveries=handled,
        sampled=sampled,
        compared_s=time.perf_counter() - began,
        wanted=wanted,
        unreadable=unreadable,
        violated=frozenset(p.name for p in spec.properties if (BROKEN, p.name, 0) in graph.walk.hits),
    )
    with tempfile.TemporaryDirectory(prefix="turnproof-") as folder:
        path = certificate or Path(folder) / f"{spec.system.name}.certificate.json"
        patience = seconds or (SECONDS if spec.proved else ASKED_SECONDS)
        return report.verdicts(_prove(proof, terms, path, say, patience, seed))


def _prove(proof: Proof, network: Network, path: Path, say: Progress, seconds: float, seed: int) -> Proof:
    hopeful = [w for w in proof.wanted if w.name not in proof.violated]
    columns = States(network.variables, proof.graph).all()
    result, why = prove.search(_task(proof.table, hopeful, network, columns, seed), seconds=seconds, progress=say)
    if result is None:
        return attrs.evolve(proof, why=why)
    faulty = [name for name in proof.table.claimed if name not in result["steps"]]
    if faulty:
        return attrs.evolve(proof, result=result, why=f"it is not shown of every step that {'; that '.join(faulty)}")
    invariant = [Conjunct(p["name"], p["origin"], tuple(p["reads"]), p["smt"]) for p in result["invariant"]]
    rows = tuple(msgspec.structs.replace(row, fires=result["fires"][row.name]) for row in proof.table.rows)
    table = msgspec.structs.replace(proof.table, rows=rows)
    claims = list(_claims(proof.spec, hopeful, result))
    vacuous, state_only, contradiction = vacuity(table, invariant, claims)
    kept = [msgspec.structs.replace(c, needs_step=c.name not in state_only) for c in claims if c.name not in vacuous]
    proof = attrs.evolve(
        proof, result=result, vacuous=vacuous, contradiction=contradiction, broken=list(_broken(network, invariant, columns))
    )
    if contradiction or not kept or set(table.claimed) & vacuous:
        return attrs.evolve(proof, why=contradiction or "nothing is left to claim")
    shown = {c.name for c in kept}
    unproved = {w.name: "not proved" for w in proof.wanted if w.origin in ("property", "step") and w.name not in shown}
    made = certificates.make(table, invariant, kept, unproved, {"z3": z3api.VERSION, "python": sys.version.split()[0], "seed": str(seed)})
    certificates.write(made, path)
    made = certificates.read(path)
    runs = rechecking.run(made, say)
    path.with_suffix(".log").write_text("\n".join(rechecking.log(made, runs)) + "\n", encoding="utf-8")
    return attrs.evolve(proof, certificate=made, runs=runs, rechecked=rechecking.verdicts(made, runs, path))


def _task(table: Table, wanted: Sequence[Wanted], network: Network, columns: Mapping[str, Column], seed: int) -> dict[str, object]:
    """What the child that searches needs, as plain data."""
    made = pieces.features(network)
    return {
        "kind": "search network",
        "table": msgspec.to_builtins(table),
        "sorts": dict(compose.sorts(table)),
        "statements": [attrs.asdict(w) for w in wanted],
        "mined": {
            "features": [attrs.asdict(f) for f in made],
            "having": [[base64.b64encode(states).decode() for states in classes] for classes in pieces.having(made, columns)],
        },
        "seed": seed,
        "query_ms": QUERY_MS,
    }


def _claims(spec: SystemSpec, wanted: Sequence[Wanted], result: Mapping[str, Any]) -> Iterator[Claim]:
    """What the search shows: that no step is a fault, and properties."""
    requirements = {p.name: p.requirements for p in spec.properties}
    for w in wanted:
        if w.origin == "step" and w.name in result["steps"]:
            yield Claim(w.name, "step", requirements.get(w.name, ()), w.reads, w.smt)
        elif w.origin == "property" and w.name not in result["failed"]:
            yield Claim(w.name, "always", requirements[w.name], w.reads, w.smt)


def _broken(network: Network, invariant: Sequence[Conjunct], columns: Mapping[str, Column]) -> Iterator[str]:
    """Conjuncts that are false in an explored state, as the terms they are."""
    evaluator = Evaluator({f"now.{name}": column for name, column in columns.items()})
    terms = network.context.parse("\n".join(f"(assert {c.smt})" for c in invariant), network.symbols()) if invariant else ()
    for conjunct, term in zip(invariant, terms, strict=True):
        wrong = np.flatnonzero(~evaluator.column(term).astype(np.bool_))
        if wrong.size:
            yield f"{conjunct.name} ({wrong.size:,} states)"
