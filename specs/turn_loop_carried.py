"""What a turn loop only carries: when a try may begin, which call is run, and the raw finish reason of reports."""

from __future__ import annotations

from turnproof.machines.kernel import StartTimer, choose, latest, named, not_
from turnproof.machines.turn_loop_events import (
    CallCompleted,
    Cancelled,
    Finish,
    PublishError,
    RunTool,
    StepFinished,
    StepRecorded,
    StreamBroke,
    WarnIncomplete,
)
from turnproof.machines.turn_loop_judge import broke, completed, finished, now, recorded
from turnproof.machines.turn_loop_words import Failure, Phase, Timer, TurnLoop
from turnproof.specs.language import Carries, Property, emits, on
from turnproof.specs.turn_loop_promises import running

HINT = "the storm goes on in spite of the provider's own plea"
forgets = named(
    "the step is judged, or the run is over", on(StepRecorded) | emits(Finish) | (on(Cancelled) & running & (now.phase != Phase.STOPPING))
)


def scheduled(tries: int) -> int:
    """The published schedule without hints, in milliseconds: 2, 4, 8, 16 s, then 30 s for every further try."""
    return choose(tries == 0, 2_000, choose(tries == 1, 4_000, choose(tries == 2, 8_000, choose(tries == 3, 16_000, 30_000))))


TRIES = {Timer.RETRY: now.retries, Timer.RESAMPLE: now.resamples, Timer.CONTINUE: now.continues}

CARRIED: tuple[Property, ...] = (
    *(Carries(f"a wait to {timer.value} follows the schedule, and a hint is a minimum", StartTimer, "not_before_ms",
              latest(now.retry_at_ms, recorded.at_ms + scheduled(tries)), matching={"timer": timer}, requirements=("R-LOOP-9", "R-LOOP-14"),
              harm=HINT) for timer, tries in TRIES.items()),
    Carries("the moment of calls follows no hint", StartTimer, "not_before_ms", 0, matching={"timer": Timer.GRACE},
            requirements="R-LOOP-10", harm="a cancelled run hangs until the provider may be called again"),
    Carries("a hint is kept until its step is judged", TurnLoop, "retry_at_ms", broke.retry_at_ms, requirements="R-LOOP-14", harm=HINT,
            when=on(StreamBroke) & (now.phase == Phase.STREAMING) & (broke.failure == Failure.RETRYABLE)),
    Carries("nothing else touches a hint", TurnLoop, "retry_at_ms", now.retry_at_ms, when=not_(forgets) & not_(on(StreamBroke)),
            requirements="R-LOOP-14", harm=HINT),
    Carries("a hint is forgotten with its step", TurnLoop, "retry_at_ms", 0, when=forgets, requirements="R-LOOP-14",
            harm="a wait of an hour that was asked for once is waited again after every later error"),
    Carries("the call that is complete is the one that runs", RunTool, "call", completed.call, when=on(CallCompleted),
            requirements="R-LOOP-5", harm="another call than the model's runs"),
    Carries("the raw reason of a finish part is kept", TurnLoop, "raw", finished.raw, when=on(StepFinished), requirements="R-LOOP-31"),
    Carries("the raw reason stays until its step is judged", TurnLoop, "raw", now.raw, when=not_(forgets) & not_(on(StepFinished)),
            requirements="R-LOOP-31"),
    Carries("the raw reason is forgotten with its step", TurnLoop, "raw", "", when=forgets, requirements="R-LOOP-31",
            harm="a stream that died without a finish part is reported with the reason of another"),
    Carries("a warning names the raw reason", WarnIncomplete, "raw", now.raw, requirements=("R-LOOP-23", "R-LOOP-31"),
            harm="nobody learns which gateway never maps its reason"),
    Carries("an error names the raw reason", PublishError, "raw", now.raw, requirements=("R-LOOP-3", "R-LOOP-31")),
)  # fmt: skip
