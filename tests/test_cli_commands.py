"""The commands as a person uses them: what they print, what they write, and one line for every mistake."""

from __future__ import annotations

import json
import os
import re
import shlex
import sys
from collections.abc import Mapping
from pathlib import Path
from xml.etree import ElementTree as ET

import attrs
import click
import jsonschema
import pytest
from cli_toys import HOLDING, SPEC, UNDETERMINED, VIOLATED, engine, says
from click.testing import CliRunner, Result
from hypothesis import given, settings
from hypothesis import strategies as st
from systems import CALL_SPEC

from turnproof import __version__
from turnproof.checkers import verify as verify_module
from turnproof.checkers.report import schema
from turnproof.checkers.verdict import Verdict
from turnproof.cli import STATUS, main, verify
from turnproof.cli.commands import root
from turnproof.cli.misuse import Misuse
from turnproof.machines.kernel import TableError
from turnproof.specs import catalog
from turnproof.specs.language import Spec

RUNNER = CliRunner()


def run(*arguments: object) -> Result:
    """Run a command; whatever it does, it ends with an exit status and no exception."""
    result = RUNNER.invoke(root, [str(a) for a in arguments])
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
    assert "Traceback" not in result.output
    assert result.exit_code in STATUS
    return result


def complaint(*arguments: object) -> str:
    """The one line of a command that was used wrongly."""
    result = run(*arguments)
    assert result.exit_code == 2
    assert result.stdout == ""
    (line,) = result.stderr.splitlines()
    assert line.startswith("turnproof: ")
    return line.removeprefix("turnproof: ")


@pytest.fixture
def doors(monkeypatch: pytest.MonkeyPatch) -> None:
    """A catalog with the door alone, and engines that find what :data:`cli_toys.HOLDING` says."""
    monkeypatch.setattr(catalog, "specifications", lambda: {"front_door": SPEC})
    monkeypatch.setattr(catalog, "systems", dict)
    monkeypatch.setattr(catalog, "large", dict)
    find(monkeypatch, HOLDING)


def find(monkeypatch: pytest.MonkeyPatch, verdicts: tuple[Verdict, ...]) -> None:
    monkeypatch.setattr(verify_module, "ENGINES", {"explicit": says(verdicts)})
    monkeypatch.setattr(verify, "certificates", lambda specs, wanted: [None for _ in specs])


# ── help and names ──


@pytest.mark.parametrize("name", list(root.commands))
def test_every_command_has_help_with_examples_that_parse(name: str) -> None:
    result = run(name, "--help")
    assert result.exit_code == 0
    assert f"Usage: turnproof {name}" in result.stdout
    examples = [line.strip() for line in result.stdout.partition("Examples:")[2].splitlines() if line.strip()]
    assert examples
    for line in examples:
        piped = re.split(r"  +|[|]", line)
        words = shlex.split(next((part for part in piped if part.strip().startswith("turnproof ")), line))
        assert words[:2] == ["turnproof", name]
        assert run(*words[1:], "--help").exit_code == 0, line


def test_the_group_names_its_commands_and_exit_statuses() -> None:
    text = run("--help").stdout
    assert all(f"\n  {name} " in text for name in root.commands)
    assert "3 undetermined" in text
    assert run("--version").stdout == f"turnproof {__version__}\n"


def test_no_command_shows_the_help() -> None:
    result = run()
    assert result.exit_code == 2
    assert "Commands:" in result.stderr


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["verfy"], "No such command 'verfy'. Did you mean 'verify'? `turnproof --help` shows how it is used"),
        (["verify", "--jsno", "x"], "No such option '--jsno'. Did you mean"),
        (["verify", "--steps", "0"], "Invalid value for '--steps': 0 is not in the range x>=1; `turnproof verify --help`"),
        (["verify", "--steps", "many"], "Invalid value for '--steps': 'many' is not a valid integer"),
        (["verify", "--json"], "Option '--json' requires an argument"),
        (["explain"], "Missing argument 'MACHINE'; `turnproof explain --help`"),
        (["step", "front_door"], "Missing argument 'EVENT...'"),
        (["list", "more"], "Got unexpected extra argument"),
        (["verify", "frnt_door"], "no machine 'frnt_door'; did you mean front_door?"),
        (["verify", "zzz"], "no machine 'zzz'; there are: front_door"),
        (["verify", ""], "no machine ''; there are: front_door"),
        (["explain", "zzz"], "no machine 'zzz'; there are: front_door"),
        (["explain", "front_door", "opend"], "front_door has no event 'opend'; did you mean Opened?"),
        (["explain", "front_door", "R-DOOR-9"], "no requirement 'R-DOOR-9'; did you mean R-DOOR-3?"),
        (["coverage", "zzz"], "no machine 'zzz'; there are: front_door"),
        (["draw", "zzz"], "no machine 'zzz'; there are: front_door"),
        (["golden", "zzz"], "no machine 'zzz'; there are: front_door"),
        (["step", "zzz", "x"], "no machine 'zzz'; there are: front_door"),
        (["replay", "zzz", "x"], "no machine 'zzz'; there are: front_door"),
        (["verify", "--engine", "explict"], "no engine 'explict'; did you mean explicit?"),
        (["verify", "--engine", ","], "--engine needs a name: symbolic, explicit"),
        (["verify", "--engine", "explicit", "--quick"], "--quick and --engine both choose engines; keep one"),
        (
            ["step", "front_door", "Opened(ann, lft)"],
            "event 1, 'Opened(ann, lft)': hand is 'lft', expected one of left, right; did you mean left?",
        ),
        (["step", "front_door", "Slammed", "opend"], "event 2, 'opend': front_door has no event 'opend'; did you mean Opened?"),
    ],
)
@pytest.mark.usefixtures("doors")
def test_a_wrong_word_gets_one_line(arguments: list[str], said: str) -> None:
    assert said in complaint(*arguments)


