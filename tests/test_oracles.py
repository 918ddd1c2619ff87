"""The oracles agree with us, and each planted mistake is named."""

from __future__ import annotations

import json
import random
import re
from concurrent.futures import ThreadPoolExecutor
from enum import Enum
from typing import Annotated, Any

import pytest
from attrs import evolve, frozen
from click.testing import CliRunner
from oracle_systems import specification
from random_systems import Maker, Thing

from turnproof.checkers.network.run import Fault
from turnproof.checkers.oracles import absent, as_system, compare, installed, programs, write
from turnproof.checkers.oracles.folding import fold
from turnproof.checkers.oracles.model import build
from turnproof.checkers.oracles.murphi import RESERVED as MURPHI_WORDS
from turnproof.checkers.oracles.murphi import Murphi
from turnproof.checkers.oracles.programs import Failed, rumur_answer, spin_answer, tlc_answer
from turnproof.checkers.oracles.promela import FAULTS, Promela
from turnproof.checkers.oracles.promela import RESERVED as PROMELA_WORDS
from turnproof.checkers.oracles.text import in_order
from turnproof.checkers.verdict import Outcome, Verdict
from turnproof.cli.commands import root
from turnproof.machines.kernel import Machine, Range, Row, Variable, choose, instances, symbol
from turnproof.machines.kernel.evaluate import environment, value
from turnproof.specs.classics import peterson, philosophers, two_phase_commit
from turnproof.specs.language import Always, Sometimes
from turnproof.specs.session_id import SPEC as SESSION_ID
from turnproof.specs.system import Absorbs, Budget, Channel, May, Part, Spontaneous, System, SystemSpec, Wire

HERE = [pytest.param(name, marks=pytest.mark.skipif(name not in installed(), reason=f"{name} is not installed")) for name in programs.TOOLS]
SLOWLY = [pytest.param(*p.values, marks=[*p.marks, *([pytest.mark.soak] if p.values == ("tlc",) else [])]) for p in HERE]
"""The same, but TLC, which starts a virtual machine for every question, is asked by ``make soak`` alone."""


def outcomes(verdicts: list[Verdict]) -> dict[str, Outcome]:
    return {v.check.partition(" ")[2]: v.outcome for v in verdicts}


@pytest.mark.parametrize("oracle", HERE)
def test_agrees_on_mutual_exclusion(oracle: str) -> None:
    verdicts = compare(peterson.SPEC, oracles=[oracle])
    assert {v.outcome for v in verdicts} == {Outcome.HOLDS}, verdicts
    assert verdicts[0].how.startswith("agrees: 34 states, ")
    assert list(outcomes(verdicts)) == [
        "counts the same states", "judges the same: one in the critical section", "judges the same: the other waits meanwhile",
    ]  # fmt: skip


PLANTED = {
    "spin": ("one_phase = At_CRITICAL", "one_phase = At_IDLE"),
    "rumur": ("one_phase := At_CRITICAL", "one_phase := At_IDLE"),
    "tlc": ('[w EXCEPT !.one.phase = "critical"]', '[w EXCEPT !.one.phase = "idle"]'),
}
"""A row that leads elsewhere: the first process never enters."""


@pytest.mark.parametrize("oracle", SLOWLY)
def test_names_the_count_and_the_property_that_a_changed_row_changes(oracle: str) -> None:
    right, wrong = PLANTED[oracle]
    text = write(peterson.SPEC, oracle)
    assert text.count(right) == 1
    states, _, meanwhile = compare(peterson.SPEC, oracles=[oracle], texts={oracle: text.replace(right, wrong)})
    assert states.outcome is Outcome.VIOLATED
    assert states.detail.startswith(f"distinct states: {oracle} counts ")
    assert states.detail.endswith(", this engine 34")
    assert meanwhile.outcome is Outcome.VIOLATED
    assert meanwhile.detail == f"the other waits meanwhile: {oracle} says never reached, this engine reached"


