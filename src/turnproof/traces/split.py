"""Splits a line into what differs from line to line (seq, ts, key) and the rest, without decoding the rest.

The rest of a line decides what the line means, and it recurs: a replay looks it up as bytes and decodes it once. Where the fields stand in
the order in which the writer puts them, a line is split at its first three commas (:class:`Style`); in any other order ``msgspec`` takes
it apart, where it is installed (:func:`parts`).
"""

from __future__ import annotations

import re
from collections.abc import Callable
from importlib import import_module
from typing import Any

import attrs

from turnproof.traces.line import VERSION

Parts = tuple[str, bytes, bytes, str, str]
"""event, args, post, answer and machine of a line, args and post as they stand in it."""
Text = bytes | Parts
"""A line without seq, ts and key: the rest of its bytes, or its parts if they stood in another order."""

NUMBER = b"0123456789.eE+-"
"""What a time is written with. It is looked at no closer, for it is not judged."""


@attrs.frozen
class Style:
    """How a writer spaces a line: ``head`` begins it, ``ts`` begins the second piece, and ``name`` matches the third.

    A line in this style is ``head`` + seq, ``ts`` + a number, the key, and the rest, with commas between.
    """

    head: bytes
    ts: bytes
    name: re.Pattern[bytes]

    def key(self, name: bytes) -> str | None:
        """The key that the third piece of a line names; None if it is not plainly written."""
        found = self.name.fullmatch(name)
        try:
            return None if found is None else found[1].decode()
        except UnicodeDecodeError:
            return None


TIGHT = Style(b'{"seq":', b'"ts":', re.compile(rb'"key":"([^"\\\x00-\x1f]*)"'))
SPACED = Style(b'{"seq": ', b' "ts": ', re.compile(rb' "key": "([^"\\\x00-\x1f]*)"'))


def style_of(line: bytes) -> Style:
    """The style of a log, by its first line."""
    return SPACED if line.startswith(SPACED.head) else TIGHT


def usual(line: bytes, style: Style, seq: int, key: str) -> tuple[bytes, bytes] | None:
    """The third piece and the rest, if the line is written in ``style`` and says ``seq`` and ``key`` there; else None."""
    pieces = line.split(b",", 3)
    if len(pieces) < 4:
        return None
    head, ts, name, text = pieces
    plain = head == style.head + b"%d" % seq and ts.rstrip(NUMBER) == style.ts and style.key(name) == key
    return (name, text) if plain else None


def _parts_decoder() -> Callable[[bytes], Any] | None:
    try:
        msgspec = import_module("msgspec")
    except ImportError:
        return None
    raw = msgspec.Raw
    fields: list[tuple[str, object] | tuple[str, object, object]] = [("seq", int), ("key", str), ("event", str)]
    fields += [("ts", float | None, None), ("args", raw, raw(b"{}")), ("post", raw, raw(b"{}"))]
    fields += [("answer", str, ""), ("machine", str, ""), ("version", int, VERSION)]
    line = msgspec.defstruct("Line", fields, forbid_unknown_fields=True, gc=False)
    decoder: Callable[[bytes], Any] = msgspec.json.Decoder(line).decode
    return decoder


_decode_parts = _parts_decoder()


def parts(line: bytes) -> tuple[int, str, Parts] | None:
    """seq, key and the rest of a line in any order; None if it must be decoded whole, because something about it is not as usual."""
    if _decode_parts is None:
        return None
    try:
        found = _decode_parts(line)
    except (ValueError, RecursionError):
        return None
    if found.seq < 0 or found.version != VERSION:
        return None
    return found.seq, found.key, (found.event, bytes(found.args), bytes(found.post), found.answer, found.machine)


__all__ = ["NUMBER", "SPACED", "TIGHT", "Parts", "Style", "Text", "parts", "style_of", "usual"]
