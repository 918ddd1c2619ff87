"""The one module that imports cvc5, the second solver. It ships no types; only what :class:`Script` gives leaves this file."""

from __future__ import annotations

import importlib.metadata
import importlib.util


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
        self.parser.setStringInput(self.cvc5.InputLanguage.SMT_LIB_2_6, commands, "certificate")
        said: list[str] = []
        while True:
            command = self.parser.nextCommand()
            if command.isNull():
                return "".join(said).strip()
            said.append(str(command.invoke(self.solver, self.symbols)))
