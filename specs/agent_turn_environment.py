"""The environment of a turn with calls: the model and its stream adapter; and the monitors that know what really happened.

The model wants one piece of work done, by its first call, and perhaps another. It asks for the first again, under a second id, only
while no request told it that the work was run: that is the promise a provider's model keeps, and what a request repeated from before
the call takes advantage of. The adapter knows which calls of the step are open; whoever performs the loop's effects needs no more.
"""

from __future__ import annotations

from enum import Enum
from typing import Annotated, Any

from attrs import evolve, frozen

from turnproof.machines.kernel import Machine, Range, Row, choose, named, not_, one_of, only_if, symbol
from turnproof.machines.tool_call import DONE, FAILED, ORPHAN, CallPhase, Permission
from turnproof.machines.turn_loop_words import Request

# ── the model and its adapter ──


class Knows(Enum):
    """What the model was told of the first piece of work."""

    NOTHING = "nothing"
    KEPT = "kept"
    """The history says how it ended, the last request does not."""
    TOLD = "told"
    """A request said that it was run, or may have been."""


class Which(Enum):
    """A call of the model, by its id."""

    FIRST = "first"
    SECOND = "second"


class Life(Enum):
    """How far a call is, as its adapter knows it."""

    UNASKED = "unasked"
    OPEN = "open"
    """Of the present step."""
    CLOSED = "closed"


class Style(Enum):
    """How an adapter has calls run."""

    NOT_SEEN = "not_seen"
    EAGER = "eager"
    """As soon as they are complete."""
    DEFERRED = "deferred"
    """Held back until the finish part."""


UNASKED, OPEN, CLOSED = Life
NOT_SEEN, EAGER, DEFERRED = Style
FIRST, SECOND = Which


@frozen
class Model:
    """The model, its two calls, and the adapter of its stream."""

    phase: Knows = Knows.NOTHING
    first: Life = UNASKED
    second: Life = UNASKED
    again: bool = False
    """The second call asks for what the first asked for."""
    arriving: Which = FIRST
    """The call whose input came last; meaningful where it is still to be dispatched."""
    style: Style = NOT_SEEN
    """That of the adapter, from its first call on."""
    permission: Permission = Permission.ALLOWED
    """What the rules say of it."""


@frozen
class CallArrives:
    """The complete input of a call comes out of the stream. ``again``: it asks for the work of the first."""

    call: Which
    again: bool
    style: Style
    permission: Permission


@frozen
class RunWanted:
    """The loop wants the call that came to run."""


@frozen
class HeldWanted:
    """The loop wants every call that is held back to run."""


@frozen
class StopWanted:
    """The loop wants the calls that run to stop."""


@frozen
class StepOver:
    """Nothing of the step stays open."""


@frozen
class EndWritten:
    """The history says how a call ended."""

    call: Which
    end: CallPhase


@frozen
class RequestBuilt:
    """A request is built out of the history, or is the last one again."""

    request: Request


@frozen
class AttemptDiscarded:
    """What the attempt left is taken out of the history."""


@frozen
class Announce:
    """Tell the loop that a call is complete."""

    held: bool


@frozen
class Hold:
    """Hold a call back."""

    call: Which
    permission: Permission


@frozen
class Start:
    """Run a call, or ask about it."""

    call: Which
    permission: Permission


@frozen
class LetGo:
    """Run a call that was held back."""

    call: Which


@frozen
class Stop:
    """Tell a call to stop."""

    call: Which


@frozen
class Close:
    """Close a call."""

    call: Which


model, arrives, written, built = symbol(Model), symbol(CallArrives), symbol(EndWritten), symbol(RequestBuilt)
fresh = named("a call of its own", not_(arrives.again) & (choose(arrives.call == FIRST, model.first, model.second) == UNASKED))
repeats = named("asks again for what it does not know to have run",
    arrives.again & (arrives.call == SECOND) & (model.second == UNASKED) & (model.first == CLOSED)
    & (model.phase != Knows.TOLD))  # fmt: skip
deferred = named("the adapter holds calls back", model.style == DEFERRED)
of_its_style = named("in the style of its adapter", (arrives.style != NOT_SEEN) & one_of(model.style, NOT_SEEN, arrives.style))
about_the_work = (written.call == FIRST) | model.again
ran = one_of(written.end, DONE, FAILED, ORPHAN)


def both(effect: type) -> tuple[object, ...]:
    """The effect for each call that is open."""
    return (only_if(model.first == OPEN, effect(FIRST)), only_if(model.second == OPEN, effect(SECOND)))


