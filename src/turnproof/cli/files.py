"""Files named on the command line: inputs are looked at before an engine reads them, outputs are tried before anything long runs."""

from __future__ import annotations

import contextlib
import gzip
import os
import shutil
import stat
import sys
import tempfile
import zlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import BinaryIO

import attrs

from turnproof.checkers.written import nearest
from turnproof.cli.misuse import Misuse
from turnproof.cli.output import say

BLOCK = 1 << 20
"""Bytes read at a time while an input is looked at."""
PACKED = {b"BZh": "bzip2", b"\xfd7zXZ": "xz", b"\x28\xb5\x2f\xfd": "zstd", b"PK\x03\x04": "zip", b"\x1f\x9d": "compress"}
"""Magic number -> a way of packing that is not read."""
GZIP = b"\x1f\x8b"
STDOUT = "-"
STDIN = "-"
STDIN_SHOWN = "<stdin>"
"""What messages call standard input."""


def readable(path: Path, what: str, *, packed: bool) -> Path:
    """``path`` if it is a text file with something in it, plain or, if ``packed``, gzip. Raises :class:`Misuse`.

    ``what`` says what was expected, for the message: ``a certificate (JSON)``.
    """
    try:
        kind = path.stat().st_mode
    except OSError as error:
        raise Misuse(f"{path}: {_reason(error)}, expected {what}{_near_file(path)}") from None
    if stat.S_ISDIR(kind):
        raise Misuse(f"{path}: is a directory, expected {what}")
    if not stat.S_ISREG(kind):
        return path
    try:
        _look(path, what, packed)
    except (OSError, EOFError, zlib.error) as error:
        raise Misuse(
            f"{path}: the gzip data is broken ({_reason(error)}), expected {what}" if _is_gzip(path) else f"{path}: {_reason(error)}"
        ) from None
    return path


def _look(path: Path, what: str, packed: bool) -> None:
    with path.open("rb") as file:
        head = file.read(8)
    if not head:
        raise Misuse(f"{path}: is empty, expected {what}")
    how = next((name for magic, name in {**PACKED, **({} if packed else {GZIP: "gzip"})}.items() if head.startswith(magic)), None)
    if how is not None:
        raise Misuse(f"{path}: is packed with {how}, which is not read; expected {what}, {'plain or gzip' if packed else 'not packed'}")
    if packed and path.suffix == ".gz" and not head.startswith(GZIP):
        raise Misuse(f"{path}: is named .gz but is not gzip data; expected {what}")
    anything = False
    for at, block in _blocks(path):
        anything = anything or bool(block.strip())
        bad = block.find(b"\0")
        if bad >= 0:
            raise Misuse(f"{path}: is not text (a NUL byte at offset {at + bad}), expected {what}")
    if not anything:
        raise Misuse(f"{path}: holds only white space, expected {what}")


def _blocks(path: Path) -> Iterator[tuple[int, bytes]]:
    with gzip.open(path) if _is_gzip(path) else path.open("rb") as file:
        at = 0
        while block := file.read(BLOCK):
            yield at, block
            at += len(block)


def _is_gzip(path: Path) -> bool:
    with contextlib.suppress(OSError), path.open("rb") as file:
        return file.read(2) == GZIP
    return False


def _reason(error: Exception) -> str:
    text = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
    return (text[:1].lower() + text[1:] if text[1:2].islower() else text) or type(error).__name__


def _near_file(path: Path) -> str:
    with contextlib.suppress(OSError):
        return nearest(path.name, (p.name for p in path.parent.iterdir()))
    return ""


@attrs.define
class Spooled:
    """Inputs that can be read again and again: pipes are copied to files first. ``shown`` gives texts the names that were given."""

    paths: list[Path] = attrs.field(factory=list)
    names: dict[str, str] = attrs.field(factory=dict)

    def shown(self, text: str) -> str:
        """``text`` with every copy named as its original."""
        for copy, name in self.names.items():
            text = text.replace(copy, name)
        return text


@contextlib.contextmanager
def spooled(paths: Sequence[Path], what: str) -> Iterator[Spooled]:
    """``paths``, of which ``-`` is standard input, as files for the length of a block: a log is read more than once.

    The copies go to the folder for temporary files (``TMPDIR``), so memory stays flat. Raises :class:`Misuse`.
    """
    made = Spooled()
    if [str(path) for path in paths].count(STDIN) > 1:
        raise Misuse(f"{STDIN}: standard input is given twice")
    with tempfile.TemporaryDirectory(prefix="turnproof-") as folder:
        for number, path in enumerate(paths):
            if str(path) != STDIN and not _is_pipe(path):
                made.paths.append(path)
                continue
            name = STDIN_SHOWN if str(path) == STDIN else str(path)
            copy = Path(folder) / str(number) / Path(name).name
            made.names[str(copy)] = name
            try:
                copy.parent.mkdir()
                with sys.stdin.buffer if str(path) == STDIN else path.open("rb") as source, copy.open("wb") as target:
                    _copy(source, target, name, what)
            except OSError as error:
                raise Misuse(f"{name}: {_reason(error)}") from None
            made.paths.append(copy)
        yield made


