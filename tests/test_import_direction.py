"""The import contracts of pyproject.toml can fail, also for the packages that are links, and so can the ban of bare names.

`make check` runs the contracts on the project itself; here they run on copies with one bad import planted.
"""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
SCRIPTS = Path(sys.executable).parent


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """The packages and their links, without caches, in a folder that a test may spoil."""
    for name in ("machines", "specs", "checkers", "src"):
        shutil.copytree(ROOT / name, tmp_path / name, symlinks=True, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    return tmp_path


def contracts(folder: Path) -> tuple[int, str]:
    """Exit status and output of import-linter on the packages of that folder."""
    done = subprocess.run(
        [SCRIPTS / "lint-imports", "--no-cache", "--no-logo"],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(folder / "src")},
        capture_output=True,
        text=True,
        check=False,
    )
    return done.returncode, done.stdout + done.stderr


@pytest.mark.parametrize(
    ("place", "module"),
    [
        ("machines", "turnproof.specs"),
        ("machines", "turnproof.checkers"),
        ("machines", "turnproof.shell"),
        ("machines", "turnproof.traces"),
        ("machines", "z3"),
        ("specs", "turnproof.checkers"),
        ("specs", "turnproof.shell"),
        ("specs", "turnproof.cli"),
        ("checkers", "turnproof.cli"),
        ("src/turnproof/shell", "turnproof.specs"),
        ("src/turnproof/shell", "turnproof.checkers"),
        ("src/turnproof/shell", "click"),
    ],
)
def test_a_planted_import_breaks_a_contract(copy: Path, place: str, module: str) -> None:
    (copy / place / "planted.py").write_text(f'"""Planted."""\n\nimport {module}\n')
    importer = ".".join(("turnproof", *Path(place).parts[-1:], "planted"))
    status, output = contracts(copy)
    assert status == 1, output
    assert f"{importer} -> {module} (l.3)" in output


def test_the_copy_as_it_is_keeps_the_contracts(copy: Path) -> None:
    status, output = contracts(copy)
    assert status == 0, output
    assert "0 broken" in output


@pytest.mark.parametrize("name", ["machines", "specs", "checkers"])
def test_a_bare_folder_name_is_banned(name: str) -> None:
    done = subprocess.run(
        [SCRIPTS / "ruff", "check", "--no-cache", "--stdin-filename", "tests/planted.py", "-"],
        input=f"import {name}\nfrom {name}.planted import X\n\nprint({name}, X)\n",
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    assert done.stdout.count("TID251") == 2
