"""``turnproof`` with one engine that finishes and one that does not; run as a program by the tests of interruption."""

from __future__ import annotations

import subprocess
import sys
import time

from cli_toys import HOLDING, SPEC, engine, says

from turnproof.checkers import verify as verify_module
from turnproof.checkers.progress import Progress
from turnproof.checkers.verdict import Verdict
from turnproof.cli import main
from turnproof.specs import catalog


def forever(progress: Progress) -> list[Verdict]:
    """Start a child of its own, as a solver is, and never come back."""
    child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
    print(f"child {child.pid}", file=sys.stderr, flush=True)
    for n in range(100_000):
        progress.say("rows", n, 94)
        time.sleep(0.02)
    return []


if __name__ == "__main__":
    catalog.specifications = lambda: {"front_door": SPEC}
    catalog.systems = dict
    catalog.large = dict
    verify_module.ENGINES = {"explicit": says(HOLDING), "symbolic": engine(forever)}
    sys.exit(main(sys.argv[1:]))
