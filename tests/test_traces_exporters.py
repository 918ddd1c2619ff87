"""Steps in ``logging`` and in OpenTelemetry."""

from __future__ import annotations

import logging
import sys
from collections.abc import Iterator, Mapping
from types import ModuleType
from typing import Any

import attrs
import pytest
from trace_logs import Step

from turnproof.machines.kernel import Taken
from turnproof.machines.reply_operation import MACHINE
from turnproof.machines.reply_operation_words import (
    AbortReason,
    AbortRequested,
    BackendAttached,
    BackendDetached,
    Completed,
    Event,
    Phase,
    PhaseEntered,
)
from turnproof.machines.tool_call import MACHINE as TOOL
from turnproof.traces.exporters import LogTrace, OpenTelemetryTrace, all_of

USER = AbortRequested(AbortReason.USER)
EVENTS: tuple[Event, ...] = (PhaseEntered(Phase.RUNNING), BackendAttached("b"), USER, USER, Completed(False), BackendDetached("b"))


def steps(key: str = "k") -> Iterator[Step]:
    state = MACHINE.initial
    for seq, event in enumerate(EVENTS, 1):
        before, answer = state, MACHINE.step(state, event)
        state = answer.state if isinstance(answer, Taken) else before
        yield Step(seq, 100.0 + seq, MACHINE.name, key, event, answer, before, state)


# ── logging ──


def test_each_step_is_a_log_record_and_refusals_are_louder(caplog: pytest.LogCaptureFixture) -> None:
    hook = LogTrace(MACHINE)
    with caplog.at_level(logging.DEBUG, "turnproof.trace"):
        made = list(steps())
        for step in made:
            hook(step)
    assert caplog.messages == [
        "reply_operation k #1 PhaseEntered(phase=running) taken [queued -> running]",
        "reply_operation k #2 BackendAttached(backend=b) taken [running]",
        "reply_operation k #3 AbortRequested(reason=user) taken [running -> aborted]",
        "reply_operation k #4 AbortRequested(reason=user) refused: the reply has its result [aborted]",
        "reply_operation k #5 Completed(barrier=False) taken [aborted]",
        "reply_operation k #6 BackendDetached(backend=b) ignored: another backend is attached, or none [aborted]",
    ]
    assert [record.levelno for record in caplog.records] == [10, 10, 10, 20, 10, 10]
    assert [record.__dict__["turnproof"] for record in caplog.records] == made


def test_a_level_that_is_off_costs_no_text(caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch) -> None:
    hook = LogTrace(MACHINE, logger=logging.getLogger("other"))
    monkeypatch.setattr("turnproof.traces.coding.Coder.write_event", lambda *a: pytest.fail("written although nobody listens"))
    with caplog.at_level(logging.WARNING, "other"):
        for step in steps():
            hook(step)
    assert caplog.messages == []


# ── OpenTelemetry ──


@attrs.define
class Span:
    name: str
    attributes: Mapping[str, Any]
    start: int
    events: list[tuple[str, Mapping[str, Any], int]] = attrs.field(factory=list)
    ended: int | None = None

    def add_event(self, name: str, attributes: Mapping[str, Any], timestamp: int) -> None:
        assert self.ended is None
        self.events.append((name, attributes, timestamp))

    def end(self, end_time: int) -> None:
        assert self.ended is None
        self.ended = end_time


@attrs.define
class Tracer:
    spans: list[Span] = attrs.field(factory=list)

    def start_span(self, name: str, *, attributes: Mapping[str, Any], start_time: int) -> Span:
        self.spans.append(Span(name, attributes, start_time))
        return self.spans[-1]


def test_an_instance_is_a_span_from_its_first_step_until_its_release() -> None:
    tracer = Tracer()
    hook = OpenTelemetryTrace(MACHINE, tracer=tracer)
    for step in steps():
        hook(step)
    [span] = tracer.spans
    assert (span.name, span.start, span.ended) == ("reply_operation k", 101_000_000_000, 105_000_000_000)
    assert span.attributes == {"turnproof.machine": "reply_operation", "turnproof.key": "k"}
    assert [name for name, _, _ in span.events] == ["PhaseEntered", "BackendAttached", "AbortRequested", "AbortRequested", "Completed"]
    assert span.events[3] == (
        "AbortRequested",
        {
            "turnproof.seq": 4,
            "turnproof.answer": "refused",
            "turnproof.row": "AbortRequested/otherwise",
            "turnproof.phase": "aborted",
            "turnproof.why": "the reply has its result",
            "turnproof.args.reason": "user",
        },
        104_000_000_000,
    )
    assert hook.open == 0


def test_a_key_that_begins_anew_ends_the_span_before_and_what_is_left_can_be_ended() -> None:
    tracer = Tracer()
    hook = OpenTelemetryTrace(MACHINE, tracer=tracer)
    first = list(steps())[:2]
    for step in (*first, *first):
        hook(step)
    assert [span.ended for span in tracer.spans] == [101_000_000_000, None]
    hook.close(200.5)
    assert tracer.spans[1].ended == 200_500_000_000
    assert hook.open == 0


def test_without_the_library_one_is_told_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "opentelemetry.trace", None)
    with pytest.raises(ImportError, match=r"pip install 'turnproof\[otel\]'"):
        OpenTelemetryTrace(MACHINE)


def test_the_installed_tracer_is_taken_unless_one_is_given(monkeypatch: pytest.MonkeyPatch) -> None:
    library, tracer = ModuleType("opentelemetry.trace"), Tracer()
    library.__dict__["get_tracer"] = lambda name: {"turnproof": tracer}[name]
    monkeypatch.setitem(sys.modules, "opentelemetry", ModuleType("opentelemetry"))
    monkeypatch.setitem(sys.modules, "opentelemetry.trace", library)
    OpenTelemetryTrace(MACHINE)(next(steps()))
    assert len(tracer.spans) == 1


def test_the_library_itself_takes_the_spans() -> None:
    """Its API alone records nothing, but has the signatures."""
    hook = OpenTelemetryTrace(MACHINE)
    for step in steps():
        hook(step)
    hook.close(300.0)
    assert hook.open == 0


# ── several, and mistakes ──


def test_several_hooks_are_all_called_whatever_one_raises() -> None:
    seen: list[object] = []

    def angry(step: object) -> None:
        raise OSError("disk full")

    step = next(steps())
    with pytest.raises(OSError, match="disk full"):
        all_of(angry, seen.append)(step)
    with pytest.raises(ExceptionGroup, match="several trace hooks failed"):
        all_of(angry, seen.append, angry)(step)
    all_of(seen.append)(step)
    assert seen == [step] * 3


@pytest.mark.parametrize("kind", [LogTrace, lambda *machines: OpenTelemetryTrace(*machines, tracer=Tracer())])
def test_a_step_of_another_machine_is_the_callers_mistake(kind: Any) -> None:
    with pytest.raises(ValueError, match="exports tool_call, not reply_operation"):
        kind(TOOL)(next(steps()))
    with pytest.raises(ValueError, match="name the machines"):
        kind()
