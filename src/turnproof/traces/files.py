"""Files of lines: plain, gzip, or a log rotated into several, read some lines at a time so that memory stays flat."""

from __future__ import annotations

import gzip
import io
import zlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, BinaryIO, cast

import attrs

from turnproof.traces.line import LineProblem, TraceError, decode

BLOCK = 1 << 18
"""Bytes read at a time."""
LONGEST = 1 << 24
"""Bytes of one line; a file with a longer one is no log."""
GZIP = b"\x1f\x8b"
BOM = b"\xef\xbb\xbf"


@attrs.frozen
class Lines:
    """Some whole lines of one file, each with its line feed. ``torn`` is set on the last, if the file ends in the middle of a line."""

    path: Path
    first: int
    """Number of the first line, from 1."""
    data: list[bytes]
    torn: bytes = b""


def lines_of(path: Path) -> Iterator[Lines]:
    """The file, some lines at a time. Raises :class:`TraceError`."""
    number, nothing = 1, True
    with _open(path) as file:
        while data := _some(path, file, number):
            if number == 1:
                data[0] = data[0].removeprefix(BOM)
            last = b"" if data[-1].endswith(b"\n") else data.pop()
            yield Lines(path, number, data)
            number += len(data)
            nothing = nothing and not any(line.strip() for line in (*data, last))
            if last.strip():
                yield _last(path, number, last)
    if nothing:
        raise TraceError(f"{path}: is empty, expected one JSON object a line")


def _last(path: Path, number: int, rest: bytes) -> Lines:
    """What stands behind the last line feed: a whole line that lacks only that, or a torn one."""
    try:
        decode(rest)
    except LineProblem:
        return Lines(path, number, [], torn=rest)
    return Lines(path, number, [rest + b"\n"])


def _open(path: Path) -> BinaryIO:
    try:
        with path.open("rb") as file:
            packed = file.read(2) == GZIP
        return cast(BinaryIO, io.BufferedReader(cast(Any, gzip.open(path)), BLOCK)) if packed else path.open("rb")
    except OSError as error:
        raise TraceError(f"{path}: {_reason(error)}, expected a log (JSON lines)") from None


def _some(path: Path, file: BinaryIO, number: int) -> list[bytes]:
    try:
        if number == 1:
            return _first(path, file)
        return file.readlines(BLOCK)
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        early = "the gzip data ends early" if isinstance(error, EOFError) else f"the gzip data is broken ({_reason(error)})"
        raise TraceError(f"{path}:{number}: {early} some lines after this one; expected the whole file") from None
    except OSError as error:
        raise TraceError(f"{path}: {_reason(error)}") from None


def _first(path: Path, file: BinaryIO) -> list[bytes]:
    """The first line, apart from the others: something that is no log may have no line feed at all, and must not be read whole."""
    line = file.readline(LONGEST)
    if len(line) == LONGEST:
        raise TraceError(f"{path}:1: the line is longer than {LONGEST >> 20} MiB; expected one JSON object a line")
    return [line] if line else []


def _reason(error: Exception) -> str:
    text = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
    return text[:1].lower() + text[1:] if text[1:2].islower() else text or type(error).__name__


def in_order(paths: Sequence[Path]) -> tuple[Path, ...]:
    """The files of a rotated log, oldest first, by the time of the first line; as they were given if one has none."""
    starts = [_start(path) for path in paths]
    if len(paths) < 2 or any(start is None for start in starts):
        return tuple(paths)
    return tuple(
        path for _, _, path in sorted((cast(float, start), n, path) for n, (start, path) in enumerate(zip(starts, paths, strict=True)))
    )


def _start(path: Path) -> float | None:
    for some in lines_of(path):
        try:
            found = decode(some.data[0] if some.data else some.torn)
        except LineProblem:
            return None
        ts = found.get("ts") if isinstance(found, dict) else None
        return float(ts) if isinstance(ts, (int, float)) and not isinstance(ts, bool) else None
    return None


__all__ = ["Lines", "in_order", "lines_of"]
