"""What a session asks of the wire to its server, and what it hands back."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any, Protocol

import attrs

from turnproof.machines.kernel import NOBODY
from turnproof.machines.session_stream import What
from turnproof.machines.session_words import Cause, Outcome, Past

ATTEMPTS = 5
"""Attempts to reconnect before the session is dead (t3code OpenCode2AdapterV2.ts @3e33a21; so all figures here)."""
PAUSE_MS = 2_000
"""Between two attempts, in milliseconds."""
ATTEMPT_MS = 15_000
"""For subscribing and reading the history, in milliseconds."""
SILENCE_MS = 45_000
"""A stream that says nothing for so long is lost, in milliseconds; a heartbeat comes every 10 to 15 s."""
RECONNECT_MS = 30_000
"""How long a start waits for a stream that is down, in milliseconds."""

INTERRUPT_MS = 10_000
"""For the interrupt of an earlier run, which nobody waits for, in milliseconds."""

INVENTORY_MS = 5_000
"""For what is read between installing a turn and sending its prompt, in milliseconds."""


@attrs.frozen
class WireEvent:
    """One event of the session on the stream."""

    what: What | None
    """None: a heartbeat, or an event that says nothing about executions."""
    item: str = NOBODY
    """Of ``DELIVERED``: the prompt or report."""
    payload: Any = None
    """Of ``ASKED``: the request, to be shown."""


@attrs.frozen
class Snapshot:
    """``session.active`` and the history, read together."""

    active: bool
    past: Past
    """What the history says of the item that was asked for; ``ABSENT`` of nobody."""
    process: str = ""
    """Identity of the server's process, where it can be known: what another process ran is lost."""


class Transport(Protocol):
    """The wire to the server, for one session."""

    async def subscribe(self) -> AsyncIterator[WireEvent]:
        """Return when a subscription stands: it yields what is published from then on, and ends or raises when it is lost."""

    async def read(self, item: str) -> Snapshot:
        """``session.active``, and what the history says of this item."""

    async def prompt(self, prompt: str, content: Any) -> None:
        """Send a prompt under this id. Raises :class:`PromptRejected` for a clear refusal; any other error leaves it unclear."""

    async def interrupt(self) -> bool:
        """Interrupt what runs; false if nothing does. The reply comes when it is accepted, not when the run is over."""

    async def cancel(self, prompt: str) -> bool:
        """``inbox.cancel``: true if the prompt was taken out of the inbox."""


class PromptRejected(Exception):
    """The server clearly refused a prompt: it will never run."""


class SessionError(RuntimeError):
    """The session does not do what was asked."""


class SessionBusy(SessionError):
    """A turn is installed, or a start is under way."""


class StreamDown(SessionError):
    """There is no stream, or it is gone for good: no turn was begun."""


class QuestionUnanswered(SessionError):
    """Whether an earlier run is still alive had to be asked, and nobody answered in time: no turn was begun."""


class StopFailed(SessionError):
    """The interrupt had nothing to interrupt, or was answered by an error: the turn goes on."""


@attrs.frozen
class TurnEnd:
    """The one terminal of a turn."""

    outcome: Outcome
    cause: Cause
