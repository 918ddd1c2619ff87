"""A certificate is believed only as far as two solvers confirm it: damage, tampering and solvers that contradict each other."""

from __future__ import annotations

import json
import re
from pathlib import Path

import attrs
import msgspec
import pytest
from smt_toys import DIAL, LOCKED, made
from toys import LOCK, LOCK_SPEC, spec_of

from turnproof.checkers.progress import SILENT
from turnproof.checkers.smt import CertificateError, certificate, compose, cvc5api, recheck, rechecking
from turnproof.checkers.smt.rechecking import Run
from turnproof.checkers.verdict import Outcome
from turnproof.specs.language import Spec, never
from turnproof.specs.tool_call import SPEC as TOOL_CALL

SIX = spec_of(DIAL, never("the dial stands at six", DIAL.now.number == 6, requirements="D-1"))
replace = msgspec.structs.replace


# ── a good one ──


def test_what_is_written_is_read(tmp_path: Path) -> None:
    certificate.write(LOCKED(), tmp_path / "deep" / "lock.json")
    assert certificate.read(tmp_path / "deep" / "lock.json") == LOCKED()
    assert [p.name for p in (tmp_path / "deep").iterdir()] == ["lock.json"]
    assert json.loads((tmp_path / "deep" / "lock.json").read_text())["table"]["machine"] == "lock"


@pytest.mark.parametrize("spec", [LOCK_SPEC, SIX], ids=["lock", "k-induction"])
def test_two_solvers_confirm_it(spec: Spec, tmp_path: Path) -> None:
    certificate.write(made(spec), tmp_path / "proof.json")
    verdicts = recheck(tmp_path / "proof.json")
    assert [v.outcome for v in verdicts] == [Outcome.HOLDS] * 4
    assert [v.check for v in verdicts[:2]] == ["the certificate is re-checked by z3", "the certificate is re-checked by cvc5"]
    assert verdicts[3].how.startswith("proved (any length of run, any count; re-checked by z3 ")
    assert f"{len(made(spec).claims)} properties" in verdicts[3].how


def test_the_queries_are_one_file_for_any_solver() -> None:
    shell = cvc5api.Script()
    said = shell.run(certificate.text(LOCKED())).split()
    assert said == [query.expected for group in LOCKED().groups for query in group.queries]


def test_every_row_is_asked_about_every_conjunct_and_every_claim() -> None:
    names = [query.name for group in LOCKED().groups for query in group.queries]
    assert len(names) == len(set(names))
    for row in LOCK.rows:
        for conjunct in LOCKED().invariant:
            assert f'row {row.name} preserves "{conjunct.name}"' in names
        for claim in LOCKED().claims:
            assert (f'row {row.name} keeps "{claim.name}"' in names) == (claim.kind == "step")
    for conjunct in LOCKED().invariant:
        assert f'the initial state satisfies "{conjunct.name}"' in names


def test_what_a_row_leaves_alone_is_asked_together_and_nothing_is_left_out() -> None:
    proof = made(TOOL_CALL)
    together = [query for group in proof.groups for query in group.queries if "of those it does not touch" in query.name]
    assert together
    for row in proof.table.rows:
        (group,) = (g for g in proof.groups if g.name == f"row {row.name}")
        asked = {word for query in group.queries for word in re.findall(r"\b(?:claim|inv)[.\w]*", query.assertion)}
        assert asked >= {compose.claim_name(n) for n, claim in enumerate(proof.claims) if claim.kind == "step"}
        assert asked >= {compose.conjunct_name(n) for n, _ in enumerate(proof.invariant)}


def test_a_false_claim_among_those_asked_together_is_seen(tmp_path: Path) -> None:
    proof = made(TOOL_CALL)
    number = max(n for n, claim in enumerate(proof.claims) if claim.kind == "step")
    claims = (*proof.claims[:number], replace(proof.claims[number], reads=(), smt="false"), *proof.claims[number + 1 :])
    changed = replace(proof, claims=claims, prelude=compose.prelude(proof.table, proof.invariant, claims),
                      groups=compose.groups(proof.table, proof.invariant, claims))  # fmt: skip
    certificate.write(replace(changed, digest=certificate.digest(changed)), tmp_path / "file")
    verdicts = recheck(tmp_path / "file")
    assert [v.outcome for v in verdicts[:2]] == [Outcome.VIOLATED] * 2
    assert "of those it does not touch: expected unsat, answered sat" in verdicts[0].detail


