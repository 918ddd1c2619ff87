"""Shows how far a run is, on standard error: bars on a terminal, a line now and then elsewhere, nothing for what is quick."""

from __future__ import annotations

import os
import sys
import time
from types import TracebackType
from typing import TYPE_CHECKING

from turnproof.checkers.progress import amount

if TYPE_CHECKING:
    from rich.progress import Progress as Bars
    from rich.progress import TaskID

QUIET_S = 1.0
"""Nothing is shown before this much time has passed."""
LINE_EVERY_S = 5.0
"""Seconds between two plain lines."""
REDRAW_EVERY_S = 0.1


class Shown:
    """A :class:`turnproof.checkers.progress.Progress` for people. Use as a context manager: leaving it clears the bars.

    The part of ``what`` before the first colon names the job; each job has its own bar.
    """

    def __init__(self) -> None:
        self.started = time.monotonic()
        self.last = 0.0
        self.on_terminal = sys.stderr is not None and sys.stderr.isatty() and os.environ.get("TERM") != "dumb"
        self.bars: Bars | None = None
        self.tasks: dict[str, TaskID] = {}

    def __enter__(self) -> Shown:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.clear()

    def clear(self) -> None:
        """Take the bars off the screen, so that text can be printed; the next word draws them again."""
        if self.bars is not None:
            self.bars.stop()
        self.bars, self.tasks = None, {}

    def say(self, what: str, done: int, total: int | None = None) -> None:
        """Show it, if it is time to."""
        now = time.monotonic()
        finished = total is not None and done >= total
        if sys.stderr is None or now - self.started < QUIET_S:
            return
        if self.on_terminal:
            self._bar(what, done, total, now, finished)
        elif now - max(self.last, self.started + QUIET_S - LINE_EVERY_S) >= LINE_EVERY_S:
            self.last = now
            print(f"turnproof: {what} {amount(done, total)}, {now - self.started:.0f} s", file=sys.stderr, flush=True)

    def _bar(self, what: str, done: int, total: int | None, now: float, finished: bool) -> None:
        if self.bars is None:
            self.bars = _bars()
            self.bars.start()
        job = what.partition(":")[0]
        if job not in self.tasks:
            self.tasks[job] = self.bars.add_task(what, total=total)
        self.bars.update(self.tasks[job], description=what, completed=done, total=total)
        if finished or now - self.last >= REDRAW_EVERY_S:
            self.last = now
            self.bars.refresh()


def _bars() -> Bars:
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    # No thread of its own: the engines fork, and a fork must not catch another thread holding a lock.
    return Progress(
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        TextColumn("{task.completed:,}"),
        TimeElapsedColumn(),
        console=Console(stderr=True),
        auto_refresh=False,
        transient=True,
    )


__all__ = ["Shown"]
