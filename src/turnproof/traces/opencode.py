"""OpenCode's event stream (``GET /event``, server 1.18): what each line is to the turn loop.

A line is one event of the bus: ``{"id", "type", "properties"}``. The history of a session shows itself as messages and their parts, the
loop as statuses, errors and idle. Ids begin with the time in milliseconds (twelve hexadecimal digits, of which the last three count), so
waits can be measured. Lines that begin with ``capture.`` are those of whoever recorded: passed over.

What the stream never says is searched for: that the history was read, the request built, the stream closed, the step written down.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import attrs

from turnproof.machines.turn_loop_events import (
    AppendContinue,
    BuildRequest,
    CompactionEnded,
    HistoryLoaded,
    Prepared,
    PublishError,
    PublishIdle,
    PublishStatus,
    StartCompaction,
    StepRecorded,
    StreamBroke,
    StreamEnded,
    SubtaskEnded,
)
from turnproof.machines.turn_loop_words import RESTING, CompactionResult, Failure, Phase, Request, Room, Status, Task, TurnLoop, Wanted
from turnproof.traces.opencode_lines import ENVELOPE, HANDLERS, IRRELEVANT, Asked, At, Thread, checked, session_of, time_of, users_of
from turnproof.traces.stream import Came, Moment, Session, StreamRead


class OpenCode:
    """The source ``opencode``."""

    name = "opencode"
    machine = "turn_loop"
    program = "OpenCode's event stream"
    variant = "opencode_1_18_33"

    def recognises(self, record: object) -> bool:
        """A line of the bus has a type with a dot."""
        return isinstance(record, dict) and isinstance(record.get("type"), str) and "." in record["type"]

    # ── from lines to moments ──

    def sessions(self, records: Iterable[tuple[str, object]]) -> StreamRead:
        """Every session, in order of appearance."""
        read, lines = StreamRead(), [(place, checked(record)) for place, record in records]
        users = users_of(record for _, record in lines)
        threads: dict[str, Thread] = {}
        for place, record in lines:
            read.lines += 1
            read.extra.update(f for f in record if f not in ENVELOPE and not record["type"].startswith("capture."))
            kind, properties = record["type"], record.get("properties") or {}
            handler = HANDLERS.get(kind)
            name = session_of(properties)
            if handler is None or name is None:
                (read.passed if IRRELEVANT.match(kind) or handler else read.unknown)[kind] += 1
                continue
            thread = threads.setdefault(name, Thread(Session(name), users))
            moments = list(handler(thread, properties, At(place, time_of(record)), read))
            if moments and not thread.session.moments and not (isinstance(moments[0], Came) and moments[0].text.startswith("a user")):
                read.notes[f"session {name}: lines before its first user message are passed over"] += 1
                continue
            thread.session.moments += moments
        read.sessions = [t.session for t in threads.values() if t.session.moments]
        return read

    # ── the machine seen from outside ──

    def initial(self, state: TurnLoop) -> TurnLoop:
        """OpenCode's own limits: five retries (anomalyco/opencode#41939); the others it does not have."""
        ours = TurnLoop()
        return attrs.evolve(state, retry_limit=ours.retry_limit, resample_limit=ours.resample_limit, continue_limit=ours.continue_limit,
                            compaction_limit=ours.compaction_limit)  # fmt: skip

    def unseen(self, state: TurnLoop, moment: Moment) -> Iterator[Any]:
        """What may have happened without a line."""
        generation = state.generation
        match state.phase:
            case Phase.DECIDING:
                yield from (HistoryLoaded(generation, task, room) for task in Task for room in Room)
            case Phase.PREPARING if isinstance(moment.context, Asked) and moment.context.call:
                yield Prepared(generation, moment.context.call)
            case Phase.STREAMING:
                yield StreamEnded(generation)
                yield StreamBroke(generation, Failure.RETRYABLE, 0)
            case Phase.JUDGING:
                yield from (StepRecorded(generation, wanted, 0) for wanted in Wanted)
            case Phase.COMPACTING:
                yield from (CompactionEnded(generation, result) for result in CompactionResult)
            case Phase.SUBTASK:
                yield SubtaskEnded(generation)
            case Phase.STOPPING:
                yield StreamEnded(generation)
                yield CompactionEnded(generation, CompactionResult.FAILED)
                yield SubtaskEnded(generation)
            case _:
                pass

    def is_over(self, state: TurnLoop) -> bool:
        """Whether no run is on."""
        return state.phase in RESTING

    def shows(self, effect: Any) -> str | None:
        """The word for an effect."""
        match effect:
            case PublishStatus(Status.BUSY):
                return "busy"
            case PublishStatus(Status.WAITING):
                return "retry"
            case PublishIdle():
                return "idle"
            case PublishError():
                return "error"
            case BuildRequest(Request.NEW):
                return "a new answer begins"
            case AppendContinue():
                return "continue"
            case StartCompaction():
                return "a summary begins"
            case _:
                return None


SOURCE = OpenCode()
