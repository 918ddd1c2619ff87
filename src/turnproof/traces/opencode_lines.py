"""What one line of OpenCode's event stream is to the turn loop: kinds of line, parts of messages, tools, errors, and the time in an id."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import attrs

from turnproof.machines.finish_reason import FinishReason
from turnproof.machines.turn_loop_events import (
    CallBegan,
    CallCompleted,
    CallEnded,
    Cancelled,
    CompactionEnded,
    HostedCallSeen,
    OutputCaptured,
    ReasoningArrived,
    StepFinished,
    StreamBroke,
    TextArrived,
    UserPrompted,
)
from turnproof.machines.turn_loop_words import CallResult, CompactionResult, Failure, Source
from turnproof.traces.line import LineProblem, shown
from turnproof.traces.stream import Came, Moment, Session, Shown, StreamRead

IRRELEVANT = re.compile(
    r"server\.|capture\.|session\.(created|updated|deleted|diff|compacted)$|file\.|lsp\.|todo\.|installation\.|project\.|vcs\.|ide\.|"
    r"permission\.|question\.|command\.|mcp\.|pty\.|tui\.|worktree\.|plugin\.|catalog\.|integration\."
)
"""Kinds of line that say nothing about the loop."""
PARTS = frozenset(
    {"text", "reasoning", "tool", "step-start", "step-finish", "patch", "snapshot", "file", "agent", "subtask", "compaction", "retry"}
)
ENVELOPE = frozenset({"id", "type", "properties", "metadata", "location", "durable", "created", "version"})
STRUCTURED_OUTPUT = "StructuredOutput"
"""The tool by which a model gives a structured output."""

ERRORS: Mapping[str, str] = {
    "MessageAbortedError": "cancel",
    "AbortedError": "cancel",
    "ContextOverflowError": "overflow",
    "ContentFilterError": "judged",
    "StructuredOutputError": "judged",
    "MessageOutputLengthError": "judged",
}
"""Name of a session's error -> what it says: a person cancelled, the stream broke (any other name), or a step was judged so."""


@attrs.frozen
class Asked:
    """The newest request of a session: the identity of its model call."""

    call: str = ""


@attrs.define
class Thread:
    """What is known of one session while its lines are read."""

    session: Session
    users: Mapping[str, str]
    """User message -> ``prompt``, ``synthetic`` or ``compaction``."""
    seen: set[str] = attrs.field(factory=set)
    attempts: dict[str, int] = attrs.field(factory=dict)
    """Assistant message -> how often it was asked for."""
    summaries: set[str] = attrs.field(factory=set)
    calls: dict[str, str] = attrs.field(factory=dict)
    """Tool call -> the model call it belongs to."""
    states: dict[str, str] = attrs.field(factory=dict)
    newest: str = ""
    idle: bool = False
    """The last line was a status of idle, which ``session.idle`` repeats."""
    compacted: bool = False
    """A summary was just accepted; a synthetic message follows it."""

    def token(self, message: str) -> str:
        """The identity of the model call that writes ``message`` now."""
        number = self.attempts.get(message, 0)
        return message if number <= 1 else f"{message}#{number}"


def time_of(record: Mapping[str, Any]) -> int | None:
    """Milliseconds within the id of a line, modulo 2 to the 36th; None if it has none."""
    found = re.match(r"evt_([0-9a-f]{9})[0-9a-f]{3}", str(record.get("id", "")))
    return int(found[1], 16) if found else None


@attrs.frozen
class At:
    """Where a line stands, and when it was written."""

    place: str
    ms: int | None


def checked(record: object) -> Mapping[str, Any]:
    """A line as an event. Raises ``LineProblem``."""
    if not isinstance(record, dict) or not isinstance(record.get("type"), str):
        raise LineProblem(f"is {shown(record)}, expected an event with type and properties", field="type")
    if not isinstance(record.get("properties") or {}, dict):
        raise LineProblem(f"properties is {shown(record['properties'])}, expected an object", field="properties")
    return record


def session_of(properties: Mapping[str, Any]) -> str | None:
    """The session a line is about; None for one that is about none."""
    for holder in (properties, properties.get("info"), properties.get("part")):
        if isinstance(holder, dict) and isinstance(holder.get("sessionID"), str):
            return str(holder["sessionID"])
    return None


