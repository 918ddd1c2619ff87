"""The designs of the embedded attempt that shipped, or were proposed, and were wrong. Each must fail the property it broke.

Eras and bugs after OpenClaw's public history: E0 and E1 (the reason is dropped), the proposals P1 (``run/stuck-recovery-abort.ts``
@1b49b646) and P2 (``run/attempt-abort.ts`` @04975666) of openclaw/openclaw#93655, and the plausible mistakes beside them.
"""

from __future__ import annotations

from attrs import evolve

from turnproof.machines.attempt_terminal import ABORTED_EXTERNAL, TIMEOUT_EXTERNAL, TIMEOUT_IDLE, TIMEOUTS, During
from turnproof.machines.embedded_attempt import (
    DONE,
    LIVE,
    MACHINE,
    PREPARING,
    SETTLING,
    R,
    cancel,
    cause,
    give_back,
    now,
    run_abort,
    settling,
    stuck,
    tool,
)
from turnproof.machines.embedded_attempt_events import (
    AbortController,
    AbortSession,
    AnswerCompleted,
    CallerAborted,
    CancelRequested,
    DeliverAnswer,
    IdleExpired,
    ModelCallEnded,
    RunTool,
)
from turnproof.machines.embedded_attempt_words import Cause, Side, Stall
from turnproof.machines.kernel import choose, not_, one_of
from turnproof.specs.language import Variant

TYPED = "an accepted recovery gives a class in the step that ends the attempt"
TOOL_FIRST = "an active side-effecting tool decides the class of a recovery, whatever else is active"
COMPACTION_NEXT = "a recovery that finds compaction and no side-effecting tool is a compaction timeout"
MODEL_NEXT = "a recovery that finds only a model call is a model idle timeout"
UNKNOWN_SURFACES = "a recovery that finds nothing known is an external abort"
IDLE_NEEDS_CALL = "no recovery is a model idle timeout unless a request really lives"
REFUSES = "an attempt that is over, or must not be cut, refuses recovery"
SHOWN = "the user's abort is given as cause only where the user aborted"
FIRST_WINS = "a second abort has no effect, and changes nothing of the ending"
LATE_DROPPED = "only a live attempt delivers an answer"
TOOL_TIME = "the idle timer ends no attempt while a tool runs"
COUNTED = "every call that runs was counted as what it is, unknown as side-effecting"
SAFE_IS_TRUE = "replay-safe is said only where nothing changed, nothing can still change, and nothing was answered"
STOPPED_TOOLS = "no tool call begins once the attempt is not live"
DROPS = "an attempt that ends before it was live drops what was prepared"

E1_REASON_LOST = MACHINE.variant(
    "embedded_attempt_e1",
    first=(R(cancel, at=LIVE, to=SETTLING, data=settling(ABORTED_EXTERNAL), name="CancelRequested/e1", emit=run_abort(Cause.USER_ABORT)),),
)

BLANKET_IDLE = MACHINE.variant(
    "embedded_attempt_blanket_idle",
    first=(
        R(cancel, at=LIVE, when=stuck, to=SETTLING, emit=run_abort(Cause.TIMEOUT, timeout=True), name="CancelRequested/blanket idle",
          data=settling(TIMEOUT_IDLE, During.PROMPT, timeout=True, stall=Stall.MODEL_IDLE_TIMEOUT)),
    ),
)  # fmt: skip

P1_STARTED = MACHINE.variant(
    "embedded_attempt_p1",
    replace={
        # "A model call was started" is sticky: the count never goes back to none.
        "ModelCallEnded/last": R(ModelCallEnded, at=LIVE, when=now.model_calls == 1, data=evolve(now, waiting=False),
                                 name="ModelCallEnded/last"),
    },
    drop=("CancelRequested/stuck in compaction",),
)  # fmt: skip

P2_NO_COMPACTION = MACHINE.variant("embedded_attempt_p2", drop=("CancelRequested/stuck in compaction",))

UNGUARDED = MACHINE.variant("embedded_attempt_unguarded", drop=("CancelRequested/protected",))

TWICE = MACHINE.variant(
    "embedded_attempt_double_abort",
    first=(
        R(cancel, at=SETTLING, when=not_(stuck), emit=(AbortController(cause), AbortSession()), name="CancelRequested/again",
          data=evolve(now, ending=choose(one_of(now.ending, *TIMEOUTS), TIMEOUT_EXTERNAL, ABORTED_EXTERNAL))),
    ),
)  # fmt: skip

LATE_ANSWER = MACHINE.variant(
    "embedded_attempt_late_answer",
    first=(R(AnswerCompleted, at=SETTLING, emit=(DeliverAnswer(),), name="AnswerCompleted/late"),),
)

