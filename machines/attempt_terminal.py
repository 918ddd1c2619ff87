"""How an attempt ended, as one value that only ever grows: what is learned late never makes an ending look milder.

What it is. Several things may happen to one attempt at its end: a timer fires, somebody aborts, the prompt fails, a wait at
settlement is noticed to have taken too long. Each is a value, and the ending is their *join*. This machine holds one such value and
joins others to it; ``embedded_attempt`` uses the same words and the same ``later``.

Which runtime. The terminal value of OpenClaw's embedded runner, which replaced seven booleans set in any order. The booleans are
projections of it (``ABORTED`` to ``EXTERNAL`` below).

The kinds in one sentence. Ok is weaker than failed, failed than aborted, aborted than timeout; an *observation* is a timeout that was
only noticed and interrupts nothing.

What it promises.
  1. The kind never falls, ok is neutral, and an observation alone interrupts nothing.
  2. A timeout and an abort give the same value in both orders.
  3. A failure never weakens an interruption.

Not modelled: the error itself (the shell keeps the newest one).

Rule 1: every join is a row of ``ROWS``.
Rule 2: this file knows nothing of attempts, clocks or tasks.
"""

from __future__ import annotations

from enum import Enum

from attrs import evolve, frozen

from turnproof.machines.kernel import Machine, Row, choose, named, not_, one_of, symbol

# ── vocabulary ──


class Ending(Enum):
    """Kind and source in one word, from the mildest to the gravest."""

    OK = "ok"
    FAILED = "failed"
    YIELDED = "aborted:yield_cleanup"
    """The turn ended on purpose, to yield: mechanical, not a real abort."""
    ABORTED_RUNTIME = "aborted:runtime"
    """The runtime itself stopped it: a hook, a check."""
    ABORTED_EXTERNAL = "aborted:external"
    """A person, a restart or the caller stopped it, or a recovery that knows nothing of its activity."""
    OBSERVED = "timeout:observation"
    """A wait at settlement took too long; nothing was interrupted."""
    TIMEOUT_RUNTIME = "timeout:runtime"
    TIMEOUT_IDLE = "timeout:idle"
    """The model call was silent for too long."""
    TIMEOUT_RUN_BUDGET = "timeout:run_budget"
    """The run used up its time."""
    TIMEOUT_EXTERNAL = "timeout:external"
    """The caller's own deadline."""


class During(Enum):
    """What went on when it timed out; beside an abort or a failure, what was observed to have timed out."""

    NONE = "none"
    PROMPT = "prompt"
    TOOL_EXECUTION = "tool_execution"
    COMPACTION = "compaction"


OK, FAILED, YIELDED, ABORTED_RUNTIME, ABORTED_EXTERNAL = tuple(Ending)[:5]
OBSERVED, TIMEOUT_RUNTIME, TIMEOUT_IDLE, TIMEOUT_RUN_BUDGET, TIMEOUT_EXTERNAL = tuple(Ending)[5:]

ABORTS = (YIELDED, ABORTED_RUNTIME, ABORTED_EXTERNAL)
TIMEOUTS = (TIMEOUT_RUNTIME, TIMEOUT_IDLE, TIMEOUT_RUN_BUDGET, TIMEOUT_EXTERNAL)
"""Timeouts that interrupted."""
EXTERNAL = (ABORTED_EXTERNAL, TIMEOUT_EXTERNAL)
INTERRUPTED = (*ABORTS, *TIMEOUTS)


def gravest(left: Ending, right: Ending, among: tuple[Ending, ...]) -> Ending:
    """The later of two endings in the order of ``among``, as a formula; both must be among them."""
    worst = among[0]
    for ending in among[1:]:
        worst = choose((left == ending) | (right == ending), ending, worst)
    return worst


def later(left: During, right: During) -> During:
    """The higher phase: compaction beats tool execution, tool execution beats the prompt."""
    return choose((left == During.COMPACTION) | (right == During.COMPACTION), During.COMPACTION,
        choose((left == During.TOOL_EXECUTION) | (right == During.TOOL_EXECUTION), During.TOOL_EXECUTION,
        choose((left == During.PROMPT) | (right == During.PROMPT), During.PROMPT, During.NONE)))  # fmt: skip


