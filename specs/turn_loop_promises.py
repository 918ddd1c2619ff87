"""The words that properties of the turn loop share, and what its environment promises.

Safety needs no promise: every event may come in every state, as often as it likes, under any identity.
"""

from __future__ import annotations

from turnproof.machines.kernel import named, not_, one_of
from turnproof.machines.turn_loop_events import (
    CallEnded,
    CompactionEnded,
    ContinueDue,
    GraceExpired,
    HistoryLoaded,
    OutputCaptured,
    PreparationFailed,
    Prepared,
    ResampleDue,
    RetryDue,
    StepRecorded,
    StreamBroke,
    StreamEnded,
    SubtaskEnded,
)
from turnproof.machines.turn_loop_judge import loaded, now
from turnproof.machines.turn_loop_words import RESTING, Content, Ending, Phase, Task
from turnproof.specs.language import Fair, on, taken

# Written here again on purpose: a slip in the machine's own definitions must not move the properties with it.
resting = named("no run is on", one_of(now.phase, *RESTING))
running = named("a run is on", not_(one_of(now.phase, *RESTING)))
nothing_kept = named("the attempt left nothing to keep", one_of(now.content, Content.NOTHING, Content.REASONING, Content.CUT_CALL))
completion = named("a completion", (now.ending == Ending.STOP) | (now.ending == Ending.CAPTURED))
terminal = named("a terminal reason, or a captured output",
                 one_of(now.ending, Ending.STOP, Ending.LENGTH, Ending.CONTENT_FILTER, Ending.ERROR, Ending.CAPTURED))  # fmt: skip
no_finish = named("no known finish", (now.ending == Ending.UNKNOWN) | (now.ending == Ending.ABSENT))
no_call = named("a call was announced and none came", (now.ending == Ending.TOOL_CALLS) & (now.content != Content.RESULT))

barren = named(
    "the step brought nothing", (no_finish & (now.content != Content.RESULT)) | no_call | ((now.ending == Ending.STOP) & nothing_kept)
)

many_calls = named("more than two calls are open", now.open_calls > 2)
"""Beyond what is explored. Any number of them ends one by one, as two do."""


# ── what the environment promises ──

GRACE = Fair("the grace timer fires", one_of(now.phase, Phase.SETTLING, Phase.STOPPING), on(GraceExpired) & taken())
WORK_ENDS = (
    Fair("a request is built", now.phase == Phase.PREPARING, on(Prepared, PreparationFailed) & taken()),
    Fair("calls end", now.phase == Phase.DRAINING, on(CallEnded) & taken()),
    Fair("a step is written down", now.phase == Phase.JUDGING, on(StepRecorded) & taken()),
    Fair("a compaction ends", now.phase == Phase.COMPACTING, on(CompactionEnded) & taken()),
    Fair("a child ends", now.phase == Phase.SUBTASK, on(SubtaskEnded) & taken()),
    Fair("the retry timer fires", now.phase == Phase.RETRY_WAIT, on(RetryDue) & taken()),
    Fair("the resample timer fires", now.phase == Phase.RESAMPLE_WAIT, on(ResampleDue) & taken()),
    Fair("the continue timer fires", now.phase == Phase.CONTINUE_WAIT, on(ContinueDue) & taken()),
    GRACE,
)
"""What the loop asks for comes to an end, once the model was asked."""

PROMISES = (
    Fair("the history is read", now.phase == Phase.DECIDING, on(HistoryLoaded, PreparationFailed) & taken()),
    Fair("a stream ends", now.phase == Phase.STREAMING, on(StreamEnded, StreamBroke, OutputCaptured) & taken()),
    *WORK_ENDS,
)
"""Whatever the loop asks for comes to an end, some way or other."""

PATIENCE = (
    Fair("a model asked again and again answers at last", now.phase == Phase.STREAMING,
         on(StreamEnded) & taken() & (now.ending == Ending.STOP) & one_of(now.content, Content.TEXT, Content.HOSTED), strong=True),
    Fair("a user does not add tasks for ever", now.phase == Phase.DECIDING, on(HistoryLoaded) & taken() & (loaded.task == Task.NONE),
         strong=True),
    Fair("a user does not join for ever", (now.phase == Phase.DECIDING) & now.answered,
         on(HistoryLoaded) & taken() & now.answered & not_(now.prompted) & (loaded.task == Task.NONE), strong=True),
    Fair("a user does not speak into every compaction of an answer", (now.phase == Phase.DECIDING) & now.answered & (now.compactions > 0),
         on(HistoryLoaded) & taken() & now.answered & (now.compactions > 0) & not_(now.prompted) & (loaded.task == Task.NONE), strong=True),
)  # fmt: skip
"""What a run without a limit of steps needs besides; it implies that the history is read and that streams end."""