MODEL: Machine[Model, Any, Any] = Machine(
    name="model_and_adapter",
    initial=Model(),
    now=model,
    events=(CallArrives, RunWanted, HeldWanted, StopWanted, StepOver, EndWritten, RequestBuilt, AttemptDiscarded),
    effects=(Announce, Hold, Start, LetGo, Stop, Close),
    rows=(
        Row(arrives, when=of_its_style & (fresh | repeats),
            emit=(Announce(arrives.style == DEFERRED), only_if(arrives.style == DEFERRED, Hold(arrives.call, arrives.permission))),
            data=evolve(model, first=choose(arrives.call == FIRST, OPEN, model.first),
                        second=choose(arrives.call == SECOND, OPEN, model.second), again=model.again | arrives.again,
                        arriving=arrives.call, style=arrives.style,
                        permission=choose(arrives.style == DEFERRED, Permission.ALLOWED, arrives.permission))),
        Row(CallArrives, ignore="one id is one call, and what is known to have run is not asked for again"),
        Row(RunWanted,
            emit=(only_if(deferred, LetGo(model.arriving)), only_if(not_(deferred), Start(model.arriving, model.permission))),
            data=evolve(model, arriving=FIRST, permission=Permission.ALLOWED)),
        Row(HeldWanted, emit=both(LetGo)),
        Row(StopWanted, emit=both(Stop)),
        Row(StepOver, emit=both(Close),
            data=evolve(model, first=choose(model.first == OPEN, CLOSED, model.first),
                        second=choose(model.second == OPEN, CLOSED, model.second), arriving=FIRST,
                        permission=Permission.ALLOWED)),
        Row(written, at=Knows.NOTHING, when=about_the_work & ran, to=Knows.KEPT),
        Row(EndWritten, ignore="of another piece of work, or known before, or it was not run"),
        Row(built, at=Knows.KEPT, when=built.request == Request.NEW, to=Knows.TOLD),
        Row(RequestBuilt, ignore="it tells the model nothing new of the work"),
        Row(AttemptDiscarded, at=Knows.KEPT, to=Knows.NOTHING),
        Row(AttemptDiscarded, ignore="it left nothing of the work"),
    ),
)  # fmt: skip
"""The model and its adapter."""


# ── what really happened ──


class SideEffects(Enum):
    """Whether a side effect happened a second time."""

    ONCE = "once"
    TWICE = "twice"


@frozen
class Executions:
    """How often each call was run, and whether the second asks for the same."""

    phase: SideEffects = SideEffects.ONCE
    first: Annotated[int, Range(0, 1)] = 0
    second: Annotated[int, Range(0, 1)] = 0
    same: bool = False


@frozen
class Executed:
    """A call was run."""

    call: Which


@frozen
class SameWanted:
    """The second call asks for the work of the first."""


executions, executed = symbol(Executions), symbol(Executed)
repeated = choose(executed.call == FIRST, executions.first == 1, (executions.second == 1) | (executions.same & (executions.first == 1)))
EXECUTIONS: Machine[Executions, Any, Any] = Machine(
    name="executions",
    initial=Executions(),
    now=executions,
    events=(Executed, SameWanted),
    effects=(),
    rows=(
        Row(executed, when=named("the work was run before", repeated), to=SideEffects.TWICE),
        Row(executed, when=executed.call == FIRST, data=evolve(executions, first=1)),
        Row(executed, data=evolve(executions, second=1), name="Executed/second"),
        Row(SameWanted, data=evolve(executions, same=True)),
    ),
)
"""How often a side effect happened."""


class Ended(Enum):
    """How the last stream really ended."""

    NOT_YET = "not_yet"
    STOP = "stop"
    OTHERWISE = "otherwise"
    """With another reason, one that nobody maps, or none."""


@frozen
class Stream:
    """The last stream."""

    phase: Ended = Ended.NOT_YET


@frozen
class Sampled:
    """A stream begins."""


@frozen
class Finished:
    """A finish part came."""

    stop: bool


finished = symbol(Finished)
STREAM: Machine[Stream, Any, Any] = Machine(
    name="last_stream",
    initial=Stream(),
    now=symbol(Stream),
    events=(Sampled, Finished),
    effects=(),
    rows=(
        Row(Sampled, to=Ended.NOT_YET),
        Row(finished, when=finished.stop, to=Ended.STOP, name="Finished/stop"),
        Row(finished, to=Ended.OTHERWISE),
    ),
)
"""How the last stream really ended."""
