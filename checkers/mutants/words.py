"""The words of mutation: what a small change is, by which operator it was made, and what became of it."""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from typing import Any

import attrs

from turnproof.machines.kernel import Row
from turnproof.specs.language import AnyMachine, Fair, Property

AnyRow = Row[Any, Any]


class Operator(Enum):
    """The kinds of small change."""

    DROP_ROW = "drop the row"
    REORDER = "reorder two rows"
    ANSWER = "swap the answer"
    DROP_CONJUNCT = "drop a condition"
    IDENTITY = "drop or blur an identity check"
    NEGATE = "negate a condition"
    CONSTANT = "change a constant of a guard"
    BOUND = "off by one"
    PHASES = "change the phases"
    RETARGET = "retarget"
    DROP_EFFECT = "drop an effect"
    DOUBLE_EFFECT = "duplicate an effect"
    SWAP_EFFECTS = "swap two effects"
    EFFECT_VALUE = "change a value of an effect"
    CONDITION = "drop or negate an only_if"
    TIMER = "skip arming or stopping a timer"
    DROP_UPDATE = "drop an update"
    UPDATE_VALUE = "change an update"
    FAIRNESS = "weaken fairness"
    CONTROL = "control"


class Fate(Enum):
    """What became of a mutant."""

    KILLED = "killed by the properties"
    REGRESSION = "killed by the golden numbers alone"
    """Or, where only opaque values differ, by the committed table alone: no property reads them and no number counts them."""
    EQUIVALENT = "equivalent"
    SURVIVED = "SURVIVED"
    NOT_BUILT = "not built"
    """The kernel refuses the table, so nothing was judged. Not a kill."""
    UNDETERMINED = "undetermined"


@attrs.frozen(eq=False)
class Mutant:
    """One small change, as data: the rows that stand in place of named rows, as :meth:`Machine.variant` takes them."""

    row: str
    """The row that was changed; for fairness, the property."""
    operator: Operator
    about: str
    changes: Mapping[str, tuple[AnyRow, ...]] = attrs.field(factory=dict)
    prop: Property | None = None
    """For fairness: the property that lost an assumption, or has a weaker one."""
    fairness: tuple[Fair, ...] = ()

    def built(self, machine: AnyMachine) -> AnyMachine:
        """The machine with this change. Raises :class:`TableError` or ``TypeError`` if it cannot be built."""
        return machine.variant(f"{machine.name}_mutant", replace=dict(self.changes))


@attrs.frozen
class Result:
    """What became of one mutant, and by what."""

    row: str
    operator: Operator
    about: str
    fate: Fate
    by: str = ""
    """The property, check or number that killed it; why it is equivalent; why it was not built."""
    seconds: float = 0.0


__all__ = ["AnyRow", "Fate", "Mutant", "Operator", "Result"]
