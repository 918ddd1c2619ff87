"""What must hold of the turn loop: the requirements R-LOOP-*, each as a property, a named test, or the property of a call.

Explored with one identity besides nobody (a row compares an identity with the present one and with nothing else, so one that is
present and one that is not are all there is), two calls, at most two steps, and budgets of one; proved for any number of calls and
steps. The environment is unconstrained: every event may come in every state.
"""

from __future__ import annotations

from attrs import evolve

from turnproof.machines.turn_loop import MACHINE
from turnproof.machines.turn_loop_words import Timer
from turnproof.specs.language import Spec
from turnproof.specs.turn_loop_ends import OUTCOME_PROPERTIES, TRY_PROPERTIES
from turnproof.specs.turn_loop_history import SMALL, VARIANTS
from turnproof.specs.turn_loop_requirements import ELSEWHERE, REQUIREMENTS, TESTS
from turnproof.specs.turn_loop_work import CALL_PROPERTIES, CANCEL_PROPERTIES, WORK_PROPERTIES

PROPERTIES = OUTCOME_PROPERTIES + TRY_PROPERTIES + CALL_PROPERTIES + CANCEL_PROPERTIES + WORK_PROPERTIES

SPEC = Spec(
    machine=evolve(MACHINE, initial=SMALL),
    requirements=REQUIREMENTS,
    properties=PROPERTIES,
    tests=TESTS,
    elsewhere=ELSEWHERE,
    variants=VARIANTS,
    discipline={Timer.RETRY: ("R-LOOP-9", "R-LOOP-11"), Timer.RESAMPLE: ("R-LOOP-9", "R-LOOP-11"), Timer.CONTINUE: ("R-LOOP-9",),
                Timer.GRACE: ("R-LOOP-6", "R-LOOP-10")},
    tokens=1,
    counter=2,
)  # fmt: skip
