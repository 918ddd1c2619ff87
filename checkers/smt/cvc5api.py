"""The one module that imports cvc5, the second solver. It ships no types; only what :class:`Script` gives leaves this file."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import time
from collections.abc import Iterator, Sequence


def version() -> str | None:
    """The installed version; None where cvc5 is not installed."""
    if importlib.util.find_spec("cvc5") is None:
        return None
    return importlib.metadata.version("cvc5")


class Script:
    """Runs SMT-LIB commands one text at a time, as a cvc5 that reads a file would. Raises ``ImportError`` where it is missing."""

    name = "cvc5"

    def __init__(self) -> None:
        import cvc5

        self.cvc5 = cvc5
        self.version = version() or ""
        self.solver = cvc5.Solver(cvc5.TermManager())
        self.symbols = cvc5.SymbolManager(self.solver.getTermManager())
        self.parser = cvc5.InputParser(self.solver, self.symbols)
        self.run("(set-option :incremental true)")

    def run(self, commands: str) -> str:
        """What cvc5 prints. Raises ``RuntimeError`` for a text it cannot read."""
        return "\n".join(said for said, _ in self.answers(commands))

    def ask(self, assertions: Sequence[str]) -> Iterator[tuple[str, float]]:
        """Whether each assertion can hold beside what was asserted, and how many milliseconds that took."""
        # One text for all of them: handing a text to the parser costs as much as an easy query.
        yield from self.answers("\n".join(f"(push 1)\n(assert {a})\n(check-sat)\n(pop 1)" for a in assertions))

    def answers(self, commands: str) -> Iterator[tuple[str, float]]:
        """What each command prints, of those that print anything, and how many milliseconds it took."""
        self.parser.setStringInput(self.cvc5.InputLanguage.SMT_LIB_2_6, commands, "certificate")
        while True:
            command = self.parser.nextCommand()
            if command.isNull():
                return
            started = time.perf_counter()
            said = str(command.invoke(self.solver, self.symbols)).strip()
            if said:
                yield said, (time.perf_counter() - started) * 1000
