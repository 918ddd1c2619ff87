"""Systems that every model checker is tried on, with known numbers of states: examples of the language, and oracles for the engine."""