@pytest.mark.parametrize("oracle", SLOWLY)
def test_agrees_that_a_bad_design_is_bad(oracle: str) -> None:
    spec = two_phase_commit.specification(2)
    found = compare(spec, system=spec.variants[0].system, oracles=[oracle])
    verdicts = {v.check.partition(": ")[2]: v for v in found}
    assert {v.outcome for v in verdicts.values()} == {Outcome.HOLDS}, verdicts
    assert verdicts["nobody commits where another aborts"].how.startswith("agrees: broken, ")


@pytest.mark.parametrize("oracle", SLOWLY)
def test_a_broken_promise_in_the_text_alone_is_a_disagreement(oracle: str) -> None:
    free = {"spin": "!memory_flag_1", "rumur": "!memory_flag_1", "tlc": "~memory.flag_1"}
    right, wrong = free[oracle], "TRUE" if oracle == "tlc" else "true"
    text = write(peterson.SPEC, oracle)
    assert text.count(right) == 1
    verdicts = compare(peterson.SPEC, oracles=[oracle], texts={oracle: text.replace(right, wrong)})
    broken = next(v for v in verdicts if v.check.endswith("one in the critical section"))
    assert broken.outcome is Outcome.VIOLATED
    assert broken.detail == f"one in the critical section: {oracle} says broken, this engine holds"


# ── what is hard to write ──


class At(Enum):
    INIT = "init"
    DONE = "done"


@frozen
class Pair:
    phase: At = At.INIT
    byte: Annotated[int, Range(0, 3)] = 0
    do: Annotated[int, Range(0, 3)] = 1


@frozen
class Swapped:
    pass


@frozen
class Raised:
    of: Annotated[int, Range(0, 2)]


@frozen
class Cry:
    of: Annotated[int, Range(0, 2)]


@frozen
class Shout:
    arg1: Annotated[int, Range(0, 2)]


pair, raised = symbol(Pair), symbol(Raised)
PAIR: Machine[Any, Any, Any] = Machine(
    name="pair", initial=Pair(), now=pair, events=(Swapped, Raised), effects=(Cry, Shout),
    rows=(
        Row(Swapped, data=evolve(pair, byte=pair.do, do=pair.byte)),
        Row(raised, when=pair.byte < 3, data=evolve(pair, byte=pair.byte + 1),
            emit=(Cry(raised.of), Shout(choose(pair.do == 0, pair.byte, 2)))),
        Row(Raised, to=At.DONE),
    ),
)  # fmt: skip


def awkward(part: str = "held", channel: str = "i") -> SystemSpec:
    """Words of the languages as names, fields exchanged, a choice that is sent, a channel without order that loses and is dropped."""
    init, of = Part(part, PAIR), Part("of", PAIR)
    chan = Channel(channel, of, capacity=2, reordered=True, lossy=May(budget=Budget("do", 1)), droppable=May(when=of.now.do == 3))
    cry, shout = symbol(Cry), symbol(Shout)
    system = System(
        name="awkward", parts=(init, of), channels=(chan,),
        wires=(Wire(init, cry, chan, Raised(cry.of)), Wire(init, shout, of, Raised(shout.arg1))),
        spontaneous=(
            Spontaneous(init, Swapped), Spontaneous(init, Raised, when=chan.length < 2), Spontaneous(of, Swapped, when=init.now.byte >= 1),
        ),
        absorbed=(Absorbs(of, Cry, Shout),),
    )  # fmt: skip
    return SystemSpec(
        system=system, requirements={},
        properties=(
            Always("never both done", (init.now.phase == At.INIT) | (of.now.phase == At.INIT), requirements=()),
            Sometimes("two under way", chan.length == 2, requirements=()),
        ),
    )  # fmt: skip