IDLE_IN_TOOL_TIME = MACHINE.variant(
    "embedded_attempt_idle_in_tool_time",
    first=(
        R(IdleExpired, at=LIVE, when=now.idle_watched & now.waiting, to=SETTLING, name="IdleExpired/in tool time",
          data=settling(TIMEOUT_IDLE, choose((now.safe_tools > 0) | (now.risky_tools > 0), During.TOOL_EXECUTION, During.PROMPT),
          timeout=True),
          emit=run_abort(Cause.TIMEOUT, timeout=True, leave=give_back)),
    ),
)  # fmt: skip

COUNTED_LATE = MACHINE.variant(
    "embedded_attempt_counted_late",
    replace={"ToolRequested/side-effecting": R(tool, at=LIVE, emit=(RunTool(tool.call),), name="ToolRequested/side-effecting")},
)

UNKNOWN_IS_SAFE = MACHINE.variant(
    "embedded_attempt_unknown_is_safe",
    first=(
        R(
            tool,
            at=LIVE,
            when=tool.side == Side.UNKNOWN,
            data=evolve(now, safe_tools=now.safe_tools + 1),
            emit=(RunTool(tool.call),),
            name="ToolRequested/unknown",
        ),
    ),
)

TOOL_AFTER_STOP = MACHINE.variant(
    "embedded_attempt_tool_after_stop",
    first=(R(tool, at=SETTLING, emit=(RunTool(tool.call),), name="ToolRequested/after the stop"),),
)

SILENT_PREPARATION = MACHINE.variant(
    "embedded_attempt_silent_preparation",
    first=tuple(
        R(event, at=PREPARING, to=DONE, data=evolve(now, ending=ABORTED_EXTERNAL), name=f"{event.__name__}/silent")
        for event in (CancelRequested, CallerAborted)
    ),
)


VARIANTS: tuple[Variant, ...] = (
    Variant(machine=E1_REASON_LOST, violates={TYPED: 2, MODEL_NEXT: 3, SHOWN: 2},
            about="E0 and E1 (April to July 2026): the reason is dropped between drain and attempt, so a watchdog's cancel ends as an "
                  "external abort: the policy surfaces it, no fallback is asked, and the user is told they aborted (B1)."),
    Variant(machine=BLANKET_IDLE, violates={TOOL_FIRST: 3, UNKNOWN_SURFACES: 2, IDLE_NEEDS_CALL: 2},
            about="The rejected idea 'stuck means idle': a turn whose command still runs is tried again, and the command runs twice (B2)."),
    Variant(machine=P1_STARTED, violates={IDLE_NEEDS_CALL: 4, UNKNOWN_SURFACES: 4, COMPACTION_NEXT: 3},
            about="P1 (proposal, June 2026): the classifier asks whether a model call was started, not whether one is active; a run that "
                  "hangs after its model call is replayed (B3). It knows no compaction either."),
    Variant(machine=P2_NO_COMPACTION, violates={COMPACTION_NEXT: 3},
            about="P2 (proposal, July 2026): active instead of started, but a stall in compaction counts as whatever else is active."),
    Variant(machine=UNGUARDED, violates={REFUSES: 3},
            about="A recovery path of its own that does not ask the abortability probe kills an attempt that must not be cut."),
    Variant(machine=TWICE, violates={FIRST_WINS: 3},
            about="The older attempt: every run-abort runs the whole body, so a cancel after an idle timeout repeats the effects and "
                  "erases "
                  "the idle flag, and with it the right to a fallback (B16)."),
    Variant(machine=LATE_ANSWER, violates={LATE_DROPPED: 3},
            about="openclaw/openclaw#113751: the orphaned primary answers after the fallback did."),
    Variant(machine=IDLE_IN_TOOL_TIME, violates={TOOL_TIME: 4},
            about="Hazard 1 of OpenClaw's main: the idle timer goes on while a tool runs, and its flag beats the tool's."),
    Variant(machine=COUNTED_LATE, violates={COUNTED: 2, SAFE_IS_TRUE: 3},
            about="A call is let run before it is counted (OpenClaw counts after a flush): in between the attempt calls itself "
                  "replay-safe."),
    Variant(machine=UNKNOWN_IS_SAFE, violates={COUNTED: 2, SAFE_IS_TRUE: 3},
            about="A tool nobody knows counts as safe: the turn is tried again, and whatever it does happens twice."),
    Variant(machine=TOOL_AFTER_STOP, violates={STOPPED_TOOLS: 3},
            about="An abandoned attempt still starts the tools its last message asked for, beside the fallback."),
    Variant(machine=SILENT_PREPARATION, violates={DROPS: 1},
            about="pingdotgg/t3code#7168: an interrupt during preparation emits no terminal event."),
)  # fmt: skip
