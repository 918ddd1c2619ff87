"""What the sampled runs do to a shell: one value an action, so that a failing run is a script that can be pasted and played again."""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum
from typing import Any, cast

import attrs

START_MS = 1_000_000
"""What the clock shows first: not 0, so that a time since the start is not mistaken for a time on the clock."""


class Fault(Enum):
    """What a handler does when it is asked to perform an effect."""

    NOTHING = "nothing"
    """Returns at once, as a plain function."""
    RAISES = "raises"
    POSTS = "posts"
    """Sends an event from inside, as a plain function."""
    AWAITS = "awaits"
    """Is a coroutine function that ends two turns later."""
    SENDS = "sends"
    """Is a coroutine function that awaits the answer to an event of its own."""
    FAILS_AWAITING = "fails awaiting"
    """Is a coroutine function that raises two turns later."""
    CANCELS_ITSELF = "cancels itself"
    """Ends with a cancellation nobody asked for."""
    LATE = "late"
    """Ends when :class:`LateHandlersEnd` lets it."""
    FAILS_LATE = "fails late"
    SENDS_LATE = "sends late"
    HANGS = "hangs"
    """Ends when the shell is closed, not before."""
    BLOCKS = "blocks"
    """Is a plain function during which the clock moves by ``ms``, and nobody else gets to run."""


PLAIN = frozenset({Fault.NOTHING, Fault.RAISES, Fault.POSTS, Fault.BLOCKS})
"""Handlers that are plain functions."""
SENDING = frozenset({Fault.POSTS, Fault.SENDS, Fault.SENDS_LATE})
"""Handlers that send an event."""
WAITING = frozenset({Fault.LATE, Fault.FAILS_LATE, Fault.SENDS_LATE})
"""Handlers that wait until they are let go on."""


@attrs.frozen
class Doing:
    """What one handler does: its fault, the event it sends if it sends one, the milliseconds it blocks if it blocks."""

    fault: Fault
    event: object = None
    ms: int = 0


class Caller(Enum):
    """How an event is sent."""

    AWAITS = "awaits"
    POSTS = "posts"
    LEAVES_0 = "leaves before it began"
    LEAVES_1 = "leaves after 1 turn"
    LEAVES_2 = "leaves after 2 turns"
    LEAVES_3 = "leaves after 3 turns"
    """Cancelled after that many turns of the loop."""


PATIENCE = {Caller.LEAVES_0: 0, Caller.LEAVES_1: 1, Caller.LEAVES_2: 2, Caller.LEAVES_3: 3}
"""Turns of the loop until the caller is cancelled."""

Plan = tuple[Doing, ...]
"""What the next handlers do, in the order in which they are asked; those after the last do nothing special."""


@attrs.frozen
class Send:
    """One caller sends one event."""

    event: object
    caller: Caller = Caller.AWAITS
    plan: Plan = ()


@attrs.frozen
class SendTaken:
    """One caller sends an event that is taken there; ``seed`` says which. In a script it stands as the :class:`Send` it was."""

    seed: int
    caller: Caller = Caller.AWAITS
    plan: Plan = ()


@attrs.frozen
class Crowd:
    """Several callers send an event each in the same turn of the loop."""

    events: tuple[object, ...]
    plan: Plan = ()


@attrs.frozen
class Advance:
    """The clock moves ``ms``; with ``to_next`` that is counted from the moment the next timer is due, and may be negative."""

    ms: int
    to_next: bool = False
    plan: Plan = ()


@attrs.frozen
class Jump:
    """The clock leaps ``ms`` on, as when the process was suspended: what was due meanwhile comes late, and all at once.

    With ``over_next`` that is counted from the moment the next timer is due.
    """

    ms: int
    plan: Plan = ()
    over_next: bool = False


@attrs.frozen
class LateHandlersEnd:
    """The ``count`` handlers that have waited longest go on."""

    count: int
    plan: Plan = ()


@attrs.frozen
class Close:
    """Several callers send; so many turns later the shell is closed in the middle of it, and a new instance begins.

    ``leaves``: turns after which whoever closes is cancelled; negative: stays. The shell is closed all the same.
    """

    events: tuple[object, ...] = ()
    turns: int = 0
    plan: Plan = ()
    leaves: int = -1


Action = Send | SendTaken | Crowd | Advance | Jump | LateHandlersEnd | Close


def source(value: object) -> str:
    """``value`` as Python source, fields that have their default left out."""
    if isinstance(value, Enum):
        return f"{type(value).__name__}.{value.name}"
    if isinstance(value, tuple):
        return f"({', '.join(source(item) for item in value)}{',' if len(value) == 1 else ''})"
    if not attrs.has(type(value)):
        return repr(value)
    cls = cast(Any, type(value))
    parts = [
        f"{field.alias}={source(getattr(value, field.name))}"
        for field in attrs.fields(cls)
        if field.default is attrs.NOTHING or getattr(value, field.name) != field.default
    ]
    return f"{cls.__name__}({', '.join(parts)})"


def classes(value: object) -> set[type]:
    """Every class that :func:`source` names."""
    if isinstance(value, Enum):
        return {type(value)}
    if isinstance(value, tuple):
        return {cls for item in value for cls in classes(item)}
    if not attrs.has(type(value)):
        return set()
    return {type(value)} | {cls for field in attrs.fields(cast(Any, type(value))) for cls in classes(getattr(value, field.name))}


def script_source(script: Sequence[Action]) -> str:
    """A script as the one expression that :func:`~turnproof.checkers.stateful.rig.play` takes."""
    return source(tuple(script))
