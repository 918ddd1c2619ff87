"""The words and colours of outcomes, wherever a person reads them."""

from __future__ import annotations

import attrs

from turnproof.checkers.verdict import Outcome

COLORS = {Outcome.HOLDS: "32", Outcome.VIOLATED: "1;31", Outcome.UNDETERMINED: "1;33"}
WORDS = {Outcome.HOLDS: "holds", Outcome.VIOLATED: "VIOLATED", Outcome.UNDETERMINED: "UNDETERMINED"}


@attrs.frozen
class Paint:
    """Colours where the reader's terminal has them."""

    on: bool = False

    def __call__(self, text: str, code: str) -> str:
        """``text`` in the colour of an ANSI code."""
        return f"\x1b[{code}m{text}\x1b[0m" if self.on and text else text

    def outcome(self, outcome: Outcome, width: int = 0) -> str:
        """The word for an outcome, padded before it is coloured."""
        return self(WORDS[outcome].ljust(width), COLORS[outcome])


PLAIN = Paint()

__all__ = ["COLORS", "PLAIN", "WORDS", "Paint"]
