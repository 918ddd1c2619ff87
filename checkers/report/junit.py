"""The report as JUnit XML, as Jenkins, GitLab and GitHub's test reporters read it.

One suite a machine, one case a verdict. Violated is a ``failure``; undetermined is an ``error``, for readers show ``skipped`` as
green.
"""

from __future__ import annotations

import re
from xml.etree import ElementTree as ET

from turnproof.checkers.report.failures import story_text
from turnproof.checkers.report.model import MachineReport, RunReport, counted
from turnproof.checkers.verdict import Outcome, Verdict

_NOT_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def junit_report(run: RunReport) -> str:
    """The report as JUnit XML text."""
    root = ET.Element("testsuites", {"name": "turnproof", **_numbers(run.verdicts), "time": f"{run.seconds:.3f}"})
    for machine in run.machines:
        root.append(_suite(run, machine))
    if not run.verdicts:
        # A file without a case reads as green in every viewer; a run without a verdict is not.
        case = ET.SubElement(
            ET.SubElement(root, "testsuite", {"name": "turnproof", "tests": "1", "errors": "1"}),
            "testcase",
            {"name": "anything was checked"},
        )
        ET.SubElement(case, "error", {"message": "no check ran", "type": "undetermined"})
    ET.indent(root)
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + ET.tostring(root, encoding="unicode") + "\n"


def _numbers(verdicts: tuple[Verdict, ...]) -> dict[str, str]:
    count = counted(verdicts)
    numbers = {"tests": len(verdicts), "failures": count[Outcome.VIOLATED], "errors": count[Outcome.UNDETERMINED], "skipped": 0}
    return {name: str(number) for name, number in numbers.items()}


def _suite(run: RunReport, report: MachineReport) -> ET.Element:
    facts = {"name": _clean(report.name), **_numbers(report.verdicts), "time": f"{report.seconds:.3f}", "timestamp": run.started}
    suite = ET.Element("testsuite", facts)
    properties = ET.SubElement(suite, "properties")
    for name, value in (("bounds", report.bounds), *((f"not run: {engine}", why) for engine, why in report.not_run.items())):
        ET.SubElement(properties, "property", {"name": _clean(name), "value": _clean(value)})
    for verdict in report.verdicts:
        suite.append(_case(verdict))
    return suite


def _case(verdict: Verdict) -> ET.Element:
    ids = f" [{', '.join(verdict.requirements)}]" if verdict.requirements else ""
    name = {
        "name": _clean(verdict.check + ids),
        "classname": _clean(f"{verdict.machine}.{verdict.engine.value}"),
        "time": f"{verdict.seconds:.3f}",
    }
    case = ET.Element("testcase", name)
    if verdict.outcome is not Outcome.HOLDS:
        tag = "failure" if verdict.outcome is Outcome.VIOLATED else "error"
        message = verdict.detail or (verdict.story.broken if verdict.story else verdict.how)
        inside = ET.SubElement(case, tag, {"message": _clean(message), "type": verdict.outcome.value})
        inside.text = _clean("\n".join(part for part in (verdict.detail, verdict.how, story_text(verdict)) if part))
    else:
        ET.SubElement(case, "system-out").text = _clean(verdict.how)
    return case


def _clean(text: str) -> str:
    return _NOT_XML.sub("\N{REPLACEMENT CHARACTER}", text)


__all__ = ["junit_report"]
