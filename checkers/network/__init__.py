"""The engine for composed systems: a network of tabulated parts, walked breadth first.

| module | holds |
|---|---|
| ``triggers`` | everything that may begin a step |
| ``run`` | what a step is, in plain Python through ``machine.step``: the reference, and the replay of every counterexample |
| ``plain`` | the breadth-first walk in plain Python |
| ``explicit`` | ``explore``, ``check``, ``check_variants`` |
"""
