"""Specifications of broken gates, in a module of their own so that a pasted test can import them."""

from __future__ import annotations

import attrs
import toys
from toys import GATE, GATE_SPEC, gate, spec_of

from turnproof.specs.language import Fair, LeadsTo, Variant, never, on

UNTIMED = GATE.variant("gate_untimed", replace={"let go": attrs.evolve(GATE.row("let go"), data=None)})
UNTIMED_SPEC = attrs.evolve(GATE_SPEC, machine=UNTIMED)
HOLEY_SPEC = attrs.evolve(GATE_SPEC, machine=GATE.variant("gate_holey", drop=("hold/otherwise",)))
HELD = LeadsTo("a held gate is let go", gate.phase == toys.HELD, gate.phase == toys.BROKEN, requirements="G-7", harm="it #stands; open",
               fairness=(Fair("they take turns", gate.phase == toys.HELD, on(toys.HoldEnded)),))  # fmt: skip
LOOPING_SPEC = spec_of(GATE, HELD)
TRAPPED_SPEC = spec_of(GATE, never("it breaks", gate.phase == toys.BROKEN, requirements=()))
VARIANT_SPEC = attrs.evolve(GATE_SPEC, variants=(Variant(machine=UNTIMED, about="", violates={"an open gate has its timer armed": 3}),))
