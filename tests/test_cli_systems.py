"""Systems on the command line: what loads when, where a mistake is placed."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import attrs
import pytest
from cli_toys import SPEC
from click.testing import CliRunner, Result
from systems import CALL_SPEC, Work, service

from turnproof.checkers import engines, system_engines
from turnproof.checkers.network.explicit import check, check_variants, explore
from turnproof.checkers.own_checks import own_checks
from turnproof.checkers.report.model import AnySpec, name_of
from turnproof.checkers.verdict import Outcome
from turnproof.cli import names, write
from turnproof.cli.commands import root
from turnproof.cli.misuse import Misuse
from turnproof.specs import catalog
from turnproof.specs.classics.two_phase_commit import SPEC as COMMIT
from turnproof.specs.language import Sometimes
from turnproof.specs.system import SystemVariant

ROOT = Path(__file__).parents[1]
ENVIRONMENT = {**os.environ, "COLUMNS": "200", "NO_COLOR": "1"}


def test_every_name_in_the_catalog_is_the_name_of_what_it_loads() -> None:
    assert {name: spec.machine.name for name, spec in catalog.specifications().items()} == {n: n for n in catalog.MACHINES}
    assert {name: spec.system.name for name, spec in catalog.systems().items()} == {n: n for n in catalog.SYSTEMS}
    assert {name: spec.system.name for name, spec in catalog.large().items()} == {n: n for n in catalog.LARGE}


def test_a_large_system_is_asked_for_by_its_name() -> None:
    name = next(iter(catalog.LARGE))
    assert name in names.catalog()
    assert name not in list(names.catalog())
    assert [name_of(spec) for spec in names.some([name])] == [name]
    assert name not in {name_of(spec) for spec in names.some([])}
    assert names.system(name).system.name == name
    with pytest.raises(Misuse, match=name):
        names.some(["nothing at all"])


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


@pytest.mark.parametrize("arguments", [("explain", "session_id", "IdBound"), ("verify", "reply_waiter", "--quick")])
def test_it_stops_nobody_who_asks_for_another(planted: Path, arguments: tuple[str, ...]) -> None:
    done = turnproof(planted, *arguments)
    assert done.returncode == 0
    assert "reply_registry" not in done.stderr


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


# ── the system of the toys on the command line ──


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A catalog with the door and the system of a caller; golden numbers and pictures in a folder of their own."""
    monkeypatch.setattr(catalog, "specifications", lambda: {"front_door": SPEC})
    monkeypatch.setattr(catalog, "systems", lambda: {"call": CALL_SPEC, "commit": COMMIT})
    monkeypatch.setattr(catalog, "large", dict)
    for module in (engines, system_engines, write):
        monkeypatch.setattr(module, "manifest_path", lambda: tmp_path / "manifest.toml", raising=False)
        monkeypatch.setattr(module, "diagrams_path", lambda: tmp_path / "diagrams", raising=False)
    (tmp_path / "diagrams").mkdir()
    return tmp_path


def run(*arguments: str) -> Result:
    return CliRunner().invoke(root, list(arguments))


def complaint(*arguments: str) -> str:
    result = run(*arguments)
    assert (result.exit_code, result.stdout) == (2, "")
    (line,) = result.stderr.splitlines()
    return line.removeprefix("turnproof: ")


def test_golden_numbers_of_a_system(calls: Path) -> None:
    assert "manifest.toml has no table [call]" in run("golden", "call").stdout
    assert run("golden", "call", "--update").exit_code == 0
    assert run("golden", "call").exit_code == 0
    numbers = tomllib.loads((calls / "manifest.toml").read_text())["call"]
    assert (numbers["states"], numbers["steps"], numbers["depth"]) == (55, 100, 7)
    assert numbers["reached"] == {p.name: n for p, n in zip(_reached(), numbers["reached"].values(), strict=True)}
    (calls / "manifest.toml").write_text((calls / "manifest.toml").read_text().replace("states = 55", "states = 54"))
    result = run("golden", "call")
    assert result.exit_code == 1
    assert "states: 54 -> 55; `make golden` writes it again, for review" in result.stdout
    assert "states: 54 -> 55" in run("verify", "call", "--engine", "golden").stdout


def test_a_manifest_that_cannot_be_read_leaves_the_numbers_open_alone(calls: Path) -> None:
    (calls / "manifest.toml").write_text("[call\n")
    result = run("verify", "call", "--engine", "explicit,golden")
    assert result.exit_code == 3
    text = " ".join(result.stdout.split())
    assert "UNDETERMINED the golden numbers are unchanged" in text
    assert "manifest.toml: not TOML: " in text
    assert ", 0 violated, 1 undetermined, " in text


def _reached() -> list[Sometimes]:
    return [p for p in CALL_SPEC.properties if isinstance(p, Sometimes)]


