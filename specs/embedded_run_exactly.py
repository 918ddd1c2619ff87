"""What each event of the entry of a session's run must record and tell, exactly."""

from __future__ import annotations

from turnproof.machines.embedded_run import (
    EMPTY,
    HELD,
    MACHINE,
    Abandonment,
    AbandonRequested,
    AnswerNoRun,
    AnswerOffered,
    CancelRun,
    ClearRequested,
    Deliver,
    ForceClearRequested,
    LifecycleRotated,
    RegisterRequested,
    RestoreRequested,
    RetryRequested,
    RunWaitAbandoned,
    RunWaitRequested,
    WakeRunWaiters,
    abandon,
    answer,
    clear,
    force,
    now,
    register,
    restore,
    retry,
    rotated,
)
from turnproof.machines.kernel import NOBODY, not_, only_if
from turnproof.machines.reply_operation_words import CancelReason
from turnproof.specs.exactly import NOTHING, Writer
from turnproof.specs.language import Property

write = Writer(MACHINE)
held, empty = now.phase == HELD, now.phase == EMPTY
wake = only_if(now.waiting > 0, WakeRunWaiters())
EMPTIED = {"phase": EMPTY, "handle": NOBODY, "abandonment": Abandonment.NONE, "retry": NOBODY, "waiting": 0}
HEARD = {"abandonment": Abandonment.NONE, "retry": NOBODY}


def its(handle: str) -> bool:
    """The event names the run that is registered."""
    return held & (handle == now.handle)


known, current = register.handle != NOBODY, register.generation == now.generation
retried = its(retry.handle) & (now.abandonment == Abandonment.TIMED_OUT) & (retry.retry != NOBODY)
restored = (now.abandonment == Abandonment.RECOVERING) & (restore.retry == now.retry)
newer = rotated.generation != now.generation
TURNS = (
    write.case(LifecycleRotated, newer & empty, {"generation": rotated.generation}),
    write.case(LifecycleRotated, newer & held, {**EMPTIED, "generation": rotated.generation}, wake,
               CancelRun(now.handle, CancelReason.RESTART)),
)  # fmt: skip
FORCED = (write.case(ForceClearRequested, its(force.handle), EMPTIED, wake, CancelRun(force.handle, CancelReason.SUPERSEDED)),)

EXACTLY: tuple[Property, ...] = (
    write.answers(RegisterRequested,
                  write.case(RegisterRequested, known & current, {"phase": HELD, "handle": register.handle, **HEARD}),
                  write.case(RegisterRequested, known & not_(current), NOTHING, CancelRun(register.handle, CancelReason.RESTART)),
                  requirements="R-ATT-24", refuses=register.handle == NOBODY),
    write.answers(ClearRequested, write.case(ClearRequested, its(clear.handle), EMPTIED, wake), requirements=("R-ATT-24", "R-ATT-25")),
    write.answers(ForceClearRequested, *FORCED, requirements="R-ATT-25", refuses=not_(its(force.handle))),
    write.answers(AbandonRequested,
                  write.case(AbandonRequested, its(abandon.handle), {"abandonment": Abandonment.TIMED_OUT, "retry": NOBODY}),
                  requirements="R-ATT-16"),
    write.answers(RetryRequested,
                  write.case(RetryRequested, retried, {"abandonment": Abandonment.RECOVERING, "retry": retry.retry}),
                  requirements="R-ATT-16", refuses=not_(retried)),
    write.answers(RestoreRequested, write.case(RestoreRequested, restored, HEARD), requirements="R-ATT-16", refuses=not_(restored)),
    write.answers(AnswerOffered,
                  write.case(AnswerOffered, its(answer.handle) & (now.abandonment == Abandonment.NONE), NOTHING, Deliver(answer.handle)),
                  requirements="R-ATT-16"),
    write.answers(LifecycleRotated, *TURNS, requirements="R-ATT-24"),
    write.answers(RunWaitRequested,
                  write.case(RunWaitRequested, held, {"waiting": now.waiting + 1}),
                  write.case(RunWaitRequested, empty, NOTHING, AnswerNoRun()), requirements="R-ATT-28"),
    write.answers(RunWaitAbandoned, write.case(RunWaitAbandoned, now.waiting > 0, {"waiting": now.waiting - 1}), requirements="R-ATT-28"),
    write.ordered("whoever waits is woken before a run is cancelled that may register its successor", (*TURNS, *FORCED), "R-ATT-24"),
)  # fmt: skip