@pytest.mark.usefixtures("doors")
@pytest.mark.parametrize("name", ["front_door", "FrontDoor", "front-door", "FRONT_DOOR"])
def test_a_machine_by_any_spelling(name: str) -> None:
    assert run("step", name, "slammed").stdout.startswith("front_door: ")


def test_a_system_is_no_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(catalog, "specifications", lambda: {"front_door": SPEC})
    monkeypatch.setattr(catalog, "systems", lambda: {CALL_SPEC.system.name: CALL_SPEC})
    name = CALL_SPEC.system.name
    for command in (["explain", name], ["step", name, "x"], ["mutants", name]):
        assert complaint(*command) == f"{name} is a system of machines, expected a machine: front_door"
    assert f"\n{name}  " in run("list").stdout


@pytest.mark.usefixtures("doors")
def test_a_requirement_in_words() -> None:
    assert run("explain", "front_door", "r-door-1").stdout.splitlines()[:5] == [
        "R-DOOR-1: A locked door stays shut.",
        "",
        "  Step: a locked door refuses to open",
        "      harm: burglars",
        "  Always: an open door has an owner",
    ]


def test_a_requirement_names_the_designs_that_broke_it() -> None:
    text = run("explain", "reply_registry", "R-REPLY-2").stdout
    assert "shortest counterexample 4: the slot knows who holds it" in text
    assert "turnproof explain reply_slot R-REPLY-2" in run("explain", "reply_operation", "R-REPLY-2").stdout


# ── list, step ──


@pytest.mark.usefixtures("doors")
def test_list() -> None:
    assert run("list").stdout.splitlines()[1].split() == ["front_door", "machine", "1", "8", "4", "1", "3", "3", "0"]
    (facts,) = json.loads(run("list", "--json").stdout)["machines"]
    assert (facts["name"], facts["rows"], facts["requirements"]) == ("front_door", 8, 3)


@pytest.mark.usefixtures("doors")
def test_step_shows_answer_row_changes_and_effects() -> None:
    assert run("step", "front_door", "locked(1, no)", "opened ann left", "note_left text=hi", "slammed").stdout.splitlines() == [
        "front_door: phase closed",
        "1. Locked(force=1, quietly=no): taken by row Locked/closed",
        "     phase  closed -> locked:twice",
        "2. Opened(by=ann, hand=left): refused by row Opened/locked (it is locked)",
        "3. NoteLeft(text=hi, at_ms=0): taken by row NoteLeft/otherwise",
        "4. Slammed: ignored by row Slammed/otherwise (it is not open)",
    ]
    assert run("step", "front_door", "opened", "ann", "left").stdout.splitlines()[1:] == [
        "1. Opened(by=ann, hand=left): taken by row Opened/closed",
        "     phase  closed -> wide open",
        "     owner  none -> ann",
        "     because: A door that opens rings.",
        "     effects: Rang(owner=ann)",
    ]


@pytest.mark.usefixtures("doors")
def test_step_as_json_says_the_same() -> None:
    said = json.loads(run("step", "front_door", "opened ann left", "opened bob right", "--json").stdout)
    assert (said["format"], said["version"], said["machine"]) == ("turnproof.step", 1, "front_door")
    first, second = said["steps"]
    assert first["changes"] == {"phase": {"before": "closed", "after": "wide open"}, "owner": {"before": "", "after": "ann"}}
    assert first["effects"] == [{"effect": "Rang", "owner": "ann"}]
    assert (second["answer"], second["why"], second["changes"]) == ("ignored", "it is open", {})
    assert said["final"] == {"phase": "wide open", "owner": "ann", "turns": 0}


