"""Systems on the command line: what loads when, where a mistake is placed."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import attrs
import pytest
from cli_toys import SPEC

from turnproof.checkers.own_checks import own_checks
from turnproof.checkers.report.model import AnySpec
from turnproof.checkers.verdict import Outcome
from turnproof.cli.misuse import Misuse
from turnproof.specs import catalog

ROOT = Path(__file__).parents[1]
ENVIRONMENT = {**os.environ, "COLUMNS": "200", "NO_COLOR": "1"}


def test_every_name_in_the_catalog_is_the_name_of_what_it_loads() -> None:
    assert {name: spec.machine.name for name, spec in catalog.specifications().items()} == {n: n for n in catalog.MACHINES}
    assert {name: spec.system.name for name, spec in catalog.systems().items()} == {n: n for n in catalog.SYSTEMS}


# ── a system that is written wrongly ──


@pytest.fixture(scope="module")
def planted(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the project in which a wire of the registry is missing."""
    tree = tmp_path_factory.mktemp("tree")
    for folder in ("machines", "specs", "checkers", "src"):
        shutil.copytree(ROOT / folder, tree / folder, symlinks=True, ignore=shutil.ignore_patterns("__pycache__"))
    path = tree / "specs" / "reply_registry.py"
    text = path.read_text()
    wire = "            Wire(by_id, RegisterWait, id_1, WaitByIdRequested()),\n"
    assert wire in text
    path.write_text(text.replace(wire, ""))
    return tree


def turnproof(tree: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "turnproof", *arguments]
    environment = {**ENVIRONMENT, "PYTHONPATH": str(tree / "src")}
    return subprocess.run(command, cwd=tree, env=environment, capture_output=True, text=True, check=False, timeout=120)


def place_of(tree: Path) -> str:
    lines = (tree / "specs" / "reply_registry.py").read_text().splitlines()
    return f"turnproof: specs/reply_registry.py:{next(n for n, line in enumerate(lines, 1) if 'return System(' in line)}: "


def test_a_system_written_wrongly_is_told_with_its_own_line(planted: Path) -> None:
    done = turnproof(planted, "verify", "reply_registry")
    assert (done.returncode, done.stdout) == (2, "")
    first, second = done.stderr.splitlines()
    assert first.startswith(place_of(planted))
    assert first.endswith("write Unsent(id_1, WaitByIdRequested)")
    assert second.endswith("system reply_registry: nobody receives by_id.RegisterWait: wire it, or write Absorbs(by_id, RegisterWait)")


@pytest.mark.parametrize(
    "arguments", [("step", "reply_operation", "Evicted"), ("explain", "session_id", "IdBound"), ("verify", "reply_waiter", "--quick")]
)
def test_it_stops_nobody_who_asks_for_another(planted: Path, arguments: tuple[str, ...]) -> None:
    done = turnproof(planted, *arguments)
    assert (done.returncode, done.stderr) == (0, "")


def test_the_list_has_all_the_others(planted: Path) -> None:
    done = turnproof(planted, "list")
    assert done.returncode == 2
    assert "\nrecovery_system " in done.stdout
    assert "\nreply_registry " not in done.stdout
    assert done.stderr.startswith(place_of(planted))


def test_who_relies_on_what_does_not_load_is_told() -> None:
    class Broken(dict[str, AnySpec]):
        def get(self, name: object, default: object = None) -> Any:
            raise Misuse(f"specs/{name}.py:3: it is\nwrong")

    spec = attrs.evolve(SPEC, tests={}, elsewhere={"R-DOOR-3": "registry"})
    (verdict,) = own_checks(spec, set(), [], Broken(registry=spec))
    assert (verdict.outcome, verdict.detail) == (Outcome.VIOLATED, "R-DOOR-3: registry cannot be loaded: specs/registry.py:3: it is wrong")
