"""Why a model stopped: what each protocol says, and the one word the turn loop decides on.

What it is. Tables, not a machine: for each protocol, raw reason -> normalized reason. An adapter reads the raw reason out of the
stream, :func:`normalize` gives the word, and the raw text is kept beside it for reports.

Which runtime. OpenCode 1.18.8 (@982a9044c): the AI SDK adapters of vercel/ai 6.0.168 behind its bridge, and the native mappers
(``packages/llm/src/schema/ids.ts``). Where the two read one protocol differently, each has its own table.

What it promises.
  1. Every text, listed or not, gives exactly one word.
  2. Nothing unknown is a completion: what no table lists is UNKNOWN (or TOOL_CALLS where a protocol says so of a complete call).
  3. "No finish part came" (ABSENT) and "a reason came that nobody maps" (UNKNOWN with its raw text) stay different things.

Not kept on purpose: Bedrock's native mapper calls a stream that ends after its metadata and without a stop reason ``stop``; that
is a false completion. Here it is ABSENT.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum

from attrs import field, frozen

# ── vocabulary ──


class FinishReason(Enum):
    """The normalized reasons of OpenCode, and the seventh that exists in practice."""

    STOP = "stop"
    """The model said all it had to say."""
    LENGTH = "length"
    """Cut by a limit on tokens."""
    TOOL_CALLS = "tool-calls"
    """It waits for the results of its calls."""
    CONTENT_FILTER = "content-filter"
    ERROR = "error"
    """The provider calls its own answer malformed."""
    UNKNOWN = "unknown"
    """A finish part came and no table lists its reason, or the adapter made one up for a stream that simply closed."""
    ABSENT = "absent"
    """No finish part came."""


class Protocol(Enum):
    """How a provider speaks."""

    OPENAI_CHAT = "openai-chat"
    """Also every OpenAI-compatible provider."""
    OPENAI_RESPONSES = "openai-responses"
    """Its raw reason is the reason of an incomplete response; a complete one has none."""
    ANTHROPIC_MESSAGES = "anthropic-messages"
    GEMINI = "gemini"
    BEDROCK_CONVERSE = "bedrock-converse"
    MISTRAL = "mistral"
    AI_SDK = "ai-sdk"
    """The AI SDK's own unified reasons, as the bridge of the loop receives them."""


class Runtime(Enum):
    """Who reads the protocol."""

    AI_SDK = "ai-sdk"
    NATIVE = "native"
    """The experimental native runtime; it has no mapper for Mistral and none for the AI SDK itself."""


class Call(Enum):
    """The most telling complete call of the answer."""

    NONE = "none"
    FUNCTION = "function"
    JSON_RESPONSE = "json-response"
    """Only the tool by which an adapter makes a model answer as JSON."""


STOP, LENGTH, TOOL_CALLS, CONTENT_FILTER, ERROR, UNKNOWN, ABSENT = FinishReason

TERMINAL = (STOP, LENGTH, CONTENT_FILTER, ERROR)
"""Reasons after which the provider has nothing more to say. The one definition: both guards of the loop read it (R-LOOP-8)."""

COMPLETION = (STOP,)
"""Reasons that may end a run as completed without a mark."""


@frozen
class Finish:
    """A normalized reason with the raw text it came from; ``raw`` is None where there was none."""

    reason: FinishReason
    raw: str | None = None

    @property
    def unmapped(self) -> bool:
        """A reason was given, and nobody maps it: other than a stream that said nothing."""
        return self.reason is UNKNOWN and self.raw is not None


# ── the tables ──


@frozen
class Entry:
    """Raw reasons that mean the same. ``with_call`` and ``with_json_response`` apply where the answer holds such a call."""

    raw: tuple[str | None, ...]
    """None: a finish part that names no reason."""
    reason: FinishReason
    with_call: FinishReason | None = None
    with_json_response: FinishReason | None = None


def _by_raw(entries: tuple[Entry, ...]) -> Mapping[str | None, Entry]:
    found: dict[str | None, Entry] = {}
    for entry in entries:
        for raw in entry.raw:
            if raw in found:
                raise ValueError(f"finish reason {raw!r} stands in two entries: {found[raw].reason.value} and {entry.reason.value}")
            found[raw] = entry
    return found


@frozen
class Table:
    """One mapper."""

    entries: tuple[Entry, ...]
    unlisted_with_call: FinishReason = UNKNOWN
    """What an unlisted reason means beside a complete call. Without one it is always UNKNOWN."""
    clean_end: FinishReason = ABSENT
    """What a stream is given that closes without a finish part."""
    clean_end_with_usage: FinishReason = ABSENT
    """The same, if usage was reported before."""
    by_raw: Mapping[str | None, Entry] = field(init=False, repr=False, eq=False)

    def __attrs_post_init__(self) -> None:
        object.__setattr__(self, "by_raw", _by_raw(self.entries))

    def reason(self, raw: str | None, call: Call) -> FinishReason:
        """The word for ``raw``."""
        entry = self.by_raw.get(raw)
        if entry is None:
            return UNKNOWN if call is Call.NONE else self.unlisted_with_call
        if call is Call.JSON_RESPONSE and entry.with_json_response is not None:
            return entry.with_json_response
        return entry.reason if call is Call.NONE or entry.with_call is None else entry.with_call


