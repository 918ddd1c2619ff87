"""What a sampled run notes: what it covered, who was handed which event, and how it went wrong."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import attrs

from turnproof.checkers.stateful.actions import Action, Caller, Fault
from turnproof.checkers.stateful.model import AnyAnswer, Complaint


class Planted(Exception):
    """What a handler raises on purpose."""


class Broken(AssertionError):
    """A sampled run went wrong."""

    def __init__(self, complaint: Complaint, script: Sequence[Action], history: Sequence[object]) -> None:
        super().__init__(complaint.sentence)
        self.complaint, self.script, self.history = complaint, tuple(script), tuple(history)


@attrs.define
class Tally:
    """What the runs have covered."""

    steps: int = 0
    runs: int = 0
    instances: int = 0
    expiries: int = 0
    rows: set[str] = attrs.field(factory=set)
    faults: Counter[Fault] = attrs.field(factory=Counter)
    callers: Counter[Caller] = attrs.field(factory=Counter)
    closes: int = 0
    jumps: int = 0
    """How often the clock leapt, in a handler that blocks or without one."""
    late: int = 0
    """Expiries that came late because of that."""


@attrs.define(eq=False)
class Ticket:
    """An event that somebody hands to the shell; ``answer`` is the table's, once the step was traced."""

    event: object
    answer: AnyAnswer | None = None
