"""The designs that were wrong, in the whole system: each with the shortest run to the harm it did.

A design is the target's system with one or two machines put back. Where one machine's mistake is caught by another (the target's failover
asks whether a replay is safe, whatever class an attempt reports), both are put back together, as they were.
"""

from __future__ import annotations

from collections.abc import Mapping

from turnproof.specs.embedded_attempt_history import (
    BLANKET_IDLE,
    COUNTED_LATE,
    E1_REASON_LOST,
    IDLE_IN_TOOL_TIME,
    LATE_ANSWER,
    P1_STARTED,
    TWICE,
)
from turnproof.specs.embedded_run import HEARD
from turnproof.specs.failover import SEPTEMBER, TWO_AT_ONCE
from turnproof.specs.language import AnyMachine
from turnproof.specs.recovery_system_environment import reentry
from turnproof.specs.recovery_system_parts import SYSTEM
from turnproof.specs.reply_operation_history import E3_ALONE, P2_WHOLE_REPLY
from turnproof.specs.stuck_recovery import EXPIRES_REPLY, NO_RECHECK
from turnproof.specs.system import SystemVariant

ONCE = "the side effect of the turn happens at most once"
SAFE = "the fallback begins only if nothing changed the world, and nothing still can,"
AFTER_RECOVERY, AFTER_IDLE, AFTER_ERROR = f"{SAFE} after a recovery", f"{SAFE} after an idle timeout", f"{SAFE} after an error"
TYPED = "a recovery reaches the attempt as stuck_recovery, once, and no signal comes with it"
CLASSED = "a live attempt that is recovered has its class in the same step, whoever else cancels"
UNKNOWN = "a recovery that finds neither tool nor compaction nor a living request is an external abort"
ALIVE = "the recovery of an attempt leaves its reply without a result"
NOT_THE_USER = "a recovery is never recorded as the user's abort"
ATTEMPT_FIRST = "the reply is expired for being stuck only where no attempt is registered"
CLASS_STAYS = "the class of a recovery never changes"
ONE_ANSWER = "at most one answer is delivered"
LATE = "an answer is delivered only by an attempt that was live"
ONE_ATTEMPT = "two attempts of a turn are never live together"
OWNERLESS = "the lane is reset only while no run is registered and the reply is released"
SLOT_FREE = "the next turn finds its slot free, and no attempt of the turn before it live"


def _variant(name: str, about: str, violates: Mapping[str, int], **machines: AnyMachine) -> SystemVariant:
    return SystemVariant(system=SYSTEM.with_machines(f"recovery_system_{name}", **machines), about=about, violates=violates)


def attempts(machine: AnyMachine) -> dict[str, AnyMachine]:
    """Both attempts of one design."""
    return {"first": machine, "second": machine}


VARIANTS: tuple[SystemVariant, ...] = (
    _variant("e1", "E0 and E1: the reason is dropped on its way to the attempt, which records a person's abort (B1).",
             {CLASSED: 5}, **attempts(E1_REASON_LOST)),
    _variant("blanket_idle", "The rejected idea 'stuck means idle', with the failover table of September: the fallback repeats a command "
             "that still runs (B2).", {AFTER_RECOVERY: 9, UNKNOWN: 5}, **attempts(BLANKET_IDLE), failover=SEPTEMBER),
    _variant("p1", "P1: the classifier asks whether a model call was started, so a run that hangs after its call ended counts as a silent "
             "model, and is replayed (B3).", {UNKNOWN: 7}, **attempts(P1_STARTED)),
    _variant("p2", "P2: the whole reply is aborted first, so a listener records the abort before the typed reason arrives, and the "
              "fallback "
             "finds an aborted signal (B6).", {TYPED: 5, ALIVE: 5}, reply=P2_WHOLE_REPLY),
    _variant("e3", "E3, main of August and September 2026: a recovery expires the whole reply, and the attempt never hears why (rest of "
             "B1).", {ATTEMPT_FIRST: 5}, recovery=EXPIRES_REPLY),
    _variant("e3_reply", "E3, its reply operation: recovery records run_stalled and cancels as superseded.",
             {TYPED: 5, ALIVE: 5}, reply=E3_ALONE),
    _variant("no_recheck", "The proposals without a recheck of ownership: the lane is reset while the reply lives, and a queued turn "
             "starts beside its fallback (B7).", {OWNERLESS: 8, SLOT_FREE: 8}, recovery=NO_RECHECK),
    _variant("september", "Failover as of September 2026, with the attempts and the recovery of the last proposal: the class of a "
              "recovery is "
             "right, and still the fallback repeats what a tool had done before the model stalled; so it does after an error (hazard 2).",
             {ONCE: 14, AFTER_ERROR: 8, AFTER_RECOVERY: 12}, failover=SEPTEMBER),
    _variant("idle_in_tool_time", "Hazard 1 whole: the idle timer goes on while a tool runs, and its flag beats the tool's.",
             {AFTER_IDLE: 11}, **attempts(IDLE_IN_TOOL_TIME), failover=SEPTEMBER),
    _variant("counted_late", "A call is let run before it is counted: even the target's failover is told that a replay is safe.",
             {ONCE: 14, AFTER_RECOVERY: 10}, **attempts(COUNTED_LATE)),
    _variant("two_at_once", "openclaw/openclaw#111407: a client's deadline begins a second attempt beside the first.",
             {ONE_ATTEMPT: 5}, failover=TWO_AT_ONCE),
    _variant("late_answer", "openclaw/openclaw#113751: the orphaned attempt answers after the fallback did.",
             {LATE: 5, ONE_ANSWER: 5}, **attempts(LATE_ANSWER), runs=HEARD),
    _variant("double_abort", "The older attempt without a latch: a second cancel erases the idle timeout, and with it the fallback (B16).",
             {CLASS_STAYS: 7}, **attempts(TWICE)),
    _variant("p3", "P3, the last proposal: it cancels only the attempt, but the reply has no result yet, so a listener that aborts again "
             "from inside that very cancel records the recovery as the user's abort (B13). Where the target differs, the shell answers "
             "such a call itself.", {NOT_THE_USER: 6, ALIVE: 6}, reentry=reentry(during_recovery=True)),
)  # fmt: skip
