"""``turnproof`` with one system that takes a while; run as a program by the tests of interruption."""

from __future__ import annotations

import sys

from cli_toys import SPEC

from turnproof.cli import main
from turnproof.specs import catalog
from turnproof.specs.classics.two_phase_commit import specification

if __name__ == "__main__":
    catalog.specifications = lambda: {"front_door": SPEC}
    catalog.systems = lambda: {"commit": specification(10)}
    catalog.large = dict
    sys.exit(main(sys.argv[1:]))
