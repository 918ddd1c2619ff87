"""What a reply registry asks of a backend, and what it raises."""

from __future__ import annotations

from typing import Protocol, runtime_checkable

from turnproof.machines.kernel import Refused
from turnproof.machines.reply_operation_words import CancelReason
from turnproof.machines.reply_slot import Effect, ReplySlot
from turnproof.shell.handlers import Performed

BARRIER_MS = 15_000
"""How long a follow-up barrier keeps follow-ups out, in milliseconds (reply-run-registry.state.ts @07862b23)."""
FENCE_MS = 16_000
"""How long the fence of a recovery keeps successors out, in milliseconds (runs.ts @00286b0b)."""
SLICE_MS = 15_000
"""How long a caller waits for an idle key unless it says otherwise, in milliseconds (reply-run-registry.state.ts @07862b23)."""
STALE_MS = 600_000
"""Silence after which a run counts as stale, in milliseconds: the quiet-run takeover (reply-run-registry.state.ts @07862b23)."""
UNRELEASED_MS = 60_000
"""Silence after which a reply with a result that still holds its slot may be expired, in milliseconds."""


class Backend(Protocol):
    """The running attempt of a reply, as far as the registry knows it."""

    def cancel(self, reason: CancelReason) -> Performed:
        """Stop, for that reason. Told once an accepted abort; may be a coroutine function, and may call the reply from inside."""


@runtime_checkable
class Probed(Protocol):
    """A backend that says whether it may be cut now. One without this method may always be."""

    def consents(self) -> bool:
        """Whether it may be aborted now; raising means no."""


@runtime_checkable
class Steerable(Protocol):
    """A backend that takes messages while it runs. One without these methods takes none."""

    def accepts(self) -> bool:
        """Whether it takes a message now."""

    def steer(self, message: object) -> Performed:
        """Take the message into the run."""


class RegistryError(RuntimeError):
    """The registry does not do what was asked."""


class RegistryClosed(RegistryError):
    """The registry was shut down."""


class SessionIdTaken(RegistryError):
    """The session id belongs to another operation. Nothing has changed."""


class KeyChangeRefused(RegistryError):
    """The reply cannot move to that key. Nothing has changed."""


class LaneBusy(RegistryError):
    """The key's lane is not the reply's: the attempt of an earlier turn is still live, or the reply has lost its slot."""


class AdmissionRefused(RegistryError):
    """The slot does not let the operation begin. Nothing has changed."""

    def __init__(self, key: str, answer: Refused[ReplySlot, Effect]) -> None:
        super().__init__(f"{key}: {answer.why}")
        self.key, self.answer = key, answer


class AlreadyActive(AdmissionRefused):
    """Another operation holds the key."""


class FollowupAdmissionBlocked(AdmissionRefused):
    """A follow-up barrier of an earlier operation neither settled nor timed out."""


class SuccessorAdmissionBlocked(AdmissionRefused):
    """The cleanup of a predecessor keeps every successor out."""


class QueuedTurnFirst(AdmissionRefused):
    """A queued turn was offered the slot, and begins first."""


_BY_ROW: dict[str, type[AdmissionRefused]] = {
    "BeginRequested/barrier": FollowupAdmissionBlocked,
    "BeginRequested/held": AlreadyActive,
    "BeginRequested/fence": SuccessorAdmissionBlocked,
    "BeginRequested/too late": QueuedTurnFirst,
}


def admission_error(key: str, answer: Refused[ReplySlot, Effect]) -> AdmissionRefused:
    """The typed error for a refusal of the slot, by the row that refused."""
    return _BY_ROW.get(answer.row.name, AdmissionRefused)(key, answer)
