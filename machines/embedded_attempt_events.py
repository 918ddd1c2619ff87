"""What happens to an embedded attempt, and what its shell must do. Vocabulary and state are in ``embedded_attempt_words``."""

from __future__ import annotations

from typing import Annotated

from attrs import frozen

from turnproof.machines.attempt_terminal import During, Ending
from turnproof.machines.embedded_attempt_words import Cause, Side, Stage, Stall, ToolOutcome
from turnproof.machines.kernel import Opaque, StartTimer, StopTimer, Token
from turnproof.machines.reply_operation_words import CancelReason

# ── events: what happened ──


@frozen
class Prepared:
    """Session, tools and transport are ready. ``watch_idle``: the provider has an idle limit."""

    watch_idle: bool


@frozen
class PreparationFailed:
    """It could not be prepared."""


@frozen
class ModelCallStarted:
    """The provider's stream function was invoked."""


@frozen
class ModelCallEnded:
    """A provider request ended, failed or was dropped."""


@frozen
class ProviderAwaited:
    """The loop waits for the next event of the provider."""


@frozen
class ProviderEventArrived:
    """The provider said something."""


@frozen
class RequestActive:
    """Low-level activity of the request: bytes, not yet an event."""


@frozen
class ToolRequested:
    """A tool call is about to run: sent before anything is flushed or started, so that no call runs uncounted."""

    call: Annotated[str, Token]
    side: Side
    tool: Annotated[str, Opaque] = ""


@frozen
class ToolEnded:
    """A tool call that was counted is over. ``side`` is what was said when it was asked for."""

    side: Side
    outcome: ToolOutcome


@frozen
class CompactionBegan:
    """The conversation is being compacted inside the attempt."""


@frozen
class CompactionEnded:
    """Compaction is over, well or badly."""


@frozen
class HealthyWaitBegan:
    """It waits for a person, an approval, or something the runtime owns, until ``until_ms`` on the shell's clock (0: the default)."""

    until_ms: Annotated[int, Opaque] = 0


@frozen
class HealthyWaitEnded:
    """The person, or the runtime, has answered."""


@frozen
class ConsentChanged:
    """A stretch that must not be cut began or ended."""

    consents: bool


@frozen
class AnswerCompleted:
    """The final text is complete."""


@frozen
class AttemptFailed:
    """An error ended the run, or came to light while it unwinds. ``at_prompt``: out of the prompt itself."""

    at_prompt: bool


@frozen
class YieldRequested:
    """The turn ends on purpose."""


@frozen
class RuntimeAborted:
    """A hook or a check of the runtime stops the run."""


@frozen
class CallerAborted:
    """The signal of the caller, or of the reply, fired. ``timed_out``: its reason has the shape of a timeout."""

    timed_out: bool


@frozen
class CancelRequested:
    """Somebody outside cancels through the handle; the reason is the one the reply operation was given, unchanged."""

    reason: CancelReason


@frozen
class RunBudgetSpent:
    """``run_budget`` says that the run used up its time, graces included."""


@frozen
class TimeoutObserved:
    """At settlement a wait for a tool or a compaction took too long."""

    compaction: bool


@frozen
class LoopReturned:
    """The attempt's loop came back: nothing of it runs any more but tools that ignored their signal."""


@frozen
class IdleExpired:
    """The idle timer fired."""


@frozen
class WaitExpired:
    """The declared wait is past its deadline."""


@frozen
class UnwindExpired:
    """The loop did not come back after the interruption."""


@frozen
class FinishExpired:
    """What follows the answer did not come back."""


Event = (
    Prepared | PreparationFailed | ModelCallStarted | ModelCallEnded | ProviderAwaited | ProviderEventArrived | RequestActive
    | ToolRequested | ToolEnded | CompactionBegan | CompactionEnded | HealthyWaitBegan | HealthyWaitEnded | ConsentChanged
    | AnswerCompleted | AttemptFailed | YieldRequested | RuntimeAborted | CallerAborted | CancelRequested | RunBudgetSpent
    | TimeoutObserved | LoopReturned | IdleExpired | WaitExpired | UnwindExpired | FinishExpired
)  # fmt: skip


# ── effects: what the shell must do ──


@frozen
class AttachToReply:
    """Become the backend of the reply operation."""


@frozen
class RegisterRun:
    """Put the handle into the registry of runs."""


@frozen
class StartBudget:
    """Let the run's time begin."""


@frozen
class RunTool:
    """The call is counted: flush what is pending, then run it."""

    call: Annotated[str, Token]


@frozen
class DeliverAnswer:
    """Hand the final text to the registry of runs, which delivers it unless the run was abandoned."""


@frozen
class ReportProgress:
    """Tell the watchdog that the run made semantic progress."""


@frozen
class ReportConsent:
    """Tell the reply operation what the abortability probe answers now."""

    consents: bool


@frozen
class ReportWait:
    """Tell the reply operation that the attempt waits healthily, or no longer does."""

    waits: bool


@frozen
class NotifyTimedOut:
    """Tell listeners that the attempt timed out."""


@frozen
class AbortController:
    """Abort the attempt's own controller: provider request and tools see it."""

    cause: Cause


@frozen
class CancelCompaction:
    """Cancel the compaction in flight."""


@frozen
class AbortSession:
    """Ask the session to abort."""


@frozen
class MarkAbandoned:
    """Mark the run as abandoned: whatever it still says is not delivered."""


@frozen
class WarnStillStreaming:
    """Log that the loop has not come back and is no longer waited for."""


@frozen
class Unsubscribe:
    """Stop listening to session and tools."""


@frozen
class DetachFromReply:
    """Stop being the reply's backend. The reply's slot is not the attempt's business."""


@frozen
class ClearRun:
    """Take this very handle out of the registry of runs."""


@frozen
class DropPrepared:
    """Clean up what was prepared."""


@frozen
class StopBudget:
    """The run's time no longer matters."""


@frozen
class ReportOutcome:
    """Tell the outer loop how the attempt ended, and whether running the turn again could repeat a side effect."""

    stage: Stage
    ending: Ending
    during: During
    stall: Stall
    replay_safe: bool
    tool: Annotated[str, Opaque]


Effect = (
    AttachToReply | RegisterRun | StartBudget | RunTool | DeliverAnswer | ReportProgress | ReportConsent | ReportWait | NotifyTimedOut
    | AbortController | CancelCompaction | AbortSession | MarkAbandoned | WarnStillStreaming | Unsubscribe | DetachFromReply | ClearRun
    | DropPrepared | StopBudget | ReportOutcome | StartTimer | StopTimer
)  # fmt: skip
