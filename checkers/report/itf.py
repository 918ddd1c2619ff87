"""Counterexamples in Apalache's Informal Trace Format, which Quint and the ITF viewers of TLA+ read.

Format: https://apalache-mc.org/docs/adr/015adr-trace.html. State 0 is the initial state; state *n* is the state after step *n*,
with ``event``, ``answer``, ``row`` and ``effects`` of that step. ``loop`` is the index of the state that a lasso returns to.

The states are computed by playing the events through ``MACHINE.step`` again. Where an event cannot be read back, or the machine
does not do what the story says (the story of a variant), the changes stand as the texts they are in the story.
"""

from __future__ import annotations

import json
from enum import Enum
from typing import Any

import attrs

from turnproof.checkers.report.model import MachineReport
from turnproof.checkers.verdict import Story
from turnproof.checkers.written import WrittenError, read_event
from turnproof.machines.kernel import Machine, Taken, fields_of

Json = dict[str, Any]
AnyMachine = Machine[Any, Any, Any]

FORMAT = "https://apalache-mc.org/docs/adr/015adr-trace.html"


def itf_traces(report: MachineReport) -> dict[str, str]:
    """File name -> ITF text, one for each counterexample of the report."""
    made: dict[str, str] = {}
    for verdict in report.verdicts:
        if verdict.story is not None:
            made[f"{report.name}.{len(made) + 1}.itf.json"] = itf_trace(report.spec.machine, verdict.story, verdict.check)
    return made


def itf_trace(machine: AnyMachine, story: Story, check: str) -> str:
    """One counterexample as ITF text. ``check`` is the sentence of the property."""
    states = _replayed(machine, story) or _told(story)
    variables = list(dict.fromkeys(name for state in states for name in state))
    about = {"format": "ITF", "format-description": FORMAT, "source": story.module or story.machine, "status": "violation"}
    trace: Json = {
        "#meta": {**about, "description": f"{check}: {story.broken}"},
        "params": [],
        "vars": variables,
        "states": [{"#meta": {"index": n}, **{name: state.get(name, "") for name in variables}} for n, state in enumerate(states)],
    }
    if story.loop_from:
        # The state after the last step equals the one before the first step of the loop, so what follows it is the one after that.
        trace["loop"] = min(story.loop_from, len(states) - 1)
    return json.dumps(trace, indent=1, ensure_ascii=False) + "\n"


def _replayed(machine: AnyMachine, story: Story) -> list[Json] | None:
    state = machine.initial
    states = [{**_record(state), "event": {"tag": "Init", "value": {}}, "answer": "", "row": "", "effects": []}]
    for step in story.steps:
        try:
            event = read_event(machine, step.code)
        except WrittenError:
            return None
        answer = machine.step(state, event)
        if answer.row.name != step.row:
            return None
        effects = answer.effects if isinstance(answer, Taken) else ()
        state = answer.state if isinstance(answer, Taken) else state
        states.append(
            {**_record(state), "event": _variant(event), "answer": step.answer, "row": step.row, "effects": [_variant(e) for e in effects]}
        )
    return states


def _told(story: Story) -> list[Json]:
    names = list(dict.fromkeys(change.field for step in story.steps for change in step.changes))
    first = {change.field: change.before for step in reversed(story.steps) for change in reversed(step.changes)}
    state: Json = {"initial": story.initial, **{name: first[name] for name in names}}
    states = [{**state, "event": "init", "answer": "", "row": "", "effects": []}]
    for step in story.steps:
        state = {**state, **{change.field: change.after for change in step.changes}}
        states.append({**state, "event": step.event, "answer": step.answer, "row": step.row, "effects": list(step.effects)})
    return states


def _record(thing: object) -> Json:
    return {name: _value(getattr(thing, name)) for name in fields_of(type(thing))}


def _variant(thing: object) -> Json:
    return {"tag": type(thing).__name__, "value": _record(thing)}


def _value(value: object) -> object:
    if isinstance(value, Enum):
        return str(value.value)
    if isinstance(value, (bool, str)):
        return value
    if isinstance(value, int):
        return {"#bigint": str(value)}
    return _variant(value) if attrs.has(type(value)) else {"#unserializable": repr(value)}


__all__ = ["itf_trace", "itf_traces"]