# ── state ──


@frozen
class AttemptTerminal:
    """What is known of the ending so far."""

    ending: Ending = OK
    during: During = During.NONE
    also_aborted: bool = False
    """A timeout that was carried out as an abort of the run, or that an abort joined."""


# ── events: what happened ──


@frozen
class Joined:
    """Something else was learned about the ending."""

    ending: Ending
    during: During
    also_aborted: bool


Event = Joined
Effect = None
"""It has none: whoever owns the value reads it."""


# ── symbols ──

now, other = symbol(AttemptTerminal), symbol(Joined)

no_value = named("no such value",
    ((other.ending == OK) & (other.during != During.NONE))
    | (one_of(other.ending, FAILED, *ABORTS) & (other.during == During.PROMPT))
    | ((other.ending == OBSERVED) & one_of(other.during, During.NONE, During.PROMPT))
    | (one_of(other.ending, *TIMEOUTS) & (other.during == During.NONE))
    | (other.also_aborted & not_(one_of(other.ending, *TIMEOUTS))))  # fmt: skip
real_abort = named("a real abort", one_of(other.ending, ABORTED_RUNTIME, ABORTED_EXTERNAL))
farther = later(now.during, other.during)

R = Row[AttemptTerminal, None]


# ── rows: the first that matches wins ──

ROWS: tuple[R, ...] = (
    R(other, when=no_value, refuse="no ending has this form", name="Joined/no value"),
    R(other, when=other.ending == OK, ignore="ok is neutral", name="Joined/ok"),
    R(other, at=OK, data=evolve(now, ending=other.ending, during=other.during, also_aborted=other.also_aborted), name="Joined/first"),
    R(other, when=other.ending == OBSERVED, data=evolve(now, during=farther), name="Joined/observation",
      because="Attached to what there is; it never interrupts."),
    R(other, at=OBSERVED, data=evolve(now, ending=other.ending, during=farther, also_aborted=other.also_aborted),
      name="Joined/onto an observation"),
    R(other, when=other.ending == FAILED, data=evolve(now, during=farther), name="Joined/failure",
      because="Sets the error, never weakens an interruption."),
    R(other, at=FAILED, data=evolve(now, ending=other.ending, during=farther, also_aborted=other.also_aborted),
      name="Joined/onto a failure"),
    R(other, at=ABORTS, when=one_of(other.ending, *ABORTS), data=evolve(now, ending=gravest(now.ending, other.ending, ABORTS),
      during=farther),
      name="Joined/two aborts"),
    # A timeout and an abort: the same value whichever came first.
    R(other, at=ABORTS, name="Joined/timeout onto an abort",
      data=evolve(now, ending=choose(now.ending == ABORTED_EXTERNAL, TIMEOUT_EXTERNAL, other.ending), during=farther,
                  also_aborted=choose(now.ending == YIELDED, other.also_aborted, True))),
    R(other, when=one_of(other.ending, *ABORTS), name="Joined/abort onto a timeout",
      data=evolve(now, ending=choose(other.ending == ABORTED_EXTERNAL, TIMEOUT_EXTERNAL, now.ending), during=farther,
                  also_aborted=choose(real_abort, True, now.also_aborted))),
    R(other, name="Joined/two timeouts",
      data=evolve(now, ending=gravest(now.ending, other.ending, TIMEOUTS), during=farther,
                  also_aborted=choose(other.also_aborted, True, now.also_aborted)),
      because="Higher phase and, independently of it, higher source."),
)  # fmt: skip


# ── the machine ──

MACHINE: Machine[AttemptTerminal, Joined, None] = Machine(
    name="attempt_terminal",
    initial=AttemptTerminal(),
    now=now,
    events=(Joined,),
    effects=(),
    rows=ROWS,
    phase="ending",
)
step = MACHINE.step
