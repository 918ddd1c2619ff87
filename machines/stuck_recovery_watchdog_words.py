"""The vocabulary of the watchdog: its state, what happens to it, and what its shell must do."""

from __future__ import annotations

from enum import Enum

from attrs import frozen

from turnproof.machines.kernel import StartTimer, StopTimer

# ── vocabulary ──


class WatchPhase(Enum):
    """Whether the session is watched."""

    OFF = "off"
    WATCHING = "watching"
    EXAMINING = "examining"
    """A tick came, and the facts are being read."""


class Age(Enum):
    """How long ago the last progress was."""

    FRESH = "fresh"
    STALE = "stale"
    """More than 120 s."""
    DUE = "due"
    """360 s or more: work that is alive may be aborted."""
    QUIET = "quiet"
    """900 s or more: also a blocked tool."""


class ToolAge(Enum):
    """How long the oldest tool has been running."""

    NONE = "none"
    FRESH = "fresh"
    STALE = "stale"
    QUIET = "quiet"


class Session(Enum):
    """What the session's record says."""

    IDLE = "idle"
    PROCESSING = "processing"
    WAITING = "waiting"


class Work(Enum):
    """What is active: a tool if any, else a model call if any, else an embedded run if any."""

    NONE = "none"
    TOOL_CALL = "tool_call"
    TOOL_OVERDUE = "tool_overdue"
    """A tool past the deadline it declared."""
    MODEL_CALL = "model_call"
    MODEL_OVERDUE = "model_overdue"
    """A model call past the time limit of its request."""
    EMBEDDED_RUN = "embedded_run"


class Diagnosis(Enum):
    """What a tick says."""

    AT_REST = "at_rest"
    HEALTHY_WAIT = "healthy_wait"
    QUEUED_WITHOUT_RUN = "stuck:queued_work_without_active_run"
    BLOCKED_TOOL_CALL = "stalled:blocked_tool_call"
    QUEUED_BEHIND_TERMINAL = "stalled:queued_behind_terminal_active_work"
    NO_PROGRESS = "stalled:active_work_without_progress"
    LONG_RUNNING = "long_running"
    UNTRACKED = "long_running:untracked_progress"
    STALE_SESSION = "stuck:stale_session_state"


class WatchTimer(Enum):
    """The timers of the watchdog."""

    TICK = "tick"
    """Time to look at the session."""
    STALE = "stale"
    """The last progress is more than 120 s old."""
    DUE = "due"
    """It is 360 s old."""
    QUIET = "quiet"
    """It is 900 s old."""
    TOOL_STALE = "tool_stale"
    """The oldest tool runs for more than 120 s."""
    TOOL_QUIET = "tool_quiet"
    """It runs for 900 s."""
    MUTE = "mute"
    """The next warning may be written."""


# ── state ──


@frozen
class StuckWatchdog:
    """The watch over one session."""

    phase: WatchPhase = WatchPhase.OFF
    age: Age = Age.FRESH
    tool_age: ToolAge = ToolAge.NONE
    terminal: bool = False
    """The last progress looks like an end: run completed, embedded run ended, a response or item of the provider done."""
    muted: bool = False
    """A warning was written lately."""


# ── events: what happened ──


@frozen
class WatchBegan:
    """The session does something: watch it."""


@frozen
class WatchEnded:
    """The session is forgotten."""


@frozen
class ProgressMade:
    """Semantic progress. ``terminal``: of a kind that looks like an end."""

    terminal: bool


@frozen
class MessageArrived:
    """A message came in, or was steered into the run."""


@frozen
class RequestRepeated:
    """The provider was asked again, and nothing came of it so far."""


@frozen
class OldestToolBegan:
    """The tool that runs longest changed: another one is the oldest now."""


@frozen
class ToolsOver:
    """No tool runs."""


@frozen
class SessionExamined:
    """The facts of one tick."""

    late: bool
    """The tick came 1 000 ms or more late: the process was busy, and ages mean little."""
    session: Session
    queued: bool
    work: Work
    owned: bool
    """An embedded run is registered."""
    waits: bool
    """A declared wait that is not past its own deadline."""


@frozen
class TickExpired:
    """Time to look."""


@frozen
class StaleExpired:
    """The age timer to STALE fired."""


@frozen
class DueExpired:
    """The age timer to DUE fired."""


@frozen
class QuietAgeExpired:
    """The age timer to QUIET fired."""


@frozen
class ToolStaleExpired:
    """The tool timer to STALE fired."""


@frozen
class ToolQuietExpired:
    """The tool timer to QUIET fired."""


@frozen
class MuteExpired:
    """The back-off is over."""


Event = (
    WatchBegan | WatchEnded | ProgressMade | MessageArrived | RequestRepeated | OldestToolBegan | ToolsOver | SessionExamined | TickExpired
    | StaleExpired | DueExpired | QuietAgeExpired | ToolStaleExpired | ToolQuietExpired | MuteExpired
)  # fmt: skip


# ── effects: what the shell must do ──


@frozen
class Examine:
    """Read the facts of the session, now."""


@frozen
class Diagnosed:
    """What this tick says; for the record."""

    diagnosis: Diagnosis


@frozen
class Warn:
    """Write a warning."""

    diagnosis: Diagnosis


@frozen
class RequestRecovery:
    """Ask for a recovery. ``may_abort``: also of work that is alive."""

    may_abort: bool


Effect = Examine | Diagnosed | Warn | RequestRecovery | StartTimer | StopTimer