def users_of(records: Iterable[Mapping[str, Any]]) -> Mapping[str, str]:
    """User message -> what it is, as its parts say. The message comes before its parts, so the whole stream is asked."""
    parts: dict[str, list[Mapping[str, Any]]] = {}
    for record in records:
        part = (record.get("properties") or {}).get("part")
        if record["type"] == "message.part.updated" and isinstance(part, dict):
            parts.setdefault(str(part.get("messageID")), []).append(part)
    found = {}
    for message, own in parts.items():
        if any(p.get("type") == "compaction" and p.get("auto") for p in own):
            found[message] = "compaction"
        elif all(p.get("synthetic") for p in own if p.get("type") == "text") and any(p.get("type") == "text" for p in own):
            found[message] = "synthetic"
    return found


# ── one kind of line each ──

Handler = Callable[[Thread, Mapping[str, Any], At, StreamRead], Iterator[Moment]]


def _message(thread: Thread, properties: Mapping[str, Any], at: At, read: StreamRead) -> Iterator[Moment]:
    info = properties.get("info") or {}
    message, role = str(info.get("id")), info.get("role")
    if role == "user":
        yield from _user(thread, message, info, at)
    elif role == "assistant":
        yield from _assistant(thread, message, info, at)
    else:
        read.unknown[f"message of role {shown(role)}"] += 1


def _user(thread: Thread, message: str, info: Mapping[str, Any], at: At) -> Iterator[Moment]:
    known = message in thread.seen
    thread.seen.add(message)
    if known or "summary" in info:
        return  # An update: a message that was just written has no summary of what it led to.
    kind = thread.users.get(message, "prompt")
    if kind == "prompt":
        yield Came(at.place, f"a user message comes ({message})", at.ms, lambda _: UserPrompted(message, Source.PERSON, 0),
                   context=Asked(thread.newest))  # fmt: skip
    elif kind == "synthetic" and not thread.compacted:
        yield Shown(at.place, "a message is appended that asks to go on", at.ms, "continue", Asked(thread.newest))
    thread.compacted = False


def _assistant(thread: Thread, message: str, info: Mapping[str, Any], at: At) -> Iterator[Moment]:
    if message not in thread.seen:
        thread.seen.add(message)
        if info.get("summary"):
            thread.summaries.add(message)
            yield Shown(at.place, "a summary of the history begins", at.ms, "a summary begins", Asked(thread.newest))
            return
        thread.attempts[message] = 1
        thread.newest = thread.token(message)
        yield Shown(at.place, f"a new answer begins ({message})", at.ms, "a new answer begins", Asked(thread.newest))
    elif message in thread.summaries and (info.get("time") or {}).get("completed") and f"{message} completed" not in thread.seen:
        thread.seen.add(f"{message} completed")
        whole = info.get("finish") in ("stop", "length", "tool-calls") and not info.get("error")
        result = CompactionResult.FAILED if info.get("error") else CompactionResult.SUMMARY if whole else CompactionResult.EMPTY
        thread.compacted = True
        yield Came(at.place, f"the summary ends ({info.get('finish') or 'no finish'})", at.ms,
                   lambda s: CompactionEnded(s.generation, result), context=Asked(thread.newest))  # fmt: skip


def _status(thread: Thread, properties: Mapping[str, Any], at: At, read: StreamRead) -> Iterator[Moment]:
    status = properties.get("status") or {}
    kind = status.get("type") if isinstance(status, dict) else status
    thread.idle = kind == "idle"
    if kind == "retry" and thread.newest:
        message = thread.newest.partition("#")[0]
        yield Shown(at.place, f"the status says retry (attempt {status.get('attempt')})", at.ms, "retry", Asked(thread.newest))
        thread.attempts[message] = thread.attempts.get(message, 1) + 1
        thread.newest = thread.token(message)
    elif kind in ("busy", "idle"):
        text = "idle is published" if kind == "idle" else "the status says busy"
        yield Shown(at.place, text, at.ms, kind, Asked(thread.newest))
    else:
        read.unknown[f"status {shown(kind)}"] += 1


def _idle(thread: Thread, properties: Mapping[str, Any], at: At, read: StreamRead) -> Iterator[Moment]:
    if not thread.idle:
        yield Shown(at.place, "idle is published", at.ms, "idle", Asked(thread.newest))
    thread.idle = False


def _error(thread: Thread, properties: Mapping[str, Any], at: At, read: StreamRead) -> Iterator[Moment]:
    error = properties.get("error") or {}
    name = str(error.get("name")) if isinstance(error, dict) else str(error)
    what = ERRORS.get(name, "broke")
    asked = Asked(thread.newest)
    if what == "cancel":
        yield Came(at.place, "a person cancels", at.ms, lambda _: Cancelled(), late=True, context=asked)
        return
    if what != "judged":
        failure = Failure.OVERFLOW if what == "overflow" else Failure.FATAL
        yield Came(
            at.place, f"the stream breaks ({name})", at.ms, lambda s: StreamBroke(s.generation, failure, 0), late=True, context=asked
        )
    if what != "overflow":
        yield Shown(at.place, f"an error is published ({name})", at.ms, "error", asked)


