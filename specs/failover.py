"""What must hold of what follows the end of an attempt, for every ending, every error, and any number of profiles, models and retries."""

from __future__ import annotations

import attrs
from attrs import evolve, frozen

from turnproof.machines.attempt_terminal import EXTERNAL, FAILED, OK, TIMEOUT_IDLE, TIMEOUT_RUN_BUDGET, TIMEOUTS, During
from turnproof.machines.embedded_attempt_words import Stage
from turnproof.machines.failover import MACHINE, OVER, READY, RUNNING, R, Table, begins, end, now, rows
from turnproof.machines.failover_words import (
    Action,
    AttemptBegan,
    AttemptEnded,
    BeginAttempt,
    Decided,
    Failover,
    Failure,
    How,
    LetRun,
    ProcessDied,
    Reason,
    ResumeRequested,
)
from turnproof.machines.kernel import NOBODY, implies, named, not_, one_of, symbol
from turnproof.specs.embedded_attempt_requirements import requirements
from turnproof.specs.failover_exactly import EXACTLY
from turnproof.specs.harms import with_harms
from turnproof.specs.language import (
    Always,
    Fair,
    History,
    LeadsTo,
    Property,
    Sometimes,
    Spec,
    Step,
    Variant,
    after,
    count,
    emits,
    ignored,
    on,
    refuses,
    taken,
)

then = after(Failover)

# Written here again on purpose: a slip in the machine's own definitions must not move the properties with it.
reported = named("the turn's attempt reports", on(AttemptEnded) & (now.phase == RUNNING) & (end.attempt == now.attempt)
    & (end.attempt != NOBODY))  # fmt: skip
stopped = named("stopped from outside", one_of(end.ending, *EXTERNAL))
timed_out = named("timed out", one_of(end.ending, *TIMEOUTS))
tool_or_compaction = named("timed out in a tool or a compaction",
    timed_out & ((end.during == During.COMPACTION) | ((end.during == During.TOOL_EXECUTION) & (end.ending != TIMEOUT_IDLE))))  # fmt: skip
quiet_model = named("a model call was silent, and nothing else is known",
    (end.ending == TIMEOUT_IDLE) & one_of(end.during, During.PROMPT, During.TOOL_EXECUTION)
    & one_of(now.failure, Failure.NONE, Failure.TIMEOUT))  # fmt: skip
left = now.retries + now.profiles + now.models


@frozen
class Past:
    """What the turn's attempts reported."""

    changed: bool = False
    """One of them may have changed the world."""
    died: bool = False
    """One of them died with its process."""


past = symbol(Past)
PAST = History(
    Past(),
    past,
    (
        (reported & not_(end.replay_safe), evolve(past, changed=True)),
        (on(ProcessDied) & (now.phase == RUNNING), evolve(past, died=True)),
    ),
)

VETO = "no stage tries again once something may have changed the world"
PROMPT_ASKS = "a timeout that surfaces as a prompt error is tried again only if the attempt is replay-safe"
TOOL_ENDS = "a timeout in a tool or a compaction is never tried again"
EXTERNAL_SURFACES = "an external abort surfaces at every stage"
NEVER_AGAIN = "a turn goes on only while nothing may have changed the world"
IDLE_TRIES = "a silent model call leads to a retry, a rotation or a fallback while one is left"
ONE_AT_A_TIME = "a second attempt is refused while one is on"
STARTED = Fair("an attempt that is due begins", now.phase == READY, on(AttemptBegan, ProcessDied) & taken())
ENDED = Fair("an attempt that is on ends", now.phase == RUNNING, (on(AttemptEnded) | on(ProcessDied)) & taken())
TURN_ENDS = "a turn ends"

