"""What follows the end of an attempt: the answer stands, or the turn is tried again on the same model, another profile or model, or ends.

What it is. One machine is one turn. It starts attempts one after another, never two at a time; when one reports its end, the first row
that matches decides what follows, and says why. The decision is a value (``Decided``) with its reason.

Which runtime. OpenClaw's failover policy, its stages ``retry_limit``, ``prompt`` and ``assistant`` and the handler around them, at the
newest table read (September 2026); the table of July (@01379ada) and that of September itself are variants in the specification. What
the target adds to September is one rule, in front of every row that tries again: **nothing is tried again once something may have
changed the world**, nor after a timeout of a tool or a compaction.

The data, flowing through. While an attempt is on its error, if there is one, is classified. Then it reports how it ended, at which
stage the error came to light, and whether the turn could be run again without repeating anything. Failure and ending give three
facts: whether it was stopped from outside, whether it timed out in a way that another try may mend, whether the error is one that
failover knows. Those, and what is left to try, pick the row.

What it promises.
  1. Every report is decided, by the first row that matches.
  2. No retry, rotation, fallback or resume after something that may have changed the world; an external abort always surfaces.
  3. A turn has one attempt at a time; what an attempt says after its end decides nothing.

Not modelled: which profile or model is next, back-off between tries, the caps of overload rotations (the shell counts them), empty
answers, and the classification of an error (the shell's).

Rule 1: every decision is a row of ``ROWS``; ``rows(Table.JULY)`` and ``rows(Table.SEPTEMBER)`` are the tables that shipped.
Rule 2: this file knows nothing of clocks, tasks or transports.
"""

from __future__ import annotations

from enum import Enum
from typing import get_args

from attrs import evolve

from turnproof.machines.attempt_terminal import (
    ABORTED_RUNTIME,
    EXTERNAL,
    TIMEOUT_IDLE,
    TIMEOUT_RUN_BUDGET,
    TIMEOUTS,
    During,
)
from turnproof.machines.embedded_attempt_words import Stage
from turnproof.machines.failover_words import (
    Action,
    AttemptBegan,
    AttemptEnded,
    BeginAttempt,
    Decided,
    Effect,
    ErrorClassified,
    Event,
    Failover,
    Failure,
    How,
    LetRun,
    Phase,
    ProcessDied,
    Reason,
    ResumeRequested,
    RetryLimitReached,
    TurnBegan,
)
from turnproof.machines.kernel import NOBODY, Machine, Row, choose, named, not_, one_of, symbol

IDLE, READY, RUNNING, OVER = Phase
R = Row[Failover, Effect]


class Table(Enum):
    """The dated tables, and the one that is verified."""

    JULY = "july"
    """@01379ada."""
    SEPTEMBER = "september"
    """The newest read; its commit is not known."""
    TARGET = "target"


# ── symbols ──

now = symbol(Failover)
turn, begins, classified, end = symbol(TurnBegan), symbol(AttemptBegan), symbol(ErrorClassified), symbol(AttemptEnded)

at_limit = named("stage retry_limit", now.at_limit)
at_prompt = named("stage prompt", end.stage == Stage.PROMPT)
external = named("stopped from outside", one_of(end.ending, *EXTERNAL))
timed_out = named("timed out", one_of(end.ending, *TIMEOUTS))
over_budget = named("run budget spent", end.ending == TIMEOUT_RUN_BUDGET)
aborted = named("aborted", one_of(end.ending, ABORTED_RUNTIME, *EXTERNAL, *TIMEOUTS))
"""Every timeout that interrupts is carried out as an abort of the run."""
known = named("an error failover knows", not_(one_of(now.failure, Failure.NONE, Failure.PLAIN, Failure.CLI_STOPPED)))
concrete = named("for a reason of its own",
    not_(one_of(now.failure, Failure.NONE, Failure.PLAIN, Failure.CLI_STOPPED, Failure.UNKNOWN, Failure.TIMEOUT)))  # fmt: skip
