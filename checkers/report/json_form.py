"""The report as JSON: format ``turnproof.report``, version 1. ``report.schema.json`` beside this file documents every field.

A reader may rely on: fields are added, never renamed or removed, within one version; ``exit_status`` is the status of the process.
"""

from __future__ import annotations

import json
from importlib import resources
from typing import Any, cast

import attrs

from turnproof.checkers.report.forgotten import forgotten
from turnproof.checkers.report.locate import places
from turnproof.checkers.report.model import MachineReport, RunReport, counted, worst
from turnproof.checkers.report.unnamed import unnamed_events
from turnproof.checkers.verdict import Outcome, Story, Verdict
from turnproof.specs.language import Spec

FORMAT, VERSION = "turnproof.report", 1

Json = dict[str, Any]


def schema() -> Json:
    """The JSON Schema (draft 2020-12) of the report."""
    text = resources.files("turnproof.checkers.report").joinpath("report.schema.json").read_text(encoding="utf-8")
    return cast(Json, json.loads(text))


def json_report(run: RunReport) -> str:
    """The report as JSON text."""
    return json.dumps(_run(run), indent=1, ensure_ascii=False) + "\n"


def story_json(story: Story) -> Json:
    """A counterexample. ``loop_from`` is null where it is finite."""
    steps = [{**attrs.asdict(step), "state": dict(step.state)} for step in story.steps]
    return {**attrs.asdict(story), "loop_from": story.loop_from or None, "start": dict(story.start), "steps": steps}


def _run(run: RunReport) -> Json:
    return {
        "format": FORMAT,
        "version": VERSION,
        "turnproof": run.version,
        "started": run.started,
        "seconds": round(run.seconds, 3),
        "outcome": run.outcome.value,
        "exit_status": run.status,
        "counts": _counts(run.verdicts),
        "machines": [_machine(m) for m in run.machines],
    }


def _counts(verdicts: tuple[Verdict, ...]) -> Json:
    return {outcome.value: number for outcome, number in counted(verdicts).items()}


def _machine(report: MachineReport) -> Json:
    return {
        "name": report.name,
        "kind": "machine" if isinstance(report.spec, Spec) else "system",
        "rows": report.rows,
        "events": report.events,
        "explored": None if report.size is None else attrs.asdict(report.size),
        "bounds": report.bounds,
        "unnamed_events": list(unnamed_events(report.spec)),
        "remarks": list(report.remarks),
        "forgotten": list(forgotten(report.spec)),
        "without": list(report.off),
        "coverage": None if report.coverage is None else report.coverage.to_json(),
        "seconds": round(report.seconds, 3),
        "timings": {engine: round(seconds, 3) for engine, seconds in report.timings.items()},
        "not_run": dict(report.not_run),
        "certificate": report.certificate or None,
        "counts": _counts(report.verdicts),
        "requirements": [_requirement(report, rid) for rid in report.spec.requirements],
        "verdicts": [_verdict(report, verdict) for verdict in report.verdicts],
    }


def _requirement(report: MachineReport, rid: str) -> Json:
    spec, properties = report.spec, report.properties_of(rid)
    said = worst(report.of_requirement(rid))
    return {
        "id": rid,
        "text": spec.requirements[rid],
        "properties": [p.name for p in properties],
        "test": spec.tests.get(rid),
        "elsewhere": spec.elsewhere.get(rid),
        "outcome": None if said is None else said.value,
    }


def _verdict(report: MachineReport, verdict: Verdict) -> Json:
    where = [] if verdict.outcome is Outcome.HOLDS else places(report.spec, verdict)
    return {
        "machine": verdict.machine,
        "check": verdict.check,
        "engine": verdict.engine.value,
        "outcome": verdict.outcome.value,
        "how": verdict.how,
        "requirements": list(verdict.requirements),
        "detail": verdict.detail,
        "seconds": round(verdict.seconds, 3),
        "places": [attrs.asdict(place) for place in where],
        "story": None if verdict.story is None else story_json(verdict.story),
        "others": [story_json(story) for story in verdict.others],
    }


__all__ = ["FORMAT", "VERSION", "json_report", "schema", "story_json"]
