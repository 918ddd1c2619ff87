"""Runs model checkers that are not ours on a system, and compares: distinct states, and the verdict on each property of states."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import attrs

from turnproof.checkers.network.run import Fault
from turnproof.checkers.oracles.model import Claim, Model, build
from turnproof.checkers.oracles.murphi import Murphi
from turnproof.checkers.oracles.ours import Ours, of_machine, of_system
from turnproof.checkers.oracles.programs import RUN, TOOLS, Answer, Failed
from turnproof.checkers.oracles.promela import Promela
from turnproof.checkers.oracles.single import as_system
from turnproof.checkers.oracles.tla import Tla
from turnproof.checkers.progress import SILENT, Progress
from turnproof.checkers.verdict import Engine, Outcome, Verdict
from turnproof.specs.language import Spec
from turnproof.specs.system import System, SystemSpec

SMALL = 50_000
"""States below which the C of a search is compiled without optimisation: compiling is most of the time."""


def write(spec: SystemSpec | Spec, oracle: str, *, system: System | None = None) -> str:
    """The text of ``spec.system``, or of ``system`` instead, for one oracle. Raises ``KeyError`` for one that is not known."""
    whole = as_system(spec) if isinstance(spec, Spec) else spec
    return text_of(build(whole, system), oracle)


def text_of(model: Model, oracle: str, *, undo: bool | None = None, strict: bool = True) -> str:
    """The text of a model for one oracle. Not ``strict``: nothing in it ends the search; everything is only counted."""
    if oracle == "spin":
        return Promela(model, undo=undo).write()
    if oracle == "rumur":
        return Murphi(model, strict=strict).write()
    if oracle == "tlc":
        return Tla(model, strict=strict).write()
    raise KeyError(f"no oracle {oracle!r}; oracles: {', '.join(TOOLS)}")


SUFFIX = {"spin": "pml", "rumur": "m", "tlc": "tla"}
"""What the name of a text ends in."""


def installed() -> tuple[str, ...]:
    """The oracles that can run here."""
    return tuple(name for name, tool in TOOLS.items() if not tool.missing())


def absent() -> tuple[str, ...]:
    """One loud sentence for each oracle that cannot run here."""
    return tuple(
        f"THE ORACLE {name.upper()} DOES NOT RUN: {' and '.join(tool.missing())} not installed ({tool.hint})"
        for name, tool in TOOLS.items()
        if tool.missing()
    )


def compare(
    spec: SystemSpec | Spec,
    *,
    system: System | None = None,
    oracles: Sequence[str] | None = None,
    texts: dict[str, str] | None = None,
    progress: Progress | None = None,
) -> list[Verdict]:
    """One verdict for each oracle about the number of states, and one for each property of states that it judges.

    ``oracles`` None: those that are installed; one that is named and not installed is UNDETERMINED. ``texts`` are put to the oracle
    instead of what :func:`write` makes, by its name. Raises ``KeyError`` for an oracle that is not known.
    """
    for name in oracles or ():
        if name not in TOOLS:
            raise KeyError(f"no oracle {name!r}; oracles: {', '.join(TOOLS)}")
    said = SILENT if progress is None else progress
    whole = as_system(spec) if isinstance(spec, Spec) else spec
    model = build(whole, system)
    ours = of_machine(spec, model, said) if isinstance(spec, Spec) else of_system(whole, system, model, said)
    verdicts: list[Verdict] = []
    for name in installed() if oracles is None else oracles:
        said.say(f"{name}: states expected", ours.states)
        verdicts += _asked(model, ours, name, (texts or {}).get(name))
    return verdicts


def _asked(model: Model, ours: Ours, oracle: str, text: str | None) -> Iterator[Verdict]:
    missing = TOOLS[oracle].missing()
    if missing:
        why = f"{' and '.join(missing)} not installed; {TOOLS[oracle].hint}"
        yield _verdict(model, f"{oracle} counts the same states", Outcome.UNDETERMINED, "not run", why)
        return
    began = time.perf_counter()
    try:
        answer = _run(model, ours, oracle, text)
    except Failed as failure:
        yield _verdict(model, f"{oracle} counts the same states", Outcome.UNDETERMINED, "not finished", str(failure))
        return
    for verdict in _compared(model, ours, oracle, answer):
        yield attrs.evolve(verdict, seconds=time.perf_counter() - began)
        began = time.perf_counter()


def _run(model: Model, ours: Ours, oracle: str, text: str | None) -> Answer:
    with tempfile.TemporaryDirectory(prefix="turnproof-oracle-") as directory:
        chosen = text_of(model, oracle, undo=ours.cut) if text is None else text
        again = text_of(model, oracle, strict=False) if text is None else ""
        optimise = "-O0" if ours.states < SMALL else "-O2"
        return RUN[oracle](chosen, Path(directory), states=ours.states, optimise=optimise, again=again)


def _compared(model: Model, ours: Ours, oracle: str, answer: Answer) -> Iterator[Verdict]:
    check = f"{oracle} counts the same states"
    walked = f"{ours.states:,} states"
    if ours.why:
        yield _verdict(model, check, Outcome.UNDETERMINED, str(answer), f"our own search is not complete: {ours.why}")
        return
    if answer.states is None:
        yield _verdict(model, check, Outcome.UNDETERMINED, str(answer), answer.why)
    elif answer.states != ours.states:
        detail = f"distinct states: {oracle} counts {answer.states:,}, this engine {ours.states:,}"
        yield _verdict(model, check, Outcome.VIOLATED, str(answer), detail)
    else:
        yield _verdict(model, check, Outcome.HOLDS, f"agrees: {walked}, {answer}")
    yield from _faults(model, ours, oracle, answer)
    for claim in model.claims:
        yield _judged(model, ours, oracle, answer, claim)


def _faults(model: Model, ours: Ours, oracle: str, answer: Answer) -> Iterator[Verdict]:
    mine = ours.faults
    if not (mine or answer.faults):
        return

    def listed(faults: frozenset[Fault]) -> str:
        return ", ".join(f.name.lower() for f in Fault if f in faults) or "none"

    same = mine == answer.faults or (answer.partial and answer.faults <= mine)
    detail = "" if same else f"faults of the system: {oracle} finds {listed(answer.faults)}, this engine {listed(mine)}"
    seen = f"{listed(answer.faults)} before its first error ended it" if answer.partial else listed(mine)
    how = f"agrees: {seen}, {answer}" if same else str(answer)
    yield _verdict(model, f"{oracle} finds the same faults", Outcome.HOLDS if same else Outcome.VIOLATED, how, detail)


def _judged(model: Model, ours: Ours, oracle: str, answer: Answer, claim: Claim) -> Verdict:
    mine = claim.number in ours.reported
    theirs = claim.number in answer.reported
    words = ("reached", "never reached") if claim.reach else ("broken", "holds")
    check = f"{oracle} judges the same: {claim.prop.name}"
    if mine == theirs and (theirs or answer.states is not None):
        return _verdict(model, check, Outcome.HOLDS, f"agrees: {words[not mine]}, {answer}", requirements=claim.prop.requirements)
    if answer.states is None and not theirs:
        return _verdict(model, check, Outcome.UNDETERMINED, str(answer), answer.why, requirements=claim.prop.requirements)
    detail = f"{claim.prop.name}: {oracle} says {words[not theirs]}, this engine {words[not mine]}"
    return _verdict(model, check, Outcome.VIOLATED, str(answer), detail, requirements=claim.prop.requirements)


def _verdict(model: Model, check: str, outcome: Outcome, how: str, detail: str = "", *, requirements: tuple[str, ...] = ()) -> Verdict:
    return Verdict(
        machine=model.system.name, check=check, engine=Engine.ORACLES, outcome=outcome, how=how, detail=detail, requirements=requirements
    )


__all__ = ["SUFFIX", "absent", "compare", "installed", "text_of", "write"]
