"""Recordings of OpenClaw's reply-run registry: what each call is to the reply operation, and what one sees of it from outside.

A line is one sequence of calls on a fresh operation in phase ``queued``, with timers and dates under a mock clock:
``{"id", "upstream", "steps": [{"call", "args", "returned", "threw", "phase", "result", "registered", "signal_aborted", "cancels"}]}``.
``upstream`` tells whether the operation was begun with a signal of somebody else. The names are those of
``src/auto-reply/reply/reply-run-registry.contracts.ts`` (@04d3867c).

A call that is not known, or has an argument that is not, is passed on as such: what it does to the program nobody here can say.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from enum import Enum
from typing import Any, TypeVar

from turnproof.machines.kernel import Taken
from turnproof.machines.reply_operation_words import (
    AbortReason,
    AbortRequested,
    ActivityRecorded,
    BackendAttached,
    BackendDetached,
    CancelBackend,
    Completed,
    ConsentReported,
    Evicted,
    ExpiryReason,
    ExpiryRequested,
    Failed,
    FailureCode,
    ForceCleared,
    LaneWaitBegan,
    LaneWaitEnded,
    MaintenanceWaitBegan,
    MaintenanceWaitEnded,
    OutcomeCommitted,
    Phase,
    PhaseEntered,
    Result,
    RetainFailureRequested,
    RetainUntilCompleteRequested,
    SupersedeRequested,
    UpstreamAborted,
    UpstreamReason,
)
from turnproof.traces.line import LineProblem, close_to, shown
from turnproof.traces.source import Advance, Call, Move, Nothing, Recorded, Send, Unknown

M = TypeVar("M", bound=Enum)

COMPARED = ("phase", "result", "registered", "signal_aborted", "cancels", "returned")
STEP_FIELDS = ("call", "args", "threw", *COMPARED)

PLAIN: Mapping[str, Any] = {
    "freezeAbort": OutcomeCommitted(),
    "retainUntilComplete": RetainUntilCompleteRequested(),
    "retainFailure": RetainFailureRequested(),
    "complete": Completed(barrier=False),
    "abortByUser": AbortRequested(AbortReason.USER),
    "abortForRestart": AbortRequested(AbortReason.RESTART),
    "supersede": SupersedeRequested(),
    "evict": Evicted(),
    "forceClear": ForceCleared(),
    "waitGlobalLane": LaneWaitBegan(),
    "endGlobalLane": LaneWaitEnded(),
    "waitMaintenance": MaintenanceWaitBegan(),
    "endMaintenance": MaintenanceWaitEnded(),
    "recordActivity": ActivityRecorded(),
}
"""Calls without an argument."""

SAYS_WHETHER = frozenset({"abortByUser", "abortForRestart", "supersede", "forceClear"})
"""Calls that return whether they were accepted. ``expire`` returns true only if the owner completes inside the cancel; none here does."""


def _member(kind: type[M], value: object, what: str) -> M | Unknown:
    members = {m.value: m for m in kind}
    if isinstance(value, str) and value in members:
        return members[value]
    near = close_to(value, members) if isinstance(value, str) else ""
    return Unknown(f"{what} {shown(value)} is not known{near}")


def _handle(value: object) -> str:
    """A backend's handle as a text, whatever it was recorded as."""
    return value if isinstance(value, str) else json.dumps(value, sort_keys=True)


def _phase(value: object) -> Move:
    found = _member(Phase, value, "phase")
    return found if isinstance(found, Unknown) else Send(PhaseEntered(found))


def _failure(value: object) -> Move:
    found = _member(FailureCode, value, "failure code")
    return found if isinstance(found, Unknown) else Send(Failed(found))


def _expiry(value: object) -> Move:
    found = _member(ExpiryReason, value, "expiry reason") if value != ExpiryReason.NONE.value else Unknown("an expiry names its reason")
    return found if isinstance(found, Unknown) else Send(ExpiryRequested(found))


def _attached(value: object) -> Move:
    return Send(BackendAttached(_handle(value))) if value else Unknown(f"backend {shown(value)} has no identity")


def _detached(value: object) -> Move:
    return Send(BackendDetached(_handle(value))) if value else Unknown(f"backend {shown(value)} has no identity")


def _consent(value: object) -> Move:
    return Send(ConsentReported(value)) if isinstance(value, bool) else Unknown(f"abortability {shown(value)} is neither true nor false")


def _clock(value: object) -> Move:
    usual = isinstance(value, (int, float)) and not isinstance(value, bool) and 0 <= value < float("inf")
    return Advance(value) if usual else Unknown(f"{shown(value)} is no time in milliseconds")  # type: ignore[arg-type]


WITH_ARGUMENT: Mapping[str, Callable[[object], Move]] = {
    "setPhase": _phase,
    "attachBackend": _attached,
    "detachBackend": _detached,
    "setAbortable": _consent,
    "fail": _failure,
    "expire": _expiry,
    "advance": _clock,
}

UPSTREAM_REASONS: Mapping[str, UpstreamReason] = {
    "restart": UpstreamReason.RESTART,
    "aborted_for_restart": UpstreamReason.RESTART,
    "superseded": UpstreamReason.SUPERSEDED,
    "supersede": UpstreamReason.SUPERSEDED,
    "aborted_for_supersession": UpstreamReason.SUPERSEDED,
}
"""Every other reason counts as the user's."""
USERS = ("user", "user_abort", "aborted_by_user")


