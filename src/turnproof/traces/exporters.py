"""Steps for the tools a runtime has already: ``logging``, OpenTelemetry, and several hooks at once.

Each is a ``trace=`` hook as ``TraceWriter`` is. What a replay needs is written by ``TraceWriter`` alone: these are for people who watch.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping
from importlib import import_module
from typing import Any, Protocol, cast

from turnproof.machines.kernel import Ignored, Machine, Refused, Taken
from turnproof.machines.kernel.evaluate import environment, value
from turnproof.traces.coding import Coder
from turnproof.traces.writer import LoggedStep

Hook = Callable[[LoggedStep], object]
Attribute = str | bool | int | float


def all_of(*hooks: Hook) -> Hook:
    """One hook that calls several, in order. What one raises is raised once all were called (several as an ``ExceptionGroup``)."""

    def call(step: LoggedStep) -> None:
        errors: list[Exception] = []
        for hook in hooks:
            try:
                hook(step)
            except Exception as error:
                errors.append(error)
        if len(errors) == 1:
            raise errors[0]
        if errors:
            raise ExceptionGroup("several trace hooks failed", errors)

    return call


class LogTrace:
    """Logs each step: taken and ignored ones at ``level``, refusals at ``refused``. The record's ``turnproof`` attribute is the step.

    ``machines``: those whose steps it logs; a step of another is a ``ValueError``.
    """

    def __init__(
        self, *machines: Machine[Any, Any, Any], logger: logging.Logger | str = "turnproof.trace", level: int = logging.DEBUG,
        refused: int = logging.INFO,
    ) -> None:  # fmt: skip
        self.logger = logging.getLogger(logger) if isinstance(logger, str) else logger
        self.level, self.refused = level, refused
        self._coders = _coders(machines)

    def __call__(self, step: LoggedStep) -> None:
        """Log one step."""
        coder = _coder(self._coders, step)
        level = self.refused if isinstance(step.answer, Refused) else self.level
        if self.logger.isEnabledFor(level):
            args = ", ".join(f"{name}={text}" for name, text in coder.write_event(step.event).items())
            event = f"{type(step.event).__name__}({args})" if args else type(step.event).__name__
            why = f": {step.answer.why}" if isinstance(step.answer, (Ignored, Refused)) else ""
            phases = " -> ".join(dict.fromkeys(_phase(coder, state) for state in (step.before, step.post)))
            said = f"{_said(step)}{why}"
            self.logger.log(
                level, "%s %s #%d %s %s [%s]", step.machine, step.key, step.seq, event, said, phases, extra={"turnproof": step}
            )  # fmt: skip


class Span(Protocol):
    """What is used of a span of OpenTelemetry."""

    def add_event(self, name: str, attributes: Mapping[str, Attribute], timestamp: int) -> None:
        """Note something that happened; ``timestamp`` in nanoseconds."""

    def end(self, end_time: int) -> None:
        """The span is over; ``end_time`` in nanoseconds."""


class Tracer(Protocol):
    """What is used of a tracer of OpenTelemetry."""

    def start_span(self, name: str, *, attributes: Mapping[str, Attribute], start_time: int) -> Span:
        """Begin a span; ``start_time`` in nanoseconds."""


class OpenTelemetryTrace:
    """One span for each instance, from its first step until it is released, with an event for each step.

    ``tracer``: where spans go; None takes the tracer ``turnproof`` of the provider that is installed. The span is a child of the one that
    is current at the first step. Events carry answer, row, reason, phase and the fields of what happened.

    Needs ``opentelemetry-api`` (``pip install turnproof[otel]``) unless a tracer is given; ``ImportError`` says so. Timestamps are those
    of the steps, so the runner's ``timestamp`` must be ``time.time``.
    """

    def __init__(self, *machines: Machine[Any, Any, Any], tracer: Tracer | None = None) -> None:
        self._tracer = _tracer() if tracer is None else tracer
        self._coders = _coders(machines)
        self._spans: dict[tuple[str, str], Span] = {}

    def __call__(self, step: LoggedStep) -> None:
        """Add one step to the span of its instance."""
        coder, at, place = _coder(self._coders, step), int(step.ts * 1e9), (step.machine, step.key)
        if step.seq == 1 and place in self._spans:
            self._spans.pop(place).end(end_time=at)
        if place not in self._spans:
            if step.seq > 1 and _released(coder.machine, step.before):
                return  # late, and its span is over
            attributes: dict[str, Attribute] = {"turnproof.machine": step.machine, "turnproof.key": step.key}
            self._spans[place] = self._tracer.start_span(f"{step.machine} {step.key}", attributes=attributes, start_time=at)
        self._spans[place].add_event(type(step.event).__name__, dict(_attributes(coder, step)), at)
        if _released(coder.machine, step.post):
            self._spans.pop(place).end(end_time=at)

    @property
    def open(self) -> int:
        """Spans that have not ended."""
        return len(self._spans)

    def close(self, end_time: float) -> None:
        """End the spans of instances that were not released. ``end_time`` in seconds."""
        while self._spans:
            self._spans.popitem()[1].end(end_time=int(end_time * 1e9))


def _attributes(coder: Coder, step: LoggedStep) -> Iterator[tuple[str, Attribute]]:
    yield "turnproof.seq", step.seq
    yield "turnproof.answer", _said(step)
    yield "turnproof.row", step.answer.row.name
    yield "turnproof.phase", _phase(coder, step.post)
    if isinstance(step.answer, (Ignored, Refused)):
        yield "turnproof.why", step.answer.why
    for name, found in coder.write_event(step.event).items():
        yield f"turnproof.args.{name}", found if isinstance(found, (str, bool, int, float)) else repr(found)


def _tracer() -> Tracer:
    try:
        return cast(Tracer, import_module("opentelemetry.trace").get_tracer("turnproof"))
    except ImportError:
        raise ImportError("OpenTelemetryTrace needs opentelemetry-api: pip install 'turnproof[otel]', or give it a tracer") from None


def _coders(machines: tuple[Machine[Any, Any, Any], ...]) -> Mapping[str, Coder]:
    if not machines:
        raise ValueError("name the machines whose steps are exported")
    return {machine.name: Coder(machine) for machine in machines}


def _coder(coders: Mapping[str, Coder], step: LoggedStep) -> Coder:
    if step.machine not in coders:
        raise ValueError(f"this hook exports {', '.join(coders)}, not {step.machine}")
    return coders[step.machine]


def _said(step: LoggedStep) -> str:
    return "taken" if isinstance(step.answer, Taken) else "ignored" if isinstance(step.answer, Ignored) else "refused"


def _phase(coder: Coder, state: object) -> str:
    found = getattr(state, coder.machine.phase)
    return str(getattr(found, "value", found))


def _released(machine: Machine[Any, Any, Any], state: object) -> bool:
    formula = machine.released_formula
    return formula is not None and bool(value(formula, environment(state)))


__all__ = ["Hook", "LogTrace", "OpenTelemetryTrace", "Span", "Tracer", "all_of"]