WORDS = st.sampled_from(
    ["opened", "Locked(", "slammed", "by=", "hand=left", "ann", "(", ")", ",", "=", "'", '"', "\\", " ", "--", "-h", "none"]
)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.one_of(WORDS, st.text(max_size=6), st.lists(WORDS, max_size=5).map("".join)), max_size=5))
def test_step_never_shows_a_traceback(words: list[str]) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(catalog, "specifications", lambda: {"front_door": SPEC})
        patch.setattr(catalog, "systems", dict)
        result = run("step", "front_door", *words)
    assert result.exit_code in (0, 2)
    assert (result.stderr == "") == (result.exit_code == 0)
    assert len(result.stderr.splitlines()) <= 1


# ── verify ──


@pytest.mark.usefixtures("doors")
def test_verify_that_holds() -> None:
    result = run("verify")
    assert result.exit_code == 0
    assert result.stderr == ""
    assert "R-DOOR-1" in result.stdout
    assert result.stdout.splitlines()[-1].startswith("holds: 1 machine, 4 checks: 4 holds, 0 violated, 0 undetermined, in ")


@pytest.mark.parametrize(
    ("verdicts", "status"), [((HOLDING[0], VIOLATED, UNDETERMINED), 1), ((*HOLDING[:2], UNDETERMINED), 3), (HOLDING[:2], 3)]
)
@pytest.mark.usefixtures("doors")
def test_verify_that_does_not(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, verdicts: tuple[Verdict, ...], status: int) -> None:
    find(monkeypatch, verdicts)
    result = run(
        "verify", "--json", tmp_path / "r.json", "--junit", tmp_path / "r.xml", "--sarif", tmp_path / "r.sarif", "--itf", tmp_path / "itf"
    )
    assert result.exit_code == status
    assert not result.stdout.splitlines()[-1].startswith("holds")
    document = json.loads((tmp_path / "r.json").read_text())
    jsonschema.validate(document, schema())
    assert document["exit_status"] == status
    assert ET.parse(tmp_path / "r.xml").getroot().tag == "testsuites"
    assert json.loads((tmp_path / "r.sarif").read_text())["runs"][0]["invocations"][0]["exitCode"] == status
    assert len(list((tmp_path / "itf").iterdir())) == (2 if VIOLATED in verdicts else 0)