def _delta(thread: Thread, properties: Mapping[str, Any], at: At, read: StreamRead) -> Iterator[Moment]:
    part = str(properties.get("partID"))
    kind = thread.states.get(part)
    if kind in ("text", "reasoning") and str(properties.get("delta") or "").strip():
        yield from _content(thread, part, kind, str(properties.get("messageID")), at)


def _content(thread: Thread, part: str, kind: str, message: str, at: At) -> Iterator[Moment]:
    if f"{part} arrived" in thread.seen or message in thread.summaries:
        return
    thread.seen.add(f"{part} arrived")
    token, event = thread.token(message), TextArrived if kind == "text" else ReasoningArrived
    yield Came(at.place, f"{kind} arrives", at.ms, lambda _: event(token), late=True, context=Asked(thread.newest))


def _part(thread: Thread, properties: Mapping[str, Any], at: At, read: StreamRead) -> Iterator[Moment]:
    part = properties.get("part") or {}
    kind, message, key = part.get("type"), str(part.get("messageID")), str(part.get("id"))
    if kind not in PARTS:
        read.unknown[f"part {shown(kind)}"] += 1
    if message not in thread.attempts:
        return
    token, asked = thread.token(message), Asked(thread.newest)
    if kind in ("text", "reasoning"):
        thread.states[key] = str(kind)
        if str(part.get("text") or "").strip():
            yield from _content(thread, key, str(kind), message, at)
    elif kind == "step-finish":
        known = {r.value: r for r in FinishReason if r is not FinishReason.ABSENT}
        reason = known.get(str(part.get("reason")), FinishReason.UNKNOWN)
        yield Came(at.place, f"the finish part says {part.get('reason')}", at.ms,
                   lambda _: StepFinished(token, reason, str(part.get("reason") or "")), context=asked)  # fmt: skip
    elif kind == "tool":
        yield from _tool(thread, part, token, at, read)


def _tool(thread: Thread, part: Mapping[str, Any], token: str, at: At, read: StreamRead) -> Iterator[Moment]:
    state, call = part.get("state") or {}, str(part.get("callID"))
    status, before = str(state.get("status")), thread.states.get(f"call {call}")
    if status == before:
        return
    thread.states[f"call {call}"] = status
    asked, name = Asked(thread.newest), f"{part.get('tool')} ({call})"
    owner = thread.calls.setdefault(call, token)
    hosted = bool((part.get("metadata") or {}).get("providerExecuted"))
    if hosted:
        yield Came(at.place, f"the provider runs {name}", at.ms, lambda _: HostedCallSeen(owner), late=True, context=asked)
        return
    if before is None:
        yield Came(at.place, f"the input of {name} begins", at.ms, lambda _: CallBegan(owner), context=asked)
    if part.get("tool") == STRUCTURED_OUTPUT:
        if status == "completed":
            yield Came(at.place, "the structured output is captured", at.ms, lambda _: OutputCaptured(owner), context=asked)
        return
    if status == "running" or (status in ("completed", "error") and before != "running" and not _interrupted(state)):
        yield Came(at.place, f"{name} runs", at.ms, lambda _: CallCompleted(owner, False, call), context=asked)
    if status == "completed" or (status == "error" and not _interrupted(state)):
        result = CallResult.DONE if status == "completed" else _failed(state)
        yield Came(at.place, f"{name} ends: {result.value}", at.ms, lambda _: CallEnded(owner, result), late=True, context=asked)
    elif status not in ("pending", "running", "error"):
        read.unknown[f"tool status {shown(status)}"] += 1


def _interrupted(state: Mapping[str, Any]) -> bool:
    """Whether cleanup closed the part: its outcome is unknown, so nothing came from outside."""
    return bool((state.get("metadata") or {}).get("interrupted"))


def _failed(state: Mapping[str, Any]) -> CallResult:
    """A rejection without a word blocks the run; one with feedback, like any other error, goes back to the model."""
    text = str(state.get("error") or "")
    rejected = "rejected permission" in text and "feedback" not in text
    return CallResult.REJECTED if rejected or "dismissed this question" in text else CallResult.FAILED


HANDLERS: Mapping[str, Handler] = {
    "message.updated": _message,
    "message.part.updated": _part,
    "message.part.delta": _delta,
    "session.status": _status,
    "session.idle": _idle,
    "session.error": _error,
}
"""Kind of line -> what it is to the turn loop."""
