"""The command line. ``turnproof --help`` lists the commands; :data:`STATUS` says what each exit status means."""

from __future__ import annotations

import sys
from collections.abc import Sequence

STATUS = {
    0: "everything that was asked for holds",
    1: "something is violated",
    2: "misuse: the command line, an input file, an output path, a table that is written wrongly, or a package that is missing; "
    "or a process of the run died, and part of it is missing",
    3: "nothing is violated, but something is undetermined",
    70: "a mistake of turnproof itself",
    130: "interrupted (`verify` reports what it covered: 3, or 1)",
    143: "terminated (`verify` as above)",
}
"""Exit status -> its meaning, for every command."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return its exit status. ``arguments`` stand in for those of the process."""
    try:
        import click  # noqa: F401 - asked for by name, so that its absence gets a sentence
        import rich  # noqa: F401
    except ModuleNotFoundError as missing:
        print(f"turnproof: the command line needs the package {missing.name}: pip install 'turnproof[verify]'", file=sys.stderr)
        return 2
    from turnproof.cli.app import run

    return run(sys.argv[1:] if arguments is None else list(arguments))
