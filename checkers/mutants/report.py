"""What became of all mutants: a table row by row, the two kill rates apart, and what the survivors ask for."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator

import attrs

from turnproof.checkers.mutants.words import Fate, Operator, Result

BAR = 0.95
"""The share of the mutants that are not equivalent which properties alone must kill."""
EXPECTED = (Fate.EQUIVALENT, Fate.KILLED, Fate.NOT_BUILT)
"""The fates of the three controls."""
COLUMNS = ((Fate.KILLED, "properties"), (Fate.REGRESSION, "numbers only"), (Fate.EQUIVALENT, "equivalent"), (Fate.SURVIVED, "survived"))
SELDOM = ((Fate.NOT_BUILT, "not built"), (Fate.UNDETERMINED, "undetermined"))

ASKS = {
    Operator.DROP_ROW: "say how this event is answered where this row answers it",
    Operator.REORDER: "say which of the two rows answers where both match",
    Operator.ANSWER: "say whether this event is taken, ignored or refused here",
    Operator.DROP_CONJUNCT: "say what must not happen where this condition is false",
    Operator.IDENTITY: "say what an event about somebody else must not do",
    Operator.NEGATE: "say how this event is answered on both sides of this condition",
    Operator.CONSTANT: "say for which value this event is answered so",
    Operator.BOUND: "say by how much this number changes, and up to where",
    Operator.PHASES: "say at which phases this event is answered so",
    Operator.RETARGET: "say to which phase this step leads",
    Operator.DROP_EFFECT: "say that this step emits this effect",
    Operator.DOUBLE_EFFECT: "say that this step emits this effect once",
    Operator.SWAP_EFFECTS: "say which of the two effects comes first",
    Operator.EFFECT_VALUE: "say with which value this effect is emitted",
    Operator.CONDITION: "say where this effect is emitted, and where it is not",
    Operator.TIMER: "say when this timer runs",
    Operator.DROP_UPDATE: "say what this step makes of this field",
    Operator.UPDATE_VALUE: "say what this step makes of this field",
    Operator.FAIRNESS: "the promise holds without this assumption: drop it",
}


@attrs.frozen(kw_only=True)
class MutantReport:
    """All mutants of one machine, or of one row of it."""

    machine: str
    whole: bool
    """Every row, and the fairness assumptions, were mutated."""
    states: int
    steps: int
    bounds: str
    results: tuple[Result, ...]
    controls: tuple[Result, ...]
    failing: tuple[str, ...]
    """What does not hold of the unmutated machine; then no mutant was tried."""
    seconds: float

    def count(self, fate: Fate) -> int:
        """How many mutants ended so."""
        return sum(result.fate is fate for result in self.results)

    @property
    def different(self) -> int:
        """Mutants that are not equivalent."""
        return len(self.results) - self.count(Fate.EQUIVALENT)

    @property
    def semantic_rate(self) -> float:
        """Killed by the properties alone, of those that are not equivalent; 1 if there are none."""
        return self.count(Fate.KILLED) / self.different if self.different else 1.0

    @property
    def rate(self) -> float:
        """Killed by the properties or the golden numbers, of those that are not equivalent."""
        return (self.count(Fate.KILLED) + self.count(Fate.REGRESSION)) / self.different if self.different else 1.0

    @property
    def complaints(self) -> tuple[str, ...]:
        """What is wrong, one sentence each."""
        made = [f"the unmutated machine does not hold, so no mutant was tried: {name}" for name in self.failing]
        for control, fate in zip(self.controls, EXPECTED, strict=bool(self.controls)):
            if control.fate is not fate:
                made.append(f"the control {control.about!r} ended as {control.fate.value}, expected {fate.value}: the engine is wrong")
        if self.failing:
            return tuple(made)
        if not self.results:
            made.append("no mutant was made, so nothing is shown")
        if self.count(Fate.SURVIVED):
            made.append(f"{self.count(Fate.SURVIVED)} mutants survived")
        if self.whole and self.semantic_rate < BAR:
            made.append(f"the properties alone kill {self.semantic_rate:.1%} of the mutants that differ, expected at least {BAR:.0%}")
        return tuple(made)

    @property
    def status(self) -> int:
        """Exit status: 1 for a complaint, 3 if only something is undetermined or not built."""
        if self.complaints:
            return 1
        return 3 if self.count(Fate.UNDETERMINED) or self.count(Fate.NOT_BUILT) else 0

    # ── text ──

    def text(self, *, verbose: bool = False) -> str:
        """The report as a person reads it, without a final newline."""
        parts = [
            list(self._head()),
            list(self._table()),
            list(self._list(Fate.SURVIVED, "survived: which requirement did nobody write down?")),
        ]
        parts.append(
            list(self._list(Fate.REGRESSION, "seen by the golden numbers, or the committed table, alone", most=None if verbose else 20))
        )
        parts += [list(self._list(fate, name)) for fate, name in SELDOM]
        if verbose:
            parts.append(list(self._list(Fate.EQUIVALENT, "equivalent")))
        parts.append(list(self._tail()))
        return "\n\n".join("\n".join(lines) for lines in parts if lines)

    def _head(self) -> Iterator[str]:
        yield f"{self.machine}: {len(self.results):,} mutants, {self.bounds}, {self.seconds:.1f} s"

    def _table(self) -> Iterator[str]:
        columns = [*COLUMNS, *((fate, name) for fate, name in SELDOM if self.count(fate))]
        rows: dict[str, Counter[Fate]] = {}
        for result in self.results:
            rows.setdefault(result.row, Counter())[result.fate] += 1
        cells = [["row", "mutants", *(name for _, name in columns)]]
        cells += [[row, str(count.total()), *(_cell(count[fate]) for fate, _ in columns)] for row, count in rows.items()]
        cells.append(["all rows", str(len(self.results)), *(_cell(self.count(fate)) for fate, _ in columns)])
        if len(cells) > 2:
            widths = [max(len(row[n]) for row in cells) for n in range(len(cells[0]))]
            for row in cells:
                yield "  ".join(c.ljust(w) if n == 0 else c.rjust(w) for n, (c, w) in enumerate(zip(row, widths, strict=True))).rstrip()

    def _list(self, fate: Fate, title: str, *, most: int | None = None) -> Iterator[str]:
        chosen = [result for result in self.results if result.fate is fate]
        if chosen:
            yield f"{title} ({len(chosen):,})"
        for result in chosen[:most]:
            asks = f"; {ASKS[result.operator]}" if fate is Fate.SURVIVED and result.operator in ASKS else ""
            yield f"  {result.row}: {result.about}: {result.by}{asks}"
        if most is not None and len(chosen) > most:
            yield f"  ... and {len(chosen) - most:,} more"

    def _tail(self) -> Iterator[str]:
        if self.results:
            yield (
                f"killed by the properties alone: {self.semantic_rate:.1%} ({self.count(Fate.KILLED):,} of {self.different:,} that are not "
                f"equivalent); with the golden numbers and the committed table: {self.rate:.1%}"
            )
            yield f"equivalent: {self.count(Fate.EQUIVALENT):,}, each shown on the whole graph"
        if self.controls:
            held = sum(control.fate is fate for control, fate in zip(self.controls, EXPECTED, strict=True))
            yield f"controls: {held} of {len(self.controls)} ended as they must"
        yield from (f"VIOLATED: {complaint}" for complaint in self.complaints)

    # ── JSON ──

    def json(self) -> str:
        """The report as JSON: format ``turnproof.mutants``, version 1."""
        return (
            json.dumps(
                {
                    "format": "turnproof.mutants",
                    "version": 1,
                    "machine": self.machine,
                    "states": self.states,
                    "steps": self.steps,
                    "bounds": self.bounds,
                    "seconds": round(self.seconds, 3),
                    "counts": {fate.name.lower(): self.count(fate) for fate in Fate},
                    "semantic_kill_rate": round(self.semantic_rate, 4),
                    "kill_rate": round(self.rate, 4),
                    "complaints": list(self.complaints),
                    "controls": [_json(result) for result in self.controls],
                    "mutants": [_json(result) for result in self.results],
                },
                indent=1,
                ensure_ascii=False,
            )
            + "\n"
        )


def _cell(count: int) -> str:
    return str(count) if count else "."


def _json(result: Result) -> dict[str, object]:
    return {
        "row": result.row,
        "operator": result.operator.name.lower(),
        "about": result.about,
        "fate": result.fate.name.lower(),
        "by": result.by,
        "seconds": round(result.seconds, 4),
    }


__all__ = ["ASKS", "BAR", "EXPECTED", "MutantReport"]
