"""Text, JSON, JUnit, SARIF and ITF say the same, each in the form its readers expect."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import jsonschema
import pytest
from cli_toys import LASSO, RUNS, SPEC, STORY, machine_report, run_report, verdict

from turnproof.checkers.report import (
    RunReport,
    itf_traces,
    json_report,
    junit_report,
    sarif_report,
    schema,
    summary_text,
)
from turnproof.checkers.report.locate import places, row_places
from turnproof.checkers.verdict import Engine, Outcome

ROOT = Path(__file__).resolve().parents[1]

each_run = pytest.mark.parametrize("run", RUNS.values(), ids=RUNS.keys())

SARIF_SCHEMA: dict[str, Any] = {
    "type": "object",
    "required": ["$schema", "version", "runs"],
    "properties": {
        "version": {"const": "2.1.0"},
        "runs": {
            "type": "array",
            "minItems": 1,
            "items": {
                "type": "object",
                "required": ["tool", "results", "invocations"],
                "additionalProperties": False,
                "properties": {
                    "tool": {
                        "type": "object",
                        "required": ["driver"],
                        "properties": {
                            "driver": {
                                "type": "object",
                                "required": ["name", "version", "rules"],
                                "properties": {"rules": {"type": "array", "uniqueItems": True, "items": {"$ref": "#/$defs/rule"}}},
                            }
                        },
                    },
                    "invocations": {
                        "type": "array",
                        "items": {"type": "object", "required": ["executionSuccessful"], "properties": {"exitCode": {"type": "integer"}}},
                    },
                    "columnKind": {"enum": ["utf16CodeUnits", "unicodeCodePoints"]},
                    "results": {"type": "array", "items": {"$ref": "#/$defs/result"}},
                    "properties": {"type": "object"},
                },
            },
        },
    },
    "$defs": {
        "message": {"type": "object", "required": ["text"], "properties": {"text": {"type": "string", "minLength": 1}}},
        "rule": {
            "type": "object",
            "required": ["id", "shortDescription", "fullDescription", "help"],
            "properties": {
                "id": {"type": "string", "pattern": "^[a-z0-9_]+/[a-z0-9-]+$"},
                "shortDescription": {"$ref": "#/$defs/message"},
                "fullDescription": {"$ref": "#/$defs/message"},
                "help": {"$ref": "#/$defs/message"},
                "defaultConfiguration": {"type": "object", "properties": {"level": {"enum": ["none", "note", "warning", "error"]}}},
            },
        },
        "location": {
            "type": "object",
            "properties": {
                "message": {"$ref": "#/$defs/message"},
                "physicalLocation": {
                    "type": "object",
                    "required": ["artifactLocation", "region"],
                    "properties": {
                        "artifactLocation": {
                            "type": "object",
                            "required": ["uri"],
                            "properties": {"uri": {"type": "string", "pattern": "^(?!/)"}, "uriBaseId": {"type": "string"}},
                        },
                        "region": {
                            "type": "object",
                            "required": ["startLine"],
                            "properties": {"startLine": {"type": "integer", "minimum": 1}},
                        },
                    },
                },
            },
        },
        "result": {
            "type": "object",
            "required": ["ruleId", "ruleIndex", "level", "message", "locations", "partialFingerprints"],
            "properties": {
                "level": {"enum": ["warning", "error"]},
                "message": {"$ref": "#/$defs/message"},
                "locations": {
                    "type": "array",
                    "minItems": 1,
                    "maxItems": 1,
                    "items": {"allOf": [{"$ref": "#/$defs/location"}, {"required": ["physicalLocation"]}]},
                },
                "relatedLocations": {"type": "array", "items": {"$ref": "#/$defs/location"}},
                "partialFingerprints": {"type": "object", "additionalProperties": {"type": "string"}},
                "codeFlows": {
                    "type": "array",
                    "items": {
                        "type": "object",
                        "required": ["threadFlows"],
                        "properties": {
                            "threadFlows": {
                                "type": "array",
                                "minItems": 1,
                                "items": {
                                    "type": "object",
                                    "required": ["locations"],
                                    "properties": {"locations": {"type": "array", "minItems": 1}},
                                },
                            }
                        },
                    },
                },
            },
        },
    },
}
"""The part of SARIF 2.1.0 (sections 3.13 to 3.36) that the report uses, made strict."""


def outcomes_in_json(run: RunReport) -> list[str]:
    return [v["outcome"] for m in json.loads(json_report(run))["machines"] for v in m["verdicts"]]


# ── JSON ──


@each_run
def test_json_fits_its_schema(run: RunReport) -> None:
    jsonschema.Draft202012Validator.check_schema(schema())
    jsonschema.validate(json.loads(json_report(run)), schema(), jsonschema.Draft202012Validator)


@pytest.mark.parametrize("field", ["format", "machines", "outcome"])
def test_the_schema_misses_a_field(field: str) -> None:
    document = json.loads(json_report(RUNS["violated"]))
    del document[field]
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(document, schema())


def test_the_schema_of_a_verdict_can_fail() -> None:
    document = json.loads(json_report(RUNS["violated"]))
    document["machines"][0]["verdicts"][0]["outcome"] = "green"
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(document, schema())


def test_json_tells_the_story_and_where() -> None:
    document = json.loads(json_report(RUNS["violated"]))
    assert (document["outcome"], document["exit_status"]) == ("violated", 1)
    machine = document["machines"][0]
    assert machine["explored"] == {"states": 7, "steps": 70, "taken": 20, "depth": 3, "representatives": False}
    assert machine["not_run"] == {"symbolic": "--quick"}
    broken = machine["verdicts"][1]
    assert broken["story"]["steps"][0]["state"]["phase"] == "wide open"
    assert [story["loop_from"] for story in (broken["story"], *broken["others"])] == [None, 1]
    assert [place["path"] for place in broken["places"]] == ["tests/cli_toys.py"] * 2
    outcomes = {r["id"]: r["outcome"] for r in machine["requirements"]}
    assert outcomes == {"R-DOOR-1": "violated", "R-DOOR-2": "violated", "R-DOOR-3": None}


# ── one list of verdicts ──


@each_run
def test_every_form_counts_the_same(run: RunReport) -> None:
    said = outcomes_in_json(run)
    assert said == [v.outcome.value for v in run.verdicts]
    cases = list(ET.fromstring(junit_report(run)).iter("testcase"))
    assert len(cases) == (len(said) or 1)
    assert sum(case.find("failure") is not None for case in cases) == said.count("violated")
    assert sum(case.find("error") is not None for case in cases) == (said.count("undetermined") if said else 1)
    results = json.loads(sarif_report(run))["runs"][0]["results"]
    assert [r["level"] for r in results] == [{"violated": "error", "undetermined": "warning"}[s] for s in said if s != "holds"]
    line = summary_text(run)
    assert f"{said.count('holds')} holds, {said.count('violated')} violated, {said.count('undetermined')} undetermined" in line


@pytest.mark.parametrize(
    ("name", "status", "word"), [("holds", 0, "holds"), ("violated", 1, "VIOLATED"), ("undetermined", 3, "UNDETERMINED")]
)
def test_the_status_and_the_word_of_a_run(name: str, status: int, word: str) -> None:
    assert RUNS[name].status == status
    assert summary_text(RUNS[name]).startswith(f"{word}: 1 machine, ")


def test_a_run_that_checked_nothing_is_not_green() -> None:
    for name in ("nothing", "no machine"):
        run = RUNS[name]
        assert run.status == 3
        assert "NOTHING WAS CHECKED" in summary_text(run)
        assert json.loads(json_report(run))["outcome"] == "undetermined"
        invocation = json.loads(sarif_report(run))["runs"][0]["invocations"][0]
        assert not invocation["executionSuccessful"]
        assert 'errors="1"' in junit_report(run) or list(ET.fromstring(junit_report(run)).iter("error"))


# ── JUnit ──


@each_run
def test_junit_is_xml_with_the_counts_in_its_attributes(run: RunReport) -> None:
    root = ET.fromstring(junit_report(run))
    assert root.tag == "testsuites"
    for suite in root.iter("testsuite"):
        cases = list(suite.iter("testcase"))
        assert int(suite.attrib["tests"]) == len(cases)
        assert int(suite.attrib.get("failures", 0)) == len(list(suite.iter("failure")))
        assert int(suite.attrib["errors"]) == len(list(suite.iter("error")))
        assert not list(suite.iter("skipped"))


def test_junit_carries_what_xml_cannot() -> None:
    text = junit_report(RUNS["violated"])
    error = next(ET.fromstring(text).iter("error"))
    assert "cut short \ufffd\ufffd[31m at </x> 1000 & more" in error.attrib["message"]
    failure = next(ET.fromstring(text).iter("failure"))
    assert "Opened(by=none, hand=left)" in (failure.text or "")


# ── SARIF ──


@each_run
def test_sarif_has_the_shape_of_its_standard(run: RunReport) -> None:
    document = json.loads(sarif_report(run))
    jsonschema.validate(document, SARIF_SCHEMA, jsonschema.Draft202012Validator)
    body = document["runs"][0]
    rules = body["tool"]["driver"]["rules"]
    assert [rules[r["ruleIndex"]]["id"] for r in body["results"]] == [r["ruleId"] for r in body["results"]]


def test_sarif_points_at_the_row_and_then_the_property() -> None:
    result = json.loads(sarif_report(RUNS["violated"]))["runs"][0]["results"][0]
    lines = (ROOT / "tests" / "cli_toys.py").read_text().splitlines()
    row, prop = (result[key][0]["physicalLocation"] for key in ("locations", "relatedLocations"))
    assert row["artifactLocation"] == {"uri": "tests/cli_toys.py", "uriBaseId": "%SRCROOT%"}
    assert lines[row["region"]["startLine"] - 1].strip() == "Row("
    assert lines[row["region"]["startLine"]].strip() == "opened,"
    assert "an open door has an owner" in lines[prop["region"]["startLine"] - 1]
    assert "Opened(by=none, hand=left)" in result["message"]["text"]


def test_the_fingerprint_follows_the_check_and_not_the_words_around_it() -> None:
    def fingerprint(detail: str, check: str = "a door opens") -> str:
        run = run_report(machine_report(verdict(check, Outcome.VIOLATED, detail=detail)))
        return str(json.loads(sarif_report(run))["runs"][0]["results"][0]["partialFingerprints"])

    assert fingerprint("once") == fingerprint("twice")
    assert fingerprint("once") != fingerprint("once", "an open door has an owner")


# ── places ──


def test_every_row_is_found_at_its_own_line() -> None:
    lines = (ROOT / "tests" / "cli_toys.py").read_text().splitlines()
    found = row_places(SPEC.machine)
    assert list(found) == [row.name for row in SPEC.machine.rows]
    assert lines[found["Slammed/otherwise"].line - 1].strip() == 'Row(Slammed, ignore="it is not open"),'
    assert [p.line for p in found.values()] == sorted(p.line for p in found.values())


def test_a_check_of_the_table_points_at_the_row_it_names() -> None:
    dead = verdict("every row fires", Outcome.VIOLATED, engine=Engine.TABLE, detail="row Slammed/otherwise never fires")
    assert places(SPEC, dead) == (row_places(SPEC.machine)["Slammed/otherwise"],)


def test_a_check_that_names_nothing_points_at_the_machine() -> None:
    lines = (ROOT / "tests" / "cli_toys.py").read_text().splitlines()
    (place,) = places(SPEC, verdict("golden numbers", Outcome.VIOLATED, engine=Engine.GOLDEN))
    assert lines[place.line - 1].startswith("MACHINE")


# ── ITF ──


def test_itf_has_a_state_more_than_steps_and_a_loop_that_returns() -> None:
    traces = itf_traces(RUNS["violated"].machines[0])
    finite, lasso = (json.loads(text) for text in traces.values())
    assert list(traces) == ["front_door.1.itf.json", "front_door.2.itf.json"]
    for trace, story in ((finite, STORY), (lasso, LASSO)):
        assert trace["#meta"]["format"] == "ITF"
        assert [state["#meta"]["index"] for state in trace["states"]] == list(range(story.length + 1))
        assert all(set(trace["vars"]) <= set(state) for state in trace["states"])
    assert finite["states"][0]["turns"] == {"#bigint": "0"}
    assert "loop" not in finite
    assert lasso["loop"] == 1


def test_no_trace_of_what_holds() -> None:
    held = verdict("a door opens", story=STORY)
    assert itf_traces(machine_report(held)) == {}
