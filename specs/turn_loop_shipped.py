"""What OpenCode 1.18.33 really does: its judge (``post``), and how it tells its clients that nothing runs.

Found by following eleven recorded runs of the shipped server: ``post`` explains them up to a cancel or a fatal error, and this variant
explains every moment of them.

| difference | requirement |
|---|---|
| a cancel publishes idle at once, while stream and calls still run, and again when they ended | R-LOOP-2, R-LOOP-6 |
| an error that is not tried again publishes error and idle when the stream breaks, and idle again once the step is kept | R-LOOP-2 |
"""

from __future__ import annotations

from collections.abc import Mapping

from attrs import evolve

from turnproof.machines.kernel import Row
from turnproof.machines.turn_loop import MACHINE
from turnproof.machines.turn_loop_events import Effect, Finish, PublishError, PublishIdle
from turnproof.machines.turn_loop_judge import broke, mine, now
from turnproof.machines.turn_loop_words import Cause, Failure, Outcome, TurnLoop
from turnproof.specs.turn_loop_history import POST

R = Row[TurnLoop, Effect]

CANCELS = ("Cancelled/streaming", "Cancelled/draining", "Cancelled/settling", "Cancelled/compacting", "Cancelled/subtask")
"""Rows of a cancel that must wait for something."""


def _idle_too(name: str) -> R:
    row = MACHINE.row(name)
    return evolve(row, emit=(*row.emit, PublishIdle()))


told_at_once = (PublishError(Cause.PROVIDER, now.raw), PublishIdle())

ROWS: Mapping[str, R | tuple[R, ...]] = {
    **{name: _idle_too(name) for name in CANCELS},
    "StreamBroke/fatal": evolve(MACHINE.row("StreamBroke/fatal"), emit=(*MACHINE.row("StreamBroke/fatal").emit, *told_at_once)),
    "StreamBroke/step over": (
        evolve(
            MACHINE.row("StreamBroke/step over"),
            when=mine(broke.generation) & (broke.failure == Failure.FATAL),
            emit=(*MACHINE.row("StreamBroke/step over").emit, *told_at_once),
            name="StreamBroke/fatal, step over",
        ),
        MACHINE.row("StreamBroke/step over"),
    ),
    "StepRecorded/fatal": evolve(MACHINE.row("StepRecorded/fatal"), emit=(Finish(Outcome.ERRORED), PublishIdle())),
}

SHIPPED = POST.variant("opencode_1_18_33", replace=ROWS)
