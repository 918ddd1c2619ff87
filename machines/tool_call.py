"""One tool call of a step, from the first piece of its input to a result, or to an honest "nobody knows".

What it is. One machine is one call, known by its identity: whoever routes events keeps one instance a call id, so two events with one
id meet the same instance. The turn loop counts its calls and knows their most telling result; everything that is about one call is here.

Which runtime. Tool parts of OpenCode (anomalyco/opencode, ``packages/opencode/src/session/processor.ts`` @982a9044c): pending, running,
completed or error; ``interrupted`` marks what cleanup found running.

The phases in one sentence. The input is being written; the complete call is held back, asked about, or run (here, or by the
provider); it ends done, failed or rejected, and where the step closes first, as an orphan if it was run and as not run if it was not.

What it promises.
  1. It runs at most once, and never after it ended.
  2. An orphan was run and may have happened; "not run" was never run. Neither is ever said of the other.
  3. A call that repeats two equal ones of the same run is asked about before it runs, in whichever steps those were.

Not modelled: what makes two calls equal (tool and input, compared by the shell over the whole run), the text of questions, output.

Rule 1: every transition of a call is a row of ``ROWS``.
Rule 2: this file knows nothing of clocks, tasks or transports.
"""

from __future__ import annotations

from enum import Enum
from typing import Annotated, get_args

from attrs import evolve, frozen

from turnproof.machines.kernel import Counter, Machine, Row, choose, named, one_of, symbol

# ── vocabulary ──


class CallPhase(Enum):
    """Where a call is."""

    WRITING = "writing"
    """The model writes its input."""
    HELD = "held"
    """Complete; the adapter holds it back until the finish part."""
    ASKED = "asked"
    """A person is asked whether it may run."""
    RUNNING = "running"
    HOSTED = "hosted"
    """The provider runs it."""
    DONE = "done"
    FAILED = "failed"
    REJECTED = "rejected"
    """A person said no."""
    ORPHAN = "orphan"
    """It ran when its step closed. Its outcome is unknown: it may have happened."""
    NOT_RUN = "not_run"
    """Its step closed before it was run."""


class Dispatch(Enum):
    """Who runs a complete call, and when."""

    AT_ONCE = "at_once"
    AT_FINISH = "at_finish"
    """When a finish part asks for the calls."""
    BY_PROVIDER = "by_provider"


class Permission(Enum):
    """What the rules say."""

    ALLOWED = "allowed"
    ASK = "ask"
    DENIED = "denied"


WRITING, HELD, ASKED, RUNNING, HOSTED, DONE, FAILED, REJECTED, ORPHAN, NOT_RUN = CallPhase
OPEN = (WRITING, HELD, ASKED, RUNNING, HOSTED)
ENDED = (DONE, FAILED, REJECTED, ORPHAN, NOT_RUN)

REPEATS = 2
"""Equal calls a run may make without a question (OpenCode asks at the third; it looks at one message only, #25254)."""


# ── state ──


@frozen
class ToolCall:
    """One call."""

    phase: CallPhase = CallPhase.WRITING
    rule: Permission = Permission.ALLOWED
    """What the rules say of a call that is held back: it counts once the call would run."""
    ran: bool = False
    """It was run, by us or by the provider. Never cleared."""


# ── events: what happened ──


@frozen
class InputCompleted:
    """The call is complete. ``equal_before``: how many calls of the run, in any step, had the same tool and input."""

    dispatch: Dispatch
    permission: Permission
    equal_before: Annotated[int, Counter]


@frozen
class Released:
    """A finish part asks for the calls that are held back."""


@frozen
class Answered:
    """A person answered the question."""

    yes: bool


@frozen
class Succeeded:
    """It ran, and has a result."""


@frozen
class Broke:
    """It ran, and failed."""


@frozen
class StopRequested:
    """The run is being stopped, or its step is lost."""


@frozen
class StepClosed:
    """The step is written down; nothing of it stays open."""


Event = InputCompleted | Released | Answered | Succeeded | Broke | StopRequested | StepClosed


# ── effects: what the shell must do ──


@frozen
class Execute:
    """Run the tool."""


@frozen
class Ask:
    """Ask a person whether it may run."""


@frozen
class Withdraw:
    """Take the question back."""


@frozen
class Interrupt:
    """Tell the tool to stop."""


@frozen
class WriteEnd:
    """Write into the history how the call ended."""

    end: CallPhase