class _Upstream:
    """The signal an operation was begun with: it fires once, if there is one."""

    def __init__(self, given: object) -> None:
        self.listening = bool(given)
        self.reason = given if isinstance(given, str) else None

    def abort(self, args: Sequence[object]) -> tuple[Move, str]:
        if not self.listening:
            return Nothing(), ""
        self.listening = False
        reason = args[0] if args else self.reason
        known = UPSTREAM_REASONS.get(reason, UpstreamReason.USER) if isinstance(reason, str) else UpstreamReason.USER
        plain = reason is None or (isinstance(reason, str) and (reason in UPSTREAM_REASONS or reason in USERS))
        return Send(UpstreamAborted(known)), "" if plain else f"upstream reason {shown(reason)} counts as the user's"


class OpenClaw:
    """The source ``openclaw``."""

    name = "openclaw"
    machine = "reply_operation"
    program = "OpenClaw's reply-run registry"
    variant = "openclaw_2026_9_6"
    compared: tuple[str, ...] = COMPARED
    calls: tuple[str, ...] = (*PLAIN, *WITH_ARGUMENT, "upstreamAbort")

    def recognises(self, record: object) -> bool:
        """A sequence has steps, which trace lines have not."""
        return isinstance(record, dict) and isinstance(record.get("steps"), list)

    def read(self, record: object) -> Recorded:
        """One sequence. Raises ``LineProblem``."""
        if not isinstance(record, dict) or not isinstance(record.get("steps"), list):
            raise LineProblem("is no recorded sequence, expected an object with id, upstream and steps", field="steps")
        upstream = _Upstream(record.get("upstream"))
        calls, extra, missing = [], [f for f in record if f not in ("id", "upstream", "steps")], []
        for number, step in enumerate(record["steps"], 1):
            calls.append(self._call(step, f"steps[{number}]", upstream))
            extra += [f"steps.{f}" for f in step if f not in STEP_FIELDS]
            missing += [f for f in COMPARED if f not in step]
        return Recorded(str(record.get("id", "?")), tuple(calls), tuple(extra), tuple(missing))

    def _call(self, step: object, where: str, upstream: _Upstream) -> Call:
        if not isinstance(step, dict) or not isinstance(step.get("call"), str):
            raise LineProblem(f"{where} is {shown(step)}, expected an object with call, args and what was seen", field="steps")
        args = step.get("args", [])
        if not isinstance(args, list):
            raise LineProblem(f"{where}.args is {shown(args)}, expected a list", field="steps")
        name = step["call"]
        move, note = self._move(name, args, upstream)
        seen = {f: step[f] for f in COMPARED if f in step}
        if step.get("threw") is not None:
            seen["threw"] = step["threw"]
        cancels = seen.get("cancels", ()) or []
        if isinstance(cancels, list) and "cancels" in seen:
            seen["cancels"] = [[_handle(c[0]), *c[1:]] if isinstance(c, list) and c else c for c in cancels]
        return Call(name, f"{name}({', '.join(a if isinstance(a, str) else shown(a) for a in args)})", move, seen, note)

    def _move(self, name: str, args: Sequence[object], upstream: _Upstream) -> tuple[Move, str]:
        if name == "upstreamAbort":
            return upstream.abort(args)
        wanted = 1 if name in WITH_ARGUMENT else 0
        if name not in WITH_ARGUMENT and name not in PLAIN:
            return Unknown(f"{name} is no known call{close_to(name, self.calls)}"), ""
        if len(args) != wanted:
            return Unknown(f"{name} has {len(args)} arguments, expected {wanted}"), ""
        return (WITH_ARGUMENT[name](args[0]) if wanted else Send(PLAIN[name])), ""

    def predict(self, call: Call, before: Any, steps: Sequence[Any], after: Any) -> Mapping[str, object]:
        """What the machine would have shown."""
        effects = [effect for step in steps for effect in step.effects]
        returned = None
        if call.name in SAYS_WHETHER:
            returned = any(isinstance(step.answer, Taken) for step in steps)
        elif call.name == "expire":
            returned = False
        return {
            "phase": after.phase.value,
            "result": _result(after.result),
            "registered": not after.released,
            "signal_aborted": after.signal_aborted,
            "cancels": [[e.backend, e.reason.value] for e in effects if isinstance(e, CancelBackend)],
            "returned": returned,
            "threw": None,
        }

    def words(self, name: str, value: object) -> str:
        """What was seen, in words."""
        if name == "cancels":
            cancels = value if isinstance(value, list) else [value]
            each = [f"{c[0]} ({c[1]})" if isinstance(c, list) and len(c) == 2 else shown(c) for c in cancels]
            return f"cancels {', '.join(each)}" if each else "cancels nothing"
        if name == "result":
            found = value if isinstance(value, list) else [value]
            return "no result" if value is None else "result " + ":".join(str(part) for part in found if part is not None)
        known = {("registered", True): "keeps the slot", ("registered", False): "the slot is free",
                 ("signal_aborted", True): "the signal has fired", ("signal_aborted", False): "the signal is live"}  # fmt: skip
        if isinstance(value, bool) and (name, value) in known:
            return known[name, value]
        said = {"returned": "returns", "threw": "throws"}.get(name, name)
        return f"{said} {value if isinstance(value, str) else shown(value)}"


def _result(result: Result) -> list[str | None] | None:
    if result is Result.NONE:
        return None
    kind, _, code = result.value.partition(":")
    return [kind, code or None]


SOURCE = OpenClaw()