refusal = named("a refusal", one_of(now.failure, Failure.REFUSAL, Failure.REFUSAL_SHOWN))
mendable = named("a timeout that another try may mend", timed_out & ((end.ending == TIMEOUT_IDLE) | (end.during == During.PROMPT)))
ordinary = named("an ordinary timeout",
    timed_out & (end.during == During.PROMPT) & one_of(now.failure, Failure.NONE, Failure.TIMEOUT))  # fmt: skip
in_tool = named("timed out in a tool or a compaction",
    timed_out & ((end.during == During.COMPACTION) | ((end.during == During.TOOL_EXECUTION) & (end.ending != TIMEOUT_IDLE))))  # fmt: skip
unsafe = named("not replay-safe", not_(end.replay_safe))
harness_timeout = named("a harness timed out", now.harness_owned & mendable & not_(concrete))
error = (not_(aborted) & known) | mendable
for_another = named("another try may help", not_(over_budget) & (now.failure != Failure.FORMAT) & not_(harness_timeout) & error)
for_another_july = named("another try may help",
    (now.failure != Failure.FORMAT) & not_(refusal) & not_(harness_timeout) & error)  # fmt: skip
retry_left = named("a retry is left", ordinary & (now.retries > 0))
profile_left, model_left = named("a profile is left", now.profiles > 0), named("a model is left", now.models > 0)

reason = choose(now.failure == Failure.TIMEOUT, Reason.TIMEOUT,
         choose(now.failure == Failure.UNKNOWN, Reason.UNKNOWN,
         choose(one_of(now.failure, Failure.FORMAT, Failure.FORMAT_RETRYABLE), Reason.FORMAT,
         choose(now.failure == Failure.SESSION_EXPIRED, Reason.SESSION_EXPIRED,
         choose(one_of(now.failure, Failure.REFUSAL, Failure.REFUSAL_SHOWN), Reason.REFUSAL,
         choose(now.failure == Failure.TLS_CERTIFICATE, Reason.TLS_CERTIFICATE,
         choose(now.failure == Failure.OVERLOADED, Reason.OVERLOADED,
         choose(now.failure == Failure.CLI_STOPPED, Reason.CLI_STOPPED,
         choose(now.failure == Failure.PLAIN, Reason.PLAIN, Reason.NONE)))))))))  # fmt: skip
reason_to_try = choose(concrete, reason, choose(mendable, Reason.TIMEOUT, reason))
reason_not_to = choose(over_budget, Reason.RUN_BUDGET, choose(in_tool, Reason.TOOL_OR_COMPACTION, reason))


# ── what a row decides ──


def again(name: str, when: bool, how: How, why: Reason, action: Action | None = None) -> R:
    """The turn is tried again."""
    decided = action or (Action.FALLBACK_MODEL if how is How.NEXT_MODEL else Action.ROTATE_PROFILE)
    left = evolve(
        now,
        attempt=NOBODY,
        failure=Failure.NONE,
        retries=now.retries - 1 if how is How.SAME_MODEL else now.retries,
        profiles=now.profiles - 1 if how is How.NEXT_PROFILE else now.profiles,
        models=now.models - 1 if how is How.NEXT_MODEL else now.models,
    )
    return R(end, at=RUNNING, when=when, to=READY, data=left, emit=(Decided(decided, why), BeginAttempt(how)), name=name)


def ends(name: str, when: bool | None, action: Action, why: Reason, because: str = "") -> R:
    """The turn is over. It may be resumed only if it has no answer and nothing may have changed the world."""
    resumable: bool = end.replay_safe if action is not Action.CONTINUE_NORMAL else False
    over = evolve(now, attempt=NOBODY, failure=Failure.NONE, at_limit=False, resumable=resumable)
    return R(end, at=RUNNING, when=when, to=OVER, data=over, emit=(Decided(action, why),), name=name, because=because)


def surfaces(name: str, when: bool | None, why: Reason, because: str = "") -> R:
    """The turn ends with its error."""
    return ends(name, when, Action.SURFACE_ERROR, why, because)


