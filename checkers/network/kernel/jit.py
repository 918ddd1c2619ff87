"""How functions of the kernel are compiled, and where the result is cached: beside the source if that can be written, else for the user.

Inside the kernel arrays are bare pointers: an array that is passed on costs its reference counts, and every index a look whether it
is negative. Entry points take arrays, keep them alive, and hand on :func:`pointer` of them. Nothing checks an index: what checks the
kernel is the plain walk.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import pickle
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TypeVar, cast

import numba
from llvmlite import ir  # type: ignore[import-untyped]
from numba.core import cgutils, types
from numba.core.caching import IndexDataCacheFile
from numba.extending import intrinsic

F = TypeVar("F", bound=Callable[..., Any])
HERE = Path(__file__).parent


def version() -> str:
    """A name for exactly this source: numba looks at the file of a function alone, not at the files of what it calls."""
    text = b"".join(path.read_bytes() for path in sorted(HERE.glob("*.py")))
    return hashlib.sha256(text).hexdigest()[:16]


def folders() -> Iterator[Path]:
    """Where compiled code may be kept, best first."""
    if os.environ.get("NUMBA_CACHE_DIR"):
        yield Path(os.environ["NUMBA_CACHE_DIR"])
        return
    yield HERE / "__pycache__"
    if sys.platform == "darwin":
        yield Path("~/Library/Caches/turnproof").expanduser()
    else:
        yield Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache").expanduser() / "turnproof"
    uid = os.getuid() if hasattr(os, "getuid") else 0
    yield Path(tempfile.gettempdir()) / f"turnproof-{uid}"


def writable(folder: Path) -> bool:
    """Whether files can be made there, by us and by nobody else."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        if hasattr(os, "getuid") and folder.stat().st_uid != os.getuid():
            return False
        with tempfile.TemporaryFile(dir=folder):
            return True
    except OSError:
        return False


def cache_folder() -> Path | None:
    """The folder for this version of the kernel; None if none can be written."""
    return next((folder / f"kernel-{version()}" for folder in folders() if writable(folder)), None)


_FOLDER = cache_folder()


class Kept(IndexDataCacheFile):
    """The files in which numba keeps one compiled function, each with the digest of its bytes.

    A file that is broken, or of which a part was never written, is as good as none: the function is compiled anew. So it is where
    nothing can be written any more.
    """

    def _load_index(self) -> dict[Any, str]:
        files: Any = self
        try:
            version, stamp, known = _whole(Path(files._index_path))
        except (OSError, ValueError):
            return {}
        return dict(known) if (version, stamp) == (files._version, files._source_stamp) else {}

    def _save_index(self, overloads: dict[Any, str]) -> None:
        files: Any = self
        self._keep(files._index_path, (files._version, files._source_stamp, overloads))

    def _load_data(self, name: str) -> Any:
        files: Any = self
        return _whole(Path(files._data_path(name)))

    def _save_data(self, name: str, data: object) -> None:
        files: Any = self
        self._keep(files._data_path(name), data)

    def _keep(self, path: str, thing: object) -> None:
        files: Any = self
        made = files._dump(thing)
        with files._open_for_write(path) as file:
            file.write(hashlib.sha256(made).digest() + made)

    def save(self, key: object, data: object) -> None:
        """As numba's, but a full or vanished disk costs the time of compiling again, and nothing else."""
        files: Any = super()
        with contextlib.suppress(OSError):
            files.save(key, data)


def _whole(path: Path) -> Any:
    """What a file holds. Raises ``OSError``, which numba takes for a file that is gone, also if a bit of it is wrong."""
    data = path.read_bytes()
    size = hashlib.sha256().digest_size
    if hashlib.sha256(data[size:]).digest() != data[:size]:
        raise OSError(f"{path} is broken")
    return pickle.loads(data[size:])


def _carefully(function: Any) -> Any:
    """Have numba keep the function in :class:`Kept` files."""
    cache, files = function._cache, cast(Any, Kept)
    known = cache._cache_file
    cache._cache_file = files(known._cache_path, cache._impl.filename_base, known._source_stamp)
    return function


def compiled(function: F) -> F:
    """``function`` compiled by numba, without the interpreter's lock, and cached if any folder can be written."""
    # Through Any: numba's annotations know no function that numba compiles.
    config: Any = numba.config
    njit: Any = numba.njit
    if _FOLDER is None:
        warnings.warn("no folder to cache compiled code in; it is compiled anew in every process", stacklevel=2)
        return cast(F, njit(nogil=True, error_model="numpy")(function))
    kept, config.CACHE_DIR = config.CACHE_DIR, str(_FOLDER)
    try:
        return cast(F, _carefully(njit(cache=True, nogil=True, error_model="numpy")(function)))
    finally:
        config.CACHE_DIR = kept


def _pointer(typing: Any, array: Any) -> Any:
    """The numba type of the function, and how it is compiled."""

    def build(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return context.make_array(signature.args[0])(context, builder, value=arguments[0]).data

    kinds: Any = types
    return kinds.CPointer(array.dtype)(array), build


pointer: Any = intrinsic(_pointer)
"""The address of the first element of an array whose elements lie side by side; ``p[i]`` is the i-th, unchecked."""


def _prefetch(typing: Any, address: Any, index: Any) -> Any:
    """The numba type of the function, and how it is compiled: LLVM's own instruction, for reading, to be kept."""
    kinds: Any = types
    tools: Any = cgutils

    def build(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        place = builder.bitcast(builder.gep(arguments[0], [arguments[1]]), ir.IntType(8).as_pointer())
        word = ir.IntType(32)
        kind = ir.FunctionType(ir.VoidType(), [place.type, word, word, word])
        function = tools.get_or_insert_function(builder.module, kind, "llvm.prefetch.p0i8")
        builder.call(function, [place, word(0), word(3), word(1)])
        return context.get_dummy_value()

    return kinds.void(address, kinds.int64), build


prefetch: Any = intrinsic(_prefetch)
"""``prefetch(p, i)``: the i-th element will be wanted soon."""
