"""Programs to run and to read: ``python -m turnproof.examples.recovery``."""
