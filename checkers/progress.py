"""How an engine says how far it is. Engines know only the Protocol; who shows it, and where, is the command line's business."""

from __future__ import annotations

from typing import Protocol


class Progress(Protocol):
    """Told by an engine as often as it likes; whoever shows it thins it out."""

    def say(self, what: str, done: int, total: int | None = None) -> None:
        """``done`` of ``total`` units of ``what`` are finished; ``total`` is None where nobody knows it yet."""


class Silent:
    """Shows nothing."""

    def say(self, what: str, done: int, total: int | None = None) -> None:
        """Do nothing."""


SILENT: Progress = Silent()


class Named:
    """Puts the name of the job before what it says, so that jobs that run at the same time can be told apart."""

    def __init__(self, name: str, progress: Progress) -> None:
        self.name, self.progress = name, progress

    def say(self, what: str, done: int, total: int | None = None) -> None:
        """Pass on ``name: what``."""
        self.progress.say(f"{self.name}: {what}", done, total)


def amount(done: int, total: int | None) -> str:
    """``1,200 of 7,456``, or ``1,200`` where the total is not known."""
    return f"{done:,}" if total is None else f"{done:,} of {total:,}"
