"""What the gathering of verdicts checks itself, so that silence is never taken for "holds".

* a property that nobody spoke about is UNDETERMINED;
* a property proved by one engine and violated by another is VIOLATED as a contradiction of the engines;
* a requirement discharged by a test or a specification that does not exist is VIOLATED.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping, Sequence, Set
from pathlib import Path

from turnproof.checkers.report.locate import project_root
from turnproof.checkers.report.model import AnySpec, name_of
from turnproof.checkers.verdict import Engine, Outcome, Verdict


def own_checks(spec: AnySpec, ran: Set[str], verdicts: Sequence[Verdict], catalog: Mapping[str, AnySpec] | None) -> Iterator[Verdict]:
    """The verdicts about the other verdicts. ``catalog`` is where ``spec.elsewhere`` must be found; None skips that."""
    if ran & {"explicit", "symbolic"}:
        spoken = {v.check for v in verdicts}
        silent = [p.name for p in spec.properties if p.name not in spoken]
        if silent:
            detail = (
                f"nobody spoke about {len(silent)} of {len(spec.properties)}: {'; '.join(silent[:3])}{' ...' if len(silent) > 3 else ''}"
            )
            yield undetermined(spec, "every property has a verdict", Engine.TABLE, "read from the verdicts", detail)
    if {"explicit", "symbolic"} <= ran:
        yield _agreement(spec, verdicts)
    if spec.tests or (spec.elsewhere and catalog is not None):
        yield _discharge(spec, catalog)


def _agreement(spec: AnySpec, verdicts: Sequence[Verdict]) -> Verdict:
    # A property violated without a run that breaks it is vacuous: it may be proved all the same.
    said = {(v.check, v.engine): v.outcome for v in verdicts if v.outcome is not Outcome.VIOLATED or v.story is not None}
    opposite = (Outcome.HOLDS, Outcome.VIOLATED)
    # Violated by proof and not within the bounds is no contradiction: the run may be longer than what was explored.
    broken = [p.name for p in spec.properties if (said.get((p.name, Engine.SYMBOLIC)), said.get((p.name, Engine.EXPLICIT))) == opposite]
    return Verdict(
        machine=name_of(spec),
        check="no property is both proved and violated",
        engine=Engine.TABLE,
        outcome=Outcome.VIOLATED if broken else Outcome.HOLDS,
        how=f"compared ({len(spec.properties)} properties)",
        detail=f"proved, yet violated on the graph: {'; '.join(broken)}. One of the two engines is wrong." if broken else "",
    )


def _discharge(spec: AnySpec, catalog: Mapping[str, AnySpec] | None) -> Verdict:
    """Whether the named tests and specifications exist that discharge what no property of this one does."""
    root = project_root()
    missing = [] if root is None else [f"{rid}: no test {node}" for rid, node in spec.tests.items() if not has_test(root, node)]
    for rid, name in spec.elsewhere.items() if catalog is not None else ():
        try:
            other = (catalog or {}).get(name)
        except Exception as problem:  # it is written wrongly: whoever asks for it by name is told where
            missing.append(f"{rid}: {name} cannot be loaded: {' '.join(str(problem).split())}")
            continue
        if other is None:
            missing.append(f"{rid}: no specification {name}")
        elif not any(rid in p.requirements for p in other.properties) and rid not in other.tests:
            missing.append(f"{rid}: {name} has no property or test for it")
    looked = len(spec.tests if root is not None else ()) + len(spec.elsewhere if catalog is not None else ())
    return Verdict(
        machine=name_of(spec),
        check="what discharges a requirement by name exists",
        engine=Engine.TABLE,
        outcome=Outcome.VIOLATED if missing else Outcome.HOLDS,
        how=f"looked up ({looked} names)",
        requirements=tuple(dict.fromkeys(line.partition(":")[0] for line in missing)),
        detail="; ".join(missing),
    )


def has_test(root: Path, node: str) -> bool:
    """Whether the pytest node id ``file::function`` names a function that the file defines."""
    file, _, function = node.partition("::")
    try:
        tree = ast.parse((root / file).read_text(encoding="utf-8"))
    except (OSError, SyntaxError, ValueError):
        return False
    wanted = function.partition("[")[0].split("::")[-1]
    return any(isinstance(n, ast.FunctionDef | ast.AsyncFunctionDef) and n.name == wanted for n in ast.walk(tree))


def undetermined(spec: AnySpec, check: str, engine: Engine, how: str, detail: str) -> Verdict:
    """A verdict that nothing was concluded; ``detail`` says why."""
    return Verdict(machine=name_of(spec), check=check, engine=engine, outcome=Outcome.UNDETERMINED, how=how, detail=detail)


__all__ = ["has_test", "own_checks", "undetermined"]
