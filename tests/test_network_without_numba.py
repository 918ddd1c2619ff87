"""Where numba is missing, and where compiled code can be kept."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path
from typing import Any

import pytest
from systems import CALL_SPEC, Caller, caller

from turnproof.checkers.network import plain
from turnproof.checkers.network.explicit import check, explore
from turnproof.checkers.network.kernel import jit
from turnproof.checkers.verdict import Outcome
from turnproof.specs.language import LeadsTo
from turnproof.specs.system import SystemSpec


def told(spec: SystemSpec) -> list[tuple[str, Outcome, str, int]]:
    graph = explore(spec)
    return [(v.check, v.outcome, v.detail, v.story.length if v.story else 0) for v in check(spec, graph)]


def test_without_numba_the_answers_are_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    broken = LeadsTo("answered", caller.now.phase == Caller.WAITING, caller.now.phase == Caller.ANSWERED, requirements=())
    spec = SystemSpec(system=CALL_SPEC.system, requirements=CALL_SPEC.requirements, properties=(*CALL_SPEC.properties, broken))
    with_numba = told(spec)
    assert explore(spec).walk.engine == "compiled"
    real = importlib.util.find_spec

    def none(name: str, *given: Any) -> Any:
        return None if name == "numba" else real(name, *given)

    monkeypatch.setattr(importlib.util, "find_spec", none)
    assert explore(spec).walk.engine == "plain Python"
    assert told(spec) == with_numba


def test_an_engine_that_does_not_exist() -> None:
    with pytest.raises(KeyError, match="no engine 'fast'; engines: auto, compiled, plain"):
        explore(CALL_SPEC, engine="fast")


def test_compiled_code_is_kept_where_it_can_be(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.delenv("NUMBA_CACHE_DIR", raising=False)
    tree = tmp_path / "tree"
    monkeypatch.setattr(jit, "HERE", tree)
    assert jit.cache_folder() == tree / "__pycache__" / f"kernel-{jit.version()}"
    # A file where the folder would be: as unwritable as a read-only tree is, also for root.
    monkeypatch.setattr(jit, "HERE", tmp_path / "file")
    (tmp_path / "file").write_text("")
    found = jit.cache_folder()
    assert found is not None
    assert found.parent == tmp_path / "cache" / "turnproof" or found.parent.name == "turnproof"
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path / "mine"))
    assert jit.cache_folder() == tmp_path / "mine" / f"kernel-{jit.version()}"
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path / "file"))
    assert jit.cache_folder() is None


def test_where_nothing_can_be_kept_it_is_compiled_all_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jit, "_FOLDER", None)

    def double(x: int) -> int:
        return 2 * x

    with pytest.warns(UserWarning, match="no folder to cache compiled code in"):
        compiled = jit.compiled(double)
    assert compiled(21) == 42


def test_another_source_is_another_cache(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for path in jit.HERE.glob("*.py"):
        (tmp_path / path.name).write_bytes(path.read_bytes())
    monkeypatch.setattr(jit, "HERE", tmp_path)
    same = jit.version()
    (tmp_path / "step.py").write_text("# changed\n")
    assert jit.version() != same


def triple(x: int) -> int:
    return 3 * x


@pytest.fixture
def kept(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A folder with a compiled function in it."""
    monkeypatch.setattr(jit, "_FOLDER", tmp_path)
    assert jit.compiled(triple)(14) == 42
    return tmp_path


def found_again() -> bool:
    """Whether the function is taken from the folder; it must work in any case."""
    made: Any = jit.compiled(triple)
    assert made(14) == 42
    return bool(sum(made.stats.cache_hits.values()))


@pytest.mark.parametrize(
    ("kind", "broken"),
    [("nbi", lambda data: data[:50]), ("nbc", lambda data: b""), ("nbc", lambda data: data[:-9] + bytes([data[-9] ^ 1]) + data[-8:])],
    ids=["an index cut off", "empty code", "a wrong bit"],
)
def test_a_broken_file_is_compiled_anew_and_mended(kept: Path, kind: str, broken: Any) -> None:
    assert found_again()
    (path,) = kept.rglob(f"*.{kind}")
    path.write_bytes(broken(path.read_bytes()))
    assert not found_again(), "a single wrong bit is noticed"
    assert found_again()


def test_a_folder_that_vanishes_or_is_full_costs_nothing_but_time(kept: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(jit.Kept, "_save_data", full)
    for path in kept.rglob("*.nb?"):
        path.unlink()
    assert not found_again()
    assert not found_again()


def test_the_plain_walk_keeps_to_a_memory_limit_and_says_how_far_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    held = iter(range(0, 10**9, 1_000_000))
    monkeypatch.setattr(plain, "peak", lambda: next(held))
    said: list[str] = []

    class Heard:
        def say(self, what: str, done: int, total: int | None = None) -> None:
            said.append(what)

    walk = explore(CALL_SPEC, engine="plain", memory=5_000_000, progress=Heard()).walk
    assert (walk.complete, walk.why) == (False, "the memory limit of 5 MB")
    assert walk.states > 1
    assert re.fullmatch(r"states \(depth 1, \d+ waiting, [\d,]+ states/s, \d+ MB\)", said[0])
    monkeypatch.undo()
    assert plain.peak() > 10_000_000