def only(condition: bool, *rows: R) -> tuple[R, ...]:
    """The rows, if the table has them."""
    return rows if condition else ()


# ── the three stages: the first row that matches wins ──


def retry_limit(table: Table) -> tuple[R, ...]:
    """Stage ``retry_limit``."""
    target = table is Table.TARGET
    replayable = not_(one_of(now.failure, Failure.TIMEOUT, Failure.FORMAT, Failure.FORMAT_RETRYABLE, Failure.SESSION_EXPIRED))
    wanted = at_limit & model_left & known & replayable
    return (
        *only(target,
            surfaces("retry limit/external", at_limit & external, Reason.EXTERNAL_ABORT),
            surfaces("retry limit/not replay-safe", wanted & unsafe, Reason.NOT_REPLAY_SAFE),
            surfaces("retry limit/tool or compaction", wanted & in_tool, Reason.TOOL_OR_COMPACTION)),
        again("retry limit/fallback", wanted, How.NEXT_MODEL, reason),
        ends("retry limit/payload", at_limit, Action.RETURN_ERROR_PAYLOAD, reason_not_to),
    )  # fmt: skip


def prompt(table: Table) -> tuple[R, ...]:
    """Stage ``prompt``."""
    target, july = table is Table.TARGET, table is Table.JULY
    harness = at_prompt & now.harness_owned & (now.failure == Failure.TIMEOUT)
    final = (now.failure != Failure.FORMAT) & known
    rotates = final & (now.failure != Failure.TIMEOUT)
    if not july:
        rotates = rotates & (now.failure != Failure.TLS_CERTIFICATE)
    wanted = at_prompt & ((profile_left & rotates) | (model_left & final) | retry_left)
    return (
        surfaces("prompt/external", at_prompt & external, Reason.EXTERNAL_ABORT),
        *only(not july,
            surfaces("prompt/run budget", at_prompt & over_budget, Reason.RUN_BUDGET),
            surfaces("prompt/stopped", at_prompt & (now.failure == Failure.CLI_STOPPED), Reason.CLI_STOPPED)),
        *only(target,
            surfaces("prompt/not replay-safe", wanted & unsafe, Reason.NOT_REPLAY_SAFE,
                "Also for a timeout on a transport of the host, which September does not ask (R-ATT-13)."),
            surfaces("prompt/tool or compaction", wanted & in_tool, Reason.TOOL_OR_COMPACTION)),
        again("prompt/harness fallback", harness & model_left if target else harness & model_left & end.replay_safe,
            How.NEXT_MODEL, Reason.TIMEOUT),
        surfaces("prompt/harness", harness, Reason.TIMEOUT),
        again("prompt/rotate", at_prompt & profile_left & rotates, How.NEXT_PROFILE, reason),
        again("prompt/fallback", at_prompt & model_left & final, How.NEXT_MODEL, reason),
        again("prompt/retry", at_prompt & retry_left, How.SAME_MODEL, Reason.TIMEOUT, Action.SURFACE_ERROR),
        surfaces("prompt/surface", at_prompt, reason_not_to),
    )  # fmt: skip