def _is_pipe(path: Path) -> bool:
    with contextlib.suppress(OSError):
        kind = path.stat().st_mode
        return not stat.S_ISREG(kind) and not stat.S_ISDIR(kind)
    return False


def _copy(source: BinaryIO, target: BinaryIO, name: str, what: str) -> None:
    first = source.read(BLOCK)
    if b"\0" in first and not first.startswith((GZIP, *PACKED)):  # before a device that never ends fills the disk
        raise Misuse(f"{name}: is not text (a NUL byte at offset {first.index(0)}), expected {what}")
    target.write(first)
    shutil.copyfileobj(source, target, BLOCK)


@attrs.frozen
class Output:
    """A file that will be written once, whole or not at all. ``option`` names it in messages."""

    path: Path
    option: str

    @property
    def to_stdout(self) -> bool:
        """Whether the text goes to standard output in place of a file."""
        return str(self.path) == STDOUT

    @property
    def special(self) -> bool:
        """A device or a pipe, which must be written to and never be replaced."""
        return self.path.exists() and not self.path.is_file()

    def check(self) -> None:
        """Raise :class:`Misuse` if the file cannot be written. Leaves nothing behind."""
        if self.to_stdout:
            return
        target = self.path.resolve()
        if target.is_dir():
            raise Misuse(f"{self.option} {self.path}: is a directory, expected the name of a file")
        if self.special:
            if not os.access(target, os.W_OK):
                raise Misuse(f"{self.option} {self.path}: permission denied")
            return
        if not target.parent.is_dir():
            raise Misuse(f"{self.option} {self.path}: there is no directory {target.parent}{_near_file(target.parent)}")
        if target.exists() and not os.access(target, os.W_OK):
            raise Misuse(f"{self.option} {self.path}: permission denied")
        try:
            handle, name = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name[:40]}.")
        except OSError as error:
            raise Misuse(f"{self.option} {self.path}: no file can be made in the directory {target.parent} ({_reason(error)})") from None
        os.close(handle)
        os.unlink(name)

    def write(self, text: str) -> None:
        """Write the text; a reader sees the old file or the whole new one. Raises :class:`Misuse`."""
        data = text.encode("utf-8", "replace")
        try:
            if self.to_stdout:
                say(text.removesuffix("\n"))
            elif self.special:
                self.path.write_bytes(data)
            else:
                _replace(self.path.resolve(), data)
        except OSError as error:
            raise Misuse(f"{self.option} {self.path}: {_reason(error)}") from None


def _replace(target: Path, data: bytes) -> None:
    handle, name = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name[:40]}.")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
        mask = os.umask(0)
        os.umask(mask)
        os.chmod(name, target.stat().st_mode & 0o777 if target.exists() else 0o666 & ~mask)
        os.replace(name, target)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(name)
        raise


def check_outputs(outputs: Sequence[Output]) -> None:
    """Raise :class:`Misuse` if one cannot be written, or two are the same file."""
    seen: dict[str, str] = {}
    for output in outputs:
        output.check()
        key = STDOUT if output.to_stdout else str(output.path.resolve())
        if key in seen and not output.special:
            raise Misuse(f"{output.option} {output.path}: {seen[key]} names the same file")
        seen[key] = output.option


def check_directory(path: Path, option: str) -> None:
    """Make the directory where it is missing. Raises :class:`Misuse` if it is none, or cannot be written to."""
    try:
        path.mkdir(parents=True, exist_ok=True)
    except FileExistsError:
        raise Misuse(f"{option} {path}: is a file, expected a directory") from None
    except OSError as error:
        raise Misuse(f"{option} {path}: the directory cannot be made ({_reason(error)})") from None
    try:
        handle, name = tempfile.mkstemp(dir=path, prefix=".turnproof.")
    except OSError as error:
        raise Misuse(f"{option} {path}: no file can be made in this directory ({_reason(error)})") from None
    os.close(handle)
    os.unlink(name)


__all__ = ["STDOUT", "Output", "Spooled", "check_directory", "check_outputs", "readable", "spooled"]
