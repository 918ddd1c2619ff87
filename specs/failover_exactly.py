"""What each event of a turn must record and tell, exactly; the end of an attempt by the reference's tables, stage by stage."""

from __future__ import annotations

from collections.abc import Mapping

from turnproof.machines.attempt_terminal import During, Ending
from turnproof.machines.embedded_attempt_words import Stage
from turnproof.machines.failover import IDLE, MACHINE, OVER, READY, RUNNING, begins, classified, end, now, turn
from turnproof.machines.failover_words import (
    Action,
    AttemptBegan,
    AttemptEnded,
    BeginAttempt,
    Decided,
    ErrorClassified,
    Failure,
    How,
    LetRun,
    ProcessDied,
    Reason,
    ResumeRequested,
    RetryLimitReached,
    TurnBegan,
)
from turnproof.machines.kernel import NOBODY, any_of, choose, not_, one_of
from turnproof.specs.exactly import Case, Writer
from turnproof.specs.language import Property

write = Writer(MACHINE)
F, E, W = Failure, Ending, Reason

# ── the terms of the reference ──

external = one_of(end.ending, E.ABORTED_EXTERNAL, E.TIMEOUT_EXTERNAL)
timeout = one_of(end.ending, E.TIMEOUT_RUNTIME, E.TIMEOUT_IDLE, E.TIMEOUT_RUN_BUDGET, E.TIMEOUT_EXTERNAL)
idle, budget = end.ending == E.TIMEOUT_IDLE, end.ending == E.TIMEOUT_RUN_BUDGET
aborted = timeout | one_of(end.ending, E.ABORTED_RUNTIME, E.ABORTED_EXTERNAL)
to = idle | (timeout & (end.during == During.PROMPT))
elsewhere = timeout & ((end.during == During.COMPACTION) | ((end.during == During.TOOL_EXECUTION) & not_(idle)))
OWN = (F.FORMAT, F.FORMAT_RETRYABLE, F.SESSION_EXPIRED, F.REFUSAL, F.REFUSAL_SHOWN, F.TLS_CERTIFICATE, F.OVERLOADED)
FAILOVER = (F.UNKNOWN, F.TIMEOUT, *OWN)
ROTATABLE = tuple(f for f in FAILOVER if f not in (F.FORMAT, F.TIMEOUT, F.TLS_CERTIFICATE))
AT_LIMIT = (F.UNKNOWN, F.REFUSAL, F.REFUSAL_SHOWN, F.TLS_CERTIFICATE, F.OVERLOADED)
own, failover = one_of(now.failure, *OWN), one_of(now.failure, *FAILOVER)
unsafe = not_(end.replay_safe)
retry = timeout & (end.during == During.PROMPT) & one_of(now.failure, F.NONE, F.TIMEOUT) & (now.retries > 0)
profile, model = now.profiles > 0, now.models > 0
sr = (
    not_(budget)
    & (now.failure != F.FORMAT)
    & not_(now.harness_owned & to & not_(own))
    & any_of(to, failover & not_(aborted))
)  # fmt: skip

reason: Reason = W.NONE
for _failure in (f for f in F if f is not F.NONE):
    _named = {F.FORMAT_RETRYABLE: W.FORMAT, F.REFUSAL_SHOWN: W.REFUSAL}.get(_failure) or W[_failure.name]
    reason = choose(now.failure == _failure, _named, reason)
to_try = choose(own, reason, choose(to, W.TIMEOUT, reason))
not_to = choose(budget, W.RUN_BUDGET, choose(elsewhere, W.TOOL_OR_COMPACTION, reason))

# ── what is decided ──

Rung = tuple[bool, Mapping[str, object], tuple[object, ...]]
NEXT: Mapping[str, object] = {"phase": READY, "attempt": NOBODY, "failure": F.NONE}


def again(when: bool, how: How, why: Reason, action: Action | None = None) -> Rung:
    """The turn is tried again, and what is tried is used up."""
    used = {How.SAME_MODEL: "retries", How.NEXT_PROFILE: "profiles", How.NEXT_MODEL: "models"}[how]
    decided = action or (Action.FALLBACK_MODEL if how is How.NEXT_MODEL else Action.ROTATE_PROFILE)
    return when, {**NEXT, used: getattr(now, used) - 1}, (Decided(decided, why), BeginAttempt(how))


def ends(when: bool, why: Reason, action: Action = Action.SURFACE_ERROR) -> Rung:
    """The turn is over; one that has its answer, or may have changed the world, is not resumed."""
    resumable = False if action is Action.CONTINUE_NORMAL else end.replay_safe
    return when, {**NEXT, "phase": OVER, "at_limit": False, "resumable": resumable}, (Decided(action, why),)


def stage(here: bool, *rungs: Rung) -> tuple[Case, ...]:
    """The table of one stage."""
    mine = (now.phase == RUNNING) & (end.attempt == now.attempt) & (end.attempt != NOBODY) & here
    return write.ladder(AttemptEnded, *((mine & when, changes, emit) for when, changes, emit in rungs))