def test_pictures_of_a_system(calls: Path) -> None:
    assert run("draw", "call").exit_code == 0
    assert sorted(p.name for p in (calls / "diagrams").iterdir()) == ["call.layout.json", "call.md", "call.svg"]
    page, picture = ((calls / "diagrams" / f"call.{kind}").read_text() for kind in ("md", "svg"))
    for said in (
        "| 2 | `service` | `Answer` | `caller` | ReplyArrived | `replies` |",
        "## Switches",
        "`the server crashes`",
    ):
        assert said in page
    for said in ("caller", "monitor: hears, and never answers", "may lose one", "AskRequested"):
        assert said in picture
    assert run("draw", "call", "--check").exit_code == 0
    (calls / "diagrams" / "call.svg").write_text(picture.replace("AskRequested", "AskRequired"))
    stale = run("draw", "call", "--check")
    assert stale.exit_code == 1
    assert "call.svg is stale: line " in stale.stdout
    (calls / "diagrams" / "call-old.svg").write_text("")
    assert "call-old.svg is not made from the table any more" in run("verify", "call", "--engine", "diagram").stdout.replace("\n", " ")


def test_without_a_power_of_the_environment(calls: Path) -> None:
    result = run("verify", "call", "--engine", "explicit,golden,variants", "--without", "The Server-crashes")
    assert "; without the server crashes" in result.stdout
    assert "not run (its numbers are those with every switch on): golden" in result.stdout
    assert "every wire and copy is used" not in result.stdout, "that is asked of the whole system"
    whole = run("verify", "call", "--engine", "explicit").stdout
    assert "every wire and copy is used" in whole
    assert complaint("verify", "call", "--without", "replys get lost") == "no switch 'replys get lost'; did you mean replies get lost?"
    assert complaint("verify", "front_door", "--without", "x") == "--without is about systems, and none is named: call, commit"
    assert complaint("verify", "commit", "--without", "x") == "--without 'x': no system that is verified here has a switch"


