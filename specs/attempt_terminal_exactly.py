"""What every join of two endings must give, exactly: by kinds, and the same whichever of the two came first."""

from __future__ import annotations

from turnproof.machines.attempt_terminal import ABORTS, FAILED, MACHINE, OBSERVED, OK, TIMEOUTS, During, Ending, Joined, now, other
from turnproof.machines.kernel import any_of, choose, not_, one_of
from turnproof.specs.exactly import Writer
from turnproof.specs.language import Property

write = Writer(MACHINE)
ID = "R-ATT-15"
NONE, PROMPT, TOOL, COMPACTION = During
FORMS = {
    OK: (NONE,),
    OBSERVED: (TOOL, COMPACTION),
    **dict.fromkeys((FAILED, *ABORTS), (NONE, TOOL, COMPACTION)),
    **dict.fromkeys(TIMEOUTS, (PROMPT, TOOL, COMPACTION)),
}
"""Kind and source of an ending -> the phases it can have. Only a timeout can be carried out as an abort."""
formed = any_of(*((other.ending == ending) & one_of(other.during, *phases) for ending, phases in FORMS.items())) & (
    not_(other.also_aborted) | one_of(other.ending, *TIMEOUTS)
)


def either(value: Ending) -> bool:
    """One of the two is this ending."""
    return (now.ending == value) | (other.ending == value)


def kinds(mine: tuple[Ending, ...], its: tuple[Ending, ...]) -> bool:
    """What is known and what is learned are of these kinds."""
    return formed & one_of(now.ending, *mine) & one_of(other.ending, *its)


def highest(order: tuple[Ending, ...]) -> Ending:
    """The last in this order that one of the two is."""
    mild, *graver = order
    return choose(either(order[-1]), order[-1], highest(order[:-1])) if graver else mild


def one_is(phase: During) -> bool:
    """One of the two has this phase."""
    return (now.during == phase) | (other.during == phase)


phase = choose(one_is(COMPACTION), COMPACTION, choose(one_is(TOOL), TOOL, choose(one_is(PROMPT), PROMPT, NONE)))
external = either(Ending.ABORTED_EXTERNAL) | either(Ending.TIMEOUT_EXTERNAL)
by_abort = either(Ending.ABORTED_EXTERNAL) | either(Ending.ABORTED_RUNTIME) | now.also_aborted | other.also_aborted
source = choose(one_of(now.ending, *TIMEOUTS), now.ending, other.ending)
LEARNED = {"ending": other.ending, "during": phase, "also_aborted": other.also_aborted}
INTERRUPTING = (*ABORTS, *TIMEOUTS)

EXACTLY: tuple[Property, ...] = (
    write.answers(Joined,
                  write.case(Joined, kinds((OK,), tuple(e for e in Ending if e is not OK)), LEARNED),
                  write.case(Joined, kinds((OBSERVED,), (FAILED, *INTERRUPTING)), LEARNED),
                  write.case(Joined, kinds((FAILED,), INTERRUPTING), LEARNED),
                  write.case(Joined, kinds((OBSERVED, FAILED, *INTERRUPTING), (OBSERVED,)), {"during": phase}),
                  write.case(Joined, kinds((FAILED, *INTERRUPTING), (FAILED,)), {"during": phase}),
                  write.case(Joined, kinds(ABORTS, ABORTS), {"ending": highest(ABORTS), "during": phase}),
                  write.case(Joined, kinds(TIMEOUTS, TIMEOUTS),
                             {"ending": highest(TIMEOUTS), "during": phase, "also_aborted": by_abort}),
                  write.case(Joined, kinds(ABORTS, TIMEOUTS) | kinds(TIMEOUTS, ABORTS),
                             {"ending": choose(external, Ending.TIMEOUT_EXTERNAL, source), "during": phase, "also_aborted": by_abort}),
                  requirements=ID, refuses=not_(formed), harm="the same two events give two verdicts"),
)  # fmt: skip
