"""What must hold of the ending of an attempt, for every value and every order in which values arrive."""

from __future__ import annotations

from attrs import evolve, frozen

from turnproof.machines.attempt_terminal import (
    ABORTED_EXTERNAL,
    ABORTED_RUNTIME,
    ABORTS,
    FAILED,
    MACHINE,
    OBSERVED,
    OK,
    TIMEOUT_EXTERNAL,
    TIMEOUT_IDLE,
    TIMEOUTS,
    YIELDED,
    AttemptTerminal,
    During,
    Joined,
    now,
    other,
)
from turnproof.machines.kernel import Row, implies, named, not_, one_of, symbol
from turnproof.specs.attempt_terminal_exactly import EXACTLY
from turnproof.specs.embedded_attempt_requirements import requirements
from turnproof.specs.harms import with_harms
from turnproof.specs.language import Always, History, Property, Sometimes, Spec, Step, Variant, after, ignored, on, refused, taken

then = after(AttemptTerminal)
ID = "R-ATT-15"
R = Row[AttemptTerminal, None]

timed_out = named("timed out", one_of(now.ending, *TIMEOUTS))
aborted = named("aborted", one_of(now.ending, *ABORTS))
REAL_ABORTS = (ABORTED_RUNTIME, ABORTED_EXTERNAL)


@frozen
class Past:
    """What was joined so far."""

    timeout: bool = False
    idle: bool = False
    real_abort: bool = False
    external: bool = False
    failure: bool = False


past = symbol(Past)


def _seen(what: bool) -> bool:
    return on(Joined) & taken() & what


PAST = History(
    Past(),
    past,
    (
        (_seen(one_of(other.ending, TIMEOUT_IDLE)), evolve(past, timeout=True, idle=True)),
        (_seen(other.ending == TIMEOUT_EXTERNAL), evolve(past, timeout=True, external=True)),
        (_seen(one_of(other.ending, *TIMEOUTS)), evolve(past, timeout=True)),
        (_seen(other.ending == ABORTED_EXTERNAL), evolve(past, real_abort=True, external=True)),
        (_seen(other.ending == ABORTED_RUNTIME), evolve(past, real_abort=True)),
        (_seen(other.ending == FAILED), evolve(past, failure=True)),
    ),
)

NEVER_FALLS = "a timeout stays a timeout, an abort stays an abort or becomes a timeout"
BOTH_ORDERS = "a timeout and an external abort end as an external timeout that was also aborted, whichever came first"
OBSERVES = "an observation alone interrupts nothing"

PROPERTIES: tuple[Property, ...] = (
    Step(NEVER_FALLS, requirements=ID, holds=
         implies(timed_out, one_of(then.ending, *TIMEOUTS)) & implies(aborted, one_of(then.ending, *ABORTS, *TIMEOUTS))
         & implies(now.ending == FAILED, not_(one_of(then.ending, OK, OBSERVED))) & implies(now.ending == OBSERVED, then.ending != OK),
         harm="a failure after a timeout makes the turn look as if it may be tried again"),
    Step("ok is neutral", implies(on(Joined) & (other.ending == OK), ignored() | refused()), requirements=ID),
    Step(OBSERVES, requirements=ID, holds=
         implies(on(Joined) & (other.ending == OBSERVED), (then.ending == now.ending) | ((now.ending == OK) & (then.ending == OBSERVED)))),
    Step("an observation is kept", requirements=ID, holds=
         implies(on(Joined) & taken() & (other.during == During.COMPACTION), then.during == During.COMPACTION)),
    Step("the phase never falls", requirements=ID, holds=
         implies(now.during == During.COMPACTION, then.during == During.COMPACTION)
         & implies(now.during == During.TOOL_EXECUTION, one_of(then.during, During.TOOL_EXECUTION, During.COMPACTION))
         & implies(now.during == During.PROMPT, then.during != During.NONE)),
    Always(BOTH_ORDERS, requirements=ID, holds=
           implies(past.timeout & past.external, now.ending == TIMEOUT_EXTERNAL) & implies(past.timeout & past.real_abort,
           now.also_aborted),
           harm="the same two events give two verdicts, depending on which listener ran first"),
    Always("a timeout that was seen is the kind", implies(past.timeout, timed_out), requirements=ID),
    Always("an abort that was seen is the kind, unless something timed out", requirements=ID, holds=
           implies(past.real_abort & not_(past.timeout), one_of(now.ending, *REAL_ABORTS))),
    Always("a failure that was seen is not forgotten", requirements=ID, holds=
           implies(past.failure, not_(one_of(now.ending, OK, OBSERVED)))),
    Always("every value is one of the forms an ending has", requirements=ID, holds=
           implies(now.ending == OK, now.during == During.NONE) & implies(timed_out, now.during != During.NONE)
           & implies(aborted | (now.ending == FAILED), now.during != During.PROMPT) & implies(now.also_aborted, timed_out)
           & implies(now.ending == OBSERVED, one_of(now.during, During.TOOL_EXECUTION, During.COMPACTION))),
    Always("an idle timeout stays idle unless a graver one joins", requirements=ID, holds=
           implies(past.idle & not_(past.external), one_of(now.ending, *TIMEOUTS[1:]))),
    Sometimes("an abort joins a timeout", on(Joined) & taken() & timed_out & one_of(other.ending, *ABORTS), requirements=ID),
    Sometimes("a timeout joins an abort", on(Joined) & taken() & aborted & one_of(other.ending, *TIMEOUTS), requirements=ID),
    Sometimes("an observation joins a failure", (now.ending == FAILED) & (now.during == During.COMPACTION), requirements=ID),
    Sometimes("a yield joins a timeout", on(Joined) & timed_out & (other.ending == YIELDED) & not_(then.also_aborted) & taken(),
        requirements=ID),
)  # fmt: skip

LAST_WINS = MACHINE.variant(
    "attempt_terminal_last_wins",
    first=(R(other, when=one_of(other.ending, FAILED, *ABORTS, *TIMEOUTS), name="Joined/last wins",
             data=evolve(now, ending=other.ending, during=other.during, also_aborted=other.also_aborted)),),
)  # fmt: skip
OBSERVATION_INTERRUPTS = MACHINE.variant(
    "attempt_terminal_observation_interrupts",
    replace={"Joined/observation": R(other, when=other.ending == OBSERVED, data=evolve(now, ending=OBSERVED, during=other.during),
                                     name="Joined/observation")},
)  # fmt: skip

SPEC = Spec(
    machine=MACHINE,
    requirements=requirements(ID),
    properties=with_harms((*PROPERTIES, *EXACTLY)),
    histories=(PAST,),
    variants=(
        Variant(machine=LAST_WINS, violates={NEVER_FALLS: 2, BOTH_ORDERS: 2},
                about="The older shape: loose flags set by whoever came last, so that the order of listeners decides the verdict (B16)."),
        Variant(machine=OBSERVATION_INTERRUPTS, violates={OBSERVES: 2, NEVER_FALLS: 2},
                about="A wait at settlement that took too long overwrites how the attempt ended."),
    ),
)  # fmt: skip
