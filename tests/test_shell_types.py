"""A project that uses the shell is clean under mypy --strict, and its mistakes are named where they are."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
MISTAKES = {"consumer": 6, "consumer_runner": 4}
"""Consumer -> the mistakes of its calls, which mypy must name."""


def source(name: str) -> str:
    return (ROOT / "tests" / "data" / f"{name}.py").read_text(encoding="utf-8")


@pytest.mark.parametrize("name", MISTAKES)
def test_a_consumer_is_clean_under_strict(name: str, tmp_path: Path) -> None:
    text = source(name)
    (tmp_path / "consumer.py").write_text(text, encoding="utf-8")
    (tmp_path / "mypy.ini").write_text("[mypy]\nstrict = true\n", encoding="utf-8")
    cache = ROOT / ".mypy_cache" / "consumer"
    done = subprocess.run(
        [sys.executable, "-m", "mypy", "--config-file", "mypy.ini", "--cache-dir", str(cache), "consumer.py"],
        cwd=tmp_path, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.stdout == "Success: no issues found in 1 source file\n", done.stdout + done.stderr


@pytest.mark.parametrize(("name", "count"), MISTAKES.items())
def test_the_consumer_marks_its_mistakes(name: str, count: int) -> None:
    """Under --strict an ignored line without an error is an error itself; so each of these is one that mypy names."""
    assert len(re.findall(r"# type: ignore\[(?:arg-type|dict-item)\]$", source(name), re.MULTILINE)) == count