def test_what_is_reached_only_with_a_power_stays_open_without_it(calls: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fallen = Sometimes("the server falls", service.now.phase == Work.DOWN, requirements="R-1")
    spec = attrs.evolve(CALL_SPEC, properties=(*CALL_SPEC.properties, fallen))
    monkeypatch.setattr(catalog, "systems", lambda: {"call": spec})
    result = run("verify", "call", "--engine", "explicit", "--without", "the server crashes")
    assert result.exit_code == 3
    assert "no run of the system comes there; but without the server crashes it need not" in result.stdout.replace("\n", " ")


@pytest.mark.parametrize(
    ("budget", "said"),
    [
        (("--max-states", "10"), "the limit of 10 states ended the search at"),
        (("--max-memory", "1k"), "the memory limit of 0.001 MB ended the search at"),
        (("--max-seconds", "0.000001"), "the time limit of 1e-06 s ended the search at"),
    ],
)
@pytest.mark.usefixtures("calls")
def test_a_budget_ends_in_undetermined_and_says_what_was_covered(budget: tuple[str, str], said: str) -> None:
    result = run("verify", "call", "--engine", "explicit,golden", *budget)
    assert result.exit_code == 3
    text = " ".join(result.stdout.split())
    assert said in text
    assert "cut short (" in text
    assert "0 violated" in text


@pytest.mark.parametrize("amount", ["none", "-5M", "0", "2 TB", "1..5G"])
@pytest.mark.usefixtures("calls")
def test_no_amount_of_memory(amount: str) -> None:
    assert "is no amount of memory, expected for example 500M or 2G" in complaint("verify", "call", f"--max-memory={amount}")


def test_symmetry_names_what_it_counts(calls: Path) -> None:
    result = run("verify", "commit", "--engine", "explicit,golden", "--symmetry")
    assert "; 80 representatives, 302 steps, depth 10; " in result.stdout
    assert "one state for all that differ by an exchange of manager_1, manager_2, manager_3" in result.stdout
    assert "not run (its numbers are those of every state, not of representatives): golden" in result.stdout
    assert result.exit_code == 3, "its promise about the future stays open"
    assert complaint("verify", "call", "--symmetry") == "--symmetry: call names nothing that is interchangeable"


def test_estimate(calls: Path) -> None:
    assert run("estimate", "call").stdout == "call: 55 states, 7 steps deep; that is all of it\n"
    figures = json.loads(run("estimate", "call", "--json", "-").stdout)
    assert (figures["format"], figures["known"], figures["complete"], figures["states"]) == ("turnproof.estimate", 55, True, 55)
    assert "states, " in run("estimate", "call", "--without", "replies get lost").stdout
    assert complaint("estimate", "front_door") == "front_door is a single machine, expected a system: call, commit"
    assert complaint("estimate", "cal").startswith("no system 'cal'; did you mean call?")


def test_coverage_of_a_system(calls: Path) -> None:
    text = run("coverage", "call").stdout
    assert "caller (client)\n" in text
    assert "  AskRequested   taken" in text
    assert "one step after another" not in text
    pairs = run("coverage", "call", "--pairs").stdout
    assert "one step after another: " in pairs
    assert "  caller <- AskRequested: " in pairs
    figures = json.loads(run("coverage", "call", "--pairs", "--json", "-").stdout)
    assert ["caller <- AskRequested", "caller: reply expires"] in figures["pairs"]
    assert complaint("coverage", "front_door", "--pairs") == "--pairs is about systems, and front_door is a machine"


# ── interruption ──


@pytest.fixture
def slow(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[subprocess.Popen[str]]:
    """A walk over sixty million states that has begun."""
    pytest.importorskip("numba")
    command = [sys.executable, str(ROOT / "tests" / "cli_slow_system.py"), "verify", "commit", *request.param]
    process = subprocess.Popen(
        command, cwd=tmp_path, env=ENVIRONMENT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
    )
    try:
        assert process.stderr is not None
        for line in process.stderr:
            if re.search(r"^turnproof: explicit: states .* [\d,]+,\d{3}, ", line):
                break
        else:
            pytest.fail("it never walked")
        yield process
    finally:
        process.kill()
        process.communicate()


ALONE, BESIDE = ("--engine", "explicit"), ("--engine", "explicit,variants,golden")


@pytest.mark.parametrize(
    ("slow", "sent"),
    [(ALONE, signal.SIGTERM), pytest.param(BESIDE, signal.SIGINT, marks=pytest.mark.soak)],
    ids=["SIGTERM, in this process", "Ctrl-C, beside others"],
    indirect=["slow"],
)
def test_an_interrupt_ends_in_undetermined_with_what_was_covered(slow: subprocess.Popen[str], sent: signal.Signals) -> None:
    os.killpg(slow.pid, sent)
    out, error = slow.communicate(timeout=60)
    assert error.splitlines()[-1].startswith("turnproof: interrupted; ")
    assert slow.returncode == 3, out
    text = " ".join(out.split())
    found = re.search(r"cut short \(([\d,]+) states, [\d,]+ steps; [^)]*\): an interrupt ended the search at", text)
    assert found is not None, out
    assert 0 < int(found[1].replace(",", "")) < 61_470_720
    assert " 0 violated, " in text
    assert "HOLDS nobody commits" not in text


@pytest.mark.soak
@pytest.mark.parametrize("slow", [BESIDE], ids=["beside others"], indirect=True)
def test_kill_9_in_the_middle_leaves_the_next_run_whole(slow: subprocess.Popen[str]) -> None:
    os.killpg(slow.pid, signal.SIGKILL)
    slow.communicate(timeout=60)
    assert slow.returncode == -signal.SIGKILL
    done = subprocess.run([sys.executable, "-c", COUNTS], env=ENVIRONMENT, capture_output=True, text=True, check=False, timeout=120)
    assert (done.returncode, done.stdout) == (0, "288 compiled\n"), done.stderr


COUNTS = """
from turnproof.checkers.network.explicit import explore
from turnproof.specs.classics.two_phase_commit import SPEC
walk = explore(SPEC, properties=()).walk
print(walk.states, walk.engine)
"""


def test_after_ctrl_c_no_other_variant_is_begun(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[str] = []

    class Impatient:
        def say(self, what: str, done: int, total: int | None = None) -> None:
            calls.append(what)
            if what.startswith("states"):
                raise KeyboardInterrupt

    variant = SystemVariant(system=CALL_SPEC.system, about="", violates={CALL_SPEC.properties[0].name: 99})
    other = attrs.evolve(variant, system=attrs.evolve(CALL_SPEC.system, name="another"))
    spec = attrs.evolve(CALL_SPEC, variants=(variant, other))
    first, second = check_variants(spec, progress=Impatient())
    assert first.outcome is second.outcome is Outcome.UNDETERMINED
    assert first.detail.startswith("not broken so far; an interrupt ended the search at ")
    assert second.detail == "not begun, for an interrupt came before"


def test_ctrl_c_while_properties_are_judged_keeps_what_is_judged() -> None:
    class Impatient:
        def say(self, what: str, done: int, total: int | None = None) -> None:
            if what == "properties judged" and done == 1:
                raise KeyboardInterrupt

    graph = explore(CALL_SPEC)
    said = {v.check: v for v in check(CALL_SPEC, graph, progress=Impatient())}
    first, second, *_ = CALL_SPEC.properties
    assert said[first.name].outcome is Outcome.HOLDS
    assert (said[second.name].outcome, said[second.name].detail) == (Outcome.UNDETERMINED, "not judged, for an interrupt came before")
    assert said[second.name].requirements == second.requirements


def test_a_promise_about_the_future_needs_its_edges_in_memory_too(calls: Path) -> None:
    """The states fit, what follows which does not: the promise stays open, everything else is judged."""
    states = explore(COMMIT).walk.memory
    graph = explore(COMMIT, memory=states + 10_000)
    said = {v.check: v for v in check(COMMIT, graph)}
    assert said["nobody commits where another aborts"].outcome is Outcome.HOLDS
    ends = said["everybody ends"]
    assert ends.outcome is Outcome.UNDETERMINED
    assert re.fullmatch(r"the memory limit of [\d.]+ MB is too low: 1,097 steps take 0.0263 MB", ends.detail)
    assert {v.check: v.outcome for v in check(COMMIT, explore(COMMIT, memory=states + 10_000_000))}["everybody ends"] is Outcome.HOLDS
