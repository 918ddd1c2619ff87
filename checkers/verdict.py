"""What an engine says: one verdict a question, never more than it showed.

The words of a report: ``exhaustive`` names its bounds, ``proved`` means that a certificate was re-checked, ``sampled`` names its
runs. UNDETERMINED is never green.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import Enum

import attrs


class Outcome(Enum):
    """The three ends of a check."""

    HOLDS = "holds"
    VIOLATED = "violated"
    UNDETERMINED = "undetermined"


class Engine(Enum):
    """Who says so."""

    EXPLICIT = "explicit"
    SYMBOLIC = "symbolic"
    STATEFUL = "stateful"
    TRACES = "traces"
    TABLE = "table"
    """Checks of the table itself: totality, dead and shadowed rows, agreement of the readings."""
    GOLDEN = "golden"
    DIAGRAM = "diagram"
    ORACLES = "oracles"
    """Model checkers that are not ours, run on the same system."""


@attrs.frozen
class Change:
    """One field that a step changed, as text."""

    field: str
    before: str
    after: str


@attrs.frozen
class StoryStep:
    """One step of a counterexample: who sent which event, how it was answered, what changed, what was emitted."""

    number: int
    actor: str
    event: str
    answer: str
    """``taken``, ``ignored: why`` or ``refused: why``."""
    row: str
    changes: tuple[Change, ...]
    effects: tuple[str, ...]
    code: str
    """The event as a Python expression, for the pasteable test."""
    state: tuple[tuple[str, str | int | bool], ...] = ()
    """Every field after the step, history variables included."""


@attrs.frozen
class Story:
    """A counterexample as a person reads it.

    ``loop_from`` is the number of the first step of "and then for ever:", 0 if it is finite. If it is one more than there are
    steps, nothing happens any more, for ever.
    """

    machine: str
    initial: str
    steps: tuple[StoryStep, ...]
    broken: str
    """The sentence that broke, with its requirement ids and the harm."""
    loop_from: int = 0
    module: str = ""
    """Import path of the specification, for the pasteable test; empty if it stands in no module."""
    start: tuple[tuple[str, str | int | bool], ...] = ()
    """Every field before the first step, history variables included."""
    setup: tuple[str, ...] = ()
    """Lines of Python that import what the test needs and bind ``run``."""
    claim: str = ""
    """The line of Python that fails as long as this run breaks the sentence."""

    @property
    def length(self) -> int:
        """How many events it takes."""
        return len(self.steps)


@attrs.frozen(kw_only=True)
class Verdict:
    """The answer to one question about one machine or system."""

    machine: str
    check: str
    """The property's sentence, or the name of the check."""
    engine: Engine
    outcome: Outcome
    how: str
    """``exhaustive (7,456 states; 2 tokens, counters to 2)``, ``proved (any length; certificate re-checked by ...)``, ``sampled (...)``."""
    requirements: tuple[str, ...] = ()
    detail: str = ""
    """Why it is violated or undetermined; empty if it holds."""
    story: Story | None = None
    """The shortest counterexample; for a variant, the run on which it fails as it should."""
    others: tuple[Story, ...] = ()
    """The same failure by other routes, one for each row that breaks it, shortest first."""
    seconds: float = 0.0


def exit_status(verdicts: Iterable[Verdict]) -> int:
    """0 if all hold, 1 if something is violated, 3 if nothing is violated but something is undetermined (2 is misuse)."""
    outcomes = {v.outcome for v in verdicts}
    if Outcome.VIOLATED in outcomes:
        return 1
    return 3 if Outcome.UNDETERMINED in outcomes else 0
