"""What must hold of the turn loop: the requirements R-LOOP-*, each as a property, a named test, or the property of a call.

Explored with one identity besides nobody (a row compares an identity with the present one and with nothing else, so one that is
present and one that is not are all there is), two calls, at most two steps, and budgets of one; proved for any number of calls and
steps. The environment is unconstrained: every event may come in every state.
"""

from __future__ import annotations

from attrs import evolve

from turnproof.machines.turn_loop import MACHINE
from turnproof.machines.turn_loop_words import Timer
from turnproof.specs.harms import with_harms
from turnproof.specs.language import Spec, Variant
from turnproof.specs.turn_loop_carried import CARRIED
from turnproof.specs.turn_loop_ends import OUTCOME_PROPERTIES, TRY_PROPERTIES
from turnproof.specs.turn_loop_history import REPEATS, SMALL, SPENDS, SUMMARY, VARIANTS, WAITS
from turnproof.specs.turn_loop_requirements import ELSEWHERE, REQUIREMENTS, TESTS
from turnproof.specs.turn_loop_shipped import SHIPPED
from turnproof.specs.turn_loop_streams import PROPERTIES as RECORDS
from turnproof.specs.turn_loop_verdicts import VERDICTS
from turnproof.specs.turn_loop_work import CALL_PROPERTIES, CANCEL_PROPERTIES, WORK_PROPERTIES

PROPERTIES = OUTCOME_PROPERTIES + TRY_PROPERTIES + CALL_PROPERTIES + CANCEL_PROPERTIES + WORK_PROPERTIES + RECORDS + VERDICTS + CARRIED

RECORDED = (
    "stop", "dead_once", "dead_empty", "tool_then_stop", "tool_call_then_dead", "length", "content_filter", "http_500_once", "http_400",
    "abort_midstream", "abort_during_tool",
)  # fmt: skip
"""Runs of the shipped server against a scripted provider, by script."""

SHIPPED_VARIANT = Variant(
    machine=evolve(SHIPPED, initial=SMALL),
    about="OpenCode 1.18.33 as shipped and recorded: the judge of 1.18.21, and idle published before a cancelled or failed run is "
    "over, and again when it is.",
    violates={
        "one outcome, then idle once": 3,
        "idle is published only once no call is open": 5,
        SPENDS: 5,
        WAITS: 5,
        REPEATS: 6,
        SUMMARY: 3,
        "a step that ends length without results errs as length": 6,
        "a step that ends error without results errs as provider": 6,
        "a run completes on content-filter, length or error": 7,
        "a first answer without a word is asked again, or errs": 6,
        "a rejected call blocks the run": 7,
    },
)

SPEC = Spec(
    machine=evolve(MACHINE, initial=SMALL),
    requirements=REQUIREMENTS,
    properties=with_harms(PROPERTIES),
    tests=TESTS,
    elsewhere=ELSEWHERE,
    variants=(SHIPPED_VARIANT, *VARIANTS),
    recordings={f"tests/data/opencode/{name}.jsonl": SHIPPED.name for name in RECORDED},
    discipline={Timer.RETRY: ("R-LOOP-9", "R-LOOP-11"), Timer.RESAMPLE: ("R-LOOP-9", "R-LOOP-11"), Timer.CONTINUE: ("R-LOOP-9",),
                Timer.GRACE: ("R-LOOP-6", "R-LOOP-10")},
    tokens=1,
    counter=2,
)  # fmt: skip
