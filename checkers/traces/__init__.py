"""Judges recorded logs: which line, in which state, was wrong; and which design a recorded program behaves like.

:func:`replay` takes the trace lines of a shell (format: ``turnproof/traces/FORMAT.md``), and recordings of other programs that
``turnproof.traces.source`` knows. :class:`Monitor` judges the steps of a running process as they happen, and in the same way.
"""

from turnproof.checkers.traces.entry import replay
from turnproof.checkers.traces.monitor import Monitor, Report, log_report
from turnproof.checkers.traces.report import ReplayReport, render_text, to_json

__all__ = ["Monitor", "ReplayReport", "Report", "log_report", "render_text", "replay", "to_json"]
