"""What is built is what is in the source folders: sdist from the checkout, wheel from that sdist, nothing downloaded."""

import shutil
import subprocess
import sys
import tarfile
import zipfile
from email.parser import Parser
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
FOLDERS = ("machines", "specs", "checkers")


def listing(folder: Path) -> set[str]:
    """Paths below the folder of the files that ship: all but caches and what the links lead to."""
    linked = [ROOT / "src" / "turnproof" / name for name in FOLDERS]
    found = (path for path in folder.rglob("*") if path.is_file() and "__pycache__" not in path.parts)
    return {str(path.relative_to(folder)) for path in found if not any(path.is_relative_to(link) for link in linked)}


def build(source: Path, out: Path, *options: str) -> None:
    """Build with what is installed here, so that nothing is downloaded."""
    command = [sys.executable, "-m", "build", "--no-isolation", *options, "--outdir", str(out), str(source)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """The sdist, and the wheel that was built from it: `python -m build` unpacks one to make the other."""
    out = tmp_path_factory.mktemp("dist")
    build(ROOT, out)
    (sdist,) = out.glob("*.tar.gz")
    (wheel,) = out.glob("*.whl")
    return sdist, wheel


def shipped(wheel: Path) -> set[str]:
    """Files of the wheel, its metadata left out."""
    with zipfile.ZipFile(wheel) as archive:
        return {name for name in archive.namelist() if ".dist-info/" not in name}


def wanted() -> set[str]:
    """Files that the wheel should hold, read off the source folders."""
    core = {f"turnproof/{folder}/{name}" for folder in FOLDERS for name in listing(ROOT / folder)}
    return core | {f"turnproof/{name}" for name in listing(ROOT / "src" / "turnproof")}


def test_the_wheel_holds_every_source_file_and_nothing_else(built: tuple[Path, Path]) -> None:
    assert shipped(built[1]) == wanted()
    assert {"turnproof/py.typed", "turnproof/machines/__init__.py", "turnproof/cli/__init__.py"} <= wanted()


@pytest.mark.parametrize(
    ("line", "instead"),
    [
        ('"machines" = "turnproof/machines"\n', ""),  # installs a top-level `machines`
        ('only-include = ["machines", "specs", "checkers", "src/turnproof"]', 'only-include = ["machines", "specs", "src/turnproof"]'),
    ],
    ids=["mapping left out", "folder left out"],
)
def test_a_planted_mistake_in_the_mapping_is_found(tmp_path: Path, line: str, instead: str) -> None:
    for name in (*FOLDERS, "src"):
        shutil.copytree(ROOT / name, tmp_path / name, symlinks=True, ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("LICENSE", "README.md"):
        shutil.copy(ROOT / name, tmp_path)
    text = (ROOT / "pyproject.toml").read_text()
    assert text.count(line) == 1
    (tmp_path / "pyproject.toml").write_text(text.replace(line, instead))
    build(tmp_path, tmp_path / "dist", "--wheel")
    (wheel,) = (tmp_path / "dist").glob("*.whl")
    assert shipped(wheel) != wanted()


def test_the_wheel_installs_one_top_level_name(built: tuple[Path, Path]) -> None:
    assert {name.split("/")[0] for name in shipped(built[1])} == {"turnproof"}


def test_the_wheel_holds_the_bytes_of_the_source(built: tuple[Path, Path]) -> None:
    with zipfile.ZipFile(built[1]) as archive:
        for folder in FOLDERS:
            packed = archive.read(f"turnproof/{folder}/__init__.py")
            assert packed == (ROOT / folder / "__init__.py").read_bytes()


def test_the_sdist_holds_each_source_file_one_time(built: tuple[Path, Path]) -> None:
    with tarfile.open(built[0]) as archive:
        names = {name.split("/", 1)[1] for name in archive.getnames()}
    linked = tuple(f"src/turnproof/{folder}" for folder in FOLDERS)
    assert not [name for name in names if name.startswith(linked)]
    for folder in (*FOLDERS, "tests"):
        assert {f"{folder}/{name}" for name in listing(ROOT / folder)} <= names
    assert {"Makefile", "LICENSE", "README.md", "requirements.lock", ".ci/venv"} <= names


def test_a_runtime_needs_attrs_alone(built: tuple[Path, Path]) -> None:
    with zipfile.ZipFile(built[1]) as archive:
        (path,) = (name for name in archive.namelist() if name.endswith(".dist-info/METADATA"))
        metadata = Parser().parsestr(archive.read(path).decode())
    required = [line for line in metadata.get_all("Requires-Dist", []) if "extra ==" not in line]
    assert [line.split(">")[0] for line in required] == ["attrs"]


def test_the_links_are_relative() -> None:
    for folder in FOLDERS:
        link = ROOT / "src" / "turnproof" / folder
        assert link.is_symlink()
        assert str(link.readlink()) == f"../../{folder}"


def test_the_lock_names_no_place_and_hashes_every_pin() -> None:
    lines = (ROOT / "requirements.lock").read_text().splitlines()
    text = "\n".join(line for line in lines if not line.lstrip().startswith("#"))
    assert "://" not in text
    assert "/" not in text
    pins = [block for block in text.replace("\\\n", " ").splitlines() if "==" in block.split(";")[0]]
    assert len(pins) > 40
    assert all("--hash=sha256:" in pin for pin in pins)
