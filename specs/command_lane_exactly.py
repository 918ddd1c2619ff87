"""What each event of the command lane must record and tell, exactly."""

from __future__ import annotations

from turnproof.machines.command_lane import (
    BUSY,
    FREE,
    MACHINE,
    ForgetTask,
    LaneCleared,
    LaneTimer,
    OwnerlessExpired,
    RejectQueued,
    ResetRequested,
    StartTurn,
    TaskEnded,
    TurnEnqueued,
    ended,
    now,
    reset,
)
from turnproof.machines.kernel import StartTimer, StopTimer, not_, only_if
from turnproof.specs.exactly import Writer
from turnproof.specs.language import Property

write = Writer(MACHINE)
queued, none_queued = now.enqueued > now.started, now.enqueued == now.started
its_end = (now.phase == BUSY) & (ended.turn == now.started)
its_reset = (now.phase == BUSY) & (reset.turn == now.started)
young = only_if(not_(now.stale), StopTimer(LaneTimer.OWNERLESS))
begins = (StartTurn(now.started + 1), StartTimer(LaneTimer.OWNERLESS))
NEXT = {"started": now.started + 1, "stale": False}
EMPTY = {"phase": FREE, "stale": False}

COMES = (
    write.case(TurnEnqueued, now.phase == FREE, {"phase": BUSY, "enqueued": now.enqueued + 1, "started": now.started + 1}, *begins),
    write.case(TurnEnqueued, now.phase == BUSY, {"enqueued": now.enqueued + 1}),
)
ENDS = (
    write.case(TaskEnded, its_end & queued, NEXT, young, *begins),
    write.case(TaskEnded, its_end & none_queued, EMPTY, young),
)
RESETS = (
    write.case(ResetRequested, its_reset & queued, NEXT, ForgetTask(now.started), young, *begins),
    write.case(ResetRequested, its_reset & none_queued, EMPTY, ForgetTask(now.started), young),
)
CLEARS = (write.case(LaneCleared, queued, {"enqueued": now.started}, RejectQueued()),)
AGES = (write.case(OwnerlessExpired, (now.phase == BUSY) & not_(now.stale), {"stale": True}),)

EXACTLY: tuple[Property, ...] = (
    write.answers(TurnEnqueued, *COMES, requirements="R-ATT-27"),
    write.answers(TaskEnded, *ENDS, requirements="R-ATT-27"),
    write.answers(ResetRequested, *RESETS, requirements="R-ATT-26", refuses=(now.phase == BUSY) & (reset.turn != now.started)),
    write.answers(LaneCleared, *CLEARS, requirements="R-ATT-27"),
    write.answers(OwnerlessExpired, *AGES, requirements="R-ATT-26"),
    write.ordered("a task is forgotten before its timer stops, and the next turn starts before its own timer",
                  (*COMES, *ENDS, *RESETS), "R-ATT-26"),
)  # fmt: skip