@frozen
class TellLoop:
    """Tell the turn loop that the call ended (``CallEnded``)."""

    end: CallPhase


Effect = Execute | Ask | Withdraw | Interrupt | WriteEnd | TellLoop


# ── symbols ──

now = symbol(ToolCall)
complete, answered = symbol(InputCompleted), symbol(Answered)
must_ask = named("to be asked about", (complete.permission == Permission.ASK) | (complete.equal_before >= REPEATS))


def ends(phase: CallPhase) -> tuple[Effect, ...]:
    """How the end of a call is told."""
    return (WriteEnd(phase), TellLoop(phase))


# ── rows: the first that matches wins ──

ROWS: tuple[Row[ToolCall, Effect], ...] = (
    Row(complete, at=WRITING, when=complete.dispatch == Dispatch.BY_PROVIDER, to=HOSTED, data=evolve(now, ran=True)),
    Row(complete, at=WRITING, when=complete.dispatch == Dispatch.AT_FINISH, to=HELD, name="InputCompleted/held",
        data=evolve(now, rule=choose(complete.permission == Permission.DENIED, Permission.DENIED,
                                     choose(must_ask, Permission.ASK, Permission.ALLOWED))),
        because="Also a denied one: the loop counts it as held back, and would not hear of an end that came before its release."),
    Row(complete, at=WRITING, when=complete.permission == Permission.DENIED, to=FAILED, emit=ends(FAILED), name="InputCompleted/denied"),
    Row(complete, at=WRITING, when=must_ask, to=ASKED, emit=(Ask(),)),
    Row(complete, at=WRITING, to=RUNNING, data=evolve(now, ran=True), emit=(Execute(),)),
    Row(InputCompleted, ignore="this call was completed before: one id is one call"),
    Row(Released, at=HELD, when=now.rule == Permission.DENIED, to=FAILED, data=evolve(now, rule=Permission.ALLOWED), emit=ends(FAILED),
        name="Released/denied"),
    Row(Released, at=HELD, when=now.rule == Permission.ASK, to=ASKED, data=evolve(now, rule=Permission.ALLOWED), emit=(Ask(),),
        name="Released/asked about"),
    Row(Released, at=HELD, to=RUNNING, data=evolve(now, ran=True), emit=(Execute(),)),
    Row(Released, ignore="it is not held back"),
    Row(answered, at=ASKED, when=answered.yes, to=RUNNING, data=evolve(now, ran=True), emit=(Execute(),), name="Answered/yes"),
    Row(answered, at=ASKED, to=REJECTED, emit=ends(REJECTED), name="Answered/no"),
    Row(Answered, ignore="the question was taken back"),
    Row(Succeeded, at=RUNNING, to=DONE, emit=ends(DONE)),
    Row(Succeeded, at=HOSTED, to=DONE, emit=(WriteEnd(DONE),), because="The loop does not wait for what the provider runs."),
    Row(Succeeded, ignore="it ended before: the loop has gone on without this result"),
    Row(Broke, at=RUNNING, to=FAILED, emit=ends(FAILED)),
    Row(Broke, at=HOSTED, to=FAILED, emit=(WriteEnd(FAILED),)),
    Row(Broke, ignore="it ended before"),
    Row(StopRequested, at=RUNNING, emit=(Interrupt(),)),
    Row(StopRequested, at=ASKED, to=NOT_RUN, emit=(Withdraw(), *ends(NOT_RUN)),
        because="A question left open after a cancel waits for ever (anomalyco/opencode#20095)."),
    Row(StopRequested, ignore="it does not run"),
    Row(StepClosed, at=(RUNNING, HOSTED), to=ORPHAN, emit=(WriteEnd(ORPHAN),)),
    Row(StepClosed, at=ASKED, to=NOT_RUN, emit=(Withdraw(), WriteEnd(NOT_RUN))),
    Row(StepClosed, at=(WRITING, HELD), to=NOT_RUN, data=evolve(now, rule=Permission.ALLOWED), emit=(WriteEnd(NOT_RUN),)),
    Row(StepClosed, ignore="it ended before"),
)  # fmt: skip


# ── the machine ──

MACHINE: Machine[ToolCall, Event, Effect] = Machine(
    name="tool_call",
    initial=ToolCall(),
    now=now,
    events=get_args(Event),
    effects=get_args(Effect),
    rows=ROWS,
    released=one_of(now.phase, *ENDED),
)
step = MACHINE.step
