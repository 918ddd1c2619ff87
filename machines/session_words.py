"""The words of an OpenCode session as its adapter sees it: turns, marks, wakes, and what may happen to them.

Which runtime. The OpenCode 2 adapter of t3code (pingdotgg/t3code ``apps/server/src/orchestration-v2/Adapters/OpenCode2AdapterV2.ts``
@3e33a21) beside an OpenCode server (anomalyco/opencode ``packages/core/src/session/run-coordinator.ts`` @074027a). One **session** is
one conversation of the server; it runs at most one **execution** at a time. The events of an execution carry the session's id and
nothing else: neither an execution nor a prompt is named by them. What the inbox does with a prompt is told by the prompt's own id.

A **turn** is what the user sees: a user turn sends one prompt; a continuation sends nothing and takes over a **wake**, an execution the
server began by itself. The **mark** says that a turn was ended here while its run may still be alive there.
"""

from __future__ import annotations

from enum import Enum
from typing import Annotated

from attrs import frozen

from turnproof.machines.kernel import Token

# ── vocabulary ──


class Turn(Enum):
    """Which turn is installed on the session."""

    NONE = "none"
    USER = "user"
    CONTINUATION = "continuation"


class Mark(Enum):
    """The unsettled mark."""

    CLEAR = "clear"
    UNSTARTED = "unstarted"
    """Set while the session was not busy: the marked run had not started."""
    STARTED = "started"
    """The marked run is known to have started, or to be over."""


class End(Enum):
    """How an execution ended."""

    SUCCEEDED = "succeeded"
    INTERRUPTED = "interrupted"
    FAILED = "failed"


class Outcome(Enum):
    """How a turn ended: its one terminal."""

    COMPLETED = "completed"
    INTERRUPTED = "interrupted"
    FAILED = "failed"


class Cause(Enum):
    """What brought a terminal about."""

    EXECUTION = "execution"
    """An end on the stream."""
    REPLAY = "replay"
    """The end that a taken wake holds."""
    STOP = "stop"
    REQUEST = "request"
    """The turn's own request failed, or was never sent."""
    HISTORY = "history"
    """What the server's history says, read at a reconnect or in doubt."""
    STREAM = "stream"
    """The stream is gone for good."""


class Past(Enum):
    """What the history of the server says of one item of the inbox: a prompt, or a report."""

    ABSENT = "absent"
    """It is not in the history: still waiting in the inbox, or never admitted."""
    UNDER_WAY = "under way"
    """It was delivered, and no idle item follows it."""
    SUCCEEDED = "succeeded"
    INTERRUPTED = "interrupted"


class Answer(Enum):
    """What became of a prompt request, as its reply says."""

    OK = "ok"
    REFUSED = "refused"
    """A clear refusal: invalid request, conflict, unauthorized, unknown command or skill."""
    UNCLEAR = "unclear"
    """Any other failure: a 502, a lost connection, a timeout. The server may have taken the prompt, or take it yet."""


# ── events of the stream: they name the session and nothing else ──


@frozen
class ExecutionStarted:
    """``session.execution.started``, or a start that could not be decoded."""


@frozen
class ExecutionEnded:
    """``session.execution.succeeded``, ``interrupted`` or ``failed``, or an end that could not be decoded."""

    how: End


@frozen
class ItemDelivered:
    """``session.inbox.delivered``: the execution under way serves this prompt or report from now on."""

    item: Annotated[str, Token]


@frozen
class PermissionAsked:
    """``permission.asked`` or ``form.created``: the execution under way waits for an answer."""


@frozen
class HistoryRead:
    """``session.active`` and the history were read, no event of the stream being handled meanwhile.

    ``active``: the session is among the active ones. ``past``: what the history says of the item of the turn installed, or of the wake
    that runs where the design knows its item.
    """

    active: bool
    past: Past
    restarted: bool = False
    """The server is not the process it was before: whatever it ran then is lost. False where nobody can tell."""


@frozen
class StreamDied:
    """Five attempts to reconnect failed."""


# ── events of starts, requests and Stops ──


@frozen
class InstallRequested:
    """A start is through its checks: install the user turn of this prompt. ``after``: the start had to ask ``session.active``."""

    prompt: Annotated[str, Token]
    after: bool


@frozen
class StartRefused:
    """A start ends before its turn was installed: an earlier run is still stopping."""

    prompt: Annotated[str, Token]


@frozen
class SessionFoundIdle:
    """A start asked ``session.active``, and the session is not in the answer."""


@frozen
class PromptFoundOver:
    """A start asked ``session.active`` and the history: the run of the prompt in doubt is over."""


@frozen
class PromptHandedOver:
    """The prompt was handed to the HTTP client."""

    prompt: Annotated[str, Token]


@frozen
class SendSkipped:
    """A start comes to the point of sending, and its turn is being stopped: the prompt is not sent."""

    prompt: Annotated[str, Token]


@frozen
class PromptAnswered:
    """The reply of the prompt request was handled."""

    prompt: Annotated[str, Token]
    answer: Answer


@frozen
class PromptCancelled:
    """``inbox.cancel`` took the prompt out of the inbox: it is never going to run."""

    prompt: Annotated[str, Token]


@frozen
class ContinuationStarted:
    """The orchestrator starts the continuation turn it was offered."""


@frozen
class StopSent:
    """A Stop of the turn installed sent its interrupt."""


@frozen
class StopWithdrawn:
    """The interrupt of a Stop of the turn installed was answered by an error: the turn goes on."""


@frozen
class StopFutile:
    """The interrupt of a Stop of the turn installed was answered: nothing was running."""


@frozen
class RunMarked:
    """A Stop had no reply in time: its turn's run may still be alive."""


@frozen
class EndRequested:
    """A Stop had no reply in time: end the turn."""


# ── effects ──


@frozen
class ReportTurn:
    """The terminal of a turn. ``prompt`` is the prompt of a user turn, nobody for a continuation."""

    outcome: Outcome
    prompt: Annotated[str, Token]
    cause: Cause


@frozen
class HoldWake:
    """Hold the events of an execution the server began by itself, and offer a continuation for it."""


@frozen
class TakeWake:
    """The oldest wake is a continuation's now: replay what it holds."""


@frozen
class AbsorbWake:
    """The wake that runs is a user turn's now: replay what it holds into it, and drop its offer."""


@frozen
class DropWakes:
    """Every held wake is forgotten."""


@frozen
class SkipEnd:
    """An end on the stream, or of a replay, ends no turn although one may be installed."""


@frozen
class ShowPermission:
    """Show the request to the user."""


@frozen
class RejectPermission:
    """Reject the request on the server as stale, which ends its execution."""


@frozen
class ReadAgain:
    """Read ``session.active`` and the history of this item before the next event of the stream is handled."""

    item: Annotated[str, Token]


@frozen
class CancelPrompt:
    """``inbox.cancel``: take the prompt out of the server's inbox if it was not delivered."""

    prompt: Annotated[str, Token]