@pytest.mark.parametrize("oracle", SLOWLY)
@pytest.mark.parametrize("names", [("held", "i"), pytest.param(("init", "chan"), marks=pytest.mark.soak)])
def test_agrees_where_names_and_fields_are_awkward(oracle: str, names: tuple[str, str]) -> None:
    verdicts = compare(awkward(*names), oracles=[oracle])
    assert {v.outcome for v in verdicts} == {Outcome.HOLDS}, verdicts


FRAME = {
    "spin": (Promela, PROMELA_WORDS, r"/\*.*?\*/"),
    "rumur": (Murphi, MURPHI_WORDS, r'--[^\n]*|"[^"]*"'),
}


@pytest.mark.parametrize("oracle", FRAME)
def test_every_word_of_the_frame_is_kept_from_the_names_of_a_model(oracle: str) -> None:
    writer, reserved, remarks = FRAME[oracle]
    made = writer(build(awkward()))
    text = re.sub(remarks, " ", made.write(), flags=re.S)
    used = set(re.findall(r"\b[A-Za-z]\w*", text)) - set(made.names.known.values())
    assert used <= reserved
    for word in sorted(w for w in reserved if w != "of" and not w[-1].isdigit()):
        clash = writer(build(awkward("part", word)))
        clash.write()
        assert not reserved & set(clash.names.known.values()), word


@pytest.mark.parametrize("oracle", SLOWLY)
@pytest.mark.parametrize("seed", [2, 19])
def test_agrees_on_random_systems(oracle: str, seed: int) -> None:
    verdicts = compare(specification(seed), oracles=[oracle])
    assert {v.outcome for v in verdicts} == {Outcome.HOLDS}, verdicts


@pytest.mark.parametrize("oracle", SLOWLY)
def test_agrees_on_a_single_machine(oracle: str) -> None:
    verdicts = compare(SESSION_ID, oracles=[oracle])
    assert {v.outcome for v in verdicts} == {Outcome.HOLDS}, verdicts
    assert verdicts[0].how.startswith("agrees: 5 states, ")


def test_faults_are_found_by_both() -> None:
    if "spin" not in installed():
        pytest.skip("spin is not installed")
    verdicts = compare(specification(19), oracles=["spin"])
    faults = next(v for v in verdicts if v.check == "spin finds the same faults")
    assert faults.how.startswith("agrees: overflow, endless, ")


# ── the text ──


def test_rows_and_parts_keep_their_names_in_every_text() -> None:
    for oracle in programs.TOOLS:
        text = write(philosophers.SPEC, oracle)
        for word in ("GotHungry/thinking", "philosopher_0", "fork_3", "somebody eats"):
            assert word in text, (oracle, word)


def test_a_search_breadth_first_has_nothing_hidden() -> None:
    model = build(philosophers.SPEC)
    assert "hidden" in Promela(model).write()
    assert "hidden" not in Promela(model, breadth_first=True).write()


def test_folding_keeps_the_value() -> None:
    maker = Maker(7)
    states = random.Random(7).sample(list(instances(Thing, tokens=2, counter=2)), 60)
    now = symbol(Thing)
    for _ in range(150):
        condition = maker.condition(now)
        for state in states:
            assert value(fold(condition), environment(state)) == value(condition, environment(state)), condition


def test_no_assignment_reads_what_was_assigned_before() -> None:
    updates, held = in_order([("byte", pair.byte + 1), ("do", pair.byte)], Pair)
    assert ([n for n, _ in updates], held) == (["do", "byte"], [])
    updates, held = in_order([("byte", pair.do), ("do", pair.byte)], Pair)
    assert (updates, [n for n, _ in held]) == ([], ["byte", "do"])
    assert Variable(Pair, "do") != Variable(Pair, "byte")


def test_a_machine_alone_takes_every_event_but_expiries_from_outside() -> None:
    from turnproof.specs.reply_operation import SPEC

    system = as_system(SPEC).system
    expiries = {rule.expires for rule in SPEC.machine.timers}
    assert {s.event_class for s in system.spontaneous} == set(SPEC.machine.events) - expiries


