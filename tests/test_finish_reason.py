"""The mapping tables: every cell of the published tables, and what must hold of any text."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from turnproof.machines.finish_reason import (
    ABSENT,
    COMPLETION,
    CONTENT_FILTER,
    ERROR,
    LENGTH,
    STOP,
    TABLES,
    TERMINAL,
    TOOL_CALLS,
    UNKNOWN,
    Call,
    Entry,
    FinishReason,
    Protocol,
    Runtime,
    Table,
    clean_end,
    normalize,
    table,
)

CHAT, RESPONSES, ANTHROPIC, GEMINI, BEDROCK, MISTRAL, SDK = Protocol
MAPPERS = tuple(TABLES)
LISTED = sorted({raw for t in TABLES.values() for raw in t.by_raw if raw is not None})
NEAR_MISSES = st.sampled_from(LISTED).flatmap(
    lambda r: st.sampled_from([r.upper(), r.lower(), r.title(), r + " ", " " + r, r + "\0", r[:-1], r * 2])
)
RAW = st.one_of(st.none(), st.sampled_from(LISTED), NEAR_MISSES, st.text())


# ── what must hold of any text ──


@given(mapper=st.sampled_from(MAPPERS), raw=RAW, call=st.sampled_from(Call))
def test_every_raw_reason_gives_exactly_one_word_and_keeps_its_text(mapper: tuple[Runtime, Protocol], raw: str | None, call: Call) -> None:
    runtime, protocol = mapper
    finish = normalize(protocol, raw, runtime=runtime, call=call)
    assert finish.reason in FinishReason
    assert finish.reason is not ABSENT, "a finish part came"
    assert finish.raw == raw
    assert finish == normalize(protocol, raw, runtime=runtime, call=call)


@given(mapper=st.sampled_from(MAPPERS), raw=RAW, call=st.sampled_from(Call))
def test_nothing_unknown_is_a_completion(mapper: tuple[Runtime, Protocol], raw: str | None, call: Call) -> None:
    runtime, protocol = mapper
    finish = normalize(protocol, raw, runtime=runtime, call=call)
    if raw not in TABLES[runtime, protocol].by_raw:
        assert finish.reason in (UNKNOWN, TOOL_CALLS)
        assert finish.reason is UNKNOWN or (call is not Call.NONE and protocol is RESPONSES)
        assert finish.reason not in TERMINAL
        assert finish.unmapped == (raw is not None and finish.reason is UNKNOWN)


@pytest.mark.parametrize(("runtime", "protocol"), MAPPERS)
@pytest.mark.parametrize("usage_seen", [False, True])
def test_a_stream_that_only_closes_is_never_a_completion(runtime: Runtime, protocol: Protocol, usage_seen: bool) -> None:
    """R-LOOP-21 and R-LOOP-27: unknown through the AI SDK, absent (or unknown) in the native runtime, and no raw text either way."""
    finish = clean_end(protocol, runtime=runtime, usage_seen=usage_seen)
    assert finish.reason in (UNKNOWN, ABSENT)
    assert finish.raw is None
    assert not finish.unmapped
    assert (finish.reason is UNKNOWN) == (runtime is Runtime.AI_SDK or (protocol is GEMINI and usage_seen))


# ── the published tables, cell by cell ──


@pytest.mark.parametrize(
    ("protocol", "reason", "raws"),
    [
        (CHAT, STOP, "stop"),
        (CHAT, LENGTH, "length"),
        (CHAT, TOOL_CALLS, "tool_calls function_call"),
        (CHAT, CONTENT_FILTER, "content_filter"),
        (CHAT, UNKNOWN, "anything error other null"),
        (RESPONSES, LENGTH, "max_output_tokens"),
        (RESPONSES, CONTENT_FILTER, "content_filter"),
        (RESPONSES, UNKNOWN, "other stop"),
        (ANTHROPIC, STOP, "end_turn stop_sequence pause_turn"),
        (ANTHROPIC, LENGTH, "max_tokens model_context_window_exceeded"),
        (ANTHROPIC, TOOL_CALLS, "tool_use"),
        (ANTHROPIC, CONTENT_FILTER, "refusal"),
        (ANTHROPIC, UNKNOWN, "compaction stop"),
        (GEMINI, STOP, "STOP"),
        (GEMINI, LENGTH, "MAX_TOKENS"),
        (GEMINI, CONTENT_FILTER, "IMAGE_SAFETY RECITATION SAFETY BLOCKLIST PROHIBITED_CONTENT SPII"),
        (GEMINI, ERROR, "MALFORMED_FUNCTION_CALL"),
        (GEMINI, UNKNOWN, "OTHER FINISH_REASON_UNSPECIFIED LANGUAGE stop"),
        (BEDROCK, STOP, "end_turn stop_sequence"),
        (BEDROCK, LENGTH, "max_tokens"),
        (BEDROCK, TOOL_CALLS, "tool_use"),
        (BEDROCK, CONTENT_FILTER, "content_filtered guardrail_intervened"),
        (BEDROCK, UNKNOWN, "stop"),
        (MISTRAL, STOP, "stop"),
        (MISTRAL, LENGTH, "length model_length"),
        (MISTRAL, TOOL_CALLS, "tool_calls"),
        (MISTRAL, UNKNOWN, "content_filter error"),
        (SDK, UNKNOWN, "other unknown absent"),
        (SDK, ERROR, "error"),
        (SDK, TOOL_CALLS, "tool-calls"),
    ],
)
def test_the_ai_sdk_table(protocol: Protocol, reason: FinishReason, raws: str) -> None:
    for raw in raws.split():
        assert normalize(protocol, raw).reason is reason


@pytest.mark.parametrize(
    ("runtime", "protocol", "raw", "call", "reason"),
    [
        (Runtime.AI_SDK, CHAT, "stop", Call.FUNCTION, STOP),
        (Runtime.NATIVE, CHAT, "stop", Call.FUNCTION, TOOL_CALLS),
        (Runtime.NATIVE, CHAT, "stop", Call.NONE, STOP),
        (Runtime.AI_SDK, CHAT, None, Call.NONE, UNKNOWN),
        (Runtime.AI_SDK, RESPONSES, None, Call.NONE, STOP),
        (Runtime.AI_SDK, RESPONSES, None, Call.FUNCTION, TOOL_CALLS),
        (Runtime.AI_SDK, RESPONSES, "surprise", Call.FUNCTION, TOOL_CALLS),
        (Runtime.NATIVE, RESPONSES, "surprise", Call.FUNCTION, TOOL_CALLS),
        (Runtime.AI_SDK, RESPONSES, "max_output_tokens", Call.FUNCTION, LENGTH),
        (Runtime.AI_SDK, ANTHROPIC, "tool_use", Call.JSON_RESPONSE, STOP),
        (Runtime.NATIVE, ANTHROPIC, "tool_use", Call.JSON_RESPONSE, TOOL_CALLS),
        (Runtime.NATIVE, ANTHROPIC, "model_context_window_exceeded", Call.NONE, UNKNOWN),
        (Runtime.NATIVE, ANTHROPIC, None, Call.NONE, UNKNOWN),
        (Runtime.AI_SDK, GEMINI, "STOP", Call.FUNCTION, TOOL_CALLS),
        (Runtime.AI_SDK, BEDROCK, "end_turn", Call.FUNCTION, STOP),
        (Runtime.NATIVE, BEDROCK, "end_turn", Call.FUNCTION, TOOL_CALLS),
    ],
)
def test_what_a_complete_call_changes(runtime: Runtime, protocol: Protocol, raw: str | None, call: Call, reason: FinishReason) -> None:
    assert normalize(protocol, raw, runtime=runtime, call=call).reason is reason


def test_unmapped_and_absent_are_told_apart() -> None:
    """R-LOOP-31: a reason nobody maps keeps its text; a stream that only closed has none."""
    unmapped, closed = normalize(ANTHROPIC, "surprise"), clean_end(ANTHROPIC)
    assert unmapped.reason is closed.reason is UNKNOWN
    assert (unmapped.unmapped, unmapped.raw) == (True, "surprise")
    assert (closed.unmapped, closed.raw) == (False, None)


def test_only_stop_completes_and_no_reason_that_waits_is_terminal() -> None:
    assert COMPLETION == (STOP,)
    assert set(FinishReason) - set(TERMINAL) == {TOOL_CALLS, UNKNOWN, ABSENT}


# ── mistakes ──


def test_one_reason_in_two_entries_is_refused() -> None:
    with pytest.raises(ValueError, match="'stop' stands in two entries: stop and length"):
        Table((Entry(("stop",), STOP), Entry(("length", "stop"), LENGTH)))


def test_a_runtime_without_a_mapper_says_which_it_has() -> None:
    with pytest.raises(ValueError, match="the native runtime has no mapper for mistral; it has openai-chat, "):
        table(MISTRAL, Runtime.NATIVE)
