"""A turn under its real watchdog: how long session, slot and lane stay taken at most, whatever was aborted, although nobody helps.

The recovery system with one attempt, and the watchdog that asks for its recoveries: ages, ticks and back-off as they are. What the
environment does before is as free as there; from an abort on it may be silent for ever, and the bound is computed from the timers.
"""

from __future__ import annotations

from turnproof.machines.command_lane import FREE
from turnproof.machines.embedded_attempt_events import ModelCallStarted
from turnproof.machines.kernel import named, not_, one_of
from turnproof.machines.reply_operation_words import RecoveryRequested, Result
from turnproof.machines.stuck_recovery_watchdog_words import RequestRecovery, SessionExamined
from turnproof.machines.stuck_recovery_words import OwnersChecked, SituationRead
from turnproof.specs.embedded_attempt_requirements import requirements
from turnproof.specs.language import Property, Sometimes
from turnproof.specs.recovery_system_parts import first, lane, reply
from turnproof.specs.system import SystemSpec, Within
from turnproof.specs.watched_turn_parts import SYSTEM_WATCHED, watchdog

AT_ONCE = (SessionExamined, SituationRead, OwnersChecked)
"""The runtime reads a state as soon as it is asked to."""

slot_free = named("the slot is free", reply.now.released)
lane_free = named("the lane is free, or runs the next turn", (lane.now.phase == FREE) | (lane.now.started > 1))
aborted = named("the reply is aborted, expired or failed",
    (reply.now.result == Result.NONE) & not_(one_of(reply.next.result, Result.NONE, Result.COMPLETED)))  # fmt: skip
asked = named("the model is asked while the next message waits", first.took(ModelCallStarted) & (lane.now.enqueued > lane.now.started))
recovering = named("its attempt is recovered", reply.took(RecoveryRequested))

PROPERTIES: tuple[Property, ...] = (
    Within("after any abort the slot is free within a minute", aborted, slot_free, requirements="R-ATT-28", milliseconds=60_000,
           at_once=AT_ONCE, harm="the session is wedged"),
    Within("after a recovery the slot is free within two minutes, if no attempt follows", recovering, slot_free, requirements="R-ATT-28",
           milliseconds=120_000, at_once=AT_ONCE, harm="the session is wedged"),
    Within("after any abort or recovery the slot and the lane are free, even if the owner never answers", aborted | recovering,
           slot_free & lane_free, requirements=("R-ATT-26", "R-ATT-27"), milliseconds=330_000, at_once=AT_ONCE,
           harm="every later message waits for ever"),
    Within("a model call that is never answered gives slot and lane to the message that waits", asked, slot_free & lane_free,
           requirements=("R-ATT-26", "R-ATT-27"), milliseconds=985_000, at_once=AT_ONCE, harm="a silent turn holds its session for ever"),
    Sometimes("the watchdog asks for a recovery of work that is alive", watchdog.emits(RequestRecovery, may_abort=True),
        requirements="R-ATT-28"),
)  # fmt: skip

SPEC = SystemSpec(
    system=SYSTEM_WATCHED,
    requirements=requirements("R-ATT-26", "R-ATT-27", "R-ATT-28"),
    properties=PROPERTIES,
    tokens=2,
    counter=2,
)