# ── what does not run ──


def test_an_oracle_that_is_not_there_is_named_and_never_agrees(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("shutil.which", lambda program: None)
    assert installed() == ()
    assert compare(peterson.SPEC) == []
    (verdict,) = compare(peterson.SPEC, oracles=["spin"])
    assert (verdict.outcome, verdict.detail) == (Outcome.UNDETERMINED, "spin and gcc not installed; Debian: apt install spin gcc")
    assert absent()[0] == "THE ORACLE SPIN DOES NOT RUN: spin and gcc not installed (Debian: apt install spin gcc)"
    result = CliRunner().invoke(root, ["oracle", "peterson"])
    assert "WARNING: THE ORACLE RUMUR DOES NOT RUN" in result.stderr
    assert result.exit_code == 3


def test_a_search_cut_short_counts_nothing() -> None:
    answer = spin_answer("error: max search depth too small\n  12 states, stored\n", "", 0.0)
    assert (answer.states, answer.why) == (None, "the search was not deep enough")
    with pytest.raises(Failed, match="out of memory"):
        spin_answer("pan: error: out of memory\n", "", 0.0)
    with pytest.raises(Failed, match="core dumped"):
        rumur_answer("core dumped", "", 0.0)
    with pytest.raises(Failed, match="Parsing"):
        tlc_answer("Error: Parsing or semantic analysis failed.\n", "", 0.0)
    left = tlc_answer("9 states generated, 5 distinct states found, 3 states left on queue.", "", 0.0)
    assert left.states is None


def test_reports_are_told_apart_from_faults() -> None:
    said = [f"pan:1: assertion violated (property!={n}) (at depth 3)" for n in (2, FAULTS[Fault.HOLE])]
    answer = spin_answer("\n".join([*said, "7 states, stored"]), "", 0.0)
    assert (answer.states, answer.reported, answer.faults) == (7, frozenset({2}), frozenset({Fault.HOLE}))


def test_a_text_that_does_not_compile_is_undetermined() -> None:
    if "spin" not in installed():
        pytest.skip("spin is not installed")
    (verdict,) = compare(peterson.SPEC, oracles=["spin"], texts={"spin": "active proctype {"})
    assert verdict.outcome is Outcome.UNDETERMINED
    assert "syntax error" in verdict.detail


# ── the command ──


def test_the_command_writes_compares_and_refuses(tmp_path: Any) -> None:
    def run(*arguments: object) -> Any:
        return CliRunner().invoke(root, ["oracle", *map(str, arguments)])

    assert run("peterson", "--write", tmp_path).exit_code == 0
    assert sorted(p.name for p in tmp_path.iterdir()) == ["peterson.m", "peterson.pml", "peterson.tla"]
    for wrong, said in (
        (["petersen"], "no system 'petersen'; did you mean peterson?"),
        (["--oracle", "spim"], "no oracle 'spim'; did you mean spin?"),
        (["--write", tmp_path, "--json", "-"], "--write runs no oracle"),
    ):
        result = run(*wrong)
        assert (result.exit_code, said in result.stderr) == (2, True), result.stderr
    if "spin" in installed():
        result = run("peterson", "--oracle", "spin", "--json", "-")
        assert result.exit_code == 0
        assert json.loads(result.stdout)["counts"] == {"holds": 3, "violated": 0, "undetermined": 0}


@pytest.mark.soak
@pytest.mark.skipif("tlc" not in installed(), reason="tlc is not installed")
def test_several_at_once_do_not_disturb_each_other() -> None:
    """TLC unpacks its standard modules beside whoever else does."""
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(lambda _: compare(peterson.SPEC, oracles=["tlc"]), range(4)))
    assert {v.outcome for verdicts in found for v in verdicts} == {Outcome.HOLDS}