PROPERTIES: tuple[Property, ...] = (
    Step("a report is decided once, and says why", requirements="R-ATT-20", holds=
         implies(reported, (count(Decided) == 1) & one_of(then.phase, READY, OVER) & taken())),
    Step("what is tried again begins an attempt, and nothing else does", requirements="R-ATT-20", holds=
         implies(reported, emits(BeginAttempt) == (then.phase == READY))
         & implies(reported & emits(Decided, action=Action.CONTINUE_NORMAL), then.phase == OVER)),
    Step(TOOL_ENDS, implies(reported & tool_or_compaction, not_(emits(BeginAttempt)) & (then.phase == OVER)), requirements="R-ATT-11",
         harm="a command that is still running is started a second time"),
    Step("a timeout in a tool ends with the timeout payload", requirements="R-ATT-11", holds=
         implies(reported & tool_or_compaction & not_(stopped) & (end.stage == Stage.ASSISTANT) & not_(now.at_limit)
                 & (now.failure == Failure.NONE),
                 emits(Decided, action=Action.CONTINUE_NORMAL))),
    Step(VETO, implies(reported & not_(end.replay_safe), not_(emits(BeginAttempt))), requirements=("R-ATT-12", "R-ATT-14"),
         harm="the turn is tried again, and the command runs twice"),
    Step(PROMPT_ASKS, requirements="R-ATT-13", holds=
         implies(reported & (end.stage == Stage.PROMPT) & (timed_out | (now.failure == Failure.TIMEOUT)) & emits(BeginAttempt),
                 end.replay_safe), harm="a fallback repeats what a timed-out prompt had already done"),
    Sometimes("a timed-out prompt of the host's transport falls back", requirements="R-ATT-13", holds=
        reported & (end.stage == Stage.PROMPT) & (now.failure == Failure.TIMEOUT) & not_(now.harness_owned)
        & emits(BeginAttempt, how=How.NEXT_MODEL)),
    Sometimes("a timed-out prompt of a harness falls back", requirements="R-ATT-13", holds=
        reported & (end.stage == Stage.PROMPT) & (now.failure == Failure.TIMEOUT) & now.harness_owned
        & emits(BeginAttempt, how=How.NEXT_MODEL)),
    Step(EXTERNAL_SURFACES, requirements=("R-ATT-7", "R-ATT-14"), holds=
         implies(reported & stopped, emits(Decided, action=Action.SURFACE_ERROR, reason=Reason.EXTERNAL_ABORT) & not_(emits(BeginAttempt))),
         harm="a turn somebody stopped goes on with another model"),
    Always(NEVER_AGAIN, implies(past.changed | past.died, one_of(now.phase, OVER)), requirements="R-ATT-14",
           harm="a retry, a fallback or a resume makes a side effect happen a second time"),
    refuses("a turn that may have changed the world, or has its answer, is not resumed", ResumeRequested,
            past.changed | past.died | ((now.phase == OVER) & not_(now.resumable)), requirements="R-ATT-14",
            harm="a resume repeats what the turn had already done"),
    Step(IDLE_TRIES, requirements="R-ATT-6", holds=
         implies(reported & quiet_model & end.replay_safe & not_(now.harness_owned) & (end.stage == Stage.ASSISTANT) & not_(now.at_limit)
                 & ((now.profiles > 0) | (now.models > 0)), emits(BeginAttempt)),
         harm="the configured fallback is never asked (openclaw/openclaw#76877)"),
    Step("a retry is used only for an ordinary timeout", requirements="R-ATT-20", holds=
         implies(reported & emits(BeginAttempt, how=How.SAME_MODEL), timed_out & (end.during == During.PROMPT)
                 & one_of(now.failure, Failure.NONE, Failure.TIMEOUT) & (then.retries < now.retries))),
    Step("each try uses up what it tries", requirements="R-ATT-20", holds=
         implies(reported & emits(BeginAttempt), then.retries + then.profiles + then.models + 1 == left)
         & implies(reported & not_(emits(BeginAttempt)), then.retries + then.profiles + then.models == left),
         harm="a turn is tried again for ever"),
    refuses(ONE_AT_A_TIME, AttemptBegan, now.phase == RUNNING, requirements="R-ATT-14", harm="two attempts of one turn answer"),
    Step("an attempt runs only when one is due", requirements="R-ATT-14", holds=
         implies(emits(LetRun), (now.phase == READY) & (then.phase == RUNNING))),
    Step("a run that used up its time is not tried again before the retry limit, but for a bad certificate", requirements="R-ATT-20", holds=
         implies(reported & not_(now.at_limit) & (end.ending == TIMEOUT_RUN_BUDGET) & (now.failure != Failure.TLS_CERTIFICATE),
                 not_(emits(BeginAttempt))),
         harm="a turn that had all its time is given it again"),
    Step("what an attempt says after its end decides nothing", requirements="R-ATT-14", holds=
         implies(on(AttemptEnded) & ((now.phase != RUNNING) | (end.attempt != now.attempt)), ignored())),
    LeadsTo(TURN_ENDS, now.phase == RUNNING, now.phase == OVER, requirements="R-ATT-20", fairness=(STARTED, ENDED)),
    *(Sometimes(f"a turn is tried again: {how.value}", emits(BeginAttempt, how=how), requirements="R-ATT-20") for how in How),
    *(Sometimes(f"it is decided: {action.value}", emits(Decided, action=action), requirements="R-ATT-20") for action in Action),
    Sometimes("an answer is the answer", reported & (end.ending == OK) & emits(Decided, action=Action.CONTINUE_NORMAL, reason=Reason.NONE),
        requirements="R-ATT-20"),
    Sometimes("a failure rotates", reported & (end.ending == FAILED) & emits(BeginAttempt, how=How.NEXT_PROFILE), requirements="R-ATT-20"),
    Sometimes("a turn is resumed", on(ResumeRequested) & taken(), requirements="R-ATT-14"),
)  # fmt: skip

