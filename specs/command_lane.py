"""What must hold of the lane of one session, for any number of turns."""

from __future__ import annotations

from attrs import evolve

from turnproof.machines.command_lane import (
    BUSY,
    FREE,
    MACHINE,
    CommandLane,
    ForgetTask,
    LaneCleared,
    LaneTimer,
    OwnerlessExpired,
    R,
    RejectQueued,
    ResetRequested,
    StartTurn,
    TaskEnded,
    TurnEnqueued,
    ended,
    now,
    reset,
)
from turnproof.machines.kernel import implies, named, not_
from turnproof.specs.command_lane_exactly import EXACTLY
from turnproof.specs.embedded_attempt_requirements import requirements
from turnproof.specs.harms import with_harms
from turnproof.specs.language import Always, Property, Sometimes, Spec, Step, Variant, after, count, emits, on, refused, taken

then = after(CommandLane)
waiting = named("a turn waits", now.enqueued > now.started)

ORDER = "turns start one by one, in the order in which they came"
NOTHING_LEFT = "nothing waits at a free lane"
FRESH = "a reset hits exactly the task that was seen"
LATE = "a task the lane no longer counts changes nothing"

PROPERTIES: tuple[Property, ...] = (
    Step(ORDER, requirements="R-ATT-27", holds=
         implies(emits(StartTurn), (count(StartTurn) == 1) & emits(StartTurn, turn=now.started + 1) & (then.started == now.started + 1))
         & implies(not_(emits(StartTurn)), then.started == now.started), harm="a turn is answered twice, or before the one it follows"),
    Always("no turn is started that did not come", now.started <= now.enqueued, requirements="R-ATT-27"),
    Always(NOTHING_LEFT, implies(now.phase == FREE, now.started == now.enqueued), requirements="R-ATT-27",
           harm="queued work is left behind after a clean end"),
    Step("a turn starts only when the lane counts no other", requirements="R-ATT-27", holds=
         implies(emits(StartTurn), (now.phase == FREE) | (on(TaskEnded) & (ended.turn == now.started))
         | (on(ResetRequested) & (reset.turn == now.started))), harm="two turns of one session run side by side"),
    Step("a reset is what forgets a task", emits(ForgetTask) == (on(ResetRequested) & taken()), requirements="R-ATT-26"),
    Step(FRESH, requirements="R-ATT-26", holds=
         implies(on(ResetRequested) & (now.phase == BUSY) & (reset.turn != now.started), refused())
         & implies(on(ResetRequested) & taken(), emits(ForgetTask, turn=now.started) & (reset.turn == now.started)),
         harm="a turn that has just begun is forgotten in place of the stuck one"),
    Step(LATE, requirements="R-ATT-27", holds=
         implies(on(TaskEnded) & ((ended.turn != now.started) | (now.phase == FREE)), not_(taken())),
         harm="the late end of a task that was reset starts a turn beside another"),
    Step("a turn that comes waits or starts", requirements="R-ATT-27", holds=
         implies(on(TurnEnqueued), (then.enqueued == now.enqueued + 1) & (then.phase == BUSY))),
    Step("a clear rejects what waits, and nothing else", requirements="R-ATT-27", holds=
         emits(RejectQueued) == (on(LaneCleared) & waiting)),
    Step("the age of a task is its own", requirements="R-ATT-26", holds=
         implies(then.started != now.started, not_(then.stale)) & implies(then.stale & not_(now.stale), on(OwnerlessExpired)),
         harm="a fresh task is forgotten for the age of the one before"),
    Sometimes("a reset starts the turn that waits", on(ResetRequested) & emits(StartTurn), requirements="R-ATT-26"),
    Sometimes("a task that was reset ends late", on(TaskEnded) & (ended.turn < now.started) & (ended.turn > 0), requirements="R-ATT-27"),
)  # fmt: skip

NO_PUMP = MACHINE.variant("command_lane_no_pump", drop=("TaskEnded/next",))
LATE_COUNTS = MACHINE.variant(
    "command_lane_late_counts",
    first=(R(TaskEnded, at=BUSY, when=waiting, data=evolve(now, started=now.started + 1), emit=(StartTurn(now.started + 1),),
             name="TaskEnded/any"),),
)  # fmt: skip
BLIND_RESET = MACHINE.variant(
    "command_lane_blind_reset",
    first=(R(ResetRequested, at=BUSY, to=FREE, data=evolve(now, started=now.enqueued), emit=(ForgetTask(now.started),),
             name="ResetRequested/blind"),),
)  # fmt: skip

SPEC = Spec(
    machine=MACHINE,
    requirements=requirements("R-ATT-26", "R-ATT-27"),
    properties=with_harms((*PROPERTIES, *EXACTLY)),
    variants=(
        Variant(machine=NO_PUMP, violates={NOTHING_LEFT: 3},
                about="openclaw/openclaw#89208: queued work is left behind after a clean abort."),
        Variant(machine=LATE_COUNTS, violates={LATE: 3},
                about="Completions without a generation: the end of a task that was reset starts the next turn beside the current one."),
        Variant(machine=BLIND_RESET, violates={FRESH: 2, ORDER: 3},
                about="openclaw/openclaw#145152: the lane is reset by session id, whatever task is in it by then."),
    ),
    discipline={LaneTimer.OWNERLESS: ("R-ATT-26",)},
    counter=3,
)  # fmt: skip