limit_falls = model & one_of(now.failure, *AT_LIMIT)
LIMIT = stage(
    now.at_limit,
    ends(external, W.EXTERNAL_ABORT),
    ends(limit_falls & unsafe, W.NOT_REPLAY_SAFE),
    ends(limit_falls & elsewhere, W.TOOL_OR_COMPACTION),
    again(limit_falls, How.NEXT_MODEL, reason),
    ends(now.at_limit, not_to, Action.RETURN_ERROR_PAYLOAD),
)
rotates, falls = profile & one_of(now.failure, *ROTATABLE), model & failover & (now.failure != F.FORMAT)
harness = now.harness_owned & (now.failure == F.TIMEOUT)
PROMPT = stage(
    not_(now.at_limit) & (end.stage == Stage.PROMPT),
    ends(external, W.EXTERNAL_ABORT),
    ends(budget, W.RUN_BUDGET),
    ends(now.failure == F.CLI_STOPPED, W.CLI_STOPPED),
    ends(unsafe & (rotates | falls | retry), W.NOT_REPLAY_SAFE),
    ends(elsewhere & (rotates | falls), W.TOOL_OR_COMPACTION),
    again(harness & model, How.NEXT_MODEL, W.TIMEOUT),
    ends(harness, W.TIMEOUT),
    again(rotates, How.NEXT_PROFILE, reason),
    again(falls, How.NEXT_MODEL, reason),
    again(retry, How.SAME_MODEL, W.TIMEOUT, Action.SURFACE_ERROR),
    ends(end.stage == Stage.PROMPT, not_to),
)
tls = now.failure == F.TLS_CERTIFICATE
ASSISTANT = stage(
    not_(now.at_limit) & (end.stage == Stage.ASSISTANT),
    ends(external, W.EXTERNAL_ABORT),
    ends(now.failure == F.FORMAT, W.FORMAT),
    ends(unsafe & tls & model, W.NOT_REPLAY_SAFE, Action.CONTINUE_NORMAL),
    ends(unsafe & not_(tls) & sr & (retry | profile | model), W.NOT_REPLAY_SAFE, Action.CONTINUE_NORMAL),
    ends(elsewhere, W.TOOL_OR_COMPACTION, Action.CONTINUE_NORMAL),
    again(tls & model, How.NEXT_MODEL, W.TLS_CERTIFICATE),
    ends(tls, W.TLS_CERTIFICATE),
    again(sr & retry, How.SAME_MODEL, W.TIMEOUT, Action.ROTATE_PROFILE),
    again(sr & profile, How.NEXT_PROFILE, to_try),
    again(sr & model, How.NEXT_MODEL, to_try),
    ends(not_(sr), not_to, Action.CONTINUE_NORMAL),
    ends(sr, choose(failover, reason, W.NOTHING_LEFT)),
)

# ── the turn ──

BEGUN: Mapping[str, object] = {
    "phase": READY, "profiles": turn.profiles, "models": turn.models, "retries": turn.retries, "harness_owned": turn.harness_owned,
}  # fmt: skip
GONE: Mapping[str, object] = {"phase": OVER, "at_limit": False}

EXACTLY: tuple[Property, ...] = (
    write.answers(TurnBegan, write.case(TurnBegan, now.phase == IDLE, BEGUN, BeginAttempt(How.FIRST)), requirements="R-ATT-20",
                  refuses=now.phase != IDLE),
    write.answers(AttemptBegan,
                  write.case(AttemptBegan, (now.phase == READY) & (begins.attempt != NOBODY), {"phase": RUNNING, "attempt": begins.attempt},
                             LetRun(begins.attempt)),
                  requirements="R-ATT-14", refuses=(now.phase != READY) | (begins.attempt == NOBODY)),
    write.answers(ErrorClassified, write.case(ErrorClassified, now.phase == RUNNING, {"failure": classified.failure}),
                  requirements="R-ATT-20"),
    write.answers(RetryLimitReached,
                  write.case(RetryLimitReached, one_of(now.phase, READY, RUNNING) & not_(now.at_limit), {"at_limit": True}),
                  requirements="R-ATT-20"),
    write.answers(ProcessDied,
                  write.case(ProcessDied, now.phase == RUNNING, {**GONE, "attempt": NOBODY, "failure": F.NONE}),
                  write.case(ProcessDied, now.phase == READY, {**GONE, "resumable": True}), requirements="R-ATT-14"),
    write.answers(ResumeRequested,
                  write.case(ResumeRequested, (now.phase == OVER) & now.resumable, {"phase": READY, "resumable": False},
                             BeginAttempt(How.RESUME)),
                  requirements="R-ATT-14", refuses=(now.phase != OVER) | not_(now.resumable)),
    write.answers(AttemptEnded, *LIMIT, *PROMPT, *ASSISTANT,
                  requirements=("R-ATT-6", "R-ATT-7", "R-ATT-11", "R-ATT-12", "R-ATT-13", "R-ATT-20"),
                  harm="a turn is tried again that must not be, or given up though it could be answered"),
    write.ordered("a decision is told before it is carried out", (*LIMIT, *PROMPT, *ASSISTANT), "R-ATT-20"),
)  # fmt: skip