_RESPONSES = (
    Entry((None,), STOP, with_call=TOOL_CALLS),
    Entry(("max_output_tokens",), LENGTH),
    Entry(("content_filter",), CONTENT_FILTER),
)
_GEMINI = (
    Entry(("STOP",), STOP, with_call=TOOL_CALLS),
    Entry(("MAX_TOKENS",), LENGTH),
    Entry(("IMAGE_SAFETY", "RECITATION", "SAFETY", "BLOCKLIST", "PROHIBITED_CONTENT", "SPII"), CONTENT_FILTER),
    Entry(("MALFORMED_FUNCTION_CALL",), ERROR),
    Entry(("OTHER", "FINISH_REASON_UNSPECIFIED"), UNKNOWN),
)


def _chat(stop: Entry) -> tuple[Entry, ...]:
    return (
        stop,
        Entry(("length",), LENGTH),
        Entry(("tool_calls", "function_call"), TOOL_CALLS),
        Entry(("content_filter",), CONTENT_FILTER),
    )


def _bedrock(stop: Entry) -> tuple[Entry, ...]:
    return (
        stop,
        Entry(("max_tokens",), LENGTH),
        Entry(("tool_use",), TOOL_CALLS),
        Entry(("content_filtered", "guardrail_intervened"), CONTENT_FILTER),
    )


TABLES: Mapping[tuple[Runtime, Protocol], Table] = {
    (Runtime.AI_SDK, Protocol.OPENAI_CHAT): Table(_chat(Entry(("stop",), STOP)), clean_end=UNKNOWN, clean_end_with_usage=UNKNOWN),
    (Runtime.AI_SDK, Protocol.OPENAI_RESPONSES): Table(
        _RESPONSES, unlisted_with_call=TOOL_CALLS, clean_end=UNKNOWN, clean_end_with_usage=UNKNOWN
    ),
    (Runtime.AI_SDK, Protocol.ANTHROPIC_MESSAGES): Table(
        (
            Entry(("end_turn", "stop_sequence", "pause_turn"), STOP),
            Entry(("max_tokens", "model_context_window_exceeded"), LENGTH),
            Entry(("tool_use",), TOOL_CALLS, with_json_response=STOP),
            Entry(("refusal",), CONTENT_FILTER),
            Entry(("compaction",), UNKNOWN),
        ),
        clean_end=UNKNOWN,
        clean_end_with_usage=UNKNOWN,
    ),
    (Runtime.AI_SDK, Protocol.GEMINI): Table(_GEMINI, clean_end=UNKNOWN, clean_end_with_usage=UNKNOWN),
    (Runtime.AI_SDK, Protocol.BEDROCK_CONVERSE): Table(
        _bedrock(Entry(("end_turn", "stop_sequence"), STOP)), clean_end=UNKNOWN, clean_end_with_usage=UNKNOWN
    ),
    (Runtime.AI_SDK, Protocol.MISTRAL): Table(
        (Entry(("stop",), STOP), Entry(("length", "model_length"), LENGTH), Entry(("tool_calls",), TOOL_CALLS)),
        clean_end=UNKNOWN,
        clean_end_with_usage=UNKNOWN,
    ),
    (Runtime.AI_SDK, Protocol.AI_SDK): Table(
        tuple(Entry((reason.value,), reason) for reason in FinishReason if reason is not ABSENT),
        clean_end=UNKNOWN,
        clean_end_with_usage=UNKNOWN,
    ),
    (Runtime.NATIVE, Protocol.OPENAI_CHAT): Table(_chat(Entry(("stop",), STOP, with_call=TOOL_CALLS))),
    (Runtime.NATIVE, Protocol.OPENAI_RESPONSES): Table(_RESPONSES, unlisted_with_call=TOOL_CALLS),
    (Runtime.NATIVE, Protocol.ANTHROPIC_MESSAGES): Table(
        (
            Entry(("end_turn", "stop_sequence", "pause_turn"), STOP),
            Entry(("max_tokens",), LENGTH),
            Entry(("tool_use",), TOOL_CALLS),
            Entry(("refusal",), CONTENT_FILTER),
        )
    ),
    (Runtime.NATIVE, Protocol.GEMINI): Table(_GEMINI, clean_end_with_usage=UNKNOWN),
    (Runtime.NATIVE, Protocol.BEDROCK_CONVERSE): Table(_bedrock(Entry(("end_turn", "stop_sequence"), STOP, with_call=TOOL_CALLS))),
}
"""(who reads, protocol) -> mapper."""


def table(protocol: Protocol, runtime: Runtime = Runtime.AI_SDK) -> Table:
    """The mapper of a protocol. Raises ``ValueError`` where the runtime has none."""
    try:
        return TABLES[runtime, protocol]
    except KeyError:
        known = ", ".join(p.value for r, p in TABLES if r is runtime)
        raise ValueError(f"the {runtime.value} runtime has no mapper for {protocol.value}; it has {known}") from None


def normalize(protocol: Protocol, raw: str | None, *, runtime: Runtime = Runtime.AI_SDK, call: Call = Call.NONE) -> Finish:
    """The word for a finish part that came, with its raw reason (None: the part names none).

    >>> normalize(Protocol.ANTHROPIC_MESSAGES, "end_turn").reason.value
    'stop'
    >>> normalize(Protocol.MISTRAL, "surprise")
    Finish(reason=<FinishReason.UNKNOWN: 'unknown'>, raw='surprise')
    """
    return Finish(table(protocol, runtime).reason(raw, call), raw)


def clean_end(protocol: Protocol, *, runtime: Runtime = Runtime.AI_SDK, usage_seen: bool = False) -> Finish:
    """The word for a stream that closed without a finish part: never a completion.

    The AI SDK makes up a finish part for it (UNKNOWN), the native runtime records none (ABSENT). Neither has a raw text.
    """
    mapper = table(protocol, runtime)
    return Finish(mapper.clean_end_with_usage if usage_seen else mapper.clean_end)