@pytest.mark.usefixtures("doors")
def test_traces_of_an_earlier_run_do_not_stay(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "other.1.itf.json").write_text("{}")
    find(monkeypatch, (HOLDING[0], VIOLATED, HOLDING[2]))
    run("verify", "--itf", tmp_path)
    assert len(list(tmp_path.iterdir())) == 3
    find(monkeypatch, HOLDING)
    run("verify", "--itf", tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["other.1.itf.json"]


@pytest.mark.usefixtures("doors")
def test_json_on_standard_output_is_nothing_but_json() -> None:
    result = run("verify", "--json", "-")
    assert json.loads(result.stdout)["outcome"] == "holds"
    assert "R-DOOR-1" in result.stderr
    assert result.stderr.splitlines()[-1].startswith("holds: ")


@pytest.mark.usefixtures("doors")
def test_the_pytest_file_is_python_with_a_test_for_each_counterexample(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    find(monkeypatch, (HOLDING[0], VIOLATED, attrs.evolve(VIOLATED, check="a door opens")))
    run("verify", "--pytest", tmp_path / "test_it.py")
    text = (tmp_path / "test_it.py").read_text()
    compile(text, "test_it.py", "exec")
    assert re.findall(r"def (\w+)", text) == ["test_an_open_door_has_an_owner", "test_an_open_door_has_an_owner_2"]
    assert "Opened(by='', hand=Hand.LEFT)" in text


@pytest.mark.usefixtures("doors")
def test_what_quick_leaves_out_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(verify_module, "ENGINES", {"explicit": says(HOLDING), "symbolic": says([])})
    result = run("verify", "--quick")
    assert result.exit_code == 0
    assert "not run (--quick): symbolic" in result.stdout
    assert result.stdout.splitlines()[-1].endswith("; not run: symbolic")


def never(*_: object) -> list[Verdict]:
    pytest.fail("the long run was started although an output cannot be written")


@pytest.fixture
def no_run(monkeypatch: pytest.MonkeyPatch, doors: None) -> None:
    """Fail if an engine is started."""
    monkeypatch.setattr(verify_module, "ENGINES", {"explicit": engine(never)})


@pytest.mark.usefixtures("no_run")
@pytest.mark.parametrize("option", ["--json", "--junit", "--sarif", "--pytest"])
def test_an_output_that_cannot_be_written_is_found_before_the_run(option: str, tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_text("x")
    assert complaint("verify", option, tmp_path) == f"{option} {tmp_path}: is a directory, expected the name of a file"
    assert complaint("verify", option, tmp_path / "no" / "r") == f"{option} {tmp_path}/no/r: there is no directory {tmp_path}/no"
    assert "there is no directory" in complaint("verify", option, file / "r")
    assert list(tmp_path.iterdir()) == [file]


@pytest.mark.usefixtures("no_run")
def test_two_outputs_into_one_file_are_a_mistake(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path / "r")
    assert (
        complaint("verify", "--json", tmp_path / "r", "--sarif", tmp_path / "link")
        == f"--sarif {tmp_path}/link: --json names the same file"
    )
    assert complaint("verify", "--json", tmp_path / "r", "--certificate", tmp_path / "r").endswith("r: --json names the same file")
    assert complaint("verify", "--json", "-", "--junit", "-") == "--junit -: --json names the same file"


@pytest.mark.usefixtures("no_run")
def test_a_file_is_no_directory_for_traces(tmp_path: Path) -> None:
    (tmp_path / "f").write_text("")
    assert complaint("verify", "--itf", tmp_path / "f") == f"--itf {tmp_path}/f: is a file, expected a directory"


@pytest.mark.usefixtures("no_run")
@pytest.mark.skipif(os.geteuid() == 0, reason="the superuser may write anywhere")
def test_a_folder_without_permission(tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    assert "denied" in complaint("verify", "--json", tmp_path / "r.json")


def test_certificates_go_where_they_are_asked_to(tmp_path: Path) -> None:
    assert verify.certificates([SPEC], tmp_path) == [tmp_path / "front_door.json"]
    assert verify.certificates([SPEC], tmp_path / "c.json") == [tmp_path / "c.json"]
    with pytest.raises(Misuse, match="expected a directory that exists, for 2 machines are verified"):
        verify.certificates([SPEC, SPEC], tmp_path / "c.json")
    (default,) = verify.certificates([SPEC], None)
    assert default is not None
    assert default.parts[-3:] == ("build", "certificates", "front_door.json")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(verify, "project_root", lambda: None)
        assert verify.certificates([SPEC], None) == [None]


# ── colours ──


@pytest.mark.usefixtures("doors")
def test_colours_are_asked_for_or_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("NO_COLOR", "FORCE_COLOR"):
        monkeypatch.delenv(name, raising=False)
    assert "\x1b" not in run("verify").output
    monkeypatch.setenv("FORCE_COLOR", "1")
    assert "\x1b[32mholds" in run("verify").output
    monkeypatch.setenv("NO_COLOR", "1")
    assert "\x1b" not in run("verify").output


# ── what is not the user's fault, and what is the table's ──


@pytest.mark.usefixtures("doors")
def test_an_internal_error_is_one_line_and_no_success(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail() -> Mapping[str, Spec]:
        raise Misuse("unused")

    monkeypatch.setattr(catalog, "specifications", fail)
    assert run("list").exit_code == 2
    monkeypatch.setitem(root.commands, "list", click.Command("list", callback=lambda: 1 // 0))
    result = run("list")
    assert result.exit_code == 70
    assert result.stderr.startswith(
        "turnproof: internal error: ZeroDivisionError: integer division or modulo by zero (test_cli_commands.py:"
    )
    assert len(result.stderr.splitlines()) == 1


@pytest.mark.parametrize(("problem", "said"), [(TableError("row x: no"), "row x: no"), (RuntimeError("odd"), "RuntimeError: odd")])
def test_specifications_that_do_not_load_are_misuse(monkeypatch: pytest.MonkeyPatch, problem: Exception, said: str) -> None:
    def fail() -> Mapping[str, Spec]:
        raise problem

    monkeypatch.setattr(catalog, "specifications", fail)
    assert complaint("list").endswith(said)


def test_main_returns_the_status(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--version"]) == 0
    assert main(["nothing"]) == 2
    assert "No such command" in capsys.readouterr().err


@pytest.mark.usefixtures("doors")
def test_a_package_that_is_missing_is_named_with_its_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    from turnproof.checkers import graph

    def missing(*_: object, **__: object) -> None:
        raise ModuleNotFoundError("No module named 'numpy'", name="numpy")

    monkeypatch.setattr(graph, "explore", missing)
    for command in (["golden"], ["coverage", "front_door"]):
        assert complaint(*command) == "the package numpy is not installed: pip install 'turnproof[verify]'"


def test_a_plain_installation_names_the_extra_that_the_command_line_needs(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "click", None)
    assert main(["list"]) == 2
    assert capsys.readouterr().err == "turnproof: the command line needs the package click: pip install 'turnproof[verify]'\n"
