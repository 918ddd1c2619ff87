"""Plays a turn loop from a script: the words by which public reports tell what a model, its tools and a user did.

The script says what came from outside. What only answers the loop is played by rule: the history is read, the request is built, the
step is written down, a cancelled stream closes. A wait ends where the script says ``timer``, or ``sample`` (a request went out).
Each call is a ``tool_call`` of its own, and calls with the same letter are equal. Nothing here decides anything.

| word | what came |
|---|---|
| ``user_prompt`` ``resume`` | a message of a person |
| ``auto_resume`` ``append_continue`` ``fallback`` | a program says continue |
| ``sample`` ``timer`` | the pending wait is over |
| ``text`` ``reasoning`` ``tool_input(a)`` ``tool_call(a)`` ``hosted(a)`` | the stream |
| ``held_call(a)`` | a complete call that the adapter holds back |
| ``tool_done(a)`` ``tool_failed(a)`` ``reject`` | a call ends |
| ``finish(reason)`` ``finish(unknown,raw=x)`` ``captured`` | a finish part; the structured output |
| ``stream_end`` ``stream_error(class)`` ``process_end`` | the stream ends |
| ``overflow`` ``compaction_done`` ``compaction_empty`` ``auto_compaction_off`` ``json_schema`` | the conversation |
| ``cancel`` ``cleanup(a)`` | a person stops it; the grace timer fires |
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import attrs

from turnproof.machines import tool_call
from turnproof.machines.finish_reason import TABLES, FinishReason, Runtime
from turnproof.machines.kernel import Ignored, Refused, StartTimer, Taken
from turnproof.machines.turn_loop_events import (
    AbortCompaction,
    AbortStream,
    BuildRequest,
    CallBegan,
    CallCompleted,
    CallEnded,
    Cancelled,
    CompactionEnded,
    ContinueDue,
    DropHeldCalls,
    GraceExpired,
    HistoryLoaded,
    HostedCallSeen,
    MarkOrphans,
    OutputCaptured,
    Prepared,
    ReadHistory,
    ReasoningArrived,
    RecordStep,
    ResampleDue,
    RetryDue,
    RunHeldCalls,
    RunTool,
    Sample,
    StepFinished,
    StepRecorded,
    StreamBroke,
    StreamEnded,
    TextArrived,
    UserPrompted,
)
from turnproof.machines.turn_loop_words import (
    RESTING,
    CallResult,
    CompactionResult,
    Content,
    Failure,
    Phase,
    Room,
    Source,
    Task,
    TurnLoop,
    Wanted,
)
from turnproof.specs.language import AnyMachine

FAILURES: Mapping[str, Failure] = {
    **dict.fromkeys(("socket", "stream_read", "http_500", "http_503", "rate_limit", "header_timeout", "retryable"), Failure.RETRYABLE),
    **dict.fromkeys(("fatal", "quota", "400", "401", "403", "auth", "invalid_request"), Failure.FATAL),
    "overflow": Failure.OVERFLOW,
}
"""Class of a broken stream -> what it is to the loop."""

DUE: Mapping[Phase, Any] = {Phase.RETRY_WAIT: RetryDue(), Phase.RESAMPLE_WAIT: ResampleDue(), Phase.CONTINUE_WAIT: ContinueDue()}
ENDS = {tool_call.DONE: CallResult.DONE, tool_call.FAILED: CallResult.FAILED, tool_call.REJECTED: CallResult.REJECTED}


@attrs.frozen
class Played:
    """One step of the loop."""

    before: TurnLoop
    event: object
    answer: str
    row: str
    effects: tuple[object, ...]
    after: TurnLoop


def normalized(reason: str, raw: str) -> FinishReason:
    """The word for a finish part; an ``unknown`` with a raw reason that some adapter maps is that."""
    for (runtime, _), table in TABLES.items():
        if raw and runtime is Runtime.AI_SDK and raw in table.by_raw:
            return table.by_raw[raw].reason
    return FinishReason(reason)


class Script:
    """One session, played word by word. ``steps`` has what the loop did, ``calls`` the calls by id."""

    def __init__(self, machine: AnyMachine, *, limits: Mapping[str, int] | None = None, steps: int = 0) -> None:
        self.machine = machine
        self.state: TurnLoop = attrs.evolve(machine.initial, **(limits or {}))
        self.step_limit = steps
        self.steps: list[Played] = []
        self.calls: dict[str, tool_call.ToolCall] = {}
        self.executed: list[str] = []
        """Ids of calls, each time one was really run."""
        self.asked: list[str] = []
        self.made: list[str] = []
        self.held: list[str] = []
        self.open: list[str] = []
        self.identities = 0
        self.room, self.tasks, self.structured, self.after_results = Room.ENOUGH, list[Task](), False, False

    # ── what is asked of it ──

    @property
    def samples(self) -> int:
        """Requests sent."""
        return len(self.effects(Sample))

    @property
    def is_over(self) -> bool:
        """No run is on."""
        return self.state.phase in RESTING

    def effects(self, kind: type) -> list[Any]:
        """Every effect of a class, in order."""
        return [e for step in self.steps for e in step.effects if isinstance(e, kind)]

    def waits(self) -> list[int]:
        """``not_before_ms`` of every wait but the grace of calls."""
        return [e.not_before_ms for e in self.effects(StartTimer) if e.timer.value != "grace"]

    def play(self, words: Iterable[str]) -> Script:
        """Play the words in order."""
        for word in words:
            self.word(word)
        return self

    def word(self, word: str) -> None:
        """Play one word. Raises ``ValueError`` for one that nobody knows."""
        found = re.fullmatch(r"(\w+)(?:\((.*)\))?", word)
        name, inside = (found[1], found[2] or "") if found else (word, "")
        action = _WORDS.get(name)
        if action is None:
            raise ValueError(f"no word {word!r}; the words: {', '.join(_WORDS)}")
        action(self, inside)

    # ── steps ──

    def send(self, event: object) -> None:
        """One event, and whatever only answers what the loop asks for then."""
        before = self.state
        answer = self.machine.step(before, event)
        effects = answer.effects if isinstance(answer, Taken) else ()
        self.state = answer.state if isinstance(answer, Taken) else before
        said = "taken" if isinstance(answer, Taken) else f"{'ignored' if isinstance(answer, Ignored) else 'refused'}: {answer.why}"
        assert isinstance(answer, (Taken, Ignored, Refused))
        self.steps.append(Played(before, event, said, answer.row.name, effects, self.state))
        for effect in effects:
            self.perform(effect)

    def perform(self, effect: object) -> None:
        """What the world does about an effect."""
        generation = self.state.generation
        match effect:
            case ReadHistory():
                self.send(HistoryLoaded(generation, self.tasks.pop(0) if self.tasks else Task.NONE, self.room))
            case BuildRequest():
                self.send(Prepared(generation, self.fresh("call")))
            case RecordStep() if self.state.phase is Phase.JUDGING:
                wanted = Wanted.STRUCTURED if self.structured else Wanted.NOTHING if self.after_results else Wanted.ANSWER
                self.after_results = self.state.content is Content.RESULT
                self.send(StepRecorded(generation, wanted, 0))
            case AbortStream() if self.state.phase is Phase.STOPPING:
                self.send(StreamEnded(generation))
            case AbortCompaction():
                self.send(CompactionEnded(generation, CompactionResult.FAILED))
            case RunTool(call):
                self.run(call, tool_call.Dispatch.AT_ONCE)
            case RunHeldCalls():
                for call in self.held:
                    self.call(call, tool_call.Released())
                self.held = []
            case DropHeldCalls() | MarkOrphans():
                for call in (*self.held, *self.open):
                    self.call(call, tool_call.StepClosed())
                self.held = []
            case _:
                pass

    def fresh(self, what: str) -> str:
        """An identity that nobody had."""
        self.identities += 1
        return f"{what}-{self.identities}"

    def run(self, call: str, dispatch: tool_call.Dispatch) -> None:
        """Hand a complete call to its machine. Equal calls have ids that begin with the same letters."""
        equal = sum(other != call and _kind(other) == _kind(call) for other in self.made)
        self.call(call, tool_call.InputCompleted(dispatch, tool_call.Permission.ALLOWED, equal))
        self.made.append(call)

    def call(self, call: str, event: Any) -> None:
        """One event of one call."""
        answer = tool_call.step(self.calls.setdefault(call, tool_call.ToolCall()), event)
        if not isinstance(answer, Taken):
            return
        self.calls[call] = answer.state
        for effect in answer.effects:
            match effect:
                case tool_call.Execute():
                    self.executed.append(call)
                    self.open.append(call)
                case tool_call.Ask():
                    self.asked.append(call)
                case tool_call.WriteEnd() if call in self.open:
                    self.open.remove(call)
                case tool_call.TellLoop(end) if end in ENDS:
                    self.send(CallEnded(self.state.generation, ENDS[end]))
                case _:
                    pass

    # ── words ──

    def prompt(self, source: Source) -> None:
        """A message comes."""
        self.send(UserPrompted(self.fresh("run"), source, self.step_limit))

    def due(self) -> None:
        """The pending wait is over."""
        if self.state.phase in DUE:
            self.send(DUE[self.state.phase])

    def complete(self, call: str, *, held: bool) -> None:
        """A call of the stream is complete."""
        before = self.state.open_calls
        self.send(CallCompleted(self.state.generation, held, call))
        if self.state.content is Content.HELD and self.state.open_calls > before:
            self.held.append(call)
            self.run(call, tool_call.Dispatch.AT_FINISH)

    def finish(self, inside: str) -> None:
        """A finish part: ``reason`` or ``reason,raw=text``."""
        reason, _, rest = inside.partition(",")
        raw = rest.removeprefix("raw=")
        self.send(StepFinished(self.state.generation, normalized(reason, raw), raw or reason))

    def set(self, **changes: object) -> None:
        """Something about the conversation changed."""
        for name, value in changes.items():
            setattr(self, name, value)

    def reject(self) -> None:
        """A person rejects the newest open call."""
        for call in (self.open or list(self.calls))[-1:]:
            state = self.calls[call]
            self.calls[call] = attrs.evolve(state, phase=tool_call.REJECTED)
            self.send(CallEnded(self.state.generation, CallResult.REJECTED))

    def compacted(self, result: CompactionResult) -> None:
        """The compaction is over, and there is room again."""
        self.room = Room.ENOUGH
        self.send(CompactionEnded(self.state.generation, result))


def _kind(call: str) -> str:
    return call.rstrip("0123456789")


_WORDS: Mapping[str, Callable[[Script, str], None]] = {
    "user_prompt": lambda s, _: s.prompt(Source.PERSON),
    "resume": lambda s, _: s.prompt(Source.PERSON),
    **dict.fromkeys(("auto_resume", "append_continue", "fallback"), lambda s, _: s.prompt(Source.HARNESS)),
    **dict.fromkeys(("sample", "timer"), lambda s, _: s.due()),
    "text": lambda s, _: s.send(TextArrived(s.state.generation)),
    "reasoning": lambda s, _: s.send(ReasoningArrived(s.state.generation)),
    "tool_input": lambda s, _: s.send(CallBegan(s.state.generation)),
    "tool_call": lambda s, call: s.complete(call, held=False),
    "held_call": lambda s, call: s.complete(call, held=True),
    "hosted": lambda s, _: s.send(HostedCallSeen(s.state.generation)),
    "tool_done": lambda s, call: s.call(call, tool_call.Succeeded()),
    "tool_failed": lambda s, call: s.call(call, tool_call.Broke()),
    "reject": lambda s, _: s.reject(),
    "finish": lambda s, inside: s.finish(inside),
    "captured": lambda s, _: s.send(OutputCaptured(s.state.generation)),
    "stream_end": lambda s, _: s.send(StreamEnded(s.state.generation)),
    "stream_error": lambda s, kind: s.send(StreamBroke(s.state.generation, FAILURES[kind], 0)),
    "process_end": lambda s, _: s.send(StreamBroke(s.state.generation, Failure.FATAL, 0)),
    "overflow": lambda s, _: s.set(room=Room.OVER),
    "compaction_done": lambda s, _: s.compacted(CompactionResult.SUMMARY),
    "compaction_empty": lambda s, _: s.compacted(CompactionResult.EMPTY),
    "auto_compaction_off": lambda s, _: s.set(room=Room.NO_COMPACTION),
    "json_schema": lambda s, _: s.set(structured=True),
    "cancel": lambda s, _: s.send(Cancelled()),
    "cleanup": lambda s, _: s.send(GraceExpired()),
}
"""Word -> what it plays."""