# ── damage ──


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "no whole JSON: Input data was truncated"),
        (b"{}", "no certificate: Object missing required field `format`"),
        (b"[1, 2]", "no certificate: Expected `object`, got `array`"),
        (b"# a log", "no whole JSON: JSON is malformed"),
        (b"\xff\xfe{}", "no whole JSON: JSON is malformed"),
        (b'{"format": "turnproof certificate 1", "color": 3}', "no certificate: Object contains unknown field `color`"),
        (b'{"format": 3}', "no certificate: Expected `str`, got `int` - at `$.format`"),
    ],
)
def test_a_file_that_is_no_certificate(content: bytes, said: str, tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(content)
    with pytest.raises(CertificateError) as caught:
        recheck(tmp_path / "file")
    assert str(caught.value).startswith(f"{tmp_path / 'file'}: {said}")
    assert "\n" not in str(caught.value)


def test_no_file_at_all(tmp_path: Path) -> None:
    with pytest.raises(CertificateError, match="cannot be read: No such file"):
        recheck(tmp_path / "none")
    with pytest.raises(CertificateError, match="cannot be read: Is a directory"):
        recheck(tmp_path)


@pytest.mark.parametrize("part", [0.1, 0.5, 0.9, 0.999])
def test_a_truncated_file(part: float, tmp_path: Path) -> None:
    certificate.write(LOCKED(), tmp_path / "file")
    whole = (tmp_path / "file").read_bytes()
    (tmp_path / "file").write_bytes(whole[: int(len(whole) * part)])
    with pytest.raises(CertificateError, match="no whole JSON"):
        recheck(tmp_path / "file")


def test_a_changed_letter_is_seen(tmp_path: Path) -> None:
    certificate.write(LOCKED(), tmp_path / "file")
    (tmp_path / "file").write_text((tmp_path / "file").read_text().replace("it is taken exactly", "it is taken roughly"))
    with pytest.raises(CertificateError, match=r"\$\.digest"):
        recheck(tmp_path / "file")


# ── solvers that do not agree, do not answer, are not there ──


@pytest.fixture(scope="module")
def answered() -> list[Run]:
    return rechecking.run(LOCKED(), SILENT)


def with_answer(run: Run, answer: str, *, name: str = 'row freed preserves "it is taken exactly while it has an owner"') -> Run:
    place = next((g, q) for g, group in enumerate(LOCKED().groups) for q, query in enumerate(group.queries) if query.name == name)
    return attrs.evolve(run, answers={**run.answers, place: (answer, 1.0)})


def outcomes(runs: list[Run]) -> list[Outcome]:
    return [v.outcome for v in rechecking.verdicts(LOCKED(), runs, Path("x"))]


def test_two_solvers_that_contradict_each_other_are_a_violation(answered: list[Run]) -> None:
    z3, cvc5 = answered
    verdicts = rechecking.verdicts(LOCKED(), [z3, with_answer(cvc5, "sat")], Path("x"))
    assert [v.outcome for v in verdicts] == [Outcome.HOLDS, Outcome.VIOLATED, Outcome.VIOLATED, Outcome.VIOLATED]
    assert verdicts[2].detail.startswith('one of the two solvers is wrong: row freed preserves "it is taken exactly')
    assert outcomes([with_answer(z3, "sat"), cvc5]) == [Outcome.VIOLATED, Outcome.HOLDS, Outcome.VIOLATED, Outcome.VIOLATED]


def test_a_solver_that_does_not_know_leaves_it_open(answered: list[Run]) -> None:
    z3, cvc5 = answered
    assert outcomes([z3, with_answer(cvc5, "unknown")]) == [Outcome.HOLDS, Outcome.UNDETERMINED, Outcome.HOLDS, Outcome.UNDETERMINED]
    part = attrs.evolve(cvc5, answers=dict(list(cvc5.answers.items())[:-1]), why="time: ended after 1 s")
    verdicts = rechecking.verdicts(LOCKED(), [z3, part], Path("x"))
    assert [v.outcome for v in verdicts] == [Outcome.HOLDS, Outcome.UNDETERMINED, Outcome.UNDETERMINED, Outcome.UNDETERMINED]
    assert verdicts[1].detail == "time: ended after 1 s"


def test_without_cvc5_nothing_is_re_checked(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(cvc5api, "version", lambda: None)
    certificate.write(LOCKED(), tmp_path / "file")
    first, second, together, claims = recheck(tmp_path / "file")
    assert first.outcome is Outcome.HOLDS
    assert (second.outcome, together.outcome, claims.outcome) == (Outcome.UNDETERMINED,) * 3
    assert second.how == claims.how == "proved by z3 only, not re-checked"
    assert "cvc5 is not installed" in second.detail


def test_a_solver_is_ended_at_its_limit(tmp_path: Path) -> None:
    certificate.write(LOCKED(), tmp_path / "file")
    verdicts = recheck(tmp_path / "file", seconds=0.01)
    assert {v.outcome for v in verdicts} == {Outcome.UNDETERMINED}
    assert verdicts[0].detail == "time: ended after 0.01 s"


def test_the_log_has_a_line_a_query(answered: list[Run]) -> None:
    z3, cvc5 = answered
    lines = list(rechecking.log(LOCKED(), answered))
    assert len(lines) == sum(len(g.queries) for g in LOCKED().groups)
    assert any(line.startswith('row freed preserves "it is taken exactly while it has an owner" ... ok (z3 ') for line in lines)
    wrong = list(rechecking.log(LOCKED(), [z3, with_answer(cvc5, "sat")]))
    assert [line for line in wrong if "FAILED: expected unsat, answered unsat/sat" in line]
