"""The report as SARIF 2.1.0 (OASIS), for annotations in code review: GitHub shows each result at a line of the table.

Only what does not hold becomes a result: violated with level ``error``, undetermined with level ``warning``. What held, and what
was not run, stands in the properties of the run.
"""

from __future__ import annotations

import hashlib
import json
import re
from pathlib import Path
from typing import Any

from turnproof.checkers.report.failures import story_text
from turnproof.checkers.report.locate import Place, all_row_places, places, row_name
from turnproof.checkers.report.model import MachineReport, RunReport, counted, harm_of
from turnproof.checkers.verdict import Outcome, Story, Verdict

SCHEMA = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
LEVELS = {Outcome.VIOLATED: "error", Outcome.UNDETERMINED: "warning"}

Json = dict[str, Any]


def sarif_report(run: RunReport) -> str:
    """The report as SARIF text."""
    found = [(m, v) for m in run.machines for v in m.verdicts if v.outcome is not Outcome.HOLDS]
    rules = {_rule_id(v): _rule(m, v) for m, v in found}
    order = {rid: n for n, rid in enumerate(rules)}
    body = {
        "tool": {"driver": {"name": "turnproof", "version": run.version, "rules": list(rules.values())}},
        "invocations": [_invocation(run)],
        "columnKind": "unicodeCodePoints",
        "results": [_result(m, v, order) for m, v in found],
        "properties": {
            "counts": {outcome.value: n for outcome, n in counted(run.verdicts).items()},
            "notRun": {m.name: dict(m.not_run) for m in run.machines if m.not_run},
        },
    }
    return json.dumps({"$schema": SCHEMA, "version": "2.1.0", "runs": [body]}, indent=1, ensure_ascii=False) + "\n"


def _invocation(run: RunReport) -> Json:
    said: Json = {"executionSuccessful": run.status != 3, "exitCode": run.status, "startTimeUtc": run.started}
    if not run.verdicts:
        said["toolExecutionNotifications"] = [{"level": "error", "message": {"text": "no check ran"}}]
    return said


def _rule_id(verdict: Verdict) -> str:
    """Stable while the sentence of the check is: GitHub tracks an alert over commits by it."""
    slug = re.sub(r"[^a-z0-9]+", "-", verdict.check.casefold()).strip("-") or "check"
    return f"{verdict.machine}/{slug}"


def _rule(report: MachineReport, verdict: Verdict) -> Json:
    texts = [f"{rid}: {report.spec.requirements[rid]}" for rid in verdict.requirements if rid in report.spec.requirements]
    harm = harm_of(report.spec, verdict.check)
    help_text = "\n".join((verdict.check, *texts, *([f"Harm: {harm}"] if harm else [])))
    return {
        "id": _rule_id(verdict),
        "name": verdict.check,
        "shortDescription": {"text": verdict.check},
        "fullDescription": {"text": help_text},
        "help": {"text": help_text},
        "defaultConfiguration": {"level": LEVELS[verdict.outcome]},
        "properties": {"tags": [verdict.engine.value, *verdict.requirements]},
    }


def _result(report: MachineReport, verdict: Verdict, order: dict[str, int]) -> Json:
    where = places(report.spec, verdict)
    rid = _rule_id(verdict)
    about = "" if verdict.machine == report.name else f"{verdict.machine}: "
    lines = (
        f"{about}{verdict.check}: {verdict.outcome.value} ({verdict.engine.value}, {verdict.how})",
        verdict.detail,
        story_text(verdict),
    )
    made: Json = {
        "ruleId": rid,
        "ruleIndex": order[rid],
        "level": LEVELS[verdict.outcome],
        "message": {"text": "\n".join(line for line in lines if line)},
        "locations": [_location(place) for place in where[:1]],
        "partialFingerprints": {"turnproof/v1": hashlib.sha256(f"{rid}/{verdict.engine.value}".encode()).hexdigest()[:32]},
        "properties": {"engine": verdict.engine.value, "how": verdict.how, "requirements": list(verdict.requirements)},
    }
    if where[1:]:
        made["relatedLocations"] = [{**_location(place), "message": {"text": "the property"}} for place in where[1:]]
    if verdict.story is not None and verdict.story.steps:
        made["codeFlows"] = [_flow(report, verdict.story)]
    return made


def _location(place: Place) -> Json:
    uri = {"uri": place.path, "uriBaseId": "%SRCROOT%"} if place.relative else {"uri": Path(place.path).as_uri()}
    return {"physicalLocation": {"artifactLocation": uri, "region": {"startLine": place.line}}}


def _flow(report: MachineReport, story: Story) -> Json:
    rows = all_row_places(report.spec)
    flow = []
    for step in story.steps:
        text = {"message": {"text": f"{step.number}. {step.actor}: {step.event}, {step.answer}"}}
        place = rows.get(row_name(step.row))
        flow.append({"location": {**(_location(place) if place else {}), **text}})
    return {"threadFlows": [{"locations": flow}]}


__all__ = ["sarif_report"]
