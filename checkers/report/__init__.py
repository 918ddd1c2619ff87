"""One run of the checks as text, JSON, JUnit XML, SARIF and ITF. Every form is written from the same :class:`RunReport`."""

from turnproof.checkers.report.itf import itf_traces
from turnproof.checkers.report.json_form import json_report, schema
from turnproof.checkers.report.junit import junit_report
from turnproof.checkers.report.model import MachineReport, RunReport
from turnproof.checkers.report.paint import Paint
from turnproof.checkers.report.sarif import sarif_report
from turnproof.checkers.report.text import machine_text, summary_text

__all__ = [
    "MachineReport",
    "Paint",
    "RunReport",
    "itf_traces",
    "json_report",
    "junit_report",
    "machine_text",
    "sarif_report",
    "schema",
    "summary_text",
]
