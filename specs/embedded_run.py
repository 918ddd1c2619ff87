"""What must hold of one session's entry in the registry of runs, for any number of handles, generations and waiters."""

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
    EmbeddedRun,
    ForceClearRequested,
    LifecycleRotated,
    R,
    RegisterRequested,
    RestoreRequested,
    RunWaitRequested,
    WakeRunWaiters,
    abandon,
    answer,
    clear,
    emptied,
    force,
    now,
    register,
    restore,
    rotated,
)
from turnproof.machines.kernel import NOBODY, implies, named, not_
from turnproof.machines.reply_operation_words import CancelReason
from turnproof.specs.embedded_attempt_requirements import requirements
from turnproof.specs.embedded_run_exactly import EXACTLY
from turnproof.specs.harms import with_harms
from turnproof.specs.language import Always, Property, Sometimes, Spec, Step, Variant, after, count, emits, on, refused, taken

then = after(EmbeddedRun)
older = named("of an older generation", (register.generation != now.generation) & (register.handle != NOBODY))

REPLACEMENT = "what is meant for another handle changes nothing of the current one"
OLDER = "a handle of an older generation is told to restart, and not kept"
EMPTIED_FIRST = "a new generation empties the entry and tells the run to restart"
SUPPRESSED = "only the current run that was not abandoned is heard"

PROPERTIES: tuple[Property, ...] = (
    Always("an entry has a handle exactly while it is held", (now.phase == HELD) == (now.handle != NOBODY), requirements="R-ATT-24"),
    Step(OLDER, requirements="R-ATT-24", holds=
         implies(on(RegisterRequested) & older, (then.handle == now.handle)
         & (count(CancelRun, handle=register.handle, reason=CancelReason.RESTART) == 1)),
         harm="a run of a lifecycle that is over blocks the session of the new one"),
    Step("a handle is kept only for the current generation", requirements="R-ATT-24", holds=
         implies((then.handle != now.handle) & (then.handle != NOBODY), on(RegisterRequested) & (register.generation == now.generation)
         & (then.handle == register.handle))),
    Step(EMPTIED_FIRST, requirements="R-ATT-24", holds=
         implies(on(LifecycleRotated) & taken(), (then.phase == EMPTY) & (then.generation == rotated.generation)
         & (emits(CancelRun, handle=now.handle, reason=CancelReason.RESTART) == (now.phase == HELD)))),
    Step("a handle is cleared only by itself, by force, or by a new generation", requirements=("R-ATT-24", "R-ATT-25"), holds=
         implies((now.phase == HELD) & (then.phase == EMPTY), (on(ClearRequested) & (clear.handle == now.handle))
         | (on(ForceClearRequested) & (force.handle == now.handle)) | on(LifecycleRotated))),
    Step(REPLACEMENT, requirements="R-ATT-25", holds=
         implies(on(ClearRequested) & (clear.handle != now.handle), not_(taken()))
         & implies(on(ForceClearRequested) & (force.handle != now.handle), refused())
         & implies(on(AbandonRequested) & (abandon.handle != now.handle), not_(taken())),
         harm="the attempt that replaced a stuck one is cleared in its place"),
    Step("a force clear tells the run", requirements="R-ATT-25", holds=
         implies(on(ForceClearRequested) & taken(), count(CancelRun, handle=now.handle, reason=CancelReason.SUPERSEDED) == 1),
         harm="an attempt nobody knows any more goes on running tools"),
    Step(SUPPRESSED, requirements="R-ATT-16", holds=
         implies(emits(Deliver), on(AnswerOffered) & (answer.handle == now.handle) & (now.abandonment == Abandonment.NONE)),
         harm="the fallback answers, and the orphaned attempt answers as well"),
    Step("the current run is heard", requirements="R-ATT-16", holds=
         implies(on(AnswerOffered) & (answer.handle == now.handle) & (now.handle != NOBODY) & (now.abandonment == Abandonment.NONE),
                 emits(Deliver, handle=now.handle))),
    Step("an abandoned run is restored only by the retry that holds its token", requirements="R-ATT-16", holds=
         implies((now.abandonment == Abandonment.RECOVERING) & (then.abandonment == Abandonment.NONE) & (then.handle == now.handle),
                 on(RegisterRequested) | (on(RestoreRequested) & (restore.retry == now.retry)))),
    Always("nobody waits for an empty entry", implies(now.waiting > 0, now.phase == HELD), requirements="R-ATT-28",
           harm="a recovery waits for a run that is over"),
    Step("whoever waits wakes when the session has no run", requirements="R-ATT-28", holds=
         emits(WakeRunWaiters) == ((now.waiting > 0) & (then.phase == EMPTY) & (now.phase == HELD))),
    Step("an empty entry answers at once", implies(on(RunWaitRequested), emits(AnswerNoRun) == (now.phase == EMPTY)),
        requirements="R-ATT-28"),
    Sometimes("a run is restored", on(RestoreRequested) & taken(), requirements="R-ATT-16"),
    Sometimes("a run replaces another while somebody waits", on(RegisterRequested) & taken() & (now.waiting > 0)
        & (then.handle != now.handle), requirements="R-ATT-25"),
)  # fmt: skip

BY_SESSION = MACHINE.variant(
    "embedded_run_by_session",
    first=(R(ForceClearRequested, at=HELD, data=emptied, emit=(CancelRun(now.handle, CancelReason.SUPERSEDED),),
             name="ForceClearRequested/by session"),),
)  # fmt: skip
KEEPS_OLDER = MACHINE.variant("embedded_run_keeps_older", drop=("RegisterRequested/older generation",))
HEARD = MACHINE.variant(
    "embedded_run_heard",
    first=(
        R(answer, when=(answer.handle == now.handle) & (now.handle != NOBODY), emit=(Deliver(answer.handle),), name="AnswerOffered/heard"),
    ),
)

SPEC = Spec(
    machine=MACHINE,
    requirements=requirements("R-ATT-16", "R-ATT-24", "R-ATT-25", "R-ATT-28"),
    properties=with_harms((*PROPERTIES, *EXACTLY)),
    variants=(
        Variant(machine=BY_SESSION, violates={REPLACEMENT: 2},
                about="E0 and E1: a forced clear by session id hits whatever run is registered by then (B11, openclaw/openclaw#104654)."),
        Variant(machine=KEEPS_OLDER, violates={OLDER: 1}, about="A registry that does not ask for the generation keeps a run that is "
                  "over."),
        Variant(machine=HEARD, violates={SUPPRESSED: 3}, about="openclaw/openclaw#113751: an abandoned run is heard after all."),
    ),
)  # fmt: skip
