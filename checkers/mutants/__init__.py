"""The mutation engine: every small change of a row is killed by a property, or shown equivalent on the whole graph, or survives."""

from turnproof.checkers.mutants.report import MutantReport
from turnproof.checkers.mutants.run import run
from turnproof.checkers.mutants.words import Fate, Mutant, Operator, Result

__all__ = ["Fate", "Mutant", "MutantReport", "Operator", "Result", "run"]