def assistant(table: Table) -> tuple[R, ...]:
    """Stage ``assistant``."""
    target, july = table is Table.TARGET, table is Table.JULY
    wanted = for_another_july if july else for_another
    tls = now.failure == Failure.TLS_CERTIFICATE
    something_left = retry_left | profile_left | model_left
    return (
        surfaces("assistant/external", external, Reason.EXTERNAL_ABORT),
        surfaces("assistant/format", (now.failure == Failure.FORMAT), Reason.FORMAT),
        *only(july,
            surfaces("assistant/refusal shown", (now.failure == Failure.REFUSAL_SHOWN), Reason.REFUSAL),
            again("assistant/refusal", refusal & model_left, How.NEXT_MODEL, Reason.REFUSAL),
            surfaces("assistant/refusal, nothing left", refusal, Reason.REFUSAL)),
        *only(target,
            ends("assistant/not replay-safe", unsafe & ((tls & model_left) | (not_(tls) & wanted & something_left)),
                Action.CONTINUE_NORMAL, Reason.NOT_REPLAY_SAFE,
                "The idle flag does not beat the tool: what may have happened vetoes every try (R-ATT-12)."),
            ends("assistant/tool or compaction", in_tool, Action.CONTINUE_NORMAL, Reason.TOOL_OR_COMPACTION)),
        *only(not july,
            again("assistant/tls fallback", tls & model_left, How.NEXT_MODEL, Reason.TLS_CERTIFICATE),
            surfaces("assistant/tls", tls, Reason.TLS_CERTIFICATE)),
        again("assistant/retry", wanted & retry_left, How.SAME_MODEL, Reason.TIMEOUT, Action.ROTATE_PROFILE),
        again("assistant/rotate", wanted & profile_left, How.NEXT_PROFILE, reason_to_try),
        again("assistant/fallback", wanted & model_left, How.NEXT_MODEL, reason_to_try),
        ends("assistant/continue", not_(wanted), Action.CONTINUE_NORMAL, reason_not_to),
        surfaces("assistant/surface", None, choose(known, reason, Reason.NOTHING_LEFT)),
    )  # fmt: skip


TURN_ROWS: tuple[R, ...] = (
    R(turn, at=IDLE, to=READY, emit=(BeginAttempt(How.FIRST),),
      data=evolve(now, profiles=turn.profiles, models=turn.models, retries=turn.retries, harness_owned=turn.harness_owned)),
    R(TurnBegan, refuse="the turn has begun"),
    R(begins, when=begins.attempt == NOBODY, refuse="an attempt has an identity", name="AttemptBegan/nobody"),
    R(begins, at=READY, to=RUNNING, data=evolve(now, attempt=begins.attempt), emit=(LetRun(begins.attempt),)),
    R(AttemptBegan, at=RUNNING, refuse="an attempt of this turn is on",
      because="openclaw/openclaw#111407: a client's deadline began a second run beside the first."),
    R(AttemptBegan, refuse="no attempt is due"),
    R(classified, at=RUNNING, data=evolve(now, failure=classified.failure), because="The newest classification counts."),
    R(ErrorClassified, ignore="no attempt is on"),
    R(RetryLimitReached, at=(READY, RUNNING), when=not_(now.at_limit), data=evolve(now, at_limit=True)),
    R(RetryLimitReached, ignore="it was reached before, or the turn is not on"),
    R(ProcessDied, at=RUNNING, to=OVER, data=evolve(now, attempt=NOBODY, failure=Failure.NONE, at_limit=False),
      because="What it did is unknown, and unknown is not replay-safe."),
    R(ProcessDied, at=READY, to=OVER, data=evolve(now, at_limit=False, resumable=True)),
    R(ProcessDied, ignore="nothing of the turn runs"),
    R(ResumeRequested, at=OVER, when=now.resumable, to=READY, data=evolve(now, resumable=False), emit=(BeginAttempt(How.RESUME),)),
    R(ResumeRequested, at=OVER, refuse="the turn has its answer, or something may have changed the world"),
    R(ResumeRequested, refuse="the turn is not over"),
    R(end, when=(end.attempt == NOBODY) | (end.attempt != now.attempt), ignore="late: it is not the turn's attempt",
      name="AttemptEnded/late"),
)  # fmt: skip


def rows(table: Table) -> tuple[R, ...]:
    """The whole table of that date."""
    return (*TURN_ROWS, *retry_limit(table), *prompt(table), *assistant(table))


ROWS = rows(Table.TARGET)


# ── the machine ──

MACHINE: Machine[Failover, Event, Effect] = Machine(
    name="failover",
    initial=Failover(),
    now=now,
    events=get_args(Event),
    effects=get_args(Effect),
    rows=ROWS,
)
step = MACHINE.step
