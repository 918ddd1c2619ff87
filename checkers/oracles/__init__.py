"""Second opinions: the same system written for SPIN, Murphi (Rumur) and TLA+ (TLC), and what those programs say of it compared."""

from turnproof.checkers.oracles.compare import SUFFIX, absent, compare, installed, write
from turnproof.checkers.oracles.single import as_system

__all__ = ["SUFFIX", "absent", "as_system", "compare", "installed", "write"]
