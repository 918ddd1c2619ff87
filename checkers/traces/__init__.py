"""Judges recorded logs: which line, in which state, was wrong; and which design a recorded program behaves like.

:func:`replay` takes the trace lines of a shell (format: ``turnproof/traces/FORMAT.md``), and recordings of other programs that
``turnproof.traces.source`` knows.
"""

from turnproof.checkers.traces.entry import replay
from turnproof.checkers.traces.report import ReplayReport, render_text, to_json

__all__ = ["ReplayReport", "render_text", "replay", "to_json"]
