"""A project that uses the shell is clean under mypy --strict, and its mistakes are named where they are."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
CONSUMER = ROOT / "tests" / "data" / "consumer.py"


def test_a_consumer_is_clean_under_strict(tmp_path: Path) -> None:
    text = CONSUMER.read_text(encoding="utf-8")
    (tmp_path / "consumer.py").write_text(text, encoding="utf-8")
    (tmp_path / "mypy.ini").write_text("[mypy]\nstrict = true\n", encoding="utf-8")
    cache = ROOT / ".mypy_cache" / "consumer"
    done = subprocess.run(
        [sys.executable, "-m", "mypy", "--config-file", "mypy.ini", "--cache-dir", str(cache), "consumer.py"],
        cwd=tmp_path, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.stdout == "Success: no issues found in 1 source file\n", done.stdout + done.stderr


def test_the_consumer_marks_its_mistakes() -> None:
    """Under --strict an ignored line without an error is an error itself; so each of these is one that mypy names."""
    assert len(re.findall(r"# type: ignore\[arg-type\]$", CONSUMER.read_text(encoding="utf-8"), re.MULTILINE)) == 5