JULY = attrs.evolve(MACHINE, name="failover_july", rows=rows(Table.JULY))
SEPTEMBER = attrs.evolve(MACHINE, name="failover_september", rows=rows(Table.SEPTEMBER))
NO_IDLE = MACHINE.variant(
    "failover_without_idle",
    first=(R(end, at=RUNNING, when=(end.ending == TIMEOUT_IDLE) & (end.stage == Stage.ASSISTANT), to=OVER, data=evolve(now, attempt=NOBODY),
             emit=(Decided(Action.CONTINUE_NORMAL, Reason.NONE),), name="AttemptEnded/idle not passed"),),
)  # fmt: skip
TWO_AT_ONCE = MACHINE.variant(
    "failover_two_at_once",
    replace={"AttemptBegan/running": R(begins, at=RUNNING, data=evolve(now, attempt=begins.attempt), emit=(LetRun(begins.attempt),),
                                       name="AttemptBegan/running")},
)  # fmt: skip
RESUMES = MACHINE.variant(
    "failover_resumes_anything",
    first=(R(ResumeRequested, at=OVER, to=READY, emit=(BeginAttempt(How.RESUME),), name="ResumeRequested/anything"),),
)

SPEC = Spec(
    machine=MACHINE,
    requirements=requirements("R-ATT-6", "R-ATT-7", "R-ATT-11", "R-ATT-12", "R-ATT-13", "R-ATT-14", "R-ATT-20"),
    properties=with_harms((*PROPERTIES, *EXACTLY)),
    histories=(PAST,),
    variants=(
        Variant(machine=JULY, violates={VETO: 3, PROMPT_ASKS: 3, TOOL_ENDS: 3, EXTERNAL_SURFACES: 4, NEVER_AGAIN: 3},
                about="July 2026 (@01379ada): the idle flag beats the tool flag, and the stage prompt does not ask whether the attempt is "
                      "replay-safe unless a harness owns the transport."),
        Variant(machine=SEPTEMBER, violates={VETO: 3, PROMPT_ASKS: 3, TOOL_ENDS: 3, EXTERNAL_SURFACES: 4, NEVER_AGAIN: 3},
                about="September 2026, the newest table read: both hazards are still there."),
        Variant(machine=NO_IDLE, violates={IDLE_TRIES: 3},
                about="openclaw/openclaw#76877, #80449: a caller that does not pass the idle flag loses the fallback."),
        Variant(machine=TWO_AT_ONCE, violates={ONE_AT_A_TIME: 3},
                about="openclaw/openclaw#111407: a client's deadline begins a second run beside the first."),
        Variant(machine=RESUMES, violates={NEVER_AGAIN: 4},
                about="crewAIInc/crewAI#5802 and others: a resume repeats side effects that had already happened."),
    ),
    tokens=1,
    counter=1,
)  # fmt: skip
